//! Webhook endpoints and the deliveries to them.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use hundi::events;
use hundi::kernel::id::kind;
use hundi::kernel::{Mode, Now, Scope};
use hundi::store::Tx;
use hundi::webhooks::SECRETS_ACTIVE_MAX;
use serde_json::{Value, json};

use crate::receiver::{Receiver, Reply, types};
use crate::support::{Client, LaneHold, Server, WAIT, id, is_on_postgres, payout_id};

const ENDPOINTS: &str = "/v1/webhook_endpoints";
/// When attempts are made, in seconds after the event.
const SCHEDULE_SECONDS: [i64; 14] =
    [0, 5, 30, 120, 300, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 46_800, 64_800, 86_400];
/// One event for each beneficiary that is created.
const VERIFYING: &str = "beneficiary.status.verifying";

async fn register(client: &Client, url: &str, enabled_events: &[&str]) -> Value {
    client.post(ENDPOINTS, json!({ "url": url, "enabled_events": enabled_events })).await.ok()
}

fn path(endpoint: &Value) -> String {
    format!("{ENDPOINTS}/{}", id(endpoint))
}

/// Waits until the deliveries of an endpoint are as wanted.
async fn wait_deliveries(
    client: &Client,
    endpoint: &Value,
    mut wanted: impl FnMut(&[Value]) -> bool,
) -> Vec<Value> {
    let path = format!("{}/deliveries?limit=100", path(endpoint));
    client.wait_until(&path, |list| wanted(list["data"].as_array().unwrap())).await["data"]
        .as_array()
        .unwrap()
        .clone()
}

fn attempts_count(delivery: &Value) -> usize {
    delivery["attempts"].as_array().unwrap().len()
}

/// Lets the worker look again at once, rather than within a second.
fn nudge(server: &Server) {
    server.app.state.store.signals.deliveries.tell();
}

