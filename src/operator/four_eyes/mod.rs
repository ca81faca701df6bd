//! Four eyes: decisions that one person asks for and a second one approves.
//!
//! If `four_eyes_above` is set, these need a second person: a decision that moves more than that,
//! an address for a refund, an approval despite a confirmed match of screening or an earlier
//! refusal, and the end of a pause or a suspension. The decision is first kept as a request. It is
//! carried out in the transaction in which an approver other than the requester approves it. `hundi
//! deposits credit` and `hundi resume database` cannot wait, so both persons take part at once
//! ([`require_two`]). Both have to prove who they are, by a session or a password, because anybody
//! can write a name on a command line.

mod amounts;
mod ending;
pub mod rows;

pub use ending::{RequestCheck, check, disable_operator};
use serde::{Deserialize, Serialize};

use super::{ExplainedDifference, OperatorDecision, OperatorResult, declined};
use crate::audit::{self, Action, Fact};
use crate::chains::address::ChainAddress;
use crate::kernel::id::kind;
use crate::kernel::{
    AnyId, DecidedBy, Id, Money, Now, ObjectKind, OperationError, Role, Scope, StoreError,
};
use crate::pauses::Operation;
use crate::reconcile::explaining::amount_of;
use crate::screening::Screening;
use crate::screening::hit::HitDecision;
use crate::services::{Services, Settings};
use crate::store::Tx;
use crate::{decisions, keys, payouts, screening, senders, staff};

/// For how long a request can be approved, in seconds. Later its reason may no longer hold.
pub const REQUEST_SECONDS_MAX: i64 = 7 * 86_400;

crate::string_enum!(
    /// Why a second person is needed.
    Cause {
        Amount "amount",
        RefundAddress "refund_address",
        ConfirmedHit "confirmed_hit",
        Resume "resume",
    }
);

crate::string_enum!(
    /// What became of a request. `Expired`: nobody decided about it in time. `Outdated`: what it is
    /// about no longer takes the decision, or the operator who asked for it was disabled.
    RequestStatus {
        Pending "pending",
        Approved "approved",
        Rejected "rejected",
        Expired "expired",
        Outdated "outdated",
    }
);

/// A decision that may need a second person, with everything needed to carry it out.
#[derive(Clone, Debug)]
pub enum RequestedAction {
    Decide(AnyId, OperatorDecision),
    RefundAddress(Id<kind::Refund>, ChainAddress),
    ReleaseRefund(Id<kind::Refund>),
    RefundSent { id: Id<kind::Refund>, transaction_hash: String, is_batch: bool },
    Explain(ExplainedDifference),
    Resume { operation: Operation, account: Option<String> },
    ResumeAccount { account: String },
}

/// A [`RequestedAction`] as the store keeps it, in JSON.
#[derive(Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", deny_unknown_fields)]
enum Stored {
    Decide { id: String, decision: String, argument: Option<String> },
    RefundAddress { id: String, to: String },
    ReleaseRefund { id: String },
    RefundSent { id: String, transaction_hash: String, is_batch: bool },
    Explain { difference: String, payouts: Vec<String>, kind: Option<String> },
    Resume { operation: String, account: Option<String> },
    ResumeAccount { account: String },
}

impl RequestedAction {
    /// What the action is about, as the record of decisions names it: an object's identifier, a
    /// pause, an account, or a difference by the name that `hundi reconcile` shows.
    pub fn subject(&self) -> String {
        match self {
            RequestedAction::Decide(id, _) => id.to_string(),
            RequestedAction::RefundAddress(id, _)
            | RequestedAction::ReleaseRefund(id)
            | RequestedAction::RefundSent { id, .. } => id.to_string(),
            RequestedAction::Explain(asked) => asked.what.clone(),
            RequestedAction::Resume { operation, account } => {
                super::pause_subject(*operation, account)
            }
            RequestedAction::ResumeAccount { account } => super::account_subject(account),
        }
    }

