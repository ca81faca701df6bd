//! Housekeeping: addresses derived ahead, rows past their time removed a few at once, outbox rows
//! of other processes.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::app_state::AppState;
use crate::kernel::{Mode, Now, Scope, StoreError};
use crate::store::Cost;
use crate::store::{Signal, Tx, idempotency};
use crate::webhooks::worker as deliveries;
use crate::{events, keys};

/// Rows that one purge removes, so that it never stands long in the write lane.
const PURGED_ROWS_MAX: i64 = 500;
/// Accounts whose events are looked through in one transaction.
const ACCOUNTS_PURGED_MAX: i64 = 100;
const PURGE_SECONDS: u64 = 60;
/// Addresses derived before the thread lets others run.
const DERIVED_AT_ONCE: usize = 64;

/// Reserves derivation indices in the store and takes them over.
pub async fn reserve_addresses(app: &AppState) {
    let services = app.services.clone();
    let reserved = app.store.write(move |tx, _| {
        let due = services.all_ports().map(|ports| &ports.addresses);
        Ok(due
            .map(|pool| if pool.needs_indices() { pool.reserve(tx).map(Some) } else { Ok(None) })
            .collect::<Result<Vec<_>, _>>()?)
    });
    match reserved.await {
        Ok(ranges) => {
            for (ports, range) in app.services.all_ports().zip(ranges) {
                if let Some(indices) = range {
                    ports.addresses.restock(indices);
                }
            }
        }
        Err(failure) => {
            tracing::error!(?failure, "no deposit address indices could be reserved; tried again")
        }
    }
}

/// Derives the next batch of deposit addresses while the present one is used.
pub async fn derive_addresses(app: Arc<AppState>, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        if app.services.all_ports().any(|ports| ports.addresses.needs_indices()) {
            reserve_addresses(&app).await;
        }
        let (services, milliseconds) = (app.services.clone(), app.store.clock.milliseconds());
        let derive = move || {
            let waiting = services
                .all_ports()
                .filter(|ports| !ports.addresses.derive(DERIVED_AT_ONCE, milliseconds));
            waiting.count() == 0
        };
        let is_ahead = tokio::task::spawn_blocking(derive).await.unwrap_or(true);
        if is_ahead {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
                _ = stop.changed() => {}
            }
        }
    }
}

/// Removes answers, events and deliveries past their time, and sequences outbox rows that another
/// process wrote.
pub async fn purge(app: Arc<AppState>, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        let more = purge_once(&app).await;
        let wait = Duration::from_secs(if more { 0 } else { PURGE_SECONDS });
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = stop.changed() => {}
        }
    }
}

/// Removes some of each kind; answers whether there may be more. Each kind has a transaction of its
/// own, so that no number of accounts and no slow way to the store makes one too long.
pub async fn purge_once(app: &AppState) -> bool {
    let accounts_count =
        app.store.read(Cost::Point, |tx| Ok(keys::rows::accounts_count(tx)?)).await.unwrap_or(0);
    let mut is_more = purged(app, |tx, now| idempotency::purge(tx, now, PURGED_ROWS_MAX)).await;
    is_more |= purged(app, |tx, now| deliveries::purge(tx, now, PURGED_ROWS_MAX)).await;
    let mut next = 1;
    while next <= accounts_count {
        let numbers = next..(next + ACCOUNTS_PURGED_MAX).min(accounts_count + 1);
        next = numbers.end;
        let events = move |tx: &mut dyn Tx, now: &mut Now| {
            let mut removed = 0;
            for number in numbers.clone() {
                for mode in [Mode::Test, Mode::Live] {
                    let rows_left = PURGED_ROWS_MAX - removed as i64;
                    removed += events::rows::purge(tx, now, Scope::new(number, mode), rows_left)?;
                }
            }
            Ok(removed)
        };
        is_more |= purged(app, events).await;
    }
    is_more
}

/// Runs one purge; answers whether it removed as many rows as it may.
async fn purged(
    app: &AppState,
    mut remove: impl FnMut(&mut dyn Tx, &mut Now) -> Result<u64, StoreError> + Send + 'static,
) -> bool {
    match app.store.write(move |tx, now| Ok(remove(tx, now)?)).await {
        Ok(removed) => removed >= PURGED_ROWS_MAX as u64,
        Err(failure) => {
            tracing::error!(?failure, "rows past their time could not be removed; tried again");
            false
        }
    }
}

/// Sequences what commands such as `hundi decide` wrote beside the server, and what one commit
/// wrote beyond the events of one run.
pub async fn nudge_sequencer(app: Arc<AppState>, mut stop: watch::Receiver<bool>) {
    let mut last = None;
    while !*stop.borrow() {
        let first = app
            .store
            .read(Cost::Point, |tx| Ok(events::rows::outbox_first(tx)?))
            .await
            .unwrap_or(None);
        if first.is_some() {
            let signal = |tx: &mut dyn Tx, _: &mut Now| {
                tx.signal(Signal::Outbox);
                Ok(())
            };
            let nudged = app.store.write(signal).await;
            if let Err(failure) = nudged {
                tracing::error!(?failure, "the outbox could not be sequenced; tried again");
            }
        }
        // At once as long as it moves.
        let moves = first.is_some() && first != last;
        last = first;
        if moves {
            continue;
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(500)) => {}
            _ = stop.changed() => {}
        }
    }
}
