//! The rows of quote locks.

use std::sync::LazyLock;

use super::QuoteLock;
use super::gst::Gst;
use crate::kernel::id::kind;
use crate::kernel::page::{FilterValue, Page};
use crate::kernel::{Currency, Id, Metadata, Money, Rate, Scope, StoreError};
use crate::store::list::{self, Listing};
use crate::store::{Row, Tx};
use crate::values;

const COLUMNS: &str = "scope, id, sell_currency, sell_units, buy_currency, buy_units, rate, \
 mid_market_rate, fee_units, \
    gst_taxable_units, gst_units, expires_at, transfer_id, metadata, created";

static FIND: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {COLUMNS} FROM quote_locks WHERE scope = ?1 AND id = ?2"));

pub fn read(mut row: Row) -> Result<QuoteLock, StoreError> {
    let row = &mut row;
    let (scope, id, sell, buy) = (row.scope()?, row.id()?, row.money()?, row.money()?);
    Ok(QuoteLock {
        scope,
        id,
        sell,
        buy,
        rate: Rate(row.int()?),
        mid_market_rate: Rate(row.int()?),
        fee: Money::new(row.int()?, sell.currency),
        gst: gst(row)?,
        expires_at: row.int()?,
        transfer_id: row.id_or_null()?,
        metadata: row.word(Metadata::from_text)?,
        created: row.int()?,
    })
}

/// Two columns: the taxable value and the tax, both or neither.
pub fn gst(row: &mut Row) -> Result<Option<Gst>, StoreError> {
    let inr = |units| Money::new(units, Currency::Inr);
    Ok(row
        .int_or_null()?
        .zip(row.int_or_null()?)
        .map(|(taxable, amount)| Gst { taxable: inr(taxable), amount: inr(amount) }))
}

pub fn insert(tx: &mut dyn Tx, l: &QuoteLock) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO quote_locks (scope, id, sell_currency, sell_units, buy_currency, buy_units, \
         rate, mid_market_rate, fee_units, \
         gst_taxable_units, gst_units, expires_at, transfer_id, metadata, created) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, NULL, ?13, ?14)",
        values![
            l.scope,
            l.id,
            l.sell.currency,
            l.sell.units,
            l.buy.currency,
            l.buy.units,
            l.rate,
            l.mid_market_rate,
            l.fee.units,
            l.gst.map(|gst| gst.taxable.units),
            l.gst.map(|gst| gst.amount.units),
            l.expires_at,
            &l.metadata.to_text(),
            l.created,
        ],
    )
}

/// Gives the lock to a transfer. The condition makes sharing impossible whatever the callers' keys
/// say: whoever comes second changes no row.
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

pub fn find(
    tx: &mut dyn Tx,
    scope: Scope,
    id: Id<kind::QuoteLock>,
) -> Result<Option<QuoteLock>, StoreError> {
    tx.row(&FIND, values![scope, id])?.map(read).transpose()
}

/// Says that [`find`] will be asked.
pub fn prefetch(tx: &mut dyn Tx, scope: Scope, id: Id<kind::QuoteLock>) -> Result<(), StoreError> {
    tx.prefetch(&FIND, values![scope, id])
}

/// A page; `status` is computed from the business time, so its filter becomes conditions on what is
/// stored.
pub fn list(
    tx: &mut dyn Tx,
    scope: Scope,
    page: &Page,
    business: i64,
) -> Result<(Vec<Row>, bool), StoreError> {
    let mut page = page.clone();
    page.filters = page
        .filters
        .into_iter()
        .map(|(condition, value)| match (condition, &value) {
            ("status = ?", FilterValue::Text(status)) => match status.as_str() {
                "used" => ("transfer_id IS NOT NULL AND created <= ?", FilterValue::Int(i64::MAX)),
                "expired" => {
                    ("transfer_id IS NULL AND expires_at <= ?", FilterValue::Int(business))
                }
                _ => ("transfer_id IS NULL AND expires_at > ?", FilterValue::Int(business)),
            },
            _ => (condition, value),
        })
        .collect();
    list::read(
        tx,
        &Listing { table: "quote_locks", columns: COLUMNS, key: ("scope", scope.into()) },
        &page,
    )
}
