//! The INR leg: creating the payout of a funded transfer, instructing the bank, and what the bank's
//! reports do to the transfer.

use super::exchange::{exchange, undo_exchange};
use super::state::TransferStatus;
use super::{HOLD_SECONDS, Transfer, become_status, refunding, rows, save, screening};
use crate::beneficiaries::state::PayoutsDisabledReason;
use crate::beneficiaries::{self, Beneficiary};
use crate::kernel::id::kind;
use crate::kernel::{Id, Now, Scope, StoreError};
use crate::ledger::{self, LedgerAccount, LedgerEntryKind, Posting};
use crate::pauses;
use crate::payouts::advice_texts::AdviceTexts;
use crate::payouts::limits;
use crate::payouts::state::{HoldReason, PayoutStatus};
use crate::payouts::{self, Payout, PayoutFailure};
use crate::rails::{BankReport, FailureCode, FailureSource, PaymentMethod, Reporting};
use crate::refunds;
use crate::refunds::state::{RefundKind, RefundReason};
use crate::services::Services;
use crate::store::Tx;
use crate::tasks::{self, TaskKind};

/// The most payouts that [`schedule_each`] reads with one query.
pub(super) const PAYOUTS_PAGE_MAX: i64 = 1_000;

fn transfer_and_beneficiary(
    tx: &mut dyn Tx,
    payout: &Payout,
) -> Result<(Transfer, Beneficiary), StoreError> {
    let transfer = rows::find(tx, payout.scope, payout.transfer_id)?;
    let beneficiary = beneficiaries::rows::find(tx, payout.scope, payout.beneficiary_id)?;
    transfer.zip(beneficiary).ok_or_else(|| {
        StoreError::Broken(format!("{} has lost its transfer or beneficiary", payout.id))
    })
}

/// Begins the payout of a transfer whose amount is final on chain. Money above the amount is
/// refunded.
pub(super) fn fund(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    transfer: &mut Transfer,
) -> Result<(), StoreError> {
    fund_from(tx, now, services, transfer, LedgerAccount::Available, RefundReason::Overpaid)
}

/// Begins the payout. The money received is in the ledger account `from`, and is at least
/// `expected`. What was received above `expected` is refunded for `excess_reason`. This excess is
/// moved to the ledger account `hold`, unless `from` is that account.
pub(super) fn fund_from(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    transfer: &mut Transfer,
    from: LedgerAccount,
    excess_reason: RefundReason,
) -> Result<(), StoreError> {
    let excess = transfer.received.minus(transfer.expected)?;
    transfer.excess = excess;
    let entry = if from == LedgerAccount::Hold {
        LedgerEntryKind::FundsReleased
    } else {
        LedgerEntryKind::TransferFunded
    };
    ledger::post(
        tx,
        now,
        transfer.scope,
        entry,
        transfer.id,
        &[Posting::new(from, LedgerAccount::Processing, transfer.expected)],
    )?;
    if from != LedgerAccount::Hold {
        ledger::post(
            tx,
            now,
            transfer.scope,
            LedgerEntryKind::ExcessHeld,
            transfer.id,
            &[Posting::new(from, LedgerAccount::Hold, excess)],
        )?;
    }
    become_status(tx, now, transfer, TransferStatus::Funded, None)?;
    let beneficiary = beneficiaries::rows::find(tx, transfer.scope, transfer.beneficiary_id)?
        .ok_or_else(|| StoreError::Broken(format!("{} has no beneficiary", transfer.id)))?;
    let bank_code =
        services.ports(transfer.scope.mode()).map_or("", |ports| ports.rail.bank_code());
    let payout = payouts::begin(
        tx,
        now,
        transfer.scope,
        transfer.id,
        transfer.beneficiary_id,
        transfer.payout_amount,
        PaymentMethod::for_payment(transfer.payout_amount, &beneficiary.ifsc, bank_code),
        transfer.purpose_code.as_str(),
    )?;
    transfer.payout_id = Some(payout.id);
    save(tx, transfer)?;
    let due = now.business_milliseconds();
    tasks::schedule(tx, now, transfer.scope, TaskKind::PayoutSubmit, payout.id, due)?;
    if !excess.is_zero() {
        refunding::owe(tx, now, services, transfer, RefundKind::Excess, excess_reason, excess)?;
    }
    Ok(())
}

