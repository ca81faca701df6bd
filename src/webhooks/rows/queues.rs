//! The rows of queues, one for each endpoint: when its next delivery is due, its failures, the
//! lease of its backlog, and the progress of its last replay (`replays.rs`). Rows are short,
//! because the delivery worker writes them often.

use std::time::Duration;

use super::EndpointId;
use crate::kernel::{Scope, StoreError};
use crate::store::{self, Row, Tx};
use crate::values;
use crate::webhooks::deliveries::EndpointQueue;
use crate::webhooks::queue_leases::{HeldDeliveries, QueueHolder, QueueLease};
use crate::webhooks::schedule::EndpointHealth;

pub fn queue_insert(tx: &mut dyn Tx, scope: Scope, id: EndpointId) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO webhook_queues (endpoint_id, scope, due_milliseconds, \
         first_failure_milliseconds, failures_count, closed) \
         VALUES (?1, ?2, NULL, NULL, 0, ?3)",
        values![id, scope, false],
    )
}

const QUEUE: &str = "SELECT scope, first_failure_milliseconds, failures_count, closed, leased_by, \
                     leased_until_milliseconds FROM webhook_queues WHERE endpoint_id = ?1";

/// Announces the query of [`queue`], so that the store sends it with the next statement.
pub fn prefetch_queue(tx: &mut dyn Tx, id: EndpointId) -> Result<(), StoreError> {
    tx.prefetch(QUEUE, values![id])
}

pub fn queue(tx: &mut dyn Tx, id: EndpointId) -> Result<Option<EndpointQueue>, StoreError> {
    let Some(mut row) = tx.row(QUEUE, values![id])? else { return Ok(None) };
    Ok(Some(EndpointQueue {
        scope: row.scope()?,
        health: EndpointHealth {
            first_failure_milliseconds: row.int_or_null()?,
            failures_count: row.int()?,
        },
        is_closed: row.bool()?,
        lease: read_lease(&mut row)?,
    }))
}

fn read_lease(row: &mut Row) -> Result<Option<QueueLease>, StoreError> {
    let (holder, ends) = (row.array_or_null()?, row.int_or_null()?);
    Ok(holder.zip(ends).map(|(holder, ends_milliseconds)| QueueLease { holder, ends_milliseconds }))
}

/// Locks an endpoint's queue until the commit. So what this transaction reads of the queue from now
/// on stays true until then. A store with one writer needs no lock.
pub fn queue_lock(tx: &mut dyn Tx, id: EndpointId) -> Result<(), StoreError> {
    if tx.is_shared() {
        tx.execute(
            "UPDATE webhook_queues SET due_milliseconds = due_milliseconds WHERE endpoint_id = ?1",
            values![id],
        )?;
    }
    Ok(())
}

/// Stores an endpoint's failures since its last success.
pub fn queue_set_health(
    tx: &mut dyn Tx,
    id: EndpointId,
    health: EndpointHealth,
) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE webhook_queues SET first_failure_milliseconds = ?2, failures_count = ?3 WHERE \
         endpoint_id = ?1",
        values![id, health.first_failure_milliseconds, health.failures_count],
    )
}

/// Sets an endpoint's due time to `due_milliseconds`, unless it is earlier already. On a shared
/// store another transaction may have deleted the endpoint meanwhile. Then this is a conflict: the
/// transaction runs again, and finds that the endpoint is gone.
pub fn queue_set_due_by(
    tx: &mut dyn Tx,
    id: EndpointId,
    due_milliseconds: i64,
) -> Result<(), StoreError> {
    if tx.is_shared() {
        // The update locks the row even if the due time stays. Another transaction may be about to
        // write that nothing is due, because it cannot see this transaction's delivery yet.
        let sql = "UPDATE webhook_queues SET due_milliseconds = CASE WHEN due_milliseconds <= ?2 \
         THEN due_milliseconds ELSE ?2 END \
            WHERE endpoint_id = ?1 AND NOT closed";
        return tx.execute_one(sql, values![id, due_milliseconds]);
    }
    let sql = "UPDATE webhook_queues SET due_milliseconds = ?2 \
        WHERE endpoint_id = ?1 AND NOT closed AND (due_milliseconds IS NULL OR due_milliseconds > \
        ?2)";
    tx.execute(sql, values![id, due_milliseconds]).map(|_| ())
}

