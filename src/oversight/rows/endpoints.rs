//! Webhook endpoints with their queues.

use super::live;
use crate::kernel::id::kind;
use crate::kernel::state::Status;
use crate::kernel::{Id, Mode, Scope, StoreError};
use crate::store::{Row, Tx};
use crate::values;
use crate::webhooks::state::EndpointStatus;

/// A webhook endpoint with its queue.
#[derive(Clone, Debug)]
pub struct EndpointLine {
    pub scope: Scope,
    pub id: Id<kind::WebhookEndpoint>,
    pub url: String,
    pub status: EndpointStatus,
    pub created: i64,
    /// When its next delivery is due, or was; `None` if none waits.
    pub due_milliseconds: Option<i64>,
    /// Failed attempts in a row.
    pub failures_count: i64,
}

/// Deliveries of an endpoint that wait for their next attempt, counted up to `counted_max`.
pub fn waiting_deliveries(
    tx: &mut dyn Tx,
    endpoint: Id<kind::WebhookEndpoint>,
    counted_max: i64,
) -> Result<i64, StoreError> {
    let sql = "SELECT COUNT(*) FROM (SELECT 1 AS one FROM webhook_deliveries WHERE endpoint_id = \
     ?1 AND due_milliseconds IS NOT NULL LIMIT ?2) AS waiting";
    tx.row(sql, values![endpoint, counted_max])?.map_or(Ok(0), |mut row| row.int())
}

const ENDPOINT_LINE: &str = "SELECT e.scope, e.id, e.url, e.status, e.created, \
                             q.due_milliseconds, COALESCE(q.failures_count, 0) FROM \
                             webhook_endpoints e LEFT JOIN webhook_queues q ON q.endpoint_id = \
                             e.id";

fn endpoint_line(mut row: Row) -> Result<EndpointLine, StoreError> {
    Ok(EndpointLine {
        scope: row.scope()?,
        id: row.id()?,
        url: row.text()?,
        status: row.word(EndpointStatus::parse)?,
        created: row.int()?,
        due_milliseconds: row.int_or_null()?,
        failures_count: row.int()?,
    })
}

/// Webhook endpoints of a mode.
pub fn endpoints(
    tx: &mut dyn Tx,
    mode: Mode,
    rows_max: i64,
) -> Result<Vec<EndpointLine>, StoreError> {
    let sql = format!("{ENDPOINT_LINE} WHERE e.scope % 2 = ?1 ORDER BY e.scope, e.id LIMIT ?2");
    tx.rows(&sql, values![live(mode), rows_max])?.into_iter().map(endpoint_line).collect()
}

/// How many webhook endpoints a mode has.
pub fn endpoints_count(tx: &mut dyn Tx, mode: Mode) -> Result<i64, StoreError> {
    let sql = "SELECT COUNT(*) FROM webhook_endpoints WHERE scope % 2 = ?1";
    tx.row(sql, values![live(mode)])?.map_or(Ok(0), |mut row| row.int())
}

/// All webhook endpoints of one account and mode.
pub fn endpoints_of(tx: &mut dyn Tx, scope: Scope) -> Result<Vec<EndpointLine>, StoreError> {
    let sql = format!("{ENDPOINT_LINE} WHERE e.scope = ?1 ORDER BY e.id");
    tx.rows(&sql, values![scope])?.into_iter().map(endpoint_line).collect()
}

/// Webhook endpoints of a mode that are not enabled, or whose next delivery was due before a
/// moment.
pub fn endpoints_in_trouble(
    tx: &mut dyn Tx,
    mode: Mode,
    due_before_milliseconds: i64,
    rows_max: i64,
) -> Result<Vec<EndpointLine>, StoreError> {
    let sql = format!(
        "{ENDPOINT_LINE} WHERE e.scope % 2 = ?1 AND (e.status <> 'enabled' OR q.due_milliseconds < \
         ?2) ORDER BY e.scope, e.id LIMIT ?3"
    );
    let values = values![live(mode), due_before_milliseconds, rows_max];
    tx.rows(&sql, values)?.into_iter().map(endpoint_line).collect()
}

/// Webhook endpoints of a mode with deliveries that wait, or to which a replay is under way.
pub fn endpoints_at_work(
    tx: &mut dyn Tx,
    mode: Mode,
    rows_max: i64,
) -> Result<Vec<EndpointLine>, StoreError> {
    let sql = format!(
        "{ENDPOINT_LINE} WHERE e.scope % 2 = ?1 AND (q.due_milliseconds IS NOT NULL OR EXISTS \
         (SELECT 1 FROM webhook_replays r WHERE r.endpoint_id = e.id)) ORDER BY e.scope, e.id \
         LIMIT ?2"
    );
    tx.rows(&sql, values![live(mode), rows_max])?.into_iter().map(endpoint_line).collect()
}
