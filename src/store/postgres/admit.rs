//! Asks a server for its position, so that the fence can admit or refuse it.

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::faults::fault;
use super::fence::{self, Admission, Fence, Mark, Position};
use crate::kernel::StoreError;

/// Reads a server's position and the database's mark, and has the fence judge both. A server that
/// does not say its position is not judged: it lacks the functions for this, or does not let our
/// role call them.
pub(super) async fn admit(client: &Client, fence: &Fence) -> Result<Admission, StoreError> {
    let before = fence.seen();
    let Some(position) = position(client).await? else {
        return Ok(Admission { generation: fence.generation(), timeline: None });
    };
    let timeline = position.timeline;
    let sql =
        format!("SELECT convert_from(value, 'UTF8') FROM meta WHERE name = '{}'", fence::MARK_NAME);
    let (mark, has_schema) = match client.simple_query(&sql).await {
        Ok(messages) => {
            let mark = first_row(&messages).and_then(|row| Mark::parse(row.get(0)?.as_bytes()));
            (mark.unwrap_or_default(), true)
        }
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => (Mark::default(), false),
        Err(error) => return Err(fault(&error).into_error()),
    };
    let (generation, transactions) = fence.admit(before, position, mark)?;
    // The node's database was replaced by an empty one. Without tables even reads would fail, so
    // refuse the connection with the reason.
    if !has_schema && let Some(reason) = fence.halted() {
        return Err(StoreError::Unavailable(reason.into()));
    }
    if !transactions.is_empty() {
        fence.note_lost_commits(before, timeline, lacks_one(client, &transactions).await?);
    }
    Ok(Admission { generation, timeline: Some(timeline) })
}

/// Whether the server says of one of these transactions that it is not committed. A transaction
/// that is too old for the server to know counts as committed.
async fn lacks_one(client: &Client, transactions: &[i64]) -> Result<bool, StoreError> {
    for transaction in transactions {
        let sql = format!("SELECT pg_xact_status(CAST('{transaction}' AS xid8))");
        match client.simple_query(&sql).await {
            Ok(messages) => {
                let status = first_row(&messages).and_then(|row| row.get(0));
                if status.is_some_and(|status| status != "committed") {
                    return Ok(true);
                }
            }
            // The transaction's number is in the server's future.
            Err(error) if error.code() == Some(&SqlState::INVALID_PARAMETER_VALUE) => {
                return Ok(true);
            }
            Err(error) => return Err(fault(&error).into_error()),
        }
    }
    Ok(false)
}

/// The server's position. `None` if the server does not say it, as on a standby.
pub(super) async fn position(client: &Client) -> Result<Option<Position>, StoreError> {
    let messages = match client.simple_query(fence::POSITION).await {
        Ok(messages) => messages,
        Err(error)
            if error
                .code()
                .is_some_and(|code| matches!(code.code().get(..2), Some("42" | "0A" | "55"))) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(fault(&error).into_error()),
    };
    let read = |row: &tokio_postgres::SimpleQueryRow| -> Option<Position> {
        let number = |index| row.get(index)?.parse().ok();
        Some(Position {
            system: number(0)?,
            timeline: number(1)?,
            inserted: number(2)?,
            flushed: number(3)?,
            replayed: number(4),
        })
    };
    Ok(first_row(&messages).and_then(read))
}

fn first_row(messages: &[SimpleQueryMessage]) -> Option<&tokio_postgres::SimpleQueryRow> {
    messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    })
}
