//! Compares the book with a real chain once more than the follower did: what blocks hold, what
//! refunds were, and what addresses hold. It puts nothing right; differences are kept for the
//! operator, and the mark of how far the book was compared moves only over what was read.
//!
//! A node that the follower did not read from last is preferred. Balances come from the chain's
//! state and not from its logs, so they also show a movement whose log no node shows.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;

use crate::app_state::AppState;
use crate::chains::evm::{Hash, Log, Transfer, millionths};
use crate::chains::followed::FollowedChain;
use crate::chains::rows::{self, AuditMark, Cursor};
use crate::chains::rpc::{BlockRange, Node, NodeFault};
use crate::chains::unfiltered_blocks::{self, ReadFault};
use crate::chains::verify::{self, Anchor, Doubt};
use crate::deposits;
use crate::kernel::id::kind;
use crate::kernel::{Currency, Id, Money, Now, OperationError, Scope, StoreError};
use crate::keys;
use crate::reconcile::DifferenceKind;
use crate::reconcile::chain::{self as book, Found, Held, Place, Role, Shown, Written};
use crate::store::Cost;
use crate::store::{Store, Tx};
use crate::transfers;

/// How long after a comparison of everything the next one is due.
const AUDIT_EVERY_SECONDS: i64 = 24 * 3600;
/// How long it waits after one that failed.
const RETRY_SECONDS: i64 = 600;
/// How often the worker looks whether one is due.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Blocks after which the mark moves on.
const BLOCKS_MARKED_AT_ONCE: i64 = 1_000;
/// Time between requests, which the follower needs more than the audit.
const PAUSE: Duration = Duration::from_millis(50);
/// Addresses whose balances are compared together, and refunds that are.
const ADDRESSES_AT_ONCE: i64 = 500;
const REFUNDS_AT_ONCE: i64 = 50;
/// What is compared again of the time before the last comparison: an address that was handed out, a
/// refund that was completed.
const OVERLAP_SECONDS: i64 = 24 * 3600;
/// Blocks above the followed view that are read to explain balances; while there are more, balances
/// are not compared.
const BLOCKS_ABOVE_MAX: i64 = 500;
/// How often balances that are not the book's are asked for: a block above may have been replaced
/// in between.
const BALANCE_TRIES: usize = 3;

/// Why the book could not be compared, or not further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditFault {
    #[error("the chain was never followed: run the service first")]
    NeverFollowed,
    #[error("{0}")]
    Mismatch(String),
    #[error("no node could be read: {}", .0.iter().map(|(node,
        fault)| format!("{node}: {fault}")).collect::<Vec<_>>().join("; "))]
    Nodes(Vec<(String, ReadFault)>),
    #[error("blocks {0} to {1} cannot be compared: the chain was followed up to block {2}")]
    Blocks(i64, i64, i64),
    #[error("balances are compared when the service has caught up: it is {0} blocks behind")]
    Behind(i64),
    #[error("the store does not take it: {0}")]
    Store(String),
}

/// What is to be compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Only these blocks, first and last, and all refunds; without it everything since the last
    /// comparison.
    pub blocks: Option<(i64, i64)>,
    /// The balance of each address that was ever handed out, and not only of those that hold
    /// something or are new.
    pub all_addresses: bool,
}

/// What was compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// First and last block; `None` if there was none to compare.
    pub blocks: Option<(i64, i64)>,
    /// Movements of ours that the chain showed in them.
    pub movements_count: usize,
    pub refunds_count: usize,
    pub addresses_count: usize,
    /// What those addresses should hold by the book and the movements above its view, and what they
    /// hold on the chain.
    pub held: Money,
    pub balance: Money,
}

