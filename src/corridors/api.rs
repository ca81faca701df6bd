//! Corridors over HTTP.

use schemars::JsonSchema;
use serde::Serialize;

use crate::beneficiaries::state::AccountType;
use crate::chains::{self, AssetName, ChainName, Following, FundingRail};
use crate::http::route::{self, Context, List, Route};
use crate::kernel::{Currency, Money, OperationError};
use crate::quote_locks::api::{Fee, fee_view};
use crate::rails::PaymentMethod;
use crate::transfers::PurposeCode;

crate::string_enum!(CorridorWord { Corridor "corridor" });
crate::string_enum!(
    /// Whether deposits are seen as they become final.
    ChainViewStatus {
        Following "following",
        Behind "behind",
        NotFollowed "not_followed",
        // The configured token contract has announced its replacement.
        TokenDeprecated "token_deprecated",
    }
);

/// How far a chain's final view is followed. While it is behind, deposits show later, and transfers
/// expire later.
#[derive(Serialize, JsonSchema)]
pub struct ChainView {
    pub status: ChainViewStatus,
    pub block_number: Option<i64>,
    pub block_time: Option<i64>,
    pub seconds_behind: Option<i64>,
}

/// What can be sent, with its limits and time limits.
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
    pub account_types: Vec<AccountType>,
    pub methods: Vec<PaymentMethod>,
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

pub fn routes() -> Vec<Route> {
    vec![route::get(
        "/v1/corridors",
        "What can be sent, with its limits and time limits",
        corridors,
    )]
}

/// How far the mode's chain is followed; `None` if it is simulated.
fn chain_view(context: &mut Context<'_>) -> Result<Option<ChainView>, OperationError> {
    let mode = context.scope().mode();
    let chain = &context.services.ports(mode)?.chain;
    let Following::Real { lag_alarm_seconds, .. } = chain.following else { return Ok(None) };
    let contract = chain.token_contract.bytes();
    let cursor = chains::rows::cursor(context.tx, mode, chain.name)?;
    let is_followed = chains::rows::is_followed_with(context.tx, mode, chain.name, contract)?;
    // Blocks have real times, so the account's test clock does not count.
    let seconds_behind = cursor.map(|cursor| (context.now.instant() - cursor.block_time).max(0));
    let status = match seconds_behind {
        _ if cursor.is_some_and(|cursor| cursor.has_deprecated(contract)) => {
            ChainViewStatus::TokenDeprecated
        }
        // Perhaps the settings name another contract than the one that is followed. Until a node
        // has shown that the new one is a token, no transfer is created.
        _ if !is_followed => ChainViewStatus::NotFollowed,
        None => ChainViewStatus::NotFollowed,
        Some(seconds) if seconds > lag_alarm_seconds => ChainViewStatus::Behind,
        Some(_) => ChainViewStatus::Following,
    };
    let (block_number, block_time) =
        (cursor.map(|cursor| cursor.anchor.height), cursor.map(|cursor| cursor.block_time));
    Ok(Some(ChainView { status, block_number, block_time, seconds_behind }))
}

fn corridors(context: &mut Context<'_>) -> Result<List<Corridor>, OperationError> {
    let livemode = context.scope().livemode();
    if livemode && !context.services.is_live_configured() {
        return Ok(List::new(Vec::new(), false));
    }
    let settings = &context.services.settings;
    let chain = &context.services.ports(context.scope().mode())?.chain;
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
        account_types: AccountType::ALL.to_vec(),
        methods: PaymentMethod::ALL.to_vec(),
        purpose_codes: PurposeCode::WORDS.to_vec(),
        livemode,
    };
    Ok(List::new(vec![corridor], false))
}
