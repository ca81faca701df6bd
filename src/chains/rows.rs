//! The rows of followed chains: how far each was read and compared with the book, the token's
//! contracts, and the sweeps out of our addresses.

use super::ChainName;
use super::address_bytes::AddressBytes;
use super::blocks::Hash;
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

/// A contract of the token that announced its replacement, and the block of that announcement. The
/// operator may have configured the contract's successor already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deprecation {
    pub contract: AddressBytes,
    pub height: i64,
}

/// Which network a cursor is on, and which contract is followed as the token's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The chain id that was configured when following began. It tells TRON's networks apart,
    /// because all have the name `tron`.
    pub chain_id: u64,
    /// The contract that is followed as the token's now. A newly configured contract takes its
    /// place once a node has shown that the new one is a token.
    pub token: AddressBytes,
}

/// The token's contract, or a former one that callers of transfers were shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenContract {
    pub contract: AddressBytes,
    pub decimals: u8,
}

/// The most contracts that the token can have on one chain, one after another. Each request for
/// logs asks for all of them.
pub const TOKENS_COUNT_MAX: usize = 8;

impl Cursor {
    /// Whether this contract announced its replacement.
    pub fn has_deprecated(&self, contract: &AddressBytes) -> bool {
        self.deprecation.is_some_and(|deprecation| deprecation.contract == *contract)
    }
}

/// A token movement away from one of our addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    pub transaction_hash: String,
    pub log_index: i64,
    pub from_address: AddressBytes,
    pub to_address: AddressBytes,
    /// The token's contract.
    pub contract: AddressBytes,
    /// Millionths of the token.
    pub units: i64,
    pub block_number: i64,
    pub block_time: i64,
}

fn read(mut row: Row) -> Result<Cursor, StoreError> {
    let height = row.int()?;
    let hash = row.word(Hash::parse)?;
    let block_time = row.int()?;
    let contract =
        row.bytes_or_null()?.map(|contract| AddressBytes::stored(&contract)).transpose()?;
    let deprecation =
        contract.zip(row.int_or_null()?).map(|(contract, height)| Deprecation { contract, height });
    Ok(Cursor { anchor: Anchor { height, hash }, block_time, deprecation })
}

/// `None` before the chain was ever followed.
pub fn cursor(tx: &mut dyn Tx, mode: Mode, chain: ChainName) -> Result<Option<Cursor>, StoreError> {
    let sql = "SELECT height, block_hash, block_time, deprecated_contract, deprecated_height FROM \
     chain_cursors WHERE mode = ?1 AND chain = ?2";
    tx.row(sql, values![mode.as_str(), chain.as_str()])?.map(read).transpose()
}

/// The error for a number outside its range; `what` names the number.
fn out_of_range<T>(what: &str) -> impl FnOnce(T) -> StoreError {
    move |_| StoreError::Broken(format!("{what} lies outside its range"))
}

/// `None` before the chain was ever followed.
pub fn identity(
    tx: &mut dyn Tx,
    mode: Mode,
    chain: ChainName,
) -> Result<Option<Identity>, StoreError> {
    let sql = "SELECT chain_id, token_contract FROM chain_cursors WHERE mode = ?1 AND chain = ?2";
    let read = |mut row: Row| {
        Ok(Identity {
            chain_id: u64::try_from(row.int()?).map_err(out_of_range("a chain's identity"))?,
            token: AddressBytes::stored(&row.bytes()?)?,
        })
    };
    tx.row(sql, values![mode.as_str(), chain.as_str()])?.map(read).transpose()
}

/// Whether a chain is followed with this contract as the token's. If not, nobody may be told to pay
/// in it.
pub fn is_followed_with(
    tx: &mut dyn Tx,
    mode: Mode,
    chain: ChainName,
    token: &AddressBytes,
) -> Result<bool, StoreError> {
    Ok(identity(tx, mode, chain)?.is_some_and(|identity| identity.token == *token))
}

