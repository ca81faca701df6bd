//! The lines of statements, and the differences that the operator explained.

use super::instructions::Journalled;
use crate::kernel::id::kind;
use crate::kernel::{Id, InternalId, Now, StoreError};
use crate::rails::files::reports::{Sign, StatementLine};
use crate::rails::files::values::{Day, Utr};
use crate::store::{Row, Tx};
use crate::values;

crate::string_enum!(
    /// What a line of a statement belongs to: a payout, or several together (`Batch`, with their
    /// shares in `bank_line_shares`). The other values say why a line belongs to none. `Reversal`
    /// is a debit that undoes a credit. `ReferenceInText` is a credit that names a payout's
    /// reference only in a text that others than the bank can write.
    Matching {
        Payout "payout",
        Batch "batch",
        NoReference "no_reference",
        UnknownReference "unknown_reference",
        AmountDiffers "amount_differs",
        Reversal "reversal",
        ReferenceInText "reference_in_text",
    }
);

/// The position of a line: its file, its statement in the file, and its number in the file.
#[derive(Clone, Copy, Debug)]
pub struct LinePlace {
    pub sha256: [u8; 32],
    pub statement_number: i64,
    pub number: i64,
}

/// Stores a line; `false` if a line is stored for this place already.
pub fn insert_line(
    tx: &mut dyn Tx,
    now: &mut Now,
    place: &LinePlace,
    line: &StatementLine,
    matching: Matching,
    payout: Option<&Journalled>,
    utr: Option<&Utr>,
) -> Result<bool, StoreError> {
    let id: InternalId = now.mint();
    let reference = utr
        .map(|utr| utr.as_str().to_owned())
        .or_else(|| line.references.shown().map(str::to_owned))
        .or_else(|| line.other_reference.clone());
    let changed = tx.execute(
        "INSERT INTO bank_statement_lines (id, sha256, statement_number, number, booking_day, \
         value_day, units, sign, matching, payout_id, \
         scope, reference, accepted_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, \
         ?12, NULL) ON CONFLICT (sha256, number) DO NOTHING",
        values![
            id,
            &place.sha256,
            place.statement_number,
            place.number,
            &line.booking_day.to_string(),
            &line.value_day.map(|day| day.to_string()),
            line.amount.units,
            line.sign.as_str(),
            matching.as_str(),
            payout.map(|payout| payout.payout_id),
            payout.map(|payout| payout.scope),
            &reference,
        ],
    )?;
    Ok(changed == 1)
}

/// Whether a statement has shown a debit that paid this payout on another day than `day`.
pub fn is_debit_of_another_day(
    tx: &mut dyn Tx,
    payout_id: Id<kind::Payout>,
    day: Day,
) -> Result<bool, StoreError> {
    let sql = "SELECT id FROM bank_statement_lines WHERE payout_id = ?1 AND matching = 'payout' \
               AND sign = 'debit' AND booking_day <> ?2 LIMIT 1";
    Ok(tx.row(sql, values![payout_id, &day.to_string()])?.is_some())
}

/// Stores a line whose one amount paid several payouts, with the share of each. `false` if a line
/// is stored for this place already. Also `false` if the payouts do not add up to the line or the
/// line is a credit; then it is stored without shares and waits for the operator.
pub fn insert_shared_line(
    tx: &mut dyn Tx,
    now: &mut Now,
    place: &LinePlace,
    line: &StatementLine,
    payouts: &[Journalled],
) -> Result<bool, StoreError> {
    if !insert_line(tx, now, place, line, Matching::Batch, None, None)? {
        return Ok(false);
    }
    let sql = "SELECT id FROM bank_statement_lines WHERE sha256 = ?1 AND number = ?2";
    let row = tx.row(sql, values![&place.sha256, place.number])?;
    let id = row.map(|mut row| row.id()).transpose()?;
    let id = id.ok_or_else(|| StoreError::Broken("a line was lost".into()))?;
    match_to_payouts(tx, now, id, payouts)
}

/// A line that is not matched to one payout; [`Matching`] has the reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    pub id: InternalId,
    pub booking_day: String,
    pub units: i64,
    pub sign: Sign,
    pub matching: Matching,
    pub reference: Option<String>,
}

const UNMATCHED: &str = "SELECT id, booking_day, units, sign, matching, reference FROM \
                         bank_statement_lines WHERE matching <> 'payout' AND accepted_at IS NULL";

fn read_unmatched(mut row: Row) -> Result<Unmatched, StoreError> {
    Ok(Unmatched {
        id: row.id()?,
        booking_day: row.text()?,
        units: row.int()?,
        sign: row.word(Sign::parse)?,
        matching: row.word(Matching::parse)?,
        reference: row.text_or_null()?,
    })
}

