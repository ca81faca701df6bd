//! The write lane of the embedded store: group commit.
//!
//! One thread owns the writing connection. It takes the waiting jobs, runs them one after the other
//! in one transaction, commits once, and only then returns the answers. So an answer that left the
//! lane is on the disk.
//!
//! Nearly every job keeps what it wrote, so a group first runs without savepoints. If a job wrote
//! something and has to be undone, the whole group is undone and runs again at once with a
//! savepoint for each job. The next groups get savepoints too, because such jobs seldom come
//! alone.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::jobs::{Epilogue, Job, LaneStats, QUEUE_JOBS_MAX, Ran, SCAN_READERS_MAX, Signals};
use super::key_segments::KeySegments;
use super::sqlite::{self, RunAgain, SqliteTx, Undo};
use super::{Signal, Tx, failpoint, plan_statistics, rests};
use crate::kernel::id::Minter;
use crate::kernel::{Clock, Now, OperationError, StoreError, system_random};

/// Jobs in one commit. Larger groups save little and make the last caller wait longer.
pub const GROUP_JOBS_MAX: usize = 256;
/// When a group has to run again, that run gets savepoints, and so do the next groups: this many
/// runs in all.
const GROUPS_WITH_SAVEPOINTS: u32 = 64;

enum LaneMessage {
    Job(Box<dyn Job>),
    /// Copies SQLite's log (WAL) into the database file and ends the lane.
    Close(oneshot::Sender<()>),
}

/// Connections that read.
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    fn take(&self) -> Result<Connection, StoreError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| sqlite::open_reader(&self.path), Ok)
    }
    /// Keeps a connection for the next read, unless there are enough idle ones.
    fn give(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < SCAN_READERS_MAX * 2 {
            idle.push(connection);
        }
    }
    /// Runs one consistent read. A report (an expensive read) sleeps from time to time, so that
    /// requests find a free processor (`rests.rs`). If BEGIN or COMMIT fails, the connection is
    /// dropped.
    pub(super) fn run<T>(
        &self,
        is_report: bool,
        work: impl FnOnce(&mut dyn Tx) -> Result<T, OperationError>,
    ) -> Result<T, OperationError> {
        let mut connection = self.take()?;
        let rest = is_report.then_some(std::thread::sleep as fn(Duration));
        rests::rest_while_reading(&mut connection, rest)?;
        let mut tx = SqliteTx::new(&connection);
        tx.run("BEGIN")?;
        let answer = work(&mut tx);
        tx.run("COMMIT")?;
        self.give(connection);
        answer
    }
}

/// The embedded store: the write lane's queue, and the connections that read.
pub(super) struct Embedded {
    queue: SyncSender<LaneMessage>,
    pub(super) readers: Arc<Readers>,
}

impl Embedded {
    /// Opens the database, brings its schema up to date and starts the lane. `judge` may refuse the
    /// database before its schema is changed.
    pub(super) fn open(
        path: &Path,
        clock: &Clock,
        epilogue: Epilogue,
        keys_max: usize,
        signals: Arc<Signals>,
        stats: Arc<LaneStats>,
        judge: impl FnOnce(&mut dyn Tx) -> Result<(), StoreError>,
    ) -> Result<Embedded, StoreError> {
        let mut connection = sqlite::open_writer(path)?;
        let mut tx = SqliteTx::new(&connection);
        judge(&mut tx)?;
        super::migrate::migrate(&mut tx)?;
        let floor = super::migrate::highest_id(&mut tx)?;
        tx.run("BEGIN")?;
        let key_segments = KeySegments::load(&mut tx, keys_max)?;
        tx.run("COMMIT")?;
        plan_statistics::set_plan_statistics(&connection)?;
        sqlite::deny_edits_of_append_only_tables(&mut connection)?;
        let (queue, messages) = std::sync::mpsc::sync_channel(QUEUE_JOBS_MAX);
        let seed = system_random().map_err(StoreError::Broken)?;
        let lane = Lane {
            path: path.to_owned(),
            connection,
            now: Now::new(clock.milliseconds(), Minter::above(floor), seed),
            clock: clock.clone(),
            epilogue,
            signals,
            stats,
            last_group_jobs_count: 0,
            groups_with_savepoints_left: 0,
            key_segments,
            data_version: None,
            fault: InjectedFault::from_environment(),
        };
        std::thread::Builder::new()
            .name("write-lane".into())
            .spawn(move || lane.run(&messages))
            .map_err(|error| {
                StoreError::Unavailable(format!("cannot start the write lane: {error}"))
            })?;
        Ok(Embedded {
            queue,
            readers: Arc::new(Readers { path: path.to_owned(), idle: Mutex::default() }),
        })
    }

