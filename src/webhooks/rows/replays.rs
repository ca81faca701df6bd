//! The rows of replays of ranges that are under way: what is left of each, at most one for each
//! account and mode. The progress of an endpoint's last replay is in the row of its queue. A replay
//! begins a delivery when it gives it a new schedule; the delivery then waits to be sent.

use std::sync::LazyLock;

use super::{EndpointId, EventId};
use crate::kernel::{Scope, StoreError};
use crate::store::{Row, Tx, insert_sql};
use crate::values;
use crate::webhooks::replay::{Counted, LeftReplay};

const COLUMNS: &str = "scope, endpoint_id, next_event_id, before_event_id, created_from, \
 created_to, only_failed";

static INSERT: LazyLock<String> = LazyLock::new(|| insert_sql("webhook_replays", COLUMNS));

fn read(mut row: Row) -> Result<LeftReplay, StoreError> {
    Ok(LeftReplay {
        scope: row.scope()?,
        endpoint_id: row.id()?,
        next: row.id()?,
        before: row.id()?,
        created: row.int()?..=row.int()?,
        only_failed: row.bool()?,
    })
}

pub fn replay_left(tx: &mut dyn Tx, scope: Scope) -> Result<Option<LeftReplay>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM webhook_replays WHERE scope = ?1");
    tx.row(&sql, values![scope])?.map(read).transpose()
}

/// The accounts and modes with a replay under way.
pub fn replay_scopes(tx: &mut dyn Tx) -> Result<Vec<Scope>, StoreError> {
    let sql = "SELECT scope FROM webhook_replays ORDER BY scope";
    tx.rows(sql, &[])?.into_iter().map(|mut row| row.scope()).collect()
}

pub fn replay_insert(tx: &mut dyn Tx, left: &LeftReplay) -> Result<(), StoreError> {
    tx.execute_one(
        &INSERT,
        values![
            left.scope,
            left.endpoint_id,
            left.next,
            left.before,
            *left.created.start(),
            *left.created.end(),
            left.only_failed,
        ],
    )
}

/// Writes where a replay's next part begins. It is a conflict if the stored position is not `from`.
pub fn replay_move(tx: &mut dyn Tx, left: &LeftReplay, from: EventId) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE webhook_replays SET next_event_id = ?4 WHERE scope = ?1 AND endpoint_id = ?2 AND \
         next_event_id = ?3",
        values![left.scope, left.endpoint_id, from, left.next],
    )
}

/// Ends a replay. It is a conflict if the stored position is not `from`.
pub fn replay_end(tx: &mut dyn Tx, left: &LeftReplay, from: EventId) -> Result<(), StoreError> {
    tx.execute_one(
        "DELETE FROM webhook_replays WHERE scope = ?1 AND endpoint_id = ?2 AND next_event_id = ?3",
        values![left.scope, left.endpoint_id, from],
    )
}

/// Ends the replay to an endpoint that is being deleted, if there is one.
pub fn replay_drop(tx: &mut dyn Tx, scope: Scope, id: EndpointId) -> Result<(), StoreError> {
    let sql = "DELETE FROM webhook_replays WHERE scope = ?1 AND endpoint_id = ?2";
    tx.execute(sql, values![scope, id]).map(|_| ())
}

/// Records that a replay to an endpoint began, how many deliveries it has in all (`counted`), and
/// how many of them have begun.
pub fn replay_note_range(
    tx: &mut dyn Tx,
    id: EndpointId,
    at_milliseconds: i64,
    counted: &Counted,
    begun_count: u64,
) -> Result<(), StoreError> {
    // For a deleted endpoint this changes no row.
    tx.execute(
        "UPDATE webhook_queues SET replayed_milliseconds = ?2, replayed_before_event_id = ?3, \
         replayed_count = ?4, replayed_begun_count = ?5 WHERE endpoint_id = ?1 AND NOT closed",
        values![
            id,
            at_milliseconds,
            counted.before,
            saturated(counted.deliveries_count),
            saturated(begun_count)
        ],
    )
    .map(|_| ())
}

