// cargo add axum serde_json standardwebhooks && cargo add tokio --features full
use std::collections::HashSet;
use std::sync::{LazyLock, Mutex};

use axum::{Router, body::Bytes, http::HeaderMap, http::StatusCode, routing::post};
use serde_json::Value;
use standardwebhooks::Webhook;

static WEBHOOK: LazyLock<Option<Webhook>> =
    LazyLock::new(|| Webhook::new(&std::env::var("WEBHOOK_SECRET").ok()?).ok());
// In your service: a table with the IDs of the last days.
static SEEN: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

async fn receive(headers: HeaderMap, body: Bytes) -> StatusCode {
    // Verifies the signature over the exact bytes, and the timestamp.
    let is_genuine = WEBHOOK.as_ref().is_some_and(|hook| hook.verify(&body, &headers).is_ok());
    if !is_genuine {
        println!("refused: the signature or the timestamp is wrong");
        return StatusCode::BAD_REQUEST;
    }
    let event: Value = serde_json::from_slice(&body).unwrap_or_default();
    let id = event["id"].as_str().unwrap_or_default().to_owned();
    if SEEN.lock().is_ok_and(|mut seen| seen.insert(id)) {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        println!("verified {} {}", text("id"), text("type"));
    }
    StatusCode::OK
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let port = std::env::var("WEBHOOK_PORT").unwrap_or_default();
    if WEBHOOK.is_none() || port.is_empty() {
        eprintln!("set WEBHOOK_SECRET to the endpoint's secret, and WEBHOOK_PORT to a free port");
        std::process::exit(1);
    }
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    println!("listening on port {port}");
    axum::serve(listener, Router::new().route("/", post(receive))).await
}
