//! A real chain that is followed, as every part of the service sees it: its nodes, its token, and
//! how far it was read.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;

use super::address_bytes::AddressBytes;
use super::blocks::{Header, Log};
use super::follow_stats::FollowStats;
use super::heights::{SeenHeight, SeenHeights};
use super::port::{ChainKind, ChainNode, FinalBlock, NodeError};
use super::rows::{Identity, TokenContract};
use super::settings::ChainSettings;
use super::verify::{self, AHEAD_SECONDS_MAX, BehindRule, FinalView, VerifyError};
use super::{finality_blocks, kind_named};
use crate::kernel::Mode;
use crate::metrics::ChainFigures;
use crate::outbound::Client;

/// Why the chain cannot be followed now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FollowError {
    #[error("no node answers: {0}")]
    NoNode(String),
    #[error("{node}: {fault}")]
    Node { node: String, fault: NodeError },
    #[error("{node} is not believed: {doubt}")]
    Doubted { node: String, doubt: VerifyError },
    #[error("{0}")]
    Mismatch(String),
    #[error("the store could not be read or written: {0}")]
    Store(String),
}

/// A followed chain: its settings and nodes, and what this process knows of it.
pub struct FollowedChain {
    pub mode: Mode,
    pub settings: ChainSettings,
    pub nodes: Vec<Box<dyn ChainNode>>,
    pub stats: FollowStats,
    /// The decimals of other tokens, from the first node that answered; `node_checks` asks for
    /// them.
    pub(super) other_decimals: Mutex<HashMap<AddressBytes, u8>>,
    /// The token's contracts before the configured one. A transfer can still be paid in the
    /// contract that its caller was shown.
    former: Mutex<Vec<TokenContract>>,
    pub seen: SeenHeights,
}

impl FollowedChain {
    pub fn new(mode: Mode, settings: ChainSettings, client: &Client) -> FollowedChain {
        let kind = kind_named(settings.name.as_str());
        let nodes = settings
            .endpoints
            .iter()
            .zip(&settings.request_limits)
            .map(|(endpoint, limits)| kind.node(client, endpoint, *limits, &settings.timer))
            .collect();
        FollowedChain {
            mode,
            settings,
            nodes,
            stats: FollowStats::default(),
            other_decimals: Mutex::default(),
            former: Mutex::default(),
            seen: SeenHeights::default(),
        }
    }

