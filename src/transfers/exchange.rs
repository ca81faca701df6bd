//! The postings that exchange the USDT of a payout for INR, and those that undo it.

use super::Transfer;
use crate::kernel::{Money, StoreError};
use crate::ledger::{LedgerAccount, Posting};
use crate::payouts::Payout;

/// The USDT side of a payout: what is exchanged, and the fee.
fn exchanged_and_fee(transfer: &Transfer) -> Result<(Money, Money), StoreError> {
    let fee = transfer.fee.at_par(transfer.expected.currency)?;
    Ok((transfer.expected.minus(fee)?, fee))
}

/// The GST that was deducted from the rupees; zero if none was. It is owed to the tax authority
/// unless the payout fails or comes back.
fn tax(transfer: &Transfer, payout: &Payout) -> Money {
    transfer.gst.map_or(Money::zero(payout.amount.currency), |gst| gst.amount)
}

/// Postings of the exchange: the USDT becomes INR for the bank, the fee is earned, and the GST is
/// owed.
pub(super) fn exchange(transfer: &Transfer, payout: &Payout) -> Result<[Posting; 4], StoreError> {
    let (exchanged, fee) = exchanged_and_fee(transfer)?;
    Ok([
        Posting::new(LedgerAccount::Processing, LedgerAccount::Conversion, exchanged),
        Posting::new(LedgerAccount::Conversion, LedgerAccount::PayoutProcessing, payout.amount),
        Posting::new(LedgerAccount::Processing, LedgerAccount::FeeIncome, fee),
        Posting::new(LedgerAccount::Conversion, LedgerAccount::TaxPayable, tax(transfer, payout)),
    ])
}

/// Postings that undo the exchange: the INR goes back to `conversion`, the USDT with its fee to
/// `hold`, and the GST is no longer owed.
pub(super) fn undo_exchange(
    transfer: &Transfer,
    inr_from: LedgerAccount,
    payout: &Payout,
) -> Result<[Posting; 4], StoreError> {
    let (exchanged, fee) = exchanged_and_fee(transfer)?;
    Ok([
        Posting::new(inr_from, LedgerAccount::Conversion, payout.amount),
        Posting::new(LedgerAccount::Conversion, LedgerAccount::Hold, exchanged),
        Posting::new(LedgerAccount::FeeIncome, LedgerAccount::Hold, fee),
        Posting::new(LedgerAccount::TaxPayable, LedgerAccount::Conversion, tax(transfer, payout)),
    ])
}
