//! The pages of a beneficiary and of a sender: facts, hits of screening, story and transfers.

use super::super::blocks::{
    ConsolePage, PageBlock, PageCell, PageForm, Section, StoryStep, Table, TableLine, path_of, word,
};
use super::super::visit::{Failure, PageOutcome, Visit};
use super::stories::{self, StoryPart, step};
use super::{decide, fact, limits, named, scope_chips, scope_of, transfers};
use crate::decisions::{self, Decision};
use crate::kernel::state::Status;
use crate::kernel::{AnyId, ObjectKind, Scope};
use crate::oversight::story::{self, Announced};
use crate::oversight::{AccountNames, cut};
use crate::payouts::limits::{LimitSubject, LimitUsage};
use crate::screening::hit::HitRow;
use crate::screening::rows as hits;
use crate::services::PayoutLimits;
use crate::staff::Role;
use crate::store::{Cost, Tx};
use crate::transfers::Transfer;
use crate::{beneficiaries, senders};

/// The most transfers that are shown.
const ROWS_MAX: i64 = 40;

/// The parts that both pages have.
struct CommonParts {
    accounts: AccountNames,
    transfers: Vec<Transfer>,
    has_more_transfers: bool,
    hits: Vec<HitRow>,
    decided: Vec<Decision>,
    announced: Vec<Announced>,
    used: Vec<LimitUsage>,
    /// How far the account's test clock is ahead.
    ahead_seconds: i64,
}

/// The parts that differ between a beneficiary's page and a sender's.
struct OwnParts {
    name: String,
    /// The key of the text for the kind: beneficiary or sender.
    what: &'static str,
    status: &'static str,
    facts: Vec<(String, PageCell)>,
    moments: Vec<(i64, StoryStep)>,
    decide: Vec<PageBlock>,
    /// The title and the form of a section of its own.
    form: Option<(String, PageBlock)>,
}

/// Whose page a request asks for, and what is needed to read it.
#[derive(Clone)]
struct Asked {
    scope: Scope,
    id: AnyId,
    limits: PayoutLimits,
    instant_milliseconds: i64,
    part: StoryPart,
}

async fn asked(visit: &Visit, kind: ObjectKind) -> Result<Asked, Failure> {
    let id = named(visit, kind)?;
    Ok(Asked {
        scope: scope_of(visit, id).await?,
        id,
        limits: visit.services().settings.payout_limits.clone(),
        instant_milliseconds: visit.app.store.clock.milliseconds(),
        part: StoryPart::asked(visit),
    })
}

fn read_common(tx: &mut dyn Tx, asked: &Asked) -> Result<CommonParts, crate::kernel::StoreError> {
    let Asked { scope, id, part, .. } = *asked;
    let mut ids = story::rows::transfers_of_person(tx, scope, id, ROWS_MAX + 1)?;
    let has_more_transfers = cut(&mut ids, ROWS_MAX);
    let subject = match id.kind {
        ObjectKind::Sender => LimitSubject::Sender,
        _ => LimitSubject::Beneficiary,
    };
    let at = asked.instant_milliseconds;
    let accounts = AccountNames::read(tx)?;
    let decided = decisions::rows::newest_of_subject(tx, &id.to_string(), part.rows_max())?;
    Ok(CommonParts {
        ahead_seconds: accounts.ahead_seconds(scope),
        accounts,
        transfers: transfers::of_ids(tx, scope, ids)?,
        has_more_transfers,
        hits: hits::of_subject(tx, scope, id)?,
        decided: decided.into_iter().rev().collect(),
        announced: story::announced(tx, scope, &[id], part.rows_max())?.0,
        used: limits::usage(tx, &asked.limits, scope, subject, Some(id), at)?,
    })
}

