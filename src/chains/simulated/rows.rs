//! The table `simulated_transactions`.

use super::SimulatedTransaction;
use crate::chains::address_bytes::AddressBytes;
use crate::kernel::{Currency, Money, Scope, StoreError};
use crate::store::{Row, Tx};
use crate::values;

const COLUMNS: &str = "transaction_hash, block_time, block_number, sent_milliseconds, \
 from_address, to_address, asset, units";

fn read(mut row: Row) -> Result<SimulatedTransaction, StoreError> {
    Ok(SimulatedTransaction {
        transaction_hash: row.text()?,
        block_time: row.int()?,
        block_number: row.int()?,
        sent_milliseconds: row.int()?,
        from_address: AddressBytes::stored(&row.bytes()?)?,
        to_address: AddressBytes::stored(&row.bytes()?)?,
        asset: row.text()?,
        amount: Money::new(row.int()?, Currency::Usdt),
    })
}

/// The time of the account's last block, in Unix seconds; 0 before the first.
pub fn last_block_time(tx: &mut dyn Tx, scope: Scope) -> Result<i64, StoreError> {
    let row = tx.row(
        "SELECT block_time FROM simulated_transactions WHERE scope = ?1 ORDER BY \
         block_number DESC LIMIT 1",
        values![scope],
    )?;
    row.map_or(Ok(0), |mut row| row.int())
}

/// The number of the account's last block; 0 before the first.
pub(super) fn last_block_number(tx: &mut dyn Tx, scope: Scope) -> Result<i64, StoreError> {
    let row = tx.row(
        "SELECT block_number FROM simulated_transactions WHERE scope = ?1 ORDER BY \
         block_number DESC LIMIT 1",
        values![scope],
    )?;
    row.map_or(Ok(0), |mut row| row.int())
}

pub(super) fn insert(
    tx: &mut dyn Tx,
    scope: Scope,
    transaction: &SimulatedTransaction,
) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO simulated_transactions (scope, transaction_hash, block_time, block_number, \
         sent_milliseconds, from_address, to_address, asset, units) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        values![
            scope,
            &transaction.transaction_hash,
            transaction.block_time,
            transaction.block_number,
            transaction.sent_milliseconds,
            &transaction.from_address,
            &transaction.to_address,
            &transaction.asset,
            transaction.amount.units,
        ],
    )
}

pub fn find(
    tx: &mut dyn Tx,
    scope: Scope,
    transaction_hash: &str,
) -> Result<Option<SimulatedTransaction>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM simulated_transactions WHERE scope = ?1 AND transaction_hash = ?2"
    );
    tx.row(&sql, values![scope, transaction_hash])?.map(read).transpose()
}
