//! Fencing: a node works with one history of its database and never with an older one.
//!
//! Every connection reads where its server is ([`Position`]: the cluster's identifier, the timeline
//! and the position of the log) and a row of the database that only rises ([`Mark`]). The node
//! remembers the highest of both:
//!
//! - A server of a lower timeline is a primary of before a fail-over that came back. Its
//!   connections are refused, and those that are open are dropped.
//! - A server whose log or mark is behind what the node has seen lost acknowledged writes: the
//!   database went back in time (a restore, a fail-over to a standby that was behind) or was made
//!   anew. The node stops writing until the operator runs `hundi resume database`, which raises the
//!   mark's epoch.
//!
//! The mark rises every [`WATCH_SECONDS`], so a loss of less than that can stay unnoticed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::kernel::StoreError;
use crate::store::failpoint;

/// How often a node raises the mark, reads its server's position, and asks the other servers of
/// its address whether one of them has become the primary.
pub(super) const WATCH_SECONDS: u64 = 2;

/// The row's name in `meta`.
pub(super) const MARK_NAME: &str = "database_mark";

/// Where a server is. The log's positions are bytes; what is flushed survives a crash.
pub(super) const POSITION: &str = "SELECT (SELECT system_identifier FROM pg_control_system()), \
    CAST(CAST('x' || SUBSTR(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) AS BIT(32)) AS \
    BIGINT), CAST(pg_current_wal_insert_lsn() - '0/0' AS BIGINT), \
    CAST(pg_current_wal_flush_lsn() - '0/0' AS BIGINT)";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Position {
    /// Made once for each cluster by `initdb`.
    pub system: i64,
    /// Rises with every promotion.
    pub timeline: i64,
    pub inserted: i64,
    pub flushed: i64,
}

/// The row that only rises: `EPOCH:COUNT`. A missing row is the lowest mark.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Mark {
    /// Raised by the operator alone, to the time in milliseconds since 1970.
    pub epoch: i64,
    pub count: i64,
}

impl Mark {
    pub(super) fn parse(bytes: &[u8]) -> Option<Mark> {
        let (epoch, count) = std::str::from_utf8(bytes).ok()?.split_once(':')?;
        Some(Mark { epoch: epoch.parse().ok()?, count: count.parse().ok()? })
    }
    pub(super) fn to_text(self) -> String {
        format!("{}:{}", self.epoch, self.count)
    }
    pub(super) const fn next(self) -> Mark {
        Mark { epoch: self.epoch, count: self.count + 1 }
    }
}

/// What a node knows of its database. `None` until the first connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Known {
    position: Option<Position>,
    mark: Mark,
}

#[derive(Default)]
struct State {
    known: Known,
    /// Why the node does not write.
    halted: Option<&'static str>,
    is_old_primary_reported: bool,
}

/// The memory of one node.
#[derive(Default)]
pub(super) struct Fence {
    state: Mutex<State>,
    /// Rises whenever open connections may lead to an old primary.
    generation: AtomicU64,
    /// Connections to old primaries that were refused or dropped.
    pub(super) refused_count: AtomicU64,
}

pub(super) const OLD_PRIMARY: &str = "this server is a primary of before a fail-over (its timeline \
    is lower): nothing may be written to it; see \"An old primary\" in docs/postgresql.md";
const OTHER_CLUSTER: &str = "this server is of another cluster than the one that this node works \
    with: see \"A database that went back in time\" in docs/postgresql.md, then run \
    `hundi resume database`";
const WENT_BACK: &str = "the database lacks writes that it has acknowledged (a restore, or a \
    fail-over to a standby that was behind): nothing is written until the steps under \"A database \
    that went back in time\" in docs/postgresql.md are done and `hundi resume database` was run";

impl Fence {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Taken before a server is asked, because other connections raise it meanwhile.
    pub(super) fn known(&self) -> Known {
        self.lock().known
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    /// Why nothing may be written, if so.
    pub(super) fn halted(&self) -> Option<&'static str> {
        self.lock().halted
    }

