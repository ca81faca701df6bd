//! The rows of the audit log.

use super::{BEGINNING, Entry};
use crate::kernel::StoreError;
use crate::store::{Row, Tx, Value};
use crate::values;

const TAIL: &str = "log";
const COLUMNS: &str = "number, at_milliseconds, actor, via, action, subject, details, hash";

fn hash(row: &mut Row) -> Result<[u8; 32], StoreError> {
    let bytes = row.bytes()?;
    // A hash of another length matches nothing, and the check reports it.
    Ok(bytes.try_into().unwrap_or([0xFF; 32]))
}

fn read(mut row: Row) -> Result<Entry, StoreError> {
    Ok(Entry {
        number: row.int()?,
        at_milliseconds: row.int()?,
        actor: row.text()?,
        via: row.text()?,
        action: row.text()?,
        subject: row.text()?,
        details: row.text()?,
        hash: hash(&mut row)?,
    })
}

/// The tail: the last entry's number and hash, which are 0 and [`BEGINNING`] before the first
/// entry. Locks its row until the commit, so that no other transaction adds an entry meanwhile.
pub fn lock_tail(tx: &mut dyn Tx) -> Result<(i64, [u8; 32]), StoreError> {
    tx.execute(
        "INSERT INTO audit_tail (name, number, hash) VALUES (?1, 0, ?2) ON CONFLICT (name) DO \
         NOTHING",
        values![TAIL, &BEGINNING],
    )?;
    if tx.is_shared() {
        // Changes nothing, but locks the row. The embedded store has one writer and needs no lock.
        tx.execute_one("UPDATE audit_tail SET number = number WHERE name = ?1", values![TAIL])?;
    }
    tail(tx)?.ok_or_else(|| StoreError::Broken("the audit log's tail is gone".into()))
}

pub fn tail(tx: &mut dyn Tx) -> Result<Option<(i64, [u8; 32])>, StoreError> {
    let row = tx.row("SELECT number, hash FROM audit_tail WHERE name = ?1", values![TAIL])?;
    row.map(|mut row| Ok((row.int()?, hash(&mut row)?))).transpose()
}

/// Writes the entry and makes it the tail.
pub fn insert(tx: &mut dyn Tx, entry: &Entry) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO audit_log (number, at_milliseconds, actor, via, action, subject, details, \
         hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        values![
            entry.number,
            entry.at_milliseconds,
            &entry.actor,
            &entry.via,
            &entry.action,
            &entry.subject,
            &entry.details,
            &entry.hash
        ],
    )?;
    tx.execute_one(
        "UPDATE audit_tail SET number = ?2, hash = ?3 WHERE name = ?1",
        values![TAIL, entry.number, &entry.hash],
    )
}

/// Entries with a higher number, in order.
pub fn after(tx: &mut dyn Tx, number: i64, rows_max: i64) -> Result<Vec<Entry>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM audit_log WHERE number > ?1 ORDER BY number LIMIT ?2");
    tx.rows(&sql, values![number, rows_max])?.into_iter().map(read).collect()
}

/// Which entries [`sought`] looks for.
#[derive(Clone, Debug, Default)]
pub struct Sought {
    /// "" for everybody.
    pub actor: String,
    /// "" for everything.
    pub action: String,
    /// The lowest number.
    pub from: i64,
    /// The number after the highest.
    pub before: i64,
}

/// The entries that are sought, newest first. Each comes with the hash of the entry before it, or
/// with [`BEGINNING`] if its number is 1. The hash is `None` if the entry before is missing, or has
/// a hash that is not 32 bytes long.
pub fn sought(
    tx: &mut dyn Tx,
    sought: &Sought,
    rows_max: i64,
) -> Result<Vec<(Entry, Option<[u8; 32]>)>, StoreError> {
    let mut values: Vec<Value> = values![sought.from, sought.before, rows_max].to_vec();
    let mut conditions = String::new();
    for (column, wanted) in [("actor", &sought.actor), ("action", &sought.action)] {
        if !wanted.is_empty() {
            values.push(wanted.as_str().into());
            conditions.push_str(&format!(" AND e.{column} = ?{}", values.len()));
        }
    }
    let columns = COLUMNS.split(", ").map(|column| format!("e.{column}"));
    let columns = columns.collect::<Vec<_>>().join(", ");
    let sql = format!(
        "SELECT b.hash, {columns} FROM audit_log e LEFT JOIN audit_log b ON b.number = e.number - \
         1 WHERE e.number >= ?1 AND e.number < ?2{conditions} ORDER BY e.number DESC LIMIT ?3"
    );
    let read_both = |mut row: Row| {
        let bytes_before = row.bytes_or_null()?;
        let entry = read(row)?;
        let hash_before = match bytes_before {
            None if entry.number == 1 => Some(BEGINNING),
            None => None,
            Some(bytes) => bytes.try_into().ok(),
        };
        Ok((entry, hash_before))
    };
    tx.rows(&sql, &values)?.into_iter().map(read_both).collect()
}

/// The number of the first entry from a moment on; `None` if there is none yet.
pub fn first_since(tx: &mut dyn Tx, at_milliseconds: i64) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT number FROM audit_log WHERE at_milliseconds >= ?1 ORDER BY at_milliseconds, \
     number LIMIT 1";
    tx.row(sql, values![at_milliseconds])?.map(|mut row| row.int()).transpose()
}

/// Entries about one subject, oldest first.
pub fn of_subject(tx: &mut dyn Tx, subject: &str, rows_max: i64) -> Result<Vec<Entry>, StoreError> {
    let sql =
        format!("SELECT {COLUMNS} FROM audit_log WHERE subject = ?1 ORDER BY number LIMIT ?2");
    tx.rows(&sql, values![subject, rows_max])?.into_iter().map(read).collect()
}

/// The newest entry of an action.
pub fn newest_of(tx: &mut dyn Tx, action: &str) -> Result<Option<Entry>, StoreError> {
    let sql =
        format!("SELECT {COLUMNS} FROM audit_log WHERE action = ?1 ORDER BY number DESC LIMIT 1");
    tx.row(&sql, values![action])?.map(read).transpose()
}
