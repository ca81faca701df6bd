//! Refunds: USDT owed back. A refund goes only to an address that the caller, the payer or the
//! operator declared. The service has no private keys of its addresses, so on a real chain the
//! operator sends the refund.

pub mod api;
pub mod payer_address;
pub mod rows;
pub mod state;

use crate::chains::address::ChainAddress;
use crate::chains::blocks::Hash;
use crate::chains::kind_named;
use crate::deposits;
use crate::events;
use crate::kernel::id::kind;
use crate::kernel::state::Status;
use crate::kernel::{
    Code, History, Id, Money, Now, OperationError, Refusal, RefusalEntry, Scope, StoreError,
};
use crate::resource::Resource;
use crate::screening::hits;
use crate::screening::{Screening, ScreeningHit};
use crate::services::Services;
use crate::store::Tx;
use crate::tasks::{self, TaskKind};
use state::{AddressDeclarer, RefundKind, RefundReason, RefundStatus, SentHashError};

pub const RESOURCE: Resource = Resource::new(api::routes)
    .at("refunds", "Stablecoin that is owed back.")
    .with_status::<RefundStatus>("refunds")
    .with_events(&[events::REFUND_PAYER_ADDRESS_UPDATED]);

#[derive(Clone)]
pub struct Refund {
    pub scope: Scope,
    pub id: Id<kind::Refund>,
    pub version: i64,
    pub transfer_id: Id<kind::Transfer>,
    /// The deposit that an `unmatched` refund gives back.
    pub deposit_id: Option<Id<kind::Deposit>>,
    pub kind: RefundKind,
    pub status: RefundStatus,
    pub reason: RefundReason,
    pub amount: Money,
    pub asset: String,
    pub chain: String,
    pub to_address: Option<ChainAddress>,
    pub address_declared_by: Option<AddressDeclarer>,
    /// Why the operator set `to_address` with `hundi refunds address` or in the console. `None` for
    /// an address that came with another decision, or from the caller or the payer.
    pub address_reason: Option<String>,
    /// The address that the payer gave on the payer's page, and when; see [`payer_address`].
    pub payer_address: Option<ChainAddress>,
    pub payer_address_declared_at: Option<i64>,
    /// Whether the refund waits for the operator's decision, because screening found `to_address`
    /// on a list or could not screen it.
    pub is_held_by_screening: bool,
    /// What the bank reported of the payout, if that keeps the refund from being sent.
    pub bank_hold_reason: Option<String>,
    /// The transaction in which the refund was sent, as the operator says. It stays here after the
    /// chain has confirmed the refund.
    pub sent_transaction_hash: Option<String>,
    /// Why `sent_transaction_hash` does not count as the refund.
    pub sent_fault: Option<SentHashError>,
    /// The index of the log that confirmed the refund, on a real chain.
    pub log_index: Option<i64>,
    /// The transaction that confirmed the refund.
    pub transaction_hash: Option<String>,
    pub completed_at: Option<i64>,
    pub status_history: History<RefundStatus>,
    pub created: i64,
}

impl Refund {
    /// Whether screening or the bank's reports hold the refund, whatever its status is.
    pub const fn is_on_hold(&self) -> bool {
        self.is_held_by_screening || self.bank_hold_reason.is_some()
    }
}

pub struct NewRefund {
    pub transfer_id: Id<kind::Transfer>,
    pub deposit_id: Option<Id<kind::Deposit>>,
    pub kind: RefundKind,
    pub reason: RefundReason,
    pub amount: Money,
    pub asset: String,
    pub chain: String,
    pub to_address: Option<ChainAddress>,
    pub address_declared_by: AddressDeclarer,
}

