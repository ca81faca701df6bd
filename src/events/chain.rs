//! The chained hash over the events of one account in one mode. With it a caller can check that it
//! missed no event. Below, "account" means an account in one mode.
//!
//! The hash after an event follows from the hash before it and from the event's own fields. So it
//! is the same whenever and by whomever it is computed. Events themselves do not carry the hash. A
//! checkpoint (a row in `event_checkpoints`) holds the count and the hash after every [`STEP`]th
//! event. A request computes onward from the last checkpoint at or before the event that it names.
//! A worker writes the checkpoints some seconds after the events were sequenced. The purge stores a
//! checkpoint for the last event that it removes, so that the chain continues.
//!
//! The chain of an account begins with its first event. If events had been removed before there
//! were checkpoints, the chain begins with the oldest event that was left when the chain was first
//! computed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::rows::{self, EventRow};
use super::{EVENT_KEPT_SECONDS, rows::Checkpoint};
use crate::app_state::AppState;
use crate::background::{Stop, is_stopped};
use crate::kernel::id::kind;
use crate::kernel::{Code, Id, Now, OperationError, Refusal, Scope, StoreError, hex};
use crate::keys;
use crate::store::{Cost, Tx};

/// Events from one checkpoint to the next.
pub const STEP: i64 = 256;
/// Roughly the most events for which one request computes hashes. A request needs more only if the
/// worker has not written the checkpoints yet, as after an update of an old database.
const COMPUTED_MAX: i64 = 20_000;
/// The most events that are read with one statement, a multiple of [`STEP`].
const READ_MAX: i64 = 4 * STEP;
/// How long the worker pauses between two looks. The first look is at all accounts with a stored
/// event. Each later one is at the accounts that got an event on this node since the last look.
const LOOK_SECONDS: u64 = 5;
/// The most accounts that a later look reads in one transaction, so that other reads need not wait
/// for all accounts of the look.
const LOOKED_AT_ONCE: usize = 100;
/// The most accounts that the first look finds with one statement.
const FOUND_AT_ONCE: i64 = 250;

/// The hash after an event: SHA-256 of a text with the hash before the event (in hexadecimal) and
/// the event's `id`, `type`, `linked_id` and `created`, separated by single spaces.
pub fn link(hash: &[u8; 32], event: &EventRow) -> [u8; 32] {
    let text = format!(
        "{} {} {} {} {}",
        hex::encode(hash),
        event.id,
        event.event_type,
        event.linked,
        event.created
    );
    Sha256::digest(text.as_bytes()).into()
}

/// Continues the chain from `at` over the next events, and calls `passed` after each.
fn walk(
    mut at: Checkpoint,
    events: &[EventRow],
    mut passed: impl FnMut(&Checkpoint),
) -> Checkpoint {
    for event in events {
        at = Checkpoint {
            event_id: Some(event.id),
            events_count: at.events_count + 1,
            hash: link(&at.hash, event),
        };
        passed(&at);
    }
    at
}

/// Where to begin computing the hash up to an event: at the last checkpoint at or before it, or at
/// the chain's beginning. `None` if events that are needed were removed.
fn base(
    tx: &mut dyn Tx,
    scope: Scope,
    up_to: Id<kind::Event>,
) -> Result<Option<Checkpoint>, StoreError> {
    if let Some(found) = rows::checkpoint_until(tx, scope, up_to)? {
        return Ok(Some(found));
    }
    let is_whole = match rows::checkpoint_first(tx, scope)?.and_then(|first| first.event_id) {
        // After a purge, the first checkpoint is that of the last event that the purge removed. So
        // if the event of the first checkpoint is still there, no event was removed.
        Some(first) => rows::find(tx, scope, first)?.is_some(),
        None => true,
    };
    Ok(is_whole.then(Checkpoint::default))
}

/// The count and the hash up to an event, or up to the newest one (`None`). Refused if events that
/// are needed were removed, and if about `COMPUTED_MAX` events or more lack a checkpoint.
pub fn checkpoint(
    tx: &mut dyn Tx,
    scope: Scope,
    up_to: Option<Id<kind::Event>>,
) -> Result<Checkpoint, OperationError> {
    let up_to = up_to.unwrap_or(Id::from_u128(u128::MAX));
    let Some(mut at) = base(tx, scope, up_to)? else {
        return Err(Refusal::field(
            Code::RequestQueryParameterInvalid,
            "event_id",
            "Events are kept 30 days, and this one is older. Take a checkpoint of a later event.",
        )
        .into());
    };
    let mut computed_count = 0;
    loop {
        let events = rows::after(tx, scope, at.event_id, up_to, READ_MAX)?;
        at = walk(at, &events, |_| {});
        computed_count += events.len() as i64;
        if (events.len() as i64) < READ_MAX {
            return Ok(at);
        }
        if computed_count >= COMPUTED_MAX {
            let message = "The checkpoints of older events are still being computed.";
            return Err(Refusal::new(Code::ServiceUnavailable, message).into());
        }
    }
}

