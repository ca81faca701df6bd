//! What a report from the bank does to a payout.
//!
//! A payout settles once its payment is reported with a reference that no other payout has. It
//! fails once the bank refuses the payment. There are two exceptions: if the cause lies with us,
//! the operator decides; if the bank calls the payment a duplicate, the outcome is unknown. In a
//! refused file or batch a payout fails only for a reason that lies with the beneficiary. Reports
//! that contradict each other never move money: the payout is marked for the operator, and a refund
//! under way is held.

use super::publish;
use crate::kernel::id::kind;
use crate::kernel::{Currency, Id, Money, Now, StoreError};
use crate::payouts::state::PayoutStatus;
use crate::payouts::{self, Payout};
use crate::rails::BankReport;
use crate::rails::files::reasons;
use crate::rails::files::references::{References, UtrFinding};
use crate::rails::files::reports::{Reason, RefusalMeaning, Sign, StatementLine};
use crate::rails::files::rows::{
    self, Attention, InstructionStatus, Journalled, LinePlace, Matching,
};
use crate::rails::files::settings::BankSettings;
use crate::rails::files::values::{EndToEndId, MessageId, Utr};
use crate::services::Services;
use crate::store::Tx;
use crate::transfers::paying;

/// What happened to a payment, according to a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportedEvent {
    Processing,
    Paid,
    Refused(RefusalMeaning),
    /// The money came back.
    Returned,
    /// The bank reversed its own debit.
    Reversed,
}

/// What a report says of one payment.
#[derive(Clone, Debug)]
pub struct PaymentReport {
    pub end_to_end_id: Option<EndToEndId>,
    pub amount: Option<Money>,
    pub event: ReportedEvent,
    /// The bank refused the whole file or batch that has the payment.
    pub is_whole_refused: bool,
    /// A movement on the account, rather than a status.
    pub is_booked: bool,
    /// The file of ours that the report names; `None` for a movement.
    pub message_id: Option<MessageId>,
    pub reason: Reason,
    pub references: References,
    /// The bank's own reference of the movement.
    pub entry_reference: Option<String>,
}

/// What a report changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReportEffect {
    Applied,
    /// It is known already, or does not count yet: nothing changed.
    Ignored,
    /// It is applied to no payout. [`Matching`] says why.
    Unmatched(Matching),
    /// These payouts now wait for the operator; several only after a shared debit.
    Attention(Vec<(Id<kind::Payout>, Attention)>),
}

/// A file from the bank whose reports are applied, and what that needs.
#[derive(Clone, Copy)]
pub struct AppliedFile<'a> {
    pub services: &'a Services,
    pub settings: &'a BankSettings,
    pub sha256: &'a [u8; 32],
}

/// A report, the payout that it is about, and what a change of the payout needs.
struct ReportedPayment<'a> {
    services: &'a Services,
    settings: &'a BankSettings,
    report: &'a PaymentReport,
    instruction: Journalled,
    payout: Payout,
}

/// The instruction that a report is about. `Err` says why none fits: it is unknown, it was never
/// sent, or its amount differs.
fn find_instruction(
    tx: &mut dyn Tx,
    report: &PaymentReport,
) -> Result<Result<Journalled, Matching>, StoreError> {
    let Some(id) = report.end_to_end_id else { return Ok(Err(Matching::NoReference)) };
    let Some(instruction) = rows::find(tx, id.payout_id())? else {
        return Ok(Err(Matching::UnknownReference));
    };
    // A bank cannot know of what was never sent.
    let is_known =
        matches!(instruction.status, InstructionStatus::Published | InstructionStatus::Unknown);
    if !is_known && !instruction.was_published {
        return Ok(Err(Matching::UnknownReference));
    }
    let expected = Money::new(instruction.units, Currency::Inr);
    Ok(if report.amount.is_some_and(|amount| amount != expected) {
        Err(Matching::AmountDiffers)
    } else {
        Ok(instruction)
    })
}

/// Applies what a bank says of one payment.
pub fn payment(
    tx: &mut dyn Tx,
    now: &mut Now,
    file: AppliedFile<'_>,
    report: &PaymentReport,
) -> Result<ReportEffect, StoreError> {
    let instruction = match find_instruction(tx, report)? {
        Ok(instruction) => instruction,
        Err(matching) => return Ok(ReportEffect::Unmatched(matching)),
    };
    let Some(payout) = payouts::rows::find(tx, instruction.scope, instruction.payout_id)? else {
        return Ok(ReportEffect::Unmatched(Matching::UnknownReference));
    };
    if !report.reason.is_empty() {
        rows::note_reason(tx, payout.id, &report.reason, file.sha256)?;
    }
    publish::enter_account(tx, now, &instruction)?;
    let AppliedFile { services, settings, .. } = file;
    let mut case = ReportedPayment { services, settings, report, instruction, payout };
    let outcome = match report.event {
        ReportedEvent::Processing => Ok(ReportEffect::Ignored),
        ReportedEvent::Paid => case.paid(tx, now),
        ReportedEvent::Refused(meaning) => case.refused(tx, now, meaning),
        ReportedEvent::Returned => case.returned(tx, now),
        ReportedEvent::Reversed => case.reversed(tx, now),
    };
    now.leave_account();
    outcome
}

