//! A form that came from the payer's page, and the way back to it.

use bytes::Bytes;
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};

use super::with_body;
use crate::http::dispatch::Reply;
use crate::kernel::Id;
use crate::kernel::id::kind;
use crate::pages::words::PageWords;

/// A form that came from the page, and the transfer that the page's token names.
pub(super) struct SentForm<'a> {
    pub(super) id: Id<kind::Transfer>,
    pub(super) token: &'a str,
    pub(super) words: &'static PageWords,
    pub(super) body: Bytes,
}

/// Redirects back to the page, which shows the new state.
pub(super) fn back_to_page(sent: &SentForm<'_>) -> Reply {
    to_page(sent.token, sent.words)
}

/// Leads from the address of a form to the page of its token.
pub(super) fn to_page(token: &str, words: &PageWords) -> Reply {
    let mut reply = with_body(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", "");
    let page = format!("../{token}?lang={}", words.code);
    if let Ok(page) = HeaderValue::from_str(&page) {
        reply.headers_mut().insert(LOCATION, page);
    }
    reply
}
