//! What one attempt to deliver a webhook needs, how long each part of it may take, and how it
//! ended.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use rustls::pki_types::CertificateDer;
use tokio::time::{Instant, timeout_at};

use super::vet::WebhookUrl;

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
/// How long an idle connection is kept for reuse, in seconds.
pub const IDLE_SECONDS_MAX: u64 = 60;
/// How long a resolved address is reused, in seconds.
pub const RESOLUTION_SECONDS_MAX: u64 = 5;

/// Bytes of an answer's body that are read before the connection is dropped.
pub const BODY_BYTES_MAX: usize = 16 * 1024;
/// Bytes of an answer's body that are kept in [`AttemptOutcome::answer_excerpt`].
pub const EXCERPT_BYTES_MAX: usize = 2 * 1024;
/// Headers in an answer's head.
pub const HEADERS_MAX: usize = 64;
/// Bytes of an answer's head.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Bytes read from the connection for one answer, with interim answers (RFC 9110 section 15.2) and
/// chunk framing, which [`HEAD_BYTES_MAX`] and [`BODY_BYTES_MAX`] do not count.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The longest `Retry-After` that is reported, in seconds: as long as one schedule of attempts.
pub const RETRY_AFTER_SECONDS_MAX: u64 = 24 * 60 * 60;

/// How long each part of an attempt may take. Callers are promised the default; tests shorten it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// Name resolution.
    pub resolve: Duration,
    /// TCP and TLS handshakes, over all addresses tried.
    pub connect: Duration,
    /// From the request to the end of the answer's head, even if bytes keep coming.
    pub head: Duration,
    /// From the end of the head to the end of reading the body.
    pub body: Duration,
    /// The whole attempt.
    pub total: Duration,
    /// How long an idle connection is kept for reuse.
    pub idle: Duration,
    /// How long a resolved address is reused.
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

/// Options of a [`WebhookClient`] besides its TLS roots.
#[derive(Clone, Debug, Default)]
pub struct WebhookClientOptions {
    /// Time limits.
    pub deadlines: Deadlines,
    /// Certificates trusted as roots in addition to the given store.
    pub roots_extra: Vec<CertificateDer<'static>>,
}

/// One attempt to deliver one event to one endpoint.
#[derive(Clone, Debug)]
pub struct DeliveryAttempt<'a> {
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
    /// Whether the body is sent in parts over some seconds, for a drill.
    pub is_slow: bool,
    /// The value of `User-Agent`, usually [`USER_AGENT_TEXT`].
    pub user_agent: &'a str,
    /// Unix time now, against which an HTTP-date in `Retry-After` is read.
    pub now_seconds: i64,
}

/// The result of an attempt. Exactly one of `http_status` and `error` is present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptOutcome {
    /// The status of the answer, if a whole head came in time.
    pub http_status: Option<u16>,
    /// Why no answer came.
    pub error: Option<DeliveryError>,
    /// From the start of the attempt to its end.
    pub duration_milliseconds: u32,
    /// The beginning of the answer's body, at most [`EXCERPT_BYTES_MAX`] bytes; what is not UTF-8,
    /// and U+0000, is replaced by U+FFFD.
    pub answer_excerpt: String,
    /// What `Retry-After` asks for, in seconds after `now_seconds`, on 429 and 503 only (RFC 9110
    /// section 10.2.3); at most [`RETRY_AFTER_SECONDS_MAX`].
    pub retry_after_seconds: Option<u64>,
}

impl AttemptOutcome {
    /// Whether the receiver took the event: any 2xx, and nothing else.
    pub fn is_success(&self) -> bool {
        self.http_status.is_some_and(|status| (200..300).contains(&status))
    }
}

/// Why an attempt ended without an answer; the text is for the endpoint's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DeliveryError {
    /// An address of the host is not allowed. Global unicast is allowed with https, and loopback
    /// only if the attempt permits it. Or the endpoint's URL is no longer allowed.
    #[error("The host or one of its addresses is not allowed.")]
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

/// Measures the time of one attempt.
pub(super) struct AttemptClock {
    pub(super) started_at: Instant,
    pub(super) deadlines: Deadlines,
}

/// A part of an attempt with its own deadline, and the error if it misses that.
pub(super) struct AttemptPhase {
    pub(super) ends_at: Instant,
    pub(super) error: DeliveryError,
}

impl AttemptClock {
    pub(super) fn start(deadlines: Deadlines) -> AttemptClock {
        AttemptClock { started_at: Instant::now(), deadlines }
    }

    /// A part that begins now and ends after `duration`, or with the attempt if that is sooner.
    pub(super) fn phase(&self, duration: Duration, error: DeliveryError) -> AttemptPhase {
        let total_ends_at = self.started_at + self.deadlines.total;
        let ends_at = Instant::now() + duration;
        if ends_at <= total_ends_at {
            AttemptPhase { ends_at, error }
        } else {
            AttemptPhase { ends_at: total_ends_at, error: DeliveryError::TotalTimeout }
        }
    }
}

impl AttemptPhase {
    pub(super) async fn limit<T>(&self, work: impl Future<Output = T>) -> Result<T, DeliveryError> {
        timeout_at(self.ends_at, work).await.map_err(|_| self.error)
    }
}
