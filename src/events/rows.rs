//! The rows of events.

use std::ops::RangeInclusive;

use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::{AnyId, Id, InternalId, Scope, StoreError};
use crate::store::list::{self, Listing};
use crate::store::{self, Row, Tx, Value};
use crate::values;

#[derive(Clone)]
pub struct EventRow {
    pub id: Id<kind::Event>,
    pub event_type: String,
    /// The object that the event is about.
    pub linked: AnyId,
    /// When the event was created, in Unix seconds, business time.
    pub created: i64,
}

const COLUMNS: &str = "id, type, linked_id, linked_object, created";

pub fn read(mut row: Row) -> Result<EventRow, StoreError> {
    Ok(EventRow {
        id: row.id()?,
        event_type: row.text()?,
        linked: row.any_id()?,
        created: row.int()?,
    })
}

/// Inserts events, which may be of several accounts.
pub fn insert_all(tx: &mut dyn Tx, events: &[(Scope, EventRow)]) -> Result<(), StoreError> {
    let mut rows: Vec<[Value<'_>; 6]> = Vec::with_capacity(events.len());
    for (scope, event) in events {
        let linked_object = event.linked.kind.as_str();
        rows.push([
            (*scope).into(),
            event.id.into(),
            (&event.event_type).into(),
            event.linked.into(),
            linked_object.into(),
            event.created.into(),
        ]);
    }
    store::insert_all(tx, "events", "scope, id, type, linked_id, linked_object, created", &rows)
}

pub fn find(
    tx: &mut dyn Tx,
    scope: Scope,
    id: Id<kind::Event>,
) -> Result<Option<EventRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM events WHERE scope = ?1 AND id = ?2");
    tx.row(&sql, values![scope, id])?.map(read).transpose()
}

/// The events of an account with these identifiers, in no particular order. Events that were
/// removed are missing.
pub fn find_all(
    tx: &mut dyn Tx,
    scope: Scope,
    ids: &[Id<kind::Event>],
) -> Result<Vec<EventRow>, StoreError> {
    let ids: Vec<Value<'_>> = ids.iter().map(|id| Value::from(*id)).collect();
    let sql = format!("SELECT {COLUMNS} FROM events WHERE scope = ?1 AND id");
    tx.rows_each(&sql, scope.into(), &ids)?.into_iter().map(read).collect()
}

/// The events of an account that were created in a range of time (Unix seconds, business time), in
/// the order of their identifiers. Only identifiers from `from` on and below `before` count.
pub fn between(
    tx: &mut dyn Tx,
    scope: Scope,
    from: Id<kind::Event>,
    before: Id<kind::Event>,
    created: RangeInclusive<i64>,
    rows_max: i64,
) -> Result<Vec<EventRow>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM events WHERE scope = ?1 AND id >= ?2 AND id < ?3 AND created >= ?4 \
         AND created <= ?5 ORDER BY id LIMIT ?6"
    );
    tx.rows(&sql, values![scope, from, before, *created.start(), *created.end(), rows_max])?
        .into_iter()
        .map(read)
        .collect()
}

pub fn list(tx: &mut dyn Tx, scope: Scope, page: &Page) -> Result<(Vec<Row>, bool), StoreError> {
    list::read(
        tx,
        &Listing { table: "events", columns: COLUMNS, key: ("scope", scope.into()) },
        page,
    )
}

/// The newest events of an account, newest first.
pub fn latest(tx: &mut dyn Tx, scope: Scope, rows_max: i64) -> Result<Vec<EventRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM events WHERE scope = ?1 ORDER BY id DESC LIMIT ?2");
    tx.rows(&sql, values![scope, rows_max])?.into_iter().map(read).collect()
}

/// The identifier of the newest event of each of these accounts. Accounts without events are left
/// out.
pub fn newest(tx: &mut dyn Tx, scopes: &[Scope]) -> Result<Vec<(Scope, u128)>, StoreError> {
    let sql = "SELECT id FROM events WHERE scope = ?1 ORDER BY id DESC LIMIT 1";
    let mut newest = Vec::with_capacity(scopes.len());
    for scope in scopes {
        if let Some(mut row) = tx.row(sql, values![*scope])? {
            newest.push((*scope, row.id::<kind::Event>()?.as_u128()));
        }
    }
    Ok(newest)
}

