// cargo add ureq serde_json
use std::hash::{BuildHasher, Hasher, RandomState};
use std::{env, error::Error, thread::sleep, time::Duration};

use serde_json::{Value, json};
use ureq::{Agent, http::Request};

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| {
        "set HUNDI_BASE_URL to the server's address, and HUNDI_API_KEY to a test key".into()
    })
}

fn call(method: &str, path: &str, body: Option<Value>) -> Result<Value, Box<dyn Error>> {
    // 16 random digits from the standard library. In your service: a UUID, of the crate uuid.
    let idempotency_key = format!("{:016x}", RandomState::new().build_hasher().finish());
    let url = variable("HUNDI_BASE_URL")?;
    let request = Request::builder()
        .method(method)
        .uri(format!("{url}{path}"))
        .header("Authorization", format!("Bearer {}", variable("HUNDI_API_KEY")?))
        .header("Idempotency-Key", idempotency_key)
        .header("Content-Type", "application/json")
        .body(body.map_or(String::new(), |body| body.to_string()))?;
    let agent: Agent = Agent::config_builder()
        .http_status_as_error(false)
        .allow_non_standard_methods(true)
        .build()
        .into();
    let sent = agent.run(request);
    let mut answer = sent.map_err(|error| format!("no answer from {url}: {error}"))?;
    let text = answer.body_mut().read_to_string()?;
    if !answer.status().is_success() {
        return Err(format!("{method} {path}: {text}").into());
    }
    Ok(serde_json::from_str(&text)?)
}

fn wait_for(path: &str, status: &str) -> Result<Value, Box<dyn Error>> {
    let mut found = Value::Null;
    for _ in 0..150 {
        found = call("GET", path, None)?;
        if found["status"] == status {
            return Ok(found);
        }
        let ends = ["input_required", "rejected", "refund_processing", "expired"];
        if ends.iter().any(|end| found["status"] == *end) {
            break; // It ends or waits here.
        }
        sleep(Duration::from_millis(200));
    }
    let why = found.get("requirements").unwrap_or(&found["status_reason"]);
    Err(format!("{path} is {}, not {status}: {why}", found["status"]).into())
}

fn id(object: &Value) -> &str {
    object["id"].as_str().unwrap_or_default()
}

fn main() -> Result<(), Box<dyn Error>> {
    // 1. The beneficiary: wait until the account is verified.
    let beneficiary = call(
        "POST",
        "/v1/beneficiaries",
        Some(json!({ "name": "Asha Rao", "account_number": "50100012345678",
            "ifsc": "HDFC0000001", "account_type": "nre" })),
    )?;
    wait_for(&format!("/v1/beneficiaries/{}", id(&beneficiary)), "active")?;

    // 2. The sender.
    let sender = call(
        "POST",
        "/v1/senders",
        Some(json!({ "name": "Ravi Rao", "type": "individual", "country": "AE",
            "address": { "line1": "1 Creek Road", "city": "Dubai", "country": "AE" } })),
    )?;

    // 3. A rate that holds for five minutes.
    let lock = call(
        "POST",
        "/v1/quote_locks",
        Some(json!({ "sell_currency": "USD", "buy_currency": "INR", "amount": "1000.00" })),
    )?;

    // 4. The transfer, with the address that the payer sends to.
    let transfer = call(
        "POST",
        "/v1/transfers",
        Some(json!({ "sender_id": id(&sender), "beneficiary_id": id(&beneficiary),
            "quote_lock_id": id(&lock), "amount": "1000.00", "currency": "USD",
            "payout_currency": "INR",
            "funding": { "rail": "stablecoin", "asset": "USDT", "chain": "tron" } })),
    )?;

    // 5. The payer's deposit. In test mode you send it.
    let deposit = format!("/v1/test_helpers/transfers/{}/deposit", id(&transfer));
    call("POST", &deposit, Some(json!({})))?;

    // 6. The bank's reference.
    let settled = wait_for(&format!("/v1/transfers/{}", id(&transfer)), "payout_settled")?;
    println!("UTR {}", settled["payout"]["unique_transaction_reference"]);
    Ok(())
}
