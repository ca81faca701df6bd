//! Beneficiaries: NRE account holders, from draft through verification to payable.
//!
//! `verification` screens them and applies the answers about their accounts; `look_ups` holds the
//! questions that a worker asks an outside service.

pub mod api;
pub mod look_ups;
pub mod rows;
pub mod state;
mod verification;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::account_verification::{AccountAnswer, AccountCheck, NameMatch};
use crate::events;
use crate::kernel::id::kind;
use crate::kernel::seal::{SealedPlace, SealingKey};
use crate::kernel::state::Status;
use crate::kernel::{
    Code, History, Id, Metadata, MetadataPatch, Now, OperationError, Patch, Refusal, Scope,
    StoreError,
};
use crate::name_words;
use crate::resource::Resource;
use crate::services::Services;
use crate::store::Tx;
use state::{BeneficiaryStatus, PayoutsDisabledReason};
use verification::schedule_check;

pub use verification::{
    FAILED_VERIFICATIONS_MAX, VerificationDecision, account_question, apply_check, check_again,
    decide, differing_holder_name, rescreen, screen_and_apply, screen_for_open_hits,
    screening_answer, screening_question,
};

pub const RESOURCE: Resource = Resource::new(api::routes)
    .at("beneficiaries", "Holders of NRE accounts, who are paid.")
    .with_status::<BeneficiaryStatus>("beneficiaries")
    .with_events(&[events::BENEFICIARY_PAYOUTS_ENABLED_UPDATED]);

/// What the caller has to correct.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Requirement {
    pub field_name: String,
    pub code: String,
    pub message: String,
}

impl Requirement {
    fn list_to_text(list: &[Requirement]) -> String {
        if list.is_empty() {
            String::new()
        } else {
            serde_json::to_string(list).unwrap_or_default()
        }
    }
    fn list_from_text(text: &str) -> Option<Vec<Requirement>> {
        if text.is_empty() { Some(Vec::new()) } else { serde_json::from_str(text).ok() }
    }
}

#[derive(Clone)]
pub struct Beneficiary {
    pub scope: Scope,
    pub id: Id<kind::Beneficiary>,
    pub version: i64,
    pub status: BeneficiaryStatus,
    pub payouts_enabled: bool,
    pub payouts_disabled_reason: Option<PayoutsDisabledReason>,
    pub name: String,
    pub account_number_sealed: Vec<u8>,
    pub account_number_last4: String,
    pub ifsc: String,
    pub bank_name: Option<String>,
    pub branch_name: Option<String>,
    pub email: Option<String>,
    pub phone: Option<String>,
    pub kyc_sealed: Vec<u8>,
    pub pan_last4: Option<String>,
    pub passport_number_last4: Option<String>,
    pub requirements: Vec<Requirement>,
    pub name_match: Option<NameMatch>,
    pub checked_at: Option<i64>,
    /// Verifications that failed for a reason that the caller can correct; see
    /// [`FAILED_VERIFICATIONS_MAX`].
    pub failed_verifications_count: i64,
    pub metadata: Metadata,
    pub status_history: History<BeneficiaryStatus>,
    pub created: i64,
}

/// Fields that callers write and that the API never shows in full, and the account holder's name.
/// They are sealed together.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Kyc {
    /// The permanent account number at India's tax office, not a card number.
    pub pan: Option<String>,
    pub passport_number: Option<String>,
    /// `YYYY-MM-DD`.
    pub date_of_birth: Option<String>,
    /// An ISO 3166-1 alpha-2 country code.
    pub nationality: Option<String>,
    /// The word of a [`state::Relationship`].
    pub relationship: Option<String>,
    /// The account holder as the bank names it, from the last look-up of this account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder_name: Option<String>,
}

/// The last four characters.
pub fn last4(text: &str) -> String {
    let skipped = text.chars().count().saturating_sub(4);
    text.chars().skip(skipped).collect()
}

/// The details of a new beneficiary. `submit` begins its verification at once.
pub struct NewBeneficiary {
    pub name: String,
    pub account_number: String,
    pub ifsc: String,
    pub email: Option<String>,
    pub phone: Option<String>,
    pub kyc: Kyc,
    pub metadata: Metadata,
    pub submit: bool,
}

