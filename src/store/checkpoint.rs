//! Folds the embedded store's log back into the database file, beside the lane that writes it.
//!
//! A checkpoint copies thousands of pages and waits for the disk twice. Done by the lane, it would stop every caller
//! for tens of milliseconds; here a thread of its own does nearly all of it, and the lane only the few pages that were
//! written meanwhile, after which the log begins anew.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::sqlite::{self, CHECKPOINT_PAGES};
use crate::kernel::StoreError;

/// Pages that the lane folds back itself, because handing over again would cost more.
const REST_PAGES_MAX: i64 = 1_000;
/// Pages by which a log that could not begin anew grows before it is folded back again.
const PAGES_BETWEEN_MIN: i64 = CHECKPOINT_PAGES / 4;
/// A log that grew so long in spite of the thread is folded back by the lane, so that it cannot grow without end.
const LOG_PAGES_MAX: i64 = 8 * CHECKPOINT_PAGES;

/// How long the log is, and how much of it is in the database file, in pages.
struct Progress {
    log_pages: i64,
    folded_pages: i64,
}

fn pragma(connection: &Connection, mode: &str) -> rusqlite::Result<Progress> {
    let mut statement = connection.prepare_cached(&format!("PRAGMA wal_checkpoint({mode})"))?;
    statement.query_row([], |row| Ok(Progress { log_pages: row.get(1)?, folded_pages: row.get(2)? }))
}

/// The lane's side of the thread.
pub struct Checkpoints {
    wanted: Option<SyncSender<()>>,
    is_running: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// How long the log may grow before the next look. A reader's old view can keep the log from beginning anew.
    pages_next: i64,
}

impl Checkpoints {
    /// Starts the thread; `writer` leaves checkpoints to it from now on.
    pub fn start(path: &Path, writer: &Connection) -> Result<Checkpoints, StoreError> {
        Checkpoints::take_over(writer)?;
        let connection = sqlite::open_writer(path)?;
        let (wanted, wishes) = sync_channel::<()>(1);
        let is_running = Arc::new(AtomicBool::new(false));
        let running = is_running.clone();
        let thread = std::thread::Builder::new().name("checkpoint".into()).spawn(move || {
            while wishes.recv().is_ok() {
                if let Err(error) = pragma(&connection, "PASSIVE") {
                    tracing::warn!(%error, "the log could not be folded into the database file; it is tried again");
                }
                running.store(false, Ordering::Release);
            }
        });
        let thread = thread.map_err(|error| StoreError::Unavailable(format!("cannot start the checkpoint thread: {error}")))?;
        Ok(Checkpoints { wanted: Some(wanted), is_running, thread: Some(thread), pages_next: CHECKPOINT_PAGES })
    }

    /// Stops SQLite's own checkpoints on the connection that writes.
    pub fn take_over(writer: &Connection) -> Result<(), StoreError> {
        writer.pragma_update(None, "wal_autocheckpoint", 0).map_err(sqlite::store_error)
    }

    /// Looks at the log after a commit: asks the thread to fold it back, or does the little that is left.
    pub fn after_commit(&mut self, writer: &Connection) {
        // NOOP only counts.
        let Ok(Progress { log_pages, folded_pages }) = pragma(writer, "NOOP") else { return };
        if log_pages < CHECKPOINT_PAGES {
            self.pages_next = CHECKPOINT_PAGES;
        }
        if log_pages < self.pages_next {
            return;
        }
        let is_running = self.is_running.load(Ordering::Acquire);
        let rest_pages = log_pages - folded_pages;
        if (!is_running && rest_pages <= REST_PAGES_MAX) || log_pages >= LOG_PAGES_MAX {
            self.pages_next = log_pages + PAGES_BETWEEN_MIN;
            // While the thread is at it this answers busy and changes nothing.
            if let Err(error) = pragma(writer, "PASSIVE") {
                tracing::warn!(%error, "the log could not be folded into the database file; it is tried again");
            }
        } else if !is_running && let Some(wanted) = &self.wanted {
            self.is_running.store(true, Ordering::Release);
            let _ = wanted.try_send(());
        }
    }

    /// Ends the thread after what it is at.
    pub fn end(&mut self) {
        self.wanted = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
