//! The signals of a transaction that has not committed yet.

use super::Signal;

/// Savepoints that are open at the same time.
const SAVEPOINTS_MAX: usize = 2;

/// What workers are told once the transaction has committed. What is undone tells nothing.
#[derive(Default)]
pub struct PendingSignals {
    signals: Vec<Signal>,
    /// How many there were when each open savepoint began.
    before: [usize; SAVEPOINTS_MAX],
}

impl PendingSignals {
    pub fn add(&mut self, signal: Signal) {
        if !self.signals.contains(&signal) {
            self.signals.push(signal);
        }
    }

    /// Another savepoint begins, inside as many as `savepoints_open`.
    pub fn open_savepoint(&mut self, savepoints_open: u32) {
        if let Some(before) = self.before.get_mut(savepoints_open as usize) {
            *before = self.signals.len();
        }
    }

    /// Forgets those since the innermost of the open savepoints began; with none open, all.
    pub fn undo(&mut self, savepoints_open: u32) {
        let innermost = (savepoints_open as usize).checked_sub(1);
        let kept = innermost.and_then(|place| self.before.get(place)).copied().unwrap_or(0);
        self.signals.truncate(kept);
    }

    pub fn contains(&self, signal: Signal) -> bool {
        self.signals.contains(&signal)
    }

    /// All of them, for after the commit.
    pub fn take(&mut self) -> Vec<Signal> {
        std::mem::take(&mut self.signals)
    }
}
