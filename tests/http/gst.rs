//! GST on the conversion, where the operator charges it, from the quote lock to the payment advice
//! and the book.

use serde_json::json;

use crate::support::{Client, Server, id};

fn right_book(server: &Server) {
    server.assert_book();
}

async fn tax_owed(server: &Server) -> i64 {
    let sql = "SELECT CAST(COALESCE(SUM(debit_units - credit_units), 0) AS BIGINT) FROM \
     ledger_balances WHERE account = 'tax_payable' AND currency = 'INR'";
    server.app.state.store.write(move |tx, _| Ok(tx.row(sql, &[])?.unwrap().int()?)).await.unwrap()
}

async fn paid(client: &Client, account_number: &str, status: &str) -> serde_json::Value {
    let body = client.transfer_body(account_number, "1000.00").await;
    let transfer = client.post("/v1/transfers", body).await.ok();
    client.deposit(&transfer, json!({})).await;
    client.wait_status(&format!("/v1/transfers/{}", id(&transfer)), status).await
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_deducted_from_the_rupees_and_owed_in_the_book() {
    let server = Server::start_with(&[("HUNDI_GST", "true"), ("HUNDI_FEE", "1.00")]).await;
    let client = server.client().await;
    // 999.00 USD at 88.412500 are 88324.08 INR; the value is 883.24 (883.2408) and 18 % of it
    // 158.98.
    let lock = client.quote_lock("1000.00").await;
    let fee = json!({"amount": "1.00", "currency": "USD", "details": [
        {"name": "service_fee", "amount": "1.00"},
        {"name": "gst", "amount": "158.98", "currency": "INR", "taxable_value": "883.24",
            "rate_percent": "18"}]});
    assert_eq!((&lock["buy_amount"], &lock["fee"]), (&json!("88165.10"), &fee));
    let settled = paid(&client, "50100012345678", "payout_settled").await;
    assert_eq!((&settled["payout_amount"], &settled["fee"]), (&json!("88165.10"), &fee));
    assert_eq!(settled["payout"]["amount"], "88165.10");
    assert_eq!(tax_owed(&server).await, 15_898);
    let payout = settled["payout"]["id"].as_str().unwrap().to_owned();
    client
        .wait_until(&format!("/v1/payouts/{payout}"), |found| {
            found["payment_advice"]["status"] == "available"
        })
        .await;
    let advice = client.get(&format!("/v1/payouts/{payout}/payment_advice")).await.ok();
    assert_eq!(
        advice["gst"],
        json!({"taxable_value": "883.24", "rate_percent": "18", "amount": "158.98"})
    );
    // A payout that fails or comes back owes no tax.
    paid(&client, "50100012341001", "refund_processing").await;
    paid(&client, "50100012341002", "refund_processing").await;
    assert_eq!(tax_owed(&server).await, 15_898);
    right_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_amount_that_the_tax_eats_is_refused_with_the_least_that_is_not() {
    let server =
        Server::start_with(&[("HUNDI_GST", "true"), ("HUNDI_AMOUNT_MINIMUM", "0.01")]).await;
    let client = server.client().await;
    let ask =
        |amount: &str| json!({"sell_currency": "USD", "buy_currency": "INR", "amount": amount});
    let refused = client.post("/v1/quote_locks", ask("0.50")).await;
    assert_eq!(refused.error(400), "parameter_range_invalid");
    assert_eq!(refused.json()["errors"][0]["metadata"]["minimum"], "0.51");
    assert_eq!(client.post("/v1/quote_locks", ask("0.51")).await.ok()["buy_amount"], "0.09");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_it_the_shapes_are_as_ever() {
    let server = Server::start_with(&[("HUNDI_FEE", "1.00")]).await;
    let client = server.client().await;
    let lock = client.quote_lock("1000.00").await;
    assert_eq!(
        lock["fee"],
        json!({"amount": "1.00", "currency": "USD", "details": [{"name": "service_fee",
            "amount": "1.00"}]})
    );
    assert_eq!(lock["buy_amount"], "88324.08");
    let settled = paid(&client, "50100012345678", "payout_settled").await;
    let payout = settled["payout"]["id"].as_str().unwrap().to_owned();
    client
        .wait_until(&format!("/v1/payouts/{payout}"), |found| {
            found["payment_advice"]["status"] == "available"
        })
        .await;
    let advice = client.get(&format!("/v1/payouts/{payout}/payment_advice")).await.ok();
    assert!(advice.get("gst").is_none());
    assert_eq!(tax_owed(&server).await, 0);
    // Names of bank and branch come from the directory; a code that it does not know has none, and
    // is payable all the same.
    let known = client
        .get(&format!("/v1/beneficiaries/{}", settled["beneficiary_id"].as_str().unwrap()))
        .await
        .ok();
    assert_eq!(
        (&known["bank_name"], known["branch_name"].is_string()),
        (&json!("HDFC Bank"), true)
    );
    let body = json!({"name": "Asha Rao", "account_number": "50100012345678", "ifsc": "HDFC0ZZZZZZ",
        "account_type": "nre"});
    let unknown = client.post("/v1/beneficiaries", body).await.ok();
    assert!(unknown["bank_name"].is_null() && unknown["branch_name"].is_null());
    client.wait_status(&format!("/v1/beneficiaries/{}", id(&unknown)), "active").await;
}
