//! Replays: events that a caller wants to be delivered again. A replay begins a delivery by giving
//! it a new schedule, or by making it where the event has none; the delivery then waits to be sent.
//!
//! A range of time is replayed in parts, so that no other write waits for the whole of it:
//!
//! 1. The request's preflight counts the deliveries, before the request's transaction opens.
//! 2. The transaction does the first part, and stores a row that says what is left.
//! 3. A worker does the other parts. Each part commits together with the position of the next one,
//!    so that a crash in between loses nothing and begins nothing twice.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Endpoint;
use super::deliveries::{self, Delivery};
use super::rows::{self, EndpointId, EventId};
use super::state::DeliveryStatus;
use crate::app_state::AppState;
use crate::background::{Stop, is_stopped};
use crate::events::rows::EventRow;
use crate::events::{self, EVENT_KEPT_SECONDS};
use crate::kernel::id::kind;
use crate::kernel::named_id::NamedId;
use crate::kernel::{
    Code, Id, Mode, Now, OperationError, Refusal, RefusalEntry, Scope, StoreError,
};
use crate::store::{Cost, Signal, Tx};

/// The most events that one replay covers. With `only_failed`, deliveries are counted instead.
pub const REPLAYED_MAX: i64 = 10_000;
/// The most events that one transaction of a replay covers. With `only_failed`, deliveries are
/// counted instead.
pub const PART_MAX: i64 = 100;
/// After a part the worker rests this many times as long as the part took, so that all replays
/// together use at most a quarter of the time.
const RESTS_PER_PART: u32 = 3;
/// How often the worker looks for replays while it knows of none.
const LOOK_MILLISECONDS: u64 = 200;
/// How long the worker rests after an error of the store.
const ERROR_REST: Duration = Duration::from_secs(1);
/// How far an event's `created` and the time in its identifier may be apart, not counting the
/// account's test clock: two nodes' clocks differ, and an event waits to be sequenced.
const CLOCKS_APART_SECONDS_MAX: i64 = 600;

/// The refusal for an event that does not exist or was removed.
pub fn event_not_found(event: &NamedId<kind::Event>, mode: Mode) -> RefusalEntry {
    event.missing("event_id", mode)
}

/// What a caller wants to be delivered again.
pub enum Replay {
    Event(EventId),
    /// Events that were created from one Unix second to another (business time), both included.
    Range {
        since: i64,
        until: i64,
        only_failed: bool,
    },
}

/// What is left of the replay of a range. There is at most one in each account and mode.
pub struct LeftReplay {
    pub scope: Scope,
    pub endpoint_id: EndpointId,
    /// No event with a lower identifier is left.
    pub next: EventId,
    /// Neither this event nor one with a higher identifier is replayed.
    pub before: EventId,
    /// The range: when its events were created, in Unix seconds, business time.
    pub created: RangeInclusive<i64>,
    /// Whether the replay begins only deliveries that the receiver has not taken.
    pub only_failed: bool,
}

/// How many deliveries the replay of a range begins.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    pub deliveries_count: u64,
    /// An identifier after all events that were counted. Events from this identifier on are not
    /// replayed.
    pub before: EventId,
}

/// What one transaction of a replay did.
struct ReplayPart {
    begun_count: u64,
    is_last: bool,
}

/// Begins a new schedule for each delivery of the events, and makes a delivery where one is missing
/// and the endpoint wants the event. With `only_failed` it makes none, and begins only deliveries
/// that the receiver has not taken: those `failed`, those `recorded` (kept unsent, as while the
/// endpoint was disabled), and those `pending` that had an attempt. Of a long range this does only
/// the first part; the worker does the others. Answers how many deliveries the replay begins, those
/// of later parts included.
pub fn replay(
    tx: &mut dyn Tx,
    now: &mut Now,
    endpoint: &Endpoint,
    replay: Replay,
) -> Result<u64, OperationError> {
    replay_counted(tx, now, endpoint, replay, None)
}

