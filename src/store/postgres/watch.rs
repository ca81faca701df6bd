//! What a node asks its database every few seconds: whether commits end, where its server is, and
//! what time it is there.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::connect::position_of_host;
use super::fence::{Fence, MARK_NAME, Mark, WATCH_SECONDS};
use super::session::Session;
use super::tx::{CommitFault, Kind, PgTx};
use super::url::PostgresUrl;
use super::{CLOCK_SECONDS, read_clock, soon};
use crate::kernel::{Carried, StoreError};
use crate::store::Tx;
use crate::store::jobs::LaneStats;
use crate::values;

/// A commit that takes longer hangs: such as one that waits for a standby that is not there.
const COMMIT_SECONDS_MAX: u64 = 4;

pub(super) struct Watcher {
    pub url: PostgresUrl,
    pub fence: Arc<Fence>,
    pub stats: Arc<LaneStats>,
    /// The clock that is corrected, unless a test moves it.
    pub carried: Option<Arc<Carried>>,
    pub session: Option<Session>,
    pub clock_read_at: Instant,
}

/// Looks until the sender of `stop` is gone. Runs on a thread of its own.
pub(super) fn run(mut watcher: Watcher, stop: &Receiver<()>) {
    let pause = Duration::from_secs(WATCH_SECONDS);
    loop {
        watcher.look();
        if stop.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

impl Watcher {
    fn look(&mut self) {
        for index in 0.. {
            let Some(_) = self.url.config_of_host(index) else { break };
            if let Some(position) = position_of_host(&self.url, index) {
                self.fence.notice(position);
            }
        }
        let fault = match self.write_mark() {
            Ok(()) => self.fence.halted().map(str::to_owned),
            Err(error) => {
                self.session = None;
                Some(error.to_string())
            }
        };
        // A read-only look at the clock may still work.
        self.stats.is_failing.store(fault.is_some(), Ordering::Relaxed);
        let mut known = self.stats.write_fault.lock().unwrap_or_else(PoisonError::into_inner);
        if fault != *known
            && let Some(reason) = &fault
        {
            tracing::error!(alarm = "writes_fail", database = %self.url, reason, "nothing can be \
             written to the database");
        }
        *known = fault;
    }

    /// Raises the mark in the database, unless the node may not write.
    fn write_mark(&mut self) -> Result<(), StoreError> {
        let generation = self.fence.generation();
        let mut session = match self.session.take() {
            Some(session) if !session.is_lost && session.generation == generation => session,
            _ => Session::connect_admitted(&self.url, Some(&self.fence), soon())?,
        };
        session.admit_again(&self.fence, soon())?;
        self.read_clock(&mut session);
        if self.fence.halted().is_none() {
            let end = Instant::now() + Duration::from_secs(COMMIT_SECONDS_MAX);
            let mut tx = PgTx::begin(&mut session, Kind::Write, end);
            match raise_mark(&mut tx) {
                Ok(mark) => match tx.commit() {
                    Ok(()) => self.fence.marked(mark),
                    Err(CommitFault::Unknown(_)) => {
                        return Err(StoreError::Unavailable(
                            "commits do not end: a synchronous standby is missing, or the server \
                             hangs"
                                .into(),
                        ));
                    }
                    // Another node raises it at the same time.
                    Err(CommitFault::Refused(StoreError::Conflict(_) | StoreError::Locked)) => {}
                    Err(CommitFault::Refused(error)) => return Err(error),
                },
                Err(StoreError::Conflict(_) | StoreError::Locked) => tx.roll_back(),
                Err(error) => {
                    tx.roll_back();
                    return Err(error);
                }
            }
        }
        self.session = Some(session);
        Ok(())
    }

    fn read_clock(&mut self, session: &mut Session) {
        let Some(carried) = &self.carried else { return };
        if self.clock_read_at.elapsed() < Duration::from_secs(CLOCK_SECONDS) {
            return;
        }
        match read_clock(session) {
            Ok((asked, answered, theirs_milliseconds)) => {
                self.clock_read_at = Instant::now();
                if !carried.correct(asked, answered, theirs_milliseconds) {
                    tracing::warn!(
                        "a reading of the database's clock took too long; the last one is used"
                    );
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the database's clock could not be read; the last reading \
                 is used")
            }
        }
    }
}

const READ_MARK: &str = "SELECT value FROM meta WHERE name = ?1";

/// Reads the mark and writes the next one over it; answers what it is then.
fn raise_mark(tx: &mut dyn Tx) -> Result<Mark, StoreError> {
    let found = tx.row(READ_MARK, values![MARK_NAME])?.map(|mut row| row.bytes()).transpose()?;
    let mark = found.as_deref().and_then(Mark::parse).unwrap_or_default().next();
    write_mark(tx, found.as_deref(), mark)?;
    Ok(mark)
}

fn write_mark(tx: &mut dyn Tx, found: Option<&[u8]>, mark: Mark) -> Result<(), StoreError> {
    let text = mark.to_text();
    match found {
        None => tx.execute_one(
            "INSERT INTO meta (name, value) VALUES (?1, ?2)",
            values![MARK_NAME, text.as_bytes()],
        ),
        Some(found) => tx.execute_one(
            "UPDATE meta SET value = ?2 WHERE name = ?1 AND value = ?3",
            values![MARK_NAME, text.as_bytes(), found],
        ),
    }
}

/// Says for the operator that the database as it is now is the one to work with.
pub(super) fn resume(url: &PostgresUrl) -> Result<(), StoreError> {
    let end = soon();
    let mut session = Session::connect(url, end)?;
    let now_milliseconds = session.clock_milliseconds()?;
    let mut tx = PgTx::begin(&mut session, Kind::Write, end);
    let found = tx.row(READ_MARK, values![MARK_NAME])?.map(|mut row| row.bytes()).transpose()?;
    let before = found.as_deref().and_then(Mark::parse).unwrap_or_default();
    let epoch = now_milliseconds.max(before.epoch + 1);
    write_mark(&mut tx, found.as_deref(), Mark { epoch, count: 0 })?;
    tx.commit().map_err(CommitFault::into_error)
}
