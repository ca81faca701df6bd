//! The operator explains a line of a statement, or a difference with a chain.

use std::fmt;

use super::chain;
use crate::kernel::id::kind;
use crate::kernel::{Currency, Id, InternalId, Money, Now, StoreError};
use crate::rails::files::reports::Sign;
use crate::rails::files::rows as journal;
use crate::store::Tx;

/// What became of an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplanationOutcome {
    Taken,
    /// No line and no difference with this number is open; with payouts, no line.
    NotOpen,
    /// The bank was never given this payout.
    NeverGiven(Id<kind::Payout>),
    /// The line's amount, and the sum of the payouts'.
    AmountsDiffer(Money, Money),
    /// Several payouts were named, and the line brought money.
    NoPayment,
}

impl fmt::Display for ExplanationOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExplanationOutcome::Taken => f.write_str("it was taken"),
            ExplanationOutcome::NotOpen => f.write_str(
                "no line or difference of this number waits to be explained: `hundi reconcile` \
                 shows those that do",
            ),
            ExplanationOutcome::NeverGiven(payout) => {
                write!(f, "{payout} was never given to the bank, so no line can be its payment")
            }
            ExplanationOutcome::AmountsDiffer(line, payouts) => write!(
                f,
                "the line's amount is {line} INR, and its payouts would make {payouts} INR: name \
                 the payouts that make the line's amount"
            ),
            ExplanationOutcome::NoPayment => f.write_str(
                "money came with this line, and only a line with which money went can belong to \
                 several payouts: explain it without naming them",
            ),
        }
    }
}

/// Explains a line that belongs to `payouts`, or to none; without payouts, a difference with a
/// chain too.
pub fn explain(
    tx: &mut dyn Tx,
    now: &mut Now,
    id: InternalId,
    payouts: &[Id<kind::Payout>],
    note: Option<&str>,
) -> Result<ExplanationOutcome, StoreError> {
    let taken = |is_taken| match is_taken {
        true => ExplanationOutcome::Taken,
        false => ExplanationOutcome::NotOpen,
    };
    if payouts.is_empty() {
        let is_taken = journal::accept(tx, now, id, note)? || chain::rows::accept(tx, now, id)?;
        return Ok(taken(is_taken));
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
        return Ok(ExplanationOutcome::NoPayment);
    }
    let sum = found.iter().fold(0_i64, |sum, one| sum.saturating_add(one.units));
    if sum != line.units {
        let inr = |units| Money::new(units, Currency::Inr);
        return Ok(ExplanationOutcome::AmountsDiffer(inr(line.units), inr(sum)));
    }
    let is_taken = match found.as_slice() {
        [one] => journal::assign(tx, id, one)?,
        several => journal::share(tx, now, id, several)?,
    };
    Ok(taken(is_taken))
}
