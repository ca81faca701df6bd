//! The rows of decisions, and the queries for who may make them.

use super::Decision;
use crate::kernel::{DecidedBy, Role, StoreError};
use crate::store::{Row, Tx};
use crate::values;

const COLUMNS: &str = "id, subject, decision, actor, reason, approved_by, decided_at";

fn read(mut row: Row) -> Result<Decision, StoreError> {
    let (id, subject, decision) = (row.id()?, row.text()?, row.text()?);
    let by = DecidedBy::new(&row.text()?, &row.text()?).map_err(|_| {
        StoreError::Broken(
            "a decision's actor or reason is too long or has a control character".into(),
        )
    })?;
    // Where the decision was made (`via`) is only in the audit log.
    let by = by.approved(&row.text()?);
    Ok(Decision { id, subject, decision, by, decided_at: row.int()? })
}

pub fn insert(tx: &mut dyn Tx, decision: &Decision) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO decisions (id, subject, decision, actor, reason, approved_by, decided_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        values![
            decision.id,
            &decision.subject,
            &decision.decision,
            decision.by.actor(),
            decision.by.reason(),
            decision.by.approved_by(),
            decision.decided_at,
        ],
    )
}

/// Whether this was ever decided about the subject.
pub fn was_decided(tx: &mut dyn Tx, subject: &str, decision: &str) -> Result<bool, StoreError> {
    let sql = "SELECT id FROM decisions WHERE subject = ?1 AND decision = ?2 LIMIT 1";
    Ok(tx.row(sql, values![subject, decision])?.is_some())
}

/// The first `rows_max` decisions about one subject, oldest first.
pub fn of_subject(
    tx: &mut dyn Tx,
    subject: &str,
    rows_max: i64,
) -> Result<Vec<Decision>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM decisions WHERE subject = ?1 ORDER BY id LIMIT ?2");
    tx.rows(&sql, values![subject, rows_max])?.into_iter().map(read).collect()
}

/// The last `rows_max` decisions about one subject, newest first.
pub fn newest_of_subject(
    tx: &mut dyn Tx,
    subject: &str,
    rows_max: i64,
) -> Result<Vec<Decision>, StoreError> {
    let sql =
        format!("SELECT {COLUMNS} FROM decisions WHERE subject = ?1 ORDER BY id DESC LIMIT ?2");
    tx.rows(&sql, values![subject, rows_max])?.into_iter().map(read).collect()
}

/// The last decision of the kind `decision` about a subject.
pub fn last_of(
    tx: &mut dyn Tx,
    subject: &str,
    decision: &str,
) -> Result<Option<Decision>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM decisions WHERE subject = ?1 AND decision = ?2 ORDER BY id DESC \
         LIMIT 1"
    );
    tx.row(&sql, values![subject, decision])?.map(read).transpose()
}

/// The last `rows_max` decisions, newest first.
pub fn newest(tx: &mut dyn Tx, rows_max: i64) -> Result<Vec<Decision>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM decisions ORDER BY id DESC LIMIT ?1");
    tx.rows(&sql, values![rows_max])?.into_iter().map(read).collect()
}

/// Whether somebody was ever created with `hundi operators create`.
pub fn is_any_operator(tx: &mut dyn Tx) -> Result<bool, StoreError> {
    Ok(tx.row("SELECT number FROM operators LIMIT 1", &[])?.is_some())
}

/// The role of the operator with this name; `None` if there is none, or if they are disabled.
pub fn role_of(tx: &mut dyn Tx, name: &str) -> Result<Option<Role>, StoreError> {
    let found = tx.row(
        "SELECT role FROM operators WHERE name = ?1 AND is_disabled = ?2",
        values![&name.to_ascii_lowercase(), false],
    )?;
    found.map(|mut row| row.word(Role::parse)).transpose()
}

/// Whether there is an administrator who is not disabled.
pub fn is_any_admin(tx: &mut dyn Tx) -> Result<bool, StoreError> {
    let found = tx.row(
        "SELECT number FROM operators WHERE role = 'admin' AND is_disabled = ?1 LIMIT 1",
        values![false],
    )?;
    Ok(found.is_some())
}
