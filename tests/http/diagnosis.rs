//! What became of a payment, in test mode: every answer that the simulated chain can give, and the
//! order of checks around it.

use hundi::kernel::Mode;
use serde_json::{Value, json};

use crate::stage::{Actor, SETTLES, STEP, server};
use crate::support::{Answer, Server, id, payout_id};

async fn ask(actor: &Actor, transfer: &Value, hash: &str) -> Answer {
    actor
        .client
        .post(
            &format!("/v1/transfers/{}/funding/diagnose", id(transfer)),
            json!({ "transaction_hash": hash }),
        )
        .await
}

fn hash(deposit: &Value) -> &str {
    deposit["transaction_hash"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_payment_of_the_simulated_chain_is_told() {
    let server = server().await;
    let actor = Actor::new(&server, "doctor").await;
    let exact = actor.transfer(SETTLES, json!({})).await;

    // On its way: seen, then in a block, then final.
    let paid = actor.pay(&exact, "1000.00").await;
    let seen = ask(&actor, &exact, hash(&paid)).await.ok();
    assert_eq!(
        seen,
        json!({
            "object": "funding_diagnosis", "transfer_id": id(&exact),
                "transaction_hash": hash(&paid), "code": "confirming",
            "message": seen["message"], "deposit_id": id(&paid), "amount": "1000.00",
                "currency": "USDT", "short_by": null,
            "late_by_seconds": null, "block_number": null, "block_time": null,
                "confirmations": null,
            "to_address": exact["funding"]["deposit_address"],
                "token_contract": exact["funding"]["token_contract"], "livemode": false,
        })
    );
    actor.advance(STEP).await;
    let confirming = ask(&actor, &exact, hash(&paid)).await.ok();
    assert_eq!(
        (&confirming["code"], &confirming["confirmations"]),
        (&json!("confirming"), &json!(1))
    );
    assert!(confirming["block_number"].is_i64() && confirming["block_time"].is_i64());
    actor.finalise().await;
    // In capital letters and with 0x it is the same transaction.
    let written = format!("0x{}", hash(&paid).to_uppercase());
    let credited = ask(&actor, &exact, &written).await.ok();
    assert_eq!(
        (&credited["code"], &credited["transaction_hash"]),
        (&json!("credited"), &json!(hash(&paid)))
    );

    let more = actor.pay(&exact, "1.00").await;
    actor.finalise().await;
    assert_eq!(ask(&actor, &exact, hash(&more)).await.ok()["code"], "unmatched");

    let short = actor.transfer(SETTLES, json!({})).await;
    let part = actor.pay(&short, "999.50").await;
    actor.finalise().await;
    let told = ask(&actor, &short, hash(&part)).await.ok();
    assert_eq!(
        (&told["code"], &told["short_by"], &told["amount"]),
        (&json!("short_by"), &json!("0.50"), &json!("999.50"))
    );
    // The first part of a sum that became whole counts.
    actor.pay(&short, "0.50").await;
    actor.finalise().await;
    assert_eq!(ask(&actor, &short, hash(&part)).await.ok()["code"], "credited");

    let foreign = actor.transfer(SETTLES, json!({})).await;
    let other = actor.client.deposit(&foreign, json!({ "amount": "5.00", "asset": "USDC" })).await;
    for _ in 0..2 {
        let told = ask(&actor, &foreign, hash(&other)).await.ok();
        assert_eq!(
            (&told["code"], &told["currency"], &told["amount"]),
            (&json!("wrong_token"), &json!("USDC"), &json!("5.00"))
        );
        actor.finalise().await;
    }
    // What was sent for another transfer of one's own: the address, which the chain shows to all,
    // and nothing else.
    let elsewhere = ask(&actor, &foreign, hash(&paid)).await.ok();
    let facts = (
        &elsewhere["code"],
        &elsewhere["to_address"],
        &elsewhere["deposit_id"],
        &elsewhere["transfer_id"],
    );
    assert_eq!(
        facts,
        (
            &json!("wrong_address"),
            &exact["funding"]["deposit_address"],
            &Value::Null,
            &json!(id(&foreign))
        )
    );
    assert!(!elsewhere.to_string().contains(&id(&exact)));
    assert_eq!(ask(&actor, &foreign, &"ab".repeat(32)).await.ok()["code"], "not_found");
    // Another account's transaction stands on another chain.
    let stranger = Actor::new(&server, "stranger").await;
    let theirs = stranger.transfer(SETTLES, json!({})).await;
    assert_eq!(ask(&stranger, &theirs, hash(&paid)).await.ok()["code"], "not_found");

    let late = actor.transfer(SETTLES, json!({})).await;
    actor.advance_to(late["funding"]["expires_at"].as_i64().unwrap() + 90).await;
    let after = actor.pay(&late, "1000.00").await;
    actor.advance(STEP).await;
    assert_eq!(ask(&actor, &late, hash(&after)).await.ok()["late_by_seconds"], 90, "foreseen");
    actor.finalise().await;
    let told = ask(&actor, &late, hash(&after)).await.ok();
    assert_eq!(
        (&told["code"], &told["late_by_seconds"], &told["short_by"]),
        (&json!("late_by"), &json!(90), &Value::Null)
    );

    let cancelled = actor.transfer(SETTLES, json!({})).await;
    actor.cancel(&cancelled).await.ok();
    let after = actor.pay(&cancelled, "1000.00").await;
    actor.finalise().await;
    assert_eq!(ask(&actor, &cancelled, hash(&after)).await.ok()["code"], "after_cancel");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_a_post_like_any_other_and_changes_nothing() {
    let server = Server::start().await;
    let client = server.client().await;
    let transfer = client.transfer().await;
    let path = format!("/v1/transfers/{}/funding/diagnose", id(&transfer));
    let deposit = client.deposit(&transfer, json!({})).await;
    let settled =
        client.wait_status(&format!("/v1/transfers/{}", id(&transfer)), "payout_settled").await;
    let payout = format!("/v1/payouts/{}", payout_id(&settled));
    client.wait_until(&payout, |found| found["payment_advice"]["status"] == "available").await;
    let body = json!({ "transaction_hash": deposit["transaction_hash"] });

    let events = client.get("/v1/events?limit=1&order=desc").await.ok();
    let key = client.fresh_key();
    let first = client.post_with(&path, &key, body.clone()).await;
    let again = client.post_with(&path, &key, body.clone()).await;
    assert_eq!((first.ok(), again.header("idempotent-replayed")), (again.ok(), Some("true")));
    assert_eq!(client.get("/v1/events?limit=1&order=desc").await.ok(), events);
    let other = client.post_with(&path, &key, json!({ "transaction_hash": "ab".repeat(32) })).await;
    assert_eq!(other.error(409), "idempotency_key_reuse");

    for (hash, code) in [
        (json!(null), "parameter_empty"),
        (json!(""), "parameter_empty"),
        (json!(7), "parameter_value_invalid"),
        (json!("ab"), "parameter_min_length_invalid"),
        (json!("zz".repeat(32)), "parameter_value_invalid"),
        (json!("0X".to_owned() + &"ab".repeat(32)), "parameter_value_invalid"),
        (json!("ab".repeat(33)), "parameter_value_invalid"),
        (json!("ab".repeat(34)), "parameter_max_length_invalid"),
    ] {
        let answer = client.post(&path, json!({ "transaction_hash": hash })).await;
        assert_eq!(
            answer.errors(400),
            [(code.to_owned(), Some("transaction_hash".to_owned()))],
            "{hash}"
        );
    }
    assert_eq!(
        client.post(&format!("{path}?x=1"), body.clone()).await.error(400),
        "request_query_parameter_invalid"
    );
    let reader = server.client_of("default", Mode::Test, "transfers:read").await;
    assert_eq!(reader.post(&path, body.clone()).await.error(403), "action_unauthorized");
    let writer = server.client_of("default", Mode::Test, "transfers:write").await;
    assert_eq!(writer.post(&path, body).await.ok()["code"], "credited");
}
