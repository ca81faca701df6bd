//! Migrations inside the binary, each run once.

use std::borrow::Cow;

use super::{Tx, failpoint, meta};
use crate::kernel::{ObjectKind, StoreError};

/// Every migration that this binary knows, oldest first: the files of `migrations/`, which the
/// build finds. The version of a database's schema is how many of them have run there. Never edit a
/// statement of a migration that was released; add a file.
const MIGRATIONS: &[&str] = include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

/// [`MIGRATIONS`], and with debug assertions also the file that `HUNDI_TEST_MIGRATION` names. With
/// such a file, tests run this binary as the next release.
fn migrations() -> Vec<Cow<'static, str>> {
    let mut all: Vec<Cow<'static, str>> =
        MIGRATIONS.iter().map(|text| Cow::Borrowed(*text)).collect();
    if cfg!(debug_assertions)
        && let Ok(path) = std::env::var("HUNDI_TEST_MIGRATION")
    {
        all.extend(std::fs::read_to_string(path).map(Cow::Owned));
    }
    all
}

/// The schema this binary works with.
pub fn schema_known() -> i64 {
    migrations().len() as i64
}

/// On PostgreSQL, an older binary may go on working with a database that this one has migrated, if
/// the older one knows at least this schema. A migration that only adds leaves the number as it is.
/// A migration that removes something raises the number. It may come only one release after the
/// code stopped using what is removed.
const SCHEMA_OLDEST_COMPATIBLE: i64 = 1;

/// The schema a database has; 0 for an empty one.
pub fn schema_version(tx: &mut dyn Tx) -> Result<i64, StoreError> {
    let tables = if tx.is_shared() {
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = CURRENT_SCHEMA() AND \
         table_name = 'meta'"
    } else {
        "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'meta'"
    };
    if tx.row(tables, &[])?.map_or(Ok(0), |mut row| row.int())? == 0 {
        return Ok(0);
    }
    Ok(version(tx, SCHEMA)?.unwrap_or(0))
}

const SCHEMA: &str = "schema_version";
/// [`SCHEMA_OLDEST_COMPATIBLE`] of the newest binary that migrated this database.
const SCHEMA_COMPATIBLE: &str = "schema_version_beside";
/// How many statements of the next migration have run already.
const SCHEMA_STEPS: &str = "schema_steps";

fn version(tx: &mut dyn Tx, name: &str) -> Result<Option<i64>, StoreError> {
    let Some(bytes) = meta::read(tx, name)? else { return Ok(None) };
    let number = String::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
    number
        .map(Some)
        .ok_or_else(|| StoreError::Broken("the database's schema version cannot be read".into()))
}

/// The migrations that a database still needs, or why this binary cannot work with it.
fn missing(
    tx: &mut dyn Tx,
    found: i64,
) -> Result<impl Iterator<Item = (usize, Cow<'static, str>)> + use<>, StoreError> {
    let known = schema_known();
    // Only on PostgreSQL can an older binary work beside a newer one.
    let is_too_new = found > known
        && (!tx.is_shared() || version(tx, SCHEMA_COMPATIBLE)?.unwrap_or(found) > known);
    if is_too_new {
        return Err(StoreError::Unfit(format!(
            "this database has schema {found}, newer than the {known} this hundi knows: start a \
             newer hundi, or restore a backup made by this one"
        )));
    }
    Ok(migrations().into_iter().enumerate().skip(usize::try_from(found).unwrap_or(0)))
}

/// Refuses a database that this binary cannot work with, and changes nothing.
pub fn check_known(tx: &mut dyn Tx) -> Result<(), StoreError> {
    let found = schema_version(tx)?;
    missing(tx, found).map(drop)
}

/// Stores that the migration at this index has run, and which binaries can work beside it.
fn write_version(tx: &mut dyn Tx, index: usize) -> Result<(), StoreError> {
    meta::write(tx, SCHEMA, (index + 1).to_string().as_bytes())?;
    meta::write(tx, SCHEMA_COMPATIBLE, SCHEMA_OLDEST_COMPATIBLE.to_string().as_bytes())
}

