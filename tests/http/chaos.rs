//! The sandbox that attacks its caller: a client that does what the guides say passes, and each
//! planted mistake is named by the check that it fails.
//!
//! The server's clock stands still but for what a client waits, so that no pause depends on how
//! fast the machine is.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use hundi::chaos::grade::{self, ChaosCheck, ChaosGrade};
use hundi::chaos::seen::{Fate, ObservedRequest, RequestAttempt, WatchedEvent};
use hundi::chaos::{AttackCount, Profile, RequestAttack, WebhookAttack};
use hundi::kernel::{Id, Mode, Scope};
use hundi::store::Cost;
use serde_json::{Value, json};

use crate::receiver::{Delivery, Receiver, Reply};
use crate::support::{Answer, Client, Server, id};

const CHAOS: &str = "/v1/test_helpers/chaos";
const REPORT: &str = "/v1/test_helpers/chaos/report";
const STOP: &str = "/v1/test_helpers/chaos/stop";
const ATTEMPTS_MAX: usize = 6;
const PAUSE_MILLISECONDS: i64 = 500;
/// How late a delayed answer is, and how long the client waits that is too impatient for it.
const DELAY_MILLISECONDS: u64 = 200;
const IMPATIENCE: Duration = Duration::from_millis(50);
const BENEFICIARIES_COUNT: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mistake {
    NewKey,
    AbandonsDropped,
    TakesUnavailableAsFinal,
    TakesLockedAsFinal,
    IgnoresRetryAfter,
    RetriesAtOnce,
    ChangesBody,
    RetriesRefusals,
    IsImpatient,
    AcceptsForgeries,
    RefusesDuplicates,
    TrustsOrder,
    NeverReadsEvents,
}

const MISTAKES: [(Mistake, &str); 13] = [
    (Mistake::NewKey, "retried_with_new_key"),
    (Mistake::AbandonsDropped, "dropped_answer_abandoned"),
    (Mistake::TakesUnavailableAsFinal, "unavailable_taken_as_final"),
    (Mistake::TakesLockedAsFinal, "locked_taken_as_final"),
    (Mistake::IgnoresRetryAfter, "retry_after_ignored"),
    (Mistake::RetriesAtOnce, "retried_without_pause"),
    (Mistake::ChangesBody, "key_reused_for_other_body"),
    (Mistake::RetriesRefusals, "refusal_retried"),
    (Mistake::IsImpatient, "timed_out_too_early"),
    (Mistake::AcceptsForgeries, "webhook_forgery_accepted"),
    (Mistake::RefusesDuplicates, "webhook_duplicate_refused"),
    (Mistake::TrustsOrder, "webhook_late_refused"),
    (Mistake::NeverReadsEvents, "missing_event_not_read"),
];

/// A caller with the table of retries, but for its mistake.
struct Caller<'a> {
    server: &'a Server,
    client: Client,
    mistake: Option<Mistake>,
}

