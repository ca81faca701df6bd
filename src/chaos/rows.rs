//! The rows of chaos profiles, and of what was seen under them.

use super::seen::{EventId, ObservedRequest, WatchedEvent};
use super::{AttackCount, EndpointId, KeyId, Profile, RequestAttack, WebhookAttack};
use crate::kernel::{Scope, StoreError};
use crate::store::{self, Row, Tx};
use crate::values;

const PROFILE_COLUMNS: &str = "scope, key_id, seed, percentage, request_attacks, webhook_attacks, \
 delay_milliseconds, webhook_delay_milliseconds, endpoint_id, started_milliseconds, \
 ends_milliseconds, completes_milliseconds, writes_count, writes_attacked, reads_count, \
 reads_attacked, events_count, events_attacked";
const REQUEST_COLUMNS: &str =
    "number, request_hash, fingerprint, method, route, attack, failures_left, attempts";
const EVENT_COLUMNS: &str = "event_id, number, linked_id, attack, http_status, \
 attacked_http_status, duration_milliseconds, was_read";

/// Words with commas between them.
fn words<T>(text: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, StoreError> {
    let word =
        |word| parse(word).ok_or_else(|| StoreError::Broken("an attack cannot be read".to_owned()));
    text.split(',').filter(|word| !word.is_empty()).map(word).collect()
}

fn read(mut row: Row) -> Result<Profile, StoreError> {
    let row = &mut row;
    Ok(Profile {
        scope: row.scope()?,
        key_id: row.id()?,
        seed: row.int()?,
        percentage: row.int()?,
        request_attacks: words(&row.text()?, RequestAttack::parse)?,
        webhook_attacks: words(&row.text()?, WebhookAttack::parse)?,
        delay_milliseconds: row.int()?,
        webhook_delay_milliseconds: row.int()?,
        endpoint_id: row.id_or_null()?,
        started_milliseconds: row.int()?,
        ends_milliseconds: row.int()?,
        completes_milliseconds: row.int()?,
        writes: AttackCount { count: row.int()?, attacked: row.int()? },
        reads: AttackCount { count: row.int()?, attacked: row.int()? },
        events: AttackCount { count: row.int()?, attacked: row.int()? },
    })
}

pub fn find(tx: &mut dyn Tx, scope: Scope, key_id: KeyId) -> Result<Option<Profile>, StoreError> {
    let sql =
        format!("SELECT {PROFILE_COLUMNS} FROM chaos_profiles WHERE scope = ?1 AND key_id = ?2");
    tx.row(&sql, values![scope, key_id])?.map(read).transpose()
}

pub fn insert(tx: &mut dyn Tx, profile: &Profile) -> Result<(), StoreError> {
    let requests: Vec<_> = profile.request_attacks.iter().map(|one| one.as_str()).collect();
    let webhooks: Vec<_> = profile.webhook_attacks.iter().map(|one| one.as_str()).collect();
    tx.execute_one(
        &store::insert_sql("chaos_profiles", PROFILE_COLUMNS),
        values![
            profile.scope,
            profile.key_id,
            profile.seed,
            profile.percentage,
            &requests.join(","),
            &webhooks.join(","),
            profile.delay_milliseconds,
            profile.webhook_delay_milliseconds,
            profile.endpoint_id,
            profile.started_milliseconds,
            profile.ends_milliseconds,
            profile.completes_milliseconds,
            profile.writes.count,
            profile.writes.attacked,
            profile.reads.count,
            profile.reads.attacked,
            profile.events.count,
            profile.events.attacked
        ],
    )
}

/// Stores what changes of a profile: when it ends, and what was counted.
pub fn update(tx: &mut dyn Tx, profile: &Profile) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE chaos_profiles SET ends_milliseconds = ?3, completes_milliseconds = ?4, \
         writes_count = ?5, writes_attacked = ?6, reads_count = ?7, reads_attacked = ?8, \
         events_count = ?9, events_attacked = ?10 WHERE scope = ?1 AND key_id = ?2",
        values![
            profile.scope,
            profile.key_id,
            profile.ends_milliseconds,
            profile.completes_milliseconds,
            profile.writes.count,
            profile.writes.attacked,
            profile.reads.count,
            profile.reads.attacked,
            profile.events.count,
            profile.events.attacked
        ],
    )
}

/// On PostgreSQL, makes the transactions of one profile run one after another, from here to their
/// commits. Whether a request or event is attacked depends on how many came before it.
pub fn lock_profile(tx: &mut dyn Tx, scope: Scope, key_id: KeyId) -> Result<(), StoreError> {
    if !tx.is_shared() {
        return Ok(());
    }
    let sql = "UPDATE chaos_profiles SET seed = seed WHERE scope = ?1 AND key_id = ?2";
    tx.execute(sql, values![scope, key_id]).map(|_| ())
}

