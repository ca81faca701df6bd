//! Facts about the database and the service: the table `meta`, a value of bytes for each name.

use super::Tx;
use crate::kernel::StoreError;
use crate::values;

const READ: &str = "SELECT value FROM meta WHERE name = ?1";

/// Announces that [`read`] of this name follows.
pub fn prefetch(tx: &mut dyn Tx, name: &str) -> Result<(), StoreError> {
    tx.prefetch(READ, values![name])
}

pub fn read(tx: &mut dyn Tx, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
    tx.row(READ, values![name])?.map(|mut row| row.bytes()).transpose()
}

/// The names of the facts that match a `LIKE` pattern.
pub fn names(tx: &mut dyn Tx, pattern: &str) -> Result<Vec<String>, StoreError> {
    tx.rows("SELECT name FROM meta WHERE name LIKE ?1 ORDER BY name", values![pattern])?
        .into_iter()
        .map(|mut row| row.text())
        .collect()
}

pub fn write(tx: &mut dyn Tx, name: &str, value: &[u8]) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = \
         excluded.value",
        values![name, value],
    )?;
    Ok(())
}

pub fn remove(tx: &mut dyn Tx, name: &str) -> Result<(), StoreError> {
    tx.execute("DELETE FROM meta WHERE name = ?1", values![name]).map(drop)
}

/// Writes a fact in place of `old`, the value that was read before (`None` if there was none). A
/// conflict if another writer has changed the fact since.
pub fn replace(
    tx: &mut dyn Tx,
    name: &str,
    old: Option<&[u8]>,
    new: &[u8],
) -> Result<(), StoreError> {
    match old {
        Some(old) => tx.execute_one(
            "UPDATE meta SET value = ?3 WHERE name = ?1 AND value = ?2",
            values![name, old, new],
        ),
        None => {
            tx.execute_one("INSERT INTO meta (name, value) VALUES (?1, ?2)", values![name, new])
        }
    }
}