/// Every contract that was the token's on a chain, the present one among them.
pub fn tokens(
    tx: &mut dyn Tx,
    mode: Mode,
    chain: ChainName,
) -> Result<Vec<TokenContract>, StoreError> {
    let sql = "SELECT contract, decimals FROM chain_tokens WHERE mode = ?1 AND chain = ?2 ORDER \
     BY contract";
    let read = |mut row: Row| {
        Ok(TokenContract {
            contract: AddressBytes::stored(&row.bytes()?)?,
            decimals: u8::try_from(row.int()?)
                .map_err(out_of_range("the number of a token's decimals"))?,
        })
    };
    tx.rows(sql, values![mode.as_str(), chain.as_str()])?.into_iter().map(read).collect()
}

/// Makes this contract the token's from now on; the earlier ones are still read. Answers `false`
/// and changes nothing if that would be more than `TOKENS_COUNT_MAX` contracts.
pub fn follow_with(
    tx: &mut dyn Tx,
    mode: Mode,
    chain: ChainName,
    token: TokenContract,
) -> Result<bool, StoreError> {
    let known = tokens(tx, mode, chain)?;
    let (mode, chain, decimals) = (mode.as_str(), chain.as_str(), i64::from(token.decimals));
    if known.iter().any(|known| known.contract == token.contract) {
        let sql = "UPDATE chain_tokens SET decimals = ?4 WHERE mode = ?1 AND chain = ?2 AND \
         contract = ?3";
        tx.execute_one(sql, values![mode, chain, &token.contract, decimals])?;
    } else if known.len() >= TOKENS_COUNT_MAX {
        return Ok(false);
    } else {
        let sql =
            "INSERT INTO chain_tokens (mode, chain, contract, decimals) VALUES (?1, ?2, ?3, ?4)";
        tx.execute_one(sql, values![mode, chain, &token.contract, decimals])?;
    }
    tx.execute_one(
        "UPDATE chain_cursors SET token_contract = ?3 WHERE mode = ?1 AND chain = ?2",
        values![mode, chain, &token.contract],
    )?;
    Ok(true)
}

/// The names of the modes and chains that were ever followed.
pub fn followed(tx: &mut dyn Tx) -> Result<Vec<(String, String)>, StoreError> {
    let read = |mut row: Row| Ok((row.text()?, row.text()?));
    tx.rows("SELECT mode, chain FROM chain_cursors ORDER BY mode, chain", &[])?
        .into_iter()
        .map(read)
        .collect()
}

/// Stores the block from which a chain is followed and compared with the book, and the token that
/// it is followed with. Answers `false` and changes nothing if the chain was followed before.
pub fn begin(
    tx: &mut dyn Tx,
    now: &Now,
    mode: Mode,
    chain: ChainName,
    chain_id: u64,
    token: TokenContract,
    cursor: &Cursor,
) -> Result<bool, StoreError> {
    if self::cursor(tx, mode, chain)?.is_some() {
        return Ok(false);
    }
    tx.execute_one(
        "INSERT INTO chain_cursors (mode, chain, chain_id, token_contract, height, block_hash, \
         block_time, updated_milliseconds) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        values![
            mode.as_str(),
            chain.as_str(),
            i64::try_from(chain_id).map_err(out_of_range("a chain's identity"))?,
            &token.contract,
            cursor.anchor.height,
            &cursor.anchor.hash.to_string(),
            cursor.block_time,
            now.instant_milliseconds(),
        ],
    )?;
    tx.execute_one(
        "INSERT INTO chain_audits (mode, chain, height, block_hash, completed_milliseconds) \
         VALUES (?1, ?2, ?3, ?4, ?5)",
        values![
            mode.as_str(),
            chain.as_str(),
            cursor.anchor.height,
            &cursor.anchor.hash.to_string(),
            now.instant_milliseconds()
        ],
    )?;
    follow_with(tx, mode, chain, token)?;
    Ok(true)
}

