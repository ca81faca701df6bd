//! `hundi screening`: how old the sanctions lists are, and what waits for a decision.

use clap::{Args, Subcommand};

use super::{DatabaseArgs, config, error_message, open, print};
use crate::kernel::Clock;
use crate::screening::hits;
use crate::screening::lists::Lists;

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
    /// List the hits that nobody decided about; `hundi decide ID approve|refuse` decides about the
    /// object
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
            let lines = open(&database)
                .await?
                .write(|tx, _| Ok(hits::open_lines(tx, HITS_MAX)?))
                .await
                .map_err(error_message)?;
            lines.iter().try_for_each(|line| print(line))?;
            if lines.len() as i64 == HITS_MAX {
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
