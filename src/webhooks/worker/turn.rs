//! One turn with the store: reads what is due on a reading connection, and then writes finished
//! attempts and claims in one transaction.

use std::sync::Arc;

use super::claims::{ClaimRequest, EndpointReading};
use super::endpoint_lane::is_probed;
use super::target::DeliveryTarget;
use crate::app_state::AppState;
use crate::chaos;
use crate::kernel::{Now, OperationError, StoreError};
use crate::services::Services;
use crate::store::{Cost, Tx};
use crate::webhooks::deliveries::{self, FinishedAttempt, LEASE_MILLISECONDS};
use crate::webhooks::rows::{self, EndpointId};
use crate::webhooks::schedule::EndpointHealth;
use crate::webhooks::state::DeliveryStatus;

/// A turn that has ended.
pub(super) struct TurnResult {
    pub(super) requested: Vec<EndpointId>,
    pub(super) finished: Arc<Vec<(EndpointId, FinishedAttempt)>>,
    pub(super) outcome: Result<(Arc<Vec<EndpointReading>>, Claims), OperationError>,
}

/// What a turn claimed.
pub(super) struct Claims {
    /// When the leases end, by the store's clock.
    pub(super) lease_ends_milliseconds: i64,
    /// For each endpoint that was read, which of its due deliveries were claimed.
    pub(super) by_endpoint: Vec<Vec<bool>>,
}

pub(super) async fn run(
    app: Arc<AppState>,
    requests: Vec<ClaimRequest>,
    finished: Arc<Vec<(EndpointId, FinishedAttempt)>>,
    until_milliseconds: i64,
) -> TurnResult {
    let requested = requests.iter().map(|request| request.endpoint_id).collect();
    let outcome = read_and_write(&app, requests, finished.clone(), until_milliseconds).await;
    TurnResult { requested, finished, outcome }
}

async fn read_and_write(
    app: &Arc<AppState>,
    requests: Vec<ClaimRequest>,
    finished: Arc<Vec<(EndpointId, FinishedAttempt)>>,
    until_milliseconds: i64,
) -> Result<(Arc<Vec<EndpointReading>>, Claims), OperationError> {
    let mut readings = Vec::new();
    if !requests.is_empty() {
        let services = app.services.clone();
        readings = app
            .store
            .read(Cost::Scan, move |tx| Ok(read_all(tx, &services, &requests, until_milliseconds)?))
            .await?;
    }
    let readings = Arc::new(readings);
    let has_work = !finished.is_empty() || readings.iter().any(EndpointReading::has_claims);
    if !has_work {
        let by_endpoint = readings.iter().map(|_| Vec::new()).collect();
        return Ok((readings, Claims { lease_ends_milliseconds: 0, by_endpoint }));
    }
    let writing = readings.clone();
    let claims =
        app.store.write(move |tx, now| Ok(write_all(tx, now, &finished, &writing)?)).await?;
    Ok((readings, claims))
}

/// Reads endpoint by endpoint. An endpoint whose rows cannot be read does not stop the others.
fn read_all(
    tx: &mut dyn Tx,
    services: &Services,
    requests: &[ClaimRequest],
    until_milliseconds: i64,
) -> Result<Vec<EndpointReading>, StoreError> {
    requests
        .iter()
        .map(|request| match read_endpoint(tx, services, request, until_milliseconds) {
            Err(StoreError::Broken(reason)) => {
                tracing::error!(endpoint_id = %request.endpoint_id, reason, "the rows of a webhook \
                 endpoint cannot be read; it is left out for a minute");
                Ok(EndpointReading { is_broken: true, ..EndpointReading::empty(request) })
            }
            read => read,
        })
        .collect()
}

