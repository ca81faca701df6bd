//! `GET /v1/events?wait=`: woken at once, never a miss, bounded, and let go at a stop.

use std::time::{Duration, Instant};

use hundi::kernel::Mode;
use hundi::store::event_waits::ACCOUNT_WAITS_MAX;
use serde_json::{Value, json};

use crate::stage::faults;
use crate::support::{Client, Server, WAIT, id, is_on_postgres};

/// Long enough that an answer before it was woken, on any machine.
const LONG: &str = "/v1/events?wait=30";

async fn draft(client: &Client) -> Value {
    let body = json!({ "name": "A", "account_number": "12345678", "ifsc": "HDFC0000001",
        "account_type": "nre", "submit": false });
    client.post("/v1/beneficiaries", body).await.ok()
}

/// Waits until so many requests wait on the server.
async fn until_waiting(server: &Server, count: usize) {
    let started = Instant::now();
    while server.app.state.store.signals.event_waits.count() != count {
        assert!(started.elapsed() < WAIT, "there are never {count} requests that wait");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_ends_the_wait_of_its_account_and_of_no_other() {
    let server = Server::start().await;
    let client = server.client().await;
    let stranger = server.client_of("stranger", Mode::Test, "").await;
    let (waiter, other) = (client.twin(), stranger.twin());
    let waiting = tokio::spawn(async move { (waiter.get(LONG).await.ok(), Instant::now()) });
    let others = tokio::spawn(async move { other.get("/v1/events?wait=2").await.ok() });
    until_waiting(&server, 2).await;
    let made = draft(&client).await;
    let answered = Instant::now();
    let (list, woken) = waiting.await.unwrap();
    assert_eq!(list["data"][0]["linked_id"], id(&made));
    assert!(woken.saturating_duration_since(answered) < Duration::from_secs(5), "it was not woken");
    // The stranger's wait ends by time, with an empty page.
    assert_eq!(others.await.unwrap(), json!({ "object": "list", "data": [], "has_next": false }));
    until_waiting(&server, 0).await;
    // What is there already is answered without a wait; what comes later is after the cursor.
    let cursor = id(&list["data"][0]);
    assert_eq!(client.get(LONG).await.ok(), list);
    let (waiter, path) = (client.twin(), format!("{LONG}&starting_after={cursor}"));
    let waiting = tokio::spawn(async move { waiter.get(&path).await.ok() });
    until_waiting(&server, 1).await;
    let second = draft(&client).await;
    let found = waiting.await.unwrap();
    assert_eq!(found["data"].as_array().unwrap().len(), 1);
    assert_eq!(found["data"][0]["linked_id"], id(&second));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_with_a_filter_sleeps_through_other_events() {
    let server = Server::start().await;
    let client = server.client().await;
    let (waiter, path) = (client.twin(), format!("{LONG}&type=beneficiary.status.active"));
    let waiting = tokio::spawn(async move { waiter.get(&path).await.ok() });
    until_waiting(&server, 1).await;
    for _ in 0..3 {
        draft(&client).await;
    }
    assert!(!waiting.is_finished());
    let wanted = client.active_beneficiary("50100012345678").await;
    let found = waiting.await.unwrap();
    assert_eq!(found["data"][0]["linked_id"], id(&wanted));
    assert_eq!(found["data"][0]["type"], "beneficiary.status.active");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn following_by_waiting_misses_nothing_under_concurrent_writers() {
    const WRITERS: usize = 4;
    const EACH: usize = 30;
    let server = Server::start().await;
    let client = server.client().await;
    let followers: Vec<_> = (0..3)
        .map(|_| {
            let client = client.twin();
            tokio::spawn(async move {
                let mut seen: Vec<String> = Vec::new();
                while seen.len() < WRITERS * EACH {
                    let after =
                        seen.last().map_or(String::new(), |id| format!("&starting_after={id}"));
                    let page = client.get(&format!("{LONG}&limit=7{after}")).await.ok();
                    let found = page["data"].as_array().unwrap();
                    assert!(!found.is_empty(), "a wait ended without an event: one was missed");
                    seen.extend(found.iter().map(id));
                }
                seen
            })
        })
        .collect();
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..WRITERS {
        let client = client.twin();
        writers.spawn(async move {
            for _ in 0..EACH {
                draft(&client).await;
                tokio::task::yield_now().await;
            }
        });
    }
    writers.join_all().await;
    let whole: Vec<String> =
        crate::stage::all(&client, "/v1/events").await.iter().map(id).collect();
    for follower in followers {
        assert_eq!(follower.await.unwrap(), whole);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_has_limits_and_says_them() {
    let server = Server::start().await;
    let client = server.client().await;
    for (query, field) in [
        ("wait=31", "wait"),
        ("wait=-1", "wait"),
        ("wait=1.5", "wait"),
        ("wait=", "wait"),
        ("wait=1&wait=1", "wait"),
        ("wait=1&order=desc", "wait"),
        ("wait=1&ending_before=event_7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "wait"),
    ] {
        let answer = client.get(&format!("/v1/events?{query}")).await;
        let wanted = faults(&[("request_query_parameter_invalid", field)]);
        assert_eq!(answer.errors(400), wanted, "{query}");
    }
    let elsewhere = client.get("/v1/transfers?wait=1").await;
    assert_eq!(elsewhere.errors(400), faults(&[("request_query_parameter_invalid", "wait")]));
    client.get("/v1/events?wait=0&order=desc").await.ok();
    let blind = server.client_of("default", Mode::Test, "transfers:read").await;
    assert_eq!(blind.get(LONG).await.error(403), "action_unauthorized");

    let waiting: Vec<_> = (0..ACCOUNT_WAITS_MAX)
        .map(|_| {
            let client = client.twin();
            tokio::spawn(async move { client.get(LONG).await.ok() })
        })
        .collect();
    until_waiting(&server, ACCOUNT_WAITS_MAX).await;
    let refused = client.get(LONG).await;
    assert_eq!(refused.error(429), "rate_limit_exceeded");
    assert_eq!(refused.header("retry-after"), Some("1"));
    // Others go on: requests without a wait, other accounts, and more reads than connections to the
    // store, which none of those that wait holds.
    client.get("/v1/events").await.ok();
    let stranger = server.client_of("stranger", Mode::Test, "").await;
    assert_eq!(stranger.get("/v1/events?wait=1").await.ok()["data"], json!([]));
    draft(&client).await;
    for one in waiting {
        assert_eq!(one.await.unwrap()["data"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_lets_every_wait_go() {
    let server = Server::start().await;
    let client = server.client().await;
    let waiting: Vec<_> = (0..4)
        .map(|_| {
            let client = client.twin();
            tokio::spawn(async move { client.get(LONG).await })
        })
        .collect();
    until_waiting(&server, 4).await;
    // A node that drains still takes requests, and holds none of them for long.
    server.app.state.drain();
    for one in waiting {
        let answer = one.await.unwrap();
        assert_eq!(answer.header("connection"), Some("close"));
        assert_eq!(answer.ok()["data"], json!([]));
    }
    let started = Instant::now();
    assert_eq!(client.twin().get(LONG).await.ok()["data"], json!([]));
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let (waiter, stopped) = (client.twin(), Instant::now());
    let last = tokio::spawn(async move { waiter.get(LONG).await.ok() });
    until_waiting(&server, 1).await;
    server.stop();
    last.await.unwrap();
    assert!(stopped.elapsed() < Duration::from_secs(20), "{:?}", stopped.elapsed());
    if !is_on_postgres() {
        let address = server.address.clone();
        let closed = async {
            while tokio::net::TcpStream::connect(&address).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(WAIT, closed).await.expect("the port closes");
    }
}