/// The hash chain of an account up to an event: how many events there are, and the hash over them
/// (`events::chain`). The default is the beginning, before any event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checkpoint {
    pub event_id: Option<Id<kind::Event>>,
    pub events_count: i64,
    pub hash: [u8; 32],
}

const CHECKPOINT_COLUMNS: &str = "event_id, events_count, hash";

fn read_checkpoint(mut row: Row) -> Result<Checkpoint, StoreError> {
    Ok(Checkpoint { event_id: Some(row.id()?), events_count: row.int()?, hash: row.array()? })
}

/// The last stored checkpoint at or before an event.
pub fn checkpoint_until(
    tx: &mut dyn Tx,
    scope: Scope,
    up_to: Id<kind::Event>,
) -> Result<Option<Checkpoint>, StoreError> {
    let sql = format!(
        "SELECT {CHECKPOINT_COLUMNS} FROM event_checkpoints WHERE scope = ?1 AND event_id <= ?2 \
         ORDER BY event_id DESC LIMIT 1"
    );
    tx.row(&sql, values![scope, up_to])?.map(read_checkpoint).transpose()
}

pub fn checkpoint_first(tx: &mut dyn Tx, scope: Scope) -> Result<Option<Checkpoint>, StoreError> {
    let sql = format!(
        "SELECT {CHECKPOINT_COLUMNS} FROM event_checkpoints WHERE scope = ?1 ORDER BY event_id \
         LIMIT 1"
    );
    tx.row(&sql, values![scope])?.map(read_checkpoint).transpose()
}

/// Inserts checkpoints. One that is stored already stays; it has the same values, whoever wrote it.
pub fn insert_checkpoints(
    tx: &mut dyn Tx,
    scope: Scope,
    checkpoints: &[Checkpoint],
) -> Result<(), StoreError> {
    for checkpoint in checkpoints {
        tx.execute(
            "INSERT INTO event_checkpoints (scope, event_id, events_count, hash) VALUES (?1, ?2, \
             ?3, ?4) ON CONFLICT (scope, event_id) DO NOTHING",
            values![scope, checkpoint.event_id, checkpoint.events_count, &checkpoint.hash],
        )?;
    }
    Ok(())
}

pub fn remove_checkpoints_before(
    tx: &mut dyn Tx,
    scope: Scope,
    id: Id<kind::Event>,
) -> Result<(), StoreError> {
    tx.execute(
        "DELETE FROM event_checkpoints WHERE scope = ?1 AND event_id < ?2",
        values![scope, id],
    )
    .map(|_| ())
}

/// The events after `after` (`None`: from the first on) up to and including `up_to`, at most
/// `rows_max`.
pub fn after(
    tx: &mut dyn Tx,
    scope: Scope,
    after: Option<Id<kind::Event>>,
    up_to: Id<kind::Event>,
    rows_max: i64,
) -> Result<Vec<EventRow>, StoreError> {
    let after = after.unwrap_or(Id::from_u128(0));
    let sql = format!(
        "SELECT {COLUMNS} FROM events WHERE scope = ?1 AND id > ?2 AND id <= ?3 ORDER BY id \
         LIMIT ?4"
    );
    tx.rows(&sql, values![scope, after, up_to, rows_max])?.into_iter().map(read).collect()
}

/// Whether at least `count` events come after `after` (`None`: from the first on). `count` has to
/// be 1 or more.
pub fn has_after(
    tx: &mut dyn Tx,
    scope: Scope,
    after: Option<Id<kind::Event>>,
    count: i64,
) -> Result<bool, StoreError> {
    let after = after.unwrap_or(Id::from_u128(0));
    let sql = "SELECT id FROM events WHERE scope = ?1 AND id > ?2 ORDER BY id LIMIT 1 OFFSET ?3";
    Ok(tx.row(sql, values![scope, after, count - 1])?.is_some())
}

