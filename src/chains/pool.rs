//! Deposit addresses derived ahead of the requests that hand them out, each index handed out at
//! most once.
//!
//! The key of the store's table `deposit_addresses` is the address. In the order of their indices,
//! addresses are spread evenly over the key's range, so that each would change a page of its own.
//! They are therefore derived in batches, and each batch is handed out in rising order: neighbours
//! in time become neighbours in the table.
//!
//! Indices that are reserved but not handed out when the process stops are lost. On a quiet server
//! those are 1 024 and a batch of 4 096, so the 2^31 indices of an account key last for 419 000
//! starts. Under full load they are at most 1 024 and two batches of 65 536: 16 000 starts.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::address_bytes::AddressBytes;
use super::derivation::{ADDRESS_INDEX_MAX, AccountXpub};
use super::port::ChainKind;
use super::watched::WatchedAddresses;
use crate::kernel::StoreError;
use crate::store::{Tx, meta};

/// The smallest batch, on a server with little to do: 0.1 s of CPU time.
pub const BATCH_ADDRESSES_MIN: usize = 4_096;
/// The largest batch, on a server that uses it up within a minute: 1 s of CPU time and 2.5 MiB.
pub const BATCH_ADDRESSES_MAX: usize = 65_536;
/// How long a batch is meant to last.
const BATCH_MILLISECONDS: i64 = 60_000;
/// Indices that stay reserved in case a batch is used up too early: until the next one is complete,
/// addresses are derived when they are requested.
pub const SPARE_INDICES: u32 = 1_024;
/// The head start of the next batch: it is derived this many addresses further than its pace
/// requires (`growing_target`).
const AHEAD_ADDRESSES: usize = 64;

struct FreshAddress {
    index: u32,
    address: AddressBytes,
}

/// Sorts addresses so that the lowest is popped first.
fn sort(batch: &mut [FreshAddress]) {
    batch.sort_unstable_by_key(|fresh| Reverse(fresh.address));
}

#[derive(Default)]
struct AddressBatches {
    /// The current batch, from which addresses are handed out.
    present: Vec<FreshAddress>,
    /// How many addresses the current batch had at first.
    present_size: usize,
    /// When an address of the current batch was first seen to be used, by the store's clock.
    begun_milliseconds: Option<i64>,
    /// The next batch while it is derived, not yet sorted.
    growing: Vec<FreshAddress>,
    /// How many addresses the next batch is to have; 0 unless it is being derived.
    growing_size: usize,
    /// The next batch, if it is complete.
    next: Option<Vec<FreshAddress>>,
    /// Indices that the store reserved for this process and that are not used yet.
    reserved: VecDeque<Range<u32>>,
}

impl AddressBatches {
    fn reserved_count(&self) -> u32 {
        self.reserved.iter().map(|range| range.end - range.start).sum()
    }

    /// Takes the next reserved index.
    fn take_index(&mut self) -> Option<u32> {
        while let Some(range) = self.reserved.front_mut() {
            if let Some(index) = range.next() {
                return Some(index);
            }
            self.reserved.pop_front();
        }
        None
    }

    fn used_count(&self) -> usize {
        self.present_size - self.present.len()
    }

    fn begin(&mut self, batch: Vec<FreshAddress>) {
        (self.present_size, self.present, self.begun_milliseconds) = (batch.len(), batch, None);
    }

    /// How many addresses the next batch should have by now. Its derivation begins when half of the
    /// current batch is used. For each further percent that is used, three percent of the next
    /// batch are derived, so that deriving never takes a whole core for long.
    fn growing_target(&self) -> usize {
        if self.present.is_empty() {
            return self.growing_size;
        }
        let beyond_half = self.used_count().saturating_sub(self.present_size / 2);
        (beyond_half * 3 * self.growing_size / self.present_size + AHEAD_ADDRESSES)
            .min(self.growing_size)
    }
}

