//! What waits, how much of it, and for how long: figures for Prometheus.

pub mod rows;

/// One kind of work that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingCount {
    pub of: &'static str,
    /// At most [`rows::COUNTED_MAX`].
    pub count: i64,
    /// Unix seconds since which the oldest waits.
    pub oldest_at: Option<i64>,
}
