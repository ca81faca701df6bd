//! Fencing: a node works with one history of its database and never with an older one.
//!
//! Each connection of the lanes and of the watch reads its server's [`Position`] (the cluster's
//! identifier, the timeline and how far the log goes) and a mark in the database, which nodes only
//! ever raise ([`Mark`]). The node remembers the highest position, the last mark that it wrote
//! itself (a mark that it only read may never have reached a standby), and the commits that it
//! acknowledged (`acknowledged.rs`):
//!
//! - A server of a lower timeline is an old primary, from before a fail-over, that came back. Its
//!   connections are refused, and open ones are dropped.
//! - A server went back in time (a restore, a fail-over to a standby that was behind) if it lacks a
//!   commit that this node acknowledged, if its log is behind what the node has seen, or if its
//!   mark is behind the node's own. The node then stops writing and says so in the mark, which
//!   stops the other nodes. They go on when the operator runs `hundi resume database`, which raises
//!   the mark's epoch.
//!
//! After a fail-over, the new primary is asked for the acknowledged commits. The loss of other
//! commits shows in the mark. Each node raises the mark every [`WATCH_SECONDS`]. If only such
//! commits since the last rise are lost, that can stay unnoticed.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::acknowledged::{Acknowledged, Footprint, Verdict};
use crate::kernel::StoreError;
use crate::store::failpoint;

/// How often a node raises the mark, reads its server's position, and asks all servers of its
/// address, if there are several, whether one of them has become the primary.
pub(super) const WATCH_SECONDS: u64 = 2;

/// The row's name in `meta`.
pub(super) const MARK_NAME: &str = "database_mark";

/// Asks a server for its [`Position`].
pub(super) const POSITION: &str = "SELECT (SELECT system_identifier FROM pg_control_system()), \
    CAST(CAST('x' || SUBSTR(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) AS BIT(32)) AS \
    BIGINT), CAST(pg_current_wal_insert_lsn() - '0/0' AS BIGINT), \
    CAST(pg_current_wal_flush_lsn() - '0/0' AS BIGINT), CAST(pg_last_wal_replay_lsn() - '0/0' AS \
    BIGINT)";

/// Where a server is in the history of its database. Positions in the log are in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Position {
    /// Made once for each cluster by `initdb`.
    pub system: i64,
    /// Rises with every promotion.
    pub timeline: i64,
    /// How far the log goes.
    pub inserted: i64,
    /// How far the log is on the disk, and so survives a crash.
    pub flushed: i64,
    /// The last position that this server replayed as a standby before it was promoted. `None` if
    /// it has restarted without recovery since.
    pub replayed: Option<i64>,
}

/// A row of `meta` that is only ever raised: `EPOCH:COUNT`, and `EPOCH:COUNT:lost` once a node has
/// found that writes are missing. A missing row is the lowest mark.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Mark {
    /// Raised only by `hundi resume database`: to the time in milliseconds since 1970, or by 1 if
    /// the epoch is at that time or above it already.
    pub epoch: i64,
    pub count: i64,
    pub is_lost: bool,
}

impl Mark {
    pub(super) fn parse(bytes: &[u8]) -> Option<Mark> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (text, is_lost) = match text.strip_suffix(":lost") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let (epoch, count) = text.split_once(':')?;
        Some(Mark { epoch: epoch.parse().ok()?, count: count.parse().ok()?, is_lost })
    }
    pub(super) fn to_text(self) -> String {
        let lost = if self.is_lost { ":lost" } else { "" };
        format!("{}:{}{lost}", self.epoch, self.count)
    }
    pub(super) const fn next(self) -> Mark {
        Mark { count: self.count + 1, ..self }
    }
    const fn is_below(self, other: Mark) -> bool {
        self.epoch < other.epoch || self.epoch == other.epoch && self.count < other.count
    }
}

/// What a node has seen of its database, to compare with what a server says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct DatabaseSeen {
    /// `None` until the first connection.
    position: Option<Position>,
    /// The last mark that this node wrote and that was acknowledged. Before the first, only its
    /// epoch is known, as it was read. A mark that was only read may never have reached a standby.
    mark: Mark,
    /// The highest position of a commit that this node acknowledged on the highest timeline. The
    /// log goes beyond it. Only [`Fence::seen`] fills it in.
    acknowledged: i64,
}

impl DatabaseSeen {
    /// Whether the operator has resumed since this was seen. Then a server's answer to a question
    /// that was asked at that time does not stop the node: only a later answer can.
    fn predates_a_resume(&self, state: &FenceState) -> bool {
        self.position.is_some() && self.mark.epoch < state.seen.mark.epoch
    }
}

