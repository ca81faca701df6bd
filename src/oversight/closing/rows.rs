//! The sums that a closing is made of.

use crate::kernel::{Currency, Mode, StoreError};
use crate::ledger::LedgerAccount;
use crate::rails::files::values::Day;
use crate::reconcile;
use crate::store::{Row, Tx};
use crate::values;

/// One ledger account in one currency: what it held before a day, and what moved on that day, in
/// units of the currency.
pub struct TrialBalanceLine {
    pub account: LedgerAccount,
    pub currency: Currency,
    /// Debits less credits before the day.
    pub opening_units: i64,
    pub debit_units: i64,
    pub credit_units: i64,
}

/// What moved on each ledger account at or after `from` and before `before` (Unix seconds), and its
/// balance before `from`, over all callers' accounts of a mode. It reads all postings of the mode
/// before `before`.
pub fn moved(
    tx: &mut dyn Tx,
    mode: Mode,
    from: i64,
    before: i64,
) -> Result<Vec<TrialBalanceLine>, StoreError> {
    let sql = "SELECT account, currency, CAST(SUM(CASE WHEN posted_at < ?2 THEN debit - credit \
               ELSE 0 END) AS BIGINT), CAST(SUM(CASE WHEN posted_at >= ?2 THEN debit ELSE 0 END) \
               AS BIGINT), CAST(SUM(CASE WHEN posted_at >= ?2 THEN credit ELSE 0 END) AS BIGINT) \
               FROM (SELECT debit_account AS account, currency, posted_at, units AS debit, 0 AS \
               credit FROM ledger_postings WHERE scope % 2 = ?1 AND posted_at < ?3 UNION ALL \
               SELECT credit_account, currency, posted_at, 0, units FROM ledger_postings WHERE \
               scope % 2 = ?1 AND posted_at < ?3) moved GROUP BY account, currency ORDER BY \
               account, currency";
    let read = |mut row: Row| {
        Ok(TrialBalanceLine {
            account: row.word(LedgerAccount::parse)?,
            currency: row.word(Currency::parse)?,
            opening_units: row.int()?,
            debit_units: row.int()?,
            credit_units: row.int()?,
        })
    };
    let live = i64::from(mode.is_live());
    tx.rows(sql, values![live, from, before])?.into_iter().map(read).collect()
}

/// The deposits and refunds that the chain's final view completed in a day, as the store has them,
/// in millionths of a USDT.
pub struct ChainSums {
    pub deposited_units: i64,
    pub refunded_units: i64,
}

/// The sums of deposits and refunds that were completed at or after `from` and before `before`
/// (Unix seconds).
pub fn chain(tx: &mut dyn Tx, mode: Mode, from: i64, before: i64) -> Result<ChainSums, StoreError> {
    let live = i64::from(mode.is_live());
    let mut sum =
        |sql: &str| tx.row(sql, values![live, from, before])?.map_or(Ok(0), |mut row| row.int());
    Ok(ChainSums {
        deposited_units: sum(
            "SELECT CAST(COALESCE(SUM(units), 0) AS BIGINT) FROM deposits WHERE scope % 2 = ?1 \
             AND status = 'completed' AND asset = 'USDT' AND completed_at >= ?2 AND completed_at \
             < ?3",
        )?,
        refunded_units: sum(
            "SELECT CAST(COALESCE(SUM(units), 0) AS BIGINT) FROM refunds WHERE scope % 2 = ?1 AND \
             status = 'completed' AND asset = 'USDT' AND completed_at >= ?2 AND completed_at < ?3",
        )?,
    })
}

/// The sums of the statement lines of a day that belong to payouts, in paise.
#[derive(Clone, Copy)]
pub struct BankSums {
    pub debit_units: i64,
    pub credit_units: i64,
}

/// The bank's sums of one day. `None` if the mode has no bank that sends statements, or if no
/// statement closes that day or a later one.
pub fn bank(tx: &mut dyn Tx, mode: Mode, day: Day) -> Result<Option<BankSums>, StoreError> {
    let is_closed = reconcile::rows::closed_until(tx)?.is_some_and(|closed| closed >= day);
    if !is_closed || reconcile::rows::bank_mode(tx)? != mode {
        return Ok(None);
    }
    // A debit that paid several payouts counts with the share of each.
    let sql = "SELECT CAST(COALESCE(SUM(CASE WHEN l.sign = 'debit' THEN l.units ELSE 0 END), 0) + \
               (SELECT COALESCE(SUM(s.units), 0) FROM bank_line_shares s JOIN \
               bank_statement_lines d ON d.id = s.line_id AND d.sign = 'debit' AND d.booking_day \
               = ?1 WHERE s.scope % 2 = ?2) AS BIGINT), CAST(COALESCE(SUM(CASE WHEN l.sign = \
               'credit' THEN l.units ELSE 0 END), 0) AS BIGINT) FROM bank_statement_lines l WHERE \
               l.matching = 'payout' AND l.booking_day = ?1 AND l.scope % 2 = ?2";
    let row = tx.row(sql, values![&day.to_string(), i64::from(mode.is_live())])?;
    row.map(|mut row| Ok(BankSums { debit_units: row.int()?, credit_units: row.int()? }))
        .transpose()
}
