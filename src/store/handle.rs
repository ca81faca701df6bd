//! The store as the service sees it: transactions that write, and consistent views to read.
//!
//! Below it is the embedded store with one write lane and group commit (`lane.rs`), or PostgreSQL
//! with several connections and one transaction on each (`postgres/`).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::Tx;
pub use super::jobs::{
    Epilogue, LaneStats, QUEUE_JOBS_MAX, SCAN_READERS_MAX, Signals, no_epilogue,
};
use super::jobs::{Job, Ran, ReadJob};
use super::key_segments::KEYS_IN_SEGMENT_MAX;
use super::lane::Embedded;
use super::postgres::{self, Postgres, PostgresUrl};
use super::sqlite::{self, SqliteTx};
use crate::kernel::{Clock, Now, OperationError, StoreError};

/// On the embedded store: how many reads by key run at the same time, beside the
/// [`SCAN_READERS_MAX`] scans.
const POINT_READERS_MAX: usize = 8;
/// Reports ([`Cost::Expensive`]) that run at the same time.
const REPORTS_MAX: usize = 2;
/// How long a read waits for a permit before it is refused with 503.
const READER_WAIT_SECONDS_MAX: u64 = 5;

/// What a read is likely to cost. Permits bound how many reads of a kind run at the same time, so
/// that cheap reads do not wait behind expensive ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cost {
    /// A few rows by key. On the embedded store such a read runs on the thread that asks, with one
    /// of [`POINT_READERS_MAX`] permits. On PostgreSQL it needs no permit.
    Point,
    /// More rows. On the embedded store such a read runs on a thread that may block, with one of
    /// [`SCAN_READERS_MAX`] permits. On PostgreSQL there are `postgres::scans_count` permits.
    Scan,
    /// A report: many rows, such as a month of transfers. It needs two permits: that of a scan,
    /// and one of the permits of reports, of which there are at most [`REPORTS_MAX`].
    Expensive,
}

struct TypedJob<F, T> {
    work: F,
    answer: Option<Result<T, OperationError>>,
    reply: Option<oneshot::Sender<Result<T, OperationError>>>,
    is_keyed: bool,
}

impl<F, T> Job for TypedJob<F, T>
where
    F: FnMut(&mut dyn Tx, &mut Now) -> Result<T, OperationError> + Send,
    T: Send,
{
    fn run(&mut self, tx: &mut dyn Tx, now: &mut Now) -> Result<Ran, StoreError> {
        // The answer of an earlier run was undone with its effects.
        self.answer = None;
        let answer = (self.work)(tx, now);
        let ran = match &answer {
            Ok(_) => Ran::Keep,
            Err(OperationError::Store(StoreError::Conflict(_) | StoreError::Locked)) => Ran::Again,
            Err(_) => Ran::Undo,
        };
        if let Err(OperationError::Store(StoreError::Unavailable(reason))) = &answer {
            // The embedded store may have undone the whole group. So this error ends the group, and
            // `finish` gives the reason to the caller of each job in it.
            return Err(StoreError::Unavailable(reason.clone()));
        }
        self.answer = Some(answer);
        Ok(ran)
    }

    fn is_keyed(&self) -> bool {
        self.is_keyed
    }

    fn finish(mut self: Box<Self>, outcome: Result<(), StoreError>) {
        let answer = match outcome {
            Ok(()) => self
                .answer
                .take()
                .unwrap_or_else(|| Err(StoreError::Broken("a transaction panicked".into()).into())),
            Err(error) => Err(error.into()),
        };
        if let Some(reply) = self.reply.take() {
            // The caller may have hung up; the work is done all the same.
            let _ = reply.send(answer);
        }
    }
}

struct TypedReadJob<F, T> {
    work: F,
    reply: oneshot::Sender<Result<T, OperationError>>,
}

impl<F, T> ReadJob for TypedReadJob<F, T>
where
    F: FnOnce(&mut dyn Tx) -> Result<T, OperationError> + Send,
    T: Send,
{
    fn run(self: Box<Self>, tx: &mut dyn Tx) {
        // The caller may have hung up.
        let _ = self.reply.send((self.work)(tx));
    }
    fn refuse(self: Box<Self>, error: StoreError) {
        let _ = self.reply.send(Err(error.into()));
    }
}

/// Where the data is.
#[derive(Clone, Debug)]
pub enum Database {
    /// The file of the embedded store.
    Sqlite(PathBuf),
    Postgres(Box<PostgresUrl>),
}

