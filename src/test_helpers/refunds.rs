//! The helper that confirms a refund on the simulated chain.

use crate::http::form::Nothing;
use crate::http::route::{self, Context, Route};
use crate::kernel::state::Status;
use crate::kernel::{Code, OperationError, Refusal, StoreError};
use crate::refunds::Refund;
use crate::refunds::api::{RefundView, locate, view};
use crate::refunds::state::RefundStatus;
use crate::transfers::{self, refunding};

pub fn routes() -> Vec<Route> {
    vec![
        route::post(
            "/v1/test_helpers/refunds/{id}/complete",
            "Let a refund be confirmed on chain",
            locate,
            complete,
        )
        .codes(&[Code::TestHelperNotApplicable]),
    ]
}

fn complete(
    context: &mut Context<'_>,
    mut found: Refund,
    _: Nothing,
) -> Result<RefundView, OperationError> {
    if found.status != RefundStatus::Processing {
        let message = format!(
            "The refund is {} and not processing. A refund in requires_address needs an address \
             first: POST /v1/refunds/:id with to_address.",
            found.status.as_str()
        );
        return Err(Refusal::new(Code::TestHelperNotApplicable, message).into());
    }
    let transfer = transfers::rows::find(context.tx, found.scope, found.transfer_id)?
        .ok_or_else(|| StoreError::Broken(format!("{} has lost its transfer", found.id)))?;
    let message = if !transfer.is_simulated(context.services) {
        "The refund is on a chain that is not simulated here: the operator sends it, and the chain \
         confirms it."
    } else if found.is_held_by_screening {
        "The refund is held by screening: the operator decides about its address first."
    } else if found.bank_hold_reason.is_some() {
        "The refund is held because of what the bank reported of its payout: the operator has to \
         release it first."
    } else {
        ""
    };
    if !message.is_empty() {
        return Err(Refusal::new(Code::TestHelperNotApplicable, message).into());
    }
    refunding::confirm_simulated(context.tx, context.now, &mut found)?;
    Ok(view(found))
}
