//! The rows of what is left of replays, one for each account that has one under way.

use std::sync::LazyLock;

use super::{EndpointId, EventId};
use crate::kernel::{Scope, StoreError};
use crate::store::{Row, Tx, insert_sql};
use crate::values;
use crate::webhooks::replay::LeftReplay;

const COLUMNS: &str = "scope, endpoint_id, next_event_id, before_event_id, created_from, \
 created_to, only_failed";

static INSERT: LazyLock<String> = LazyLock::new(|| insert_sql("webhook_replays", COLUMNS));

fn read(mut row: Row) -> Result<LeftReplay, StoreError> {
    Ok(LeftReplay {
        scope: row.scope()?,
        endpoint_id: row.id()?,
        next: row.id()?,
        before: row.id()?,
        created: row.int()?..=row.int()?,
        only_failed: row.bool()?,
    })
}

pub fn replay_left(tx: &mut dyn Tx, scope: Scope) -> Result<Option<LeftReplay>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM webhook_replays WHERE scope = ?1");
    tx.row(&sql, values![scope])?.map(read).transpose()
}

/// Accounts with a replay under way.
pub fn replay_scopes(tx: &mut dyn Tx) -> Result<Vec<Scope>, StoreError> {
    let sql = "SELECT scope FROM webhook_replays ORDER BY scope";
    tx.rows(sql, &[])?.into_iter().map(|mut row| row.scope()).collect()
}

pub fn replay_insert(tx: &mut dyn Tx, left: &LeftReplay) -> Result<(), StoreError> {
    tx.execute_one(
        &INSERT,
        values![
            left.scope,
            left.endpoint_id,
            left.next,
            left.before,
            *left.created.start(),
            *left.created.end(),
            left.only_failed,
        ],
    )
}

/// Moves a replay on that is still where it was read.
pub fn replay_move(tx: &mut dyn Tx, left: &LeftReplay, from: EventId) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE webhook_replays SET next_event_id = ?4 WHERE scope = ?1 AND endpoint_id = ?2 AND \
         next_event_id = ?3",
        values![left.scope, left.endpoint_id, from, left.next],
    )
}

/// Ends a replay that is still where it was read.
pub fn replay_end(tx: &mut dyn Tx, left: &LeftReplay, from: EventId) -> Result<(), StoreError> {
    tx.execute_one(
        "DELETE FROM webhook_replays WHERE scope = ?1 AND endpoint_id = ?2 AND next_event_id = ?3",
        values![left.scope, left.endpoint_id, from],
    )
}

/// Ends the replay to an endpoint that is deleted.
pub fn replay_drop(tx: &mut dyn Tx, scope: Scope, id: EndpointId) -> Result<(), StoreError> {
    let sql = "DELETE FROM webhook_replays WHERE scope = ?1 AND endpoint_id = ?2";
    tx.execute(sql, values![scope, id]).map(|_| ())
}
