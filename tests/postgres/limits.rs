//! What is limited or taken away at one node is so at all of them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hundi::kernel::Clock;
use hundi::store::postgres::PostgresUrl;
use hundi::store::{Cost, Store, Tx};
use tokio::io::AsyncWriteExt;

use crate::nodes::{Node, Nodes, home};
use crate::support::client::request_bytes;
use crate::support::postgres::Database;
use crate::support::{Client, Stopwatch, steps, until};

const NODES_COUNT: usize = 4;
/// Low enough to be asked for by a machine that has much else to do.
const RATE: u64 = 10;
/// How long the limit is pushed against at least, after the burst is used up, and at most.
const SPAN: Duration = Duration::from_secs(8);
const SPAN_MAX: Duration = Duration::from_secs(40);
/// Refusals that are seen in that time at least.
const REFUSALS_MIN: usize = 20;

/// Reads a second that are allowed in total while callers at every node ask as fast as they can
/// with these keys. Counted from one refusal to another: at both moments nothing was left, however
/// fast the callers were in between.
fn allowed_rate(nodes: &Nodes, api_keys: &[String]) -> f64 {
    let (is_over, answers) = (AtomicBool::new(false), Mutex::new(Vec::<(Instant, bool)>::new()));
    std::thread::scope(|scope| {
        for (index, node) in nodes.nodes.iter().enumerate() {
            let mut client = node.client(&api_keys[index % api_keys.len()]);
            let (is_over, answers) = (&is_over, &answers);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let answer = client.get("/v1/corridors");
                    let is_allowed = answer.status == 200;
                    answers.lock().expect("the answers").push((Instant::now(), is_allowed));
                    if !is_allowed {
                        let seen = (answer.status, answer.code());
                        assert_eq!(seen, (429, "rate_limit_exceeded".to_owned()));
                        assert!(answer.header("retry-after").is_some(), "429 without Retry-After");
                        std::thread::sleep(Duration::from_millis(2));
                    }
                }
            });
        }
        // The burst is twice the rate.
        std::thread::sleep(Duration::from_secs(4));
        answers.lock().expect("the answers").clear();
        let started = Instant::now();
        let refusals_count =
            || answers.lock().expect("the answers").iter().filter(|(_, allowed)| !allowed).count();
        while started.elapsed() < SPAN
            || (refusals_count() < REFUSALS_MIN && started.elapsed() < SPAN_MAX)
        {
            std::thread::sleep(Duration::from_millis(100));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let answers = answers.into_inner().expect("the answers");
    let refusals = || answers.iter().filter(|(_, allowed)| !allowed).map(|(at, _)| *at);
    let (first, last) = (refusals().min().expect("a refusal"), refusals().max().expect("one"));
    let within = |at: &Instant| (first..=last).contains(at);
    let count = answers.iter().filter(|(at, allowed)| *allowed && within(at)).count();
    count as f64 / (last - first).as_secs_f64()
}

#[test]
fn a_rate_limit_holds_over_all_nodes() {
    let database = Database::fresh();
    let shape =
        |_, home: crate::support::Home| home.with("HUNDI_RATE_LIMIT_READS", &RATE.to_string());
    let nodes = Nodes::start(&vec![database.url(); NODES_COUNT], shape);
    let one = allowed_rate(&nodes, std::slice::from_ref(&nodes.api_key));
    println!("{one:.1} reads a second at {NODES_COUNT} nodes with a limit of {RATE}");
    assert!(
        (one / RATE as f64 - 1.0).abs() <= 0.1,
        "{one:.1} reads a second are more than 10 % from {RATE}"
    );
    // The control: a key for each node has a limit for each key, and the same measurement says so.
    let keys: Vec<String> = nodes.nodes.iter().map(|node| node.home.key()).collect();
    let four = allowed_rate(&nodes, &keys);
    assert!(
        four / RATE as f64 > 1.5,
        "{four:.1} reads a second with {NODES_COUNT} keys: the measurement does not see a limit \
         that is passed"
    );
}

