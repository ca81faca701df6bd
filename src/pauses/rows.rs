//! The rows of pauses: a handful at most.

use super::{Operation, Pause};
use crate::kernel::StoreError;
use crate::store::{Row, Tx};
use crate::values;

/// The most pauses that are read. Far more than an operator sets, so none is missed.
const PAUSES_COUNT_MAX: i64 = 10_000;
/// What the column `account_number` has for all accounts.
const EVERY_ACCOUNT: i64 = 0;

const ALL: &str = "SELECT operation, account_number, reason, actor, paused_at FROM pauses \
    ORDER BY operation, account_number LIMIT ?1";

fn read(mut row: Row) -> Result<Pause, StoreError> {
    Ok(Pause {
        operation: row.word(Operation::parse)?,
        account_number: Some(row.int()?).filter(|number| *number != EVERY_ACCOUNT),
        reason: row.text()?,
        actor: row.text()?,
        paused_at: row.int()?,
    })
}

/// Every pause that is set.
pub fn all(tx: &mut dyn Tx) -> Result<Vec<Pause>, StoreError> {
    tx.rows(ALL, values![PAUSES_COUNT_MAX])?.into_iter().map(read).collect()
}

/// Prefetches the query of [`all`], so that a shared store has its result when `all` runs.
pub fn prefetch(tx: &mut dyn Tx) -> Result<(), StoreError> {
    tx.prefetch(ALL, values![PAUSES_COUNT_MAX])
}

pub fn insert(tx: &mut dyn Tx, pause: &Pause) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO pauses (operation, account_number, reason, actor, paused_at) \
         VALUES (?1, ?2, ?3, ?4, ?5)",
        values![
            pause.operation.as_str(),
            pause.account_number.unwrap_or(EVERY_ACCOUNT),
            &pause.reason,
            &pause.actor,
            pause.paused_at,
        ],
    )
}

/// Removes a pause; returns whether there was one.
pub fn remove(
    tx: &mut dyn Tx,
    operation: Operation,
    account_number: Option<i64>,
) -> Result<bool, StoreError> {
    let removed = tx.execute(
        "DELETE FROM pauses WHERE operation = ?1 AND account_number = ?2",
        values![operation.as_str(), account_number.unwrap_or(EVERY_ACCOUNT)],
    )?;
    Ok(removed > 0)
}
