//! Verification: what the account verifier and screening are asked about a beneficiary, and what an
//! answer or the operator's decision changes.

use super::state::{BeneficiaryStatus, PayoutsDisabledReason};
use super::{
    Beneficiary, Kyc, Requirement, become_status, disable_payouts, open_account_number, open_kyc,
    rows, set_kyc,
};
use crate::account_verification::{AccountAnswer, AccountQuestion, HolderName, NameMatch};
use crate::events;
use crate::kernel::id::kind;
use crate::kernel::{Id, Now, Scope, StoreError};
use crate::screening::hits;
use crate::screening::text::normalise;
use crate::screening::{Screening, ScreeningQuestion};
use crate::services::Services;
use crate::store::Tx;
use crate::tasks::{self, TaskKind};

/// After this many failed verifications the beneficiary is rejected.
pub const FAILED_VERIFICATIONS_MAX: i64 = 6;
/// How long after the answer [`AccountAnswer::Unknown`] a check is repeated. `look_ups` has the
/// pauses for a service that does not answer.
const RECHECK_AFTER_MILLISECONDS: i64 = 3_600_000;

/// The message of a requirement if the bank has the account under another name.
const NAME_REQUIRED: &str = "The bank has this account under another name. Send the account \
    holder's name as the bank writes it, as name, with POST /v1/beneficiaries/{id}.";
/// The message of the requirement that a helper of test mode makes. In test mode no bank knows the
/// holder's name, so any name will do.
const NAME_REQUIRED_BY_HELPER: &str = "The bank has this account under another name. Send a name \
    with POST /v1/beneficiaries/{id}: in test mode, any name will do. Then end the verification \
    with the helper activate.";

/// What the account verifier is asked about a beneficiary.
pub fn account_question(
    beneficiary: &Beneficiary,
    services: &Services,
) -> Result<AccountQuestion, StoreError> {
    Ok(AccountQuestion {
        name: beneficiary.name.clone(),
        account_number: open_account_number(beneficiary, services)?,
        ifsc: beneficiary.ifsc.clone(),
    })
}

/// What screening is asked about a beneficiary.
pub fn screening_question(
    beneficiary: &Beneficiary,
    services: &Services,
) -> Result<ScreeningQuestion, StoreError> {
    let mut kyc = open_kyc(beneficiary, services)?;
    // A hit that the operator cleared stays cleared only while the question is the same. So a
    // holder name that equals the beneficiary's is left out: it would end clearances and find
    // nothing new.
    let aliases = if_differing(beneficiary, kyc.holder_name.take()).into_iter().collect();
    Ok(ScreeningQuestion {
        aliases,
        date_of_birth: kyc.date_of_birth.as_deref().and_then(|text| text.parse().ok()),
        countries: kyc.nationality.into_iter().collect(),
        identifiers: [kyc.pan, kyc.passport_number].into_iter().flatten().collect(),
        ..ScreeningQuestion::person(&beneficiary.name)
    })
}

/// The holder's name, if it differs from the beneficiary's.
fn if_differing(beneficiary: &Beneficiary, holder_name: Option<String>) -> Option<String> {
    holder_name.filter(|held| normalise(held) != normalise(&beneficiary.name))
}

/// The account holder's name as the bank gave it, if it differs from the beneficiary's.
pub fn differing_holder_name(
    beneficiary: &Beneficiary,
    services: &Services,
) -> Result<Option<String>, StoreError> {
    Ok(if_differing(beneficiary, open_kyc(beneficiary, services)?.holder_name))
}

/// Screens a beneficiary and stores the hits. The outcome takes the operator's decisions about them
/// into account.
fn screen(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    beneficiary: &Beneficiary,
) -> Result<Screening, StoreError> {
    let scope = beneficiary.scope;
    let question = screening_question(beneficiary, services)?;
    let finding = services.screen(scope.mode(), &question);
    hits::keep(tx, now, scope, beneficiary.id.any(), &finding, &|hit| {
        services.screening_basis(&question, hit)
    })
}

/// Screens a beneficiary in verification. `None` if screening is clear, or if the beneficiary is
/// not in verification.
pub fn screening_answer(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    beneficiary: &Beneficiary,
) -> Result<Option<AccountAnswer>, StoreError> {
    if beneficiary.status != BeneficiaryStatus::Verifying {
        return Ok(None);
    }
    Ok(match screen(tx, now, services, beneficiary)? {
        Screening::Clear => None,
        Screening::PossibleMatch => Some(AccountAnswer::PossiblySanctioned),
        Screening::ConfirmedMatch => Some(AccountAnswer::Sanctioned),
    })
}

