// cargo add ureq serde_json
use std::hash::{BuildHasher, Hasher, RandomState};
use std::{env, error::Error};

use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let names = ["HUNDI_BASE_URL", "HUNDI_API_KEY", "WEBHOOK_PORT"];
    let [Ok(url), Ok(key), Ok(port)] = names.map(env::var) else {
        return Err("set HUNDI_BASE_URL, HUNDI_API_KEY and WEBHOOK_PORT".into());
    };
    // 16 random digits from the standard library. In your service: a UUID, of the crate uuid.
    let idempotency_key = format!("{:016x}", RandomState::new().build_hasher().finish());
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut answer = agent
        .post(format!("{url}/v1/webhook_endpoints"))
        .header("Authorization", format!("Bearer {key}"))
        .header("Idempotency-Key", idempotency_key)
        .header("Content-Type", "application/json")
        .send(json!({ "url": format!("http://127.0.0.1:{port}/") }).to_string())?;
    let text = answer.body_mut().read_to_string()?;
    if !answer.status().is_success() {
        return Err(format!("the endpoint was not registered: {text}").into());
    }
    let endpoint: Value = serde_json::from_str(&text)?;
    println!("export WEBHOOK_SECRET={}", endpoint["secret"].as_str().unwrap_or_default());
    Ok(())
}
