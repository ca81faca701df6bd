//! A short history of how far a chain was followed, for the operator's pages.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// How many heights are remembered, and the least time between two of them.
const SEEN_MAX: usize = 60;
const SEEN_APART_SECONDS: i64 = 60;

/// A height that the cursor had, and how far its block's time lay behind the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenHeight {
    /// Unix seconds of the store's clock.
    pub at: i64,
    pub height: i64,
    pub behind_seconds: i64,
}

/// The last 60 heights, at least a minute apart, oldest first. Empty in a process that has never
/// followed the chain.
#[derive(Default)]
pub struct SeenHeights(Mutex<VecDeque<SeenHeight>>);

impl SeenHeights {
    /// Remembers a height, unless one was remembered within the last minute.
    pub fn remember(&self, seen: SeenHeight) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.back().is_some_and(|last| seen.at < last.at + SEEN_APART_SECONDS) {
            return;
        }
        if all.len() >= SEEN_MAX {
            all.pop_front();
        }
        all.push_back(seen);
    }

    pub fn all(&self) -> Vec<SeenHeight> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_heights_a_minute_apart_are_remembered() {
        let heights = SeenHeights::default();
        for second in 0..7_200 {
            heights.remember(SeenHeight { at: second, height: second / 3, behind_seconds: 54 });
        }
        let all = heights.all();
        assert_eq!((all.len(), all[0].at, all[SEEN_MAX - 1].at), (SEEN_MAX, 3_600, 7_140));
    }
}
