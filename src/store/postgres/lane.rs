//! Lanes: threads with a connection each. Some take transactions that write from one queue, the
//! others take reads from another queue.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio::sync::watch;

use super::TRANSACTION_SECONDS_MAX;
use super::connect::{Connecting, Waited};
use super::faults::{CommitError, POOLER};
use super::fence::{Fence, OLD_PRIMARY};
use super::id_floor::IdFloor;
use super::kind::TransactionKind;
use super::many_rows::UpdateForm;
use super::queue::{JOB_MAX, Queue};
use super::session::PgSession;
use super::tx::PgTx;
use super::url::PostgresUrl;
use crate::kernel::id::Minter;
use crate::kernel::{Clock, Now, StoreError, system_random};
use crate::store::failpoint;
use crate::store::jobs::{Job, LaneStats, Ran, ReadJob, Signals};

/// A connection that was idle for this long is tested before it gets a job, because the server may
/// have closed it.
const TRUSTED_MILLISECONDS: u64 = 500;
/// A job with less time left is refused. It would probably not finish in time, and if it is cut
/// off, its connection cannot be used again.
const BEGIN_MILLISECONDS_MIN: u64 = 500;
/// Pauses between attempts to connect, and between runs of a transaction that conflicted.
const CONNECT_PAUSE_MILLISECONDS: u64 = 100;
const CONFLICT_PAUSE_MILLISECONDS_MAX: u64 = 20;

pub(super) struct Lanes {
    writes: Arc<Queue<dyn Job>>,
    reads: Arc<Queue<dyn ReadJob>>,
    /// Closed when the last lane has ended.
    ended: watch::Receiver<()>,
}

/// What the lanes of a node share.
struct Shared {
    url: PostgresUrl,
    clock: Clock,
    signals: Arc<Signals>,
    stats: Arc<LaneStats>,
    id_floor: Arc<IdFloor>,
    fence: Arc<Fence>,
    update_form: UpdateForm,
}

impl Shared {
    /// Adds up how long a job with the deadline `end` waited for a lane.
    fn count_wait(&self, end: Instant) {
        let waited = Instant::now().saturating_duration_since(end - JOB_MAX);
        self.stats.wait_microseconds.fetch_add(waited.as_micros() as u64, Ordering::Relaxed);
    }
}

impl Lanes {
    /// Starts the threads; each connects when it first has something to do.
    pub(super) fn start(
        url: &PostgresUrl,
        clock: &Clock,
        connections_count: usize,
        signals: Arc<Signals>,
        stats: Arc<LaneStats>,
        fence: Arc<Fence>,
        update_form: UpdateForm,
    ) -> Result<Lanes, StoreError> {
        let (url, clock) = (url.clone(), clock.clone());
        let id_floor = Arc::<IdFloor>::default();
        let shared = Shared { url, clock, signals, stats, id_floor, fence, update_form };
        let shared = Arc::new(shared);
        let (writes, reads) =
            (Arc::new(Queue::<dyn Job>::new()), Arc::new(Queue::<dyn ReadJob>::new()));
        let (alive, ended) = watch::channel(());
        let alive = Arc::new(alive);
        let minter = Minter::above(0);
        let readers_count = super::readers_count(connections_count);
        let thread =
            |name: &str, run: Box<dyn FnOnce() + Send>| {
                std::thread::Builder::new().name(name.into()).spawn(run).map(|_| ()).map_err(
                    |error| StoreError::Unavailable(format!("cannot start a lane: {error}")),
                )
            };
        for number in 0..connections_count {
            let seed = system_random().map_err(StoreError::Broken)?;
            let (shared, alive, minter) = (shared.clone(), alive.clone(), minter.clone());
            if number < readers_count {
                let reads = reads.clone();
                thread(
                    "read-lane",
                    Box::new(move || {
                        read_lane(&shared, &reads);
                        drop(alive);
                    }),
                )?;
            } else {
                let writes = writes.clone();
                thread(
                    "write-lane",
                    Box::new(move || {
                        let now = Now::new(shared.clock.milliseconds(), minter, seed);
                        WriteLane {
                            random: StdRng::from_seed(seed),
                            shared: &shared,
                            link: Link::new(&shared),
                            now,
                        }
                        .run(&writes);
                        drop(alive);
                    }),
                )?;
            }
        }
        Ok(Lanes { writes, reads, ended })
    }

