//! Quote locks: limits, arithmetic, life and use.

use serde_json::{Value, json};

use crate::stage::{self, Actor, faults};
use crate::support::{Server, id};

fn ask(amount: Value) -> Value {
    json!({ "sell_currency": "USD", "buy_currency": "INR", "amount": amount })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_tells_the_limits_of_amounts_at_the_field() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let document: Value = actor.client.get("/openapi.json").await.json();
    let transfer = actor.transfer(stage::SETTLES, json!({})).await;
    let deposit = format!("/v1/test_helpers/transfers/{}/deposit", id(&transfer));
    let validation = json!({ "name": "Asha Rao", "account_number": "50100012345678",
        "ifsc": "HDFC0000001", "account_type": "nre", "amount": "0.00" });
    for (path, body, fields) in [
        (
            "/v1/quote_locks",
            ask(json!("1.00")),
            vec!["CreateQuoteLock/properties/amount", "CreateTransfer/properties/amount"],
        ),
        (&deposit, json!({ "amount": "1000001" }), vec!["SimulateDeposit/properties/amount"]),
        ("/v1/beneficiaries/validate", validation, vec!["ValidateBeneficiary/properties/amount"]),
    ] {
        let refused = actor.client.post(path, body).await;
        assert_eq!(refused.errors(400), faults(&[("parameter_range_invalid", "amount")]));
        let metadata = &refused.json()["errors"][0]["metadata"];
        for field in fields {
            let pointer = format!("/components/schemas/{field}/description");
            let told = document.pointer(&pointer).unwrap().as_str().unwrap();
            let words: Vec<&str> =
                told.split([' ', ',']).map(|word| word.trim_end_matches('.')).collect();
            for limit in ["minimum", "maximum"] {
                let limit = metadata[limit].as_str().unwrap();
                assert!(words.contains(&limit), "{field} does not tell {limit}: {told}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_shows_every_field() {
    let server = stage::server_with(&[
        ("HUNDI_FEE", "2.50"),
        ("HUNDI_SPREAD_BASIS_POINTS", "100"),
        ("HUNDI_TEST_MID_MARKET_RATE", "88.4125"),
    ])
    .await;
    let actor = Actor::new(&server, "default").await;
    let mut body = ask(json!("1000"));
    body["metadata"] = json!({ "cart": "7" });
    let lock = actor.client.post("/v1/quote_locks", body).await.ok();
    // 88.412500 less 1 % is 87.528375; 997.50 at that is 87309.5540…, rounded down.
    let wanted = json!({
        "object": "quote_lock", "id": lock["id"], "status": "active", "sell_currency": "USD",
            "sell_amount": "1000.00",
        "buy_currency": "INR", "buy_amount": "87309.55", "amount": "1000.00", "rate": "87.528375",
            "mid_market_rate": "88.412500",
        "fee": { "amount": "2.50", "currency": "USD", "details": lock["fee"]["details"] },
        "expires_at": actor.now() + 300, "transfer_id": null, "metadata": { "cart": "7" },
            "created": actor.now(), "livemode": false,
    });
    assert_eq!(lock, wanted);
    let details = lock["fee"]["details"].as_array().unwrap();
    assert_eq!(stage::keys(&details[0]), ["amount", "name"]);
    assert_eq!(
        details.iter().map(|detail| stage::micros(&detail["amount"])).sum::<i64>(),
        2_500_000
    );
    assert_eq!(actor.client.get(&format!("/v1/quote_locks/{}", id(&lock))).await.ok(), wanted);
    assert!(id(&lock).starts_with("quote_lock_"));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_fee_and_spread_the_market_rate_holds() {
    let server = Server::start().await;
    let client = server.client().await;
    let lock = client.quote_lock("1000.00").await;
    assert_eq!(lock["fee"], json!({ "amount": "0.00", "currency": "USD", "details": [] }));
    assert_eq!(
        (lock["rate"].as_str(), lock["mid_market_rate"].as_str()),
        (Some("88.412500"), Some("88.412500"))
    );
    assert_eq!(lock["metadata"], json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_bought_is_rounded_down_to_the_paisa() {
    for (rate, amount, bought) in [
        ("88.412500", "10.00", "884.12"),
        ("88.412500", "10.01", "885.00"),
        ("88.412500", "49999.99", "4420624.11"),
        ("83.333333", "30.00", "2499.99"),
        ("99.999999", "10", "999.99"),
        ("80.000000", "12.5", "1000.00"),
    ] {
        let server = Server::start_with(&[("HUNDI_TEST_MID_MARKET_RATE", rate)]).await;
        let client = server.client().await;
        let lock = client.quote_lock(amount).await;
        assert_eq!(
            (lock["rate"].as_str(), lock["buy_amount"].as_str()),
            (Some(rate), Some(bought)),
            "{amount}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_named_and_settable() {
    let server = Server::start().await;
    let client = server.client().await;
    let range = |minimum: &str, maximum: &str| {
        json!({ "field_name": "amount", "minimum": minimum,
        "maximum": maximum })
    };
    for (amount, accepted) in [
        ("0", false),
        ("9.99", false),
        ("10.00", true),
        ("10", true),
        ("50000.00", true),
        ("50000.01", false),
        ("999999999999.99", false),
    ] {
        let answer = client.post("/v1/quote_locks", ask(json!(amount))).await;
        if accepted {
            answer.ok();
        } else {
            assert_eq!(answer.error(400), "parameter_range_invalid", "{amount}");
            assert_eq!(answer.json()["errors"][0]["metadata"], range("10.00", "50000.00"));
        }
    }
    let server = Server::start_with(&[
        ("HUNDI_AMOUNT_MINIMUM", "100.00"),
        ("HUNDI_AMOUNT_MAXIMUM", "200.50"),
    ])
    .await;
    let client = server.client().await;
    let answer = client.post("/v1/quote_locks", ask(json!("99.99"))).await;
    assert_eq!(answer.json()["errors"][0]["metadata"], range("100.00", "200.50"));
    client.quote_lock("200.50").await;
    let corridor = &client.get("/v1/corridors").await.ok()["data"][0];
    assert_eq!(
        (corridor["amount_minimum"].as_str(), corridor["amount_maximum"].as_str()),
        (Some("100.00"), Some("200.50"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn amounts_follow_the_grammar() {
    let server = Server::start().await;
    let client = server.client().await;
    let wrong = [
        json!(1000),
        json!(1000.0),
        json!("1000.000"),
        json!("01000"),
        json!("1e3"),
        json!("+1000"),
        json!("-1000"),
        json!(" 1000"),
        json!("1000 "),
        json!("1,000"),
        json!("1000."),
        json!(".5"),
        json!("١٠٠٠"),
        json!("0x10"),
        json!("NaN"),
        json!("1000000000000"),
        json!(true),
        json!(["1000"]),
    ];
    for amount in wrong {
        let answer = client.post("/v1/quote_locks", ask(amount.clone())).await;
        assert_eq!(
            answer.errors(400),
            faults(&[("parameter_value_invalid", "amount")]),
            "{amount}"
        );
    }
    for amount in ["0", "0.00"] {
        let answer = client.post("/v1/quote_locks", ask(json!(amount))).await;
        assert_eq!(
            answer.errors(400),
            faults(&[("parameter_range_invalid", "amount")]),
            "{amount}"
        );
    }
    let many = json!({ "sell_currency": "EUR", "buy_currency": "USD", "amount": "x",
        "speed": "fast", "metadata": { "a": 1 } });
    let mut found = client.post("/v1/quote_locks", many).await.errors(400);
    found.sort();
    let mut wanted = faults(&[
        ("parameter_value_invalid", "sell_currency"),
        ("parameter_value_invalid", "buy_currency"),
        ("parameter_value_invalid", "amount"),
        ("parameter_value_invalid", "metadata.a"),
        ("parameter_unexpected", "speed"),
    ]);
    wanted.sort();
    assert_eq!(found, wanted);
    let required = [
        ("parameter_empty", "sell_currency"),
        ("parameter_empty", "buy_currency"),
        ("parameter_empty", "amount"),
    ];
    assert_eq!(client.post("/v1/quote_locks", json!({})).await.errors(400), faults(&required));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_expires_by_the_test_clock_and_its_status_can_be_filtered() {
    let server = stage::server_with(&[("HUNDI_QUOTE_LOCK_SECONDS", "120")]).await;
    let actor = Actor::new(&server, "default").await;
    let beneficiary_id = actor.beneficiary(stage::SETTLES).await;
    let used = actor.transfer_to(&beneficiary_id, "1000.00", json!({})).await["quote_lock_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let old = actor.client.quote_lock("20.00").await;
    assert_eq!(old["expires_at"], actor.now() + 120);
    let status = async |id: &str| {
        actor.client.get(&format!("/v1/quote_locks/{id}")).await.ok()["status"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    actor.advance(119).await;
    assert_eq!(status(&id(&old)).await, "active");
    let fresh = actor.client.quote_lock("30.00").await;
    actor.advance(1).await;
    assert_eq!(status(&id(&old)).await, "expired");
    assert_eq!(status(&used).await, "used");
    for (word, wanted) in [("active", id(&fresh)), ("used", used), ("expired", id(&old))] {
        let list = actor.client.get(&format!("/v1/quote_locks?status={word}")).await.ok();
        let found: Vec<_> = list["data"].as_array().unwrap().iter().map(id).collect();
        assert_eq!(found, [wanted], "{word}");
        assert_eq!(list["data"][0]["status"], word);
    }
    assert_eq!(
        actor.client.get("/v1/quote_locks?status=open").await.errors(400),
        faults(&[("request_query_parameter_invalid", "status")])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_rate_is_quoted_while_the_token_is_off_its_peg() {
    for (usdt_usd, quoted) in [
        ("0.99", false),
        ("0.994999", false),
        ("0.995", true),
        ("1.005", true),
        ("1.005001", false),
    ] {
        let server = Server::start_with(&[("HUNDI_TEST_USDT_USD", usdt_usd)]).await;
        let client = server.client().await;
        let key = client.fresh_key();
        let answer = client.post_with("/v1/quote_locks", &key, ask(json!("1000.00"))).await;
        if quoted {
            answer.ok();
            continue;
        }
        assert_eq!(answer.error(503), "quote_unavailable", "{usdt_usd}");
        assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() > 0);
        let again = client.post_with("/v1/quote_locks", &key, ask(json!("1000.00"))).await;
        assert_eq!(
            (again.status, again.header("idempotent-replayed")),
            (503, None),
            "a 503 is not stored"
        );
        assert_eq!(client.get("/v1/quote_locks").await.ok()["data"], json!([]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_to_be_bought_can_be_named_instead() {
    let server = stage::server_with(&[("HUNDI_FEE", "2.50")]).await;
    let actor = Actor::new(&server, "default").await;
    let client = &actor.client;
    let with = |change: Value| {
        let mut body = json!({ "sell_currency": "USD", "buy_currency": "INR" });
        for (name, value) in change.as_object().unwrap() {
            body[name] = value.clone();
        }
        body
    };
    let lock = client.post("/v1/quote_locks", with(json!({ "buy_amount": "50000" }))).await.ok();
    // 50000 / 88.4125 is 565.530892, and 2.50 stay: 568.04 buy 50000.80, 568.03 only 49999.92.
    for (field, wanted) in
        [("buy_amount", "50000.00"), ("sell_amount", "568.04"), ("amount", "568.04")]
    {
        assert_eq!(lock[field], wanted, "{field}");
    }
    let beneficiary_id = actor.beneficiary(stage::SETTLES).await;
    let mut body = actor.transfer_body(&beneficiary_id, "568.04", json!({})).await;
    body["quote_lock_id"] = lock["id"].clone();
    let transfer = client.post("/v1/transfers", body).await.ok();
    assert_eq!(transfer["payout_amount"], "50000.00");
    actor.pay(&transfer, "568.04").await;
    actor.advance(10 * stage::STEP).await;
    assert_eq!(actor.shown(&transfer).await["payout"]["amount"], "50000.00");
    for (change, wanted) in [
        (json!({}), ("parameter_empty", "amount")),
        (json!({ "amount": "", "buy_amount": null }), ("parameter_empty", "amount")),
        (json!({ "amount": "20", "buy_amount": "20" }), ("parameter_unexpected", "buy_amount")),
        (json!({ "buy_amount": 20 }), ("parameter_value_invalid", "buy_amount")),
        (json!({ "buy_amount": "0" }), ("parameter_range_invalid", "buy_amount")),
        (json!({ "buy_amount": "5000000" }), ("parameter_range_invalid", "buy_amount")),
    ] {
        let answer = client.post("/v1/quote_locks", with(change.clone())).await;
        assert_eq!(answer.errors(400), faults(&[wanted]), "{change}");
    }
    client.post("/v1/quote_locks", with(json!({ "amount": "20", "buy_amount": "" }))).await.ok();
    // The ends that a refusal names are taken, and nothing beyond them.
    let refused = client.post("/v1/quote_locks", with(json!({ "buy_amount": "1" }))).await;
    let ends = refused.json()["errors"][0]["metadata"].clone();
    for (end, sold) in [("minimum", "10.00"), ("maximum", "50000.00")] {
        let body = with(json!({ "buy_amount": ends[end] }));
        assert_eq!(client.post("/v1/quote_locks", body).await.ok()["sell_amount"], sold);
    }
    stage::assert_book(&server);
}
