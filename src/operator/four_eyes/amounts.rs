//! The amount that a decision moves, and whether it is above what one person may decide.

use super::Cause;
use crate::kernel::id::kind;
use crate::kernel::{AnyId, Currency, Id, Money, ObjectKind, Scope, StoreError};
use crate::rates;
use crate::store::Tx;
use crate::{deposits, payouts, refunds, transfers};

/// The most payouts that one query reads.
const PAGE_ROWS: i64 = 500;

/// [`Cause::Amount`] if an amount is more than `above`, or if it is in rupees and no market rate is
/// known to convert `above` by.
pub(super) fn cause(
    tx: &mut dyn Tx,
    above: Money,
    amount: Option<Money>,
) -> Result<Option<Cause>, StoreError> {
    let Some(amount) = amount else { return Ok(None) };
    let limit = match amount.currency {
        // By the last live market rate, however old: it only decides whether a second person is
        // needed.
        Currency::Inr => match rates::rows::find(tx, rates::rows::LIVE_MARKET)? {
            Some((rate, _)) => above.exchanged(rate.mid, Currency::Inr)?,
            None => return Ok(Some(Cause::Amount)),
        },
        other => above.at_par(other)?,
    };
    let is_above = amount.units.unsigned_abs() > limit.units.unsigned_abs();
    Ok(is_above.then_some(Cause::Amount))
}

/// The amount that a decision about an object moves, in dollars or a dollar token: for a payout,
/// its transfer's amount; for a beneficiary, the largest such amount of its payouts on hold, which
/// an approval may release. `None` for a sender.
pub(super) fn moved(tx: &mut dyn Tx, scope: Scope, id: AnyId) -> Result<Option<Money>, StoreError> {
    match id.kind {
        ObjectKind::Transfer => match id.typed() {
            Some(id) => of_transfer(tx, scope, id),
            None => Ok(None),
        },
        ObjectKind::Payout => match id.typed() {
            Some(id) => of_payout(tx, scope, id),
            None => Ok(None),
        },
        ObjectKind::Beneficiary => match id.typed() {
            Some(id) => largest_held(tx, scope, id),
            None => Ok(None),
        },
        ObjectKind::Deposit => {
            let found = id.typed().map(|id| deposits::rows::find(tx, scope, id)).transpose()?;
            Ok(found.flatten().map(|deposit| deposit.amount))
        }
        ObjectKind::Refund => {
            let found = id.typed().map(|id| refunds::rows::find(tx, scope, id)).transpose()?;
            Ok(found.flatten().map(|refund| refund.amount))
        }
        _ => Ok(None),
    }
}

fn of_transfer(
    tx: &mut dyn Tx,
    scope: Scope,
    id: Id<kind::Transfer>,
) -> Result<Option<Money>, StoreError> {
    Ok(transfers::rows::find(tx, scope, id)?.map(|transfer| transfer.amount))
}

fn of_payout(
    tx: &mut dyn Tx,
    scope: Scope,
    id: Id<kind::Payout>,
) -> Result<Option<Money>, StoreError> {
    match payouts::rows::find(tx, scope, id)? {
        Some(payout) => of_transfer(tx, scope, payout.transfer_id),
        None => Ok(None),
    }
}

fn largest_held(
    tx: &mut dyn Tx,
    scope: Scope,
    id: Id<kind::Beneficiary>,
) -> Result<Option<Money>, StoreError> {
    let (mut largest, mut after): (Option<Money>, _) = (None, [0; 16]);
    loop {
        let held = payouts::rows::on_hold_of_beneficiary(tx, scope, id, after, PAGE_ROWS)?;
        let Some(last) = held.last() else { return Ok(largest) };
        after = last.to_bytes();
        for payout in held {
            if let Some(amount) = of_payout(tx, scope, payout)?
                && largest.is_none_or(|most| most.units < amount.units)
            {
                largest = Some(amount);
            }
        }
    }
}
