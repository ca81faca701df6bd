//! Screens each paying address, and everybody concerned with a payout before it is instructed.
//!
//! No payout may be made for a sender who was listed after the transfer was created. So everybody
//! is compared with the current lists in the transaction that instructs the bank. The operator's
//! clearances count.

use std::collections::BTreeSet;

use super::Transfer;
use crate::beneficiaries::state::PayoutsDisabledReason;
use crate::beneficiaries::{self, Beneficiary};
use crate::chains::address::ChainAddress;
use crate::deposits;
use crate::kernel::id::kind;
use crate::kernel::{Id, Now, Scope, StoreError};
use crate::screening::hit::HitDecision;
use crate::screening::hits;
use crate::screening::{Screening, ScreeningFinding, ScreeningHit, UNREADABLE, rows};
use crate::senders;
use crate::services::Services;
use crate::store::Tx;

/// The most paying addresses of one transfer that are compared before a payout. If more paid, the
/// payout is held, and the operator's clearance covers the others.
pub const PAYERS_MAX: usize = 1_000;

/// Screens everybody concerned: the sender, the beneficiary with the holder name that its bank
/// gave, the addresses that paid, and the address of a refund. Keeps the hits for the operator and
/// stops payouts to a beneficiary with a hit. Answers whether the payout may go on: nobody is on a
/// list, or the operator cleared everybody who is. It may not go on if the beneficiary cannot be
/// paid for another reason, or if more than [`PAYERS_MAX`] addresses paid and the operator has not
/// cleared that.
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
    let payers_asked = PAYERS_MAX as i64 + 1;
    let payers = deposits::rows::payers_of_transfer(tx, scope, transfer.id, payers_asked)?;
    if payers.len() > PAYERS_MAX {
        is_clear &= !screen_payers_count(tx, now, services, transfer)?;
    }
    let payers = payers.into_iter().take(PAYERS_MAX);
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

/// Keeps a hit which says that more addresses paid for a transfer than are compared. Answers
/// whether the operator did not clear it. A transfer with a payout takes no more money, so a
/// clearance covers every address that paid.
fn screen_payers_count(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    transfer: &Transfer,
) -> Result<bool, StoreError> {
    let hit = ScreeningHit {
        list: UNREADABLE,
        entry_id: "payers".to_owned(),
        entry_hash: [0; 32],
        screening: Screening::PossibleMatch,
        score_basis_points: 0,
        evidence: format!(
            "more than {PAYERS_MAX} addresses paid, and only {PAYERS_MAX} of them were compared \
             again: look at the others, which were compared when their deposits came"
        ),
        listed_name: None,
    };
    let id = transfer.id;
    let basis = |hit: &ScreeningHit| {
        services.sealer.fingerprint(&[b"screening", &hit.entry_hash, &id.to_bytes()])
    };
    let finding = ScreeningFinding::of(vec![hit]);
    let kept = hits::keep(tx, now, transfer.scope, id.any(), &finding, &basis)?;
    Ok(kept != Screening::Clear)
}

/// Whether a beneficiary cannot be paid because the operator still has to decide about screening
/// hits.
pub(super) fn is_under_review(
    tx: &mut dyn Tx,
    beneficiary: &Beneficiary,
) -> Result<bool, StoreError> {
    if beneficiary.payouts_disabled_reason != Some(PayoutsDisabledReason::ComplianceHold) {
        return Ok(false);
    }
    let hits = rows::of_subject(tx, beneficiary.scope, beneficiary.id.any())?;
    Ok(hits.iter().all(|hit| hit.decision != Some(HitDecision::Refused)))
}
