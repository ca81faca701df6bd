//! The operator's limits on rupees: how much may go out for one sender, beneficiary and account in
//! a day and a month.
//!
//! A payout counts from the moment it is instructed until it fails or comes back. A total is a row.
//! It is made when the first payout of its subject and period is about to be instructed.
//!
//! A total begins with zero if its limit was set at least a day before the period began: every node
//! has then counted since the period began, so an earlier payout of the period would have made the
//! total already. If the limit was set later, nodes that did not count may have instructed payouts.
//! The total then begins with the sum of the period's earlier payouts.
//!
//! One statement adds to a total and compares it with the limit, so two payouts at once cannot both
//! pass if only one of them has room. Days and months are India's.

use super::Payout;
use super::rows;
use super::state::HoldReason;
use super::totals::MONTH_LENGTH;
pub use super::totals::{LimitSubject, TotalKey};
use crate::kernel::id::kind;
use crate::kernel::{AnyId, Id, Money, Now, Scope, StoreError};
use crate::rails::files::values::Day;
use crate::services::PayoutLimits;
use crate::store::{Tx, meta};

/// The `subject_id` of the totals of the account as a whole.
const WHOLE_ACCOUNT: [u8; 16] = [0; 16];
/// Every node is assumed to run with a new limit this long after the first node does. Until then, a
/// node without the limit may instruct payouts that a total misses. So a total that begins in that
/// time may be too low until its period ends (docs/live.md).
const LIMIT_ROLLOUT_MILLISECONDS: i64 = 86_400_000;

/// The limit for a day and the one for a month; `None` for one that is not set.
const fn limits_of(subject: LimitSubject, limits: &PayoutLimits) -> [Option<Money>; 2] {
    match subject {
        LimitSubject::Sender => [limits.sender_day, limits.sender_month],
        LimitSubject::Beneficiary => [limits.beneficiary_day, limits.beneficiary_month],
        LimitSubject::Account => [limits.account_day, limits.account_month],
    }
}

/// The totals of one subject for the day and the month of a moment, each with its limit. Periods
/// without a limit are left out.
fn totals_of_subject(
    subject: LimitSubject,
    subject_id: [u8; 16],
    limits: &PayoutLimits,
    at_milliseconds: i64,
) -> Result<Vec<(TotalKey, Money)>, StoreError> {
    let [day_max, month_max] = limits_of(subject, limits);
    let day = Day::at(at_milliseconds.div_euclid(1000))
        .ok_or_else(|| StoreError::Broken("the time is out of the calendar's range".into()))?;
    let (month, next_month) = day.month();
    let text = day.to_string();
    let month_text = text.get(..MONTH_LENGTH).unwrap_or_default().to_owned();
    let periods =
        [(day_max, text, day, day.plus_days(1)), (month_max, month_text, month, next_month)];
    let totals = periods.into_iter().filter_map(|(max, period, from, until)| {
        let total = TotalKey {
            subject,
            subject_id,
            period,
            from_milliseconds: from.begins_at() * 1000,
            until_milliseconds: until.begins_at() * 1000,
        };
        max.map(|max| (total, max))
    });
    Ok(totals.collect())
}

/// The totals that a payout counts in, each with its limit in paise. The order is always the same,
/// so that two payouts cannot deadlock.
fn totals_of_payout(
    limits: &PayoutLimits,
    payout: &Payout,
    sender_id: Id<kind::Sender>,
    at_milliseconds: i64,
) -> Result<Vec<(TotalKey, i64)>, StoreError> {
    let mut found = Vec::new();
    for (subject, id) in [
        (LimitSubject::Sender, sender_id.to_bytes()),
        (LimitSubject::Beneficiary, payout.beneficiary_id.to_bytes()),
        (LimitSubject::Account, WHOLE_ACCOUNT),
    ] {
        found.extend(totals_of_subject(subject, id, limits, at_milliseconds)?);
    }
    Ok(found.into_iter().map(|(total, max)| (total, max.units)).collect())
}

/// How much of a limit is used.
#[derive(Clone, Debug)]
pub struct LimitUsage {
    pub subject: LimitSubject,
    pub is_month: bool,
    pub max: Money,
    /// In paise. `None` only for the account as a whole, while no payout has made the period's
    /// total.
    pub units: Option<i64>,
}

