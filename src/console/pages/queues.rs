//! One queue of objects that wait for a person: filtered, sorted, and decided one by one or
//! together.

use super::super::blocks::{
    ConsolePage, PageBlock, PageCell, PageForm, Question, Section, Table, TableLine, age, path_of,
    short, word,
};
use super::super::visit::{Failure, PageOutcome, Visit};
use super::{chain_names, decide, machinery, mode_chips, mode_of};
use crate::kernel::{AnyId, Mode, ObjectKind};
use crate::oversight::AccountNames;
use crate::oversight::queues::{self, Item, QueueFacts, QueueItems, QueueKind, ShownDifference};
use crate::oversight::stops::{self, OperatorStop};
use crate::rails::files::reports::Sign;
use crate::staff::Role;
use crate::store::Cost;

/// A queue as it was read.
struct Waiting {
    queue: QueueKind,
    mode: Mode,
    accounts: AccountNames,
    items: Vec<Item>,
    /// There are more items than were read.
    is_more: bool,
    stops: Vec<OperatorStop>,
}

async fn read(visit: &Visit) -> Result<Waiting, Failure> {
    let queue = QueueKind::parse(visit.path(0)).ok_or(Failure::NotFound)?;
    let mode = mode_of(visit);
    let services = visit.app.services.clone();
    let read = visit.app.store.read(Cost::Scan, move |tx| {
        let accounts = AccountNames::read(tx)?;
        let found = queues::read(tx, queue, &accounts, mode, &chain_names())?;
        let QueueItems { mut items, is_more } = found;
        if matches!(queue, QueueKind::Reviews | QueueKind::Verifications) {
            queues::add_holder_names(tx, &services, &mut items)?;
        }
        let stops = stops::read(tx, &accounts)?;
        Ok(Waiting { queue, mode, accounts, items, is_more, stops })
    });
    Ok(read.await?)
}

/// The rows alone, for a page that shows the rest already: what is typed and ticked there stays.
pub async fn reload(visit: Visit) -> PageOutcome {
    let waiting = read(&visit).await?;
    list(&visit, &waiting).0.draw_rows()
}

pub async fn page(visit: Visit) -> PageOutcome {
    let waiting = read(&visit).await?;
    let (words, queue) = (visit.words, waiting.queue);
    let name = queue.as_str();
    let (mut table, form) = list(&visit, &waiting);
    let (path, query) = visit.asked_path();
    table.reload_path = Some(format!("{path}/live{query}"));
    let mut page = ConsolePage::new("queues", words.get(&format!("queue.{name}")));
    page.chips = mode_chips(&visit, waiting.mode, &format!("/console/queues/{name}"));
    page.still.push(Section::wide("", vec![tabs(&visit, queue)]));
    let help = words.get(&format!("queue_help.{name}")).to_owned();
    let note = PageBlock::Note { tone: super::Tone::Plain, text: help };
    let list = match form {
        Some(form) => PageBlock::Picked { table, form },
        None => PageBlock::Table(table),
    };
    let filter = filter(&visit, &waiting);
    page.still.push(Section::wide("", vec![note, PageBlock::Form(filter), list]));
    page.draw(&visit)
}

/// The rows that the filters let pass, in the order that was asked for; and the form that decides
/// about the ticked ones, if the queue has one and the operator may decide.
fn list(visit: &Visit, waiting: &Waiting) -> (Table, Option<PageForm>) {
    let (queue, accounts) = (waiting.queue, &waiting.accounts);
    let (account, reason) = (visit.query("account"), visit.query("reason"));
    let is_asked = |item: &&Item| queues::is_asked(item, accounts, account, reason);
    let mut items: Vec<&Item> = waiting.items.iter().filter(is_asked).collect();
    match visit.query("sort") {
        "amount" => items
            .sort_by_key(|item| std::cmp::Reverse(item.amount.map_or(0, |amount| amount.units))),
        "newest" => items.sort_by_key(|item| std::cmp::Reverse(item.since)),
        _ => items.sort_by_key(|item| item.since),
    }
    let mut table = table(visit, waiting, &items);
    table.empty = visit.words.get(&format!("queue_empty.{}", queue.as_str())).to_owned();
    table.tell_more(visit.words, waiting.is_more);
    let can_decide = visit.operator().role.includes(Role::Operator);
    let together = decide::together(visit, queue, waiting.mode).filter(|_| can_decide);
    if together.is_some() {
        for (line, item) in table.lines.iter_mut().zip(&items) {
            line.pick = item.id.map(|id| id.to_string()).or_else(|| difference_pick(item));
        }
    }
    (table, together)
}