pub fn create(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    new: NewBeneficiary,
) -> Result<Beneficiary, OperationError> {
    let id: Id<kind::Beneficiary> = now.mint();
    let key = services.sealing_key(tx)?;
    let status = if new.submit { BeneficiaryStatus::Verifying } else { BeneficiaryStatus::Draft };
    let mut beneficiary = Beneficiary {
        scope,
        id,
        version: 1,
        status,
        payouts_enabled: false,
        payouts_disabled_reason: Some(PayoutsDisabledReason::VerificationPending),
        name: new.name,
        account_number_sealed: key.seal(
            now.random_bytes(),
            &SealedPlace::ACCOUNT_NUMBER,
            &id.to_bytes(),
            new.account_number.as_bytes(),
        )?,
        account_number_last4: last4(&new.account_number),
        ifsc: String::new(),
        bank_name: None,
        branch_name: None,
        email: new.email,
        phone: new.phone,
        kyc_sealed: Vec::new(),
        pan_last4: None,
        passport_number_last4: None,
        requirements: Vec::new(),
        name_match: None,
        checked_at: None,
        failed_verifications_count: 0,
        metadata: new.metadata,
        status_history: History::begun(status, now.business()),
        created: now.business(),
    };
    set_ifsc(&mut beneficiary, services, new.ifsc);
    set_kyc(&mut beneficiary, now, &key, &new.kyc)?;
    rows::insert(tx, &beneficiary)?;
    name_words::keep(tx, scope, beneficiary.id.any(), &beneficiary.name)?;
    events::emit_status(tx, now, scope, status, id.any())?;
    if new.submit {
        schedule_check(tx, now, services, &beneficiary)?;
    }
    Ok(beneficiary)
}

/// Sets the IFSC and, as the directory knows them now, the names of bank and branch.
fn set_ifsc(beneficiary: &mut Beneficiary, services: &Services, ifsc: String) {
    let branch = services.ifsc.find(&ifsc);
    (beneficiary.bank_name, beneficiary.branch_name) =
        branch.map_or((None, None), |branch| (branch.bank_name, branch.branch_name));
    beneficiary.ifsc = ifsc;
}

fn set_kyc(
    beneficiary: &mut Beneficiary,
    now: &mut Now,
    key: &SealingKey<'_>,
    kyc: &Kyc,
) -> Result<(), StoreError> {
    let plain = serde_json::to_vec(kyc).map_err(|error| StoreError::Broken(error.to_string()))?;
    beneficiary.kyc_sealed =
        key.seal(now.random_bytes(), &SealedPlace::KYC, &beneficiary.id.to_bytes(), &plain)?;
    beneficiary.pan_last4 = kyc.pan.as_deref().map(last4);
    beneficiary.passport_number_last4 = kyc.passport_number.as_deref().map(last4);
    Ok(())
}

pub fn open_kyc(beneficiary: &Beneficiary, services: &Services) -> Result<Kyc, StoreError> {
    let plain =
        services.open(&SealedPlace::KYC, &beneficiary.id.to_bytes(), &beneficiary.kyc_sealed)?;
    serde_json::from_slice(&plain)
        .map_err(|_| StoreError::Broken("a beneficiary's sealed fields cannot be read".into()))
}

/// What an update changes. `None` leaves a field as it is. [`update`] says what happens without
/// `submit`.
pub struct BeneficiaryChange {
    pub name: Option<String>,
    pub account_number: Option<String>,
    pub ifsc: Option<String>,
    pub email: Patch<String>,
    pub phone: Patch<String>,
    pub kyc: KycChange,
    pub metadata: MetadataPatch,
    pub submit: Option<bool>,
}

pub struct KycChange {
    pub pan: Patch<String>,
    pub passport_number: Patch<String>,
    pub date_of_birth: Patch<String>,
    pub nationality: Patch<String>,
    pub relationship: Patch<String>,
}

