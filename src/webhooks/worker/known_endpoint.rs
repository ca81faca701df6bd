//! What the scheduler knows of one endpoint, and how many of its deliveries may be taken and sent.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::time::Instant;

use super::target::DeliveryTarget;
use crate::kernel::Scope;
use crate::webhooks::deliveries::DueDelivery;
use crate::webhooks::handover::Offer;
use crate::webhooks::queue_leases::HeldDeliveries;
use crate::webhooks::rows::DeliveryId;
use crate::webhooks::state::EndpointStatus;

/// The most attempts that one endpoint has running at the same time.
pub(super) const ENDPOINT_RUNNING_MAX: usize = 8;
/// The same limit for an endpoint that is untried, or whose last attempt failed and was slow.
pub(super) const ENDPOINT_RUNNING_UNTRIED_MAX: usize = 2;
/// After this many failures in a row an endpoint is only probed: it gets one attempt at a time.
pub(super) const PROBED_FAILURES_MIN: i64 = 5;
/// The most deliveries of a reliable endpoint that are taken and wait for their attempts.
pub(super) const ENDPOINT_TAKEN_MAX: usize = 256;
/// The same limit for an untried endpoint. For a suspect endpoint the worker takes only what it can
/// send at once, because further deliveries might wait until their claims end.
pub(super) const ENDPOINT_TAKEN_UNTRIED_MAX: usize = 8;

/// What the last attempts say about an endpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reliability {
    /// The last attempt succeeded and was not slow.
    Reliable,
    /// Nothing shows yet whether it works: no attempt of this worker has ended or been slow, and
    /// the store counts no failures.
    Untried,
    /// The last attempt failed or was slow, or the store already counted failures when this worker
    /// first read the endpoint.
    Suspect,
}

/// A delivery that only this node may send for now: it was claimed, or taken under the lease of its
/// queue.
pub(super) struct TakenDelivery {
    pub(super) due: DueDelivery,
    /// When its claim ends, by the store's clock; `None` if it was taken under the lease of its
    /// queue.
    pub(super) lease_ends_milliseconds: Option<i64>,
}

impl TakenDelivery {
    pub(super) const fn is_under_queue_lease(&self) -> bool {
        self.lease_ends_milliseconds.is_none()
    }

    /// The due time that the delivery has in the store during its attempt, in milliseconds.
    pub(super) fn due_milliseconds(&self) -> i64 {
        self.lease_ends_milliseconds.unwrap_or(self.due.due_milliseconds)
    }
}

/// Which endpoints a turn is for. Each endpoint belongs to one share, and changes to the other only
/// at the end of a turn that read it. So two concurrent turns never have the same endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Share {
    /// Endpoints without a backlog.
    CaughtUp,
    /// Endpoints with a backlog: more is due than one turn takes.
    Backlog,
}

/// Whether an endpoint is only probed: it gets one attempt at a time.
pub(super) fn is_probed(failures_count: i64, status: EndpointStatus) -> bool {
    failures_count >= PROBED_FAILURES_MIN || status != EndpointStatus::Enabled
}

/// What the scheduler knows of one endpoint.
pub(super) struct KnownEndpoint {
    pub(super) scope: Scope,
    /// `None` until it is read, and if the endpoint is deleted.
    pub(super) target: Option<Arc<DeliveryTarget>>,
    /// When the target becomes too old to begin an attempt with.
    pub(super) target_ends_at: Instant,
    pub(super) reliability: Reliability,
    /// The last attempt failed and was slow.
    pub(super) hangs: bool,
    /// Failed attempts since the last success.
    pub(super) failures_count: i64,
    /// Taken deliveries that wait for their attempts, in the order in which they are sent.
    pub(super) taken: VecDeque<TakenDelivery>,
    /// Attempts that run.
    pub(super) running_count: usize,
    /// The store may have due deliveries that are not taken.
    pub(super) has_due: bool,
    /// The last read left due deliveries behind, or did not show that there are none. The endpoint
    /// belongs to [`Share::Backlog`].
    pub(super) has_backlog: bool,
    /// The due time and identifier of the last delivery of the backlog that was read. The next turn
    /// continues after it. PostgreSQL's index keeps entries of deliveries that are no longer due
    /// until it is vacuumed. A turn that began at the backlog's beginning would read them all.
    pub(super) last_read: Option<(i64, DeliveryId)>,
    /// When a turn reads the backlog from its beginning again, so that what became due in front of
    /// `last_read` meanwhile does not wait for the backlog's end.
    pub(super) reads_anew_at: Instant,
    /// When the lease of its queue ends, by the store's clock, if this node has it.
    pub(super) queue_lease_ends_milliseconds: Option<i64>,
    /// Deliveries that were taken under that lease and whose attempts are not recorded yet.
    pub(super) held: HeldDeliveries,
    /// Nothing is taken before this moment, because a probe failed. A success ends this pause.
    pub(super) rests_until: Instant,
    /// Nothing is taken before this moment either, even if an attempt succeeds: rows of the
    /// endpoint could not be read, or another node has the lease of its queue.
    pub(super) left_alone_until: Instant,
    /// It is in `Scheduler::due_endpoints`.
    pub(super) is_due_listed: bool,
    /// It is in `Scheduler::ready_endpoints`.
    pub(super) is_ready_listed: bool,
    /// It is in `Scheduler::changed_endpoints`.
    pub(super) is_change_listed: bool,
}

