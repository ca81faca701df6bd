//! Chains: their names and addresses, the token that transfers are funded with, and how nodes are
//! read and checked. No private key of a deposit address is kept.
//!
//! `simulated` is the chain of test mode, unless the operator configures a test net. For real
//! chains, `port` has the traits of a kind of chain and of a node. `tron` and `evm` are kinds.
//! Nodes of both are asked by `rpc`, which speaks the Ethereum JSON-RPC. The rest works with any
//! kind: `blocks` has the types of what nodes answer, `verify` judges whether to believe it,
//! `unfiltered_blocks` reads blocks without the node's filter, `rows` keeps how far the chain was
//! followed, and `node_checks` finds out whether a node belongs to the chain. `chain_following`
//! uses them all. `inspect` shows what one transaction did.
//!
//! `settings` reads the operator's settings. `derivation` and `pool` make deposit addresses, and
//! `watched` rules out most foreign addresses without a look into the store. `budget` and `timer`
//! pace the requests to nodes. `followed` has what every part of the service needs of a followed
//! chain.
//!
//! To add a kind of chain, add a file or folder here, a line `pub mod`, a line in [`KINDS`], and
//! the names of its chains in [`ChainName`].

pub mod address;
pub mod address_bytes;
pub mod blocks;
pub mod budget;
#[allow(
    clippy::expect_used,
    reason = "constants of the curve and lengths checked before; nothing from outside reaches them"
)]
pub mod derivation;
pub mod evm;
pub mod explorer;
pub mod follow_stats;
pub mod followed;
pub mod heights;
#[allow(
    clippy::expect_used,
    reason = "multiples of constants of the curve; nothing from outside reaches them"
)]
mod generator_multiples;
pub mod inspect;
mod node_checks;
pub mod pool;
pub mod port;
pub mod rows;
pub mod rpc;
pub mod settings;
pub mod simulated;
#[cfg(test)]
pub mod stub;
pub mod timer;
pub mod tron;
pub mod tron_address;
pub mod unfiltered_blocks;
pub mod verify;
pub mod watched;

use self::explorer::Explorer;
use crate::kernel::{Code, Currency, Money, RefusalEntry};
use address::{AddressBytes, ChainAddress};
use port::ChainKind;

/// The kinds of chains. The first kind that claims a text reads it as an address; the last kind
/// claims every text.
pub static KINDS: &[&dyn ChainKind] = &[
    &evm::Evm,
    #[cfg(test)]
    &stub::Stub,
    &tron::Tron,
];

/// The kind of the chain with this name. An unknown name counts as a chain of Ethereum's kind.
pub fn kind_named(name: &str) -> &'static dyn ChainKind {
    *KINDS.iter().find(|kind| kind.names().contains(&name)).unwrap_or(&KINDS[0])
}

/// How many blocks a chain has above its last final block, at least; `None` if no such number is
/// certain.
///
/// On TRON's main net a block is final once 19 of the 27 producers have made it or built on it: the
/// block itself and 18 after it. A test net may have fewer producers.
pub const fn finality_blocks(chain_id: u64) -> Option<i64> {
    const TRON_MAIN_NET: u64 = 728_126_428;
    match chain_id {
        TRON_MAIN_NET => Some(18),
        _ => None,
    }
}

/// A chain on which deposits arrive, in one mode.
#[derive(Clone, Debug)]
pub struct ChainProfile {
    pub name: ChainName,
    pub asset: Currency,
    pub token_contract: ChainAddress,
    pub following: Following,
}

/// How a mode's chain is followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Following {
    /// The chain is simulated inside the service: test mode without a test net.
    Simulated,
    /// `chain_following` reads the chain from nodes. An alarm is raised when the last final block
    /// that was read is more than `lag_alarm_seconds` behind the clock.
    Real { lag_alarm_seconds: i64, chain_id: u64 },
}

impl ChainProfile {
    /// The block explorer of the chain `name`. `None` where the mode does not follow a real chain
    /// of this name, or no explorer of it is known.
    pub fn explorer(&self, name: &str) -> Option<Explorer> {
        match self.following {
            Following::Real { chain_id, .. } if self.name.as_str() == name => {
                Explorer::of_chain(chain_id)
            }
            _ => None,
        }
    }
    pub fn is_simulated(&self) -> bool {
        self.following == Following::Simulated
    }
}

/// Checks that a caller's address is written in the form of `chain`. Answers the refusal of the
/// field `field_name` if it is not; `None` if it is, or if there is no address.
pub fn address_fault(
    chain: &str,
    field_name: &str,
    address: Option<&ChainAddress>,
) -> Option<RefusalEntry> {
    if address.is_none_or(|address| address.is_on(chain)) {
        return None;
    }
    let message = kind_named(chain).address_rule();
    Some(RefusalEntry::field(
        Code::ParameterValueInvalid,
        field_name,
        format!("{field_name} {message}"),
    ))
}

crate::string_enum!(
    /// The chains a transfer can be funded on. Which one a mode takes is the operator's setting;
    /// TRON's test nets are `tron` too.
    ChainName {
        Tron "tron",
        Ethereum "ethereum",
        Polygon "polygon",
        Base "base",
        Arbitrum "arbitrum",
        Bnb "bnb",
        #[cfg(test)]
        Stub "stub",
    }
);
crate::string_enum!(
    /// The assets a transfer can be funded with.
    AssetName { Usdt "USDT" }
);
crate::string_enum!(
    /// The rails a transfer can be funded by.
    FundingRail { Stablecoin "stablecoin" }
);
crate::enum_fields!(ChainName, AssetName, FundingRail);

/// How certain a token movement is, as the chain shows it. A `time` is its block's, in Unix
/// seconds; `confirmations` counts the block itself and those after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// Seen, in no block yet.
    Seen,
    /// In a block that could still be replaced.
    Block { number: i64, time: i64, confirmations: i64 },
    /// In the chain's final view: only this credits.
    Final { number: i64, time: i64, confirmations: i64 },
}

/// One token movement to an address of ours, as an adapter reports it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Movement {
    pub transaction_hash: String,
    pub log_index: i64,
    pub from_address: AddressBytes,
    pub to_address: AddressBytes,
    /// The token's contract; `None` on the simulated chain, which has no contracts.
    pub contract: Option<AddressBytes>,
    /// The asset's symbol, such as `USDT`. Only the asset that transfers are funded with is
    /// credited.
    pub asset: String,
    pub amount: Money,
    pub depth: Depth,
}
