//! Runs the chain audit once a day, and shows the result in the metrics.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;

use super::{AuditExtent, AuditSummary, run_once};
use crate::app_state::AppState;
use crate::background::is_stopped;
use crate::chains::followed::FollowedChain;
use crate::chains::rows::{self, AuditMark};
use crate::kernel::OperationError;
use crate::reconcile::chain as differences;
use crate::store::{Cost, Store, Tx};

/// How long after the end of a complete audit the next one is due.
const AUDIT_EVERY_SECONDS: i64 = 24 * 3600;
/// How long after the beginning of a failed audit it is tried again.
const RETRY_SECONDS: i64 = 600;
/// How often the worker checks whether an audit is due.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Copies the audit's progress from the store into the metrics. Answers the mark and the number of
/// open differences; `None` if the chain was never followed.
async fn update_metrics(
    store: &Store,
    chain: &FollowedChain,
) -> Result<Option<(AuditMark, i64)>, OperationError> {
    let (mode, name) = (chain.mode, chain.settings.name);
    let read = move |tx: &mut dyn Tx| {
        Ok((rows::audit_mark(tx, mode, name)?, differences::rows::open_count(tx, mode, name)?))
    };
    let (mark, count) = store.read(Cost::Point, read).await?;
    let Some(mark) = mark else { return Ok(None) };
    chain.stats.audited_height.store(mark.anchor.height, Ordering::Relaxed);
    chain.stats.audited_at.store(mark.completed_milliseconds / 1000, Ordering::Relaxed);
    chain.stats.differences.store(count, Ordering::Relaxed);
    Ok(Some((mark, count)))
}

/// Runs the audit once a day until `stop`, and logs how many differences there are.
pub async fn run(app: Arc<AppState>, chain: Arc<FollowedChain>, mut stop: watch::Receiver<bool>) {
    let name = chain.settings.name.as_str();
    let mut tried_at = i64::MIN;
    while !is_stopped(&stop) {
        let now = app.store.clock.milliseconds() / 1000;
        let known = update_metrics(&app.store, &chain).await;
        let is_due = match &known {
            Ok(Some((mark, _))) => {
                now >= mark.completed_milliseconds / 1000 + AUDIT_EVERY_SECONDS
                    && now >= tried_at.saturating_add(RETRY_SECONDS)
            }
            Ok(None) => false,
            Err(failure) => {
                tracing::error!(
                    ?failure,
                    "the progress of the chain audit cannot be read; tried again"
                );
                false
            }
        };
        if is_due {
            tried_at = now;
            let compared = tokio::select! {
                compared = run_once(&app.store, &chain, AuditExtent::default()) => compared,
                _ = stop.changed() => break,
            };
            match (compared, update_metrics(&app.store, &chain).await) {
                (Ok(_), Ok(Some((_, count)))) if count > 0 => {
                    tracing::error!(
                        chain = name,
                        count,
                        "the book differs from the chain: `hundi reconcile` names each difference"
                    );
                }
                (Ok(compared), Ok(_)) => {
                    let AuditSummary { movements_count, refunds_count, addresses_count, .. } =
                        compared;
                    tracing::info!(
                        chain = name,
                        movements_count,
                        refunds_count,
                        addresses_count,
                        "the book agrees with the chain"
                    );
                }
                (Err(fault), _) => {
                    tracing::error!(chain = name, %fault, "the book could not be compared with \
                     the chain; tried again")
                }
                (_, Err(failure)) => {
                    tracing::error!(
                        ?failure,
                        "the differences of the chain audit cannot be read; tried again"
                    )
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            _ = stop.changed() => {}
        }
    }
    // Another process may run the audit from here on, and this process's figure would go stale.
    chain.stats.audited_at.store(0, Ordering::Relaxed);
}
