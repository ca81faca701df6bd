//! Requests that wait for an event of their account (long polling), and how a commit wakes them.
//!
//! A waiting request uses no thread and no connection to the store. It registers before it reads
//! events, so an event that commits after the read wakes it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::kernel::{Code, Refusal, Scope};

/// How many requests of one account and mode may wait at the same time on one node.
pub const ACCOUNT_WAITS_MAX: usize = 16;

/// Why a request cannot wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitRefused {
    /// [`ACCOUNT_WAITS_MAX`] requests of the account and mode wait already.
    Account,
    /// As many requests as may wait on this node wait already. More would take the HTTP connections
    /// that other requests need.
    Node,
}

impl From<WaitRefused> for Refusal {
    fn from(refused: WaitRefused) -> Refusal {
        match refused {
            WaitRefused::Account => {
                let message = format!(
                    "{ACCOUNT_WAITS_MAX} requests of this account wait for events already. Let \
                     one end, or send wait=0."
                );
                Refusal::rate_limited(message, "waits", 1)
            }
            WaitRefused::Node => Refusal::new(
                Code::ServiceUnavailable,
                "Too many requests wait for events. Send wait=0, or try again later.",
            ),
        }
    }
}

/// The requests of one account and mode that wait.
struct ScopeWaits {
    count: usize,
    told: Arc<Notify>,
    /// The newest event of the account that [`EventWaits::tell_newest`] was given last.
    newest: Option<u128>,
}

#[derive(Default)]
struct WaitsByScope {
    scopes: HashMap<Scope, ScopeWaits>,
    count: usize,
    /// Accounts that had an event since the last [`EventWaits::take_changed`].
    changed: HashSet<Scope>,
}

/// The requests of a node that wait.
#[derive(Default)]
pub struct EventWaits {
    state: Mutex<WaitsByScope>,
    /// Signalled when a request begins to wait, so that `events::watch` starts to look for events.
    begun: Notify,
    is_closed: AtomicBool,
}

impl EventWaits {
    fn state(&self) -> MutexGuard<'_, WaitsByScope> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a request; at most `waits_max` can wait on this node.
    pub fn begin(
        self: &Arc<Self>,
        scope: Scope,
        waits_max: usize,
    ) -> Result<EventWait, WaitRefused> {
        let mut state = self.state();
        if state.scopes.get(&scope).is_some_and(|waiting| waiting.count >= ACCOUNT_WAITS_MAX) {
            return Err(WaitRefused::Account);
        }
        if state.count >= waits_max {
            return Err(WaitRefused::Node);
        }
        state.count += 1;
        let waiting = state.scopes.entry(scope).or_insert_with(|| ScopeWaits {
            count: 0,
            told: Arc::default(),
            newest: None,
        });
        waiting.count += 1;
        let told = waiting.told.clone();
        drop(state);
        self.begun.notify_one();
        Ok(EventWait { waits: self.clone(), scope, told })
    }

    /// Wakes the requests of an account that has a new event.
    pub fn tell(&self, scope: Scope) {
        let mut state = self.state();
        state.changed.insert(scope);
        if let Some(waiting) = state.scopes.get(&scope) {
            waiting.told.notify_waiters();
        }
    }

    /// Wakes the requests of each account whose newest event is not the one of the last call.
    pub fn tell_newest(&self, newest: &[(Scope, u128)]) {
        let mut state = self.state();
        for (scope, id) in newest {
            if let Some(waiting) = state.scopes.get_mut(scope)
                && waiting.newest != Some(*id)
            {
                waiting.newest = Some(*id);
                waiting.told.notify_waiters();
            }
        }
    }

    /// The accounts, each with its mode, that have waiting requests.
    pub fn scopes(&self) -> Vec<Scope> {
        self.state().scopes.keys().copied().collect()
    }

    /// How many requests wait.
    pub fn count(&self) -> usize {
        self.state().count
    }

    /// Takes the accounts that had an event on this node since the last call.
    pub fn take_changed(&self) -> HashSet<Scope> {
        std::mem::take(&mut self.state().changed)
    }

    /// Returns once a request has begun to wait since the last call.
    pub async fn begun(&self) {
        self.begun.notified().await;
    }

    /// Ends every wait, because the node is about to stop.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.state().scopes.values().for_each(|waiting| waiting.told.notify_waiters());
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }
}

/// A waiting request's registration, until it is dropped.
pub struct EventWait {
    waits: Arc<EventWaits>,
    scope: Scope,
    told: Arc<Notify>,
}

impl EventWait {
    /// A future that ends with the next event after this call, even if it is polled later, or when
    /// the waits are closed.
    pub fn next(&self) -> impl Future<Output = ()> + use<> {
        self.told.clone().notified_owned()
    }
    pub fn is_closed(&self) -> bool {
        self.waits.is_closed()
    }
}

impl Drop for EventWait {
    fn drop(&mut self) {
        let mut state = self.waits.state();
        state.count -= 1;
        if let Some(waiting) = state.scopes.get_mut(&self.scope) {
            waiting.count -= 1;
            if waiting.count == 0 {
                state.scopes.remove(&self.scope);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::kernel::Mode;

    #[test]
    fn an_event_wakes_its_account_alone_and_the_same_newest_event_only_once() {
        let waits = Arc::<EventWaits>::default();
        let (own, other) = (Scope::new(1, Mode::Test), Scope::new(1, Mode::Live));
        waits.tell(own);
        let (first, second) = (waits.begin(own, 9).unwrap(), waits.begin(other, 9).unwrap());
        let (mut of_own, mut of_other) = (Box::pin(first.next()), Box::pin(second.next()));
        waits.tell(own);
        assert!(of_own.as_mut().now_or_never().is_some());
        assert!(of_other.as_mut().now_or_never().is_none());
        // `tell_newest` is called for events of other nodes too. The same newest event wakes only
        // once.
        let (again, same) = (Box::pin(first.next()), [(own, 7)]);
        waits.tell_newest(&same);
        assert!(again.now_or_never().is_some());
        let again = Box::pin(first.next());
        waits.tell_newest(&same);
        assert!(again.now_or_never().is_none());
        waits.close();
        assert!(of_other.now_or_never().is_some() && second.is_closed());
        assert_eq!(waits.take_changed(), HashSet::from([own]));
    }

    #[test]
    fn waits_are_bounded_and_give_their_places_back() {
        let waits = Arc::<EventWaits>::default();
        let scope = |number| Scope::new(number, Mode::Test);
        let all: Vec<_> =
            (0..ACCOUNT_WAITS_MAX).map(|_| waits.begin(scope(1), 20).unwrap()).collect();
        assert_eq!(waits.begin(scope(1), 20).err(), Some(WaitRefused::Account));
        let more: Vec<_> =
            (0..4).map(|number| waits.begin(scope(2 + number), 20).unwrap()).collect();
        assert_eq!(waits.begin(scope(9), 20).err(), Some(WaitRefused::Node));
        assert_eq!((waits.count(), waits.scopes().len()), (20, 5));
        drop((all, more));
        assert_eq!((waits.count(), waits.scopes().len()), (0, 0));
        assert!(waits.begin(scope(1), 1).is_ok());
    }
}
