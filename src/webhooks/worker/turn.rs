//! One turn with the store: reads what is due in a transaction that only reads, then writes
//! finished attempts, claims and leases of queues in another. If there is nothing to write, there
//! is no second transaction.

use std::sync::Arc;

use super::known_endpoint::is_probed;
use super::requests::{EndpointReading, EndpointWrites, TakeRequest};
use super::target::DeliveryTarget;
use crate::app_state::AppState;
use crate::chaos;
use crate::kernel::{Now, OperationError, StoreError};
use crate::services::Services;
use crate::store::{Cost, Tx};
use crate::webhooks::deliveries::{self, FinishedAttempt, LEASE_MILLISECONDS};
use crate::webhooks::queue_leases::{LeaseStep, QueueHolder};
use crate::webhooks::rows::{self, DueRange, EndpointId};
use crate::webhooks::schedule::EndpointHealth;
use crate::webhooks::state::DeliveryStatus;

/// A turn that has ended.
pub(super) struct TurnResult {
    pub(super) requested: Vec<EndpointId>,
    pub(super) finished: Arc<Vec<(EndpointId, FinishedAttempt)>>,
    pub(super) outcome: Result<(Arc<Vec<EndpointReading>>, TurnWrites), OperationError>,
}

/// What a turn wrote.
pub(super) struct TurnWrites {
    /// When the turn's claims end, by the store's clock.
    pub(super) lease_ends_milliseconds: i64,
    /// For each endpoint that was read, in the same order.
    pub(super) by_endpoint: Vec<EndpointWrites>,
}

/// Reads what is due at `now_milliseconds` (the store's clock), and writes what follows from that,
/// after the finished attempts.
pub(super) async fn run(
    app: Arc<AppState>,
    requests: Vec<TakeRequest>,
    finished: Arc<Vec<(EndpointId, FinishedAttempt)>>,
    now_milliseconds: i64,
) -> TurnResult {
    let requested = requests.iter().map(|request| request.endpoint_id).collect();
    let outcome = read_and_write(&app, requests, finished.clone(), now_milliseconds).await;
    TurnResult { requested, finished, outcome }
}

async fn read_and_write(
    app: &Arc<AppState>,
    requests: Vec<TakeRequest>,
    finished: Arc<Vec<(EndpointId, FinishedAttempt)>>,
    now_milliseconds: i64,
) -> Result<(Arc<Vec<EndpointReading>>, TurnWrites), OperationError> {
    let holder = app.node_id;
    let mut readings = Vec::new();
    if !requests.is_empty() {
        let services = app.services.clone();
        readings = app
            .store
            .read(Cost::Scan, move |tx| {
                Ok(read_all(tx, &services, &requests, holder, now_milliseconds)?)
            })
            .await?;
    }
    let readings = Arc::new(readings);
    let has_work = !finished.is_empty() || readings.iter().any(EndpointReading::has_writes);
    if !has_work {
        let by_endpoint = readings.iter().map(unwritten).collect();
        return Ok((readings, TurnWrites { lease_ends_milliseconds: 0, by_endpoint }));
    }
    let writing = readings.clone();
    let writes = app
        .store
        .write(move |tx, now| Ok(write_all(tx, now, &finished, &writing, holder)?))
        .await?;
    Ok((readings, writes))
}

