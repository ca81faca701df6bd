//! `hundi quickstart`: the six steps of a payment against a running server.

use clap::Args;
use serde_json::{Value, json};

use super::caller::{ApiCaller, CallError, CallerArgs};
use super::{print, trigger};

/// Make a payment in test mode: six steps, from a beneficiary to the bank's reference
#[derive(Args)]
pub struct Quickstart {
    /// Print the steps as commands with curl, to paste into a shell line by line, and end
    #[arg(long)]
    curl: bool,
    #[command(flatten)]
    caller: CallerArgs,
}

impl Quickstart {
    pub async fn run(self) -> Result<(), String> {
        if self.curl {
            let lines = include_str!("quickstart.sh").replace("@URL@", self.caller.base_url());
            return print(lines.trim_end());
        }
        let caller = ApiCaller::new(&self.caller)?;
        if caller.key().contains("_live_") {
            return Err("this is a live key: the quick start is for test mode only".into());
        }
        let before = trigger::newest(&caller).await?;
        let beneficiary = trigger::active_beneficiary(&caller, trigger::SETTLES).await?;
        let transfer = trigger::transfer(&caller, &beneficiary, json!({})).await?;
        let id = trigger::id(&transfer);
        trigger::pay(&caller, &transfer, json!({})).await?;
        let settled = format!("{before}&linked_id={id}");
        trigger::await_event(&caller, "transfer.status.payout_settled", settled).await?;
        let path = format!("/v1/transfers/{id}");
        let transfer = caller.get(&path, 0).await.map_err(CallError::message)?;
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let payout_id = text(&transfer["payout_id"]);
        let reference = text(&transfer["payout"]["unique_transaction_reference"]);
        print(&format!("{:<16} {reference}", "UTR"))?;
        print(&format!("{:<16} (payout.unique_transaction_reference of {id})\n", ""))?;
        let page = text(&transfer["funding"]["instructions_url"]);
        print(&format!("{:<16} {page}", "payer's page"))?;
        let available = format!("{before}&linked_id={payout_id}");
        trigger::await_event(&caller, "payout.payment_advice.available", available).await?;
        let path = format!("/v1/payouts/{payout_id}/payment_advice");
        let advice = caller.get(&path, 0).await.map_err(CallError::message)?;
        print(&format!("{:<16} {}", "verify page", text(&advice["verification_url"])))?;
        let url = format!("{}{path}", caller.base_url);
        print(&format!(
            "{:<16} curl -o advice.pdf -H \"Authorization: Bearer $HUNDI_API_KEY\" \
             -H \"Accept: application/pdf\" {url}",
            "payment advice"
        ))?;
        print(&format!("{:<16} {}/docs/", "guides", caller.base_url))
    }
}
