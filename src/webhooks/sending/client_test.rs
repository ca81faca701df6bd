use bytes::Bytes;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::header;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use super::super::attempt::*;
use super::super::pool::{IDLE_PER_ORIGIN_MAX, IDLE_TOTAL_MAX, lock};
use super::super::vet::{UrlPolicy, parse_url};
use super::*;

const NOW_SECONDS: i64 = 1_764_000_000;
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The longest wait for what must happen soon, far above any pause of a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Deadlines that no test reaches, unless it shortens one of them.
fn patient() -> Deadlines {
    Deadlines {
        resolve: PATIENCE,
        connect: PATIENCE,
        head: PATIENCE,
        body: PATIENCE,
        total: PATIENCE,
        ..Deadlines::default()
    }
}

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn client(deadlines: Deadlines) -> WebhookClient {
    let options = WebhookClientOptions { deadlines, roots_extra: Vec::new() };
    WebhookClient::new(RootCertStore::empty(), options).unwrap()
}

fn url(text: &str) -> WebhookUrl {
    let policy = UrlPolicy { loopback_allowed: true };
    parse_url(text, policy).unwrap()
}

fn attempt(url: &WebhookUrl) -> DeliveryAttempt<'_> {
    DeliveryAttempt {
        url,
        loopback_allowed: true,
        id: "event_01",
        timestamp_seconds: NOW_SECONDS,
        signature: "v1,AAAA v1,BBBB".to_owned(),
        body: Bytes::from_static(br#"{"object":"event"}"#),
        is_slow: false,
        user_agent: USER_AGENT_TEXT,
        now_seconds: NOW_SECONDS,
    }
}

/// A receiver on loopback. It runs a script for every connection, and tells when a script has
/// ended.
struct Receiver {
    url: WebhookUrl,
    port: u16,
    connections: Arc<AtomicUsize>,
    ended: mpsc::UnboundedReceiver<()>,
}

impl Receiver {
    async fn start<F, W>(script: F) -> Receiver
    where
        F: Fn(TcpStream, usize) -> W + Send + 'static,
        W: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = connections.clone();
        let (ended_teller, ended) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let work = script(stream, counter.fetch_add(1, Ordering::SeqCst));
                let ended_teller = ended_teller.clone();
                tokio::spawn(async move {
                    work.await;
                    let _ = ended_teller.send(());
                });
            }
        });
        Receiver {
            url: url(&format!("http://127.0.0.1:{port}/hook?a=1")),
            port,
            connections,
            ended,
        }
    }

    /// A receiver that answers every request on every connection alike.
    async fn answering(answer: impl Into<String>) -> Receiver {
        let answer = answer.into();
        Receiver::start(move |stream, _| serve(stream, answer.clone())).await
    }

    fn connections_count(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Waits until one more script has ended. Many scripts end when the client closes the
    /// connection.
    async fn released(&mut self) {
        tokio::time::timeout(PATIENCE, self.ended.recv())
            .await
            .expect("the client must close the connection")
            .unwrap();
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, answer: String) {
    while read_request(&mut stream).await.is_some() {
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Reads one request with its body, as text; `None` at the end of the connection.
async fn read_request<S: AsyncRead + Unpin>(stream: &mut S) -> Option<String> {
    let mut text = String::new();
    loop {
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("Content-Length: "))
                .map_or(0, |value| value.parse().unwrap());
            if body.len() >= length {
                return Some(text);
            }
        }
        let byte = stream.read_u8().await.ok()?;
        text.push(char::from(byte));
    }
}

async fn read_to_close(stream: &mut TcpStream) {
    let mut buffer = [0; 1024];
    while matches!(stream.read(&mut buffer).await, Ok(1..)) {}
}

/// Writes the same bytes again and again, with a pause after each, until the other end is gone.
async fn drip(stream: &mut TcpStream, bytes: &[u8], pause: Duration) {
    while stream.write_all(bytes).await.is_ok() {
        // The test is about this pause, so it cannot wait for an event instead.
        if pause > Duration::ZERO {
            tokio::time::sleep(pause).await;
        }
    }
}

#[tokio::test]
async fn the_request_on_the_wire() {
    let (teller, mut requests) = mpsc::unbounded_channel();
    let receiver = Receiver::start(move |mut stream, _| {
        let teller = teller.clone();
        async move {
            teller.send(read_request(&mut stream).await).unwrap();
            stream.write_all(OK.as_bytes()).await.unwrap();
        }
    })
    .await;
    let outcome = client(patient()).send(attempt(&receiver.url)).await;
    assert_eq!(outcome.http_status, Some(200));
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.answer_excerpt, "ok");
    assert_eq!(outcome.retry_after_seconds, None);
    assert!(outcome.is_success());
    let expected = format!(
        "POST /hook?a=1 HTTP/1.1\r\n\
         Host: 127.0.0.1:{}\r\n\
         User-Agent: hundi-webhooks/1\r\n\
         Content-Type: application/json\r\n\
         Webhook-Id: event_01\r\n\
         Webhook-Timestamp: 1764000000\r\n\
         Webhook-Signature: v1,AAAA v1,BBBB\r\n\
         Content-Length: 18\r\n\
         \r\n\
         {{\"object\":\"event\"}}",
        receiver.port
    );
    assert_eq!(requests.recv().await.unwrap().unwrap(), expected);
}