impl ReportedPayment<'_> {
    /// Whether reports of this payment contradicted each other before.
    const fn was_contradicted(&self) -> bool {
        matches!(
            self.instruction.attention,
            Some(
                Attention::ReturnedWhileProcessing
                    | Attention::Reversed
                    | Attention::RefusedAfterPaid
            )
        )
    }

    /// Marks the payout for the operator; one that is processing gets an unknown outcome.
    fn raise_attention(
        &mut self,
        tx: &mut dyn Tx,
        now: &mut Now,
        attention: Attention,
    ) -> Result<ReportEffect, StoreError> {
        // Nothing is sent until the operator has looked.
        rows::undo_queue_again(tx, self.payout.id)?;
        rows::stop_waiting(tx, self.payout.id, None)?;
        if self.payout.status == PayoutStatus::Processing {
            paying::apply_report(tx, now, self.services, &mut self.payout, BankReport::Unknown)?;
        }
        let is_new = rows::set_attention(tx, now, self.payout.id, Some(attention))?;
        Ok(if is_new { self.waits_for(attention) } else { ReportEffect::Ignored })
    }

    fn waits_for(&self, attention: Attention) -> ReportEffect {
        ReportEffect::Attention(vec![(self.payout.id, attention)])
    }

    fn utr(&self) -> UtrFinding {
        let elements = &self.settings.profile.reference_elements;
        let own = [self.settings.debit_account_number()];
        self.report.references.utr(self.instruction.method, elements, &own)
    }

    /// Whether a debit is another one than the journal has noted. `true` if the journal has noted
    /// no reference. If it has noted one that cannot be compared with this debit's, both count as
    /// the same debit.
    fn is_another_debit(&self, utr: Option<&Utr>) -> bool {
        let before = &self.instruction;
        match (utr, &before.reference) {
            (Some(utr), Some(reference)) => return utr.as_str() != reference,
            (None, None) if before.entry_reference.is_none() => return true,
            _ => {}
        }
        match (&self.report.entry_reference, &before.entry_reference) {
            (Some(entry), Some(other)) => entry != other,
            _ => before.reference.is_none() && before.entry_reference.is_none(),
        }
    }

    fn paid(&mut self, tx: &mut dyn Tx, now: &mut Now) -> Result<ReportEffect, StoreError> {
        let finding = self.utr();
        let utr = match &finding {
            UtrFinding::One(utr, _) => Some(utr),
            _ => None,
        };
        match self.payout.status {
            PayoutStatus::Processing => {}
            PayoutStatus::Failed => {
                // The operator failed the payout after its payment had come back, so this payment
                // is not new.
                let is_old = self.instruction.attention == Some(Attention::ReturnedAndFailed);
                if is_old || !self.is_another_debit(utr) {
                    return Ok(ReportEffect::Ignored);
                }
                return self.paid_after(tx, now, Attention::PaidAfterFailed);
            }
            PayoutStatus::Returned => {
                if !self.is_another_debit(utr) {
                    return Ok(ReportEffect::Ignored);
                }
                return self.paid_after(tx, now, Attention::PaidAgain);
            }
            _ => {
                self.note_entry(tx)?;
                return Ok(ReportEffect::Ignored);
            }
        }
        self.note_entry(tx)?;
        if self.was_contradicted() {
            return Ok(ReportEffect::Ignored);
        }
        let utr = match finding {
            UtrFinding::One(utr, _) => utr,
            UtrFinding::Ambiguous if self.report.is_booked => {
                return self.raise_attention(tx, now, Attention::ReferenceUnclear);
            }
            // A payment without a reference is not proven yet: the notification or the statement
            // brings the reference.
            UtrFinding::Ambiguous | UtrFinding::None => return Ok(ReportEffect::Ignored),
        };
        if !rows::claim_reference(tx, utr.as_str(), self.payout.id)? {
            return self.raise_attention(tx, now, Attention::ReferenceTaken);
        }
        if !utr.fits(self.instruction.method) {
            tracing::warn!(payout = %self.payout.id, "the bank's reference has an unusual form");
        }
        let settled = BankReport::Settled { unique_transaction_reference: utr.as_str().to_owned() };
        // If the operator queued it again, it was paid from an earlier file after all.
        let is_going_out = self.instruction.status == InstructionStatus::Writing;
        rows::undo_queue_again(tx, self.payout.id)?;
        paying::apply_report(tx, now, self.services, &mut self.payout, settled)?;
        rows::stop_waiting(tx, self.payout.id, Some(utr.as_str()))?;
        let attention = is_going_out.then_some(Attention::PaidAndSentAgain);
        rows::set_attention(tx, now, self.payout.id, attention)?;
        Ok(match attention {
            Some(attention) => self.waits_for(attention),
            None => ReportEffect::Applied,
        })
    }

    fn note_entry(&self, tx: &mut dyn Tx) -> Result<(), StoreError> {
        rows::note_entry(tx, self.payout.id, self.report.entry_reference.as_deref())
    }

    /// The bank paid a payout that had failed or come back, so its refund is held.
    fn paid_after(
        &mut self,
        tx: &mut dyn Tx,
        now: &mut Now,
        attention: Attention,
    ) -> Result<ReportEffect, StoreError> {
        paying::hold_refund(tx, &self.payout, attention.as_str())?;
        self.raise_attention(tx, now, attention)
    }

    fn refused(
        &mut self,
        tx: &mut dyn Tx,
        now: &mut Now,
        meaning: RefusalMeaning,
    ) -> Result<ReportEffect, StoreError> {
        // It answers an earlier file, and the operator has queued the payment again since then.
        let is_stale = self.instruction.message_id.is_none()
            || self.report.message_id.is_some_and(|id| Some(id) != self.instruction.message_id);
        if is_stale && self.instruction.was_published {
            return Ok(ReportEffect::Ignored);
        }
        match (self.payout.status, meaning) {
            (PayoutStatus::Settled, RefusalMeaning::Failed(..) | RefusalMeaning::Ours) => {
                let attention = Attention::RefusedAfterPaid;
                let is_new = rows::set_attention(tx, now, self.payout.id, Some(attention))?;
                Ok(if is_new { self.waits_for(attention) } else { ReportEffect::Ignored })
            }
            (PayoutStatus::Processing, _) if self.was_contradicted() => Ok(ReportEffect::Ignored),
            (PayoutStatus::Processing, _) if self.instruction.entry_reference.is_some() => {
                self.raise_attention(tx, now, Attention::RefusedAfterPaid)
            }
            (PayoutStatus::Processing, RefusalMeaning::Failed(code, source)) => {
                let failed = BankReport::Failed { code, source };
                paying::apply_report(tx, now, self.services, &mut self.payout, failed)?;
                rows::stop_waiting(tx, self.payout.id, None)?;
                rows::set_attention(tx, now, self.payout.id, None)?;
                Ok(ReportEffect::Applied)
            }
            (PayoutStatus::Processing, RefusalMeaning::Ours) => {
                let attention = if self.report.is_whole_refused {
                    Attention::FileRefused
                } else {
                    Attention::RefusedForUs
                };
                self.raise_attention(tx, now, attention)
            }
            (PayoutStatus::Processing, RefusalMeaning::Unknown) => {
                let before = self.payout.failure.clone();
                let unknown = BankReport::Unknown;
                paying::apply_report(tx, now, self.services, &mut self.payout, unknown)?;
                rows::stop_waiting(tx, self.payout.id, None)?;
                let is_new = before != self.payout.failure;
                Ok(if is_new { ReportEffect::Applied } else { ReportEffect::Ignored })
            }
            _ => Ok(ReportEffect::Ignored),
        }
    }

    fn returned(&mut self, tx: &mut dyn Tx, now: &mut Now) -> Result<ReportEffect, StoreError> {
        match self.payout.status {
            PayoutStatus::Processing if self.was_contradicted() => Ok(ReportEffect::Ignored),
            // The payout does not fail, because the bank may book the payment again. Only the
            // operator can find that out.
            PayoutStatus::Processing => {
                self.raise_attention(tx, now, Attention::ReturnedWhileProcessing)
            }
            PayoutStatus::Settled if self.was_contradicted() => Ok(ReportEffect::Ignored),
            PayoutStatus::Settled => {
                let code = self.report.reason.code.as_deref();
                let (code, source) = reasons::returned(code);
                let returned = BankReport::Returned { code, source };
                paying::apply_report(tx, now, self.services, &mut self.payout, returned)?;
                rows::stop_waiting(tx, self.payout.id, None)?;
                Ok(ReportEffect::Applied)
            }
            _ => Ok(ReportEffect::Ignored),
        }
    }

    fn reversed(&mut self, tx: &mut dyn Tx, now: &mut Now) -> Result<ReportEffect, StoreError> {
        match self.payout.status {
            PayoutStatus::Processing | PayoutStatus::Settled => {
                self.raise_attention(tx, now, Attention::Reversed)
            }
            _ => Ok(ReportEffect::Ignored),
        }
    }
}

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
/// names. `None` unless all were sent and their amounts add up to the debit's.
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
        && found.iter().all(|one| one.was_published)
        && sum == Some(line.amount.units);
    Ok(is_whole.then_some(found))
}

/// Applies a debit that paid several payouts. It names no reference for any single one, so none
/// settles by it. Payouts that had failed now wait for the operator; the answer names these.
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
