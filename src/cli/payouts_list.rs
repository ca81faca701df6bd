//! `hundi payouts list`: what is on its way to the bank.

use super::listing::{ListingArgs, ListingCell, ListingPrinter, more_than};
use super::{DatabaseArgs, config, error_message, open};
use crate::kernel::Money;
use crate::rails::files::rows::{self as journal, InstructionStatus, Journalled};
use crate::rails::files::settings::BankSettings;
use crate::rails::files::values::date_time;
use crate::store::Cost;

/// The most payouts that one call lists.
const LISTED_MAX: i64 = 1_000;

/// Where a payout stands, in words. `instant` is now, in Unix seconds.
fn state(found: &Journalled, bank: Option<&BankSettings>, instant: i64) -> String {
    if let Some(attention) = found.attention {
        return format!("waits for you: {}", attention.as_str());
    }
    match found.status {
        InstructionStatus::Queued => {
            let opens_at = bank.and_then(|bank| bank.profile.opens_at(found.method, instant));
            match opens_at {
                Some(at) => format!("waits for the bank until {}", date_time(at)),
                None => "waits for the next file".into(),
            }
        }
        InstructionStatus::Writing => "is being written".into(),
        InstructionStatus::Published => "with the bank".into(),
        InstructionStatus::Withdrawn => "not sent".into(),
        InstructionStatus::Unknown => "waits for you: outcome_unknown".into(),
    }
}

pub async fn list(
    shows_names: bool,
    listing: ListingArgs,
    database: &DatabaseArgs,
) -> Result<(), String> {
    let config = config(database)?;
    let bank = config.bank.or(config.test_bank);
    let store = open(database).await?;
    let instant = store.clock.milliseconds() / 1000;
    let read = move |tx: &mut dyn crate::store::Tx| {
        let mut found = Vec::new();
        for instruction in journal::under_way(tx, LISTED_MAX + 1)? {
            let names = journal::names_written(tx, instruction.payout_id)?;
            found.push((instruction, names));
        }
        Ok(found)
    };
    let found = store.read(Cost::Scan, read).await.map_err(error_message)?;
    let columns: &[&str] = if shows_names {
        &["payout", "mode", "method", "amount", "file", "state", "beneficiary", "sender"]
    } else {
        &["payout", "mode", "method", "amount", "file", "state"]
    };
    let mut listing = ListingPrinter::begin(listing, columns)?;
    for (instruction, names) in found.iter().take(LISTED_MAX as usize) {
        let amount = Money::new(instruction.units, crate::kernel::Currency::Inr);
        let known: [ListingCell; 6] = [
            instruction.payout_id.to_string().into(),
            instruction.scope.mode().as_str().into(),
            instruction.method.as_str().into(),
            amount.to_string().into(),
            instruction.message_id.as_ref().map(|id| id.to_string()).into(),
            state(instruction, bank.as_ref(), instant).into(),
        ];
        if shows_names {
            let [payout, mode, method, amount, file, state] = known;
            let (beneficiary, sender) = match names {
                Some((beneficiary, sender)) => {
                    (beneficiary.to_string().into(), sender.to_string().into())
                }
                None => (ListingCell::Nothing, ListingCell::Nothing),
            };
            listing.row([payout, mode, method, amount, file, state, beneficiary, sender])?;
        } else {
            listing.row(known)?;
        }
    }
    listing.end()?;
    if found.len() > LISTED_MAX as usize {
        return Err(more_than(LISTED_MAX as usize));
    }
    Ok(())
}
