//! The audit log: who did what and when, and whether the log is as it was written.

use std::collections::BTreeMap;

use super::super::blocks::{
    ConsolePage, PageBlock, PageCell, PageForm, Question, Section, Table, TableLine, Tone, word,
};
use super::super::visit::{Failure, PageOutcome, Visit};
use super::{decide, keys};
use crate::audit::{self, Action, Entry, HashChain};
use crate::kernel::{StoreError, Via};
use crate::rails::files::values::Day;
use crate::staff;
use crate::store::{Cost, Tx};

const PATH: &str = "/console/audit";
/// The most entries that one page shows.
const ENTRIES_MAX: usize = 50;
/// The most entries that one read verifies, so that no read holds a connection for long.
const VERIFIED_AT_ONCE: i64 = 5_000;

/// The most changed settings that an entry shows.
const SETTINGS_SHOWN_MAX: usize = 6;

/// An entry, and the hash of the one before it.
type ChainedEntry = (Entry, Option<[u8; 32]>);

pub async fn page(visit: Visit) -> PageOutcome {
    let (actor, action) = (visit.query("actor").to_owned(), visit.query("action").to_owned());
    let day = |name: &str| Day::parse(visit.query(name));
    let from_milliseconds = day("from").map(|day| day.begins_at() * 1_000);
    let until_milliseconds = day("until").map(|day| day.plus_days(1).begins_at() * 1_000);
    let before = visit.query("before").parse().unwrap_or(i64::MAX);
    let read = visit.app.store.read(Cost::Scan, move |tx| {
        let sought = audit::rows::Sought {
            actor: actor.clone(),
            action: action.clone(),
            from: number_at(tx, from_milliseconds, 0)?,
            before: before.min(number_at(tx, until_milliseconds, i64::MAX)?),
        };
        let found = audit::rows::sought(tx, &sought, ENTRIES_MAX as i64 + 1)?;
        Ok((found, staff::rows::all(tx)?))
    });
    let (mut found, operators) = read.await?;
    let is_more = found.len() > ENTRIES_MAX;
    found.truncate(ENTRIES_MAX);
    let words = visit.words;
    let mut page = ConsolePage::new("audit", words.get("audit.title"));
    let mut blocks =
        vec![PageBlock::Note { tone: Tone::Plain, text: words.get("audit.help").to_owned() }];
    if visit.query("verify") == "all" {
        blocks.push(verified(&visit).await?);
    }
    let whole = (format!("{PATH}?verify=all"), words.get("audit.verify").to_owned());
    blocks.push(PageBlock::Links(vec![whole]));
    page.still.push(Section::wide("", blocks));
    let mut persons: Vec<String> =
        operators.into_iter().map(|operator| operator.identity.name).collect();
    let asked = visit.query("actor");
    if !asked.is_empty() && !persons.iter().any(|name| name == asked) {
        persons.push(asked.to_owned());
    }
    let mut list =
        vec![PageBlock::Form(filter(&visit, persons)), PageBlock::Table(table(&visit, &found))];
    if let (true, Some((last, _))) = (is_more, found.last()) {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        for name in ["actor", "action", "from", "until"] {
            query.append_pair(name, visit.query(name));
        }
        query.append_pair("before", &last.number.to_string());
        let next = format!("{PATH}?{}", query.finish());
        list.push(PageBlock::Links(vec![(next, words.get("page.older").to_owned())]));
    }
    page.still.push(Section::wide("", list));
    page.draw(&visit)
}

/// The number of the first entry from a moment on; if there is no such entry, the largest number.
/// `none` if no moment is given.
fn number_at(tx: &mut dyn Tx, milliseconds: Option<i64>, none: i64) -> Result<i64, StoreError> {
    match milliseconds {
        None => Ok(none),
        Some(at) => Ok(audit::rows::first_since(tx, at)?.unwrap_or(i64::MAX)),
    }
}

fn filter(visit: &Visit, persons: Vec<String>) -> PageForm {
    let words = visit.words;
    let all = || (String::new(), words.get("page.all").to_owned());
    let mut names = vec![all()];
    names.extend(persons.into_iter().map(|name| (name.clone(), name)));
    let mut actions = vec![all()];
    actions.extend(Action::ALL.iter().map(|action| {
        let name = action.as_str();
        (name.to_owned(), action_word(visit, name))
    }));
    let question = |name, key: &str, kind, choices| Question {
        choices,
        kind,
        value: visit.query(name).to_owned(),
        ..Question::new(name, words.get(key))
    };
    PageForm {
        action: PATH.into(),
        is_change: false,
        title: String::new(),
        help: String::new(),
        hidden: Vec::new(),
        questions: vec![
            question("actor", "col.by", "text", names),
            question("action", "col.kind", "text", actions),
            question("from", "reports.from", "date", Vec::new()),
            question("until", "reports.to", "date", Vec::new()),
        ],
        buttons: vec![(String::new(), words.get("page.filter").to_owned(), false)],
    }
}

/// Whether the subject of an action is an operator's name, which is shown untranslated.
fn names_operator(action: &str) -> bool {
    match Action::parse(action) {
        None => false,
        Some(action) => match action {
            Action::SignIn
            | Action::SignInRefused
            | Action::SignOut
            | Action::SessionEnded
            | Action::SecondFactor
            | Action::OperatorCreated
            | Action::OperatorDisabled
            | Action::OperatorReset
            | Action::OperatorLinked
            | Action::OperatorUnlinked => true,
            Action::Decision
            | Action::DecisionRequested
            | Action::DecisionApproved
            | Action::DecisionRejected
            | Action::DecisionEnded
            | Action::KeyCreated
            | Action::KeyRevoked
            | Action::EncryptionKeyChanged
            | Action::AccountNumberSeen
            | Action::Settings => false,
        },
    }
}