/// Lines that wait for the operator, in the order in which they were stored.
pub fn unmatched(tx: &mut dyn Tx, rows_max: i64) -> Result<Vec<Unmatched>, StoreError> {
    let sql = format!("{UNMATCHED} ORDER BY id LIMIT ?1");
    tx.rows(&sql, values![rows_max])?.into_iter().map(read_unmatched).collect()
}

/// How many lines wait for the operator.
pub fn unmatched_count(tx: &mut dyn Tx) -> Result<i64, StoreError> {
    let sql = "SELECT COUNT(*) FROM bank_statement_lines WHERE matching <> 'payout' AND \
               accepted_at IS NULL";
    tx.row(sql, &[])?.map_or(Ok(0), |mut row| row.int())
}

/// One line, if it waits for the operator.
pub fn find_unmatched(tx: &mut dyn Tx, id: InternalId) -> Result<Option<Unmatched>, StoreError> {
    tx.row(&format!("{UNMATCHED} AND id = ?1"), values![id])?.map(read_unmatched).transpose()
}

/// Matches a line to the payout that the operator names. `false` if no such line waits, or the
/// amounts differ.
pub fn match_to_payout(
    tx: &mut dyn Tx,
    id: InternalId,
    payout: &Journalled,
) -> Result<bool, StoreError> {
    let sql = "UPDATE bank_statement_lines SET matching = 'payout', payout_id = ?2, scope = ?3 \
               WHERE id = ?1 AND units = ?4 AND matching <> 'payout' AND accepted_at IS NULL";
    Ok(tx.execute(sql, values![id, payout.payout_id, payout.scope, payout.units])? == 1)
}

/// Stores the operator's explanation of a line that belongs to no payout, so that it no longer
/// waits. `false` if no such line waits.
pub fn explain_line(
    tx: &mut dyn Tx,
    now: &Now,
    id: InternalId,
    note: Option<&str>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE bank_statement_lines SET accepted_at = ?2, note = ?3 WHERE id = ?1 AND \
               matching <> 'payout' AND accepted_at IS NULL";
    Ok(tx.execute(sql, values![id, now.instant(), note])? == 1)
}

/// Matches a line to the payouts that it paid. `false` if no such line waits, if the payouts'
/// amounts do not add up to the line, or if the line is a credit, which pays no payouts.
pub fn match_to_payouts(
    tx: &mut dyn Tx,
    now: &Now,
    id: InternalId,
    payouts: &[Journalled],
) -> Result<bool, StoreError> {
    let sum = payouts.iter().try_fold(0_i64, |sum, payout| sum.checked_add(payout.units));
    let Some(sum) = sum else { return Ok(false) };
    let sql = "UPDATE bank_statement_lines SET accepted_at = ?2 WHERE id = ?1 AND units = ?3 AND \
               sign = 'debit' AND matching <> 'payout' AND accepted_at IS NULL";
    if tx.execute(sql, values![id, now.instant(), sum])? != 1 {
        return Ok(false);
    }
    for payout in payouts {
        add_share(tx, id, payout)?;
    }
    Ok(true)
}

fn add_share(tx: &mut dyn Tx, id: InternalId, payout: &Journalled) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO bank_line_shares (line_id, payout_id, scope, units) VALUES (?1, ?2, ?3, ?4)",
        values![id, payout.payout_id, payout.scope, payout.units],
    )
}

/// Stores that the operator explained a difference of this kind, subject and amount. The difference
/// itself has no row that could be marked, because each comparison finds it anew.
pub fn keep_explanation(
    tx: &mut dyn Tx,
    now: &Now,
    kind: &str,
    subject: &str,
    units: i64,
    note: &str,
) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO bank_closed_differences (kind, subject, units, note, closed_at) VALUES (?1, \
         ?2, ?3, ?4, ?5) ON CONFLICT (kind, subject) DO UPDATE SET units = excluded.units, note = \
         excluded.note, closed_at = excluded.closed_at",
        values![kind, subject, units, note, now.instant()],
    )
}

/// Every explanation: the kind, the subject and the amount that it holds for.
pub fn explanations(tx: &mut dyn Tx) -> Result<Vec<(String, String, i64)>, StoreError> {
    tx.rows("SELECT kind, subject, units FROM bank_closed_differences", &[])?
        .into_iter()
        .map(|mut row| Ok((row.text()?, row.text()?, row.int()?)))
        .collect()
}
