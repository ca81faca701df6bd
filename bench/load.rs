//! A lean HTTP/1.1 load generator: prepared requests over kept connections, as fast as answers come
//! or at a set pace.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc};

/// Called with a request's index, its answer's body, and the moment of the answer.
pub type OnAnswer = Arc<dyn Fn(usize, &[u8], Instant) + Send + Sync>;

/// A callback that does nothing.
pub fn ignore() -> OnAnswer {
    Arc::new(|_, _, _| {})
}

/// A kept connection; one request at a time.
pub struct Connection {
    stream: TcpStream,
    inbox: Vec<u8>,
}

impl Connection {
    pub async fn open(address: SocketAddr) -> Connection {
        let stream = TcpStream::connect(address)
            .await
            .unwrap_or_else(|error| panic!("no connection to {address}: {error}"));
        stream.set_nodelay(true).expect("TCP_NODELAY");
        Connection { stream, inbox: vec![0; 64 * 1024] }
    }

    /// Sends a whole request and reads the whole answer: its status and body.
    pub async fn ask(&mut self, request: &[u8]) -> (u16, &[u8]) {
        self.stream.write_all(request).await.expect("a request is sent");
        let mut filled = 0;
        let (status, head_length, length) = loop {
            filled += self.fill(filled).await;
            if let Some(head) = read_head(&self.inbox[..filled]) {
                break head;
            }
        };
        if self.inbox.len() < length {
            self.inbox.resize(length, 0);
        }
        while filled < length {
            filled += self.fill(filled).await;
        }
        (status, &self.inbox[head_length..length])
    }

    async fn fill(&mut self, filled: usize) -> usize {
        let count = self.stream.read(&mut self.inbox[filled..]).await.expect("an answer is read");
        assert!(count > 0, "the server closed a connection instead of answering");
        count
    }
}

/// The status of an answer, the length of its head, and its whole length, once the head is there.
fn read_head(bytes: &[u8]) -> Option<(u16, usize, usize)> {
    const LENGTH: &[u8] = b"\r\ncontent-length: ";
    let head_length = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = &bytes[..head_length];
    let status = std::str::from_utf8(head.get(9..12)?).ok()?.parse().ok()?;
    let at = head.windows(LENGTH.len()).position(|window| window.eq_ignore_ascii_case(LENGTH))?
        + LENGTH.len();
    let digits: Vec<u8> = head[at..].iter().copied().take_while(u8::is_ascii_digit).collect();
    let body_length: usize = std::str::from_utf8(&digits).ok()?.parse().ok()?;
    Some((status, head_length, head_length + body_length))
}

