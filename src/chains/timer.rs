//! Monotonic time for pacing requests to nodes: the machine's, or one that a test moves.

use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;

static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The clock that paces requests. Clones share their time.
#[derive(Clone, Debug, Default)]
pub struct Timer(Option<Arc<ManualTime>>);

#[derive(Debug)]
struct ManualTime {
    now: watch::Sender<Duration>,
    sleepers: AtomicUsize,
}

impl Timer {
    /// A timer that stands still until [`Timer::advance`].
    pub fn manual() -> Timer {
        let (now, _) = watch::channel(Duration::ZERO);
        Timer(Some(Arc::new(ManualTime { now, sleepers: AtomicUsize::new(0) })))
    }

    /// Time since an arbitrary moment.
    pub fn now(&self) -> Duration {
        match &self.0 {
            Some(manual) => *manual.now.borrow(),
            None => ORIGIN.elapsed(),
        }
    }

    /// Returns once `wait` has passed on this timer.
    pub async fn sleep(&self, wait: Duration) {
        let Some(manual) = &self.0 else { return tokio::time::sleep(wait).await };
        let mut moved = manual.now.subscribe();
        let until = moved.borrow().saturating_add(wait);
        let _asleep = Asleep::begin(manual);
        // The sender is kept alive by `manual`.
        let _ = moved.wait_for(|now| *now >= until).await;
    }

    /// Moves a manual timer forward.
    pub fn advance(&self, by: Duration) {
        if let Some(manual) = &self.0 {
            manual.now.send_modify(|now| *now = now.saturating_add(by));
        }
    }

    /// How many tasks sleep on a manual timer now.
    pub fn sleepers_count(&self) -> usize {
        self.0.as_ref().map_or(0, |manual| manual.sleepers.load(Ordering::SeqCst))
    }
}

struct Asleep<'a>(&'a ManualTime);

impl Asleep<'_> {
    fn begin(time: &ManualTime) -> Asleep<'_> {
        time.sleepers.fetch_add(1, Ordering::SeqCst);
        Asleep(time)
    }
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        self.0.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}
