//! The signals of a transaction that has not committed yet.

use super::Signal;

/// Savepoints that are open at the same time.
const SAVEPOINTS_MAX: usize = 2;

/// The signals to send once the transaction has committed. Those of an undone part are dropped.
#[derive(Default)]
pub struct PendingSignals {
    signals: Vec<Signal>,
    /// How many signals there were when each open savepoint began.
    before: [usize; SAVEPOINTS_MAX],
}

impl PendingSignals {
    pub fn add(&mut self, signal: Signal) {
        if !self.signals.contains(&signal) {
            self.signals.push(signal);
        }
    }

    /// Notes that another savepoint begins, inside `savepoints_open` others.
    pub fn open_savepoint(&mut self, savepoints_open: u32) {
        if let Some(before) = self.before.get_mut(savepoints_open as usize) {
            *before = self.signals.len();
        }
    }

    /// Drops the signals since the innermost open savepoint began, or all if none is open.
    pub fn undo(&mut self, savepoints_open: u32) {
        let innermost = (savepoints_open as usize).checked_sub(1);
        let kept = innermost.and_then(|place| self.before.get(place)).copied().unwrap_or(0);
        self.signals.truncate(kept);
    }

    pub fn contains(&self, signal: Signal) -> bool {
        self.signals.contains(&signal)
    }

    /// Takes all signals, to send after the commit.
    pub fn take(&mut self) -> Vec<Signal> {
        std::mem::take(&mut self.signals)
    }
}
