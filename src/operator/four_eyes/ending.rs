//! Carries a request out, and ends one that nobody can approve any more.

use super::{ApprovalRequest, REQUEST_SECONDS_MAX, RequestStatus, RequestedAction, may, rows};
use crate::audit::{self, Action, Fact};
use crate::kernel::{DecidedBy, Now, OperationError, Role, StoreError, Via};
use crate::operator::{self, OperatorResult};
use crate::services::Services;
use crate::staff;
use crate::store::Tx;

/// Carries out what a request asks for, in the name of its requester and of `approver`.
pub(super) fn carry_out(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    request: &ApprovalRequest,
    approver: &str,
    via: Via,
) -> OperatorResult {
    let by = DecidedBy::new(&request.requester, &request.reason)
        .map_err(StoreError::Broken)?
        .proven(request.requested_by, via)
        .approved(approver);
    let asked = RequestedAction::read(&request.asked).ok_or_else(|| {
        let text = format!("request {}: this version cannot read it", request.number);
        OperationError::Declined(text)
    })?;
    match asked {
        RequestedAction::Decide(id, decision) => {
            operator::decide(tx, now, services, id, &decision, &by)
        }
        RequestedAction::RefundAddress(id, to) => {
            operator::set_refund_address(tx, now, services, id, to, &by)
        }
        RequestedAction::ReleaseRefund(id) => operator::release_refund(tx, now, services, id, &by),
        RequestedAction::RefundSent { id, transaction_hash, is_batch } => {
            operator::mark_refund_sent(tx, now, services, id, &transaction_hash, is_batch, &by)
        }
        RequestedAction::Explain(asked) => {
            operator::explain(tx, now, &services.settings, &asked, &by)
        }
        RequestedAction::Resume { operation, account } => {
            operator::resume(tx, now, &services.settings, operation, account, &by)
        }
        RequestedAction::ResumeAccount { account } => {
            operator::resume_account(tx, now, &services.settings, &account, &by)
        }
    }
}

/// What a check did with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestCheck {
    /// Nothing: the request still waits, or it had ended before.
    Unchanged,
    /// It would be declined now.
    Declined,
    /// This check ended it.
    Ended,
}

/// Ends a pending request that is too old, whose requester may no longer decide, or that would be
/// declined because what it is about has changed. To find that out, it carries the request out and
/// undoes that. Some objects decline a decision only for a moment, such as a payout that is being
/// written for the bank. So a request that would be declined is ended only if `was_declined` says
/// that an earlier check found the same. The audit log keeps why.
pub fn check(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    number: i64,
    was_declined: bool,
) -> Result<RequestCheck, OperationError> {
    let found = rows::find(tx, number)?;
    let Some(request) = found.filter(|found| found.status == RequestStatus::Pending) else {
        return Ok(RequestCheck::Unchanged);
    };
    if now.instant() >= request.requested_at + REQUEST_SECONDS_MAX {
        end(tx, now, &request, RequestStatus::Expired, "it is too old")?;
        return Ok(RequestCheck::Ended);
    }
    // `disable_operator` ends requests too. But it misses a request that is made at the same
    // moment. And an earlier version of the service disabled operators without ending their
    // requests.
    if !may(tx, request.requested_by, Role::Operator)? {
        end(tx, now, &request, RequestStatus::Outdated, REQUESTER_DISABLED)?;
        return Ok(RequestCheck::Ended);
    }
    tx.savepoint()?;
    let outcome = match carry_out(tx, now, services, &request, "nobody", Via::Service) {
        Err(OperationError::Store(error)) => return Err(error.into()),
        outcome => outcome,
    };
    tx.rollback_and_release()?;
    let Err(declined) = outcome else { return Ok(RequestCheck::Unchanged) };
    if !was_declined {
        return Ok(RequestCheck::Declined);
    }
    end(tx, now, &request, RequestStatus::Outdated, &declined.to_string())?;
    Ok(RequestCheck::Ended)
}

const REQUESTER_DISABLED: &str = "who asked for it is disabled";

/// Disables an operator, and ends the operator's requests that wait for a second person. Returns
/// how many requests there were.
pub fn disable_operator(
    tx: &mut dyn Tx,
    now: &Now,
    name: &str,
    by: &DecidedBy,
) -> Result<usize, OperationError> {
    staff::disable(tx, now, name, by)?;
    let number = staff::named(tx, name)?.identity.number;
    let requests = rows::pending_of(tx, number)?;
    let who = (by.actor(), by.via());
    for request in &requests {
        end_as(tx, now, request, RequestStatus::Outdated, REQUESTER_DISABLED, who)?;
    }
    Ok(requests.len())
}

/// Ends a pending request in the name of the service, and says why in the audit log.
pub(super) fn end(
    tx: &mut dyn Tx,
    now: &Now,
    request: &ApprovalRequest,
    status: RequestStatus,
    reason: &str,
) -> Result<(), StoreError> {
    end_as(tx, now, request, status, reason, ("", Via::Service))
}

/// Like [`end`], in the name of `actor`.
fn end_as(
    tx: &mut dyn Tx,
    now: &Now,
    request: &ApprovalRequest,
    status: RequestStatus,
    reason: &str,
    (actor, via): (&str, Via),
) -> Result<(), StoreError> {
    if !rows::close(tx, request.number, status, None, now.instant())? {
        return Ok(());
    }
    let number = request.number.to_string();
    let details = [
        ("request", number.as_str()),
        ("decision", request.word.as_str()),
        ("status", status.as_str()),
        ("reason", reason),
    ];
    let action = Action::DecisionEnded;
    let fact = Fact { actor, via, action, subject: &request.subject, details: &details };
    audit::append(tx, now, &fact)
}
