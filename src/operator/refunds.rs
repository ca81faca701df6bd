//! The operator's decisions about a refund: which address it goes to, whether it may be sent
//! although screening holds it, which transaction sent it, and whether it may be sent although the
//! bank paid its payout.

use super::four_eyes::{RequestedAction, keep_for_second_person};
use super::{
    OperatorDecision, OperatorResult, decide_hits, declined, declined_by, find_named, find_scope,
};
use crate::chains;
use crate::chains::address::ChainAddress;
use crate::decisions;
use crate::kernel::id::kind;
use crate::kernel::state::Status;
use crate::kernel::{AnyId, DecidedBy, Id, Now, Role, Scope};
use crate::keys;
use crate::refunds::state::{AddressDeclarer, RefundStatus};
use crate::refunds::{self, AddressDeclaration};
use crate::screening::hit::HitDecision;
use crate::screening::hits;
use crate::services::Services;
use crate::store::Tx;

/// Decides about a refund that screening holds because of its address. A refused refund stays held
/// until it is approved, or gets an address that screening does not hold.
pub(super) fn decide(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    id: AnyId,
    decision: &OperatorDecision,
    by: &DecidedBy,
) -> OperatorResult {
    let mut refund = find_named(id, |id| refunds::rows::find(tx, scope, id))?;
    if !refund.is_held_by_screening {
        return Err(declined(id, "screening does not hold it, so there is nothing to decide"));
    }
    match decision {
        OperatorDecision::Approve => {
            let decided = decide_hits(tx, now, scope, id, HitDecision::Cleared, by)?;
            refunds::end_screening_hold(tx, now, services, &mut refund)?;
            Ok(match refund.is_on_hold() {
                true => {
                    format!("screening no longer holds {id}; the bank's reports still do{decided}")
                }
                false => format!("{id} may be sent{decided}"),
            })
        }
        OperatorDecision::Refuse => {
            let decided = decide_hits(tx, now, scope, id, HitDecision::Refused, by)?;
            Ok(format!(
                "{id} stays held{decided}; `hundi refunds address` gives it another address"
            ))
        }
        _ => Err(declined(id, "a refund can only be approved or refused")),
    }
}

/// Sets the address of a refund that has none, or that screening holds because of its address. The
/// reason is required and is kept with the address. Declined for any other refund, and for an
/// address that the chain or `refunds::address_refusal` refuses.
pub fn set_refund_address(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    id: Id<kind::Refund>,
    to_address: ChainAddress,
    by: &DecidedBy,
) -> OperatorResult {
    let any = id.any();
    decisions::require_operator(tx, by, Role::Operator)?;
    if by.reason().is_empty() {
        return Err(declined(any, "say why, and who said so: --reason TEXT"));
    }
    let scope = find_scope(tx, any)?.ok_or_else(|| declined(any, "there is no such refund"))?;
    keys::rows::lock_account(tx, scope)?;
    now.enter_account(keys::rows::clock_offset_seconds(tx, scope)?);
    decisions::require_actor_and_reason(by, scope.mode())?;
    let asked = RequestedAction::RefundAddress(id, to_address);
    if let Some(waits) =
        keep_for_second_person(tx, now, &services.settings, Some(scope), &asked, by)?
    {
        return Ok(waits);
    }
    decisions::record(tx, now, &id.to_string(), "address", by)?;
    let mut refund = refunds::rows::find(tx, scope, id)?
        .ok_or_else(|| declined(any, "there is no such refund"))?;
    if refund.status != RefundStatus::RequiresAddress && !refund.is_held_by_screening {
        let status = Status::as_str(refund.status);
        return Err(declined(any, format!("it is {status}, and its address stays as it is")));
    }
    if let Some(misfit) = chains::address_fault(&refund.chain, "--to", Some(&to_address)) {
        return Err(declined(any, misfit.message));
    }
    let contract = refunds::rows::token_contract(tx, &refund)?;
    if let Some(refused) = refunds::address_refusal(tx, "--to", &to_address, &contract)? {
        return Err(declined(any, refused.message));
    }
    if refund.is_held_by_screening {
        // The hits are about the old address. They must not stay open, and a refusal must not hold
        // the new address, which the operator has not seen yet.
        hits::withdraw(tx, now, scope, any)?;
    }
    let declaration = AddressDeclaration {
        to_address,
        declared_by: AddressDeclarer::Operator,
        reason: Some(by.reason().to_owned()),
    };
    refunds::declare_address(tx, now, services, &mut refund, declaration)?;
    let held = if refund.is_held_by_screening {
        "; screening found the address on a list: `hundi screening hits` shows it, `hundi decide \
         ID approve` or `refuse` decides"
    } else {
        ""
    };
    Ok(format!("{id} goes to {to_address}{held}"))
}

