//! What is limited or taken away at one node is so at all of them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::nodes::{Nodes, home};
use crate::support::postgres::Database;
use crate::support::{Client, until};

const NODES_COUNT: usize = 4;
const RATE: u64 = 60;
/// How long the limit is pushed against, after the burst is used up.
const SPAN: Duration = Duration::from_secs(5);

/// Reads a second that are allowed in total while callers at every node ask as fast as they can
/// with these keys.
fn allowed_rate(nodes: &Nodes, api_keys: &[String]) -> f64 {
    let (is_over, counts, allowed) =
        (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for (index, node) in nodes.nodes.iter().enumerate() {
            let mut client = node.client(&api_keys[index % api_keys.len()]);
            let (is_over, counts, allowed) = (&is_over, &counts, &allowed);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let answer = client.get("/v1/corridors");
                    match answer.status {
                        200 if counts.load(Ordering::Relaxed) => {
                            let _ = allowed.fetch_add(1, Ordering::Relaxed);
                        }
                        200 => {}
                        _ => {
                            assert_eq!(
                                (answer.status, answer.code().as_str()),
                                (429, "rate_limit_exceeded")
                            );
                            assert!(
                                answer.header("retry-after").is_some(),
                                "429 without Retry-After"
                            );
                            std::thread::sleep(Duration::from_millis(2));
                        }
                    }
                }
            });
        }
        // The burst is twice the rate.
        std::thread::sleep(Duration::from_secs(4));
        counts.store(true, Ordering::Relaxed);
        let started = Instant::now();
        std::thread::sleep(SPAN);
        counts.store(false, Ordering::Relaxed);
        let elapsed = started.elapsed();
        is_over.store(true, Ordering::Relaxed);
        allowed.load(Ordering::Relaxed) as f64 / elapsed.as_secs_f64()
    })
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
    let revoked = Instant::now();
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
