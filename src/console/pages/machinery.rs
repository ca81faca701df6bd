//! Pages about the service itself: what is paused, the settings in force, the operators, and what
//! was decided.

use super::super::blocks::{
    ConsolePage, PageBlock, PageCell, PageForm, Question, Section, Table, TableLine, Tone, age,
    word,
};
use super::super::visit::{Failure, PageOutcome, Visit};
use super::decide;
use crate::app_state::{SettingOrigin, SettingValue};
use crate::decisions;
use crate::kernel::Now;
use crate::operator::{self, four_eyes};
use crate::oversight::stops::{self, OperatorStop, StopKind};
use crate::oversight::{AccountNames, cut};
use crate::pauses::{self, Operation};
use crate::staff::{self, Role};
use crate::store::{Cost, Tx};

/// The most decisions that are shown.
const DECISIONS_MAX: i64 = 200;
/// The value of a form's field `account` for all accounts. Numbers of accounts begin at 1.
const EVERYBODY: &str = "0";

pub async fn pauses(visit: Visit) -> PageOutcome {
    let read = visit.app.store.read(Cost::Scan, |tx| {
        let accounts = AccountNames::read(tx)?;
        let mut found = stops::read(tx, &accounts)?;
        found.retain(|stop| stop.kind != StopKind::Suspended);
        Ok((accounts, found))
    });
    let (accounts, found) = read.await?;
    let words = visit.words;
    let mut page = ConsolePage::new("pauses", words.get("pauses.title"));
    let can_decide = visit.operator().role.includes(Role::Operator);
    let mut table = stops_table(&visit, words.get("pauses.title"), &found);
    if !can_decide {
        table.empty = words.get("pauses.empty_for_viewer").to_owned();
    }
    let mut forms = Vec::new();
    for stop in &found {
        let StopKind::Paused(operation) = stop.kind else { continue };
        let title = format!("{}, {}", word(words, operation.as_str()), whom(&visit, stop));
        let account = stop
            .account
            .as_ref()
            .map_or_else(|| EVERYBODY.to_owned(), |(number, _)| number.to_string());
        let hidden = vec![("operation", operation.as_str().to_owned()), ("account", account)];
        forms.push(PageBlock::Form(PageForm {
            action: "/console/pauses/set".into(),
            is_change: true,
            title,
            help: String::new(),
            hidden,
            questions: decide::questions(&visit, &[]),
            buttons: vec![("resume".into(), words.get("act.resume").to_owned(), false)],
        }));
    }
    page.still.push(Section::wide("", vec![PageBlock::Table(table)]));
    if !can_decide {
        let text = words.get("decide.viewer").to_owned();
        page.still.push(Section::wide("", vec![PageBlock::Note { tone: Tone::Plain, text }]));
        return page.draw(&visit);
    }
    if !forms.is_empty() {
        page.still.push(Section::half(words.get("pauses.resume"), forms));
    }
    let choice =
        |name, key: &str, choices| Question { choices, ..Question::new(name, words.get(key)) };
    let operations = Operation::ALL
        .iter()
        .map(|operation| (operation.as_str().to_owned(), word(words, operation.as_str())));
    let mut owners = vec![(EVERYBODY.to_owned(), words.get("pauses.everybody").to_owned())];
    owners.extend(accounts.all().map(|(number, name)| (number.to_string(), name.to_owned())));
    let form = PageForm {
        action: "/console/pauses/set".into(),
        is_change: true,
        title: String::new(),
        help: words.get("pauses.help").to_owned(),
        hidden: Vec::new(),
        questions: [
            choice("operation", "col.operation", operations.collect()),
            choice("account", "col.whom", owners),
        ]
        .into_iter()
        .chain(decide::questions(&visit, &[]))
        .collect(),
        buttons: vec![("pause".into(), words.get("act.pause").to_owned(), true)],
    };
    page.still.push(Section::half(words.get("pauses.pause"), vec![PageBlock::Form(form)]));
    page.draw(&visit)
}

/// For whom a stop holds: an account's name, or the word for everybody.
pub fn whom(visit: &Visit, stop: &OperatorStop) -> String {
    let everybody = || visit.words.get("pauses.everybody").to_owned();
    stop.account.as_ref().map_or_else(everybody, |(_, name)| name.clone())
}

/// What a stop is, as a chip.
pub fn stop_chip(visit: &Visit, stop: &OperatorStop) -> PageCell {
    let words = visit.words;
    match stop.kind {
        StopKind::Suspended => PageCell::chip(words, "suspended"),
        StopKind::Paused(operation) => {
            let operation = word(words, operation.as_str());
            let text = words.with("pauses.paused", [("operation", operation.as_str())]);
            PageCell::Chip { text, tone: Tone::Attention }
        }
    }
}

