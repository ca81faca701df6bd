//! Pages about the service itself: what is paused, the settings in force, the operators, and what
//! was decided.

use super::super::blocks::{
    ConsolePage, PageBlock, PageCell, PageForm, Question, Section, Table, TableLine, Tone, age,
    word,
};
use super::super::visit::{Failure, PageOutcome, Visit};
use super::decide;
use crate::app_state::SettingOrigin;
use crate::decisions;
use crate::kernel::{Money, Now};
use crate::operator::{self, four_eyes};
use crate::oversight::AccountNames;
use crate::pauses::{self, Operation};
use crate::staff::{self, Role};
use crate::store::{Cost, Tx};

/// Decisions that are shown.
const DECISIONS_MAX: i64 = 200;

pub async fn pauses(visit: Visit) -> PageOutcome {
    let read = visit
        .app
        .store
        .read(Cost::Scan, |tx| Ok((AccountNames::read(tx)?, pauses::rows::all(tx)?)));
    let (accounts, found) = read.await?;
    let words = visit.words;
    let mut page = ConsolePage::new("pauses", words.get("pauses.title"));
    let columns = ["col.operation", "col.whom", "col.by", "col.why", "col.since"];
    let can_decide = visit.operator().role.includes(Role::Operator);
    let empty = if can_decide { "pauses.empty" } else { "pauses.empty_for_viewer" };
    let mut table = Table::new(words, words.get("pauses.title"), &columns, empty);
    let mut forms = Vec::new();
    for pause in &found {
        let whom = pause.account_number.map_or_else(
            || words.get("pauses.everybody").to_owned(),
            |number| {
                let named = accounts.all().find(|(known, _)| *known == number);
                named.map_or("?", |(_, name)| name).to_owned()
            },
        );
        let operation = word(words, pause.operation.as_str());
        table.lines.push(TableLine::new(vec![
            PageCell::Chip { text: operation.clone(), tone: Tone::Attention },
            PageCell::text(whom.clone()),
            PageCell::text(pause.actor.clone()),
            PageCell::text(pause.reason.clone()),
            PageCell::time(pause.paused_at),
        ]));
        let title = format!("{operation}, {whom}");
        let account = pause.account_number.unwrap_or(0).to_string();
        let hidden = vec![("operation", pause.operation.as_str().to_owned()), ("account", account)];
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
    let mut owners = vec![("0".to_owned(), words.get("pauses.everybody").to_owned())];
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

/// Pauses an operation, or lets it go on.
pub async fn set_pause(visit: Visit) -> PageOutcome {
    let by = decide::decided_by(&visit)?;
    let unknown = || Failure::told(visit.words.get("decide.unknown"));
    let operation = Operation::parse(visit.field("operation")).ok_or_else(unknown)?;
    let number: i64 = visit.field("account").parse().unwrap_or(0);
    let number = (number > 0).then_some(number);
    let is_pause = match visit.field("decision") {
        "pause" => true,
        "resume" => false,
        _ => return Err(unknown()),
    };
    let services = visit.app.services.clone();
    let carry_out = move |tx: &mut dyn Tx, now: &mut Now| {
        let accounts = AccountNames::read(tx)?;
        let name = number.and_then(|number| accounts.all().find(|(known, _)| *known == number));
        let name = name.map(|(_, name)| name.to_owned());
        if !is_pause {
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

/// The settings that rules read, and what live mode is made of.
pub async fn settings(visit: Visit) -> PageOutcome {
    let words = visit.words;
    let mut page = ConsolePage::new("settings", words.get("settings.title"));
    let mut table = Table::new(
        words,
        words.get("settings.title"),
        &["col.setting", "col.value", "col.origin"],
        "search.nothing",
    );
    for (name, value) in in_force(&visit) {
        let origin = match visit.app.origin_of(name) {
            SettingOrigin::Usual => "settings.usual",
            SettingOrigin::File => "settings.file",
            SettingOrigin::Environment => "settings.environment",
            SettingOrigin::Flag => "settings.flag",
        };
        let origin = PageCell::muted(words.get(origin));
        table.lines.push(TableLine::new(vec![PageCell::Code(name.to_owned()), value, origin]));
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

/// The settings that are one value, by their names in the configuration.
fn in_force(visit: &Visit) -> Vec<(&'static str, PageCell)> {
    let (words, settings) = (visit.words, &visit.services().settings);
    let seconds = |count: i64| PageCell::Text(age(words, count));
    let yes_or_no = |is: bool| PageCell::chip(words, if is { "yes" } else { "no" });
    let text = |text: &Option<String>| text.as_ref().map_or(PageCell::none(), PageCell::text);
    let most = |money: Option<Money>| {
        money.map_or(PageCell::muted(words.get("limits.none")), PageCell::money)
    };
    let rate = |count: u32| match count {
        0 => PageCell::muted(words.get("limits.none")),
        count => PageCell::number(count),
    };
    let limits = &settings.payout_limits;
    vec![
        ("public_url", PageCell::text(&settings.public_url)),
        ("quote_lock_seconds", seconds(settings.quote_lock_seconds)),
        ("funding_seconds", seconds(settings.funding_seconds)),
        ("amount_minimum", PageCell::money(settings.amount_min)),
        ("amount_maximum", PageCell::money(settings.amount_max)),
        ("fee", PageCell::money(settings.fee)),
        ("spread_basis_points", PageCell::number(settings.spread_basis_points)),
        ("purpose_code", PageCell::text(&settings.purpose_code_default)),
        ("gst", yes_or_no(settings.is_gst_charged)),
        ("four_eyes_above", most(settings.four_eyes_above)),
        ("sender_day_inr_max", most(limits.sender_day)),
        ("sender_month_inr_max", most(limits.sender_month)),
        ("beneficiary_day_inr_max", most(limits.beneficiary_day)),
        ("beneficiary_month_inr_max", most(limits.beneficiary_month)),
        ("account_day_inr_max", most(limits.account_day)),
        ("account_month_inr_max", most(limits.account_month)),
        ("rate_limit_reads", rate(visit.app.reads_per_second_max)),
        ("rate_limit_writes", rate(visit.app.writes_per_second_max)),
        ("issuer_name", PageCell::text(&settings.issuers.default.name)),
        ("sponsor_bank_name", text(&settings.sponsor_bank_name)),
        ("security_contact", text(&settings.security_contact)),
        ("allow_loopback_webhooks", yes_or_no(settings.loopback_webhooks_allowed)),
        ("console_second_factor", yes_or_no(visit.console.requires_second_factor)),
    ]
}

/// Who may sign in.
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

/// Signs somebody out everywhere.
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
        visit.app.store.read(Cost::Scan, |tx| Ok(decisions::rows::newest(tx, DECISIONS_MAX)?));
    let found = read.await?;
    let words = visit.words;
    let mut page = ConsolePage::new("decisions", words.get("decisions.title"));
    let columns = ["col.created", "col.by", "col.decision", "fact.about", "col.why"];
    let mut table = Table::new(words, words.get("decisions.title"), &columns, "decisions.empty");
    for decision in &found {
        table.lines.push(TableLine::new(vec![
            PageCell::time(decision.decided_at),
            PageCell::text(decision.by.actor()),
            PageCell::Text(decide::decision_word(&visit, &decision.decision)),
            decide::subject_cell(&decision.subject),
            PageCell::text(decision.by.reason()),
        ]));
    }
    page.still.push(Section::wide("", vec![PageBlock::Table(table)]));
    page.draw(&visit)
}