#[derive(Default)]
struct FenceState {
    seen: DatabaseSeen,
    acknowledged: Acknowledged,
    /// Why the node does not write.
    halted: Option<&'static str>,
    is_old_primary_reported: bool,
    is_other_cluster_reported: bool,
}

/// What one node remembers.
#[derive(Default)]
pub(super) struct Fence {
    state: Mutex<FenceState>,
    /// Rises at a fail-over, because open connections may lead to the old primary, and when the
    /// operator resumes.
    generation: watch::Sender<u64>,
    /// Which of the address's servers was connected to last.
    pub(super) last_host: AtomicUsize,
    /// Whether this process is a node, not a command beside one.
    pub(super) is_node: bool,
    /// Connections to old primaries that were refused.
    pub(super) refused_count: AtomicU64,
    /// Whether a connection met another one's prepared statements, which shows that a pooler
    /// assigns connections by transaction. Then nothing is read or written until the watch finds
    /// that this has ended.
    pub(super) is_pooled: AtomicBool,
}

pub(super) const OLD_PRIMARY: &str = "this server is an old primary from before a fail-over (its \
    timeline is lower): nothing may be written to it; see \"An old primary\" in docs/postgresql.md";
const OTHER_CLUSTER: &str = "this server is of another cluster than the one that this node works \
    with: see \"A database that went back in time\" in docs/postgresql.md, then run \
    `hundi resume database`";
const WENT_BACK: &str = "the database lacks writes that it has acknowledged (a restore, or a \
    fail-over to a standby that was behind): nothing is written until the steps under \"A database \
    that went back in time\" in docs/postgresql.md are done and `hundi resume database` was run";

impl Fence {
    pub(super) fn new(is_node: bool) -> Fence {
        Fence { is_node, ..Fence::default() }
    }

    fn lock(&self) -> MutexGuard<'_, FenceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What this node has seen so far. Take it before asking a server, because other connections
    /// raise it meanwhile.
    pub(super) fn seen(&self) -> DatabaseSeen {
        let state = self.lock();
        let timeline = state.seen.position.map_or(0, |highest| highest.timeline);
        let acknowledged = state.acknowledged.position(timeline).unwrap_or(0);
        DatabaseSeen { acknowledged, ..state.seen }
    }

    pub(super) fn timeline(&self) -> Option<i64> {
        self.lock().seen.position.map(|position| position.timeline)
    }

    pub(super) fn generation(&self) -> u64 {
        *self.generation.borrow()
    }

    /// Waits until the fence has another generation than this.
    pub(super) async fn wait_until_past(&self, generation: u64) {
        // The sender is ours, so the wait cannot fail.
        let _ = self.generation.subscribe().wait_for(|present| *present != generation).await;
    }

