//! Makes one attempt to deliver a webhook: resolves, judges the addresses, connects, posts, and
//! reads a bounded answer within bounded time, whatever the receiver does.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_rustls::TlsConnector;

use super::resolve::Resolver;
use super::vet::{WebhookHost, WebhookUrl, is_global_unicast, is_loopback};

/// What deliveries call themselves in `User-Agent`.
pub const USER_AGENT_TEXT: &str = "hundi-webhooks/1";

/// Time for a name to resolve, in seconds.
pub const RESOLVE_SECONDS_MAX: u64 = 3;
/// Time for the TCP and TLS handshakes together, over all addresses tried, in seconds.
pub const CONNECT_SECONDS_MAX: u64 = 5;
/// Time from the request to the end of the answer's head, in seconds.
pub const HEAD_SECONDS_MAX: u64 = 10;
/// Time from the end of the answer's head until reading its body ends, in seconds.
pub const BODY_SECONDS_MAX: u64 = 2;
/// Time for the whole attempt, in seconds.
pub const TOTAL_SECONDS_MAX: u64 = 15;
/// Time an idle connection is kept for reuse, in seconds.
pub const IDLE_SECONDS_MAX: u64 = 60;
/// Time an answer of the resolver is reused, in seconds.
pub const RESOLUTION_SECONDS_MAX: u64 = 5;

/// Bytes of an answer's body that are read before the connection is dropped.
pub const BODY_BYTES_MAX: usize = 16 * 1024;
/// Bytes of an answer's body that are kept in [`Outcome::answer_excerpt`].
pub const EXCERPT_BYTES_MAX: usize = 2 * 1024;
/// Headers in an answer's head.
pub const HEADERS_MAX: usize = 64;
/// Bytes of an answer's head.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Bytes read from the connection for one answer, with interim answers (RFC 9110 section 15.2) and
/// chunk framing, which the two limits above do not count.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The longest `Retry-After` reported, in seconds: the window of all attempts is no longer.
pub const RETRY_AFTER_SECONDS_MAX: u64 = 24 * 60 * 60;

/// Addresses of one name that are tried in one attempt.
const CONNECT_CANDIDATES_MAX: usize = 3;
/// Idle connections kept for one origin.
const IDLE_PER_ORIGIN_MAX: usize = 8;
/// Idle connections kept in all.
const IDLE_TOTAL_MAX: usize = 512;
/// How long each part of an attempt may take. The default is the contract's; tests shorten it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// Name resolution.
    pub resolve: Duration,
    /// TCP and TLS handshakes, over all addresses tried.
    pub connect: Duration,
    /// From the request to the end of the answer's head, however it drips.
    pub head: Duration,
    /// From the end of the head until the body is read no further.
    pub body: Duration,
    /// The whole attempt.
    pub total: Duration,
    /// An idle connection waiting for reuse.
    pub idle: Duration,
    /// A remembered answer of the resolver.
    pub resolution: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Deadlines {
            resolve: Duration::from_secs(RESOLVE_SECONDS_MAX),
            connect: Duration::from_secs(CONNECT_SECONDS_MAX),
            head: Duration::from_secs(HEAD_SECONDS_MAX),
            body: Duration::from_secs(BODY_SECONDS_MAX),
            total: Duration::from_secs(TOTAL_SECONDS_MAX),
            idle: Duration::from_secs(IDLE_SECONDS_MAX),
            resolution: Duration::from_secs(RESOLUTION_SECONDS_MAX),
        }
    }
}

/// What a [`WebhookClient`] may be told beyond its TLS roots.
#[derive(Clone, Debug, Default)]
pub struct WebhookClientOptions {
    /// Time limits.
    pub deadlines: Deadlines,
    /// Certificates trusted as roots in addition to the given store.
    pub roots_extra: Vec<CertificateDer<'static>>,
}

/// One attempt to deliver one event to one endpoint.
#[derive(Clone, Debug)]
pub struct Attempt<'a> {
    /// Where to.
    pub url: &'a WebhookUrl,
    /// Whether loopback addresses may be reached; false in live mode.
    pub loopback_allowed: bool,
    /// The value of `Webhook-Id`: the event's id, the same on every attempt.
    pub id: &'a str,
    /// The value of `Webhook-Timestamp`: Unix time of this attempt, as signed.
    pub timestamp_seconds: i64,
    /// The value of `Webhook-Signature`.
    pub signature: String,
    /// The exact bytes that were signed; JSON.
    pub body: Bytes,
    /// The value of `User-Agent`, usually [`USER_AGENT_TEXT`].
    pub user_agent: &'a str,
    /// Unix time now, against which an HTTP-date in `Retry-After` is read.
    pub now_seconds: i64,
}

