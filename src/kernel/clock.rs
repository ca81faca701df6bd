//! Time and identifiers as arguments: nothing below the lane reads a clock or a random source.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::id::{Id, Kind, Minter};

/// Where the store's time comes from.
#[derive(Clone)]
pub enum Clock {
    /// The machine's clock.
    System,
    /// The machine's clock, moved by what another machine's differs from it, so that all nodes of a database share its time.
    Measured { offset_milliseconds: Arc<AtomicI64> },
    /// A clock that only tests move; milliseconds since 1970.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// Milliseconds since 1970.
    pub fn milliseconds(&self) -> i64 {
        match self {
            Clock::System => machine_milliseconds(),
            Clock::Measured { offset_milliseconds } => machine_milliseconds() + offset_milliseconds.load(Ordering::SeqCst),
            Clock::Manual(at) => at.load(Ordering::SeqCst),
        }
    }
}

fn machine_milliseconds() -> i64 {
    let milliseconds = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |elapsed| i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX));
    milliseconds + skew_milliseconds()
}

/// What tests let a node's clock go wrong by; builds with optimisation do not contain it.
fn skew_milliseconds() -> i64 {
    use std::sync::OnceLock;
    static SKEW: OnceLock<i64> = OnceLock::new();
    if !cfg!(debug_assertions) {
        return 0;
    }
    *SKEW.get_or_init(|| std::env::var("HUNDI_TEST_CLOCK_SKEW_SECONDS").ok().and_then(|text| text.parse::<i64>().ok()).unwrap_or(0) * 1000)
}

/// The instant of one transaction, its source of identifiers, and the business time of the account it acts for.
///
/// Two times run side by side. The *instant* is the store's clock: identifiers, idempotency, webhook schedules,
/// retention and key expiry use it. The *business time* adds the account's test clock: `created`, histories, quotes,
/// funding, holds and the simulated world use it. In live mode they are the same.
#[derive(Debug)]
pub struct Now {
    instant_milliseconds: i64,
    clock_offset_seconds: i64,
    stepped_milliseconds: i64,
    minter: Minter,
    random: StdRng,
}

impl Now {
    /// `seed` comes from the operating system in the service and from the test in a simulation.
    pub fn new(instant_milliseconds: i64, minter: Minter, seed: [u8; 32]) -> Now {
        Now { instant_milliseconds, clock_offset_seconds: 0, stepped_milliseconds: 0, minter, random: StdRng::from_seed(seed) }
    }

    /// Moves to the instant of the next transaction; the store's clock never runs backwards within a node.
    pub fn advance_to(&mut self, milliseconds: i64) {
        self.instant_milliseconds = self.instant_milliseconds.max(milliseconds);
        self.leave_account();
    }

    /// Enters an account's business time; `clock_offset_seconds` is its test clock, 0 in live mode.
    pub fn enter_account(&mut self, clock_offset_seconds: i64) {
        self.clock_offset_seconds = clock_offset_seconds;
        self.stepped_milliseconds = 0;
    }

    pub fn leave_account(&mut self) {
        self.enter_account(0);
    }

    /// While a test clock is being advanced, business time stands at the moment of the task that is run.
    pub fn step_to(&mut self, business_milliseconds: i64) {
        let base = self.instant_milliseconds + self.clock_offset_seconds * 1000;
        self.stepped_milliseconds = (business_milliseconds - base).max(self.stepped_milliseconds);
    }

    /// The store's clock, in milliseconds since 1970.
    pub const fn instant_milliseconds(&self) -> i64 {
        self.instant_milliseconds
    }
    /// The store's clock, in Unix seconds.
    pub const fn instant(&self) -> i64 {
        self.instant_milliseconds.div_euclid(1000)
    }
    /// The account's business time, in milliseconds since 1970.
    pub const fn business_milliseconds(&self) -> i64 {
        self.instant_milliseconds + self.clock_offset_seconds * 1000 + self.stepped_milliseconds
    }
    /// The account's business time, in Unix seconds: what objects show.
    pub const fn business(&self) -> i64 {
        self.business_milliseconds().div_euclid(1000)
    }
    /// How far the entered account's test clock is ahead of the store's clock.
    pub const fn clock_offset_seconds(&self) -> i64 {
        self.clock_offset_seconds
    }
    /// The instant of the store's clock at which a business time is reached, for due times of tasks.
    pub const fn due_milliseconds(&self, business_milliseconds: i64) -> i64 {
        business_milliseconds - self.clock_offset_seconds * 1000
    }

    /// A fresh identifier, above every earlier one of this node.
    pub fn mint<K: Kind>(&mut self) -> Id<K> {
        let random = u128::from(self.random.next_u64()) << 64 | u128::from(self.random.next_u64());
        self.minter.mint(self.instant_milliseconds, random)
    }

    /// Mints only above an identifier from now on.
    pub fn mint_above(&mut self, floor: u128) {
        self.minter.raise(floor);
    }

    pub const fn minter(&self) -> &Minter {
        &self.minter
    }

    /// Bytes from a cryptographic generator, fit for secrets.
    pub fn random_bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.random.fill_bytes(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn business_time_follows_the_test_clock_and_the_instant_does_not() {
        let mut now = Now::new(10_500, Minter::above(0), [1; 32]);
        now.enter_account(100);
        assert_eq!((now.instant(), now.business()), (10, 110));
        now.step_to(150_000);
        assert_eq!((now.instant(), now.business()), (10, 150));
        now.step_to(120_000);
        assert_eq!(now.business(), 150, "a step never goes back");
        assert_eq!(now.due_milliseconds(150_000), 50_000);
        now.advance_to(9_000);
        assert_eq!((now.instant(), now.business()), (10, 10));
    }
}
