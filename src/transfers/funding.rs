//! The funding leg: what a deposit means for its transfer, what happens without one, and what ends
//! a hold.

use super::refunding;
use super::state::{HoldPolicy, OverpaidPolicy, StatusReason, TransferStatus};
use super::{HOLD_SECONDS, Transfer, become_status, rows, save};
use crate::beneficiaries;
use crate::chains::address::Address;
use crate::chains::tron_address::TronAddress;
use crate::chains::{self, ChainName, Depth, Movement};
use crate::deposits::state::{Classification, ReasonCode};
use crate::deposits::{self, Deposit};
use crate::events;
use crate::kernel::id::kind;
use crate::kernel::state::Status;
use crate::kernel::{
    Code, Id, Money, Now, OperationError, Reference, Refusal, RefusalEntry, Scope, StoreError,
};
use crate::ledger::{self, Account, Entry, Posting};
use crate::payouts;
use crate::quote_locks::{self, QuoteLock};
use crate::refunds;
use crate::refunds::state::{RefundKind, RefundReason};
use crate::screening::hits;
use crate::screening::{Screening, ScreeningHit};
use crate::services::Services;
use crate::store::Tx;
use crate::tasks::{self, TaskKind};

fn find(tx: &mut dyn Tx, scope: Scope, id: Id<kind::Transfer>) -> Result<Transfer, StoreError> {
    rows::find(tx, scope, id)?
        .ok_or_else(|| StoreError::Broken(format!("{id} is referred to and does not exist")))
}

/// Takes over what a chain shows of one token movement to an address of ours. Seeing the same again
/// changes nothing.
pub fn observe(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    chain: &str,
    movement: &Movement,
) -> Result<Deposit, StoreError> {
    let known =
        deposits::rows::find_movement(tx, scope, &movement.transaction_hash, movement.log_index)?;
    observe_as(tx, now, services, scope, chain, movement, known)
}

/// Takes over what a real chain shows of one transaction: all its movements to addresses of one
/// account. A transaction that moved to another block, and to other places in it, keeps its
/// deposits, told apart by what they moved.
pub fn observe_transaction(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    chain: &str,
    movements: &[&Movement],
) -> Result<Vec<Id<kind::Deposit>>, StoreError> {
    let Some(first) = movements.first() else { return Ok(Vec::new()) };
    let mut known = deposits::rows::of_transaction(tx, scope, chain, &first.transaction_hash)?;
    // What was given up for dropped and comes back after all is money, and a deposit of its own.
    known.retain(|deposit| deposit.reason_code != Some(ReasonCode::Dropped));
    let is_same = |deposit: &Deposit, movement: &Movement| {
        (deposit.to_address, deposit.from_address, deposit.amount, deposit.asset.as_str())
            == (
                movement.to_address,
                movement.from_address,
                movement.amount,
                movement.asset.as_str(),
            )
    };
    // Those that stand where they stood, before those that moved.
    let mut matched: Vec<Option<Deposit>> = movements
        .iter()
        .map(|movement| {
            let place = known.iter().position(|deposit| {
                deposit.log_index == movement.log_index && is_same(deposit, movement)
            });
            place.map(|place| known.remove(place))
        })
        .collect();
    for (movement, slot) in movements.iter().zip(&mut matched).filter(|(_, slot)| slot.is_none()) {
        let place =
            known.iter().position(|deposit| !deposit.is_settled() && is_same(deposit, movement));
        *slot = place.map(|place| Deposit { log_index: movement.log_index, ..known.remove(place) });
    }
    let mut ids = Vec::with_capacity(movements.len());
    for (movement, deposit) in movements.iter().zip(matched) {
        ids.push(observe_as(tx, now, services, scope, chain, movement, deposit)?.id);
    }
    Ok(ids)
}

