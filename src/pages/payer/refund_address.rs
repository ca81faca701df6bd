//! The form in which a payer says where refunds go: `POST /pay/{token}/refund_address`, first with
//! the address, which is shown back, then with its confirmation too.
//!
//! The confirmation is a mark that only this server can make, for this transfer and this address.
//! It stands on no page but the one that shows the address back, so a page of somebody else's can
//! give no address, and a payer gives the one that was read.

use std::sync::Arc;

use askama::Template;
use http::header::{CONTENT_TYPE, HOST, LOCATION, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use hyper::body::Incoming;

use super::{CSS, chain_facts, message, not_found, protect, unavailable, with_body};
use crate::app_state::AppState;
use crate::chains;
use crate::chains::address::Address;
use crate::http::dispatch::{self, Reply};
use crate::http::incoming::{read_body, single};
use crate::kernel::id::kind;
use crate::kernel::{Id, OperationError, StoreError, hex};
use crate::keys;
use crate::refunds::{self, Refund, payer_address};
use crate::services::Services;
use crate::store::{Cost, Tx};
use crate::transfers::{self, Transfer};

/// Refunds of one transfer that an address is given for at once.
const REFUNDS_AT_ONCE_MAX: i64 = 20;
/// What the mark that confirms an address is made for.
const CONFIRMATION: &[u8] = b"payer refund address";
const FORM_TYPE: &str = "application/x-www-form-urlencoded";
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What the form sends.
#[derive(Clone, Default)]
struct Asked {
    address: String,
    confirmation: String,
}

impl Asked {
    fn read(body: &[u8]) -> Asked {
        let mut asked = Asked::default();
        for (name, value) in url::form_urlencoded::parse(body) {
            match &*name {
                "address" => asked.address = value.trim().to_owned(),
                "confirmation" => asked.confirmation = value.into_owned(),
                _ => {}
            }
        }
        asked
    }
}

/// What becomes of a form.
enum Judged {
    NoSuchPage,
    /// Nothing waits for an address of the payer's: the page says how things stand.
    NothingWaits,
    /// It is no address of the chain, or one that no refund goes to.
    Wrong(Box<Transfer>, &'static str),
    Right(Box<Transfer>, Address, Vec<Refund>),
}

#[derive(Template)]
#[template(path = "pages/payer/refund_address.html")]
struct FormTemplate<'a> {
    css: &'static str,
    token: &'a str,
    chain_name: String,
    asset: String,
    address: &'a str,
    problem: Option<&'static str>,
    /// What goes to the address.
    amounts: Vec<String>,
    confirmation: String,
    livemode: bool,
}

/// Answers the form.
pub async fn answer(
    app: &Arc<AppState>,
    request_id: &str,
    request: Request<Incoming>,
    token: &str,
) -> Reply {
    let mut reply = match take(app, request, token).await {
        Ok(Some(reply)) => reply,
        Ok(None) => not_found(request_id, true),
        Err(failure) => unavailable(request_id, true, &failure),
    };
    protect(&mut reply);
    reply
}

async fn take(
    app: &Arc<AppState>,
    request: Request<Incoming>,
    token: &str,
) -> Result<Option<Reply>, OperationError> {
    let (head, incoming) = request.into_parts();
    if !is_from_the_page(&head.headers, &app.services.settings.public_url) {
        let text = "Open the link that you were given, and fill in the form there.";
        let headline = "This form was not sent from the payment page";
        return Ok(Some(message(StatusCode::FORBIDDEN, "Payment", headline, text, None)));
    }
    let Some(id) = transfers::api::instructed(&app.services, token) else { return Ok(None) };
    let asked = Asked::read(&read_body(&head.headers, incoming).await?);
    let end = dispatch::answer_end();
    let judged = if asked.confirmation.is_empty() {
        let asked = asked.clone();
        dispatch::within(
            app,
            end,
            app.store.read(Cost::Point, move |tx| Ok(judge(tx, id, &asked)?)),
        )
        .await?
    } else {
        let (shared, asked) = (app.clone(), asked.clone());
        let work = app.store.write(move |tx, now| {
            let judged = judge(tx, id, &asked)?;
            let Judged::Right(transfer, address, waiting) = judged else { return Ok(judged) };
            let mark = confirmation(&shared.services, id, &address);
            if !is_same(&mark, &asked.confirmation) {
                return Ok(Judged::Right(transfer, address, waiting));
            }
            now.enter_account(keys::rows::clock_offset_seconds(tx, transfer.scope)?);
            for mut refund in waiting {
                payer_address::give(tx, now, &mut refund, address)?;
            }
            Ok(Judged::NothingWaits)
        });
        dispatch::within(app, end, work).await?
    };
    reply(&app.services, id, token, &asked, judged)
}

/// Whether a form comes from the page itself, as far as the browser says. One that says nothing is
/// judged by the confirmation alone: the page asks browsers to name no referrer, and some then name
/// no origin either.
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

fn judge(tx: &mut dyn Tx, id: Id<kind::Transfer>, asked: &Asked) -> Result<Judged, StoreError> {
    let Some(transfer) = transfers::rows::find_anywhere(tx, id)? else {
        return Ok(Judged::NoSuchPage);
    };
    if !transfer.payer_sets_refund_address {
        return Ok(Judged::NothingWaits);
    }
    let scope = transfer.scope;
    let waiting = refunds::rows::waiting_for_payer(tx, scope, id, REFUNDS_AT_ONCE_MAX)?;
    if waiting.is_empty() {
        return Ok(Judged::NothingWaits);
    }
    let transfer = Box::new(transfer);
    let readable = Address::parse(&asked.address)
        .ok()
        .filter(|address| chains::address_fault(&transfer.chain, "", Some(address)).is_none());
    let Some(address) = readable else {
        let problem = "This is no address, or it was copied with a mistake. Copy the whole address \
                       from your wallet again.";
        return Ok(Judged::Wrong(transfer, problem));
    };
    if refunds::address_refused(tx, "", &address, &transfer.token_contract)?.is_some() {
        let problem = "This is not an address of yours. Give one of your own wallet, not one that \
                       you were asked to pay to.";
        return Ok(Judged::Wrong(transfer, problem));
    }
    Ok(Judged::Right(transfer, address, waiting))
}

fn confirmation(services: &Services, id: Id<kind::Transfer>, address: &Address) -> String {
    let mark = services.sealer.fingerprint(&[CONFIRMATION, &id.to_bytes(), address.bytes()]);
    hex::encode(&mark[..16])
}

fn is_same(mark: &str, given: &str) -> bool {
    subtle::ConstantTimeEq::ct_eq(mark.as_bytes(), given.as_bytes()).into()
}

fn reply(
    services: &Services,
    id: Id<kind::Transfer>,
    token: &str,
    asked: &Asked,
    judged: Judged,
) -> Result<Option<Reply>, OperationError> {
    let (transfer, problem, address, waiting) = match judged {
        Judged::NoSuchPage => return Ok(None),
        Judged::NothingWaits => {
            let mut reply = with_body(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", "");
            if let Ok(page) = HeaderValue::from_str(&format!("../{token}")) {
                reply.headers_mut().insert(LOCATION, page);
            }
            return Ok(Some(reply));
        }
        Judged::Wrong(transfer, problem) => (transfer, Some(problem), None, Vec::new()),
        Judged::Right(transfer, address, waiting) => (transfer, None, Some(address), waiting),
    };
    let chain = chain_facts(&transfer);
    let amount = |refund: &Refund| format!("{} {}", refund.amount, refund.asset);
    let form = FormTemplate {
        css: CSS,
        token,
        chain_name: chain.name,
        asset: chain.asset,
        address: &asked.address,
        problem,
        amounts: waiting.iter().map(amount).collect(),
        confirmation: address.map(|it| confirmation(services, id, &it)).unwrap_or_default(),
        livemode: transfer.scope.livemode(),
    };
    let html = form.render().map_err(|error| {
        StoreError::Broken(format!("the form of a refund's address cannot be drawn: {error}"))
    })?;
    let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    Ok(Some(with_body(status, "text/html; charset=utf-8", html)))
}

#[cfg(test)]
mod tests {
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
