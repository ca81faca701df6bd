//! What becomes of deliveries: they are leased, attempted, tried again, given up, replayed and
//! purged.

use std::sync::Arc;

use super::rows::{self, DeliveryId, EndpointId, EventId, Settled};
use super::schedule::{self, Health};
use super::state::{DeliveryStatus, EndpointStatus};
use super::{Endpoint, follow_health};
use crate::events::EVENT_KEPT_SECONDS;
use crate::events::rows::EventRow;
use crate::kernel::{Code, Id, Now, OperationError, Refusal, RefusalEntry, Scope, StoreError};
use crate::store::{Signal, Tx, migrate};

/// How long a delivery that is being attempted belongs to the worker that took it, in milliseconds:
/// after a crash it is sent again this much later. What a dead worker held is promised to be taken
/// over within 60 s, on a busy machine too.
pub const LEASE_MILLISECONDS: i64 = 45_000;
/// Events, or deliveries, that one replay goes through.
pub const REPLAYED_MAX: i64 = 10_000;
/// How far an event's `created` and its identifier may be apart in one account's time: the clocks
/// of two nodes, and the way to the sequencer.
const CLOCKS_APART_SECONDS_MAX: i64 = 600;
/// Deliveries that become `recorded` in the moment in which their endpoint is disabled; the others
/// follow when due.
const RECORDED_AT_ONCE_MAX: i64 = 5_000;
/// How long deliveries and attempts are kept, in seconds: as long as the events they are about.
pub const DELIVERY_KEPT_SECONDS: i64 = EVENT_KEPT_SECONDS;
/// Endpoints that one purge goes through.
const ENDPOINTS_PURGED_MAX: i64 = 64;
/// Where the next purge goes on.
const PURGE_PLACE: &str = "webhook_purge_after";

/// One event for one endpoint.
pub struct Delivery {
    pub endpoint_id: EndpointId,
    pub id: DeliveryId,
    pub event_id: EventId,
    pub status: DeliveryStatus,
    pub schedule_start_milliseconds: i64,
    /// The place of the next attempt in `schedule::STEPS_SECONDS`.
    pub step: i64,
    /// Attempts ever made, over all schedules.
    pub attempts_count: i64,
    /// When it is attempted next, or until when the attempt under way is awaited; store's clock.
    pub due_milliseconds: Option<i64>,
    pub created: i64,
}

/// One attempt, as it is kept.
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

/// What deliveries change of an endpoint.
pub struct Queue {
    pub scope: Scope,
    pub health: Health,
    /// The endpoint is deleted.
    pub is_closed: bool,
}

/// A delivery that is due, with its event unless that is past its time.
#[derive(Clone)]
pub struct DueDelivery {
    pub id: DeliveryId,
    pub schedule_start_milliseconds: i64,
    pub step: i64,
    pub attempts_count: i64,
    pub due_milliseconds: i64,
    pub event: Option<Arc<EventRow>>,
}

/// An attempt that was made under a lease.
#[derive(Clone)]
pub struct Finished {
    pub delivery_id: DeliveryId,
    pub schedule_start_milliseconds: i64,
    pub step: i64,
    /// Attempts before this one.
    pub attempts_count: i64,
    pub lease_milliseconds: i64,
    pub attempted_milliseconds: i64,
    pub is_success: bool,
    pub http_status: Option<u16>,
    pub error: Option<&'static str>,
    pub duration_milliseconds: u32,
    pub answer: String,
    pub retry_after_seconds: Option<u64>,
}

/// A delivery made now: due at once, or only recorded where the endpoint is disabled.
pub fn insert(
    tx: &mut dyn Tx,
    now: &mut Now,
    endpoint_id: EndpointId,
    event_id: EventId,
    created: i64,
    status: DeliveryStatus,
) -> Result<(), StoreError> {
    let start_milliseconds = now.instant_milliseconds();
    let delivery = Delivery {
        endpoint_id,
        id: now.mint(),
        event_id,
        status,
        schedule_start_milliseconds: start_milliseconds,
        step: 0,
        attempts_count: 0,
        due_milliseconds: (status == DeliveryStatus::Pending).then_some(start_milliseconds),
        created,
    };
    rows::delivery_insert(tx, &delivery)
}

/// Takes due deliveries of one endpoint until the lease ends; answers which of them were still as
/// they had been read. `is_drained` says that no others are due.
pub fn claim(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    due: &[DueDelivery],
    is_drained: bool,
    lease_milliseconds: i64,
) -> Result<Vec<bool>, StoreError> {
    let claimed = due
        .iter()
        .map(|delivery| {
            rows::delivery_lease(
                tx,
                endpoint_id,
                delivery.id,
                delivery.due_milliseconds,
                lease_milliseconds,
            )
        })
        .collect::<Result<_, _>>()?;
    if is_drained {
        rows::queue_due_again(tx, endpoint_id)?;
    }
    Ok(claimed)
}