/// A request of the API as it goes over the wire.
pub fn request(method: &str, path: &str, key: &str, idempotency_key: &str, body: &str) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer \
         {key}\r\nidempotency-key: {idempotency_key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A GET as it goes over the wire.
pub fn get_request(path: &str, key: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\n\r\n")
        .into_bytes()
}

/// What a run measured.
#[derive(Default)]
pub struct Measured {
    pub seconds: f64,
    /// Microseconds, sorted.
    pub latencies: Vec<u32>,
}

impl Measured {
    pub fn new(seconds: f64, mut latencies: Vec<u32>) -> Measured {
        latencies.sort_unstable();
        Measured { seconds, latencies }
    }
    pub fn count(&self) -> usize {
        self.latencies.len()
    }
    pub fn rate(&self) -> f64 {
        self.count() as f64 / self.seconds.max(1e-9)
    }
    /// A percentile in milliseconds.
    pub fn milliseconds(&self, percentile: f64) -> f64 {
        let index = (self.latencies.len() as f64 * percentile / 100.0) as usize;
        self.latencies
            .get(index.min(self.latencies.len().saturating_sub(1)))
            .map_or(0.0, |micros| f64::from(*micros) / 1000.0)
    }
    /// `p50 5.1 ms, p99 12.0 ms`.
    pub fn percentiles(&self) -> String {
        format!("p50 {:.1} ms, p99 {:.1} ms", self.milliseconds(50.0), self.milliseconds(99.0))
    }
}

/// When a run ends.
#[derive(Clone, Copy)]
pub enum Until {
    /// Every request was sent once.
    AllSent,
    /// Time is up; requests are sent again in turn.
    Seconds(f64),
}

fn check(status: u16, body: &[u8]) {
    assert!(
        (200..400).contains(&status),
        "the server answered {status}: {}",
        String::from_utf8_lossy(body)
    );
}

/// As fast as the answers come, with one request at a time on each connection.
pub async fn closed(
    address: SocketAddr,
    connections_count: usize,
    requests: Arc<Vec<Vec<u8>>>,
    until: Until,
    on_answer: OnAnswer,
) -> Measured {
    closed_over(&[address], connections_count, requests, until, on_answer).await
}

/// The same with the connections spread over several addresses.
pub async fn closed_over(
    addresses: &[SocketAddr],
    connections_count: usize,
    requests: Arc<Vec<Vec<u8>>>,
    until: Until,
    on_answer: OnAnswer,
) -> Measured {
    let mut connections = Vec::new();
    for address in addresses.iter().cycle().take(connections_count) {
        connections.push(Connection::open(*address).await);
    }
    let next = Arc::new(AtomicUsize::new(0));
    let is_over = Arc::new(AtomicBool::new(false));
    let started = Instant::now();
    let mut workers = Vec::new();
    for mut connection in connections {
        let (requests, next, is_over, on_answer) =
            (requests.clone(), next.clone(), is_over.clone(), on_answer.clone());
        workers.push(tokio::spawn(async move {
            let mut latencies = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if matches!(until, Until::AllSent) && index >= requests.len() {
                    break;
                }
                let sent = Instant::now();
                let (status, body) = connection.ask(&requests[index % requests.len()]).await;
                let answered = Instant::now();
                check(status, body);
                on_answer(index, body, answered);
                latencies.push((answered - sent).as_micros() as u32);
                if matches!(until,
                    Until::Seconds(seconds) if (answered - started).as_secs_f64() >= seconds)
                {
                    is_over.store(true, Ordering::Relaxed);
                }
            }
            latencies
        }));
    }
    let mut latencies = Vec::new();
    for worker in workers {
        latencies.extend(worker.await.expect("a worker of the load generator"));
    }
    Measured::new(started.elapsed().as_secs_f64(), latencies)
}

/// At a set pace whatever the answers do, each request once; the time of each is taken from when it
/// was to be sent.
pub async fn paced(
    address: SocketAddr,
    connections_count: usize,
    requests: Arc<Vec<Vec<u8>>>,
    per_second: f64,
    on_answer: OnAnswer,
) -> Measured {
    let (send, receive) = mpsc::unbounded_channel::<(usize, Instant)>();
    let receive = Arc::new(Mutex::new(receive));
    let mut workers = Vec::new();
    for _ in 0..connections_count {
        let mut connection = Connection::open(address).await;
        let (requests, receive, on_answer) = (requests.clone(), receive.clone(), on_answer.clone());
        workers.push(tokio::spawn(async move {
            let mut latencies = Vec::new();
            loop {
                let due = receive.lock().await.recv().await;
                let Some((index, due)) = due else { break };
                let (status, body) = connection.ask(&requests[index]).await;
                let answered = Instant::now();
                check(status, body);
                on_answer(index, body, answered);
                latencies.push((answered - due).as_micros() as u32);
            }
            latencies
        }));
    }
    let count = requests.len();
    let started = Instant::now();
    // A thread of its own sleeps to the microsecond; the runtime's timer only knows milliseconds.
    let pacer = std::thread::spawn(move || {
        for index in 0..count {
            let due = started + Duration::from_secs_f64(index as f64 / per_second);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if send.send((index, due)).is_err() {
                return;
            }
        }
    });
    let mut latencies = Vec::new();
    for worker in workers {
        latencies.extend(worker.await.expect("a worker of the load generator"));
    }
    let measured = Measured::new(started.elapsed().as_secs_f64(), latencies);
    pacer.join().expect("the pacer");
    measured
}

/// Keeps the identifiers of what is created.
pub fn keep_ids() -> (Arc<std::sync::Mutex<Vec<String>>>, OnAnswer) {
    let ids = Arc::new(std::sync::Mutex::new(Vec::new()));
    let keeping = ids.clone();
    (
        ids,
        Arc::new(move |_, body, _| {
            keeping.lock().expect("the identifiers").push(crate::server::id_in(body))
        }),
    )
}
