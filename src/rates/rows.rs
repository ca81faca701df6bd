//! The row of a market: its last good rate, and the day's anchor. Rates are in millionths.

use super::MarketRate;
use super::guard::RateAnchor;
use crate::kernel::{Rate, StoreError};
use crate::store::{Tx, meta};
use crate::values;

/// The name of live mode's market, which the column `source` holds. Test mode's rate is fixed and
/// not stored.
pub const LIVE_MARKET: &str = "http";

/// The name under which `meta` notes that a later poll contradicted a market's last good rate: the
/// sources disagreed, for example, or they showed a jump.
fn contradiction_name(market: &str) -> String {
    format!("rate_contradicted:{market}")
}

/// Notes that a poll contradicted the last good rate, so that a restart does not quote the rate.
pub fn note_contradiction(tx: &mut dyn Tx, market: &str) -> Result<(), StoreError> {
    meta::write(tx, &contradiction_name(market), b"1")
}

/// Whether a later poll contradicted the last good rate.
pub fn is_contradicted(tx: &mut dyn Tx, market: &str) -> Result<bool, StoreError> {
    Ok(meta::read(tx, &contradiction_name(market))?.is_some())
}

/// The last good rate, and the day's anchor.
pub fn find(tx: &mut dyn Tx, market: &str) -> Result<Option<(MarketRate, RateAnchor)>, StoreError> {
    let row = tx.row(
        "SELECT inr_per_usd, usd_per_usdt, observed_at, anchor, anchor_day FROM \
         market_rates WHERE source = ?1",
        values![market],
    )?;
    row.map(|mut row| {
        let rate = MarketRate {
            mid: Rate(row.int()?),
            usdt_usd: Rate(row.int()?),
            observed_at: row.int()?,
        };
        Ok((rate, RateAnchor { rate: Rate(row.int()?), day: row.int()? }))
    })
    .transpose()
}

/// Stores a good rate and the day's anchor, and removes the note of a contradiction.
pub fn save(
    tx: &mut dyn Tx,
    market: &str,
    rate: &MarketRate,
    anchor: &RateAnchor,
) -> Result<(), StoreError> {
    meta::remove(tx, &contradiction_name(market))?;
    tx.execute_one(
        "INSERT INTO market_rates (source, inr_per_usd, usd_per_usdt, observed_at, anchor, \
         anchor_day) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
         ON CONFLICT (source) DO UPDATE SET inr_per_usd = excluded.inr_per_usd, usd_per_usdt = \
         excluded.usd_per_usdt, \
         observed_at = excluded.observed_at, anchor = excluded.anchor, anchor_day = \
         excluded.anchor_day",
        values![market, rate.mid, rate.usdt_usd, rate.observed_at, anchor.rate, anchor.day],
    )
}
