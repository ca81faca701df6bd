//! Payouts over HTTP.

use schemars::JsonSchema;
use serde::Serialize;

use super::state::PayoutStatus;
use super::{Payout, PayoutFailure, rows};
use crate::http::query::{self, CREATED_FILTERS, Filter, FilterKind};
use crate::http::route::{self, Context, List, Route};
use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::{Currency, Id, Money, ObjectKind, OperationError, Refusal};
use crate::rails::PaymentMethod;

crate::string_enum!(PayoutWord { Payout "payout" });
crate::string_enum!(
    /// Whether the payment advice is ready.
    AdviceStatus { Pending "pending", Available "available" }
);

/// Whether the payment advice is available, and where it is.
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
    pub method: PaymentMethod,
    pub purpose_code: String,
    pub unique_transaction_reference: Option<String>,
    pub waits_until: Option<i64>,
    pub settled_at: Option<i64>,
    pub failure: Option<PayoutFailure>,
    pub payment_advice: PaymentAdvice,
    pub created: i64,
    pub livemode: bool,
}

fn view(payout: Payout, waits_until: Option<i64>, public_url: &str) -> PayoutView {
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
        waits_until,
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
    Filter::new("status", FilterKind::Word(query::status_words::<PayoutStatus>)),
    Filter::new("transfer_id", FilterKind::Id(ObjectKind::Transfer)),
    Filter::new("beneficiary_id", FilterKind::Id(ObjectKind::Beneficiary)),
    Filter::new("unique_transaction_reference", FilterKind::Text),
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
            view_with_bank_wait(context, found)
        }),
    ]
}

/// The view of a payout, with the moment until which the payout waits for the bank's hours, and
/// with links that begin at the configured public URL.
pub fn view_with_bank_wait(
    context: &mut Context<'_>,
    payout: Payout,
) -> Result<PayoutView, OperationError> {
    let services = context.services;
    // Only a payout that is `processing` can wait for the hours of its payment method: before, the
    // rail does not have its instruction, and afterwards the bank has reported.
    let waits_until = match (payout.status, services.ports(payout.scope.mode())) {
        (PayoutStatus::Processing, Ok(ports)) => {
            ports.rail.waits_until(context.tx, context.now.instant(), payout.id)?
        }
        _ => None,
    };
    Ok(view(payout, waits_until, &services.settings.public_url))
}

/// The payout that the path names; a refusal if the account has no such payout in this mode.
pub fn locate(context: &mut Context<'_>) -> Result<Payout, OperationError> {
    let scope = context.scope();
    let id = context.path_id()?;
    Ok(rows::find(context.tx, scope, id)?.ok_or_else(Refusal::not_found)?)
}

fn index(context: &mut Context<'_>, _: (), page: Page) -> Result<List<PayoutView>, OperationError> {
    let scope = context.scope();
    let rows = rows::list(context.tx, scope, &page)?;
    let found = List::map(rows, rows::read)?;
    let payouts = found.data.into_iter().map(|payout| view_with_bank_wait(context, payout));
    Ok(List::new(payouts.collect::<Result<_, _>>()?, found.has_next))
}