/// What became of an attempt. Exactly one of `http_status` and `error` is present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The status of the answer, if a whole head came in time.
    pub http_status: Option<u16>,
    /// Why no answer came.
    pub error: Option<DeliveryError>,
    /// From the start of the attempt to its end.
    pub duration_milliseconds: u32,
    /// The beginning of the answer's body, at most [`EXCERPT_BYTES_MAX`] bytes; what is not UTF-8,
    /// and U+0000, is replaced by U+FFFD.
    pub answer_excerpt: String,
    /// What `Retry-After` asks for in seconds from `now_seconds`, on 429 and 503 only (RFC 9110
    /// section 10.2.3); at most [`RETRY_AFTER_SECONDS_MAX`].
    pub retry_after_seconds: Option<u64>,
}

impl Outcome {
    /// Whether the receiver took the event: any 2xx, and nothing else.
    pub fn is_success(&self) -> bool {
        self.http_status.is_some_and(|status| (200..300).contains(&status))
    }
}

/// Why an attempt ended without an answer; the text is for the endpoint's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DeliveryError {
    /// Some address of the host is not global unicast, or not loopback where only that may be.
    #[error("The host has an address that is not public.")]
    AddressRefused,
    /// The name has no address, or no answer about it came in time.
    #[error("The host name could not be resolved.")]
    NameNotResolved,
    /// Every address tried refused the connection or is unreachable.
    #[error("No connection could be opened.")]
    ConnectFailed,
    /// The TCP or TLS handshake did not end in time.
    #[error("Opening the connection took too long.")]
    ConnectTimeout,
    /// The TLS handshake failed; most often the certificate is not valid for the host.
    #[error("The TLS handshake failed; check the certificate, its chain and its names.")]
    TlsFailed,
    /// The answer's head did not come in time.
    #[error("The answer did not begin in time.")]
    HeadTimeout,
    /// The attempt as a whole took too long.
    #[error("The attempt took too long.")]
    TotalTimeout,
    /// The connection ended before a whole head of an answer came.
    #[error("The connection was closed before an answer came.")]
    ConnectionReset,
    /// What came is not an HTTP/1.1 answer or exceeds the limits on its head.
    #[error("The answer is not HTTP/1.1 or its head is too large.")]
    AnswerInvalid,
    /// The request cannot be written down: a fault of the service, not of the receiver.
    #[error("The request could not be built.")]
    RequestInvalid,
}

impl DeliveryError {
    /// The stable name of the error, as stored and shown.
    pub fn code(self) -> &'static str {
        match self {
            DeliveryError::AddressRefused => "address_refused",
            DeliveryError::NameNotResolved => "name_not_resolved",
            DeliveryError::ConnectFailed => "connect_failed",
            DeliveryError::ConnectTimeout => "connect_timeout",
            DeliveryError::TlsFailed => "tls_failed",
            DeliveryError::HeadTimeout => "head_timeout",
            DeliveryError::TotalTimeout => "total_timeout",
            DeliveryError::ConnectionReset => "connection_reset",
            DeliveryError::AnswerInvalid => "answer_invalid",
            DeliveryError::RequestInvalid => "request_invalid",
        }
    }
}

/// Delivers webhooks. Clones share connections and remembered addresses; dropping the last clone
/// closes them.
#[derive(Clone)]
pub struct WebhookClient {
    inner: Arc<Inner>,
}

struct Inner {
    deadlines: Deadlines,
    tls: TlsConnector,
    resolver: Resolver,
    pool: Arc<Pool>,
}

impl WebhookClient {
    /// A sender that trusts `roots` and the options' extra roots, for TLS 1.2 and 1.3. Fails only
    /// on an extra root that is no certificate.
    pub fn new(
        mut roots: RootCertStore,
        options: WebhookClientOptions,
    ) -> Result<WebhookClient, rustls::Error> {
        for root in options.roots_extra {
            roots.add(root)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(WebhookClient {
            inner: Arc::new(Inner {
                deadlines: options.deadlines,
                tls: TlsConnector::from(Arc::new(config)),
                resolver: Resolver::new(options.deadlines.resolution, options.deadlines.resolve),
                pool: Arc::new(Pool::new(options.deadlines.idle)),
            }),
        })
    }

    /// Makes one attempt and says what became of it, within [`Deadlines::total`]. Follows no
    /// redirect and uses no proxy. Needs a tokio runtime with I/O and time. Dropping the future
    /// closes the attempt's connection.
    ///
    /// The request may arrive twice: a kept connection that turns out to be closed is replaced
    /// once by a fresh one within the same attempt.
    pub async fn send(&self, attempt: Attempt<'_>) -> Outcome {
        let clock = Clock::start(self.inner.deadlines);
        let result = self.inner.deliver(&attempt, &clock).await;
        let duration_milliseconds = clock.started_at.elapsed().as_millis();
        let outcome = Outcome {
            http_status: None,
            error: None,
            duration_milliseconds: u32::try_from(duration_milliseconds).unwrap_or(u32::MAX),
            answer_excerpt: String::new(),
            retry_after_seconds: None,
        };
        match result {
            Ok(answer) => Outcome {
                http_status: Some(answer.status.as_u16()),
                answer_excerpt: answer.excerpt,
                retry_after_seconds: answer.retry_after_seconds,
                ..outcome
            },
            Err(error) => Outcome { error: Some(error), ..outcome },
        }
    }
}

/// The part of an answer that is kept.
struct Answer {
    status: StatusCode,
    excerpt: String,
    retry_after_seconds: Option<u64>,
}

impl Inner {
    async fn deliver(&self, attempt: &Attempt<'_>, clock: &Clock) -> Result<Answer, DeliveryError> {
        let request = request(attempt)?;
        let addresses = self.addresses(attempt, clock).await?;
        if let Some(mut link) = self.pool.take(attempt.url.origin(), &addresses).await {
            match link.ask(request.clone(), clock).await {
                Ok(response) => return Ok(self.answer(link, response, attempt, clock).await),
                // The receiver closed the kept connection while the request was on its way.
                Err(fault) if fault.unanswered => {}
                Err(fault) => return Err(fault.error),
            }
        }
        let mut link = self.dial(attempt.url, &addresses, clock).await?;
        let response = link.ask(request, clock).await.map_err(|fault| fault.error)?;
        Ok(self.answer(link, response, attempt, clock).await)
    }

