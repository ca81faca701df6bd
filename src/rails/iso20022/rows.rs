//! The rows of the bank's journal: what was written for it, and what it said.

use super::reports::{AccountReport, Line, ReportKind, Sign};
use super::values::MessageId;
use crate::kernel::id::kind;
use crate::kernel::{Id, Money, Now, Scope, StoreError};
use crate::rails::{Instruction, Method};
use crate::store::{Row, Tx};
use crate::values;

crate::string_enum!(
    /// How far an instruction has come. `withdrawn` will never be sent: the payout ended before, or
    /// could not be written. Of an `unknown` one nobody can tell whether the bank saw it: it is the
    /// operator's, and never sent again.
    InstructionStatus {
        Queued "queued",
        Writing "writing",
        Published "published",
        Withdrawn "withdrawn",
        Unknown "unknown",
    }
);
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
crate::string_enum!(
    /// How far a file from the bank has come.
    FileStatus { Reading "reading", Applied "applied" }
);
crate::string_enum!(
    /// What a line of a statement belongs to.
    Matching {
        Payout "payout",
        NoReference "no_reference",
        UnknownReference "unknown_reference",
        AmountDiffers "amount_differs",
        Reversal "reversal",
    }
);

/// An instruction as the journal has it.
#[derive(Clone, Debug)]
pub struct Journalled {
    pub payout_id: Id<kind::Payout>,
    pub scope: Scope,
    pub units: i64,
    pub method: Method,
    pub status: InstructionStatus,
}

const INSTRUCTION_COLUMNS: &str = "payout_id, scope, units, method, status";

fn journalled(mut row: Row) -> Result<Journalled, StoreError> {
    Ok(Journalled {
        payout_id: row.id()?,
        scope: row.scope()?,
        units: row.int()?,
        method: row.word(Method::parse)?,
        status: row.word(InstructionStatus::parse)?,
    })
}

/// Writes down that a payout is to be sent. A second time for the same payout is refused by the
/// key.
pub fn queue(tx: &mut dyn Tx, now: &Now, instruction: &Instruction) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO bank_instructions (payout_id, scope, units, method, status, message_id, \
         published_at, is_answered, reference, created) \
         VALUES (?1, ?2, ?3, ?4, 'queued', NULL, NULL, FALSE, NULL, ?5)",
        values![
            instruction.payout_id,
            instruction.scope,
            instruction.amount.units,
            instruction.method.as_str(),
            now.instant()
        ],
    )
}

pub fn find(
    tx: &mut dyn Tx,
    payout_id: Id<kind::Payout>,
) -> Result<Option<Journalled>, StoreError> {
    let sql = format!("SELECT {INSTRUCTION_COLUMNS} FROM bank_instructions WHERE payout_id = ?1");
    tx.row(&sql, values![payout_id])?.map(journalled).transpose()
}

/// Instructions that wait for a file, oldest first.
pub fn queued(tx: &mut dyn Tx, rows_max: i64) -> Result<Vec<Journalled>, StoreError> {
    let sql = format!(
        "SELECT {INSTRUCTION_COLUMNS} FROM bank_instructions WHERE status = 'queued' ORDER BY \
         payout_id LIMIT ?1"
    );
    tx.rows(&sql, values![rows_max])?.into_iter().map(journalled).collect()
}

/// The instructions of one file.
pub fn of_message(tx: &mut dyn Tx, message_id: MessageId) -> Result<Vec<Journalled>, StoreError> {
    let sql = format!(
        "SELECT {INSTRUCTION_COLUMNS} FROM bank_instructions WHERE message_id = ?1 ORDER BY \
         payout_id"
    );
    tx.rows(&sql, values![message_id.0])?.into_iter().map(journalled).collect()
}

/// Takes an instruction from one status to the next; another status than `from` is a conflict.
pub fn advance(
    tx: &mut dyn Tx,
    payout_id: Id<kind::Payout>,
    from: InstructionStatus,
    to: InstructionStatus,
    message_id: Option<MessageId>,
) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE bank_instructions SET status = ?3, message_id = ?4 WHERE payout_id = ?1 AND \
         status = ?2",
        values![payout_id, from.as_str(), to.as_str(), message_id.map(|id| id.0)],
    )
}

