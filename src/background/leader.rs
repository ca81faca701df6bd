//! Runs a worker on one node at a time where several nodes share a database. The others stand by
//! and take over when its lease ends.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::{Stop, is_stopped};
use crate::app_state::AppState;
use crate::store::lease::{HEARTBEAT_MILLISECONDS, LEASE_MILLISECONDS, Lease};

/// The lease that a worker runs under; `None` for a worker that needs no lease, and on the embedded
/// store.
pub type WorkerLease = Option<Lease>;

/// Runs `work`, which needs no lease, until it ends, and starts it again after a panic.
pub async fn run_again<F>(name: &'static str, mut stop: Stop, work: impl Fn(Stop, WorkerLease) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    // In a Tokio task of its own, so that a panic ends nothing else.
    while tokio::spawn(work(stop.clone(), None)).await.is_err() {
        tracing::error!(worker = name, "a worker panicked; it is started again");
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(HEARTBEAT_MILLISECONDS)) => {}
            _ = stop.changed() => {}
        }
        if is_stopped(&stop) {
            return;
        }
    }
}

/// Runs `work` while this node holds the lease, until `stop`.
///
/// On a shared store the lease is released when `work` ends, and the node that takes it next starts
/// `work` again; this node tries after a heartbeat. On the embedded store there are no leases, and
/// `work` is started again only after a panic.
pub async fn run_as_leader<F>(
    app: Arc<AppState>,
    name: &'static str,
    mut stop: Stop,
    work: impl Fn(Stop, WorkerLease) -> F + Send,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let heartbeat = Duration::from_millis(HEARTBEAT_MILLISECONDS);
    if !app.store.is_shared() {
        return run_again(name, stop, work).await;
    }
    while !is_stopped(&stop) {
        let holder = app.node_id;
        let asked = Instant::now();
        let taken = app.store.write(move |tx, now| Ok(Lease::take(tx, now, name, holder)?)).await;
        let Ok(Some(lease)) = taken else {
            // Another node holds the lease, or the store failed. Neither is logged here: when the
            // store fails, the workers that run say so.
            tokio::select! {
                () = tokio::time::sleep(heartbeat) => {}
                _ = stop.changed() => {}
            }
            continue;
        };
        app.metrics.lease_held(name, true);
        tracing::info!(lease = name, "this node took over");
        let (end, ending) = watch::channel(false);
        let mut running = tokio::spawn(work(ending, Some(lease)));
        let mut held_until = asked + Duration::from_millis(LEASE_MILLISECONDS as u64);
        // Whether the work ended by itself.
        let has_ended = loop {
            tokio::select! {
                () = tokio::time::sleep(heartbeat) => {}
                _ = stop.changed() => break false,
                ended = &mut running => {
                    if ended.is_err() {
                        tracing::error!(
                            lease = name,
                            "a worker panicked; the node that takes its lease next starts it again"
                        );
                    }
                    break true;
                }
            }
            let asked = Instant::now();
            // A renewal that hangs must not outlast the lease.
            let renewed = tokio::time::timeout_at(
                held_until,
                app.store.write(move |tx, now| Ok(lease.renew(tx, now)?)),
            )
            .await;
            match renewed {
                Ok(Ok(true)) => {
                    held_until = asked + Duration::from_millis(LEASE_MILLISECONDS as u64)
                }
                Ok(Ok(false)) => {
                    tracing::warn!(lease = name, "another node took over; the worker stops here");
                    break false;
                }
                Ok(Err(_)) if Instant::now() + heartbeat < held_until => {}
                Ok(Err(_)) | Err(_) => {
                    tracing::warn!(
                        lease = name,
                        "the lease could not be renewed; the worker stops on this node"
                    );
                    break false;
                }
            }
        };
        let _ = end.send(true);
        if !has_ended && running.await.is_err() {
            tracing::error!(lease = name, "a worker panicked");
        }
        app.metrics.lease_held(name, false);
        // Release the lease, so that the next node need not wait for it to end.
        let _ = app.store.write(move |tx, _| Ok(lease.release(tx)?)).await;
        if has_ended {
            tokio::select! {
                () = tokio::time::sleep(heartbeat) => {}
                _ = stop.changed() => {}
            }
        }
    }
}