fn read_endpoint(
    tx: &mut dyn Tx,
    services: &Services,
    request: &ClaimRequest,
    until_milliseconds: i64,
) -> Result<EndpointReading, StoreError> {
    let mut reading = EndpointReading::empty(request);
    // On PostgreSQL all three queries are sent together.
    rows::prefetch_queue(tx, request.endpoint_id)?;
    if request.count > 0 {
        let (behind, rows_max) = (request.behind, request.count as i64);
        rows::prefetch_due(tx, request.endpoint_id, behind, until_milliseconds, rows_max)?;
    }
    let Some(endpoint) = rows::find(tx, request.scope, request.endpoint_id)? else {
        return Ok(reading);
    };
    let unchanged = request.known.as_ref().filter(|known| known.version == endpoint.version);
    let target = match unchanged {
        Some(known) => known.clone(),
        None => Arc::new(DeliveryTarget::read(services, &endpoint)?),
    };
    reading.health = rows::queue(tx, request.endpoint_id)?
        .map_or(EndpointHealth::default(), |queue| queue.health);
    reading.target = Some(target);
    if request.count == 0 {
        return Ok(reading);
    }
    // This process may meet an endpoint for the first time that the store knows as failing: then
    // one attempt is enough.
    let is_first_probe =
        request.known.is_none() && is_probed(reading.health.failures_count, endpoint.status);
    let count = if is_first_probe { 1 } else { request.count };
    let due = rows::due(
        tx,
        request.scope,
        request.endpoint_id,
        request.behind,
        until_milliseconds,
        count as i64,
    )?;
    let is_end = due.len() < count;
    // Only a reading from the beginning shows that nothing else is due. Something may have become
    // due meanwhile before the position where another reading began.
    reading.is_drained = is_end && request.behind.is_none();
    let last = due.last().filter(|_| !is_end);
    reading.read_until = last.map(|delivery| (delivery.due_milliseconds, delivery.id));
    for mut delivery in due {
        if let (Some(key_id), Some(event)) = (endpoint.chaos_key_id, &delivery.event) {
            let (scope, event_id) = (request.scope, event.id);
            delivery.watched =
                chaos::events::watched(tx, until_milliseconds, scope, key_id, event_id)?;
        }
        if deliveries::is_recorded_only(&endpoint, &delivery) {
            reading.recorded.push(delivery);
        } else if delivery.event.is_none() {
            reading.expired.push(delivery);
        } else {
            reading.due.push(delivery);
        }
    }
    Ok(reading)
}

/// The one transaction of a turn: first finished attempts, in the order in which they ended, then
/// claims.
fn write_all(
    tx: &mut dyn Tx,
    now: &mut Now,
    finished: &[(EndpointId, FinishedAttempt)],
    readings: &[EndpointReading],
) -> Result<Claims, StoreError> {
    let mut by_endpoint: Vec<&(EndpointId, FinishedAttempt)> = finished.iter().collect();
    by_endpoint.sort_by_key(|(endpoint_id, _)| *endpoint_id);
    for attempts in by_endpoint.chunk_by(|a, b| a.0 == b.0) {
        let endpoint_id = attempts[0].0;
        let attempts: Vec<&FinishedAttempt> = attempts.iter().map(|(_, attempt)| attempt).collect();
        deliveries::write_attempts(tx, now, endpoint_id, &attempts)?;
    }
    let lease_ends_milliseconds = now.instant_milliseconds() + LEASE_MILLISECONDS;
    let mut claims =
        Claims { lease_ends_milliseconds, by_endpoint: Vec::with_capacity(readings.len()) };
    for reading in readings {
        if !reading.has_claims() {
            claims.by_endpoint.push(Vec::new());
            continue;
        }
        let endpoint_id = reading.endpoint_id;
        deliveries::end_unsent(tx, endpoint_id, &reading.recorded, DeliveryStatus::Recorded)?;
        deliveries::end_unsent(tx, endpoint_id, &reading.expired, DeliveryStatus::Failed)?;
        claims.by_endpoint.push(deliveries::claim(
            tx,
            endpoint_id,
            &reading.due,
            reading.is_drained,
            lease_ends_milliseconds,
        )?);
    }
    Ok(claims)
}