/// Takes a queued instruction back for good. `false` if it is not queued any more, or never was.
pub fn withdraw(tx: &mut dyn Tx, payout_id: Id<kind::Payout>) -> Result<bool, StoreError> {
    let sql = "UPDATE bank_instructions SET status = 'withdrawn' WHERE payout_id = ?1 AND status \
     = 'queued'";
    Ok(tx.execute(sql, values![payout_id])? == 1)
}

/// Notes that the bank has said something final about an instruction, and the first reference that
/// it gave.
pub fn answer(
    tx: &mut dyn Tx,
    payout_id: Id<kind::Payout>,
    reference: Option<&str>,
) -> Result<(), StoreError> {
    let sql = "UPDATE bank_instructions SET is_answered = TRUE, reference = COALESCE(reference, \
     ?2) WHERE payout_id = ?1";
    tx.execute(sql, values![payout_id, reference])?;
    Ok(())
}

/// The payout that was settled under a reference; `None` as well if there are two, because neither
/// is surer.
pub fn settled_under(
    tx: &mut dyn Tx,
    reference: &str,
) -> Result<Option<Id<kind::Payout>>, StoreError> {
    let mut rows = tx.rows(
        "SELECT payout_id FROM bank_instructions WHERE reference = ?1 LIMIT 2",
        values![reference],
    )?;
    match (rows.pop(), rows.pop()) {
        (Some(mut row), None) => row.id().map(Some),
        _ => Ok(None),
    }
}

/// Instructions that were published before a moment and have had no final word.
pub fn unanswered(
    tx: &mut dyn Tx,
    before: i64,
    rows_max: i64,
) -> Result<Vec<Journalled>, StoreError> {
    let sql = format!(
        "SELECT {INSTRUCTION_COLUMNS} FROM bank_instructions WHERE status = 'published' AND NOT \
         is_answered AND published_at < ?1 \
         ORDER BY published_at LIMIT ?2"
    );
    tx.rows(&sql, values![before, rows_max])?.into_iter().map(journalled).collect()
}

/// A file that a crash may have left unfinished.
#[derive(Clone, Debug)]
pub struct OpenMessage {
    pub id: MessageId,
    pub status: MessageStatus,
    /// The boot of the machine in which it was staged.
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
        "UPDATE bank_instructions SET status = ?2, message_id = ?3, published_at = ?4 WHERE \
         message_id = ?1 AND status IN ('writing', 'published')",
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

/// What became of the reports of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Changed a payout.
    pub applied: i64,
    /// Said nothing new.
    pub ignored: i64,
    /// Named no payment of ours, or not with its amount.
    pub unknown: i64,
}

pub fn file_status(tx: &mut dyn Tx, sha256: &[u8; 32]) -> Result<Option<FileStatus>, StoreError> {
    let row = tx.row("SELECT status FROM bank_files WHERE sha256 = ?1", values![sha256])?;
    row.map(|mut row| row.word(FileStatus::parse)).transpose()
}

/// Whether another file of the same kind had this identity.
pub fn is_message_known(
    tx: &mut dyn Tx,
    kind: ReportKind,
    message_id: &str,
) -> Result<bool, StoreError> {
    let sql = "SELECT sha256 FROM bank_files WHERE kind = ?1 AND message_id = ?2";
    Ok(tx.row(sql, values![kind.as_str(), message_id])?.is_some())
}

pub fn file_begin(
    tx: &mut dyn Tx,
    now: &Now,
    sha256: &[u8; 32],
    kind: ReportKind,
    message_id: &str,
) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO bank_files (sha256, kind, message_id, status, applied_count, ignored_count, \
         unknown_count, received_at) \
         VALUES (?1, ?2, ?3, 'reading', 0, 0, 0, ?4)",
        values![sha256, kind.as_str(), message_id, now.instant()],
    )
}

pub fn file_end(tx: &mut dyn Tx, sha256: &[u8; 32], counts: Counts) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE bank_files SET status = 'applied', applied_count = ?2, ignored_count = ?3, \
         unknown_count = ?4 WHERE sha256 = ?1",
        values![sha256, counts.applied, counts.ignored, counts.unknown],
    )
}

