//! The segments of the idempotency keys (the column `part` of their tables): new keys share the
//! pages of the newest segment, and filters say which older segment may hold a key.
//!
//! Keys are hashes, so in one large table each would dirty a page of its own. Here they go to the
//! newest segment until it has [`KEYS_IN_SEGMENT_MAX`]. Then the segment is closed: one transaction
//! makes a filter of its rows and stores it, and no key is added later, unless that filter is lost.
//! A look-up reads the newest segment and those whose filter says "perhaps". A segment whose filter
//! is missing or damaged is searched for every key.
//!
//! The tables are the truth; [`KeySegments`] says in memory what they hold. At the beginning of a
//! transaction it is made from the tables again if more than the keys of the newest segment may
//! have changed: after a segment was closed or purged, after a group was undone, and after another
//! process wrote.
//!
//! PostgreSQL has one segment and no filters.

use std::collections::BTreeMap;

use super::Tx;
use super::key_filter::KeyFilter;
use crate::kernel::StoreError;
use crate::values;

/// A segment is closed once it has about so many keys: the count is an estimate. It then has about
/// 200 pages. So the keys of one commit share some pages, and the keys between two checkpoints of
/// SQLite share nearly all.
pub const KEYS_IN_SEGMENT_MAX: usize = 16_384;
/// Keys that are read at once when a segment is closed.
const KEYS_AT_ONCE: i64 = 1_024;
const SEGMENT_FIRST: i64 = 1;

struct Closed {
    segment: i64,
    /// As stored beside the filter. It also tells two filters of one segment apart: a segment whose
    /// filter is lost may take keys again, and then gets another filter.
    checksum: Option<i64>,
    /// `None` if it is missing or damaged.
    filter: Option<KeyFilter>,
}

/// Where a store's idempotency keys are. Each process that writes keeps its own copy.
pub struct KeySegments {
    keys_max: usize,
    newest: i64,
    /// An estimate: keys that were undone count too, those of other processes do not.
    newest_keys_count: usize,
    /// All segments with keys except the newest, in rising order.
    closed: Vec<Closed>,
    is_stale: bool,
}

/// The number of the only segment, in a store that has one.
pub const SINGLE_SEGMENT: i64 = 0;

impl KeySegments {
    /// For a store that keeps all keys in one segment.
    pub fn single() -> KeySegments {
        KeySegments {
            keys_max: usize::MAX,
            newest: SINGLE_SEGMENT,
            newest_keys_count: 0,
            closed: Vec::new(),
            is_stale: false,
        }
    }

    /// Reads which segments there are, inside a transaction. `keys_max` is [`KEYS_IN_SEGMENT_MAX`]
    /// except in tests.
    pub fn load(tx: &mut dyn Tx, keys_max: usize) -> Result<KeySegments, StoreError> {
        let mut segments = KeySegments {
            keys_max,
            newest: 0,
            newest_keys_count: 0,
            closed: Vec::new(),
            is_stale: true,
        };
        segments.refresh(tx)?;
        Ok(segments)
    }

    /// The segments that may hold a key, the newest first. No other segment holds it.
    pub fn candidates<'a>(&'a self, key_hash: &'a [u8; 16]) -> impl Iterator<Item = i64> + 'a {
        let may_hold = |closed: &&Closed| {
            closed.filter.as_ref().is_none_or(|filter| filter.may_hold(key_hash))
        };
        std::iter::once(self.newest)
            .chain(self.closed.iter().rev().filter(may_hold).map(|closed| closed.segment))
    }

    /// The segment that a new key goes to. Counts the key, which the caller inserts.
    pub fn segment_for_new_key(&mut self) -> i64 {
        self.newest_keys_count = self.newest_keys_count.saturating_add(1);
        self.newest
    }

    /// Makes the next transaction read the tables again.
    pub const fn mark_stale(&mut self) {
        self.is_stale = true;
    }

