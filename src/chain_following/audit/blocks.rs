//! Compares the movements of a range of blocks with the book.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::Ordering;

use super::{AuditError, AuditSummary, ChainAudit, PAUSE, StepError, first_answer, store_error};
use crate::chains::address::AddressBytes;
use crate::chains::blocks::{Hash, Log, TokenMovement};
use crate::chains::port::{BlockRange, ChainNode, NodeError};
use crate::chains::rows;
use crate::chains::unfiltered_blocks::{self, ReadError};
use crate::chains::verify::{self, Anchor, VerifyError};
use crate::deposits;
use crate::kernel::Now;
use crate::reconcile::chain::{self as differences, BookMovement, ChainMovement, LogPosition};
use crate::store::{Cost, Tx};
use crate::transfers;

/// The audit mark is moved after this many blocks, and at the end of the range.
const BLOCKS_MARKED_AT_ONCE: i64 = 1_000;

/// A movement that the filter showed. The filter is a node's query for the logs of some contracts.
#[derive(Clone)]
pub(super) struct LoggedMovement {
    pub(super) place: LogPosition,
    pub(super) log: Log,
    pub(super) movement: TokenMovement,
}

/// What some blocks of the chain show, and what the book has of them.
pub(super) struct AuditedRange {
    /// The last of the blocks.
    pub(super) last: Anchor,
    /// The addresses in them that were handed out.
    pub(super) ours: HashSet<AddressBytes>,
    /// What the chain shows.
    pub(super) shown: Vec<ChainMovement>,
    /// What the book has.
    pub(super) written: Vec<BookMovement>,
}

/// What `read_book` answers:
///
/// 1. Which of the movements' addresses were handed out.
/// 2. For each of these addresses to or from which the token moved in a former contract: the
///    contract that the caller of the address's transfer was shown.
/// 3. The book's movements.
type BookPart = (HashSet<AddressBytes>, HashMap<AddressBytes, AddressBytes>, Vec<BookMovement>);

