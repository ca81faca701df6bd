//! Records that the operator has explained a difference between the book and the bank's statements
//! or a chain.

use super::four_eyes::{RequestedAction, keep_for_second_person};
use super::{OperatorResult, declined_about};
use crate::decisions;
use crate::kernel::id::kind;
use crate::kernel::{DecidedBy, Id, InternalId, Now, OperationError, Role};
use crate::reconcile::explaining::{ExplanationOutcome, explain_by_id, explain_by_subject};
use crate::services::Settings;
use crate::store::Tx;

/// Which difference the operator explains, and the payouts that explain it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedDifference {
    /// The identifier of a statement's line or of a difference with a chain. Any other difference
    /// is named by its subject: the payout, the statement or the account that differs.
    pub what: String,
    /// The payouts that the line belongs to.
    pub payouts: Vec<Id<kind::Payout>>,
    /// The kind, if the subject has several differences.
    pub kind: Option<String>,
}

/// Records a difference as explained. Finds it by its identifier, or otherwise by its subject.
pub fn explain(
    tx: &mut dyn Tx,
    now: &mut Now,
    settings: &Settings,
    asked: &ExplainedDifference,
    by: &DecidedBy,
) -> OperatorResult {
    let what = asked.what.as_str();
    let note = by.reason();
    decisions::require_operator(tx, by, Role::Operator)?;
    // A line or a difference with a chain is named by its identifier, whatever the kind, and needs
    // no reason. Any other difference needs a reason.
    let id = InternalId::parse(what);
    if id.is_none() && note.is_empty() {
        let text = "say why the difference is right: --reason TEXT";
        return Err(OperationError::Declined(text.into()));
    }
    let request = RequestedAction::Explain(asked.clone());
    if let Some(waits) = keep_for_second_person(tx, now, settings, None, &request, by)? {
        return Ok(waits);
    }
    if let Some(id) = id {
        let kept = Some(note).filter(|note| !note.is_empty());
        let outcome = explain_by_id(tx, now, id, &asked.payouts, kept)?;
        if outcome != ExplanationOutcome::Recorded {
            return Err(declined_about(what, outcome));
        }
        decisions::record(tx, now, what, "accept", by)?;
        return Ok(format!("accepted {what}"));
    }
    match explain_by_subject(tx, now, what, asked.kind.as_deref(), note)?.as_slice() {
        [] => Err(OperationError::Declined(format!(
            "{what:?} is no line and no difference: `hundi reconcile` shows them"
        ))),
        [kind] => {
            decisions::record(tx, now, what, "accept", by)?;
            Ok(format!("closed {} of {what}", kind.as_str()))
        }
        several => {
            let kinds: Vec<&str> = several.iter().map(|kind| kind.as_str()).collect();
            Err(OperationError::Declined(format!(
                "{what} has several differences: add --kind {}",
                kinds.join(" or ")
            )))
        }
    }
}
