//! Chains: what can be deposited where, and what an adapter tells of a token movement. Plain values, no keys.

#[allow(clippy::expect_used, reason = "constants of the curve and lengths checked before; nothing from outside reaches them")]
pub mod derivation;
pub mod pool;
pub mod simulated;
pub mod tron_address;

use crate::kernel::{Currency, Money};
use tron_address::TronAddress;

/// A chain that deposits come over.
#[derive(Clone, Debug)]
pub struct ChainProfile {
    /// The word in `funding.chain`.
    pub name: &'static str,
    pub asset: Currency,
    pub token_contract: TronAddress,
}

crate::words!(
    /// The chains a transfer can be funded on.
    ChainName { Tron "tron" }
);
crate::words!(
    /// The assets a transfer can be funded with.
    AssetName { Usdt "USDT" }
);
crate::words!(
    /// The rails a transfer can be funded by.
    FundingRail { Stablecoin "stablecoin" }
);
crate::word_fields!(ChainName, AssetName, FundingRail);

/// How settled a token movement is, as the chain shows it.
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
    pub from_address: [u8; 20],
    pub to_address: [u8; 20],
    /// The asset's word; another word than the chain's own asset is never credited.
    pub asset: String,
    pub amount: Money,
    pub depth: Depth,
}
