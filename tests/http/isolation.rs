//! Nobody sees, changes or learns of another account's objects, or of the other mode's: a matrix
//! over every route.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use http::Method;
use hundi::http::query::FilterKind;
use hundi::http::route::Verb;
use hundi::kernel::{Mode, ObjectKind};
use hundi::routes::routes;
use serde_json::{Value, json};

use crate::support::{Answer, Client, Server, id, payout_id};

use ObjectKind::{
    Beneficiary, Deposit, Event, Payout, QuoteLock, Refund, Sender, Transfer, WebhookDelivery,
    WebhookEndpoint,
};

/// What a route is about.
struct Row {
    route: &'static str,
    /// The kind of `{id}` in the path.
    of: Option<ObjectKind>,
    /// A body of the right form; `$field` stands for the account's own object of that kind.
    body: &'static str,
    /// Fields of the body that refer to objects.
    references: &'static [(&'static str, ObjectKind)],
    /// Answers 403 to live keys until live mode is configured.
    is_live_creation: bool,
}

const fn row(route: &'static str, of: Option<ObjectKind>, body: &'static str) -> Row {
    Row { route, of, body, references: &[], is_live_creation: false }
}

const fn creation(
    route: &'static str,
    body: &'static str,
    references: &'static [(&'static str, ObjectKind)],
) -> Row {
    Row { route, of: None, body, references, is_live_creation: true }
}

const HASH_BODY: &str =
    r#"{"transaction_hash":"00000000000000000000000000000000000000000000000000000000000000ff"}"#;

