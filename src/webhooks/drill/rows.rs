//! The rows of drills.

use super::{Drill, DrillCheck, DrillStatus};
use crate::events::rows::EventRow;
use crate::kernel::{Scope, StoreError};
use crate::store::{self, Row, Tx};
use crate::values;
use crate::webhooks::rows::EndpointId;

const COLUMNS: &str =
    "scope, endpoint_id, status, report, lease_milliseconds, created, completed_at";

fn read(mut row: Row) -> Result<Drill, StoreError> {
    Ok(Drill {
        scope: row.scope()?,
        endpoint_id: row.id()?,
        status: row.word(DrillStatus::parse)?,
        checks: serde_json::from_str(&row.text()?)
            .map_err(|_| StoreError::Broken("a drill's report cannot be read".into()))?,
        lease_ends_milliseconds: row.int()?,
        created: row.int()?,
        completed_at: row.int_or_null()?,
    })
}

fn report_text(checks: &[DrillCheck]) -> Result<String, StoreError> {
    serde_json::to_string(checks).map_err(|error| StoreError::Broken(error.to_string()))
}

pub fn find(tx: &mut dyn Tx, scope: Scope, id: EndpointId) -> Result<Option<Drill>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM webhook_drills WHERE scope = ?1 AND endpoint_id = ?2");
    tx.row(&sql, values![scope, id])?.map(read).transpose()
}

pub fn insert(tx: &mut dyn Tx, drill: &Drill) -> Result<(), StoreError> {
    let report = report_text(&drill.checks)?;
    tx.execute_one(
        &store::insert_sql("webhook_drills", COLUMNS),
        values![
            drill.scope,
            drill.endpoint_id,
            drill.status.as_str(),
            &report,
            drill.lease_ends_milliseconds,
            drill.created,
            drill.completed_at
        ],
    )
}

pub fn remove(tx: &mut dyn Tx, scope: Scope, id: EndpointId) -> Result<(), StoreError> {
    let sql = "DELETE FROM webhook_drills WHERE scope = ?1 AND endpoint_id = ?2";
    tx.execute(sql, values![scope, id]).map(|_| ())
}

/// Drills that are to be run: no worker has claimed them yet, or the claim has ended.
pub fn due(
    tx: &mut dyn Tx,
    now_milliseconds: i64,
    rows_max: i64,
) -> Result<Vec<Drill>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM webhook_drills WHERE status = 'running' AND lease_milliseconds <= \
         ?1 ORDER BY endpoint_id LIMIT ?2"
    );
    tx.rows(&sql, values![now_milliseconds, rows_max])?.into_iter().map(read).collect()
}

/// Ends the claim of every running drill.
pub fn release(tx: &mut dyn Tx) -> Result<(), StoreError> {
    let sql = "UPDATE webhook_drills SET lease_milliseconds = 0 WHERE status = 'running'";
    tx.execute(sql, &[]).map(|_| ())
}

/// Claims a drill until `new_end_milliseconds`, if it is still running and its last claim ends at
/// `old_end_milliseconds`. Answers whether it was claimed.
pub fn claim(
    tx: &mut dyn Tx,
    scope: Scope,
    id: EndpointId,
    old_end_milliseconds: i64,
    new_end_milliseconds: i64,
) -> Result<bool, StoreError> {
    let sql = "UPDATE webhook_drills SET lease_milliseconds = ?4 WHERE scope = ?1 AND endpoint_id \
               = ?2 AND lease_milliseconds = ?3 AND status = 'running'";
    Ok(tx.execute(sql, values![scope, id, old_end_milliseconds, new_end_milliseconds])? == 1)
}

/// Stores the report of a drill. Does nothing if the endpoint was deleted meanwhile.
pub fn complete(
    tx: &mut dyn Tx,
    scope: Scope,
    id: EndpointId,
    checks: &[DrillCheck],
    completed_at: i64,
) -> Result<(), StoreError> {
    let report = report_text(checks)?;
    let sql = "UPDATE webhook_drills SET status = 'completed', report = ?3, completed_at = ?4 \
               WHERE scope = ?1 AND endpoint_id = ?2 AND status = 'running'";
    tx.execute(sql, values![scope, id, &report, completed_at]).map(|_| ())
}

/// The latest events of an account, oldest first.
pub fn latest_events(
    tx: &mut dyn Tx,
    scope: Scope,
    count: i64,
) -> Result<Vec<EventRow>, StoreError> {
    let mut events = crate::events::rows::latest(tx, scope, count)?;
    events.reverse();
    Ok(events)
}
