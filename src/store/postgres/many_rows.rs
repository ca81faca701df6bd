//! Reads and updates many rows with few statements, although each row is looked up by itself.

use std::time::Instant;

use super::faults::SessionError;
use super::session::PgSession;
use crate::kernel::StoreError;
use crate::store::{EachUpdate, Row, Tx, Value, at_once};

/// How to update many rows, each with its own condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum UpdateForm {
    /// Many rows with one statement, each by its position in the table (`ctid`).
    ByCtid,
    /// One row with each statement.
    OneByOne,
}

/// The form that the server supports for `webhook_deliveries`, the only table that is updated in
/// this way. Call this outside a transaction, once the schema is there. Servers that are not
/// PostgreSQL but speak its protocol may have no `ctid`. In a partitioned table a `ctid` is unique
/// within one partition only.
pub(super) fn update_form(session: &mut PgSession, end: Instant) -> Result<UpdateForm, StoreError> {
    match session.statement("SELECT ctid FROM webhook_deliveries", end) {
        Ok(_) => {}
        Err(SessionError::Answered(_)) => return Ok(UpdateForm::OneByOne),
        Err(lost) => return Err(lost.into_error()),
    }
    let partitions = "SELECT COUNT(*) FROM pg_inherits WHERE inhparent = \
     CAST('webhook_deliveries' AS regclass)";
    let is_partitioned = session.number(partitions, end)? != 0;
    Ok(if is_partitioned { UpdateForm::OneByOne } else { UpdateForm::ByCtid })
}

/// `(CAST(?2 AS BYTEA)), (CAST(?3 AS BYTEA))` for two rows of one value, if one parameter comes
/// before them. In a list of rows the server cannot infer the types of parameters.
fn typed_rows<'a>(
    rows: impl Iterator<Item = &'a [Value<'a>]>,
    values_before_count: usize,
) -> String {
    let mut number = values_before_count;
    let mut placeholder = |value: &Value<'_>| {
        number += 1;
        let kind = match value {
            Value::Int(_) => "BIGINT",
            Value::Bool(_) => "BOOLEAN",
            Value::Text(_) => "TEXT",
            Value::Null | Value::Bytes(_) | Value::Id(_) => "BYTEA",
        };
        format!("CAST(?{number} AS {kind})")
    };
    rows.map(|row| format!("({})", row.iter().map(&mut placeholder).collect::<Vec<_>>().join(", ")))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The text of an update of many rows.
///
/// Each row is looked up and locked by itself, and then changed by its `ctid`. With a join of the
/// table and the list of values, a planner that expects few rows could read the whole table, or all
/// that an index finds by its first column. A row that another transaction changed meanwhile is
/// compared again once it is locked.
fn update_each_sql(update: &EachUpdate<'_>, keys: &[&[Value<'_>]]) -> String {
    let EachUpdate { table, set, set_values, columns } = update;
    let rows = typed_rows(keys.iter().copied(), set_values.len());
    let conditions: Vec<String> =
        columns.iter().map(|column| format!("t.{column} = k.{column}")).collect();
    format!(
        "UPDATE {table} SET {set} WHERE ctid = ANY(ARRAY(SELECT found.ctid FROM (VALUES {}) AS k \
         ({}), LATERAL (SELECT t.ctid FROM {table} t WHERE {} FOR UPDATE) AS found)) RETURNING {}",
        rows,
        columns.join(", "),
        conditions.join(" AND "),
        columns[0],
    )
}

/// [`Tx::rows_each`] with one join. 64 `SELECT`s in one statement, joined by `UNION ALL`, would
/// take longer to plan than to run.
pub(super) fn rows_each(
    tx: &mut dyn Tx,
    select: &str,
    first: Value<'_>,
    keys: &[Value<'_>],
) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::with_capacity(keys.len());
    for part in at_once(keys) {
        // `OFFSET 0` keeps the planner from merging the subquery into the join.
        let sql = format!(
            "SELECT found.* FROM (VALUES {}) AS k (wanted), LATERAL ({select} = k.wanted \
             OFFSET 0) AS found",
            typed_rows(part.chunks(1), 1),
        );
        rows.extend(tx.rows(&sql, &[&[first], part].concat())?);
    }
    Ok(rows)
}

/// [`Tx::update_each`] with [`UpdateForm::OneByOne`].
pub(super) fn update_one_by_one(
    tx: &mut dyn Tx,
    update: &EachUpdate<'_>,
    keys: &[Value<'_>],
) -> Result<Vec<bool>, StoreError> {
    let sql = update.sql_of_one();
    keys.chunks_exact(update.columns.len())
        .map(|key| Ok(tx.execute(&sql, &[update.set_values, key].concat())? == 1))
        .collect()
}

/// [`Tx::update_each`] with [`UpdateForm::ByCtid`].
pub(super) fn update_each(
    tx: &mut dyn Tx,
    update: &EachUpdate<'_>,
    keys: &[Value<'_>],
) -> Result<Vec<bool>, StoreError> {
    let columns_count = update.columns.len();
    let keys: Vec<&[Value<'_>]> = keys.chunks_exact(columns_count).collect();
    let mut changed = Vec::with_capacity(keys.len());
    for part in at_once(&keys) {
        let sql = update_each_sql(update, part);
        let values = [update.set_values, &part.concat()].concat();
        let mut ids = Vec::with_capacity(part.len());
        for mut row in tx.rows(&sql, &values)? {
            ids.push(row.bytes()?);
        }
        for key in part {
            let Value::Id(id) = &key[0] else {
                return Err(StoreError::Broken("a row to update has no identifier".into()));
            };
            changed.push(ids.iter().any(|changed| changed[..] == id[..]));
        }
    }
    Ok(changed)
}
