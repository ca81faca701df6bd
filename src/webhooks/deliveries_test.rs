use super::super::replay::{PART_MAX, Replay, event_floor, refuse_wide, replay, replay_next_part};
use super::*;
use crate::events;
use crate::kernel::id::{Minter, kind};
use crate::kernel::{AnyId, Metadata, Mode, OperationError};
use crate::store::Signal;
use crate::store::sqlite::SqliteTx;
use crate::values;
use crate::webhooks::EventFilters;
use crate::webhooks::fan_out::{NAMED_MAX, Subscribers};
use crate::webhooks::handover::{Handover, Offer};
use crate::webhooks::queue_leases::LeaseStep;
use crate::webhooks::rows::DueRange;

const START: i64 = 1_764_000_000_000;
const HOUR: i64 = 3_600_000;
const SCOPE: Scope = Scope::new(1, Mode::Test);

fn with_store(test: impl FnOnce(&mut dyn Tx, &mut Now)) {
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    let mut tx = SqliteTx::new(&connection);
    crate::store::migrate::migrate(&mut tx).unwrap();
    let mut now = Now::new(START, Minter::above(0), [7; 32]);
    test(&mut tx, &mut now);
}

fn endpoint(tx: &mut dyn Tx, now: &mut Now, enabled_events: &str) -> Endpoint {
    endpoint_of(tx, now, SCOPE, enabled_events)
}

fn endpoint_of(tx: &mut dyn Tx, now: &mut Now, scope: Scope, enabled_events: &str) -> Endpoint {
    let endpoint = Endpoint {
        scope,
        id: now.mint(),
        version: 1,
        url: "https://example.com/".into(),
        description: None,
        enabled_events: EventFilters::from_text(enabled_events.into()),
        status: EndpointStatus::Enabled,
        disabled_reason: None,
        disabled_milliseconds: None,
        secrets_sealed: vec![0],
        metadata: Metadata::default(),
        created: now.business(),
        chaos_key_id: None,
    };
    rows::insert(tx, &endpoint).unwrap();
    rows::queue_insert(tx, scope, endpoint.id).unwrap();
    endpoint
}

fn emit(tx: &mut dyn Tx, now: &mut Now, event_type: &'static str) -> EventId {
    let linked = now.mint::<kind::Transfer>().any();
    emit_about(tx, now, event_type, linked)
}

fn emit_about(tx: &mut dyn Tx, now: &mut Now, event_type: &'static str, linked: AnyId) -> EventId {
    events::emit(tx, now, SCOPE, event_type, linked).unwrap();
    crate::webhooks::sequencer::sequence(tx, now).unwrap();
    let newest =
        tx.row("SELECT id FROM events ORDER BY id DESC LIMIT 1", &[]).unwrap().unwrap().id();
    newest.unwrap()
}

fn all(tx: &mut dyn Tx, endpoint: &Endpoint) -> Vec<Delivery> {
    rows::deliveries_of_events(
        tx,
        endpoint.id,
        Id::from_u128(0),
        Id::from_u128(u128::MAX),
        0..=i64::MAX,
        1_000,
    )
    .unwrap()
}

fn found(tx: &mut dyn Tx, endpoint: &Endpoint) -> Endpoint {
    rows::find(tx, endpoint.scope, endpoint.id).unwrap().unwrap()
}

/// Lets one run of the sequencer make this many endpoints due, each of another account. Answers how
/// many of them the run names to the worker, and whether the worker has to look for others.
fn told_of(endpoints_count: usize) -> (usize, bool) {
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    let mut tx = SqliteTx::new(&connection);
    crate::store::migrate::migrate(&mut tx).unwrap();
    let mut now = Now::new(START, Minter::above(0), [7; 32]);
    for account in 0..endpoints_count {
        let scope = Scope::new(account as i64, Mode::Test);
        endpoint_of(&mut tx, &mut now, scope, "*");
        let linked = now.mint::<kind::Transfer>().any();
        events::emit(&mut tx, &mut now, scope, "transfer.status.funding", linked).unwrap();
    }
    crate::webhooks::sequencer::sequence(&mut tx, &mut now).unwrap();
    let signals = tx.signals.take();
    let named = signals.iter().filter(|signal| matches!(signal, Signal::DeliveriesOf(_)));
    (named.count(), signals.contains(&Signal::Deliveries))
}

#[test]
fn the_worker_is_told_the_first_endpoints_by_name() {
    assert_eq!(told_of(0), (0, false));
    assert_eq!(told_of(NAMED_MAX), (NAMED_MAX, false));
    assert_eq!(told_of(NAMED_MAX + 1), (NAMED_MAX, true));
}

/// When the endpoint's queue is due.
fn due_at(tx: &mut dyn Tx, endpoint: &Endpoint) -> Option<i64> {
    tx.row(
        "SELECT due_milliseconds FROM webhook_queues WHERE endpoint_id = ?1",
        values![endpoint.id],
    )
    .unwrap()
    .unwrap()
    .int_or_null()
    .unwrap()
}

