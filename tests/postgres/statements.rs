//! Every statement that ran anywhere in the tests is prepared on both stores: the text of SQL is
//! one.

use std::collections::BTreeSet;

use hundi::store::migrate;
use hundi::store::sqlite::SqliteTx;

use crate::support::postgres::Database;

/// What belongs to one store alone: facts about its own tables, and what steers its transactions.
const OF_ONE_STORE: &[&str] = &[
    "PRAGMA ",
    "sqlite_master",
    "sqlite_schema",
    "information_schema",
    "clock_timestamp()",
    "pg_",
    "current_setting(",
    "SHOW ",
    "BEGIN",
    "COMMIT",
    "migration_turns",
    "FOR UPDATE",
    "FOR SHARE",
    "LATERAL",
    "ctid",
];
/// What only tests write: damage that they plant, with bytes and tables of their own, and looks at
/// plans.
const OF_TESTS: &[&str] =
    &["x'", "kept_", "_gone", "effects", "children", "EXPLAIN", "hex(", "ALTER TABLE"];
/// Statements there are at least once the suites have run.
const STATEMENTS_COUNT_MIN: usize = 250;

/// test.sh runs this after the suites; the folder that it names holds what they ran.
#[tokio::test]
#[ignore = "needs HUNDI_TEST_STATEMENTS, a folder with what the other tests ran"]
async fn every_statement_prepares_on_both_stores() {
    let folder =
        std::env::var("HUNDI_TEST_STATEMENTS").expect("HUNDI_TEST_STATEMENTS names a folder");
    let mut statements = BTreeSet::new();
    for file in std::fs::read_dir(folder).expect("the folder") {
        let text =
            std::fs::read_to_string(file.expect("a file").path()).expect("a file of statements");
        statements.extend(text.lines().map(str::to_owned));
    }
    statements.retain(|sql| {
        !OF_ONE_STORE.iter().chain(OF_TESTS).any(|mark| sql.contains(mark))
            // The schema's own, which either store has had by now.
            && !sql.starts_with("CREATE ")
            && !sql.starts_with("DROP INDEX ")
    });
    assert!(
        statements.len() >= STATEMENTS_COUNT_MIN,
        "only {} statements were noted: run the suites first",
        statements.len()
    );

    let embedded = rusqlite::Connection::open_in_memory().expect("a database");
    migrate::migrate(&mut SqliteTx::new(&embedded)).expect("the schema");
    let database = Database::fresh();
    let url = hundi::store::postgres::PostgresUrl::parse(&database.url()).expect("an address");
    let store = hundi::store::Store::connect(&url, hundi::kernel::Clock::System, 4)
        .await
        .expect("the schema");
    store.close().await;
    let (client, connection) = tokio_postgres::connect(&database.url(), tokio_postgres::NoTls)
        .await
        .expect("a connection");
    tokio::spawn(connection);

    // The control: a statement of one dialect alone is noticed on the other.
    assert!(embedded.prepare("SELECT hex(id) FROM transfers").is_ok());
    assert!(client.prepare("SELECT hex(id) FROM transfers").await.is_err());

    let mut faults = Vec::new();
    for sql in &statements {
        if let Err(error) = embedded.prepare(sql) {
            faults.push(format!("SQLite: {error}: {sql}"));
        }
        if let Err(error) = client.prepare(&sql.replace('?', "$")).await {
            faults.push(format!(
                "PostgreSQL: {}: {sql}",
                error.as_db_error().map_or("?", |error| error.message())
            ));
        }
    }
    assert!(
        faults.is_empty(),
        "{} of {} statements:\n{}",
        faults.len(),
        statements.len(),
        faults.join("\n")
    );
    println!("{} statements", statements.len());
}