/// Gives back deliveries that were taken and not attempted. Those of a deleted endpoint are
/// nobody's any more.
pub fn release(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    held: &[(DueDelivery, i64)],
) -> Result<(), StoreError> {
    rows::queue_lock(tx, endpoint_id)?;
    if rows::queue(tx, endpoint_id)?.is_none_or(|queue| queue.is_closed) {
        return Ok(());
    }
    for (delivery, lease_milliseconds) in held {
        rows::delivery_lease(
            tx,
            endpoint_id,
            delivery.id,
            *lease_milliseconds,
            delivery.due_milliseconds,
        )?;
        rows::queue_due_by(tx, endpoint_id, delivery.due_milliseconds)?;
    }
    Ok(())
}

/// Takes up what an earlier process left claimed, at the start of the only server of a store.
pub fn release_abandoned(tx: &mut dyn Tx, now: &Now) -> Result<u64, StoreError> {
    rows::first_attempts_release(tx, now.instant_milliseconds())
}

/// Ends deliveries without an attempt: those whose event is past its time, and those of a disabled
/// endpoint.
pub fn settle_unsent(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    due: &[DueDelivery],
    status: DeliveryStatus,
) -> Result<(), StoreError> {
    for delivery in due {
        let settled = Settled {
            status,
            step: delivery.step,
            attempts_count: delivery.attempts_count,
            due_milliseconds: None,
        };
        rows::delivery_settle(tx, endpoint_id, delivery.id, delivery.due_milliseconds, &settled)?;
    }
    Ok(())
}

/// Whether a due delivery is only kept for a replay: its endpoint was disabled after its schedule
/// had begun.
pub fn is_recorded_only(endpoint: &Endpoint, delivery: &DueDelivery) -> bool {
    endpoint
        .disabled_milliseconds
        .is_some_and(|disabled| delivery.schedule_start_milliseconds <= disabled)
}

/// Writes down attempts of one endpoint, in the order in which they ended, with all that follows
/// from them: what becomes of the deliveries, and of the endpoint. An attempt whose lease was lost
/// (replayed meanwhile, or endpoint deleted) counts for nothing: another one is made, or none is
/// wanted.
pub fn record_attempts(
    tx: &mut dyn Tx,
    now: &mut Now,
    endpoint_id: EndpointId,
    attempts: &[&Finished],
) -> Result<(), StoreError> {
    rows::queue_lock(tx, endpoint_id)?;
    let Some(queue) = rows::queue(tx, endpoint_id)?.filter(|queue| !queue.is_closed) else {
        return Ok(());
    };
    let mut health = queue.health;
    let mut due_first_milliseconds: Option<i64> = None;
    for attempt in attempts {
        let settled =
            settled_by(attempt, now.instant_milliseconds(), u64::from_be_bytes(now.random_bytes()));
        if !rows::delivery_settle(
            tx,
            endpoint_id,
            attempt.delivery_id,
            attempt.lease_milliseconds,
            &settled,
        )? {
            continue;
        }
        rows::attempt_insert(tx, endpoint_id, attempt.delivery_id, &attempt_row(attempt))?;
        due_first_milliseconds =
            due_first_milliseconds.into_iter().chain(settled.due_milliseconds).min();
        // Judged one by one: a success among failures ends `failing` before they begin to count
        // again.
        let before = health;
        health = if attempt.is_success {
            Health::default()
        } else {
            health.failed(attempt.attempted_milliseconds)
        };
        if follow(tx, now, queue.scope, endpoint_id, before, health)? == Followed::Disabled {
            due_first_milliseconds = None;
        }
    }
    if health != queue.health {
        rows::queue_health(tx, endpoint_id, health)?;
    }
    if let Some(due_milliseconds) = due_first_milliseconds {
        rows::queue_due_by(tx, endpoint_id, due_milliseconds)?;
    }
    Ok(())
}

fn settled_by(attempt: &Finished, now_milliseconds: i64, random: u64) -> Settled {
    let attempts_count = attempt.attempts_count + 1;
    let ended =
        |status| Settled { status, step: attempt.step, attempts_count, due_milliseconds: None };
    if attempt.is_success {
        return ended(DeliveryStatus::Succeeded);
    }
    match schedule::next_attempt(
        attempt.schedule_start_milliseconds,
        attempt.step,
        now_milliseconds,
        attempt.retry_after_seconds,
        random,
    ) {
        None => ended(DeliveryStatus::Failed),
        Some(next) => Settled {
            status: DeliveryStatus::Pending,
            step: next.step,
            attempts_count,
            due_milliseconds: Some(next.due_milliseconds),
        },
    }
}