/// Whether limits can hold a payout. They are waived for a payout that a limit held and that the
/// operator approved.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LimitCheck {
    Apply,
    Waived,
}

/// How long until a payout that waits for the end of a pause is looked at again.
const PAUSED_LOOK_MILLISECONDS: i64 = 3_600_000;

/// Gives the bank the instruction, once: only for a payout that is `initialized` or on hold. The
/// payout is put on hold instead if its beneficiary cannot be paid now, if somebody concerned is on
/// a list, or if a limit has no room for it. While payouts are paused, nothing happens, but an
/// `initialized` payout is looked at again every hour.
pub fn submit(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    id: Id<kind::Payout>,
    limit_check: LimitCheck,
) -> Result<(), StoreError> {
    let Some(mut payout) = payouts::rows::find(tx, scope, id)? else { return Ok(()) };
    if !matches!(payout.status, PayoutStatus::Initialized | PayoutStatus::Hold) {
        return Ok(());
    }
    if pauses::is_paused(tx, scope, pauses::Operation::Payouts)? {
        // Once the pause has ended, `submit_waiting` schedules all waiting payouts. The task that
        // is scheduled here is for a payout that `submit_waiting` misses.
        if payout.status == PayoutStatus::Initialized {
            let due = now.business_milliseconds() + PAUSED_LOOK_MILLISECONDS;
            tasks::schedule(tx, now, scope, TaskKind::PayoutSubmit, id, due)?;
        }
        return Ok(());
    }
    let (mut transfer, beneficiary) = transfer_and_beneficiary(tx, &payout)?;
    if !beneficiary.is_payable() {
        let is_review = screening::is_under_review(tx, &beneficiary)?;
        let reason = if is_review { HoldReason::Screening } else { HoldReason::Beneficiary };
        if payout.status == PayoutStatus::Initialized {
            // The beneficiary is locked, so that a transaction that makes it payable again finds
            // this payout on hold, and resumes it.
            beneficiaries::rows::lock(tx, &beneficiary)?;
            payouts::hold(tx, now, &mut payout, reason)?;
            look_again_in_a_day(tx, now, &payout)?;
        } else if is_review && payout.held_for != Some(reason) {
            payouts::hold(tx, now, &mut payout, reason)?;
        }
        // Otherwise the payout was on hold already, and nothing changes now. If its beneficiary is
        // not under review, `look_at_held` decides about it.
        return Ok(());
    }
    if !screening::screen_everybody(tx, now, services, &transfer, &beneficiary)? {
        // Each later `submit` screens again: after 24 hours, when the operator approves the payout,
        // when its beneficiary is payable again, and when a pause of payouts ends.
        if payout.status == PayoutStatus::Initialized {
            // Read again: screening may have changed the beneficiary's row, and `lock` needs its
            // version.
            let (_, beneficiary) = transfer_and_beneficiary(tx, &payout)?;
            beneficiaries::rows::lock(tx, &beneficiary)?;
            payouts::hold(tx, now, &mut payout, HoldReason::Screening)?;
            look_again_in_a_day(tx, now, &payout)?;
        } else if payout.held_for != Some(HoldReason::Screening) {
            payouts::hold(tx, now, &mut payout, HoldReason::Screening)?;
        }
        return Ok(());
    }
    let limits = &services.settings.payout_limits;
    let is_approved = limit_check == LimitCheck::Waived;
    let held_for = limits::add_payout(tx, limits, &payout, transfer.sender_id, now, is_approved)?;
    if let Some(reason) = held_for {
        let is_new = payout.status == PayoutStatus::Initialized;
        if payout.held_for != Some(reason) {
            payouts::hold(tx, now, &mut payout, reason)?;
        }
        return if is_new { look_again_in_a_day(tx, now, &payout) } else { Ok(()) };
    }
    payout.submitted_milliseconds = Some(now.business_milliseconds());
    let texts = AdviceTexts::of_settings(tx, services, scope)?;
    payout.advice_texts_number = Some(payouts::rows::keep_advice_texts(tx, &texts)?);
    payouts::become_status(tx, now, &mut payout, PayoutStatus::Processing)?;
    become_status(tx, now, &mut transfer, TransferStatus::PayoutProcessing, None)?;
    let postings = exchange(&transfer, &payout)?;
    ledger::post(tx, now, scope, LedgerEntryKind::PayoutExchanged, transfer.id, &postings)?;
    let instruction = payout.instruction(&beneficiary, now.business_milliseconds());
    let report = services.ports(scope.mode())?.rail.submit(tx, now, &instruction)?;
    if report == BankReport::Processing {
        return inquire_later(tx, now, services, &payout);
    }
    apply_report(tx, now, services, &mut payout, report)
}

