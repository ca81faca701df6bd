//! Statements over HTTP.

use super::{PERIOD_DAYS_MAX, PERIOD_SECONDS_DEFAULT, PERIOD_SECONDS_MAX, Statement, compose};
use crate::http::query::{Filter, FilterKind};
use crate::http::route::{self, Context, Route};
use crate::kernel::page::FilterValue;
use crate::kernel::{Code, OperationError, Refusal, RefusalEntry};
use crate::store::idempotency;

crate::string_enum!(
    /// How a statement is written.
    StatementFormat { Json "json", Csv "csv" }
);

/// The parameters of a statement. Unlike the filters of a list, they name no columns.
const PARAMETERS: &[Filter] = &[
    Filter::new("from", FilterKind::Time),
    Filter::new("to", FilterKind::Time),
    Filter::new("format", FilterKind::Word(|| StatementFormat::WORDS.to_vec())),
];

pub fn routes() -> Vec<Route> {
    vec![route::report::<Statement>(
        "/v1/statements",
        "Get what transfers moved in a period, as JSON or CSV: opening, movements and closing in \
         every currency",
        PARAMETERS,
        show,
    )]
}

fn show(
    context: &mut Context<'_>,
    values: &[(&'static str, FilterValue)],
) -> Result<(&'static str, Vec<u8>), OperationError> {
    let time = |name: &str| {
        values.iter().find(|(found, _)| *found == name).and_then(|(_, value)| match value {
            FilterValue::Int(seconds) => Some(*seconds),
            _ => None,
        })
    };
    // A period excludes its end, so one second more includes the present.
    let to = time("to").unwrap_or_else(|| context.now.business() + 1);
    let asked_from = time("from");
    let from = asked_from.unwrap_or_else(|| (to - PERIOD_SECONDS_DEFAULT).max(0));
    let refused = |name: &str, message: String| {
        Refusal::one(RefusalEntry::field(Code::RequestQueryParameterInvalid, name, message))
    };
    if from >= to {
        // A period without `from` begins in 1970 at the earliest, so `to` is the wrong one.
        let (name, message) = match asked_from {
            Some(_) => ("from", "from must be before to."),
            None => ("to", "to must be after 0, the beginning of 1970."),
        };
        return Err(refused(name, message.into()).into());
    }
    if to - from > PERIOD_SECONDS_MAX {
        return Err(refused(
            "from",
            format!(
                "A statement covers at most {PERIOD_DAYS_MAX} days ({PERIOD_SECONDS_MAX} seconds): \
                 choose a later from."
            ),
        )
        .into());
    }
    let scope = context.scope();
    let statement = compose(context.tx, scope, from, to)?;
    let is_csv = values.iter().any(|(name, value)| {
        *name == "format" && *value == FilterValue::Text(StatementFormat::Csv.as_str().into())
    });
    if is_csv {
        return Ok((idempotency::CSV, statement.to_csv().into_bytes()));
    }
    Ok((idempotency::JSON, route::json(&statement)?))
}