/// Stores which transaction sent a refund, as the operator says; the chain confirms it later.
/// Declined on a simulated chain, and for a refund or a hash that [`refunds::mark_sent`] refuses.
/// Also declined if the transaction has confirmed another refund already, because that is usually a
/// mistake, unless `is_batch` says that it pays several refunds.
///
/// The account is not locked: only one row is changed, and the update repeats its version. A lock
/// would not keep another refund from being confirmed meanwhile, because workers complete refunds
/// without locking the account.
pub fn mark_refund_sent(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    id: Id<kind::Refund>,
    transaction_hash: &str,
    is_batch: bool,
    by: &DecidedBy,
) -> OperatorResult {
    let any = id.any();
    decisions::require_operator(tx, by, Role::Operator)?;
    let scope = find_scope(tx, any)?.ok_or_else(|| declined(any, "there is no such refund"))?;
    decisions::require_actor_and_reason(by, scope.mode())?;
    let mut refund = refunds::rows::find(tx, scope, id)?
        .ok_or_else(|| declined(any, "there is no such refund"))?;
    if services.simulates(scope.mode(), &refund.chain) {
        return Err(declined(any, "its chain is simulated, where refunds complete by themselves"));
    }
    let hash = transaction_hash.to_owned();
    let asked = RequestedAction::RefundSent { id, transaction_hash: hash, is_batch };
    if let Some(waits) =
        keep_for_second_person(tx, now, &services.settings, Some(scope), &asked, by)?
    {
        return Ok(waits);
    }
    decisions::record(tx, now, &id.to_string(), "complete", by)?;
    refunds::mark_sent(tx, &mut refund, transaction_hash)
        .map_err(|error| declined_by(any, error))?;
    let given = refund.sent_transaction_hash.clone().unwrap_or_default();
    let other = refunds::rows::confirmed_by(tx, &refund.chain, &given)?;
    if let Some(other) = other.filter(|_| !is_batch) {
        return Err(declined(
            any,
            format!(
                "this transaction confirmed {other} already; if it is a batch that pays this \
                 refund too, add --batch"
            ),
        ));
    }
    Ok(format!("{id} waits for {given} to be final on {}", refund.chain))
}

/// Ends the hold of a refund whose payout the bank reported as paid after all. Declined if there is
/// no such hold. Screening may still hold the refund. The account is not locked: only the refund's
/// row is read and changed, and the update repeats its version.
pub fn release_refund(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    id: Id<kind::Refund>,
    by: &DecidedBy,
) -> OperatorResult {
    let any = id.any();
    decisions::require_operator(tx, by, Role::Operator)?;
    let scope = find_scope(tx, any)?.ok_or_else(|| declined(any, "there is no such refund"))?;
    decisions::require_actor_and_reason(by, scope.mode())?;
    let asked = RequestedAction::ReleaseRefund(id);
    if let Some(waits) =
        keep_for_second_person(tx, now, &services.settings, Some(scope), &asked, by)?
    {
        return Ok(waits);
    }
    decisions::record(tx, now, &id.to_string(), "release", by)?;
    let mut refund = refunds::rows::find(tx, scope, id)?
        .ok_or_else(|| declined(any, "there is no such refund"))?;
    now.enter_account(keys::rows::clock_offset_seconds(tx, scope)?);
    if !refunds::end_bank_hold(tx, now, services, &mut refund)? {
        return Err(declined(any, "it is not held for what the bank reported"));
    }
    let screened = if refund.is_held_by_screening { "; screening still holds it" } else { "" };
    Ok(format!("{id} is no longer held for what the bank reported{screened}"))
}