    /// Every address of the host, judged at this attempt; never empty. Nothing resolves the name
    /// again later, so what was judged is what is connected to.
    async fn addresses(
        &self,
        attempt: &Attempt<'_>,
        clock: &Clock,
    ) -> Result<Arc<[IpAddr]>, DeliveryError> {
        let name = match attempt.url.host() {
            WebhookHost::Address(address) => {
                let addresses = [address.to_canonical()];
                judge(&addresses, attempt)?;
                return Ok(addresses.into());
            }
            WebhookHost::Name(name) => name,
        };
        let phase = clock.phase(clock.deadlines.resolve, DeliveryError::NameNotResolved);
        let addresses = phase
            .limit(self.resolver.resolve(name))
            .await?
            .ok_or(DeliveryError::NameNotResolved)?;
        judge(&addresses, attempt)?;
        Ok(addresses)
    }

    /// A fresh connection to one of the judged addresses, with TLS where the URL asks for it.
    async fn dial(
        &self,
        url: &WebhookUrl,
        addresses: &[IpAddr],
        clock: &Clock,
    ) -> Result<Link, DeliveryError> {
        let phase = clock.phase(clock.deadlines.connect, DeliveryError::ConnectTimeout);
        let open = async {
            let (stream, peer) = connect(addresses, url.port(), &phase).await?;
            if !url.is_https() {
                return Link::open(stream, peer).await;
            }
            let name = match url.host() {
                WebhookHost::Address(address) => ServerName::from(*address),
                WebhookHost::Name(name) => {
                    ServerName::try_from(name.clone()).map_err(|_| DeliveryError::TlsFailed)?
                }
            };
            let stream =
                self.tls.connect(name, stream).await.map_err(|_| DeliveryError::TlsFailed)?;
            Link::open(stream, peer).await
        };
        phase.limit(open).await?
    }

    /// Reads what is wanted of the body and keeps the connection if the answer ended properly. No
    /// fault of the body changes the outcome: the status line has decided it.
    async fn answer(
        &self,
        mut link: Link,
        response: Response<Incoming>,
        attempt: &Attempt<'_>,
        clock: &Clock,
    ) -> Answer {
        let (head, body) = response.into_parts();
        let phase = clock.phase(clock.deadlines.body, DeliveryError::TotalTimeout);
        let mut kept = Vec::new();
        let reading = link.driver.drive(read_body(body, &mut kept));
        let complete = phase.limit(reading).await == Ok(true);
        if complete && link.is_idle().await {
            self.pool.put(attempt.url.origin(), link);
        }
        Answer {
            status: head.status,
            excerpt: excerpt(&kept),
            retry_after_seconds: retry_after_seconds(
                head.status,
                &head.headers,
                attempt.now_seconds,
            ),
        }
    }
}

/// The time of one attempt.
struct Clock {
    started_at: Instant,
    deadlines: Deadlines,
}

/// One timed part of an attempt and the error that its end means.
struct Phase {
    ends_at: Instant,
    error: DeliveryError,
}

impl Clock {
    fn start(deadlines: Deadlines) -> Clock {
        Clock { started_at: Instant::now(), deadlines }
    }

