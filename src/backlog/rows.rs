//! Counts of what waits. Each statement reads an index that holds only such rows, or the first
//! rows of a queue.

use super::WaitingCount;
use crate::kernel::StoreError;
use crate::store::Tx;
use crate::values;

/// Rows of one kind that are counted: a longer queue is an alarm anyway.
pub const COUNTED_MAX: i64 = 10_000;

/// What is due now; `?2` is the instant in milliseconds.
const DUE: &[(&str, &str)] = &[
    (
        "tasks",
        "SELECT due_milliseconds / 1000 AS at FROM tasks WHERE due_milliseconds <= ?2 \
         ORDER BY due_milliseconds LIMIT ?1",
    ),
    (
        "endpoints_due",
        "SELECT due_milliseconds / 1000 AS at FROM webhook_queues WHERE due_milliseconds IS NOT \
         NULL AND due_milliseconds <= ?2 ORDER BY due_milliseconds LIMIT ?1",
    ),
];

/// What waits whatever the time is.
const OPEN: &[(&str, &str)] = &[
    ("outbox", "SELECT created AS at FROM outbox ORDER BY id LIMIT ?1"),
    ("funding_holds", "SELECT created AS at FROM transfers WHERE status = 'funding_hold' LIMIT ?1"),
    ("payout_holds", "SELECT created AS at FROM payouts WHERE status = 'hold' LIMIT ?1"),
    (
        "payouts_unsent",
        "SELECT created AS at FROM bank_instructions WHERE status = 'queued' LIMIT ?1",
    ),
    (
        "payouts_unanswered",
        "SELECT published_at AS at FROM bank_instructions WHERE status = 'published' AND NOT \
         is_answered ORDER BY published_at LIMIT ?1",
    ),
    (
        "payouts_unknown",
        "SELECT created AS at FROM payouts WHERE status = 'processing' AND failure_code = \
         'outcome_unknown' LIMIT ?1",
    ),
    (
        "payouts_for_operator",
        "SELECT attention_at AS at FROM bank_instructions WHERE attention IS NOT NULL AND \
         attention <> 'returned_and_failed' LIMIT ?1",
    ),
    ("hits", "SELECT created AS at FROM screening_hits WHERE decision IS NULL LIMIT ?1"),
    ("refunds", "SELECT created AS at FROM refunds WHERE status <> 'completed' LIMIT ?1"),
];

/// Everything that waits.
pub fn waiting(tx: &mut dyn Tx, now_milliseconds: i64) -> Result<Vec<WaitingCount>, StoreError> {
    let mut found = Vec::with_capacity(DUE.len() + OPEN.len());
    let counted = |sql: &str| format!("SELECT COUNT(*), MIN(at) FROM ({sql}) waiting");
    for (of, sql) in DUE {
        let values = values![COUNTED_MAX, now_milliseconds];
        found.push((*of, tx.row(&counted(sql), values)?));
    }
    for (of, sql) in OPEN {
        found.push((*of, tx.row(&counted(sql), values![COUNTED_MAX])?));
    }
    let read = |(of, row): (&'static str, Option<crate::store::Row>)| {
        let Some(mut row) = row else { return Ok(WaitingCount { of, count: 0, oldest_at: None }) };
        Ok(WaitingCount { of, count: row.int()?, oldest_at: row.int_or_null()? })
    };
    found.into_iter().map(read).collect()
}
