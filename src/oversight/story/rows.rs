//! What a story reads besides whole objects.

use crate::events::rows::EventRow;
use crate::kernel::id::kind;
use crate::kernel::{AnyId, Id, InternalId, Money, ObjectKind, Scope, StoreError};
use crate::ledger::{LedgerAccount, LedgerEntryKind};
use crate::store::{Row, Tx};
use crate::values;

/// A posting as the ledger has it.
#[derive(Clone, Debug)]
pub struct PostingRow {
    pub entry_id: InternalId,
    pub entry: LedgerEntryKind,
    pub debit: LedgerAccount,
    pub credit: LedgerAccount,
    pub amount: Money,
    pub posted_at: i64,
}

/// What was posted for a transfer, in order.
pub fn postings(
    tx: &mut dyn Tx,
    scope: Scope,
    transfer_id: Id<kind::Transfer>,
    rows_max: i64,
) -> Result<Vec<PostingRow>, StoreError> {
    let sql = "SELECT entry_id, entry, debit_account, credit_account, currency, units, posted_at \
               FROM ledger_postings WHERE scope = ?1 AND transfer_id = ?2 ORDER BY id LIMIT ?3";
    let read = |mut row: Row| {
        Ok(PostingRow {
            entry_id: row.id()?,
            entry: row.word(LedgerEntryKind::parse)?,
            debit: row.word(LedgerAccount::parse)?,
            credit: row.word(LedgerAccount::parse)?,
            amount: row.money()?,
            posted_at: row.int()?,
        })
    };
    tx.rows(sql, values![scope, transfer_id, rows_max])?.into_iter().map(read).collect()
}

/// The newest events about one object, newest first.
pub fn events_about(
    tx: &mut dyn Tx,
    scope: Scope,
    linked: AnyId,
    rows_max: i64,
) -> Result<Vec<EventRow>, StoreError> {
    let sql = "SELECT id, type, linked_id, linked_object, created FROM events WHERE scope = ?1 \
               AND linked_id = ?2 ORDER BY id DESC LIMIT ?3";
    tx.rows(sql, values![scope, linked, rows_max])?
        .into_iter()
        .map(crate::events::rows::read)
        .collect()
}

/// A line of the bank's statements that paid a payout, or gave it back.
#[derive(Clone, Debug)]
pub struct BankLine {
    pub id: InternalId,
    pub booking_day: String,
    pub value_day: Option<String>,
    /// Paise; of a line that paid several payouts, this one's share.
    pub units: i64,
    /// `debit` or `credit`.
    pub sign: String,
    pub matching: String,
    pub reference: Option<String>,
    pub statement_id: Option<String>,
}

pub fn bank_lines(
    tx: &mut dyn Tx,
    payout_id: Id<kind::Payout>,
    rows_max: i64,
) -> Result<Vec<BankLine>, StoreError> {
    // One debit can pay several payouts: each has its share of the line. An earlier version also
    // stored shares of credits. They are left out, because a credit pays nobody.
    let sql = "SELECT l.id, l.booking_day, l.value_day, l.units, l.sign, l.matching, l.reference, \
               s.statement_id FROM bank_statement_lines l LEFT JOIN bank_statements s ON s.sha256 \
               = l.sha256 AND s.number = l.statement_number WHERE l.payout_id = ?1 UNION ALL \
               SELECT l.id, l.booking_day, l.value_day, h.units, l.sign, l.matching, l.reference, \
               s.statement_id FROM bank_line_shares h JOIN bank_statement_lines l ON l.id = \
               h.line_id AND l.sign = 'debit' LEFT JOIN bank_statements s ON s.sha256 = l.sha256 \
               AND s.number = l.statement_number WHERE h.payout_id = ?1 ORDER BY 1 LIMIT ?2";
    let read = |mut row: Row| {
        Ok(BankLine {
            id: row.id()?,
            booking_day: row.text()?,
            value_day: row.text_or_null()?,
            units: row.int()?,
            sign: row.text()?,
            matching: row.text()?,
            reference: row.text_or_null()?,
            statement_id: row.text_or_null()?,
        })
    };
    tx.rows(sql, values![payout_id, rows_max])?.into_iter().map(read).collect()
}

/// The newest transfers of a sender or a beneficiary.
pub fn transfers_of_person(
    tx: &mut dyn Tx,
    scope: Scope,
    person: AnyId,
    rows_max: i64,
) -> Result<Vec<Id<kind::Transfer>>, StoreError> {
    let sql = match person.kind {
        ObjectKind::Sender => {
            "SELECT id FROM transfers WHERE scope = ?1 AND sender_id = ?2 ORDER BY id DESC LIMIT ?3"
        }
        _ => {
            "SELECT id FROM transfers WHERE scope = ?1 AND beneficiary_id = ?2 ORDER BY id DESC \
             LIMIT ?3"
        }
    };
    tx.rows(sql, values![scope, person, rows_max])?.into_iter().map(|mut row| row.id()).collect()
}
