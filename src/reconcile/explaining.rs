//! Records the operator's explanation of what `hundi reconcile` shows. The command's flag for it is
//! `--accept`. Three kinds of things can be explained:
//!
//! - A line of a bank's statement that waits. Its identifier is an [`InternalId`] (shown as
//!   `request_…`). It belongs to one payout, to several or to none. If it belongs to one, its row
//!   then names the payout; otherwise the row gets a time in `accepted_at` ([`explain_by_id`]).
//! - A difference with a chain, which is a row with such an identifier. It gets a time in
//!   `accepted_at` ([`explain_by_id`]).
//! - A difference of a payout, a statement or an account. It has no row: each comparison finds it
//!   anew. Its explanation is a row of `bank_closed_differences`, and hides the difference while
//!   the amount stays the same ([`explain_by_subject`]).

use std::fmt;

use super::{Difference, DifferenceKind, chain};
use crate::kernel::id::kind;
use crate::kernel::{Currency, Id, InternalId, Money, Now, StoreError};
use crate::rails::files::reports::Sign;
use crate::rails::files::rows as journal;
use crate::store::Tx;

/// What became of an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplanationOutcome {
    Recorded,
    /// No line with this identifier waits to be explained, and if no payouts were named, no
    /// difference with a chain either.
    NotOpen,
    /// The journal has no instruction for this payout.
    NeverGiven(Id<kind::Payout>),
    /// The line's amount, and the sum of the payouts'.
    AmountsDiffer(Money, Money),
    /// Several payouts were named, but the line is a credit.
    LineIsCredit,
}

impl fmt::Display for ExplanationOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExplanationOutcome::Recorded => f.write_str("the explanation was recorded"),
            ExplanationOutcome::NotOpen => f.write_str(
                "no line or difference with this ID waits to be explained: `hundi reconcile` shows \
                 those that do",
            ),
            ExplanationOutcome::NeverGiven(payout) => {
                write!(f, "{payout} was never given to the bank, so no line can be its payment")
            }
            ExplanationOutcome::AmountsDiffer(line, payouts) => write!(
                f,
                "the line's amount is {line} INR, and the payouts that you named add up to \
                 {payouts} INR: name payouts that add up to the line's amount"
            ),
            ExplanationOutcome::LineIsCredit => f.write_str(
                "this line is a credit, and only a debit can belong to several payouts: explain it \
                 without naming them",
            ),
        }
    }
}

/// The amount of the difference that `what` names: the identifier of a line or of a difference with
/// a chain, or a subject. The amount of a line has no sign. `kind` chooses among the differences of
/// a subject. `None` if there is no such difference, or several.
pub fn amount_of(
    tx: &mut dyn Tx,
    what: &str,
    kind: Option<&str>,
) -> Result<Option<Money>, StoreError> {
    if let Some(id) = InternalId::parse(what) {
        if let Some(line) = journal::find_unmatched(tx, id)? {
            return Ok(Some(Money::new(line.units, Currency::Inr)));
        }
        let units = chain::rows::open_units(tx, id)?;
        return Ok(units.map(|units| Money::new(units, Currency::Usdt)));
    }
    Ok(match differences_of(tx, what, kind)?.as_slice() {
        [difference] => Some(difference.amount),
        _ => None,
    })
}

/// The differences of a subject, of one kind or of all.
fn differences_of(
    tx: &mut dyn Tx,
    subject: &str,
    kind: Option<&str>,
) -> Result<Vec<Difference>, StoreError> {
    let mut found = super::about(tx, subject)?;
    found.retain(|difference| kind.is_none_or(|kind| kind == difference.kind.as_str()));
    Ok(found)
}

/// Explains the line `id` as the payment or return of `payouts`. Without payouts, explains a line
/// that belongs to none, or a difference with a chain. `note` is stored only in the row of a line
/// that belongs to no payout. The caller records a decision, which has the note in every case.
pub fn explain_by_id(
    tx: &mut dyn Tx,
    now: &mut Now,
    id: InternalId,
    payouts: &[Id<kind::Payout>],
    note: Option<&str>,
) -> Result<ExplanationOutcome, StoreError> {
    let outcome_of = |is_recorded| match is_recorded {
        true => ExplanationOutcome::Recorded,
        false => ExplanationOutcome::NotOpen,
    };
    if payouts.is_empty() {
        let is_recorded =
            journal::explain_line(tx, now, id, note)? || chain::rows::explain(tx, now, id)?;
        return Ok(outcome_of(is_recorded));
    }
    let Some(line) = journal::find_unmatched(tx, id)? else {
        return Ok(ExplanationOutcome::NotOpen);
    };
    let mut found: Vec<journal::Journalled> = Vec::new();
    for payout in payouts {
        let Some(one) = journal::find(tx, *payout)? else {
            return Ok(ExplanationOutcome::NeverGiven(*payout));
        };
        if !found.iter().any(|other| other.payout_id == one.payout_id) {
            found.push(one);
        }
    }
    if found.len() > 1 && line.sign == Sign::Credit {
        return Ok(ExplanationOutcome::LineIsCredit);
    }
    let sum = found.iter().fold(0_i64, |sum, one| sum.saturating_add(one.units));
    if sum != line.units {
        let inr = |units| Money::new(units, Currency::Inr);
        return Ok(ExplanationOutcome::AmountsDiffer(inr(line.units), inr(sum)));
    }
    let is_recorded = match found.as_slice() {
        [one] => journal::match_to_payout(tx, id, one)?,
        several => journal::match_to_payouts(tx, now, id, several)?,
    };
    Ok(outcome_of(is_recorded))
}

/// Explains the difference of a payout, a statement or an account. Answers the kinds of the
/// differences that match `subject` and `kind`. If there is exactly one, it is now explained. If
/// there are several, none is, and the operator has to name a kind.
pub fn explain_by_subject(
    tx: &mut dyn Tx,
    now: &Now,
    subject: &str,
    kind: Option<&str>,
    note: &str,
) -> Result<Vec<DifferenceKind>, StoreError> {
    let found = differences_of(tx, subject, kind)?;
    if let [difference] = found.as_slice() {
        let (kind, units) = (difference.kind.as_str(), difference.amount.units);
        journal::keep_explanation(tx, now, kind, subject, units, note)?;
    }
    Ok(found.iter().map(|difference| difference.kind).collect())
}
