//! The rows of webhook endpoints, of their queues, and of the deliveries and attempts in them.

use std::ops::RangeInclusive;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::deliveries::{AttemptRow, Delivery, DueDelivery, Queue};
use super::schedule::Health;
use super::state::{DeliveryStatus, DisabledReason, EndpointStatus};
use super::{Endpoint, EventFilters};
use crate::events::rows::EventRow;
use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::state::Status;
use crate::kernel::{Id, Metadata, Scope, StoreError};
use crate::store::list::{self, Listing};
use crate::store::{self, Row, Tx, insert_sql};
use crate::values;

pub type EndpointId = Id<kind::WebhookEndpoint>;
pub type DeliveryId = Id<kind::WebhookDelivery>;
pub type EventId = Id<kind::Event>;

const ENDPOINT_COLUMNS: &str = "scope, id, version, url, description, enabled_events, status, \
 disabled_reason, disabled_milliseconds, \
    secrets_sealed, metadata, created";

static ENDPOINT_INSERT: LazyLock<String> =
    LazyLock::new(|| insert_sql("webhook_endpoints", ENDPOINT_COLUMNS));
static ENDPOINT_FIND: LazyLock<String> = LazyLock::new(|| {
    format!("SELECT {ENDPOINT_COLUMNS} FROM webhook_endpoints WHERE scope = ?1 AND id = ?2")
});

pub fn read(mut row: Row) -> Result<Endpoint, StoreError> {
    let row = &mut row;
    Ok(Endpoint {
        scope: row.scope()?,
        id: row.id()?,
        version: row.int()?,
        url: row.text()?,
        description: row.text_or_null()?,
        enabled_events: EventFilters::from_text(row.text()?),
        status: row.word(EndpointStatus::parse)?,
        disabled_reason: row.word_or_null(DisabledReason::parse)?,
        disabled_milliseconds: row.int_or_null()?,
        secrets_sealed: row.bytes()?,
        metadata: row.word(Metadata::from_text)?,
        created: row.int()?,
    })
}

pub fn insert(tx: &mut dyn Tx, e: &Endpoint) -> Result<(), StoreError> {
    tx.execute_one(
        &ENDPOINT_INSERT,
        values![
            e.scope,
            e.id,
            e.version,
            &e.url,
            &e.description,
            e.enabled_events.as_text(),
            e.status.as_str(),
            e.disabled_reason.map(DisabledReason::as_str),
            e.disabled_milliseconds,
            &e.secrets_sealed,
            &e.metadata.to_text(),
            e.created,
        ],
    )
}

/// Writes a changed endpoint over the version and status it was read with.
pub fn update(tx: &mut dyn Tx, e: &mut Endpoint, from: EndpointStatus) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE webhook_endpoints SET version = version + 1, status = ?5, url = ?6, description = \
         ?7, enabled_events = ?8, disabled_reason = ?9, \
         disabled_milliseconds = ?10, secrets_sealed = ?11, metadata = ?12 WHERE scope = ?1 AND \
         id = ?2 AND version = ?3 AND status = ?4",
        values![
            e.scope,
            e.id,
            e.version,
            from.as_str(),
            e.status.as_str(),
            &e.url,
            &e.description,
            e.enabled_events.as_text(),
            e.disabled_reason.map(DisabledReason::as_str),
            e.disabled_milliseconds,
            &e.secrets_sealed,
            &e.metadata.to_text(),
        ],
    )?;
    e.version += 1;
    Ok(())
}

pub fn find(tx: &mut dyn Tx, scope: Scope, id: EndpointId) -> Result<Option<Endpoint>, StoreError> {
    tx.row(&ENDPOINT_FIND, values![scope, id])?.map(read).transpose()
}

pub fn list(tx: &mut dyn Tx, scope: Scope, page: &Page) -> Result<(Vec<Row>, bool), StoreError> {
    list::read(
        tx,
        &Listing {
            table: "webhook_endpoints",
            columns: ENDPOINT_COLUMNS,
            key: ("scope", scope.into()),
        },
        page,
    )
}

