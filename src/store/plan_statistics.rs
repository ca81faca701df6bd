//! Fixed statistics of the tables, for the planner of the embedded store.

use rusqlite::Connection;

use super::sqlite::store_error;
use crate::kernel::StoreError;

/// Tells the planner how the tables with the primary key `(scope, id)` are filled, so that a filter
/// by a related object uses that object's index. Replaces all other statistics.
///
/// Without statistics SQLite expects `scope = ?` in the primary key to find as few rows as scope
/// and another column in an index, and reads a whole account. The figures are fixed, not measured,
/// because plans must not depend on when somebody measured.
pub fn set_plan_statistics(connection: &Connection) -> Result<(), StoreError> {
    const ROWS: &str = "1000000";
    const ROWS_OF_ONE_VALUE: &str = "10";
    let mut wanted: Vec<(String, String, String)> = Vec::new();
    let mut tables = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        .map_err(store_error)?;
    let tables: Vec<String> =
        tables.query_map([], |row| row.get(0)).and_then(Iterator::collect).map_err(store_error)?;
    for table in tables {
        let mut indexes = connection
            .prepare("SELECT name, origin FROM pragma_index_list(?1)")
            .map_err(store_error)?;
        let indexes: Vec<(String, String)> = indexes
            .query_map([&table], |row| Ok((row.get(0)?, row.get(1)?)))
            .and_then(Iterator::collect)
            .map_err(store_error)?;
        let columns_of = |index: &str| -> Result<Vec<String>, StoreError> {
            let mut columns = connection
                .prepare("SELECT name FROM pragma_index_info(?1) ORDER BY seqno")
                .map_err(store_error)?;
            columns
                .query_map([index], |row| row.get(0))
                .and_then(Iterator::collect)
                .map_err(store_error)
        };
        let primary = indexes.iter().find(|(_, origin)| origin == "pk");
        let is_of_objects = primary
            .map(|(index, _)| columns_of(index))
            .transpose()?
            .is_some_and(|columns| columns == ["scope", "id"]);
        if !is_of_objects {
            continue;
        }
        for (index, _) in &indexes {
            let columns = columns_of(index)?;
            // First the number of all rows. Then, for each column, how many rows have the same
            // values in it and in the columns before it: for the last column, one.
            let mut figures = vec![ROWS];
            for (place, column) in columns.iter().enumerate() {
                let is_last = place + 1 == columns.len();
                figures.push(match column.as_str() {
                    _ if is_last => "1",
                    "scope" if place == 0 => ROWS,
                    _ => ROWS_OF_ONE_VALUE,
                });
            }
            wanted.push((table.clone(), index.clone(), figures.join(" ")));
        }
    }
    let has_statistics = connection
        .prepare("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_stat1'")
        .and_then(|mut found| found.exists([]));
    if !has_statistics.map_err(store_error)? {
        // Makes the table of statistics.
        connection.execute_batch("ANALYZE meta").map_err(store_error)?;
    }
    let mut stated =
        connection.prepare("SELECT tbl, idx, stat FROM sqlite_stat1").map_err(store_error)?;
    let stated: Vec<(String, Option<String>, String)> = stated
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .and_then(Iterator::collect)
        .map_err(store_error)?;
    let is_stated = |(table, index, figures): &(String, String, String)| {
        stated.contains(&(table.clone(), Some(index.clone()), figures.clone()))
    };
    if wanted.iter().all(is_stated) {
        return Ok(());
    }
    connection.execute_batch("BEGIN IMMEDIATE; DELETE FROM sqlite_stat1;").map_err(store_error)?;
    for (table, index, figures) in &wanted {
        connection
            .execute(
                "INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES (?1, ?2, ?3)",
                [table, index, figures],
            )
            .map_err(store_error)?;
    }
    // Loads the figures into this connection. Other connections load them when they open.
    connection.execute_batch("COMMIT; ANALYZE sqlite_schema;").map_err(store_error)
}
