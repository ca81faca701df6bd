//! Idle connections to receivers, kept for reuse.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::connection::Connection;

/// The most idle connections that are kept for one origin (`WebhookUrl::origin`).
pub(super) const IDLE_PER_ORIGIN_MAX: usize = 8;
/// The most idle connections that are kept in all.
pub(super) const IDLE_TOTAL_MAX: usize = 512;

/// Idle connections, the longest idle first. All are in one short list: scanning it is cheaper than
/// a map of lists, and both limits are simple to keep.
pub(super) struct ConnectionPool {
    idle_duration: Duration,
    pub(super) state: Mutex<PooledConnections>,
}

#[derive(Default)]
pub(super) struct PooledConnections {
    pub(super) idle: VecDeque<IdleConnection>,
    /// A task runs that closes connections as they expire.
    has_closer: bool,
}

pub(super) struct IdleConnection {
    origin: Arc<str>,
    connection: Connection,
    idle_since: Instant,
}

impl ConnectionPool {
    pub(super) fn new(idle_duration: Duration) -> ConnectionPool {
        ConnectionPool { idle_duration, state: Mutex::default() }
    }

    /// Takes the most recently used connection to this origin whose peer is one of `addresses`, the
    /// addresses that were judged for this attempt. Leaves out connections that are closed, as far
    /// as the socket tells.
    pub(super) async fn take(&self, origin: &str, addresses: &[IpAddr]) -> Option<Connection> {
        loop {
            let mut connection = self.take_unchecked(origin, addresses, Instant::now())?;
            if connection.is_idle().await {
                return Some(connection);
            }
        }
    }

    /// Like [`ConnectionPool::take`], but does not check whether the connection is still open.
    pub(super) fn take_unchecked(
        &self,
        origin: &str,
        addresses: &[IpAddr],
        now: Instant,
    ) -> Option<Connection> {
        let mut state = lock(&self.state);
        let index = state.idle.iter().rposition(|idle| {
            *idle.origin == *origin
                && addresses.contains(&idle.connection.peer)
                && now < idle.idle_since + self.idle_duration
        })?;
        state.idle.remove(index).map(|idle| idle.connection)
    }

    /// Keeps an idle connection. If its origin has reached the limit, this drops the origin's
    /// connection that has been idle longest. Otherwise, if the limit in all is reached, it drops
    /// the connection that has been idle longest of all.
    pub(super) fn put(self: &Arc<ConnectionPool>, origin: &Arc<str>, connection: Connection) {
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
            connection,
            idle_since: Instant::now(),
        });
        if !state.has_closer {
            state.has_closer = true;
            tokio::spawn(ConnectionPool::close_idle(Arc::downgrade(self)));
        }
    }

    /// Closes connections when they have been idle for too long, until none is left.
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

    /// Closes the connections that have been idle for too long at `now`. Answers when the next one
    /// expires; `None` if none is left, which ends [`ConnectionPool::close_idle`].
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

/// Locks a mutex, even a poisoned one: what the mutexes of this module and of `resolve` guard is
/// consistent after each single change, so a panic between two changes does no harm.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