/// The types of all events about endpoints, those that still wait in the outbox included.
fn types(tx: &mut dyn Tx) -> Vec<String> {
    crate::webhooks::sequencer::sequence(
        tx,
        &mut Now::new(START + 10_000 * HOUR, Minter::above(0), [9; 32]),
    )
    .unwrap();
    let rows =
        tx.rows("SELECT type FROM events WHERE type LIKE 'webhook%' ORDER BY id", &[]).unwrap();
    rows.into_iter().map(|mut row| row.text().unwrap()).collect()
}

fn finished(
    due: &DueDelivery,
    lease_ends_milliseconds: i64,
    at_milliseconds: i64,
    http_status: u16,
) -> FinishedAttempt {
    FinishedAttempt {
        delivery_id: due.id,
        schedule_start_milliseconds: due.schedule_start_milliseconds,
        step: due.step,
        attempts_count: due.attempts_count,
        due_milliseconds: lease_ends_milliseconds,
        holder: None,
        attempted_milliseconds: at_milliseconds,
        is_success: (200..300).contains(&http_status),
        http_status: Some(http_status),
        error: None,
        duration_milliseconds: 3,
        answer: "said".into(),
        retry_after_seconds: None,
        watched: None,
        attacked_http_status: None,
    }
}

/// Makes an attempt for every due delivery, as the worker would. The receiver answers
/// `http_status`. Answers how many attempts were made.
fn attempt_due(tx: &mut dyn Tx, now: &mut Now, endpoint: &Endpoint, http_status: u16) -> usize {
    let due = rows::due(tx, SCOPE, endpoint.id, None, now.instant_milliseconds(), 100).unwrap();
    let lease = now.instant_milliseconds() + LEASE_MILLISECONDS;
    let claimed = claim(tx, endpoint.id, &due, true, lease).unwrap();
    assert!(claimed.iter().all(|is_claimed| *is_claimed));
    for due in &due {
        let attempt = finished(due, lease, now.instant_milliseconds(), http_status);
        write_attempts(tx, now, endpoint.id, &[&attempt]).unwrap();
    }
    due.len()
}

#[test]
fn a_success_ends_a_delivery_and_counts_once() {
    with_store(|tx, now| {
        let endpoint = endpoint(tx, now, "*");
        emit(tx, now, "transfer.status.funded");
        assert_eq!(due_at(tx, &endpoint), Some(START));
        let due = rows::due(tx, SCOPE, endpoint.id, None, START, 10).unwrap();
        assert_eq!(due[0].event.as_ref().unwrap().event_type, "transfer.status.funded");
        let lease = START + LEASE_MILLISECONDS;
        assert_eq!(claim(tx, endpoint.id, &due, true, lease).unwrap(), [true]);
        assert_eq!(
            claim(tx, endpoint.id, &due, true, lease + 1).unwrap(),
            [false],
            "it is taken already"
        );
        assert_eq!(due_at(tx, &endpoint), Some(lease), "a crash is noticed when the lease ends");
        let attempt = finished(&due[0], lease, START, 204);
        write_attempts(tx, now, endpoint.id, &[&attempt, &attempt]).unwrap();
        let delivery = &all(tx, &endpoint)[0];
        assert_eq!(
            (delivery.status, delivery.attempts_count, delivery.due_milliseconds),
            (DeliveryStatus::Succeeded, 1, None)
        );
        let attempts = rows::attempts(tx, endpoint.id, delivery.id, 10).unwrap();
        assert_eq!(
            (attempts.len(), attempts[0].http_status, attempts[0].answer.as_str()),
            (1, Some(204), "said")
        );
    });
}

#[test]
fn what_is_given_back_is_due_as_before() {
    with_store(|tx, now| {
        let endpoint = endpoint(tx, now, "*");
        emit(tx, now, "transfer.status.funded");
        let due = rows::due(tx, SCOPE, endpoint.id, None, START, 10).unwrap();
        claim(tx, endpoint.id, &due, true, START + LEASE_MILLISECONDS).unwrap();
        release(tx, endpoint.id, &[(due[0].clone(), START + LEASE_MILLISECONDS)]).unwrap();
        assert_eq!(
            (all(tx, &endpoint)[0].due_milliseconds, due_at(tx, &endpoint)),
            (Some(START), Some(START))
        );
        // The queue of a deleted endpoint stays not due, even if a delivery to it is given back.
        claim(tx, endpoint.id, &due, true, START + LEASE_MILLISECONDS).unwrap();
        crate::webhooks::delete(tx, &endpoint).unwrap();
        release(tx, endpoint.id, &[(due[0].clone(), START + LEASE_MILLISECONDS)]).unwrap();
        rows::queue_set_due_by(tx, endpoint.id, START).unwrap();
        assert_eq!(due_at(tx, &endpoint), None);
    });
}

#[test]
fn a_start_releases_what_was_claimed_and_not_what_is_delayed() {
    with_store(|tx, now| {
        let endpoint = endpoint(tx, now, "*");
        emit(tx, now, "transfer.status.funded");
        let due = rows::due(tx, SCOPE, endpoint.id, None, START, 10).unwrap();
        let lease = START + LEASE_MILLISECONDS;
        claim(tx, endpoint.id, &due, true, lease).unwrap();
        let event = due[0].event.clone().unwrap();
        let event = EventRow { id: now.mint(), event_type: event.event_type.clone(), ..*event };
        let late = new_delayed_delivery(now, endpoint.id, &event, HOUR);
        rows::deliveries_insert(tx, &[late]).unwrap();
        let dues = |tx: &mut dyn Tx| {
            all(tx, &endpoint).iter().map(|found| found.due_milliseconds).collect::<Vec<_>>()
        };
        assert_eq!(dues(tx), [Some(lease), Some(START + HOUR)]);
        assert_eq!(release_abandoned(tx, now).unwrap(), 1);
        assert_eq!(dues(tx), [Some(START), Some(START + HOUR)]);
    });
}

