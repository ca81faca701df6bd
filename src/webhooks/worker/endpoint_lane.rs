//! What the scheduler knows of one endpoint, and how many of its deliveries may be claimed and
//! sent.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::time::Instant;

use super::target::DeliveryTarget;
use crate::kernel::Scope;
use crate::webhooks::deliveries::DueDelivery;
use crate::webhooks::handover::Offer;
use crate::webhooks::queue_leases::Held;
use crate::webhooks::rows::DeliveryId;
use crate::webhooks::state::EndpointStatus;

/// Attempts that one endpoint has running at the same time.
pub(super) const ENDPOINT_RUNNING_MAX: usize = 8;
/// The same limit before its first success, and after an attempt that failed slowly.
pub(super) const ENDPOINT_RUNNING_UNTRIED_MAX: usize = 2;
/// Failures in a row after which an endpoint is only probed: one attempt at a time.
pub(super) const PROBED_FAILURES_MIN: i64 = 5;
/// Deliveries of an endpoint that works that may be claimed ahead of their attempts.
pub(super) const ENDPOINT_CLAIMED_MAX: usize = 256;
/// The same limit for an untried endpoint. A suspect claims none ahead: what it cannot send soon
/// would only wait for its lease to end.
pub(super) const ENDPOINT_CLAIMED_UNTRIED_MAX: usize = 8;

/// What the last attempts say about an endpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reliability {
    /// The last attempt succeeded in time.
    Reliable,
    Untried,
    /// The last attempt failed or was slow.
    Suspect,
}

/// A delivery under a lease.
pub(super) struct ClaimedDelivery {
    pub(super) due: DueDelivery,
    /// When its own lease ends, by the store's clock; `None` if it was taken under the lease of its
    /// queue.
    pub(super) lease_ends_milliseconds: Option<i64>,
}

impl ClaimedDelivery {
    /// Whether it was taken under the lease of its queue.
    pub(super) const fn is_leased(&self) -> bool {
        self.lease_ends_milliseconds.is_none()
    }

    /// Its due time while it is attempted.
    pub(super) fn due_milliseconds(&self) -> i64 {
        self.lease_ends_milliseconds.unwrap_or(self.due.due_milliseconds)
    }
}

/// Which lanes a turn is for. Each lane belongs to one share, and changes to the other only when a
/// turn of its own has ended. So two concurrent turns never have the same endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Share {
    /// Endpoints without a backlog.
    CaughtUp,
    /// Endpoints with more due than one turn claims.
    Backlog,
}

/// Whether an endpoint gets one attempt at a time.
pub(super) fn is_probed(failures_count: i64, status: EndpointStatus) -> bool {
    failures_count >= PROBED_FAILURES_MIN || status != EndpointStatus::Enabled
}

/// What is known of one endpoint.
pub(super) struct EndpointLane {
    pub(super) scope: Scope,
    pub(super) target: Option<Arc<DeliveryTarget>>,
    /// From when on the target is too old to begin an attempt.
    pub(super) target_ends_at: Instant,
    pub(super) reliability: Reliability,
    /// Its last attempt failed slowly.
    pub(super) hangs: bool,
    /// Failed attempts since the last success.
    pub(super) failures_count: i64,
    pub(super) claimed: VecDeque<ClaimedDelivery>,
    pub(super) running_count: usize,
    /// The store has due deliveries that are not claimed.
    pub(super) has_due: bool,
    /// The last claim left some due deliveries, so the next one is expected to fill a turn.
    pub(super) has_backlog: bool,
    /// The last delivery of the backlog that was read, after which the next turn continues. An
    /// index keeps entries of deliveries that are no longer due until it is cleaned, and a turn
    /// that began before them would pass over all of them.
    pub(super) read_until: Option<(i64, DeliveryId)>,
    /// When the backlog is read from its beginning again, so that what became due there meanwhile
    /// does not wait for the backlog's end.
    pub(super) reads_anew_at: Instant,
    /// When the lease of its queue ends, by the store's clock, if this node has it.
    pub(super) queue_lease_ends_milliseconds: Option<i64>,
    /// What was taken under that lease and is not recorded yet.
    pub(super) held: Held,
    /// Nothing is claimed before this moment.
    pub(super) rests_until: Instant,
    /// It is in `due_lanes`.
    pub(super) is_due_listed: bool,
    /// It is in `ready_lanes`.
    pub(super) is_ready_listed: bool,
    /// It is in `changed_lanes`.
    pub(super) is_change_listed: bool,
}

