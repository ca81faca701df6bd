//! How many requests may be sent to an endpoint: as many as its gateway allows, and fewer after the
//! gateway refused one. A gateway is a service, such as TronGrid, that stands in front of nodes and
//! limits requests. Pure: time is an argument.
//!
//! Gateways count each call of a batch, so a request here is one call. They count a call when it
//! arrives, so the window in which a second's calls are sent is a little longer than a second. A
//! day's calls come from a bucket that holds at most a quarter of the day's limit; the other three
//! quarters flow into it evenly within 24 hours. Each refusal halves the rate, and a ban quarters
//! it. After a time without a refusal the rate doubles again. Each further refusal makes that time
//! longer, unless hours without one came before it.

use std::collections::VecDeque;
use std::time::Duration;

/// Requests a second to an endpoint on another machine, unless configured: TronGrid serves 5 a
/// second once the day's quota is used up, and fewer to clients without a key.
pub const REQUESTS_PER_SECOND_DEFAULT: u32 = 5;
/// Requests a day to such an endpoint, unless configured: TronGrid's quota for a free account.
pub const REQUESTS_PER_DAY_DEFAULT: u32 = 100_000;
/// The most requests a second that can be configured.
pub const REQUESTS_PER_SECOND_MAX: u32 = 1_000;
/// The most requests a day that can be configured.
pub const REQUESTS_PER_DAY_MAX: u32 = 100_000_000;

/// The share of a day's requests that polls of a quiet chain may use, in percent. The rest is for
/// deposits, for catching up, for the chain audit and for the diagnosis of payments.
const ROUTINE_PERCENT: u32 = 55;
/// The share of a day's requests that can be spent at once, in percent; the rest comes back evenly.
const BURST_PERCENT: u32 = 25;
/// The longest pause that a daily limit causes after a poll that has read everything there is.
const ROUTINE_PAUSE_MAX: Duration = Duration::from_secs(20);
/// The requests to the lead in one poll of TRON's main net while it is quiet.
const ROUTINE_REQUESTS: u64 = 6;
/// The time in which `per_second` requests may be sent: a second, and a margin for requests that
/// are delayed on their way.
const WINDOW: Duration = Duration::from_millis(1_100);
/// An endpoint without a configured limit is not slowed until it refuses. Then its full rate is
/// taken to be this many requests a window, and the halvings count from it.
const UNKNOWN_PER_SECOND: u32 = 64;
/// How many times the rate can be halved below one request a window; the slowest is one request in
/// 8.8 s.
const HALVINGS_BELOW_ONE: u32 = 3;
/// How long after the first refusal the rate doubles again. Each further refusal doubles this time,
/// up to the longest, after halving it for each [`QUIET`] since the refusal before. After a ban it
/// is at least ten times as long as the ban, but never above the longest.
const RECOVER_AFTER_MIN: Duration = Duration::from_secs(60);
const RECOVER_AFTER_MAX: Duration = Duration::from_secs(3_600);
const QUIET: Duration = Duration::from_secs(3_600);
/// A gateway that announces a refusal of at least this long has banned the client.
const BAN: Duration = Duration::from_secs(10);
const DAY: Duration = Duration::from_secs(86_400);

/// How many requests an endpoint's gateway allows; 0 means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestLimits {
    pub per_second: u32,
    pub per_day: u32,
}

impl RequestLimits {
    /// What is wrong with the daily limit, if polls of TRON's main net take more than their share
    /// of it even at the longest pause.
    pub fn routine_note(self) -> Option<String> {
        let polls_count = DAY.as_secs() / ROUTINE_PAUSE_MAX.as_secs();
        let (least, per_day) = (polls_count * ROUTINE_REQUESTS, u64::from(self.per_day));
        let share = u64::from(ROUTINE_PERCENT);
        if per_day == 0 || least * 100 <= per_day * share {
            return None;
        }
        let taken = match least >= per_day {
            true => "all of them".to_owned(),
            false => format!("{} % of them", least * 100 / per_day),
        };
        Some(format!(
            "{per_day} requests a day: on TRON's main net, looking for new blocks takes {taken}, \
             and deposits are credited late once they are used up. Use an endpoint that allows {} \
             or more, and set requests_per_day to what it allows",
            (least * 100).div_ceil(share)
        ))
    }
}

