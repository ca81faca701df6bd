//! The progress of long work, which goes on whether or not somebody looks at this page.

use super::super::blocks::{
    ConsolePage, PageBlock, PageCell, Section, Table, TableLine, Tone, age, path_of, word,
};
use super::super::visit::{Failure, PageOutcome, Visit};
use super::fact;
use crate::chains::rows as chains;
use crate::chains::rows::{AuditMark, Cursor};
use crate::kernel::{Mode, StoreError};
use crate::oversight::rows::{self, EndpointLine};
use crate::oversight::{AccountNames, cut};
use crate::rails::files::values::Day;
use crate::reconcile;
use crate::reconcile::kept::{self, KeptComparison};
use crate::store::{Cost, Tx};
use crate::webhooks::rows::{self as hooks, ReplayProgress};
use crate::workers::screening::{self, ScreeningProgress};

/// The most endpoints of each mode that are shown.
const ENDPOINTS_MAX: i64 = 100;
/// The most deliveries of one endpoint that are counted. A `+` behind the number stands for more.
const COUNTED_MAX: i64 = 10_000;

/// The progress of long work, as read from the store.
struct Work {
    accounts: AccountNames,
    screening: Option<ScreeningProgress>,
    chains: Vec<Compared>,
    closed_until: Option<Day>,
    bank: Option<KeptComparison>,
    bank_mode: Mode,
    deliveries: Vec<(EndpointLine, i64, Option<ReplayProgress>)>,
    has_more_endpoints: bool,
}

/// How far a chain was compared with the book.
struct Compared {
    mode: Mode,
    chain: &'static str,
    cursor: Option<Cursor>,
    mark: Option<AuditMark>,
}

fn read(
    tx: &mut dyn Tx,
    followed: &[(Mode, crate::chains::ChainName)],
) -> Result<Work, StoreError> {
    let mut compared = Vec::new();
    for (mode, chain) in followed {
        let cursor = chains::cursor(tx, *mode, *chain)?;
        let mark = chains::audit_mark(tx, *mode, *chain)?;
        compared.push(Compared { mode: *mode, chain: chain.as_str(), cursor, mark });
    }
    let under_way = hooks::replay_endpoints(tx)?;
    let (mut deliveries, mut has_more_endpoints) = (Vec::new(), false);
    for mode in [Mode::Live, Mode::Test] {
        let mut endpoints = rows::endpoints_at_work(tx, mode, ENDPOINTS_MAX + 1)?;
        has_more_endpoints |= cut(&mut endpoints, ENDPOINTS_MAX);
        for endpoint in endpoints {
            let count = rows::waiting_deliveries(tx, endpoint.id, COUNTED_MAX + 1)?;
            let replayed = hooks::replay_progress(tx, endpoint.id, COUNTED_MAX)?;
            deliveries.push((endpoint, count, replayed));
        }
    }
    deliveries.retain(|(endpoint, count, _)| *count > 0 || under_way.contains(&endpoint.id));
    Ok(Work {
        accounts: AccountNames::read(tx)?,
        screening: screening::progress(tx)?,
        chains: compared,
        closed_until: reconcile::rows::closed_until(tx)?,
        bank: kept::read(tx)?,
        bank_mode: reconcile::rows::bank_mode(tx)?,
        deliveries,
        has_more_endpoints,
    })
}

pub async fn page(visit: Visit) -> PageOutcome {
    compose(&visit).await?.draw(&visit)
}

/// The part of the page that the browser loads anew from time to time.
pub async fn reload(visit: Visit) -> PageOutcome {
    compose(&visit).await?.draw_reloaded(&visit)
}

async fn compose(visit: &Visit) -> Result<ConsolePage, Failure> {
    let followed: Vec<_> =
        visit.app.chains.iter().map(|chain| (chain.mode, chain.settings.name)).collect();
    let work = visit.app.store.read(Cost::Scan, move |tx| Ok(read(tx, &followed)?)).await?;
    let words = visit.words;
    let mut page = ConsolePage::new("work", words.get("work.title"));
    page.reload_path = Some("/console/work/live".into());
    page.reloaded.push(Section::half(words.get("work.screening"), screened(visit, &work)));
    page.reloaded.push(Section::half(words.get("work.bank"), bank(visit, &work)));
    page.reloaded.push(Section::wide(words.get("work.chains"), vec![compared(visit, &work)]));
    page.reloaded.push(Section::wide(words.get("work.deliveries"), vec![delivered(visit, &work)]));
    Ok(page)
}

fn note(text: String) -> PageBlock {
    PageBlock::Note { tone: Tone::Plain, text }
}