impl KnownEndpoint {
    pub(super) fn new(scope: Scope, now: Instant) -> KnownEndpoint {
        KnownEndpoint {
            scope,
            target: None,
            target_ends_at: now,
            reliability: Reliability::Untried,
            hangs: false,
            failures_count: 0,
            taken: VecDeque::new(),
            running_count: 0,
            has_due: false,
            has_backlog: false,
            last_read: None,
            reads_anew_at: now,
            queue_lease_ends_milliseconds: None,
            held: HeldDeliveries::new(),
            rests_until: now,
            left_alone_until: now,
            is_due_listed: false,
            is_ready_listed: false,
            is_change_listed: false,
        }
    }

    pub(super) const fn share(&self) -> Share {
        if self.has_backlog { Share::Backlog } else { Share::CaughtUp }
    }

    pub(super) fn is_probed(&self) -> bool {
        is_probed(
            self.failures_count,
            self.target.as_ref().map_or(EndpointStatus::Enabled, |target| target.status),
        )
    }

    /// Whether the scheduler may forget the endpoint.
    pub(super) fn is_idle(&self) -> bool {
        let has_lease = self.queue_lease_ends_milliseconds.is_some();
        self.taken.is_empty() && self.running_count == 0 && !self.has_due && !has_lease
    }

    /// Whether a backlog of the endpoint may be sent under a lease of its queue.
    pub(super) fn may_lease(&self) -> bool {
        self.reliability == Reliability::Reliable && !self.is_probed()
    }

    /// Forgets the lease of the queue and the deliveries that were taken under it. Answers how many
    /// of these were not sent yet.
    pub(super) fn lose_lease(&mut self) -> usize {
        let count_before = self.taken.len();
        self.taken.retain(|taken| taken.lease_ends_milliseconds.is_some());
        self.queue_lease_ends_milliseconds = None;
        self.held.clear();
        count_before - self.taken.len()
    }

    /// When the claim of the next delivery ends, or the lease under which it was taken, by the
    /// store's clock; `None` if no delivery is taken.
    pub(super) fn next_lease_ends_milliseconds(&self) -> Option<i64> {
        let own = self.taken.front()?.lease_ends_milliseconds;
        Some(own.or(self.queue_lease_ends_milliseconds).unwrap_or(i64::MIN))
    }

    /// How many attempts may run at the same time.
    pub(super) fn running_max(&self) -> usize {
        match self.reliability {
            _ if self.is_probed() => 1,
            _ if self.hangs => ENDPOINT_RUNNING_UNTRIED_MAX,
            Reliability::Untried => ENDPOINT_RUNNING_UNTRIED_MAX,
            Reliability::Reliable | Reliability::Suspect => ENDPOINT_RUNNING_MAX,
        }
    }

    /// Until when nothing is taken.
    pub(super) fn pause_ends_at(&self) -> Instant {
        self.rests_until.max(self.left_alone_until)
    }

    /// How many deliveries to take now.
    pub(super) fn wanted(&self, now: Instant) -> usize {
        if now < self.pause_ends_at() {
            return 0;
        }
        let taken_max = match self.reliability {
            _ if self.is_probed() => {
                return usize::from(self.taken.is_empty() && self.running_count == 0);
            }
            Reliability::Reliable => ENDPOINT_TAKEN_MAX,
            Reliability::Untried => ENDPOINT_TAKEN_UNTRIED_MAX,
            Reliability::Suspect => {
                return self.running_max().saturating_sub(self.taken.len() + self.running_count);
            }
        };
        // None are taken while more than half of the limit wait, so that each turn takes many.
        if self.taken.len() * 2 > taken_max { 0 } else { taken_max - self.taken.len() }
    }

    /// How many deliveries the sequencer may hand over: as many as can be sent at once, if the
    /// endpoint works and no other delivery to it is known to be due. `None` if the sequencer may
    /// hand over none.
    pub(super) fn offer(&self, now: Instant) -> Option<Offer> {
        let version = self.target.as_ref()?.version;
        let works = self.reliability == Reliability::Reliable && !self.is_probed();
        let is_caught_up = !self.has_due && !self.has_backlog && now >= self.pause_ends_at();
        let room = self.running_max().saturating_sub(self.taken.len() + self.running_count);
        (works && is_caught_up && room > 0).then_some(Offer { version, room })
    }

    /// Whether an attempt may begin.
    pub(super) fn is_ready(&self) -> bool {
        !self.taken.is_empty() && self.running_count < self.running_max()
    }
}
