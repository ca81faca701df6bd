//! The rows of the ledger. A posting is never changed or deleted.

use super::{LedgerAccount, LedgerEntryKind, Posting};
use crate::kernel::id::kind;
use crate::kernel::{Currency, Id, InternalId, Money, Now, Scope, StoreError};
use crate::resource::BookRule;
use crate::store::Tx;
use crate::values;

pub fn insert(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    (entry, entry_id): (LedgerEntryKind, InternalId),
    transfer_id: Id<kind::Transfer>,
    posting: &Posting,
) -> Result<(), StoreError> {
    let id: InternalId = now.mint();
    tx.execute_one(
        "INSERT INTO ledger_postings (scope, id, entry_id, entry, debit_account, credit_account, \
         currency, units, transfer_id, posted_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        values![
            scope,
            id,
            entry_id,
            entry.as_str(),
            posting.to.as_str(),
            posting.from.as_str(),
            posting.amount.currency,
            posting.amount.units,
            transfer_id,
            now.business(),
        ],
    )
}

/// Adds to the debits of a running balance: the amount arrives at the account.
pub fn debit(
    tx: &mut dyn Tx,
    scope: Scope,
    account: LedgerAccount,
    amount: Money,
) -> Result<(), StoreError> {
    add(tx, scope, account, amount.currency, (amount.units, 0))
}

/// Adds to the credits of a running balance: the amount leaves the account.
pub fn credit(
    tx: &mut dyn Tx,
    scope: Scope,
    account: LedgerAccount,
    amount: Money,
) -> Result<(), StoreError> {
    add(tx, scope, account, amount.currency, (0, amount.units))
}

fn add(
    tx: &mut dyn Tx,
    scope: Scope,
    account: LedgerAccount,
    currency: Currency,
    (debit_units, credit_units): (i64, i64),
) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO ledger_balances (scope, account, currency, debit_units, credit_units) \
         VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (scope, account, currency) DO UPDATE SET \
         debit_units = ledger_balances.debit_units + excluded.debit_units, \
         credit_units = ledger_balances.credit_units + excluded.credit_units",
        values![scope, account.as_str(), currency, debit_units, credit_units],
    )
}

/// The balance of each account: debits less credits. Balances of zero are left out.
pub fn balances(tx: &mut dyn Tx, scope: Scope) -> Result<Vec<(LedgerAccount, Money)>, StoreError> {
    let rows = tx.rows(
        "SELECT account, currency, debit_units - credit_units FROM ledger_balances \
         WHERE scope = ?1 AND debit_units <> credit_units ORDER BY account, currency",
        values![scope],
    )?;
    rows.into_iter()
        .map(|mut row| {
            let account = row.word(LedgerAccount::parse)?;
            let currency = row.word(Currency::parse)?;
            Ok((account, Money::new(row.int()?, currency)))
        })
        .collect()
}

pub fn postings_count(tx: &mut dyn Tx) -> Result<i64, StoreError> {
    tx.row("SELECT COUNT(*) FROM ledger_postings", &[])?.map_or(Ok(0), |mut row| row.int())
}

/// Queries that find errors in these rows, for `hundi check`: rows that a fault of the service
/// made, or that somebody changed by other means.
pub const BOOK_RULES: &[BookRule] = &[
    BookRule {
        meaning: "a currency's debits and credits differ",
        sql: "SELECT 'scope ' || scope || ' ' || currency, NULL FROM ledger_balances GROUP BY \
         scope, currency HAVING SUM(debit_units) <> SUM(credit_units) LIMIT ?1",
    },
    BookRule {
        meaning: "a running balance differs from its postings",
        sql: "SELECT 'scope ' || b.scope || ' ' || b.account || ' ' || b.currency, NULL FROM \
         ledger_balances b LEFT JOIN ( \
                SELECT scope, account, currency, SUM(debit) AS debit, SUM(credit) AS credit FROM ( \
                  SELECT scope, debit_account AS account, currency, units AS debit, 0 AS credit \
                  FROM ledger_postings \
                  UNION ALL SELECT scope, credit_account, currency, 0, units FROM \
                  ledger_postings) moved GROUP BY scope, account, currency) p \
              ON p.scope = b.scope AND p.account = b.account AND p.currency = b.currency \
              WHERE p.debit IS NULL OR p.debit <> b.debit_units OR p.credit <> b.credit_units \
              LIMIT ?1",
    },
    // Looks only for the balances of accounts that postings debited, so that it reads all postings
    // only once. If the balance of an account that was only ever credited is missing, the first
    // rule finds that: the debits of the currency exceed its credits.
    BookRule {
        meaning: "postings without a running balance",
        sql: "SELECT DISTINCT 'scope ' || p.scope || ' ' || p.debit_account, NULL FROM \
         ledger_postings p LEFT JOIN ledger_balances b \
              ON b.scope = p.scope AND b.account = p.debit_account AND b.currency = p.currency \
              WHERE b.account IS NULL LIMIT ?1",
    },
    BookRule {
        meaning: "a compartment holds less than nothing",
        sql: "SELECT 'scope ' || scope || ' ' || account || ' ' || currency, NULL FROM \
         ledger_balances \
              WHERE account IN ('available', 'processing', 'payout_processing', 'hold') AND \
              debit_units < credit_units LIMIT ?1",
    },
];
