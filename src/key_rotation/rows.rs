//! The rows of a change of the encryption key, and the sealed values of every table.

use crate::kernel::seal::{RowKey, SealedPlace, StoredAt, Verifier};
use crate::kernel::{StoreError, hex};
use crate::store::{Row, Tx, meta};
use crate::values;

/// A change of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    pub number: i64,
    /// The verifier of the key before the change, and that of the key after it.
    pub old: Verifier,
    pub new: Verifier,
    pub started_at: i64,
    pub finished_at: Option<i64>,
    /// The place whose values are being sealed again; empty once all places are done.
    pub place: String,
    /// The key of the last row there that was done (`SealedRow::row_key`); empty before the first.
    pub after_row_key: Vec<u8>,
    /// Values sealed anew so far.
    pub values_count: i64,
}

const COLUMNS: &str = "number, old_verifier, new_verifier, started_at, finished_at, place, \
 after_key, values_count";

fn verifier(row: &mut Row) -> Result<Verifier, StoreError> {
    let bytes = row.bytes()?.try_into();
    bytes.map_err(|_| StoreError::Broken("a verifier is not 32 bytes long".into()))
}

fn read(mut row: Row) -> Result<Rotation, StoreError> {
    let row = &mut row;
    Ok(Rotation {
        number: row.int()?,
        old: verifier(row)?,
        new: verifier(row)?,
        started_at: row.int()?,
        finished_at: row.int_or_null()?,
        place: row.text()?,
        after_row_key: row.bytes()?,
        values_count: row.int()?,
    })
}

/// The newest change, which may be under way.
pub fn newest(tx: &mut dyn Tx) -> Result<Option<Rotation>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM encryption_rotations ORDER BY number DESC LIMIT 1");
    tx.row(&sql, &[])?.map(read).transpose()
}

/// The change that is under way.
pub fn running(tx: &mut dyn Tx) -> Result<Option<Rotation>, StoreError> {
    Ok(newest(tx)?.filter(|rotation| rotation.finished_at.is_none()))
}

pub fn insert(tx: &mut dyn Tx, rotation: &Rotation) -> Result<(), StoreError> {
    let sql = format!(
        "INSERT INTO encryption_rotations ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
    );
    tx.execute_one(
        &sql,
        values![
            rotation.number,
            &rotation.old,
            &rotation.new,
            rotation.started_at,
            rotation.finished_at,
            &rotation.place,
            &rotation.after_row_key,
            rotation.values_count,
        ],
    )
}

/// Stores the progress of a change; a conflict if the stored progress differs from that in `from`.
pub fn save_progress(
    tx: &mut dyn Tx,
    from: &Rotation,
    place: &str,
    after_row_key: &[u8],
    values_count: i64,
) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE encryption_rotations SET place = ?4, after_key = ?5, values_count = ?6 WHERE \
         number = ?1 AND place = ?2 AND after_key = ?3 AND finished_at IS NULL",
        values![from.number, &from.place, &from.after_row_key, place, after_row_key, values_count],
    )
}

/// Ends a change; `false` if it had ended before.
pub fn finish(tx: &mut dyn Tx, number: i64, finished_at: i64) -> Result<bool, StoreError> {
    let sql = "UPDATE encryption_rotations SET finished_at = ?2 WHERE number = ?1 AND finished_at \
     IS NULL";
    Ok(tx.execute(sql, values![number, finished_at])? == 1)
}

/// Records that a node runs, and, the first time, which keys it has.
pub fn put_holder(
    tx: &mut dyn Tx,
    node_id: &[u8; 16],
    name: &str,
    verifiers: &[u8],
    seen_milliseconds: i64,
) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO encryption_key_holders (node_id, name, verifiers, seen_milliseconds) VALUES \
         (?1, ?2, ?3, ?4) ON CONFLICT (node_id) DO UPDATE SET seen_milliseconds = ?4",
        values![node_id, name, verifiers, seen_milliseconds],
    )
}

pub fn remove_holder(tx: &mut dyn Tx, node_id: &[u8; 16]) -> Result<(), StoreError> {
    let sql = "DELETE FROM encryption_key_holders WHERE node_id = ?1";
    tx.execute(sql, values![node_id]).map(drop)
}

/// Forgets the nodes whose last record is from before a moment.
pub fn forget_holders(tx: &mut dyn Tx, before_milliseconds: i64) -> Result<(), StoreError> {
    let sql = "DELETE FROM encryption_key_holders WHERE seen_milliseconds < ?1";
    tx.execute(sql, values![before_milliseconds]).map(drop)
}

/// Nodes with a record since a moment, with the verifiers of their keys.
pub fn holders(
    tx: &mut dyn Tx,
    since_milliseconds: i64,
) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
    let sql = "SELECT name, verifiers FROM encryption_key_holders WHERE seen_milliseconds >= ?1 \
     ORDER BY name";
    let rows = tx.rows(sql, values![since_milliseconds])?;
    rows.into_iter().map(|mut row| Ok((row.text()?, row.bytes()?))).collect()
}

