//! A webhook receiver on loopback that answers 200 at once, or never where it plays dead.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
/// The path that plays dead: it takes requests and answers none.
pub const DEAD_PATH: &str = "/dead";

/// Called with a request's body and the moment at which it was whole; not for the dead path.
pub type OnDelivery = Arc<dyn Fn(&[u8], Instant) + Send + Sync>;

#[derive(Clone)]
pub struct Receiver {
    pub address: SocketAddr,
    count: Arc<AtomicU64>,
}

impl Receiver {
    pub async fn start(on_delivery: OnDelivery) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port for the receiver");
        let receiver = Receiver {
            address: listener.local_addr().expect("the receiver's address"),
            count: Arc::default(),
        };
        let count = receiver.count.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, count.clone(), on_delivery.clone()));
            }
        });
        receiver
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Deliveries that arrived so far.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Waits until that many deliveries have arrived; answers whether they did in time.
    pub async fn wait_for(&self, count: u64, patience: Duration) -> bool {
        let started = Instant::now();
        while self.count() < count {
            if started.elapsed() > patience {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        true
    }
}

async fn serve(mut stream: TcpStream, count: Arc<AtomicU64>, on_delivery: OnDelivery) {
    let _ = stream.set_nodelay(true);
    let mut inbox = vec![0; 16 * 1024];
    let mut filled = 0;
    loop {
        let (head_length, length) = loop {
            if let Some(lengths) = read_head(&inbox[..filled]) {
                break lengths;
            }
            match stream.read(&mut inbox[filled..]).await {
                Ok(read) if read > 0 => filled += read,
                _ => return,
            }
        };
        while filled < length {
            match stream.read(&mut inbox[filled..]).await {
                Ok(read) if read > 0 => filled += read,
                _ => return,
            }
        }
        let arrived = Instant::now();
        if inbox[5..].starts_with(DEAD_PATH.as_bytes()) {
            // Holds the connection until the sender gives up.
            let _ = stream.read(&mut inbox).await;
            return;
        }
        count.fetch_add(1, Ordering::Relaxed);
        on_delivery(&inbox[head_length..length], arrived);
        if stream.write_all(ANSWER).await.is_err() {
            return;
        }
        inbox.copy_within(length..filled, 0);
        filled -= length;
    }
}

fn read_head(bytes: &[u8]) -> Option<(usize, usize)> {
    const LENGTH: &[u8] = b"\r\ncontent-length: ";
    let head_length = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = &bytes[..head_length];
    let at = head.windows(LENGTH.len()).position(|window| window.eq_ignore_ascii_case(LENGTH))?
        + LENGTH.len();
    let digits = head[at..].iter().take_while(|byte| byte.is_ascii_digit());
    let body_length = digits.fold(0, |length, digit| length * 10 + usize::from(digit - b'0'));
    Some((head_length, head_length + body_length))
}

/// The text of a member of a flat JSON object, without parsing the rest.
pub fn member(body: &[u8], name: &str) -> Option<String> {
    let mark = format!("\"{name}\":\"");
    let at = body.windows(mark.len()).position(|window| window == mark.as_bytes())? + mark.len();
    let end = body[at..].iter().position(|byte| *byte == b'"')?;
    Some(String::from_utf8_lossy(&body[at..at + end]).into_owned())
}
