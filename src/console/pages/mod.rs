//! The pages of the console: what each one reads, and what it shows.

pub mod accounts;
pub mod audit;
pub mod decide;
pub mod keys;
pub mod limits;
pub mod machinery;
pub mod overview;
pub mod persons;
pub mod queues;
pub mod reports;
pub mod search;
pub mod stories;
pub mod transfers;
pub mod webhooks;
pub mod work;

use super::blocks::{PageCell, Tone};
use super::visit::{Failure, PageOutcome, Visit};
use crate::chains::ChainName;
use crate::kernel::{AnyId, Mode, ObjectKind, Scope};
use crate::operator;
use crate::store::Cost;

/// The mode that a page shows: the one in the query; otherwise live mode if that is set up, and
/// test mode if not.
fn mode_of(visit: &Visit) -> Mode {
    match visit.query("mode") {
        "live" => Mode::Live,
        "test" => Mode::Test,
        _ if visit.services().is_live_configured() => Mode::Live,
        _ => Mode::Test,
    }
}

/// The shown mode as a chip, and a link to the other one.
fn mode_chips(visit: &Visit, mode: Mode, path: &str) -> Vec<PageCell> {
    let words = visit.words;
    let shown = PageCell::Chip {
        text: words.get(if mode.is_live() { "page.live" } else { "page.test" }).to_owned(),
        tone: if mode.is_live() { Tone::Good } else { Tone::Plain },
    };
    let (other, key) =
        if mode.is_live() { ("test", "page.to_test") } else { ("live", "page.to_live") };
    let mark = if path.contains('?') { '&' } else { '?' };
    vec![shown, PageCell::link(format!("{path}{mark}mode={other}"), words.get(key))]
}

/// An object's mode as a chip, and a link to its account.
fn scope_chips(visit: &Visit, account: &str, scope: Scope) -> Vec<PageCell> {
    let words = visit.words;
    let key = if scope.livemode() { "page.live" } else { "page.test" };
    let tone = if scope.livemode() { Tone::Good } else { Tone::Plain };
    vec![
        PageCell::Chip { text: words.get(key).to_owned(), tone },
        PageCell::link(format!("/console/accounts/{}", scope.account_number()), account),
    ]
}

fn chain_names() -> Vec<&'static str> {
    ChainName::ALL.iter().map(|chain| chain.as_str()).collect()
}

/// A fact: the text of its key, and what stands beside it.
fn fact(visit: &Visit, key: &str, cell: PageCell) -> (String, PageCell) {
    (visit.words.get(key).to_owned(), cell)
}

/// The account and mode of the object that a path names.
async fn scope_of(visit: &Visit, id: AnyId) -> Result<Scope, Failure> {
    let found = visit.app.store.read(Cost::Point, move |tx| Ok(operator::find_scope(tx, id)?));
    found.await?.ok_or(Failure::NotFound)
}

/// The object that a path names, if it is of this kind.
fn named(visit: &Visit, kind: ObjectKind) -> Result<AnyId, Failure> {
    AnyId::parse(visit.path(0)).filter(|id| id.kind == kind).ok_or(Failure::NotFound)
}

/// Leads from an identifier to the page that shows its object.
pub async fn object(visit: Visit) -> PageOutcome {
    let id = AnyId::parse(visit.path(0)).ok_or(Failure::NotFound)?;
    let path = search::page_of(&visit, id).await?.ok_or(Failure::NotFound)?;
    visit.go_to(&path)
}