fn now_seconds(server: &Server) -> i64 {
    server.app.state.store.clock.milliseconds().div_euclid(1_000)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_made_read_changed_and_deleted() {
    let server = Server::start().await;
    let client = server.client().await;
    let body = json!({ "url": "https://example.com/hook?a=b", "description": "The shop",
        "metadata": { "a": "1", "b": "2" } });
    let created = client.post(ENDPOINTS, body).await.ok();
    let fields: Vec<&str> = created.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        fields,
        [
            "object",
            "id",
            "url",
            "description",
            "enabled_events",
            "status",
            "disabled_reason",
            "secret",
            "metadata",
            "created",
            "livemode"
        ]
    );
    assert_eq!(
        (&created["object"], &created["status"], &created["disabled_reason"]),
        (&json!("webhook_endpoint"), &json!("enabled"), &Value::Null)
    );
    assert_eq!((&created["enabled_events"], &created["livemode"]), (&json!(["*"]), &json!(false)));
    assert_eq!(
        (&created["url"], &created["description"]),
        (&json!("https://example.com/hook?a=b"), &json!("The shop"))
    );

    let mut shown = created.clone();
    shown.as_object_mut().unwrap().shift_remove("secret");
    let path = path(&created);
    assert_eq!(client.get(&path).await.ok(), shown);
    assert_eq!(
        client.get(ENDPOINTS).await.ok(),
        json!({ "object": "list", "data": [shown], "has_next": false })
    );

    let change = json!({ "url": "https://example.com/other", "description": null,
        "enabled_events": ["transfer.*"], "metadata": { "a": null, "c": "3" } });
    let changed = client.post(&path, change).await.ok();
    assert_eq!(
        (&changed["url"], &changed["description"]),
        (&json!("https://example.com/other"), &Value::Null)
    );
    assert_eq!(
        (&changed["enabled_events"], &changed["metadata"]),
        (&json!(["transfer.*"]), &json!({ "b": "2", "c": "3" }))
    );
    assert!(changed.get("secret").is_none());
    assert_eq!(
        client.post(&path, json!({ "enabled_events": null })).await.ok()["enabled_events"],
        json!(["*"])
    );
    assert_eq!(client.post(&path, json!({})).await.error(400), "parameter_empty");
    assert_eq!(
        client.post(&path, json!({ "status": "disabled" })).await.error(400),
        "parameter_value_invalid"
    );
    assert_eq!(
        client.post(&path, json!({ "secret": "whsec_mine" })).await.error(400),
        "parameter_unexpected"
    );

    assert_eq!(
        client.delete(&path).await.ok(),
        json!({ "object": "webhook_endpoint", "id": id(&created), "deleted": true })
    );
    for answer in [
        client.get(&path).await,
        client.delete(&path).await,
        client.post(&path, json!({ "description": "x" })).await,
    ] {
        assert_eq!(answer.error(404), "object_not_found");
    }
    assert_eq!(client.get(ENDPOINTS).await.ok()["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn urls_that_could_reach_inward_are_refused() {
    let strict = Server::start_with(&[("HUNDI_ALLOW_LOOPBACK_WEBHOOKS", "false")]).await;
    let open = Server::start().await;
    let strict_client = strict.client().await;
    let live_client = open.client_of("default", Mode::Live, "").await;
    let open_client = open.client().await;
    let everywhere = [
        "http://example.com/",
        "http://8.8.8.8/",
        "http://10.0.0.1/",
        "https://10.0.0.1/",
        "https://172.16.0.1/",
        "https://192.168.1.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://100.64.0.1/",
        "https://0.0.0.0/",
        "https://255.255.255.255/",
        "https://224.0.0.1/",
        "https://192.0.2.1/",
        "https://198.18.0.1/",
        "https://167772161/",
        "https://0xa000001/",
        "https://0x0a.0.0.1/",
        "https://012.0.0.1/",
        "https://10.1/",
        "https://0251.0376.0251.0376/",
        "https://2852039166/",
        "https://0xa9fea9fe/",
        "https://[::]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[::ffff:a9fe:a9fe]/",
        "https://[::10.0.0.1]/",
        "https://[64:ff9b::a00:1]/",
        "https://[64:ff9b:1::a00:1]/",
        "https://[2002:a00:1::]/",
        "https://[2002:7f00:1::]/",
        "https://[fe80::1]/",
        "https://[fc00::1]/",
        "https://[fd00:ec2::254]/",
        "https://[ff02::1]/",
        "https://[2001:db8::1]/",
        "https://[2001::1]/",
        "https://user@example.com/",
        "https://user:secret@example.com/",
        "https://:secret@example.com/",
        "https://example.com/#part",
        "https://example.com/#",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "example.com",
        "//example.com/",
        "https://",
        "https://exa mple.com/",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://1.2.3.4.5/",
        "https://example..com/",
        "https://hooks.localhost/",
        "https://example.com\\@127.0.0.1/",
        "https:\\\\example.com/",
        "https://example.com/a\\b",
    ];
    let loopback = [
        "http://127.0.0.1/",
        "https://127.0.0.1/",
        "https://127.1/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://017700000001/",
        "https://0x7f.1/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:7f00:1]/",
        "http://localhost:8080/",
        "https://localhost/",
        "https://LOCALHOST./",
        "https://①②⑦.0.0.1/",
        "https://127。0。0。1/",
        "https://%31%32%37.0.0.1/",
    ];
    let existing =
        path(&strict_client.post(ENDPOINTS, json!({ "url": "https://example.com/" })).await.ok());
    for url in everywhere.iter().chain(&loopback) {
        for client in [&strict_client, &live_client] {
            let refused = client.post(ENDPOINTS, json!({ "url": url })).await;
            assert_eq!(
                refused.errors(400),
                [("parameter_value_invalid".to_owned(), Some("url".to_owned()))],
                "{url}"
            );
        }
        let many = [("parameter_value_invalid", "description"), ("parameter_value_invalid", "url")];
        let mut refused = strict_client
            .post(ENDPOINTS, json!({ "url": url, "description": 5 }))
            .await
            .errors(400);
        refused.sort();
        assert_eq!(
            refused,
            many.map(|(code, field)| (code.to_owned(), Some(field.to_owned()))),
            "{url} beside another fault"
        );
        let refused = strict_client.post(&existing, json!({ "url": url })).await;
        assert_eq!(
            refused.errors(400),
            [("parameter_value_invalid".to_owned(), Some("url".to_owned()))],
            "update to {url}"
        );
    }
    for url in everywhere {
        assert_eq!(
            open_client.post(ENDPOINTS, json!({ "url": url })).await.error(400),
            "parameter_value_invalid",
            "{url} where loopback is allowed"
        );
    }
    assert_eq!(strict_client.get(&existing).await.ok()["url"], "https://example.com/");
    let taken = [
        "https://example.com/",
        "https://8.8.8.8/hook",
        "https://[2606:4700:4700::1111]:8443/",
        "https://bücher.example/",
        "https://metadata.google.internal/",
    ];
    for client in [&strict_client, &live_client] {
        for url in taken {
            client.post(ENDPOINTS, json!({ "url": url })).await.ok();
        }
    }
    for url in
        ["http://127.0.0.1:1/", "http://localhost:1/a", "https://[::1]/", "http://2130706433/"]
    {
        open_client.post(ENDPOINTS, json!({ "url": url })).await.ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_faults_of_a_registration_are_told_together() {
    let server = Server::start().await;
    let client = server.client().await;
    let long = format!("https://example.com/{}", "a".repeat(2_048));
    let many = vec!["*"; 51];
    let rows = [
        (json!({}), vec![("parameter_empty", "url")]),
        (json!({ "url": null }), vec![("parameter_empty", "url")]),
        (json!({ "url": "" }), vec![("parameter_empty", "url")]),
        (json!({ "url": 7 }), vec![("parameter_value_invalid", "url")]),
        (json!({ "url": long }), vec![("parameter_max_length_invalid", "url")]),
        (
            json!({ "url": "https://example.com/", "enabled_events": [] }),
            vec![("parameter_min_length_invalid", "enabled_events")],
        ),
        (
            json!({ "url": "https://example.com/", "enabled_events": many }),
            vec![("parameter_max_length_invalid", "enabled_events")],
        ),
        (
            json!({ "url": "https://example.com/", "enabled_events": "*" }),
            vec![("parameter_value_invalid", "enabled_events")],
        ),
        (
            json!({ "url": "https://example.com/", "enabled_events": ["transfer.status.funded",
                "transfer.status.unknown", "transfer*", "transfer.status", "sender.*",
                "*.status.funded", "**"] }),
            (1..=6)
                .map(|index| {
                    (
                        "parameter_value_invalid",
                        [
                            "",
                            "enabled_events.1",
                            "enabled_events.2",
                            "enabled_events.3",
                            "enabled_events.4",
                            "enabled_events.5",
                            "enabled_events.6",
                        ][index],
                    )
                })
                .collect(),
        ),
        (
            json!({ "url": "https://10.0.0.1/", "enabled_events": ["nothing"],
                "description": "d".repeat(501), "metadata": { "a": 1 }, "active": true }),
            vec![
                ("parameter_unexpected", "active"),
                ("parameter_value_invalid", "url"),
                ("parameter_value_invalid", "enabled_events.0"),
                ("parameter_max_length_invalid", "description"),
                ("parameter_value_invalid", "metadata.a"),
            ],
        ),
    ];
    for (body, expected) in rows {
        let mut found = client.post(ENDPOINTS, body.clone()).await.errors(400);
        found.sort();
        let mut expected: Vec<_> = expected
            .into_iter()
            .map(|(code, field)| (code.to_owned(), Some(field.to_owned())))
            .collect();
        expected.sort();
        assert_eq!(found, expected, "{body}");
    }
    for filters in [
        vec!["*"],
        vec!["transfer.*"],
        vec!["transfer.status.*", "payout.payment_advice.available"],
        vec!["*"; 50],
    ] {
        assert_eq!(
            client
                .post(
                    ENDPOINTS,
                    json!({ "url": "https://example.com/", "enabled_events": filters })
                )
                .await
                .ok()["enabled_events"],
            json!(filters)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_has_at_most_sixteen_endpoints_a_mode() {
    let server = Server::start().await;
    let client = server.client().await;
    let body = json!({ "url": "https://example.com/" });
    let mut last = Value::Null;
    for _ in 0..16 {
        last = client.post(ENDPOINTS, body.clone()).await.ok();
    }
    assert_eq!(
        client.post(ENDPOINTS, body.clone()).await.error(400),
        "webhook_endpoint_limit_exceeded"
    );
    server.client_of("default", Mode::Live, "").await.post(ENDPOINTS, body.clone()).await.ok();
    server.client_of("other", Mode::Test, "").await.post(ENDPOINTS, body.clone()).await.ok();
    client.delete(&path(&last)).await.ok();
    client.post(ENDPOINTS, body.clone()).await.ok();
    assert_eq!(client.post(ENDPOINTS, body).await.error(400), "webhook_endpoint_limit_exceeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_rotation_ends_a_secret_before_its_time() {
    let server = Server::start_manual(&[]).await;
    let client = server.client().await;
    let receiver = Receiver::start(Reply::status(200)).await;
    let endpoint = register(&client, &receiver.url, &[VERIFYING]).await;
    let rotate = format!("{}/rotate_secret", path(&endpoint));
    let mut secrets = vec![endpoint["secret"].clone()];
    for _ in 1..SECRETS_ACTIVE_MAX {
        secrets.push(client.post(&rotate, json!({})).await.ok()["secret"].clone());
    }
    assert_eq!(client.post(&rotate, json!({})).await.error(400), "webhook_endpoint_limit_exceeded");
    client.beneficiary("50100012345678").await;
    let arrived = receiver.wait_count(1).await;
    assert_eq!(arrived[0].entries().len(), 2 * SECRETS_ACTIVE_MAX);
    for secret in &secrets {
        let secret = secret.as_str().unwrap();
        assert!(arrived[0].fits_specification(secret) && arrived[0].fits_library(secret, false));
    }
    // An overlap of zero ends all of them, and there is room again.
    client.post(&rotate, json!({ "overlap_seconds": 0 })).await.ok();
    client.post(&rotate, json!({})).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_pass_the_stock_library_and_the_specifications_steps() {
    let server = Server::start().await;
    let client = server.client().await;
    let receiver = Receiver::start(Reply::status(200)).await;
    let endpoint = register(&client, &receiver.url, &["*"]).await;
    let secret = endpoint["secret"].as_str().unwrap();
    let transfer = client.transfer().await;
    client.deposit(&transfer, json!({})).await;
    client.wait_status(&format!("/v1/transfers/{}", id(&transfer)), "payout_settled").await;
    let arrived = receiver
        .wait_until(|deliveries| {
            types(deliveries).iter().any(|found| found == "payout.payment_advice.available")
        })
        .await;
    let started = Instant::now();
    let events = loop {
        let events =
            client.get("/v1/events?limit=100").await.ok()["data"].as_array().unwrap().clone();
        if receiver.count() >= events.len() {
            break events;
        }
        assert!(started.elapsed() < WAIT);
        receiver.wait_count(events.len()).await;
    };
    assert!(events.len() > 8 && arrived.len() <= events.len(), "{} events", events.len());
    for delivery in receiver.deliveries() {
        assert_eq!((delivery.method.as_str(), delivery.path.as_str()), ("POST", "/hooks"));
        assert_eq!(delivery.header("content-type"), "application/json");
        assert!(delivery.fits_specification(secret) && delivery.fits_library(secret, true));
        let age =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
                as i64
                - delivery.timestamp();
        assert!((0..300).contains(&age), "{age}");
        assert_eq!(delivery.entries().len(), 2);
        let event = delivery.event();
        assert_eq!(event["id"], delivery.id());
        assert!(events.contains(&event), "the body is the event as the API shows it: {event}");
        let fields: Vec<&str> = event.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            fields,
            ["object", "id", "type", "linked_id", "linked_object", "created", "livemode"]
        );
        // The control: one byte, one second or another secret, and neither check accepts.
        let mut tampered = delivery.clone();
        tampered.body =
            String::from_utf8(delivery.body.to_vec()).unwrap().replacen("event", "evEnt", 1).into();
        assert!(!tampered.fits_specification(secret) && !tampered.fits_library(secret, true));
        let mut tampered = delivery.clone();
        tampered.headers.insert("webhook-timestamp", (delivery.timestamp() + 1).into());
        assert!(!tampered.fits_specification(secret) && !tampered.fits_library(secret, true));
        let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        assert!(!delivery.fits_specification(other) && !delivery.fits_library(other, true));
    }
    let mut ids: Vec<_> =
        receiver.deliveries().iter().map(|delivery| delivery.id().to_owned()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), receiver.count(), "each event arrives once where all is well");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_secret_goes_on_signing_for_the_overlap() {
    let server = Server::start_manual(&[]).await;
    let client = server.client().await;
    let receiver = Receiver::start(Reply::status(200)).await;
    let endpoint = register(&client, &receiver.url, &[VERIFYING]).await;
    let rotate = format!("{}/rotate_secret", path(&endpoint));
    let secret_of = |answer: &Value| answer["secret"].as_str().unwrap().to_owned();
    let first = secret_of(&endpoint);
    let rotated = client.post(&rotate, json!({})).await.ok();
    let second = secret_of(&rotated);
    assert_eq!(id(&rotated), id(&endpoint));

    // A change takes effect within a second or so: the worker remembers secrets for a moment.
    let signed_by = async |valid: &[&String], invalid: &[&String]| {
        let started = Instant::now();
        loop {
            let count = receiver.count();
            client.beneficiary("50100012345678").await;
            let delivery = receiver.wait_count(count + 1).await.pop().unwrap();
            let fits = |secret: &&String| {
                (delivery.fits_specification(secret), delivery.fits_library(secret, false))
            };
            let is_as_wanted = delivery.entries().len() == valid.len() * 2
                && valid.iter().all(|secret| fits(secret) == (true, true))
                && invalid.iter().all(|secret| fits(secret) == (false, false));
            if is_as_wanted {
                return;
            }
            assert!(started.elapsed() < WAIT, "{} entries", delivery.entries().len());
        }
    };
    signed_by(&[&second, &first], &[]).await;
    server.advance_seconds(86_400);
    signed_by(&[&second], &[&first]).await;
    // None at all, as after a leak.
    let third = secret_of(&client.post(&rotate, json!({ "overlap_seconds": 0 })).await.ok());
    signed_by(&[&third], &[&second]).await;
    let fourth = secret_of(&client.post(&rotate, json!({ "overlap_seconds": 604_800 })).await.ok());
    server.advance_seconds(604_790);
    signed_by(&[&fourth, &third], &[]).await;
    server.advance_seconds(10);
    signed_by(&[&fourth], &[&third]).await;
    for (overlap, code) in [
        (json!(-1), "parameter_range_invalid"),
        (json!(604_801), "parameter_range_invalid"),
        (json!("1"), "parameter_value_invalid"),
    ] {
        assert_eq!(
            client.post(&rotate, json!({ "overlap_seconds": overlap })).await.error(400),
            code
        );
    }
}

/// Moves the clock of the server to a moment and lets what is due happen.
fn move_to(server: &Server, seconds: i64) {
    server.advance_seconds(seconds - now_seconds(server));
    nudge(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_delivery_is_tried_again_for_24_hours() {
    let server = Server::start_manual(&[]).await;
    let client = server.client().await;
    let broken = Receiver::start(Reply { body: "no".into(), ..Reply::status(500) }).await;
    let healthy = Receiver::start(Reply::status(204)).await;
    let endpoint = register(&client, &broken.url, &[VERIFYING]).await;
    let witness =
        register(&client, &healthy.url, &["webhook_endpoint.*", "transfer.*", "beneficiary.*"])
            .await;
    let start = now_seconds(&server);
    client.beneficiary("50100000000004").await;
    for (index, step) in SCHEDULE_SECONDS.into_iter().enumerate() {
        let recorded = wait_deliveries(&client, &endpoint, |list| {
            list.len() == 1 && attempts_count(&list[0]) == index + 1
        })
        .await;
        let delivery = &recorded[0];
        let attempt = &delivery["attempts"][index];
        assert_eq!(
            (&attempt["http_status"], &attempt["error"], &attempt["answer"]),
            (&json!(500), &Value::Null, &json!("no"))
        );
        assert_eq!(attempt["attempted_at"], now_seconds(&server), "attempt {index}");
        assert_eq!(broken.count(), index + 1);
        let Some(next) = SCHEDULE_SECONDS.get(index + 1) else {
            assert_eq!(
                (&delivery["status"], &delivery["next_attempt_at"]),
                (&json!("failed"), &Value::Null)
            );
            break;
        };
        assert_eq!(delivery["status"], "pending");
        let due = delivery["next_attempt_at"].as_i64().unwrap() - start;
        let reach = if *next == 86_400 { 0 } else { (next - step) / 10 + 1 };
        assert!(
            (next - reach..=next + reach).contains(&due),
            "attempt {} is due after {due} s and not after {next} s",
            index + 1
        );
        if index == 0 {
            // Just before that nothing happens: another event, for which the worker looks, is
            // delivered alone.
            move_to(&server, start + due - 1);
            let before = healthy.count();
            client
                .post(
                    &format!(
                        "/v1/test_helpers/beneficiaries/{}/activate",
                        delivery_object(&broken)
                    ),
                    json!({}),
                )
                .await
                .ok();
            healthy.wait_count(before + 1).await;
            assert_eq!(broken.count(), 1);
        }
        move_to(&server, start + due + 1);
    }
    let arrived = broken.deliveries();
    let secret = endpoint["secret"].as_str().unwrap();
    let mut timestamps = Vec::new();
    for delivery in &arrived {
        assert_eq!(
            (delivery.id(), &delivery.body),
            (arrived[0].id(), &arrived[0].body),
            "the same event, byte for byte"
        );
        assert!(delivery.fits_specification(secret) && delivery.fits_library(secret, false));
        timestamps.push(delivery.timestamp());
    }
    assert!(
        timestamps.is_sorted_by(|earlier, later| earlier < later),
        "fresh timestamps: {timestamps:?}"
    );
    assert_eq!(arrived.len(), 14);
    // 24 h of failures: the endpoint is failing, which the account's other endpoints and its events
    // tell.
    assert_eq!(client.get(&path(&endpoint)).await.ok()["status"], "failing");
    healthy
        .wait_until(|deliveries| {
            types(deliveries).contains(&"webhook_endpoint.status.failing".to_owned())
        })
        .await;
    let events = client.get(&format!("/v1/events?linked_id={}", id(&endpoint))).await.ok();
    assert_eq!(events["data"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&events["data"][0]["type"], &events["data"][0]["linked_object"]),
        (&json!("webhook_endpoint.status.failing"), &json!("webhook_endpoint"))
    );
    assert_eq!(client.get(&path(&witness)).await.ok()["status"], "enabled");
}

/// The object that the first delivery is about.
fn delivery_object(receiver: &Receiver) -> String {
    receiver.deliveries()[0].event()["linked_id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_fails_for_days_is_disabled_and_can_come_back() {
    let server = Server::start_manual(&[]).await;
    let client = server.client().await;
    let broken = Receiver::start(Reply::status(503)).await;
    let healthy = Receiver::start(Reply::status(200)).await;
    let endpoint =
        register(&client, &broken.url, &[VERIFYING, "webhook_endpoint.status.enabled"]).await;
    let path = path(&endpoint);
    register(&client, &healthy.url, &["webhook_endpoint.*"]).await;
    let start = now_seconds(&server);
    // Ten events whose first attempts fail; 121 hours later their late second ones do.
    for _ in 0..10 {
        client.beneficiary("50100012345678").await;
    }
    wait_deliveries(&client, &endpoint, |list| {
        list.len() == 10 && list.iter().all(|delivery| attempts_count(delivery) == 1)
    })
    .await;
    assert_eq!(client.get(&path).await.ok()["status"], "enabled");
    move_to(&server, start + 24 * 3_600 - 2);
    wait_deliveries(&client, &endpoint, |list| {
        list.iter().all(|delivery| attempts_count(delivery) == 2)
    })
    .await;
    assert_eq!(client.get(&path).await.ok()["status"], "enabled", "two seconds before 24 h");
    move_to(&server, start + 120 * 3_600 - 2);
    wait_deliveries(&client, &endpoint, |list| {
        list.iter().all(|delivery| delivery["status"] == "failed")
    })
    .await;
    assert_eq!(client.get(&path).await.ok()["status"], "failing", "two seconds before 120 h");
    move_to(&server, start + 120 * 3_600);
    client.beneficiary("50100012345678").await;
    let disabled = client.wait_status(&path, "disabled").await;
    assert_eq!(disabled["disabled_reason"], "delivery_failures");
    let arrived = healthy.wait_count(2).await;
    assert_eq!(
        types(&arrived),
        ["webhook_endpoint.status.failing", "webhook_endpoint.status.disabled"]
    );
    assert!(arrived.iter().all(|delivery| delivery.event()["linked_id"] == endpoint["id"]));

    // Recorded and not attempted, now and later.
    let attempted = broken.count();
    broken.answer_with(Reply::status(200));
    for _ in 0..2 {
        client.beneficiary("50100012345678").await;
    }
    let recorded = wait_deliveries(&client, &endpoint, |list| {
        list.len() == 13 && list.iter().all(|delivery| delivery["status"] != "pending")
    })
    .await;
    assert_eq!(
        recorded.iter().filter(|delivery| delivery["status"] == "recorded").count(),
        3,
        "the pending one and two new ones"
    );
    assert!(
        recorded[11..]
            .iter()
            .all(|delivery| attempts_count(delivery) == 0 && delivery["next_attempt_at"].is_null())
    );
    assert_eq!(broken.count(), attempted);

    server.advance_seconds(1);
    // One by its event, the others as failed ones; the endpoint stays disabled meanwhile.
    let replayed = client
        .post(&format!("{path}/replay"), json!({ "event_id": recorded[12]["event_id"] }))
        .await
        .ok();
    assert_eq!(
        replayed,
        json!({ "object": "webhook_replay", "webhook_endpoint_id": id(&endpoint),
            "deliveries_count": 1 })
    );
    let arrived = broken.wait_count(attempted + 1).await;
    assert_eq!(arrived.last().unwrap().id(), recorded[12]["event_id"]);
    wait_deliveries(&client, &endpoint, |list| list[12]["status"] == "succeeded").await;
    let replayed = client
        .post(&format!("{path}/replay"), json!({ "since": start, "only_failed": true }))
        .await
        .ok();
    assert_eq!(replayed["deliveries_count"], 12);
    wait_deliveries(&client, &endpoint, |list| {
        list.iter().all(|delivery| delivery["status"] == "succeeded")
    })
    .await;
    assert_eq!(broken.count(), attempted + 13);
    assert_eq!(client.get(&path).await.ok()["status"], "disabled", "only its owner ends that");

    let enabled = client.post(&path, json!({ "status": "enabled" })).await.ok();
    assert_eq!(
        (&enabled["status"], &enabled["disabled_reason"]),
        (&json!("enabled"), &Value::Null)
    );
    healthy
        .wait_until(|deliveries| {
            types(deliveries).contains(&"webhook_endpoint.status.enabled".to_owned())
        })
        .await;
    let arrived = broken.wait_count(attempted + 14).await;
    assert_eq!(
        types(&arrived).last().unwrap(),
        "webhook_endpoint.status.enabled",
        "it is told of itself too"
    );
    client.beneficiary("50100012345678").await;
    broken.wait_count(attempted + 15).await;
    // A failure now begins a new count: it is far from failing.
    broken.answer_with(Reply::status(500));
    client.beneficiary("50100012345678").await;
    wait_deliveries(&client, &endpoint, |list| list.len() == 16 && attempts_count(&list[15]) == 1)
        .await;
    assert_eq!(client.get(&path).await.ok()["status"], "enabled");

    // With another filter a replay brings what it was not told before, of itself too.
    broken.answer_with(Reply::status(200));
    client.post(&path, json!({ "enabled_events": ["*"] })).await.ok();
    let own = client.get(&format!("/v1/events?linked_id={}", id(&endpoint))).await.ok();
    let failing = &own["data"][0];
    assert_eq!(failing["type"], "webhook_endpoint.status.failing");
    let replay = format!("{path}/replay");
    let one = client.post(&replay, json!({ "event_id": failing["id"] })).await.ok();
    assert_eq!(one["deliveries_count"], 1);
    let count = crate::stage::all(&client, "/v1/events").await.len();
    let range = client.post(&replay, json!({ "since": start })).await.ok();
    assert_eq!(range["deliveries_count"], count);
    broken
        .wait_until(|deliveries| {
            types(deliveries).contains(&"webhook_endpoint.status.disabled".to_owned())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn few_failures_over_days_make_an_endpoint_failing_and_a_success_heals_it() {
    let server = Server::start_manual(&[]).await;
    let client = server.client().await;
    let receiver = Receiver::start(Reply::status(500)).await;
    let endpoint = register(&client, &receiver.url, &[VERIFYING]).await;
    let start = now_seconds(&server);
    client.beneficiary("50100012345678").await;
    wait_deliveries(&client, &endpoint, |list| list.len() == 1 && attempts_count(&list[0]) == 1)
        .await;
    move_to(&server, start + 130 * 3_600);
    wait_deliveries(&client, &endpoint, |list| list[0]["status"] == "failed").await;
    assert_eq!(
        client.get(&path(&endpoint)).await.ok()["status"],
        "failing",
        "two failures are fewer than ten"
    );
    receiver.answer_with(Reply::status(200));
    client.beneficiary("50100012345678").await;
    client.wait_status(&path(&endpoint), "enabled").await;
    let events = client.get(&format!("/v1/events?linked_id={}", id(&endpoint))).await.ok();
    let told: Vec<_> = events["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(told, ["webhook_endpoint.status.failing", "webhook_endpoint.status.enabled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_2xx_is_a_success_and_no_redirect_is_followed() {
    let server = Server::start().await;
    let client = server.client().await;
    let target = Receiver::start(Reply::status(200)).await;
    let rows = [
        (200, true),
        (201, true),
        (204, true),
        (299, true),
        (300, false),
        (301, false),
        (302, false),
        (303, false),
        (307, false),
        (308, false),
        (400, false),
        (404, false),
        (410, false),
        (429, false),
        (500, false),
        (599, false),
    ];
    let mut endpoints = Vec::new();
    for (status, is_success) in rows {
        let receiver =
            Receiver::start(Reply::status(status).with("location", target.url.clone())).await;
        let endpoint = register(&client, &receiver.url, &[VERIFYING]).await;
        endpoints.push((status, is_success, endpoint, receiver));
    }
    client.beneficiary("50100012345678").await;
    for (status, is_success, endpoint, receiver) in &endpoints {
        let found = wait_deliveries(&client, endpoint, |list| {
            list.len() == 1 && attempts_count(&list[0]) >= 1
        })
        .await;
        assert_eq!(found[0]["attempts"][0]["http_status"], *status);
        assert_eq!(
            found[0]["status"],
            if *is_success { "succeeded" } else { "pending" },
            "{status}"
        );
        assert_eq!(found[0]["next_attempt_at"].is_null(), *is_success, "{status}");
        assert_eq!(receiver.count(), 1);
        assert_eq!(
            client.get(&path(endpoint)).await.ok()["status"],
            "enabled",
            "{status}: one answer disables nothing"
        );
    }
    assert_eq!(target.count(), 0, "a redirect was followed");
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_after_is_honoured_within_the_window() {
    let server = Server::start_manual(&[]).await;
    let client = server.client().await;
    let start = now_seconds(&server);
    let date =
        httpdate::fmt_http_date(std::time::UNIX_EPOCH + Duration::from_secs((start + 600) as u64));
    let rows = [
        (429, "120", 120..=120),
        (503, "120", 120..=120),
        (503, date.as_str(), 600..=600),
        // Sooner than the schedule is no reason to hurry, and past the window there is no attempt.
        (503, "1", 4..=6),
        (429, "999999999", 86_400..=86_400),
        (503, "soon", 4..=6),
        // Other answers do not have it.
        (500, "120", 4..=6),
        (301, "120", 4..=6),
    ];
    let mut endpoints = Vec::new();
    for (status, value, due) in rows {
        let receiver = Receiver::start(Reply::status(status).with("retry-after", value)).await;
        endpoints.push((
            status,
            value,
            due,
            register(&client, &receiver.url, &[VERIFYING]).await,
            receiver,
        ));
    }
    client.beneficiary("50100012345678").await;
    for (status, value, due, endpoint, _receiver) in &endpoints {
        let found = wait_deliveries(&client, endpoint, |list| {
            list.len() == 1 && attempts_count(&list[0]) == 1
        })
        .await;
        let next = found[0]["next_attempt_at"].as_i64().unwrap() - start;
        assert!(due.contains(&next), "{status} with {value}: the next attempt is after {next} s");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_gets_the_events_it_asked_for() {
    let server = Server::start().await;
    let client = server.client().await;
    let filters: [&[&str]; 6] = [
        &["*"],
        &["transfer.*"],
        &["transfer.status.*"],
        &["payout.status.settled"],
        &["deposit.status.completed", "payout.payment_advice.*"],
        &["refund.*"],
    ];
    let mut endpoints = Vec::new();
    for enabled_events in filters {
        let receiver = Receiver::start(Reply::status(200)).await;
        endpoints.push((
            enabled_events,
            register(&client, &receiver.url, enabled_events).await,
            receiver,
        ));
    }
    let transfer = client.transfer().await;
    client.deposit(&transfer, json!({})).await;
    let settled =
        client.wait_status(&format!("/v1/transfers/{}", id(&transfer)), "payout_settled").await;
    let payout = payout_id(&settled);
    client
        .wait_until(&format!("/v1/payouts/{payout}"), |payout| {
            payout["payment_advice"]["status"] == "available"
        })
        .await;
    let events = client.get("/v1/events?limit=100").await.ok();
    for (enabled_events, endpoint, receiver) in &endpoints {
        let matches = |event_type: &str| {
            enabled_events.iter().any(|filter| {
                filter
                    .strip_suffix('*')
                    .map_or(*filter == event_type, |prefix| event_type.starts_with(prefix))
            })
        };
        let mut wanted: Vec<_> = events["data"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|event| matches(event["type"].as_str().unwrap()))
            .map(id)
            .collect();
        wait_deliveries(&client, endpoint, |list| {
            list.len() == wanted.len()
                && list.iter().all(|delivery| delivery["status"] == "succeeded")
        })
        .await;
        let mut found: Vec<_> =
            receiver.deliveries().iter().map(|delivery| delivery.id().to_owned()).collect();
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted, "{enabled_events:?}");
        assert_eq!(enabled_events[0] == "refund.*", wanted.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_deliveries_tells_every_attempt() {
    let server = Server::start().await;
    let client = server.client().await;
    let reply = Reply {
        body: format!("\u{0}é{}", "a".repeat(5_000)),
        delay: Duration::from_millis(60),
        ..Reply::status(200)
    };
    let receiver = Receiver::start(reply).await;
    let endpoint = register(&client, &receiver.url, &[VERIFYING]).await;
    let refused = register(&client, "http://127.0.0.1:9/", &[VERIFYING]).await;
    let beneficiaries =
        [client.beneficiary("50100012345678").await, client.beneficiary("50100012345678").await];
    let found = wait_deliveries(&client, &endpoint, |list| {
        list.len() == 2 && list.iter().all(|delivery| delivery["status"] == "succeeded")
    })
    .await;
    for (delivery, beneficiary) in found.iter().zip(&beneficiaries) {
        let fields: Vec<&str> = delivery.as_object().unwrap().keys().map(String::as_str).collect();
        for field in ["object", "id", "event_id", "status", "attempts", "created", "livemode"] {
            assert!(fields.contains(&field), "{field} in {fields:?}");
        }
        assert_eq!(delivery["object"], "webhook_delivery");
        assert!(id(delivery).starts_with("webhook_delivery_"));
        let event = client
            .get(&format!("/v1/events/{}", delivery["event_id"].as_str().unwrap()))
            .await
            .ok();
        assert_eq!(event["linked_id"], beneficiary["id"]);
        let attempt = &delivery["attempts"][0];
        assert_eq!((&attempt["http_status"], &attempt["error"]), (&json!(200), &Value::Null));
        let duration = attempt["duration_milliseconds"].as_i64().unwrap();
        assert!((60..5_000).contains(&duration), "{duration}");
        let answer = attempt["answer"].as_str().unwrap();
        assert!(
            answer.len() <= 2_048 && answer.len() > 2_000 && answer.contains("éaaa"),
            "{} bytes",
            answer.len()
        );
    }
    let failed = wait_deliveries(&client, &refused, |list| {
        list.len() == 2 && list.iter().all(|delivery| attempts_count(delivery) > 0)
    })
    .await;
    for delivery in &failed {
        assert_eq!(
            (&delivery["attempts"][0]["http_status"], &delivery["attempts"][0]["error"]),
            (&Value::Null, &json!("connect_failed"))
        );
        assert!(delivery["next_attempt_at"].as_i64().is_some());
    }
    let list = format!("{}/deliveries", path(&endpoint));
    let page = client.get(&format!("{list}?limit=1")).await.ok();
    assert_eq!((&page["data"], &page["has_next"]), (&json!([found[0]]), &json!(true)));
    let page = client.get(&format!("{list}?limit=1&starting_after={}", id(&found[0]))).await.ok();
    assert_eq!((&page["data"], &page["has_next"]), (&json!([found[1]]), &json!(false)));
    assert_eq!(
        client.get(&format!("{list}?status=succeeded")).await.ok()["data"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(client.get(&format!("{list}?status=failed")).await.ok()["data"], json!([]));
    assert_eq!(
        client.get(&format!("{list}?status=unknown")).await.error(400),
        "request_query_parameter_invalid"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_replayed_by_name_and_by_time() {
    let server = Server::start_manual(&[]).await;
    let client = server.client().await;
    let start = now_seconds(&server);
    client.beneficiary("50100012345678").await; // before there was an endpoint
    server.advance_seconds(100);
    let receiver = Receiver::start(Reply::status(200)).await;
    let endpoint = register(&client, &receiver.url, &[VERIFYING]).await;
    let replay = format!("{}/replay", path(&endpoint));
    for _ in 0..2 {
        client.beneficiary("50100012345678").await;
    }
    let first = wait_deliveries(&client, &endpoint, |list| {
        list.len() == 2 && list.iter().all(|delivery| delivery["status"] == "succeeded")
    })
    .await;
    assert_eq!(receiver.count(), 2);

    let count = async |body: Value| {
        client.post(&replay, body).await.ok()["deliveries_count"].as_u64().unwrap()
    };
    assert_eq!(count(json!({ "event_id": first[0]["event_id"] })).await, 1);
    let arrived = receiver.wait_count(3).await;
    // The first two were sent at the same time, in whatever order.
    let before = arrived[..2].iter().find(|delivery| delivery.id() == arrived[2].id()).unwrap();
    assert_eq!(
        (first[0]["event_id"].as_str(), &arrived[2].body),
        (Some(before.id()), &before.body)
    );
    wait_deliveries(&client, &endpoint, |list| {
        list.len() == 2 && attempts_count(&list[0]) == 2 && list[0]["status"] == "succeeded"
    })
    .await;
    assert_eq!(count(json!({ "since": start, "only_failed": true })).await, 0, "none failed");
    assert_eq!(count(json!({ "since": start + 50, "until": start + 99 })).await, 0, "none then");
    assert_eq!(count(json!({ "since": start + 100 })).await, 2);
    receiver.wait_count(5).await;
    // Also what happened before the endpoint was there.
    assert_eq!(count(json!({ "since": start, "until": start })).await, 1);
    let arrived = receiver.wait_count(6).await;
    assert!(!arrived[..5].iter().any(|delivery| delivery.id() == arrived[5].id()));

    // The time is what events show as theirs, also once the account's clock was advanced.
    client.advance(2_000).await;
    client.beneficiary("50100012345678").await;
    let later =
        client.get(&format!("/v1/events?type={VERIFYING}&order=desc&limit=1")).await.ok()["data"]
            [0]["created"]
            .as_i64()
            .unwrap();
    assert!(later >= start + 2_100);
    assert_eq!(count(json!({ "since": later })).await, 1);
    assert_eq!(
        count(json!({ "since": start, "until": later - 1 })).await,
        3,
        "what was before the advance"
    );

    let event_id = first[0]["event_id"].clone();
    for (body, code, field) in [
        (json!({}), "parameter_empty", "event_id"),
        (json!({ "until": start }), "parameter_empty", "event_id"),
        (json!({ "event_id": event_id, "since": start }), "parameter_unexpected", "since"),
        (json!({ "since": start, "until": start - 1 }), "parameter_range_invalid", "until"),
        (json!({ "since": "today" }), "parameter_value_invalid", "since"),
        (json!({ "since": start, "only_failed": "yes" }), "parameter_value_invalid", "only_failed"),
    ] {
        assert_eq!(
            client.post(&replay, body.clone()).await.errors(400),
            [(code.to_owned(), Some(field.to_owned()))],
            "{body}"
        );
    }
}

/// More events than one part of a replay takes: the others follow after the answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_replay_goes_on_after_its_answer() {
    const EVENTS_COUNT: usize = 1_100;
    let server = Server::start().await;
    let client = server.client().await;
    let emit = |tx: &mut dyn Tx, now: &mut Now| {
        for _ in 0..EVENTS_COUNT {
            let linked = now.mint::<kind::Transfer>().any();
            events::emit(tx, now, Scope::new(1, Mode::Test), "transfer.status.funded", linked)?;
        }
        Ok(())
    };
    server.app.state.store.write(emit).await.unwrap();
    let is_whole = |checkpoint: &Value| checkpoint["events_count"] == EVENTS_COUNT;
    client.wait_until("/v1/events/checkpoint", is_whole).await;
    let receiver = Receiver::start(Reply::status(200)).await;
    let endpoint = register(&client, &receiver.url, &["*"]).await;
    let replay = format!("{}/replay", path(&endpoint));
    let begun = client.post(&replay, json!({ "since": 1 })).await.ok();
    assert_eq!(begun["deliveries_count"], EVENTS_COUNT);
    let arrived = receiver.wait_count(EVENTS_COUNT).await;
    let ids: HashSet<&str> = arrived.iter().map(|delivery| delivery.id()).collect();
    assert_eq!(ids.len(), EVENTS_COUNT);
    // Once the last part has gone, another one may begin.
    let key = client.fresh_key();
    let until = json!({ "since": 1, "until": 2 });
    let started = Instant::now();
    loop {
        let answer = client.post_with(&replay, &key, until.clone()).await;
        if answer.status == 200 {
            break;
        }
        assert_eq!(answer.error(429), "rate_limit_exceeded");
        assert!(started.elapsed() < WAIT, "the replay does not end");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replays_of_an_account_wait_for_each_other_and_not_in_the_store() {
    if is_on_postgres() {
        // There the one that is under way would be given up while the other one waits.
        return;
    }
    let server = Server::start().await;
    let client = server.client().await;
    let other = server.client_of("other", Mode::Test, "").await;
    let body = json!({ "url": "https://example.com/" });
    let path_of = |endpoint: &Value| format!("{}/replay", path(endpoint));
    let mine = path_of(&client.post(ENDPOINTS, body.clone()).await.ok());
    let theirs = path_of(&other.post(ENDPOINTS, body).await.ok());
    let range = json!({ "since": 1 });
    let hold = LaneHold::of(&server, &client).await;
    let (twin, key) = (client.twin(), client.fresh_key());
    let mut one = Box::pin(client.post_with(&mine, &key, range.clone()));
    let mut two = Box::pin(twin.post_with(&mine, "replay-of-the-twin", range.clone()));
    // The one that is under way waits for the store; the other one gets no turn meanwhile.
    let (refused, under_way) = tokio::select! {
        refused = &mut one => (refused, two),
        refused = &mut two => (refused, one),
    };
    assert_eq!(refused.error(429), "rate_limit_exceeded");
    assert!(refused.header("retry-after").is_some());
    let their_replay = tokio::spawn(async move { other.post(&theirs, range).await });
    hold.let_go();
    assert_eq!(under_way.await.ok()["object"], "webhook_replay");
    assert_eq!(their_replay.await.unwrap().ok()["object"], "webhook_replay");
    // A refusal of this kind is not kept under its key.
    let range = json!({ "since": 1 });
    client.post_with(&mine, &key, range.clone()).await.ok();
    client.post_with(&mine, "replay-of-the-twin", range).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_begins_a_schedule_of_24_hours() {
    let server = Server::start_manual(&[]).await;
    let client = server.client().await;
    let receiver = Receiver::start(Reply::status(500)).await;
    let endpoint = register(&client, &receiver.url, &[VERIFYING]).await;
    client.beneficiary("50100012345678").await;
    let first = wait_deliveries(&client, &endpoint, |list| {
        list.len() == 1 && attempts_count(&list[0]) == 1
    })
    .await;
    move_to(&server, now_seconds(&server) + 23 * 3_600);
    wait_deliveries(&client, &endpoint, |list| attempts_count(&list[0]) == 2).await;
    let now = now_seconds(&server);
    client
        .post(&format!("{}/replay", path(&endpoint)), json!({ "event_id": first[0]["event_id"] }))
        .await
        .ok();
    let again = wait_deliveries(&client, &endpoint, |list| attempts_count(&list[0]) == 3).await;
    let due = again[0]["next_attempt_at"].as_i64().unwrap() - now;
    assert!(
        (4..=6).contains(&due),
        "the second step of a new schedule and not the end of the old one: {due} s"
    );
    // Its last attempt is 24 h after the replay.
    move_to(&server, now + 23 * 3_600);
    let last = wait_deliveries(&client, &endpoint, |list| attempts_count(&list[0]) == 4).await;
    assert_eq!(
        (&last[0]["status"], last[0]["next_attempt_at"].as_i64()),
        (&json!("pending"), Some(now + 24 * 3_600))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_endpoint_gets_nothing_more() {
    let server = Server::start_manual(&[]).await;
    let client = server.client().await;
    let receiver = Receiver::start(Reply::status(500)).await;
    let witness = Receiver::start(Reply::status(200)).await;
    let endpoint = register(&client, &receiver.url, &[VERIFYING]).await;
    register(&client, &witness.url, &[VERIFYING]).await;
    client.beneficiary("50100012345678").await;
    wait_deliveries(&client, &endpoint, |list| list.len() == 1 && attempts_count(&list[0]) == 1)
        .await;
    client.delete(&path(&endpoint)).await.ok();
    move_to(&server, now_seconds(&server) + 3_600);
    client.beneficiary("50100012345678").await;
    witness.wait_count(2).await;
    assert_eq!(receiver.count(), 1);
    assert_eq!(
        client.get(&format!("{}/deliveries", path(&endpoint))).await.error(404),
        "object_not_found"
    );
}
