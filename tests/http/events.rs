//! Events: their seven fields, what each flow emits, filters, and paging that misses nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::stage::{self, ADDRESS, Actor, SETTLES, STEP, event_types, faults};
use crate::support::{Server, id, payout_id};

#[tokio::test(flavor = "multi_thread")]
async fn an_event_has_exactly_seven_fields() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let beneficiary = actor.client.beneficiary(SETTLES).await;
    let list = actor.client.get("/v1/events").await.ok();
    let event = &list["data"][0];
    let wanted = json!({
        "object": "event", "id": event["id"], "type": "beneficiary.status.verifying",
            "linked_id": beneficiary["id"], "linked_object": "beneficiary",
        "created": actor.now(), "livemode": false,
    });
    assert_eq!(list, json!({ "object": "list", "data": [wanted], "has_next": false }));
    assert!(id(event).starts_with("event_") && id(event).len() == 32);
    assert_eq!(actor.client.get(&format!("/v1/events/{}", id(event))).await.ok(), wanted);
    for missing in ["event_01JDK3Y5M8Q2X7N4V6T9R0ABCD", &id(&beneficiary), "x"] {
        assert_eq!(
            actor.client.get(&format!("/v1/events/{missing}")).await.error(404),
            "object_not_found"
        );
    }
    let stranger = Actor::new(&server, "stranger").await;
    assert_eq!(
        stranger.client.get(&format!("/v1/events/{}", id(event))).await.error(404),
        "object_not_found"
    );
    assert_eq!(stranger.client.get("/v1/events").await.ok()["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_emits_every_change_of_every_object_in_order() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let transfer = actor.transfer(SETTLES, json!({ "refund_address": ADDRESS })).await;
    let deposit = actor.pay(&transfer, "1100.00").await;
    actor.advance(10 * STEP).await;
    let shown = actor.shown(&transfer).await;
    let named = |prefix: &str, statuses: &[&str]| {
        statuses.iter().map(|status| format!("{prefix}.status.{status}")).collect::<Vec<_>>()
    };
    let mut payout = named("payout", &["initialized", "processing", "settled"]);
    payout.push("payout.payment_advice.available".into());
    let wanted = [
        (
            transfer["beneficiary_id"].as_str().unwrap().to_owned(),
            named("beneficiary", &["verifying", "active"]),
        ),
        (
            id(&transfer),
            named("transfer", &["funding", "funded", "payout_processing", "payout_settled"]),
        ),
        (id(&deposit), named("deposit", &["completed"])),
        (payout_id(&shown), payout),
        (id(&shown["refund"]), named("refund", &["processing", "completed"])),
    ];
    let mut count = 0;
    for (object, types) in &wanted {
        assert_eq!(event_types(&actor.client, object).await, *types);
        count += types.len();
    }
    let events = stage::all(&actor.client, "/v1/events").await;
    assert_eq!(events.len(), count, "nothing else is emitted");
    let position = |wanted: &str| events.iter().position(|event| event["type"] == wanted).unwrap();
    for pair in [
        ("beneficiary.status.active", "transfer.status.funding"),
        ("transfer.status.funding", "deposit.status.completed"),
        ("deposit.status.completed", "transfer.status.funded"),
        ("transfer.status.funded", "transfer.status.payout_processing"),
        ("payout.status.processing", "payout.status.settled"),
        ("transfer.status.payout_settled", "payout.payment_advice.available"),
    ] {
        assert!(position(pair.0) < position(pair.1), "{pair:?}");
    }
    assert!(
        events.windows(2).all(|pair| pair[0]["created"].as_i64() <= pair[1]["created"].as_i64()),
        "each at its own moment"
    );
    for event in &events {
        assert_eq!(
            stage::keys(event),
            ["created", "id", "linked_id", "linked_object", "livemode", "object", "type"]
        );
        assert_eq!(
            event["linked_id"].as_str().unwrap().rsplit_once('_').unwrap().0,
            event["linked_object"]
        );
        assert!(
            event["type"].as_str().unwrap().starts_with(event["linked_object"].as_str().unwrap())
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_select_by_type_and_object() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let first = actor.transfer(SETTLES, json!({})).await;
    actor.pay(&first, "1000.00").await;
    actor.advance(10 * STEP).await;
    let whole = stage::all(&actor.client, "/v1/events").await;
    let types: BTreeSet<&str> = whole.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let count =
        async |query: String| stage::all(&actor.client, &format!("/v1/events?{query}")).await;
    for event_type in types {
        let found = count(format!("type={event_type}")).await;
        assert_eq!(
            found,
            whole.iter().filter(|event| event["type"] == event_type).cloned().collect::<Vec<_>>()
        );
    }
    for object in ["beneficiary", "deposit", "payout", "refund", "transfer", "webhook_endpoint"] {
        let found = count(format!("linked_object={object}")).await;
        assert_eq!(
            found,
            whole
                .iter()
                .filter(|event| event["linked_object"] == object)
                .cloned()
                .collect::<Vec<_>>(),
            "{object}"
        );
    }
    let found = count(format!(
        "linked_id={}&linked_object=transfer&type=transfer.status.funded",
        id(&first)
    ))
    .await;
    assert_eq!(found.len(), 1);
    assert_eq!(
        count("linked_id=transfer_01JDK3Y5M8Q2X7N4V6T9R0ABCD".to_owned()).await,
        Vec::<Value>::new()
    );
    let other_kind = id(&first).replace("transfer_", "payout_");
    assert_eq!(
        count(format!("linked_id={other_kind}")).await,
        Vec::<Value>::new(),
        "the prefix says which kind is meant"
    );
    for (query, field) in [
        ("type=transfer.status.lost", "type"),
        ("linked_object=quote_lock", "linked_object"),
        ("linked_id=x", "linked_id"),
        ("status=funded", "status"),
    ] {
        let answer = actor.client.get(&format!("/v1/events?{query}")).await;
        assert_eq!(
            answer.errors(400),
            faults(&[("request_query_parameter_invalid", field)]),
            "{query}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_visible_as_soon_as_its_change() {
    let server = Server::start().await;
    let client = server.client().await;
    for _ in 0..20 {
        let created = client
            .post(
                "/v1/beneficiaries",
                json!({ "name": "A", "account_number": "12345678", "ifsc": "HDFC0000001",
                    "account_type": "nre", "submit": false }),
            )
            .await
            .ok();
        let path = format!("/v1/events?linked_id={}", id(&created));
        client.wait_until(&path, |list| list["data"].as_array().unwrap().len() == 1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn paging_from_the_last_processed_id_misses_nothing_under_concurrent_writers() {
    const WRITERS: usize = 6;
    const EACH: usize = 40;
    let server = Server::start().await;
    let client = server.client().await;
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..WRITERS {
        let client = client.twin();
        writers.spawn(async move {
            let mut made = Vec::new();
            for n in 0..EACH {
                let body = json!({ "name": "A", "account_number": "12345678", "ifsc": "HDFC0000001",
                    "account_type": "nre", "submit": n % 2 == 0 });
                made.push(id(&client.post("/v1/beneficiaries", body).await.ok()));
            }
            made
        });
    }
    let done = Arc::new(AtomicBool::new(false));
    let (reader, is_done) = (client.twin(), done.clone());
    let reading = tokio::spawn(async move {
        let mut seen: Vec<Value> = Vec::new();
        loop {
            // What was written before this look must be found by it.
            let was_done = is_done.load(Ordering::SeqCst);
            let after =
                seen.last().map_or(String::new(), |last| format!("&starting_after={}", id(last)));
            let page = reader.get(&format!("/v1/events?limit=7{after}")).await.ok();
            let found = page["data"].as_array().unwrap().clone();
            if found.is_empty() && was_done {
                return seen;
            }
            seen.extend(found);
        }
    });
    let made: Vec<String> = writers.join_all().await.into_iter().flatten().collect();
    for beneficiary in made.iter().rev().step_by(2) {
        // The checks of the submitted ones end too, so that their events are out.
        client
            .wait_until(&format!("/v1/beneficiaries/{beneficiary}"), |found| {
                found["status"] != "verifying"
            })
            .await;
    }
    let path = "/v1/beneficiaries?status=verifying";
    client.wait_until(path, |list| list["data"].as_array().unwrap().is_empty()).await;
    done.store(true, Ordering::SeqCst);
    let seen = reading.await.unwrap();
    let whole = stage::all(&client, "/v1/events").await;
    let ids: Vec<String> = seen.iter().map(id).collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "identifiers rise strictly");
    assert_eq!(ids, whole.iter().map(id).collect::<Vec<_>>(), "the reader missed an event");
    assert_eq!(seen.len(), WRITERS * EACH * 2 - WRITERS * EACH / 2);
    let linked: BTreeSet<&str> =
        seen.iter().map(|event| event["linked_id"].as_str().unwrap()).collect();
    assert_eq!(linked, made.iter().map(String::as_str).collect());
}
