//! The values of one attempt to deliver a webhook: what is sent, how long each part may take, and
//! how the attempt ended.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use rustls::pki_types::CertificateDer;
use tokio::time::{Instant, timeout_at};

use super::vet::WebhookUrl;

/// What deliveries call themselves in `User-Agent`.
pub const USER_AGENT_TEXT: &str = "hundi-webhooks/1";

/// The longest time for resolving a name, in seconds.
pub const RESOLVE_SECONDS_MAX: u64 = 3;
/// The longest time for the TCP and TLS handshakes, over all addresses tried, in seconds.
pub const CONNECT_SECONDS_MAX: u64 = 5;
/// The longest time from the request to the end of the answer's head, in seconds.
pub const HEAD_SECONDS_MAX: u64 = 10;
/// The longest time for reading the answer's body, after the end of its head, in seconds.
pub const BODY_SECONDS_MAX: u64 = 2;
/// The longest time for the whole attempt, in seconds.
pub const TOTAL_SECONDS_MAX: u64 = 15;
/// How long an idle connection is kept for reuse, at most, in seconds.
pub const IDLE_SECONDS_MAX: u64 = 60;
/// How long a resolved address is reused, in seconds.
pub const RESOLUTION_SECONDS_MAX: u64 = 5;

/// How many bytes an answer's body may have. If more come, reading ends and the connection is
/// dropped; the answer's status counts all the same.
pub const BODY_BYTES_MAX: usize = 16 * 1024;
/// The most bytes of an answer's body that are kept in [`AttemptOutcome::answer_excerpt`].
pub const EXCERPT_BYTES_MAX: usize = 2 * 1024;
/// The most headers in an answer's head.
pub const HEADERS_MAX: usize = 64;
/// The most bytes of an answer's head.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;
/// After this many bytes of one answer, no more are read from the connection. This includes interim
/// answers (RFC 9110 section 15.2) and chunk framing, which the limits above do not count.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The longest `Retry-After` that is reported, in seconds: as long as one schedule of attempts. A
/// longer one is cut to this.
pub const RETRY_AFTER_SECONDS_MAX: u64 = 24 * 60 * 60;

/// How long each part of an attempt may take, and how long connections and addresses are kept for
/// later attempts. docs/guides/webhooks.md promises callers the default
/// values of `head` and `total`. Tests use other values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// See [`RESOLVE_SECONDS_MAX`].
    pub resolve: Duration,
    /// See [`CONNECT_SECONDS_MAX`].
    pub connect: Duration,
    /// See [`HEAD_SECONDS_MAX`]. Bytes that keep coming do not extend it.
    pub head: Duration,
    /// See [`BODY_SECONDS_MAX`].
    pub body: Duration,
    /// See [`TOTAL_SECONDS_MAX`].
    pub total: Duration,
    /// See [`IDLE_SECONDS_MAX`].
    pub idle: Duration,
    /// See [`RESOLUTION_SECONDS_MAX`].
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
    pub deadlines: Deadlines,
    /// Certificates that are trusted as roots in addition to the given root store.
    pub roots_extra: Vec<CertificateDer<'static>>,
}

/// One attempt to deliver one event to one endpoint.
#[derive(Clone, Debug)]
pub struct DeliveryAttempt<'a> {
    pub url: &'a WebhookUrl,
    /// Whether loopback addresses may be reached; false in live mode.
    pub loopback_allowed: bool,
    /// The value of `Webhook-Id`: the event's identifier, the same in every attempt.
    pub id: &'a str,
    /// The value of `Webhook-Timestamp`, in Unix seconds: the time of this attempt. In a drill it
    /// may be another.
    pub timestamp_seconds: i64,
    /// The value of `Webhook-Signature`. If it is empty, the header is left out, for a drill.
    pub signature: String,
    /// The JSON to send, byte for byte as it was signed. A drill may have changed it since.
    pub body: Bytes,
    /// Whether the body is sent in parts over some seconds, for a drill.
    pub is_slow: bool,
    /// The value of `User-Agent`, usually [`USER_AGENT_TEXT`].
    pub user_agent: &'a str,
    /// The time in Unix seconds, with which a date in `Retry-After` is compared.
    pub now_seconds: i64,
}

