//! A small blocking HTTP/1.1 client: it writes exactly the bytes it is told to, keeps connections
//! alive, and never repeats a request by itself unless that is asked for.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

/// How long one read or write on a connection may take.
const SOCKET_SECONDS_MAX: u64 = 20;
/// Bytes of one answer's head and body that the client is ready to take.
const HEAD_BYTES_MAX: usize = 64 * 1024;
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Pages of a list that are followed before the list is taken for endless.
const PAGES_MAX: usize = 20_000;

/// Why there is no answer: the caller cannot know whether the request took effect.
#[derive(Debug)]
pub enum Trouble {
    Connect(io::Error),
    Send(io::Error),
    /// The connection broke or was closed before the answer was complete.
    Receive(io::Error),
    /// What came back is not HTTP.
    Protocol(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Connect(error) => write!(f, "cannot connect: {error}"),
            Trouble::Send(error) => write!(f, "cannot send: {error}"),
            Trouble::Receive(error) => write!(f, "no complete answer: {error}"),
            Trouble::Protocol(problem) => write!(f, "the answer is not HTTP: {problem}"),
        }
    }
}

impl Trouble {
    /// Whether the peer was waited for in vain, rather than gone.
    pub fn is_timeout(&self) -> bool {
        match self {
            Trouble::Connect(error) | Trouble::Send(error) | Trouble::Receive(error) => {
                matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
            }
            Trouble::Protocol(_) => false,
        }
    }
}

/// Names and values, in the order received.
pub type Headers = Vec<(String, String)>;

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Headers,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
    pub fn is_replay(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
    /// The body as JSON, `null` if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
    pub fn id(&self) -> String {
        self.json()["id"].as_str().unwrap_or_default().to_owned()
    }
    /// The first error code, empty for a success.
    pub fn code(&self) -> String {
        self.json()["errors"][0]["code"].as_str().unwrap_or_default().to_owned()
    }
    /// The success's body; anything else ends the test with what was answered.
    pub fn expect_success(self, what: &str) -> Value {
        assert!(self.is_success(), "{what} was answered {} {}", self.status, self.text());
        self.json()
    }
    pub fn expect_refusal(self, status: u16, code: &str, what: &str) -> Value {
        assert_eq!(
            (self.status, self.code().as_str()),
            (status, code),
            "{what} was answered {}",
            self.text()
        );
        self.json()
    }
}

/// One connection; bytes go out as they are given.
pub struct Connection {
    reader: BufReader<TcpStream>,
    /// The peer said that it closes after the last answer.
    pub is_spent: bool,
}

impl Connection {
    pub fn open(address: SocketAddr) -> Result<Connection, Trouble> {
        Connection::open_within(address, Duration::from_secs(SOCKET_SECONDS_MAX))
    }

