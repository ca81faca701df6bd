//! The rows of screening hits.

use super::Screening;
use super::hit::{HitDecision, HitRow, SubjectType};
use crate::kernel::{AnyId, InternalId, Mode, Scope, StoreError};
use crate::store::{Row, Tx, insert_sql};
use crate::values;

const COLUMNS: &str = "scope, id, subject, subject_id, list, entry_id, basis, screening, \
score_basis_points, evidence, decision, decided_by, decided_at, created, listed_name";

fn read(mut row: Row) -> Result<HitRow, StoreError> {
    let row = &mut row;
    let (scope, id) = (row.scope()?, row.id()?);
    let subject = row.word(SubjectType::parse)?;
    Ok(HitRow {
        scope,
        id,
        subject,
        subject_id: row.id_of_kind(subject.kind())?,
        list: row.text()?,
        entry_id: row.text()?,
        basis: row.bytes()?,
        screening: row.word(Screening::parse)?,
        score_basis_points: row.int()?,
        evidence: row.text()?,
        decision: row.word_or_null(HitDecision::parse)?,
        decided_by: row.text_or_null()?,
        decided_at: row.int_or_null()?,
        created: row.int()?,
        listed_name: row.text_or_null()?,
    })
}

pub fn insert(tx: &mut dyn Tx, hit: &HitRow) -> Result<(), StoreError> {
    let sql = insert_sql("screening_hits", COLUMNS);
    tx.execute_one(
        &sql,
        values![
            hit.scope,
            hit.id,
            hit.subject.as_str(),
            hit.subject_id,
            &hit.list,
            &hit.entry_id,
            &hit.basis,
            hit.screening.as_str(),
            hit.score_basis_points,
            &hit.evidence,
            hit.decision.map(HitDecision::as_str),
            &hit.decided_by,
            hit.decided_at,
            hit.created,
            &hit.listed_name,
        ],
    )
}

/// Updates a hit's finding and decision.
pub fn update(tx: &mut dyn Tx, hit: &HitRow) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE screening_hits SET basis = ?3, screening = ?4, score_basis_points = ?5, \
         evidence = ?6, decision = ?7, decided_by = ?8, decided_at = ?9, listed_name = ?10 \
         WHERE scope = ?1 AND id = ?2",
        values![
            hit.scope,
            hit.id,
            &hit.basis,
            hit.screening.as_str(),
            hit.score_basis_points,
            &hit.evidence,
            hit.decision.map(HitDecision::as_str),
            &hit.decided_by,
            hit.decided_at,
            &hit.listed_name,
        ],
    )
}

/// All hits of one subject, decided or not.
pub fn of_subject(
    tx: &mut dyn Tx,
    scope: Scope,
    subject_id: AnyId,
) -> Result<Vec<HitRow>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM screening_hits WHERE scope = ?1 AND subject_id = ?2 ORDER BY id"
    );
    tx.rows(&sql, values![scope, subject_id])?.into_iter().map(read).collect()
}

/// Undecided hits of every account, oldest first.
pub fn open(tx: &mut dyn Tx, rows_max: i64) -> Result<Vec<HitRow>, StoreError> {
    let sql =
        format!("SELECT {COLUMNS} FROM screening_hits WHERE decision IS NULL ORDER BY id LIMIT ?1");
    tx.rows(&sql, values![rows_max])?.into_iter().map(read).collect()
}

/// Undecided hits of every account of a mode, oldest first.
pub fn open_of_mode(tx: &mut dyn Tx, mode: Mode, rows_max: i64) -> Result<Vec<HitRow>, StoreError> {
    // `Scope::code` says how the mode is in the number.
    let sql = format!(
        "SELECT {COLUMNS} FROM screening_hits WHERE decision IS NULL AND scope % 2 = ?1 ORDER BY \
         id LIMIT ?2"
    );
    let mode = i64::from(mode.is_live());
    tx.rows(&sql, values![mode, rows_max])?.into_iter().map(read).collect()
}

/// Identifiers of an account's senders or beneficiaries above `after`, in rising order: one step
/// of screening all persons again.
pub fn ids_after(
    tx: &mut dyn Tx,
    table: ScreenedTable,
    scope: Scope,
    after: [u8; 16],
    rows_max: i64,
) -> Result<Vec<InternalId>, StoreError> {
    let sql = match table {
        ScreenedTable::Senders => {
            "SELECT id FROM senders WHERE scope = ?1 AND id > ?2 ORDER BY id LIMIT ?3"
        }
        ScreenedTable::Beneficiaries => {
            "SELECT id FROM beneficiaries WHERE scope = ?1 AND id > ?2 ORDER BY id LIMIT ?3"
        }
    };
    tx.rows(sql, values![scope, &after, rows_max])?.into_iter().map(|mut row| row.id()).collect()
}

/// The tables whose rows are screened again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScreenedTable {
    Senders,
    Beneficiaries,
}
