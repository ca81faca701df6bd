//! The overview's figures, which all viewers share, so that ten viewers cost as much as one.
//!
//! One request reads for all. Requests that come meanwhile show the last figures, unless these are
//! too old. If a reading took long, its figures are shown longer, up to `KEPT_MAX`. So if each
//! reading takes less than 0.4 s, the figures of a mode are read at most a fiftieth of the time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Mutex as AsyncMutex;

use crate::app_state::AppState;
use crate::chains::ChainName;
use crate::disk;
use crate::kernel::{Mode, OperationError};
use crate::oversight::AccountNames;
use crate::oversight::flow::DayCount;
use crate::oversight::overview::{self, Overview};
use crate::store::Cost;

/// Figures are shown at least this long before they are read again.
const KEPT_MIN: Duration = Duration::from_secs(4);
/// Figures are shown this many times as long as it took to read them.
const KEPT_PER_READING: u32 = 50;
/// Figures that were read longer ago than this are not shown, however long it takes to read new
/// ones.
const KEPT_MAX: Duration = Duration::from_secs(20);

/// Figures, when their reading ended, and for how long they are fresh.
struct Kept {
    mode: Mode,
    overview: Arc<Overview>,
    read_at: Instant,
    fresh_for: Duration,
}

impl Kept {
    fn is_younger_than(&self, age: Duration) -> bool {
        self.read_at.elapsed() < age
    }
}

/// The figures that all viewers share.
#[derive(Default)]
pub struct OverviewWatch {
    /// The figures of each mode that somebody looked at.
    kept: Mutex<Vec<Kept>>,
    /// The count of the day so far. Each reading continues it, and holds the lock meanwhile.
    day: Arc<AsyncMutex<DayCount>>,
}

impl OverviewWatch {
    /// The figures of a mode: those that are kept if they are fresh, otherwise read anew.
    pub async fn look(&self, app: &AppState, mode: Mode) -> Result<Arc<Overview>, OperationError> {
        if let Some(overview) = self.find(mode, |kept| kept.is_younger_than(kept.fresh_for)) {
            return Ok(overview);
        }
        let mut day = match self.day.clone().try_lock_owned() {
            Ok(day) => day,
            // Another request is reading.
            Err(_) => {
                if let Some(overview) = self.find(mode, |kept| kept.is_younger_than(KEPT_MAX)) {
                    return Ok(overview);
                }
                let day = self.day.clone().lock_owned().await;
                if let Some(overview) = self.find(mode, |kept| kept.is_younger_than(kept.fresh_for))
                {
                    return Ok(overview);
                }
                day
            }
        };
        let disk_spaces = disk::spaces(&app.watched_folders).await;
        let milliseconds = app.store.clock.milliseconds();
        let services = app.services.clone();
        let read = app.store.read(Cost::Scan, move |tx| {
            let begun = Instant::now();
            let accounts = AccountNames::read(tx)?;
            let chains: Vec<&str> = ChainName::ALL.iter().map(|chain| chain.as_str()).collect();
            let made =
                overview::read(tx, &mut day, &accounts, mode, &chains, &services, milliseconds)?;
            // The lock of `day` ends with this closure.
            Ok((made, begun.elapsed()))
        });
        let (made, took) = read.await?;
        let overview = Arc::new(Overview { disk_spaces, ..made });
        let fresh_for = (took * KEPT_PER_READING).clamp(KEPT_MIN, KEPT_MAX);
        let kept = Kept { mode, overview: overview.clone(), read_at: Instant::now(), fresh_for };
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|kept| kept.mode != mode);
        all.push(kept);
        Ok(overview)
    }

    fn find(&self, mode: Mode, is_taken: impl Fn(&Kept) -> bool) -> Option<Arc<Overview>> {
        let all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = all.iter().find(|kept| kept.mode == mode && is_taken(kept))?;
        Some(kept.overview.clone())
    }
}
