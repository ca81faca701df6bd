//! What the operator decided, about what, by whom and why. Each row is written in the transaction
//! that carries the decision out, and is never changed.

pub mod rows;

use crate::audit::{self, Action, Fact};
use crate::kernel::{AnyId, DecidedBy, InternalId, Mode, Now, OperationError, Via};
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
pub fn require(by: &DecidedBy, mode: Mode) -> Result<(), OperationError> {
    by.missing(mode).map_or(Ok(()), |missing| Err(OperationError::Declined(missing.to_owned())))
}

/// Once there are operators, refuses a decision from the command line whose actor is not the name
/// of an operator who may decide.
fn require_operator(tx: &mut dyn Tx, by: &DecidedBy) -> Result<(), OperationError> {
    if by.via() != Via::Shell || !rows::is_any_operator(tx)? {
        return Ok(());
    }
    if rows::may_decide(tx, by.actor())? {
        return Ok(());
    }
    Err(OperationError::Declined(
        "say who decides: --actor NAME must name an operator who may decide, and \
         `hundi operators list` shows them"
            .into(),
    ))
}

/// Stores a decision in its table and in the audit log.
pub fn record(
    tx: &mut dyn Tx,
    now: &mut Now,
    subject: &str,
    decision: &str,
    by: &DecidedBy,
) -> Result<(), OperationError> {
    require_operator(tx, by)?;
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
    Ok(audit::append(tx, now, &Fact::by(by, Action::Decision, subject, &details))?)
}
