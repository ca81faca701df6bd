//! Refunds without an address, and addresses that no refund goes to.

use serde_json::{Value, json};

use crate::stage::{self, ADDRESS, ADDRESS_OTHER, Actor, SETTLES, STEP, faults};
use crate::support::{Server, id};

/// What belongs to nobody on TRON.
const ZERO: &str = "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb";

/// A transfer that was paid too much, and its refund, which waits for an address.
async fn waiting(actor: &Actor) -> (Value, Value) {
    let transfer = actor.transfer(SETTLES, json!({})).await;
    actor.pay(&transfer, "1250.00").await;
    actor.finalise().await;
    let refund = actor.shown(&transfer).await["refund"].clone();
    assert_eq!(
        (refund["status"].as_str(), refund["amount"].as_str()),
        (Some("requires_address"), Some("250.00"))
    );
    (transfer, refund)
}

async fn declare(actor: &Actor, refund: &Value, to_address: &str) -> crate::support::Answer {
    let path = format!("/v1/refunds/{}", id(refund));
    actor.client.post(&path, json!({ "to_address": to_address })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_refund_goes_to_the_service_the_token_or_nobody() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let other = Actor::new(&server, "other").await;
    let theirs = other.transfer(SETTLES, json!({})).await;
    let (transfer, refund) = waiting(&actor).await;
    let funding = &transfer["funding"];
    let refused = [
        ZERO,
        funding["deposit_address"].as_str().unwrap(),
        theirs["funding"]["deposit_address"].as_str().unwrap(),
        funding["token_contract"].as_str().unwrap(),
    ];
    let beneficiary_id = transfer["beneficiary_id"].as_str().unwrap();
    for address in refused {
        let answer = declare(&actor, &refund, address).await;
        let wanted = faults(&[("parameter_value_invalid", "to_address")]);
        assert_eq!(answer.errors(400), wanted, "{address}");
        let funding = json!({ "refund_address": address });
        let body = actor.transfer_body(beneficiary_id, "10.00", funding).await;
        let answer = actor.client.post("/v1/transfers", body).await;
        let wanted = faults(&[("parameter_value_invalid", "funding.refund_address")]);
        assert_eq!(answer.errors(400), wanted, "{address}");
    }
    let held = actor.transfer_to(beneficiary_id, "1000.00", json!({})).await;
    actor.pay(&held, "400.00").await;
    actor.advance(1_800 + 2 * STEP).await;
    for address in refused {
        let body = json!({ "action": "refund", "refund_address": address });
        let wanted = faults(&[("parameter_value_invalid", "refund_address")]);
        assert_eq!(actor.resolve(&held, body).await.errors(400), wanted, "{address}");
    }
    assert_eq!(declare(&actor, &refund, ADDRESS).await.ok()["to_address"], ADDRESS);
    actor.advance(3 * STEP).await;
    assert_eq!(actor.shown(&transfer).await["refund"]["status"], "completed");
    stage::assert_book(&server);
}

pub fn command(server: &Server, arguments: &[&str]) -> std::process::Output {
    let mut all = arguments.to_vec();
    all.extend(["--database", &server.database_url]);
    server.binary(&all).output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_declares_an_address_with_a_reason() {
    let server = Server::start().await;
    let client = server.client().await;
    let transfer = client.transfer().await;
    client.deposit(&transfer, json!({ "amount": "1250.00" })).await;
    let path = format!("/v1/transfers/{}", id(&transfer));
    let shown = client.wait_until(&path, |found| found["refund"].is_object()).await;
    let refund = id(&shown["refund"]);
    let zero = command(&server, &["refunds", "address", &refund, "--to", ZERO, "--reason", "no"]);
    assert!(!zero.status.success());
    let blank = command(&server, &["refunds", "address", &refund, "--to", ADDRESS, "--reason", ""]);
    assert!(!blank.status.success());
    let declared = command(
        &server,
        &["refunds", "address", &refund, "--to", ADDRESS, "--reason", "letter of the payer"],
    );
    assert!(declared.status.success(), "{}", String::from_utf8_lossy(&declared.stderr));
    let path = format!("/v1/refunds/{refund}");
    let found = client.wait_status(&path, "completed").await;
    assert_eq!(found["to_address"], ADDRESS);
    let again = command(
        &server,
        &["refunds", "address", &refund, "--to", ADDRESS_OTHER, "--reason", "another"],
    );
    assert!(!again.status.success(), "money that went is gone");
    let listed = command(&server, &["refunds", "list"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("operator\tletter of the payer"), "{listed}");
    server.assert_book();
}
