//! The decisions that only the operator makes: what was decided, about what, who decided and why.
//! Rows are never changed. A row is written in the transaction that carries the decision out. Only
//! the rows of two decisions have a transaction of their own. `credit` is written before the
//! chain's nodes are asked, because nothing may be credited without a decision. `resume` of a
//! database is written once the database takes writes again.

pub mod rows;

use crate::audit::{self, Action, Fact};
use crate::kernel::{AnyId, DecidedBy, InternalId, Mode, Now, OperationError, Role, Via};
use crate::store::{Signal, Tx};

/// A decision as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub id: InternalId,
    /// The object's ID, or what else it is about, such as a transaction's hash.
    pub subject: String,
    /// What was decided, in one word, such as `release`.
    pub decision: String,
    pub by: DecidedBy,
    /// Unix seconds.
    pub decided_at: i64,
}

/// Refuses a decision that does not say who decides and why, where the mode needs it.
pub fn require_actor_and_reason(by: &DecidedBy, mode: Mode) -> Result<(), OperationError> {
    by.missing(mode).map_or(Ok(()), |missing| Err(OperationError::Declined(missing.to_owned())))
}

/// Refuses a command line that gives no reason, or does not name an operator with at least the role
/// `least`. Refuses nothing before somebody was created with `hundi operators create`. `least` is
/// [`Role::Admin`] for managing operators and keys. While every administrator is disabled or there
/// is none, any name will do for that: otherwise nobody could create an administrator.
pub fn require_operator(
    tx: &mut dyn Tx,
    by: &DecidedBy,
    least: Role,
) -> Result<(), OperationError> {
    if by.via() != Via::Shell || !rows::is_any_operator(tx)? {
        return Ok(());
    }
    let declined = |text: &str| Err(OperationError::Declined(text.to_owned()));
    if !by.has_actor_and_reason() {
        return declined(
            "say who decides and why: once there are operators, this needs --actor NAME and \
             --reason TEXT",
        );
    }
    let role = rows::role_of(tx, by.actor())?;
    if role.is_some_and(|role| role.includes(least)) {
        return Ok(());
    }
    match least {
        Role::Admin if rows::is_any_admin(tx)? => declined(
            "say who decides: --actor NAME must name an administrator, and `hundi operators list` \
             shows them",
        ),
        Role::Admin => Ok(()),
        _ => declined(
            "say who decides: --actor NAME must name an operator who may decide, and `hundi \
             operators list` shows them",
        ),
    }
}

/// Stores a decision in its table and in the audit log. If a second person approved it, the
/// approval is a second entry in the log. Refuses as [`require_operator`] does.
pub fn record(
    tx: &mut dyn Tx,
    now: &mut Now,
    subject: &str,
    decision: &str,
    by: &DecidedBy,
) -> Result<(), OperationError> {
    require_operator(tx, by, Role::Operator)?;
    let row = Decision {
        id: now.mint(),
        subject: subject.to_owned(),
        decision: decision.to_owned(),
        by: by.clone(),
        decided_at: now.instant(),
    };
    rows::insert(tx, &row)?;
    tx.signal(Signal::Decided { id: AnyId::parse(subject), decision: row.id });
    let mut details = vec![("decision", decision), ("reason", by.reason())];
    if !by.approved_by().is_empty() {
        details.push(("approved_by", by.approved_by()));
    }
    audit::append(tx, now, &Fact::by(by, Action::Decision, subject, &details))?;
    if !by.approved_by().is_empty() {
        let details = [("decision", decision), ("requested_by", by.actor())];
        let approval = Fact {
            actor: by.approved_by(),
            via: by.via(),
            action: Action::DecisionApproved,
            subject,
            details: &details,
        };
        audit::append(tx, now, &approval)?;
    }
    Ok(())
}
