//! The rules of deliveries: how they begin, are claimed, attempted, tried again, given up and
//! purged.

use std::collections::HashSet;
use std::sync::Arc;

use super::queue_leases::{HeldDeliveries, QueueHolder, QueueLease};
use super::rows::{self, DeliveryAfterAttempt, DeliveryId, EndpointId, EventId};
use super::schedule::{self, EndpointHealth};
use super::state::{DeliveryStatus, EndpointStatus};
use super::{Endpoint, follow_health};
use crate::chaos::{self, events::WatchedDelivery};
use crate::events::EVENT_KEPT_SECONDS;
use crate::events::rows::EventRow;
use crate::kernel::{Id, Now, Scope, StoreError};
use crate::store::{Tx, meta};

/// How long a claimed delivery belongs to the worker that claimed it, in milliseconds. If the
/// worker's node crashes, another node sends the delivery when this time is over.
/// docs/postgresql.md promises that within 60 s, so the other node has 15 s to find it.
pub const LEASE_MILLISECONDS: i64 = 45_000;
/// The most deliveries that become `recorded` at once when their endpoint is disabled. All others
/// become `recorded` when they are due.
const RECORDED_AT_ONCE_MAX: i64 = 5_000;
/// How long deliveries are kept with their attempts, in seconds: as long as events.
pub const DELIVERY_KEPT_SECONDS: i64 = EVENT_KEPT_SECONDS;
/// The most endpoints that one purge visits.
const ENDPOINTS_PURGED_MAX: i64 = 64;
/// The row of `meta` that holds the endpoint after which the next purge continues.
const PURGED_TO: &str = "webhook_purge_after";

/// One event for one endpoint.
pub struct Delivery {
    pub endpoint_id: EndpointId,
    pub id: DeliveryId,
    pub event_id: EventId,
    pub status: DeliveryStatus,
    pub schedule_start_milliseconds: i64,
    /// The index of the next attempt in `schedule::STEPS_SECONDS`.
    pub step: i64,
    /// Recorded attempts, over all schedules.
    pub attempts_count: i64,
    /// When the next attempt is due, by the store's clock; `None` if none is to come. While the
    /// delivery is claimed, this is the end of the claim. While the delivery is sent under a lease
    /// of its queue, this stays as it was.
    pub due_milliseconds: Option<i64>,
    /// When the event was created, in Unix seconds, business time.
    pub created: i64,
}

/// How many of a delivery's newest attempts are kept and shown: as many as two whole schedules
/// have. Without a limit, a caller that replays a range again and again would fill the disk.
pub const ATTEMPTS_KEPT_MAX: i64 = 28;

/// One attempt, as it is stored.
pub struct AttemptRow {
    pub number: i64,
    /// Unix seconds of the store's clock: the attempt's `Webhook-Timestamp`.
    pub attempted_at: i64,
    pub http_status: Option<i64>,
    pub duration_milliseconds: i64,
    pub error: Option<String>,
    /// The beginning of the answer's body.
    pub answer: String,
}

/// The row of an endpoint's queue.
pub struct EndpointQueue {
    pub scope: Scope,
    pub health: EndpointHealth,
    /// The endpoint is deleted.
    pub is_closed: bool,
    /// The lease of the node that sends the endpoint's backlog. It may have ended.
    pub lease: Option<QueueLease>,
}

/// A delivery that is to be sent. It has no `event` if the event has expired.
#[derive(Clone)]
pub struct DueDelivery {
    pub id: DeliveryId,
    pub schedule_start_milliseconds: i64,
    pub step: i64,
    pub attempts_count: i64,
    pub due_milliseconds: i64,
    pub event: Option<Arc<EventRow>>,
    /// If a chaos profile watches the event: what the attempt must know of the profile.
    pub watched: Option<WatchedDelivery>,
}

