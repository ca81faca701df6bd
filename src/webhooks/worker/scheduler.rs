//! Decides which deliveries are claimed and which attempts begin, without a store or a network.
//!
//! Each endpoint has a lane. A lane that works may claim deliveries ahead and run several attempts
//! at once. A lane that fails or hangs gets little of both, so that it cannot delay the others.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::backlog_yield::BacklogYield;
use super::claims::{ClaimRequest, EndpointClaims, EndpointReading};
use super::endpoint_lane::{ClaimedDelivery, EndpointLane, Reliability, Share};
use super::target::DeliveryTarget;
use crate::kernel::Scope;
use crate::webhooks::deliveries::{DueDelivery, FinishedAttempt};
use crate::webhooks::handover::{LeasedDelivery, Offer};
use crate::webhooks::rows::EndpointId;
use crate::webhooks::sending::attempt::TOTAL_SECONDS_MAX;

/// Attempts that run at the same time.
pub(super) const RUNNING_MAX: usize = 512;
/// Of these, how many suspect endpoints may have: those whose last attempt failed or was slow.
pub(super) const RUNNING_SUSPECT_MAX: usize = RUNNING_MAX / 2;
/// Of these, how many suspect and untried endpoints may have together. The rest is always for
/// endpoints that work.
pub(super) const RUNNING_UNTRIED_MAX: usize = RUNNING_MAX / 4 * 3;
/// From the end of a failed probe to the next, in milliseconds.
const PROBE_GAP_MILLISECONDS: u64 = 250;
/// An attempt that runs longer than this makes its endpoint a suspect, in milliseconds.
pub(super) const SLOW_MILLISECONDS: u64 = 2_000;

/// Deliveries claimed and not yet sent, in all.
const CLAIMED_TOTAL_MAX: usize = 8_192;
/// How much of a lease must be left for an attempt to begin, in milliseconds: the longest attempt,
/// and time to record it. If a chaos profile sends twice, two long attempts may outlast the lease;
/// the delivery is then made once more.
const LEASE_LEFT_MILLISECONDS_MIN: i64 = TOTAL_SECONDS_MAX as i64 * 1_000 + 5_000;

/// How long an endpoint's URL, secrets and status are used before they are read again, in
/// milliseconds.
const TARGET_KEPT_MILLISECONDS: u64 = 1_000;
/// Endpoints that are remembered.
const LANES_MAX: usize = 20_000;
/// How long an endpoint with unreadable rows is left out, in seconds.
const BROKEN_PAUSE_SECONDS: u64 = 60;
/// How long turns continue through a backlog before it is read from its beginning again, in
/// milliseconds.
const BACKLOG_READ_ON_MILLISECONDS: u64 = 1_000;

/// How long an endpoint is left to the node that has the lease of its queue, in milliseconds.
const EXCLUDED_PAUSE_MILLISECONDS: u64 = 1_000;

/// An attempt that may begin now.
pub(super) struct AttemptStart {
    pub(super) endpoint_id: EndpointId,
    pub(super) target: Arc<DeliveryTarget>,
    pub(super) claimed: ClaimedDelivery,
}

/// How many attempts run, by the reliability of their endpoints.
#[derive(Default)]
struct RunningAttempts {
    reliable: usize,
    untried: usize,
    suspect: usize,
}

impl RunningAttempts {
    fn of(&mut self, reliability: Reliability) -> &mut usize {
        match reliability {
            Reliability::Reliable => &mut self.reliable,
            Reliability::Untried => &mut self.untried,
            Reliability::Suspect => &mut self.suspect,
        }
    }

    const fn total(&self) -> usize {
        self.reliable + self.untried + self.suspect
    }

    const fn has_room(&self, reliability: Reliability) -> bool {
        let others_have_room = self.untried + self.suspect < RUNNING_UNTRIED_MAX;
        self.total() < RUNNING_MAX
            && match reliability {
                Reliability::Reliable => true,
                Reliability::Untried => others_have_room,
                Reliability::Suspect => others_have_room && self.suspect < RUNNING_SUSPECT_MAX,
            }
    }
}

