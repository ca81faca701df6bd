//! Screens each paying address, and everybody concerned with a payout before it is instructed.
//!
//! No payout may be made for a sender who was listed after the transfer was created. So everybody
//! is compared with the current lists in the transaction that instructs the bank. The operator's
//! clearances count.

use std::collections::BTreeSet;

use super::Transfer;
use crate::beneficiaries::{self, Beneficiary};
use crate::chains::address::ChainAddress;
use crate::deposits;
use crate::kernel::id::kind;
use crate::kernel::{Id, Now, Scope, StoreError};
use crate::screening::hits;
use crate::screening::{Screening, ScreeningHit};
use crate::senders;
use crate::services::Services;
use crate::store::Tx;

/// A payout whose transfer has more counted deposits than this is held. Only so many are read here,
/// so some paying addresses would not be screened again.
const DEPOSITS_MAX: i64 = 100;

/// Screens everybody concerned: the sender, the beneficiary with the holder name that its bank
/// gave, the addresses that paid, and the address of a refund. Keeps the hits for the operator and
/// stops payouts to a beneficiary with a hit. Answers whether the payout may go on: nobody is on a
/// list, or the operator cleared everybody who is. It may not go on if the beneficiary cannot be
/// paid for another reason, or if the transfer has more than `DEPOSITS_MAX` counted deposits.
pub fn screen_everybody(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    transfer: &Transfer,
    beneficiary: &Beneficiary,
) -> Result<bool, StoreError> {
    let scope = transfer.scope;
    // All are screened even after a first hit, so that the operator sees everything at once.
    senders::rescreen(tx, now, services, scope, transfer.sender_id)?;
    let sender = senders::rows::find(tx, scope, transfer.sender_id)?;
    let mut is_clear = sender.is_some_and(|sender| sender.screening == Screening::Clear);
    beneficiaries::rescreen(tx, now, services, scope, beneficiary.id)?;
    let found = beneficiaries::rows::find(tx, scope, beneficiary.id)?;
    is_clear &= found.is_some_and(|beneficiary| beneficiary.is_payable());
    let (paid, count) =
        deposits::rows::counted_for_transfer(tx, scope, transfer.id, i64::MAX, DEPOSITS_MAX)?;
    is_clear &= count <= DEPOSITS_MAX;
    let payers = paid.iter().map(|deposit| deposit.from_address);
    let refund = transfer.refund_address.iter().map(|address| *address.bytes());
    let addresses: BTreeSet<_> = payers.chain(refund).collect();
    for address in addresses {
        let address = ChainAddress::of_chain(&transfer.chain, address);
        is_clear &= !screen_address(tx, now, services, scope, transfer.id, &address)?;
    }
    Ok(is_clear)
}

/// Screens an address that paid, or that a refund goes to, and keeps the hits for the operator.
/// Answers whether it is on a list and the operator did not clear it for this transfer.
pub(super) fn screen_address(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    transfer_id: Id<kind::Transfer>,
    address: &ChainAddress,
) -> Result<bool, StoreError> {
    let finding = services.screen_address(scope.mode(), address);
    if finding.screening == Screening::Clear {
        return Ok(false);
    }
    let basis = |hit: &ScreeningHit| {
        services.sealer.fingerprint(&[b"screening", &hit.entry_hash, address.bytes().as_slice()])
    };
    Ok(hits::keep(tx, now, scope, transfer_id.any(), &finding, &basis)? != Screening::Clear)
}
