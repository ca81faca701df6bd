//! The public pages of payment advices: the keys that verify their signatures, and the page that a
//! QR code leads to.

use std::sync::Arc;

use askama::Template;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;

use super::payer;
use crate::app_state::AppState;
use crate::http::dispatch::{self, Reply};
use crate::kernel::rupees::grouped;
use crate::kernel::{Code, Money, OperationError, Refusal, StoreError};
use crate::payment_advices::{self, signing};
use crate::payouts::state::PayoutStatus;
use crate::store::Cost;
use crate::{beneficiaries, payouts};

const TITLE: &str = "Payment advice";
/// How long the page waits after a fault of the service before it tries again, in seconds.
const RELOAD_SECONDS: u32 = 15;

/// The page of the request's path, if it is one of these.
pub async fn answer(
    app: &Arc<AppState>,
    request_id: &str,
    request: &Request<Incoming>,
) -> Option<Reply> {
    let path = request.uri().path();
    if path == payment_advices::KEY_SET_PATH {
        return Some(key_set(app, request_id).await);
    }
    let token = path.strip_prefix("/verify/")?;
    // Programs get the error shape of the API, people a page.
    let is_read_by_people = payer::accepts_html(request.headers());
    let mut reply = verify(app, request_id, token, is_read_by_people).await;
    payer::protect(&mut reply);
    Some(reply)
}

fn page(content_type: &'static str, body: String, cache: &'static str) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    reply
}

fn refuse(request_id: &str, failure: OperationError) -> Reply {
    match failure {
        OperationError::Refused(refusal) => dispatch::refusal_reply(request_id, refusal),
        OperationError::Declined(_) | OperationError::Store(_) => {
            tracing::error!(request_id, reason = %failure, "cannot make a page about a payment \
             advice; answered 503");
            dispatch::refusal_reply(request_id, Refusal::unavailable())
        }
    }
}

/// The public halves of all keys, as a JWK set. A new key is seen within minutes.
async fn key_set(app: &Arc<AppState>, request_id: &str) -> Reply {
    let services = app.services.clone();
    let read =
        app.store.read(Cost::Point, move |tx| Ok(signing::public_keys(tx, &services.sealer)?));
    match dispatch::within(app, dispatch::answer_end(), read).await {
        Ok(keys) => page(
            "application/jwk-set+json",
            signing::key_set(&keys).to_string(),
            "public, max-age=300",
        ),
        Err(failure) => refuse(request_id, failure),
    }
}

/// What the page certifies: nothing that could not be read on the advice itself, and no name.
struct CertifiedAdvice {
    amount: Money,
    settled_at: Option<i64>,
    returned_at: Option<i64>,
    reference: String,
    account_number_last4: String,
    livemode: bool,
}

#[derive(Template)]
#[template(path = "pages/verification.html")]
struct VerificationTemplate<'a> {
    css: &'static str,
    headline: &'static str,
    advice: &'a CertifiedAdvice,
    amount: String,
    settled_at: String,
    returned_at: Option<String>,
}

async fn verify(
    app: &Arc<AppState>,
    request_id: &str,
    token: &str,
    is_read_by_people: bool,
) -> Reply {
    let Some(id) = payment_advices::verified_token(&app.services, token) else {
        return not_verified(request_id, not_found().into(), is_read_by_people);
    };
    let found = app.store.read(Cost::Point, move |tx| {
        let payout = payouts::rows::find_anywhere(tx, id)?
            .filter(|payout| payout.advice_available_at.is_some())
            .ok_or_else(not_found)?;
        let beneficiary = beneficiaries::rows::find(tx, payout.scope, payout.beneficiary_id)?;
        let beneficiary = beneficiary
            .ok_or_else(|| StoreError::Broken(format!("{id} has lost its beneficiary")))?;
        Ok(CertifiedAdvice {
            amount: payout.amount,
            settled_at: payout.settled_at,
            returned_at: payout.status_history.last_at(PayoutStatus::Returned),
            reference: payout.unique_transaction_reference.unwrap_or_default(),
            account_number_last4: beneficiary.account_number_last4,
            livemode: payout.scope.livemode(),
        })
    });
    let found = dispatch::within(app, dispatch::answer_end(), found).await;
    let html = found.and_then(|advice| {
        html(&advice).map_err(|error| {
            StoreError::Broken(format!("the verification page cannot be drawn: {error}")).into()
        })
    });
    match html {
        Ok(html) => page("text/html; charset=utf-8", html, "no-store"),
        Err(failure) => not_verified(request_id, failure, is_read_by_people),
    }
}

fn not_found() -> Refusal {
    Refusal::new(
        Code::ObjectNotFound,
        "No such page. Check the address against the one on the payment advice.",
    )
}

/// Why an advice is not verified, as a page for people.
fn not_verified(request_id: &str, failure: OperationError, is_read_by_people: bool) -> Reply {
    if !is_read_by_people {
        return refuse(request_id, failure);
    }
    if matches!(failure, OperationError::Refused(_)) {
        let text = "This server has made no payment advice with this address. Open the whole \
                    address, without a character missing at its end, or scan the code on the \
                    document again. If it still does not open, do not rely on the document: ask \
                    whoever gave it to you, or the beneficiary's bank with the reference (UTR).";
        return payer::message(StatusCode::NOT_FOUND, TITLE, "Not verified", text, None);
    }
    tracing::error!(request_id, reason = %failure, "cannot show the page of a payment advice");
    let text = "This is a fault of ours and says nothing about the document. The page tries again \
                by itself.";
    let headline = "The page cannot be shown right now";
    payer::message(StatusCode::SERVICE_UNAVAILABLE, TITLE, headline, text, Some(RELOAD_SECONDS))
}

fn html(advice: &CertifiedAdvice) -> Result<String, askama::Error> {
    let returned_at = advice.returned_at.map(payment_advices::indian_time);
    VerificationTemplate {
        css: payer::CSS,
        headline: if returned_at.is_some() { "Genuine, and sent back" } else { "Genuine" },
        advice,
        amount: format!("{} {}", advice.amount.currency.as_str(), grouped(advice.amount)),
        settled_at: advice.settled_at.map(payment_advices::indian_time).unwrap_or_default(),
        returned_at,
    }
    .render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Currency;

    #[test]
    fn the_page_escapes_what_others_wrote_and_says_what_is_wrong() {
        let mut certified = CertifiedAdvice {
            amount: Money::new(8_841_250, Currency::Inr),
            settled_at: Some(1_790_000_000),
            returned_at: None,
            reference: "<script>'\"&".into(),
            account_number_last4: "5678".into(),
            livemode: true,
        };
        let text = html(&certified).unwrap();
        assert!(text.contains("&#60;script&#62;&#39;&#34;&#38;") && !text.contains("<script"));
        assert!(
            text.contains("INR 88,412.50")
                && text.contains("5678")
                && text.contains("21 September 2026, 19:43:20 IST")
        );
        assert!(text.contains("<h2>Genuine</h2>") && text.contains("tone-good"));
        assert!(!text.contains("TEST") && !text.contains("sent this payment back"));
        certified.livemode = false;
        certified.returned_at = Some(1_790_000_001);
        let text = html(&certified).unwrap();
        assert!(text.contains("TEST") && text.contains("sent this payment back"));
        assert!(text.contains("tone-attention") && !text.contains("tone-good\""));
    }
}
