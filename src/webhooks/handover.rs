//! What the sequencer and the delivery worker of one node tell each other, on PostgreSQL. If an
//! endpoint has nothing due, the worker need not read and claim its new deliveries before it sends
//! them.
//!
//! For each endpoint, the worker offers a number of deliveries that it could send at once. The
//! sequencer writes up to that many deliveries as claimed, and hands them over after its commit.
//! Nothing that was rolled back is handed over. If the process ends before it sends a delivery that
//! was handed over, the delivery is due again when its claim ends.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::deliveries::DueDelivery;
use super::rows::EndpointId;
use crate::kernel::Scope;

/// What the worker could send to an endpoint at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offer {
    /// The endpoint's version as the worker knows it. If the sequencer finds another version,
    /// nothing is handed over.
    pub version: i64,
    /// How many deliveries the worker could send at once.
    pub room: usize,
}

/// A delivery that the sequencer wrote as claimed.
#[derive(Clone)]
pub struct HandedDelivery {
    pub scope: Scope,
    pub endpoint_id: EndpointId,
    /// The endpoint's version as the sequencer read it. `due.schedule_start_milliseconds` counts as
    /// the moment of that read.
    pub version: i64,
    pub due: DueDelivery,
    pub lease_ends_milliseconds: i64,
}

/// What one run of the sequencer wrote.
#[derive(Default)]
pub struct WrittenDeliveries {
    pub claimed: Vec<HandedDelivery>,
    /// Endpoints that got deliveries which are due and not claimed.
    pub due: Vec<EndpointId>,
}

/// What the sequencer and the worker share. There is a new `Handover` each time a node gets the
/// lease that both of them run under.
#[derive(Default)]
pub struct Handover {
    state: Mutex<HandoverState>,
    handed_notice: Notify,
}

#[derive(Default)]
struct HandoverState {
    offers: HashMap<EndpointId, Offer>,
    /// How many deliveries the worker could send at once to all endpoints together.
    room_total: usize,
    is_closed: bool,
    /// What the sequencer's current run wrote.
    written: WrittenDeliveries,
    /// What was handed over, and the worker has not taken yet.
    handed: Vec<HandedDelivery>,
}

impl Handover {
    fn state(&self) -> MutexGuard<'_, HandoverState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // The worker's side.

    /// Replaces the offers for the endpoints in `changed` (`None` withdraws an offer), and the
    /// number of deliveries that the worker could send at once to all endpoints together. After
    /// [`Handover::close`] this does nothing.
    pub fn publish(&self, changed: Vec<(EndpointId, Option<Offer>)>, room_total: usize) {
        let state = &mut *self.state();
        if state.is_closed {
            return;
        }
        state.room_total = room_total;
        for (endpoint_id, offer) in changed {
            match offer {
                Some(offer) => state.offers.insert(endpoint_id, offer),
                None => state.offers.remove(&endpoint_id),
            };
        }
    }

    /// Waits until something has been handed over since the last wait.
    pub async fn notified(&self) {
        self.handed_notice.notified().await;
    }

    /// Takes what was handed over.
    pub fn take(&self) -> Vec<HandedDelivery> {
        std::mem::take(&mut self.state().handed)
    }

    /// Withdraws all offers for good. The sequencer's current run may still hand deliveries over.
    pub fn close(&self) {
        let state = &mut *self.state();
        state.is_closed = true;
        state.room_total = 0;
        state.offers = HashMap::new();
    }

    // The sequencer's side.

    /// Begins a run, and forgets what a run that was rolled back wrote. Answers how many deliveries
    /// this run may write as claimed.
    pub fn begin_run(&self) -> usize {
        let state = &mut *self.state();
        state.written = WrittenDeliveries::default();
        state.room_total
    }

    /// What the worker could send to an endpoint.
    pub fn offer(&self, endpoint_id: EndpointId) -> Option<Offer> {
        self.state().offers.get(&endpoint_id).copied()
    }

    /// Notes what a run wrote. The worker learns of it only after the commit.
    pub fn note_written(&self, written: WrittenDeliveries) {
        self.state().written = written;
    }

