//! Decides which deliveries are taken and which attempts begin, without a store or a network.
//!
//! An endpoint that works may have several attempts running, and further deliveries taken. An
//! endpoint that fails or hangs gets little of both, so that it cannot delay other endpoints.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::backlog_yield::BacklogYield;
use super::known_endpoint::{KnownEndpoint, Reliability, Share, TakenDelivery};
use super::requests::{EndpointReading, EndpointWrites, TakeRequest};
use super::target::DeliveryTarget;
use crate::kernel::Scope;
use crate::webhooks::deliveries::{DueDelivery, FinishedAttempt};
use crate::webhooks::handover::{HandedDelivery, Offer};
use crate::webhooks::rows::EndpointId;
use crate::webhooks::sending::attempt::TOTAL_SECONDS_MAX;

/// The most attempts that run at the same time.
pub(super) const RUNNING_MAX: usize = 512;
/// How many of those attempts may belong to suspect endpoints ([`Reliability::Suspect`]).
pub(super) const RUNNING_SUSPECT_MAX: usize = RUNNING_MAX / 2;
/// How many of those attempts may belong to suspect and untried endpoints together
/// ([`Reliability::Untried`]). The rest is reserved for reliable endpoints.
pub(super) const RUNNING_UNPROVEN_MAX: usize = RUNNING_MAX / 4 * 3;
/// The pause after a failed attempt of an endpoint that is only probed, in milliseconds.
const PROBE_GAP_MILLISECONDS: u64 = 250;
/// An attempt that runs longer than this makes its endpoint suspect, in milliseconds.
pub(super) const SLOW_MILLISECONDS: u64 = 2_000;

/// Turns take no more deliveries while this many of all endpoints together are taken and not yet
/// sent.
const TAKEN_TOTAL_MAX: usize = 8_192;
/// An attempt begins only if at least this much of its lease is left, in milliseconds: enough for
/// the longest attempt and for recording it. If a chaos profile sends the delivery twice, the lease
/// may end before the second answer. Then the delivery is sent again.
const LEASE_LEFT_MILLISECONDS_MIN: i64 = TOTAL_SECONDS_MAX as i64 * 1_000 + 5_000;

/// How long an endpoint's URL, secrets and status (its target) are used before they are read again,
/// in milliseconds.
const TARGET_KEPT_MILLISECONDS: u64 = 1_000;
/// With this many endpoints known, the scheduler forgets the idle ones before it notes another one
/// as due.
const KNOWN_ENDPOINTS_MAX: usize = 20_000;
/// The pause of an endpoint whose rows cannot be read, in seconds.
const BROKEN_PAUSE_SECONDS: u64 = 60;
/// How long turns continue through a backlog, each where the last one ended, before one begins at
/// the backlog's beginning again, in milliseconds.
const BACKLOG_READ_ON_MILLISECONDS: u64 = 1_000;
/// The pause of an endpoint whose queue is leased by another node, in milliseconds.
const EXCLUDED_PAUSE_MILLISECONDS: u64 = 1_000;

pub(super) struct AttemptStart {
    pub(super) endpoint_id: EndpointId,
    pub(super) target: Arc<DeliveryTarget>,
    pub(super) taken: TakenDelivery,
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

    /// Whether another attempt of an endpoint of this reliability may begin.
    const fn has_room(&self, reliability: Reliability) -> bool {
        let unproven_have_room = self.untried + self.suspect < RUNNING_UNPROVEN_MAX;
        self.total() < RUNNING_MAX
            && match reliability {
                Reliability::Reliable => true,
                Reliability::Untried => unproven_have_room,
                Reliability::Suspect => unproven_have_room && self.suspect < RUNNING_SUSPECT_MAX,
            }
    }
}