#[test]
fn a_read_of_due_deliveries_begins_after_the_given_one() {
    with_store(|tx, now| {
        let endpoint = endpoint(tx, now, "*");
        for _ in 0..3 {
            emit(tx, now, "transfer.status.funded");
        }
        now.advance_to(START + 1);
        emit(tx, now, "transfer.status.funded");
        let mut ids = |after, rows_max| {
            let due = rows::due(tx, SCOPE, endpoint.id, after, START + 1, rows_max).unwrap();
            due.iter().map(|found| (found.due_milliseconds, found.id)).collect::<Vec<_>>()
        };
        let all = ids(None, 10);
        assert_eq!(all.len(), 4);
        for index in 0..all.len() {
            assert_eq!(ids(Some(all[index]), 10), all[index + 1..]);
        }
        assert_eq!(ids(Some(all[0]), 2), all[1..3]);
    });
}

#[test]
fn an_attempt_under_the_lease_of_a_queue_counts_while_the_node_has_it() {
    with_store(|tx, now| {
        let endpoint = endpoint(tx, now, "*");
        emit(tx, now, "transfer.status.funded");
        emit(tx, now, "transfer.status.funded");
        let due = rows::due(tx, SCOPE, endpoint.id, None, START, 10).unwrap();
        let (own, other): (QueueHolder, QueueHolder) = ([1; 16], [2; 16]);
        let step = |tx: &mut dyn Tx, now: &Now, step: LeaseStep, holder| {
            step.carry_out(tx, now, endpoint.id, holder).unwrap()
        };
        let record = |tx: &mut dyn Tx, now: &mut Now, index: usize, holder| {
            let due = &due[index];
            let under_lease = FinishedAttempt {
                holder: Some(holder),
                ..finished(due, due.due_milliseconds, START, 200)
            };
            write_attempts(tx, now, endpoint.id, &[&under_lease]).unwrap();
            all(tx, &endpoint).iter().map(|found| found.attempts_count).collect::<Vec<_>>()
        };
        let ends = Some(START + LEASE_MILLISECONDS);
        assert_eq!(step(tx, now, LeaseStep::Take, own), ends);
        assert_eq!(step(tx, now, LeaseStep::Take, other), None);
        assert_eq!(step(tx, now, LeaseStep::Renew, other), None);
        assert_eq!(record(tx, now, 0, other), [0, 0], "no lease");
        assert_eq!(record(tx, now, 0, own), [1, 0]);
        assert_eq!(record(tx, now, 0, own), [1, 0], "it is not due any more");

        // The lease has ended. Until another node takes it, its holder may still renew it.
        now.advance_to(START + LEASE_MILLISECONDS);
        let ends = Some(START + 2 * LEASE_MILLISECONDS);
        assert_eq!(step(tx, now, LeaseStep::Renew, own), ends);
        now.advance_to(START + 2 * LEASE_MILLISECONDS);
        assert!(step(tx, now, LeaseStep::Take, other).is_some());
        assert_eq!(step(tx, now, LeaseStep::Renew, own), None);
        assert_eq!(step(tx, now, LeaseStep::Release, own), None);
        assert_eq!(record(tx, now, 1, own), [1, 0]);
        assert_eq!(record(tx, now, 1, other), [1, 1]);
        assert_eq!(step(tx, now, LeaseStep::Release, other), None);
        assert_eq!(due_at(tx, &endpoint), None);
        assert!(step(tx, now, LeaseStep::Take, own).is_some(), "it was released");

        crate::webhooks::delete(tx, &endpoint).unwrap();
        assert_eq!(step(tx, now, LeaseStep::Renew, own), None);
        assert_eq!(step(tx, now, LeaseStep::Take, other), None);
    });
}

