//! The rows of deliveries and of the attempts to make them.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, LazyLock};

use super::{DeliveryId, EndpointId, EventId};
use crate::events;
use crate::events::rows::EventRow;
use crate::kernel::page::Page;
use crate::kernel::{Id, Scope, StoreError};
use crate::store::list::{self, Listing};
use crate::store::{self, EachUpdate, Row, Tx, Value};
use crate::values;
use crate::webhooks::deliveries::{AttemptRow, Delivery, DueDelivery};
use crate::webhooks::queue_leases::HeldDeliveries;
use crate::webhooks::state::DeliveryStatus;

const DELIVERY_COLUMNS: &str = "endpoint_id, id, event_id, status, schedule_start_milliseconds, \
 step, attempts_count, due_milliseconds, created";

static DELIVERY_OF_EVENT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {DELIVERY_COLUMNS} FROM webhook_deliveries WHERE endpoint_id = ?1 AND event_id = ?2"
    )
});
static DELIVERIES_OF_EVENTS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {DELIVERY_COLUMNS} FROM webhook_deliveries WHERE endpoint_id = ?1 AND event_id >= \
         ?2 AND event_id < ?3 \
         AND created >= ?4 AND created <= ?5 ORDER BY event_id LIMIT ?6"
    )
});

pub fn read_delivery(mut row: Row) -> Result<Delivery, StoreError> {
    let row = &mut row;
    Ok(Delivery {
        endpoint_id: row.id()?,
        id: row.id()?,
        event_id: row.id()?,
        status: row.word(DeliveryStatus::parse)?,
        schedule_start_milliseconds: row.int()?,
        step: row.int()?,
        attempts_count: row.int()?,
        due_milliseconds: row.int_or_null()?,
        created: row.int()?,
    })
}

pub fn deliveries(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    page: &Page,
) -> Result<(Vec<Row>, bool), StoreError> {
    list::read(
        tx,
        &Listing {
            table: "webhook_deliveries",
            columns: DELIVERY_COLUMNS,
            key: ("endpoint_id", endpoint_id.into()),
        },
        page,
    )
}

pub fn delivery_of_event(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    event_id: EventId,
) -> Result<Option<Delivery>, StoreError> {
    tx.row(&DELIVERY_OF_EVENT, values![endpoint_id, event_id])?.map(read_delivery).transpose()
}

/// The deliveries of events that were created in a range of time (Unix seconds, business time), in
/// the order of the events. Only events with an identifier from `from` on and below `before` count.
pub fn deliveries_of_events(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    from: EventId,
    before: EventId,
    created: RangeInclusive<i64>,
    rows_max: i64,
) -> Result<Vec<Delivery>, StoreError> {
    tx.rows(
        &DELIVERIES_OF_EVENTS,
        values![endpoint_id, from, before, *created.start(), *created.end(), rows_max],
    )?
    .into_iter()
    .map(read_delivery)
    .collect()
}

/// Begins a new schedule of a delivery, which is due at once.
pub fn delivery_restart(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    id: DeliveryId,
    start_milliseconds: i64,
) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE webhook_deliveries SET status = ?3, schedule_start_milliseconds = ?4, step = 0, \
         due_milliseconds = ?4 WHERE endpoint_id = ?1 AND id = ?2",
        values![endpoint_id, id, DeliveryStatus::Pending.as_str(), start_milliseconds],
    )
}

/// Inserts deliveries, many with one statement.
pub fn deliveries_insert(tx: &mut dyn Tx, deliveries: &[Delivery]) -> Result<(), StoreError> {
    let rows: Vec<[Value<'_>; 9]> = deliveries
        .iter()
        .map(|d| {
            [
                d.endpoint_id.into(),
                d.id.into(),
                d.event_id.into(),
                d.status.as_str().into(),
                d.schedule_start_milliseconds.into(),
                d.step.into(),
                d.attempts_count.into(),
                d.due_milliseconds.into(),
                d.created.into(),
            ]
        })
        .collect();
    store::insert_all(tx, "webhook_deliveries", DELIVERY_COLUMNS, &rows)
}

const DUE: &str = "SELECT id, event_id, schedule_start_milliseconds, step, attempts_count, \
                   due_milliseconds FROM webhook_deliveries WHERE endpoint_id = ?1 AND \
                   due_milliseconds <= ?2 AND (due_milliseconds, id) > (?4, ?5) ORDER BY \
                   due_milliseconds, id LIMIT ?3";

/// Which due deliveries of one endpoint a read asks for.
#[derive(Clone, Copy)]
pub struct DueRange<'a> {
    pub endpoint_id: EndpointId,
    /// Only deliveries after this one (due time and identifier), in the order in which they became
    /// due.
    pub after: Option<(i64, DeliveryId)>,
    /// Only deliveries that are due by then.
    pub until_milliseconds: i64,
    /// At most this many deliveries.
    pub count: usize,
    /// These deliveries are left out.
    pub except: &'a HeldDeliveries,
}