#[derive(Default)]
pub(super) struct Scheduler {
    pub(super) endpoints: HashMap<EndpointId, KnownEndpoint>,
    /// Endpoints with due deliveries, in the order in which turns take from them. An endpoint that
    /// no longer has any is removed when it has come to the front.
    due_endpoints: VecDeque<EndpointId>,
    /// Endpoints that may begin an attempt, in the order in which they begin one.
    ready_endpoints: VecDeque<EndpointId>,
    /// Endpoints that the next turn for their share reads even if they want no deliveries: their
    /// target is too old, the lease of their queue has to be renewed or released, or the turn that
    /// read them failed.
    pub(super) stale_endpoints: Vec<EndpointId>,
    /// Endpoints whose offer may have changed. An offer tells the sequencer how many deliveries it
    /// can hand over for the endpoint ([`Offer`]).
    changed_endpoints: Vec<EndpointId>,
    /// Deliveries of all endpoints together that are taken and not yet sent.
    taken_count: usize,
    running: RunningAttempts,
    backlog_yield: BacklogYield,
    /// Whether endpoints with a backlog must not begin anything now.
    backlog_yields: bool,
    /// Whether backlogs are sent under leases of their queues.
    pub(super) leases_queues: bool,
}

impl Scheduler {
    pub(super) const fn running_count(&self) -> usize {
        self.running.total()
    }

    /// Notes whether a look, a turn for endpoints without a backlog, or the sequencer has work.
    /// Answers until when endpoints with a backlog begin nothing; `None` if they do not yield.
    pub(super) fn note_others(&mut self, others_work: bool, now: Instant) -> Option<Instant> {
        let yields_until = self.backlog_yield.until(others_work, now);
        self.backlog_yields = yields_until.is_some();
        yields_until
    }

    /// Whether the endpoints of a share must not begin anything now.
    pub(super) fn yields(&self, share: Share) -> bool {
        self.backlog_yields && share == Share::Backlog
    }

    /// Notes that an endpoint has due deliveries. Ignores the endpoint if too many are known and
    /// not idle. The next look that reads everything finds it again.
    pub(super) fn note_due(&mut self, endpoint_id: EndpointId, scope: Scope, now: Instant) {
        if self.endpoints.len() >= KNOWN_ENDPOINTS_MAX && !self.endpoints.contains_key(&endpoint_id)
        {
            let idle = self.endpoints.extract_if(|_, endpoint| endpoint.is_idle());
            self.changed_endpoints.extend(idle.map(|(endpoint_id, _)| endpoint_id));
            // A forgotten endpoint leaves these lists too, so that it is not listed twice when it
            // comes back.
            self.due_endpoints.retain(|listed| self.endpoints.contains_key(listed));
            self.ready_endpoints.retain(|listed| self.endpoints.contains_key(listed));
            if self.endpoints.len() >= KNOWN_ENDPOINTS_MAX {
                return;
            }
        }
        let endpoint =
            self.endpoints.entry(endpoint_id).or_insert_with(|| KnownEndpoint::new(scope, now));
        endpoint.has_due = true;
        list_changed(&mut self.changed_endpoints, endpoint_id, endpoint);
        if !endpoint.is_due_listed {
            endpoint.is_due_listed = true;
            self.due_endpoints.push_back(endpoint_id);
        }
    }

    /// Whether a look, a turn for endpoints without a backlog, or the sequencer had work lately.
    pub(super) fn others_worked_lately(&self, now: Instant) -> bool {
        self.backlog_yield.others_worked_lately(now)
    }

    /// The share that an endpoint belongs to.
    pub(super) fn share_of(&self, endpoint_id: EndpointId) -> Share {
        self.endpoints.get(&endpoint_id).map_or(Share::CaughtUp, KnownEndpoint::share)
    }

    /// What a turn for this share reads next: at most `taken_max` deliveries in all, of endpoints
    /// that want some, in their order. The turn also reads the share's endpoints in
    /// `stale_endpoints`. If endpoints pause, `wakes_at` becomes the end of the first pause, unless
    /// `wakes_at` is earlier already.
    pub(super) fn take_requests(
        &mut self,
        share: Share,
        taken_max: usize,
        now: Instant,
        wakes_at: &mut Instant,
    ) -> Vec<TakeRequest> {
        let mut requests = Vec::new();
        let mut count_left = taken_max.min(TAKEN_TOTAL_MAX.saturating_sub(self.taken_count));
        for _ in 0..self.due_endpoints.len() {
            if count_left == 0 {
                break;
            }
            let Some(endpoint_id) = self.due_endpoints.pop_front() else { break };
            let Some(endpoint) = self.endpoints.get_mut(&endpoint_id) else { continue };
            if !endpoint.has_due {
                endpoint.is_due_listed = false;
                continue;
            }
            self.due_endpoints.push_back(endpoint_id);
            if endpoint.share() != share {
                continue;
            }
            if endpoint.pause_ends_at() > now {
                *wakes_at = (*wakes_at).min(endpoint.pause_ends_at());
            }
            let count = if self.running.has_room(endpoint.reliability) {
                endpoint.wanted(now).min(count_left)
            } else {
                0
            };
            if count > 0 {
                count_left -= count;
                if now >= endpoint.reads_anew_at {
                    endpoint.last_read = None;
                    endpoint.reads_anew_at =
                        now + Duration::from_millis(BACKLOG_READ_ON_MILLISECONDS);
                }
                requests.push(request(endpoint_id, endpoint, count, self.leases_queues));
            }
        }
        let (stale, of_other_share) = std::mem::take(&mut self.stale_endpoints)
            .into_iter()
            .partition(|endpoint_id| self.share_of(*endpoint_id) == share);
        self.stale_endpoints = of_other_share;
        let stale: Vec<EndpointId> = stale;
        for endpoint_id in stale {
            let Some(endpoint) = self.endpoints.get(&endpoint_id) else { continue };
            if !requests.iter().any(|request| request.endpoint_id == endpoint_id) {
                requests.push(request(endpoint_id, endpoint, 0, self.leases_queues));
            }
        }
        requests
    }

