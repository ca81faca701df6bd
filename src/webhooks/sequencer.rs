//! The sequencer turns outbox rows into events, in the order in which they become visible.
//!
//! The embedded store calls [`sequence`] at the end of each group of transactions that wrote outbox
//! rows, inside the group's commit (`store/lane.rs`). On a store that several nodes write to,
//! [`run`] does the work. Only one node runs it at a time, and each of its transactions locks the
//! sequencer's lease. So identifiers rise from one commit to the next, whichever node mints them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::deliveries;
use super::fan_out::Subscribers;
use super::handover::{HandedDelivery, Handover};
use crate::app_state::AppState;
use crate::background::is_stopped;
use crate::background::leader::WorkerLease;
use crate::events;
use crate::events::rows::EventRow;
use crate::kernel::{Now, StoreError};
use crate::store::{Cost, Signal, Tx};

/// The most outbox rows that one run of the sequencer takes.
const SEQUENCED_MAX: i64 = 2_000;
/// The pause between two looks for outbox rows of other nodes.
const LOOK_MILLISECONDS: u64 = 20;
/// How long the sequencer waits after a run, so that the next run takes more rows. With fewer runs
/// there are fewer commits on the disk that requests also wait for.
const GATHER_MILLISECONDS: u64 = 5;
/// How long the sequencer pauses after an error of the store.
const ERROR_PAUSE_MILLISECONDS: u64 = 250;

/// Turns outbox rows into events with strictly rising identifiers, and makes their deliveries.
pub fn sequence(tx: &mut dyn Tx, now: &mut Now) -> Result<(), StoreError> {
    sequence_for(tx, now, Subscribers::default())
}

/// Like [`sequence`], but `subscribers` may hand deliveries over to the worker of this node.
pub fn sequence_for(
    tx: &mut dyn Tx,
    now: &mut Now,
    mut subscribers: Subscribers<'_>,
) -> Result<(), StoreError> {
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
    for (scope, event) in &sequenced {
        subscribers.fan_out(tx, now, *scope, event)?;
        tx.signal(Signal::Event(*scope));
    }
    subscribers.finish(tx)?;
    events::rows::remove_outbox(tx, &outbox)
}

/// Shows the delivery worker that the sequencer is at work, until this value is dropped.
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

/// Sequences until `stop`, and hands deliveries over to the worker of this node.
pub async fn run(
    app: Arc<AppState>,
    lease: WorkerLease,
    handover: Arc<Handover>,
    mut stop: watch::Receiver<bool>,
) {
    // The embedded store sequences in its own commits, and gives no lease.
    let Some(lease) = lease else { return };
    // A commit of this node signals new rows. Rows of other nodes are found by looking.
    let mut is_signalled = false;
    // Deliveries of runs that failed. Such a run may have been committed all the same.
    let mut unconfirmed = Vec::new();
    while !is_stopped(&stop) {
        let waiting = match is_signalled {
            true => Ok(true),
            false => {
                app.store
                    .read(Cost::Point, |tx| Ok(events::rows::outbox_first(tx)?.is_some()))
                    .await
            }
        };
        is_signalled = false;
        give_back(&app, &mut unconfirmed).await;
        let mut pause_milliseconds = LOOK_MILLISECONDS;
        match waiting {
            Ok(false) => {}
            Ok(true) => {
                let sequencing = Sequencing::begin(&app.store.signals.is_sequencing);
                let subscribing = handover.clone();
                let sequenced = app.store.write(move |tx, now| {
                    let subscribers = Subscribers::handed_over_by(&subscribing);
                    // The query is sent together with the lock, and runs once the lock is held.
                    events::rows::prefetch_outbox(tx, SEQUENCED_MAX)?;
                    if let Some(last) = lease.lock(tx)? {
                        now.mint_above(last.as_u128());
                    }
                    sequence_for(tx, now, subscribers)?;
                    Ok(lease.keep_last_id(tx, now.minter().last())?)
                });
                let sequenced = sequenced.await;
                match &sequenced {
                    Ok(()) => handover.hand_over(),
                    Err(_) => unconfirmed.extend(handover.take_unconfirmed()),
                }
                // From here on nothing may be handed over: a worker that stops waits for this.
                drop(sequencing);
                match sequenced {
                    Ok(()) => tokio::time::sleep(Duration::from_millis(GATHER_MILLISECONDS)).await,
                    Err(failure) => {
                        tracing::warn!(?failure, "the outbox could not be sequenced; trying again");
                        pause_milliseconds = ERROR_PAUSE_MILLISECONDS;
                    }
                }
            }
            Err(_) => pause_milliseconds = ERROR_PAUSE_MILLISECONDS,
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(pause_milliseconds)) => {}
            () = app.store.signals.outbox.notified() => is_signalled = true,
            _ = stop.changed() => {}
        }
    }
    give_back(&app, &mut unconfirmed).await;
}

/// Gives back deliveries that a failed run wrote as claimed: the worker does not know of them. If
/// the run was not committed, no delivery changes, and the worker only looks at the endpoint once
/// more. A delivery that cannot be given back is due again when its claim ends.
async fn give_back(app: &AppState, unconfirmed: &mut Vec<HandedDelivery>) {
    let now_milliseconds = app.store.clock.milliseconds();
    unconfirmed.retain(|delivery| delivery.lease_ends_milliseconds > now_milliseconds);
    if unconfirmed.is_empty() {
        return;
    }
    let claimed = unconfirmed.clone();
    let given_back = app.store.write(move |tx, _| {
        for delivery in &claimed {
            let claim = (delivery.due.clone(), delivery.lease_ends_milliseconds);
            deliveries::release(tx, delivery.endpoint_id, &[claim])?;
        }
        tx.signal(Signal::Deliveries);
        Ok(())
    });
    // An error of the store is not logged here, because the sequencer's next run meets it too.
    if given_back.await.is_ok() {
        unconfirmed.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequencer_that_is_cut_off_no_longer_counts_as_working() {
        let is_sequencing = watch::Sender::new(false);
        let sequencing = Sequencing::begin(&is_sequencing);
        assert!(*is_sequencing.borrow());
        drop(sequencing);
        assert!(!*is_sequencing.borrow());
    }
}