/// Removes a profile with everything seen under it, and frees its webhook endpoint. Answers how
/// many rows were deleted.
pub fn remove(tx: &mut dyn Tx, scope: Scope, key_id: KeyId) -> Result<u64, StoreError> {
    let mut removed = 0;
    for sql in [
        "DELETE FROM chaos_requests WHERE scope = ?1 AND key_id = ?2",
        "DELETE FROM chaos_events WHERE scope = ?1 AND key_id = ?2",
        "DELETE FROM chaos_profiles WHERE scope = ?1 AND key_id = ?2",
    ] {
        removed += tx.execute(sql, values![scope, key_id])?;
    }
    let free = "UPDATE webhook_endpoints SET chaos_key_id = NULL WHERE scope = ?1 AND \
     chaos_key_id = ?2";
    tx.execute(free, values![scope, key_id])?;
    Ok(removed)
}

/// The profile that completed first, if that was before a moment in Unix milliseconds.
pub fn completed_before(
    tx: &mut dyn Tx,
    milliseconds: i64,
) -> Result<Option<(Scope, KeyId)>, StoreError> {
    let sql = "SELECT scope, key_id FROM chaos_profiles WHERE completes_milliseconds < ?1 ORDER \
     BY completes_milliseconds LIMIT 1";
    tx.row(sql, values![milliseconds])?.map(|mut row| Ok((row.scope()?, row.id()?))).transpose()
}

/// Stores in the key's row until when its profile watches it; `None` if the profile was stopped.
/// The column holds milliseconds, in spite of its name.
pub fn mark_key(
    tx: &mut dyn Tx,
    key_id: KeyId,
    until_milliseconds: Option<i64>,
) -> Result<(), StoreError> {
    let sql = "UPDATE api_keys SET chaos_until = ?2 WHERE id = ?1";
    tx.execute_one(sql, values![key_id, until_milliseconds])
}

/// Stores in the webhook endpoint's row the key whose profile attacks it.
pub fn mark_endpoint(
    tx: &mut dyn Tx,
    scope: Scope,
    endpoint_id: EndpointId,
    key_id: KeyId,
) -> Result<(), StoreError> {
    let sql = "UPDATE webhook_endpoints SET chaos_key_id = ?3 WHERE scope = ?1 AND id = ?2";
    tx.execute_one(sql, values![scope, endpoint_id, key_id])
}

pub fn has_endpoint(
    tx: &mut dyn Tx,
    scope: Scope,
    endpoint_id: EndpointId,
) -> Result<bool, StoreError> {
    let sql = "SELECT id FROM webhook_endpoints WHERE scope = ?1 AND id = ?2";
    Ok(tx.row(sql, values![scope, endpoint_id])?.is_some())
}

/// The key whose profile attacks an endpoint, or attacked it last: the mark stays until that
/// profile is removed.
pub fn key_of_endpoint(
    tx: &mut dyn Tx,
    scope: Scope,
    endpoint_id: EndpointId,
) -> Result<Option<KeyId>, StoreError> {
    let sql = "SELECT chaos_key_id FROM webhook_endpoints WHERE scope = ?1 AND id = ?2";
    let row = tx.row(sql, values![scope, endpoint_id])?;
    Ok(row.map(|mut row| row.id_or_null()).transpose()?.flatten())
}

// Requests.

fn read_request(mut row: Row) -> Result<ObservedRequest, StoreError> {
    let row = &mut row;
    Ok(ObservedRequest {
        number: row.int()?,
        request_hash: row.array()?,
        fingerprint: row.array()?,
        method: row.text()?,
        route: row.text()?,
        attack: row.word_or_null(RequestAttack::parse)?,
        failures_left: row.int()?,
        attempts: serde_json::from_str(&row.text()?)
            .map_err(|_| StoreError::Broken("attempts of a request cannot be read".to_owned()))?,
    })
}

fn attempts_text(request: &ObservedRequest) -> Result<String, StoreError> {
    serde_json::to_string(&request.attempts).map_err(|error| StoreError::Broken(error.to_string()))
}

/// The newest request with a hash.
pub fn request(
    tx: &mut dyn Tx,
    scope: Scope,
    key_id: KeyId,
    request_hash: &[u8; 16],
) -> Result<Option<ObservedRequest>, StoreError> {
    let sql = format!(
        "SELECT {REQUEST_COLUMNS} FROM chaos_requests WHERE scope = ?1 AND key_id = ?2 AND \
         request_hash = ?3 ORDER BY number DESC LIMIT 1"
    );
    tx.row(&sql, values![scope, key_id, request_hash])?.map(read_request).transpose()
}

pub fn request_numbered(
    tx: &mut dyn Tx,
    scope: Scope,
    key_id: KeyId,
    number: i64,
) -> Result<Option<ObservedRequest>, StoreError> {
    let sql = format!(
        "SELECT {REQUEST_COLUMNS} FROM chaos_requests WHERE scope = ?1 AND key_id = ?2 AND number \
         = ?3"
    );
    tx.row(&sql, values![scope, key_id, number])?.map(read_request).transpose()
}