    /// Makes the next turn read these endpoints, because the turn that read them failed.
    pub(super) fn read_again(&mut self, endpoint_ids: &[EndpointId]) {
        self.stale_endpoints.extend(endpoint_ids);
    }

    /// Notes what a turn read about one endpoint, and what it wrote.
    pub(super) fn note_reading(
        &mut self,
        reading: &EndpointReading,
        lease_ends_milliseconds: i64,
        outcome: &EndpointWrites,
        now: Instant,
    ) {
        let Some(endpoint) = self.endpoints.get_mut(&reading.endpoint_id) else { return };
        list_changed(&mut self.changed_endpoints, reading.endpoint_id, endpoint);
        let is_new = endpoint.target.is_none();
        if reading.is_broken {
            endpoint.left_alone_until = now + Duration::from_secs(BROKEN_PAUSE_SECONDS);
            self.taken_count -= endpoint.lose_lease();
            self.taken_count -= endpoint.taken.len();
            endpoint.taken.clear();
            return;
        }
        endpoint.target = reading.target.clone();
        endpoint.target_ends_at = now + Duration::from_millis(TARGET_KEPT_MILLISECONDS);
        if outcome.queue_lease_ends_milliseconds.is_none() {
            self.taken_count -= endpoint.lose_lease();
        }
        endpoint.queue_lease_ends_milliseconds = outcome.queue_lease_ends_milliseconds;
        if reading.target.is_none() {
            self.taken_count -= endpoint.taken.len();
            endpoint.taken.clear();
            (endpoint.has_due, endpoint.has_backlog) = (false, false);
            return;
        }
        if is_new && reading.health.failures_count > 0 {
            endpoint.failures_count = reading.health.failures_count;
            set_reliability(&mut self.running, endpoint, Reliability::Suspect);
        }
        if reading.is_excluded {
            endpoint.left_alone_until = now + Duration::from_millis(EXCLUDED_PAUSE_MILLISECONDS);
            (endpoint.has_due, endpoint.has_backlog, endpoint.last_read) = (true, false, None);
        } else if reading.requested_count > 0 {
            endpoint.has_backlog = !reading.is_drained;
            endpoint.last_read = reading.last_read;
            endpoint.has_due = !reading.is_drained || outcome.taken.contains(&false);
        }
        let taken = reading.due.iter().zip(&outcome.taken).filter(|(_, is_taken)| **is_taken);
        let count_before = endpoint.taken.len();
        let lease_ends_milliseconds =
            (!reading.is_under_queue_lease).then_some(lease_ends_milliseconds);
        for (due, _) in taken {
            if reading.is_under_queue_lease {
                endpoint.held.insert((due.id, due.due_milliseconds));
            }
            let due = due.clone();
            endpoint.taken.push_back(TakenDelivery { due, lease_ends_milliseconds });
        }
        self.taken_count += endpoint.taken.len() - count_before;
        list_ready(&mut self.ready_endpoints, reading.endpoint_id, endpoint);
    }

