//! A change of the encryption key while the service runs.
//!
//! 1. The operator gives every node both keys, and each node records that it has them
//!    ([`holders`]).
//! 2. [`begin`] stores that the new key seals. Every transaction that seals asks the store which
//!    key seals. So once [`begin`] is committed, no later transaction seals with the old key.
//! 3. [`await_earlier`] waits for the transactions that had begun before. From then on the values
//!    sealed with the old key only become fewer.
//! 4. [`step`] seals a batch of these values again in a short transaction. It replaces a value only
//!    if the value is still the one that it read. It stores how far it got. If the command is
//!    killed, the next run continues there.
//! 5. The change is over ([`finish`]) when a [`survey`] of every value finds only values that the
//!    new key opens.
//!
//! The store never has an encryption key, only its [`Verifier`], which is no secret. A `row_key` is
//! something else: the primary key of a row that has a sealed value.
//!
//! The fingerprint key stays the same, because idempotency keys, links to pages and decisions about
//! hits are recognised by it. Until the first change it is derived from the encryption key and
//! stored nowhere. The first change stores it sealed.

pub mod holders;
pub mod rows;

use std::time::Duration;

use secrecy::ExposeSecret;

use crate::audit::{self, Action, Fact};
use crate::kernel::seal::{KEY_BYTES, SealedPlace, Sealer, Verifier, key_name};
use crate::kernel::{DecidedBy, InternalId, Now, OperationError, StoreError};
use crate::secrets;
use crate::store::{Cost, Store, Tx, VisibilityFloor, failpoint, meta, migrate};
use rows::Rotation;

/// Rows that one transaction changes: few, so that no request waits long for one of them.
const ROWS_AT_ONCE: i64 = 50;
/// Rows that a [`survey`] reads at once.
const ROWS_SURVEYED_AT_ONCE: i64 = 1_000;
/// How many of the values that no key opens are named. The others are only counted.
const UNREADABLE_SHOWN_MAX: usize = 20;
/// How long [`await_earlier`] waits at most: far longer than a transaction takes, unless its commit
/// waits for a standby.
const EARLIER_SECONDS_MAX: u64 = 60;
/// By how much the nodes' clocks may differ from the database's.
const CLOCK_DIFFERENCE_MILLISECONDS_MAX: i64 = 1_000;

/// The first schema with a table of changes of the key.
const SCHEMA_MIN: i64 = 21;

/// Refuses keys that do not fit the database. During a change, also refuses if one of the two keys
/// is missing. It changes nothing, so it can run before a migration.
pub fn refuse_keys(tx: &mut dyn Tx, verifiers: &[Verifier]) -> Result<(), StoreError> {
    secrets::refuse_unfit_keys(tx, verifiers)?;
    if migrate::schema_version(tx)? < SCHEMA_MIN {
        return Ok(());
    }
    refuse_incomplete_keys(tx, verifiers)
}

/// During a change, refuses unless both keys are given.
pub fn refuse_incomplete_keys(tx: &mut dyn Tx, verifiers: &[Verifier]) -> Result<(), StoreError> {
    let Some(rotation) = rows::running(tx)? else {
        return Ok(());
    };
    if [rotation.old, rotation.new].iter().all(|needed| verifiers.contains(needed)) {
        return Ok(());
    }
    Err(StoreError::Unfit(format!(
        "the encryption key is being changed from {} to {}: give both, in HUNDI_ENCRYPTION_KEY and \
         HUNDI_ENCRYPTION_KEY_NEXT, until `hundi keys rotate-encryption` says that it is done",
        key_name(&rotation.old),
        key_name(&rotation.new)
    )))
}

/// The sealer of a database with the keys that are given. `Err` if the sealing key, whose verifier
/// the store has, is not among them.
pub fn sealer(tx: &mut dyn Tx, keys: &[[u8; KEY_BYTES]]) -> Result<Sealer, StoreError> {
    let sealing = meta::read(tx, secrets::VERIFIER)?.ok_or_else(secrets::key_does_not_fit)?;
    let fingerprint_key = meta::read(tx, SealedPlace::FINGERPRINT_KEY.name())?;
    Sealer::of(keys, &sealing, fingerprint_key.as_deref())?.ok_or_else(secrets::key_does_not_fit)
}

/// What [`begin`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// A change is under way, begun now or by an earlier run: the new key seals.
    Running(Rotation),
    /// The next key seals already, and no change is under way: an earlier run finished it.
    DoneBefore,
    /// Nothing was changed, because these nodes, by name, do not have the new key.
    NodesWithout(Vec<String>),
}