pub fn requests(
    tx: &mut dyn Tx,
    scope: Scope,
    key_id: KeyId,
    rows_max: i64,
) -> Result<Vec<ObservedRequest>, StoreError> {
    let sql = format!(
        "SELECT {REQUEST_COLUMNS} FROM chaos_requests WHERE scope = ?1 AND key_id = ?2 ORDER BY \
         number LIMIT ?3"
    );
    tx.rows(&sql, values![scope, key_id, rows_max])?.into_iter().map(read_request).collect()
}

pub fn request_insert(
    tx: &mut dyn Tx,
    scope: Scope,
    key_id: KeyId,
    request: &ObservedRequest,
) -> Result<(), StoreError> {
    tx.execute_one(
        &store::insert_sql("chaos_requests", &format!("scope, key_id, {REQUEST_COLUMNS}")),
        values![
            scope,
            key_id,
            request.number,
            &request.request_hash,
            &request.fingerprint,
            &request.method,
            &request.route,
            request.attack.map(RequestAttack::as_str),
            request.failures_left,
            &attempts_text(request)?
        ],
    )
}

pub fn request_update(
    tx: &mut dyn Tx,
    scope: Scope,
    key_id: KeyId,
    request: &ObservedRequest,
) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE chaos_requests SET failures_left = ?4, attempts = ?5 WHERE scope = ?1 AND key_id \
         = ?2 AND number = ?3",
        values![scope, key_id, request.number, request.failures_left, &attempts_text(request)?],
    )
}

// Events.

fn read_event(mut row: Row) -> Result<WatchedEvent, StoreError> {
    let row = &mut row;
    Ok(WatchedEvent {
        event_id: row.id()?,
        number: row.int()?,
        linked_id: row.text()?,
        attack: row.word_or_null(WebhookAttack::parse)?,
        http_status: row.int_or_null()?,
        attacked_http_status: row.int_or_null()?,
        duration_milliseconds: row.int()?,
        was_read: row.bool()?,
    })
}

pub fn event(
    tx: &mut dyn Tx,
    scope: Scope,
    key_id: KeyId,
    event_id: EventId,
) -> Result<Option<WatchedEvent>, StoreError> {
    let sql = format!(
        "SELECT {EVENT_COLUMNS} FROM chaos_events WHERE scope = ?1 AND key_id = ?2 AND event_id = \
         ?3"
    );
    tx.row(&sql, values![scope, key_id, event_id])?.map(read_event).transpose()
}

pub fn events(
    tx: &mut dyn Tx,
    scope: Scope,
    key_id: KeyId,
    rows_max: i64,
) -> Result<Vec<WatchedEvent>, StoreError> {
    let sql = format!(
        "SELECT {EVENT_COLUMNS} FROM chaos_events WHERE scope = ?1 AND key_id = ?2 ORDER BY \
         event_id LIMIT ?3"
    );
    tx.rows(&sql, values![scope, key_id, rows_max])?.into_iter().map(read_event).collect()
}

/// The events that the attack `missing` withholds and the caller has not read yet.
pub fn events_missing(
    tx: &mut dyn Tx,
    scope: Scope,
    key_id: KeyId,
) -> Result<Vec<WatchedEvent>, StoreError> {
    let sql = format!(
        "SELECT {EVENT_COLUMNS} FROM chaos_events WHERE scope = ?1 AND key_id = ?2 AND attack = \
         ?3 AND was_read = ?4 ORDER BY event_id LIMIT ?5"
    );
    let missing = WebhookAttack::Missing.as_str();
    let values = values![scope, key_id, missing, false, super::EVENTS_MAX];
    tx.rows(&sql, values)?.into_iter().map(read_event).collect()
}

pub fn event_insert(
    tx: &mut dyn Tx,
    scope: Scope,
    key_id: KeyId,
    event: &WatchedEvent,
) -> Result<(), StoreError> {
    tx.execute_one(
        &store::insert_sql("chaos_events", &format!("scope, key_id, {EVENT_COLUMNS}")),
        values![
            scope,
            key_id,
            event.event_id,
            event.number,
            &event.linked_id,
            event.attack.map(WebhookAttack::as_str),
            event.http_status,
            event.attacked_http_status,
            event.duration_milliseconds,
            event.was_read
        ],
    )
}

pub fn event_update(
    tx: &mut dyn Tx,
    scope: Scope,
    key_id: KeyId,
    event: &WatchedEvent,
) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE chaos_events SET http_status = ?4, attacked_http_status = ?5, \
         duration_milliseconds = ?6, was_read = ?7 WHERE scope = ?1 AND key_id = ?2 AND event_id = \
         ?3",
        values![
            scope,
            key_id,
            event.event_id,
            event.http_status,
            event.attacked_http_status,
            event.duration_milliseconds,
            event.was_read
        ],
    )
}
