//! Test mode's market: a rate from the settings, which stays the same while the service runs.

use super::{Market, MarketKind, MarketRate};
use crate::kernel::Rate;

pub struct FixedRate {
    pub mid: Rate,
    pub usdt_usd: Rate,
}

impl Market for FixedRate {
    fn kind(&self) -> MarketKind {
        MarketKind::Fixed
    }
    fn current(&self, instant: i64) -> Option<MarketRate> {
        Some(MarketRate { mid: self.mid, usdt_usd: self.usdt_usd, observed_at: instant })
    }
}