#[test]
fn what_a_node_holds_is_not_read_again_and_is_due_for_others_when_the_lease_ends() {
    with_store(|tx, now| {
        let endpoint = endpoint(tx, now, "*");
        for milliseconds in 0..4 {
            now.advance_to(START + milliseconds);
            emit(tx, now, "transfer.status.funded");
        }
        let all = rows::due(tx, SCOPE, endpoint.id, None, START + 3, 10).unwrap();
        let held = |indexes: &[usize]| -> HeldDeliveries {
            indexes.iter().map(|index| (all[*index].id, all[*index].due_milliseconds)).collect()
        };
        let read = |tx: &mut dyn Tx, after, count, except: &HeldDeliveries| {
            let (endpoint_id, until_milliseconds) = (endpoint.id, START + 3);
            let range = DueRange { endpoint_id, after, until_milliseconds, count, except };
            let read = rows::due_in(tx, SCOPE, &range).unwrap();
            let found = read.due.iter().map(|due| due.due_milliseconds - START).collect::<Vec<_>>();
            (found, read.last_read.map(|(milliseconds, _)| milliseconds - START))
        };
        assert_eq!(read(tx, None, 9, &HeldDeliveries::new()), (vec![0, 1, 2, 3], None));
        assert_eq!(read(tx, None, 1, &held(&[0, 1])), (vec![2], Some(2)));
        assert_eq!(read(tx, None, 3, &held(&[0, 1])), (vec![2, 3], None));
        assert_eq!(read(tx, None, 2, &held(&[1, 3])), (vec![0, 2], Some(2)));
        let first = Some((START, all[0].id));
        assert_eq!(read(tx, first, 2, &held(&[1])), (vec![2], Some(2)));
        assert_eq!(read(tx, None, 9, &held(&[0, 1, 2, 3])), (vec![], None));

        let ends = START + LEASE_MILLISECONDS;
        let mut due_except = |indexes: &[usize]| {
            let drained = Some((&held(indexes), Some(ends)));
            claim_beside_held(tx, endpoint.id, &[], drained, ends).unwrap();
            due_at(tx, &endpoint)
        };
        assert_eq!(due_except(&[]), Some(START));
        assert_eq!(due_except(&[0, 2]), Some(START + 1));
        assert_eq!(due_except(&[0, 1, 2, 3]), Some(ends));
    });
}

#[test]
fn a_dead_endpoint_is_tried_fourteen_times_then_failing_then_disabled() {
    with_store(|tx, now| {
        let endpoint = endpoint(tx, now, "transfer.*");
        let other = self::endpoint(tx, now, "webhook_endpoint.*");
        emit(tx, now, "transfer.status.funded");
        let mut attempts = 0;
        while let Some(due) = due_at(tx, &endpoint) {
            now.advance_to(due);
            attempts += attempt_due(tx, now, &endpoint, 500);
            rows::queue_recompute_due(tx, endpoint.id).unwrap();
        }
        assert_eq!(attempts, schedule::STEPS_SECONDS.len());
        let delivery = &all(tx, &endpoint)[0];
        assert_eq!((delivery.status, delivery.attempts_count), (DeliveryStatus::Failed, 14));
        assert_eq!(now.instant_milliseconds(), START + 24 * HOUR);
        assert_eq!(found(tx, &endpoint).status, EndpointStatus::Failing);

        now.advance_to(START + 121 * HOUR);
        emit(tx, now, "transfer.status.funded");
        emit(tx, now, "transfer.status.funded");
        assert_eq!(attempt_due(tx, now, &endpoint, 500), 2);
        let disabled = found(tx, &endpoint);
        assert_eq!(
            (disabled.status, disabled.disabled_milliseconds),
            (EndpointStatus::Disabled, Some(START + 121 * HOUR))
        );
        let recorded = all(tx, &endpoint);
        assert_eq!(
            recorded.iter().map(|delivery| delivery.status).collect::<Vec<_>>(),
            [DeliveryStatus::Failed, DeliveryStatus::Recorded, DeliveryStatus::Recorded]
        );
        assert_eq!(due_at(tx, &endpoint), None);
        now.advance_to(START + 122 * HOUR);
        emit(tx, now, "transfer.status.funded");
        assert_eq!(
            all(tx, &endpoint)[3].status,
            DeliveryStatus::Recorded,
            "still recorded while disabled"
        );
        assert_eq!(
            types(tx),
            ["webhook_endpoint.status.failing", "webhook_endpoint.status.disabled"]
        );
        assert_eq!(all(tx, &other).len(), 2, "the account's other endpoint is told");

        // What is replayed is sent although the endpoint is disabled, on a new schedule.
        now.advance_to(START + 123 * HOUR);
        let range = Replay::Range { since: 0, until: now.instant(), only_failed: true };
        assert_eq!(replay(tx, now, &disabled, range).unwrap(), 4);
        let due = rows::due(tx, SCOPE, endpoint.id, None, now.instant_milliseconds(), 10).unwrap();
        assert!(
            due.len() == 4 && due.iter().all(|delivery| !is_recorded_only(&disabled, delivery))
        );
        assert_eq!(attempt_due(tx, now, &endpoint, 500), 4);
        assert!(
            all(tx, &endpoint)
                .iter()
                .all(|delivery| delivery.status == DeliveryStatus::Pending && delivery.step == 1)
        );
        now.advance_to(START + 124 * HOUR);
        assert_eq!(attempt_due(tx, now, &endpoint, 200), 4);
        assert_eq!(
            found(tx, &endpoint).status,
            EndpointStatus::Disabled,
            "only its owner enables it again"
        );
    });
}

#[test]
fn a_success_ends_failing_and_forgets_the_failures() {
    with_store(|tx, now| {
        let endpoint = endpoint(tx, now, "transfer.*");
        emit(tx, now, "transfer.status.funded");
        attempt_due(tx, now, &endpoint, 500);
        now.advance_to(START + 25 * HOUR);
        emit(tx, now, "transfer.status.funded");
        attempt_due(tx, now, &endpoint, 500);
        assert_eq!(found(tx, &endpoint).status, EndpointStatus::Failing);
        now.advance_to(START + 26 * HOUR);
        attempt_due(tx, now, &endpoint, 200);
        assert_eq!(found(tx, &endpoint).status, EndpointStatus::Enabled);
        assert_eq!(
            rows::queue(tx, endpoint.id).unwrap().unwrap().health,
            EndpointHealth::default()
        );
        assert_eq!(
            types(tx),
            ["webhook_endpoint.status.failing", "webhook_endpoint.status.enabled"]
        );
    });
}

