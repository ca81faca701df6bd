//! Walks once through all senders and beneficiaries, and adds the words of their names to the index
//! that finds persons by name. Earlier versions stored names without words, or with other words.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::app_state::AppState;
use crate::background::is_stopped;
use crate::kernel::{Id, InternalId, ObjectKind, Scope, StoreError};
use crate::store::{Tx, meta};
use crate::{keys, name_words};

/// The most names whose words one transaction stores.
const NAMES_AT_ONCE: i64 = 200;
/// Name of the stored position of the walk: the scope, whether its senders or beneficiaries are
/// walked, and the last one that is done. Whoever changes [`name_words::words`] changes this name
/// too, so that another walk begins. It was `name_words_place` before.
const POSITION: &str = "name_words_place_2";
const DONE: &[u8] = b"done";

/// Walks, a few names at once, until every name has been seen.
pub async fn run(app: Arc<AppState>, mut stop: watch::Receiver<bool>) {
    while !is_stopped(&stop) {
        let seconds = match app.store.write(|tx, _| Ok(step(tx)?)).await {
            Ok(true) => break,
            Ok(false) => 0,
            Err(failure) => {
                tracing::error!(
                    ?failure,
                    "stored names could not be indexed for search; tried again"
                );
                60
            }
        };
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(seconds)) => {}
            _ = stop.changed() => return,
        }
    }
    // Waits for the stop, because a worker that ends is started again.
    while !is_stopped(&stop) {
        let _ = stop.changed().await;
    }
}

/// Stores the words of the next names, and the position after them. Answers whether all names are
/// done.
pub fn step(tx: &mut dyn Tx) -> Result<bool, StoreError> {
    let position = meta::read(tx, POSITION)?.unwrap_or_default();
    if position == DONE {
        return Ok(true);
    }
    // The code 2 is the scope of account 1 in test mode.
    let (code, is_sender, after) = read(&position).unwrap_or((2, true, [0; 16]));
    let scope = Scope::from_code(code);
    if scope.account_number() > keys::rows::accounts_count(tx)? {
        meta::write(tx, POSITION, DONE)?;
        return Ok(true);
    }
    let kind = if is_sender { ObjectKind::Sender } else { ObjectKind::Beneficiary };
    let names = name_words::rows::names_after(tx, kind, scope, after, NAMES_AT_ONCE)?;
    for (id, name) in &names {
        name_words::keep_more(tx, scope, *id, name)?;
    }
    let next = match names.last() {
        Some((id, _)) if names.len() as i64 == NAMES_AT_ONCE => (code, is_sender, id.to_bytes()),
        _ if is_sender => (code, false, [0; 16]),
        _ => (code + 1, true, [0; 16]),
    };
    meta::write(tx, POSITION, &write(next))?;
    Ok(false)
}

fn write((code, is_sender, after): (i64, bool, [u8; 16])) -> Vec<u8> {
    let id: InternalId = Id::from_u128(u128::from_be_bytes(after));
    format!("{code} {} {id}", i64::from(is_sender)).into_bytes()
}

fn read(position: &[u8]) -> Option<(i64, bool, [u8; 16])> {
    let text = std::str::from_utf8(position).ok()?;
    let mut parts = text.split(' ');
    let code = parts.next()?.parse().ok()?;
    let is_sender = parts.next()? == "1";
    Some((code, is_sender, InternalId::parse(parts.next()?)?.to_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Mode;

    #[test]
    fn a_position_reads_as_it_was_written() {
        let position = (Scope::new(7, Mode::Live).code(), false, [9; 16]);
        assert_eq!(read(&write(position)), Some(position));
        assert_eq!(read(b""), None);
    }
}