impl std::fmt::Display for Database {
    /// Does not show the password.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Database::Sqlite(path) => write!(formatter, "{}", path.display()),
            Database::Postgres(url) => write!(formatter, "{url}"),
        }
    }
}

impl Database {
    /// Reads `sqlite:PATH` or `postgres://…`. `Err` says what to write.
    pub fn parse(text: &str) -> Result<Database, String> {
        match text.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => {
                Ok(Database::Sqlite(PathBuf::from(path.strip_prefix("//").unwrap_or(path))))
            }
            Some(("postgres" | "postgresql", _)) => {
                PostgresUrl::parse(text).map(|url| Database::Postgres(Box::new(url)))
            }
            _ => Err("the database must be sqlite:PATH, such as sqlite:hundi.db, or \
             postgres://USER@HOST:5432/NAME"
                .into()),
        }
    }

    /// Refuses a file that does not exist, so that a mistyped path creates no database.
    pub fn must_exist(&self) -> Result<(), String> {
        match self {
            Database::Sqlite(path) if !path.exists() => {
                Err(format!("there is no database {self}: name one with --database"))
            }
            _ => Ok(()),
        }
    }

    /// What the database server says of itself; `None` for SQLite. Blocks: do not call it on a
    /// thread of a runtime.
    pub fn server(&self) -> Result<Option<postgres::Server>, StoreError> {
        match self {
            Database::Sqlite(_) => Ok(None),
            Database::Postgres(url) => postgres::describe_server(url).map(Some),
        }
    }

    /// Lets nodes that stopped writing, because the database went back in time, continue with it as
    /// it is now; `false` for SQLite. Blocks: do not call it on a thread of a runtime.
    pub fn resume(&self) -> Result<bool, StoreError> {
        match self {
            Database::Sqlite(_) => Ok(false),
            Database::Postgres(url) => postgres::resume(url).map(|()| true),
        }
    }

    /// Evidence that nodes work with the database now; `None` if there is none, and always for
    /// SQLite. Blocks: do not call it on a thread of a runtime.
    pub fn nodes_running(&self) -> Result<Option<String>, StoreError> {
        let Database::Postgres(url) = self else { return Ok(None) };
        let connections_count = postgres::node_connections_count(url)?;
        if connections_count > 0 {
            return Ok(Some(format!("nodes have {connections_count} connections to it")));
        }
        // A node that is cut off from the database has no connection, but may hold a lease.
        let now_milliseconds = postgres::clock_milliseconds(url)?;
        let leases = postgres::examine(url, |tx| super::lease::held(tx, now_milliseconds))?;
        let held = leases.join(", ");
        Ok((!leases.is_empty()).then(|| format!("a node holds the leases {held}")))
    }

    /// Runs `work` on one consistent view, also while the service runs. On PostgreSQL `work` may
    /// take a day at most. Blocks: do not call it on a thread of a runtime.
    pub fn examine<T>(
        &self,
        work: impl FnOnce(&mut dyn Tx) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self {
            Database::Sqlite(path) => {
                let connection = sqlite::open_reader(path)?;
                let mut tx = SqliteTx::new(&connection);
                tx.run("BEGIN")?;
                work(&mut tx)
            }
            Database::Postgres(url) => postgres::examine(url, work),
        }
    }
}

enum Engine {
    Embedded {
        embedded: Embedded,
        /// Permits of reads by key.
        points: Arc<Semaphore>,
        scans: Arc<Semaphore>,
    },
    Postgres {
        postgres: Postgres,
        /// Permits of scans. If several connections read, there are fewer permits than such
        /// connections, so that some stay free for reads by key.
        scans: Arc<Semaphore>,
    },
}

/// A handle to the store; cheap to clone.
#[derive(Clone)]
pub struct Store {
    engine: Arc<Engine>,
    pub signals: Arc<Signals>,
    pub stats: Arc<LaneStats>,
    pub clock: Clock,
    reports: Arc<Semaphore>,
}

