//! What only the operator decides: suspending accounts, ending pauses, clearing senders and
//! beneficiaries, ending reviews, giving unmatched money back, naming the transactions of refunds,
//! closing payouts whose outcome the bank has not reported, and explaining differences. Each
//! decision is one transaction with its events.
//!
//! [`decide`] finds the object and decides about senders, transfers and deposits itself; each other
//! kind of object has a file.

mod accounts;
mod beneficiaries;
mod explaining;
pub mod four_eyes;
pub mod open_hits;
mod payouts;
mod refunds;
mod resuming;

use secrecy::SecretString;

use crate::account_verification::{AccountAnswer, NameMatch};
use crate::audit::{self, Action, Fact};
use crate::chains;
use crate::chains::address::ChainAddress;
use crate::decisions;
use crate::deposits;
use crate::deposits::state::Classification;
use crate::kernel::state::Status;
use crate::kernel::{
    AnyId, DecidedBy, Id, IdKind, Money, Now, ObjectKind, OperationError, Role, Scope, StoreError,
};
use crate::keys;
use crate::refunds::address_refusal;
use crate::screening::Screening;
use crate::screening::hit::HitDecision;
use crate::screening::hits;
use crate::senders;
use crate::services::Services;
use crate::store::Tx;
use crate::transfers::{self, holds, refunding};
use four_eyes::{RequestedAction, keep_for_second_person};

pub use accounts::{account_subject, resume_account, suspend_account};
pub use explaining::{ExplainedDifference, explain};
pub use refunds::{mark_refund_sent, release_refund, set_refund_address};
pub use resuming::{pause_subject, resume, submit_waiting};

/// A decision about one object.
#[derive(Clone, Debug)]
pub enum OperatorDecision {
    /// Sender: may send. Beneficiary: it becomes payable; if screening held it before its account
    /// was verified, the account is checked again instead. Transfer under review: the review ends,
    /// and the payout begins if the money suffices. Payout on hold: it is submitted again. Refund
    /// that screening holds: it may be sent.
    Approve,
    /// Sender: may not send. Beneficiary in verification: rejected. Active one that screening
    /// holds: it stays without payouts. Transfer under review, or payout on hold: the money goes
    /// back. Refund that screening holds: it stays held.
    Refuse,
    /// Transfer whose money waits: put it under review.
    Review,
    /// Unmatched deposit: give it back, to this address if one is given. Otherwise its refund waits
    /// for an address.
    Refund(Option<ChainAddress>),
    /// Payout that is with the bank: the bank paid it, under this reference. Settled payout that
    /// waits for the operator: it is confirmed as settled and waits no longer. The reference has to
    /// be the one under which it was settled.
    Settle(String),
    /// Payout whose outcome is unknown, that the bank refused, or that no file was written for yet:
    /// the bank did not and will not pay it.
    Fail,
    /// Payout that the bank refused, alone or with its whole file, for a cause on our side that is
    /// now fixed: it is sent once more, in a new file and with the same end-to-end identifier.
    Resend,
    /// Settled payout: its money came back to the bank account, but no report of the bank names it.
    Return,
    /// Beneficiary in verification: the result of a check of its account by hand.
    Check(AccountAnswer),
}

impl OperatorDecision {
    /// The decision as one word: in the record of decisions, in requests and in the audit log.
    const fn word(&self) -> &'static str {
        match self {
            OperatorDecision::Approve => "approve",
            OperatorDecision::Refuse => "refuse",
            OperatorDecision::Review => "review",
            OperatorDecision::Refund(_) => "refund",
            OperatorDecision::Settle(_) => "settle",
            OperatorDecision::Fail => "fail",
            OperatorDecision::Resend => "resend",
            OperatorDecision::Return => "return",
            OperatorDecision::Check(answer) => match answer {
                AccountAnswer::Passed | AccountAnswer::Name(NameMatch::Match) => "match",
                AccountAnswer::Name(NameMatch::Partial) => "partial",
                AccountAnswer::Name(_) => "mismatch",
                AccountAnswer::AccountNotNre => "not_nre",
                _ => "invalid",
            },
        }
    }
}

