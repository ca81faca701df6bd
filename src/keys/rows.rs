//! The rows of accounts and API keys.

use super::{Caller, KeyUse, Permissions};
use crate::kernel::id::kind;
use crate::kernel::{Id, Mode, Now, Scope, StoreError};
use crate::store::{Row, Tx};
use crate::values;

/// The caller whose key has this hash, even if the key is revoked or expired.
pub fn find_caller(tx: &mut dyn Tx, hash: &[u8; 32]) -> Result<Option<Caller>, StoreError> {
    let row = tx.row(
        "SELECT id, scope, permissions, expires_at, revoked_at, chaos_until FROM api_keys WHERE \
     secret_hash = ?1",
        values![hash],
    )?;
    let Some(mut row) = row else { return Ok(None) };
    let (key_id, scope) = (row.id()?, row.scope()?);
    let permissions = Permissions::from_text(&row.text()?);
    let (expires_at, revoked_at) = (row.int_or_null()?, row.int_or_null()?);
    // The column `chaos_until` is in milliseconds, in spite of its name.
    let chaos_until_milliseconds = row.int_or_null()?;
    let account = tx
        .row("SELECT suspended FROM accounts WHERE number = ?1", values![scope.account_number()])?;
    // A key without its account is refused like one of a suspended account.
    let is_suspended = account.map_or(Ok(true), |mut account| account.bool())?;
    Ok(Some(Caller {
        key_id,
        scope,
        permissions,
        expires_at,
        revoked_at,
        is_suspended,
        chaos_until_milliseconds,
    }))
}

/// The number of the account of this name. Makes the account if it does not exist.
pub fn ensure_account(tx: &mut dyn Tx, now: &mut Now, name: &str) -> Result<i64, StoreError> {
    if let Some(mut row) = tx.row("SELECT number FROM accounts WHERE name = ?1", values![name])? {
        return row.int();
    }
    let last = tx
        .row("SELECT MAX(number) FROM accounts", &[])?
        .map(|mut row| row.int_or_null())
        .transpose()?
        .flatten();
    let number = last.unwrap_or(0) + 1;
    let id: Id<kind::Account> = now.mint();
    tx.execute_one(
        "INSERT INTO accounts (number, id, name, suspended, clock_offset_seconds, created) VALUES \
         (?1, ?2, ?3, ?4, 0, ?5)",
        values![number, id, name, false, now.instant()],
    )?;
    Ok(number)
}

/// The name of an account.
pub fn account_name(tx: &mut dyn Tx, number: i64) -> Result<Option<String>, StoreError> {
    let row = tx.row("SELECT name FROM accounts WHERE number = ?1", values![number])?;
    row.map(|mut row| row.text()).transpose()
}

/// Both scopes of every account, for searches of all accounts. Accounts are few; their numbers
/// begin at 1 and have no gaps.
pub fn scopes(tx: &mut dyn Tx) -> Result<Vec<Scope>, StoreError> {
    let both = |number| [Mode::Test, Mode::Live].map(|mode| Scope::new(number, mode));
    Ok((1..=accounts_count(tx)?).flat_map(both).collect())
}

pub fn accounts_count(tx: &mut dyn Tx) -> Result<i64, StoreError> {
    tx.row("SELECT COUNT(*) FROM accounts", &[])?.map_or(Ok(0), |mut row| row.int())
}

/// Whether a request was ever made with any of the keys, as far as that is stored.
pub fn is_any_used(tx: &mut dyn Tx) -> Result<bool, StoreError> {
    let used = tx.row("SELECT 1 FROM api_keys WHERE used_at IS NOT NULL LIMIT 1", &[])?;
    Ok(used.is_some())
}

/// The names of all accounts and whether each is suspended, oldest first. The accounts' numbers
/// begin at 1 and have no gaps, so the n-th row is account n.
pub fn accounts(tx: &mut dyn Tx) -> Result<Vec<(String, bool)>, StoreError> {
    let rows = tx.rows("SELECT name, suspended FROM accounts ORDER BY number", &[])?;
    rows.into_iter().map(|mut row| Ok((row.text()?, row.bool()?))).collect()
}

/// The names of all accounts and how far the test clock of each is ahead of the store's clock, in
/// seconds; oldest first. As in [`accounts`], the n-th row is account n.
pub fn account_clocks(tx: &mut dyn Tx) -> Result<Vec<(String, i64)>, StoreError> {
    let rows = tx.rows("SELECT name, clock_offset_seconds FROM accounts ORDER BY number", &[])?;
    rows.into_iter().map(|mut row| Ok((row.text()?, row.int()?))).collect()
}

/// Locks an account's row until the commit. Transactions that call this for the same account run
/// one after another from here on; others do not wait. It is for limits that count rows, and for
/// rules that look at several rows and would miss what another transaction adds. On the embedded
/// store, where transactions always run one after another, it does nothing.
pub fn lock_account(tx: &mut dyn Tx, scope: Scope) -> Result<(), StoreError> {
    if !tx.is_shared() {
        return Ok(());
    }
    tx.execute(
        "UPDATE accounts SET suspended = suspended WHERE number = ?1",
        values![scope.account_number()],
    )
    .map(|_| ())
}

/// How far an account's test clock is ahead of the store's clock, in seconds; 0 in live mode.
pub fn clock_offset_seconds(tx: &mut dyn Tx, scope: Scope) -> Result<i64, StoreError> {
    if scope.mode() == Mode::Live {
        return Ok(0);
    }
    let row = tx.row(CLOCK_OFFSET, values![scope.account_number()])?;
    row.map_or(Ok(0), |mut row| row.int())
}

