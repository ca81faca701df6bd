//! Watches the machine's clock, which the embedded store's time comes from: the service goes on
//! with the time of its start when somebody steps it, and reports the step.

use std::sync::Arc;
use std::time::Duration;

use crate::app_state::AppState;
use crate::background::Stop;
use crate::kernel::clock::SleepMeter;
use crate::kernel::{Now, OperationError};
use crate::store::{Signal, Tx, migrate};
use crate::tasks;
use crate::webhooks;

/// How often the machine's clock is looked at.
const LOOK_SECONDS: u64 = 2;
/// A smaller difference is no step: it is what a clock is corrected by when it is kept in time.
const STEP_MILLISECONDS_MIN: i64 = 2_000;
/// How often the service's time is written down, in looks.
const LOOKS_PER_NOTE: u64 = 15;
/// How far behind the time that was written down a start has to be to take the machine's clock for
/// stepped back.
const BACK_MILLISECONDS_MIN: i64 = 60_000;

/// Where the store keeps the latest time of the service, in milliseconds since 1970.
const CLOCK_NOTE: &str = "clock_milliseconds";

pub async fn run(app: Arc<AppState>, mut stop: Stop) {
    note(&app).await;
    let mut meter = SleepMeter::start();
    let mut reported = 0;
    for look in 1_u64.. {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(LOOK_SECONDS)) => {}
            _ = stop.changed() => {}
        }
        app.store.clock.slept(meter.slept_milliseconds());
        let ahead = app.store.clock.machine_ahead_milliseconds();
        app.metrics.clock_step_seconds.set(ahead / 1000);
        if (ahead - reported).abs() >= STEP_MILLISECONDS_MIN {
            tracing::error!(
                alarm = "clock_step",
                seconds = ahead / 1000,
                "the machine's clock was stepped; the service goes on with the time of its start: \
                 set the clock right, and if the old time was wrong restart the service"
            );
            reported = ahead;
        }
        let is_over = *stop.borrow();
        if is_over || look % LOOKS_PER_NOTE == 0 {
            note(&app).await;
        }
        if is_over {
            return;
        }
    }
}

/// Writes the service's time down. Where it is behind what was written, at a start, the machine's
/// clock went back: what is due is reckoned anew, so that nothing waits for as long as the step.
async fn note(app: &AppState) {
    let noted = app.store.write(|tx, now| reckon(tx, now)).await;
    match noted {
        Ok(0) => {}
        Ok(back_milliseconds) => tracing::error!(
            alarm = "clock_step",
            seconds = -back_milliseconds / 1000,
            "the machine's clock is behind the time at which this database was last served: what \
             was due is reckoned with the new time"
        ),
        Err(failure) => tracing::error!(?failure, "the time could not be written down"),
    }
}

/// Answers by how much the time went back.
fn reckon(tx: &mut dyn Tx, now: &mut Now) -> Result<i64, OperationError> {
    let found = migrate::read_meta(tx, CLOCK_NOTE)?;
    let last: Option<i64> =
        found.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok()?.parse().ok());
    let instant = now.instant_milliseconds();
    migrate::write_meta(tx, CLOCK_NOTE, instant.to_string().as_bytes())?;
    let back = last.map_or(0, |last| last - instant);
    if back < BACK_MILLISECONDS_MIN {
        return Ok(0);
    }
    tasks::bring_all_forward(tx, back)?;
    webhooks::rows::bring_all_forward(tx, back)?;
    tx.signal(Signal::Tasks);
    tx.signal(Signal::Deliveries);
    Ok(back)
}
