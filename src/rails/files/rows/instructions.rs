//! The payments that the bank is instructed to make, and what it said of each.

use std::collections::{BTreeMap, HashMap};

use crate::kernel::id::kind;
use crate::kernel::{Id, Now, Scope, StoreError};
use crate::rails::files::reports::Reason;
use crate::rails::files::values::MessageId;
use crate::rails::port::{Instruction, PaymentMethod};
use crate::store::{Row, Tx, Value};
use crate::values;

crate::string_enum!(
    /// How far an instruction has come. `Withdrawn`: it is not sent, because its payout ended first
    /// or because it could not be written. `Unknown`: it may have reached the bank or not; the
    /// operator decides, and it is never sent again automatically.
    InstructionStatus {
        Queued "queued",
        Writing "writing",
        Published "published",
        Withdrawn "withdrawn",
        Unknown "unknown",
    }
);
crate::string_enum!(
    /// Why a payout waits for the operator. With `ReturnedAndFailed` the payout does not wait: this
    /// value only makes the bank's worker ignore the payment if a statement still shows it.
    Attention {
        PaidAfterFailed "paid_after_failed",
        PaidAgain "paid_again",
        PaidAndSentAgain "paid_and_sent_again",
        PaidTwice "paid_twice",
        ReturnedWhileProcessing "returned_while_processing",
        Reversed "reversed",
        FileRefused "file_refused",
        RefusedForUs "refused_for_us",
        RefusedAsDuplicate "refused_as_duplicate",
        RefusedAfterPaid "refused_after_paid",
        RefusalUnclear "refusal_unclear",
        ReferenceTaken "reference_taken",
        ReferenceUnclear "reference_unclear",
        ReturnedAndFailed "returned_and_failed",
    }
);

impl Attention {
    /// What happened, and what the operator does.
    pub const fn meaning(self) -> &'static str {
        match self {
            Attention::PaidAfterFailed => {
                "the bank paid a payout that had failed: its refund is held; ask the bank for the \
                 money, then `hundi refunds release`"
            }
            Attention::PaidAgain => {
                "the bank paid a payout once more after its money had come back: its refund is \
                 held; ask the bank for the money, then `hundi refunds release`"
            }
            Attention::PaidAndSentAgain => {
                "the bank paid it from an earlier file while it went out in a new one: have the \
                 bank stop the second payment, then `hundi reconcile --accept PAYOUT`"
            }
            Attention::PaidTwice => {
                "the bank paid it twice, under two references: ask the bank for one of the \
                 payments, then `hundi reconcile --accept PAYOUT`"
            }
            Attention::ReturnedWhileProcessing => {
                "the money came back before the payment was confirmed: ask the bank, then `hundi \
                 decide`"
            }
            Attention::Reversed => {
                "the bank reversed its debit and may book it again: ask the bank, then `hundi \
                 decide`"
            }
            Attention::FileRefused => {
                "the bank refused the whole file: mend the cause, then `hundi decide PAYOUT \
                 resend` or `fail`"
            }
            Attention::RefusedForUs => {
                "the bank refused it for a cause on our side: mend it, then `hundi decide PAYOUT \
                 resend` or `fail`"
            }
            Attention::RefusedAsDuplicate => {
                "the bank refused it as a duplicate and may have paid it before: ask the bank, \
                 then `hundi decide PAYOUT settle` or `fail`"
            }
            Attention::RefusedAfterPaid => {
                "the bank refuses a payment that it reported as paid: ask the bank"
            }
            Attention::RefusalUnclear => {
                "the bank refused it without naming a file, and it was in several: ask the bank \
                 about the newest file, then `hundi decide PAYOUT settle` or `fail`"
            }
            Attention::ReferenceTaken => {
                "the bank gives a reference that another payout has: ask the bank, then `hundi \
                 decide PAYOUT settle`"
            }
            Attention::ReferenceUnclear => {
                "the bank paid it and names several references: `hundi decide PAYOUT settle`"
            }
            Attention::ReturnedAndFailed => "it was paid and came back, and the operator failed it",
        }
    }
}

/// An instruction as the journal has it.
#[derive(Clone, Debug)]
pub struct Journalled {
    pub payout_id: Id<kind::Payout>,
    pub scope: Scope,
    pub units: i64,
    pub method: PaymentMethod,
    pub status: InstructionStatus,
    /// The file that it was last written into; `None` if it was never written, and after it was
    /// queued again.
    pub message_id: Option<MessageId>,
    /// The first reference that the bank or the operator gave when the payout settled.
    pub reference: Option<String>,
    /// The bank's own reference of the movement that paid it.
    pub entry_reference: Option<String>,
    /// Why the payout waits for the operator.
    pub attention: Option<Attention>,
    /// What the bank gave as its reason.
    pub reason: Reason,
    /// Whether a file with this instruction counts as published: its present file, or one from
    /// before it was queued again.
    pub was_published: bool,
}

