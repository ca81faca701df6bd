//! What the scheduler knows of this node's leases of queues, beside what is due and sent.

use super::scheduler::Scheduler;
use crate::webhooks::rows::{DeliveryId, EndpointId};

impl Scheduler {
    /// Notes that an attempt under the lease of a queue is recorded, or never will be.
    pub(super) fn held_no_more(&mut self, endpoint_id: EndpointId, delivery: (DeliveryId, i64)) {
        let Some(lane) = self.lanes.get_mut(&endpoint_id) else { return };
        let was_last = lane.held.remove(&delivery) && lane.held.is_empty();
        if was_last && !lane.has_due {
            // So that the lease is released.
            self.stale_lanes.push(endpoint_id);
        }
    }

    /// Endpoints of whose queues this node has the lease; if `idle_only`, those of which no attempt
    /// runs. They are forgotten.
    pub(super) fn drain_leases(&mut self, idle_only: bool) -> Vec<EndpointId> {
        let lanes = self.lanes.iter_mut();
        let drained = lanes.filter(|(_, lane)| !idle_only || lane.running_count == 0);
        drained
            .filter_map(|(endpoint_id, lane)| {
                lane.queue_lease_ends_milliseconds.take().map(|_| *endpoint_id)
            })
            .collect()
    }
}
