//! What the last comparison with the bank found, for the operator's pages. A comparison reads every
//! payout that the bank was given. So the bank's worker compares and stores the result, and the
//! pages only read the result.

use serde::{Deserialize, Serialize};

use super::{Difference, DifferenceKind, Report, rows};
use crate::decisions;
use crate::kernel::{Currency, Mode, Money, StoreError};
use crate::rails::files::rows as journal;
use crate::store::{Tx, meta};

const KEPT_META: &str = "bank_comparison";
/// The most differences that are kept; [`KeptComparison::differences_count`] counts all.
pub const KEPT_MAX: usize = 200;

/// A difference as it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptDifference {
    /// A word of [`DifferenceKind`].
    pub kind: String,
    /// The subject: a payout, a statement, or an account with its mode.
    pub what: String,
    pub units: i64,
    pub currency: String,
    pub detail: Option<String>,
    /// Since when each comparison has found it, in Unix seconds.
    pub since: i64,
}

impl KeptDifference {
    fn of(found: &Difference, since: i64) -> KeptDifference {
        KeptDifference {
            kind: found.kind.as_str().to_owned(),
            what: found.what.clone(),
            units: found.amount.units,
            currency: found.amount.currency.as_str().to_owned(),
            detail: found.detail.clone(),
            since,
        }
    }

    pub fn amount(&self) -> Money {
        Money::new(self.units, Currency::parse(&self.currency).unwrap_or(Currency::Inr))
    }

    /// The mode of the account that the difference names; `None` if the difference concerns the
    /// bank.
    fn own_mode(&self) -> Option<Mode> {
        match DifferenceKind::parse(&self.kind)? {
            DifferenceKind::DepositsBook | DifferenceKind::RefundsBook => {
                let modes = [Mode::Test, Mode::Live];
                modes.into_iter().find(|mode| self.what.ends_with(mode.as_str()))
            }
            _ => None,
        }
    }
}

/// A comparison as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptComparison {
    /// Unix seconds.
    pub compared_at: i64,
    /// How many differences were found, also of the kinds that the console reads from other rows
    /// (`is_read_elsewhere`).
    pub differences_count: usize,
    /// The first [`KEPT_MAX`] differences of the kinds that the console reads from here.
    pub differences: Vec<KeptDifference>,
    /// How many more differences of these kinds were found.
    #[serde(default)]
    pub more_count: usize,
    /// The newest decision and the last closed day at that time, for [`is_outdated`].
    decision: Option<String>,
    closed_until: Option<String>,
}

/// Whether the console reads differences of this kind from other rows than the kept comparison. It
/// does so for lines of statements, and for payouts that the operator decides about. It does not do
/// so for a payout that was paid after it had failed or come back: no decision applies to such a
/// payout, so the operator explains the difference.
const fn is_read_elsewhere(kind: DifferenceKind) -> bool {
    matches!(
        kind,
        DifferenceKind::LineUnmatched
            | DifferenceKind::AmountDiffers
            | DifferenceKind::HeldForDecision
            | DifferenceKind::OutcomeUnknown
    )
}

fn stored(tx: &mut dyn Tx) -> Result<Option<KeptComparison>, StoreError> {
    let kept = meta::read(tx, KEPT_META)?;
    Ok(kept.and_then(|text| serde_json::from_slice(&text).ok()))
}

/// The newest decision, and the last day that statements close. If either changes, a comparison may
/// be outdated.
fn marks(tx: &mut dyn Tx) -> Result<(Option<String>, Option<String>), StoreError> {
    let decision = decisions::rows::newest(tx, 1)?.pop().map(|made| made.id.to_string());
    Ok((decision, rows::closed_until(tx)?.map(|day| day.to_string())))
}

