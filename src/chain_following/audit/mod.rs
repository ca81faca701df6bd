//! The chain audit reads a real chain a second time, after the follower, and compares the book with
//! it: movements block by block, then refunds by their receipts, then the balances of addresses. It
//! corrects nothing and keeps differences for the operator. The audit mark says up to which block
//! the movements were compared.
//!
//! The follower's lead, the node that it reads, is asked after all other nodes. A process that does
//! not follow the chain does not know the lead: it asks the first configured node last. Balances
//! come from the chain's state and not from its logs, so they reveal even a movement whose log no
//! node shows.

mod balances;
mod blocks;
mod refunds;
pub mod worker;

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::chains::address::AddressBytes;
use crate::chains::blocks::{Log, TokenMovement, millionths};
use crate::chains::followed::FollowedChain;
use crate::chains::port::{ChainNode, NodeError};
use crate::chains::rows::{self, AuditMark, Cursor};
use crate::chains::unfiltered_blocks::ReadError;
use crate::chains::verify::{Anchor, VerifyError};
use crate::kernel::{Currency, Money, OperationError};
use crate::reconcile::chain::{ChainMovement, LogPosition};
use crate::store::{Cost, Store, Tx};

/// Pause before a node is asked for the next part, because the follower has precedence in the
/// nodes' budgets.
const PAUSE: Duration = Duration::from_millis(50);
/// How long before the end of the previous audit an audit begins with refunds and new addresses:
/// the previous audit may have missed what was added while it ran.
const OVERLAP_SECONDS: i64 = 24 * 3600;

/// Why the audit could not begin, or ended early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    #[error("the chain was never followed: run the service first")]
    NeverFollowed,
    #[error("{0}")]
    Mismatch(String),
    #[error("no node could be read: {}", .0.iter().map(|(node,
        fault)| format!("{node}: {fault}")).collect::<Vec<_>>().join("; "))]
    Nodes(Vec<(String, ReadError)>),
    #[error(
        "blocks {0} to {1} cannot be compared: give a first block of at least 1, and a last one \
         that is not before it and not above block {2}, up to which the chain was followed"
    )]
    Blocks(i64, i64, i64),
    #[error("balances are compared when the service has caught up: it is {0} blocks behind")]
    Behind(i64),
    #[error("the store could not be read or written: {0}")]
    Store(String),
}

/// What is to be compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuditExtent {
    /// `Some`: only these blocks, first and last, and all refunds; no balances. `None`: everything
    /// since the last comparison.
    pub blocks: Option<(i64, i64)>,
    /// Compares the balance of every address ever handed out. Otherwise only those are compared
    /// that hold something by the book, are new, or have a difference. No effect if `blocks` is
    /// `Some`.
    pub all_addresses: bool,
}

/// What was compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditSummary {
    /// First and last block; `None` if there was none to compare.
    pub blocks: Option<(i64, i64)>,
    /// Movements to or from our addresses that the chain showed in those blocks.
    pub movements_count: usize,
    pub refunds_count: usize,
    pub addresses_count: usize,
    /// What those addresses should hold together: the book's amount, with movements above the
    /// cursor that their balances already include.
    pub expected: Money,
    /// What they hold on the chain.
    pub balance: Money,
}

