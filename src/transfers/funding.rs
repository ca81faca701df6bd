//! The funding leg: what a deposit means for its transfer, and what happens if none comes in time.

use super::state::{HoldPolicy, OverpaidPolicy, StatusReason, TransferStatus};
use super::{Transfer, become_status, holds, paying, rows, save, screening};
use crate::chains::address::ChainAddress;
use crate::chains::{self, ChainName, Depth, Movement};
use crate::deposits::state::{Classification, ReasonCode};
use crate::deposits::{self, Deposit};
use crate::events;
use crate::kernel::id::kind;
use crate::kernel::state::Status;
use crate::kernel::{Id, Money, Now, Scope, StoreError};
use crate::ledger::{self, LedgerAccount, LedgerEntryKind, Posting};
use crate::services::Services;
use crate::store::Tx;
use crate::tasks::{self, TaskKind};

fn find(tx: &mut dyn Tx, scope: Scope, id: Id<kind::Transfer>) -> Result<Transfer, StoreError> {
    rows::find(tx, scope, id)?
        .ok_or_else(|| StoreError::Broken(format!("{id} is referred to and does not exist")))
}

/// Records what the simulated chain shows of one token movement to an address of ours, in a new
/// deposit, or in the movement's deposit if the book has one. Movements on a real chain come
/// through [`observe_transaction`].
pub fn observe_simulated(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    chain: &str,
    movement: &Movement,
) -> Result<Deposit, StoreError> {
    let (hash, index) = (&movement.transaction_hash, movement.log_index);
    let known = deposits::rows::find_simulated(tx, scope, chain, hash, index)?;
    record_movement(tx, now, services, scope, chain, movement, known)
}

/// Records what a real chain shows of one transaction: all its movements to addresses of one
/// account. Answers the identifiers of the deposits, in the order of the movements. If the
/// transaction's block is replaced, log indices may change. Unsettled deposits are then recognised
/// by their addresses, amount and asset, and keep their identifiers.
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
    // A dropped deposit stays dropped. If its transaction comes back, that is a new deposit.
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
    // First match the movements whose log index did not change, then those whose index changed with
    // the block.
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
        ids.push(record_movement(tx, now, services, scope, chain, movement, deposit)?.id);
    }
    Ok(ids)
}

/// Records a movement whose deposit was already looked up; `None` begins a new deposit.
fn record_movement(
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

/// Judges a deposit that the chain's final view shows, and credits it if it is in the transfer's
/// asset.
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
        // The time to pay is over with too little received, and the expiry task has not run yet.
        // Hold now, as that task would have done, so that the outcome does not depend on which
        // comes first.
        let policy = transfer.policy.underpaid;
        holds::hold(tx, now, services, &mut transfer, StatusReason::Underpaid, policy)?;
    }
    let classification = classify(&transfer, deposit)?;
    deposits::end(tx, now, deposit, Some(classification), None)?;
    events::emit(tx, now, deposit.scope, events::DEPOSIT_COMPLETED, deposit.id.any())?;
    let payer = ChainAddress::of_chain(&deposit.chain, deposit.from_address);
    let is_suspect =
        screening::screen_address(tx, now, services, deposit.scope, deposit.transfer_id, &payer)?;
    credit(tx, now, services, &mut transfer, deposit.amount, classification, is_suspect)
}

/// How a final deposit counts for its transfer. If the transfer no longer accepts money, the
/// deposit is unmatched. Otherwise, if the transfer was cancelled, the deposit is late, even while
/// an earlier deposit is on hold. Without a cancellation, the deposit is late if the time of its
/// block is after `expires_at`; when the deposit was seen does not matter.
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
        ledger::post(tx, now, scope, entry, id, &[Posting::new(LedgerAccount::Custody, to, amount)])
    };
    if classification == Classification::Unmatched {
        arrive(tx, now, LedgerEntryKind::DepositHeld, LedgerAccount::Hold)?;
        return save(tx, transfer);
    }
    transfer.received = transfer.received.plus(amount)?;
    if transfer.status == TransferStatus::FundingHold {
        // More money in a hold raises what was received. Status and reason stay, unless the payer's
        // address is on a list and is not cleared: then the hold becomes a review.
        arrive(tx, now, LedgerEntryKind::DepositHeld, LedgerAccount::Hold)?;
        if is_suspect {
            holds::begin_review(tx, now, transfer)?;
            return Ok(());
        }
        return save(tx, transfer);
    }
    arrive(tx, now, LedgerEntryKind::DepositCredited, LedgerAccount::Available)?;
    if is_suspect {
        // Whatever the deposit's classification, nothing is paid or refunded before the operator
        // has decided.
        return holds::hold_for_review(tx, now, transfer);
    }
    if transfer.status == TransferStatus::Expired && classification != Classification::Late {
        // The deposit's block is in time, but the caller was already told `expired`, and the payer
        // may have paid elsewhere since. So the caller has to decide, whatever `policy.late` says.
        // The reason `late` covers this case too.
        return holds::hold(tx, now, services, transfer, StatusReason::Late, HoldPolicy::Hold);
    }
    match classification {
        Classification::Partial => save(tx, transfer),
        Classification::Exact => paying::fund(tx, now, services, transfer),
        Classification::Over if transfer.policy.overpaid == OverpaidPolicy::RefundExcess => {
            paying::fund(tx, now, services, transfer)
        }
        Classification::Over => {
            holds::hold(tx, now, services, transfer, StatusReason::Overpaid, HoldPolicy::Hold)
        }
        _ => {
            let policy = transfer.policy.late;
            holds::hold(tx, now, services, transfer, StatusReason::Late, policy)
        }
    }
}