    /// The decision as one word of the command line.
    pub const fn word(&self) -> &'static str {
        match self {
            RequestedAction::Decide(_, decision) => decision.word(),
            RequestedAction::RefundAddress(..) => "address",
            RequestedAction::ReleaseRefund(_) => "release",
            RequestedAction::RefundSent { .. } => "complete",
            RequestedAction::Explain(_) => "accept",
            RequestedAction::Resume { .. } | RequestedAction::ResumeAccount { .. } => "resume",
        }
    }

    fn stored(&self) -> Result<String, OperationError> {
        let stored = match self {
            RequestedAction::Decide(id, decision) => {
                let argument = match decision {
                    OperatorDecision::Refund(to) => to.as_ref().map(ChainAddress::to_string),
                    OperatorDecision::Settle(reference) => Some(reference.clone()),
                    OperatorDecision::Check(_) => {
                        return Err(declined(*id, "this needs no second person"));
                    }
                    _ => None,
                };
                Stored::Decide {
                    id: id.to_string(),
                    decision: decision.word().to_owned(),
                    argument,
                }
            }
            RequestedAction::RefundAddress(id, to) => {
                Stored::RefundAddress { id: id.to_string(), to: to.to_string() }
            }
            RequestedAction::ReleaseRefund(id) => Stored::ReleaseRefund { id: id.to_string() },
            RequestedAction::RefundSent { id, transaction_hash, is_batch } => Stored::RefundSent {
                id: id.to_string(),
                transaction_hash: transaction_hash.clone(),
                is_batch: *is_batch,
            },
            RequestedAction::Explain(asked) => Stored::Explain {
                difference: asked.what.clone(),
                payouts: asked.payouts.iter().map(Id::to_string).collect(),
                kind: asked.kind.clone(),
            },
            RequestedAction::Resume { operation, account } => Stored::Resume {
                operation: operation.as_str().to_owned(),
                account: account.clone(),
            },
            RequestedAction::ResumeAccount { account } => {
                Stored::ResumeAccount { account: account.clone() }
            }
        };
        let text = serde_json::to_string(&stored);
        Ok(text.map_err(|error| StoreError::Broken(format!("a request: {error}")))?)
    }

    fn read(text: &str) -> Option<RequestedAction> {
        Some(match serde_json::from_str(text).ok()? {
            Stored::Decide { id, decision, argument } => {
                let decision = match decision.as_str() {
                    "approve" => OperatorDecision::Approve,
                    "refuse" => OperatorDecision::Refuse,
                    "review" => OperatorDecision::Review,
                    "refund" => OperatorDecision::Refund(match argument {
                        Some(to) => Some(ChainAddress::parse(&to).ok()?),
                        None => None,
                    }),
                    "settle" => OperatorDecision::Settle(argument?),
                    "fail" => OperatorDecision::Fail,
                    "resend" => OperatorDecision::Resend,
                    "return" => OperatorDecision::Return,
                    _ => return None,
                };
                RequestedAction::Decide(AnyId::parse(&id)?, decision)
            }
            Stored::RefundAddress { id, to } => {
                RequestedAction::RefundAddress(Id::parse(&id)?, ChainAddress::parse(&to).ok()?)
            }
            Stored::ReleaseRefund { id } => RequestedAction::ReleaseRefund(Id::parse(&id)?),
            Stored::RefundSent { id, transaction_hash, is_batch } => {
                RequestedAction::RefundSent { id: Id::parse(&id)?, transaction_hash, is_batch }
            }
            Stored::Explain { difference, payouts, kind } => {
                let payouts = payouts.iter().map(|id| Id::parse(id)).collect::<Option<_>>()?;
                RequestedAction::Explain(ExplainedDifference { what: difference, payouts, kind })
            }
            Stored::Resume { operation, account } => {
                RequestedAction::Resume { operation: Operation::parse(&operation)?, account }
            }
            Stored::ResumeAccount { account } => RequestedAction::ResumeAccount { account },
        })
    }
}

/// A request as it is kept.
#[derive(Clone, Debug)]
pub struct ApprovalRequest {
    pub number: i64,
    pub subject: String,
    pub word: String,
    pub cause: Cause,
    pub status: RequestStatus,
    /// The number of the operator who asked for it.
    pub requested_by: i64,
    /// The name of that operator.
    pub requester: String,
    pub reason: String,
    /// Unix seconds of the store's clock.
    pub requested_at: i64,
    /// The name of the person who approved or rejected it.
    pub decider: Option<String>,
    /// Unix seconds of the store's clock.
    pub decided_at: Option<i64>,
    /// The action, as `RequestedAction::stored` writes it.
    asked: String,
}

