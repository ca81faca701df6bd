//! Double entry: the chart of accounts, postings, and the balances they add up to.
//!
//! A posting moves one amount of one currency from one ledger account (credited) to another
//! (debited), so debits equal credits in every row. An exchange is two postings of one entry,
//! linked by `entry_id`, each in its own currency.

pub mod check;

use crate::kernel::id::kind;
use crate::kernel::{Currency, Id, Money, Now, Scope, StoreError};
use crate::store::Tx;
use crate::values;

crate::words!(
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

crate::words!(
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

/// One movement within an entry: `amount` leaves `from` and arrives at `to`.
#[derive(Clone, Copy, Debug)]
pub struct Movement {
    pub from: Account,
    pub to: Account,
    pub amount: Money,
}

impl Movement {
    pub const fn new(from: Account, to: Account, amount: Money) -> Movement {
        Movement { from, to, amount }
    }
}

/// Writes an entry: its postings and the running balances. Movements of nothing are left out.
pub fn post(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    entry: Entry,
    transfer_id: Id<kind::Transfer>,
    movements: &[Movement],
) -> Result<(), StoreError> {
    let entry_id: Id<kind::Request> = now.mint();
    for movement in movements {
        if movement.amount.is_zero() {
            continue;
        }
        if movement.amount.units < 0 {
            return Err(StoreError::Broken(format!("a negative posting of {}", entry.as_str())));
        }
        let id: Id<kind::Request> = now.mint();
        tx.execute_one(
            "INSERT INTO ledger_postings (scope, id, entry_id, entry, debit_account, \
             credit_account, currency, units, transfer_id, posted_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            values![
                scope,
                id,
                entry_id,
                entry.as_str(),
                movement.to.as_str(),
                movement.from.as_str(),
                movement.amount.currency,
                movement.amount.units,
                transfer_id,
                now.business(),
            ],
        )?;
        add(tx, scope, movement.to, movement.amount, true)?;
        add(tx, scope, movement.from, movement.amount, false)?;
    }
    Ok(())
}

fn add(
    tx: &mut dyn Tx,
    scope: Scope,
    account: Account,
    amount: Money,
    is_debit: bool,
) -> Result<(), StoreError> {
    let (debit, credit) = if is_debit { (amount.units, 0) } else { (0, amount.units) };
    tx.execute_one(
        "INSERT INTO ledger_balances (scope, account, currency, debit_units, credit_units) VALUES \
         (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (scope, account, currency) DO UPDATE SET debit_units = \
         ledger_balances.debit_units + excluded.debit_units, \
         credit_units = ledger_balances.credit_units + excluded.credit_units",
        values![scope, account.as_str(), amount.currency, debit, credit],
    )
}

/// What stands on each account: what arrived less what left. Sums that are zero are left out.
pub fn balances(tx: &mut dyn Tx, scope: Scope) -> Result<Vec<(Account, Money)>, StoreError> {
    let rows = tx.rows(
        "SELECT account, currency, debit_units - credit_units FROM ledger_balances WHERE scope = \
         ?1 AND debit_units <> credit_units ORDER BY account, currency",
        values![scope],
    )?;
    rows.into_iter()
        .map(|mut row| {
            let account = row.word(Account::parse)?;
            let currency = row.word(Currency::parse)?;
            Ok((account, Money::new(row.int()?, currency)))
        })
        .collect()
}
