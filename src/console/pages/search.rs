//! The search box's answers, by kind.

use super::super::blocks::{
    ConsolePage, PageBlock, PageCell, PageForm, Question, Section, Table, TableLine, Tone, path_of,
};
use super::super::visit::{Failure, PageOutcome, Visit};
use crate::kernel::state::Status;
use crate::kernel::{AnyId, ObjectKind, Scope};
use crate::operator;
use crate::oversight::AccountNames;
use crate::oversight::search::{self, SearchResults};
use crate::store::Cost;
use crate::{deposits, payouts, quote_locks, refunds};

/// The page of what was found. If the text is the full identifier of an object, and nothing else is
/// found, the browser is sent to the page that shows that object, if there is one.
pub async fn page(visit: Visit) -> PageOutcome {
    let asked = visit.query("q").to_owned();
    let read = visit.app.store.read(Cost::Scan, move |tx| {
        let accounts = AccountNames::read(tx)?;
        let found = search::find(tx, &accounts, &asked)?;
        Ok((accounts, found))
    });
    let (accounts, found) = read.await?;
    let words = visit.words;
    if let Some(id) = AnyId::parse(visit.query("q").trim())
        && found.count() == 1
        && let Some(path) = page_of(&visit, id).await?
    {
        return visit.go_to(&path);
    }
    let mut page = ConsolePage::new("search", words.get("search.title"));
    let question = Question {
        kind: "search",
        value: visit.query("q").to_owned(),
        is_required: true,
        ..Question::new("q", words.get("search.label"))
    };
    let form = PageForm {
        action: "/console/search".into(),
        is_change: false,
        title: String::new(),
        help: words.get("search.help").to_owned(),
        hidden: Vec::new(),
        questions: vec![question],
        buttons: vec![(String::new(), words.get("search.submit").to_owned(), false)],
    };
    page.still.push(Section::wide("", vec![PageBlock::Form(form)]));
    if !visit.query("q").trim().is_empty() {
        let tables = tables(&visit, &accounts, &found);
        if tables.is_empty() {
            let empty = Table::new(words, "", &[], "search.nothing");
            page.still.push(Section::wide("", vec![PageBlock::Table(empty)]));
        }
        if found.is_cut {
            let text = words.get("search.cut").to_owned();
            let note = PageBlock::Note { tone: Tone::Attention, text };
            page.still.push(Section::wide("", vec![note]));
        }
        for (title, table) in tables {
            page.still.push(Section::wide(title, vec![PageBlock::Table(table)]));
        }
    }
    page.draw(&visit)
}