impl ApprovalRequest {
    /// The argument of the decision: the address, the bank's reference, the transaction's hash, or
    /// the payouts that a line of the bank's statement belongs to.
    pub fn argument(&self) -> Option<String> {
        match RequestedAction::read(&self.asked)? {
            RequestedAction::Decide(_, OperatorDecision::Refund(to)) => to.map(|to| to.to_string()),
            RequestedAction::Decide(_, OperatorDecision::Settle(reference)) => Some(reference),
            RequestedAction::RefundAddress(_, to) => Some(to.to_string()),
            RequestedAction::RefundSent { transaction_hash, .. } => Some(transaction_hash),
            RequestedAction::Explain(asked) if !asked.payouts.is_empty() => {
                let payouts: Vec<String> = asked.payouts.iter().map(Id::to_string).collect();
                Some(payouts.join(", "))
            }
            _ => None,
        }
    }
    /// The object that the subject names; `None` if the subject is another text, such as a pause,
    /// an account or a statement. A statement's line and a difference with a chain have identifiers
    /// of [`ObjectKind::Request`], but are no objects.
    pub fn object(&self) -> Option<AnyId> {
        AnyId::parse(&self.subject).filter(|id| id.kind != ObjectKind::Request)
    }
}

/// If a decision needs a second person and none has approved it, stores it as a request and returns
/// the text for the operator. `None` means that the caller carries the decision out. Declined if
/// the person has not proven who they are or may not decide, or if another request about the same
/// subject waits.
pub(super) fn keep_for_second_person(
    tx: &mut dyn Tx,
    now: &Now,
    settings: &Settings,
    scope: Option<Scope>,
    asked: &RequestedAction,
    by: &DecidedBy,
) -> Result<Option<String>, OperationError> {
    let Some(above) = settings.four_eyes_above else { return Ok(None) };
    let Some(cause) = cause(tx, above, scope, asked)? else { return Ok(None) };
    if !by.approved_by().is_empty() {
        return Ok(None);
    }
    let subject = asked.subject();
    let Some(requested_by) = by.operator() else {
        return Err(OperationError::Declined(format!(
            "{subject}: this needs two persons who prove who they are: ask for it in the console, \
             or on a command line with the password of --actor"
        )));
    };
    if !may(tx, requested_by, Role::Operator)? {
        return Err(OperationError::Declined(format!("{subject}: this operator may not decide")));
    }
    // Locks the audit log's tail, so that no other transaction takes the same number.
    audit::rows::lock_tail(tx)?;
    let open = rows::pending_about(tx, &subject)?;
    if let Some(open) = &open
        && now.instant() >= open.requested_at + REQUEST_SECONDS_MAX
    {
        ending::end(tx, now, open, RequestStatus::Expired, "it is too old")?;
    } else if let Some(open) = open {
        return Err(OperationError::Declined(format!(
            "{subject}: {} by {} waits for a second person already: request {}",
            open.word, open.requester, open.number
        )));
    }
    let request = ApprovalRequest {
        number: rows::last_number(tx)? + 1,
        word: asked.word().to_owned(),
        cause,
        status: RequestStatus::Pending,
        requested_by,
        requester: by.actor().to_owned(),
        reason: by.reason().to_owned(),
        requested_at: now.instant(),
        decider: None,
        decided_at: None,
        asked: asked.stored()?,
        subject,
    };
    rows::insert(tx, &request)?;
    let number = request.number.to_string();
    let details = [
        ("request", number.as_str()),
        ("decision", request.word.as_str()),
        ("cause", cause.as_str()),
        ("reason", by.reason()),
    ];
    audit::append(tx, now, &Fact::by(by, Action::DecisionRequested, &request.subject, &details))?;
    Ok(Some(format!("{}: {} {WAITS} {number}", request.subject, request.word)))
}

/// Whether the answer about a decision says that the decision waits for a second person.
pub fn is_waiting(outcome: &str) -> bool {
    outcome.contains(WAITS)
}

/// Every answer about a decision that waits contains these words, and no other answer does.
const WAITS: &str = "waits for a second person: request";

/// Whether an operator has at least this role and is not disabled.
fn may(tx: &mut dyn Tx, number: i64, least: Role) -> Result<bool, StoreError> {
    let operator = staff::rows::find(tx, number)?.filter(|operator| !operator.is_disabled);
    Ok(operator.is_some_and(|operator| operator.identity.role.includes(least)))
}

