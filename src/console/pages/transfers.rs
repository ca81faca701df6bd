//! Transfers: the list, and the page of one with its story and possible decisions.

use super::super::blocks::{
    ConsolePage, PageBlock, PageCell, PageForm, Question, Section, StoryStep, Table, TableLine,
    Tone, amount, path_of, short, word,
};
use super::super::visit::{Failure, PageOutcome, Visit};
use super::{decide, fact, mode_chips, mode_of, named, scope_chips, scope_of, stories};
use crate::decisions::{self, Decision};
use crate::kernel::page::{FilterValue, Page as ListPage};
use crate::kernel::state::Status;
use crate::kernel::{AnyId, Id, ObjectKind, Scope};
use crate::operator::four_eyes::{self, ApprovalRequest};
use crate::oversight::story::{self, Moment, Story, StoryTheme};
use crate::oversight::{AccountNames, cut, search};
use crate::store::Cost;
use crate::transfers::Transfer;
use crate::transfers::rows;
use crate::transfers::state::TransferStatus;

/// The most transfers on one page of the list.
const ROWS_MAX: i64 = 50;

/// The list of transfers of a mode, newest first, filtered by account and status.
pub async fn list(visit: Visit) -> PageOutcome {
    let mode = mode_of(&visit);
    let status = TransferStatus::ALL
        .iter()
        .copied()
        .find(|status| Status::as_str(*status) == visit.query("status"));
    let account: i64 = visit.query("account").parse().unwrap_or(0);
    let after = AnyId::parse(visit.query("after")).filter(|id| id.kind == ObjectKind::Transfer);
    let read = visit.app.store.read(Cost::Scan, move |tx| {
        let accounts = AccountNames::read(tx)?;
        let mut found: Vec<Transfer> = Vec::new();
        let mut is_more = false;
        let filters =
            status.map(|status| ("status", FilterValue::Text(Status::as_str(status).to_owned())));
        let scopes = accounts.scopes().filter(|scope| {
            scope.mode() == mode && (account == 0 || scope.account_number() == account)
        });
        for scope in scopes {
            let page = ListPage {
                limit: ROWS_MAX,
                descending: true,
                starting_after: after.map(AnyId::to_bytes),
                filters: filters.clone().into_iter().collect(),
                ..ListPage::default()
            };
            let (rows, has_next) = rows::list(tx, scope, &page)?;
            is_more |= has_next;
            for row in rows {
                found.push(rows::read(row)?);
            }
        }
        found.sort_unstable_by_key(|transfer| std::cmp::Reverse(transfer.id));
        is_more |= found.len() as i64 > ROWS_MAX;
        found.truncate(ROWS_MAX as usize);
        Ok((accounts, found, is_more))
    });
    let (accounts, found, is_more) = read.await?;
    let words = visit.words;
    let mut page = ConsolePage::new("transfers", words.get("transfers.title"));
    let own_path = format!("/console/transfers?status={}&account={account}", visit.query("status"));
    page.chips = mode_chips(&visit, mode, &own_path);
    let mut choices = vec![(String::new(), words.get("page.all").to_owned())];
    choices.extend(TransferStatus::ALL.iter().map(|status| {
        let name = Status::as_str(*status);
        (name.to_owned(), word(words, name))
    }));
    let mut owners = vec![("0".to_owned(), words.get("page.all").to_owned())];
    owners.extend(accounts.all().map(|(number, name)| (number.to_string(), name.to_owned())));
    let question = |name, key: &str, choices, value: &str| Question {
        choices,
        value: value.to_owned(),
        ..Question::new(name, words.get(key))
    };
    let filter = PageForm {
        action: "/console/transfers".into(),
        is_change: false,
        title: String::new(),
        help: String::new(),
        hidden: vec![("mode", mode.as_str().to_owned())],
        questions: vec![
            question("status", "col.status", choices, visit.query("status")),
            question("account", "col.account", owners, &account.to_string()),
        ],
        buttons: vec![(String::new(), words.get("page.filter").to_owned(), false)],
    };
    let mut table = table(&visit, Some(&accounts), &found);
    table.empty = words.get("transfers.empty").to_owned();
    let mut blocks = vec![PageBlock::Form(filter), PageBlock::Table(table)];
    if let (true, Some(last)) = (is_more, found.last()) {
        let (status, account) = (visit.query("status"), visit.query("account"));
        let next = format!(
            "/console/transfers?mode={}&status={status}&account={account}&after={}",
            mode.as_str(),
            last.id
        );
        blocks.push(PageBlock::Links(vec![(next, words.get("page.older").to_owned())]));
    }
    page.still.push(Section::wide("", blocks));
    page.draw(&visit)
}