impl ChainAudit<'_> {
    /// Compares the blocks after the anchor `from` up to the height `to`. Moves the audit mark with
    /// them if it stands at `from`.
    pub(super) async fn blocks(
        &self,
        from: Anchor,
        to: i64,
        compared: &mut AuditSummary,
    ) -> Result<(), AuditError> {
        let (mode, name, token) = (self.chain.mode, self.chain.settings.name, *self.token());
        let blocks_max = self.chain.settings.blocks_at_once as i64;
        let mut blocks_at_once = blocks_max;
        let (mut marked, mut reached, mut found) = (from, from, Vec::new());
        while reached.height < to {
            let end =
                to.min(reached.height + blocks_at_once).min(marked.height + BLOCKS_MARKED_AT_ONCE);
            let part = first_answer!(self, node, self.read_part(node, reached, end));
            let mut part = match part {
                Err(AuditError::Nodes(faults))
                    if end > reached.height + 1 && wants_less(&faults) =>
                {
                    blocks_at_once = ((end - reached.height) / 2).max(1);
                    continue;
                }
                part => part?,
            };
            self.ask_others(&part.written, &mut part.shown).await;
            found.extend(differences::compare(
                name,
                &token,
                &(reached.height + 1..=end),
                &part.ours,
                &part.shown,
                &part.written,
            ));
            compared.movements_count += part.shown.len();
            reached = part.last;
            blocks_at_once = (blocks_at_once + (blocks_at_once / 4).max(1)).min(blocks_max);
            if reached.height == to
                && to == self.cursor.anchor.height
                && reached != self.cursor.anchor
            {
                return Err(AuditError::Mismatch(format!(
                    "the node's block {to} is not the one up to which the service followed the \
                     chain: see `does not continue the chain that was followed` in docs/chains.md"
                )));
            }
            if reached.height == to || reached.height == marked.height + BLOCKS_MARKED_AT_ONCE {
                let (before, new) = (marked, std::mem::take(&mut found));
                let work = move |tx: &mut dyn Tx, now: &mut Now| {
                    let kept = differences::rows::kept_in_blocks(
                        tx,
                        mode,
                        name,
                        before.height + 1,
                        reached.height,
                    )?;
                    differences::keep_found(tx, now, mode, name, &kept, &new)?;
                    // Moves the mark only if it stands at `before`. If the operator named the
                    // blocks, it usually stands elsewhere.
                    rows::advance_audit(tx, mode, name, before, reached)?;
                    Ok(())
                };
                self.store.write(work).await.map_err(store_error)?;
                marked = reached;
                compared.blocks = Some((from.height + 1, reached.height));
            }
        }
        Ok(())
    }

    /// Reads the blocks after the anchor `before` up to the height `to` from one node, and what the
    /// book has of them.
    pub(super) async fn read_part(
        &self,
        node: &dyn ChainNode,
        before: Anchor,
        to: i64,
    ) -> Result<AuditedRange, StepError> {
        let contracts = self.chain.contracts();
        let from = before.height + 1;
        let range = node.range(&contracts, from, to, None).await?.ok_or(VerifyError::Stale(to))?;
        let tokens = self.chain.token_contracts();
        let empty: BTreeSet<i64> =
            verify::check_range(before, to, &contracts, &tokens, &range)?.into_iter().collect();
        unfiltered_blocks::blocks(node, &contracts, &range, &empty).await?;
        let moved = self.moved(&range);
        let (ours, transfer_contracts, written) = self.read_book(moved.clone(), from, to).await?;
        let is_token = |moved: &LoggedMovement| {
            let address = if ours.contains(&moved.movement.from) {
                moved.movement.from
            } else {
                moved.movement.to
            };
            self.chain.is_token_of(&moved.log.contract, transfer_contracts.get(&address))
        };
        let places: HashSet<&LogPosition> = written.iter().map(|written| &written.place).collect();
        let concerns_us = |moved: &&LoggedMovement| {
            let is_ours = ours.contains(&moved.movement.from) || ours.contains(&moved.movement.to);
            places.contains(&moved.place) || (is_ours && is_token(moved))
        };
        let ours_moved: Vec<&LoggedMovement> = moved.iter().filter(concerns_us).collect();
        let logs: Vec<&Log> = ours_moved.iter().map(|moved| &moved.log).collect();
        let known = unfiltered_blocks::of_logs(node, &logs).await?;
        let mut shown = Vec::new();
        for moved in ours_moved {
            let number = moved.log.block_number.0;
            let header = known.headers.get(&number).ok_or(VerifyError::Stale(number))?;
            if header.hash != moved.log.block_hash {
                return Err(VerifyError::WrongFork(number).into());
            }
            // The book has no movement of a failed transaction, and no amount below a millionth.
            let has_happened =
                verify::has_happened(&moved.log, known.receipts.get(&moved.log.transaction_hash))?;
            let movement =
                self.shown(&moved.log, &moved.movement, header.timestamp.0, is_token(moved));
            if has_happened && movement.units != Some(0) {
                shown.push(movement);
            }
        }
        let missing: Vec<&BookMovement> = written
            .iter()
            .filter(|written| shown.iter().all(|shown| shown.place != written.place))
            .collect();
        let elsewhere = self.in_receipts(node, &missing).await?;
        for hidden in elsewhere.iter().filter(|hidden| {
            hidden.contract == *self.token() && (from..=to).contains(&hidden.block_number)
        }) {
            self.chain.stats.doubts.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                node = node.label(),
                block = hidden.block_number,
                "the filter did not show a movement that is in its transaction's receipt"
            );
        }
        shown.extend(elsewhere);
        Ok(AuditedRange {
            last: Anchor { height: to, hash: range.last.hash },
            ours,
            shown,
            written,
        })
    }

    /// The movements among a range's logs, without those of 0.
    pub(super) fn moved(&self, range: &BlockRange) -> Vec<LoggedMovement> {
        let read = |log: &Log| {
            let movement = log.movement().filter(|movement| movement.value > 0)?;
            Some(LoggedMovement { place: self.log_position(log), log: log.clone(), movement })
        };
        range.logs.iter().filter_map(read).collect()
    }

    /// Reads what the book has of the blocks `from` to `to` and of the movements that they show.
    pub(super) async fn read_book(
        &self,
        moved: Vec<LoggedMovement>,
        from: i64,
        to: i64,
    ) -> Result<BookPart, StepError> {
        let (mode, name, token) = (self.chain.mode, self.chain.settings.name, *self.token());
        let former_contracts: HashSet<AddressBytes> = moved
            .iter()
            .map(|moved| moved.log.contract)
            .filter(|contract| self.chain.was_token(contract))
            .collect();
        let read = move |tx: &mut dyn Tx| {
            let addresses: BTreeSet<AddressBytes> =
                moved.iter().flat_map(|moved| [moved.movement.from, moved.movement.to]).collect();
            let ours =
                deposits::rows::handed_out(tx, mode, &addresses.into_iter().collect::<Vec<_>>())?;
            let mut written = differences::rows::in_blocks(tx, mode, name, from, to)?;
            let known: HashSet<LogPosition> =
                written.iter().map(|written| written.place.clone()).collect();
            let is_ours = |moved: &&LoggedMovement| {
                ours.contains(&moved.movement.from) || ours.contains(&moved.movement.to)
            };
            let mut transfer_contracts = HashMap::new();
            for moved in moved
                .iter()
                .filter(is_ours)
                .filter(|moved| former_contracts.contains(&moved.log.contract))
            {
                for address in [moved.movement.from, moved.movement.to] {
                    transfer_contracts.extend(
                        transfers::rows::token_contract_of_address(tx, &address)?
                            .map(|contract| (address, contract)),
                    );
                }
            }
            let may_be_token =
                |contract: &AddressBytes| *contract == token || former_contracts.contains(contract);
            for unknown in moved
                .iter()
                .filter(is_ours)
                .filter(|moved| may_be_token(&moved.log.contract) && !known.contains(&moved.place))
            {
                // The book may have it in another block.
                let owner = deposits::rows::address_owner(tx, &unknown.movement.to)?
                    .map(|(scope, _)| scope);
                written.extend(differences::rows::at_place(tx, mode, name, owner, &unknown.place)?);
            }
            Ok((ours, transfer_contracts, written))
        };
        self.store
            .read(Cost::Scan, read)
            .await
            .map_err(|failure| StepError::Fatal(store_error(failure)))
    }

    /// For each of these movements of the book, the movement that the final view has in the same
    /// transaction at the same log index, if any. The movements are read from receipts, so no
    /// filter can hide one.
    pub(super) async fn in_receipts(
        &self,
        node: &dyn ChainNode,
        written: &[&BookMovement],
    ) -> Result<Vec<ChainMovement>, StepError> {
        let hash_of = |written: &&BookMovement| Hash::parse(&written.place.transaction_hash);
        let hashes: Vec<Hash> =
            written.iter().filter_map(hash_of).collect::<BTreeSet<_>>().into_iter().collect();
        let receipts: HashMap<Hash, _> =
            hashes.iter().copied().zip(node.receipts_of(&hashes).await?).collect();
        let final_receipts = receipts
            .values()
            .flatten()
            .filter(|receipt| receipt.block_number.0 <= self.cursor.anchor.height);
        let numbers: Vec<i64> = final_receipts
            .map(|receipt| receipt.block_number.0)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let headers: HashMap<i64, _> =
            numbers.iter().copied().zip(node.headers(&numbers).await?).collect();
        let mut shown = Vec::new();
        for written in written {
            let Some(Some(receipt)) = hash_of(written).and_then(|hash| receipts.get(&hash)) else {
                continue;
            };
            let number = receipt.block_number.0;
            let Some(header) = headers.get(&number).and_then(Option::as_ref) else { continue };
            if header.hash != receipt.block_hash {
                return Err(VerifyError::WrongFork(number).into());
            }
            let log = receipt.logs.iter().find(|log| log.log_index.0 == written.place.log_index);
            if let Some((log, movement)) = log.and_then(|log| Some((log, log.movement()?)))
                && receipt.has_succeeded()
                && shown.iter().all(|known: &ChainMovement| known.place != written.place)
            {
                // A former contract counts as the token here: the book has this movement, so its
                // transfer's caller was shown that contract.
                let is_token = log.contract == *self.token() || self.chain.was_token(&log.contract);
                shown.push(self.shown(log, &movement, header.timestamp.0, is_token));
            }
        }
        Ok(shown)
    }

    /// If there are several nodes, asks each for the movements of the book that `shown` lacks, and
    /// adds what it finds. So only what no node shows counts as missing. Faults of nodes are
    /// logged.
    pub(super) async fn ask_others(
        &self,
        written: &[BookMovement],
        shown: &mut Vec<ChainMovement>,
    ) {
        for node in self.nodes.iter().copied() {
            let missing: Vec<&BookMovement> = written
                .iter()
                .filter(|written| shown.iter().all(|shown| shown.place != written.place))
                .collect();
            if missing.is_empty() || self.nodes.len() == 1 {
                return;
            }
            match self.in_receipts(node, &missing).await {
                Ok(found) => shown.extend(found),
                Err(StepError::Read(fault)) => {
                    tracing::warn!(node = node.label(), %fault, "a node could not be asked for \
                     movements that another node does not show")
                }
                Err(StepError::Fatal(_)) => {}
            }
        }
    }
}

fn wants_less(faults: &[(String, ReadError)]) -> bool {
    faults.iter().any(|(_, fault)| matches!(fault, ReadError::Node(NodeError::TooMuch(_))))
}
