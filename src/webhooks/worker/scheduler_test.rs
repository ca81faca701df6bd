use super::*;
use crate::kernel::{Id, Mode, Scope};
use crate::webhooks::deliveries::LEASE_MILLISECONDS;
use crate::webhooks::rows::DeliveryId;
use crate::webhooks::state::EndpointStatus;
use crate::webhooks::worker::TAKEN_MAX;
use crate::webhooks::worker::backlog_yield::YIELD_MILLISECONDS_MAX;
use crate::webhooks::worker::known_endpoint::*;

const SCOPE: Scope = Scope::new(1, Mode::Test);

fn endpoint(now: Instant) -> KnownEndpoint {
    KnownEndpoint::new(SCOPE, now)
}

fn due(number: u128) -> DueDelivery {
    DueDelivery {
        id: Id::from_u128(number),
        schedule_start_milliseconds: 0,
        step: 0,
        attempts_count: 0,
        due_milliseconds: 0,
        event: None,
        watched: None,
    }
}

fn taken(number: u128) -> TakenDelivery {
    TakenDelivery { due: due(number), lease_ends_milliseconds: Some(LEASE_MILLISECONDS) }
}

fn outcome(taken: &[bool]) -> EndpointWrites {
    EndpointWrites { taken: taken.to_vec(), queue_lease_ends_milliseconds: None }
}

#[test]
fn reliable_untried_and_suspect_endpoints_have_different_limits() {
    let now = Instant::now();
    let mut endpoint = endpoint(now);
    assert_eq!(
        (endpoint.wanted(now), endpoint.running_max()),
        (ENDPOINT_TAKEN_UNTRIED_MAX, ENDPOINT_RUNNING_UNTRIED_MAX)
    );
    endpoint.reliability = Reliability::Reliable;
    assert_eq!(
        (endpoint.wanted(now), endpoint.running_max()),
        (ENDPOINT_TAKEN_MAX, ENDPOINT_RUNNING_MAX)
    );
    endpoint.taken.extend((0..=ENDPOINT_TAKEN_MAX as u128 / 2).map(taken));
    assert_eq!(endpoint.wanted(now), 0, "not before half is sent");
    endpoint.taken.pop_front();
    assert_eq!(endpoint.wanted(now), ENDPOINT_TAKEN_MAX / 2);
    endpoint.taken.clear();
    endpoint.reliability = Reliability::Suspect;
    endpoint.failures_count = PROBED_FAILURES_MIN - 1;
    endpoint.running_count = 1;
    assert_eq!(
        (endpoint.wanted(now), endpoint.running_max()),
        (ENDPOINT_RUNNING_MAX - 1, ENDPOINT_RUNNING_MAX)
    );
    endpoint.hangs = true;
    assert_eq!((endpoint.wanted(now), endpoint.running_max()), (1, ENDPOINT_RUNNING_UNTRIED_MAX));
    endpoint.running_count = 0;
    endpoint.failures_count = PROBED_FAILURES_MIN;
    assert_eq!((endpoint.wanted(now), endpoint.running_max()), (1, 1));
    endpoint.rests_until = now + Duration::from_millis(1);
    assert_eq!(endpoint.wanted(now), 0, "probes keep their distance");
    endpoint.rests_until = now;
    endpoint.running_count = 1;
    assert_eq!(endpoint.wanted(now), 0, "one probe at a time");
}