/// Sets an endpoint's due time to that of the delivery that is due first, or to none if no delivery
/// waits.
pub fn queue_recompute_due(tx: &mut dyn Tx, id: EndpointId) -> Result<(), StoreError> {
    if store::failpoint("queues_looked_at_first") {
        return queue_recompute_due_unlocked(tx, id);
    }
    // Lock first, then read: a statement that waited for a lock still sees other tables as they
    // were before the wait.
    queue_lock(tx, id)?;
    tx.execute(
        "UPDATE webhook_queues SET due_milliseconds = (SELECT MIN(d.due_milliseconds) FROM \
         webhook_deliveries d \
         WHERE d.endpoint_id = ?1 AND d.due_milliseconds IS NOT NULL) WHERE endpoint_id = ?1 AND \
         NOT closed",
        values![id],
    )?;
    Ok(())
}

/// Like [`queue_recompute_due`], for the node that holds deliveries under a lease of the queue. The
/// queue becomes due with the first delivery that is not in `held`, and at the latest when the
/// lease ends, because another node has to look then.
pub fn queue_recompute_due_except(
    tx: &mut dyn Tx,
    id: EndpointId,
    held: &HeldDeliveries,
    lease_ends_milliseconds: i64,
) -> Result<(), StoreError> {
    queue_lock(tx, id)?;
    let sql = "SELECT id, due_milliseconds FROM webhook_deliveries WHERE endpoint_id = ?1 AND \
     due_milliseconds IS NOT NULL ORDER BY due_milliseconds, id LIMIT ?2";
    let mut due_milliseconds = lease_ends_milliseconds;
    for mut row in tx.rows(sql, values![id, held.len() as i64 + 1])? {
        let delivery = (row.id()?, row.int()?);
        if !held.contains(&delivery) {
            due_milliseconds = due_milliseconds.min(delivery.1);
            break;
        }
    }
    let sql =
        "UPDATE webhook_queues SET due_milliseconds = ?2 WHERE endpoint_id = ?1 AND NOT closed";
    tx.execute(sql, values![id, due_milliseconds]).map(drop)
}

/// Takes the lease of a queue, unless another node has it. A lease that has ended does not count,
/// nor does one that ends later than `latest_milliseconds`: only a wrong clock can have written
/// that. Answers whether this node has the lease now.
pub fn queue_lease_take(
    tx: &mut dyn Tx,
    id: EndpointId,
    lease: QueueLease,
    now_milliseconds: i64,
    latest_milliseconds: i64,
) -> Result<bool, StoreError> {
    let sql = "UPDATE webhook_queues SET leased_by = ?2, leased_until_milliseconds = ?3 WHERE \
     endpoint_id = ?1 AND NOT closed AND (leased_by IS NULL OR leased_by = ?2 OR \
     leased_until_milliseconds <= ?4 OR leased_until_milliseconds > ?5)";
    let values =
        values![id, &lease.holder, lease.ends_milliseconds, now_milliseconds, latest_milliseconds];
    Ok(tx.execute(sql, values)? == 1)
}

/// Renews the node's lease of a queue, even if it has ended. Answers whether the node still had it:
/// another one may have taken it, or the endpoint may be deleted.
pub fn queue_lease_renew(
    tx: &mut dyn Tx,
    id: EndpointId,
    lease: QueueLease,
) -> Result<bool, StoreError> {
    let sql = "UPDATE webhook_queues SET leased_until_milliseconds = ?3 WHERE endpoint_id = ?1 AND \
     NOT closed AND leased_by = ?2";
    Ok(tx.execute(sql, values![id, &lease.holder, lease.ends_milliseconds])? == 1)
}

/// Ends the lease of a queue, if the node has it.
pub fn queue_lease_end(
    tx: &mut dyn Tx,
    id: EndpointId,
    holder: QueueHolder,
) -> Result<(), StoreError> {
    let sql = "UPDATE webhook_queues SET leased_by = NULL, leased_until_milliseconds = NULL WHERE \
     endpoint_id = ?1 AND leased_by = ?2";
    tx.execute(sql, values![id, &holder]).map(drop)
}

