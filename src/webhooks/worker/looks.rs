//! When the worker looks for endpoints with due deliveries, and how far one look goes. A look finds
//! endpoints that no commit of this node has named: those whose time has come, those that other
//! nodes have made due, and those of commits that only said that something is due. The worker's
//! other step is a turn, which takes the deliveries of these endpoints and records finished
//! attempts (`turn`).

use std::time::Duration;

use tokio::time::Instant;

use crate::webhooks::rows::DueQueue;

/// The most endpoints that one look finds.
pub(super) const LOOKED_MAX: i64 = 10_000;
/// The longest pause before the next look, and how far into the future a look reads, in
/// milliseconds.
pub(super) const LOOK_MILLISECONDS_MAX: u64 = 1_000;
/// The longest pause before the next look after a turn that found nothing more due for an endpoint,
/// in milliseconds.
const LOOK_AGAIN_MILLISECONDS: u64 = 20;
/// By how much a look overlaps what the last one read, in milliseconds. When a transaction commits,
/// a look may already have passed the due time that the transaction wrote.
const LOOK_OVERLAP_MILLISECONDS: i64 = 5_000;
/// How often a look reads everything that is due, even what earlier looks have read, in seconds.
const LOOK_FULL_SECONDS: u64 = 30;

pub(super) struct Looks {
    /// A look is wanted now, because an endpoint may have become due that only a look finds.
    pub(super) is_woken: bool,
    /// When the next look begins at the latest.
    pub(super) wakes_at: Instant,
    /// A look has begun, and no turn has gone first since.
    has_just_looked: bool,
    /// The due time up to which looks have read everything. After a look that found as many as it
    /// may, this is later by the overlap (see `take`).
    until_milliseconds: i64,
    /// When the next look that reads everything is due.
    fully_at: Instant,
}

impl Looks {
    pub(super) const fn new(now: Instant) -> Looks {
        Looks {
            is_woken: true,
            wakes_at: now,
            has_just_looked: false,
            until_milliseconds: i64::MIN,
            fully_at: now,
        }
    }

    /// Whether a turn comes before the next look. If both are wanted they alternate: otherwise a
    /// stream of commits that name no endpoint would leave no time for turns.
    pub(super) fn turn_goes_first(&mut self, now: Instant) -> bool {
        self.is_woken |= now >= self.wakes_at;
        let goes_first = !self.is_woken || self.has_just_looked;
        if goes_first {
            self.has_just_looked = false;
        }
        goes_first
    }

    /// Begins a look. Answers the due time, in milliseconds, above which it reads.
    pub(super) fn begin(&mut self, now: Instant) -> i64 {
        self.is_woken = false;
        self.has_just_looked = true;
        if now >= self.fully_at {
            self.fully_at = now + Duration::from_secs(LOOK_FULL_SECONDS);
            return i64::MIN;
        }
        self.until_milliseconds.saturating_sub(LOOK_OVERLAP_MILLISECONDS)
    }

