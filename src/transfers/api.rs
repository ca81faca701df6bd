//! Transfers over HTTP.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::diagnosis;
use super::holds::{self, Resolution};
use super::state::{FundingStatus, HoldPolicy, OverpaidPolicy, StatusReason, TransferStatus};
use super::{NewTransfer, Policy, PurposeCode, Transfer, rows};
use crate::chains::address::ChainAddress;
use crate::chains::{self, AssetName, ChainName, FundingRail};
use crate::http::body::Node;
use crate::http::fields::{Amount, CallerReference, EnumField, HttpsUrl, Text};
use crate::http::form::{Field, Nothing, read_alone};
use crate::http::query::{self, CREATED_FILTERS, Filter, FilterKind};
use crate::http::route::{self, Context, List, Route};
use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::{
    Code, Currency, History, Id, Metadata, Money, NamedId, ObjectKind, OperationError, Rate,
    Refusal, RefusalEntry, Scope,
};
use crate::payouts::state::PayoutStatus;
use crate::payouts::{self, Payout};
use crate::quote_locks::api::{Fee, fee_view};
use crate::quote_locks::{BuyCurrency, SellCurrency};
use crate::refunds;
use crate::refunds::api::RefundView;
use crate::services::Services;

crate::string_enum!(TransferWord { Transfer "transfer" });
crate::string_enum!(
    /// What a caller can decide about money in a hold.
    ResolveAction { Requote "requote", Refund "refund" }
);
crate::enum_fields!(ResolveAction);

/// The name of a chain. Each mode accepts one chain; [`funding_refused`] refuses the others.
#[derive(Clone, Copy)]
pub struct ChainField(Option<ChainName>);

impl Field for ChainField {
    fn schema() -> Value {
        EnumField::<ChainName>::schema()
    }
    fn parse(node: &Node, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        let Text(text) = Text::<1, 40>::parse(node, name, entries)?;
        Some(ChainField(ChainName::parse(&text)))
    }
}

crate::form! {
    /// What to do with money that does not fit.
    PolicyForm {
        underpaid: Option<EnumField<HoldPolicy>>,
        overpaid: Option<EnumField<OverpaidPolicy>>,
        late: Option<EnumField<HoldPolicy>>,
    }
}
crate::form! {
    /// How the transfer is funded.
    FundingForm {
        rail: EnumField<FundingRail>,
        asset: EnumField<AssetName>,
        chain: ChainField,
        refund_address: Option<ChainAddress>,
        payer_sets_refund_address: Option<bool>,
        policy: Option<PolicyForm>,
    }
}
crate::form! {
    /// Creates a transfer.
    CreateTransfer {
        sender_id: NamedId<kind::Sender>,
        beneficiary_id: NamedId<kind::Beneficiary>,
        amount: Amount,
        currency: EnumField<SellCurrency>,
        payout_currency: EnumField<BuyCurrency>,
        quote_lock_id: NamedId<kind::QuoteLock>,
        funding: FundingForm,
        reference: Option<CallerReference>,
        return_url: Option<HttpsUrl>,
        metadata: Metadata,
        purpose_code: Option<EnumField<PurposeCode>>,
    }
}
crate::form! {
    /// Decides about money in a hold.
    ResolveFunding {
        action: EnumField<ResolveAction>,
        quote_lock_id: Option<NamedId<kind::QuoteLock>>,
        refund_address: Option<ChainAddress>,
    }
}

/// What happens to money that does not fit the transfer: too little, too much, or too late.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FundingPolicy")]
pub struct PolicyView {
    pub underpaid: HoldPolicy,
    pub overpaid: OverpaidPolicy,
    pub late: HoldPolicy,
}

/// The funding leg of a transfer.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Funding")]
pub struct FundingView {
    pub rail: FundingRail,
    pub asset: String,
    pub chain: String,
    pub deposit_address: String,
    pub status: FundingStatus,
    pub amount_expected: Money,
    pub amount_received: Money,
    pub amount_excess: Money,
    pub expires_at: i64,
    pub refund_address: Option<String>,
    pub payer_sets_refund_address: bool,
    pub policy: PolicyView,
    pub token_contract: String,
    pub instructions_url: String,
}

