//! Limits, and how much of each is used.

use super::super::blocks::{
    ConsolePage, PageBlock, PageCell, Section, Table, TableLine, Tone, amount,
};
use super::super::visit::{PageOutcome, Visit};
use super::{mode_chips, mode_of};
use crate::kernel::{Currency, Money, Scope, StoreError};
use crate::keys;
use crate::oversight::AccountNames;
use crate::payouts::limits::{self, LimitSubject, LimitUsage};
use crate::services::PayoutLimits;
use crate::store::{Cost, Tx};

pub async fn page(visit: Visit) -> PageOutcome {
    let mode = mode_of(&visit);
    let set = visit.services().settings.payout_limits.clone();
    let milliseconds = visit.app.store.clock.milliseconds();
    let read = visit.app.store.read(Cost::Scan, move |tx| {
        let accounts = AccountNames::read(tx)?;
        let mut all = Vec::new();
        for scope in accounts.scopes().filter(|scope| scope.mode() == mode) {
            all.push((scope, usage(tx, &set, scope, LimitSubject::Account, None, milliseconds)?));
        }
        Ok((accounts, all))
    });
    let (accounts, all) = read.await?;
    let words = visit.words;
    let mut page = ConsolePage::new("limits", words.get("limits.title"));
    page.chips = mode_chips(&visit, mode, "/console/limits");
    page.still.push(Section::wide("", rules(&visit)));
    let columns = ["col.account", "limits.today", "limits.this_month"];
    let caption = words.get("limits.used");
    let mut table = Table::new(words, caption, &columns, "accounts.empty");
    for (scope, used) in all {
        let cell = |is_month: bool| {
            let found = used.iter().find(|used| used.is_month == is_month);
            found.map_or(PageCell::none(), |used| share(&visit, used))
        };
        let path = format!("/console/accounts/{}", scope.account_number());
        table.lines.push(
            TableLine::new(vec![
                PageCell::link(path.clone(), accounts.of(scope)),
                cell(false),
                cell(true),
            ])
            .to(path),
        );
    }
    let help =
        PageBlock::Note { tone: Tone::Plain, text: words.get("limits.used_help").to_owned() };
    let held = format!("/console/queues/payouts?mode={}", mode.as_str());
    let links = PageBlock::Links(vec![(held, words.get("limits.held").to_owned())]);
    page.still.push(Section::wide(caption, vec![help, PageBlock::Table(table), links]));
    page.draw(&visit)
}

fn rules(visit: &Visit) -> Vec<PageBlock> {
    let words = visit.words;
    let settings = &visit.services().settings;
    let columns = ["col.setting", "col.whom", "#col.value"];
    let mut table = Table::new(words, words.get("limits.rules"), &columns, "search.nothing");
    let set = &settings.payout_limits;
    let transfer = words.get("limits.transfer").to_owned();
    let decision = words.get("limits.decision").to_owned();
    for (name, whom, value) in [
        ("amount_minimum", transfer.clone(), Some(settings.amount_min)),
        ("amount_maximum", transfer, Some(settings.amount_max)),
        ("four_eyes_above", decision, settings.four_eyes_above),
        ("sender_day_inr_max", period(visit, LimitSubject::Sender, false), set.sender_day),
        ("sender_month_inr_max", period(visit, LimitSubject::Sender, true), set.sender_month),
        (
            "beneficiary_day_inr_max",
            period(visit, LimitSubject::Beneficiary, false),
            set.beneficiary_day,
        ),
        (
            "beneficiary_month_inr_max",
            period(visit, LimitSubject::Beneficiary, true),
            set.beneficiary_month,
        ),
        ("account_day_inr_max", period(visit, LimitSubject::Account, false), set.account_day),
        ("account_month_inr_max", period(visit, LimitSubject::Account, true), set.account_month),
    ] {
        let value = value.map_or(PageCell::muted(words.get("limits.none")), PageCell::money);
        table.lines.push(TableLine::new(vec![
            PageCell::Code(name.into()),
            PageCell::Text(whom),
            value,
        ]));
    }
    for (name, count) in [
        ("rate_limit_reads", visit.app.reads_per_second_max),
        ("rate_limit_writes", visit.app.writes_per_second_max),
    ] {
        let whom = PageCell::text(words.get("limits.requests"));
        let value = match count {
            0 => PageCell::muted(words.get("limits.none")),
            count => {
                let values = [("count", count.to_string()), ("burst", (2 * count).to_string())];
                let values = values.each_ref().map(|(name, count)| (*name, count.as_str()));
                PageCell::Number(words.with("limits.a_second", values))
            }
        };
        table.lines.push(TableLine::new(vec![PageCell::Code(name.into()), whom, value]));
    }
    let help = PageBlock::Note { tone: Tone::Plain, text: words.get("limits.help").to_owned() };
    vec![help, PageBlock::Table(table)]
}

/// Whose payouts in which period, in words.
pub fn period(visit: &Visit, subject: LimitSubject, is_month: bool) -> String {
    let key = if is_month { "limits.month" } else { "limits.day" };
    let whom = format!("limits.{}", subject.as_str());
    format!("{}, {}", visit.words.get(&whom), visit.words.get(key))
}

/// How much of a limit is used.
pub fn share(visit: &Visit, used: &LimitUsage) -> PageCell {
    let units = used.units.unwrap_or(0);
    let values = [("used", Money::new(units, Currency::Inr)), ("max", used.max)];
    let values = values.map(|(name, money)| (name, amount(money)));
    let values = [0, 1].map(|place: usize| (values[place].0, values[place].1.as_str()));
    let text = visit.words.with("limits.of", values);
    let is_full = units >= used.max.units;
    match (used.units, is_full) {
        (None, _) => PageCell::Muted(text),
        (_, true) => PageCell::Chip { text, tone: Tone::Attention },
        (_, false) => PageCell::Number(text),
    }
}

/// How much somebody has used of each limit that is set, by the account's business time.
pub fn usage(
    tx: &mut dyn Tx,
    set: &PayoutLimits,
    scope: Scope,
    subject: LimitSubject,
    id: Option<crate::kernel::AnyId>,
    instant_milliseconds: i64,
) -> Result<Vec<LimitUsage>, StoreError> {
    let ahead_milliseconds = keys::rows::clock_offset_seconds(tx, scope)? * 1_000;
    limits::usage(tx, set, scope, subject, id, instant_milliseconds + ahead_milliseconds)
}
