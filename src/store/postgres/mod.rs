//! The store for many nodes: PostgreSQL, with several connections and one transaction on each.
//!
//! - `connect.rs` makes a connection to one of the servers that the address (`url.rs`) names.
//! - `admit.rs` asks the server for its timeline and how far its log goes. `fence.rs` judges the
//!   answer by what the node has seen and which commits it acknowledged (`acknowledged.rs`), so
//!   that the node never writes to an older state of the database. `watch.rs` has that judged again
//!   every few seconds.
//! - `session.rs` is a connection; `faults.rs` says what its errors mean.
//! - `tx.rs` is a transaction on a connection; `kind.rs` says how it begins; `many_rows.rs` reads
//!   and changes many rows with few statements.
//! - `lane.rs` has the threads that run transactions; `queue.rs` has the jobs that wait for them.
//! - `id_floor.rs` keeps lists from missing rows. `presence.rs` lets commands see whether nodes
//!   are connected to the database.
//!
//! A transaction that writes is READ COMMITTED: rules repeat what they rely on in the conditions of
//! their updates, and a transaction that conflicts runs again. One that only reads is REPEATABLE
//! READ.

mod acknowledged;
mod admit;
mod connect;
mod faults;
mod fence;
mod id_floor;
mod kind;
mod lane;
mod many_rows;
mod presence;
mod queue;
mod session;
mod tx;
mod url;
mod watch;

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::jobs::{Job, LaneStats, ReadJob, Signals};
use super::{Tx, migrate};
use crate::kernel::{Carried, Clock, StoreError};
use fence::Fence;
use kind::TransactionKind;
use lane::Lanes;
use many_rows::UpdateForm;
use session::PgSession;
pub use url::PostgresUrl;

/// How long a transaction may take with all its waits and repeated runs. After that the caller is
/// answered 503.
pub const TRANSACTION_SECONDS_MAX: u64 = 8;
/// How long the server lets one statement run, except in the two kinds of transaction that set
/// limits of their own (`kind.rs`).
const STATEMENT_SECONDS_MAX: u64 = 7;
/// How long a statement waits for a row that another transaction holds. Migrations have limits of
/// their own.
pub const LOCK_SECONDS_MAX: u64 = 2;
/// How long the server keeps a transaction of a silent node open. No transaction of a node needs
/// longer, because it waits for nothing between its statements. This is shorter than a lease, so
/// that what a silent node has locked becomes free before its leases end.
const IDLE_IN_TRANSACTION_SECONDS_MAX: u64 = 3;
/// How long making a connection may take.
const CONNECT_SECONDS_MAX: u64 = 3;
/// How many connections a node's lanes have unless the configuration says otherwise, and the limits
/// of that setting. About a third of the connections read.
pub const CONNECTIONS_DEFAULT: usize = 24;
pub const CONNECTIONS_MIN: usize = 4;
pub const CONNECTIONS_MAX: usize = 512;
/// How often the database's clock is read.
const CLOCK_SECONDS: u64 = 30;
/// How many back ends a check for a pooler compares.
const POOLER_TRIES: usize = 3;
/// How long a start waits for other nodes' migrations and its own.
const MIGRATION_SECONDS_MAX: u64 = 120;
/// How long a start waits for a database that cannot be reached yet.
const START_SECONDS_MAX: u64 = 30;

/// How many of a node's connections read.
const fn readers_count(connections_count: usize) -> usize {
    if connections_count < 6 { 1 } else { connections_count / 3 }
}

/// How many of the reading connections may be used by reads of many rows (`Cost::Scan`) at the same
/// time. If there are several, at least a quarter is for reads by key alone.
pub(super) const fn scans_count(connections_count: usize) -> usize {
    let readers_count = readers_count(connections_count);
    if readers_count == 1 { 1 } else { readers_count - readers_count.div_ceil(4) }
}

/// A node's connections.
pub(super) struct Postgres {
    lanes: Lanes,
    /// Dropping it ends the watch.
    stop: Mutex<Option<Sender<()>>>,
    fence: Arc<Fence>,
}

