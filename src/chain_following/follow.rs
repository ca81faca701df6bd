//! Follows a real chain: reads its final view block after block and credits the deposits in it.
//! Deposits in blocks above the cursor are only shown, because these blocks may still be replaced.
//!
//! The cursor moves only over blocks of the final view that passed the checks (`advance`). It
//! commits in one transaction with the deposits. No block is skipped: if a block cannot be read, or
//! if no node's answer about it is believed, the cursor stops and an alarm is raised. If a block
//! above the cursor was replaced, the view above the cursor is made again (`pending`).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;

use super::addresses;
use super::block_groups::BlockGroup;
use super::follower::{Follower, store_error};
use crate::app_state::AppState;
use crate::background::is_stopped;
use crate::chains::followed::{FollowError, FollowedChain, NodeHeight, NodeHeights};
use crate::chains::port::is_same_node;
use crate::chains::rows::{self, Cursor, TOKENS_COUNT_MAX};
use crate::chains::verify::{self, Anchor, VerifyError};
use crate::kernel::Now;
use crate::store::{Cost, Tx, failpoint};

/// If a step takes longer than this to read the final view, a gateway is probably slowing it down.
/// A gateway stands in front of a provider's nodes and limits how much they are asked. Then only
/// every second step looks at the blocks above the cursor.
const SLOW_STEP: Duration = Duration::from_secs(10);
/// Longest wait after a fault, in seconds.
const TROUBLE_SECONDS_MAX: u64 = 30;

/// Whether the next step has more of the final view to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FollowProgress {
    Behind,
    CaughtUp,
}

/// Marks a chain as followed by this process until this value is dropped.
pub(super) struct FollowedHere(Arc<FollowedChain>);

impl FollowedHere {
    pub(super) fn begin(chain: Arc<FollowedChain>) -> FollowedHere {
        chain.stats.is_followed.store(true, Ordering::Relaxed);
        FollowedHere(chain)
    }
}

impl Drop for FollowedHere {
    fn drop(&mut self) {
        self.0.stats.is_followed.store(false, Ordering::Relaxed);
    }
}

/// Follows one mode's chain until `stop`.
pub async fn run(app: Arc<AppState>, chain: Arc<FollowedChain>, mut stop: watch::Receiver<bool>) {
    let poll = Duration::from_millis(chain.settings.poll_milliseconds);
    let mut follower = Follower::new(app, chain.clone());
    let _here = FollowedHere::begin(chain.clone());
    let mut troubles_in_a_row = 0_u32;
    while !is_stopped(&stop) {
        let (asked_before, begun) = (chain.questions_counts(), chain.settings.timer.now());
        let step = tokio::select! {
            step = follower.step() => step,
            _ = stop.changed() => break,
        };
        let wait = match step {
            Ok(progress) => {
                if troubles_in_a_row > 0 {
                    tracing::info!(
                        chain = chain.settings.name.as_str(),
                        "the chain is followed again"
                    );
                }
                troubles_in_a_row = 0;
                // A held pool gives no deposit address, because the account key was used before or
                // may have been (`first_start`).
                let is_held = follower
                    .app
                    .services
                    .ports(chain.mode)
                    .is_ok_and(|ports| ports.addresses.is_held());
                let in_trouble = follower.is_token_deprecated || is_held;
                chain.stats.is_in_trouble.store(in_trouble, Ordering::Relaxed);
                match progress {
                    FollowProgress::Behind => Duration::ZERO,
                    FollowProgress::CaughtUp => {
                        let took = chain.settings.timer.now().saturating_sub(begun);
                        poll.max(chain.routine_pause(&asked_before).saturating_sub(took))
                    }
                }
            }
            Err(trouble) => {
                if follower.log_throttle.is_due(&trouble.to_string()) {
                    tracing::error!(
                        chain = chain.settings.name.as_str(),
                        height = chain.stats.height.load(Ordering::Relaxed),
                        %trouble,
                        "the chain cannot be followed; nothing is skipped and nothing expires \
                         meanwhile"
                    );
                }
                chain.stats.is_in_trouble.store(true, Ordering::Relaxed);
                follower.lead_offset += 1;
                let mut wait = poll
                    .saturating_mul(1 << troubles_in_a_row.min(6))
                    .min(Duration::from_secs(TROUBLE_SECONDS_MAX));
                // If all nodes rest after faults, wait only until the first may be asked again.
                if let Some(left) = chain.resting_for() {
                    wait = wait.min(left.max(poll));
                }
                // After a first fault another node is tried at once.
                let is_first = troubles_in_a_row == 0 && chain.nodes.len() > 1;
                troubles_in_a_row += 1;
                if is_first { Duration::ZERO } else { wait }
            }
        };
        if chain.stats.height.load(Ordering::Relaxed) > 0 {
            chain.remember_height(follower.app.store.clock.milliseconds() / 1_000);
        }
        tokio::select! {
            () = chain.settings.timer.sleep(wait) => {}
            _ = stop.changed() => {}
        }
    }
}

