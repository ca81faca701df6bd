//! The rows of accounts that a service is asked about.

use super::LookUp;
use crate::kernel::id::kind;
use crate::kernel::{Id, Scope, StoreError};
use crate::store::{Row, Tx};
use crate::values;

fn read(mut row: Row) -> Result<LookUp, StoreError> {
    Ok(LookUp {
        scope: row.scope()?,
        beneficiary_id: row.id()?,
        id: row.id()?,
        due_milliseconds: row.int()?,
        attempts_count: row.int()?,
    })
}

pub fn replace(tx: &mut dyn Tx, look_up: &LookUp, created: i64) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO account_look_ups (scope, beneficiary_id, id, due_milliseconds, \
         attempts_count, created) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
         ON CONFLICT (scope, beneficiary_id) DO UPDATE SET id = excluded.id, due_milliseconds = \
         excluded.due_milliseconds, \
         attempts_count = excluded.attempts_count, created = excluded.created",
        values![
            look_up.scope,
            look_up.beneficiary_id,
            look_up.id,
            look_up.due_milliseconds,
            look_up.attempts_count,
            created
        ],
    )
}

pub fn due(
    tx: &mut dyn Tx,
    until_milliseconds: i64,
    rows_max: i64,
) -> Result<Vec<LookUp>, StoreError> {
    let sql = "SELECT scope, beneficiary_id, id, due_milliseconds, attempts_count FROM \
     account_look_ups WHERE due_milliseconds <= ?1 \
         ORDER BY due_milliseconds LIMIT ?2";
    tx.rows(sql, values![until_milliseconds, rows_max])?.into_iter().map(read).collect()
}

pub fn next_due_milliseconds(tx: &mut dyn Tx) -> Result<Option<i64>, StoreError> {
    let row = tx.row(
        "SELECT due_milliseconds FROM account_look_ups ORDER BY due_milliseconds LIMIT 1",
        &[],
    )?;
    row.map(|mut row| row.int()).transpose()
}

/// Moves a question to a later time. Answers `false` if it was replaced, dropped or moved since it
/// was read.
pub fn put_off(
    tx: &mut dyn Tx,
    look_up: &LookUp,
    due_milliseconds: i64,
    attempts_count: i64,
) -> Result<bool, StoreError> {
    let changed = tx.execute(
        "UPDATE account_look_ups SET due_milliseconds = ?5, attempts_count = ?6 \
         WHERE scope = ?1 AND beneficiary_id = ?2 AND id = ?3 AND due_milliseconds = ?4",
        values![
            look_up.scope,
            look_up.beneficiary_id,
            look_up.id,
            look_up.due_milliseconds,
            due_milliseconds,
            attempts_count
        ],
    )?;
    Ok(changed == 1)
}

/// Removes a question. Answers `false` if it was replaced or dropped since it was read.
pub fn remove(tx: &mut dyn Tx, look_up: &LookUp) -> Result<bool, StoreError> {
    let removed = tx.execute(
        "DELETE FROM account_look_ups WHERE scope = ?1 AND beneficiary_id = ?2 AND id = ?3",
        values![look_up.scope, look_up.beneficiary_id, look_up.id],
    )?;
    Ok(removed == 1)
}

/// Removes any question about a beneficiary.
pub fn forget(
    tx: &mut dyn Tx,
    scope: Scope,
    beneficiary_id: Id<kind::Beneficiary>,
) -> Result<(), StoreError> {
    tx.execute(
        "DELETE FROM account_look_ups WHERE scope = ?1 AND beneficiary_id = ?2",
        values![scope, beneficiary_id],
    )
    .map(|_| ())
}

/// Makes all questions due earlier by `milliseconds`.
pub fn make_all_due_earlier(tx: &mut dyn Tx, milliseconds: i64) -> Result<(), StoreError> {
    let sql = "UPDATE account_look_ups SET due_milliseconds = due_milliseconds - ?1";
    tx.execute(sql, values![milliseconds])?;
    Ok(())
}

/// Makes the questions that would become due by `until_milliseconds` due at once.
pub fn release(
    tx: &mut dyn Tx,
    now_milliseconds: i64,
    until_milliseconds: i64,
) -> Result<u64, StoreError> {
    tx.execute(
        "UPDATE account_look_ups SET due_milliseconds = ?1 WHERE due_milliseconds > ?1 AND \
         due_milliseconds <= ?2",
        values![now_milliseconds, until_milliseconds],
    )
}
