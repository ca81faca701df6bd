//! Makes a delivery of an event for each endpoint that wants it. This runs inside the sequencer's
//! transaction.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::deliveries::{self, Delivery, LEASE_MILLISECONDS};
use super::handover::{HandedDelivery, Handover, Offer, WrittenDeliveries};
use super::rows::{self, SubscriberRow};
use super::state::DeliveryStatus;
use crate::chaos::{self, events::Passage};
use crate::events::rows::EventRow;
use crate::kernel::{Now, Scope, StoreError};
use crate::store::{self, Signal, Tx};

/// The most endpoints that one run of the sequencer names to the delivery worker. If more have
/// become due, the worker has to look in the store for the others.
pub const NAMED_MAX: usize = 64;

/// The endpoints of the accounts that have an event in one run of the sequencer, and the deliveries
/// that the run makes. One small query for each account reads its endpoints.
#[derive(Default)]
#[must_use = "deliveries are written by `finish`"]
pub struct Subscribers<'h> {
    scopes: HashMap<Scope, Vec<Subscriber>>,
    /// What [`Subscribers::finish`] writes.
    deliveries: Vec<Delivery>,
    /// How many endpoints were named to the worker.
    named_count: usize,
    /// What the worker of this process offers to send at once.
    handover: Option<&'h Handover>,
    /// How many more deliveries may be written as claimed, for all endpoints together.
    room_total: usize,
    written: WrittenDeliveries,
}

struct Subscriber {
    endpoint: SubscriberRow,
    /// This run has made the queue due at once.
    is_due: bool,
    /// This run has made the queue due at the end of the claims that the run writes.
    is_due_at_lease_end: bool,
    /// What is left of the worker's offer for the endpoint.
    offer: Offer,
}

impl<'h> Subscribers<'h> {
    /// For a run that writes deliveries as claimed where the worker offers to send them at once.
    /// Begins the run in `handover`.
    pub fn handed_over_by(handover: &'h Handover) -> Subscribers<'h> {
        let room_total = handover.begin_run();
        Subscribers { handover: Some(handover), room_total, ..Subscribers::default() }
    }

    /// Makes one delivery for each endpoint that wants the event. The delivery is due now, or
    /// claimed, or only recorded if the endpoint is disabled. A chaos profile may withhold it (then
    /// it is only recorded too) or delay it. [`Subscribers::finish`] writes the deliveries.
    pub fn fan_out(
        &mut self,
        tx: &mut dyn Tx,
        now: &mut Now,
        scope: Scope,
        event: &EventRow,
    ) -> Result<(), StoreError> {
        let Subscribers {
            scopes,
            deliveries: new_deliveries,
            named_count,
            handover,
            room_total,
            written,
            ..
        } = self;
        let subscribers = match scopes.entry(scope) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let endpoints = rows::subscribers(tx, scope)?;
                let subscriber = |endpoint| {
                    let offer = handover.and_then(|handover| valid_offer(handover, &endpoint));
                    let offer = offer.unwrap_or(Offer { version: endpoint.version, room: 0 });
                    Subscriber { endpoint, is_due: false, is_due_at_lease_end: false, offer }
                };
                place.insert(endpoints.into_iter().map(subscriber).collect())
            }
        };
        // All claimed deliveries share one clone, which is made when the first of them needs it.
        let mut shared_event: Option<Arc<EventRow>> = None;
        for Subscriber { endpoint, is_due, is_due_at_lease_end, offer } in subscribers {
            if !endpoint.enabled_events.matches(&event.event_type) {
                continue;
            }
            if endpoint.is_disabled {
                let status = DeliveryStatus::Recorded;
                let (event_id, created) = (event.id, event.created);
                let delivery =
                    deliveries::new_delivery(now, endpoint.id, event_id, created, status);
                new_deliveries.push(delivery);
                continue;
            }
            if offer.room > 0 && *room_total > 0 {
                (offer.room, *room_total) = (offer.room - 1, *room_total - 1);
                let event = shared_event.get_or_insert_with(|| Arc::new(event.clone()));
                let (delivery, due) = deliveries::new_claimed_delivery(now, endpoint.id, event);
                let lease_ends_milliseconds = due.due_milliseconds + LEASE_MILLISECONDS;
                new_deliveries.push(delivery);
                let (endpoint_id, version) = (endpoint.id, offer.version);
                written.claimed.push(HandedDelivery {
                    scope,
                    endpoint_id,
                    version,
                    due,
                    lease_ends_milliseconds,
                });
                if !*is_due_at_lease_end {
                    // If this process dies, another one finds the queue when the claim ends.
                    rows::queue_set_due_by(tx, endpoint.id, lease_ends_milliseconds)?;
                    *is_due_at_lease_end = true;
                }
                continue;
            }
            // Later deliveries to this endpoint must not be sent before this one.
            offer.room = 0;
            let passage = match endpoint.chaos_key_id {
                Some(key_id) => {
                    let (attacked, linked) = ((key_id, endpoint.id), event.linked.to_string());
                    chaos::events::passage(tx, now, scope, attacked, event.id, &linked)?
                }
                None => Passage::Free,
            };
            let status = match passage {
                Passage::Missing => DeliveryStatus::Recorded,
                Passage::Free | Passage::Late(_) => DeliveryStatus::Pending,
            };
            if let Passage::Late(milliseconds) = passage {
                let late = deliveries::new_delayed_delivery(now, endpoint.id, event, milliseconds);
                let due_milliseconds = late.schedule_start_milliseconds;
                new_deliveries.push(late);
                rows::queue_set_due_by(tx, endpoint.id, due_milliseconds)?;
                continue;
            }
            let (event_id, created) = (event.id, event.created);
            let delivery = deliveries::new_delivery(now, endpoint.id, event_id, created, status);
            new_deliveries.push(delivery);
            if !*is_due && status == DeliveryStatus::Pending {
                rows::queue_set_due_by(tx, endpoint.id, now.instant_milliseconds())?;
                tx.signal(if *named_count < NAMED_MAX {
                    *named_count += 1;
                    Signal::DeliveriesOf((scope, endpoint.id))
                } else {
                    Signal::Deliveries
                });
                written.due.push(endpoint.id);
                *is_due = true;
            }
        }
        Ok(())
    }

    /// Writes the deliveries, many with one statement.
    pub fn finish(self, tx: &mut dyn Tx) -> Result<(), StoreError> {
        rows::deliveries_insert(tx, &self.deliveries)?;
        if let Some(handover) = self.handover {
            handover.note_written(self.written);
        }
        Ok(())
    }
}

/// What the worker offers to send to an endpoint. `None` if the endpoint is disabled or has changed
/// since the worker read it, or if a chaos profile decides about each delivery.
fn valid_offer(handover: &Handover, endpoint: &SubscriberRow) -> Option<Offer> {
    if endpoint.is_disabled || endpoint.chaos_key_id.is_some() {
        return None;
    }
    let is_valid = |offer: &Offer| {
        offer.version == endpoint.version || store::failpoint("changed_endpoints_are_handed_over")
    };
    handover.offer(endpoint.id).filter(is_valid)
}