/// The INR leg of a transfer, once it has settled.
#[derive(Serialize, JsonSchema)]
pub struct TransferPayout {
    pub id: Id<kind::Payout>,
    pub status: PayoutStatus,
    pub amount: Money,
    pub currency: Currency,
    pub unique_transaction_reference: String,
    pub settled_at: i64,
}

/// A transfer from a stablecoin deposit to an INR payout.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Transfer")]
pub struct TransferView {
    pub object: TransferWord,
    pub id: Id<kind::Transfer>,
    pub status: TransferStatus,
    pub status_reason: Option<StatusReason>,
    pub sender_id: Id<kind::Sender>,
    pub beneficiary_id: Id<kind::Beneficiary>,
    pub quote_lock_id: Id<kind::QuoteLock>,
    pub amount: Money,
    pub currency: Currency,
    pub payout_amount: Money,
    pub payout_currency: Currency,
    pub rate: Rate,
    pub fee: Fee,
    pub purpose_code: PurposeCode,
    pub funding: FundingView,
    pub payout_id: Option<Id<kind::Payout>>,
    pub payout: Option<TransferPayout>,
    pub refund: Option<RefundView>,
    pub reference: Option<String>,
    pub return_url: Option<String>,
    pub status_history: History<TransferStatus>,
    pub metadata: Metadata,
    pub created: i64,
    pub livemode: bool,
}

/// The last segment of the payer's link: the transfer's identifier and a mark, a keyed hash that
/// only this service can make.
pub fn payer_link_segment(services: &Services, id: Id<kind::Transfer>) -> String {
    services.marked(PAYER_LINK, id)
}

/// The transfer that a payer's link names; `None` if the mark is wrong.
pub fn transfer_of_payer_link(services: &Services, segment: &str) -> Option<Id<kind::Transfer>> {
    services.unmarked(PAYER_LINK, segment)
}

/// What the mark of a payer's link is bound to, so that no mark of another kind of link fits.
const PAYER_LINK: &[u8] = b"instructions";

pub fn view(context: &mut Context<'_>, transfer: Transfer) -> Result<TransferView, OperationError> {
    let scope = transfer.scope;
    let payout = transfer
        .payout_id
        .map(|id| payouts::rows::find(context.tx, scope, id))
        .transpose()?
        .flatten();
    let refund = transfer
        .refund_id
        .map(|id| refunds::rows::find(context.tx, scope, id))
        .transpose()?
        .flatten();
    let link_segment = payer_link_segment(context.services, transfer.id);
    Ok(TransferView {
        object: TransferWord::Transfer,
        id: transfer.id,
        status: transfer.status,
        status_reason: transfer.status_reason,
        sender_id: transfer.sender_id,
        beneficiary_id: transfer.beneficiary_id,
        quote_lock_id: transfer.quote_lock_id,
        amount: transfer.amount,
        currency: transfer.amount.currency,
        payout_amount: transfer.payout_amount,
        payout_currency: transfer.payout_amount.currency,
        rate: transfer.rate,
        fee: fee_view(transfer.fee, transfer.gst),
        purpose_code: transfer.purpose_code,
        funding: FundingView {
            rail: FundingRail::Stablecoin,
            status: transfer.funding_status(),
            asset: transfer.asset,
            chain: transfer.chain,
            deposit_address: transfer.deposit_address.to_string(),
            amount_expected: transfer.expected,
            amount_received: transfer.received,
            amount_excess: transfer.excess,
            expires_at: transfer.expires_at,
            refund_address: transfer.refund_address.map(|address| address.to_string()),
            payer_sets_refund_address: transfer.payer_sets_refund_address,
            policy: PolicyView {
                underpaid: transfer.policy.underpaid,
                overpaid: transfer.policy.overpaid,
                late: transfer.policy.late,
            },
            token_contract: transfer.token_contract.to_string(),
            instructions_url: format!(
                "{}/pay/{link_segment}",
                context.services.settings.public_url
            ),
        },
        payout_id: transfer.payout_id,
        payout: payout.and_then(payout_view),
        refund: refund.map(refunds::api::view),
        reference: transfer.reference,
        return_url: transfer.return_url,
        status_history: transfer.status_history,
        metadata: transfer.metadata,
        created: transfer.created,
        livemode: scope.livemode(),
    })
}

