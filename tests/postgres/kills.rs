//! Nodes die, PostgreSQL restarts, connections end in the middle: nothing acknowledged is lost,
//! nothing happens twice, and what a dead node held is taken over in time.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::nodes::{Aftermath, Node, Nodes, await_service, home, under_load};
use crate::proxy::{AtCommit, Proxy};
use crate::support::oracle::Finding;
use crate::support::postgres::{Cluster, Database};
use crate::support::random::{number, seed};
use crate::support::{Home, Stopwatch, steps, until};

/// Of every node, after PostgreSQL takes connections again.
const BACK_MAX: Duration = Duration::from_secs(3);
/// From a sequencer's death to the first event of the next one.
const SEQUENCER_LEASE_MAX: Duration = Duration::from_secs(10);
/// From a worker's death to the next attempt at what it had in its hands.
const WORKER_LEASE_MAX: Duration = Duration::from_secs(60);

fn skewed(index: usize, home: Home) -> Home {
    const SKEWS_SECONDS: [i64; 4] = [120, -90, 0, -150];
    home.with(
        "HUNDI_TEST_CLOCK_SKEW_SECONDS",
        &SKEWS_SECONDS[index % SKEWS_SECONDS.len()].to_string(),
    )
}

#[test]
fn nodes_that_die_lose_nothing() {
    const NODES_COUNT: usize = 4;
    let seed = seed("HUNDI_POSTGRES_SEED");
    let kills_count = number("HUNDI_POSTGRES_KILLS", 6);
    let life_milliseconds = number("HUNDI_POSTGRES_LIFE_MILLISECONDS", 900);
    let database = Database::fresh();
    let mut nodes = Nodes::start(&vec![database.url(); NODES_COUNT], skewed);
    let aftermath = under_load(&mut nodes, seed, true, |nodes, random| {
        for kill in 1..=kills_count {
            std::thread::sleep(Duration::from_millis(
                random.between(life_milliseconds / 3, life_milliseconds),
            ));
            let victim = random.below(NODES_COUNT);
            nodes.nodes[victim].kill();
            // The last one stays dead: the others have to finish what it began.
            if kill < kills_count {
                nodes.nodes[victim].start_again();
            }
        }
    });
    aftermath.tell(&format!("{kills_count} kills of {NODES_COUNT} nodes"));
    aftermath.expect_sound();
    nodes.check();
}

/// Restarts PostgreSQL, which has these settings, under load; answers what the load saw and the
/// longest that the service took to be back.
/// Nodes that find out that writes are missing wait for the operator, who tells them to go on.
fn resume_where_writes_are_missing(nodes: &Nodes) {
    let mut resumed_count = 0;
    until("every node to be ready again", Duration::from_secs(60), || {
        let alarms =
            nodes.nodes.iter().map(|node| node.home.log().matches("database_went_back").count());
        let alarms_count: usize = alarms.sum();
        if alarms_count > resumed_count {
            resumed_count = alarms_count;
            nodes.nodes[0].home.run(&["resume", "database"]).expect_success("resume");
        }
        nodes.nodes.iter().all(|node| node.is_ready()).then_some(())
    });
}

fn restarts(
    settings: &[&str],
    fault: Option<&str>,
    count: u64,
    settles: bool,
    seed: u64,
) -> (Aftermath, Duration) {
    let cluster = Cluster::start(settings);
    let database = Database::in_cluster(&cluster.url);
    let mut nodes = Nodes::start(&vec![database.url(); 2], |_, home| home.with_fault(fault));
    let mut back_slowest = Duration::ZERO;
    let aftermath = under_load(&mut nodes, seed, settles, |nodes, random| {
        for _ in 0..count {
            std::thread::sleep(Duration::from_millis(random.between(700, 2_000)));
            cluster.stop_now();
            std::thread::sleep(Duration::from_millis(random.between(0, 1_500)));
            cluster.start_again();
            if fault.is_some() {
                resume_where_writes_are_missing(nodes);
            }
            let watch = Stopwatch::start();
            await_service(nodes);
            back_slowest = back_slowest.max(watch.elapsed());
        }
    });
    if settles {
        nodes.check();
    }
    (aftermath, back_slowest)
}

