//! The chain of test mode: one for each account, with blocks every three seconds and a final view
//! that trails.

use super::{Depth, Movement};
use crate::kernel::{Currency, Money, Now, Scope, StoreError, hex};
use crate::store::{Row, Tx};
use crate::values;

/// Seconds between blocks, as on TRON.
const BLOCK_SECONDS: i64 = 3;
/// Confirmations of a block in the final view: 19 of TRON's 27 producers.
const CONFIRMATIONS_FINAL: i64 = 19;

/// Where simulated senders pay from.
pub const PAYER_ADDRESS: [u8; 20] = [0x5A; 20];

/// A transaction that a test helper put on the simulated chain.
pub struct SimulatedTransaction {
    pub transaction_hash: String,
    pub block_time: i64,
    block_number: i64,
    sent_milliseconds: i64,
    from_address: Vec<u8>,
    to_address: Vec<u8>,
    asset: String,
    amount: Money,
}

const COLUMNS: &str = "transaction_hash, block_time, block_number, sent_milliseconds, \
 from_address, to_address, asset, units";

fn read(mut row: Row) -> Result<SimulatedTransaction, StoreError> {
    Ok(SimulatedTransaction {
        transaction_hash: row.text()?,
        block_time: row.int()?,
        block_number: row.int()?,
        sent_milliseconds: row.int()?,
        from_address: row.bytes()?,
        to_address: row.bytes()?,
        asset: row.text()?,
        amount: Money::new(row.int()?, Currency::Usdt),
    })
}

/// The time of the account's last block, 0 before the first.
pub fn last_block_time(tx: &mut dyn Tx, scope: Scope) -> Result<i64, StoreError> {
    let row = tx.row(
        "SELECT block_time FROM simulated_transactions WHERE scope = ?1 ORDER BY \
         block_number DESC LIMIT 1",
        values![scope],
    )?;
    row.map_or(Ok(0), |mut row| row.int())
}

/// Puts a transaction into a block of the account's chain.
pub fn send(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    to_address: [u8; 20],
    asset: &str,
    amount: Money,
    block_time: i64,
) -> Result<SimulatedTransaction, StoreError> {
    let last = tx.row(
        "SELECT block_number FROM simulated_transactions WHERE scope = ?1 ORDER BY \
         block_number DESC LIMIT 1",
        values![scope],
    )?;
    let last_number = last.map_or(Ok(0), |mut row| row.int())?;
    let transaction_hash = hex::encode(now.random_bytes::<32>());
    let transaction = SimulatedTransaction {
        transaction_hash,
        block_time,
        block_number: (last_number + 1).max(block_time / BLOCK_SECONDS),
        sent_milliseconds: now.business_milliseconds(),
        from_address: PAYER_ADDRESS.to_vec(),
        to_address: to_address.to_vec(),
        asset: asset.to_owned(),
        amount,
    };
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
    )?;
    Ok(transaction)
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

impl SimulatedTransaction {
    /// What a watcher sees of it at a moment: at once in the mempool, a step later in a block, two
    /// steps later final.
    pub fn movement(
        &self,
        business_milliseconds: i64,
        step_milliseconds: i64,
    ) -> Result<Movement, StoreError> {
        let age = business_milliseconds - self.sent_milliseconds;
        let (number, time) = (self.block_number, self.block_time);
        let depth = if age >= 2 * step_milliseconds {
            Depth::Final { number, time, confirmations: CONFIRMATIONS_FINAL }
        } else if age >= step_milliseconds {
            Depth::Block { number, time, confirmations: 1 }
        } else {
            Depth::Seen
        };
        let address = |bytes: &[u8]| {
            bytes
                .try_into()
                .map_err(|_| StoreError::Broken("an address is not 20 bytes long".into()))
        };
        Ok(Movement {
            transaction_hash: self.transaction_hash.clone(),
            log_index: 0,
            from_address: address(&self.from_address)?,
            to_address: address(&self.to_address)?,
            asset: self.asset.clone(),
            amount: self.amount,
            depth,
        })
    }
}
