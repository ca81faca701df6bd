//! Holds: money that arrived and waits for a decision. The operator decides about a review, which
//! has no timer. The caller decides about any other hold; after 24 hours without a decision its
//! money goes back.

use super::state::{HoldPolicy, OverpaidPolicy, StatusReason, TransferStatus};
use super::{HOLD_SECONDS, Transfer, become_status, paying, refunding, rows, save};
use crate::beneficiaries;
use crate::chains::address::ChainAddress;
use crate::kernel::id::kind;
use crate::kernel::state::Status;
use crate::kernel::{
    Code, Id, Money, NamedId, Now, OperationError, Refusal, RefusalEntry, Scope, StoreError,
};
use crate::ledger::{self, LedgerAccount, LedgerEntryKind, Posting};
use crate::quote_locks::{self, QuoteLock};
use crate::refunds;
use crate::refunds::state::{RefundKind, RefundReason};
use crate::services::Services;
use crate::store::Tx;
use crate::tasks::{self, TaskKind};

/// Puts what a transfer has received on hold, and gives the caller 24 hours to decide. With the
/// policy `refund` the money goes back at once.
pub(super) fn hold(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    transfer: &mut Transfer,
    reason: StatusReason,
    policy: HoldPolicy,
) -> Result<(), StoreError> {
    become_status(tx, now, transfer, TransferStatus::FundingHold, Some(reason))?;
    let received = Posting::new(LedgerAccount::Available, LedgerAccount::Hold, transfer.received);
    ledger::post(tx, now, transfer.scope, LedgerEntryKind::FundsHeld, transfer.id, &[received])?;
    if policy == HoldPolicy::Refund {
        return refund_hold(tx, now, services, transfer, reason);
    }
    await_decision(tx, now, transfer)
}

/// Gives the caller 24 hours, after which the money goes back.
fn await_decision(
    tx: &mut dyn Tx,
    now: &mut Now,
    transfer: &mut Transfer,
) -> Result<(), StoreError> {
    let until = now.business() + HOLD_SECONDS;
    transfer.hold_until = Some(until);
    save(tx, transfer)?;
    tasks::schedule(tx, now, transfer.scope, TaskKind::HoldExpiry, transfer.id, until * 1000)
}

/// Ends a hold: everything received goes back.
fn refund_hold(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    transfer: &mut Transfer,
    reason: StatusReason,
) -> Result<(), StoreError> {
    let reason = match reason {
        StatusReason::Underpaid => RefundReason::Underpaid,
        StatusReason::Overpaid => RefundReason::Overpaid,
        StatusReason::Late => RefundReason::Late,
        StatusReason::ComplianceReview => RefundReason::ComplianceRejected,
    };
    let received = transfer.received;
    become_status(tx, now, transfer, TransferStatus::RefundProcessing, None)?;
    refunding::owe(tx, now, services, transfer, RefundKind::Principal, reason, received)
}

/// Refunds the money of a hold if nobody decided in time. A compliance review has no timer.
pub fn hold_expired(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    id: Id<kind::Transfer>,
) -> Result<(), StoreError> {
    let Some(mut transfer) = rows::find(tx, scope, id)? else { return Ok(()) };
    match (transfer.status, transfer.status_reason) {
        (TransferStatus::FundingHold, Some(reason)) if reason != StatusReason::ComplianceReview => {
            // A review may have ended meanwhile, which started the 24 hours again.
            if transfer.hold_until.is_some_and(|until| now.business() < until) {
                return Ok(());
            }
            refund_hold(tx, now, services, &mut transfer, reason)
        }
        _ => Ok(()),
    }
}

/// What a caller decides about money in a hold.
pub enum Resolution {
    Refund,
    Requote(NamedId<kind::QuoteLock>),
}

/// Carries out a caller's decision on a hold. `refund_address` replaces the transfer's, if given; a
/// refund needs one of the two. Refused outside `funding_hold`, and in a review, which only the
/// operator ends.
pub fn resolve(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    transfer: &mut Transfer,
    resolution: Resolution,
    refund_address: Option<ChainAddress>,
) -> Result<(), OperationError> {
    let lock = match resolution {
        Resolution::Refund => None,
        Resolution::Requote(quote_lock) => {
            let scope = transfer.scope;
            let found = quote_lock.id.map(|id| quote_locks::rows::find(tx, scope, id));
            let lock = found.transpose()?.flatten();
            Some(lock.ok_or_else(|| quote_lock.missing("quote_lock_id", scope.mode()))?)
        }
    };
    let reason = match (transfer.status, transfer.status_reason) {
        (TransferStatus::FundingHold, Some(StatusReason::ComplianceReview)) => {
            return Err(Refusal::new(
                Code::TransferActionInvalid,
                "The transfer is under review by the operator, who alone can end it. Fetch it \
                 later: if it stays on hold, its status_reason changes, and no event says so.",
            )
            .into());
        }
        (TransferStatus::FundingHold, Some(reason)) => reason,
        _ => {
            let message = format!(
                "The transfer is {}; only one in funding_hold can be resolved. {}",
                transfer.status.as_str(),
                if transfer.status == TransferStatus::Funding {
                    "Wait for its next event, or cancel it while no deposit was seen."
                } else {
                    "Fetch it to see what happens to the money."
                }
            );
            return Err(Refusal::new(Code::TransferActionInvalid, message).into());
        }
    };
    if let Some(address) = &refund_address {
        let contract = &transfer.token_contract;
        let refused = refunds::address_refusal(tx, "refund_address", address, contract)?;
        Refusal::check(Vec::from_iter(refused))?;
    }
    transfer.refund_address = refund_address.or(transfer.refund_address);
    match lock {
        None => {
            if transfer.refund_address.is_none() {
                let message = "No refund address is known. Send refund_address: the address that \
                               the money goes back to.";
                return Err(
                    Refusal::field(Code::RefundAddressRequired, "refund_address", message).into()
                );
            }
            Ok(refund_hold(tx, now, services, transfer, reason)?)
        }
        Some(lock) => requote(tx, now, services, transfer, &lock),
    }
}

