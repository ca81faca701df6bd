//! The report: what the service saw its caller do, judged by the rules of docs/guides for retries
//! (idempotency.md) and webhooks (webhooks.md). It is made from plain values, without the store.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::requests::RETRY_AFTER_SECONDS;
use super::seen::{Fate, ObservedRequest, RequestAttempt, WatchedEvent};
use super::{ChaosStatus, Profile, RequestAttack, WebhookAttack};

/// The most faults that one check shows. All are counted.
const FAULTS_SHOWN_MAX: usize = 10;
/// How much earlier than `Retry-After` says a retry may come, because times are rounded.
const RETRY_AFTER_SLACK_MILLISECONDS: i64 = 100;
/// The shortest pause that a caller may make before it retries a request that got no answer.
const PAUSE_MILLISECONDS_MIN: i64 = 100;
/// How long a receiver may take to answer; the same as in a drill (`webhooks/drill/`).
const WEBHOOK_MILLISECONDS_MAX: i64 = 5_000;
/// A caller that does not retry for this long counts as having given up.
const PATIENCE_MILLISECONDS: i64 = 60_000;

crate::string_enum!(
    /// `failed` if a check failed. `incomplete` if none failed, but a check of an attack that the
    /// profile makes is `not_observed`. Otherwise `passed`: other checks may be `not_observed`.
    ChaosGrade { Passed "passed", Failed "failed", Incomplete "incomplete" }
);
crate::string_enum!(
    /// What a check found.
    ChaosResult { Passed "passed", Failed "failed", NotObserved "not_observed" }
);

macro_rules! checks {
    ($($name:ident $code:literal $remedy:literal),* $(,)?) => {
        crate::string_enum!(
            /// A mistake that callers make.
            ChaosCheckCode { $($name $code),* }
        );
        impl ChaosCheckCode {
            pub const fn remedy(self) -> &'static str {
                match self { $(ChaosCheckCode::$name => $remedy),* }
            }
        }
    };
}

checks! {
    RetriedWithNewKey "retried_with_new_key"
        "Make the Idempotency-Key once for each operation, store it with the operation, and send \
         it on every retry. A new key can do the work twice.",
    DroppedAnswerAbandoned "dropped_answer_abandoned"
        "When no answer comes, the work may be done. Send the same request with the same \
         Idempotency-Key until an answer comes.",
    UnavailableTakenAsFinal "unavailable_taken_as_final"
        "503 is no decision. Wait as long as Retry-After says, and send the same request again.",
    LockedTakenAsFinal "locked_taken_as_final"
        "409 resource_locked says that the first request still runs. Wait as long as Retry-After \
         says, and send the same request with the same Idempotency-Key.",
    RetryAfterIgnored "retry_after_ignored"
        "Wait at least as many seconds as Retry-After says before the next attempt.",
    RetriedWithoutPause "retried_without_pause"
        "When no answer came, wait before the retry: half a second at first, then twice as long \
         each time. Make each pause a little longer or shorter at random.",
    KeyReusedForOtherBody "key_reused_for_other_body"
        "A retry sends exactly the body that was sent first. A changed request is a new one and \
         takes a new Idempotency-Key.",
    RefusalRetried "refusal_retried"
        "A 400, 403, 404 or 409 idempotency_key_reuse does not change by itself. Correct the \
         request, and send it with a new Idempotency-Key. After a 401 correct the API key and keep \
         the Idempotency-Key: an earlier attempt may have taken effect.",
    TimedOutTooEarly "timed_out_too_early"
        "Wait 30 seconds for an answer before the next attempt.",
    WebhookForgeryAccepted "webhook_forgery_accepted"
        "Verify Webhook-Signature over the bytes that arrived, and answer 400 where it is wrong.",
    WebhookDuplicateRefused "webhook_duplicate_refused"
        "Ignore an event whose Webhook-Id you have seen, and answer it with 2xx. Otherwise it is \
         sent again for 24 hours.",
    WebhookLateRefused "webhook_late_refused"
        "Take events in any order with 2xx, and read the state from the object.",
    WebhookAnsweredSlowly "webhook_answered_slowly"
        "Answer a webhook within five seconds: put the event into a queue and work afterwards.",
    MissingEventNotRead "missing_event_not_read"
        "A webhook that keeps failing is sent again for 24 hours only. From time to time, read GET \
         /v1/events after the last event that you know, with the API key that has the profile.",
}

