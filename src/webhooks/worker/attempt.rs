//! One attempt: sends it in a task of its own, and reports its result.

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

/// What a running attempt tells the worker.
pub(super) enum AttemptReport {
    /// It has been running for longer than [`SLOW_MILLISECONDS`].
    Slow(EndpointId),
    /// It ended. Without a result, a fault of this service interrupted it.
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
        // If the worker is gone, the service has stopped. The delivery is due again when its lease
        // ends.
        let _ = self.reports.send(AttemptReport::Ended(self.endpoint_id, self.finished.take()));
    }
}

/// Makes one attempt in a task of its own.
pub(super) fn start(
    app: Arc<AppState>,
    client: WebhookClient,
    reports: UnboundedSender<AttemptReport>,
    start: AttemptStart,
) {
    app.metrics.webhook_in_flight(1);
    let AttemptStart { endpoint_id, target, claimed } = start;
    let reporter = EndReporter { app, reports, endpoint_id, finished: None };
    tokio::spawn(async move {
        let attempted_milliseconds = reporter.app.store.clock.milliseconds();
        let attack = claimed.due.watched.and_then(|watched| watched.attack);
        let (outcome, attacked_http_status) = match claimed.due.event.as_deref() {
            Some(event) => {
                let now_milliseconds = attempted_milliseconds;
                let attempt = attacked(&client, &target, event, now_milliseconds, attack);
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
                delivery = %claimed.due.id,
                event = claimed.due.event.as_ref().map(|event| event.id.to_string()),
                http_status = outcome.http_status,
                error = outcome.error.map(DeliveryError::code),
                "a delivery failed"
            );
        }
        let holder = claimed.is_leased().then_some(reporter.app.node_id);
        reporter.report(FinishedAttempt {
            delivery_id: claimed.due.id,
            schedule_start_milliseconds: claimed.due.schedule_start_milliseconds,
            step: claimed.due.step,
            attempts_count: claimed.due.attempts_count,
            due_milliseconds: claimed.due_milliseconds(),
            holder,
            attempted_milliseconds,
            is_success: outcome.is_success(),
            http_status: outcome.http_status,
            error: outcome.error.map(DeliveryError::code),
            duration_milliseconds: outcome.duration_milliseconds,
            answer: outcome.answer_excerpt,
            retry_after_seconds: outcome.retry_after_seconds,
            watched: claimed.due.watched,
            attacked_http_status,
        });
    });
}

/// Makes an attempt together with what a chaos profile sends beside it. Also answers how that was
/// answered.
async fn attacked(
    client: &WebhookClient,
    target: &DeliveryTarget,
    event: &EventRow,
    now_milliseconds: i64,
    attack: Option<WebhookAttack>,
) -> (AttemptOutcome, Option<u16>) {
    match attack {
        // A boxed future of its own, so that the futures of all other attempts stay small.
        Some(attack @ (WebhookAttack::Forged | WebhookAttack::Duplicated)) => {
            Box::pin(sent_twice(client, target, event, now_milliseconds, attack)).await
        }
        Some(WebhookAttack::Late | WebhookAttack::Missing) | None => {
            (attempt(client, target, event, now_milliseconds, false).await, None)
        }
    }
}

/// Sends a copy with a wrong signature before the attempt, or the same delivery again after it.
async fn sent_twice(
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

async fn attempt(
    client: &WebhookClient,
    target: &DeliveryTarget,
    event: &EventRow,
    now_milliseconds: i64,
    is_forged: bool,
) -> AttemptOutcome {
    // The owner sees why in the list of deliveries.
    let Some(url) = &target.url else { return not_sent(DeliveryError::AddressRefused) };
    let now_seconds = now_milliseconds.div_euclid(1_000);
    // The same bytes on every attempt: the event never changes, and its members have one order.
    let view = crate::events::api::view(event.clone(), target.scope.livemode());
    let Ok(body) = serde_json::to_vec(&view) else {
        return not_sent(DeliveryError::RequestInvalid);
    };
    let id = event.id.to_string();
    let signature = if is_forged {
        // Any other secret will do. A fixed one reveals nothing about the real ones.
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