/// Like [`replay`]. A range that was counted before the transaction opened (`counted`) is not
/// counted again.
pub fn replay_counted(
    tx: &mut dyn Tx,
    now: &mut Now,
    endpoint: &Endpoint,
    replay: Replay,
    counted: Option<Counted>,
) -> Result<u64, OperationError> {
    match replay {
        Replay::Event(event_id) => {
            let Some(event) = crate::events::rows::find(tx, endpoint.scope, event_id)? else {
                let mode = endpoint.scope.mode();
                return Err(event_not_found(&event_id.into(), mode).into());
            };
            let known = rows::delivery_of_event(tx, endpoint.id, event_id)?;
            let begun = begin_all(tx, now, endpoint, &[event], &Vec::from_iter(known))?;
            if begun > 0 {
                let at_milliseconds = now.instant_milliseconds();
                rows::replay_note_one(tx, endpoint.id, at_milliseconds, following(event_id))?;
            }
            Ok(begun)
        }
        Replay::Range { since, until, only_failed } => {
            refuse_second(tx, endpoint.scope)?;
            let mut left = unstarted_replay(now, endpoint, since, until, only_failed);
            let counted = match counted {
                Some(counted) => counted,
                None => count(tx, endpoint, &left)?,
            };
            left.before = counted.before;
            let part = replay_part(tx, now, endpoint, &mut left)?;
            let at_milliseconds = now.instant_milliseconds();
            rows::replay_note_range(tx, endpoint.id, at_milliseconds, &counted, part.begun_count)?;
            if !part.is_last {
                rows::replay_insert(tx, &left)?;
            }
            Ok(counted.deliveries_count)
        }
    }
}

/// Counts the deliveries that the replay of a range begins; `None` for a single event, which needs
/// no count.
pub fn count_before_transaction(
    tx: &mut dyn Tx,
    now: &Now,
    endpoint: &Endpoint,
    replay: &Replay,
) -> Result<Option<Counted>, OperationError> {
    let Replay::Range { since, until, only_failed } = *replay else { return Ok(None) };
    refuse_second(tx, endpoint.scope)?;
    count(tx, endpoint, &unstarted_replay(now, endpoint, since, until, only_failed)).map(Some)
}

/// The replay of a range of which nothing is done yet.
fn unstarted_replay(
    now: &Now,
    endpoint: &Endpoint,
    since: i64,
    until: i64,
    only_failed: bool,
) -> LeftReplay {
    // An event that has expired can no longer be delivered, and is about to be purged.
    let kept_since = now.instant() - EVENT_KEPT_SECONDS;
    // `created` decides which events belong to the range. Identifiers only limit what is read. An
    // identifier contains the instant at which its event was sequenced. `created` is later than
    // that by at most the test clock's offset and `CLOCKS_APART_SECONDS_MAX`, and earlier by at
    // most `CLOCKS_APART_SECONDS_MAX`.
    let earliest =
        since.saturating_sub(now.clock_offset_seconds()).saturating_sub(CLOCKS_APART_SECONDS_MAX);
    let latest = until.saturating_add(CLOCKS_APART_SECONDS_MAX);
    LeftReplay {
        scope: endpoint.scope,
        endpoint_id: endpoint.id,
        next: event_floor(earliest.max(kept_since)),
        before: event_floor(latest),
        created: since..=until,
        only_failed,
    }
}

/// Refuses the replay of a range while the account has another one under way in this mode.
fn refuse_second(tx: &mut dyn Tx, scope: Scope) -> Result<(), OperationError> {
    if rows::replay_left(tx, scope)?.is_none() {
        return Ok(());
    }
    let entry = RefusalEntry::new(
        Code::RateLimitExceeded,
        "A replay of this account is under way. Wait a second, then send the same request with the \
         same idempotency key.",
    );
    let mut refusal = Refusal::one(entry.with("policy", "reports"));
    refusal.retry_after_seconds = Some(1);
    Err(refusal.into())
}

fn count(
    tx: &mut dyn Tx,
    endpoint: &Endpoint,
    left: &LeftReplay,
) -> Result<Counted, OperationError> {
    // Events become visible in the order of their identifiers. Events that become visible while
    // the parts are done are neither counted nor replayed.
    let newest = events::rows::latest(tx, endpoint.scope, 1)?;
    let after_newest = newest.first().map_or(left.next, |newest| following(newest.id));
    let before = left.before.min(after_newest);
    let (from, created) = (left.next, left.created.clone());
    let deliveries_count = if left.only_failed {
        let found =
            rows::deliveries_of_events(tx, endpoint.id, from, before, created, REPLAYED_MAX + 1)?;
        refuse_wide(found.len(), left.only_failed)?;
        found.iter().filter(|delivery| is_replayable(delivery)).count()
    } else {
        let found =
            events::rows::between(tx, endpoint.scope, from, before, created, REPLAYED_MAX + 1)?;
        refuse_wide(found.len(), left.only_failed)?;
        let known = deliveries_of(tx, endpoint, &found)?;
        let begins =
            |event: &&EventRow| position_of(&known, event).is_ok() || is_wanted(endpoint, event);
        found.iter().filter(begins).count()
    };
    Ok(Counted { deliveries_count: deliveries_count as u64, before })
}

