//! The operator's decisions about payouts: closing those whose outcome the bank has not reported,
//! sending again what it refused, and ending holds.

use super::{OperatorDecision, OperatorResult, decide_hits, declined, find_named, not_taken};
use crate::kernel::state::Status;
use crate::kernel::{AnyId, DecidedBy, Now, OperationError, Scope};
use crate::pauses;
use crate::payouts;
use crate::payouts::state::{HoldReason, PayoutStatus};
use crate::rails::files::rows::{self as journal, Attention, InstructionStatus};
use crate::rails::files::values::Utr;
use crate::rails::{BankReport, FailureCode, FailureSource, PaymentMethod};
use crate::screening::hit::HitDecision;
use crate::services::Services;
use crate::store::Tx;
use crate::transfers::paying::{self, LimitCheck};

/// Why a payout cannot be settled or failed now: its file may go out at any moment.
const BEING_WRITTEN: &str = "it is being written for the bank now: try again in a minute";

/// Decides about a payout that is with the bank, is settled, or is on hold.
pub(super) fn decide(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    id: AnyId,
    decision: &OperatorDecision,
    by: &DecidedBy,
) -> OperatorResult {
    let mut payout = find_named(id, |id| payouts::rows::find(tx, scope, id))?;
    match (payout.status, decision) {
        (PayoutStatus::Processing, OperatorDecision::Settle(reference)) => {
            let reference = utr(id, payout.method, reference)?;
            // An instruction that is queued again was with the bank before, and must not go there
            // once more. It is taken off the queue before its row is read, because this update
            // waits for a worker that is just claiming the row.
            journal::undo_queue_again(tx, payout.id)?;
            if let Some(found) = journal::find(tx, payout.id)? {
                // The bank cannot have paid what it never received.
                let is_unsent = matches!(
                    found.status,
                    InstructionStatus::Queued
                        | InstructionStatus::Writing
                        | InstructionStatus::Withdrawn
                );
                if is_unsent && !found.was_published {
                    return Err(declined(id, "it has not been sent to the bank"));
                }
                if found.status == InstructionStatus::Writing {
                    return Err(declined(id, BEING_WRITTEN));
                }
            }
            if !journal::claim_reference(tx, reference.as_str(), payout.id)? {
                return Err(declined(id, "another payout was settled under this reference"));
            }
            journal::set_attention(tx, now, payout.id, None)?;
            // Keep the reference: a later return of the money may name nothing else.
            journal::stop_waiting(tx, payout.id, Some(reference.as_str()))?;
            let report =
                BankReport::Settled { unique_transaction_reference: reference.as_str().to_owned() };
            paying::apply_report(tx, now, services, &mut payout, report)?;
        }
        (PayoutStatus::Settled, OperatorDecision::Settle(reference)) => {
            let reference = utr(id, payout.method, reference)?;
            let is_same =
                payout.unique_transaction_reference.as_deref() == Some(reference.as_str());
            if !is_same {
                let message = "its reference is another one: give the reference that it was \
                               settled under";
                return Err(declined(id, message));
            }
            if !journal::set_attention(tx, now, payout.id, None)? {
                return Err(not_taken(id, payout.status));
            }
        }
        (PayoutStatus::Processing, OperatorDecision::Resend) => {
            let attention = journal::find(tx, payout.id)?.and_then(|found| found.attention);
            let is_refused =
                matches!(attention, Some(Attention::FileRefused | Attention::RefusedForUs));
            if !is_refused || !journal::queue_again(tx, now, payout.id)? {
                return Err(declined(
                    id,
                    "only a payout that the bank refused for a cause on our side is sent again",
                ));
            }
            payout.failure = None;
            payouts::rows::update(tx, &mut payout, PayoutStatus::Processing)?;
            return Ok(format!("{id} is sent to the bank again"));
        }
        (PayoutStatus::Settled, OperatorDecision::Return) => {
            journal::set_attention(tx, now, payout.id, None)?;
            let report = BankReport::Returned {
                code: FailureCode::ReturnedByBeneficiaryBank,
                source: FailureSource::BeneficiaryBank,
            };
            paying::apply_report(tx, now, services, &mut payout, report)?;
        }
        (PayoutStatus::Processing, OperatorDecision::Fail) => {
            // Once the money goes back, nothing may go to the bank any more. A queued instruction
            // is withdrawn before its row is read, because this update waits for a worker that is
            // just claiming the row.
            let is_withdrawn = journal::withdraw(tx, payout.id)?;
            let found = if is_withdrawn { None } else { journal::find(tx, payout.id)? };
            match found.map(|found| found.status) {
                Some(InstructionStatus::Queued | InstructionStatus::Writing) => {
                    return Err(declined(id, BEING_WRITTEN));
                }
                Some(InstructionStatus::Published) if payout.failure.is_none() => {
                    return Err(declined(
                        id,
                        "the bank has it and may still pay it: wait for the bank's report, or \
                         until the payout shows outcome_unknown",
                    ));
                }
                _ => {}
            }
            journal::stop_waiting(tx, payout.id, None)?;
            // A statement may still show the payment and its return. This mark tells the bank's
            // worker to ignore them.
            let before = journal::find(tx, payout.id)?.and_then(|found| found.attention);
            let after = before
                .filter(|attention| {
                    matches!(attention, Attention::ReturnedWhileProcessing | Attention::Reversed)
                })
                .map(|_| Attention::ReturnedAndFailed);
            journal::set_attention(tx, now, payout.id, after)?;
            let report = BankReport::Failed {
                code: FailureCode::TechnicalError,
                source: FailureSource::SponsorBank,
            };
            paying::apply_report(tx, now, services, &mut payout, report)?;
        }
        (PayoutStatus::Hold, OperatorDecision::Approve) => {
            if pauses::is_paused(tx, scope, pauses::Operation::Payouts)? {
                let message = "payouts are paused: approve it once they go on";
                return Err(declined(id, message));
            }
            // The hits are cleared first, because `submit` then screens everybody concerned again.
            // If a limit holds the payout, none is cleared: there was no open hit when it was held,
            // and this decision is not about hits found since.
            let decided = match payout.held_for {
                Some(held_for) if held_for.is_limit() => String::new(),
                _ => {
                    let transfer = payout.transfer_id.any();
                    decide_hits(tx, now, scope, transfer, HitDecision::Cleared, by)?
                }
            };
            let is_held_by_limit = payout.held_for.is_some_and(HoldReason::is_limit);
            let limits = if is_held_by_limit { LimitCheck::Waived } else { LimitCheck::Apply };
            paying::submit(tx, now, services, scope, payout.id, limits)?;
            let found = payouts::rows::find(tx, scope, payout.id)?;
            let held_for = found.as_ref().and_then(|found| found.held_for);
            let held_for = held_for.map_or(String::new(), |why| format!(" ({})", why.as_str()));
            let status = found.map_or("gone", |found| Status::as_str(found.status));
            return Ok(format!("{id} is {status}{held_for}{decided}"));
        }
        (PayoutStatus::Hold, OperatorDecision::Refuse) => {
            // Otherwise the open hits of the transfer would stay open.
            let decided =
                decide_hits(tx, now, scope, payout.transfer_id.any(), HitDecision::Refused, by)?;
            paying::refuse_held(tx, now, services, &mut payout, FailureCode::ComplianceRejected)?;
            return Ok(format!("{id} is {}{decided}", Status::as_str(payout.status)));
        }
        (status, _) => return Err(not_taken(id, status)),
    }
    Ok(format!("{id} is {}", Status::as_str(payout.status)))
}

/// Reads a bank's reference that the operator typed, in capital or small letters.
fn utr(id: AnyId, method: PaymentMethod, reference: &str) -> Result<Utr, OperationError> {
    Utr::parse_for(method, &reference.to_ascii_uppercase()).ok_or_else(|| {
        declined(
            id,
            match method {
                PaymentMethod::Internal => {
                    "the reference of a book transfer has 6 to 35 letters and digits"
                }
                _ => "a bank's reference has 10 to 22 letters and digits, and a digit among them",
            },
        )
    })
}