pub fn count(tx: &mut dyn Tx, scope: Scope) -> Result<i64, StoreError> {
    tx.row("SELECT COUNT(*) FROM webhook_endpoints WHERE scope = ?1", values![scope])?
        .map_or(Ok(0), |mut row| row.int())
}

/// Removes an endpoint with its secrets.
pub fn remove(tx: &mut dyn Tx, e: &Endpoint) -> Result<(), StoreError> {
    tx.execute_one(
        "DELETE FROM webhook_endpoints WHERE scope = ?1 AND id = ?2 AND version = ?3",
        values![e.scope, e.id, e.version],
    )
}

/// What the sequencer needs of an endpoint: which events it takes, and whether it is disabled.
pub struct SubscriberRow {
    pub id: EndpointId,
    pub enabled_events: EventFilters,
    pub is_disabled: bool,
}

/// The endpoints of an account. None of them is disabled or deleted from here until the commit.
pub fn subscribers(tx: &mut dyn Tx, scope: Scope) -> Result<Vec<SubscriberRow>, StoreError> {
    let sql = "SELECT id, enabled_events, status FROM webhook_endpoints WHERE scope = ?1 ORDER BY \
     id LIMIT ?2";
    let values = values![scope, super::ENDPOINTS_MAX];
    if tx.is_shared() {
        // Both go the same way to the server: first the queues are locked, in the order in which
        // attempts lock them too, and then it is seen what there was behind the wait.
        tx.prefetch(sql, values)?;
        let lock = "SELECT endpoint_id FROM webhook_queues WHERE endpoint_id IN (SELECT id FROM \
         webhook_endpoints WHERE scope = ?1) \
            ORDER BY endpoint_id LIMIT ?2 FOR UPDATE";
        tx.rows(lock, values)?;
    }
    tx.rows(sql, values)?
        .into_iter()
        .map(|mut row| {
            Ok(SubscriberRow {
                id: row.id()?,
                enabled_events: EventFilters::from_text(row.text()?),
                is_disabled: row.word(EndpointStatus::parse)? == EndpointStatus::Disabled,
            })
        })
        .collect()
}

// Queues: one narrow row an endpoint.

pub fn queue_insert(tx: &mut dyn Tx, scope: Scope, id: EndpointId) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO webhook_queues (endpoint_id, scope, due_milliseconds, \
         first_failure_milliseconds, failures_count, closed) \
         VALUES (?1, ?2, NULL, NULL, 0, ?3)",
        values![id, scope, false],
    )
}

pub fn queue(tx: &mut dyn Tx, id: EndpointId) -> Result<Option<Queue>, StoreError> {
    let sql = "SELECT scope, first_failure_milliseconds, failures_count, closed FROM \
     webhook_queues WHERE endpoint_id = ?1";
    let Some(mut row) = tx.row(sql, values![id])? else { return Ok(None) };
    Ok(Some(Queue {
        scope: row.scope()?,
        health: Health {
            first_failure_milliseconds: row.int_or_null()?,
            failures_count: row.int()?,
        },
        is_closed: row.bool()?,
    }))
}

/// Keeps other nodes from changing an endpoint's queue until the commit: what is read next is still
/// so when it is written. A store with one writer needs no lock.
pub fn queue_lock(tx: &mut dyn Tx, id: EndpointId) -> Result<(), StoreError> {
    if tx.is_shared() {
        tx.execute(
            "UPDATE webhook_queues SET due_milliseconds = due_milliseconds WHERE endpoint_id = ?1",
            values![id],
        )?;
    }
    Ok(())
}

pub fn queue_health(tx: &mut dyn Tx, id: EndpointId, health: Health) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE webhook_queues SET first_failure_milliseconds = ?2, failures_count = ?3 WHERE \
         endpoint_id = ?1",
        values![id, health.first_failure_milliseconds, health.failures_count],
    )
}

