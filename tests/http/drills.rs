//! Drills: a right receiver passes, and each planted mistake is named by the check that it fails.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hundi::kernel::Mode;
use serde_json::{Value, json};

use crate::receiver::{Delivery, Receiver, Reply};
use crate::support::{Client, Server, id};

fn is_fresh(delivery: &Delivery) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    (now - delivery.timestamp()).abs() <= 300
}

fn is_right(delivery: &Delivery, secret: &str) -> bool {
    delivery.fits_specification(secret) && is_fresh(delivery)
}

/// Registers a receiver that judges so, and drills it; answers the report.
async fn drill(
    client: &Client,
    judge: impl Fn(&Delivery, &str) -> u16 + Send + Sync + 'static,
) -> (Value, Receiver) {
    let secret = Arc::new(Mutex::new(String::new()));
    let known = secret.clone();
    let receiver = Receiver::start(Reply {
        judge: Some(Arc::new(move |delivery| judge(delivery, &known.lock().unwrap()))),
        ..Reply::default()
    })
    .await;
    let body = json!({ "url": receiver.url, "enabled_events": ["refund.status.*"] });
    let endpoint = client.post("/v1/webhook_endpoints", body).await.ok();
    *secret.lock().unwrap() = endpoint["secret"].as_str().unwrap().to_owned();
    let path = format!("/v1/webhook_endpoints/{}/drill", id(&endpoint));
    let begun = client.post(&path, json!({})).await.ok();
    assert_eq!((&begun["status"], &begun["grade"]), (&json!("running"), &Value::Null));
    let report = client.wait_status(&path, "completed").await;
    assert_eq!(client.delete(&path.replace("/drill", "")).await.status, 200);
    (report, receiver)
}

fn failed(report: &Value) -> Vec<&str> {
    let checks = report["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 13, "{report}");
    checks
        .iter()
        .filter(|check| check["passed"] == false)
        .map(|check| check["name"].as_str().unwrap())
        .collect()
}

fn message<'a>(report: &'a Value, name: &str) -> &'a str {
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name).unwrap();
    check["message"].as_str().unwrap()
}

