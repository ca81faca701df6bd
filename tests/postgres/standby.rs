//! A synchronous standby that is away: nothing is acknowledged without it, an answer that was
//! stored before included, and the node says what is wrong.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::nodes::{ANSWER_MAX, Node, SLACK, home};
use crate::support::postgres::{Cluster, Database, try_sql};
use crate::support::{Answer, Client, fresh_key, steps, until};

const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn without_its_synchronous_standby_nothing_is_acknowledged() {
    let cluster = Cluster::start(&[]);
    let database = Database::in_cluster(&cluster.url);
    let node = Node::start(home(&database.url()).with("HUNDI_DATABASE_CONNECTIONS", "8"));
    let api_key = node.home.key();
    let body = steps::sender_body().to_string();
    let address = node.address;
    let post = |key: &str| -> Answer {
        let (asked, mut client) = (Instant::now(), Client::new(address, &api_key));
        let answer = client.once("POST", "/v1/senders", Some(key), Some(body.as_bytes()));
        assert!(asked.elapsed() < ANSWER_MAX + SLACK, "an answer after {:?}", asked.elapsed());
        answer.expect("an answer")
    };
    let at_once = |keys: &[&String]| -> Vec<Answer> {
        std::thread::scope(|scope| {
            let asked: Vec<_> = keys.iter().map(|key| scope.spawn(|| post(key))).collect();
            asked.into_iter().map(|answer| answer.join().expect("an answer")).collect()
        })
    };
    let [before, during, cancelled] = [(); 3].map(|()| fresh_key());
    let first = post(&before);
    assert!(first.is_success(), "{first:?}");
    let stands_by = |names: &str| {
        cluster.set(&[&format!("synchronous_standby_names={names}")]);
        let setting = "SHOW synchronous_standby_names";
        until("the setting", PATIENCE, || (database.value(setting) == names).then_some(()));
    };
    stands_by("missing");
    // The server ends the wait when the time of the statement is over, and then calls the commit
    // done.
    for answer in at_once(&[&before, &during]) {
        assert_eq!(answer.status, 503, "{answer:?}");
    }
    // So does an operator who cancels it.
    let answers = std::thread::scope(|scope| {
        let asked = scope.spawn(|| at_once(&[&before, &cancelled]));
        while !asked.is_finished() {
            let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = \
                          'SyncRep'";
            let _ = try_sql(&cluster.url, cancel);
            std::thread::sleep(Duration::from_millis(100));
        }
        asked.join().expect("answers")
    });
    for answer in answers {
        assert_eq!(answer.status, 503, "{answer:?}");
    }
    until("the node to say what is wrong", PATIENCE, || {
        let ready = node.client(&api_key).get("/readyz");
        (ready.status == 503 && ready.text().contains("a synchronous standby is missing"))
            .then_some(())
    });
    stands_by("");
    until("the node to be ready", PATIENCE, || node.is_ready().then_some(()));
    assert_eq!(post(&before).id(), first.id());
    for key in [&during, &cancelled] {
        let made = post(key);
        assert!(made.is_success(), "{made:?}");
        assert_eq!(post(key).id(), made.id());
    }
    assert_eq!(database.value("SELECT COUNT(*) FROM senders"), "3");
}

/// Back ends that the server has room for. The node's lanes and its watch need seven.
const BACK_ENDS_MAX: usize = 14;
const CALLERS_COUNT: u64 = 24;
const LONGEST: Duration = Duration::from_secs(25);

/// Commits hang while callers come and come again; answers how often another program found no room
/// at the server, and how often it looked.
fn refusals_meanwhile(fault: Option<&str>) -> (usize, usize) {
    let room = format!("max_connections={BACK_ENDS_MAX}");
    let cluster = Cluster::start(&[&room, "superuser_reserved_connections=0"]);
    let database = Database::in_cluster(&cluster.url);
    let home = home(&database.url()).with("HUNDI_DATABASE_CONNECTIONS", "6").with_fault(fault);
    let node = Node::start(home);
    let (address, api_key) = (node.address, node.home.key());
    cluster.set(&["synchronous_standby_names=missing"]);
    let setting = "SHOW synchronous_standby_names";
    until("the setting", PATIENCE, || (database.value(setting) == "missing").then_some(()));
    let is_over = AtomicBool::new(false);
    let counts = std::thread::scope(|scope| {
        let (is_over, api_key) = (&is_over, &api_key);
        for caller in 0..CALLERS_COUNT {
            scope.spawn(move || {
                // One after the other, so that the time that is left when their turn comes differs.
                std::thread::sleep(Duration::from_millis(350 * caller));
                let mut client = Client::new(address, api_key);
                while !is_over.load(Ordering::Relaxed) {
                    let answer = steps::sender_once(&mut client);
                    assert!(!answer.is_ok_and(|answer| answer.is_success()), "acknowledged");
                }
            });
        }
        let (started, mut refused_count, mut looks_count) = (Instant::now(), 0, 0);
        while started.elapsed() < LONGEST && (refused_count == 0 || fault.is_none()) {
            looks_count += 1;
            let looked = try_sql(&cluster.url, "SELECT 1");
            refused_count += usize::from(looked.is_err_and(|fault| fault.contains("too many")));
            std::thread::sleep(Duration::from_millis(50));
        }
        is_over.store(true, Ordering::Relaxed);
        (refused_count, looks_count)
    });
    drop(node);
    until("room at the server", PATIENCE, || try_sql(&cluster.url, "SELECT 1").ok());
    // Without a standby to wait for the database can be dropped.
    cluster.set(&["synchronous_standby_names="]);
    counts
}

#[test]
fn commits_that_nobody_waits_for_any_more_keep_no_back_ends() {
    let (refused_count, looks_count) = refusals_meanwhile(None);
    println!("{looks_count} connections made meanwhile");
    assert_eq!(refused_count, 0, "of {looks_count} connections");
    assert!(looks_count > 20, "only {looks_count} looks");
}

#[test]
fn control_back_ends_of_abandoned_commits_fill_the_server() {
    let (refused_count, looks_count) = refusals_meanwhile(Some("no_cancel"));
    assert!(refused_count > 0, "there was always room, {looks_count} times");
}