    /// `patience` bounds each single read and write.
    pub fn open_within(address: SocketAddr, patience: Duration) -> Result<Connection, Trouble> {
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))
            .map_err(Trouble::Connect)?;
        // While nobody listens on a port that the system also gives to clients, a client can meet
        // itself there.
        if stream.local_addr().ok() == stream.peer_addr().ok() {
            return Err(Trouble::Connect(io::Error::other("the connection met itself")));
        }
        stream.set_nodelay(true).map_err(Trouble::Connect)?;
        stream.set_read_timeout(Some(patience)).map_err(Trouble::Connect)?;
        stream.set_write_timeout(Some(patience)).map_err(Trouble::Connect)?;
        Ok(Connection { reader: BufReader::new(stream), is_spent: false })
    }

    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        self.reader.get_mut().write_all(bytes).map_err(Trouble::Send)
    }

    /// Says that nothing more will be sent.
    pub fn finish_sending(&mut self) {
        // A peer that closed first leaves nothing to shut down.
        let _ = self.reader.get_ref().shutdown(Shutdown::Write);
    }

    fn line(&mut self, bytes_left: &mut usize) -> Result<Option<String>, Trouble> {
        let mut line = Vec::new();
        let count = (&mut self.reader)
            .take(*bytes_left as u64)
            .read_until(b'\n', &mut line)
            .map_err(Trouble::Receive)?;
        *bytes_left -= count;
        if count == 0 {
            return Ok(None);
        }
        if line.pop() != Some(b'\n') {
            return Err(Trouble::Receive(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the head breaks off",
            )));
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(Some(String::from_utf8_lossy(&line).into_owned()))
    }

    /// The status and headers that come next, interim answers included; `None` if the peer closed
    /// instead.
    fn head(&mut self) -> Result<Option<(u16, Headers)>, Trouble> {
        let mut bytes_left = HEAD_BYTES_MAX;
        let Some(start) = self.line(&mut bytes_left)? else { return Ok(None) };
        let status = start
            .strip_prefix("HTTP/1.")
            .and_then(|rest| rest.get(2..5))
            .and_then(|digits| digits.parse::<u16>().ok());
        let Some(status) = status else {
            return Err(Trouble::Protocol(format!("a status line {start:?}")));
        };
        let mut headers = Vec::new();
        loop {
            let Some(line) = self.line(&mut bytes_left)? else {
                return Err(Trouble::Receive(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the head breaks off",
                )));
            };
            if line.is_empty() {
                return Ok(Some((status, headers)));
            }
            let Some((name, value)) = line.split_once(':') else {
                return Err(Trouble::Protocol(format!("a header line {line:?}")));
            };
            headers.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }

    /// Waits for `100 Continue`: the peer has read the head and asks for the body.
    pub fn await_continue(&mut self) -> Result<bool, Trouble> {
        Ok(self.head()?.is_some_and(|(status, _)| status == 100))
    }

    /// The next final answer; `None` if the peer closed without a word. A HEAD's answer has no
    /// body.
    pub fn receive(&mut self, has_body: bool) -> Result<Option<Answer>, Trouble> {
        let (status, headers) = loop {
            match self.head()? {
                None => return Ok(None),
                Some((status, _)) if (100..200).contains(&status) => {}
                Some(head) => break head,
            }
        };
        let mut answer = Answer { status, headers, body: Vec::new() };
        if answer.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            self.is_spent = true;
        }
        if !has_body || matches!(status, 204 | 304) {
            return Ok(Some(answer));
        }
        if let Some(length) = answer.header("content-length") {
            let length: usize = length
                .parse()
                .map_err(|_| Trouble::Protocol(format!("content-length {length:?}")))?;
            if length > BODY_BYTES_MAX {
                return Err(Trouble::Protocol(format!("a body of {length} bytes")));
            }
            answer.body = vec![0; length];
            self.reader.read_exact(&mut answer.body).map_err(Trouble::Receive)?;
        } else if answer
            .header("transfer-encoding")
            .is_some_and(|value| value.eq_ignore_ascii_case("chunked"))
        {
            answer.body = self.chunks()?;
        } else {
            self.is_spent = true;
            (&mut self.reader)
                .take(BODY_BYTES_MAX as u64)
                .read_to_end(&mut answer.body)
                .map_err(Trouble::Receive)?;
        }
        Ok(Some(answer))
    }

    fn chunks(&mut self) -> Result<Vec<u8>, Trouble> {
        let mut body = Vec::new();
        loop {
            let broken = || {
                Trouble::Receive(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the chunks break off",
                ))
            };
            let line = self.line(&mut 1024)?.ok_or_else(broken)?;
            let length = usize::from_str_radix(line.split(';').next().unwrap_or("").trim(), 16)
                .map_err(|_| Trouble::Protocol(format!("a chunk of length {line:?}")))?;
            if body.len() + length > BODY_BYTES_MAX {
                return Err(Trouble::Protocol("a body without end".to_owned()));
            }
            let start = body.len();
            body.resize(start + length, 0);
            self.reader.read_exact(&mut body[start..]).map_err(Trouble::Receive)?;
            self.line(&mut 1024)?.ok_or_else(broken)?;
            if length == 0 {
                return Ok(body);
            }
        }
    }
}

/// An idempotency key that no other call of this or another test process makes.
pub fn fresh_key() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let nanoseconds =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_nanos() as u64);
    format!(
        "key-{:x}-{nanoseconds:x}-{:08}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    )
}

/// The bytes of a well-formed request.
pub fn request_bytes(
    method: &str,
    path: &str,
    api_key: &str,
    idempotency_key: Option<&str>,
    body: Option<&[u8]>,
) -> Vec<u8> {
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {api_key}\r\n"
    );
    if let Some(key) = idempotency_key {
        head.push_str(&format!("Idempotency-Key: {key}\r\n"));
    }
    if let Some(body) = body {
        head.push_str(&format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        ));
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body.unwrap_or_default());
    bytes
}

/// A caller: an address, an API key, and a connection that is kept alive.
pub struct Client {
    pub address: SocketAddr,
    pub api_key: String,
    connection: Option<Connection>,
}

