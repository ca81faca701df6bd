//! Money going back: what a refund does to its transfer and to the book.

use super::state::TransferStatus;
use super::{Transfer, become_status, rows, save};
use crate::chains::address::ChainAddress;
use crate::deposits::Deposit;
use crate::deposits::state::Classification;
use crate::kernel::id::kind;
use crate::kernel::state::Status;
use crate::kernel::{Code, Id, Money, Now, OperationError, Refusal, Scope, StoreError, hex};
use crate::ledger::{self, LedgerAccount, LedgerEntryKind, Posting};
use crate::refunds::state::{AddressDeclarer, RefundKind, RefundReason, RefundStatus};
use crate::refunds::{self, AddressDeclaration, NewRefund, Refund};
use crate::services::Services;
use crate::store::Tx;

/// Creates a refund of money in the ledger account `hold`, to the transfer's refund address. If
/// there is none, the refund waits for an address. The transfer then shows this refund instead of
/// an earlier one.
pub fn owe(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    transfer: &mut Transfer,
    kind: RefundKind,
    reason: RefundReason,
    amount: Money,
) -> Result<(), StoreError> {
    let new = NewRefund {
        transfer_id: transfer.id,
        deposit_id: None,
        kind,
        reason,
        amount,
        asset: transfer.asset.clone(),
        chain: transfer.chain.clone(),
        to_address: transfer.refund_address,
        address_declared_by: AddressDeclarer::Caller,
    };
    let refund = refunds::create(tx, now, services, transfer.scope, new)?;
    transfer.refund_id = Some(refund.id);
    save(tx, transfer)
}

/// Refunds one deposit that came when its transfer no longer accepted money: once, and in full. The
/// transfer's status does not change. If the refund exists and still lacks an address, this only
/// sets `to_address`.
pub fn refund_unmatched(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    deposit: &Deposit,
    to_address: Option<ChainAddress>,
) -> Result<Refund, OperationError> {
    if deposit.classification != Some(Classification::Unmatched) {
        return Err(Refusal::new(
            Code::TransferActionInvalid,
            "Only an unmatched deposit can be refunded alone.",
        )
        .into());
    }
    if let Some(mut refund) =
        refunds::rows::find_for_deposit(tx, deposit.scope, deposit.transfer_id, deposit.id)?
    {
        let Some(address) = to_address.filter(|_| refund.status == RefundStatus::RequiresAddress)
        else {
            let waits = if refund.status == RefundStatus::RequiresAddress {
                ", which needs an address"
            } else {
                ""
            };
            let message = format!(
                "This deposit already has a refund: {} ({}){waits}.",
                refund.id,
                refund.status.as_str()
            );
            return Err(Refusal::new(Code::TransferActionInvalid, message).into());
        };
        let declaration = AddressDeclaration {
            to_address: address,
            declared_by: AddressDeclarer::Operator,
            reason: None,
        };
        refunds::declare_address(tx, now, services, &mut refund, declaration)?;
        return Ok(refund);
    }
    let new = NewRefund {
        transfer_id: deposit.transfer_id,
        deposit_id: Some(deposit.id),
        kind: RefundKind::Unmatched,
        reason: RefundReason::Unmatched,
        amount: deposit.amount,
        asset: deposit.asset.clone(),
        chain: deposit.chain.clone(),
        to_address,
        address_declared_by: AddressDeclarer::Operator,
    };
    Ok(refunds::create(tx, now, services, deposit.scope, new)?)
}

/// Records that the chain confirmed a refund: the money has left. A principal refund also ends its
/// transfer as `refunded`. The caller of this function has to check that the refund may be sent.
pub fn confirm(
    tx: &mut dyn Tx,
    now: &mut Now,
    refund: &mut Refund,
    transaction_hash: String,
) -> Result<(), StoreError> {
    refunds::complete(tx, now, refund, transaction_hash)?;
    let posting = Posting::new(LedgerAccount::Hold, LedgerAccount::Custody, refund.amount);
    ledger::post(
        tx,
        now,
        refund.scope,
        LedgerEntryKind::RefundSent,
        refund.transfer_id,
        &[posting],
    )?;
    if refund.kind != RefundKind::Principal {
        return Ok(());
    }
    let transfer = rows::find(tx, refund.scope, refund.transfer_id)?;
    let mut transfer = transfer
        .ok_or_else(|| StoreError::Broken(format!("{} has lost its transfer", refund.id)))?;
    become_status(tx, now, &mut transfer, TransferStatus::Refunded, None)
}

/// [`confirm`] on a simulated chain, with a random transaction hash.
pub fn confirm_simulated(
    tx: &mut dyn Tx,
    now: &mut Now,
    refund: &mut Refund,
) -> Result<(), StoreError> {
    let hash = hex::encode(now.random_bytes::<32>());
    confirm(tx, now, refund, hash)
}

/// Confirms a refund on the simulated chain; the refund's task calls this when it is due. Does
/// nothing if the refund is completed or has no address, if screening or the bank's reports hold
/// it, or if its transfer does not belong to the chain that is simulated now (see
/// [`Transfer::is_simulated`]). (A test net may have been configured or left out since the task was
/// scheduled.)
pub fn confirm_due(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    id: Id<kind::Refund>,
) -> Result<(), StoreError> {
    let found = refunds::rows::find(tx, scope, id)?;
    let is_ready =
        |refund: &Refund| refund.status == RefundStatus::Processing && !refund.is_on_hold();
    let Some(mut refund) = found.filter(is_ready) else { return Ok(()) };
    let transfer = rows::find(tx, scope, refund.transfer_id)?;
    match transfer {
        Some(transfer) if transfer.is_simulated(services) => {
            confirm_simulated(tx, now, &mut refund)
        }
        _ => Ok(()),
    }
}
