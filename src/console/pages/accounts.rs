//! Accounts and their keys.

use super::super::blocks::{
    ConsolePage, PageBlock, PageCell, PageForm, Section, StoryStep, Table, TableLine, Tone,
    path_of, word,
};
use super::super::visit::{Failure, PageOutcome, Visit};
use super::stories::{self, StoryPart};
use super::{decide, fact, keys as key_forms, transfers};
use crate::audit::{self, Action, Entry};
use crate::decisions::{self, Decision};
use crate::kernel::page::Page as ListPage;
use crate::kernel::{Mode, Now, Scope, StoreError};
use crate::keys::rows::{self, KeyLine};
use crate::ledger;
use crate::operator::{self, four_eyes};
use crate::oversight;
use crate::oversight::rows::EndpointLine;
use crate::pauses::Operation;
use crate::staff::Role;
use crate::store::{Cost, Tx};

/// The most transfers of one account and mode that are shown, the newest ones.
const TRANSFERS_MAX: i64 = 20;
/// The most entries of the audit log that are read about one key. They say who made and revoked it.
const KEY_ENTRIES_MAX: i64 = 40;

pub async fn list(visit: Visit) -> PageOutcome {
    let read = visit.app.store.read(Cost::Scan, |tx| Ok((rows::accounts(tx)?, rows::list(tx)?)));
    let (accounts, keys) = read.await?;
    let words = visit.words;
    let mut page = ConsolePage::new("accounts", words.get("accounts.title"));
    let columns = ["col.account", "col.state", "#col.test_keys", "#col.live_keys"];
    let mut table = Table::new(words, words.get("accounts.title"), &columns, "accounts.empty");
    for (number, (name, is_suspended)) in (1_i64..).zip(&accounts) {
        let path = format!("/console/accounts/{number}");
        let count = |mode: Mode| {
            let not_revoked = keys
                .iter()
                .filter(|key| key.account == *name && key.mode == mode && key.revoked_at.is_none());
            PageCell::number(not_revoked.count())
        };
        table.lines.push(
            TableLine::new(vec![
                PageCell::link(path.clone(), name.clone()),
                PageCell::chip(words, if *is_suspended { "suspended" } else { "active" }),
                count(Mode::Test),
                count(Mode::Live),
            ])
            .to(path),
        );
    }
    page.still.push(Section::wide("", vec![PageBlock::Table(table)]));
    if visit.operator().role.includes(Role::Admin) {
        let form = PageBlock::Form(key_forms::form(&visit, None));
        page.still.push(Section::wide(words.get("keys.make_account"), vec![form]));
    }
    page.draw(&visit)
}

fn number(visit: &Visit) -> Result<i64, Failure> {
    visit.path(0).parse().map_err(|_| Failure::NotFound)
}

