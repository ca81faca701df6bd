//! What waits, how much of it, and for how long: figures for Prometheus.

pub mod rows;

use crate::kernel::Mode;

/// One kind of work that waits in one mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingCount {
    pub of: &'static str,
    pub mode: Mode,
    /// Of both modes together at most [`rows::COUNTED_MAX`].
    pub count: i64,
    /// Unix seconds of the store's clock since which the oldest waits. What happened on an
    /// account's test clock counts from there, however far that was advanced meanwhile.
    pub oldest_at: Option<i64>,
}