/// The stops: of what, for whom, by whom, why and since when.
pub fn stops_table(visit: &Visit, caption: &str, stops: &[OperatorStop]) -> Table {
    let words = visit.words;
    let columns = ["col.operation", "col.whom", "col.by", "col.why", "col.since"];
    let mut table = Table::new(words, caption, &columns, "pauses.empty");
    for stop in stops {
        let (path, account) = match &stop.account {
            Some((number, name)) => {
                let path = format!("/console/accounts/{number}");
                (path.clone(), PageCell::link(path, name))
            }
            None => ("/console/pauses".to_owned(), PageCell::Text(whom(visit, stop))),
        };
        let line = TableLine::new(vec![
            stop_chip(visit, stop),
            account,
            PageCell::text(stop.actor.clone()),
            PageCell::text(stop.reason.clone()),
            PageCell::time_or_none(stop.since),
        ]);
        table.lines.push(line.to(path));
    }
    table
}

/// Pauses or resumes an operation.
pub async fn set_pause(visit: Visit) -> PageOutcome {
    let by = decide::decided_by(&visit)?;
    let unknown = || Failure::told(visit.words.get("decide.unknown"));
    let operation = Operation::parse(visit.field("operation")).ok_or_else(unknown)?;
    // A field that names no account must not stand for all of them.
    let account = match visit.field("account") {
        EVERYBODY => None,
        field => {
            let number: i64 = field.parse().map_err(|_| unknown())?;
            let accounts = visit.app.store.read(Cost::Scan, |tx| Ok(AccountNames::read(tx)?));
            let accounts = accounts.await?;
            let found = accounts.all().find(|(known, _)| *known == number);
            let name = found.map(|(_, name)| name.to_owned()).ok_or_else(unknown)?;
            Some((number, name))
        }
    };
    let (number, name) = account.unzip();
    let is_pause = match visit.field("decision") {
        "pause" => true,
        "resume" => false,
        _ => return Err(unknown()),
    };
    let services = visit.app.services.clone();
    let carry_out = move |tx: &mut dyn Tx, now: &mut Now| {
        if !is_pause {
            let name = name.clone();
            return operator::resume(tx, now, &services.settings, operation, name, &by);
        }
        decisions::record(tx, now, &operator::pause_subject(operation, &name), "pause", &by)?;
        pauses::pause(tx, now, operation, number, &by)?;
        Ok(String::new())
    };
    let outcome = visit.app.store.write(carry_out).await?;
    if !is_pause && operation == Operation::Payouts {
        operator::submit_waiting(&visit.app.store).await?;
    }
    let notice = match is_pause {
        true => "notice.paused",
        false if four_eyes::is_waiting(&outcome) => "notice.waits_second",
        false => "notice.resumed",
    };
    visit.back_to("/console/pauses", notice)
}

/// The settings in force, each with its origin; and each mode's chain and source of rates.
pub async fn settings(visit: Visit) -> PageOutcome {
    let words = visit.words;
    let mut page = ConsolePage::new("settings", words.get("settings.title"));
    let mut table = Table::new(
        words,
        words.get("settings.title"),
        &["col.setting", "col.value", "col.origin"],
        "search.nothing",
    );
    for setting in &visit.app.settings_shown {
        let value = value_cell(&visit, &setting.value);
        let origin = match visit.app.origin_of(setting.name) {
            SettingOrigin::Usual => "settings.usual",
            SettingOrigin::File => "settings.file",
            SettingOrigin::Environment => "settings.environment",
            SettingOrigin::Flag => "settings.flag",
        };
        let origin = PageCell::muted(words.get(origin));
        let name = PageCell::Code(setting.name.to_owned());
        table.lines.push(TableLine::new(vec![name, value, origin]));
    }
    page.still.push(Section::wide("", vec![PageBlock::Table(table)]));
    let columns = ["col.mode", "col.chain", "col.source", "col.state"];
    let mut modes = Table::new(words, words.get("settings.modes"), &columns, "search.nothing");
    for (mode, ports) in
        [("test", Some(&visit.services().test)), ("live", visit.services().live.as_ref())]
    {
        let cells = match ports {
            Some(ports) => vec![
                PageCell::Text(word(words, mode)),
                PageCell::text(ports.chain.name.as_str()),
                PageCell::Code(ports.rates.kind().as_str().to_owned()),
                PageCell::chip(words, "active"),
            ],
            None => vec![
                PageCell::Text(word(words, mode)),
                PageCell::none(),
                PageCell::none(),
                PageCell::muted(words.get("settings.live_missing")),
            ],
        };
        modes.lines.push(TableLine::new(cells));
    }
    page.still.push(Section::wide(words.get("settings.modes"), vec![PageBlock::Table(modes)]));
    let links = vec![("/console/operators".to_owned(), words.get("operators.title").to_owned())];
    page.still.push(Section::wide("", vec![PageBlock::Links(links)]));
    page.draw(&visit)
}