/// Compares the book with the chain and keeps the differences. What was compared before a fault
/// stays compared.
pub async fn run_once(
    store: &Store,
    chain: &FollowedChain,
    asked: Asked,
) -> Result<Compared, AuditFault> {
    let (mode, name) = (chain.mode, chain.settings.name);
    check(chain).await?;
    let (cursor, mark) = followed(store, chain).await?;
    let audit = Audit { store, chain, nodes: believed(chain, &cursor).await?, cursor };
    let mut compared = Compared {
        blocks: None,
        movements_count: 0,
        refunds_count: 0,
        addresses_count: 0,
        held: Money::zero(Currency::Usdt),
        balance: Money::zero(Currency::Usdt),
    };
    match asked.blocks {
        Some((from, to)) => {
            if from < 1 || from > to || to > cursor.anchor.height {
                return Err(AuditFault::Blocks(from, to, cursor.anchor.height));
            }
            let before = audit.anchor(from - 1).await?;
            audit.blocks(before, to, &mut compared).await?;
            audit.refunds(i64::MIN, &mut compared).await?;
        }
        None => {
            let since = mark.completed_milliseconds / 1000 - OVERLAP_SECONDS;
            audit.blocks(mark.anchor, cursor.anchor.height, &mut compared).await?;
            audit.refunds(since, &mut compared).await?;
            audit
                .balances(if asked.all_addresses { i64::MIN } else { since }, &mut compared)
                .await?;
            store
                .write(move |tx, now| Ok(rows::complete_audit(tx, now, mode, name)?))
                .await
                .map_err(unstored)?;
        }
    }
    Ok(compared)
}

/// How far the chain was followed and compared; the chain knows from here on which contracts were
/// its token's.
pub(super) async fn followed(
    store: &Store,
    chain: &FollowedChain,
) -> Result<(Cursor, AuditMark), AuditFault> {
    let (mode, name) = (chain.mode, chain.settings.name);
    let read = move |tx: &mut dyn Tx| {
        let followed = rows::cursor(tx, mode, name)?.zip(rows::audit_mark(tx, mode, name)?);
        Ok((followed, rows::identity(tx, mode, name)?, rows::tokens(tx, mode, name)?))
    };
    let (followed, identity, tokens) = store.read(Cost::Point, read).await.map_err(unstored)?;
    let (followed, identity) = followed.zip(identity).ok_or(AuditFault::NeverFollowed)?;
    chain.recognise(&identity, tokens).map_err(AuditFault::Mismatch)?;
    Ok(followed)
}

/// Checks that there is a node of the chain that was configured.
pub(super) async fn check(chain: &FollowedChain) -> Result<(), AuditFault> {
    if chain.nodes.iter().any(Node::fits) || chain.check().await.map_err(AuditFault::Mismatch)? {
        return Ok(());
    }
    let unreachable = ReadFault::Node(NodeFault::Unreachable("it could not be checked".into()));
    Err(AuditFault::Nodes(
        chain.nodes.iter().map(|node| (node.label(), unreachable.clone())).collect(),
    ))
}

/// The nodes that have the block up to which the chain was followed; the one that the follower read
/// from last comes last.
async fn believed<'a>(
    chain: &'a FollowedChain,
    cursor: &Cursor,
) -> Result<Vec<&'a Node>, AuditFault> {
    let lead = chain.stats.lead.load(Ordering::Relaxed);
    let (mut nodes, mut faults) = (Vec::new(), Vec::new());
    for (place, node) in chain.nodes.iter().enumerate().filter(|(_, node)| node.fits()) {
        let fault = match node.header(cursor.anchor.height).await {
            Ok(Some(header)) if header.hash == cursor.anchor.hash => {
                nodes.push((place == lead, node));
                continue;
            }
            Ok(Some(_)) => ReadFault::Doubt(Doubt::WrongFork(cursor.anchor.height)),
            Ok(None) => ReadFault::Doubt(Doubt::Stale(cursor.anchor.height)),
            Err(fault) => ReadFault::Node(fault),
        };
        tracing::warn!(node = node.label(), %fault, "a node is not asked about the book");
        faults.push((node.label(), fault));
    }
    nodes.sort_by_key(|(is_lead, _)| *is_lead);
    if nodes.is_empty() {
        Err(AuditFault::Nodes(faults))
    } else {
        Ok(nodes.into_iter().map(|(_, node)| node).collect())
    }
}

struct Audit<'a> {
    store: &'a Store,
    chain: &'a FollowedChain,
    nodes: Vec<&'a Node>,
    /// Up to where the chain was followed when the comparison began.
    cursor: Cursor,
}

/// A movement that the filter showed.
#[derive(Clone)]
struct Moved {
    place: Place,
    log: Log,
    transfer: Transfer,
}

/// What a part of the chain shows, and what the book has of it.
struct Part {
    last: Anchor,
    ours: HashSet<[u8; 20]>,
    shown: Vec<Shown>,
    written: Vec<Written>,
}

