//! Follows a real chain: reads its final view block after block, credits what it shows, and shows
//! what may still be replaced.
//!
//! The cursor moves over the final view only, and only after what the blocks hold was judged and
//! believed; it commits in one transaction with the deposits. Nothing is skipped: a block that
//! cannot be read, or that nobody is believed about, stops the cursor and is an alarm. Above the
//! cursor there is a view that is thrown away and made again whenever a block was replaced.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::app_state::AppState;
use crate::chains::evm::{Hash, Header, Log, Receipt, Transfer, millionths};
use crate::chains::followed::{FollowError, FollowedChain, Standings};
use crate::chains::rows::{self, Cursor, Sweep, TOKENS_COUNT_MAX};
use crate::chains::rpc::{BlockRange, Node, NodeFault};
use crate::chains::unfiltered_blocks::{self, Known, ReadFault};
use crate::chains::verify::{self, AHEAD_SECONDS_MAX, Anchor, Doubt};
use crate::chains::watched::{Registered, Watched};
use crate::chains::{Depth, Movement};
use crate::deposits::{self, Deposit};
use crate::kernel::id::kind;
use crate::kernel::{Currency, Id, Money, Now, OperationError, Scope, StoreError};
use crate::keys;
use crate::refunds::state::{RefundStatus, SentFault};
use crate::refunds::{self, Refund};
use crate::services::Services;
use crate::store::{Cost, Store, Tx, failpoint};
use crate::transfers::{self, funding, refunding};

/// Blocks above the final view that are looked at: more than that is a chain that does not
/// finalise.
const PENDING_BLOCKS_MAX: i64 = 500;
/// Every so many blocks one is read without a filter, although the filter showed something of it
/// and nothing of it is ours.
const SAMPLE_BLOCKS: i64 = 100;
/// Movements that one transaction takes over, unless one block alone has more: the callers'
/// requests get their turn in between.
const MOVEMENTS_AT_ONCE: usize = 200;
/// Longest wait after trouble.
const TROUBLE_SECONDS_MAX: u64 = 30;
/// How often the same trouble is told again.
const TROUBLE_TOLD_SECONDS: u64 = 60;
/// Different troubles that are told in that time.
const TROUBLES_TOLD_MAX: usize = 12;
/// What one movement of the token may be, in millionths: a thousand million whole ones. The book's
/// sums hold thousands of these.
const MOVEMENT_UNITS_MAX: i64 = 1_000_000_000_000_000;
/// How often refunds that the operator sent are looked for.
const REFUNDS_LOOKED_AT_SECONDS: u64 = 3;
/// Refunds that are looked for at once.
const REFUNDS_COUNT_MAX: i64 = 50;
/// What was told lately, so that what lasts is told at once and again every minute, and not at
/// every look.
#[derive(Default)]
struct Told(Vec<(String, Instant)>);

impl Told {
    /// Whether this is to be told now; it counts as told then.
    fn is_due(&mut self, what: &str) -> bool {
        self.0.retain(|(_, at)| at.elapsed().as_secs() < TROUBLE_TOLD_SECONDS);
        let is_due =
            self.0.len() < TROUBLES_TOLD_MAX && self.0.iter().all(|(known, _)| known != what);
        if is_due {
            self.0.push((what.to_owned(), Instant::now()));
        }
        is_due
    }
}

/// A movement that concerns us, with its log.
pub(super) struct Hit {
    log: Log,
    transfer: Transfer,
    is_sweep: bool,
    /// Whether it is in the token, as the transfer of our address was told it.
    is_token: bool,
}

/// Blocks above the cursor that were looked at last.
#[derive(Default)]
struct Pending {
    /// The last block of the view, whose hash says whether it still stands.
    top: Option<Anchor>,
    movements: Vec<(Movement, Anchor)>,
}

/// What follows one chain: it keeps where it is, and knows whom to ask.
pub(super) struct Follower {
    app: Arc<AppState>,
    chain: Arc<FollowedChain>,
    /// Blocks that the next request covers.
    blocks_at_once: i64,
    /// Which of the nodes leads; moves on after trouble.
    lead_offset: usize,
    pending: Pending,
    refunds_looked_at: Option<Instant>,
    /// The refund that was looked for last, in a round over all that were sent.
    refunds_after: Option<(Scope, Id<kind::Refund>)>,
    /// The addresses handed out before the start are in memory.
    knows_addresses: bool,
    /// The configured token was seen to hand over to another one.
    is_handed_over: bool,
    /// Two nodes can take turns with two troubles, so more than the last one is kept.
    told: Told,
}

/// Addresses read from the register at once.
const PAGE_ADDRESSES: i64 = 16_384;

/// Adds all that the register holds. To be called in the one process that hands addresses out,
/// which may do so meanwhile.
async fn load(watched: &Watched, store: &Store) -> Result<(), OperationError> {
    let count = store.read(Cost::Scan, |tx| Ok(deposits::rows::addresses_count(tx)?)).await?;
    let mut registered = Registered::with_room(usize::try_from(count).unwrap_or(0));
    let mut after = None;
    loop {
        let page = store
            .read(Cost::Scan, move |tx| {
                Ok(deposits::rows::addresses_after(tx, after, PAGE_ADDRESSES)?)
            })
            .await?;
        page.iter().for_each(|address| registered.note(address));
        match page.last() {
            Some(last) => after = Some(*last),
            None => break,
        }
    }
    watched.complete(registered);
    Ok(())
}

/// Whether there is more to read at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    Behind,
    CaughtUp,
}

/// Says that a chain is followed here, for as long as it is.
struct FollowedHere(Arc<FollowedChain>);

