//! Exchange rates: the port, and the limits within which a rate may be quoted. `http` and `fixed`
//! implement the port. `guard` judges what the sources of `http` say.

pub mod exact;
pub mod figure_source;
pub mod fixed;
pub mod guard;
pub mod http;
pub mod rows;

use crate::kernel::Rate;

/// Seconds after which a rate is stale, unless configured otherwise.
pub const RATE_AGE_SECONDS_MAX: i64 = 60;
/// The range of USD for one USDT, unless configured otherwise: 0.995 to 1.005.
pub const USDT_USD_MIN: Rate = Rate(995_000);
pub const USDT_USD_MAX: Rate = Rate(1_005_000);
/// How far a rate's time may be ahead of the store's clock, in seconds, because clocks of nodes
/// differ a little.
const RATE_AHEAD_SECONDS_MAX: i64 = 5;

/// The limits within which a rate may be quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateBounds {
    pub age_seconds_max: i64,
    pub usdt_usd_min: Rate,
    pub usdt_usd_max: Rate,
}

impl Default for RateBounds {
    fn default() -> Self {
        RateBounds {
            age_seconds_max: RATE_AGE_SECONDS_MAX,
            usdt_usd_min: USDT_USD_MIN,
            usdt_usd_max: USDT_USD_MAX,
        }
    }
}

crate::string_enum!(
    /// Why a source's answer is not used, or why a poll gave no rate.
    RateRefusal {
        Connection "connection",
        Deadline "deadline",
        AnswerTooLong "answer_too_long",
        HttpStatus "http_status",
        NotJson "not_json",
        PointerMissing "pointer_missing",
        NotANumber "not_a_number",
        TimeUnreadable "time_unreadable",
        TimeInFuture "time_in_future",
        Stale "stale",
        Implausible "implausible",
        NoGoodSource "no_good_source",
        TooFewSources "too_few_sources",
        SourcesDisagree "sources_disagree",
        Jump "jump",
        AnchorDeviation "anchor_deviation",
        UsdtDepegged "usdt_depegged",
    }
);

impl RateRefusal {
    /// Whether it says only that too few sources gave a usable answer. Those answers can still
    /// contradict the last good rate; [`guard::RateMemory::judge_without_rate`] finds that out.
    pub const fn is_silence(self) -> bool {
        matches!(self, RateRefusal::NoGoodSource | RateRefusal::TooFewSources)
    }
}

/// Both figures of the market, and their time. The rate may not have been judged yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarketRate {
    /// INR for one USD.
    pub mid: Rate,
    /// USD for one USDT.
    pub usdt_usd: Rate,
    /// The earlier of the two figures' times (see [`guard::agreed`]), in Unix seconds. A fixed rate
    /// has the present.
    pub observed_at: i64,
}

crate::string_enum!(
    /// Where a market's rates come from: the settings, or sources over HTTP.
    MarketKind { Fixed "fixed", Http "http" }
);

/// The port for exchange rates: what a mode quotes from. No request waits for a rate, because
/// `current` answers what is already known.
pub trait Market: Send + Sync {
    fn kind(&self) -> MarketKind;
    /// The latest rate, or `None` if there is none now. `instant` is the present, in Unix seconds.
    /// The rate may be too old to be quoted: judge it with [`trusted`].
    fn current(&self, instant: i64) -> Option<MarketRate>;
}

/// The rate, if it may be quoted at `instant`, in Unix seconds; else `None`.
pub fn trusted(rate: Option<MarketRate>, instant: i64, bounds: &RateBounds) -> Option<MarketRate> {
    rate.filter(|rate| {
        let age = instant - rate.observed_at;
        // A clock that was set back must not make an old rate look new.
        (-RATE_AHEAD_SECONDS_MAX..=bounds.age_seconds_max).contains(&age)
            && (bounds.usdt_usd_min..=bounds.usdt_usd_max).contains(&rate.usdt_usd)
            && rate.mid.0 > 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_or_depegged_rate_is_not_quoted() {
        let rate = |usdt_usd, observed_at| {
            Some(MarketRate { mid: Rate(88_000_000), usdt_usd: Rate(usdt_usd), observed_at })
        };
        for (rate, quoted) in [
            (rate(1_000_000, 100), true),
            (rate(995_000, 100), true),
            (rate(1_005_000, 40), true),
            (rate(994_999, 100), false),
            (rate(1_005_001, 100), false),
            (rate(1_000_000, 39), false),
            (rate(1_000_000, 105), true),
            (rate(1_000_000, 106), false),
            (None, false),
        ] {
            assert_eq!(trusted(rate, 100, &RateBounds::default()).is_some(), quoted, "{rate:?}");
        }
    }
}
