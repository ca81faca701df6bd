//! Lists: paging in both directions and orders, cursors, filters, and parameters that no route
//! takes.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use hundi::http::query::FilterKind;
use hundi::http::route::{Route, Verb};
use hundi::routes::routes;
use serde_json::{Value, json};

use crate::stage::{self, ADDRESS, Actor, SETTLES, STEP, faults};
use crate::support::{Server, id};

/// How many objects each list has at least; webhook endpoints have their own limit of 16.
const COUNT: usize = 27;
const WRONG: &str = "request_query_parameter_invalid";

struct Filled {
    server: Server,
    actor: Actor,
    endpoint_id: String,
}

/// An account with more than one page of everything, made at several times, in several statuses.
async fn filled() -> Filled {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let client = &actor.client;
    let mut endpoint_id = String::new();
    for n in 0..14 {
        let body = json!({ "url": format!("http://127.0.0.1:9/{n}"),
            "enabled_events": if n == 0 { json!(["*"]) } else {
            json!(["webhook_endpoint.status.failing"]) } });
        let endpoint = client.post("/v1/webhook_endpoints", body).await.ok();
        if n == 0 {
            endpoint_id = id(&endpoint);
        }
        actor.advance(1).await;
    }
    let good = actor.beneficiary(SETTLES).await;
    let failing = actor.beneficiary("50100010001001").await;
    for n in 0..COUNT {
        client
            .post(
                "/v1/beneficiaries",
                json!({ "name": "Asha Rao",
            "account_number": format!("5010001{n:03}0002"), "ifsc": "HDFC0000001",
            "account_type": "nre", "submit": n % 2 == 0 }),
            )
            .await
            .ok();
        client.quote_lock("10.00").await;
        let funding = if n % 3 == 0 { json!({ "refund_address": ADDRESS }) } else { json!({}) };
        let paid = if n % 4 == 0 { &failing } else { &good };
        let mut body = actor.transfer_body(paid, "10.00", funding).await;
        body["reference"] = if n % 5 == 0 { json!(format!("order-{n}")) } else { json!(null) };
        let transfer = client.post("/v1/transfers", body).await.ok();
        actor.pay(&transfer, "11.00").await;
        actor.advance(7).await;
    }
    actor.advance(10 * STEP).await;
    let cancelled = actor.transfer_to(&good, "10.00", json!({})).await;
    actor.cancel(&cancelled).await.ok();
    let waiting = actor.transfer_to(&good, "10.00", json!({})).await;
    actor.pay(&waiting, "1.00").await;
    Filled { server, actor, endpoint_id }
}

/// The path of a list route on these objects.
fn list_path(route: &Route, filled: &Filled) -> String {
    route.path.replace("{id}", &filled.endpoint_id)
}

fn list_routes() -> Vec<Route> {
    routes().into_iter().filter(|route| route.list.is_some()).collect()
}

