//! The page that a payer is sent to, `GET /pay/{token}`. `GET /pay/{token}/state` answers its state
//! as JSON, and `GET /pay/{token}/stream` sends each new state.
//!
//! The page loads nothing from elsewhere. Without scripts it reloads itself. `view` makes the words
//! of its state, so that the server and the script show the same words.
//!
//! The page shows what a payer needs to pay, what arrives in rupees, and at the end a receipt. It
//! does not name the beneficiary or the sender.

mod explanation;
pub mod forms;
pub mod qr;
mod refund_address;
mod rows;
mod sent;
mod simulate_payment;
mod stream;
mod timeline;
pub mod view;

use std::sync::Arc;

use askama::Template;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;

use self::forms::PayerForm;
use self::view::{PageFacts, PayView, StepState};
use super::frame::{CSS, JS, PageFrame, protect};
use super::words::{PageWords, chosen, languages};
use crate::app_state::AppState;
use crate::http::dispatch::{self, Reply, ReplyBody};
use crate::kernel::id::Minter;
use crate::kernel::page::{FilterValue, Page};
use crate::kernel::{Code, Money, Now, OperationError, Refusal, StoreError};
use crate::store::Cost;
use crate::store::Tx;
use crate::transfers::{self, Transfer};
use crate::{deposits, keys, payouts, refunds};

/// The page lists at most this many of the newest deposits and refunds. Its sums include all.
const ROWS_SHOWN_MAX: i64 = 20;
/// How often the page reloads itself where scripts are off, in seconds.
const RELOAD_SECONDS: u32 = 15;

/// What the page says about a transfer's chain and its deposit address.
pub struct ChainFacts {
    /// The chain's name as wallets and exchanges show it.
    pub name: String,
    /// The token's symbol, such as `USDT`.
    pub asset: String,
    pub token_contract: String,
    pub address: String,
}

/// The chain facts of a transfer. They come from the transfer and not from the configuration, which
/// may have changed since the transfer was made.
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
struct PayerTemplate<'a> {
    css: &'static str,
    js: &'static str,
    frame: &'a PageFrame,
    words: &'static PageWords,
    languages: &'static [PageWords],
    title: String,
    test_text: String,
    hurry: String,
    only_this: String,
    qr_label: String,
    form_label: String,
    arrives: String,
    no_script: String,
    /// The link back to the caller: its address and its text.
    back: Option<(&'a str, String)>,
    issuer_line: Option<String>,
    view: &'a PayView,
    token: &'a str,
    chain: &'a ChainFacts,
    qr: &'a qr::QrSvg,
    reference: String,
    livemode: bool,
    reload_seconds: u32,
}

impl PayerTemplate<'_> {
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
struct MessageTemplate<'a> {
    css: &'static str,
    js: &'static str,
    frame: &'a PageFrame,
    words: &'static PageWords,
    languages: &'static [PageWords],
    headline: &'a str,
    text: &'a str,
    /// After how many seconds the page reloads itself; `None` if that would not help.
    reload_seconds: Option<u32>,
}

