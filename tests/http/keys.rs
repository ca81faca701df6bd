//! API keys: who may act, on what, in which mode, and how often.

use std::cell::RefCell;
use std::collections::BTreeSet;

use http::Method;
use hundi::app::KeyRequest;
use hundi::http::route::Verb;
use hundi::kernel::{Id, Mode};
use hundi::keys::{self, Permissions};
use hundi::routes::{resource_names, routes};
use serde_json::{Value, json};

use crate::stage::{self, ADDRESS, Actor, SETTLES};
use crate::support::{Answer, Client, Server, id, payout_id};

async fn with_authorization(
    client: &Client,
    method: Method,
    path: &str,
    authorization: &str,
) -> Answer {
    client.send(method, path, &[("authorization", authorization)], bytes::Bytes::new()).await
}

/// The error of a 401.
#[track_caller]
fn assert_unauthorized(answer: &Answer, code: &str, context: &str) {
    assert_eq!(answer.error(401), code, "{context}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_valid_key_nothing_answers() {
    let server = Server::start().await;
    let client = server.client().await;
    let key = client.key.clone();
    let mut mistyped = key.clone().into_bytes();
    mistyped[20] = if mistyped[20] == b'A' { b'B' } else { b'A' };
    let mistyped = String::from_utf8(mistyped).unwrap();
    let unknown = keys::key_text(Mode::Test, false, [7; 32]);
    let texts = [
        "Basic dXNlcjpwYXNz".to_owned(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        key.clone(),
        format!("Token {key}"),
        format!("Bearer{key}"),
        format!("Bearer {mistyped}"),
        format!("Bearer {unknown}"),
        "Bearer sk_test_short".to_owned(),
        format!("Bearer {}", &key[..key.len() - 1]),
        format!("Bearer {key}x"),
        format!("Bearer {}", key.to_uppercase()),
        format!("Bearer {}", key.replacen("sk_test", "sk_live", 1)),
        format!("Bearer {key} {key}"),
    ];
    for text in &texts {
        for (method, path) in [
            (Method::GET, "/v1/balance"),
            (Method::POST, "/v1/senders"),
            (Method::GET, "/v1/nothing"),
            (Method::PUT, "/v1/balance"),
            (Method::GET, "/v1"),
        ] {
            let answer = with_authorization(&client, method.clone(), path, text).await;
            assert_unauthorized(
                &answer,
                "secret_key_invalid",
                &format!("{method} {path} with {text:?}"),
            );
            assert_eq!(answer.header("allow"), None);
        }
    }
    for scheme in ["Bearer", "bearer", "BEARER"] {
        assert_eq!(
            with_authorization(&client, Method::GET, "/v1/balance", &format!("{scheme} {key}"))
                .await
                .status,
            200
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_the_header_is_refused() {
    let server = Server::start().await;
    for (method, path) in [("GET", "/v1/balance"), ("POST", "/v1/senders"), ("GET", "/v1/nothing")]
    {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(&server.address).await.unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
        assert!(
            answer.contains("\"secret_key_invalid\"")
                && answer.to_lowercase().contains("request-id: request_"),
            "{answer}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_expired_or_suspended_key_may_not_act() {
    let server = Server::start_manual(&[]).await;
    let start = 1_790_000_000;
    let revoked = server.client_of("revoked", Mode::Test, "").await;
    let suspended = server.client_of("suspended", Mode::Test, "").await;
    let expiring = server
        .client_with(KeyRequest {
            account: "expiring".into(),
            mode: Mode::Test,
            permissions: Permissions::All,
            expires_at: Some(start + 100),
        })
        .await;
    for client in [&revoked, &suspended, &expiring] {
        client.get("/v1/balance").await.ok();
    }
    server
        .app
        .state
        .store
        .write(|tx, now| {
            let line =
                keys::rows::list(tx)?.into_iter().find(|line| line.account == "revoked").unwrap();
            assert!(keys::rows::revoke(tx, now, line.id)?);
            assert!(
                !keys::rows::revoke(tx, now, line.id)?
                    && !keys::rows::revoke(tx, now, Id::from_u128(1))?
            );
            assert!(
                keys::rows::set_suspended(tx, "suspended", true)?
                    && !keys::rows::set_suspended(tx, "nobody", true)?
            );
            Ok(())
        })
        .await
        .unwrap();
    // A key that was just used may be remembered for a second, and no longer.
    server.advance_seconds(1);
    assert_unauthorized(&revoked.get("/v1/balance").await, "secret_key_invalid", "revoked");
    assert_unauthorized(&suspended.get("/v1/balance").await, "action_unauthorized", "suspended");
    assert_unauthorized(
        &suspended.post("/v1/senders", json!({})).await,
        "action_unauthorized",
        "suspended",
    );
    assert_unauthorized(
        &suspended.get("/v1/nothing").await,
        "action_unauthorized",
        "suspended, unknown route",
    );
    // Key expiry follows the store's clock, not the account's test clock.
    expiring.advance(86_400).await;
    expiring.get("/v1/balance").await.ok();
    server.advance_seconds(98);
    expiring.get("/v1/balance").await.ok();
    server.advance_seconds(1);
    assert_unauthorized(&expiring.get("/v1/balance").await, "action_unauthorized", "expired");
    server
        .app
        .state
        .store
        .write(|tx, _| Ok(keys::rows::set_suspended(tx, "suspended", false)?))
        .await
        .unwrap();
    server.advance_seconds(1);
    suspended.get("/v1/balance").await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_carry_their_mode_and_kind() {
    let server = Server::start().await;
    for (mode, permissions, prefix) in [
        (Mode::Test, "", "sk_test_"),
        (Mode::Live, "", "sk_live_"),
        (Mode::Test, "balance:read", "rk_test_"),
        (Mode::Live, "balance:read", "rk_live_"),
    ] {
        let client = server.client_of("default", mode, permissions).await;
        assert!(client.key.starts_with(prefix) && client.key.len() > prefix.len() + 32, "{prefix}");
        assert!(client.key[prefix.len()..].bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_eq!(client.get("/v1/balance").await.ok()["livemode"], mode.is_live());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restricted_key_does_what_its_permissions_name_and_nothing_else() {
    let server = Server::start().await;
    let full = server.client().await;
    let missing = |path: &str| path.replace("{id}", "nothing");
    for resource in resource_names() {
        for action in ["read", "write"] {
            let client =
                server.client_of("default", Mode::Test, &format!("{resource}:{action}")).await;
            for route in routes() {
                let (wanted_resource, wanted_action) = route.permission();
                assert_eq!(wanted_resource, route.path.split('/').nth(2).unwrap());
                assert_eq!(wanted_action == "read", route.verb == Verb::Get);
                let path = missing(route.path);
                let answer = match route.verb {
                    Verb::Get => client.get(&path).await,
                    Verb::Post => client.post(&path, json!({ "colour": "red" })).await,
                    Verb::Delete => client.delete(&path).await,
                };
                if (wanted_resource, wanted_action) == (resource, action) {
                    assert!(
                        [200, 400, 404].contains(&answer.status),
                        "{} {path} with {resource}:{action}: {}",
                        route.verb.as_str(),
                        answer.status
                    );
                } else {
                    // The permission is judged before the object and before the body.
                    assert_eq!(
                        answer.error(403),
                        "action_unauthorized",
                        "{} {path} with {resource}:{action}",
                        route.verb.as_str()
                    );
                }
            }
        }
    }
    assert_eq!(full.get("/v1/senders").await.ok()["data"], json!([]));
    let two = server.client_of("default", Mode::Test, "senders:read,senders:write").await;
    let sender = two.sender().await;
    two.get(&format!("/v1/senders/{}", id(&sender))).await.ok();
}

/// A client that notes which permissions its requests need.
struct Noting {
    client: Client,
    needed: RefCell<BTreeSet<String>>,
}

impl Noting {
    fn note(&self, path: &str, action: &str) {
        let resource = path.split(['/', '?']).nth(2).unwrap();
        self.needed.borrow_mut().insert(format!("{resource}:{action}"));
    }
    async fn get(&self, path: &str) -> Value {
        self.note(path, "read");
        self.client.get(path).await.ok()
    }
    async fn post(&self, path: &str, body: Value) -> Value {
        self.note(path, "write");
        self.client.post(path, body).await.ok()
    }
    /// A payment of 1000.00 to an account: the transfer after its end.
    async fn pay(&self, actor: &Actor, account_number: &str) -> Value {
        let beneficiary = self
            .post(
                "/v1/beneficiaries",
                json!({ "name": "Asha Rao", "account_number": account_number,
                    "ifsc": "HDFC0000001", "account_type": "nre" }),
            )
            .await;
        actor.advance(stage::STEP).await;
        let shown = self.get(&format!("/v1/beneficiaries/{}", id(&beneficiary))).await;
        assert_eq!(shown["payouts_enabled"], true);
        let sender = json!({ "name": "Ravi Rao", "type": "individual", "country": "AE" });
        let sender = self.post("/v1/senders", sender).await;
        let lock = json!({ "sell_currency": "USD", "buy_currency": "INR", "amount": "1000.00" });
        let lock = self.post("/v1/quote_locks", lock).await;
        let body = json!({
            "sender_id": sender["id"], "beneficiary_id": beneficiary["id"],
            "quote_lock_id": lock["id"], "amount": "1000.00", "currency": "USD",
            "payout_currency": "INR",
            "funding": { "rail": "stablecoin", "asset": "USDT", "chain": "tron" },
        });
        let transfer = self.post("/v1/transfers", body).await;
        actor.pay(&transfer, "1000.00").await;
        actor.advance(10 * stage::STEP).await;
        self.get(&format!("/v1/transfers/{}", id(&transfer))).await
    }
}

/// The guide on going live has a list of permissions to copy. It is enough for a payment, from the
/// webhook endpoint to the UTR or to the refund, and names nothing that is not needed for it.
#[tokio::test(flavor = "multi_thread")]
async fn the_permissions_that_the_guide_lists_are_those_of_a_payment() {
    let guide = include_str!("../../docs/guides/going-live.md").replace("\\\n", "");
    let listed = guide.split("--permissions ").nth(1).unwrap().lines().next().unwrap();
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let client = server.client_of("default", Mode::Test, listed).await;
    let caller = Noting { client, needed: RefCell::default() };
    caller.get("/v1/corridors").await;
    caller.post("/v1/webhook_endpoints", json!({ "url": "http://127.0.0.1:9/" })).await;
    let paid = caller.pay(&actor, SETTLES).await;
    assert_eq!(paid["status"], "payout_settled");
    let advice = caller.get(&format!("/v1/payouts/{}/payment_advice", payout_id(&paid))).await;
    assert_eq!(advice["status"], "settled");
    let deposits = caller.get(&format!("/v1/deposits?transfer_id={}", id(&paid))).await;
    assert_eq!(deposits["data"][0]["status"], "completed");
    let events = caller.get("/v1/events?type=transfer.status.payout_settled").await;
    assert_eq!(events["data"][0]["linked_id"], paid["id"]);
    let failed = caller.pay(&actor, "50100010001001").await;
    assert_eq!(failed["status"], "refund_processing");
    let payout = caller.get(&format!("/v1/payouts/{}", payout_id(&failed))).await;
    assert_eq!(payout["failure"]["code"], "account_closed");
    let refund = format!("/v1/refunds/{}", id(&failed["refund"]));
    assert_eq!(caller.get(&refund).await["status"], "requires_address");
    let declared = caller.post(&refund, json!({ "to_address": ADDRESS })).await;
    assert_eq!(declared["status"], "processing");
    let listed: BTreeSet<String> = listed.split(',').map(str::to_owned).collect();
    assert_eq!(listed, caller.needed.into_inner());
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_and_modes_do_not_see_each_other() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let transfer = actor.transfer(SETTLES, json!({})).await;
    let deposit = actor.pay(&transfer, "1200.00").await;
    actor.advance(600).await;
    let shown = actor.shown(&transfer).await;
    let endpoint = actor
        .client
        .post("/v1/webhook_endpoints", json!({ "url": "http://127.0.0.1:9/" }))
        .await
        .ok();
    let event = actor.client.get("/v1/events?limit=1").await.ok()["data"][0].clone();
    let mut examples = std::collections::BTreeMap::from([
        ("beneficiaries", transfer["beneficiary_id"].as_str().unwrap().to_owned()),
        ("senders", transfer["sender_id"].as_str().unwrap().to_owned()),
        ("quote_locks", transfer["quote_lock_id"].as_str().unwrap().to_owned()),
    ]);
    for (resource, object) in [
        ("transfers", &transfer),
        ("deposits", &deposit),
        ("refunds", &shown["refund"]),
        ("events", &event),
        ("webhook_endpoints", &endpoint),
    ] {
        examples.insert(resource, id(object));
    }
    examples.insert("payouts", payout_id(&shown));
    let stranger = server.client_of("stranger", Mode::Test, "").await;
    let live = server.client_of("default", Mode::Live, "").await;
    let unknown = actor.client.get("/v1/transfers/transfer_01JDK3Y5M8Q2X7N4V6T9R0ABCD").await;
    for route in routes() {
        let path_parts: Vec<&str> = route
            .path
            .trim_start_matches("/v1/")
            .trim_start_matches("test_helpers/")
            .split('/')
            .collect();
        for client in [&stranger, &live] {
            if !route.path.contains("{id}") {
                if route.verb == Verb::Get && route.list.is_some() {
                    assert_eq!(
                        client.get(route.path).await.ok()["data"],
                        json!([]),
                        "{}",
                        route.path
                    );
                }
                continue;
            }
            let path = route.path.replace("{id}", &examples[path_parts[0]]);
            let answer = match route.verb {
                Verb::Get => client.get(&path).await,
                Verb::Post => client.post(&path, json!({})).await,
                Verb::Delete => client.delete(&path).await,
            };
            if route.is_test_helper() && std::ptr::eq(client, &live) {
                assert_eq!(answer.error(403), "testmode_action_only", "{path}");
                continue;
            }
            assert_eq!(answer.error(404), "object_not_found", "{path}");
            assert_eq!(
                answer.body, unknown.body,
                "{path}: the same body as for an id that never existed"
            );
        }
    }
    for client in [&stranger, &live] {
        let balance = client.get("/v1/balance").await.ok();
        assert_eq!((&balance["hold"], &balance["available"]), (&json!([]), &json!([])));
    }
    // Nothing was touched by it.
    assert_eq!(actor.shown(&transfer).await, shown);
}

#[tokio::test(flavor = "multi_thread")]
async fn live_keys_read_and_may_not_create_what_needs_live_mode() {
    let server = Server::start().await;
    let live = server.client_of("default", Mode::Live, "").await;
    for path in ["/v1/beneficiaries", "/v1/senders", "/v1/quote_locks", "/v1/transfers"] {
        // Whatever the body says.
        for body in [
            json!({}),
            json!({ "sell_currency": "USD", "buy_currency": "INR", "amount": "1000.00" }),
        ] {
            assert_eq!(live.post(path, body).await.error(403), "action_unauthorized", "{path}");
        }
        assert_eq!(live.get(path).await.ok()["data"], json!([]));
    }
    let body = json!({ "url": "https://example.com/live" });
    let endpoint = live.post("/v1/webhook_endpoints", body).await.ok();
    assert_eq!(endpoint["livemode"], true);
    let shown = live.get(&format!("/v1/webhook_endpoints/{}", id(&endpoint))).await.ok();
    assert_eq!(shown["created"], endpoint["created"]);
    for route in routes().into_iter().filter(|route| route.is_test_helper()) {
        let path = route.path.replace("{id}", "nothing");
        let answer = match route.verb {
            Verb::Get => live.get(&path).await,
            _ => live.post(&path, json!({ "advance_seconds": 1 })).await,
        };
        assert_eq!(answer.error(403), "testmode_action_only", "{path}: before any look-up");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_routes_and_wrong_methods_are_told_to_valid_keys_only() {
    let server = Server::start().await;
    let client = server.client().await;
    for path in [
        "/v1/nothing",
        "/v1",
        "/v1/",
        "/v1/transfers/",
        "/v1/transfers/x/y",
        "/v1/test_helpers",
        "/v1//transfers",
        "/v1/Transfers",
    ] {
        assert_eq!(client.get(path).await.error(404), "object_not_found", "{path}");
    }
    let mut allowed: std::collections::BTreeMap<&str, Vec<&str>> = Default::default();
    for route in routes() {
        allowed.entry(route.path).or_default().push(route.verb.as_str());
    }
    for (path, verbs) in allowed {
        let path = path.replace("{id}", "nothing");
        for method in ["GET", "POST", "DELETE", "PUT", "PATCH"] {
            if verbs.contains(&method) {
                continue;
            }
            // No idempotency key is needed to learn that the method is wrong.
            let answer = client
                .send(
                    Method::from_bytes(method.as_bytes()).unwrap(),
                    &path,
                    &[],
                    bytes::Bytes::new(),
                )
                .await;
            assert_eq!(answer.error(405), "request_method_invalid", "{method} {path}");
            let mut allow: Vec<&str> = answer.header("allow").unwrap().split(", ").collect();
            let mut wanted = verbs.clone();
            allow.retain(|verb| *verb != "HEAD" && *verb != "OPTIONS");
            allow.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(allow, wanted, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_requests_than_the_rate_are_put_off() {
    let server = Server::start_manual(&[("HUNDI_RATE_LIMIT_WRITES", "5")]).await;
    let client = server.client().await;
    let other = server.client().await;
    let body = json!({ "name": "Ravi", "type": "individual", "country": "AE" });
    for n in 0..10 {
        let answer = client.post("/v1/senders", body.clone()).await;
        assert_eq!(answer.status, 200, "request {n} of a burst of twice the rate");
        assert!(
            answer.header("ratelimit").is_some() && answer.header("ratelimit-policy").is_some()
        );
    }
    let key = client.fresh_key();
    let refused = client.post_with("/v1/senders", &key, body.clone()).await;
    assert_eq!(refused.error(429), "rate_limit_exceeded");
    let wait: i64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!(wait >= 1);
    for name in ["ratelimit", "ratelimit-policy"] {
        assert!(refused.header(name).is_some(), "{name}");
    }
    // Writes only: reads have their own limit, and other keys of the account theirs. The limit
    // comes before route and body.
    client.get("/v1/senders").await.ok();
    other.post("/v1/senders", body.clone()).await.ok();
    assert_eq!(client.post("/v1/nothing", json!({})).await.error(429), "rate_limit_exceeded");
    assert_unauthorized(
        &with_authorization(&client, Method::POST, "/v1/senders", "Bearer x").await,
        "secret_key_invalid",
        "the key comes first",
    );
    server.advance_seconds(wait);
    let accepted = client.post_with("/v1/senders", &key, body.clone()).await;
    assert_eq!(
        (accepted.status, accepted.header("idempotent-replayed")),
        (200, None),
        "a refusal for the rate is not stored"
    );
    let mut count = 1;
    while client.post("/v1/senders", body.clone()).await.status == 200 {
        count += 1;
    }
    assert_eq!(count, 5 * wait, "after the burst, the rate");
    // The account's test clock does not fill the bucket.
    let reads = Server::start_manual(&[("HUNDI_RATE_LIMIT_READS", "2")]).await;
    let client = reads.client().await;
    for _ in 0..4 {
        client.get("/v1/balance").await.ok();
    }
    assert_eq!(client.get("/v1/balance").await.error(429), "rate_limit_exceeded");
    client.advance(86_400).await;
    assert_eq!(client.get("/v1/balance").await.error(429), "rate_limit_exceeded");
}

/// A statement counts as 25 reads, and the replay of a range as 25 writes.
#[tokio::test(flavor = "multi_thread")]
async fn expensive_requests_take_more_of_the_rate_limit() {
    let limits = [("HUNDI_RATE_LIMIT_READS", "20"), ("HUNDI_RATE_LIMIT_WRITES", "20")];
    let server = Server::start_manual(&limits).await;
    let client = server.client().await;
    let left = |answer: &Answer| {
        let header = answer.header("ratelimit").unwrap().to_owned();
        let part = header.split(';').find_map(|part| part.strip_prefix("r=").map(str::to_owned));
        part.unwrap().parse::<i64>().unwrap()
    };
    let statement = client.get("/v1/statements").await;
    statement.ok();
    assert_eq!(left(&statement), 40 - 25);
    let refused = client.get("/v1/statements").await;
    assert_eq!(refused.error(429), "rate_limit_exceeded");
    assert!(refused.header("retry-after").is_some());
    // Also where several nodes share the bucket, and this one took what it had.
    assert_eq!(left(&refused), 40 - 25, "what is too little for it is left for others");
    client.get("/v1/balance").await.ok();

    let body = json!({ "url": "https://example.com/" });
    let endpoint = client.post("/v1/webhook_endpoints", body).await.ok();
    let replay = format!("/v1/webhook_endpoints/{}/replay", id(&endpoint));
    let range = json!({ "since": 1 });
    let replayed = client.post(&replay, range.clone()).await;
    replayed.ok();
    assert_eq!(left(&replayed), 40 - 1 - 25);
    let key = client.fresh_key();
    assert_eq!(
        client.post_with(&replay, &key, range.clone()).await.error(429),
        "rate_limit_exceeded"
    );
    // One event is one write.
    let one = json!({ "event_id": "event_01JDK3Y5M8Q2X7N4V6T9R0ABCD" });
    assert_eq!(client.post(&replay, one).await.error(404), "object_not_found");
    server.advance_seconds(1);
    client.post_with(&replay, &key, range).await.ok();
    client.get("/v1/statements").await.ok();
}

/// A caller that waits as long as it is told gets its expensive request, however low the rate: a
/// refusal takes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn an_expensive_request_passes_after_the_time_that_its_refusal_says() {
    let server = Server::start_manual(&[("HUNDI_RATE_LIMIT_READS", "1")]).await;
    let client = server.client().await;
    client.get("/v1/statements").await.ok();
    server.advance_seconds(1);
    for _ in 0..3 {
        let refused = client.get("/v1/statements").await;
        assert_eq!(refused.error(429), "rate_limit_exceeded");
        assert_eq!(refused.header("retry-after"), Some("1"));
    }
    server.advance_seconds(1);
    client.get("/v1/statements").await.ok();
}
