//! Makes one attempt to deliver a webhook: resolves the host, judges its addresses, connects, sends
//! the request, and reads a limited part of the answer. An attempt ends within bounded time,
//! whatever the receiver does.

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use http::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use super::attempt::{
    AttemptClock, AttemptOutcome, Deadlines, DeliveryAttempt, DeliveryError, EXCERPT_BYTES_MAX,
    RETRY_AFTER_SECONDS_MAX, WebhookClientOptions,
};
use super::connection::{Connection, connect, read_body};
use super::paced::PacedBody;
use super::pool::ConnectionPool;
use super::resolve::Resolver;
use super::vet::{WebhookHost, WebhookUrl, is_global_unicast, is_loopback};

/// The most headers of a request: the six that [`request`] sets, and `Content-Length`.
const REQUEST_HEADERS_COUNT: usize = 7;

/// Delivers webhooks. Clones share idle connections and remembered addresses. Dropping the last
/// clone closes the idle connections.
#[derive(Clone)]
pub struct WebhookClient {
    inner: Arc<ClientInner>,
}

struct ClientInner {
    deadlines: Deadlines,
    tls: TlsConnector,
    resolver: Resolver,
    pool: Arc<ConnectionPool>,
}

impl WebhookClient {
    /// A client that trusts `roots` and the options' extra roots, for TLS 1.2 and 1.3. Fails if an
    /// extra root is no certificate.
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
            inner: Arc::new(ClientInner {
                deadlines: options.deadlines,
                tls: TlsConnector::from(Arc::new(config)),
                resolver: Resolver::new(options.deadlines.resolution, options.deadlines.resolve),
                pool: Arc::new(ConnectionPool::new(options.deadlines.idle)),
            }),
        })
    }

    /// Makes one attempt and answers its result within [`Deadlines::total`]. Follows no redirect
    /// and uses no proxy. Needs a tokio runtime with I/O and time. Dropping the future closes the
    /// attempt's connection.
    ///
    /// The request may arrive twice: if a kept connection ends without an answer, the same attempt
    /// sends the request once more on a new connection.
    pub async fn send(&self, attempt: DeliveryAttempt<'_>) -> AttemptOutcome {
        let clock = AttemptClock::start(self.inner.deadlines);
        let result = self.inner.deliver(&attempt, &clock).await;
        let duration_milliseconds = clock.started_at.elapsed().as_millis();
        let outcome = AttemptOutcome {
            http_status: None,
            error: None,
            duration_milliseconds: u32::try_from(duration_milliseconds).unwrap_or(u32::MAX),
            answer_excerpt: String::new(),
            retry_after_seconds: None,
        };
        match result {
            Ok(answer) => AttemptOutcome {
                http_status: Some(answer.status.as_u16()),
                answer_excerpt: answer.excerpt,
                retry_after_seconds: answer.retry_after_seconds,
                ..outcome
            },
            Err(error) => AttemptOutcome { error: Some(error), ..outcome },
        }
    }
}

/// The part of an answer that is kept.
struct ReceiverAnswer {
    status: StatusCode,
    excerpt: String,
    retry_after_seconds: Option<u64>,
}

impl ClientInner {
    async fn deliver(
        &self,
        attempt: &DeliveryAttempt<'_>,
        clock: &AttemptClock,
    ) -> Result<ReceiverAnswer, DeliveryError> {
        let addresses = self.addresses(attempt, clock).await?;
        if let Some(mut connection) = self.pool.take(attempt.url.origin(), &addresses).await {
            match connection.send_request(request(attempt)?, clock).await {
                Ok(response) => {
                    let (answer, is_idle) =
                        read_answer(&mut connection, response, attempt, clock).await;
                    self.keep(is_idle, attempt, connection);
                    return Ok(answer);
                }
                // The kept connection ended before the request was written, or before any byte of
                // an answer came. Receivers close idle connections, so the request is sent once
                // more on a new connection.
                Err(fault) if fault.unanswered => {}
                Err(fault) => return Err(fault.error),
            }
        }
        // The future with the handshakes is boxed, so that the futures of attempts that find a kept
        // connection stay small.
        Box::pin(self.deliver_anew(attempt, &addresses, clock)).await
    }

    /// Delivers on a connection that was not used before.
    async fn deliver_anew(
        &self,
        attempt: &DeliveryAttempt<'_>,
        addresses: &[IpAddr],
        clock: &AttemptClock,
    ) -> Result<ReceiverAnswer, DeliveryError> {
        let mut connection = self.dial(attempt.url, addresses, clock).await?;
        let sent = connection.send_request(request(attempt)?, clock).await;
        let response = sent.map_err(|fault| fault.error)?;
        let (answer, is_idle) = read_answer(&mut connection, response, attempt, clock).await;
        self.keep(is_idle, attempt, connection);
        Ok(answer)
    }

