//! Files that were written for the bank.

use super::instructions::InstructionStatus;
use crate::kernel::{Now, StoreError};
use crate::rails::files::values::MessageId;
use crate::store::{Row, Tx};
use crate::values;

crate::string_enum!(
    /// How far a file for the bank has come.
    MessageStatus {
        Writing "writing",
        Staged "staged",
        Published "published",
        Abandoned "abandoned",
        Unknown "unknown",
    }
);

/// A file for the bank, as the journal has it.
#[derive(Clone, Debug)]
pub struct Message {
    pub id: MessageId,
    pub status: MessageStatus,
    /// The boot of the machine during which it was staged; `workers::bank::publish` says what for.
    pub boot: Option<String>,
    /// Its name in the folders; `None` for files of earlier versions.
    pub file_name: Option<String>,
}

fn read_message(mut row: Row) -> Result<Message, StoreError> {
    Ok(Message {
        id: MessageId(row.id()?),
        status: row.word(MessageStatus::parse)?,
        boot: row.text_or_null()?,
        file_name: row.text_or_null()?,
    })
}

/// Adds a file for the bank with the status `writing`; `units` is its total in paise.
pub fn begin_message(
    tx: &mut dyn Tx,
    now: &Now,
    id: MessageId,
    file_name: &str,
    instructions_count: i64,
    units: i64,
) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO bank_messages (id, status, sha256, boot, instructions_count, units, created, \
         published_at, file_name) \
         VALUES (?1, 'writing', NULL, NULL, ?2, ?3, ?4, NULL, ?5)",
        values![id.0, instructions_count, units, now.instant(), file_name],
    )
}

/// Takes the next number of a series of file names, at least `first`. The series never gives a
/// number again, even if the file is abandoned.
pub fn next_file_number(tx: &mut dyn Tx, series: &str, first: i64) -> Result<i64, StoreError> {
    let sql = "INSERT INTO bank_file_numbers (series, last_number) VALUES (?1, ?2) ON CONFLICT \
     (series) DO UPDATE SET last_number = CASE WHEN bank_file_numbers.last_number < ?2 THEN ?2 \
     ELSE bank_file_numbers.last_number + 1 END RETURNING last_number";
    let row = tx.row(sql, values![series, first])?;
    row.ok_or_else(|| StoreError::Broken("a file number was not kept".into()))?.int()
}

/// Notes that a file is durably in `staging`, with the hash of its contents and the machine's
/// boot.
pub fn stage_message(
    tx: &mut dyn Tx,
    id: MessageId,
    sha256: &[u8; 32],
    boot: Option<&str>,
) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE bank_messages SET status = 'staged', sha256 = ?2, boot = ?3 WHERE id = ?1 AND \
         status IN ('writing', 'staged')",
        values![id.0, sha256, boot],
    )
}

/// Ends a file with the status `Published`, `Abandoned` or `Unknown`. Its instructions become
/// published or unknown too; those of an abandoned file are queued again. `false`, and nothing
/// changes, if the file's status is not `from`.
pub fn end_message(
    tx: &mut dyn Tx,
    now: &Now,
    id: MessageId,
    from: MessageStatus,
    status: MessageStatus,
) -> Result<bool, StoreError> {
    let is_published = status == MessageStatus::Published;
    let changed = tx.execute(
        "UPDATE bank_messages SET status = ?3, published_at = ?4 WHERE id = ?1 AND status = ?2",
        values![id.0, from.as_str(), status.as_str(), is_published.then(|| now.instant())],
    )?;
    if changed == 0 {
        return Ok(false);
    }
    let (to, kept_id) = match status {
        MessageStatus::Published => (InstructionStatus::Published, Some(id.0)),
        MessageStatus::Abandoned => (InstructionStatus::Queued, None),
        _ => (InstructionStatus::Unknown, Some(id.0)),
    };
    tx.execute(
        "UPDATE bank_instructions SET status = ?2, message_id = ?3, published_at = COALESCE(?4, \
         published_at) WHERE message_id = ?1 AND status IN ('writing', 'published')",
        values![id.0, to.as_str(), kept_id, is_published.then(|| now.instant())],
    )?;
    Ok(true)
}

pub fn find_message(tx: &mut dyn Tx, id: MessageId) -> Result<Option<Message>, StoreError> {
    let sql = "SELECT id, status, boot, file_name FROM bank_messages WHERE id = ?1";
    tx.row(sql, values![id.0])?.map(read_message).transpose()
}

/// The newest file of this name. A name that has a day without a year can recur.
pub fn message_named(tx: &mut dyn Tx, name: &str) -> Result<Option<Message>, StoreError> {
    let sql = "SELECT id, status, boot, file_name FROM bank_messages WHERE file_name = ?1 \
     ORDER BY id DESC LIMIT 1";
    tx.row(sql, values![name])?.map(read_message).transpose()
}

/// Files with the status `writing` or `staged`. A crash, for example, leaves such files behind.
pub fn open_messages(tx: &mut dyn Tx, rows_max: i64) -> Result<Vec<Message>, StoreError> {
    let sql = "SELECT id, status, boot, file_name FROM bank_messages WHERE status IN ('writing', \
     'staged') ORDER BY id LIMIT ?1";
    tx.rows(sql, values![rows_max])?.into_iter().map(read_message).collect()
}
