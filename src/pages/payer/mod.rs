//! The page that a payer is sent to: `GET /pay/{token}`, and its state as JSON, `GET
//! /pay/{token}/state`.
//!
//! The page needs nothing from elsewhere. Styles and script stand in it and are named by their
//! hashes in the Content-Security-Policy; without the script it reloads itself. `view` decides
//! every word on it, so that what the server draws and what the script puts in its place are the
//! same.
//!
//! It shows what a payer needs to pay, and nothing of the beneficiary or the sender.

mod explanation;
mod qr;
pub mod refund_address;
mod rows;
mod timeline;
pub mod view;

use std::sync::{Arc, LazyLock};

use askama::Template;
use base64::Engine;
use bytes::Bytes;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, RETRY_AFTER,
};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use sha2::{Digest, Sha256};

use self::view::{PageFacts, PayView, StepState};
use crate::app_state::AppState;
use crate::http::dispatch::{self, Reply};
use crate::kernel::id::{Minter, kind};
use crate::kernel::page::{FilterValue, Page};
use crate::kernel::{Code, Id, Now, OperationError, Refusal, StoreError};
use crate::store::Cost;
use crate::store::Tx;
use crate::transfers::{self, Transfer};
use crate::{deposits, keys, refunds};

/// The newest deposits and refunds that the page tells of. Sums on the page count all.
const ROWS_SHOWN_MAX: i64 = 20;
/// How often the page reloads itself where scripts are off, in seconds.
const RELOAD_SECONDS: u32 = 15;

pub(super) const CSS: &str = include_str!("page.css");
const JS: &str = include_str!("page.js");

/// Nothing is loaded from anywhere; the only request is the script's, for the state. `data:` is for
/// the empty icon, which keeps browsers from asking for `/favicon.ico`.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = |text: &str| {
        base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text.as_bytes()))
    };
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; \
         connect-src 'self'; base-uri 'none'; \
         form-action 'self'; frame-ancestors 'none'",
        hash(JS),
        hash(CSS)
    )
});

/// What a payer has to know of a chain and of the address on it.
pub struct ChainFacts {
    /// The chain's name as wallets and exchanges show it.
    pub name: String,
    /// The token's word, such as `USDT`.
    pub asset: String,
    pub token_contract: String,
    pub address: String,
}

/// The only place here that knows where chain facts come from: the transfer, which may be of before
/// a change of the configuration.
fn chain_facts(transfer: &Transfer) -> ChainFacts {
    let name = match transfer.chain.as_str() {
        "tron" => "TRON (TRC-20)".to_owned(),
        other => other.to_owned(),
    };
    ChainFacts {
        name,
        asset: transfer.asset.clone(),
        token_contract: transfer.token_contract.to_string(),
        address: transfer.deposit_address.to_string(),
    }
}

#[derive(Template)]
#[template(path = "pages/payer/page.html")]
struct PageTemplate<'a> {
    css: &'static str,
    js: &'static str,
    view: &'a PayView,
    token: String,
    chain: &'a ChainFacts,
    qr: &'a qr::QrSvg,
    reference: String,
    livemode: bool,
    reload_seconds: u32,
}

impl PageTemplate<'_> {
    /// An address in three parts, so that the ends, which people compare, can stand out.
    fn address_parts(&self) -> [&str; 3] {
        let address = self.chain.address.as_str();
        let middle = address.len().saturating_sub(6);
        match (address.get(..6), address.get(6..middle), address.get(middle..)) {
            (Some(first), Some(between), Some(last)) => [first, between, last],
            _ => ["", address, ""],
        }
    }
}

#[derive(Template)]
#[template(path = "pages/payer/message.html")]
struct MessageTemplate {
    css: &'static str,
    title: &'static str,
    headline: &'static str,
    text: &'static str,
    /// Whether trying again by itself makes sense.
    reload_seconds: Option<u32>,
}

/// Answers what stands below `/pay/`: the page, or with `/state` behind the token its state.
pub async fn answer(
    app: &Arc<AppState>,
    request_id: &str,
    request: &Request<Incoming>,
    rest: &str,
) -> Reply {
    let (token, is_state) =
        rest.strip_suffix("/state").map_or((rest, false), |token| (token, true));
    // Programs get the error shape of the API, people a page.
    let is_read_by_people = !is_state && accepts_html(request.headers());
    let mut reply = match load(app, token).await {
        Ok(Some(found)) => drawn(&found, token, is_state)
            .unwrap_or_else(|error| unavailable(request_id, is_read_by_people, &error.into())),
        Ok(None) => not_found(request_id, is_read_by_people),
        Err(failure) => unavailable(request_id, is_read_by_people, &failure),
    };
    protect(&mut reply);
    reply
}

/// The headers of a page whose address is its secret, in the style of the payer's page.
pub(super) fn protect(reply: &mut Reply) {
    let headers = reply.headers_mut();
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_str(&POLICY).unwrap_or(HeaderValue::from_static("default-src 'none'")),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // The address of the page is its secret.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(
        HeaderName::from_static("x-robots-tag"),
        HeaderValue::from_static("noindex, nofollow"),
    );
    headers.insert(
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    );
    headers.insert(http::header::VARY, HeaderValue::from_static("accept"));
}