#[tokio::test]
async fn only_2xx_is_success() {
    let rows = [
        ("200 OK", true),
        ("204 No Content", true),
        ("299 Odd", true),
        ("101 Switching Protocols\r\nUpgrade: x", false),
        ("300 Multiple Choices", false),
        ("304 Not Modified", false),
        ("400 Bad Request", false),
        ("410 Gone", false),
        ("500 Internal Server Error", false),
        ("999 Odd", false),
    ];
    for (status, success) in rows {
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        let receiver = Receiver::answering(answer).await;
        let outcome = client(patient()).send(attempt(&receiver.url)).await;
        assert_eq!(outcome.http_status, status[..3].parse().ok());
        assert_eq!(outcome.error, None, "{status}");
        assert_eq!(outcome.is_success(), success, "{status}");
    }
}

#[tokio::test]
async fn interim_answers_are_passed_over() {
    let receiver = Receiver::answering(format!(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n{OK}"
    ))
    .await;
    let outcome = client(patient()).send(attempt(&receiver.url)).await;
    assert_eq!(outcome.http_status, Some(200));
    assert_eq!(outcome.answer_excerpt, "ok");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let (teller, mut requests) = mpsc::unbounded_channel();
    let mut receiver = Receiver::start(move |mut stream, _| {
        let teller = teller.clone();
        async move {
            let answer = "HTTP/1.1 307 Temporary Redirect\r\nLocation: /hook?a=1\r\n\
                          Content-Length: 0\r\n\r\n";
            while let Some(request) = read_request(&mut stream).await {
                teller.send(request).unwrap();
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    })
    .await;
    let client = client(patient());
    let outcome = client.send(attempt(&receiver.url)).await;
    assert_eq!(outcome.http_status, Some(307));
    assert!(!outcome.is_success());
    drop(client);
    receiver.released().await;
    assert_eq!(receiver.connections_count(), 1);
    assert!(requests.recv().await.is_some());
    assert!(requests.try_recv().is_err());
}

#[tokio::test]
async fn an_open_connection_is_used_again() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let empty = "HTTP/1.1 204 No Content\r\n\r\n";
    for answer in [OK, chunked, empty] {
        let receiver = Receiver::answering(answer).await;
        let client = client(patient());
        for _ in 0..5 {
            let outcome = client.clone().send(attempt(&receiver.url)).await;
            assert!(outcome.is_success());
        }
        assert_eq!(receiver.connections_count(), 1, "{answer}");
    }
}

#[tokio::test]
async fn a_connection_that_the_answer_ends_is_not_used_again() {
    let answers = [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok".to_owned(),
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok".to_owned(),
        format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}",
            BODY_BYTES_MAX + 1,
            "a".repeat(BODY_BYTES_MAX + 1)
        ),
    ];
    for answer in answers {
        let mut receiver = Receiver::answering(answer).await;
        let client = client(patient());
        for _ in 0..3 {
            let outcome = client.send(attempt(&receiver.url)).await;
            assert!(outcome.is_success());
            receiver.released().await;
        }
        assert_eq!(receiver.connections_count(), 3);
    }
}

