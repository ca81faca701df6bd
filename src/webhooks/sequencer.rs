//! The sequencer of a store that several nodes write to: turns outbox rows into events, in the
//! order in which they become visible.
//!
//! One node at a time does it, and each of its transactions locks the lease, so that identifiers
//! rise from one commit to the next whoever mints them. The embedded store does the same at the end
//! of each group (`store/lane.rs`).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::fan_out::Subscribers;
use crate::app_state::AppState;
use crate::background::leader::WorkerLease;
use crate::events;
use crate::events::rows::EventRow;
use crate::kernel::{Now, StoreError};
use crate::store::{Cost, Signal, Tx};

/// Events that one run of the sequencer takes.
const SEQUENCED_MAX: i64 = 2_000;
/// How often the outbox is looked at for rows of other nodes.
const LOOK_MILLISECONDS: u64 = 20;
/// How long it lets rows gather after it sequenced some: its commits and those of requests wait for
/// the same disk.
const GATHER_MILLISECONDS: u64 = 5;
/// How long it rests after a fault of the store.
const FAULT_PAUSE_MILLISECONDS: u64 = 250;

/// Turns outbox rows into events with strictly rising identifiers, and into deliveries. On the
/// embedded store this runs at the end of every group that wrote outbox rows, inside its commit.
pub fn sequence(tx: &mut dyn Tx, now: &mut Now) -> Result<(), StoreError> {
    let outbox = events::rows::outbox(tx, SEQUENCED_MAX)?;
    let mut sequenced = Vec::with_capacity(outbox.len());
    for row in &outbox {
        let event = EventRow {
            id: now.mint(),
            event_type: row.event_type.clone(),
            linked: row.linked,
            created: row.created,
        };
        sequenced.push((row.scope, event));
    }
    events::rows::insert_all(tx, &sequenced)?;
    let mut subscribers = Subscribers::default();
    for (scope, event) in &sequenced {
        subscribers.fan_out(tx, now, *scope, event)?;
        tx.signal(Signal::Event(*scope));
    }
    subscribers.finish(tx)?;
    events::rows::remove_outbox(tx, &outbox)
}

/// Tells others that the sequencer works, until it is dropped.
struct Sequencing<'s>(&'s watch::Sender<bool>);

impl Sequencing<'_> {
    fn begin(is_sequencing: &watch::Sender<bool>) -> Sequencing<'_> {
        is_sequencing.send_replace(true);
        Sequencing(is_sequencing)
    }
}

impl Drop for Sequencing<'_> {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

/// Sequences until `stop`.
pub async fn run(app: Arc<AppState>, lease: WorkerLease, mut stop: watch::Receiver<bool>) {
    // The embedded store sequences in its own commits, and gives no lease.
    let Some(lease) = lease else { return };
    // A commit of this node says that there is something. For those of other nodes it has to look.
    let mut is_told = false;
    while !*stop.borrow() {
        let waiting = match is_told {
            true => Ok(true),
            false => {
                app.store
                    .read(Cost::Point, |tx| Ok(events::rows::outbox_first(tx)?.is_some()))
                    .await
            }
        };
        is_told = false;
        let mut pause = LOOK_MILLISECONDS;
        match waiting {
            Ok(false) => {}
            Ok(true) => {
                let sequencing = Sequencing::begin(&app.store.signals.is_sequencing);
                let sequenced = app.store.write(move |tx, now| {
                    // Goes to the server together with the lock, and is answered once that is held.
                    events::rows::prefetch_outbox(tx, SEQUENCED_MAX)?;
                    if let Some(last) = lease.lock(tx)? {
                        now.mint_above(last.as_u128());
                    }
                    sequence(tx, now)?;
                    Ok(lease.keep_last_id(tx, now.minter().last())?)
                });
                let sequenced = sequenced.await;
                drop(sequencing);
                match sequenced {
                    Ok(()) => tokio::time::sleep(Duration::from_millis(GATHER_MILLISECONDS)).await,
                    Err(failure) => {
                        tracing::warn!(?failure, "the outbox could not be sequenced; tried again");
                        pause = FAULT_PAUSE_MILLISECONDS;
                    }
                }
            }
            Err(_) => pause = FAULT_PAUSE_MILLISECONDS,
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(pause)) => {}
            () = app.store.signals.outbox.notified() => is_told = true,
            _ = stop.changed() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequencer_that_is_cut_off_does_not_work_any_more() {
        let is_sequencing = watch::Sender::new(false);
        let sequencing = Sequencing::begin(&is_sequencing);
        assert!(*is_sequencing.borrow());
        drop(sequencing);
        assert!(!*is_sequencing.borrow());
    }
}
