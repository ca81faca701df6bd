//! What only the operator decides: suspending accounts, clearing senders, ending reviews, giving
//! unmatched money back, naming the transactions of refunds, and closing payouts whose outcome the
//! bank has not told. Each decision is one transaction with its events.

use crate::account_verification::{AccountAnswer, NameMatch};
use crate::beneficiaries::state::{BeneficiaryStatus, DisabledReason};
use crate::beneficiaries::{self, Beneficiary, VerificationDecision};
use crate::chains;
use crate::chains::address::Address;
use crate::deposits;
use crate::deposits::state::Classification;
use crate::kernel::id::kind;
use crate::kernel::state::Status;
use crate::kernel::{AnyId, Id, Mode, Money, Now, ObjectKind, OperationError, Scope, StoreError};
use crate::keys;
use crate::payouts;
use crate::payouts::state::PayoutStatus;
use crate::rails::files::rows::{self as journal, Attention, InstructionStatus};
use crate::rails::files::values::Utr;
use crate::rails::{BankReport, FailureCode, FailureSource};
use crate::refunds::state::{AddressDeclarer, RefundStatus};
use crate::refunds::{self, AddressDeclaration};
use crate::screening::Screening;
use crate::screening::hit::HitDecision;
use crate::screening::hits;
use crate::senders;
use crate::services::Services;
use crate::store::Tx;
use crate::transfers::{self, funding, paying, refunding};

/// A decision about one object.
#[derive(Clone, Debug)]
pub enum OperatorDecision {
    /// Sender: may send. Beneficiary: is payable. Transfer under review: the deposits are judged
    /// again.
    Approve,
    /// Sender: may not send. Beneficiary: rejected. Transfer under review, or payout on hold: the
    /// money goes back.
    Refuse,
    /// Transfer whose money waits: put it under review.
    Review,
    /// Unmatched deposit: give it back, to this address where one is known.
    Refund(Option<Address>),
    /// Payout whose outcome is unknown: the bank paid it, under this reference.
    Settle(String),
    /// Payout whose outcome is unknown: the bank did not pay it.
    Fail,
    /// Payout whose file the bank refused, or that it refused for a cause on our side: the cause is
    /// mended, so it is sent once more, in a new file and under the same identity.
    Resend,
    /// Settled payout: its money came back to the account, in a way that names it nowhere.
    Return,
    /// Beneficiary in verification: what a look at its account by hand found.
    Check(AccountAnswer),
}

/// What the operator is answered: what happened, or why nothing did.
type Outcome = Result<String, OperationError>;

fn declined(id: AnyId, reason: impl std::fmt::Display) -> OperationError {
    OperationError::Declined(format!("{id}: {reason}"))
}

/// A refusal in words for the operator.
fn declined_by(id: AnyId, error: OperationError) -> OperationError {
    match error {
        OperationError::Refused(refusal) => match refusal.entries().first() {
            Some(entry) => declined(id, &entry.message),
            None => declined(id, "refused"),
        },
        other => other,
    }
}

/// Carries a decision out and answers what happened.
pub fn decide(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    id: AnyId,
    decision: &OperatorDecision,
) -> Outcome {
    let scope = find_scope(tx, id)?.ok_or_else(|| declined(id, "there is no such object"))?;
    // Before the first look: decisions about one object, and screening everybody again, would each
    // miss what the other writes.
    keys::rows::take_turns(tx, scope)?;
    now.enter_account(keys::rows::clock_offset_seconds(tx, scope)?);
    match id.kind {
        ObjectKind::Sender => decide_sender(tx, now, scope, id, decision),
        ObjectKind::Beneficiary => decide_beneficiary(tx, now, services, scope, id, decision),
        ObjectKind::Transfer => decide_transfer(tx, now, services, scope, id, decision),
        ObjectKind::Deposit => decide_deposit(tx, now, services, scope, id, decision),
        ObjectKind::Payout => decide_payout(tx, now, services, scope, id, decision),
        ObjectKind::Refund => decide_refund(tx, now, services, scope, id, decision),
        _ => Err(declined(id, "there is nothing to decide about an object of this kind")),
    }
}