/// Does the next part, and moves `left.next` past it.
fn replay_part(
    tx: &mut dyn Tx,
    now: &mut Now,
    endpoint: &Endpoint,
    left: &mut LeftReplay,
) -> Result<ReplayPart, StoreError> {
    let (from, before, created) = (left.next, left.before, left.created.clone());
    let (begun_count, last) = if left.only_failed {
        let found = rows::deliveries_of_events(tx, endpoint.id, from, before, created, PART_MAX)?;
        let failed: Vec<&Delivery> =
            found.iter().filter(|delivery| is_replayable(delivery)).collect();
        restart(tx, now, &failed)?;
        wake_worker(tx, now, endpoint, failed.len())?;
        let last = (found.len() as i64 == PART_MAX).then(|| found.last().map(|last| last.event_id));
        (failed.len() as u64, last)
    } else {
        let found = events::rows::between(tx, endpoint.scope, from, before, created, PART_MAX)?;
        let known = deliveries_of(tx, endpoint, &found)?;
        let begun_count = begin_all(tx, now, endpoint, &found, &known)?;
        let last = (found.len() as i64 == PART_MAX).then(|| found.last().map(|last| last.id));
        (begun_count, last)
    };
    left.next = last.flatten().map_or(left.before, following);
    Ok(ReplayPart { begun_count, is_last: left.next >= left.before })
}

/// The endpoint's deliveries of the events from the first of `found` to the last, in the order of
/// the events. `found` has to be in that order too.
fn deliveries_of(
    tx: &mut dyn Tx,
    endpoint: &Endpoint,
    found: &[EventRow],
) -> Result<Vec<Delivery>, StoreError> {
    let (Some(first), Some(last)) = (found.first(), found.last()) else { return Ok(Vec::new()) };
    let (from, before) = (first.id, following(last.id));
    rows::deliveries_of_events(tx, endpoint.id, from, before, 0..=i64::MAX, i64::MAX)
}

fn position_of(known: &[Delivery], event: &EventRow) -> Result<usize, usize> {
    known.binary_search_by_key(&event.id, |delivery| delivery.event_id)
}

/// Whether a replay with `only_failed` begins the delivery again: it failed, is recorded, or waits
/// for another attempt.
fn is_replayable(delivery: &Delivery) -> bool {
    match delivery.status {
        DeliveryStatus::Failed | DeliveryStatus::Recorded => true,
        DeliveryStatus::Pending => delivery.attempts_count > 0,
        DeliveryStatus::Succeeded => false,
    }
}

/// Begins the deliveries of the events in `found`, again or for the first time; answers how many.
/// `known` are the deliveries of these events that exist, in the order of the events.
fn begin_all(
    tx: &mut dyn Tx,
    now: &mut Now,
    endpoint: &Endpoint,
    found: &[EventRow],
    known: &[Delivery],
) -> Result<u64, StoreError> {
    let mut again = Vec::new();
    let mut missing = Vec::new();
    for event in found {
        match position_of(known, event) {
            Ok(position) => again.push(&known[position]),
            Err(_) if is_wanted(endpoint, event) => {
                let (event_id, created, status) =
                    (event.id, event.created, DeliveryStatus::Pending);
                let delivery =
                    deliveries::new_delivery(now, endpoint.id, event_id, created, status);
                missing.push(delivery);
            }
            Err(_) => {}
        }
    }
    restart(tx, now, &again)?;
    rows::deliveries_insert(tx, &missing)?;
    wake_worker(tx, now, endpoint, again.len() + missing.len())?;
    Ok((again.len() + missing.len()) as u64)
}

