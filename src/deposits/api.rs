//! Deposits over HTTP.

use schemars::JsonSchema;
use serde::Serialize;

use super::state::{Classification, DepositStatus, ReasonCode};
use super::{Deposit, rows};
use crate::chains::address::ChainAddress;
use crate::http::query::{self, CREATED_FILTERS, Filter, FilterKind};
use crate::http::route::{self, Context, List, Route};
use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::{Id, Money, ObjectKind, OperationError, Refusal};

crate::string_enum!(DepositWord { Deposit "deposit" });

/// A token movement to a deposit address.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Deposit")]
pub struct DepositView {
    pub object: DepositWord,
    pub id: Id<kind::Deposit>,
    pub transfer_id: Id<kind::Transfer>,
    pub status: DepositStatus,
    pub amount: Money,
    pub currency: String,
    pub asset: String,
    pub chain: String,
    pub from_address: String,
    pub to_address: String,
    pub transaction_hash: String,
    pub log_index: i64,
    pub block_number: Option<i64>,
    pub block_time: Option<i64>,
    pub confirmations: i64,
    pub classification: Option<Classification>,
    pub reason_code: Option<ReasonCode>,
    pub completed_at: Option<i64>,
    pub created: i64,
    pub livemode: bool,
}

pub fn view(deposit: Deposit) -> DepositView {
    DepositView {
        object: DepositWord::Deposit,
        id: deposit.id,
        transfer_id: deposit.transfer_id,
        status: deposit.status,
        amount: deposit.amount,
        currency: deposit.asset.clone(),
        asset: deposit.asset,
        from_address: ChainAddress::of_chain(&deposit.chain, deposit.from_address).to_string(),
        to_address: ChainAddress::of_chain(&deposit.chain, deposit.to_address).to_string(),
        chain: deposit.chain,
        transaction_hash: deposit.transaction_hash,
        log_index: deposit.log_index,
        block_number: deposit.block_number,
        block_time: deposit.block_time,
        confirmations: deposit.confirmations,
        classification: deposit.classification,
        reason_code: deposit.reason_code,
        completed_at: deposit.completed_at,
        created: deposit.created,
        livemode: deposit.scope.livemode(),
    }
}

const FILTERS: &[Filter] = &[
    CREATED_FILTERS[0],
    CREATED_FILTERS[1],
    CREATED_FILTERS[2],
    CREATED_FILTERS[3],
    Filter::new("status", FilterKind::Word(query::status_words::<DepositStatus>)),
    Filter::new("transfer_id", FilterKind::Id(ObjectKind::Transfer)),
    Filter::new("transaction_hash", FilterKind::Text),
];

pub fn routes() -> Vec<Route> {
    vec![
        route::list(
            "/v1/deposits",
            "List deposits",
            ObjectKind::Deposit,
            FILTERS,
            route::nothing,
            index,
        ),
        route::get("/v1/deposits/{id}", "Get a deposit", show),
    ]
}

fn show(context: &mut Context<'_>) -> Result<DepositView, OperationError> {
    let scope = context.scope();
    let id = context.path_id()?;
    Ok(view(rows::find(context.tx, scope, id)?.ok_or_else(Refusal::not_found)?))
}

fn index(
    context: &mut Context<'_>,
    _: (),
    page: Page,
) -> Result<List<DepositView>, OperationError> {
    let scope = context.scope();
    Ok(List::map(rows::list(context.tx, scope, &page)?, |row| Ok(view(rows::read(row)?)))?)
}
