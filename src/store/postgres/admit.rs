//! Asks a server where it is, so that the fence can admit or refuse it.

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::faults::fault;
use super::fence::{self, Fence, Mark, Position};
use crate::kernel::StoreError;

/// Reads where a server is and judges it; answers the fence's generation. An engine that has no
/// such functions, or lets the role read none, is not fenced.
pub(super) async fn admit(client: &Client, fence: &Fence) -> Result<u64, StoreError> {
    let before = fence.known();
    let Some(position) = position(client).await? else { return Ok(fence.generation()) };
    let sql =
        format!("SELECT convert_from(value, 'UTF8') FROM meta WHERE name = '{}'", fence::MARK_NAME);
    let mark = match client.simple_query(&sql).await {
        Ok(messages) => first_row(&messages)
            .and_then(|row| Mark::parse(row.get(0)?.as_bytes()))
            .unwrap_or_default(),
        // A database that has no schema yet.
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Mark::default(),
        Err(error) => return Err(fault(&error).into_error()),
    };
    fence.admit(before, position, mark)
}

/// Where the server is; `None` where it does not say.
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
    let numbers: Option<Vec<i64>> = first_row(&messages)
        .and_then(|row| (0..4).map(|index| row.get(index)?.parse().ok()).collect());
    Ok(numbers.and_then(|numbers| match numbers[..] {
        [system, timeline, inserted, flushed] => {
            Some(Position { system, timeline, inserted, flushed })
        }
        _ => None,
    }))
}

fn first_row(messages: &[SimpleQueryMessage]) -> Option<&tokio_postgres::SimpleQueryRow> {
    messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    })
}