/// Screens an active beneficiary again, because the lists changed or a payout is to be instructed.
/// If screening is no longer clear, the beneficiary is not paid until the operator decides.
/// Beneficiaries in other statuses cannot be paid. They are screened in [`super::check`], and
/// before the operator activates them.
pub fn rescreen(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    id: Id<kind::Beneficiary>,
) -> Result<(), StoreError> {
    let Some(mut beneficiary) = rows::find(tx, scope, id)? else { return Ok(()) };
    if beneficiary.status != BeneficiaryStatus::Active
        || screen(tx, now, services, &beneficiary)? == Screening::Clear
    {
        return Ok(());
    }
    if !beneficiary.payouts_enabled
        && beneficiary.payouts_disabled_reason != Some(PayoutsDisabledReason::ComplianceHold)
    {
        // Payouts were stopped for another reason. Before they are enabled again, the operator has
        // to decide about the hit.
        beneficiary.payouts_disabled_reason = Some(PayoutsDisabledReason::ComplianceHold);
        return rows::update(tx, &mut beneficiary, BeneficiaryStatus::Active);
    }
    disable_payouts(tx, now, &mut beneficiary, PayoutsDisabledReason::ComplianceHold)
}

/// Screens a beneficiary again after the operator decided about its hits, and stores new hits.
/// Answers whether any hit still needs a decision.
pub fn screen_for_open_hits(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    beneficiary: &Beneficiary,
) -> Result<bool, StoreError> {
    screen(tx, now, services, beneficiary)?;
    hits::has_open(tx, beneficiary.scope, beneficiary.id.any())
}

/// Schedules the check of a beneficiary that was submitted or that the operator cleared. It is due
/// one step of the simulation from now, in live mode too.
pub(super) fn schedule_check(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    beneficiary: &Beneficiary,
) -> Result<(), StoreError> {
    schedule_check_in(tx, now, beneficiary, services.settings.simulation_step_milliseconds)
}

fn schedule_check_in(
    tx: &mut dyn Tx,
    now: &mut Now,
    beneficiary: &Beneficiary,
    milliseconds: i64,
) -> Result<(), StoreError> {
    let due_milliseconds = now.business_milliseconds() + milliseconds;
    tasks::schedule(
        tx,
        now,
        beneficiary.scope,
        TaskKind::BeneficiaryCheck,
        beneficiary.id,
        due_milliseconds,
    )
}

/// Continues the verification of a beneficiary that the operator cleared: everything is checked
/// again.
pub fn check_again(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    beneficiary: &mut Beneficiary,
) -> Result<(), StoreError> {
    beneficiary.payouts_disabled_reason = Some(PayoutsDisabledReason::VerificationPending);
    rows::update(tx, beneficiary, BeneficiaryStatus::Verifying)?;
    schedule_check(tx, now, services, beneficiary)
}

/// Sets the holder name that the bank gave, which is screened with the beneficiary from now on.
/// Does not store the beneficiary.
pub(super) fn set_holder_name(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    beneficiary: &mut Beneficiary,
    holder_name: &HolderName,
) -> Result<(), StoreError> {
    let holder_name = Some(holder_name.0.clone());
    let kyc = Kyc { holder_name, ..open_kyc(beneficiary, services)? };
    let key = services.sealing_key(tx)?;
    set_kyc(beneficiary, now, &key, &kyc)
}

/// Applies what a look-up or a person found about the account, some time after [`super::check`].
/// With the answers `Passed` and `Name`, the beneficiary is first screened again, with the present
/// lists and the holder's name; a hit takes precedence over the answer.
pub fn screen_and_apply(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    beneficiary: &mut Beneficiary,
    answer: AccountAnswer,
) -> Result<(), StoreError> {
    let answer = match answer {
        // Even if the name differs: the holder may be listed under that name.
        AccountAnswer::Passed | AccountAnswer::Name(_) => {
            screening_answer(tx, now, services, beneficiary)?.unwrap_or(answer)
        }
        _ => answer,
    };
    apply_check(tx, now, beneficiary, answer)
}