impl DueRange<'_> {
    /// How many rows to read. A read from the beginning may meet all of `except`, so it reads as
    /// many rows in addition. A read that continues an earlier read meets few of them, because the
    /// earlier read has passed most.
    fn rows_max(&self) -> usize {
        self.count + if self.after.is_none() { self.except.len() } else { 0 }
    }

    /// The parameters of [`DUE`].
    fn values(&self) -> [Value<'static>; 5] {
        let (after_milliseconds, after_id) = self.after.unwrap_or((i64::MIN, Id::from_u128(0)));
        [
            self.endpoint_id.into(),
            self.until_milliseconds.into(),
            (self.rows_max() as i64).into(),
            after_milliseconds.into(),
            after_id.into(),
        ]
    }
}

/// What a read of due deliveries found.
pub struct DueRead {
    pub due: Vec<DueDelivery>,
    /// The due time and identifier of the last delivery that was read, for a read that continues
    /// after it; `None` if this read reached the end of the range.
    pub last_read: Option<(i64, DeliveryId)>,
}

/// Announces the first query of [`due_in`], so that the store sends it with the next statement.
pub fn prefetch_due(tx: &mut dyn Tx, range: &DueRange<'_>) -> Result<(), StoreError> {
    tx.prefetch(DUE, &range.values())
}

/// Like [`due_in`], with nothing in [`DueRange::except`].
pub fn due(
    tx: &mut dyn Tx,
    scope: Scope,
    endpoint_id: EndpointId,
    after: Option<(i64, DeliveryId)>,
    until_milliseconds: i64,
    rows_max: i64,
) -> Result<Vec<DueDelivery>, StoreError> {
    let (count, except) = (usize::try_from(rows_max).unwrap_or(0), &HeldDeliveries::new());
    let range = DueRange { endpoint_id, after, until_milliseconds, count, except };
    Ok(due_in(tx, scope, &range)?.due)
}

/// Due deliveries of one endpoint with their events, in the order in which they became due.
///
/// A statement of its own reads the events. In a join, PostgreSQL's planner would choose how to
/// find them. As long as its statistics do not know the account, it would read all of the account's
/// events for each delivery.
pub fn due_in(tx: &mut dyn Tx, scope: Scope, range: &DueRange<'_>) -> Result<DueRead, StoreError> {
    let rows = tx.rows(DUE, &range.values())?;
    let mut is_end = rows.len() < range.rows_max();
    let mut last_read = None;
    let mut due = Vec::with_capacity(range.count.min(rows.len()));
    let mut event_ids: Vec<EventId> = Vec::with_capacity(due.capacity());
    for mut row in rows {
        if due.len() >= range.count {
            is_end = false;
            break;
        }
        let (id, event_id) = (row.id()?, row.id()?);
        let delivery = DueDelivery {
            id,
            schedule_start_milliseconds: row.int()?,
            step: row.int()?,
            attempts_count: row.int()?,
            due_milliseconds: row.int()?,
            event: None,
            watched: None,
        };
        last_read = Some((delivery.due_milliseconds, id));
        if !range.except.contains(&(id, delivery.due_milliseconds)) {
            event_ids.push(event_id);
            due.push(delivery);
        }
    }
    let last_read = last_read.filter(|_| !is_end);
    let events: HashMap<EventId, Arc<EventRow>> = events::rows::find_all(tx, scope, &event_ids)?
        .into_iter()
        .map(|event| (event.id, Arc::new(event)))
        .collect();
    for (delivery, event_id) in due.iter_mut().zip(&event_ids) {
        delivery.event = events.get(event_id).cloned();
    }
    Ok(DueRead { due, last_read })
}