    /// Why nothing may be written, if so.
    pub(super) fn halted(&self) -> Option<&'static str> {
        self.lock().halted
    }

    /// Judges a connection by what its server said. `before` is what this node had seen when it
    /// asked. `Err` refuses the connection. Otherwise the connection is good as long as the fence
    /// has the returned generation. The returned numbers are of transactions: before the connection
    /// is used, ask the server whether they are committed, and pass the answer to
    /// [`Fence::note_lost_commits`].
    pub(super) fn admit(
        &self,
        before: DatabaseSeen,
        position: Position,
        mark: Mark,
    ) -> Result<(u64, Vec<i64>), StoreError> {
        let mut state = self.lock();
        let known_position = state.seen.position.filter(|_| !failpoint("no_fence"));
        let is_resumed = known_position.is_some() && mark.epoch > state.seen.mark.epoch;
        if is_resumed {
            // The operator has accepted the database as it is, so forget what was seen before.
            tracing::warn!(
                timeline = position.timeline,
                "the operator resumed: this node works with the database as it is now"
            );
            *state = FenceState::default();
            self.generation.send_modify(|generation| *generation += 1);
        }
        let Some(highest) = known_position.filter(|_| !is_resumed) else {
            let known_mark = Mark { epoch: mark.epoch, ..Mark::default() };
            state.seen = DatabaseSeen {
                position: Some(position),
                mark: known_mark,
                ..DatabaseSeen::default()
            };
            self.halt_if_marked_lost(&mut state, mark);
            return Ok((self.generation(), Vec::new()));
        };
        if position.system != highest.system {
            if !std::mem::replace(&mut state.is_other_cluster_reported, true) {
                tracing::error!(alarm = "database_went_back", "{OTHER_CLUSTER}");
            }
            return Err(StoreError::Unavailable(OTHER_CLUSTER.into()));
        }
        state.is_other_cluster_reported = false;
        if position.timeline < highest.timeline {
            self.refused_count.fetch_add(1, Ordering::Relaxed);
            report_old_primary(&mut state, position.timeline, highest.timeline);
            return Err(StoreError::Unavailable(OLD_PRIMARY.into()));
        }
        if before.predates_a_resume(&state) {
            return Ok((self.generation(), Vec::new()));
        }
        self.halt_if_marked_lost(&mut state, mark);
        let is_same_timeline =
            before.position.is_some_and(|known| known.timeline == position.timeline);
        let flushed_before = before.position.map_or(0, |known| known.flushed);
        let is_behind =
            position.inserted < flushed_before || position.inserted <= before.acknowledged;
        if is_same_timeline && is_behind {
            halt(&mut state, "its log is behind what this node has seen");
        } else if mark.is_below(before.mark) {
            halt(&mut state, "its mark is behind the one that this node wrote");
        }
        if position.timeline > highest.timeline {
            self.note_new_primary(&mut state, position);
        } else {
            let flushed = highest.flushed.max(position.flushed);
            state.seen.position = Some(Position { flushed, ..highest });
        }
        // The generation has risen if the timeline has. So from here on, no commit is acknowledged
        // that a server of a lower timeline made.
        let verdict = state.acknowledged.judge(position.timeline, position.replayed);
        let questions = match verdict {
            Verdict::HasThemIfCommitted(transactions) => transactions,
            Verdict::Lost => {
                halt(&mut state, "it was promoted before a write of this node had reached it");
                Vec::new()
            }
        };
        Ok((self.generation(), questions))
    }

    /// Notes whether a server of this timeline lacks one of the commits that [`Fence::admit`] asked
    /// about.
    pub(super) fn note_lost_commits(&self, before: DatabaseSeen, timeline: i64, is_lost: bool) {
        let mut state = self.lock();
        if before.predates_a_resume(&state) {
            return;
        }
        if is_lost {
            halt(&mut state, "it does not know a write of this node as committed");
        }
        state.acknowledged.forget_below(timeline);
    }

    /// Stops writing if the mark says that writes are missing.
    fn halt_if_marked_lost(&self, state: &mut FenceState, mark: Mark) {
        if mark.is_lost && !failpoint("no_fence") {
            halt(
                state,
                "another node found that writes are missing, or this one did in an earlier run",
            );
        }
    }

    /// Notes a server of a higher timeline than any before. Open connections count as ones to the
    /// old primary.
    fn note_new_primary(&self, state: &mut FenceState, position: Position) {
        state.seen.position = Some(position);
        state.is_old_primary_reported = false;
        self.generation.send_modify(|generation| *generation += 1);
        tracing::warn!(
            timeline = position.timeline,
            "the database failed over: open connections to the old primary are dropped"
        );
    }

    /// Notes the position of a server of the address that takes writes. `before` is what this node
    /// had seen when it asked. A server of a higher timeline is the new primary; its log is judged
    /// once a connection works with it. A server of a lower timeline is an old primary.
    pub(super) fn notice(&self, before: DatabaseSeen, position: Position) {
        let mut state = self.lock();
        if failpoint("no_fence") {
            return;
        }
        if let Some(highest) = before.position
            && position.system == highest.system
            && position.timeline < highest.timeline
        {
            report_old_primary(&mut state, position.timeline, highest.timeline);
        }
        if state.seen.position.is_some_and(|highest| {
            position.system == highest.system && position.timeline > highest.timeline
        }) {
            self.note_new_primary(&mut state, position);
        }
    }

    /// How many commits have been acknowledged.
    pub(super) fn acknowledged_count(&self) -> u64 {
        self.lock().acknowledged.count()
    }

    /// Notes a commit as acknowledged. `false` if its connection is no longer good: the commit may
    /// have been made on a server that is no longer the primary.
    pub(super) fn acknowledge(&self, admission: Admission, footprint: Option<Footprint>) -> bool {
        let mut state = self.lock();
        if admission.generation != self.generation() {
            return false;
        }
        if let (Some(timeline), Some(footprint)) = (admission.timeline, footprint)
            && !failpoint("no_fence")
        {
            state.acknowledged.note(timeline, footprint);
        }
        true
    }

    /// The mark by which this node tells the others that writes are missing: `found`, which this
    /// node has just read, with `is_lost` set. `None` if there is nothing to tell.
    pub(super) fn loss_to_tell(&self, found: Mark) -> Option<Mark> {
        let state = self.lock();
        let is_to_tell =
            state.halted.is_some() && !found.is_lost && found.epoch <= state.seen.mark.epoch;
        is_to_tell.then_some(Mark { is_lost: true, ..found })
    }

    /// Notes a mark that this node has written.
    pub(super) fn note_mark(&self, mark: Mark) {
        let mut state = self.lock();
        if state.seen.mark.is_below(mark) {
            state.seen.mark = mark;
        }
    }
}

