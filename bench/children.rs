//! What this benchmark also runs as: the bare peers that the service is compared with, each in a
//! process of its own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use axum::Json;
use bytes::Bytes;
use hundi::kernel::Clock;
use hundi::webhooks::sending::attempt::{DeliveryAttempt, USER_AGENT_TEXT, WebhookClientOptions};
use hundi::webhooks::sending::client::WebhookClient;
use hundi::webhooks::sending::sign;
use hundi::webhooks::sending::vet::{UrlPolicy, parse_url};
use serde_json::Value;

use crate::machine;

const ECHO: &str = "--child-echo";
const DELIVER: &str = "--child-deliver";

/// Plays the part of a child if the arguments ask for it; answers whether they did.
pub fn play(arguments: &[String]) -> bool {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    match arguments {
        [part, document] if part == ECHO => runtime().block_on(echo(document)),
        [part, url, count, in_flight] if part == DELIVER => {
            let number = |text: &String| text.parse::<usize>().expect("a number");
            runtime().block_on(deliver(url, number(count), number(in_flight)));
        }
        _ => return false,
    }
    true
}

fn spawn(arguments: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let program = std::env::current_exe().expect("this program's path");
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child starts");
    let stdout = BufReader::new(child.stdout.take().expect("the child's output"));
    (child, stdout)
}

/// A bare axum server that answers every GET with one JSON document; ends with its value.
pub struct Echo {
    child: Child,
    _stdout: BufReader<ChildStdout>,
    pub address: SocketAddr,
}

impl Echo {
    pub fn start(document: &str) -> Echo {
        let (child, mut stdout) = spawn(&[ECHO, document]);
        let mut line = String::new();
        stdout.read_line(&mut line).expect("the echo server says where it listens");
        Echo {
            child,
            _stdout: stdout,
            address: line.trim().parse().expect("the echo server's address"),
        }
    }
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One document for all requests.
struct Shared(Arc<Value>);

impl serde::Serialize for Shared {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

async fn echo(document: &str) {
    let document: Value = serde_json::from_str(document).expect("a JSON document");
    let document = Arc::new(document);
    let answer = move || {
        let document = document.clone();
        async move { Json(Shared(document)) }
    };
    let router = axum::Router::new().route("/v1/transfers/{id}", axum::routing::get(answer));
    let listener =
        tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port for the echo server");
    println!("{}", listener.local_addr().expect("the echo server's address"));
    axum::serve(listener, router).await.expect("the echo server");
}

/// Signed deliveries without storage: how many a second, and CPU of the sending process in
/// microseconds for each.
pub fn bare_deliveries(url: &str, count: usize, in_flight: usize) -> (f64, f64) {
    let (mut child, mut stdout) =
        spawn(&[DELIVER, url, &count.to_string(), &in_flight.to_string()]);
    // Wait for the line off the runtime's thread: the receiver that is delivered to runs on it.
    let mut line = String::new();
    stdout.read_line(&mut line).expect("the sender says what it did");
    let _ = child.wait();
    let mut numbers = line.split_whitespace().filter_map(|field| field.parse::<f64>().ok());
    (numbers.next().unwrap_or(0.0), numbers.next().unwrap_or(0.0))
}

async fn deliver(url: &str, count: usize, in_flight: usize) {
    let sender = WebhookClient::new(hundi::tls::platform_roots(), WebhookClientOptions::default())
        .expect("a sender");
    let url =
        Arc::new(parse_url(url, UrlPolicy { loopback_allowed: true }).expect("the receiver's URL"));
    let next = Arc::new(AtomicUsize::new(0));
    let cpu_at_start = machine::cpu_seconds(std::process::id());
    let started = Instant::now();
    let mut workers = Vec::new();
    for _ in 0..in_flight {
        let (sender, url, next) = (sender.clone(), url.clone(), next.clone());
        workers.push(tokio::spawn(async move {
            let secret = sign::secret_text([7; sign::SECRET_BYTES]);
            while next.fetch_add(1, Ordering::Relaxed) < count {
                let id = "event_01JD0Z3Y6W8V4T2R0Q9P7N5M3K";
                let body = format!(
                    "{{\"object\":\"event\",\"id\":\"{id}\",\"type\":\"transfer.status.funding\",\"linked_id\":\"transfer_01JD0Z3Y6W8V4T2R0Q9P7N5M3K\",\
                     \"linked_object\":\"transfer\",\"created\":1790000000,\"livemode\":false}}"
                );
                let now_seconds = Clock::System.milliseconds() / 1000;
                let signature = sign::signature_header(&[&secret], id, now_seconds,
                    body.as_bytes());
                let attempt = DeliveryAttempt {
                    url: &url,
                    loopback_allowed: true,
                    id,
                    timestamp_seconds: now_seconds,
                    signature,
                    body: Bytes::from(body),
                    is_slow: false,
                    user_agent: USER_AGENT_TEXT,
                    now_seconds,
                };
                let outcome = sender.send(attempt).await;
                assert!(outcome.is_success(), "a delivery without storage failed: {outcome:?}");
            }
        }));
    }
    for worker in workers {
        worker.await.expect("a worker of the sender");
    }
    let seconds = started.elapsed().as_secs_f64();
    let cpu = machine::cpu_seconds(std::process::id()) - cpu_at_start;
    println!("{} {}", count as f64 / seconds, cpu * 1e6 / count as f64);
}