/// Schedules every payout that was not instructed yet, also those on hold. Called when a pause of
/// payouts has ended.
pub fn submit_waiting(tx: &mut dyn Tx, now: &mut Now, scope: Scope) -> Result<(), StoreError> {
    schedule_each(tx, now, scope, |tx, after| {
        payouts::rows::waiting(tx, scope, after, PAYOUTS_PAGE_MAX)
    })
}

/// Schedules the submission of all payouts that `page` lists. `page` answers the next payouts after
/// an identifier, in order; an empty answer ends the list.
fn schedule_each(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    page: impl Fn(&mut dyn Tx, [u8; 16]) -> Result<Vec<Id<kind::Payout>>, StoreError>,
) -> Result<(), StoreError> {
    let mut after = [0; 16];
    loop {
        let ids = page(tx, after)?;
        for id in &ids {
            let due = now.business_milliseconds();
            tasks::schedule(tx, now, scope, TaskKind::PayoutSubmit, *id, due)?;
        }
        match ids.last() {
            Some(last) => after = last.to_bytes(),
            None => return Ok(()),
        }
    }
}

/// Schedules a question to the bank, two steps of the simulation from now.
fn inquire_later(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    payout: &Payout,
) -> Result<(), StoreError> {
    let due = now.business_milliseconds() + 2 * services.settings.simulation_step_milliseconds;
    inquire_at(tx, now, services, payout, due)
}

/// Schedules a question to the bank about a payout; `due` is business time in milliseconds. Only a
/// rail with `Reporting::Polled` is asked, today the simulated one. For others this does nothing.
fn inquire_at(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    payout: &Payout,
    due: i64,
) -> Result<(), StoreError> {
    if services.ports(payout.scope.mode())?.rail.reporting() == Reporting::Pushed {
        return Ok(());
    }
    tasks::schedule(tx, now, payout.scope, TaskKind::PayoutInquire, payout.id, due)
}

/// Asks the bank what became of a payout and applies the answer.
pub fn inquire(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    id: Id<kind::Payout>,
) -> Result<(), StoreError> {
    let Some(mut payout) = payouts::rows::find(tx, scope, id)? else { return Ok(()) };
    if !matches!(payout.status, PayoutStatus::Processing | PayoutStatus::Settled) {
        return Ok(());
    }
    let (_, beneficiary) = transfer_and_beneficiary(tx, &payout)?;
    let report = services
        .ports(scope.mode())?
        .rail
        .inquire(&payout.instruction(&beneficiary, now.business_milliseconds()));
    apply_report(tx, now, services, &mut payout, report)
}

/// Applies a bank's report. One that does not fit the payout's status changes nothing.
pub fn apply_report(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    payout: &mut Payout,
    report: BankReport,
) -> Result<(), StoreError> {
    match (payout.status, report) {
        (PayoutStatus::Processing, BankReport::Processing) => {
            inquire_later(tx, now, services, payout)
        }
        (PayoutStatus::Processing, BankReport::Unknown) => {
            // The payout stays `processing`. Its `failure` says that the outcome is unknown, until
            // a later report replaces or clears that.
            payout.failure =
                Some(PayoutFailure::new(FailureCode::OutcomeUnknown, FailureSource::SponsorBank));
            payouts::rows::update(tx, payout, PayoutStatus::Processing)
        }
        (PayoutStatus::Processing, BankReport::Settled { unique_transaction_reference }) => {
            apply_settled(tx, now, services, payout, unique_transaction_reference)
        }
        (PayoutStatus::Processing, BankReport::Failed { code, source }) => {
            apply_failed(tx, now, services, payout, PayoutFailure::new(code, source))
        }
        (PayoutStatus::Settled, BankReport::Returned { code, source }) => {
            apply_returned(tx, now, services, payout, PayoutFailure::new(code, source))
        }
        // Nothing reports this today: the simulated bank returns only what has settled, and
        // `workers/bank/apply.rs` leaves a real bank's early return to the operator. A rail that is
        // polled would be asked again until it says `Settled`.
        (PayoutStatus::Processing, BankReport::Returned { .. }) => {
            inquire_later(tx, now, services, payout)
        }
        _ => Ok(()),
    }
}