/// Makes the next key seal, or finds a change that was begun before. With `asks_nodes` it changes
/// nothing if a running node lacks the next key. A caller that knows that no node runs passes
/// `false`.
pub fn begin(
    tx: &mut dyn Tx,
    now: &mut Now,
    sealer: &Sealer,
    next: &Verifier,
    asks_nodes: bool,
    by: &DecidedBy,
) -> Result<Begun, StoreError> {
    let stored = meta::read(tx, secrets::VERIFIER)?;
    let newest = rows::newest(tx)?;
    if let Some(running) = newest.as_ref().filter(|rotation| rotation.finished_at.is_none()) {
        return Ok(Begun::Running(running.clone()));
    }
    let old: Verifier =
        stored.and_then(|stored| stored.try_into().ok()).ok_or_else(secrets::key_does_not_fit)?;
    if old == *next {
        return Ok(Begun::DoneBefore);
    }
    // From here to the commit no node starts, and no other change begins.
    meta::replace(tx, secrets::VERIFIER, Some(&old), next)?;
    if asks_nodes {
        let without = holders::nodes_without(tx, now, next)?;
        if !without.is_empty() {
            meta::replace(tx, secrets::VERIFIER, Some(next), &old)?;
            return Ok(Begun::NodesWithout(without));
        }
    }
    if meta::read(tx, SealedPlace::FINGERPRINT_KEY.name())?.is_none() {
        let key = secrets::sealing_key(tx, sealer)?;
        let plain = sealer.fingerprint_key().expose_secret();
        let sealed = key.seal(now.random_bytes(), &SealedPlace::FINGERPRINT_KEY, &[], plain)?;
        meta::replace(tx, SealedPlace::FINGERPRINT_KEY.name(), None, &sealed)?;
    }
    let rotation = Rotation {
        number: newest.map_or(1, |newest| newest.number + 1),
        old,
        new: *next,
        started_at: now.instant(),
        finished_at: None,
        place: SealedPlace::ALL[0].name().to_owned(),
        after_row_key: Vec::new(),
        values_count: 0,
    };
    rows::insert(tx, &rotation)?;
    log(tx, now, &rotation, "begun", by)?;
    Ok(Begun::Running(rotation))
}

/// Writes a step of the change (`begun`, `finished`) to the audit log.
fn log(
    tx: &mut dyn Tx,
    now: &Now,
    rotation: &Rotation,
    step: &str,
    by: &DecidedBy,
) -> Result<(), StoreError> {
    let (from, to) = (key_name(&rotation.old), key_name(&rotation.new));
    let details = [("step", step), ("from", from.as_str()), ("reason", by.reason())];
    audit::append(tx, now, &Fact::by(by, Action::EncryptionKeyChanged, &to, &details))
}