/// A table of transfers; with `accounts`, it has a column of the accounts' names.
pub fn table(visit: &Visit, accounts: Option<&AccountNames>, transfers: &[Transfer]) -> Table {
    let words = visit.words;
    let mut columns = vec!["col.id", "col.status", "#col.amount", "#col.pays_out", "col.created"];
    if accounts.is_some() {
        columns.insert(4, "col.account");
    }
    let mut table =
        Table::new(words, words.get("transfers.title"), &columns, "transfers.empty_of_person");
    for transfer in transfers {
        let mut status = vec![PageCell::chip(words, Status::as_str(transfer.status))];
        if let Some(reason) = transfer.status_reason {
            status.push(PageCell::Muted(word(words, reason.as_str())));
        }
        let path = path_of(transfer.id.any());
        let mut cells = vec![
            PageCell::id(transfer.id.any()),
            PageCell::Several(status),
            PageCell::money(transfer.amount),
            PageCell::money(transfer.payout_amount),
        ];
        cells.extend(accounts.map(|accounts| PageCell::text(accounts.of(transfer.scope))));
        cells.push(PageCell::time(transfer.created));
        table.lines.push(TableLine::new(cells).to(path));
    }
    table
}

pub async fn one(visit: Visit) -> PageOutcome {
    compose(&visit).await?.draw(&visit)
}

/// The part of the page that the browser loads anew from time to time.
pub async fn reload(visit: Visit) -> PageOutcome {
    compose(&visit).await?.draw_reloaded(&visit)
}

async fn compose(visit: &Visit) -> Result<ConsolePage, Failure> {
    let id = named(visit, ObjectKind::Transfer)?;
    let scope = scope_of(visit, id).await?;
    let instant = visit.instant();
    let read = visit.app.store.read(Cost::Scan, move |tx| {
        let accounts = AccountNames::read(tx)?;
        let Some(id) = id.typed() else { return Ok(None) };
        let Some(story) = story::read(tx, &accounts, scope, id, instant)? else {
            return Ok(None);
        };
        let (mut decided, mut waiting, mut is_cut) = (Vec::new(), Vec::new(), false);
        for subject in subjects(&story) {
            let subject = subject.to_string();
            let rows_max = story::ROWS_MAX;
            let mut found = decisions::rows::newest_of_subject(tx, &subject, rows_max + 1)?;
            is_cut |= cut(&mut found, rows_max);
            decided.extend(found.into_iter().rev());
            waiting.extend(four_eyes::rows::pending_about(tx, &subject)?);
        }
        Ok(Some((story, (decided, is_cut), waiting)))
    });
    let (story, decided, waiting) = read.await?.ok_or(Failure::NotFound)?;
    Ok(draw(visit, scope, &story, &decided, &waiting))
}

/// The objects of a story. The transfer's page shows the decisions about each of them.
fn subjects(story: &Story) -> Vec<AnyId> {
    let mut subjects = vec![
        story.transfer.id.any(),
        story.transfer.sender_id.any(),
        story.transfer.beneficiary_id.any(),
    ];
    subjects.extend(story.deposits.iter().map(|deposit| deposit.id.any()));
    subjects.extend(story.payout.iter().map(|payout| payout.id.any()));
    subjects.extend(story.refunds.iter().map(|refund| refund.id.any()));
    subjects
}

/// The requests that wait for a second person, and a link to the page that approves them.
fn waits_for_second(visit: &Visit, waiting: &[ApprovalRequest]) -> Section {
    let words = visit.words;
    let note = |request: &ApprovalRequest| {
        let key = format!("act.{}", request.word);
        let values = [("act", words.get(&key)), ("person", request.requester.as_str())];
        PageBlock::Note { tone: Tone::Attention, text: words.with("approvals.asked_by", values) }
    };
    let mut blocks: Vec<PageBlock> = waiting.iter().map(note).collect();
    let link = ("/console/approvals".to_owned(), words.get("nav.approvals").to_owned());
    blocks.push(PageBlock::Links(vec![link]));
    Section::wide(words.get("approvals.title"), blocks)
}