    /// A part that begins now and ends after `duration`, or with the attempt if that is sooner.
    fn phase(&self, duration: Duration, error: DeliveryError) -> Phase {
        let total_ends_at = self.started_at + self.deadlines.total;
        let ends_at = Instant::now() + duration;
        if ends_at <= total_ends_at {
            Phase { ends_at, error }
        } else {
            Phase { ends_at: total_ends_at, error: DeliveryError::TotalTimeout }
        }
    }
}

impl Phase {
    async fn limit<T>(&self, work: impl Future<Output = T>) -> Result<T, DeliveryError> {
        timeout_at(self.ends_at, work).await.map_err(|_| self.error)
    }
}

/// Refuses unless every address may be connected to: one bad address among good ones is how a
/// name is rebound to an inner network. Plain http reaches loopback only, whatever a name
/// resolves to.
fn judge(addresses: &[IpAddr], attempt: &Attempt<'_>) -> Result<(), DeliveryError> {
    let permitted = |address: &IpAddr| {
        (attempt.loopback_allowed && is_loopback(*address))
            || (attempt.url.is_https() && is_global_unicast(*address))
    };
    if addresses.iter().all(permitted) { Ok(()) } else { Err(DeliveryError::AddressRefused) }
}

/// Connects to the first address that accepts. Each is given an equal share of the time that is
/// left, so that one that swallows packets does not use up the others' chance.
async fn connect(
    addresses: &[IpAddr],
    port: u16,
    phase: &Phase,
) -> Result<(TcpStream, IpAddr), DeliveryError> {
    let candidates_count = addresses.len().min(CONNECT_CANDIDATES_MAX);
    let mut error = DeliveryError::ConnectFailed;
    for (candidates_left, address) in (1..=candidates_count as u32).rev().zip(addresses) {
        let now = Instant::now();
        let share = phase.ends_at.saturating_duration_since(now) / candidates_left;
        let opening = TcpStream::connect(SocketAddr::new(*address, port));
        match timeout_at(now + share, opening).await {
            Ok(Ok(stream)) => {
                check_peer(&stream, *address)?;
                // A request is one small write; waiting for more (RFC 896) only delays it.
                stream.set_nodelay(true).map_err(|_| DeliveryError::ConnectFailed)?;
                return Ok((stream, *address));
            }
            Ok(Err(_)) => error = DeliveryError::ConnectFailed,
            Err(_) => error = phase.error,
        }
    }
    Err(error)
}

/// The other end must be the very address that was judged.
fn check_peer(stream: &TcpStream, judged: IpAddr) -> Result<(), DeliveryError> {
    match stream.peer_addr() {
        Ok(peer) if peer.ip().to_canonical() == judged => Ok(()),
        Ok(_) => Err(DeliveryError::AddressRefused),
        Err(_) => Err(DeliveryError::ConnectFailed),
    }
}

/// The request of an attempt. Fails only where a value of ours cannot stand in a header.
fn request(attempt: &Attempt<'_>) -> Result<Request<Full<Bytes>>, DeliveryError> {
    let value = |text: &str| HeaderValue::from_str(text).map_err(|_| DeliveryError::RequestInvalid);
    let mut request = Request::new(Full::new(attempt.body.clone()));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from(attempt.url.target().clone());
    let headers = request.headers_mut();
    headers.insert(HOST, attempt.url.authority().clone());
    headers.insert(USER_AGENT, value(attempt.user_agent)?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(HeaderName::from_static("webhook-id"), value(attempt.id)?);
    headers.insert(
        HeaderName::from_static("webhook-timestamp"),
        HeaderValue::from(attempt.timestamp_seconds),
    );
    headers.insert(HeaderName::from_static("webhook-signature"), value(&attempt.signature)?);
    Ok(request)
}

/// An HTTP/1.1 connection. It moves only while an attempt waits on it, so dropping the attempt
/// drops the socket too, and no task outlives it.
struct Link {
    requests: http1::SendRequest<Full<Bytes>>,
    driver: Driver,
    peer: IpAddr,
    bytes_read: Arc<AtomicUsize>,
}

/// Why a request on a [`Link`] got no answer.
struct LinkFault {
    error: DeliveryError,
    /// The connection ended before the request was written or before any byte of an answer: the
    /// usual end of a kept connection, and no verdict about the receiver.
    unanswered: bool,
}

impl Link {
    async fn open<S>(stream: S, peer: IpAddr) -> Result<Link, DeliveryError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let bytes_read = Arc::new(AtomicUsize::new(0));
        let stream = Metered { stream, bytes_read: bytes_read.clone() };
        let (requests, connection) = http1::Builder::new()
            .max_headers(HEADERS_MAX)
            .max_buf_size(HEAD_BYTES_MAX)
            .title_case_headers(true)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|_| DeliveryError::ConnectFailed)?;
        Ok(Link {
            requests,
            driver: Driver { connection: Some(Box::pin(connection)) },
            peer,
            bytes_read,
        })
    }