#[derive(Default)]
pub(super) struct Scheduler {
    pub(super) lanes: HashMap<EndpointId, EndpointLane>,
    /// Lanes with due deliveries, in the order in which they claim.
    due_lanes: VecDeque<EndpointId>,
    /// Lanes with claimed deliveries that they may send, in the order in which they send.
    ready_lanes: VecDeque<EndpointId>,
    /// Lanes with claimed deliveries whose target must be read again.
    pub(super) stale_lanes: Vec<EndpointId>,
    /// Lanes whose offer may have changed.
    changed_lanes: Vec<EndpointId>,
    claimed_count: usize,
    running: RunningAttempts,
    backlog_yield: BacklogYield,
    backlog_yields: bool,
    /// Whether backlogs are taken under leases of their queues.
    pub(super) leases_queues: bool,
}

impl Scheduler {
    pub(super) const fn running_count(&self) -> usize {
        self.running.total()
    }

    /// Notes whether deliveries of others are on their way. Answers until when lanes with a backlog
    /// begin nothing; `None` if they do not yield.
    pub(super) fn note_others(&mut self, others_work: bool, now: Instant) -> Option<Instant> {
        let yields_until = self.backlog_yield.until(others_work, now);
        self.backlog_yields = yields_until.is_some();
        yields_until
    }

    /// Whether the lanes of a share must not begin anything now.
    pub(super) fn yields(&self, share: Share) -> bool {
        self.backlog_yields && share == Share::Backlog
    }

    /// Notes that an endpoint has due deliveries. If there are too many endpoints it is dropped;
    /// the next full look finds it again.
    pub(super) fn note_due(&mut self, endpoint_id: EndpointId, scope: Scope, now: Instant) {
        if self.lanes.len() >= LANES_MAX && !self.lanes.contains_key(&endpoint_id) {
            let idle = self.lanes.extract_if(|_, lane| lane.is_idle());
            self.changed_lanes.extend(idle.map(|(endpoint_id, _)| endpoint_id));
            if self.lanes.len() >= LANES_MAX {
                return;
            }
        }
        let lane = self.lanes.entry(endpoint_id).or_insert_with(|| EndpointLane::new(scope, now));
        lane.has_due = true;
        list_changed(&mut self.changed_lanes, endpoint_id, lane);
        if !lane.is_due_listed {
            lane.is_due_listed = true;
            self.due_lanes.push_back(endpoint_id);
        }
    }

    /// Whether others have worked lately beside the lanes with a backlog.
    pub(super) fn is_beside_others(&self, now: Instant) -> bool {
        self.backlog_yield.is_beside_others(now)
    }

    /// The share that an endpoint belongs to.
    pub(super) fn share_of(&self, endpoint_id: EndpointId) -> Share {
        self.lanes.get(&endpoint_id).map_or(Share::CaughtUp, EndpointLane::share)
    }

    /// What a turn reads next: at most `claimed_max` deliveries for the lanes of its share that
    /// want some, one after the other, and targets that are too old. `wakes_at` is set to the end
    /// of the first rest of a lane, if that is earlier.
    pub(super) fn claim_requests(
        &mut self,
        share: Share,
        claimed_max: usize,
        now: Instant,
        wakes_at: &mut Instant,
    ) -> Vec<ClaimRequest> {
        let mut requests = Vec::new();
        let mut count_left = claimed_max.min(CLAIMED_TOTAL_MAX.saturating_sub(self.claimed_count));
        for _ in 0..self.due_lanes.len() {
            if count_left == 0 {
                break;
            }
            let Some(endpoint_id) = self.due_lanes.pop_front() else { break };
            let Some(lane) = self.lanes.get_mut(&endpoint_id) else { continue };
            if !lane.has_due {
                lane.is_due_listed = false;
                continue;
            }
            self.due_lanes.push_back(endpoint_id);
            if lane.share() != share {
                continue;
            }
            if lane.rests_until > now {
                *wakes_at = (*wakes_at).min(lane.rests_until);
            }
            let count = if self.running.has_room(lane.reliability) {
                lane.wanted(now).min(count_left)
            } else {
                0
            };
            if count > 0 {
                count_left -= count;
                if now >= lane.reads_anew_at {
                    lane.read_until = None;
                    lane.reads_anew_at = now + Duration::from_millis(BACKLOG_READ_ON_MILLISECONDS);
                }
                requests.push(request(endpoint_id, lane, count, self.leases_queues));
            }
        }
        let (stale, others) = std::mem::take(&mut self.stale_lanes)
            .into_iter()
            .partition(|endpoint_id| self.share_of(*endpoint_id) == share);
        self.stale_lanes = others;
        let stale: Vec<EndpointId> = stale;
        for endpoint_id in stale {
            let Some(lane) = self.lanes.get(&endpoint_id) else { continue };
            if !requests.iter().any(|request| request.endpoint_id == endpoint_id) {
                requests.push(request(endpoint_id, lane, 0, self.leases_queues));
            }
        }
        requests
    }

