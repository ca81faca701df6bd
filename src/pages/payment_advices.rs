//! The public pages of payment advices: the keys that verify their signatures, and the page that a
//! QR code leads to.

use std::sync::Arc;

use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use http::{HeaderValue, Response};
use http_body_util::Full;

use crate::app_state::AppState;
use crate::http::dispatch::{self, Reply};
use crate::kernel::rupees::grouped;
use crate::kernel::{Code, Money, OperationError, Refusal, StoreError};
use crate::payment_advices::{self, signing};
use crate::payouts::state::PayoutStatus;
use crate::store::Cost;
use crate::{beneficiaries, payouts};

/// The page of this path, if it is one of these.
pub async fn answer(app: &Arc<AppState>, request_id: &str, path: &str) -> Option<Reply> {
    if path == payment_advices::KEY_SET_PATH {
        return Some(key_set(app, request_id).await);
    }
    match path.strip_prefix("/verify/") {
        Some(token) => Some(verify(app, request_id, token).await),
        None => None,
    }
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
            tracing::error!(request_id, reason = %failure, "a page about a payment advice cannot be \
             made; answered 503");
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
struct Certified {
    amount: Money,
    settled_at: Option<i64>,
    returned_at: Option<i64>,
    reference: String,
    account_number_last4: String,
    livemode: bool,
}

async fn verify(app: &Arc<AppState>, request_id: &str, token: &str) -> Reply {
    let not_found = || {
        Refusal::new(
            Code::ObjectNotFound,
            "No such page. Check the address against the one on the payment advice.",
        )
    };
    let Some(id) = payment_advices::verified_token(&app.services, token) else {
        return dispatch::refusal_reply(request_id, not_found());
    };
    let found = app.store.read(Cost::Point, move |tx| {
        let payout = payouts::rows::find_anywhere(tx, id)?
            .filter(|payout| payout.advice_available_at.is_some())
            .ok_or_else(not_found)?;
        let beneficiary = beneficiaries::rows::find(tx, payout.scope, payout.beneficiary_id)?;
        let beneficiary = beneficiary
            .ok_or_else(|| StoreError::Broken(format!("{id} has lost its beneficiary")))?;
        Ok(Certified {
            amount: payout.amount,
            settled_at: payout.settled_at,
            returned_at: payout.status_history.last_at(PayoutStatus::Returned),
            reference: payout.unique_transaction_reference.unwrap_or_default(),
            account_number_last4: beneficiary.account_number_last4,
            livemode: payout.scope.livemode(),
        })
    });
    match dispatch::within(app, dispatch::answer_end(), found).await {
        Err(failure) => refuse(request_id, failure),
        Ok(certified) => {
            let mut reply = page("text/html; charset=utf-8", html(&certified), "no-store");
            let policy = "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; \
             frame-ancestors 'none'; base-uri 'none'";
            reply.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
            reply.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
            reply.headers_mut().insert("x-robots-tag", HeaderValue::from_static("noindex"));
            reply
        }
    }
}

/// Text for HTML. References come from banks and the operator.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, letter| {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
        out
    })
}

fn html(certified: &Certified) -> String {
    let test =
        if certified.livemode { "" } else { "<p class=warning><b>TEST</b>: no money moved.</p>" };
    let date = certified.settled_at.map(payment_advices::indian_time).unwrap_or_default();
    let returned = certified.returned_at.map_or(String::new(), |at| {
        format!(
            "<p class=warning>The beneficiary's bank <b>sent this payment back</b> on {}.</p>",
            payment_advices::indian_time(at)
        )
    });
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport \
         content='width=device-width, initial-scale=1'>\
         <title>Payment advice</title><style>body{{font:16px/1.5 \
         system-ui,sans-serif;max-width:34rem;margin:2rem auto;padding:0 1rem}}\
         dt{{color:#555}}dd{{margin:0 0 \
         .75rem;font-size:1.1rem;font-weight:600;overflow-wrap:anywhere}}\
         .warning{{border-left:4px solid #b45309;padding-left:.75rem}}</style>\
         <h1>Payment advice</h1>{test}{returned}<p>This server certifies the following of the \
         payment, and nothing more. \
         Compare each with the document in your hands.</p>\
         <dl><dt>Amount</dt><dd>{} {}</dd><dt>Value date and \
         time</dt><dd>{date}</dd><dt>Reference (UTR)</dt><dd>{}</dd>\
         <dt>NRE account ending in</dt><dd>{}</dd></dl><p>A payment advice is not a FIRC or \
         FIRA.</p>",
        certified.amount.currency.as_str(),
        grouped(certified.amount),
        escaped(&certified.reference),
        escaped(&certified.account_number_last4),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Currency;

    #[test]
    fn the_page_escapes_what_others_wrote_and_says_what_is_wrong() {
        let mut certified = Certified {
            amount: Money::new(8_841_250, Currency::Inr),
            settled_at: Some(1_790_000_000),
            returned_at: None,
            reference: "<script>'\"&".into(),
            account_number_last4: "5678".into(),
            livemode: true,
        };
        let text = html(&certified);
        assert!(text.contains("&lt;script&gt;&#39;&quot;&amp;") && !text.contains("<script"));
        assert!(
            text.contains("INR 88,412.50")
                && text.contains("5678")
                && text.contains("21 September 2026, 19:43:20 IST")
        );
        assert!(!text.contains("TEST") && !text.contains("sent this payment back"));
        certified.livemode = false;
        certified.returned_at = Some(1_790_000_001);
        let text = html(&certified);
        assert!(text.contains("TEST") && text.contains("sent this payment back"));
    }
}
