//! Deposit addresses derived ahead of the requests that hand them out, each index handed out at most once.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::derivation::{ADDRESS_INDEX_MAX, AccountKey};
use super::tron_address::TronAddress;
use crate::kernel::StoreError;
use crate::store::{Tx, migrate};

/// Addresses that wait derived.
pub const READY_MAX: usize = 4_096;
/// Indices that one write to the store reserves; what is left of them at a stop is never handed out.
pub const RESERVED_INDICES: i64 = 16_384;

#[derive(Default)]
struct Shelf {
    ready: VecDeque<(i64, TronAddress)>,
    next_index: i64,
    reserved_end: i64,
}

/// The shelf of one mode's addresses.
pub struct AddressPool {
    key: AccountKey,
    index_name: String,
    shelf: Mutex<Shelf>,
}

impl AddressPool {
    /// `index_name` is where the store keeps the next index that no node has reserved.
    pub fn new(key: AccountKey, index_name: String) -> AddressPool {
        AddressPool { key, index_name, shelf: Mutex::default() }
    }

    /// Reserves indices in the store, if few are left.
    pub fn reserve(&self, tx: &mut dyn Tx) -> Result<(i64, i64), StoreError> {
        let from = match migrate::read_meta(tx, &self.index_name)? {
            Some(bytes) => String::from_utf8(bytes)
                .ok()
                .and_then(|text| text.parse::<i64>().ok())
                .ok_or_else(|| StoreError::Broken("the next address index does not read".into()))?,
            None => 0,
        };
        let end = (from + RESERVED_INDICES).min(i64::from(ADDRESS_INDEX_MAX) + 1);
        if end <= from {
            return Err(StoreError::Broken("the account key has no addresses left: configure a new account key".into()));
        }
        migrate::write_meta(tx, &self.index_name, end.to_string().as_bytes())?;
        Ok((from, end))
    }

    /// Takes over indices after their reservation committed.
    pub fn restock(&self, from: i64, end: i64) {
        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        if shelf.next_index >= shelf.reserved_end {
            shelf.next_index = from;
            shelf.reserved_end = end;
        } else if shelf.reserved_end == from {
            shelf.reserved_end = end;
        }
    }

    /// Whether another reservation is due.
    pub fn needs_indices(&self) -> bool {
        let shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.reserved_end - shelf.next_index < RESERVED_INDICES / 2
    }

    /// Derives up to `count` more addresses for the shelf; answers whether it is full.
    pub fn derive(&self, count: usize) -> bool {
        for _ in 0..count {
            let index = {
                let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
                if shelf.ready.len() >= READY_MAX || shelf.next_index >= shelf.reserved_end {
                    return true;
                }
                shelf.next_index += 1;
                shelf.next_index - 1
            };
            // The point arithmetic runs outside the lock, so that requests never wait for it.
            if let Some(address) = self.address(index) {
                self.shelf.lock().unwrap_or_else(PoisonError::into_inner).ready.push_back((index, address));
            }
        }
        false
    }

    fn address(&self, index: i64) -> Option<TronAddress> {
        u32::try_from(index).ok().and_then(|index| self.key.address(index).ok())
    }

    /// A fresh address and its derivation index. One taken for a transaction that is undone stays unused.
    pub fn take(&self) -> Result<(i64, TronAddress), StoreError> {
        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ready) = shelf.ready.pop_front() {
            return Ok(ready);
        }
        while shelf.next_index < shelf.reserved_end {
            let index = shelf.next_index;
            shelf.next_index += 1;
            if let Some(address) = self.address(index) {
                return Ok((index, address));
            }
        }
        Err(StoreError::Unavailable("no deposit addresses are ready".into()))
    }
}