/// One mistake that was seen.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ChaosFault {
    /// The route of the request; null for a webhook.
    pub route: Option<String>,
    /// The `Request-Id` of each request that shows the mistake.
    pub request_ids: Vec<String>,
    /// The event of the webhook; null for a request.
    pub event_id: Option<String>,
    /// What was seen.
    pub message: String,
}

/// One mistake that was looked for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ChaosCheck {
    /// The mistake, as a stable word.
    pub code: ChaosCheckCode,
    /// `not_observed` where nothing showed whether the caller makes the mistake.
    pub result: ChaosResult,
    /// How often the caller could have made the mistake.
    pub observed_count: i64,
    /// How often the caller made the mistake.
    pub faults_count: i64,
    /// The first ten times that the caller made the mistake.
    pub faults: Vec<ChaosFault>,
    /// How to avoid the mistake.
    pub remedy: String,
}

/// Collects observations, check by check.
#[derive(Default)]
struct Observations {
    observed: HashMap<ChaosCheckCode, i64>,
    faults: HashMap<ChaosCheckCode, Vec<ChaosFault>>,
}

impl Observations {
    fn observe(&mut self, code: ChaosCheckCode) {
        *self.observed.entry(code).or_default() += 1;
    }
    fn fault(
        &mut self,
        code: ChaosCheckCode,
        request: &ObservedRequest,
        attempts: &[&RequestAttempt],
        message: String,
    ) {
        let request_ids = attempts.iter().map(|attempt| attempt.request_id.clone()).collect();
        let route = Some(format!("{} {}", request.method, request.route));
        let fault = ChaosFault { route, request_ids, event_id: None, message };
        self.faults.entry(code).or_default().push(fault);
    }
    fn event_fault(&mut self, code: ChaosCheckCode, event: &WatchedEvent, message: String) {
        let event_id = Some(event.event_id.to_string());
        let fault = ChaosFault { route: None, request_ids: Vec::new(), event_id, message };
        self.faults.entry(code).or_default().push(fault);
    }
}

/// Judges everything that was seen under a profile. The grade is `None` until the profile is
/// completed.
pub fn grade(
    profile: &Profile,
    requests: &[ObservedRequest],
    events: &[WatchedEvent],
    now_milliseconds: i64,
) -> (Option<ChaosGrade>, Vec<ChaosCheck>) {
    let is_completed = profile.status(now_milliseconds) == ChaosStatus::Completed;
    let mut found = Observations::default();
    for request in requests {
        judge_attempts(request, &mut found);
        let last = request.attempts.last();
        let waited = last.map(|last| now_milliseconds - last.at_milliseconds);
        let is_given_up =
            is_completed || waited.is_some_and(|waited| waited > PATIENCE_MILLISECONDS);
        judge_end(request, requests, is_given_up, &mut found);
    }
    for event in events {
        judge_event(event, is_completed, &mut found);
    }
    let checks: Vec<ChaosCheck> =
        ChaosCheckCode::ALL.iter().map(|code| check(*code, &mut found)).collect();
    let grade = is_completed.then(|| {
        let is_open = |check: &ChaosCheck| {
            check.result == ChaosResult::NotObserved && is_attacked(profile, check.code)
        };
        if checks.iter().any(|check| check.result == ChaosResult::Failed) {
            ChaosGrade::Failed
        } else if checks.iter().any(is_open) {
            ChaosGrade::Incomplete
        } else {
            ChaosGrade::Passed
        }
    });
    (grade, checks)
}

fn check(code: ChaosCheckCode, found: &mut Observations) -> ChaosCheck {
    let mut faults = found.faults.remove(&code).unwrap_or_default();
    let faults_count = faults.len() as i64;
    faults.truncate(FAULTS_SHOWN_MAX);
    let observed_count = found.observed.get(&code).copied().unwrap_or(0).max(faults_count);
    let result = match (faults_count, observed_count) {
        (0, 0) => ChaosResult::NotObserved,
        (0, _) => ChaosResult::Passed,
        _ => ChaosResult::Failed,
    };
    let remedy = code.remedy().to_owned();
    ChaosCheck { code, result, observed_count, faults_count, faults, remedy }
}

