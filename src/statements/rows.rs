//! The SQL of statements: sums of ledger postings, and hashes of deposits and refunds.

use crate::kernel::id::kind;
use crate::kernel::{Currency, Id, Scope, StoreError};
use crate::store::{Row, Tx};
use crate::values;

/// The units that a posting brings into the compartments from outside them. A posting goes from
/// `credit_account` to `debit_account`; one between two compartments counts as zero.
const IN: &str = "CASE WHEN debit_account IN ('available', 'processing', 'payout_processing', \
 'hold') \
    AND credit_account NOT IN ('available', 'processing', 'payout_processing', 'hold') THEN units \
    ELSE 0 END";
/// The units that a posting takes out of the compartments.
const OUT: &str = "CASE WHEN credit_account IN ('available', 'processing', 'payout_processing', \
 'hold') \
    AND debit_account NOT IN ('available', 'processing', 'payout_processing', 'hold') THEN units \
    ELSE 0 END";

/// The sum of the compartments at a moment, in one currency.
pub struct CompartmentSum {
    pub currency: Currency,
    pub units: i64,
}

/// The sums of the compartments before a moment of business time, in Unix seconds.
pub fn compartment_sums(
    tx: &mut dyn Tx,
    scope: Scope,
    before: i64,
) -> Result<Vec<CompartmentSum>, StoreError> {
    let sql = format!(
        "SELECT currency, CAST(SUM({IN}) - SUM({OUT}) AS BIGINT) FROM ledger_postings WHERE scope \
         = ?1 AND posted_at < ?2 \
         GROUP BY currency ORDER BY currency"
    );
    let read = |mut row: Row| {
        Ok(CompartmentSum { currency: row.word(Currency::parse)?, units: row.int()? })
    };
    tx.rows(&sql, values![scope, before])?.into_iter().map(read).collect()
}

/// What one transfer moved in one currency.
pub struct TransferTotals {
    pub transfer_id: Id<kind::Transfer>,
    pub currency: Currency,
    pub in_units: i64,
    pub out_units: i64,
}

/// What each transfer moved in each currency in a period of business time, in Unix seconds: `from`
/// is included, `before` is not. In the order of the transfers' identifiers, at most `rows_max`
/// rows.
pub fn moved(
    tx: &mut dyn Tx,
    scope: Scope,
    from: i64,
    before: i64,
    rows_max: i64,
) -> Result<Vec<TransferTotals>, StoreError> {
    let sql = format!(
        "SELECT transfer_id, currency, CAST(SUM({IN}) AS BIGINT), CAST(SUM({OUT}) AS BIGINT) FROM \
         ledger_postings \
         WHERE scope = ?1 AND posted_at >= ?2 AND posted_at < ?3 GROUP BY transfer_id, currency \
         ORDER BY transfer_id, currency LIMIT ?4"
    );
    let read = |mut row: Row| {
        Ok(TransferTotals {
            transfer_id: row.id()?,
            currency: row.word(Currency::parse)?,
            in_units: row.int()?,
            out_units: row.int()?,
        })
    };
    tx.rows(&sql, values![scope, from, before, rows_max])?.into_iter().map(read).collect()
}

/// The completed deposits of a transfer, or its completed refunds.
pub struct Completed {
    /// The hashes of the first [`HASHES_MAX`] of them.
    pub hashes: Vec<String>,
    /// How many there are, including those whose hashes are not listed.
    pub count: i64,
    /// Their sum in millionths of a token.
    pub units: i64,
}

/// The most hashes of deposits that a statement lists for one transfer, and the most of refunds.
const HASHES_MAX: usize = 100;

/// A transfer's completed deposits, in chain order.
pub fn completed_deposits(
    tx: &mut dyn Tx,
    scope: Scope,
    transfer_id: Id<kind::Transfer>,
) -> Result<Completed, StoreError> {
    completed(tx, scope, transfer_id, "deposits", "block_number, log_index")
}

/// A transfer's completed refunds, oldest first.
pub fn completed_refunds(
    tx: &mut dyn Tx,
    scope: Scope,
    transfer_id: Id<kind::Transfer>,
) -> Result<Completed, StoreError> {
    completed(tx, scope, transfer_id, "refunds", "id")
}

fn completed(
    tx: &mut dyn Tx,
    scope: Scope,
    transfer_id: Id<kind::Transfer>,
    table: &str,
    order: &str,
) -> Result<Completed, StoreError> {
    let of_transfer =
        format!("FROM {table} WHERE scope = ?1 AND transfer_id = ?2 AND status = 'completed'");
    let sql =
        format!("SELECT units, transaction_hash {of_transfer} ORDER BY {order} LIMIT {HASHES_MAX}");
    let rows = tx.rows(&sql, values![scope, transfer_id])?;
    let mut found = Completed { hashes: Vec::new(), count: rows.len() as i64, units: 0 };
    let may_have_more = rows.len() >= HASHES_MAX;
    for mut row in rows {
        found.units = found
            .units
            .checked_add(row.int()?)
            .ok_or_else(|| StoreError::Broken("a statement's sum overflows".into()))?;
        found.hashes.extend(row.text_or_null()?);
    }
    if may_have_more {
        let sql = format!("SELECT COUNT(*), CAST(SUM(units) AS BIGINT) {of_transfer}");
        if let Some(mut row) = tx.row(&sql, values![scope, transfer_id])? {
            (found.count, found.units) = (row.int()?, row.int()?);
        }
    }
    Ok(found)
}