#[test]
fn events_fan_out_to_who_wants_them() {
    with_store(|tx, now| {
        let transfers = endpoint(tx, now, "transfer.*");
        let everything = endpoint(tx, now, "*");
        let stranger =
            Endpoint { scope: Scope::new(2, Mode::Test), id: now.mint(), ..everything.clone() };
        rows::insert(tx, &stranger).unwrap();
        rows::queue_insert(tx, stranger.scope, stranger.id).unwrap();
        emit(tx, now, "transfer.status.funded");
        emit(tx, now, "payout.status.settled");
        emit_about(tx, now, "webhook_endpoint.status.enabled", everything.id.any());
        emit_about(tx, now, "webhook_endpoint.status.enabled", transfers.id.any());
        assert_eq!(
            [all(tx, &transfers).len(), all(tx, &everything).len(), all(tx, &stranger).len()],
            [1, 4, 0]
        );
        let mut subscribers = Subscribers::default();
        let event = events::rows::between(
            tx,
            SCOPE,
            Id::from_u128(0),
            Id::from_u128(u128::MAX),
            0..=i64::MAX,
            1,
        )
        .unwrap()
        .remove(0);
        subscribers.fan_out(tx, now, Scope::new(9, Mode::Live), &event).unwrap();
        subscribers.finish(tx).unwrap();
    });
}

#[test]
fn a_replay_begins_old_deliveries_again_and_makes_missing_ones() {
    with_store(|tx, now| {
        let early = emit(tx, now, "transfer.status.funded");
        emit(tx, now, "payout.status.settled");
        now.advance_to(START + 10_000);
        let endpoint = endpoint(tx, now, "transfer.*");
        let late = emit(tx, now, "transfer.status.payout_settled");
        attempt_due(tx, now, &endpoint, 200);
        let second = START / 1_000;
        let range = |since, until, only_failed| Replay::Range { since, until, only_failed };
        assert_eq!(replay(tx, now, &endpoint, range(second, second + 9, true)).unwrap(), 0);
        assert_eq!(replay(tx, now, &endpoint, range(second + 1, second + 9, false)).unwrap(), 0);
        assert_eq!(
            replay(tx, now, &endpoint, range(second + 10, second + 10, true)).unwrap(),
            0,
            "it succeeded"
        );
        assert_eq!(
            replay(tx, now, &endpoint, range(second, second + 10, false)).unwrap(),
            2,
            "the payout's event is not wanted"
        );
        assert_eq!(due_at(tx, &endpoint), Some(now.instant_milliseconds()));
        let deliveries = all(tx, &endpoint);
        assert_eq!(
            deliveries.iter().map(|delivery| delivery.event_id).collect::<Vec<_>>(),
            [early, late]
        );
        assert_eq!(attempt_due(tx, now, &endpoint, 200), 2);
        assert_eq!(replay(tx, now, &endpoint, Replay::Event(early)).unwrap(), 1);
        assert!(matches!(
            replay(tx, now, &endpoint, Replay::Event(Id::from_u128(5))),
            Err(OperationError::Refused(_))
        ));
        // The range reaches from the beginning of the first second to the end of the last.
        assert_eq!(event_floor(second).milliseconds(), START);
        assert_eq!(event_floor(-1).as_u128(), 0);
        for only_failed in [false, true] {
            assert!(refuse_wide(10_000, only_failed).is_ok());
            assert!(refuse_wide(10_001, only_failed).is_err());
        }
    });
}

/// The first replay makes the delivery; a second replay of the same range begins it again.
#[test]
fn a_range_can_be_replayed_again() {
    with_store(|tx, now| {
        emit(tx, now, "transfer.status.funded");
        let second = START / 1_000;
        now.advance_to(START + 10_000);
        let endpoint = endpoint(tx, now, "*");
        for _ in 0..2 {
            let range = Replay::Range { since: second, until: second, only_failed: false };
            assert_eq!(replay(tx, now, &endpoint, range).unwrap(), 1);
        }
        assert_eq!(all(tx, &endpoint).len(), 1);
    });
}

fn pending_count(tx: &mut dyn Tx, endpoint: &Endpoint) -> i64 {
    let sql = "SELECT COUNT(*) FROM webhook_deliveries WHERE endpoint_id = ?1 AND status = \
               'pending'";
    tx.row(sql, values![endpoint.id]).unwrap().unwrap().int().unwrap()
}