impl Caller<'_> {
    fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// Time passes for the server while the caller waits.
    fn wait(&self, milliseconds: i64) {
        self.server.clock.fetch_add(milliseconds, Ordering::SeqCst);
    }

    async fn attempt(&self, method: Method, path: &str, key: &str, body: &Value) -> Option<Answer> {
        let headers = [("idempotency-key", key), ("content-type", "application/json")];
        let is_write = method == Method::POST;
        let (headers, body) = if is_write {
            (&headers[..], Bytes::from(body.to_string()))
        } else {
            (&[][..], Bytes::new())
        };
        if is_write && self.makes(Mistake::IsImpatient) {
            // On a connection of its own, which ends with the wait.
            let twin = self.client.twin();
            let sent = twin.try_send(method, path, headers, body);
            return tokio::time::timeout(IMPATIENCE, sent).await.ok().flatten();
        }
        let answer = self.client.try_send(method, path, headers, body).await;
        if !is_write {
            // The server's clock has to reach the time of a delayed answer before the same GET is
            // sent anew.
            self.wait(DELAY_MILLISECONDS as i64);
        }
        answer
    }

    /// Sends a request until its answer is one that a retry would not change.
    async fn request(&self, method: Method, path: &str, body: &Value) -> Option<Answer> {
        let is_write = method == Method::POST;
        let makes = |mistake| is_write && self.makes(mistake);
        let (mut key, mut body) = (self.client.fresh_key(), body.clone());
        let mut refusals_count = 0;
        for _ in 0..ATTEMPTS_MAX {
            let answer = self.attempt(method.clone(), path, &key, &body).await;
            let (status, mistake) = match &answer {
                None if makes(Mistake::IsImpatient) => continue,
                None => (0, Mistake::AbandonsDropped),
                Some(answer) => match answer.status {
                    503 => (503, Mistake::TakesUnavailableAsFinal),
                    409 if answer.error(409) == "resource_locked" => {
                        (409, Mistake::TakesLockedAsFinal)
                    }
                    200 => return Some(answer.clone()),
                    _ if makes(Mistake::RetriesRefusals) && refusals_count == 0 => {
                        refusals_count += 1;
                        self.wait(PAUSE_MILLISECONDS);
                        continue;
                    }
                    _ => return Some(answer.clone()),
                },
            };
            if makes(mistake) {
                return None;
            }
            let told = answer.and_then(|answer| answer.header("retry-after")?.parse::<i64>().ok());
            let is_hasty = match status {
                0 => makes(Mistake::RetriesAtOnce),
                _ => makes(Mistake::IgnoresRetryAfter),
            };
            if !is_hasty {
                self.wait(told.map_or(PAUSE_MILLISECONDS, |seconds| seconds * 1000));
            }
            if makes(Mistake::NewKey) {
                key = self.client.fresh_key();
            }
            if makes(Mistake::ChangesBody) {
                body["metadata"] = json!({ "attempt": "another" });
            }
        }
        None
    }

    async fn post(&self, path: &str, body: Value) -> Option<Answer> {
        self.request(Method::POST, path, &body).await
    }

    async fn get(&self, path: &str) -> Value {
        self.request(Method::GET, path, &Value::Null).await.unwrap().ok()
    }

    /// All events, page by page.
    async fn read_events(&self) {
        let mut page = self.get("/v1/events?limit=5").await;
        while page["has_next"] == true {
            let last = id(page["data"].as_array().unwrap().last().unwrap());
            page = self.get(&format!("/v1/events?limit=5&starting_after={last}")).await;
        }
    }

    fn receiver_reply(&self, secret: Arc<Mutex<String>>) -> Reply {
        let mistake = self.mistake;
        let seen = Mutex::new(HashSet::new());
        let newest = Mutex::new(String::new());
        let judge = move |delivery: &Delivery| {
            if mistake == Some(Mistake::AcceptsForgeries) {
                return 200;
            }
            if !delivery.fits_specification(&secret.lock().unwrap()) {
                return 400;
            }
            let (mut seen, mut newest) = (seen.lock().unwrap(), newest.lock().unwrap());
            if seen.contains(delivery.id()) {
                return if mistake == Some(Mistake::RefusesDuplicates) { 409 } else { 200 };
            }
            if mistake == Some(Mistake::TrustsOrder) && delivery.id() < newest.as_str() {
                return 409;
            }
            seen.insert(delivery.id().to_owned());
            *newest = newest.clone().max(delivery.id().to_owned());
            200
        };
        Reply { judge: Some(Arc::new(judge)), ..Reply::default() }
    }
}

fn check<'a>(report: &'a Value, code: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|check| check["code"] == code).unwrap()
}

fn failed(report: &Value) -> Vec<&str> {
    let checks = report["checks"].as_array().unwrap().iter();
    checks
        .filter(|check| check["result"] == "failed")
        .map(|check| check["code"].as_str().unwrap())
        .collect()
}