/// Reads endpoint by endpoint. An endpoint whose rows cannot be read does not stop the others.
fn read_all(
    tx: &mut dyn Tx,
    services: &Services,
    requests: &[TakeRequest],
    holder: QueueHolder,
    now_milliseconds: i64,
) -> Result<Vec<EndpointReading>, StoreError> {
    requests
        .iter()
        .map(|request| match read_endpoint(tx, services, request, holder, now_milliseconds) {
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
    request: &TakeRequest,
    holder: QueueHolder,
    now_milliseconds: i64,
) -> Result<EndpointReading, StoreError> {
    let mut reading = EndpointReading::empty(request);
    // On PostgreSQL `prefetch_queue` and `prefetch_due` only announce queries, which are then sent
    // together with the query of `rows::find`.
    rows::prefetch_queue(tx, request.endpoint_id)?;
    let range = DueRange {
        endpoint_id: request.endpoint_id,
        after: request.after,
        until_milliseconds: now_milliseconds,
        count: request.count,
        except: &request.held,
    };
    if request.count > 0 {
        rows::prefetch_due(tx, &range)?;
    }
    let Some(endpoint) = rows::find(tx, request.scope, request.endpoint_id)? else {
        return Ok(reading);
    };
    let known_target = request.known_target.as_ref();
    let unchanged = known_target.filter(|known| known.version == endpoint.version);
    let target = match unchanged {
        Some(known) => known.clone(),
        None => Arc::new(DeliveryTarget::read(services, &endpoint)?),
    };
    let queue = rows::queue(tx, request.endpoint_id)?;
    reading.health = queue.as_ref().map_or(EndpointHealth::default(), |queue| queue.health);
    reading.target = Some(target);
    let lease = queue.and_then(|queue| queue.lease);
    let own_ends = lease.filter(|lease| lease.holder == holder).map(|own| own.ends_milliseconds);
    let has_held = !request.held.is_empty();
    let step = |is_needed| LeaseStep::next(own_ends, is_needed, has_held, now_milliseconds);
    reading.lease_step = step(false);
    if request.count == 0 {
        return Ok(reading);
    }
    if lease.is_some_and(|lease| lease.excludes(holder, now_milliseconds)) {
        (reading.is_excluded, reading.is_drained) = (true, false);
        return Ok(reading);
    }
    // A worker that does not know the endpoint yet asks for several deliveries. If the store shows
    // that the endpoint has to be probed, one is enough.
    let is_first_probe =
        request.known_target.is_none() && is_probed(reading.health.failures_count, endpoint.status);
    let count = if is_first_probe { 1 } else { request.count };
    let read = rows::due_in(tx, request.scope, &DueRange { count, ..range })?;
    let is_end = read.last_read.is_none();
    // Only a read from the beginning shows that nothing else is due. If a read begins elsewhere, a
    // delivery in front of that place may have become due meanwhile.
    reading.is_drained = is_end && request.after.is_none();
    reading.last_read = read.last_read;
    // The last part of a backlog is claimed, so that the lease can be released as soon as what was
    // taken earlier is recorded.
    reading.is_under_queue_lease = request.may_lease && !is_end;
    reading.lease_step = step(reading.is_under_queue_lease);
    for mut delivery in read.due {
        if let (Some(key_id), Some(event)) = (endpoint.chaos_key_id, &delivery.event) {
            let (scope, event_id) = (request.scope, event.id);
            delivery.watched =
                chaos::events::watched_delivery(tx, now_milliseconds, scope, key_id, event_id)?;
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

/// The writing transaction of a turn: first the finished attempts of each endpoint, in the order in
/// which they ended, then leases of queues and claims.
fn write_all(
    tx: &mut dyn Tx,
    now: &mut Now,
    finished: &[(EndpointId, FinishedAttempt)],
    readings: &[EndpointReading],
    holder: QueueHolder,
) -> Result<TurnWrites, StoreError> {
    let mut sorted: Vec<&(EndpointId, FinishedAttempt)> = finished.iter().collect();
    sorted.sort_by_key(|(endpoint_id, _)| *endpoint_id);
    for attempts in sorted.chunk_by(|a, b| a.0 == b.0) {
        let endpoint_id = attempts[0].0;
        let attempts: Vec<&FinishedAttempt> = attempts.iter().map(|(_, attempt)| attempt).collect();
        deliveries::write_attempts(tx, now, endpoint_id, &attempts)?;
    }
    let lease_ends_milliseconds = now.instant_milliseconds() + LEASE_MILLISECONDS;
    let by_endpoint = readings
        .iter()
        .map(|reading| write_reading(tx, now, reading, holder, lease_ends_milliseconds))
        .collect::<Result<Vec<_>, StoreError>>()?;
    Ok(TurnWrites { lease_ends_milliseconds, by_endpoint })
}

fn write_reading(
    tx: &mut dyn Tx,
    now: &Now,
    reading: &EndpointReading,
    holder: QueueHolder,
    lease_ends_milliseconds: i64,
) -> Result<EndpointWrites, StoreError> {
    let endpoint_id = reading.endpoint_id;
    let queue_lease_ends_milliseconds =
        reading.lease_step.carry_out(tx, now, endpoint_id, holder)?;
    let mut taken = Vec::new();
    if reading.may_take() {
        deliveries::end_unsent(tx, endpoint_id, &reading.recorded, DeliveryStatus::Recorded)?;
        deliveries::end_unsent(tx, endpoint_id, &reading.expired, DeliveryStatus::Failed)?;
        taken = if reading.is_under_queue_lease {
            vec![queue_lease_ends_milliseconds.is_some(); reading.due.len()]
        } else {
            let drained = (&reading.held, queue_lease_ends_milliseconds);
            let drained = reading.is_drained.then_some(drained);
            deliveries::claim_beside_held(
                tx,
                endpoint_id,
                &reading.due,
                drained,
                lease_ends_milliseconds,
            )?
        };
    }
    Ok(EndpointWrites { taken, queue_lease_ends_milliseconds })
}

/// What to report about an endpoint in a turn that writes nothing.
fn unwritten(reading: &EndpointReading) -> EndpointWrites {
    let LeaseStep::Keep(queue_lease_ends_milliseconds) = reading.lease_step else {
        return EndpointWrites::default();
    };
    let taken = vec![reading.is_under_queue_lease; reading.due.len()];
    EndpointWrites { taken, queue_lease_ends_milliseconds }
}
