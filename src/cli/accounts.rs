//! `hundi accounts`: lists, suspends and resumes accounts.

use clap::{Args, Subcommand};

use super::listing::{ListingArgs, ListingPrinter};
use super::{ByArgs, DatabaseArgs, carry_out, config, error_message, open, open_beside, print};
use crate::kernel::Now;
use crate::store::{Cost, Tx};
use crate::{keys, operator};

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
    /// Suspend an account, so that none of its keys works
    Suspend {
        /// The account's name
        name: String,
        #[command(flatten)]
        by: ByArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Let the account's keys work again
    Resume {
        /// The account's name
        name: String,
        #[command(flatten)]
        by: ByArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

async fn run(command: AccountsCommand) -> Result<(), String> {
    match command {
        AccountsCommand::List { listing, database } => {
            let accounts = open(&database)
                .await?
                .read(Cost::Scan, |tx| Ok(keys::rows::accounts(tx)?))
                .await
                .map_err(error_message)?;
            let mut listing = ListingPrinter::begin(listing, &["account", "status"])?;
            for (name, is_suspended) in &accounts {
                let status = if *is_suspended { "suspended" } else { "active" };
                listing.row([name.as_str().into(), status.into()])?;
            }
            listing.end()
        }
        AccountsCommand::Suspend { name, by, database } => {
            let by = by.decided_by_for(&config(&database)?)?;
            let suspend = move |tx: &mut dyn Tx, now: &mut Now| {
                operator::suspend_account(tx, now, &name, &by)
            };
            print(&open(&database).await?.write(suspend).await.map_err(error_message)?)
        }
        AccountsCommand::Resume { name, by, database } => {
            by.decided_by_for(&config(&database)?)?;
            let app = open_beside(&database).await?;
            let by = by.proven_if_four_eyes(&app).await?;
            let services = app.state.services.clone();
            carry_out(&app, move |tx, now| {
                operator::resume_account(tx, now, &services.settings, &name, &by)
            })
            .await
        }
    }
}
