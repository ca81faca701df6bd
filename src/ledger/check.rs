//! `hundi check`: verifies the whole book and all status histories, and names what is wrong.

use crate::beneficiaries::state::BeneficiaryStatus;
use crate::deposits::state::DepositStatus;
use crate::kernel::state::Status;
use crate::kernel::{History, Id, Kind, StoreError, hex, id::kind};
use crate::payouts::state::PayoutStatus;
use crate::refunds::state::RefundStatus;
use crate::secrets;
use crate::store::{Database, Tx, migrate};
use crate::transfers::state::TransferStatus;
use crate::values;

/// What a check found.
#[derive(Debug, Default)]
pub struct Report {
    /// One line about each thing that was looked at.
    pub counts: Vec<String>,
    pub faults: Vec<String>,
}

/// Faults of one kind that are listed; a broken book would fill the screen otherwise.
const FAULTS_SHOWN_MAX: i64 = 100;
const ROWS_AT_ONCE: i64 = 1_000;

/// A statement that finds faults, and what they mean. Its columns are words, and an identifier or
/// NULL.
struct Rule {
    meaning: &'static str,
    sql: &'static str,
}

/// Each statement answers one text for each fault; a right book answers nothing.
const RULES: &[Rule] = &[
    Rule {
        meaning: "a currency's debits and credits differ",
        sql: "SELECT 'scope ' || scope || ' ' || currency, NULL FROM ledger_balances GROUP BY \
         scope, currency HAVING SUM(debit_units) <> SUM(credit_units) LIMIT ?1",
    },
    Rule {
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
    Rule {
        meaning: "postings without a running balance",
        sql: "SELECT DISTINCT 'scope ' || p.scope || ' ' || p.debit_account, NULL FROM \
         ledger_postings p LEFT JOIN ledger_balances b \
              ON b.scope = p.scope AND b.account = p.debit_account AND b.currency = p.currency \
              WHERE b.account IS NULL LIMIT ?1",
    },
    Rule {
        meaning: "a compartment holds less than nothing",
        sql: "SELECT 'scope ' || scope || ' ' || account || ' ' || currency, NULL FROM \
         ledger_balances \
              WHERE account IN ('available', 'processing', 'payout_processing', 'hold') AND \
              debit_units < credit_units LIMIT ?1",
    },
    Rule {
        meaning: "a transfer's deposits differ from what was credited for it",
        sql: "SELECT 'transfer', d.transfer_id FROM ( \
                SELECT scope, transfer_id, SUM(units) AS units FROM deposits WHERE status = \
                'completed' GROUP BY scope, transfer_id) d \
              LEFT JOIN (SELECT scope, transfer_id, SUM(units) AS units FROM ledger_postings \
              WHERE credit_account = 'custody' GROUP BY scope, transfer_id) p \
              ON p.scope = d.scope AND p.transfer_id = d.transfer_id WHERE p.units IS NULL OR \
              p.units <> d.units LIMIT ?1",
    },
    Rule {
        meaning: "money was credited without a completed deposit",
        sql: "SELECT 'transfer', p.transfer_id FROM ledger_postings p WHERE p.credit_account = \
         'custody' AND NOT EXISTS ( \
                SELECT 1 FROM deposits d WHERE d.scope = p.scope AND d.transfer_id = \
                p.transfer_id AND d.status = 'completed') LIMIT ?1",
    },
    Rule {
        meaning: "a transfer's amount received differs from its deposits",
        sql: "SELECT 'transfer', t.id FROM transfers t WHERE t.received_units <> ( \
                SELECT COALESCE(SUM(d.units), 0) FROM deposits d WHERE d.scope = t.scope AND \
                d.transfer_id = t.id AND d.status = 'completed' \
                AND d.classification <> 'unmatched') LIMIT ?1",
    },
    Rule {
        meaning: "a quote lock and its transfer do not name each other",
        sql: "SELECT 'quote lock', l.id FROM quote_locks l LEFT JOIN transfers t ON t.scope = \
         l.scope AND t.id = l.transfer_id \
              WHERE l.transfer_id IS NOT NULL AND t.id IS NULL LIMIT ?1",
    },
    Rule {
        meaning: "two transfers share a quote lock",
        sql: "SELECT 'quote lock', quote_lock_id FROM transfers GROUP BY scope, quote_lock_id \
         HAVING COUNT(*) > 1 LIMIT ?1",
    },
    Rule {
        meaning: "two transfers share a deposit address",
        sql: "SELECT 'address', deposit_address FROM transfers GROUP BY deposit_address HAVING \
         COUNT(*) > 1 LIMIT ?1",
    },
    Rule {
        meaning: "a payout left the funding without a completed deposit",
        sql: "SELECT 'payout', p.id FROM payouts p WHERE NOT EXISTS ( \
                SELECT 1 FROM deposits d WHERE d.scope = p.scope AND d.transfer_id = \
                p.transfer_id AND d.status = 'completed') LIMIT ?1",
    },
    Rule {
        meaning: "a settled payout has no reference",
        sql: "SELECT 'payout', id FROM payouts WHERE status IN ('settled', 'returned') AND \
         unique_transaction_reference IS NULL LIMIT ?1",
    },
    Rule {
        meaning: "a transfer and its payout disagree",
        sql: "SELECT 'transfer', t.id FROM transfers t JOIN payouts p ON p.scope = t.scope AND \
         p.id = t.payout_id \
              WHERE (t.status = 'payout_processing') <> (p.status = 'processing') OR (t.status = \
              'payout_settled') <> (p.status = 'settled') LIMIT ?1",
    },
];

/// Verifies a database, beside a running server too: it reads one consistent view.
pub fn run(database: &Database) -> Result<Report, StoreError> {
    database.examine(examine)
}

/// Says whether the encryption key with this verifier is another one than the database was made
/// with.
pub fn key_fault(database: &Database, verifier: &[u8; 32]) -> Result<Option<String>, StoreError> {
    let stored = database.examine(|tx| migrate::read_meta(tx, secrets::VERIFIER))?;
    let is_wrong = stored.is_some_and(|stored| !secrets::fits(&stored, verifier));
    Ok(is_wrong
        .then(|| "the encryption key is not the one that this database was made with".to_owned()))
}

fn examine(tx: &mut dyn Tx) -> Result<Report, StoreError> {
    let mut report = Report::default();
    let version = migrate::schema_version(tx)?;
    if version != migrate::schema_known() {
        report.faults.push(format!(
            "the schema is {version}, and this hundi checks {}",
            migrate::schema_known()
        ));
        return Ok(report);
    }
    if !tx.is_shared() {
        for mut row in tx.rows("PRAGMA quick_check", &[])? {
            let line = row.text()?;
            if line != "ok" {
                report.faults.push(format!("the database file: {line}"));
            }
        }
    }
    for rule in RULES {
        for mut row in tx.rows(rule.sql, values![FAULTS_SHOWN_MAX])? {
            let (what, id) = (row.text()?, row.bytes_or_null()?);
            let id =
                id.map(|id| format!(" {}", hex::encode(id).to_uppercase())).unwrap_or_default();
            report.faults.push(format!("{}: {what}{id}", rule.meaning));
        }
    }
    let count =
        tx.row("SELECT COUNT(*) FROM ledger_postings", &[])?.map_or(Ok(0), |mut row| row.int())?;
    report.counts.push(format!("{count} ledger postings"));
    histories::<kind::Beneficiary, BeneficiaryStatus>(tx, "beneficiaries", &mut report)?;
    histories::<kind::Transfer, TransferStatus>(tx, "transfers", &mut report)?;
    histories::<kind::Deposit, DepositStatus>(tx, "deposits", &mut report)?;
    histories::<kind::Payout, PayoutStatus>(tx, "payouts", &mut report)?;
    histories::<kind::Refund, RefundStatus>(tx, "refunds", &mut report)?;
    Ok(report)
}

/// Reads every history of a table, a page at a time.
fn histories<K: Kind, S: Status>(
    tx: &mut dyn Tx,
    table: &str,
    report: &mut Report,
) -> Result<(), StoreError> {
    let sql = format!(
        "SELECT scope, id, status, status_history FROM {table} WHERE (scope, id) > (?1, ?2) ORDER \
         BY scope, id LIMIT ?3"
    );
    let (mut scope, mut id) = (-1, [0; 16]);
    let mut count = 0;
    loop {
        let rows = tx.rows(&sql, values![scope, &id, ROWS_AT_ONCE])?;
        if rows.is_empty() {
            break;
        }
        for mut row in rows {
            scope = row.int()?;
            let object: Id<K> = row.id()?;
            id = object.to_bytes();
            let status = row.word(S::parse)?;
            let fault = match History::<S>::from_text(&row.text()?) {
                Ok(history) => history.fault(status),
                Err(error) => Some(error.to_string()),
            };
            if let Some(fault) = fault {
                report.faults.push(format!("{object}: {fault}"));
            }
            count += 1;
        }
    }
    report.counts.push(format!("{count} {table}"));
    Ok(())
}
