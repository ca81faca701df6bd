//! What the scheduler asks the store about one endpoint, and the answer.

use std::sync::Arc;

use super::target::DeliveryTarget;
use crate::kernel::Scope;
use crate::webhooks::deliveries::DueDelivery;
use crate::webhooks::queue_leases::{Held, LeaseStep};
use crate::webhooks::rows::{DeliveryId, EndpointId};
use crate::webhooks::schedule::EndpointHealth;

/// A request for deliveries of one endpoint.
pub(super) struct ClaimRequest {
    pub(super) endpoint_id: EndpointId,
    pub(super) scope: Scope,
    /// Deliveries to claim; 0 only reads the target again.
    pub(super) count: usize,
    /// Only deliveries after this one, in the order in which they became due.
    pub(super) behind: Option<(i64, DeliveryId)>,
    pub(super) known: Option<Arc<DeliveryTarget>>,
    /// What this node took under a lease of the queue and has not recorded.
    pub(super) held: Held,
    /// Whether a backlog is taken under a lease of the queue.
    pub(super) may_lease: bool,
}

/// What the store said about one endpoint.
pub(super) struct EndpointReading {
    pub(super) endpoint_id: EndpointId,
    pub(super) requested_count: usize,
    /// `None` if the endpoint is deleted.
    pub(super) target: Option<Arc<DeliveryTarget>>,
    /// Its rows cannot be read, so it is left out for a while.
    pub(super) is_broken: bool,
    pub(super) health: EndpointHealth,
    pub(super) due: Vec<DueDelivery>,
    /// It is certain that nothing else is due: the reading began at the first delivery and reached
    /// the last.
    pub(super) is_drained: bool,
    /// The last delivery that was read, unless nothing is due after it.
    pub(super) read_until: Option<(i64, DeliveryId)>,
    /// Due, but only to be recorded: the endpoint was disabled after their schedules had begun.
    pub(super) recorded: Vec<DueDelivery>,
    /// Due, but the event has expired.
    pub(super) expired: Vec<DueDelivery>,
    /// Those that were left out of the reading.
    pub(super) held: Held,
    /// What to do about the lease of the queue.
    pub(super) lease_step: LeaseStep,
    /// What is due is taken under that lease, and not claimed.
    pub(super) is_leased: bool,
    /// Another node has the lease, so nothing was read.
    pub(super) is_excluded: bool,
}

/// What a turn wrote about one endpoint.
#[derive(Clone, Default)]
pub(super) struct EndpointClaims {
    /// For each due delivery whether it was claimed, or taken under the lease of the queue.
    pub(super) claimed: Vec<bool>,
    /// When the lease of the queue ends, if this node has it.
    pub(super) queue_lease_ends_milliseconds: Option<i64>,
}

impl EndpointReading {
    pub(super) fn empty(request: &ClaimRequest) -> EndpointReading {
        EndpointReading {
            endpoint_id: request.endpoint_id,
            requested_count: request.count,
            target: None,
            is_broken: false,
            health: EndpointHealth { first_failure_milliseconds: None, failures_count: 0 },
            due: Vec::new(),
            is_drained: true,
            read_until: None,
            recorded: Vec::new(),
            expired: Vec::new(),
            held: request.held.clone(),
            lease_step: LeaseStep::Keep(None),
            is_leased: false,
            is_excluded: false,
        }
    }

    pub(super) const fn has_claims(&self) -> bool {
        self.requested_count > 0 && self.target.is_some() && !self.is_excluded
    }

    /// Whether the turn has something to write about it.
    pub(super) fn has_writes(&self) -> bool {
        let has_step = !matches!(self.lease_step, LeaseStep::Keep(_));
        let has_ended = !self.recorded.is_empty() || !self.expired.is_empty();
        let has_due = !self.is_leased && !self.due.is_empty();
        has_step || (self.has_claims() && (has_ended || has_due || self.is_drained))
    }
}
