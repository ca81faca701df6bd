//! Confirms refunds that the operator sent, once their transactions are final.

use std::time::Instant;

use super::follower::{Follower, store_error};
use crate::chains::address::AddressBytes;
use crate::chains::blocks::{Hash, Log, Receipt, millionths};
use crate::chains::followed::FollowError;
use crate::chains::port::ChainNode;
use crate::chains::rows::Cursor;
use crate::kernel::{Now, StoreError};
use crate::keys;
use crate::refunds::state::{RefundStatus, SentHashError};
use crate::refunds::{self, Refund};
use crate::store::{Cost, Tx};
use crate::transfers::{self, refunding};

/// Least pause between two looks for refunds that the operator sent, in seconds.
const REFUND_LOOKS_PAUSE_SECONDS: u64 = 3;
/// The most refunds that one look reads.
const REFUNDS_COUNT_MAX: i64 = 50;

impl Follower {
    /// Confirms refunds that the operator sent and whose transactions are final, or keeps why a
    /// transaction does not confirm its refund. Does nothing if the last look was less than
    /// `REFUND_LOOKS_PAUSE_SECONDS` ago.
    pub(super) async fn look_for_refunds(
        &mut self,
        cursor: &Cursor,
        lead: &dyn ChainNode,
    ) -> Result<(), FollowError> {
        if self
            .refunds_looked_at
            .is_some_and(|at| at.elapsed().as_secs() < REFUND_LOOKS_PAUSE_SECONDS)
        {
            return Ok(());
        }
        self.refunds_looked_at = Some(Instant::now());
        let (mode, name) = (self.chain.mode, self.chain.settings.name);
        let after = self.refunds_after.take();
        let sent = self.app.store.read(Cost::Scan, move |tx| {
            Ok(refunds::rows::sent_on(tx, mode, name.as_str(), after, REFUNDS_COUNT_MAX)?)
        });
        let sent = sent.await.map_err(store_error)?;
        // The next look continues where this one ends, so that no refund waits behind others whose
        // transactions are never found.
        self.refunds_after = sent
            .last()
            .filter(|_| sent.len() as i64 == REFUNDS_COUNT_MAX)
            .map(|refund| (refund.scope, refund.id));
        for refund in sent {
            let Some(hash) = refund.sent_transaction_hash.as_deref().and_then(Hash::parse) else {
                continue;
            };
            let trouble = |fault| FollowError::Node { node: lead.label(), fault };
            let receipt = lead.receipt(&hash).await.map_err(trouble)?;
            let verdict = match &receipt {
                None => Err(SentHashError::NotFound),
                Some(receipt) if receipt.block_number.0 > cursor.anchor.height => continue,
                Some(receipt) => {
                    let header = lead.header(receipt.block_number.0).await.map_err(trouble)?;
                    let Some(header) = header.filter(|header| header.hash == receipt.block_hash)
                    else {
                        continue;
                    };
                    let (scope, transfer_id) = (refund.scope, refund.transfer_id);
                    let known = self.app.store.read(Cost::Point, move |tx| {
                        let offset_seconds = keys::rows::clock_offset_seconds(tx, scope)?;
                        Ok((transfers::rows::find(tx, scope, transfer_id)?, offset_seconds))
                    });
                    let (transfer, offset_seconds) = known.await.map_err(store_error)?;
                    let contract = transfer.map(|transfer| *transfer.token_contract.bytes());
                    // A transaction older than the refund does not pay it. `created` includes the
                    // account's test clock, and a block's time does not.
                    if header.timestamp.0 < refund.created - offset_seconds {
                        Err(SentHashError::BeforeRefund)
                    } else {
                        self.matching_log_indices(&refund, contract.as_ref(), receipt)
                    }
                }
            };
            let work =
                move |tx: &mut dyn Tx, now: &mut Now| Ok(conclude(tx, now, &refund, &verdict)?);
            self.app.store.write(work).await.map_err(store_error)?;
        }
        Ok(())
    }

    /// The indices of the logs in a receipt that can be this refund. Each moves the refund's whole
    /// amount to the refund's address, in the token's configured contract or in the former one that
    /// the transfer's caller was shown (`transfer_contract`). `Err` if there is none.
    pub(super) fn matching_log_indices(
        &self,
        refund: &Refund,
        transfer_contract: Option<&AddressBytes>,
        receipt: &Receipt,
    ) -> Result<Vec<i64>, SentHashError> {
        if !receipt.has_succeeded() {
            return Err(SentHashError::Reverted);
        }
        let is_it = |log: &&Log| {
            self.chain.is_token_of(&log.contract, transfer_contract)
                && log.movement().is_some_and(|movement| {
                    let units = millionths(movement.value, self.chain.decimals(&log.contract));
                    refund.to_address.is_some_and(|to| *to.bytes() == movement.to)
                        && units == Some(refund.amount.units)
                })
        };
        let indices: Vec<i64> =
            receipt.logs.iter().filter(is_it).map(|log| log.log_index.0).collect();
        if indices.is_empty() { Err(SentHashError::NoSuchMovement) } else { Ok(indices) }
    }
}

/// Confirms a refund with the first log that confirms no other refund, or keeps why the transaction
/// does not confirm it. Changes nothing if the operator has named another transaction meanwhile.
fn conclude(
    tx: &mut dyn Tx,
    now: &mut Now,
    seen: &Refund,
    verdict: &Result<Vec<i64>, SentHashError>,
) -> Result<(), StoreError> {
    let Some(mut refund) = refunds::rows::find(tx, seen.scope, seen.id)? else { return Ok(()) };
    let Some(hash) = refund
        .sent_transaction_hash
        .clone()
        .filter(|hash| Some(hash) == seen.sent_transaction_hash.as_ref())
    else {
        return Ok(());
    };
    if refund.status != RefundStatus::Processing {
        return Ok(());
    }
    now.enter_account(keys::rows::clock_offset_seconds(tx, refund.scope)?);
    let fault = match verdict {
        Err(fault) => *fault,
        Ok(indices) => {
            for index in indices {
                if !refunds::rows::is_movement_used(tx, &refund.chain, &hash, *index)? {
                    refund.log_index = Some(*index);
                    refund.sent_fault = None;
                    return refunding::confirm(tx, now, &mut refund, hash);
                }
            }
            SentHashError::AlreadyUsed
        }
    };
    if refund.sent_fault != Some(fault) {
        tracing::warn!(refund = %refund.id, fault = fault.as_str(), "the transaction that was \
         given for a refund does not confirm it");
        refund.sent_fault = Some(fault);
        refunds::rows::update(tx, &mut refund, RefundStatus::Processing)?;
    }
    Ok(())
}
