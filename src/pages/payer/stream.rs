//! The states of a payer's page as server-sent events: one at once, and one whenever the state has
//! changed.
//!
//! Each stream asks the store every second for the versions of the rows that its page shows, with
//! one or two short statements. So it also sees changes that other nodes make. A stream ends after
//! five minutes at the latest, and the page opens another one. If too many streams are open, the
//! page polls the state instead.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::view::PayView;
use super::{LoadedPage, read, rows, with_body};
use crate::app_state::AppState;
use crate::http::dispatch::{self, Reply, ReplyBody};
use crate::kernel::id::kind;
use crate::kernel::{Id, OperationError, Scope};
use crate::pages::words::PageWords;
use crate::store::{Cost, Tx};
use crate::{keys, transfers};

/// The most streams that one process keeps open.
pub const STREAMS_MAX: usize = 500;
/// The most open streams for one transfer.
pub const STREAMS_OF_TRANSFER_MAX: usize = 8;
/// How long a stream waits before it asks the store again.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// After this long without an event an empty comment is sent, so that a closed connection is
/// noticed.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
/// The longest time that a stream stays open.
const STREAM_DURATION: Duration = Duration::from_secs(300);

/// The streams that are open, by transfer.
static OPEN: LazyLock<Mutex<HashMap<u128, usize>>> = LazyLock::new(Mutex::default);

/// A permit for one open stream of a transfer. Dropping it lets another stream open.
struct StreamPermit(u128);

impl StreamPermit {
    fn take(transfer: u128) -> Option<StreamPermit> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if open.values().sum::<usize>() >= STREAMS_MAX {
            return None;
        }
        let count = open.entry(transfer).or_default();
        if *count >= STREAMS_OF_TRANSFER_MAX {
            return None;
        }
        *count += 1;
        Some(StreamPermit(transfer))
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.0) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.0);
            }
        }
    }
}

/// Answers with a stream that begins with the state as it was found.
pub(super) fn open(app: &Arc<AppState>, found: LoadedPage, words: &'static PageWords) -> Reply {
    let Some(permit) = StreamPermit::take(found.transfer.id.as_u128()) else {
        // After a 204 the browser does not connect again by itself (HTML, "Server-sent events").
        // The page's script polls, and tries the stream again until that has failed three times.
        return with_body(StatusCode::NO_CONTENT, "text/plain; charset=utf-8", "");
    };
    let (sender, parts) = mpsc::channel(2);
    tokio::spawn(follow(app.clone(), permit, found, words, sender));
    let mut reply = Response::new(ReplyBody::Parts(parts));
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Without this, nginx holds the events back until they fill a buffer.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    reply
}

/// A state as an event.
fn event(view: &PayView) -> Option<Bytes> {
    let text = serde_json::to_string(view).ok()?;
    Some(Bytes::from(format!("data: {text}\n\n")))
}

async fn follow(
    app: Arc<AppState>,
    _permit: StreamPermit,
    found: LoadedPage,
    words: &'static PageWords,
    sender: mpsc::Sender<Bytes>,
) {
    let (scope, id) = (found.transfer.scope, found.transfer.id);
    let end = Instant::now() + STREAM_DURATION;
    let mut view = found.view;
    let mut basis = None;
    let mut sent_at = Instant::now();
    let Some(first) = event(&view) else { return };
    if sender.send(first).await.is_err() {
        return;
    }
    while !view.is_final && Instant::now() < end && !app.is_draining.load(Ordering::Relaxed) {
        tokio::select! {
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            () = sender.closed() => return,
        }
        // If the store does not answer, the stream ends. The page then polls, and shows the fault.
        let looking = look(&app, scope, id, basis, words);
        let Ok(look) = dispatch::within(&app, dispatch::answer_end(), looking).await else {
            return;
        };
        let Some((found_basis, found_view)) = look else { return };
        basis = Some(found_basis);
        let next = match found_view {
            Some(found) if !found.says_the_same(&view) => {
                view = found;
                event(&view)
            }
            _ if sent_at.elapsed() >= HEARTBEAT_INTERVAL => Some(Bytes::from_static(b":\n\n")),
            _ => continue,
        };
        sent_at = Instant::now();
        let Some(next) = next else { return };
        if sender.send(next).await.is_err() {
            return;
        }
    }
}

/// What a state depends on: the versions of the rows, and whether the time to pay is over.
type Basis = (rows::Versions, bool);

/// The basis of a page's state, and the state if the basis differs from `known`. `None` if the
/// transfer is gone.
async fn look(
    app: &Arc<AppState>,
    scope: Scope,
    id: Id<kind::Transfer>,
    known: Option<Basis>,
    words: &'static PageWords,
) -> Result<Option<(Basis, Option<PayView>)>, OperationError> {
    let shared = app.clone();
    let reading = move |tx: &mut dyn Tx| {
        let Some(versions) = rows::versions(tx, scope, id)? else { return Ok(None) };
        let offset = keys::rows::clock_offset_seconds(tx, scope)?;
        let business = shared.store.clock.milliseconds() / 1000 + offset;
        let basis = (versions, business > versions.expires_at);
        if known == Some(basis) {
            return Ok(Some((basis, None)));
        }
        let Some(transfer) = transfers::rows::find(tx, scope, id)? else { return Ok(None) };
        let found = read(tx, &shared, transfer, words)?;
        Ok(Some((basis, Some(found.view))))
    };
    app.store.read(Cost::Point, reading).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_limited_and_come_back() {
        let taken: Vec<StreamPermit> =
            (0..STREAMS_OF_TRANSFER_MAX).map(|_| StreamPermit::take(1).unwrap()).collect();
        assert!(StreamPermit::take(1).is_none());
        let others: Vec<StreamPermit> = (0..)
            .map_while(|number| StreamPermit::take(1_000 + number))
            .take(STREAMS_MAX)
            .collect();
        assert_eq!(taken.len() + others.len(), STREAMS_MAX);
        drop(taken);
        assert!(StreamPermit::take(1).is_some());
        drop(others);
        assert!(OPEN.lock().unwrap().is_empty());
    }
}
