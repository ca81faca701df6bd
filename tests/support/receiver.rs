//! A webhook receiver on loopback: it records every delivery and verifies it twice, with the stock
//! Standard Webhooks library and by the interface specification's own five steps.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use tokio::sync::watch;

use super::client::Client;

/// The specification's window, either way.
const TIMESTAMP_SECONDS_MAX: u64 = 300;
/// Deliveries can arrive before the test has read the secret from the answer of the registration.
const SECRET_SECONDS_MAX: u64 = 10;
/// Problems that are kept word for word; the count goes on.
const PROBLEMS_KEPT_MAX: usize = 50;

/// What arrived for one event.
#[derive(Clone, Debug)]
pub struct Record {
    pub event: Value,
    pub body: Vec<u8>,
    /// Attempts whose signature was valid under both checks.
    pub valid_count: u64,
    pub count: u64,
    /// How many events had arrived before it.
    pub position: usize,
}

#[derive(Default)]
struct Seen {
    records: HashMap<String, Record>,
    problems: Vec<String>,
    problems_count: u64,
}

impl Seen {
    fn complain(&mut self, problem: String) {
        self.problems_count += 1;
        if self.problems.len() < PROBLEMS_KEPT_MAX {
            self.problems.push(problem);
        }
    }
}

pub struct Receiver {
    /// Dropped last, without waiting for open connections.
    runtime: Option<tokio::runtime::Runtime>,
    pub url: String,
    seen: Arc<Mutex<Seen>>,
    secret: watch::Sender<Option<String>>,
}