#[test]
fn suspect_and_untried_endpoints_leave_room_for_those_that_work() {
    let mut running = RunningAttempts { reliable: 0, untried: 0, suspect: RUNNING_SUSPECT_MAX };
    assert!(!running.has_room(Reliability::Suspect));
    assert!(running.has_room(Reliability::Untried) && running.has_room(Reliability::Reliable));
    running.untried = RUNNING_UNPROVEN_MAX - RUNNING_SUSPECT_MAX;
    assert!(!running.has_room(Reliability::Untried));
    assert!(running.has_room(Reliability::Reliable));
    running.reliable = RUNNING_MAX - running.untried - running.suspect;
    assert!(!running.has_room(Reliability::Reliable));

    // The same with many untried endpoints and few suspect ones.
    let untried = RUNNING_UNPROVEN_MAX - 1;
    let mut running = RunningAttempts { reliable: 0, untried, suspect: 0 };
    assert!(running.has_room(Reliability::Suspect));
    running.suspect = 1;
    assert!(!running.has_room(Reliability::Suspect) && !running.has_room(Reliability::Untried));
    assert!(running.has_room(Reliability::Reliable));

    let mut endpoint = endpoint(Instant::now());
    endpoint.running_count = 3;
    let mut running = RunningAttempts { reliable: 5, untried: 3, suspect: 0 };
    set_reliability(&mut running, &mut endpoint, Reliability::Suspect);
    assert_eq!((running.reliable, running.untried, running.suspect), (5, 0, 3));
}

/// If an endpoint were listed twice, two requests of one turn would take the same deliveries.
#[test]
fn an_endpoint_that_was_forgotten_is_listed_once_when_it_comes_back() {
    let now = Instant::now();
    let mut wakes_at = now + Duration::from_secs(1);
    let mut scheduler = Scheduler::default();
    for number in 0..KNOWN_ENDPOINTS_MAX as u128 {
        scheduler.note_due(Id::from_u128(number), SCOPE, now);
    }
    scheduler.endpoints.values_mut().for_each(|endpoint| endpoint.has_due = false);
    let (first, one_more) = (Id::from_u128(0), Id::from_u128(KNOWN_ENDPOINTS_MAX as u128));
    scheduler.note_due(one_more, SCOPE, now);
    assert_eq!(scheduler.endpoints.len(), 1, "all the others were idle");
    scheduler.note_due(first, SCOPE, now);
    let requests = scheduler.take_requests(Share::CaughtUp, TAKEN_MAX, now, &mut wakes_at);
    let asked: Vec<EndpointId> = requests.iter().map(|request| request.endpoint_id).collect();
    assert_eq!(asked, [one_more, first]);
}

/// Follows a delivery through the scheduler from beginning to end.
#[test]
fn a_due_delivery_is_claimed_then_sent_and_a_deleted_endpoint_loses_its_claims() {
    let now = Instant::now();
    let mut wakes_at = now + Duration::from_secs(1);
    let mut scheduler = Scheduler::default();
    let endpoint_id = Id::from_u128(7);
    scheduler.note_due(endpoint_id, SCOPE, now);
    scheduler.note_due(endpoint_id, SCOPE, now);
    let requests = scheduler.take_requests(Share::CaughtUp, TAKEN_MAX, now, &mut wakes_at);
    assert_eq!(requests.len(), 1, "listed once");
    assert_eq!((requests[0].count, requests[0].known_target.is_none()), (8, true));

    let mut reading = EndpointReading::empty(&requests[0]);
    reading.target = Some(Arc::new(DeliveryTarget::of_tests(SCOPE, EndpointStatus::Enabled)));
    reading.due = vec![due(1), due(2), due(3)];
    scheduler.note_reading(&reading, LEASE_MILLISECONDS, &outcome(&[true, false, true]), now);
    assert_eq!(scheduler.taken_count, 2, "another node claimed the second one");
    let starts = scheduler.begin_attempts(now, 0);
    assert_eq!((starts.len(), scheduler.running_count()), (2, 2));
    assert!(scheduler.begin_attempts(now, 0).is_empty());
    scheduler.note_ended_attempt(endpoint_id, None, now);
    scheduler.note_ended_attempt(endpoint_id, None, now);
    assert_eq!(scheduler.running_count(), 0);

    // A delivery whose claim would end during the attempt is not sent.
    scheduler.note_reading(&reading, LEASE_MILLISECONDS, &outcome(&[true, false, false]), now);
    let late_milliseconds = LEASE_MILLISECONDS - LEASE_LEFT_MILLISECONDS_MIN + 1;
    assert!(scheduler.begin_attempts(now, late_milliseconds).is_empty());
    assert_eq!(scheduler.taken_count, 0);

    // A target that is too old is read again before anything is sent.
    scheduler.note_reading(&reading, LEASE_MILLISECONDS, &outcome(&[true, true, true]), now);
    let later = now + Duration::from_millis(TARGET_KEPT_MILLISECONDS);
    assert!(scheduler.begin_attempts(later, 0).is_empty());
    let requests = scheduler.take_requests(Share::CaughtUp, TAKEN_MAX, later, &mut wakes_at);
    assert!(requests.iter().any(|request| request.endpoint_id == endpoint_id));
    reading.target = None;
    scheduler.note_reading(&reading, LEASE_MILLISECONDS, &outcome(&[]), later);
    assert_eq!(scheduler.taken_count, 0);
    assert!(scheduler.drain_taken().is_empty());
}

