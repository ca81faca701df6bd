//! How a commit tells the worker of webhook deliveries what is due.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::kernel::id::kind;
use crate::kernel::{Id, Scope};

/// How many endpoints are noted one by one. If there are more, the worker searches the store for
/// due deliveries.
const ENDPOINTS_WAITING_MAX: usize = 1_024;

/// An endpoint, with the account and mode that it belongs to.
pub type ScopedEndpoint = (Scope, Id<kind::WebhookEndpoint>);

/// Where deliveries became due since the worker last asked.
#[derive(Default, PartialEq, Eq, Debug)]
pub struct DueSince {
    pub endpoints: Vec<ScopedEndpoint>,
    /// Other endpoints may have due deliveries, which only a search of the store finds.
    pub others: bool,
}

#[derive(Default)]
pub struct DeliverySignals {
    waiting: Mutex<DueSince>,
    told: Notify,
}

impl DeliverySignals {
    /// Tells the worker that one endpoint has deliveries that are due.
    pub fn tell_of_endpoint(&self, endpoint: ScopedEndpoint) {
        self.change(|waiting| {
            if waiting.endpoints.len() < ENDPOINTS_WAITING_MAX {
                waiting.endpoints.push(endpoint);
            } else {
                waiting.others = true;
            }
        });
    }

    /// Tells the worker that deliveries of unknown endpoints may be due.
    pub fn tell(&self) {
        self.change(|waiting| waiting.others = true);
    }

    /// Waits for a signal, unless there was one since the last wait.
    pub async fn notified(&self) {
        self.told.notified().await;
    }

    /// Takes what was signalled since the last call.
    pub fn take(&self) -> DueSince {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether there is a signal that the worker has not taken.
    pub fn has_untaken(&self) -> bool {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) != DueSince::default()
    }

    fn change(&self, change: impl FnOnce(&mut DueSince)) {
        change(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        self.told.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn endpoint(number: u128) -> ScopedEndpoint {
        (Scope::from_code(0), Id::from_u128(number))
    }

    #[test]
    fn endpoints_are_taken_once_and_in_order() {
        let signals = DeliverySignals::default();
        signals.tell_of_endpoint(endpoint(2));
        signals.tell_of_endpoint(endpoint(1));
        let expected = DueSince { endpoints: vec![endpoint(2), endpoint(1)], others: false };
        assert!(signals.has_untaken());
        assert_eq!(signals.take(), expected);
        assert!(!signals.has_untaken());
        assert_eq!(signals.take(), DueSince::default());
        signals.tell();
        assert_eq!(signals.take(), DueSince { endpoints: Vec::new(), others: true });
    }

    #[test]
    fn a_process_without_a_worker_keeps_a_bounded_number() {
        let signals = DeliverySignals::default();
        for number in 0..=ENDPOINTS_WAITING_MAX {
            signals.tell_of_endpoint(endpoint(number as u128));
        }
        let due = signals.take();
        assert_eq!(due.endpoints.len(), ENDPOINTS_WAITING_MAX);
        assert!(due.others, "only a search finds the last one");
    }
}
