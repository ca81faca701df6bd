//! Double entry: the chart of accounts, postings, and the balances they add up to.
//!
//! A posting moves one amount of one currency from one ledger account (credited) to another
//! (debited), so debits equal credits in every row. An exchange is two postings of one entry,
//! linked by `entry_id`, each in its own currency.

pub mod rows;

use crate::kernel::id::kind;
use crate::kernel::{Id, Money, Now, Scope, StoreError};
use crate::store::Tx;

crate::string_enum!(
    /// The chart of accounts. The first four are what a balance shows: what is held for, or owed
    /// to, the caller.
    Account {
        Available "available",
        Processing "processing",
        PayoutProcessing "payout_processing",
        Hold "hold",
        Custody "custody",
        Conversion "conversion",
        FeeIncome "fee_income",
        PaidOut "paid_out",
        TaxPayable "tax_payable",
    }
);

crate::string_enum!(
    /// What happened, for the book's reader.
    Entry {
        DepositCredited "deposit_credited",
        DepositHeld "deposit_held",
        FundsHeld "funds_held",
        FundsReleased "funds_released",
        TransferFunded "transfer_funded",
        ExcessHeld "excess_held",
        PayoutExchanged "payout_exchanged",
        PayoutSettled "payout_settled",
        PayoutFailed "payout_failed",
        PayoutReturned "payout_returned",
        PayoutRefused "payout_refused",
        RefundSent "refund_sent",
    }
);

/// One posting of an entry: `amount` leaves `from` and arrives at `to`.
#[derive(Clone, Copy, Debug)]
pub struct Posting {
    pub from: Account,
    pub to: Account,
    pub amount: Money,
}

impl Posting {
    pub const fn new(from: Account, to: Account, amount: Money) -> Posting {
        Posting { from, to, amount }
    }
}

/// Writes an entry: its postings and the running balances. Postings of nothing are left out.
pub fn post(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    entry: Entry,
    transfer_id: Id<kind::Transfer>,
    postings: &[Posting],
) -> Result<(), StoreError> {
    let entry_id: Id<kind::Request> = now.mint();
    for posting in postings.iter().filter(|posting| !posting.amount.is_zero()) {
        if posting.amount.units < 0 {
            return Err(StoreError::Broken(format!("a negative posting of {}", entry.as_str())));
        }
        rows::insert(tx, now, scope, (entry, entry_id), transfer_id, posting)?;
        rows::add(tx, scope, posting.to, posting.amount, true)?;
        rows::add(tx, scope, posting.from, posting.amount, false)?;
    }
    Ok(())
}

pub use rows::balances;