#[test]
fn endpoints_with_a_backlog_and_all_others_have_turns_of_their_own() {
    let now = Instant::now();
    let mut wakes_at = now + Duration::from_secs(1);
    let mut scheduler = Scheduler::default();
    let (behind, caught_up) = (Id::from_u128(7), Id::from_u128(8));
    for endpoint_id in [behind, caught_up] {
        scheduler.note_due(endpoint_id, SCOPE, now);
    }
    let of_backlogs = scheduler.take_requests(Share::Backlog, TAKEN_MAX, now, &mut wakes_at);
    assert!(of_backlogs.is_empty(), "nobody is behind yet");
    for request in scheduler.take_requests(Share::CaughtUp, TAKEN_MAX, now, &mut wakes_at) {
        let mut reading = EndpointReading::empty(&request);
        reading.target = Some(Arc::new(DeliveryTarget::of_tests(SCOPE, EndpointStatus::Enabled)));
        reading.is_drained = request.endpoint_id == caught_up;
        scheduler.note_reading(&reading, LEASE_MILLISECONDS, &outcome(&[]), now);
    }
    let shares = [behind, caught_up].map(|endpoint_id| scheduler.share_of(endpoint_id));
    assert_eq!(shares, [Share::Backlog, Share::CaughtUp]);
    let mut requested = |scheduler: &mut Scheduler, share| {
        let requests = scheduler.take_requests(share, TAKEN_MAX, now, &mut wakes_at);
        requests.iter().map(|request| request.endpoint_id).collect::<Vec<_>>()
    };
    assert_eq!(requested(&mut scheduler, Share::CaughtUp), []);
    scheduler.note_due(caught_up, SCOPE, now);
    assert_eq!(requested(&mut scheduler, Share::CaughtUp), [caught_up]);
    assert_eq!(requested(&mut scheduler, Share::Backlog), [behind]);
}

/// PostgreSQL's index keeps entries of deliveries that are no longer due, in front of a backlog,
/// until it is vacuumed. So most reads continue where the last one ended. One read a second begins
/// at the beginning, and so does the read after one that has reached the backlog's end.
#[test]
fn a_backlog_is_read_on_and_now_and_then_from_its_beginning() {
    let now = Instant::now();
    let mut wakes_at = now + Duration::from_secs(1);
    let mut scheduler = Scheduler::default();
    let endpoint_id = Id::from_u128(7);
    scheduler.note_due(endpoint_id, SCOPE, now);
    let mut request_at = |scheduler: &mut Scheduler, share, at| {
        let mut requests = scheduler.take_requests(share, TAKEN_MAX, at, &mut wakes_at);
        assert_eq!(requests.len(), 1);
        requests.remove(0)
    };
    let take = |scheduler: &mut Scheduler, request: &TakeRequest, last_read, is_drained| {
        let mut reading = EndpointReading::empty(request);
        reading.target = Some(Arc::new(DeliveryTarget::of_tests(SCOPE, EndpointStatus::Enabled)));
        (reading.last_read, reading.is_drained) = (last_read, is_drained);
        scheduler.note_reading(&reading, LEASE_MILLISECONDS, &outcome(&[]), now);
    };
    let request = request_at(&mut scheduler, Share::CaughtUp, now);
    assert_eq!(request.after, None);
    let position = Some((3, Id::from_u128(9)));
    take(&mut scheduler, &request, position, false);
    let request = request_at(&mut scheduler, Share::Backlog, now);
    assert_eq!(request.after, position);
    // The read reached the backlog's end.
    take(&mut scheduler, &request, None, false);
    let request = request_at(&mut scheduler, Share::Backlog, now);
    assert_eq!(request.after, None);
    take(&mut scheduler, &request, position, false);
    let later = now + Duration::from_millis(BACKLOG_READ_ON_MILLISECONDS);
    assert_eq!(request_at(&mut scheduler, Share::Backlog, later).after, None);
    take(&mut scheduler, &request, None, true);
    assert_eq!(scheduler.share_of(endpoint_id), Share::CaughtUp);
}