pub(super) fn accepts_html(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT)
        .iter()
        .any(|value| value.to_str().is_ok_and(|text| text.contains("text/html")))
}

/// All that one answer is made of.
struct Found {
    transfer: Transfer,
    view: PayView,
    chain: ChainFacts,
}

/// The transfer that a token opens, or `None`. A token that was not made here is turned away before
/// the store is asked, and its mark is compared in constant time.
async fn load(app: &Arc<AppState>, token: &str) -> Result<Option<Found>, OperationError> {
    let Some(id) = transfers::api::instructed(&app.services, token) else { return Ok(None) };
    let shared = app.clone();
    let found =
        app.store.read(Cost::Point, move |tx| Ok(read(tx, shared.store.clock.milliseconds(), id)?));
    dispatch::within(app, dispatch::answer_end(), found).await
}

fn read(
    tx: &mut dyn Tx,
    instant_milliseconds: i64,
    id: Id<kind::Transfer>,
) -> Result<Option<Found>, StoreError> {
    let Some(transfer) = transfers::rows::find_anywhere(tx, id)? else { return Ok(None) };
    let scope = transfer.scope;
    let mut now = Now::new(instant_milliseconds, Minter::above(0), [0; 32]);
    now.enter_account(keys::rows::clock_offset_seconds(tx, scope)?);
    let newest = Page {
        limit: ROWS_SHOWN_MAX,
        descending: true,
        filters: vec![("transfer_id", FilterValue::Id(id.to_bytes()))],
        ..Page::default()
    };
    let deposits = deposits::rows::list(tx, scope, &newest)?
        .0
        .into_iter()
        .map(deposits::rows::read)
        .collect::<Result<Vec<_>, _>>()?;
    let refunds = refunds::rows::list(tx, scope, &newest)?
        .0
        .into_iter()
        .map(refunds::rows::read)
        .collect::<Result<Vec<_>, _>>()?;
    let pending = crate::kernel::Money::new(
        rows::pending_units(tx, scope, id, &transfer.asset)?,
        transfer.expected.currency,
    );
    let chain = chain_facts(&transfer);
    let view = view::view(&PageFacts {
        transfer: &transfer,
        deposits: &deposits,
        refunds: &refunds,
        pending,
        chain_name: &chain.name,
        business: now.business(),
    })?;
    Ok(Some(Found { transfer, view, chain }))
}

fn drawn(found: &Found, token: &str, is_state: bool) -> Result<Reply, StoreError> {
    let broken = |what: &str, error: &dyn std::fmt::Display| {
        StoreError::Broken(format!("{what} cannot be drawn: {error}"))
    };
    if is_state {
        let body = serde_json::to_vec(&found.view).map_err(|error| broken("the state", &error))?;
        return Ok(with_body(StatusCode::OK, "application/json", body));
    }
    let page = PageTemplate {
        css: CSS,
        js: JS,
        view: &found.view,
        token: token.to_owned(),
        chain: &found.chain,
        qr: &qr::draw(&found.chain.address)?,
        reference: found.transfer.id.to_string(),
        livemode: found.transfer.scope.livemode(),
        reload_seconds: RELOAD_SECONDS,
    };
    Ok(with_body(
        StatusCode::OK,
        "text/html; charset=utf-8",
        page.render().map_err(|error| broken("the page", &error))?,
    ))
}

fn with_body(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}

/// A page that says one thing. Should even that fail, its text goes out alone.
pub(super) fn message(
    status: StatusCode,
    title: &'static str,
    headline: &'static str,
    text: &'static str,
    reload_seconds: Option<u32>,
) -> Reply {
    match (MessageTemplate { css: CSS, title, headline, text, reload_seconds }).render() {
        Ok(html) => with_body(status, "text/html; charset=utf-8", html),
        Err(_) => with_body(status, "text/plain; charset=utf-8", text),
    }
}

fn not_found(request_id: &str, is_read_by_people: bool) -> Reply {
    if !is_read_by_people {
        return dispatch::refusal_reply(
            request_id,
            Refusal::new(Code::ObjectNotFound, "No such page."),
        );
    }
    let text = "Please check that you opened the whole link, without a character missing at its \
     end. If it still does not work, ask the \
                company that gave it to you for a new one. Do not send any money meanwhile.";
    message(StatusCode::NOT_FOUND, "Payment", "This payment link does not work", text, None)
}

fn unavailable(request_id: &str, is_read_by_people: bool, failure: &OperationError) -> Reply {
    if let OperationError::Store(StoreError::Broken(reason)) = failure {
        tracing::error!(request_id, reason, "the payer's page failed");
    }
    if !is_read_by_people {
        return dispatch::refusal_reply(request_id, Refusal::unavailable());
    }
    let text = "This is a fault of ours, and nothing is lost: a payment that you already sent \
     will be noticed. The page tries again by \
                itself. Please do not send anything until it shows you the amount and the address.";
    let mut reply = message(
        StatusCode::SERVICE_UNAVAILABLE,
        "Payment",
        "The page cannot be shown right now",
        text,
        Some(RELOAD_SECONDS),
    );
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RELOAD_SECONDS));
    reply
}
