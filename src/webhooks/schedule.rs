//! Rules for when a delivery is attempted again, and when an endpoint that keeps failing is
//! disabled. They use no store and no clock.

use super::state::EndpointStatus;

/// When attempts are made, in seconds after the start of a schedule: "Retries" in
/// docs/guides/webhooks.md.
pub const STEPS_SECONDS: [i64; 14] =
    [0, 5, 30, 120, 300, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 46_800, 64_800, WINDOW_SECONDS];
/// From the start of a schedule until its last attempt, in seconds.
pub const WINDOW_SECONDS: i64 = 24 * 3_600;
/// How far an attempt may be off its scheduled time, in thousandths of the time between its step
/// and the step before.
pub const JITTER_PERMILLE: i64 = 100;

/// From the first failed attempt since the last success until an endpoint is `failing`, in seconds.
pub const FAILING_AFTER_SECONDS: i64 = 24 * 3_600;
/// From the first failed attempt since the last success until an endpoint is `disabled`, in
/// seconds.
pub const DISABLED_AFTER_SECONDS: i64 = 120 * 3_600;
/// Failed attempts since the last success that an endpoint must have before it is `disabled`.
pub const DISABLED_FAILURES_MIN: i64 = 10;

/// The next attempt of a schedule: its index in [`STEPS_SECONDS`] and its time in milliseconds
/// since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextAttempt {
    pub step: i64,
    pub due_milliseconds: i64,
}

/// The attempt after a failed attempt of `step`, or `None` if the schedule has ended. Times are in
/// milliseconds since 1970. `retry_after_seconds` is what the receiver asked for, and `random` any
/// number.
///
/// A step whose time has passed, because the attempt before it was late or long, is left out:
/// several attempts in a row would tell no more than one. The last step has no jitter, so that the
/// whole window is used.
pub fn next_attempt(
    start_milliseconds: i64,
    step: i64,
    now_milliseconds: i64,
    retry_after_seconds: Option<u64>,
    random: u64,
) -> Option<NextAttempt> {
    let elapsed_milliseconds = now_milliseconds - start_milliseconds;
    let step_min = usize::try_from(step.max(0)).unwrap_or(usize::MAX).saturating_add(1);
    let next = (step_min..STEPS_SECONDS.len())
        .find(|next| STEPS_SECONDS[*next] * 1_000 > elapsed_milliseconds)?;
    let window_end_milliseconds = start_milliseconds + WINDOW_SECONDS * 1_000;
    let scheduled_milliseconds = start_milliseconds + STEPS_SECONDS[next] * 1_000;
    let jitter_milliseconds = match next + 1 == STEPS_SECONDS.len() {
        true => 0,
        false => jitter((STEPS_SECONDS[next] - STEPS_SECONDS[next - 1]) * 1_000, random),
    };
    let asked_seconds = retry_after_seconds
        .map_or(0, |seconds| i64::try_from(seconds).unwrap_or(WINDOW_SECONDS).min(WINDOW_SECONDS));
    let due_milliseconds = (scheduled_milliseconds + jitter_milliseconds)
        .max(now_milliseconds + asked_seconds * 1_000)
        .min(window_end_milliseconds);
    Some(NextAttempt { step: next as i64, due_milliseconds })
}

/// A number of milliseconds between minus and plus [`JITTER_PERMILLE`] of the delay.
fn jitter(delay_milliseconds: i64, random: u64) -> i64 {
    let reach_milliseconds = delay_milliseconds * JITTER_PERMILLE / 1_000;
    let range = reach_milliseconds.unsigned_abs() * 2 + 1;
    // The remainder is smaller than the range, which is far below the largest `i64`.
    (random % range) as i64 - reach_milliseconds
}

/// The failed attempts of an endpoint since its last success, or since its owner enabled it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndpointHealth {
    pub first_failure_milliseconds: Option<i64>,
    pub failures_count: i64,
}

impl EndpointHealth {
    /// One more failed attempt, begun at `attempted_milliseconds`.
    pub fn with_failure(self, attempted_milliseconds: i64) -> EndpointHealth {
        let first = self.first_failure_milliseconds.unwrap_or(attempted_milliseconds);
        EndpointHealth {
            first_failure_milliseconds: Some(first.min(attempted_milliseconds)),
            failures_count: self.failures_count + 1,
        }
    }

