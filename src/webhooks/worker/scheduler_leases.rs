//! The scheduler's part in leases of queues: which deliveries this node holds under one, and which
//! leases it has.

use super::scheduler::Scheduler;
use crate::webhooks::rows::{DeliveryId, EndpointId};

impl Scheduler {
    /// Notes that an attempt under the lease of a queue is recorded, or never will be.
    pub(super) fn forget_held(&mut self, endpoint_id: EndpointId, delivery: (DeliveryId, i64)) {
        let Some(endpoint) = self.endpoints.get_mut(&endpoint_id) else { return };
        let was_last = endpoint.held.remove(&delivery) && endpoint.held.is_empty();
        if was_last && !endpoint.has_due {
            // The next turn reads the endpoint, and releases the lease.
            self.stale_endpoints.push(endpoint_id);
        }
    }

    /// Forgets the leases of queues that this node has, and answers their endpoints. With
    /// `idle_only`, the leases of endpoints with a running attempt stay.
    pub(super) fn drain_leases(&mut self, idle_only: bool) -> Vec<EndpointId> {
        let endpoints = self.endpoints.iter_mut();
        let drained = endpoints.filter(|(_, endpoint)| !idle_only || endpoint.running_count == 0);
        drained
            .filter_map(|(endpoint_id, endpoint)| {
                endpoint.queue_lease_ends_milliseconds.take().map(|_| *endpoint_id)
            })
            .collect()
    }
}
