//! Workers: each takes rows that are due, does one thing with each, and may be stopped at any
//! moment.

pub mod alone;
pub mod api;
pub mod audit;
pub mod bank;
pub mod checks;
pub mod credit;
pub mod deliveries;
pub mod follow;
pub mod housekeeping;
pub mod rates;
pub mod screening;
pub mod sequencer;
pub mod test_clock;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::app::App;
use crate::beneficiaries;
use crate::chains::simulated;
use crate::deposits;
use crate::kernel::id::kind;
use crate::kernel::{Failure, Now, StoreError};
use crate::keys;
use crate::store::Cost;
use crate::store::Tx;
use crate::tasks::{self, Task, TaskKind};
use crate::transfers::{funding, paying, refunding};
use crate::world::World;

/// Tasks that one transaction takes, so that requests get their turn in between.
pub const TASKS_MAX: i64 = 64;
/// How long one transaction goes on to take tasks, far from the time in which a store that is
/// reached over a network gives it up: slow statements make batches smaller, and never undo all of
/// them again and again.
const TASKS_SECONDS_MAX: u64 = 2;
/// How long a worker sleeps at most before it looks again, where other nodes write tasks, whose
/// signals do not come here.
const WAIT_SHARED_MILLISECONDS_MAX: i64 = 100;
/// How long a task that failed rests.
const TASK_RETRY_MILLISECONDS: i64 = 30_000;
/// How long one rests that met another transaction, which will have ended by then.
const TASK_MET_MILLISECONDS: i64 = 250;

/// Runs one task. A task whose object has moved on changes nothing.
pub fn run_task(
    tx: &mut dyn Tx,
    now: &mut Now,
    world: &World,
    task: &Task,
) -> Result<(), StoreError> {
    let scope = task.scope;
    match task.kind {
        TaskKind::BeneficiaryCheck => check_beneficiary(tx, now, world, task),
        TaskKind::DepositWatch => watch_deposit(tx, now, world, task),
        TaskKind::DepositDrop => funding::drop_unseen(tx, now, scope, task.object()),
        TaskKind::FundingExpiry => funding::expire(tx, now, world, scope, task.object()),
        TaskKind::HoldExpiry => funding::hold_expired(tx, now, world, scope, task.object()),
        TaskKind::PayoutSubmit => paying::submit(tx, now, world, scope, task.object()),
        TaskKind::PayoutInquire => paying::inquire(tx, now, world, scope, task.object()),
        TaskKind::PayoutHoldExpiry => paying::hold_expired(tx, now, world, scope, task.object()),
        TaskKind::AdviceIssue => paying::issue_advice(tx, now, scope, task.object()),
        TaskKind::RefundConfirm => refunding::confirm_due(tx, now, scope, task.object()),
        TaskKind::ClockCatchUp => test_clock::catch_up(tx, now, world, scope),
    }
}

fn check_beneficiary(
    tx: &mut dyn Tx,
    now: &mut Now,
    world: &World,
    task: &Task,
) -> Result<(), StoreError> {
    let Some(mut beneficiary) =
        beneficiaries::rows::find(tx, task.scope, task.object::<kind::Beneficiary>())?
    else {
        return Ok(());
    };
    beneficiaries::check(tx, now, world, &mut beneficiary)
}

/// Looks at the simulated chain for a deposit that is not final yet.
fn watch_deposit(
    tx: &mut dyn Tx,
    now: &mut Now,
    world: &World,
    task: &Task,
) -> Result<(), StoreError> {
    let scope = task.scope;
    let Some(deposit) = deposits::rows::find(tx, scope, task.object::<kind::Deposit>())? else {
        return Ok(());
    };
    if !world.ports(scope.mode())?.chain.is_simulated() || deposit.is_settled() {
        return Ok(());
    }
    let Some(sent) = simulated::find(tx, scope, &deposit.transaction_hash)? else { return Ok(()) };
    let step = world.settings.simulation_step_milliseconds;
    let movement = sent.movement(now.business_milliseconds(), step)?;
    let deposit = funding::observe(tx, now, world, scope, &deposit.chain, &movement)?;
    if !deposit.is_settled() {
        let due = now.business_milliseconds() + step;
        tasks::schedule(tx, now, scope, TaskKind::DepositWatch, deposit.id, due)?;
    }
    Ok(())
}