const ROWS: &[Row] = &[
    creation(
        "POST /v1/beneficiaries",
        r#"{"name":"A B","account_number":"50100012345678","ifsc":"HDFC0000001","account_type":"nre"}"#,
        &[],
    ),
    row(
        "POST /v1/beneficiaries/validate",
        None,
        r#"{"name":"A B","account_number":"50100012345678","ifsc":"HDFC0000001","account_type":"nre"}"#,
    ),
    row("GET /v1/beneficiaries", None, ""),
    row("GET /v1/beneficiaries/{id}", Some(Beneficiary), ""),
    row("POST /v1/beneficiaries/{id}", Some(Beneficiary), r#"{"name":"Changed by another"}"#),
    creation("POST /v1/senders", r#"{"name":"A B","type":"individual","country":"AE"}"#, &[]),
    row("GET /v1/senders", None, ""),
    row("GET /v1/senders/{id}", Some(Sender), ""),
    creation(
        "POST /v1/quote_locks",
        r#"{"sell_currency":"USD","buy_currency":"INR","amount":"10.00"}"#,
        &[],
    ),
    row("GET /v1/quote_locks", None, ""),
    row("GET /v1/quote_locks/{id}", Some(QuoteLock), ""),
    row("GET /v1/corridors", None, ""),
    creation(
        "POST /v1/transfers",
        r#"{"sender_id":"$sender_id","beneficiary_id":"$beneficiary_id","quote_lock_id":"$quote_lock_id","amount":"100.00","currency":"USD","payout_currency":"INR","funding":{"rail":"stablecoin","asset":"USDT","chain":"tron"}}"#,
        &[("sender_id", Sender), ("beneficiary_id", Beneficiary), ("quote_lock_id", QuoteLock)],
    ),
    row("GET /v1/transfers", None, ""),
    row("GET /v1/transfers/{id}", Some(Transfer), ""),
    row("POST /v1/transfers/{id}/cancel", Some(Transfer), "{}"),
    Row {
        route: "POST /v1/transfers/{id}/resolve_funding",
        of: Some(Transfer),
        body: r#"{"action":"requote","quote_lock_id":"$quote_lock_id"}"#,
        references: &[("quote_lock_id", QuoteLock)],
        is_live_creation: false,
    },
    row("POST /v1/transfers/{id}/funding/diagnose", Some(Transfer), HASH_BODY),
    row("GET /v1/deposits", None, ""),
    row("GET /v1/deposits/{id}", Some(Deposit), ""),
    row("GET /v1/payouts", None, ""),
    row("GET /v1/payouts/{id}", Some(Payout), ""),
    row("GET /v1/payouts/{id}/payment_advice", Some(Payout), ""),
    row("GET /v1/refunds", None, ""),
    row("GET /v1/refunds/{id}", Some(Refund), ""),
    row(
        "POST /v1/refunds/{id}",
        Some(Refund),
        r#"{"to_address":"TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC"}"#,
    ),
    row("GET /v1/balance", None, ""),
    row("GET /v1/statements", None, ""),
    row("GET /v1/events", None, ""),
    row("GET /v1/events/{id}", Some(Event), ""),
    row("GET /v1/events/checkpoint", None, ""),
    row("POST /v1/webhook_endpoints", None, r#"{"url":"https://example.com/hook"}"#),
    row("GET /v1/webhook_endpoints", None, ""),
    row("GET /v1/webhook_endpoints/{id}", Some(WebhookEndpoint), ""),
    row(
        "POST /v1/webhook_endpoints/{id}",
        Some(WebhookEndpoint),
        r#"{"url":"https://example.com/taken-over"}"#,
    ),
    row("DELETE /v1/webhook_endpoints/{id}", Some(WebhookEndpoint), ""),
    row("POST /v1/webhook_endpoints/{id}/rotate_secret", Some(WebhookEndpoint), "{}"),
    row("POST /v1/webhook_endpoints/{id}/drill", Some(WebhookEndpoint), "{}"),
    row("GET /v1/webhook_endpoints/{id}/drill", Some(WebhookEndpoint), ""),
    row("GET /v1/webhook_endpoints/{id}/deliveries", Some(WebhookEndpoint), ""),
    Row {
        route: "POST /v1/webhook_endpoints/{id}/replay",
        of: Some(WebhookEndpoint),
        body: r#"{"event_id":"$event_id"}"#,
        references: &[("event_id", Event)],
        is_live_creation: false,
    },
    row("POST /v1/test_helpers/transfers/{id}/deposit", Some(Transfer), r#"{"amount":"1.00"}"#),
    row("POST /v1/test_helpers/beneficiaries/{id}/activate", Some(Beneficiary), "{}"),
    row("POST /v1/test_helpers/beneficiaries/{id}/require_input", Some(Beneficiary), "{}"),
    row("POST /v1/test_helpers/beneficiaries/{id}/reject", Some(Beneficiary), "{}"),
    row("POST /v1/test_helpers/payouts/{id}/settle", Some(Payout), "{}"),
    row("POST /v1/test_helpers/payouts/{id}/fail", Some(Payout), "{}"),
    row("POST /v1/test_helpers/payouts/{id}/return", Some(Payout), "{}"),
    row("POST /v1/test_helpers/refunds/{id}/complete", Some(Refund), "{}"),
    row("POST /v1/test_helpers/clock", None, r#"{"advance_seconds":1}"#),
    Row {
        references: &[("webhook_endpoint_id", WebhookEndpoint)],
        ..row(
            "POST /v1/test_helpers/chaos",
            None,
            r#"{"request_attacks":[],"webhook_attacks":[],"webhook_endpoint_id":"$webhook_endpoint_id"}"#,
        )
    },
    row("GET /v1/test_helpers/chaos", None, ""),
    row("GET /v1/test_helpers/chaos/report", None, ""),
    row("POST /v1/test_helpers/chaos/stop", None, "{}"),
];

impl Row {
    fn method(&self) -> Method {
        self.route.split(' ').next().unwrap().parse().unwrap()
    }
    fn path(&self, id: &str) -> String {
        self.route.split(' ').nth(1).unwrap().replace("{id}", id)
    }
    fn is_helper(&self) -> bool {
        self.route.contains("/test_helpers/")
    }
    /// The body with an account's own objects, and another object in one field.
    fn body(&self, own: &Objects, other: Option<(&str, &str)>) -> String {
        let mut body = self.body.to_owned();
        for (name, kind) in self.references {
            let value = other
                .filter(|(field, _)| field == name)
                .map_or_else(|| own.id(*kind), |(_, id)| id.to_owned());
            body = body.replace(&format!("${name}"), &value);
        }
        body
    }
}

async fn ask(client: &Client, row: &Row, path: &str, body: String) -> Answer {
    match row.method() {
        Method::POST => client.post_raw(path, &client.fresh_key(), body).await,
        method => client.send(method, path, &[], Bytes::new()).await,
    }
}

/// The objects of one account in one mode, one identifier a kind at least.
#[derive(Default)]
struct Objects {
    ids: BTreeMap<&'static str, Vec<String>>,
    /// Values of filters that are no identifiers.
    texts: BTreeMap<&'static str, String>,
}

impl Objects {
    fn add(&mut self, kind: ObjectKind, id: String) {
        self.ids.entry(kind.as_str()).or_default().push(id);
    }
    #[track_caller]
    fn id(&self, kind: ObjectKind) -> String {
        self.ids
            .get(kind.as_str())
            .and_then(|ids| ids.last())
            .unwrap_or_else(|| panic!("no {}", kind.as_str()))
            .clone()
    }
    fn all(&self) -> BTreeSet<&str> {
        self.ids.values().flatten().map(String::as_str).collect()
    }
}

/// Makes every kind of object: a payout that settled, a refund that completed, and one that waits
/// for an address.
async fn populate(client: &Client) -> Objects {
    let mut objects = Objects::default();
    let endpoint = client
        .post("/v1/webhook_endpoints", json!({ "url": "http://127.0.0.1:9/never" }))
        .await
        .ok();
    objects.add(WebhookEndpoint, id(&endpoint));
    for (account_number, refund_address) in [
        ("50100012341001", Some("TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC")),
        ("50100022341001", None),
        ("50100012345678", None),
    ] {
        let mut body = client.transfer_body(account_number, "100.00").await;
        body["funding"]["refund_address"] = json!(refund_address);
        body["reference"] = json!(format!("order-{}", body["quote_lock_id"].as_str().unwrap()));
        let transfer = client.post("/v1/transfers", body).await.ok();
        let path = format!("/v1/transfers/{}", id(&transfer));
        let deposit = client.deposit(&transfer, json!({})).await;
        let is_refunded = account_number.ends_with("1001");
        let wanted = match (is_refunded, refund_address) {
            (false, _) => "payout_settled",
            (true, Some(_)) => "refunded",
            (true, None) => "refund_processing",
        };
        let transfer = client.wait_status(&path, wanted).await;
        for (kind, field) in [
            (Sender, "sender_id"),
            (Beneficiary, "beneficiary_id"),
            (QuoteLock, "quote_lock_id"),
            (Transfer, "id"),
        ] {
            objects.add(kind, transfer[field].as_str().unwrap().to_owned());
        }
        objects.add(Deposit, id(&deposit));
        objects.add(Payout, payout_id(&transfer));
        if is_refunded {
            objects.add(Refund, id(&transfer["refund"]));
            if let Some(hash) = transfer["refund"]["transaction_hash"].as_str() {
                objects.texts.insert("/v1/refunds transaction_hash", hash.to_owned());
            }
        } else {
            let deposit = client.get(&format!("/v1/deposits/{}", id(&deposit))).await.ok();
            objects.texts.insert(
                "/v1/deposits transaction_hash",
                deposit["transaction_hash"].as_str().unwrap().to_owned(),
            );
            let reference = transfer["payout"]["unique_transaction_reference"].as_str().unwrap();
            objects.texts.insert("/v1/payouts unique_transaction_reference", reference.to_owned());
            let own = transfer["reference"].as_str().unwrap();
            objects.texts.insert("/v1/transfers reference", own.to_owned());
        }
    }
    // An unused lock and an unfunded transfer, for what takes such.
    objects.add(QuoteLock, id(&client.quote_lock("100.00").await));
    for event in client.get("/v1/events?limit=100").await.ok()["data"].as_array().unwrap() {
        objects.add(Event, id(event));
    }
    let deliveries = format!("/v1/webhook_endpoints/{}/deliveries?limit=100", id(&endpoint));
    for delivery in client.get(&deliveries).await.ok()["data"].as_array().unwrap() {
        objects.add(WebhookDelivery, id(delivery));
    }
    objects
}

/// What a live key can have today.
async fn populate_live(client: &Client) -> Objects {
    let mut objects = Objects::default();
    objects.add(
        WebhookEndpoint,
        id(&client
            .post("/v1/webhook_endpoints", json!({ "url": "https://example.com/live" }))
            .await
            .ok()),
    );
    objects
}

/// An identifier that never existed, next to one that does: the last character is another one.
fn neighbour(id: &str) -> String {
    let last = if id.ends_with('7') { '8' } else { '7' };
    format!("{}{last}", &id[..id.len() - 1])
}

fn random_id(kind: ObjectKind) -> String {
    format!("{}_01K5ZZZZZZ7Q2X7N4V6T9R0ABC", kind.as_str())
}

/// Texts that are no identifier of the kind, made from one that is.
fn malformed(id: &str, kind: ObjectKind) -> Vec<String> {
    let ulid = id.rsplit_once('_').unwrap().1;
    let mut texts = vec![
        ulid.to_owned(),
        id.to_lowercase(),
        id.to_uppercase(),
        format!("{id}0"),
        id[..id.len() - 1].to_owned(),
        format!("x{id}"),
        format!("{}_8{}", kind.as_str(), &ulid[1..]),
        "garbage".to_owned(),
        "0".to_owned(),
        "a".repeat(250),
    ];
    texts.extend(
        ObjectKind::ALL
            .iter()
            .filter(|other| **other != kind)
            .map(|other| format!("{}_{ulid}", other.as_str())),
    );
    texts
}

struct Scene {
    server: Server,
    owner: Client,
    owner_live: Client,
    stranger: Client,
    owned: Objects,
    owned_live: Objects,
    strange: Objects,
    /// An endpoint of the owner's that is deleted.
    deleted: String,
}

impl Scene {
    /// The stranger's objects lie before and behind the owner's.
    async fn new() -> Scene {
        let server = Server::start().await;
        let owner = server.client_of("owner", Mode::Test, "").await;
        let owner_live = server.client_of("owner", Mode::Live, "").await;
        let stranger = server.client_of("stranger", Mode::Test, "").await;
        let mut strange = populate(&stranger).await;
        let owned = populate(&owner).await;
        let owned_live = populate_live(&owner_live).await;
        let more = populate(&stranger).await;
        for (kind, ids) in more.ids {
            strange.ids.entry(kind).or_default().extend(ids);
        }
        let deleted = id(&owner
            .post("/v1/webhook_endpoints", json!({ "url": "https://example.com/" }))
            .await
            .ok());
        owner.delete(&format!("/v1/webhook_endpoints/{deleted}")).await.ok();
        Scene { server, owner, owner_live, stranger, owned, owned_live, strange, deleted }
    }

    /// Who asks for what that is not theirs.
    fn probes(&self, kind: ObjectKind) -> Vec<(&'static str, &Client, String)> {
        let own = self.owned.id(kind);
        let mut probes = vec![
            ("another account's", &self.stranger, own.clone()),
            ("the other mode's", &self.owner_live, own.clone()),
            ("one that never existed", &self.owner, random_id(kind)),
            ("a neighbour", &self.owner, neighbour(&own)),
        ];
        if let Some(live) = self.owned_live.ids.get(kind.as_str()) {
            probes.push(("the live mode's", &self.owner, live[0].clone()));
        }
        if kind == WebhookEndpoint {
            probes.push(("a deleted one", &self.owner, self.deleted.clone()));
        }
        probes
            .extend(malformed(&own, kind).into_iter().map(|text| ("malformed", &self.owner, text)));
        probes
    }
}

#[test]
fn the_matrix_has_every_route_and_no_other() {
    let listed: BTreeSet<String> = ROWS.iter().map(|row| row.route.to_owned()).collect();
    assert_eq!(listed.len(), ROWS.len(), "a route is listed twice");
    let routes = routes();
    let served: BTreeSet<String> =
        routes.iter().map(|route| format!("{} {}", route.verb.as_str(), route.path)).collect();
    assert_eq!(
        served.difference(&listed).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "routes without a row in the matrix"
    );
    assert_eq!(
        listed.difference(&served).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "rows without a route"
    );
    for row in ROWS {
        let route = routes
            .iter()
            .find(|route| format!("{} {}", route.verb.as_str(), route.path) == row.route)
            .unwrap();
        assert_eq!(route.path.contains("{id}"), row.of.is_some(), "{}", row.route);
        assert_eq!(
            route.body.is_some(),
            row.method() == Method::POST && route.verb == Verb::Post,
            "{}",
            row.route
        );
        // Every field that refers to an object has its row of probes.
        let fields = route
            .body
            .as_ref()
            .and_then(|body| body.schema["properties"].as_object().cloned())
            .unwrap_or_default();
        let references: BTreeSet<&str> =
            fields.keys().map(String::as_str).filter(|name| name.ends_with("_id")).collect();
        assert_eq!(
            references,
            row.references.iter().map(|(name, _)| *name).collect(),
            "{}",
            row.route
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_yours_answers_like_what_never_was() {
    let scene = Scene::new().await;
    let expected = scene.owner.get(&format!("/v1/transfers/{}", random_id(Transfer))).await;
    assert_eq!(expected.error(404), "object_not_found");
    let mut seen = 0;
    for row in ROWS {
        let Some(kind) = row.of else { continue };
        for (what, client, id) in scene.probes(kind) {
            let what = format!("{}: {what}: {id}", row.route);
            let own =
                if std::ptr::eq(client, &scene.stranger) { &scene.strange } else { &scene.owned };
            let body = row.body(own, None);
            let answers = [
                ask(client, row, &row.path(&id), body).await,
                // The object comes before the query and before the body's form.
                ask(
                    client,
                    row,
                    &format!("{}?nonsense=1", row.path(&id)),
                    r#"{"nonsense":1}"#.to_owned(),
                )
                .await,
            ];
            for answer in answers {
                if row.is_helper() && std::ptr::eq(client, &scene.owner_live) {
                    assert_eq!(answer.error(403), "testmode_action_only", "{what}");
                    continue;
                }
                assert_eq!((answer.status, &answer.body), (404, &expected.body), "{what}");
                assert_eq!(
                    answer.header("content-length"),
                    expected.header("content-length"),
                    "{what}"
                );
                seen += 1;
            }
        }
    }
    assert!(seen > 800, "{seen} probes");

    // Nothing of the owner's was changed by all this.
    let endpoint = scene
        .owner
        .get(&format!("/v1/webhook_endpoints/{}", scene.owned.id(WebhookEndpoint)))
        .await
        .ok();
    assert_eq!(endpoint["url"], "http://127.0.0.1:9/never");
    let refund = scene.owner.get(&format!("/v1/refunds/{}", scene.owned.id(Refund))).await.ok();
    assert_eq!(refund["status"], "requires_address");

    // The control: with the owner's key the same rows find their objects.
    let mut rows: Vec<_> = ROWS.iter().filter(|row| row.of.is_some()).collect();
    rows.sort_by_key(|row| row.method() == Method::DELETE);
    for row in rows {
        let id = scene.owned.id(row.of.unwrap());
        let answer = ask(&scene.owner, row, &row.path(&id), row.body(&scene.owned, None)).await;
        assert!(
            [200, 400].contains(&answer.status),
            "{} {}: {}",
            row.route,
            answer.status,
            String::from_utf8_lossy(&answer.body)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn references_in_bodies_reveal_nothing() {
    let scene = Scene::new().await;
    let mut seen = 0;
    for row in ROWS {
        for (field, kind) in row.references {
            let path_id = row.of.map_or_else(String::new, |kind| scene.owned.id(kind));
            let strange_path_id = row.of.map_or_else(String::new, |kind| scene.strange.id(kind));
            let random = random_id(*kind);
            let expected = ask(
                &scene.owner,
                row,
                &row.path(&path_id),
                row.body(&scene.owned, Some((field, &random))),
            )
            .await;
            assert_eq!(
                expected.errors(404),
                [("object_not_found".to_owned(), Some((*field).to_owned()))],
                "{}",
                row.route
            );
            for (what, client, id) in scene.probes(*kind) {
                let what = format!("{} {field}: {what}: {id}", row.route);
                let (own, path_id) = if std::ptr::eq(client, &scene.stranger) {
                    (&scene.strange, &strange_path_id)
                } else {
                    (&scene.owned, &path_id)
                };
                let answer =
                    ask(client, row, &row.path(path_id), row.body(own, Some((field, &id)))).await;
                if std::ptr::eq(client, &scene.owner_live) {
                    // With a live key the object in the path is not found either, and creations are
                    // not open yet.
                    let expected = if row.is_live_creation {
                        (403, "action_unauthorized")
                    } else if row.is_helper() {
                        (403, "testmode_action_only")
                    } else {
                        (404, "object_not_found")
                    };
                    assert_eq!(answer.error(expected.0), expected.1, "{what}");
                    continue;
                }
                // A text that no object of this kind can have as its id says so, which reveals
                // nothing.
                let is_of_kind =
                    hundi::kernel::AnyId::parse(&id).is_some_and(|id| id.kind == *kind);
                if is_of_kind {
                    assert_eq!((answer.status, &answer.body), (404, &expected.body), "{what}");
                } else {
                    assert_eq!(answer.errors(404), expected.errors(404), "{what}");
                }
                seen += 1;
            }
        }
    }
    assert!(seen > 100, "{seen} probes");
    // The control: with its own objects the same body is accepted.
    let row = ROWS.iter().find(|row| row.route == "POST /v1/transfers").unwrap();
    ask(&scene.owner, row, "/v1/transfers", row.body(&scene.owned, None)).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn live_keys_create_nothing_that_would_move_money() {
    let scene = Scene::new().await;
    for row in ROWS.iter().filter(|row| row.is_live_creation) {
        for body in [row.body(&scene.owned, None), "{}".to_owned()] {
            let answer = ask(&scene.owner_live, row, &row.path(""), body).await;
            assert_eq!(answer.error(403), "action_unauthorized", "{}", row.route);
        }
    }
    let helpers = ROWS.iter().filter(|row| row.is_helper());
    for row in helpers {
        let id = row.of.map_or_else(String::new, |kind| scene.owned.id(kind));
        for id in [id.as_str(), "garbage"] {
            let answer =
                ask(&scene.owner_live, row, &row.path(id), row.body(&scene.owned, None)).await;
            assert_eq!(answer.error(403), "testmode_action_only", "{}", row.route);
        }
    }
    // What they may, they may.
    let reads = ROWS.iter().filter(|row| row.of.is_none() && row.method() == Method::GET);
    for row in reads.filter(|row| !row.is_helper()) {
        let answer = ask(&scene.owner_live, row, &row.path(""), String::new()).await.ok();
        let text = answer.to_string();
        for id in scene.owned.all() {
            assert!(!text.contains(id), "{} shows a test object to a live key", row.route);
        }
    }
}

/// Every list with its kind, for one account; deliveries are those of its endpoint.
fn lists(
    objects: &Objects,
) -> Vec<(String, &'static str, ObjectKind, &'static [hundi::http::query::Filter])> {
    routes()
        .iter()
        .filter_map(|route| {
            let (kind, filters) = route.list?;
            let id = if route.path.contains("{id}") {
                objects.id(WebhookEndpoint)
            } else {
                String::new()
            };
            Some((route.path.replace("{id}", &id), route.path, kind, filters))
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_is_only_a_position() {
    let scene = Scene::new().await;
    let mut nonempty = 0;
    for (path, _, kind, _) in lists(&scene.strange) {
        let Some(foreign) = scene.owned.ids.get(kind.as_str()) else { continue };
        let mut foreign = foreign.clone();
        foreign.extend(scene.owned_live.ids.get(kind.as_str()).into_iter().flatten().cloned());
        if kind == WebhookEndpoint {
            foreign.push(scene.deleted.clone());
        }
        for cursor in foreign.iter().take(6) {
            for side in ["starting_after", "ending_before"] {
                for order in ["asc", "desc"] {
                    let page =
                        |cursor: &str| format!("{path}?limit=2&{side}={cursor}&order={order}");
                    let (there, beside) = (page(cursor), page(&neighbour(cursor)));
                    let (there, beside) =
                        (scene.stranger.get(&there).await, scene.stranger.get(&beside).await);
                    there.ok();
                    assert_eq!(there.body, beside.body, "{path} {side} {cursor} {order}");
                    nonempty += usize::from(!there.json()["data"].as_array().unwrap().is_empty());
                }
            }
        }
    }
    assert!(nonempty > 50, "{nonempty} pages were not empty");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_filters_show_one_account_in_one_mode() {
    let scene = Scene::new().await;
    let foreign = scene.owned.all();
    for (path, _, kind, _) in lists(&scene.strange) {
        let found = scene.stranger.get(&format!("{path}?limit=100")).await;
        let data = found.ok()["data"].as_array().unwrap().clone();
        if kind != ObjectKind::WebhookEndpoint {
            assert!(data.len() > 1, "{path} shows the stranger's own objects");
        }
        let text = String::from_utf8_lossy(&found.body).into_owned();
        for id in &foreign {
            assert!(!text.contains(id), "{path} shows {id}");
        }
        assert!(data.iter().all(|object| object["livemode"] == false), "{path}");
    }
    let mut filtered = 0;
    for (owner_path, route, _, filters) in lists(&scene.owned) {
        let stranger_path = owner_path
            .replace(&scene.owned.id(WebhookEndpoint), &scene.strange.id(WebhookEndpoint));
        for filter in filters {
            let value = match filter.kind {
                FilterKind::Id(kind) => {
                    // The identifier that the list's own objects show under this name.
                    let data = scene.owner.get(&format!("{owner_path}?limit=1")).await.ok();
                    let value = data["data"][0][filter.name]
                        .as_str()
                        .unwrap_or_else(|| panic!("{route} {}: {data}", filter.name))
                        .to_owned();
                    assert!(value.starts_with(kind.as_str()));
                    value
                }
                FilterKind::AnyId { .. } => scene.owned.id(Transfer),
                FilterKind::Text => {
                    let name = format!("{route} {}", filter.name);
                    scene
                        .owned
                        .texts
                        .get(name.as_str())
                        .unwrap_or_else(|| panic!("no value for the filter {name}"))
                        .clone()
                }
                // These refer to nobody's objects.
                FilterKind::Time
                | FilterKind::Word(_)
                | FilterKind::OneOf(_)
                | FilterKind::Wait => continue,
            };
            let query = format!("?limit=100&{}={value}", filter.name);
            let own = scene.owner.get(&format!("{owner_path}{query}")).await.ok();
            assert!(
                !own["data"].as_array().unwrap().is_empty(),
                "{route} {}: the owner finds its own",
                filter.name
            );
            for client in [&scene.stranger, &scene.owner_live] {
                let path = if std::ptr::eq(client, &scene.stranger) {
                    &stranger_path
                } else {
                    &owner_path
                };
                let strange = client.get(&format!("{path}{query}")).await;
                assert_eq!(
                    strange.ok(),
                    json!({ "object": "list", "data": [], "has_next": false }),
                    "{route} {}",
                    filter.name
                );
            }
            filtered += 1;
        }
    }
    assert!(filtered >= 9, "{filtered} filters by identifiers");
}

#[tokio::test(flavor = "multi_thread")]
async fn balances_and_test_clocks_are_the_accounts_own() {
    let scene = Scene::new().await;
    let before: Vec<Value> = [
        scene.stranger.get("/v1/balance").await.ok(),
        scene.owner_live.get("/v1/balance").await.ok(),
    ]
    .into();
    let transfer = scene.owner.transfer().await;
    scene.owner.deposit(&transfer, json!({ "amount": "7.00" })).await;
    scene
        .owner
        .wait_until(&format!("/v1/transfers/{}", id(&transfer)), |found| {
            found["funding"]["amount_received"] == "7.00"
        })
        .await;
    let after: Vec<Value> = [
        scene.stranger.get("/v1/balance").await.ok(),
        scene.owner_live.get("/v1/balance").await.ok(),
    ]
    .into();
    assert_eq!(before, after);
    let now = scene.owner.advance(1_000_000).await;
    let there = scene.stranger.advance(1).await;
    assert!(now - there > 900_000, "{now} {there}");
    assert!(scene.server.app.state.store.clock.milliseconds() / 1_000 + 900_000 < now);
}