    /// Reads the tables again if they may have changed. Call it in each transaction that writes,
    /// before anything is written.
    pub fn refresh(&mut self, tx: &mut dyn Tx) -> Result<(), StoreError> {
        if !self.is_stale {
            return Ok(());
        }
        let rows = tx.rows("SELECT part, checksum FROM idempotency_filters ORDER BY part", &[])?;
        let stored: BTreeMap<i64, i64> = rows
            .into_iter()
            .map(|mut row| Ok((row.int()?, row.int()?)))
            .collect::<Result<_, StoreError>>()?;
        let mut with_keys = Vec::new();
        while let Some(segment) = next_with_keys(tx, with_keys.last().copied())? {
            with_keys.push(segment);
        }
        let after_closed =
            stored.last_key_value().map_or(SEGMENT_FIRST, |(segment, _)| segment + 1);
        let newest = with_keys.last().copied().unwrap_or(SEGMENT_FIRST).max(after_closed);
        with_keys.retain(|segment| *segment != newest);
        let mut known: BTreeMap<i64, Closed> = std::mem::take(&mut self.closed)
            .into_iter()
            .map(|closed| (closed.segment, closed))
            .collect();
        let mut closed = Vec::with_capacity(with_keys.len());
        for segment in with_keys {
            let checksum = stored.get(&segment).copied();
            closed.push(match known.remove(&segment) {
                Some(known) if known.checksum == checksum => known,
                _ => Closed { segment, checksum, filter: filter_of(tx, segment)? },
            });
        }
        if newest != self.newest {
            let counted =
                tx.row("SELECT COUNT(*) FROM idempotency_keys WHERE part = ?1", values![newest])?;
            self.newest_keys_count =
                usize::try_from(counted.map_or(Ok(0), |mut row| row.int())?).unwrap_or(0);
        }
        (self.newest, self.closed, self.is_stale) = (newest, closed, false);
        Ok(())
    }

    /// Whether [`KeySegments::close`] is due.
    pub const fn is_full(&self) -> bool {
        self.newest_keys_count >= self.keys_max
    }

    /// Closes the newest segment by storing its filter. If this is undone, the segment stays the
    /// newest, and closing is tried again later.
    pub fn close(&mut self, tx: &mut dyn Tx) -> Result<(), StoreError> {
        let mut keys: Vec<[u8; 16]> = Vec::new();
        // If this fails, it is tried again after half a segment of new keys, not at once.
        self.newest_keys_count = self.keys_max / 2;
        loop {
            let last: &[u8] = keys.last().map_or(&[], |key| key.as_slice());
            let rows = tx.rows(
                "SELECT key_hash FROM idempotency_keys WHERE part = ?1 AND key_hash > ?2 ORDER BY \
                 key_hash LIMIT ?3",
                values![self.newest, last, KEYS_AT_ONCE],
            )?;
            if rows.is_empty() {
                break;
            }
            for mut row in rows {
                keys.push(row.array()?);
            }
        }
        // Counted keys may have been undone. A segment that is less than half full stays open.
        if keys.len() < self.keys_max / 2 {
            self.newest_keys_count = keys.len();
            return Ok(());
        }
        let (filter, checksum) = KeyFilter::of(&keys).to_bytes(self.newest);
        tx.execute_one(
            "INSERT INTO idempotency_filters (part, checksum, filter) VALUES (?1, ?2, ?3)",
            values![self.newest, checksum, &filter],
        )?;
        self.mark_stale();
        Ok(())
    }
}

/// The lowest segment above `above` that has keys. It takes one look-up in the table's index.
fn next_with_keys(tx: &mut dyn Tx, above: Option<i64>) -> Result<Option<i64>, StoreError> {
    let found = tx.row(
        "SELECT MIN(part) FROM idempotency_keys WHERE part > ?1",
        values![above.unwrap_or(i64::MIN)],
    )?;
    found.map_or(Ok(None), |mut row| row.int_or_null())
}

fn filter_of(tx: &mut dyn Tx, segment: i64) -> Result<Option<KeyFilter>, StoreError> {
    let row = tx.row(
        "SELECT checksum, filter FROM idempotency_filters WHERE part = ?1",
        values![segment],
    )?;
    let Some(mut row) = row else { return Ok(None) };
    let read =
        row.int().and_then(|checksum| KeyFilter::from_bytes(segment, &row.bytes()?, checksum));
    Ok(read
        .inspect_err(|error| {
            tracing::warn!(%error, "a filter of idempotency keys cannot be used; its segment is \
             searched for every key")
        })
        .ok())
}

/// Removes the filters of the segments before the oldest one that still has keys. The newest filter
/// stays, so that no number of a segment is used again.
pub fn purge(tx: &mut dyn Tx) -> Result<(), StoreError> {
    let oldest = next_with_keys(tx, None)?.unwrap_or(i64::MAX);
    let removed = tx.execute(
        "DELETE FROM idempotency_filters WHERE part < ?1 AND part < (SELECT MAX(part) FROM \
         idempotency_filters)",
        values![oldest],
    )?;
    if removed > 0 {
        tx.key_segments()?.mark_stale();
    }
    Ok(())
}
