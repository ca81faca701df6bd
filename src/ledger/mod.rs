//! Double entry: the chart of accounts, postings, and the balances they add up to.
//!
//! A posting moves one amount of one currency from one ledger account (credited) to another
//! (debited), so debits equal credits in every row. An exchange is two postings of one entry,
//! linked by `entry_id`, each in its own currency.
//!
//! Debit and credit are the other way round than in an accountant's books. For a deposit, an
//! accountant debits the cash and credits the caller. Here a posting is a flow: it credits `from`
//! and debits `to`. A deposit flows from `custody`, which in spite of its name is the outside (the
//! chain), to `available`. A balance is debits less credits. So what belongs to the caller, the
//! fees and the GST owed are positive, and `custody` is negative: all refunds less all deposits.
//!
//! The postings of a payout of 1,000 USDT with a fee of 5, bought at 88 rupees:
//!
//! | Entry | From | To | Amount |
//! |---|---|---|---|
//! | `deposit_credited` | custody | available | 1,000 USDT |
//! | `transfer_funded` | available | processing | 1,000 USDT |
//! | `payout_exchanged` | processing | conversion | 995 USDT |
//! | | conversion | payout_processing | 87,560 INR |
//! | | processing | fee_income | 5 USDT |
//! | `payout_settled` | payout_processing | paid_out | 87,560 INR |
//!
//! Where GST is deducted, `payout_exchanged` has one more posting, from conversion to tax_payable,
//! and that much less goes to payout_processing.
//!
//! A refund gives back money that is already in `hold`: creating it posts nothing, and
//! `refund_sent` moves the money back to `custody`.

pub mod rows;

use crate::kernel::id::kind;
use crate::kernel::{Id, InternalId, Money, Now, Scope, StoreError};
use crate::store::Tx;

crate::string_enum!(
    /// The chart of accounts. `GET /v1/balance` shows the first four:
    ///
    /// - `available`: final on the chain, and not yet used or held;
    /// - `processing`: funded, not exchanged yet, because no payout is instructed;
    /// - `payout_processing`: rupees of payouts that are instructed and have no result yet; the
    ///   bank may not have them yet;
    /// - `hold`: waiting for a decision, or owed back.
    ///
    /// It does not show the others:
    ///
    /// - `custody`: the outside, where deposits come from and refunds go;
    /// - `conversion`: the operator's own position in USDT and INR;
    /// - `fee_income`: the operator's fees;
    /// - `paid_out`: what reached beneficiaries;
    /// - `tax_payable`: GST owed to the state.
    LedgerAccount {
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
    /// What an entry records. Besides the entries in the table of the module `ledger`:
    ///
    /// | Entry | From | To | Of what |
    /// |---|---|---|---|
    /// | `deposit_held` | custody | hold | an unmatched deposit, or one into a transfer on hold |
    /// | `funds_held` | available | hold | all that was received, when a hold begins |
    /// | `funds_released` | hold | processing | in place of `transfer_funded`, after a hold |
    /// | `excess_held` | available | hold | what was received above the expected amount |
    /// | `payout_refused` | processing | hold | a payout that was never sent |
    /// | `refund_sent` | hold | custody | a refund that the chain confirmed |
    ///
    /// `payout_failed` undoes all of `payout_exchanged`: the rupees leave payout_processing, the
    /// GST leaves tax_payable, and the USDT and the fee go to hold. `payout_returned` does the
    /// same after `payout_settled`: there the rupees leave paid_out.
    LedgerEntryKind {
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
    pub from: LedgerAccount,
    pub to: LedgerAccount,
    pub amount: Money,
}

impl Posting {
    pub const fn new(from: LedgerAccount, to: LedgerAccount, amount: Money) -> Posting {
        Posting { from, to, amount }
    }
}

/// Writes an entry: its postings and the running balances. Skips postings of zero; a negative one
/// is [`StoreError::Broken`]. The postings carry the business time of `now`.
pub fn post(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    entry: LedgerEntryKind,
    transfer_id: Id<kind::Transfer>,
    postings: &[Posting],
) -> Result<(), StoreError> {
    let entry_id: InternalId = now.mint();
    for posting in postings.iter().filter(|posting| !posting.amount.is_zero()) {
        if posting.amount.units < 0 {
            return Err(StoreError::Broken(format!("a negative posting of {}", entry.as_str())));
        }
        rows::insert(tx, now, scope, (entry, entry_id), transfer_id, posting)?;
        rows::debit(tx, scope, posting.to, posting.amount)?;
        rows::credit(tx, scope, posting.from, posting.amount)?;
    }
    Ok(())
}

pub use rows::balances;
