//! Chaos: attacks on a caller who asks for them in test mode, by giving an API key a chaos profile.
//! Here requests with such a key are attacked: some are refused before they run, and the answers to
//! others are delayed or dropped. Only POSTs and GETs are attacked, and never test helpers.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::reply::{NoAnswer, Reply, refuse};
use super::route::Route;
use crate::app_state::AppState;
use crate::chaos::requests::{self, AttemptVerdict, IncomingRequest, RETRY_AFTER_SECONDS};
use crate::chaos::seen::{Fate, WatchedEvent};
use crate::chaos::{KeyId, events};
use crate::kernel::{Code, OperationError, Refusal, Scope, StoreError};
use crate::keys::Caller;
use crate::store::idempotency::Claim;

/// What is noted of a request, for the chaos profile of its key if it has one.
#[derive(Default)]
pub struct Watching {
    pub request_id: String,
    /// The profile refused the request, not the service.
    pub is_refused_by_profile: bool,
    watched: Option<(Scope, KeyId, AttemptVerdict)>,
}

/// Whether requests of this caller for this route are watched now. The end of the watch is in the
/// key's row, which is known already. So keys without a profile cost nothing.
pub fn is_watched(app: &AppState, caller: &Caller, route: &Route) -> bool {
    caller.chaos_until_milliseconds.is_some_and(|until| app.store.clock.milliseconds() < until)
        && !route.is_test_helper()
}

/// Records a POST, and refuses it if the profile says so.
pub async fn begin_write(
    app: &AppState,
    caller: &Caller,
    route: &Route,
    claim: &Claim,
    watching: &mut Watching,
) -> Result<(), OperationError> {
    let asked = IncomingRequest {
        request_id: watching.request_id.clone(),
        method: "POST",
        route: route.path,
        request_hash: claim.key_hash,
        fingerprint: claim.fingerprint,
    };
    begin(app, caller, asked, watching).await
}

/// Like [`begin_write`] for a GET, which is identified by its path and query.
pub async fn begin_read(
    app: &AppState,
    caller: &Caller,
    route: &Route,
    target: (&str, &str),
    watching: &mut Watching,
) -> Result<(), OperationError> {
    let (path, query) = target;
    let fingerprint = app.services.sealer.fingerprint(&[b"GET", path.as_bytes(), query.as_bytes()]);
    let mut request_hash = [0; 16];
    request_hash.copy_from_slice(&fingerprint[..16]);
    let request_id = watching.request_id.clone();
    let asked =
        IncomingRequest { request_id, method: "GET", route: route.path, request_hash, fingerprint };
    begin(app, caller, asked, watching).await
}

async fn begin(
    app: &AppState,
    caller: &Caller,
    asked: IncomingRequest,
    watching: &mut Watching,
) -> Result<(), OperationError> {
    let (scope, key_id) = (caller.scope, caller.key_id);
    let begun = app
        .store
        .write(move |tx, now| Ok(requests::begin(tx, now, scope, key_id, &asked)?))
        .await?;
    let Some(verdict) = begun else { return Ok(()) };
    let code = match verdict.fate {
        Fate::Unavailable => Code::ServiceUnavailable,
        Fate::Locked => Code::ResourceLocked,
        Fate::Answered | Fate::Delayed | Fate::Dropped => {
            watching.watched = Some((scope, key_id, verdict));
            return Ok(());
        }
    };
    watching.is_refused_by_profile = true;
    let message = "The chaos profile of this API key refused the request, which was not carried \
                   out. Send it again after the seconds in Retry-After; a POST with the same \
                   Idempotency-Key.";
    let mut refusal = Refusal::new(code, message);
    refusal.retry_after_seconds = Some(RETRY_AFTER_SECONDS);
    Err(refusal.into())
}

/// The profile leaves some events undelivered. Notes which of them the caller learns of from this
/// answer: the events about the object in the path, and if the path is under `/v1/events`, the
/// events in the answer.
pub async fn note_read(
    app: &AppState,
    caller: &Caller,
    route: &Route,
    ids: &[String],
    body: &[u8],
) -> Result<(), OperationError> {
    let answer = route.path.starts_with("/v1/events").then(|| String::from_utf8_lossy(body).into());
    let answer: String = answer.unwrap_or_default();
    let (scope, key_id, ids) = (caller.scope, caller.key_id, ids.to_vec());
    app.store
        .write(move |tx, now| {
            let is_read = |event: &WatchedEvent| {
                ids.contains(&event.linked_id) || answer.contains(&event.event_id.to_string())
            };
            Ok(events::mark_read(tx, now, scope, key_id, &is_read)?)
        })
        .await
}

/// Records how a request was answered, and does to the answer what the profile says.
pub async fn finish(
    app: &AppState,
    watching: &mut Watching,
    answered: Result<Reply, OperationError>,
) -> Result<Reply, OperationError> {
    let Some((scope, key_id, verdict)) = watching.watched.take() else { return answered };
    let http_status = match &answered {
        Ok(reply) => reply.status().as_u16(),
        Err(OperationError::Refused(refusal)) => refusal.http_status(),
        Err(
            OperationError::Store(StoreError::Broken(_) | StoreError::Unfit(_))
            | OperationError::Declined(_),
        ) => 500,
        Err(OperationError::Store(_)) => 503,
    };
    let ended = app
        .store
        .write(move |tx, now| Ok(requests::end(tx, now, scope, key_id, verdict, http_status)?));
    if let Err(failure) = ended.await {
        tracing::warn!(?failure, "a chaos report lacks the answer to a request");
    }
    if verdict.fate == Fate::Delayed && !app.is_draining.load(Ordering::Relaxed) {
        let delay = Duration::from_millis(verdict.delay_milliseconds.unsigned_abs());
        tokio::time::sleep(delay).await;
    }
    if verdict.fate != Fate::Dropped {
        return answered;
    }
    let mut reply = answered.unwrap_or_else(|failure| refuse(&watching.request_id, failure));
    reply.extensions_mut().insert(NoAnswer);
    Ok(reply)
}