/// Accounts and modes that one statement asks for.
const SCOPES_ASKED_MAX: usize = 500;

/// Whose an object is. The operator names objects of every account.
fn find_scope(tx: &mut dyn Tx, id: AnyId) -> Result<Option<Scope>, StoreError> {
    let table = match id.kind {
        ObjectKind::Sender => "senders",
        ObjectKind::Beneficiary => "beneficiaries",
        ObjectKind::Transfer => "transfers",
        ObjectKind::Deposit => "deposits",
        ObjectKind::Payout => "payouts",
        ObjectKind::Refund => "refunds",
        _ => return Ok(None),
    };
    let scopes: Vec<Scope> = (1..=keys::rows::accounts_count(tx)?)
        .flat_map(|number| [Mode::Test, Mode::Live].map(|mode| Scope::new(number, mode)))
        .collect();
    for some in scopes.chunks(SCOPES_ASKED_MAX) {
        if let Some(scope) = crate::store::list::owner(tx, table, some, id)? {
            return Ok(Some(scope));
        }
    }
    Ok(None)
}

/// Takes over the transaction in which the operator sent a refund; the chain confirms it. A
/// transaction that confirmed another refund already is a slip of the hand, unless the operator
/// says that it is a batch that pays several.
pub fn mark_refund_sent(
    tx: &mut dyn Tx,
    services: &Services,
    id: Id<kind::Refund>,
    transaction_hash: &str,
    is_batch: bool,
) -> Outcome {
    let any = id.any();
    let scope = find_scope(tx, any)?.ok_or_else(|| declined(any, "there is no such refund"))?;
    let mut refund = refunds::rows::find(tx, scope, id)?
        .ok_or_else(|| declined(any, "there is no such refund"))?;
    if services.simulates(scope.mode(), &refund.chain) {
        return Err(declined(any, "its chain is simulated, where refunds complete by themselves"));
    }
    refunds::mark_sent(tx, &mut refund, transaction_hash)
        .map_err(|error| declined_by(any, error))?;
    let given = refund.sent_transaction_hash.clone().unwrap_or_default();
    let other = refunds::rows::confirmed_by(tx, &refund.chain, &given)?;
    if let Some(other) = other.filter(|_| !is_batch) {
        return Err(declined(
            any,
            format!(
                "this transaction confirmed {other} already; if it is a batch that pays this \
                 refund too, add --batch"
            ),
        ));
    }
    Ok(format!("{id} waits for {given} to be final on {}", refund.chain))
}

/// Declares where a refund goes that has no address, or whose address screening holds. The reason
/// is kept with it.
pub fn set_refund_address(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    id: Id<kind::Refund>,
    to_address: Address,
    reason: &str,
) -> Outcome {
    let any = id.any();
    let scope = find_scope(tx, any)?.ok_or_else(|| declined(any, "there is no such refund"))?;
    keys::rows::take_turns(tx, scope)?;
    now.enter_account(keys::rows::clock_offset_seconds(tx, scope)?);
    let mut refund = refunds::rows::find(tx, scope, id)?
        .ok_or_else(|| declined(any, "there is no such refund"))?;
    if refund.status != RefundStatus::RequiresAddress && !refund.is_held {
        let status = Status::as_str(refund.status);
        return Err(declined(any, format!("it is {status}, and its address stays as it is")));
    }
    if let Some(misfit) = chains::address_fault(&refund.chain, "--to", Some(&to_address)) {
        return Err(declined(any, misfit.message));
    }
    let contract = refunds::rows::token_contract(tx, &refund)?;
    if let Some(refused) = refunds::address_refused(tx, "--to", &to_address, &contract)? {
        return Err(declined(any, refused.message));
    }
    if refund.is_held {
        // Another address takes the place of the one that was found on a list.
        hits::decide(tx, now, scope, any, HitDecision::Refused)?;
    }
    let declaration = AddressDeclaration {
        to_address,
        declared_by: AddressDeclarer::Operator,
        reason: Some(reason.to_owned()),
    };
    refunds::declare_address(tx, now, services, &mut refund, declaration)?;
    tracing::info!(refund = %id, "the operator declared the address of a refund");
    let held = if refund.is_held {
        "; screening found the address on a list: `hundi screening` shows it, `hundi decide ID \
         approve` or `refuse` decides"
    } else {
        ""
    };
    Ok(format!("{id} goes to {to_address}{held}"))
}