    /// Every address of the host, all of them allowed for this attempt; never empty. The attempt
    /// does not resolve the name again, so it connects to one of these addresses.
    async fn addresses(
        &self,
        attempt: &DeliveryAttempt<'_>,
        clock: &AttemptClock,
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

    /// A new connection to one of the judged addresses, with TLS if the URL is https.
    async fn dial(
        &self,
        url: &WebhookUrl,
        addresses: &[IpAddr],
        clock: &AttemptClock,
    ) -> Result<Connection, DeliveryError> {
        let phase = clock.phase(clock.deadlines.connect, DeliveryError::ConnectTimeout);
        let open = async {
            let (stream, peer) = connect(addresses, url.port(), &phase).await?;
            if !url.is_https() {
                return Connection::open(stream, peer).await;
            }
            let name = match url.host() {
                WebhookHost::Address(address) => ServerName::from(*address),
                WebhookHost::Name(name) => {
                    ServerName::try_from(name.clone()).map_err(|_| DeliveryError::TlsFailed)?
                }
            };
            let stream =
                self.tls.connect(name, stream).await.map_err(|_| DeliveryError::TlsFailed)?;
            Connection::open(stream, peer).await
        };
        phase.limit(open).await?
    }

    /// Keeps a connection for the next attempt if it is idle.
    fn keep(&self, is_idle: bool, attempt: &DeliveryAttempt<'_>, connection: Connection) {
        if is_idle {
            self.pool.put(attempt.url.origin(), connection);
        }
    }
}

/// Reads the body of an answer, as far as the limits allow. The second value says whether the whole
/// answer was read and the connection is idle. An error in the body does not change the result,
/// because the status alone decides.
async fn read_answer(
    connection: &mut Connection,
    response: Response<Incoming>,
    attempt: &DeliveryAttempt<'_>,
    clock: &AttemptClock,
) -> (ReceiverAnswer, bool) {
    let (head, body) = response.into_parts();
    let retry_after_seconds = retry_after_seconds(head.status, &head.headers, attempt.now_seconds);
    let status = head.status;
    drop(head);
    let phase = clock.phase(clock.deadlines.body, DeliveryError::TotalTimeout);
    let mut kept = Vec::new();
    let is_complete = {
        let reading = pin!(read_body(body, &mut kept));
        phase.limit(connection.driver.drive(reading)).await == Ok(true)
    };
    let is_idle = is_complete && connection.is_idle().await;
    (ReceiverAnswer { status, excerpt: excerpt(&kept), retry_after_seconds }, is_idle)
}

/// Refuses a host if any of its addresses is not allowed: an attacker who points a name at an inner
/// network (DNS rebinding) may put one bad address among good ones. Plain http reaches loopback
/// only, whatever the name resolves to.
fn judge(addresses: &[IpAddr], attempt: &DeliveryAttempt<'_>) -> Result<(), DeliveryError> {
    let permitted = |address: &IpAddr| {
        (attempt.loopback_allowed && is_loopback(*address))
            || (attempt.url.is_https() && is_global_unicast(*address))
    };
    if addresses.iter().all(permitted) { Ok(()) } else { Err(DeliveryError::AddressRefused) }
}

/// The request of an attempt. Fails if one of our own values cannot be the value of a header.
fn request(attempt: &DeliveryAttempt<'_>) -> Result<Request<PacedBody>, DeliveryError> {
    let value = |text: &str| HeaderValue::from_str(text).map_err(|_| DeliveryError::RequestInvalid);
    let body = attempt.body.clone();
    let paced = if attempt.is_slow { PacedBody::slow(body) } else { PacedBody::whole(body) };
    let mut request = Request::new(paced);
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from(attempt.url.target().clone());
    let headers = request.headers_mut();
    *headers = HeaderMap::with_capacity(REQUEST_HEADERS_COUNT);
    headers.insert(HOST, attempt.url.authority().clone());
    headers.insert(USER_AGENT, value(attempt.user_agent)?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(HeaderName::from_static("webhook-id"), value(attempt.id)?);
    headers.insert(
        HeaderName::from_static("webhook-timestamp"),
        HeaderValue::from(attempt.timestamp_seconds),
    );
    // Only a drill leaves the signature out.
    if !attempt.signature.is_empty() {
        headers.insert(HeaderName::from_static("webhook-signature"), value(&attempt.signature)?);
    }
    Ok(request)
}

/// Makes text of at most [`EXCERPT_BYTES_MAX`] bytes. Control characters are replaced, except line
/// breaks and tabs: PostgreSQL stores no text that contains U+0000, and many other control
/// characters take six bytes in JSON.
fn excerpt(kept: &[u8]) -> String {
    let is_replaced = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\r' | '\t');
    let mut text = String::from_utf8_lossy(kept).replace(is_replaced, "\u{fffd}");
    text.truncate(text.floor_char_boundary(EXCERPT_BYTES_MAX));
    text
}

/// Reads `Retry-After` (RFC 9110 section 10.2.3) on 429 and 503, as seconds from now. A date in the
/// past counts as 0. A value that is neither a number of seconds nor a date of HTTP is ignored.
fn retry_after_seconds(status: StatusCode, headers: &HeaderMap, now_seconds: i64) -> Option<u64> {
    if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number fails to parse only if it has too many digits.
        text.parse().unwrap_or(u64::MAX)
    } else {
        let date = httpdate::parse_http_date(text).ok()?;
        let date_seconds = date.duration_since(UNIX_EPOCH).ok()?.as_secs();
        let now_seconds = u64::try_from(now_seconds).unwrap_or(0);
        date_seconds.saturating_sub(now_seconds)
    };
    Some(seconds.min(RETRY_AFTER_SECONDS_MAX))
}

#[cfg(test)]
#[path = "client_test.rs"]
mod tests;
