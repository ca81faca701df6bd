//! The first page: what waits for a person, the day's figures, and whether the service's parts run.

use std::sync::Arc;

use super::super::alarms::{self, CurrentAlarm};
use super::super::blocks::{
    ConsolePage, Figure, PageBlock, PageCell, Section, Stage, Table, TableLine, Tone, age, amount,
    word,
};
use super::super::runbooks;
use super::super::visit::{Failure, PageOutcome, Visit};
use super::{machinery, mode_chips, mode_of};
use crate::chains::heights::SeenHeight;
use crate::kernel::state::Status;
use crate::kernel::{Currency, Mode, Money, Rate};
use crate::oversight::flow::FlowCount;
use crate::oversight::overview::{self, Overview};
use crate::transfers::state::TransferStatus;

/// The most files from the bank that are shown, the newest ones.
const FILES_SHOWN_MAX: usize = 5;
/// How many heights of a chain are shown. They are a minute or more apart.
const HEIGHTS_SHOWN: usize = 6;

async fn read(visit: &Visit, mode: Mode) -> Result<Arc<Overview>, Failure> {
    Ok(visit.console.watch.look(&visit.app, mode).await?)
}

pub async fn page(visit: Visit) -> PageOutcome {
    compose(&visit).await?.draw(&visit)
}

/// The part of the page that the browser loads anew from time to time.
pub async fn reload(visit: Visit) -> PageOutcome {
    compose(&visit).await?.draw_reloaded(&visit)
}

async fn compose(visit: &Visit) -> Result<ConsolePage, Failure> {
    let mode = mode_of(visit);
    let overview = read(visit, mode).await?;
    let words = visit.words;
    let mut page = ConsolePage::new("home", words.get("overview.title"));
    page.chips = mode_chips(visit, mode, "/console");
    page.reload_path = Some(format!("/console/overview/live?mode={}", mode.as_str()));
    let found = alarms::current(visit, mode, &overview);
    let mut alarms = Some(alarm_section(visit, &found));
    if !found.is_empty() {
        page.reloaded.extend(alarms.take());
    }
    if !overview.stops.is_empty() {
        let title = words.get("overview.stopped");
        let table = machinery::stops_table(visit, title, &overview.stops);
        page.reloaded.push(Section::wide(title, vec![PageBlock::Table(table)]));
    }
    let (is_untouched, steps) = (overview.is_untouched(), live_steps(visit));
    if is_untouched {
        page.reloaded.extend(steps.clone());
    }
    page.reloaded
        .push(Section::wide(words.get("overview.waiting"), waiting(visit, mode, &overview)));
    page.reloaded.push(Section::wide(words.get("overview.flow"), flow(visit, mode, &overview)));
    page.reloaded.push(Section::half(words.get("overview.money"), vec![money(visit, &overview)]));
    page.reloaded.push(Section::half(words.get("overview.payouts"), vec![ages(visit, &overview)]));
    page.reloaded.push(Section::half(words.get("overview.chain"), chains(visit, mode)));
    page.reloaded.push(Section::half(words.get("overview.rates"), vec![rates(visit, &overview)]));
    if mode.is_live() || !overview.files_out.is_empty() {
        page.reloaded.push(Section::wide(words.get("overview.bank"), bank(visit, &overview)));
    }
    page.reloaded
        .push(Section::half(words.get("overview.webhooks"), vec![hooks(visit, &overview)]));
    page.reloaded.push(Section::half(words.get("overview.lists"), vec![lists(visit)]));
    page.reloaded.extend(alarms);
    if !is_untouched {
        page.reloaded.extend(steps);
    }
    Ok(page)
}

/// The steps to live mode; `None` once it is set up.
fn live_steps(visit: &Visit) -> Option<Section> {
    if visit.services().is_live_configured() {
        return None;
    }
    let words = visit.words;
    let columns = ["steps.part", "steps.what", "col.state"];
    let caption = words.get("steps.title");
    let mut table = Table::new(words, caption, &columns, "search.nothing");
    for part in &visit.app.live_parts {
        let state = match (part.is_configured, &part.fault) {
            (false, _) => "missing",
            (true, None) => "written",
            (true, Some(_)) => "does_not_do",
        };
        table.lines.push(TableLine::new(vec![
            PageCell::Code(format!("[{}]", part.table)),
            PageCell::Text(words.get(&format!("steps.{}", part.table)).to_owned()),
            PageCell::chip(words, state),
        ]));
    }
    let step = |key: &str| PageBlock::Note { tone: Tone::Plain, text: words.get(key).to_owned() };
    let blocks = vec![
        step("steps.first"),
        PageBlock::Table(table),
        step("steps.second"),
        step("steps.third"),
    ];
    Some(Section::wide(caption, blocks))
}

