//! The rows that the operator's pages read besides whole objects.

mod endpoints;

use crate::kernel::id::kind;
use crate::kernel::state::Status;
use crate::kernel::{AnyId, Currency, Id, InternalId, Mode, Money, ObjectKind, Scope, StoreError};
use crate::ledger::LedgerAccount;
use crate::rails::files::reports::ReportKind;
use crate::refunds::state::RefundStatus;
use crate::store::{Row, Tx, Value};
use crate::values;

pub use endpoints::{
    EndpointLine, endpoints, endpoints_at_work, endpoints_count, endpoints_in_trouble,
    endpoints_of, waiting_deliveries,
};

/// The most scopes that one statement asks for.
const SCOPES_ASKED_MAX: usize = 500;

/// What `scope % 2` is in a mode.
const fn live(mode: Mode) -> i64 {
    mode.is_live() as i64
}

fn scoped_id<K: crate::kernel::IdKind>(mut row: Row) -> Result<(Scope, Id<K>), StoreError> {
    Ok((row.scope()?, row.id()?))
}

/// Rows of `select` in these scopes, up to `rows_max`. `select` has a `WHERE` with `?1` for
/// `value`; the condition on the scopes and the limit are added here.
fn in_scopes(
    tx: &mut dyn Tx,
    select: &str,
    value: Value<'_>,
    scopes: &[Scope],
    rows_max: usize,
) -> Result<Vec<Row>, StoreError> {
    let mut found = Vec::new();
    for some in scopes.chunks(SCOPES_ASKED_MAX) {
        let places: Vec<String> = (3..3 + some.len()).map(|place| format!("?{place}")).collect();
        let left = rows_max.saturating_sub(found.len());
        if left == 0 {
            break;
        }
        let sql = format!("{select} AND scope IN ({}) LIMIT ?2", places.join(", "));
        let mut values = vec![value, Value::Int(left as i64)];
        values.extend(some.iter().map(|scope| Value::from(*scope)));
        found.extend(tx.rows(&sql, &values)?);
    }
    Ok(found)
}

/// Payouts with this reference of the bank (UTR).
pub fn payouts_referenced(
    tx: &mut dyn Tx,
    reference: &str,
    scopes: &[Scope],
    rows_max: usize,
) -> Result<Vec<(Scope, Id<kind::Payout>)>, StoreError> {
    let sql = "SELECT scope, id FROM payouts WHERE unique_transaction_reference = ?1";
    in_scopes(tx, sql, reference.into(), scopes, rows_max)?.into_iter().map(scoped_id).collect()
}

/// Transfers with this reference of the caller.
pub fn transfers_referenced(
    tx: &mut dyn Tx,
    reference: &str,
    scopes: &[Scope],
    rows_max: usize,
) -> Result<Vec<(Scope, Id<kind::Transfer>)>, StoreError> {
    let sql = "SELECT scope, id FROM transfers WHERE reference = ?1";
    in_scopes(tx, sql, reference.into(), scopes, rows_max)?.into_iter().map(scoped_id).collect()
}

/// Deposits of a transaction on a chain.
pub fn deposits_of(
    tx: &mut dyn Tx,
    transaction_hash: &str,
    scopes: &[Scope],
    rows_max: usize,
) -> Result<Vec<(Scope, Id<kind::Deposit>)>, StoreError> {
    let sql = "SELECT scope, id FROM deposits WHERE transaction_hash = ?1";
    let rows = in_scopes(tx, sql, transaction_hash.into(), scopes, rows_max)?;
    rows.into_iter().map(scoped_id).collect()
}

/// Refunds that were confirmed in a transaction on a chain.
pub fn refunds_of(
    tx: &mut dyn Tx,
    chain: &str,
    transaction_hash: &str,
    rows_max: i64,
) -> Result<Vec<(Scope, Id<kind::Refund>)>, StoreError> {
    let sql = "SELECT scope, id FROM refunds WHERE chain = ?1 AND transaction_hash = ?2 AND \
               log_index IS NOT NULL ORDER BY log_index LIMIT ?3";
    tx.rows(sql, values![chain, transaction_hash, rows_max])?.into_iter().map(scoped_id).collect()
}

/// The names of senders or beneficiaries, in no particular order.
pub fn names(
    tx: &mut dyn Tx,
    kind: ObjectKind,
    scope: Scope,
    ids: &[AnyId],
) -> Result<Vec<(AnyId, String)>, StoreError> {
    let sql = match kind {
        ObjectKind::Sender => "SELECT id, name FROM senders WHERE scope = ?1 AND id",
        _ => "SELECT id, name FROM beneficiaries WHERE scope = ?1 AND id",
    };
    let ids: Vec<Value<'_>> = ids.iter().map(|id| Value::from(*id)).collect();
    let read = |mut row: Row| Ok((row.id_of_kind(kind)?, row.text()?));
    tx.rows_each(sql, scope.into(), &ids)?.into_iter().map(read).collect()
}

