//! `hundi payouts`: what is on hold or on its way to the bank, and the month's large inward
//! remittances.

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use secrecy::ExposeSecret;

use super::listing::{ListingArgs, ListingCell, ListingPrinter};
use super::{
    ByArgs, DatabaseArgs, ModeFlag, error_message, open_beside, payouts_list, print,
    record_numbers_seen,
};
use crate::app_state::AppState;
use crate::beneficiaries;
use crate::kernel::state::Status;
use crate::kernel::{Currency, Id, Mode, Money, OperationError, Scope, StoreError};
use crate::keys;
use crate::payouts::{Payout, rows};
use crate::rails::files::values::{Day, date_time};
use crate::senders;
use crate::services::Services;
use crate::store::{Cost, Tx};
use crate::transfers;

/// How many payouts one transaction reads.
const PAGE_ROWS: i64 = 500;

/// India requires a report of each cross-border transfer above five lakh (500 000) rupees
/// (Prevention of Money-laundering (Maintenance of Records) Rules, 2005, rule 3).
const REPORTED_ABOVE: Money = Money::new(50_000_000, Currency::Inr);

/// List payouts on hold or on their way to the bank, and report large inward remittances
#[derive(Args)]
pub struct PayoutsArgs {
    #[command(subcommand)]
    command: PayoutsCommand,
}