fn ids(page: &Value) -> Vec<String> {
    assert_eq!(stage::keys(page), ["data", "has_next", "object"]);
    assert_eq!(page["object"], "list");
    page["data"].as_array().unwrap().iter().map(id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_list_pages_in_both_directions_and_orders() {
    let filled = filled().await;
    let client = &filled.actor.client;
    for route in list_routes() {
        let path = list_path(&route, &filled);
        let kind = route.list.as_ref().unwrap().0.as_str();
        let rising: Vec<String> = stage::all(client, &path).await.iter().map(id).collect();
        let count_min = if kind == "webhook_endpoint" { 14 } else { COUNT };
        assert!(rising.len() >= count_min, "{path}: only {}", rising.len());
        assert!(
            rising.is_sorted() && rising.iter().collect::<BTreeSet<_>>().len() == rising.len(),
            "{path}: oldest first, each once"
        );
        assert!(rising.iter().all(|id| id.starts_with(&format!("{kind}_"))));
        let default = client.get(&path).await.ok();
        assert_eq!(
            (ids(&default), default["has_next"].as_bool()),
            (rising[..10].to_vec(), Some(true)),
            "{path}: ten by default"
        );
        for order in ["asc", "desc"] {
            let mut whole = rising.clone();
            if order == "desc" {
                whole.reverse();
            }
            for limit in [4, 9, whole.len().min(100), 100] {
                let mut forward: Vec<String> = Vec::new();
                loop {
                    let after = forward
                        .last()
                        .map_or(String::new(), |last| format!("&starting_after={last}"));
                    let page = client
                        .get(&format!("{path}?limit={limit}&order={order}{after}"))
                        .await
                        .ok();
                    let found = ids(&page);
                    assert!(!found.is_empty(), "{path}: has_next promised more");
                    forward.extend(found);
                    let more = page["has_next"] == true;
                    assert_eq!(more, forward.len() < whole.len(), "{path} {order} {limit}");
                    if !more {
                        break;
                    }
                }
                assert_eq!(forward, whole, "{path} {order} {limit}");
                // Backward from the last object, with the loop of the other direction: each page
                // begins with the nearest object.
                let mut backward: Vec<String> = vec![whole.last().unwrap().clone()];
                loop {
                    let page = client
                        .get(&format!(
                            "{path}?limit={limit}&order={order}&ending_before={}",
                            backward.last().unwrap()
                        ))
                        .await
                        .ok();
                    let found = ids(&page);
                    assert!(!found.is_empty(), "{path}: has_next promised more");
                    backward.extend(found);
                    let more = page["has_next"] == true;
                    assert_eq!(more, backward.len() < whole.len(), "{path} {order} {limit}");
                    if !more {
                        break;
                    }
                }
                backward.reverse();
                assert_eq!(backward, whole, "{path} {order} {limit}");
            }
        }
        // A cursor is only a position: nothing need stand there.
        let first = format!("{kind}_00000000000000000000000000");
        let last = format!("{kind}_7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
        for (query, wanted, has_next) in [
            (format!("starting_after={first}&limit=3"), rising[..3].to_vec(), true),
            (format!("starting_after={last}"), vec![], false),
            (
                format!("ending_before={last}&limit=3"),
                rising.iter().rev().take(3).cloned().collect(),
                true,
            ),
            (format!("ending_before={first}"), vec![], false),
            (format!("order=desc&starting_after={first}"), vec![], false),
            (
                format!("order=desc&starting_after={last}&limit=2"),
                rising.iter().rev().take(2).cloned().collect(),
                true,
            ),
        ] {
            let answer = client.get(&format!("{path}?{query}")).await;
            // Events are kept 30 days: who goes on from an older one may have missed some.
            if kind == "event" && query.starts_with(&format!("starting_after={first}")) {
                assert_eq!(answer.error(400), WRONG, "{path}?{query}");
                continue;
            }
            let page = answer.ok();
            assert_eq!(
                (ids(&page), page["has_next"].as_bool()),
                (wanted, Some(has_next)),
                "{path}?{query}"
            );
        }
    }
}

/// A list's filters beside those of `created`, as the contract gives them by the fields of the
/// object.
fn wanted_filters() -> BTreeMap<&'static str, &'static [&'static str]> {
    BTreeMap::from([
        ("/v1/beneficiaries", &["status"][..]),
        ("/v1/senders", &[]),
        ("/v1/quote_locks", &["status", "transfer_id"]),
        ("/v1/transfers", &["beneficiary_id", "reference", "sender_id", "status"]),
        ("/v1/deposits", &["status", "transaction_hash", "transfer_id"]),
        (
            "/v1/payouts",
            &["beneficiary_id", "status", "transfer_id", "unique_transaction_reference"],
        ),
        ("/v1/refunds", &["status", "transaction_hash", "transfer_id"]),
        ("/v1/events", &["linked_id", "linked_object", "type"]),
        ("/v1/webhook_endpoints", &["status"]),
        ("/v1/webhook_endpoints/{id}/deliveries", &["status"]),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn every_list_has_the_filters_of_its_fields_and_they_select() {
    let filled = filled().await;
    let client = &filled.actor.client;
    let wanted = wanted_filters();
    assert_eq!(
        list_routes().iter().map(|route| route.path).collect::<BTreeSet<_>>(),
        wanted.keys().copied().collect()
    );
    for route in list_routes() {
        let path = list_path(&route, &filled);
        let filters = route.list.as_ref().unwrap().1;
        let mut names: Vec<&str> = filters
            .iter()
            .map(|filter| filter.name)
            .filter(|name| !name.starts_with("created."))
            .collect();
        names.sort_unstable();
        // A list may have more than the contract names, never less.
        assert!(wanted[route.path].iter().all(|name| names.contains(name)), "{path}: {names:?}");
        let whole = stage::all(client, &path).await;
        let select = |wanted: &dyn Fn(&Value) -> bool| -> Vec<String> {
            whole.iter().filter(|object| wanted(object)).map(id).collect()
        };
        let listed = async |query: &str| -> Vec<String> {
            stage::all(client, &format!("{path}?{query}")).await.iter().map(id).collect()
        };
        // How long the service waits for an object is no field of one.
        for name in names.into_iter().filter(|name| *name != "wait") {
            let values: BTreeSet<&str> =
                whole.iter().filter_map(|object| object[name].as_str()).collect();
            assert!(!values.is_empty(), "{path}: no object has a {name}");
            for value in values.iter().take(6) {
                let wanted = select(&|object| object[name] == *value);
                assert_eq!(
                    listed(&format!("{name}={value}")).await,
                    wanted,
                    "{path}?{name}={value}"
                );
            }
            if let FilterKind::Word(words) =
                filters.iter().find(|filter| filter.name == name).unwrap().kind
            {
                for word in words() {
                    let found = listed(&format!("{name}={word}")).await;
                    assert_eq!(found.is_empty(), !values.contains(word), "{path}?{name}={word}");
                }
                assert_eq!(
                    client.get(&format!("{path}?{name}=nonsense")).await.errors(400),
                    faults(&[(WRONG, name)])
                );
            }
            assert_eq!(
                client.get(&format!("{path}?{name}=")).await.errors(400),
                faults(&[(WRONG, name)]),
                "{path}?{name}="
            );
        }
        let times: Vec<i64> =
            whole.iter().map(|object| object["created"].as_i64().unwrap()).collect();
        let middle = times[times.len() / 2];
        assert!(times[0] < *times.last().unwrap(), "{path}: all at one time");
        for (name, holds) in [
            ("created.gt", (|time: i64, bound: i64| time > bound) as fn(i64, i64) -> bool),
            ("created.gte", |time, bound| time >= bound),
            ("created.lt", |time, bound| time < bound),
            ("created.lte", |time, bound| time <= bound),
        ] {
            let wanted = select(&|object| holds(object["created"].as_i64().unwrap(), middle));
            assert_eq!(listed(&format!("{name}={middle}")).await, wanted, "{path}?{name}={middle}");
            for bad in ["", "-1", "1.5", "now", "99999999999999"] {
                assert_eq!(
                    client.get(&format!("{path}?{name}={bad}")).await.errors(400),
                    faults(&[(WRONG, name)]),
                    "{path}?{name}={bad}"
                );
            }
        }
        let range =
            select(&|object| (times[0]..middle).contains(&object["created"].as_i64().unwrap()));
        assert_eq!(
            listed(&format!("created.gte={}&created.lt={middle}", times[0])).await,
            range,
            "{path}"
        );
        // A filter and paging together: the filter goes first.
        let page =
            client.get(&format!("{path}?created.gte={middle}&limit=2&order=desc")).await.ok();
        let wanted: Vec<String> = select(&|object| object["created"].as_i64().unwrap() >= middle)
            .into_iter()
            .rev()
            .take(2)
            .collect();
        assert_eq!(ids(&page), wanted, "{path}");
    }
    stage::assert_book(&filled.server);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_paging_parameters_are_named() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let endpoint = actor
        .client
        .post("/v1/webhook_endpoints", json!({ "url": "http://127.0.0.1:9/" }))
        .await
        .ok();
    let filled = Filled { server, endpoint_id: id(&endpoint), actor };
    for route in list_routes() {
        let path = list_path(&route, &filled);
        let kind = route.list.as_ref().unwrap().0.as_str();
        let cursor = format!("{kind}_01JDK3Y5M8Q2X7N4V6T9R0ABCD");
        let other = if kind == "transfer" { "deposit" } else { "transfer" };
        let mut cases = vec![
            (format!("starting_after={cursor}&ending_before={cursor}"), vec!["ending_before"]),
            (format!("starting_after={other}_01JDK3Y5M8Q2X7N4V6T9R0ABCD"), vec!["starting_after"]),
            (format!("ending_before={other}_01JDK3Y5M8Q2X7N4V6T9R0ABCD"), vec!["ending_before"]),
            (format!("starting_after={}", cursor.to_lowercase()), vec!["starting_after"]),
            (format!("starting_after={kind}_81JDK3Y5M8Q2X7N4V6T9R0ABCD"), vec!["starting_after"]),
            (format!("starting_after={cursor}&starting_after={cursor}"), vec!["starting_after"]),
            (
                "limit=0&order=up&colour=red&starting_after=x".to_owned(),
                vec!["colour", "limit", "order", "starting_after"],
            ),
            ("Limit=5".to_owned(), vec!["Limit"]),
            ("limit=5&limit=5".to_owned(), vec!["limit"]),
            ("created=5".to_owned(), vec!["created"]),
            ("created[gt]=5".to_owned(), vec!["created[gt]"]),
        ];
        for limit in
            ["", "0", "101", "-1", "+5", "5.0", "1e1", "ten", "%205", "٥", "99999999999999999999"]
        {
            cases.push((format!("limit={limit}"), vec!["limit"]));
        }
        for parameter in ["starting_after=", "ending_before=", "order=", "order=ASC"] {
            cases.push((parameter.to_owned(), vec![parameter.split('=').next().unwrap()]));
        }
        for (query, fields) in cases {
            let query = query.replace('٥', "%D9%A5").replace('[', "%5B").replace(']', "%5D");
            let mut found = filled.actor.client.get(&format!("{path}?{query}")).await.errors(400);
            found.sort();
            let wanted: Vec<_> = fields.iter().map(|field| (WRONG, *field)).collect();
            assert_eq!(found, faults(&wanted), "{path}?{query}");
        }
        for limit in [1, 100] {
            filled.actor.client.get(&format!("{path}?limit={limit}")).await.ok();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_route_takes_unknown_or_repeated_parameters() {
    let filled = filled().await;
    let client = &filled.actor.client;
    let mut examples: BTreeMap<&str, String> = BTreeMap::new();
    for resource in [
        "beneficiaries",
        "senders",
        "quote_locks",
        "transfers",
        "deposits",
        "payouts",
        "refunds",
        "events",
        "webhook_endpoints",
    ] {
        examples.insert(
            resource,
            id(&client.get(&format!("/v1/{resource}?limit=1")).await.ok()["data"][0]),
        );
    }
    examples.insert("webhook_endpoints", filled.endpoint_id.clone());
    let settled = client.get("/v1/payouts?status=settled&limit=1").await.ok();
    examples.insert("payouts", id(&settled["data"][0]));
    let deposits_before = stage::all(client, "/v1/deposits").await.len();
    let before = client.get("/v1/balance").await.ok();
    for route in routes() {
        let resource = route
            .path
            .trim_start_matches("/v1/")
            .trim_start_matches("test_helpers/")
            .split('/')
            .next()
            .unwrap();
        // Nobody began a drill or chaos, and what is not there is told before the query is read.
        if (route.path.ends_with("/drill") && route.verb == Verb::Get)
            || route.path.starts_with("/v1/test_helpers/chaos/")
            || (route.path == "/v1/test_helpers/chaos" && route.verb == Verb::Get)
        {
            continue;
        }
        let path = route.path.replace("{id}", examples.get(resource).map_or("", String::as_str));
        let verb = match route.verb {
            Verb::Get => Method::GET,
            Verb::Post => Method::POST,
            Verb::Delete => Method::DELETE,
        };
        for (query, fields) in [
            ("colour=red", vec!["colour"]),
            ("colour=red&colour=red", vec!["colour", "colour"]),
            ("limit=1&limit=1&shape=%20", vec!["limit", "shape"]),
        ] {
            let key = client.fresh_key();
            let headers = [("idempotency-key", key.as_str()), ("content-type", "application/json")];
            let answer =
                client.send(verb.clone(), &format!("{path}?{query}"), &headers, "{}".into()).await;
            let found: BTreeSet<_> = answer.errors(400).into_iter().collect();
            let wanted: BTreeSet<_> =
                fields.iter().map(|field| (WRONG.to_owned(), Some((*field).to_owned()))).collect();
            assert_eq!(found, wanted, "{} {path}?{query}", route.verb.as_str());
        }
        // An empty query is none.
        if route.verb == Verb::Get {
            client.get(&format!("{path}?")).await.ok();
        }
    }
    assert_eq!(client.get("/v1/balance").await.ok(), before);
    assert_eq!(stage::all(client, "/v1/deposits").await.len(), deposits_before);
    client.get(&format!("/v1/webhook_endpoints/{}", filled.endpoint_id)).await.ok();
}
