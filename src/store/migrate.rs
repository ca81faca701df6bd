//! Migrations inside the binary, each run once, and the store's own facts in `meta`.

use super::Tx;
use crate::kernel::StoreError;
use crate::values;

/// Every schema this binary knows, oldest first. Append; never edit one that was released.
const MIGRATIONS: &[&str] = &[include_str!("../../migrations/0001_initial.sql")];

/// The schema this binary works with.
pub const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;

/// The schema a database has; 0 for an empty one.
pub fn schema_version(tx: &mut dyn Tx) -> Result<i64, StoreError> {
    let known = tx.row("SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'meta'", &[])?;
    if known.map_or(Ok(0), |mut row| row.int())? == 0 {
        return Ok(0);
    }
    match read_meta(tx, "schema_version")? {
        Some(bytes) => String::from_utf8(bytes)
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| StoreError::Broken("the database's schema version does not read".into())),
        None => Ok(0),
    }
}

/// Brings an older schema up to date and refuses a newer one.
pub fn migrate(tx: &mut dyn Tx) -> Result<(), StoreError> {
    let found = schema_version(tx)?;
    if found > SCHEMA_VERSION {
        return Err(StoreError::Broken(format!(
            "this database has schema {found}, newer than the {SCHEMA_VERSION} this hundi knows: start a newer hundi, or restore a backup made by this one"
        )));
    }
    for (index, text) in MIGRATIONS.iter().enumerate().skip(usize::try_from(found).unwrap_or(0)) {
        tx.execute("BEGIN IMMEDIATE", &[])?;
        for statement in statements(text) {
            tx.execute(&statement, &[])?;
        }
        write_meta(tx, "schema_version", (index + 1).to_string().as_bytes())?;
        tx.execute("COMMIT", &[])?;
    }
    Ok(())
}

/// The statements of a migration. Comments stand on lines of their own, and no text holds a semicolon.
fn statements(text: &str) -> Vec<String> {
    let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
    code.join("\n").split(';').map(|statement| statement.trim().to_owned()).filter(|statement| !statement.is_empty()).collect()
}

pub fn read_meta(tx: &mut dyn Tx, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
    tx.row("SELECT value FROM meta WHERE name = ?1", values![name])?.map(|mut row| row.bytes()).transpose()
}

pub fn write_meta(tx: &mut dyn Tx, name: &str, value: &[u8]) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        values![name, value],
    )?;
    Ok(())
}

/// Tables whose identifiers the minter must stay above, with their column and the column before it in the key.
const MINTED: &[(&str, &str, Option<&str>)] = &[
    ("beneficiaries", "id", Some("scope")),
    ("senders", "id", Some("scope")),
    ("quote_locks", "id", Some("scope")),
    ("transfers", "id", Some("scope")),
    ("deposits", "id", Some("scope")),
    ("payouts", "id", Some("scope")),
    ("refunds", "id", Some("scope")),
    ("events", "id", Some("scope")),
    ("webhook_endpoints", "id", Some("scope")),
    ("ledger_postings", "id", Some("scope")),
    ("idempotency_answers", "answer_id", None),
    ("outbox", "id", None),
    ("accounts", "id", None),
    ("bank_messages", "id", None),
    ("bank_statement_lines", "id", None),
];

/// The highest identifier in the store: one look at the end of each account's rows.
pub fn highest_id(tx: &mut dyn Tx) -> Result<u128, StoreError> {
    let mut highest = 0;
    for (table, column, leading) in MINTED {
        let sql = match leading {
            None => format!("SELECT MAX({column}) FROM {table}"),
            Some(leading) => format!(
                "SELECT MAX(id) FROM (SELECT (SELECT t.{column} FROM {table} t WHERE t.{leading} = s.scope ORDER BY t.{column} DESC LIMIT 1) AS id \
                 FROM (SELECT number * 2 AS scope FROM accounts UNION ALL SELECT number * 2 + 1 FROM accounts) s) ids"
            ),
        };
        let found = tx.row(&sql, &[])?.map(|mut row| row.bytes_or_null()).transpose()?.flatten();
        if let Some(id) = found.and_then(|bytes| <[u8; 16]>::try_from(bytes).ok()) {
            highest = highest.max(u128::from_be_bytes(id));
        }
    }
    Ok(highest)
}
