//! Wakes requests on this node that wait for events which another node sequenced.
//!
//! The node that sequences wakes its own requests at each commit. Every node with waiting requests
//! polls one row: the last identifier that the sequencer stored with its lease. While that
//! identifier stays the same and no other account begins to wait, the node need not read the newest
//! event of each waiting account.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::rows;
use crate::app_state::AppState;
use crate::background::{Stop, is_stopped};
use crate::kernel::Scope;
use crate::store::{Cost, failpoint, lease};

/// The name of the lease under which the sequencer and the delivery worker run.
pub const SEQUENCER_LEASE: &str = "events";
/// How often a node polls while a request waits.
const LOOK_MILLISECONDS: u64 = 20;
/// How long a node pauses after an error of the store.
const ERROR_PAUSE_MILLISECONDS: u64 = 250;

/// Watches until `stop`. On the embedded store there is nothing to watch, because this process
/// sequences every event itself.
pub async fn run(app: Arc<AppState>, mut stop: Stop) {
    let waits = app.store.signals.event_waits.clone();
    let mut last_known = None;
    // The accounts of the last look. If another account waits now, its newest event has to be read
    // even if no event is new.
    let mut scopes_known: HashSet<Scope> = HashSet::new();
    // Planted fault: without watching, the test of waits on several nodes must fail.
    let is_watching = app.store.is_shared() && !failpoint("blind_to_other_nodes");
    while is_watching && !is_stopped(&stop) {
        let scopes = waits.scopes();
        if scopes.is_empty() {
            last_known = None;
            tokio::select! {
                () = waits.begun() => {}
                _ = stop.changed() => {}
            }
            continue;
        }
        let are_known = scopes.iter().all(|scope| scopes_known.contains(scope));
        scopes_known = scopes.iter().copied().collect();
        let looked = app.store.read(Cost::Point, move |tx| {
            let last = lease::last_id(tx, SEQUENCER_LEASE)?;
            let is_same = are_known && last_known.is_some() && last == last_known;
            Ok((last, if is_same { Vec::new() } else { rows::newest(tx, &scopes)? }))
        });
        let mut pause_milliseconds = LOOK_MILLISECONDS;
        match looked.await {
            Ok((last, newest)) => {
                last_known = last;
                waits.tell_newest(&newest);
            }
            Err(_) => {
                scopes_known.clear();
                pause_milliseconds = ERROR_PAUSE_MILLISECONDS;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(pause_milliseconds)) => {}
            _ = stop.changed() => {}
        }
    }
}