// Queues.

/// One row of what waits: whose it is, and which object.
pub type QueueRow<K> = (Scope, Id<K>);

/// Transfers in a hold, oldest first.
pub fn held_transfers(
    tx: &mut dyn Tx,
    mode: Mode,
    rows_max: i64,
) -> Result<Vec<QueueRow<kind::Transfer>>, StoreError> {
    let sql = "SELECT scope, id FROM transfers WHERE status = 'funding_hold' AND scope % 2 = ?1 \
               ORDER BY id LIMIT ?2";
    tx.rows(sql, values![live(mode), rows_max])?.into_iter().map(scoped_id).collect()
}

/// Unmatched deposits that were not refunded, oldest first.
pub fn unmatched_deposits(
    tx: &mut dyn Tx,
    mode: Mode,
    rows_max: i64,
) -> Result<Vec<QueueRow<kind::Deposit>>, StoreError> {
    // The flag keeps refunded deposits out of the index. A node of an earlier release does not set
    // it, so the refunds are looked up too.
    let sql = "SELECT d.scope, d.id FROM deposits d WHERE d.classification = 'unmatched' AND NOT \
               d.is_given_back AND d.scope % 2 = ?1 AND NOT EXISTS (SELECT 1 FROM refunds r WHERE \
               r.scope = d.scope AND r.deposit_id = d.id) ORDER BY d.id LIMIT ?2";
    tx.rows(sql, values![live(mode), rows_max])?.into_iter().map(scoped_id).collect()
}

/// Beneficiaries in verification, oldest first.
pub fn verifying(
    tx: &mut dyn Tx,
    mode: Mode,
    rows_max: i64,
) -> Result<Vec<QueueRow<kind::Beneficiary>>, StoreError> {
    let sql = "SELECT scope, id FROM beneficiaries WHERE status = 'verifying' AND scope % 2 = ?1 \
               ORDER BY id LIMIT ?2";
    tx.rows(sql, values![live(mode), rows_max])?.into_iter().map(scoped_id).collect()
}

/// Refunds of a chain in `status`, which is any but `completed`: scope by scope, oldest first in
/// each.
pub fn open_refunds(
    tx: &mut dyn Tx,
    mode: Mode,
    chain: &str,
    status: RefundStatus,
    rows_max: i64,
) -> Result<Vec<QueueRow<kind::Refund>>, StoreError> {
    let sql = "SELECT scope, id FROM refunds WHERE chain = ?1 AND status <> 'completed' AND \
               status = ?2 AND scope % 2 = ?3 ORDER BY scope, id LIMIT ?4";
    let values = values![chain, Status::as_str(status), live(mode), rows_max];
    tx.rows(sql, values)?.into_iter().map(scoped_id).collect()
}

/// Payouts on hold, or whose outcome nobody knows, oldest first.
pub fn stuck_payouts(
    tx: &mut dyn Tx,
    mode: Mode,
    rows_max: i64,
) -> Result<Vec<QueueRow<kind::Payout>>, StoreError> {
    // Repeats the condition of the partial index word for word, as `open_payouts_between` does.
    let sql = "SELECT scope, id FROM payouts WHERE (status IN ('initialized', 'processing') OR \
               status = 'hold') AND (status = 'hold' OR failure_code = 'outcome_unknown') AND \
               scope % 2 = ?1 ORDER BY created, id LIMIT ?2";
    tx.rows(sql, values![live(mode), rows_max])?.into_iter().map(scoped_id).collect()
}

/// Open payouts that were created at or after `from` and before `before` (business time, Unix
/// seconds): how many, and their paise; counted up to `rows_max`.
pub fn open_payouts_between(
    tx: &mut dyn Tx,
    mode: Mode,
    from: i64,
    before: i64,
    rows_max: i64,
) -> Result<(i64, i64), StoreError> {
    // The condition on the status repeats that of the partial index word for word. Otherwise SQLite
    // does not use the index.
    let sql = "SELECT COUNT(*), CAST(COALESCE(SUM(units), 0) AS BIGINT) FROM (SELECT units FROM \
               payouts WHERE (status IN ('initialized', 'processing') OR status = 'hold') AND \
               created >= ?1 AND created < ?2 AND scope % 2 = ?3 LIMIT ?4) counted";
    tx.row(sql, values![from, before, live(mode), rows_max])?
        .map_or(Ok((0, 0)), |mut row| Ok((row.int()?, row.int()?)))
}

