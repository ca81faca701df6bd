//! The operator's decisions about beneficiaries: approving, refusing, and recording the result of a
//! check of the account by hand.

use super::{OperatorDecision, OperatorResult, decide_hits, declined, find_named, not_taken};
use crate::account_verification::{AccountAnswer, NameMatch};
use crate::beneficiaries::state::{BeneficiaryStatus, PayoutsDisabledReason};
use crate::beneficiaries::{self, Beneficiary, VerificationDecision};
use crate::kernel::state::Status;
use crate::kernel::{AnyId, DecidedBy, Now, Scope};
use crate::screening::hit::HitDecision;
use crate::screening::hits;
use crate::services::Services;
use crate::store::Tx;
use crate::transfers::paying;

/// Decides whether a beneficiary may be paid, or applies what a person found about its account.
pub(super) fn decide(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    id: AnyId,
    decision: &OperatorDecision,
    by: &DecidedBy,
) -> OperatorResult {
    let decision = match decision {
        OperatorDecision::Approve => VerificationDecision::Activate,
        OperatorDecision::Refuse => VerificationDecision::Reject,
        OperatorDecision::Check(answer) => {
            return apply_check_by_hand(tx, now, services, scope, id, *answer);
        }
        _ => return Err(declined(id, "a beneficiary can only be approved or refused")),
    };
    let mut beneficiary = find_named(id, |id| beneficiaries::rows::find(tx, scope, id))?;
    let is_held =
        beneficiary.payouts_disabled_reason == Some(PayoutsDisabledReason::ComplianceHold);
    let decided = match (decision, is_held) {
        (_, false) if !hits::has_open(tx, scope, id)? => String::new(),
        (VerificationDecision::Activate, _) => {
            decide_hits(tx, now, scope, id, HitDecision::Cleared, by)?
        }
        _ => decide_hits(tx, now, scope, id, HitDecision::Refused, by)?,
    };
    match (beneficiary.status, decision) {
        // The operator cleared the hit, but nobody has verified the account yet: the check goes on.
        (BeneficiaryStatus::Verifying, VerificationDecision::Activate) if is_held => {
            beneficiaries::check_again(tx, now, services, &mut beneficiary)?;
            return Ok(format!("{id} is checked again{decided}"));
        }
        // `beneficiaries::decide` would tell the caller that the account is invalid, which nobody
        // found. `Sanctioned` gives the reason `compliance_hold`.
        (BeneficiaryStatus::Verifying, VerificationDecision::Reject) => {
            beneficiaries::apply_check(tx, now, &mut beneficiary, AccountAnswer::Sanctioned)?;
            return Ok(format!("{id} is rejected{decided}"));
        }
        // The lists may have changed since the beneficiary was last screened.
        (BeneficiaryStatus::Verifying, VerificationDecision::Activate) => {
            if let Some(answer) = beneficiaries::screening_answer(tx, now, services, &beneficiary)?
            {
                beneficiaries::apply_check(tx, now, &mut beneficiary, answer)?;
                return Ok(format!("{}{decided}", outcome_of(&beneficiary)));
            }
        }
        // The lists may have changed since the hits were found, or give more hits than were stored.
        (BeneficiaryStatus::Active, VerificationDecision::Activate)
            if is_held && beneficiaries::screen_for_open_hits(tx, now, services, &beneficiary)? =>
        {
            return Ok(format!("{id} stays without payouts: screening found more{decided}"));
        }
        // There is no arrow from active to rejected. The beneficiary stays without payouts, even
        // when it is screened again.
        (BeneficiaryStatus::Active, VerificationDecision::Reject) if is_held => {
            return Ok(format!("{id} stays without payouts{decided}"));
        }
        _ => {}
    }
    if !beneficiaries::decide(tx, now, &mut beneficiary, decision)? {
        return Err(not_taken(id, beneficiary.status));
    }
    if beneficiary.is_payable() {
        paying::resume_held(tx, now, scope, beneficiary.id)?;
    }
    Ok(format!("{id} is {}{decided}", Status::as_str(beneficiary.status)))
}

/// The beneficiary's new status in words, and whether screening keeps it from being paid.
fn outcome_of(beneficiary: &Beneficiary) -> String {
    let is_held =
        beneficiary.payouts_disabled_reason == Some(PayoutsDisabledReason::ComplianceHold);
    let held = if is_held { "; screening holds it" } else { "" };
    format!("{} is {}{held}", beneficiary.id, Status::as_str(beneficiary.status))
}

/// Applies what a person found about an account, as the answer of a look-up would be.
fn apply_check_by_hand(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    id: AnyId,
    answer: AccountAnswer,
) -> OperatorResult {
    let mut beneficiary = find_named(id, |id| beneficiaries::rows::find(tx, scope, id))?;
    if beneficiary.status != BeneficiaryStatus::Verifying {
        return Err(not_taken(id, beneficiary.status));
    }
    let passes = matches!(answer, AccountAnswer::Passed | AccountAnswer::Name(NameMatch::Match));
    if passes && beneficiary.payouts_disabled_reason == Some(PayoutsDisabledReason::ComplianceHold)
    {
        return Err(declined(
            id,
            "screening holds it, and a correct account does not end that: `hundi decide ID \
             approve` or `refuse`",
        ));
    }
    beneficiaries::screen_and_apply(tx, now, services, &mut beneficiary, answer)?;
    Ok(outcome_of(&beneficiary))
}