impl Follower {
    /// One round: reads the next blocks of the final view. After the last of them, it also looks at
    /// the blocks above the final view and at the refunds that were sent.
    pub(super) async fn step(&mut self) -> Result<FollowProgress, FollowError> {
        let chain = self.chain.clone();
        let begun = chain.settings.timer.now();
        if chain.stats.height.load(Ordering::Relaxed) == 0 {
            // The metrics get the stored progress before any node is asked, so that they have it
            // even while none answers.
            let (mode, name) = (chain.mode, chain.settings.name);
            let stored =
                self.app.store.read(Cost::Point, move |tx| Ok(rows::cursor(tx, mode, name)?));
            if let Some(cursor) = stored.await.map_err(store_error)? {
                self.show_in_metrics(&cursor);
            }
        }
        if !self.knows_addresses
            && !self.app.store.is_shared()
            && let Ok(ports) = self.app.services.ports(chain.mode)
        {
            addresses::load(&ports.addresses.watched, &self.app.store)
                .await
                .map_err(store_error)?;
            self.knows_addresses = true;
        }
        if chain.nodes.iter().any(|node| !node.fits()) {
            match chain.check().await {
                Ok(_) => {}
                // The nodes that have passed their check are enough.
                Err(mismatch) if chain.nodes.iter().any(|node| node.fits()) => {
                    tracing::error!(
                        chain = chain.settings.name.as_str(),
                        mismatch,
                        "a node does not fit and is left out"
                    );
                }
                Err(mismatch) => return Err(FollowError::Mismatch(mismatch)),
            }
            if !chain.nodes.iter().any(|node| node.fits()) {
                return Err(FollowError::NoNode("none could be checked".into()));
            }
        }
        let node_heights = chain.node_heights(self.latest_time()).await?;
        self.log_unusable_nodes(&node_heights);
        chain.stats.final_height.store(node_heights.final_view.height, Ordering::Relaxed);
        let mut cursor = self.load_or_begin(&node_heights).await?;
        self.show_in_metrics(&cursor);
        self.check_deprecation(&mut cursor).await?;
        let NodeHeight { node: first, height: highest, .. } = node_heights.nodes[0];
        if highest < cursor.anchor.height {
            // The final view never goes back, so all nodes that answer are behind.
            return Err(self.doubted(first, VerifyError::Stale(cursor.anchor.height)));
        }
        // If nodes check each other, the final view ends with the highest block that two of them
        // call final. While that block is below the cursor, the cursor stays.
        let final_height = node_heights.final_view.height.max(cursor.anchor.height);
        // A planted fault: it skips blocks after a failed step.
        if failpoint("jump_to_head") && self.lead_offset > 0 && final_height > cursor.anchor.height
        {
            self.lead_offset = 0;
            let header =
                first.header(final_height).await.map_err(|fault| self.node_error(first, fault))?;
            if let Some(header) = header {
                let to = Cursor {
                    anchor: Anchor { height: final_height, hash: header.hash },
                    block_time: header.timestamp.0,
                    deprecation: None,
                };
                self.take_over(
                    cursor.anchor,
                    BlockGroup { to, movements: Vec::new(), sweeps: Vec::new() },
                )
                .await?;
                cursor = to;
            }
        }
        // The lead is the node that is read. It must have the next block, or the cursor's block if
        // there is nothing to read.
        // Among the nodes that have this block, each failed step makes the next one the lead.
        let is_behind = final_height > cursor.anchor.height;
        let lowest = cursor.anchor.height + i64::from(is_behind);
        let leads: Vec<&NodeHeight<'_>> =
            node_heights.nodes.iter().filter(|one| one.height >= lowest).collect();
        let leading = leads[self.lead_offset % leads.len()];
        let (lead, lead_height) = (leading.node, leading.height.min(final_height));
        let place = chain.nodes.iter().position(|node| is_same_node(node.as_ref(), lead));
        chain.stats.lead.store(place.unwrap_or(0), Ordering::Relaxed);
        if is_behind {
            match self.advance(&cursor, leading, lead_height, &node_heights.nodes).await? {
                Some(next) if next.anchor.height >= lead_height => cursor = next,
                _ => return Ok(FollowProgress::Behind),
            }
        }
        // The blocks above the cursor are looked at in the same step, because on a busy chain every
        // step has something final to read. With a slow gateway only every second step looks at
        // them, because the final view comes first.
        let took = chain.settings.timer.now().saturating_sub(begun);
        self.has_skipped_pending = took > SLOW_STEP && !self.has_skipped_pending;
        if !self.has_skipped_pending {
            self.look_above(&cursor, lead).await?;
        }
        self.look_for_refunds(&cursor, lead).await?;
        Ok(FollowProgress::CaughtUp)
    }

