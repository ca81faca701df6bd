//! Idle connections to receivers, kept for reuse.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::connection::Connection;

/// Idle connections kept for one origin.
pub(super) const IDLE_PER_ORIGIN_MAX: usize = 8;
/// Idle connections kept in all.
pub(super) const IDLE_TOTAL_MAX: usize = 512;

/// Idle connections, the longest idle first. A scan of one short queue is cheaper than a map of
/// queues and makes every limit one line.
pub(super) struct ConnectionPool {
    idle_duration: Duration,
    pub(super) state: Mutex<PooledConnections>,
}

#[derive(Default)]
pub(super) struct PooledConnections {
    pub(super) idle: VecDeque<IdleConnection>,
    /// A task is closing them as they expire.
    has_closer: bool,
}

pub(super) struct IdleConnection {
    origin: Arc<str>,
    link: Connection,
    idle_since: Instant,
}

impl ConnectionPool {
    pub(super) fn new(idle_duration: Duration) -> ConnectionPool {
        ConnectionPool { idle_duration, state: Mutex::default() }
    }

    /// The connection to this origin that was used last, if its peer is among the addresses judged
    /// for this attempt and it is still open as far as the socket tells.
    pub(super) async fn take(&self, origin: &str, addresses: &[IpAddr]) -> Option<Connection> {
        loop {
            let mut link = self.take_unchecked(origin, addresses, Instant::now())?;
            if link.is_idle().await {
                return Some(link);
            }
        }
    }

    pub(super) fn take_unchecked(
        &self,
        origin: &str,
        addresses: &[IpAddr],
        now: Instant,
    ) -> Option<Connection> {
        let mut state = lock(&self.state);
        let index = state.idle.iter().rposition(|idle| {
            *idle.origin == *origin
                && addresses.contains(&idle.link.peer)
                && now < idle.idle_since + self.idle_duration
        })?;
        state.idle.remove(index).map(|idle| idle.link)
    }

    /// Keeps an idle connection, in place of the longest idle one where a limit is reached.
    pub(super) fn put(self: &Arc<ConnectionPool>, origin: &Arc<str>, link: Connection) {
        let mut state = lock(&self.state);
        let of_origin = |idle: &IdleConnection| idle.origin == *origin;
        let count = state.idle.iter().filter(|idle| of_origin(idle)).count();
        if count >= IDLE_PER_ORIGIN_MAX {
            if let Some(oldest) = state.idle.iter().position(of_origin) {
                state.idle.remove(oldest);
            }
        } else if state.idle.len() >= IDLE_TOTAL_MAX {
            state.idle.pop_front();
        }
        state.idle.push_back(IdleConnection {
            origin: origin.clone(),
            link,
            idle_since: Instant::now(),
        });
        if !state.has_closer {
            state.has_closer = true;
            tokio::spawn(ConnectionPool::close_idle(Arc::downgrade(self)));
        }
    }

    /// Closes connections as they reach their age, until none is left.
    async fn close_idle(pool: Weak<ConnectionPool>) {
        loop {
            let next = match pool.upgrade() {
                Some(pool) => pool.close_expired(Instant::now()),
                None => return,
            };
            match next {
                Some(next) => sleep_until(next).await,
                None => return,
            }
        }
    }

    /// Closes what is too old at `now` and says when the next one will be; with none left,
    /// [`ConnectionPool::close_idle`] ends.
    fn close_expired(&self, now: Instant) -> Option<Instant> {
        let mut state = lock(&self.state);
        while let Some(oldest) = state.idle.front() {
            let expires_at = oldest.idle_since + self.idle_duration;
            if now < expires_at {
                return Some(expires_at);
            }
            state.idle.pop_front();
        }
        state.has_closer = false;
        None
    }
}

/// Uses a poisoned lock as it is: what these locks guard is consistent between any two calls.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
