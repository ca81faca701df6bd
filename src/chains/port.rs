//! The traits of a kind of chain and of a node: how the chain writes addresses and hashes, where
//! deposit addresses come from, and the questions to a node.
//!
//! What uses these traits works with any kind: following, the chain audit, refunds, the payer's
//! page and the diagnosis of a payment. Answers of nodes are not judged here, but in `verify`.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::address_bytes::AddressBytes;
use super::blocks::{Hash, Header, Log, Receipt};
use super::budget::RequestLimits;
use super::derivation::AccountXpub;
use super::timer::Timer;
use crate::outbound::{Client, OutboundEndpoint};

/// A kind of chain. Its file or folder implements this, and `KINDS` names it.
pub trait ChainKind: Send + Sync {
    /// The names of the chains that are of this kind.
    fn names(&self) -> &'static [&'static str];

    /// Whether a text looks like an address of this kind, valid or not.
    fn claims(&self, text: &str) -> bool;

    /// Reads an address as people write it; nothing is trimmed.
    fn parse_address(&self, text: &str) -> Result<AddressBytes, TextError>;

    fn write_address(&self, bytes: &AddressBytes) -> String;

    /// The grammar of its addresses, for the API's document.
    fn address_grammar(&self) -> AddressGrammar;

    /// Reads an address as a sanctions list writes it; lists are less careful with the form.
    fn listed_address(&self, text: &str) -> Option<AddressBytes> {
        self.parse_address(text).ok()
    }

    /// What a refusal says after the name of the field: `must be …`, with the full stop.
    fn address_rule(&self) -> &'static str;

    /// The hash of a transaction as the chain's explorers write it.
    fn write_hash(&self, hash: &Hash) -> String {
        hash.to_string()
    }

    /// The deposit address of an account key with this index; `None` for an index without one. The
    /// default derives it as Ethereum and TRON do.
    fn deposit_address(&self, key: &AccountXpub, index: u32) -> Option<AddressBytes> {
        key.address(index).ok().map(|address| address.bytes())
    }

    /// A node behind an endpoint.
    fn node(
        &self,
        client: &Client,
        endpoint: &OutboundEndpoint,
        limits: RequestLimits,
        timer: &Timer,
    ) -> Box<dyn ChainNode>;
}

/// How a kind's addresses are written. Lengths are in characters.
pub struct AddressGrammar {
    pub length_min: usize,
    pub length_max: usize,
    /// A regular expression without `^` and `$`.
    pub pattern: &'static str,
}

/// Why a text is no address, in words that tell a person what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError(pub String);

impl fmt::Display for TextError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for TextError {}

/// What a node answers some time later.
pub type NodeAnswer<'a, T> = BoxFuture<'a, Result<T, NodeError>>;

/// One node of a chain.
pub trait ChainNode: Send + Sync {
    /// Scheme, host and port, for the log.
    fn label(&self) -> String;

    /// Whether the node passed its check: it belongs to the configured chain, knows its token, and
    /// answers the follower's questions. Only such nodes are believed.
    fn fits(&self) -> bool;

    /// Notes the result of a check. A node that does not fit rests (is not asked anything) before
    /// it is checked again.
    fn note_fit(&self, fits: bool);

    /// How much longer the node rests after a fault; `None` if it may be asked now.
    fn resting_for(&self) -> Option<Duration>;

    /// How many questions it was asked since the start; each question of a batch counts.
    fn questions_count(&self) -> u64;

    /// How long to pause after a poll that asked this node `count` questions, so that polls of a
    /// quiet chain use only their share of the day's requests.
    fn routine_pause(&self, count: u64) -> Duration;

    /// What the node was found to lack, each in a few words.
    fn lacks(&self) -> Vec<&'static str>;

    /// The id of the network that the node belongs to.
    fn chain_id(&self) -> NodeAnswer<'_, u64>;

    /// The newest block.
    fn head(&self) -> NodeAnswer<'_, Header>;

    /// The newest block that the node calls final: it cannot be replaced.
    fn final_block(&self) -> NodeAnswer<'_, FinalBlock>;

    /// The header of a block; `None` if the node does not have it (yet).
    fn header(&self, number: i64) -> NodeAnswer<'_, Option<Header>>;

    /// The headers of several blocks.
    fn headers<'a>(&'a self, numbers: &'a [i64]) -> NodeAnswer<'a, Vec<Option<Header>>>;

