//! The rows of deposits, and of the addresses they are sent to.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::Deposit;
use super::state::{Classification, DepositStatus, ReasonCode};
use crate::chains::address::AddressBytes;
use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::state::Status;
use crate::kernel::{Currency, History, Id, Mode, Money, Scope, StoreError};
use crate::resource::BookRule;
use crate::store::list::{self, Listing};
use crate::store::{Row, Tx, Value};
use crate::values;

crate::stored! {
    "deposits" as Deposit, written from deposit, read from row;
    fixed {
        scope: deposit.scope => row.scope()?;
        id: deposit.id => row.id()?;
        version: deposit.version => row.int()?;
        transfer_id: deposit.transfer_id => row.id()?;
        units: deposit.amount.units => row.int()?;
        asset: &deposit.asset => row.text()?;
        chain: &deposit.chain => row.text()?;
        from_address: &deposit.from_address => stored_address(row.bytes()?)?;
        to_address: &deposit.to_address => stored_address(row.bytes()?)?;
        transaction_hash: &deposit.transaction_hash => row.text()?;
        contract: deposit.contract.as_ref() =>
            row.bytes_or_null()?.map(stored_address).transpose()?;
        created: deposit.created => row.int()?;
    }
    changing from DepositStatus {
        status: deposit.status.as_str() => row.word(DepositStatus::parse)?;
        log_index: deposit.log_index => row.int()?;
        block_number: deposit.block_number => row.int_or_null()?;
        block_time: deposit.block_time => row.int_or_null()?;
        confirmations: deposit.confirmations => row.int()?;
        unseen_since: deposit.unseen_since => row.int_or_null()?;
        classification: deposit.classification.map(Classification::as_str)
            => row.word_or_null(Classification::parse)?;
        reason_code: deposit.reason_code.map(ReasonCode::as_str)
            => row.word_or_null(ReasonCode::parse)?;
        completed_at: deposit.completed_at => row.int_or_null()?;
        status_history: &deposit.status_history.to_text() => History::from_text(&row.text()?)?;
    }
    into Deposit {
        scope,
        id,
        version,
        transfer_id,
        status,
        amount: Money::new(units, Currency::Usdt),
        asset,
        chain,
        from_address,
        to_address,
        transaction_hash,
        contract,
        log_index,
        block_number,
        block_time,
        confirmations,
        unseen_since,
        classification,
        reason_code,
        completed_at,
        status_history,
        created,
    }
}

/// Reads an address from a column.
pub fn stored_address(bytes: Vec<u8>) -> Result<AddressBytes, StoreError> {
    AddressBytes::stored(&bytes)
}

/// The deposit of one token movement on the simulated chain, where log indices never change. There
/// is normally one at most. The schema allows several; then the newest is taken. The query has no
/// `ORDER BY id`, because PostgreSQL would then walk the primary key through all deposits of the
/// account.
pub fn find_simulated(
    tx: &mut dyn Tx,
    scope: Scope,
    chain: &str,
    transaction_hash: &str,
    log_index: i64,
) -> Result<Option<Deposit>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM deposits WHERE scope = ?1 AND transaction_hash = ?2 AND log_index \
         = ?3 AND chain = ?4"
    );
    let rows = tx.rows(&sql, values![scope, transaction_hash, log_index, chain])?;
    let deposits: Vec<Deposit> = rows.into_iter().map(read).collect::<Result<_, _>>()?;
    Ok(deposits.into_iter().max_by_key(|deposit| deposit.id))
}

/// All deposits of one transaction on one chain, in the order of their log indices.
pub fn of_transaction(
    tx: &mut dyn Tx,
    scope: Scope,
    chain: &str,
    transaction_hash: &str,
) -> Result<Vec<Deposit>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM deposits WHERE scope = ?1 AND transaction_hash = ?2 AND chain = ?3 \
         ORDER BY log_index, id"
    );
    tx.rows(&sql, values![scope, transaction_hash, chain])?.into_iter().map(read).collect()
}

/// The unsettled deposits of a chain, in all accounts and both modes.
pub fn unsettled_on(tx: &mut dyn Tx, chain: &str) -> Result<Vec<Deposit>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM deposits WHERE chain = ?1 AND status IN ('initialized', \
         'processing') ORDER BY scope, id"
    );
    tx.rows(&sql, values![chain])?.into_iter().map(read).collect()
}

pub fn list(tx: &mut dyn Tx, scope: Scope, page: &Page) -> Result<(Vec<Row>, bool), StoreError> {
    list::read(
        tx,
        &Listing { table: "deposits", columns: COLUMNS, key: ("scope", scope.into()) },
        page,
    )
}