/// The columns that show whether a delivery has changed since it was read.
const UNCHANGED: &[&str] = &["id", "endpoint_id", "due_milliseconds"];

fn unchanged_keys<'a>(
    endpoint_id: EndpointId,
    deliveries: impl Iterator<Item = (DeliveryId, i64)>,
) -> Vec<Value<'a>> {
    deliveries
        .flat_map(|(id, due_milliseconds)| [id.into(), endpoint_id.into(), due_milliseconds.into()])
        .collect()
}

/// Moves deliveries of one endpoint to another due time. A delivery that no longer has the due time
/// with which it was read stays as it is. Answers for each whether it was moved.
pub fn deliveries_move(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    deliveries: impl Iterator<Item = (DeliveryId, i64)>,
    to_milliseconds: i64,
) -> Result<Vec<bool>, StoreError> {
    let update = EachUpdate {
        table: "webhook_deliveries",
        set: "due_milliseconds = ?1",
        set_values: values![to_milliseconds],
        columns: UNCHANGED,
    };
    tx.update_each(&update, &unchanged_keys(endpoint_id, deliveries))
}

/// Ends deliveries of one endpoint. A delivery that no longer has the due time with which it was
/// read stays as it is. Answers for each whether it was ended. `attempts_made` is added to the
/// count of each one's attempts.
pub fn deliveries_end(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    deliveries: impl Iterator<Item = (DeliveryId, i64)>,
    status: DeliveryStatus,
    attempts_made: i64,
) -> Result<Vec<bool>, StoreError> {
    let update = EachUpdate {
        table: "webhook_deliveries",
        set: "status = ?1, attempts_count = attempts_count + ?2, due_milliseconds = NULL",
        set_values: values![status.as_str(), attempts_made],
        columns: UNCHANGED,
    };
    tx.update_each(&update, &unchanged_keys(endpoint_id, deliveries))
}

/// Makes due at once those deliveries that a process had claimed for their first attempt when it
/// died; answers how many. Only for a store with one server: on a shared store, another node that
/// runs may have claimed them. Deliveries whose schedule has not begun were not claimed, and stay
/// as they are.
pub fn first_attempts_release(tx: &mut dyn Tx, now_milliseconds: i64) -> Result<u64, StoreError> {
    let released = tx.execute(
        "UPDATE webhook_deliveries SET due_milliseconds = ?1 WHERE due_milliseconds > ?1 AND \
         attempts_count = 0 AND schedule_start_milliseconds <= ?1",
        values![now_milliseconds],
    )?;
    if released > 0 {
        tx.execute(
            "UPDATE webhook_queues SET due_milliseconds = ?1 WHERE NOT closed AND EXISTS (SELECT \
             1 FROM webhook_deliveries d \
             WHERE d.endpoint_id = webhook_queues.endpoint_id AND d.due_milliseconds <= ?1)",
            values![now_milliseconds],
        )?;
    }
    Ok(released)
}

/// What a delivery becomes after an attempt.
pub struct DeliveryAfterAttempt {
    pub status: DeliveryStatus,
    pub step: i64,
    pub attempts_count: i64,
    pub due_milliseconds: Option<i64>,
}

/// Stores what a delivery becomes after an attempt, if its due time is still `due_milliseconds`;
/// answers whether it was.
pub fn delivery_attempted(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    id: DeliveryId,
    due_milliseconds: i64,
    outcome: &DeliveryAfterAttempt,
) -> Result<bool, StoreError> {
    let changed = tx.execute(
        "UPDATE webhook_deliveries SET status = ?4, step = ?5, attempts_count = ?6, \
         due_milliseconds = ?7 \
         WHERE endpoint_id = ?1 AND id = ?2 AND due_milliseconds = ?3",
        values![
            endpoint_id,
            id,
            due_milliseconds,
            outcome.status.as_str(),
            outcome.step,
            outcome.attempts_count,
            outcome.due_milliseconds,
        ],
    )?;
    Ok(changed == 1)
}