/// Answers a GET or HEAD below `/pay/`. `rest` is the token for the page, or the token with
/// `/state` or `/stream` behind it.
pub async fn answer(
    app: &Arc<AppState>,
    request_id: &str,
    request: &Request<Incoming>,
    rest: &str,
) -> Reply {
    let (token, part) = ["/state", "/stream"]
        .into_iter()
        .find_map(|part| rest.strip_suffix(part).map(|token| (token, part)))
        .unwrap_or((rest, ""));
    let words = chosen(request.uri().query(), request.headers());
    // A refusal is a page for people, and has the error shape of the API for programs.
    let reader = (part.is_empty() && accepts_html(request.headers())).then_some(words);
    let frame = PageFrame::narrow(&app.services.settings.issuers.default);
    // A form that could not be taken is answered with a page that loads itself anew, by a GET.
    if let Some((token, form)) = rest.split_once('/')
        && PayerForm::parse(form).is_some()
    {
        let mut reply = sent::to_page(token, words);
        protect(&mut reply, Some(&frame));
        return reply;
    }
    let failed = |failure: &OperationError| unavailable(request_id, reader, &frame, failure);
    let mut reply = match load(app, token, words).await {
        Ok(Some(found)) if part == "/stream" => stream::open(app, found, words),
        Ok(Some(found)) if part == "/state" => {
            state(&found.view).unwrap_or_else(|error| failed(&error.into()))
        }
        Ok(Some(found)) => match page(&found, token, words) {
            Ok(mut reply) => {
                protect(&mut reply, Some(&found.frame));
                return reply;
            }
            Err(error) => failed(&error.into()),
        },
        Ok(None) => not_found(request_id, reader, &frame),
        Err(failure) => failed(&failure),
    };
    protect(&mut reply, Some(&frame));
    reply
}

pub(super) fn accepts_html(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT)
        .iter()
        .any(|value| value.to_str().is_ok_and(|text| text.contains("text/html")))
}

/// A transfer with what its page, its `/state` and its `/stream` are made of.
struct LoadedPage {
    transfer: Transfer,
    view: PayView,
    chain: ChainFacts,
    frame: PageFrame,
    issuer_line: Option<String>,
}

/// What an answer needs of the transfer that a token names; `None` if the token names no transfer.
/// The token holds a keyed hash, which is compared first. So a made-up token does not reach the
/// store.
async fn load(
    app: &Arc<AppState>,
    token: &str,
    words: &'static PageWords,
) -> Result<Option<LoadedPage>, OperationError> {
    let Some(id) = transfers::api::transfer_of_payer_link(&app.services, token) else {
        return Ok(None);
    };
    let shared = app.clone();
    let found = app.store.read(Cost::Point, move |tx| {
        let transfer = transfers::rows::find_anywhere(tx, id)?;
        Ok(transfer.map(|transfer| read(tx, &shared, transfer, words)).transpose()?)
    });
    dispatch::within(app, dispatch::answer_end(), found).await
}

fn read(
    tx: &mut dyn Tx,
    app: &AppState,
    transfer: Transfer,
    words: &'static PageWords,
) -> Result<LoadedPage, StoreError> {
    let (scope, id) = (transfer.scope, transfer.id);
    let issuer = app.services.settings.issuers.of_scope(tx, scope)?;
    // Only its times are used: nothing is minted here.
    let mut now = Now::new(app.store.clock.milliseconds(), Minter::above(0), [0; 32]);
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
    let payout =
        transfer.payout_id.map(|id| payouts::rows::find(tx, scope, id)).transpose()?.flatten();
    let pending = Money::new(
        deposits::rows::pending_units_of_transfer(tx, scope, id, &transfer.asset)?,
        transfer.expected.currency,
    );
    let chain = chain_facts(&transfer);
    let view = view::view(&PageFacts {
        transfer: &transfer,
        deposits: &deposits,
        refunds: &refunds,
        pending,
        payout: payout.as_ref(),
        chain_name: &chain.name,
        explorer: app
            .services
            .ports(scope.mode())
            .ok()
            .and_then(|ports| ports.chain.explorer(&transfer.chain)),
        can_simulate: simulate_payment::is_possible(app, &transfer),
        issuer_name: &issuer.name,
        words,
        business: now.business(),
    })?;
    let line: Vec<&str> =
        issuer.address.iter().chain(&issuer.licence).map(String::as_str).collect();
    let issuer_line = (!line.is_empty()).then(|| format!("{} · {}", issuer.name, line.join(" · ")));
    Ok(LoadedPage { transfer, view, chain, frame: PageFrame::of(issuer), issuer_line })
}