    pub(super) fn submit(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        self.writes.put(job)
    }

    pub(super) fn read(&self, job: Box<dyn ReadJob>) -> Result<(), StoreError> {
        self.reads.put(job)
    }

    pub(super) async fn close(&self) {
        self.writes.close();
        self.reads.close();
        let mut ended = self.ended.clone();
        // An error means that the last lane has ended.
        while ended.changed().await.is_ok() {}
    }
}

/// The latest time at which a job with the deadline `end` may begin.
fn latest_begin(end: Instant) -> Instant {
    if failpoint("no_time_limit") {
        return end + Duration::from_secs(TRANSACTION_SECONDS_MAX);
    }
    end.checked_sub(Duration::from_millis(BEGIN_MILLISECONDS_MIN)).unwrap_or(end)
}

/// A lane's connection, open or being made.
struct Link<'s> {
    shared: &'s Shared,
    session: Option<PgSession>,
    /// Kept from job to job: after an outage, each waiting job can have too little time left to
    /// make a whole connection.
    connecting: Option<Connecting>,
    next_attempt: Instant,
}

impl<'s> Link<'s> {
    fn new(shared: &'s Shared) -> Link<'s> {
        Link { shared, session: None, connecting: None, next_attempt: Instant::now() }
    }

    /// An open connection, made if need be. `Err` if there is none by `until`.
    fn session(&mut self, until: Instant) -> Result<&mut PgSession, StoreError> {
        let is_good = self.session.as_ref().is_some_and(|session| {
            !session.is_over()
                && (session.used_at.elapsed() < Duration::from_millis(TRUSTED_MILLISECONDS)
                    || session.is_open())
        });
        if !is_good {
            self.session = None;
            self.session = Some(self.connected(until)?);
        }
        self.session.as_mut().ok_or_else(|| StoreError::Broken("a connection vanished".into()))
    }

    fn connected(&mut self, until: Instant) -> Result<PgSession, StoreError> {
        let unreachable = || StoreError::Unavailable("the database cannot be reached".into());
        loop {
            let waited = match self.connecting.take() {
                Some(connecting) if !connecting.is_stale() => connecting.wait(until),
                stale => {
                    stale.into_iter().for_each(Connecting::give_up);
                    if self.next_attempt >= until {
                        return Err(unreachable());
                    }
                    std::thread::sleep(self.next_attempt.saturating_duration_since(Instant::now()));
                    match Connecting::start(&self.shared.url, Some(&self.shared.fence)) {
                        Ok(connecting) => connecting.wait(until),
                        Err(error) => Waited::Failed(error),
                    }
                }
            };
            match waited {
                Waited::Open(session) => {
                    self.shared.stats.is_failing.store(false, Ordering::Relaxed);
                    self.shared.stats.connections_made.fetch_add(1, Ordering::Relaxed);
                    return Ok(*session);
                }
                Waited::Still(connecting) => {
                    if failpoint("connection_within_a_job") {
                        connecting.give_up();
                    } else {
                        self.connecting = Some(connecting);
                    }
                    return Err(unreachable());
                }
                // Another server of the address may be the primary. The fence has reported the old
                // one.
                Waited::Failed(StoreError::Unavailable(reason)) if reason == OLD_PRIMARY => {
                    self.next_attempt = Instant::now() + Duration::from_millis(20);
                }
                Waited::Failed(error) => {
                    if !self.shared.stats.is_failing.swap(true, Ordering::Relaxed) {
                        let database = &self.shared.url;
                        tracing::error!(%error, %database, "the database cannot be reached; \
                         callers are answered 503 until it can");
                    }
                    self.next_attempt =
                        Instant::now() + Duration::from_millis(CONNECT_PAUSE_MILLISECONDS);
                }
            }
        }
    }
}

impl Drop for Link<'_> {
    fn drop(&mut self) {
        self.connecting.take().into_iter().for_each(Connecting::give_up);
    }
}