    /// Hands over what the run wrote, after its commit.
    pub fn hand_over(&self) {
        let state = &mut *self.state();
        let WrittenDeliveries { claimed, due } = std::mem::take(&mut state.written);
        // A new delivery must not overtake one that is due. So nothing more is handed over for
        // these endpoints until the worker makes a new offer.
        for endpoint_id in due {
            state.offers.remove(&endpoint_id);
        }
        for delivery in &claimed {
            if let Some(offer) = state.offers.get_mut(&delivery.endpoint_id) {
                offer.room = offer.room.saturating_sub(1);
            }
        }
        state.room_total = state.room_total.saturating_sub(claimed.len());
        if claimed.is_empty() {
            return;
        }
        state.handed.extend(claimed);
        self.handed_notice.notify_one();
    }

    /// Ends a run that failed. Answers what the run wrote as claimed, which may be committed all
    /// the same.
    pub fn take_unconfirmed(&self) -> Vec<HandedDelivery> {
        std::mem::take(&mut self.state().written).claimed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Id, Mode};

    const ONE: EndpointId = Id::from_u128(1);
    const OTHER: EndpointId = Id::from_u128(2);

    fn handed(endpoint_id: EndpointId, number: u128) -> HandedDelivery {
        let due = DueDelivery {
            id: Id::from_u128(number),
            schedule_start_milliseconds: 0,
            step: 0,
            attempts_count: 0,
            due_milliseconds: 0,
            event: None,
            watched: None,
        };
        let (scope, lease_ends_milliseconds) = (Scope::new(1, Mode::Test), 1);
        HandedDelivery { scope, endpoint_id, version: 1, due, lease_ends_milliseconds }
    }

    fn numbers(deliveries: &[HandedDelivery]) -> Vec<u128> {
        deliveries.iter().map(|delivery| delivery.due.id.as_u128()).collect()
    }

    fn offered() -> Handover {
        let handover = Handover::default();
        let offer = Some(Offer { version: 1, room: 2 });
        handover.publish(vec![(ONE, offer), (OTHER, offer)], 5);
        handover
    }

    #[test]
    fn only_what_the_last_run_wrote_is_handed_over_and_only_after_its_commit() {
        let handover = offered();
        assert_eq!(handover.begin_run(), 5);
        let written = WrittenDeliveries { claimed: vec![handed(ONE, 1)], due: vec![OTHER] };
        handover.note_written(written);
        // The run conflicted with another transaction, and runs again.
        assert_eq!(handover.begin_run(), 5, "nothing is taken before the commit");
        handover.note_written(WrittenDeliveries { claimed: vec![handed(ONE, 2)], due: Vec::new() });
        assert!(handover.take().is_empty());
        handover.hand_over();
        assert_eq!(numbers(&handover.take()), [2]);
        assert!(handover.take().is_empty(), "once");
        assert_eq!(handover.offer(ONE), Some(Offer { version: 1, room: 1 }));
        assert_eq!(handover.offer(OTHER), Some(Offer { version: 1, room: 2 }));
        assert_eq!(handover.begin_run(), 4);
    }

    #[test]
    fn what_a_failed_run_wrote_is_unconfirmed_and_not_handed_over() {
        let handover = offered();
        handover.begin_run();
        handover.note_written(WrittenDeliveries { claimed: vec![handed(ONE, 1)], due: Vec::new() });
        assert_eq!(numbers(&handover.take_unconfirmed()), [1]);
        handover.hand_over();
        assert!(handover.take().is_empty() && handover.take_unconfirmed().is_empty());
    }

    #[test]
    fn nothing_overtakes_what_is_due() {
        let handover = offered();
        handover.begin_run();
        handover.note_written(WrittenDeliveries { claimed: vec![handed(ONE, 1)], due: vec![ONE] });
        handover.hand_over();
        assert_eq!((handover.offer(ONE), handover.take().len()), (None, 1));
        handover.publish(vec![(OTHER, None)], 3);
        assert_eq!((handover.offer(OTHER), handover.begin_run()), (None, 3));
    }

    #[test]
    fn a_closed_handover_offers_nothing_and_hands_over_what_was_under_way() {
        let handover = offered();
        handover.begin_run();
        handover.close();
        handover.note_written(WrittenDeliveries { claimed: vec![handed(ONE, 1)], due: Vec::new() });
        handover.hand_over();
        assert_eq!(numbers(&handover.take()), [1]);
        handover.publish(vec![(ONE, Some(Offer { version: 1, room: 2 }))], 5);
        assert_eq!((handover.offer(ONE), handover.begin_run()), (None, 0));
    }
}