/// Changes a beneficiary that is in `draft` or `input_required`. `submit` says whether to submit it
/// too. If `submit` is missing, a beneficiary in `input_required` is submitted and a draft is not.
pub fn update(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    mut beneficiary: Beneficiary,
    change: BeneficiaryChange,
) -> Result<Beneficiary, OperationError> {
    let submits_by_default = match beneficiary.status {
        BeneficiaryStatus::Draft => false,
        BeneficiaryStatus::InputRequired => true,
        _ => {
            let message = format!(
                "The beneficiary is {} and can only be changed in draft or input_required. {}",
                beneficiary.status.as_str(),
                if beneficiary.status == BeneficiaryStatus::Verifying {
                    "Wait for its next event."
                } else {
                    "Create another beneficiary instead."
                }
            );
            return Err(Refusal::new(Code::BeneficiaryNotEditable, message).into());
        }
    };
    let old = open_kyc(&beneficiary, services)?;
    let kyc = Kyc {
        pan: change.kyc.pan.over(old.pan),
        passport_number: change.kyc.passport_number.over(old.passport_number),
        date_of_birth: change.kyc.date_of_birth.over(old.date_of_birth),
        nationality: change.kyc.nationality.over(old.nationality),
        relationship: change.kyc.relationship.over(old.relationship),
        // The account may be another one. The next look-up gives the name again.
        holder_name: None,
    };
    let key = services.sealing_key(tx)?;
    set_kyc(&mut beneficiary, now, &key, &kyc)?;
    if change.name.is_some() || change.account_number.is_some() || change.ifsc.is_some() {
        // What was found is about the earlier details.
        (beneficiary.name_match, beneficiary.checked_at) = (None, None);
    }
    if let Some(account_number) = change.account_number {
        beneficiary.account_number_sealed = key.seal(
            now.random_bytes(),
            &SealedPlace::ACCOUNT_NUMBER,
            &beneficiary.id.to_bytes(),
            account_number.as_bytes(),
        )?;
        beneficiary.account_number_last4 = last4(&account_number);
    }
    if let Some(name) = change.name {
        name_words::keep_more(tx, beneficiary.scope, beneficiary.id.any(), &name)?;
        beneficiary.name = name;
    }
    // Looked up even if the IFSC stays the same: the directory may know it by now.
    let ifsc = change.ifsc.unwrap_or_else(|| beneficiary.ifsc.clone());
    set_ifsc(&mut beneficiary, services, ifsc);
    beneficiary.email = change.email.over(beneficiary.email);
    beneficiary.phone = change.phone.over(beneficiary.phone);
    beneficiary.metadata = change.metadata.over(&beneficiary.metadata)?;
    if change.submit.unwrap_or(submits_by_default) {
        beneficiary.requirements.clear();
        beneficiary.payouts_disabled_reason = Some(PayoutsDisabledReason::VerificationPending);
        // A decision may have ended the last verification while its question was open.
        look_ups::forget(tx, beneficiary.scope, beneficiary.id)?;
        become_status(tx, now, &mut beneficiary, BeneficiaryStatus::Verifying)?;
        schedule_check(tx, now, services, &beneficiary)?;
    } else {
        let status = beneficiary.status;
        rows::update(tx, &mut beneficiary, status)?;
    }
    Ok(beneficiary)
}

/// Changes the status along one of its arrows, stores the beneficiary and emits the event.
fn become_status(
    tx: &mut dyn Tx,
    now: &mut Now,
    beneficiary: &mut Beneficiary,
    to: BeneficiaryStatus,
) -> Result<(), StoreError> {
    let from = beneficiary.status;
    if !from.can_become(to) {
        return Err(StoreError::Broken(format!(
            "a beneficiary cannot go from {} to {}",
            from.as_str(),
            to.as_str()
        )));
    }
    beneficiary.status = to;
    beneficiary.status_history.push(to, now.business());
    rows::update(tx, beneficiary, from)?;
    events::emit_status(tx, now, beneficiary.scope, to, beneficiary.id.any())
}

