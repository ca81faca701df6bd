//! A webhook receiver on loopback that keeps what it gets and answers as it is told.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use sha2::Sha256;
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::support::WAIT;

/// How deliveries are answered.
#[derive(Clone, Default)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
    pub delay: Duration,
    /// The status for each request, in the place of `status`.
    pub judge: Option<Judge>,
}

pub type Judge = Arc<dyn Fn(&Delivery) -> u16 + Send + Sync>;

impl Reply {
    pub fn status(status: u16) -> Reply {
        Reply { status, ..Reply::default() }
    }
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Reply {
        self.headers.push((name, value.into()));
        self
    }
}

/// One request that arrived.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub method: http::Method,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Delivery {
    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name}")).to_str().unwrap()
    }
    pub fn id(&self) -> &str {
        self.header("webhook-id")
    }
    pub fn timestamp(&self) -> i64 {
        self.header("webhook-timestamp").parse().unwrap()
    }
    pub fn entries(&self) -> Vec<&str> {
        let signature = self.headers.get("webhook-signature");
        signature.map_or("", |value| value.to_str().unwrap()).split(' ').collect()
    }
    pub fn event(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Steps 1 to 3 of the specification's check; step 4, the age, is the caller's, and step 5 is
    /// how it answers.
    pub fn fits_specification(&self, secret: &str) -> bool {
        let mut signed =
            format!("{}.{}.", self.id(), self.header("webhook-timestamp")).into_bytes();
        signed.extend_from_slice(&self.body);
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(&signed);
        let expected = STANDARD.encode(mac.finalize().into_bytes());
        self.entries().iter().any(|entry| {
            entry
                .strip_prefix("v1,")
                .is_some_and(|given| bool::from(given.as_bytes().ct_eq(expected.as_bytes())))
        })
    }

    /// The stock library's check; where a test moves the clock, and so the age cannot be judged,
    /// its signature alone.
    pub fn fits_library(&self, secret: &str, with_age: bool) -> bool {
        let library = standardwebhooks::Webhook::new(secret).unwrap();
        if with_age {
            return library.verify(&self.body, &self.headers).is_ok();
        }
        let expected = library.sign(self.id(), self.timestamp(), &self.body).unwrap();
        self.entries().contains(&expected.as_str())
    }
}

pub struct Receiver {
    pub url: String,
    deliveries: Arc<Mutex<Vec<Delivery>>>,
    reply: Arc<Mutex<Reply>>,
    arrived: Arc<Notify>,
    accepting: tokio::task::JoinHandle<()>,
}

impl Receiver {
    pub async fn start(reply: Reply) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hooks", listener.local_addr().unwrap());
        let (deliveries, reply, arrived) = (
            Arc::new(Mutex::new(Vec::new())),
            Arc::new(Mutex::new(reply)),
            Arc::new(Notify::new()),
        );
        let shared = (deliveries.clone(), reply.clone(), arrived.clone());
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = shared.clone();
                let service = service_fn(move |request| {
                    let (deliveries, reply, arrived) = shared.clone();
                    async move { take(request, &deliveries, &reply, &arrived).await }
                });
                tokio::spawn(async move {
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Receiver { url, deliveries, reply, arrived, accepting }
    }

    pub fn answer_with(&self, reply: Reply) {
        *self.reply.lock().unwrap() = reply;
    }

    pub fn deliveries(&self) -> Vec<Delivery> {
        self.deliveries.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.deliveries.lock().unwrap().len()
    }

    /// Waits until what arrived is as wanted.
    pub async fn wait_until(&self, mut wanted: impl FnMut(&[Delivery]) -> bool) -> Vec<Delivery> {
        let started = Instant::now();
        loop {
            let arrived = self.arrived.notified();
            let deliveries = self.deliveries();
            if wanted(&deliveries) {
                return deliveries;
            }
            let left = WAIT.saturating_sub(started.elapsed());
            assert!(
                tokio::time::timeout(left, arrived).await.is_ok(),
                "{} deliveries: {:?}",
                deliveries.len(),
                types(&deliveries)
            );
        }
    }

    pub async fn wait_count(&self, count: usize) -> Vec<Delivery> {
        self.wait_until(|deliveries| deliveries.len() >= count).await
    }
}

pub fn types(deliveries: &[Delivery]) -> Vec<String> {
    deliveries
        .iter()
        .map(|delivery| delivery.event()["type"].as_str().unwrap_or_default().to_owned())
        .collect()
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn take(
    request: Request<Incoming>,
    deliveries: &Mutex<Vec<Delivery>>,
    reply: &Mutex<Reply>,
    arrived: &Notify,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let reply = reply.lock().unwrap().clone();
    let delivery =
        Delivery { method: head.method, path: head.uri.to_string(), headers: head.headers, body };
    let status = reply.judge.as_ref().map_or(reply.status, |judge| judge(&delivery));
    deliveries.lock().unwrap().push(delivery);
    arrived.notify_waiters();
    tokio::time::sleep(reply.delay).await;
    let mut response = Response::builder().status(status);
    for (name, value) in &reply.headers {
        response = response.header(*name, value);
    }
    Ok(response.body(Full::new(Bytes::from(reply.body))).unwrap())
}
