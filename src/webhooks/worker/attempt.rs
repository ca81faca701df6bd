//! Makes one attempt in a task of its own, and reports its result to the worker.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::timeout;

use super::scheduler::{AttemptStart, SLOW_MILLISECONDS};
use super::target::DeliveryTarget;
use crate::app_state::AppState;
use crate::chaos::WebhookAttack;
use crate::events::rows::EventRow;
use crate::webhooks::deliveries::FinishedAttempt;
use crate::webhooks::rows::EndpointId;
use crate::webhooks::sending::attempt::{
    AttemptOutcome, DeliveryAttempt, DeliveryError, USER_AGENT_TEXT,
};
use crate::webhooks::sending::client::WebhookClient;
use crate::webhooks::sending::sign::{secret_text, signature_header};

/// What an attempt tells the worker.
pub(super) enum AttemptReport {
    /// The attempt has been running for longer than [`SLOW_MILLISECONDS`].
    Slow(EndpointId),
    /// The attempt ended; without a result if its task panicked.
    Ended(EndpointId, Option<FinishedAttempt>),
}

/// Reports the end of an attempt when it is dropped, so that a panic is reported too.
struct EndReporter {
    app: Arc<AppState>,
    reports: UnboundedSender<AttemptReport>,
    endpoint_id: EndpointId,
    finished: Option<FinishedAttempt>,
}

impl EndReporter {
    fn report(mut self, finished: FinishedAttempt) {
        self.finished = Some(finished);
    }
}

impl Drop for EndReporter {
    fn drop(&mut self) {
        self.app.metrics.webhook_in_flight(-1);
        // If the worker is gone, nobody records the result. The delivery is due again when its
        // lease ends.
        let _ = self.reports.send(AttemptReport::Ended(self.endpoint_id, self.finished.take()));
    }
}

pub(super) fn start(
    app: Arc<AppState>,
    client: WebhookClient,
    reports: UnboundedSender<AttemptReport>,
    start: AttemptStart,
) {
    app.metrics.webhook_in_flight(1);
    let AttemptStart { endpoint_id, target, taken } = start;
    let reporter = EndReporter { app, reports, endpoint_id, finished: None };
    tokio::spawn(async move {
        let attempted_milliseconds = reporter.app.store.clock.milliseconds();
        let attack = taken.due.watched.and_then(|watched| watched.attack);
        let (outcome, attacked_http_status) = match taken.due.event.as_deref() {
            Some(event) => {
                let now_milliseconds = attempted_milliseconds;
                let attempt =
                    attempt_with_attack(&client, &target, event, now_milliseconds, attack);
                let mut attempt = pin!(attempt);
                match timeout(Duration::from_millis(SLOW_MILLISECONDS), attempt.as_mut()).await {
                    Ok(outcome) => outcome,
                    Err(_) => {
                        let _ = reporter.reports.send(AttemptReport::Slow(endpoint_id));
                        attempt.await
                    }
                }
            }
            None => (not_sent(DeliveryError::RequestInvalid), None),
        };
        if !outcome.is_success() {
            tracing::info!(
                endpoint = %endpoint_id,
                delivery = %taken.due.id,
                event = taken.due.event.as_ref().map(|event| event.id.to_string()),
                http_status = outcome.http_status,
                error = outcome.error.map(DeliveryError::code),
                "an attempt of a delivery failed"
            );
        }
        let holder = taken.is_under_queue_lease().then_some(reporter.app.node_id);
        reporter.report(FinishedAttempt {
            delivery_id: taken.due.id,
            schedule_start_milliseconds: taken.due.schedule_start_milliseconds,
            step: taken.due.step,
            attempts_count: taken.due.attempts_count,
            due_milliseconds: taken.due_milliseconds(),
            holder,
            attempted_milliseconds,
            is_success: outcome.is_success(),
            http_status: outcome.http_status,
            error: outcome.error.map(DeliveryError::code),
            duration_milliseconds: outcome.duration_milliseconds,
            answer: outcome.answer_excerpt,
            retry_after_seconds: outcome.retry_after_seconds,
            watched: taken.due.watched,
            attacked_http_status,
        });
    });
}

/// Makes an attempt, and also sends what a chaos profile adds. The second value is the HTTP status
/// of the answer to the addition, if there was an answer.
async fn attempt_with_attack(
    client: &WebhookClient,
    target: &DeliveryTarget,
    event: &EventRow,
    now_milliseconds: i64,
    attack: Option<WebhookAttack>,
) -> (AttemptOutcome, Option<u16>) {
    match attack {
        // Boxed, so that the futures of all other attempts stay small.
        Some(attack @ (WebhookAttack::Forged | WebhookAttack::Duplicated)) => {
            Box::pin(send_twice(client, target, event, now_milliseconds, attack)).await
        }
        Some(WebhookAttack::Late | WebhookAttack::Missing) | None => {
            (attempt(client, target, event, now_milliseconds, false).await, None)
        }
    }
}

/// With `Forged`, sends a copy with a wrong signature before the attempt. With `Duplicated`, sends
/// the same delivery again after the attempt, if the attempt succeeds.
async fn send_twice(
    client: &WebhookClient,
    target: &DeliveryTarget,
    event: &EventRow,
    now_milliseconds: i64,
    attack: WebhookAttack,
) -> (AttemptOutcome, Option<u16>) {
    let send = |is_forged| attempt(client, target, event, now_milliseconds, is_forged);
    if attack == WebhookAttack::Forged {
        let forged = send(true).await.http_status;
        return (send(false).await, forged);
    }
    let outcome = send(false).await;
    let second = if outcome.is_success() { send(false).await.http_status } else { None };
    (outcome, second)
}

/// Makes one attempt. With `is_forged` its signature is wrong.
async fn attempt(
    client: &WebhookClient,
    target: &DeliveryTarget,
    event: &EventRow,
    now_milliseconds: i64,
    is_forged: bool,
) -> AttemptOutcome {
    // The error tells the endpoint's owner, in the list of deliveries, that the URL is the cause.
    let Some(url) = &target.url else { return not_sent(DeliveryError::AddressRefused) };
    let now_seconds = now_milliseconds.div_euclid(1_000);
    // Every attempt sends the same bytes: the event never changes, and its fields have a fixed
    // order.
    let view = crate::events::api::view(event.clone(), target.scope.livemode());
    let Ok(body) = serde_json::to_vec(&view) else {
        return not_sent(DeliveryError::RequestInvalid);
    };
    let id = event.id.to_string();
    let signature = if is_forged {
        // Any other secret gives a wrong signature. This one is fixed, so it reveals nothing about
        // real ones.
        signature_header(&[&secret_text([7; 32])], &id, now_seconds, &body)
    } else {
        let active = target.secrets.iter().filter(|secret| secret.is_active(now_seconds));
        let secrets: Vec<&str> = active.map(|secret| secret.secret.as_str()).collect();
        signature_header(&secrets, &id, now_seconds, &body)
    };
    client
        .send(DeliveryAttempt {
            url,
            loopback_allowed: target.loopback_allowed,
            id: &id,
            timestamp_seconds: now_seconds,
            signature,
            body: Bytes::from(body),
            is_slow: false,
            user_agent: USER_AGENT_TEXT,
            now_seconds,
        })
        .await
}

const fn not_sent(error: DeliveryError) -> AttemptOutcome {
    AttemptOutcome {
        http_status: None,
        error: Some(error),
        duration_milliseconds: 0,
        answer_excerpt: String::new(),
        retry_after_seconds: None,
    }
}
