//! Finds the logs that concern our addresses, and turns them into movements and sweeps.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;

use super::follower::{Follower, store_error};
use crate::chains::address::AddressBytes;
use crate::chains::blocks::{Log, TokenMovement, millionths};
use crate::chains::followed::FollowError;
use crate::chains::port::ChainNode;
use crate::chains::rows::Sweep;
use crate::chains::unfiltered_blocks::BlockData;
use crate::chains::verify::{self, VerifyError};
use crate::chains::{Depth, Movement};
use crate::deposits;
use crate::kernel::{Currency, Money};
use crate::store::Cost;
use crate::transfers;

/// The largest movement that is credited, in millionths: 10^9 USDT. The sum of thousands of these
/// still fits into the book.
const MOVEMENT_UNITS_MAX: i64 = 1_000_000_000_000_000;

/// A log of a movement to or from one of our addresses, with that movement.
pub(super) struct OurLog {
    pub(super) log: Log,
    pub(super) movement: TokenMovement,
    /// Whether the movement left one of our addresses.
    pub(super) is_sweep: bool,
    /// Whether the token moved: in the configured contract, or in a former contract that was shown
    /// to the caller of the transfer to which our address was handed out.
    pub(super) is_token: bool,
}

impl Follower {
    /// Finds the logs that concern our addresses, in the order of the chain. It reads the addresses
    /// before the transaction that credits begins. That is safe, because an address is committed
    /// before its payer can know it.
    pub(super) async fn our_logs(&self, logs: &[Log]) -> Result<Vec<OurLog>, FollowError> {
        let mut moved: Vec<(Log, TokenMovement)> = Vec::new();
        // In rising order, so that neighbours in the table are looked up together.
        let mut addresses: BTreeSet<AddressBytes> = BTreeSet::new();
        for log in logs {
            // Anybody can make logs of movements of 0.
            if let Some(movement) = log.movement().filter(|movement| movement.value > 0) {
                addresses.extend([movement.from, movement.to]);
                moved.push((log.clone(), movement));
            }
        }
        if moved.is_empty() {
            return Ok(Vec::new());
        }
        let mode = self.chain.mode;
        if let Ok(ports) = self.app.services.ports(mode) {
            addresses.retain(|address| ports.addresses.watched.may_hold(address));
        }
        if addresses.is_empty() {
            return Ok(Vec::new());
        }
        // Those of the addresses to or from which a former contract moved the token; usually few.
        let former: Vec<AddressBytes> =
            self.chain.former().into_iter().map(|token| token.contract).collect();
        let in_former: BTreeSet<AddressBytes> = moved
            .iter()
            .filter(|(log, _)| former.contains(&log.contract))
            .flat_map(|(_, movement)| [movement.from, movement.to])
            .filter(|address| addresses.contains(address))
            .collect();
        let ours = self.app.store.read(Cost::Scan, move |tx| {
            let addresses: Vec<AddressBytes> = addresses.into_iter().collect();
            let ours = deposits::rows::handed_out(tx, mode, &addresses)?;
            let mut transfer_contracts = HashMap::new();
            for address in in_former.into_iter().filter(|address| ours.contains(address)) {
                transfer_contracts.extend(
                    transfers::rows::token_contract_of_address(tx, &address)?
                        .map(|contract| (address, contract)),
                );
            }
            Ok((ours, transfer_contracts))
        });
        let (ours, transfer_contracts) = ours.await.map_err(store_error)?;
        let mut our_logs: Vec<OurLog> = moved
            .into_iter()
            .filter(|(_, movement)| ours.contains(&movement.to) || ours.contains(&movement.from))
            .map(|(log, movement)| {
                let is_sweep = ours.contains(&movement.from);
                let address = if is_sweep { movement.from } else { movement.to };
                OurLog {
                    is_sweep,
                    is_token: self
                        .chain
                        .is_token_of(&log.contract, transfer_contracts.get(&address)),
                    log,
                    movement,
                }
            })
            // A movement in a former contract counts as the token only if the caller of its
            // transfer was shown that contract. Otherwise it is left out, unless the operator has
            // listed the contract in `other_tokens`: then it is a movement of that other token.
            .filter(|our| our.is_token || self.chain.symbol(&our.log.contract).is_some())
            .collect();
        our_logs.sort_by_key(|our| (our.log.block_number, our.log.log_index));
        Ok(our_logs)
    }

    /// Checks logs that concern us against the headers and receipts in `known`, and turns them into
    /// movements and sweeps. What did not happen, or does not fit into the book, is logged and left
    /// out. Sweeps of other tokens are left out too. `final_height` is the height of the final
    /// view; `None` for blocks above it.
    pub(super) fn movements_of(
        &self,
        lead: &dyn ChainNode,
        our_logs: &[OurLog],
        known: &BlockData,
        final_height: Option<i64>,
    ) -> Result<(Vec<Movement>, Vec<Sweep>), FollowError> {
        let (mut movements, mut sweeps) = (Vec::new(), Vec::new());
        for our in our_logs {
            let number = our.log.block_number.0;
            let doubt = |doubt| self.doubted(lead, doubt);
            let header =
                known.headers.get(&number).ok_or_else(|| doubt(VerifyError::Stale(number)))?;
            if header.hash != our.log.block_hash {
                return Err(doubt(VerifyError::WrongFork(number)));
            }
            if !verify::has_happened(&our.log, known.receipts.get(&our.log.transaction_hash))
                .map_err(doubt)?
            {
                tracing::warn!(
                    block = number,
                    "a movement to or from us was shown whose transaction failed; it is left out"
                );
                continue;
            }
            let is_token = our.is_token;
            let decimals = self.chain.decimals(&our.log.contract);
            let units_max = if is_token { MOVEMENT_UNITS_MAX } else { i64::MAX };
            let Some(units) = millionths(our.movement.value, decimals)
                .filter(|units| (1..=units_max).contains(units))
            else {
                tracing::warn!(
                    block = number,
                    "the amount of a movement to or from one of our addresses is too small or too \
                     large for the book; it is left out"
                );
                continue;
            };
            let transaction_hash = self.chain.kind().write_hash(&our.log.transaction_hash);
            let time = header.timestamp.0;
            if our.is_sweep {
                if is_token {
                    sweeps.push(Sweep {
                        transaction_hash,
                        log_index: our.log.log_index.0,
                        from_address: our.movement.from,
                        to_address: our.movement.to,
                        contract: our.log.contract,
                        units,
                        block_number: number,
                        block_time: time,
                    });
                }
                continue;
            }
            let depth = match final_height {
                Some(height) => {
                    let head = self.chain.stats.head_height.load(Ordering::Relaxed).max(height);
                    Depth::Final { number, time, confirmations: head - number + 1 }
                }
                None => Depth::Block { number, time, confirmations: 1 },
            };
            movements.push(Movement {
                transaction_hash,
                log_index: our.log.log_index.0,
                from_address: our.movement.from,
                to_address: our.movement.to,
                contract: Some(our.log.contract),
                asset: self
                    .chain
                    .symbol(&our.log.contract)
                    .filter(|_| !is_token)
                    .unwrap_or(Currency::Usdt.as_str())
                    .to_owned(),
                amount: Money::new(units, Currency::Usdt),
                depth,
            });
        }
        Ok((movements, sweeps))
    }
}
