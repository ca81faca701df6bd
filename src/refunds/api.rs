//! Refunds over HTTP.

use schemars::JsonSchema;
use serde::Serialize;

use super::payer_address::PAYER_ADDRESS_WAIT_SECONDS;
use super::state::{AddressDeclarer, RefundKind, RefundReason, RefundStatus};
use super::{AddressDeclaration, Refund, rows};
use crate::chains;
use crate::chains::address::ChainAddress;
use crate::http::query::{self, CREATED_FILTERS, Filter, FilterKind};
use crate::http::route::{self, Context, Guesses, List, Route};
use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::state::Status;
use crate::kernel::{Code, Id, Money, ObjectKind, OperationError, Refusal};

crate::string_enum!(RefundWord { Refund "refund" });

crate::form! {
    /// Declares where a refund goes.
    DeclareRefundAddress {
        to_address: ChainAddress,
    }
}

/// The address that the payer gave for a refund. It becomes the refund's address at `active_at`, or
/// as soon as the caller declares the same address. If another address is declared before
/// `active_at`, that one counts instead. If no refund may go to the address at `active_at`, the
/// payer has to give another one.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PayerAddress")]
pub struct PayerAddressView {
    pub to_address: String,
    pub declared_at: i64,
    pub active_at: i64,
}

/// USDT owed back.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Refund")]
pub struct RefundView {
    pub object: RefundWord,
    pub id: Id<kind::Refund>,
    pub transfer_id: Id<kind::Transfer>,
    pub kind: RefundKind,
    pub status: RefundStatus,
    pub reason: RefundReason,
    pub amount: Money,
    pub asset: String,
    pub chain: String,
    pub to_address: Option<String>,
    pub payer_address: Option<PayerAddressView>,
    pub transaction_hash: Option<String>,
    pub completed_at: Option<i64>,
    pub created: i64,
    pub livemode: bool,
}

pub fn view(refund: Refund) -> RefundView {
    RefundView {
        object: RefundWord::Refund,
        id: refund.id,
        transfer_id: refund.transfer_id,
        kind: refund.kind,
        status: refund.status,
        reason: refund.reason,
        amount: refund.amount,
        asset: refund.asset,
        chain: refund.chain,
        to_address: refund.to_address.map(|address| address.to_string()),
        payer_address: refund
            .payer_address
            .zip(refund.payer_address_declared_at)
            .map(payer_address_view),
        transaction_hash: refund.transaction_hash,
        completed_at: refund.completed_at,
        created: refund.created,
        livemode: refund.scope.livemode(),
    }
}

fn payer_address_view((to_address, declared_at): (ChainAddress, i64)) -> PayerAddressView {
    PayerAddressView {
        to_address: to_address.to_string(),
        declared_at,
        active_at: declared_at + PAYER_ADDRESS_WAIT_SECONDS,
    }
}

const FILTERS: &[Filter] = &[
    CREATED_FILTERS[0],
    CREATED_FILTERS[1],
    CREATED_FILTERS[2],
    CREATED_FILTERS[3],
    Filter::new("status", FilterKind::Word(query::status_words::<RefundStatus>)),
    Filter::new("transfer_id", FilterKind::Id(ObjectKind::Transfer)),
    Filter::new("transaction_hash", FilterKind::Text),
];

pub fn routes() -> Vec<Route> {
    vec![
        route::list(
            "/v1/refunds",
            "List refunds",
            ObjectKind::Refund,
            FILTERS,
            route::nothing,
            index,
        ),
        route::get("/v1/refunds/{id}", "Get a refund", |context| Ok(view(locate(context)?))),
        route::post("/v1/refunds/{id}", "Declare where a refund goes", locate, declare)
            .codes(&[Code::TransferActionInvalid])
            .guessed(Guesses {
                paths: &["/v1/refunds", "/v1/transfers/{id}/refund"],
                way: "A refund is not created by a request: the service creates it when money is \
                      owed back. To give back the money of a transfer in funding_hold, send POST \
                      /v1/transfers/{id}/resolve_funding with the action refund. To say where a \
                      refund goes, send POST /v1/refunds/{id}.",
            }),
    ]
}

pub fn locate(context: &mut Context<'_>) -> Result<Refund, OperationError> {
    let scope = context.scope();
    let id = context.path_id()?;
    Ok(rows::find(context.tx, scope, id)?.ok_or_else(Refusal::not_found)?)
}

fn index(context: &mut Context<'_>, _: (), page: Page) -> Result<List<RefundView>, OperationError> {
    let scope = context.scope();
    Ok(List::map(rows::list(context.tx, scope, &page)?, |row| Ok(view(rows::read(row)?)))?)
}

fn declare(
    context: &mut Context<'_>,
    mut found: Refund,
    form: DeclareRefundAddress,
) -> Result<RefundView, OperationError> {
    let unfit = chains::address_fault(&found.chain, "to_address", Some(&form.to_address));
    Refusal::check(Vec::from_iter(unfit))?;
    if found.status != RefundStatus::RequiresAddress {
        let message = format!(
            "The refund is {}: its address can be declared only in requires_address.",
            found.status.as_str()
        );
        return Err(Refusal::new(Code::TransferActionInvalid, message).into());
    }
    let contract = rows::token_contract(context.tx, &found)?;
    let refused = super::address_refusal(context.tx, "to_address", &form.to_address, &contract)?;
    Refusal::check(Vec::from_iter(refused))?;
    let declaration = AddressDeclaration {
        to_address: form.to_address,
        declared_by: AddressDeclarer::Caller,
        reason: None,
    };
    super::declare_address(context.tx, context.now, context.services, &mut found, declaration)?;
    Ok(view(found))
}
