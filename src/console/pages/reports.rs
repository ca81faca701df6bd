//! Reports: the daily closing, on the page and as CSV, and an account's statement over a period, as
//! CSV.

use http::header::CONTENT_DISPOSITION;

use super::super::blocks::{
    ConsolePage, PageBlock, PageCell, PageForm, Question, Section, Table, TableLine, Tone, word,
};
use super::super::visit::{Failure, PageOutcome, Visit};
use super::{mode_chips, mode_of};
use crate::http::reply;
use crate::kernel::Scope;
use crate::oversight::AccountNames;
use crate::oversight::closing::{self, Closing};
use crate::rails::files::values::Day;
use crate::statements;
use crate::store::Cost;

const CSV: &str = "text/csv; charset=utf-8";

/// The day that the query's parameter `name` gives; otherwise today in India.
fn day_of(visit: &Visit, name: &str) -> Option<Day> {
    Day::parse(visit.query(name)).or_else(|| Day::at(visit.instant()))
}

pub async fn page(visit: Visit) -> PageOutcome {
    let mode = mode_of(&visit);
    let day = day_of(&visit, "day").ok_or(Failure::NotFound)?;
    let read = visit.app.store.read(Cost::Expensive, move |tx| {
        Ok((AccountNames::read(tx)?, closing::read(tx, mode, day)?))
    });
    let (accounts, closing) = read.await?;
    let words = visit.words;
    let mut page = ConsolePage::new("reports", words.get("reports.title"));
    page.chips = mode_chips(&visit, mode, "/console/reports");
    let question = |name, key: &str, kind, value: String| Question {
        kind,
        value,
        is_required: true,
        ..Question::new(name, words.get(key))
    };
    let hidden = vec![("mode", mode.as_str().to_owned())];
    let shown = day.to_string();
    let by_day = PageForm {
        action: "/console/reports".into(),
        is_change: false,
        title: String::new(),
        help: String::new(),
        hidden: hidden.clone(),
        questions: vec![question("day", "reports.day", "date", shown.clone())],
        buttons: vec![(String::new(), words.get("reports.show").to_owned(), false)],
    };
    let csv = format!("/console/reports/closing?mode={}&day={shown}", mode.as_str());
    let mut blocks = vec![PageBlock::Form(by_day)];
    blocks.extend(closing_tables(&visit, &closing));
    blocks.push(PageBlock::Links(vec![(csv, words.get("reports.csv").to_owned())]));
    page.still.push(Section::wide(words.get("reports.closing"), blocks));
    let owners: Vec<(String, String)> =
        accounts.all().map(|(number, name)| (number.to_string(), name.to_owned())).collect();
    if owners.is_empty() {
        let text = words.get("accounts.empty").to_owned();
        let note = PageBlock::Note { tone: Tone::Plain, text };
        page.still.push(Section::wide(words.get("reports.statement"), vec![note]));
        return page.draw(&visit);
    }
    let owner = Question {
        choices: owners,
        is_required: true,
        ..Question::new("account", words.get("col.account"))
    };
    let from_day = day.plus_days(-30).to_string();
    let statement = PageForm {
        action: "/console/reports/statement".into(),
        is_change: false,
        title: String::new(),
        help: words.get("reports.statement_help").to_owned(),
        hidden,
        questions: vec![
            owner,
            question("from", "reports.from", "date", from_day),
            question("to", "reports.to", "date", shown),
        ],
        buttons: vec![(String::new(), words.get("reports.csv").to_owned(), false)],
    };
    page.still
        .push(Section::wide(words.get("reports.statement"), vec![PageBlock::Form(statement)]));
    page.draw(&visit)
}

fn closing_tables(visit: &Visit, closing: &Closing) -> Vec<PageBlock> {
    let words = visit.words;
    let caption = words.get("reports.closing");
    let columns =
        ["col.compartment", "#col.opening", "#col.debits", "#col.credits", "#col.closing"];
    let mut lines = Table::new(words, caption, &columns, "reports.no_closing");
    for line in &closing.lines {
        lines.lines.push(TableLine::new(vec![
            PageCell::Text(word(words, line.account.as_str())),
            PageCell::money(line.opening),
            PageCell::money(line.debits),
            PageCell::money(line.credits),
            PageCell::money(line.closing),
        ]));
    }
    let caption = words.get("reports.compared");
    let columns = ["col.compared", "#col.book", "#col.outside", "#col.difference"];
    let mut compared = Table::new(words, caption, &columns, "reports.no_closing");
    for found in &closing.comparisons {
        let difference = match found.difference() {
            None => PageCell::muted(words.get("reports.not_told")),
            Some(money) if money.is_zero() => PageCell::chip(words, "match"),
            Some(money) => PageCell::money(money),
        };
        compared.lines.push(TableLine::new(vec![
            PageCell::text(words.get(&format!("closing.{}", found.what))),
            PageCell::money(found.book),
            found.outside.map_or(PageCell::none(), PageCell::money),
            difference,
        ]));
    }
    vec![PageBlock::Table(lines), PageBlock::Table(compared)]
}

/// A file that the browser saves.
fn download(name: &str, text: String) -> PageOutcome {
    let mut reply = reply::reply(200, CSV, text.into_bytes());
    let value = format!("attachment; filename=\"{name}\"");
    reply::set_header(&mut reply, CONTENT_DISPOSITION, &value);
    Ok(reply)
}

pub async fn closing(visit: Visit) -> PageOutcome {
    let mode = mode_of(&visit);
    let day = day_of(&visit, "day").ok_or(Failure::NotFound)?;
    let read = visit.app.store.read(Cost::Expensive, move |tx| Ok(closing::read(tx, mode, day)?));
    download(&format!("closing-{}-{day}.csv", mode.as_str()), read.await?.to_csv())
}

pub async fn statement(visit: Visit) -> PageOutcome {
    let mode = mode_of(&visit);
    let (from, to) = (day_of(&visit, "from"), day_of(&visit, "to"));
    let (from, to) = from.zip(to).ok_or(Failure::NotFound)?;
    let number: i64 = visit.query("account").parse().unwrap_or(0);
    let (begins, ends) = (from.begins_at(), to.plus_days(1).begins_at());
    if ends <= begins || ends - begins > statements::PERIOD_SECONDS_MAX {
        return Err(Failure::told(visit.words.get("reports.bad_period")));
    }
    let read = visit.app.store.read(Cost::Expensive, move |tx| {
        let accounts = AccountNames::read(tx)?;
        if accounts.all().all(|(known, _)| known != number) {
            return Ok(None);
        }
        statements::compose(tx, Scope::new(number, mode), begins, ends).map(Some)
    });
    let statement = read.await?.ok_or(Failure::NotFound)?;
    let name = format!("statement-{number}-{}-{from}-{to}.csv", mode.as_str());
    download(&name, statement.to_csv())
}