    /// Logs which nodes cannot be used now, and notes when one node is believed although no other
    /// checks it.
    pub(super) fn log_unusable_nodes(&mut self, node_heights: &NodeHeights<'_>) {
        let chain = self.chain.clone();
        for (node, why) in &node_heights.missing {
            // Two endpoints can have the same label, because a label leaves out the path, which may
            // hold a key. So the log also has the endpoint's place in the settings.
            let place = chain.nodes.iter().position(|known| is_same_node(known.as_ref(), *node));
            let endpoint = place.map_or(0, |place| place + 1);
            if self.log_throttle.is_due(&format!("endpoint {endpoint}")) {
                tracing::warn!(
                    chain = chain.settings.name.as_str(),
                    endpoint,
                    node = node.label(),
                    why,
                    "a node cannot be used now; the service continues with the others"
                );
            }
        }
        if !node_heights.final_view.is_checked {
            self.note_unchecked("no other node can confirm what it calls final");
        }
    }

    /// Notes whether the cursor says that the token's contract is deprecated. If so, asks the nodes
    /// once a minute what the contract itself says. If the contract denies it, removes the
    /// deprecation from the stored cursor; otherwise logs it.
    pub(super) async fn check_deprecation(
        &mut self,
        cursor: &mut Cursor,
    ) -> Result<(), FollowError> {
        const MESSAGE: &str = "the token moved to a new contract: no new deposit address is \
         handed out until the operator configures that contract";
        let chain = self.chain.clone();
        let name = chain.settings.name;
        self.is_token_deprecated = cursor.has_deprecated(chain.settings.token_contract.bytes());
        if !self.is_token_deprecated || !self.log_throttle.is_due(MESSAGE) {
            return Ok(());
        }
        if !chain.denies_deprecation().await {
            tracing::error!(chain = name.as_str(), "{MESSAGE}");
            return Ok(());
        }
        let (mode, token, from, to) = (
            chain.mode,
            chain.token().contract,
            cursor.anchor,
            Cursor { deprecation: None, ..*cursor },
        );
        if self
            .app
            .store
            .write(move |tx, now| Ok(rows::advance(tx, now, mode, name, &token, from, &to)?))
            .await
            .map_err(store_error)?
        {
            tracing::warn!(
                chain = name.as_str(),
                "the token counted as moved to a new contract, but its contract denies that: new \
                 transfers are accepted again"
            );
            (*cursor, self.is_token_deprecated) = (to, false);
        }
        Ok(())
    }