/// The current alarms, each with its runbook, and a link to the runbooks of all alarms.
fn alarm_section(visit: &Visit, found: &[CurrentAlarm]) -> Section {
    let words = visit.words;
    let caption = words.get("overview.alarms");
    let columns = ["col.alarm", "col.what", "col.runbook"];
    let mut table = Table::new(words, caption, &columns, "overview.no_alarms");
    for alarm in found {
        table.lines.push(TableLine::new(vec![
            PageCell::Chip { text: alarms::title(words, alarm.name), tone: alarm.tone },
            PageCell::Text(alarm.what.clone()),
            runbooks::link(alarm.name),
        ]));
    }
    let all = ("/console/runbooks".to_owned(), words.get("overview.all_alarms").to_owned());
    Section::wide(caption, vec![PageBlock::Table(table), PageBlock::Links(vec![all])])
}

fn waiting(visit: &Visit, mode: Mode, overview: &Overview) -> Vec<PageBlock> {
    let (words, instant) = (visit.words, visit.instant());
    let figure = |line: &crate::oversight::queues::QueueLine| {
        let kind = line.kind.as_str();
        let count = format!("{}{}", line.count, if line.is_more { "+" } else { "" });
        let below = line.oldest_at.map(|at| {
            let age = age(words, instant - at);
            PageCell::muted(words.with("overview.oldest", [("age", age.as_str())]))
        });
        Figure {
            label: words.get(&format!("queue.{kind}")).to_owned(),
            value: count,
            below: below.into_iter().collect(),
            tone: if line.count == 0 { Tone::Plain } else { Tone::Attention },
            href: Some(format!("/console/queues/{kind}?mode={}", mode.as_str())),
        }
    };
    let mut blocks = Vec::new();
    if overview.queues.iter().all(|line| line.count == 0) {
        let text = words.get("overview.nothing_waits").to_owned();
        blocks.push(PageBlock::Note { tone: Tone::Good, text });
    }
    blocks.push(PageBlock::Figures(overview.queues.iter().map(figure).collect()));
    blocks
}

/// The day's flow from the quote to the UTR, then the transfers that went another way.
fn flow(visit: &Visit, mode: Mode, overview: &Overview) -> Vec<PageBlock> {
    let words = visit.words;
    let flow = &overview.flow;
    let most = flow.quotes.count.max(flow.of(TransferStatus::Funding).count).max(1);
    let stage = |key: &str, tally: FlowCount, status: Option<TransferStatus>| Stage {
        label: words.get(key).to_owned(),
        count: tally.count.to_string(),
        amount: amount(Money::new(tally.units, Currency::Inr)),
        share: (tally.count.saturating_mul(20) / most).clamp(0, 20) * 5,
        tone: match status.map(Status::as_str) {
            Some(word) if tally.count > 0 => Tone::of(word),
            _ => Tone::Plain,
        },
        href: status.map(|status| {
            let word = Status::as_str(status);
            format!("/console/transfers?status={word}&mode={}", mode.as_str())
        }),
    };
    let of = |status| stage(words_key(status), flow.of(status), Some(status));
    let way = vec![
        stage("flow.quotes", flow.quotes, None),
        of(TransferStatus::Funding),
        of(TransferStatus::Funded),
        of(TransferStatus::PayoutProcessing),
        of(TransferStatus::PayoutSettled),
    ];
    let aside = [
        TransferStatus::FundingHold,
        TransferStatus::Expired,
        TransferStatus::Cancelled,
        TransferStatus::PayoutFailed,
        TransferStatus::PayoutReturned,
        TransferStatus::RefundProcessing,
        TransferStatus::Refunded,
    ];
    let aside: Vec<Figure> = aside
        .into_iter()
        .map(|status| {
            let tally = flow.of(status);
            Figure {
                label: words.get(words_key(status)).to_owned(),
                value: tally.count.to_string(),
                below: vec![PageCell::muted(amount(Money::new(tally.units, Currency::Inr)))],
                tone: if tally.count > 0 { Tone::of(Status::as_str(status)) } else { Tone::Plain },
                href: of(status).href,
            }
        })
        .collect();
    let mut blocks = vec![PageBlock::Flow(way), PageBlock::Figures(aside)];
    if !flow.is_whole {
        let text = words.get("overview.still_counting").to_owned();
        blocks.push(PageBlock::Note { tone: Tone::Plain, text });
    }
    blocks
}