pub async fn one(visit: Visit) -> PageOutcome {
    let (number, part) = (number(&visit)?, StoryPart::asked(&visit));
    let read = visit.app.store.read(Cost::Scan, move |tx| {
        let accounts = rows::accounts(tx)?;
        let place = usize::try_from(number - 1).ok();
        let Some((name, is_suspended)) = place.and_then(|place| accounts.get(place)).cloned()
        else {
            return Ok(None);
        };
        let keys: Vec<KeyLine> =
            rows::list(tx)?.into_iter().filter(|key| key.account == name).collect();
        let mut modes = Vec::new();
        for mode in [Mode::Live, Mode::Test] {
            let scope = Scope::new(number, mode);
            let page = ListPage { limit: TRANSFERS_MAX, descending: true, ..ListPage::default() };
            let mut found = Vec::new();
            let (listed, is_more) = crate::transfers::rows::list(tx, scope, &page)?;
            for row in listed {
                found.push(crate::transfers::rows::read(row)?);
            }
            modes.push((mode, ledger::balances(tx, scope)?, (found, is_more)));
        }
        let ahead_seconds = rows::clock_offset_seconds(tx, Scope::new(number, Mode::Test))?;
        let history = AccountHistory::read(tx, &name, number, &keys, part)?;
        Ok(Some((name, is_suspended, keys, modes, ahead_seconds, history)))
    });
    let found = read.await?.ok_or(Failure::NotFound)?;
    let (name, is_suspended, keys, modes, ahead_seconds, history) = found;
    let words = visit.words;
    let mut page = ConsolePage::new("accounts", name);
    page.chips = vec![PageCell::chip(words, if is_suspended { "suspended" } else { "active" })];
    let columns = [
        "col.key",
        "col.mode",
        "col.permissions",
        "col.state",
        "fact.created",
        "col.used",
        "col.expires",
    ];
    let mut table = Table::new(words, words.get("accounts.keys"), &columns, "accounts.no_keys");
    let is_admin = visit.operator().role.includes(Role::Admin);
    for key in &keys {
        let is_expired = key.expires_at.is_some_and(|at| at <= visit.instant());
        let state = match (key.revoked_at, is_expired) {
            (Some(_), _) => "revoked",
            (None, true) => "expired",
            (None, false) => "active",
        };
        let permissions = key_forms::shown_cell(&visit, &key.permissions);
        let mut line = TableLine::new(vec![
            PageCell::Several(vec![
                PageCell::Code(key.hint.clone()),
                PageCell::Muted(super::super::blocks::short(&key.id.to_string())),
            ]),
            PageCell::Text(word(words, key.mode.as_str())),
            permissions,
            PageCell::chip(words, state),
            PageCell::time(key.created),
            PageCell::time_or_none(visit.app.keys.used_at(key.id).max(key.used_at)),
            PageCell::time_or_none(key.revoked_at.or(key.expires_at)),
        ]);
        line.pick = (is_admin && key.revoked_at.is_none()).then(|| key.id.to_string());
        table.lines.push(line);
    }
    let used = PageBlock::Note { tone: Tone::Plain, text: words.get("accounts.used").to_owned() };
    let list = match table.has_picks() {
        true => PageBlock::Picked { table, form: key_forms::revoke_form(&visit, number) },
        false => PageBlock::Table(table),
    };
    page.still.push(Section::wide(words.get("accounts.keys"), vec![list, used]));
    if is_admin {
        let form = PageBlock::Form(key_forms::form(&visit, Some(&page.title)));
        page.still.push(Section::wide(words.get("keys.make"), vec![form]));
    } else {
        let text = words.get("keys.ask_admin").to_owned();
        let note = PageBlock::Note { tone: Tone::Plain, text };
        page.still.push(Section::wide("", vec![note]));
    }
    let path = format!("/console/accounts/{number}");
    page.still.push(part.section(&visit, &path, history.moments(&visit, &keys)));
    for (mode, balances, (found, is_more)) in modes {
        let title = word(words, mode.as_str());
        let columns = ["col.compartment", "#col.amount"];
        let mut table = Table::new(words, &title, &columns, "overview.no_money");
        for (account, money) in balances {
            let cells = vec![PageCell::Text(word(words, account.as_str())), PageCell::money(money)];
            table.lines.push(TableLine::new(cells));
        }
        let mut blocks = vec![PageBlock::Table(table)];
        if mode == Mode::Test && ahead_seconds > 0 {
            let clock = PageCell::Text(super::super::blocks::age(words, ahead_seconds));
            blocks.push(PageBlock::Facts(vec![fact(&visit, "fact.clock_ahead", clock)]));
        }
        let mut list = transfers::table(&visit, None, &found);
        list.empty = words.get("transfers.empty").to_owned();
        list.tell_more(words, is_more);
        blocks.push(PageBlock::Table(list));
        page.still.push(Section::wide(title, blocks));
    }
    let act = act_form(&visit, number, is_suspended);
    page.still.push(Section::wide(words.get("transfer.decide"), vec![act]));
    page.draw(&visit)
}

/// The form that suspends or resumes the account.
fn act_form(visit: &Visit, number: i64, is_suspended: bool) -> PageBlock {
    let words = visit.words;
    if !visit.operator().role.includes(Role::Operator) {
        let text = words.get("decide.viewer").to_owned();
        return PageBlock::Note { tone: Tone::Plain, text };
    }
    let (decision, text, help) = match is_suspended {
        true => ("resume", "act.resume_account", "accounts.resume_help"),
        false => ("suspend", "act.suspend", "accounts.suspend_help"),
    };
    PageBlock::Form(PageForm {
        action: format!("/console/accounts/{number}/suspend"),
        is_change: true,
        title: String::new(),
        help: words.get(help).to_owned(),
        hidden: Vec::new(),
        questions: decide::questions(visit, &[]),
        buttons: vec![(decision.to_owned(), words.get(text).to_owned(), !is_suspended)],
    })
}