#[test]
fn restarts_of_postgres_lose_nothing() {
    let count = number("HUNDI_POSTGRES_RESTARTS", 2);
    let (aftermath, back_slowest) = restarts(&[], None, count, true, seed("HUNDI_POSTGRES_SEED"));
    aftermath.tell(&format!("{count} restarts of PostgreSQL, back after {back_slowest:?} at most"));
    aftermath.expect_sound();
    assert!(
        back_slowest <= BACK_MAX,
        "back {back_slowest:?} after PostgreSQL: {BACK_MAX:?} is promised"
    );
}

/// The same with commits that are called done before they are kept: an oracle that stays silent
/// here would prove nothing above.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "optimised builds do not contain the planted fault")]
fn a_commit_that_is_not_kept_is_found_out() {
    const SETTINGS: &[&str] = &["wal_writer_delay=10s"];
    const TRIES_MAX: u64 = 5;
    let seed = seed("HUNDI_POSTGRES_SEED");
    for round in 0..TRIES_MAX {
        let (aftermath, _) =
            restarts(SETTINGS, Some("commit_not_kept"), 2, false, seed.wrapping_add(round));
        println!("round {round}: the oracle reports {} losses", aftermath.losses_count());
        if aftermath.losses_count() > 0 {
            return;
        }
    }
    panic!(
        "PostgreSQL kept no commit and was restarted {} times, and the oracle noticed nothing",
        TRIES_MAX * 2
    );
}

#[test]
fn terminated_connections_lose_nothing() {
    let seed = seed("HUNDI_POSTGRES_SEED");
    let count = number("HUNDI_POSTGRES_TERMINATIONS", 60);
    let database = Database::fresh();
    let (proxies, mut nodes) = Nodes::behind_proxies(&database, seed);
    let at_commit = count.div_ceil(3);
    let aftermath = under_load(&mut nodes, seed, true, |_, random| {
        // A third at COMMIT, half of it at each node.
        for proxy in &proxies {
            let ways = [
                AtCommit::TerminateBefore,
                AtCommit::TerminateDuring,
                AtCommit::CutAfter,
                AtCommit::CutBefore,
            ];
            proxy.fail_commits(at_commit.div_ceil(2), 3, &ways);
        }
        for _ in 0..count - at_commit {
            std::thread::sleep(Duration::from_millis(random.between(20, 120)));
            // One that works, where there is one.
            database.sql(
                "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE \
                 datname = current_database() \
                 AND pid <> pg_backend_pid() ORDER BY state = 'idle', random() LIMIT 1) AS victim",
            );
        }
        until("the commits to fail", Duration::from_secs(120), || {
            (proxies.iter().map(|proxy| proxy.commits().1).sum::<u64>() >= at_commit).then_some(())
        });
        proxies.iter().for_each(Proxy::heal);
    });
    aftermath.tell(&format!("{count} terminated connections, {at_commit} of them at COMMIT"));
    aftermath.expect_sound();
    nodes.check();
}

/// From now to the first event of a beneficiary that is made now.
fn event_after(nodes: &Nodes) -> Duration {
    let started = Instant::now();
    let mut client = nodes.client();
    let made = client
        .post("/v1/beneficiaries", &steps::beneficiary_body())
        .expect_success("a beneficiary");
    let query = format!("/v1/events?linked_id={}", steps::text(&made, "id"));
    until("an event after the sequencer's death", SEQUENCER_LEASE_MAX * 3, || {
        client.get(&query).json()["data"]
            .as_array()
            .is_some_and(|data| !data.is_empty())
            .then_some(())
    });
    started.elapsed()
}

