//! The steps of a drill: what each sends, and which answer is right. This code uses no network.

use super::DrillCheck;
use crate::events::api::view;
use crate::events::rows::EventRow;
use crate::webhooks::sending::attempt::{AttemptOutcome, DeliveryError};
use crate::webhooks::sending::sign::{secret_text, signature_header};

/// By how much a wrong timestamp is off, in seconds. Receivers should accept at most 300, in both
/// directions.
const TIMESTAMP_OFF_SECONDS: i64 = 600;
/// The longest time that a receiver should take to answer, in milliseconds. (An attempt fails after
/// 10 s without an answer.)
const QUICK_MILLISECONDS_MAX: u32 = 5_000;
/// The HTTP status that stands for no answer.
const NO_ANSWER: u16 = 0;
/// The name of the first step. There is nothing unusual about its delivery.
const FIRST: &str = "valid";
/// The message of a step that failed in the same way as the first one.
const AS_FIRST: &str = "The first check, valid, failed in the same way: correct that one first.";
/// A type that no event of the service has.
const UNKNOWN_TYPE: &str = "drill.status.unknown";

/// One delivery of a drill, as it is sent.
pub struct DrillDelivery {
    pub id: String,
    pub timestamp_seconds: i64,
    pub signature: String,
    pub body: Vec<u8>,
    pub is_slow: bool,
}

/// What is wrong or unusual about a step's deliveries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Twist {
    None,
    /// The timestamp is off by this many seconds.
    Timestamp(i64),
    /// It is signed with another secret than the endpoint's.
    OtherSecret,
    NoSignature,
    /// The body was changed after it was signed.
    Altered,
    /// The right signature stands between wrong ones.
    AmongOthers,
    /// The body arrives in parts, with pauses.
    Slow,
}

/// A step: deliveries of one kind.
pub struct DrillStep {
    name: &'static str,
    message: &'static str,
    /// Whether the right answer is 2xx; otherwise the right answer is 4xx.
    is_to_be_taken: bool,
    /// Whether the deliveries are sent at the same time; otherwise they are sent one after another.
    pub is_at_once: bool,
    twist: Twist,
    /// In the order in which they are sent.
    events: Vec<Sample>,
}

/// An event as a step sends it.
#[derive(Clone)]
struct Sample {
    id: String,
    event_type: String,
    body: Vec<u8>,
}