    /// Takes deliveries that the sequencer wrote as claimed. The sequencer read each endpoint when
    /// the delivery's schedule began. If it found the version that is known here, the target counts
    /// as read at that moment. Otherwise a turn reads the target before anything is sent.
    pub(super) fn take_handed(
        &mut self,
        handed: Vec<HandedDelivery>,
        now: Instant,
        now_milliseconds: i64,
    ) {
        for delivery in handed {
            let HandedDelivery { scope, endpoint_id, version, due, lease_ends_milliseconds } =
                delivery;
            let endpoint =
                self.endpoints.entry(endpoint_id).or_insert_with(|| KnownEndpoint::new(scope, now));
            list_changed(&mut self.changed_endpoints, endpoint_id, endpoint);
            if endpoint.target.as_ref().is_some_and(|target| target.version == version) {
                let age = now_milliseconds.saturating_sub(due.schedule_start_milliseconds);
                let left = TARGET_KEPT_MILLISECONDS.saturating_sub(age.max(0).unsigned_abs());
                endpoint.target_ends_at =
                    endpoint.target_ends_at.max(now + Duration::from_millis(left));
            } else {
                endpoint.target_ends_at = now;
            }
            let lease_ends_milliseconds = Some(lease_ends_milliseconds);
            endpoint.taken.push_back(TakenDelivery { due, lease_ends_milliseconds });
            self.taken_count += 1;
            list_ready(&mut self.ready_endpoints, endpoint_id, endpoint);
        }
    }

    /// Takes out the endpoints whose offer to the sequencer may have changed, with the new offers.
    pub(super) fn drain_offers(&mut self, now: Instant) -> Vec<(EndpointId, Option<Offer>)> {
        let offer = |endpoint_id: EndpointId| {
            let endpoint = self.endpoints.get_mut(&endpoint_id);
            let offer = endpoint.and_then(|endpoint| {
                endpoint.is_change_listed = false;
                endpoint.offer(now)
            });
            (endpoint_id, offer)
        };
        self.changed_endpoints.drain(..).map(offer).collect()
    }

    /// How many more attempts can begin now.
    pub(super) fn room_total(&self) -> usize {
        RUNNING_MAX.saturating_sub(self.running.total())
    }

    /// Begins as many attempts as may run. The ready endpoints alternate, with one attempt each.
    pub(super) fn begin_attempts(
        &mut self,
        now: Instant,
        now_milliseconds: i64,
    ) -> Vec<AttemptStart> {
        let mut starts = Vec::new();
        let mut waiting_count = 0;
        while waiting_count < self.ready_endpoints.len() && self.running.total() < RUNNING_MAX {
            let Some(endpoint_id) = self.ready_endpoints.pop_front() else { break };
            let Some(endpoint) = self.endpoints.get_mut(&endpoint_id) else { continue };
            endpoint.is_ready_listed = false;
            if !endpoint.is_ready() {
                continue;
            }
            let yields = self.backlog_yields && endpoint.share() == Share::Backlog;
            if yields || !self.running.has_room(endpoint.reliability) {
                endpoint.is_ready_listed = true;
                self.ready_endpoints.push_back(endpoint_id);
                waiting_count += 1;
                continue;
            }
            let is_fresh = now < endpoint.target_ends_at;
            let Some(target) = endpoint.target.clone().filter(|_| is_fresh) else {
                self.stale_endpoints.push(endpoint_id);
                continue;
            };
            let next = endpoint.taken.front();
            let is_under_queue_lease = next.is_some_and(TakenDelivery::is_under_queue_lease);
            let is_too_late = endpoint.next_lease_ends_milliseconds().is_none_or(|ends| {
                ends.saturating_sub(now_milliseconds) < LEASE_LEFT_MILLISECONDS_MIN
            });
            if is_under_queue_lease && is_too_late {
                // A turn renews the lease of the queue first.
                self.stale_endpoints.push(endpoint_id);
                continue;
            }
            waiting_count = 0;
            if let Some(taken) = endpoint.taken.pop_front() {
                self.taken_count -= 1;
                list_changed(&mut self.changed_endpoints, endpoint_id, endpoint);
                // A delivery that waited too long is dropped. It is due again when its claim ends.
                if !is_too_late {
                    endpoint.running_count += 1;
                    *self.running.of(endpoint.reliability) += 1;
                    starts.push(AttemptStart { endpoint_id, target, taken });
                }
            }
            list_ready(&mut self.ready_endpoints, endpoint_id, endpoint);
        }
        starts
    }