/// Carries a decision out, keeps who decided and why, and returns a sentence about what happened.
/// If the decision needs a second person, it is kept as a request instead; the sentence says so.
/// Declined if there is no such object, or if it does not permit this decision now. The caller then
/// has to undo the transaction, because the record is already written.
pub fn decide(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    id: AnyId,
    decision: &OperatorDecision,
    by: &DecidedBy,
) -> OperatorResult {
    decisions::require_operator(tx, by, Role::Operator)?;
    let scope = find_scope(tx, id)?.ok_or_else(|| declined(id, "there is no such object"))?;
    // Lock before the object is read. Otherwise two decisions about one object, or a decision and
    // the screening of all persons, could each miss what the other writes.
    keys::rows::lock_account(tx, scope)?;
    now.enter_account(keys::rows::clock_offset_seconds(tx, scope)?);
    decisions::require_actor_and_reason(by, scope.mode())?;
    let asked = RequestedAction::Decide(id, decision.clone());
    if let Some(waits) =
        keep_for_second_person(tx, now, &services.settings, Some(scope), &asked, by)?
    {
        return Ok(waits);
    }
    decisions::record(tx, now, &id.to_string(), decision.word(), by)?;
    match id.kind {
        ObjectKind::Sender => decide_sender(tx, now, services, scope, id, decision, by),
        ObjectKind::Beneficiary => {
            beneficiaries::decide(tx, now, services, scope, id, decision, by)
        }
        ObjectKind::Transfer => decide_transfer(tx, now, services, scope, id, decision, by),
        ObjectKind::Deposit => decide_deposit(tx, now, services, scope, id, decision),
        ObjectKind::Payout => payouts::decide(tx, now, services, scope, id, decision, by),
        ObjectKind::Refund => refunds::decide(tx, now, services, scope, id, decision, by),
        _ => Err(declined(id, "there is nothing to decide about an object of this kind")),
    }
}

/// A beneficiary's full account number, for an operator who gives a reason. Writes an entry in the
/// audit log in the same transaction. `None` if `id` is no beneficiary of any account.
pub fn see_account_number(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    id: AnyId,
    by: &DecidedBy,
) -> Result<Option<SecretString>, OperationError> {
    if id.kind != ObjectKind::Beneficiary {
        return Ok(None);
    }
    let Some(scope) = find_scope(tx, id)? else { return Ok(None) };
    let beneficiary = find_named(id, |id| crate::beneficiaries::rows::find(tx, scope, id))?;
    record_numbers_seen(tx, now, &[id], by)?;
    Ok(Some(crate::beneficiaries::open_account_number(&beneficiary, services)?))
}

/// Writes into the audit log who sees the full account numbers of beneficiaries, and why. Declined
/// without a reason. Once there are operators, it is also declined if a command line names nobody
/// who may decide. With no beneficiaries, this only checks the person and the reason.
pub fn record_numbers_seen(
    tx: &mut dyn Tx,
    now: &mut Now,
    beneficiaries: &[AnyId],
    by: &DecidedBy,
) -> Result<(), OperationError> {
    decisions::require_operator(tx, by, Role::Operator)?;
    if by.reason().is_empty() {
        let text = "say why you need full account numbers: --reason TEXT; the audit log keeps it";
        return Err(OperationError::Declined(text.into()));
    }
    let details = [("reason", by.reason())];
    for id in beneficiaries {
        let subject = id.to_string();
        audit::append(tx, now, &Fact::by(by, Action::AccountNumberSeen, &subject, &details))?;
    }
    Ok(())
}

/// The most scopes that one query asks for.
const SCOPES_ASKED_MAX: usize = 500;

/// Finds the account and mode of an object, over all accounts; `None` if there is no such object.
/// Only for the operator: a caller's request must not use this.
pub fn find_scope(tx: &mut dyn Tx, id: AnyId) -> Result<Option<Scope>, StoreError> {
    let Some(table) = id.kind.table() else { return Ok(None) };
    for some in keys::rows::scopes(tx)?.chunks(SCOPES_ASKED_MAX) {
        if let Some(scope) = crate::store::list::owner(tx, table, some, id)? {
            return Ok(Some(scope));
        }
    }
    Ok(None)
}

/// The object that a decision is about. Declined if it is not there.
fn find_named<K: IdKind, T>(
    id: AnyId,
    find: impl FnOnce(Id<K>) -> Result<Option<T>, StoreError>,
) -> Result<T, OperationError> {
    let found = id.typed().map(find).transpose()?.flatten();
    found.ok_or_else(|| declined(id, "there is no such object"))
}

fn decide_sender(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    id: AnyId,
    decision: &OperatorDecision,
    by: &DecidedBy,
) -> OperatorResult {
    let (screening, decision, outcome) = match decision {
        OperatorDecision::Approve => (Screening::Clear, HitDecision::Cleared, "may send"),
        OperatorDecision::Refuse => {
            (Screening::ConfirmedMatch, HitDecision::Refused, "may not send")
        }
        _ => return Err(declined(id, "a sender can only be approved or refused")),
    };
    let sender = id.typed().ok_or_else(|| declined(id, "not a sender"))?;
    let decided = decide_hits(tx, now, scope, id, decision, by)?;
    if decision == HitDecision::Cleared {
        // The lists may have changed since the hits were found, or give more hits than were stored.
        senders::rescreen(tx, now, services, scope, sender)?;
        if hits::has_open(tx, scope, id)? {
            return Ok(format!("{id} may not send yet: screening found more{decided}"));
        }
    }
    let sender = senders::rows::find(tx, scope, sender)?
        .ok_or_else(|| declined(id, "there is no such object"))?;
    senders::rows::set_screening(tx, &sender, screening)?;
    Ok(format!("{id} {outcome}{decided}"))
}

