//! How far today's transfers have come: how many quotes were locked and how many transfers entered
//! each status since midnight in India, with their rupees.
//!
//! Statuses are counted from the events, which become visible in the order of their identifiers.
//! Each call continues after the last event that was counted, so its cost depends on what happened
//! since, not on the whole day. The count is in memory; after a restart the day is counted again.

use std::collections::HashMap;

use super::rows;
use crate::events;
use crate::kernel::state::Status;
use crate::kernel::{Scope, StoreError};
use crate::store::Tx;
use crate::transfers::state::TransferStatus;

/// The most events, and the most quote locks, that one read takes of one account and mode. The next
/// read continues after them.
const ROWS_READ_MAX: i64 = 2_000;
/// How many reads of one [`DayCount::count_new`] may reach that limit, over all accounts.
const FULL_READS_MAX: usize = 8;
/// Quote locks that are younger than this are counted anew each time, because another node may
/// still commit one with an earlier identifier.
const RECENT_QUOTES_SECONDS: i64 = 60;

/// How many quote locks or transfers, and the sum of their rupees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCount {
    pub count: i64,
    /// Paise.
    pub units: i64,
}

impl FlowCount {
    fn add(&mut self, other: FlowCount) {
        self.count += other.count;
        self.units = self.units.saturating_add(other.units);
    }
}

/// What entered each status today.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    pub quotes: FlowCount,
    pub entered: HashMap<TransferStatus, FlowCount>,
    /// Whether everything up to now was counted. Of the quote locks of the last minute, the first
    /// `ROWS_READ_MAX` of each account and mode count at once, and others a minute later.
    pub is_whole: bool,
}

impl Flow {
    pub fn of(&self, status: TransferStatus) -> FlowCount {
        self.entered.get(&status).copied().unwrap_or_default()
    }
}

/// The count of a day for one account and mode.
#[derive(Default)]
struct ScopeCount {
    /// The last event that is counted.
    event_id: [u8; 16],
    /// Quote locks up to this identifier are counted in `quotes`.
    quote_id: [u8; 16],
    quotes: FlowCount,
    /// Quote locks after `quote_id`, which are counted anew each time.
    recent_quotes: FlowCount,
    entered: HashMap<TransferStatus, FlowCount>,
    is_whole: bool,
}

/// The count of a day, for every account.
#[derive(Default)]
pub struct DayCount {
    day_start: i64,
    scopes: HashMap<Scope, ScopeCount>,
}

impl DayCount {
    /// Counts what happened since the last call; `instant` is the store's clock in Unix seconds.
    pub fn count_new(
        &mut self,
        tx: &mut dyn Tx,
        scopes: impl Iterator<Item = Scope>,
        instant: i64,
    ) -> Result<(), StoreError> {
        let day_start = super::day_start(instant);
        if day_start != self.day_start {
            *self = DayCount { day_start, scopes: HashMap::new() };
        }
        let floor = super::floor_of(day_start);
        let mut full_reads_left = FULL_READS_MAX;
        for scope in scopes {
            let count = self.scopes.entry(scope).or_insert_with(|| ScopeCount {
                event_id: floor,
                quote_id: floor,
                ..ScopeCount::default()
            });
            count.is_whole = false;
            while !count.is_whole && full_reads_left > 0 {
                count.count_next(tx, scope, instant)?;
                if !count.is_whole {
                    full_reads_left -= 1;
                }
            }
            count.count_recent_quotes(tx, scope)?;
        }
        Ok(())
    }

    /// The sum over the accounts and modes for which `is_shown` answers true.
    pub fn sum(&self, is_shown: impl Fn(Scope) -> bool) -> Flow {
        let mut flow = Flow { is_whole: true, ..Flow::default() };
        for (_, count) in self.scopes.iter().filter(|(scope, _)| is_shown(**scope)) {
            flow.quotes.add(count.quotes);
            flow.quotes.add(count.recent_quotes);
            flow.is_whole &= count.is_whole;
            for (status, tally) in &count.entered {
                flow.entered.entry(*status).or_default().add(*tally);
            }
        }
        flow
    }
}

impl ScopeCount {
    /// Counts the next events and quote locks, up to `ROWS_READ_MAX` of each.
    fn count_next(
        &mut self,
        tx: &mut dyn Tx,
        scope: Scope,
        instant: i64,
    ) -> Result<(), StoreError> {
        let full_until = rows::event_at_index(tx, scope, self.event_id, ROWS_READ_MAX - 1)?;
        let newest = match full_until {
            Some(_) => None,
            None => events::rows::latest(tx, scope, 1)?.first().map(|event| event.id.to_bytes()),
        };
        if let Some(last) = full_until.or(newest).filter(|last| *last > self.event_id) {
            for (event_type, count, units) in rows::transfer_events(tx, scope, self.event_id, last)?
            {
                if let Some(status) = entered(&event_type) {
                    self.entered.entry(status).or_default().add(FlowCount { count, units });
                }
            }
            self.event_id = last;
        }
        let recent_from = super::floor_of(instant - RECENT_QUOTES_SECONDS).max(self.quote_id);
        let (count, units, last) =
            rows::quotes_between(tx, scope, self.quote_id, recent_from, ROWS_READ_MAX)?;
        self.quotes.add(FlowCount { count, units });
        // `None`: everything before `recent_from` was counted.
        self.quote_id = last.unwrap_or(recent_from);
        self.is_whole = full_until.is_none() && last.is_none();
        Ok(())
    }

    /// Counts the newest quote locks anew, because another node may still commit more among them.
    /// If there are more than `ROWS_READ_MAX`, the others are counted a minute later.
    fn count_recent_quotes(&mut self, tx: &mut dyn Tx, scope: Scope) -> Result<(), StoreError> {
        self.recent_quotes = FlowCount::default();
        if self.is_whole {
            let (count, units, _) =
                rows::quotes_between(tx, scope, self.quote_id, [0xFF; 16], ROWS_READ_MAX)?;
            self.recent_quotes = FlowCount { count, units };
        }
        Ok(())
    }
}

/// The status that an event's type names.
fn entered(event_type: &str) -> Option<TransferStatus> {
    let word = event_type.strip_prefix("transfer.status.")?;
    TransferStatus::ALL.iter().copied().find(|status| Status::as_str(*status) == word)
}