/// Ends a deposit as `failed` if the chain no longer shows it (`deposits::mark_unseen`) and it did
/// not come back within [`deposits::UNSEEN_SECONDS_MAX`]. Changes nothing before that time, and
/// never changes a deposit that is completed or failed.
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

/// The time that the final view of the transfer's chain has reached, in Unix seconds. On a real
/// chain it is the time of the cursor's block, or 0 if there is no cursor. The configuration may
/// name another chain by now; the transfer's own counts.
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

/// Ends the wait of a transfer in `funding` once its chain's final view has passed `expires_at`:
/// without money the transfer expires; too little money is held, or refunded if `policy.underpaid`
/// says so. Schedules itself again while the view is not that far, or while a deposit that may be
/// in time is not final.
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
        // The chain is not read that far yet, so nobody knows what came in time.
        let wait_seconds = (transfer.expires_at - final_time + 1)
            .clamp(FINAL_VIEW_WAIT_SECONDS_MIN, FINAL_VIEW_WAIT_SECONDS_MAX);
        let due = now.business_milliseconds() + wait_seconds * 1000;
        return tasks::schedule(tx, now, scope, TaskKind::FundingExpiry, id, due);
    }
    // A real chain can add no further block that is in time. The simulated chain puts a deposit
    // into a block some time after it was sent.
    let may_enter_block = transfer.is_simulated(services);
    let until = transfer.expires_at;
    if deposits::rows::any_unsettled_until(tx, scope, id, until, may_enter_block)? {
        // A deposit that may be in time is not final yet.
        let due = now.business_milliseconds() + UNSETTLED_WAIT_MILLISECONDS;
        return tasks::schedule(tx, now, scope, TaskKind::FundingExpiry, id, due);
    }
    if transfer.received.is_zero() {
        return become_status(tx, now, &mut transfer, TransferStatus::Expired, None);
    }
    let policy = transfer.policy.underpaid;
    holds::hold(tx, now, services, &mut transfer, StatusReason::Underpaid, policy)
}

/// Pause before an expiry looks again for a deposit that may be in time and is not final yet.
const UNSETTLED_WAIT_MILLISECONDS: i64 = 1_000;
/// Bounds of the pause before an expiry looks again whether the final view has reached
/// `expires_at`.
const FINAL_VIEW_WAIT_SECONDS_MIN: i64 = 3;
const FINAL_VIEW_WAIT_SECONDS_MAX: i64 = 60;

/// What is still missing of [`Transfer::expected`]; zero if nothing is.
pub fn missing(transfer: &Transfer) -> Result<Money, StoreError> {
    let rest = transfer.expected.minus(transfer.received)?;
    Ok(if rest.units < 0 { Money::zero(rest.currency) } else { rest })
}

/// What the payer still has to send: what is neither received nor on its way; zero if that is
/// nothing. [`missing`] includes what is on its way, and a payer who is asked for that much pays
/// part of it twice.
pub fn still_to_send(tx: &mut dyn Tx, transfer: &Transfer) -> Result<Money, StoreError> {
    let (scope, asset) = (transfer.scope, &transfer.asset);
    let pending = deposits::rows::pending_units_of_transfer(tx, scope, transfer.id, asset)?;
    let missing = missing(transfer)?;
    Ok(Money { units: (missing.units - pending).max(0), ..missing })
}

/// Whether a transfer of this status still takes a deposit, even if only into a hold. Otherwise the
/// deposit is unmatched, and the operator decides about it.
pub fn takes_money(status: TransferStatus) -> bool {
    status.can_become(TransferStatus::FundingHold) || status == TransferStatus::FundingHold
}