    /// Reads how far the chain was followed. On the first start there is no cursor, and the chain
    /// is followed from the end of the final view: no address has been handed out yet.
    pub(super) async fn load_or_begin(
        &self,
        node_heights: &NodeHeights<'_>,
    ) -> Result<Cursor, FollowError> {
        let (mode, name) = (self.chain.mode, self.chain.settings.name);
        let read = move |tx: &mut dyn Tx| {
            Ok((
                rows::cursor(tx, mode, name)?.zip(rows::identity(tx, mode, name)?),
                rows::tokens(tx, mode, name)?,
            ))
        };
        let (known, tokens) = self.app.store.read(Cost::Point, read).await.map_err(store_error)?;
        if let Some((cursor, identity)) = known {
            self.chain
                .check_network_and_keep_tokens(&identity, tokens)
                .map_err(FollowError::Mismatch)?;
            if identity.token != self.chain.token().contract {
                self.take_up_token().await?;
            }
            return Ok(cursor);
        }
        let (node, number) = (node_heights.nodes[0].node, node_heights.final_view.height);
        let header = node.header(number).await.map_err(|fault| self.node_error(node, fault))?;
        let header = header.ok_or_else(|| self.doubted(node, VerifyError::Stale(number)))?;
        verify::check_times([&header], 0, self.latest_time())
            .map_err(|doubt| self.doubted(node, doubt))?;
        // If the follower began on a fork, that would be noticed only later, and the follower could
        // not leave the fork by itself. So all nodes that have this block have to show the same
        // one.
        for other in &node_heights.nodes {
            if is_same_node(other.node, node) || other.height < number {
                continue;
            }
            let other = other.node;
            let theirs =
                other.header(number).await.map_err(|fault| self.node_error(other, fault))?;
            if theirs.is_none_or(|theirs| !verify::is_same_block(&theirs, &header)) {
                return Err(self.doubted(other, VerifyError::Disagreement(number, number)));
            }
        }
        let cursor = Cursor {
            anchor: Anchor { height: number, hash: header.hash },
            block_time: header.timestamp.0,
            deprecation: None,
        };
        let (chain_id, token) = (self.chain.settings.chain_id, self.chain.token());
        let begin = move |tx: &mut dyn Tx, now: &mut Now| {
            Ok(rows::begin(tx, now, mode, name, chain_id, token, &cursor)?)
        };
        self.app.store.write(begin).await.map_err(store_error)?;
        tracing::info!(chain = name.as_str(), height = number, "the chain is followed from here");
        Ok(cursor)
    }

    /// Follows the configured contract from here on. A node has already shown that this contract is
    /// a token. Former contracts are still read, for the transfers whose callers were shown them.
    /// Fails if that would be more than `TOKENS_COUNT_MAX` contracts.
    pub(super) async fn take_up_token(&self) -> Result<(), FollowError> {
        let (mode, name, token) = (self.chain.mode, self.chain.settings.name, self.chain.token());
        let work = move |tx: &mut dyn Tx, _: &mut Now| {
            let is_taken = rows::follow_with(tx, mode, name, token)?;
            Ok((is_taken, rows::identity(tx, mode, name)?, rows::tokens(tx, mode, name)?))
        };
        let (is_taken, identity, tokens) = self.app.store.write(work).await.map_err(store_error)?;
        if !is_taken {
            return Err(FollowError::Mismatch(format!(
                "the token has had {TOKENS_COUNT_MAX} contracts on this chain, which is the most: \
                 use another database"
            )));
        }
        if let Some(identity) = identity {
            self.chain
                .check_network_and_keep_tokens(&identity, tokens)
                .map_err(FollowError::Mismatch)?;
        }
        tracing::info!(
            chain = name.as_str(),
            contract = %self.chain.settings.token_contract,
            former = self.chain.former().len(),
            "the token has another contract from here on; transfers whose callers were shown a \
             former one can still be paid in it"
        );
        Ok(())
    }
}
