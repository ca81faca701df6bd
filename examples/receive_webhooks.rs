// cargo add axum serde_json standardwebhooks && cargo add tokio --features full
use std::collections::HashSet;
use std::sync::{LazyLock, Mutex};

use axum::{Router, body::Bytes, http::HeaderMap, http::StatusCode, routing::post};
use serde_json::Value;
use standardwebhooks::Webhook;

// In your service: a table with the IDs of the last days.
static SEEN: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

async fn receive(headers: HeaderMap, body: Bytes) -> StatusCode {
    // Verifies the signature over the exact bytes, and the timestamp.
    let secret = std::env::var("WEBHOOK_SECRET").unwrap_or_default();
    let is_genuine = Webhook::new(&secret).is_ok_and(|hook| hook.verify(&body, &headers).is_ok());
    if !is_genuine {
        println!("refused: the signature or the timestamp is wrong");
        return StatusCode::BAD_REQUEST;
    }
    let event: Value = serde_json::from_slice(&body).unwrap_or_default();
    let id = event["id"].as_str().unwrap_or_default().to_owned();
    if SEEN.lock().is_ok_and(|mut seen| seen.insert(id)) {
        println!("verified {}", event["type"].as_str().unwrap_or_default());
    }
    StatusCode::OK
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let port = std::env::var("WEBHOOK_PORT").unwrap_or_default();
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    println!("listening on port {port}");
    axum::serve(listener, Router::new().route("/", post(receive))).await
}