/// Applies the answer of a check to a beneficiary in verification; does nothing to any other.
pub fn apply_check(
    tx: &mut dyn Tx,
    now: &mut Now,
    beneficiary: &mut Beneficiary,
    answer: AccountAnswer,
) -> Result<(), StoreError> {
    if beneficiary.status != BeneficiaryStatus::Verifying {
        return Ok(());
    }
    beneficiary.checked_at = Some(now.business());
    match answer {
        AccountAnswer::Passed | AccountAnswer::Name(NameMatch::Match) => {
            beneficiary.name_match = Some(NameMatch::Match);
            activate(tx, now, beneficiary)
        }
        // The account exists, but nobody says whose it is. The caller cannot correct that, so the
        // beneficiary waits for the operator.
        AccountAnswer::Name(NameMatch::Unavailable) => {
            beneficiary.name_match = Some(NameMatch::Unavailable);
            rows::update(tx, beneficiary, BeneficiaryStatus::Verifying)
        }
        AccountAnswer::Name(name_match) => {
            beneficiary.name_match = Some(name_match);
            let reason = PayoutsDisabledReason::NameMismatch;
            require(tx, now, beneficiary, reason, "name", NAME_REQUIRED)
        }
        AccountAnswer::NameUnwritable => {
            let message = "The bank cannot write this name. Give it in Latin letters or in a \
             script of India.";
            require(tx, now, beneficiary, PayoutsDisabledReason::NameMismatch, "name", message)
        }
        AccountAnswer::IfscUnknown => {
            let message = "No branch with this IFSC is known that takes NEFT or RTGS. Check it \
             with the account holder's bank.";
            require(tx, now, beneficiary, PayoutsDisabledReason::IfscUnknown, "ifsc", message)
        }
        AccountAnswer::AccountInvalid => {
            reject(tx, now, beneficiary, PayoutsDisabledReason::AccountInvalid)
        }
        AccountAnswer::AccountNotNre => {
            reject(tx, now, beneficiary, PayoutsDisabledReason::AccountNotNre)
        }
        AccountAnswer::Sanctioned => {
            reject(tx, now, beneficiary, PayoutsDisabledReason::ComplianceHold)
        }
        AccountAnswer::PossiblySanctioned => {
            beneficiary.payouts_disabled_reason = Some(PayoutsDisabledReason::ComplianceHold);
            rows::update(tx, beneficiary, BeneficiaryStatus::Verifying)
        }
        AccountAnswer::Unknown => {
            rows::update(tx, beneficiary, BeneficiaryStatus::Verifying)?;
            schedule_check_in(tx, now, beneficiary, RECHECK_AFTER_MILLISECONDS)
        }
    }
}

fn activate(
    tx: &mut dyn Tx,
    now: &mut Now,
    beneficiary: &mut Beneficiary,
) -> Result<(), StoreError> {
    beneficiary.payouts_enabled = true;
    beneficiary.payouts_disabled_reason = None;
    beneficiary.requirements.clear();
    become_status(tx, now, beneficiary, BeneficiaryStatus::Active)
}

fn reject(
    tx: &mut dyn Tx,
    now: &mut Now,
    beneficiary: &mut Beneficiary,
    reason: PayoutsDisabledReason,
) -> Result<(), StoreError> {
    beneficiary.payouts_disabled_reason = Some(reason);
    beneficiary.requirements.clear();
    become_status(tx, now, beneficiary, BeneficiaryStatus::Rejected)
}

/// Counts a failed verification, and asks the caller for a correction. If the count reaches
/// [`FAILED_VERIFICATIONS_MAX`], it rejects the beneficiary instead.
fn require(
    tx: &mut dyn Tx,
    now: &mut Now,
    beneficiary: &mut Beneficiary,
    reason: PayoutsDisabledReason,
    field_name: &str,
    message: &str,
) -> Result<(), StoreError> {
    beneficiary.failed_verifications_count += 1;
    if beneficiary.failed_verifications_count >= FAILED_VERIFICATIONS_MAX {
        return reject(tx, now, beneficiary, reason);
    }
    beneficiary.payouts_disabled_reason = Some(reason);
    beneficiary.requirements = vec![Requirement {
        field_name: field_name.into(),
        code: reason.as_str().into(),
        message: message.into(),
    }];
    become_status(tx, now, beneficiary, BeneficiaryStatus::InputRequired)
}

/// What the operator or a helper of test mode decides. Only a helper decides `RequireInput`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VerificationDecision {
    Activate,
    RequireInput,
    Reject,
}

/// Carries out a decision. Answers `false`, and changes nothing, if the beneficiary's status does
/// not permit it, or if its payouts are already enabled.
pub fn decide(
    tx: &mut dyn Tx,
    now: &mut Now,
    beneficiary: &mut Beneficiary,
    decision: VerificationDecision,
) -> Result<bool, StoreError> {
    match (beneficiary.status, decision) {
        (BeneficiaryStatus::Active, VerificationDecision::Activate)
            if !beneficiary.payouts_enabled =>
        {
            beneficiary.payouts_enabled = true;
            beneficiary.payouts_disabled_reason = None;
            rows::update(tx, beneficiary, BeneficiaryStatus::Active)?;
            events::emit(
                tx,
                now,
                beneficiary.scope,
                events::BENEFICIARY_PAYOUTS_ENABLED_UPDATED,
                beneficiary.id.any(),
            )?;
        }
        (BeneficiaryStatus::Verifying, VerificationDecision::Activate) => {
            beneficiary.checked_at = Some(now.business());
            activate(tx, now, beneficiary)?;
        }
        (BeneficiaryStatus::Verifying, VerificationDecision::RequireInput) => {
            beneficiary.checked_at = Some(now.business());
            beneficiary.name_match = Some(NameMatch::Partial);
            let reason = PayoutsDisabledReason::NameMismatch;
            require(tx, now, beneficiary, reason, "name", NAME_REQUIRED_BY_HELPER)?;
        }
        (BeneficiaryStatus::Verifying, VerificationDecision::Reject) => {
            beneficiary.checked_at = Some(now.business());
            reject(tx, now, beneficiary, PayoutsDisabledReason::AccountInvalid)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}