/// Refuses a cursor if events after it may have been removed, because a caller that pages from
/// there may miss some.
pub fn check_cursor(
    tx: &mut dyn Tx,
    now: &Now,
    scope: Scope,
    cursor: Id<kind::Event>,
) -> Result<(), OperationError> {
    let kept_since_milliseconds = (now.instant() - EVENT_KEPT_SECONDS) * 1000;
    if cursor.milliseconds() >= kept_since_milliseconds
        || rows::checkpoint_until(tx, scope, cursor)?.is_some()
    {
        return Ok(());
    }
    let message = "Events are kept 30 days, and starting_after is older: events may have been \
                   missed. Page without a cursor, and fetch the objects that you follow.";
    Err(Refusal::field(Code::RequestQueryParameterInvalid, "starting_after", message).into())
}

/// Writes the checkpoints of up to [`READ_MAX`] events after the last checkpoint. Answers whether
/// there may be more to write.
fn advance(tx: &mut dyn Tx, scope: Scope) -> Result<bool, StoreError> {
    keys::rows::lock_account(tx, scope)?;
    let highest = Id::from_u128(u128::MAX);
    let at = rows::checkpoint_until(tx, scope, highest)?.unwrap_or_default();
    let events = rows::after(tx, scope, at.event_id, highest, READ_MAX)?;
    let mut at_steps = Vec::new();
    walk(at, &events, |at| {
        if at.events_count % STEP == 0 {
            at_steps.push(*at);
        }
    });
    rows::insert_checkpoints(tx, scope, &at_steps)?;
    Ok(events.len() as i64 == READ_MAX)
}

/// Whether [`advance`] has something to write.
fn is_due(tx: &mut dyn Tx, scope: Scope) -> Result<bool, StoreError> {
    let at = rows::checkpoint_until(tx, scope, Id::from_u128(u128::MAX))?.unwrap_or_default();
    rows::has_after(tx, scope, at.event_id, events_to_next(at.events_count))
}

/// How many more events the next checkpoint needs, if the last checkpoint counts `events_count`
/// events. This count need not be a multiple of [`STEP`], because a purge also writes checkpoints.
const fn events_to_next(events_count: i64) -> i64 {
    STEP - events_count % STEP
}

/// Looks at the next accounts after `after` that have events, at most `accounts_max`, with one
/// statement. Answers the accounts for which [`advance`] has something to write, and the last
/// account that was looked at (`None` if there was none to look at).
fn next_due(
    tx: &mut dyn Tx,
    after: Scope,
    accounts_max: i64,
) -> Result<(Vec<Scope>, Option<Scope>), StoreError> {
    let reached = rows::reach_of_each(tx, after, accounts_max, STEP)?;
    let last = reached.last().map(|reach| reach.scope);
    let due = reached.into_iter().filter(|reach| {
        reach.newer_events_count >= events_to_next(reach.checkpointed_events_count)
    });
    Ok((due.map(|reach| reach.scope).collect(), last))
}

/// Removes up to `rows_max` expired events of one account, and stores a checkpoint for the last of
/// them. `last_before` first finds the last event to remove. So the statement that removes them
/// reads only a range of the primary key, whatever the store's query planner does.
pub fn purge(
    tx: &mut dyn Tx,
    now: &Now,
    scope: Scope,
    rows_max: i64,
) -> Result<Purged, OperationError> {
    let bound = Id::lowest_at((now.instant() - EVENT_KEPT_SECONDS) * 1000);
    let mut removed_count = 0;
    loop {
        let oldest = rows::oldest(tx, scope)?;
        let rows_left = rows_max - removed_count as i64;
        let is_expired = oldest.is_some_and(|id| id < bound);
        if !is_expired || rows_left <= 0 {
            return Ok(Purged { removed_count, oldest_milliseconds: oldest.map(Id::milliseconds) });
        }
        let Some(last) = rows::last_before(tx, scope, bound, rows_left)? else { continue };
        keys::rows::lock_account(tx, scope)?;
        let at = checkpoint(tx, scope, Some(last))?;
        rows::insert_checkpoints(tx, scope, &[at])?;
        rows::remove_checkpoints_before(tx, scope, last)?;
        removed_count += rows::remove_until(tx, scope, last)?;
    }
}

