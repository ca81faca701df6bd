//! The queries of the checks of the book.

use crate::kernel::StoreError;
use crate::resource::BookRule;
use crate::store::Tx;
use crate::values;

/// What SQLite finds wrong with its file; empty if the file is sound. For the embedded store only.
pub fn file_faults(tx: &mut dyn Tx) -> Result<Vec<String>, StoreError> {
    let lines = tx.rows("PRAGMA quick_check", &[])?;
    let lines = lines.into_iter().map(|mut row| row.text()).collect::<Result<Vec<_>, _>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

/// The rows that break a rule: for each a text that says what it is about, and an identifier if
/// there is one.
pub fn broken(
    tx: &mut dyn Tx,
    rule: &BookRule,
    rows_max: i64,
) -> Result<Vec<(String, Option<Vec<u8>>)>, StoreError> {
    let rows = tx.rows(rule.sql, values![rows_max])?;
    rows.into_iter().map(|mut row| Ok((row.text()?, row.bytes_or_null()?))).collect()
}

/// One object's status and history.
pub struct HistoryRow {
    pub scope: i64,
    pub id: [u8; 16],
    pub status: String,
    pub history: String,
}

/// A page of a table's histories: those after `(scope, id)`, in this order. `table` becomes part of
/// the SQL, so it must be a name from our code.
pub fn histories(
    tx: &mut dyn Tx,
    table: &str,
    (scope, id): (i64, [u8; 16]),
    rows_max: i64,
) -> Result<Vec<HistoryRow>, StoreError> {
    let sql = format!(
        "SELECT scope, id, status, status_history FROM {table} WHERE (scope, id) > (?1, ?2) \
         ORDER BY scope, id LIMIT ?3"
    );
    let rows = tx.rows(&sql, values![scope, &id, rows_max])?;
    rows.into_iter()
        .map(|mut row| {
            let scope = row.int()?;
            Ok(HistoryRow { scope, id: row.array()?, status: row.text()?, history: row.text()? })
        })
        .collect()
}
