//! Receivers that are dead or mean: they hold no more than their own slots, and not for long.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hundi::kernel::Mode;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::receiver::{Receiver, Reply};
use crate::support::{Client, Server, id};

const VERIFYING: &str = "beneficiary.status.verifying";
/// The most attempts that one endpoint may have running.
const SLOTS_MAX: usize = 8;

async fn register(client: &Client, url: &str) -> Value {
    client
        .post("/v1/webhook_endpoints", json!({ "url": url, "enabled_events": [VERIFYING] }))
        .await
        .ok()
}

fn deliveries_path(endpoint: &Value) -> String {
    format!("/v1/webhook_endpoints/{}/deliveries?limit=100", id(endpoint))
}

/// Takes connections and never answers; counts how many there are at once.
struct Dead {
    url: String,
    most: Arc<AtomicUsize>,
}

impl Dead {
    async fn start() -> Dead {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let most_seen = most.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let now = now.clone();
                most_seen.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let mut part = [0; 1_024];
                    while matches!(stream.read(&mut part).await, Ok(count) if count > 0) {}
                    now.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Dead { url, most }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_dead_endpoint_among_200_healthy_costs_the_others_nothing() {
    const HEALTHY: usize = 200;
    const EVENTS: usize = 3;
    /// The dead endpoint's account has so many events that its slots taken one after another would
    /// outlast the test.
    const DEAD_EVENTS: usize = 30;
    let server = Server::start().await;
    let dead = Dead::start().await;
    let mut accounts = Vec::new();
    let mut healthy = Vec::new();
    for number in 0.. {
        if healthy.len() == HEALTHY {
            break;
        }
        let client = server.client_of(&format!("account-{number}"), Mode::Test, "").await;
        let is_first = number == 0;
        if is_first {
            register(&client, &dead.url).await;
        }
        for _ in 0..(16 - usize::from(is_first)).min(HEALTHY - healthy.len()) {
            let receiver = Receiver::start(Reply::status(200)).await;
            let endpoint = register(&client, &receiver.url).await;
            healthy.push((number, endpoint, receiver));
        }
        accounts.push(client);
    }
    let posts = accounts.iter().enumerate().map(async |(number, client)| {
        for _ in 0..if number == 0 { DEAD_EVENTS } else { EVENTS } {
            client.beneficiary("50100012345678").await;
        }
    });
    futures_util::future::join_all(posts).await;
    for (number, endpoint, receiver) in &healthy {
        let events = if *number == 0 { DEAD_EVENTS } else { EVENTS };
        receiver.wait_count(events).await;
        let is_done = |list: &Value| {
            let data = list["data"].as_array().unwrap();
            data.len() == events && data.iter().all(|delivery| delivery["status"] == "succeeded")
        };
        let list = accounts[*number].wait_until(&deliveries_path(endpoint), is_done).await;
        for delivery in list["data"].as_array().unwrap() {
            assert_eq!(
                delivery["attempts"].as_array().unwrap().len(),
                1,
                "not at its first attempt: {delivery}"
            );
        }
        assert_eq!(receiver.count(), events);
    }
    let most = dead.most.load(Ordering::SeqCst);
    assert!((1..=SLOTS_MAX).contains(&most), "the dead endpoint held {most} slots");
}

/// What a receiver does with a connection after it has read the request.
#[derive(Clone, Copy, Debug)]
enum Malice {
    Silent,
    DrippingHead,
    DrippingInterimAnswers,
    DrippingBody,
    EndlessBody,
    EndlessChunks,
    HugeHeader,
    ManyHeaders,
    RedirectLoop,
    Reset,
    Close,
    HalfHead,
    NotHttp,
    TalksFirst,
    /// No malice: late, but within the limits.
    Late,
}

async fn act(malice: Malice, stream: &mut TcpStream, url: &str) -> std::io::Result<()> {
    let mut request = [0; 8_192];
    if !matches!(malice, Malice::TalksFirst) && stream.read(&mut request).await? == 0 {
        return Ok(());
    }
    match malice {
        Malice::Silent => {}
        Malice::DrippingHead => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nx: ").await?;
            loop {
                tokio::time::sleep(Duration::from_millis(100)).await;
                stream.write_all(b"a").await?;
            }
        }
        Malice::DrippingInterimAnswers => loop {
            stream.write_all(b"HTTP/1.1 103 Early Hints\r\n\r\n").await?;
            tokio::time::sleep(Duration::from_millis(100)).await;
        },
        Malice::DrippingBody => {
            stream.write_all(b"HTTP/1.1 500 No\r\ncontent-length: 100000\r\n\r\n").await?;
            loop {
                tokio::time::sleep(Duration::from_millis(50)).await;
                stream.write_all(b"a").await?;
            }
        }
        Malice::EndlessBody => {
            stream.write_all(b"HTTP/1.1 500 No\r\n\r\n").await?;
            loop {
                stream.write_all(&[b'a'; 65_536]).await?;
            }
        }
        Malice::EndlessChunks => {
            stream.write_all(b"HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\n").await?;
            loop {
                stream
                    .write_all(b"1;extension=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\na\r\n")
                    .await?;
            }
        }
        Malice::HugeHeader => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nx: ").await?;
            for _ in 0..64 {
                stream.write_all(&[b'a'; 65_536]).await?;
            }
            stream.write_all(b"\r\n\r\n").await?;
        }
        Malice::ManyHeaders => {
            let headers: String = (0..1_000).map(|number| format!("x-{number}: a\r\n")).collect();
            stream
                .write_all(
                    format!("HTTP/1.1 200 OK\r\n{headers}content-length: 0\r\n\r\n").as_bytes(),
                )
                .await?;
        }
        Malice::RedirectLoop => {
            stream
                .write_all(
                    format!("HTTP/1.1 307 Go\r\nlocation: {url}\r\ncontent-length: 0\r\n\r\n")
                        .as_bytes(),
                )
                .await?;
        }
        Malice::Reset => {
            // Closing without a wait drops what is unsent and tells the peer so.
            stream.set_zero_linger()?;
            return Ok(());
        }
        Malice::Close => return Ok(()),
        Malice::HalfHead => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-le").await?;
            return Ok(());
        }
        Malice::NotHttp | Malice::TalksFirst => {
            stream.write_all(b"SSH-2.0-OpenSSH_9.9\r\n").await?
        }
        Malice::Late => {
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await?;
        }
    }
    // Held open until the other side has enough.
    while stream.read(&mut request).await? > 0 {}
    Ok(())
}