/// What a subject has used of the limits that are set. `id` is the sender's or beneficiary's, and
/// `None` for the account as a whole. `at_milliseconds` is business time and selects the day and
/// the month.
pub fn usage(
    tx: &mut dyn Tx,
    limits: &PayoutLimits,
    scope: Scope,
    subject: LimitSubject,
    id: Option<AnyId>,
    at_milliseconds: i64,
) -> Result<Vec<LimitUsage>, StoreError> {
    let id = id.map_or(WHOLE_ACCOUNT, |id| id.value.to_be_bytes());
    let mut all = Vec::new();
    for (total, max) in totals_of_subject(subject, id, limits, at_milliseconds)? {
        let units = match (rows::total_units(tx, scope, &total)?, subject) {
            (Some(units), _) => Some(units),
            // Computing the sum would read all payouts of the account.
            (None, LimitSubject::Account) => None,
            (None, LimitSubject::Sender | LimitSubject::Beneficiary) => {
                Some(rows::instructed_units(tx, scope, &total)?)
            }
        };
        let is_month = total.is_month();
        all.push(LimitUsage { subject, is_month, max, units });
    }
    Ok(all)
}

/// Counts a payout that is about to be instructed. If a limit has no room for the payout, nothing
/// is counted, and the answer says why the payout has to wait. If `is_waived`, the operator waived
/// the limits for this payout: it is counted and does not wait.
pub fn add_payout(
    tx: &mut dyn Tx,
    limits: &PayoutLimits,
    payout: &Payout,
    sender_id: Id<kind::Sender>,
    now: &Now,
    is_waived: bool,
) -> Result<Option<HoldReason>, StoreError> {
    let totals = totals_of_payout(limits, payout, sender_id, now.business_milliseconds())?;
    for (index, (total, max)) in totals.iter().enumerate() {
        let max = if is_waived { i64::MAX } else { *max };
        if rows::total_units(tx, payout.scope, total)?.is_none() {
            let units = match was_counted_from_the_start(tx, now, total)? {
                true => 0,
                false => rows::instructed_units(tx, payout.scope, total)?,
            };
            rows::begin_total(tx, payout.scope, total, units)?;
        }
        if !rows::add_to_total(tx, payout.scope, total, payout.amount.units, max)? {
            // Undoes the totals that had room, because a payout that waits is counted nowhere.
            for (counted, _) in totals.iter().take(index) {
                rows::subtract_from_total(tx, payout.scope, counted, payout.amount.units)?;
            }
            return Ok(Some(total.subject.hold_reason()));
        }
    }
    Ok(None)
}

/// The name in `meta` of the instant since which a limit is set, in Unix milliseconds.
fn in_force_since_name(subject: LimitSubject, is_month: bool) -> String {
    let period = if is_month { "month" } else { "day" };
    format!("limit_in_force_since:{}:{period}", subject.as_str())
}

/// Whether every node ran with the limit before a total's period began, so that each payout of the
/// period was counted.
fn was_counted_from_the_start(
    tx: &mut dyn Tx,
    now: &Now,
    total: &TotalKey,
) -> Result<bool, StoreError> {
    let name = in_force_since_name(total.subject, total.is_month());
    let since = meta::read(tx, &name)?.and_then(|bytes| bytes.try_into().ok());
    // `since` is an instant and the period is business time, so the test clock's offset is added.
    // The offset when the limit was set is not known. The present one is not less, because test
    // clocks only move forward. If it is more, this may answer `false` for a period that was
    // counted from its start. Then the total begins with the sum of the period's earlier payouts.
    // That sum is zero, because an earlier payout would have made the total.
    let offset_milliseconds = now.clock_offset_seconds() * 1000;
    Ok(since.is_some_and(|since| {
        i64::from_be_bytes(since) + offset_milliseconds + LIMIT_ROLLOUT_MILLISECONDS
            <= total.from_milliseconds
    }))
}

/// Stores since when each limit is set. Removes the totals of a limit that is not set, because
/// payouts are no longer added to them. If the limit is set again, its totals begin with the sum of
/// the period's payouts until then.
pub fn note_limits_in_force(
    tx: &mut dyn Tx,
    now: &Now,
    limits: &PayoutLimits,
) -> Result<(), StoreError> {
    for subject in [LimitSubject::Sender, LimitSubject::Beneficiary, LimitSubject::Account] {
        let [day, month] = limits_of(subject, limits);
        for (limit, is_month) in [(day, false), (month, true)] {
            let name = in_force_since_name(subject, is_month);
            if limit.is_none() {
                rows::forget_totals(tx, subject, is_month)?;
                meta::remove(tx, &name)?;
            } else if meta::read(tx, &name)?.is_none() {
                meta::write(tx, &name, &now.instant_milliseconds().to_be_bytes())?;
            }
        }
    }
    Ok(())
}

/// Subtracts a payout from the totals that count it, because it failed or came back.
pub fn remove_payout(
    tx: &mut dyn Tx,
    limits: &PayoutLimits,
    payout: &Payout,
    sender_id: Id<kind::Sender>,
) -> Result<(), StoreError> {
    let Some(at_milliseconds) = payout.submitted_milliseconds else { return Ok(()) };
    for (total, _) in totals_of_payout(limits, payout, sender_id, at_milliseconds)? {
        rows::subtract_from_total(tx, payout.scope, &total, payout.amount.units)?;
    }
    Ok(())
}