/// Replaces the transfer's quote lock with a new one and pays from what was received; the rest is
/// refunded.
fn requote(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    transfer: &mut Transfer,
    lock: &QuoteLock,
) -> Result<(), OperationError> {
    let expected = lock.sell.at_par(transfer.expected.currency)?;
    let mut entries = Vec::from_iter(lock.refusal_if_unusable(now.business()));
    let is_same_pair = lock.sell.currency == transfer.amount.currency
        && lock.buy.currency == transfer.payout_amount.currency;
    if !is_same_pair || expected.units > transfer.received.units {
        let message = format!(
            "The quote lock must have the transfer's currencies, and sell at most what was \
             received: {}.",
            transfer.received
        );
        entries.push(RefusalEntry::field(Code::QuoteLockMismatch, "quote_lock_id", message));
    }
    let beneficiary = beneficiaries::rows::find(tx, transfer.scope, transfer.beneficiary_id)?;
    match beneficiary {
        Some(beneficiary) if beneficiary.is_payable() => {}
        Some(beneficiary) => {
            entries
                .extend(beneficiaries::refusal_not_payable(&beneficiary).entries().iter().cloned());
        }
        None => return Err(Refusal::internal().into()),
    }
    Refusal::check(entries)?;
    quote_locks::rows::take(tx, lock, transfer.id)?;
    transfer.quote_lock_id = lock.id;
    transfer.amount = lock.sell;
    transfer.payout_amount = lock.buy;
    transfer.rate = lock.rate;
    transfer.fee = lock.fee;
    transfer.gst = lock.gst;
    transfer.expected = expected;
    Ok(paying::fund_from(tx, now, services, transfer, LedgerAccount::Hold, RefundReason::Requoted)?)
}

/// Puts what a transfer has received, in `funding` or in a hold, under the operator's review.
/// Answers `false` if there is nothing to review.
pub fn begin_review(
    tx: &mut dyn Tx,
    now: &mut Now,
    transfer: &mut Transfer,
) -> Result<bool, StoreError> {
    match transfer.status {
        TransferStatus::FundingHold => {
            transfer.status_reason = Some(StatusReason::ComplianceReview);
            transfer.hold_until = None;
            save(tx, transfer)?;
        }
        TransferStatus::Funding if !transfer.received.is_zero() => {
            hold_for_review(tx, now, transfer)?
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Puts what a transfer received on hold, for the operator's review.
pub(super) fn hold_for_review(
    tx: &mut dyn Tx,
    now: &mut Now,
    transfer: &mut Transfer,
) -> Result<(), StoreError> {
    become_status(
        tx,
        now,
        transfer,
        TransferStatus::FundingHold,
        Some(StatusReason::ComplianceReview),
    )?;
    let received = Posting::new(LedgerAccount::Available, LedgerAccount::Hold, transfer.received);
    ledger::post(tx, now, transfer.scope, LedgerEntryKind::FundsHeld, transfer.id, &[received])
}

/// Carries out the operator's decision on a review. `late` is the part of the money received that
/// came late. Answers `false` if the transfer is not under review.
///
/// If the operator refuses, everything goes back. If the operator approves, there are three cases:
///
/// - Too little came in time: the caller has 24 hours to decide, whatever `policy.underpaid` and
///   `policy.late` say.
/// - Enough came in time, more than `expected` was received, and `policy.overpaid` is `hold`: the
///   caller has 24 hours to decide.
/// - Otherwise the payout begins, and what was received above `expected`, late money too, is owed
///   back.
///
/// A block's time says what came in time, even if the transfer had expired before the money was
/// seen. Without a review the caller would decide about such money (`funding.rs`); here the
/// approval is that decision.
pub fn end_review(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    transfer: &mut Transfer,
    is_approved: bool,
    late: Money,
) -> Result<bool, StoreError> {
    if transfer.status_reason != Some(StatusReason::ComplianceReview) {
        return Ok(false);
    }
    if !is_approved {
        refund_hold(tx, now, services, transfer, StatusReason::ComplianceReview)?;
        return Ok(true);
    }
    let in_time = transfer.received.minus(late)?;
    let is_enough = in_time.units >= transfer.expected.units;
    let is_over = transfer.received.units > transfer.expected.units;
    let reason = match () {
        () if !is_enough && !late.is_zero() => StatusReason::Late,
        () if !is_enough => StatusReason::Underpaid,
        () if is_over && transfer.policy.overpaid == OverpaidPolicy::Hold => StatusReason::Overpaid,
        () => {
            paying::fund_from(
                tx,
                now,
                services,
                transfer,
                LedgerAccount::Hold,
                RefundReason::Overpaid,
            )?;
            return Ok(true);
        }
    };
    transfer.status_reason = Some(reason);
    await_decision(tx, now, transfer)?;
    Ok(true)
}