#[test]
fn a_turn_takes_no_more_than_its_limit() {
    let now = Instant::now();
    let mut wakes_at = now;
    let mut scheduler = Scheduler::default();
    for endpoint_id in [7, 8, 9].map(Id::from_u128) {
        scheduler.note_due(endpoint_id, SCOPE, now);
    }
    let mut wanted = |taken_max| {
        let requests = scheduler.take_requests(Share::CaughtUp, taken_max, now, &mut wakes_at);
        requests.iter().map(|request| request.count).collect::<Vec<_>>()
    };
    let each = ENDPOINT_TAKEN_UNTRIED_MAX;
    assert_eq!(wanted(each + 1), [each, 1]);
    assert_eq!(wanted(TAKEN_MAX), [each; 3], "nothing was taken yet");
}

/// Two endpoints, one of them with a backlog, each with one delivery claimed.
fn scheduler_with_a_backlog(now: Instant) -> (Scheduler, EndpointId, EndpointId) {
    let mut scheduler = Scheduler::default();
    let (behind, caught_up) = (Id::from_u128(7), Id::from_u128(8));
    for endpoint_id in [behind, caught_up] {
        scheduler.note_due(endpoint_id, SCOPE, now);
    }
    let mut wakes_at = now;
    for request in scheduler.take_requests(Share::CaughtUp, TAKEN_MAX, now, &mut wakes_at) {
        let mut reading = EndpointReading::empty(&request);
        reading.target = Some(Arc::new(DeliveryTarget::of_tests(SCOPE, EndpointStatus::Enabled)));
        reading.due = vec![due(1)];
        reading.is_drained = request.endpoint_id == caught_up;
        scheduler.note_reading(&reading, LEASE_MILLISECONDS, &outcome(&[true]), now);
    }
    (scheduler, behind, caught_up)
}

#[test]
fn attempts_of_a_backlog_begin_once_others_are_done() {
    let now = Instant::now();
    let (mut scheduler, behind, caught_up) = scheduler_with_a_backlog(now);
    let begun = |scheduler: &mut Scheduler, at| {
        let starts = scheduler.begin_attempts(at, 0);
        starts.iter().map(|start| start.endpoint_id).collect::<Vec<_>>()
    };
    assert!(scheduler.note_others(true, now).is_some());
    assert!(scheduler.yields(Share::Backlog) && !scheduler.yields(Share::CaughtUp));
    assert_eq!(begun(&mut scheduler, now), [caught_up]);
    assert_eq!(begun(&mut scheduler, now), []);
    assert_eq!(scheduler.note_others(false, now), None);
    assert!(!scheduler.yields(Share::Backlog));
    assert_eq!(begun(&mut scheduler, now), [behind]);

    // The control: where nothing yields, both begin.
    let (mut scheduler, behind, caught_up) = scheduler_with_a_backlog(now);
    assert_eq!(begun(&mut scheduler, now), [behind, caught_up]);
}

#[test]
fn attempts_of_a_backlog_begin_beside_others_who_never_stop() {
    let now = Instant::now();
    let (mut scheduler, behind, caught_up) = scheduler_with_a_backlog(now);
    let until = scheduler.note_others(true, now).unwrap();
    assert_eq!(until - now, Duration::from_millis(YIELD_MILLISECONDS_MAX));
    assert_eq!(scheduler.begin_attempts(now, 0)[0].endpoint_id, caught_up);
    assert_eq!(scheduler.note_others(true, until), None);
    assert_eq!(scheduler.begin_attempts(until, 0)[0].endpoint_id, behind);
}

