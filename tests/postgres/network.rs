//! A bad network between the nodes and PostgreSQL: no request hangs, nothing is lost or doubled,
//! and the service comes back by itself.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::nodes::{ANSWER_MAX, Node, Nodes, SLACK, await_service, home, under_load};
use crate::proxy::{AtCommit, Proxy};
use crate::support::postgres::{Cluster, Database, try_sql};
use crate::support::random::{number, seed};
use crate::support::{Answer, Client, Random, fresh_key, steps, until};

/// From a network that is well again to a node that writes.
const RECOVERY_MAX: Duration = Duration::from_secs(10);

/// A node behind each proxy, with what both need.
struct Scene {
    proxies: Vec<Proxy>,
    nodes: Nodes,
    _database: Database,
}

fn scene(seed: u64) -> Scene {
    let database = Database::fresh();
    let (proxies, nodes) = Nodes::behind_proxies(&database, seed);
    Scene { nodes, proxies, _database: database }
}

/// Makes trouble under load in both nodes' networks, a while each; answers the slowest recovery.
fn trouble(
    proxies: &[Proxy],
    nodes: &Nodes,
    random: &mut Random,
    rounds: u64,
    held: Duration,
) -> Duration {
    let mut recovery_slowest = Duration::ZERO;
    for round in 0..rounds {
        let proxy = &proxies[random.below(proxies.len())];
        match round % 4 {
            0 => {
                proxy.change(|faults| faults.delay = Duration::from_millis(40));
                std::thread::sleep(Duration::from_millis(1_500));
            }
            1 => {
                for _ in 0..5 {
                    std::thread::sleep(Duration::from_millis(random.between(50, 400)));
                    proxies.iter().for_each(Proxy::cut);
                }
            }
            2 => {
                proxy.change(|faults| faults.refuses = true);
                proxy.cut();
                std::thread::sleep(Duration::from_millis(1_500));
            }
            // Held longer than any request may take: what was sent arrives when everybody has given
            // up on it.
            _ => {
                proxy.change(|faults| faults.holds_all = true);
                std::thread::sleep(held);
            }
        }
        proxies.iter().for_each(Proxy::heal);
        recovery_slowest = recovery_slowest.max(await_service(nodes));
    }
    recovery_slowest
}

#[test]
fn no_request_hangs_and_nothing_is_lost() {
    let seed = seed("HUNDI_POSTGRES_SEED");
    let rounds = number("HUNDI_POSTGRES_NETWORK_ROUNDS", 4);
    let Scene { proxies, mut nodes, _database } = scene(seed);
    let mut recovery_slowest = Duration::ZERO;
    let aftermath = under_load(&mut nodes, seed, true, |nodes, random| {
        recovery_slowest =
            trouble(&proxies, nodes, random, rounds, ANSWER_MAX + Duration::from_secs(2));
    });
    aftermath
        .tell(&format!("{rounds} kinds of network trouble, slowest recovery {recovery_slowest:?}"));
    aftermath.expect_sound();
    assert!(
        recovery_slowest <= RECOVERY_MAX,
        "a node wrote again {recovery_slowest:?} after its network was well"
    );
    nodes.check();
}