    /// Asks for the targets of these endpoints again, after a turn that failed.
    pub(super) fn read_again(&mut self, endpoint_ids: &[EndpointId]) {
        self.stale_lanes.extend(endpoint_ids);
    }

    /// Takes what a turn read of one endpoint, and what it wrote.
    pub(super) fn take_reading(
        &mut self,
        reading: &EndpointReading,
        lease_ends_milliseconds: i64,
        outcome: &EndpointClaims,
        now: Instant,
    ) {
        let claimed = &outcome.claimed;
        let Some(lane) = self.lanes.get_mut(&reading.endpoint_id) else { return };
        list_changed(&mut self.changed_lanes, reading.endpoint_id, lane);
        let is_new = lane.target.is_none();
        if reading.is_broken {
            lane.rests_until = now + Duration::from_secs(BROKEN_PAUSE_SECONDS);
            self.claimed_count -= lane.lose_lease();
            self.claimed_count -= lane.claimed.len();
            lane.claimed.clear();
            return;
        }
        lane.target = reading.target.clone();
        lane.target_ends_at = now + Duration::from_millis(TARGET_KEPT_MILLISECONDS);
        if outcome.queue_lease_ends_milliseconds.is_none() {
            self.claimed_count -= lane.lose_lease();
        }
        lane.queue_lease_ends_milliseconds = outcome.queue_lease_ends_milliseconds;
        if reading.target.is_none() {
            self.claimed_count -= lane.claimed.len();
            lane.claimed.clear();
            (lane.has_due, lane.has_backlog) = (false, false);
            return;
        }
        if is_new && reading.health.failures_count > 0 {
            lane.failures_count = reading.health.failures_count;
            set_reliability(&mut self.running, lane, Reliability::Suspect);
        }
        if reading.is_excluded {
            lane.rests_until = now + Duration::from_millis(EXCLUDED_PAUSE_MILLISECONDS);
            (lane.has_due, lane.has_backlog, lane.read_until) = (true, false, None);
        } else if reading.requested_count > 0 {
            lane.has_backlog = !reading.is_drained;
            lane.read_until = reading.read_until;
            lane.has_due = !reading.is_drained || claimed.contains(&false);
        }
        let taken = reading.due.iter().zip(claimed).filter(|(_, is_claimed)| **is_claimed);
        let count_before = lane.claimed.len();
        let lease_ends_milliseconds = (!reading.is_leased).then_some(lease_ends_milliseconds);
        for (due, _) in taken {
            if reading.is_leased {
                lane.held.insert((due.id, due.due_milliseconds));
            }
            lane.claimed.push_back(ClaimedDelivery { due: due.clone(), lease_ends_milliseconds });
        }
        self.claimed_count += lane.claimed.len() - count_before;
        list_ready(&mut self.ready_lanes, reading.endpoint_id, lane);
    }