impl FollowedHere {
    fn begin(chain: Arc<FollowedChain>) -> FollowedHere {
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
    while !*stop.borrow() {
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
                chain.stats.is_in_trouble.store(follower.is_handed_over, Ordering::Relaxed);
                if progress == Progress::Behind { Duration::ZERO } else { poll }
            }
            Err(trouble) => {
                if follower.told.is_due(&trouble.to_string()) {
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
                let wait = poll
                    .saturating_mul(1 << troubles_in_a_row.min(6))
                    .min(Duration::from_secs(TROUBLE_SECONDS_MAX));
                // One other node is tried at once before anybody waits.
                let is_first = troubles_in_a_row == 0 && chain.nodes.len() > 1;
                troubles_in_a_row += 1;
                if is_first { Duration::ZERO } else { wait }
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = stop.changed() => {}
        }
    }
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
            is_handed_over: false,
            told: Told::default(),
        }
    }

    fn node_trouble(&self, node: &Node, fault: NodeFault) -> FollowError {
        FollowError::Node { node: node.label(), fault }
    }

    fn doubted(&self, node: &Node, doubt: Doubt) -> FollowError {
        self.chain.stats.doubts.fetch_add(1, Ordering::Relaxed);
        FollowError::Doubted { node: node.label(), doubt }
    }

    async fn step(&mut self) -> Result<Progress, FollowError> {
        let chain = self.chain.clone();
        if !self.knows_addresses
            && !self.app.store.is_shared()
            && let Ok(ports) = self.app.services.ports(chain.mode)
        {
            load(&ports.addresses.watched, &self.app.store).await.map_err(store)?;
            self.knows_addresses = true;
        }
        if chain.nodes.iter().any(|node| !node.fits()) {
            match chain.check().await {
                Ok(_) => {}
                // Those that fit go on without it.
                Err(mismatch) if chain.nodes.iter().any(Node::fits) => {
                    tracing::error!(
                        chain = chain.settings.name.as_str(),
                        mismatch,
                        "a node does not fit and is left out"
                    );
                }
                Err(mismatch) => return Err(FollowError::Mismatch(mismatch)),
            }
            if !chain.nodes.iter().any(Node::fits) {
                return Err(FollowError::NoNode("none could be checked".into()));
            }
        }
        let standings = chain.standings(self.latest_time()).await?;
        self.tell_of_nodes(&standings);
        chain.stats.final_height.store(standings.settled.height, Ordering::Relaxed);
        let mut cursor = self.cursor(&standings).await?;
        self.note(&cursor);
        self.tell_of_deprecation(&mut cursor).await?;
        let (first, highest) = standings.nodes[0];
        if highest < cursor.anchor.height {
            // The final view never goes back: all nodes that answer are behind.
            return Err(self.doubted(first, Doubt::Stale(cursor.anchor.height)));
        }
        // Where only the second node is behind, it is waited for.
        let final_height = standings.settled.height.max(cursor.anchor.height);
        if failpoint("jump_to_head") && self.lead_offset > 0 && final_height > cursor.anchor.height
        {
            self.lead_offset = 0;
            let header = first
                .header(final_height)
                .await
                .map_err(|fault| self.node_trouble(first, fault))?;
            if let Some(header) = header {
                let to = Cursor {
                    anchor: Anchor { height: final_height, hash: header.hash },
                    block_time: header.timestamp.0,
                    deprecation: None,
                };
                self.take_over(
                    cursor.anchor,
                    Part { to, movements: Vec::new(), sweeps: Vec::new() },
                )
                .await?;
                cursor = to;
            }
        }
        // A node that is behind the others is no lead; among the rest, trouble moves on to the
        // next.
        let is_behind = final_height > cursor.anchor.height;
        let lowest = cursor.anchor.height + i64::from(is_behind);
        let leads: Vec<(&Node, i64)> =
            standings.nodes.iter().filter(|(_, number)| *number >= lowest).copied().collect();
        let (lead, lead_height) = leads[self.lead_offset % leads.len()];
        let lead_height = lead_height.min(final_height);
        let place = chain.nodes.iter().position(|node| std::ptr::eq(node, lead));
        chain.stats.lead.store(place.unwrap_or(0), Ordering::Relaxed);
        if is_behind {
            match self.advance(&cursor, lead, lead_height, &standings.nodes).await? {
                Some(next) if next.anchor.height >= lead_height => cursor = next,
                _ => return Ok(Progress::Behind),
            }
        }
        // In the same step: on a chain that is busy there is always something final to read.
        self.look_above(&cursor, lead).await?;
        self.look_for_refunds(&cursor, lead).await?;
        Ok(Progress::CaughtUp)
    }

    /// Later than any block can be, Unix seconds.
    fn latest_time(&self) -> i64 {
        self.app.store.clock.milliseconds() / 1000 + AHEAD_SECONDS_MAX
    }

    /// Tells of nodes that are of no use while others are, and of one that is taken at its word.
    fn tell_of_nodes(&mut self, standings: &Standings<'_>) {
        let chain = self.chain.clone();
        for (node, why) in &standings.missing {
            if self.told.is_due(node) {
                tracing::warn!(
                    chain = chain.settings.name.as_str(),
                    node,
                    why,
                    "a node is of no use now; the others go on without it"
                );
            }
        }
        if !standings.settled.is_checked {
            self.note_unchecked("no other node can confirm what it calls final");
        }
    }

    /// Notes that one node alone is taken at its word. Where only one is configured, nobody expects
    /// anything else.
    fn note_unchecked(&mut self, why: &str) {
        self.chain.stats.is_unchecked.store(true, Ordering::Relaxed);
        if self.chain.nodes.len() > 1 && self.told.is_due(why) {
            tracing::error!(
                chain = self.chain.settings.name.as_str(),
                why,
                "what one node says is credited unchecked"
            );
        }
    }

    /// Tells again and again that the token handed over to another one, unless its contract denies
    /// it: then the mark goes.
    async fn tell_of_deprecation(&mut self, cursor: &mut Cursor) -> Result<(), FollowError> {
        const MESSAGE: &str = "the token's contract handed over to another one: no new deposit \
         address is given out until the operator configures it";
        let chain = self.chain.clone();
        let name = chain.settings.name;
        self.is_handed_over = cursor.has_deprecated(chain.settings.token_contract.bytes());
        if !self.is_handed_over || !self.told.is_due(MESSAGE) {
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
            .map_err(store)?
        {
            tracing::warn!(
                chain = name.as_str(),
                "the token was marked as handed over, and its contract denies it: transfers are \
                 taken again"
            );
            (*cursor, self.is_handed_over) = (to, false);
        }
        Ok(())
    }

    fn note(&self, cursor: &Cursor) {
        self.chain.stats.height.store(cursor.anchor.height, Ordering::Relaxed);
        self.chain.stats.block_time.store(cursor.block_time, Ordering::Relaxed);
    }

    /// Where the chain was followed to; the first start begins at the final view, before any
    /// address was handed out.
    async fn cursor(&self, standings: &Standings<'_>) -> Result<Cursor, FollowError> {
        let (mode, name) = (self.chain.mode, self.chain.settings.name);
        let read = move |tx: &mut dyn Tx| {
            Ok((
                rows::cursor(tx, mode, name)?.zip(rows::identity(tx, mode, name)?),
                rows::tokens(tx, mode, name)?,
            ))
        };
        let (known, tokens) = self.app.store.read(Cost::Point, read).await.map_err(store)?;
        if let Some((cursor, identity)) = known {
            self.chain.recognise(&identity, tokens).map_err(FollowError::Mismatch)?;
            if identity.token != self.chain.token().contract {
                self.take_up_token().await?;
            }
            return Ok(cursor);
        }
        let ((node, _), number) = (standings.nodes[0], standings.settled.height);
        let header = node.header(number).await.map_err(|fault| self.node_trouble(node, fault))?;
        let header = header.ok_or_else(|| self.doubted(node, Doubt::Stale(number)))?;
        verify::times([&header], 0, self.latest_time())
            .map_err(|doubt| self.doubted(node, doubt))?;
        // A beginning on another fork would be found only later, and not by itself be left again.
        for (other, _) in standings
            .nodes
            .iter()
            .filter(|(other, height)| !std::ptr::eq(*other, node) && *height >= number)
        {
            let told =
                other.header(number).await.map_err(|fault| self.node_trouble(other, fault))?;
            if told.is_none_or(|told| !verify::is_same_block(&told, &header)) {
                return Err(self.doubted(other, Doubt::Disagreement(number, number)));
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
        self.app.store.write(begin).await.map_err(store)?;
        tracing::info!(chain = name.as_str(), height = number, "the chain is followed from here");
        Ok(cursor)
    }

    /// Follows with the configured contract from here on, which a node has shown to be a token;
    /// those before it are read on for the transfers that were told them.
    async fn take_up_token(&self) -> Result<(), FollowError> {
        let (mode, name, token) = (self.chain.mode, self.chain.settings.name, self.chain.token());
        let work = move |tx: &mut dyn Tx, _: &mut Now| {
            let is_taken = rows::follow_with(tx, mode, name, token)?;
            Ok((is_taken, rows::identity(tx, mode, name)?, rows::tokens(tx, mode, name)?))
        };
        let (is_taken, identity, tokens) = self.app.store.write(work).await.map_err(store)?;
        if !is_taken {
            return Err(FollowError::Mismatch(format!(
                "{TOKENS_COUNT_MAX} contracts were the token's on this chain already, and all are \
                 still read: begin with another database"
            )));
        }
        if let Some(identity) = identity {
            self.chain.recognise(&identity, tokens).map_err(FollowError::Mismatch)?;
        }
        tracing::info!(
            chain = name.as_str(),
            contract = %self.chain.settings.token_contract,
            former = self.chain.former().len(),
            "another contract is the token's from here on; transfers that were told a former one \
             are still paid with it"
        );
        Ok(())
    }

    /// Reads the next blocks of the final view and credits them. Answers how far the cursor was
    /// moved; `None` where less has to be asked for at once, or another node was quicker.
    async fn advance(
        &mut self,
        cursor: &Cursor,
        lead: &Node,
        lead_height: i64,
        standings: &[(&Node, i64)],
    ) -> Result<Option<Cursor>, FollowError> {
        let chain = self.chain.clone();
        let from = cursor.anchor.height + 1;
        let to = lead_height.min(cursor.anchor.height + self.blocks_at_once);
        let contracts = chain.contracts();
        let range = match lead.range(&contracts, from, to).await {
            Ok(Some(range)) => range,
            Ok(None) => return Err(self.doubted(lead, Doubt::Stale(to))),
            Err(fault) => {
                if to > from {
                    // Less at once: the node's limit, or one block in the range that cannot be
                    // read.
                    self.blocks_at_once = ((to - from + 1) / 2).max(1);
                    if matches!(fault, NodeFault::TooMuch(_)) {
                        return Ok(None);
                    }
                }
                return Err(self.node_trouble(lead, fault));
            }
        };
        let empty = verify::range(cursor.anchor, to, &contracts, &range)
            .map_err(|doubt| self.doubted(lead, doubt))?;
        let ends = [&range.first, &range.last];
        verify::times(ends, cursor.block_time, self.latest_time())
            .map_err(|doubt| self.doubted(lead, doubt))?;
        let hits = self.hits(&range.logs).await?;
        let handed_over: Vec<&Log> =
            range.logs.iter().filter(|log| chain.token_log(log) && log.is_deprecation()).collect();
        let logs: Vec<&Log> =
            hits.iter().map(|hit| &hit.log).chain(handed_over.iter().copied()).collect();
        let has_all =
            |standing: &&(&Node, i64)| !std::ptr::eq(standing.0, lead) && standing.1 >= to;
        let others: Vec<&Node> = standings.iter().filter(has_all).map(|(node, _)| *node).collect();
        let known = if failpoint("trust_empty_answers") {
            self.known_of(lead, &hits).await?
        } else {
            match self.cross_check(lead, &others, &contracts, &range, empty, &logs).await? {
                Some(known) => known,
                None => return Ok(None),
            }
        };
        let (earliest, latest) = (range.first.timestamp.0, range.last.timestamp.0);
        verify::times(known.headers.values(), earliest, latest)
            .map_err(|doubt| self.doubted(lead, doubt))?;
        let (movements, sweeps) = self.judged(lead, &hits, &known, Some(lead_height))?;
        let mut deprecation = None;
        for log in handed_over {
            let has_happened = verify::hit(log, known.receipts.get(&log.transaction_hash))
                .map_err(|doubt| self.doubted(lead, doubt))?;
            if !has_happened || chain.denies_deprecation().await {
                tracing::warn!(
                    block = log.block_number.0,
                    "the token was shown to hand over to another one, and did not"
                );
            } else {
                deprecation =
                    Some(rows::Deprecation { contract: log.address.0, height: log.block_number.0 });
            }
        }
        let last = Cursor {
            anchor: Anchor { height: to, hash: range.last.hash },
            block_time: range.last.timestamp.0,
            deprecation: deprecation.or(cursor.deprecation),
        };
        let mut reached = *cursor;
        for part in parts(movements, sweeps, &known.headers, *cursor, last) {
            let (next, count) = (part.to, part.movements.len());
            if !self.take_over(reached.anchor, part).await? {
                return Ok(None);
            }
            chain.stats.blocks.fetch_add(
                (next.anchor.height - reached.anchor.height).unsigned_abs(),
                Ordering::Relaxed,
            );
            chain.stats.deposits.fetch_add(count as u64, Ordering::Relaxed);
            self.note(&next);
            reached = next;
        }
        let blocks_max = chain.settings.blocks_at_once as i64;
        self.blocks_at_once =
            (self.blocks_at_once + (self.blocks_at_once / 4).max(1)).min(blocks_max);
        Ok(Some(reached))
    }

    /// Moves the cursor over some blocks and takes over what they hold, in one transaction. `false`
    /// where the cursor is not where it was: another node read these blocks, and what it wrote is
    /// the same.
    async fn take_over(&self, from: Anchor, part: Part) -> Result<bool, FollowError> {
        let (services, mode, name) =
            (self.app.services.clone(), self.chain.mode, self.chain.settings.name);
        let token = self.chain.token().contract;
        let is_moved = failpoint("cursor_before_deposits");
        if is_moved {
            let to = part.to;
            self.app
                .store
                .write(move |tx, now| Ok(rows::advance(tx, now, mode, name, &token, from, &to)?))
                .await
                .map_err(store)?;
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        let work = move |tx: &mut dyn Tx, now: &mut Now| {
            if !is_moved && !rows::advance(tx, now, mode, name, &token, from, &part.to)? {
                return Ok(false);
            }
            observe(tx, now, &services, name.as_str(), part.movements.iter())?;
            for sweep in &part.sweeps {
                rows::insert_sweep(tx, name, sweep)?;
            }
            Ok(true)
        };
        self.app.store.write(work).await.map_err(store)
    }

    /// Looks at a range in other ways: at another node that has it, and block by block without a
    /// filter where the filter showed nothing, where something is ours, where two nodes tell
    /// different things, and at a sample of the rest. Answers what it read; `None` where the other
    /// node wants to be asked for less at once.
    async fn cross_check(
        &mut self,
        lead: &Node,
        others: &[&Node],
        contracts: &[[u8; 20]],
        range: &BlockRange,
        empty: Vec<i64>,
        logs: &[&Log],
    ) -> Result<Option<Known>, FollowError> {
        let (from, to) = (range.first.number.0, range.last.number.0);
        let mut differing = BTreeSet::new();
        let mut confirming = None;
        for other in others {
            match other.range(contracts, from, to).await {
                Ok(Some(told)) => {
                    differing = verify::differences(range, &told)
                        .map_err(|doubt| self.doubted(other, doubt))?;
                    confirming = Some(*other);
                    break;
                }
                Err(NodeFault::TooMuch(_)) if to > from => {
                    self.blocks_at_once = ((to - from + 1) / 2).max(1);
                    return Ok(None);
                }
                Ok(None) | Err(_) => {}
            }
        }
        // Where there is none to ask, that was noted when all were asked what is final.
        if confirming.is_none() && !others.is_empty() {
            self.note_unchecked(
                "no other node can confirm these blocks; the first one is read twice",
            );
        } else if confirming.is_some()
            && self.chain.stats.is_unchecked.swap(false, Ordering::Relaxed)
        {
            tracing::info!(chain = self.chain.settings.name.as_str(), "two nodes check each other");
        }
        let sampled = (from..=to).filter(|number| number % SAMPLE_BLOCKS == 0);
        let ours = logs.iter().map(|log| log.block_number.0);
        let numbers: BTreeSet<i64> =
            empty.into_iter().chain(sampled).chain(ours).chain(differing.iter().copied()).collect();
        let known = self.read_whole(lead, contracts, range, &numbers).await?;
        if let Some(second) = confirming {
            if !differing.is_empty() {
                // The lead has shown that its index has no hole there; the other one has to say so
                // too, when asked without its index.
                self.read_whole(second, contracts, range, &differing).await?;
                self.chain.stats.doubts.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(node = second.label(), blocks = ?differing, "the second node's \
                 index has a hole, which its receipts fill");
            }
            let told = unfiltered_blocks::of_logs(second, logs)
                .await
                .map_err(|fault| self.node_trouble(second, fault))?;
            for log in logs {
                let (number, transaction) = (log.block_number.0, &log.transaction_hash);
                let ours = verify::hit(log, known.receipts.get(transaction))
                    .map_err(|doubt| self.doubted(lead, doubt))?;
                let theirs = verify::hit(log, told.receipts.get(transaction))
                    .map_err(|doubt| self.doubted(second, doubt))?;
                let headers = known.headers.get(&number).zip(told.headers.get(&number));
                if ours != theirs
                    || headers.is_none_or(|(one, other)| !verify::is_same_block(one, other))
                {
                    return Err(self.doubted(second, Doubt::Disagreement(number, number)));
                }
            }
        }
        Ok(Some(known))
    }

    /// Reads blocks without a filter and compares them with what the filter showed.
    async fn read_whole(
        &self,
        node: &Node,
        contracts: &[[u8; 20]],
        range: &BlockRange,
        numbers: &BTreeSet<i64>,
    ) -> Result<Known, FollowError> {
        unfiltered_blocks::blocks(node, contracts, range, numbers).await.map_err(
            |fault| match fault {
                ReadFault::Node(fault) => self.node_trouble(node, fault),
                ReadFault::Doubt(doubt) => self.doubted(node, doubt),
            },
        )
    }

    /// Reads the receipts and blocks of what concerns us, and nothing else.
    pub(super) async fn known_of(&self, node: &Node, hits: &[Hit]) -> Result<Known, FollowError> {
        let logs: Vec<&Log> = hits.iter().map(|hit| &hit.log).collect();
        unfiltered_blocks::of_logs(node, &logs)
            .await
            .map_err(|fault| self.node_trouble(node, fault))
    }

    /// Which logs concern our addresses. Nobody pays to an address before it was handed out, and
    /// that was committed before.
    pub(super) async fn hits(&self, logs: &[Log]) -> Result<Vec<Hit>, FollowError> {
        let mut moved: Vec<(Log, Transfer)> = Vec::new();
        // In rising order, so that neighbours in the table are looked up together.
        let mut addresses: BTreeSet<[u8; 20]> = BTreeSet::new();
        for log in logs {
            // Anybody can write movements of nothing.
            if let Some(transfer) = log.transfer().filter(|transfer| transfer.value > 0) {
                addresses.extend([transfer.from, transfer.to]);
                moved.push((log.clone(), transfer));
            }
        }
        if moved.is_empty() {
            return Ok(Vec::new());
        }
        let mode = self.chain.mode;
        if let Ok(ports) = self.app.services.ports(mode) {
            addresses.retain(|address| ports.addresses.watched.may_hold(address));
        }
        if addresses.is_empty() {
            return Ok(Vec::new());
        }
        // Few, unless a former token still moves much.
        let former: Vec<[u8; 20]> =
            self.chain.former().into_iter().map(|token| token.contract).collect();
        let in_former: BTreeSet<[u8; 20]> = moved
            .iter()
            .filter(|(log, _)| former.contains(&log.address.0))
            .flat_map(|(_, transfer)| [transfer.from, transfer.to])
            .filter(|address| addresses.contains(address))
            .collect();
        let ours = self.app.store.read(Cost::Scan, move |tx| {
            let addresses: Vec<[u8; 20]> = addresses.into_iter().collect();
            let ours = deposits::rows::handed_out(tx, mode, &addresses)?;
            let mut told = HashMap::new();
            for address in in_former.into_iter().filter(|address| ours.contains(address)) {
                told.extend(
                    transfers::rows::told_contract(tx, &address)?
                        .map(|contract| (address, contract)),
                );
            }
            Ok((ours, told))
        });
        let (ours, told) = ours.await.map_err(store)?;
        let mut hits: Vec<Hit> = moved
            .into_iter()
            .filter(|(_, transfer)| ours.contains(&transfer.to) || ours.contains(&transfer.from))
            .map(|(log, transfer)| {
                let is_sweep = ours.contains(&transfer.from);
                let address = if is_sweep { transfer.from } else { transfer.to };
                Hit {
                    is_sweep,
                    is_token: self.chain.is_token_of(&log.address.0, told.get(&address)),
                    log,
                    transfer,
                }
            })
            // A former token is nothing to a transfer that was not told it, unless it is looked out
            // for as another one.
            .filter(|hit| hit.is_token || self.chain.symbol(&hit.log.address.0).is_some())
            .collect();
        hits.sort_by_key(|hit| (hit.log.block_number, hit.log.log_index));
        Ok(hits)
    }

    /// Looks at the receipts of what concerns us, and turns it into movements. `final_height` is
    /// `None` above the final view.
    pub(super) fn judged(
        &self,
        lead: &Node,
        hits: &[Hit],
        known: &Known,
        final_height: Option<i64>,
    ) -> Result<(Vec<Movement>, Vec<Sweep>), FollowError> {
        let (mut movements, mut sweeps) = (Vec::new(), Vec::new());
        for hit in hits {
            let number = hit.log.block_number.0;
            let doubt = |doubt| self.doubted(lead, doubt);
            let header = known.headers.get(&number).ok_or_else(|| doubt(Doubt::Stale(number)))?;
            if header.hash != hit.log.block_hash {
                return Err(doubt(Doubt::WrongFork(number)));
            }
            if !verify::hit(&hit.log, known.receipts.get(&hit.log.transaction_hash))
                .map_err(doubt)?
            {
                tracing::warn!(
                    block = number,
                    "a movement to us was shown whose transaction failed; it is not credited"
                );
                continue;
            }
            let is_token = hit.is_token;
            let decimals = self.chain.decimals(&hit.log.address.0);
            let units_max = if is_token { MOVEMENT_UNITS_MAX } else { i64::MAX };
            let Some(units) = millionths(hit.transfer.value, decimals)
                .filter(|units| (1..=units_max).contains(units))
            else {
                tracing::warn!(
                    block = number,
                    "a movement to us is too small or too large for the book; it is not credited"
                );
                continue;
            };
            let transaction_hash = hit.log.transaction_hash.text(self.chain.form());
            let time = header.timestamp.0;
            if hit.is_sweep {
                if is_token {
                    sweeps.push(Sweep {
                        transaction_hash,
                        log_index: hit.log.log_index.0,
                        from_address: hit.transfer.from,
                        to_address: hit.transfer.to,
                        units,
                        block_number: number,
                        block_time: time,
                    });
                }
                continue;
            }
            let depth = match final_height {
                Some(height) => Depth::Final { number, time, confirmations: height - number + 1 },
                None => Depth::Block { number, time, confirmations: 1 },
            };
            movements.push(Movement {
                transaction_hash,
                log_index: hit.log.log_index.0,
                from_address: hit.transfer.from,
                to_address: hit.transfer.to,
                asset: self
                    .chain
                    .symbol(&hit.log.address.0)
                    .filter(|_| !is_token)
                    .unwrap_or(Currency::Usdt.as_str())
                    .to_owned(),
                amount: Money::new(units, Currency::Usdt),
                depth,
            });
        }
        Ok((movements, sweeps))
    }

    /// Makes the view above the cursor again, or adds to it what is new, and shows its deposits.
    async fn look_above(&mut self, cursor: &Cursor, lead: &Node) -> Result<(), FollowError> {
        let trouble = |fault| FollowError::Node { node: lead.label(), fault };
        let head = lead.head().await.map_err(trouble)?;
        let head_height = head.number.0.min(cursor.anchor.height + PENDING_BLOCKS_MAX);
        let mut base = cursor.anchor;
        // Taken out together with its movements: one without the other, after a request that fails,
        // would be a view without deposits.
        let kept = self
            .pending
            .top
            .take()
            .filter(|top| top.height > cursor.anchor.height && top.height <= head_height);
        let mut movements = std::mem::take(&mut self.pending.movements);
        let still_stands = match kept {
            Some(top) => lead
                .header(top.height)
                .await
                .map_err(trouble)?
                .is_some_and(|header| header.hash == top.hash),
            None => false,
        };
        match kept.filter(|_| still_stands) {
            Some(top) => {
                base = top;
                movements.retain(|(_, block)| block.height > cursor.anchor.height);
            }
            None => movements.clear(),
        }
        if head_height > base.height {
            let contracts = self.chain.contracts();
            while base.height < head_height {
                let to = head_height.min(base.height + self.blocks_at_once);
                let range = match lead.range(&contracts, base.height + 1, to).await {
                    Ok(Some(range)) => range,
                    // Gone again, or another node answered.
                    Ok(None) => return Ok(()),
                    Err(NodeFault::TooMuch(_)) if to > base.height + 1 => {
                        self.blocks_at_once = ((to - base.height) / 2).max(1);
                        continue;
                    }
                    Err(fault) => return Err(trouble(fault)),
                };
                // What is missing here is found when it is final; a contradiction only means that a
                // block was replaced meanwhile.
                let times = verify::times(
                    [&range.first, &range.last],
                    cursor.block_time,
                    self.latest_time(),
                );
                if verify::range(base, to, &contracts, &range).is_err() || times.is_err() {
                    return Ok(());
                }
                let hits = self.hits(&range.logs).await?;
                let known = self.known_of(lead, &hits).await?;
                match self.judged(lead, &hits, &known, None) {
                    Ok((seen, _)) => movements.extend(seen.into_iter().filter_map(|movement| {
                        let Depth::Block { number, .. } = movement.depth else { return None };
                        let hash =
                            range.logs.iter().find(|log| log.block_number.0 == number)?.block_hash;
                        Some((movement, Anchor { height: number, hash }))
                    })),
                    Err(FollowError::Doubted { .. }) => return Ok(()),
                    Err(trouble) => return Err(trouble),
                }
                base = Anchor { height: to, hash: range.last.hash };
            }
        }
        for (movement, block) in &mut movements {
            if let Depth::Block { confirmations, .. } = &mut movement.depth {
                *confirmations = head.number.0 - block.height + 1;
            }
        }
        self.show(cursor, base.height, &movements).await?;
        self.pending = Pending { top: Some(base), movements };
        Ok(())
    }

    /// Shows the deposits of the view above the cursor, which reaches to `top`, and takes the block
    /// from those that are in it no more. What stands above `top` is not judged: another node may
    /// have seen more.
    async fn show(
        &self,
        cursor: &Cursor,
        top: i64,
        movements: &[(Movement, Anchor)],
    ) -> Result<(), FollowError> {
        let name = self.chain.settings.name;
        let (mode, anchor) = (self.chain.mode, cursor.anchor);
        let is_gone = move |deposit: &Deposit| {
            deposit.scope.mode() == mode
                && deposit.unseen_since.is_none()
                && deposit.block_number.is_none_or(|number| number <= top)
        };
        let waiting = self.app.store.read(Cost::Point, move |tx| {
            Ok(deposits::rows::unsettled_on(tx, name.as_str())?.iter().any(is_gone))
        });
        if movements.is_empty() && !waiting.await.map_err(store)? {
            return Ok(());
        }
        let movements: Arc<Vec<Movement>> =
            Arc::new(movements.iter().map(|(movement, _)| movement.clone()).collect());
        let services = self.app.services.clone();
        let work = move |tx: &mut dyn Tx, now: &mut Now| {
            if !rows::stands_at(tx, mode, name, anchor)? {
                return Ok(());
            }
            let seen: HashSet<Id<kind::Deposit>> =
                observe(tx, now, &services, name.as_str(), movements.iter())?.into_iter().collect();
            for mut deposit in deposits::rows::unsettled_on(tx, name.as_str())? {
                if is_gone(&deposit) && !seen.contains(&deposit.id) {
                    now.enter_account(keys::rows::clock_offset_seconds(tx, deposit.scope)?);
                    deposits::lose_sight(tx, now, &mut deposit)?;
                }
            }
            now.leave_account();
            Ok(())
        };
        self.app.store.write(work).await.map_err(store)
    }

    /// Looks whether refunds that the operator sent are final on chain.
    async fn look_for_refunds(&mut self, cursor: &Cursor, lead: &Node) -> Result<(), FollowError> {
        if self
            .refunds_looked_at
            .is_some_and(|at| at.elapsed().as_secs() < REFUNDS_LOOKED_AT_SECONDS)
        {
            return Ok(());
        }
        self.refunds_looked_at = Some(Instant::now());
        let (mode, name) = (self.chain.mode, self.chain.settings.name);
        let after = self.refunds_after.take();
        let sent = self.app.store.read(Cost::Scan, move |tx| {
            Ok(refunds::rows::sent_on(tx, mode, name.as_str(), after, REFUNDS_COUNT_MAX)?)
        });
        let sent = sent.await.map_err(store)?;
        // The next look goes on where this one ends, so that none waits behind others whose
        // transactions are never found.
        self.refunds_after = sent
            .last()
            .filter(|_| sent.len() as i64 == REFUNDS_COUNT_MAX)
            .map(|refund| (refund.scope, refund.id));
        for refund in sent {
            let Some(hash) = refund.sent_transaction_hash.as_deref().and_then(Hash::parse) else {
                continue;
            };
            let trouble = |fault| FollowError::Node { node: lead.label(), fault };
            let receipt = lead.receipt(&hash).await.map_err(trouble)?;
            let verdict = match &receipt {
                None => Err(SentFault::NotFound),
                Some(receipt) if receipt.block_number.0 > cursor.anchor.height => continue,
                Some(receipt) => {
                    let header = lead.header(receipt.block_number.0).await.map_err(trouble)?;
                    if header.is_none_or(|header| header.hash != receipt.block_hash) {
                        continue;
                    }
                    let (scope, transfer_id) = (refund.scope, refund.transfer_id);
                    let transfer = self.app.store.read(Cost::Point, move |tx| {
                        Ok(transfers::rows::find(tx, scope, transfer_id)?)
                    });
                    let told = transfer
                        .await
                        .map_err(store)?
                        .map(|transfer| *transfer.token_contract.bytes());
                    self.places(&refund, told.as_ref(), receipt)
                }
            };
            let work =
                move |tx: &mut dyn Tx, now: &mut Now| Ok(conclude(tx, now, &refund, &verdict)?);
            self.app.store.write(work).await.map_err(store)?;
        }
        Ok(())
    }

    /// Where in a transaction a refund could be: the token, as it is configured or its transfer was
    /// told it, its whole amount, to its address.
    fn places(
        &self,
        refund: &Refund,
        told: Option<&[u8; 20]>,
        receipt: &Receipt,
    ) -> Result<Vec<i64>, SentFault> {
        if !receipt.has_succeeded() {
            return Err(SentFault::Reverted);
        }
        let is_it = |log: &&Log| {
            self.chain.is_token_of(&log.address.0, told)
                && log.transfer().is_some_and(|transfer| {
                    let units = millionths(transfer.value, self.chain.decimals(&log.address.0));
                    refund.to_address.is_some_and(|to| *to.bytes() == transfer.to)
                        && units == Some(refund.amount.units)
                })
        };
        let places: Vec<i64> =
            receipt.logs.iter().filter(is_it).map(|log| log.log_index.0).collect();
        if places.is_empty() { Err(SentFault::NoSuchMovement) } else { Ok(places) }
    }
}

/// Confirms a refund at the first place that confirms no other, or keeps why the transaction does
/// not do.
fn conclude(
    tx: &mut dyn Tx,
    now: &mut Now,
    seen: &Refund,
    verdict: &Result<Vec<i64>, SentFault>,
) -> Result<(), StoreError> {
    let Some(mut refund) = refunds::rows::find(tx, seen.scope, seen.id)? else { return Ok(()) };
    let Some(hash) = refund
        .sent_transaction_hash
        .clone()
        .filter(|hash| Some(hash) == seen.sent_transaction_hash.as_ref())
    else {
        return Ok(());
    };
    if refund.status != RefundStatus::Processing {
        return Ok(());
    }
    now.enter_account(keys::rows::clock_offset_seconds(tx, refund.scope)?);
    let fault = match verdict {
        Err(fault) => *fault,
        Ok(places) => {
            for place in places {
                if !refunds::rows::is_used(tx, &refund.chain, &hash, *place)? {
                    refund.log_index = Some(*place);
                    refund.sent_fault = None;
                    return refunding::confirm(tx, now, &mut refund, hash);
                }
            }
            SentFault::AlreadyUsed
        }
    };
    if refund.sent_fault != Some(fault) {
        tracing::warn!(refund = %refund.id, fault = fault.as_str(), "the transaction that was \
         given for a refund does not confirm it");
        refund.sent_fault = Some(fault);
        refunds::rows::update(tx, &mut refund, RefundStatus::Processing)?;
    }
    Ok(())
}

/// Blocks that one transaction takes over.
struct Part {
    to: Cursor,
    movements: Vec<Movement>,
    sweeps: Vec<Sweep>,
}

/// Cuts what a range holds at the ends of blocks, so that no transaction takes much more than
/// `MOVEMENTS_AT_ONCE`. The movements come in the order of the chain, and `headers` knows their
/// blocks.
fn parts(
    movements: Vec<Movement>,
    sweeps: Vec<Sweep>,
    headers: &BTreeMap<i64, Header>,
    from: Cursor,
    last: Cursor,
) -> Vec<Part> {
    let height = |movement: &Movement| match movement.depth {
        Depth::Block { number, .. } | Depth::Final { number, .. } => number,
        Depth::Seen => last.anchor.height,
    };
    let mut cut: Vec<Part> = Vec::new();
    let mut group: Vec<Movement> = Vec::new();
    for movement in movements {
        let end = group
            .last()
            .map(height)
            .filter(|end| group.len() >= MOVEMENTS_AT_ONCE && *end < height(&movement));
        if let Some(header) = end.and_then(|end| headers.get(&end)) {
            let to = Cursor {
                anchor: Anchor { height: header.number.0, hash: header.hash },
                block_time: header.timestamp.0,
                deprecation: last
                    .deprecation
                    .filter(|deprecation| deprecation.height <= header.number.0)
                    .or(from.deprecation),
            };
            cut.push(Part { to, movements: std::mem::take(&mut group), sweeps: Vec::new() });
        }
        group.push(movement);
    }
    cut.push(Part { to: last, movements: group, sweeps: Vec::new() });
    for sweep in sweeps {
        if let Some(part) = cut.iter_mut().find(|part| sweep.block_number <= part.to.anchor.height)
        {
            part.sweeps.push(sweep);
        }
    }
    cut
}

/// Takes over movements in the order of the chain, each in its account's time. Answers the deposits
/// that they are.
pub(super) fn observe<'a>(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    chain: &str,
    movements: impl Iterator<Item = &'a Movement>,
) -> Result<Vec<Id<kind::Deposit>>, StoreError> {
    // A transaction's movements to one account belong together; transactions stay in the order of
    // their blocks.
    let mut places: HashMap<(Scope, &str), usize> = HashMap::new();
    let mut groups: Vec<(Scope, Vec<&Movement>)> = Vec::new();
    for movement in movements {
        let Some((scope, _)) = deposits::rows::address_owner(tx, &movement.to_address)? else {
            continue;
        };
        let place =
            *places.entry((scope, movement.transaction_hash.as_str())).or_insert_with(|| {
                groups.push((scope, Vec::new()));
                groups.len() - 1
            });
        if let Some((_, group)) = groups.get_mut(place) {
            group.push(movement);
        }
    }
    let mut ids = Vec::new();
    for (scope, group) in groups {
        now.enter_account(keys::rows::clock_offset_seconds(tx, scope)?);
        ids.extend(funding::observe_transaction(tx, now, services, scope, chain, &group)?);
    }
    now.leave_account();
    Ok(ids)
}

fn store(failure: OperationError) -> FollowError {
    FollowError::Store(failure.to_string())
}

#[cfg(test)]
mod tests {
    use sha2::Digest;

    use super::*;
    use crate::chains::evm::samples::{hash, header};

    fn cursor(height: i64) -> Cursor {
        Cursor {
            anchor: Anchor { height, hash: hash(height) },
            block_time: height * 3,
            deprecation: None,
        }
    }

    fn movement(number: i64, log_index: i64) -> Movement {
        Movement {
            transaction_hash: String::new(),
            log_index,
            from_address: [1; 20],
            to_address: [2; 20],
            asset: "USDT".into(),
            amount: Money::new(1, Currency::Usdt),
            depth: Depth::Final { number, time: number * 3, confirmations: 1 },
        }
    }

    fn sweep(block_number: i64) -> Sweep {
        Sweep {
            transaction_hash: String::new(),
            log_index: 0,
            from_address: [2; 20],
            to_address: [1; 20],
            units: 1,
            block_number,
            block_time: block_number * 3,
        }
    }

    #[test]
    fn large_ranges_are_cut_between_blocks() {
        let full = MOVEMENTS_AT_ONCE as i64;
        // Movements in the blocks 11, 12 and 13; what the parts end at, and how many movements and
        // sweeps they have.
        let table: [([i64; 3], Option<i64>, &[(i64, usize, usize)]); 6] = [
            ([0, 0, 0], None, &[(20, 0, 3)]),
            ([1, 1, 1], None, &[(20, 3, 3)]),
            ([full, 0, 0], None, &[(20, 200, 3)]),
            ([full, 1, 1], None, &[(11, 200, 1), (20, 2, 2)]),
            ([full - 1, full, 1], Some(12), &[(12, 399, 2), (20, 1, 1)]),
            ([2 * full, full, full], Some(13), &[(11, 400, 1), (12, 200, 1), (20, 200, 1)]),
        ];
        let headers = (11..=13).map(|number| (number, header(number))).collect();
        for (counts, deprecated_height, expected) in table {
            let deprecation =
                deprecated_height.map(|height| rows::Deprecation { contract: [7; 20], height });
            let blocks = counts
                .iter()
                .zip(11..)
                .flat_map(|(count, number)| (0..*count).map(move |place| movement(number, place)));
            let all: Vec<Movement> = blocks.collect();
            let last = Cursor { deprecation, ..cursor(20) };
            let cut = parts(
                all.clone(),
                vec![sweep(11), sweep(12), sweep(15)],
                &headers,
                cursor(10),
                last,
            );
            let shape: Vec<_> = cut
                .iter()
                .map(|part| (part.to.anchor.height, part.movements.len(), part.sweeps.len()))
                .collect();
            assert_eq!(shape, expected, "{counts:?}");
            assert_eq!(
                cut.iter().flat_map(|part| part.movements.clone()).collect::<Vec<_>>(),
                all,
                "nothing is lost or turned round"
            );
            for part in &cut {
                let height = part.to.anchor.height;
                let deprecation = deprecation.filter(|deprecation| deprecation.height <= height);
                assert_eq!(part.to, Cursor { deprecation, ..cursor(height) });
            }
        }
    }

    /// Spread as addresses are: each is part of a hash.
    fn addresses(from: usize, count: usize) -> Vec<[u8; 20]> {
        let address = |number: usize| {
            let digest = sha2::Sha256::digest(number.to_be_bytes());
            std::array::from_fn(|index| digest[index])
        };
        (from..from + count).map(address).collect()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_the_register_holds_and_what_is_handed_out_meanwhile_is_known() {
        let folder = std::env::temp_dir().join(format!("hundi-watched-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let store = Store::open(
            &folder.join("watched.db"),
            crate::kernel::Clock::System,
            crate::store::handle::no_epilogue,
        )
        .unwrap();
        let count = PAGE_ADDRESSES as usize * 2 + 5;
        let stored = addresses(0, count);
        let rows = stored.clone();
        let assign = move |tx: &mut dyn Tx, now: &mut Now| {
            for address in &rows {
                deposits::rows::assign_address(
                    tx,
                    Scope::new(1, crate::kernel::Mode::Live),
                    now.mint(),
                    address,
                )?;
            }
            Ok(())
        };
        store.write(assign).await.unwrap();
        let watched = Watched::default();
        let new = addresses(count, 10);
        watched.note(&new[0]);
        load(&watched, &store).await.unwrap();
        new[1..].iter().for_each(|address| watched.note(address));
        assert!(stored.iter().chain(&new).all(|address| watched.may_hold(address)));
        // The control: a stranger is turned away, so the filter does more than claim everybody.
        assert!(
            addresses(count * 2, 100).iter().filter(|address| watched.may_hold(address)).count()
                < 5
        );
        store.close().await;
        std::fs::remove_dir_all(folder).unwrap();
    }
}
