//! Payment advices over HTTP.

use super::Advice;
use crate::http::route::{self, Context, PdfAnswer, Route};
use crate::kernel::{Code, OperationError, Refusal, StoreError};
use crate::payouts::api::locate;

impl PdfAnswer for Advice {
    fn to_pdf(&self) -> Result<Vec<u8>, StoreError> {
        Advice::to_pdf(self)
    }
}

pub fn routes() -> Vec<Route> {
    vec![
        route::document(
            "/v1/payouts/{id}/payment_advice",
            "Get the payment advice, as JSON or PDF",
            payment_advice,
        )
        .codes(&[Code::PaymentAdviceNotReady]),
    ]
}

fn payment_advice(context: &mut Context<'_>) -> Result<Advice, OperationError> {
    let payout = locate(context)?;
    if payout.advice_available_at.is_none() {
        return Err(Refusal::new(
            Code::PaymentAdviceNotReady,
            "The payment advice is made when the payout has settled. Wait for the event \
             payout.payment_advice.available.",
        )
        .into());
    }
    Ok(super::compose(context.tx, context.services, &payout)?)
}
