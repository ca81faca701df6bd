//! Time and identifiers as arguments: code inside a transaction takes neither the time of day nor
//! randomness from the machine. It may measure how long it runs.

// The one place that asks the machine: see clippy.toml.
#![allow(clippy::disallowed_methods)]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::id::{Id, IdKind, Minter, ObjectKind};

/// The latest time that a request can name, in Unix seconds: the last second of the year 9999,
/// which is the last one that RFC 3339 can write.
pub const TIME_MAX: i64 = 253_402_300_799;

/// Where the store's time comes from.
#[derive(Clone)]
pub enum Clock {
    /// The machine's clock.
    System,
    /// A clock that is read now and then or once, and carried on by this machine's monotonic clock.
    /// On PostgreSQL it is the database's, so that all nodes share one time. On the embedded store
    /// it is this machine's, read once.
    Measured(Arc<Carried>),
    /// A clock that only tests move; milliseconds since 1970.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// For [`Clock::System`]: the machine's clock as it is now, carried on by the monotonic clock,
    /// so that a later step of the machine's time changes nothing. Other clocks stay as they are.
    pub fn carried(self) -> Clock {
        match self {
            Clock::System => {
                let now = Instant::now();
                Clock::Measured(Arc::new(Carried::new(now, now, machine_milliseconds())))
            }
            other => other,
        }
    }

    /// How far the machine's clock is ahead of this one, in milliseconds; negative if it is behind.
    /// For [`Clock::Manual`] it is 0.
    pub fn machine_ahead_milliseconds(&self) -> i64 {
        match self {
            Clock::Measured(_) => machine_milliseconds() - self.milliseconds(),
            Clock::System | Clock::Manual(_) => 0,
        }
    }

    /// Advances a [`Clock::Measured`] by the time that the machine slept, in which the monotonic
    /// clock stood still. Other clocks stay as they are.
    pub fn add_sleep(&self, milliseconds: i64) {
        if let Clock::Measured(carried) = self {
            carried.at_origin_milliseconds.fetch_add(milliseconds.max(0), Ordering::SeqCst);
        }
    }

    /// Until the moment `until` (Unix seconds), keeps stored answers of idempotency keys for
    /// `seconds` longer than the usual 24 hours. Otherwise they would be removed too soon after the
    /// clock was put forward. Only a [`Clock::Measured`] does this.
    pub fn keep_answers_longer(&self, seconds: i64, until: i64) {
        if let Clock::Measured(carried) = self {
            carried.answers_longer_seconds.store(seconds.max(0), Ordering::SeqCst);
            carried.answers_longer_until.store(until, Ordering::SeqCst);
        }
    }

    /// How many seconds beyond 24 hours stored answers are kept now.
    pub fn answers_longer_seconds(&self) -> i64 {
        match self {
            Clock::Measured(carried)
                if self.milliseconds() / 1000
                    < carried.answers_longer_until.load(Ordering::SeqCst) =>
            {
                carried.answers_longer_seconds.load(Ordering::SeqCst)
            }
            _ => 0,
        }
    }

    /// Milliseconds since 1970.
    pub fn milliseconds(&self) -> i64 {
        match self {
            Clock::System => machine_milliseconds(),
            Clock::Measured(carried) => carried.milliseconds_at(Instant::now()),
            Clock::Manual(at) => at.load(Ordering::SeqCst),
        }
    }
}

/// A reading of another clock is not used if it took longer than this, unless it is the first.
const READING_SECONDS_MAX: u64 = 1;

/// A clock as it was last read, carried on by this machine's monotonic clock: a step of the
/// machine's own time changes nothing.
#[derive(Debug)]
pub struct Carried {
    origin: Instant,
    /// The clock's time at `origin`, by its last reading.
    at_origin_milliseconds: AtomicI64,
    /// See [`Clock::keep_answers_longer`].
    answers_longer_seconds: AtomicI64,
    answers_longer_until: AtomicI64,
}

impl Carried {
    /// Starts from the first reading, however long it took. The other clock showed
    /// `theirs_milliseconds` (since 1970) at some moment between `asked` and `answered`.
    pub fn new(asked: Instant, answered: Instant, theirs_milliseconds: i64) -> Carried {
        Carried {
            origin: middle(asked, answered),
            at_origin_milliseconds: AtomicI64::new(theirs_milliseconds),
            answers_longer_seconds: AtomicI64::new(0),
            answers_longer_until: AtomicI64::new(i64::MIN),
        }
    }