#[derive(Subcommand)]
enum PayoutsCommand {
    /// List payouts that the bank has not finally answered, or that wait for you, oldest first,
    /// tab-separated: the state says whether one waits for the bank's hours and until when, is in
    /// a file, is with the bank, or waits for you
    List {
        /// Show the names of beneficiary and sender as they were written for the bank
        #[arg(long)]
        show_names: bool,
        #[command(flatten)]
        listing: ListingArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// List payouts on hold and why; `hundi decide ID approve|refuse` decides about one
    Held {
        #[command(flatten)]
        listing: ListingArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Write the inward remittances of a month above an amount as CSV, as cross-border wire
    /// transfer reports need them
    Inward {
        /// The month in India, such as 2026-10
        #[arg(long, value_name = "YYYY-MM")]
        month: String,
        /// Only payouts above this many rupees
        #[arg(long, value_name = "INR")]
        above: Option<String>,
        /// The mode whose payouts are written
        #[arg(long, value_enum, default_value = "live")]
        mode: ModeFlag,
        /// Write full account numbers and identity numbers, as the report needs them; mind where
        /// the file goes. --reason says why, and the audit log keeps it for each beneficiary
        #[arg(long)]
        show_account_numbers: bool,
        #[command(flatten)]
        by: ByArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

impl PayoutsArgs {
    pub async fn run(self) -> Result<(), String> {
        match self.command {
            PayoutsCommand::List { show_names, listing, database } => {
                payouts_list::list(show_names, listing, &database).await
            }
            PayoutsCommand::Held { listing, database } => list_held(listing, &database).await,
            PayoutsCommand::Inward { month, above, mode, show_account_numbers, by, database } => {
                let above = match above {
                    None => REPORTED_ABOVE,
                    Some(text) => Money::parse(&text, Currency::Inr)
                        .ok_or("--above is an amount in INR such as 500000.00")?,
                };
                let first = Day::parse(&format!("{month}-01"))
                    .filter(|_| month.len() == 7)
                    .ok_or_else(|| format!("{month:?} is no month such as 2026-10"))?;
                let asked = InwardReportQuery { first, above, mode: mode.mode() };
                inward(asked, show_account_numbers.then_some(&by), &database).await
            }
        }
    }
}

/// Both modes of every account, with the account's name.
async fn scopes(app: &AppState) -> Result<Vec<(String, Scope)>, String> {
    let accounts = app.store.read(Cost::Scan, |tx| Ok(keys::rows::accounts(tx)?)).await;
    let accounts = accounts.map_err(error_message)?;
    let numbered = (1..).zip(accounts);
    Ok(numbered
        .flat_map(|(number, (name, _))| {
            [Mode::Test, Mode::Live].map(|mode| (name.clone(), Scope::new(number, mode)))
        })
        .collect())
}

async fn list_held(listing: ListingArgs, database: &DatabaseArgs) -> Result<(), String> {
    let app = open_beside(database).await?;
    let columns = &["id", "account", "mode", "transfer", "amount", "held_for", "created"];
    let mut listing = ListingPrinter::begin(listing, columns)?;
    for (account, scope) in scopes(&app.state).await? {
        let mut after = [0; 16];
        loop {
            let read = move |tx: &mut dyn Tx| Ok(rows::on_hold(tx, scope, after, PAGE_ROWS)?);
            let found = app.state.store.read(Cost::Scan, read).await.map_err(error_message)?;
            for payout in &found {
                listing.row([
                    payout.id.to_string().into(),
                    account.as_str().into(),
                    scope.mode().as_str().into(),
                    payout.transfer_id.to_string().into(),
                    payout.amount.to_string().into(),
                    payout.held_for.map(|reason| reason.as_str()).into(),
                    ListingCell::Time(payout.created),
                ])?;
            }
            match found.last() {
                Some(last) => after = last.id.to_bytes(),
                None => break,
            }
        }
    }
    listing.end()
}

/// What `hundi payouts inward` is asked for.
struct InwardReportQuery {
    /// The first day of the month.
    first: Day,
    above: Money,
    mode: Mode,
}

const COLUMNS: &[&str] = &[
    "settled_at",
    "account",
    "payout_id",
    "transfer_id",
    "status",
    "amount_inr",
    "amount_usd",
    "utr",
    "method",
    "purpose_code",
    "sender_id",
    "sender_name",
    "sender_country",
    "sender_nationality",
    "sender_date_of_birth",
    "sender_address",
    "sender_identification",
    "beneficiary_id",
    "beneficiary_name",
    "beneficiary_account_number",
    "beneficiary_ifsc",
    "beneficiary_bank",
    "beneficiary_pan",
];

async fn inward(
    asked: InwardReportQuery,
    shows_account_numbers_to: Option<&ByArgs>,
    database: &DatabaseArgs,
) -> Result<(), String> {
    let app = open_beside(database).await?;
    let seen_by = match shows_account_numbers_to {
        None => None,
        Some(by) => {
            let by = by.decided_by()?;
            by.missing(asked.mode).map_or(Ok(()), |missing| Err(missing.to_owned()))?;
            // With no beneficiaries, this only checks that `by` may see account numbers. It comes
            // before anything is decrypted.
            record_numbers_seen(&app, Vec::new(), &by).await?;
            Some(by)
        }
    };
    let mut seen = BTreeSet::new();
    let (first, next) = asked.first.month();
    let (from, until) = (first.begins_at(), next.begins_at());
    let (above, shows_numbers) = (asked.above.units, seen_by.is_some());
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(COLUMNS).map_err(|error| error.to_string())?;
    let scopes = scopes(&app.state).await?;
    for (account, scope) in scopes.into_iter().filter(|(_, scope)| scope.mode() == asked.mode) {
        let mut after = [0; 16];
        loop {
            let (account, services) = (account.clone(), app.state.services.clone());
            let read = move |tx: &mut dyn Tx| {
                let found = rows::settled_above(tx, scope, from, until, above, after, PAGE_ROWS)?;
                let last = found.last().map(|payout| payout.id.to_bytes());
                let paid: Vec<_> = found.iter().map(|payout| payout.beneficiary_id).collect();
                let cells =
                    |payout: &Payout| inward_cells(tx, &services, &account, payout, shows_numbers);
                let lines = found.iter().map(cells).collect::<Result<Vec<_>, StoreError>>()?;
                Ok::<_, OperationError>((lines, paid, last))
            };
            let (lines, paid, last) =
                app.state.store.read(Cost::Scan, read).await.map_err(error_message)?;
            for line in &lines {
                csv.write_record(line).map_err(|error| error.to_string())?;
            }
            seen.extend(paid);
            match last {
                Some(last) => after = last,
                None => break,
            }
        }
    }
    if let Some(by) = seen_by {
        record_numbers_seen(&app, seen.into_iter().map(Id::any).collect(), &by).await?;
    }
    let bytes = csv.into_inner().map_err(|error| error.to_string())?;
    print(String::from_utf8_lossy(&bytes).trim_end())
}

/// The cells of one payout, in the order of [`COLUMNS`].
fn inward_cells(
    tx: &mut dyn Tx,
    services: &Services,
    account: &str,
    payout: &Payout,
    shows_numbers: bool,
) -> Result<Vec<String>, StoreError> {
    let lost = |what: &str| StoreError::Broken(format!("{} has lost its {what}", payout.id));
    let scope = payout.scope;
    let transfer =
        transfers::rows::find(tx, scope, payout.transfer_id)?.ok_or_else(|| lost("transfer"))?;
    let sender =
        senders::rows::find(tx, scope, transfer.sender_id)?.ok_or_else(|| lost("sender"))?;
    let beneficiary = beneficiaries::rows::find(tx, scope, payout.beneficiary_id)?
        .ok_or_else(|| lost("beneficiary"))?;
    let account_number = if shows_numbers {
        let opened = beneficiaries::open_account_number(&beneficiary, services)?;
        opened.expose_secret().to_owned()
    } else {
        format!("…{}", beneficiary.account_number_last4)
    };
    let question = senders::screening_question(&sender, services)?;
    let identification = sender.identification_type.map(|kind| match shows_numbers {
        true => format!("{} {}", kind.as_str(), question.identifiers.join(" ")),
        false => kind.as_str().to_owned(),
    });
    // The PAN (permanent account number) is a person's tax number in India.
    let pan = if shows_numbers {
        beneficiaries::open_kyc(&beneficiary, services)?.pan
    } else {
        beneficiary.pan_last4.as_ref().map(|last4| format!("…{last4}"))
    };
    let address = sender.address.as_ref().map(|address| {
        let parts = [
            Some(&address.line1),
            Some(&address.city),
            address.state.as_ref(),
            address.postal_code.as_ref(),
            Some(&address.country),
        ];
        parts.into_iter().flatten().cloned().collect::<Vec<_>>().join(", ")
    });
    let or_empty = |text: Option<String>| text.unwrap_or_default();
    Ok([
        payout.settled_at.map_or(String::new(), date_time),
        account.to_owned(),
        payout.id.to_string(),
        transfer.id.to_string(),
        payout.status.as_str().to_owned(),
        payout.amount.to_string(),
        transfer.amount.to_string(),
        or_empty(payout.unique_transaction_reference.clone()),
        payout.method.as_str().to_owned(),
        payout.purpose_code.clone(),
        sender.id.to_string(),
        sender.name.clone(),
        sender.country.clone(),
        or_empty(sender.nationality.clone()),
        or_empty(sender.date_of_birth.clone()),
        or_empty(address),
        or_empty(identification),
        beneficiary.id.to_string(),
        beneficiary.name.clone(),
        account_number,
        beneficiary.ifsc.clone(),
        or_empty(beneficiary.bank_name.clone()),
        or_empty(pan),
    ]
    .into_iter()
    .map(plain_cell)
    .collect())
}

/// Puts an apostrophe before a cell that a spreadsheet would take for a formula.
fn plain_cell(text: String) -> String {
    if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text }
}