/// Records that more deliveries of a range have begun.
pub fn replay_note_more(
    tx: &mut dyn Tx,
    id: EndpointId,
    begun_count: u64,
) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE webhook_queues SET replayed_begun_count = replayed_begun_count + ?2 WHERE \
         endpoint_id = ?1 AND NOT closed",
        values![id, saturated(begun_count)],
    )
    .map(|_| ())
}

/// Records that the delivery of one event begins, again or for the first time. It counts as part of
/// the endpoint's last replay if that is a range still under way, or began in the same millisecond.
/// Otherwise it is a replay of its own.
pub fn replay_note_one(
    tx: &mut dyn Tx,
    id: EndpointId,
    at_milliseconds: i64,
    before: EventId,
) -> Result<(), StoreError> {
    let added = tx.execute(
        "UPDATE webhook_queues SET replayed_count = replayed_count + 1, replayed_begun_count = \
         replayed_begun_count + 1, replayed_before_event_id = CASE WHEN replayed_before_event_id \
         > ?3 THEN replayed_before_event_id ELSE ?3 END WHERE endpoint_id = ?1 AND NOT closed AND \
         (replayed_milliseconds = ?2 OR EXISTS (SELECT 1 FROM webhook_replays r WHERE \
         r.endpoint_id = ?1))",
        values![id, at_milliseconds, before],
    )?;
    if added > 0 {
        return Ok(());
    }
    replay_note_range(tx, id, at_milliseconds, &Counted { deliveries_count: 1, before }, 1)
}

fn saturated(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Endpoints to which a replay of a range is under way.
pub fn replay_endpoints(tx: &mut dyn Tx) -> Result<Vec<EndpointId>, StoreError> {
    let rows = tx.rows("SELECT endpoint_id FROM webhook_replays", &[])?;
    rows.into_iter().map(|mut row| row.id()).collect()
}

/// The progress of the last replay to an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayProgress {
    pub began_milliseconds: i64,
    /// How many of the deliveries that the replay has begun no longer wait: they succeeded or
    /// failed.
    pub done_count: i64,
    /// How many deliveries the replay has in all.
    pub count: i64,
}

/// The progress of the last replay to an endpoint. `None` if there was no replay, or if at least
/// `waiting_max` deliveries wait, because counting them would take too long.
pub fn replay_progress(
    tx: &mut dyn Tx,
    id: EndpointId,
    waiting_max: i64,
) -> Result<Option<ReplayProgress>, StoreError> {
    let row = tx.row(
        "SELECT replayed_milliseconds, replayed_before_event_id, replayed_count, \
         replayed_begun_count, (SELECT COUNT(*) FROM webhook_replays r WHERE r.endpoint_id = \
         q.endpoint_id) FROM webhook_queues q WHERE endpoint_id = ?1 AND replayed_before_event_id \
         IS NOT NULL",
        values![id],
    )?;
    let Some(mut row) = row else { return Ok(None) };
    let (began_milliseconds, before): (i64, EventId) = (row.int()?, row.id()?);
    let (counted, begun, under_way) = (row.int()?, row.int()?, row.int()?);
    // A waiting delivery belongs to the replay if its schedule did not begin before the replay, and
    // its event is not later than those that were counted.
    let waiting = tx.row(
        "SELECT COUNT(*), COUNT(CASE WHEN start >= ?2 AND event_id < ?3 THEN 1 END) FROM (SELECT \
         schedule_start_milliseconds AS start, event_id FROM webhook_deliveries WHERE endpoint_id \
         = ?1 AND due_milliseconds IS NOT NULL LIMIT ?4) AS waiting",
        values![id, began_milliseconds, before, waiting_max],
    )?;
    let Some(mut waiting) = waiting else { return Ok(None) };
    let (waiting, left) = (waiting.int()?, waiting.int()?);
    if waiting >= waiting_max {
        return Ok(None);
    }
    // By the end, fewer deliveries may have begun than were counted: events may have been purged
    // meanwhile, for example.
    let count = if under_way > 0 { counted.max(begun) } else { begun };
    let done_count = (begun - left).max(0);
    Ok(Some(ReplayProgress { began_milliseconds, done_count, count }))
}
