//! Counts of what waits. Each statement reads the first rows of a queue, or of an index that holds
//! only rows that wait.

use super::WaitingCount;
use crate::kernel::{Mode, Scope, StoreError};
use crate::keys;
use crate::rails::files::rows as journal;
use crate::store::{Row, Tx};
use crate::transfers::HOLD_SECONDS;
use crate::values;

/// The most rows of one kind that are counted, because a queue that long is an alarm anyway.
pub const COUNTED_MAX: i64 = 10_000;

/// Work that is due now. `?2` is the instant in milliseconds. `at` is the due time, in seconds of
/// the store's clock.
const DUE: &[(&str, &str)] = &[
    (
        "tasks",
        "SELECT scope, due_milliseconds / 1000 AS at FROM tasks WHERE due_milliseconds <= ?2 \
         ORDER BY due_milliseconds LIMIT ?1",
    ),
    (
        "endpoints_due",
        "SELECT scope, due_milliseconds / 1000 AS at FROM webhook_queues WHERE due_milliseconds \
         IS NOT NULL AND due_milliseconds <= ?2 ORDER BY due_milliseconds LIMIT ?1",
    ),
];

// The query of `funding_holds` writes `HOLD_SECONDS` as a number.
const _: () = assert!(HOLD_SECONDS == 86_400);

/// What waits without a due time. `at` is when the object was created, in the account's business
/// time. For a transfer's hold with a timer, `at` is 24 hours before the timer ends, when the timer
/// began. Each statement orders its rows as the index over what waits does. Without `ORDER BY`,
/// SQLite would read the whole table.
const OPEN: &[(&str, &str)] = &[
    ("outbox", "SELECT scope, created AS at FROM outbox ORDER BY id LIMIT ?1"),
    (
        "funding_holds",
        "SELECT scope, COALESCE(hold_until - 86400, created) AS at FROM transfers WHERE status = \
         'funding_hold' ORDER BY id LIMIT ?1",
    ),
    (
        "payout_holds",
        "SELECT scope, created AS at FROM payouts WHERE status = 'hold' ORDER BY scope, \
         beneficiary_id LIMIT ?1",
    ),
    (
        "payouts_unknown",
        "SELECT scope, created AS at FROM payouts WHERE status = 'processing' AND failure_code = \
         'outcome_unknown' ORDER BY id LIMIT ?1",
    ),
    (
        "hits",
        "SELECT scope, created AS at FROM screening_hits WHERE decision IS NULL ORDER BY id LIMIT \
         ?1",
    ),
    (
        "refunds",
        "SELECT scope, created AS at FROM refunds WHERE status <> 'completed' ORDER BY chain, \
         scope, id LIMIT ?1",
    ),
];

/// Deliveries with an attempt to come, whether or not it is due. `at` is the start of their
/// schedules, in seconds of the store's clock. The order is that of the index over such deliveries:
/// with old statistics PostgreSQL would otherwise read all deliveries that are kept.
const DELIVERIES: &[(&str, &str)] = &[(
    "deliveries",
    "SELECT q.scope, d.schedule_start_milliseconds / 1000 AS at FROM webhook_queues q JOIN \
     webhook_deliveries d ON d.endpoint_id = q.endpoint_id AND d.due_milliseconds >= 0 WHERE NOT \
     q.closed ORDER BY d.endpoint_id, d.due_milliseconds LIMIT ?1",
)];

/// What waits for the bank. `at` is in seconds of the store's clock: when the instruction was
/// written, or when its file was published.
const AT_BANK: &[(&str, &str)] = &[
    (
        "payouts_unsent",
        "SELECT scope, created AS at FROM bank_instructions WHERE status = 'queued' ORDER BY \
         payout_id LIMIT ?1",
    ),
    (
        "payouts_unanswered",
        "SELECT scope, published_at AS at FROM bank_instructions WHERE status = 'published' AND \
         NOT is_answered ORDER BY published_at LIMIT ?1",
    ),
];

/// Counts what the store knows to wait: two entries for each kind, one for each mode.
pub fn waiting(tx: &mut dyn Tx, now_milliseconds: i64) -> Result<Vec<WaitingCount>, StoreError> {
    let clocks = keys::rows::account_clocks(tx)?;
    let ahead_seconds = |scope: Scope| {
        let place = usize::try_from(scope.account_number() - 1).ok();
        let clock = place.and_then(|place| clocks.get(place)).map_or(0, |(_, ahead)| *ahead);
        if scope.mode().is_live() { 0 } else { clock }
    };
    let mut found = Vec::new();
    for (of, sql) in DUE {
        let values = values![COUNTED_MAX, now_milliseconds];
        found.extend(counted(of, tx.rows(&grouped(sql), values)?, |_| 0)?);
    }
    for (of, sql) in DELIVERIES.iter().chain(AT_BANK) {
        found.extend(counted(of, tx.rows(&grouped(sql), values![COUNTED_MAX])?, |_| 0)?);
    }
    let mut for_operator = none("payouts_for_operator");
    for (scope, _, since) in journal::awaiting_operator(tx, COUNTED_MAX as usize)? {
        add(&mut for_operator, scope.mode(), 1, since);
    }
    found.extend(for_operator);
    for (of, sql) in OPEN {
        let rows = tx.rows(&grouped(sql), values![COUNTED_MAX])?;
        found.extend(counted(of, rows, ahead_seconds)?);
    }
    Ok(found)
}

fn grouped(sql: &str) -> String {
    format!("SELECT scope, COUNT(*), MIN(at) FROM ({sql}) waiting GROUP BY scope")
}

/// Adds up the accounts of each mode. A moment in `rows` is made earlier by `ahead_seconds` of its
/// account.
fn counted(
    of: &'static str,
    rows: Vec<Row>,
    ahead_seconds: impl Fn(Scope) -> i64,
) -> Result<[WaitingCount; 2], StoreError> {
    let mut both = none(of);
    for mut row in rows {
        let (scope, count, at) = (row.scope()?, row.int()?, row.int_or_null()?);
        add(&mut both, scope.mode(), count, at.map(|at| at - ahead_seconds(scope)));
    }
    Ok(both)
}

fn none(of: &'static str) -> [WaitingCount; 2] {
    [Mode::Test, Mode::Live].map(|mode| WaitingCount { of, mode, count: 0, oldest_at: None })
}

fn add([test, live]: &mut [WaitingCount; 2], mode: Mode, count: i64, oldest_at: Option<i64>) {
    let counted = if mode.is_live() { live } else { test };
    counted.count += count;
    counted.oldest_at = counted.oldest_at.into_iter().chain(oldest_at).min();
}