/// Why an action needs a second person; `None` if it needs none.
fn cause(
    tx: &mut dyn Tx,
    above: Money,
    scope: Option<Scope>,
    asked: &RequestedAction,
) -> Result<Option<Cause>, StoreError> {
    let (id, decision) = match asked {
        RequestedAction::Resume { .. } | RequestedAction::ResumeAccount { .. } => {
            return Ok(Some(Cause::Resume));
        }
        RequestedAction::RefundAddress(..) => return Ok(Some(Cause::RefundAddress)),
        RequestedAction::Explain(asked) => {
            let amount = amount_of(tx, &asked.what, asked.kind.as_deref())?;
            return amounts::cause(tx, above, amount);
        }
        RequestedAction::ReleaseRefund(id) | RequestedAction::RefundSent { id, .. } => {
            (id.any(), None)
        }
        RequestedAction::Decide(id, decision) => (*id, Some(decision)),
    };
    let Some(scope) = scope else { return Ok(None) };
    match decision {
        // A review only stops something. The answer of a look-up needs no second person, so a check
        // by hand, which takes its place, needs none either.
        Some(OperatorDecision::Review | OperatorDecision::Check(_)) => return Ok(None),
        Some(OperatorDecision::Refuse) if id.kind == ObjectKind::Beneficiary => return Ok(None),
        Some(OperatorDecision::Refund(Some(_))) => return Ok(Some(Cause::RefundAddress)),
        Some(OperatorDecision::Approve) if is_confirmed(tx, scope, id)? => {
            return Ok(Some(Cause::ConfirmedHit));
        }
        _ => {}
    }
    let amount = amounts::moved(tx, scope, id)?;
    amounts::cause(tx, above, amount)
}

/// Whether this object has a confirmed match that nobody has decided about, or a hit that an
/// operator refused. For a payout the hits of its transfer count, because an approval of the payout
/// clears them. For a sender, its own `screening` counts too.
fn is_confirmed(tx: &mut dyn Tx, scope: Scope, id: AnyId) -> Result<bool, StoreError> {
    let is_confirmed = |row: &screening::hit::HitRow| match row.decision {
        None => row.screening == Screening::ConfirmedMatch,
        Some(decision) => decision == HitDecision::Refused,
    };
    let payout = match (id.kind, id.typed()) {
        (ObjectKind::Payout, Some(id)) => payouts::rows::find(tx, scope, id)?,
        _ => None,
    };
    let subject = payout.map_or(id, |payout| payout.transfer_id.any());
    if screening::rows::of_subject(tx, scope, subject)?.iter().any(is_confirmed) {
        return Ok(true);
    }
    let sender = match (id.kind, id.typed()) {
        (ObjectKind::Sender, Some(id)) => senders::rows::find(tx, scope, id)?,
        _ => None,
    };
    Ok(sender.is_some_and(|sender| sender.screening == Screening::ConfirmedMatch))
}

/// Checks the requester and the approver of a decision that cannot wait as a request. Declined
/// unless both have proven who they are, are two persons, and may decide and approve. Returns the
/// requester, with the approver's name.
pub fn require_two(
    tx: &mut dyn Tx,
    first: &DecidedBy,
    second: &DecidedBy,
) -> Result<DecidedBy, OperationError> {
    let no = |text: &str| Err(OperationError::Declined(text.to_owned()));
    let (Some(one), Some(other)) = (first.operator(), second.operator()) else {
        return no("both persons have to prove who they are");
    };
    if one == other {
        return no("--approver NAME must name another person than --actor NAME");
    }
    if !may(tx, one, Role::Operator)? {
        return no("--actor NAME must name an operator who may decide");
    }
    if !may(tx, other, Role::Approver)? {
        return no("--approver NAME must name an approver");
    }
    Ok(first.clone().approved(second.actor()))
}

