//! Takes a transaction that the operator names into the book, for example one that a node hid from
//! the follower and that the chain audit found.
//!
//! Its movements are checked against receipt and header as in the follower. In addition, every
//! configured endpoint has to show the transaction. An endpoint that still hides the transaction
//! has to be removed from the configuration first.

use std::sync::Arc;

use super::audit::{self, AuditError};
use super::block_groups::observe;
use super::follower::Follower;
use crate::app_state::AppState;
use crate::chains::blocks::{Hash, Log, Receipt};
use crate::chains::followed::FollowError;
use crate::chains::port::{ChainNode, NodeError};
use crate::chains::{Movement, rows};
use crate::deposits::{self, Deposit};
use crate::kernel::id::kind;
use crate::kernel::{Id, Mode, Now, OperationError, StoreError};
use crate::store::Tx;

/// Why nothing was taken over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CreditError {
    #[error("no chain is configured for {0} mode")]
    NoChain(&'static str),
    #[error("{0}")]
    Chain(#[from] AuditError),
    #[error("{0}")]
    Follow(#[from] FollowError),
    #[error(
        "{node} cannot be asked: {fault}. Every endpoint has to show the transaction; remove one \
         that does not work from the configuration"
    )]
    Node { node: String, fault: NodeError },
    #[error(
        "{0} does not show the transaction in its chain. Every endpoint has to show it; remove \
         an endpoint that does not work from the configuration"
    )]
    NotShown(String),
    #[error(
        "{0} shows the transaction in another way than the first endpoint. Compare both with an \
         independent explorer"
    )]
    ShownDifferently(String),
    #[error(
        "its block {0} is above block {1}, up to which the chain was followed: the service takes \
         it over by itself"
    )]
    Ahead(i64, i64),
    #[error("the transaction failed, so nothing moved")]
    Failed,
    #[error("it moved none of the configured tokens to or from an address that was handed out")]
    NothingOfOurs,
}

/// What the book now has of the transaction.
pub struct Credited {
    pub deposits: Vec<Deposit>,
    /// How many of them had been credited, or had failed, before.
    pub known_count: usize,
    /// Sweeps that are new in the book.
    pub sweeps_count: usize,
}

/// Takes a transaction over as the follower would have. Credited deposits and known sweeps stay as
/// they are, so a second call changes nothing.
pub async fn credit(app: &Arc<AppState>, mode: Mode, hash: Hash) -> Result<Credited, CreditError> {
    let chain = app
        .chains
        .iter()
        .find(|chain| chain.mode == mode)
        .ok_or(CreditError::NoChain(mode.as_str()))?;
    let name = chain.settings.name;
    audit::require_node(chain).await?;
    let (cursor, _) = audit::read_progress(&app.store, chain).await?;
    // What the first node shows: its receipt, and the time of the block, which decides whether the
    // money came late. The other nodes have to show the same.
    let mut shown: Option<(&dyn ChainNode, Receipt, i64)> = None;
    for node in &chain.nodes {
        let fault = |fault| CreditError::Node { node: node.label(), fault };
        let receipt = node
            .receipt(&hash)
            .await
            .map_err(fault)?
            .ok_or_else(|| CreditError::NotShown(node.label()))?;
        let number = receipt.block_number.0;
        if number > cursor.anchor.height {
            return Err(CreditError::Ahead(number, cursor.anchor.height));
        }
        // The node has to be on the fork that was followed, and the receipt's block has to be part
        // of it.
        let mut time = cursor.block_time;
        for (number, hash) in
            [(cursor.anchor.height, cursor.anchor.hash), (number, receipt.block_hash)]
        {
            let header =
                node.header(number).await.map_err(fault)?.filter(|header| header.hash == hash);
            time = header.ok_or_else(|| CreditError::NotShown(node.label()))?.timestamp.0;
        }
        match &shown {
            Some((_, first, first_time)) if (first, *first_time) != (&receipt, time) => {
                return Err(CreditError::ShownDifferently(node.label()));
            }
            Some(_) => {}
            None => shown = Some((node.as_ref(), receipt, time)),
        }
    }
    let (node, receipt, _) = shown.ok_or_else(|| AuditError::Nodes(Vec::new()))?;
    if !receipt.has_succeeded() {
        return Err(CreditError::Failed);
    }
    let contracts = chain.contracts();
    let logs: Vec<Log> =
        receipt.logs.iter().filter(|log| contracts.contains(&log.contract)).cloned().collect();
    let follower = Follower::new(app.clone(), chain.clone());
    let our_logs = follower.our_logs(&logs).await?;
    let known = follower.read_receipts(node, &our_logs).await?;
    let (movements, sweeps) =
        follower.movements_of(node, &our_logs, &known, Some(cursor.anchor.height))?;
    if movements.is_empty() && sweeps.is_empty() {
        return Err(CreditError::NothingOfOurs);
    }
    let services = app.services.clone();
    let work = move |tx: &mut dyn Tx, now: &mut Now| {
        let before = deposits_of(tx, &movements, name.as_str())?;
        observe(tx, now, &services, name.as_str(), movements.iter())?;
        let mut sweeps_count = 0;
        for sweep in &sweeps {
            if !rows::has_sweep(tx, name, &sweep.transaction_hash, sweep.log_index)? {
                rows::insert_sweep(tx, name, sweep)?;
                sweeps_count += 1;
            }
        }
        let deposits = deposits_of(tx, &movements, name.as_str())?;
        let known: Vec<Id<kind::Deposit>> = before
            .iter()
            .filter(|deposit| deposit.is_settled())
            .map(|deposit| deposit.id)
            .collect();
        let known_count = deposits.iter().filter(|deposit| known.contains(&deposit.id)).count();
        Ok(Credited { deposits, known_count, sweeps_count })
    };
    app.store
        .write(work)
        .await
        .map_err(|failure: OperationError| audit::store_error(failure).into())
}

/// The deposits that the book has of a transaction's movements.
fn deposits_of(
    tx: &mut dyn Tx,
    movements: &[Movement],
    chain: &str,
) -> Result<Vec<Deposit>, StoreError> {
    let mut found: Vec<Deposit> = Vec::new();
    for movement in movements {
        let Some((scope, _)) = deposits::rows::address_owner(tx, &movement.to_address)? else {
            continue;
        };
        for deposit in deposits::rows::of_transaction(tx, scope, chain, &movement.transaction_hash)?
        {
            if found.iter().all(|known| known.id != deposit.id) {
                found.push(deposit);
            }
        }
    }
    Ok(found)
}