impl EndpointLane {
    pub(super) fn new(scope: Scope, now: Instant) -> EndpointLane {
        EndpointLane {
            scope,
            target: None,
            target_ends_at: now,
            reliability: Reliability::Untried,
            hangs: false,
            failures_count: 0,
            claimed: VecDeque::new(),
            running_count: 0,
            has_due: false,
            has_backlog: false,
            read_until: None,
            reads_anew_at: now,
            queue_lease_ends_milliseconds: None,
            held: Held::new(),
            rests_until: now,
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

    pub(super) fn is_idle(&self) -> bool {
        let has_lease = self.queue_lease_ends_milliseconds.is_some();
        self.claimed.is_empty() && self.running_count == 0 && !self.has_due && !has_lease
    }

    /// Whether a backlog is taken under a lease of the queue: if the endpoint works.
    pub(super) fn may_lease(&self) -> bool {
        self.reliability == Reliability::Reliable && !self.is_probed()
    }

    /// Forgets what was taken under the lease of the queue. Answers how many deliveries of it were
    /// not sent yet.
    pub(super) fn lose_lease(&mut self) -> usize {
        let count_before = self.claimed.len();
        self.claimed.retain(|claimed| claimed.lease_ends_milliseconds.is_some());
        self.queue_lease_ends_milliseconds = None;
        self.held.clear();
        count_before - self.claimed.len()
    }

    /// When the lease ends under which the next delivery is sent.
    pub(super) fn next_lease_ends_milliseconds(&self) -> Option<i64> {
        let own = self.claimed.front()?.lease_ends_milliseconds;
        Some(own.or(self.queue_lease_ends_milliseconds).unwrap_or(i64::MIN))
    }

    pub(super) fn running_max(&self) -> usize {
        match self.reliability {
            _ if self.is_probed() => 1,
            _ if self.hangs => ENDPOINT_RUNNING_UNTRIED_MAX,
            Reliability::Untried => ENDPOINT_RUNNING_UNTRIED_MAX,
            Reliability::Reliable | Reliability::Suspect => ENDPOINT_RUNNING_MAX,
        }
    }

    /// How many deliveries to claim now.
    pub(super) fn wanted(&self, now: Instant) -> usize {
        if now < self.rests_until {
            return 0;
        }
        let claimed_max = match self.reliability {
            _ if self.is_probed() => {
                return usize::from(self.claimed.is_empty() && self.running_count == 0);
            }
            Reliability::Reliable => ENDPOINT_CLAIMED_MAX,
            Reliability::Untried => ENDPOINT_CLAIMED_UNTRIED_MAX,
            Reliability::Suspect => {
                return self.running_max().saturating_sub(self.claimed.len() + self.running_count);
            }
        };
        // Only once half is sent, so that a turn claims many at a time.
        if self.claimed.len() * 2 > claimed_max { 0 } else { claimed_max - self.claimed.len() }
    }

    /// How many deliveries may be handed over claimed: as many as can be sent at once, if the
    /// endpoint works and no other delivery of it is known to be due.
    pub(super) fn offer(&self, now: Instant) -> Option<Offer> {
        let version = self.target.as_ref()?.version;
        let works = self.reliability == Reliability::Reliable && !self.is_probed();
        let is_caught_up = !self.has_due && !self.has_backlog && now >= self.rests_until;
        let room = self.running_max().saturating_sub(self.claimed.len() + self.running_count);
        (works && is_caught_up && room > 0).then_some(Offer { version, room })
    }

    pub(super) fn is_ready(&self) -> bool {
        !self.claimed.is_empty() && self.running_count < self.running_max()
    }
}