/// The identifier of the oldest event of an account.
pub fn oldest(tx: &mut dyn Tx, scope: Scope) -> Result<Option<Id<kind::Event>>, StoreError> {
    let sql = "SELECT id FROM events WHERE scope = ?1 ORDER BY id LIMIT 1";
    tx.row(sql, values![scope])?.map(|mut row| row.id()).transpose()
}

/// The next accounts after the account `after` that have events, at most `accounts_max`, with the
/// oldest event of each. Each of these accounts costs two look-ups by key. An account without
/// events costs nothing.
pub fn oldest_of_each(
    tx: &mut dyn Tx,
    after: Scope,
    accounts_max: i64,
) -> Result<Vec<(Scope, Id<kind::Event>)>, StoreError> {
    let sql = "SELECT scope, id FROM (WITH RECURSIVE found (scope, place) AS (SELECT (SELECT \
               e.scope FROM events e WHERE e.scope > ?1 ORDER BY e.scope LIMIT 1), CAST(1 AS \
               BIGINT) UNION ALL SELECT (SELECT e.scope FROM events e WHERE e.scope > found.scope \
               ORDER BY e.scope LIMIT 1), found.place + 1 FROM found WHERE found.scope IS NOT NULL \
               AND found.place < ?2) SELECT found.scope AS scope, (SELECT e.id FROM events e WHERE \
               e.scope = found.scope ORDER BY e.id LIMIT 1) AS id FROM found) AS oldest WHERE id \
               IS NOT NULL ORDER BY scope";
    let rows = tx.rows(sql, values![after, accounts_max])?;
    rows.into_iter().map(|mut row| Ok((row.scope()?, row.id()?))).collect()
}

/// How far the checkpoints of an account's events reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reach {
    pub scope: Scope,
    /// How many events there are up to the last checkpoint.
    pub checkpointed_events_count: i64,
    /// How many events are newer than the last checkpoint, counted up to a limit.
    pub newer_events_count: i64,
}

/// The next accounts after the account `after` that have events, at most `accounts_max`, and how
/// far the checkpoints of each reach. Events that are newer than the last checkpoint are counted up
/// to `newer_max`. An account without events costs nothing.
pub fn reach_of_each(
    tx: &mut dyn Tx,
    after: Scope,
    accounts_max: i64,
    newer_max: i64,
) -> Result<Vec<Reach>, StoreError> {
    let sql = "SELECT reached.scope AS scope, reached.events_count, (SELECT COUNT(*) FROM (SELECT \
               e.id FROM events e WHERE e.scope = reached.scope AND e.id > reached.event_id ORDER \
               BY e.id LIMIT ?3) newer) FROM (SELECT found.scope AS scope, COALESCE((SELECT \
               c.event_id FROM event_checkpoints c WHERE c.scope = found.scope ORDER BY c.event_id \
               DESC LIMIT 1), ?4) AS event_id, COALESCE((SELECT c.events_count FROM \
               event_checkpoints c WHERE c.scope = found.scope ORDER BY c.event_id DESC LIMIT 1), \
               0) AS events_count FROM (WITH RECURSIVE found (scope, place) AS (SELECT (SELECT \
               e.scope FROM events e WHERE e.scope > ?1 ORDER BY e.scope LIMIT 1), CAST(1 AS \
               BIGINT) UNION ALL SELECT (SELECT e.scope FROM events e WHERE e.scope > found.scope \
               ORDER BY e.scope LIMIT 1), found.place + 1 FROM found WHERE found.scope IS NOT NULL \
               AND found.place < ?2) SELECT scope FROM found WHERE scope IS NOT NULL) AS found) AS \
               reached ORDER BY scope";
    let beginning: Id<kind::Event> = Id::from_u128(0);
    let rows = tx.rows(sql, values![after, accounts_max, newer_max, beginning])?;
    let read = |mut row: Row| {
        Ok(Reach {
            scope: row.scope()?,
            checkpointed_events_count: row.int()?,
            newer_events_count: row.int()?,
        })
    };
    rows.into_iter().map(read).collect()
}

