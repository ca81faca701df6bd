//! Payouts over HTTP.

use schemars::JsonSchema;
use serde::Serialize;

use super::state::PayoutStatus;
use super::{Payout, PayoutFailure, advice, rows};
use crate::http::fields::{Word, Words};
use crate::http::form::Nothing;
use crate::http::query::{self, CREATED_FILTERS, Filter, FilterKind};
use crate::http::route::{self, Context, List, Route};
use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::state::Status;
use crate::kernel::{Code, Currency, Failure, Id, Money, ObjectKind, Refusal};
use crate::rails::{BankReport, FailureCode, FailureSource, Method, simulated};
use crate::transfers::paying;

crate::words!(PayoutWord { Payout "payout" });
crate::words!(
    /// Whether the payment advice is ready.
    AdviceStatus { Pending "pending", Available "available" }
);

/// Why a bank refuses a payment or sends it back: every failure but an outcome that is not known.
#[derive(Clone, Copy)]
pub struct ReportedCode(FailureCode);

impl Words for ReportedCode {
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
        code: Option<Word<ReportedCode>>,
    }
}

/// Where the payment advice is.
#[derive(Serialize, JsonSchema)]
pub struct PaymentAdvice {
    pub status: AdviceStatus,
    pub available_at: Option<i64>,
    pub url: Option<String>,
}

/// The INR leg of a transfer.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Payout")]
pub struct PayoutView {
    pub object: PayoutWord,
    pub id: Id<kind::Payout>,
    pub transfer_id: Id<kind::Transfer>,
    pub beneficiary_id: Id<kind::Beneficiary>,
    pub status: PayoutStatus,
    pub amount: Money,
    pub currency: Currency,
    pub method: Method,
    pub purpose_code: String,
    pub unique_transaction_reference: Option<String>,
    pub settled_at: Option<i64>,
    pub failure: Option<PayoutFailure>,
    pub payment_advice: PaymentAdvice,
    pub created: i64,
    pub livemode: bool,
}

pub fn view(payout: Payout, public_url: &str) -> PayoutView {
    let available_at = payout.advice_available_at;
    PayoutView {
        object: PayoutWord::Payout,
        id: payout.id,
        transfer_id: payout.transfer_id,
        beneficiary_id: payout.beneficiary_id,
        status: payout.status,
        amount: payout.amount,
        currency: payout.amount.currency,
        method: payout.method,
        purpose_code: payout.purpose_code,
        unique_transaction_reference: payout.unique_transaction_reference,
        settled_at: payout.settled_at,
        failure: payout.failure,
        payment_advice: PaymentAdvice {
            status: if available_at.is_some() {
                AdviceStatus::Available
            } else {
                AdviceStatus::Pending
            },
            available_at,
            url: available_at
                .map(|_| format!("{public_url}/v1/payouts/{}/payment_advice", payout.id)),
        },
        created: payout.created,
        livemode: payout.scope.livemode(),
    }
}

const FILTERS: &[Filter] = &[
    CREATED_FILTERS[0],
    CREATED_FILTERS[1],
    CREATED_FILTERS[2],
    CREATED_FILTERS[3],
    Filter::new("status", FilterKind::Word(query::status_words::<PayoutStatus>), "status = ?"),
    Filter::new("transfer_id", FilterKind::Id(ObjectKind::Transfer), "transfer_id = ?"),
    Filter::new("beneficiary_id", FilterKind::Id(ObjectKind::Beneficiary), "beneficiary_id = ?"),
    Filter::new(
        "unique_transaction_reference",
        FilterKind::Text,
        "unique_transaction_reference = ?",
    ),
];

pub fn routes() -> Vec<Route> {
    vec![
        route::list(
            "/v1/payouts",
            "List payouts",
            ObjectKind::Payout,
            FILTERS,
            route::nothing,
            index,
        ),
        route::get("/v1/payouts/{id}", "Get a payout", |context| {
            let found = locate(context)?;
            Ok(shown(context, found))
        }),
        route::document(
            "/v1/payouts/{id}/payment_advice",
            "Get the payment advice, as JSON or PDF",
            payment_advice,
        )
        .codes(&[Code::PaymentAdviceNotReady]),
    ]
}

pub fn helper_routes() -> Vec<Route> {
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
                    BankReport::Failed { code, source: FailureSource::BeneficiaryBank },
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
                    BankReport::Returned { code, source: FailureSource::BeneficiaryBank },
                )
            },
        )
        .codes(CODES),
    ]
}

fn shown(context: &Context<'_>, payout: Payout) -> PayoutView {
    view(payout, &context.world.settings.public_url)
}

fn locate(context: &mut Context<'_>) -> Result<Payout, Failure> {
    let scope = context.scope();
    let id = context.path_id()?;
    Ok(rows::find(context.tx, scope, id)?.ok_or_else(Refusal::not_found)?)
}

fn index(context: &mut Context<'_>, _: (), page: Page) -> Result<List<PayoutView>, Failure> {
    let scope = context.scope();
    let rows = rows::list(context.tx, scope, &page)?;
    Ok(List::map(rows, |row| Ok(view(rows::read(row)?, &context.world.settings.public_url)))?)
}

fn payment_advice(context: &mut Context<'_>) -> Result<advice::Advice, Failure> {
    let payout = locate(context)?;
    if payout.advice_available_at.is_none() {
        return Err(Refusal::new(
            Code::PaymentAdviceNotReady,
            "The payment advice is made when the payout has settled.",
        )
        .into());
    }
    Ok(advice::compose(context.tx, context.world, &payout)?)
}

fn report(
    context: &mut Context<'_>,
    mut found: Payout,
    wanted: PayoutStatus,
    report: BankReport,
) -> Result<PayoutView, Failure> {
    if found.status != wanted {
        let message =
            format!("The payout is {} and not {}.", found.status.as_str(), wanted.as_str());
        return Err(Refusal::new(Code::TestHelperNotApplicable, message).into());
    }
    paying::apply_report(context.tx, context.now, context.world, &mut found, report)?;
    Ok(shown(context, found))
}