/// Marks an unmatched deposit that has a refund, so that it leaves the index of those that wait for
/// a decision.
pub fn mark_given_back(
    tx: &mut dyn Tx,
    scope: Scope,
    id: Id<kind::Deposit>,
) -> Result<(), StoreError> {
    let sql = "UPDATE deposits SET is_given_back = TRUE WHERE scope = ?1 AND id = ?2";
    tx.execute_one(sql, values![scope, id])
}

/// SQL for the deposits that counted towards a transfer.
const COUNTED: &str = "scope = ?1 AND transfer_id = ?2 AND status = 'completed' AND \
                       classification NOT IN ('unmatched', 'unsupported')";

/// The deposits that counted towards a transfer and completed by `until` (Unix seconds of business
/// time): the oldest `rows_max` of them, and how many there are in all.
pub fn counted_for_transfer(
    tx: &mut dyn Tx,
    scope: Scope,
    transfer_id: Id<kind::Transfer>,
    until: i64,
    rows_max: i64,
) -> Result<(Vec<Deposit>, i64), StoreError> {
    let counted = format!("{COUNTED} AND completed_at <= ?3");
    let count = tx.row(
        &format!("SELECT COUNT(*) FROM deposits WHERE {counted}"),
        values![scope, transfer_id, until],
    )?;
    let sql = format!("SELECT {COLUMNS} FROM deposits WHERE {counted} ORDER BY id LIMIT ?4");
    let found = tx
        .rows(&sql, values![scope, transfer_id, until, rows_max])?
        .into_iter()
        .map(read)
        .collect::<Result<_, _>>()?;
    Ok((found, count.map_or(Ok(0), |mut row| row.int())?))
}

/// The addresses that sent the deposits which counted towards a transfer: each once and in rising
/// order, at most `rows_max` of them.
pub fn payers_of_transfer(
    tx: &mut dyn Tx,
    scope: Scope,
    transfer_id: Id<kind::Transfer>,
    rows_max: i64,
) -> Result<Vec<AddressBytes>, StoreError> {
    let sql = format!(
        "SELECT DISTINCT from_address FROM deposits WHERE {COUNTED} ORDER BY from_address LIMIT ?3"
    );
    tx.rows(&sql, values![scope, transfer_id, rows_max])?
        .into_iter()
        .map(|mut row| stored_address(row.bytes()?))
        .collect()
}

/// Whether the transfer has a deposit, final or not, that did not fail: dropped and unsupported
/// ones do not count.
pub fn any_for_transfer(
    tx: &mut dyn Tx,
    scope: Scope,
    transfer_id: Id<kind::Transfer>,
) -> Result<bool, StoreError> {
    let row = tx.row(
        "SELECT id FROM deposits WHERE scope = ?1 AND transfer_id = ?2 AND status <> \
         'failed' LIMIT 1",
        values![scope, transfer_id],
    )?;
    Ok(row.is_some())
}

/// The sum of the transfer's completed deposits of one classification, in millionths.
pub fn classified_units(
    tx: &mut dyn Tx,
    scope: Scope,
    transfer_id: Id<kind::Transfer>,
    classification: Classification,
) -> Result<i64, StoreError> {
    let row = tx.row(
        "SELECT CAST(COALESCE(SUM(units), 0) AS BIGINT) FROM deposits WHERE scope = ?1 AND \
         transfer_id = ?2 AND status = 'completed' AND classification = ?3",
        values![scope, transfer_id, classification.as_str()],
    )?;
    row.map_or(Ok(0), |mut row| row.int())
}

/// Whether the transfer has an unsettled deposit that may be in time: one whose block's time is at
/// most `until` (Unix seconds) or, if `may_enter_block`, one that is in no block yet.
pub fn any_unsettled_until(
    tx: &mut dyn Tx,
    scope: Scope,
    transfer_id: Id<kind::Transfer>,
    until: i64,
    may_enter_block: bool,
) -> Result<bool, StoreError> {
    let in_no_block = if may_enter_block { "OR block_time IS NULL" } else { "" };
    let sql = format!(
        "SELECT id FROM deposits WHERE scope = ?1 AND transfer_id = ?2 AND status IN \
         ('initialized', 'processing') AND (block_time <= ?3 {in_no_block}) LIMIT 1"
    );
    Ok(tx.row(&sql, values![scope, transfer_id, until])?.is_some())
}

/// The sum of the unsettled deposits of USDT, in millionths: the balance's `pending`.
pub fn pending_units(tx: &mut dyn Tx, scope: Scope) -> Result<i64, StoreError> {
    let row = tx.row(
        "SELECT CAST(COALESCE(SUM(units), 0) AS BIGINT) FROM deposits WHERE scope = ?1 AND status \
         IN ('initialized', 'processing') AND asset = 'USDT'",
        values![scope],
    )?;
    row.map_or(Ok(0), |mut row| row.int())
}

