//! `POST /v1/transfers/:id/funding/diagnose`: asks the book and then a node about a transaction.
//! The node is asked before the handler's transaction opens, see `http::preflight`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::message::message;
use super::{DiagnosisCode, judge};
use crate::chains::address::{AddressBytes, ChainAddress};
use crate::chains::blocks::Hash;
use crate::chains::inspect::{self, SeenBlock, SeenMovement, SeenToken, SeenTransaction};
use crate::chains::{self, ChainName, Depth, kind_named, simulated};
use crate::deposits::state::DepositStatus;
use crate::deposits::{self, Deposit};
use crate::http::preflight::{Asking, PREFLIGHT_SECONDS_MAX, PreflightFuture, PreflightResult};
use crate::http::query;
use crate::http::route::Context;
use crate::kernel::id::kind;
use crate::kernel::{Id, Money, OperationError, Refusal, StoreError};
use crate::store::Cost;
use crate::transfers::{Transfer, rows};

crate::string_enum!(DiagnosisWord { FundingDiagnosis "funding_diagnosis" });
crate::form! {
    /// Asks what became of a transaction.
    DiagnoseFunding {
        transaction_hash: Hash,
    }
}

/// What became of a transaction that was sent to fund a transfer.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FundingDiagnosis")]
pub struct DiagnosisView {
    pub object: DiagnosisWord,
    pub transfer_id: Id<kind::Transfer>,
    pub transaction_hash: String,
    pub code: DiagnosisCode,
    /// A sentence or two that a payer can be shown.
    pub message: String,
    pub deposit_id: Option<Id<kind::Deposit>>,
    pub amount: Option<Money>,
    pub currency: Option<String>,
    /// What will still be missing from the transfer's amount once this transaction is final.
    pub short_by: Option<Money>,
    /// By how many seconds the block is later than `funding.expires_at`; null if it was in time, or
    /// if its time does not matter.
    pub late_by_seconds: Option<i64>,
    pub block_number: Option<i64>,
    pub block_time: Option<i64>,
    pub confirmations: Option<i64>,
    pub to_address: Option<String>,
    pub token_contract: Option<String>,
    pub livemode: bool,
}

fn deposits_of(
    tx: &mut dyn crate::store::Tx,
    transfer: &Transfer,
    hash: &Hash,
) -> Result<Vec<Deposit>, StoreError> {
    let text = kind_named(&transfer.chain).write_hash(hash);
    let mut found = deposits::rows::of_transaction(tx, transfer.scope, &transfer.chain, &text)?;
    found.retain(|deposit| deposit.transfer_id == transfer.id);
    Ok(found)
}

/// Whether the book alone can answer: no answer of a node changes a completed deposit.
fn is_known(deposits: &[Deposit]) -> bool {
    deposits.iter().any(|deposit| deposit.status == DepositStatus::Completed)
}

/// Asks the nodes of a real chain about the transaction. No node is asked if the book alone can
/// answer, or if the transfer is not on the chain that the mode follows.
pub fn preflight(asking: Asking, form: DiagnoseFunding) -> Option<PreflightFuture> {
    Some(Box::pin(async move {
        let Asking { app, permits, caller, ids } = asking;
        let scope = caller.scope;
        let Some(chain) = app.chains.iter().find(|chain| chain.mode == scope.mode()).cloned()
        else {
            return Ok(None);
        };
        let Ok(id) = query::path_id(ids.first().map_or("", String::as_str)) else {
            return Ok(None);
        };
        let hash = form.transaction_hash;
        let name = chain.settings.name;
        let found = app.store.read(Cost::Point, move |tx| {
            let Some(transfer) = rows::find(tx, scope, id)? else { return Ok(None) };
            // The nodes of one chain do not know the transactions of another chain.
            if transfer.chain != name.as_str() || is_known(&deposits_of(tx, &transfer, &hash)?) {
                return Ok(None);
            }
            Ok(Some((transfer, chains::rows::tokens(tx, scope.mode(), name)?)))
        });
        let Some((transfer, mut tokens)) = found.await? else { return Ok(None) };
        let (settings, address) = (&chain.settings, transfer.deposit_address);
        // The transfer's own contract, and the configured one, which may not be stored yet.
        let configured = chain.token();
        tokens.retain(|token| {
            token.contract == *transfer.token_contract.bytes()
                && token.contract != configured.contract
        });
        tokens.push(configured);
        let deadline = Duration::from_secs(PREFLIGHT_SECONDS_MAX);
        let asked =
            inspect::inspect(&chain.nodes, settings, &tokens, &hash, address.bytes(), deadline);
        match permits.run(scope, asked).await {
            Some(Ok(seen)) => Ok(Some(PreflightResult::Transaction(seen))),
            Some(Err(_)) | None => Err(Refusal::unavailable().into()),
        }
    }))
}