/// Whether the service wrote the reason of an entry. Any other reason is a person's words.
fn has_own_reason(entry: &Entry) -> bool {
    match Action::parse(&entry.action) {
        Some(Action::DecisionEnded) => true,
        // In the console a sign-in links, and the service says why. In the shell, a person does.
        Some(Action::OperatorLinked) => entry.via == Via::Console.as_str(),
        _ => false,
    }
}

fn action_word(visit: &Visit, action: &str) -> String {
    word(visit.words, &format!("did_{action}"))
}

fn table(visit: &Visit, found: &[ChainedEntry]) -> Table {
    let words = visit.words;
    let columns = [
        "#col.number",
        "col.created",
        "col.by",
        "col.kind",
        "fact.about",
        "col.state",
        "col.details",
    ];
    let mut table = Table::new(words, words.get("audit.title"), &columns, "audit.empty");
    for (entry, before) in found {
        let is_unchanged = before.is_some_and(|before| entry.expected_hash(&before) == entry.hash);
        let mut who = vec![match entry.actor.as_str() {
            "" => PageCell::none(),
            name => PageCell::text(name),
        }];
        who.push(PageCell::Muted(word(words, &entry.via)));
        let details = details(visit, entry);
        table.lines.push(TableLine::new(vec![
            PageCell::number(entry.number),
            PageCell::time(entry.at_milliseconds.div_euclid(1_000)),
            PageCell::Several(who),
            PageCell::Text(action_word(visit, &entry.action)),
            match entry.subject.as_str() {
                "" => PageCell::none(),
                subject if names_operator(&entry.action) => PageCell::text(subject),
                subject => decide::subject_cell(visit, subject),
            },
            PageCell::Chip {
                text: words
                    .get(if is_unchanged { "audit.whole" } else { "audit.broken" })
                    .to_owned(),
                tone: if is_unchanged { Tone::Good } else { Tone::Bad },
            },
            if details.is_empty() { PageCell::none() } else { PageCell::Several(details) },
        ]));
    }
    table
}

/// The details of an entry. Of settings it shows only those that changed, and if these are many,
/// only the names of a few; an export has all of them.
fn details(visit: &Visit, entry: &Entry) -> Vec<PageCell> {
    let words = visit.words;
    let texts: BTreeMap<String, String> = serde_json::from_str(&entry.details).unwrap_or_default();
    let changed: Vec<&str> =
        texts.get("changed").map_or_else(Vec::new, |names| names.split_whitespace().collect());
    let is_settings = entry.action == Action::Settings.as_str();
    let mut cells = Vec::new();
    if is_settings && changed.len() > SETTINGS_SHOWN_MAX {
        let few =
            changed.iter().take(SETTINGS_SHOWN_MAX).map(|name| PageCell::Code((*name).into()));
        cells.extend(few);
        cells.push(PageCell::Muted(format!("+ {}", changed.len() - SETTINGS_SHOWN_MAX)));
        return cells;
    }
    for (name, text) in texts.iter().filter(|(_, text)| !text.is_empty()) {
        if is_settings && !changed.contains(&name.as_str()) {
            continue;
        }
        cells.push(match words.find(&format!("word.detail_{name}")) {
            Some(known) => PageCell::Muted(known.to_owned()),
            None => PageCell::Code(name.clone()),
        });
        if let ("expires_at", Ok(at)) = (name.as_str(), text.parse()) {
            cells.push(PageCell::time(at));
            continue;
        }
        if name == "permissions" && text != "all" {
            cells.extend(keys::listed(text));
            continue;
        }
        cells.push(PageCell::Text(match name.as_str() {
            "permissions" => word(words, "everything"),
            "decision" => decide::decision_word(visit, text),
            "cause" => words.get(&format!("approvals.cause_{text}")).to_owned(),
            "mode" | "role" | "status" | "step" | "of" => word(words, text),
            "reason" if has_own_reason(entry) => words.service_text(text),
            _ if is_settings => setting_word(visit, text),
            _ => text.clone(),
        }));
    }
    cells
}

/// The value of a setting, as the log keeps it, in the reader's language.
fn setting_word(visit: &Visit, value: &str) -> String {
    match value {
        "true" => word(visit.words, "yes"),
        "false" => word(visit.words, "no"),
        "off" => word(visit.words, "off"),
        _ => value.to_owned(),
    }
}

/// Verifies the whole log, part by part, and shows the result.
async fn verified(visit: &Visit) -> Result<PageBlock, Failure> {
    let mut chain = HashChain::default();
    loop {
        let after = chain.count();
        let read = visit.app.store.read(Cost::Scan, move |tx| {
            let entries = audit::rows::after(tx, after, VERIFIED_AT_ONCE)?;
            // Both in one read, so that no entry is added between them.
            Ok((entries, audit::rows::tail(tx)?))
        });
        let (entries, tail) = read.await?;
        entries.iter().for_each(|entry| chain.take(entry));
        if (entries.len() as i64) < VERIFIED_AT_ONCE {
            chain.end(tail);
            break;
        }
    }
    let words = visit.words;
    let count = chain.count().to_string();
    Ok(match chain.faults.first() {
        None => PageBlock::Note {
            tone: Tone::Good,
            text: words.with("audit.all_whole", [("count", count.as_str())]),
        },
        Some(fault) => {
            let faults = chain.faults.len().to_string();
            let first = words.service_text(fault);
            let values = [("count", faults.as_str()), ("first", first.as_str())];
            PageBlock::Note { tone: Tone::Bad, text: words.with("audit.faults", values) }
        }
    })
}
