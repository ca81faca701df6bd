//! The queries of a comparison with the bank: payouts that differ from its statements, and the
//! pages and sums of the statements. Also the sums of deposits and refunds, with the ledger's
//! figures.

use crate::kernel::id::kind;
use crate::kernel::{Id, Mode, Scope, StoreError};
use crate::rails::files::rows::Attention;
use crate::rails::files::values::Day;
use crate::store::{Row, Tx};
use crate::values;

/// One payout that differs.
pub struct Differing {
    pub payout_id: Id<kind::Payout>,
    /// The payout's amount in paise; from [`paid_twice`], what the bank paid less what came back.
    pub units: i64,
}

fn differing(rows: Vec<Row>) -> Result<Vec<Differing>, StoreError> {
    rows.into_iter()
        .map(|mut row| Ok(Differing { payout_id: row.id()?, units: row.int()? }))
        .collect()
}

/// The last day that a statement closes, among the files that were applied to the end.
pub fn closed_until(tx: &mut dyn Tx) -> Result<Option<Day>, StoreError> {
    let sql = "SELECT MAX(s.closing_day) FROM bank_statements s JOIN bank_files f ON f.sha256 = \
               s.sha256 AND f.status = 'applied'";
    let row = tx.row(sql, &[])?;
    Ok(row.map(|mut row| row.text_or_null()).transpose()?.flatten().as_deref().and_then(Day::parse))
}

/// The mode that the bank pays for: the mode of the newest payout that it was given, or live mode
/// if it was given none. A bank's test system pays for test mode.
pub fn bank_mode(tx: &mut dyn Tx) -> Result<Mode, StoreError> {
    let sql = "SELECT scope FROM bank_instructions ORDER BY payout_id DESC LIMIT 1";
    let row = tx.row(sql, &[])?;
    row.map_or(Ok(Mode::Live), |mut row| Ok(row.scope()?.mode()))
}

/// SQL for the shares of payouts in debits that paid several of them. An earlier version stored
/// shares of credits too. They do not count, because a credit pays nobody.
const SHARES: &str = "bank_line_shares s JOIN bank_statement_lines d ON d.id = s.line_id AND \
                      d.sign = 'debit'";

/// SQL for how often statements show a payout as paid, less how often they show it as sent back. So
/// a debit, its reversal and a second debit give 1.
fn net_paid() -> String {
    format!(
        "((SELECT COALESCE(SUM(CASE WHEN l.sign = 'debit' THEN 1 ELSE -1 END), 0) FROM \
         bank_statement_lines l WHERE l.payout_id = p.id AND l.matching = 'payout') + (SELECT \
         COUNT(*) FROM {SHARES} WHERE s.payout_id = p.id))"
    )
}

/// SQL for whether any statement has a line of a payout. `and` is a further condition on a line
/// that belongs to this payout alone. [`SHARES`] are of debits only, so [`IS_DEBIT`] holds for
/// them.
fn has_line(and: &str) -> String {
    format!(
        "(EXISTS (SELECT 1 FROM bank_statement_lines l WHERE l.payout_id = p.id AND l.matching = \
         'payout'{and}) OR EXISTS (SELECT 1 FROM {SHARES} WHERE s.payout_id = p.id))"
    )
}
const IS_DEBIT: &str = " AND l.sign = 'debit'";
const OF_INSTRUCTIONS: &str =
    "FROM bank_instructions i JOIN payouts p ON p.scope = i.scope AND p.id = i.payout_id";

/// A page of a query: up to `rows_max` payouts with identifiers above `after`, in their order.
#[derive(Clone, Copy, Debug)]
pub struct PayoutPage {
    pub after: Id<kind::Payout>,
    pub rows_max: i64,
}

/// Payouts that settled here before `until` (Unix seconds) and that no statement shows as paid.
/// Includes payouts that came back since.
pub fn settled_without_line(
    tx: &mut dyn Tx,
    page: PayoutPage,
    until: i64,
) -> Result<Vec<Differing>, StoreError> {
    let sql = format!(
        "SELECT p.id, p.units {OF_INSTRUCTIONS} WHERE i.payout_id > ?1 AND p.status IN \
         ('settled', 'returned') AND p.settled_at < ?3 AND NOT {} ORDER BY p.id LIMIT ?2",
        has_line(IS_DEBIT)
    );
    differing(tx.rows(&sql, values![page.after, page.rows_max, until])?)
}

/// Payouts that statements show as paid more often than as sent back, but that are neither settled
/// nor returned here.
pub fn line_without_settlement(
    tx: &mut dyn Tx,
    page: PayoutPage,
) -> Result<Vec<Differing>, StoreError> {
    let sql = format!(
        "SELECT p.id, p.units {OF_INSTRUCTIONS} WHERE i.payout_id > ?1 AND p.status NOT IN \
         ('settled', 'returned') AND {} AND {} > 0 ORDER BY p.id LIMIT ?2",
        has_line(""),
        net_paid()
    );
    differing(tx.rows(&sql, values![page.after, page.rows_max])?)
}