fn apply_settled(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    payout: &mut Payout,
    utr: String,
) -> Result<(), StoreError> {
    let (mut transfer, _) = transfer_and_beneficiary(tx, payout)?;
    payout.unique_transaction_reference = Some(utr);
    payout.settled_at = Some(now.business());
    payout.failure = None;
    payouts::become_status(tx, now, payout, PayoutStatus::Settled)?;
    become_status(tx, now, &mut transfer, TransferStatus::PayoutSettled, None)?;
    let posting =
        Posting::new(LedgerAccount::PayoutProcessing, LedgerAccount::PaidOut, payout.amount);
    ledger::post(tx, now, payout.scope, LedgerEntryKind::PayoutSettled, transfer.id, &[posting])?;
    // The advice becomes available one step of the simulation later, in live mode too: nothing
    // needs it sooner.
    let step_milliseconds = services.settings.simulation_step_milliseconds;
    let due = now.business_milliseconds() + step_milliseconds;
    tasks::schedule(tx, now, payout.scope, TaskKind::AdviceIssue, payout.id, due)?;
    // The bank is asked once more, because a payment can come back after it settled. If a test
    // helper settled the payout early, the delay counts from when the simulated bank would have
    // settled it.
    let settles_at_milliseconds =
        payout.submitted_milliseconds.unwrap_or(0) + 2 * step_milliseconds;
    let due = now.business_milliseconds().max(settles_at_milliseconds) + 2 * step_milliseconds;
    inquire_at(tx, now, services, payout, due)
}

fn apply_failed(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    payout: &mut Payout,
    failure: PayoutFailure,
) -> Result<(), StoreError> {
    let (mut transfer, _) = transfer_and_beneficiary(tx, payout)?;
    payout.failure = Some(failure);
    limits::remove_payout(tx, &services.settings.payout_limits, payout, transfer.sender_id)?;
    payouts::become_status(tx, now, payout, PayoutStatus::Failed)?;
    become_status(tx, now, &mut transfer, TransferStatus::PayoutFailed, None)?;
    let postings = undo_exchange(&transfer, LedgerAccount::PayoutProcessing, payout)?;
    ledger::post(tx, now, payout.scope, LedgerEntryKind::PayoutFailed, transfer.id, &postings)?;
    refund_principal(tx, now, services, &mut transfer, RefundReason::PayoutFailed)
}

fn apply_returned(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    payout: &mut Payout,
    failure: PayoutFailure,
) -> Result<(), StoreError> {
    let (mut transfer, mut beneficiary) = transfer_and_beneficiary(tx, payout)?;
    payout.failure = Some(failure);
    limits::remove_payout(tx, &services.settings.payout_limits, payout, transfer.sender_id)?;
    payouts::become_status(tx, now, payout, PayoutStatus::Returned)?;
    become_status(tx, now, &mut transfer, TransferStatus::PayoutReturned, None)?;
    let postings = undo_exchange(&transfer, LedgerAccount::PaidOut, payout)?;
    ledger::post(tx, now, payout.scope, LedgerEntryKind::PayoutReturned, transfer.id, &postings)?;
    beneficiaries::disable_payouts(
        tx,
        now,
        &mut beneficiary,
        PayoutsDisabledReason::ReturnedPayout,
    )?;
    refund_principal(tx, now, services, &mut transfer, RefundReason::PayoutReturned)
}

fn refund_principal(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    transfer: &mut Transfer,
    reason: RefundReason,
) -> Result<(), StoreError> {
    become_status(tx, now, transfer, TransferStatus::RefundProcessing, None)?;
    let amount = transfer.expected;
    refunding::owe(tx, now, services, transfer, RefundKind::Principal, reason, amount)
}

