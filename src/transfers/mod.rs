//! Transfers: from a locked rate and a deposit to an INR payout, or to a refund.
//!
//! `funding` judges deposits, `holds` keeps money that waits for a decision, `paying` follows the
//! INR leg, `refunding` gives money back, `screening` compares everybody concerned with the lists,
//! and `diagnosis`, which changes nothing, says what became of a payment. A change of status, its
//! postings and its events are one transaction.

pub mod api;
pub mod diagnosis;
mod exchange;
pub mod funding;
pub mod holds;
pub mod paying;
#[cfg(test)]
mod paying_test;
pub mod refunding;
pub mod rows;
pub mod screening;
pub mod state;

use crate::beneficiaries::{self, Beneficiary};
use crate::chains;
use crate::chains::address::ChainAddress;
use crate::deposits;
use crate::events;
use crate::kernel::id::kind;
use crate::kernel::state::Status;
use crate::kernel::{
    Code, Currency, History, Id, Metadata, Money, NamedId, Now, OperationError, Rate, Refusal,
    RefusalEntry, Scope, StoreError,
};
use crate::pauses;
use crate::quote_locks::gst::Gst;
use crate::quote_locks::{self, QuoteLock};
use crate::refunds;
use crate::resource::Resource;
use crate::senders::{self, Sender};
use crate::services::Services;
use crate::store::{Signal, Tx};
use crate::tasks::{self, TaskKind};
use state::{FundingStatus, HoldPolicy, OverpaidPolicy, StatusReason, TransferStatus};

pub const RESOURCE: Resource = Resource::new(api::routes)
    .at("transfers", "From a deposit to a payout, or back.")
    .with_status::<TransferStatus>("transfers")
    .with_book_rules(rows::BOOK_RULES);

/// How long a transfer's hold lasts before its money is refunded. Also the time between two runs of
/// `paying::look_at_held` for a payout on hold.
pub const HOLD_SECONDS: i64 = 24 * 3600;
/// The expiry task first runs this long after `expires_at`, because a block at `expires_at` itself
/// is in time.
const FIRST_EXPIRY_LOOK_SECONDS: i64 = 1;

crate::string_enum!(
    /// The RBI purpose codes of inward remittances that are accepted: own NRE deposit, family
    /// maintenance, gift.
    PurposeCode { P0014 "P0014", P1301 "P1301", P1302 "P1302" }
);
crate::enum_fields!(PurposeCode);

/// What the caller wants done with too little, too much or late money.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// For less than the amount when the time to pay is over.
    pub underpaid: HoldPolicy,
    /// For more than the amount.
    pub overpaid: OverpaidPolicy,
    /// For money that came after the time to pay, or after the transfer was cancelled.
    pub late: HoldPolicy,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            underpaid: HoldPolicy::Hold,
            overpaid: OverpaidPolicy::RefundExcess,
            late: HoldPolicy::Hold,
        }
    }
}

#[derive(Clone)]
pub struct Transfer {
    pub scope: Scope,
    pub id: Id<kind::Transfer>,
    pub version: i64,
    pub status: TransferStatus,
    pub status_reason: Option<StatusReason>,
    pub sender_id: Id<kind::Sender>,
    pub beneficiary_id: Id<kind::Beneficiary>,
    pub quote_lock_id: Id<kind::QuoteLock>,
    /// What the caller sells, in USD, fee included.
    pub amount: Money,
    /// What the beneficiary gets, in INR, after fee and GST.
    pub payout_amount: Money,
    /// INR for one USD.
    pub rate: Rate,
    /// In USD.
    pub fee: Money,
    /// The tax that the quote lock deducted from the rupees; `None` if none is charged.
    pub gst: Option<Gst>,
    pub purpose_code: PurposeCode,
    pub asset: String,
    pub chain: String,
    /// The token's contract that the caller and the payer were told. Another one may have been
    /// configured since.
    pub token_contract: ChainAddress,
    pub deposit_address: ChainAddress,
    /// Which account key the address is derived from: its BIP-32 fingerprint.
    pub account_fingerprint: u32,
    pub derivation_index: i64,
    /// What has to arrive: the amount in the asset. 1 USDT counts as 1 USD.
    pub expected: Money,
    /// The sum of the final deposits that count for this transfer.
    pub received: Money,
    /// What was received above `expected` and is owed back.
    pub excess: Money,
    /// Deposits that were seen and are neither final nor failed.
    pub unsettled_count: i64,
    /// The end of the time to pay, in business time: the last second in which a block is in time.
    pub expires_at: i64,
    /// When the money of a hold goes back if the caller does not decide. `None` outside a hold, and
    /// in a review, which has no timer.
    pub hold_until: Option<i64>,
    pub refund_address: Option<ChainAddress>,
    /// Whether the payer may give a refund address on the payer's page.
    pub payer_sets_refund_address: bool,
    pub policy: Policy,
    /// Where the payer's page leads once the payer has nothing more to do; an https URL.
    pub return_url: Option<String>,
    /// The caller's own reference, unique among the account's transfers of the mode.
    pub reference: Option<String>,
    pub payout_id: Option<Id<kind::Payout>>,
    pub refund_id: Option<Id<kind::Refund>>,
    pub status_history: History<TransferStatus>,
    pub metadata: Metadata,
    pub created: i64,
}

