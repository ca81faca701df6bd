//! Watches the machine's clock, from which the embedded store takes the time at its start. If
//! somebody steps the machine's clock while the service runs, the service goes on with its own time
//! and reports the step. The service's time is stored every 30 s, so that a start notices a step
//! that was made while the service was down.

use std::sync::Arc;
use std::time::Duration;

use crate::app_state::AppState;
use crate::background::{Stop, is_stopped};
use crate::beneficiaries::look_ups;
use crate::kernel::clock::{BootMoment, SleepMeter};
use crate::kernel::{Now, OperationError};
use crate::store::{Signal, Tx, failpoint, idempotency, meta};
use crate::tasks;
use crate::webhooks;

/// How often the machine's clock is checked.
const LOOK_SECONDS: u64 = 2;
/// Smaller differences are no step, because time services make corrections of that size.
const STEP_MILLISECONDS_MIN: i64 = 2_000;
/// After how many checks the service's time is stored.
const LOOKS_PER_NOTE: u64 = 15;
/// When the time is stored, a difference below this from the expected time is no step. The expected
/// time is the one stored before plus what has passed since, as far as that is known.
const NOTED_STEP_MILLISECONDS_MIN: i64 = 60_000;

/// Name of the stored time, in Unix milliseconds.
const CLOCK_NOTE: &str = "clock_milliseconds";
/// Name of the machine's uptime when the time was stored: the boot's identifier and milliseconds.
const BOOT_NOTE: &str = "clock_boot";
/// Name of the stored extension of idempotency: by how many seconds stored answers are kept longer,
/// and until which Unix second that holds.
const LONGER_NOTE: &str = "clock_answers_longer";

/// Stores the service's time, and acts on a step that was made while the service was down. Call
/// this before the first request; otherwise idempotency keys could end too early after the clock
/// was put forward. Does nothing on a shared store, whose time is the database's.
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
        app.store.clock.add_sleep(meter.slept_milliseconds());
        let ahead = app.store.clock.machine_ahead_milliseconds();
        app.metrics.clock_step_seconds.set(ahead / 1000);
        if (ahead - reported).abs() >= STEP_MILLISECONDS_MIN {
            tracing::error!(
                alarm = "clock_step",
                seconds = ahead / 1000,
                "the machine's clock was stepped; the service goes on with its own time: set \
                 the clock right, and if the service's time is wrong restart the service"
            );
            reported = ahead;
        }
        let is_over = is_stopped(&stop);
        if is_over || look % LOOKS_PER_NOTE == 0 {
            note(&app).await;
        }
        if is_over {
            return;
        }
    }
}

/// Stores the service's time, and acts on a step since it was last stored. If the clock went back,
/// all tasks, deliveries and look-ups become due earlier by the step, so that none waits that much
/// longer. If the clock was put forward, stored answers are kept that much longer.
async fn note(app: &AppState) {
    let moment = BootMoment::now();
    let noted = app.store.write(move |tx, now| note_in(tx, now, moment.as_ref())).await;
    match noted {
        Ok(NotedStep { step_milliseconds, answers_longer }) => {
            if let Some((seconds, until)) = answers_longer {
                app.store.clock.keep_answers_longer(seconds, until);
            }
            let seconds = step_milliseconds / 1000;
            if seconds < 0 {
                tracing::error!(
                    alarm = "clock_step",
                    seconds,
                    "the machine's clock went back while the service was down: due times \
                     are moved back by as much"
                );
            } else if seconds > 0 {
                tracing::error!(
                    alarm = "clock_step",
                    seconds,
                    "the machine's clock was put forward while the service was down: idempotency \
                     keys are kept that much longer; everything else goes by the new time"
                );
            }
        }
        Err(failure) => tracing::error!(?failure, "the time could not be stored"),
    }
}

/// What was found when the time was stored.
struct NotedStep {
    /// By how much the clock was stepped since the time was last stored, backwards if negative; 0
    /// if it was not.
    step_milliseconds: i64,
    /// By how many seconds longer answers are kept, and until which Unix second that holds.
    answers_longer: Option<(i64, i64)>,
}

/// Reads numbers with one space between them; `None` unless there are exactly `N`.
fn numbers<const N: usize>(text: &str) -> Option<[i64; N]> {
    let numbers: Option<Vec<i64>> = text.split(' ').map(|word| word.parse().ok()).collect();
    numbers?.try_into().ok()
}

