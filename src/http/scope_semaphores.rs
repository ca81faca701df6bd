//! A semaphore of one permit for each account and mode, so that an account waits for itself alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

use crate::kernel::Scope;

/// Once this many accounts and modes are remembered, those whose permit nobody has or waits for are
/// forgotten.
const SCOPES_COUNT_MAX: usize = 1_000;

#[derive(Default)]
pub struct ScopeSemaphores(Mutex<HashMap<Scope, Arc<Semaphore>>>);

impl ScopeSemaphores {
    /// The semaphore of an account and mode.
    pub fn of(&self, scope: Scope) -> Arc<Semaphore> {
        let mut semaphores = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if semaphores.len() >= SCOPES_COUNT_MAX {
            // Whoever waits for a permit or has one also has the semaphore.
            semaphores.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        }
        semaphores.entry(scope).or_insert_with(|| Arc::new(Semaphore::new(1))).clone()
    }
}