/// A node whose network is gone holds rows of PostgreSQL; its neighbour is not held up by them for
/// longer than any request may take.
#[test]
fn a_node_cut_off_does_not_hold_up_its_neighbour() {
    let Scene { proxies, nodes, _database } = scene(1);
    let (mut gone, mut neighbour) =
        (nodes.nodes[0].client(&nodes.api_key), nodes.nodes[1].client(&nodes.api_key));
    let beneficiary_id = steps::beneficiary_payable(&mut neighbour);
    let sender_id = steps::sender(&mut neighbour);
    let quote_lock_id = steps::quote_lock(&mut neighbour, "10.00");
    let body =
        steps::transfer_body(&sender_id, &beneficiary_id, &quote_lock_id, "10.00").to_string();
    // The first node's transaction stops at its COMMIT, with the quote lock in its hands.
    proxies[0].change(|faults| faults.holds_commits = true);
    let key = fresh_key();
    gone.start("POST", "/v1/transfers", Some(&key), Some(body.as_bytes())).expect("a request");
    until("a COMMIT to be held", Duration::from_secs(10), || {
        (proxies[0].commits().1 > 0).then_some(())
    });
    let started = Instant::now();
    // The same key, then another one for the same quote lock.
    let mut answers = Vec::new();
    for key in [key.clone(), fresh_key()] {
        let sent = Instant::now();
        let answer = neighbour.ask("POST", "/v1/transfers", Some(&key), Some(body.as_bytes()));
        println!("{} {} after {:?}", answer.status, answer.code(), sent.elapsed());
        assert!(sent.elapsed() <= ANSWER_MAX + SLACK, "an answer after {:?}", sent.elapsed());
        assert!(
            [200, 400, 409, 503].contains(&answer.status),
            "{} {}",
            answer.status,
            answer.text()
        );
        answers.push(answer);
    }
    let first = gone.finish().expect("an answer to the node that was cut off");
    assert!(
        started.elapsed() <= ANSWER_MAX * 2 + SLACK,
        "the first request was answered after {:?}",
        started.elapsed()
    );
    assert!(first.status == 503 || first.is_success(), "{} {}", first.status, first.text());
    proxies[0].heal();
    // Sent again until it is final: one transfer in all.
    let settle = |client: &mut Client| {
        until("a final answer", Duration::from_secs(30), || {
            let answer = client.ask("POST", "/v1/transfers", Some(&key), Some(body.as_bytes()));
            (answer.is_success() || answer.code() == "quote_lock_already_used").then_some(answer)
        })
    };
    let (here, there) = (settle(&mut gone), settle(&mut neighbour));
    assert_eq!((here.status, here.text()), (there.status, there.text()), "one key, two answers");
    assert_eq!(
        neighbour.list("/v1/transfers", "").len(),
        1,
        "there is more or less than the one transfer"
    );
    nodes.check();
}

/// Every kind of way into a node, those outside `/v1` too.
fn ways(client: &mut Client) -> Vec<(&'static str, String, Option<String>)> {
    let payment = steps::six_steps(client, "42.00");
    let transfer_path = format!("/v1/transfers/{}", payment.transfer_id);
    let transfer = client.get(&transfer_path).expect_success("the transfer");
    let payout_id = transfer["payout"]["id"].as_str().expect("a payout");
    let advice_path = format!("/v1/payouts/{payout_id}/payment_advice");
    let advice = until("the advice", steps::PATIENCE, || {
        Some(client.get(&advice_path)).filter(Answer::is_success)
    })
    .json();
    // The path of a link.
    let path = |url: &str| format!("/{}", url.splitn(4, '/').nth(3).unwrap_or_default());
    let verify = path(advice["verification_url"].as_str().expect("a link"));
    let pay = path(transfer["funding"]["instructions_url"].as_str().expect("a link"));
    let endpoint = json!({ "url": "http://127.0.0.1:9/hooks", "enabled_events": ["*"] });
    let endpoint_id = steps::text(
        &client.post("/v1/webhook_endpoints", &endpoint).expect_success("an endpoint"),
        "id",
    );
    let get = |path: String| ("GET", path, None);
    let ways = vec![
        get("/readyz".into()),
        get("/metrics".into()),
        get("/.well-known/hundi-advice-keys.json".into()),
        get(verify),
        get(format!("{pay}/state")),
        get(pay),
        get(transfer_path.clone()),
        get("/v1/transfers?limit=100".into()),
        get(advice_path),
        ("POST", "/v1/senders".into(), Some(steps::sender_body().to_string())),
        (
            "POST",
            format!("{transfer_path}/funding/diagnose"),
            Some(json!({ "transaction_hash": "0".repeat(64) }).to_string()),
        ),
        ("DELETE", format!("/v1/webhook_endpoints/{endpoint_id}"), None),
    ];
    for (method, path, body) in ways.iter().filter(|(method, ..)| *method != "DELETE") {
        let key = body.is_some().then(fresh_key);
        client
            .ask(method, path, key.as_deref(), body.as_deref().map(str::as_bytes))
            .expect_success(path);
    }
    ways
}