pub async fn beneficiary(visit: Visit) -> PageOutcome {
    let asked = asked(&visit, ObjectKind::Beneficiary).await?;
    let wanted = asked.clone();
    let read = visit.app.store.read(Cost::Scan, move |tx| {
        let Some(typed) = wanted.id.typed() else { return Ok(None) };
        let found = beneficiaries::rows::find(tx, wanted.scope, typed)?;
        let Some(found) = found else { return Ok(None) };
        Ok(Some((found, read_common(tx, &wanted)?)))
    });
    let (found, common) = read.await?.ok_or(Failure::NotFound)?;
    let holder_name = beneficiaries::differing_holder_name(&found, visit.services())?;
    let words = visit.words;
    let text = |value: &Option<String>| value.clone().map_or(PageCell::none(), PageCell::Text);
    let mut facts = vec![
        fact(&visit, "fact.payable", PageCell::chip(words, yes_or_no(found.is_payable()))),
        fact(
            &visit,
            "fact.account_number",
            PageCell::Code(format!("…{}", found.account_number_last4)),
        ),
        fact(&visit, "fact.ifsc", PageCell::Code(found.ifsc.clone())),
        fact(&visit, "fact.bank", text(&found.bank_name)),
        fact(&visit, "fact.branch", text(&found.branch_name)),
        fact(
            &visit,
            "fact.name_match",
            found
                .name_match
                .map_or(PageCell::none(), |found| PageCell::chip(words, found.as_str())),
        ),
        fact(&visit, "fact.checked", PageCell::time_or_none(found.checked_at)),
        fact(&visit, "fact.email", text(&found.email)),
        fact(&visit, "fact.phone", text(&found.phone)),
        fact(&visit, "fact.created", PageCell::time(found.created)),
    ];
    if let Some(name) = holder_name {
        let after_match = facts.len() - 4;
        facts.insert(after_match, fact(&visit, "fact.holder_name", PageCell::Text(name)));
    }
    if let Some(reason) = found.payouts_disabled_reason {
        facts.insert(1, fact(&visit, "fact.reason", PageCell::chip(words, reason.as_str())));
    }
    let history = found.status_history.entries();
    let mut moments: Vec<(i64, StoryStep)> = history
        .iter()
        .map(|taken| {
            let what = Status::as_str(taken.status);
            (taken.at, step(&visit, taken.at, "theme.beneficiary", what))
        })
        .collect();
    if let (Some(at), Some(agrees)) = (found.checked_at, found.name_match) {
        let mut made = step(&visit, at, "theme.check", "account_checked");
        let cell = PageCell::chip(words, agrees.as_str());
        made.facts = vec![fact(&visit, "fact.name_match", cell)];
        // Within the same second, the check comes before the status that followed from it.
        let place = moments.iter().skip(1).position(|(since, _)| *since >= at);
        moments.insert(place.map_or(moments.len(), |place| place + 1), (at, made));
    }
    let decide = decide::of_beneficiary(&visit, &found);
    let form = account_number_form(&visit, asked.id);
    let status = Status::as_str(found.status);
    let own = OwnParts {
        name: found.name,
        what: "fact.beneficiary",
        status,
        facts,
        moments,
        decide,
        form,
    };
    draw(&visit, &asked, common, own)
}

/// The form that shows the full account number; `None` for a role that may not see it.
fn account_number_form(visit: &Visit, id: AnyId) -> Option<(String, PageBlock)> {
    if !visit.operator().role.includes(Role::Operator) {
        return None;
    }
    let words = visit.words;
    let form = PageForm {
        action: format!("/console/beneficiaries/{id}/account_number"),
        is_change: true,
        title: String::new(),
        help: words.get("account_number.help").to_owned(),
        hidden: Vec::new(),
        questions: decide::questions(visit, &[]),
        buttons: vec![(String::new(), words.get("account_number.show").to_owned(), false)],
    };
    Some((words.get("account_number.title").to_owned(), PageBlock::Form(form)))
}

