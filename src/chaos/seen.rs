//! What was seen under a profile: requests with their attempts, and events.

use serde::{Deserialize, Serialize};

use super::{RequestAttack, WebhookAttack};
use crate::kernel::Id;
use crate::kernel::id::kind;

pub type EventId = Id<kind::Event>;

/// What happened to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Nothing was done to it.
    Answered,
    Dropped,
    Delayed,
    Unavailable,
    Locked,
}

/// One attempt of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestAttempt {
    pub request_id: String,
    /// When it came, by the store's clock.
    #[serde(rename = "at")]
    pub at_milliseconds: i64,
    pub fate: Fate,
    /// When it was answered, by the store's clock. A refused attempt is answered as it begins. For
    /// a delayed answer this is the planned time, written as the attempt begins: the answer comes
    /// then or a little later, or earlier if the service stops. For any other attempt it is `None`
    /// while the attempt runs.
    #[serde(rename = "answered_at")]
    pub answered_milliseconds: Option<i64>,
    /// The status of the answer, also of one that was dropped; 0 while the attempt runs.
    pub http_status: u16,
    /// Whether the attempt has the same path, query and body as the request's first one.
    pub is_same: bool,
}

/// What a caller asked for: a POST by its idempotency key, or a GET that was attacked.
#[derive(Clone, Debug)]
pub struct ObservedRequest {
    pub number: i64,
    /// Which request it is: for a POST the hash of its idempotency key, for a GET a hash of its
    /// path and query.
    pub request_hash: [u8; 16],
    pub fingerprint: [u8; 32],
    pub method: String,
    pub route: String,
    pub attack: Option<RequestAttack>,
    /// How many more attempts the attack refuses.
    pub failures_left: i64,
    pub attempts: Vec<RequestAttempt>,
}

impl RequestAttempt {
    /// Whether this attempt tells the caller the result of its request, now or once it is answered.
    pub fn is_told(&self) -> bool {
        matches!(self.fate, Fate::Answered | Fate::Delayed) && self.is_same
    }
}

impl ObservedRequest {
    pub fn is_write(&self) -> bool {
        self.method == "POST"
    }
    pub fn is_told(&self) -> bool {
        self.attempts.iter().any(RequestAttempt::is_told)
    }
    /// Whether the caller was told by this moment, in milliseconds. A delayed answer counts once it
    /// has come. An answer that is not attacked counts as soon as its attempt has begun.
    pub fn is_told_by(&self, milliseconds: i64) -> bool {
        let is_on_its_way = |attempt: &RequestAttempt| {
            attempt.fate == Fate::Delayed
                && attempt.answered_milliseconds.is_some_and(|answered| answered > milliseconds)
        };
        self.attempts.iter().any(|attempt| attempt.is_told() && !is_on_its_way(attempt))
    }
}

/// An event that was made for the endpoint.
#[derive(Clone, Debug)]
pub struct WatchedEvent {
    pub event_id: EventId,
    pub number: i64,
    /// The object that it is about.
    pub linked_id: String,
    pub attack: Option<WebhookAttack>,
    /// How the receiver answered the last attempt of the delivery: 0 for no answer, `None` before
    /// the first attempt.
    pub http_status: Option<i64>,
    /// How the receiver answered what the attack sent: the forged copy, the second delivery, or the
    /// late event. A refused late event is sent again; its first answer counts. `None` while there
    /// was no answer.
    pub attacked_http_status: Option<i64>,
    /// The longest time that the receiver took for an attempt.
    pub duration_milliseconds: i64,
    /// Whether the receiver took a delivery of the event with 2xx or, if the profile withholds the
    /// event ([`WebhookAttack::Missing`]), the caller read the event or its object through the API.
    pub was_read: bool,
}
