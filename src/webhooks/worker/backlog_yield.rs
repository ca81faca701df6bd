//! A backlog yields to "the others". These are the worker's looks and its turns for endpoints
//! without a backlog (`mod.rs` explains both words), and the sequencer of this node. While they
//! work, no turn or attempt of a backlog begins, for up to 20 ms at a time. So the others find a
//! processor and a disk that are free, or free soon.

use std::time::Duration;

use tokio::time::Instant;

/// The longest time for which a backlog begins nothing, in milliseconds. Afterwards the backlog may
/// begin work for at least as long. So it has half of the time, however busy the others are.
pub(super) const YIELD_MILLISECONDS_MAX: u64 = 20;

/// For how long the others count as having worked lately, in milliseconds.
const LATELY_MILLISECONDS: u64 = 1_000;

#[derive(Default)]
pub(super) struct BacklogYield {
    /// When the backlog last began to yield; `None` if the others have stopped working since.
    began: Option<Instant>,
    /// When the others last worked.
    worked: Option<Instant>,
}

impl BacklogYield {
    /// Until when the backlog yields if the others go on working; `None` if it does not yield. Call
    /// this whenever the others begin or end their work, and again at the answered moment.
    pub(super) fn until(&mut self, others_work: bool, now: Instant) -> Option<Instant> {
        if !others_work {
            self.began = None;
            return None;
        }
        self.worked = Some(now);
        let longest = Duration::from_millis(YIELD_MILLISECONDS_MAX);
        let began = *self.began.get_or_insert(now);
        if now < began + longest {
            return Some(began + longest);
        }
        if now < began + 2 * longest {
            return None;
        }
        self.began = Some(now);
        Some(now + longest)
    }

    /// Whether the others worked in the last [`LATELY_MILLISECONDS`].
    pub(super) fn others_worked_lately(&self, now: Instant) -> bool {
        let lately = Duration::from_millis(LATELY_MILLISECONDS);
        self.worked.is_some_and(|worked| now < worked + lately)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When a backlog could begin work in one second.
    #[derive(Debug, PartialEq, Eq)]
    struct Observed {
        /// Milliseconds in which it could begin something while the others worked.
        beside: u64,
        /// Milliseconds in which it could while the others did not work.
        alone: u64,
        /// The most milliseconds in a row in which it could not.
        longest_wait: u64,
    }

    fn observe(
        others_work: impl Fn(u64) -> bool,
        mut yields: impl FnMut(bool, Instant) -> bool,
    ) -> Observed {
        let start = Instant::now();
        let mut observed = Observed { beside: 0, alone: 0, longest_wait: 0 };
        let mut wait = 0;
        for millisecond in 0..1_000 {
            let is_beside = others_work(millisecond);
            if yields(is_beside, start + Duration::from_millis(millisecond)) {
                wait += 1;
            } else {
                *(if is_beside { &mut observed.beside } else { &mut observed.alone }) += 1;
                wait = 0;
            }
            observed.longest_wait = observed.longest_wait.max(wait);
        }
        observed
    }

    fn yielding() -> impl FnMut(bool, Instant) -> bool {
        let mut backlog_yield = BacklogYield::default();
        move |others_work, now| backlog_yield.until(others_work, now).is_some()
    }

    /// The others work in 6 of every 50 milliseconds.
    const fn now_and_then(millisecond: u64) -> bool {
        millisecond % 50 < 6
    }

    #[test]
    fn a_backlog_begins_nothing_while_others_work_now_and_then() {
        let expected = Observed { beside: 0, alone: 880, longest_wait: 6 };
        assert_eq!(observe(now_and_then, yielding()), expected);
        // The control: without a yield it begins at once.
        assert_eq!(observe(now_and_then, |_, _| false).beside, 120);
    }

    #[test]
    fn a_backlog_has_half_of_the_time_beside_others_who_never_stop() {
        let expected = Observed { beside: 500, alone: 0, longest_wait: YIELD_MILLISECONDS_MAX };
        assert_eq!(observe(|_| true, yielding()), expected);
        // The control: without a bound it starves.
        assert_eq!(observe(|_| true, |others_work, _| others_work).longest_wait, 1_000);
    }

    #[test]
    fn a_backlog_alone_never_waits() {
        let expected = Observed { beside: 0, alone: 1_000, longest_wait: 0 };
        assert_eq!(observe(|_| false, yielding()), expected);
    }

    #[test]
    fn others_are_remembered_for_a_while() {
        let now = Instant::now();
        let at = |milliseconds| now + Duration::from_millis(milliseconds);
        let mut backlog_yield = BacklogYield::default();
        backlog_yield.until(false, now);
        assert!(!backlog_yield.others_worked_lately(now));
        backlog_yield.until(true, at(5));
        backlog_yield.until(false, at(6));
        assert!(backlog_yield.others_worked_lately(at(4 + LATELY_MILLISECONDS)));
        assert!(!backlog_yield.others_worked_lately(at(5 + LATELY_MILLISECONDS)));
    }

    #[test]
    fn a_yield_says_when_it_ends() {
        let now = Instant::now();
        let at = |milliseconds| now + Duration::from_millis(milliseconds);
        let mut backlog_yield = BacklogYield::default();
        assert_eq!(backlog_yield.until(true, now), Some(at(20)));
        assert_eq!(backlog_yield.until(true, at(5)), Some(at(20)));
        assert_eq!(backlog_yield.until(false, at(6)), None);
        assert_eq!(backlog_yield.until(true, at(7)), Some(at(27)), "a new one");
        assert_eq!(backlog_yield.until(true, at(27)), None, "long enough");
        assert_eq!(backlog_yield.until(true, at(46)), None);
        assert_eq!(backlog_yield.until(true, at(47)), Some(at(67)));
    }
}