/// The next index that nobody reserved, as it is stored and as a number.
fn index_next(tx: &mut dyn Tx, index_name: &str) -> Result<(Option<Vec<u8>>, u32), StoreError> {
    let stored = meta::read(tx, index_name)?;
    let number =
        stored.as_deref().map_or(Some(0), |bytes| std::str::from_utf8(bytes).ok()?.parse().ok());
    Ok((
        stored,
        number.ok_or_else(|| StoreError::Broken("the next address index cannot be read".into()))?,
    ))
}

/// Skips the next `count` indices and answers them. For use after a restore: the indices handed out
/// since the backup already belong to other transfers.
pub fn skip(tx: &mut dyn Tx, index_name: &str, count: u32) -> Result<Range<u32>, StoreError> {
    let (stored, from) = index_next(tx, index_name)?;
    let end = from.saturating_add(count).min(ADDRESS_INDEX_MAX + 1);
    meta::replace(tx, index_name, stored.as_deref(), end.to_string().as_bytes())?;
    Ok(from..end)
}

/// Whether this database has never reserved an index under this name.
pub fn is_new(tx: &mut dyn Tx, index_name: &str) -> Result<bool, StoreError> {
    Ok(index_next(tx, index_name)?.0.is_none())
}

/// `count` addresses whose history shows whether an account key was used before. A quarter of them
/// are those of the lowest indices, which other wallets begin with; the others are those that a new
/// database hands out first.
pub fn first_addresses(
    chain: &dyn ChainKind,
    key: &AccountXpub,
    count: usize,
) -> Vec<AddressBytes> {
    let indices = 0..u32::try_from(BATCH_ADDRESSES_MIN).unwrap_or(u32::MAX);
    let mut all: Vec<_> = indices.filter_map(|index| chain.deposit_address(key, index)).collect();
    let mut first: Vec<_> = all.iter().take(count / 4).copied().collect();
    all.sort_unstable();
    first.extend(all.into_iter().take(count - count / 4));
    first
}

/// The batches of one mode's addresses.
pub struct AddressPool {
    account_fingerprint: u32,
    kind: &'static dyn ChainKind,
    key: AccountXpub,
    index_name: String,
    size_min: usize,
    size_max: usize,
    batches: Mutex<AddressBatches>,
    /// Whether no index is reserved, because the account key was used before or may have been.
    is_held: AtomicBool,
    /// A filter of the addresses that were handed out, for the follower of the chain.
    pub watched: WatchedAddresses,
}

impl AddressPool {
    /// `index_name` is where the store keeps the key's next index that no process has reserved.
    pub fn new(kind: &'static dyn ChainKind, key: AccountXpub, index_name: String) -> AddressPool {
        AddressPool {
            account_fingerprint: key.fingerprint(),
            kind,
            key,
            index_name,
            size_min: BATCH_ADDRESSES_MIN,
            size_max: BATCH_ADDRESSES_MAX,
            batches: Mutex::default(),
            is_held: AtomicBool::new(false),
            watched: WatchedAddresses::default(),
        }
    }

    /// Where the store keeps the next index.
    pub fn index_name(&self) -> &str {
        &self.index_name
    }

    /// Reserves no index until [`AddressPool::release`], so that no address can be handed out. Call
    /// it before the pool has reserved any.
    pub fn hold(&self) {
        self.is_held.store(true, Ordering::Relaxed);
    }

    pub fn release(&self) {
        self.is_held.store(false, Ordering::Relaxed);
    }