/// What a purge of one account removed and left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Purged {
    pub removed_count: u64,
    /// When the oldest event that is left was sequenced, in milliseconds since 1970.
    pub oldest_milliseconds: Option<i64>,
}

/// Writes the checkpoints of events that this node's sequencer has made, until `stop`. It begins
/// with every account that has events, because other nodes and earlier releases may have left
/// events without checkpoints.
pub async fn run(app: Arc<AppState>, mut stop: Stop) {
    // The last account that the first look has reached; `None` once it has reached all.
    let mut looked_to = Some(Scope::from_code(0));
    while !is_stopped(&stop) {
        while let Some(after) = looked_to.filter(|_| !is_stopped(&stop)) {
            let look = move |tx: &mut dyn Tx| Ok(next_due(tx, after, FOUND_AT_ONCE)?);
            match app.store.read(Cost::Scan, look).await {
                Ok((due, last)) => {
                    write_due(&app, due, &stop).await;
                    looked_to = last;
                }
                Err(failure) => {
                    tracing::warn!(?failure, "checkpoints of events could not be read");
                    break;
                }
            }
        }
        let scopes: BTreeSet<Scope> =
            app.store.signals.event_waits.take_changed().into_iter().collect();
        let scopes: Vec<Scope> = scopes.into_iter().collect();
        for part in scopes.chunks(LOOKED_AT_ONCE) {
            catch_up(&app, part.to_vec(), &stop).await;
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(LOOK_SECONDS)) => {}
            _ = stop.changed() => {}
        }
    }
}

/// Writes the missing checkpoints of some accounts. After an error, an account is tried again when
/// it has got its next event.
async fn catch_up(app: &AppState, scopes: Vec<Scope>, stop: &Stop) {
    let look = move |tx: &mut dyn Tx| {
        let due = scopes.into_iter().map(|scope| Ok((scope, is_due(tx, scope)?)));
        Ok(due.collect::<Result<Vec<_>, StoreError>>()?)
    };
    let due = match app.store.read(Cost::Scan, look).await {
        Ok(looks) => looks.into_iter().filter(|(_, due)| *due).map(|(scope, _)| scope).collect(),
        Err(failure) => {
            tracing::warn!(?failure, "checkpoints of events could not be read");
            return;
        }
    };
    write_due(app, due, stop).await;
}