/// The result of an attempt. It has either an `http_status` or an `error`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptOutcome {
    /// The status of the answer, if its whole head came in time.
    pub http_status: Option<u16>,
    /// Why no answer came.
    pub error: Option<DeliveryError>,
    pub duration_milliseconds: u32,
    /// The beginning of the answer's body, at most [`EXCERPT_BYTES_MAX`] bytes. Bytes that are not
    /// UTF-8, and control characters except line breaks and tabs, are replaced by U+FFFD.
    pub answer_excerpt: String,
    /// For how many seconds `Retry-After` asks to wait (RFC 9110 section 10.2.3), at most
    /// [`RETRY_AFTER_SECONDS_MAX`]. The header is read only on 429 and 503.
    pub retry_after_seconds: Option<u64>,
}

impl AttemptOutcome {
    /// Whether the receiver took the event: any 2xx, and nothing else.
    pub fn is_success(&self) -> bool {
        self.http_status.is_some_and(|status| (200..300).contains(&status))
    }
}

/// Why an attempt ended without an answer. The text is for the endpoint's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DeliveryError {
    /// The endpoint's URL is no longer allowed, or an address of the host is not. Global unicast is
    /// allowed with https, and loopback only if [`DeliveryAttempt::loopback_allowed`].
    #[error("The host or one of its addresses is not allowed.")]
    AddressRefused,
    /// The name has no address, its look-up failed, or the look-up took too long.
    #[error("The host name could not be resolved.")]
    NameNotResolved,
    /// No address that was tried took the connection; the last one refused it or is unreachable.
    #[error("No connection could be opened.")]
    ConnectFailed,
    /// The TCP handshake with the last address that was tried did not end in time, or the TLS
    /// handshake did not.
    #[error("Opening the connection took too long.")]
    ConnectTimeout,
    /// The TLS handshake failed; most often the certificate is not valid for the host.
    #[error("The TLS handshake failed; check the certificate, its chain and its names.")]
    TlsFailed,
    /// The answer's head did not come in time.
    #[error("The answer did not begin in time.")]
    HeadTimeout,
    /// The whole attempt took too long, and no answer's head had come.
    #[error("The attempt took too long.")]
    TotalTimeout,
    /// The connection ended before the whole head of an answer came.
    #[error("The connection was closed before an answer came.")]
    ConnectionReset,
    /// What came is not an HTTP/1.1 or HTTP/1.0 answer, or exceeds a limit before the end of its
    /// head.
    #[error("The answer is not HTTP/1.1 or its head is too large.")]
    AnswerInvalid,
    /// The request cannot be made. That is a fault of the service, not of the receiver.
    #[error("The request could not be built.")]
    RequestInvalid,
}

impl DeliveryError {
    /// The name of the error, as it is stored and shown. It never changes.
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

/// When one attempt began, and its deadlines.
pub(super) struct AttemptClock {
    pub(super) started_at: Instant,
    pub(super) deadlines: Deadlines,
}

/// When a part of an attempt has to end, and the error if it does not.
pub(super) struct AttemptPhase {
    pub(super) ends_at: Instant,
    pub(super) error: DeliveryError,
}

impl AttemptClock {
    pub(super) fn start(deadlines: Deadlines) -> AttemptClock {
        AttemptClock { started_at: Instant::now(), deadlines }
    }

    /// A part that begins now. It has to end after `duration`, or with the attempt if that is
    /// sooner.
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
    /// Does the work. Fails with the part's error when the part has to end.
    pub(super) async fn limit<T>(&self, work: impl Future<Output = T>) -> Result<T, DeliveryError> {
        timeout_at(self.ends_at, work).await.map_err(|_| self.error)
    }
}