/// An attempt that ended, and what its delivery looked like when the attempt began.
#[derive(Clone)]
pub struct FinishedAttempt {
    pub delivery_id: DeliveryId,
    pub schedule_start_milliseconds: i64,
    pub step: i64,
    /// Attempts before this one.
    pub attempts_count: i64,
    /// The due time in the delivery's row during the attempt. For a claimed delivery, that is the
    /// end of the claim. For one that was taken under a lease of its queue, it is the time at which
    /// it was due. If the row has another due time when the attempt is recorded, the claim or the
    /// lease was lost.
    pub due_milliseconds: i64,
    /// The node that took the delivery under a lease of the queue; `None` if it was claimed.
    pub holder: Option<QueueHolder>,
    pub attempted_milliseconds: i64,
    pub is_success: bool,
    pub http_status: Option<u16>,
    pub error: Option<&'static str>,
    pub duration_milliseconds: u32,
    pub answer: String,
    pub retry_after_seconds: Option<u64>,
    pub watched: Option<WatchedDelivery>,
    /// The HTTP status of the receiver's answer to what a chaos profile sent beside the attempt.
    pub attacked_http_status: Option<u16>,
}

/// A new delivery: due at once if `status` is `Pending`, otherwise never.
pub fn new_delivery(
    now: &mut Now,
    endpoint_id: EndpointId,
    event_id: EventId,
    created: i64,
    status: DeliveryStatus,
) -> Delivery {
    let start_milliseconds = now.instant_milliseconds();
    Delivery {
        endpoint_id,
        id: now.mint(),
        event_id,
        status,
        schedule_start_milliseconds: start_milliseconds,
        step: 0,
        attempts_count: 0,
        due_milliseconds: (status == DeliveryStatus::Pending).then_some(start_milliseconds),
        created,
    }
}

/// A new delivery that is due `delay_milliseconds` from now, so that newer deliveries can overtake
/// it.
pub fn new_delayed_delivery(
    now: &mut Now,
    endpoint_id: EndpointId,
    event: &EventRow,
    delay_milliseconds: i64,
) -> Delivery {
    let status = DeliveryStatus::Pending;
    let mut delivery = new_delivery(now, endpoint_id, event.id, event.created, status);
    let due_milliseconds = delivery.schedule_start_milliseconds + delay_milliseconds;
    delivery.schedule_start_milliseconds = due_milliseconds;
    delivery.due_milliseconds = Some(due_milliseconds);
    delivery
}

/// A new delivery that is claimed from the beginning: the worker sends it as soon as the
/// transaction has committed. Answers the row to write, and what to hand over to the worker.
pub fn new_claimed_delivery(
    now: &mut Now,
    endpoint_id: EndpointId,
    event: &Arc<EventRow>,
) -> (Delivery, DueDelivery) {
    let status = DeliveryStatus::Pending;
    let mut delivery = new_delivery(now, endpoint_id, event.id, event.created, status);
    let start_milliseconds = delivery.schedule_start_milliseconds;
    delivery.due_milliseconds = Some(start_milliseconds + LEASE_MILLISECONDS);
    let due = DueDelivery {
        id: delivery.id,
        schedule_start_milliseconds: start_milliseconds,
        step: delivery.step,
        attempts_count: delivery.attempts_count,
        due_milliseconds: start_milliseconds,
        event: Some(event.clone()),
        watched: None,
    };
    (delivery, due)
}

/// Claims due deliveries of one endpoint until `lease_ends_milliseconds`. A delivery whose due time
/// has changed since it was read is not claimed. Answers for each delivery whether it was claimed.
/// `is_drained` says that no other deliveries are due. Then the queue becomes due with the earliest
/// waiting delivery, or when these claims end, whichever comes first.
pub fn claim(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    due: &[DueDelivery],
    is_drained: bool,
    lease_ends_milliseconds: i64,
) -> Result<Vec<bool>, StoreError> {
    let no_held = (&HeldDeliveries::new(), None);
    claim_beside_held(tx, endpoint_id, due, is_drained.then_some(no_held), lease_ends_milliseconds)
}

