//! Moves an account's test clock: what falls due on the way runs at its own moment, in order.
//!
//! Where several nodes write, an object may be made while the clock is moved: its transaction began
//! with the old clock and ends after the advance, which does not see its tasks. Tasks therefore
//! keep the clock that they were reckoned with, and a few moments after an advance those that have
//! an older one are brought up to it.

use crate::kernel::id::kind;
use crate::kernel::{Id, Now, Scope, StoreError};
use crate::keys;
use crate::services::Services;
use crate::store::{self, Tx};
use crate::task_runner::run_task;
use crate::tasks::{self, TaskKind};

/// The latest time that a test clock can show, in Unix seconds: 1 January 9998. Documents show
/// dates until the end of the year 9999, and no object has a due time more than a year ahead.
pub const LAST_SECONDS: i64 = 253_339_228_800;
/// Tasks that one advance runs at the moment they are due; what is beyond runs right after, by the
/// worker.
const ADVANCED_TASKS_MAX: usize = 20_000;
/// When tasks with an older clock are looked for after an advance: soon, for the many transactions
/// that end within moments, and again when every transaction that began before has ended. A node
/// gives one up after 8 s, the server 10 s after the last it heard of it.
const CATCH_UPS_MILLISECONDS: [i64; 3] = [250, 2_000, 20_000];

/// Moves the account's test clock on by this many seconds, and leaves `now` there.
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

/// Brings tasks that an advance could not see up to the account's test clock, and leaves `now`
/// there.
pub fn catch_up(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
) -> Result<(), StoreError> {
    // Of two advances at once the second begins where the first ended.
    keys::rows::lock_account(tx, scope)?;
    let to = keys::rows::clock_offset_seconds(tx, scope)?;
    now.enter_account(to);
    // A store with one writer has none behind, and a look reads all tasks.
    if tx.is_shared() {
        while let Some(behind) = tasks::clock_offset_behind(tx, scope, to)? {
            move_on(tx, now, services, scope, behind, to)?;
        }
    }
    Ok(())
}

/// Runs what falls due between two test clocks, of the tasks reckoned with the first, and reckons
/// the others with the second.
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
        // This is one already, and those after the last advance are still to come.
        if tasks::remove(tx, &task)? && task.kind != TaskKind::ClockCatchUp {
            run_task(tx, now, services, &task)?;
        }
    }
    tasks::make_due_earlier(tx, scope, from_seconds, to_seconds)?;
    now.enter_account(to_seconds);
    Ok(())
}