impl Transfer {
    /// Whether the deposit address belongs to the mode's simulated chain, see
    /// [`Services::simulates_addresses`].
    pub fn is_simulated(&self, services: &Services) -> bool {
        services.simulates_addresses(self.scope.mode(), &self.chain, self.account_fingerprint)
    }
    pub fn funding_status(&self) -> FundingStatus {
        match self.status {
            TransferStatus::Funding if self.unsettled_count > 0 => FundingStatus::Confirming,
            TransferStatus::Funding if !self.received.is_zero() => FundingStatus::PartiallyFunded,
            TransferStatus::Funding => FundingStatus::AwaitingFunds,
            TransferStatus::FundingHold => FundingStatus::Hold,
            TransferStatus::Expired => FundingStatus::Expired,
            TransferStatus::Cancelled => FundingStatus::Cancelled,
            TransferStatus::RefundProcessing => FundingStatus::RefundProcessing,
            TransferStatus::Refunded => FundingStatus::Refunded,
            TransferStatus::Funded
            | TransferStatus::PayoutProcessing
            | TransferStatus::PayoutSettled
            | TransferStatus::PayoutFailed
            | TransferStatus::PayoutReturned => FundingStatus::Funded,
        }
    }
}

/// What [`create`] needs.
pub struct NewTransfer {
    pub sender_id: NamedId<kind::Sender>,
    pub beneficiary_id: NamedId<kind::Beneficiary>,
    pub quote_lock_id: NamedId<kind::QuoteLock>,
    pub amount: Money,
    pub payout_currency: Currency,
    pub purpose_code: Option<PurposeCode>,
    /// In the form of the mode's chain.
    pub refund_address: Option<ChainAddress>,
    pub payer_sets_refund_address: bool,
    pub policy: Policy,
    pub return_url: Option<String>,
    pub reference: Option<String>,
    pub metadata: Metadata,
}