const fn words_key(status: TransferStatus) -> &'static str {
    match status {
        TransferStatus::Funding => "flow.funding",
        TransferStatus::FundingHold => "flow.funding_hold",
        TransferStatus::Funded => "flow.funded",
        TransferStatus::PayoutProcessing => "flow.payout_processing",
        TransferStatus::PayoutSettled => "flow.payout_settled",
        TransferStatus::PayoutFailed => "flow.payout_failed",
        TransferStatus::PayoutReturned => "flow.payout_returned",
        TransferStatus::RefundProcessing => "flow.refund_processing",
        TransferStatus::Refunded => "flow.refunded",
        TransferStatus::Expired => "flow.expired",
        TransferStatus::Cancelled => "flow.cancelled",
    }
}

fn money(visit: &Visit, overview: &Overview) -> PageBlock {
    let words = visit.words;
    let caption = words.get("overview.money");
    let mut table =
        Table::new(words, caption, &["col.compartment", "#col.amount"], "overview.no_money");
    let (_, pending) = overview.pending;
    if !pending.is_zero() {
        let cells = vec![PageCell::text(word(words, "pending_deposits")), PageCell::money(pending)];
        table.lines.push(TableLine::new(cells));
    }
    for (account, money) in overview.ledger_balances.iter().filter(|(_, money)| !money.is_zero()) {
        let cells = vec![PageCell::text(word(words, account.as_str())), PageCell::money(*money)];
        table.lines.push(TableLine::new(cells));
    }
    PageBlock::Table(table)
}

fn ages(visit: &Visit, overview: &Overview) -> PageBlock {
    let words = visit.words;
    let caption = words.get("overview.payouts");
    let columns = ["col.age", "#col.count", "#col.amount"];
    let mut table = Table::new(words, caption, &columns, "overview.no_payouts");
    let mut bounds = overview::AGES_SECONDS.into_iter();
    let mut lower = 0;
    for (count, sum) in &overview.payouts_by_age {
        let label = match bounds.next() {
            Some(upper) => {
                let label = words.with("overview.up_to", [("age", age(words, upper).as_str())]);
                lower = upper;
                label
            }
            None => words.with("overview.over", [("age", age(words, lower).as_str())]),
        };
        if *count > 0 {
            table.lines.push(TableLine::new(vec![
                PageCell::Text(label),
                PageCell::number(count),
                PageCell::money(*sum),
            ]));
        }
    }
    PageBlock::Table(table)
}

fn chains(visit: &Visit, mode: Mode) -> Vec<PageBlock> {
    let (words, instant) = (visit.words, visit.instant());
    let caption = words.get("overview.chain");
    let columns = ["col.chain", "#col.block", "col.behind", "col.state"];
    let mut table = Table::new(words, caption, &columns, "overview.no_chain");
    for chain in visit.app.chains.iter().filter(|chain| chain.mode == mode) {
        let figures = chain.figures(instant);
        let state = match figures.in_trouble {
            None => "not_followed",
            Some(0) => "followed",
            Some(_) => "failing",
        };
        table.lines.push(TableLine::new(vec![
            PageCell::text(figures.chain),
            figures.height.map_or(PageCell::none(), PageCell::number),
            figures
                .behind_seconds
                .map_or(PageCell::none(), |behind| PageCell::text(age(words, behind))),
            PageCell::chip(words, state),
        ]));
    }
    let mut blocks = vec![PageBlock::Table(table)];
    for chain in visit.app.chains.iter().filter(|chain| chain.mode == mode) {
        let seen = chain.seen.all();
        if seen.len() > 1 {
            blocks.push(PageBlock::Table(history(visit, chain.settings.name.as_str(), &seen)));
        }
    }
    blocks
}

/// Heights and lags of the last minutes, the newest first.
fn history(visit: &Visit, chain: &str, seen: &[SeenHeight]) -> Table {
    let words = visit.words;
    let caption = words.with("overview.lags", [("chain", chain)]);
    let columns = ["col.time", "#col.block", "col.behind"];
    let mut table = Table::new(words, &caption, &columns, "overview.no_chain");
    for seen in seen.iter().rev().take(HEIGHTS_SHOWN) {
        table.lines.push(TableLine::new(vec![
            PageCell::time(seen.at),
            PageCell::number(seen.height),
            PageCell::Text(age(words, seen.behind_seconds)),
        ]));
    }
    table
}

