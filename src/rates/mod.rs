//! Exchange rates: the port, and what makes a rate trustworthy.

pub mod fixed;

use crate::kernel::Rate;

/// Seconds after which a rate is stale.
pub const RATE_AGE_SECONDS_MAX: i64 = 60;
/// How far a USDT may stand from a dollar, in millionths: 0.995 to 1.005.
pub const USDT_USD_MIN: Rate = Rate(995_000);
pub const USDT_USD_MAX: Rate = Rate(1_005_000);

/// What a source last knew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarketRate {
    /// INR for one USD.
    pub mid: Rate,
    /// USD for one USDT.
    pub usdt_usd: Rate,
    /// Store's clock, Unix seconds.
    pub observed_at: i64,
}

/// A source of exchange rates. A request never waits for one: `current` answers what is already known.
pub trait RateSource: Send + Sync {
    fn name(&self) -> &'static str;
    /// The latest rate, or `None` where there is none yet.
    fn current(&self, instant: i64) -> Option<MarketRate>;
}

/// The rate if it may be quoted at `instant`.
pub fn trusted(rate: Option<MarketRate>, instant: i64) -> Option<MarketRate> {
    rate.filter(|rate| {
        let age = instant - rate.observed_at;
        age <= RATE_AGE_SECONDS_MAX && (USDT_USD_MIN..=USDT_USD_MAX).contains(&rate.usdt_usd) && rate.mid.0 > 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_or_depegged_rate_is_not_quoted() {
        let rate = |usdt_usd, observed_at| Some(MarketRate { mid: Rate(88_000_000), usdt_usd: Rate(usdt_usd), observed_at });
        for (rate, quoted) in [
            (rate(1_000_000, 100), true),
            (rate(995_000, 100), true),
            (rate(1_005_000, 40), true),
            (rate(994_999, 100), false),
            (rate(1_005_001, 100), false),
            (rate(1_000_000, 39), false),
            (None, false),
        ] {
            assert_eq!(trusted(rate, 100).is_some(), quoted, "{rate:?}");
        }
    }
}