/// Creates a transfer with a deposit address of its own. Refuses for the first of these reasons
/// that applies: transfers are paused (503); the bank takes no NRE payments; an ID names no object
/// (all such IDs are reported); other rules are broken (all are reported); the chain is not
/// followed with the configured token contract, or that contract announced its replacement (503);
/// no deposit address is ready (503).
pub fn create(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    new: NewTransfer,
) -> Result<Transfer, OperationError> {
    pauses::refuse_paused(tx, scope, pauses::Operation::Transfers)?;
    let ports = services.ports(scope.mode())?;
    if !ports.rail.supports_nre() {
        let message = "Transfers to NRE accounts are not offered here yet: the operator's bank \
                       has not marked its account for foreign inward remittance, and NRE accounts \
                       take nothing else.";
        return Err(Refusal::new(Code::ActionUnauthorized, message).into());
    }
    let (sender, beneficiary, lock) = find_named_objects(tx, scope, &new)?;
    let mut entries = judge(now, &new, &sender, &beneficiary, &lock);
    entries.extend(senders::refusal_if_unwritable(&sender, ports.rail.as_ref()));
    let chain = &ports.chain;
    if let Some(reference) = &new.reference {
        entries.extend(rows::find_by_caller_reference(tx, scope, reference)?.map(reference_used));
    }
    if let Some(address) = &new.refund_address {
        let token_contract = &chain.token_contract;
        let field_name = "funding.refund_address";
        entries.extend(refunds::address_refusal(tx, field_name, address, token_contract)?);
    }
    Refusal::check(entries)?;
    if !chain.is_simulated() {
        let cursor = chains::rows::cursor(tx, scope.mode(), chain.name)?;
        let contract = chain.token_contract.bytes();
        if cursor.is_none_or(|cursor| cursor.has_deprecated(contract))
            || !chains::rows::is_followed_with(tx, scope.mode(), chain.name, contract)?
        {
            tracing::warn!(
                chain = chain.name.as_str(),
                "no transfer is created: the chain is not yet followed with the configured token \
                 contract, or that contract was replaced by another"
            );
            return Err(Refusal::unavailable().into());
        }
    }
    let id = now.mint();
    let Some((derivation_index, deposit_address)) = ports.addresses.take() else {
        tracing::warn!(
            chain = chain.name.as_str(),
            "no transfer is created: no deposit address is ready"
        );
        return Err(Refusal::unavailable().into());
    };
    let deposit_address = ChainAddress::of_chain(chain.name.as_str(), deposit_address);
    quote_locks::rows::take(tx, &lock, id)?;
    let business_time = now.business();
    let transfer = Transfer {
        scope,
        id,
        version: 1,
        status: TransferStatus::Funding,
        status_reason: None,
        sender_id: sender.id,
        beneficiary_id: beneficiary.id,
        quote_lock_id: lock.id,
        amount: lock.sell,
        payout_amount: lock.buy,
        rate: lock.rate,
        fee: lock.fee,
        gst: lock.gst,
        purpose_code: new
            .purpose_code
            .unwrap_or_else(|| default_purpose(services, &sender, &beneficiary)),
        asset: chain.asset.as_str().to_owned(),
        chain: chain.name.as_str().to_owned(),
        token_contract: chain.token_contract,
        deposit_address,
        account_fingerprint: ports.addresses.account_fingerprint(),
        derivation_index,
        expected: lock.sell.at_par(chain.asset)?,
        received: Money::zero(chain.asset),
        excess: Money::zero(chain.asset),
        unsettled_count: 0,
        expires_at: business_time + services.settings.funding_seconds,
        hold_until: None,
        refund_address: new.refund_address,
        payer_sets_refund_address: new.payer_sets_refund_address,
        policy: new.policy,
        return_url: new.return_url,
        reference: new.reference,
        payout_id: None,
        refund_id: None,
        status_history: History::begun(TransferStatus::Funding, business_time),
        metadata: new.metadata,
        created: business_time,
    };
    rows::insert(tx, &transfer)?;
    deposits::rows::assign_address(tx, scope, id, deposit_address.bytes())?;
    events::emit_status(tx, now, scope, TransferStatus::Funding, id.any())?;
    let expiry = (transfer.expires_at + FIRST_EXPIRY_LOOK_SECONDS) * 1000;
    tasks::schedule(tx, now, scope, TaskKind::FundingExpiry, id, expiry)?;
    Ok(transfer)
}

fn reference_used(id: Id<kind::Transfer>) -> RefusalEntry {
    let message = "Another transfer has this reference: metadata.transfer_id names it. Fetch that \
                   one, or send a reference that was never used.";
    RefusalEntry::field(Code::ReferenceAlreadyUsed, "reference", message)
        .with("transfer_id", id.to_string())
}

/// Prefetches the first queries of [`create`].
pub fn prefetch_for_create(
    tx: &mut dyn Tx,
    scope: Scope,
    new: &NewTransfer,
) -> Result<(), StoreError> {
    pauses::rows::prefetch(tx)?;
    new.sender_id.id.map_or(Ok(()), |id| senders::rows::prefetch(tx, scope, id))?;
    new.beneficiary_id.id.map_or(Ok(()), |id| beneficiaries::rows::prefetch(tx, scope, id))?;
    new.quote_lock_id.id.map_or(Ok(()), |id| quote_locks::rows::prefetch(tx, scope, id))?;
    let reference = new.reference.as_deref();
    reference.map_or(Ok(()), |reference| rows::prefetch_by_caller_reference(tx, scope, reference))
}

fn find_named_objects(
    tx: &mut dyn Tx,
    scope: Scope,
    new: &NewTransfer,
) -> Result<(Sender, Beneficiary, QuoteLock), OperationError> {
    let (sender_id, beneficiary_id) = (&new.sender_id, &new.beneficiary_id);
    let sender = sender_id.id.map(|id| senders::rows::find(tx, scope, id)).transpose()?.flatten();
    let beneficiary =
        beneficiary_id.id.map(|id| beneficiaries::rows::find(tx, scope, id)).transpose()?.flatten();
    let lock = new
        .quote_lock_id
        .id
        .map(|id| quote_locks::rows::find(tx, scope, id))
        .transpose()?
        .flatten();
    match (sender, beneficiary, lock) {
        (Some(sender), Some(beneficiary), Some(lock)) => Ok((sender, beneficiary, lock)),
        (sender, beneficiary, lock) => {
            let mode = scope.mode();
            let entries = [
                sender.is_none().then(|| sender_id.missing("sender_id", mode)),
                beneficiary.is_none().then(|| beneficiary_id.missing("beneficiary_id", mode)),
                lock.is_none().then(|| new.quote_lock_id.missing("quote_lock_id", mode)),
            ];
            Refusal::check(entries.into_iter().flatten().collect())?;
            Err(Refusal::internal().into())
        }
    }
}

