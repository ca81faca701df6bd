//! The balance over HTTP.

use schemars::JsonSchema;
use serde::Serialize;

use crate::deposits;
use crate::http::route::{self, Context, Route};
use crate::kernel::{Currency, Money, OperationError};
use crate::ledger::{self, LedgerAccount};

crate::string_enum!(BalanceWord { Balance "balance" });

#[derive(Serialize, JsonSchema)]
pub struct BalanceItem {
    pub amount: Money,
    pub currency: Currency,
}

/// Sums by compartment. `pending` is no compartment: it is the sum of deposits that were seen and
/// are not final yet. Items of zero are left out.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Balance")]
pub struct BalanceView {
    pub object: BalanceWord,
    pub available: Vec<BalanceItem>,
    pub pending: Vec<BalanceItem>,
    pub processing: Vec<BalanceItem>,
    pub payout_processing: Vec<BalanceItem>,
    pub hold: Vec<BalanceItem>,
    pub livemode: bool,
}

pub fn routes() -> Vec<Route> {
    vec![route::get("/v1/balance", "Get the balance", show)]
}

fn show(context: &mut Context<'_>) -> Result<BalanceView, OperationError> {
    let scope = context.scope();
    let balances = ledger::balances(context.tx, scope)?;
    let of = |account: LedgerAccount| -> Vec<BalanceItem> {
        let mine = balances.iter().filter(|(found, _)| *found == account);
        mine.map(|(_, amount)| BalanceItem { amount: *amount, currency: amount.currency }).collect()
    };
    let pending = Money::new(deposits::rows::pending_units(context.tx, scope)?, Currency::Usdt);
    let pending = Some(pending).filter(|amount| !amount.is_zero());
    Ok(BalanceView {
        object: BalanceWord::Balance,
        available: of(LedgerAccount::Available),
        pending: pending
            .map(|amount| BalanceItem { amount, currency: amount.currency })
            .into_iter()
            .collect(),
        processing: of(LedgerAccount::Processing),
        payout_processing: of(LedgerAccount::PayoutProcessing),
        hold: of(LedgerAccount::Hold),
        livemode: scope.livemode(),
    })
}
