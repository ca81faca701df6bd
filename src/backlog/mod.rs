//! What waits, how much of it, and for how long: figures for Prometheus.

pub mod rows;

use crate::kernel::Mode;

/// One kind of work that waits in one mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingCount {
    /// The name of the kind, which is its label in the metrics.
    pub of: &'static str,
    pub mode: Mode,
    /// Of both modes together at most [`rows::COUNTED_MAX`].
    pub count: i64,
    /// Since when the oldest of those counted waits: Unix seconds on the store's clock. Times of an
    /// account's test clock are converted, so an advance of that clock makes the wait longer.
    /// `None` if nothing waits.
    pub oldest_at: Option<i64>,
}
