//! Whether an account key was used before this database was made: then its first addresses belong
//! to somebody else's transfers already.

use crate::chains::address::{AddressBytes, ChainAddress};
use crate::chains::followed::FollowedChain;
use crate::chains::pool;
use crate::chains::port::ChainNode;
use crate::kernel::{Mode, OperationError};
use crate::store::{Cost, Store};

/// Addresses that the chain is asked about. A gateway with the default limit takes some seconds.
const ADDRESSES_ASKED: usize = 12;

/// Asks the chain about the first addresses of its account key, if this database has never handed
/// one out. `Err` is a text for the operator: the addresses have a history, and what to do; or the
/// store or the derivation failed. If no node answers, that is only logged.
pub async fn refuse_used_key(
    store: &Store,
    chain: &FollowedChain,
    index_name: String,
) -> Result<(), String> {
    let is_new = store.read(Cost::Point, move |tx| Ok(pool::is_new(tx, &index_name)?)).await;
    if !is_new.map_err(|failure: OperationError| failure.to_string())? {
        return Ok(());
    }
    let key = chain.settings.account_key.clone();
    let kind = chain.kind();
    let derive = move || pool::first_addresses(kind, &key, ADDRESSES_ASKED);
    let addresses = tokio::task::spawn_blocking(derive).await.map_err(|fault| fault.to_string())?;
    for node in chain.nodes.iter().filter(|node| node.fits()) {
        let Some(used) = history(node.as_ref(), chain, &addresses).await else { continue };
        let count = used.iter().filter(|is_used| **is_used).count();
        let Some(position) = used.iter().position(|is_used| *is_used) else { return Ok(()) };
        let table = match chain.mode {
            Mode::Live => "live_chain",
            Mode::Test => "test_chain",
        };
        return Err(format!(
            "the account_key of [{table}] was used before: {count} of the {} addresses that this \
             new database would hand out first, such as {}, have a history on the chain. Give the \
             table a new account_key. Or, if this database takes the place of one that is lost, \
             run `hundi addresses skip --count NUMBER` with more than were ever handed out, and \
             start again",
            addresses.len(),
            ChainAddress::of_chain(chain.settings.name.as_str(), addresses[position]),
        ));
    }
    tracing::warn!(
        chain = chain.settings.name.as_str(),
        mode = chain.mode.as_str(),
        "no node answers, so it is not known whether the account key was used before; if it was, \
         stop, run `hundi addresses skip`, and start again"
    );
    Ok(())
}

/// Which of the addresses were used; `None` where the node does not say.
async fn history(
    node: &dyn ChainNode,
    chain: &FollowedChain,
    addresses: &[AddressBytes],
) -> Option<Vec<bool>> {
    let contract = chain.settings.token_contract;
    let balances = match node.balances(contract.bytes(), addresses).await {
        Ok(balances) => balances,
        Err(fault) => {
            tracing::warn!(node = node.label(), %fault, "a node does not tell what the first \
                addresses of the account key hold");
            return None;
        }
    };
    let known = node.known_accounts(addresses).await;
    Some(balances.iter().zip(known).map(|(balance, known)| *balance > 0 || known).collect())
}