/// Compares the time with the stored one, acts on a step, and stores the time. `moment` is the
/// machine's boot and uptime, if the system tells them.
fn note_in(
    tx: &mut dyn Tx,
    now: &mut Now,
    moment: Option<&BootMoment>,
) -> Result<NotedStep, OperationError> {
    let mut found = |name: &str| -> Result<Option<String>, OperationError> {
        let bytes = meta::read(tx, name)?;
        Ok(bytes.and_then(|bytes| String::from_utf8(bytes).ok()))
    };
    let last = found(CLOCK_NOTE)?.and_then(|text| text.parse::<i64>().ok());
    let last_moment = found(BOOT_NOTE)?.and_then(|text| {
        let (boot_id, milliseconds) = text.split_once(' ')?;
        Some(BootMoment { boot_id: boot_id.into(), milliseconds: milliseconds.parse().ok()? })
    });
    let longer = found(LONGER_NOTE)?.and_then(|text| numbers::<2>(&text));
    let instant_milliseconds = now.instant_milliseconds();
    meta::write(tx, CLOCK_NOTE, instant_milliseconds.to_string().as_bytes())?;
    if let Some(BootMoment { boot_id, milliseconds }) = moment {
        meta::write(tx, BOOT_NOTE, format!("{boot_id} {milliseconds}").as_bytes())?;
    }
    let passed = moment.zip(last_moment).and_then(|(now, then)| now.milliseconds_since(&then));
    let step = last.map_or(0, |last| instant_milliseconds - last - passed.unwrap_or(0));
    // Within one boot the uptime shows how much time has passed. Across boots nothing shows that:
    // then a later time may be right, and only an earlier one counts as a step.
    let is_step = step <= -NOTED_STEP_MILLISECONDS_MIN
        || (step >= NOTED_STEP_MILLISECONDS_MIN && passed.is_some());
    let step_milliseconds = if is_step { step } else { 0 };
    if step_milliseconds < 0 {
        tasks::make_all_due_earlier(tx, -step_milliseconds)?;
        webhooks::rows::make_all_due_earlier(tx, -step_milliseconds)?;
        look_ups::make_all_due_earlier(tx, -step_milliseconds)?;
        tx.signal(Signal::Tasks);
        tx.signal(Signal::Deliveries);
    }
    // An earlier extension ends when it would end without the step.
    let instant_without_step = instant_milliseconds / 1000 - step_milliseconds / 1000;
    let mut answers_longer = longer
        .map(|[seconds, until]| (seconds, until))
        .filter(|(_, until)| *until > instant_without_step);
    if step_milliseconds > 0 {
        let seconds = step_milliseconds / 1000 + answers_longer.map_or(0, |(seconds, _)| seconds);
        let until = instant_milliseconds / 1000 + idempotency::ANSWER_KEPT_SECONDS;
        meta::write(tx, LONGER_NOTE, format!("{seconds} {until}").as_bytes())?;
        answers_longer = Some((seconds, until));
    }
    Ok(NotedStep { step_milliseconds, answers_longer })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Clock, Mode, Scope};
    use crate::store::Store;
    use crate::store::handle::no_epilogue;

    #[tokio::test]
    async fn look_ups_wait_no_longer_after_the_clock_went_back() {
        const STEP_MILLISECONDS: i64 = 3_600_000;
        let folder = std::env::temp_dir().join(format!("hundi-clock-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let store = Store::open(&folder.join("clock.db"), Clock::System, no_epilogue).unwrap();
        let noted = store.write(|tx, now| {
            let beneficiary_id = now.mint();
            look_ups::begin(tx, now, Scope::new(1, Mode::Test), beneficiary_id)?;
            let due = look_ups::next_due_milliseconds(tx)?.unwrap();
            let ahead = now.instant_milliseconds() + STEP_MILLISECONDS;
            meta::write(tx, CLOCK_NOTE, ahead.to_string().as_bytes())?;
            let step = note_in(tx, now, None)?.step_milliseconds;
            Ok((step, due, look_ups::next_due_milliseconds(tx)?.unwrap()))
        });
        let (step, before, after) = noted.await.unwrap();
        assert_eq!(after - before, step);
        assert!(step <= -STEP_MILLISECONDS / 2, "{step}");
        let _ = std::fs::remove_dir_all(&folder);
    }
}
