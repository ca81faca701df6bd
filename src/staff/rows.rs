//! The rows of operators, their recovery codes, sessions and links to a provider, and of failed
//! attempts to sign in.
//!
//! The table `operator_identities` has the links of `provider_links`. It has nothing to do with the
//! type [`OperatorIdentity`].

use std::collections::BTreeSet;

use super::session::Session;
use super::{Operator, OperatorIdentity, Role, Theme};
use crate::kernel::StoreError;
use crate::store::{Row, Tx};
use crate::values;

const OPERATOR: &str = "number, name, role, password_hash, is_disabled, totp_secret, \
    is_totp_confirmed, next_totp_secret, totp_step, language, theme, created";

fn operator(mut row: Row) -> Result<Operator, StoreError> {
    Ok(Operator {
        identity: OperatorIdentity {
            number: row.int()?,
            name: row.text()?,
            role: row.word(Role::parse)?,
        },
        password_hash: row.text()?,
        is_disabled: row.bool()?,
        totp_secret: row.bytes_or_null()?,
        is_totp_confirmed: row.bool()?,
        next_totp_secret: row.bytes_or_null()?,
        totp_step: row.int()?,
        language: row.text()?,
        theme: row.word(Theme::parse)?,
        created: row.int()?,
    })
}

pub fn find_by_name(tx: &mut dyn Tx, name: &str) -> Result<Option<Operator>, StoreError> {
    let sql = format!("SELECT {OPERATOR} FROM operators WHERE name = ?1");
    tx.row(&sql, values![name])?.map(operator).transpose()
}

pub fn find(tx: &mut dyn Tx, number: i64) -> Result<Option<Operator>, StoreError> {
    let sql = format!("SELECT {OPERATOR} FROM operators WHERE number = ?1");
    tx.row(&sql, values![number])?.map(operator).transpose()
}

/// All operators, oldest first; they are few.
pub fn all(tx: &mut dyn Tx) -> Result<Vec<Operator>, StoreError> {
    let sql = format!("SELECT {OPERATOR} FROM operators ORDER BY number");
    tx.rows(&sql, &[])?.into_iter().map(operator).collect()
}

pub fn last_number(tx: &mut dyn Tx) -> Result<i64, StoreError> {
    let last = tx.row("SELECT MAX(number) FROM operators", &[])?;
    Ok(last.map_or(Ok(None), |mut row| row.int_or_null())?.unwrap_or(0))
}

pub fn insert(
    tx: &mut dyn Tx,
    number: i64,
    name: &str,
    role: Role,
    password_hash: &str,
    created: i64,
) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO operators (number, name, role, password_hash, is_disabled, totp_secret, \
         is_totp_confirmed, totp_step, language, theme, created) VALUES (?1, ?2, ?3, ?4, ?5, \
         NULL, ?5, 0, '', 'auto', ?6)",
        values![number, name, role.as_str(), password_hash, false, created],
    )
}

pub fn set_password(tx: &mut dyn Tx, number: i64, password_hash: &str) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE operators SET password_hash = ?2 WHERE number = ?1",
        values![number, password_hash],
    )
}

pub fn set_disabled(tx: &mut dyn Tx, number: i64, is_disabled: bool) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE operators SET is_disabled = ?2 WHERE number = ?1",
        values![number, is_disabled],
    )
}

/// Stores the language and the theme that an operator chose for the console.
pub fn set_preferences(
    tx: &mut dyn Tx,
    number: i64,
    language: &str,
    theme: Theme,
) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE operators SET language = ?2, theme = ?3 WHERE number = ?1",
        values![number, language, theme.as_str()],
    )
}

pub fn remove_second_factor(tx: &mut dyn Tx, number: i64) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE operators SET totp_secret = NULL, is_totp_confirmed = ?2, totp_step = 0, \
         next_totp_secret = NULL WHERE number = ?1",
        values![number, false],
    )?;
    remove_recovery_codes(tx, number)
}

fn remove_recovery_codes(tx: &mut dyn Tx, number: i64) -> Result<(), StoreError> {
    tx.execute("DELETE FROM operator_recovery_codes WHERE operator_number = ?1", values![number])
        .map(|_| ())
}

pub struct NewSession<'a> {
    pub token_hash: [u8; 32],
    pub operator_number: i64,
    pub created: i64,
    pub ends_at: i64,
    pub address: &'a str,
    pub browser: &'a str,
    pub has_provider_factor: bool,
}

pub fn insert_session(tx: &mut dyn Tx, new: &NewSession<'_>) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO operator_sessions (token_hash, operator_number, created, used_at, ends_at, \
         address, browser, has_other_factor) VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6, ?7)",
        values![
            &new.token_hash,
            new.operator_number,
            new.created,
            new.ends_at,
            new.address,
            new.browser,
            new.has_provider_factor
        ],
    )
}