/// `None` before the payout has settled: a transfer shows its payout only together with the bank's
/// reference.
fn payout_view(payout: Payout) -> Option<TransferPayout> {
    Some(TransferPayout {
        id: payout.id,
        status: payout.status,
        amount: payout.amount,
        currency: payout.amount.currency,
        unique_transaction_reference: payout.unique_transaction_reference?,
        settled_at: payout.settled_at?,
    })
}

const FILTERS: &[Filter] = &[
    CREATED_FILTERS[0],
    CREATED_FILTERS[1],
    CREATED_FILTERS[2],
    CREATED_FILTERS[3],
    Filter::new("status", FilterKind::Word(query::status_words::<TransferStatus>)),
    Filter::new("beneficiary_id", FilterKind::Id(ObjectKind::Beneficiary)),
    Filter::new("sender_id", FilterKind::Id(ObjectKind::Sender)),
    Filter::new("reference", FilterKind::Text),
];

pub fn routes() -> Vec<Route> {
    const CREATE_CODES: &[Code] = &[
        Code::ObjectNotFound,
        Code::BeneficiaryNotPayable,
        Code::QuoteLockExpired,
        Code::QuoteLockAlreadyUsed,
        Code::QuoteLockMismatch,
        Code::SenderNotEligible,
        Code::ServicePaused,
        Code::ReferenceAlreadyUsed,
    ];
    const RESOLVE_CODES: &[Code] = &[
        Code::TransferActionInvalid,
        Code::RefundAddressRequired,
        Code::BeneficiaryNotPayable,
        Code::QuoteLockExpired,
        Code::QuoteLockAlreadyUsed,
        Code::QuoteLockMismatch,
    ];
    vec![
        route::post(
            "/v1/transfers",
            "Create a transfer",
            route::refuse_live_key_before_setup,
            create,
        )
        .codes(CREATE_CODES)
        .checking_form(funding_refused)
        .prefetching(|tx, scope, form: &CreateTransfer| {
            super::prefetch_for_create(tx, scope, &new_transfer(form.clone()))
        }),
        route::list(
            "/v1/transfers",
            "List transfers",
            ObjectKind::Transfer,
            FILTERS,
            route::nothing,
            index,
        ),
        route::get("/v1/transfers/{id}", "Get a transfer", |context| {
            let found = locate(context)?;
            view(context, found)
        }),
        route::post(
            "/v1/transfers/{id}/cancel",
            "Cancel a transfer before any money came",
            locate,
            cancel,
        )
        .codes(&[Code::TransferNotCancellable]),
        route::post(
            "/v1/transfers/{id}/resolve_funding",
            "Decide about money in a hold",
            locate,
            resolve,
        )
        .codes(RESOLVE_CODES),
        route::post(
            "/v1/transfers/{id}/funding/diagnose",
            "Ask what became of a payment",
            locate,
            diagnosis::api::diagnose,
        )
        .preflight(diagnosis::api::preflight),
    ]
}

/// The transfer that the request's path names; refused if the account and mode have none.
pub fn locate(context: &mut Context<'_>) -> Result<Transfer, OperationError> {
    let scope = context.scope();
    let id = context.path_id()?;
    Ok(rows::find(context.tx, scope, id)?.ok_or_else(Refusal::not_found)?)
}