#[tokio::test]
async fn a_kept_connection_that_closed_while_idle_is_replaced() {
    let mut receiver = Receiver::start(|mut stream, _| async move {
        read_request(&mut stream).await.unwrap();
        stream.write_all(OK.as_bytes()).await.unwrap();
    })
    .await;
    let client = client(patient());
    for _ in 0..3 {
        let outcome = client.send(attempt(&receiver.url)).await;
        assert_eq!(outcome.http_status, Some(200), "{:?}", outcome.error);
        receiver.released().await;
    }
    assert_eq!(receiver.connections_count(), 3);
}

#[tokio::test]
async fn a_kept_connection_that_closes_under_the_request_is_replaced_once() {
    // The first connection answers one request. It takes a second request and closes without an
    // answer. The second connection answers in the first row; in the second row it closes too.
    let rows = [(true, Some(200), None), (false, None, Some(DeliveryError::ConnectionReset))];
    for (others_answer, http_status, error) in rows {
        let receiver = Receiver::start(move |mut stream, index| async move {
            read_request(&mut stream).await.unwrap();
            if index == 0 || others_answer {
                stream.write_all(OK.as_bytes()).await.unwrap();
            }
            if index == 0 {
                read_request(&mut stream).await.unwrap();
            }
        })
        .await;
        let client = client(patient());
        assert!(client.send(attempt(&receiver.url)).await.is_success());
        let outcome = client.send(attempt(&receiver.url)).await;
        assert_eq!((outcome.http_status, outcome.error), (http_status, error));
        assert_eq!(receiver.connections_count(), 2);
    }
}

#[tokio::test]
async fn a_kept_connection_that_began_to_answer_is_not_replaced() {
    let receiver = Receiver::start(|mut stream, _| async move {
        read_request(&mut stream).await.unwrap();
        stream.write_all(OK.as_bytes()).await.unwrap();
        read_request(&mut stream).await.unwrap();
        stream.write_all(b"HTTP/1.1 200").await.unwrap();
    })
    .await;
    let client = client(patient());
    assert!(client.send(attempt(&receiver.url)).await.is_success());
    let outcome = client.send(attempt(&receiver.url)).await;
    assert_eq!(outcome.error, Some(DeliveryError::ConnectionReset));
    assert_eq!(receiver.connections_count(), 1);
}

#[tokio::test]
async fn a_reset_before_the_answer_is_an_error() {
    let receiver = Receiver::start(|mut stream, _| async move {
        read_request(&mut stream).await.unwrap();
        stream.set_zero_linger().unwrap();
    })
    .await;
    let outcome = client(patient()).send(attempt(&receiver.url)).await;
    assert_eq!(outcome.error, Some(DeliveryError::ConnectionReset));
    assert_eq!(outcome.http_status, None);
    assert_eq!(receiver.connections_count(), 1);
}

#[tokio::test]
async fn a_reset_in_the_body_leaves_the_status() {
    let receiver = Receiver::start(|mut stream, _| async move {
        read_request(&mut stream).await.unwrap();
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
        stream.write_all(head).await.unwrap();
    })
    .await;
    let outcome = client(patient()).send(attempt(&receiver.url)).await;
    assert_eq!(outcome.http_status, Some(200));
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.answer_excerpt, "half");
}

#[tokio::test]
async fn a_dripping_head_does_not_extend_its_deadline() {
    let mut receiver = Receiver::start(|mut stream, _| async move {
        read_request(&mut stream).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\n").await.unwrap();
        drip(&mut stream, b"A: b\r\n", milliseconds(20)).await;
    })
    .await;
    let deadlines = Deadlines { head: milliseconds(300), ..patient() };
    let outcome = client(deadlines).send(attempt(&receiver.url)).await;
    assert_eq!(outcome.error, Some(DeliveryError::HeadTimeout));
    assert!(outcome.duration_milliseconds >= 300);
    assert!(outcome.duration_milliseconds < 3_000);
    receiver.released().await;
}

