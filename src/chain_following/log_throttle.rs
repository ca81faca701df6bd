//! Limits repeated log lines, so that a lasting fault is logged at once and then every minute.

use std::time::Instant;

/// Seconds before the same message may be logged again.
const REPEAT_SECONDS: u64 = 60;
/// Different messages that are logged within that time; further ones are dropped.
const MESSAGES_MAX: usize = 12;

/// The messages of the last minute, and when each was logged.
#[derive(Default)]
pub(super) struct LogThrottle(Vec<(String, Instant)>);

impl LogThrottle {
    /// Whether this message is to be logged now. If so, it counts as logged.
    pub(super) fn is_due(&mut self, what: &str) -> bool {
        self.0.retain(|(_, at)| at.elapsed().as_secs() < REPEAT_SECONDS);
        let is_due = self.0.len() < MESSAGES_MAX && self.0.iter().all(|(known, _)| known != what);
        if is_due {
            self.0.push((what.to_owned(), Instant::now()));
        }
        is_due
    }
}
