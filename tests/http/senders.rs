//! Senders: fields, shape, and who may send.

use serde_json::{Value, json};

use crate::stage::{self, Actor, faults};
use crate::support::{Server, id};

fn valid() -> Value {
    json!({ "name": "Ravi Rao", "type": "individual", "country": "AE" })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_shows_what_was_given_but_the_document_number() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let mut body = valid();
    body["email"] = json!("ravi@example.com");
    body["address"] = json!({ "line1": "1 Main Street", "city": "Austin", "state": "TX",
        "postal_code": "78701", "country": "US" });
    body["metadata"] = json!({ "reference": "77" });
    body["date_of_birth"] = json!("1979-12-31");
    body["nationality"] = json!("IN");
    body["identification"] = json!({ "type": "passport", "number": "K9876543" });
    let answer = actor.client.post("/v1/senders", body.clone()).await;
    let created = answer.ok();
    let mut wanted = body;
    wanted["object"] = json!("sender");
    wanted["id"] = created["id"].clone();
    wanted["identification"] = json!({ "type": "passport" });
    wanted["created"] = json!(actor.now());
    wanted["livemode"] = json!(false);
    assert_eq!(created, wanted);
    assert!(id(&created).starts_with("sender_"));
    assert!(!String::from_utf8_lossy(&answer.body).contains("K9876543"));
    assert_eq!(actor.client.get(&format!("/v1/senders/{}", id(&created))).await.ok(), wanted);
    assert_eq!(
        actor.client.get("/v1/senders").await.ok(),
        json!({ "object": "list", "data": [wanted], "has_next": false })
    );
    let plain = actor.client.post("/v1/senders", valid()).await.ok();
    let wanted = json!({
        "object": "sender", "id": plain["id"], "name": "Ravi Rao", "type": "individual",
            "country": "AE", "email": null, "address": null,
        "date_of_birth": null, "nationality": null, "identification": null, "metadata": {},
            "created": actor.now(), "livemode": false,
    });
    assert_eq!(plain, wanted);
    let mut body = valid();
    body["address"] = json!({ "line1": "1 Main Street", "city": "Dubai", "country": "AE" });
    let created = actor.client.post("/v1/senders", body).await.ok();
    assert_eq!(
        created["address"],
        json!({ "line1": "1 Main Street", "city": "Dubai", "state": null, "postal_code": null,
            "country": "AE" })
    );
    assert_eq!(
        stage::all(&actor.client, "/v1/events").await,
        Vec::<Value>::new(),
        "senders have no events"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_field_is_judged_and_all_problems_come_together() {
    const EMPTY: &str = "parameter_empty";
    const VALUE: &str = "parameter_value_invalid";
    let server = Server::start().await;
    let client = server.client().await;
    let cases: Vec<(&str, Value, Vec<(&str, &str)>)> = vec![
        ("name", json!(""), vec![(EMPTY, "name")]),
        ("name", json!("x".repeat(141)), vec![("parameter_max_length_invalid", "name")]),
        ("name", json!(1), vec![(VALUE, "name")]),
        ("type", Value::Null, vec![(EMPTY, "type")]),
        ("type", json!("business"), vec![(VALUE, "type")]),
        ("type", json!("robot"), vec![(VALUE, "type")]),
        ("country", Value::Null, vec![(EMPTY, "country")]),
        ("country", json!("ZZ"), vec![(VALUE, "country")]),
        ("email", json!("ravi"), vec![(VALUE, "email")]),
        ("address", json!("1 Main Street"), vec![(VALUE, "address")]),
        (
            "address",
            json!({}),
            vec![(EMPTY, "address.line1"), (EMPTY, "address.city"), (EMPTY, "address.country")],
        ),
        (
            "address",
            json!({ "line1": null, "city": "", "country": "USA", "state": 5, "zip": "1" }),
            vec![
                ("parameter_unexpected", "address.zip"),
                (EMPTY, "address.line1"),
                (EMPTY, "address.city"),
                (VALUE, "address.state"),
                ("parameter_max_length_invalid", "address.country"),
            ],
        ),
        ("date_of_birth", json!("2001-02-29"), vec![(VALUE, "date_of_birth")]),
        ("nationality", json!("xx"), vec![(VALUE, "nationality")]),
        (
            "identification",
            json!({}),
            vec![(EMPTY, "identification.type"), (EMPTY, "identification.number")],
        ),
        (
            "identification",
            json!({ "type": "library_card", "number": "123456" }),
            vec![(VALUE, "identification.type")],
        ),
        ("metadata", json!({ "a": null }), vec![(VALUE, "metadata.a")]),
        ("submit", json!(true), vec![("parameter_unexpected", "submit")]),
    ];
    for (field, value, wanted) in cases {
        let mut body = valid();
        body[field] = value;
        assert_eq!(
            client.post("/v1/senders", body.clone()).await.errors(400),
            faults(&wanted),
            "{body}"
        );
    }
    assert_eq!(
        client.post("/v1/senders", json!({})).await.errors(400),
        faults(&[(EMPTY, "name"), (EMPTY, "type"), (EMPTY, "country")])
    );
    for document in ["passport", "national_id", "driving_licence"] {
        let mut body = valid();
        body["identification"] = json!({ "type": document, "number": "AB 123-456" });
        assert_eq!(
            client.post("/v1/senders", body).await.ok()["identification"],
            json!({ "type": document })
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_screened_sender_is_created_and_refused_at_the_transfer() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let beneficiary_id = actor.beneficiary(stage::SETTLES).await;
    for name in ["Test Sanctioned", "Test Possibly Sanctioned"] {
        let mut body = valid();
        body["name"] = json!(name);
        let sender = actor.client.post("/v1/senders", body).await.ok();
        let mut ask = actor.transfer_body(&beneficiary_id, "1000.00", json!({})).await;
        ask["sender_id"] = sender["id"].clone();
        let answer = actor.client.post("/v1/transfers", ask.clone()).await;
        assert_eq!(answer.error(400), "sender_not_eligible");
        assert!(stage::asks_for_new_key(&answer));
        let lock = actor
            .client
            .get(&format!("/v1/quote_locks/{}", ask["quote_lock_id"].as_str().unwrap()))
            .await
            .ok();
        assert_eq!(lock["status"], "active", "a refused transfer uses no lock");
    }
    assert_eq!(
        actor.client.get("/v1/senders/sender_01JDK3Y5M8Q2X7N4V6T9R0ABCD").await.error(404),
        "object_not_found"
    );
}
