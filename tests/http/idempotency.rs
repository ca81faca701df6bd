//! One key, one effect, one answer.

use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Instant;

use bytes::Bytes;
use http::Method;
use hundi::app::KeyRequest;
use hundi::kernel::{Code, Mode, OperationError, StoreError};
use hundi::keys::{self, Permissions};
use hundi::store::idempotency;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::{Answer, Client, LaneHold, Server, WAIT, id, is_on_postgres};
use crate::wire;

const SENDERS: &str = "/v1/senders";
const DAY_SECONDS: i64 = 24 * 3_600;

fn sender_body() -> Value {
    json!({ "name": "Ravi Rao", "type": "individual", "country": "AE" })
}

fn is_replayed(answer: &Answer) -> bool {
    answer.header("idempotent-replayed") == Some("true")
}

/// The same answer again, from the store.
#[track_caller]
fn assert_replay(first: &Answer, second: &Answer, what: &str) {
    assert!(!is_replayed(first), "{what}: the first answer is no replay");
    assert!(is_replayed(second), "{what}: not replayed: {} {:?}", second.status, second.body);
    assert_eq!(first.status, second.status, "{what}");
    assert_eq!(first.body, second.body, "{what}");
    assert_eq!(first.header("content-type"), second.header("content-type"), "{what}");
    assert_ne!(
        first.header("request-id"),
        second.header("request-id"),
        "{what}: a replay is a request of its own"
    );
}

/// Newest first: on PostgreSQL, a page in rising order leaves out what is newer than a transaction
/// that still runs, and the service's own work may run one.
async fn senders_count(client: &Client) -> usize {
    client.get("/v1/senders?limit=100&order=desc").await.ok()["data"].as_array().unwrap().len()
}

/// Lets a future begin.
pub async fn poll_once<F: Future>(mut future: Pin<&mut F>) {
    std::future::poll_fn(|context| {
        let _ = future.as_mut().poll(context);
        Poll::Ready(())
    })
    .await;
}

/// While the write lane stands still: sends one request twice at once. One of them runs, the other
/// is locked out and answered. The connection of the one that runs ends when its task is aborted.
pub async fn running_and_locked(
    client: &Client,
    key: &str,
) -> (tokio::task::JoinHandle<Option<Answer>>, Answer) {
    let authorization = format!("Bearer {}", client.key);
    let headers: [(&str, &[u8]); 3] = [
        ("authorization", authorization.as_bytes()),
        ("content-type", b"application/json"),
        ("idempotency-key", key.as_bytes()),
    ];
    let bytes = wire::request("POST", SENDERS, &headers, sender_body().to_string().as_bytes());
    let send = || {
        let (address, bytes) = (client.address.clone(), bytes.clone());
        tokio::spawn(async move { wire::exchange(&address, &bytes).await })
    };
    let (mut one, mut other) = (send(), send());
    let (running, locked) = tokio::select! {
        locked = &mut one => (other, locked),
        locked = &mut other => (one, locked),
    };
    let locked = locked.unwrap().unwrap();
    assert_eq!(locked.error(409), "resource_locked");
    (running, locked)
}

