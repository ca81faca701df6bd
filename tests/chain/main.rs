//! Following a real chain: one test binary, one file a subject. The node is anvil, and between it
//! and the follower stands a proxy that can behave like every kind of bad node.
//!
//! ```ignore
//! let chain = Anvil::start().await;               // a node of its own, killed on drop
//! let token = chain.deploy_token().await;         // "USDT", six decimals
//! let proxy = Proxy::start(&chain).await;         // a healthy TRON node until told otherwise
//! let sent = token.transfer(to, 1_500_000).await; // waits for a block
//! chain.mine(20).await;                           // makes that block final, 18 behind the head
//! proxy.change(|faults| faults.behind_blocks = 3);
//! // ... point the follower at proxy.endpoint(), and compare with token.transfers(0, u64::MAX)
//! ```
//!
//! `service.rs` puts the service before such a chain, in this process or as the real binary, and
//! `oracle.rs` judges it. The scenarios run within a few minutes; `HUNDI_CHAIN_KILLS=500` and
//! `HUNDI_CHAIN_ROUNDS=5000` make the one with kill -9 and the random one as long as you like.

mod anvil;
mod proxy;
mod rpc;
mod wire;

#[path = "../support/mod.rs"]
mod binary;
use binary::postgres;
#[allow(dead_code, reason = "what the other test binaries share; a part is used here")]
#[path = "../http/support.rs"]
mod callers;
#[allow(dead_code, reason = "shared with the tests over HTTP")]
#[path = "../http/feed.rs"]
mod feed;
#[path = "../support/viewer.rs"]
mod viewer;
mod oracle;
mod service;

mod anvil_operations;
mod proxy_faults;

mod audit;
mod console;
mod deposits;
mod doctor;
mod faults;
mod gateways;
mod identity;
mod kills;
mod live;
mod load;
mod refunds;
mod reorganisations;
mod storm;
mod trust;
