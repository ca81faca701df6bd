//! The rows of quote locks.

use super::gst::Gst;
use super::{QuoteLock, QuoteLockStatus, RateInputs};
use crate::kernel::id::kind;
use crate::kernel::page::{FilterValue, Page};
use crate::kernel::{Currency, Id, Metadata, Money, Rate, Scope, StoreError};
use crate::rates::MarketKind;
use crate::store::list::{self, Listing};
use crate::store::{Row, Tx};
use crate::values;

crate::stored! {
    "quote_locks" as QuoteLock, written from lock, read from row;
    fixed {
        scope: lock.scope => row.scope()?;
        id: lock.id => row.id()?;
        sell_currency: lock.sell.currency => row.word(Currency::parse)?;
        sell_units: lock.sell.units => row.int()?;
        buy_currency: lock.buy.currency => row.word(Currency::parse)?;
        buy_units: lock.buy.units => row.int()?;
        rate: lock.rate => Rate(row.int()?);
        mid_market_rate: lock.mid_market_rate => Rate(row.int()?);
        fee_units: lock.fee.units => row.int()?;
        gst_taxable_units: lock.gst.map(|gst| gst.taxable.units) => row.int_or_null()?;
        gst_units: lock.gst.map(|gst| gst.amount.units) => row.int_or_null()?;
        expires_at: lock.expires_at => row.int()?;
        // `take` sets it later.
        transfer_id: lock.transfer_id => row.id_or_null()?;
        metadata: &lock.metadata.to_text() => row.word(Metadata::from_text)?;
        created: lock.created => row.int()?;
        rate_source: lock.rate_inputs.map(|inputs| inputs.source.as_str())
            => row.word_or_null(MarketKind::parse)?;
        usdt_usd: lock.rate_inputs.map(|inputs| inputs.usdt_usd.0) => row.int_or_null()?;
        rate_observed_at: lock.rate_inputs.map(|inputs| inputs.observed_at)
            => row.int_or_null()?;
    }
    into QuoteLock {
        scope,
        id,
        sell: Money::new(sell_units, sell_currency),
        buy: Money::new(buy_units, buy_currency),
        rate,
        mid_market_rate,
        rate_inputs: match (rate_source, usdt_usd, rate_observed_at) {
            (Some(source), Some(usdt_usd), Some(observed_at)) => {
                Some(RateInputs { source, usdt_usd: Rate(usdt_usd), observed_at })
            }
            _ => None,
        },
        fee: Money::new(fee_units, sell_currency),
        gst: Gst::of_units(gst_taxable_units, gst_units),
        expires_at,
        transfer_id,
        metadata,
        created,
    }
}

/// Gives the lock to a transfer. If two transactions try, the second changes no row. `execute_one`
/// makes that a conflict, so the second transaction runs again and finds the lock used.
pub fn take(
    tx: &mut dyn Tx,
    lock: &QuoteLock,
    transfer_id: Id<kind::Transfer>,
) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE quote_locks SET transfer_id = ?3 WHERE scope = ?1 AND id = ?2 AND transfer_id IS \
         NULL",
        values![lock.scope, lock.id, transfer_id],
    )
}

/// Prefetches the query of [`find`], so that on the shared store its result is there when `find`
/// runs.
pub fn prefetch(tx: &mut dyn Tx, scope: Scope, id: Id<kind::QuoteLock>) -> Result<(), StoreError> {
    tx.prefetch(&FIND, values![scope, id])
}

/// A page, and whether more rows follow. No status is stored, so the filter `status` becomes
/// conditions on the transfer and the business time.
pub fn list(
    tx: &mut dyn Tx,
    scope: Scope,
    page: &Page,
    business_time: i64,
) -> Result<(Vec<Row>, bool), StoreError> {
    let mut page = page.clone();
    let mut conditions = Vec::new();
    page.filters.retain(|(filter, value)| {
        let FilterValue::Text(status) = value else { return true };
        if *filter == "status" {
            conditions.push(match QuoteLockStatus::parse(status) {
                // `list::read_with` binds one number to each condition. This one needs none, so it
                // has `created <= ?`, which always holds.
                Some(QuoteLockStatus::Used) => {
                    ("transfer_id IS NOT NULL AND created <= ?", i64::MAX)
                }
                Some(QuoteLockStatus::Expired) => {
                    ("transfer_id IS NULL AND expires_at <= ?", business_time)
                }
                _ => ("transfer_id IS NULL AND expires_at > ?", business_time),
            });
        }
        *filter != "status"
    });
    let listing = Listing { table: "quote_locks", columns: COLUMNS, key: ("scope", scope.into()) };
    list::read_with(tx, &listing, &page, &conditions)
}