/// The sum of a transfer's unsettled deposits of `asset`, in millionths.
pub fn pending_units_of_transfer(
    tx: &mut dyn Tx,
    scope: Scope,
    transfer_id: Id<kind::Transfer>,
    asset: &str,
) -> Result<i64, StoreError> {
    let row = tx.row(
        "SELECT CAST(COALESCE(SUM(units), 0) AS BIGINT) FROM deposits WHERE scope = ?1 AND \
         transfer_id = ?2 AND asset = ?3 \
         AND status IN ('initialized', 'processing')",
        values![scope, transfer_id, asset],
    )?;
    row.map_or(Ok(0), |mut row| row.int())
}

/// Hands an address to a transfer; an address is handed out once.
pub fn assign_address(
    tx: &mut dyn Tx,
    scope: Scope,
    transfer_id: Id<kind::Transfer>,
    address: &AddressBytes,
) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO deposit_addresses (address, scope, transfer_id) VALUES (?1, ?2, ?3)",
        values![address, scope, transfer_id],
    )
}

/// How many addresses one statement asks about.
const ADDRESSES_AT_ONCE: usize = 64;

static HANDED_OUT: LazyLock<String> = LazyLock::new(|| {
    let places: Vec<String> = (1..=ADDRESSES_AT_ONCE).map(|place| format!("?{place}")).collect();
    format!("SELECT address, scope FROM deposit_addresses WHERE address IN ({})", places.join(", "))
});

/// Which of these addresses were handed out in a mode. The query is fastest if the addresses are in
/// rising order.
pub fn handed_out(
    tx: &mut dyn Tx,
    mode: Mode,
    addresses: &[AddressBytes],
) -> Result<HashSet<AddressBytes>, StoreError> {
    let mut found = HashSet::new();
    for part in addresses.chunks(ADDRESSES_AT_ONCE) {
        // A shorter part repeats its last address, so that one prepared statement serves all parts.
        let last = part.last().into_iter().cycle();
        let values: Vec<Value<'_>> =
            part.iter().chain(last).take(ADDRESSES_AT_ONCE).map(Value::from).collect();
        for mut row in tx.rows(&HANDED_OUT, &values)? {
            let bytes = stored_address(row.bytes()?)?;
            if row.scope()?.mode() == mode {
                found.insert(bytes);
            }
        }
    }
    Ok(found)
}

/// How many addresses were handed out in either mode.
pub fn addresses_count(tx: &mut dyn Tx) -> Result<i64, StoreError> {
    tx.row("SELECT COUNT(*) FROM deposit_addresses", &[])?.map_or(Ok(0), |mut row| row.int())
}

/// The next addresses above `after` that were handed out in either mode, in rising order; without
/// `after`, the first ones.
pub fn addresses_after(
    tx: &mut dyn Tx,
    after: Option<AddressBytes>,
    rows_max: i64,
) -> Result<Vec<AddressBytes>, StoreError> {
    let after = after.as_ref().map_or(&[][..], AddressBytes::as_slice);
    let sql = "SELECT address FROM deposit_addresses WHERE address > ?1 ORDER BY address LIMIT ?2";
    tx.rows(sql, values![after, rows_max])?
        .into_iter()
        .map(|mut row| stored_address(row.bytes()?))
        .collect()
}

/// The account and mode, and the transfer, to which an address was handed out. `None` if it was
/// never handed out.
pub fn address_owner(
    tx: &mut dyn Tx,
    address: &AddressBytes,
) -> Result<Option<(Scope, Id<kind::Transfer>)>, StoreError> {
    let row = tx.row(
        "SELECT scope, transfer_id FROM deposit_addresses WHERE address = ?1",
        values![address],
    )?;
    row.map(|mut row| Ok((row.scope()?, row.id()?))).transpose()
}

/// Queries that find errors in these rows, for `hundi check`. They guard against rows that somebody
/// changed outside the service. Incoming money is a posting whose `credit_account` is `custody`.
pub const BOOK_RULES: &[BookRule] = &[BookRule {
    meaning: "money was credited without a completed deposit",
    sql: "SELECT 'transfer', p.transfer_id FROM ledger_postings p WHERE p.credit_account = \
         'custody' AND NOT EXISTS ( \
                SELECT 1 FROM deposits d WHERE d.scope = p.scope AND d.transfer_id = \
                p.transfer_id AND d.status = 'completed') LIMIT ?1",
}];