    /// Judges a connection by what its server said after `before` was known. Answers the
    /// generation up to which it is good; `Err` refuses it.
    pub(super) fn admit(
        &self,
        before: Known,
        position: Position,
        mark: Mark,
    ) -> Result<u64, StoreError> {
        let mut state = self.lock();
        let known_position = state.known.position.filter(|_| !failpoint("no_fence"));
        let Some(highest) = known_position else {
            state.known = Known { position: Some(position), mark };
            return Ok(self.generation());
        };
        if mark.epoch > state.known.mark.epoch {
            // The operator said that this is the database.
            tracing::warn!(
                timeline = position.timeline,
                "the operator resumed: this node works with the database as it is now"
            );
            *state = State { known: Known { position: Some(position), mark }, ..State::default() };
            self.generation.fetch_add(1, Ordering::SeqCst);
            return Ok(self.generation());
        }
        if position.system != highest.system {
            return Err(StoreError::Unavailable(OTHER_CLUSTER.into()));
        }
        if position.timeline < highest.timeline {
            self.refused_count.fetch_add(1, Ordering::Relaxed);
            if !std::mem::replace(&mut state.is_old_primary_reported, true) {
                tracing::error!(
                    timeline = position.timeline,
                    timeline_known = highest.timeline,
                    alarm = "old_primary",
                    "a server that was the primary before a fail-over takes connections: its \
                     connections are refused; stop it, and let it join as a standby"
                );
            }
            return Err(StoreError::Unavailable(OLD_PRIMARY.into()));
        }
        let log_went_back = before.position.is_some_and(|before| {
            before.timeline == position.timeline && position.inserted < before.flushed
        });
        if log_went_back || mark < before.mark {
            if state.halted.is_none() {
                tracing::error!(
                    alarm = "database_went_back",
                    mark = mark.to_text(),
                    mark_known = before.mark.to_text(),
                    "{WENT_BACK}"
                );
            }
            state.halted = Some(WENT_BACK);
            return Ok(self.generation());
        }
        if position.timeline > highest.timeline {
            self.rise(&mut state, position);
        } else {
            let flushed = highest.flushed.max(position.flushed);
            state.known.position = Some(Position { flushed, ..highest });
        }
        state.known.mark = state.known.mark.max(mark);
        Ok(self.generation())
    }

    fn rise(&self, state: &mut State, position: Position) {
        state.known.position = Some(position);
        state.is_old_primary_reported = false;
        self.generation.fetch_add(1, Ordering::SeqCst);
        tracing::warn!(
            timeline = position.timeline,
            "the database failed over: open connections to the primary of before are dropped"
        );
    }

    /// Notes another server of the same address that takes writes. Only a higher timeline counts:
    /// its log is judged once a connection works with it.
    pub(super) fn notice(&self, position: Position) {
        let mut state = self.lock();
        if failpoint("no_fence") {
            return;
        }
        if state.known.position.is_some_and(|highest| {
            position.system == highest.system && position.timeline > highest.timeline
        }) {
            self.rise(&mut state, position);
        }
    }

    /// Notes a mark that this node wrote.
    pub(super) fn marked(&self, mark: Mark) {
        let mut state = self.lock();
        state.known.mark = state.known.mark.max(mark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(timeline: i64, bytes: i64) -> Position {
        Position { system: 7, timeline, inserted: bytes + 10, flushed: bytes }
    }
    const fn mark(count: i64) -> Mark {
        Mark { epoch: 0, count }
    }

    #[test]
    fn only_the_history_that_was_seen_is_worked_with() {
        let fence = Fence::default();
        let admit = |position, mark| fence.admit(fence.known(), position, mark);
        admit(at(1, 100), mark(5)).unwrap();
        admit(at(1, 95), mark(5)).unwrap();
        let generation = fence.generation();
        admit(at(2, 100), mark(5)).unwrap();
        assert!(fence.generation() > generation && fence.halted().is_none());
        assert!(admit(at(1, 900), mark(9)).is_err(), "an old primary");
        assert!(admit(Position { system: 8, ..at(2, 900) }, mark(9)).is_err());
        assert_eq!(fence.refused_count.load(Ordering::Relaxed), 1);
        assert!(fence.halted().is_none());
        fence.notice(at(3, 0));
        assert!(admit(at(2, 900), mark(9)).is_err(), "an old primary that was not connected to");
        admit(at(3, 200), mark(6)).unwrap();
        // A connection asked before another one raised what is known.
        let before = fence.known();
        fence.marked(mark(8));
        fence.admit(before, at(3, 200), mark(7)).unwrap();
        assert!(fence.halted().is_none());
        admit(at(3, 200), mark(7)).unwrap();
        assert!(fence.halted().is_some(), "a mark that was written is gone");
        admit(at(3, 300), mark(9)).unwrap();
        assert!(fence.halted().is_some(), "only the operator ends it");
        admit(at(3, 300), Mark { epoch: 1, count: 0 }).unwrap();
        assert!(fence.halted().is_none());
        admit(at(3, 280), Mark { epoch: 1, count: 0 }).unwrap();
        assert!(fence.halted().is_some(), "the log went back");
    }

    #[test]
    fn a_mark_reads_as_it_was_written() {
        for mark in [Mark::default(), Mark { epoch: 1_795_000_000_000, count: 3 }] {
            assert_eq!(Mark::parse(mark.to_text().as_bytes()), Some(mark));
        }
        assert_eq!(Mark::parse(b"1"), None);
    }
}
