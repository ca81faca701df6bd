//! What the store gives to its lanes: jobs that wait for their turn, and what the lanes tell back.
//!
//! The lanes (`lane.rs`, `postgres/lane.rs`) know this file and not the store above them.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, watch};

use super::delivery_signals::DeliverySignals;
use super::event_waits::EventWaits;
use super::{Signal, Tx};
use crate::kernel::{Now, StoreError};

/// Jobs that may wait; more are refused with 503 rather than kept waiting past a client's patience.
pub const QUEUE_JOBS_MAX: usize = 8_192;
/// Connections of the embedded store that read at the same time.
pub const READERS_MAX: usize = 8;

/// Runs at the end of a group in which outbox rows were written: the sequencer.
pub type Epilogue = fn(&mut dyn Tx, &mut Now) -> Result<(), StoreError>;

/// For processes that leave the outbox to the one that sequences.
pub fn no_epilogue(_: &mut dyn Tx, _: &mut Now) -> Result<(), StoreError> {
    Ok(())
}

/// What happens after a commit: workers wake, and the log is written.
#[derive(Default)]
pub struct Signals {
    pub tasks: Notify,
    pub deliveries: DeliverySignals,
    pub look_ups: Notify,
    pub outbox: Notify,
    /// Whether the sequencer of this node works now; never on the embedded store.
    pub is_sequencing: watch::Sender<bool>,
    /// Requests that wait for an event.
    pub event_waits: Arc<EventWaits>,
}

impl Signals {
    pub(super) fn tell(&self, signal: Signal) {
        match signal {
            Signal::Tasks => self.tasks.notify_one(),
            Signal::DeliveriesOf(endpoint) => self.deliveries.tell_endpoint(endpoint),
            Signal::Deliveries => self.deliveries.tell(),
            Signal::LookUps => self.look_ups.notify_one(),
            Signal::Outbox => self.outbox.notify_one(),
            Signal::StatusChanged { id, from, to } => {
                tracing::info!(transfer = %id, from, to, "a transfer changed its status");
            }
            // What was decided can be read with the decision: `hundi decisions`.
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

/// Counters of the lane, for the metrics page.
#[derive(Default)]
pub struct LaneStats {
    /// Transactions that ended, also those that failed. On the embedded store each runs a group of
    /// jobs, on PostgreSQL one job.
    pub transactions: AtomicU64,
    /// The jobs of these transactions.
    pub jobs: AtomicU64,
    /// Those of the transactions that failed.
    pub transaction_failures: AtomicU64,
    /// How long the transactions took, from their beginning to the end of the commit.
    pub transaction_microseconds: AtomicU64,
    /// Groups that ran a second time, with savepoints, because one of their jobs had to be undone.
    pub groups_again: AtomicU64,
    /// Times that writing transactions waited for a server, statements that had to be prepared
    /// included.
    pub round_trips: AtomicU64,
    /// On the embedded store: the last commit that had anything to write failed. On PostgreSQL: the
    /// last attempt to connect or to raise the mark (`postgres/watch.rs`) did.
    pub is_failing: AtomicBool,
    /// Connections made to a server, reconnects included.
    pub connections_made: AtomicU64,
    /// How long writing transactions waited for a connection that was free.
    pub wait_microseconds: AtomicU64,
    /// Why writes do not succeed, for an operator, where the store knows.
    pub write_fault: Mutex<Option<String>>,
}

/// What became of a job's work, before the commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ran {
    /// Its effects are to stay.
    Keep,
    /// It was refused, or failed: its effects are to go and its answer stands.
    Undo,
    /// It met another transaction: a store with several writers runs it again.
    Again,
}

/// One transaction that waits for its turn.
pub(super) trait Job: Send {
    /// Runs the work; `Err` means that the store itself failed.
    fn run(&mut self, tx: &mut dyn Tx, now: &mut Now) -> Result<Ran, StoreError>;
    /// Whether running it once more after a commit of unknown outcome finds out what that was, and
    /// changes nothing twice.
    fn is_keyed(&self) -> bool;
    /// Lets the answer go: `Ok` after the commit, else the reason why nothing was kept.
    fn finish(self: Box<Self>, outcome: Result<(), StoreError>);
}

/// A read that waits for a connection of a store that is reached over a network.
pub(super) trait ReadJob: Send {
    /// Reads, and lets the answer go.
    fn run(self: Box<Self>, tx: &mut dyn Tx);
    /// There is no view to read.
    fn refuse(self: Box<Self>, error: StoreError);
}