/// Among the oldest `rows_max` events of an account with identifiers below `bound`, the identifier
/// of the newest.
pub fn last_before(
    tx: &mut dyn Tx,
    scope: Scope,
    bound: Id<kind::Event>,
    rows_max: i64,
) -> Result<Option<Id<kind::Event>>, StoreError> {
    let sql = "SELECT old.id FROM (SELECT id FROM events WHERE scope = ?1 AND id < ?2 ORDER BY id \
               LIMIT ?3) old ORDER BY old.id DESC LIMIT 1";
    tx.row(sql, values![scope, bound, rows_max])?.map(|mut row| row.id()).transpose()
}

/// Removes an account's events up to and including `last`.
pub fn remove_until(
    tx: &mut dyn Tx,
    scope: Scope,
    last: Id<kind::Event>,
) -> Result<u64, StoreError> {
    tx.execute("DELETE FROM events WHERE scope = ?1 AND id <= ?2", values![scope, last])
}

/// The lowest identifier of an outbox row, if there is a row. On the embedded store, the sequencer
/// runs once within each commit of the server that writes outbox rows, and usually takes them all.
/// Rows stay in the outbox only if a command beside the server wrote them, if there are more of
/// them than one run takes, or if the run failed.
pub fn outbox_first(tx: &mut dyn Tx) -> Result<Option<Vec<u8>>, StoreError> {
    tx.row("SELECT id FROM outbox ORDER BY id LIMIT 1", &[])?.map(|mut row| row.bytes()).transpose()
}

/// Writes an outbox row: an event that has no identifier yet. `id` identifies only the row.
pub fn insert_outbox(
    tx: &mut dyn Tx,
    scope: Scope,
    id: InternalId,
    event_type: &str,
    linked: AnyId,
    created: i64,
) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO outbox (id, scope, type, linked_id, linked_object, created) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        values![id, scope, event_type, linked, linked.kind.as_str(), created],
    )
}

/// An outbox row as it was read.
pub struct OutboxRow {
    pub id: Vec<u8>,
    pub scope: Scope,
    pub event_type: String,
    pub linked: AnyId,
    pub created: i64,
    /// On PostgreSQL, the row's number from the sequence `outbox_places`; `None` on the embedded
    /// store.
    pub place: Option<i64>,
}

/// The first outbox rows, in the order in which they become events. On a shared store that is the
/// order of `place`, which the database counts, because the clocks of two nodes differ by a little.
pub fn outbox(tx: &mut dyn Tx, rows_max: i64) -> Result<Vec<OutboxRow>, StoreError> {
    tx.rows(&outbox_query(tx.is_shared()), values![rows_max])?
        .into_iter()
        .map(|mut row| {
            Ok(OutboxRow {
                id: row.bytes()?,
                scope: row.scope()?,
                event_type: row.text()?,
                linked: row.any_id()?,
                created: row.int()?,
                place: row.int_or_null()?,
            })
        })
        .collect()
}

/// Announces the query of [`outbox`], so that the store sends it with the next statement.
pub fn prefetch_outbox(tx: &mut dyn Tx, rows_max: i64) -> Result<(), StoreError> {
    tx.prefetch(&outbox_query(tx.is_shared()), values![rows_max])
}

fn outbox_query(is_shared: bool) -> String {
    let order = if is_shared { "place, id" } else { "id" };
    format!(
        "SELECT id, scope, type, linked_id, linked_object, created, place FROM outbox \
         ORDER BY {order} LIMIT ?1"
    )
}

/// Removes outbox rows that became events. On a shared store it removes only the rows that were
/// read, because rows with lower identifiers may become visible at any moment.
///
/// On a shared store it finds the rows by `place`, the first column of the index `outbox_place`. To
/// find them by `id` would be slow: if PostgreSQL's planner believes that the table has hardly any
/// rows, it scans the whole of that index for each row to remove. And until a vacuum, the index
/// keeps the entries of removed rows.
pub fn remove_outbox(tx: &mut dyn Tx, sequenced: &[OutboxRow]) -> Result<(), StoreError> {
    if tx.is_shared() {
        let places: Vec<Value<'_>> = sequenced.iter().map(|row| row.place.into()).collect();
        store::delete_all(tx, "outbox", "place", &places)?;
    } else if let Some(last) = sequenced.last() {
        tx.execute("DELETE FROM outbox WHERE id <= ?1", values![&last.id])?;
    }
    Ok(())
}
