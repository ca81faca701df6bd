//! One page of one table, in identifier order, with filters: every list of the API.

use super::{Row, Tx, Value, VisibilityFloor, failpoint};
use crate::kernel::page::{FilterValue, Page};
use crate::kernel::{AnyId, Scope, StoreError};

/// What a list reads. `key` is the leading column of the primary key, and the value to look for.
pub struct Listing<'a> {
    pub table: &'static str,
    pub columns: &'static str,
    pub key: (&'static str, Value<'a>),
}

/// The only table whose pages need no [`VisibilityFloor`]: the sequencer mints its identifiers in
/// the order in which they become visible, so no row appears later with a lower identifier.
const TABLE_WITHOUT_FLOOR: &str = "events";

/// The column and the comparison of a filter. A filter has its column's name; a filter of a time
/// ends with the comparison, as in `created.gte`.
fn condition(filter: &'static str) -> (&'static str, &'static str) {
    match filter.split_once('.') {
        Some((column, "gt")) => (column, ">"),
        Some((column, "gte")) => (column, ">="),
        Some((column, "lt")) => (column, "<"),
        Some((column, "lte")) => (column, "<="),
        _ => (filter, "="),
    }
}

/// Reads a page: its rows in the order in which they are shown, and whether more follow in the
/// direction of paging. In either direction a page begins with the row nearest to its cursor.
pub fn read(
    tx: &mut dyn Tx,
    listing: &Listing<'_>,
    page: &Page,
) -> Result<(Vec<Row>, bool), StoreError> {
    read_with(tx, listing, page, &[])
}

/// The condition for the rows that name one other object in `column`. Its form makes the planner
/// use the index over the key, that column and the identifier. With `column = ?` in the order of
/// identifiers, PostgreSQL could also walk along the primary key and filter. With stale statistics
/// it does that, and reads every row of the account on its way.
fn object_condition(column: &str, rising: bool, has_cursor: bool) -> String {
    match (has_cursor, rising) {
        (false, _) => format!(" AND {column} >= ?2 AND {column} <= ?2"),
        (true, true) => format!(" AND {column} <= ?2 AND ({column}, id) > (?2, ?3)"),
        (true, false) => format!(" AND {column} >= ?2 AND ({column}, id) < (?2, ?3)"),
    }
}

/// [`read`] with further conditions. Each is SQL over the table's columns with one `?`, and the
/// number to put there.
pub fn read_with(
    tx: &mut dyn Tx,
    listing: &Listing<'_>,
    page: &Page,
    conditions: &[(&'static str, i64)],
) -> Result<(Vec<Row>, bool), StoreError> {
    let rising = page.descending == page.ending_before.is_some();
    let mut sql = format!(
        "SELECT {}, id FROM {} WHERE {} = ?1",
        listing.columns, listing.table, listing.key.0
    );
    let mut values = vec![listing.key.1];
    let cursor = page.starting_after.or(page.ending_before);
    let direction = if rising { "ASC" } else { "DESC" };
    let mut order = format!("id {direction}");
    // A filter by another object's identifier reads the index over the filter's column.
    let object = page.filters.iter().find_map(|(column, value)| match value {
        FilterValue::Id(id) if !failpoint("lists_by_identifier") => Some((*column, *id)),
        _ => None,
    });
    if let Some((column, id)) = object {
        values.push(Value::Id(id));
        values.extend(cursor.map(Value::Id));
        sql.push_str(&object_condition(column, rising, cursor.is_some()));
        order = format!("{column} {direction}, {order}");
    } else if let Some(cursor) = cursor {
        values.push(Value::Id(cursor));
        sql.push_str(&format!(" AND id {} ?{}", if rising { ">" } else { "<" }, values.len()));
    }
    let is_object = |filter: &str| object.is_some_and(|(column, _)| column == filter);
    for (filter, value) in page.filters.iter().filter(|(filter, _)| !is_object(filter)) {
        values.push(match value {
            FilterValue::Int(value) => Value::Int(*value),
            FilterValue::Id(value) => Value::Id(*value),
            FilterValue::Text(value) => Value::Text(value),
        });
        let (column, comparison) = condition(filter);
        sql.push_str(&format!(" AND {column} {comparison} ?{}", values.len()));
    }
    for (condition, value) in conditions {
        values.push(Value::Int(*value));
        sql.push_str(" AND ");
        sql.push_str(&condition.replace('?', &format!("?{}", values.len())));
    }
    values.push(Value::Int(page.limit + 1));
    sql.push_str(&format!(" ORDER BY {order} LIMIT ?{}", values.len()));
    let mut rows = read_rows(tx, &sql, &values)?;
    let mut has_next = rows.len() as i64 > page.limit;
    rows.truncate(page.limit as usize);
    if rising
        && listing.table != TABLE_WITHOUT_FLOOR
        && !failpoint("page_without_floor")
        && let Some((last_id, _)) = rows.last()
        && let VisibilityFloor::At(floor) = tx.visibility_floor(*last_id)?
    {
        // The question for the floor has begun a newer snapshot: only what is read in it misses
        // nothing below the floor.
        rows = read_rows(tx, &sql, &values)?;
        has_next = rows.len() as i64 > page.limit;
        rows.truncate(page.limit as usize);
        let shown_count = rows.iter().take_while(|(id, _)| *id < floor).count();
        // Rows of this page at the floor or above do not make a next page: a caller that asked for
        // that page at once would get nothing.
        has_next &= shown_count == rows.len();
        rows.truncate(shown_count);
    }
    Ok((rows.into_iter().map(|(_, row)| row).collect(), has_next))
}

/// Rows with their identifiers.
fn read_rows(
    tx: &mut dyn Tx,
    sql: &str,
    values: &[Value<'_>],
) -> Result<Vec<(u128, Row)>, StoreError> {
    let rows = tx.rows(sql, values)?.into_iter();
    rows.map(|mut row| Ok((row.last_id()?, row))).collect()
}

/// Which of these scopes has an object. `table` becomes part of the SQL, so it must be a name from
/// our code.
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
