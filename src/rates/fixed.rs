//! A rate that the operator sets; test mode's market.

use super::{MarketRate, RateSource, RateSourceKind};
use crate::kernel::Rate;

pub struct FixedRate {
    pub mid: Rate,
    pub usdt_usd: Rate,
}

impl RateSource for FixedRate {
    fn kind(&self) -> RateSourceKind {
        RateSourceKind::Fixed
    }
    fn current(&self, instant: i64) -> Option<MarketRate> {
        Some(MarketRate { mid: self.mid, usdt_usd: self.usdt_usd, observed_at: instant })
    }
}
