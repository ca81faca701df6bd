//! `hundi beneficiaries`: lists beneficiaries, and records the result of checking an account by
//! hand.

use clap::{Args, Subcommand};
use secrecy::ExposeSecret;

use super::listing::{ListingArgs, ListingCell, ListingPrinter, more_than};
use super::{
    ByArgs, DatabaseArgs, config, decide, error_message, open_beside, record_numbers_seen,
};
use crate::account_verification::{AccountAnswer, NameMatch};
use crate::beneficiaries::state::BeneficiaryStatus;
use crate::beneficiaries::{self, Beneficiary};
use crate::kernel::page::{FilterValue, Page};
use crate::kernel::state::Status;
use crate::kernel::{AnyId, Mode, OperationError, Scope};
use crate::keys;
use crate::operator::OperatorDecision;
use crate::store::{Cost, Tx};

/// The most beneficiaries that one call lists.
const LISTED_MAX: usize = 1_000;

/// List beneficiaries, and record the result of checking an account by hand
#[derive(Args)]
pub struct BeneficiariesArgs {
    #[command(subcommand)]
    command: BeneficiariesCommand,
}

impl BeneficiariesArgs {
    pub async fn run(self) -> Result<(), String> {
        run(self.command).await
    }
}

#[derive(Subcommand)]
enum BeneficiariesCommand {
    /// List beneficiaries of every account, oldest first within each account and mode,
    /// tab-separated
    List {
        /// Only those in this status
        #[arg(long, value_name = "STATUS")]
        status: Option<String>,
        /// Show full account numbers, for checking them at the bank; mind who sees your screen.
        /// --reason says why, and the audit log keeps it for each beneficiary
        #[arg(long)]
        show_account_numbers: bool,
        #[command(flatten)]
        by: ByArgs,
        #[command(flatten)]
        listing: ListingArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Record the result of checking the account of a beneficiary in verification
    Review {
        /// The beneficiary's ID
        id: String,
        #[command(flatten)]
        finding: AccountFinding,
        #[command(flatten)]
        by: ByArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

#[derive(Args)]
#[group(required = true, multiple = false)]
pub(super) struct AccountFinding {
    /// An NRE account under this name: the beneficiary becomes active
    #[arg(long = "match")]
    is_match: bool,
    /// The bank's name for it agrees only in part: the caller is asked for the right one
    #[arg(long)]
    partial: bool,
    /// The bank holds it under another name: the caller is asked for the right one
    #[arg(long)]
    mismatch: bool,
    /// Not an NRE account: rejected
    #[arg(long)]
    not_nre: bool,
    /// No such account, or a closed one: rejected
    #[arg(long)]
    invalid: bool,
}

impl AccountFinding {
    fn answer(&self) -> AccountAnswer {
        match self {
            AccountFinding { is_match: true, .. } => AccountAnswer::Passed,
            AccountFinding { partial: true, .. } => AccountAnswer::Name(NameMatch::Partial),
            AccountFinding { mismatch: true, .. } => AccountAnswer::Name(NameMatch::Mismatch),
            AccountFinding { not_nre: true, .. } => AccountAnswer::AccountNotNre,
            AccountFinding { .. } => AccountAnswer::AccountInvalid,
        }
    }
}

async fn run(command: BeneficiariesCommand) -> Result<(), String> {
    match command {
        BeneficiariesCommand::List { status, show_account_numbers, by, listing, database } => {
            let shown_to = show_account_numbers.then_some(&by);
            list(status.as_deref(), shown_to, listing, &database).await
        }
        BeneficiariesCommand::Review { id, finding, by, database } => {
            let id = AnyId::parse(&id).ok_or_else(|| {
                format!("{id:?} is no beneficiary's ID: `hundi beneficiaries list` shows them")
            })?;
            decide(id, OperatorDecision::Check(finding.answer()), &by, &database).await
        }
    }
}

/// `shows_account_numbers_to` is the person who sees full account numbers; without one, only the
/// last four characters are printed. The audit log gets an entry for each beneficiary before its
/// number is printed.
async fn list(
    status: Option<&str>,
    shows_account_numbers_to: Option<&ByArgs>,
    listing: ListingArgs,
    database: &DatabaseArgs,
) -> Result<(), String> {
    let words: Vec<&str> = BeneficiaryStatus::ALL.iter().map(|status| status.as_str()).collect();
    let status = status
        .map(|text| {
            BeneficiaryStatus::parse(text)
                .ok_or_else(|| format!("{text:?} is no status; there are: {}", words.join(", ")))
        })
        .transpose()?;
    let app = open_beside(database).await?;
    let read = app.state.store.read(Cost::Scan, move |tx| find(tx, status));
    let found = read.await.map_err(error_message)?;
    if let Some(by) = shows_account_numbers_to {
        let by = by.decided_by_for(&config(database)?)?;
        let seen = found.iter().take(LISTED_MAX).map(|(_, beneficiary)| beneficiary.id.any());
        record_numbers_seen(&app, seen.collect(), &by).await?;
    }
    let columns = &[
        "id",
        "account",
        "mode",
        "status",
        "reason",
        "created",
        "name",
        "account_number",
        "ifsc",
        "bank",
    ];
    let mut listing = ListingPrinter::begin(listing, columns)?;
    for (account, beneficiary) in found.iter().take(LISTED_MAX) {
        let account_number = if shows_account_numbers_to.is_some() {
            let opened = beneficiaries::open_account_number(beneficiary, &app.state.services)
                .map_err(|error| error.to_string())?;
            opened.expose_secret().to_owned()
        } else {
            format!("…{}", beneficiary.account_number_last4)
        };
        listing.row([
            beneficiary.id.to_string().into(),
            account.as_str().into(),
            beneficiary.scope.mode().as_str().into(),
            beneficiary.status.as_str().into(),
            beneficiary.payouts_disabled_reason.map(|reason| reason.as_str()).into(),
            ListingCell::Time(beneficiary.created),
            beneficiary.name.as_str().into(),
            account_number.into(),
            beneficiary.ifsc.as_str().into(),
            beneficiary.bank_name.as_deref().into(),
        ])?;
    }
    listing.end()?;
    if found.len() > LISTED_MAX {
        Err(format!("{}: name a --status", more_than(LISTED_MAX)))
    } else {
        Ok(())
    }
}

/// Reads one more than is listed, which shows whether the list was cut.
fn find(
    tx: &mut dyn Tx,
    status: Option<BeneficiaryStatus>,
) -> Result<Vec<(String, Beneficiary)>, OperationError> {
    let filters: Vec<_> = status
        .map(|status| ("status", FilterValue::Text(status.as_str().into())))
        .into_iter()
        .collect();
    let mut found = Vec::new();
    for (number, (account, _)) in (1..).zip(keys::rows::accounts(tx)?) {
        for mode in [Mode::Test, Mode::Live] {
            let limit = (LISTED_MAX + 1).saturating_sub(found.len()) as i64;
            let page = Page { limit, filters: filters.clone(), ..Page::default() };
            let (rows, _) = beneficiaries::rows::list(tx, Scope::new(number, mode), &page)?;
            for row in rows {
                found.push((account.clone(), beneficiaries::rows::read(row)?));
            }
        }
    }
    Ok(found)
}