fn seen(lock: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Receiver {
    pub fn start() -> Receiver {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .expect("a port on loopback");
        let url = format!("http://{}/hooks", listener.local_addr().expect("an address"));
        let records = Arc::new(Mutex::new(Seen::default()));
        let (secret, secret_known) = watch::channel(None);
        let shared = records.clone();
        runtime.spawn(async move {
            // Ends with the runtime, that is, with the receiver.
            while let Ok((stream, _)) = listener.accept().await {
                let shared = shared.clone();
                let secret_known = secret_known.clone();
                tokio::spawn(async move {
                    let service = service_fn(move |request| {
                        take(request, shared.clone(), secret_known.clone())
                    });
                    // A sender that is killed mid-request leaves a broken connection: not a
                    // delivery.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Receiver { runtime: Some(runtime), url, seen: records, secret }
    }

    /// Registers the receiver for all events and remembers the secret; answers the endpoint.
    pub fn register(&self, client: &mut Client) -> Value {
        let endpoint = client
            .post(
                "/v1/webhook_endpoints",
                &json!({ "url": self.url, "enabled_events": ["*"],
                "description": "the test's receiver" }),
            )
            .expect_success("the registration of the webhook endpoint");
        let secret =
            endpoint["secret"].as_str().unwrap_or_else(|| panic!("no secret in {endpoint}"));
        assert!(secret.starts_with("whsec_"), "the secret does not begin with whsec_: {secret}");
        self.secret.send_replace(Some(secret.to_owned()));
        endpoint
    }

    /// Checks signatures with this secret from now on.
    pub fn trust(&self, secret: &str) {
        self.secret.send_replace(Some(secret.to_owned()));
    }

    /// How many deliveries with a valid signature arrived for an event.
    pub fn valid_count(&self, event_id: &str) -> u64 {
        seen(&self.seen).records.get(event_id).map_or(0, |record| record.valid_count)
    }

    pub fn record(&self, event_id: &str) -> Option<Record> {
        seen(&self.seen).records.get(event_id).cloned()
    }

    /// Events of which at least one delivery was valid.
    pub fn events_count(&self) -> usize {
        seen(&self.seen).records.values().filter(|record| record.valid_count > 0).count()
    }

    /// Attempts that arrived, those with an invalid signature included.
    pub fn attempts_count(&self) -> usize {
        seen(&self.seen).records.values().map(|record| record.count as usize).sum()
    }

    /// How many deliveries were wrong, and the first of the reasons.
    pub fn problems(&self) -> (u64, Vec<String>) {
        let seen = seen(&self.seen);
        (seen.problems_count, seen.problems.clone())
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn take(
    request: Request<Incoming>,
    records: Arc<Mutex<Seen>>,
    mut secret_known: watch::Receiver<Option<String>>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let known = tokio::time::timeout(
        Duration::from_secs(SECRET_SECONDS_MAX),
        secret_known.wait_for(Option::is_some),
    )
    .await;
    let secret = match known {
        Ok(Ok(secret)) => secret.clone().unwrap_or_default(),
        _ => String::new(),
    };
    let verdict = verify(&secret, &head.headers, &body);
    let status = if verdict.is_ok() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    let id = head
        .headers
        .get("webhook-id")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    let event: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let mut seen = seen(&records);
    if head.method != http::Method::POST {
        seen.complain(format!("a delivery by {}", head.method));
    }
    if let Some(problem) = shape_problem(&event, &id) {
        seen.complain(problem);
    }
    if let Err(problem) = &verdict {
        seen.complain(format!("{id}: {problem}"));
    }
    let position = seen.records.len();
    let record = seen.records.entry(id.clone()).or_insert_with(|| Record {
        event,
        body: body.to_vec(),
        valid_count: 0,
        count: 0,
        position,
    });
    record.count += 1;
    record.valid_count += u64::from(verdict.is_ok());
    if record.body != body {
        seen.complain(format!("{id}: the body differs between two attempts"));
    }
    let mut response = Response::new(Full::new(Bytes::new()));
    *response.status_mut() = status;
    Ok(response)
}

/// An event's body is exactly the specification's seven fields, and its ID is the header's.
fn shape_problem(event: &Value, id: &str) -> Option<String> {
    let Some(members) = event.as_object() else {
        return Some(format!("{id}: the body is not a JSON object"));
    };
    let mut names: Vec<&str> = members.keys().map(String::as_str).collect();
    names.sort_unstable();
    if names != ["created", "id", "linked_id", "linked_object", "livemode", "object", "type"] {
        return Some(format!("{id}: the body has the members {names:?}"));
    }
    if event["object"] != "event" || event["id"] != id {
        return Some(format!("{id}: the body is of {} {}", event["object"], event["id"]));
    }
    None
}

/// Accepts only what both the stock library and the specification's own check accept.
fn verify(secret: &str, headers: &HeaderMap, body: &[u8]) -> Result<(), String> {
    let library = standardwebhooks::Webhook::new(secret)
        .map_err(|error| format!("the stock library refuses the secret: {error}"))?;
    library
        .verify(body, headers)
        .map_err(|error| format!("the stock library refuses the delivery: {error}"))?;
    verify_by_specification(secret, headers, body)
        .map_err(|problem| format!("the specification's steps refuse the delivery: {problem}"))
}

/// "Signature verification" of the interface specification, step by step; answering 400 is its
/// fifth step.
pub fn verify_by_specification(
    secret: &str,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<(), String> {
    let header = |name: &str| {
        headers.get(name).and_then(|value| value.to_str().ok()).ok_or_else(|| format!("no {name}"))
    };
    let (id, timestamp, signatures) =
        (header("webhook-id")?, header("webhook-timestamp")?, header("webhook-signature")?);
    let mut signed = format!("{id}.{timestamp}.").into_bytes();
    signed.extend_from_slice(body);
    // The secret's text is the key, as it stands.
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map_err(|error| error.to_string())?;
    mac.update(&signed);
    let expected = STANDARD.encode(mac.finalize().into_bytes());
    let accepted = signatures
        .split(' ')
        .filter_map(|entry| entry.strip_prefix("v1,"))
        .any(|signature| bool::from(signature.as_bytes().ct_eq(expected.as_bytes())));
    if !accepted {
        return Err(format!("none of the signatures {signatures:?} fits"));
    }
    let sent: u64 = timestamp
        .parse()
        .map_err(|_| format!("the timestamp {timestamp:?} is not in Unix seconds"))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    if now.abs_diff(sent) > TIMESTAMP_SECONDS_MAX {
        return Err(format!("the timestamp is {} s away", now.abs_diff(sent)));
    }
    Ok(())
}
