//! Events are visible in the order of their identifiers, however many nodes write them and whatever
//! their clocks say.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::nodes::Nodes;
use crate::support::oracle::wait_while_it_moves;
use crate::support::postgres::Database;
use crate::support::random::number;
use crate::support::{Client, Home, Receiver, steps, until};

const NODES_COUNT: usize = 4;
const WRITERS_COUNT: usize = 32;
const POLLERS_COUNT: usize = 8;
/// How far the nodes' clocks are from the truth.
const SKEWS_SECONDS: [i64; NODES_COUNT] = [-150, 0, 61, 150];
/// What one beneficiary tells of: its check begins, it is active, it can be paid.
const EVENTS_PER_BENEFICIARY: u64 = 2;

/// What is wrong with what the pollers saw, against what is there in the end.
fn faults(polled: &[Vec<String>], listed: &[String]) -> Vec<String> {
    let mut faults = Vec::new();
    if !listed.windows(2).all(|pair| pair[0] < pair[1]) {
        faults.push("the list itself does not rise".to_owned());
    }
    for (poller, seen) in polled.iter().enumerate() {
        let known: HashSet<&String> = seen.iter().collect();
        let missed: Vec<&String> = listed.iter().filter(|id| !known.contains(id)).collect();
        if let Some(first) = missed.first() {
            faults.push(format!("poller {poller} missed {} events, such as {first}", missed.len()));
        }
        if known.len() != seen.len() {
            faults.push(format!("poller {poller} saw {} events twice", seen.len() - known.len()));
        }
        if missed.is_empty() && known.len() == seen.len() && seen != listed {
            faults.push(format!("poller {poller} saw another order, or events that are gone"));
        }
    }
    faults
}

/// Pages by the last identifier, from any node, until it is over and nothing more comes.
fn poll(mut clients: Vec<Client>, is_over: &AtomicBool) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    loop {
        let is_last = is_over.load(Ordering::Relaxed);
        clients.rotate_left(1);
        let cursor = seen.last().map_or(String::new(), |last| format!("&starting_after={last}"));
        let page = clients[0]
            .get(&format!("/v1/events?limit=100{cursor}"))
            .expect_success("a page of events");
        let ids: Vec<String> = page["data"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|event| steps::text(event, "id"))
            .collect();
        if ids.is_empty() && is_last {
            return seen;
        }
        if ids.is_empty() {
            // Room for the writers.
            std::thread::sleep(Duration::from_millis(5));
        }
        seen.extend(ids);
    }
}

