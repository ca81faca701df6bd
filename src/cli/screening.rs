//! `hundi screening`: how old the sanctions lists are, and what waits for a decision.

use clap::{Args, Subcommand};

use super::{DatabaseArgs, beside, config, error_message, print};
use crate::kernel::Clock;
use crate::operator::open_hits::{OpenHit, open_hits};
use crate::screening::lists::Lists;
use crate::store::{Cost, Tx};

/// Look at the sanctions lists and at what screening found
#[derive(Args)]
pub struct Screening {
    #[command(subcommand)]
    command: ScreeningCommand,
}

impl Screening {
    pub async fn run(self) -> Result<(), String> {
        run(self.command).await
    }
}

#[derive(Subcommand)]
enum ScreeningCommand {
    /// List the hits that nobody decided about, with the names of both sides; `hundi decide ID
    /// approve|refuse` decides about the object
    Hits {
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Read the configured lists, and say how old they are and whether live mode may start with
    /// them
    Lists {
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

/// Open hits that one listing shows.
const HITS_MAX: i64 = 1_000;

async fn run(command: ScreeningCommand) -> Result<(), String> {
    match command {
        ScreeningCommand::Hits { database } => {
            let app = beside(&database).await?;
            let services = app.state.services.clone();
            let read = move |tx: &mut dyn Tx| Ok(open_hits(tx, &services, HITS_MAX)?);
            let hits = app.state.store.read(Cost::Scan, read).await.map_err(error_message)?;
            print("subject\taccount\tmode\tentry\tscreening\tgiven_name\tlisted_name\tevidence")?;
            hits.iter().try_for_each(|hit| print(&line(hit)))?;
            if hits.len() as i64 == HITS_MAX {
                print(&format!("these are the oldest {HITS_MAX}: decide them to see more"))?;
            }
            Ok(())
        }
        ScreeningCommand::Lists { database } => {
            let settings = config(&database)?
                .screening
                .ok_or("no sanctions lists are configured: write a table [screening]")?;
            let lists = Lists::load(settings)?;
            let now = Clock::System.milliseconds() / 1000;
            for state in lists.states() {
                let days = (now - state.dated_at).max(0) / 86_400;
                print(&format!(
                    "{}  {} entries, {days} days old",
                    state.list.as_str(),
                    state.entries_count
                ))?;
            }
            match lists.why_not_live(now) {
                None => print("live mode may start with these lists"),
                Some(reason) => Err(format!("live mode may not start: {reason}")),
            }
        }
    }
}

fn line(OpenHit { account, hit, given_names }: &OpenHit) -> String {
    let given =
        if given_names.is_empty() { "-".to_owned() } else { given_names.join("; at the bank: ") };
    [
        hit.subject_id.to_string(),
        account.clone(),
        hit.scope.mode().as_str().to_owned(),
        format!("{} {}", hit.list, hit.entry_id),
        hit.screening.as_str().to_owned(),
        given,
        hit.listed_name.clone().unwrap_or_else(|| "-".to_owned()),
        hit.evidence.clone(),
    ]
    .join("\t")
}