/// The addresses of ours among some, what those of a former token were told, and what the book has.
type OfBook = (HashSet<[u8; 20]>, HashMap<[u8; 20], [u8; 20]>, Vec<Written>);

/// Which addresses of an account are looked at.
enum Which {
    /// The next ones after a transfer.
    After(Option<Id<kind::Transfer>>),
    Of(Vec<Id<kind::Transfer>>),
}

/// Asks the nodes in turn, from the first one or another, until one answers.
macro_rules! first_answer {
    ($audit:expr, $node:ident, $ask:expr) => {
        first_answer!($audit, 0, $node, $ask)
    };
    ($audit:expr, $first:expr, $node:ident, $ask:expr) => {{
        let mut faults = Vec::new();
        let mut answer = None;
        for $node in $audit.nodes.iter().copied().cycle().skip($first).take($audit.nodes.len()) {
            tokio::time::sleep(PAUSE).await;
            match $ask.await {
                Ok(found) => {
                    answer = Some(found);
                    break;
                }
                Err(Stopped::Store(fault)) => return Err(fault),
                Err(Stopped::Read(fault)) => {
                    tracing::warn!(node = $node.label(), %fault, "a node cannot be compared with; \
                     another one is asked");
                    faults.push(($node.label(), fault));
                }
            }
        }
        answer.ok_or(AuditFault::Nodes(faults))
    }};
}

/// Why one node was not enough.
enum Stopped {
    Read(ReadFault),
    Store(AuditFault),
}

impl<T: Into<ReadFault>> From<T> for Stopped {
    fn from(fault: T) -> Stopped {
        Stopped::Read(fault.into())
    }
}

pub(super) fn unstored(failure: OperationError) -> AuditFault {
    AuditFault::Store(failure.to_string())
}