/// An endpoint whose last attempt succeeded, with nothing due and nothing running.
fn scheduler_with_a_caught_up_endpoint(now: Instant) -> (Scheduler, EndpointId) {
    let mut scheduler = Scheduler::default();
    let endpoint_id = Id::from_u128(7);
    scheduler.note_due(endpoint_id, SCOPE, now);
    read_drained(&mut scheduler, endpoint_id, 1, now);
    assert_eq!(scheduler.drain_offers(now), [(endpoint_id, None)], "it has not been tried");
    succeed(&mut scheduler, endpoint_id, now);
    (scheduler, endpoint_id)
}

/// Notes a turn that claims one delivery, `number`, and finds nothing else due.
fn read_drained(scheduler: &mut Scheduler, endpoint_id: EndpointId, number: u128, now: Instant) {
    let mut wakes_at = now;
    let mut requests = scheduler.take_requests(Share::CaughtUp, TAKEN_MAX, now, &mut wakes_at);
    assert_eq!(requests.len(), 1);
    let mut reading = EndpointReading::empty(&requests.remove(0));
    assert_eq!(reading.endpoint_id, endpoint_id);
    reading.target = Some(Arc::new(DeliveryTarget::of_tests(SCOPE, EndpointStatus::Enabled)));
    reading.due = vec![due(number)];
    scheduler.note_reading(&reading, LEASE_MILLISECONDS, &outcome(&[true]), now);
}

/// Begins the only attempt that may begin, and lets it succeed.
fn succeed(scheduler: &mut Scheduler, endpoint_id: EndpointId, now: Instant) {
    let starts = scheduler.begin_attempts(now, 0);
    assert_eq!(starts.len(), 1);
    let finished = finished(&starts[0].taken.due, true);
    scheduler.note_ended_attempt(endpoint_id, Some(&finished), now);
}

fn finished(due: &DueDelivery, is_success: bool) -> FinishedAttempt {
    FinishedAttempt {
        delivery_id: due.id,
        schedule_start_milliseconds: due.schedule_start_milliseconds,
        step: due.step,
        attempts_count: due.attempts_count,
        due_milliseconds: LEASE_MILLISECONDS,
        holder: None,
        attempted_milliseconds: 0,
        is_success,
        http_status: None,
        error: None,
        duration_milliseconds: 1,
        answer: String::new(),
        retry_after_seconds: None,
        watched: None,
        attacked_http_status: None,
    }
}

/// A delivery that the sequencer wrote as claimed at the time 0, when the endpoint had version 1.
fn handed(endpoint_id: EndpointId, number: u128) -> HandedDelivery {
    let lease_ends_milliseconds = LEASE_MILLISECONDS;
    let due = due(number);
    HandedDelivery { scope: SCOPE, endpoint_id, version: 1, due, lease_ends_milliseconds }
}

fn offer(room: usize) -> Option<Offer> {
    Some(Offer { version: 1, room })
}