/// Suspends or resumes an account.
pub async fn suspend(visit: Visit) -> PageOutcome {
    let number = number(&visit)?;
    let by = decide::decided_by(&visit)?;
    let is_suspension = match visit.field("decision") {
        "suspend" => true,
        "resume" => false,
        _ => return Err(Failure::told(visit.words.get("decide.unknown"))),
    };
    let services = visit.app.services.clone();
    let carry_out = move |tx: &mut dyn Tx, now: &mut Now| {
        let Some(name) = rows::account_name(tx, number)? else { return Ok(None) };
        let outcome = match is_suspension {
            true => operator::suspend_account(tx, now, &name, &by)?,
            false => operator::resume_account(tx, now, &services.settings, &name, &by)?,
        };
        Ok(Some(outcome))
    };
    let outcome = visit.app.store.write(carry_out).await?.ok_or(Failure::NotFound)?;
    let notice = match is_suspension {
        true => "notice.suspended",
        false if four_eyes::is_waiting(&outcome) => "notice.waits_second",
        false => "notice.account_resumed",
    };
    visit.back_to(&format!("/console/accounts/{number}"), notice)
}

/// An account's past, as the store has it.
struct AccountHistory {
    decided: Vec<Decision>,
    /// What the audit log says of its keys.
    of_keys: Vec<Entry>,
    endpoints: Vec<EndpointLine>,
    created: Option<i64>,
}

impl AccountHistory {
    fn read(
        tx: &mut dyn Tx,
        name: &str,
        number: i64,
        keys: &[KeyLine],
        part: StoryPart,
    ) -> Result<AccountHistory, StoreError> {
        let rows_max = part.rows_max();
        let mut subjects = vec![operator::account_subject(name)];
        let of_pause =
            |operation: &Operation| operator::pause_subject(*operation, &Some(name.to_owned()));
        subjects.extend(Operation::ALL.iter().map(of_pause));
        let mut decided = Vec::new();
        for subject in subjects {
            let newest = decisions::rows::newest_of_subject(tx, &subject, rows_max)?;
            decided.extend(newest.into_iter().rev());
        }
        // Entries are read only about keys whose making or revoking this part of the story can
        // show.
        let times = |key: &KeyLine| [Some(key.created), key.revoked_at].into_iter().flatten();
        let mut all: Vec<i64> = keys.iter().flat_map(times).collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        let oldest = usize::try_from(rows_max).ok().and_then(|place| all.get(place).copied());
        let mut of_keys = Vec::new();
        for key in keys.iter().filter(|key| times(key).max() >= oldest) {
            let id = key.id.to_string();
            of_keys.extend(audit::rows::of_subject(tx, &id, KEY_ENTRIES_MAX)?);
        }
        let mut endpoints = Vec::new();
        for mode in [Mode::Live, Mode::Test] {
            endpoints.extend(oversight::rows::endpoints_of(tx, Scope::new(number, mode))?);
        }
        Ok(AccountHistory {
            decided,
            of_keys,
            endpoints,
            created: rows::account_created(tx, number)?,
        })
    }

    /// The moments of the account's story, from this history and from the keys themselves.
    fn moments(&self, visit: &Visit, keys: &[KeyLine]) -> Vec<(i64, StoryStep)> {
        let mut moments: Vec<(i64, StoryStep)> = Vec::new();
        if let Some(at) = self.created {
            moments.push((at, stories::step(visit, at, "col.account", "created")));
        }
        for key in keys {
            let by = |action: Action| {
                let told = |entry: &&Entry| {
                    entry.subject == key.id.to_string() && entry.action == action.as_str()
                };
                self.of_keys.iter().find(told)
            };
            let mut tell = |at: i64, what: &str, by: Option<&Entry>| {
                let mut made = stories::step(visit, at, "theme.key", what);
                made.facts = vec![
                    fact(visit, "col.key", PageCell::Code(key.hint.clone())),
                    fact(visit, "col.mode", PageCell::Text(word(visit.words, key.mode.as_str()))),
                ];
                let reason = by.and_then(|entry| entry.detail("reason"));
                let actor = by.map(|entry| entry.actor.clone()).filter(|actor| !actor.is_empty());
                for (key, text) in [("fact.by", actor), ("fact.why", reason)] {
                    made.facts.extend(text.map(|text| fact(visit, key, PageCell::Text(text))));
                }
                moments.push((at, made));
            };
            tell(key.created, "created", by(Action::KeyCreated));
            match (key.revoked_at, key.expires_at) {
                (Some(at), _) => tell(at, "revoked", by(Action::KeyRevoked)),
                (None, Some(at)) if at <= visit.instant() => tell(at, "expired_key", None),
                _ => {}
            }
        }
        for endpoint in &self.endpoints {
            let mut made = stories::step(visit, endpoint.created, "theme.endpoint", "created");
            let path = path_of(endpoint.id.any());
            made.facts = vec![fact(visit, "col.endpoint", PageCell::link(path, &endpoint.url))];
            moments.push((endpoint.created, made));
        }
        moments.extend(self.decided.iter().map(|decision| stories::decided(visit, decision, 0)));
        moments
    }
}
