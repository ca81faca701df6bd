//! The form in which a payer says where refunds go: `POST /pay/{token}/refund_address`. It is sent
//! twice: first with the address, which a page then shows for checking, and then with the address
//! and its confirmation.
//!
//! The confirmation is a keyed hash over the transfer and the address, and only the page that shows
//! the address has it. So another site cannot make the service store an address, and the address
//! that is stored is the one that was shown for checking.

use std::sync::Arc;

use askama::Template;
use http::StatusCode;

use super::sent::{SentForm, back_to_page};
use super::{chain_facts, with_body};
use crate::app_state::AppState;
use crate::chains;
use crate::chains::address::ChainAddress;
use crate::http::dispatch::{self, Reply};
use crate::kernel::id::kind;
use crate::kernel::{Id, OperationError, StoreError, hex};
use crate::keys;
use crate::pages::frame::{CSS, PageFrame, protect};
use crate::pages::words::{PageWords, languages};
use crate::refunds::{self, Refund, payer_address};
use crate::services::Services;
use crate::store::{Cost, Tx};
use crate::transfers::{self, Transfer};

/// One form gives its address to at most this many refunds of the transfer.
const REFUNDS_AT_ONCE_MAX: i64 = 20;
/// The first part of what the confirmation's keyed hash covers: its purpose.
const CONFIRMATION: &[u8] = b"payer refund address";

/// What the form sends.
#[derive(Clone, Default)]
struct RefundAddressForm {
    address: String,
    confirmation: String,
}