impl Journalled {
    /// Whether the bank may know of the instruction: a file with it was published, or may have
    /// been.
    pub fn may_be_known(&self) -> bool {
        self.was_published
            || matches!(self.status, InstructionStatus::Published | InstructionStatus::Unknown)
    }
}

const INSTRUCTION_COLUMNS: &str = "payout_id, scope, units, method, status, message_id, \
     reference, entry_reference, attention, reason_code, reason_text, published_at IS NOT NULL";

fn journalled(mut row: Row) -> Result<Journalled, StoreError> {
    Ok(Journalled {
        payout_id: row.id()?,
        scope: row.scope()?,
        units: row.int()?,
        method: row.word(PaymentMethod::parse)?,
        status: row.word(InstructionStatus::parse)?,
        message_id: row.id_or_null()?.map(MessageId),
        reference: row.text_or_null()?,
        entry_reference: row.text_or_null()?,
        attention: row.word_or_null(Attention::parse)?,
        reason: Reason { code: row.text_or_null()?, text: row.text_or_null()? },
        was_published: row.bool()?,
    })
}

/// Adds a payout to the queue of payments for the bank. A payout that has a row already is refused
/// by the primary key.
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

/// Instructions that wait for a file, oldest first. `methods` are at most three. Instructions of
/// the accounts whose numbers are in `accounts_excluded` are left out.
pub fn queued(
    tx: &mut dyn Tx,
    methods: &[PaymentMethod],
    accounts_excluded: &[i64],
    rows_max: i64,
) -> Result<Vec<Journalled>, StoreError> {
    let numbers = 5..5 + accounts_excluded.len();
    let placeholders: Vec<String> = numbers.map(|number| format!("?{number}")).collect();
    let exclusion = match accounts_excluded.is_empty() {
        true => String::new(),
        false => format!("AND scope / 2 NOT IN ({}) ", placeholders.join(", ")),
    };
    let sql = format!(
        "SELECT {INSTRUCTION_COLUMNS} FROM bank_instructions WHERE status = 'queued' AND method \
         IN (?1, ?2, ?3) {exclusion}ORDER BY payout_id LIMIT ?4"
    );
    let method = |at: usize| methods.get(at).map_or("", |method| method.as_str());
    let mut parameters = values![method(0), method(1), method(2), rows_max].to_vec();
    parameters.extend(accounts_excluded.iter().map(|number| Value::Int(*number)));
    tx.rows(&sql, &parameters)?.into_iter().map(journalled).collect()
}

/// Instructions that wait for a file, for the bank's final report or for the operator, oldest
/// first. An instruction is answered with its [`Attention`] only if [`awaiting_operator`] lists it.
pub fn under_way(tx: &mut dyn Tx, rows_max: i64) -> Result<Vec<Journalled>, StoreError> {
    let sql = format!(
        "SELECT {INSTRUCTION_COLUMNS} FROM bank_instructions WHERE status IN ('queued', \
         'writing') OR (status IN ('published', 'unknown') AND NOT is_answered) ORDER BY \
         payout_id LIMIT ?1"
    );
    let mut found = BTreeMap::new();
    for row in tx.rows(&sql, values![rows_max])? {
        let instruction = journalled(row)?;
        found.insert(instruction.payout_id, Journalled { attention: None, ..instruction });
    }
    for (_, payout_id, _) in awaiting_operator(tx, rows_max as usize)? {
        found.extend(find(tx, payout_id)?.map(|instruction| (payout_id, instruction)));
    }
    Ok(found.into_values().take(rows_max as usize).collect())
}

/// How many instructions of a method wait for a file.
pub fn queued_count(tx: &mut dyn Tx, method: PaymentMethod) -> Result<i64, StoreError> {
    let sql = "SELECT COUNT(*) FROM bank_instructions WHERE status = 'queued' AND method = ?1";
    tx.row(sql, values![method.as_str()])?.map_or(Ok(0), |mut row| row.int())
}

/// Stores the names as they are written for the bank. They can differ from those that the caller
/// gave.
pub fn note_names(
    tx: &mut dyn Tx,
    payout_id: Id<kind::Payout>,
    beneficiary_name: &str,
    sender_name: &str,
) -> Result<(), StoreError> {
    let sql = "UPDATE bank_instructions SET beneficiary_name_written = ?2, sender_name_written = \
               ?3 WHERE payout_id = ?1";
    tx.execute_one(sql, values![payout_id, beneficiary_name, sender_name])
}