/// Runs tasks that are due, oldest first, each in a part of its own: up to `tasks_max`, and as many
/// as its time allows. Answers how many.
pub fn run_due(
    tx: &mut dyn Tx,
    now: &mut Now,
    world: &World,
    tasks_max: i64,
) -> Result<usize, Failure> {
    let begun = Instant::now();
    let mut count = 0;
    for task in &tasks::due(tx, now.instant_milliseconds(), tasks_max)? {
        if begun.elapsed().as_secs() >= TASKS_SECONDS_MAX {
            break;
        }
        now.enter_account(keys::rows::clock_offset_seconds(tx, task.scope)?);
        run_apart(tx, now, world, task)?;
        count += 1;
    }
    now.leave_account();
    Ok(count)
}

/// Puts the first task that is due off, because nothing came of it alone: the others are not to
/// wait for it.
fn put_off_first(tx: &mut dyn Tx, now: &mut Now) -> Result<(), Failure> {
    for task in &tasks::due(tx, now.instant_milliseconds(), 1)? {
        tracing::error!(task = task.kind.as_str(), id = %task.id, "a task takes too long for one \
         transaction and is tried again in 30 s");
        tasks::put_off(tx, task, now.instant_milliseconds() + TASK_RETRY_MILLISECONDS)?;
    }
    Ok(())
}

/// Runs a task so that its failure undoes only itself; it is then put off and told in the log.
fn run_apart(tx: &mut dyn Tx, now: &mut Now, world: &World, task: &Task) -> Result<(), StoreError> {
    tx.part_begin()?;
    let outcome = tasks::remove(tx, task)
        .and_then(|is_ours| if is_ours { run_task(tx, now, world, task) } else { Ok(()) });
    match outcome {
        Ok(()) => tx.part_end(true),
        Err(StoreError::Unavailable(reason)) => Err(StoreError::Unavailable(reason)),
        Err(met @ (StoreError::Conflict(_) | StoreError::Locked)) => {
            tx.part_end(false)?;
            tracing::info!(task = task.kind.as_str(), id = %task.id, %met, "a task met another \
             transaction and is tried again in 0.25 s");
            tasks::put_off(tx, task, now.instant_milliseconds() + TASK_MET_MILLISECONDS)
        }
        Err(error) => {
            tx.part_end(false)?;
            tracing::error!(task = task.kind.as_str(), id = %task.id, %error, "a task failed and \
             is tried again in 30 s");
            tasks::put_off(tx, task, now.instant_milliseconds() + TASK_RETRY_MILLISECONDS)
        }
    }
}

/// The task worker: woken by commits that wrote tasks, and by the next due time.
pub async fn run(app: Arc<App>, mut stop: watch::Receiver<bool>) {
    let mut tasks_max = TASKS_MAX;
    while !*stop.borrow() {
        let mut wait = until_next(&app).await;
        if wait == 0 {
            screening::ahead_of_checks(&app).await;
            let world = app.world.clone();
            match app.store.write(move |tx, now| run_due(tx, now, &world, tasks_max)).await {
                Ok(_) => {
                    tasks_max = (tasks_max * 2).min(TASKS_MAX);
                    continue;
                }
                Err(failure) => {
                    tracing::error!(
                        ?failure,
                        tasks_max,
                        "the task worker could not run; it tries again"
                    );
                    wait = tasks::LOOK_MILLISECONDS_MAX;
                    if tasks_max == 1 {
                        // Where the store does not answer at all this does not either.
                        let _ = app.store.write(put_off_first).await;
                    }
                    tasks_max = 1;
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(wait.unsigned_abs())) => {}
            // What was just written may be due before what was known: look again.
            () = app.store.signals.tasks.notified() => {}
            _ = stop.changed() => {}
        }
    }
}

async fn until_next(app: &App) -> i64 {
    let next = app.store.read(Cost::Point, |tx| Ok(tasks::next_due(tx)?)).await;
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