    /// Gives a job to the lane.
    pub(super) fn submit(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        match self.queue.try_send(LaneMessage::Job(job)) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => {
                Err(StoreError::Unavailable("the write queue is full".into()))
            }
            Err(TrySendError::Disconnected(_)) => {
                Err(StoreError::Unavailable("the write lane has stopped".into()))
            }
        }
    }

    /// Ends the lane once the jobs that wait have run, and copies the log into the database file.
    pub(super) async fn close(&self) {
        let (reply, closed) = oneshot::channel();
        let queue = self.queue.clone();
        // If the queue is full, this waits until the lane has taken jobs from it.
        let _ = tokio::task::spawn_blocking(move || queue.send(LaneMessage::Close(reply))).await;
        let _ = closed.await;
    }
}

/// What a test plants, to show that it notices a fault or that the lane withstands it; see
/// [`failpoint`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum InjectedFault {
    None,
    /// Answers leave before the commit, which the crash tests must notice.
    AnswerBeforeCommit,
    /// Every group is undone once and runs again, as if one of its jobs had to be undone.
    GroupsRunAgain,
}

impl InjectedFault {
    fn from_environment() -> InjectedFault {
        if failpoint("answer_before_commit") {
            InjectedFault::AnswerBeforeCommit
        } else if failpoint("groups_run_again") {
            InjectedFault::GroupsRunAgain
        } else {
            InjectedFault::None
        }
    }
}

struct Lane {
    path: PathBuf,
    connection: Connection,
    now: Now,
    clock: Clock,
    epilogue: Epilogue,
    signals: Arc<Signals>,
    stats: Arc<LaneStats>,
    last_group_jobs_count: usize,
    /// How many of the next groups run with savepoints from the start.
    groups_with_savepoints_left: u32,
    key_segments: KeySegments,
    /// SQLite's data version in the last transaction; `None` before the first one.
    data_version: Option<i64>,
    fault: InjectedFault,
}

fn take(
    message: LaneMessage,
    group: &mut Vec<Box<dyn Job>>,
    closing: &mut Option<oneshot::Sender<()>>,
) {
    match message {
        LaneMessage::Job(job) => group.push(job),
        LaneMessage::Close(reply) => *closing = Some(reply),
    }
}