fn read_lane(shared: &Shared, queue: &Queue<dyn ReadJob>) {
    let mut link = Link::new(shared);
    while let Some((job, end)) = queue.take() {
        shared.count_wait(end);
        if Instant::now() >= latest_begin(end) {
            job.refuse(StoreError::Unavailable("the read waited too long".into()));
            continue;
        }
        let open = match link.session(latest_begin(end)) {
            Ok(open) => open,
            Err(error) => {
                job.refuse(error);
                continue;
            }
        };
        if shared.fence.is_pooled.load(Ordering::Relaxed) {
            job.refuse(StoreError::Unavailable(POOLER.into()));
            continue;
        }
        let mut tx = PgTx::begin(open, TransactionKind::Read, end).with_floor(&shared.id_floor);
        let ran = std::panic::catch_unwind(AssertUnwindSafe(|| job.run(&mut tx)));
        if ran.is_err() {
            tracing::error!("a read panicked");
        }
        // Only ends the transaction: the answer has been sent, and nothing was changed.
        tx.roll_back();
    }
}

struct WriteLane<'s> {
    shared: &'s Shared,
    link: Link<'s>,
    now: Now,
    /// Draws the lengths of pauses.
    random: StdRng,
}

/// What became of one run of a transaction.
enum Run {
    Over(Result<(), StoreError>),
    /// It conflicted, or its connection was lost before the commit.
    Again,
    /// It minted an identifier whose time is before its announcement (`id_floor.rs`). It must run
    /// again and be announced first.
    TooEarly,
    /// [`CommitError::Unknown`].
    Unknown(String),
}