#[test]
fn a_dead_sequencer_is_taken_over() {
    let database = Database::fresh();
    let mut nodes = Nodes::plain(2, &database.url());
    let mut slowest = Duration::ZERO;
    // Whoever holds the lease first: one of the two deaths is the holder's.
    for victim in [0, 1] {
        nodes.nodes[victim].kill();
        slowest = slowest.max(event_after(&nodes));
        nodes.nodes[victim].start_again();
    }
    println!("the sequencer was taken over within {slowest:?}");
    assert!(slowest <= SEQUENCER_LEASE_MAX, "an event {slowest:?} after a death");
    // The control: a lease that somebody dead holds for longer than is promised, and the same
    // clock.
    database.sql(
        "UPDATE leases SET token = token + 1, holder = '\\x00', ends_milliseconds = \
         CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) + 14000 WHERE name = \
         'events'",
    );
    let late = event_after(&nodes);
    assert!(late > SEQUENCER_LEASE_MAX, "an event {late:?} after a death that lasts 14 s");
}

/// One whose machine is gone in the middle of a transaction, so that PostgreSQL keeps the lease's
/// row locked for it for a while.
#[test]
fn a_silent_sequencer_is_taken_over() {
    let database = Database::fresh();
    let proxy = Proxy::start(database.server_address(), &Cluster::shared_url(), 1);
    let serving = Nodes::start(&[database.url()], |_, home| home.with("HUNDI_ROLE", "serve"));
    let _silent = Node::start(home(&database.url_at(proxy.address)).with("HUNDI_ROLE", "work"));
    event_after(&serving);
    let _next = Node::start(home(&database.url()).with("HUNDI_ROLE", "work"));
    proxy.change(|faults| faults.holds_commits = true);
    serving
        .client()
        .post("/v1/beneficiaries", &steps::beneficiary_body())
        .expect_success("a beneficiary");
    let free = "SELECT COUNT(*) FROM (SELECT 1 FROM leases WHERE name = 'events' FOR UPDATE SKIP \
     LOCKED) AS free";
    until("the lease's row to be locked", Duration::from_secs(10), || {
        (database.value(free) == "0").then_some(())
    });
    proxy.change(|faults| faults.holds_all = true);
    assert_eq!(database.value(free), "0", "nobody holds the row: the test means nothing");
    let waited = event_after(&serving);
    println!("the sequencer was taken over after {waited:?}");
    assert!(waited <= SEQUENCER_LEASE_MAX, "an event {waited:?} after the sequencer fell silent");
}

/// The next connection; a test that waits for one in vain fails.
fn accept(listener: &TcpListener, what: &str) -> TcpStream {
    listener.set_nonblocking(true).expect("a listener that does not wait");
    let stream =
        until(what, WORKER_LEASE_MAX * 2, || listener.accept().ok().map(|(stream, _)| stream));
    stream.set_nonblocking(false).expect("a stream that waits");
    stream
}

/// Reads a request to the end of its head and its body.
fn read_request(stream: &mut TcpStream) {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        let count = stream.read(&mut part).unwrap_or(0);
        bytes.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        let Some(head) = text.find("\r\n\r\n") else {
            assert!(count > 0, "the sender closed");
            continue;
        };
        let length = text
            .split("content-length: ")
            .nth(1)
            .and_then(|rest| rest.lines().next()?.trim().parse::<usize>().ok());
        if count == 0 || bytes.len() >= head + 4 + length.unwrap_or(0) {
            return;
        }
    }
}

