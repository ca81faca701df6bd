//! The view above the cursor: what the lead, the node that the follower reads, shows of blocks that
//! may still be replaced. Their deposits are shown and not credited.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::block_groups::observe;
use super::follower::{Follower, Pending, PendingMovement, store_error};
use crate::chains::followed::FollowError;
use crate::chains::port::{ChainNode, NodeError};
use crate::chains::rows::{self, Cursor};
use crate::chains::verify::{self, Anchor};
use crate::chains::{Depth, Movement};
use crate::deposits::{self, Deposit};
use crate::kernel::id::kind;
use crate::kernel::{Id, Now};
use crate::keys;
use crate::store::{Cost, Tx};

/// The most blocks above the cursor that are looked at. It is twice what Arbitrum normally has
/// there, which is the most of all chains: 4 blocks a second for up to 20 minutes are 4,800 blocks.
/// Base has 600, and TRON far fewer. If there are more than this, deposits in the higher ones are
/// not shown yet, and the chain audit stops at a balance that differs from the book, because
/// movements in these blocks may be the cause.
pub(super) const BLOCKS_ABOVE_CURSOR_MAX: i64 = 2 * 4 * 20 * 60;
/// The most blocks above the cursor that one look reads, so that the final view never waits long.
/// The next look goes on after them.
const LOOK_BLOCKS_MAX: i64 = 500;

impl Follower {
    /// Adds new blocks to the view above the cursor and shows its deposits. If the view's last
    /// block was replaced, the view is made again from the cursor.
    pub(super) async fn look_above(
        &mut self,
        cursor: &Cursor,
        lead: &dyn ChainNode,
    ) -> Result<(), FollowError> {
        let trouble = |fault| FollowError::Node { node: lead.label(), fault };
        let head = lead.head().await.map_err(trouble)?;
        self.chain.stats.head_height.store(head.number.0, Ordering::Relaxed);
        let highest = head.number.0.min(cursor.anchor.height + BLOCKS_ABOVE_CURSOR_MAX);
        // The top is the last block of the view that an earlier look made. It is taken out of
        // `self.pending` together with the movements. If something fails below, either both are put
        // back or both are gone: a top that is kept without the movements would look like a view
        // without deposits.
        //
        // A top at the height of the newest block is compared with that block here. Whether a lower
        // top was replaced shows in the next range, which has to continue from the top.
        let mut kept = self.pending.top.take().filter(|top| {
            (cursor.anchor.height + 1..=highest).contains(&top.height)
                && (top.height < head.number.0 || top.hash == head.hash)
        });
        let mut movements = std::mem::take(&mut self.pending.movements);
        let (contracts, tokens) = (self.chain.contracts(), self.chain.token_contracts());
        let base = 'view: loop {
            match kept {
                Some(_) => movements.retain(|pending| pending.height > cursor.anchor.height),
                None => movements.clear(),
            }
            let mut base = kept.unwrap_or(cursor.anchor);
            let look_height = highest.min(base.height + LOOK_BLOCKS_MAX);
            while base.height < look_height {
                let to = look_height.min(base.height + self.blocks_at_once);
                let range = match lead.range(&contracts, base.height + 1, to, Some(&head)).await {
                    Ok(Some(range)) => range,
                    // The block was replaced, or another of the provider's servers answered, which
                    // does not have it.
                    Ok(None) => return Ok(()),
                    Err(NodeError::TooMuch(_)) if to > base.height + 1 => {
                        self.blocks_at_once = ((to - base.height) / 2).max(1);
                        continue;
                    }
                    Err(fault) => {
                        // What was read before stays: it can be thousands of blocks.
                        self.pending = Pending { top: Some(base), movements };
                        return Err(trouble(fault));
                    }
                };
                if kept.is_some_and(|top| top == base) && range.first.parent_hash != base.hash {
                    // The top of the view was replaced: the view is made again from the cursor.
                    kept = None;
                    continue 'view;
                }
                // If the node contradicts itself here, a block was probably replaced meanwhile.
                // That is no fault of the node, and ends only this look. (A contradiction that
                // `movements_of` finds still counts as a doubt.) What this look misses is found
                // when it is final.
                let times = verify::check_times(
                    [&range.first, &range.last],
                    cursor.block_time,
                    self.latest_time(),
                );
                let judged = verify::check_range(base, to, &contracts, &tokens, &range);
                if judged.is_err() || times.is_err() {
                    return Ok(());
                }
                let our_logs = self.our_logs(&range.logs).await?;
                let known = self.read_receipts(lead, &our_logs).await?;
                match self.movements_of(lead, &our_logs, &known, None) {
                    Ok((seen, _)) => movements.extend(seen.into_iter().filter_map(|movement| {
                        let Depth::Block { number: height, .. } = movement.depth else {
                            return None;
                        };
                        Some(PendingMovement { height, movement })
                    })),
                    Err(FollowError::Doubted { .. }) => return Ok(()),
                    Err(trouble) => return Err(trouble),
                }
                base = Anchor { height: to, hash: range.last.hash };
            }
            break base;
        };
        for PendingMovement { height, movement } in &mut movements {
            if let Depth::Block { confirmations, .. } = &mut movement.depth {
                *confirmations = head.number.0 - *height + 1;
            }
        }
        self.show(cursor, base.height, &movements).await?;
        self.pending = Pending { top: Some(base), movements };
        Ok(())
    }

    /// Shows the deposits of the view above the cursor, which reaches to the block `top`. Notes
    /// which unsettled deposits are no longer in the view. Deposits above `top` stay as they are:
    /// another node may have seen more.
    pub(super) async fn show(
        &self,
        cursor: &Cursor,
        top: i64,
        movements: &[PendingMovement],
    ) -> Result<(), FollowError> {
        let name = self.chain.settings.name;
        let (mode, anchor) = (self.chain.mode, cursor.anchor);
        // Whether the view would have the deposit if the deposit's block had not been replaced.
        let is_in_reach = move |deposit: &Deposit| {
            deposit.scope.mode() == mode
                && deposit.unseen_since.is_none()
                && deposit.block_number.is_none_or(|number| number <= top)
        };
        let any_in_reach = self.app.store.read(Cost::Point, move |tx| {
            Ok(deposits::rows::unsettled_on(tx, name.as_str())?.iter().any(is_in_reach))
        });
        if movements.is_empty() && !any_in_reach.await.map_err(store_error)? {
            return Ok(());
        }
        let movements: Arc<Vec<Movement>> =
            Arc::new(movements.iter().map(|pending| pending.movement.clone()).collect());
        let services = self.app.services.clone();
        let work = move |tx: &mut dyn Tx, now: &mut Now| {
            if !rows::stands_at(tx, mode, name, anchor)? {
                return Ok(());
            }
            let seen: HashSet<Id<kind::Deposit>> =
                observe(tx, now, &services, name.as_str(), movements.iter())?.into_iter().collect();
            for mut deposit in deposits::rows::unsettled_on(tx, name.as_str())? {
                if is_in_reach(&deposit) && !seen.contains(&deposit.id) {
                    now.enter_account(keys::rows::clock_offset_seconds(tx, deposit.scope)?);
                    deposits::mark_unseen(tx, now, &mut deposit)?;
                }
            }
            now.leave_account();
            Ok(())
        };
        self.app.store.write(work).await.map_err(store_error)
    }
}
