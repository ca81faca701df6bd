//! `hundi approvals`: what one person asked for and a second one approves.

use clap::{Args, Subcommand};

use super::listing::{ListingArgs, ListingCell, ListingPrinter, more_than};
use super::{ByArgs, DatabaseArgs, carry_out, error_message, open, open_beside};
use crate::operator::four_eyes;
use crate::operator::submit_waiting;
use crate::store::Cost;

/// Approve or reject what needs a second person
#[derive(Args)]
pub struct Approvals {
    #[command(subcommand)]
    command: ApprovalsCommand,
}

#[derive(Subcommand)]
enum ApprovalsCommand {
    /// List the requests, newest first
    List {
        #[command(flatten)]
        listing: ListingArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Approve a request of somebody else and carry it out
    Approve {
        /// The request's number, as the list shows it
        number: i64,
        #[command(flatten)]
        by: ByArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Reject a request, or withdraw your own
    Reject {
        /// The request's number, as the list shows it
        number: i64,
        #[command(flatten)]
        by: ByArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

/// The most requests that one listing shows.
const REQUESTS_MAX: usize = 1_000;
const COLUMNS: &[&str] = &[
    "request",
    "subject",
    "decision",
    "cause",
    "status",
    "requested_by",
    "decided_by",
    "reason",
    "requested_at",
    "decided_at",
];

impl Approvals {
    pub async fn run(self) -> Result<(), String> {
        match self.command {
            ApprovalsCommand::List { listing, database } => {
                let store = open(&database).await?;
                // One more than is shown tells whether there are more.
                let rows_max = REQUESTS_MAX as i64 + 1;
                let read =
                    store.read(Cost::Scan, move |tx| Ok(four_eyes::rows::newest(tx, rows_max)?));
                let requests = read.await.map_err(error_message)?;
                let is_more = requests.len() > REQUESTS_MAX;
                let mut listing = ListingPrinter::begin(listing, COLUMNS)?;
                for request in requests.into_iter().take(REQUESTS_MAX) {
                    listing.row([
                        ListingCell::Number(request.number),
                        request.subject.into(),
                        request.word.into(),
                        request.cause.as_str().into(),
                        request.status.as_str().into(),
                        request.requester.into(),
                        request.decider.into(),
                        request.reason.into(),
                        ListingCell::Time(request.requested_at),
                        ListingCell::time(request.decided_at),
                    ])?;
                }
                listing.end()?;
                if is_more { Err(more_than(REQUESTS_MAX)) } else { Ok(()) }
            }
            ApprovalsCommand::Approve { number, by, database } => {
                let app = open_beside(&database).await?;
                let person = by.proven(&app.state.store, &app.state.services).await?;
                let services = app.state.services.clone();
                carry_out(&app, move |tx, now| {
                    four_eyes::approve(tx, now, &services, number, &person)
                })
                .await?;
                // If the request ended a pause, the payouts that it held back go on.
                submit_waiting(&app.state.store).await.map_err(error_message)
            }
            ApprovalsCommand::Reject { number, by, database } => {
                let app = open_beside(&database).await?;
                let person = by.proven(&app.state.store, &app.state.services).await?;
                carry_out(&app, move |tx, now| four_eyes::reject(tx, now, number, &person)).await
            }
        }
    }
}
