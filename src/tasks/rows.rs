//! The table `tasks`.

use super::{Task, TaskKind};
use crate::kernel::{InternalId, Scope, StoreError};
use crate::store::{Row, Tx};
use crate::values;

const COLUMNS: &str = "due_milliseconds, id, scope, kind, object_id";

fn read(mut row: Row) -> Result<Task, StoreError> {
    Ok(Task {
        due_milliseconds: row.int()?,
        id: row.id()?,
        scope: row.scope()?,
        // One row of a newer version must not keep all others from being read.
        kind: TaskKind::parse(&row.text()?).unwrap_or(TaskKind::Unknown),
        // An object of any kind: the task's kind says which.
        object_id: InternalId::as_u128(row.id()?),
    })
}

/// Writes a task. Its due time was computed while the account's test clock was
/// `clock_offset_seconds` ahead of the store's clock.
pub(super) fn insert(
    tx: &mut dyn Tx,
    task: &Task,
    clock_offset_seconds: i64,
) -> Result<(), StoreError> {
    let object = InternalId::from_u128(task.object_id);
    tx.execute_one(
        "INSERT INTO tasks (due_milliseconds, id, scope, clock_offset_seconds, kind, object_id) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        values![
            task.due_milliseconds,
            task.id,
            task.scope,
            clock_offset_seconds,
            task.kind.as_str(),
            object,
        ],
    )
}

/// The first `rows_max` tasks that are due at `until_milliseconds` by the store's clock, in the
/// order of their due times.
pub fn due(
    tx: &mut dyn Tx,
    until_milliseconds: i64,
    rows_max: i64,
) -> Result<Vec<Task>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM tasks WHERE due_milliseconds <= ?1 ORDER BY due_milliseconds, id \
         LIMIT ?2"
    );
    tx.rows(&sql, values![until_milliseconds, rows_max])?.into_iter().map(read).collect()
}

/// The earliest task of an account in one mode that is due at `until_milliseconds` by the store's
/// clock. Only tasks whose due time was computed with this offset of the test clock count.
pub fn first_due_of(
    tx: &mut dyn Tx,
    scope: Scope,
    clock_offset_seconds: i64,
    until_milliseconds: i64,
) -> Result<Option<Task>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM tasks WHERE due_milliseconds <= ?1 AND scope = ?2 AND \
         clock_offset_seconds = ?3 ORDER BY due_milliseconds, id LIMIT 1"
    );
    tx.row(&sql, values![until_milliseconds, scope, clock_offset_seconds])?.map(read).transpose()
}

/// The due times of an account's tasks may have been computed with several offsets of its test
/// clock. Answers the smallest offset below `clock_offset_seconds`, in seconds.
pub fn smallest_clock_offset_below(
    tx: &mut dyn Tx,
    scope: Scope,
    clock_offset_seconds: i64,
) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT clock_offset_seconds FROM tasks WHERE scope = ?1 AND clock_offset_seconds < \
     ?2 ORDER BY clock_offset_seconds LIMIT 1";
    tx.row(sql, values![scope, clock_offset_seconds])?.map(|mut row| row.int()).transpose()
}

/// When the next task is due, by the store's clock.
pub fn next_due_milliseconds(tx: &mut dyn Tx) -> Result<Option<i64>, StoreError> {
    let row =
        tx.row("SELECT due_milliseconds FROM tasks ORDER BY due_milliseconds, id LIMIT 1", &[])?;
    row.map(|mut row| row.int()).transpose()
}

/// Takes a task off the list; answers whether it was still there.
pub fn remove(tx: &mut dyn Tx, task: &Task) -> Result<bool, StoreError> {
    let removed = tx.execute(
        "DELETE FROM tasks WHERE due_milliseconds = ?1 AND id = ?2",
        values![task.due_milliseconds, task.id],
    )?;
    Ok(removed == 1)
}

/// Gives a task another due time. So a task that cannot run now does not keep others from running.
pub fn put_off(tx: &mut dyn Tx, task: &Task, due_milliseconds: i64) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE tasks SET due_milliseconds = ?3 WHERE due_milliseconds = ?1 AND id = ?2",
        values![task.due_milliseconds, task.id, due_milliseconds],
    )?;
    Ok(())
}

/// Makes all tasks due earlier by `milliseconds`, after the machine's clock was set back by that
/// much: their due times were computed with the clock ahead. Answers how many tasks there are.
pub fn make_all_due_earlier(tx: &mut dyn Tx, milliseconds: i64) -> Result<u64, StoreError> {
    tx.execute("UPDATE tasks SET due_milliseconds = due_milliseconds - ?1", values![milliseconds])
}

/// Adjusts tasks of an account whose test clock was advanced: it was `from_seconds` ahead of the
/// store's clock and is now `to_seconds` ahead. The tasks whose due times were computed with
/// `from_seconds` become due earlier by the difference.
pub fn make_due_earlier(
    tx: &mut dyn Tx,
    scope: Scope,
    from_seconds: i64,
    to_seconds: i64,
) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE tasks SET due_milliseconds = due_milliseconds - ?4, clock_offset_seconds = ?3 \
         WHERE scope = ?1 AND clock_offset_seconds = ?2",
        values![scope, from_seconds, to_seconds, (to_seconds - from_seconds) * 1000],
    )?;
    Ok(())
}