/// Like [`claim`], for a node that may hold other deliveries under a lease of the queue. `drained`
/// is `None` while further deliveries are due. Otherwise it contains the deliveries that the node
/// holds, and the end of the lease if the node has the lease.
pub fn claim_beside_held(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    due: &[DueDelivery],
    drained: Option<(&HeldDeliveries, Option<i64>)>,
    lease_ends_milliseconds: i64,
) -> Result<Vec<bool>, StoreError> {
    let read = due.iter().map(|delivery| (delivery.id, delivery.due_milliseconds));
    let claimed = rows::deliveries_move(tx, endpoint_id, read, lease_ends_milliseconds)?;
    match drained {
        Some((held, Some(ends_milliseconds))) if !held.is_empty() => {
            rows::queue_recompute_due_except(tx, endpoint_id, held, ends_milliseconds)?;
        }
        Some(_) => rows::queue_recompute_due(tx, endpoint_id)?,
        None => {}
    }
    Ok(claimed)
}

/// Gives back deliveries that were claimed and not attempted, so that they are due as before the
/// claim. `claimed` has each with the end of its claim. Does nothing for a deleted endpoint.
pub fn release(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    claimed: &[(DueDelivery, i64)],
) -> Result<(), StoreError> {
    rows::queue_lock(tx, endpoint_id)?;
    if rows::queue(tx, endpoint_id)?.is_none_or(|queue| queue.is_closed) {
        return Ok(());
    }
    for (delivery, lease_ends_milliseconds) in claimed {
        let read = std::iter::once((delivery.id, *lease_ends_milliseconds));
        rows::deliveries_move(tx, endpoint_id, read, delivery.due_milliseconds)?;
        rows::queue_set_due_by(tx, endpoint_id, delivery.due_milliseconds)?;
    }
    Ok(())
}

/// Makes due at once those deliveries that an earlier process had claimed for their first attempt;
/// answers how many. Call it only at the start of the only server of a store. Claimed retries wait
/// until their claims end, and deliveries that a chaos profile delays keep their time.
pub fn release_abandoned(tx: &mut dyn Tx, now: &Now) -> Result<u64, StoreError> {
    rows::first_attempts_release(tx, now.instant_milliseconds())
}

/// Ends deliveries without an attempt, if they still have the due time that was read.
pub fn end_unsent(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    due: &[DueDelivery],
    status: DeliveryStatus,
) -> Result<(), StoreError> {
    let read = due.iter().map(|delivery| (delivery.id, delivery.due_milliseconds));
    rows::deliveries_end(tx, endpoint_id, read, status, 0).map(drop)
}

/// Whether a due delivery is only kept for a replay: the delivery's schedule began before its
/// endpoint was disabled.
pub fn is_recorded_only(endpoint: &Endpoint, delivery: &DueDelivery) -> bool {
    endpoint
        .disabled_milliseconds
        .is_some_and(|disabled| delivery.schedule_start_milliseconds <= disabled)
}

