//! The rows of requests for a second person.

use super::{ApprovalRequest, Cause, RequestStatus};
use crate::kernel::StoreError;
use crate::store::{Row, Tx};
use crate::values;

const COLUMNS: &str = "number, subject, word, cause, status, requested_by, requester, reason, \
    requested_at, decider, decided_at, asked";

fn read(mut row: Row) -> Result<ApprovalRequest, StoreError> {
    Ok(ApprovalRequest {
        number: row.int()?,
        subject: row.text()?,
        word: row.text()?,
        cause: row.word(Cause::parse)?,
        status: row.word(RequestStatus::parse)?,
        requested_by: row.int()?,
        requester: row.text()?,
        reason: row.text()?,
        requested_at: row.int()?,
        decider: row.text_or_null()?,
        decided_at: row.int_or_null()?,
        asked: row.text()?,
    })
}

/// The highest number of a request; 0 if there is none.
pub fn last_number(tx: &mut dyn Tx) -> Result<i64, StoreError> {
    let last = tx.row("SELECT MAX(number) FROM decision_requests", &[])?;
    Ok(last.map_or(Ok(None), |mut row| row.int_or_null())?.unwrap_or(0))
}

pub fn insert(tx: &mut dyn Tx, request: &ApprovalRequest) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO decision_requests (number, subject, word, cause, status, requested_by, \
         requester, reason, requested_at, asked) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        values![
            request.number,
            &request.subject,
            &request.word,
            request.cause.as_str(),
            request.status.as_str(),
            request.requested_by,
            &request.requester,
            &request.reason,
            request.requested_at,
            &request.asked
        ],
    )
}

pub fn find(tx: &mut dyn Tx, number: i64) -> Result<Option<ApprovalRequest>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM decision_requests WHERE number = ?1");
    tx.row(&sql, values![number])?.map(read).transpose()
}

/// The pending request about a subject.
pub fn pending_about(
    tx: &mut dyn Tx,
    subject: &str,
) -> Result<Option<ApprovalRequest>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM decision_requests WHERE subject = ?1 AND status = 'pending'"
    );
    tx.row(&sql, values![subject])?.map(read).transpose()
}

/// The requests of one operator that wait for a second person, oldest first.
pub fn pending_of(tx: &mut dyn Tx, requested_by: i64) -> Result<Vec<ApprovalRequest>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM decision_requests WHERE status = 'pending' AND requested_by = ?1 \
         ORDER BY number"
    );
    tx.rows(&sql, values![requested_by])?.into_iter().map(read).collect()
}

/// The numbers of all requests that wait for a second person, oldest first.
pub fn pending_numbers(tx: &mut dyn Tx) -> Result<Vec<i64>, StoreError> {
    let sql = "SELECT number FROM decision_requests WHERE status = 'pending' ORDER BY number";
    tx.rows(sql, &[])?.into_iter().map(|mut row| row.int()).collect()
}

/// Requests that wait for a second person, oldest first.
pub fn pending(tx: &mut dyn Tx, rows_max: i64) -> Result<Vec<ApprovalRequest>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM decision_requests WHERE status = 'pending' ORDER BY number LIMIT ?1"
    );
    tx.rows(&sql, values![rows_max])?.into_iter().map(read).collect()
}

/// Requests of every status, newest first.
pub fn newest(tx: &mut dyn Tx, rows_max: i64) -> Result<Vec<ApprovalRequest>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM decision_requests ORDER BY number DESC LIMIT ?1");
    tx.rows(&sql, values![rows_max])?.into_iter().map(read).collect()
}

/// Ends a pending request; `false` if it is not pending. `decider` is the name of who approved or
/// rejected it; `None` if nobody did. `instant` is in Unix seconds.
pub fn close(
    tx: &mut dyn Tx,
    number: i64,
    status: RequestStatus,
    decider: Option<&str>,
    instant: i64,
) -> Result<bool, StoreError> {
    let closed = tx.execute(
        "UPDATE decision_requests SET status = ?2, decider = ?3, decided_at = ?4 WHERE \
         number = ?1 AND status = 'pending'",
        values![number, status.as_str(), decider, instant],
    )?;
    Ok(closed > 0)
}