/// The same, for a movement whose deposit is known, or known to be new.
fn observe_as(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    chain: &str,
    movement: &Movement,
    known: Option<Deposit>,
) -> Result<Deposit, StoreError> {
    let mut deposit = match known {
        Some(deposit) => deposit,
        None => {
            let owner = deposits::rows::address_owner(tx, &movement.to_address)?;
            let Some((owner, transfer_id)) = owner.filter(|(owner, _)| *owner == scope) else {
                return Err(StoreError::Broken(
                    "a movement was reported for an address that is not this account's".into(),
                ));
            };
            let deposit = deposits::begin(tx, now, owner, transfer_id, chain, movement)?;
            let mut transfer = find(tx, scope, transfer_id)?;
            transfer.unsettled_count += 1;
            save(tx, &mut transfer)?;
            deposit
        }
    };
    if deposit.is_settled() {
        return Ok(deposit);
    }
    deposits::follow(tx, now, &mut deposit, movement.depth)?;
    if let Depth::Final { .. } = movement.depth {
        settle(tx, now, services, &mut deposit)?;
    }
    Ok(deposit)
}

/// Judges a deposit that the chain's final view shows, and credits it.
fn settle(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    deposit: &mut Deposit,
) -> Result<(), StoreError> {
    let mut transfer = find(tx, deposit.scope, deposit.transfer_id)?;
    transfer.unsettled_count -= 1;
    if deposit.asset != transfer.asset {
        save(tx, &mut transfer)?;
        return deposits::end(
            tx,
            now,
            deposit,
            Some(Classification::Unsupported),
            Some(ReasonCode::AssetUnsupported),
        );
    }
    let is_late = deposit.block_time.is_none_or(|time| time > transfer.expires_at);
    if transfer.status == TransferStatus::Funding && is_late && !transfer.received.is_zero() {
        // The final view has passed the time to pay with too little in it. The hold that follows
        // does not depend on whether this deposit was read with those before it.
        let policy = transfer.policy.underpaid;
        hold(tx, now, services, &mut transfer, StatusReason::Underpaid, policy)?;
    }
    let classification = classify(&transfer, deposit)?;
    deposits::end(tx, now, deposit, Some(classification), None)?;
    events::emit(tx, now, deposit.scope, events::DEPOSIT_COMPLETED, deposit.id.any())?;
    let payer = TronAddress::from_evm(deposit.from_address);
    let is_suspect =
        is_address_suspect(tx, now, services, deposit.scope, deposit.transfer_id, &payer)?;
    credit(tx, now, services, &mut transfer, deposit.amount, classification, is_suspect)
}

/// Whether an address that paid, or that a refund goes to, is on a list and the operator did not
/// clear it for this transfer.
pub(super) fn is_address_suspect(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    transfer_id: Id<kind::Transfer>,
    address: &TronAddress,
) -> Result<bool, StoreError> {
    let finding = services.screen_address(scope.mode(), address);
    if finding.screening == Screening::Clear {
        return Ok(false);
    }
    let basis = |hit: &ScreeningHit| {
        services.sealer.fingerprint(&[b"screening", &hit.entry_hash, address.as_evm()])
    };
    Ok(hits::keep(tx, now, scope, transfer_id.any(), &finding, &basis)? != Screening::Clear)
}

/// The row of the contract's table that a final deposit falls under: by the time of its block,
/// whenever it was seen; `expires_at` itself is in time. After a cancellation every deposit is
/// late, also those that follow the first.
pub fn classify(transfer: &Transfer, deposit: &Deposit) -> Result<Classification, StoreError> {
    if !takes_money(transfer.status) {
        return Ok(Classification::Unmatched);
    }
    let was_cancelled = transfer.status_history.last_at(TransferStatus::Cancelled).is_some();
    if was_cancelled || deposit.block_time.is_none_or(|time| time > transfer.expires_at) {
        return Ok(Classification::Late);
    }
    let total = transfer.received.plus(deposit.amount)?;
    Ok(match total.units.cmp(&transfer.expected.units) {
        std::cmp::Ordering::Less => Classification::Partial,
        std::cmp::Ordering::Equal => Classification::Exact,
        std::cmp::Ordering::Greater => Classification::Over,
    })
}

