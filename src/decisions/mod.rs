//! What the operator decided, about what, who did and why. Each row is written in the transaction
//! that carries the decision out, and is never changed.

pub mod rows;

use crate::kernel::id::kind;
use crate::kernel::{AnyId, DecidedBy, Id, Mode, Now, OperationError, StoreError};
use crate::store::{Signal, Tx};

/// A decision as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub id: Id<kind::Request>,
    /// The object's ID, or what else it is about, such as a transaction's hash.
    pub subject: String,
    /// What was decided, in one word of the command line.
    pub decision: String,
    pub by: DecidedBy,
    /// Unix seconds.
    pub decided_at: i64,
}

/// Refuses a decision that does not say who decides and why, where the mode needs it.
pub fn require(by: &DecidedBy, mode: Mode) -> Result<(), OperationError> {
    by.missing(mode).map_or(Ok(()), |missing| Err(OperationError::Declined(missing.to_owned())))
}

/// Keeps a decision.
pub fn record(
    tx: &mut dyn Tx,
    now: &mut Now,
    subject: &str,
    decision: &str,
    by: &DecidedBy,
) -> Result<(), StoreError> {
    let row = Decision {
        id: now.mint(),
        subject: subject.to_owned(),
        decision: decision.to_owned(),
        by: by.clone(),
        decided_at: now.instant(),
    };
    rows::insert(tx, &row)?;
    tx.signal(Signal::Decided { id: AnyId::parse(subject), decision: row.id });
    Ok(())
}
