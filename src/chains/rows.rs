//! How far chains were followed, and what left our addresses.

use super::ChainName;
use super::evm::Hash;
use super::verify::Anchor;
use crate::kernel::{Mode, Now, StoreError};
use crate::store::{Row, Tx};
use crate::values;

/// The last block of the final view that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub anchor: Anchor,
    /// Time of that block, Unix seconds.
    pub block_time: i64,
    pub deprecation: Option<Deprecation>,
}

/// A token's contract that handed over to another one. What is configured since then may be its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deprecation {
    pub contract: [u8; 20],
    pub height: i64,
}

impl Cursor {
    /// Whether this contract of the chain was seen to hand over to another one.
    pub fn has_deprecated(&self, contract: &[u8; 20]) -> bool {
        self.deprecation.is_some_and(|deprecation| deprecation.contract == *contract)
    }
}

/// A token movement away from one of our addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    pub transaction_hash: String,
    pub log_index: i64,
    pub from_address: [u8; 20],
    pub to_address: [u8; 20],
    /// Millionths of the token.
    pub units: i64,
    pub block_number: i64,
    pub block_time: i64,
}

fn read(mut row: Row) -> Result<Cursor, StoreError> {
    let height = row.int()?;
    let hash = row.word(Hash::parse)?;
    let block_time = row.int()?;
    let contract = row.bytes_or_null()?.map(TryInto::try_into).transpose();
    let contract: Option<[u8; 20]> = contract.map_err(|_| StoreError::Broken("a contract's address is not 20 bytes long".into()))?;
    let deprecation = contract.zip(row.int_or_null()?).map(|(contract, height)| Deprecation { contract, height });
    Ok(Cursor { anchor: Anchor { height, hash }, block_time, deprecation })
}

/// `None` before the first start.
pub fn cursor(tx: &mut dyn Tx, mode: Mode, chain: ChainName) -> Result<Option<Cursor>, StoreError> {
    let sql =
        "SELECT height, block_hash, block_time, deprecated_contract, deprecated_height FROM chain_cursors WHERE mode = ?1 AND chain = ?2";
    tx.row(sql, values![mode.as_str(), chain.as_str()])?.map(read).transpose()
}

/// Where a chain is followed from, and compared from. Answers whether nobody had begun before.
pub fn begin(tx: &mut dyn Tx, now: &Now, mode: Mode, chain: ChainName, cursor: &Cursor) -> Result<bool, StoreError> {
    if self::cursor(tx, mode, chain)?.is_some() {
        return Ok(false);
    }
    tx.execute_one(
        "INSERT INTO chain_cursors (mode, chain, height, block_hash, block_time, updated_milliseconds) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        values![
            mode.as_str(),
            chain.as_str(),
            cursor.anchor.height,
            &cursor.anchor.hash.to_string(),
            cursor.block_time,
            now.instant_milliseconds(),
        ],
    )?;
    tx.execute_one(
        "INSERT INTO chain_audits (mode, chain, height, block_hash, completed_milliseconds) VALUES (?1, ?2, ?3, ?4, ?5)",
        values![mode.as_str(), chain.as_str(), cursor.anchor.height, &cursor.anchor.hash.to_string(), now.instant_milliseconds()],
    )?;
    Ok(true)
}

/// Whether the cursor still is where it was read, and stays there until the commit: of two nodes that look at the same blocks one comes after the other.
pub fn stands_at(tx: &mut dyn Tx, mode: Mode, chain: ChainName, anchor: Anchor) -> Result<bool, StoreError> {
    if !tx.is_shared() {
        return Ok(cursor(tx, mode, chain)?.is_some_and(|cursor| cursor.anchor == anchor));
    }
    let lock = "UPDATE chain_cursors SET height = height WHERE mode = ?1 AND chain = ?2 AND height = ?3 AND block_hash = ?4";
    Ok(tx.execute(lock, values![mode.as_str(), chain.as_str(), anchor.height, &anchor.hash.to_string()])? == 1)
}

