//! Refuses an account key that was used before this database was made, because the key's first
//! addresses already belong to other transfers. No address of a key that is new to this database is
//! handed out until a node has answered whether the key was used.

use std::sync::Arc;
use std::time::Duration;

use super::log_throttle::LogThrottle;
use crate::app_state::AppState;
use crate::background::{Stop, is_stopped};
use crate::chains::address::{AddressBytes, ChainAddress};
use crate::chains::followed::FollowedChain;
use crate::chains::pool::{self, AddressPool};
use crate::chains::port::{ChainNode, NodeError};
use crate::kernel::{Mode, OperationError};
use crate::store::{Cost, Store};

/// Addresses that the chain is asked about: few, so that the answers come within seconds even if a
/// provider limits how much its nodes are asked.
const ADDRESSES_ASKED: usize = 12;
/// Longest wait until the nodes are asked again.
const ASK_SECONDS_MAX: u64 = 30;
/// How often the log says again that a key was used before, in seconds.
const LOG_AGAIN_SECONDS: u64 = 60;

/// What is known of an account key.
enum KeyHistory {
    /// The key may be used: the first node that answered shows no history of its addresses, or this
    /// database has reserved indices of the key before.
    Usable,
    /// The key's addresses have a history on the chain. The text tells the operator what to do.
    UsedElsewhere(String),
    /// No node has answered.
    Unknown,
}

/// Asks the chain about the first addresses of its account key, if this database has never reserved
/// an index of the key (`pool::is_new`). If no node answers, the pool is held: it gives no
/// address until [`run`] has asked again and got an answer. `Err` is a text for the operator. It
/// says that the addresses have a history and what to do, or that the store or the derivation
/// failed.
pub async fn refuse_used_key(
    store: &Store,
    chain: &FollowedChain,
    addresses: &AddressPool,
) -> Result<(), String> {
    match history(store, chain, addresses).await? {
        KeyHistory::Usable => Ok(()),
        KeyHistory::UsedElsewhere(text) => Err(text),
        KeyHistory::Unknown => {
            addresses.hold();
            tracing::warn!(
                chain = chain.settings.name.as_str(),
                mode = chain.mode.as_str(),
                "no node answers, so it is not known whether the account key was used before; no \
                 deposit address is handed out until one does"
            );
            Ok(())
        }
    }
}

/// Asks again for a pool that is held, until a node answers. If the key was used before, the pool
/// stays held and the log says so every minute.
pub async fn run(app: Arc<AppState>, chain: Arc<FollowedChain>, mut stop: Stop) {
    let Ok(ports) = app.services.ports(chain.mode) else { return };
    let name = chain.settings.name.as_str();
    let mut log_throttle = LogThrottle::default();
    let mut wait = Duration::from_millis(chain.settings.poll_milliseconds);
    let mut used_text = None;
    while ports.addresses.is_held() && !is_stopped(&stop) {
        if let Some(text) = &used_text {
            tracing::error!(chain = name, "no deposit address is handed out: {text}");
            wait = Duration::from_secs(LOG_AGAIN_SECONDS);
        } else {
            match ask(&app, &chain, &ports.addresses).await {
                Ok(KeyHistory::Usable) => {
                    ports.addresses.release();
                    tracing::info!(chain = name, "deposit addresses are handed out from now on");
                    return;
                }
                Ok(KeyHistory::UsedElsewhere(text)) => {
                    used_text = Some(text);
                    continue;
                }
                Ok(KeyHistory::Unknown) => {
                    let what = "no deposit address is handed out: no node answers whether the \
                                account key was used before";
                    if log_throttle.is_due(what) {
                        tracing::error!(chain = name, "{what}");
                    }
                }
                Err(trouble) => {
                    if log_throttle.is_due(&trouble) {
                        tracing::error!(chain = name, trouble, "no deposit address is handed out");
                    }
                }
            }
        }
        tokio::select! {
            () = chain.settings.timer.sleep(wait) => {}
            _ = stop.changed() => {}
        }
        wait = (wait * 2).min(Duration::from_secs(ASK_SECONDS_MAX));
    }
}

async fn ask(
    app: &AppState,
    chain: &FollowedChain,
    addresses: &AddressPool,
) -> Result<KeyHistory, String> {
    // The follower checks the nodes too, but perhaps in another process.
    if !chain.nodes.iter().any(|node| node.fits()) {
        chain.check().await?;
    }
    history(&app.store, chain, addresses).await
}

async fn history(
    store: &Store,
    chain: &FollowedChain,
    pool: &AddressPool,
) -> Result<KeyHistory, String> {
    let index_name = pool.index_name().to_owned();
    let is_new = store.read(Cost::Point, move |tx| Ok(pool::is_new(tx, &index_name)?)).await;
    if !is_new.map_err(|failure: OperationError| failure.to_string())? {
        return Ok(KeyHistory::Usable);
    }
    let key = chain.settings.account_key.clone();
    let kind = chain.kind();
    let derive = move || pool::first_addresses(kind, &key, ADDRESSES_ASKED);
    let addresses = tokio::task::spawn_blocking(derive).await.map_err(|fault| fault.to_string())?;
    for node in chain.nodes.iter().filter(|node| node.fits()) {
        let used = match used(node.as_ref(), chain, &addresses).await {
            Ok(used) => used,
            Err(fault) => {
                tracing::warn!(node = node.label(), %fault, "a node could not say whether the \
                    first addresses of the account key were used; the next node is asked");
                continue;
            }
        };
        let count = used.iter().filter(|is_used| **is_used).count();
        let Some(position) = used.iter().position(|is_used| *is_used) else {
            return Ok(KeyHistory::Usable);
        };
        let table = match chain.mode {
            Mode::Live => "live_chain",
            Mode::Test => "test_chain",
        };
        return Ok(KeyHistory::UsedElsewhere(format!(
            "the account_key of [{table}] was used before: {count} of the {} addresses that a node \
             was asked about, such as {}, have a history on the chain. Give the \
             table a new account_key. Or, if this database takes the place of one that is lost, \
             run `hundi addresses skip --count NUMBER` with more than were ever handed out, and \
             start again",
            addresses.len(),
            ChainAddress::of_chain(chain.settings.name.as_str(), addresses[position]),
        )));
    }
    Ok(KeyHistory::Unknown)
}

/// Which of the addresses were used.
async fn used(
    node: &dyn ChainNode,
    chain: &FollowedChain,
    addresses: &[AddressBytes],
) -> Result<Vec<bool>, NodeError> {
    let contract = chain.settings.token_contract;
    let balances = node.balances(contract.bytes(), addresses).await?;
    let known = node.known_accounts(addresses).await?;
    Ok(balances.iter().zip(known).map(|(balance, known)| *balance > 0 || known).collect())
}
