//! A node that stops drains first; what stands beside running nodes is refused; what the operator
//! sees of a node's connections and leases.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use crate::nodes::{Node, home};
use crate::support::postgres::Database;
use crate::support::{Client, fresh_key, steps, until};

const PATIENCE: Duration = Duration::from_secs(30);
const DRAIN_SECONDS: u64 = 3;

#[test]
fn a_node_that_stops_drains_first_and_tells_its_service_manager() {
    let database = Database::fresh();
    let folder = std::env::temp_dir().join(fresh_key());
    std::fs::create_dir(&folder).expect("a folder");
    let path = folder.join("notify");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    manager.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let told = || {
        let mut bytes = [0; 64];
        let count = manager.recv(&mut bytes).expect("what the node tells");
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    };
    let home = home(&database.url())
        .with("HUNDI_DATABASE_CONNECTIONS", "6")
        .with("HUNDI_DRAIN_SECONDS", &DRAIN_SECONDS.to_string())
        .with("NOTIFY_SOCKET", &path.to_string_lossy());
    let mut server = home.start();
    assert_eq!(told(), "READY=1");
    let mut client = server.client(&home.key());
    let stopped = Instant::now();
    server.signal("TERM");
    let stopping = told();
    let extended = stopping.strip_prefix("STOPPING=1\nEXTEND_TIMEOUT_USEC=");
    let microseconds: u64 = extended.and_then(|text| text.parse().ok()).expect(&stopping);
    assert!(microseconds > (DRAIN_SECONDS + 20) * 1_000_000, "it is killed before it has stopped");
    let ready = client.get("/readyz");
    assert_eq!(ready.status, 503, "a load balancer still sends it requests");
    assert!(ready.text().contains("stopping"), "{}", ready.text());
    // Requests that come all the same are served.
    let made = steps::sender_once(&mut client);
    made.expect("an answer").expect_success("a sender while the node drains");
    assert!(server.await_end(PATIENCE).success());
    assert!(stopped.elapsed() >= Duration::from_secs(DRAIN_SECONDS), "it did not drain");
    std::fs::remove_dir_all(&folder).expect("the folder to go");
}

/// One that does no background work holds no lease.
#[test]
fn addresses_are_not_skipped_beside_a_node_of_any_role() {
    let database = Database::fresh();
    for role in ["all", "serve", "work"] {
        let home = home(&database.url()).with("HUNDI_DATABASE_CONNECTIONS", "6");
        let mut node = Node::start(home.with("HUNDI_ROLE", role));
        let refused = node.home.run(&["addresses", "skip"]);
        assert!(!refused.status.success(), "addresses are skipped beside a node that is {role}");
        assert!(refused.stderr.contains("stop all nodes first"), "{}", refused.stderr);
        node.stop();
        // The server notices the end of connections a moment later.
        until("addresses to be skipped", PATIENCE, || {
            node.home.run(&["addresses", "skip"]).status.success().then_some(())
        });
    }
}

#[test]
fn a_database_that_fails_is_named_once() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("an address");
    drop(free);
    let outcome = home(&format!("postgres://postgres@{address}/hundi")).run(&["doctor"]);
    assert!(!outcome.status.success());
    let lines = outcome.stdout.lines().filter(|line| line.starts_with("database")).count();
    let said = [outcome.stdout.as_str(), &outcome.stderr].concat();
    assert_eq!((lines, said.matches("cannot be reached").count()), (1, 1), "{said}");
}

/// The figure of a metric, of all of its labels together.
fn figure(address: std::net::SocketAddr, name: &str) -> f64 {
    let page = Client::new(address, "").get("/metrics").text();
    let figures: Vec<f64> = page
        .lines()
        .filter(|line| line.starts_with(name))
        .filter_map(|line| line.rsplit_once(' ')?.1.parse().ok())
        .collect();
    assert!(!figures.is_empty(), "no metric is named {name}");
    figures.iter().sum()
}

#[test]
fn leases_waits_and_reconnects_are_counted() {
    let database = Database::fresh();
    let nodes = [(); 2].map(|()| {
        let home = home(&database.url()).with("HUNDI_DATABASE_CONNECTIONS", "6");
        Node::start(home.with("HUNDI_METRICS", "true"))
    });
    let held = "hundi_leases_held{lease=\"events\"}";
    until("one holder of the sequencer's lease", PATIENCE, || {
        let holds = nodes.each_ref().map(|node| {
            let page = node.page("/metrics");
            page.lines().any(|line| line == format!("{held} 1"))
        });
        (holds[0] != holds[1]).then_some(())
    });
    let node = &nodes[0];
    let mut client = node.client(&node.home.key());
    let mut write = || {
        let made = steps::sender_once(&mut client);
        made.expect("an answer").expect_success("a sender");
    };
    write();
    let connections = || figure(node.address, "hundi_database_connections_total");
    let before = connections();
    assert!(before >= 1.0 && figure(node.address, "hundi_database_wait_microseconds_total") > 0.0);
    let timeline: f64 = database
        .value("SELECT timeline_id FROM pg_control_checkpoint()")
        .parse()
        .expect("a number");
    assert_eq!(figure(node.address, "hundi_database_timeline"), timeline);
    database.terminate_connections();
    until("a reconnect to be counted", PATIENCE, || {
        write();
        (connections() > before).then_some(())
    });
}

/// A connection that nothing else can be read on keeps eight requests waiting.
#[test]
fn waits_of_reads_are_counted() {
    const HELD: Duration = Duration::from_millis(500);
    let database = Database::fresh();
    let home = home(&database.url()).with("HUNDI_DATABASE_CONNECTIONS", "6");
    let node = Node::start(home.with("HUNDI_METRICS", "true"));
    let api_key = node.home.key();
    let id = steps::sender_once(&mut node.client(&api_key)).expect("an answer").id();
    let waited = || figure(node.address, "hundi_database_wait_microseconds_total");
    let before = waited();
    // Reads wait for the table, on as many connections as read; the others wait for those.
    let held = database.hold("LOCK TABLE senders IN ACCESS EXCLUSIVE MODE");
    let path = format!("/v1/senders/{id}");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let mut client = node.client(&api_key);
            let path = &path;
            scope.spawn(move || client.get(path));
        }
        std::thread::sleep(HELD);
        drop(held);
    });
    let microseconds = waited() - before;
    assert!(microseconds > HELD.as_micros() as f64, "{microseconds} microseconds were counted");
}