fn draw(
    visit: &Visit,
    scope: Scope,
    story: &Story,
    (decided, has_more_decisions): &(Vec<Decision>, bool),
    waiting: &[ApprovalRequest],
) -> ConsolePage {
    let words = visit.words;
    let transfer = &story.transfer;
    let title = format!("{} → {}", amount(transfer.amount), amount(transfer.payout_amount));
    let mut page = ConsolePage::new("transfers", title);
    page.chips = vec![PageCell::chip(words, Status::as_str(transfer.status))];
    page.chips.extend(scope_chips(visit, &story.account, scope));
    page.id = Some(transfer.id.to_string());
    page.reload_path = Some(format!("/console/transfers/{}/live", transfer.id));
    if !waiting.is_empty() {
        page.reloaded.push(waits_for_second(visit, waiting));
    }
    page.reloaded.push(Section::half(words.get("transfer.facts"), vec![facts(visit, story)]));
    page.reloaded.push(Section::half(words.get("transfer.persons"), vec![persons(visit, story)]));
    let steps = steps(visit, story, decided);
    let mut blocks = vec![PageBlock::Story(steps)];
    let count = story::ROWS_MAX.to_string();
    let notes = [(story.is_cut, "transfer.cut"), (*has_more_decisions, "transfer.decisions_cut")];
    for (_, key) in notes.into_iter().filter(|(is_cut, _)| *is_cut) {
        let text = words.with(key, [("count", &count)]);
        blocks.insert(0, PageBlock::Note { tone: Tone::Attention, text });
    }
    page.reloaded.push(Section::wide(words.get("transfer.story"), blocks));
    let forms = decide::of_story(visit, story);
    page.still.push(Section::wide(words.get("transfer.decide"), forms));
    page
}

fn facts(visit: &Visit, story: &Story) -> PageBlock {
    let (words, transfer) = (visit.words, &story.transfer);
    let mut status = vec![PageCell::chip(words, Status::as_str(transfer.status))];
    if let Some(reason) = transfer.status_reason {
        status.push(PageCell::Muted(word(words, reason.as_str())));
    }
    let mut facts = vec![fact(visit, "col.status", PageCell::Several(status))];
    if let Some(until) = transfer.hold_until {
        facts.push(fact(visit, "fact.decides_itself", PageCell::time(until)));
    }
    facts.extend([
        fact(visit, "fact.expected", PageCell::money(transfer.expected)),
        fact(visit, "fact.received", PageCell::money(transfer.received)),
    ]);
    if !transfer.excess.is_zero() {
        facts.push(fact(visit, "fact.excess", PageCell::money(transfer.excess)));
    }
    facts.push(fact(visit, "fact.rate", PageCell::number(transfer.rate)));
    facts.push(fact(visit, "fact.fee", PageCell::money(transfer.fee)));
    if let Some(gst) = transfer.gst {
        facts.push(fact(visit, "fact.gst", PageCell::money(gst.amount)));
    }
    let address = transfer.deposit_address.to_string();
    let address = on_chain(visit, transfer, OnChain::Address, &address);
    facts.push(fact(visit, "fact.deposit_address", address));
    facts.push(fact(visit, "fact.expires", PageCell::time(transfer.expires_at)));
    if let Some(payout) = &story.payout {
        let utr = payout.unique_transaction_reference.clone();
        facts.push(fact(visit, "fact.utr", utr.map_or(PageCell::none(), PageCell::Code)));
        let method = payout.method.as_str().to_ascii_uppercase();
        facts.push(fact(visit, "fact.method", PageCell::Text(method)));
    }
    if let Some(reference) = &transfer.reference {
        facts.push(fact(visit, "fact.reference", PageCell::Code(reference.clone())));
    }
    facts.push(fact(visit, "fact.purpose", PageCell::text(transfer.purpose_code.as_str())));
    facts.push(fact(visit, "fact.created", PageCell::time(transfer.created)));
    PageBlock::Facts(facts)
}

fn persons(visit: &Visit, story: &Story) -> PageBlock {
    let words = visit.words;
    let mut facts = Vec::new();
    if let Some(sender) = &story.sender {
        facts.push(fact(
            visit,
            "fact.sender",
            PageCell::Several(vec![
                PageCell::link(path_of(sender.id.any()), sender.name.clone()),
                PageCell::muted(sender.country.clone()),
                PageCell::chip(words, sender.screening.as_str()),
            ]),
        ));
    }
    if let Some(beneficiary) = &story.beneficiary {
        facts.push(fact(
            visit,
            "fact.beneficiary",
            PageCell::Several(vec![
                PageCell::link(path_of(beneficiary.id.any()), beneficiary.name.clone()),
                PageCell::chip(words, Status::as_str(beneficiary.status)),
            ]),
        ));
        let account = format!("{} …{}", beneficiary.ifsc, beneficiary.account_number_last4);
        let bank = beneficiary.bank_name.clone().unwrap_or_default();
        facts.push(fact(
            visit,
            "fact.account_number",
            PageCell::Several(vec![PageCell::Code(account), PageCell::Muted(bank)]),
        ));
    }
    let number = story.transfer.scope.account_number();
    facts.push(fact(
        visit,
        "col.account",
        PageCell::link(format!("/console/accounts/{number}"), story.account.clone()),
    ));
    if let Some(instruction) = &story.instruction {
        let said = instruction.reason.words();
        facts.extend(said.map(|said| {
            let mut cells = vec![PageCell::Text(said)];
            if let Some(file) = &story.reason_file {
                cells.push(PageCell::Code(file.message_id.clone()));
                cells.push(PageCell::time(file.received_at));
            }
            fact(visit, "fact.bank_says", PageCell::Several(cells))
        }));
        if let Some(attention) = instruction.attention {
            let meaning = words.service_text(attention.meaning());
            facts.push(fact(visit, "fact.attention", PageCell::Text(meaning)));
        }
    }
    PageBlock::Facts(facts)
}