const SESSION: &str = "SELECT o.number, o.name, o.role, s.token_hash, s.created, s.used_at, \
    s.ends_at, s.address, s.browser, o.language, o.theme, o.is_totp_confirmed, s.has_other_factor \
    FROM operator_sessions s JOIN operators o ON o.number = s.operator_number";

fn session(mut row: Row) -> Result<Session, StoreError> {
    Ok(Session {
        operator: OperatorIdentity {
            number: row.int()?,
            name: row.text()?,
            role: row.word(Role::parse)?,
        },
        token_hash: row.array()?,
        created: row.int()?,
        used_at: row.int()?,
        ends_at: row.int()?,
        address: row.text()?,
        browser: row.text()?,
        language: row.text()?,
        theme: row.word(Theme::parse)?,
        // A factor of this service, or the provider's. `|` and not `||`, to read both columns.
        has_second_factor: row.bool()? | row.bool()?,
    })
}

/// The session with a token's hash, unless its operator is disabled. It may have ended.
pub fn find_session(tx: &mut dyn Tx, token_hash: &[u8; 32]) -> Result<Option<Session>, StoreError> {
    let sql = format!("{SESSION} WHERE s.token_hash = ?1 AND o.is_disabled = ?2");
    tx.row(&sql, values![token_hash, false])?.map(session).transpose()
}

/// An operator's sessions, oldest first, ended ones too.
pub fn sessions_of(tx: &mut dyn Tx, operator_number: i64) -> Result<Vec<Session>, StoreError> {
    let sql = format!("{SESSION} WHERE s.operator_number = ?1 ORDER BY s.created, s.token_hash");
    tx.rows(&sql, values![operator_number])?.into_iter().map(session).collect()
}

pub fn touch_session(
    tx: &mut dyn Tx,
    token_hash: &[u8; 32],
    instant: i64,
) -> Result<(), StoreError> {
    // The session may have ended meanwhile, so it is no conflict if no row changes.
    tx.execute(
        "UPDATE operator_sessions SET used_at = ?2 WHERE token_hash = ?1 AND used_at < ?2",
        values![token_hash, instant],
    )
    .map(|_| ())
}

/// Ends one session, if it is this operator's. Answers whether it did.
pub fn end_session(
    tx: &mut dyn Tx,
    operator_number: i64,
    token_hash: &[u8],
) -> Result<bool, StoreError> {
    let ended = tx.execute(
        "DELETE FROM operator_sessions WHERE token_hash = ?1 AND operator_number = ?2",
        values![token_hash, operator_number],
    )?;
    Ok(ended > 0)
}

pub fn end_sessions_of(tx: &mut dyn Tx, operator_number: i64) -> Result<(), StoreError> {
    tx.execute("DELETE FROM operator_sessions WHERE operator_number = ?1", values![operator_number])
        .map(|_| ())
}

/// How many attempts of a subject failed, and when the first of them did. `subject_hash` stands for
/// a name or an address (`sign_in.rs`); the subject of a link is something else.
pub fn failures(
    tx: &mut dyn Tx,
    subject_hash: &[u8; 32],
) -> Result<Option<(i64, i64)>, StoreError> {
    let row = tx.row(
        "SELECT count, first_at FROM sign_in_failures WHERE subject_hash = ?1",
        values![subject_hash],
    )?;
    row.map(|mut row| Ok((row.int()?, row.int()?))).transpose()
}

/// Counts one more failure of a subject. Answers `false`, and does not count it, if `failures_max`
/// failures are counted already. A count that began at `window_begins_at` or earlier begins again
/// at one. One statement judges and counts, so no failure is lost if two transactions meet.
pub fn count_failure(
    tx: &mut dyn Tx,
    subject_hash: &[u8; 32],
    failures_max: i64,
    instant: i64,
    window_begins_at: i64,
) -> Result<bool, StoreError> {
    let counted = tx.execute(
        "INSERT INTO sign_in_failures AS f (subject_hash, count, first_at) VALUES (?1, 1, ?2) ON \
         CONFLICT (subject_hash) DO UPDATE SET count = CASE WHEN f.first_at > ?3 THEN f.count + 1 \
         ELSE 1 END, first_at = CASE WHEN f.first_at > ?3 THEN f.first_at ELSE ?2 END WHERE \
         f.first_at <= ?3 OR f.count < ?4",
        values![subject_hash, instant, window_begins_at, failures_max],
    )?;
    Ok(counted > 0)
}

/// Takes back one failure of a subject, unless its count has begun again since `first_at`.
pub fn take_back_failure(
    tx: &mut dyn Tx,
    subject_hash: &[u8; 32],
    first_at: i64,
) -> Result<(), StoreError> {
    let by = values![subject_hash, first_at];
    tx.execute(
        "UPDATE sign_in_failures SET count = count - 1 WHERE subject_hash = ?1 AND first_at = ?2",
        by,
    )?;
    tx.execute(
        "DELETE FROM sign_in_failures WHERE subject_hash = ?1 AND first_at = ?2 AND count <= 0",
        by,
    )
    .map(|_| ())
}