/// How a form names a difference: by its identifier, or by its kind and what it is about.
fn difference_pick(item: &Item) -> Option<String> {
    match &item.facts {
        QueueFacts::Difference { name, shown: ShownDifference::Comparison { .. } } => {
            Some(format!("{} {name}", item.reason))
        }
        QueueFacts::Difference { name, .. } => Some(name.clone()),
        _ => None,
    }
}

/// Links to the other queues.
fn tabs(visit: &Visit, shown: QueueKind) -> PageBlock {
    let links = QueueKind::ALL.iter().filter(|kind| **kind != shown).map(|kind| {
        let name = kind.as_str();
        let text = visit.words.get(&format!("queue.{name}")).to_owned();
        (format!("/console/queues/{name}?mode={}", mode_of(visit).as_str()), text)
    });
    PageBlock::Links(links.collect())
}

fn filter(visit: &Visit, waiting: &Waiting) -> PageForm {
    let words = visit.words;
    let mut reasons: Vec<&str> = waiting.items.iter().flat_map(Item::reasons).collect();
    reasons.sort_unstable();
    reasons.dedup();
    let all = || (String::new(), words.get("page.all").to_owned());
    let mut owners = vec![all()];
    owners.extend(waiting.accounts.all().map(|(_, name)| (name.to_owned(), name.to_owned())));
    let mut choices = vec![all()];
    choices.extend(reasons.iter().map(|reason| ((*reason).to_owned(), word(words, reason))));
    // The rows of these queues have no amounts to sort by.
    let has_amounts = !matches!(waiting.queue, QueueKind::Reviews | QueueKind::Verifications);
    let orders = ["oldest", "newest", "amount"]
        .into_iter()
        .filter(|order| has_amounts || *order != "amount")
        .map(|order| (order.to_owned(), words.get(&format!("page.sort_{order}")).to_owned()))
        .collect();
    let modes = [("test", "page.test"), ("live", "page.live")]
        .map(|(mode, key)| (mode.to_owned(), words.get(key).to_owned()))
        .to_vec();
    let question = |name, key: &str, choices: Vec<(String, String)>| Question {
        choices,
        value: visit.query(name).to_owned(),
        ..Question::new(name, words.get(key))
    };
    let mut questions = vec![Question {
        value: waiting.mode.as_str().to_owned(),
        ..question("mode", "col.mode", modes)
    }];
    // There is no filter by account or reason in a queue without that column.
    if waiting.queue != QueueKind::Differences {
        questions.push(question("account", "col.account", owners));
    }
    if waiting.queue != QueueKind::Unmatched {
        questions.push(question("reason", "col.reason", choices));
    }
    questions.push(question("sort", "page.sort", orders));
    PageForm {
        action: format!("/console/queues/{}", waiting.queue.as_str()),
        is_change: false,
        title: String::new(),
        help: String::new(),
        hidden: Vec::new(),
        questions,
        buttons: vec![(String::new(), words.get("page.filter").to_owned(), false)],
    }
}

/// What the cells of a row are made from.
struct RowSource<'a> {
    visit: &'a Visit,
    waiting: &'a Waiting,
}

/// A column: the key of its name (after a `#` for a column of numbers), and what stands in it.
type QueueColumn = (&'static str, fn(&RowSource<'_>, &Item) -> PageCell);

const ID: QueueColumn = ("col.id", id_cell);
const REASON: QueueColumn = ("col.reason", reason_cell);
const AMOUNT: QueueColumn = ("#col.amount", amount_cell);
const RECEIVED: QueueColumn = ("#fact.received", amount_cell);
const EXPECTED: QueueColumn = ("#fact.expected", expected_cell);
const SCREENED: QueueColumn = ("col.screened", name_cell);
const LISTED: QueueColumn = ("col.listed", listed_cell);
const NAME: QueueColumn = ("col.name", name_cell);
const ACCOUNT_NUMBER: QueueColumn = ("fact.account_number", account_number_cell);
const BANK_WORDS: QueueColumn = ("fact.bank_says", bank_words_cell);
const TO_ADDRESS: QueueColumn = ("col.to_address", to_address_cell);
const WAITS: QueueColumn = ("col.waits", waits_cell);
const TRANSACTION: QueueColumn = ("fact.transaction", transaction_cell);
const BOOKING: QueueColumn = ("col.booking", booking_cell);
const DETAIL: QueueColumn = ("col.detail", detail_cell);
const ACCOUNT: QueueColumn = ("col.account", account_cell);
const AGE: QueueColumn = ("col.age", age_cell);