#[tokio::test]
async fn a_dripping_body_is_left_and_the_status_counts() {
    let mut receiver = Receiver::start(|mut stream, _| async move {
        read_request(&mut stream).await.unwrap();
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
        stream.write_all(head).await.unwrap();
        drip(&mut stream, b"x", milliseconds(20)).await;
    })
    .await;
    let deadlines = Deadlines { body: milliseconds(300), ..patient() };
    let outcome = client(deadlines).send(attempt(&receiver.url)).await;
    assert_eq!(outcome.http_status, Some(200));
    assert_eq!(outcome.error, None);
    assert!(outcome.answer_excerpt.starts_with('x'));
    assert!(outcome.duration_milliseconds >= 300);
    assert!(outcome.duration_milliseconds < 3_000);
    receiver.released().await;
}

#[tokio::test]
async fn an_endless_body_is_left() {
    let chunk = format!("400\r\n{}\r\n", "y".repeat(0x400)).into_bytes();
    let bodies = [
        ("Content-Length: 1000000000000", vec![b'y'; 1024]),
        ("Connection: close", vec![b'y'; 1024]),
        ("Transfer-Encoding: chunked", chunk),
        // Chunks of one byte. Each write has many of them, because a system call for each would
        // take too long on a busy machine.
        ("Transfer-Encoding: chunked", b"1\r\ny\r\n".repeat(1024)),
    ];
    for (framing, bytes) in bodies {
        let head = format!("HTTP/1.1 202 Accepted\r\n{framing}\r\n\r\n");
        let mut receiver = Receiver::start(move |mut stream, _| {
            let (head, bytes) = (head.clone(), bytes.clone());
            async move {
                read_request(&mut stream).await.unwrap();
                stream.write_all(head.as_bytes()).await.unwrap();
                drip(&mut stream, &bytes, Duration::ZERO).await;
            }
        })
        .await;
        let outcome = client(patient()).send(attempt(&receiver.url)).await;
        assert_eq!(outcome.http_status, Some(202), "{framing}");
        assert_eq!(outcome.answer_excerpt, "y".repeat(EXCERPT_BYTES_MAX));
        receiver.released().await;
    }
}

#[tokio::test]
async fn a_head_has_limits() {
    let headers = |count: usize| "A: b\r\n".repeat(count);
    let rows = [
        (headers(HEADERS_MAX - 1), true),
        (headers(HEADERS_MAX), false),
        (format!("A: {}\r\n", "b".repeat(15 * 1024)), true),
        (format!("A: {}\r\n", "b".repeat(HEAD_BYTES_MAX)), false),
    ];
    for (headers, accepted) in rows {
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{headers}\r\n");
        let receiver = Receiver::answering(answer).await;
        let outcome = client(patient()).send(attempt(&receiver.url)).await;
        let refusal = Some(DeliveryError::AnswerInvalid).filter(|_| !accepted);
        assert_eq!(outcome.error, refusal);
        assert_eq!(outcome.is_success(), accepted);
    }
}

#[tokio::test]
async fn a_flood_before_the_answer_is_cut_off() {
    let floods = ["HTTP/1.1 103 Early Hints\r\n\r\n", "HTTP/1.1 100 Continue\r\nA: b\r\n\r\n"];
    for flood in floods {
        let mut receiver = Receiver::start(move |mut stream, _| async move {
            read_request(&mut stream).await.unwrap();
            drip(&mut stream, flood.as_bytes(), Duration::ZERO).await;
        })
        .await;
        let outcome = client(patient()).send(attempt(&receiver.url)).await;
        assert_eq!(outcome.error, Some(DeliveryError::AnswerInvalid));
        receiver.released().await;
    }
}

#[tokio::test]
async fn an_answer_that_is_not_http_is_invalid() {
    let answers = [
        "SSH-2.0-OpenSSH_9.9\r\n",
        "220 mail.example.com ESMTP\r\n",
        "HTTP/2 200\r\n\r\n",
        "HTTP/1.1 20 Short\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "\u{16}\u{3}\u{1}",
    ];
    for answer in answers {
        let receiver = Receiver::answering(answer).await;
        let outcome = client(patient()).send(attempt(&receiver.url)).await;
        assert_eq!(outcome.error, Some(DeliveryError::AnswerInvalid), "{answer}");
        // The same from a receiver that speaks first, without waiting for the request.
        let receiver = Receiver::start(move |mut stream, _| async move {
            stream.write_all(answer.as_bytes()).await.unwrap();
            read_to_close(&mut stream).await;
        })
        .await;
        let outcome = client(patient()).send(attempt(&receiver.url)).await;
        assert_eq!(outcome.error, Some(DeliveryError::AnswerInvalid), "{answer}");
    }
}

