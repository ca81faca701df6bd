//! Advances an account's test clock. Tasks that fall due on the way run at their own moments, in
//! order.
//!
//! Where several nodes write, another transaction may create an object during the advance. If it
//! began with the old clock and commits after the advance, the advance does not see the object's
//! tasks. So each task keeps how far the test clock was ahead when its due time was computed.
//! Shortly after an advance, tasks with an older clock are found and adjusted (`catch_up`).

use crate::kernel::id::kind;
use crate::kernel::{Id, Now, Scope, StoreError};
use crate::keys;
use crate::services::Services;
use crate::store::{self, Tx};
use crate::task_runner::run_task;
use crate::tasks::{self, TaskKind};

/// The latest time that a test clock can show, in Unix seconds: 1 January 9998. Documents show
/// dates until the end of the year 9999, and no object has a due time more than a year ahead.
pub const LAST_MOMENT: i64 = 253_339_228_800;
/// The most tasks that one advance runs at their own moments. The task worker runs the rest right
/// after the commit, at the new time.
const ADVANCED_TASKS_MAX: usize = 20_000;
/// When tasks with an older clock are searched for, counted from the advance: soon, because most
/// transactions are short, and again once every earlier transaction must have ended. A node gives
/// up a transaction after 8 s. PostgreSQL ends that of a silent node after at most 10 s: 7 s for a
/// running statement, then 3 s without another.
const CATCH_UPS_MILLISECONDS: [i64; 3] = [250, 2_000, 20_000];

/// Locks the account's test clock until the transaction ends, and moves `now` to it. Answers how
/// far it is ahead, in seconds. Two advances at once run one after the other: the second begins
/// where the first ended.
pub fn lock(tx: &mut dyn Tx, now: &mut Now, scope: Scope) -> Result<i64, StoreError> {
    keys::rows::lock_account(tx, scope)?;
    let offset_seconds = keys::rows::clock_offset_seconds(tx, scope)?;
    now.enter_account(offset_seconds);
    Ok(offset_seconds)
}

/// Advances the account's test clock by `seconds`, and leaves `now` at the new time. The caller has
/// to [`lock`] the clock before, and to keep it within [`LAST_MOMENT`].
pub fn advance(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    seconds: i64,
) -> Result<(), StoreError> {
    catch_up(tx, now, services, scope)?;
    let from = now.clock_offset_seconds();
    let to = from + seconds;
    move_on(tx, now, services, scope, from, to)?;
    keys::rows::set_clock_offset_seconds(tx, scope, to)?;
    if tx.is_shared() && !store::failpoint("no_clock_catch_up") {
        for delay in CATCH_UPS_MILLISECONDS {
            let (id, due): (Id<kind::Account>, i64) =
                (now.mint(), now.business_milliseconds() + delay);
            tasks::schedule(tx, now, scope, TaskKind::ClockCatchUp, id, due)?;
        }
    }
    Ok(())
}

/// Finds the tasks that an advance did not see. Runs those of them that are due by the account's
/// test clock, and makes the others due earlier. Leaves `now` at the account's time.
pub fn catch_up(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
) -> Result<(), StoreError> {
    let to = lock(tx, now, scope)?;
    // A store with one writer has no such tasks, and looking for them would read all tasks.
    if tx.is_shared() {
        while let Some(behind) = tasks::smallest_clock_offset_below(tx, scope, to)? {
            move_on(tx, now, services, scope, behind, to)?;
        }
    }
    Ok(())
}

/// Takes the tasks whose due times were computed with the test clock `from_seconds` ahead. Runs
/// those that fall due until the clock is `to_seconds` ahead, and makes the others due earlier by
/// the difference.
fn move_on(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    from_seconds: i64,
    to_seconds: i64,
) -> Result<(), StoreError> {
    now.enter_account(from_seconds);
    let until = now.instant_milliseconds() + (to_seconds - from_seconds) * 1000;
    for _ in 0..ADVANCED_TASKS_MAX {
        let Some(task) = tasks::first_due_of(tx, scope, from_seconds, until)? else { break };
        now.step_to(task.due_milliseconds + from_seconds * 1000);
        // Catch-ups of earlier advances are dropped, because this function does their work. Those
        // of the advance to `to_seconds` have the new clock, so they are not among these tasks.
        if tasks::remove(tx, &task)? && task.kind != TaskKind::ClockCatchUp {
            run_task(tx, now, services, &task)?;
        }
    }
    tasks::make_due_earlier(tx, scope, from_seconds, to_seconds)?;
    now.enter_account(to_seconds);
    Ok(())
}