    /// Corrects the clock by another reading. `false` if the reading took too long and is not used.
    /// The error is at most half the time between `asked` and `answered`.
    pub fn correct(&self, asked: Instant, answered: Instant, theirs_milliseconds: i64) -> bool {
        if answered.duration_since(asked) > Duration::from_secs(READING_SECONDS_MAX) {
            return false;
        }
        let at_origin_milliseconds =
            theirs_milliseconds - self.passed_milliseconds(middle(asked, answered));
        self.at_origin_milliseconds.store(at_origin_milliseconds, Ordering::SeqCst);
        true
    }

    fn milliseconds_at(&self, moment: Instant) -> i64 {
        self.at_origin_milliseconds.load(Ordering::SeqCst) + self.passed_milliseconds(moment)
    }

    fn passed_milliseconds(&self, moment: Instant) -> i64 {
        i64::try_from(moment.saturating_duration_since(self.origin).as_millis())
            .unwrap_or(i64::MAX / 2)
    }
}

fn middle(asked: Instant, answered: Instant) -> Instant {
    asked + answered.duration_since(asked) / 2
}

/// The machine's clock, for comparing with what the machine itself stamps, such as a file's time of
/// change. Everything else takes its time from [`Clock`] or [`Now`].
pub fn machine_time() -> std::time::SystemTime {
    std::time::SystemTime::now()
}

/// Bytes of the operating system's cryptographic generator, for seeds and for whatever is made
/// where there is no [`Now`].
pub fn system_random<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| format!("the operating system gives no randomness: {error}"))?;
    Ok(bytes)
}

/// Measures how long the machine slept: the time since boot includes sleep, the monotonic clock
/// does not.
pub struct SleepMeter {
    monotonic: Instant,
    since_boot: Option<Duration>,
}

impl SleepMeter {
    pub fn start() -> SleepMeter {
        SleepMeter { monotonic: Instant::now(), since_boot: since_boot() }
    }

    /// Milliseconds of sleep since the last call, or the start.
    pub fn slept_milliseconds(&mut self) -> i64 {
        // A shorter difference comes from the resolution of the two clocks.
        const SLEEP_MILLISECONDS_MIN: i64 = 1_000;
        let before = std::mem::replace(self, SleepMeter::start());
        let (Some(from), Some(to)) = (before.since_boot, self.since_boot) else { return 0 };
        let passed = self.monotonic.duration_since(before.monotonic);
        let slept = to.saturating_sub(from).saturating_sub(passed);
        let slept = i64::try_from(slept.as_millis()).unwrap_or(0);
        if slept < SLEEP_MILLISECONDS_MIN { 0 } else { slept }
    }
}

/// A moment counted from the machine's boot, so that a step of the machine's clock does not move
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootMoment {
    /// Identifies this boot (random(4)).
    pub boot_id: String,
    /// Time since the boot, sleep included.
    pub milliseconds: i64,
}

impl BootMoment {
    /// `None` if the system does not provide it.
    pub fn now() -> Option<BootMoment> {
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let milliseconds = i64::try_from(since_boot()?.as_millis()).ok()?;
        Some(BootMoment { boot_id: boot_id.trim().to_owned(), milliseconds })
    }

    /// How long ago `earlier` was; `None` if the machine has booted since.
    pub fn milliseconds_since(&self, earlier: &BootMoment) -> Option<i64> {
        let passed = self.milliseconds - earlier.milliseconds;
        (self.boot_id == earlier.boot_id && passed >= 0).then_some(passed)
    }
}

/// Time since the boot. On Linux it includes sleep (proc_uptime(5)).
fn since_boot() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/uptime").ok()?;
    Duration::try_from_secs_f64(text.split_whitespace().next()?.parse().ok()?).ok()
}

fn machine_milliseconds() -> i64 {
    let milliseconds = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |elapsed| i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX));
    milliseconds + skew_milliseconds()
}

/// By how much a test sets a node's clock wrong. Always 0 without debug assertions.
fn skew_milliseconds() -> i64 {
    use std::sync::OnceLock;
    static SKEW: OnceLock<i64> = OnceLock::new();
    if !cfg!(debug_assertions) {
        return 0;
    }
    *SKEW.get_or_init(|| {
        std::env::var("HUNDI_TEST_CLOCK_SKEW_SECONDS")
            .ok()
            .and_then(|text| text.parse::<i64>().ok())
            .unwrap_or(0)
            * 1000
    })
}

/// The instant of one transaction, its source of identifiers, and the business time of the account
/// it acts for.
///
/// The *instant* is the store's clock: identifiers, idempotency, webhook schedules, retention and
/// key expiry use it. The *business time* is the instant plus the account's test clock: `created`,
/// histories, quotes, funding, holds and the simulated world use it. In live mode the two are the
/// same.
#[derive(Debug)]
pub struct Now {
    instant_milliseconds: i64,
    clock_offset_seconds: i64,
    stepped_milliseconds: i64,
    /// See [`Now::first_minted_milliseconds`].
    first_minted_milliseconds: Option<i64>,
    /// See [`Clock::answers_longer_seconds`].
    pub answers_longer_seconds: i64,
    minter: Minter,
    random: StdRng,
}

