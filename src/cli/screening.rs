//! `hundi screening`: how old the sanctions lists are, and what waits for a decision.

use clap::{Args, Subcommand};

use super::listing::{ListingArgs, ListingCell, ListingPrinter};
use super::{DatabaseArgs, config, error_message, open_beside};
use crate::kernel::Clock;
use crate::operator::open_hits::{OpenHit, open_hits};
use crate::screening::lists::Lists;
use crate::store::{Cost, Tx};

/// Look at the sanctions lists and at what screening found
#[derive(Args)]
pub struct ScreeningArgs {
    #[command(subcommand)]
    command: ScreeningCommand,
}

impl ScreeningArgs {
    pub async fn run(self) -> Result<(), String> {
        run(self.command).await
    }
}

#[derive(Subcommand)]
enum ScreeningCommand {
    /// List the hits that nobody decided about, with the subject's name and the listed one; `hundi
    /// decide ID approve|refuse` decides about the object
    Hits {
        #[command(flatten)]
        listing: ListingArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Read the configured lists, and say how old they are and whether live mode may start with
    /// them
    Lists {
        #[command(flatten)]
        listing: ListingArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

/// How many open hits one listing shows, oldest first.
const HITS_MAX: i64 = 1_000;

async fn run(command: ScreeningCommand) -> Result<(), String> {
    match command {
        ScreeningCommand::Hits { listing, database } => {
            let app = open_beside(&database).await?;
            let services = app.state.services.clone();
            let read = move |tx: &mut dyn Tx| Ok(open_hits(tx, &services, HITS_MAX)?);
            let hits = app.state.store.read(Cost::Scan, read).await.map_err(error_message)?;
            let columns = &[
                "subject",
                "account",
                "mode",
                "entry",
                "screening",
                "given_name",
                "listed_name",
                "evidence",
            ];
            let mut listing = ListingPrinter::begin(listing, columns)?;
            hits.iter().try_for_each(|hit| listing.row(cells(hit)))?;
            if hits.len() as i64 == HITS_MAX {
                let remark = format!("these are the oldest {HITS_MAX}: decide them to see more");
                return listing.end_with(&remark);
            }
            listing.end()
        }
        ScreeningCommand::Lists { listing, database } => {
            let settings = config(&database)?
                .screening
                .ok_or("no sanctions lists are configured: write a table [screening]")?;
            let lists = Lists::load(settings)?;
            let now = Clock::System.milliseconds() / 1000;
            let mut listing =
                ListingPrinter::begin(listing, &["list", "entries", "dated", "age_days"])?;
            for state in lists.states() {
                listing.row([
                    state.list.as_str().into(),
                    ListingCell::Number(state.entries_count as i64),
                    ListingCell::Time(state.dated_at),
                    ListingCell::Number((now - state.dated_at).max(0) / 86_400),
                ])?;
            }
            match lists.why_not_live(now) {
                None => listing.end_with("live mode may start with these lists"),
                Some(reason) => {
                    listing.end()?;
                    Err(format!("live mode may not start: {reason}"))
                }
            }
        }
    }
}

fn cells(OpenHit { account, hit, subject_names }: &OpenHit) -> [ListingCell; 8] {
    [
        hit.subject_id.to_string().into(),
        account.as_str().into(),
        hit.scope.mode().as_str().into(),
        format!("{} {}", hit.list, hit.entry_id).into(),
        hit.screening.as_str().into(),
        ListingCell::text(&subject_names.join("; at the bank: ")),
        hit.listed_name.clone().into(),
        hit.evidence.clone().into(),
    ]
}