/// What was sent to one endpoint, and how fast the next requests may follow. Here a moment is a
/// `Duration`: the time since an arbitrary start, as `Timer::now` gives it.
#[derive(Debug)]
pub struct RequestBudget {
    limits: RequestLimits,
    /// When the last requests were sent, oldest first.
    recent: VecDeque<Duration>,
    /// What is left of the day's bucket at `filled_at`.
    day_left: f64,
    filled_at: Duration,
    /// How many times the rate was halved and has not doubled again.
    halvings: u32,
    refused_at: Duration,
    recover_after: Duration,
    recover_at: Duration,
}

impl RequestBudget {
    pub fn new(limits: RequestLimits, now: Duration) -> RequestBudget {
        RequestBudget {
            limits,
            recent: VecDeque::new(),
            day_left: f64::from(limits.per_day) * f64::from(BURST_PERCENT) / 100.0,
            filled_at: now,
            halvings: 0,
            refused_at: Duration::ZERO,
            recover_after: Duration::ZERO,
            recover_at: Duration::ZERO,
        }
    }

    /// How many requests may be sent in which time; `None` means no limit.
    fn rate(&self) -> Option<(usize, Duration)> {
        let full = match (self.limits.per_second, self.halvings) {
            (0, 0) => return None,
            (0, _) => UNKNOWN_PER_SECOND,
            (limit, _) => limit,
        };
        let count = full.checked_shr(self.halvings).unwrap_or(0);
        let below_one = self.halvings.saturating_sub(full.ilog2());
        Some(((count.max(1)) as usize, WINDOW * (1 << below_one.min(HALVINGS_BELOW_ONE))))
    }

    /// The most calls that one batch may have.
    pub fn batch_max(&self) -> usize {
        self.rate().map_or(usize::MAX, |(count, _)| count)
    }

    /// Takes `count` requests, at most [`RequestBudget::batch_max`]. `Err` says how long to wait
    /// before asking again.
    pub fn take(&mut self, count: usize, now: Duration) -> Result<(), Duration> {
        if self.halvings > 0 && now >= self.recover_at {
            self.halvings -= 1;
            self.recover_at = now + self.recover_after;
        }
        if let Some((count_max, window)) = self.rate() {
            while self.recent.front().is_some_and(|sent| *sent + window <= now) {
                self.recent.pop_front();
            }
            let excess = (self.recent.len() + count).saturating_sub(count_max);
            if excess > 0
                && let Some(last) = self.recent.get(excess.min(self.recent.len()).max(1) - 1)
            {
                return Err((*last + window).saturating_sub(now).max(Duration::from_millis(1)));
            }
        }
        if self.limits.per_day > 0 {
            let per_day = f64::from(self.limits.per_day);
            let refill_a_second =
                per_day * f64::from(100 - BURST_PERCENT) / 100.0 / DAY.as_secs_f64();
            let filled = now.saturating_sub(self.filled_at).as_secs_f64() * refill_a_second;
            let full = per_day * f64::from(BURST_PERCENT) / 100.0;
            self.day_left = (self.day_left + filled).min(full);
            self.filled_at = now;
            // A batch may be larger than the bucket of a tiny daily limit. Then a full bucket is
            // enough, and the rest is owed.
            let missing = (count as f64).min(full) - self.day_left;
            if missing > 0.0 {
                return Err(Duration::from_secs_f64(missing / refill_a_second)
                    .max(Duration::from_millis(1)));
            }
            self.day_left -= count as f64;
        }
        if self.rate().is_some() {
            self.recent.extend(std::iter::repeat_n(now, count));
        }
        Ok(())
    }