/// Keeps a statement's head. Once for each place in a file, however often it is read.
pub fn statement(
    tx: &mut dyn Tx,
    sha256: &[u8; 32],
    number: i64,
    report: &AccountReport,
) -> Result<(), StoreError> {
    let (opening, closing) = (report.opening, report.closing);
    let text =
        |balance: Option<(Money, super::values::Day)>| balance.map(|(_, day)| day.to_string());
    tx.execute(
        "INSERT INTO bank_statements (sha256, number, statement_id, sequence, opening_units, \
         opening_day, closing_units, closing_day) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (sha256, number) DO NOTHING",
        values![
            sha256,
            number,
            &report.id,
            report.sequence,
            opening.map(|(money, _)| money.units),
            &text(opening),
            closing.map(|(money, _)| money.units),
            &text(closing),
        ],
    )?;
    Ok(())
}

/// Where a line stands: its file, its statement in the file, and its number in the file.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub sha256: [u8; 32],
    pub statement_number: i64,
    pub number: i64,
}

/// Keeps a line; `false` if this place was kept before.
pub fn line(
    tx: &mut dyn Tx,
    now: &mut Now,
    place: &Place,
    line: &Line,
    matching: Matching,
    payout: Option<&Journalled>,
) -> Result<bool, StoreError> {
    let id: Id<kind::Request> = now.mint();
    let reference = match payout {
        Some(payout) => line.references.utr(payout.method).map(|utr| utr.as_str().to_owned()),
        None => None,
    };
    let reference = reference
        .or_else(|| line.foreign_reference.clone())
        .or_else(|| line.references.shown().map(str::to_owned));
    let changed = tx.execute(
        "INSERT INTO bank_statement_lines (id, sha256, statement_number, number, booking_day, \
         value_day, units, sign, matching, payout_id, \
         scope, reference, accepted_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, \
         ?12, NULL) ON CONFLICT (sha256, number) DO NOTHING",
        values![
            id,
            &place.sha256,
            place.statement_number,
            place.number,
            &line.booking_day.to_string(),
            &line.value_day.map(|day| day.to_string()),
            line.amount.units,
            line.sign.as_str(),
            matching.as_str(),
            payout.map(|payout| payout.payout_id),
            payout.map(|payout| payout.scope),
            &reference,
        ],
    )?;
    Ok(changed == 1)
}

/// A line that belongs to no payout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    pub id: Id<kind::Request>,
    pub booking_day: String,
    pub units: i64,
    pub sign: Sign,
    pub matching: Matching,
    pub reference: Option<String>,
}

/// Lines that wait for the operator, oldest first.
pub fn unmatched(tx: &mut dyn Tx, rows_max: i64) -> Result<Vec<Unmatched>, StoreError> {
    let sql = "SELECT id, booking_day, units, sign, matching, reference FROM bank_statement_lines \
               WHERE matching <> 'payout' AND accepted_at IS NULL ORDER BY id LIMIT ?1";
    let read = |mut row: Row| {
        Ok(Unmatched {
            id: row.id()?,
            booking_day: row.text()?,
            units: row.int()?,
            sign: row.word(Sign::parse)?,
            matching: row.word(Matching::parse)?,
            reference: row.text_or_null()?,
        })
    };
    tx.rows(sql, values![rows_max])?.into_iter().map(read).collect()
}

/// The operator knows which payout a line belongs to. `false` if no such line waits, or the amounts
/// differ.
pub fn assign(
    tx: &mut dyn Tx,
    id: Id<kind::Request>,
    payout: &Journalled,
) -> Result<bool, StoreError> {
    let sql = "UPDATE bank_statement_lines SET matching = 'payout', payout_id = ?2, scope = ?3 \
               WHERE id = ?1 AND units = ?4 AND matching <> 'payout' AND accepted_at IS NULL";
    Ok(tx.execute(sql, values![id, payout.payout_id, payout.scope, payout.units])? == 1)
}

/// The operator has seen to a line that belongs to no payout. `false` if there is no such line that
/// waits.
pub fn accept(tx: &mut dyn Tx, now: &Now, id: Id<kind::Request>) -> Result<bool, StoreError> {
    let sql = "UPDATE bank_statement_lines SET accepted_at = ?2 WHERE id = ?1 AND matching <> \
     'payout' AND accepted_at IS NULL";
    Ok(tx.execute(sql, values![id, now.instant()])? == 1)
}
