//! The chain of test mode without a test net; each account has its own. Only blocks with a
//! transaction exist, numbered about as if there were a block every three seconds. A transaction
//! becomes final by its age in business time, not by the blocks after it.

mod rows;

use super::address_bytes::AddressBytes;
use super::{Depth, Movement};
use crate::kernel::{Money, Now, Scope, StoreError, hex};
use crate::store::Tx;
pub use rows::{find, last_block_time};

/// Seconds between blocks, as on TRON.
const BLOCK_SECONDS: i64 = 3;
/// Confirmations that a final block shows. On TRON a block is final once 19 of the 27 producers
/// have made it or built on it.
const CONFIRMATIONS_FINAL: i64 = 19;

/// The address that simulated payers pay from.
pub const PAYER_ADDRESS: AddressBytes = AddressBytes::of_20([0x5A; 20]);

/// A transaction that a test helper put on the simulated chain.
pub struct SimulatedTransaction {
    pub transaction_hash: String,
    /// Unix seconds.
    pub block_time: i64,
    block_number: i64,
    sent_milliseconds: i64,
    from_address: AddressBytes,
    to_address: AddressBytes,
    asset: String,
    amount: Money,
}

/// Puts a transaction into a new block of the account's chain, at `block_time` in Unix seconds.
pub fn send(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    to_address: AddressBytes,
    asset: &str,
    amount: Money,
    block_time: i64,
) -> Result<SimulatedTransaction, StoreError> {
    let last_number = rows::last_block_number(tx, scope)?;
    let transaction_hash = hex::encode(now.random_bytes::<32>());
    let transaction = SimulatedTransaction {
        transaction_hash,
        block_time,
        block_number: (last_number + 1).max(block_time / BLOCK_SECONDS),
        sent_milliseconds: now.business_milliseconds(),
        from_address: PAYER_ADDRESS,
        to_address,
        asset: asset.to_owned(),
        amount,
    };
    rows::insert(tx, scope, &transaction)?;
    Ok(transaction)
}

impl SimulatedTransaction {
    /// What a node would show of the transaction at a moment of the account's business time. It is
    /// in no block at first, in a block after one step, and final after two.
    pub fn movement(&self, business_milliseconds: i64, step_milliseconds: i64) -> Movement {
        let age = business_milliseconds - self.sent_milliseconds;
        let (number, time) = (self.block_number, self.block_time);
        let depth = if age >= 2 * step_milliseconds {
            Depth::Final { number, time, confirmations: CONFIRMATIONS_FINAL }
        } else if age >= step_milliseconds {
            Depth::Block { number, time, confirmations: 1 }
        } else {
            Depth::Seen
        };
        Movement {
            transaction_hash: self.transaction_hash.clone(),
            log_index: 0,
            from_address: self.from_address,
            to_address: self.to_address,
            contract: None,
            asset: self.asset.clone(),
            amount: self.amount,
            depth,
        }
    }
}