/// The columns of a queue: those that its rows fill.
fn columns(queue: QueueKind, items: &[&Item]) -> &'static [QueueColumn] {
    match queue {
        QueueKind::Holds => &[ID, REASON, RECEIVED, EXPECTED, ACCOUNT, AGE],
        QueueKind::Reviews => &[ID, REASON, SCREENED, LISTED, ACCOUNT, AGE],
        QueueKind::Verifications => &[ID, REASON, NAME, ACCOUNT_NUMBER, ACCOUNT, AGE],
        QueueKind::Payouts => &[ID, REASON, AMOUNT, BANK_WORDS, ACCOUNT, AGE],
        QueueKind::Refunds => &[ID, REASON, AMOUNT, TO_ADDRESS, WAITS, ACCOUNT, AGE],
        QueueKind::RefundAddresses => &[ID, REASON, AMOUNT, WAITS, ACCOUNT, AGE],
        // Every unmatched deposit has the same reason, so there is no column for it.
        QueueKind::Unmatched => &[ID, AMOUNT, TRANSACTION, ACCOUNT, AGE],
        // A difference belongs to no account. Only a line of the bank's statement has a booking.
        QueueKind::Differences if items.iter().any(|item| statement_line(item).is_some()) => {
            &[ID, REASON, AMOUNT, BOOKING, DETAIL, AGE]
        }
        QueueKind::Differences => &[ID, REASON, AMOUNT, DETAIL, AGE],
    }
}

fn id_cell(source: &RowSource<'_>, item: &Item) -> PageCell {
    match (item.id, &item.facts) {
        (Some(id), _) => PageCell::id(id),
        (None, QueueFacts::Difference { name, .. }) => difference_cell(source.visit, name),
        (None, _) => PageCell::none(),
    }
}

/// The name of a difference: a link to an object, or a code. A line of a bank's statement and a
/// difference with a chain are named by an `InternalId`, whose text begins with `request_`. No
/// other page shows this identifier, so the cell has only its end.
fn difference_cell(visit: &Visit, name: &str) -> PageCell {
    match AnyId::parse(name) {
        Some(id) if id.kind != ObjectKind::Request => PageCell::id(id),
        Some(_) => PageCell::Code(short(name).replace("request_", "")),
        None => PageCell::Code(visit.words.subject(name)),
    }
}

fn reason_cell(source: &RowSource<'_>, item: &Item) -> PageCell {
    let words = source.visit.words;
    let mut reason = vec![PageCell::chip(words, &item.reason)];
    if let QueueFacts::Hold { until: Some(until), .. } = item.facts {
        reason.push(PageCell::muted(words.get("queue.until")));
        reason.push(PageCell::time(until));
    }
    PageCell::Several(reason)
}

fn amount_cell(_: &RowSource<'_>, item: &Item) -> PageCell {
    item.amount.map_or(PageCell::none(), PageCell::money)
}

fn expected_cell(_: &RowSource<'_>, item: &Item) -> PageCell {
    match item.facts {
        QueueFacts::Hold { expected, .. } => PageCell::money(expected),
        _ => PageCell::none(),
    }
}

fn words_or_none(text: Option<&str>) -> PageCell {
    text.map_or(PageCell::none(), PageCell::breakable)
}

/// The name or the address of the object. If the holder of the bank account has another name, the
/// cell has both.
fn name_cell(source: &RowSource<'_>, item: &Item) -> PageCell {
    let (name, holder_name) = match &item.facts {
        QueueFacts::Review { screened, holder_name, .. } => (screened.as_deref(), holder_name),
        QueueFacts::Verification { name, holder_name, .. } => (Some(name.as_str()), holder_name),
        _ => return PageCell::none(),
    };
    match holder_name {
        None => words_or_none(name),
        Some(holder) => PageCell::Several(vec![
            words_or_none(name),
            PageCell::muted(source.visit.words.get("queue.holder_name")),
            PageCell::breakable(holder),
        ]),
    }
}

fn listed_cell(source: &RowSource<'_>, item: &Item) -> PageCell {
    let QueueFacts::Review { list, entry_id, evidence, .. } = &item.facts else {
        return PageCell::none();
    };
    let words = source.visit.words;
    PageCell::Several(vec![
        PageCell::Muted(words.listed(list, entry_id)),
        PageCell::Text(words.evidence(evidence)),
    ])
}