#[test]
fn a_revoked_key_stops_at_every_node() {
    let database = Database::fresh();
    let nodes = Nodes::plain(NODES_COUNT, &database.url());
    let other = nodes.nodes[0].home.key();
    let mut clients: Vec<Client> = nodes.nodes.iter().map(|node| node.client(&other)).collect();
    for client in &mut clients {
        client.get("/v1/corridors").expect_success("a read before");
    }
    let listed = home(&database.url()).run(&["keys", "list"]).expect_success("keys list").stdout;
    let hint = &other[other.len() - 4..];
    let line = listed
        .lines()
        .find(|line| line.contains(hint))
        .unwrap_or_else(|| panic!("no key ends in {hint}: {listed}"));
    let id = line
        .split_whitespace()
        .find(|word| word.starts_with("api_key_"))
        .unwrap_or_else(|| panic!("no ID in {line}"))
        .to_owned();
    nodes.nodes[1].home.run(&["keys", "revoke", &id]).expect_success("keys revoke");
    let revoked = Stopwatch::start();
    for client in &mut clients {
        until("the key to stop", Duration::from_secs(5), || {
            (client.get("/v1/corridors").status == 401).then_some(())
        });
    }
    let elapsed = revoked.elapsed();
    assert!(
        elapsed <= Duration::from_millis(2_500),
        "the last node stopped it after {elapsed:?}: a second is promised, and the requests take \
         their time"
    );
    for mut client in nodes.clients() {
        client.get("/v1/corridors").expect_success("a read with a key that was not revoked");
    }
}

/// However many scans run, look-ups by key have a connection.
#[tokio::test(flavor = "multi_thread")]
async fn scans_leave_a_connection_to_look_ups() {
    let database = Database::fresh();
    let url = PostgresUrl::parse(&database.url()).expect("an address");
    // Two of these connections read.
    let store = Store::connect(&url, Clock::System, 6).await.expect("the schema");
    let (told, mut begun) = tokio::sync::mpsc::unbounded_channel();
    let mut holds = Vec::new();
    let mut scans = Vec::new();
    for _ in 0..3 {
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let (store, told) = (store.clone(), told.clone());
        holds.push(hold);
        scans.push(tokio::spawn(async move {
            let scan = move |_: &mut dyn Tx| {
                let _ = told.send(());
                let _ = held.recv_timeout(steps::PATIENCE);
                Ok(())
            };
            store.read(Cost::Scan, scan).await
        }));
    }
    begun.recv().await.expect("a scan begins");
    let count = |tx: &mut dyn Tx| Ok(hundi::keys::rows::accounts_count(tx)?);
    store.read(Cost::Point, count).await.expect("a look-up");
    assert!(begun.try_recv().is_err(), "one scan at a time");
    drop(holds);
    for scan in scans {
        scan.await.expect("a task").expect("a scan");
    }
    store.close().await;
}

/// The work of a report goes on when its caller has gone, and so does its turn: the account's next
/// one waits. Otherwise a caller who hung up again and again had as many at once as the node runs.
#[test]
fn a_report_keeps_its_turn_when_its_caller_goes() {
    let database = Database::fresh();
    let node = Node::start(home(&database.url()).with("HUNDI_ROLE", "serve"));
    let api_key = node.home.key();
    let held = database.hold("LOCK TABLE ledger_postings IN ACCESS EXCLUSIVE MODE");
    let count = || -> u64 {
        const WAITING: &str = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = \
                               current_database() AND wait_event_type = 'Lock'";
        database.value(WAITING).parse().expect("a count")
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let stream = tokio::net::TcpStream::connect(node.address).await;
        let mut stream = stream.expect("a connection");
        let request = request_bytes("GET", "/v1/statements", &api_key, None, None);
        stream.write_all(&request).await.expect("a request to send");
        until("the report to wait", Duration::from_secs(10), || (count() == 1).then_some(()));
        // Dropping the stream resets the connection.
        stream.set_zero_linger().expect("a reset");
    });
    let mut client = node.client(&api_key);
    let most = std::thread::scope(|scope| {
        let second = scope.spawn(move || client.get("/v1/statements").status);
        let mut most = 0;
        while !second.is_finished() {
            most = most.max(count());
        }
        assert!([429, 503].contains(&second.join().expect("the second report")));
        most
    });
    assert_eq!(most, 1, "the account had several reports at once");
    drop(held);
    until("the turn to come", Duration::from_secs(20), || {
        (node.client(&api_key).get("/v1/statements").status == 200).then_some(())
    });
}
