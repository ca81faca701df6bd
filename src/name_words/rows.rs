//! The rows of names' words.

use crate::kernel::{AnyId, ObjectKind, Scope, StoreError};
use crate::store::{self, Row, Tx, Value};
use crate::values;

/// Stores the words of a new person, with one statement.
pub fn insert(
    tx: &mut dyn Tx,
    scope: Scope,
    id: AnyId,
    words: &[String],
) -> Result<(), StoreError> {
    let rows: Vec<[Value<'_>; 4]> = words
        .iter()
        .map(|word| [word.as_bytes().into(), scope.into(), id.into(), id.kind.as_str().into()])
        .collect();
    store::insert_all(tx, "name_words", "word, scope, id, object", &rows)
}

/// Stores the words that the person does not have yet.
pub fn add(tx: &mut dyn Tx, scope: Scope, id: AnyId, words: &[String]) -> Result<(), StoreError> {
    for word in words {
        tx.execute(
            "INSERT INTO name_words (word, scope, id, object) VALUES (?1, ?2, ?3, ?4) ON CONFLICT \
             (word, scope, id) DO NOTHING",
            values![word.as_bytes(), scope, id, id.kind.as_str()],
        )?;
    }
    Ok(())
}

/// Persons who have, in their present name or an earlier one, a word that begins with `beginning`.
/// A person comes once for each such word. At most `rows_max` rows.
pub fn beginning_with(
    tx: &mut dyn Tx,
    beginning: &str,
    rows_max: i64,
) -> Result<Vec<(Scope, AnyId)>, StoreError> {
    let sql = "SELECT scope, id, object FROM name_words WHERE word >= ?1 AND word < ?2 ORDER BY \
               word, scope, id LIMIT ?3";
    let mut after = beginning.as_bytes().to_vec();
    // No byte of UTF-8 is 0xFF, so this sorts after every word that begins with `beginning`.
    after.push(0xFF);
    let read = |mut row: Row| Ok((row.scope()?, row.any_id()?));
    tx.rows(sql, values![beginning.as_bytes(), &after, rows_max])?.into_iter().map(read).collect()
}

/// The names of persons of one account and mode, from the first identifier after `after` on, for
/// the worker that adds missing words.
pub fn names_after(
    tx: &mut dyn Tx,
    kind: ObjectKind,
    scope: Scope,
    after: [u8; 16],
    rows_max: i64,
) -> Result<Vec<(AnyId, String)>, StoreError> {
    let sql = match kind {
        ObjectKind::Sender => {
            "SELECT id, name FROM senders WHERE scope = ?1 AND id > ?2 ORDER BY id LIMIT ?3"
        }
        _ => "SELECT id, name FROM beneficiaries WHERE scope = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
    };
    let read = |mut row: Row| Ok((row.id_of_kind(kind)?, row.text()?));
    tx.rows(sql, values![scope, &after, rows_max])?.into_iter().map(read).collect()
}