/// Records attempts of one endpoint, in the order in which they ended, and their effects on the
/// deliveries and on the endpoint. An attempt whose claim or lease was lost is not recorded: a
/// replay has begun the delivery again, another node has the delivery, or the endpoint was deleted
/// or disabled. If it was disabled, the delivery stays `recorded`, even if the receiver took the
/// event.
pub fn write_attempts(
    tx: &mut dyn Tx,
    now: &mut Now,
    endpoint_id: EndpointId,
    attempts: &[&FinishedAttempt],
) -> Result<(), StoreError> {
    rows::prefetch_queue(tx, endpoint_id)?;
    rows::queue_lock(tx, endpoint_id)?;
    let Some(queue) = rows::queue(tx, endpoint_id)?.filter(|queue| !queue.is_closed) else {
        return Ok(());
    };
    // Another node may have taken the lease of the queue meanwhile. Then the other node sends again
    // whatever this node has not recorded.
    let holder = queue.lease.map(|lease| lease.holder);
    let has_lease =
        |attempt: &&&FinishedAttempt| attempt.holder.is_none_or(|own| Some(own) == holder);
    let attempts: Vec<&FinishedAttempt> = attempts.iter().filter(has_lease).copied().collect();
    let mut health = queue.health;
    let mut due_first_milliseconds: Option<i64> = None;
    let mut attempt_rows = Vec::with_capacity(attempts.len());
    // Successes in a row are written together, unless two of them are of one delivery. That happens
    // if a replay began the delivery again during an attempt; only one of the two attempts still
    // has its lease. A failure is always written alone.
    let runs = attempts.chunk_by(|a, b| a.is_success && b.is_success).flat_map(|run| {
        let ids: HashSet<DeliveryId> = run.iter().map(|attempt| attempt.delivery_id).collect();
        run.chunks(if ids.len() == run.len() { run.len() } else { 1 })
    });
    for run in runs {
        let read = run.iter().map(|attempt| (attempt.delivery_id, attempt.due_milliseconds));
        let (had_lease, next) = match run {
            [attempt] if !attempt.is_success => {
                let random = u64::from_be_bytes(now.random_bytes());
                let outcome = after_failure(attempt, now.instant_milliseconds(), random);
                let (id, due_milliseconds) = (attempt.delivery_id, attempt.due_milliseconds);
                let had_lease =
                    rows::delivery_attempted(tx, endpoint_id, id, due_milliseconds, &outcome)?;
                (vec![had_lease], outcome.due_milliseconds)
            }
            _ => {
                let status = DeliveryStatus::Succeeded;
                (rows::deliveries_end(tx, endpoint_id, read, status, 1)?, None)
            }
        };
        let counted = run.iter().zip(had_lease).filter(|(_, had_lease)| *had_lease);
        for (attempt, _) in counted {
            attempt_rows.push((attempt.delivery_id, attempt_row(attempt)));
            if let Some(watched) = attempt.watched {
                let http_status = attempt.http_status.map_or(0, i64::from);
                let attacked = attempt.attacked_http_status.map(i64::from);
                let duration = i64::from(attempt.duration_milliseconds);
                chaos::events::delivered(tx, now, watched, http_status, attacked, duration)?;
            }
            due_first_milliseconds = due_first_milliseconds.into_iter().chain(next).min();
            // Health is judged after each attempt, because a success between failures ends
            // `failing` and makes the count of failures begin again.
            let before = health;
            health = if attempt.is_success {
                EndpointHealth::default()
            } else {
                health.with_failure(attempt.attempted_milliseconds)
            };
            if follow(tx, now, queue.scope, endpoint_id, before, health)? == HealthChange::Disabled
            {
                due_first_milliseconds = None;
            }
        }
    }
    rows::attempts_insert(tx, endpoint_id, &attempt_rows)?;
    for (delivery_id, attempt) in &attempt_rows {
        if attempt.number > ATTEMPTS_KEPT_MAX {
            let to = attempt.number - ATTEMPTS_KEPT_MAX;
            rows::attempts_remove(tx, endpoint_id, *delivery_id, to)?;
        }
    }
    if health != queue.health {
        rows::queue_set_health(tx, endpoint_id, health)?;
    }
    if let Some(due_milliseconds) = due_first_milliseconds {
        rows::queue_set_due_by(tx, endpoint_id, due_milliseconds)?;
    }
    Ok(())
}

fn after_failure(
    attempt: &FinishedAttempt,
    now_milliseconds: i64,
    random: u64,
) -> DeliveryAfterAttempt {
    let attempts_count = attempt.attempts_count + 1;
    match schedule::next_attempt(
        attempt.schedule_start_milliseconds,
        attempt.step,
        now_milliseconds,
        attempt.retry_after_seconds,
        random,
    ) {
        None => DeliveryAfterAttempt {
            status: DeliveryStatus::Failed,
            step: attempt.step,
            attempts_count,
            due_milliseconds: None,
        },
        Some(next) => DeliveryAfterAttempt {
            status: DeliveryStatus::Pending,
            step: next.step,
            attempts_count,
            due_milliseconds: Some(next.due_milliseconds),
        },
    }
}

fn attempt_row(attempt: &FinishedAttempt) -> AttemptRow {
    AttemptRow {
        number: attempt.attempts_count + 1,
        attempted_at: attempt.attempted_milliseconds.div_euclid(1_000),
        http_status: attempt.http_status.map(i64::from),
        duration_milliseconds: i64::from(attempt.duration_milliseconds),
        error: attempt.error.map(str::to_owned),
        answer: attempt.answer.clone(),
    }
}

/// Whether the endpoint was disabled just now. If it was, up to [`RECORDED_AT_ONCE_MAX`] of its
/// waiting deliveries have become `recorded`, and its queue is due with the first of the others.
#[derive(PartialEq, Eq)]
enum HealthChange {
    Disabled,
    Otherwise,
}

