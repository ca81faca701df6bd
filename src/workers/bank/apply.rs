//! What a report from the bank does to a payout.
//!
//! A payout settles when its payment is reported with a reference that no other payout has. It
//! fails when the bank refuses the payment. But if the cause lies with us, the operator decides,
//! and if the bank calls the payment a duplicate, the outcome is unknown and the operator is told.
//! In a refused file or batch, a payment without a reason of its own gets the reason of the file or
//! batch. There a payout fails only for a reason that concerns the beneficiary's bank, account or
//! IFSC.
//!
//! Most reports that contradict each other mark the payout for the operator. So does a refusal that
//! may be about an earlier file than the last one with this payment. If the bank paid a payout that
//! had failed or come back, its refund is held.

use super::publish;
use crate::decisions;
use crate::kernel::id::kind;
use crate::kernel::{Currency, Id, Money, Now, StoreError};
use crate::payouts::state::PayoutStatus;
use crate::payouts::{self, Payout};
use crate::rails::BankReport;
use crate::rails::files::reasons;
use crate::rails::files::references::{References, UtrFinding};
use crate::rails::files::reports::{Reason, RefusalMeaning};
use crate::rails::files::rows::{self, Attention, InstructionStatus, Journalled, Matching};
use crate::rails::files::settings::BankSettings;
use crate::rails::files::values::{Day, EndToEndId, MessageId, Utr};
use crate::services::Services;
use crate::store::Tx;
use crate::transfers::paying;

/// The operator's decision that sends a payment once more, as the record of decisions has it.
const RESEND: &str = "resend";

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
    /// The day of the movement; `None` for a status, and for a debit that paid several payouts.
    pub booked_on: Option<Day>,
    /// The file of ours that a status names; `None` for a movement.
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
    /// No payout changed, for example because the report is known already or does not count yet.
    Ignored,
    /// The report is applied to no payout. [`Matching`] says why.
    Unmatched(Matching),
    /// These payouts now wait for the operator. Only a debit that paid several has more than one.
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

/// The instruction that a report is about. `Err` says why the report fits none.
pub(super) fn find_instruction(
    tx: &mut dyn Tx,
    report: &PaymentReport,
) -> Result<Result<Journalled, Matching>, StoreError> {
    let Some(id) = report.end_to_end_id else { return Ok(Err(Matching::NoReference)) };
    let Some(instruction) = rows::find(tx, id.payout_id())? else {
        return Ok(Err(Matching::UnknownReference));
    };
    // A bank cannot know of what was never sent.
    if !instruction.may_be_known() {
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
                    | Attention::PaidAndSentAgain
                    | Attention::PaidTwice
            )
        )
    }

    /// Whether the payment may go out in another file: it is queued again, or after a refusal for a
    /// cause on our side the operator may queue it again.
    fn may_go_out_again(&self) -> bool {
        let is_queued_again =
            self.instruction.status == InstructionStatus::Queued && self.instruction.was_published;
        is_queued_again
            || matches!(
                self.instruction.attention,
                Some(Attention::FileRefused | Attention::RefusedForUs)
            )
    }

    /// Whether the report may be about an earlier file than the last one with this payment: the
    /// report names no file, and the operator had the payment sent again.
    fn may_be_of_earlier_file(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        let subject = self.payout.id.to_string();
        Ok(self.report.message_id.is_none() && decisions::rows::was_decided(tx, &subject, RESEND)?)
    }

    /// Marks the payout for the operator. A payout that is processing gets an unknown outcome.
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

    /// Whether the report is about another debit than the one that the journal has noted. `true` if
    /// the journal has noted neither a reference nor an entry reference. References that cannot be
    /// compared count as equal. The same entry reference on another day is another debit.
    fn is_another_debit(&self, tx: &mut dyn Tx, utr: Option<&Utr>) -> Result<bool, StoreError> {
        let before = &self.instruction;
        match (utr, &before.reference) {
            (Some(utr), Some(reference)) => return Ok(utr.as_str() != reference),
            (None, None) if before.entry_reference.is_none() => return Ok(true),
            _ => {}
        }
        Ok(match (&self.report.entry_reference, &before.entry_reference) {
            // A bank may number its entries anew each year, or on each statement.
            (Some(entry), Some(other)) if entry == other => match self.report.booked_on {
                Some(day) => rows::is_debit_of_another_day(tx, self.payout.id, day)?,
                None => false,
            },
            (Some(_), Some(_)) => true,
            _ => before.reference.is_none() && before.entry_reference.is_none(),
        })
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
                if is_old || !self.is_another_debit(tx, utr)? {
                    return Ok(ReportEffect::Ignored);
                }
                return self.paid_after(tx, now, Attention::PaidAfterFailed);
            }
            PayoutStatus::Returned => {
                if !self.is_another_debit(tx, utr)? {
                    return Ok(ReportEffect::Ignored);
                }
                return self.paid_after(tx, now, Attention::PaidAgain);
            }
            _ => {
                self.note_entry(tx)?;
                // Two references are two payments. A return of one would leave the other, so the
                // operator decides.
                let is_twice = utr
                    .zip(self.instruction.reference.as_deref())
                    .is_some_and(|(utr, known)| utr.as_str() != known);
                let is_certain = self.report.is_booked || self.may_be_of_earlier_file(tx)?;
                return match is_twice && is_certain && !self.was_contradicted() {
                    true => self.raise_attention(tx, now, Attention::PaidTwice),
                    false => Ok(ReportEffect::Ignored),
                };
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
            // The bank had refused the payment and now says that it paid it, so the payment must
            // not go out again.
            UtrFinding::Ambiguous | UtrFinding::None if self.may_go_out_again() => {
                return self.raise_attention(tx, now, Attention::RefusedAfterPaid);
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
        // The payment may be made twice if another file with it is being written or is with the
        // bank.
        let is_of_earlier_file = self
            .report
            .message_id
            .zip(self.instruction.message_id)
            .is_some_and(|(reported, last)| reported != last);
        let is_going_out =
            self.instruction.status == InstructionStatus::Writing || is_of_earlier_file;
        // If the operator has queued the payment again, it leaves the queue.
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
        let outcome = self.raise_attention(tx, now, attention)?;
        // If the same debit is reported again, a refund that the operator has released stays
        // released.
        if outcome != ReportEffect::Ignored {
            paying::hold_refund(tx, &self.payout, attention.as_str())?;
        }
        Ok(outcome)
    }

    fn refused(
        &mut self,
        tx: &mut dyn Tx,
        now: &mut Now,
        meaning: RefusalMeaning,
    ) -> Result<ReportEffect, StoreError> {
        // Whether the refusal is about an earlier file, after which the payment was queued again. A
        // report that names no file cannot be about a file that is still being written.
        let is_stale = match self.report.message_id {
            Some(id) => Some(id) != self.instruction.message_id,
            None => self.instruction.status == InstructionStatus::Writing,
        } || self.instruction.message_id.is_none();
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
            (PayoutStatus::Processing, RefusalMeaning::Failed(..) | RefusalMeaning::Ours)
                if self.may_be_of_earlier_file(tx)? =>
            {
                self.raise_attention(tx, now, Attention::RefusalUnclear)
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
            // An earlier attention tells the operator more than this refusal.
            (PayoutStatus::Processing, RefusalMeaning::Unknown)
                if self.instruction.attention.is_none() =>
            {
                self.raise_attention(tx, now, Attention::RefusedAsDuplicate)
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