/// [`queue_recompute_due`] without its lock, for a failpoint: a delivery that becomes due between
/// the read and the write is forgotten.
fn queue_recompute_due_unlocked(tx: &mut dyn Tx, id: EndpointId) -> Result<(), StoreError> {
    const BETWEEN: Duration = Duration::from_millis(50);
    let sql = "SELECT MIN(due_milliseconds) FROM webhook_deliveries WHERE endpoint_id = ?1 AND \
     due_milliseconds IS NOT NULL";
    let seen = tx.row(sql, values![id])?.map(|mut row| row.int_or_null()).transpose()?.flatten();
    std::thread::sleep(BETWEEN);
    tx.execute(
        "UPDATE webhook_queues SET due_milliseconds = ?2 WHERE endpoint_id = ?1 AND NOT closed",
        values![id, seen],
    )?;
    Ok(())
}

/// Closes the queue of a deleted endpoint. Nothing in it is due any more.
pub fn queue_close(tx: &mut dyn Tx, id: EndpointId) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE webhook_queues SET due_milliseconds = NULL, closed = ?2 WHERE endpoint_id = ?1",
        values![id, true],
    )
}

/// Removes the queue of a deleted endpoint.
pub fn queue_remove(tx: &mut dyn Tx, id: EndpointId) -> Result<(), StoreError> {
    tx.execute_one("DELETE FROM webhook_queues WHERE endpoint_id = ?1 AND closed", values![id])
}

/// The next deleted endpoint after `after`, in the order of identifiers, whose queue is not removed
/// yet.
pub fn next_closed_queue(
    tx: &mut dyn Tx,
    after: EndpointId,
) -> Result<Option<EndpointId>, StoreError> {
    let sql = "SELECT endpoint_id FROM webhook_queues WHERE closed AND endpoint_id > ?1 ORDER BY \
     endpoint_id LIMIT 1";
    tx.row(sql, values![after])?.map(|mut row| row.id()).transpose()
}

/// The endpoints after `after`, in the order of their identifiers, at most `rows_max`. Deleted
/// endpoints are among them until their queues are removed.
pub fn queues_after(
    tx: &mut dyn Tx,
    after: EndpointId,
    rows_max: i64,
) -> Result<Vec<EndpointId>, StoreError> {
    let sql = "SELECT endpoint_id FROM webhook_queues WHERE endpoint_id > ?1 ORDER BY endpoint_id \
     LIMIT ?2";
    tx.rows(sql, values![after, rows_max])?.into_iter().map(|mut row| row.id()).collect()
}

/// An endpoint, and when its queue is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DueQueue {
    pub due_milliseconds: i64,
    pub endpoint_id: EndpointId,
    pub scope: Scope,
}

/// Endpoints whose due time is above one moment and at most another, the earliest first.
pub fn queues_due(
    tx: &mut dyn Tx,
    above_milliseconds: i64,
    until_milliseconds: i64,
    rows_max: i64,
) -> Result<Vec<DueQueue>, StoreError> {
    let sql = "SELECT due_milliseconds, endpoint_id, scope FROM webhook_queues WHERE \
     due_milliseconds > ?1 AND due_milliseconds <= ?2 \
        ORDER BY due_milliseconds, endpoint_id LIMIT ?3";
    tx.rows(sql, values![above_milliseconds, until_milliseconds, rows_max])?
        .into_iter()
        .map(|mut row| {
            Ok(DueQueue {
                due_milliseconds: row.int()?,
                endpoint_id: row.id()?,
                scope: row.scope()?,
            })
        })
        .collect()
}

/// Makes all waiting deliveries due earlier by `milliseconds`, because the store's clock was set
/// back by as much. Also moves the times that are compared with due times or with the clock: when
/// schedules, failures and the last replay began, when an endpoint was disabled, and when leases of
/// queues end.
pub fn make_all_due_earlier(tx: &mut dyn Tx, milliseconds: i64) -> Result<(), StoreError> {
    for sql in [
        // NULL stays NULL.
        "UPDATE webhook_queues SET due_milliseconds = due_milliseconds - ?1, \
         first_failure_milliseconds = first_failure_milliseconds - ?1, leased_until_milliseconds = \
         leased_until_milliseconds - ?1, replayed_milliseconds = replayed_milliseconds - ?1",
        "UPDATE webhook_endpoints SET disabled_milliseconds = disabled_milliseconds - ?1 WHERE \
         disabled_milliseconds IS NOT NULL",
        "UPDATE webhook_deliveries SET due_milliseconds = due_milliseconds - ?1, \
         schedule_start_milliseconds = schedule_start_milliseconds - ?1 WHERE due_milliseconds IS \
         NOT NULL",
    ] {
        tx.execute(sql, values![milliseconds])?;
    }
    Ok(())
}
