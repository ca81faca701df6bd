//! Which commits a node acknowledged to its callers, in a form in which a server can be asked
//! whether it has them.
//!
//! With its COMMIT each writing transaction asks how far the log goes and what its own number is
//! ([`FOOTPRINT`]). The record of the commit comes after that position. A promoted server says how
//! far it had replayed the log of the server before it:
//!
//! - Not beyond the position: the commit is lost.
//! - Beyond it: the server has replayed what the transaction wrote, because that stands before the
//!   position, but perhaps not its commit. So the server gives the number to no other transaction,
//!   and the status of the number says whether the commit was replayed too.
//!
//! The node keeps the highest position of the acknowledged commits, and the numbers of the commits
//! that no later one covers. A commit covers those that were acknowledged before it asked for its
//! footprint: their records are before its position, so a server that has it has them too.

use std::mem::take;

/// How far the log goes, and the number of the transaction if it wrote something.
pub(super) const FOOTPRINT: &str = "SELECT CAST(pg_current_wal_insert_lsn() - '0/0' AS BIGINT), \
    CAST(CAST(pg_current_xact_id_if_assigned() AS TEXT) AS BIGINT)";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Footprint {
    /// The log's position before the record of the commit, in bytes.
    pub position: i64,
    pub transaction: i64,
    /// How many commits were acknowledged before the transaction asked for this footprint.
    pub acknowledged_before: u64,
}

/// What the acknowledged commits say of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It lacks one of them.
    Lost,
    /// It has all of them if it says of each of these transactions that it is committed. The list
    /// may be empty.
    HasThemIfCommitted(Vec<i64>),
}

/// The commits that the node acknowledged on one timeline.
#[derive(Default, Debug)]
pub(super) struct Acknowledged {
    timeline: i64,
    /// Includes the commits of earlier timelines.
    count: u64,
    position: i64,
    /// Commits that no later one covers: for each its place in the order of acknowledgement, from
    /// 1, and its footprint.
    uncovered: Vec<(u64, Footprint)>,
}

impl Acknowledged {
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// The highest position of an acknowledged commit of this timeline. The log goes beyond it.
    pub(super) fn position(&self, timeline: i64) -> Option<i64> {
        (self.timeline == timeline && !self.uncovered.is_empty()).then_some(self.position)
    }

    /// Adds a commit that was just acknowledged.
    pub(super) fn note(&mut self, timeline: i64, footprint: Footprint) {
        if timeline != self.timeline {
            *self = Acknowledged { timeline, count: self.count, ..Acknowledged::default() };
        }
        self.count += 1;
        self.uncovered.retain(|(place, _)| *place > footprint.acknowledged_before);
        self.uncovered.push((self.count, footprint));
        self.position = self.position.max(footprint.position);
    }

    /// Judges a server of this timeline. `replayed` is the position up to which it replayed the
    /// log; `None` if it does not say.
    pub(super) fn judge(&self, timeline: i64, replayed: Option<i64>) -> Verdict {
        if self.uncovered.is_empty() || self.timeline >= timeline {
            return Verdict::HasThemIfCommitted(Vec::new());
        }
        if replayed.is_some_and(|replayed| replayed <= self.position) {
            return Verdict::Lost;
        }
        Verdict::HasThemIfCommitted(
            self.uncovered.iter().map(|(_, footprint)| footprint.transaction).collect(),
        )
    }

    /// Forgets the commits of lower timelines: the server of this timeline has them, or their loss
    /// was reported.
    pub(super) fn forget_below(&mut self, timeline: i64) {
        if self.timeline < timeline {
            take(&mut self.uncovered);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(position: i64, transaction: i64, acknowledged_before: u64) -> Footprint {
        Footprint { position, transaction, acknowledged_before }
    }

    #[test]
    fn a_commit_is_lost_where_the_log_ends_before_it() {
        let mut known = Acknowledged::default();
        assert_eq!(
            known.judge(2, Some(0)),
            Verdict::HasThemIfCommitted(vec![]),
            "nothing was acknowledged"
        );
        known.note(1, at(100, 7, 0));
        assert_eq!(
            known.judge(1, Some(50)),
            Verdict::HasThemIfCommitted(vec![]),
            "the server it came from"
        );
        assert_eq!(known.judge(2, Some(99)), Verdict::Lost);
        assert_eq!(known.judge(2, Some(100)), Verdict::Lost);
        assert_eq!(known.judge(2, Some(101)), Verdict::HasThemIfCommitted(vec![7]));
        assert_eq!(known.judge(2, None), Verdict::HasThemIfCommitted(vec![7]));
        known.forget_below(2);
        assert_eq!(known.judge(2, Some(50)), Verdict::HasThemIfCommitted(vec![]));
    }

    #[test]
    fn a_later_commit_covers_those_before_its_footprint() {
        let mut known = Acknowledged::default();
        known.note(1, at(100, 7, 0));
        // These two ran side by side, so neither covers the other.
        known.note(1, at(300, 9, 1));
        known.note(1, at(200, 8, 1));
        assert_eq!(known.position(1), Some(300));
        assert_eq!(known.judge(2, Some(301)), Verdict::HasThemIfCommitted(vec![9, 8]));
        known.note(1, at(400, 10, 3));
        assert_eq!(known.judge(2, Some(401)), Verdict::HasThemIfCommitted(vec![10]));
        // The commits of the earlier timeline are forgotten.
        known.note(2, at(350, 11, 4));
        assert_eq!((known.position(1), known.position(2)), (None, Some(350)));
        assert_eq!(known.judge(3, Some(360)), Verdict::HasThemIfCommitted(vec![11]));
    }
}
