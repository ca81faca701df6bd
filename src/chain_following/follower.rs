//! The follower of one chain: what it remembers between steps, and what every step uses.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::log_throttle::LogThrottle;
use crate::app_state::AppState;
use crate::chains::Movement;
use crate::chains::followed::{FollowError, FollowedChain};
use crate::chains::port::{ChainNode, NodeError};
use crate::chains::rows::Cursor;
use crate::chains::verify::{AHEAD_SECONDS_MAX, Anchor, VerifyError};
use crate::kernel::id::kind;
use crate::kernel::{Id, OperationError, Scope};

/// A movement in a block above the cursor.
pub(super) struct PendingMovement {
    pub(super) height: i64,
    pub(super) movement: Movement,
}

/// What the last look above the cursor found.
#[derive(Default)]
pub(super) struct Pending {
    /// The last block that was looked at. Its hash tells the next look whether this block was
    /// replaced.
    pub(super) top: Option<Anchor>,
    pub(super) movements: Vec<PendingMovement>,
}

/// Follows one chain. Its progress is the stored cursor, which each step reads; what is remembered
/// here only helps the next step.
pub(super) struct Follower {
    pub(super) app: Arc<AppState>,
    pub(super) chain: Arc<FollowedChain>,
    /// Blocks that the next request for a range asks for: fewer after a refusal, then more again.
    pub(super) blocks_at_once: i64,
    /// Chooses the lead among the nodes that can lead. Each failed step adds one, so the next of
    /// them leads.
    pub(super) lead_offset: usize,
    pub(super) pending: Pending,
    pub(super) refunds_looked_at: Option<Instant>,
    /// The refund that was looked for last, in a round over all sent refunds.
    pub(super) refunds_after: Option<(Scope, Id<kind::Refund>)>,
    /// Whether the addresses handed out before the start are in memory (embedded store only).
    pub(super) knows_addresses: bool,
    /// Whether the last step left out the blocks above the cursor.
    pub(super) has_skipped_pending: bool,
    /// Whether the configured contract has announced that another one replaces it.
    pub(super) is_token_deprecated: bool,
    /// Keeps a lasting fault from being logged at each step. Remembers several messages, because
    /// two nodes can report two faults alternately.
    pub(super) log_throttle: LogThrottle,
}

impl Follower {
    pub(super) fn new(app: Arc<AppState>, chain: Arc<FollowedChain>) -> Follower {
        Follower {
            app,
            blocks_at_once: chain.settings.blocks_at_once as i64,
            chain,
            lead_offset: 0,
            pending: Pending::default(),
            refunds_looked_at: None,
            refunds_after: None,
            knows_addresses: false,
            has_skipped_pending: false,
            is_token_deprecated: false,
            log_throttle: LogThrottle::default(),
        }
    }

    pub(super) fn node_error(&self, node: &dyn ChainNode, fault: NodeError) -> FollowError {
        FollowError::Node { node: node.label(), fault }
    }

    pub(super) fn doubted(&self, node: &dyn ChainNode, doubt: VerifyError) -> FollowError {
        self.chain.stats.doubts.fetch_add(1, Ordering::Relaxed);
        FollowError::Doubted { node: node.label(), doubt }
    }

    /// The latest time that a block can have now, in Unix seconds.
    pub(super) fn latest_time(&self) -> i64 {
        self.app.store.clock.milliseconds() / 1000 + AHEAD_SECONDS_MAX
    }

    /// Notes that one node is believed although no other checks it. With only one node configured
    /// that is what the operator chose, so it is not logged.
    pub(super) fn note_unchecked(&mut self, why: &str) {
        self.chain.stats.is_unchecked.store(true, Ordering::Relaxed);
        if self.chain.nodes.len() > 1 && self.log_throttle.is_due(why) {
            tracing::error!(
                chain = self.chain.settings.name.as_str(),
                why,
                "what one node says is credited unchecked"
            );
        }
    }

    pub(super) fn show_in_metrics(&self, cursor: &Cursor) {
        self.chain.stats.height.store(cursor.anchor.height, Ordering::Relaxed);
        self.chain.stats.block_time.store(cursor.block_time, Ordering::Relaxed);
    }
}

/// A failure of the store as the reason why the chain cannot be followed.
pub(super) fn store_error(failure: OperationError) -> FollowError {
    FollowError::Store(failure.to_string())
}