/// Moves the cursor on from where it was read. Answers whether it still was there: of two nodes that read the same blocks
/// one wins.
pub fn advance(tx: &mut dyn Tx, now: &Now, mode: Mode, chain: ChainName, from: Anchor, to: &Cursor) -> Result<bool, StoreError> {
    let changed = tx.execute(
        "UPDATE chain_cursors SET height = ?5, block_hash = ?6, block_time = ?7, deprecated_contract = ?8, deprecated_height = ?9, \
         updated_milliseconds = ?10 WHERE mode = ?1 AND chain = ?2 AND height = ?3 AND block_hash = ?4",
        values![
            mode.as_str(),
            chain.as_str(),
            from.height,
            &from.hash.to_string(),
            to.anchor.height,
            &to.anchor.hash.to_string(),
            to.block_time,
            to.deprecation.as_ref().map(|deprecation| &deprecation.contract),
            to.deprecation.map(|deprecation| deprecation.height),
            now.instant_milliseconds(),
        ],
    )?;
    Ok(changed == 1)
}

pub fn insert_sweep(tx: &mut dyn Tx, chain: ChainName, sweep: &Sweep) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO chain_sweeps (chain, transaction_hash, log_index, from_address, to_address, units, block_number, block_time) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        values![
            chain.as_str(),
            &sweep.transaction_hash,
            sweep.log_index,
            &sweep.from_address,
            &sweep.to_address,
            sweep.units,
            sweep.block_number,
            sweep.block_time,
        ],
    )
}

/// Whether a movement away from one of our addresses is in the book.
pub fn has_sweep(tx: &mut dyn Tx, chain: ChainName, transaction_hash: &str, log_index: i64) -> Result<bool, StoreError> {
    let sql = "SELECT log_index FROM chain_sweeps WHERE chain = ?1 AND transaction_hash = ?2 AND log_index = ?3";
    Ok(tx.row(sql, values![chain.as_str(), transaction_hash, log_index])?.is_some())
}

/// Up to where the book was compared with the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditMark {
    pub anchor: Anchor,
    /// When the last comparison of everything ended, milliseconds since 1970 by the store's clock.
    pub completed_milliseconds: i64,
}

/// `None` before the chain was ever followed.
pub fn audit_mark(tx: &mut dyn Tx, mode: Mode, chain: ChainName) -> Result<Option<AuditMark>, StoreError> {
    let sql = "SELECT height, block_hash, completed_milliseconds FROM chain_audits WHERE mode = ?1 AND chain = ?2";
    let read = |mut row: Row| {
        let anchor = Anchor { height: row.int()?, hash: row.word(Hash::parse)? };
        Ok(AuditMark { anchor, completed_milliseconds: row.int()? })
    };
    tx.row(sql, values![mode.as_str(), chain.as_str()])?.map(read).transpose()
}

/// Moves the mark on. Answers whether it still stood at `from`.
pub fn advance_audit(tx: &mut dyn Tx, mode: Mode, chain: ChainName, from: Anchor, to: Anchor) -> Result<bool, StoreError> {
    let changed = tx.execute(
        "UPDATE chain_audits SET height = ?5, block_hash = ?6 WHERE mode = ?1 AND chain = ?2 AND height = ?3 AND block_hash = ?4",
        values![mode.as_str(), chain.as_str(), from.height, &from.hash.to_string(), to.height, &to.hash.to_string()],
    )?;
    Ok(changed == 1)
}

/// Keeps that everything was compared.
pub fn complete_audit(tx: &mut dyn Tx, now: &Now, mode: Mode, chain: ChainName) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE chain_audits SET completed_milliseconds = ?3 WHERE mode = ?1 AND chain = ?2",
        values![mode.as_str(), chain.as_str(), now.instant_milliseconds()],
    )
}
