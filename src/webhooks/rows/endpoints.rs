//! The rows of webhook endpoints: what their owners set, and their status.

use std::sync::LazyLock;

use super::EndpointId;
use crate::chaos;
use crate::kernel::page::Page;
use crate::kernel::state::Status;
use crate::kernel::{Metadata, Scope, StoreError};
use crate::store::list::{self, Listing};
use crate::store::{Row, Tx, insert_sql};
use crate::values;
use crate::webhooks::state::{EndpointDisabledReason, EndpointStatus};
use crate::webhooks::{ENDPOINTS_MAX, Endpoint, EventFilters};

const ENDPOINT_COLUMNS: &str = "scope, id, version, url, description, enabled_events, status, \
 disabled_reason, disabled_milliseconds, \
    secrets_sealed, metadata, created, chaos_key_id";

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
        disabled_reason: row.word_or_null(EndpointDisabledReason::parse)?,
        disabled_milliseconds: row.int_or_null()?,
        secrets_sealed: row.bytes()?,
        metadata: row.word(Metadata::from_text)?,
        created: row.int()?,
        chaos_key_id: row.id_or_null()?,
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
            e.disabled_reason.map(EndpointDisabledReason::as_str),
            e.disabled_milliseconds,
            &e.secrets_sealed,
            &e.metadata.to_text(),
            e.created,
            e.chaos_key_id,
        ],
    )
}

/// Stores a changed endpoint, and raises its version. It is a conflict if the stored row no longer
/// has the version of `e` and the status `from`.
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
            e.disabled_reason.map(EndpointDisabledReason::as_str),
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

/// Removes an endpoint's row, which holds its secrets.
pub fn remove(tx: &mut dyn Tx, e: &Endpoint) -> Result<(), StoreError> {
    tx.execute_one(
        "DELETE FROM webhook_endpoints WHERE scope = ?1 AND id = ?2 AND version = ?3",
        values![e.scope, e.id, e.version],
    )
}

/// What the sequencer needs to know of an endpoint.
pub struct SubscriberRow {
    pub id: EndpointId,
    pub version: i64,
    pub enabled_events: EventFilters,
    pub is_disabled: bool,
    pub chaos_key_id: Option<chaos::KeyId>,
}

/// The endpoints of an account and mode. Until the commit, no other transaction can disable or
/// delete one of them.
pub fn subscribers(tx: &mut dyn Tx, scope: Scope) -> Result<Vec<SubscriberRow>, StoreError> {
    let sql = "SELECT id, version, enabled_events, status, chaos_key_id FROM webhook_endpoints \
     WHERE scope = ?1 ORDER BY id LIMIT ?2";
    let values = values![scope, ENDPOINTS_MAX];
    if tx.is_shared() {
        // The statement `lock` locks the queues. `prefetch` has the store send the query `sql`
        // after it, in the same round trip, so `sql` sees what there was when the locks were
        // granted. A turn of the delivery worker that locks queues of several accounts may wait for
        // this transaction while this one waits for the turn. Then PostgreSQL ends one of the two
        // transactions, which runs again.
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
                version: row.int()?,
                enabled_events: EventFilters::from_text(row.text()?),
                is_disabled: row.word(EndpointStatus::parse)? == EndpointStatus::Disabled,
                chaos_key_id: row.id_or_null()?,
            })
        })
        .collect()
}