/// What the fence decided about a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Admission {
    /// The connection is good as long as the fence has this generation.
    pub generation: u64,
    /// The server's timeline, if it says its position.
    pub timeline: Option<i64>,
}

/// Reports once that an old primary takes writes.
fn report_old_primary(state: &mut FenceState, timeline: i64, timeline_known: i64) {
    if !std::mem::replace(&mut state.is_old_primary_reported, true) {
        tracing::error!(
            timeline,
            timeline_known,
            alarm = "old_primary",
            "a server that was the primary before a fail-over still takes connections; this node \
             does not use it: stop it, and let it join as a standby"
        );
    }
}

fn halt(state: &mut FenceState, found: &str) {
    if state.halted.is_none() {
        tracing::error!(alarm = "database_went_back", found, "{WENT_BACK}");
    }
    state.halted = Some(WENT_BACK);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(timeline: i64, bytes: i64) -> Position {
        Position { system: 7, timeline, inserted: bytes + 10, flushed: bytes, replayed: None }
    }
    const fn mark(count: i64) -> Mark {
        Mark { epoch: 0, count, is_lost: false }
    }
    fn admit(fence: &Fence, position: Position, mark: Mark) -> Result<Vec<i64>, StoreError> {
        fence.admit(fence.seen(), position, mark).map(|(_, questions)| questions)
    }
    fn acknowledge(fence: &Fence, timeline: i64, position: i64, transaction: i64) -> bool {
        let admission = Admission { generation: fence.generation(), timeline: Some(timeline) };
        let acknowledged_before = fence.acknowledged_count();
        fence.acknowledge(admission, Some(Footprint { position, transaction, acknowledged_before }))
    }

    #[test]
    fn only_the_history_that_was_seen_is_worked_with() {
        let fence = Fence::default();
        admit(&fence, at(1, 100), mark(5)).unwrap();
        admit(&fence, at(1, 95), mark(5)).unwrap();
        let generation = fence.generation();
        admit(&fence, at(2, 100), mark(5)).unwrap();
        assert!(fence.generation() > generation && fence.halted().is_none());
        assert!(admit(&fence, at(1, 900), mark(9)).is_err(), "an old primary");
        assert!(admit(&fence, Position { system: 8, ..at(2, 900) }, mark(9)).is_err());
        assert_eq!(fence.refused_count.load(Ordering::Relaxed), 1);
        assert!(fence.halted().is_none());
        fence.notice(fence.seen(), at(3, 0));
        assert!(admit(&fence, at(2, 900), mark(9)).is_err(), "a newer primary was noticed");
        admit(&fence, at(3, 200), mark(6)).unwrap();
        // One connection asked its server before another one raised what the node has seen.
        let before = fence.seen();
        fence.note_mark(mark(8));
        fence.admit(before, at(3, 200), mark(7)).unwrap();
        assert!(fence.halted().is_none());
        admit(&fence, at(3, 200), mark(7)).unwrap();
        assert!(fence.halted().is_some(), "a mark that was written is gone");
        admit(&fence, at(3, 300), mark(9)).unwrap();
        assert!(fence.halted().is_some(), "only the operator ends it");
        admit(&fence, at(3, 300), Mark { epoch: 1, ..mark(0) }).unwrap();
        assert!(fence.halted().is_none());
        admit(&fence, at(3, 280), Mark { epoch: 1, ..mark(0) }).unwrap();
        assert!(fence.halted().is_some(), "the log went back");
    }

    /// The position of a server that had replayed the log up to `replayed` when it was promoted.
    fn promoted(replayed: i64) -> Position {
        Position { replayed: Some(replayed), ..at(2, 9_000) }
    }

    #[test]
    fn a_server_that_lacks_an_acknowledged_commit_is_found_out() {
        let started = || {
            let fence = Fence::default();
            admit(&fence, at(1, 100), mark(0)).unwrap();
            assert!(acknowledge(&fence, 1, 500, 70));
            fence
        };
        let fence = started();
        assert!(admit(&fence, promoted(500), mark(9)).unwrap().is_empty());
        assert!(fence.halted().is_some(), "the log ended before the commit");
        // `notice` learns of the server before a connection works with it.
        let fence = started();
        fence.notice(fence.seen(), promoted(500));
        admit(&fence, promoted(500), mark(9)).unwrap();
        assert!(fence.halted().is_some());
        // The log goes beyond the commit's position: the server says whether it has the commit.
        for is_lost in [true, false] {
            let fence = started();
            assert_eq!(admit(&fence, promoted(600), mark(9)).unwrap(), [70]);
            fence.note_lost_commits(fence.seen(), 2, is_lost);
            assert_eq!(fence.halted().is_some(), is_lost);
            assert!(admit(&fence, promoted(600), mark(9)).unwrap().is_empty());
        }
        // A server of the same timeline whose log is shorter.
        let fence = started();
        admit(&fence, at(1, 400), mark(9)).unwrap();
        assert!(fence.halted().is_some());
    }

    #[test]
    fn an_old_primary_that_is_only_asked_is_reported() {
        let fence = Fence::default();
        admit(&fence, at(1, 100), mark(0)).unwrap();
        let before = fence.seen();
        fence.notice(before, at(2, 100));
        // It was asked before the fail-over was known, and may have been the primary then.
        fence.notice(before, at(1, 100));
        assert!(!fence.lock().is_old_primary_reported);
        fence.notice(fence.seen(), at(1, 100));
        assert!(fence.lock().is_old_primary_reported);
    }

    #[test]
    fn nothing_is_acknowledged_by_a_server_that_was_replaced() {
        let fence = Fence::default();
        admit(&fence, at(1, 100), mark(0)).unwrap();
        let old = Admission { generation: fence.generation(), timeline: Some(1) };
        fence.notice(fence.seen(), promoted(600));
        assert!(!fence.acknowledge(old, None));
        assert!(admit(&fence, promoted(600), mark(0)).unwrap().is_empty());
        assert!(acknowledge(&fence, 2, 700, 71));
    }

    #[test]
    fn one_node_tells_the_others() {
        let (finder, other) = (Fence::default(), Fence::default());
        for fence in [&finder, &other] {
            admit(fence, at(1, 100), mark(5)).unwrap();
        }
        assert_eq!(finder.loss_to_tell(mark(5)), None);
        // What was only read may never have reached a standby.
        admit(&finder, at(1, 200), mark(4)).unwrap();
        assert!(finder.halted().is_none());
        finder.note_mark(mark(6));
        admit(&finder, at(1, 200), mark(5)).unwrap();
        let told = finder.loss_to_tell(mark(5)).unwrap();
        assert_eq!(told.to_text(), "0:5:lost");
        admit(&other, at(1, 200), told).unwrap();
        assert!(other.halted().is_some());
        assert_eq!(other.loss_to_tell(told), None);
        let later = Fence::default();
        admit(&later, at(1, 200), told).unwrap();
        assert!(later.halted().is_some(), "it started afterwards");
        for fence in [&finder, &other, &later] {
            let resumed = Mark { epoch: 1, ..mark(0) };
            assert_eq!(finder.loss_to_tell(resumed), None);
            admit(fence, at(1, 200), resumed).unwrap();
            assert!(fence.halted().is_none());
        }
    }

    #[test]
    fn what_was_read_before_the_operator_resumed_stops_nothing_afterwards() {
        let fence = Fence::default();
        admit(&fence, at(1, 100), mark(5)).unwrap();
        assert!(acknowledge(&fence, 1, 500, 70));
        let before = fence.seen();
        let resumed = Mark { epoch: 1, ..mark(0) };
        admit(&fence, promoted(600), resumed).unwrap();
        fence.admit(before, promoted(600), Mark { is_lost: true, ..mark(5) }).unwrap();
        fence.note_lost_commits(before, 2, true);
        assert!(fence.halted().is_none());
        // What is read afterwards does stop writing.
        admit(&fence, promoted(600), Mark { is_lost: true, ..resumed }).unwrap();
        assert!(fence.halted().is_some());
    }

    #[test]
    fn a_mark_reads_as_it_was_written() {
        let late = Mark { epoch: 1_795_000_000_000, ..mark(3) };
        for mark in [Mark::default(), late, Mark { is_lost: true, ..late }] {
            assert_eq!(Mark::parse(mark.to_text().as_bytes()), Some(mark));
        }
        assert_eq!(Mark::parse(b"1"), None);
    }
}
