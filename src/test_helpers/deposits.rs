//! The helper that sends a deposit on the account's simulated chain.

use crate::chains::simulated;
use crate::deposits::api::DepositView;
use crate::deposits::{self, Deposit};
use crate::http::fields::{Int, Text, TokenAmount};
use crate::http::route::{self, Context, Route};
use crate::kernel::clock::TIME_MAX;
use crate::kernel::state::Status;
use crate::kernel::{
    Code, Currency, Money, Now, OperationError, Refusal, RefusalEntry, StoreError,
};
use crate::services::Services;
use crate::store::Tx;
use crate::tasks::{self, TaskKind};
use crate::transfers::api::locate;
use crate::transfers::{Transfer, funding};

crate::form! {
    /// Sends a simulated deposit.
    SimulateDeposit {
        amount: Option<TokenAmount>,
        asset: Option<Text<1, 20>>,
        block_time: Option<Int<0, TIME_MAX>>,
    }
}

pub fn routes() -> Vec<Route> {
    vec![
        route::post(
            "/v1/test_helpers/transfers/{id}/deposit",
            "Send a simulated deposit",
            locate,
            deposit,
        )
        .codes(&[Code::TestHelperNotApplicable]),
    ]
}

/// Puts a transaction on the account's simulated chain and creates its deposit at once.
fn deposit(
    context: &mut Context<'_>,
    found: Transfer,
    form: SimulateDeposit,
) -> Result<DepositView, OperationError> {
    let scope = found.scope;
    if !context.services.ports(scope.mode())?.chain.is_simulated() {
        let message = "Test mode uses a test net here: send its token to the deposit address.";
        return Err(Refusal::new(Code::TestHelperNotApplicable, message).into());
    }
    let earliest = simulated::last_block_time(context.tx, scope)?;
    // Another node may have made the last block, and its clock may be a moment ahead of ours.
    let latest = context.now.business().max(earliest);
    let block_time = form.block_time.map_or(latest, |time| time.0);
    if block_time < earliest || block_time > latest {
        let message = format!(
            "block_time must lie between the last simulated block ({earliest}) and the test clock \
             ({latest})."
        );
        return Err(RefusalEntry::field(Code::ParameterRangeInvalid, "block_time", message)
            .with("minimum", earliest.to_string())
            .with("maximum", latest.to_string())
            .into());
    }
    let missing = if funding::takes_money(found.status) {
        funding::still_to_send(context.tx, &found)?
    } else {
        Money::zero(found.expected.currency)
    };
    let amount = match form.amount {
        Some(amount) => amount.0,
        None if !missing.is_zero() => missing,
        None => {
            let message = format!(
                "The transfer is {}, and no money is missing beside what is on its way. Without an \
                 amount this helper needs a transfer in funding, funding_hold, expired or \
                 cancelled whose amount has not been received in full. With an amount it sends \
                 this amount, whatever the transfer's status.",
                found.status.as_str()
            );
            return Err(Refusal::new(Code::TestHelperNotApplicable, message).into());
        }
    };
    if amount.units > TokenAmount::MAX.units {
        let message = format!("amount must be at most {}.", TokenAmount::MAX);
        return Err(RefusalEntry::field(Code::ParameterRangeInvalid, "amount", message)
            .with("minimum", Money::new(1, Currency::Usdt).to_string())
            .with("maximum", TokenAmount::MAX.to_string())
            .into());
    }
    let asset = form.asset.map_or_else(|| found.asset.clone(), |asset| asset.0);
    // The same letters in another case are probably a mistake, not a wrong token on purpose.
    if asset != found.asset && asset.eq_ignore_ascii_case(&found.asset) {
        let message = format!(
            "asset must be {0} or the name of another token. Write {0} instead of {asset}.",
            found.asset
        );
        return Err(RefusalEntry::field(Code::ParameterValueInvalid, "asset", message).into());
    }
    let (tx, now, services) = (&mut *context.tx, &mut *context.now, context.services);
    let deposit = simulate(tx, now, services, &found, amount, &asset, Some(block_time))?;
    Ok(deposits::api::view(deposit))
}

/// Sends an amount to a transfer's address on the account's simulated chain, and answers the
/// deposit. `block_time` is in Unix seconds and not before the last simulated block; `None` is the
/// newest time that a block can have now. `now` must already be in the account's time.
pub fn simulate(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    transfer: &Transfer,
    amount: Money,
    asset: &str,
    block_time: Option<i64>,
) -> Result<Deposit, StoreError> {
    let (scope, to_address) = (transfer.scope, *transfer.deposit_address.bytes());
    let block_time = match block_time {
        Some(time) => time,
        None => now.business().max(simulated::last_block_time(tx, scope)?),
    };
    let step = services.settings.simulation_step_milliseconds;
    let sent = simulated::send(tx, now, scope, to_address, asset, amount, block_time)?;
    let movement = sent.movement(now.business_milliseconds(), step);
    let deposit = funding::observe_simulated(tx, now, services, scope, &transfer.chain, &movement)?;
    let due = now.business_milliseconds() + step;
    tasks::schedule(tx, now, scope, TaskKind::DepositWatch, deposit.id, due)?;
    Ok(deposit)
}
