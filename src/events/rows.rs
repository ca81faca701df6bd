//! The rows of events.

use std::ops::RangeInclusive;

use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::{AnyId, Id, Now, Scope, StoreError};
use crate::store::list::{self, Listing};
use crate::store::{self, Row, Tx, Value};
use crate::values;

#[derive(Clone)]
pub struct EventRow {
    pub id: Id<kind::Event>,
    pub event_type: String,
    pub linked: AnyId,
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

/// Inserts the events of one account and mode, or of several.
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

/// The events of an account with these identifiers, in no particular order, without those that are
/// past their time.
pub fn find_all(
    tx: &mut dyn Tx,
    scope: Scope,
    ids: &[Id<kind::Event>],
) -> Result<Vec<EventRow>, StoreError> {
    let ids: Vec<Value<'_>> = ids.iter().map(|id| Value::from(*id)).collect();
    let sql = format!("SELECT {COLUMNS} FROM events WHERE scope = ?1 AND id");
    store::select_all(tx, &sql, scope.into(), &ids)?.into_iter().map(read).collect()
}

/// The events of an account from one identifier up to, but not with, another, that were created in
/// a range of time.
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

/// The newest event of each of these accounts that has one.
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

/// What a purge of one account left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Purged {
    pub removed_count: u64,
    /// When the oldest event that is left was made, in milliseconds since 1970.
    pub oldest_milliseconds: Option<i64>,
}

/// Removes events of one account past their time, a bounded number at once. The first statement
/// finds how far they go, so that the second is one range of the primary key on every planner.
pub fn purge(
    tx: &mut dyn Tx,
    now: &Now,
    scope: Scope,
    rows_max: i64,
) -> Result<Purged, StoreError> {
    let bound = ((now.instant() - super::EVENT_KEPT_SECONDS).max(0) as u128 * 1000) << 80;
    let oldest = "SELECT id FROM events WHERE scope = ?1 ORDER BY id LIMIT 1";
    let mut removed_count = 0;
    loop {
        let row = tx.row(oldest, values![scope])?;
        let oldest: Option<Id<kind::Event>> = row.map(|mut row| row.id()).transpose()?;
        let rows_left = rows_max - removed_count as i64;
        let is_past = oldest.is_some_and(|id| id.as_u128() < bound);
        if !is_past || rows_left <= 0 {
            let oldest_milliseconds =
                oldest.map(|id| i64::try_from(id.as_u128() >> 80).unwrap_or(i64::MAX));
            return Ok(Purged { removed_count, oldest_milliseconds });
        }
        let last = tx.row(
            "SELECT old.id FROM (SELECT id FROM events WHERE scope = ?1 AND id < ?2 ORDER BY id \
             LIMIT ?3) old ORDER BY old.id DESC LIMIT 1",
            values![scope, &bound.to_be_bytes(), rows_left],
        )?;
        let Some(mut last) = last else { continue };
        removed_count += tx.execute(
            "DELETE FROM events WHERE scope = ?1 AND id <= ?2",
            values![scope, &last.bytes()?],
        )?;
    }
}

/// The first of the outbox rows that wait because no group of the lane took them with it.
pub fn outbox_first(tx: &mut dyn Tx) -> Result<Option<Vec<u8>>, StoreError> {
    tx.row("SELECT id FROM outbox ORDER BY id LIMIT 1", &[])?.map(|mut row| row.bytes()).transpose()
}

/// Writes an outbox row: an event that has no identifier yet.
pub fn insert_outbox(
    tx: &mut dyn Tx,
    scope: Scope,
    id: Id<kind::Request>,
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
}

/// The first outbox rows in the order in which they become events. The clocks of two nodes differ
/// by a little, so on a shared store the order is the database's.
pub fn outbox(tx: &mut dyn Tx, rows_max: i64) -> Result<Vec<OutboxRow>, StoreError> {
    let order = if tx.is_shared() { "place, id" } else { "id" };
    let sql = format!(
        "SELECT id, scope, type, linked_id, linked_object, created FROM outbox \
         ORDER BY {order} LIMIT ?1"
    );
    tx.rows(&sql, values![rows_max])?
        .into_iter()
        .map(|mut row| {
            Ok(OutboxRow {
                id: row.bytes()?,
                scope: row.scope()?,
                event_type: row.text()?,
                linked: row.any_id()?,
                created: row.int()?,
            })
        })
        .collect()
}

/// Removes outbox rows that became events. On a shared store rows with lower identifiers may become
/// visible at any moment, so exactly those that were read go.
pub fn remove_outbox(tx: &mut dyn Tx, sequenced: &[OutboxRow]) -> Result<(), StoreError> {
    if tx.is_shared() {
        let ids: Vec<Value<'_>> = sequenced.iter().map(|row| Value::from(&row.id)).collect();
        store::delete_all(tx, "outbox", "id", &ids)?;
    } else if let Some(last) = sequenced.last() {
        tx.execute("DELETE FROM outbox WHERE id <= ?1", values![&last.id])?;
    }
    Ok(())
}
