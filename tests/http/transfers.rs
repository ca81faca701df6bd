//! Transfers: creation, its stages of refusal, the exact shape, cancelling, and the two clocks.

use serde_json::{Value, json};

use crate::stage::{self, ADDRESS, Actor, SETTLES, STEP, faults};
use crate::support::id;

#[tokio::test(flavor = "multi_thread")]
async fn a_word_in_the_wrong_case_is_told_the_right_one() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let body = json!({ "funding": { "rail": "stablecoin", "asset": "usdt", "chain": "tron" } });
    let answer = actor.client.post("/v1/transfers", body).await.json();
    let errors = answer["errors"].as_array().unwrap();
    let about = |field| errors.iter().find(|error| error["metadata"]["field_name"] == field);
    let wanted = "funding.asset must be one of: USDT. Write USDT instead of usdt.";
    assert_eq!(about("funding.asset").unwrap()["message"], wanted);
    let answer = actor.client.get("/v1/transfers?status=Funding").await.json();
    let message = answer["errors"][0]["message"].as_str().unwrap();
    assert!(message.ends_with(" Write funding instead of Funding."), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_transfer_has_exactly_the_documented_shape() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let beneficiary_id = actor.beneficiary(SETTLES).await;
    let ask = actor.transfer_body(&beneficiary_id, "1000.00", json!({})).await;
    let created = actor.client.post("/v1/transfers", ask.clone()).await.ok();
    let funding = &created["funding"];
    let wanted = json!({
        "object": "transfer", "id": created["id"], "status": "funding", "status_reason": null,
        "sender_id": ask["sender_id"], "beneficiary_id": ask["beneficiary_id"],
            "quote_lock_id": ask["quote_lock_id"],
        "amount": "1000.00", "currency": "USD", "payout_amount": "88412.50",
            "payout_currency": "INR",
        "rate": "88.412500", "fee": { "amount": "0.00", "currency": "USD", "details": [] },
            "purpose_code": "P1301",
        "funding": {
            "rail": "stablecoin", "asset": "USDT", "chain": "tron",
                "deposit_address": funding["deposit_address"],
            "status": "awaiting_funds", "amount_expected": "1000.00", "amount_received": "0.00",
            "amount_excess": "0.00", "expires_at": actor.now() + 1800, "refund_address": null,
            "payer_sets_refund_address": false,
            "policy": { "underpaid": "hold", "overpaid": "refund_excess", "late": "hold" },
            "token_contract": funding["token_contract"],
                "instructions_url": funding["instructions_url"],
        },
        "payout_id": null, "payout": null, "refund": null, "reference": null,
        "return_url": null, "status_history": [{ "status": "funding", "at": actor.now() }],
        "metadata": {}, "created": actor.now(), "livemode": false,
    });
    assert_eq!(created, wanted);
    assert!(id(&created).starts_with("transfer_"));
    for field in ["deposit_address", "token_contract"] {
        let address = funding[field].as_str().unwrap();
        assert!(address.starts_with('T') && address.len() == 34, "{field}: {address}");
    }
    assert!(funding["instructions_url"].as_str().unwrap().starts_with("http"));
    assert_eq!(actor.shown(&created).await, wanted);
    assert_eq!(
        actor.client.get("/v1/transfers").await.ok(),
        json!({ "object": "list", "data": [wanted], "has_next": false })
    );
    let lock = actor
        .client
        .get(&format!("/v1/quote_locks/{}", ask["quote_lock_id"].as_str().unwrap()))
        .await
        .ok();
    assert_eq!((lock["status"].as_str(), &lock["transfer_id"]), (Some("used"), &created["id"]));
    actor.assert_balance(&[], "a transfer without money").await;
    actor.assert_consistent(&created).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn optional_fields_come_back_as_given() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let beneficiary_id = actor.beneficiary(SETTLES).await;
    let funding = json!({ "refund_address": ADDRESS, "policy": { "underpaid": "refund",
        "overpaid": "hold", "late": "refund" } });
    let mut ask = actor.transfer_body(&beneficiary_id, "1000.00", funding).await;
    ask["metadata"] = json!({ "invoice": "77" });
    ask["purpose_code"] = json!("P1302");
    let created = actor.client.post("/v1/transfers", ask).await.ok();
    assert_eq!(created["metadata"], json!({ "invoice": "77" }));
    assert_eq!(created["purpose_code"], "P1302");
    assert_eq!(created["funding"]["refund_address"], ADDRESS);
    assert_eq!(
        created["funding"]["policy"],
        json!({ "underpaid": "refund", "overpaid": "hold", "late": "refund" })
    );
    let part = actor
        .transfer_to(&beneficiary_id, "1000.00", json!({ "policy": { "late": "refund" } }))
        .await;
    assert_eq!(
        part["funding"]["policy"],
        json!({ "underpaid": "hold", "overpaid": "refund_excess", "late": "refund" })
    );
    let nulls = actor
        .transfer_to(&beneficiary_id, "1000.00", json!({ "policy": null, "refund_address": null }))
        .await;
    assert_eq!(
        nulls["funding"]["policy"],
        json!({ "underpaid": "hold", "overpaid": "refund_excess", "late": "hold" })
    );
    let addresses: Vec<_> = [&created, &part, &nulls]
        .map(|transfer| transfer["funding"]["deposit_address"].to_string())
        .into();
    assert!(
        addresses[0] != addresses[1]
            && addresses[1] != addresses[2]
            && addresses[0] != addresses[2],
        "an address belongs to one transfer"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shape_is_judged_first_and_whole() {
    const EMPTY: &str = "parameter_empty";
    const VALUE: &str = "parameter_value_invalid";
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let beneficiary_id = actor.beneficiary(SETTLES).await;
    let valid = actor.transfer_body(&beneficiary_id, "1000.00", json!({})).await;
    let funding = |change: Value| {
        let mut funding = valid["funding"].clone();
        for (name, value) in change.as_object().unwrap() {
            funding[name] = value.clone();
        }
        json!({ "funding": funding })
    };
    let cases: Vec<(Value, Vec<(&str, &str)>)> = vec![
        (json!({ "sender_id": null }), vec![(EMPTY, "sender_id")]),
        (json!({ "beneficiary_id": "" }), vec![(EMPTY, "beneficiary_id")]),
        (json!({ "quote_lock_id": 5 }), vec![(VALUE, "quote_lock_id")]),
        (json!({ "amount": 1000 }), vec![(VALUE, "amount")]),
        (json!({ "amount": "0.00" }), vec![("parameter_range_invalid", "amount")]),
        (json!({ "currency": "EUR" }), vec![(VALUE, "currency")]),
        (json!({ "payout_currency": "USD" }), vec![(VALUE, "payout_currency")]),
        (json!({ "purpose_code": "P9999" }), vec![(VALUE, "purpose_code")]),
        (json!({ "metadata": { "a": 5 } }), vec![(VALUE, "metadata.a")]),
        (json!({ "status": "funded" }), vec![("parameter_unexpected", "status")]),
        (json!({ "funding": null }), vec![(EMPTY, "funding")]),
        (json!({ "funding": "tron" }), vec![(VALUE, "funding")]),
        (
            json!({ "funding": {} }),
            vec![(EMPTY, "funding.rail"), (EMPTY, "funding.asset"), (EMPTY, "funding.chain")],
        ),
        (funding(json!({ "rail": "card" })), vec![(VALUE, "funding.rail")]),
        (funding(json!({ "asset": "USDC" })), vec![(VALUE, "funding.asset")]),
        (funding(json!({ "chain": "ethereum" })), vec![(VALUE, "funding.chain")]),
        (
            funding(json!({ "refund_address": "TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBg" })),
            vec![(VALUE, "funding.refund_address")],
        ),
        (
            funding(json!({ "deposit_address": ADDRESS })),
            vec![("parameter_unexpected", "funding.deposit_address")],
        ),
        (
            funding(json!({ "policy": { "underpaid": "keep", "overpaid": "refund", "late": 5,
                    "never": "hold" } })),
            vec![
                ("parameter_unexpected", "funding.policy.never"),
                (VALUE, "funding.policy.underpaid"),
                (VALUE, "funding.policy.overpaid"),
                (VALUE, "funding.policy.late"),
            ],
        ),
        // What the mode's chain decides is told with the rest.
        (
            json!({ "amount": "0", "funding": { "rail": "stablecoin", "asset": "USDT",
                "chain": "ethereum" } }),
            vec![("parameter_range_invalid", "amount"), (VALUE, "funding.chain")],
        ),
        (
            json!({ "currency": "EUR", "funding": { "rail": "stablecoin", "asset": "USDT",
                "chain": "tron",
                "refund_address": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed" } }),
            vec![(VALUE, "currency"), (VALUE, "funding.refund_address")],
        ),
        (
            json!({ "metadata": { "a": null, "b": null, "c": "" } }),
            vec![
                (VALUE, "metadata.a"),
                (VALUE, "metadata.b"),
                ("parameter_min_length_invalid", "metadata.c"),
            ],
        ),
        // A shape fault hides the references that do not exist.
        (
            json!({ "sender_id": "sender_01JDK3Y5M8Q2X7N4V6T9R0ABCD", "currency": "EUR" }),
            vec![(VALUE, "currency")],
        ),
    ];
    for (change, wanted) in cases {
        let mut body = valid.clone();
        for (name, value) in change.as_object().unwrap() {
            body[name] = value.clone();
        }
        assert_eq!(
            actor.client.post("/v1/transfers", body).await.errors(400),
            faults(&wanted),
            "{change}"
        );
    }
    let required = [
        "sender_id",
        "beneficiary_id",
        "amount",
        "currency",
        "payout_currency",
        "quote_lock_id",
        "funding",
    ]
    .map(|field| (EMPTY, field));
    let mut found = actor.client.post("/v1/transfers", json!({})).await.errors(400);
    found.sort();
    let mut wanted = faults(&required);
    wanted.sort();
    assert_eq!(found, wanted);
    assert_eq!(actor.client.get("/v1/transfers").await.ok()["data"], json!([]));
    // The lock was not touched by any of it.
    actor.client.post("/v1/transfers", valid).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn references_that_do_not_exist_are_named_together() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let stranger = Actor::new(&server, "stranger").await;
    let beneficiary_id = actor.beneficiary(SETTLES).await;
    let valid = actor.transfer_body(&beneficiary_id, "1000.00", json!({})).await;
    let foreign_id = stranger.beneficiary(SETTLES).await;
    let foreign = stranger.transfer_body(&foreign_id, "1000.00", json!({})).await;
    let fields = ["sender_id", "beneficiary_id", "quote_lock_id"];
    for chosen in 1..8_u32 {
        let missing: Vec<&str> = fields
            .iter()
            .enumerate()
            .filter(|(bit, _)| chosen & (1 << bit) != 0)
            .map(|(_, field)| *field)
            .collect();
        for source in ["unknown", "foreign", "other_kind", "no_id"] {
            let mut body = valid.clone();
            for field in &missing {
                body[*field] = match source {
                    "unknown" => json!(format!(
                        "{}_01JDK3Y5M8Q2X7N4V6T9R0ABCD",
                        field.trim_end_matches("_id")
                    )),
                    "foreign" => foreign[*field].clone(),
                    "other_kind" => json!("transfer_01JDK3Y5M8Q2X7N4V6T9R0ABCD"),
                    _ => json!("nothing"),
                };
            }
            // A business problem in the same request is not judged yet.
            body["amount"] = json!("999.00");
            let wanted: Vec<_> = missing.iter().map(|field| ("object_not_found", *field)).collect();
            assert_eq!(
                actor.client.post("/v1/transfers", body).await.errors(404),
                faults(&wanted),
                "{source}"
            );
        }
    }
    actor.client.post("/v1/transfers", valid).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn business_rules_are_judged_together() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let client = &actor.client;
    let payable = actor.beneficiary(SETTLES).await;
    let waiting = id(&client.beneficiary("50100010000004").await);
    let sanctioned = id(&client
        .post(
            "/v1/senders",
            json!({ "name": "Test Sanctioned", "type": "individual", "country": "AE" }),
        )
        .await
        .ok());

    let mut body = actor.transfer_body(&waiting, "1000.00", json!({})).await;
    let answer = client.post("/v1/transfers", body.clone()).await;
    assert_eq!(answer.errors(400), faults(&[("beneficiary_not_payable", "beneficiary_id")]));
    assert!(stage::asks_for_new_key(&answer));

    body["beneficiary_id"] = json!(payable);
    body["amount"] = json!("1000.01");
    assert_eq!(
        client.post("/v1/transfers", body.clone()).await.errors(400),
        faults(&[("quote_lock_mismatch", "amount")])
    );
    // The same amount in another spelling is the same amount.
    body["amount"] = json!("1000");
    let transfer = client.post("/v1/transfers", body.clone()).await.ok();
    let again = client.post("/v1/transfers", body.clone()).await;
    assert_eq!(again.errors(400), faults(&[("quote_lock_already_used", "quote_lock_id")]));
    // Who lost the answer to the first one finds the transfer by it.
    assert_eq!(again.json()["errors"][0]["metadata"]["transfer_id"], transfer["id"]);
    assert!(!stage::asks_for_new_key(&again));

    let mut body = actor.transfer_body(&waiting, "1000.00", json!({})).await;
    body["sender_id"] = json!(sanctioned);
    body["amount"] = json!("5.00");
    actor.advance(300).await;
    let mut found = client.post("/v1/transfers", body.clone()).await.errors(400);
    found.sort();
    let mut codes: Vec<&str> = found.iter().map(|(code, _)| code.as_str()).collect();
    codes.dedup();
    assert_eq!(
        codes,
        [
            "beneficiary_not_payable",
            "quote_lock_expired",
            "quote_lock_mismatch",
            "sender_not_eligible"
        ]
    );
    let lock = client
        .get(&format!("/v1/quote_locks/{}", body["quote_lock_id"].as_str().unwrap()))
        .await
        .ok();
    assert_eq!((lock["status"].as_str(), &lock["transfer_id"]), (Some("expired"), &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_never_shared_by_two_transfers() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let beneficiary_id = actor.beneficiary(SETTLES).await;
    let body = actor.transfer_body(&beneficiary_id, "1000.00", json!({})).await;
    let mut attempts = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (client, body) = (actor.client.twin(), body.clone());
        attempts.spawn(async move { client.post("/v1/transfers", body).await });
    }
    let answers = attempts.join_all().await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1);
    for answer in answers.iter().filter(|answer| answer.status != 200) {
        assert_eq!(answer.error(400), "quote_lock_already_used");
    }
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_purpose_follows_the_names_and_the_operator() {
    for (setting, sender_name, wanted) in
        [("", "Asha Rao", "P0014"), ("", "Ravi Rao", "P1301"), ("P1302", "Ravi Rao", "P1302")]
    {
        let server = stage::server_with(&[("HUNDI_PURPOSE_CODE", setting)]).await;
        let actor = Actor::new(&server, "default").await;
        let beneficiary_id = actor.beneficiary(SETTLES).await;
        let sender = actor
            .client
            .post(
                "/v1/senders",
                json!({ "name": sender_name, "type": "individual", "country": "AE" }),
            )
            .await
            .ok();
        let mut body = actor.transfer_body(&beneficiary_id, "1000.00", json!({})).await;
        body["sender_id"] = sender["id"].clone();
        let transfer = actor.client.post("/v1/transfers", body).await.ok();
        assert_eq!(transfer["purpose_code"], wanted, "{sender_name}, setting {setting:?}");
        actor.pay(&transfer, "1000.00").await;
        actor.finalise().await;
        assert_eq!(actor.payout_of(&transfer).await["purpose_code"], wanted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_bounds_the_creation_and_the_rate_then_holds_until_the_funding_ends() {
    let server =
        stage::server_with(&[("HUNDI_FEE", "9.00"), ("HUNDI_FUNDING_SECONDS", "900")]).await;
    let actor = Actor::new(&server, "default").await;
    let beneficiary_id = actor.beneficiary(SETTLES).await;
    let last_moment = actor.transfer_body(&beneficiary_id, "1000.00", json!({})).await;
    actor.advance(299).await;
    let transfer = actor.client.post("/v1/transfers", last_moment).await.ok();
    assert_eq!(transfer["funding"]["expires_at"], actor.now() + 900);
    assert_eq!(transfer["fee"]["amount"], "9.00");
    assert_eq!(
        (transfer["amount"].as_str(), transfer["funding"]["amount_expected"].as_str()),
        (Some("1000.00"), Some("1000.00"))
    );
    assert_eq!(transfer["payout_amount"], "87616.78");
    let too_late = actor.transfer_body(&beneficiary_id, "1000.00", json!({})).await;
    actor.advance(300).await;
    assert_eq!(actor.client.post("/v1/transfers", too_late).await.error(400), "quote_lock_expired");
    // The lock's own expiry is long past; the money that comes in time is paid at the lock's rate.
    actor.pay(&transfer, "1000.00").await;
    actor.finalise().await;
    let shown = actor.shown(&transfer).await;
    assert_eq!(
        (shown["status"].as_str(), shown["payout_amount"].as_str()),
        (Some("payout_processing"), Some("87616.78"))
    );
    assert_eq!(shown["funding"]["expires_at"], transfer["funding"]["expires_at"]);
    let unfunded = actor.transfer_to(&beneficiary_id, "1000.00", json!({})).await;
    actor.advance(900).await;
    assert_eq!(
        actor.shown(&unfunded).await["status"],
        "funding",
        "the last second is still in time"
    );
    actor.advance(60).await;
    let expired = actor.shown(&unfunded).await;
    assert_eq!(
        (expired["status"].as_str(), expired["funding"]["status"].as_str()),
        (Some("expired"), Some("expired"))
    );
    assert_eq!(expired["funding"]["expires_at"], unfunded["funding"]["expires_at"]);
    actor.assert_consistent(&unfunded).await;
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_transfer_that_never_saw_money_can_be_cancelled() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let beneficiary_id = actor.beneficiary(SETTLES).await;
    let transfer = actor.transfer_to(&beneficiary_id, "1000.00", json!({})).await;
    let cancelled = actor.cancel(&transfer).await.ok();
    assert_eq!(
        (cancelled["status"].as_str(), cancelled["funding"]["status"].as_str()),
        (Some("cancelled"), Some("cancelled"))
    );
    assert_eq!(stage::statuses(&cancelled), ["funding", "cancelled"]);
    assert_eq!(actor.shown(&transfer).await, cancelled);
    assert_eq!(actor.cancel(&transfer).await.error(400), "transfer_not_cancellable");
    actor.assert_consistent(&transfer).await;
    actor.advance(2 * stage::DAY).await;
    assert_eq!(
        actor.shown(&transfer).await["status"],
        "cancelled",
        "what is cancelled does not expire"
    );

    // A deposit that was seen is enough, also before it is in a block, in a block, and when it is
    // too little.
    let beneficiary_id = actor.beneficiary(SETTLES).await;
    let seen = actor.transfer_to(&beneficiary_id, "1000.00", json!({})).await;
    actor.pay(&seen, "1.00").await;
    for moment in ["seen", "in a block", "final"] {
        assert_eq!(actor.cancel(&seen).await.error(400), "transfer_not_cancellable", "{moment}");
        actor.advance(STEP).await;
    }
    assert_eq!(actor.shown(&seen).await["status"], "funding");
    let settled = actor.transfer_to(&beneficiary_id, "1000.00", json!({})).await;
    actor.pay(&settled, "1000.00").await;
    actor.advance(10 * STEP).await;
    assert_eq!(actor.cancel(&settled).await.error(400), "transfer_not_cancellable");
    let key = actor.client.fresh_key();
    let plain = actor.transfer_to(&beneficiary_id, "1000.00", json!({})).await;
    let path = format!("/v1/transfers/{}/cancel", id(&plain));
    assert_eq!(
        actor.client.post(&path, json!({ "reason": "x" })).await.errors(400),
        faults(&[("parameter_unexpected", "reason")])
    );
    assert_eq!(
        actor.client.post_raw(&path, &key, "").await.ok()["status"],
        "cancelled",
        "an empty body counts as {{}}"
    );
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_belongs_to_one_transfer_for_ever() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let client = &actor.client;
    let beneficiary_id = actor.beneficiary(SETTLES).await;
    let with = async |reference: Value| {
        let mut body = actor.transfer_body(&beneficiary_id, "10.00", json!({})).await;
        body["reference"] = reference;
        body
    };
    let first = client.post("/v1/transfers", with(json!("PO 7/~")).await).await.ok();
    assert_eq!(first["reference"], "PO 7/~");
    for none in [json!(null), json!("")] {
        for _ in 0..2 {
            let made = client.post("/v1/transfers", with(none.clone()).await).await.ok();
            assert_eq!(made["reference"], json!(null));
        }
    }
    let body = with(json!("PO 7/~")).await;
    let second = client.post("/v1/transfers", body.clone()).await;
    assert_eq!(second.errors(400), faults(&[("reference_already_used", "reference")]));
    assert_eq!(second.json()["errors"][0]["metadata"]["transfer_id"], first["id"]);
    let lock = format!("/v1/quote_locks/{}", body["quote_lock_id"].as_str().unwrap());
    assert_eq!(client.get(&lock).await.ok()["status"], "active", "nothing was taken");
    // Also after the first one has ended.
    actor.cancel(&first).await.ok();
    let third = client.post("/v1/transfers", body).await;
    assert_eq!(third.error(400), "reference_already_used");
    let other = Actor::new(&server, "other").await;
    let others = other.beneficiary(SETTLES).await;
    let mut body = other.transfer_body(&others, "10.00", json!({})).await;
    body["reference"] = json!("PO 7/~");
    other.client.post("/v1/transfers", body).await.ok();
    let listed = client.get("/v1/transfers?reference=PO%207/~").await.ok();
    assert_eq!(listed["data"].as_array().unwrap().iter().map(id).collect::<Vec<_>>(), [id(&first)]);
    for (reference, code) in [
        (json!("x".repeat(65)), "parameter_max_length_invalid"),
        (json!("caf\u{e9}"), "parameter_value_invalid"),
        (json!(7), "parameter_value_invalid"),
    ] {
        let refused = client.post("/v1/transfers", with(reference).await).await;
        assert_eq!(refused.errors(400), faults(&[(code, "reference")]));
    }
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_transfers_made_at_once_one_takes_the_reference() {
    const ROUNDS: usize = 5;
    const WRITERS: usize = 6;
    let server = crate::support::Server::start().await;
    let client = server.client().await;
    let first = client.transfer_body("50100012345678", "10.00").await;
    for round in 0..ROUNDS {
        let mut running = Vec::new();
        for _ in 0..WRITERS {
            let twin = client.twin();
            let mut body = first.clone();
            body["quote_lock_id"] = json!(id(&twin.quote_lock("10.00").await));
            body["reference"] = json!(format!("round-{round}"));
            running.push(tokio::spawn(async move { twin.post("/v1/transfers", body).await }));
        }
        let (mut made, mut refused) = (Vec::new(), Vec::new());
        for answer in running {
            let answer = answer.await.unwrap();
            if answer.status == 200 {
                made.push(id(&answer.json()));
            } else {
                assert_eq!(answer.error(400), "reference_already_used");
                refused.push(answer.json()["errors"][0]["metadata"]["transfer_id"].clone());
            }
        }
        assert_eq!((made.len(), refused.len()), (1, WRITERS - 1));
        assert!(refused.iter().all(|named| *named == json!(made[0])), "{refused:?}");
    }
    server.assert_book();
}