fn attempt_row(attempt: &Finished) -> AttemptRow {
    AttemptRow {
        number: attempt.attempts_count + 1,
        attempted_at: attempt.attempted_milliseconds.div_euclid(1_000),
        http_status: attempt.http_status.map(i64::from),
        duration_milliseconds: i64::from(attempt.duration_milliseconds),
        error: attempt.error.map(str::to_owned),
        answer: attempt.answer.clone(),
    }
}

/// Whether an endpoint was disabled just now, so that nothing of it is due any more.
#[derive(PartialEq, Eq)]
enum Followed {
    Disabled,
    Otherwise,
}

/// Moves the endpoint to what its health is judged to be. Its row is looked at only where that can
/// be another status: after the first success behind failures, and while the failures are old
/// enough to count.
fn follow(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    endpoint_id: EndpointId,
    before: Health,
    health: Health,
) -> Result<Followed, StoreError> {
    let judged = health.judged(now.instant_milliseconds());
    let is_recovery = before.failures_count > 0 && health.failures_count == 0;
    if judged == EndpointStatus::Enabled && !is_recovery {
        return Ok(Followed::Otherwise);
    }
    let Some(mut endpoint) = rows::find(tx, scope, endpoint_id)? else {
        return Ok(Followed::Otherwise);
    };
    let was_disabled = endpoint.status == EndpointStatus::Disabled;
    follow_health(tx, now, &mut endpoint, judged)?;
    if was_disabled || endpoint.status != EndpointStatus::Disabled {
        return Ok(Followed::Otherwise);
    }
    rows::deliveries_record(tx, endpoint_id, RECORDED_AT_ONCE_MAX)?;
    rows::queue_due_again(tx, endpoint_id)?;
    Ok(Followed::Disabled)
}

/// The fault of a reference to an event that is not there, or no longer.
pub fn event_not_found() -> RefusalEntry {
    RefusalEntry::field(Code::ObjectNotFound, "event_id", "No such object.")
}

/// What a caller wants to be delivered again.
pub enum Replay {
    Event(EventId),
    /// Events that were created from one Unix second to another, both included.
    Range {
        since: i64,
        until: i64,
        only_failed: bool,
    },
}

/// Begins a new schedule for deliveries, and makes those that an endpoint has none of, where it
/// wants the event; answers how many. `only_failed` means those that the receiver never took:
/// `failed` and `recorded`.
pub fn replay(
    tx: &mut dyn Tx,
    now: &mut Now,
    endpoint: &Endpoint,
    replay: Replay,
) -> Result<u64, OperationError> {
    let count = match replay {
        Replay::Event(event_id) => {
            let Some(event) = crate::events::rows::find(tx, endpoint.scope, event_id)? else {
                return Err(event_not_found().into());
            };
            match rows::delivery_of_event(tx, endpoint.id, event_id)? {
                Some(delivery) => restart(tx, now, &delivery)?,
                None => begin(tx, now, endpoint, &event)?,
            }
        }
        Replay::Range { since, until, only_failed } => {
            replay_range(tx, now, endpoint, since, until, only_failed)?
        }
    };
    if count > 0 {
        rows::queue_due_by(tx, endpoint.id, now.instant_milliseconds())?;
        tx.signal(Signal::Deliveries);
    }
    Ok(count)
}

fn replay_range(
    tx: &mut dyn Tx,
    now: &mut Now,
    endpoint: &Endpoint,
    since: i64,
    until: i64,
    only_failed: bool,
) -> Result<u64, OperationError> {
    // Past its time an event can no longer be delivered, and its deliveries are about to be purged.
    let kept_since = now.instant() - EVENT_KEPT_SECONDS;
    // `created` decides. Identifiers bound what is read: they have the time of the clock that
    // sequenced, behind which a test clock never is.
    let earliest =
        since.saturating_sub(now.clock_offset_seconds()).saturating_sub(CLOCKS_APART_SECONDS_MAX);
    let latest = until.saturating_add(CLOCKS_APART_SECONDS_MAX);
    let (from, before) = (event_floor(earliest.max(kept_since)), event_floor(latest));
    let deliveries =
        rows::deliveries_of_events(tx, endpoint.id, from, before, since..=until, REPLAYED_MAX + 1)?;
    refuse_wide(deliveries.len())?;
    let mut count = 0;
    if only_failed {
        let is_failed =
            |status| matches!(status, DeliveryStatus::Failed | DeliveryStatus::Recorded);
        for delivery in deliveries.iter().filter(|delivery| is_failed(delivery.status)) {
            count += restart(tx, now, delivery)?;
        }
        return Ok(count);
    }
    let events =
        rows::events_between(tx, endpoint.scope, from, before, since..=until, REPLAYED_MAX + 1)?;
    refuse_wide(events.len())?;
    for delivery in &deliveries {
        count += restart(tx, now, delivery)?;
    }
    for event in &events {
        // Both come in the order of the events.
        if deliveries.binary_search_by_key(&event.id, |delivery| delivery.event_id).is_err() {
            count += begin(tx, now, endpoint, event)?;
        }
    }
    Ok(count)
}