/// The parts cover all events that were visible when the replay began, and no others.
#[test]
fn a_long_replay_goes_in_parts() {
    const EVENTS_COUNT: i64 = 2 * PART_MAX + PART_MAX / 2;
    let everything = |only_failed| Replay::Range { since: 0, until: START, only_failed };
    with_store(|tx, now| {
        let old = emit(tx, now, "transfer.status.funded");
        for _ in 1..EVENTS_COUNT {
            emit(tx, now, "transfer.status.funded");
        }
        let endpoint = endpoint(tx, now, "*");
        let count = replay(tx, now, &endpoint, everything(false)).unwrap();
        assert_eq!(count as i64, EVENTS_COUNT, "all are counted at once");
        assert_eq!(pending_count(tx, &endpoint), PART_MAX);
        // Another range has to wait for this one. A single event does not.
        match replay(tx, now, &endpoint, everything(true)) {
            Err(OperationError::Refused(refusal)) => {
                assert_eq!((refusal.http_status(), refusal.retry_after_seconds), (429, Some(1)));
            }
            _ => panic!("two at once"),
        }
        assert_eq!(replay(tx, now, &endpoint, Replay::Event(old)).unwrap(), 1);
        // An event that is emitted meanwhile is not part of the replay.
        emit(tx, now, "transfer.status.funded");
        tx.execute("UPDATE webhook_deliveries SET status = 'failed'", &[]).unwrap();
        for begun in [PART_MAX, EVENTS_COUNT - PART_MAX, EVENTS_COUNT - PART_MAX] {
            replay_next_part(tx, now, SCOPE).unwrap();
            assert_eq!(pending_count(tx, &endpoint), begun);
        }
        assert!(rows::replay_left(tx, SCOPE).unwrap().is_none());

        // A replay with `only_failed` covers only the deliveries that are `failed` now.
        let count = replay(tx, now, &endpoint, everything(true)).unwrap() as i64;
        assert_eq!(count, PART_MAX + 1);
        assert_eq!(pending_count(tx, &endpoint), EVENTS_COUNT);
        replay_next_part(tx, now, SCOPE).unwrap();
        replay_next_part(tx, now, SCOPE).unwrap();
        assert_eq!(pending_count(tx, &endpoint), EVENTS_COUNT + 1);
        assert!(rows::replay_left(tx, SCOPE).unwrap().is_none());

        // A replay ends with its endpoint.
        assert!(replay(tx, now, &endpoint, everything(false)).unwrap() > 0);
        assert!(rows::replay_left(tx, SCOPE).unwrap().is_some());
        crate::webhooks::delete(tx, &endpoint).unwrap();
        assert!(rows::replay_left(tx, SCOPE).unwrap().is_none());
    });
}

/// The progress of a replay does not count deliveries of new events. If a single event is replayed
/// while a range is under way, it counts. The next replay begins to count from zero.
#[test]
fn a_replay_tells_how_far_it_has_come() {
    const EVENTS_COUNT: i64 = 2 * PART_MAX + PART_MAX / 2;
    with_store(|tx, now| {
        let old = emit(tx, now, "transfer.status.funded");
        for _ in 1..EVENTS_COUNT {
            emit(tx, now, "transfer.status.funded");
        }
        let endpoint = endpoint(tx, now, "*");
        let told = |tx: &mut dyn Tx| {
            let progress = rows::replay_progress(tx, endpoint.id, 10_000).unwrap();
            progress.map(|progress| (progress.done_count, progress.count))
        };
        let succeed_all = |tx: &mut dyn Tx| {
            let taken = "UPDATE webhook_deliveries SET status = 'succeeded', due_milliseconds = \
                         NULL WHERE due_milliseconds IS NOT NULL";
            tx.execute(taken, &[]).unwrap();
        };
        assert_eq!(told(tx), None);
        let range = Replay::Range { since: 0, until: START, only_failed: false };
        replay(tx, now, &endpoint, range).unwrap();
        assert_eq!(told(tx), Some((0, EVENTS_COUNT)));
        succeed_all(tx);
        assert_eq!(told(tx), Some((PART_MAX, EVENTS_COUNT)));
        now.advance_to(START + 1_000);
        emit(tx, now, "transfer.status.funded");
        assert_eq!(told(tx), Some((PART_MAX, EVENTS_COUNT)));
        replay(tx, now, &endpoint, Replay::Event(old)).unwrap();
        assert_eq!(told(tx), Some((PART_MAX, EVENTS_COUNT + 1)));
        now.advance_to(START + 2_000);
        replay_next_part(tx, now, SCOPE).unwrap();
        succeed_all(tx);
        assert_eq!(told(tx), Some((2 * PART_MAX + 1, EVENTS_COUNT + 1)));
        replay_next_part(tx, now, SCOPE).unwrap();
        assert_eq!(told(tx), Some((2 * PART_MAX + 1, EVENTS_COUNT + 1)));
        succeed_all(tx);
        assert_eq!(told(tx), Some((EVENTS_COUNT + 1, EVENTS_COUNT + 1)));
        now.advance_to(START + 3_000);
        replay(tx, now, &endpoint, Replay::Event(old)).unwrap();
        assert_eq!(told(tx), Some((0, 1)));
    });
}