impl RefundAddressForm {
    fn read(body: &[u8]) -> RefundAddressForm {
        let mut asked = RefundAddressForm::default();
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

/// The result of a form.
enum FormOutcome {
    NoSuchPage,
    /// No refund waits for the payer's address, or none waits any more, because it was just stored.
    NothingWaits,
    /// A page is shown: the form again with what is wrong, or the address for checking.
    Shown(Box<RefundAddressPage>),
}

struct RefundAddressPage {
    transfer: Transfer,
    frame: PageFrame,
    /// The address and the refunds that would go to it, or why it is not accepted.
    answer: Result<(ChainAddress, Vec<Refund>), RefundAddressError>,
}

/// Why an address is not accepted.
#[derive(Clone, Copy)]
enum RefundAddressError {
    /// It is no address of the chain, or was copied with a mistake.
    Unreadable,
    /// It belongs to the service, to the token or to nobody.
    NotYours,
}

#[derive(Template)]
#[template(path = "pages/payer/refund_address.html")]
struct FormTemplate<'a> {
    css: &'static str,
    frame: &'a PageFrame,
    words: &'static PageWords,
    languages: &'static [PageWords],
    token: &'a str,
    test_text: String,
    label: String,
    confirm_text: String,
    address: &'a str,
    problem: Option<&'static str>,
    confirmation: String,
    livemode: bool,
}

/// Takes the form: shows the address for checking, or with its confirmation stores it. `None` if
/// the transfer is gone.
pub(super) async fn take(
    app: &Arc<AppState>,
    sent: &SentForm<'_>,
) -> Result<Option<Reply>, OperationError> {
    let (id, asked, end) = (sent.id, RefundAddressForm::read(&sent.body), dispatch::answer_end());
    let (shared, held) = (app.clone(), asked.clone());
    let judged = if asked.confirmation.is_empty() {
        let look = app
            .store
            .read(Cost::Point, move |tx| Ok(judge(tx, &shared.services, id, &held.address)?));
        dispatch::within(app, end, look).await?
    } else {
        let work = app.store.write(move |tx, now| {
            let judged = judge(tx, &shared.services, id, &held.address)?;
            let FormOutcome::Shown(shown) = judged else { return Ok(judged) };
            let Ok((address, waiting)) = &shown.answer else {
                return Ok(FormOutcome::Shown(shown));
            };
            let mark = confirmation(&shared.services, id, address);
            if !is_same(&mark, &held.confirmation) {
                return Ok(FormOutcome::Shown(shown));
            }
            now.enter_account(keys::rows::clock_offset_seconds(tx, shown.transfer.scope)?);
            for refund in waiting {
                payer_address::give(tx, now, &mut refund.clone(), *address)?;
            }
            Ok(FormOutcome::NothingWaits)
        });
        dispatch::within(app, end, work).await?
    };
    match judged {
        FormOutcome::NoSuchPage => Ok(None),
        FormOutcome::NothingWaits => Ok(Some(back_to_page(sent))),
        FormOutcome::Shown(shown) => Ok(Some(show(&app.services, sent, &asked.address, &shown)?)),
    }
}

fn judge(
    tx: &mut dyn Tx,
    services: &Services,
    id: Id<kind::Transfer>,
    text: &str,
) -> Result<FormOutcome, StoreError> {
    let Some(transfer) = transfers::rows::find_anywhere(tx, id)? else {
        return Ok(FormOutcome::NoSuchPage);
    };
    let scope = transfer.scope;
    let waiting = if transfer.payer_sets_refund_address {
        refunds::rows::waiting_for_payer(tx, scope, id, REFUNDS_AT_ONCE_MAX)?
    } else {
        Vec::new()
    };
    if waiting.is_empty() {
        return Ok(FormOutcome::NothingWaits);
    }
    let readable = ChainAddress::parse(text)
        .ok()
        .filter(|address| chains::address_fault(&transfer.chain, "", Some(address)).is_none());
    let answer = match readable {
        None => Err(RefundAddressError::Unreadable),
        Some(address) => {
            let refused = refunds::address_refusal(tx, "", &address, &transfer.token_contract)?;
            refused.map_or(Ok((address, waiting)), |_| Err(RefundAddressError::NotYours))
        }
    };
    let frame = PageFrame::narrow(services.settings.issuers.of_scope(tx, scope)?);
    Ok(FormOutcome::Shown(Box::new(RefundAddressPage { transfer, frame, answer })))
}

fn confirmation(services: &Services, id: Id<kind::Transfer>, address: &ChainAddress) -> String {
    let mark =
        services.sealer.fingerprint(&[CONFIRMATION, &id.to_bytes(), address.bytes().as_slice()]);
    hex::encode(&mark[..16])
}

fn is_same(mark: &str, given: &str) -> bool {
    subtle::ConstantTimeEq::ct_eq(mark.as_bytes(), given.as_bytes()).into()
}

fn show(
    services: &Services,
    sent: &SentForm<'_>,
    text: &str,
    shown: &RefundAddressPage,
) -> Result<Reply, StoreError> {
    let (words, chain) = (sent.words, chain_facts(&shown.transfer));
    let (problem, waiting, mark) = match &shown.answer {
        Err(RefundAddressError::Unreadable) => {
            (Some(words.form_unreadable.as_str()), &[][..], None)
        }
        Err(RefundAddressError::NotYours) => (Some(words.form_not_yours.as_str()), &[][..], None),
        Ok((address, waiting)) => {
            (None, waiting.as_slice(), Some(confirmation(services, sent.id, address)))
        }
    };
    let amount = |refund: &Refund| format!("{} {}", refund.amount, refund.asset);
    let amounts = waiting.iter().map(amount).collect::<Vec<_>>().join(" + ");
    let known = [("asset", chain.asset.as_str()), ("chain", &chain.name), ("amount", &amounts)];
    let form = FormTemplate {
        css: CSS,
        frame: &shown.frame,
        words,
        languages: languages(),
        token: sent.token,
        test_text: words.fill(&words.test_text, &known),
        label: words.fill(&words.form_label, &known),
        confirm_text: words.fill(&words.form_confirm_text, &known),
        address: text,
        problem,
        confirmation: mark.unwrap_or_default(),
        livemode: shown.transfer.scope.livemode(),
    };
    let html = form.render().map_err(|error| {
        StoreError::Broken(format!("the form of a refund's address cannot be drawn: {error}"))
    })?;
    let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let mut reply = with_body(status, "text/html; charset=utf-8", html);
    protect(&mut reply, Some(&shown.frame));
    Ok(reply)
}