/// The names of beneficiary and sender as they were last written for the bank.
pub fn names_written(
    tx: &mut dyn Tx,
    payout_id: Id<kind::Payout>,
) -> Result<Option<(String, String)>, StoreError> {
    let sql = "SELECT beneficiary_name_written, sender_name_written FROM bank_instructions WHERE \
               payout_id = ?1";
    let Some(mut row) = tx.row(sql, values![payout_id])? else { return Ok(None) };
    Ok(row.text_or_null()?.zip(row.text_or_null()?))
}

/// The instructions of one file.
pub fn of_message(tx: &mut dyn Tx, message_id: MessageId) -> Result<Vec<Journalled>, StoreError> {
    let sql = format!(
        "SELECT {INSTRUCTION_COLUMNS} FROM bank_instructions WHERE message_id = ?1 ORDER BY \
         payout_id"
    );
    tx.rows(&sql, values![message_id.0])?.into_iter().map(journalled).collect()
}

/// Changes an instruction's status from `from`, and sets its file, or removes it if `message_id` is
/// `None`. A status other than `from` is a conflict.
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

/// Withdraws a queued instruction for good. `false` if it is not queued.
pub fn withdraw(tx: &mut dyn Tx, payout_id: Id<kind::Payout>) -> Result<bool, StoreError> {
    let sql = "UPDATE bank_instructions SET status = 'withdrawn' WHERE payout_id = ?1 AND status \
     = 'queued'";
    Ok(tx.execute(sql, values![payout_id])? == 1)
}

/// Sets an instruction that was queued again back to `published`: the operator has decided about
/// its payout, or the bank reports on the earlier file after all. `false` if it is not queued, or
/// was never published.
pub fn undo_queue_again(tx: &mut dyn Tx, payout_id: Id<kind::Payout>) -> Result<bool, StoreError> {
    let sql = "UPDATE bank_instructions SET status = 'published' WHERE payout_id = ?1 AND status = \
               'queued' AND published_at IS NOT NULL";
    Ok(tx.execute(sql, values![payout_id])? == 1)
}

/// Ends the wait for the bank's final report, because the report came or because the operator
/// decides about the payout. Stores the reference, unless one is stored already.
pub fn stop_waiting(
    tx: &mut dyn Tx,
    payout_id: Id<kind::Payout>,
    reference: Option<&str>,
) -> Result<(), StoreError> {
    let sql = "UPDATE bank_instructions SET is_answered = TRUE, reference = COALESCE(reference, \
     ?2) WHERE payout_id = ?1";
    tx.execute(sql, values![payout_id, reference])?;
    Ok(())
}

/// Gives a reference to a payout for good. `false` if another payout has the reference.
pub fn claim_reference(
    tx: &mut dyn Tx,
    reference: &str,
    payout_id: Id<kind::Payout>,
) -> Result<bool, StoreError> {
    let sql = "INSERT INTO bank_references (reference, payout_id) VALUES (?1, ?2) ON CONFLICT \
               (reference) DO NOTHING";
    if tx.execute(sql, values![reference, payout_id])? == 1 {
        return Ok(true);
    }
    let sql = "SELECT payout_id FROM bank_references WHERE reference = ?1";
    let owner = tx.row(sql, values![reference])?.map(|mut row| row.id()).transpose()?;
    Ok(owner == Some(payout_id))
}

/// The payout that was paid under this reference, be it the payment's UTR or the bank's own
/// reference of the movement. `None` also if there are two such payouts, because either could be
/// meant.
pub fn paid_under(
    tx: &mut dyn Tx,
    reference: &str,
) -> Result<Option<Id<kind::Payout>>, StoreError> {
    let mut found: Option<Id<kind::Payout>> = None;
    for sql in [
        "SELECT payout_id FROM bank_references WHERE reference = ?1 LIMIT 2",
        "SELECT payout_id FROM bank_instructions WHERE entry_reference = ?1 LIMIT 2",
    ] {
        for mut row in tx.rows(sql, values![reference])? {
            let id = row.id()?;
            if found.is_some_and(|other| other != id) {
                return Ok(None);
            }
            found = Some(id);
        }
    }
    Ok(found)
}

/// Notes the bank's own reference of the movement that paid a payout, unless one is noted already.
pub fn note_entry(
    tx: &mut dyn Tx,
    payout_id: Id<kind::Payout>,
    entry_reference: Option<&str>,
) -> Result<(), StoreError> {
    let sql = "UPDATE bank_instructions SET entry_reference = COALESCE(entry_reference, ?2) WHERE \
               payout_id = ?1";
    tx.execute(sql, values![payout_id, entry_reference])?;
    Ok(())
}

/// Notes the bank's reason, and the bank's file that gave it. Changes nothing if the code and the
/// text that the reason has are noted already.
pub fn note_reason(
    tx: &mut dyn Tx,
    payout_id: Id<kind::Payout>,
    reason: &Reason,
    sha256: &[u8; 32],
) -> Result<(), StoreError> {
    let sql = "UPDATE bank_instructions SET reason_code = ?2, reason_text = ?3, reason_sha256 = \
               ?4 WHERE payout_id = ?1 AND NOT (COALESCE(?2, reason_code, '') = \
               COALESCE(reason_code, '') AND COALESCE(?3, reason_text, '') = \
               COALESCE(reason_text, ''))";
    tx.execute(sql, values![payout_id, &reason.code, &reason.text, sha256])?;
    Ok(())
}

