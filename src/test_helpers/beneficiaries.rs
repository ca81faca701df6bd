//! Helpers that end a simulated verification.

use crate::beneficiaries::api::{BeneficiaryView, locate, view};
use crate::beneficiaries::{self, Beneficiary, VerificationDecision};
use crate::http::form::Nothing;
use crate::http::route::{self, Context, Route};
use crate::kernel::state::Status;
use crate::kernel::{Code, OperationError, Refusal};
use crate::transfers::paying;

pub fn routes() -> Vec<Route> {
    const CODES: &[Code] = &[Code::TestHelperNotApplicable];
    vec![
        route::post(
            "/v1/test_helpers/beneficiaries/{id}/activate",
            "Let a verification pass, or enable payouts again",
            locate,
            |context, found, _: Nothing| decide(context, found, VerificationDecision::Activate),
        )
        .codes(CODES),
        route::post(
            "/v1/test_helpers/beneficiaries/{id}/require_input",
            "Let a verification ask for input",
            locate,
            |context, found, _: Nothing| decide(context, found, VerificationDecision::RequireInput),
        )
        .codes(CODES),
        route::post(
            "/v1/test_helpers/beneficiaries/{id}/reject",
            "Let a verification reject the beneficiary",
            locate,
            |context, found, _: Nothing| decide(context, found, VerificationDecision::Reject),
        )
        .codes(CODES),
    ]
}

fn decide(
    context: &mut Context<'_>,
    mut found: Beneficiary,
    decision: VerificationDecision,
) -> Result<BeneficiaryView, OperationError> {
    let was_payable = found.is_payable();
    if !beneficiaries::decide(context.tx, context.now, &mut found, decision)? {
        let also = match decision {
            VerificationDecision::Activate => ", or active with payouts disabled",
            VerificationDecision::RequireInput | VerificationDecision::Reject => "",
        };
        let message = format!(
            "The beneficiary is {}; this helper needs one that is verifying{also}. An account \
             number that ends in 0004 keeps a beneficiary in verifying.",
            found.status.as_str()
        );
        return Err(Refusal::new(Code::TestHelperNotApplicable, message).into());
    }
    if !was_payable && found.is_payable() {
        paying::resume_held(context.tx, context.now, found.scope, found.id)?;
    }
    Ok(view(found))
}