    pub fn kind(&self) -> &'static dyn ChainKind {
        kind_named(self.settings.name.as_str())
    }

    /// The configured token.
    pub fn token(&self) -> TokenContract {
        TokenContract {
            contract: *self.settings.token_contract.bytes(),
            decimals: self.settings.decimals,
        }
    }

    /// Checks that the stored cursor is of the configured network, then remembers the former
    /// contracts of the token. `tokens` are all contracts that it ever had. `Err` says what does
    /// not fit the configuration and what to do.
    pub fn check_network_and_keep_tokens(
        &self,
        identity: &Identity,
        tokens: Vec<TokenContract>,
    ) -> Result<(), String> {
        let configured = self.settings.chain_id;
        if identity.chain_id != configured {
            return Err(format!(
                "the configuration names the network {configured} for {} in {} mode, but this \
                 database belongs to the network {}: its deposit addresses were handed out there. \
                 Give each network a database of its own, or configure {} again",
                self.settings.name.as_str(),
                self.mode.as_str(),
                identity.chain_id,
                identity.chain_id
            ));
        }
        let former =
            tokens.into_iter().filter(|token| token.contract != self.token().contract).collect();
        *self.former.lock().unwrap_or_else(PoisonError::into_inner) = former;
        Ok(())
    }

    pub fn former(&self) -> Vec<TokenContract> {
        self.former.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a contract was the token's before the configured one.
    pub fn was_token(&self, contract: &AddressBytes) -> bool {
        self.former().iter().any(|token| token.contract == *contract)
    }

    /// Whether a contract is the token's for a transfer whose caller and payer were shown the
    /// contract `shown`.
    pub fn is_token_of(&self, contract: &AddressBytes, shown: Option<&AddressBytes>) -> bool {
        *contract == self.token().contract || (Some(contract) == shown && self.was_token(contract))
    }

    /// How many questions each node was asked since the start.
    pub fn questions_counts(&self) -> Vec<u64> {
        self.nodes.iter().map(|node| node.questions_count()).collect()
    }

    /// How long to pause after a poll, so that polls use only their share of each node's requests a
    /// day. `before` are the [`FollowedChain::questions_counts`] when the poll began.
    pub fn routine_pause(&self, before: &[u64]) -> Duration {
        let pauses = self.nodes.iter().zip(before).map(|(node, before)| {
            node.routine_pause(node.questions_count().saturating_sub(*before))
        });
        pauses.max().unwrap_or(Duration::ZERO)
    }

    /// How long until a node may be asked again; `None` if one may be asked now.
    pub fn resting_for(&self) -> Option<Duration> {
        let left: Option<Vec<Duration>> =
            self.nodes.iter().map(|node| node.resting_for()).collect();
        left.and_then(|left| left.into_iter().min())
    }

    /// How far the time of the cursor's block is before `now_seconds`.
    pub fn behind_seconds(&self, now_seconds: i64) -> i64 {
        (now_seconds - self.stats.block_time.load(Ordering::Relaxed)).max(0)
    }

    /// Remembers the cursor's height for pages that show how the chain was followed.
    pub fn remember_height(&self, now_seconds: i64) {
        let height = self.stats.height.load(Ordering::Relaxed);
        let behind_seconds = self.behind_seconds(now_seconds);
        self.seen.remember(SeenHeight { at: now_seconds, height, behind_seconds });
    }

    /// What the metrics show. Figures of following or of the audit are `None` if another process
    /// does that. The counts `deposits` and `doubts` are always this process's own.
    pub fn figures(&self, now_seconds: i64) -> ChainFigures {
        let stats = &self.stats;
        let is_followed = stats.is_followed.load(Ordering::Relaxed);
        let height = stats.height.load(Ordering::Relaxed);
        let audited_at = stats.audited_at.load(Ordering::Relaxed);
        let (has_height, is_audited) = (is_followed && height > 0, audited_at > 0);
        let bool = |flag: &AtomicBool| i64::from(flag.load(Ordering::Relaxed));
        let nodes_missing = stats.nodes_missing.load(Ordering::Relaxed) as i64;
        ChainFigures {
            chain: self.settings.name.as_str(),
            mode: self.mode.as_str(),
            height: has_height.then_some(height),
            final_height: is_followed.then(|| stats.final_height.load(Ordering::Relaxed)),
            behind_seconds: has_height.then(|| self.behind_seconds(now_seconds)),
            lag_alarm_seconds: has_height.then_some(self.settings.lag_alarm_seconds),
            in_trouble: is_followed.then(|| bool(&stats.is_in_trouble)),
            unchecked: is_followed.then(|| bool(&stats.is_unchecked)),
            nodes_count: is_followed.then_some(self.nodes.len() as i64),
            nodes_missing: is_followed.then_some(nodes_missing),
            audited_height: is_audited.then(|| stats.audited_height.load(Ordering::Relaxed)),
            audited_at: is_audited.then_some(audited_at),
            differences: is_audited.then(|| stats.differences.load(Ordering::Relaxed)),
            deposits: stats.deposits.load(Ordering::Relaxed),
            doubts: stats.doubts.load(Ordering::Relaxed),
        }
    }

    /// Whether the token's contract itself says that no other contract has replaced it: at least
    /// one node shows that, and none shows the contrary.
    pub async fn denies_deprecation(&self) -> bool {
        let fitting = self.nodes.iter().filter(|node| node.fits());
        let contract = self.settings.token_contract.bytes();
        let answers: Vec<bool> = join_all(fitting.map(|node| node.token_is_deprecated(contract)))
            .await
            .into_iter()
            .filter_map(|answer| answer.ok().flatten())
            .collect();
        !answers.is_empty() && !answers.contains(&true)
    }

    /// The decimals of a watched contract; 0 if no node gave them. ERC-20 makes them optional,
    /// and the amounts of a contract without them are in its smallest units.
    pub fn decimals(&self, contract: &AddressBytes) -> u8 {
        if let Some(token) = self
            .former()
            .into_iter()
            .chain([self.token()])
            .find(|token| token.contract == *contract)
        {
            return token.decimals;
        }
        self.other_decimals
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(contract)
            .copied()
            .unwrap_or(0)
    }

    /// Asks all nodes that passed their check for their final block. `latest` is the latest time
    /// that a block can have now, in Unix seconds; a node with a later block is not believed. If
    /// only one node's final block is believed, the final view ends at least [`finality_blocks`]
    /// below that node's newest block, if that number is known.
    pub async fn node_heights(&self, latest: i64) -> Result<NodeHeights<'_>, FollowError> {
        let asked = self.nodes.iter().map(|node| async move {
            if node.fits() { Some(node.final_block().await) } else { None }
        });
        let answers = self.nodes.iter().map(AsRef::as_ref).zip(join_all(asked).await);
        let (mut blocks, mut missing) = (Vec::new(), Vec::new());
        for (node, answer) in answers {
            match answer {
                Some(Ok(block)) if block.time > latest => {
                    self.stats.doubts.fetch_add(1, Ordering::Relaxed);
                    missing.push((node, VerifyError::WrongTime(block.number).to_string()));
                }
                Some(Ok(block)) => blocks.push((node, block)),
                Some(Err(fault)) => missing.push((node, fault.to_string())),
                None => missing.push((node, "it has not passed its check yet".into())),
            }
        }
        blocks.sort_by_key(|(_, block)| -block.number);
        let rule = BehindRule {
            now: latest - AHEAD_SECONDS_MAX,
            is_depth_known: finality_blocks(self.settings.chain_id).is_some(),
        };
        if let Some((_, first)) = blocks.first() {
            let is_far_behind = |block: &&(&dyn ChainNode, FinalBlock)| {
                rule.is_far_behind(first.time, block.1.time)
            };
            missing.extend(
                blocks
                    .iter()
                    .filter(is_far_behind)
                    .map(|(node, _)| (*node, "it is far behind the others".to_owned())),
            );
        }
        self.stats.nodes_missing.store(missing.len(), Ordering::Relaxed);
        let Some(final_view) = verify::final_view(blocks.iter().map(|(_, block)| block), rule)
        else {
            return Err(FollowError::NoNode(
                missing
                    .iter()
                    .map(|(node, why)| format!("{}: {why}", node.label()))
                    .collect::<Vec<_>>()
                    .join("; "),
            ));
        };
        let mut node_heights = NodeHeights {
            nodes: blocks
                .into_iter()
                .map(|(node, block)| NodeHeight {
                    node,
                    height: block.number,
                    header: block.header,
                })
                .collect(),
            final_view,
            missing,
        };
        if let (false, Some(depth), Some(first)) = (
            final_view.is_checked,
            finality_blocks(self.settings.chain_id),
            node_heights.nodes.first_mut(),
        ) {
            let head = first
                .node
                .head()
                .await
                .map_err(|fault| FollowError::Node { node: first.node.label(), fault })?;
            first.height = first.height.min(head.number.0 - depth);
            node_heights.final_view.height = first.height;
        }
        Ok(node_heights)
    }

    /// The watched contracts; the first is the token's, and the token's former contracts are among
    /// the others.
    pub fn contracts(&self) -> Vec<AddressBytes> {
        let others = self.settings.other_tokens.values().map(|address| *address.bytes());
        let mut contracts: Vec<AddressBytes> =
            std::iter::once(self.token().contract).chain(others).collect();
        for token in self.former() {
            if !contracts.contains(&token.contract) {
                contracts.push(token.contract);
            }
        }
        contracts
    }

    /// The configured contract of the token and its former ones.
    pub fn token_contracts(&self) -> Vec<AddressBytes> {
        let tokens = std::iter::once(self.token()).chain(self.former());
        tokens.map(|token| token.contract).collect()
    }

    /// The symbol of one of the configured `other_tokens`.
    pub fn symbol(&self, contract: &AddressBytes) -> Option<&str> {
        let other =
            self.settings.other_tokens.iter().find(|(_, address)| address.bytes() == contract);
        other.map(|(symbol, _)| symbol.as_str())
    }

    /// Whether a log is of the configured token's contract.
    pub fn is_token_log(&self, log: &Log) -> bool {
        log.contract == *self.settings.token_contract.bytes()
    }
}

/// One node, and up to which height its final view is believed.
pub struct NodeHeight<'a> {
    pub node: &'a dyn ChainNode,
    pub height: i64,
    /// The header of the block that the node calls final, if the node sent it. The block is above
    /// `height` if the node is not believed about its newest blocks.
    pub header: Option<Header>,
}

/// What the nodes say of the final view.
pub struct NodeHeights<'a> {
    /// The nodes that answer with a possible time, and their final blocks, the highest first. Nodes
    /// far behind the others are among them.
    pub nodes: Vec<NodeHeight<'a>>,
    /// Up to which block the final view is taken.
    pub final_view: FinalView,
    /// The nodes that do not count now, and why. Nodes far behind the others are in this list too.
    pub missing: Vec<(&'a dyn ChainNode, String)>,
}