#[tokio::test]
async fn a_listener_that_never_accepts_times_out() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let url = url(&format!("http://{address}/"));
    let deadlines = Deadlines { connect: milliseconds(300), head: milliseconds(300), ..patient() };
    let client = client(deadlines);
    // The kernel completes connections until the socket's queue is full. Connections of earlier
    // attempts stay in the queue, so the first attempt connects and the last one cannot.
    let mut outcome = client.send(attempt(&url)).await;
    assert_eq!(outcome.error, Some(DeliveryError::HeadTimeout));
    for _ in 0..4 {
        outcome = client.send(attempt(&url)).await;
    }
    assert_eq!(outcome.error, Some(DeliveryError::ConnectTimeout));
    assert!(outcome.duration_milliseconds >= 300);
    assert!(outcome.duration_milliseconds < 3_000);
}

#[tokio::test]
async fn the_total_deadline_ends_every_part() {
    let mut receiver = Receiver::start(|mut stream, index| async move {
        read_request(&mut stream).await.unwrap();
        if index == 1 {
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
            stream.write_all(head).await.unwrap();
        }
        read_to_close(&mut stream).await;
    })
    .await;
    let deadlines = Deadlines { total: milliseconds(300), ..patient() };
    let client = client(deadlines);
    let in_head = client.send(attempt(&receiver.url)).await;
    assert_eq!(in_head.error, Some(DeliveryError::TotalTimeout));
    assert!((300..3_000).contains(&in_head.duration_milliseconds));
    receiver.released().await;
    let in_body = client.send(attempt(&receiver.url)).await;
    assert_eq!(in_body.http_status, Some(200));
    assert!((300..3_000).contains(&in_body.duration_milliseconds));
    receiver.released().await;
}

#[tokio::test]
async fn dropping_the_attempt_closes_its_connection() {
    let (teller, mut asked) = mpsc::unbounded_channel();
    let mut receiver = Receiver::start(move |mut stream, _| {
        let teller = teller.clone();
        async move {
            read_request(&mut stream).await.unwrap();
            teller.send(()).unwrap();
            read_to_close(&mut stream).await;
        }
    })
    .await;
    let client = client(patient());
    let url = receiver.url.clone();
    // The attempt runs in a task of its own. That this compiles also shows that the attempt's
    // future may move between threads.
    let sending = tokio::spawn(async move { client.send(attempt(&url)).await });
    asked.recv().await.unwrap();
    sending.abort();
    receiver.released().await;
}

#[tokio::test]
async fn a_closed_port_is_a_failed_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = url(&format!("http://{}/", listener.local_addr().unwrap()));
    drop(listener);
    let outcome = client(patient()).send(attempt(&url)).await;
    assert_eq!(outcome.error, Some(DeliveryError::ConnectFailed));
}

#[tokio::test]
async fn loopback_is_refused_unless_allowed() {
    let receiver = Receiver::answering(OK).await;
    let client = client(patient());
    for scheme in ["http", "https"] {
        for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"] {
            let url = url(&format!("{scheme}://{host}:{}/", receiver.port));
            let outcome =
                client.send(DeliveryAttempt { loopback_allowed: false, ..attempt(&url) }).await;
            assert_eq!(outcome.error, Some(DeliveryError::AddressRefused));
        }
    }
    let by_name = url(&format!("http://localhost:{}/", receiver.port));
    assert_eq!(receiver.connections_count(), 0);
    assert!(client.send(attempt(&by_name)).await.is_success());
    // By now the client remembers the address and keeps a connection, but it uses neither of them.
    let outcome =
        client.send(DeliveryAttempt { loopback_allowed: false, ..attempt(&by_name) }).await;
    assert_eq!(outcome.error, Some(DeliveryError::AddressRefused));
}