/// The last screening of all persons, which begins when a list has changed.
fn screened(visit: &Visit, work: &Work) -> Vec<PageBlock> {
    let words = visit.words;
    let Some(progress) = &work.screening else {
        return vec![note(words.get("work.no_screening").to_owned())];
    };
    let state = match progress.ended_at {
        Some(_) => PageCell::Chip { text: words.get("work.done").to_owned(), tone: Tone::Good },
        None => PageCell::chip(words, "pending"),
    };
    let mut facts = vec![
        fact(visit, "col.state", state),
        fact(visit, "work.began", PageCell::time(progress.began_at)),
        fact(visit, "work.persons", PageCell::number(progress.count)),
    ];
    match progress.ended_at {
        Some(ended_at) => facts.push(fact(visit, "work.ended", PageCell::time(ended_at))),
        None => {
            let all = work.accounts.all().count().to_string();
            let number = progress.account_number.to_string();
            let values = [("number", number.as_str()), ("all", all.as_str())];
            let kind = if progress.is_beneficiaries { "beneficiaries" } else { "senders" };
            let place = PageCell::Several(vec![
                PageCell::Text(words.with("work.account_of", values)),
                PageCell::Text(words.get(&format!("search.{kind}")).to_owned()),
            ]);
            facts.push(fact(visit, "work.place", place));
            facts.push(fact(visit, "work.reached", PageCell::time_or_none(progress.reached)));
        }
    }
    vec![PageBlock::Facts(facts)]
}

/// The last day that the bank's statements close, and what the last comparison with them found.
fn bank(visit: &Visit, work: &Work) -> Vec<PageBlock> {
    let words = visit.words;
    let mut blocks = vec![note(work.closed_until.map_or_else(
        || words.get("overview.no_statement").to_owned(),
        |day| words.with("overview.closed_until", [("day", day.to_string().as_str())]),
    ))];
    if let Some(compared) = &work.bank {
        let path = format!("/console/queues/differences?mode={}", work.bank_mode.as_str());
        let found = match compared.differences_count {
            0 => PageCell::chip(words, "match"),
            count => PageCell::link(path, count.to_string()),
        };
        blocks.push(PageBlock::Facts(vec![
            fact(visit, "work.compared_at", PageCell::time(compared.compared_at)),
            fact(visit, "work.differences", found),
        ]));
    }
    blocks
}

/// The comparison of the book with each chain.
fn compared(visit: &Visit, work: &Work) -> PageBlock {
    let words = visit.words;
    let columns = ["col.chain", "col.mode", "#work.compared", "#work.followed", "work.whole"];
    let mut table = Table::new(words, words.get("work.chains"), &columns, "work.no_chain");
    for found in &work.chains {
        let height = |height: Option<i64>| height.map_or(PageCell::none(), PageCell::number);
        let whole = found.mark.as_ref().map(|mark| mark.completed_milliseconds / 1_000);
        table.lines.push(TableLine::new(vec![
            PageCell::text(found.chain),
            PageCell::Text(word(words, found.mode.as_str())),
            height(found.mark.as_ref().map(|mark| mark.anchor.height)),
            height(found.cursor.as_ref().map(|cursor| cursor.anchor.height)),
            PageCell::time_or_none(whole.filter(|at| *at > 0)),
        ]));
    }
    PageBlock::Table(table)
}

/// The endpoints with deliveries that wait or a replay under way, and how far the last replay of
/// each has come.
fn delivered(visit: &Visit, work: &Work) -> PageBlock {
    let (words, instant) = (visit.words, visit.instant());
    let columns = ["col.endpoint", "col.status", "#work.left", "#work.replayed", "col.backlog"];
    let caption = words.get("work.deliveries");
    let mut table = Table::new(words, caption, &columns, "work.no_deliveries");
    for (endpoint, count, replayed) in &work.deliveries {
        let path = path_of(endpoint.id.any());
        let due = endpoint.due_milliseconds.map_or(instant, |due| due / 1_000);
        table.lines.push(
            TableLine::new(vec![
                PageCell::link(path.clone(), endpoint.url.clone()),
                PageCell::chip(words, crate::kernel::state::Status::as_str(endpoint.status)),
                PageCell::Number(counted(*count)),
                replayed.map_or(PageCell::none(), |replayed| replay_cell(visit, &replayed)),
                if due < instant {
                    PageCell::Text(age(words, instant - due))
                } else {
                    PageCell::none()
                },
            ])
            .to(path),
        );
    }
    table.tell_more(words, work.has_more_endpoints);
    PageBlock::Table(table)
}

/// A count of deliveries as text. `count` is at most one more than `COUNTED_MAX`.
fn counted(count: i64) -> String {
    match count > COUNTED_MAX {
        true => format!("{COUNTED_MAX}+"),
        false => count.to_string(),
    }
}

/// How far a replay has come, as a cell.
pub fn replay_cell(visit: &Visit, replayed: &ReplayProgress) -> PageCell {
    let values = [("done", replayed.done_count), ("all", replayed.count)];
    let values = values.map(|(name, count)| (name, count.to_string()));
    let values = values.each_ref().map(|(name, count)| (*name, count.as_str()));
    PageCell::Number(visit.words.with("work.done_of", values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_count_above_the_maximum_has_a_plus() {
        assert_eq!(counted(0), "0");
        assert_eq!(counted(COUNTED_MAX), "10000");
        assert_eq!(counted(COUNTED_MAX + 1), "10000+");
    }
}