/// Records that money is owed back. Posts nothing, because the money is already in the ledger
/// account `hold`.
pub fn create(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    new: NewRefund,
) -> Result<Refund, StoreError> {
    let status = if new.to_address.is_some() {
        RefundStatus::Processing
    } else {
        RefundStatus::RequiresAddress
    };
    let mut refund = Refund {
        scope,
        id: now.mint(),
        version: 1,
        transfer_id: new.transfer_id,
        deposit_id: new.deposit_id,
        kind: new.kind,
        status,
        reason: new.reason,
        amount: new.amount,
        asset: new.asset,
        chain: new.chain,
        to_address: new.to_address,
        address_declared_by: new.to_address.map(|_| new.address_declared_by),
        address_reason: None,
        payer_address: None,
        payer_address_declared_at: None,
        is_held_by_screening: false,
        bank_hold_reason: None,
        sent_transaction_hash: None,
        sent_fault: None,
        log_index: None,
        transaction_hash: None,
        completed_at: None,
        status_history: History::begun(status, now.business()),
        created: now.business(),
    };
    refund.is_held_by_screening = screen_and_store_hits(tx, now, services, &refund)?;
    rows::insert(tx, &refund)?;
    if let Some(deposit_id) = refund.deposit_id {
        deposits::rows::mark_given_back(tx, scope, deposit_id)?;
    }
    events::emit_status(tx, now, scope, status, refund.id.any())?;
    schedule_simulated_confirmation(tx, now, services, &refund)?;
    Ok(refund)
}

/// The refusal of an address that no refund may go to: one where the service takes deposits, the
/// token's contract, or the zero address.
pub fn address_refusal(
    tx: &mut dyn Tx,
    field_name: &str,
    address: &ChainAddress,
    token_contract: &ChainAddress,
) -> Result<Option<RefusalEntry>, StoreError> {
    let what = if address.bytes().is_zero() {
        "is the zero address, which belongs to nobody."
    } else if address.bytes() == token_contract.bytes() {
        "is the contract of the token, which does not give back what it receives."
    } else if deposits::rows::address_owner(tx, address.bytes())?.is_some() {
        "is a deposit address of this service. Send an address of the one who paid."
    } else {
        return Ok(None);
    };
    let message = format!("{field_name} {what}");
    Ok(Some(RefusalEntry::field(Code::ParameterValueInvalid, field_name, message)))
}

/// An address that somebody declares for a refund.
pub struct AddressDeclaration {
    pub to_address: ChainAddress,
    pub declared_by: AddressDeclarer,
    /// The operator's reason, which is kept with the address.
    pub reason: Option<String>,
}

/// Sets the address of a refund that waits for one, or replaces the address of a refund that
/// screening holds. The address was judged before, with [`address_refusal`].
pub fn declare_address(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    refund: &mut Refund,
    declaration: AddressDeclaration,
) -> Result<(), StoreError> {
    refund.to_address = Some(declaration.to_address);
    refund.address_declared_by = Some(declaration.declared_by);
    refund.address_reason = declaration.reason;
    refund.is_held_by_screening = screen_and_store_hits(tx, now, services, refund)?;
    if refund.status == RefundStatus::Processing {
        // The operator gives a held refund another address.
        rows::update(tx, refund, RefundStatus::Processing)?;
    } else {
        become_status(tx, now, refund, RefundStatus::Processing)?;
    }
    schedule_simulated_confirmation(tx, now, services, refund)
}

/// Screens the refund's address and stores the hits. Answers whether the refund is held, which is
/// so if the operator has not cleared every hit for this refund, or if the address could not be
/// screened.
fn screen_and_store_hits(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    refund: &Refund,
) -> Result<bool, StoreError> {
    let Some(address) = &refund.to_address else { return Ok(false) };
    let finding = services.screen_address(refund.scope.mode(), address);
    if finding.screening == Screening::Clear {
        return Ok(false);
    }
    // A clearance holds only for this address and for the list entry as it is now.
    let basis = |hit: &ScreeningHit| {
        services.sealer.fingerprint(&[b"screening", &hit.entry_hash, address.bytes().as_slice()])
    };
    let kept = hits::keep(tx, now, refund.scope, refund.id.any(), &finding, &basis)?;
    Ok(kept != Screening::Clear)
}

/// Ends the hold by screening, after the operator cleared the address (`hundi decide ID approve`).
/// The refund may then be sent, unless the bank's reports hold it too. Answers `false` for a refund
/// that screening does not hold.
pub fn end_screening_hold(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    refund: &mut Refund,
) -> Result<bool, StoreError> {
    if !refund.is_held_by_screening {
        return Ok(false);
    }
    refund.is_held_by_screening = false;
    let status = refund.status;
    rows::update(tx, refund, status)?;
    schedule_simulated_confirmation(tx, now, services, refund)?;
    Ok(true)
}

