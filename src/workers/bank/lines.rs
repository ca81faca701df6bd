//! Applies the booked movements of notifications and statements: finds the payouts that a movement
//! is about, and what it says of them.

use super::apply::{
    AppliedFile, PaymentReport, ReportEffect, ReportedEvent, find_instruction, payment,
};
use crate::kernel::{Now, StoreError};
use crate::rails::files::references::{References, UtrFinding};
use crate::rails::files::reports::{Reason, Sign, StatementLine};
use crate::rails::files::rows::{self, Journalled, LinePlace, Matching};
use crate::rails::files::values::{EndToEndId, MessageId};
use crate::store::Tx;

/// The payment that was made under one of the references, if there is exactly one.
fn payment_under<'a>(
    tx: &mut dyn Tx,
    references: impl Iterator<Item = &'a str>,
) -> Result<Option<EndToEndId>, StoreError> {
    let mut found = None;
    for reference in references {
        match (rows::paid_under(tx, reference)?.map(EndToEndId::of), found) {
            (Some(id), Some(other)) if id != other => return Ok(None),
            (Some(id), _) => found = Some(id),
            (None, _) => {}
        }
    }
    Ok(found)
}

/// Applies a booked movement, and stores it if it has a `place` on a statement.
pub fn line(
    tx: &mut dyn Tx,
    now: &mut Now,
    file: AppliedFile<'_>,
    line: &StatementLine,
    place: Option<LinePlace>,
) -> Result<ReportEffect, StoreError> {
    if let Some(payouts) = booked_together(tx, line)? {
        return shared_debit(tx, now, file, line, place, &payouts);
    }
    let event = match line.sign {
        Sign::Debit => ReportedEvent::Paid,
        Sign::Credit if line.is_reversal => ReportedEvent::Reversed,
        Sign::Credit => ReportedEvent::Returned,
    };
    let mut end_to_end_id = line.end_to_end_id;
    let mut is_in_text = false;
    // Money can come back without an end-to-end identifier, with only the reference that it was
    // sent under. Anybody can write a reference into the text of a payment, so it counts only in
    // elements that the bank fills.
    if end_to_end_id.is_none() && line.sign == Sign::Credit {
        end_to_end_id = payment_under(tx, line.references.from_bank_only())?;
        is_in_text = end_to_end_id.is_none() && payment_under(tx, line.references.all())?.is_some();
    }
    let report = PaymentReport {
        end_to_end_id,
        amount: Some(line.amount),
        event,
        is_whole_refused: false,
        is_booked: true,
        booked_on: Some(line.booking_day),
        message_id: None,
        reason: line.reason.clone(),
        references: line.references.clone(),
        entry_reference: line.entry_reference.clone(),
    };
    let instruction = find_instruction(tx, &report)?;
    // A debit that reverses a credit could be a second payment, so a person must look.
    let is_reversing_debit = line.is_reversal && line.sign == Sign::Debit;
    let matching = match &instruction {
        Ok(_) if is_reversing_debit => Matching::Reversal,
        Ok(_) => Matching::Payout,
        Err(Matching::NoReference) if is_in_text => Matching::ReferenceInText,
        Err(Matching::NoReference) if line.other_reference.is_some() => Matching::UnknownReference,
        Err(matching) => *matching,
    };
    if let Some(place) = place {
        let payout = match (&instruction, report.end_to_end_id) {
            (Ok(instruction), _) => Some(instruction.clone()),
            (Err(_), Some(id)) => rows::find(tx, id.payout_id())?,
            (Err(_), None) => None,
        };
        let utr = payout.as_ref().and_then(|payout| {
            let own = [file.settings.debit_account_number()];
            let elements = &file.settings.profile.reference_elements;
            match line.references.utr(payout.method, elements, &own) {
                UtrFinding::One(utr, _) => Some(utr),
                _ => None,
            }
        });
        if !rows::insert_line(tx, now, &place, line, matching, payout.as_ref(), utr.as_ref())? {
            return Ok(ReportEffect::Ignored);
        }
    }
    if matching != Matching::Payout {
        return Ok(ReportEffect::Unmatched(matching));
    }
    payment(tx, now, file, &report)
}

/// The payouts that one debit paid together: those that it names, or those of the batch that it
/// names. `None` for a credit or a reversal. Also `None` if the debit names none, if one of the
/// payouts is not known or was never sent, or if their amounts do not add up to the debit's.
fn booked_together(
    tx: &mut dyn Tx,
    line: &StatementLine,
) -> Result<Option<Vec<Journalled>>, StoreError> {
    if line.sign != Sign::Debit || line.is_reversal {
        return Ok(None);
    }
    let mut found = Vec::new();
    for id in &line.members {
        found.extend(rows::find(tx, id.payout_id())?);
    }
    if line.members.is_empty()
        && let Some((id, method)) = line.other_reference.as_deref().and_then(MessageId::of_batch)
    {
        found = rows::of_message(tx, id)?;
        found.retain(|instruction| instruction.method == method);
    }
    let sum = found.iter().try_fold(0_i64, |sum, one| sum.checked_add(one.units));
    let is_whole = !found.is_empty()
        && (line.members.is_empty() || found.len() == line.members.len())
        && found.iter().all(Journalled::may_be_known)
        && sum == Some(line.amount.units);
    Ok(is_whole.then_some(found))
}

/// Applies a debit that paid several payouts. The debit gives no reference of any single payment,
/// so no payout settles by it. The answer names the payouts that now wait for the operator, for
/// example because they had failed.
fn shared_debit(
    tx: &mut dyn Tx,
    now: &mut Now,
    file: AppliedFile<'_>,
    line: &StatementLine,
    place: Option<LinePlace>,
    payouts: &[Journalled],
) -> Result<ReportEffect, StoreError> {
    if let Some(place) = place
        && !rows::insert_shared_line(tx, now, &place, line, payouts)?
    {
        return Ok(ReportEffect::Ignored);
    }
    let mut waiting = Vec::new();
    for instruction in payouts {
        let report = PaymentReport {
            end_to_end_id: Some(EndToEndId::of(instruction.payout_id)),
            amount: None,
            event: ReportedEvent::Paid,
            is_whole_refused: false,
            is_booked: true,
            booked_on: None,
            message_id: None,
            reason: Reason::default(),
            references: References::new(),
            entry_reference: None,
        };
        if let ReportEffect::Attention(found) = payment(tx, now, file, &report)? {
            waiting.extend(found);
        }
    }
    Ok(if waiting.is_empty() { ReportEffect::Ignored } else { ReportEffect::Attention(waiting) })
}