async fn write_due(app: &AppState, due: Vec<Scope>, stop: &Stop) {
    for scope in due {
        while !is_stopped(stop) {
            match app.store.write(move |tx, _| Ok(advance(tx, scope)?)).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(failure) => {
                    tracing::warn!(?failure, "checkpoints of events could not be written");
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::id::Minter;
    use crate::kernel::{AnyId, Mode};
    use crate::store::migrate;
    use crate::store::sqlite::SqliteTx;

    const DAY_MILLISECONDS: i64 = 24 * 3_600 * 1000;

    fn now_at(milliseconds: i64) -> Now {
        Now::new(milliseconds, Minter::above(0), [1; 32])
    }

    /// Events of one account, a second apart.
    fn events(from_milliseconds: i64, count: i64) -> Vec<EventRow> {
        let event = |number: i64| {
            let milliseconds = from_milliseconds + number * 1000;
            let id = Id::lowest_at(milliseconds);
            let linked = AnyId { kind: crate::kernel::ObjectKind::Transfer, value: 7 };
            let event_type = "transfer.status.funded".to_owned();
            EventRow { id, event_type, linked, created: milliseconds / 1000 }
        };
        (0..count).map(event).collect()
    }

    #[test]
    fn the_link_is_what_the_documents_say() {
        let event = &events(1_790_000_000_000, 1)[0];
        let text = format!(
            "{} event_{} transfer.status.funded transfer_00000000000000000000000007 1790000000",
            "0".repeat(64),
            &event.id.to_string()[6..]
        );
        let hash: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        assert_eq!(link(&[0; 32], event), hash);
    }

    #[test]
    fn the_first_look_finds_what_a_look_at_each_account_finds() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let tx: &mut dyn Tx = &mut SqliteTx::new(&connection);
        migrate::migrate(tx).unwrap();
        let mut looked_at = 0;
        for number in 1..=40 {
            let scope = Scope::new(number, Mode::Test);
            // Most have too few events for a checkpoint, and every third has none.
            let count = [0, 3, STEP - 1, 0, STEP, 2 * STEP][number as usize % 6];
            let made: Vec<_> = events(0, count).into_iter().map(|event| (scope, event)).collect();
            rows::insert_all(tx, &made).unwrap();
            looked_at += usize::from(count > 0);
            if number % 4 == 0 {
                // A purge can leave a checkpoint between two steps.
                let last = made.last().map(|(_, event)| event.id).unwrap_or(Id::from_u128(1));
                let at = Checkpoint { event_id: Some(last), events_count: 7, hash: [0; 32] };
                rows::insert_checkpoints(tx, scope, &[at]).unwrap();
            }
        }
        let (mut found, mut after, mut statements) = (Vec::new(), Scope::from_code(0), 0);
        loop {
            let (due, last) = next_due(tx, after, 10).unwrap();
            found.extend(due);
            statements += 1;
            match last {
                Some(last) => after = last,
                None => break,
            }
        }
        let each = (1..=40).map(|number| Scope::new(number, Mode::Test));
        let expected: Vec<_> = each.filter(|scope| is_due(tx, *scope).unwrap()).collect();
        assert_eq!(found, expected);
        assert!(!found.is_empty() && found.len() < looked_at, "some are due: {found:?}");
        assert_eq!(statements, looked_at.div_ceil(10) + 1);
    }

    #[test]
    fn the_chain_is_the_same_before_and_after_its_checkpoints_and_a_purge() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let tx: &mut dyn Tx = &mut SqliteTx::new(&connection);
        migrate::migrate(tx).unwrap();
        let (own, other) = (Scope::new(1, Mode::Test), Scope::new(2, Mode::Test));
        let start = 1_790_000_000_000;
        let all = events(start, 5 * STEP + 17);
        let both: Vec<(Scope, EventRow)> =
            all.iter().flat_map(|event| [(own, event.clone()), (other, event.clone())]).collect();
        rows::insert_all(tx, &both).unwrap();
        // What a caller computes from the events that it was shown.
        let mut wanted = vec![Checkpoint::default()];
        for event in &all {
            wanted.push(walk(*wanted.last().unwrap(), std::slice::from_ref(event), |_| {}));
        }
        let check = |tx: &mut dyn Tx, scope, from: usize| {
            for (index, at) in wanted.iter().enumerate().skip(from.max(1)) {
                let found = checkpoint(tx, scope, at.event_id).ok().unwrap();
                assert!(found == *at, "after {index} events");
            }
            assert!(checkpoint(tx, scope, None).ok().unwrap() == *wanted.last().unwrap());
        };
        check(tx, own, 0);
        assert!(is_due(tx, own).unwrap());
        while advance(tx, own).unwrap() {}
        assert!(!is_due(tx, own).unwrap());
        check(tx, own, 0);
        // A purge ends between two steps: `own` has checkpoints, and `other` has none yet.
        let removed = 3 * STEP as usize / 2;
        let late = now_at(start + removed as i64 * 1000 + 30 * DAY_MILLISECONDS);
        for scope in [own, other] {
            let mut removed_count = 0;
            loop {
                let purged = purge(tx, &late, scope, 100).ok().unwrap();
                removed_count += purged.removed_count;
                if purged.removed_count == 0 {
                    break;
                }
            }
            assert_eq!(removed_count, removed as u64);
            check(tx, scope, removed);
            assert!(checkpoint(tx, scope, wanted[removed - 1].event_id).is_err(), "it is removed");
            let cursor = |index: usize| wanted[index].event_id.unwrap();
            assert!(check_cursor(tx, &late, scope, cursor(removed)).is_ok(), "none is missing");
            assert!(check_cursor(tx, &late, scope, cursor(removed - 1)).is_err());
            assert!(check_cursor(tx, &late, scope, cursor(removed + 1)).is_ok());
        }
        while advance(tx, other).unwrap() {}
        check(tx, other, removed);
        // All events are removed, and the chain continues with the next one.
        let later = now_at(start + 90 * DAY_MILLISECONDS);
        while purge(tx, &later, own, 500).ok().unwrap().removed_count > 0 {}
        assert!(checkpoint(tx, own, None).ok().unwrap() == *wanted.last().unwrap());
        let next = events(start + 90 * DAY_MILLISECONDS, 1);
        rows::insert_all(tx, &[(own, next[0].clone())]).unwrap();
        assert!(
            checkpoint(tx, own, None).ok().unwrap() == walk(*wanted.last().unwrap(), &next, |_| {})
        );
    }
}