/// Stores the transaction in which the operator says that a refund was sent. The chain confirms the
/// refund later. Until then, another call replaces the transaction. Refuses a refund that is not
/// `processing`, a refund that screening or the bank's reports hold, and a text that is no
/// transaction hash.
pub fn mark_sent(
    tx: &mut dyn Tx,
    refund: &mut Refund,
    transaction_hash: &str,
) -> Result<(), OperationError> {
    if refund.is_held_by_screening {
        let message = "Screening holds the refund because of its address: decide about the \
                       address first.";
        return Err(Refusal::new(Code::TransferActionInvalid, message).into());
    }
    if refund.status != RefundStatus::Processing {
        let message = format!(
            "The refund is {}; only a refund that is processing can be recorded as sent.",
            refund.status.as_str()
        );
        return Err(Refusal::new(Code::TransferActionInvalid, message).into());
    }
    if let Some(reason) = &refund.bank_hold_reason {
        let message = format!(
            "The refund is held ({reason}): ask the bank about its payout, then release it with \
             `hundi refunds release`."
        );
        return Err(Refusal::new(Code::TransferActionInvalid, message).into());
    }
    let Some(hash) = Hash::parse(transaction_hash) else {
        let message =
            "transaction_hash must have 64 hexadecimal digits, with or without 0x before them.";
        return Err(Refusal::field(Code::ParameterValueInvalid, "transaction_hash", message).into());
    };
    refund.sent_transaction_hash = Some(kind_named(&refund.chain).write_hash(&hash));
    refund.sent_fault = None;
    Ok(rows::update(tx, refund, RefundStatus::Processing)?)
}

/// Holds a refund because of what the bank reported of its payout. The refund is not sent until the
/// operator releases it. A refund that is completed, or held in this way already, stays as it is.
pub fn hold_for_bank(tx: &mut dyn Tx, refund: &mut Refund, reason: &str) -> Result<(), StoreError> {
    if refund.status == RefundStatus::Completed || refund.bank_hold_reason.is_some() {
        return Ok(());
    }
    refund.bank_hold_reason = Some(reason.to_owned());
    let status = refund.status;
    rows::update(tx, refund, status)
}

/// Ends the hold of [`hold_for_bank`]. Answers `false` if the refund is not held in this way.
pub fn end_bank_hold(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    refund: &mut Refund,
) -> Result<bool, StoreError> {
    if refund.bank_hold_reason.take().is_none() {
        return Ok(false);
    }
    let status = refund.status;
    rows::update(tx, refund, status)?;
    schedule_simulated_confirmation(tx, now, services, refund)?;
    Ok(true)
}

/// Marks a refund as confirmed on chain.
pub fn complete(
    tx: &mut dyn Tx,
    now: &mut Now,
    refund: &mut Refund,
    transaction_hash: String,
) -> Result<(), StoreError> {
    refund.transaction_hash = Some(transaction_hash);
    refund.completed_at = Some(now.business());
    become_status(tx, now, refund, RefundStatus::Completed)
}

fn become_status(
    tx: &mut dyn Tx,
    now: &mut Now,
    refund: &mut Refund,
    to: RefundStatus,
) -> Result<(), StoreError> {
    let from = refund.status;
    if !from.can_become(to) {
        return Err(StoreError::Broken(format!(
            "a refund cannot go from {} to {}",
            from.as_str(),
            to.as_str()
        )));
    }
    refund.status = to;
    refund.status_history.push(to, now.business());
    rows::update(tx, refund, from)?;
    events::emit_status(tx, now, refund.scope, to, refund.id.any())
}

/// On a simulated chain, schedules the confirmation of a refund that nothing holds. On a real
/// chain this does nothing, because there the operator sends the refund. That is so even if the
/// real chain is not configured any more.
fn schedule_simulated_confirmation(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    refund: &Refund,
) -> Result<(), StoreError> {
    let (mode, chain) = (refund.scope.mode(), &refund.chain);
    let is_ready = refund.status == RefundStatus::Processing && !refund.is_on_hold();
    // `simulates` comes first, so that live mode, which simulates nothing, does not read the
    // fingerprint from the store.
    if is_ready
        && services.simulates(mode, chain)
        && services.simulates_addresses(mode, chain, rows::account_fingerprint(tx, refund)?)
    {
        let due = now.business_milliseconds() + 2 * services.settings.simulation_step_milliseconds;
        tasks::schedule(tx, now, refund.scope, TaskKind::RefundConfirm, refund.id, due)?;
    }
    Ok(())
}