/// A setting's value in the reader's language.
fn value_cell(visit: &Visit, value: &SettingValue) -> PageCell {
    let words = visit.words;
    let no_limit = || PageCell::muted(words.get("limits.none"));
    match value {
        SettingValue::Text(text) => PageCell::text(text),
        SettingValue::NotSet => PageCell::none(),
        SettingValue::Number(number) => PageCell::number(number),
        SettingValue::Seconds(count) => PageCell::Text(age(words, *count)),
        SettingValue::YesOrNo(is) => PageCell::chip(words, if *is { "yes" } else { "no" }),
        SettingValue::Money(money) => PageCell::money(*money),
        SettingValue::Most(most) => most.map_or_else(no_limit, PageCell::money),
        SettingValue::EachSecond(0) => no_limit(),
        SettingValue::EachSecond(count) => PageCell::number(count),
        SettingValue::Digest(text) => PageCell::Several(vec![
            PageCell::Code(text.clone()),
            PageCell::muted(words.get("settings.digest")),
        ]),
    }
}

/// All operators, disabled ones too.
pub async fn operators(visit: Visit) -> PageOutcome {
    let instant = visit.instant();
    let read = visit.app.store.read(Cost::Scan, move |tx| {
        let mut found = Vec::new();
        for operator in staff::rows::all(tx)? {
            let mut sessions = staff::rows::sessions_of(tx, operator.identity.number)?;
            sessions.retain(|session| !session.has_ended(instant));
            found.push((operator, sessions.len()));
        }
        Ok((found, staff::rows::linked(tx)?))
    });
    let (found, linked) = read.await?;
    let words = visit.words;
    let mut page = ConsolePage::new("settings", words.get("operators.title"));
    let columns = [
        "col.name",
        "col.role",
        "col.state",
        "col.second_factor",
        "col.linked",
        "#col.sessions",
        "fact.created",
    ];
    let mut table = Table::new(words, words.get("operators.title"), &columns, "operators.empty");
    let yes_or_no = |is: bool| PageCell::chip(words, if is { "yes" } else { "no" });
    for (operator, sessions) in &found {
        table.lines.push(TableLine::new(vec![
            PageCell::text(operator.identity.name.clone()),
            PageCell::Text(word(words, operator.identity.role.as_str())),
            PageCell::chip(words, if operator.is_disabled { "disabled" } else { "active" }),
            yes_or_no(operator.is_totp_confirmed),
            yes_or_no(linked.contains(&operator.identity.number)),
            PageCell::number(sessions),
            PageCell::time(operator.created),
        ]));
    }
    page.still.push(Section::wide("", vec![PageBlock::Table(table)]));
    if visit.operator().role.includes(Role::Admin) {
        let form = end_sessions(&visit, found.iter().map(|(operator, _)| &operator.identity.name));
        let title = words.get("operators.end_sessions");
        page.still.push(Section::half(title, vec![PageBlock::Form(form)]));
    }
    page.draw(&visit)
}

/// The form that signs somebody out everywhere.
fn end_sessions<'a>(visit: &Visit, names: impl Iterator<Item = &'a String>) -> PageForm {
    let words = visit.words;
    let whom = Question {
        choices: names.map(|name| (name.clone(), name.clone())).collect(),
        ..Question::new("name", words.get("col.name"))
    };
    PageForm {
        action: "/console/operators/sessions/end".into(),
        is_change: true,
        title: String::new(),
        help: words.get("operators.end_sessions_help").to_owned(),
        hidden: Vec::new(),
        questions: [whom].into_iter().chain(decide::questions(visit, &[])).collect(),
        buttons: vec![(String::new(), words.get("act.end_sessions").to_owned(), true)],
    }
}

/// What was decided, newest first.
pub async fn decisions(visit: Visit) -> PageOutcome {
    let read =
        visit.app.store.read(Cost::Scan, |tx| Ok(decisions::rows::newest(tx, DECISIONS_MAX + 1)?));
    let mut found = read.await?;
    let is_more = cut(&mut found, DECISIONS_MAX);
    let words = visit.words;
    let mut page = ConsolePage::new("decisions", words.get("decisions.title"));
    let columns = ["col.created", "col.by", "col.decision", "fact.about", "col.why"];
    let mut table = Table::new(words, words.get("decisions.title"), &columns, "decisions.empty");
    for decision in &found {
        table.lines.push(TableLine::new(vec![
            PageCell::time(decision.decided_at),
            PageCell::text(decision.by.actor()),
            PageCell::Text(decide::decision_word(&visit, &decision.decision)),
            decide::subject_cell(&visit, &decision.subject),
            PageCell::text(decision.by.reason()),
        ]));
    }
    table.tell_more(words, is_more);
    page.still.push(Section::wide("", vec![PageBlock::Table(table)]));
    page.draw(&visit)
}
