//! Reads the next blocks of the final view, checks them and credits what they hold.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::block_groups::{BlockGroup, block_groups, observe};
use super::follower::{Follower, store_error};
use super::our_logs::OurLog;
use crate::chains::address::AddressBytes;
use crate::chains::blocks::Log;
use crate::chains::followed::{FollowError, NodeHeight};
use crate::chains::port::{BlockRange, ChainNode, NodeError, is_same_node};
use crate::chains::rows::{self, Cursor};
use crate::chains::unfiltered_blocks::{self, BlockData, ReadError};
use crate::chains::verify::{self, Anchor, VerifyError};
use crate::kernel::Now;
use crate::store::{Tx, failpoint};

/// As a sample, each block whose number is a multiple of this is read without the node's filter.
const SAMPLE_EVERY_BLOCKS: i64 = 100;

impl Follower {
    /// Reads the next blocks of the final view from the node `leading`, the lead, and credits what
    /// they hold. Answers the cursor after them. `None` if the follower has to begin again from the
    /// stored cursor: a node refused so many blocks at once, or another process moved the cursor
    /// first or follows another contract.
    pub(super) async fn advance(
        &mut self,
        cursor: &Cursor,
        leading: &NodeHeight<'_>,
        final_to: i64,
        node_heights: &[NodeHeight<'_>],
    ) -> Result<Option<Cursor>, FollowError> {
        let chain = self.chain.clone();
        let lead = leading.node;
        let from = cursor.anchor.height + 1;
        let to = final_to.min(cursor.anchor.height + self.blocks_at_once);
        let contracts = chain.contracts();
        let range = match lead.range(&contracts, from, to, leading.header.as_ref()).await {
            Ok(Some(range)) => range,
            Ok(None) => return Err(self.doubted(lead, VerifyError::Stale(to))),
            Err(fault) => {
                if to > from {
                    // Ask for fewer blocks next time: the range may be above the node's limit, or
                    // one of its blocks cannot be read.
                    self.blocks_at_once = ((to - from + 1) / 2).max(1);
                    if matches!(fault, NodeError::TooMuch(_)) {
                        return Ok(None);
                    }
                }
                return Err(self.node_error(lead, fault));
            }
        };
        let tokens = chain.token_contracts();
        let empty_blocks = verify::check_range(cursor.anchor, to, &contracts, &tokens, &range)
            .map_err(|doubt| self.doubted(lead, doubt))?;
        let ends = [&range.first, &range.last];
        verify::check_times(ends, cursor.block_time, self.latest_time())
            .map_err(|doubt| self.doubted(lead, doubt))?;
        let our_logs = self.our_logs(&range.logs).await?;
        let deprecations: Vec<&Log> = range
            .logs
            .iter()
            .filter(|log| chain.is_token_log(log) && log.is_deprecation())
            .collect();
        let logs: Vec<&Log> =
            our_logs.iter().map(|our| &our.log).chain(deprecations.iter().copied()).collect();
        let others: Vec<&NodeHeight<'_>> = node_heights
            .iter()
            .filter(|other| !is_same_node(other.node, lead) && other.height >= to)
            .collect();
        let known = if failpoint("trust_empty_answers") {
            self.read_receipts(lead, &our_logs).await?
        } else {
            match self.cross_check(lead, &others, &contracts, &range, empty_blocks, &logs).await? {
                Some(known) => known,
                None => return Ok(None),
            }
        };
        if !our_logs.is_empty()
            && let Ok(head) = lead.head().await
        {
            // Confirmations are counted up to the head.
            chain.stats.head_height.store(head.number.0, Ordering::Relaxed);
        }
        let (earliest, latest) = (range.first.timestamp.0, range.last.timestamp.0);
        verify::check_times(known.headers.values(), earliest, latest)
            .map_err(|doubt| self.doubted(lead, doubt))?;
        let (movements, sweeps) = self.movements_of(lead, &our_logs, &known, Some(final_to))?;
        let mut deprecation = None;
        for log in deprecations {
            let has_happened = verify::has_happened(log, known.receipts.get(&log.transaction_hash))
                .map_err(|doubt| self.doubted(lead, doubt))?;
            if !has_happened || chain.denies_deprecation().await {
                tracing::warn!(
                    block = log.block_number.0,
                    "a node showed that the token moved to a new contract, but that transaction \
                     failed, or the contract denies it; this is ignored"
                );
            } else {
                deprecation =
                    Some(rows::Deprecation { contract: log.contract, height: log.block_number.0 });
            }
        }
        let last = Cursor {
            anchor: Anchor { height: to, hash: range.last.hash },
            block_time: range.last.timestamp.0,
            deprecation: deprecation.or(cursor.deprecation),
        };
        let mut reached = *cursor;
        for group in block_groups(movements, sweeps, &known.headers, *cursor, last) {
            let (next, count) = (group.to, group.movements.len());
            if !self.take_over(reached.anchor, group).await? {
                return Ok(None);
            }
            chain.stats.blocks.fetch_add(
                (next.anchor.height - reached.anchor.height).unsigned_abs(),
                Ordering::Relaxed,
            );
            chain.stats.deposits.fetch_add(count as u64, Ordering::Relaxed);
            self.show_in_metrics(&next);
            reached = next;
        }
        let blocks_max = chain.settings.blocks_at_once as i64;
        self.blocks_at_once =
            (self.blocks_at_once + (self.blocks_at_once / 4).max(1)).min(blocks_max);
        Ok(Some(reached))
    }

    /// Moves the cursor over some blocks and takes over what they hold, in one transaction. `false`
    /// if another process has moved the cursor away from `from`, or follows another contract.
    pub(super) async fn take_over(
        &self,
        from: Anchor,
        group: BlockGroup,
    ) -> Result<bool, FollowError> {
        let (services, mode, name) =
            (self.app.services.clone(), self.chain.mode, self.chain.settings.name);
        let token = self.chain.token().contract;
        let is_moved = failpoint("cursor_before_deposits");
        if is_moved {
            let to = group.to;
            self.app
                .store
                .write(move |tx, now| Ok(rows::advance(tx, now, mode, name, &token, from, &to)?))
                .await
                .map_err(store_error)?;
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        let work = move |tx: &mut dyn Tx, now: &mut Now| {
            if !is_moved && !rows::advance(tx, now, mode, name, &token, from, &group.to)? {
                return Ok(false);
            }
            observe(tx, now, &services, name.as_str(), group.movements.iter())?;
            for sweep in &group.sweeps {
                rows::insert_sweep(tx, name, sweep)?;
            }
            Ok(true)
        };
        self.app.store.write(work).await.map_err(store_error)
    }

    /// Checks a range that the lead showed. Asks another node for the same range, and reads some
    /// blocks without the filter: those of which the filter showed nothing (`empty_blocks`), those
    /// of `logs` (which concern our addresses or deprecate the token), those about which two nodes
    /// differ, and a sample of the rest. Answers the headers and receipts that it read; `None` if
    /// the other node refused so many blocks at once.
    pub(super) async fn cross_check(
        &mut self,
        lead: &dyn ChainNode,
        others: &[&NodeHeight<'_>],
        contracts: &[AddressBytes],
        range: &BlockRange,
        empty_blocks: Vec<i64>,
        logs: &[&Log],
    ) -> Result<Option<BlockData>, FollowError> {
        let (from, to) = (range.first.number.0, range.last.number.0);
        let mut differing = BTreeSet::new();
        let mut confirming = None;
        for other in others {
            match other.node.range(contracts, from, to, other.header.as_ref()).await {
                Ok(Some(theirs)) => {
                    differing = verify::differences(range, &theirs)
                        .map_err(|doubt| self.doubted(other.node, doubt))?;
                    confirming = Some(other.node);
                    break;
                }
                Err(NodeError::TooMuch(_)) if to > from => {
                    self.blocks_at_once = ((to - from + 1) / 2).max(1);
                    return Ok(None);
                }
                Ok(None) | Err(_) => {}
            }
        }
        // If there is no other node, that was noted already when all nodes were asked for their
        // final blocks.
        if confirming.is_none() && !others.is_empty() {
            self.note_unchecked(
                "no other node answers for these blocks; bring the other endpoints back or replace \
                 them (docs/chains.md)",
            );
        } else if confirming.is_some()
            && self.chain.stats.is_unchecked.swap(false, Ordering::Relaxed)
        {
            tracing::info!(chain = self.chain.settings.name.as_str(), "two nodes check each other");
        }
        let sampled = (from..=to).filter(|number| number % SAMPLE_EVERY_BLOCKS == 0);
        let of_logs = logs.iter().map(|log| log.block_number.0);
        let numbers: BTreeSet<i64> = empty_blocks
            .into_iter()
            .chain(sampled)
            .chain(of_logs)
            .chain(differing.iter().copied())
            .collect();
        let known = self.read_whole(lead, contracts, range, &numbers).await?;
        if let Some(second) = confirming {
            if !differing.is_empty() {
                // The lead's receipts agree with the lead's filter. If the second node's receipts
                // agree with that filter too, only the second node's filter was wrong.
                self.read_whole(second, contracts, range, &differing).await?;
                self.chain.stats.doubts.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(node = second.label(), blocks = ?differing, "the second node's \
                 filter showed other logs than its receipts, which agree with the first node");
            }
            let other_known = unfiltered_blocks::of_logs(second, logs)
                .await
                .map_err(|fault| self.node_error(second, fault))?;
            for log in logs {
                let (number, transaction) = (log.block_number.0, &log.transaction_hash);
                let at_lead = verify::has_happened(log, known.receipts.get(transaction))
                    .map_err(|doubt| self.doubted(lead, doubt))?;
                let at_second = verify::has_happened(log, other_known.receipts.get(transaction))
                    .map_err(|doubt| self.doubted(second, doubt))?;
                let headers = known.headers.get(&number).zip(other_known.headers.get(&number));
                if at_lead != at_second
                    || headers.is_none_or(|(one, other)| !verify::is_same_block(one, other))
                {
                    return Err(self.doubted(second, VerifyError::Disagreement(number, number)));
                }
            }
        }
        Ok(Some(known))
    }

    /// Reads blocks without a filter and compares them with what the filter showed.
    pub(super) async fn read_whole(
        &self,
        node: &dyn ChainNode,
        contracts: &[AddressBytes],
        range: &BlockRange,
        numbers: &BTreeSet<i64>,
    ) -> Result<BlockData, FollowError> {
        unfiltered_blocks::blocks(node, contracts, range, numbers).await.map_err(
            |fault| match fault {
                ReadError::Node(fault) => self.node_error(node, fault),
                ReadError::VerifyError(doubt) => self.doubted(node, doubt),
            },
        )
    }

    /// Reads the receipts and headers of the logs that concern us, and nothing else.
    pub(super) async fn read_receipts(
        &self,
        node: &dyn ChainNode,
        our_logs: &[OurLog],
    ) -> Result<BlockData, FollowError> {
        let logs: Vec<&Log> = our_logs.iter().map(|our| &our.log).collect();
        unfiltered_blocks::of_logs(node, &logs).await.map_err(|fault| self.node_error(node, fault))
    }
}