#[test]
fn an_endpoint_that_works_and_is_caught_up_is_offered_with_its_room() {
    let now = Instant::now();
    let (mut scheduler, endpoint_id) = scheduler_with_a_caught_up_endpoint(now);
    let room_total = scheduler.room_total();
    assert_eq!(room_total, RUNNING_MAX);
    assert_eq!(scheduler.drain_offers(now), [(endpoint_id, offer(ENDPOINT_RUNNING_MAX))]);
    assert_eq!(scheduler.drain_offers(now), [], "each change is offered once");

    // What is handed over is sent without a turn, and takes room until the attempt ends.
    scheduler.take_handed(vec![handed(endpoint_id, 2), handed(endpoint_id, 3)], now, 0);
    let starts = scheduler.begin_attempts(now, 0);
    let numbers: Vec<u128> = starts.iter().map(|start| start.taken.due.id.as_u128()).collect();
    assert_eq!(numbers, [2, 3]);
    assert_eq!(scheduler.room_total(), room_total - 2);
    assert_eq!(scheduler.drain_offers(now), [(endpoint_id, offer(ENDPOINT_RUNNING_MAX - 2))]);
    scheduler.note_ended_attempt(endpoint_id, Some(&finished(&starts[0].taken.due, true)), now);
    assert_eq!(scheduler.drain_offers(now), [(endpoint_id, offer(ENDPOINT_RUNNING_MAX - 1))]);

    // An attempt that fails ends the offer, and so does one that is slow.
    scheduler.note_ended_attempt(endpoint_id, Some(&finished(&starts[1].taken.due, false)), now);
    assert_eq!(scheduler.drain_offers(now), [(endpoint_id, None)]);
    let (mut scheduler, endpoint_id) = scheduler_with_a_caught_up_endpoint(now);
    scheduler.note_slow_attempt(endpoint_id);
    assert_eq!(scheduler.drain_offers(now), [(endpoint_id, None)]);
}

#[test]
fn an_endpoint_with_something_due_is_not_offered_until_a_turn_has_found_the_last_of_it() {
    let now = Instant::now();
    let (mut scheduler, endpoint_id) = scheduler_with_a_caught_up_endpoint(now);
    scheduler.note_due(endpoint_id, SCOPE, now);
    assert_eq!(scheduler.drain_offers(now), [(endpoint_id, None)]);
    read_drained(&mut scheduler, endpoint_id, 2, now);
    // One delivery is claimed, so there is less room.
    assert_eq!(scheduler.drain_offers(now), [(endpoint_id, offer(ENDPOINT_RUNNING_MAX - 1))]);
    // What is handed over is sent after the claimed one.
    scheduler.take_handed(vec![handed(endpoint_id, 3)], now, 0);
    let starts = scheduler.begin_attempts(now, 0);
    let numbers: Vec<u128> = starts.iter().map(|start| start.taken.due.id.as_u128()).collect();
    assert_eq!(numbers, [2, 3]);
}

/// A delivery that was handed over is sent at once if the sequencer read the endpoint a moment ago,
/// in the version that the scheduler knows. Otherwise the endpoint is read first.
#[test]
fn a_handed_delivery_is_sent_to_an_endpoint_as_it_was_read_a_moment_ago() {
    let now = Instant::now();
    let later = now + Duration::from_millis(TARGET_KEPT_MILLISECONDS);
    let begun = |version, at: Instant, at_milliseconds| {
        let (mut scheduler, endpoint_id) = scheduler_with_a_caught_up_endpoint(now);
        let handed = HandedDelivery { version, ..handed(endpoint_id, 2) };
        scheduler.take_handed(vec![handed], at, at_milliseconds);
        scheduler.begin_attempts(at, at_milliseconds).len()
    };
    let kept = TARGET_KEPT_MILLISECONDS as i64;
    assert_eq!(begun(1, later, 0), 1, "as fresh as the sequencer's read");
    assert_eq!(begun(1, later, kept - 1), 1);
    assert_eq!(begun(1, later, kept), 0, "that is too long ago");
    assert_eq!(begun(2, now, 0), 0, "it has changed");

    // An endpoint that is not known is also read first. If it was deleted, nothing is sent.
    let mut scheduler = Scheduler::default();
    let endpoint_id = Id::from_u128(8);
    scheduler.take_handed(vec![handed(endpoint_id, 1)], now, 0);
    assert!(scheduler.begin_attempts(now, 0).is_empty());
    let mut wakes_at = now;
    let requests = scheduler.take_requests(Share::CaughtUp, TAKEN_MAX, now, &mut wakes_at);
    assert_eq!((requests.len(), requests[0].count), (1, 0));
    let reading = EndpointReading::empty(&requests[0]);
    scheduler.note_reading(&reading, LEASE_MILLISECONDS, &outcome(&[]), now);
    assert!(scheduler.begin_attempts(now, 0).is_empty() && scheduler.drain_taken().is_empty());
}

