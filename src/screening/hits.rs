//! Stores the hits of a subject for the operator, and the operator's decisions about them.
//!
//! A row is about one subject and one list entry. It is *open* until it is decided. A clearance
//! holds while its basis stays the same: the entry's content and what is known of the subject. A
//! refusal holds until the operator clears the row. If the subject is a refund, the refusal also
//! ends when the operator gives the refund another address.
//!
//! Several addresses of one entry may pay for a transfer. Their hits share one row, which shows the
//! evidence of each. A clearance holds for the addresses that it was given for; one more opens the
//! row again.

use super::hit::{HitDecision, HitRow, SubjectType};
use super::rows;
use super::{HITS_MAX, Screening, ScreeningFinding, ScreeningHit, UNREADABLE};
use crate::kernel::{AnyId, DecidedBy, Now, Scope, StoreError};
use crate::store::Tx;

/// The value of `list` for a refusal without any hit. Also the value of `decided_by` if no name was
/// given, or if the operator replaced the address. The operator's own list has the same name
/// (`ListName::Own`).
pub const OPERATOR: &str = "operator";
/// The `entry_id` of a refusal without any hit. No entry of the operator's own list may have it.
pub const DECISION: &str = "decision";
/// The `decided_by` of a hit that the lists no longer give.
const LISTS: &str = "lists";

/// Stores the hits of a subject, and answers the resulting screening. A hit that the operator
/// cleared does not count while its basis stays the same; a refused one counts as confirmed.
/// `basis` makes the fingerprint that a clearance of a hit is bound to.
///
/// Of the hits of a sender or beneficiary that wait for a decision, the first `HITS_MAX` are
/// stored, and so are the exceptions that [`HITS_MAX`] names. When these are decided, the next call
/// stores the next hits; until all are decided, the subject is not clear. An open hit of a sender
/// or beneficiary that the finding no longer has is withdrawn, unless nothing was compared.
pub fn keep(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    subject_id: AnyId,
    finding: &ScreeningFinding,
    basis: &dyn Fn(&ScreeningHit) -> [u8; 32],
) -> Result<Screening, StoreError> {
    let Some(subject) = SubjectType::of(subject_id.kind) else {
        return Err(StoreError::Broken("an object of this kind is not screened".into()));
    };
    let known = rows::of_subject(tx, scope, subject_id)?;
    // A finding without hits is either clear, or nothing was compared.
    let is_compared = !finding.hits.is_empty() || finding.screening == Screening::Clear;
    let mut effective = if finding.hits.is_empty() { finding.screening } else { Screening::Clear };
    let hits_max = if subject.is_screened_whole() { HITS_MAX } else { usize::MAX };
    let mut waiting_count = 0;
    for hit in &finding.hits {
        let basis = basis(hit);
        let row = known.iter().find(|row| row.is_of(hit));
        let is_decided = row.is_some_and(|row| match row.decision {
            Some(HitDecision::Refused) => true,
            Some(HitDecision::Cleared) => row.is_based_on(&basis),
            Some(HitDecision::Withdrawn) | None => false,
        });
        if is_decided {
            continue;
        }
        effective = effective.or_worse(hit.screening);
        waiting_count += 1;
        let is_open = row.is_some_and(|row| row.decision.is_none());
        if waiting_count > hits_max && !is_open && hit.list != UNREADABLE {
            continue;
        }
        let (basis, screening, evidence) = HitRow::with_hit(row, subject, hit, &basis);
        match row {
            Some(row) => {
                let mut row = row.clone();
                let is_same = is_open
                    && row.basis == basis
                    && row.screening == screening
                    && row.evidence == evidence;
                if !is_same {
                    (row.basis, row.screening, row.evidence) = (basis, screening, evidence);
                    row.score_basis_points = hit.score_basis_points;
                    row.listed_name = hit.listed_name.clone();
                    (row.decision, row.decided_by, row.decided_at) = (None, None, None);
                    rows::update(tx, &row)?;
                }
            }
            None => {
                let row = HitRow {
                    scope,
                    id: now.mint(),
                    subject,
                    subject_id,
                    list: hit.list.to_owned(),
                    entry_id: hit.entry_id.clone(),
                    basis,
                    screening,
                    score_basis_points: hit.score_basis_points,
                    evidence,
                    listed_name: hit.listed_name.clone(),
                    decision: None,
                    decided_by: None,
                    decided_at: None,
                    created: now.business(),
                };
                rows::insert(tx, &row)?;
            }
        }
    }
    for mut row in known {
        if row.decision == Some(HitDecision::Refused) {
            effective = Screening::ConfirmedMatch;
        } else if row.decision.is_none()
            && is_compared
            && subject.is_screened_whole()
            && !finding.hits.iter().any(|hit| row.is_of(hit))
        {
            (row.decision, row.decided_by, row.decided_at) =
                (Some(HitDecision::Withdrawn), Some(LISTS.to_owned()), Some(now.business()));
            rows::update(tx, &row)?;
        }
    }
    Ok(effective)
}

/// Stores the operator's decision about all hits of a subject, except those that were withdrawn;
/// answers how many hits it changed or added. If there is no hit to refuse, the refusal is stored
/// as a hit of its own, so that a later screening does not undo it.
pub fn decide(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    subject_id: AnyId,
    decision: HitDecision,
    by: &DecidedBy,
) -> Result<usize, StoreError> {
    let decided_by = if by.actor().is_empty() { OPERATOR } else { by.actor() };
    let Some(subject) = SubjectType::of(subject_id.kind) else { return Ok(0) };
    let known = rows::of_subject(tx, scope, subject_id)?;
    let mut count = 0;
    for mut row in known.into_iter().filter(|row| {
        row.decision != Some(decision) && row.decision != Some(HitDecision::Withdrawn)
    }) {
        (row.decision, row.decided_by, row.decided_at) =
            (Some(decision), Some(decided_by.to_owned()), Some(now.business()));
        rows::update(tx, &row)?;
        count += 1;
    }
    let has_no_such_row =
        rows::of_subject(tx, scope, subject_id)?.iter().all(|row| row.decision != Some(decision));
    if decision == HitDecision::Refused && has_no_such_row {
        let row = HitRow {
            scope,
            id: now.mint(),
            subject,
            subject_id,
            list: OPERATOR.to_owned(),
            entry_id: DECISION.to_owned(),
            basis: Vec::new(),
            screening: Screening::ConfirmedMatch,
            score_basis_points: 0,
            evidence: "refused by the operator".to_owned(),
            listed_name: None,
            decision: Some(decision),
            decided_by: Some(decided_by.to_owned()),
            decided_at: Some(now.business()),
            created: now.business(),
        };
        rows::insert(tx, &row)?;
        count += 1;
    }
    Ok(count)
}

/// Withdraws the open and the refused hits of a subject, because they are about an address that the
/// subject no longer has. A clearance stays, because it holds for its address only.
pub fn withdraw(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    subject_id: AnyId,
) -> Result<(), StoreError> {
    for mut row in rows::of_subject(tx, scope, subject_id)? {
        if matches!(row.decision, None | Some(HitDecision::Refused)) {
            (row.decision, row.decided_by, row.decided_at) =
                (Some(HitDecision::Withdrawn), Some(OPERATOR.to_owned()), Some(now.business()));
            rows::update(tx, &row)?;
        }
    }
    Ok(())
}

/// Whether a subject has hits without a decision.
pub fn has_open(tx: &mut dyn Tx, scope: Scope, subject_id: AnyId) -> Result<bool, StoreError> {
    Ok(rows::of_subject(tx, scope, subject_id)?.iter().any(|row| row.decision.is_none()))
}