    pub fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Relaxed)
    }

    /// The fingerprint of the account key that the addresses are derived from. Each transfer keeps
    /// it.
    pub fn account_fingerprint(&self) -> u32 {
        self.account_fingerprint
    }

    fn batches(&self) -> MutexGuard<'_, AddressBatches> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Indices to reserve: what the batch in the making still needs, and the spare ones.
    fn indices_missing(&self) -> u32 {
        let batches = self.batches();
        let growing = u32::try_from(batches.growing_size.saturating_sub(batches.growing.len()))
            .unwrap_or(u32::MAX / 2);
        (growing + SPARE_INDICES).saturating_sub(batches.reserved_count())
    }

    /// Whether it is time to call [`AddressPool::reserve`] again.
    pub fn needs_indices(&self) -> bool {
        !self.is_held() && self.indices_missing() >= SPARE_INDICES / 2
    }

    /// Reserves indices in the store, as many as are due. They are taken over with
    /// [`AddressPool::restock`] after the commit.
    pub fn reserve(&self, tx: &mut dyn Tx) -> Result<Range<u32>, StoreError> {
        let (stored, from) = index_next(tx, &self.index_name)?;
        let end = from.saturating_add(self.indices_missing()).min(ADDRESS_INDEX_MAX + 1);
        if from > ADDRESS_INDEX_MAX {
            return Err(StoreError::Broken(
                "the account key has no addresses left: configure a new account key".into(),
            ));
        }
        // Two processes that read the same index must not both have it.
        meta::replace(tx, &self.index_name, stored.as_deref(), end.to_string().as_bytes())?;
        Ok(from..end)
    }

    /// Takes over indices after their reservation committed.
    pub fn restock(&self, indices: Range<u32>) {
        self.batches().reserved.push_back(indices);
    }

    /// Derives up to `count` more addresses for the next batch, if it is time. `milliseconds` is
    /// the store's clock. Answers `true` if nothing is left to do for now.
    pub fn derive(&self, count: usize, milliseconds: i64) -> bool {
        let indices: Vec<u32> = {
            let mut batches = self.batches();
            if batches.begun_milliseconds.is_none() && batches.used_count() > 0 {
                batches.begun_milliseconds = Some(milliseconds);
            }
            if batches.next.is_some() {
                return true;
            }
            if batches.growing_size == 0 {
                if batches.present.len() > batches.present_size / 2 {
                    return true;
                }
                let elapsed = milliseconds - batches.begun_milliseconds.unwrap_or(milliseconds);
                batches.growing_size = self.size_next(batches.used_count(), elapsed);
            }
            let missing = batches.growing_target().saturating_sub(batches.growing.len());
            (0..missing.min(count)).map_while(|_| batches.take_index()).collect()
        };
        if indices.is_empty() {
            return true;
        }
        // The point arithmetic runs outside the lock, so that requests never wait for it.
        let fresh: Vec<FreshAddress> =
            indices.into_iter().filter_map(|index| self.fresh(index)).collect();
        let mut batches = self.batches();
        batches.growing.extend(fresh);
        if batches.growing_size == 0 || batches.growing.len() < batches.growing_size {
            return false;
        }
        let mut batch = std::mem::take(&mut batches.growing);
        drop(batches);
        sort(&mut batch);
        let mut batches = self.batches();
        (batches.next, batches.growing_size) = (Some(batch), 0);
        true
    }

    /// The size of the next batch: enough addresses for a minute, at the rate at which `used` were
    /// used. If fewer than half of the smallest batch were used, that says too little about the
    /// rate, and the next batch is the smallest.
    fn size_next(&self, used: usize, elapsed_milliseconds: i64) -> usize {
        if used < self.size_min / 2 {
            return self.size_min;
        }
        let in_a_minute = used as i64 * BATCH_MILLISECONDS / elapsed_milliseconds.max(1);
        usize::try_from(in_a_minute).unwrap_or(0).clamp(self.size_min, self.size_max)
    }

    fn fresh(&self, index: u32) -> Option<FreshAddress> {
        self.kind.deposit_address(&self.key, index).map(|address| FreshAddress { index, address })
    }

    /// A fresh address and its derivation index; `None` if no reserved index is left. An address
    /// taken in a transaction that is undone stays unused.
    pub fn take(&self) -> Option<(i64, AddressBytes)> {
        let taken = self.take_unnoted()?;
        self.watched.add(&taken.1);
        Some(taken)
    }

    fn take_unnoted(&self) -> Option<(i64, AddressBytes)> {
        let mut batches = self.batches();
        if batches.present.is_empty() {
            if let Some(next) = batches.next.take() {
                batches.begin(next);
            } else if !batches.growing.is_empty() {
                // The current batch is used up before the next one is complete. What there is of
                // the next one becomes the current batch.
                let mut batch = std::mem::take(&mut batches.growing);
                sort(&mut batch);
                batches.growing_size = 0;
                batches.begin(batch);
            }
        }
        if let Some(FreshAddress { index, address }) = batches.present.pop() {
            return Some((i64::from(index), address));
        }
        while let Some(index) = batches.take_index() {
            if let Some(FreshAddress { index, address }) = self.fresh(index) {
                return Some((i64::from(index), address));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::chains::tron::Tron;
    use crate::store::sqlite::SqliteTx;

    const NAME: &str = "test_address_index_next";

    fn pool(size_min: usize, size_max: usize) -> AddressPool {
        AddressPool {
            size_min,
            size_max,
            ..AddressPool::new(&Tron, AccountXpub::generate_for_test_mode(&[7; 64]), NAME.into())
        }
    }

    fn with_store(test: impl FnOnce(&mut dyn Tx)) {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let mut tx = SqliteTx::new(&connection);
        crate::store::migrate::migrate(&mut tx).unwrap();
        test(&mut tx);
    }

    /// Does what the worker does until nothing is left to do; answers how many indices were
    /// reserved.
    fn work(pool: &AddressPool, tx: &mut dyn Tx, milliseconds: i64) -> u32 {
        let mut reserved_count = 0;
        loop {
            if pool.needs_indices() {
                let range = pool.reserve(tx).unwrap();
                reserved_count += range.end - range.start;
                pool.restock(range);
            }
            if pool.derive(64, milliseconds) {
                return reserved_count;
            }
        }
    }

    #[test]
    fn a_batch_is_handed_out_in_rising_order_and_is_derived_from_its_indices() {
        with_store(|tx| {
            let pool = pool(200, 800);
            let mut seen = HashSet::new();
            let mut steps_back = 0;
            let mut last = None;
            for _ in 0..20 {
                for _ in 0..100 {
                    work(&pool, tx, 0);
                    let (index, address) = pool.take().unwrap();
                    assert!(seen.insert(index), "index {index} was handed out twice");
                    let derived = pool.key.address(u32::try_from(index).unwrap()).unwrap();
                    assert_eq!(derived.bytes(), address);
                    steps_back += usize::from(last.is_some_and(|last| address < last));
                    last = Some(address);
                }
            }
            // The first batch has 200 addresses. The clock stands still, so each later batch has
            // the largest size, 800.
            assert_eq!(steps_back, 3, "2000 addresses are of 4 batches");
        });
    }

    #[test]
    fn the_next_batch_has_what_a_minute_uses() {
        let pool = pool(4_096, 65_536);
        for (used, elapsed_milliseconds, size) in [
            (0, 0, 4_096),
            (5, 0, 4_096),
            (2_047, 1, 4_096),
            (2_048, 0, 65_536),
            (2_048, 300, 65_536),
            (2_048, 15_000, 8_192),
            (2_048, 30_000, 4_096),
            (2_048, 3_600_000, 4_096),
            (32_768, 30_000, 65_536),
            (32_768, 60_000, 32_768),
            (32_768, -5, 65_536),
        ] {
            assert_eq!(
                pool.size_next(used, elapsed_milliseconds),
                size,
                "{used} used in {elapsed_milliseconds} ms"
            );
        }
    }

    #[test]
    fn first_addresses_are_those_that_a_new_database_hands_out_first() {
        with_store(|tx| {
            let key = AccountXpub::generate_for_test_mode(&[7; 64]);
            let pool = AddressPool::new(&Tron, key.clone(), NAME.into());
            assert!(is_new(tx, NAME).unwrap());
            let first = first_addresses(&Tron, &key, 12);
            assert_eq!(first[..3], [0, 1, 2].map(|index| key.address(index).unwrap().bytes()));
            work(&pool, tx, 0);
            assert!(!is_new(tx, NAME).unwrap());
            for wanted in &first[3..] {
                assert_eq!(pool.take().unwrap().1, *wanted);
            }
        });
    }

    #[test]
    fn a_quiet_server_reserves_and_derives_little() {
        with_store(|tx| {
            let pool = pool(800, 6_400);
            assert_eq!(work(&pool, tx, 0), 800 + SPARE_INDICES, "a batch and the spare indices");
            assert_eq!(pool.batches().next.as_ref().map(Vec::len), Some(800));
            pool.take().unwrap();
            assert_eq!(
                work(&pool, tx, 0),
                0,
                "the next batch waits until half of this one is used"
            );
            assert!(pool.batches().growing.is_empty());
            for _ in 1..400 {
                pool.take().unwrap();
            }
            assert_eq!(work(&pool, tx, 60_000), 800, "one more batch, no larger");
            assert!(pool.batches().next.is_none());
            assert_eq!(pool.batches().growing.len(), AHEAD_ADDRESSES, "no further ahead");
            for _ in 0..399 {
                pool.take().unwrap();
            }
            work(&pool, tx, 120_000);
            assert_eq!(
                pool.batches().next.as_ref().map(Vec::len),
                Some(800),
                "complete before the present one is used up"
            );
        });
    }

    #[test]
    fn addresses_are_derived_on_request_if_no_batch_is_ready() {
        with_store(|tx| {
            let pool = pool(200, 200);
            assert!(pool.take().is_none(), "nothing was reserved");
            let range = pool.reserve(tx).unwrap();
            assert_eq!(range, 0..SPARE_INDICES);
            pool.restock(range);
            assert_eq!(pool.take().unwrap().0, 0, "in the order of derivation, without a batch");
            assert!(!pool.derive(10, 0));
            let (some, _) = pool.take().unwrap();
            assert!((1..=10).contains(&some), "what there is of the next batch");
            let mut seen: HashSet<i64> = [0, some].into();
            for _ in 2..SPARE_INDICES {
                assert!(seen.insert(pool.take().unwrap().0));
            }
            assert!(pool.take().is_none(), "all reserved indices were handed out");
        });
    }

    #[test]
    fn no_index_is_handed_out_twice_by_restarts_neighbours_and_threads() {
        with_store(|tx| {
            let mut seen = HashSet::new();
            for round in 0..6 {
                // Two processes at the same time, and the next round is after a restart of both.
                let pools = [pool(50, 150), pool(50, 150)];
                for step in 0..3 {
                    for pool in &pools {
                        work(pool, tx, step);
                        for _ in 0..(round * 17 + step * 31) {
                            assert!(seen.insert(pool.take().unwrap().0), "handed out twice");
                        }
                    }
                }
            }
            let pool = pool(300, 300);
            pool.restock(pool.reserve(tx).unwrap());
            pool.restock(1_000_000..1_004_000);
            let is_over = AtomicBool::new(false);
            let taken: Vec<i64> = std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        pool.derive(7, 0);
                    }
                });
                let takers: Vec<_> = (0..3)
                    .map(|_| {
                        scope.spawn(|| {
                            (0..1_000).map(|_| pool.take().unwrap().0).collect::<Vec<_>>()
                        })
                    })
                    .collect();
                let taken = takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect();
                is_over.store(true, Ordering::Relaxed);
                taken
            });
            assert!(taken.into_iter().all(|index| seen.insert(index)), "handed out twice");
        });
    }

    #[test]
    fn the_last_indices_are_used_and_then_none_can_be_reserved() {
        with_store(|tx| {
            meta::write(tx, NAME, (ADDRESS_INDEX_MAX - 2).to_string().as_bytes()).unwrap();
            let pool = pool(50, 50);
            let range = pool.reserve(tx).unwrap();
            assert_eq!(range, ADDRESS_INDEX_MAX - 2..ADDRESS_INDEX_MAX + 1);
            pool.restock(range);
            let taken: Vec<i64> = (0..3).map(|_| pool.take().unwrap().0).collect();
            assert_eq!(taken.last(), Some(&i64::from(ADDRESS_INDEX_MAX)));
            let refused = pool.reserve(tx).unwrap_err();
            assert!(refused.to_string().contains("configure a new account key"), "{refused}");
        });
    }
}
