//! The time in which what is promised is measured: without that for which a processor was lacking.

use std::time::{Duration, Instant};

/// Measures how long something takes where a processor is free. While some task of the machine
/// waits for one, the time does not count (`/proc/pressure/cpu`). On a kernel without that file all
/// time counts.
pub struct Stopwatch {
    started: Instant,
    waited: Duration,
}

impl Stopwatch {
    pub fn start() -> Stopwatch {
        Stopwatch { started: Instant::now(), waited: waited() }
    }

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed().saturating_sub(waited().saturating_sub(self.waited))
    }
}

/// For how long since the machine's start at least one task waited for a processor.
fn waited() -> Duration {
    let pressure = std::fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
    let total = pressure
        .lines()
        .find(|line| line.starts_with("some "))
        .and_then(|line| line.split("total=").nth(1));
    Duration::from_micros(total.and_then(|total| total.trim().parse().ok()).unwrap_or(0))
}
