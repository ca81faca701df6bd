//! Finished attempts that wait to be recorded. There is one list for each share of endpoints, so
//! that a turn takes the attempts of its share without going through those of the other one.

use std::collections::VecDeque;

use super::known_endpoint::Share;
use crate::webhooks::deliveries::FinishedAttempt;
use crate::webhooks::rows::EndpointId;

pub(super) type EndpointAttempt = (EndpointId, FinishedAttempt);

/// Each list is in the order in which the attempts ended.
#[derive(Default)]
pub(super) struct FinishedAttempts {
    caught_up: VecDeque<EndpointAttempt>,
    backlog: VecDeque<EndpointAttempt>,
}

impl FinishedAttempts {
    pub(super) fn len(&self) -> usize {
        self.caught_up.len() + self.backlog.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.caught_up.is_empty() && self.backlog.is_empty()
    }

    pub(super) fn push(&mut self, share: Share, attempt: EndpointAttempt) {
        self.of(share).push_back(attempt);
    }

    /// Puts back, in front of the others, an attempt that could not be recorded.
    pub(super) fn give_back(&mut self, share: Share, attempt: EndpointAttempt) {
        self.of(share).push_front(attempt);
    }

    /// Takes at most `max` attempts of a share.
    pub(super) fn take(&mut self, share: Share, max: usize) -> Vec<EndpointAttempt> {
        let list = self.of(share);
        list.drain(..max.min(list.len())).collect()
    }

    /// Takes at most `max` attempts of one share, whichever has some.
    pub(super) fn take_any(&mut self, max: usize) -> Vec<EndpointAttempt> {
        let share = if self.caught_up.is_empty() { Share::Backlog } else { Share::CaughtUp };
        self.take(share, max)
    }

    /// Moves the attempts of an endpoint to the share that it now belongs to.
    pub(super) fn change_share(&mut self, endpoint_id: EndpointId, share: Share) {
        let (from, to) = match share {
            Share::CaughtUp => (&mut self.backlog, &mut self.caught_up),
            Share::Backlog => (&mut self.caught_up, &mut self.backlog),
        };
        let (moved, kept) =
            std::mem::take(from).into_iter().partition(|(id, _)| *id == endpoint_id);
        *from = kept;
        let mut moved: VecDeque<EndpointAttempt> = moved;
        to.append(&mut moved);
    }

    const fn of(&mut self, share: Share) -> &mut VecDeque<EndpointAttempt> {
        match share {
            Share::CaughtUp => &mut self.caught_up,
            Share::Backlog => &mut self.backlog,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Id;

    fn attempt(endpoint: u128, delivery: u128) -> EndpointAttempt {
        let finished = FinishedAttempt {
            delivery_id: Id::from_u128(delivery),
            schedule_start_milliseconds: 0,
            step: 0,
            attempts_count: 0,
            due_milliseconds: 0,
            holder: None,
            attempted_milliseconds: 0,
            is_success: true,
            http_status: None,
            error: None,
            duration_milliseconds: 0,
            answer: String::new(),
            retry_after_seconds: None,
            watched: None,
            attacked_http_status: None,
        };
        (Id::from_u128(endpoint), finished)
    }

    fn deliveries(attempts: &[EndpointAttempt]) -> Vec<u128> {
        attempts.iter().map(|(_, finished)| finished.delivery_id.as_u128()).collect()
    }

    #[test]
    fn each_share_takes_its_own_and_an_endpoint_changes_with_all_of_them() {
        let mut finished = FinishedAttempts::default();
        for (share, endpoint, delivery) in [
            (Share::Backlog, 7, 1),
            (Share::Backlog, 8, 2),
            (Share::Backlog, 7, 3),
            (Share::CaughtUp, 9, 4),
        ] {
            finished.push(share, attempt(endpoint, delivery));
        }
        let first = finished.take(Share::Backlog, 1);
        assert_eq!(deliveries(&first), [1]);
        finished.give_back(Share::Backlog, first.into_iter().next().expect("one"));

        finished.change_share(Id::from_u128(7), Share::CaughtUp);
        assert_eq!((finished.len(), finished.is_empty()), (4, false));
        assert_eq!(deliveries(&finished.take(Share::Backlog, 9)), [2]);
        assert_eq!(deliveries(&finished.take_any(2)), [4, 1]);
        finished.change_share(Id::from_u128(7), Share::Backlog);
        assert_eq!(deliveries(&finished.take(Share::CaughtUp, 9)), []);
        assert_eq!(deliveries(&finished.take_any(9)), [3]);
        assert!(finished.is_empty() && finished.take_any(9).is_empty());
    }
}
