//! What runs in the background: each worker is a value in one list (`app.rs`), started and stopped
//! in one way.

pub mod leader;

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::app_state::AppState;
use leader::WorkerLease;

/// Becomes true when the worker has to stop, because the process stops or because this node no
/// longer holds the worker's lease. The worker then has to end soon.
pub type Stop = watch::Receiver<bool>;

/// Whether the worker has to stop. It has to stop also if the channel's sender was dropped: each
/// wait for a change would then end at once, and the worker's loop would never pause again.
pub fn is_stopped(stop: &Stop) -> bool {
    *stop.borrow() || stop.has_changed().is_err()
}

type RunWorker = Box<dyn Fn(Stop, WorkerLease) -> BoxFuture<'static, ()> + Send + Sync>;

/// Where a worker runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunsOn {
    /// On every node, whichever its setting `role` is: `serve`, `work` or `all`.
    EveryNode,
    /// On every node that takes requests: those with the role `serve` or `all`.
    Servers,
    /// On one of the nodes with the role `work` or `all`: the one that holds the lease with the
    /// worker's name. On an embedded store that is the only process, without a lease.
    Leader,
    /// On the only process of an embedded store.
    Embedded,
}

pub struct Worker {
    /// Also the name of its lease.
    pub name: &'static str,
    pub runs_on: RunsOn,
    run: RunWorker,
}

impl Worker {
    /// A worker that needs no lease.
    pub fn new<F>(
        name: &'static str,
        runs_on: RunsOn,
        run: impl Fn(Stop) -> F + Send + Sync + 'static,
    ) -> Worker
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Worker { name, runs_on, run: Box::new(move |stop, _| run(stop).boxed()) }
    }
    /// A worker that runs on one node at a time.
    pub fn leading<F>(
        name: &'static str,
        run: impl Fn(Stop, WorkerLease) -> F + Send + Sync + 'static,
    ) -> Worker
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Worker {
            name,
            runs_on: RunsOn::Leader,
            run: Box::new(move |stop, lease| run(stop, lease).boxed()),
        }
    }

    /// Starts the worker if it runs on this node. By the node's role, `takes_requests` says whether
    /// the node takes requests, and `may_lead` whether workers of [`RunsOn::Leader`] may run on it.
    pub fn start(
        self,
        app: &Arc<AppState>,
        takes_requests: bool,
        may_lead: bool,
        stop: &Stop,
    ) -> Option<JoinHandle<()>> {
        let (stop, run) = (stop.clone(), self.run);
        match self.runs_on {
            RunsOn::EveryNode => Some(tokio::spawn(leader::run_again(self.name, stop, run))),
            RunsOn::Servers if takes_requests => {
                Some(tokio::spawn(leader::run_again(self.name, stop, run)))
            }
            RunsOn::Embedded if may_lead && !app.store.is_shared() => {
                Some(tokio::spawn(leader::run_again(self.name, stop, run)))
            }
            RunsOn::Leader if may_lead => {
                Some(tokio::spawn(leader::run_as_leader(app.clone(), self.name, stop, run)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_worker_that_panics_is_started_again() {
        let starts = Arc::new(AtomicUsize::new(0));
        let counted = starts.clone();
        let (_end, stop) = watch::channel(false);
        let run: RunWorker = Box::new(move |_, _| {
            let start = counted.fetch_add(1, Ordering::Relaxed);
            async move { assert!(start > 0, "the first start panics") }.boxed()
        });
        leader::run_again("tests", stop, run).await;
        assert_eq!(starts.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_dropped_channel_sender_stops_a_worker() {
        let (end, stop) = watch::channel(false);
        assert!(!is_stopped(&stop));
        end.send_replace(true);
        assert!(is_stopped(&stop));
        let (end, stop) = watch::channel(false);
        drop(end);
        assert!(is_stopped(&stop));
    }

    #[tokio::test]
    async fn a_worker_that_nobody_can_stop_is_not_started_again() {
        let starts = Arc::new(AtomicUsize::new(0));
        let counted = starts.clone();
        let (end, stop) = watch::channel(false);
        drop(end);
        let run: RunWorker = Box::new(move |_, _| {
            let start = counted.fetch_add(1, Ordering::Relaxed);
            async move { assert!(start > 0, "the first start panics") }.boxed()
        });
        leader::run_again("tests", stop, run).await;
        assert_eq!(starts.load(Ordering::Relaxed), 1);
    }
}