    /// Makes an endpoint suspect because one of its attempts is slow ([`SLOW_MILLISECONDS`]).
    pub(super) fn note_slow_attempt(&mut self, endpoint_id: EndpointId) {
        if let Some(endpoint) = self.endpoints.get_mut(&endpoint_id) {
            list_changed(&mut self.changed_endpoints, endpoint_id, endpoint);
            set_reliability(&mut self.running, endpoint, Reliability::Suspect);
        }
    }

    /// Notes that an attempt ended. `finished` is `None` if the attempt's task panicked.
    pub(super) fn note_ended_attempt(
        &mut self,
        endpoint_id: EndpointId,
        finished: Option<&FinishedAttempt>,
        now: Instant,
    ) {
        // An endpoint with running attempts is never forgotten, so it is always found.
        let Some(endpoint) = self.endpoints.get_mut(&endpoint_id) else { return };
        list_changed(&mut self.changed_endpoints, endpoint_id, endpoint);
        endpoint.running_count -= 1;
        *self.running.of(endpoint.reliability) -= 1;
        let is_success = finished.is_some_and(|finished| finished.is_success);
        let is_quick = finished
            .is_some_and(|finished| u64::from(finished.duration_milliseconds) < SLOW_MILLISECONDS);
        endpoint.failures_count = if is_success { 0 } else { endpoint.failures_count + 1 };
        endpoint.hangs = !is_success && !is_quick;
        let reliability =
            if is_success && is_quick { Reliability::Reliable } else { Reliability::Suspect };
        set_reliability(&mut self.running, endpoint, reliability);
        if endpoint.is_probed() {
            endpoint.rests_until = now + Duration::from_millis(PROBE_GAP_MILLISECONDS);
        }
        if is_success {
            endpoint.rests_until = now;
        }
        if finished.is_none() {
            // Nothing is recorded of this attempt. If it ran under the lease of the queue, its
            // delivery is still due, but no read finds a delivery that this node still holds.
            self.taken_count -= endpoint.lose_lease();
        }
        list_ready(&mut self.ready_endpoints, endpoint_id, endpoint);
    }

    /// Forgets all deliveries that are taken and not sent. Answers the claimed ones by endpoint,
    /// each with the end of its claim.
    pub(super) fn drain_taken(&mut self) -> Vec<(EndpointId, Vec<(DueDelivery, i64)>)> {
        self.taken_count = 0;
        self.endpoints
            .iter_mut()
            .map(|(endpoint_id, endpoint)| {
                let claimed = endpoint.taken.drain(..).filter_map(|taken| {
                    taken.lease_ends_milliseconds.map(|ends| (taken.due, ends))
                });
                (*endpoint_id, claimed.collect::<Vec<_>>())
            })
            .filter(|(_, claimed)| !claimed.is_empty())
            .collect()
    }
}

fn request(
    endpoint_id: EndpointId,
    endpoint: &KnownEndpoint,
    count: usize,
    leases_queues: bool,
) -> TakeRequest {
    let (scope, after, known_target) =
        (endpoint.scope, endpoint.last_read, endpoint.target.clone());
    let (held, may_lease) = (endpoint.held.clone(), leases_queues && endpoint.may_lease());
    TakeRequest { endpoint_id, scope, count, after, known_target, held, may_lease }
}

fn set_reliability(
    running: &mut RunningAttempts,
    endpoint: &mut KnownEndpoint,
    reliability: Reliability,
) {
    *running.of(endpoint.reliability) -= endpoint.running_count;
    *running.of(reliability) += endpoint.running_count;
    endpoint.reliability = reliability;
}

fn list_changed(
    changed_endpoints: &mut Vec<EndpointId>,
    endpoint_id: EndpointId,
    endpoint: &mut KnownEndpoint,
) {
    if !endpoint.is_change_listed {
        endpoint.is_change_listed = true;
        changed_endpoints.push(endpoint_id);
    }
}

fn list_ready(
    ready_endpoints: &mut VecDeque<EndpointId>,
    endpoint_id: EndpointId,
    endpoint: &mut KnownEndpoint,
) {
    if !endpoint.is_ready_listed && endpoint.is_ready() {
        endpoint.is_ready_listed = true;
        ready_endpoints.push_back(endpoint_id);
    }
}

#[cfg(test)]
#[path = "scheduler_test.rs"]
mod tests;
