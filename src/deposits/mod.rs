//! Deposits: token movements to our addresses, from when they are first seen until they are final
//! or dropped.

pub mod api;
pub mod rows;
pub mod state;

use crate::chains::address::AddressBytes;
use crate::chains::{Depth, Movement};
use crate::kernel::id::kind;
use crate::kernel::state::Status;
use crate::kernel::{History, Id, Money, Now, Scope, StoreError};
use crate::resource::Resource;
use crate::store::Tx;
use crate::tasks::{self, TaskKind};
use state::{Classification, DepositStatus, ReasonCode};

pub const RESOURCE: Resource = Resource::new(api::routes)
    .at("deposits", "Stablecoin movements to deposit addresses.")
    .with_status_without_events::<DepositStatus>("deposits")
    .with_events(&[crate::events::DEPOSIT_COMPLETED])
    .with_book_rules(rows::BOOK_RULES);

/// How long a deposit that the chain no longer shows may take to come back, before it fails as
/// `dropped`.
pub const UNSEEN_SECONDS_MAX: i64 = 24 * 3600;

#[derive(Clone)]
pub struct Deposit {
    pub scope: Scope,
    pub id: Id<kind::Deposit>,
    pub version: i64,
    /// The transfer that owns the address.
    pub transfer_id: Id<kind::Transfer>,
    pub status: DepositStatus,
    /// In millionths of `asset`. The currency in it is always USDT, whatever the asset is.
    pub amount: Money,
    /// The token's symbol. Only the transfer's own asset is credited.
    pub asset: String,
    pub chain: String,
    pub from_address: AddressBytes,
    pub to_address: AddressBytes,
    pub transaction_hash: String,
    /// The contract of the token that moved. `None` on the simulated chain, which has no contracts.
    /// A deposit older than this field also has `None`; if it is of the transfer's asset, its
    /// contract is the one that the transfer's caller was shown.
    pub contract: Option<AddressBytes>,
    /// The index of the movement's log in its block. It may change if the block is replaced, so it
    /// does not identify the deposit.
    pub log_index: i64,
    pub block_number: Option<i64>,
    /// Unix seconds.
    pub block_time: Option<i64>,
    pub confirmations: i64,
    /// Since when, in business time, the chain no longer shows the deposit; `None` while it does.
    pub unseen_since: Option<i64>,
    pub classification: Option<Classification>,
    pub reason_code: Option<ReasonCode>,
    pub completed_at: Option<i64>,
    pub status_history: History<DepositStatus>,
    pub created: i64,
}

impl Deposit {
    pub const fn is_settled(&self) -> bool {
        matches!(self.status, DepositStatus::Completed | DepositStatus::Failed)
    }
}

/// Records a movement that is seen for the first time.
pub fn begin(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    transfer_id: Id<kind::Transfer>,
    chain: &str,
    movement: &Movement,
) -> Result<Deposit, StoreError> {
    let deposit = Deposit {
        scope,
        id: now.mint(),
        version: 1,
        transfer_id,
        status: DepositStatus::Initialized,
        amount: movement.amount,
        asset: movement.asset.clone(),
        chain: chain.to_owned(),
        from_address: movement.from_address,
        to_address: movement.to_address,
        transaction_hash: movement.transaction_hash.clone(),
        contract: movement.contract,
        log_index: movement.log_index,
        block_number: None,
        block_time: None,
        confirmations: 0,
        unseen_since: None,
        classification: None,
        reason_code: None,
        completed_at: None,
        status_history: History::begun(DepositStatus::Initialized, now.business()),
        created: now.business(),
    };
    rows::insert(tx, &deposit)?;
    Ok(deposit)
}

/// Stores the block in which the chain now shows an unsettled deposit, and makes an `initialized`
/// one `processing`. Does nothing while the deposit is in no block. [`end`] completes or fails it.
pub fn follow(
    tx: &mut dyn Tx,
    now: &Now,
    deposit: &mut Deposit,
    depth: Depth,
) -> Result<(), StoreError> {
    let from = deposit.status;
    let (Depth::Block { number, time, confirmations }
    | Depth::Final { number, time, confirmations }) = depth
    else {
        return Ok(());
    };
    // A node that lags behind the one asked before counts fewer confirmations. While the height is
    // the same, the stored count does not fall, even if another block is at that height now.
    let is_same_height = deposit.block_number == Some(number);
    deposit.confirmations =
        if is_same_height { confirmations.max(deposit.confirmations) } else { confirmations };
    deposit.block_number = Some(number);
    deposit.block_time = Some(time);
    deposit.unseen_since = None;
    if from == DepositStatus::Initialized {
        deposit.status = DepositStatus::Processing;
        deposit.status_history.push(DepositStatus::Processing, now.business());
    }
    rows::update(tx, deposit, from)
}

/// Notes that the chain no longer shows a deposit: its block was replaced, or the settings now name
/// a real chain and the deposit was on the simulated one. The deposit keeps its identifier and has
/// [`UNSEEN_SECONDS_MAX`] to come back.
pub fn mark_unseen(
    tx: &mut dyn Tx,
    now: &mut Now,
    deposit: &mut Deposit,
) -> Result<(), StoreError> {
    let from = deposit.status;
    deposit.block_number = None;
    deposit.block_time = None;
    deposit.confirmations = 0;
    deposit.unseen_since = Some(now.business());
    rows::update(tx, deposit, from)?;
    let due = now.business_milliseconds() + UNSEEN_SECONDS_MAX * 1000;
    tasks::schedule(tx, now, deposit.scope, TaskKind::DepositDrop, deposit.id, due)
}

/// Ends a deposit: `failed` if there is a reason (`failure`), otherwise `completed`.
/// `classification` is `None` only for a dropped deposit.
pub fn end(
    tx: &mut dyn Tx,
    now: &Now,
    deposit: &mut Deposit,
    classification: Option<Classification>,
    failure: Option<ReasonCode>,
) -> Result<(), StoreError> {
    let from = deposit.status;
    let to = if failure.is_some() { DepositStatus::Failed } else { DepositStatus::Completed };
    if !from.can_become(to) {
        return Err(StoreError::Broken(format!(
            "a deposit cannot go from {} to {}",
            from.as_str(),
            to.as_str()
        )));
    }
    deposit.status = to;
    deposit.classification = classification;
    deposit.reason_code = failure;
    deposit.completed_at = failure.is_none().then(|| now.business());
    deposit.status_history.push(to, now.business());
    rows::update(tx, deposit, from)
}
