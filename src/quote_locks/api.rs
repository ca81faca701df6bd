//! Quote locks and corridors over HTTP.

use schemars::JsonSchema;
use serde::Serialize;

use super::gst::{GST_PERCENT, Gst};
use super::{BuyCurrency, QuoteLock, QuoteLockStatus, SellCurrency, rows};
use crate::chains::{self, AssetName, ChainName, Following, FundingRail};
use crate::http::fields::{RangedAmount, Word};
use crate::http::query::{CREATED_FILTERS, Filter, FilterKind};
use crate::http::route::{self, Context, List, Route};
use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::{Code, Currency, Failure, Id, Metadata, Money, ObjectKind, Rate, Refusal};

crate::words!(QuoteLockWord { QuoteLock "quote_lock" });
crate::words!(CorridorWord { Corridor "corridor" });

crate::form! {
    /// Locks an exchange rate.
    CreateQuoteLock {
        sell_currency: Word<SellCurrency>,
        buy_currency: Word<BuyCurrency>,
        amount: RangedAmount,
        metadata: Metadata,
    }
}

/// One part of a fee.
#[derive(Serialize, JsonSchema)]
pub struct FeeDetail {
    pub name: String,
    pub amount: Money,
    /// Where it is not the fee's own currency: GST is deducted from the rupees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<Currency>,
    /// The value that a tax is computed on, and its rate in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taxable_value: Option<Money>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_percent: Option<String>,
}

/// What is kept of the amount before it is exchanged.
#[derive(Serialize, JsonSchema)]
pub struct Fee {
    pub amount: Money,
    pub currency: Currency,
    pub details: Vec<FeeDetail>,
}

/// A fee with its parts. `amount` is what is kept in the sell currency; GST stands beside it with
/// its own currency.
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