/// Makes sure that an endpoint is looked at when a delivery of it becomes due. Where an endpoint
/// can be deleted meanwhile this is a conflict, so that nothing is delivered to it or kept for it.
pub fn queue_due_by(
    tx: &mut dyn Tx,
    id: EndpointId,
    due_milliseconds: i64,
) -> Result<(), StoreError> {
    if tx.is_shared() {
        // Locks the row in any case: another transaction may be about to say that nothing is due,
        // because it cannot see the delivery yet.
        let sql = "UPDATE webhook_queues SET due_milliseconds = CASE WHEN due_milliseconds <= ?2 \
         THEN due_milliseconds ELSE ?2 END \
            WHERE endpoint_id = ?1 AND NOT closed";
        return tx.execute_one(sql, values![id, due_milliseconds]);
    }
    let sql = "UPDATE webhook_queues SET due_milliseconds = ?2 \
        WHERE endpoint_id = ?1 AND NOT closed AND (due_milliseconds IS NULL OR due_milliseconds > \
        ?2)";
    tx.execute(sql, values![id, due_milliseconds]).map(|_| ())
}

/// Sets an endpoint's due time to that of its first due delivery.
pub fn queue_due_again(tx: &mut dyn Tx, id: EndpointId) -> Result<(), StoreError> {
    if store::failpoint("queues_looked_at_first") {
        return queue_due_as_seen(tx, id);
    }
    // First the lock and then the look: a statement that waits for a lock goes on seeing what there
    // was before the wait.
    queue_lock(tx, id)?;
    tx.execute(
        "UPDATE webhook_queues SET due_milliseconds = (SELECT MIN(d.due_milliseconds) FROM \
         webhook_deliveries d \
         WHERE d.endpoint_id = ?1 AND d.due_milliseconds IS NOT NULL) WHERE endpoint_id = ?1 AND \
         NOT closed",
        values![id],
    )?;
    Ok(())
}

/// The fault that the lock above is against: what becomes due between the look and the change is
/// forgotten.
fn queue_due_as_seen(tx: &mut dyn Tx, id: EndpointId) -> Result<(), StoreError> {
    const BETWEEN: Duration = Duration::from_millis(50);
    let sql = "SELECT MIN(due_milliseconds) FROM webhook_deliveries WHERE endpoint_id = ?1 AND \
     due_milliseconds IS NOT NULL";
    let seen = tx.row(sql, values![id])?.map(|mut row| row.int_or_null()).transpose()?.flatten();
    std::thread::sleep(BETWEEN);
    tx.execute(
        "UPDATE webhook_queues SET due_milliseconds = ?2 WHERE endpoint_id = ?1 AND NOT closed",
        values![id, seen],
    )?;
    Ok(())
}

pub fn queue_close(tx: &mut dyn Tx, id: EndpointId) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE webhook_queues SET due_milliseconds = NULL, closed = ?2 WHERE endpoint_id = ?1",
        values![id, true],
    )
}

pub fn queue_remove(tx: &mut dyn Tx, id: EndpointId) -> Result<(), StoreError> {
    tx.execute_one("DELETE FROM webhook_queues WHERE endpoint_id = ?1 AND closed", values![id])
}

/// The queue of a deleted endpoint, if there is one.
pub fn queue_closed(tx: &mut dyn Tx) -> Result<Option<EndpointId>, StoreError> {
    tx.row("SELECT endpoint_id FROM webhook_queues WHERE closed ORDER BY endpoint_id LIMIT 1", &[])?
        .map(|mut row| row.id())
        .transpose()
}

/// Endpoints in the order of their identifiers, behind one of them.
pub fn queues_after(
    tx: &mut dyn Tx,
    after: EndpointId,
    rows_max: i64,
) -> Result<Vec<EndpointId>, StoreError> {
    let sql = "SELECT endpoint_id FROM webhook_queues WHERE endpoint_id > ?1 ORDER BY endpoint_id \
     LIMIT ?2";
    tx.rows(sql, values![after, rows_max])?.into_iter().map(|mut row| row.id()).collect()
}