#[test]
fn one_bad_address_among_good_ones_refuses_the_name() {
    let addresses = |texts: &[&str]| -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    };
    let judged = |url_text: &str, loopback_allowed: bool, texts: &[&str]| {
        let url = url(url_text);
        let attempt = DeliveryAttempt { loopback_allowed, ..attempt(&url) };
        judge(&addresses(texts), &attempt).is_ok()
    };
    let https = "https://example.com/";
    assert!(judged(https, false, &["8.8.8.8", "2606:4700::1"]));
    assert!(!judged(https, false, &["8.8.8.8", "10.0.0.1"]));
    assert!(!judged(https, false, &["8.8.8.8", "2606:4700::1", "fe80::1"]));
    assert!(!judged(https, false, &["8.8.8.8", "127.0.0.1"]));
    assert!(judged(https, true, &["8.8.8.8", "127.0.0.1"]));
    assert!(!judged(https, true, &["8.8.8.8", "10.0.0.1"]));
    let http = "http://localhost/";
    assert!(judged(http, true, &["127.0.0.1", "::1"]));
    assert!(!judged(http, true, &["127.0.0.1", "8.8.8.8"]));
    assert!(!judged(http, false, &["127.0.0.1"]));
}

#[tokio::test]
async fn a_peer_that_was_not_judged_is_refused() {
    let receiver = Receiver::answering(OK).await;
    let phase =
        AttemptPhase { ends_at: Instant::now() + PATIENCE, error: DeliveryError::ConnectTimeout };
    // The kernel takes 0.0.0.0 for this host, so the peer has another address than the one that the
    // client asked for.
    let unspecified = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let result = connect(&[unspecified], receiver.port, &phase).await;
    assert_eq!(result.err(), Some(DeliveryError::AddressRefused));
}

#[tokio::test]
async fn three_addresses_are_tried_in_order() {
    let receiver = Receiver::answering(OK).await;
    let phase =
        AttemptPhase { ends_at: Instant::now() + PATIENCE, error: DeliveryError::ConnectTimeout };
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let elsewhere = |last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
    let third = [elsewhere(2), elsewhere(3), here];
    let (_, peer) = connect(&third, receiver.port, &phase).await.unwrap();
    assert_eq!(peer, here);
    let fourth = [elsewhere(2), elsewhere(3), elsewhere(4), here];
    let result = connect(&fourth, receiver.port, &phase).await;
    assert_eq!(result.err(), Some(DeliveryError::ConnectFailed));
}

#[tokio::test]
async fn a_name_that_does_not_resolve() {
    let deadlines = Deadlines { resolve: milliseconds(500), ..patient() };
    let url = url("https://receiver.invalid/");
    let outcome = client(deadlines).send(attempt(&url)).await;
    assert_eq!(outcome.error, Some(DeliveryError::NameNotResolved));
}

/// A connection to a receiver on loopback.
async fn open_connection(receiver: &Receiver) -> Connection {
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let stream = TcpStream::connect((peer, receiver.port)).await.unwrap();
    Connection::open(stream, peer).await.unwrap()
}

#[tokio::test]
async fn a_kept_connection_needs_a_judged_peer_and_its_own_origin() {
    let receiver = Receiver::answering(OK).await;
    let pool = Arc::new(ConnectionPool::new(Duration::from_secs(60)));
    let origin: Arc<str> = "http://a:1".into();
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let elsewhere = IpAddr::V4(Ipv4Addr::new(8, 8, 8, 8));
    pool.put(&origin, open_connection(&receiver).await);
    assert!(pool.take(&origin, &[elsewhere]).await.is_none());
    assert!(pool.take("https://a:1", &[here]).await.is_none());
    let late = Instant::now() + Duration::from_secs(60);
    assert!(pool.take_unchecked(&origin, &[here], late).is_none());
    assert!(pool.take(&origin, &[elsewhere, here]).await.is_some());
    assert!(pool.take(&origin, &[here]).await.is_none());
}

#[tokio::test]
async fn a_kept_connection_that_is_closed_is_not_taken() {
    let receiver = Receiver::start(|stream, _| async move { drop(stream) }).await;
    let pool = Arc::new(ConnectionPool::new(Duration::from_secs(60)));
    let origin: Arc<str> = "http://a:1".into();
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let stream = TcpStream::connect((here, receiver.port)).await.unwrap();
    stream.readable().await.unwrap();
    pool.put(&origin, Connection::open(stream, here).await.unwrap());
    assert!(pool.take(&origin, &[here]).await.is_none());
}