/// Like [`open_payouts_between`], for test mode with advanced test clocks: compares `from` and
/// `before` with the creation time less the account's test clock. No index has those times, so it
/// reads all open payouts.
pub fn open_payouts_aged(
    tx: &mut dyn Tx,
    mode: Mode,
    from: i64,
    before: i64,
    rows_max: i64,
) -> Result<(i64, i64), StoreError> {
    let sql = "SELECT COUNT(*), CAST(COALESCE(SUM(units), 0) AS BIGINT) FROM (SELECT p.units FROM \
               payouts p JOIN accounts a ON a.number = p.scope / 2 WHERE (p.status IN \
               ('initialized', 'processing') OR p.status = 'hold') AND p.created - \
               a.clock_offset_seconds >= ?1 AND p.created - a.clock_offset_seconds < ?2 AND \
               p.scope % 2 = ?3 LIMIT ?4) counted";
    tx.row(sql, values![from, before, live(mode), rows_max])?
        .map_or(Ok((0, 0)), |mut row| Ok((row.int()?, row.int()?)))
}

// The overview.

/// The balance of each ledger account in each currency, debits less credits, over all callers'
/// accounts of a mode.
pub fn ledger_balances(
    tx: &mut dyn Tx,
    mode: Mode,
) -> Result<Vec<(LedgerAccount, Money)>, StoreError> {
    let sql = "SELECT account, currency, CAST(SUM(debit_units - credit_units) AS BIGINT) FROM \
               ledger_balances WHERE scope % 2 = ?1 GROUP BY account, currency ORDER BY account, \
               currency";
    let read = |mut row: Row| {
        let account = row.word(LedgerAccount::parse)?;
        let currency = row.word(Currency::parse)?;
        Ok((account, Money::new(row.int()?, currency)))
    };
    tx.rows(sql, values![live(mode)])?.into_iter().map(read).collect()
}

/// Deposits that were seen and are not final: how many, and their sum in millionths of a USDT.
pub fn pending(tx: &mut dyn Tx, mode: Mode) -> Result<(i64, i64), StoreError> {
    let sql = "SELECT COUNT(*), CAST(COALESCE(SUM(units), 0) AS BIGINT) FROM deposits WHERE \
               status IN ('initialized', 'processing') AND asset = 'USDT' AND scope % 2 = ?1";
    tx.row(sql, values![live(mode)])?.map_or(Ok((0, 0)), |mut row| Ok((row.int()?, row.int()?)))
}

/// A file for the bank.
#[derive(Clone, Debug)]
pub struct FileOut {
    pub id: InternalId,
    pub status: String,
    pub instructions_count: i64,
    /// Paise.
    pub units: i64,
    /// Unix seconds of the store's clock.
    pub created: i64,
    /// When it was put into the folder for the bank; `None` if it was not, or if that is unknown.
    pub published_at: Option<i64>,
}

const FILE_OUT: &str = "SELECT id, status, instructions_count, units, created, published_at FROM \
                        bank_messages";

fn file_out(mut row: Row) -> Result<FileOut, StoreError> {
    Ok(FileOut {
        id: row.id()?,
        status: row.text()?,
        instructions_count: row.int()?,
        units: row.int()?,
        created: row.int()?,
        published_at: row.int_or_null()?,
    })
}

/// Files for the bank, newest first.
pub fn files_out(tx: &mut dyn Tx, rows_max: i64) -> Result<Vec<FileOut>, StoreError> {
    let sql = format!("{FILE_OUT} ORDER BY id DESC LIMIT ?1");
    tx.rows(&sql, values![rows_max])?.into_iter().map(file_out).collect()
}

pub fn find_file_out(tx: &mut dyn Tx, id: InternalId) -> Result<Option<FileOut>, StoreError> {
    tx.row(&format!("{FILE_OUT} WHERE id = ?1"), values![id])?.map(file_out).transpose()
}

/// A file from the bank.
#[derive(Clone, Debug)]
pub struct FileIn {
    pub kind: ReportKind,
    pub message_id: String,
    pub status: String,
    pub applied_count: i64,
    pub ignored_count: i64,
    pub unknown_count: i64,
    /// Unix seconds of the store's clock.
    pub received_at: i64,
}

const FILE_IN: &str = "SELECT kind, message_id, status, applied_count, ignored_count, \
                       unknown_count, received_at FROM bank_files";

fn file_in(mut row: Row) -> Result<FileIn, StoreError> {
    Ok(FileIn {
        kind: row.word(ReportKind::parse)?,
        message_id: row.text()?,
        status: row.text()?,
        applied_count: row.int()?,
        ignored_count: row.int()?,
        unknown_count: row.int()?,
        received_at: row.int()?,
    })
}

/// Files from the bank, newest first.
pub fn files_in(tx: &mut dyn Tx, rows_max: i64) -> Result<Vec<FileIn>, StoreError> {
    let sql = format!("{FILE_IN} ORDER BY received_at DESC LIMIT ?1");
    tx.rows(&sql, values![rows_max])?.into_iter().map(file_in).collect()
}