impl Now {
    /// `seed` has to be random where the transaction writes. A transaction that only reads draws
    /// nothing from it, so there a constant is enough.
    pub fn new(instant_milliseconds: i64, minter: Minter, seed: [u8; 32]) -> Now {
        Now {
            instant_milliseconds,
            clock_offset_seconds: 0,
            stepped_milliseconds: 0,
            first_minted_milliseconds: None,
            answers_longer_seconds: 0,
            minter,
            random: StdRng::from_seed(seed),
        }
    }

    /// Moves to the instant of the next transaction on the embedded store, whose time never runs
    /// backwards within a process.
    pub fn advance_to(&mut self, milliseconds: i64) {
        self.instant_milliseconds = self.instant_milliseconds.max(milliseconds);
        self.leave_account();
    }

    /// Moves to the instant of the next transaction on PostgreSQL, backwards too: a node whose
    /// clock ran ahead for a moment must not stay in the future. Identifiers still rise.
    pub fn set_to(&mut self, milliseconds: i64) {
        self.instant_milliseconds = milliseconds;
        self.first_minted_milliseconds = None;
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

    /// Moves the business time to the moment of a task that runs while a test clock is advanced.
    /// The business time never moves back.
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
    /// The instant at which a business time is reached, for due times of tasks.
    pub const fn due_milliseconds(&self, business_milliseconds: i64) -> i64 {
        business_milliseconds - self.clock_offset_seconds * 1000
    }

    /// A fresh identifier, above every one that this node minted before.
    pub fn mint<K: IdKind>(&mut self) -> Id<K> {
        let random = u128::from(self.random.next_u64()) << 64 | u128::from(self.random.next_u64());
        let id: Id<K> = self.minter.mint(self.instant_milliseconds, random);
        if K::KIND != ObjectKind::Request && self.first_minted_milliseconds.is_none() {
            self.first_minted_milliseconds = i64::try_from(id.as_u128() >> 80).ok();
        }
        id
    }

    /// The time in the first identifier that was minted since [`Now::set_to`], in milliseconds
    /// since 1970. Identifiers of the kind `Request`, among them every `InternalId`, do not count,
    /// because no list shows them.
    pub const fn first_minted_milliseconds(&self) -> Option<i64> {
        self.first_minted_milliseconds
    }

    /// Sets [`Now::first_minted_milliseconds`] back to an earlier value, after a part of the
    /// transaction was undone: the identifiers of that part are in no row.
    pub const fn undo_minting(&mut self, first_minted_milliseconds: Option<i64>) {
        self.first_minted_milliseconds = first_minted_milliseconds;
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
    use crate::kernel::id::kind;

    #[test]
    fn a_clock_that_is_read_now_and_then_is_carried_on_between_readings() {
        let start = Instant::now();
        let at = |milliseconds: u64| start + Duration::from_millis(milliseconds);
        // A slow first reading counts, because there is no other.
        let carried = Carried::new(at(0), at(4_000), 1_000_000);
        assert_eq!(carried.milliseconds_at(at(2_000)), 1_000_000);
        assert_eq!(carried.milliseconds_at(at(32_000)), 1_030_000);
        assert!(!carried.correct(at(32_000), at(33_001), 5_000_000), "it took over a second");
        assert_eq!(carried.milliseconds_at(at(32_000)), 1_030_000);
        assert!(carried.correct(at(32_000), at(33_000), 1_029_900));
        assert_eq!(carried.milliseconds_at(at(32_500)), 1_029_900);
        // The other clock itself went back, or forth.
        assert!(carried.correct(at(62_000), at(62_020), 900_000));
        assert_eq!(carried.milliseconds_at(at(62_010)), 900_000);
        assert!(carried.correct(at(92_000), at(92_020), 2_000_000));
        assert_eq!(carried.milliseconds_at(at(92_110)), 2_000_100);
    }

    #[test]
    fn an_instant_that_goes_back_leaves_identifiers_rising() {
        let mut now = Now::new(10_000, Minter::above(0), [1; 32]);
        now.set_to(3_600_000);
        let first = now.mint::<kind::Request>();
        now.set_to(10_500);
        assert_eq!(now.instant_milliseconds(), 10_500);
        let second = now.mint::<kind::Request>();
        assert!(second.as_u128() > first.as_u128());
    }

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