/// All steps of a drill. `events` are the account's latest, oldest first.
pub fn steps(events: &[EventRow], livemode: bool) -> Vec<DrillStep> {
    let sample = |event: &EventRow| {
        let body = serde_json::to_vec(&view(event.clone(), livemode)).unwrap_or_default();
        Sample { id: event.id.to_string(), event_type: event.event_type.clone(), body }
    };
    let (Some(older), Some(newer)) = (events.first(), events.last()) else { return Vec::new() };
    let (older, newer) = (sample(older), sample(newer));
    let unknown = {
        let mut value: serde_json::Value = serde_json::from_slice(&newer.body).unwrap_or_default();
        value["type"] = UNKNOWN_TYPE.into();
        // Its own identifier, so that the receiver does not take it for a duplicate.
        let id = format!("{}DR1", &newer.id[..newer.id.len() - 3]);
        value["id"] = id.clone().into();
        let body = serde_json::to_vec(&value).unwrap_or_default();
        Sample { id, event_type: UNKNOWN_TYPE.to_owned(), body }
    };
    let spaced = {
        let value: serde_json::Value = serde_json::from_slice(&older.body).unwrap_or_default();
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        Sample { body: text.replace("\": ", "\" :  ").into_bytes(), ..older.clone() }
    };
    let step = |name, message, is_to_be_taken, twist, events: &[&Sample]| DrillStep {
        name,
        message,
        is_to_be_taken,
        is_at_once: false,
        twist,
        events: events.iter().map(|event| (*event).clone()).collect(),
    };
    vec![
        step(
            FIRST,
            "Answer a correct delivery with 2xx. Answer at once, and process the event afterwards.",
            true,
            Twist::None,
            &[&older],
        ),
        DrillStep {
            is_at_once: true,
            ..step(
                "duplicate",
                "The same event comes again, twice at the same moment. If you have seen its \
                 Webhook-Id, answer 2xx and do nothing else. Otherwise the event is sent again \
                 for 24 hours.",
                true,
                Twist::None,
                &[&older, &older],
            )
        },
        step(
            "reordered",
            "A newer event comes before an older one. Read the state from the object, not from \
             the order of events.",
            true,
            Twist::None,
            &[&newer, &older],
        ),
        step(
            "unknown_event_type",
            "Answer an event of a type that you do not know with 2xx, and ignore it. Types are \
             added later.",
            true,
            Twist::None,
            &[&unknown],
        ),
        step(
            "raw_body",
            "The body has other white space. Verify the signature over the bytes that arrived, \
             not over JSON that was parsed and written again.",
            true,
            Twist::None,
            &[&spaced],
        ),
        step(
            "several_signatures",
            "While a secret is rotated there are several signatures. Accept the delivery if \
             one of them is right.",
            true,
            Twist::AmongOthers,
            &[&older],
        ),
        step(
            "slow",
            "The body arrives in parts over some seconds. Read until Content-Length.",
            true,
            Twist::Slow,
            &[&older],
        ),
        step(
            "stale_timestamp",
            "A delivery that was signed ten minutes ago is a replay: refuse it with 400.",
            false,
            Twist::Timestamp(-TIMESTAMP_OFF_SECONDS),
            &[&older],
        ),
        step(
            "future_timestamp",
            "The timestamp is ten minutes ahead: refuse the delivery with 400.",
            false,
            Twist::Timestamp(TIMESTAMP_OFF_SECONDS),
            &[&older],
        ),
        step(
            "other_secret",
            "A signature by another secret is forged: refuse it with 400.",
            false,
            Twist::OtherSecret,
            &[&older],
        ),
        step(
            "no_signature",
            "The header Webhook-Signature is missing: refuse the delivery with 400.",
            false,
            Twist::NoSignature,
            &[&older],
        ),
        step(
            "altered_body",
            "The body was changed after it was signed: refuse the delivery with 400.",
            false,
            Twist::Altered,
            &[&older],
        ),
    ]
}

impl DrillStep {
    /// The deliveries, as they are sent at a moment in Unix seconds.
    pub fn deliveries(&self, secret: &str, now_seconds: i64) -> Vec<DrillDelivery> {
        let sent = |Sample { id, body, .. }: &Sample| {
            let timestamp_seconds = match self.twist {
                Twist::Timestamp(offset) => now_seconds + offset,
                _ => now_seconds,
            };
            // Any other secret gives a wrong signature. This secret is a constant, so it reveals
            // nothing about real secrets.
            let stranger = secret_text([7; 32]);
            let sign = |secrets: &[&str]| signature_header(secrets, id, timestamp_seconds, body);
            let signature = match self.twist {
                Twist::OtherSecret => sign(&[&stranger]),
                Twist::NoSignature => String::new(),
                Twist::AmongOthers => sign(&[&stranger, secret, &stranger]),
                _ => sign(&[secret]),
            };
            let mut body = body.clone();
            if self.twist == Twist::Altered {
                let text = String::from_utf8_lossy(&body)
                    .replace("\"livemode\":false", "\"livemode\":true");
                body = text.into_bytes();
            }
            let is_slow = self.twist == Twist::Slow;
            DrillDelivery { id: id.clone(), timestamp_seconds, signature, body, is_slow }
        };
        self.events.iter().map(sent).collect()
    }

