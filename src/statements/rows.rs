//! Sums of the book over a period.

use crate::kernel::id::kind;
use crate::kernel::{Currency, Id, Scope, StoreError};
use crate::store::{Row, Tx};
use crate::values;

/// What arrives in a caller's compartments, and what leaves them; moves between compartments are
/// neither.
const IN: &str = "CASE WHEN debit_account IN ('available', 'processing', 'payout_processing', \
 'hold') \
    AND credit_account NOT IN ('available', 'processing', 'payout_processing', 'hold') THEN units \
    ELSE 0 END";
const OUT: &str = "CASE WHEN credit_account IN ('available', 'processing', 'payout_processing', \
 'hold') \
    AND debit_account NOT IN ('available', 'processing', 'payout_processing', 'hold') THEN units \
    ELSE 0 END";

/// What stood in the compartments at a moment, in one currency.
pub struct Standing {
    pub currency: Currency,
    pub units: i64,
}

/// What stood in the compartments before a moment of business time, in Unix seconds.
pub fn standing(tx: &mut dyn Tx, scope: Scope, before: i64) -> Result<Vec<Standing>, StoreError> {
    let sql = format!(
        "SELECT currency, CAST(SUM({IN}) - SUM({OUT}) AS BIGINT) FROM ledger_postings WHERE scope \
         = ?1 AND posted_at < ?2 \
         GROUP BY currency ORDER BY currency"
    );
    let read =
        |mut row: Row| Ok(Standing { currency: row.word(Currency::parse)?, units: row.int()? });
    tx.rows(&sql, values![scope, before])?.into_iter().map(read).collect()
}

/// What one transfer moved in one currency.
pub struct TransferTotals {
    pub transfer_id: Id<kind::Transfer>,
    pub currency: Currency,
    pub in_units: i64,
    pub out_units: i64,
}

/// What each transfer moved in each currency in a period of business time: `from` is included,
/// `before` is not. In the order of the transfers, at most `rows_max` rows.
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

/// The hashes of a transfer's final deposits, in chain order; at most 100.
pub fn deposit_hashes(
    tx: &mut dyn Tx,
    scope: Scope,
    transfer_id: Id<kind::Transfer>,
) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT transaction_hash FROM deposits WHERE scope = ?1 AND transfer_id = ?2 AND \
     status = 'completed' \
               ORDER BY block_number, log_index LIMIT 100";
    tx.rows(sql, values![scope, transfer_id])?.into_iter().map(|mut row| row.text()).collect()
}

/// What was refunded of a transfer, in millionths of a USDT, with the hashes: its first 100
/// completed refunds.
pub fn refunded(
    tx: &mut dyn Tx,
    scope: Scope,
    transfer_id: Id<kind::Transfer>,
) -> Result<(i64, Vec<String>), StoreError> {
    let sql = "SELECT units, transaction_hash FROM refunds WHERE scope = ?1 AND transfer_id = ?2 \
     AND status = 'completed' ORDER BY id LIMIT 100";
    let mut hashes = Vec::new();
    let mut sum = 0_i64;
    for mut row in tx.rows(sql, values![scope, transfer_id])? {
        sum = sum
            .checked_add(row.int()?)
            .ok_or_else(|| StoreError::Broken("refunds overflow".into()))?;
        hashes.extend(row.text_or_null()?);
    }
    Ok((sum, hashes))
}
