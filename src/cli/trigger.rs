//! `hundi trigger`: makes an event happen in test mode, by the calls that a caller makes.

use clap::Args;
use serde_json::{Value, json};

use super::caller::{ApiCaller, CallError, CallerArgs};
use super::print;

/// How long one request waits for the event, in seconds.
const WAIT_SECONDS: u64 = 20;
/// The most requests that wait for the event, one after another.
const WAITS_MAX: usize = 6;

/// Make an event happen in test mode
///
/// Uses the API and the test helpers to create what the event needs, and ends when the event is
/// there. Without a name it lists the events that it can make.
#[derive(Args)]
pub struct Trigger {
    /// Type of the event, such as transfer.status.payout_settled
    event: Option<String>,
    #[command(flatten)]
    caller: CallerArgs,
}

/// Account numbers of test mode. The last four digits choose what happens, and the names say what
/// that is.
pub(super) const SETTLES: &str = "50100012345678";
const PARTIAL_NAME: &str = "50100012340002";
const REJECTED: &str = "50100012340003";
const FAILS: &str = "50100012341001";
const RETURNS: &str = "50100012341002";
/// Where refunds of the simulated chain go.
const REFUND_ADDRESS: &str = "TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC";

/// What the command does to make an event happen.
#[derive(Clone, Copy)]
enum Scenario {
    Draft,
    /// A beneficiary with this account number.
    Beneficiary(&'static str),
    /// A transfer that is not paid.
    Unpaid,
    Cancelled,
    Expired,
    Overpaid,
    /// A paid transfer to this account number, with a refund address or without.
    Paid(&'static str, bool),
    /// A paid transfer whose beneficiary was disabled before the money came.
    PaidToDisabled,
}

/// Every event that can be made, by its name.
const SCENARIOS: &[(&str, Scenario)] = &[
    ("beneficiary.payouts_enabled.updated", Scenario::Paid(RETURNS, true)),
    ("beneficiary.status.active", Scenario::Beneficiary(SETTLES)),
    ("beneficiary.status.draft", Scenario::Draft),
    ("beneficiary.status.input_required", Scenario::Beneficiary(PARTIAL_NAME)),
    ("beneficiary.status.rejected", Scenario::Beneficiary(REJECTED)),
    ("beneficiary.status.verifying", Scenario::Beneficiary(SETTLES)),
    ("deposit.status.completed", Scenario::Paid(SETTLES, true)),
    ("payout.payment_advice.available", Scenario::Paid(SETTLES, true)),
    ("payout.status.failed", Scenario::Paid(FAILS, true)),
    ("payout.status.hold", Scenario::PaidToDisabled),
    ("payout.status.initialized", Scenario::Paid(SETTLES, true)),
    ("payout.status.processing", Scenario::Paid(SETTLES, true)),
    ("payout.status.returned", Scenario::Paid(RETURNS, true)),
    ("payout.status.settled", Scenario::Paid(SETTLES, true)),
    ("refund.status.completed", Scenario::Paid(FAILS, true)),
    ("refund.status.processing", Scenario::Paid(FAILS, true)),
    ("refund.status.requires_address", Scenario::Paid(FAILS, false)),
    ("transfer.status.cancelled", Scenario::Cancelled),
    ("transfer.status.expired", Scenario::Expired),
    ("transfer.status.funded", Scenario::Paid(SETTLES, true)),
    ("transfer.status.funding", Scenario::Unpaid),
    ("transfer.status.funding_hold", Scenario::Overpaid),
    ("transfer.status.payout_failed", Scenario::Paid(FAILS, true)),
    ("transfer.status.payout_processing", Scenario::Paid(SETTLES, true)),
    ("transfer.status.payout_returned", Scenario::Paid(RETURNS, true)),
    ("transfer.status.payout_settled", Scenario::Paid(SETTLES, true)),
    ("transfer.status.refund_processing", Scenario::Paid(FAILS, true)),
    ("transfer.status.refunded", Scenario::Paid(FAILS, true)),
];

/// Events that the command cannot make: they need the payer's page, or deliveries that fail for a
/// day or longer.
#[cfg(test)]
const LEFT_OUT: &[&str] = &[
    "refund.payer_address.updated",
    "webhook_endpoint.status.disabled",
    "webhook_endpoint.status.enabled",
    "webhook_endpoint.status.failing",
];

impl Trigger {
    pub async fn run(self) -> Result<(), String> {
        let Some(event) = self.event else {
            return SCENARIOS.iter().try_for_each(|(name, _)| print(name));
        };
        let Some((name, scenario)) = SCENARIOS.iter().find(|(name, _)| *name == event) else {
            return Err(format!(
                "{event:?} cannot be made. `hundi trigger` without a name lists what can"
            ));
        };
        let caller = ApiCaller::new(&self.caller)?;
        if caller.key().contains("_live_") {
            return Err("this is a live key: events are made in test mode only".into());
        }
        let before = newest(&caller).await?;
        run(&caller, *scenario).await?;
        let found = await_event(&caller, name, before).await?;
        print(&format!(
            "{}  {name}  {}",
            found["id"].as_str().unwrap_or(""),
            found["linked_id"].as_str().unwrap_or("")
        ))
    }
}

async fn get(caller: &ApiCaller, path: &str, wait_seconds: u64) -> Result<Value, String> {
    caller.get(path, wait_seconds).await.map_err(CallError::message)
}

/// The part of a query that asks for events after the newest one; empty if there is no event yet.
pub(super) async fn newest(caller: &ApiCaller) -> Result<String, String> {
    let page = get(caller, "/v1/events?order=desc&limit=1", 0).await?;
    Ok(page["data"][0]["id"].as_str().map_or(String::new(), |id| format!("&starting_after={id}")))
}

/// Waits up to two minutes for the first event of a type. `after` is a part of the query that says
/// where to begin, as [`newest`] makes it.
pub(super) async fn await_event(
    caller: &ApiCaller,
    name: &str,
    after: String,
) -> Result<Value, String> {
    for _ in 0..WAITS_MAX {
        let path = format!("/v1/events?limit=1&wait={WAIT_SECONDS}&type={name}{after}");
        let mut page = get(caller, &path, WAIT_SECONDS).await?;
        if let Some(event) = page["data"].get_mut(0) {
            return Ok(event.take());
        }
    }
    Err(format!(
        "{name} did not come within {} s: is the simulation slow or paused on the server?",
        WAIT_SECONDS * WAITS_MAX as u64
    ))
}

pub(super) fn id(object: &Value) -> String {
    object["id"].as_str().unwrap_or("").to_owned()
}

async fn create(caller: &ApiCaller, path: &str, body: Value) -> Result<Value, String> {
    let made = caller.post(path, &body).await?;
    print(&format!("{:<16} {}", made["object"].as_str().unwrap_or(""), id(&made)))?;
    Ok(made)
}

async fn beneficiary(
    caller: &ApiCaller,
    account_number: &str,
    submit: bool,
) -> Result<String, String> {
    let body = json!({ "name": "Asha Rao", "account_number": account_number, "ifsc": "HDFC0000001",
        "account_type": "nre", "submit": submit });
    Ok(id(&create(caller, "/v1/beneficiaries", body).await?))
}

pub(super) async fn active_beneficiary(
    caller: &ApiCaller,
    account_number: &str,
) -> Result<String, String> {
    let before = newest(caller).await?;
    let made = beneficiary(caller, account_number, true).await?;
    await_event(caller, "beneficiary.status.active", format!("{before}&linked_id={made}")).await?;
    Ok(made)
}

/// Makes a sender, a quote lock and a transfer of 100 USD. `funding` adds to its field `funding`.
pub(super) async fn transfer(
    caller: &ApiCaller,
    beneficiary: &str,
    funding: Value,
) -> Result<Value, String> {
    let sender = json!({ "name": "Ravi Rao", "type": "individual", "country": "AE" });
    let sender = create(caller, "/v1/senders", sender).await?;
    let lock = json!({ "sell_currency": "USD", "buy_currency": "INR", "amount": "100.00" });
    let lock = create(caller, "/v1/quote_locks", lock).await?;
    let mut whole = json!({ "rail": "stablecoin", "asset": "USDT", "chain": "tron" });
    for (name, value) in funding.as_object().into_iter().flatten() {
        whole[name] = value.clone();
    }
    let body = json!({
        "sender_id": id(&sender), "beneficiary_id": beneficiary, "quote_lock_id": id(&lock),
        "amount": "100.00", "currency": "USD", "payout_currency": "INR", "funding": whole,
    });
    create(caller, "/v1/transfers", body).await
}

pub(super) async fn pay(caller: &ApiCaller, transfer: &Value, body: Value) -> Result<(), String> {
    let path = format!("/v1/test_helpers/transfers/{}/deposit", id(transfer));
    create(caller, &path, body).await.map(drop)
}

async fn run(caller: &ApiCaller, scenario: Scenario) -> Result<(), String> {
    let with_refund_address = || json!({ "refund_address": REFUND_ADDRESS });
    match scenario {
        Scenario::Draft => beneficiary(caller, SETTLES, false).await.map(drop),
        Scenario::Beneficiary(account_number) => {
            beneficiary(caller, account_number, true).await.map(drop)
        }
        Scenario::Paid(account_number, has_refund_address) => {
            let funding = if has_refund_address { with_refund_address() } else { json!({}) };
            let to = active_beneficiary(caller, account_number).await?;
            let made = transfer(caller, &to, funding).await?;
            pay(caller, &made, json!({})).await
        }
        Scenario::PaidToDisabled => {
            let to = active_beneficiary(caller, RETURNS).await?;
            let (first, second) = (
                transfer(caller, &to, with_refund_address()).await?,
                transfer(caller, &to, with_refund_address()).await?,
            );
            let before = newest(caller).await?;
            pay(caller, &first, json!({})).await?;
            let disabled = format!("{before}&linked_id={to}");
            await_event(caller, "beneficiary.payouts_enabled.updated", disabled).await?;
            pay(caller, &second, json!({})).await
        }
        Scenario::Unpaid | Scenario::Cancelled | Scenario::Expired | Scenario::Overpaid => {
            let to = active_beneficiary(caller, SETTLES).await?;
            let funding = json!({ "refund_address": REFUND_ADDRESS,
                "policy": { "overpaid": "hold" } });
            let made = transfer(caller, &to, funding).await?;
            match scenario {
                Scenario::Cancelled => {
                    let path = format!("/v1/transfers/{}/cancel", id(&made));
                    create(caller, &path, json!({})).await.map(drop)
                }
                Scenario::Expired => {
                    let created = made["created"].as_i64().unwrap_or_default();
                    let expires_at = made["funding"]["expires_at"].as_i64().unwrap_or_default();
                    let seconds = (expires_at - created).max(0) + 60;
                    print(&format!("the account's test clock advances by {seconds} s"))?;
                    let body = json!({ "advance_seconds": seconds });
                    caller.post("/v1/test_helpers/clock", &body).await.map(drop)
                }
                Scenario::Overpaid => pay(caller, &made, json!({ "amount": "101.00" })).await,
                _ => Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_can_be_made_or_is_left_out_for_a_reason() {
        let names: Vec<&str> = SCENARIOS.iter().map(|(name, _)| *name).collect();
        assert!(names.is_sorted());
        let mut known: Vec<&str> = names.into_iter().chain(LEFT_OUT.iter().copied()).collect();
        known.sort_unstable();
        assert_eq!(known, crate::webhooks::event_types());
    }
}
