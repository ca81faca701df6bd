//! Helpers that speak for the simulated bank.

use crate::http::fields::{ClosedWords, EnumField};
use crate::http::form::Nothing;
use crate::http::route::{self, Context, Route};
use crate::kernel::state::Status;
use crate::kernel::{Code, OperationError, Refusal};
use crate::payouts::Payout;
use crate::payouts::api::{PayoutView, locate, view_with_bank_wait};
use crate::payouts::state::PayoutStatus;
use crate::rails::{BankReport, FailureCode, FailureSource, simulated};
use crate::transfers::paying;

/// Why a bank refuses a payment or sends it back: every failure code except `outcome_unknown`.
#[derive(Clone, Copy)]
pub struct ReportedCode(FailureCode);

impl ClosedWords for ReportedCode {
    fn words() -> Vec<&'static str> {
        FailureCode::ALL
            .iter()
            .filter(|code| **code != FailureCode::OutcomeUnknown)
            .map(|code| code.as_str())
            .collect()
    }
    fn find(text: &str) -> Option<Self> {
        FailureCode::parse(text)
            .filter(|code| *code != FailureCode::OutcomeUnknown)
            .map(ReportedCode)
    }
}

crate::form! {
    /// Lets a payout fail or come back, optionally for a reason.
    SimulateFailure {
        code: Option<EnumField<ReportedCode>>,
    }
}

/// Who finds a failure with this code, as in the files of real banks.
const fn source(code: FailureCode) -> FailureSource {
    match code {
        FailureCode::ComplianceRejected
        | FailureCode::IfscInvalid
        | FailureCode::TechnicalError => FailureSource::SponsorBank,
        _ => FailureSource::BeneficiaryBank,
    }
}

pub fn routes() -> Vec<Route> {
    const CODES: &[Code] = &[Code::TestHelperNotApplicable];
    vec![
        route::post(
            "/v1/test_helpers/payouts/{id}/settle",
            "Let the bank settle a payout",
            locate,
            |context, found, _: Nothing| {
                let unique_transaction_reference = simulated::reference(found.id, found.method);
                report(
                    context,
                    found,
                    PayoutStatus::Processing,
                    BankReport::Settled { unique_transaction_reference },
                )
            },
        )
        .codes(CODES),
        route::post(
            "/v1/test_helpers/payouts/{id}/fail",
            "Let the bank refuse a payout",
            locate,
            |context, found, form: SimulateFailure| {
                let code = form.code.map_or(FailureCode::AccountClosed, |word| word.0.0);
                report(
                    context,
                    found,
                    PayoutStatus::Processing,
                    BankReport::Failed { code, source: source(code) },
                )
            },
        )
        .codes(CODES),
        route::post(
            "/v1/test_helpers/payouts/{id}/return",
            "Let the bank send a settled payout back",
            locate,
            |context, found, form: SimulateFailure| {
                let code =
                    form.code.map_or(FailureCode::ReturnedByBeneficiaryBank, |word| word.0.0);
                report(
                    context,
                    found,
                    PayoutStatus::Settled,
                    BankReport::Returned { code, source: source(code) },
                )
            },
        )
        .codes(CODES),
    ]
}

fn report(
    context: &mut Context<'_>,
    mut found: Payout,
    wanted: PayoutStatus,
    report: BankReport,
) -> Result<PayoutView, OperationError> {
    if found.status != wanted {
        let way = match wanted {
            PayoutStatus::Processing => {
                "An account number that ends in 1003 keeps a payout in \
                                         processing."
            }
            _ => "Settle it first, with POST /v1/test_helpers/payouts/{id}/settle.",
        };
        let message =
            format!("The payout is {} and not {}. {way}", found.status.as_str(), wanted.as_str());
        return Err(Refusal::new(Code::TestHelperNotApplicable, message).into());
    }
    paying::apply_report(context.tx, context.now, context.services, &mut found, report)?;
    view_with_bank_wait(context, found)
}
