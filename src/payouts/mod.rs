//! Payouts: the INR leg of a transfer. A payout begins when its transfer is funded. It ends when
//! the bank has paid it and given the reference (UTR), when it fails, or when the money comes back.

pub mod advice_texts;
pub mod api;
pub mod limits;
pub mod rows;
pub mod state;
pub mod totals;

use crate::events;
use crate::kernel::id::kind;
use crate::kernel::state::Status;
use crate::kernel::{History, Id, Money, Now, Scope, StoreError};
use crate::rails::{FailureCode, FailureSource, Instruction, PaymentMethod};
use crate::resource::Resource;
use crate::store::Tx;
use state::{HoldReason, PayoutStatus};

pub const RESOURCE: Resource = Resource::new(api::routes)
    .at("payouts", "Rupee payments and their payment advices.")
    .with_status::<PayoutStatus>("payouts")
    .with_book_rules(rows::BOOK_RULES);

/// Why a payout failed, came back, or is not yet known to have arrived.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct PayoutFailure {
    pub code: FailureCode,
    pub message: String,
    pub source: FailureSource,
}

impl PayoutFailure {
    pub fn new(code: FailureCode, source: FailureSource) -> PayoutFailure {
        PayoutFailure { code, message: code.message().to_owned(), source }
    }
}

#[derive(Clone)]
pub struct Payout {
    pub scope: Scope,
    pub id: Id<kind::Payout>,
    pub version: i64,
    pub transfer_id: Id<kind::Transfer>,
    pub beneficiary_id: Id<kind::Beneficiary>,
    pub status: PayoutStatus,
    pub amount: Money,
    pub method: PaymentMethod,
    pub purpose_code: String,
    pub unique_transaction_reference: Option<String>,
    /// When the instruction was given to the rail, in Unix milliseconds of business time. The bank
    /// may learn of the instruction later.
    pub submitted_milliseconds: Option<i64>,
    pub settled_at: Option<i64>,
    pub failure: Option<PayoutFailure>,
    pub advice_available_at: Option<i64>,
    /// Which [`advice_texts::AdviceTexts`] were in force when the payout was instructed. `None`
    /// before that, and for payouts from before the service stored these texts.
    pub advice_texts_number: Option<i64>,
    pub status_history: History<PayoutStatus>,
    /// Why the payout is on hold; `None` unless the status is `hold`.
    pub held_for: Option<HoldReason>,
    pub created: i64,
}

impl Payout {
    /// The instruction for the rail at a business time: to pay (`submit`), or to say what became of
    /// the payment (`inquire`). Only `inquire` needs the age and `is_settled`.
    pub fn instruction(
        &self,
        beneficiary: &crate::beneficiaries::Beneficiary,
        business_milliseconds: i64,
    ) -> Instruction {
        Instruction {
            scope: self.scope,
            payout_id: self.id,
            amount: self.amount,
            method: self.method,
            account_number_last4: beneficiary.account_number_last4.clone(),
            ifsc: beneficiary.ifsc.clone(),
            age_milliseconds: self
                .submitted_milliseconds
                .map_or(0, |at| business_milliseconds - at),
            is_settled: self.status == PayoutStatus::Settled,
        }
    }
}

/// Begins the INR leg of a transfer that was funded.
pub fn begin(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    transfer_id: Id<kind::Transfer>,
    beneficiary_id: Id<kind::Beneficiary>,
    amount: Money,
    method: PaymentMethod,
    purpose_code: &str,
) -> Result<Payout, StoreError> {
    let payout = Payout {
        scope,
        id: now.mint(),
        version: 1,
        transfer_id,
        beneficiary_id,
        status: PayoutStatus::Initialized,
        amount,
        method,
        purpose_code: purpose_code.to_owned(),
        unique_transaction_reference: None,
        submitted_milliseconds: None,
        settled_at: None,
        failure: None,
        advice_available_at: None,
        advice_texts_number: None,
        status_history: History::begun(PayoutStatus::Initialized, now.business()),
        held_for: None,
        created: now.business(),
    };
    rows::insert(tx, &payout)?;
    events::emit_status(tx, now, scope, PayoutStatus::Initialized, payout.id.any())?;
    Ok(payout)
}

/// Changes the status along an arrow, stores the payout with its other changes, and emits the
/// event. A change without an arrow is [`StoreError::Broken`].
pub fn become_status(
    tx: &mut dyn Tx,
    now: &mut Now,
    payout: &mut Payout,
    to: PayoutStatus,
) -> Result<(), StoreError> {
    let from = payout.status;
    if !from.can_become(to) {
        return Err(StoreError::Broken(format!(
            "a payout cannot go from {} to {}",
            from.as_str(),
            to.as_str()
        )));
    }
    payout.status = to;
    payout.held_for = payout.held_for.filter(|_| to == PayoutStatus::Hold);
    payout.status_history.push(to, now.business());
    rows::update(tx, payout, from)?;
    events::emit_status(tx, now, payout.scope, to, payout.id.any())
}

/// Puts a payout on hold. The rail must not have its instruction yet. If the payout is on hold
/// already, only its reason changes, without an event.
pub fn hold(
    tx: &mut dyn Tx,
    now: &mut Now,
    payout: &mut Payout,
    reason: HoldReason,
) -> Result<(), StoreError> {
    payout.held_for = Some(reason);
    if payout.status == PayoutStatus::Hold {
        return rows::update(tx, payout, PayoutStatus::Hold);
    }
    become_status(tx, now, payout, PayoutStatus::Hold)
}

/// Makes the payment advice of a settled or returned payout available, once.
pub fn issue_advice(tx: &mut dyn Tx, now: &mut Now, payout: &mut Payout) -> Result<(), StoreError> {
    let was_settled = matches!(payout.status, PayoutStatus::Settled | PayoutStatus::Returned);
    if !was_settled || payout.advice_available_at.is_some() {
        return Ok(());
    }
    payout.advice_available_at = Some(now.business());
    let status = payout.status;
    rows::update(tx, payout, status)?;
    events::emit(tx, now, payout.scope, events::PAYMENT_ADVICE_AVAILABLE, payout.id.any())
}