/// Sets or removes a payout's attention. Answers whether that changed anything.
pub fn set_attention(
    tx: &mut dyn Tx,
    now: &Now,
    payout_id: Id<kind::Payout>,
    attention: Option<Attention>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE bank_instructions SET attention = ?2, attention_at = ?3 WHERE payout_id = \
               ?1 AND COALESCE(attention, '') <> COALESCE(?2, '')";
    let word = attention.map(Attention::as_str);
    Ok(tx.execute(sql, values![payout_id, word, word.map(|_| now.instant())])? == 1)
}

/// Payouts that wait for the operator, oldest first, up to `rows_max`, each with the Unix second
/// since which it waits, if that is known. These are the payouts with an [`Attention`] other than
/// `returned_and_failed`. Payouts whose difference the operator has explained since are left out,
/// because an explanation does not remove the attention.
pub fn awaiting_operator(
    tx: &mut dyn Tx,
    rows_max: usize,
) -> Result<Vec<(Scope, Id<kind::Payout>, Option<i64>)>, StoreError> {
    const ROWS_AT_ONCE: i64 = 1_000;
    let sql = "SELECT scope, payout_id, attention_at FROM bank_instructions WHERE \
               attention IS NOT NULL AND attention <> 'returned_and_failed' AND payout_id > ?1 \
               ORDER BY payout_id LIMIT ?2";
    let (mut waiting, mut explained) = (Vec::new(), None);
    let mut after = Id::from_u128(0);
    loop {
        let rows = tx.rows(sql, values![after, ROWS_AT_ONCE])?;
        let is_last = rows.len() < ROWS_AT_ONCE as usize;
        for mut row in rows {
            let (scope, payout_id, since) = (row.scope()?, row.id()?, row.int_or_null()?);
            after = payout_id;
            if explained.is_none() {
                explained = Some(payouts_explained_at(tx)?);
            }
            let explained_at =
                explained.as_ref().and_then(|found| found.get(&payout_id.to_string()));
            if explained_at.is_some_and(|at| *at >= since.unwrap_or(0)) {
                continue;
            }
            waiting.push((scope, payout_id, since));
            if waiting.len() >= rows_max {
                return Ok(waiting);
            }
        }
        if is_last {
            return Ok(waiting);
        }
    }
}

/// For each payout the Unix second in which the operator last explained a difference of a kind that
/// makes a payout wait. The key is the payout's identifier as text.
fn payouts_explained_at(tx: &mut dyn Tx) -> Result<HashMap<String, i64>, StoreError> {
    let sql = "SELECT subject, MAX(closed_at) FROM bank_closed_differences WHERE kind IN \
               ('paid_after_failed', 'paid_twice', 'held_for_decision', 'outcome_unknown') GROUP \
               BY subject";
    tx.rows(sql, &[])?.into_iter().map(|mut row| Ok((row.text()?, row.int()?))).collect()
}

/// Queues an instruction again for a new file, under the same identity, because the operator
/// decided `resend` after the bank had refused it. Removes its attention. `false` unless its status
/// is `published` or `unknown`. An `unknown` one counts as published from now on, because the bank
/// answered it.
pub fn queue_again(
    tx: &mut dyn Tx,
    now: &Now,
    payout_id: Id<kind::Payout>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE bank_instructions SET status = 'queued', message_id = NULL, is_answered = \
               FALSE, attention = NULL, attention_at = NULL, published_at = COALESCE(published_at, \
               ?2) WHERE payout_id = ?1 AND status IN ('published', 'unknown')";
    Ok(tx.execute(sql, values![payout_id, now.instant()])? == 1)
}

/// The method and the time of publication of instructions that were published at or before `until`
/// and have no final report of the bank; the oldest first. Times are in Unix seconds.
pub fn published_until(
    tx: &mut dyn Tx,
    until: i64,
    rows_max: i64,
) -> Result<Vec<(PaymentMethod, i64)>, StoreError> {
    let sql = "SELECT method, published_at FROM bank_instructions WHERE status = 'published' AND \
               NOT is_answered AND published_at <= ?1 ORDER BY published_at LIMIT ?2";
    let read = |mut row: Row| Ok((row.word(PaymentMethod::parse)?, row.int()?));
    tx.rows(sql, values![until, rows_max])?.into_iter().map(read).collect()
}

/// Instructions that were published before `before`, in Unix seconds, and have no final report of
/// the bank; the oldest first.
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
