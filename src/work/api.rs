//! The test clock over HTTP.

use schemars::JsonSchema;
use serde::Serialize;

use super::run_task;
use crate::http::fields::Int;
use crate::http::route::{self, Context, Route};
use crate::kernel::Failure;
use crate::{keys, tasks};

/// Tasks that one advance runs at the moment they are due; what is beyond runs right after, by the worker.
const ADVANCED_TASKS_MAX: usize = 20_000;

crate::words!(TestClockWord { TestClock "test_clock" });

crate::form! {
    /// Moves the account's test clock forward.
    AdvanceClock {
        advance_seconds: Int<1, 31_536_000>,
    }
}

/// The account's test clock.
#[derive(Serialize, JsonSchema)]
pub struct TestClock {
    pub object: TestClockWord,
    pub now: i64,
}

pub fn helper_routes() -> Vec<Route> {
    vec![route::post("/v1/test_helpers/clock", "Advance the test clock, and run all that falls due", route::nothing, advance)]
}

/// Everything that falls due on the way runs at its own moment, in order, before the clock stands at its new time.
fn advance(context: &mut Context<'_>, _: (), form: AdvanceClock) -> Result<TestClock, Failure> {
    let scope = context.scope();
    let seconds = form.advance_seconds.0;
    let offset = keys::rows::clock_offset_seconds(context.tx, scope)?;
    let until = context.now.instant_milliseconds() + seconds * 1000;
    for _ in 0..ADVANCED_TASKS_MAX {
        let Some(task) = tasks::first_due_of(context.tx, scope, until)? else { break };
        context.now.step_to(task.due_milliseconds + offset * 1000);
        if tasks::remove(context.tx, &task)? {
            run_task(context.tx, context.now, context.world, &task)?;
        }
    }
    tasks::bring_forward(context.tx, scope, seconds * 1000)?;
    keys::rows::set_clock_offset_seconds(context.tx, scope, offset + seconds)?;
    context.now.enter_account(offset + seconds);
    Ok(TestClock { object: TestClockWord::TestClock, now: context.now.business() })
}
