//! Quote locks over HTTP.

use schemars::JsonSchema;
use serde::Serialize;

use super::gst::{GST_PERCENT, Gst};
use super::{BuyCurrency, QuoteAmount, QuoteLock, QuoteLockStatus, SellCurrency, rows};
use crate::http::body::Node;
use crate::http::fields::{EnumField, NonNegativeAmount};
use crate::http::form::is_left_out;
use crate::http::query::{CREATED_FILTERS, Filter, FilterKind};
use crate::http::route::{self, Context, List, Route};
use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::{
    Code, Currency, Id, Metadata, Money, ObjectKind, OperationError, Rate, Refusal, RefusalEntry,
    Scope,
};
use crate::services::Services;

crate::string_enum!(QuoteLockWord { QuoteLock "quote_lock" });

crate::form! {
    /// Locks an exchange rate.
    CreateQuoteLock {
        sell_currency: EnumField<SellCurrency>,
        buy_currency: EnumField<BuyCurrency>,
        amount: Option<NonNegativeAmount>,
        buy_amount: Option<NonNegativeAmount>,
        metadata: Metadata,
    }
}

/// One entry of a fee's `details`: the service fee, or GST.
#[derive(Serialize, JsonSchema)]
pub struct FeeDetail {
    pub name: String,
    pub amount: Money,
    /// Present only if it differs from the fee's currency: GST is in rupees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<Currency>,
    /// For a tax: the value that it is computed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taxable_value: Option<Money>,
    /// For a tax: its rate in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_percent: Option<String>,
}

/// A fee with its parts. `amount` is what is kept of the sell amount before the exchange. `details`
/// can also list GST, which is deducted from the rupees and is no part of `amount`.
#[derive(Serialize, JsonSchema)]
pub struct Fee {
    pub amount: Money,
    pub currency: Currency,
    pub details: Vec<FeeDetail>,
}

/// The view of a fee, and of the GST beside it.
pub fn fee_view(fee: Money, gst: Option<Gst>) -> Fee {
    let plain = |name: &str, amount| FeeDetail {
        name: name.into(),
        amount,
        currency: None,
        taxable_value: None,
        rate_percent: None,
    };
    let service_fee = (!fee.is_zero()).then(|| plain("service_fee", fee));
    let gst = gst.map(|gst| FeeDetail {
        currency: Some(gst.amount.currency),
        taxable_value: Some(gst.taxable),
        rate_percent: Some(GST_PERCENT.to_string()),
        ..plain("gst", gst.amount)
    });
    Fee {
        amount: fee,
        currency: fee.currency,
        details: service_fee.into_iter().chain(gst).collect(),
    }
}

/// A locked exchange rate.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "QuoteLock")]
pub struct QuoteLockView {
    pub object: QuoteLockWord,
    pub id: Id<kind::QuoteLock>,
    pub status: QuoteLockStatus,
    pub sell_currency: Currency,
    pub sell_amount: Money,
    pub buy_currency: Currency,
    pub buy_amount: Money,
    pub amount: Money,
    pub rate: Rate,
    pub mid_market_rate: Rate,
    pub fee: Fee,
    pub expires_at: i64,
    pub transfer_id: Option<Id<kind::Transfer>>,
    pub metadata: Metadata,
    pub created: i64,
    pub livemode: bool,
}

pub fn view(lock: QuoteLock, business_time: i64) -> QuoteLockView {
    QuoteLockView {
        object: QuoteLockWord::QuoteLock,
        id: lock.id,
        status: lock.status(business_time),
        sell_currency: lock.sell.currency,
        sell_amount: lock.sell,
        buy_currency: lock.buy.currency,
        buy_amount: lock.buy,
        amount: lock.sell,
        rate: lock.rate,
        mid_market_rate: lock.mid_market_rate,
        fee: fee_view(lock.fee, lock.gst),
        expires_at: lock.expires_at,
        transfer_id: lock.transfer_id,
        metadata: lock.metadata,
        created: lock.created,
        livemode: lock.scope.livemode(),
    }
}

fn statuses() -> Vec<&'static str> {
    QuoteLockStatus::WORDS.to_vec()
}

const FILTERS: &[Filter] = &[
    CREATED_FILTERS[0],
    CREATED_FILTERS[1],
    CREATED_FILTERS[2],
    CREATED_FILTERS[3],
    Filter::new("status", FilterKind::Word(statuses)),
    Filter::new("transfer_id", FilterKind::Id(ObjectKind::Transfer)),
];

pub fn routes() -> Vec<Route> {
    vec![
        route::post(
            "/v1/quote_locks",
            "Lock an exchange rate",
            route::refuse_live_key_before_setup,
            create,
        )
        .codes(&[Code::QuoteUnavailable, Code::ServicePaused])
        .checking_form(one_amount),
        route::list(
            "/v1/quote_locks",
            "List quote locks",
            ObjectKind::QuoteLock,
            FILTERS,
            route::nothing,
            index,
        ),
        route::get("/v1/quote_locks/{id}", "Get a quote lock", show),
    ]
}

/// Refuses a body that has both `amount` and `buy_amount`, or neither.
fn one_amount(_: &Services, _: Scope, body: &Node) -> Vec<RefusalEntry> {
    let is_sent = |name| body.get(name).is_some_and(|node| !is_left_out(node));
    let (code, field_name, message) = match (is_sent("amount"), is_sent("buy_amount")) {
        (true, true) => {
            (Code::ParameterUnexpected, "buy_amount", "buy_amount cannot be combined with amount.")
        }
        (false, false) => {
            (Code::ParameterEmpty, "amount", "amount is required, or buy_amount in its place.")
        }
        _ => return Vec::new(),
    };
    vec![RefusalEntry::field(code, field_name, message)]
}

fn create(
    context: &mut Context<'_>,
    _: (),
    form: CreateQuoteLock,
) -> Result<QuoteLockView, OperationError> {
    let scope = context.scope();
    // Exactly one of the two is there: `one_amount` refuses anything else.
    let amount = match (form.amount, form.buy_amount) {
        (Some(sell), None) => QuoteAmount::Sell(Money::new(sell.0, Currency::Usd)),
        (None, Some(buy)) => QuoteAmount::Buy(Money::new(buy.0, Currency::Inr)),
        _ => return Err(Refusal::internal().into()),
    };
    let lock =
        super::create(context.tx, context.now, context.services, scope, amount, form.metadata)?;
    Ok(view(lock, context.now.business()))
}

fn show(context: &mut Context<'_>) -> Result<QuoteLockView, OperationError> {
    let scope = context.scope();
    let id = context.path_id()?;
    let lock = rows::find(context.tx, scope, id)?.ok_or_else(Refusal::not_found)?;
    Ok(view(lock, context.now.business()))
}

fn index(
    context: &mut Context<'_>,
    _: (),
    page: Page,
) -> Result<List<QuoteLockView>, OperationError> {
    let (scope, business_time) = (context.scope(), context.now.business());
    Ok(List::map(rows::list(context.tx, scope, &page, business_time)?, |row| {
        Ok(view(rows::read(row)?, business_time))
    })?)
}