    /// Takes deliveries that the sequencer wrote as claimed. The sequencer read their endpoints at
    /// the start of their schedules. If an endpoint has the version that is known here, its target
    /// is as fresh as that; otherwise the target is read before anything is sent.
    pub(super) fn take_handed(
        &mut self,
        handed: Vec<LeasedDelivery>,
        now: Instant,
        now_milliseconds: i64,
    ) {
        for delivery in handed {
            let LeasedDelivery { scope, endpoint_id, version, due, lease_ends_milliseconds } =
                delivery;
            let lane =
                self.lanes.entry(endpoint_id).or_insert_with(|| EndpointLane::new(scope, now));
            list_changed(&mut self.changed_lanes, endpoint_id, lane);
            if lane.target.as_ref().is_some_and(|target| target.version == version) {
                let age = now_milliseconds.saturating_sub(due.schedule_start_milliseconds);
                let left = TARGET_KEPT_MILLISECONDS.saturating_sub(age.max(0).unsigned_abs());
                lane.target_ends_at = lane.target_ends_at.max(now + Duration::from_millis(left));
            } else {
                lane.target_ends_at = now;
            }
            let lease_ends_milliseconds = Some(lease_ends_milliseconds);
            lane.claimed.push_back(ClaimedDelivery { due, lease_ends_milliseconds });
            self.claimed_count += 1;
            list_ready(&mut self.ready_lanes, endpoint_id, lane);
        }
    }

    /// The endpoints whose offer to the sequencer may have changed, with the new offers.
    pub(super) fn take_offers(&mut self, now: Instant) -> Vec<(EndpointId, Option<Offer>)> {
        let offer = |endpoint_id: EndpointId| {
            let lane = self.lanes.get_mut(&endpoint_id);
            let offer = lane.and_then(|lane| {
                lane.is_change_listed = false;
                lane.offer(now)
            });
            (endpoint_id, offer)
        };
        self.changed_lanes.drain(..).map(offer).collect()
    }

    /// How many more attempts can begin at once.
    pub(super) fn places(&self) -> usize {
        RUNNING_MAX.saturating_sub(self.running.total())
    }

    /// Begins attempts, one endpoint after the other, as long as there is room.
    pub(super) fn begin_attempts(
        &mut self,
        now: Instant,
        now_milliseconds: i64,
    ) -> Vec<AttemptStart> {
        let mut starts = Vec::new();
        let mut waiting_count = 0;
        while waiting_count < self.ready_lanes.len() && self.running.total() < RUNNING_MAX {
            let Some(endpoint_id) = self.ready_lanes.pop_front() else { break };
            let Some(lane) = self.lanes.get_mut(&endpoint_id) else { continue };
            lane.is_ready_listed = false;
            if !lane.is_ready() {
                continue;
            }
            let yields = self.backlog_yields && lane.share() == Share::Backlog;
            if yields || !self.running.has_room(lane.reliability) {
                lane.is_ready_listed = true;
                self.ready_lanes.push_back(endpoint_id);
                waiting_count += 1;
                continue;
            }
            let Some(target) = lane.target.clone().filter(|_| now < lane.target_ends_at) else {
                self.stale_lanes.push(endpoint_id);
                continue;
            };
            let is_leased = lane.claimed.front().is_some_and(ClaimedDelivery::is_leased);
            let is_too_late = lane.next_lease_ends_milliseconds().is_none_or(|ends| {
                ends.saturating_sub(now_milliseconds) < LEASE_LEFT_MILLISECONDS_MIN
            });
            if is_leased && is_too_late {
                // The lease of the queue is renewed first.
                self.stale_lanes.push(endpoint_id);
                continue;
            }
            waiting_count = 0;
            if let Some(claimed) = lane.claimed.pop_front() {
                self.claimed_count -= 1;
                list_changed(&mut self.changed_lanes, endpoint_id, lane);
                // A delivery that waited too long is due again when its lease ends.
                if !is_too_late {
                    lane.running_count += 1;
                    *self.running.of(lane.reliability) += 1;
                    starts.push(AttemptStart { endpoint_id, target, claimed });
                }
            }
            list_ready(&mut self.ready_lanes, endpoint_id, lane);
        }
        starts
    }