/// What each way is answered, and after how long, when all are taken several times at once.
fn answers_at_once(
    node: &Node,
    api_key: &str,
    ways: &[(&str, String, Option<String>)],
) -> Vec<(String, Option<u16>, Duration)> {
    const TIMES: usize = 4;
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..TIMES)
            .flat_map(|_| ways)
            .map(|(method, path, body)| {
                let mut client = node.client(api_key);
                scope.spawn(move || {
                    let (key, started) = (fresh_key(), Instant::now());
                    // The client gives up after twice the time that is allowed.
                    let answer = client
                        .once(method, path, Some(&key), body.as_deref().map(str::as_bytes))
                        .ok();
                    (
                        format!("{method} {path}"),
                        answer.map(|answer| answer.status),
                        started.elapsed(),
                    )
                })
            })
            .collect();
        asked.into_iter().map(|asked| asked.join().expect("a caller")).collect()
    })
}

/// Asks every way while nothing comes through, on connections that were good or while none can be
/// made, one after the other. Answers the slowest, and what was answered otherwise than it may be.
fn slowest_in_a_black_hole(fault: Option<&str>, are_connected: &[bool]) -> (Duration, Vec<String>) {
    let database = Database::fresh();
    let proxy = Proxy::start(database.server_address(), &Cluster::shared_url(), 1);
    let home = home(&database.url_at(proxy.address)).with("HUNDI_METRICS", "true");
    let node = Node::start(home.with_fault(fault));
    let api_key = node.home.key();
    let ways = ways(&mut node.client(&api_key));
    let (mut slowest, mut wrong, mut refused_count) = (Duration::ZERO, Vec::new(), 0);
    for is_connected in are_connected {
        proxy.change(|faults| faults.holds_all = true);
        if !is_connected {
            proxy.cut();
        }
        for (way, status, elapsed) in answers_at_once(&node, &api_key, &ways) {
            slowest = slowest.max(elapsed);
            refused_count += usize::from(status == Some(503));
            if !matches!(status, Some(200 | 503)) || elapsed > ANSWER_MAX + SLACK {
                wrong.push(format!("{way}: {status:?} after {elapsed:?}"));
            }
        }
    }
    assert!(
        refused_count > ways.len() * are_connected.len(),
        "only {refused_count} requests noticed: the test means nothing"
    );
    proxy.heal();
    until("the node to be ready again", RECOVERY_MAX, || node.is_ready().then_some(()));
    (slowest, wrong)
}

#[test]
fn every_way_is_answered_in_time() {
    let (slowest, wrong) = slowest_in_a_black_hole(None, &[true, false]);
    println!("the slowest answer came after {slowest:?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The same with a node that sets no limits but those of its transactions: the clock above sees
/// what is too late.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "optimised builds do not contain the planted fault")]
fn answers_that_come_late_are_found_out() {
    let (slowest, wrong) = slowest_in_a_black_hole(Some("no_time_limit"), &[false]);
    println!("without limits the slowest answer came after {slowest:?}");
    assert!(slowest > ANSWER_MAX + SLACK && !wrong.is_empty(), "nothing was late: {slowest:?}");
}

/// Calls after an outage that show it to be over.
const SERVED_MIN: u64 = 60;

/// Cuts a node off for longer than any request waits, while calls come in at a steady pace whatever
/// becomes of those before; answers how many were served after the network was well again, with the
/// calls still coming: until there were enough, or for this long.
fn served_after_an_outage(fault: Option<&str>, watched: Duration) -> u64 {
    const CALL_PAUSE: Duration = Duration::from_millis(25);
    const OUTAGE: Duration = Duration::from_secs(10);
    let database = Database::fresh();
    let proxy = Proxy::start(database.server_address(), &Cluster::shared_url(), 1);
    // One connection reads, so each call that waited has as little time left as one comes after the
    // other; a connection takes longer than that.
    let home = home(&database.url_at(proxy.address))
        .with("HUNDI_DATABASE_CONNECTIONS", "4")
        .with("HUNDI_ROLE", "serve");
    let node = Node::start(home.with_fault(fault));
    let api_key = node.home.key();
    proxy.change(|faults| faults.connect_delay = Duration::from_millis(300));
    let (is_over, served) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (address, api_key, is_over, served) = (node.address, &api_key, &is_over, &served);
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let mut client = Client::new(address, api_key);
                scope.spawn(move || {
                    let is_served = client
                        .once("GET", "/v1/transfers", None, None)
                        .is_ok_and(|answer| answer.status == 200);
                    served.fetch_add(u64::from(is_served), Ordering::Relaxed);
                });
                std::thread::sleep(CALL_PAUSE);
            }
        });
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            until("calls to be served", Duration::from_secs(10), || {
                (served.load(Ordering::Relaxed) > 20).then_some(())
            });
            proxy.change(|faults| faults.refuses = true);
            proxy.cut();
            std::thread::sleep(Duration::from_secs(1));
            served.store(0, Ordering::Relaxed);
            std::thread::sleep(OUTAGE - Duration::from_secs(1));
            assert_eq!(
                served.load(Ordering::Relaxed),
                0,
                "calls were served without a database: the test means nothing"
            );
            proxy.change(|faults| faults.refuses = false);
            let started = Instant::now();
            while served.load(Ordering::Relaxed) < SERVED_MIN && started.elapsed() < watched {
                std::thread::sleep(CALL_PAUSE);
            }
            served.load(Ordering::Relaxed)
        }));
        // Or the calls would never end.
        is_over.store(true, Ordering::Relaxed);
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
fn an_outage_under_load_ends_while_the_load_goes_on() {
    // As a rule half of the calls are served at once; a busy machine takes its time.
    let served = served_after_an_outage(None, Duration::from_secs(60));
    assert!(served >= SERVED_MIN, "only {served} calls were served");
}

