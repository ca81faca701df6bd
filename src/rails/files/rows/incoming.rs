//! Files that came from the bank, and the heads of its statements.

use crate::kernel::{Money, Now, StoreError};
use crate::rails::files::reports::{AccountReport, ReportKind};
use crate::rails::files::values::Day;
use crate::store::Tx;
use crate::values;

/// The most statements of the same identity that a new one is compared with.
const STATEMENTS_COMPARED_MAX: i64 = 1_000;

crate::string_enum!(
    /// How far a file from the bank has come.
    FileStatus { Reading "reading", Applied "applied" }
);

/// How many reports of one file had which effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Changed a payout.
    pub applied: i64,
    /// Changed nothing: it was known already, or does not count yet.
    pub ignored: i64,
    /// Was matched to no payment that was sent.
    pub unknown: i64,
}

pub fn file_status(tx: &mut dyn Tx, sha256: &[u8; 32]) -> Result<Option<FileStatus>, StoreError> {
    let row = tx.row("SELECT status FROM bank_files WHERE sha256 = ?1", values![sha256])?;
    row.map(|mut row| row.word(FileStatus::parse)).transpose()
}

/// Whether a file of this kind with this identity is in the journal. Ask before [`begin_file`],
/// which adds the file itself.
pub fn is_incoming_known(
    tx: &mut dyn Tx,
    kind: ReportKind,
    message_id: &str,
) -> Result<bool, StoreError> {
    let sql = "SELECT sha256 FROM bank_files WHERE kind = ?1 AND message_id = ?2";
    Ok(tx.row(sql, values![kind.as_str(), message_id])?.is_some())
}

/// Adds a file from the bank with the status `reading`. The hash of its bytes is its key.
pub fn begin_file(
    tx: &mut dyn Tx,
    now: &Now,
    sha256: &[u8; 32],
    kind: ReportKind,
    message_id: &str,
) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO bank_files (sha256, kind, message_id, status, applied_count, ignored_count, \
         unknown_count, received_at) \
         VALUES (?1, ?2, ?3, 'reading', 0, 0, 0, ?4)",
        values![sha256, kind.as_str(), message_id, now.instant()],
    )
}

/// Notes that a file is applied. If a worker's lease ended while it read the file, its successor
/// may read it too; the counts of the first to finish stay.
pub fn end_file(tx: &mut dyn Tx, sha256: &[u8; 32], counts: Counts) -> Result<(), StoreError> {
    let sql = "UPDATE bank_files SET status = 'applied', applied_count = ?2, ignored_count = ?3, \
               unknown_count = ?4 WHERE sha256 = ?1 AND status = 'reading'";
    let counts = values![sha256, counts.applied, counts.ignored, counts.unknown];
    tx.execute(sql, counts)?;
    Ok(())
}

/// Stores the head of a statement. However often a file is read, each of its statements is stored
/// once; `number` says which one of the file it is.
pub fn insert_statement(
    tx: &mut dyn Tx,
    sha256: &[u8; 32],
    number: i64,
    report: &AccountReport,
) -> Result<(), StoreError> {
    let (opening, closing) = (report.opening, report.closing);
    let text = |balance: Option<(Money, Day)>| balance.map(|(_, day)| day.to_string());
    tx.execute(
        "INSERT INTO bank_statements (sha256, number, statement_id, sequence, opening_units, \
         opening_day, closing_units, closing_day, page) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (sha256, number) DO NOTHING",
        values![
            sha256,
            number,
            &report.id,
            report.sequence,
            opening.map(|(money, _)| money.units),
            &text(opening),
            closing.map(|(money, _)| money.units),
            &text(closing),
            report.page,
        ],
    )?;
    Ok(())
}

/// Whether another file brought the same statement or page: the same identity and number, between
/// the same balances.
pub fn is_statement_known(
    tx: &mut dyn Tx,
    sha256: &[u8; 32],
    report: &AccountReport,
) -> Result<bool, StoreError> {
    let sql = "SELECT sha256, sequence, page, opening_units, closing_units, closing_day FROM \
               bank_statements WHERE statement_id = ?1 LIMIT ?2";
    for mut row in tx.rows(sql, values![&report.id, STATEMENTS_COMPARED_MAX])? {
        let other = row.bytes()?;
        let found = (
            row.int_or_null()?,
            row.int_or_null()?.unwrap_or(1),
            row.int_or_null()?,
            row.int_or_null()?,
            row.text_or_null()?,
        );
        let same = (
            report.sequence,
            report.page,
            report.opening.map(|(money, _)| money.units),
            report.closing.map(|(money, _)| money.units),
            report.closing.map(|(_, day)| day.to_string()),
        );
        // With neither a number nor a closing balance, two statements cannot be told apart.
        let is_distinguishable = report.sequence.is_some() || report.closing.is_some();
        if other != sha256 && is_distinguishable && found == same {
            return Ok(true);
        }
    }
    Ok(false)
}