pub async fn sender(visit: Visit) -> PageOutcome {
    let asked = asked(&visit, ObjectKind::Sender).await?;
    let wanted = asked.clone();
    let read = visit.app.store.read(Cost::Scan, move |tx| {
        let Some(typed) = wanted.id.typed() else { return Ok(None) };
        let Some(found) = senders::rows::find(tx, wanted.scope, typed)? else { return Ok(None) };
        Ok(Some((found, read_common(tx, &wanted)?)))
    });
    let (found, common) = read.await?.ok_or(Failure::NotFound)?;
    let words = visit.words;
    let text = |value: &Option<String>| value.clone().map_or(PageCell::none(), PageCell::Text);
    let address = found.address.as_ref().map(|address| {
        [Some(&address.line1), Some(&address.city), address.state.as_ref(), Some(&address.country)]
            .into_iter()
            .flatten()
            .cloned()
            .collect::<Vec<_>>()
            .join(", ")
    });
    let document = found.identification_type.map(|document| word(words, document.as_str()));
    let facts = vec![
        fact(&visit, "fact.country", PageCell::text(found.country.clone())),
        fact(&visit, "fact.nationality", text(&found.nationality)),
        fact(&visit, "fact.date_of_birth", text(&found.date_of_birth)),
        fact(&visit, "fact.address", text(&address)),
        fact(&visit, "fact.email", text(&found.email)),
        fact(&visit, "fact.document", text(&document)),
        fact(&visit, "fact.created", PageCell::time(found.created)),
    ];
    let moments = vec![(found.created, step(&visit, found.created, "theme.sender", "created"))];
    let (decide, status) = (decide::of_sender(&visit, &found), found.screening.as_str());
    let (what, form) = ("fact.sender", None);
    let own = OwnParts { name: found.name, what, status, facts, moments, decide, form };
    draw(&visit, &asked, common, own)
}

fn draw(visit: &Visit, asked: &Asked, common: CommonParts, own: OwnParts) -> PageOutcome {
    let words = visit.words;
    let mut page = ConsolePage::new("transfers", own.name);
    page.id = Some(asked.id.to_string());
    page.chips =
        vec![PageCell::Muted(words.get(own.what).to_owned()), PageCell::chip(words, own.status)];
    page.chips.extend(scope_chips(visit, common.accounts.of(asked.scope), asked.scope));
    let mut facts = own.facts;
    for used in &common.used {
        let period = limits::period(visit, used.subject, used.is_month);
        facts.push((period, limits::share(visit, used)));
    }
    // The facts come before the table of hits. Each takes the whole width if there are hits;
    // otherwise they stand side by side.
    let (title, is_wide) = (words.get("person.facts").to_owned(), !common.hits.is_empty());
    page.still.push(Section { title, is_wide, blocks: vec![PageBlock::Facts(facts)] });
    add_common(visit, asked, &mut page, common, own.moments);
    if let Some((title, form)) = own.form {
        page.still.push(Section::half(title, vec![form]));
    }
    page.still.push(Section::wide(words.get("transfer.decide"), own.decide));
    page.draw(visit)
}

const fn yes_or_no(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

fn add_common(
    visit: &Visit,
    asked: &Asked,
    page: &mut ConsolePage,
    common: CommonParts,
    mut moments: Vec<(i64, StoryStep)>,
) {
    let words = visit.words;
    let caption = words.get("person.hits");
    let columns =
        ["col.list", "fact.evidence", "col.state", "#col.score", "col.decision", "col.created"];
    let mut table = Table::new(words, caption, &columns, "person.no_hits");
    for hit in &common.hits {
        let decision = hit.decision.map_or_else(
            || PageCell::chip(words, "waiting"),
            |decision| PageCell::chip(words, decision.as_str()),
        );
        table.lines.push(TableLine::new(vec![
            PageCell::Text(words.listed(&hit.list, &hit.entry_id)),
            PageCell::Text(words.evidence(&hit.evidence)),
            PageCell::chip(words, hit.screening.as_str()),
            PageCell::Number(format!("{} %", hit.score_basis_points / 100)),
            decision,
            PageCell::time(hit.created),
        ]));
        moments.extend(stories::found(visit, hit));
    }
    // The evidence of a hit takes room.
    let is_wide = !common.hits.is_empty();
    let (title, blocks) = (caption.to_owned(), vec![PageBlock::Table(table)]);
    page.still.push(Section { title, is_wide, blocks });
    let ahead = common.ahead_seconds;
    moments.extend(common.decided.iter().map(|made| stories::decided(visit, made, ahead)));
    moments.extend(common.announced.iter().map(|event| stories::announced(visit, event)));
    page.still.push(asked.part.section(visit, &path_of(asked.id), moments));
    let mut table = transfers::table(visit, None, &common.transfers);
    table.tell_more(words, common.has_more_transfers);
    page.still.push(Section::wide(words.get("transfers.title"), vec![PageBlock::Table(table)]));
}