/// Waits for a permit. `Err` after [`READER_WAIT_SECONDS_MAX`].
async fn wait_for_permit(permits: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, StoreError> {
    let wait = tokio::time::timeout(
        Duration::from_secs(READER_WAIT_SECONDS_MAX),
        permits.clone().acquire_owned(),
    );
    match wait.await {
        Ok(Ok(permit)) => Ok(permit),
        _ => Err(StoreError::Unavailable("all reading connections are busy".into())),
    }
}

impl Store {
    /// Opens the store that a configuration names. `judge` sees the database before its migration,
    /// and may refuse it. A new database has no tables then.
    ///
    /// `epilogue` is for the embedded store: it sequences events. `connections_count` and `is_node`
    /// are for PostgreSQL. A process that is no node is a command, which may run beside nodes.
    pub async fn open_database(
        database: &Database,
        clock: Clock,
        epilogue: Epilogue,
        connections_count: usize,
        is_node: bool,
        judge: impl FnOnce(&mut dyn Tx) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<Store, StoreError> {
        match database {
            Database::Sqlite(path) => {
                Store::open_judged(path, clock, epilogue, KEYS_IN_SEGMENT_MAX, judge)
            }
            Database::Postgres(url) => {
                Store::connect_as(url, clock, connections_count, is_node, judge).await
            }
        }
    }

    /// Opens the embedded store, brings its schema up to date and starts the write lane.
    pub fn open(path: &Path, clock: Clock, epilogue: Epilogue) -> Result<Store, StoreError> {
        Store::open_with_segments(path, clock, epilogue, KEYS_IN_SEGMENT_MAX)
    }

    /// [`Store::open`] with segments of another size, for tests.
    pub(super) fn open_with_segments(
        path: &Path,
        clock: Clock,
        epilogue: Epilogue,
        keys_max: usize,
    ) -> Result<Store, StoreError> {
        Store::open_judged(path, clock, epilogue, keys_max, |_| Ok(()))
    }

    fn open_judged(
        path: &Path,
        clock: Clock,
        epilogue: Epilogue,
        keys_max: usize,
        judge: impl FnOnce(&mut dyn Tx) -> Result<(), StoreError>,
    ) -> Result<Store, StoreError> {
        // With this fault the store's clock follows the machine's, which tests must notice.
        let follows = super::failpoint("clock_follows_the_machine");
        let clock = if follows { clock } else { clock.carried() };
        let (signals, stats) = (Arc::<Signals>::default(), Arc::<LaneStats>::default());
        let embedded = Embedded::open(
            path,
            &clock,
            epilogue,
            keys_max,
            signals.clone(),
            stats.clone(),
            judge,
        )?;
        let engine = Engine::Embedded {
            embedded,
            points: Arc::new(Semaphore::new(POINT_READERS_MAX)),
            scans: Arc::new(Semaphore::new(SCAN_READERS_MAX)),
        };
        let reports = Arc::new(Semaphore::new(REPORTS_MAX));
        Ok(Store { engine: Arc::new(engine), signals, stats, clock, reports })
    }

    /// Connects to PostgreSQL as a command does, brings its schema up to date and starts the lanes.
    /// In place of [`Clock::System`], time is the database's clock.
    pub async fn connect(
        url: &PostgresUrl,
        clock: Clock,
        connections_count: usize,
    ) -> Result<Store, StoreError> {
        Store::connect_as(url, clock, connections_count, false, |_| Ok(())).await
    }

    async fn connect_as(
        url: &PostgresUrl,
        clock: Clock,
        connections_count: usize,
        is_node: bool,
        judge: impl FnOnce(&mut dyn Tx) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<Store, StoreError> {
        let (signals, stats) = (Arc::<Signals>::default(), Arc::<LaneStats>::default());
        let (postgres, clock) = Postgres::connect(
            url,
            clock,
            connections_count,
            is_node,
            signals.clone(),
            stats.clone(),
            judge,
        )
        .await?;
        let scans_count = postgres::scans_count(connections_count);
        let reports = Arc::new(Semaphore::new(REPORTS_MAX.min(scans_count.div_ceil(2))));
        let scans = Arc::new(Semaphore::new(scans_count));
        let engine = Arc::new(Engine::Postgres { postgres, scans });
        Ok(Store { engine, signals, stats, clock, reports })
    }

    /// Whether other processes may serve the same data, so that this process must not trust what it
    /// remembers of the data.
    pub fn is_shared(&self) -> bool {
        matches!(*self.engine, Engine::Postgres { .. })
    }

    /// How many connections to old primaries were refused after a fail-over; `None` for SQLite.
    pub fn old_primaries_refused_count(&self) -> Option<u64> {
        match &*self.engine {
            Engine::Embedded { .. } => None,
            Engine::Postgres { postgres, .. } => Some(postgres.refused_count()),
        }
    }

    /// The timeline of the server that this node works with; `None` for SQLite, and if the server
    /// does not report it.
    pub fn database_timeline(&self) -> Option<i64> {
        match &*self.engine {
            Engine::Embedded { .. } => None,
            Engine::Postgres { postgres, .. } => postgres.timeline(),
        }
    }

    /// Why nothing can be written, if the store knows: for example, commits do not end, or the
    /// database went back in time.
    pub fn write_fault(&self) -> Option<String> {
        if let Engine::Postgres { postgres, .. } = &*self.engine
            && let Some(reason) = postgres.halted()
        {
            return Some(reason.into());
        }
        self.stats.write_fault.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Runs `work` as one transaction and answers once it is durable. `work` may run several times:
    /// on PostgreSQL after a conflict or a lost connection, on the embedded store when its group
    /// runs again. If it is not known whether the commit took place, this answers
    /// [`StoreError::Unavailable`].
    pub async fn write<T, F>(&self, work: F) -> Result<T, OperationError>
    where
        T: Send + 'static,
        F: FnMut(&mut dyn Tx, &mut Now) -> Result<T, OperationError> + Send + 'static,
    {
        self.submit(work, false).await
    }

    /// [`Store::write`] for work that begins with its idempotency key. After a commit of unknown
    /// outcome it runs again, and finds its own stored answer if the commit took place.
    pub async fn write_keyed<T, F>(&self, work: F) -> Result<T, OperationError>
    where
        T: Send + 'static,
        F: FnMut(&mut dyn Tx, &mut Now) -> Result<T, OperationError> + Send + 'static,
    {
        self.submit(work, true).await
    }

    async fn submit<T, F>(&self, work: F, is_keyed: bool) -> Result<T, OperationError>
    where
        T: Send + 'static,
        F: FnMut(&mut dyn Tx, &mut Now) -> Result<T, OperationError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job: Box<dyn Job> =
            Box::new(TypedJob { work, answer: None, reply: Some(reply), is_keyed });
        match &*self.engine {
            Engine::Embedded { embedded, .. } => embedded.submit(job)?,
            Engine::Postgres { postgres, .. } => postgres.submit(job)?,
        }
        answer.await.unwrap_or_else(|_| {
            Err(StoreError::Unavailable("the write lane has stopped".into()).into())
        })
    }

    /// Closes the store once the jobs that wait in it have run. Later writes are refused.
    pub async fn close(&self) {
        match &*self.engine {
            Engine::Embedded { embedded, .. } => embedded.close().await,
            Engine::Postgres { postgres, .. } => postgres.close().await,
        }
    }

    /// Runs `work` on one consistent view, without waiting for writers.
    pub async fn read<T, F>(&self, cost: Cost, work: F) -> Result<T, OperationError>
    where
        T: Send + 'static,
        F: FnOnce(&mut dyn Tx) -> Result<T, OperationError> + Send + 'static,
    {
        let report = match cost {
            Cost::Expensive => Some(wait_for_permit(&self.reports).await?),
            Cost::Point | Cost::Scan => None,
        };
        match &*self.engine {
            Engine::Embedded { embedded, points, scans } => {
                let permits = if cost == Cost::Point { points } else { scans };
                let permit = wait_for_permit(permits).await?;
                if cost == Cost::Point {
                    return embedded.readers.run(false, work);
                }
                let readers = embedded.readers.clone();
                // The read continues if its caller hangs up, so it takes the permit along.
                let read = move || {
                    let _permits = (permit, report);
                    readers.run(cost == Cost::Expensive, work)
                };
                tokio::task::spawn_blocking(read)
                    .await
                    .unwrap_or_else(|_| Err(StoreError::Broken("a read panicked".into()).into()))
            }
            Engine::Postgres { postgres, scans } => {
                let scan = match cost {
                    Cost::Point => None,
                    Cost::Scan | Cost::Expensive => Some(wait_for_permit(scans).await?),
                };
                let (reply, answer) = oneshot::channel();
                let work = move |tx: &mut dyn Tx| {
                    let _permits = (scan, report);
                    work(tx)
                };
                postgres.read(Box::new(TypedReadJob { work, reply }))?;
                answer
                    .await
                    .unwrap_or_else(|_| Err(StoreError::Broken("a read panicked".into()).into()))
            }
        }
    }
}