/// Whether the cursor is still at `anchor`. If so, the cursor stays there until the commit: of two
/// processes that read the same blocks, one waits for the other.
pub fn stands_at(
    tx: &mut dyn Tx,
    mode: Mode,
    chain: ChainName,
    anchor: Anchor,
) -> Result<bool, StoreError> {
    if !tx.is_shared() {
        return Ok(cursor(tx, mode, chain)?.is_some_and(|cursor| cursor.anchor == anchor));
    }
    let lock = "UPDATE chain_cursors SET height = height WHERE mode = ?1 AND chain = ?2 AND \
     height = ?3 AND block_hash = ?4";
    Ok(tx.execute(
        lock,
        values![mode.as_str(), chain.as_str(), anchor.height, &anchor.hash.to_string()],
    )? == 1)
}

/// Moves the cursor from `from` to `to`. Answers `false` and changes nothing if it is no longer at
/// `from`, or if the token's contract is no longer `token`. So of two processes that read the same
/// blocks one wins, and a process that does not know a changed contract yet cannot skip payments in
/// it.
pub fn advance(
    tx: &mut dyn Tx,
    now: &Now,
    mode: Mode,
    chain: ChainName,
    token: &AddressBytes,
    from: Anchor,
    to: &Cursor,
) -> Result<bool, StoreError> {
    let changed = tx.execute(
        "UPDATE chain_cursors SET height = ?5, block_hash = ?6, block_time = ?7, \
         deprecated_contract = ?8, deprecated_height = ?9, \
         updated_milliseconds = ?10 WHERE mode = ?1 AND chain = ?2 AND height = ?3 AND block_hash \
         = ?4 AND token_contract = ?11",
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
            token,
        ],
    )?;
    Ok(changed == 1)
}

pub fn insert_sweep(tx: &mut dyn Tx, chain: ChainName, sweep: &Sweep) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO chain_sweeps (chain, transaction_hash, log_index, from_address, to_address, \
         units, block_number, block_time, contract) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        values![
            chain.as_str(),
            &sweep.transaction_hash,
            sweep.log_index,
            &sweep.from_address,
            &sweep.to_address,
            sweep.units,
            sweep.block_number,
            sweep.block_time,
            &sweep.contract,
        ],
    )
}

/// Whether a movement away from one of our addresses is in the book.
pub fn has_sweep(
    tx: &mut dyn Tx,
    chain: ChainName,
    transaction_hash: &str,
    log_index: i64,
) -> Result<bool, StoreError> {
    let sql = "SELECT log_index FROM chain_sweeps WHERE chain = ?1 AND transaction_hash = ?2 AND \
     log_index = ?3";
    Ok(tx.row(sql, values![chain.as_str(), transaction_hash, log_index])?.is_some())
}

/// Up to which block the book was compared with the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditMark {
    pub anchor: Anchor,
    /// When the last comparison of everything ended, in milliseconds since 1970 by the store's
    /// clock. Before the first one it is the moment when following began.
    pub completed_milliseconds: i64,
}

/// `None` before the chain was ever followed.
pub fn audit_mark(
    tx: &mut dyn Tx,
    mode: Mode,
    chain: ChainName,
) -> Result<Option<AuditMark>, StoreError> {
    let sql = "SELECT height, block_hash, completed_milliseconds FROM chain_audits WHERE mode = \
     ?1 AND chain = ?2";
    let read = |mut row: Row| {
        let anchor = Anchor { height: row.int()?, hash: row.word(Hash::parse)? };
        Ok(AuditMark { anchor, completed_milliseconds: row.int()? })
    };
    tx.row(sql, values![mode.as_str(), chain.as_str()])?.map(read).transpose()
}