    /// Notes that the gateway refused a request because of a limit, and will go on refusing for
    /// `rest`; zero if it did not say how long. A ban halves the rate twice, because each failed
    /// attempt costs another ban.
    pub fn note_refusal(&mut self, now: Duration, rest: Duration) {
        let is_ban = rest >= BAN;
        let full = match self.limits.per_second {
            0 => UNKNOWN_PER_SECOND,
            limit => limit,
        };
        let halvings = if is_ban { 2 } else { 1 };
        self.halvings = (self.halvings + halvings).min(full.ilog2() + HALVINGS_BELOW_ONE);
        let recover_after_min = if is_ban { rest * 10 } else { RECOVER_AFTER_MIN };
        let quiet_times = now.saturating_sub(self.refused_at).as_secs() / QUIET.as_secs();
        let before = self.recover_after / (1 << quiet_times.min(16));
        self.refused_at = now;
        self.recover_after =
            (before * 2).clamp(recover_after_min.min(RECOVER_AFTER_MAX), RECOVER_AFTER_MAX);
        self.recover_at = now + self.recover_after;
    }

    /// How long to pause after a poll that used `count` requests, so that polls alone stay within
    /// their share of a day. At most `ROUTINE_PAUSE_MAX`, even if that is too short.
    pub fn routine_pause(&self, count: u64) -> Duration {
        if self.limits.per_day == 0 {
            return Duration::ZERO;
        }
        let share = f64::from(self.limits.per_day) * f64::from(ROUTINE_PERCENT) / 100.0;
        Duration::from_secs_f64(count as f64 * DAY.as_secs_f64() / share).min(ROUTINE_PAUSE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(per_second: u32, per_day: u32) -> RequestLimits {
        RequestLimits { per_second, per_day }
    }

    /// Sends single requests as fast as the budget lets them; answers when each was sent.
    fn send(budget: &mut RequestBudget, from: Duration, count: usize) -> Vec<Duration> {
        let mut now = from;
        let mut sent = Vec::new();
        while sent.len() < count {
            match budget.take(1, now) {
                Ok(()) => sent.push(now),
                Err(wait) => now += wait,
            }
        }
        sent
    }

    #[test]
    fn no_second_has_more_than_its_limit() {
        for limit in [1, 2, 5, 15] {
            let mut budget = RequestBudget::new(limits(limit, 0), Duration::ZERO);
            let sent = send(&mut budget, Duration::ZERO, 100);
            for (index, first) in sent.iter().enumerate() {
                let within = sent[index..]
                    .iter()
                    .filter(|at| **at < *first + Duration::from_secs(1))
                    .count();
                assert!(within <= limit as usize, "{within} of {limit} a second");
            }
            let seconds = sent[99].as_secs_f64();
            assert!(seconds < 100.0 / f64::from(limit) * 1.2, "no slower than that: {seconds} s");
        }
    }

    #[test]
    fn no_day_has_more_than_its_limit() {
        let mut budget = RequestBudget::new(limits(0, 1_000), Duration::ZERO);
        let sent = send(&mut budget, Duration::ZERO, 3_000);
        for (index, first) in sent.iter().enumerate() {
            let within = sent[index..].iter().filter(|at| **at < *first + DAY).count();
            assert!(within <= 1_000, "{within} requests within a day");
        }
        assert!(sent[999] < DAY * 11 / 10, "the limit is used: {:?}", sent[999]);
    }

    #[test]
    fn a_batch_counts_each_of_its_calls() {
        let mut budget = RequestBudget::new(limits(5, 0), Duration::ZERO);
        assert_eq!(budget.batch_max(), 5);
        assert_eq!(budget.take(4, Duration::ZERO), Ok(()));
        assert_eq!(budget.take(2, Duration::ZERO), Err(WINDOW));
        assert_eq!(budget.take(1, Duration::ZERO), Ok(()));
        assert_eq!(budget.take(2, WINDOW), Ok(()));
    }

    #[test]
    fn refusals_slow_down_and_quiet_speeds_up_later_each_time() {
        let mut budget = RequestBudget::new(limits(5, 0), Duration::ZERO);
        let mut rates = Vec::new();
        for second in 0..7 {
            budget.note_refusal(Duration::from_secs(second), Duration::ZERO);
            rates.push(budget.rate().unwrap());
        }
        let window = |times: u32| WINDOW * times;
        assert_eq!(
            rates,
            [
                (2, window(1)),
                (1, window(1)),
                (1, window(2)),
                (1, window(4)),
                (1, window(8)),
                (1, window(8)),
                (1, window(8)),
            ]
        );
        let mut budget = RequestBudget::new(limits(5, 0), Duration::ZERO);
        for (refused_at, recovers_at) in [(0, 60), (60, 180), (180, 420)] {
            budget.note_refusal(Duration::from_secs(refused_at), Duration::from_secs(1));
            let _ = budget.take(1, Duration::from_secs(recovers_at - 1));
            assert_eq!(budget.batch_max(), 2, "before {recovers_at} s");
            let _ = budget.take(1, Duration::from_secs(recovers_at));
            assert_eq!(budget.batch_max(), 5, "after {recovers_at} s");
        }
        let mut own = RequestBudget::new(limits(0, 0), Duration::ZERO);
        assert_eq!(own.batch_max(), usize::MAX);
        own.note_refusal(Duration::ZERO, Duration::ZERO);
        assert_eq!(own.batch_max(), 32);
        own.note_refusal(Duration::ZERO, Duration::from_secs(30));
        assert_eq!(own.batch_max(), 8, "a ban quarters the rate");
        let _ = own.take(1, Duration::from_secs(299));
        assert_eq!(own.batch_max(), 8, "and for five minutes at least");
        let _ = own.take(1, Duration::from_secs(300));
        assert_eq!(own.batch_max(), 16);
    }

    #[test]
    fn quiet_hours_undo_earlier_refusals() {
        let recovers_after = |budget: &mut RequestBudget, refused_at: Duration| {
            budget.note_refusal(refused_at, Duration::ZERO);
            let is_fast = |second: &u64| {
                let _ = budget.take(1, refused_at + Duration::from_secs(*second));
                budget.batch_max() == 5
            };
            (1..=7_200).find(is_fast)
        };
        let mut budget = RequestBudget::new(limits(5, 0), Duration::ZERO);
        let mut now = Duration::ZERO;
        let mut waits = Vec::new();
        for _ in 0..8 {
            let wait = recovers_after(&mut budget, now).unwrap();
            now += Duration::from_secs(wait);
            waits.push(wait);
        }
        assert_eq!(waits, [60, 120, 240, 480, 960, 1_920, 3_600, 3_600]);
        assert_eq!(recovers_after(&mut budget, now + DAY), Some(60), "after a quiet day");
        // One quiet hour halves the time; the refusal then doubles it, as each one does.
        let mut budget = RequestBudget::new(limits(5, 0), Duration::ZERO);
        let mut now = Duration::ZERO;
        for _ in 0..6 {
            now += Duration::from_secs(recovers_after(&mut budget, now).unwrap());
        }
        let quiet = Duration::from_secs(3_600);
        assert_eq!(recovers_after(&mut budget, now + quiet), Some(1_920));
    }

    #[test]
    fn a_daily_limit_that_is_too_small_for_polls_is_reported() {
        for (per_day, words) in [
            (0, None),
            (REQUESTS_PER_DAY_DEFAULT, None),
            (47_200, None),
            (47_000, Some("55 %")),
            (30_000, Some("86 %")),
            (25_000, Some("all of them")),
        ] {
            let note = limits(5, per_day).routine_note();
            assert_eq!(note.is_some(), words.is_some(), "{note:?}");
            if let (Some(note), Some(words)) = (note, words) {
                assert!(note.contains(words) && note.contains("47128"), "{note}");
            }
        }
    }

    #[test]
    fn polls_of_a_quiet_chain_take_their_share_of_the_day() {
        let budget = RequestBudget::new(limits(5, REQUESTS_PER_DAY_DEFAULT), Duration::ZERO);
        let a_day = DAY.as_secs_f64() / budget.routine_pause(6).as_secs_f64() * 6.0;
        assert!((54_000.0..56_000.0).contains(&a_day), "{a_day}");
        assert_eq!(budget.routine_pause(1_000), ROUTINE_PAUSE_MAX);
        let own = RequestBudget::new(limits(0, 0), Duration::ZERO);
        assert_eq!(own.routine_pause(1_000), Duration::ZERO);
    }
}