fn credit(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    transfer: &mut Transfer,
    amount: Money,
    classification: Classification,
    is_suspect: bool,
) -> Result<(), StoreError> {
    let (scope, id) = (transfer.scope, transfer.id);
    let arrive = |tx: &mut dyn Tx, now: &mut Now, entry, to| {
        ledger::post(tx, now, scope, entry, id, &[Posting::new(Account::Custody, to, amount)])
    };
    if classification == Classification::Unmatched {
        arrive(tx, now, Entry::DepositHeld, Account::Hold)?;
        return save(tx, transfer);
    }
    transfer.received = transfer.received.plus(amount)?;
    if transfer.status == TransferStatus::FundingHold {
        // More money in a hold raises what was received; state and reason stay.
        arrive(tx, now, Entry::DepositHeld, Account::Hold)?;
        if is_suspect {
            begin_review(tx, now, transfer)?;
            return Ok(());
        }
        return save(tx, transfer);
    }
    arrive(tx, now, Entry::DepositCredited, Account::Available)?;
    if is_suspect {
        // Whatever the table of deposits says: nothing is paid or given back before the operator
        // decided.
        return review(tx, now, transfer);
    }
    if transfer.status == TransferStatus::Expired && classification != Classification::Late {
        // Paid in time, and found when the transfer had been told to be expired: the payer may have
        // paid elsewhere meanwhile, so that somebody decides, whatever the policy for late money
        // says.
        return hold(tx, now, services, transfer, StatusReason::Late, HoldPolicy::Hold);
    }
    match classification {
        Classification::Partial => save(tx, transfer),
        Classification::Exact => fund(tx, now, services, transfer),
        Classification::Over if transfer.policy.overpaid == OverpaidPolicy::RefundExcess => {
            fund(tx, now, services, transfer)
        }
        Classification::Over => {
            hold(tx, now, services, transfer, StatusReason::Overpaid, HoldPolicy::Hold)
        }
        _ => {
            let policy = transfer.policy.late;
            hold(tx, now, services, transfer, StatusReason::Late, policy)
        }
    }
}

/// The amount is final on chain: the payout begins, and what came above the amount is owed back.
fn fund(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    transfer: &mut Transfer,
) -> Result<(), StoreError> {
    fund_from(tx, now, services, transfer, Account::Available, RefundReason::Overpaid)
}

