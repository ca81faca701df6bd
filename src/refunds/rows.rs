//! The rows of refunds.

use std::sync::LazyLock;

use super::Refund;
use super::state::{RefundKind, RefundReason, RefundStatus, SentFault};
use crate::chains::address::Address;
use crate::deposits::rows::address;
use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::state::Status;
use crate::kernel::{Currency, History, Id, Mode, Money, Scope, StoreError};
use crate::store::list::{self, Listing};
use crate::store::{Row, Tx, insert_sql};
use crate::values;

const COLUMNS: &str = "scope, id, version, chain, transfer_id, deposit_id, kind, status, reason, \
 units, asset, to_address, \
    sent_transaction_hash, sent_fault, log_index, transaction_hash, completed_at, status_history, \
    created";

static INSERT: LazyLock<String> = LazyLock::new(|| insert_sql("refunds", COLUMNS));

pub fn read(mut row: Row) -> Result<Refund, StoreError> {
    let row = &mut row;
    let (scope, id, version, chain) = (row.scope()?, row.id()?, row.int()?, row.text()?);
    Ok(Refund {
        scope,
        id,
        version,
        transfer_id: row.id()?,
        deposit_id: row.id_or_null()?,
        kind: row.word(RefundKind::parse)?,
        status: row.word(RefundStatus::parse)?,
        reason: row.word(RefundReason::parse)?,
        amount: Money::new(row.int()?, Currency::Usdt),
        asset: row.text()?,
        to_address: row
            .bytes_or_null()?
            .map(address)
            .transpose()?
            .map(|bytes| Address::of_chain(&chain, bytes)),
        sent_transaction_hash: row.text_or_null()?,
        sent_fault: row.word_or_null(SentFault::parse)?,
        log_index: row.int_or_null()?,
        transaction_hash: row.text_or_null()?,
        completed_at: row.int_or_null()?,
        status_history: History::from_text(&row.text()?)?,
        created: row.int()?,
        chain,
    })
}

pub fn insert(tx: &mut dyn Tx, r: &Refund) -> Result<(), StoreError> {
    tx.execute_one(
        &INSERT,
        values![
            r.scope,
            r.id,
            r.version,
            &r.chain,
            r.transfer_id,
            r.deposit_id,
            r.kind.as_str(),
            r.status.as_str(),
            r.reason.as_str(),
            r.amount.units,
            &r.asset,
            r.to_address.as_ref().map(Address::bytes),
            &r.sent_transaction_hash,
            r.sent_fault.map(SentFault::as_str),
            r.log_index,
            &r.transaction_hash,
            r.completed_at,
            &r.status_history.to_text(),
            r.created,
        ],
    )
}

/// Writes a changed refund over the version and status it was read with.
pub fn update(tx: &mut dyn Tx, r: &mut Refund, from: RefundStatus) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE refunds SET version = version + 1, status = ?5, to_address = ?6, transaction_hash \
         = ?7, completed_at = ?8, status_history = ?9, \
         sent_transaction_hash = ?10, sent_fault = ?11, log_index = ?12 \
         WHERE scope = ?1 AND id = ?2 AND version = ?3 AND status = ?4",
        values![
            r.scope,
            r.id,
            r.version,
            from.as_str(),
            r.status.as_str(),
            r.to_address.as_ref().map(Address::bytes),
            &r.transaction_hash,
            r.completed_at,
            &r.status_history.to_text(),
            &r.sent_transaction_hash,
            r.sent_fault.map(SentFault::as_str),
            r.log_index,
        ],
    )?;
    r.version += 1;
    Ok(())
}

pub fn find(
    tx: &mut dyn Tx,
    scope: Scope,
    id: Id<kind::Refund>,
) -> Result<Option<Refund>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM refunds WHERE scope = ?1 AND id = ?2");
    tx.row(&sql, values![scope, id])?.map(read).transpose()
}

/// The refund of one deposit that matched nothing, if there is one.
pub fn find_for_deposit(
    tx: &mut dyn Tx,
    scope: Scope,
    transfer_id: Id<kind::Transfer>,
    deposit_id: Id<kind::Deposit>,
) -> Result<Option<Refund>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM refunds WHERE scope = ?1 AND transfer_id = ?2 AND deposit_id = ?3 \
         LIMIT 1"
    );
    tx.row(&sql, values![scope, transfer_id, deposit_id])?.map(read).transpose()
}

/// Refunds of a mode that the operator sent over a chain, whose transaction was not confirmed yet:
/// the next ones after a refund.
pub fn sent_on(
    tx: &mut dyn Tx,
    mode: Mode,
    chain: &str,
    after: Option<(Scope, Id<kind::Refund>)>,
    rows_max: i64,
) -> Result<Vec<Refund>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM refunds WHERE chain = ?1 AND status <> 'completed' AND \
         sent_transaction_hash IS NOT NULL AND scope % 2 = ?2 \
         AND (scope > ?3 OR (scope = ?3 AND id > ?4)) ORDER BY scope, id LIMIT ?5"
    );
    let (scope, id) = after.unwrap_or((Scope::from_code(0), Id::from_u128(0)));
    tx.rows(&sql, values![chain, i64::from(mode.is_live()), scope, id, rows_max])?
        .into_iter()
        .map(read)
        .collect()
}

/// Whether a movement on chain confirmed a refund already.
pub fn is_used(
    tx: &mut dyn Tx,
    chain: &str,
    transaction_hash: &str,
    log_index: i64,
) -> Result<bool, StoreError> {
    let sql =
        "SELECT id FROM refunds WHERE chain = ?1 AND transaction_hash = ?2 AND log_index = ?3";
    Ok(tx.row(sql, values![chain, transaction_hash, log_index])?.is_some())
}

/// The refund, of any account, that a transaction on chain confirmed; the first of several.
pub fn confirmed_by(
    tx: &mut dyn Tx,
    chain: &str,
    transaction_hash: &str,
) -> Result<Option<Id<kind::Refund>>, StoreError> {
    let sql = "SELECT id FROM refunds WHERE chain = ?1 AND transaction_hash = ?2 AND log_index IS \
     NOT NULL ORDER BY log_index LIMIT 1";
    tx.row(sql, values![chain, transaction_hash])?.map(|mut row| row.id()).transpose()
}

pub fn list(tx: &mut dyn Tx, scope: Scope, page: &Page) -> Result<(Vec<Row>, bool), StoreError> {
    list::read(
        tx,
        &Listing { table: "refunds", columns: COLUMNS, key: ("scope", scope.into()) },
        page,
    )
}