/// The same with connections that are given up with the job in hand: the calls above are what keeps
/// the service away.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "optimised builds do not contain the planted fault")]
fn an_outage_that_outlasts_itself_is_found_out() {
    let watched = Duration::from_secs(10);
    assert_eq!(served_after_an_outage(Some("connection_within_a_job"), watched), 0);
}

/// COMMITs whose answer is lost: the caller gets the real result, and there is one effect.
#[test]
fn a_lost_answer_to_commit_is_looked_up() {
    const ROUNDS: usize = 25;
    let database = Database::fresh();
    let proxy = Proxy::start(database.server_address(), &Cluster::shared_url(), 1);
    // No worker's COMMIT stands between the proxy and the one that is meant.
    let node = Node::start(home(&database.url_at(proxy.address)).with("HUNDI_ROLE", "serve"));
    let mut client = node.client(&node.home.key());
    let mut senders = Vec::new();
    for way in [
        AtCommit::CutAfter,
        AtCommit::CutBefore,
        AtCommit::TerminateBefore,
        AtCommit::TerminateDuring,
    ] {
        let mut at_once = 0;
        for _ in 0..ROUNDS {
            let failed = proxy.commits().1;
            proxy.fail_commits(1, 100, &[way]);
            let (key, body) = (fresh_key(), steps::sender_body().to_string());
            let answer = client.ask("POST", "/v1/senders", Some(&key), Some(body.as_bytes()));
            assert_eq!(proxy.commits().1, failed + 1, "no COMMIT failed: the test means nothing");
            proxy.heal();
            if answer.is_success() {
                at_once += 1;
            } else {
                answer.expect_refusal(503, "service_unavailable", "a request whose COMMIT failed");
            }
            let again = client.ask("POST", "/v1/senders", Some(&key), Some(body.as_bytes()));
            let made = again.expect_success("the same request again");
            senders.push(steps::text(&made, "id"));
        }
        println!("{way:?}: {at_once} of {ROUNDS} were answered with the result at once");
        if way == AtCommit::CutAfter {
            assert_eq!(at_once, ROUNDS, "a committed request was not answered with its result");
        }
    }
    let listed: Vec<String> =
        client.list("/v1/senders", "").iter().map(|sender| steps::text(sender, "id")).collect();
    senders.sort_unstable();
    assert_eq!(listed, senders, "each request has one effect");
}