/// An endpoint that has something due, or will have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DueQueue {
    pub due_milliseconds: i64,
    pub endpoint_id: EndpointId,
    pub scope: Scope,
}

/// Endpoints whose due time lies above one moment and not above another, the earliest first.
pub fn queues_due(
    tx: &mut dyn Tx,
    above_milliseconds: i64,
    until_milliseconds: i64,
    rows_max: i64,
) -> Result<Vec<DueQueue>, StoreError> {
    let sql = "SELECT due_milliseconds, endpoint_id, scope FROM webhook_queues WHERE \
     due_milliseconds > ?1 AND due_milliseconds <= ?2 \
        ORDER BY due_milliseconds, endpoint_id LIMIT ?3";
    tx.rows(sql, values![above_milliseconds, until_milliseconds, rows_max])?
        .into_iter()
        .map(|mut row| {
            Ok(DueQueue {
                due_milliseconds: row.int()?,
                endpoint_id: row.id()?,
                scope: row.scope()?,
            })
        })
        .collect()
}

// Deliveries.

const DELIVERY_COLUMNS: &str = "endpoint_id, id, event_id, status, schedule_start_milliseconds, \
 step, attempts_count, due_milliseconds, created";

static DELIVERY_INSERT: LazyLock<String> =
    LazyLock::new(|| insert_sql("webhook_deliveries", DELIVERY_COLUMNS));
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