/// Starts a receiver; each connection's life is told when it ends.
async fn start(malice: Malice, scheme: &str) -> (String, mpsc::UnboundedReceiver<Duration>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("{scheme}://{}/", listener.local_addr().unwrap());
    let (tell, lives) = mpsc::unbounded_channel();
    let own_url = url.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (tell, url) = (tell.clone(), own_url.clone());
            tokio::spawn(async move {
                let started = Instant::now();
                let _ = act(malice, &mut stream, &url).await;
                drop(stream);
                let _ = tell.send(started.elapsed());
            });
        }
    });
    (url, lives)
}

/// What the deliveries list must tell of the first attempt: status, error, and bounds of its
/// duration in milliseconds.
type Expected = (Option<u16>, Option<&'static str>, std::ops::Range<i64>);

#[tokio::test(flavor = "multi_thread")]
async fn hostile_receivers_free_their_slot_within_16_seconds() {
    let server = Server::start().await;
    let client = server.client().await;
    let rows: [(Malice, &str, Expected); 16] = [
        (Malice::Silent, "http", (None, Some("head_timeout"), 9_500..16_000)),
        (Malice::DrippingHead, "http", (None, Some("head_timeout"), 9_500..16_000)),
        (Malice::DrippingInterimAnswers, "http", (None, Some("head_timeout"), 9_500..16_000)),
        (Malice::DrippingBody, "http", (Some(500), None, 1_900..16_000)),
        (Malice::EndlessBody, "http", (Some(500), None, 0..16_000)),
        (Malice::EndlessChunks, "http", (Some(500), None, 0..16_000)),
        (Malice::HugeHeader, "http", (None, Some("answer_invalid"), 0..16_000)),
        (Malice::ManyHeaders, "http", (None, Some("answer_invalid"), 0..16_000)),
        (Malice::RedirectLoop, "http", (Some(307), None, 0..16_000)),
        (Malice::Reset, "http", (None, Some("connection_reset"), 0..16_000)),
        (Malice::Close, "http", (None, Some("connection_reset"), 0..16_000)),
        (Malice::HalfHead, "http", (None, Some("connection_reset"), 0..16_000)),
        (Malice::NotHttp, "http", (None, Some("answer_invalid"), 0..16_000)),
        (Malice::TalksFirst, "http", (None, Some("answer_invalid"), 0..16_000)),
        (Malice::Silent, "https", (None, Some("connect_timeout"), 4_500..16_000)),
        // The control: lateness is seen, and within the limits it is no fault.
        (Malice::Late, "http", (Some(200), None, 1_500..9_500)),
    ];
    let mut receivers = Vec::new();
    for (malice, scheme, expected) in rows {
        let (url, lives) = start(malice, scheme).await;
        receivers.push((malice, expected, register(&client, &url).await, lives));
    }
    client.beneficiary("50100012345678").await;
    for (malice, (http_status, error, duration), endpoint, lives) in &mut receivers {
        let has_attempt = |list: &Value| {
            list["data"][0]["attempts"].as_array().is_some_and(|attempts| !attempts.is_empty())
        };
        let list = client.wait_until(&deliveries_path(endpoint), has_attempt).await;
        let attempt = &list["data"][0]["attempts"][0];
        assert_eq!(
            (&attempt["http_status"], &attempt["error"]),
            (&json!(http_status), &json!(error)),
            "{malice:?}: {attempt}"
        );
        let measured = attempt["duration_milliseconds"].as_i64().unwrap();
        assert!(duration.contains(&measured), "{malice:?} took {measured} ms");
        assert!(attempt["answer"].as_str().unwrap().len() <= 2_048, "{malice:?}");
        // A connection that is kept for reuse is no slot.
        if !matches!(malice, Malice::Late | Malice::RedirectLoop) {
            let life = tokio::time::timeout(Duration::from_secs(16), lives.recv()).await;
            let life =
                life.unwrap_or_else(|_| panic!("{malice:?} still has its connection")).unwrap();
            assert!(life < Duration::from_secs(16), "{malice:?} kept its connection {life:?}");
        }
    }
}