/// Whether a profile makes the attack that a check needs; `false` for a check that needs none. Such
/// a check does not make the grade `incomplete` if nothing was seen.
fn is_attacked(profile: &Profile, code: ChaosCheckCode) -> bool {
    let request = |attack| profile.request_attacks.contains(&attack);
    let webhook =
        |attack| profile.endpoint_id.is_some() && profile.webhook_attacks.contains(&attack);
    match code {
        ChaosCheckCode::DroppedAnswerAbandoned => request(RequestAttack::AnswerDropped),
        ChaosCheckCode::UnavailableTakenAsFinal => request(RequestAttack::ServiceUnavailable),
        ChaosCheckCode::LockedTakenAsFinal => request(RequestAttack::ResourceLocked),
        ChaosCheckCode::TimedOutTooEarly => request(RequestAttack::AnswerDelayed),
        ChaosCheckCode::WebhookForgeryAccepted => webhook(WebhookAttack::Forged),
        ChaosCheckCode::WebhookDuplicateRefused => webhook(WebhookAttack::Duplicated),
        ChaosCheckCode::WebhookLateRefused => webhook(WebhookAttack::Late),
        ChaosCheckCode::MissingEventNotRead => webhook(WebhookAttack::Missing),
        _ => false,
    }
}

/// Whether an answer says that the caller should not send the same request again. A 401 does not:
/// the request may succeed with another API key. A 409 `idempotency_key_reuse` does not count
/// either, because `KeyReusedForOtherBody` reports it.
fn is_refusal(attempt: &RequestAttempt) -> bool {
    matches!(attempt.fate, Fate::Answered | Fate::Delayed)
        && matches!(attempt.http_status, 400 | 403 | 404)
}

/// Judges each attempt of a request by the attempt before it.
fn judge_attempts(request: &ObservedRequest, found: &mut Observations) {
    for (before, next) in request.attempts.iter().zip(request.attempts.iter().skip(1)) {
        let came = next.at_milliseconds;
        let pause = came - before.answered_milliseconds.unwrap_or(came);
        let pair = [before, next];
        if request.is_write() {
            found.observe(ChaosCheckCode::KeyReusedForOtherBody);
        }
        if !next.is_same {
            let message = "The Idempotency-Key came again with another path or body.".to_owned();
            found.fault(ChaosCheckCode::KeyReusedForOtherBody, request, &pair, message);
        }
        match before.fate {
            Fate::Unavailable | Fate::Locked => {
                found.observe(ChaosCheckCode::RetryAfterIgnored);
                let told = RETRY_AFTER_SECONDS as i64 * 1_000;
                if pause < told - RETRY_AFTER_SLACK_MILLISECONDS {
                    let message = format!(
                        "Retry-After said {RETRY_AFTER_SECONDS} s; the next attempt came after \
                         {pause} ms."
                    );
                    found.fault(ChaosCheckCode::RetryAfterIgnored, request, &pair, message);
                }
            }
            Fate::Dropped => {
                found.observe(ChaosCheckCode::RetriedWithoutPause);
                if pause < PAUSE_MILLISECONDS_MIN {
                    let message = if pause < 0 {
                        "The next attempt came before the connection closed without an answer."
                            .to_owned()
                    } else {
                        format!(
                            "The connection closed without an answer; the next attempt came after \
                             {pause} ms."
                        )
                    };
                    found.fault(ChaosCheckCode::RetriedWithoutPause, request, &pair, message);
                }
            }
            Fate::Delayed if pause < 0 => {
                let message = format!("The next attempt came {} ms before the answer.", -pause);
                found.fault(ChaosCheckCode::TimedOutTooEarly, request, &pair, message);
            }
            Fate::Delayed | Fate::Answered if is_refusal(before) && next.is_same => {
                let message =
                    format!("The answer was {}; the same request came again.", before.http_status);
                found.fault(ChaosCheckCode::RefusalRetried, request, &pair, message);
            }
            Fate::Delayed | Fate::Answered => {}
        }
    }
    if request.attempts.iter().any(is_refusal) {
        found.observe(ChaosCheckCode::RefusalRetried);
    }
}