/// Brings an older schema of the embedded store up to date. `Err` for a newer schema.
pub fn migrate(tx: &mut dyn Tx) -> Result<(), StoreError> {
    let found = schema_version(tx)?;
    for (index, text) in missing(tx, found)? {
        tx.execute("BEGIN IMMEDIATE", &[])?;
        for statement in statements(&text) {
            tx.execute(&statement, &[])?;
        }
        write_version(tx, index)?;
        tx.execute("COMMIT", &[])?;
    }
    Ok(())
}

/// How long a migration waits for a table that nodes use. Requests wait behind the migration, so
/// this is well below the time for which a request waits for a row. The caller tries again after a
/// pause.
const TABLE_LOCK_MILLISECONDS_MAX: u64 = 500;

/// Makes nodes take turns before there is a table with a row to lock. Without it, nodes that create
/// one table at the same moment can fail with 42P07 or 42710, in spite of `IF NOT EXISTS`. The key
/// is made up, so that other programs' keys differ.
const TURN: &str = "SELECT pg_advisory_xact_lock(114853572536653)";

/// Runs the next step of a migration on PostgreSQL, and answers whether there is more to do. Nodes
/// take turns by a lock, and by a row that earlier releases lock too.
///
/// An empty database gets all migrations in one step. Any other database gets one statement in each
/// step: a transaction that held one table and waited for the next could deadlock with requests
/// that lock the two in the other order.
pub fn migrate_shared(tx: &mut dyn Tx) -> Result<bool, StoreError> {
    // A schema that is up to date is left alone. So a node can serve even if its database role may
    // not change the schema.
    let found = schema_version(tx)?;
    if found >= schema_known() {
        return missing(tx, found).map(|_| false);
    }
    tx.execute(TURN, &[])?;
    tx.execute(
        "CREATE TABLE IF NOT EXISTS migration_turns (turn BIGINT NOT NULL PRIMARY KEY, \
     nodes_count BIGINT NOT NULL)",
        &[],
    )?;
    tx.execute(
        "INSERT INTO migration_turns (turn, nodes_count) VALUES (1, 0) ON CONFLICT (turn) \
     DO NOTHING",
        &[],
    )?;
    tx.execute("UPDATE migration_turns SET nodes_count = nodes_count + 1 WHERE turn = 1", &[])?;
    let found = schema_version(tx)?;
    let mut missing = missing(tx, found)?;
    if found == 0 {
        for (index, text) in missing {
            statements_shared(index, &text)
                .iter()
                .try_for_each(|statement| tx.execute(statement, &[]).map(drop))?;
            write_version(tx, index)?;
        }
        return Ok(false);
    }
    let Some((index, text)) = missing.next() else { return Ok(false) };
    let statements = statements_shared(index, &text);
    let done_count = version(tx, SCHEMA_STEPS)?.unwrap_or(0);
    if let Some(statement) = usize::try_from(done_count).ok().and_then(|done| statements.get(done))
    {
        if !failpoint("migration_waits_for_tables") {
            tx.execute(
                &format!("SET LOCAL lock_timeout = '{TABLE_LOCK_MILLISECONDS_MAX}ms'"),
                &[],
            )?;
        }
        tx.execute(statement, &[])?;
        meta::write(tx, SCHEMA_STEPS, (done_count + 1).to_string().as_bytes())?;
    } else {
        write_version(tx, index)?;
        meta::write(tx, SCHEMA_STEPS, b"0")?;
    }
    Ok(true)
}

/// The statements of a migration on PostgreSQL.
fn statements_shared(index: usize, text: &str) -> Vec<String> {
    let own = SHARED_ONLY
        .iter()
        .filter(|(number, _)| *number == index + 1)
        .flat_map(|(_, statements)| *statements);
    let all = statements(text).iter().map(|statement| for_shared(statement)).collect::<Vec<_>>();
    all.into_iter().chain(own.map(|statement| (*statement).to_owned())).collect()
}