    /// The contracts' logs of token movements and of deprecations ([`Log::is_deprecation`]) in the
    /// blocks `from` to `to`, with the headers of these two blocks. `None` if the node lacks one of
    /// the two.
    ///
    /// `last` may be the header of block `to`, if the node has sent it already: then it need not be
    /// requested again. An implementation must ignore the header of any other block.
    fn range<'a>(
        &'a self,
        contracts: &'a [AddressBytes],
        from: i64,
        to: i64,
        last: Option<&'a Header>,
    ) -> NodeAnswer<'a, Option<BlockRange>>;

    /// What became of one transaction; `None` if the node does not know it.
    fn receipt<'a>(&'a self, transaction: &'a Hash) -> NodeAnswer<'a, Option<Receipt>>;

    /// What became of several transactions.
    fn receipts_of<'a>(&'a self, transactions: &'a [Hash]) -> NodeAnswer<'a, Vec<Option<Receipt>>>;

    /// The receipts of all transactions of a block, read without the node's filter of logs. `None`
    /// if the node does not know all of the transactions.
    fn receipts_in<'a>(&'a self, block: &'a Header) -> NodeAnswer<'a, Option<Vec<Receipt>>>;

    /// What each address holds of a contract's token at the newest block, in the token's smallest
    /// units.
    fn balances<'a>(
        &'a self,
        contract: &'a AddressBytes,
        addresses: &'a [AddressBytes],
    ) -> NodeAnswer<'a, Vec<u128>>;

    /// Whether each address was used, by the node's state: it holds some of the chain's own coin,
    /// or it has sent a transaction (on TRON: is an activated account). Received tokens alone do
    /// not count. `false` also for every address about which the node refused to answer.
    fn known_accounts<'a>(&'a self, addresses: &'a [AddressBytes]) -> NodeAnswer<'a, Vec<bool>>;

    /// How many decimals a contract's token has; `None` if the contract answers no number.
    fn token_decimals<'a>(&'a self, contract: &'a AddressBytes) -> NodeAnswer<'a, Option<u128>>;

    /// Whether a contract says that another contract has replaced it; `None` if it does not say.
    fn token_is_deprecated<'a>(
        &'a self,
        contract: &'a AddressBytes,
    ) -> NodeAnswer<'a, Option<bool>>;

    /// The symbol of a contract's token; `None` if the contract answers no text of 1 to
    /// [`SYMBOL_LENGTH_MAX`] characters.
    fn token_symbol<'a>(&'a self, contract: &'a AddressBytes) -> NodeAnswer<'a, Option<String>>;
}

/// Whether two references lead to the same node.
pub fn is_same_node(one: &dyn ChainNode, other: &dyn ChainNode) -> bool {
    std::ptr::addr_eq(one, other)
}

/// The most characters of a token's symbol. A longer text is not taken for a symbol.
pub const SYMBOL_LENGTH_MAX: usize = 20;

/// What one range of blocks holds of the watched contracts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRange {
    pub first: Header,
    pub last: Header,
    pub logs: Vec<Log>,
}

/// The newest block that a node calls final: it can no longer be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalBlock {
    pub number: i64,
    /// Unix seconds.
    pub time: i64,
    /// The header of the block; `None` if the node sent only its number and time.
    pub header: Option<Header>,
}

/// Why a node did not answer a question.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    #[error("not reached: {0}")]
    Unreachable(String),
    /// The node refuses all questions for a while, for example because it had too many. It is not
    /// asked again before its rest ends.
    #[error("refuses for now: {0}")]
    Limited(String),
    /// The question covers too much, or its answer is too long: ask for less.
    #[error("refuses so much at once: {0}")]
    TooMuch(String),
    /// The node lacks the method or the block tag, such as `finalized`, or does not accept the
    /// question in this form.
    #[error("does not know the method: {0}")]
    MethodMissing(String),
    #[error("answers an error: {0}")]
    Refused(String),
    /// The answer is not what the question asks for.
    #[error("gives an unusable answer: {0}")]
    Garbage(String),
    /// The node rests after a fault and is not asked.
    #[error("rests after a fault")]
    Resting,
}

impl NodeError {
    /// Whether the fault is the node's and not the question's, so that other questions would meet
    /// it too.
    pub const fn is_of_the_node(&self) -> bool {
        matches!(self, NodeError::Unreachable(_) | NodeError::Limited(_) | NodeError::Garbage(_))
    }

    /// Whether the node answered, but not what was asked for: it refused the question, or its
    /// answer makes no sense. The same can then be asked in another way.
    pub const fn is_refusal(&self) -> bool {
        matches!(
            self,
            NodeError::MethodMissing(_)
                | NodeError::Refused(_)
                | NodeError::TooMuch(_)
                | NodeError::Garbage(_)
        )
    }
}
