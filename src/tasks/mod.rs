//! Work that is due later, one row each. The task worker (`workers/tasks.rs`) runs what is due.
//! When a test clock is advanced, `test_helpers/clock.rs` itself runs the tasks that the advance
//! makes due.

mod rows;

use crate::kernel::{Id, IdKind, InternalId, Now, Scope, StoreError};
use crate::store::{Signal, Tx};
pub use rows::{
    due, first_due_of, make_all_due_earlier, make_due_earlier, next_due_milliseconds, put_off,
    remove, smallest_clock_offset_below,
};

crate::string_enum!(
    /// The kinds of task. `task_runner::run_task` runs each but `clock_catch_up`, which
    /// `workers/tasks.rs` runs. Eight names do not say what the task does:
    ///
    /// - `deposit_watch`: looks at the simulated chain for a deposit that is not final yet;
    /// - `deposit_drop`: fails a deposit whose block was replaced, if the chain has not shown it
    ///   again within 24 hours;
    /// - `hold_expiry`: gives back the money of a transfer in `funding_hold`, if nobody has decided
    ///   in time;
    /// - `payout_hold_expiry`: looks at a payout on hold, every 24 hours;
    /// - `refund_confirm`: confirms a refund on the simulated chain;
    /// - `refund_payer_address`: puts the payer's address for a refund into effect, after a day;
    /// - `clock_catch_up`: adjusts tasks that an advance of the test clock could not see;
    /// - `unknown`: stands for a kind that only a newer version knows. No row holds this word.
    TaskKind {
        BeneficiaryCheck "beneficiary_check",
        DepositWatch "deposit_watch",
        DepositDrop "deposit_drop",
        FundingExpiry "funding_expiry",
        HoldExpiry "hold_expiry",
        PayoutSubmit "payout_submit",
        PayoutInquire "payout_inquire",
        PayoutHoldExpiry "payout_hold_expiry",
        AdviceIssue "advice_issue",
        RefundConfirm "refund_confirm",
        RefundPayerAddress "refund_payer_address",
        ClockCatchUp "clock_catch_up",
        Unknown "unknown",
    }
);

/// The most tasks that one transaction takes, so that requests are served in between.
pub const TASKS_AT_ONCE_MAX: i64 = 64;
/// The task worker looks for tasks at least this often, in milliseconds. Signals make it look
/// sooner.
pub const LOOK_MILLISECONDS_MAX: i64 = 1_000;

#[derive(Debug)]
pub struct Task {
    /// Unix milliseconds by the store's clock, whatever the account's test clock shows.
    pub due_milliseconds: i64,
    pub id: InternalId,
    pub scope: Scope,
    pub kind: TaskKind,
    object_id: u128,
}

impl Task {
    /// The object that the task is about. The task's kind implies the object's kind. A
    /// `ClockCatchUp` is about no object; its identifier here belongs to nothing else.
    pub const fn object<K: IdKind>(&self) -> Id<K> {
        Id::from_u128(self.object_id)
    }
}

/// Writes a task that is due at `business_milliseconds`, in Unix milliseconds of the account's
/// business time. `now` must have entered the account ([`Now::enter_account`]).
pub fn schedule<K: IdKind>(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    kind: TaskKind,
    object: Id<K>,
    business_milliseconds: i64,
) -> Result<(), StoreError> {
    let due_milliseconds = now.due_milliseconds(business_milliseconds);
    let task = Task { due_milliseconds, id: now.mint(), scope, kind, object_id: object.as_u128() };
    rows::insert(tx, &task, now.clock_offset_seconds())?;
    // Only a task that is due soon needs a signal, because the worker looks by itself. "Soon" is
    // two intervals: this transaction may commit some time after `now`, and the next look may come
    // a whole interval after the commit.
    if due_milliseconds <= now.instant_milliseconds() + 2 * LOOK_MILLISECONDS_MAX {
        tx.signal(Signal::Tasks);
    }
    Ok(())
}