fn restart(tx: &mut dyn Tx, now: &Now, deliveries: &[&Delivery]) -> Result<(), StoreError> {
    for delivery in deliveries {
        let start_milliseconds = now.instant_milliseconds();
        rows::delivery_restart(tx, delivery.endpoint_id, delivery.id, start_milliseconds)?;
    }
    Ok(())
}

/// Makes the endpoint's queue due and wakes the delivery worker, if any delivery begins.
fn wake_worker(
    tx: &mut dyn Tx,
    now: &Now,
    endpoint: &Endpoint,
    begun_count: usize,
) -> Result<(), StoreError> {
    if begun_count > 0 {
        rows::queue_set_due_by(tx, endpoint.id, now.instant_milliseconds())?;
        tx.signal(Signal::Deliveries);
    }
    Ok(())
}

/// Does the next part of an account's replay, if one is under way.
pub(super) fn replay_next_part(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
) -> Result<(), StoreError> {
    let Some(mut left) = rows::replay_left(tx, scope)? else { return Ok(()) };
    let from = left.next;
    let is_over = match rows::find(tx, scope, left.endpoint_id)? {
        Some(endpoint) => {
            let part = replay_part(tx, now, &endpoint, &mut left)?;
            rows::replay_note_more(tx, endpoint.id, part.begun_count)?;
            part.is_last
        }
        // The endpoint was deleted.
        None => true,
    };
    if is_over { rows::replay_end(tx, &left, from) } else { rows::replay_move(tx, &left, from) }
}

/// Does the replays of all accounts until `stop`, one part for each account in turn.
pub async fn run(app: Arc<AppState>, mut stop: Stop) {
    let mut scopes: VecDeque<Scope> = VecDeque::new();
    while !is_stopped(&stop) {
        let rest = match scopes.pop_front() {
            Some(scope) => run_next_part(&app, scope).await,
            None => find_replays(&app, &mut scopes).await,
        };
        tokio::select! {
            () = tokio::time::sleep(rest) => {}
            _ = stop.changed() => {}
        }
    }
}

/// Adds the accounts with a replay under way to `scopes`; answers how long to rest.
async fn find_replays(app: &AppState, scopes: &mut VecDeque<Scope>) -> Duration {
    // An error of the store is not logged here, because other workers meet it too.
    let found = app.store.read(Cost::Point, |tx| Ok(rows::replay_scopes(tx)?)).await;
    scopes.extend(found.unwrap_or_default());
    if scopes.is_empty() { Duration::from_millis(LOOK_MILLISECONDS) } else { Duration::ZERO }
}

/// Does the next part of an account's replay; answers how long to rest.
async fn run_next_part(app: &AppState, scope: Scope) -> Duration {
    let begun = Instant::now();
    match app.store.write(move |tx, now| Ok(replay_next_part(tx, now, scope)?)).await {
        Ok(()) => begun.elapsed() * RESTS_PER_PART,
        Err(failure) => {
            tracing::error!(?failure, "a replay could not go on; it is tried again in a second");
            ERROR_REST
        }
    }
}

/// Refuses a range in which more than [`REPLAYED_MAX`] events were found. With `only_failed`,
/// `found` counts deliveries instead, those that succeeded included.
pub(super) fn refuse_wide(found: usize, only_failed: bool) -> Result<(), Refusal> {
    if i64::try_from(found).unwrap_or(i64::MAX) <= REPLAYED_MAX {
        return Ok(());
    }
    let what = match only_failed {
        true => "deliveries to this endpoint, counting those that succeeded",
        false => "events",
    };
    let message = format!(
        "This range has more than {REPLAYED_MAX} {what}. Send an earlier until, and replay the \
         rest with further calls."
    );
    Err(Refusal::one(
        RefusalEntry::field(Code::ParameterRangeInvalid, "until", message)
            .with("maximum_events", REPLAYED_MAX.to_string()),
    ))
}

/// The lowest identifier that an event can have in a Unix second.
pub(super) fn event_floor(seconds: i64) -> EventId {
    Id::lowest_at(seconds.saturating_mul(1_000))
}

/// The lowest identifier after `id`.
fn following(id: EventId) -> EventId {
    Id::from_u128(id.as_u128().saturating_add(1))
}

fn is_wanted(endpoint: &Endpoint, event: &EventRow) -> bool {
    endpoint.enabled_events.matches(&event.event_type)
}