impl Lane {
    fn run(mut self, messages: &Receiver<LaneMessage>) {
        let mut closing = None;
        while closing.is_none() {
            let Ok(first) = messages.recv() else { break };
            let mut group = Vec::new();
            take(first, &mut group, &mut closing);
            while group.len() < GROUP_JOBS_MAX && closing.is_none() {
                match messages.try_recv() {
                    Ok(message) => take(message, &mut group, &mut closing),
                    Err(_) => break,
                }
            }
            self.linger(messages, &mut group, &mut closing);
            if !group.is_empty() {
                self.last_group_jobs_count = group.len();
                self.commit(group);
            }
        }
        if let Err(error) = self.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)") {
            tracing::warn!(%error, "SQLite's log (WAL) could not be copied into the database file; \
             the next start copies it");
        }
        drop(self.connection);
        if let Some(reply) = closing {
            let _ = reply.send(());
        }
    }

    /// If the last group was at least twice as large as this one, its callers probably send their
    /// next jobs soon. A short wait lets these jobs share the commit of this group.
    fn linger(
        &self,
        messages: &Receiver<LaneMessage>,
        group: &mut Vec<Box<dyn Job>>,
        closing: &mut Option<oneshot::Sender<()>>,
    ) {
        const LINGER_MICROSECONDS_MAX: u64 = 400;
        // If no job comes for this long, the wait ends early.
        const SILENCE_MICROSECONDS_MAX: u64 = 60;
        if group.len() * 2 > self.last_group_jobs_count {
            return;
        }
        let end = std::time::Instant::now() + Duration::from_micros(LINGER_MICROSECONDS_MAX);
        while group.len() < GROUP_JOBS_MAX && closing.is_none() && std::time::Instant::now() < end {
            match messages.recv_timeout(Duration::from_micros(SILENCE_MICROSECONDS_MAX)) {
                Ok(message) => take(message, group, closing),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn commit(&mut self, mut group: Vec<Box<dyn Job>>) {
        self.now.advance_to(self.clock.milliseconds());
        self.now.answers_longer_seconds = self.clock.answers_longer_seconds();
        let started = std::time::Instant::now();
        let changes_before = self.connection.total_changes();
        let outcome = self.run_group(&mut group);
        let (outcome, signals) = match outcome {
            Ok(signals) => {
                // A commit of nothing touches no file, so its success says nothing about the disk.
                if self.connection.total_changes() != changes_before {
                    self.stats.is_failing.store(false, Ordering::Relaxed);
                }
                (Ok(()), signals)
            }
            Err(error) => {
                self.stats.is_failing.store(true, Ordering::Relaxed);
                self.stats.transaction_failures.fetch_add(1, Ordering::Relaxed);
                tracing::error!(error = %error, jobs = group.len(), "a commit failed: nothing of \
                 it was kept, its callers were answered 503");
                self.key_segments.mark_stale();
                self.heal();
                (Err(error), Vec::new())
            }
        };
        self.stats.transactions.fetch_add(1, Ordering::Relaxed);
        self.stats.jobs.fetch_add(group.len() as u64, Ordering::Relaxed);
        self.stats
            .transaction_microseconds
            .fetch_add(started.elapsed().as_micros() as u64, Ordering::Relaxed);
        for job in group {
            job.finish(outcome.clone());
        }
        signals.into_iter().for_each(|signal| self.signals.tell(signal));
    }

    fn run_group(&mut self, group: &mut Vec<Box<dyn Job>>) -> Result<Vec<Signal>, StoreError> {
        if self.groups_with_savepoints_left == 0 {
            let run_again = RunAgain::new(false);
            let ran = self.run_group_with_undo(group, Undo::Whole(&run_again));
            if !run_again.get() {
                return ran;
            }
            self.groups_with_savepoints_left = if self.fault == InjectedFault::GroupsRunAgain {
                1
            } else {
                GROUPS_WITH_SAVEPOINTS
            };
            self.stats.groups_again.fetch_add(1, Ordering::Relaxed);
            self.now.leave_account();
            self.key_segments.mark_stale();
            self.connection.execute_batch("ROLLBACK").map_err(sqlite::store_error)?;
        }
        self.groups_with_savepoints_left -= 1;
        self.run_group_with_undo(group, Undo::Savepoint)
    }

    fn run_group_with_undo(
        &mut self,
        group: &mut Vec<Box<dyn Job>>,
        undo: Undo<'_>,
    ) -> Result<Vec<Signal>, StoreError> {
        let mut tx = SqliteTx::with_undo(&self.connection, undo);
        tx.run("BEGIN IMMEDIATE")?;
        let data_version = Some(sqlite::data_version(&self.connection)?);
        if self.data_version != data_version {
            self.key_segments.mark_stale();
        }
        self.key_segments.refresh(&mut tx)?;
        self.data_version = data_version;
        tx.lend_key_segments(&mut self.key_segments);
        for job in group.iter_mut() {
            tx.savepoint()?;
            let now = &mut self.now;
            // A panic in one job must not end the lane. The job's effects are undone, and its
            // caller is answered 500.
            let ran = std::panic::catch_unwind(AssertUnwindSafe(|| job.run(&mut tx, now)));
            let keep = match ran {
                Ok(ran) => ran? == Ran::Keep,
                Err(_) => {
                    tracing::error!("a transaction panicked; its effects were undone");
                    tx.rollback_all()?;
                    tx.savepoint()?;
                    false
                }
            };
            if self.connection.is_autocommit() {
                return Err(StoreError::Unavailable("the store undid the transaction".into()));
            }
            if keep {
                tx.release()?
            } else {
                tx.rollback_and_release()?
            }
            self.now.leave_account();
        }
        if let Some(key_segments) = tx.take_key_segments()
            && key_segments.is_full()
        {
            tx.savepoint()?;
            match key_segments.close(&mut tx) {
                Ok(()) => tx.release()?,
                Err(error) => {
                    tracing::error!(%error, "a segment of the idempotency keys could not be \
                     closed; the lane tries again after more keys");
                    tx.rollback_all()?;
                }
            }
        }
        if tx.signals.contains(Signal::Outbox) {
            tx.savepoint()?;
            let (epilogue, now) = (self.epilogue, &mut self.now);
            let ran = std::panic::catch_unwind(AssertUnwindSafe(|| epilogue(&mut tx, now)));
            match ran.unwrap_or_else(|_| Err(StoreError::Broken("the sequencer panicked".into()))) {
                Ok(()) => tx.release()?,
                Err(error) => {
                    tracing::error!(%error, "the sequencer failed; its rows stay in the outbox \
                     and are tried again");
                    tx.rollback_all()?;
                }
            }
        }
        if let Undo::Whole(run_again) = undo {
            if self.fault == InjectedFault::GroupsRunAgain {
                run_again.set(true);
            }
            if run_again.get() {
                return Err(StoreError::Broken(
                    "a part of the transaction has to be undone; the group runs again".into(),
                ));
            }
        }
        if self.fault == InjectedFault::AnswerBeforeCommit {
            for job in group.drain(..) {
                job.finish(Ok(()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        tx.run("COMMIT")?;
        Ok(tx.signals.take())
    }

    /// After a failed commit, rolls back the open transaction. If that fails, it opens a new
    /// connection.
    fn heal(&mut self) {
        if self.connection.is_autocommit() || self.connection.execute_batch("ROLLBACK").is_ok() {
            return;
        }
        match sqlite::open_writer(&self.path).and_then(|mut fresh| {
            sqlite::deny_edits_of_append_only_tables(&mut fresh).map(|()| fresh)
        }) {
            Ok(fresh) => self.connection = fresh,
            Err(error) => {
                tracing::error!(%error, "the database cannot be opened again; the next write \
                 tries once more")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures_util::FutureExt;

    use super::*;
    use crate::kernel::{Code, Refusal};
    use crate::store::jobs::no_epilogue;
    use crate::store::meta;
    use crate::store::{Cost, Store};

    #[tokio::test(flavor = "multi_thread")]
    async fn a_panic_undoes_its_own_transaction_and_no_other() {
        let folder = std::env::temp_dir().join(format!("hundi-lane-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let store = Store::open(&folder.join("lane.db"), Clock::System, no_epilogue).unwrap();
        for depth in 0..2 {
            let panicked: Result<(), OperationError> = store
                .write(move |tx, _| {
                    meta::write(tx, "lost", b"x")?;
                    if depth == 1 {
                        tx.savepoint()?;
                    }
                    panic!("planted");
                })
                .await;
            assert!(
                matches!(panicked, Err(OperationError::Store(StoreError::Broken(_)))),
                "{panicked:?}"
            );
            store.write(|tx, _| Ok(meta::write(tx, "kept", b"x")?)).await.unwrap();
        }
        let found = store
            .read(Cost::Point, |tx| Ok((meta::read(tx, "lost")?, meta::read(tx, "kept")?)))
            .await
            .unwrap();
        assert_eq!(found, (None, Some(b"x".to_vec())));
        store.close().await;
        assert!(store.write(|_, _| Ok(())).await.is_err(), "a closed store takes no writes");
        assert_eq!(
            std::fs::metadata(folder.join("lane.db-wal")).map_or(0, |wal| wal.len()),
            0,
            "everything is in the database file"
        );
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn reads_whose_callers_hang_up_count_until_they_end() {
        let folder = std::env::temp_dir().join(format!("hundi-readers-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let store = Store::open(&folder.join("readers.db"), Clock::System, no_epilogue).unwrap();
        let (running, running_most, begun) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicUsize::new(0)),
        );
        let (release, released) = std::sync::mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        for index in 0..SCAN_READERS_MAX * 4 {
            let (tell, told) = oneshot::channel();
            let (running, running_most, begun, released) =
                (running.clone(), running_most.clone(), begun.clone(), released.clone());
            let read = store.read(Cost::Scan, move |_| {
                begun.fetch_add(1, Ordering::SeqCst);
                running_most
                    .fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let _ = tell.send(());
                // Returns once the test drops `release`.
                let _ = released.lock().unwrap_or_else(PoisonError::into_inner).recv();
                running.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            });
            let mut read = std::pin::pin!(read);
            if index < SCAN_READERS_MAX {
                // The caller hangs up once its read runs.
                tokio::select! {
                    _ = &mut read => panic!("the read was not held"),
                    told = told => told.unwrap(),
                }
            } else {
                // There is no permit for it, so its caller hangs up before its work begins.
                assert!((&mut read).now_or_never().is_none());
            }
        }
        drop(release);
        // A read whose caller still waits gets its turn.
        let last = store.read(Cost::Scan, |tx| Ok(meta::read(tx, "nothing")?)).await.unwrap();
        assert_eq!(last, None);
        while running.load(Ordering::SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            (running_most.load(Ordering::SeqCst), begun.load(Ordering::SeqCst)),
            (SCAN_READERS_MAX, SCAN_READERS_MAX)
        );
        store.close().await;
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// Writes a row, and keeps it or is refused.
    async fn write_row(
        store: &Store,
        name: &'static str,
        is_kept: bool,
    ) -> Result<(), OperationError> {
        let work = move |tx: &mut dyn Tx, _: &mut Now| {
            meta::write(tx, name, b"x")?;
            if is_kept { Ok(()) } else { Err(Refusal::new(Code::ResourceLocked, "planted").into()) }
        };
        store.write(work).await
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_group_runs_again_when_one_that_wrote_is_refused_and_the_others_keep_their_rows() {
        let folder = std::env::temp_dir().join(format!("hundi-group-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let store = Store::open(&folder.join("lane.db"), Clock::System, no_epilogue).unwrap();
        let refused_before_it_wrote = store
            .write(|_, _| Err::<(), _>(Refusal::new(Code::ResourceLocked, "planted").into()))
            .await;
        assert!(matches!(refused_before_it_wrote, Err(OperationError::Refused(_))));
        assert_eq!(store.stats.groups_again.load(Ordering::Relaxed), 0, "it had nothing to undo");
        let (commits_before, jobs_before) = (
            store.stats.transactions.load(Ordering::Relaxed),
            store.stats.jobs.load(Ordering::Relaxed),
        );
        // This job holds the lane until the three others wait, so that these share a group.
        let (release, released) = std::sync::mpsc::channel::<()>();
        let is_held = Arc::new(tokio::sync::Notify::new());
        let begun = is_held.clone();
        let held = store.write(move |_, _| {
            begun.notify_one();
            released
                .recv()
                .map_err(|_| StoreError::Unavailable("nobody lets the lane go".into()))?;
            Ok(())
        });
        let queue = async {
            is_held.notified().await;
            let rest = [("before", true), ("refused", false), ("after", true)]
                .map(|(name, is_kept)| write_row(&store, name, is_kept));
            let release = async {
                release.send(()).unwrap();
            };
            // `biased` keeps this order: all three are in the queue before the lane is let go.
            tokio::join!(biased; futures_util::future::join_all(rest), release).0
        };
        let (held, answers) = tokio::join!(held, queue);
        held.unwrap();
        assert!(
            matches!(answers.as_slice(), [Ok(()), Err(OperationError::Refused(_)), Ok(())]),
            "{answers:?}"
        );
        let (commits, jobs) = (
            store.stats.transactions.load(Ordering::Relaxed),
            store.stats.jobs.load(Ordering::Relaxed),
        );
        assert_eq!(
            (commits - commits_before, jobs - jobs_before),
            (2, 4),
            "the three were one group"
        );
        assert_eq!(store.stats.groups_again.load(Ordering::Relaxed), 1);
        // The next groups have savepoints from their start.
        assert!(write_row(&store, "refused", false).await.is_err());
        assert_eq!(store.stats.groups_again.load(Ordering::Relaxed), 1);
        for _ in 1..GROUPS_WITH_SAVEPOINTS {
            assert!(write_row(&store, "refused", false).await.is_err());
        }
        assert_eq!(
            store.stats.groups_again.load(Ordering::Relaxed),
            2,
            "the group after those began without savepoints"
        );
        let names = ["before", "after", "refused"];
        let found = store
            .read(Cost::Point, move |tx| {
                Ok(names.map(|name| meta::read(tx, name).map(|row| row.is_some())))
            })
            .await
            .unwrap();
        assert_eq!(found.map(Result::unwrap), [true, true, false]);
        store.close().await;
        std::fs::remove_dir_all(folder).unwrap();
    }
}