fn fund_from(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    transfer: &mut Transfer,
    from: Account,
    excess_reason: RefundReason,
) -> Result<(), StoreError> {
    let excess = transfer.received.minus(transfer.expected)?;
    transfer.excess = excess;
    let entry = if from == Account::Hold { Entry::FundsReleased } else { Entry::TransferFunded };
    ledger::post(
        tx,
        now,
        transfer.scope,
        entry,
        transfer.id,
        &[Posting::new(from, Account::Processing, transfer.expected)],
    )?;
    if from != Account::Hold {
        ledger::post(
            tx,
            now,
            transfer.scope,
            Entry::ExcessHeld,
            transfer.id,
            &[Posting::new(from, Account::Hold, excess)],
        )?;
    }
    become_status(tx, now, transfer, TransferStatus::Funded, None)?;
    let payout = payouts::begin(
        tx,
        now,
        transfer.scope,
        transfer.id,
        transfer.beneficiary_id,
        transfer.payout_amount,
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

/// Money is here and needs a decision; with the policy `refund` the decision is made already.
fn hold(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    transfer: &mut Transfer,
    reason: StatusReason,
    policy: HoldPolicy,
) -> Result<(), StoreError> {
    become_status(tx, now, transfer, TransferStatus::FundingHold, Some(reason))?;
    let received = Posting::new(Account::Available, Account::Hold, transfer.received);
    ledger::post(tx, now, transfer.scope, Entry::FundsHeld, transfer.id, &[received])?;
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
    // After a hold, everything received goes back.
    let received = transfer.received;
    become_status(tx, now, transfer, TransferStatus::RefundProcessing, None)?;
    refunding::owe(tx, now, services, transfer, RefundKind::Principal, reason, received)
}

/// A deposit whose block was replaced did not come back in time.
pub fn drop_unseen(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    id: Id<kind::Deposit>,
) -> Result<(), StoreError> {
    let Some(mut deposit) = deposits::rows::find(tx, scope, id)? else { return Ok(()) };
    let is_due = deposit
        .unseen_since
        .is_some_and(|since| now.business() >= since + deposits::UNSEEN_SECONDS_MAX);
    if deposit.is_settled() || !is_due {
        return Ok(());
    }
    let mut transfer = find(tx, scope, deposit.transfer_id)?;
    transfer.unsettled_count -= 1;
    save(tx, &mut transfer)?;
    deposits::end(tx, now, &mut deposit, None, Some(ReasonCode::Dropped))
}

/// Until when the final view of a transfer's chain reaches: on a real one the time of the last
/// block that was read, also where the configuration names another chain by now.
fn final_view_time(
    tx: &mut dyn Tx,
    now: &Now,
    services: &Services,
    transfer: &Transfer,
) -> Result<i64, StoreError> {
    if transfer.is_simulated(services) {
        return Ok(now.business());
    }
    let Some(chain) = ChainName::parse(&transfer.chain) else { return Ok(0) };
    Ok(chains::rows::cursor(tx, transfer.scope.mode(), chain)?
        .map_or(0, |cursor| cursor.block_time))
}

/// The chain's final view has passed `expires_at`: without money the transfer expires, with too
/// little it is held.
pub fn expire(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    id: Id<kind::Transfer>,
) -> Result<(), StoreError> {
    let Some(mut transfer) = rows::find(tx, scope, id)? else { return Ok(()) };
    if transfer.status != TransferStatus::Funding {
        return Ok(());
    }
    let final_time = final_view_time(tx, now, services, &transfer)?;
    if final_time <= transfer.expires_at {
        // The watcher is not that far yet, so nobody knows what came in time.
        let wait = (transfer.expires_at - final_time + 1)
            .clamp(FINAL_VIEW_WAIT_SECONDS_MIN, FINAL_VIEW_WAIT_SECONDS_MAX);
        let due = now.business_milliseconds() + wait * 1000;
        return tasks::schedule(tx, now, scope, TaskKind::FundingExpiry, id, due);
    }
    if deposits::rows::any_unsettled_until(tx, scope, id, transfer.expires_at)? {
        // A deposit that may be in time is not final yet.
        let due = now.business_milliseconds() + FINAL_VIEW_WAIT_MILLISECONDS;
        return tasks::schedule(tx, now, scope, TaskKind::FundingExpiry, id, due);
    }
    if transfer.received.is_zero() {
        return become_status(tx, now, &mut transfer, TransferStatus::Expired, None);
    }
    let policy = transfer.policy.underpaid;
    hold(tx, now, services, &mut transfer, StatusReason::Underpaid, policy)
}

const FINAL_VIEW_WAIT_MILLISECONDS: i64 = 1_000;
/// How long an expiry waits for a real chain's final view before it looks again.
const FINAL_VIEW_WAIT_SECONDS_MIN: i64 = 3;
const FINAL_VIEW_WAIT_SECONDS_MAX: i64 = 60;

/// Nobody decided within 24 hours: the money goes back. A compliance review has no timer.
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
            // A review that ended meanwhile began the 24 hours anew.
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
    Requote(Reference<kind::QuoteLock>),
}

/// Carries out a caller's decision on a hold.
pub fn resolve(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    transfer: &mut Transfer,
    resolution: Resolution,
    refund_address: Option<Address>,
) -> Result<(), OperationError> {
    let lock = match resolution {
        Resolution::Refund => None,
        Resolution::Requote(reference) => {
            let scope = transfer.scope;
            let found = reference.id.map(|id| quote_locks::rows::find(tx, scope, id));
            let lock = found.transpose()?.flatten();
            Some(lock.ok_or_else(|| reference.missing("quote_lock_id", scope.mode()))?)
        }
    };
    let reason = match (transfer.status, transfer.status_reason) {
        (TransferStatus::FundingHold, Some(StatusReason::ComplianceReview)) => {
            return Err(Refusal::new(
                Code::TransferActionInvalid,
                "The transfer is under review by the operator, who alone can end it. Wait for its \
                 next event.",
            )
            .into());
        }
        (TransferStatus::FundingHold, Some(reason)) => reason,
        _ => {
            let message = format!(
                "The transfer is {}; only one in funding_hold can be resolved.",
                transfer.status.as_str()
            );
            return Err(Refusal::new(Code::TransferActionInvalid, message).into());
        }
    };
    if let Some(address) = &refund_address {
        let contract = &transfer.token_contract;
        let refused = refunds::address_refused(tx, "refund_address", address, contract)?;
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

/// Puts a fresh lock in the place of the old one and pays from what was received; the rest is owed
/// back.
fn requote(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    transfer: &mut Transfer,
    lock: &QuoteLock,
) -> Result<(), OperationError> {
    let expected = lock.sell.at_par(transfer.expected.currency)?;
    let mut entries = Vec::from_iter(lock.usable(now.business()));
    let is_same_pair = lock.sell.currency == transfer.amount.currency
        && lock.buy.currency == transfer.payout_amount.currency;
    if !is_same_pair || expected.units > transfer.received.units {
        let message = format!(
            "The quote lock must be of the same pair and for at most what was received, {}.",
            transfer.received
        );
        entries.push(RefusalEntry::field(Code::QuoteLockMismatch, "quote_lock_id", message));
    }
    let beneficiary = beneficiaries::rows::find(tx, transfer.scope, transfer.beneficiary_id)?;
    match beneficiary {
        Some(beneficiary) if beneficiary.is_payable() => {}
        Some(beneficiary) => {
            entries.extend(beneficiaries::not_payable(&beneficiary).entries().iter().cloned());
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
    Ok(fund_from(tx, now, services, transfer, Account::Hold, RefundReason::Requoted)?)
}

/// Puts money that just became final, or that waits in a hold, under the operator's review.
pub fn begin_review(
    tx: &mut dyn Tx,
    now: &mut Now,
    transfer: &mut Transfer,
) -> Result<bool, StoreError> {
    match transfer.status {
        TransferStatus::FundingHold => {
            transfer.status_reason = Some(StatusReason::ComplianceReview);
            save(tx, transfer)?;
        }
        TransferStatus::Funding if !transfer.received.is_zero() => review(tx, now, transfer)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Holds what a transfer received for the operator's review.
fn review(tx: &mut dyn Tx, now: &mut Now, transfer: &mut Transfer) -> Result<(), StoreError> {
    become_status(
        tx,
        now,
        transfer,
        TransferStatus::FundingHold,
        Some(StatusReason::ComplianceReview),
    )?;
    let received = Posting::new(Account::Available, Account::Hold, transfer.received);
    ledger::post(tx, now, transfer.scope, Entry::FundsHeld, transfer.id, &[received])
}

/// The operator's decision on a review: refused, everything goes back; approved, the deposits are
/// judged again. `late` is what came late of what was received. Answers `false` where the transfer
/// is not under review.
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
            fund_from(tx, now, services, transfer, Account::Hold, RefundReason::Overpaid)?;
            return Ok(true);
        }
    };
    transfer.status_reason = Some(reason);
    await_decision(tx, now, transfer)?;
    Ok(true)
}

/// What is still missing of the amount.
pub fn missing(transfer: &Transfer) -> Result<Money, StoreError> {
    let rest = transfer.expected.minus(transfer.received)?;
    Ok(if rest.units < 0 { Money::zero(rest.currency) } else { rest })
}

/// Whether the transfer can still be funded, as opposed to money going to the operator's queue.
pub fn takes_money(status: TransferStatus) -> bool {
    status.can_become(TransferStatus::FundingHold) || status == TransferStatus::FundingHold
}