impl Postgres {
    /// Connects, brings the schema up to date and starts the lanes and the watch. `judge` may
    /// refuse the database before its schema is changed. The clock in the answer is the database's,
    /// in place of [`Clock::System`].
    pub(super) async fn connect(
        url: &PostgresUrl,
        clock: Clock,
        connections_count: usize,
        is_node: bool,
        signals: Arc<Signals>,
        stats: Arc<LaneStats>,
        judge: impl FnOnce(&mut dyn Tx) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<(Postgres, Clock), StoreError> {
        let url_start = url.clone();
        let start = move || -> Result<(Carried, UpdateForm), StoreError> {
            let mut session = first_session(&url_start)?;
            let (asked, answered, theirs_milliseconds) = read_clock(&mut session)?;
            refuse_pooler(&url_start, &mut session)?;
            let mut tx = tx::PgTx::begin(&mut session, TransactionKind::Read, soon());
            let judged = judge(&mut tx);
            tx.roll_back();
            judged?;
            migrate(&mut session)?;
            let update_form = many_rows::update_form(&mut session, soon())?;
            Ok((Carried::new(asked, answered, theirs_milliseconds), update_form))
        };
        let (carried, update_form) = tokio::task::spawn_blocking(start)
            .await
            .map_err(|_| StoreError::Broken("the start of the store panicked".into()))??;
        let clock = match clock {
            Clock::System => Clock::Measured(Arc::new(carried)),
            // Tests that set the clock themselves share it with every node.
            other => other,
        };
        let fence = Arc::new(Fence::new(is_node));
        let lanes = Lanes::start(
            url,
            &clock,
            connections_count,
            signals,
            stats.clone(),
            fence.clone(),
            update_form,
        )?;
        let (stop, stopping) = std::sync::mpsc::channel();
        let carried = match &clock {
            Clock::Measured(carried) => Some(carried.clone()),
            _ => None,
        };
        let watcher = watch::Watcher {
            url: url.clone(),
            fence: fence.clone(),
            stats,
            carried,
            session: None,
            clock_read_at: Instant::now(),
        };
        std::thread::Builder::new()
            .name("database-watch".into())
            .spawn(move || watch::run(watcher, &stopping))
            .map_err(|error| StoreError::Unavailable(format!("cannot start the watch: {error}")))?;
        Ok((Postgres { lanes, stop: Mutex::new(Some(stop)), fence }, clock))
    }

    pub(super) fn submit(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        self.lanes.submit(job)
    }

    pub(super) fn read(&self, job: Box<dyn ReadJob>) -> Result<(), StoreError> {
        self.lanes.read(job)
    }

    /// Connections to old primaries that were refused after a fail-over.
    pub(super) fn refused_count(&self) -> u64 {
        self.fence.refused_count.load(std::sync::atomic::Ordering::Relaxed)
    }

    pub(super) fn timeline(&self) -> Option<i64> {
        self.fence.timeline()
    }

    /// Why the fence has stopped writing; `None` if it has not.
    pub(super) fn halted(&self) -> Option<&'static str> {
        self.fence.halted()
    }

    /// Ends the lanes once the jobs that wait for them have run.
    pub(super) async fn close(&self) {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.lanes.close().await;
    }
}

/// Records that the operator accepts the database as it is now. Blocks: do not call it on a thread
/// of a runtime.
pub(super) fn resume(url: &PostgresUrl) -> Result<(), StoreError> {
    // A database that was made anew has no schema yet.
    migrate(&mut PgSession::connect(url, soon())?)?;
    watch::resume(url)
}

/// Refuses a pooler that assigns connections by transaction: its sessions share back ends, and with
/// them prepared statements and settings. Such a pooler is found if a transaction of one session
/// runs on a back end that another session has used.
fn refuse_pooler(url: &PostgresUrl, first: &mut PgSession) -> Result<(), StoreError> {
    let mut second = PgSession::connect(url, soon())?;
    let mut others = Vec::new();
    for _ in 0..POOLER_TRIES {
        others.push(first.back_end(soon())?);
        let mut tx = tx::PgTx::begin(&mut second, TransactionKind::Read, soon());
        let row = tx.row("SELECT CAST(pg_backend_pid() AS BIGINT)", &[]);
        tx.roll_back();
        let in_transaction = row?.map_or(Ok(0), |mut row| row.int())?;
        if others.contains(&in_transaction) {
            return Err(StoreError::Broken(faults::POOLER.into()));
        }
    }
    Ok(())
}

/// A deadline for work outside the lanes: enough to connect, or for a short transaction.
fn soon() -> Instant {
    Instant::now() + Duration::from_secs(CONNECT_SECONDS_MAX + 1)
}

/// How many connections nodes have to a database, without those of commands. Blocks: do not call it
/// on a thread of a runtime.
pub(super) fn node_connections_count(url: &PostgresUrl) -> Result<i64, StoreError> {
    PgSession::connect(url, soon())?.number(presence::COUNT, soon())
}