#[test]
fn after_the_clock_went_back_times_are_moved_with_it() {
    with_store(|tx, now| {
        let old = emit(tx, now, "transfer.status.funded");
        let mut endpoint = endpoint(tx, now, "*");
        let health = EndpointHealth { first_failure_milliseconds: Some(START), failures_count: 1 };
        rows::queue_set_health(tx, endpoint.id, health).unwrap();
        rows::replay_note_one(tx, endpoint.id, START, old).unwrap();
        endpoint.status = EndpointStatus::Disabled;
        endpoint.disabled_milliseconds = Some(START);
        rows::update(tx, &mut endpoint, EndpointStatus::Enabled).unwrap();
        assert_eq!(due_at(tx, &endpoint), None);
        rows::make_all_due_earlier(tx, HOUR).unwrap();

        let queue = rows::queue(tx, endpoint.id).unwrap().unwrap();
        assert_eq!(queue.health.first_failure_milliseconds, Some(START - HOUR));
        let progress = rows::replay_progress(tx, endpoint.id, 100).unwrap().unwrap();
        assert_eq!(progress.began_milliseconds, START - HOUR);
        // What is replayed now is sent, although the clock had shown a later time when the endpoint
        // was disabled.
        let endpoint = found(tx, &endpoint);
        assert_eq!(endpoint.disabled_milliseconds, Some(START - HOUR));
        let mut now = Now::new(START - HOUR / 2, Minter::above(now.minter().last()), [8; 32]);
        replay(tx, &mut now, &endpoint, Replay::Event(old)).unwrap();
        let due = rows::due(tx, SCOPE, endpoint.id, None, now.instant_milliseconds(), 10).unwrap();
        let recorded: Vec<bool> =
            due.iter().map(|delivery| is_recorded_only(&endpoint, delivery)).collect();
        assert_eq!(recorded, [false]);
        assert_eq!(due_at(tx, &endpoint), Some(START - HOUR / 2));

        // Where there are no times, none appear.
        let other = endpoint_of(tx, &mut now, SCOPE, "*");
        rows::make_all_due_earlier(tx, HOUR).unwrap();
        let health = rows::queue(tx, other.id).unwrap().unwrap().health;
        let other = found(tx, &other);
        assert_eq!((health, other.disabled_milliseconds), (EndpointHealth::default(), None));
        assert_eq!(due_at(tx, &other), None);
    });
}

#[test]
fn a_replay_of_what_failed_does_not_wait_for_the_next_attempt() {
    with_store(|tx, now| {
        let endpoint = endpoint(tx, now, "*");
        emit(tx, now, "transfer.status.funded");
        let second = START / 1_000;
        let failed = || Replay::Range { since: second, until: second + 9, only_failed: true };
        assert_eq!(replay(tx, now, &endpoint, failed()).unwrap(), 0, "it is on its way");
        assert_eq!(attempt_due(tx, now, &endpoint, 500), 1);
        assert_eq!(attempt_due(tx, now, &endpoint, 200), 0, "the next attempt is later");
        assert_eq!(replay(tx, now, &endpoint, failed()).unwrap(), 1);
        assert_eq!(attempt_due(tx, now, &endpoint, 200), 1);
        assert_eq!(replay(tx, now, &endpoint, failed()).unwrap(), 0, "it was taken");
    });
}

#[test]
fn an_attempt_is_not_recorded_if_a_replay_began_the_delivery_again_meanwhile() {
    with_store(|tx, now| {
        let endpoint = endpoint(tx, now, "*");
        let event = emit(tx, now, "transfer.status.funded");
        let due = rows::due(tx, SCOPE, endpoint.id, None, START, 10).unwrap();
        let lease = START + LEASE_MILLISECONDS;
        claim(tx, endpoint.id, &due, true, lease).unwrap();
        now.advance_to(START + 1_000);
        replay(tx, now, &endpoint, Replay::Event(event)).unwrap();
        write_attempts(tx, now, endpoint.id, &[&finished(&due[0], lease, START, 500)]).unwrap();
        let delivery = &all(tx, &endpoint)[0];
        assert_eq!(
            (delivery.status, delivery.attempts_count, delivery.due_milliseconds),
            (DeliveryStatus::Pending, 0, Some(START + 1_000))
        );
        assert_eq!(rows::queue(tx, endpoint.id).unwrap().unwrap().health.failures_count, 0);
    });
}

#[test]
fn purges_remove_what_is_old_and_what_belonged_to_deleted_endpoints() {
    with_store(|tx, now| {
        let kept = endpoint(tx, now, "*");
        let deleted = endpoint(tx, now, "*");
        for _ in 0..5 {
            emit(tx, now, "transfer.status.funded");
        }
        attempt_due(tx, now, &kept, 200);
        attempt_due(tx, now, &deleted, 500);
        crate::webhooks::delete(tx, &deleted).unwrap();
        assert_eq!(due_at(tx, &deleted), None);
        assert_eq!(
            [
                purge_deleted(tx, 3).unwrap(),
                purge_deleted(tx, 3).unwrap(),
                purge_deleted(tx, 3).unwrap()
            ],
            [3, 2, 0]
        );
        assert!(rows::queue(tx, deleted.id).unwrap().is_none());
        assert_eq!(purge(tx, now, 100).unwrap(), 0);
        now.advance_to(START + (DELIVERY_KEPT_SECONDS + 1) * 1_000);
        emit(tx, now, "transfer.status.funded");
        assert_eq!(
            [purge(tx, now, 3).unwrap(), purge(tx, now, 3).unwrap(), purge(tx, now, 3).unwrap()],
            [3, 2, 0]
        );
        assert_eq!(all(tx, &kept).len(), 1);
        let attempts =
            tx.row("SELECT COUNT(*) FROM webhook_attempts", &[]).unwrap().unwrap().int().unwrap();
        assert_eq!(attempts, 0);
    });
}