/// A table for each kind of object that was found.
fn tables(visit: &Visit, accounts: &AccountNames, found: &SearchResults) -> Vec<(String, Table)> {
    let words = visit.words;
    let mut tables = Vec::new();
    let mut add = |key: &str, columns: &[&str], lines: Vec<TableLine>| {
        if lines.is_empty() {
            return;
        }
        let title = words.get(key).to_owned();
        let mut table = Table::new(words, &title, columns, "search.nothing");
        table.lines = lines;
        tables.push((title, table));
    };
    let whose = |scope: Scope| whose(visit, accounts, scope);
    let object = |id: AnyId, scope: Scope, status: PageCell, what: PageCell, created: i64| {
        TableLine::new(vec![PageCell::id(id), status, what, whose(scope), PageCell::time(created)])
            .to(path_of(id))
    };
    let columns = ["col.id", "col.status", "col.what", "col.account", "col.created"];
    let money = ["col.id", "col.status", "#col.amount", "col.account", "col.created"];
    let chip = |word: &str| PageCell::chip(words, word);
    add(
        "search.transfers",
        &money,
        found
            .transfers
            .iter()
            .map(|t| {
                let status = chip(Status::as_str(t.status));
                object(t.id.any(), t.scope, status, PageCell::money(t.payout_amount), t.created)
            })
            .collect(),
    );
    add(
        "search.payouts",
        &money,
        found
            .payouts
            .iter()
            .map(|p| {
                let status = chip(Status::as_str(p.status));
                object(p.id.any(), p.scope, status, PageCell::money(p.amount), p.created)
            })
            .collect(),
    );
    add(
        "search.deposits",
        &money,
        found
            .deposits
            .iter()
            .map(|d| {
                let status = chip(Status::as_str(d.status));
                object(d.id.any(), d.scope, status, PageCell::money(d.amount), d.created)
            })
            .collect(),
    );
    add(
        "search.refunds",
        &money,
        found
            .refunds
            .iter()
            .map(|r| {
                let status = chip(Status::as_str(r.status));
                object(r.id.any(), r.scope, status, PageCell::money(r.amount), r.created)
            })
            .collect(),
    );
    add(
        "search.beneficiaries",
        &columns,
        found
            .beneficiaries
            .iter()
            .map(|b| {
                let status = chip(Status::as_str(b.status));
                object(b.id.any(), b.scope, status, PageCell::text(b.name.clone()), b.created)
            })
            .collect(),
    );
    add(
        "search.senders",
        &columns,
        found
            .senders
            .iter()
            .map(|s| {
                let status = chip(s.screening.as_str());
                object(s.id.any(), s.scope, status, PageCell::text(s.name.clone()), s.created)
            })
            .collect(),
    );
    add(
        "search.endpoints",
        &columns,
        found
            .endpoints
            .iter()
            .map(|e| {
                let status = chip(Status::as_str(e.status));
                object(e.id.any(), e.scope, status, PageCell::text(e.url.clone()), e.created)
            })
            .collect(),
    );
    add(
        "search.events",
        &columns,
        found
            .events
            .iter()
            .map(|(scope, event)| {
                let linked = PageCell::id(event.linked);
                let kind = PageCell::text(event.event_type.clone());
                object(event.id.any(), *scope, linked, kind, event.created)
            })
            .collect(),
    );
    add(
        "search.accounts",
        &["col.account"],
        found
            .accounts
            .iter()
            .map(|number| {
                let name = accounts.all().find(|(known, _)| known == number);
                let path = format!("/console/accounts/{number}");
                TableLine::new(vec![PageCell::link(&path, name.map_or("?", |(_, name)| name))])
                    .to(path)
            })
            .collect(),
    );
    tables
}

/// An object's account and mode, in one cell.
pub fn whose(visit: &Visit, accounts: &AccountNames, scope: Scope) -> PageCell {
    let key = if scope.livemode() { "page.live" } else { "page.test" };
    PageCell::Several(vec![
        PageCell::text(accounts.of(scope)),
        PageCell::muted(visit.words.get(key)),
    ])
}

/// The path of the page that shows an object. Payouts, deposits, refunds and quote locks are shown
/// on their transfer's page, an event on that of its object, a delivery on that of its endpoint, a
/// key on that of its account. `None` if there is no such object, or if no page shows it: no page
/// shows a quote lock that no transfer has taken.
pub async fn page_of(visit: &Visit, id: AnyId) -> Result<Option<String>, Failure> {
    let read = visit.app.store.read(Cost::Point, move |tx| {
        if let Some((_, endpoint_id)) = search::rows::endpoint_of(tx, id)? {
            return Ok(Some(path_of(endpoint_id.any())));
        }
        if let Some(number) = search::rows::account_of(tx, id)? {
            return Ok(Some(format!("/console/accounts/{number}")));
        }
        let Some(scope) = operator::find_scope(tx, id)? else { return Ok(None) };
        let transfer_id = match id.kind {
            ObjectKind::Payout => match id.typed() {
                Some(id) => payouts::rows::find(tx, scope, id)?.map(|found| found.transfer_id),
                None => None,
            },
            ObjectKind::Deposit => match id.typed() {
                Some(id) => deposits::rows::find(tx, scope, id)?.map(|found| found.transfer_id),
                None => None,
            },
            ObjectKind::Refund => match id.typed() {
                Some(id) => refunds::rows::find(tx, scope, id)?.map(|found| found.transfer_id),
                None => None,
            },
            ObjectKind::QuoteLock => match id.typed() {
                Some(id) => {
                    quote_locks::rows::find(tx, scope, id)?.and_then(|found| found.transfer_id)
                }
                None => None,
            },
            ObjectKind::Event => {
                let event = match id.typed() {
                    Some(id) => crate::events::rows::find(tx, scope, id)?,
                    None => None,
                };
                return Ok(event.map(|event| path_of(event.linked)));
            }
            ObjectKind::Transfer
            | ObjectKind::Beneficiary
            | ObjectKind::Sender
            | ObjectKind::WebhookEndpoint => return Ok(Some(path_of(id))),
            _ => None,
        };
        Ok(transfer_id.map(|id| path_of(id.any())))
    });
    Ok(read.await?)
}