/// What the account's simulated chain shows of a transaction.
fn simulated_transaction(
    context: &mut Context<'_>,
    transfer: &Transfer,
    hash: &Hash,
) -> Result<Option<SeenTransaction>, StoreError> {
    let text = kind_named(&transfer.chain).write_hash(hash);
    let Some(sent) = simulated::find(context.tx, transfer.scope, &text)? else { return Ok(None) };
    let movement = sent.movement(
        context.now.business_milliseconds(),
        context.services.settings.simulation_step_milliseconds,
    );
    let block = match movement.depth {
        Depth::Seen => None,
        Depth::Block { number, time, confirmations } => {
            Some(SeenBlock { number, time, confirmations, is_final: false })
        }
        Depth::Final { number, time, confirmations } => {
            Some(SeenBlock { number, time, confirmations, is_final: true })
        }
    };
    let is_ours = movement.asset == transfer.asset;
    Ok(Some(SeenTransaction {
        block,
        has_succeeded: true,
        movements: vec![SeenMovement {
            log_index: movement.log_index,
            token: if is_ours {
                SeenToken::Ours
            } else {
                SeenToken::Other { symbol: Some(movement.asset) }
            },
            contract: None,
            to_address: movement.to_address,
            value: movement.amount.units.unsigned_abs().into(),
            units: Some(movement.amount.units),
        }],
    }))
}

/// Judges a transaction for its transfer.
pub fn diagnose(
    context: &mut Context<'_>,
    found: Transfer,
    form: DiagnoseFunding,
) -> Result<DiagnosisView, OperationError> {
    let scope = found.scope;
    let hash = form.transaction_hash;
    let deposits = deposits_of(context.tx, &found, &hash)?;
    let (seen, followed_height) = if found.is_simulated(context.services) {
        (simulated_transaction(context, &found, &hash)?, 0)
    } else {
        let seen = match context.preflight_result {
            Some(PreflightResult::Transaction(seen)) => seen.clone(),
            _ if is_known(&deposits) => None,
            // No node was asked, so there is nothing to judge.
            _ => return Err(Refusal::unavailable().into()),
        };
        let chain = ChainName::parse(&found.chain);
        let cursor = chain
            .map(|chain| chains::rows::cursor(context.tx, scope.mode(), chain))
            .transpose()?
            .flatten();
        (seen, cursor.map_or(0, |cursor| cursor.anchor.height))
    };
    let finding =
        judge(&found, *found.token_contract.bytes(), &deposits, seen.as_ref(), followed_height)?;
    let written = |bytes: AddressBytes| ChainAddress::of_chain(&found.chain, bytes).to_string();
    Ok(DiagnosisView {
        object: DiagnosisWord::FundingDiagnosis,
        transfer_id: found.id,
        transaction_hash: kind_named(&found.chain).write_hash(&hash),
        code: finding.code,
        message: message(&found, &finding),
        deposit_id: finding.deposit_id,
        amount: finding.amount,
        currency: finding.currency,
        short_by: finding.short_by,
        late_by_seconds: finding.late_by_seconds,
        block_number: finding.block_number,
        block_time: finding.block_time,
        confirmations: finding.confirmations,
        to_address: finding.to_address.map(written),
        token_contract: finding.contract.map(written),
        livemode: scope.livemode(),
    })
}
