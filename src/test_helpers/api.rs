//! The test clock over HTTP.

use schemars::JsonSchema;
use serde::Serialize;

use super::clock;
use crate::http::fields::Int;
use crate::http::route::{self, Context, Route};
use crate::kernel::{Code, OperationError, RefusalEntry};

crate::string_enum!(TestClockWord { TestClock "test_clock" });

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

pub fn routes() -> Vec<Route> {
    vec![route::post(
        "/v1/test_helpers/clock",
        "Advance the test clock, and run all that falls due",
        route::nothing,
        advance,
    )]
}

fn advance(
    context: &mut Context<'_>,
    _: (),
    form: AdvanceClock,
) -> Result<TestClock, OperationError> {
    let scope = context.scope();
    clock::lock(context.tx, context.now, scope)?;
    let latest = context.now.business() + form.advance_seconds.0;
    if latest > clock::LAST_MOMENT {
        let message = "The test clock ends on 1 January 9998.";
        return Err(RefusalEntry::field(Code::ParameterRangeInvalid, "advance_seconds", message)
            .with("minimum", "1")
            .with("maximum", (clock::LAST_MOMENT - context.now.business()).max(0).to_string())
            .into());
    }
    clock::advance(context.tx, context.now, context.services, scope, form.advance_seconds.0)?;
    Ok(TestClock { object: TestClockWord::TestClock, now: context.now.business() })
}