    /// Takes what a look found, the earliest first. Answers the endpoints that were due when the
    /// look began.
    pub(super) fn take<'q>(
        &mut self,
        above_milliseconds: i64,
        began_milliseconds: i64,
        queues: &'q [DueQueue],
        now: Instant,
    ) -> &'q [DueQueue] {
        self.wakes_at = now + Duration::from_millis(LOOK_MILLISECONDS_MAX);
        self.until_milliseconds = began_milliseconds;
        let due_count =
            queues.partition_point(|queue| queue.due_milliseconds <= began_milliseconds);
        let (due, ahead) = queues.split_at(due_count);
        if let Some(next) = ahead.first() {
            let ahead_milliseconds = next.due_milliseconds.abs_diff(began_milliseconds);
            self.wakes_at = self.wakes_at.min(now + Duration::from_millis(ahead_milliseconds));
        }
        if let Some(last) = due.last().filter(|_| due.len() as i64 >= LOOKED_MAX) {
            // The look found as many as it may, so the next one continues at the last of them, and
            // may find endpoints again that are due in the same millisecond. `begin` subtracts the
            // overlap, so it is added here.
            let reached = (last.due_milliseconds - 1).max(above_milliseconds.saturating_add(1));
            self.until_milliseconds = reached.saturating_add(LOOK_OVERLAP_MILLISECONDS);
            self.is_woken = true;
        }
        due
    }

    /// Notes that a look failed. The next one reads everything.
    pub(super) fn note_failure(&mut self, now: Instant) {
        self.fully_at = now;
        self.is_woken = true;
    }

    /// Requests a look soon, after a turn that found nothing more due for an endpoint. There are
    /// two reasons. The endpoint's next delivery may be due before the next regular look. And a
    /// commit may have named the endpoint during a turn for backlogs. If the turn had read the
    /// store before that commit, its result says wrongly that nothing more is due.
    pub(super) fn soon(&mut self, now: Instant) {
        self.wakes_at = self.wakes_at.min(now + Duration::from_millis(LOOK_AGAIN_MILLISECONDS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Scope;
    use crate::webhooks::rows::EndpointId;

    fn queues(due_milliseconds: impl IntoIterator<Item = i64>) -> Vec<DueQueue> {
        let queue = |(number, due_milliseconds)| DueQueue {
            due_milliseconds,
            endpoint_id: EndpointId::from_u128(number as u128),
            scope: Scope::from_code(0),
        };
        due_milliseconds.into_iter().enumerate().map(queue).collect()
    }

    #[test]
    fn looks_and_turns_alternate_while_commits_wake_the_worker() {
        let now = Instant::now();
        let mut looks = Looks::new(now);
        for _ in 0..3 {
            looks.is_woken = true;
            assert!(!looks.turn_goes_first(now));
            looks.begin(now);
            looks.is_woken = true;
            assert!(looks.turn_goes_first(now));
        }
    }

    #[test]
    fn a_look_reads_on_and_now_and_then_everything() {
        let now = Instant::now();
        let mut looks = Looks::new(now);
        assert_eq!(looks.begin(now), i64::MIN, "the first");
        assert!(looks.take(i64::MIN, 60_000, &[], now).is_empty());
        assert_eq!(looks.begin(now), 60_000 - LOOK_OVERLAP_MILLISECONDS);
        looks.note_failure(now);
        assert!(looks.is_woken && looks.begin(now) == i64::MIN);
        assert_eq!(looks.begin(now + Duration::from_secs(LOOK_FULL_SECONDS)), i64::MIN);
    }

    #[test]
    fn the_worker_wakes_when_the_next_endpoint_is_due() {
        let now = Instant::now();
        let after = |milliseconds| now + Duration::from_millis(milliseconds);
        let mut looks = Looks::new(now);
        looks.begin(now);
        let found = queues([90, 100, 130]);
        assert_eq!(looks.take(i64::MIN, 100, &found, now), &found[..2]);
        assert_eq!(looks.wakes_at, after(30));
        assert!(looks.turn_goes_first(after(29)) && !looks.turn_goes_first(after(30)));
        looks.begin(after(30));
        looks.take(0, 130, &[], after(30));
        assert_eq!(looks.wakes_at, after(30 + LOOK_MILLISECONDS_MAX));
        looks.soon(after(40));
        assert_eq!(looks.wakes_at, after(40 + LOOK_AGAIN_MILLISECONDS));
    }

    #[test]
    fn a_look_that_found_as_many_as_it_may_is_continued_at_once() {
        let now = Instant::now();
        let mut looks = Looks::new(now);
        looks.begin(now);
        let found = queues(0..LOOKED_MAX);
        assert_eq!(looks.take(i64::MIN, 1_000_000, &found, now).len(), found.len());
        assert!(looks.is_woken);
        assert_eq!(looks.begin(now), LOOKED_MAX - 2);
        // The control: after a look that found fewer, no look follows at once.
        assert!(!looks.is_woken);
        looks.take(LOOKED_MAX - 2, 1_000_000, &found[1..], now);
        assert!(!looks.is_woken);
    }
}