pub fn view(lock: QuoteLock, business: i64) -> QuoteLockView {
    QuoteLockView {
        object: QuoteLockWord::QuoteLock,
        id: lock.id,
        status: lock.status(business),
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

crate::words!(
    /// Whether deposits are seen as they become final.
    ChainViewStatus {
        Following "following",
        Behind "behind",
        NotFollowed "not_followed",
        TokenDeprecated "token_deprecated",
    }
);

/// How far a chain's final view is followed. While it is behind, deposits show later and nothing
/// expires.
#[derive(Serialize, JsonSchema)]
pub struct ChainView {
    pub status: ChainViewStatus,
    pub block_number: Option<i64>,
    pub block_time: Option<i64>,
    pub seconds_behind: Option<i64>,
}

/// What can be sent, with limits and clocks.
#[derive(Serialize, JsonSchema)]
pub struct Corridor {
    pub object: CorridorWord,
    pub sell_currency: Currency,
    pub buy_currency: Currency,
    pub amount_minimum: Money,
    pub amount_maximum: Money,
    pub fee: Fee,
    pub funding: Vec<CorridorFunding>,
    pub quote_lock_seconds: i64,
    pub funding_seconds: i64,
    pub account_types: Vec<crate::beneficiaries::state::AccountType>,
    pub methods: Vec<crate::rails::Method>,
    pub purpose_codes: Vec<&'static str>,
    pub livemode: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct CorridorFunding {
    pub rail: FundingRail,
    pub asset: AssetName,
    pub chain: ChainName,
    pub token_contract: String,
    /// How far the chain's final view is followed; null where the chain is simulated.
    pub view: Option<ChainView>,
}

fn statuses() -> Vec<&'static str> {
    QuoteLockStatus::WORDS.to_vec()
}

const FILTERS: &[Filter] = &[
    CREATED_FILTERS[0],
    CREATED_FILTERS[1],
    CREATED_FILTERS[2],
    CREATED_FILTERS[3],
    Filter::new("status", FilterKind::Word(statuses), "status = ?"),
    Filter::new("transfer_id", FilterKind::Id(ObjectKind::Transfer), "transfer_id = ?"),
];

pub fn routes() -> Vec<Route> {
    vec![
        route::post("/v1/quote_locks", "Lock an exchange rate", route::creation, create)
            .codes(&[Code::QuoteUnavailable]),
        route::list(
            "/v1/quote_locks",
            "List quote locks",
            ObjectKind::QuoteLock,
            FILTERS,
            route::nothing,
            index,
        ),
        route::get("/v1/quote_locks/{id}", "Get a quote lock", show),
        route::get("/v1/corridors", "What can be sent, with limits and clocks", corridors),
    ]
}

fn create(
    context: &mut Context<'_>,
    _: (),
    form: CreateQuoteLock,
) -> Result<QuoteLockView, Failure> {
    let scope = context.scope();
    let lock = super::create(
        context.tx,
        context.now,
        context.world,
        scope,
        Money::new(form.amount.0, Currency::Usd),
        form.metadata,
    )?;
    Ok(view(lock, context.now.business()))
}

fn show(context: &mut Context<'_>) -> Result<QuoteLockView, Failure> {
    let scope = context.scope();
    let id = context.path_id()?;
    let lock = rows::find(context.tx, scope, id)?.ok_or_else(Refusal::not_found)?;
    Ok(view(lock, context.now.business()))
}

fn index(context: &mut Context<'_>, _: (), page: Page) -> Result<List<QuoteLockView>, Failure> {
    let (scope, business) = (context.scope(), context.now.business());
    Ok(List::map(rows::list(context.tx, scope, &page, business)?, |row| {
        Ok(view(rows::read(row)?, business))
    })?)
}

/// How far the mode's chain is followed; `None` where it is simulated.
fn chain_view(context: &mut Context<'_>) -> Result<Option<ChainView>, Failure> {
    let mode = context.scope().mode();
    let chain = &context.world.ports(mode)?.chain;
    let Following::Real { lag_alarm_seconds } = chain.following else { return Ok(None) };
    let contract = chain.token_contract.bytes();
    let cursor = chains::rows::cursor(context.tx, mode, chain.name)?;
    let is_followed = chains::rows::is_followed_with(context.tx, mode, chain.name, contract)?;
    // The chain knows no test clock.
    let seconds_behind = cursor.map(|cursor| (context.now.instant() - cursor.block_time).max(0));
    let status = match seconds_behind {
        _ if cursor.is_some_and(|cursor| cursor.has_deprecated(contract)) => {
            ChainViewStatus::TokenDeprecated
        }
        // Before a node has shown a changed contract to be a token, no transfer is taken.
        _ if !is_followed => ChainViewStatus::NotFollowed,
        None => ChainViewStatus::NotFollowed,
        Some(seconds) if seconds > lag_alarm_seconds => ChainViewStatus::Behind,
        Some(_) => ChainViewStatus::Following,
    };
    let (block_number, block_time) =
        (cursor.map(|cursor| cursor.anchor.height), cursor.map(|cursor| cursor.block_time));
    Ok(Some(ChainView { status, block_number, block_time, seconds_behind }))
}

fn corridors(context: &mut Context<'_>) -> Result<List<Corridor>, Failure> {
    let livemode = context.scope().livemode();
    if livemode && !context.world.is_live_configured() {
        return Ok(List::new(Vec::new(), false));
    }
    let settings = &context.world.settings;
    let chain = &context.world.ports(context.scope().mode())?.chain;
    let corridor = Corridor {
        object: CorridorWord::Corridor,
        sell_currency: Currency::Usd,
        buy_currency: Currency::Inr,
        amount_minimum: settings.amount_min,
        amount_maximum: settings.amount_max,
        fee: fee_view(settings.fee, None),
        funding: vec![CorridorFunding {
            rail: FundingRail::Stablecoin,
            asset: AssetName::Usdt,
            chain: chain.name,
            token_contract: chain.token_contract.to_string(),
            view: chain_view(context)?,
        }],
        quote_lock_seconds: settings.quote_lock_seconds,
        funding_seconds: settings.funding_seconds,
        account_types: crate::beneficiaries::state::AccountType::ALL.to_vec(),
        methods: crate::rails::Method::ALL.to_vec(),
        purpose_codes: crate::transfers::PurposeCode::WORDS.to_vec(),
        livemode,
    };
    Ok(List::new(vec![corridor], false))
}
