//! `GET /v1/events/checkpoint`: a caller recomputes it from what it was shown, and it survives the
//! removal of old events.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::stage::{self, Actor, DAY, SETTLES, faults};
use crate::support::id;

/// As docs/events.md has it in Python.
fn extend(hash: &str, event: &Value) -> String {
    let text = format!(
        "{hash} {} {} {} {}",
        event["id"].as_str().unwrap(),
        event["type"].as_str().unwrap(),
        event["linked_id"].as_str().unwrap(),
        event["created"]
    );
    hundi::kernel::hex::encode(Sha256::digest(text.as_bytes()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_recomputes_the_checkpoint_of_what_it_was_shown() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let zero = "0".repeat(64);
    assert_eq!(
        actor.client.get("/v1/events/checkpoint").await.ok(),
        json!({ "object": "event_checkpoint", "event_id": null, "events_count": 0, "hash": zero,
            "livemode": false })
    );
    let transfer = actor.transfer(SETTLES, json!({})).await;
    actor.pay(&transfer, "1000.00").await;
    actor.advance(600).await;
    let events = stage::all(&actor.client, "/v1/events").await;
    assert!(events.len() > 8);
    let mut hash = zero.clone();
    for (index, event) in events.iter().enumerate() {
        hash = extend(&hash, event);
        let path = format!("/v1/events/checkpoint?event_id={}", id(event));
        let wanted = json!({ "object": "event_checkpoint", "event_id": id(event),
            "events_count": index + 1, "hash": hash, "livemode": false });
        assert_eq!(actor.client.get(&path).await.ok(), wanted);
    }
    let newest = actor.client.get("/v1/events/checkpoint").await.ok();
    assert_eq!(newest["hash"], *hash);
    // Whoever missed one, or saw another account's, gets another hash.
    let without = events.iter().skip(1).fold(zero.clone(), |hash, event| extend(&hash, event));
    assert_ne!(newest["hash"], *without);
    let stranger = Actor::new(&server, "stranger").await;
    assert_eq!(stranger.client.get("/v1/events/checkpoint").await.ok()["events_count"], 0);
    for (query, field) in [("event_id=x", "event_id"), ("limit=1", "limit"), ("wait=1", "wait")] {
        let answer = actor.client.get(&format!("/v1/events/checkpoint?{query}")).await;
        assert_eq!(answer.errors(400), faults(&[("request_query_parameter_invalid", field)]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_chain_goes_on_after_events_were_removed() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    actor.beneficiary(SETTLES).await;
    let first = stage::all(&actor.client, "/v1/events").await;
    let kept = actor.client.get("/v1/events/checkpoint").await.ok();
    server.advance_seconds(31 * DAY);
    let mut purger = hundi::workers::housekeeping::Purger::default();
    while purger.run_once(&server.app.state).await {}
    assert_eq!(stage::all(&actor.client, "/v1/events").await, Vec::<Value>::new());
    assert_eq!(actor.client.get("/v1/events/checkpoint").await.ok(), kept);
    // A cursor that stands at the last removed event missed none; one before it did.
    let last = id(first.last().unwrap());
    actor.client.get(&format!("/v1/events?starting_after={last}")).await.ok();
    let missed = actor.client.get(&format!("/v1/events?starting_after={}", id(&first[0]))).await;
    assert_eq!(
        missed.errors(400),
        faults(&[("request_query_parameter_invalid", "starting_after")])
    );
    let old = actor.client.get(&format!("/v1/events/checkpoint?event_id={}", id(&first[0]))).await;
    assert_eq!(old.errors(400), faults(&[("request_query_parameter_invalid", "event_id")]));
    actor.client.beneficiary(SETTLES).await;
    let events = stage::all(&actor.client, "/v1/events").await;
    let hash = events
        .iter()
        .fold(kept["hash"].as_str().unwrap().to_owned(), |hash, event| extend(&hash, event));
    let newest = actor.client.get("/v1/events/checkpoint").await.ok();
    assert_eq!(newest["hash"], *hash);
    assert_eq!(newest["events_count"], first.len() + events.len());
}