/// What is wrong with a request's `funding`: a chain that the mode does not accept, or a refund
/// address of another chain.
fn funding_refused(services: &Services, scope: Scope, body: &Node) -> Vec<RefusalEntry> {
    let (Ok(ports), Some(funding)) = (services.ports(scope.mode()), body.get("funding")) else {
        return Vec::new();
    };
    let chain = &ports.chain;
    if let Some(ChainField(asked)) = read_alone::<ChainField>(funding.get("chain"))
        && asked != Some(chain.name)
    {
        let mode = if scope.livemode() { "live" } else { "test" };
        let message =
            format!("funding.chain must be {}: {mode} mode takes no other.", chain.name.as_str());
        return vec![RefusalEntry::field(Code::ParameterValueInvalid, "funding.chain", message)];
    }
    let address = read_alone::<ChainAddress>(funding.get("refund_address"));
    let name = chain.name.as_str();
    Vec::from_iter(chains::address_fault(name, "funding.refund_address", address.as_ref()))
}

fn new_transfer(form: CreateTransfer) -> NewTransfer {
    let defaults = Policy::default();
    let policy = form.funding.policy.map_or(defaults, |policy| Policy {
        underpaid: policy.underpaid.map_or(defaults.underpaid, |word| word.0),
        overpaid: policy.overpaid.map_or(defaults.overpaid, |word| word.0),
        late: policy.late.map_or(defaults.late, |word| word.0),
    });
    NewTransfer {
        sender_id: form.sender_id,
        beneficiary_id: form.beneficiary_id,
        quote_lock_id: form.quote_lock_id,
        amount: form.amount.of(Currency::Usd),
        payout_currency: Currency::Inr,
        purpose_code: form.purpose_code.map(|word| word.0),
        refund_address: form.funding.refund_address,
        payer_sets_refund_address: form.funding.payer_sets_refund_address.unwrap_or(false),
        policy,
        return_url: form.return_url.map(|url| url.0),
        reference: form.reference.map(|reference| reference.0),
        metadata: form.metadata,
    }
}

fn create(
    context: &mut Context<'_>,
    _: (),
    form: CreateTransfer,
) -> Result<TransferView, OperationError> {
    let scope = context.scope();
    let transfer =
        super::create(context.tx, context.now, context.services, scope, new_transfer(form))?;
    view(context, transfer)
}

fn index(
    context: &mut Context<'_>,
    _: (),
    page: Page,
) -> Result<List<TransferView>, OperationError> {
    let scope = context.scope();
    let (rows, has_next) = rows::list(context.tx, scope, &page)?;
    let mut data = Vec::with_capacity(rows.len());
    for row in rows {
        data.push(view(context, rows::read(row)?)?);
    }
    Ok(List::new(data, has_next))
}

fn cancel(
    context: &mut Context<'_>,
    mut found: Transfer,
    _: Nothing,
) -> Result<TransferView, OperationError> {
    super::cancel(context.tx, context.now, &mut found)?;
    view(context, found)
}

fn resolve(
    context: &mut Context<'_>,
    mut found: Transfer,
    form: ResolveFunding,
) -> Result<TransferView, OperationError> {
    let mut entries = Vec::new();
    let mut wrong =
        |code, message| entries.push(RefusalEntry::field(code, "quote_lock_id", message));
    let resolution = match (form.action.0, form.quote_lock_id) {
        (ResolveAction::Requote, lock) => {
            if lock.is_none() {
                wrong(Code::ParameterEmpty, "quote_lock_id is required for the action requote.");
            }
            // A request without an ID is refused below, so the empty one is never looked up.
            Resolution::Requote(lock.unwrap_or_else(|| NamedId::parse("")))
        }
        (ResolveAction::Refund, lock) => {
            if lock.is_some() {
                wrong(Code::ParameterUnexpected, "quote_lock_id goes with the action requote.");
            }
            Resolution::Refund
        }
    };
    entries.extend(chains::address_fault(
        &found.chain,
        "refund_address",
        form.refund_address.as_ref(),
    ));
    Refusal::check(entries)?;
    holds::resolve(
        context.tx,
        context.now,
        context.services,
        &mut found,
        resolution,
        form.refund_address,
    )?;
    view(context, found)
}
