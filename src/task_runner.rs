//! What each kind of task does.

use crate::chains::simulated;
use crate::kernel::id::kind;
use crate::kernel::{Now, StoreError};
use crate::refunds::payer_address;
use crate::services::Services;
use crate::store::Tx;
use crate::tasks::{self, Task, TaskKind};
use crate::transfers::paying::{self, LimitCheck};
use crate::transfers::{funding, holds, refunding};
use crate::{beneficiaries, deposits};

/// Runs one task. Its row has been taken, and `now` is at the account's business time. Changes
/// nothing if the object is gone or has moved on.
pub fn run_task(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    task: &Task,
) -> Result<(), StoreError> {
    let scope = task.scope;
    match task.kind {
        TaskKind::BeneficiaryCheck => check_beneficiary(tx, now, services, task),
        TaskKind::DepositWatch => watch_deposit(tx, now, services, task),
        TaskKind::DepositDrop => funding::drop_unseen(tx, now, scope, task.object()),
        TaskKind::FundingExpiry => funding::expire(tx, now, services, scope, task.object()),
        TaskKind::HoldExpiry => holds::hold_expired(tx, now, services, scope, task.object()),
        TaskKind::PayoutSubmit => {
            paying::submit(tx, now, services, scope, task.object(), LimitCheck::Apply)
        }
        TaskKind::PayoutInquire => paying::inquire(tx, now, services, scope, task.object()),
        TaskKind::PayoutHoldExpiry => paying::look_at_held(tx, now, services, scope, task.object()),
        TaskKind::AdviceIssue => paying::issue_advice(tx, now, scope, task.object()),
        TaskKind::RefundConfirm => refunding::confirm_due(tx, now, services, scope, task.object()),
        TaskKind::RefundPayerAddress => {
            payer_address::take_effect(tx, now, services, scope, task.object())
        }
        // `workers/tasks.rs` runs this kind itself, because a catch-up runs other tasks through
        // this function.
        TaskKind::ClockCatchUp => Ok(()),
        // The worker keeps the task for later: the newer version may run again.
        TaskKind::Unknown => Err(StoreError::Broken(
            "only a newer version of the service knows this kind of task".into(),
        )),
    }
}

fn check_beneficiary(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    task: &Task,
) -> Result<(), StoreError> {
    let Some(mut beneficiary) =
        beneficiaries::rows::find(tx, task.scope, task.object::<kind::Beneficiary>())?
    else {
        return Ok(());
    };
    beneficiaries::check(tx, now, services, &mut beneficiary)
}

/// How long until a deposit of the simulated chain is looked at again while the settings name a
/// real chain. The settings may name the simulated chain again before the deposit is dropped.
const WATCH_ELSEWHERE_MILLISECONDS: i64 = 3_600_000;

/// Looks at a deposit on the simulated chain, again and again until it is final. While the settings
/// name a real chain, the deposit is marked as unseen.
fn watch_deposit(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    task: &Task,
) -> Result<(), StoreError> {
    let scope = task.scope;
    let found = deposits::rows::find(tx, scope, task.object::<kind::Deposit>())?;
    let Some(mut deposit) = found.filter(|deposit| !deposit.is_settled()) else {
        return Ok(());
    };
    if !services.ports(scope.mode())?.chain.is_simulated() {
        if deposit.unseen_since.is_none() {
            deposits::mark_unseen(tx, now, &mut deposit)?;
        }
        let due = now.business_milliseconds() + WATCH_ELSEWHERE_MILLISECONDS;
        return tasks::schedule(tx, now, scope, TaskKind::DepositWatch, deposit.id, due);
    }
    let Some(sent) = simulated::find(tx, scope, &deposit.transaction_hash)? else { return Ok(()) };
    let step = services.settings.simulation_step_milliseconds;
    let movement = sent.movement(now.business_milliseconds(), step);
    let deposit = funding::observe_simulated(tx, now, services, scope, &deposit.chain, &movement)?;
    if !deposit.is_settled() {
        let due = now.business_milliseconds() + step;
        tasks::schedule(tx, now, scope, TaskKind::DepositWatch, deposit.id, due)?;
    }
    Ok(())
}