/// Moves the mark from `from` to `to`. Answers `false` if it is no longer at `from`.
pub fn advance_audit(
    tx: &mut dyn Tx,
    mode: Mode,
    chain: ChainName,
    from: Anchor,
    to: Anchor,
) -> Result<bool, StoreError> {
    let changed = tx.execute(
        "UPDATE chain_audits SET height = ?5, block_hash = ?6 WHERE mode = ?1 AND chain = ?2 AND \
         height = ?3 AND block_hash = ?4",
        values![
            mode.as_str(),
            chain.as_str(),
            from.height,
            &from.hash.to_string(),
            to.height,
            &to.hash.to_string()
        ],
    )?;
    Ok(changed == 1)
}

/// Records that a comparison of everything has just ended.
pub fn complete_audit(
    tx: &mut dyn Tx,
    now: &Now,
    mode: Mode,
    chain: ChainName,
) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE chain_audits SET completed_milliseconds = ?3 WHERE mode = ?1 AND chain = ?2",
        values![mode.as_str(), chain.as_str(), now.instant_milliseconds()],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::id::Minter;
    use crate::store::migrate;
    use crate::store::sqlite::SqliteTx;

    #[test]
    fn a_cursor_is_moved_only_with_the_contract_that_it_is_followed_with() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let mut tx = SqliteTx::new(&connection);
        migrate::migrate(&mut tx).unwrap();
        let now = Now::new(1_000, Minter::above(0), [0; 32]);
        let (mode, chain) = (Mode::Live, ChainName::Tron);
        let token =
            |number: u8| TokenContract { contract: AddressBytes::of_20([number; 20]), decimals: 6 };
        let at = |height: i64| Cursor {
            anchor: Anchor { height, hash: Hash([height as u8; 32]) },
            block_time: height * 3,
            deprecation: None,
        };
        let identity = |tx: &mut dyn Tx| identity(tx, mode, chain).unwrap();
        assert_eq!(identity(&mut tx), None);
        assert!(!is_followed_with(&mut tx, mode, chain, &token(1).contract).unwrap());
        assert!(begin(&mut tx, &now, mode, chain, 3_448_148_188, token(1), &at(10)).unwrap());
        assert!(!begin(&mut tx, &now, mode, chain, 1, token(2), &at(11)).unwrap(), "once");
        assert_eq!(
            identity(&mut tx),
            Some(Identity { chain_id: 3_448_148_188, token: token(1).contract })
        );

        // A node that does not know the newly configured contract yet cannot move the cursor.
        assert!(follow_with(&mut tx, mode, chain, token(2)).unwrap());
        let advance = |tx: &mut dyn Tx, contract: &AddressBytes, from: i64| {
            advance(tx, &now, mode, chain, contract, at(from).anchor, &at(from + 1)).unwrap()
        };
        assert!(!advance(&mut tx, &token(1).contract, 10));
        assert!(advance(&mut tx, &token(2).contract, 10));
        assert_eq!(cursor(&mut tx, mode, chain).unwrap(), Some(at(11)));

        // The former contract is kept. If it is configured again, it gets the decimals given then.
        assert_eq!(tokens(&mut tx, mode, chain).unwrap(), [token(1), token(2)]);
        assert!(
            follow_with(&mut tx, mode, chain, TokenContract { decimals: 18, ..token(1) }).unwrap()
        );
        assert_eq!(
            tokens(&mut tx, mode, chain).unwrap(),
            [TokenContract { decimals: 18, ..token(1) }, token(2)]
        );
        assert!(is_followed_with(&mut tx, mode, chain, &token(1).contract).unwrap());
        assert_eq!(tokens(&mut tx, Mode::Test, chain).unwrap(), []);

        let last = TOKENS_COUNT_MAX as u8;
        for number in 3..=last {
            assert!(follow_with(&mut tx, mode, chain, token(number)).unwrap());
        }
        assert!(!follow_with(&mut tx, mode, chain, token(last + 1)).unwrap(), "there are too many");
        assert_eq!(identity(&mut tx).unwrap().token, token(last).contract);
        assert!(
            follow_with(&mut tx, mode, chain, token(2)).unwrap(),
            "a known one does not count again"
        );
    }
}