/// A row that may hold a sealed value.
pub struct SealedRow {
    /// The primary key of the row, as bytes. [`page`] continues after it; empty bytes stand for the
    /// beginning.
    pub row_key: Vec<u8>,
    /// What the value is bound to.
    pub id: Vec<u8>,
    pub sealed: Option<Vec<u8>>,
}

impl SealedRow {
    /// For people: the place, such as `beneficiaries.kyc`, and which row of it.
    pub fn label(&self, place: &SealedPlace) -> String {
        match place.at() {
            StoredAt::Meta => place.name().to_owned(),
            StoredAt::Column { .. } => {
                format!("{} {}", place.name(), hex::encode(&self.id).to_uppercase())
            }
        }
    }
}

/// The integer that a row's key begins with: a scope or a number. For empty bytes it is the lowest
/// one, so that a page begins with the first row.
fn first_integer(bytes: &[u8]) -> i64 {
    bytes.first_chunk().map_or(i64::MIN, |bytes| i64::from_be_bytes(*bytes))
}

/// The rows of a place after a key, in the order of their keys.
pub fn page(
    tx: &mut dyn Tx,
    place: &SealedPlace,
    after_row_key: &[u8],
    rows_max: i64,
) -> Result<Vec<SealedRow>, StoreError> {
    let (table, value, key) = match place.at() {
        StoredAt::Meta if !after_row_key.is_empty() => return Ok(Vec::new()),
        StoredAt::Meta => {
            let value = meta::read(tx, place.name())?;
            let row = |sealed| SealedRow { row_key: vec![1], id: Vec::new(), sealed: Some(sealed) };
            return Ok(value.map(row).into_iter().collect());
        }
        StoredAt::Column { table, value, key, .. } => (table, value, key),
    };
    // For `RowKey::ScopeAndId`: the identifier follows the 8 bytes of the scope.
    let after_id = after_row_key.get(8..).unwrap_or_default();
    let rows = match key {
        RowKey::ScopeAndId => tx.rows(
            &format!(
                "SELECT scope, id, {value} FROM {table} WHERE (scope, id) > (?1, ?2) ORDER BY \
                 scope, id LIMIT ?3"
            ),
            values![first_integer(after_row_key), after_id, rows_max],
        ),
        RowKey::Number => tx.rows(
            &format!(
                "SELECT number, {value} FROM {table} WHERE number > ?1 ORDER BY number LIMIT ?2"
            ),
            values![first_integer(after_row_key), rows_max],
        ),
        RowKey::AnswerId => tx.rows(
            &format!(
                "SELECT answer_id, {value} FROM {table} WHERE answer_id > ?1 ORDER BY answer_id \
                 LIMIT ?2"
            ),
            values![after_row_key, rows_max],
        ),
    };
    let read = |mut row: Row| {
        let (row_key, id) = match key {
            RowKey::ScopeAndId => {
                let (scope, id) = (row.int()?, row.bytes()?);
                ([scope.to_be_bytes().as_slice(), &id].concat(), id)
            }
            RowKey::Number => {
                let number = row.int()?.to_be_bytes().to_vec();
                (number.clone(), number)
            }
            RowKey::AnswerId => {
                let id = row.bytes()?;
                (id.clone(), id)
            }
        };
        Ok(SealedRow { row_key, id, sealed: row.bytes_or_null()? })
    };
    rows?.into_iter().map(read).collect()
}

/// Replaces a sealed value; `false` if it is no longer `old`. A row with a version gets a new one,
/// so that a writer that read the old value meets a conflict and reads again.
pub fn replace(
    tx: &mut dyn Tx,
    place: &SealedPlace,
    row: &SealedRow,
    old: &[u8],
    new: &[u8],
) -> Result<bool, StoreError> {
    let StoredAt::Column { table, column, key, is_versioned, .. } = place.at() else {
        let sql = "UPDATE meta SET value = ?3 WHERE name = ?1 AND value = ?2";
        return Ok(tx.execute(sql, values![place.name(), old, new])? == 1);
    };
    let version = if is_versioned { ", version = version + 1" } else { "" };
    let update = format!("UPDATE {table} SET {column} = ?1{version} WHERE {column} = ?2 AND");
    let changed = match key {
        RowKey::ScopeAndId => tx.execute(
            &format!("{update} scope = ?3 AND id = ?4"),
            values![new, old, first_integer(&row.row_key), &row.id],
        ),
        RowKey::Number => tx.execute(
            &format!("{update} number = ?3"),
            values![new, old, first_integer(&row.row_key)],
        ),
        RowKey::AnswerId => {
            tx.execute(&format!("{update} answer_id = ?3"), values![new, old, &row.id])
        }
    };
    Ok(changed? == 1)
}