#[test]
fn what_was_handed_over_and_is_not_sent_is_given_back() {
    let now = Instant::now();
    let (mut scheduler, endpoint_id) = scheduler_with_a_caught_up_endpoint(now);
    scheduler.take_handed(vec![handed(endpoint_id, 2)], now, 0);
    let given_back = scheduler.drain_taken();
    assert_eq!(given_back.len(), 1);
    let (delivery, lease_ends_milliseconds) = &given_back[0].1[0];
    assert_eq!((delivery.id, *lease_ends_milliseconds), (Id::from_u128(2), LEASE_MILLISECONDS));
    // A delivery whose claim would end during the attempt is not sent either.
    scheduler.take_handed(vec![handed(endpoint_id, 3)], now, 0);
    let late_milliseconds = LEASE_MILLISECONDS - LEASE_LEFT_MILLISECONDS_MIN + 1;
    assert!(scheduler.begin_attempts(now, late_milliseconds).is_empty());
    assert_eq!(scheduler.taken_count, 0);
}

/// A reliable endpoint with a backlog. The deliveries with these numbers were taken under the lease
/// of its queue.
fn scheduler_with_a_lease(now: Instant, numbers: &[u128]) -> (Scheduler, EndpointId) {
    let (mut scheduler, endpoint_id) = scheduler_with_a_caught_up_endpoint(now);
    scheduler.leases_queues = true;
    scheduler.note_due(endpoint_id, SCOPE, now);
    let request = only_request(&mut scheduler, Share::CaughtUp, now);
    assert!(request.may_lease && request.held.is_empty());
    let mut reading = leased_reading(&request);
    reading.due = numbers.iter().copied().map(due).collect();
    reading.is_under_queue_lease = true;
    let taken = vec![true; numbers.len()];
    let queue_lease_ends_milliseconds = Some(LEASE_MILLISECONDS);
    let outcome = EndpointWrites { taken, queue_lease_ends_milliseconds };
    scheduler.note_reading(&reading, 2 * LEASE_MILLISECONDS, &outcome, now);
    (scheduler, endpoint_id)
}

fn leased_reading(request: &TakeRequest) -> EndpointReading {
    let mut reading = EndpointReading::empty(request);
    reading.target = Some(Arc::new(DeliveryTarget::of_tests(SCOPE, EndpointStatus::Enabled)));
    reading.is_drained = false;
    reading
}

fn only_request(scheduler: &mut Scheduler, share: Share, now: Instant) -> TakeRequest {
    let mut wakes_at = now;
    let mut requests = scheduler.take_requests(share, TAKEN_MAX, now, &mut wakes_at);
    assert_eq!(requests.len(), 1);
    requests.remove(0)
}

fn held(number: u128) -> (DeliveryId, i64) {
    (Id::from_u128(number), 0)
}

#[test]
fn what_is_taken_under_the_lease_of_a_queue_is_held_until_it_is_recorded() {
    let now = Instant::now();
    let (mut scheduler, endpoint_id) = scheduler_with_a_lease(now, &[2, 3]);
    let starts = scheduler.begin_attempts(now, 0);
    let sent = starts
        .iter()
        .map(|AttemptStart { taken, .. }| (taken.is_under_queue_lease(), taken.due_milliseconds()));
    assert_eq!(sent.collect::<Vec<_>>(), [(true, 0); 2], "they keep their due time");
    for start in &starts {
        scheduler.note_ended_attempt(endpoint_id, Some(&finished(&start.taken.due, true)), now);
    }
    let request = only_request(&mut scheduler, Share::Backlog, now);
    assert_eq!(request.held, [held(2), held(3)].into());
    scheduler.forget_held(endpoint_id, held(2));
    let request = only_request(&mut scheduler, Share::Backlog, now);
    assert_eq!(request.held, [held(3)].into());
    // Nothing else is due. Once the last held delivery is recorded, a turn reads the endpoint to
    // release the lease.
    let mut reading = leased_reading(&request);
    reading.is_drained = true;
    let keep =
        EndpointWrites { queue_lease_ends_milliseconds: Some(1), ..EndpointWrites::default() };
    scheduler.note_reading(&reading, LEASE_MILLISECONDS, &keep, now);
    let mut wakes_at = now;
    let mut requests = |scheduler: &mut Scheduler| {
        scheduler.take_requests(Share::CaughtUp, TAKEN_MAX, now, &mut wakes_at).len()
    };
    assert_eq!(requests(&mut scheduler), 0);
    scheduler.forget_held(endpoint_id, held(3));
    assert_eq!(requests(&mut scheduler), 1);
    assert_eq!(scheduler.drain_leases(true), [endpoint_id]);
    assert_eq!(scheduler.drain_leases(false), []);
}

