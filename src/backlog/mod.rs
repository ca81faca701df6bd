//! What waits, how much of it, and for how long: figures for Prometheus.

pub mod rows;

use crate::kernel::{Mode, StoreError};
use crate::services::Services;
use crate::store::Tx;

/// One kind of work that waits in one mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingCount {
    /// The name of the kind, which is its label in the metrics.
    pub of: &'static str,
    pub mode: Mode,
    /// How many wait. Counting stops at [`rows::COUNTED_MAX`] for both modes together, but for the
    /// kind `settlements_late` at that number in each mode.
    pub count: i64,
    /// When the oldest of what was counted began to wait, in Unix seconds of the store's clock. If
    /// the store does not keep that moment, it is when the object was created. Business times are
    /// converted with the test clock as it is now, so an advance of that clock makes the wait
    /// longer. `None` if nothing waits, or if the moment is not known.
    pub oldest_at: Option<i64>,
}

/// Counts what waits, kind by kind: two entries for each kind, one for each mode.
pub fn waiting(
    tx: &mut dyn Tx,
    services: &Services,
    now_milliseconds: i64,
) -> Result<Vec<WaitingCount>, StoreError> {
    let mut found = rows::waiting(tx, now_milliseconds)?;
    for (mode, ports) in [(Mode::Test, Some(&services.test)), (Mode::Live, services.live.as_ref())]
    {
        let instant = now_milliseconds / 1_000;
        let late = ports.map(|ports| ports.rail.late_since(tx, instant, rows::COUNTED_MAX));
        let late = late.transpose()?.unwrap_or_default();
        found.push(WaitingCount {
            of: "settlements_late",
            mode,
            count: late.len() as i64,
            oldest_at: late.into_iter().min(),
        });
    }
    Ok(found)
}