    /// Makes an endpoint a suspect as soon as one of its attempts takes too long.
    pub(super) fn attempt_is_slow(&mut self, endpoint_id: EndpointId) {
        if let Some(lane) = self.lanes.get_mut(&endpoint_id) {
            list_changed(&mut self.changed_lanes, endpoint_id, lane);
            set_reliability(&mut self.running, lane, Reliability::Suspect);
        }
    }

    /// Learns from an attempt that ended. Without a result, a fault of this service interrupted it.
    pub(super) fn attempt_ended(
        &mut self,
        endpoint_id: EndpointId,
        finished: Option<&FinishedAttempt>,
        now: Instant,
    ) {
        // A lane with running attempts is never forgotten.
        let Some(lane) = self.lanes.get_mut(&endpoint_id) else { return };
        list_changed(&mut self.changed_lanes, endpoint_id, lane);
        lane.running_count -= 1;
        *self.running.of(lane.reliability) -= 1;
        let is_success = finished.is_some_and(|finished| finished.is_success);
        let is_quick = finished
            .is_some_and(|finished| u64::from(finished.duration_milliseconds) < SLOW_MILLISECONDS);
        lane.failures_count = if is_success { 0 } else { lane.failures_count + 1 };
        lane.hangs = !is_success && !is_quick;
        let reliability =
            if is_success && is_quick { Reliability::Reliable } else { Reliability::Suspect };
        set_reliability(&mut self.running, lane, reliability);
        if lane.is_probed() {
            lane.rests_until = now + Duration::from_millis(PROBE_GAP_MILLISECONDS);
        }
        if is_success {
            lane.rests_until = now;
        }
        if finished.is_none() {
            // It may have been a held one, which is due as before.
            self.claimed_count -= lane.lose_lease();
        }
        list_ready(&mut self.ready_lanes, endpoint_id, lane);
    }

    /// Gives up everything that is claimed and not sent: the deliveries of each endpoint, with the
    /// ends of their leases.
    pub(super) fn drain_claimed(&mut self) -> Vec<(EndpointId, Vec<(DueDelivery, i64)>)> {
        self.claimed_count = 0;
        self.lanes
            .iter_mut()
            .map(|(endpoint_id, lane)| {
                let claimed = lane.claimed.drain(..).filter_map(|claimed| {
                    claimed.lease_ends_milliseconds.map(|ends| (claimed.due, ends))
                });
                (*endpoint_id, claimed.collect::<Vec<_>>())
            })
            .filter(|(_, claimed)| !claimed.is_empty())
            .collect()
    }
}

fn request(
    endpoint_id: EndpointId,
    lane: &EndpointLane,
    count: usize,
    leases_queues: bool,
) -> ClaimRequest {
    let (scope, behind, known) = (lane.scope, lane.read_until, lane.target.clone());
    let (held, may_lease) = (lane.held.clone(), leases_queues && lane.may_lease());
    ClaimRequest { endpoint_id, scope, count, behind, known, held, may_lease }
}

fn set_reliability(
    running: &mut RunningAttempts,
    lane: &mut EndpointLane,
    reliability: Reliability,
) {
    *running.of(lane.reliability) -= lane.running_count;
    *running.of(reliability) += lane.running_count;
    lane.reliability = reliability;
}

fn list_changed(
    changed_lanes: &mut Vec<EndpointId>,
    endpoint_id: EndpointId,
    lane: &mut EndpointLane,
) {
    if !lane.is_change_listed {
        lane.is_change_listed = true;
        changed_lanes.push(endpoint_id);
    }
}

fn list_ready(
    ready_lanes: &mut VecDeque<EndpointId>,
    endpoint_id: EndpointId,
    lane: &mut EndpointLane,
) {
    if !lane.is_ready_listed && lane.is_ready() {
        lane.is_ready_listed = true;
        ready_lanes.push_back(endpoint_id);
    }
}

#[cfg(test)]
#[path = "scheduler_test.rs"]
mod tests;