    /// Sends the request and waits for the head of the answer.
    async fn ask(
        &mut self,
        request: Request<Full<Bytes>>,
        clock: &Clock,
    ) -> Result<Response<Incoming>, LinkFault> {
        self.bytes_read.store(0, Ordering::Relaxed);
        let phase = clock.phase(clock.deadlines.head, DeliveryError::HeadTimeout);
        let response = self.requests.send_request(request);
        let error = match phase.limit(self.driver.drive(response)).await {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(error)) => error,
            Err(error) => {
                return Err(LinkFault { error, unanswered: false });
            }
        };
        let bytes_read = self.bytes_read.load(Ordering::Relaxed);
        // A canceled request was never written; bytes in spite of that are a receiver that speaks
        // first, which is not HTTP.
        let invalid = error.is_parse()
            || bytes_read >= ANSWER_BYTES_MAX
            || (error.is_canceled() && bytes_read > 0);
        Err(LinkFault {
            error: if invalid {
                DeliveryError::AnswerInvalid
            } else {
                DeliveryError::ConnectionReset
            },
            unanswered: error.is_canceled() || bytes_read == 0,
        })
    }

    /// Whether the connection could take a request now, as far as the socket tells.
    async fn is_idle(&mut self) -> bool {
        self.driver.drive(async {}).await;
        self.driver.connection.is_some() && self.requests.is_ready()
    }
}

/// The side of a connection that reads and writes.
struct Driver {
    /// Absent once the connection has ended.
    connection: Option<Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>>,
}

impl Driver {
    /// Runs the connection while `work` waits for something from it.
    async fn drive<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            // An error of the connection reaches `work` through the request or the body.
            if let Some(connection) = &mut self.connection
                && connection.as_mut().poll(context).is_ready()
            {
                self.connection = None;
            }
            work.as_mut().poll(context)
        })
        .await
    }
}

/// A stream that counts the bytes read for one answer and refuses to read more than
/// [`ANSWER_BYTES_MAX`] of them.
struct Metered<S> {
    stream: S,
    bytes_read: Arc<AtomicUsize>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.bytes_read.load(Ordering::Relaxed) >= ANSWER_BYTES_MAX {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        let filled_before = buffer.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(context, buffer);
        let bytes_new = buffer.filled().len().saturating_sub(filled_before);
        self.bytes_read.fetch_add(bytes_new, Ordering::Relaxed);
        poll
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Reads the body, keeps its beginning in `kept`, and says whether it ended within the limit.
async fn read_body(mut body: Incoming, kept: &mut Vec<u8>) -> bool {
    let mut bytes_read = 0;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return false;
        };
        if let Some(data) = frame.data_ref() {
            let room = EXCERPT_BYTES_MAX.saturating_sub(kept.len());
            kept.extend_from_slice(&data[..data.len().min(room)]);
            bytes_read += data.len();
            if bytes_read > BODY_BYTES_MAX {
                return false;
            }
        }
    }
    true
}

/// Text of at most [`EXCERPT_BYTES_MAX`] bytes. U+0000 goes too: PostgreSQL stores no text with it.
fn excerpt(kept: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(kept).replace('\0', "\u{fffd}");
    text.truncate(text.floor_char_boundary(EXCERPT_BYTES_MAX));
    text
}

/// Reads `Retry-After` (RFC 9110 section 10.2.3) on the two statuses where it is honoured. A date
/// in the past is 0; what is neither seconds nor an HTTP-date is as good as absent.
fn retry_after_seconds(status: StatusCode, headers: &HeaderMap, now_seconds: i64) -> Option<u64> {
    if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Only digits can fail to parse by being too many.
        text.parse().unwrap_or(u64::MAX)
    } else {
        let date = httpdate::parse_http_date(text).ok()?;
        let date_seconds = date.duration_since(UNIX_EPOCH).ok()?.as_secs();
        let now_seconds = u64::try_from(now_seconds).unwrap_or(0);
        date_seconds.saturating_sub(now_seconds)
    };
    Some(seconds.min(RETRY_AFTER_SECONDS_MAX))
}

/// Idle connections, the longest idle first. A scan of one short queue is cheaper than a map of
/// queues and makes every limit one line.
struct Pool {
    idle_duration: Duration,
    state: Mutex<PoolState>,
}

#[derive(Default)]
struct PoolState {
    idle: VecDeque<IdleLink>,
    sweeping: bool,
}

struct IdleLink {
    origin: Arc<str>,
    link: Link,
    idle_since: Instant,
}

impl Pool {
    fn new(idle_duration: Duration) -> Pool {
        Pool { idle_duration, state: Mutex::default() }
    }

    /// The connection to this origin that was used last, if its peer is among the addresses judged
    /// for this attempt and it is still open as far as the socket tells.
    async fn take(&self, origin: &str, addresses: &[IpAddr]) -> Option<Link> {
        loop {
            let mut link = self.take_unchecked(origin, addresses, Instant::now())?;
            if link.is_idle().await {
                return Some(link);
            }
        }
    }

    fn take_unchecked(&self, origin: &str, addresses: &[IpAddr], now: Instant) -> Option<Link> {
        let mut state = lock(&self.state);
        let index = state.idle.iter().rposition(|idle| {
            *idle.origin == *origin
                && addresses.contains(&idle.link.peer)
                && now < idle.idle_since + self.idle_duration
        })?;
        state.idle.remove(index).map(|idle| idle.link)
    }