/// A server that answers COMMIT with "statement completion unknown", as a proxy before several
/// servers can: the caller gets the real result all the same.
#[test]
fn a_commit_whose_completion_the_server_does_not_know_is_looked_up() {
    let database = Database::fresh();
    let node = Node::start(home(&database.url()).with("HUNDI_ROLE", "serve"));
    let mut client = node.client(&node.home.key());
    database.sql(
        "CREATE SEQUENCE commits; CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN IF nextval(''commits'') = 1 THEN RAISE EXCEPTION ''unknown'' USING ERRCODE = \
         ''40003''; END IF; RETURN NULL; END'; CREATE CONSTRAINT TRIGGER fails AFTER INSERT ON \
         senders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail_once()",
    );
    let made = client.post("/v1/senders", &steps::sender_body());
    let made = made.expect_success("a request whose COMMIT had an unknown outcome");
    let tried = database.value("SELECT last_value FROM commits");
    assert_eq!(tried, "2", "no COMMIT failed: the test means nothing");
    assert_eq!(client.list("/v1/senders", ""), [made]);
}

/// The proxy itself: what it promises to do to a connection, it does. So slow that a whole batch of
/// tasks takes longer than a transaction may: then fewer are taken at once, and all get done.
#[test]
fn tasks_get_done_over_a_slow_network() {
    const BACKLOG: usize = 90;
    let database = Database::fresh();
    let proxy = Proxy::start(database.server_address(), &Cluster::shared_url(), 1);
    let serving = Node::start(home(&database.url()).with("HUNDI_ROLE", "serve"));
    let mut client = serving.client(&serving.home.key());
    for _ in 0..BACKLOG {
        client
            .post("/v1/beneficiaries", &steps::beneficiary_body())
            .expect_success("a beneficiary");
    }
    let _working = Node::start(home(&database.url_at(proxy.address)).with("HUNDI_ROLE", "work"));
    proxy.change(|faults| faults.delay = Duration::from_millis(15));
    until("all beneficiaries to be checked", Duration::from_secs(120), || {
        (database.value("SELECT COUNT(*) FROM beneficiaries WHERE status = 'verifying'") == "0")
            .then_some(())
    });
}

#[test]
fn the_proxy_fails_as_told() {
    let database = Database::fresh();
    let admin_url = Cluster::shared_url();
    let proxy = Proxy::start(database.server_address(), &admin_url, 1);
    let url = database.url_at(proxy.address);
    database.sql("CREATE TABLE effects (number BIGINT NOT NULL PRIMARY KEY)");
    let commit = |number: u32| {
        let text = format!("BEGIN; INSERT INTO effects (number) VALUES ({number}); COMMIT");
        (
            try_sql(&url, &text).is_ok(),
            database.value(&format!("SELECT COUNT(*) FROM effects WHERE number = {number}")) == "1",
        )
    };
    assert_eq!(commit(2), (true, true));
    for (number, way, is_kept) in [
        (3, AtCommit::CutBefore, false),
        (4, AtCommit::CutAfter, true),
        (5, AtCommit::TerminateBefore, false),
    ] {
        proxy.fail_commits(1, 100, &[way]);
        assert_eq!(commit(number), (false, is_kept), "{way:?}");
        proxy.heal();
    }
    assert_eq!(proxy.commits(), (4, 3));
    proxy.change(|faults| faults.refuses = true);
    assert!(try_sql(&url, "SELECT 1").is_err());
    proxy.heal();
    proxy.change(|faults| faults.delay = Duration::from_millis(50));
    let started = Instant::now();
    assert!(try_sql(&url, "SELECT 1").is_ok());
    assert!(
        started.elapsed() >= Duration::from_millis(100),
        "not delayed: {:?}",
        started.elapsed()
    );
    proxy.heal();
    // What is held arrives once it is let go.
    proxy.change(|faults| faults.holds_all = true);
    std::thread::scope(|scope| {
        let held = scope.spawn(|| try_sql(&url, "INSERT INTO effects (number) VALUES (6)"));
        std::thread::sleep(Duration::from_millis(200));
        assert!(!held.is_finished(), "it came through");
        assert_eq!(database.value("SELECT COUNT(*) FROM effects WHERE number = 6"), "0");
        proxy.heal();
        assert!(held.join().expect("the held statement").is_ok());
    });
    let cut = std::thread::scope(|scope| {
        let sleeping = scope.spawn(|| try_sql(&url, "SELECT pg_sleep(20)"));
        until("the statement to run", Duration::from_secs(5), || {
            (database
                .value("SELECT COUNT(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(20)'")
                == "1")
                .then_some(())
        });
        proxy.cut();
        sleeping.join().expect("the cut statement")
    });
    assert!(cut.is_err(), "it was not cut");
}