    /// The status that the failures alone would give an endpoint.
    pub fn judged(self, now_milliseconds: i64) -> EndpointStatus {
        let Some(first_milliseconds) = self.first_failure_milliseconds else {
            return EndpointStatus::Enabled;
        };
        let elapsed_milliseconds = now_milliseconds - first_milliseconds;
        if elapsed_milliseconds >= DISABLED_AFTER_SECONDS * 1_000
            && self.failures_count >= DISABLED_FAILURES_MIN
        {
            EndpointStatus::Disabled
        } else if elapsed_milliseconds >= FAILING_AFTER_SECONDS * 1_000 {
            EndpointStatus::Failing
        } else {
            EndpointStatus::Enabled
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_764_000_000_000;
    const HOUR: i64 = 3_600_000;

    /// `random` that gives the middle of the jitter's range for a delay in seconds.
    fn no_jitter(delay_seconds: i64) -> u64 {
        (delay_seconds * JITTER_PERMILLE) as u64
    }

    #[test]
    fn steps_follow_one_another_until_the_window_ends() {
        for step in 0..STEPS_SECONDS.len() - 1 {
            let delay = STEPS_SECONDS[step + 1] - STEPS_SECONDS[step];
            let now = START + STEPS_SECONDS[step] * 1_000 + 20;
            let next = next_attempt(START, step as i64, now, None, no_jitter(delay)).unwrap();
            assert_eq!(
                next,
                NextAttempt {
                    step: step as i64 + 1,
                    due_milliseconds: START + STEPS_SECONDS[step + 1] * 1_000
                }
            );
        }
        let end = START + WINDOW_SECONDS * 1_000;
        assert_eq!(next_attempt(START, 13, end, None, 0), None);
        assert_eq!(next_attempt(START, 0, end + HOUR, None, 0), None);
        assert_eq!(next_attempt(START, i64::MAX, START, None, 0), None);
    }

    #[test]
    fn jitter_stays_within_a_tenth_of_the_delay_and_the_window() {
        for step in 0..STEPS_SECONDS.len() - 1 {
            let reach = (STEPS_SECONDS[step + 1] - STEPS_SECONDS[step]) * 100;
            let scheduled = START + STEPS_SECONDS[step + 1] * 1_000;
            let (mut earliest, mut latest) = (i64::MAX, i64::MIN);
            for random in (0..2_000_u64).chain([reach as u64 * 2, u64::MAX]) {
                let next = next_attempt(
                    START,
                    step as i64,
                    START + STEPS_SECONDS[step] * 1_000,
                    None,
                    random,
                )
                .unwrap();
                earliest = earliest.min(next.due_milliseconds);
                latest = latest.max(next.due_milliseconds);
            }
            let is_last = step + 2 == STEPS_SECONDS.len();
            assert_eq!(earliest, if is_last { scheduled } else { scheduled - reach });
            assert_eq!(latest, if is_last { scheduled } else { scheduled + reach });
        }
    }

    #[test]
    fn steps_that_passed_are_left_out() {
        let rows = [
            // The first attempt ended after 15 s, so the step at 5 s is left out.
            (0, 15_000, 2, 30_000),
            // The first attempt ended after three hours. The next one is at four hours, and the
            // steps between are left out.
            (0, 3 * HOUR, 9, 4 * HOUR),
            // Jitter made the attempt of step 2 early. That step does not come again at its own
            // time.
            (2, 28_000, 3, 120_000),
            (3, 19 * HOUR, 13, 24 * HOUR),
        ];
        for (step, elapsed, next_step, next_elapsed) in rows {
            let delay = STEPS_SECONDS[next_step as usize] - STEPS_SECONDS[next_step as usize - 1];
            let next = next_attempt(START, step, START + elapsed, None, no_jitter(delay));
            assert_eq!(
                next,
                Some(NextAttempt { step: next_step, due_milliseconds: START + next_elapsed }),
                "{step} {elapsed}"
            );
        }
    }

    #[test]
    fn a_receiver_may_ask_for_later_but_not_for_sooner_or_past_the_window() {
        let rows = [
            (0, 10, Some(0), START + 5_000),
            (0, 10, Some(60), START + 60_010),
            (0, 10, Some(3), START + 5_000),
            (0, 10, Some(u64::MAX), START + WINDOW_SECONDS * 1_000),
            (12, 18 * HOUR, Some(86_400), START + WINDOW_SECONDS * 1_000),
        ];
        for (step, elapsed, asked, due) in rows {
            let next = next_attempt(START, step, START + elapsed, asked, no_jitter(5)).unwrap();
            assert_eq!((next.step, next.due_milliseconds), (step + 1, due), "{step} {asked:?}");
        }
    }

    #[test]
    fn health_is_judged_by_time_and_number() {
        let rows = [
            (EndpointHealth::default(), 0, EndpointStatus::Enabled),
            (
                EndpointHealth { first_failure_milliseconds: Some(START), failures_count: 14 },
                24 * HOUR - 1,
                EndpointStatus::Enabled,
            ),
            (
                EndpointHealth { first_failure_milliseconds: Some(START), failures_count: 2 },
                24 * HOUR,
                EndpointStatus::Failing,
            ),
            (
                EndpointHealth { first_failure_milliseconds: Some(START), failures_count: 10 },
                120 * HOUR - 1,
                EndpointStatus::Failing,
            ),
            (
                EndpointHealth { first_failure_milliseconds: Some(START), failures_count: 9 },
                120 * HOUR,
                EndpointStatus::Failing,
            ),
            (
                EndpointHealth { first_failure_milliseconds: Some(START), failures_count: 10 },
                120 * HOUR,
                EndpointStatus::Disabled,
            ),
        ];
        for (health, elapsed, expected) in rows {
            assert_eq!(health.judged(START + elapsed), expected, "{health:?} {elapsed}");
        }
        let health = EndpointHealth::default().with_failure(START + 5).with_failure(START);
        assert_eq!(
            health,
            EndpointHealth { first_failure_milliseconds: Some(START), failures_count: 2 }
        );
    }
}