fn account_number_cell(_: &RowSource<'_>, item: &Item) -> PageCell {
    let QueueFacts::Verification { ifsc, account_number_last4, bank_name, .. } = &item.facts else {
        return PageCell::none();
    };
    let mut cells = vec![PageCell::Code(format!("{ifsc} …{account_number_last4}"))];
    cells.extend(bank_name.clone().map(PageCell::Muted));
    PageCell::Several(cells)
}

fn bank_words_cell(_: &RowSource<'_>, item: &Item) -> PageCell {
    match &item.facts {
        QueueFacts::Payout { bank_words } => words_or_none(bank_words.as_deref()),
        _ => PageCell::none(),
    }
}

fn to_address_cell(_: &RowSource<'_>, item: &Item) -> PageCell {
    match &item.facts {
        QueueFacts::Refund { to_address, .. } => words_or_none(to_address.as_deref()),
        _ => PageCell::none(),
    }
}

fn waits_cell(source: &RowSource<'_>, item: &Item) -> PageCell {
    let QueueFacts::Refund { waits_for, fault, .. } = &item.facts else {
        return PageCell::none();
    };
    let words = source.visit.words;
    let mut cells = vec![PageCell::chip(words, waits_for)];
    cells.extend(fault.as_deref().map(|fault| PageCell::Text(word(words, fault))));
    PageCell::Several(cells)
}

fn transaction_cell(_: &RowSource<'_>, item: &Item) -> PageCell {
    match &item.facts {
        QueueFacts::Unmatched { transaction_hash } => PageCell::breakable(transaction_hash),
        _ => PageCell::none(),
    }
}

/// Whether money came or went, and on which day, if the item is a line of the bank's statement.
fn statement_line(item: &Item) -> Option<(Sign, &str)> {
    match &item.facts {
        QueueFacts::Difference {
            shown: ShownDifference::Line { sign, booking_day, .. }, ..
        } => Some((*sign, booking_day)),
        _ => None,
    }
}

fn booking_cell(source: &RowSource<'_>, item: &Item) -> PageCell {
    let Some((sign, day)) = statement_line(item) else { return PageCell::none() };
    PageCell::Several(vec![
        PageCell::Text(word(source.visit.words, sign.as_str())),
        PageCell::number(day),
    ])
}

fn detail_cell(source: &RowSource<'_>, item: &Item) -> PageCell {
    let words = source.visit.words;
    let QueueFacts::Difference { shown, .. } = &item.facts else { return PageCell::none() };
    match shown {
        ShownDifference::Line { reference, .. } => words_or_none(reference.as_deref()),
        ShownDifference::Comparison { detail } => {
            let detail = detail.as_deref().map(|detail| words.service_text(detail));
            detail.map_or(PageCell::none(), PageCell::Text)
        }
        // Each word has a cell of its own, so that a hash or an address in the text may break.
        ShownDifference::Chain { subject } => {
            let subject = words.subject(subject);
            PageCell::Several(subject.split(' ').map(PageCell::breakable).collect())
        }
    }
}

fn account_cell(source: &RowSource<'_>, item: &Item) -> PageCell {
    let RowSource { visit, waiting } = source;
    item.scope.map_or_else(PageCell::none, |scope| {
        let mut account = vec![PageCell::text(waiting.accounts.of(scope))];
        let stops = waiting.stops.iter().filter(|stop| stop.is_of_account(scope));
        account.extend(stops.map(|stop| machinery::stop_chip(visit, stop)));
        PageCell::Several(account)
    })
}

/// The age is a `Number`, so that a number and its unit stay in one line.
fn age_cell(source: &RowSource<'_>, item: &Item) -> PageCell {
    let visit = source.visit;
    PageCell::number(age(visit.words, visit.instant() - item.since))
}

fn table(visit: &Visit, waiting: &Waiting, items: &[&Item]) -> Table {
    let words = visit.words;
    let columns = columns(waiting.queue, items);
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let caption = words.get(&format!("queue.{}", waiting.queue.as_str())).to_owned();
    let mut table = Table::new(words, &caption, &names, "search.nothing");
    let source = RowSource { visit, waiting };
    for item in items {
        let cells = columns.iter().map(|(_, cell)| cell(&source, item));
        let mut line = TableLine::new(cells.collect());
        // Objects that belong to a transfer are shown on its page.
        line.href = match (item.id, item.transfer_id) {
            (Some(id), Some(transfer)) if id.kind != ObjectKind::Transfer => {
                Some(format!("{}#decide", path_of(transfer.any())))
            }
            (Some(id), _) => Some(path_of(id)),
            (None, _) => None,
        };
        table.lines.push(line);
    }
    table
}
