//! Idempotency keys of requests that run on this node. A second request with one of these keys is
//! refused with `resource_locked`.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The idempotency keys whose first request is running on this node, as keyed hashes.
#[derive(Default)]
pub struct RunningKeys(Mutex<HashSet<[u8; 16]>>);

/// A key that is held until its transaction has ended, even if the client hangs up. Release it
/// before the answer leaves: a client that retries at once must not be told that its first request
/// still runs.
pub struct RunningKey {
    keys: Arc<RunningKeys>,
    key_hash: [u8; 16],
    is_released: AtomicBool,
}

impl RunningKeys {
    /// `None` while another request holds the key.
    pub fn hold(self: &Arc<Self>, key_hash: [u8; 16]) -> Option<RunningKey> {
        let is_free = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key_hash);
        is_free.then(|| RunningKey {
            keys: self.clone(),
            key_hash,
            is_released: AtomicBool::new(false),
        })
    }
}

impl RunningKey {
    /// Frees the key. Only the first call does, because later another request may hold it.
    pub fn release(&self) {
        if !self.is_released.swap(true, Ordering::SeqCst) {
            self.keys.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key_hash);
        }
    }
}

impl Drop for RunningKey {
    fn drop(&mut self) {
        self.release();
    }
}