/// Decides about a refund whose address screening found on a list. Refused, it stays held until it
/// gets another address.
fn decide_refund(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    id: AnyId,
    decision: &OperatorDecision,
) -> Outcome {
    let found = id.typed().map(|id| refunds::rows::find(tx, scope, id)).transpose()?.flatten();
    let mut refund = found.ok_or_else(|| declined(id, "there is no such object"))?;
    if !refund.is_held {
        return Err(declined(id, "screening does not hold it, so there is nothing to decide"));
    }
    match decision {
        OperatorDecision::Approve => {
            let decided = decide_hits(tx, now, scope, id, HitDecision::Cleared)?;
            refunds::release(tx, now, services, &mut refund)?;
            Ok(format!("{id} may be sent{decided}"))
        }
        OperatorDecision::Refuse => {
            let decided = decide_hits(tx, now, scope, id, HitDecision::Refused)?;
            Ok(format!(
                "{id} stays held{decided}; `hundi refunds address` gives it another address"
            ))
        }
        _ => Err(declined(id, "a refund is approved or refused")),
    }
}

/// Lets a refund be sent that was held because the bank paid its payout after all.
pub fn release_refund(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    id: Id<kind::Refund>,
) -> Outcome {
    let any = id.any();
    let scope = find_scope(tx, any)?.ok_or_else(|| declined(any, "there is no such refund"))?;
    let mut refund = refunds::rows::find(tx, scope, id)?
        .ok_or_else(|| declined(any, "there is no such refund"))?;
    now.enter_account(keys::rows::clock_offset_seconds(tx, scope)?);
    if !refunds::release_from_bank(tx, now, services, &mut refund)? {
        return Err(declined(any, "it is not held for what the bank reported"));
    }
    let screened = if refund.is_held { "; screening still holds it" } else { "" };
    Ok(format!("{id} is no longer held for what the bank reported{screened}"))
}

/// Says in which status an object takes no such decision.
fn not_taken<S: Status>(id: AnyId, status: S) -> OperationError {
    declined(id, format!("it is {}, which does not take this decision", status.as_str()))
}

/// Decides about what screening found of an object; answers words to add to the outcome.
fn decide_hits(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    id: AnyId,
    decision: HitDecision,
) -> Outcome {
    let count = hits::decide(tx, now, scope, id, decision)?;
    Ok(if count == 0 {
        String::new()
    } else {
        format!("; screening hits {}: {count}", decision.as_str())
    })
}

fn decide_sender(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    id: AnyId,
    decision: &OperatorDecision,
) -> Outcome {
    let (screening, decision, outcome) = match decision {
        OperatorDecision::Approve => (Screening::Clear, HitDecision::Cleared, "may send"),
        OperatorDecision::Refuse => {
            (Screening::ConfirmedMatch, HitDecision::Refused, "may not send")
        }
        _ => return Err(declined(id, "a sender is approved or refused")),
    };
    let sender = id.typed().ok_or_else(|| declined(id, "not a sender"))?;
    senders::rows::set_screening(tx, scope, sender, screening)?;
    let decided = decide_hits(tx, now, scope, id, decision)?;
    Ok(format!("{id} {outcome}{decided}"))
}

