//! Leases of queues. On a store that several nodes share, the node that sends the backlog of a
//! working endpoint takes a lease of the endpoint's queue. Then it sends deliveries of the backlog
//! without claiming each of them, because a claim writes every index entry of the delivery's row
//! again.
//!
//! A delivery that is sent under such a lease keeps its due time. So the node remembers what it
//! took ([`HeldDeliveries`]), and does not take it again. The result of an attempt is recorded if
//! the lease in the queue's row is still this node's, even if it has ended, and the delivery still
//! has its due time. When the lease ends, another node finds all that is still due.

use std::collections::HashSet;

use super::rows::{self, DeliveryId, EndpointId};
use crate::kernel::{Now, StoreError};
use crate::store::{self, Tx};

/// Identifies the process that has a lease: a random number that it draws when it starts.
pub type QueueHolder = [u8; 16];

/// Deliveries that were taken under the lease of their queue and whose attempts are not recorded
/// yet, each with its due time in milliseconds.
pub type HeldDeliveries = HashSet<(DeliveryId, i64)>;

/// How long a lease lasts after it is taken or renewed, in milliseconds: as long as the claim of a
/// delivery.
const LEASE_MILLISECONDS: i64 = 45_000;
/// A turn of the delivery worker takes due deliveries and records finished attempts. It renews a
/// lease of which less than this is left, in milliseconds.
const RENEWED_BELOW_MILLISECONDS: i64 = 30_000;
/// Another node's lease counts only if it ends within this time, in milliseconds. Only a wrong
/// clock can have written a later end.
const AHEAD_MILLISECONDS_MAX: i64 = 2 * LEASE_MILLISECONDS;

/// Failpoint: the node knows of no leases of queues, like releases before 0.2.0.
pub const LEASES_UNKNOWN: &str = "leases_of_queues_are_unknown";
/// Failpoint: the node takes leases that other nodes have.
const LEASES_TAKEN: &str = "leases_of_queues_are_taken";

/// A lease as the row of its queue has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueLease {
    pub holder: QueueHolder,
    pub ends_milliseconds: i64,
}

impl QueueLease {
    /// Whether the lease keeps the node `node_id` from sending what is due.
    pub fn excludes(&self, node_id: QueueHolder, now_milliseconds: i64) -> bool {
        let left_milliseconds = self.ends_milliseconds.saturating_sub(now_milliseconds);
        self.holder != node_id
            && (1..=AHEAD_MILLISECONDS_MAX).contains(&left_milliseconds)
            && ![LEASES_UNKNOWN, LEASES_TAKEN].into_iter().any(store::failpoint)
    }
}

/// What a turn does with the lease of one queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaseStep {
    /// Changes nothing. The node has the lease until this moment, in milliseconds; `None` if it has
    /// no lease and needs none.
    Keep(Option<i64>),
    Take,
    Renew,
    Release,
}

impl LeaseStep {
    /// The step of a node that has the lease until `own_ends_milliseconds`, or does not have it
    /// (`None`). `is_needed` says that the node is about to take deliveries under the lease, and
    /// `has_held` that it holds some which it took earlier.
    pub const fn next(
        own_ends_milliseconds: Option<i64>,
        is_needed: bool,
        has_held: bool,
        now_milliseconds: i64,
    ) -> LeaseStep {
        match own_ends_milliseconds {
            None if is_needed => LeaseStep::Take,
            Some(_) if !is_needed && !has_held => LeaseStep::Release,
            Some(ends) if ends - now_milliseconds < RENEWED_BELOW_MILLISECONDS => LeaseStep::Renew,
            own => LeaseStep::Keep(own),
        }
    }

    /// Carries the step out. Answers until when the node has the lease afterwards, in milliseconds;
    /// `None` if it does not have the lease.
    pub fn carry_out(
        self,
        tx: &mut dyn Tx,
        now: &Now,
        endpoint_id: EndpointId,
        holder: QueueHolder,
    ) -> Result<Option<i64>, StoreError> {
        let now_milliseconds = now.instant_milliseconds();
        let ends_milliseconds = now_milliseconds + LEASE_MILLISECONDS;
        let lease = QueueLease { holder, ends_milliseconds };
        let has_lease = match self {
            LeaseStep::Keep(own) => return Ok(own),
            LeaseStep::Take => {
                let latest_milliseconds = match store::failpoint(LEASES_TAKEN) {
                    true => i64::MIN,
                    false => now_milliseconds + AHEAD_MILLISECONDS_MAX,
                };
                rows::queue_lease_take(
                    tx,
                    endpoint_id,
                    lease,
                    now_milliseconds,
                    latest_milliseconds,
                )?
            }
            LeaseStep::Renew => rows::queue_lease_renew(tx, endpoint_id, lease)?,
            LeaseStep::Release => {
                release(tx, endpoint_id, holder)?;
                false
            }
        };
        Ok(has_lease.then_some(ends_milliseconds))
    }
}

/// Ends the node's lease, and makes the queue due with its first delivery, so that any node finds
/// what is due at once.
pub fn release(
    tx: &mut dyn Tx,
    endpoint_id: EndpointId,
    holder: QueueHolder,
) -> Result<(), StoreError> {
    rows::queue_recompute_due(tx, endpoint_id)?;
    rows::queue_lease_end(tx, endpoint_id, holder)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_764_000_000_000;
    const MINE: QueueHolder = [1; 16];

    #[test]
    fn a_lease_is_taken_for_a_backlog_renewed_in_time_and_released_at_the_end() {
        let next = |own, is_needed, has_held| LeaseStep::next(own, is_needed, has_held, NOW);
        let (late, soon) = (Some(NOW + 30_000), Some(NOW + 29_999));
        assert_eq!(next(None, false, false), LeaseStep::Keep(None));
        assert_eq!(next(None, true, false), LeaseStep::Take);
        assert_eq!(next(late, true, false), LeaseStep::Keep(late));
        assert_eq!(next(late, false, true), LeaseStep::Keep(late), "some are on their way");
        for (is_needed, has_held) in [(true, false), (false, true), (true, true)] {
            assert_eq!(next(soon, is_needed, has_held), LeaseStep::Renew);
            assert_eq!(next(Some(NOW - 1), is_needed, has_held), LeaseStep::Renew, "it has ended");
        }
        assert_eq!(next(late, false, false), LeaseStep::Release);
        assert_eq!(next(soon, false, false), LeaseStep::Release);
    }

    #[test]
    fn a_lease_excludes_other_nodes_until_it_ends() {
        let excludes =
            |holder, ends| QueueLease { holder, ends_milliseconds: ends }.excludes(MINE, NOW);
        let other = [2; 16];
        assert!(excludes(other, NOW + 1) && excludes(other, NOW + AHEAD_MILLISECONDS_MAX));
        assert!(!excludes(other, NOW) && !excludes(other, NOW - 1));
        assert!(!excludes(other, NOW + AHEAD_MILLISECONDS_MAX + 1), "a wrong clock");
        assert!(!excludes(MINE, NOW + 1));
    }
}