#[tokio::test(flavor = "multi_thread")]
async fn spelling_is_no_difference() {
    let server = Server::start().await;
    let client = server.client().await;
    let pairs = [
        (
            "the order of keys",
            r#"{"name":"A","type":"individual","country":"AE"}"#,
            r#"{"country":"AE","type":"individual","name":"A"}"#,
        ),
        (
            "white space",
            r#"{"name":"A","type":"individual","country":"AE"}"#,
            "\r\n{ \"name\" : \"A\",\t\"type\":\"individual\",\n\"country\":\"AE\" } ",
        ),
        (
            "escapes",
            r#"{"name":"A/é","type":"individual","country":"AE"}"#,
            r#"{"\u006eame":"\u0041\/\u00e9","type":"individual","country":"AE"}"#,
        ),
        (
            "a pair of surrogates",
            r#"{"name":"😀","type":"individual","country":"AE"}"#,
            r#"{"name":"\ud83d\ude00","type":"individual","country":"AE"}"#,
        ),
        (
            "the order of nested keys",
            r#"{"name":"A","type":"individual","country":"AE","metadata":{"a":"1","b":"2"}}"#,
            r#"{"metadata":{"b":"2","a":"1"},"name":"A","type":"individual","country":"AE"}"#,
        ),
    ];
    for (count, (what, first, second)) in pairs.into_iter().enumerate() {
        let key = client.fresh_key();
        let first = client.post_raw(SENDERS, &key, first).await;
        first.ok();
        let second = client.post_raw(SENDERS, &key, second).await;
        assert_replay(&first, &second, what);
        assert_eq!(senders_count(&client).await, count + 1, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_request_on_the_key_is_refused_and_leaves_the_first_answer() {
    let server = Server::start().await;
    let client = server.client().await;
    let base = r#"{"name":"A","type":"individual","country":"AE"}"#;
    let rows = [
        (
            "another value",
            SENDERS,
            base,
            SENDERS,
            r#"{"name":"B","type":"individual","country":"AE"}"#,
        ),
        (
            "a field more",
            SENDERS,
            base,
            SENDERS,
            r#"{"name":"A","type":"individual","country":"AE","email":"a@example.com"}"#,
        ),
        (
            "null is not absent",
            SENDERS,
            base,
            SENDERS,
            r#"{"name":"A","type":"individual","country":"AE","email":null}"#,
        ),
        (
            "an empty object is not absent",
            SENDERS,
            base,
            SENDERS,
            r#"{"name":"A","type":"individual","country":"AE","metadata":{}}"#,
        ),
        (
            "the order of items",
            "/v1/webhook_endpoints",
            r#"{"url":"https://example.com/","enabled_events":["*","transfer.*"]}"#,
            "/v1/webhook_endpoints",
            r#"{"url":"https://example.com/","enabled_events":["transfer.*","*"]}"#,
        ),
        (
            "composed and decomposed letters",
            SENDERS,
            "{\"name\":\"\u{e9}\",\"type\":\"individual\",\"country\":\"AE\"}",
            SENDERS,
            "{\"name\":\"e\u{301}\",\"type\":\"individual\",\"country\":\"AE\"}",
        ),
        (
            "1 and 1.0",
            "/v1/test_helpers/clock",
            r#"{"advance_seconds":1}"#,
            "/v1/test_helpers/clock",
            r#"{"advance_seconds":1.0}"#,
        ),
        (
            "1 and 1e0",
            "/v1/test_helpers/clock",
            r#"{"advance_seconds":1}"#,
            "/v1/test_helpers/clock",
            r#"{"advance_seconds":1e0}"#,
        ),
        (
            "integers that a double cannot tell apart",
            "/v1/test_helpers/clock",
            r#"{"advance_seconds":9007199254740992}"#,
            "/v1/test_helpers/clock",
            r#"{"advance_seconds":9007199254740993}"#,
        ),
        (
            "a string is not a number",
            "/v1/test_helpers/clock",
            r#"{"advance_seconds":1}"#,
            "/v1/test_helpers/clock",
            r#"{"advance_seconds":"1"}"#,
        ),
        ("another path", SENDERS, base, "/v1/beneficiaries", base),
        (
            "another object in the path",
            "/v1/refunds/refund_00000000000000000000000001",
            "{}",
            "/v1/refunds/refund_00000000000000000000000002",
            "{}",
        ),
        ("a query", SENDERS, base, "/v1/senders?a=b", base),
        ("another query", "/v1/senders?a=b", base, "/v1/senders?a=c", base),
        ("repaired JSON", SENDERS, r#"{"name":"A""#, SENDERS, base),
        ("other broken JSON", SENDERS, r#"{"name":"A""#, SENDERS, r#"{"name":"A" "#),
    ];
    for (what, path, body, other_path, other_body) in rows {
        let key = client.fresh_key();
        let first = client.post_raw(path, &key, body).await;
        let second = client.post_raw(other_path, &key, other_body).await;
        assert_eq!(second.error(409), "idempotency_key_reuse", "{what}");
        assert!(!is_replayed(&second), "{what}");
        // The refusal itself is not stored either: it is the same the second time, and the first
        // answer still stands.
        assert_eq!(
            client.post_raw(other_path, &key, other_body).await.error(409),
            "idempotency_key_reuse",
            "{what}"
        );
        assert_replay(&first, &client.post_raw(path, &key, body).await, what);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_body_counts_as_an_empty_object_where_no_field_is_required() {
    let server = Server::start().await;
    let client = server.client().await;
    let transfer = client.transfer().await;
    let path = format!("/v1/transfers/{}/cancel", id(&transfer));
    let key = client.fresh_key();
    let first = client.send(Method::POST, &path, &[("idempotency-key", &key)], Bytes::new()).await;
    assert_eq!(first.ok()["status"], "cancelled");
    assert_replay(&first, &client.post_raw(&path, &key, "{}").await, "{} after nothing");
    // Where fields are required, nothing is not an object.
    let key = client.fresh_key();
    let empty = client.post_raw(SENDERS, &key, "").await;
    assert_eq!(empty.error(400), "request_body_invalid");
    assert_eq!(client.post_raw(SENDERS, &key, "{}").await.error(409), "idempotency_key_reuse");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_parse_is_stored_under_its_bytes() {
    let server = Server::start().await;
    let client = server.client().await;
    let deep = format!("{}1{}", "{\"a\":".repeat(9), "}".repeat(9));
    let bodies: &[&[u8]] = &[
        br#"{"name":"A","name":"A","type":"individual","country":"AE"}"#,
        br#"{"name":"A","\u006eame":"B","type":"individual","country":"AE"}"#,
        br#"{"name":"A","type":"individual","country":"AE"} x"#,
        br#"[{"name":"A"}]"#,
        b"{\"name\":\"\xff\"}",
        br#"{"name":"\ud800"}"#,
        b"\xef\xbb\xbf{}",
        b"nonsense",
        deep.as_bytes(),
    ];
    for body in bodies {
        let what = String::from_utf8_lossy(body).into_owned();
        let key = client.fresh_key();
        let first = client.post_raw(SENDERS, &key, body.to_vec()).await;
        assert_eq!(first.error(400), "request_body_invalid", "{what}");
        assert_replay(&first, &client.post_raw(SENDERS, &key, body.to_vec()).await, &what);
        let other = [*body, b" "].concat();
        assert_eq!(
            client.post_raw(SENDERS, &key, other).await.error(409),
            "idempotency_key_reuse",
            "{what}: one byte more"
        );
    }
    // The wrong type of a body is one of its faults, and as such stored too.
    let key = client.fresh_key();
    let headers = [("idempotency-key", key.as_str()), ("content-type", "text/plain")];
    let first =
        client.send(Method::POST, SENDERS, &headers, sender_body().to_string().into()).await;
    assert_eq!(first.error(400), "request_body_invalid");
    let second =
        client.send(Method::POST, SENDERS, &headers, sender_body().to_string().into()).await;
    assert_replay(&first, &second, "another type");
    assert_eq!(senders_count(&client).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn completed_refusals_are_replayed_byte_for_byte() {
    let server = Server::start().await;
    let client = server.client().await;
    let live = server.client_of("default", Mode::Live, "").await;
    let reader = server.client_of("default", Mode::Test, "senders:read").await;
    let mut used = client.transfer_body("50100012345678", "100.00").await;
    client.post("/v1/transfers", used.clone()).await.ok();
    used["metadata"] = json!({ "again": "yes" });
    let missing = "/v1/beneficiaries/beneficiary_00000000000000000000000001";
    let mut unknown = used.clone();
    unknown["sender_id"] = json!("sender_00000000000000000000000001");
    let rows = [
        ("form", &client, SENDERS, json!({ "name": "", "kind": "x" }), 400, "parameter_unexpected"),
        ("empty update", &client, "/v1/beneficiaries/x", json!({}), 404, "object_not_found"),
        ("object in the path", &client, missing, json!({ "name": "A" }), 404, "object_not_found"),
        ("reference in the body", &client, "/v1/transfers", unknown, 404, "object_not_found"),
        (
            "query",
            &client,
            "/v1/senders?limit=1",
            sender_body(),
            400,
            "request_query_parameter_invalid",
        ),
        ("business rule", &client, "/v1/transfers", used, 400, "quote_lock_already_used"),
        ("permission", &reader, SENDERS, sender_body(), 403, "action_unauthorized"),
        (
            "live mode not configured",
            &live,
            "/v1/quote_locks",
            json!({ "sell_currency": "USD", "buy_currency": "INR", "amount": "10.00" }),
            403,
            "action_unauthorized",
        ),
        (
            "helper with a live key",
            &live,
            "/v1/test_helpers/clock",
            json!({ "advance_seconds": 1 }),
            403,
            "testmode_action_only",
        ),
    ];
    for (what, client, path, body, status, code) in rows {
        let key = client.fresh_key();
        let first = client.post_with(path, &key, body.clone()).await;
        assert!(
            first.errors(status).iter().any(|error| error.0 == code),
            "{what}: {:?}",
            first.body
        );
        assert_replay(&first, &client.post_with(path, &key, body).await, what);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_shows_what_was_answered_then_and_not_what_is_now() {
    let server = Server::start().await;
    let client = server.client().await;
    let body = json!({ "name": "Asha Rao", "account_number": "50100012345678",
        "ifsc": "HDFC0000001", "account_type": "nre" });
    let key = client.fresh_key();
    let first = client.post_with("/v1/beneficiaries", &key, body.clone()).await;
    assert_eq!(first.ok()["status"], "verifying");
    client.wait_status(&format!("/v1/beneficiaries/{}", id(&first.json())), "active").await;
    assert_replay(&first, &client.post_with("/v1/beneficiaries", &key, body).await, "created");

    // A refusal that was healed since is replayed all the same; it told that a new key is needed.
    let mut transfer = client.transfer_body("50100012345678", "100.00").await;
    let verifying = client.beneficiary("50100000000004").await;
    transfer["beneficiary_id"] = json!(id(&verifying));
    let key = client.fresh_key();
    let refused = client.post_with("/v1/transfers", &key, transfer.clone()).await;
    assert_eq!(refused.error(400), "beneficiary_not_payable");
    assert_eq!(refused.json()["errors"][0]["metadata"]["new_key_required"], true);
    client
        .post(&format!("/v1/test_helpers/beneficiaries/{}/activate", id(&verifying)), json!({}))
        .await
        .ok();
    assert_replay(
        &refused,
        &client.post_with("/v1/transfers", &key, transfer.clone()).await,
        "healed",
    );
    assert_eq!(client.post("/v1/transfers", transfer).await.ok()["status"], "funding");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unavailable_quote_is_not_stored() {
    let server = Server::start_with(&[("HUNDI_TEST_USDT_USD", "1.006")]).await;
    let client = server.client().await;
    let key = client.fresh_key();
    let body = json!({ "sell_currency": "USD", "buy_currency": "INR", "amount": "100.00" });
    for _ in 0..2 {
        let answer = client.post_with("/v1/quote_locks", &key, body.clone()).await;
        assert_eq!(answer.error(503), "quote_unavailable");
        assert!(!is_replayed(&answer));
        assert!(
            answer.header("retry-after").is_some_and(|seconds| seconds.parse::<u32>().is_ok()),
            "{:?}",
            answer.headers
        );
    }
    // The key is free, so even another request may take it; had the first kept it, this would be a
    // conflict.
    client.post_with(SENDERS, &key, sender_body()).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_answers_503_and_releases_the_key() {
    let server = Server::start().await;
    let client = server.client().await;
    let hold = LaneHold::of(&server, &client).await;
    let store = &server.app.state.store;
    let mut crowd = pin!(futures_util::future::join_all(
        (0..hundi::store::handle::QUEUE_JOBS_MAX + 1).map(|_| store.write(|_, _| Ok(())))
    ));
    poll_once(crowd.as_mut()).await;
    let key = client.fresh_key();
    let refused = client.post_with(SENDERS, &key, sender_body()).await;
    assert_eq!(refused.error(503), "service_unavailable");
    assert!(refused.header("retry-after").is_some());
    hold.let_go();
    crowd.await;
    let answer = client.post_with(SENDERS, &key, sender_body()).await;
    answer.ok();
    assert!(!is_replayed(&answer));
    // A list ends before what is newer than the oldest transaction that still ends on the server.
    let is_listed = |page: &Value| page["data"].as_array().is_some_and(|data| !data.is_empty());
    client.wait_until(SENDERS, is_listed).await;
    assert_eq!(senders_count(&client).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_commit_undoes_the_effect_and_releases_the_key() {
    if is_on_postgres() {
        // There no transaction shares another one's commit; tests/postgres lets commits fail.
        return;
    }
    let server = Server::start().await;
    let client = server.client().await;
    let hold = LaneHold::of(&server, &client).await;
    let key = client.fresh_key();
    let (first, _) = running_and_locked(&client, &key).await;
    // More requests, by which time the first one stands in the lane's queue; the job that fails
    // joins its group.
    for _ in 0..3 {
        assert_eq!(
            client.post_with(SENDERS, &key, sender_body()).await.error(409),
            "resource_locked"
        );
    }
    let mut planted = pin!(server.app.state.store.write::<(), _>(|_, _| Err(
        OperationError::Store(StoreError::Unavailable("planted by the test".into()))
    )));
    poll_once(planted.as_mut()).await;
    hold.let_go();
    assert!(planted.await.is_err());
    let first = first.await.unwrap().unwrap();
    assert_eq!(first.error(503), "service_unavailable");
    assert_eq!(senders_count(&client).await, 0, "nothing of the failed commit is left");
    let second = client.post_with(SENDERS, &key, sender_body()).await;
    second.ok();
    assert!(!is_replayed(&second));
    assert_replay(
        &second,
        &client.post_with(SENDERS, &key, sender_body()).await,
        "after the retry",
    );
    assert_eq!(senders_count(&client).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_first_request_runs_its_key_is_locked() {
    let server = Server::start().await;
    let client = server.client().await;
    let key = client.fresh_key();
    let hold = LaneHold::of(&server, &client).await;
    let (first, locked) = running_and_locked(&client, &key).await;
    assert!(locked.header("retry-after").is_some() && !is_replayed(&locked));
    // Another body, while nothing is stored to compare it with.
    let other = client.post_with(SENDERS, &key, json!({ "name": "B" })).await;
    assert!(["resource_locked", "idempotency_key_reuse"].contains(&other.error(409).as_str()));
    hold.let_go();
    let first = first.await.unwrap().unwrap();
    first.ok();
    assert_replay(
        &first,
        &client.post_with(SENDERS, &key, sender_body()).await,
        "neither 409 was stored",
    );
    assert_eq!(
        client.post_with(SENDERS, &key, json!({ "name": "B" })).await.error(409),
        "idempotency_key_reuse"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_simultaneous_sends_have_one_effect() {
    const SENDS: usize = 500;
    let server = Server::start().await;
    let client = server.client().await;
    let key = client.fresh_key();
    let sends: Vec<_> = (0..SENDS)
        .map(|_| {
            let (twin, key) = (client.twin(), key.clone());
            tokio::spawn(async move { twin.post_with(SENDERS, &key, sender_body()).await })
        })
        .collect();
    let mut bodies = Vec::new();
    let (mut done, mut replayed, mut locked) = (0, 0, 0);
    for send in sends {
        let answer = send.await.unwrap();
        match (answer.status, is_replayed(&answer)) {
            (200, is_replay) => {
                replayed += usize::from(is_replay);
                done += usize::from(!is_replay);
                bodies.push(answer.body);
            }
            _ => {
                assert_eq!(answer.error(409), "resource_locked");
                locked += 1;
            }
        }
    }
    assert_eq!((done, done + replayed + locked), (1, SENDS));
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    assert_eq!(senders_count(&client).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_kept_for_24_hours() {
    let server = Server::start_manual(&[]).await;
    let client = server.client().await;
    let (key, refused_key) = (client.fresh_key(), client.fresh_key());
    let first = client.post_with(SENDERS, &key, sender_body()).await;
    first.ok();
    let refused = client.post_with(SENDERS, &refused_key, json!({})).await;
    refused.errors(400);
    server.advance_seconds(DAY_SECONDS - 1);
    assert_replay(&first, &client.post_with(SENDERS, &key, sender_body()).await, "at 24 h - 1 s");
    assert_replay(
        &refused,
        &client.post_with(SENDERS, &refused_key, json!({})).await,
        "at 24 h - 1 s",
    );
    // A replay does not make the answer younger.
    server.advance_seconds(1);
    let again = client.post_with(SENDERS, &key, sender_body()).await;
    assert_ne!(id(&again.ok()), id(&first.json()), "at 24 h");
    assert!(!is_replayed(&again));
    // The key belongs to the new request now, and another one may take an expired key.
    assert_replay(&again, &client.post_with(SENDERS, &key, sender_body()).await, "the new answer");
    client
        .post_with(
            "/v1/quote_locks",
            &refused_key,
            json!({ "sell_currency": "USD", "buy_currency": "INR", "amount": "10.00" }),
        )
        .await
        .ok();
    assert_eq!(senders_count(&client).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_takes_expired_answers_only() {
    let server = Server::start_manual(&[]).await;
    let client = server.client().await;
    let (old, renewed, young) = (client.fresh_key(), client.fresh_key(), client.fresh_key());
    client.post_with(SENDERS, &old, sender_body()).await.ok();
    client.post_with(SENDERS, &renewed, sender_body()).await.ok();
    server.advance_seconds(DAY_SECONDS);
    let kept = client.post_with(SENDERS, &renewed, sender_body()).await;
    let newest = client.post_with(SENDERS, &young, sender_body()).await;
    server.advance_seconds(10);
    let purged = server
        .app
        .state
        .store
        .write(|tx, now| Ok(idempotency::purge(tx, now, 100)?))
        .await
        .unwrap();
    assert_eq!(purged, 2, "the old answer and the one that was renewed");
    assert_replay(&kept, &client.post_with(SENDERS, &renewed, sender_body()).await, "renewed");
    assert_replay(&newest, &client.post_with(SENDERS, &young, sender_body()).await, "young");
    assert!(!is_replayed(&client.post_with(SENDERS, &old, sender_body()).await));
}

/// The identifier of a client's key.
async fn key_id(
    server: &Server,
    client: &Client,
) -> hundi::kernel::Id<hundi::kernel::id::kind::ApiKey> {
    let hash = keys::key_hash(&client.key);
    let found = server
        .app
        .state
        .store
        .write(move |tx, _| Ok(keys::rows::find_caller(tx, &hash)?))
        .await
        .unwrap();
    found.unwrap().key_id
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_may_not_act_get_no_replay_and_store_nothing() {
    let server = Server::start_manual(&[]).await;
    let client = server.client().await;
    let key = client.fresh_key();
    client.post_with(SENDERS, &key, sender_body()).await.ok();
    let revoked = key_id(&server, &client).await;
    assert!(
        server
            .app
            .state
            .store
            .write(move |tx, now| Ok(keys::rows::revoke(tx, now, revoked)?))
            .await
            .unwrap()
    );
    server.advance_seconds(2);
    for _ in 0..2 {
        let answer = client.post_with(SENDERS, &key, sender_body()).await;
        assert_eq!(answer.error(401), "secret_key_invalid");
        assert!(!is_replayed(&answer));
    }

    let now = server.app.state.store.clock.milliseconds() / 1_000;
    let expiring = KeyRequest {
        account: "default".into(),
        mode: Mode::Test,
        permissions: Permissions::All,
        expires_at: Some(now + 10),
    };
    let expiring = server.client_with(expiring).await;
    let first = expiring.post_with(SENDERS, &key, sender_body()).await;
    first.ok();
    server.advance_seconds(11);
    let answer = expiring.post_with(SENDERS, &key, sender_body()).await;
    assert_eq!(answer.error(401), "action_unauthorized");
    assert!(!is_replayed(&answer));

    // Suspended and then cleared: the refusal was not kept, the first answer was.
    let client = server.client_of("paused", Mode::Test, "").await;
    let first = client.post_with(SENDERS, &key, sender_body()).await;
    for suspended in [true, false] {
        assert!(
            server
                .app
                .state
                .store
                .write(move |tx, _| Ok(keys::rows::set_suspended(tx, "paused", suspended)?))
                .await
                .unwrap()
        );
        server.advance_seconds(2);
        let answer = client.post_with(SENDERS, &key, sender_body()).await;
        if suspended {
            assert_eq!(answer.error(401), "action_unauthorized");
        } else {
            assert_replay(&first, &answer, "after the suspension");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_belongs_to_one_api_key() {
    let server = Server::start().await;
    let key = "one-key-for-all-of-them";
    let clients = [
        server.client().await,
        server.client().await,
        server.client_of("other", Mode::Test, "").await,
        server.client_of("default", Mode::Live, "").await,
        server.client_of("default", Mode::Test, "senders:write").await,
    ];
    let mut seen = Vec::new();
    for (number, client) in clients.iter().enumerate() {
        // Live keys make no senders before live mode is set up.
        let (path, body) = match number {
            3 => ("/v1/webhook_endpoints", json!({ "url": "https://example.com/hook" })),
            _ => (SENDERS, sender_body()),
        };
        let first = client.post_with(path, key, body.clone()).await;
        seen.push(id(&first.ok()));
        assert_replay(&first, &client.post_with(path, key, body).await, "its own");
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), clients.len());
    assert_eq!(
        clients[3].post_with("/v1/quote_locks", key, json!({})).await.error(409),
        "idempotency_key_reuse"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_header_has_a_form() {
    let server = Server::start().await;
    let client = server.client().await;
    let authorization = format!("Bearer {}", client.key);
    let (l16, l64, l65) = ("a".repeat(16), "b".repeat(64), "c".repeat(65));
    let repeated = "d".repeat(20);
    let rows: &[(&str, &[&[u8]], &str)] = &[
        ("absent", &[], "parameter_empty"),
        ("empty", &[b""], "parameter_empty"),
        ("spaces", &[b"                    "], "parameter_empty"),
        ("an empty quotation", &[b"\"\""], "parameter_empty"),
        ("15 characters", &[&l16.as_bytes()[1..]], "parameter_min_length_invalid"),
        ("15 characters in quotes", &[b"\"aaaaaaaaaaaaaaa\""], "parameter_min_length_invalid"),
        ("16 characters", &[l16.as_bytes()], ""),
        ("64 characters", &[l64.as_bytes()], ""),
        ("65 characters", &[l65.as_bytes()], "parameter_max_length_invalid"),
        ("twice", &[repeated.as_bytes(), repeated.as_bytes()], "parameter_value_invalid"),
        ("two", &[repeated.as_bytes(), b"eeeeeeeeeeeeeeeeeeee"], "parameter_value_invalid"),
        ("an empty second", &[repeated.as_bytes(), b""], "parameter_value_invalid"),
        ("not ASCII", &["ééééééééééé".as_bytes()], "parameter_value_invalid"),
        ("not UTF-8", &[b"ffffffffffffffffffff\xff"], "parameter_value_invalid"),
        ("a tab", &[b"gggggggggggg\tggggggggg"], "parameter_value_invalid"),
        ("a space within", &[b"hhhhhhhhh hhhhhhhhhhh"], ""),
    ];
    for (what, values, code) in rows {
        let mut headers: Vec<(&str, &[u8])> = vec![
            ("authorization", authorization.as_bytes()),
            ("content-type", b"application/json"),
        ];
        headers.extend(values.iter().map(|value| ("idempotency-key", *value)));
        let bytes = wire::request("POST", SENDERS, &headers, sender_body().to_string().as_bytes());
        let answer = wire::exchange(&server.address, &bytes).await.unwrap();
        if code.is_empty() {
            answer.ok();
            continue;
        }
        assert_eq!(
            answer.errors(400),
            [((*code).to_owned(), Some("Idempotency-Key".to_owned()))],
            "{what}"
        );
        assert!(
            !is_replayed(&wire::exchange(&server.address, &bytes).await.unwrap()),
            "{what}: stored"
        );
    }
    assert_eq!(senders_count(&client).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn quotes_around_the_key_are_not_part_of_it() {
    let server = Server::start().await;
    let client = server.client().await;
    let first =
        client.post_with(SENDERS, "8e03978e-40d5-43dd-bc93-6894a57f9324", sender_body()).await;
    let second =
        client.post_with(SENDERS, "\"8e03978e-40d5-43dd-bc93-6894a57f9324\"", sender_body()).await;
    assert_replay(&first, &second, "quoted");
    // One pair only, and only a whole one.
    for other in [
        "\"\"8e03978e-40d5-43dd-bc93-6894a57f9324\"\"",
        "\"8e03978e-40d5-43dd-bc93-6894a57f9324",
        "8e03978e-40d5-43dd-bc93-6894a57f9324\"",
    ] {
        let answer = client.post_with(SENDERS, other, sender_body()).await;
        answer.ok();
        assert!(!is_replayed(&answer), "{other}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_and_deleting_take_no_key() {
    let server = Server::start().await;
    let client = server.client().await;
    let key = client.fresh_key();
    let endpoint = client
        .post_with("/v1/webhook_endpoints", &key, json!({ "url": "https://example.com/" }))
        .await
        .ok();
    let path = format!("/v1/webhook_endpoints/{}", id(&endpoint));
    for value in [key.as_str(), "short", "", "\u{7}"] {
        let authorization = format!("Bearer {}", client.key);
        let headers: [(&str, &[u8]); 3] = [
            ("authorization", authorization.as_bytes()),
            ("idempotency-key", value.as_bytes()),
            ("idempotency-key", b"x"),
        ];
        // A control character is no header value at all; only the connection's answer differs.
        if value != "\u{7}" {
            let answer =
                wire::exchange(&server.address, &wire::request("GET", &path, &headers, b""))
                    .await
                    .unwrap();
            assert_eq!(answer.ok()["id"], endpoint["id"], "{value:?}");
            assert!(!is_replayed(&answer));
        }
    }
    let headers = [("idempotency-key", key.as_str())];
    let deleted = client.send(Method::DELETE, &path, &headers, Bytes::new()).await;
    assert_eq!(deleted.ok()["deleted"], true);
    let again = client.send(Method::DELETE, &path, &headers, Bytes::new()).await;
    assert_eq!(again.error(404), "object_not_found");
    assert!(!is_replayed(&deleted) && !is_replayed(&again));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversized_body_is_refused_and_leaves_the_key_free() {
    let server = Server::start().await;
    let client = server.client().await;
    let padded = |length: usize| {
        let body = sender_body().to_string();
        format!("{body}{}", " ".repeat(length - body.len()))
    };
    let authorization = format!("Bearer {}", client.key);
    let key = client.fresh_key();
    let headers: [(&str, &[u8]); 3] = [
        ("authorization", authorization.as_bytes()),
        ("content-type", b"application/json"),
        ("idempotency-key", key.as_bytes()),
    ];
    let large = padded(65_537);
    for _ in 0..2 {
        let answer = wire::exchange(
            &server.address,
            &wire::request("POST", SENDERS, &headers, large.as_bytes()),
        )
        .await
        .unwrap();
        assert_eq!(answer.error(400), "request_body_invalid");
        assert!(!is_replayed(&answer));
        assert_eq!(answer.header("connection"), Some("close"), "the rest of the body is not read");
    }
    // The same without a declared length.
    let mut chunked =
        format!("POST {SENDERS} HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n")
            .into_bytes();
    for (name, value) in headers {
        chunked.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    chunked.extend(format!("\r\n{:x}\r\n{large}\r\n0\r\n\r\n", large.len()).into_bytes());
    assert_eq!(
        wire::exchange(&server.address, &chunked).await.unwrap().error(400),
        "request_body_invalid"
    );
    let allowed = padded(65_536);
    let answer = client.post_raw(SENDERS, &key, allowed).await;
    answer.ok();
    assert!(!is_replayed(&answer));
    assert_replay(
        &answer,
        &client.post_with(SENDERS, &key, sender_body()).await,
        "white space does not count",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_before_the_claim_is_not_stored() {
    let server = Server::start_manual(&[("HUNDI_RATE_LIMIT_WRITES", "4")]).await;
    let client = server.client().await;
    let key = client.fresh_key();
    let key_header = [("idempotency-key", key.as_str()), ("content-type", "application/json")];
    let with_key = [key_header[0], key_header[1], ("authorization", "Bearer nonsense")];
    let body = || Bytes::from(sender_body().to_string());
    assert_eq!(
        client.send(Method::POST, SENDERS, &with_key, body()).await.error(401),
        "secret_key_invalid"
    );
    assert_eq!(
        client.send(Method::POST, "/v1/nothing", &key_header, body()).await.error(404),
        "object_not_found"
    );
    let wrong_method = client.send(Method::PUT, SENDERS, &key_header, body()).await;
    assert_eq!(wrong_method.error(405), "request_method_invalid");
    assert_eq!(
        wrong_method.header("allow").map(|allow| allow.contains("POST") && allow.contains("GET")),
        Some(true)
    );
    // Eight writes are the burst; the rest of it is used up here.
    let mut limited = client.send(Method::POST, "/v1/nothing", &key_header, body()).await;
    let mut asked = 1;
    while limited.status != 429 {
        assert!(asked < 20, "no limit was met");
        limited = client.send(Method::POST, "/v1/nothing", &key_header, body()).await;
        asked += 1;
    }
    let limited = client.post_with(SENDERS, &key, sender_body()).await;
    assert_eq!(limited.error(429), "rate_limit_exceeded");
    assert!(limited.header("retry-after").is_some());
    server.advance_seconds(2);
    let answer = client.post_with(SENDERS, &key, sender_body()).await;
    answer.ok();
    assert!(!is_replayed(&answer));
    // A replay counts for the limit as any request does.
    let mut statuses = Vec::new();
    for _ in 0..8 {
        statuses.push(client.post_with(SENDERS, &key, sender_body()).await.status);
    }
    assert!(statuses.starts_with(&[200; 7]) && statuses.ends_with(&[429]), "{statuses:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_finds_one_effect_on_its_retry() {
    const TRIES: usize = 40;
    let server = Server::start().await;
    let client = server.client().await;
    let authorization = format!("Bearer {}", client.key);
    for _ in 0..TRIES {
        let key = client.fresh_key();
        let headers: [(&str, &[u8]); 3] = [
            ("authorization", authorization.as_bytes()),
            ("content-type", b"application/json"),
            ("idempotency-key", key.as_bytes()),
        ];
        let mut stream = TcpStream::connect(&server.address).await.unwrap();
        stream
            .write_all(&wire::request(
                "POST",
                SENDERS,
                &headers,
                sender_body().to_string().as_bytes(),
            ))
            .await
            .unwrap();
        drop(stream);
        loop {
            let answer = client.post_with(SENDERS, &key, sender_body()).await;
            if answer.status == 200 {
                break;
            }
            assert_eq!(answer.error(409), "resource_locked");
        }
    }
    assert_eq!(senders_count(&client).await, TRIES);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_request_goes_on_when_its_client_hangs_up() {
    let server = Server::start().await;
    let client = server.client().await;
    let key = client.fresh_key();
    let hold = LaneHold::of(&server, &client).await;
    let (running, _) = running_and_locked(&client, &key).await;
    running.abort();
    assert!(running.await.is_err_and(|error| error.is_cancelled()));
    // The key stays held by the request, not by its connection.
    for _ in 0..5 {
        assert_eq!(
            client.post_with(SENDERS, &key, sender_body()).await.error(409),
            "resource_locked"
        );
    }
    hold.let_go();
    let started = Instant::now();
    let answer = loop {
        let answer = client.post_with(SENDERS, &key, sender_body()).await;
        if answer.status != 409 {
            break answer;
        }
        assert!(started.elapsed() < WAIT);
    };
    answer.ok();
    assert!(is_replayed(&answer), "the effect was there before the retry");
    assert_eq!(senders_count(&client).await, 1);
}

fn holds(files: &[(String, Vec<u8>)], wanted: &str) -> Option<String> {
    let found = files
        .iter()
        .find(|(_, bytes)| bytes.windows(wanted.len()).any(|part| part == wanted.as_bytes()));
    found.map(|(path, _)| path.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_shown_again_and_never_stored_in_the_open() {
    let server = Server::start().await;
    let client = server.client().await;
    let key = client.fresh_key();
    let body = json!({ "url": "https://example.com/hook", "description": "stored in the open" });
    let created = client.post_with("/v1/webhook_endpoints", &key, body.clone()).await;
    let secret = created.ok()["secret"].as_str().unwrap().to_owned();
    assert!(
        secret.starts_with("whsec_") && secret.len() == 50,
        "the secret is whsec_ and the base64 of 32 bytes"
    );
    assert_replay(
        &created,
        &client.post_with("/v1/webhook_endpoints", &key, body).await,
        "created",
    );
    let path = format!("/v1/webhook_endpoints/{}", id(&created.json()));
    let rotate_path = format!("{path}/rotate_secret");
    let key = client.fresh_key();
    let rotated = client.post_with(&rotate_path, &key, json!({})).await;
    let rotated_secret = rotated.ok()["secret"].as_str().unwrap().to_owned();
    assert_ne!(secret, rotated_secret);
    assert_replay(&rotated, &client.post_with(&rotate_path, &key, json!({})).await, "rotated");
    assert!(
        client.get(&path).await.ok().get("secret").is_none(),
        "shown at these two occasions only"
    );

    let personal = json!({
        "name": "Recognisable Holder", "account_number": "91827364550001", "ifsc": "HDFC0000001",
            "account_type": "nre",
        "pan": "QWXYZ4821K", "passport_number": "Z81736455", "date_of_birth": "1971-03-09",
            "submit": false,
    });
    let key = client.fresh_key();
    let beneficiary = client.post_with("/v1/beneficiaries", &key, personal.clone()).await;
    assert_replay(
        &beneficiary,
        &client.post_with("/v1/beneficiaries", &key, personal.clone()).await,
        "beneficiary",
    );
    let update = json!({ "account_number": "91827364550002", "passport_number": "Y71736455" });
    client.post(&format!("/v1/beneficiaries/{}", id(&beneficiary.json())), update).await.ok();
    let mut sender = sender_body();
    sender["identification"] = json!({ "type": "passport", "number": "X61736455" });
    client.post(SENDERS, sender).await.ok();
    // A refused body is stored by its fingerprint only.
    let mut refused = personal;
    refused["account_number"] = json!("91827364550003-and-more-than-fits");
    client.post("/v1/beneficiaries", refused).await.errors(400);

    let files = server.stored_bytes();
    assert!(
        is_on_postgres() || files.iter().any(|(path, _)| path.ends_with("-wal")),
        "the log of writes is among the files: {files:?}",
        files = files.iter().map(|file| &file.0).collect::<Vec<_>>()
    );
    for known in ["Recognisable Holder", "stored in the open"] {
        assert!(
            holds(&files, known).is_some(),
            "the search does not find {known}, which is stored in the open"
        );
    }
    for wanted in [
        "whsec_",
        &secret["whsec_".len()..],
        &rotated_secret["whsec_".len()..],
        "918273645500",
        "QWXYZ4821K",
        "Z81736455",
        "Y71736455",
        "X61736455",
        "1971-03-09",
        client.key.as_str(),
        &client.key["sk_test_".len()..],
    ] {
        assert_eq!(holds(&files, wanted), None, "{wanted} is stored in the open");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_that_heal_say_that_a_new_key_is_needed() {
    let is_listed = |code: &str| {
        [
            "beneficiary_not_payable",
            "beneficiary_not_editable",
            "sender_not_eligible",
            "refund_address_required",
            "webhook_endpoint_limit_exceeded",
        ]
        .contains(&code)
            || ["_action_invalid", "_not_applicable", "_not_ready"]
                .iter()
                .any(|end| code.ends_with(end))
    };
    for code in Code::ALL {
        assert_eq!(code.new_key_required(), is_listed(code.as_str()), "{}", code.as_str());
    }

    let server = Server::start().await;
    let client = server.client().await;
    let used = client.transfer_body("50100012345678", "100.00").await;
    let transfer = client.post("/v1/transfers", used.clone()).await.ok();
    let path = format!("/v1/transfers/{}", id(&transfer));
    let mut not_payable = client.transfer_body("50100012345678", "100.00").await;
    not_payable["beneficiary_id"] = json!(id(&client.beneficiary("50100000000004").await));
    let mut answers = vec![
        client.post("/v1/transfers", not_payable).await,
        client.post("/v1/transfers", used).await,
        client.post(&format!("{path}/resolve_funding"), json!({ "action": "refund" })).await,
        client
            .post(
                &format!("/v1/beneficiaries/{}", transfer["beneficiary_id"].as_str().unwrap()),
                json!({ "name": "B" }),
            )
            .await,
        client
            .post(
                &format!(
                    "/v1/test_helpers/beneficiaries/{}/reject",
                    transfer["beneficiary_id"].as_str().unwrap()
                ),
                json!({}),
            )
            .await,
    ];
    client.post(&format!("{path}/cancel"), json!({})).await.ok();
    answers.push(client.post(&format!("{path}/cancel"), json!({})).await);
    let short = client.transfer().await;
    client.deposit(&short, json!({ "amount": "1.00" })).await;
    client
        .wait_until(&format!("/v1/transfers/{}", id(&short)), |found| {
            found["funding"]["amount_received"] == "1.00"
        })
        .await;
    client.advance(3_600).await;
    client.wait_status(&format!("/v1/transfers/{}", id(&short)), "funding_hold").await;
    answers.push(
        client
            .post(
                &format!("/v1/transfers/{}/resolve_funding", id(&short)),
                json!({ "action": "refund" }),
            )
            .await,
    );
    let mut seen = Vec::new();
    for answer in answers {
        let error = answer.json()["errors"][0].clone();
        let code = error["code"].as_str().unwrap().to_owned();
        assert_eq!(answer.status, 400, "{error}");
        assert_eq!(
            error["metadata"].get("new_key_required").is_some(),
            is_listed(&code),
            "{error}"
        );
        seen.push(code);
    }
    assert_eq!(
        seen,
        [
            "beneficiary_not_payable",
            "quote_lock_already_used",
            "transfer_action_invalid",
            "beneficiary_not_editable",
            "test_helper_not_applicable",
            "transfer_not_cancellable",
            "refund_address_required",
        ]
    );
}

/// A body of thousands of faults is told a hundred of them, and its answer can be given again.
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_to_a_body_of_faults_alone_is_bounded_and_replayed() {
    let server = Server::start().await;
    let client = server.client().await;
    let letters = || b'a'..=b'z';
    let keys = letters().flat_map(|first| {
        letters().flat_map(move |second| letters().map(move |third| [first, second, third]))
    });
    let policy: serde_json::Map<String, Value> =
        keys.take(6_000).map(|key| (String::from_utf8(key.to_vec()).unwrap(), json!(1))).collect();
    let body = json!({ "funding": { "policy": policy } });
    let key = client.fresh_key();
    let first = client.post_with("/v1/transfers", &key, body.clone()).await;
    let told: Value = serde_json::from_slice(&first.body).unwrap();
    assert_eq!(
        (first.status, told["errors"].as_array().unwrap().len()),
        (400, hundi::kernel::refusal::ENTRIES_MAX)
    );
    let again = client.post_with("/v1/transfers", &key, body).await;
    assert_eq!(
        (again.status, &again.body, again.header("idempotent-replayed")),
        (400, &first.body, Some("true"))
    );
}