/// Compares at an instant, in Unix seconds. Only reads, and may take long. [`keep`] stores the
/// result.
pub fn compare(tx: &mut dyn Tx, instant: i64) -> Result<(Report, KeptComparison), StoreError> {
    let report = super::run(tx)?;
    let before = stored(tx)?.unwrap_or_default().differences;
    let (decision, closed_until) = marks(tx)?;
    let since = |found: &Difference| {
        let is_it =
            |kept: &&KeptDifference| kept.kind == found.kind.as_str() && kept.what == found.what;
        before.iter().find(is_it).map_or(instant, |kept| kept.since)
    };
    let read_here = report.differences.iter().filter(|found| !is_read_elsewhere(found.kind));
    let differences: Vec<KeptDifference> =
        read_here.take(KEPT_MAX).map(|found| KeptDifference::of(found, since(found))).collect();
    let read_here_count: usize = report
        .count_by_kind
        .iter()
        .filter_map(|(kind, count)| (!is_read_elsewhere(*kind)).then_some(count))
        .sum();
    let kept = KeptComparison {
        compared_at: instant,
        differences_count: report.differences_count,
        more_count: read_here_count.saturating_sub(differences.len()),
        differences,
        decision,
        closed_until,
    };
    Ok((report, kept))
}

/// Stores a comparison in place of the previous one.
pub fn keep(tx: &mut dyn Tx, compared: &KeptComparison) -> Result<(), StoreError> {
    let text = serde_json::to_vec(compared)
        .map_err(|error| StoreError::Broken(format!("a comparison with the bank: {error}")))?;
    meta::write(tx, KEPT_META, &text)
}

/// Whether the last comparison is outdated, or there is none. A comparison is outdated if a
/// statement has closed another day since. One that found differences is also outdated by a later
/// decision, which may have ended a difference.
pub fn is_outdated(tx: &mut dyn Tx) -> Result<bool, StoreError> {
    let Some(kept) = stored(tx)? else { return Ok(true) };
    let (decision, closed_until) = marks(tx)?;
    let may_have_ended = kept.differences_count > 0 && kept.decision != decision;
    Ok(may_have_ended || kept.closed_until != closed_until)
}

/// The last comparison, without what was explained since; `None` before the first.
pub fn read(tx: &mut dyn Tx) -> Result<Option<KeptComparison>, StoreError> {
    let Some(mut kept) = stored(tx)? else { return Ok(None) };
    if !kept.differences.is_empty() {
        let explained = journal::explanations(tx)?;
        kept.differences.retain(|found| {
            !explained.iter().any(|(kind, subject, units)| {
                (kind, subject, *units) == (&found.kind, &found.what, found.units)
            })
        });
    }
    Ok(Some(kept))
}

/// How many differences a mode has: those that the console reads from the last comparison, and
/// lines that wait for the operator.
pub fn count(tx: &mut dyn Tx, mode: Mode) -> Result<usize, StoreError> {
    let lines = if rows::bank_mode(tx)? == mode { journal::unmatched_count(tx)? } else { 0 };
    let kept = of_mode(tx, mode)?.len() + more_count(tx, mode)?;
    Ok(kept + usize::try_from(lines).unwrap_or(0))
}

/// How many differences beyond [`KEPT_MAX`] the last comparison found, of the kinds that the
/// console reads from here. All of them count for the bank's mode, because their own mode is not
/// stored.
pub fn more_count(tx: &mut dyn Tx, mode: Mode) -> Result<usize, StoreError> {
    let is_bank_mode = rows::bank_mode(tx)? == mode;
    Ok(stored(tx)?.filter(|_| is_bank_mode).map_or(0, |kept| kept.more_count))
}

/// The differences of the last comparison that belong to a mode.
pub fn of_mode(tx: &mut dyn Tx, mode: Mode) -> Result<Vec<KeptDifference>, StoreError> {
    let mut found = read(tx)?.unwrap_or_default().differences;
    let bank_mode = rows::bank_mode(tx)?;
    found.retain(|found| found.own_mode().unwrap_or(bank_mode) == mode);
    Ok(found)
}
