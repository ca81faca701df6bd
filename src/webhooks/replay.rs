//! Replays: events that a caller wants to be delivered again.

use super::Endpoint;
use super::deliveries::{self, Delivery};
use super::rows::{self, EventId};
use super::state::DeliveryStatus;
use crate::events::rows::EventRow;
use crate::events::{self, EVENT_KEPT_SECONDS};
use crate::kernel::{Code, Id, Now, OperationError, Refusal, RefusalEntry, StoreError};
use crate::store::{Signal, Tx};

/// Events, or deliveries, that one replay goes through.
pub const REPLAYED_MAX: i64 = 10_000;
/// How far an event's `created` and its identifier may be apart in one account's time: the clocks
/// of two nodes, and the way to the sequencer.
const CLOCKS_APART_SECONDS_MAX: i64 = 600;

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
/// wants the event; answers how many. `only_failed` means those that the receiver has not taken:
/// `failed`, `recorded`, and `pending` that wait for another attempt.
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
    // One statement, whatever the range holds: other accounts' writes wait for this transaction.
    let restarted = rows::RestartedDeliveries { from, before, created: since..=until, only_failed };
    let start_milliseconds = now.instant_milliseconds();
    if only_failed {
        return Ok(rows::deliveries_restart(tx, endpoint.id, &restarted, start_milliseconds)?);
    }
    let events =
        events::rows::between(tx, endpoint.scope, from, before, since..=until, REPLAYED_MAX + 1)?;
    refuse_wide(events.len())?;
    let restarted_count =
        rows::deliveries_restart(tx, endpoint.id, &restarted, start_milliseconds)?;
    // Both come in the order of the events.
    let is_missing = |event: &&EventRow| {
        deliveries.binary_search_by_key(&event.id, |delivery| delivery.event_id).is_err()
    };
    let created = now.business();
    let missing: Vec<Delivery> = events
        .iter()
        .filter(is_missing)
        .filter(|event| is_wanted(endpoint, event))
        .map(|event| {
            let status = DeliveryStatus::Pending;
            deliveries::begun(now, endpoint.id, event.id, created, status)
        })
        .collect();
    rows::deliveries_insert(tx, &missing)?;
    Ok(restarted_count + missing.len() as u64)
}

pub(super) fn refuse_wide(found: usize) -> Result<(), Refusal> {
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
pub(super) fn event_floor(seconds: i64) -> EventId {
    const MILLISECONDS_MAX: i64 = (1 << 48) - 1;
    Id::from_u128((seconds.saturating_mul(1_000).clamp(0, MILLISECONDS_MAX) as u128) << 80)
}

fn is_wanted(endpoint: &Endpoint, event: &EventRow) -> bool {
    endpoint.enabled_events.matches(&event.event_type) && event.linked != endpoint.id.any()
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
    if !is_wanted(endpoint, event) {
        return Ok(0);
    }
    let created = now.business();
    let delivery = deliveries::begun(now, endpoint.id, event.id, created, DeliveryStatus::Pending);
    rows::deliveries_insert(tx, &[delivery])?;
    Ok(1)
}