/// Ends a pending request, in the name of an approver who is not disabled. Returns the request and
/// the approver's name. The row stays locked until the commit. Declined if the person is no
/// approver, if there is no such request, or if it is no longer pending.
fn close(
    tx: &mut dyn Tx,
    now: &Now,
    number: i64,
    person: i64,
    status: RequestStatus,
) -> Result<(ApprovalRequest, String), OperationError> {
    let no = |text: &str| OperationError::Declined(format!("request {number}: {text}"));
    let name = match staff::rows::find(tx, person)?.filter(|operator| !operator.is_disabled) {
        Some(operator) if operator.identity.role.includes(Role::Approver) => operator.identity.name,
        _ => return Err(no("only an approver decides about it")),
    };
    let is_taken = rows::close(tx, number, status, Some(&name), now.instant())?;
    let request = rows::find(tx, number)?.ok_or_else(|| no("there is none"))?;
    if !is_taken {
        let status = request.status.as_str();
        return Err(no(&match request.decider {
            Some(decider) => format!("{decider} {status} it already"),
            None => format!("it is {status} already"),
        }));
    }
    Ok((request, name))
}

/// Approves a request and carries it out, with the requester's reason. Declined if `close`
/// declines, if the person is the requester, if the request is older than [`REQUEST_SECONDS_MAX`],
/// or if the requester may no longer decide.
pub fn approve(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    number: i64,
    person: &DecidedBy,
) -> OperatorResult {
    let no = |text: &str| OperationError::Declined(format!("request {number}: {text}"));
    let Some(person_number) = person.operator() else {
        return Err(no("the approver has to prove who they are"));
    };
    let (request, name) = close(tx, now, number, person_number, RequestStatus::Approved)?;
    if request.requested_by == person_number {
        return Err(no("who asked for it cannot approve it"));
    }
    if now.instant() >= request.requested_at + REQUEST_SECONDS_MAX {
        return Err(no("it is too old: reject it, and ask anew"));
    }
    if !may(tx, request.requested_by, Role::Operator)? {
        return Err(no("who asked for it may no longer decide: reject it"));
    }
    ending::carry_out(tx, now, services, &request, &name, person.via())
}

/// Ends a request without carrying it out. Approvers and the requester may do that.
pub fn reject(tx: &mut dyn Tx, now: &Now, number: i64, person: &DecidedBy) -> OperatorResult {
    let no = |text: &str| OperationError::Declined(format!("request {number}: {text}"));
    let Some(person_number) = person.operator() else {
        return Err(no("the person who rejects it has to prove who they are"));
    };
    decisions::require_operator(tx, person, Role::Operator)?;
    let is_own = rows::find(tx, number)?.is_some_and(|found| found.requested_by == person_number);
    let request = if is_own {
        if !rows::close(tx, number, RequestStatus::Rejected, Some(person.actor()), now.instant())? {
            return Err(no("it was decided already"));
        }
        rows::find(tx, number)?.ok_or_else(|| no("there is none"))?
    } else {
        close(tx, now, number, person_number, RequestStatus::Rejected)?.0
    };
    let number_text = number.to_string();
    let details = [("request", number_text.as_str()), ("reason", person.reason())];
    let fact = Fact::by(person, Action::DecisionRejected, &request.subject, &details);
    audit::append(tx, now, &fact)?;
    Ok(format!("request {number} about {} is rejected", request.subject))
}

/// The number of the account with this name; `None` without a name. Declined if there is no such
/// account.
pub fn number_of_account(
    tx: &mut dyn Tx,
    name: Option<&str>,
) -> Result<Option<i64>, OperationError> {
    let Some(name) = name else { return Ok(None) };
    let accounts = keys::rows::accounts(tx)?;
    let found = (1..).zip(&accounts).find(|(_, (known, _))| known == name);
    found.map(|(number, _)| Some(number)).ok_or_else(|| {
        OperationError::Declined(format!(
            "there is no account {name:?}: `hundi accounts list` shows them"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_identifier_of_an_object_names_an_object() {
        let object_of = |subject: &str| {
            let request = ApprovalRequest {
                number: 1,
                subject: subject.to_owned(),
                word: String::new(),
                cause: Cause::Amount,
                status: RequestStatus::Pending,
                requested_by: 1,
                requester: String::new(),
                reason: String::new(),
                requested_at: 0,
                decider: None,
                decided_at: None,
                asked: String::new(),
            };
            request.object()
        };
        let refund = AnyId { kind: ObjectKind::Refund, value: 7 };
        assert_eq!(object_of(&refund.to_string()), Some(refund));
        let line = AnyId { kind: ObjectKind::Request, value: 7 };
        assert_eq!(object_of(&line.to_string()), None, "a statement's line");
        assert_eq!(object_of("payouts"), None);
    }
}
