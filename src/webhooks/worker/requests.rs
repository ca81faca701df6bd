//! What the scheduler asks about one endpoint, what a turn then reads in the store, and what it
//! writes.

use std::sync::Arc;

use super::target::DeliveryTarget;
use crate::kernel::Scope;
use crate::webhooks::deliveries::DueDelivery;
use crate::webhooks::queue_leases::{HeldDeliveries, LeaseStep};
use crate::webhooks::rows::{DeliveryId, EndpointId};
use crate::webhooks::schedule::EndpointHealth;

/// A request for deliveries of one endpoint.
pub(super) struct TakeRequest {
    pub(super) endpoint_id: EndpointId,
    pub(super) scope: Scope,
    /// How many deliveries to take. With 0 the turn takes none: it reads the target again and looks
    /// after the lease of the queue.
    pub(super) count: usize,
    /// Only deliveries after this one (due time and identifier), in the order in which they became
    /// due.
    pub(super) after: Option<(i64, DeliveryId)>,
    /// The target as it was last read. The turn uses it again if the endpoint has not changed.
    pub(super) known_target: Option<Arc<DeliveryTarget>>,
    /// What this node took under a lease of the queue and has not recorded.
    pub(super) held: HeldDeliveries,
    /// Whether a backlog may be taken under a lease of the queue.
    pub(super) may_lease: bool,
}

/// What a turn read about one endpoint.
pub(super) struct EndpointReading {
    pub(super) endpoint_id: EndpointId,
    /// How many deliveries the request asked for.
    pub(super) requested_count: usize,
    /// `None` if the endpoint is deleted, or if `is_broken`.
    pub(super) target: Option<Arc<DeliveryTarget>>,
    /// The endpoint's rows cannot be read, so it is left out for a while.
    pub(super) is_broken: bool,
    pub(super) health: EndpointHealth,
    /// Deliveries to send.
    pub(super) due: Vec<DueDelivery>,
    /// Nothing is due but the deliveries that are listed here: the read began at the first due one
    /// and reached the last. This says nothing if no deliveries were requested.
    pub(super) is_drained: bool,
    /// The due time and identifier of the last delivery that was read; `None` if nothing is due
    /// after it.
    pub(super) last_read: Option<(i64, DeliveryId)>,
    /// Due deliveries that become `recorded`, because their schedules began before the endpoint was
    /// disabled.
    pub(super) recorded: Vec<DueDelivery>,
    /// Due deliveries whose event has expired.
    pub(super) expired: Vec<DueDelivery>,
    /// The deliveries of [`TakeRequest::held`], which the read left out.
    pub(super) held: HeldDeliveries,
    /// What to do about the lease of the queue.
    pub(super) lease_step: LeaseStep,
    /// The deliveries in `due` are taken under that lease, and not claimed.
    pub(super) is_under_queue_lease: bool,
    /// Another node has the lease, so no deliveries were read.
    pub(super) is_excluded: bool,
}

/// What a turn wrote about one endpoint.
#[derive(Clone, Default)]
pub(super) struct EndpointWrites {
    /// For each delivery in [`EndpointReading::due`] whether this node took it, by a claim or under
    /// the lease of the queue.
    pub(super) taken: Vec<bool>,
    /// When the lease of the queue ends, by the store's clock, if this node has it.
    pub(super) queue_lease_ends_milliseconds: Option<i64>,
}

impl EndpointReading {
    pub(super) fn empty(request: &TakeRequest) -> EndpointReading {
        EndpointReading {
            endpoint_id: request.endpoint_id,
            requested_count: request.count,
            target: None,
            is_broken: false,
            health: EndpointHealth { first_failure_milliseconds: None, failures_count: 0 },
            due: Vec::new(),
            is_drained: true,
            last_read: None,
            recorded: Vec::new(),
            expired: Vec::new(),
            held: request.held.clone(),
            lease_step: LeaseStep::Keep(None),
            is_under_queue_lease: false,
            is_excluded: false,
        }
    }

    /// Whether the turn may take deliveries of the endpoint: the request asked for some, the
    /// endpoint exists, and no other node has the lease of its queue.
    pub(super) const fn may_take(&self) -> bool {
        self.requested_count > 0 && self.target.is_some() && !self.is_excluded
    }

    /// Whether the turn has something to write about the endpoint.
    pub(super) fn has_writes(&self) -> bool {
        let has_step = !matches!(self.lease_step, LeaseStep::Keep(_));
        let has_ended = !self.recorded.is_empty() || !self.expired.is_empty();
        let has_claims = !self.is_under_queue_lease && !self.due.is_empty();
        has_step || (self.may_take() && (has_ended || has_claims || self.is_drained))
    }
}
