//! What passes between the store and its lanes: the jobs that wait, and what the lanes report. A
//! job is the work of one caller.
//!
//! The lanes (`lane.rs`, `postgres/lane.rs`) know this file and not the store above them.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, watch};

use super::delivery_signals::DeliverySignals;
use super::event_waits::EventWaits;
use super::{Signal, Tx};
use crate::kernel::{Now, StoreError};

/// How many jobs may wait for a lane. More are refused with 503, because they would wait longer
/// than clients do.
pub const QUEUE_JOBS_MAX: usize = 8_192;
/// How many scans of the embedded store may run at the same time, each on a connection of its own.
/// Reads by key run beside them.
pub const SCAN_READERS_MAX: usize = 8;

/// Runs at the end of a group (`lane.rs`) that wrote outbox rows: the sequencer.
pub type Epilogue = fn(&mut dyn Tx, &mut Now) -> Result<(), StoreError>;

/// For processes that do not sequence events, such as commands beside a server.
pub fn no_epilogue(_: &mut dyn Tx, _: &mut Now) -> Result<(), StoreError> {
    Ok(())
}

/// Where the signals of a commit go. They wake workers and waiting requests, and some are logged.
#[derive(Default)]
pub struct Signals {
    pub tasks: Notify,
    pub deliveries: DeliverySignals,
    pub look_ups: Notify,
    pub outbox: Notify,
    /// Whether the sequencer of this node works now. Always `false` on the embedded store.
    pub is_sequencing: watch::Sender<bool>,
    /// Requests that wait for an event.
    pub event_waits: Arc<EventWaits>,
}

impl Signals {
    pub(super) fn tell(&self, signal: Signal) {
        match signal {
            Signal::Tasks => self.tasks.notify_one(),
            Signal::DeliveriesOf(endpoint) => self.deliveries.tell_of_endpoint(endpoint),
            Signal::Deliveries => self.deliveries.tell(),
            Signal::LookUps => self.look_ups.notify_one(),
            Signal::Outbox => self.outbox.notify_one(),
            Signal::StatusChanged { id, from, to } => {
                tracing::info!(transfer = %id, from, to, "a transfer changed its status");
            }
            // The log has only the decision's identifier; `hundi decisions` shows what was decided.
            Signal::Decided { id: Some(id), decision } => {
                tracing::info!(object = %id, %decision, "the operator decided");
            }
            Signal::Decided { id: None, decision } => {
                tracing::info!(%decision, "the operator decided");
            }
            Signal::Event(scope) => self.event_waits.tell(scope),
        }
    }
}

/// Counters of the store's transactions, for the metrics page.
#[derive(Default)]
pub struct LaneStats {
    /// Transactions that ended, failed ones included. On the embedded store each runs a group of
    /// jobs, on PostgreSQL one job. Reads do not count.
    pub transactions: AtomicU64,
    /// The jobs of these transactions.
    pub jobs: AtomicU64,
    /// Transactions that failed.
    pub transaction_failures: AtomicU64,
    /// How long the transactions took, from their beginning to the end of the commit.
    pub transaction_microseconds: AtomicU64,
    /// Groups that ran a second time, with savepoints, because one of their jobs had to be undone.
    pub groups_again: AtomicU64,
    /// How often writing transactions waited for an answer of the database server, preparing
    /// statements included.
    pub round_trips: AtomicU64,
    /// On the embedded store: the last commit that had anything to write failed. On PostgreSQL: the
    /// last attempt to connect failed, or `postgres/watch.rs` found that nothing can be written.
    pub is_failing: AtomicBool,
    /// Connections made to a server, reconnects included.
    pub connections_made: AtomicU64,
    /// On PostgreSQL: how long transactions, reads included, waited for a free connection.
    pub wait_microseconds: AtomicU64,
    /// Why writes fail, for the operator. `None` if they do not fail or the cause is not known.
    pub write_fault: Mutex<Option<String>>,
}

/// What became of a job's work, before the commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ran {
    /// Keep its effects.
    Keep,
    /// It was refused or failed: undo its effects and return its answer.
    Undo,
    /// It conflicted with another transaction. PostgreSQL's lanes run it again; the embedded store
    /// treats it like [`Ran::Undo`].
    Again,
}

/// The work of one caller, which waits for a lane.
pub(super) trait Job: Send {
    /// Runs the work; `Err` means that the store itself failed.
    fn run(&mut self, tx: &mut dyn Tx, now: &mut Now) -> Result<Ran, StoreError>;
    /// Whether the job may run once more if the outcome of its commit is unknown. Such a job begins
    /// with its idempotency key, so it changes nothing twice.
    fn is_keyed(&self) -> bool;
    /// Returns the answer to the caller. `Ok` if the store did what [`Job::run`] asked for: it kept
    /// the effects, or undid them. `Err` says why nothing was kept, or why that is not known.
    fn finish(self: Box<Self>, outcome: Result<(), StoreError>);
}

/// A read that waits for a connection to a database server.
pub(super) trait ReadJob: Send {
    /// Reads, and returns the answer to the caller.
    fn run(self: Box<Self>, tx: &mut dyn Tx);
    /// Answers the caller with an error.
    fn refuse(self: Box<Self>, error: StoreError);
}