#[tokio::test]
async fn kept_connections_are_bounded() {
    let receiver = Receiver::answering(OK).await;
    let pool = Arc::new(ConnectionPool::new(Duration::from_secs(60)));
    let count = |pool: &ConnectionPool| lock(&pool.state).idle.len();
    let origin: Arc<str> = "http://a:1".into();
    for _ in 0..IDLE_PER_ORIGIN_MAX + 2 {
        pool.put(&origin, open_connection(&receiver).await);
    }
    assert_eq!(count(&pool), IDLE_PER_ORIGIN_MAX);
    for index in 0..IDLE_TOTAL_MAX {
        pool.put(&format!("http://b:{index}").into(), open_connection(&receiver).await);
    }
    assert_eq!(count(&pool), IDLE_TOTAL_MAX);
    let here = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
    assert!(pool.take(&origin, &here).await.is_none());
    assert!(pool.take("http://b:0", &here).await.is_some());
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_its_time() {
    let mut receiver = Receiver::answering(OK).await;
    let deadlines = Deadlines { idle: milliseconds(100), ..patient() };
    let client = client(deadlines);
    for _ in 0..2 {
        assert!(client.send(attempt(&receiver.url)).await.is_success());
        receiver.released().await;
    }
    assert_eq!(receiver.connections_count(), 2);
}

#[tokio::test]
async fn a_value_that_no_header_can_have_makes_the_request_invalid() {
    let receiver = Receiver::answering(OK).await;
    let outcome = client(patient())
        .send(DeliveryAttempt { id: "event\r\nX: y", ..attempt(&receiver.url) })
        .await;
    assert_eq!(outcome.error, Some(DeliveryError::RequestInvalid));
    assert_eq!(receiver.connections_count(), 0);
}

/// A TLS receiver with a certificate for `name`, and that certificate.
async fn tls_receiver(name: &str) -> (Receiver, CertificateDer<'static>) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed([name.to_owned()]).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let receiver = Receiver::start(move |stream, _| {
        let acceptor = acceptor.clone();
        async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                serve(stream, OK.to_owned()).await;
            }
        }
    })
    .await;
    (receiver, cert.der().clone())
}

fn client_trusting(root: CertificateDer<'static>) -> WebhookClient {
    let options = WebhookClientOptions { deadlines: patient(), roots_extra: vec![root] };
    WebhookClient::new(RootCertStore::empty(), options).unwrap()
}

#[tokio::test]
async fn tls_with_a_trusted_certificate() {
    for host in ["localhost", "127.0.0.1"] {
        let (receiver, root) = tls_receiver(host).await;
        let url = url(&format!("https://{host}:{}/", receiver.port));
        let client = client_trusting(root);
        for _ in 0..3 {
            let outcome = client.send(attempt(&url)).await;
            assert_eq!(outcome.http_status, Some(200), "{:?}", outcome.error);
            assert_eq!(outcome.answer_excerpt, "ok");
        }
        assert_eq!(receiver.connections_count(), 1);
    }
}

#[tokio::test]
async fn tls_that_must_fail() {
    let (receiver, root) = tls_receiver("other.example").await;
    let wrong_name = url(&format!("https://localhost:{}/", receiver.port));
    let outcome = client_trusting(root).send(attempt(&wrong_name)).await;
    assert_eq!(outcome.error, Some(DeliveryError::TlsFailed));

    let (receiver, _) = tls_receiver("localhost").await;
    let untrusted = url(&format!("https://localhost:{}/", receiver.port));
    let outcome = client(patient()).send(attempt(&untrusted)).await;
    assert_eq!(outcome.error, Some(DeliveryError::TlsFailed));

    let receiver = Receiver::answering(OK).await;
    let plain = url(&format!("https://localhost:{}/", receiver.port));
    let deadlines = Deadlines { connect: milliseconds(300), ..patient() };
    // A plain HTTP receiver takes the handshake for part of a request, and waits for the rest.
    let outcome = client(deadlines).send(attempt(&plain)).await;
    assert_eq!(outcome.error, Some(DeliveryError::ConnectTimeout));
}