fn decide_transfer(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    id: AnyId,
    decision: &OperatorDecision,
    by: &DecidedBy,
) -> OperatorResult {
    let mut transfer = find_named(id, |id| transfers::rows::find(tx, scope, id))?;
    let is_taken = match decision {
        OperatorDecision::Review => holds::begin_review(tx, now, &mut transfer)?,
        OperatorDecision::Approve | OperatorDecision::Refuse => {
            let late =
                deposits::rows::classified_units(tx, scope, transfer.id, Classification::Late)?;
            let late = Money::new(late, transfer.received.currency);
            holds::end_review(
                tx,
                now,
                services,
                &mut transfer,
                matches!(decision, OperatorDecision::Approve),
                late,
            )?
        }
        _ => {
            return Err(declined(
                id,
                "a transfer can only be put under review, approved or refused",
            ));
        }
    };
    if !is_taken {
        // Somebody on a list can pay to the address of a transfer that takes no more money. Then
        // only the hits are decided about.
        let hit_decision = match decision {
            OperatorDecision::Approve => HitDecision::Cleared,
            OperatorDecision::Refuse => HitDecision::Refused,
            _ => return Err(not_taken(id, transfer.status)),
        };
        if !hits::has_open(tx, scope, id)? {
            return Err(not_taken(id, transfer.status));
        }
        let decided = decide_hits(tx, now, scope, id, hit_decision, by)?;
        return Ok(format!("{id} stays {}{decided}", Status::as_str(transfer.status)));
    }
    let decided = match decision {
        OperatorDecision::Approve => decide_hits(tx, now, scope, id, HitDecision::Cleared, by)?,
        // Open hits are refused with the money. Without any, only this money goes back:
        // `decide_hits` would store the refusal as a hit of its own, which would also stop later
        // money.
        OperatorDecision::Refuse if hits::has_open(tx, scope, id)? => {
            decide_hits(tx, now, scope, id, HitDecision::Refused, by)?
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
) -> OperatorResult {
    let OperatorDecision::Refund(to_address) = decision else {
        return Err(declined(id, "a deposit can only be refunded"));
    };
    let deposit = find_named(id, |id| deposits::rows::find(tx, scope, id))?;
    // An address in another chain's form would be rewritten in this chain's form, where it belongs
    // to nobody.
    if let Some(misfit) = chains::address_fault(&deposit.chain, "--to", to_address.as_ref()) {
        return Err(declined(id, misfit.message));
    }
    if let Some(address) = to_address {
        let transfer = transfers::rows::find(tx, scope, deposit.transfer_id)?
            .ok_or_else(|| declined(id, "its transfer is gone"))?;
        let refused = address_refusal(tx, "--to", address, &transfer.token_contract)?;
        if let Some(refused) = refused {
            return Err(declined(id, refused.message));
        }
    }
    let refund = refunding::refund_unmatched(tx, now, services, &deposit, *to_address)
        .map_err(|error| declined_by(id, error))?;
    let next = match refund.to_address {
        Some(_) => "",
        None => {
            ": repeat this with --to ADDRESS, or let the caller declare it with \
             POST /v1/refunds/:id"
        }
    };
    Ok(format!("{} is {}{next}", refund.id, Status::as_str(refund.status)))
}

/// Decides about all hits of an object that were not withdrawn, including those that were decided
/// otherwise before. A refusal without any hit is stored as a hit of its own. Returns words to add
/// to the outcome; empty if no hit changed or was added.
fn decide_hits(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    id: AnyId,
    decision: HitDecision,
    by: &DecidedBy,
) -> OperatorResult {
    let count = hits::decide(tx, now, scope, id, decision, by)?;
    Ok(if count == 0 {
        String::new()
    } else {
        format!("; screening hits {}: {count}", decision.as_str())
    })
}

/// The answer to the operator: what happened, or why nothing did.
type OperatorResult = Result<String, OperationError>;

fn declined(id: AnyId, reason: impl std::fmt::Display) -> OperationError {
    declined_about(&id.to_string(), reason)
}

fn declined_about(what: &str, reason: impl std::fmt::Display) -> OperationError {
    OperationError::Declined(format!("{what}: {reason}"))
}

/// Turns a caller's refusal into a declined decision with the same words.
fn declined_by(id: AnyId, error: OperationError) -> OperationError {
    match error {
        OperationError::Refused(refusal) => match refusal.entries().first() {
            Some(entry) => declined(id, &entry.message),
            None => declined(id, "refused"),
        },
        other => other,
    }
}

/// Declines a decision that an object's status does not permit.
fn not_taken<S: Status>(id: AnyId, status: S) -> OperationError {
    declined(id, format!("it is {}, which does not take this decision", status.as_str()))
}
