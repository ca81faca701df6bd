//! What one running process holds, shared by requests and workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::chains::followed::FollowedChain;
use crate::metrics::Metrics;
use crate::services::Services;
use crate::store::Store;

/// Made once at start by `app`; nothing in it changes afterwards but by its own locks.
pub struct AppState {
    /// Which process this is among those that share a database; random, made anew at each start.
    pub node_id: [u8; 16],
    pub store: Store,
    pub services: Arc<Services>,
    /// The real chains that are followed: one for each mode at most.
    pub chains: Vec<Arc<FollowedChain>>,
    pub metrics: Arc<Metrics>,
    /// Set before the port closes, so that load balancers send requests elsewhere.
    pub is_draining: AtomicBool,
}

impl AppState {
    /// Says that the node is about to stop: load balancers send requests elsewhere, and requests
    /// that wait for an event are answered now.
    pub fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
        self.store.signals.event_waits.close();
    }
}
