//! What docs/postgresql.md says of accounts that are spread: the tables of callers' objects can be
//! partitioned by `scope` as they are.

use std::collections::BTreeSet;

use hundi::kernel::Clock;
use hundi::store::Store;
use hundi::store::postgres::PostgresUrl;

use crate::support::postgres::{Database, try_sql};

/// Tables that do not lead with `scope`, by what they are found by instead.
const FOUND_OTHERWISE: &[(&str, &[&str])] = &[
    (
        "hash, address or endpoint",
        &[
            "idempotency_keys",
            "deposit_addresses",
            "webhook_queues",
            "webhook_deliveries",
            "webhook_attempts",
        ],
    ),
    (
        "identifier or number, which rises with the time",
        &["idempotency_answers", "decisions", "decision_requests", "audit_log"],
    ),
    ("word of a name", &["name_words"]),
    ("queues, which workers empty", &["outbox", "tasks"]),
    (
        "payment or file of one bank",
        &[
            "bank_instructions",
            "bank_messages",
            "bank_files",
            "bank_statements",
            "bank_statement_lines",
            "bank_references",
            "bank_line_shares",
            "bank_closed_differences",
            "bank_file_numbers",
        ],
    ),
    (
        "place on one chain",
        &["chain_cursors", "chain_tokens", "chain_sweeps", "chain_audits", "chain_differences"],
    ),
    (
        "few rows",
        &[
            "meta",
            "advice_texts",
            "leases",
            "rate_limits",
            "accounts",
            "api_keys",
            "idempotency_filters",
            "market_rates",
            "migration_turns",
            "pauses",
            "audit_tail",
            "operators",
            "operator_sessions",
            "operator_recovery_codes",
            "operator_identities",
            "sign_in_failures",
            "encryption_key_holders",
            "encryption_rotations",
        ],
    ),
];
/// These lead with `scope` and have a unique index over all accounts.
const UNIQUE_OVER_ACCOUNTS: &[&str] = &["refunds"];

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_callers_objects_can_be_partitioned_by_account() {
    let database = Database::fresh();
    let url = PostgresUrl::parse(&database.url()).expect("an address");
    Store::connect(&url, Clock::System, 4).await.expect("the schema").close().await;
    let leading = database.sql(
        "SELECT c.relname, a.attname FROM pg_class c JOIN pg_index i ON i.indrelid = c.oid AND \
         i.indisprimary \
         JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0] \
         WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace ORDER BY 1",
    );
    let tables = database.sql(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace \
     = 'public'::regnamespace",
    );
    assert_eq!(leading.len(), tables.len(), "a table has no primary key");
    let (by_scope, otherwise): (Vec<_>, Vec<_>) =
        leading.into_iter().partition(|row| row[1] == "scope");
    let found: BTreeSet<String> = otherwise.into_iter().map(|mut row| row.swap_remove(0)).collect();
    let listed: BTreeSet<String> = FOUND_OTHERWISE
        .iter()
        .flat_map(|(_, tables)| *tables)
        .map(|name| (*name).to_owned())
        .collect();
    assert_eq!(
        found, listed,
        "a table does not lead with scope, or does by now: say in docs/postgresql.md and here \
         what it is found by"
    );

    let partitioned = |table: &str| {
        try_sql(
            &database.url(),
            &format!(
                "CREATE TABLE {table}_spread (LIKE {table} INCLUDING ALL) PARTITION BY HASH (scope)"
            ),
        )
    };
    for row in &by_scope {
        let table = row[0].as_str();
        let outcome = partitioned(table);
        // A unique index that does not have the partitions' key is refused.
        assert_eq!(outcome.is_ok(), !UNIQUE_OVER_ACCOUNTS.contains(&table), "{table}: {outcome:?}");
    }
    assert!(by_scope.len() > UNIQUE_OVER_ACCOUNTS.len() + 5, "{by_scope:?}");
    assert!(
        partitioned("deposit_addresses").is_err(),
        "the control: its primary key is the address"
    );
}