    /// Keeps an idle connection, in place of the longest idle one where a limit is reached.
    fn put(self: &Arc<Pool>, origin: &Arc<str>, link: Link) {
        let mut state = lock(&self.state);
        let of_origin = |idle: &IdleLink| idle.origin == *origin;
        let count = state.idle.iter().filter(|idle| of_origin(idle)).count();
        if count >= IDLE_PER_ORIGIN_MAX {
            if let Some(oldest) = state.idle.iter().position(of_origin) {
                state.idle.remove(oldest);
            }
        } else if state.idle.len() >= IDLE_TOTAL_MAX {
            state.idle.pop_front();
        }
        state.idle.push_back(IdleLink { origin: origin.clone(), link, idle_since: Instant::now() });
        if !state.sweeping {
            state.sweeping = true;
            tokio::spawn(Pool::sweep(Arc::downgrade(self)));
        }
    }

    /// Closes connections as they reach their age, until none is left.
    async fn sweep(pool: Weak<Pool>) {
        loop {
            let next = match pool.upgrade() {
                Some(pool) => pool.close_expired(Instant::now()),
                None => return,
            };
            match next {
                Some(next) => sleep_until(next).await,
                None => return,
            }
        }
    }

    /// Closes what is too old at `now` and says when the next one will be; with none left, the
    /// sweep is over.
    fn close_expired(&self, now: Instant) -> Option<Instant> {
        let mut state = lock(&self.state);
        while let Some(oldest) = state.idle.front() {
            let expires_at = oldest.idle_since + self.idle_duration;
            if now < expires_at {
                return Some(expires_at);
            }
            state.idle.pop_front();
        }
        state.sweeping = false;
        None
    }
}