/// What a block explorer can show.
#[derive(Clone, Copy)]
enum OnChain {
    Transaction,
    Address,
}

/// A transaction or an address, as a link to a block explorer; as plain code if no explorer is
/// known for the chain.
fn on_chain(visit: &Visit, transfer: &Transfer, what: OnChain, value: &str) -> PageCell {
    let ports = visit.services().ports(transfer.scope.mode()).ok();
    let explorer = ports.and_then(|ports| ports.chain.explorer(&transfer.chain));
    let Some(explorer) = explorer else { return PageCell::Code(value.to_owned()) };
    let href = match what {
        OnChain::Transaction => explorer.of_transaction(value),
        OnChain::Address => explorer.of_address(value),
    };
    PageCell::Outside { href, text: short(value) }
}

/// The moments of the story and the decisions, in order of time.
fn steps(visit: &Visit, story: &Story, decided: &[Decision]) -> Vec<StoryStep> {
    // The decisions come first, and the sort is stable. So within one second, a decision stands
    // before what follows from it.
    let ahead_seconds = story.business - visit.instant();
    let decided = decided.iter().map(|made| stories::decided_about(visit, made, ahead_seconds));
    let mut steps: Vec<(i64, StoryStep)> = decided.collect();
    for moment in story.moments() {
        let event = story.announced.iter().find(|told| Some(told.event.id.any()) == moment.id);
        steps.push(match event {
            Some(event) => stories::announced(visit, event),
            None => (moment.at, step(visit, story, moment)),
        });
    }
    steps.sort_by_key(|(at, _)| *at);
    steps.into_iter().map(|(_, step)| step).collect()
}

fn step(visit: &Visit, story: &Story, moment: Moment) -> StoryStep {
    let (words, transfer) = (visit.words, &story.transfer);
    let mut facts = Vec::new();
    if let Some(id) = moment.id
        && moment.theme != StoryTheme::Transfer
    {
        facts.push(fact(visit, "col.id", PageCell::Code(short(&id.to_string()))));
    }
    for (name, value) in moment.facts {
        let cell = match name {
            "transaction" => on_chain(visit, transfer, OnChain::Transaction, &value),
            "to_address" => on_chain(visit, transfer, OnChain::Address, &value),
            "utr" | "file" | "statement" | "entry_reference" => PageCell::Code(value),
            "reason" | "classification" | "said_by" | "declared_by" | "from" | "to"
            | "name_match" | "kind" => PageCell::Text(word(words, &value)),
            "rate_source" => PageCell::Text(word(words, &format!("rates_{value}"))),
            "rate_observed_at" => PageCell::time_or_none(value.parse().ok()),
            "list" => {
                let (list, entry_id) = value.split_once(' ').unwrap_or((&value, ""));
                PageCell::Text(words.listed(list, entry_id))
            }
            "evidence" => PageCell::Text(words.evidence(&value)),
            "decided_by" => PageCell::Text(stories::decided_by(visit, &moment.what, &value)),
            _ => PageCell::Text(value),
        };
        facts.push(fact(visit, &format!("fact.{name}"), cell));
    }
    StoryStep {
        at: PageCell::time(moment.at),
        theme: words.get(&format!("theme.{}", moment.theme.as_str())).to_owned(),
        title: word(words, &moment.what),
        tone: Tone::of(&moment.what),
        amount: moment.amount.map(amount),
        facts,
        is_quiet: moment.theme == StoryTheme::Ledger,
    }
}

/// The transfers with these identifiers, in the same order; at most twice [`search::FOUND_MAX`].
pub fn of_ids(
    tx: &mut dyn crate::store::Tx,
    scope: Scope,
    ids: Vec<Id<crate::kernel::id::kind::Transfer>>,
) -> Result<Vec<Transfer>, crate::kernel::StoreError> {
    let mut found = Vec::new();
    for id in ids.into_iter().take(search::FOUND_MAX * 2) {
        found.extend(rows::find(tx, scope, id)?);
    }
    Ok(found)
}