/// Payouts that statements show as paid more than once, after each return is subtracted from the
/// payments. The amount is what the bank paid less what came back.
pub fn paid_twice(tx: &mut dyn Tx, page: PayoutPage) -> Result<Vec<Differing>, StoreError> {
    let (has_line, net_paid) = (has_line(""), net_paid());
    let sql = format!(
        "SELECT p.id, p.units * {net_paid} {OF_INSTRUCTIONS} WHERE i.payout_id > ?1 AND {has_line} \
         AND {net_paid} > 1 ORDER BY p.id LIMIT ?2"
    );
    differing(tx.rows(&sql, values![page.after, page.rows_max])?)
}

/// Payouts that are settled here, but that statements show as sent back at least as often as paid.
pub fn returned_at_bank(tx: &mut dyn Tx, page: PayoutPage) -> Result<Vec<Differing>, StoreError> {
    let sql = format!(
        "SELECT p.id, p.units {OF_INSTRUCTIONS} WHERE i.payout_id > ?1 AND p.status = 'settled' \
         AND {} AND {} < 1 ORDER BY p.id LIMIT ?2",
        has_line(""),
        net_paid()
    );
    differing(tx.rows(&sql, values![page.after, page.rows_max])?)
}

/// Payouts that were returned here before `until` (Unix seconds) and that no statement shows as
/// sent back.
pub fn returned_without_line(
    tx: &mut dyn Tx,
    page: PayoutPage,
    until: i64,
) -> Result<Vec<Differing>, StoreError> {
    let sql = format!(
        "SELECT p.id, p.units {OF_INSTRUCTIONS} JOIN ledger_postings g ON g.scope = p.scope AND \
         g.transfer_id = p.transfer_id AND g.entry = 'payout_returned' AND g.credit_account = \
         'paid_out' WHERE i.payout_id > ?1 AND p.status = 'returned' AND g.posted_at < ?3 AND NOT \
         EXISTS (SELECT 1 FROM bank_statement_lines l WHERE l.payout_id = p.id AND l.sign = \
         'credit' AND l.matching = 'payout') ORDER BY p.id LIMIT ?2"
    );
    differing(tx.rows(&sql, values![page.after, page.rows_max, until])?)
}

/// Payouts that were given to the bank and whose outcome is unknown. Those with an [`Attention`]
/// (why a payout waits for the operator) are left out, because [`awaiting_operator`] finds them.
pub fn outcome_unknown(tx: &mut dyn Tx, page: PayoutPage) -> Result<Vec<Differing>, StoreError> {
    let sql = format!(
        "SELECT p.id, p.units {OF_INSTRUCTIONS} WHERE i.payout_id > ?1 AND p.status = \
         'processing' AND p.failure_code = 'outcome_unknown' AND i.attention IS NULL ORDER BY p.id \
         LIMIT ?2"
    );
    differing(tx.rows(&sql, values![page.after, page.rows_max])?)
}

/// A payout that waits for the operator, who decides about it or explains it.
pub struct AwaitingOperator {
    pub payout_id: Id<kind::Payout>,
    pub units: i64,
    /// The payout is processing, and its outcome is unknown. The attention may say more.
    pub is_outcome_unknown: bool,
    pub attention: Attention,
    pub reason_code: Option<String>,
    pub reason_text: Option<String>,
}

/// Payouts that wait for the operator because of what the bank reported. The [`Attention`]
/// `returned_and_failed` is left out, because it asks nothing of the operator. So is the attention
/// `paid_twice`: the function [`paid_twice`] finds such payouts by the statements' lines.
pub fn awaiting_operator(
    tx: &mut dyn Tx,
    page: PayoutPage,
) -> Result<Vec<AwaitingOperator>, StoreError> {
    let sql = format!(
        "SELECT p.id, p.units, p.status = 'processing' AND COALESCE(p.failure_code, '') = \
         'outcome_unknown', i.attention, i.reason_code, i.reason_text {OF_INSTRUCTIONS} WHERE \
         i.payout_id > ?1 AND i.attention IS NOT NULL AND i.attention NOT IN \
         ('returned_and_failed', 'paid_twice') ORDER BY p.id LIMIT ?2"
    );
    let read = |mut row: Row| {
        Ok(AwaitingOperator {
            payout_id: row.id()?,
            units: row.int()?,
            is_outcome_unknown: row.bool()?,
            attention: row.word(Attention::parse)?,
            reason_code: row.text_or_null()?,
            reason_text: row.text_or_null()?,
        })
    };
    tx.rows(&sql, values![page.after, page.rows_max])?.into_iter().map(read).collect()
}