pub fn delivery_insert(tx: &mut dyn Tx, d: &Delivery) -> Result<(), StoreError> {
    tx.execute_one(
        &DELIVERY_INSERT,
        values![
            d.endpoint_id,
            d.id,
            d.event_id,
            d.status.as_str(),
            d.schedule_start_milliseconds,
            d.step,
            d.attempts_count,
            d.due_milliseconds,
            d.created,
        ],
    )
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

/// The deliveries of the events from one identifier up to, but not with, another.
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

/// The events of an account from one identifier up to, but not with, another, that were created in
/// a range of time.
pub fn events_between(
    tx: &mut dyn Tx,
    scope: Scope,
    from: EventId,
    before: EventId,
    created: RangeInclusive<i64>,
    rows_max: i64,
) -> Result<Vec<EventRow>, StoreError> {
    let sql = "SELECT id, type, linked_id, linked_object, created FROM events \
               WHERE scope = ?1 AND id >= ?2 AND id < ?3 AND created >= ?4 AND created <= ?5 \
               ORDER BY id LIMIT ?6";
    tx.rows(sql, values![scope, from, before, *created.start(), *created.end(), rows_max])?
        .into_iter()
        .map(crate::events::rows::read)
        .collect()
}

/// Begins the schedule of a delivery again.
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

/// Deliveries of one endpoint that are due, with their events, in the order in which they became
/// due.
pub fn due(
    tx: &mut dyn Tx,
    scope: Scope,
    endpoint_id: EndpointId,
    until_milliseconds: i64,
    rows_max: i64,
) -> Result<Vec<DueDelivery>, StoreError> {
    let sql = "SELECT d.id, d.event_id, d.schedule_start_milliseconds, d.step, d.attempts_count, \
     d.due_milliseconds, \
        e.type, e.linked_id, e.linked_object, e.created \
        FROM webhook_deliveries d LEFT JOIN events e ON e.scope = ?1 AND e.id = d.event_id \
        WHERE d.endpoint_id = ?2 AND d.due_milliseconds <= ?3 ORDER BY d.due_milliseconds, d.id \
        LIMIT ?4";
    tx.rows(sql, values![scope, endpoint_id, until_milliseconds, rows_max])?
        .into_iter()
        .map(read_due)
        .collect()
}

fn read_due(mut row: Row) -> Result<DueDelivery, StoreError> {
    let row = &mut row;
    let id = row.id()?;
    let event_id = row.id()?;
    let (schedule_start_milliseconds, step) = (row.int()?, row.int()?);
    let (attempts_count, due_milliseconds) = (row.int()?, row.int()?);
    let event = match row.text_or_null()? {
        None => None,
        Some(event_type) => Some(Arc::new(EventRow {
            id: event_id,
            event_type,
            linked: row.any_id()?,
            created: row.int()?,
        })),
    };
    Ok(DueDelivery {
        id,
        schedule_start_milliseconds,
        step,
        attempts_count,
        due_milliseconds,
        event,
    })
}

/// Moves the due time of a delivery that still has the one it was read with; answers whether it
/// had.
pub fn delivery_lease(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    id: DeliveryId,
    from_milliseconds: i64,
    to_milliseconds: i64,
) -> Result<bool, StoreError> {
    let changed = tx.execute(
        "UPDATE webhook_deliveries SET due_milliseconds = ?4 WHERE endpoint_id = ?1 AND id = ?2 \
         AND due_milliseconds = ?3",
        values![endpoint_id, id, from_milliseconds, to_milliseconds],
    )?;
    Ok(changed == 1)
}

/// Makes first attempts due that a process claimed and did not live to make. Only for a store with
/// one server: on others, such a lease may be held by a node that lives.
pub fn first_attempts_release(tx: &mut dyn Tx, now_milliseconds: i64) -> Result<u64, StoreError> {
    let released = tx.execute(
        "UPDATE webhook_deliveries SET due_milliseconds = ?1 WHERE due_milliseconds > ?1 AND \
         attempts_count = 0",
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

/// What an attempt makes of a delivery.
pub struct Settled {
    pub status: DeliveryStatus,
    pub step: i64,
    pub attempts_count: i64,
    pub due_milliseconds: Option<i64>,
}

/// Settles a delivery whose lease is still the one given; answers whether it was.
pub fn delivery_settle(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    id: DeliveryId,
    lease_milliseconds: i64,
    settled: &Settled,
) -> Result<bool, StoreError> {
    let changed = tx.execute(
        "UPDATE webhook_deliveries SET status = ?4, step = ?5, attempts_count = ?6, \
         due_milliseconds = ?7 \
         WHERE endpoint_id = ?1 AND id = ?2 AND due_milliseconds = ?3",
        values![
            endpoint_id,
            id,
            lease_milliseconds,
            settled.status.as_str(),
            settled.step,
            settled.attempts_count,
            settled.due_milliseconds,
        ],
    )?;
    Ok(changed == 1)
}

/// Turns deliveries that are still to be attempted into recorded ones, a bounded number at once.
pub fn deliveries_record(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    rows_max: i64,
) -> Result<u64, StoreError> {
    tx.execute(
        "UPDATE webhook_deliveries SET status = ?2, due_milliseconds = NULL WHERE endpoint_id = \
         ?1 AND id IN \
         (SELECT d.id FROM webhook_deliveries d WHERE d.endpoint_id = ?1 AND d.due_milliseconds \
         IS NOT NULL ORDER BY d.due_milliseconds, d.id LIMIT ?3)",
        values![endpoint_id, DeliveryStatus::Recorded.as_str(), rows_max],
    )
}

/// Removes the oldest deliveries of an endpoint below an identifier, with their attempts, a bounded
/// number at once.
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

pub fn attempt_insert(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    delivery_id: DeliveryId,
    attempt: &AttemptRow,
) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO webhook_attempts (endpoint_id, delivery_id, number, attempted_at, \
         http_status, duration_milliseconds, error, answer) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        values![
            endpoint_id,
            delivery_id,
            attempt.number,
            attempt.attempted_at,
            attempt.http_status,
            attempt.duration_milliseconds,
            &attempt.error,
            &attempt.answer,
        ],
    )
}

/// The newest attempts of a delivery, in the order in which they were made.
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
