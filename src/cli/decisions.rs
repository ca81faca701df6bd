//! `hundi decisions`: what the operator decided, who did and why.

use clap::Args;

use super::listing::{ListingArgs, ListingCell, ListingPrinter, more_than};
use super::{DatabaseArgs, error_message, open};
use crate::decisions::rows;
use crate::store::Cost;

/// List what the operator decided, who did and why
#[derive(Args)]
pub struct Decisions {
    /// What the decisions are about: an object's ID, or another text, such as a transaction's hash;
    /// all decisions without it
    subject: Option<String>,
    #[command(flatten)]
    listing: ListingArgs,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// The most decisions that one listing shows.
const DECISIONS_MAX: usize = 1_000;

impl Decisions {
    pub async fn run(self) -> Result<(), String> {
        let subject = self.subject;
        // One more than is shown tells whether there are more.
        let rows_max = DECISIONS_MAX as i64 + 1;
        let found = open(&self.database)
            .await?
            .read(Cost::Scan, move |tx| {
                Ok(match &subject {
                    Some(subject) => rows::of_subject(tx, subject, rows_max)?,
                    None => rows::newest(tx, rows_max)?,
                })
            })
            .await
            .map_err(error_message)?;
        let columns = &["decided_at", "subject", "decision", "actor", "reason", "approved_by"];
        let mut listing = ListingPrinter::begin(self.listing, columns)?;
        for decision in found.iter().take(DECISIONS_MAX) {
            listing.row([
                ListingCell::Time(decision.decided_at),
                decision.subject.to_string().into(),
                decision.decision.to_string().into(),
                ListingCell::text(decision.by.actor()),
                ListingCell::text(decision.by.reason()),
                ListingCell::text(decision.by.approved_by()),
            ])?;
        }
        listing.end()?;
        if found.len() > DECISIONS_MAX { Err(more_than(DECISIONS_MAX)) } else { Ok(()) }
    }
}
