//! `GET /v1/statements`: what a period moved, as JSON and as CSV, with totals that add up.

use hundi::chains::address::ChainAddress;
use hundi::kernel::id::kind;
use hundi::kernel::{Id, Mode, Scope};
use hundi::transfers::refunding;
use serde_json::{Value, json};

use crate::stage::{self, ADDRESS, Actor, DAY, SETTLES, keys, micros};
use crate::support::id;

/// An amount in millionths, which may be below zero.
fn units(amount: &Value) -> i64 {
    match amount.as_str().unwrap().strip_prefix('-') {
        Some(positive) => -micros(&json!(positive)),
        None => micros(amount),
    }
}

/// Checks that every total adds up, and answers the closing amounts by currency.
fn closing(statement: &Value) -> Vec<(String, i64)> {
    let totals = statement["totals"].as_array().unwrap();
    let add_up = |total: &Value| {
        assert_eq!(
            units(&total["opening"]) + units(&total["movements"]),
            units(&total["closing"]),
            "{total}"
        );
        (total["currency"].as_str().unwrap().to_owned(), units(&total["closing"]))
    };
    totals.iter().map(add_up).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_tells_a_period_from_the_deposit_to_the_reference() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let begun = actor.now();
    let transfer = actor.transfer(SETTLES, json!({})).await;
    actor.pay(&transfer, "1000.00").await;
    actor.finalise().await;
    let halfway = actor.now() + 1;
    actor.advance(DAY).await;
    let settled = actor.shown(&transfer).await;
    assert_eq!(settled["status"], "payout_settled");

    let path = format!("/v1/statements?from={begun}&to={}", actor.now() + 1);
    let statement = actor.client.get(&path).await.ok();
    assert_eq!(statement["object"], "statement");
    let rows = statement["data"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{statement}");
    let (row, payout) = (&rows[0], &settled["payout"]);
    for (told, known) in [
        (&row["transfer_id"], &settled["id"]),
        (&row["status"], &settled["status"]),
        (&row["payout_id"], &payout["id"]),
        (&row["payout_amount"], &payout["amount"]),
        (&row["unique_transaction_reference"], &payout["unique_transaction_reference"]),
        (&row["inr_out"], &payout["amount"]),
        (&row["usdt_in"], &json!("1000.00")),
    ] {
        assert_eq!(told, known, "{row}");
    }
    assert_eq!(row["deposit_transaction_hashes"].as_array().unwrap().len(), 1);
    let closed = closing(&statement);

    // Two periods that meet tell the same as one over both.
    let part = async |from: i64, to: i64| {
        actor.client.get(&format!("/v1/statements?from={from}&to={to}")).await.ok()
    };
    let (first, second) = (part(begun, halfway).await, part(halfway, actor.now() + 1).await);
    assert_ne!(closing(&first), closed, "the payout was settled later");
    assert_eq!(closing(&second), closed);
    for (one, next) in
        first["totals"].as_array().unwrap().iter().zip(second["totals"].as_array().unwrap())
    {
        assert_eq!(one["closing"], next["opening"]);
    }

    // The same as CSV: a head, a line for the transfer, and one for each currency.
    let csv = actor.client.get(&format!("{path}&format=csv")).await;
    assert_eq!((csv.status, csv.header("content-type")), (200, Some("text/csv; charset=utf-8")));
    let text = String::from_utf8(csv.body.to_vec()).unwrap();
    let lines: Vec<&str> = text.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 1 + 1 + statement["totals"].as_array().unwrap().len(), "{text}");
    assert!(lines[1].starts_with(&format!("transfer,{},payout_settled,", id(&settled))), "{text}");
    assert!(lines.iter().all(|line| line.split(',').count() == lines[0].split(',').count()));

    // A period before anything moved is empty, and a period that is none is refused.
    let nothing = part(begun - DAY, begun).await;
    assert_eq!(nothing["data"], json!([]));
    assert!(closing(&nothing).iter().all(|(_, units)| *units == 0));
    assert_eq!(keys(&nothing), keys(&statement));
    for (query, field_name, told) in [
        (format!("from={begun}&to={begun}"), "from", "before to"),
        ("to=0".to_owned(), "to", "1970"),
        (
            format!("from={}&to={}", begun, begun + 366 * DAY + 1),
            "from",
            "366 days (31622400 seconds)",
        ),
        ("format=xml".to_owned(), "format", "csv"),
    ] {
        let refused = actor.client.get(&format!("/v1/statements?{query}")).await;
        let wanted = ("request_query_parameter_invalid".to_owned(), Some(field_name.to_owned()));
        assert_eq!(refused.errors(400), [wanted], "{query}");
        let message = refused.json()["errors"][0]["message"].to_string();
        assert!(message.contains(told), "{query}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_sums_every_refund_and_says_where_its_lists_of_hashes_end() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let begun = actor.now();
    let transfer = actor.transfer(SETTLES, json!({})).await;
    actor.pay(&transfer, "1000.00").await;
    actor.advance(DAY).await;
    // 101 payments after the end, each given back.
    let mut unmatched: Vec<Id<kind::Deposit>> = Vec::new();
    for _ in 0..101 {
        unmatched.push(Id::parse(&id(&actor.pay(&transfer, "1.01").await)).unwrap());
    }
    actor.finalise().await;
    let services = server.app.state.services.clone();
    let refunded = server.app.state.store.write(move |tx, now| {
        let scope = Scope::new(1, Mode::Test);
        now.enter_account(hundi::keys::rows::clock_offset_seconds(tx, scope)?);
        for id in &unmatched {
            let deposit = hundi::deposits::rows::find(tx, scope, *id)?.unwrap();
            let to = ChainAddress::parse(ADDRESS);
            refunding::refund_unmatched(tx, now, &services, &deposit, to.ok())?;
        }
        Ok(())
    });
    refunded.await.unwrap();
    actor.finalise().await;

    let path = format!("/v1/statements?from={begun}&to={}", actor.now() + 1);
    let statement = actor.client.get(&path).await.ok();
    let row = &statement["data"][0];
    assert_eq!((&row["usdt_in"], &row["refunded"]), (&json!("1102.01"), &json!("102.01")));
    let listed = |name: &str| row[name].as_array().unwrap().len();
    assert_eq!(
        (listed("deposit_transaction_hashes"), &row["deposits_count"]),
        (100, &json!(102)),
        "a list that is cut says so"
    );
    assert_eq!((listed("refund_transaction_hashes"), &row["refunds_count"]), (100, &json!(101)));
    let csv = actor.client.get(&format!("{path}&format=csv")).await;
    let text = String::from_utf8(csv.body.to_vec()).unwrap();
    let lines: Vec<Vec<&str>> =
        text.split_terminator("\r\n").map(|line| line.split(',').collect()).collect();
    let cell = |name: &str| lines[1][lines[0].iter().position(|head| *head == name).unwrap()];
    for (name, wanted) in
        [("refunded_usdt", "102.01"), ("deposits_count", "102"), ("refunds_count", "101")]
    {
        assert_eq!(cell(name), wanted, "{name}");
    }
    assert!(lines.iter().all(|line| line.len() == lines[0].len()));
    closing(&statement);
}
