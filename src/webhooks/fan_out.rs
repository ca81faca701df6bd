//! Turns an event into the deliveries of the endpoints that want it; runs inside the sequencer's
//! transaction.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::deliveries::{self, Delivery};
use super::rows::{self, SubscriberRow};
use super::state::DeliveryStatus;
use crate::chaos::{self, events::Passage};
use crate::events::rows::EventRow;
use crate::kernel::{Now, Scope, StoreError};
use crate::store::{Signal, Tx};

/// Endpoints that one run of the sequencer tells the worker by name. The worker finds further ones
/// by looking.
pub const NAMED_MAX: usize = 64;

/// The endpoints of the accounts that one run of the sequencer meets, read with one small query for
/// each account.
#[derive(Default)]
#[must_use = "deliveries are written by `finish`"]
pub struct Subscribers {
    scopes: HashMap<Scope, Vec<Subscriber>>,
    /// What [`Subscribers::finish`] writes.
    deliveries: Vec<Delivery>,
    /// Endpoints that the worker was told by name.
    named_count: usize,
}

struct Subscriber {
    endpoint: SubscriberRow,
    /// Its queue is already due in this run.
    is_due: bool,
}

impl Subscribers {
    /// Begins one delivery for each endpoint that wants the event: due now, or only recorded where
    /// it is disabled. A chaos profile may withhold it or make it late.
    pub fn fan_out(
        &mut self,
        tx: &mut dyn Tx,
        now: &mut Now,
        scope: Scope,
        event: &EventRow,
    ) -> Result<(), StoreError> {
        let Subscribers { scopes, deliveries: begun, named_count } = self;
        let subscribers = match scopes.entry(scope) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let endpoints = rows::subscribers(tx, scope)?;
                place.insert(
                    endpoints
                        .into_iter()
                        .map(|endpoint| Subscriber { endpoint, is_due: false })
                        .collect(),
                )
            }
        };
        for Subscriber { endpoint, is_due } in subscribers {
            if !endpoint.enabled_events.matches(&event.event_type) {
                continue;
            }
            if endpoint.is_disabled {
                let status = DeliveryStatus::Recorded;
                begun.push(deliveries::begun(now, endpoint.id, event.id, event.created, status));
                continue;
            }
            let passage = match endpoint.chaos_key_id {
                Some(key_id) => {
                    let (of, linked) = ((key_id, endpoint.id), event.linked.to_string());
                    chaos::events::passage(tx, now, scope, of, event.id, &linked)?
                }
                None => Passage::Free,
            };
            let status = match passage {
                Passage::Missing => DeliveryStatus::Recorded,
                Passage::Free | Passage::Late(_) => DeliveryStatus::Pending,
            };
            if let Passage::Late(milliseconds) = passage {
                let late = deliveries::begun_late(now, endpoint.id, event, milliseconds);
                let due_milliseconds = late.schedule_start_milliseconds;
                begun.push(late);
                rows::queue_due_by(tx, endpoint.id, due_milliseconds)?;
                continue;
            }
            begun.push(deliveries::begun(now, endpoint.id, event.id, event.created, status));
            if !*is_due && status == DeliveryStatus::Pending {
                rows::queue_due_by(tx, endpoint.id, now.instant_milliseconds())?;
                tx.signal(if *named_count < NAMED_MAX {
                    *named_count += 1;
                    Signal::DeliveriesOf((scope, endpoint.id))
                } else {
                    Signal::Deliveries
                });
                *is_due = true;
            }
        }
        Ok(())
    }

    /// Writes the deliveries, many with one statement.
    pub fn finish(self, tx: &mut dyn Tx) -> Result<(), StoreError> {
        rows::deliveries_insert(tx, &self.deliveries)
    }
}
