//! One page of one table, in identifier order, with filters: every list of the API.

use super::{Row, Tx, Value};

use crate::kernel::page::{FilterValue, Page};
use crate::kernel::{AnyId, Scope, StoreError};

/// What a list reads: `key` is the leading column of the primary key and its value.
pub struct Listing<'a> {
    pub table: &'static str,
    pub columns: &'static str,
    pub key: (&'static str, Value<'a>),
}

/// Rows in the order in which they are shown, and whether more follow in the direction of paging.
pub fn read(
    tx: &mut dyn Tx,
    listing: &Listing<'_>,
    page: &Page,
) -> Result<(Vec<Row>, bool), StoreError> {
    let backward = page.ending_before.is_some();
    // Paging backward reads the nearest rows first and turns them round afterwards.
    let rising = page.descending == backward;
    let mut sql =
        format!("SELECT {} FROM {} WHERE {} = ?1", listing.columns, listing.table, listing.key.0);
    let mut values = vec![listing.key.1];
    if let Some(cursor) = page.starting_after.or(page.ending_before) {
        values.push(Value::Id(cursor));
        sql.push_str(&format!(" AND id {} ?{}", if rising { ">" } else { "<" }, values.len()));
    }
    for (condition, value) in &page.filters {
        values.push(match value {
            FilterValue::Int(value) => Value::Int(*value),
            FilterValue::Id(value) => Value::Id(*value),
            FilterValue::Text(value) => Value::Text(value),
        });
        sql.push_str(" AND ");
        sql.push_str(&condition.replace('?', &format!("?{}", values.len())));
    }
    values.push(Value::Int(page.limit + 1));
    sql.push_str(&format!(
        " ORDER BY id {} LIMIT ?{}",
        if rising { "ASC" } else { "DESC" },
        values.len()
    ));
    let mut rows = tx.rows(&sql, &values)?;
    let has_next = rows.len() as i64 > page.limit;
    rows.truncate(page.limit as usize);
    if backward {
        rows.reverse();
    }
    Ok((rows, has_next))
}

/// Which of these accounts has an object in a table. `table` is a word of ours.
pub fn owner(
    tx: &mut dyn Tx,
    table: &'static str,
    scopes: &[Scope],
    id: AnyId,
) -> Result<Option<Scope>, StoreError> {
    let places: Vec<String> = (2..2 + scopes.len()).map(|place| format!("?{place}")).collect();
    let sql =
        format!("SELECT scope FROM {table} WHERE id = ?1 AND scope IN ({})", places.join(", "));
    let mut values = vec![Value::from(id)];
    values.extend(scopes.iter().map(|scope| Value::from(*scope)));
    tx.row(&sql, &values)?.map(|mut row| row.scope()).transpose()
}