#[test]
fn the_queries_for_what_is_due_use_their_indexes() {
    with_store(|tx, _| {
        let plans = [
            (
                "SELECT due_milliseconds, endpoint_id, scope FROM webhook_queues WHERE \
                 due_milliseconds > 1 AND due_milliseconds <= 2 ORDER BY due_milliseconds, \
                 endpoint_id LIMIT 3",
                "webhook_queues_due",
            ),
            (
                "SELECT d.id FROM webhook_deliveries d WHERE d.endpoint_id = x'00' AND \
                 d.due_milliseconds <= 3 ORDER BY d.due_milliseconds, d.id LIMIT 4",
                "webhook_deliveries_due",
            ),
            (
                "SELECT MIN(d.due_milliseconds) FROM webhook_deliveries d WHERE d.endpoint_id \
                 = x'00' AND d.due_milliseconds IS NOT NULL",
                "webhook_deliveries_due",
            ),
            (
                "SELECT endpoint_id FROM webhook_queues WHERE closed AND endpoint_id > x'00' \
                 ORDER BY endpoint_id LIMIT 1",
                "webhook_queues_closed",
            ),
        ];
        for (sql, index) in plans {
            let plan = tx.rows(&format!("EXPLAIN QUERY PLAN {sql}"), &[]).unwrap();
            let text: String = plan.into_iter().map(|row| format!("{row:?}")).collect();
            assert!(text.contains(index) && !text.contains("TEMP B-TREE"), "{sql}: {text}");
        }
    });
}

/// Runs the sequencer over `events_count` events while the worker offers to send some deliveries of
/// an endpoint at once (`handover.rs`).
/// Answers the due times of the deliveries that were written, in the order of the events, and how
/// many deliveries were handed over. The due time of a claimed delivery is the end of its claim.
fn handed_over(
    tx: &mut dyn Tx,
    now: &mut Now,
    endpoint: &Endpoint,
    (offer, room_total): (Offer, usize),
    events_count: usize,
) -> (Vec<Option<i64>>, usize) {
    tx.execute("DELETE FROM webhook_deliveries", &[]).unwrap();
    tx.execute("UPDATE webhook_queues SET due_milliseconds = NULL", &[]).unwrap();
    let handover = Handover::default();
    handover.publish(vec![(endpoint.id, Some(offer))], room_total);
    for _ in 0..events_count {
        let linked = now.mint::<kind::Transfer>().any();
        events::emit(tx, now, SCOPE, "transfer.status.funded", linked).unwrap();
    }
    let subscribers = Subscribers::handed_over_by(&handover);
    crate::webhooks::sequencer::sequence_for(tx, now, subscribers).unwrap();
    handover.hand_over();
    let due = all(tx, endpoint).iter().map(|delivery| delivery.due_milliseconds).collect();
    (due, handover.take().len())
}

#[test]
fn deliveries_begin_claimed_where_the_worker_offers_to_send_them() {
    with_store(|tx, now| {
        let endpoint = endpoint(tx, now, "*");
        let due = Some(START);
        let leased = Some(START + LEASE_MILLISECONDS);
        let offer = |version, room| Offer { version, room };
        assert_eq!(
            handed_over(tx, now, &endpoint, (offer(1, 8), 9), 2),
            (vec![leased; 2], 2),
            "there is room for both"
        );
        assert_eq!(due_at(tx, &endpoint), leased, "if the process dies, they are found then");
        // There is room for two only, so the later ones become due.
        for few in [(offer(1, 2), 9), (offer(1, 8), 2)] {
            let (written, handed) = handed_over(tx, now, &endpoint, few, 4);
            assert_eq!((written, handed), (vec![leased, leased, due, due], 2));
            assert_eq!(due_at(tx, &endpoint), due);
        }
        let changed = handed_over(tx, now, &endpoint, (offer(2, 8), 9), 1);
        assert_eq!(changed, (vec![due], 0), "another version");
        let full = handed_over(tx, now, &endpoint, (offer(1, 8), 0), 1);
        assert_eq!(full, (vec![due], 0), "no room");
        let stranger = Endpoint { id: Id::from_u128(7), ..endpoint.clone() };
        let none = handed_over(tx, now, &stranger, (offer(1, 8), 9), 1);
        assert_eq!((none.1, all(tx, &endpoint)[0].due_milliseconds), (0, due));
        let set = |tx: &mut dyn Tx, sql: &str| tx.execute(sql, values![endpoint.id]).unwrap();
        set(tx, "UPDATE webhook_endpoints SET status = 'disabled' WHERE id = ?1");
        let disabled = handed_over(tx, now, &endpoint, (offer(1, 8), 9), 1);
        assert_eq!(disabled, (vec![None], 0), "only recorded");
        set(tx, "UPDATE webhook_endpoints SET status = 'enabled', chaos_key_id = id WHERE id = ?1");
        assert_eq!(handed_over(tx, now, &endpoint, (offer(1, 8), 9), 1).1, 0, "a chaos profile");
    });
}