/// Makes up to `rows_max` pending deliveries `recorded`, the earliest due first.
pub fn deliveries_record(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    rows_max: i64,
) -> Result<(), StoreError> {
    // A statement of its own reads the rows. In a single statement, PostgreSQL's planner would
    // choose how to find them. As long as its statistics do not know the endpoint, it would read
    // all of the endpoint's deliveries.
    let rows = tx.rows(
        "SELECT id, due_milliseconds FROM webhook_deliveries WHERE endpoint_id = ?1 AND \
         due_milliseconds IS NOT NULL ORDER BY due_milliseconds, id LIMIT ?2",
        values![endpoint_id, rows_max],
    )?;
    let mut waiting = Vec::with_capacity(rows.len());
    for mut row in rows {
        waiting.push((row.id()?, row.int()?));
    }
    deliveries_end(tx, endpoint_id, waiting.into_iter(), DeliveryStatus::Recorded, 0).map(drop)
}

/// Removes an endpoint's oldest deliveries with identifiers lower than `below`, up to `rows_max`,
/// with their attempts; answers how many deliveries.
pub fn deliveries_purge(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    below: DeliveryId,
    rows_max: i64,
) -> Result<u64, StoreError> {
    let last = tx.row(
        "SELECT old.id FROM (SELECT d.id FROM webhook_deliveries d WHERE d.endpoint_id = ?1 AND \
         d.id < ?2 ORDER BY d.id LIMIT ?3) old \
         ORDER BY old.id DESC LIMIT 1",
        values![endpoint_id, below, rows_max],
    )?;
    let last: Option<DeliveryId> = last.map(|mut row| row.id_or_null()).transpose()?.flatten();
    let Some(last) = last else { return Ok(0) };
    tx.execute(
        "DELETE FROM webhook_attempts WHERE endpoint_id = ?1 AND delivery_id <= ?2",
        values![endpoint_id, last],
    )?;
    tx.execute(
        "DELETE FROM webhook_deliveries WHERE endpoint_id = ?1 AND id <= ?2",
        values![endpoint_id, last],
    )
}

// Attempts.

/// Inserts attempts of one endpoint, many with one statement.
pub fn attempts_insert(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    attempts: &[(DeliveryId, AttemptRow)],
) -> Result<(), StoreError> {
    let rows: Vec<[Value<'_>; 8]> = attempts
        .iter()
        .map(|(delivery_id, attempt)| {
            [
                endpoint_id.into(),
                (*delivery_id).into(),
                attempt.number.into(),
                attempt.attempted_at.into(),
                attempt.http_status.into(),
                attempt.duration_milliseconds.into(),
                (&attempt.error).into(),
                (&attempt.answer).into(),
            ]
        })
        .collect();
    store::insert_all(
        tx,
        "webhook_attempts",
        "endpoint_id, delivery_id, number, attempted_at, http_status, duration_milliseconds, \
         error, answer",
        &rows,
    )
}

/// Removes the attempts of a delivery up to the number `to`.
pub fn attempts_remove(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    delivery_id: DeliveryId,
    to: i64,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM webhook_attempts WHERE endpoint_id = ?1 AND delivery_id = ?2 AND \
               number <= ?3";
    tx.execute(sql, values![endpoint_id, delivery_id, to]).map(drop)
}

/// The newest attempts of a delivery, at most `rows_max`, in the order in which they were made.
pub fn attempts(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    delivery_id: DeliveryId,
    rows_max: i64,
) -> Result<Vec<AttemptRow>, StoreError> {
    let sql = "SELECT number, attempted_at, http_status, duration_milliseconds, error, answer \
     FROM webhook_attempts \
        WHERE endpoint_id = ?1 AND delivery_id = ?2 ORDER BY number DESC LIMIT ?3";
    let mut attempts = tx
        .rows(sql, values![endpoint_id, delivery_id, rows_max])?
        .into_iter()
        .map(|mut row| {
            Ok(AttemptRow {
                number: row.int()?,
                attempted_at: row.int()?,
                http_status: row.int_or_null()?,
                duration_milliseconds: row.int()?,
                error: row.text_or_null()?,
                answer: row.text()?,
            })
        })
        .collect::<Result<Vec<_>, StoreError>>()?;
    attempts.reverse();
    Ok(attempts)
}
