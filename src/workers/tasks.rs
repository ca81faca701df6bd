//! The task worker: runs due tasks, oldest first.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::screening;
use crate::app_state::AppState;
use crate::background::is_stopped;
use crate::kernel::{Now, OperationError, StoreError};
use crate::keys;
use crate::services::Services;
use crate::store::Cost;
use crate::store::Tx;
use crate::task_runner::run_task;
use crate::tasks::{self, TASKS_AT_ONCE_MAX, Task, TaskKind};
use crate::test_helpers::clock;

/// After this time a transaction takes no more tasks. It is well below the time after which
/// PostgreSQL's lanes give a transaction up, so slow statements make transactions smaller, instead
/// of undoing the same tasks again and again.
const TASKS_SECONDS_MAX: u64 = 2;
/// The longest sleep on a shared store, except after a failure: other nodes write tasks too, and
/// their signals do not reach this node.
const WAIT_SHARED_MILLISECONDS_MAX: i64 = 100;
/// How long after a failure a task is tried again.
const TASK_RETRY_MILLISECONDS: i64 = 30_000;
/// How long after a conflict with another transaction a task is tried again. By then that
/// transaction has most likely ended.
const CONFLICT_RETRY_MILLISECONDS: i64 = 250;

/// How long a task of live mode waits while live mode is not configured.
const UNCONFIGURED_MILLISECONDS: i64 = 60_000;

/// Runs tasks that are due, oldest first, each in a savepoint of its own: up to `tasks_max`, and
/// for up to `TASKS_SECONDS_MAX`. Answers how many it took. While live mode is not configured, its
/// tasks are put off: without the lists, for example, a payout could not be screened.
pub fn run_due(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    tasks_max: i64,
) -> Result<usize, OperationError> {
    let begun = Instant::now();
    let mut count = 0;
    for task in &tasks::due(tx, now.instant_milliseconds(), tasks_max)? {
        if begun.elapsed().as_secs() >= TASKS_SECONDS_MAX {
            break;
        }
        count += 1;
        if services.ports(task.scope.mode()).is_err() {
            tasks::put_off(tx, task, now.instant_milliseconds() + UNCONFIGURED_MILLISECONDS)?;
            continue;
        }
        now.enter_account(keys::rows::clock_offset_seconds(tx, task.scope)?);
        run_apart(tx, now, services, task)?;
    }
    now.leave_account();
    Ok(count)
}

/// Postpones the first due task, so that other tasks do not wait for it. Called when a transaction
/// for this task alone has failed: the task panicked or took too long. Its other failures do not
/// fail the transaction.
fn put_off_first(tx: &mut dyn Tx, now: &mut Now) -> Result<(), OperationError> {
    for task in &tasks::due(tx, now.instant_milliseconds(), 1)? {
        tracing::error!(task = task.kind.as_str(), id = %task.id, "a task made its transaction \
         fail: it panicked or took too long, and is tried again in 30 s");
        tasks::put_off(tx, task, now.instant_milliseconds() + TASK_RETRY_MILLISECONDS)?;
    }
    Ok(())
}

/// Runs a task. A `ClockCatchUp` adjusts its account's tasks to the test clock, and runs those that
/// fell due meanwhile.
fn run_one(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    task: &Task,
) -> Result<(), StoreError> {
    match task.kind {
        TaskKind::ClockCatchUp => clock::catch_up(tx, now, services, task.scope),
        _ => run_task(tx, now, services, task),
    }
}

/// Runs a task. A failure is logged, undoes only this task and postpones it. But if the store is
/// unavailable, the whole transaction fails.
fn run_apart(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    task: &Task,
) -> Result<(), StoreError> {
    tx.savepoint()?;
    let outcome = tasks::remove(tx, task)
        .and_then(|is_ours| if is_ours { run_one(tx, now, services, task) } else { Ok(()) });
    match outcome {
        Ok(()) => tx.release(),
        Err(StoreError::Unavailable(reason)) => Err(StoreError::Unavailable(reason)),
        Err(conflict @ (StoreError::Conflict(_) | StoreError::Locked)) => {
            tx.rollback_and_release()?;
            tracing::info!(task = task.kind.as_str(), id = %task.id, %conflict, "a task conflicted \
             with another transaction and is tried again in 0.25 s");
            tasks::put_off(tx, task, now.instant_milliseconds() + CONFLICT_RETRY_MILLISECONDS)
        }
        Err(error) => {
            tx.rollback_and_release()?;
            tracing::error!(task = task.kind.as_str(), id = %task.id, %error, "a task failed and \
             is tried again in 30 s");
            tasks::put_off(tx, task, now.instant_milliseconds() + TASK_RETRY_MILLISECONDS)
        }
    }
}

/// The task worker: woken by commits that wrote tasks, and by the next due time.
pub async fn run(app: Arc<AppState>, mut stop: watch::Receiver<bool>) {
    let mut tasks_max = TASKS_AT_ONCE_MAX;
    while !is_stopped(&stop) {
        let mut wait_milliseconds = milliseconds_until_next(&app).await;
        if wait_milliseconds == 0 {
            screening::screen_ahead_of_checks(&app).await;
            let services = app.services.clone();
            match app.store.write(move |tx, now| run_due(tx, now, &services, tasks_max)).await {
                Ok(_) => {
                    tasks_max = (tasks_max * 2).min(TASKS_AT_ONCE_MAX);
                    continue;
                }
                Err(failure) => {
                    tracing::error!(
                        ?failure,
                        tasks_max,
                        "the task worker could not run; it tries again"
                    );
                    wait_milliseconds = tasks::LOOK_MILLISECONDS_MAX;
                    if tasks_max == 1 {
                        // If the store does not answer at all, this fails too, and the task keeps
                        // its due time.
                        let _ = app.store.write(put_off_first).await;
                    }
                    tasks_max = 1;
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(wait_milliseconds.unsigned_abs())) => {}
            // A task that was just written may be due before the next one that was found.
            () = app.store.signals.tasks.notified() => {}
            _ = stop.changed() => {}
        }
    }
}

/// Milliseconds until the next task is due, or until the worker has to look again.
async fn milliseconds_until_next(app: &AppState) -> i64 {
    let next = app.store.read(Cost::Point, |tx| Ok(tasks::next_due_milliseconds(tx)?)).await;
    let wait_max = if app.store.is_shared() {
        WAIT_SHARED_MILLISECONDS_MAX
    } else {
        tasks::LOOK_MILLISECONDS_MAX
    };
    match next {
        Ok(Some(due)) => (due - app.store.clock.milliseconds()).clamp(0, wait_max),
        Ok(None) => wait_max,
        Err(_) => tasks::LOOK_MILLISECONDS_MAX,
    }
}