fn refuse_wide(found: usize) -> Result<(), Refusal> {
    if i64::try_from(found).unwrap_or(i64::MAX) <= REPLAYED_MAX {
        return Ok(());
    }
    let message = format!(
        "More than {REPLAYED_MAX} events lie in this range. Narrow it with until, and replay the \
         rest with further calls."
    );
    Err(Refusal::one(
        RefusalEntry::field(Code::ParameterRangeInvalid, "since", message)
            .with("maximum", REPLAYED_MAX.to_string()),
    ))
}

/// The smallest identifier of an event of a Unix second.
fn event_floor(seconds: i64) -> EventId {
    const MILLISECONDS_MAX: i64 = (1 << 48) - 1;
    Id::from_u128((seconds.saturating_mul(1_000).clamp(0, MILLISECONDS_MAX) as u128) << 80)
}

fn restart(tx: &mut dyn Tx, now: &Now, delivery: &Delivery) -> Result<u64, StoreError> {
    rows::delivery_restart(tx, delivery.endpoint_id, delivery.id, now.instant_milliseconds())?;
    Ok(1)
}

fn begin(
    tx: &mut dyn Tx,
    now: &mut Now,
    endpoint: &Endpoint,
    event: &EventRow,
) -> Result<u64, StoreError> {
    let is_wanted =
        endpoint.enabled_events.matches(&event.event_type) && event.linked != endpoint.id.any();
    if !is_wanted {
        return Ok(0);
    }
    let created = now.business();
    insert(tx, now, endpoint.id, event.id, created, DeliveryStatus::Pending)?;
    Ok(1)
}

/// Removes deliveries past their time with their attempts, a bounded number at once; answers how
/// many deliveries. Goes through some endpoints at a time, and on from there at the next call.
pub fn purge(tx: &mut dyn Tx, now: &Now, rows_max: i64) -> Result<u64, StoreError> {
    let kept_since_milliseconds = (now.instant() - DELIVERY_KEPT_SECONDS).max(0) * 1_000;
    let below = Id::from_u128((kept_since_milliseconds as u128) << 80);
    let round_start = Id::from_u128(0);
    let place = migrate::read_meta(tx, PURGE_PLACE)?
        .and_then(|bytes| Id::from_bytes(&bytes))
        .unwrap_or(round_start);
    let endpoint_ids = rows::queues_after(tx, place, ENDPOINTS_PURGED_MAX)?;
    let is_round_end = (endpoint_ids.len() as i64) < ENDPOINTS_PURGED_MAX;
    let mut removed = 0;
    let mut next = place;
    for endpoint_id in &endpoint_ids {
        removed += rows::deliveries_purge(tx, *endpoint_id, below, rows_max - removed as i64)?;
        if removed as i64 >= rows_max {
            // There may be more of this endpoint, so the next call begins with it again.
            break;
        }
        next = *endpoint_id;
    }
    if is_round_end && (removed as i64) < rows_max {
        next = round_start;
    }
    if next != place {
        migrate::write_meta(tx, PURGE_PLACE, &next.to_bytes())?;
    }
    Ok(removed)
}