fn judge(
    now: &Now,
    new: &NewTransfer,
    sender: &Sender,
    beneficiary: &Beneficiary,
    lock: &QuoteLock,
) -> Vec<RefusalEntry> {
    let mut entries = Vec::new();
    if let Some(refusal) = senders::refusal_if_not_eligible(sender) {
        entries.extend_from_slice(refusal.entries());
    }
    if !beneficiary.is_payable() {
        entries.extend_from_slice(beneficiaries::refusal_not_payable(beneficiary).entries());
    }
    entries.extend(lock.refusal_if_unusable(now.business()));
    if lock.sell != new.amount {
        let field = if lock.sell.currency == new.amount.currency { "amount" } else { "currency" };
        let message = format!(
            "The quote lock sells {} {}. Send that, or another quote lock.",
            lock.sell,
            lock.sell.currency.as_str()
        );
        entries.push(RefusalEntry::field(Code::QuoteLockMismatch, field, message));
    }
    if lock.buy.currency != new.payout_currency {
        let message = format!(
            "The quote lock buys {}. Send that, or another quote lock.",
            lock.buy.currency.as_str()
        );
        entries.push(RefusalEntry::field(Code::QuoteLockMismatch, "payout_currency", message));
    }
    entries
}

/// The purpose code if the caller names none. If sender and beneficiary have the same name, it is
/// P0014, a payment into one's own NRE account; otherwise the operator's default, P1301 unless set.
/// Names are compared without regard to case and to how many spaces stand between words.
fn default_purpose(services: &Services, sender: &Sender, beneficiary: &Beneficiary) -> PurposeCode {
    let plain = |name: &str| name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    if plain(&sender.name) == plain(&beneficiary.name) {
        PurposeCode::P0014
    } else {
        PurposeCode::parse(&services.settings.purpose_code_default).unwrap_or(PurposeCode::P1301)
    }
}

/// Changes the status, stores the transfer with its other changes, and emits the event. A change
/// for which there is no arrow is [`StoreError::Broken`].
fn become_status(
    tx: &mut dyn Tx,
    now: &mut Now,
    transfer: &mut Transfer,
    to: TransferStatus,
    reason: Option<StatusReason>,
) -> Result<(), StoreError> {
    let from = transfer.status;
    if !from.can_become(to) {
        return Err(StoreError::Broken(format!(
            "a transfer cannot go from {} to {}",
            from.as_str(),
            to.as_str()
        )));
    }
    transfer.status = to;
    transfer.status_reason = reason;
    // `holds` sets the end of a hold afterwards.
    transfer.hold_until = None;
    transfer.status_history.push(to, now.business());
    rows::update(tx, transfer, from)?;
    let id = transfer.id.any();
    tx.signal(Signal::StatusChanged { id, from: from.as_str(), to: to.as_str() });
    events::emit_status(tx, now, transfer.scope, to, transfer.id.any())
}

/// Stores changes other than a change of status.
fn save(tx: &mut dyn Tx, transfer: &mut Transfer) -> Result<(), StoreError> {
    let status = transfer.status;
    rows::update(tx, transfer, status)
}

/// Cancels a transfer. Refused unless it is in `funding` and has no deposit, final or not. Failed
/// deposits (dropped, or in another token) do not count.
pub fn cancel(
    tx: &mut dyn Tx,
    now: &mut Now,
    transfer: &mut Transfer,
) -> Result<(), OperationError> {
    const SEEN: &str = "A deposit was seen; the transfer can no longer be cancelled. Wait for the \
                        transfer's next event: what is too little is held, and can be refunded.";
    let refused = |message: &str| Refusal::new(Code::TransferNotCancellable, message);
    if transfer.status != TransferStatus::Funding {
        return Err(refused(&format!(
            "The transfer is {}; only one in funding can be cancelled. Fetch it to see what \
             happens to the money.",
            transfer.status.as_str()
        ))
        .into());
    }
    if deposits::rows::any_for_transfer(tx, transfer.scope, transfer.id)? {
        return Err(refused(SEEN).into());
    }
    Ok(become_status(tx, now, transfer, TransferStatus::Cancelled, None)?)
}