pub fn forget_failures(tx: &mut dyn Tx, subject_hash: &[u8; 32]) -> Result<(), StoreError> {
    tx.execute("DELETE FROM sign_in_failures WHERE subject_hash = ?1", values![subject_hash])
        .map(|_| ())
}

/// Gives an operator a secret that is not confirmed yet.
pub fn set_next_totp_secret(tx: &mut dyn Tx, number: i64, sealed: &[u8]) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE operators SET next_totp_secret = ?2 WHERE number = ?1",
        values![number, sealed],
    )
}

/// Stores a confirmed secret. An earlier one is replaced, and its recovery codes end with it.
pub fn confirm_totp(
    tx: &mut dyn Tx,
    number: i64,
    sealed: &[u8],
    step: i64,
) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE operators SET totp_secret = ?2, is_totp_confirmed = ?3, totp_step = ?4, \
         next_totp_secret = NULL WHERE number = ?1",
        values![number, sealed, true, step],
    )?;
    remove_recovery_codes(tx, number)
}

/// Accepts the code of a step, unless it or a later one was accepted before.
pub fn take_totp_step(tx: &mut dyn Tx, number: i64, step: i64) -> Result<bool, StoreError> {
    let taken = tx.execute(
        "UPDATE operators SET totp_step = ?2 WHERE number = ?1 AND totp_step < ?2",
        values![number, step],
    )?;
    Ok(taken > 0)
}

pub fn insert_recovery_code(
    tx: &mut dyn Tx,
    number: i64,
    code_hash: &[u8; 32],
) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO operator_recovery_codes (operator_number, code_hash) VALUES (?1, ?2)",
        values![number, code_hash],
    )
}

/// Uses up a recovery code; `false` if there is no such code.
pub fn take_recovery_code(
    tx: &mut dyn Tx,
    number: i64,
    code_hash: &[u8; 32],
) -> Result<bool, StoreError> {
    let taken = tx.execute(
        "DELETE FROM operator_recovery_codes WHERE operator_number = ?1 AND code_hash = ?2",
        values![number, code_hash],
    )?;
    Ok(taken > 0)
}

/// How many recovery codes an operator has left.
pub fn recovery_codes_count(tx: &mut dyn Tx, number: i64) -> Result<i64, StoreError> {
    let row = tx.row(
        "SELECT COUNT(*) FROM operator_recovery_codes WHERE operator_number = ?1",
        values![number],
    )?;
    row.map_or(Ok(0), |mut row| row.int())
}

/// Removes sessions whose `ends_at` is before `sessions_before`, and counts of failures that began
/// before `failures_before`.
pub fn purge(
    tx: &mut dyn Tx,
    sessions_before: i64,
    failures_before: i64,
) -> Result<(), StoreError> {
    tx.execute("DELETE FROM operator_sessions WHERE ends_at < ?1", values![sessions_before])?;
    tx.execute("DELETE FROM sign_in_failures WHERE first_at < ?1", values![failures_before])
        .map(|_| ())
}

/// The issuer and the subject that an operator is linked to.
pub fn link_of(tx: &mut dyn Tx, number: i64) -> Result<Option<(String, String)>, StoreError> {
    let row = tx.row(
        "SELECT issuer, subject FROM operator_identities WHERE operator_number = ?1",
        values![number],
    )?;
    row.map(|mut row| Ok((row.text()?, row.text()?))).transpose()
}

/// The numbers of operators who are linked to a person at a provider.
pub fn linked(tx: &mut dyn Tx) -> Result<BTreeSet<i64>, StoreError> {
    let rows = tx.rows("SELECT operator_number FROM operator_identities", &[])?;
    rows.into_iter().map(|mut row| row.int()).collect()
}

/// The operator who is linked to a person at a provider.
pub fn find_linked(
    tx: &mut dyn Tx,
    issuer: &str,
    subject: &str,
) -> Result<Option<Operator>, StoreError> {
    let row = tx.row(
        "SELECT operator_number FROM operator_identities WHERE issuer = ?1 AND subject = ?2",
        values![issuer, subject],
    )?;
    let number = row.map(|mut row| row.int()).transpose()?;
    number.map_or(Ok(None), |number| find(tx, number))
}

pub fn insert_link(
    tx: &mut dyn Tx,
    number: i64,
    issuer: &str,
    subject: &str,
    created: i64,
) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO operator_identities (operator_number, issuer, subject, created) VALUES (?1, \
         ?2, ?3, ?4)",
        values![number, issuer, subject, created],
    )
}

/// Ends the link of an operator. Answers whether there was one.
pub fn remove_link(tx: &mut dyn Tx, number: i64) -> Result<bool, StoreError> {
    let removed =
        tx.execute("DELETE FROM operator_identities WHERE operator_number = ?1", values![number])?;
    Ok(removed > 0)
}
