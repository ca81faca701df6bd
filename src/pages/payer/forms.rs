//! The forms of the payer's page. They need no API key: whoever has the page's link can send them.
//! A form is refused if the browser says that it comes from another site.

use std::sync::Arc;

use http::header::{CONTENT_TYPE, HOST, ORIGIN};
use http::{HeaderMap, HeaderName, Request, StatusCode};
use hyper::body::Incoming;

use super::sent::SentForm;
use super::{message, not_found, refund_address, simulate_payment, unavailable};
use crate::app_state::AppState;
use crate::http::dispatch::Reply;
use crate::http::incoming::{read_body, single};
use crate::kernel::OperationError;
use crate::pages::frame::{PageFrame, protect};
use crate::pages::words::{PageWords, chosen};
use crate::transfers;

const FORM_TYPE: &str = "application/x-www-form-urlencoded";
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

crate::string_enum!(
    /// What a form does. The word is the last part of its path.
    PayerForm { RefundAddress "refund_address", SimulatePayment "simulate_payment" }
);

/// Answers a form.
pub async fn answer(
    app: &Arc<AppState>,
    request_id: &str,
    request: Request<Incoming>,
    token: &str,
    form: PayerForm,
) -> Reply {
    let words = chosen(request.uri().query(), request.headers());
    let frame = PageFrame::narrow(&app.services.settings.issuers.default);
    let mut reply = match take(app, request, token, form, words, &frame).await {
        Ok(Some(reply)) => reply,
        Ok(None) => not_found(request_id, Some(words), &frame),
        Err(failure) => unavailable(request_id, Some(words), &frame, &failure),
    };
    // The answer to the form for a refund's address has these headers already. They allow the
    // colours of the account's own issuer, so they must stay.
    if !reply.headers().contains_key(http::header::CONTENT_SECURITY_POLICY) {
        protect(&mut reply, Some(&frame));
    }
    reply
}

async fn take(
    app: &Arc<AppState>,
    request: Request<Incoming>,
    token: &str,
    form: PayerForm,
    words: &'static PageWords,
    frame: &PageFrame,
) -> Result<Option<Reply>, OperationError> {
    let (head, incoming) = request.into_parts();
    if !is_from_the_page(&head.headers, &app.services.settings.public_url) {
        let said = (words.form_foreign_title.as_str(), words.form_foreign_text.as_str());
        return Ok(Some(message(StatusCode::FORBIDDEN, words, frame, said, None)));
    }
    let Some(id) = transfers::api::transfer_of_payer_link(&app.services, token) else {
        return Ok(None);
    };
    let body = read_body(&head, incoming).await?;
    let sent = SentForm { id, token, words, body };
    match form {
        PayerForm::RefundAddress => refund_address::take(app, &sent).await,
        PayerForm::SimulatePayment => simulate_payment::take(app, &sent).await,
    }
}

/// Whether a request has a form's content type and, as far as the browser says, comes from the page
/// itself. If the browser says nothing, the token in the path is enough: the page asks browsers to
/// send no referrer, and some then send no origin either.
fn is_from_the_page(headers: &HeaderMap, public_url: &str) -> bool {
    let text = |name| single(headers, name).and_then(|value| value.to_str().ok());
    let is_form = text(&CONTENT_TYPE)
        .is_some_and(|kind| kind.split(';').next().unwrap_or("").trim() == FORM_TYPE);
    let is_same_origin = match (text(&FETCH_SITE), text(&ORIGIN)) {
        (Some(site), _) => site == "same-origin",
        (None, None | Some("null")) => true,
        (None, Some(origin)) => {
            let public = url::Url::parse(public_url).map(|url| url.origin().ascii_serialization());
            let host = origin.split_once("://").map(|(_, host)| host);
            public.is_ok_and(|public| public == origin) || (host.is_some() && host == text(&HOST))
        }
    };
    is_form && is_same_origin
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_form_from_elsewhere_is_not_taken() {
        let public = "https://pay.example.com/hundi";
        let judged = |pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(FORM_TYPE));
            headers.insert(HOST, HeaderValue::from_static("pay.internal:8080"));
            for (name, value) in pairs {
                headers.insert(*name, value.parse().unwrap());
            }
            is_from_the_page(&headers, public)
        };
        for taken in [
            &[] as &[_],
            &[("sec-fetch-site", "same-origin"), ("origin", "null")],
            &[("origin", "null")],
            &[("origin", "https://pay.example.com")],
            &[("origin", "http://pay.internal:8080")],
            &[("content-type", "application/x-www-form-urlencoded; charset=utf-8")],
        ] {
            assert!(judged(taken), "{taken:?}");
        }
        for refused in [
            &[("sec-fetch-site", "cross-site")] as &[_],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "none")],
            &[("sec-fetch-site", "cross-site"), ("origin", "https://pay.example.com")],
            &[("origin", "https://evil.example")],
            &[("origin", "https://pay.example.com.evil.example")],
            &[("content-type", "text/plain")],
            &[("content-type", "multipart/form-data")],
        ] {
            assert!(!judged(refused), "{refused:?}");
        }
    }
}