fn state(view: &PayView) -> Result<Reply, StoreError> {
    let body = serde_json::to_vec(view)
        .map_err(|error| StoreError::Broken(format!("the state cannot be drawn: {error}")))?;
    Ok(with_body(StatusCode::OK, "application/json", body))
}

fn page(found: &LoadedPage, token: &str, words: &'static PageWords) -> Result<Reply, StoreError> {
    let (transfer, chain, issuer) = (&found.transfer, &found.chain, &found.frame.issuer_name);
    let say = |text: &str, more: &[(&str, &str)]| {
        let known = [("issuer", issuer.as_str()), ("asset", &chain.asset), ("chain", &chain.name)];
        words.fill(text, &[&known, more].concat())
    };
    let back = transfer.return_url.as_deref().map(|url| {
        let host = url::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
        (url, say(&words.back_to, &[("host", &host.unwrap_or_default())]))
    });
    let page = PayerTemplate {
        css: CSS,
        js: JS,
        frame: &found.frame,
        words,
        languages: languages(),
        title: say(&words.title, &[]),
        test_text: say(&words.test_text, &[]),
        hurry: say(&words.hurry, &[]),
        only_this: say(&words.only_this, &[]),
        qr_label: say(&words.qr_label, &[("address", &chain.address)]),
        form_label: say(&words.form_label, &[]),
        arrives: say(&words.arrives, &[("amount", &view::rupees(transfer.payout_amount))]),
        no_script: say(&words.no_script, &[("count", &RELOAD_SECONDS.to_string())]),
        back,
        issuer_line: found.issuer_line.clone(),
        view: &found.view,
        token,
        chain,
        qr: &qr::draw(&chain.address)?,
        reference: transfer.id.to_string(),
        livemode: transfer.scope.livemode(),
        reload_seconds: RELOAD_SECONDS,
    };
    let html = page
        .render()
        .map_err(|error| StoreError::Broken(format!("the page cannot be drawn: {error}")))?;
    Ok(with_body(StatusCode::OK, "text/html; charset=utf-8", html))
}

fn with_body(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<bytes::Bytes>,
) -> Reply {
    let mut reply = Response::new(ReplyBody::whole(body));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}

/// A page with a headline and one text. If even this cannot be drawn, the text is sent alone.
pub(super) fn message(
    status: StatusCode,
    words: &'static PageWords,
    frame: &PageFrame,
    (headline, text): (&str, &str),
    reload_seconds: Option<u32>,
) -> Reply {
    let languages = languages();
    let (css, js) = (CSS, JS);
    let page = MessageTemplate { css, js, frame, words, languages, headline, text, reload_seconds };
    match page.render() {
        Ok(html) => with_body(status, "text/html; charset=utf-8", html),
        Err(_) => with_body(status, "text/plain; charset=utf-8", text.to_owned()),
    }
}

fn not_found(request_id: &str, reader: Option<&'static PageWords>, frame: &PageFrame) -> Reply {
    let Some(words) = reader else {
        let refusal = Refusal::new(Code::ObjectNotFound, "No such page.");
        return dispatch::refusal_reply(request_id, refusal);
    };
    let said = (words.broken_link_title.as_str(), words.broken_link_text.as_str());
    message(StatusCode::NOT_FOUND, words, frame, said, None)
}

fn unavailable(
    request_id: &str,
    reader: Option<&'static PageWords>,
    frame: &PageFrame,
    failure: &OperationError,
) -> Reply {
    if let OperationError::Store(StoreError::Broken(reason)) = failure {
        tracing::error!(request_id, reason, "the payer's page failed");
    }
    let Some(words) = reader else {
        return dispatch::refusal_reply(request_id, Refusal::unavailable());
    };
    let said = (words.unavailable_title.as_str(), words.unavailable_text.as_str());
    let status = StatusCode::SERVICE_UNAVAILABLE;
    let mut reply = message(status, words, frame, said, Some(RELOAD_SECONDS));
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RELOAD_SECONDS));
    reply
}
