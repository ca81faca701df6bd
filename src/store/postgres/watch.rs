//! The watch: checks every few seconds that commits end and that the fence still admits the server.
//! It also raises the mark in the database (`fence.rs`), and reads the database's clock.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::connect::ask_each_host;
use super::faults::CommitError;
use super::fence::{Fence, MARK_NAME, Mark, WATCH_SECONDS};
use super::kind::TransactionKind;
use super::session::PgSession;
use super::tx::PgTx;
use super::url::PostgresUrl;
use super::{CLOCK_SECONDS, read_clock, refuse_pooler, soon};
use crate::kernel::{Carried, StoreError};
use crate::store::Tx;
use crate::store::jobs::LaneStats;
use crate::values;

/// A commit that takes longer counts as one that does not end. It may wait for a missing standby.
const COMMIT_SECONDS_MAX: u64 = 4;
/// How many times a look tries to write the mark, which other nodes may write at the same time.
const MARK_TRIES: usize = 4;

pub(super) struct Watcher {
    pub url: PostgresUrl,
    pub fence: Arc<Fence>,
    pub stats: Arc<LaneStats>,
    /// The clock to correct; `None` in tests that set the clock themselves.
    pub carried: Option<Arc<Carried>>,
    pub session: Option<PgSession>,
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
        let before = self.fence.seen();
        ask_each_host(&self.url, |position| self.fence.notice(before, position));
        let fault = match self.check_pooler().and_then(|()| self.check_server()) {
            Ok(()) => self.fence.halted().map(str::to_owned),
            Err(error) => {
                self.session = None;
                // If the fence has stopped the writing, its reason says what to do. The error may
                // only follow from that: a database made anew has no tables, for example.
                Some(self.fence.halted().map_or_else(|| error.to_string(), str::to_owned))
            }
        };
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

    /// Once a pooler was found that assigns connections by transaction, this fails until a check
    /// finds none.
    fn check_pooler(&self) -> Result<(), StoreError> {
        if !self.fence.is_pooled.load(Ordering::Relaxed) {
            return Ok(());
        }
        refuse_pooler(&self.url, &mut PgSession::connect(&self.url, soon())?)?;
        self.fence.is_pooled.store(false, Ordering::Relaxed);
        tracing::warn!("no pooler gives out connections by transaction any more: the node goes on");
        Ok(())
    }

    /// Has the fence judge the server again, reads the clock if that is due, and raises the mark.
    /// If this node has found that writes are missing, it writes that into the mark instead.
    fn check_server(&mut self) -> Result<(), StoreError> {
        let mut session = match self.session.take() {
            Some(session) if !session.is_over() => session,
            _ => PgSession::connect_admitted(&self.url, Some(&self.fence), soon())?,
        };
        session.admit_again(soon())?;
        self.read_clock(&mut session);
        for _ in 0..MARK_TRIES {
            let (started, limit) = (Instant::now(), Duration::from_secs(COMMIT_SECONDS_MAX));
            let mut tx = PgTx::begin(&mut session, TransactionKind::Write, started + limit);
            let committed = match raise_mark(&mut tx, &self.fence) {
                Ok(None) => {
                    tx.roll_back();
                    break;
                }
                Ok(Some(mark)) => tx.commit().map(|()| mark),
                Err(error) => {
                    tx.roll_back();
                    Err(CommitError::Refused(error))
                }
            };
            match committed {
                Ok(mark) if mark.is_lost => break,
                Ok(mark) => {
                    self.fence.note_mark(mark);
                    break;
                }
                // Another node raises the mark at the same time: try again.
                Err(CommitError::Refused(StoreError::Conflict(_) | StoreError::Locked)) => {
                    session.undo(soon());
                }
                Err(CommitError::Refused(error)) => return Err(error),
                Err(CommitError::Unknown(reason)) => {
                    let is_late = started.elapsed() >= limit;
                    let hangs = "commits do not end: a synchronous standby is missing, or the \
                                 server hangs";
                    return Err(StoreError::Unavailable(if is_late {
                        hangs.into()
                    } else {
                        reason
                    }));
                }
            }
        }
        self.session = Some(session);
        Ok(())
    }

    fn read_clock(&mut self, session: &mut PgSession) {
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

fn read_mark(tx: &mut dyn Tx) -> Result<(Option<Vec<u8>>, Mark), StoreError> {
    let found = tx.row(READ_MARK, values![MARK_NAME])?.map(|mut row| row.bytes()).transpose()?;
    let mark = found.as_deref().and_then(Mark::parse).unwrap_or_default();
    Ok((found, mark))
}

/// Reads the mark and writes the next one over it. If the fence found that writes are missing, the
/// new mark says so. Answers the mark that was written. `None` if the mark stays: no node raises a
/// mark that says that writes are missing, and a halted node raises none.
fn raise_mark(tx: &mut dyn Tx, fence: &Fence) -> Result<Option<Mark>, StoreError> {
    let (found, mark) = read_mark(tx)?;
    let next = match fence.loss_to_tell(mark) {
        Some(lost) => lost,
        None if mark.is_lost || fence.halted().is_some() => return Ok(None),
        None => mark.next(),
    };
    write_mark(tx, found.as_deref(), next)?;
    Ok(Some(next))
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

/// Records that the operator accepts the database as it is now.
pub(super) fn resume(url: &PostgresUrl) -> Result<(), StoreError> {
    let end = soon();
    let mut session = PgSession::connect(url, end)?;
    let now_milliseconds = session.clock_milliseconds()?;
    let mut tx = PgTx::begin(&mut session, TransactionKind::Write, end);
    let (found, before) = read_mark(&mut tx)?;
    let epoch = now_milliseconds.max(before.epoch + 1);
    write_mark(&mut tx, found.as_deref(), Mark { epoch, ..Mark::default() })?;
    tx.commit().map_err(CommitError::into_error)
}