#[test]
fn nothing_is_sent_under_a_lease_that_ends_too_soon_or_is_lost() {
    let now = Instant::now();
    let (mut scheduler, _) = scheduler_with_a_lease(now, &[2, 3]);
    let late_milliseconds = LEASE_MILLISECONDS - LEASE_LEFT_MILLISECONDS_MIN + 1;
    assert!(scheduler.begin_attempts(now, late_milliseconds).is_empty());
    assert_eq!(scheduler.taken_count, 2, "they wait for a renewal");
    let request = only_request(&mut scheduler, Share::Backlog, now);
    let renewed = EndpointWrites {
        queue_lease_ends_milliseconds: Some(2 * LEASE_MILLISECONDS),
        ..EndpointWrites::default()
    };
    scheduler.note_reading(&leased_reading(&request), 0, &renewed, now);
    assert_eq!(scheduler.begin_attempts(now, late_milliseconds).len(), 2);

    let (mut scheduler, endpoint_id) = scheduler_with_a_lease(now, &[2, 3]);
    let request = only_request(&mut scheduler, Share::Backlog, now);
    let mut reading = leased_reading(&request);
    reading.is_excluded = true;
    scheduler.note_reading(&reading, 0, &EndpointWrites::default(), now);
    assert!(scheduler.begin_attempts(now, 0).is_empty());
    assert_eq!((scheduler.taken_count, scheduler.drain_taken().len()), (0, 0));
    // The endpoint is left to the other node for a while.
    let mut wakes_at = now + Duration::from_secs(9);
    let mut count = |at| {
        let requests = scheduler.take_requests(Share::CaughtUp, TAKEN_MAX, at, &mut wakes_at);
        requests.iter().filter(|request| request.endpoint_id == endpoint_id).count()
    };
    let pause = Duration::from_millis(EXCLUDED_PAUSE_MILLISECONDS);
    assert_eq!([count(now), count(now + pause)], [0, 1]);
    assert_eq!(wakes_at, now + pause);
}

/// The success of an attempt that was under way when the pause began does not remove the reason for
/// the pause.
#[test]
fn a_late_success_does_not_end_the_pause_of_an_endpoint_that_is_left_alone() {
    let now = Instant::now();
    let broken_pause = Duration::from_secs(BROKEN_PAUSE_SECONDS);
    let excluded_pause = Duration::from_millis(EXCLUDED_PAUSE_MILLISECONDS);
    for (is_broken, share, pause) in
        [(true, Share::Backlog, broken_pause), (false, Share::CaughtUp, excluded_pause)]
    {
        let (mut scheduler, endpoint_id) = scheduler_with_a_lease(now, &[2, 3]);
        let starts = scheduler.begin_attempts(now, 0);
        let request = only_request(&mut scheduler, Share::Backlog, now);
        let mut reading = leased_reading(&request);
        (reading.is_broken, reading.is_excluded) = (is_broken, !is_broken);
        scheduler.note_reading(&reading, 0, &EndpointWrites::default(), now);
        let finished = finished(&starts[0].taken.due, true);
        scheduler.note_ended_attempt(endpoint_id, Some(&finished), now);
        let mut wakes_at = now + pause * 2;
        let mut count = |at| scheduler.take_requests(share, TAKEN_MAX, at, &mut wakes_at).len();
        let before = now + pause - Duration::from_millis(1);
        assert_eq!([count(now), count(before), count(now + pause)], [0, 0, 1], "{is_broken}");
    }
}
