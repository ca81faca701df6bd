//! `hundi check` finds what is wrong with a book: each damage is planted in a copy of a right one
//! and has to be named.

use hundi::verify_book;
use rusqlite::Connection;
use serde_json::json;

use crate::support::{Server, id, is_on_postgres};

/// What is done to a right book, and words of the fault that has to be named.
const DAMAGES: &[(&str, &str)] = &[
    (
        "UPDATE ledger_postings SET units = units + 1 WHERE rowid_first",
        "a running balance differs from its postings",
    ),
    (
        "DELETE FROM ledger_postings WHERE rowid_first",
        "a running balance differs from its postings",
    ),
    (
        "UPDATE ledger_balances SET debit_units = debit_units + 5 WHERE account = 'custody'",
        "debits and credits differ",
    ),
    (
        "DELETE FROM ledger_balances WHERE account = 'available'",
        "postings without a running balance",
    ),
    // Of an account that was never debited.
    (
        "DELETE FROM ledger_balances WHERE account = 'custody' AND debit_units = 0",
        "debits and credits differ",
    ),
    ("UPDATE deposits SET units = units + 1", "deposits differ from what was credited"),
    ("UPDATE deposits SET status = 'processing'", "credited without a completed deposit"),
    ("UPDATE transfers SET received_units = received_units + 1", "amount received differs"),
    (
        "UPDATE quote_locks SET transfer_id = x'00000000000000000000000000000001'",
        "names a transfer that does not exist",
    ),
    ("UPDATE payouts SET unique_transaction_reference = NULL", "has no reference"),
    ("UPDATE transfers SET status = 'payout_processing'", "a transfer and its payout disagree"),
    (
        "UPDATE transfers SET status_history = 'funding@1 payout_settled@2'",
        "which is not permitted",
    ),
    (
        "UPDATE transfers SET status_history = replace(status_history, 'funding@', 'funding@9')",
        "has an earlier time than",
    ),
    ("UPDATE beneficiaries SET status_history = 'verifying@1'", "the history ends in verifying"),
    ("UPDATE payouts SET status_history = ''", "cannot be read"),
    ("UPDATE audit_log SET details = '{}' WHERE number = 1", "entry 1 is not as it was written"),
    ("DELETE FROM audit_log WHERE number = 1", "entry 2 follows entry 0"),
    (
        "DELETE FROM audit_log WHERE number = (SELECT MAX(number) FROM audit_log)",
        "the audit log: it ends with entry",
    ),
    ("DELETE FROM audit_tail", "but 0 were written"),
    (
        "UPDATE meta SET value = CAST('999' AS BLOB) WHERE name = 'schema_version'",
        "the schema is 999",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_planted_damage_is_named_and_a_right_book_is_silent() {
    if is_on_postgres() {
        // The damages are done to copies of a file.
        return;
    }
    let server = Server::start().await;
    let client = server.client().await;
    let transfer = client.transfer().await;
    client.deposit(&transfer, json!({})).await;
    let path = format!("/v1/transfers/{}", id(&transfer));
    client.wait_status(&path, "payout_settled").await;
    let right = server.folder.join("right.db");
    hundi::backup::write(&hundi::store::Database::Sqlite(server.folder.join("test.db")), &right)
        .unwrap();
    assert_eq!(
        verify_book::run(&hundi::store::Database::Sqlite(right.clone())).unwrap().faults,
        Vec::<String>::new()
    );

    for (index, (damage, named)) in DAMAGES.iter().enumerate() {
        let damaged = server.folder.join(format!("damaged-{index}.db"));
        std::fs::copy(&right, &damaged).unwrap();
        let first = "id = (SELECT MIN(id) FROM ledger_postings)";
        let changed = Connection::open(&damaged)
            .unwrap()
            .execute(&damage.replace("rowid_first", first), [])
            .unwrap();
        assert!(changed > 0, "{damage} damaged nothing");
        let faults = verify_book::run(&hundi::store::Database::Sqlite(damaged)).unwrap().faults;
        assert!(
            faults.iter().any(|fault| fault.contains(named)),
            "{damage}: wanted {named:?}, found {faults:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_writing_connection_refuses_to_change_a_posting_or_the_audit_log() {
    if is_on_postgres() {
        // It has no such guard of its own; docs/postgresql.md has the rights that stand for it.
        return;
    }
    let server = Server::start().await;
    for sql in [
        "UPDATE ledger_postings SET units = 1",
        "DELETE FROM ledger_postings",
        "UPDATE audit_log SET actor = 'asha'",
        "DELETE FROM audit_log",
        "DROP TABLE audit_log",
    ] {
        let refused = server.app.state.store.write(move |tx, _| Ok(tx.execute(sql, &[])?)).await;
        assert!(format!("{refused:?}").contains("not authorized"), "{sql}: {refused:?}");
    }
    for sql in [
        "INSERT INTO ledger_postings VALUES (2, x'01', x'01', 'e', 'hold', 'hold', 'USDT', 1, \
         x'01', 0)",
        "INSERT INTO ledger_postings VALUES (2, x'01', x'01', 'e', 'hold', 'custody', 'USDT', 0, \
         x'01', 0)",
        "INSERT INTO ledger_postings VALUES (2, x'01', x'01', 'e', 'hold', 'custody', 'EUR', 1, \
         x'01', 0)",
    ] {
        let refused = server.app.state.store.write(move |tx, _| Ok(tx.execute(sql, &[])?)).await;
        assert!(format!("{refused:?}").contains("constraint"), "{sql}: {refused:?}");
    }
}