impl Audit<'_> {
    fn token(&self) -> &[u8; 20] {
        self.chain.settings.token_contract.bytes()
    }

    fn place(&self, log: &Log) -> Place {
        Place {
            transaction_hash: log.transaction_hash.text(self.chain.form()),
            log_index: log.log_index.0,
        }
    }

    /// A log as a movement of the final view; the token is one, whichever of its contracts it was
    /// in.
    fn shown(&self, log: &Log, transfer: &Transfer, block_time: i64, is_token: bool) -> Shown {
        Shown {
            place: self.place(log),
            contract: if is_token { *self.token() } else { log.address.0 },
            from_address: transfer.from,
            to_address: transfer.to,
            units: if is_token {
                millionths(transfer.value, self.chain.decimals(&log.address.0))
            } else {
                None
            },
            block_number: log.block_number.0,
            block_time,
        }
    }

    async fn anchor(&self, height: i64) -> Result<Anchor, AuditFault> {
        let ask = async |node: &Node| -> Result<Anchor, Stopped> {
            let header = node.header(height).await?.ok_or(Doubt::Stale(height))?;
            Ok(Anchor { height, hash: header.hash })
        };
        first_answer!(self, node, ask(node))
    }

    /// Compares the blocks after an anchor, and moves the mark over those that it stood before.
    async fn blocks(
        &self,
        from: Anchor,
        to: i64,
        compared: &mut Compared,
    ) -> Result<(), AuditFault> {
        let (mode, name, token) = (self.chain.mode, self.chain.settings.name, *self.token());
        let blocks_max = self.chain.settings.blocks_at_once as i64;
        let mut blocks_at_once = blocks_max;
        let (mut marked, mut reached, mut found) = (from, from, Vec::new());
        while reached.height < to {
            let end =
                to.min(reached.height + blocks_at_once).min(marked.height + BLOCKS_MARKED_AT_ONCE);
            let part = first_answer!(self, node, self.part(node, reached, end));
            let mut part = match part {
                Err(AuditFault::Nodes(faults))
                    if end > reached.height + 1 && wants_less(&faults) =>
                {
                    blocks_at_once = ((end - reached.height) / 2).max(1);
                    continue;
                }
                part => part?,
            };
            self.ask_others(&part.written, &mut part.shown).await;
            found.extend(book::compare(
                name,
                &token,
                &(reached.height + 1..=end),
                &part.ours,
                &part.shown,
                &part.written,
            ));
            compared.movements_count += part.shown.len();
            reached = part.last;
            blocks_at_once = (blocks_at_once + (blocks_at_once / 4).max(1)).min(blocks_max);
            if reached.height == to
                && to == self.cursor.anchor.height
                && reached != self.cursor.anchor
            {
                return Err(AuditFault::Nodes(vec![(
                    String::from("all"),
                    Doubt::WrongFork(to).into(),
                )]));
            }
            if reached.height == to || reached.height == marked.height + BLOCKS_MARKED_AT_ONCE {
                let (before, new) = (marked, std::mem::take(&mut found));
                let work = move |tx: &mut dyn Tx, now: &mut Now| {
                    let kept = book::rows::kept_in_blocks(
                        tx,
                        mode,
                        name,
                        before.height + 1,
                        reached.height,
                    )?;
                    book::settle(tx, now, mode, name, &kept, &new)?;
                    // Blocks that somebody names leave the mark where it is, unless they continue
                    // it.
                    rows::advance_audit(tx, mode, name, before, reached)?;
                    Ok(())
                };
                self.store.write(work).await.map_err(unstored)?;
                marked = reached;
                compared.blocks = Some((from.height + 1, reached.height));
            }
        }
        Ok(())
    }

    /// Reads some blocks at one node, and what the book has of them.
    async fn part(&self, node: &Node, before: Anchor, to: i64) -> Result<Part, Stopped> {
        let contracts = self.chain.contracts();
        let from = before.height + 1;
        let range = node.range(&contracts, from, to).await?.ok_or(Doubt::Stale(to))?;
        let empty: BTreeSet<i64> =
            verify::range(before, to, &contracts, &range)?.into_iter().collect();
        unfiltered_blocks::blocks(node, &contracts, &range, &empty).await?;
        let moved = self.moved(&range);
        let (ours, told, written) = self.of_book(moved.clone(), from, to).await?;
        let is_token = |moved: &Moved| {
            let address = if ours.contains(&moved.transfer.from) {
                moved.transfer.from
            } else {
                moved.transfer.to
            };
            self.chain.is_token_of(&moved.log.address.0, told.get(&address))
        };
        let places: HashSet<&Place> = written.iter().map(|written| &written.place).collect();
        let concerns_us = |moved: &&Moved| {
            let is_ours = ours.contains(&moved.transfer.from) || ours.contains(&moved.transfer.to);
            places.contains(&moved.place) || (is_ours && is_token(moved))
        };
        let hits: Vec<&Moved> = moved.iter().filter(concerns_us).collect();
        let logs: Vec<&Log> = hits.iter().map(|hit| &hit.log).collect();
        let known = unfiltered_blocks::of_logs(node, &logs).await?;
        let mut shown = Vec::new();
        for hit in hits {
            let number = hit.log.block_number.0;
            let header = known.headers.get(&number).ok_or(Doubt::Stale(number))?;
            if header.hash != hit.log.block_hash {
                return Err(Doubt::WrongFork(number).into());
            }
            // What a failed transaction shows did not happen; what is below a millionth counts for
            // nobody.
            let has_happened =
                verify::hit(&hit.log, known.receipts.get(&hit.log.transaction_hash))?;
            let movement = self.shown(&hit.log, &hit.transfer, header.timestamp.0, is_token(hit));
            if has_happened && movement.units != Some(0) {
                shown.push(movement);
            }
        }
        let missing: Vec<&Written> = written
            .iter()
            .filter(|written| shown.iter().all(|shown| shown.place != written.place))
            .collect();
        let elsewhere = self.at_places(node, &missing).await?;
        for hidden in elsewhere.iter().filter(|hidden| {
            hidden.contract == *self.token() && (from..=to).contains(&hidden.block_number)
        }) {
            self.chain.stats.doubts.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                node = node.label(),
                block = hidden.block_number,
                "a movement is in its receipt, and the filter did not show it"
            );
        }
        shown.extend(elsewhere);
        Ok(Part { last: Anchor { height: to, hash: range.last.hash }, ours, shown, written })
    }

    fn moved(&self, range: &BlockRange) -> Vec<Moved> {
        let read = |log: &Log| {
            let transfer = log.transfer().filter(|transfer| transfer.value > 0)?;
            Some(Moved { place: self.place(log), log: log.clone(), transfer })
        };
        range.logs.iter().filter_map(read).collect()
    }

    /// Which addresses of some movements were handed out, which contract those were told that moved
    /// a former token, and what the book has of those blocks and of those movements.
    async fn of_book(&self, moved: Vec<Moved>, from: i64, to: i64) -> Result<OfBook, Stopped> {
        let (mode, name, token) = (self.chain.mode, self.chain.settings.name, *self.token());
        let in_former: HashSet<[u8; 20]> = moved
            .iter()
            .map(|moved| moved.log.address.0)
            .filter(|contract| self.chain.was_token(contract))
            .collect();
        let read = move |tx: &mut dyn Tx| {
            let addresses: BTreeSet<[u8; 20]> =
                moved.iter().flat_map(|moved| [moved.transfer.from, moved.transfer.to]).collect();
            let ours =
                deposits::rows::handed_out(tx, mode, &addresses.into_iter().collect::<Vec<_>>())?;
            let mut written = book::rows::in_blocks(tx, mode, name, from, to)?;
            let known: HashSet<Place> =
                written.iter().map(|written| written.place.clone()).collect();
            let is_ours = |moved: &&Moved| {
                ours.contains(&moved.transfer.from) || ours.contains(&moved.transfer.to)
            };
            let mut told = HashMap::new();
            for former in moved
                .iter()
                .filter(is_ours)
                .filter(|moved| in_former.contains(&moved.log.address.0))
            {
                for address in [former.transfer.from, former.transfer.to] {
                    told.extend(
                        transfers::rows::told_contract(tx, &address)?
                            .map(|contract| (address, contract)),
                    );
                }
            }
            let may_be_token =
                |contract: &[u8; 20]| *contract == token || in_former.contains(contract);
            for unknown in moved
                .iter()
                .filter(is_ours)
                .filter(|moved| may_be_token(&moved.log.address.0) && !known.contains(&moved.place))
            {
                // The book may have it in another block.
                let owner = deposits::rows::address_owner(tx, &unknown.transfer.to)?
                    .map(|(scope, _)| scope);
                written.extend(book::rows::at_place(tx, mode, name, owner, &unknown.place)?);
            }
            Ok((ours, told, written))
        };
        self.store.read(Cost::Scan, read).await.map_err(|failure| Stopped::Store(unstored(failure)))
    }

    /// What the final view has at the places of the book, asked for by transaction and not by the
    /// filter.
    async fn at_places(&self, node: &Node, written: &[&Written]) -> Result<Vec<Shown>, Stopped> {
        let hash_of = |written: &&Written| Hash::parse(&written.place.transaction_hash);
        let hashes: Vec<Hash> =
            written.iter().filter_map(hash_of).collect::<BTreeSet<_>>().into_iter().collect();
        let receipts: HashMap<Hash, _> =
            hashes.iter().copied().zip(node.receipts_of(&hashes).await?).collect();
        let final_receipts = receipts
            .values()
            .flatten()
            .filter(|receipt| receipt.block_number.0 <= self.cursor.anchor.height);
        let numbers: Vec<i64> = final_receipts
            .map(|receipt| receipt.block_number.0)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let headers: HashMap<i64, _> =
            numbers.iter().copied().zip(node.headers(&numbers).await?).collect();
        let mut shown = Vec::new();
        for written in written {
            let Some(Some(receipt)) = hash_of(written).and_then(|hash| receipts.get(&hash)) else {
                continue;
            };
            let number = receipt.block_number.0;
            let Some(header) = headers.get(&number).and_then(Option::as_ref) else { continue };
            if header.hash != receipt.block_hash {
                return Err(Doubt::WrongFork(number).into());
            }
            let log = receipt.logs.iter().find(|log| log.log_index.0 == written.place.log_index);
            if let Some((log, transfer)) = log.and_then(|log| Some((log, log.transfer()?)))
                && receipt.has_succeeded()
                && shown.iter().all(|known: &Shown| known.place != written.place)
            {
                // What the book took for the token was told to its transfer.
                let is_token =
                    log.address.0 == *self.token() || self.chain.was_token(&log.address.0);
                shown.push(self.shown(log, &transfer, header.timestamp.0, is_token));
            }
        }
        Ok(shown)
    }

    /// Asks every node for what none has shown yet: that something is not there is believed when
    /// nobody has it.
    async fn ask_others(&self, written: &[Written], shown: &mut Vec<Shown>) {
        for node in self.nodes.iter().copied() {
            let missing: Vec<&Written> = written
                .iter()
                .filter(|written| shown.iter().all(|shown| shown.place != written.place))
                .collect();
            if missing.is_empty() || self.nodes.len() == 1 {
                return;
            }
            match self.at_places(node, &missing).await {
                Ok(found) => shown.extend(found),
                Err(Stopped::Read(fault)) => {
                    tracing::warn!(node = node.label(), %fault, "a node does not tell what \
                     another one does not show")
                }
                Err(Stopped::Store(_)) => {}
            }
        }
    }

    /// Compares refunds that were completed since a moment (Unix seconds). They know their
    /// transaction and not their block.
    async fn refunds(&self, since: i64, compared: &mut Compared) -> Result<(), AuditFault> {
        let (mode, name, token) = (self.chain.mode, self.chain.settings.name, *self.token());
        let mut after = None;
        loop {
            let read = move |tx: &mut dyn Tx| {
                Ok(book::rows::refunds(tx, mode, name, since, after, REFUNDS_AT_ONCE)?)
            };
            let page = self.store.read(Cost::Scan, read).await.map_err(unstored)?;
            let Some((scope, last)) = page.last() else { return Ok(()) };
            let Role::Refund(id) = last.role else { return Ok(()) };
            after = Some((*scope, id));
            let written: Vec<Written> = page.into_iter().map(|(_, written)| written).collect();
            let places: Vec<&Written> = written.iter().collect();
            let mut shown = first_answer!(self, node, self.at_places(node, &places))?;
            self.ask_others(&written, &mut shown).await;
            let found = book::compare(
                name,
                &token,
                &(0..=self.cursor.anchor.height),
                &HashSet::new(),
                &shown,
                &written,
            );
            compared.refunds_count += written.len();
            let subjects: HashSet<String> = written.iter().map(Written::subject).collect();
            self.settle(subjects, found).await?;
        }
    }

    /// Keeps what was found of refunds or addresses.
    async fn settle(&self, subjects: HashSet<String>, found: Vec<Found>) -> Result<(), AuditFault> {
        let (mode, name) = (self.chain.mode, self.chain.settings.name);
        let work = move |tx: &mut dyn Tx, now: &mut Now| {
            let mut kept = book::rows::kept_elsewhere(tx, mode, name)?;
            kept.retain(|kept| subjects.contains(&kept.subject));
            if kept != found {
                book::settle(tx, now, mode, name, &kept, &found)?;
            }
            Ok(())
        };
        self.store.write(work).await.map_err(unstored)
    }

    /// Compares what addresses hold: those that hold something by the book, those handed out since
    /// a moment (Unix seconds), and those of which a difference is kept.
    async fn balances(&self, since: i64, compared: &mut Compared) -> Result<(), AuditFault> {
        let (mode, name) = (self.chain.mode, self.chain.settings.name);
        let read = move |tx: &mut dyn Tx| {
            Ok((keys::rows::accounts_count(tx)?, book::rows::kept_elsewhere(tx, mode, name)?))
        };
        let (accounts_count, kept) = self.store.read(Cost::Scan, read).await.map_err(unstored)?;
        let kept: HashSet<String> = kept
            .into_iter()
            .filter(|kept| kept.kind == DifferenceKind::AddressBalance)
            .map(|kept| kept.subject)
            .collect();
        for number in 1..=accounts_count {
            let scope = Scope::new(number, mode);
            let mut after = None;
            loop {
                let (cursor, mut page) = self.held(scope, Which::After(after)).await?;
                let Some(last) = page.last() else { break };
                after = Some(last.transfer_id);
                page.retain(|held| {
                    let is_new = held.transfer_id.milliseconds() / 1000 >= since;
                    held.units != 0 || is_new || kept.contains(&held.subject(name))
                });
                if !page.is_empty() {
                    self.balances_of(scope, cursor, page, compared).await?;
                }
            }
        }
        Ok(())
    }

    /// Some addresses, with the view that the book had of the chain then.
    async fn held(&self, scope: Scope, which: Which) -> Result<(Cursor, Vec<Held>), AuditFault> {
        let (mode, name) = (self.chain.mode, self.chain.settings.name);
        let read = move |tx: &mut dyn Tx| {
            let cursor = rows::cursor(tx, mode, name)?
                .ok_or_else(|| StoreError::Broken("the cursor is gone".into()))?;
            let held = match which {
                Which::After(after) => {
                    book::rows::held_after(tx, scope, name, after, ADDRESSES_AT_ONCE)?
                }
                Which::Of(transfers) => {
                    let mut held = Vec::with_capacity(transfers.len());
                    for id in transfers {
                        held.extend(book::rows::held_of(tx, scope, name, id)?);
                    }
                    held
                }
            };
            Ok((cursor, held))
        };
        self.store.read(Cost::Scan, read).await.map_err(unstored)
    }

    async fn balances_of(
        &self,
        scope: Scope,
        cursor: Cursor,
        page: Vec<Held>,
        compared: &mut Compared,
    ) -> Result<(), AuditFault> {
        let overflow = |error: StoreError| AuditFault::Store(error.to_string());
        let mut subjects = HashSet::new();
        let mut found = Vec::new();
        let mut left = (cursor, page);
        for tries in 0..BALANCE_TRIES {
            let (cursor, page) = &left;
            // Another node each time: one that is behind tells an old balance.
            let balances = first_answer!(self, tries, node, self.balances_at(node, cursor, page))?;
            let mut again = Vec::new();
            for (held, (balance, (expected, fits))) in page.iter().zip(balances) {
                if !fits && tries + 1 < BALANCE_TRIES {
                    again.push(held.transfer_id);
                    continue;
                }
                let subject = held.subject(self.chain.settings.name);
                if !fits {
                    let units = balance.saturating_sub(expected);
                    found.push(Found {
                        kind: DifferenceKind::AddressBalance,
                        subject: subject.clone(),
                        units,
                        block_number: None,
                    });
                }
                subjects.insert(subject);
                compared.addresses_count += 1;
                compared.held =
                    compared.held.plus(Money::new(expected, Currency::Usdt)).map_err(overflow)?;
                compared.balance =
                    compared.balance.plus(Money::new(balance, Currency::Usdt)).map_err(overflow)?;
            }
            if again.is_empty() {
                break;
            }
            // Those alone, as the book has them now.
            left = self.held(scope, Which::Of(again)).await?;
        }
        self.settle(subjects, found).await
    }

    /// The balances of some addresses in millionths, with what each should be and whether it is.
    async fn balances_at(
        &self,
        node: &Node,
        cursor: &Cursor,
        page: &[Held],
    ) -> Result<Vec<(i64, (i64, bool))>, Stopped> {
        let settings = &self.chain.settings;
        let token = *self.token();
        let units = |contract: &[u8; 20], value: u128| {
            millionths(value, self.chain.decimals(contract)).unwrap_or(i64::MAX)
        };
        // An address holds the token in the configured contract, and in the one that its transfer
        // was told, if that is another.
        let is_held_in = |held: &Held, contract: &[u8; 20]| {
            self.chain.is_token_of(contract, Some(&held.told_contract))
        };
        let own: BTreeSet<[u8; 20]> = page.iter().map(|held| held.told_contract).collect();
        let contracts: Vec<[u8; 20]> = std::iter::once(token)
            .chain(
                own.into_iter()
                    .filter(|contract| *contract != token && self.chain.was_token(contract)),
            )
            .collect();
        let mut balances = vec![0_i64; page.len()];
        for contract in &contracts {
            let (places, addresses): (Vec<usize>, Vec<[u8; 20]>) = page
                .iter()
                .enumerate()
                .filter(|(_, held)| is_held_in(held, contract))
                .map(|(place, held)| (place, held.address))
                .unzip();
            for (place, value) in places.into_iter().zip(node.balances(contract, &addresses).await?)
            {
                balances[place] = balances[place].saturating_add(units(contract, value));
            }
        }
        let judge = |held: &Held, balance: i64, above: &[i64]| {
            let decimals = contracts
                .iter()
                .filter(|contract| is_held_in(held, contract))
                .map(|contract| self.chain.decimals(contract));
            (
                balance,
                book::should_hold(
                    held.units,
                    balance,
                    above,
                    decimals.max().unwrap_or(settings.decimals),
                ),
            )
        };
        let as_written: Vec<_> =
            page.iter().zip(&balances).map(|(held, balance)| judge(held, *balance, &[])).collect();
        if as_written.iter().all(|(_, (_, fits))| *fits) {
            return Ok(as_written);
        }
        let head = node.head().await?.number.0;
        let height = cursor.anchor.height;
        if head < height {
            return Err(Doubt::Stale(height).into());
        }
        if head - height > BLOCKS_ABOVE_MAX {
            return Err(Stopped::Store(AuditFault::Behind(head - height)));
        }
        let mut above: HashMap<[u8; 20], Vec<([u8; 20], i64)>> = HashMap::new();
        let mut reached = height;
        while reached < head {
            let to = head.min(reached + settings.blocks_at_once as i64);
            let mut range =
                node.range(&contracts, reached + 1, to).await?.ok_or(Doubt::Stale(to))?;
            range.logs.sort_by_key(|log| (log.block_number, log.log_index));
            for moved in self.moved(&range) {
                let contract = moved.log.address.0;
                let units = units(&contract, moved.transfer.value);
                above
                    .entry(moved.transfer.from)
                    .or_default()
                    .push((contract, units.saturating_neg()));
                above.entry(moved.transfer.to).or_default().push((contract, units));
            }
            reached = to;
        }
        let above_of = |held: &Held| -> Vec<i64> {
            let moved = above.get(&held.address).into_iter().flatten();
            moved
                .filter(|(contract, _)| is_held_in(held, contract))
                .map(|(_, units)| *units)
                .collect()
        };
        let judged = page.iter().zip(balances);
        Ok(judged.map(|(held, balance)| judge(held, balance, &above_of(held))).collect())
    }
}

