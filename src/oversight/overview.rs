//! The overview, the console's first page: what waits for a person, how far today's transfers have
//! come, and whether files, endpoints and rates are in order.

use super::flow::{DayCount, Flow};
use super::queues::{self, QueueLine};
use super::rows::{self, EndpointLine, FileIn, FileOut, RateLine};
use super::stops::{self, OperatorStop};
use super::{AccountNames, cut};
use crate::backlog::{self, WaitingCount};
use crate::disk::DiskSpace;
use crate::kernel::{Currency, Mode, Money, StoreError};
use crate::ledger::LedgerAccount;
use crate::rails::files::values::Day;
use crate::reconcile::kept;
use crate::services::Services;
use crate::store::Tx;

/// The most files for the bank that are read.
const FILES_OUT_MAX: i64 = 5;
/// The most files from the bank that are read. The page shows fewer of them; alarms come from all.
const FILES_IN_MAX: i64 = 50;
/// The most endpoints in trouble that are shown.
const ENDPOINTS_MAX: i64 = 100;
/// An endpoint is listed as late once its next delivery has been due for this long.
pub const WEBHOOK_LATE_SECONDS: i64 = 300;
/// The most open payouts that are counted in each group of [`AGES_SECONDS`].
const PAYOUTS_COUNTED_MAX: i64 = 5_000;
/// Upper bounds, in seconds, of the age groups in which open payouts are counted. One more group
/// has no upper bound.
pub const AGES_SECONDS: [i64; 4] = [900, 3_600, 14_400, 86_400];

/// The overview of one mode. Files, rates and stops are those of the whole service, `waiting` is of
/// both modes, and `disk_spaces` of this node.
#[derive(Clone, Debug)]
pub struct Overview {
    /// Unix seconds of the store's clock.
    pub made_at: i64,
    pub queues: Vec<QueueLine>,
    pub flow: Flow,
    /// What each ledger account holds in each currency: debits less credits.
    pub ledger_balances: Vec<(LedgerAccount, Money)>,
    /// Deposits that were seen and are not final: how many, and how much.
    pub pending: (i64, Money),
    pub files_out: Vec<FileOut>,
    pub files_in: Vec<FileIn>,
    /// The last day that a statement of the bank closes.
    pub closed_until: Option<Day>,
    /// Differences with the bank that are not explained.
    pub bank_differences_count: usize,
    /// Endpoints that are not enabled, or late.
    pub endpoints: Vec<EndpointLine>,
    /// Whether more endpoints are in trouble.
    pub has_more_endpoints: bool,
    /// How many endpoints there are.
    pub endpoints_count: i64,
    /// Open payouts in each group of `AGES_SECONDS`: how many, and how much.
    pub payouts_by_age: Vec<(i64, Money)>,
    pub rates: Vec<RateLine>,
    pub stops: Vec<OperatorStop>,
    /// How much work of each kind waits, and since when ([`crate::backlog`]).
    pub waiting: Vec<WaitingCount>,
    /// The space on the file systems that this node writes to, each with a word for what it keeps
    /// there. [`read`] leaves this empty, because the store does not know them.
    pub disk_spaces: Vec<(&'static str, DiskSpace)>,
}

impl Overview {
    /// Whether this mode has no money, no endpoint and nothing that waits, as before its first use.
    pub fn is_untouched(&self) -> bool {
        self.ledger_balances.iter().all(|(_, money)| money.units == 0)
            && self.pending.0 == 0
            && self.endpoints_count == 0
            && self.queues.iter().all(|line| line.count == 0)
    }
}

/// Reads the overview of a mode. `day` holds what the last call counted, and this call continues
/// there. `chains` are the chains of the mode; `milliseconds` is the store's clock.
pub fn read(
    tx: &mut dyn Tx,
    day: &mut DayCount,
    accounts: &AccountNames,
    mode: Mode,
    chains: &[&str],
    services: &Services,
    milliseconds: i64,
) -> Result<Overview, StoreError> {
    let instant = milliseconds / 1_000;
    day.count_new(tx, accounts.scopes(), instant)?;
    let (pending_count, pending_units) = rows::pending(tx, mode)?;
    let mut payouts_by_age = Vec::new();
    let mut before = i64::MAX;
    let is_any_ahead = accounts.is_any_ahead(mode);
    for age in AGES_SECONDS.into_iter().map(Some).chain([None]) {
        let from = age.map_or(i64::MIN, |age| instant - age);
        let (count, units) = match is_any_ahead {
            false => rows::open_payouts_between(tx, mode, from, before, PAYOUTS_COUNTED_MAX)?,
            true => rows::open_payouts_aged(tx, mode, from, before, PAYOUTS_COUNTED_MAX)?,
        };
        payouts_by_age.push((count, Money::new(units, Currency::Inr)));
        before = from;
    }
    let due_before = milliseconds - WEBHOOK_LATE_SECONDS * 1_000;
    let mut endpoints = rows::endpoints_in_trouble(tx, mode, due_before, ENDPOINTS_MAX + 1)?;
    Ok(Overview {
        made_at: instant,
        queues: queues::lines(tx, accounts, mode, chains)?,
        flow: day.sum(|scope| scope.mode() == mode),
        ledger_balances: rows::ledger_balances(tx, mode)?,
        pending: (pending_count, Money::new(pending_units, Currency::Usdt)),
        files_out: rows::files_out(tx, FILES_OUT_MAX)?,
        files_in: rows::files_in(tx, FILES_IN_MAX)?,
        closed_until: crate::reconcile::rows::closed_until(tx)?,
        bank_differences_count: kept::count(tx, mode)?,
        has_more_endpoints: cut(&mut endpoints, ENDPOINTS_MAX),
        endpoints,
        endpoints_count: rows::endpoints_count(tx, mode)?,
        payouts_by_age,
        rates: rows::rates(tx)?,
        stops: stops::read(tx, accounts)?,
        waiting: backlog::waiting(tx, services, milliseconds)?,
        disk_spaces: Vec::new(),
    })
}