/// What a server says of itself.
pub struct Server {
    /// For example `15.14`.
    pub version: String,
    /// A sentence for each setting with which a crash can lose acknowledged writes.
    pub warnings: Vec<String>,
}

/// Asks the server for its version and for settings that no connection can set for itself. Blocks:
/// do not call it on a thread of a runtime.
pub(super) fn describe_server(url: &PostgresUrl) -> Result<Server, StoreError> {
    const SETTINGS: &str = "SELECT current_setting('server_version'), current_setting('fsync'), \
     current_setting('full_page_writes')";
    let mut session = PgSession::connect(url, soon())?;
    refuse_pooler(url, &mut session)?;
    let mut tx = tx::PgTx::begin(&mut session, TransactionKind::Read, soon());
    let row = tx.row(SETTINGS, &[]);
    tx.roll_back();
    let mut row = row?.ok_or_else(|| StoreError::Broken("PostgreSQL tells no settings".into()))?;
    let (version, fsync, full_page_writes) = (row.text()?, row.text()?, row.text()?);
    let mut warnings = Vec::new();
    for (name, setting) in [("fsync", fsync), ("full_page_writes", full_page_writes)] {
        if setting != "on" {
            warnings.push(format!(
                "the server's {name} is {setting}: a crash of its machine can \
             lose or spoil what was acknowledged"
            ));
        }
    }
    Ok(Server { version, warnings })
}

/// The server's clock, in milliseconds since 1970.
pub(super) fn clock_milliseconds(url: &PostgresUrl) -> Result<i64, StoreError> {
    PgSession::connect(url, soon())?.clock_milliseconds()
}

/// Runs `work` on one snapshot, on a connection of its own, for up to a day.
pub(super) fn examine<T>(
    url: &PostgresUrl,
    work: impl FnOnce(&mut dyn Tx) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    const EXAMINE_SECONDS_MAX: u64 = 24 * 3600;
    let mut session = PgSession::connect(url, soon())?;
    let mut tx = tx::PgTx::begin(
        &mut session,
        TransactionKind::Examine,
        Instant::now() + Duration::from_secs(EXAMINE_SECONDS_MAX),
    );
    let answer = work(&mut tx);
    tx.roll_back();
    answer
}

/// Brings the schema up to date. If another node migrates at the same time, this tries again.
fn migrate(session: &mut PgSession) -> Result<(), StoreError> {
    let end = Instant::now() + Duration::from_secs(MIGRATION_SECONDS_MAX);
    loop {
        let mut tx = tx::PgTx::begin(session, TransactionKind::Migrate, end);
        let outcome = match migrate::migrate_shared(&mut tx) {
            Ok(is_more) => tx.commit().map(|()| is_more).map_err(faults::CommitError::into_error),
            Err(error) => {
                tx.roll_back();
                Err(error)
            }
        };
        match outcome {
            Ok(false) => return Ok(()),
            Ok(true) => {}
            Err(StoreError::Conflict(_)) if Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(50))
            }
            // Requests waited behind the migration, which waited for a table: let them run first.
            Err(StoreError::Locked) if Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(1_000))
            }
            Err(error) => return Err(error),
        }
    }
}

/// Makes the first connection. The database may start after this process, so this waits up to
/// [`START_SECONDS_MAX`] for a database that cannot be reached. It does not wait if the server
/// refuses the user, the password or the database's name.
fn first_session(url: &PostgresUrl) -> Result<PgSession, StoreError> {
    let end = Instant::now() + Duration::from_secs(START_SECONDS_MAX);
    let mut is_logged = false;
    loop {
        match PgSession::connect(url, soon()) {
            Err(StoreError::Unavailable(reason)) if Instant::now() < end => {
                if !is_logged {
                    tracing::warn!(database = %url, reason, "the database cannot be reached yet; \
                     the start waits for it");
                    is_logged = true;
                }
                std::thread::sleep(Duration::from_millis(200));
            }
            other => return other,
        }
    }
}

/// Reads the database's clock. Answers when it was asked, when it had answered, and the clock's
/// milliseconds since 1970.
fn read_clock(session: &mut PgSession) -> Result<(Instant, Instant, i64), StoreError> {
    let asked = Instant::now();
    let theirs_milliseconds = session.clock_milliseconds()?;
    Ok((asked, Instant::now(), theirs_milliseconds))
}