/// A poisoned lock is used as it is: what the locks here guard is whole between any two calls.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::vet::{UrlPolicy, parse_url};
    use super::*;
    use http::header;
    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use rustls::ServerConfig;
    use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
    use std::net::Ipv4Addr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpSocket};
    use tokio::sync::mpsc;
    use tokio_rustls::TlsAcceptor;

    const NOW_SECONDS: i64 = 1_764_000_000;
    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

    /// A bound on what must happen soon, far above any pause of a busy machine.
    const PATIENCE: Duration = Duration::from_secs(10);

    /// Long deadlines for what must not time out.
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

    fn sender(deadlines: Deadlines) -> WebhookClient {
        let options = WebhookClientOptions { deadlines, roots_extra: Vec::new() };
        WebhookClient::new(RootCertStore::empty(), options).unwrap()
    }

    fn url(text: &str) -> WebhookUrl {
        let policy = UrlPolicy { loopback_http_allowed: true };
        parse_url(text, policy).unwrap()
    }

    fn attempt(url: &WebhookUrl) -> Attempt<'_> {
        Attempt {
            url,
            loopback_allowed: true,
            id: "event_01",
            timestamp_seconds: NOW_SECONDS,
            signature: "v1,AAAA v1,BBBB".to_owned(),
            body: Bytes::from_static(br#"{"object":"event"}"#),
            user_agent: USER_AGENT_TEXT,
            now_seconds: NOW_SECONDS,
        }
    }

    /// A receiver on loopback that runs a script for every connection, and tells when a script
    /// ends.
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

        /// Waits until one more script has ended, which the scripts here do when the sender lets
        /// go of the connection.
        async fn released(&mut self) {
            tokio::time::timeout(PATIENCE, self.ended.recv())
                .await
                .expect("the sender must close the connection")
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

    /// Reads one request with its body, as text; nothing at the end of the connection.
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

    /// Writes the same bytes again and again, with a pause between, until the other end is gone.
    async fn drip(stream: &mut TcpStream, bytes: &[u8], pause: Duration) {
        while stream.write_all(bytes).await.is_ok() {
            // Dripping is what is tested, so there is no event to wait for instead.
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
        let outcome = sender(patient()).send(attempt(&receiver.url)).await;
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
            let outcome = sender(patient()).send(attempt(&receiver.url)).await;
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
        let outcome = sender(patient()).send(attempt(&receiver.url)).await;
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
        let sender = sender(patient());
        let outcome = sender.send(attempt(&receiver.url)).await;
        assert_eq!(outcome.http_status, Some(307));
        assert!(!outcome.is_success());
        drop(sender);
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
            let sender = sender(patient());
            for _ in 0..5 {
                let outcome = sender.clone().send(attempt(&receiver.url)).await;
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
            let sender = sender(patient());
            for _ in 0..3 {
                let outcome = sender.send(attempt(&receiver.url)).await;
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
        let sender = sender(patient());
        for _ in 0..3 {
            let outcome = sender.send(attempt(&receiver.url)).await;
            assert_eq!(outcome.http_status, Some(200), "{:?}", outcome.error);
            receiver.released().await;
        }
        assert_eq!(receiver.connections_count(), 3);
    }

    #[tokio::test]
    async fn a_kept_connection_that_closes_under_the_request_is_replaced_once() {
        // The first connection takes a second request and closes without a byte; so do the next
        // ones with their first request, in the second row.
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
            let sender = sender(patient());
            assert!(sender.send(attempt(&receiver.url)).await.is_success());
            let outcome = sender.send(attempt(&receiver.url)).await;
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
        let sender = sender(patient());
        assert!(sender.send(attempt(&receiver.url)).await.is_success());
        let outcome = sender.send(attempt(&receiver.url)).await;
        assert_eq!(outcome.error, Some(DeliveryError::ConnectionReset));
        assert_eq!(receiver.connections_count(), 1);
    }

    #[tokio::test]
    async fn a_reset_before_the_answer() {
        let receiver = Receiver::start(|mut stream, _| async move {
            read_request(&mut stream).await.unwrap();
            stream.set_zero_linger().unwrap();
        })
        .await;
        let outcome = sender(patient()).send(attempt(&receiver.url)).await;
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
        let outcome = sender(patient()).send(attempt(&receiver.url)).await;
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
        let outcome = sender(deadlines).send(attempt(&receiver.url)).await;
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
        let outcome = sender(deadlines).send(attempt(&receiver.url)).await;
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
            ("Transfer-Encoding: chunked", b"1\r\ny\r\n".to_vec()),
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
            let outcome = sender(patient()).send(attempt(&receiver.url)).await;
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
            let outcome = sender(patient()).send(attempt(&receiver.url)).await;
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
            let outcome = sender(patient()).send(attempt(&receiver.url)).await;
            assert_eq!(outcome.error, Some(DeliveryError::AnswerInvalid));
            receiver.released().await;
        }
    }

    #[tokio::test]
    async fn an_answer_that_is_not_http() {
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
            let outcome = sender(patient()).send(attempt(&receiver.url)).await;
            assert_eq!(outcome.error, Some(DeliveryError::AnswerInvalid), "{answer}");
            let receiver = Receiver::start(move |mut stream, _| async move {
                stream.write_all(answer.as_bytes()).await.unwrap();
                read_to_close(&mut stream).await;
            })
            .await;
            let outcome = sender(patient()).send(attempt(&receiver.url)).await;
            assert_eq!(outcome.error, Some(DeliveryError::AnswerInvalid), "{answer}");
        }
    }

    #[tokio::test]
    async fn a_listener_that_never_accepts() {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let url = url(&format!("http://{address}/"));
        let deadlines =
            Deadlines { connect: milliseconds(300), head: milliseconds(300), ..patient() };
        let sender = sender(deadlines);
        // The kernel completes connections until the backlog is full, and those of earlier attempts
        // stay in it.
        let mut outcome = sender.send(attempt(&url)).await;
        assert_eq!(outcome.error, Some(DeliveryError::HeadTimeout));
        for _ in 0..4 {
            outcome = sender.send(attempt(&url)).await;
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
        let sender = sender(deadlines);
        let in_head = sender.send(attempt(&receiver.url)).await;
        assert_eq!(in_head.error, Some(DeliveryError::TotalTimeout));
        assert!((300..3_000).contains(&in_head.duration_milliseconds));
        receiver.released().await;
        let in_body = sender.send(attempt(&receiver.url)).await;
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
        let sender = sender(patient());
        let url = receiver.url.clone();
        // Spawned, which also shows that the future may move between threads.
        let sending = tokio::spawn(async move { sender.send(attempt(&url)).await });
        asked.recv().await.unwrap();
        sending.abort();
        receiver.released().await;
    }

    #[tokio::test]
    async fn a_closed_port() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = url(&format!("http://{}/", listener.local_addr().unwrap()));
        drop(listener);
        let outcome = sender(patient()).send(attempt(&url)).await;
        assert_eq!(outcome.error, Some(DeliveryError::ConnectFailed));
    }

    #[tokio::test]
    async fn loopback_is_refused_unless_allowed() {
        let receiver = Receiver::answering(OK).await;
        let sender = sender(patient());
        for scheme in ["http", "https"] {
            for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"] {
                let url = url(&format!("{scheme}://{host}:{}/", receiver.port));
                let outcome =
                    sender.send(Attempt { loopback_allowed: false, ..attempt(&url) }).await;
                assert_eq!(outcome.error, Some(DeliveryError::AddressRefused));
            }
        }
        let by_name = url(&format!("http://localhost:{}/", receiver.port));
        assert_eq!(receiver.connections_count(), 0);
        assert!(sender.send(attempt(&by_name)).await.is_success());
        // Neither the remembered address nor the kept connection opens a way.
        let outcome = sender.send(Attempt { loopback_allowed: false, ..attempt(&by_name) }).await;
        assert_eq!(outcome.error, Some(DeliveryError::AddressRefused));
    }

    #[test]
    fn one_bad_address_among_good_ones_refuses_the_name() {
        let addresses = |texts: &[&str]| -> Vec<IpAddr> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        let judged = |url_text: &str, loopback_allowed: bool, texts: &[&str]| {
            let url = url(url_text);
            let attempt = Attempt { loopback_allowed, ..attempt(&url) };
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
            Phase { ends_at: Instant::now() + PATIENCE, error: DeliveryError::ConnectTimeout };
        // The kernel takes 0.0.0.0 for this host, so the peer is another address than the one
        // connected to.
        let unspecified = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let result = connect(&[unspecified], receiver.port, &phase).await;
        assert_eq!(result.err(), Some(DeliveryError::AddressRefused));
    }

    #[tokio::test]
    async fn three_addresses_are_tried_in_order() {
        let receiver = Receiver::answering(OK).await;
        let phase =
            Phase { ends_at: Instant::now() + PATIENCE, error: DeliveryError::ConnectTimeout };
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
        let outcome = sender(deadlines).send(attempt(&url)).await;
        assert_eq!(outcome.error, Some(DeliveryError::NameNotResolved));
    }

    /// A link to a receiver on loopback.
    async fn link(receiver: &Receiver) -> Link {
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let stream = TcpStream::connect((peer, receiver.port)).await.unwrap();
        Link::open(stream, peer).await.unwrap()
    }

    #[tokio::test]
    async fn a_kept_connection_needs_a_judged_peer_and_its_own_origin() {
        let receiver = Receiver::answering(OK).await;
        let pool = Arc::new(Pool::new(Duration::from_secs(60)));
        let origin: Arc<str> = "http://a:1".into();
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let elsewhere = IpAddr::V4(Ipv4Addr::new(8, 8, 8, 8));
        pool.put(&origin, link(&receiver).await);
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
        let pool = Arc::new(Pool::new(Duration::from_secs(60)));
        let origin: Arc<str> = "http://a:1".into();
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let stream = TcpStream::connect((here, receiver.port)).await.unwrap();
        stream.readable().await.unwrap();
        pool.put(&origin, Link::open(stream, here).await.unwrap());
        assert!(pool.take(&origin, &[here]).await.is_none());
    }

    #[tokio::test]
    async fn kept_connections_are_bounded() {
        let receiver = Receiver::answering(OK).await;
        let pool = Arc::new(Pool::new(Duration::from_secs(60)));
        let count = |pool: &Pool| lock(&pool.state).idle.len();
        let origin: Arc<str> = "http://a:1".into();
        for _ in 0..IDLE_PER_ORIGIN_MAX + 2 {
            pool.put(&origin, link(&receiver).await);
        }
        assert_eq!(count(&pool), IDLE_PER_ORIGIN_MAX);
        for index in 0..IDLE_TOTAL_MAX {
            pool.put(&format!("http://b:{index}").into(), link(&receiver).await);
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
        let sender = sender(deadlines);
        for _ in 0..2 {
            assert!(sender.send(attempt(&receiver.url)).await.is_success());
            receiver.released().await;
        }
        assert_eq!(receiver.connections_count(), 2);
    }

    #[tokio::test]
    async fn a_value_that_no_header_can_hold_is_our_own_fault() {
        let receiver = Receiver::answering(OK).await;
        let outcome =
            sender(patient()).send(Attempt { id: "event\r\nX: y", ..attempt(&receiver.url) }).await;
        assert_eq!(outcome.error, Some(DeliveryError::RequestInvalid));
        assert_eq!(receiver.connections_count(), 0);
    }

    /// A TLS receiver whose certificate names `name`, and that certificate.
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

    fn sender_trusting(root: CertificateDer<'static>) -> WebhookClient {
        let options = WebhookClientOptions { deadlines: patient(), roots_extra: vec![root] };
        WebhookClient::new(RootCertStore::empty(), options).unwrap()
    }

    #[tokio::test]
    async fn tls_with_a_trusted_certificate() {
        for host in ["localhost", "127.0.0.1"] {
            let (receiver, root) = tls_receiver(host).await;
            let url = url(&format!("https://{host}:{}/", receiver.port));
            let sender = sender_trusting(root);
            for _ in 0..3 {
                let outcome = sender.send(attempt(&url)).await;
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
        let outcome = sender_trusting(root).send(attempt(&wrong_name)).await;
        assert_eq!(outcome.error, Some(DeliveryError::TlsFailed));

        let (receiver, _) = tls_receiver("localhost").await;
        let untrusted = url(&format!("https://localhost:{}/", receiver.port));
        let outcome = sender(patient()).send(attempt(&untrusted)).await;
        assert_eq!(outcome.error, Some(DeliveryError::TlsFailed));

        let receiver = Receiver::answering(OK).await;
        let plain = url(&format!("https://localhost:{}/", receiver.port));
        let deadlines = Deadlines { connect: milliseconds(300), ..patient() };
        // A plain receiver waits for more of what it takes for a request.
        let outcome = sender(deadlines).send(attempt(&plain)).await;
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
        let outcome = sender(patient()).send(attempt(&receiver.url)).await;
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
    fn the_contract_numbers_and_codes() {
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
}
