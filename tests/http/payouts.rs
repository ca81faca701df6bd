//! The INR leg: settlement, failure, return, unknown outcomes, holds, methods, and the payment
//! advice.

use http::Method;
use hundi::kernel::Id;
use hundi::kernel::id::kind;
use hundi::operator::{OperatorDecision, decide};
use hundi::screening::simulated::POSSIBLE_NAME;
use serde_json::{Value, json};

use crate::stage::{self, ADDRESS, Actor, DAY, SETTLES, STEP, event_types, faults};
use crate::support::{Answer, by, id, payout_id};

async fn help(actor: &Actor, payout: &Value, helper: &str) -> Answer {
    actor.client.post(&format!("/v1/test_helpers/payouts/{}/{helper}", id(payout)), json!({})).await
}

/// A transfer whose payout is with the bank.
async fn paying(actor: &Actor, account_number: &str, funding: Value) -> Value {
    let transfer = actor.transfer(account_number, funding).await;
    actor.pay(&transfer, "1000.00").await;
    actor.finalise().await;
    assert_eq!(actor.shown(&transfer).await["status"], "payout_processing");
    transfer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payout_settles_with_a_reference() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let transfer = paying(&actor, SETTLES, json!({})).await;
    let submitted_at = actor.now();
    let payout = actor.payout_of(&transfer).await;
    let mut wanted = json!({
        "object": "payout", "id": payout["id"], "transfer_id": transfer["id"],
            "beneficiary_id": transfer["beneficiary_id"], "status": "processing",
        "amount": "88412.50", "currency": "INR", "method": "neft", "purpose_code": "P1301",
            "unique_transaction_reference": null, "waits_until": null, "settled_at": null,
        "failure": null, "payment_advice": { "status": "pending", "available_at": null,
            "url": null }, "created": submitted_at, "livemode": false,
    });
    assert_eq!(payout, wanted);
    assert!(id(&payout).starts_with("payout_"));
    let shown = actor.shown(&transfer).await;
    assert_eq!((&shown["payout_id"], &shown["payout"]), (&payout["id"], &Value::Null));
    actor.assert_balance(&[("payout_processing", "88412.50", "INR")], "with the bank").await;
    actor.advance(2 * STEP).await;
    let settled = actor.payout_of(&transfer).await;
    wanted["status"] = json!("settled");
    wanted["settled_at"] = json!(actor.now());
    wanted["unique_transaction_reference"] = settled["unique_transaction_reference"].clone();
    assert_eq!(settled, wanted);
    let reference = settled["unique_transaction_reference"].as_str().unwrap();
    assert!(reference.starts_with("TEST") && reference.len() == 16, "{reference}");
    let shown = actor.shown(&transfer).await;
    assert_eq!(shown["status"], "payout_settled");
    assert_eq!(
        shown["payout"],
        json!({
            "id": payout["id"], "status": "settled", "amount": "88412.50", "currency": "INR",
                "unique_transaction_reference": reference, "settled_at": actor.now(),
        })
    );
    actor.assert_balance(&[], "settled").await;
    actor.advance(DAY).await;
    assert_eq!(actor.shown(&transfer).await["status"], "payout_settled");
    let types = [
        "payout.status.initialized",
        "payout.status.processing",
        "payout.status.settled",
        "payout.payment_advice.available",
    ];
    assert_eq!(event_types(&actor.client, &id(&payout)).await, types);
    actor.assert_consistent(&transfer).await;
    let found = actor
        .client
        .get(&format!("/v1/payouts?unique_transaction_reference={reference}"))
        .await
        .ok();
    assert_eq!(found["data"].as_array().unwrap().len(), 1);
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_method_follows_the_amount() {
    let server = stage::server_with(&[("HUNDI_TEST_MID_MARKET_RATE", "80.000000")]).await;
    let actor = Actor::new(&server, "default").await;
    for (amount, bought, method, length) in [
        ("2499.99", "199999.20", "neft", 16),
        ("2500.00", "200000.00", "rtgs", 22),
        ("50000.00", "4000000.00", "rtgs", 22),
    ] {
        let beneficiary_id = actor.beneficiary(SETTLES).await;
        let transfer = actor.transfer_to(&beneficiary_id, amount, json!({})).await;
        actor.pay(&transfer, amount).await;
        actor.advance(10 * STEP).await;
        let payout = actor.payout_of(&transfer).await;
        assert_eq!(
            (payout["status"].as_str(), payout["amount"].as_str(), payout["method"].as_str()),
            (Some("settled"), Some(bought), Some(method))
        );
        let reference = payout["unique_transaction_reference"].as_str().unwrap();
        assert!(
            reference.starts_with("TEST")
                && reference.len() == length
                && reference.bytes().all(|b| b.is_ascii_alphanumeric()),
            "{reference}"
        );
    }
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_simulated_bank_pays_its_own_accounts_by_book_transfer() {
    let server = stage::server_with(&[("HUNDI_TEST_MID_MARKET_RATE", "80.000000")]).await;
    let actor = Actor::new(&server, "default").await;
    // No bank's IFSCs begin with TEST, so nobody's payout becomes one by accident.
    let body = json!({ "name": "Asha Rao", "account_number": SETTLES, "ifsc": "TEST0000001",
        "account_type": "nre" });
    let beneficiary = actor.client.post("/v1/beneficiaries", body).await.ok();
    actor.advance(10 * STEP).await;
    let transfer = actor.transfer_to(&id(&beneficiary), "2500.00", json!({})).await;
    actor.pay(&transfer, "2500.00").await;
    actor.advance(10 * STEP).await;
    let payout = actor.payout_of(&transfer).await;
    assert_eq!((&payout["status"], &payout["method"]), (&json!("settled"), &json!("internal")));
    assert_eq!(payout["waits_until"], Value::Null);
    let reference = payout["unique_transaction_reference"].as_str().unwrap();
    assert!(reference.starts_with("TEST") && reference.len() == 12, "{reference}");
    let advice = format!("/v1/payouts/{}/payment_advice", id(&payout));
    assert_eq!(actor.client.get(&advice).await.ok()["method"], "internal");
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payout_that_fails_gives_everything_back() {
    let server = stage::server_with(&[("HUNDI_FEE", "9.00")]).await;
    let actor = Actor::new(&server, "default").await;
    let transfer = paying(&actor, "50100010001001", json!({ "refund_address": ADDRESS })).await;
    actor.assert_balance(&[("payout_processing", "87616.78", "INR")], "with the bank").await;
    actor.advance(2 * STEP).await;
    let payout = actor.payout_of(&transfer).await;
    assert_eq!(payout["status"], "failed");
    let failure = &payout["failure"];
    assert_eq!(stage::keys(failure), ["code", "message", "source"]);
    assert_eq!(failure["code"], "account_closed");
    assert_eq!(
        (&payout["unique_transaction_reference"], &payout["settled_at"]),
        (&Value::Null, &Value::Null)
    );
    let shown = actor.shown(&transfer).await;
    assert_eq!(
        stage::statuses(&shown),
        ["funding", "funded", "payout_processing", "payout_failed", "refund_processing"]
    );
    let history = stage::history(&shown);
    assert_eq!(history[3].1, history[4].1, "both in one transaction");
    let refund = &shown["refund"];
    assert_eq!(
        (refund["kind"].as_str(), refund["amount"].as_str(), refund["reason"].as_str()),
        (Some("principal"), Some("1000.00"), Some("payout_failed")),
        "fee included"
    );
    assert_eq!(shown["payout"], Value::Null, "it never settled");
    assert_eq!(actor.payout_of(&transfer).await["status"], "failed");
    actor.assert_balance(&[("hold", "1000.00", "USDT")], "failed").await;
    actor.advance(2 * STEP).await;
    assert_eq!(actor.shown(&transfer).await["status"], "refunded");
    actor.assert_balance(&[], "refunded").await;
    actor.assert_consistent(&transfer).await;
    assert_eq!(
        event_types(&actor.client, &id(&payout)).await,
        ["initialized", "processing", "failed"].map(|status| format!("payout.status.{status}"))
    );
    // The beneficiary is not to blame for the record: a failed payout disables nothing.
    let beneficiary = actor
        .client
        .get(&format!("/v1/beneficiaries/{}", transfer["beneficiary_id"].as_str().unwrap()))
        .await
        .ok();
    assert_eq!(beneficiary["payouts_enabled"], true);
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payout_that_comes_back_disables_its_beneficiary_and_waits_for_an_address() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let transfer = paying(&actor, "50100010001002", json!({})).await;
    actor.advance(2 * STEP).await;
    assert_eq!(actor.shown(&transfer).await["status"], "payout_settled");
    actor.advance(2 * STEP).await;
    let shown = actor.shown(&transfer).await;
    assert_eq!(
        stage::statuses(&shown),
        [
            "funding",
            "funded",
            "payout_processing",
            "payout_settled",
            "payout_returned",
            "refund_processing"
        ]
    );
    let payout = actor.payout_of(&transfer).await;
    assert_eq!(
        (payout["status"].as_str(), payout["failure"]["code"].as_str()),
        (Some("returned"), Some("returned_by_beneficiary_bank"))
    );
    assert!(
        payout["unique_transaction_reference"].is_string(),
        "what was settled keeps its reference"
    );
    let beneficiary_id = transfer["beneficiary_id"].as_str().unwrap();
    let beneficiary = actor.client.get(&format!("/v1/beneficiaries/{beneficiary_id}")).await.ok();
    assert_eq!(
        (beneficiary["status"].as_str(), beneficiary["payouts_enabled"].as_bool()),
        (Some("active"), Some(false))
    );
    assert_eq!(beneficiary["payouts_disabled_reason"], "returned_payout");
    let types = [
        "beneficiary.status.verifying",
        "beneficiary.status.active",
        "beneficiary.payouts_enabled.updated",
    ];
    assert_eq!(event_types(&actor.client, beneficiary_id).await, types);
    let body = actor.transfer_body(beneficiary_id, "1000.00", json!({})).await;
    assert_eq!(
        actor.client.post("/v1/transfers", body).await.error(400),
        "beneficiary_not_payable"
    );

    let refund = &shown["refund"];
    assert_eq!(
        (refund["kind"].as_str(), refund["status"].as_str(), refund["reason"].as_str()),
        (Some("principal"), Some("requires_address"), Some("payout_returned"))
    );
    assert_eq!((refund["amount"].as_str(), &refund["to_address"]), (Some("1000.00"), &Value::Null));
    actor.assert_balance(&[("hold", "1000.00", "USDT")], "returned").await;
    let path = format!("/v1/refunds/{}", id(refund));
    let complete = format!("/v1/test_helpers/refunds/{}/complete", id(refund));
    assert_eq!(
        actor.client.post(&complete, json!({})).await.error(400),
        "test_helper_not_applicable"
    );
    for (body, code, field) in [
        (json!({}), "parameter_empty", "to_address"),
        (json!({ "to_address": "T" }), "parameter_min_length_invalid", "to_address"),
        (
            json!({ "to_address": "TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBg" }),
            "parameter_value_invalid",
            "to_address",
        ),
        (json!({ "to_address": ADDRESS, "amount": "1.00" }), "parameter_unexpected", "amount"),
    ] {
        assert_eq!(actor.client.post(&path, body).await.errors(400), faults(&[(code, field)]));
    }
    actor.advance(30 * DAY).await;
    assert_eq!(
        actor.client.get(&path).await.ok()["status"],
        "requires_address",
        "nothing is sent without a declared address"
    );
    let declared = actor.client.post(&path, json!({ "to_address": ADDRESS })).await.ok();
    assert_eq!(
        (declared["status"].as_str(), declared["to_address"].as_str()),
        (Some("processing"), Some(ADDRESS))
    );
    let again = actor.client.post(&path, json!({ "to_address": ADDRESS })).await;
    assert_eq!(again.error(400), "transfer_action_invalid");
    assert!(stage::asks_for_new_key(&again));
    actor.advance(2 * STEP).await;
    let done = actor.client.get(&path).await.ok();
    assert_eq!(
        (done["status"].as_str(), done["completed_at"].as_i64()),
        (Some("completed"), Some(actor.now()))
    );
    assert_eq!(done["transaction_hash"].as_str().unwrap().len(), 64);
    let shown = actor.shown(&transfer).await;
    assert_eq!((shown["status"].as_str(), &shown["refund"]), (Some("refunded"), &done));
    actor.assert_balance(&[], "refunded").await;
    assert_eq!(
        event_types(&actor.client, &id(&done)).await,
        ["requires_address", "processing", "completed"]
            .map(|status| format!("refund.status.{status}"))
    );
    assert_eq!(
        actor.client.post(&complete, json!({})).await.error(400),
        "test_helper_not_applicable"
    );
    let enabled = actor
        .client
        .post(&format!("/v1/test_helpers/beneficiaries/{beneficiary_id}/activate"), json!({}))
        .await
        .ok();
    assert_eq!(
        (enabled["payouts_enabled"].as_bool(), &enabled["payouts_disabled_reason"]),
        (Some(true), &Value::Null)
    );
    assert_eq!(
        event_types(&actor.client, beneficiary_id).await.last().unwrap(),
        "beneficiary.payouts_enabled.updated"
    );
    actor.assert_consistent(&transfer).await;
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_complete_helper_confirms_a_refund_at_once() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let transfer = paying(&actor, "50100010001001", json!({ "refund_address": ADDRESS })).await;
    actor.advance(2 * STEP).await;
    let refund = actor.shown(&transfer).await["refund"].clone();
    assert_eq!(refund["status"], "processing");
    let done = actor
        .client
        .post(&format!("/v1/test_helpers/refunds/{}/complete", id(&refund)), json!({}))
        .await
        .ok();
    assert_eq!(
        (done["object"].as_str(), done["status"].as_str()),
        (Some("refund"), Some("completed"))
    );
    let shown = actor.shown(&transfer).await;
    assert_eq!((shown["status"].as_str(), &shown["refund"]), (Some("refunded"), &done));
    actor.advance(10 * STEP).await;
    assert_eq!(
        actor.client.get(&format!("/v1/refunds/{}", id(&refund))).await.ok(),
        done,
        "it is confirmed once"
    );
    actor.assert_balance(&[], "refunded").await;
    actor.assert_consistent(&transfer).await;
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_outcome_stays_until_somebody_says_what_happened() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    for (helpers, status, transfer_status) in [
        (&["settle"][..], "settled", "payout_settled"),
        (&["fail"][..], "failed", "refund_processing"),
        (&["settle", "return"][..], "returned", "refund_processing"),
    ] {
        let transfer = paying(&actor, "50100010001003", json!({})).await;
        let fresh = actor.payout_of(&transfer).await;
        assert_eq!(fresh["failure"], Value::Null);
        actor.advance(10 * DAY).await;
        let payout = actor.payout_of(&transfer).await;
        assert_eq!(
            (payout["status"].as_str(), payout["failure"]["code"].as_str()),
            (Some("processing"), Some("outcome_unknown"))
        );
        assert_eq!(actor.shown(&transfer).await["status"], "payout_processing");
        let answer = help(&actor, &payout, "return").await;
        assert_eq!(answer.error(400), "test_helper_not_applicable");
        assert!(stage::asks_for_new_key(&answer));
        let mut last = Value::Null;
        for helper in helpers {
            last = help(&actor, &payout, helper).await.ok();
            assert_eq!(last["object"], "payout");
        }
        assert_eq!(last["status"], status);
        assert_eq!(last["failure"].is_null(), status == "settled", "{last}");
        actor.advance(10 * STEP).await;
        assert_eq!(actor.payout_of(&transfer).await["status"], status);
        assert_eq!(actor.shown(&transfer).await["status"], transfer_status);
        for helper in ["settle", "fail"] {
            assert_eq!(
                help(&actor, &payout, helper).await.error(400),
                "test_helper_not_applicable",
                "{helper} of a {status} payout"
            );
        }
        actor.assert_consistent(&transfer).await;
    }
    assert_eq!(
        actor
            .client
            .post("/v1/test_helpers/payouts/payout_01JDK3Y5M8Q2X7N4V6T9R0ABCD/settle", json!({}))
            .await
            .error(404),
        "object_not_found"
    );
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn helpers_take_the_reasons_a_bank_can_give() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let codes = [
        "beneficiary_name_mismatch",
        "account_invalid",
        "account_frozen",
        "account_not_nre",
        "ifsc_invalid",
        "beneficiary_bank_unavailable",
        "technical_error",
    ];
    for code in codes {
        let transfer = paying(&actor, "50100010001003", json!({})).await;
        let path =
            format!("/v1/test_helpers/payouts/{}/fail", id(&actor.payout_of(&transfer).await));
        for wrong in ["outcome_unknown", "bad_weather"] {
            // An outcome that nobody knows is no reason to give the money back.
            let answer = actor.client.post(&path, json!({ "code": wrong })).await;
            assert_eq!(
                answer.errors(400),
                faults(&[("parameter_value_invalid", "code")]),
                "{wrong}"
            );
        }
        assert_eq!(actor.shown(&transfer).await["status"], "payout_processing");
        let failed = actor.client.post(&path, json!({ "code": code })).await.ok();
        assert_eq!(
            (failed["status"].as_str(), failed["failure"]["code"].as_str()),
            (Some("failed"), Some(code))
        );
        // As a bank's files report it: what the sponsor bank stops never reaches the other one.
        let is_stopped = ["compliance_rejected", "ifsc_invalid", "technical_error"].contains(&code);
        let source = if is_stopped { "sponsor_bank" } else { "beneficiary_bank" };
        assert_eq!(failed["failure"]["source"], source, "{code}");
    }
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payout_that_the_helper_settled_early_still_comes_back() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    for wait in [0, STEP, 2 * STEP] {
        let transfer = paying(&actor, "50100010001002", json!({})).await;
        let payout = actor.payout_of(&transfer).await;
        if wait > 0 {
            actor.advance(wait).await;
        }
        if wait < 2 * STEP {
            assert_eq!(help(&actor, &payout, "settle").await.ok()["status"], "settled");
        }
        assert_eq!(actor.shown(&transfer).await["status"], "payout_settled");
        actor.advance(10 * STEP).await;
        assert_eq!(
            actor.payout_of(&transfer).await["status"],
            "returned",
            "settled after {wait} s"
        );
        actor.assert_consistent(&transfer).await;
    }
    stage::assert_book(&server);
}

/// A payout that waits because an earlier one to the same beneficiary came back before its deposit
/// was final.
async fn on_hold(actor: &Actor) -> (Value, Value) {
    let beneficiary_id = actor.beneficiary("50100010001002").await;
    let first =
        actor.transfer_to(&beneficiary_id, "1000.00", json!({ "refund_address": ADDRESS })).await;
    let second =
        actor.transfer_to(&beneficiary_id, "1000.00", json!({ "refund_address": ADDRESS })).await;
    actor.pay(&first, "1000.00").await;
    actor.advance(10 * STEP).await;
    assert_eq!(actor.shown(&first).await["status"], "refunded");
    actor.pay(&second, "1000.00").await;
    actor.finalise().await;
    (second, first)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payout_waits_while_its_beneficiary_cannot_be_paid_and_resumes() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let (transfer, _) = on_hold(&actor).await;
    let shown = actor.shown(&transfer).await;
    let payout = actor.payout_of(&transfer).await;
    assert_eq!(
        (shown["status"].as_str(), payout["status"].as_str()),
        (Some("funded"), Some("hold"))
    );
    assert_eq!(shown["funding"]["status"], "funded");
    actor.assert_balance(&[("processing", "1000.00", "USDT")], "on hold").await;
    for helper in ["settle", "fail", "return"] {
        assert_eq!(
            help(&actor, &payout, helper).await.error(400),
            "test_helper_not_applicable",
            "{helper}"
        );
    }
    actor.advance(DAY - STEP).await;
    assert_eq!(actor.shown(&transfer).await["status"], "funded");
    actor.activate_beneficiary(&transfer).await;
    actor.advance(1).await;
    let shown = actor.shown(&transfer).await;
    assert_eq!(
        (shown["status"].as_str(), actor.payout_of(&transfer).await["status"].as_str()),
        (Some("payout_processing"), Some("processing"))
    );
    actor.assert_balance(&[("payout_processing", "88412.50", "INR")], "resumed").await;
    actor.advance(2 * STEP).await;
    assert_eq!(
        actor.shown(&transfer).await["status"],
        "payout_settled",
        "the 24 hours of the hold are over, and mean nothing any more"
    );
    let types = ["initialized", "hold", "processing", "settled"]
        .map(|status| format!("payout.status.{status}"));
    assert_eq!(event_types(&actor.client, &id(&payout)).await[..4], types);
    actor.assert_consistent(&transfer).await;
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payout_that_waited_24_hours_fails_and_is_refunded() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let (transfer, _) = on_hold(&actor).await;
    actor.advance(DAY).await;
    let shown = actor.shown(&transfer).await;
    assert_eq!(stage::statuses(&shown), ["funding", "funded", "refund_processing"]);
    assert_eq!(actor.payout_of(&transfer).await["status"], "failed");
    assert!(actor.payout_of(&transfer).await["failure"]["code"].is_string());
    assert_eq!(
        (shown["refund"]["kind"].as_str(), shown["refund"]["amount"].as_str()),
        (Some("principal"), Some("1000.00"))
    );
    actor.assert_balance(&[("hold", "1000.00", "USDT")], "failed").await;
    let types = ["initialized", "hold", "failed"].map(|status| format!("payout.status.{status}"));
    assert_eq!(event_types(&actor.client, &payout_id(&shown)).await, types);
    actor.advance(2 * STEP).await;
    assert_eq!(actor.shown(&transfer).await["status"], "refunded");
    actor.activate_beneficiary(&transfer).await;
    actor.advance(STEP).await;
    assert_eq!(actor.shown(&transfer).await["status"], "refunded", "what failed is not sent later");
    actor.assert_balance(&[], "refunded").await;
    actor.assert_consistent(&transfer).await;
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn excess_and_principal_are_two_refunds_and_the_newest_is_shown() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let transfer = actor.transfer("50100010001001", json!({})).await;
    actor.pay(&transfer, "1200.00").await;
    actor.finalise().await;
    let excess = actor.shown(&transfer).await["refund"].clone();
    assert_eq!(
        (excess["kind"].as_str(), excess["amount"].as_str()),
        (Some("excess"), Some("200.00"))
    );
    actor.advance(2 * STEP).await;
    let principal = actor.shown(&transfer).await["refund"].clone();
    assert_eq!(
        (principal["kind"].as_str(), principal["amount"].as_str()),
        (Some("principal"), Some("1000.00"))
    );
    actor.assert_balance(&[("hold", "1200.00", "USDT")], "both owed").await;
    let declare = async |refund: &Value| {
        actor
            .client
            .post(&format!("/v1/refunds/{}", id(refund)), json!({ "to_address": ADDRESS }))
            .await
            .ok()
    };
    declare(&excess).await;
    actor.advance(2 * STEP).await;
    let shown = actor.shown(&transfer).await;
    assert_eq!(
        (shown["status"].as_str(), shown["refund"]["id"].as_str()),
        (Some("refund_processing"), principal["id"].as_str()),
        "the excess moves no status"
    );
    actor.assert_balance(&[("hold", "1000.00", "USDT")], "the excess is back").await;
    declare(&principal).await;
    actor.advance(2 * STEP).await;
    assert_eq!(actor.shown(&transfer).await["status"], "refunded");
    actor.assert_balance(&[], "all is back").await;
    let refunds =
        stage::all(&actor.client, &format!("/v1/refunds?transfer_id={}", id(&transfer))).await;
    assert_eq!(
        refunds.iter().map(|refund| refund["kind"].as_str().unwrap()).collect::<Vec<_>>(),
        ["excess", "principal"]
    );
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_payment_advice_is_json_or_pdf_by_what_is_accepted() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let transfer = paying(&actor, SETTLES, json!({})).await;
    let payout = actor.payout_of(&transfer).await;
    let path = format!("/v1/payouts/{}/payment_advice", id(&payout));
    let fetch = async |accept: Option<&str>| {
        let headers: Vec<(&str, &str)> =
            accept.map(|accept| ("accept", accept)).into_iter().collect();
        actor.client.send(Method::GET, &path, &headers, bytes::Bytes::new()).await
    };
    for accept in [None, Some("application/pdf")] {
        let answer = fetch(accept).await;
        assert_eq!(answer.error(400), "payment_advice_not_ready");
        assert!(stage::asks_for_new_key(&answer));
    }
    for (path, code, status) in [
        (format!("{path}?x=1"), "request_query_parameter_invalid", 400),
        (
            "/v1/payouts/payout_01JDK3Y5M8Q2X7N4V6T9R0ABCD/payment_advice?x=1".to_owned(),
            "object_not_found",
            404,
        ),
    ] {
        assert_eq!(
            actor.client.get(&path).await.error(status),
            code,
            "found, then the query, then whether it is ready"
        );
    }
    actor.advance(3 * STEP).await;
    let payout = actor.payout_of(&transfer).await;
    let advice = &payout["payment_advice"];
    assert_eq!(
        (advice["status"].as_str(), advice["available_at"].is_i64()),
        (Some("available"), true)
    );
    assert!(advice["url"].as_str().unwrap().ends_with(&path), "{advice}");
    for (accept, content_type) in [
        (None, "application/json"),
        (Some("*/*"), "application/json"),
        (Some("text/html"), "application/json"),
        (Some("application/json"), "application/json"),
        (Some("application/pdf"), "application/pdf"),
        (Some("application/pdf, application/json;q=0.5"), "application/pdf"),
        (Some("application/json, application/pdf;q=0.9"), "application/json"),
    ] {
        let answer = fetch(accept).await;
        assert_eq!(answer.status, 200);
        assert_eq!(
            answer.header("content-type").unwrap().split(';').next().unwrap(),
            content_type,
            "{accept:?}"
        );
        let whole = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(!whole.contains("50100012345678"), "the full account number is never shown");
        let reference = payout["unique_transaction_reference"].as_str().unwrap();
        if content_type == "application/pdf" {
            assert!(answer.body.starts_with(b"%PDF-") && whole.trim_end().ends_with("%%EOF"));
        } else {
            assert!(whole.contains(reference), "{accept:?}");
            let document = answer.json();
            assert_eq!(
                (document["payout_id"].as_str(), document["transfer_id"].as_str()),
                (payout["id"].as_str(), transfer["id"].as_str())
            );
            assert_eq!(
                (document["amount"].as_str(), document["currency"].as_str()),
                (Some("88412.50"), Some("INR"))
            );
            assert_eq!(document["beneficiary"]["account_number_last4"], "5678");
        }
    }
    assert_eq!(
        actor
            .client
            .get("/v1/payouts/payout_01JDK3Y5M8Q2X7N4V6T9R0ABCD/payment_advice")
            .await
            .error(404),
        "object_not_found"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payout_held_for_what_screening_found_of_its_beneficiary_waits_for_the_operator() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    for is_cleared in [true, false] {
        let body = json!({ "name": POSSIBLE_NAME, "account_number": SETTLES,
            "ifsc": "HDFC0000001", "account_type": "nre" });
        let beneficiary = id(&actor.client.post("/v1/beneficiaries", body).await.ok());
        actor.advance(STEP).await;
        // The helper speaks for the bank, and decides nothing about the list.
        let path = format!("/v1/test_helpers/beneficiaries/{beneficiary}/activate");
        assert_eq!(actor.client.post(&path, json!({})).await.ok()["payouts_enabled"], true);
        let transfer = actor.transfer_to(&beneficiary, "1000.00", json!({})).await;
        actor.pay(&transfer, "1000.00").await;
        actor.finalise().await;
        for _ in 0..3 {
            assert_eq!(actor.shown(&transfer).await["status"], "funded");
            assert_eq!(actor.payout_of(&transfer).await["status"], "hold");
            actor.advance(DAY).await;
        }
        let services = server.app.state.services.clone();
        let decision =
            if is_cleared { OperatorDecision::Approve } else { OperatorDecision::Refuse };
        let subject: Id<kind::Beneficiary> = Id::parse(&beneficiary).unwrap();
        let decided = server
            .app
            .state
            .store
            .write(move |tx, now| decide(tx, now, &services, subject.any(), &decision, &by()));
        decided.await.unwrap();
        actor.advance(DAY).await;
        let wanted = if is_cleared { "settled" } else { "failed" };
        assert_eq!(actor.payout_of(&transfer).await["status"], wanted);
        actor.assert_consistent(&transfer).await;
    }
    stage::assert_book(&server);
}
