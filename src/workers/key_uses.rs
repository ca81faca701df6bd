//! Stores when this process last saw each API key used: once a minute, and when the process stops.
//! So no request has to write that.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::app_state::AppState;
use crate::background::{Stop, is_stopped};
use crate::keys;

/// How often uses are stored. A killed process loses those since the last time.
const NOTE_EVERY: Duration = Duration::from_secs(60);
/// The most keys that one transaction writes.
const KEYS_AT_ONCE: usize = 500;
/// How long a stop waits for the last uses to be stored. Losing them does little harm.
const STOP_WAIT_MAX: Duration = Duration::from_secs(2);

pub async fn run(app: Arc<AppState>, mut stop: Stop) {
    let mut due = Instant::now() + NOTE_EVERY;
    while !is_stopped(&stop) {
        tokio::select! {
            () = tokio::time::sleep_until(due) => {
                note(&app).await;
                due = Instant::now() + NOTE_EVERY;
            }
            _ = stop.changed() => {}
        }
    }
    let _ = tokio::time::timeout(STOP_WAIT_MAX, note(&app)).await;
}

/// Stores the uses since the last time.
async fn note(app: &AppState) {
    let noted = app.keys.take_uses();
    for (index, some) in noted.chunks(KEYS_AT_ONCE).enumerate() {
        let uses = some.to_vec();
        let written = app.store.write(move |tx, _| {
            // In the order of keys, so that two nodes do not deadlock.
            Ok(uses.iter().try_for_each(|used| keys::rows::note_use(tx, *used))?)
        });
        if let Err(failure) = written.await {
            tracing::warn!(
                ?failure,
                "the times when keys were used could not be stored; tried again"
            );
            app.keys.note_uses(noted.iter().skip(index * KEYS_AT_ONCE).copied());
            return;
        }
    }
}
