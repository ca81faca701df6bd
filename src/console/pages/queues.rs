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
use crate::oversight::queues::{self, Item, QueueItems, QueueKind};
use crate::oversight::stops::{self, OperatorStop};
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
pub async fn live(visit: Visit) -> PageOutcome {
    let waiting = read(&visit).await?;
    list(&visit, &waiting).0.draw_rows()
}

pub async fn page(visit: Visit) -> PageOutcome {
    let waiting = read(&visit).await?;
    let (words, queue) = (visit.words, waiting.queue);
    let name = queue.as_str();
    let (mut table, form) = list(&visit, &waiting);
    let (path, query) = visit.asked_path();
    table.live_path = Some(format!("{path}/live{query}"));
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

/// The rows that the filters let pass, in the order that was asked for, and the form that decides
/// about those that are ticked.
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
            line.pick = item.id.map(|id| id.to_string()).or_else(|| named(item));
        }
    }
    (table, together)
}

/// How a form names a difference: its number, or its kind and what it is about.
fn named(item: &Item) -> Option<String> {
    let name = item.name.clone()?;
    Some(if item.is_explained_by_kind { format!("{} {name}", item.reason) } else { name })
}

/// The other queues.
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
    let mut reasons: Vec<&str> = waiting.items.iter().map(|item| item.reason.as_str()).collect();
    reasons.sort_unstable();
    reasons.dedup();
    let all = || (String::new(), words.get("page.all").to_owned());
    let mut owners = vec![all()];
    owners.extend(waiting.accounts.all().map(|(_, name)| (name.to_owned(), name.to_owned())));
    let mut choices = vec![all()];
    choices.extend(reasons.iter().map(|reason| ((*reason).to_owned(), word(words, reason))));
    let orders = ["oldest", "newest", "amount"]
        .map(|order| (order.to_owned(), words.get(&format!("page.sort_{order}")).to_owned()));
    let modes = [("test", "page.test"), ("live", "page.live")]
        .map(|(mode, key)| (mode.to_owned(), words.get(key).to_owned()))
        .to_vec();
    let question = |name, key: &str, choices: Vec<(String, String)>| Question {
        choices,
        value: visit.query(name).to_owned(),
        ..Question::new(name, words.get(key))
    };
    PageForm {
        action: format!("/console/queues/{}", waiting.queue.as_str()),
        is_change: false,
        title: String::new(),
        help: String::new(),
        hidden: Vec::new(),
        questions: vec![
            Question {
                value: waiting.mode.as_str().to_owned(),
                ..question("mode", "col.mode", modes)
            },
            question("account", "col.account", owners),
            question("reason", "col.reason", choices),
            question("sort", "page.sort", orders.to_vec()),
        ],
        buttons: vec![(String::new(), words.get("page.filter").to_owned(), false)],
    }
}

/// The subject of a difference. The number of a line or of a chain's difference occurs on no other
/// page, so its end is enough.
fn difference_cell(name: &str) -> PageCell {
    match AnyId::parse(name) {
        Some(id) if id.kind != ObjectKind::Request => PageCell::id(id),
        Some(_) => PageCell::Code(short(name).replace("request_", "")),
        None => PageCell::Code(name.to_owned()),
    }
}

fn table(visit: &Visit, waiting: &Waiting, items: &[&Item]) -> Table {
    let (words, instant) = (visit.words, visit.instant());
    let (queue, accounts) = (waiting.queue, &waiting.accounts);
    let is_review = queue == QueueKind::Reviews;
    // A difference with the bank or a chain belongs to no account.
    let is_of_account = queue != QueueKind::Differences;
    let mut columns = vec!["col.id", "col.reason"];
    if !is_review {
        columns.push("#col.amount");
    }
    columns.extend(["col.ours", "col.theirs"]);
    if is_of_account {
        columns.push("col.account");
    }
    columns.push("col.age");
    let caption = words.get(&format!("queue.{}", queue.as_str())).to_owned();
    let mut table = Table::new(words, &caption, &columns, "search.nothing");
    for item in items {
        let id = match (item.id, &item.name) {
            (Some(id), _) => PageCell::id(id),
            (None, Some(name)) => difference_cell(name),
            (None, None) => PageCell::none(),
        };
        let mut reason = vec![PageCell::chip(words, &item.reason)];
        if let Some(until) = item.until {
            reason.push(PageCell::muted(words.get("queue.until")));
            reason.push(PageCell::time(until));
        }
        let text =
            |text: &Option<String>| text.as_deref().map_or(PageCell::none(), PageCell::words);
        let mut cells = vec![id, PageCell::Several(reason)];
        if !is_review {
            cells.push(item.amount.map_or(PageCell::none(), PageCell::money));
        }
        let ours = match &item.holder_name {
            None => text(&item.ours),
            Some(name) => PageCell::Several(vec![
                text(&item.ours),
                PageCell::muted(words.get("queue.holder_name")),
                PageCell::words(name),
            ]),
        };
        cells.extend([ours, text(&item.theirs)]);
        if is_of_account {
            cells.push(item.scope.map_or_else(PageCell::none, |scope| {
                let mut account = vec![PageCell::text(accounts.of(scope))];
                let stops = waiting.stops.iter().filter(|stop| stop.is_of_account(scope));
                account.extend(stops.map(|stop| machinery::stop_chip(visit, stop)));
                PageCell::Several(account)
            }));
        }
        // A number and its unit stay in one line.
        cells.push(PageCell::number(age(words, instant - item.since)));
        let mut line = TableLine::new(cells);
        // Objects that belong to a transfer are shown with it.
        let shown = match (item.id, item.transfer_id) {
            (Some(id), Some(transfer)) if id.kind != ObjectKind::Transfer => {
                Some(format!("{}#decide", path_of(transfer.any())))
            }
            (Some(id), _) => Some(path_of(id)),
            (None, _) => None,
        };
        line.href = shown;
        table.lines.push(line);
    }
    table
}
