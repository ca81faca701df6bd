// cargo add ureq serde_json
use std::hash::{BuildHasher, Hasher, RandomState};
use std::{env, error::Error, thread::sleep, time::Duration};

use serde_json::Value;
use ureq::{Agent, http::Request};

fn call(method: &str, path: &str) -> Result<Value, Box<dyn Error>> {
    let [Ok(url), Ok(key)] = ["HUNDI_BASE_URL", "HUNDI_API_KEY"].map(env::var) else {
        let what = "set HUNDI_BASE_URL to the server's address, and HUNDI_API_KEY to a test key";
        return Err(what.into());
    };
    // 16 random digits from the standard library. In your service: a UUID, of the crate uuid.
    let idempotency_key = format!("{:016x}", RandomState::new().build_hasher().finish());
    let request = Request::builder()
        .method(method)
        .uri(format!("{url}{path}"))
        .header("Authorization", format!("Bearer {key}"))
        .header("Idempotency-Key", idempotency_key)
        .body(())?;
    let agent: Agent = Agent::config_builder()
        .http_status_as_error(false)
        .allow_non_standard_methods(true)
        .build()
        .into();
    let mut answer = agent.run(request)?;
    let text = answer.body_mut().read_to_string()?;
    if !answer.status().is_success() {
        return Err(format!("{method} {path}: {text}").into());
    }
    Ok(serde_json::from_str(&text)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let newest = call("GET", "/v1/webhook_endpoints?order=desc&limit=1")?;
    let id = newest["data"][0]["id"].as_str().ok_or("register an endpoint first")?;
    let drill = format!("/v1/webhook_endpoints/{id}/drill");
    let mut report = call("POST", &drill)?;
    while report["status"] == "running" {
        sleep(Duration::from_secs(1));
        report = call("GET", &drill)?;
    }
    println!("grade {}", report["grade"].as_str().unwrap_or_default());
    let checks = report["checks"].as_array().map(Vec::as_slice).unwrap_or_default();
    for check in checks.iter().filter(|check| check["passed"] == false) {
        println!("{check}");
    }
    Ok(())
}