const CLOCK_OFFSET: &str = "SELECT clock_offset_seconds FROM accounts WHERE number = ?1";

/// Prefetches the query of [`clock_offset_seconds`], so that on the shared store its result is
/// there when it is needed.
pub fn prefetch_clock_offset(tx: &mut dyn Tx, scope: Scope) -> Result<(), StoreError> {
    if scope.mode() == Mode::Live {
        Ok(())
    } else {
        tx.prefetch(CLOCK_OFFSET, values![scope.account_number()])
    }
}

/// Sets how far an account's test clock is ahead. A test clock never goes back: a smaller offset
/// than the stored one is a conflict.
pub fn set_clock_offset_seconds(
    tx: &mut dyn Tx,
    scope: Scope,
    seconds: i64,
) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE accounts SET clock_offset_seconds = ?2 WHERE number = ?1 AND clock_offset_seconds \
         <= ?2",
        values![scope.account_number(), seconds],
    )
}

pub struct NewKey<'a> {
    pub hash: [u8; 32],
    /// The beginning and the last four characters of the key's text, for people who look for it.
    pub hint: &'a str,
    pub scope: Scope,
    pub permissions: &'a Permissions,
    pub expires_at: Option<i64>,
}

pub fn insert(
    tx: &mut dyn Tx,
    now: &mut Now,
    key: &NewKey<'_>,
) -> Result<Id<kind::ApiKey>, StoreError> {
    let id = now.mint();
    tx.execute_one(
        "INSERT INTO api_keys (secret_hash, id, scope, hint, permissions, created, expires_at, \
         revoked_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, NULL)",
        values![
            &key.hash,
            id,
            key.scope,
            key.hint,
            &key.permissions.to_text(),
            now.instant(),
            key.expires_at
        ],
    )?;
    Ok(id)
}

/// A key as the operator sees it.
pub struct KeyLine {
    pub id: Id<kind::ApiKey>,
    pub account: String,
    pub mode: Mode,
    pub hint: String,
    /// As [`Permissions::to_text`] wrote them: empty for all permissions.
    pub permissions: String,
    pub created: i64,
    pub expires_at: Option<i64>,
    pub revoked_at: Option<i64>,
    /// When it was last used, as far as that is stored.
    pub used_at: Option<i64>,
}

/// All keys, oldest first. In the query, `scope / 2` is the account's number (see [`Scope`]).
pub fn list(tx: &mut dyn Tx) -> Result<Vec<KeyLine>, StoreError> {
    let rows = tx.rows(
        "SELECT k.id, a.name, k.scope, k.hint, k.permissions, k.created, k.expires_at, \
         k.revoked_at, k.used_at FROM api_keys k \
         JOIN accounts a ON a.number = k.scope / 2 ORDER BY k.id",
        &[],
    )?;
    rows.into_iter()
        .map(|mut row| {
            Ok(KeyLine {
                id: row.id()?,
                account: row.text()?,
                mode: row.scope()?.mode(),
                hint: row.text()?,
                permissions: row.text()?,
                created: row.int()?,
                expires_at: row.int_or_null()?,
                revoked_at: row.int_or_null()?,
                used_at: row.int_or_null()?,
            })
        })
        .collect()
}

/// Stores when a key was last used, unless a later time is stored.
pub fn note_use(tx: &mut dyn Tx, (key_id, at): KeyUse) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE api_keys SET used_at = ?2 WHERE id = ?1 AND (used_at IS NULL OR used_at < ?2)",
        values![key_id, at],
    )
    .map(|_| ())
}

/// Revokes a key; returns whether there was such a key that was not revoked yet.
pub fn revoke(tx: &mut dyn Tx, now: &Now, id: Id<kind::ApiKey>) -> Result<bool, StoreError> {
    let changed = tx.execute(
        "UPDATE api_keys SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL",
        values![id, now.instant()],
    )?;
    Ok(changed == 1)
}

/// Suspends an account, or resumes it. `false` if there is no such account, or nothing changed.
pub fn set_suspended(tx: &mut dyn Tx, name: &str, is_suspended: bool) -> Result<bool, StoreError> {
    let sql = "UPDATE accounts SET suspended = ?2 WHERE name = ?1 AND suspended <> ?2";
    Ok(tx.execute(sql, values![name, is_suspended])? == 1)
}

/// Number and name of each suspended account.
pub fn suspended(tx: &mut dyn Tx) -> Result<Vec<(i64, String)>, StoreError> {
    let sql = "SELECT number, name FROM accounts WHERE suspended = ?1 ORDER BY number";
    let read = |mut row: Row| Ok((row.int()?, row.text()?));
    tx.rows(sql, values![true])?.into_iter().map(read).collect()
}

/// Whether the account of this name is suspended; `None` where there is none.
pub fn is_suspended(tx: &mut dyn Tx, name: &str) -> Result<Option<bool>, StoreError> {
    let row = tx.row("SELECT suspended FROM accounts WHERE name = ?1", values![name])?;
    row.map(|mut row| row.bool()).transpose()
}

/// When the account was made, in Unix seconds.
pub fn account_created(tx: &mut dyn Tx, number: i64) -> Result<Option<i64>, StoreError> {
    let row = tx.row("SELECT created FROM accounts WHERE number = ?1", values![number])?;
    row.map(|mut row| row.int()).transpose()
}
