//! Watches the machine's clock, which the embedded store's time comes from: the service goes on
//! with the time of its start when somebody steps it, and reports the step.

use std::sync::Arc;
use std::time::Duration;

use crate::app_state::AppState;
use crate::background::Stop;
use crate::kernel::clock::{BootMoment, SleepMeter};
use crate::kernel::{Now, OperationError};
use crate::store::{Signal, Tx, failpoint, idempotency, migrate};
use crate::tasks;
use crate::webhooks;

/// How often the machine's clock is looked at.
const LOOK_SECONDS: u64 = 2;
/// A smaller difference is no step: it is what a clock is corrected by when it is kept in time.
const STEP_MILLISECONDS_MIN: i64 = 2_000;
/// How often the service's time is written down, in looks.
const LOOKS_PER_NOTE: u64 = 15;
/// How far a start has to be from the time that was written down for its clock to count as stepped.
const START_MILLISECONDS_MIN: i64 = 60_000;

/// Where the store keeps the latest time of the service, in milliseconds since 1970.
const CLOCK_NOTE: &str = "clock_milliseconds";
/// Where it keeps what the machine's own count was then: the boot's name and milliseconds.
const BOOT_NOTE: &str = "clock_boot";
/// Where it keeps how much longer answers are kept, and until when: two numbers of seconds.
const LONGER_NOTE: &str = "clock_answers_longer";

/// To be called before the first request: a clock that was put forward while the service was down
/// must free no idempotency key.
pub async fn begin(app: &AppState) {
    if !app.store.is_shared() && !failpoint("clock_follows_the_machine") {
        note(app).await;
    }
}

pub async fn run(app: Arc<AppState>, mut stop: Stop) {
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

/// Writes the service's time down. Where a start is behind what was written, the machine's clock
/// went back: what is due is reckoned anew, so that nothing waits for as long as the step.
async fn note(app: &AppState) {
    let moment = BootMoment::now();
    let noted = app.store.write(move |tx, now| reckon(tx, now, moment.as_ref())).await;
    match noted {
        Ok(Reckoned { step_milliseconds, answers_longer }) => {
            if let Some((seconds, until)) = answers_longer {
                app.store.clock.keep_answers_longer(seconds, until);
            }
            let seconds = step_milliseconds / 1000;
            if seconds < 0 {
                tracing::error!(
                    alarm = "clock_step",
                    seconds,
                    "the machine's clock went back while the service was down: what was due is \
                     reckoned with the new time"
                );
            } else if seconds > 0 {
                tracing::error!(
                    alarm = "clock_step",
                    seconds,
                    "the machine's clock was put forward while the service was down: idempotency \
                     keys are kept as much longer; everything else goes by the new time"
                );
            }
        }
        Err(failure) => tracing::error!(?failure, "the time could not be written down"),
    }
}

struct Reckoned {
    /// By how much the clock was stepped since the last note; 0 where it was not.
    step_milliseconds: i64,
    /// How many seconds longer answers are kept, and until when.
    answers_longer: Option<(i64, i64)>,
}

fn numbers<const N: usize>(text: &str) -> Option<[i64; N]> {
    let numbers: Option<Vec<i64>> = text.split(' ').map(|word| word.parse().ok()).collect();
    numbers?.try_into().ok()
}

/// Compares the time with the one that was written down, and writes it down.
fn reckon(
    tx: &mut dyn Tx,
    now: &mut Now,
    moment: Option<&BootMoment>,
) -> Result<Reckoned, OperationError> {
    let mut found = |name: &str| -> Result<Option<String>, OperationError> {
        let bytes = migrate::read_meta(tx, name)?;
        Ok(bytes.and_then(|bytes| String::from_utf8(bytes).ok()))
    };
    let last = found(CLOCK_NOTE)?.and_then(|text| text.parse::<i64>().ok());
    let last_moment = found(BOOT_NOTE)?.and_then(|text| {
        let (boot_id, milliseconds) = text.split_once(' ')?;
        Some(BootMoment { boot_id: boot_id.into(), milliseconds: milliseconds.parse().ok()? })
    });
    let longer = found(LONGER_NOTE)?.and_then(|text| numbers::<2>(&text));
    let instant_milliseconds = now.instant_milliseconds();
    migrate::write_meta(tx, CLOCK_NOTE, instant_milliseconds.to_string().as_bytes())?;
    if let Some(BootMoment { boot_id, milliseconds }) = moment {
        migrate::write_meta(tx, BOOT_NOTE, format!("{boot_id} {milliseconds}").as_bytes())?;
    }
    let passed = moment.zip(last_moment).and_then(|(now, then)| now.milliseconds_since(&then));
    let step = last.map_or(0, |last| instant_milliseconds - last - passed.unwrap_or(0));
    // How long a machine was off is not known, so its clock can have gone on rightly.
    let is_step =
        step <= -START_MILLISECONDS_MIN || (step >= START_MILLISECONDS_MIN && passed.is_some());
    let step_milliseconds = if is_step { step } else { 0 };
    if step_milliseconds < 0 {
        tasks::make_all_due_earlier(tx, -step_milliseconds)?;
        webhooks::rows::make_all_due_earlier(tx, -step_milliseconds)?;
        tx.signal(Signal::Tasks);
        tx.signal(Signal::Deliveries);
    }
    let before = instant_milliseconds / 1000 - step_milliseconds / 1000;
    let mut answers_longer =
        longer.map(|[seconds, until]| (seconds, until)).filter(|(_, until)| *until > before);
    if step_milliseconds > 0 {
        let seconds = step_milliseconds / 1000 + answers_longer.map_or(0, |(seconds, _)| seconds);
        let until = instant_milliseconds / 1000 + idempotency::ANSWER_KEPT_SECONDS;
        migrate::write_meta(tx, LONGER_NOTE, format!("{seconds} {until}").as_bytes())?;
        answers_longer = Some((seconds, until));
    }
    Ok(Reckoned { step_milliseconds, answers_longer })
}