/// Moves the endpoint to the status that its health calls for. Reads the endpoint's row only if the
/// status can change: at the first success after failures, and once the failures have lasted long
/// enough for `failing`.
fn follow(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    endpoint_id: EndpointId,
    before: EndpointHealth,
    health: EndpointHealth,
) -> Result<HealthChange, StoreError> {
    let judged = health.judged(now.instant_milliseconds());
    let is_recovery = before.failures_count > 0 && health.failures_count == 0;
    if judged == EndpointStatus::Enabled && !is_recovery {
        return Ok(HealthChange::Otherwise);
    }
    let Some(mut endpoint) = rows::find(tx, scope, endpoint_id)? else {
        return Ok(HealthChange::Otherwise);
    };
    let was_disabled = endpoint.status == EndpointStatus::Disabled;
    follow_health(tx, now, &mut endpoint, judged)?;
    if was_disabled || endpoint.status != EndpointStatus::Disabled {
        return Ok(HealthChange::Otherwise);
    }
    rows::deliveries_record(tx, endpoint_id, RECORDED_AT_ONCE_MAX)?;
    rows::queue_recompute_due(tx, endpoint_id)?;
    Ok(HealthChange::Disabled)
}

/// Removes up to `rows_max` expired deliveries with their attempts; answers how many deliveries.
/// One call visits at most `ENDPOINTS_PURGED_MAX` endpoints. The next call continues after them.
pub fn purge(tx: &mut dyn Tx, now: &Now, rows_max: i64) -> Result<u64, StoreError> {
    let kept_since_milliseconds = (now.instant() - DELIVERY_KEPT_SECONDS) * 1_000;
    let below = Id::lowest_at(kept_since_milliseconds);
    let round_start = Id::from_u128(0);
    let purged_to =
        meta::read(tx, PURGED_TO)?.and_then(|bytes| Id::from_bytes(&bytes)).unwrap_or(round_start);
    let endpoint_ids = rows::queues_after(tx, purged_to, ENDPOINTS_PURGED_MAX)?;
    let is_round_end = (endpoint_ids.len() as i64) < ENDPOINTS_PURGED_MAX;
    let mut removed = 0;
    let mut next = purged_to;
    for endpoint_id in &endpoint_ids {
        removed += rows::deliveries_purge(tx, *endpoint_id, below, rows_max - removed as i64)?;
        if removed as i64 >= rows_max {
            // This endpoint may have more, so the next call begins with it again.
            break;
        }
        next = *endpoint_id;
    }
    if is_round_end && (removed as i64) < rows_max {
        next = round_start;
    }
    if next != purged_to {
        meta::write(tx, PURGED_TO, &next.to_bytes())?;
    }
    Ok(removed)
}

/// Removes up to `rows_max` deliveries of deleted endpoints with their attempts, and the queues
/// that are empty then. Visits at most `ENDPOINTS_PURGED_MAX` endpoints. Answers how many
/// deliveries, or `rows_max` if more endpoints may wait. Call it as the last step of a transaction:
/// until the commit, a worker that records an attempt to such an endpoint has to wait.
pub fn purge_deleted(tx: &mut dyn Tx, rows_max: i64) -> Result<u64, StoreError> {
    let mut removed = 0;
    let mut emptied = Vec::new();
    let mut last = Id::from_u128(0);
    let mut visited_count = 0;
    while (removed as i64) < rows_max {
        if visited_count == ENDPOINTS_PURGED_MAX {
            removed = rows_max.unsigned_abs();
            break;
        }
        visited_count += 1;
        let Some(endpoint_id) = rows::next_closed_queue(tx, last)? else { break };
        let rows_left = rows_max - removed as i64;
        let removed_now =
            rows::deliveries_purge(tx, endpoint_id, Id::from_u128(u128::MAX), rows_left)?;
        removed += removed_now;
        if (removed_now as i64) < rows_left {
            emptied.push(endpoint_id);
        }
        last = endpoint_id;
    }
    for endpoint_id in emptied {
        rows::queue_remove(tx, endpoint_id)?;
    }
    Ok(removed)
}

#[cfg(test)]
#[path = "deliveries_test.rs"]
mod tests;
