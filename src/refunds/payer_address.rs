//! The address that a payer gives for a refund on the payer's page, if the caller permits it.
//!
//! Whoever has the page's link can give the address. So the address counts only after a day, during
//! which the caller can declare another one. If the caller declares the same one, the wait ends.
//! The payer can give a second address only if the first is refused when the day is over.

use super::state::{AddressDeclarer, RefundStatus};
use super::{AddressDeclaration, Refund, address_refusal, declare_address, rows};
use crate::chains::address::ChainAddress;
use crate::events;
use crate::kernel::id::kind;
use crate::kernel::{Id, Now, Scope, StoreError};
use crate::services::Services;
use crate::store::Tx;
use crate::tasks::{self, TaskKind};

/// How long the payer's address waits before it counts, in seconds.
pub const PAYER_ADDRESS_WAIT_SECONDS: i64 = 24 * 3600;

impl Refund {
    /// Whether the refund waits for an address and the payer has given none.
    pub fn takes_payer_address(&self) -> bool {
        self.status == RefundStatus::RequiresAddress && self.payer_address.is_none()
    }
}

/// Stores the address that the payer gave for a refund that takes one. The address was judged
/// before, with [`address_refusal`].
pub fn give(
    tx: &mut dyn Tx,
    now: &mut Now,
    refund: &mut Refund,
    address: ChainAddress,
) -> Result<(), StoreError> {
    let declared_at = now.business();
    set(tx, now, refund, Some((address, declared_at)))?;
    let due = (declared_at + PAYER_ADDRESS_WAIT_SECONDS) * 1000;
    tasks::schedule(tx, now, refund.scope, TaskKind::RefundPayerAddress, refund.id, due)
}

/// When the day is over, makes the payer's address the address of the refund, unless the refund has
/// one. The payer's address is judged again, because it may have become a deposit address of the
/// service meanwhile. If it is refused, the payer has to give another one.
pub fn take_effect(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    id: Id<kind::Refund>,
) -> Result<(), StoreError> {
    let Some(mut refund) = rows::find(tx, scope, id)? else { return Ok(()) };
    let Some(to_address) = refund.payer_address else { return Ok(()) };
    if refund.status != RefundStatus::RequiresAddress {
        return Ok(());
    }
    let contract = rows::token_contract(tx, &refund)?;
    if address_refusal(tx, "to_address", &to_address, &contract)?.is_some() {
        return set(tx, now, &mut refund, None);
    }
    let declaration =
        AddressDeclaration { to_address, declared_by: AddressDeclarer::Payer, reason: None };
    declare_address(tx, now, services, &mut refund, declaration)
}

fn set(
    tx: &mut dyn Tx,
    now: &mut Now,
    refund: &mut Refund,
    given: Option<(ChainAddress, i64)>,
) -> Result<(), StoreError> {
    (refund.payer_address, refund.payer_address_declared_at) = given.unzip();
    let status = refund.status;
    rows::update(tx, refund, status)?;
    events::emit(tx, now, refund.scope, events::REFUND_PAYER_ADDRESS_UPDATED, refund.id.any())
}
