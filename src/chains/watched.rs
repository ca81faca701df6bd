//! A filter in memory of the addresses that were handed out, so that the cost of following a chain
//! does not depend on their number.
//!
//! Nearly every address in a block is foreign, and each look into the store's table
//! (`deposit_addresses`) would read a page. So the filter is asked first. If it says "perhaps", the
//! table is asked. Its "no" is certain: everything that is in the table at the start is added to
//! the filter, and every new address is added before the transaction that hands the address out
//! commits.
//!
//! This requires that one process hands out all addresses. If several do (PostgreSQL), nobody calls
//! `complete`, the filter always says "perhaps", and the table is asked about every address.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::address_bytes::AddressBytes;
use crate::store::key_filter::KeyFilter;

/// A new part of the filter has room for as many addresses as were added since the start, and for
/// at least this many.
const ROOM_ADDRESSES_MIN: usize = 65_536;
/// The filters have this many times the usual bits for each address. A block has about 160 foreign
/// addresses, and each wrong "perhaps" costs a read of the table. With twice the usual bits (four
/// bytes an address) that happens once in a few hundred blocks.
const WIDTH_FACTOR: usize = 2;

/// A filter of addresses.
struct AddressFilter {
    filter: KeyFilter,
    /// How many more addresses it can hold before it says "perhaps" to too many foreign ones.
    room: usize,
}

impl AddressFilter {
    fn with_room(room: usize) -> AddressFilter {
        AddressFilter { filter: KeyFilter::with_room(room.saturating_mul(WIDTH_FACTOR)), room }
    }
    fn add(&mut self, address: &AddressBytes) {
        self.filter.insert(&address.first_16());
        self.room = self.room.saturating_sub(1);
    }
}

/// The addresses in the table at the start. They are in one part of the filter, because each
/// further part makes every question slower.
pub struct RegisteredAddresses(AddressFilter);

impl RegisteredAddresses {
    /// With room for about `count` addresses.
    pub fn with_room(count: usize) -> RegisteredAddresses {
        RegisteredAddresses(AddressFilter::with_room(count))
    }
    pub fn add(&mut self, address: &AddressBytes) {
        self.0.add(address);
    }
}

#[derive(Default)]
struct Parts {
    parts: Vec<AddressFilter>,
    /// Addresses that were added since the start.
    count: usize,
    is_complete: bool,
}

/// Addresses that may be ours.
#[derive(Default)]
pub struct WatchedAddresses {
    parts: Mutex<Parts>,
}

impl WatchedAddresses {
    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an address that is about to be handed out.
    pub fn add(&self, address: &AddressBytes) {
        let mut known = self.parts();
        if known.parts.last().is_none_or(|part| part.room == 0) {
            let room = known.count.max(ROOM_ADDRESSES_MIN);
            known.parts.push(AddressFilter::with_room(room));
        }
        if let Some(part) = known.parts.last_mut() {
            part.add(address);
        }
        known.count += 1;
    }

    /// Whether an address may have been handed out; `false` is certain. Before
    /// [`WatchedAddresses::complete`] every address may.
    pub fn may_hold(&self, address: &AddressBytes) -> bool {
        let known = self.parts();
        !known.is_complete
            || known.parts.iter().any(|part| part.filter.may_hold(&address.first_16()))
    }

    /// Adds everything that was handed out before the start, so that from now on a "no" is certain.
    pub fn complete(&self, registered: RegisteredAddresses) {
        let mut known = self.parts();
        // At the front, because new addresses go into the last part.
        known.parts.insert(0, registered.0);
        known.is_complete = true;
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    fn addresses(count: usize, seed: u64) -> Vec<AddressBytes> {
        let mut random = StdRng::seed_from_u64(seed);
        let mut address = || {
            let mut bytes = [0; 20];
            random.fill_bytes(&mut bytes);
            AddressBytes::of_20(bytes)
        };
        (0..count).map(|_| address()).collect()
    }

    #[test]
    fn parts_grow_and_forget_nothing() {
        let watched = WatchedAddresses::default();
        let ours = addresses(ROOM_ADDRESSES_MIN * 4 + 1, 1);
        ours.iter().for_each(|address| watched.add(address));
        let before = addresses(ROOM_ADDRESSES_MIN * 4, 4);
        let mut registered = RegisteredAddresses::with_room(before.len());
        before.iter().for_each(|address| registered.add(address));
        assert!(
            watched.may_hold(&addresses(1, 3)[0]),
            "before it is complete, every address may be ours"
        );
        watched.complete(registered);
        let new = addresses(1_000, 5);
        new.iter().for_each(|address| watched.add(address));
        assert!(ours.iter().chain(&before).chain(&new).all(|address| watched.may_hold(address)));
        assert_eq!(
            watched.parts().parts.len(),
            5,
            "one for those from before the start, then 64 Ki, 64 Ki, 128 Ki and 256 Ki"
        );
        let mistaken =
            addresses(500_000, 2).iter().filter(|address| watched.may_hold(address)).count();
        assert!(mistaken < 100, "{mistaken} of 500000 foreign addresses may be ours");
    }
}
