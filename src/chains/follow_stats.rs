//! Counters and figures of a chain while it is followed.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize};

/// What the metrics and the readiness page show of a followed chain.
#[derive(Default)]
pub struct FollowStats {
    /// Height of the cursor.
    pub height: AtomicI64,
    /// Time of the cursor's block, Unix seconds.
    pub block_time: AtomicI64,
    /// Height of the final view, as the nodes give it.
    pub final_height: AtomicI64,
    /// Height of the newest block, as the lead gave it last.
    pub head_height: AtomicI64,
    /// Blocks that were read since the start.
    pub blocks: AtomicU64,
    /// Final movements to deposit addresses since the start, those of other tokens too.
    pub deposits: AtomicU64,
    /// Doubts since the start.
    pub doubts: AtomicU64,
    /// Whether one of these is true: the chain cannot be followed; the token's contract has
    /// announced that another one replaces it; no deposit address is handed out, because somebody
    /// used, or may have used, the account key before.
    pub is_in_trouble: AtomicBool,
    /// Whether one node is believed although no second node checks it, because no other is
    /// configured or answers, or all others are far behind.
    pub is_unchecked: AtomicBool,
    /// Configured nodes that are not used: they do not answer, have not passed their check, show an
    /// impossible time, or are too far behind the others.
    pub nodes_missing: AtomicUsize,
    /// Whether this process follows the chain now. If not, its figures of following stand still.
    pub is_followed: AtomicBool,
    /// Index of the lead in `FollowedChain::nodes`. The chain audit prefers another node.
    pub lead: AtomicUsize,
    /// The audit mark: up to which block movements were compared with the book.
    pub audited_height: AtomicI64,
    /// When everything was last compared, in Unix seconds; 0 if another process runs the chain
    /// audit.
    pub audited_at: AtomicI64,
    /// Differences that the operator has not explained.
    pub differences: AtomicI64,
}