/// The full account number. Only for the bank, the look-up, and an operator whose reason is in the
/// audit log. Never put it into an answer of the API or a log.
pub fn open_account_number(
    beneficiary: &Beneficiary,
    services: &Services,
) -> Result<SecretString, StoreError> {
    let plain = services.open(
        &SealedPlace::ACCOUNT_NUMBER,
        &beneficiary.id.to_bytes(),
        &beneficiary.account_number_sealed,
    )?;
    let text = String::from_utf8(plain)
        .map_err(|_| StoreError::Broken("a beneficiary's account number cannot be read".into()))?;
    Ok(text.into())
}

/// Checks a beneficiary in verification as far as a transaction can. What needs the network is
/// stored for the worker that asks; what needs a person waits for the operator.
pub fn check(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    beneficiary: &mut Beneficiary,
) -> Result<(), StoreError> {
    if beneficiary.status != BeneficiaryStatus::Verifying {
        return Ok(());
    }
    // Screening comes before anybody outside hears of the account.
    if let Some(answer) = screening_answer(tx, now, services, beneficiary)? {
        return apply_check(tx, now, beneficiary, answer);
    }
    let mode = beneficiary.scope.mode();
    // Test mode accepts a code that the directory does not know.
    if mode.is_live()
        && !services.ifsc.find(&beneficiary.ifsc).is_some_and(|branch| branch.takes_payouts())
    {
        return apply_check(tx, now, beneficiary, AccountAnswer::IfscUnknown);
    }
    if !services.ports(mode)?.rail.can_write(&beneficiary.name) {
        return apply_check(tx, now, beneficiary, AccountAnswer::NameUnwritable);
    }
    match services.ports(mode)?.accounts.check(&account_question(beneficiary, services)?) {
        AccountCheck::Answered(answer) => apply_check(tx, now, beneficiary, answer),
        AccountCheck::LookUp => look_ups::begin(tx, now, beneficiary.scope, beneficiary.id),
        AccountCheck::Review => Ok(()),
    }
}

/// Stops payouts to an active beneficiary. Does nothing if they are already stopped, or if the
/// beneficiary is not active.
pub fn disable_payouts(
    tx: &mut dyn Tx,
    now: &mut Now,
    beneficiary: &mut Beneficiary,
    reason: PayoutsDisabledReason,
) -> Result<(), StoreError> {
    if beneficiary.status != BeneficiaryStatus::Active || !beneficiary.payouts_enabled {
        return Ok(());
    }
    beneficiary.payouts_enabled = false;
    beneficiary.payouts_disabled_reason = Some(reason);
    rows::update(tx, beneficiary, BeneficiaryStatus::Active)?;
    events::emit(
        tx,
        now,
        beneficiary.scope,
        events::BENEFICIARY_PAYOUTS_ENABLED_UPDATED,
        beneficiary.id.any(),
    )
}

impl Beneficiary {
    pub fn is_payable(&self) -> bool {
        self.status == BeneficiaryStatus::Active && self.payouts_enabled
    }
}

/// The refusal for a beneficiary that cannot be paid now.
pub fn refusal_not_payable(beneficiary: &Beneficiary) -> Refusal {
    let what_to_do = match (beneficiary.status, beneficiary.payouts_disabled_reason) {
        // Also if the operator has refused the beneficiary: a caller must not learn what screening
        // found.
        (_, Some(PayoutsDisabledReason::ComplianceHold)) => "The operator reviews it.",
        (BeneficiaryStatus::Draft, _) => "Submit it with an update that holds submit: true.",
        (BeneficiaryStatus::Verifying, _) => {
            "Wait for the event beneficiary.status.active, or fetch the beneficiary until \
             payouts_enabled is true."
        }
        (BeneficiaryStatus::InputRequired, _) => "Update the fields that its requirements name.",
        (BeneficiaryStatus::Rejected, _) => "Create another beneficiary.",
        (BeneficiaryStatus::Active, _) => {
            "The operator enables it again; the event beneficiary.payouts_enabled.updated follows."
        }
    };
    let why = beneficiary.payouts_disabled_reason.map_or("", PayoutsDisabledReason::as_str);
    let message = format!(
        "The beneficiary cannot be paid now: its status is {} ({why}). {what_to_do} Then send the \
         transfer with a new idempotency key.",
        beneficiary.status.as_str()
    );
    Refusal::field(Code::BeneficiaryNotPayable, "beneficiary_id", message)
}
