//! Which addresses were handed out, in memory, so that following a chain costs the same however many there are.
//!
//! Nearly every address of a block is a stranger's, and asking the register for each would read a page of its own in a large
//! table. The filter says "no" only with certainty: it starts with all that the register holds, and every address enters it
//! before the transaction that hands it out commits. What it says "perhaps" to is asked of the register, which is the truth.
//!
//! That certainty holds where one process hands out all addresses. Where several do, nobody completes the filter and all is asked.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::store::key_filter::KeyFilter;

/// Addresses in the first part of the filter; each further part has room for as many as all before it.
const ROOM_ADDRESSES_MIN: usize = 65_536;

#[derive(Default)]
struct Parts {
    /// Filters with how many more addresses each takes before it claims too many strangers.
    filters: Vec<(KeyFilter, usize)>,
    count: usize,
    is_complete: bool,
}

/// Addresses that may be ours.
#[derive(Default)]
pub struct Watched {
    parts: Mutex<Parts>,
}

/// An address is part of a hash, so its own bits spread it.
fn key(address: &[u8; 20]) -> [u8; 16] {
    std::array::from_fn(|index| address[index])
}

impl Watched {
    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an address that is about to be handed out.
    pub fn note(&self, address: &[u8; 20]) {
        let mut parts = self.parts();
        if parts.filters.last().is_none_or(|(_, room)| *room == 0) {
            let room = parts.count.max(ROOM_ADDRESSES_MIN);
            parts.filters.push((KeyFilter::with_room(room), room));
        }
        if let Some((filter, room)) = parts.filters.last_mut() {
            filter.insert(&key(address));
            *room -= 1;
        }
        parts.count += 1;
    }

    /// Whether an address may have been handed out; `false` is certain. Before [`Watched::complete`] every address may.
    pub fn may_hold(&self, address: &[u8; 20]) -> bool {
        let parts = self.parts();
        !parts.is_complete || parts.filters.iter().any(|(filter, _)| filter.may_hold(&key(address)))
    }

    /// Says that everything handed out so far was noted, so that from now on a "no" is certain.
    pub fn complete(&self) {
        self.parts().is_complete = true;
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    fn addresses(count: usize, seed: u64) -> Vec<[u8; 20]> {
        let mut random = StdRng::seed_from_u64(seed);
        let mut address = || {
            let mut bytes = [0; 20];
            random.fill_bytes(&mut bytes);
            bytes
        };
        (0..count).map(|_| address()).collect()
    }

    #[test]
    fn parts_grow_and_forget_nothing() {
        let watched = Watched::default();
        let ours = addresses(ROOM_ADDRESSES_MIN * 4 + 1, 1);
        ours.iter().for_each(|address| watched.note(address));
        assert!(watched.may_hold(&addresses(1, 3)[0]), "it answers for nobody before it is complete");
        watched.complete();
        assert!(ours.iter().all(|address| watched.may_hold(address)));
        assert_eq!(watched.parts().filters.len(), 4, "64 Ki, 64 Ki, 128 Ki and 256 Ki");
        let claimed = addresses(50_000, 2).iter().filter(|address| watched.may_hold(address)).count();
        assert!(claimed < 200, "{claimed} of 50000 strangers were claimed");
    }
}
