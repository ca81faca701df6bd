//! The rows of refunds.

use std::sync::LazyLock;

use super::Refund;
use super::state::{RefundKind, RefundReason, RefundStatus};
use crate::chains::tron_address::TronAddress;
use crate::deposits::rows::address;
use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::state::Status;
use crate::kernel::{Currency, History, Id, Money, Scope, StoreError};
use crate::store::list::{self, Listing};
use crate::store::{Row, Tx, insert_sql};
use crate::values;

const COLUMNS: &str = "scope, id, version, transfer_id, deposit_id, kind, status, reason, units, asset, chain, to_address, transaction_hash, \
    completed_at, status_history, created";

static INSERT: LazyLock<String> = LazyLock::new(|| insert_sql("refunds", COLUMNS));

pub fn read(mut row: Row) -> Result<Refund, StoreError> {
    let row = &mut row;
    Ok(Refund {
        scope: row.scope()?,
        id: row.id()?,
        version: row.int()?,
        transfer_id: row.id()?,
        deposit_id: row.id_or_null()?,
        kind: row.word(RefundKind::parse)?,
        status: row.word(RefundStatus::parse)?,
        reason: row.word(RefundReason::parse)?,
        amount: Money::new(row.int()?, Currency::Usdt),
        asset: row.text()?,
        chain: row.text()?,
        to_address: row.bytes_or_null()?.map(address).transpose()?.map(TronAddress::from_evm),
        transaction_hash: row.text_or_null()?,
        completed_at: row.int_or_null()?,
        status_history: History::from_text(&row.text()?)?,
        created: row.int()?,
    })
}

pub fn insert(tx: &mut dyn Tx, r: &Refund) -> Result<(), StoreError> {
    tx.execute_one(
        &INSERT,
        values![
            r.scope,
            r.id,
            r.version,
            r.transfer_id,
            r.deposit_id,
            r.kind.as_str(),
            r.status.as_str(),
            r.reason.as_str(),
            r.amount.units,
            &r.asset,
            &r.chain,
            r.to_address.as_ref().map(TronAddress::as_evm),
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
        "UPDATE refunds SET version = version + 1, status = ?5, to_address = ?6, transaction_hash = ?7, completed_at = ?8, status_history = ?9 \
         WHERE scope = ?1 AND id = ?2 AND version = ?3 AND status = ?4",
        values![
            r.scope,
            r.id,
            r.version,
            from.as_str(),
            r.status.as_str(),
            r.to_address.as_ref().map(TronAddress::as_evm),
            &r.transaction_hash,
            r.completed_at,
            &r.status_history.to_text(),
        ],
    )?;
    r.version += 1;
    Ok(())
}

pub fn find(tx: &mut dyn Tx, scope: Scope, id: Id<kind::Refund>) -> Result<Option<Refund>, StoreError> {
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
    let sql = format!("SELECT {COLUMNS} FROM refunds WHERE scope = ?1 AND transfer_id = ?2 AND deposit_id = ?3 LIMIT 1");
    tx.row(&sql, values![scope, transfer_id, deposit_id])?.map(read).transpose()
}

pub fn list(tx: &mut dyn Tx, scope: Scope, page: &Page) -> Result<(Vec<Row>, bool), StoreError> {
    list::read(tx, &Listing { table: "refunds", columns: COLUMNS, key: ("scope", scope.into()) }, page)
}