/// Compares the book with the chain and keeps the differences. If it fails on the way, it keeps the
/// differences and the audit mark of what it has compared so far.
pub async fn run_once(
    store: &Store,
    chain: &FollowedChain,
    asked: AuditExtent,
) -> Result<AuditSummary, AuditError> {
    let (mode, name) = (chain.mode, chain.settings.name);
    require_node(chain).await?;
    let (cursor, mark) = read_progress(store, chain).await?;
    let audit = ChainAudit { store, chain, nodes: nodes_at_cursor(chain, &cursor).await?, cursor };
    let mut compared = AuditSummary {
        blocks: None,
        movements_count: 0,
        refunds_count: 0,
        addresses_count: 0,
        expected: Money::zero(Currency::Usdt),
        balance: Money::zero(Currency::Usdt),
    };
    match asked.blocks {
        Some((from, to)) => {
            if from < 1 || from > to || to > cursor.anchor.height {
                return Err(AuditError::Blocks(from, to, cursor.anchor.height));
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
                .map_err(store_error)?;
        }
    }
    Ok(compared)
}

/// Reads how far the chain was followed and compared. Also gives `chain` the token's former
/// contracts.
pub(in crate::chain_following) async fn read_progress(
    store: &Store,
    chain: &FollowedChain,
) -> Result<(Cursor, AuditMark), AuditError> {
    let (mode, name) = (chain.mode, chain.settings.name);
    let read = move |tx: &mut dyn Tx| {
        let followed = rows::cursor(tx, mode, name)?.zip(rows::audit_mark(tx, mode, name)?);
        Ok((followed, rows::identity(tx, mode, name)?, rows::tokens(tx, mode, name)?))
    };
    let (followed, identity, tokens) = store.read(Cost::Point, read).await.map_err(store_error)?;
    let (followed, identity) = followed.zip(identity).ok_or(AuditError::NeverFollowed)?;
    chain.check_network_and_keep_tokens(&identity, tokens).map_err(AuditError::Mismatch)?;
    Ok(followed)
}

/// Fails unless at least one node belongs to the configured chain. If no node was found to fit yet,
/// checks them.
pub(in crate::chain_following) async fn require_node(
    chain: &FollowedChain,
) -> Result<(), AuditError> {
    if chain.nodes.iter().any(|node| node.fits())
        || chain.check().await.map_err(AuditError::Mismatch)?
    {
        return Ok(());
    }
    let unreachable = ReadError::Node(NodeError::Unreachable("it could not be checked".into()));
    Err(AuditError::Nodes(
        chain.nodes.iter().map(|node| (node.label(), unreachable.clone())).collect(),
    ))
}

/// The nodes that have the block up to which the chain was followed. The follower's lead is the
/// last of them, so that another one is asked first.
async fn nodes_at_cursor<'a>(
    chain: &'a FollowedChain,
    cursor: &Cursor,
) -> Result<Vec<&'a dyn ChainNode>, AuditError> {
    let lead = chain.stats.lead.load(Ordering::Relaxed);
    let (mut nodes, mut faults) = (Vec::new(), Vec::new());
    for (place, node) in chain.nodes.iter().enumerate().filter(|(_, node)| node.fits()) {
        let fault = match node.header(cursor.anchor.height).await {
            Ok(Some(header)) if header.hash == cursor.anchor.hash => {
                nodes.push((place == lead, node.as_ref()));
                continue;
            }
            Ok(Some(_)) => ReadError::VerifyError(VerifyError::WrongFork(cursor.anchor.height)),
            Ok(None) => ReadError::VerifyError(VerifyError::Stale(cursor.anchor.height)),
            Err(fault) => ReadError::Node(fault),
        };
        tracing::warn!(
            node = node.label(),
            %fault,
            "a node is left out of the comparison, because it does not show the block up to which \
             the chain was followed"
        );
        faults.push((node.label(), fault));
    }
    nodes.sort_by_key(|(is_lead, _)| *is_lead);
    if nodes.is_empty() {
        Err(AuditError::Nodes(faults))
    } else {
        Ok(nodes.into_iter().map(|(_, node)| node).collect())
    }
}

pub(super) struct ChainAudit<'a> {
    pub(super) store: &'a Store,
    pub(super) chain: &'a FollowedChain,
    pub(super) nodes: Vec<&'a dyn ChainNode>,
    /// Up to where the chain was followed when the comparison began.
    pub(super) cursor: Cursor,
}

/// Asks the nodes in turn, from the first one or from place `$first`, until one answers. `$node`
/// names the node in the expression `$ask`. A fatal fault returns from the enclosing function; if
/// no node answers, the value is `AuditError::Nodes`.
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
                Err(StepError::Fatal(fault)) => return Err(fault),
                Err(StepError::Read(fault)) => {
                    tracing::warn!(node = $node.label(), %fault, "a node's answer cannot be \
                     compared with the book; the next node is asked, if there is one");
                    faults.push(($node.label(), fault));
                }
            }
        }
        answer.ok_or(AuditError::Nodes(faults))
    }};
}
use first_answer;

/// Why a question of the audit failed.
pub(super) enum StepError {
    /// The node's fault: another one is asked.
    Read(ReadError),
    /// Ends the comparison, because another node would not help: the store failed, or the follower
    /// is too far behind.
    Fatal(AuditError),
}

impl<T: Into<ReadError>> From<T> for StepError {
    fn from(fault: T) -> StepError {
        StepError::Read(fault.into())
    }
}

/// A failure of the store as the reason why the audit ended.
pub(in crate::chain_following) fn store_error(failure: OperationError) -> AuditError {
    AuditError::Store(failure.to_string())
}

impl ChainAudit<'_> {
    pub(super) fn token(&self) -> &AddressBytes {
        self.chain.settings.token_contract.bytes()
    }

    pub(super) fn log_position(&self, log: &Log) -> LogPosition {
        LogPosition {
            transaction_hash: self.chain.kind().write_hash(&log.transaction_hash),
            log_index: log.log_index.0,
        }
    }

    /// A log as a movement of the final view. A movement of the token in one of its former
    /// contracts gets the configured contract, so that both count as the same token. A movement of
    /// another token gets no `units`.
    pub(super) fn shown(
        &self,
        log: &Log,
        movement: &TokenMovement,
        block_time: i64,
        is_token: bool,
    ) -> ChainMovement {
        ChainMovement {
            place: self.log_position(log),
            contract: if is_token { *self.token() } else { log.contract },
            from_address: movement.from,
            to_address: movement.to,
            units: if is_token {
                millionths(movement.value, self.chain.decimals(&log.contract))
            } else {
                None
            },
            block_number: log.block_number.0,
            block_time,
        }
    }

    pub(super) async fn anchor(&self, height: i64) -> Result<Anchor, AuditError> {
        let ask = async |node: &dyn ChainNode| -> Result<Anchor, StepError> {
            let header = node.header(height).await?.ok_or(VerifyError::Stale(height))?;
            Ok(Anchor { height, hash: header.hash })
        };
        first_answer!(self, node, ask(node))
    }
}