/// Keeps the refund of a payout from being sent until the operator releases it, because the bank
/// paid the payout after all. A refund that the chain has confirmed stays as it is.
pub fn hold_refund(tx: &mut dyn Tx, payout: &Payout, reason: &str) -> Result<(), StoreError> {
    let (transfer, _) = transfer_and_beneficiary(tx, payout)?;
    let Some(id) = transfer.refund_id else { return Ok(()) };
    match refunds::rows::find(tx, payout.scope, id)? {
        Some(mut refund) => refunds::hold_for_bank(tx, &mut refund, reason),
        None => Ok(()),
    }
}

/// Ends a payout that was never sent. The operator refused it or its beneficiary, or the
/// beneficiary could not be paid for 24 hours.
pub fn refuse_held(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    payout: &mut Payout,
    code: FailureCode,
) -> Result<(), StoreError> {
    let (mut transfer, _) = transfer_and_beneficiary(tx, payout)?;
    payout.failure = Some(PayoutFailure::new(code, FailureSource::Service));
    payouts::become_status(tx, now, payout, PayoutStatus::Failed)?;
    let posting = Posting::new(LedgerAccount::Processing, LedgerAccount::Hold, transfer.expected);
    ledger::post(tx, now, payout.scope, LedgerEntryKind::PayoutRefused, transfer.id, &[posting])?;
    refund_principal(tx, now, services, &mut transfer, RefundReason::PayoutFailed)
}

/// Schedules [`look_at_held`] in 24 hours.
fn look_again_in_a_day(tx: &mut dyn Tx, now: &mut Now, payout: &Payout) -> Result<(), StoreError> {
    let due = now.business_milliseconds() + HOLD_SECONDS * 1000;
    tasks::schedule(tx, now, payout.scope, TaskKind::PayoutHoldExpiry, payout.id, due)
}

/// Looks at a payout on hold; runs every 24 hours. If the beneficiary can be paid, the payout is
/// submitted again. If the operator has to decide about the beneficiary's screening hits, the
/// payout waits without end. If the operator has refused the beneficiary, the payout is refused. If
/// the beneficiary cannot be paid for another reason, the payout gets the hold reason
/// `Beneficiary`; if it has that already, it is refused.
pub fn look_at_held(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    id: Id<kind::Payout>,
) -> Result<(), StoreError> {
    let found = payouts::rows::find(tx, scope, id)?;
    let Some(mut payout) = found.filter(|payout| payout.status == PayoutStatus::Hold) else {
        return Ok(());
    };
    let (_, beneficiary) = transfer_and_beneficiary(tx, &payout)?;
    if beneficiary.is_payable() || screening::is_under_review(tx, &beneficiary)? {
        submit(tx, now, services, scope, id, LimitCheck::Apply)?;
        return match payouts::rows::find(tx, scope, id)? {
            Some(payout) if payout.status == PayoutStatus::Hold => {
                look_again_in_a_day(tx, now, &payout)
            }
            _ => Ok(()),
        };
    }
    let code = match beneficiary.payouts_disabled_reason {
        Some(PayoutsDisabledReason::ComplianceHold) => FailureCode::ComplianceRejected,
        _ if payout.held_for != Some(HoldReason::Beneficiary) => {
            payouts::hold(tx, now, &mut payout, HoldReason::Beneficiary)?;
            return look_again_in_a_day(tx, now, &payout);
        }
        Some(PayoutsDisabledReason::ReturnedPayout) => FailureCode::ReturnedByBeneficiaryBank,
        _ => FailureCode::ComplianceRejected,
    };
    refuse_held(tx, now, services, &mut payout, code)
}

/// Schedules all payouts on hold to a beneficiary that is payable again. Payouts that are held for
/// another reason are judged again too, and stay on hold while that reason lasts.
pub fn resume_held(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    beneficiary_id: Id<kind::Beneficiary>,
) -> Result<(), StoreError> {
    schedule_each(tx, now, scope, |tx, after| {
        let page = PAYOUTS_PAGE_MAX;
        payouts::rows::on_hold_of_beneficiary(tx, scope, beneficiary_id, after, page)
    })
}

/// Makes the payment advice of a settled or returned payout available.
pub fn issue_advice(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    id: Id<kind::Payout>,
) -> Result<(), StoreError> {
    match payouts::rows::find(tx, scope, id)? {
        Some(mut payout) => payouts::issue_advice(tx, now, &mut payout),
        None => Ok(()),
    }
}
