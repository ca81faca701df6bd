//! The interface specification's six steps, and the bodies they send.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Answer, Client, Trouble, fresh_key, until};

/// "Everything moves by itself within a second or two"; a busy machine gets more before a test
/// calls it stuck.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What the six steps made.
#[derive(Clone, Debug)]
pub struct Payment {
    pub beneficiary_id: String,
    pub sender_id: String,
    pub quote_lock_id: String,
    pub transfer_id: String,
    pub deposit_id: String,
    /// The transfer as it reads after settlement.
    pub settled: Value,
}

/// An account number that ends in none of the steering digits.
pub fn beneficiary_body() -> Value {
    json!({
        "name": "Asha Raghunathan", "account_number": "50100012345678", "ifsc": "HDFC0000001",
            "account_type": "nre",
        "email": "asha@example.com", "phone": "+919812345678",
            "metadata": { "reference": "beneficiary" },
    })
}

pub fn sender_body() -> Value {
    json!({
        "name": "John Miller", "type": "individual", "country": "US", "email": "john@example.com",
        "address": { "line1": "1 Main Street", "city": "Austin", "state": "TX",
            "postal_code": "78701", "country": "US" },
        "metadata": { "reference": "sender" },
    })
}

pub fn quote_lock_body(amount: &str) -> Value {
    json!({ "sell_currency": "USD", "buy_currency": "INR", "amount": amount })
}

pub fn transfer_body(
    sender_id: &str,
    beneficiary_id: &str,
    quote_lock_id: &str,
    amount: &str,
) -> Value {
    json!({
        "sender_id": sender_id, "beneficiary_id": beneficiary_id, "amount": amount,
            "currency": "USD", "payout_currency": "INR",
        "quote_lock_id": quote_lock_id, "funding": { "rail": "stablecoin", "asset": "USDT",
            "chain": "tron" },
    })
}

/// Creates a beneficiary and waits until it can be paid.
pub fn beneficiary_payable(client: &mut Client) -> String {
    let made =
        client.post("/v1/beneficiaries", &beneficiary_body()).expect_success("the beneficiary");
    let id = text(&made, "id");
    until("the beneficiary to become payable", PATIENCE, || {
        let seen = client.get(&format!("/v1/beneficiaries/{id}")).expect_success("the beneficiary");
        (seen["status"] == "active" && seen["payouts_enabled"] == true).then_some(())
    });
    id
}

pub fn sender(client: &mut Client) -> String {
    text(&client.post("/v1/senders", &sender_body()).expect_success("the sender"), "id")
}

/// One request for a sender, whatever comes of it.
pub fn sender_once(client: &mut Client) -> Result<Answer, Trouble> {
    let body = sender_body().to_string();
    client.once("POST", "/v1/senders", Some(&fresh_key()), Some(body.as_bytes()))
}

pub fn quote_lock(client: &mut Client, amount: &str) -> String {
    text(
        &client.post("/v1/quote_locks", &quote_lock_body(amount)).expect_success("the quote lock"),
        "id",
    )
}

/// Steps 1 to 4: a transfer that awaits its deposit.
pub fn transfer_unfunded(client: &mut Client, amount: &str) -> (String, String, String, Value) {
    let beneficiary_id = beneficiary_payable(client);
    let sender_id = sender(client);
    let quote_lock_id = quote_lock(client, amount);
    let body = transfer_body(&sender_id, &beneficiary_id, &quote_lock_id, amount);
    let transfer = client.post("/v1/transfers", &body).expect_success("the transfer");
    (beneficiary_id, sender_id, quote_lock_id, transfer)
}

/// Step 5: the simulated sender pays what is missing.
pub fn deposit(client: &mut Client, transfer_id: &str) -> Value {
    client
        .post(&format!("/v1/test_helpers/transfers/{transfer_id}/deposit"), &json!({}))
        .expect_success("the deposit")
}

/// Step 6: waits for the settlement and answers the transfer.
pub fn settlement(client: &mut Client, transfer_id: &str) -> Value {
    until("the payout to settle", PATIENCE, || {
        let seen =
            client.get(&format!("/v1/transfers/{transfer_id}")).expect_success("the transfer");
        (seen["status"] == "payout_settled").then_some(seen)
    })
}

pub fn six_steps(client: &mut Client, amount: &str) -> Payment {
    let (beneficiary_id, sender_id, quote_lock_id, transfer) = transfer_unfunded(client, amount);
    let transfer_id = text(&transfer, "id");
    let deposit = deposit(client, &transfer_id);
    let settled = settlement(client, &transfer_id);
    let reference = settled["payout"]["unique_transaction_reference"].as_str().unwrap_or_default();
    assert!(reference.starts_with("TEST"), "the settled transfer has no test UTR: {settled}");
    Payment {
        beneficiary_id,
        sender_id,
        quote_lock_id,
        transfer_id,
        deposit_id: text(&deposit, "id"),
        settled,
    }
}

/// A text member that has to be there.
pub fn text(object: &Value, name: &str) -> String {
    object[name].as_str().unwrap_or_else(|| panic!("no text {name} in {object}")).to_owned()
}