/// Removes the deliveries and attempts of deleted endpoints, a bounded number at once; answers how
/// many deliveries.
pub fn purge_deleted(tx: &mut dyn Tx, rows_max: i64) -> Result<u64, StoreError> {
    let mut removed = 0;
    while (removed as i64) < rows_max {
        let Some(endpoint_id) = rows::queue_closed(tx)? else { break };
        let rows_left = rows_max - removed as i64;
        let removed_now =
            rows::deliveries_purge(tx, endpoint_id, Id::from_u128(u128::MAX), rows_left)?;
        removed += removed_now;
        if (removed_now as i64) < rows_left {
            rows::queue_remove(tx, endpoint_id)?;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events;
    use crate::kernel::id::{Minter, kind};
    use crate::kernel::{AnyId, Metadata, Mode};
    use crate::store::sqlite::SqliteTx;
    use crate::values;
    use crate::webhooks::EventFilters;
    use crate::webhooks::fan_out::Subscribers;

    const START: i64 = 1_764_000_000_000;
    const HOUR: i64 = 3_600_000;
    const SCOPE: Scope = Scope::new(1, Mode::Test);

    fn with_store(test: impl FnOnce(&mut dyn Tx, &mut Now)) {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let mut tx = SqliteTx::new(&connection);
        migrate::migrate(&mut tx).unwrap();
        let mut now = Now::new(START, Minter::above(0), [7; 32]);
        test(&mut tx, &mut now);
    }

    fn endpoint(tx: &mut dyn Tx, now: &mut Now, enabled_events: &str) -> Endpoint {
        let endpoint = Endpoint {
            scope: SCOPE,
            id: now.mint(),
            version: 1,
            url: "https://example.com/".into(),
            description: None,
            enabled_events: EventFilters::from_text(enabled_events.into()),
            status: EndpointStatus::Enabled,
            disabled_reason: None,
            disabled_milliseconds: None,
            secrets_sealed: vec![0],
            metadata: Metadata::default(),
            created: now.business(),
        };
        rows::insert(tx, &endpoint).unwrap();
        rows::queue_insert(tx, SCOPE, endpoint.id).unwrap();
        endpoint
    }

    fn emit(tx: &mut dyn Tx, now: &mut Now, event_type: &'static str) -> EventId {
        let linked = now.mint::<kind::Transfer>().any();
        emit_about(tx, now, event_type, linked)
    }

    fn emit_about(
        tx: &mut dyn Tx,
        now: &mut Now,
        event_type: &'static str,
        linked: AnyId,
    ) -> EventId {
        events::emit(tx, now, SCOPE, event_type, linked).unwrap();
        crate::webhooks::sequencer::sequence(tx, now).unwrap();
        let newest =
            tx.row("SELECT id FROM events ORDER BY id DESC LIMIT 1", &[]).unwrap().unwrap().id();
        newest.unwrap()
    }

    fn all(tx: &mut dyn Tx, endpoint: &Endpoint) -> Vec<Delivery> {
        rows::deliveries_of_events(
            tx,
            endpoint.id,
            Id::from_u128(0),
            Id::from_u128(u128::MAX),
            0..=i64::MAX,
            1_000,
        )
        .unwrap()
    }

    fn found(tx: &mut dyn Tx, endpoint: &Endpoint) -> Endpoint {
        rows::find(tx, endpoint.scope, endpoint.id).unwrap().unwrap()
    }

    fn due_at(tx: &mut dyn Tx, endpoint: &Endpoint) -> Option<i64> {
        tx.row(
            "SELECT due_milliseconds FROM webhook_queues WHERE endpoint_id = ?1",
            values![endpoint.id],
        )
        .unwrap()
        .unwrap()
        .int_or_null()
        .unwrap()
    }

    fn types(tx: &mut dyn Tx) -> Vec<String> {
        crate::webhooks::sequencer::sequence(
            tx,
            &mut Now::new(START + 10_000 * HOUR, Minter::above(0), [9; 32]),
        )
        .unwrap();
        let rows =
            tx.rows("SELECT type FROM events WHERE type LIKE 'webhook%' ORDER BY id", &[]).unwrap();
        rows.into_iter().map(|mut row| row.text().unwrap()).collect()
    }

    fn finished(
        due: &DueDelivery,
        lease_milliseconds: i64,
        at_milliseconds: i64,
        http_status: u16,
    ) -> Finished {
        Finished {
            delivery_id: due.id,
            schedule_start_milliseconds: due.schedule_start_milliseconds,
            step: due.step,
            attempts_count: due.attempts_count,
            lease_milliseconds,
            attempted_milliseconds: at_milliseconds,
            is_success: (200..300).contains(&http_status),
            http_status: Some(http_status),
            error: None,
            duration_milliseconds: 3,
            answer: "said".into(),
            retry_after_seconds: None,
        }
    }

    /// Attempts everything that is due, as the worker would; answers how many attempts.
    fn attempt_due(tx: &mut dyn Tx, now: &mut Now, endpoint: &Endpoint, http_status: u16) -> usize {
        let due = rows::due(tx, SCOPE, endpoint.id, now.instant_milliseconds(), 100).unwrap();
        let lease = now.instant_milliseconds() + LEASE_MILLISECONDS;
        let claimed = claim(tx, endpoint.id, &due, true, lease).unwrap();
        assert!(claimed.iter().all(|is_claimed| *is_claimed));
        for due in &due {
            let attempt = finished(due, lease, now.instant_milliseconds(), http_status);
            record_attempts(tx, now, endpoint.id, &[&attempt]).unwrap();
        }
        due.len()
    }

    #[test]
    fn a_success_ends_a_delivery_and_counts_once() {
        with_store(|tx, now| {
            let endpoint = endpoint(tx, now, "*");
            emit(tx, now, "transfer.status.funded");
            assert_eq!(due_at(tx, &endpoint), Some(START));
            let due = rows::due(tx, SCOPE, endpoint.id, START, 10).unwrap();
            assert_eq!(due[0].event.as_ref().unwrap().event_type, "transfer.status.funded");
            let lease = START + LEASE_MILLISECONDS;
            assert_eq!(claim(tx, endpoint.id, &due, true, lease).unwrap(), [true]);
            assert_eq!(
                claim(tx, endpoint.id, &due, true, lease + 1).unwrap(),
                [false],
                "it is taken already"
            );
            assert_eq!(
                due_at(tx, &endpoint),
                Some(lease),
                "a crash is noticed when the lease ends"
            );
            let attempt = finished(&due[0], lease, START, 204);
            record_attempts(tx, now, endpoint.id, &[&attempt, &attempt]).unwrap();
            let delivery = &all(tx, &endpoint)[0];
            assert_eq!(
                (delivery.status, delivery.attempts_count, delivery.due_milliseconds),
                (DeliveryStatus::Succeeded, 1, None)
            );
            let attempts = rows::attempts(tx, endpoint.id, delivery.id, 10).unwrap();
            assert_eq!(
                (attempts.len(), attempts[0].http_status, attempts[0].answer.as_str()),
                (1, Some(204), "said")
            );
        });
    }

    #[test]
    fn what_is_given_back_is_due_as_before() {
        with_store(|tx, now| {
            let endpoint = endpoint(tx, now, "*");
            emit(tx, now, "transfer.status.funded");
            let due = rows::due(tx, SCOPE, endpoint.id, START, 10).unwrap();
            claim(tx, endpoint.id, &due, true, START + LEASE_MILLISECONDS).unwrap();
            release(tx, endpoint.id, &[(due[0].clone(), START + LEASE_MILLISECONDS)]).unwrap();
            assert_eq!(
                (all(tx, &endpoint)[0].due_milliseconds, due_at(tx, &endpoint)),
                (Some(START), Some(START))
            );
            // A deleted endpoint is due no more, whoever gives back what was for it.
            claim(tx, endpoint.id, &due, true, START + LEASE_MILLISECONDS).unwrap();
            crate::webhooks::delete(tx, &endpoint).unwrap();
            release(tx, endpoint.id, &[(due[0].clone(), START + LEASE_MILLISECONDS)]).unwrap();
            rows::queue_due_by(tx, endpoint.id, START).unwrap();
            assert_eq!(due_at(tx, &endpoint), None);
        });
    }

    #[test]
    fn a_dead_endpoint_is_tried_fourteen_times_then_failing_then_disabled() {
        with_store(|tx, now| {
            let endpoint = endpoint(tx, now, "transfer.*");
            let other = self::endpoint(tx, now, "webhook_endpoint.*");
            emit(tx, now, "transfer.status.funded");
            let mut attempts = 0;
            while let Some(due) = due_at(tx, &endpoint) {
                now.advance_to(due);
                attempts += attempt_due(tx, now, &endpoint, 500);
                rows::queue_due_again(tx, endpoint.id).unwrap();
            }
            assert_eq!(attempts, schedule::STEPS_SECONDS.len());
            let delivery = &all(tx, &endpoint)[0];
            assert_eq!((delivery.status, delivery.attempts_count), (DeliveryStatus::Failed, 14));
            assert_eq!(now.instant_milliseconds(), START + 24 * HOUR);
            assert_eq!(found(tx, &endpoint).status, EndpointStatus::Failing);

            now.advance_to(START + 121 * HOUR);
            emit(tx, now, "transfer.status.funded");
            emit(tx, now, "transfer.status.funded");
            assert_eq!(attempt_due(tx, now, &endpoint, 500), 2);
            let disabled = found(tx, &endpoint);
            assert_eq!(
                (disabled.status, disabled.disabled_milliseconds),
                (EndpointStatus::Disabled, Some(START + 121 * HOUR))
            );
            let recorded = all(tx, &endpoint);
            assert_eq!(
                recorded.iter().map(|delivery| delivery.status).collect::<Vec<_>>(),
                [DeliveryStatus::Failed, DeliveryStatus::Recorded, DeliveryStatus::Recorded]
            );
            assert_eq!(due_at(tx, &endpoint), None);
            now.advance_to(START + 122 * HOUR);
            emit(tx, now, "transfer.status.funded");
            assert_eq!(
                all(tx, &endpoint)[3].status,
                DeliveryStatus::Recorded,
                "still recorded while disabled"
            );
            assert_eq!(
                types(tx),
                ["webhook_endpoint.status.failing", "webhook_endpoint.status.disabled"]
            );
            assert_eq!(all(tx, &other).len(), 2, "the account's other endpoint is told");

            // A replay is sent although the endpoint is disabled, on a schedule of its own.
            now.advance_to(START + 123 * HOUR);
            let range = Replay::Range { since: 0, until: now.instant(), only_failed: true };
            assert_eq!(replay(tx, now, &disabled, range).unwrap(), 4);
            let due = rows::due(tx, SCOPE, endpoint.id, now.instant_milliseconds(), 10).unwrap();
            assert!(
                due.len() == 4 && due.iter().all(|delivery| !is_recorded_only(&disabled, delivery))
            );
            assert_eq!(attempt_due(tx, now, &endpoint, 500), 4);
            assert!(
                all(tx, &endpoint).iter().all(|delivery| delivery.status
                    == DeliveryStatus::Pending
                    && delivery.step == 1)
            );
            now.advance_to(START + 124 * HOUR);
            assert_eq!(attempt_due(tx, now, &endpoint, 200), 4);
            assert_eq!(
                found(tx, &endpoint).status,
                EndpointStatus::Disabled,
                "only its owner enables it again"
            );
        });
    }

    #[test]
    fn a_success_ends_failing_and_forgets_the_failures() {
        with_store(|tx, now| {
            let endpoint = endpoint(tx, now, "transfer.*");
            emit(tx, now, "transfer.status.funded");
            attempt_due(tx, now, &endpoint, 500);
            now.advance_to(START + 25 * HOUR);
            emit(tx, now, "transfer.status.funded");
            attempt_due(tx, now, &endpoint, 500);
            assert_eq!(found(tx, &endpoint).status, EndpointStatus::Failing);
            now.advance_to(START + 26 * HOUR);
            attempt_due(tx, now, &endpoint, 200);
            assert_eq!(found(tx, &endpoint).status, EndpointStatus::Enabled);
            assert_eq!(rows::queue(tx, endpoint.id).unwrap().unwrap().health, Health::default());
            assert_eq!(
                types(tx),
                ["webhook_endpoint.status.failing", "webhook_endpoint.status.enabled"]
            );
        });
    }

    #[test]
    fn events_fan_out_to_who_wants_them() {
        with_store(|tx, now| {
            let transfers = endpoint(tx, now, "transfer.*");
            let everything = endpoint(tx, now, "*");
            let stranger =
                Endpoint { scope: Scope::new(2, Mode::Test), id: now.mint(), ..everything.clone() };
            rows::insert(tx, &stranger).unwrap();
            rows::queue_insert(tx, stranger.scope, stranger.id).unwrap();
            emit(tx, now, "transfer.status.funded");
            emit(tx, now, "payout.status.settled");
            emit_about(tx, now, "webhook_endpoint.status.enabled", everything.id.any());
            emit_about(tx, now, "webhook_endpoint.status.enabled", transfers.id.any());
            assert_eq!(
                [all(tx, &transfers).len(), all(tx, &everything).len(), all(tx, &stranger).len()],
                [1, 4, 0]
            );
            let mut subscribers = Subscribers::default();
            let event = rows::events_between(
                tx,
                SCOPE,
                Id::from_u128(0),
                Id::from_u128(u128::MAX),
                0..=i64::MAX,
                1,
            )
            .unwrap()
            .remove(0);
            subscribers.fan_out(tx, now, Scope::new(9, Mode::Live), &event).unwrap();
        });
    }

    #[test]
    fn a_replay_begins_old_deliveries_again_and_makes_missing_ones() {
        with_store(|tx, now| {
            let early = emit(tx, now, "transfer.status.funded");
            emit(tx, now, "payout.status.settled");
            now.advance_to(START + 10_000);
            let endpoint = endpoint(tx, now, "transfer.*");
            let late = emit(tx, now, "transfer.status.payout_settled");
            attempt_due(tx, now, &endpoint, 200);
            let second = START / 1_000;
            let range = |since, until, only_failed| Replay::Range { since, until, only_failed };
            assert_eq!(replay(tx, now, &endpoint, range(second, second + 9, true)).unwrap(), 0);
            assert_eq!(
                replay(tx, now, &endpoint, range(second + 1, second + 9, false)).unwrap(),
                0
            );
            assert_eq!(
                replay(tx, now, &endpoint, range(second + 10, second + 10, true)).unwrap(),
                0,
                "it succeeded"
            );
            assert_eq!(
                replay(tx, now, &endpoint, range(second, second + 10, false)).unwrap(),
                2,
                "the payout's event is not wanted"
            );
            assert_eq!(due_at(tx, &endpoint), Some(now.instant_milliseconds()));
            let deliveries = all(tx, &endpoint);
            assert_eq!(
                deliveries.iter().map(|delivery| delivery.event_id).collect::<Vec<_>>(),
                [early, late]
            );
            assert_eq!(attempt_due(tx, now, &endpoint, 200), 2);
            assert_eq!(replay(tx, now, &endpoint, Replay::Event(early)).unwrap(), 1);
            assert!(matches!(
                replay(tx, now, &endpoint, Replay::Event(Id::from_u128(5))),
                Err(OperationError::Refused(_))
            ));
            // The range reaches from the beginning of the first second to the end of the last.
            assert_eq!(event_floor(second).milliseconds(), START);
            assert_eq!(event_floor(-1).as_u128(), 0);
            assert!(refuse_wide(10_000).is_ok() && refuse_wide(10_001).is_err());
        });
    }

    #[test]
    fn a_replay_meanwhile_makes_the_running_attempt_count_for_nothing() {
        with_store(|tx, now| {
            let endpoint = endpoint(tx, now, "*");
            let event = emit(tx, now, "transfer.status.funded");
            let due = rows::due(tx, SCOPE, endpoint.id, START, 10).unwrap();
            let lease = START + LEASE_MILLISECONDS;
            claim(tx, endpoint.id, &due, true, lease).unwrap();
            now.advance_to(START + 1_000);
            replay(tx, now, &endpoint, Replay::Event(event)).unwrap();
            record_attempts(tx, now, endpoint.id, &[&finished(&due[0], lease, START, 500)])
                .unwrap();
            let delivery = &all(tx, &endpoint)[0];
            assert_eq!(
                (delivery.status, delivery.attempts_count, delivery.due_milliseconds),
                (DeliveryStatus::Pending, 0, Some(START + 1_000))
            );
            assert_eq!(rows::queue(tx, endpoint.id).unwrap().unwrap().health.failures_count, 0);
        });
    }

    #[test]
    fn purges_remove_what_is_old_and_what_belonged_to_deleted_endpoints() {
        with_store(|tx, now| {
            let kept = endpoint(tx, now, "*");
            let deleted = endpoint(tx, now, "*");
            for _ in 0..5 {
                emit(tx, now, "transfer.status.funded");
            }
            attempt_due(tx, now, &kept, 200);
            attempt_due(tx, now, &deleted, 500);
            crate::webhooks::delete(tx, &deleted).unwrap();
            assert_eq!(due_at(tx, &deleted), None);
            assert_eq!(
                [
                    purge_deleted(tx, 3).unwrap(),
                    purge_deleted(tx, 3).unwrap(),
                    purge_deleted(tx, 3).unwrap()
                ],
                [3, 2, 0]
            );
            assert!(rows::queue(tx, deleted.id).unwrap().is_none());
            assert_eq!(purge(tx, now, 100).unwrap(), 0);
            now.advance_to(START + (DELIVERY_KEPT_SECONDS + 1) * 1_000);
            emit(tx, now, "transfer.status.funded");
            assert_eq!(
                [
                    purge(tx, now, 3).unwrap(),
                    purge(tx, now, 3).unwrap(),
                    purge(tx, now, 3).unwrap()
                ],
                [3, 2, 0]
            );
            assert_eq!(all(tx, &kept).len(), 1);
            let attempts = tx
                .row("SELECT COUNT(*) FROM webhook_attempts", &[])
                .unwrap()
                .unwrap()
                .int()
                .unwrap();
            assert_eq!(attempts, 0);
        });
    }

    #[test]
    fn the_due_queries_walk_their_indexes() {
        with_store(|tx, _| {
            let plans = [
                (
                    "SELECT due_milliseconds, endpoint_id, scope FROM webhook_queues WHERE \
                     due_milliseconds > 1 AND due_milliseconds <= 2 ORDER BY due_milliseconds, \
                     endpoint_id LIMIT 3",
                    "webhook_queues_due",
                ),
                (
                    "SELECT d.id FROM webhook_deliveries d WHERE d.endpoint_id = x'00' AND \
                     d.due_milliseconds <= 3 ORDER BY d.due_milliseconds, d.id LIMIT 4",
                    "webhook_deliveries_due",
                ),
                (
                    "SELECT MIN(d.due_milliseconds) FROM webhook_deliveries d WHERE d.endpoint_id \
                     = x'00' AND d.due_milliseconds IS NOT NULL",
                    "webhook_deliveries_due",
                ),
                (
                    "SELECT endpoint_id FROM webhook_queues WHERE closed ORDER BY endpoint_id \
                     LIMIT 1",
                    "webhook_queues_closed",
                ),
            ];
            for (sql, index) in plans {
                let plan = tx.rows(&format!("EXPLAIN QUERY PLAN {sql}"), &[]).unwrap();
                let text: String = plan.into_iter().map(|row| format!("{row:?}")).collect();
                assert!(text.contains(index) && !text.contains("TEMP B-TREE"), "{sql}: {text}");
            }
        });
    }
}
