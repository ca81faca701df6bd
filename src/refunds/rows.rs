//! The rows of refunds.

use super::Refund;
use super::state::{AddressDeclarer, RefundKind, RefundReason, RefundStatus, SentHashError};
use crate::chains::address::ChainAddress;
use crate::deposits::rows::stored_address;
use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::state::Status;
use crate::kernel::{Currency, History, Id, Mode, Money, Scope, StoreError};
use crate::store::list::{self, Listing};
use crate::store::{Row, Tx};
use crate::values;

crate::stored! {
    "refunds" as Refund, written from refund, read from row;
    fixed {
        scope: refund.scope => row.scope()?;
        id: refund.id => row.id()?;
        version: refund.version => row.int()?;
        chain: &refund.chain => row.text()?;
        transfer_id: refund.transfer_id => row.id()?;
        deposit_id: refund.deposit_id => row.id_or_null()?;
        kind: refund.kind.as_str() => row.word(RefundKind::parse)?;
        reason: refund.reason.as_str() => row.word(RefundReason::parse)?;
        units: refund.amount.units => row.int()?;
        asset: &refund.asset => row.text()?;
        created: refund.created => row.int()?;
    }
    changing from RefundStatus {
        status: refund.status.as_str() => row.word(RefundStatus::parse)?;
        to_address: refund.to_address.as_ref().map(ChainAddress::bytes)
            => row.bytes_or_null()?.map(stored_address).transpose()?;
        address_declared_by: refund.address_declared_by.map(AddressDeclarer::as_str)
            => row.word_or_null(AddressDeclarer::parse)?;
        address_reason: &refund.address_reason => row.text_or_null()?;
        payer_address: refund.payer_address.as_ref().map(ChainAddress::bytes)
            => row.bytes_or_null()?.map(stored_address).transpose()?;
        payer_address_at: refund.payer_address_declared_at => row.int_or_null()?;
        is_held: refund.is_held_by_screening => row.bool()?;
        bank_hold: &refund.bank_hold_reason => row.text_or_null()?;
        sent_transaction_hash: &refund.sent_transaction_hash => row.text_or_null()?;
        sent_fault: refund.sent_fault.map(SentHashError::as_str)
            => row.word_or_null(SentHashError::parse)?;
        log_index: refund.log_index => row.int_or_null()?;
        transaction_hash: &refund.transaction_hash => row.text_or_null()?;
        completed_at: refund.completed_at => row.int_or_null()?;
        status_history: &refund.status_history.to_text() => History::from_text(&row.text()?)?;
    }
    into Refund {
        scope,
        id,
        version,
        transfer_id,
        deposit_id,
        kind,
        status,
        reason,
        amount: Money::new(units, Currency::Usdt),
        asset,
        to_address: to_address.map(|bytes| ChainAddress::of_chain(&chain, bytes)),
        address_declared_by,
        address_reason,
        payer_address: payer_address.map(|bytes| ChainAddress::of_chain(&chain, bytes)),
        payer_address_declared_at: payer_address_at,
        is_held_by_screening: is_held,
        bank_hold_reason: bank_hold,
        sent_transaction_hash,
        sent_fault,
        log_index,
        transaction_hash,
        completed_at,
        status_history,
        created,
        chain,
    }
}

/// The refund of one `unmatched` deposit, if there is one.
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

/// The refunds of a transfer that wait for an address and for which the payer has given none,
/// oldest first.
pub fn waiting_for_payer(
    tx: &mut dyn Tx,
    scope: Scope,
    transfer_id: Id<kind::Transfer>,
    rows_max: i64,
) -> Result<Vec<Refund>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM refunds WHERE scope = ?1 AND transfer_id = ?2 AND status = \
         'requires_address' AND payer_address IS NULL ORDER BY id LIMIT ?3"
    );
    tx.rows(&sql, values![scope, transfer_id, rows_max])?.into_iter().map(read).collect()
}

/// The row that `sql` reads of a refund's transfer.
fn of_transfer(tx: &mut dyn Tx, refund: &Refund, sql: &str) -> Result<Row, StoreError> {
    let row = tx.row(sql, values![refund.scope, refund.transfer_id])?;
    row.ok_or_else(|| StoreError::Broken(format!("{} has lost its transfer", refund.id)))
}

/// The contract of the token that a refund's transfer is paid in.
pub fn token_contract(tx: &mut dyn Tx, refund: &Refund) -> Result<ChainAddress, StoreError> {
    let sql = "SELECT token_contract FROM transfers WHERE scope = ?1 AND id = ?2";
    let mut row = of_transfer(tx, refund, sql)?;
    Ok(ChainAddress::of_chain(&refund.chain, stored_address(row.bytes()?)?))
}

/// The fingerprint of the account key that the transfer's deposit address is derived from.
pub fn account_fingerprint(tx: &mut dyn Tx, refund: &Refund) -> Result<u32, StoreError> {
    let sql = "SELECT account_fingerprint FROM transfers WHERE scope = ?1 AND id = ?2";
    let fingerprint = of_transfer(tx, refund, sql)?.int()?;
    u32::try_from(fingerprint).map_err(|_| {
        StoreError::Broken("the fingerprint of an account key lies outside its range".into())
    })
}

/// One page, after the refund `after`, of the refunds of a mode and chain whose transaction the
/// operator has named and the chain has not confirmed. `scope % 2` is the mode.
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

/// Whether a movement on a chain has confirmed a refund already.
pub fn is_movement_used(
    tx: &mut dyn Tx,
    chain: &str,
    transaction_hash: &str,
    log_index: i64,
) -> Result<bool, StoreError> {
    let sql =
        "SELECT id FROM refunds WHERE chain = ?1 AND transaction_hash = ?2 AND log_index = ?3";
    Ok(tx.row(sql, values![chain, transaction_hash, log_index])?.is_some())
}

/// The refund, of any account, that a transaction on a real chain confirmed. If the transaction
/// confirmed several, this is the one with the lowest log index.
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
