//! The public pages of payment advices: the keys that verify their signatures, and the page that a
//! QR code leads to.

use std::sync::Arc;

use askama::Template;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;

use super::frame::{CSS, PageFrame, protect};
use super::payer;
use super::words::{PageWords, chosen, languages};
use crate::app_state::AppState;
use crate::http::dispatch::{self, Reply, ReplyBody};
use crate::issuers::Issuer;
use crate::kernel::rupees::grouped;
use crate::kernel::{Code, Money, OperationError, Refusal, StoreError};
use crate::payment_advices::{self, signing};
use crate::payouts::state::PayoutStatus;
use crate::store::Cost;
use crate::{beneficiaries, payouts};

/// After how many seconds a page about a fault of the service reloads itself.
const RELOAD_SECONDS: u32 = 15;

/// Answers a request whose path is that of a page in this file; otherwise `None`.
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
    // A refusal is a page for people, and has the error shape of the API for programs.
    let words = chosen(request.uri().query(), request.headers());
    let reader = payer::accepts_html(request.headers()).then_some(words);
    Some(verify(app, request_id, token, reader, words).await)
}

fn page(content_type: &'static str, body: String, cache: &'static str) -> Reply {
    let mut reply = Response::new(ReplyBody::whole(body));
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    reply
}

fn refuse(request_id: &str, failure: OperationError) -> Reply {
    match failure {
        OperationError::Refused(refusal) => dispatch::refusal_reply(request_id, refusal),
        OperationError::Declined(_) | OperationError::Store(_) => {
            tracing::error!(request_id, reason = %failure, "cannot answer a request about payment \
             advices; answered 503");
            dispatch::refusal_reply(request_id, Refusal::unavailable())
        }
    }
}

/// The public halves of all keys that sign payment advices, as a JWK set. Caches may keep it for
/// five minutes, and then lack a newer key for that long.
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

/// The facts on the verification page. The only name among them is the issuer's.
struct VerifiedAdvice {
    issuer: Issuer,
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
    frame: &'a PageFrame,
    words: &'static PageWords,
    languages: &'static [PageWords],
    headline: &'static str,
    text: String,
    advice: &'a VerifiedAdvice,
    amount: String,
    settled_at: String,
}

/// Answers the verification page; if that is not possible, what [`not_verified`] answers.
async fn verify(
    app: &Arc<AppState>,
    request_id: &str,
    token: &str,
    reader: Option<&'static PageWords>,
    words: &'static PageWords,
) -> Reply {
    let default = PageFrame::narrow(&app.services.settings.issuers.default);
    let failed = |failure: OperationError| {
        let mut reply = not_verified(request_id, failure, reader, &default);
        protect(&mut reply, Some(&default));
        reply
    };
    let Some(id) = payment_advices::payout_of_verification_token(&app.services, token) else {
        return failed(not_found().into());
    };
    let services = app.services.clone();
    let found = app.store.read(Cost::Point, move |tx| {
        let payout = payouts::rows::find_anywhere(tx, id)?
            .filter(|payout| payout.advice_available_at.is_some())
            .ok_or_else(not_found)?;
        let beneficiary = beneficiaries::rows::find(tx, payout.scope, payout.beneficiary_id)?;
        let beneficiary = beneficiary
            .ok_or_else(|| StoreError::Broken(format!("{id} has lost its beneficiary")))?;
        Ok(VerifiedAdvice {
            issuer: services.settings.issuers.of_scope(tx, payout.scope)?.clone(),
            amount: payout.amount,
            settled_at: payout.settled_at,
            returned_at: payout.status_history.last_at(PayoutStatus::Returned),
            reference: payout.unique_transaction_reference.unwrap_or_default(),
            account_number_last4: beneficiary.account_number_last4,
            livemode: payout.scope.livemode(),
        })
    });
    let found = dispatch::within(app, dispatch::answer_end(), found).await;
    let drawn = found.and_then(|advice| {
        let frame = PageFrame::narrow(&advice.issuer);
        let html = html(&advice, &frame, words).map_err(|error| {
            StoreError::Broken(format!("the verification page cannot be drawn: {error}"))
        })?;
        Ok((frame, html))
    });
    match drawn {
        Ok((frame, html)) => {
            let mut reply = page("text/html; charset=utf-8", html, "no-store");
            protect(&mut reply, Some(&frame));
            reply
        }
        Err(failure) => failed(failure),
    }
}

fn not_found() -> Refusal {
    Refusal::new(
        Code::ObjectNotFound,
        "No such page. Check the address against the one on the payment advice.",
    )
}

/// Answers that an advice is not verified or cannot be shown: with a page for people, with a
/// refusal for programs. `reader` is the language of the person who reads it; `None` for a program.
fn not_verified(
    request_id: &str,
    failure: OperationError,
    reader: Option<&'static PageWords>,
    frame: &PageFrame,
) -> Reply {
    let Some(words) = reader else { return refuse(request_id, failure) };
    if matches!(failure, OperationError::Refused(_)) {
        let said = (words.verify_wrong_title.as_str(), words.verify_wrong_text.as_str());
        return payer::message(StatusCode::NOT_FOUND, words, frame, said, None);
    }
    tracing::error!(request_id, reason = %failure, "cannot show the page of a payment advice");
    let said = (words.unavailable_title.as_str(), words.verify_unavailable_text.as_str());
    payer::message(StatusCode::SERVICE_UNAVAILABLE, words, frame, said, Some(RELOAD_SECONDS))
}

fn html(
    advice: &VerifiedAdvice,
    frame: &PageFrame,
    words: &'static PageWords,
) -> Result<String, askama::Error> {
    let (headline, text) = match advice.returned_at {
        Some(_) => (&words.verify_returned_title, &words.verify_returned_text),
        None => (&words.verify_title, &words.verify_text),
    };
    let time = advice.returned_at.map(payment_advices::indian_time).unwrap_or_default();
    VerificationTemplate {
        css: CSS,
        frame,
        words,
        languages: languages(),
        headline,
        text: words.fill(text, &[("issuer", &advice.issuer.name), ("time", &time)]),
        advice,
        amount: format!("{} {}", advice.amount.currency.as_str(), grouped(advice.amount)),
        settled_at: advice.settled_at.map(payment_advices::indian_time).unwrap_or_default(),
    }
    .render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Currency;
    use crate::pages::words::english;

    #[test]
    fn the_page_escapes_texts_and_says_that_a_payment_came_back() {
        let html = |advice: &VerifiedAdvice| {
            super::html(advice, &PageFrame::narrow(&advice.issuer), english())
        };
        let mut certified = VerifiedAdvice {
            issuer: Issuer { name: "A & B".into(), ..Issuer::default() },
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
        assert!(text.contains(">Genuine</h1>") && text.contains("card tone-good"));
        assert!(text.contains("A &#38; B made this payment advice"), "{text}");
        assert!(!text.contains("Test mode") && !text.contains("sent the payment back"));
        certified.livemode = false;
        certified.returned_at = Some(1_790_000_001);
        let text = html(&certified).unwrap();
        assert!(text.contains("Test mode") && text.contains("sent the payment back"));
        assert!(text.contains("card tone-attention") && !text.contains("card tone-good"));
    }
}