#[test]
fn a_dead_workers_delivery_is_taken_over() {
    let database = Database::fresh();
    let serving = Node::start(home(&database.url()).with("HUNDI_ROLE", "serve"));
    let mut first = Node::start(home(&database.url()).with("HUNDI_ROLE", "work"));
    let api_key = serving.home.key();
    let mut client = serving.client(&api_key);
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    for listener in &listeners {
        let url = format!("http://{}/hooks", listener.local_addr().expect("an address"));
        let endpoint = json!({ "url": url, "enabled_events": ["beneficiary.status.verifying"] });
        client.post("/v1/webhook_endpoints", &endpoint).expect_success("the endpoint");
    }
    client.post("/v1/beneficiaries", &steps::beneficiary_body()).expect_success("a beneficiary");
    // The worker has both deliveries in its hands when it dies.
    let mut attempts = listeners.each_ref().map(|listener| accept(listener, "the first attempt"));
    attempts.iter_mut().for_each(read_request);
    first.kill();
    let died = Instant::now();
    // The control: what the second endpoint gets is held for longer than is promised.
    const LATER: Duration = Duration::from_secs(20);
    let held_longer = format!(
        "UPDATE webhook_deliveries SET due_milliseconds = due_milliseconds + {} \
         WHERE endpoint_id = (SELECT endpoint_id FROM webhook_queues ORDER BY endpoint_id DESC \
         LIMIT 1)",
        LATER.as_millis()
    );
    database.sql(&held_longer);
    let _second = Node::start(home(&database.url()).with("HUNDI_ROLE", "work"));
    let [waited, waited_longer] = listeners.map(|listener| {
        let mut attempt = accept(&listener, "the next attempt");
        read_request(&mut attempt);
        let waited = died.elapsed();
        attempt.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("an answer");
        waited
    });
    println!("the deliveries were taken over after {waited:?} and {waited_longer:?}");
    assert!(waited <= WORKER_LEASE_MAX, "the next attempt came {waited:?} after a worker's death");
    assert!(
        waited_longer > WORKER_LEASE_MAX,
        "what was held for longer came {waited_longer:?} after a worker's death"
    );
}

/// The judges of all the above: rows that are gone or there twice, a book that was changed, and a
/// service that is late.
#[test]
fn damage_is_found_out() {
    let database = Database::fresh();
    let mut nodes = Nodes::plain(2, &database.url());
    let aftermath = under_load(&mut nodes, seed("HUNDI_POSTGRES_SEED"), true, |_, _| {
        until("the load to be well under way", Duration::from_secs(60), || {
            (database.value("SELECT COUNT(*) > 300 FROM quote_locks") == "t").then_some(())
        });
        database.sql(
            "CREATE TEMPORARY TABLE damaged AS SELECT * FROM senders ORDER BY id LIMIT 1; \
             UPDATE damaged SET id = set_byte(id, 15, (get_byte(id, 15) + 1) % 256); INSERT INTO \
             senders SELECT * FROM damaged; \
             DELETE FROM quote_locks WHERE id = (SELECT id FROM quote_locks WHERE transfer_id IS \
             NULL ORDER BY id LIMIT 1)",
        );
    });
    aftermath.tell("a sender copied and a quote lock deleted");
    assert!(aftermath.losses_count() > 0, "nothing is missed");
    assert!(
        aftermath.findings.iter().any(|finding| matches!(finding, Finding::Doubled(_))),
        "nothing was doubled"
    );
    nodes.check();
    database.sql(
        "UPDATE ledger_postings SET units = units + 1 WHERE id = (SELECT id FROM \
     ledger_postings ORDER BY id LIMIT 1)",
    );
    assert!(
        !nodes.nodes[0].home.check().status.success(),
        "a book that was changed passes the check"
    );
}

#[test]
fn a_late_return_is_found_out() {
    let database = Database::fresh();
    let proxy = Proxy::start(database.server_address(), &Cluster::shared_url(), 1);
    let nodes = Nodes::plain(1, &database.url_at(proxy.address));
    proxy.change(|faults| faults.refuses = true);
    proxy.cut();
    let back = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(BACK_MAX + Duration::from_secs(1));
            proxy.heal();
        });
        await_service(&nodes)
    });
    assert!(back > BACK_MAX, "back after {back:?}, and the network was away for longer");
}