/// Further statements of a migration on PostgreSQL, by the migration's number (from 1).
///
/// - Outbox rows get their numbers (`place`) from a sequence, because transactions would wait for
///   a row with a counter. A transaction that has read what another one wrote gets higher numbers
///   than the other.
/// - If each account has one row when `ANALYZE` runs, the planner later expects to find one row by
///   `scope` alone, and reads all rows of an account. With `n_distinct = 1` it expects that all
///   rows have the same `scope`, and uses the index over the column that a list is filtered by.
const SHARED_ONLY: &[(usize, &[&str])] = &[
    (
        1,
        &[
            "CREATE SEQUENCE outbox_places",
            "ALTER TABLE outbox ALTER COLUMN place SET DEFAULT nextval('outbox_places')",
            "CREATE INDEX outbox_place ON outbox (place, id)",
        ],
    ),
    (
        6,
        &[
            "ALTER TABLE events ALTER COLUMN scope SET (n_distinct = 1)",
            "ALTER TABLE transfers ALTER COLUMN scope SET (n_distinct = 1)",
            "ALTER TABLE deposits ALTER COLUMN scope SET (n_distinct = 1)",
            "ALTER TABLE payouts ALTER COLUMN scope SET (n_distinct = 1)",
            "ALTER TABLE refunds ALTER COLUMN scope SET (n_distinct = 1)",
            "ALTER TABLE screening_hits ALTER COLUMN scope SET (n_distinct = 1)",
        ],
    ),
];

/// A statement of a migration for PostgreSQL, where texts compare byte by byte, as they do in
/// SQLite.
fn for_shared(statement: &str) -> String {
    statement.replace(" WITHOUT ROWID", "").replace(" TEXT", " TEXT COLLATE \"C\"")
}

/// The statements of a migration. Comments have lines of their own, and no string contains a
/// semicolon.
fn statements(text: &str) -> Vec<String> {
    let code: Vec<&str> =
        text.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
    code.join("\n")
        .split(';')
        .map(|statement| statement.trim().to_owned())
        .filter(|statement| !statement.is_empty())
        .collect()
}

/// Further tables, beside those of callers' objects, whose identifiers the minter must stay above:
/// the table, the identifier's column, and the column before it in the key.
const MINTED: &[(&str, &str, Option<&str>)] = &[
    ("ledger_postings", "id", Some("scope")),
    ("idempotency_answers", "answer_id", None),
    ("outbox", "id", None),
    ("accounts", "id", None),
    ("bank_messages", "id", None),
    ("bank_statement_lines", "id", None),
];

/// The highest identifier in the tables of callers' objects and in [`MINTED`]. Of a table with
/// scopes it reads only the last row of each scope; of a table without scopes, only the last row.
pub fn highest_id(tx: &mut dyn Tx) -> Result<u128, StoreError> {
    let mut highest = 0;
    let objects = ObjectKind::ALL.iter().filter_map(|kind| kind.table());
    let objects = objects.map(|table| (table, "id", Some("scope")));
    for (table, column, leading) in objects.chain(MINTED.iter().copied()) {
        // An account's scopes are twice its number, and one more than that: see `Scope::code`.
        let sql = match leading {
            None => format!("SELECT {column} FROM {table} ORDER BY {column} DESC LIMIT 1"),
            Some(leading) => format!(
                "SELECT id FROM (SELECT (SELECT t.{column} FROM {table} t WHERE t.{leading} = \
                 s.scope ORDER BY t.{column} DESC LIMIT 1) AS id \
                 FROM (SELECT number * 2 AS scope FROM accounts UNION ALL SELECT number * 2 + 1 \
                 FROM accounts) s) ids \
                 WHERE id IS NOT NULL ORDER BY id DESC LIMIT 1"
            ),
        };
        let found = tx.row(&sql, &[])?.map(|mut row| row.bytes_or_null()).transpose()?.flatten();
        if let Some(id) = found.and_then(|bytes| <[u8; 16]>::try_from(bytes).ok()) {
            highest = highest.max(u128::from_be_bytes(id));
        }
    }
    Ok(highest)
}