/// Writes until there are `events_min` events, with pollers beside; answers what the pollers saw
/// wrong, and how many events there were.
fn run(fault: Option<&str>, events_min: u64) -> (Vec<String>, usize) {
    let database = Database::fresh();
    let shape = |index: usize, home: Home| {
        home.with("HUNDI_TEST_CLOCK_SKEW_SECONDS", &SKEWS_SECONDS[index].to_string())
            .with_fault(fault)
    };
    let nodes = Nodes::start(&vec![database.url(); NODES_COUNT], shape);
    let receiver = Receiver::start();
    receiver.register(&mut nodes.client());
    let (made, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let (polled, beneficiaries) = std::thread::scope(|scope| {
        let (made, is_over) = (&made, &is_over);
        let pollers: Vec<_> = (0..POLLERS_COUNT)
            .map(|_| {
                let clients = nodes.clients();
                scope.spawn(move || poll(clients, is_over))
            })
            .collect();
        let writers: Vec<_> =
            (0..WRITERS_COUNT)
                .map(|index| {
                    let mut client = nodes.nodes[index % NODES_COUNT].client(&nodes.api_key);
                    scope.spawn(move || {
                    let mut ids = Vec::new();
                    while made.fetch_add(1,
                        Ordering::Relaxed) * EVENTS_PER_BENEFICIARY < events_min {
                        let body =
                            json!({ "name": "Asha Rao", "account_number": "50100012345678",
                                "ifsc": "HDFC0000001", "account_type": "nre" });
                        ids.push(steps::text(&client.post("/v1/beneficiaries",
                            &body).expect_success("a beneficiary"), "id"));
                    }
                    ids
                })
                })
                .collect();
        let beneficiaries: Vec<String> =
            writers.into_iter().flat_map(|writer| writer.join().expect("a writer")).collect();
        // Every beneficiary is active, and its event is there. Counted in the database, because so
        // many pages would take longer than what they wait for.
        let told = "SELECT COUNT(*) FROM events WHERE type = 'beneficiary.status.active'";
        let quiet = catch_unwind(AssertUnwindSafe(|| {
            wait_while_it_moves("every beneficiary's last event", || {
                let told: usize = database.value(told).parse().expect("a number");
                (beneficiaries.len().saturating_sub(told), String::new())
            });
        }));
        // Whatever fails must not leave the pollers running, or the scope never ends.
        is_over.store(true, Ordering::Relaxed);
        quiet.unwrap_or_else(|panic| resume_unwind(panic));
        (
            pollers.into_iter().map(|poller| poller.join().expect("a poller")).collect::<Vec<_>>(),
            beneficiaries,
        )
    });
    let events = nodes.client().list("/v1/events", "");
    let listed: Vec<String> = events.iter().map(|event| steps::text(event, "id")).collect();
    let mut found = faults(&polled, &listed);
    let mut told: HashMap<&str, u64> = HashMap::new();
    for event in events.iter().filter(|event| event["type"] == "beneficiary.status.verifying") {
        *told.entry(event["linked_id"].as_str().unwrap_or_default()).or_default() += 1;
    }
    let untold = beneficiaries.iter().filter(|id| told.get(id.as_str()) != Some(&1)).count();
    if untold > 0 {
        found.push(format!("{untold} beneficiaries do not have exactly one first event"));
    }
    // Receivers refuse a signature whose time is minutes away: what nodes sign with is the
    // database's clock.
    let (problems_count, problems) = receiver.problems();
    if problems_count > 0 {
        found.push(format!("{problems_count} deliveries were wrong, such as {problems:?}"));
    }
    found.extend(nodes.panics());
    (found, listed.len())
}

#[test]
fn a_poller_misses_nothing_and_sees_nothing_twice() {
    let events_min = number("HUNDI_POSTGRES_EVENTS", 3_000);
    let (found, count) = run(None, events_min);
    println!("{count} events, {POLLERS_COUNT} pollers, {NODES_COUNT} nodes");
    assert!(found.is_empty(), "{found:?}");
    assert!(count as u64 >= events_min, "only {count} events");
}

/// The same with identifiers that are minted in the handlers' transactions: were the pollers' judge
/// blind, it would pass.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "optimised builds do not contain the planted fault")]
fn events_minted_by_handlers_are_found_out() {
    const TRIES_MAX: usize = 4;
    for _ in 0..TRIES_MAX {
        let (found, _) = run(Some("sequence_in_handler"), 2_000);
        if found.iter().any(|fault| fault.contains("missed")) {
            return;
        }
    }
    panic!("{TRIES_MAX} runs with the planted fault, and the pollers missed nothing");
}

/// Waits for an event at every node, a few times over, while another client makes one; answers how
/// many waits ended without it.
fn waits_in_vain(fault: Option<&str>, rounds: usize, wait_seconds: u64) -> usize {
    let database = Database::fresh();
    let nodes = Nodes::start(&vec![database.url(); 3], |_, home| home.with_fault(fault));
    let mut cursor = String::new();
    let mut in_vain = 0;
    for round in 0..rounds {
        let path = format!("/v1/events?wait={wait_seconds}{cursor}");
        let answers: Vec<_> = std::thread::scope(|scope| {
            let waiting: Vec<_> = nodes
                .clients()
                .into_iter()
                .map(|mut client| {
                    let path = path.clone();
                    scope.spawn(move || client.get(&path).expect_success("a wait"))
                })
                .collect();
            // The waits are on their way; one that comes late finds the event, as it should.
            std::thread::sleep(Duration::from_millis(100));
            let mut body = steps::beneficiary_body();
            body["submit"] = json!(false);
            let mut writer = nodes.clients().swap_remove(round % 3);
            writer.post("/v1/beneficiaries", &body).expect_success("a beneficiary");
            waiting.into_iter().map(|one| one.join().expect("a wait")).collect()
        });
        let found = answers.iter().find_map(|page| page["data"][0]["id"].as_str());
        in_vain += answers.iter().filter(|page| page["data"] == json!([])).count();
        cursor = format!("&starting_after={}", found.expect("an event at its own node at least"));
    }
    in_vain
}

#[test]
fn an_event_wakes_the_waits_at_every_node() {
    // A wait of 15 s that ends with the event was woken by it.
    assert_eq!(waits_in_vain(None, 5, 15), 0);
}

/// The same with nodes that hear of their own events alone.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "optimised builds do not contain the planted fault")]
fn a_node_that_is_blind_to_others_is_found_out() {
    assert!(waits_in_vain(Some("blind_to_other_nodes"), 1, 2) > 0);
}

/// Makes beneficiaries at two nodes while webhooks of their events go out; answers how often a
/// delivery was seen due whose queue did not know of it. The next event would wake the queue again,
/// so it is looked at all the time and not in the end alone. What a node has taken under a lease of
/// the queue is found again when the lease ends.
fn deliveries_forgotten(fault: Option<&str>, writers_per_node: usize, pause: Duration) -> u64 {
    const BENEFICIARIES_PER_WRITER: usize = 60;
    const FORGOTTEN: &str = "SELECT COUNT(*) FROM webhook_deliveries d JOIN webhook_queues q ON \
     q.endpoint_id = d.endpoint_id \
        WHERE d.due_milliseconds IS NOT NULL AND (q.due_milliseconds IS NULL OR \
        q.due_milliseconds > d.due_milliseconds) AND NOT (q.leased_by IS NOT NULL AND \
        q.due_milliseconds IS NOT NULL AND q.due_milliseconds <= q.leased_until_milliseconds)";
    let database = Database::fresh();
    let nodes = Nodes::start(&vec![database.url(); 2], |_, home| home.with_fault(fault));
    let receivers: Vec<Receiver> = (0..4).map(|_| Receiver::start()).collect();
    receivers.iter().for_each(|receiver| drop(receiver.register(&mut nodes.client())));
    let (is_over, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    let forgotten: u64 = std::thread::scope(|scope| {
        let (database, is_over, looks) = (&database, &is_over, &looks);
        let looking = scope.spawn(move || {
            let mut forgotten = 0;
            while !is_over.load(Ordering::Relaxed) {
                forgotten += database.value(FORGOTTEN).parse::<u64>().expect("a number");
                looks.fetch_add(1, Ordering::Relaxed);
            }
            forgotten
        });
        let writers: Vec<_> = nodes
            .clients()
            .iter()
            .flat_map(|client| (0..writers_per_node).map(|_| client.twin()))
            .map(|mut client| {
                scope.spawn(move || {
                    for _ in 0..BENEFICIARIES_PER_WRITER {
                        client
                            .post("/v1/beneficiaries", &steps::beneficiary_body())
                            .expect_success("a beneficiary");
                        // The queues run dry in between.
                        std::thread::sleep(pause);
                    }
                })
            })
            .collect();
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        written.into_iter().for_each(|outcome| outcome.expect("a writer"));
        looking.join().expect("the looks")
    });
    println!("{forgotten} forgotten deliveries in {} looks", looks.load(Ordering::Relaxed));
    assert!(looks.into_inner() > 20, "nobody looked");
    if fault.is_some() {
        return forgotten;
    }
    let mut client = nodes.client();
    let wanted = BENEFICIARIES_PER_WRITER * writers_per_node * 2;
    until("every beneficiary's last event", Duration::from_secs(60), || {
        (client.list("/v1/events", "type=beneficiary.status.active").len() == wanted).then_some(())
    });
    let events: Vec<String> =
        client.list("/v1/events", "").iter().map(|event| steps::text(event, "id")).collect();
    // Far sooner than any lease or retry would bring it back.
    let is_everywhere = |id: &String| receivers.iter().all(|receiver| receiver.valid_count(id) > 0);
    until("every delivery", Duration::from_secs(15), || {
        events.iter().all(is_everywhere).then_some(())
    });
    assert_eq!(database.value(FORGOTTEN), "0");
    forgotten
}

/// A worker that finds an endpoint's queue empty, and the sequencer that puts something into it at
/// that moment, do not miss each other.
#[test]
fn no_delivery_is_forgotten() {
    assert_eq!(
        deliveries_forgotten(None, 3, Duration::from_millis(30)),
        0,
        "a delivery was due and its queue did not know of it"
    );
}

/// The same with workers that look first and write later. Fewer writers, so that what is forgotten
/// stays so until somebody looks. Nothing is handed over, so that each delivery is claimed and its
/// queue looked at.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "optimised builds do not contain the planted fault")]
fn a_forgotten_delivery_is_found_out() {
    const TRIES_MAX: usize = 6;
    let found = (0..TRIES_MAX).any(|_| {
        let faults = Some("queues_looked_at_first,nothing_is_offered");
        deliveries_forgotten(faults, 1, Duration::from_millis(150)) > 0
    });
    assert!(
        found,
        "{TRIES_MAX} runs with the planted fault, and every queue knew of its deliveries"
    );
}

#[test]
fn the_judge_of_pollers_can_fail() {
    let ids = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let listed = ids("a b c d");
    assert_eq!(faults(&[listed.clone(), listed.clone()], &listed), Vec::<String>::new());
    for (what, seen) in [
        ("a gap", "a c d"),
        ("a repetition", "a b b c d"),
        ("another order", "a c b d"),
        ("nothing of the end", "a b c"),
    ] {
        assert!(
            !faults(&[listed.clone(), ids(seen)], &listed).is_empty(),
            "{what} was let through"
        );
    }
    assert!(!faults(&[], &ids("a c b")).is_empty(), "a list that does not rise was let through");
}