/// The file that brought the bank's reason for what became of a payout.
pub fn file_of_reason(
    tx: &mut dyn Tx,
    payout_id: Id<kind::Payout>,
) -> Result<Option<FileIn>, StoreError> {
    let sql = format!(
        "{FILE_IN} WHERE sha256 = (SELECT reason_sha256 FROM bank_instructions WHERE payout_id = \
         ?1)"
    );
    tx.row(&sql, values![payout_id])?.map(file_in).transpose()
}

/// The last good rate of a market, and the day's anchor. Rates are in millionths.
#[derive(Clone, Debug)]
pub struct RateLine {
    /// The market's name, which the column `source` holds.
    pub market: String,
    pub inr_per_usd: i64,
    pub usd_per_usdt: i64,
    /// The earlier of the two figures' times, in Unix seconds.
    pub observed_at: i64,
    /// The rate, INR for one USD, that the day's other rates have to be near.
    pub anchor: i64,
}

pub fn rates(tx: &mut dyn Tx) -> Result<Vec<RateLine>, StoreError> {
    let sql = "SELECT source, inr_per_usd, usd_per_usdt, observed_at, anchor FROM market_rates \
               ORDER BY source";
    let read = |mut row: Row| {
        Ok(RateLine {
            market: row.text()?,
            inr_per_usd: row.int()?,
            usd_per_usdt: row.int()?,
            observed_at: row.int()?,
            anchor: row.int()?,
        })
    };
    tx.rows(sql, &[])?.into_iter().map(read).collect()
}

// The flow of a day.

/// The identifier of the event with this index, from 0, among the events of one account and mode
/// after `after`; `None` if there are not that many.
pub fn event_at_index(
    tx: &mut dyn Tx,
    scope: Scope,
    after: [u8; 16],
    index: i64,
) -> Result<Option<[u8; 16]>, StoreError> {
    let sql = "SELECT id FROM events WHERE scope = ?1 AND id > ?2 ORDER BY id LIMIT 1 OFFSET ?3";
    let row = tx.row(sql, values![scope, &after, index])?;
    row.map(|mut row| Ok(row.id::<kind::Event>()?.to_bytes())).transpose()
}

/// Events about transfers of one account and mode, after `after` and up to `last`: each type with
/// how many there are, and the paise that their transfers pay out.
pub fn transfer_events(
    tx: &mut dyn Tx,
    scope: Scope,
    after: [u8; 16],
    last: [u8; 16],
) -> Result<Vec<(String, i64, i64)>, StoreError> {
    // The amounts are looked up one by one. With a join, a store could read all transfers.
    let sql = "SELECT e.type, COUNT(*), CAST(COALESCE(SUM((SELECT t.payout_units FROM transfers t \
               WHERE t.scope = e.scope AND t.id = e.linked_id)), 0) AS BIGINT) FROM events e \
               WHERE e.scope = ?1 AND e.id > ?2 AND e.id <= ?3 AND e.linked_object = 'transfer' \
               GROUP BY e.type";
    let read = |mut row: Row| Ok((row.text()?, row.int()?, row.int()?));
    tx.rows(sql, values![scope, &after, &last])?.into_iter().map(read).collect()
}

/// Quote locks of one account and mode between two identifiers, counted up to `rows_max`: how many,
/// and their paise. If there may be more, also the identifier of the last one counted.
pub fn quotes_between(
    tx: &mut dyn Tx,
    scope: Scope,
    after: [u8; 16],
    before: [u8; 16],
    rows_max: i64,
) -> Result<(i64, i64, Option<[u8; 16]>), StoreError> {
    let sql = "SELECT COUNT(*), CAST(COALESCE(SUM(buy_units), 0) AS BIGINT) FROM (SELECT \
               buy_units FROM quote_locks WHERE scope = ?1 AND id > ?2 AND id < ?3 ORDER BY id \
               LIMIT ?4) counted";
    let values = values![scope, &after, &before, rows_max];
    let (count, units) = tx
        .row(sql, values)?
        .map_or(Ok::<_, StoreError>((0, 0)), |mut row| Ok((row.int()?, row.int()?)))?;
    if count < rows_max {
        return Ok((count, units, None));
    }
    let sql = "SELECT id FROM quote_locks WHERE scope = ?1 AND id > ?2 AND id < ?3 ORDER BY id \
               LIMIT 1 OFFSET ?4";
    let last = tx.row(sql, values![scope, &after, &before, rows_max - 1])?;
    let last = last.map(|mut row| row.id::<kind::QuoteLock>()).transpose()?;
    Ok((count, units, last.map(Id::to_bytes)))
}