async fn ready() -> (Server, Client) {
    let server = Server::start().await;
    let client = server.client().await;
    client.active_beneficiary("50100012345678").await;
    // A drill sends events of the account, and those become visible a moment after the change.
    let has_two = |page: &Value| page["data"].as_array().is_some_and(|events| events.len() >= 2);
    client.wait_until("/v1/events", has_two).await;
    (server, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_receiver_passes_and_keeps_its_report() {
    let (server, client) = ready().await;
    let judge = |delivery: &Delivery, secret: &str| {
        if is_right(delivery, secret) { 200 } else { 400 }
    };
    let (report, receiver) = drill(&client, judge).await;
    assert_eq!(failed(&report), Vec::<&str>::new(), "{report}");
    assert_eq!((&report["object"], &report["grade"]), (&json!("webhook_drill"), &json!("passed")));
    assert!(report["completed_at"].is_i64());
    // The report names what was sent: the types of the account's two latest events.
    let [older, newer] = ["beneficiary.status.verifying", "beneficiary.status.active"];
    for (name, expected, types) in [
        ("valid", "2xx", vec![older]),
        ("duplicate", "2xx", vec![older, older]),
        ("reordered", "2xx", vec![newer, older]),
        ("unknown_event_type", "2xx", vec!["drill.status.unknown"]),
        ("altered_body", "4xx", vec![older]),
        // Right and wrong answers of all kinds can be quick.
        ("answers_quickly", "any", vec![]),
    ] {
        let checks = report["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["name"] == name).unwrap();
        assert_eq!(
            (&check["expected"], &check["event_types"]),
            (&json!(expected), &json!(types)),
            "{name}"
        );
    }
    // The events are the account's own, but for the one of an unknown type.
    let events = crate::stage::all(&client, "/v1/events").await;
    let own: HashSet<String> = events.iter().map(id).collect();
    let strange = receiver.deliveries().iter().filter(|one| !own.contains(one.id())).count();
    assert_eq!((receiver.count(), strange), (14, 1));
    // The endpoint is deleted by now, and its report went with it.
    let kept = server.app.state.store.read(hundi::store::Cost::Point, |tx| {
        Ok(tx.rows("SELECT endpoint_id FROM webhook_drills LIMIT 1", &[])?.len())
    });
    assert_eq!(kept.await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_planted_mistake_is_caught_and_named() {
    type Judge = Box<dyn Fn(&Delivery, &str) -> u16 + Send + Sync>;
    let (_server, client) = ready().await;
    let answer = |is_taken| if is_taken { 200 } else { 400 };
    let seen = Mutex::new(HashSet::new());
    let newest = Mutex::new(String::new());
    let mistakes: Vec<(&str, Judge, &[&str])> = vec![
        (
            "verifies nothing",
            Box::new(|_, _| 200),
            &[
                "stale_timestamp",
                "future_timestamp",
                "other_secret",
                "no_signature",
                "altered_body",
            ],
        ),
        (
            "takes any timestamp",
            Box::new(move |one, secret| answer(one.fits_specification(secret))),
            &["stale_timestamp", "future_timestamp"],
        ),
        (
            "verifies parsed and written JSON",
            Box::new(move |one, secret| {
                let body = one.event().to_string().into();
                answer(is_right(&Delivery { body, ..one.clone() }, secret))
            }),
            &["raw_body"],
        ),
        (
            "reads the first signature only",
            Box::new(move |one, secret| {
                let mut first = one.clone();
                let entry = one.entries()[0].parse().unwrap();
                first.headers.insert("webhook-signature", entry);
                answer(is_right(&first, secret))
            }),
            &["several_signatures"],
        ),
        (
            "refuses types that it does not know",
            Box::new(move |one, secret| {
                let is_known = !one.event()["type"].as_str().unwrap().starts_with("drill.");
                answer(is_right(one, secret) && is_known)
            }),
            &["unknown_event_type"],
        ),
        (
            "answers a duplicate with 409",
            Box::new(move |one, secret| {
                let is_new = seen.lock().unwrap().insert(one.id().to_owned());
                if is_right(one, secret) && !is_new { 409 } else { answer(is_right(one, secret)) }
            }),
            &["duplicate"],
        ),
        (
            "trusts the order of events",
            Box::new(move |one, secret| {
                let mut newest = newest.lock().unwrap();
                let is_late = one.id() < newest.as_str();
                if is_right(one, secret) && !is_late {
                    *newest = one.id().to_owned();
                }
                answer(is_right(one, secret) && !is_late)
            }),
            &["reordered"],
        ),
        (
            "fails on what is wrong, instead of refusing it",
            Box::new(move |one, secret| if is_right(one, secret) { 200 } else { 500 }),
            &[
                "stale_timestamp",
                "future_timestamp",
                "other_secret",
                "no_signature",
                "altered_body",
            ],
        ),
        (
            "redirects",
            Box::new(move |one, secret| if is_right(one, secret) { 302 } else { 400 }),
            &["valid"],
        ),
    ];
    for (mistake, judge, named) in mistakes {
        let (report, _receiver) = drill(&client, judge).await;
        let failed = failed(&report);
        assert_eq!(report["grade"], "failed", "{mistake}");
        assert!(named.iter().all(|name| failed.contains(name)), "{mistake}: {failed:?}");
        // What one mistake does not touch passes.
        let is_exact = !matches!(named[0], "duplicate" | "reordered" | "valid");
        assert!(!is_exact || failed == named, "{mistake}: {failed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drill_needs_a_test_key_events_and_its_turn() {
    let server = Server::start().await;
    let client = server.client().await;
    let receiver = Receiver::start(Reply::status(200)).await;
    let body = json!({ "url": receiver.url });
    let endpoint = client.post("/v1/webhook_endpoints", body).await.ok();
    let path = format!("/v1/webhook_endpoints/{}/drill", id(&endpoint));
    assert_eq!(client.get(&path).await.error(404), "object_not_found");
    assert_eq!(client.post(&path, json!({})).await.error(400), "test_helper_not_applicable");
    client.active_beneficiary("50100012345678").await;
    // On PostgreSQL an event can be read a moment after the change that it tells of.
    let has_two = |list: &Value| list["data"].as_array().is_some_and(|data| data.len() >= 2);
    client.wait_until("/v1/events", has_two).await;
    client.post(&path, json!({})).await.ok();
    assert_eq!(client.post(&path, json!({})).await.error(400), "test_helper_not_applicable");
    client.wait_status(&path, "completed").await;
    // Another one takes its place.
    client.post(&path, json!({})).await.ok();
    client.wait_status(&path, "completed").await;
    let live = server.client_of("default", Mode::Live, "").await;
    let body = json!({ "url": "https://example.com/hooks" });
    let endpoint = live.post("/v1/webhook_endpoints", body).await.ok();
    let path = format!("/v1/webhook_endpoints/{}/drill", id(&endpoint));
    assert_eq!(live.post(&path, json!({})).await.error(403), "testmode_action_only");
}

/// An account has one drill under way, whatever it asked for, and keeps nobody else's waiting.
#[tokio::test(flavor = "multi_thread")]
async fn drills_of_one_account_take_turns() {
    const COUNT: usize = 6;
    let (server, client) = ready().await;
    let silent =
        Receiver::start(Reply { delay: Duration::from_secs(60), ..Reply::default() }).await;
    let mut paths = Vec::new();
    for _ in 0..COUNT {
        let body = json!({ "url": silent.url, "enabled_events": ["refund.status.*"] });
        let endpoint = client.post("/v1/webhook_endpoints", body).await.ok();
        let path = format!("/v1/webhook_endpoints/{}/drill", id(&endpoint));
        client.post(&path, json!({})).await.ok();
        paths.push(path);
    }
    let other = server.client_of("other", Mode::Test, "").await;
    other.active_beneficiary("50100012345678").await;
    let has_two = |page: &Value| page["data"].as_array().is_some_and(|events| events.len() >= 2);
    other.wait_until("/v1/events", has_two).await;
    let (report, _) = drill(&other, |_, _| 200).await;
    assert_eq!(report["status"], "completed");
    let mut running = 0;
    for path in paths {
        running += usize::from(client.get(&path).await.ok()["status"] == "running");
    }
    assert!(running >= COUNT - 1, "{running} of {COUNT} still run");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_answer_does_not_answer_quickly() {
    let (_server, client) = ready().await;
    // A port where nobody listens: it is refused at once.
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let body = json!({ "url": format!("http://{address}/"), "enabled_events": ["*"] });
    let endpoint = client.post("/v1/webhook_endpoints", body).await.ok();
    let path = format!("/v1/webhook_endpoints/{}/drill", id(&endpoint));
    client.post(&path, json!({})).await.ok();
    let report = client.wait_status(&path, "completed").await;
    assert_eq!(failed(&report).len(), 13, "{report}");
    assert_eq!(report["grade"], "failed");
    assert!(message(&report, "valid").contains("Start the receiver"), "{report}");
    assert!(message(&report, "answers_quickly").contains("was answered"), "{report}");
    for name in ["duplicate", "altered_body"] {
        assert!(message(&report, name).contains("correct that one first"), "{report}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_the_first_delivery_is_told_once() {
    let (_server, client) = ready().await;
    // Another secret, or the body as it was parsed and written: every delivery is refused.
    let (report, _receiver) = drill(&client, |_, _| 400).await;
    assert!(message(&report, "valid").contains("secret"), "{report}");
    assert!(message(&report, "duplicate").contains("correct that one first"), "{report}");
    // What is to be refused was refused, and quickly.
    assert!(!failed(&report).contains(&"altered_body"), "{report}");
    assert!(message(&report, "altered_body").contains("refuse the delivery with 400"), "{report}");
    assert!(message(&report, "answers_quickly").contains("five seconds"), "{report}");
    let (report, _receiver) = drill(&client, |_, _| 500).await;
    assert!(message(&report, "valid").contains("its log says why"), "{report}");
    // A receiver that takes the first delivery is told of each mistake by itself.
    let (report, _receiver) = drill(&client, |_, _| 200).await;
    assert!(message(&report, "valid").contains("correct delivery with 2xx"), "{report}");
    assert!(message(&report, "other_secret").contains("forged"), "{report}");
}