/// Waits until no transaction runs that began before now and may still seal with the old key. `Err`
/// if one still runs after 60 s, or the store fails. Returns at once on the embedded store, whose
/// transactions follow one another.
pub async fn await_earlier(store: &Store) -> Result<(), String> {
    let moment = store.clock.milliseconds() + CLOCK_DIFFERENCE_MILLISECONDS_MAX;
    let floor = InternalId::lowest_at(moment).as_u128();
    for _ in 0..EARLIER_SECONDS_MAX * 10 {
        let floor_found = store.read(Cost::Point, move |tx| Ok(tx.visibility_floor(floor)?)).await;
        match floor_found.map_err(|error| error.to_string())? {
            VisibilityFloor::Passed => return Ok(()),
            VisibilityFloor::At(found) if found >= floor => return Ok(()),
            VisibilityFloor::At(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
    Err("a transaction that began before the change of the key still runs, perhaps one that waits \
         for a standby: run this again when it has ended"
        .into())
}

/// Seals the next rows with the new key. `None` after the last row, or if no change is under way.
pub fn step(
    tx: &mut dyn Tx,
    now: &mut Now,
    sealer: &Sealer,
) -> Result<Option<Rotation>, StoreError> {
    let Some(running) = rows::running(tx)? else { return Ok(None) };
    let at = SealedPlace::ALL.iter().position(|place| place.name() == running.place);
    let Some(index) = at else { return Ok(None) };
    let place = &SealedPlace::ALL[index];
    let page = rows::page(tx, place, &running.after_row_key, ROWS_AT_ONCE)?;
    let mut values_count = running.values_count;
    for row in &page {
        let Some(sealed) = &row.sealed else { continue };
        // A value that no key opens is left as it is; a survey finds it.
        let Some((plain, key)) = sealer.opened(place, &row.id, sealed) else { continue };
        if key == running.new || failpoint("rotation_forgets_senders") && is_forgotten(place) {
            continue;
        }
        let new = sealer.sealing_key(Some(&running.new));
        let new = new.ok_or_else(secrets::key_does_not_fit)?;
        let anew = new.seal(now.random_bytes(), place, &row.id, &plain)?;
        // A value that was changed meanwhile is left as it is. Probably it is sealed with the new
        // key already; if not, a survey finds it, and the next pass takes it.
        values_count += i64::from(rows::replace(tx, place, row, sealed, &anew)?);
    }
    let (place_name, after_row_key) = match (page.last(), SealedPlace::ALL.get(index + 1)) {
        (Some(last), _) => (place.name(), last.row_key.as_slice()),
        (None, Some(next)) => (next.name(), [].as_slice()),
        (None, None) => (ALL_PLACES_DONE, [].as_slice()),
    };
    rows::save_progress(tx, &running, place_name, after_row_key, values_count)?;
    Ok((place_name != ALL_PLACES_DONE).then_some(Rotation { values_count, ..running }))
}

/// Stored instead of the name of a place once all places are done.
const ALL_PLACES_DONE: &str = "";

/// The place that a planted fault leaves out. A test shows that the survey finds its values.
fn is_forgotten(place: &SealedPlace) -> bool {
    *place == SealedPlace::IDENTIFICATION
}

/// Makes [`step`] begin at the first place again. For when a survey found values of the old key.
pub fn pass_again(tx: &mut dyn Tx) -> Result<(), StoreError> {
    let running = rows::running(tx)?;
    running.map_or(Ok(()), |running| {
        let (first, count) = (SealedPlace::ALL[0].name(), running.values_count);
        rows::save_progress(tx, &running, first, &[], count)
    })
}

/// Ends the change. For when a survey found no value of the old key.
pub fn finish(tx: &mut dyn Tx, now: &Now, by: &DecidedBy) -> Result<(), StoreError> {
    let Some(running) = rows::running(tx)? else { return Ok(()) };
    if rows::finish(tx, running.number, now.instant())? {
        log(tx, now, &running, "finished", by)?;
    }
    Ok(())
}

/// What a survey of every sealed value found.
#[derive(Debug, Default)]
pub struct Survey {
    /// How many values each key opens, in the sealer's order.
    pub counts: Vec<(Verifier, u64)>,
    /// Values that none of them opens.
    pub unreadable_count: u64,
    /// The first of those, by place and row ([`rows::SealedRow::label`]).
    pub unreadable: Vec<String>,
    /// The change that is under way.
    pub running: Option<Rotation>,
}

impl Survey {
    pub fn count(&self, key: &Verifier) -> u64 {
        self.counts.iter().find(|(known, _)| known == key).map_or(0, |(_, count)| *count)
    }
}

/// Tries the keys on every sealed value.
pub fn survey(tx: &mut dyn Tx, sealer: &Sealer) -> Result<Survey, StoreError> {
    let counts = sealer.verifiers().into_iter().map(|key| (key, 0)).collect();
    let running = rows::running(tx)?;
    let mut found = Survey { counts, running, ..Survey::default() };
    for place in SealedPlace::ALL {
        let mut after_row_key = Vec::new();
        loop {
            let page = rows::page(tx, place, &after_row_key, ROWS_SURVEYED_AT_ONCE)?;
            let Some(last) = page.last() else { break };
            after_row_key.clone_from(&last.row_key);
            for row in &page {
                let Some(sealed) = &row.sealed else { continue };
                let Some((_, key)) = sealer.opened(place, &row.id, sealed) else {
                    found.unreadable_count += 1;
                    if found.unreadable.len() < UNREADABLE_SHOWN_MAX {
                        found.unreadable.push(row.label(place));
                    }
                    continue;
                };
                if let Some((_, count)) = found.counts.iter_mut().find(|(known, _)| *known == key) {
                    *count += 1;
                }
            }
        }
    }
    Ok(found)
}

/// Repeats [`step`], each time in a transaction of its own, until the last row is done. `report`
/// gets the progress after each step but the last.
pub async fn run_steps(
    store: &Store,
    sealer: std::sync::Arc<Sealer>,
    mut report: impl FnMut(&Rotation),
) -> Result<(), OperationError> {
    loop {
        let sealer = sealer.clone();
        let step = store.write(move |tx, now| Ok(step(tx, now, &sealer)?)).await?;
        let Some(rotation) = step else { return Ok(()) };
        report(&rotation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::seal::StoredAt;
    use crate::store::sqlite::SqliteTx;

    /// The type [`SealedPlace`] keeps values from being sealed elsewhere. This test compares its
    /// list with the schema.
    #[test]
    fn every_sealed_column_of_the_schema_is_a_place() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let tx: &mut dyn Tx = &mut SqliteTx::new(&connection);
        crate::store::migrate::migrate(tx).unwrap();
        let columns = tx
            .rows(
                "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE \
                 m.type = 'table'",
                &[],
            )
            .unwrap();
        let columns: Vec<(String, String)> =
            columns.into_iter().map(|mut row| (row.text().unwrap(), row.text().unwrap())).collect();
        let places: Vec<(String, String)> = SealedPlace::ALL
            .iter()
            .filter_map(|place| match place.at() {
                StoredAt::Meta => None,
                StoredAt::Column { table, column, .. } => Some((table.into(), column.into())),
            })
            .collect();
        for place in &places {
            assert!(columns.contains(place), "{place:?} is no column");
        }
        let named = |name: &str| name.ends_with("_sealed") || name.ends_with("_secret");
        let sealed: Vec<_> = columns.iter().filter(|(_, name)| named(name)).collect();
        assert!(sealed.len() >= 5, "{sealed:?}");
        for column in sealed {
            assert!(places.contains(column), "{column:?} is no place in kernel/seal.rs");
        }
        let mut names: Vec<&str> = SealedPlace::ALL.iter().map(SealedPlace::name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SealedPlace::ALL.len(), "two places have one name");
    }
}