#[test]
fn a_root_that_is_no_certificate_is_an_error() {
    let options = WebhookClientOptions {
        roots_extra: vec![CertificateDer::from(vec![1, 2, 3])],
        ..WebhookClientOptions::default()
    };
    assert!(WebhookClient::new(RootCertStore::empty(), options).is_err());
}

#[test]
fn retry_after_is_read_on_two_statuses() {
    let read = |status: u16, text: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(header::RETRY_AFTER, HeaderValue::from_str(text).unwrap());
        retry_after_seconds(StatusCode::from_u16(status).unwrap(), &headers, NOW_SECONDS)
    };
    // 1 764 000 000 is Mon, 24 Nov 2025 16:00:00 GMT.
    let rows = [
        (429, "120", Some(120)),
        (503, " 0 ", Some(0)),
        (503, "86400", Some(86_400)),
        (503, "86401", Some(RETRY_AFTER_SECONDS_MAX)),
        (429, "99999999999999999999999999", Some(RETRY_AFTER_SECONDS_MAX)),
        (429, "Mon, 24 Nov 2025 16:02:00 GMT", Some(120)),
        (429, "Monday, 24-Nov-25 16:02:00 GMT", Some(120)),
        (503, "Mon, 24 Nov 2025 15:59:00 GMT", Some(0)),
        (503, "Fri, 24 Nov 2090 16:00:00 GMT", Some(86_400)),
        (503, "", None),
        (503, "-1", None),
        (503, "+1", None),
        (503, "1.5", None),
        (503, "soon", None),
        (200, "120", None),
        (302, "120", None),
        (500, "120", None),
    ];
    for (status, text, expected) in rows {
        assert_eq!(read(status, text), expected, "{status} {text}");
    }
    let none = HeaderMap::new();
    assert_eq!(retry_after_seconds(StatusCode::TOO_MANY_REQUESTS, &none, NOW_SECONDS), None);
}

#[tokio::test]
async fn retry_after_reaches_the_outcome() {
    let receiver = Receiver::answering(
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n",
    )
    .await;
    let outcome = client(patient()).send(attempt(&receiver.url)).await;
    assert_eq!(outcome.http_status, Some(503));
    assert_eq!(outcome.retry_after_seconds, Some(7));
}

#[test]
fn an_excerpt_is_bounded_text() {
    assert_eq!(excerpt(b"a\0b\xffc"), "a\u{fffd}b\u{fffd}c");
    assert_eq!(excerpt(&[b'a'; EXCERPT_BYTES_MAX]).len(), EXCERPT_BYTES_MAX);
    let replaced = excerpt(&[0xff; EXCERPT_BYTES_MAX]);
    assert_eq!(replaced, "\u{fffd}".repeat(EXCERPT_BYTES_MAX / 3));
}

#[test]
fn limits_and_codes_stay_the_same() {
    let deadlines = Deadlines::default();
    assert_eq!(deadlines.connect, Duration::from_secs(5));
    assert_eq!(deadlines.head, Duration::from_secs(10));
    assert_eq!(deadlines.body, Duration::from_secs(2));
    assert_eq!(deadlines.total, Duration::from_secs(15));
    assert_eq!(BODY_BYTES_MAX, 16_384);
    assert_eq!(EXCERPT_BYTES_MAX, 2_048);
    let codes = [
        (DeliveryError::AddressRefused, "address_refused"),
        (DeliveryError::NameNotResolved, "name_not_resolved"),
        (DeliveryError::ConnectFailed, "connect_failed"),
        (DeliveryError::ConnectTimeout, "connect_timeout"),
        (DeliveryError::TlsFailed, "tls_failed"),
        (DeliveryError::HeadTimeout, "head_timeout"),
        (DeliveryError::TotalTimeout, "total_timeout"),
        (DeliveryError::ConnectionReset, "connection_reset"),
        (DeliveryError::AnswerInvalid, "answer_invalid"),
        (DeliveryError::RequestInvalid, "request_invalid"),
    ];
    for (error, code) in codes {
        assert_eq!(error.code(), code);
    }
}