fn wants_less(faults: &[(String, ReadFault)]) -> bool {
    faults.iter().any(|(_, fault)| matches!(fault, ReadFault::Node(NodeFault::TooMuch(_))))
}

/// Takes over from the store what the metrics show. Answers the mark and the number of open
/// differences.
async fn note(
    store: &Store,
    chain: &FollowedChain,
) -> Result<Option<(AuditMark, i64)>, OperationError> {
    let (mode, name) = (chain.mode, chain.settings.name);
    let read = move |tx: &mut dyn Tx| {
        Ok((rows::audit_mark(tx, mode, name)?, book::rows::open_count(tx, mode, name)?))
    };
    let (mark, count) = store.read(Cost::Point, read).await?;
    let Some(mark) = mark else { return Ok(None) };
    chain.stats.audited_height.store(mark.anchor.height, Ordering::Relaxed);
    chain.stats.audited_at.store(mark.completed_milliseconds / 1000, Ordering::Relaxed);
    chain.stats.differences.store(count, Ordering::Relaxed);
    Ok(Some((mark, count)))
}

/// Compares once a day until `stop`, and tells in the log how much differs.
pub async fn run(app: Arc<AppState>, chain: Arc<FollowedChain>, mut stop: watch::Receiver<bool>) {
    let name = chain.settings.name.as_str();
    let mut tried_at = i64::MIN;
    while !*stop.borrow() {
        let now = app.store.clock.milliseconds() / 1000;
        let known = note(&app.store, &chain).await;
        let is_due = match &known {
            Ok(Some((mark, _))) => {
                now >= mark.completed_milliseconds / 1000 + AUDIT_EVERY_SECONDS
                    && now >= tried_at.saturating_add(RETRY_SECONDS)
            }
            Ok(None) => false,
            Err(failure) => {
                tracing::error!(
                    ?failure,
                    "it cannot be read how far the book was compared with the chain; tried again"
                );
                false
            }
        };
        if is_due {
            tried_at = now;
            let compared = tokio::select! {
                compared = run_once(&app.store, &chain, Asked::default()) => compared,
                _ = stop.changed() => break,
            };
            match (compared, note(&app.store, &chain).await) {
                (Ok(_), Ok(Some((_, count)))) if count > 0 => {
                    tracing::error!(
                        chain = name,
                        count,
                        "the book differs from the chain: `hundi reconcile` names each difference"
                    );
                }
                (Ok(compared), Ok(_)) => {
                    let Compared { movements_count, refunds_count, addresses_count, .. } = compared;
                    tracing::info!(
                        chain = name,
                        movements_count,
                        refunds_count,
                        addresses_count,
                        "the book agrees with the chain"
                    );
                }
                (Err(fault), _) => {
                    tracing::error!(chain = name, %fault, "the book could not be compared with \
                     the chain; tried again")
                }
                (_, Err(failure)) => {
                    tracing::error!(?failure, "it cannot be read what was found; tried again")
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            _ = stop.changed() => {}
        }
    }
    // Another node compares from here on, and what was known here would stand still.
    chain.stats.audited_at.store(0, Ordering::Relaxed);
}
