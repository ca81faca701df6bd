//! How the delivery worker stops: it gives back claims, waits for running attempts and records
//! them, and gives back the leases of queues.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::turn;
use super::{ATTEMPTS_WRITTEN_MAX, DeliveryWorker, StepResult};
use crate::webhooks::deliveries;
use crate::webhooks::queue_leases;
use crate::webhooks::sending::attempt::TOTAL_SECONDS_MAX;

/// How long a stopping worker waits for steps and attempts that run, in seconds: a little longer
/// than an attempt can take if no chaos profile sends its delivery twice.
const STOP_SECONDS_MAX: u64 = TOTAL_SECONDS_MAX + 1;

impl DeliveryWorker {
    /// Gives back claims, then waits for running attempts and records them. Once the lease of a
    /// queue is given back, another node sends all that is not recorded. So before the wait, the
    /// worker gives back only the leases of endpoints without a running attempt. It gives back the
    /// other leases when all attempts have ended, or when [`STOP_SECONDS_MAX`] are over. A claim
    /// that cannot be given back ends by itself.
    pub(super) async fn finish(mut self) {
        let deadline = Instant::now() + Duration::from_secs(STOP_SECONDS_MAX);
        self.handover.close();
        for step in [self.step.take(), self.backlog_step.take()].into_iter().flatten() {
            if let Ok(step) = timeout_at(deadline, step).await
                && matches!(step, StepResult::Turned { .. })
            {
                self.note_step(step);
            }
        }
        // The sequencer's running transaction may still hand deliveries over.
        let sequenced = self.sequencing.wait_for(|is_sequencing| !is_sequencing);
        let _ = timeout_at(deadline, sequenced).await;
        self.take_handed();
        self.release_claims().await;
        if self.scheduler.leases_queues {
            self.record_finished().await;
            self.release_queues(true).await;
        }
        while self.scheduler.running_count() > 0 {
            let Ok(Some(report)) = timeout_at(deadline, self.reports.recv()).await else { break };
            self.note_reports(report);
            if self.finished.len() >= ATTEMPTS_WRITTEN_MAX {
                self.record_finished().await;
            }
        }
        self.record_finished().await;
        self.release_queues(false).await;
        let attempts = self.scheduler.running_count();
        if attempts > 0 {
            tracing::warn!(
                attempts,
                "webhook attempts were cut off by the stop; they are made again within a minute"
            );
        }
    }

    async fn release_claims(&mut self) {
        let claimed = self.scheduler.drain_taken();
        if claimed.is_empty() {
            return;
        }
        let released = self
            .app
            .store
            .write(move |tx, _| {
                for (endpoint_id, of_endpoint) in &claimed {
                    deliveries::release(tx, *endpoint_id, of_endpoint)?;
                }
                Ok(())
            })
            .await;
        if let Err(failure) = released {
            tracing::error!(
                ?failure,
                "cannot give back claimed webhook deliveries; they are sent within a minute"
            );
        }
    }

    /// Gives back leases of queues. With `idle_only`, those of endpoints with a running attempt
    /// stay.
    async fn release_queues(&mut self, idle_only: bool) {
        let (endpoint_ids, holder) = (self.scheduler.drain_leases(idle_only), self.app.node_id);
        if endpoint_ids.is_empty() {
            return;
        }
        let released = self.app.store.write(move |tx, _| {
            for endpoint_id in &endpoint_ids {
                queue_leases::release(tx, *endpoint_id, holder)?;
            }
            Ok(())
        });
        if let Err(failure) = released.await {
            tracing::error!(
                ?failure,
                "cannot give back webhook deliveries of a backlog; they are sent within a minute"
            );
        }
    }

    async fn record_finished(&mut self) {
        while !self.finished.is_empty() {
            let finished = Arc::new(self.finished.take_any(ATTEMPTS_WRITTEN_MAX));
            let app = self.app.clone();
            let turn = turn::run(app, Vec::new(), finished, self.clock_milliseconds).await;
            if let Err(failure) = turn.outcome {
                tracing::error!(
                    ?failure,
                    "cannot record finished webhook attempts; they are made again"
                );
                return;
            }
        }
    }
}