fn rates(visit: &Visit, overview: &Overview) -> PageBlock {
    let (words, instant) = (visit.words, visit.instant());
    let caption = words.get("overview.rates");
    let columns = ["col.source", "#col.inr_per_usd", "#col.usd_per_usdt", "col.age"];
    let mut table = Table::new(words, caption, &columns, "overview.no_rates");
    for ports in visit.services().all_ports() {
        if let Some(rate) = ports.rates.current(instant) {
            let age_seconds = (instant - rate.observed_at).max(0);
            table.lines.push(TableLine::new(vec![
                PageCell::text(ports.rates.kind().as_str()),
                PageCell::number(rate.mid),
                PageCell::number(rate.usdt_usd),
                PageCell::text(age(words, age_seconds)),
            ]));
        }
    }
    for rate in &overview.rates {
        table.lines.push(TableLine::new(vec![
            PageCell::text(rate.market.clone()),
            PageCell::number(Rate(rate.inr_per_usd)),
            PageCell::number(Rate(rate.usd_per_usdt)),
            PageCell::text(age(words, instant - rate.observed_at)),
        ]));
    }
    PageBlock::Table(table)
}

fn bank(visit: &Visit, overview: &Overview) -> Vec<PageBlock> {
    let words = visit.words;
    let caption = words.get("overview.files_out");
    let columns = ["col.file", "col.status", "#col.count", "#col.amount", "col.created"];
    let mut out = Table::new(words, caption, &columns, "overview.no_files_out");
    for file in &overview.files_out {
        out.lines.push(TableLine::new(vec![
            PageCell::Code(file.id.to_string().trim_start_matches("request_").to_owned()),
            PageCell::chip(words, &file.status),
            PageCell::number(file.instructions_count),
            PageCell::money(Money::new(file.units, Currency::Inr)),
            PageCell::time(file.created),
        ]));
    }
    let caption = words.get("overview.files_in");
    let columns =
        ["col.file", "col.kind", "col.status", "#col.applied", "#col.unknown", "col.created"];
    let mut received = Table::new(words, caption, &columns, "overview.no_files_in");
    for file in overview.files_in.iter().take(FILES_SHOWN_MAX) {
        received.lines.push(TableLine::new(vec![
            PageCell::Code(file.message_id.clone()),
            PageCell::text(word(words, file.kind.word())),
            PageCell::chip(words, &file.status),
            PageCell::number(file.applied_count),
            PageCell::number(file.unknown_count),
            PageCell::time(file.received_at),
        ]));
    }
    let closed = overview.closed_until.map_or_else(
        || words.get("overview.no_statement").to_owned(),
        |day| words.with("overview.closed_until", [("day", day.to_string().as_str())]),
    );
    vec![
        PageBlock::Table(out),
        PageBlock::Table(received),
        PageBlock::Note { tone: Tone::Plain, text: closed },
    ]
}

fn hooks(visit: &Visit, overview: &Overview) -> PageBlock {
    let (words, milliseconds) = (visit.words, visit.app.store.clock.milliseconds());
    let caption = words.get("overview.webhooks");
    let columns = ["col.endpoint", "col.status", "col.backlog"];
    let mut table = Table::new(words, caption, &columns, "overview.no_webhooks");
    for endpoint in &overview.endpoints {
        let late = endpoint.due_milliseconds.map_or(0, |due| (milliseconds - due) / 1_000);
        let path = super::super::blocks::path_of(endpoint.id.any());
        table.lines.push(
            TableLine::new(vec![
                PageCell::link(path.clone(), endpoint.url.clone()),
                PageCell::chip(words, Status::as_str(endpoint.status)),
                if late > 0 { PageCell::text(age(words, late)) } else { PageCell::none() },
            ])
            .to(path),
        );
    }
    if overview.endpoints_count > 0 {
        let count = overview.endpoints_count.to_string();
        table.empty = words.with("overview.webhooks_fine", [("count", count.as_str())]);
    }
    table.tell_more(words, overview.has_more_endpoints);
    PageBlock::Table(table)
}

fn lists(visit: &Visit) -> PageBlock {
    let (words, instant) = (visit.words, visit.instant());
    let caption = words.get("overview.lists");
    let columns = ["col.list", "#col.entries", "col.age"];
    let mut table = Table::new(words, caption, &columns, "overview.no_lists");
    if let Some(lists) = &visit.services().screening {
        for state in lists.states() {
            table.lines.push(TableLine::new(vec![
                PageCell::text(state.list.as_str()),
                PageCell::number(state.entries_count),
                PageCell::text(age(words, instant - state.dated_at)),
            ]));
        }
    }
    PageBlock::Table(table)
}