/// The header of a statement's page, with the sum of the page's lines.
#[derive(Clone, Debug)]
pub struct StatementPage {
    pub statement_id: String,
    /// The bank's number of the statement; later statements have higher numbers.
    pub sequence: Option<i64>,
    /// From 1; 1 also if the statement has only one page.
    pub page: i64,
    pub opening_units: Option<i64>,
    pub opening_day: Option<String>,
    pub closing_units: Option<i64>,
    pub closing_day: Option<String>,
    /// Credits less debits of the page's lines, in paise.
    pub moved_units: i64,
    /// When its file arrived, in Unix seconds.
    pub received_at: i64,
}

/// All pages of the `statement_ids_max` statement IDs with the newest days, in the order of
/// arrival.
pub fn statement_pages(
    tx: &mut dyn Tx,
    statement_ids_max: i64,
) -> Result<Vec<StatementPage>, StoreError> {
    let sql = "SELECT s.statement_id, s.sequence, COALESCE(s.page, 1), s.opening_units, \
               s.opening_day, s.closing_units, s.closing_day, (SELECT CAST(COALESCE(SUM(CASE WHEN \
               l.sign = 'credit' THEN l.units ELSE -l.units END), 0) AS BIGINT) FROM \
               bank_statement_lines l WHERE l.sha256 = s.sha256 AND l.statement_number = \
               s.number), f.received_at FROM bank_statements s JOIN bank_files f ON f.sha256 = \
               s.sha256 AND f.status = 'applied' WHERE s.statement_id IN (SELECT n.statement_id \
               FROM bank_statements n GROUP BY n.statement_id ORDER BY \
               MAX(COALESCE(n.closing_day, n.opening_day, '')) DESC, n.statement_id DESC LIMIT \
               ?1) ORDER BY f.received_at, s.sha256, s.number";
    let read = |mut row: Row| {
        Ok(StatementPage {
            statement_id: row.text()?,
            sequence: row.int_or_null()?,
            page: row.int()?,
            opening_units: row.int_or_null()?,
            opening_day: row.text_or_null()?,
            closing_units: row.int_or_null()?,
            closing_day: row.text_or_null()?,
            moved_units: row.int()?,
            received_at: row.int()?,
        })
    };
    tx.rows(sql, values![statement_ids_max])?.into_iter().map(read).collect()
}

/// How many statement lines are stored; and by the lines that belong to payouts, how much the bank
/// paid and how much it sent back, both in paise.
pub fn line_sums(tx: &mut dyn Tx) -> Result<(i64, i64, i64), StoreError> {
    let sql = format!(
        "SELECT COUNT(*), CAST(COALESCE(SUM(CASE WHEN l.matching = 'payout' AND l.sign = 'debit' \
         THEN l.units ELSE 0 END), 0) + (SELECT COALESCE(SUM(s.units), 0) FROM {SHARES}) AS \
         BIGINT), CAST(COALESCE(SUM(CASE WHEN l.matching = 'payout' AND l.sign = 'credit' THEN \
         l.units ELSE 0 END), 0) AS BIGINT) FROM bank_statement_lines l"
    );
    tx.row(&sql, &[])?.map_or(Ok((0, 0, 0)), |mut row| Ok((row.int()?, row.int()?, row.int()?)))
}

/// The deposits and refunds of one account and mode, and what the ledger has of them, in millionths
/// of a USDT.
pub struct CustodySum {
    pub scope: Scope,
    /// Deposits that are final.
    pub deposited_units: i64,
    /// What the ledger has credited to `custody`, which stands for the outside: money that came in.
    pub credited_units: i64,
    /// Refunds that are completed.
    pub refunded_units: i64,
    /// What the ledger has debited to `custody`: money that went out.
    pub debited_units: i64,
}

/// The sums of each account and mode that has completed deposits, completed refunds or a ledger
/// balance of `custody`, all in USDT.
pub fn custody_sums(tx: &mut dyn Tx) -> Result<Vec<CustodySum>, StoreError> {
    let sql = "SELECT scope, CAST(SUM(deposited) AS BIGINT), CAST(SUM(credited) AS BIGINT), \
               CAST(SUM(refunded) AS BIGINT), CAST(SUM(debited) AS BIGINT) FROM (SELECT scope, \
               units AS deposited, 0 AS credited, 0 AS refunded, 0 AS debited FROM deposits WHERE \
               status = 'completed' AND asset = 'USDT' UNION ALL SELECT scope, 0, 0, units, 0 FROM \
               refunds WHERE status = 'completed' AND asset = 'USDT' UNION ALL SELECT scope, 0, \
               credit_units, 0, debit_units FROM ledger_balances WHERE account = 'custody' AND \
               currency = 'USDT') moved GROUP BY scope ORDER BY scope";
    let read = |mut row: Row| {
        Ok(CustodySum {
            scope: row.scope()?,
            deposited_units: row.int()?,
            credited_units: row.int()?,
            refunded_units: row.int()?,
            debited_units: row.int()?,
        })
    };
    tx.rows(sql, &[])?.into_iter().map(read).collect()
}
