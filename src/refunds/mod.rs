//! Refunds: USDT owed back. It goes only to a declared address, and the service holds no keys: the
//! operator sends it.

pub mod api;
pub mod rows;
pub mod state;

use crate::chains::address::{Address, AddressForm};
use crate::chains::evm::Hash;
use crate::events;
use crate::kernel::id::kind;
use crate::kernel::state::Status;
use crate::kernel::{Code, History, Id, Money, Now, OperationError, Refusal, Scope, StoreError};
use crate::resource::Resource;
use crate::services::Services;
use crate::store::Tx;
use crate::tasks::{self, TaskKind};
use state::{RefundKind, RefundReason, RefundStatus, SentFault};

pub const RESOURCE: Resource = Resource::new(api::routes).with_status::<RefundStatus>("refunds");

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
    pub to_address: Option<Address>,
    /// The transaction that the operator says it sent; the chain has not confirmed it yet.
    pub sent_transaction_hash: Option<String>,
    /// Why that transaction does not do.
    pub sent_fault: Option<SentFault>,
    /// Where in the confirmed transaction the refund is, on a real chain.
    pub log_index: Option<i64>,
    pub transaction_hash: Option<String>,
    pub completed_at: Option<i64>,
    pub status_history: History<RefundStatus>,
    pub created: i64,
}

pub struct NewRefund {
    pub transfer_id: Id<kind::Transfer>,
    pub deposit_id: Option<Id<kind::Deposit>>,
    pub kind: RefundKind,
    pub reason: RefundReason,
    pub amount: Money,
    pub asset: String,
    pub chain: String,
    pub to_address: Option<Address>,
}

/// Writes down that money is owed back; the postings into `hold` are the caller's.
pub fn create(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    ask: NewRefund,
) -> Result<Refund, StoreError> {
    let status = if ask.to_address.is_some() {
        RefundStatus::Processing
    } else {
        RefundStatus::RequiresAddress
    };
    let refund = Refund {
        scope,
        id: now.mint(),
        version: 1,
        transfer_id: ask.transfer_id,
        deposit_id: ask.deposit_id,
        kind: ask.kind,
        status,
        reason: ask.reason,
        amount: ask.amount,
        asset: ask.asset,
        chain: ask.chain,
        to_address: ask.to_address,
        sent_transaction_hash: None,
        sent_fault: None,
        log_index: None,
        transaction_hash: None,
        completed_at: None,
        status_history: History::begun(status, now.business()),
        created: now.business(),
    };
    rows::insert(tx, &refund)?;
    events::emit_status(tx, now, scope, status, refund.id.any())?;
    await_confirmation(tx, now, services, &refund)?;
    Ok(refund)
}

/// Declares the address of a refund that waits for one.
pub fn declare_address(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    refund: &mut Refund,
    to_address: Address,
) -> Result<(), StoreError> {
    refund.to_address = Some(to_address);
    become_status(tx, now, refund, RefundStatus::Processing)?;
    await_confirmation(tx, now, services, refund)
}

/// Keeps the transaction that the operator says it sent for a refund; the chain confirms it later.
/// Another one takes its place as long as none is confirmed. Refused for a refund that is not
/// `processing`, and for what is no transaction hash.
pub fn mark_sent(
    tx: &mut dyn Tx,
    refund: &mut Refund,
    transaction_hash: &str,
) -> Result<(), OperationError> {
    if refund.status != RefundStatus::Processing {
        let message = format!(
            "The refund is {}; only one that is processing is sent.",
            refund.status.as_str()
        );
        return Err(Refusal::new(Code::TransferActionInvalid, message).into());
    }
    let Some(hash) = Hash::parse(transaction_hash) else {
        let message =
            "transaction_hash must have 64 hexadecimal digits, with or without 0x before them.";
        return Err(Refusal::field(Code::ParameterValueInvalid, "transaction_hash", message).into());
    };
    refund.sent_transaction_hash = Some(hash.text(AddressForm::of_chain(&refund.chain)));
    refund.sent_fault = None;
    Ok(rows::update(tx, refund, RefundStatus::Processing)?)
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

/// On a simulated chain a refund with an address completes by itself; on a real one the operator
/// sends it.
fn await_confirmation(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    refund: &Refund,
) -> Result<(), StoreError> {
    if refund.status == RefundStatus::Processing
        && services.simulates(refund.scope.mode(), &refund.chain)
    {
        let due = now.business_milliseconds() + 2 * services.settings.simulation_step_milliseconds;
        tasks::schedule(tx, now, refund.scope, TaskKind::RefundConfirm, refund.id, due)?;
    }
    Ok(())
}
