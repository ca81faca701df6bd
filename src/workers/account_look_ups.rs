//! Looks accounts up: claims the questions that are due, asks them outside any transaction, and
//! applies the answers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::watch;

use crate::account_verification::LookedUp;
use crate::background::is_stopped;
use crate::beneficiaries::look_ups::{self, Claimed, LEASE_MILLISECONDS, LookUp};
use crate::keys;
use crate::metrics::Reasons;
use crate::services::Services;
use crate::store::Cost;
use crate::store::Store;

/// The most questions under way at the same time. Few, to spare the service that answers them.
const ASKED_MAX: usize = 8;
/// The longest sleep, in case the worker missed a signal.
const WAIT_MILLISECONDS_MAX: i64 = 1_000;

/// Asks until `stop`. Questions that the stop interrupts are asked again later.
pub async fn run(
    store: Store,
    services: Arc<Services>,
    metrics: Reasons,
    mut stop: watch::Receiver<bool>,
) {
    if !store.is_shared() {
        // The database's lock proves that this is its only server, so leases of an earlier run
        // belong to nobody. On a shared store an earlier server may still be asking; its leases end
        // within 30 s.
        if let Err(failure) = store.write(|tx, now| Ok(look_ups::release_abandoned(tx, now)?)).await
        {
            tracing::error!(
                ?failure,
                "look-ups of an earlier run could not be released; their leases end within 30 s"
            );
        }
    }
    let mut asked = FuturesUnordered::new();
    while !is_stopped(&stop) {
        let free = ASKED_MAX - asked.len();
        let mut wait_milliseconds =
            if free == 0 { WAIT_MILLISECONDS_MAX } else { milliseconds_until_next(&store).await };
        if wait_milliseconds == 0 {
            let claiming = services.clone();
            match store
                .write(move |tx, now| Ok(look_ups::claim(tx, now, &claiming, free as i64)?))
                .await
            {
                Ok(claimed) => {
                    asked.extend(
                        claimed
                            .into_iter()
                            .map(|claimed| ask(&store, &services, &metrics, claimed)),
                    );
                    continue;
                }
                Err(failure) => {
                    tracing::error!(?failure, "due look-ups could not be taken; tried again");
                    wait_milliseconds = WAIT_MILLISECONDS_MAX;
                }
            }
        }
        tokio::select! {
            Some(()) = asked.next(), if !asked.is_empty() => {}
            () = tokio::time::sleep(Duration::from_millis(wait_milliseconds.unsigned_abs())) => {}
            () = store.signals.look_ups.notified() => {}
            _ = stop.changed() => {}
        }
    }
}

/// Milliseconds until the next question is due, or until the worker has to look again.
async fn milliseconds_until_next(store: &Store) -> i64 {
    match store.read(Cost::Point, |tx| Ok(look_ups::next_due_milliseconds(tx)?)).await {
        Ok(Some(due_milliseconds)) => {
            (due_milliseconds - store.clock.milliseconds()).clamp(0, WAIT_MILLISECONDS_MAX)
        }
        _ => WAIT_MILLISECONDS_MAX,
    }
}

/// Asks one question and applies the answer. If the answer cannot be stored, the question is asked
/// again once its lease has ended.
async fn ask(store: &Store, services: &Arc<Services>, metrics: &Reasons, claimed: Claimed) {
    let LookUp { scope, beneficiary_id, attempts_count, .. } = claimed.look_up;
    let outcome = match services.ports(scope.mode()) {
        Ok(ports) => {
            // The deadline is before the end of the lease, because the question may be asked again
            // once the lease has ended.
            let deadline = Duration::from_millis(LEASE_MILLISECONDS.unsigned_abs() - 5_000);
            let late = LookedUp::Unanswered { reason: "deadline", retry_after_seconds: None };
            tokio::time::timeout(deadline, ports.accounts.look_up(&claimed.question))
                .await
                .unwrap_or(late)
        }
        Err(_) => LookedUp::Unanswered { reason: "not_configured", retry_after_seconds: None },
    };
    match &outcome {
        LookedUp::Answered(_) | LookedUp::Named { .. } => metrics.count("answered"),
        LookedUp::Unanswered { reason, .. } => {
            metrics.count(reason);
            // Only the first failure and every tenth after it are logged. The metric counts all.
            if attempts_count % 10 == 0 {
                tracing::warn!(beneficiary = %beneficiary_id, reason, attempts = attempts_count + 1,
                    "an account could not be looked up; tried again");
            }
        }
    }
    let services = services.clone();
    let written = store
        .write(move |tx, now| {
            now.enter_account(keys::rows::clock_offset_seconds(tx, scope)?);
            Ok(look_ups::finish(tx, now, &services, &claimed.look_up, &outcome)?)
        })
        .await;
    if let Err(failure) = written {
        tracing::error!(?failure, beneficiary = %beneficiary_id, "a look-up could not be written \
         down; it is asked again");
    }
}
