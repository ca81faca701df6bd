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

/// A file that a crash may have left unfinished.
#[derive(Clone, Debug)]
pub struct OpenMessage {
    pub id: MessageId,
    pub status: MessageStatus,
    /// The boot of the machine in which it was staged. After another boot a power cut may have
    /// undone the rename, so the outcome is unknown; see `workers::bank::publish`.
    pub boot: Option<String>,
}

fn open_message(mut row: Row) -> Result<OpenMessage, StoreError> {
    Ok(OpenMessage {
        id: MessageId(row.id()?),
        status: row.word(MessageStatus::parse)?,
        boot: row.text_or_null()?,
    })
}

pub fn message_begin(
    tx: &mut dyn Tx,
    now: &Now,
    id: MessageId,
    instructions_count: i64,
    units: i64,
) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO bank_messages (id, status, sha256, boot, instructions_count, units, created, \
         published_at) \
         VALUES (?1, 'writing', NULL, NULL, ?2, ?3, ?4, NULL)",
        values![id.0, instructions_count, units, now.instant()],
    )
}

/// Notes that a file stands durably in `staging`, of which contents and in which boot.
pub fn message_staged(
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

/// Ends a file and takes its instructions along: `Published`, `Abandoned` (they are queued again)
/// or `Unknown`. `false`, and nothing is changed, if it is no longer in the status that this was
/// concluded from.
pub fn message_end(
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

pub fn message_find(tx: &mut dyn Tx, id: MessageId) -> Result<Option<OpenMessage>, StoreError> {
    tx.row("SELECT id, status, boot FROM bank_messages WHERE id = ?1", values![id.0])?
        .map(open_message)
        .transpose()
}

/// Files that were begun and neither published nor given up.
pub fn messages_open(tx: &mut dyn Tx, rows_max: i64) -> Result<Vec<OpenMessage>, StoreError> {
    let sql = "SELECT id, status, boot FROM bank_messages WHERE status IN ('writing', 'staged') \
     ORDER BY id LIMIT ?1";
    tx.rows(sql, values![rows_max])?.into_iter().map(open_message).collect()
}
