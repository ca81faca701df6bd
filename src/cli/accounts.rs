//! `hundi accounts`: lists, suspends and resumes accounts.

use clap::{Args, Subcommand};

use super::listing::{ListingArgs, ListingPrinter};
use super::{ByArgs, DatabaseArgs, config, error_message, open, print};
use crate::kernel::Now;
use crate::store::Tx;
use crate::{decisions, keys};

/// List, suspend and resume accounts
#[derive(Args)]
pub struct Accounts {
    #[command(subcommand)]
    command: AccountsCommand,
}

impl Accounts {
    pub async fn run(self) -> Result<(), String> {
        run(self.command).await
    }
}

#[derive(Subcommand)]
enum AccountsCommand {
    /// List the accounts
    List {
        #[command(flatten)]
        listing: ListingArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Let no key of the account act
    Suspend {
        name: String,
        #[command(flatten)]
        by: ByArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Let the account's keys act again
    Resume {
        name: String,
        #[command(flatten)]
        by: ByArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

async fn run(command: AccountsCommand) -> Result<(), String> {
    let (name, by, database, is_suspended) = match command {
        AccountsCommand::List { listing, database } => {
            let accounts = open(&database)
                .await?
                .write(|tx, _| Ok(keys::rows::accounts(tx)?))
                .await
                .map_err(error_message)?;
            let mut listing = ListingPrinter::begin(listing, &["account", "status"])?;
            for (name, is_suspended) in &accounts {
                let status = if *is_suspended { "suspended" } else { "active" };
                listing.row([name.as_str().into(), status.into()])?;
            }
            return listing.end();
        }
        AccountsCommand::Suspend { name, by, database } => (name, by, database, true),
        AccountsCommand::Resume { name, by, database } => (name, by, database, false),
    };
    let by = by.decided_by_for(&config(&database)?)?;
    let wanted = name.clone();
    let suspend = move |tx: &mut dyn Tx, now: &mut Now| {
        let is_found = keys::rows::suspend(tx, &wanted, is_suspended)?;
        if is_found {
            let decision = if is_suspended { "suspend" } else { "resume" };
            decisions::record(tx, now, &format!("account {wanted}"), decision, &by)?;
        }
        Ok(is_found)
    };
    let is_found = open(&database).await?.write(suspend).await.map_err(error_message)?;
    match (is_found, is_suspended) {
        (true, true) => {
            print(&format!("{name} is suspended; its keys stop working within a second"))
        }
        (true, false) => print(&format!("{name} is active")),
        (false, _) => {
            Err(format!("there is no account {name:?}: `hundi accounts list` shows them"))
        }
    }
}