/// Judges whether the caller retried an attacked request until it had an answer. `is_given_up` says
/// that the caller has no more time to retry.
fn judge_end(
    request: &ObservedRequest,
    all: &[ObservedRequest],
    is_given_up: bool,
    found: &mut Observations,
) {
    let Some(attack) = request.attack else { return };
    let code = match attack {
        RequestAttack::AnswerDropped => ChaosCheckCode::DroppedAnswerAbandoned,
        RequestAttack::ServiceUnavailable => ChaosCheckCode::UnavailableTakenAsFinal,
        RequestAttack::ResourceLocked => ChaosCheckCode::LockedTakenAsFinal,
        RequestAttack::AnswerDelayed => {
            found.observe(ChaosCheckCode::TimedOutTooEarly);
            return;
        }
    };
    if request.is_told() {
        found.observe(code);
        if request.is_write() {
            found.observe(ChaosCheckCode::RetriedWithNewKey);
        }
        return;
    }
    let Some(last) = request.attempts.last() else { return };
    let again = |other: &&ObservedRequest| {
        other.number > request.number && other.fingerprint == request.fingerprint
    };
    if request.is_write()
        && let Some(other) = all.iter().find(again)
        && let Some(first) = other.attempts.first()
    {
        let message = "The same request came again with another Idempotency-Key.".to_owned();
        found.fault(ChaosCheckCode::RetriedWithNewKey, request, &[last, first], message);
        return;
    }
    // `KeyReusedForOtherBody` reports a request that came again with another body.
    if !is_given_up || !last.is_same {
        return;
    }
    let message = match last.fate {
        Fate::Unavailable => "The answer was 503; the request did not come again.",
        Fate::Locked => "The answer was 409 resource_locked; the request did not come again.",
        _ => "The connection closed without an answer; the request did not come again.",
    };
    found.fault(code, request, &[last], message.to_owned());
}

fn judge_event(event: &WatchedEvent, is_completed: bool, found: &mut Observations) {
    let is_taken = |status: i64| (200..300).contains(&status);
    if event.http_status.is_some() {
        found.observe(ChaosCheckCode::WebhookAnsweredSlowly);
        if event.duration_milliseconds > WEBHOOK_MILLISECONDS_MAX {
            let message = format!("The answer took {} ms.", event.duration_milliseconds);
            found.event_fault(ChaosCheckCode::WebhookAnsweredSlowly, event, message);
        }
    }
    match (event.attack, event.attacked_http_status) {
        (Some(WebhookAttack::Forged), Some(status)) => {
            found.observe(ChaosCheckCode::WebhookForgeryAccepted);
            if is_taken(status) {
                let message = format!("A wrong signature was answered with {status}.");
                found.event_fault(ChaosCheckCode::WebhookForgeryAccepted, event, message);
            }
        }
        (Some(WebhookAttack::Duplicated), Some(status)) => {
            found.observe(ChaosCheckCode::WebhookDuplicateRefused);
            if !is_taken(status) {
                let message = format!("The second delivery was answered with {status}.");
                found.event_fault(ChaosCheckCode::WebhookDuplicateRefused, event, message);
            }
        }
        (Some(WebhookAttack::Late), Some(status)) => {
            found.observe(ChaosCheckCode::WebhookLateRefused);
            if !is_taken(status) {
                let message = format!("The late delivery was answered with {status}.");
                found.event_fault(ChaosCheckCode::WebhookLateRefused, event, message);
            }
        }
        _ => {}
    }
    if event.attack == Some(WebhookAttack::Missing) && (event.was_read || is_completed) {
        found.observe(ChaosCheckCode::MissingEventNotRead);
        if !event.was_read {
            let message = "It was not delivered, and never read.".to_owned();
            found.event_fault(ChaosCheckCode::MissingEventNotRead, event, message);
        }
    }
}