impl Client {
    pub fn new(address: SocketAddr, api_key: &str) -> Client {
        Client { address, api_key: api_key.to_owned(), connection: None }
    }

    /// Another caller with the same key and a connection of its own.
    pub fn twin(&self) -> Client {
        Client::new(self.address, &self.api_key)
    }

    pub fn connect(&mut self) -> Result<(), Trouble> {
        if self.connection.is_none() {
            self.connection = Some(Connection::open(self.address)?);
        }
        Ok(())
    }

    /// Sends without waiting for the answer.
    pub fn start(
        &mut self,
        method: &str,
        path: &str,
        idempotency_key: Option<&str>,
        body: Option<&[u8]>,
    ) -> Result<(), Trouble> {
        self.connect()?;
        let bytes = request_bytes(method, path, &self.api_key, idempotency_key, body);
        let sent = self.connection.as_mut().map_or_else(
            || Err(Trouble::Connect(io::Error::other("not connected"))),
            |open| open.send(&bytes),
        );
        if sent.is_err() {
            self.connection = None;
        }
        sent
    }

    /// Waits for the answer to what was started.
    pub fn finish(&mut self) -> Result<Answer, Trouble> {
        let Some(mut connection) = self.connection.take() else {
            return Err(Trouble::Connect(io::Error::other("not connected")));
        };
        let answer = connection.receive(true)?.ok_or_else(|| {
            Trouble::Receive(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "closed without an answer",
            ))
        })?;
        if !connection.is_spent {
            self.connection = Some(connection);
        }
        Ok(answer)
    }

    /// One request, sent at most once.
    pub fn once(
        &mut self,
        method: &str,
        path: &str,
        idempotency_key: Option<&str>,
        body: Option<&[u8]>,
    ) -> Result<Answer, Trouble> {
        self.start(method, path, idempotency_key, body)?;
        self.finish()
    }

    /// One request that must be answered. A kept connection may have been closed meanwhile, so a
    /// second attempt on a new one is allowed: everything the tests send this way can be repeated.
    pub fn ask(
        &mut self,
        method: &str,
        path: &str,
        idempotency_key: Option<&str>,
        body: Option<&[u8]>,
    ) -> Answer {
        self.once(method, path, idempotency_key, body)
            .or_else(|_| {
                self.connection = None;
                self.once(method, path, idempotency_key, body)
            })
            .unwrap_or_else(|trouble| panic!("{method} {path}: {trouble}"))
    }

    pub fn get(&mut self, path: &str) -> Answer {
        self.ask("GET", path, None, None)
    }
    pub fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.post_with(path, &fresh_key(), body)
    }
    pub fn post_with(&mut self, path: &str, idempotency_key: &str, body: &Value) -> Answer {
        self.ask("POST", path, Some(idempotency_key), Some(body.to_string().as_bytes()))
    }

    /// All objects of a list, oldest first, page by page. `query` holds filters only, such as
    /// `status=funded`.
    pub fn list(&mut self, path: &str, query: &str) -> Vec<Value> {
        let mut all: Vec<Value> = Vec::new();
        for _ in 0..PAGES_MAX {
            let mut target = format!("{path}?limit=100");
            if !query.is_empty() {
                target.push_str(&format!("&{query}"));
            }
            if let Some(last) = all.last().and_then(|object| object["id"].as_str()) {
                target.push_str(&format!("&starting_after={last}"));
            }
            let page = self.get(&target).expect_success(&format!("GET {target}"));
            let data = page["data"]
                .as_array()
                .unwrap_or_else(|| panic!("GET {target} has no data: {page}"));
            all.extend(data.iter().cloned());
            if page["has_next"] != Value::Bool(true) {
                return all;
            }
            assert!(!data.is_empty(), "GET {target} says has_next with an empty page");
        }
        panic!("{path} did not end after {PAGES_MAX} pages");
    }
}

/// How many times longer than on an idle machine something may take. Nothing passes sooner by a
/// short wait; a long one only tells of a hang later.
pub const LOAD_FACTOR: u32 = 6;

/// Polls until `probe` answers. Panics if it did not within `patience`, which is meant for an idle
/// machine, times [`LOAD_FACTOR`]. The pause only keeps the poll from starving what it waits for.
pub fn until<T>(what: &str, patience: Duration, mut probe: impl FnMut() -> Option<T>) -> T {
    let patience = patience * LOAD_FACTOR;
    let deadline = Instant::now() + patience;
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {patience:?} in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