/// A caller's whole run under a profile that attacks everything; answers the report.
async fn run(server: &Server, account: &str, mistake: Option<Mistake>) -> Value {
    let client = server.client_of(account, Mode::Test, "").await;
    let caller = Caller { server, client, mistake };
    let client = &caller.client;
    let secret = Arc::new(Mutex::new(String::new()));
    let receiver = Receiver::start(caller.receiver_reply(secret.clone())).await;
    let body = json!({ "url": receiver.url, "enabled_events": ["beneficiary.status.verifying"] });
    let endpoint = client.post("/v1/webhook_endpoints", body).await.ok();
    *secret.lock().unwrap() = endpoint["secret"].as_str().unwrap().to_owned();
    let profile = client
        .post(
            CHAOS,
            json!({ "seed": 7, "percentage": 100, "delay_milliseconds": DELAY_MILLISECONDS,
                "webhook_endpoint_id": id(&endpoint), "webhook_delay_milliseconds": 5000,
                "duration_seconds": 3600 }),
        )
        .await
        .ok();
    assert_eq!((&profile["status"], &profile["seed"]), (&json!("running"), &json!(7)));
    for number in 0..BENEFICIARIES_COUNT {
        // It stays in verification, so it has this one event.
        let body = json!({ "name": "Asha Rao", "account_number": format!("5010001{number}0004"),
            "ifsc": "HDFC0000001", "account_type": "nre" });
        caller.post("/v1/beneficiaries", body).await;
    }
    for name in ["Ravi Rao", "Mira Rao", "Anil Rao", "Leela Rao"] {
        let body = json!({ "name": name, "type": "individual", "country": "AE" });
        caller.post("/v1/senders", body).await;
    }
    for country in ["ZZ", "ZY"] {
        let body = json!({ "name": "Ravi Rao", "type": "individual", "country": country });
        let answer = caller.post("/v1/senders", body).await;
        assert!(answer.is_none_or(|answer| answer.status != 200));
    }
    for _ in 0..4 {
        caller.get("/v1/senders").await;
    }
    // Every event is on its way before late ones come. Another key of the account is not attacked.
    let observer = server.client_of(account, Mode::Test, "").await;
    let made = crate::stage::all(&observer, "/v1/beneficiaries").await.len();
    let is_whole = |report: &Value| report["events_count"] == made;
    let report = client.wait_until(REPORT, is_whole).await;
    assert!(report["requests_attacked_count"].as_i64() >= Some(14), "{report:#}");
    let observed = |report: &Value, code: &str| check(report, code)["observed_count"].as_i64();
    let is_sent = |report: &Value| {
        observed(report, "webhook_forgery_accepted") >= Some(2)
            && observed(report, "webhook_duplicate_refused") >= Some(2)
    };
    // A caller that gives up makes too few events to meet everything.
    if made >= BENEFICIARIES_COUNT {
        client.wait_until(REPORT, is_sent).await;
        caller.wait(6_000);
        let has_late = |report: &Value| observed(report, "webhook_late_refused") >= Some(2);
        client.wait_until(REPORT, has_late).await;
    }
    if mistake != Some(Mistake::NeverReadsEvents) {
        caller.read_events().await;
    }
    assert_eq!(client.get(REPORT).await.ok()["grade"], Value::Null);
    client.post(STOP, json!({})).await.ok();
    let report = client.get(REPORT).await.ok();
    assert_eq!(report["status"], "completed");
    assert_eq!(
        client.delete(&format!("/v1/webhook_endpoints/{}", id(&endpoint))).await.status,
        200
    );
    report
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_keeps_the_table_of_retries_passes() {
    let server = Server::start_manual(&[]).await;
    let report = run(&server, "reference", None).await;
    assert_eq!(failed(&report), Vec::<&str>::new(), "{report:#}");
    assert_eq!((&report["object"], &report["grade"]), (&json!("chaos_report"), &json!("passed")));
    // Nothing was made twice.
    let client = server.client_of("reference", Mode::Test, "").await;
    let beneficiaries = crate::stage::all(&client, "/v1/beneficiaries").await;
    assert_eq!(beneficiaries.len(), BENEFICIARIES_COUNT);
    assert_eq!(crate::stage::all(&client, "/v1/senders").await.len(), 4);
}

/// Callers with each of these mistakes are caught, and by the check that has its name.
async fn assert_caught(mistakes: &[(Mistake, &str)]) {
    let server = Server::start_manual(&[]).await;
    for (mistake, code) in mistakes {
        let report = run(&server, &format!("{mistake:?}"), Some(*mistake)).await;
        assert_eq!(report["grade"], "failed", "{mistake:?}: {report:#}");
        let failed = failed(&report);
        // An impatient client may give up any request where the machine is slow.
        if *mistake == Mistake::IsImpatient {
            assert!(failed.contains(code), "{mistake:?}: {failed:?}");
        } else {
            assert_eq!(failed, [*code], "{mistake:?}: {report:#}");
        }
        let check = check(&report, code);
        let fault = &check["faults"][0];
        let shows = if code.starts_with("webhook") || code.starts_with("missing") {
            fault["event_id"].is_string()
        } else {
            fault["request_ids"][0].as_str().is_some_and(|id| id.starts_with("request_"))
        };
        assert!(shows && check["faults_count"].as_i64() >= Some(1), "{check:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_take_an_answer_for_final_are_caught_and_named() {
    assert_caught(&MISTAKES[..4]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_retry_wrongly_are_caught_and_named() {
    assert_caught(&MISTAKES[4..9]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_take_webhooks_wrongly_are_caught_and_named() {
    assert_caught(&MISTAKES[9..]).await;
}

fn sender(name: &str) -> Value {
    json!({ "name": name, "type": "individual", "country": "AE" })
}

/// The status of one attempt; 0 where no answer came.
async fn status_of(client: &Client, key: &str, body: &Value) -> u16 {
    let headers = [("idempotency-key", key), ("content-type", "application/json")];
    let body = Bytes::from(body.to_string());
    let answer = client.try_send(Method::POST, "/v1/senders", &headers, body).await;
    answer.map_or(0, |answer| answer.status)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seed_repeats_its_attacks() {
    let server = Server::start_manual(&[]).await;
    let mut runs = Vec::new();
    for seed in [41, 41, 42] {
        let client = server.client().await;
        let body = json!({ "seed": seed, "delay_milliseconds": 0 });
        client.post(CHAOS, body).await.ok();
        let mut statuses = Vec::new();
        for number in 0..40 {
            let body = sender(&format!("Ravi {}", "a".repeat(number + 1)));
            statuses.push(status_of(&client, &client.fresh_key(), &body).await);
        }
        assert!([0, 200, 409, 503].iter().all(|status| statuses.contains(status)), "{statuses:?}");
        runs.push(statuses);
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
}

/// A GET has no key, so the service tells by the time whether the same one is a retry.
#[tokio::test(flavor = "multi_thread")]
async fn a_get_that_comes_again_before_its_answer_timed_out_too_early() {
    let server = Server::start_manual(&[]).await;
    for (wait, result, observed_count) in
        [(DELAY_MILLISECONDS as i64 - 1, "failed", 1), (DELAY_MILLISECONDS as i64, "passed", 2)]
    {
        let client = server.client().await;
        let body = json!({ "percentage": 100, "request_attacks": ["answer_delayed"],
            "delay_milliseconds": DELAY_MILLISECONDS });
        client.post(CHAOS, body).await.ok();
        client.get("/v1/senders").await.ok();
        server.clock.fetch_add(wait, Ordering::SeqCst);
        client.get("/v1/senders").await.ok();
        client.post(STOP, json!({})).await.ok();
        let report = client.get(REPORT).await.ok();
        let check = check(&report, "timed_out_too_early");
        assert_eq!(
            (&check["result"], &check["observed_count"]),
            (&json!(result), &json!(observed_count)),
            "{wait}: {check}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_dropped_is_replayed_and_attacks_end_by_themselves() {
    let server = Server::start_manual(&[]).await;
    let client = server.client().await;
    let other = server.client().await;
    assert_eq!(client.get(CHAOS).await.error(404), "object_not_found");
    assert_eq!(client.get(REPORT).await.error(404), "object_not_found");
    assert_eq!(client.post(STOP, json!({})).await.error(404), "object_not_found");
    let body = json!({ "percentage": 100, "request_attacks": ["answer_dropped"],
        "duration_seconds": 60 });
    let profile = client.post(CHAOS, body).await.ok();
    assert_eq!(profile["webhook_attacks"], json!([]));
    assert_eq!(profile["ends_at"].as_i64(), profile["started_at"].as_i64().map(|at| at + 60));
    let key = client.fresh_key();
    assert_eq!(status_of(&client, &key, &sender("Ravi Rao")).await, 0);
    server.clock.fetch_add(PAUSE_MILLISECONDS, Ordering::SeqCst);
    let again = client.post_with("/v1/senders", &key, sender("Ravi Rao")).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(client.get("/v1/senders").await.ok()["data"][0], again.ok());
    // Neither another key of the account nor the helpers are attacked.
    other.post("/v1/senders", sender("Mira Rao")).await.ok();
    assert_eq!(other.get(CHAOS).await.error(404), "object_not_found");
    client.advance(5).await;
    assert_eq!(client.get(CHAOS).await.ok()["status"], "running");
    let abandoned = client.fresh_key();
    assert_eq!(status_of(&client, &abandoned, &sender("Anil Rao")).await, 0);
    server.advance_seconds(60);
    assert_eq!(client.get(CHAOS).await.ok()["status"], "settling");
    client.post("/v1/senders", sender("Leela Rao")).await.ok();
    assert_eq!(client.get(REPORT).await.ok()["grade"], Value::Null);
    server.advance_seconds(60);
    assert_eq!(client.get(CHAOS).await.ok()["status"], "completed");
    let report = client.get(REPORT).await.ok();
    assert_eq!(
        (&report["grade"], failed(&report)),
        (&json!("failed"), vec!["dropped_answer_abandoned"])
    );
    // Too late to count.
    client.post_with("/v1/senders", &abandoned, sender("Anil Rao")).await.ok();
    assert_eq!(client.get(REPORT).await.ok()["checks"], report["checks"]);
    // What was never met is not passed.
    client.post(CHAOS, json!({})).await.ok();
    client.post(STOP, json!({})).await.ok();
    assert_eq!(client.get(REPORT).await.ok()["grade"], "incomplete");
}

/// Each is removed in a transaction of its own, but they do not wait a minute for one another.
#[tokio::test(flavor = "multi_thread")]
async fn all_reports_that_have_expired_are_removed() {
    let server = Server::start_manual(&[]).await;
    for _ in 0..3 {
        server.client().await.post(CHAOS, json!({})).await.ok();
    }
    let reports_count = async || {
        let read = server.app.state.store.read(Cost::Point, |tx| {
            let row = tx.row("SELECT COUNT(*) FROM chaos_profiles", &[])?;
            Ok(row.expect("a count").int()?)
        });
        read.await.unwrap()
    };
    let mut purger = hundi::workers::housekeeping::Purger::default();
    while purger.run_once(&server.app.state).await {}
    assert_eq!(reports_count().await, 3);
    server.advance_seconds(32 * 86_400);
    while purger.run_once(&server.app.state).await {}
    assert_eq!(reports_count().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_keeps_within_its_limits() {
    let server = Server::start_manual(&[]).await;
    let client = server.client().await;
    for (field, largest) in [
        ("duration_seconds", 3_600_i64),
        ("seed", 9_007_199_254_740_991),
        ("percentage", 100),
        ("delay_milliseconds", 10_000),
        ("webhook_delay_milliseconds", 600_000),
    ] {
        let body = json!({ field: largest + 1, "request_attacks": [] });
        let wanted = vec![("parameter_range_invalid".to_owned(), Some(field.to_owned()))];
        assert_eq!(client.post(CHAOS, body).await.errors(400), wanted);
        client.post(CHAOS, json!({ field: largest, "request_attacks": [] })).await.ok();
    }
    for attacks in
        [json!(["earthquake"]), json!("late"), json!(["answer_dropped", "answer_dropped"])]
    {
        let body = json!({ "request_attacks": attacks });
        assert_eq!(client.post(CHAOS, body).await.error(400), "parameter_value_invalid");
    }
    let body = json!({ "webhook_attacks": ["late"] });
    let wanted = vec![("parameter_empty".to_owned(), Some("webhook_endpoint_id".to_owned()))];
    assert_eq!(client.post(CHAOS, body).await.errors(400), wanted);
    // One profile attacks an endpoint at a time.
    let body = json!({ "url": "http://127.0.0.1:9/" });
    let endpoint = client.post("/v1/webhook_endpoints", body).await.ok();
    let body = json!({ "webhook_endpoint_id": id(&endpoint) });
    let profile = client.post(CHAOS, body.clone()).await.ok();
    assert_eq!(profile["webhook_attacks"], json!(["duplicated", "late", "forged", "missing"]));
    let other = server.client().await;
    assert_eq!(other.post(CHAOS, body.clone()).await.error(400), "test_helper_not_applicable");
    client.post(STOP, json!({})).await.ok();
    other.post(CHAOS, body).await.ok();
    let live = server.client_of("default", Mode::Live, "").await;
    assert_eq!(live.post(CHAOS, json!({})).await.error(403), "testmode_action_only");
    assert_eq!(live.get(REPORT).await.error(403), "testmode_action_only");
}

/// A profile from 0 to 600 s, which is watched until 660 s.
fn profile() -> Profile {
    Profile {
        scope: Scope::new(1, Mode::Test),
        key_id: Id::from_u128(1),
        seed: 1,
        percentage: 100,
        request_attacks: vec![RequestAttack::ServiceUnavailable],
        webhook_attacks: vec![WebhookAttack::Late],
        delay_milliseconds: 0,
        webhook_delay_milliseconds: 0,
        endpoint_id: Some(Id::from_u128(2)),
        started_milliseconds: 0,
        ends_milliseconds: 600_000,
        completes_milliseconds: 660_000,
        writes: AttackCount::default(),
        reads: AttackCount::default(),
        events: AttackCount::default(),
    }
}

fn failed_checks(found: &(Option<ChaosGrade>, Vec<ChaosCheck>)) -> Vec<(&str, i64)> {
    let failed = found.1.iter().filter(|check| check.faults_count > 0);
    failed.map(|check| (check.code.as_str(), check.faults_count)).collect()
}

fn late_event(duration_milliseconds: i64) -> WatchedEvent {
    WatchedEvent {
        event_id: Id::from_u128(3),
        number: 1,
        linked_id: "transfer_01JDK3Y5M8Q2X7N4V6T9R0ABCD".to_owned(),
        attack: Some(WebhookAttack::Late),
        http_status: Some(200),
        attacked_http_status: Some(200),
        duration_milliseconds,
        was_read: true,
    }
}

fn refused_once(next_at: Option<i64>) -> ObservedRequest {
    let attempt = |at_milliseconds, fate, http_status| RequestAttempt {
        request_id: format!("request_{at_milliseconds}"),
        at_milliseconds,
        fate,
        answered_milliseconds: Some(at_milliseconds),
        http_status,
        is_same: true,
    };
    let first = attempt(1_000, Fate::Unavailable, 503);
    let next = next_at.map(|at| attempt(at, Fate::Answered, 200));
    ObservedRequest {
        number: 1,
        request_hash: [1; 16],
        fingerprint: [1; 32],
        method: "POST".to_owned(),
        route: "/v1/senders".to_owned(),
        attack: Some(RequestAttack::ServiceUnavailable),
        failures_left: 0,
        attempts: std::iter::once(first).chain(next).collect(),
    }
}

#[test]
fn a_receiver_has_five_seconds() {
    let requests = [refused_once(Some(2_000))];
    for (duration, failed, grade) in [
        (5_000, vec![], ChaosGrade::Passed),
        (5_001, vec![("webhook_answered_slowly", 1)], ChaosGrade::Failed),
    ] {
        let found = grade::grade(&profile(), &requests, &[late_event(duration)], 660_000);
        assert_eq!((failed_checks(&found), found.0), (failed, Some(grade)));
    }
}

#[test]
fn a_caller_has_a_minute_to_come_back_and_retry_after_has_a_tenth_of_a_second() {
    let events = [late_event(1)];
    for (request, now, failed, grade) in [
        (refused_once(None), 61_000, vec![], None),
        (refused_once(None), 61_001, vec![("unavailable_taken_as_final", 1)], None),
        (refused_once(Some(1_900)), 660_000, vec![], Some(ChaosGrade::Passed)),
        (
            refused_once(Some(1_899)),
            660_000,
            vec![("retry_after_ignored", 1)],
            Some(ChaosGrade::Failed),
        ),
        (refused_once(Some(1_899)), 659_999, vec![("retry_after_ignored", 1)], None),
    ] {
        let found = grade::grade(&profile(), &[request], &events, now);
        assert_eq!((failed_checks(&found), found.0), (failed, grade), "{now}");
    }
    let found = grade::grade(&profile(), &[], &events, 660_000);
    assert_eq!(found.0, Some(ChaosGrade::Incomplete), "nothing was refused");
}
