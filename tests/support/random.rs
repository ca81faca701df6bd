//! A small seeded random source, so that a failing run can be repeated from the seed it printed.

use std::time::{SystemTime, UNIX_EPOCH};

/// xorshift64*: no quality beyond "spreads well" is needed, and no dependency.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        // One step of splitmix, so that neighbouring seeds do not start alike; the state must not
        // be zero.
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Random((mixed ^ (mixed >> 31)) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number from 0 to `bound - 1`.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "nothing lies below zero");
        (self.next() % bound as u64) as usize
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// A seed that no other process is likely to have.
pub fn fresh_seed() -> u64 {
    let nanoseconds =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |elapsed| elapsed.as_nanos() as u64);
    nanoseconds ^ (u64::from(std::process::id()) << 40)
}

/// The seed named by an environment variable, else a new one; printed, because the output of a
/// failing test is shown.
pub fn seed(variable: &str) -> u64 {
    let seed = match std::env::var(variable) {
        Ok(text) => {
            text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a whole number"))
        }
        Err(_) => fresh_seed(),
    };
    eprintln!("repeat this run's choices with {variable}={seed}");
    seed
}

/// A whole number from the environment, else the default.
pub fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => {
            text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a whole number"))
        }
        Err(_) => default,
    }
}