fn decide_beneficiary(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    id: AnyId,
    decision: &OperatorDecision,
) -> Outcome {
    let decision = match decision {
        OperatorDecision::Approve => VerificationDecision::Activate,
        OperatorDecision::Refuse => VerificationDecision::Reject,
        OperatorDecision::Check(answer) => {
            return check_beneficiary(tx, now, services, scope, id, *answer);
        }
        _ => return Err(declined(id, "a beneficiary is approved or refused")),
    };
    let found =
        id.typed().map(|id| beneficiaries::rows::find(tx, scope, id)).transpose()?.flatten();
    let mut beneficiary = found.ok_or_else(|| declined(id, "there is no such object"))?;
    let is_held = beneficiary.payouts_disabled_reason == Some(DisabledReason::ComplianceHold);
    let decided = match (decision, is_held) {
        (_, false) if !hits::has_open(tx, scope, id)? => String::new(),
        (VerificationDecision::Activate, _) => {
            decide_hits(tx, now, scope, id, HitDecision::Cleared)?
        }
        _ => decide_hits(tx, now, scope, id, HitDecision::Refused)?,
    };
    match (beneficiary.status, decision) {
        // Cleared by the operator is not verified by the bank: the check goes on.
        (BeneficiaryStatus::Verifying, VerificationDecision::Activate) if is_held => {
            beneficiaries::check_again(tx, now, services, &mut beneficiary)?;
            return Ok(format!("{id} is checked again{decided}"));
        }
        (BeneficiaryStatus::Verifying, VerificationDecision::Reject) if is_held => {
            beneficiaries::apply_check(tx, now, &mut beneficiary, AccountAnswer::Sanctioned)?;
            return Ok(format!("{id} is rejected{decided}"));
        }
        // The lists may have changed since its check.
        (BeneficiaryStatus::Verifying, VerificationDecision::Activate) => {
            if let Some(answer) = beneficiaries::screened(tx, now, services, &beneficiary)? {
                beneficiaries::apply_check(tx, now, &mut beneficiary, answer)?;
                return Ok(outcome_of(&beneficiary));
            }
        }
        // Nothing leads from active to rejected: it stays unpaid, and screening again does not
        // change that.
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

/// What a beneficiary has become, and whether screening keeps it from being paid.
fn outcome_of(beneficiary: &Beneficiary) -> String {
    let is_held = beneficiary.payouts_disabled_reason == Some(DisabledReason::ComplianceHold);
    let held = if is_held { "; screening holds it" } else { "" };
    format!("{} is {}{held}", beneficiary.id, Status::as_str(beneficiary.status))
}

/// Applies what a person found about an account, as the answer of a look-up would be.
fn check_beneficiary(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    id: AnyId,
    answer: AccountAnswer,
) -> Outcome {
    let found =
        id.typed().map(|id| beneficiaries::rows::find(tx, scope, id)).transpose()?.flatten();
    let mut beneficiary = found.ok_or_else(|| declined(id, "there is no such object"))?;
    if beneficiary.status != BeneficiaryStatus::Verifying {
        return Err(not_taken(id, beneficiary.status));
    }
    let passes = matches!(answer, AccountAnswer::Passed | AccountAnswer::Name(NameMatch::Match));
    if passes && beneficiary.payouts_disabled_reason == Some(DisabledReason::ComplianceHold) {
        return Err(declined(
            id,
            "screening holds it, which a right account does not end: `hundi decide ID approve` or \
             `refuse`",
        ));
    }
    beneficiaries::apply_late(tx, now, services, &mut beneficiary, answer)?;
    Ok(outcome_of(&beneficiary))
}

fn decide_transfer(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    id: AnyId,
    decision: &OperatorDecision,
) -> Outcome {
    let found = id.typed().map(|id| transfers::rows::find(tx, scope, id)).transpose()?.flatten();
    let mut transfer = found.ok_or_else(|| declined(id, "there is no such object"))?;
    let is_taken = match decision {
        OperatorDecision::Review => funding::begin_review(tx, now, &mut transfer)?,
        OperatorDecision::Approve | OperatorDecision::Refuse => {
            let late =
                deposits::rows::classified_units(tx, scope, transfer.id, Classification::Late)?;
            let late = Money::new(late, transfer.received.currency);
            funding::end_review(
                tx,
                now,
                services,
                &mut transfer,
                matches!(decision, OperatorDecision::Approve),
                late,
            )?
        }
        _ => return Err(declined(id, "a transfer is put under review, approved or refused")),
    };
    if !is_taken {
        return Err(not_taken(id, transfer.status));
    }
    let decided = match decision {
        OperatorDecision::Approve => decide_hits(tx, now, scope, id, HitDecision::Cleared)?,
        // Without a hit there is nothing to keep a refusal for: the money goes back once.
        OperatorDecision::Refuse if hits::has_open(tx, scope, id)? => {
            decide_hits(tx, now, scope, id, HitDecision::Refused)?
        }
        _ => String::new(),
    };
    Ok(format!("{id} is {}{decided}", Status::as_str(transfer.status)))
}

fn decide_deposit(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    id: AnyId,
    decision: &OperatorDecision,
) -> Outcome {
    let OperatorDecision::Refund(to_address) = decision else {
        return Err(declined(id, "a deposit is refunded"));
    };
    let found = id.typed().map(|id| deposits::rows::find(tx, scope, id)).transpose()?.flatten();
    let deposit = found.ok_or_else(|| declined(id, "there is no such object"))?;
    // The other form would be written as this chain's, and be nobody's address there.
    if let Some(misfit) = chains::address_fault(&deposit.chain, "--to", to_address.as_ref()) {
        return Err(declined(id, misfit.message));
    }
    if let Some(address) = to_address {
        let transfer = transfers::rows::find(tx, scope, deposit.transfer_id)?
            .ok_or_else(|| declined(id, "its transfer is gone"))?;
        let refused = refunds::address_refused(tx, "--to", address, &transfer.token_contract)?;
        if let Some(refused) = refused {
            return Err(declined(id, refused.message));
        }
    }
    let refund = refunding::refund_unmatched(tx, now, services, &deposit, *to_address)
        .map_err(|error| declined_by(id, error))?;
    let next = match refund.to_address {
        Some(_) => "",
        None => ": give it one with --to, or let the caller declare it with POST /v1/refunds/:id",
    };
    Ok(format!("{} is {}{next}", refund.id, Status::as_str(refund.status)))
}

/// The bank's reference, as the operator typed it.
fn utr(id: AnyId, reference: &str) -> Result<Utr, OperationError> {
    Utr::parse(&reference.to_ascii_uppercase()).ok_or_else(|| {
        declined(id, "a bank's reference has 10 to 22 letters and digits, and a digit among them")
    })
}

fn decide_payout(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    id: AnyId,
    decision: &OperatorDecision,
) -> Outcome {
    let found = id.typed().map(|id| payouts::rows::find(tx, scope, id)).transpose()?.flatten();
    let mut payout = found.ok_or_else(|| declined(id, "there is no such object"))?;
    match (payout.status, decision) {
        (PayoutStatus::Processing, OperatorDecision::Settle(reference)) => {
            let reference = utr(id, reference)?;
            // The bank cannot have paid what it was never sent.
            let is_unsent = |status| {
                matches!(
                    status,
                    InstructionStatus::Queued
                        | InstructionStatus::Writing
                        | InstructionStatus::Withdrawn
                )
            };
            // One that was queued again has been with the bank before.
            if journal::find(tx, payout.id)?
                .is_some_and(|found| is_unsent(found.status) && !found.was_sent)
            {
                return Err(declined(id, "it has not been sent to the bank"));
            }
            if !journal::claim_reference(tx, reference.as_str(), payout.id)? {
                return Err(declined(id, "another payout was settled under this reference"));
            }
            journal::withdraw_again(tx, payout.id)?;
            journal::set_attention(tx, now, payout.id, None)?;
            // A return of the money names this reference.
            journal::answer(tx, payout.id, Some(reference.as_str()))?;
            let report =
                BankReport::Settled { unique_transaction_reference: reference.as_str().to_owned() };
            paying::apply_report(tx, now, services, &mut payout, report)?;
        }
        (PayoutStatus::Settled, OperatorDecision::Settle(reference)) => {
            let reference = utr(id, reference)?;
            let is_same =
                payout.unique_transaction_reference.as_deref() == Some(reference.as_str());
            if !is_same || !journal::set_attention(tx, now, payout.id, None)? {
                return Err(not_taken(id, payout.status));
            }
        }
        (PayoutStatus::Processing, OperatorDecision::Resend) => {
            let attention = journal::find(tx, payout.id)?.and_then(|found| found.attention);
            let is_refused =
                matches!(attention, Some(Attention::FileRefused | Attention::RefusedForUs));
            if !is_refused || !journal::queue_again(tx, payout.id)? {
                return Err(declined(
                    id,
                    "only a payout that the bank refused for a cause on our side is sent again",
                ));
            }
            payout.failure = None;
            payouts::rows::update(tx, &mut payout, PayoutStatus::Processing)?;
            return Ok(format!("{id} is sent to the bank again"));
        }
        (PayoutStatus::Settled, OperatorDecision::Return) => {
            journal::set_attention(tx, now, payout.id, None)?;
            let report = BankReport::Returned {
                code: FailureCode::ReturnedByBeneficiaryBank,
                source: FailureSource::BeneficiaryBank,
            };
            paying::apply_report(tx, now, services, &mut payout, report)?;
        }
        (PayoutStatus::Processing, OperatorDecision::Fail) => {
            // Nothing may go to the bank any more once the money goes back. Withdrawn before it is
            // looked at: whoever claims it for the bank at this moment is waited for.
            let is_withdrawn = journal::withdraw(tx, payout.id)?;
            let sent = if is_withdrawn { None } else { journal::find(tx, payout.id)? };
            match sent.map(|found| found.status) {
                Some(InstructionStatus::Queued | InstructionStatus::Writing) => {
                    return Err(declined(
                        id,
                        "it is being written for the bank now: try again in a minute",
                    ));
                }
                Some(InstructionStatus::Published) if payout.failure.is_none() => {
                    return Err(declined(
                        id,
                        "the bank has it and may still pay it: wait until its outcome is unknown",
                    ));
                }
                _ => {}
            }
            journal::answer(tx, payout.id, None)?;
            // The statement may still show the payment and its return.
            let before = journal::find(tx, payout.id)?.and_then(|found| found.attention);
            let after = before
                .filter(|attention| {
                    matches!(attention, Attention::ReturnedWhileProcessing | Attention::Reversed)
                })
                .map(|_| Attention::ReturnedAndFailed);
            journal::set_attention(tx, now, payout.id, after)?;
            let report = BankReport::Failed {
                code: FailureCode::TechnicalError,
                source: FailureSource::SponsorBank,
            };
            paying::apply_report(tx, now, services, &mut payout, report)?;
        }
        // Whoever is cleared by now is screened again when it is submitted.
        (PayoutStatus::Hold, OperatorDecision::Approve) => {
            let decided =
                decide_hits(tx, now, scope, payout.transfer_id.any(), HitDecision::Cleared)?;
            paying::submit(tx, now, services, scope, payout.id)?;
            let status = payouts::rows::find(tx, scope, payout.id)?.map(|found| found.status);
            let status = status.map_or("gone", Status::as_str);
            return Ok(format!("{id} is {status}{decided}"));
        }
        (PayoutStatus::Hold, OperatorDecision::Refuse) => {
            paying::refuse_held(tx, now, services, &mut payout, FailureCode::ComplianceRejected)?
        }
        (status, _) => return Err(not_taken(id, status)),
    }
    Ok(format!("{id} is {}", Status::as_str(payout.status)))
}