impl WriteLane<'_> {
    fn run(mut self, queue: &Queue<dyn Job>) {
        while let Some((mut job, end)) = queue.take() {
            self.shared.count_wait(end);
            let started = Instant::now();
            let outcome = self.carry_out(&mut *job, end);
            let stats = &self.shared.stats;
            stats.transactions.fetch_add(1, Ordering::Relaxed);
            stats.jobs.fetch_add(1, Ordering::Relaxed);
            stats
                .transaction_microseconds
                .fetch_add(started.elapsed().as_micros() as u64, Ordering::Relaxed);
            if outcome.is_err() {
                stats.transaction_failures.fetch_add(1, Ordering::Relaxed);
            }
            job.finish(outcome);
        }
    }

    /// Runs a job until it ends or its time is up.
    fn carry_out(&mut self, job: &mut dyn Job, end: Instant) -> Result<(), StoreError> {
        let mut runs_count = 0_u32;
        let mut announces_first = false;
        // Why it is not known whether a commit took place, if a run ended in that way. The caller
        // gets this reason, unless a later run finds out.
        let mut unknown: Option<String> = None;
        loop {
            let late = || match &unknown {
                None => StoreError::Unavailable(
                    "the transaction took too long: it conflicted \
                 with other transactions again and again, or waited too long"
                        .into(),
                ),
                Some(reason) => StoreError::Unavailable(format!(
                    "whether a commit took place is \
                 not known: {reason}"
                )),
            };
            // Only a job with enough time left may touch a session.
            if Instant::now() >= latest_begin(end) {
                return Err(late());
            }
            match self.run_once(job, announces_first, end) {
                Run::Over(Err(StoreError::Unavailable(_))) if unknown.is_some() => {
                    return Err(late());
                }
                Run::Over(outcome) => return outcome,
                Run::Again => {}
                Run::TooEarly => {
                    announces_first = true;
                    continue;
                }
                Run::Unknown(reason) => {
                    tracing::warn!(
                        reason,
                        is_keyed = job.is_keyed(),
                        "the connection was lost during a commit"
                    );
                    if !job.is_keyed() {
                        return Err(StoreError::Unavailable(format!(
                            "whether a commit took place is not known: {reason}"
                        )));
                    }
                    unknown = Some(reason);
                }
            }
            runs_count += 1;
            let pause = self.random.next_u64()
                % (CONFLICT_PAUSE_MILLISECONDS_MAX.min(u64::from(runs_count) * 2) + 1);
            std::thread::sleep(Duration::from_millis(pause));
        }
    }

    fn run_once(&mut self, job: &mut dyn Job, announces_first: bool, end: Instant) -> Run {
        let session = match self.link.session(latest_begin(end)) {
            Ok(session) => session,
            Err(error) => return Run::Over(Err(error)),
        };
        if let Some(reason) = self.shared.fence.halted() {
            return Run::Over(Err(StoreError::Unavailable(reason.into())));
        }
        if self.shared.fence.is_pooled.load(Ordering::Relaxed) {
            return Run::Over(Err(StoreError::Unavailable(POOLER.into())));
        }
        let round_trips_before = session.round_trips;
        self.now.set_to(self.shared.clock.milliseconds());
        let now = &mut self.now;
        let outcome = Self::run_on(self.shared, session, now, job, announces_first, end);
        self.shared
            .stats
            .round_trips
            .fetch_add(session.round_trips - round_trips_before, Ordering::Relaxed);
        outcome
    }

    fn run_on(
        shared: &Shared,
        session: &mut PgSession,
        now: &mut Now,
        job: &mut dyn Job,
        announces_first: bool,
        end: Instant,
    ) -> Run {
        let mut tx = PgTx::begin(session, TransactionKind::Write, end).updating(shared.update_form);
        // Tests that set the clock themselves mint identifiers of their own time, so their
        // transactions are not announced.
        if matches!(shared.clock, Clock::Measured(_)) {
            tx = tx.announcing(now.minter().clone());
        }
        if announces_first && let Err(error) = tx.announce() {
            let is_lost = tx.is_lost();
            tx.roll_back();
            return if is_lost { Run::Again } else { Run::Over(Err(error)) };
        }
        let ran = std::panic::catch_unwind(AssertUnwindSafe(|| job.run(&mut tx, now)));
        let is_lost = tx.is_lost();
        match ran {
            Err(_) => {
                tracing::error!("a transaction panicked; its effects were undone");
                tx.roll_back();
                Run::Over(Ok(()))
            }
            Ok(_) if is_lost => Run::Again,
            Ok(Err(error)) => {
                tx.roll_back();
                Run::Over(Err(error))
            }
            Ok(Ok(Ran::Again)) => {
                tx.roll_back();
                Run::Again
            }
            Ok(Ok(Ran::Undo)) => {
                tx.roll_back();
                Run::Over(Ok(()))
            }
            Ok(Ok(Ran::Keep)) => {
                if let Some(minted) = now.first_minted_milliseconds() {
                    match tx.announce() {
                        Ok(Some(announced)) if announced > minted => {
                            tx.roll_back();
                            return Run::TooEarly;
                        }
                        Ok(_) => {}
                        Err(_) if tx.is_lost() => return Run::Again,
                        Err(error) => {
                            tx.roll_back();
                            return Run::Over(Err(error));
                        }
                    }
                }
                let signals = tx.signals.take();
                match tx.commit() {
                    Ok(()) => {
                        signals.into_iter().for_each(|signal| shared.signals.tell(signal));
                        Run::Over(Ok(()))
                    }
                    Err(CommitError::Refused(StoreError::Conflict(_) | StoreError::Locked)) => {
                        session.undo(end);
                        Run::Again
                    }
                    Err(CommitError::Refused(error)) => {
                        session.undo(end);
                        Run::Over(Err(error))
                    }
                    Err(CommitError::Unknown(reason)) => Run::Unknown(reason),
                }
            }
        }
    }
}
