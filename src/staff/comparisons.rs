//! Limits how many passwords are compared at once. A comparison takes 19 MiB and a processor, so
//! few run at the same time, and those from one address run one after another. However many
//! attempts one address sends, another address waits for at most one of them.
//!
//! An address here is what `Place::network` gives. So all of a /64 network of IPv6 is one address.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::sign_in::{ComparedAttempt, CountedAttempt};
use crate::kernel::StoreError;

/// The most passwords that are compared at the same time.
const COMPARISONS_MAX: usize = 2;
/// The most attempts that run or wait: from one address, which may be a whole office, and from all
/// addresses.
const ADDRESS_ATTEMPTS_MAX: usize = 64;
const ATTEMPTS_MAX: usize = 1_024;

/// The attempts from an address that run or wait.
struct AddressQueue {
    turn: Arc<Semaphore>,
    count: usize,
}

/// The attempts that run or wait, from all addresses.
#[derive(Default)]
struct AttemptsUnderWay {
    by_address: HashMap<String, AddressQueue>,
    count: usize,
}

/// The attempts to sign in that run or wait in this process, and the limit of those that compare.
pub struct Comparisons {
    threads: Arc<Semaphore>,
    under_way: Mutex<AttemptsUnderWay>,
}

impl Default for Comparisons {
    fn default() -> Comparisons {
        let threads = Arc::new(Semaphore::new(COMPARISONS_MAX));
        Comparisons { threads, under_way: Mutex::default() }
    }
}

/// A place in an address's queue. Dropping it frees the place.
struct EnteredQueue {
    comparisons: Arc<Comparisons>,
    address: String,
}

impl Drop for EnteredQueue {
    fn drop(&mut self) {
        let mut under_way = self.comparisons.under_way();
        under_way.count -= 1;
        if let Some(queue) = under_way.by_address.get_mut(&self.address) {
            queue.count -= 1;
            if queue.count == 0 {
                under_way.by_address.remove(&self.address);
            }
        }
    }
}

/// An address's turn. Its next attempt waits until this is dropped.
pub struct AttemptTurn {
    _permit: OwnedSemaphorePermit,
    entered: EnteredQueue,
}

fn busy() -> StoreError {
    StoreError::Unavailable("passwords cannot be compared now".into())
}

impl Comparisons {
    fn under_way(&self) -> std::sync::MutexGuard<'_, AttemptsUnderWay> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for an address's turn. Refuses at once if too many attempts are under way already.
    pub async fn turn(self: &Arc<Comparisons>, address: &str) -> Result<AttemptTurn, StoreError> {
        let (entered, turn) = self.enter(address).ok_or_else(busy)?;
        let permit = turn.acquire_owned().await.map_err(|_| busy())?;
        Ok(AttemptTurn { _permit: permit, entered })
    }

    fn enter(self: &Arc<Comparisons>, address: &str) -> Option<(EnteredQueue, Arc<Semaphore>)> {
        let mut under_way = self.under_way();
        let of_address = under_way.by_address.get(address).map_or(0, |queue| queue.count);
        if of_address >= ADDRESS_ATTEMPTS_MAX || under_way.count >= ATTEMPTS_MAX {
            return None;
        }
        under_way.count += 1;
        let queue = under_way
            .by_address
            .entry(address.to_owned())
            .or_insert_with(|| AddressQueue { turn: Arc::new(Semaphore::new(1)), count: 0 });
        queue.count += 1;
        let turn = queue.turn.clone();
        Some((EnteredQueue { comparisons: self.clone(), address: address.to_owned() }, turn))
    }
}

impl AttemptTurn {
    /// Compares a password on another thread. Waits while [`COMPARISONS_MAX`] others are compared.
    pub async fn compare(
        &self,
        counted: CountedAttempt,
        password: String,
    ) -> Result<ComparedAttempt, StoreError> {
        let threads = self.entered.comparisons.threads.clone();
        let thread = threads.acquire_owned().await.map_err(|_| busy())?;
        let compared = tokio::task::spawn_blocking(move || {
            let _thread = thread;
            counted.compare(&password)
        });
        compared.await.map_err(|_| busy())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn attempts_of_one_address_run_one_after_another() {
        let comparisons = Arc::new(Comparisons::default());
        let first = comparisons.turn("a").now_or_never().unwrap().unwrap();
        let mut others: Vec<_> =
            (1..ADDRESS_ATTEMPTS_MAX).map(|_| Box::pin(comparisons.turn("a"))).collect();
        for other in &mut others {
            assert!(other.now_or_never().is_none(), "one at a time");
        }
        assert!(comparisons.turn("a").now_or_never().unwrap().is_err(), "too many wait");
        assert!(comparisons.turn("b").now_or_never().unwrap().is_ok());
        drop(first);
        let second = others.remove(0).now_or_never().expect("the next one's turn").unwrap();
        drop((second, others));
        assert!(comparisons.under_way().by_address.is_empty(), "an empty queue is forgotten");
        assert_eq!(comparisons.under_way().count, 0);
    }

    #[test]
    fn attempts_of_all_addresses_have_a_maximum() {
        let comparisons = Arc::new(Comparisons::default());
        let all: Vec<_> = (0..ATTEMPTS_MAX)
            .map(|number| comparisons.turn(&number.to_string()).now_or_never().unwrap().unwrap())
            .collect();
        assert!(comparisons.turn("one more").now_or_never().unwrap().is_err());
        drop(all);
        assert!(comparisons.turn("one more").now_or_never().unwrap().is_ok());
    }
}
