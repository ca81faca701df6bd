//! `hundi refunds`: what is owed back, and the transactions that the operator sent for it.

use clap::{Args, Subcommand};

use super::listing::{ListingArgs, ListingCell, ListingPrinter};
use super::{ByArgs, DatabaseArgs, ModeFlag, carry_out, error_message, open, open_beside};
use crate::chains::address::ChainAddress;
use crate::kernel::id::kind;
use crate::kernel::page::{FilterValue, Page};
use crate::kernel::state::Status;
use crate::kernel::{Id, Mode, Scope};
use crate::keys;
use crate::operator;
use crate::refunds::state::{AddressDeclarer, RefundStatus, SentHashError};
use crate::refunds::{Refund, rows};
use crate::store::Cost;
use crate::store::Store;

/// How many refunds one transaction reads.
const PAGE_ROWS: i64 = 500;

/// List refunds, and name the transactions that were sent for them on a real chain
#[derive(Args)]
pub struct RefundsArgs {
    #[command(subcommand)]
    command: RefundsCommand,
}

impl RefundsArgs {
    pub async fn run(self) -> Result<(), String> {
        run(self.command).await
    }
}

#[derive(Subcommand)]
enum RefundsCommand {
    /// List refunds of every account, oldest first within each account and mode
    List {
        /// Only those in this status: requires_address, processing or completed
        #[arg(long)]
        status: Option<String>,
        /// Only those of this mode
        #[arg(long)]
        mode: Option<ModeFlag>,
        #[command(flatten)]
        listing: ListingArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Declare the address of a refund that has none, or that screening holds because of its
    /// address
    Address {
        /// The refund's ID
        id: String,
        /// The address on the refund's chain
        #[arg(long)]
        to: String,
        #[command(flatten)]
        by: ByArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Name the transaction in which a refund was sent; the service confirms it on the chain
    Complete {
        /// The refund's ID
        id: String,
        /// The transaction's hash; until it is confirmed, another hash can replace it
        #[arg(long)]
        hash: String,
        /// The transaction pays several refunds
        #[arg(long)]
        batch: bool,
        #[command(flatten)]
        by: ByArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Let a refund be sent that is on hold because the bank reported the payout as failed or
    /// returned, and later as paid
    Release {
        /// The refund's ID
        id: String,
        #[command(flatten)]
        by: ByArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

async fn run(command: RefundsCommand) -> Result<(), String> {
    match command {
        RefundsCommand::List { status, mode, listing, database } => {
            let status = status
                .map(|word| RefundStatus::parse(&word).ok_or_else(|| unknown_status(&word)))
                .transpose()?;
            list(&open(&database).await?, status, mode.map(ModeFlag::mode), listing).await
        }
        RefundsCommand::Complete { id, hash, batch, by, database } => {
            complete(&id, hash, batch, &by, &database).await
        }
        RefundsCommand::Address { id, to, by, database } => {
            declare_address(&id, &to, &by, &database).await
        }
        RefundsCommand::Release { id, by, database } => release(&id, &by, &database).await,
    }
}

fn unknown_status(word: &str) -> String {
    let words: Vec<&str> = RefundStatus::ALL.iter().map(|status| status.as_str()).collect();
    format!("--status is {word:?} and must be one of: {}", words.join(", "))
}

async fn list(
    store: &Store,
    status: Option<RefundStatus>,
    mode: Option<Mode>,
    listing: ListingArgs,
) -> Result<(), String> {
    let mut listing = ListingPrinter::begin(
        listing,
        &[
            "id",
            "mode",
            "transfer",
            "amount",
            "asset",
            "chain",
            "to_address",
            "status",
            "transaction",
            "fault",
            "held",
            "declared_by",
            "reason",
            "payer_address",
        ],
    )?;
    let accounts = store
        .read(Cost::Scan, |tx| Ok(keys::rows::accounts_count(tx)?))
        .await
        .map_err(error_message)?;
    let modes = [Mode::Test, Mode::Live]
        .into_iter()
        .filter(|known| mode.is_none_or(|wanted| wanted == *known));
    for scope in
        (1..=accounts).flat_map(|number| modes.clone().map(move |mode| Scope::new(number, mode)))
    {
        let mut page = Page {
            limit: PAGE_ROWS,
            filters: status
                .map(|status| ("status", FilterValue::Text(status.as_str().to_owned())))
                .into_iter()
                .collect(),
            ..Page::default()
        };
        loop {
            let asked = page.clone();
            let read = store.read(Cost::Scan, move |tx| {
                let (found, has_next) = rows::list(tx, scope, &asked)?;
                Ok((found.into_iter().map(rows::read).collect::<Result<Vec<_>, _>>()?, has_next))
            });
            let (refunds, has_next) = read.await.map_err(error_message)?;
            refunds.iter().try_for_each(|refund| listing.row(cells(refund)))?;
            match refunds.last() {
                Some(last) if has_next => page.starting_after = Some(last.id.to_bytes()),
                _ => break,
            }
        }
    }
    listing.end()
}

fn cells(refund: &Refund) -> [ListingCell; 14] {
    [
        refund.id.to_string().into(),
        refund.scope.mode().as_str().into(),
        refund.transfer_id.to_string().into(),
        refund.amount.to_string().into(),
        refund.asset.as_str().into(),
        refund.chain.as_str().into(),
        refund.to_address.map(|address| address.to_string()).into(),
        refund.status.as_str().into(),
        refund.transaction_hash.as_deref().or(refund.sent_transaction_hash.as_deref()).into(),
        refund.sent_fault.map(SentHashError::as_str).into(),
        held(refund).into(),
        refund.address_declared_by.map(AddressDeclarer::as_str).into(),
        refund.address_reason.as_deref().into(),
        refund.payer_address.map(|address| address.to_string()).into(),
    ]
}

/// Why a refund must not be sent: `screening` for its address, what the bank reported of its
/// payout, or both with `+` between them.
fn held(refund: &Refund) -> Option<String> {
    let screened = refund.is_held_by_screening.then(|| "screening".to_owned());
    let reasons: Vec<String> =
        screened.into_iter().chain(refund.bank_hold_reason.clone()).collect();
    (!reasons.is_empty()).then(|| reasons.join("+"))
}

async fn declare_address(
    id: &str,
    to: &str,
    by: &ByArgs,
    database: &DatabaseArgs,
) -> Result<(), String> {
    let id = refund_id(id)?;
    let address =
        ChainAddress::parse(to).map_err(|error| format!("--to is no address: {error}"))?;
    by.decided_by()?;
    let app = open_beside(database).await?;
    let by = by.proven_if_four_eyes(&app).await?;
    let services = app.state.services.clone();
    carry_out(&app, move |tx, now| {
        operator::set_refund_address(tx, now, &services, id, address, &by)
    })
    .await
}

fn refund_id(text: &str) -> Result<Id<kind::Refund>, String> {
    Id::parse(text)
        .ok_or_else(|| format!("{text:?} is no refund's ID: `hundi refunds list` shows them"))
}

async fn release(id: &str, by: &ByArgs, database: &DatabaseArgs) -> Result<(), String> {
    let id = refund_id(id)?;
    by.decided_by()?;
    let app = open_beside(database).await?;
    let by = by.proven_if_four_eyes(&app).await?;
    let services = app.state.services.clone();
    carry_out(&app, move |tx, now| operator::release_refund(tx, now, &services, id, &by)).await
}

async fn complete(
    id: &str,
    hash: String,
    is_batch: bool,
    by: &ByArgs,
    database: &DatabaseArgs,
) -> Result<(), String> {
    let id = refund_id(id)?;
    by.decided_by()?;
    let app = open_beside(database).await?;
    let by = by.proven_if_four_eyes(&app).await?;
    let services = app.state.services.clone();
    carry_out(&app, move |tx, now| {
        operator::mark_refund_sent(tx, now, &services, id, &hash, is_batch, &by)
    })
    .await
}
