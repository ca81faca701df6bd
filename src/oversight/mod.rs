//! What the operator sees of the whole service: the overview with the day's flow and what is
//! stopped, search, the story of a transfer, the queues of what waits for a person, and the daily
//! closing.
//!
//! These are plain values from the store. Nothing here changes anything, or knows of HTML and HTTP.
//! Where a value is a word that the pages translate, it is the key of a text of the pages. The
//! daily closing also writes itself as CSV.
//!
//! Most lists are bounded and read through indexes, because people keep these pages open while the
//! service works. Some sums and counts are not bounded, among them the ledger's balances, which
//! grow with the number of accounts, and the daily closing, which reads all postings since the
//! service began. If a test clock was advanced, the overview of test mode reads all open payouts.

pub mod closing;
pub mod flow;
pub mod overview;
pub mod queues;
pub mod rows;
pub mod search;
pub mod stops;
pub mod story;

use crate::kernel::{AnyId, InternalId, Mode, Scope, StoreError};
use crate::keys;
use crate::store::Tx;

/// Cuts the result of a query that asked for `rows_max + 1` rows down to `rows_max`. Returns
/// whether there were more.
pub fn cut<T>(found: &mut Vec<T>, rows_max: i64) -> bool {
    let rows_max = usize::try_from(rows_max).unwrap_or(0);
    let is_more = found.len() > rows_max;
    found.truncate(rows_max);
    is_more
}

/// The names and test clocks of all accounts, for showing whose an object is and how old it is.
/// The accounts' numbers begin at 1 and have no gaps, so a number gives the place in the list.
#[derive(Clone, Debug, Default)]
pub struct AccountNames(Vec<NamedClock>);

/// An account's name, and how far its test clock is ahead of the store's clock.
#[derive(Clone, Debug)]
struct NamedClock {
    name: String,
    ahead_seconds: i64,
}

impl AccountNames {
    pub fn read(tx: &mut dyn Tx) -> Result<AccountNames, StoreError> {
        let read = |(name, ahead_seconds)| NamedClock { name, ahead_seconds };
        Ok(AccountNames(keys::rows::account_clocks(tx)?.into_iter().map(read).collect()))
    }
    fn find(&self, number: i64) -> Option<&NamedClock> {
        self.0.get(usize::try_from(number - 1).ok()?)
    }
    /// The account's name; `?` if there is no such account.
    pub fn of(&self, scope: Scope) -> &str {
        self.named(scope.account_number())
    }
    /// The name of the account with this number; `?` if there is none.
    pub fn named(&self, number: i64) -> &str {
        self.find(number).map_or("?", |account| account.name.as_str())
    }
    /// How far an account's business time is ahead of the store's clock, in seconds.
    pub fn ahead_seconds(&self, scope: Scope) -> i64 {
        match scope.mode() {
            Mode::Live => 0,
            Mode::Test => {
                self.find(scope.account_number()).map_or(0, |account| account.ahead_seconds)
            }
        }
    }
    /// Whether any account's business time is ahead in this mode.
    pub fn is_any_ahead(&self, mode: Mode) -> bool {
        mode == Mode::Test && self.0.iter().any(|account| account.ahead_seconds > 0)
    }
    /// Every account in every mode.
    pub fn scopes(&self) -> impl Iterator<Item = Scope> + use<> {
        (1..=self.0.len() as i64)
            .flat_map(|number| [Mode::Test, Mode::Live].map(|mode| Scope::new(number, mode)))
    }
    /// The number and name of every account.
    pub fn all(&self) -> impl Iterator<Item = (i64, &str)> {
        (1..).zip(self.0.iter().map(|account| account.name.as_str()))
    }
}

/// When an identifier was minted, in Unix seconds of the store's clock.
pub const fn minted_at(id: AnyId) -> i64 {
    (id.value >> 80) as i64 / 1000
}

/// The smallest identifier of a Unix second.
pub const fn floor_of(seconds: i64) -> [u8; 16] {
    InternalId::lowest_at(seconds.saturating_mul(1_000)).to_bytes()
}

/// Seconds by which India's clock is ahead of UTC.
pub const IST_AHEAD_SECONDS: i64 = 19_800;

/// When the Indian day of a moment began, in Unix seconds.
pub const fn day_start(instant: i64) -> i64 {
    instant - (instant + IST_AHEAD_SECONDS).rem_euclid(86_400)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_indian_day_begins_at_half_past_six_in_the_evening_of_greenwich() {
        // 2026-01-01 00:00 IST.
        let midnight = 1_767_205_800;
        assert_eq!(day_start(midnight), midnight);
        assert_eq!(day_start(midnight + 86_399), midnight);
        assert_eq!(day_start(midnight - 1), midnight - 86_400);
    }

    #[test]
    fn the_floor_of_a_second_lies_below_what_is_minted_in_it() {
        let floor = u128::from_be_bytes(floor_of(1_767_205_800));
        let id = AnyId { kind: crate::kernel::ObjectKind::Event, value: floor + 1 };
        assert_eq!(minted_at(id), 1_767_205_800);
    }
}