    /// Grades the answers. An outcome is `None` if the endpoint's URL is no longer allowed.
    pub fn judge(&self, outcomes: &[Option<AttemptOutcome>]) -> DrillCheck {
        let http_statuses: Vec<u16> = outcomes
            .iter()
            .map(|outcome| outcome.as_ref().and_then(|outcome| outcome.http_status))
            .map(|status| status.unwrap_or(NO_ANSWER))
            .collect();
        let range = if self.is_to_be_taken { 200..300 } else { 400..500 };
        let passed =
            !http_statuses.is_empty() && http_statuses.iter().all(|status| range.contains(status));
        let durations = outcomes.iter().flatten().map(|outcome| outcome.duration_milliseconds);
        let error = outcomes.iter().flatten().find_map(|outcome| outcome.error);
        let is_sent = outcomes.iter().all(Option::is_some);
        let message = match error {
            _ if !is_sent => "Nothing was sent: the server no longer allows this URL. Change the \
                              URL of the endpoint."
                .to_owned(),
            Some(DeliveryError::ConnectFailed) => {
                "No connection could be opened. Start the receiver, and compare its address with \
                 the endpoint's url."
                    .to_owned()
            }
            Some(error) if self.name == FIRST => format!("No answer came. {error}"),
            Some(error) => format!("{} {error}", self.message),
            None if self.name == FIRST && !passed => first_failed(&http_statuses),
            None => self.message.to_owned(),
        };
        DrillCheck {
            name: self.name.to_owned(),
            passed,
            expected: if self.is_to_be_taken { "2xx" } else { "4xx" }.to_owned(),
            event_types: self.events.iter().map(|event| event.event_type.clone()).collect(),
            http_statuses,
            duration_milliseconds: durations.max().unwrap_or(0),
            message,
        }
    }
}

/// The message of the first step if the receiver did not take its delivery.
fn first_failed(http_statuses: &[u16]) -> String {
    let status = http_statuses.first().copied().unwrap_or(NO_ANSWER);
    match status {
        400..500 => format!(
            "The receiver refused a correct delivery with {status}. Does it have this endpoint's \
             newest secret, whole and with whsec_? Does it verify the body as it arrived, before \
             any parsing? Does this address lead to it?"
        ),
        500.. => format!(
            "The receiver failed with {status} on a correct delivery: its log says why. Answer \
             2xx at once, and work afterwards."
        ),
        _ => format!(
            "The receiver answered a correct delivery with {status}. Answer it with 2xx; \
             redirects are not followed."
        ),
    }
}

/// Adds a check of whether the receiver was quick. If the first step failed, the checks that failed
/// with the same status say so, because their own advice would not help.
pub fn conclude(checks: &mut Vec<DrillCheck>) {
    let quick = quickness(checks);
    let failed = checks.iter().find(|check| check.name == FIRST && !check.passed);
    if let Some(status) = failed.and_then(|first| first.http_statuses.first().copied()) {
        let alike = checks.iter_mut().filter(|check| {
            let is_same = check.http_statuses.iter().all(|other| *other == status);
            check.name != FIRST && !check.passed && is_same
        });
        alike.for_each(|check| check.message = AS_FIRST.to_owned());
    }
    checks.push(quick);
}

/// Checks whether the receiver answered every delivery, and quickly; the other checks say whether
/// the answers were right. The step `slow` does not count, because its body takes time by itself.
fn quickness(checks: &[DrillCheck]) -> DrillCheck {
    let timed = || checks.iter().filter(|check| check.name != "slow");
    let slowest = timed().map(|check| check.duration_milliseconds).max().unwrap_or(0);
    let is_answered = timed().all(|check| !check.http_statuses.contains(&NO_ANSWER));
    DrillCheck {
        name: "answers_quickly".to_owned(),
        passed: is_answered && slowest <= QUICK_MILLISECONDS_MAX,
        expected: "any".to_owned(),
        event_types: Vec::new(),
        http_statuses: Vec::new(),
        duration_milliseconds: slowest,
        message: match is_answered || slowest > QUICK_MILLISECONDS_MAX {
            true => {
                "Answer within five seconds: put the event into a queue, and work afterwards. A \
                 delivery without an answer after ten seconds is sent again."
            }
            false => {
                "Not every delivery was answered: see the checks whose http_statuses have a 0."
            }
        }
        .to_owned(),
    }
}
