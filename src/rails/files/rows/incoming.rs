//! Files that came from the bank, and the heads of its statements.

use crate::kernel::id::kind;
use crate::kernel::{Id, Money, Now, StoreError};
use crate::rails::files::reports::{AccountReport, ReportKind, Sign};
use crate::rails::files::values::Day;
use crate::store::Tx;
use crate::values;

crate::string_enum!(
    /// How far a file from the bank has come.
    FileStatus { Reading "reading", Applied "applied" }
);

/// How many reports of one file had which effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Changed a payout, or made it wait for the operator.
    pub applied: i64,
    /// Changed no payout, for example because they were known already or do not count yet.
    pub ignored: i64,
    /// Could not be matched to one payout; [`super::Matching`] has the reasons.
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
/// may read the file too. The counts of the worker that finishes first stay.
pub fn end_file(tx: &mut dyn Tx, sha256: &[u8; 32], counts: Counts) -> Result<(), StoreError> {
    let sql = "UPDATE bank_files SET status = 'applied', applied_count = ?2, ignored_count = ?3, \
               unknown_count = ?4 WHERE sha256 = ?1 AND status = 'reading'";
    let counts = values![sha256, counts.applied, counts.ignored, counts.unknown];
    tx.execute(sql, counts)?;
    Ok(())
}

/// Stores the head of a statement, unless it is stored already. `number` counts the statements of
/// the file from 0; the bank's own number is `report.sequence`.
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

/// Whether another file brought the same statement: with the same identity, `sequence` and page,
/// between the same balances.
pub fn is_statement_known(
    tx: &mut dyn Tx,
    sha256: &[u8; 32],
    report: &AccountReport,
) -> Result<bool, StoreError> {
    Ok(same_statement(tx, sha256, report)?.is_some())
}

/// Whether another file brought the same statement with other lines: more or fewer, or of other
/// amounts, payouts or references.
pub fn has_other_lines(
    tx: &mut dyn Tx,
    sha256: &[u8; 32],
    report: &AccountReport,
) -> Result<bool, StoreError> {
    let Some((known, number)) = same_statement(tx, sha256, report)? else { return Ok(false) };
    let sql = "SELECT units, sign, payout_id, reference FROM bank_statement_lines WHERE sha256 = \
               ?1 AND statement_number = ?2 ORDER BY number";
    let rows = tx.rows(sql, values![known.as_slice(), number])?;
    if rows.len() != report.lines.len() {
        return Ok(true);
    }
    for (mut row, line) in rows.into_iter().zip(&report.lines) {
        let (units, sign) = (row.int()?, row.word(Sign::parse)?);
        let payout_id: Option<Id<kind::Payout>> = row.id_or_null()?;
        let reference = row.text_or_null()?;
        // Payouts are compared only if the new line names one: the operator may have matched the
        // stored line.
        let is_of_other = line
            .end_to_end_id
            .zip(payout_id)
            .is_some_and(|(named, known)| named.payout_id() != known);
        let mut references = line.references.all().chain(line.other_reference.as_deref());
        let is_under_other = reference
            .is_some_and(|known| !references.any(|text| text.eq_ignore_ascii_case(&known)));
        if units != line.amount.units || sign != line.sign || is_of_other || is_under_other {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The file that brought the same statement or page, and its number in that file.
fn same_statement(
    tx: &mut dyn Tx,
    sha256: &[u8; 32],
    report: &AccountReport,
) -> Result<Option<(Vec<u8>, i64)>, StoreError> {
    // With neither `sequence` nor a closing balance, two statements cannot be told apart.
    if report.sequence.is_none() && report.closing.is_none() {
        return Ok(None);
    }
    // A bank may give all of its statements the same identity, so the query compares more.
    let sql = "SELECT sha256, number FROM bank_statements WHERE statement_id = ?1 AND sha256 <> \
               ?2 AND COALESCE(page, 1) = ?3 AND sequence IS NOT DISTINCT FROM ?4 AND \
               opening_units IS NOT DISTINCT FROM ?5 AND closing_units IS NOT DISTINCT FROM ?6 \
               AND closing_day IS NOT DISTINCT FROM ?7 LIMIT 1";
    let found = tx.row(
        sql,
        values![
            &report.id,
            sha256,
            report.page,
            report.sequence,
            report.opening.map(|(money, _)| money.units),
            report.closing.map(|(money, _)| money.units),
            &report.closing.map(|(_, day)| day.to_string()),
        ],
    )?;
    found.map(|mut row| Ok((row.bytes()?, row.int()?))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Currency;
    use crate::store::migrate::migrate;
    use crate::store::sqlite::SqliteTx;

    #[test]
    fn a_statement_is_found_among_many_of_the_same_identity() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let mut tx = SqliteTx::new(&connection);
        migrate(&mut tx).unwrap();
        let day = Day::parse("2026-11-21").unwrap();
        let balance = |units: i64| Some((Money::new(units, Currency::Inr), day));
        let statement = |sequence: Option<i64>, units: i64| AccountReport {
            id: "STATEMENT".into(),
            sequence,
            page: 1,
            account_number: String::new(),
            opening: balance(units - 1),
            closing: balance(units),
            lines: Vec::new(),
        };
        let sha256 = |number: i64| {
            let mut sha256 = [0; 32];
            sha256[..8].copy_from_slice(&number.to_be_bytes());
            sha256
        };
        for number in 0..3_000 {
            let sequence = (number % 2 == 0).then_some(number);
            insert_statement(&mut tx, &sha256(number), 0, &statement(sequence, number)).unwrap();
        }
        let mut is_known = |number: i64, report: &AccountReport| {
            is_statement_known(&mut tx, &sha256(number), report).unwrap()
        };
        for number in (0..3_000).step_by(97) {
            let same = statement((number % 2 == 0).then_some(number), number);
            assert!(is_known(9_999, &same), "{number}");
            assert!(!is_known(number, &same), "{number}: only another file brings it again");
        }
        for other in [
            statement(Some(1), 1),
            statement(None, 2),
            statement(Some(2), 3),
            AccountReport { page: 2, ..statement(Some(2), 2) },
            AccountReport { opening: None, ..statement(Some(2), 2) },
            AccountReport { closing: None, ..statement(Some(2), 2) },
            AccountReport { id: "ANOTHER".into(), ..statement(Some(2), 2) },
        ] {
            assert!(!is_known(9_999, &other), "{other:?}");
        }
    }

    #[test]
    fn statements_that_cannot_be_told_apart_count_as_new() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let mut tx = SqliteTx::new(&connection);
        migrate(&mut tx).unwrap();
        let bare = AccountReport {
            id: "STATEMENT".into(),
            sequence: None,
            page: 1,
            account_number: String::new(),
            opening: None,
            closing: None,
            lines: Vec::new(),
        };
        insert_statement(&mut tx, &[1; 32], 0, &bare).unwrap();
        assert!(!is_statement_known(&mut tx, &[2; 32], &bare).unwrap());
        let numbered = AccountReport { sequence: Some(7), ..bare };
        insert_statement(&mut tx, &[3; 32], 0, &numbered).unwrap();
        assert!(is_statement_known(&mut tx, &[4; 32], &numbered).unwrap());
    }
}
