//! `hundi pause` and `hundi resume`: the stop switch, and the operator's decision to continue with
//! a PostgreSQL database that went back in time.

use clap::{Args, ValueEnum};

use super::prove::ApproverArgs;
use super::{
    ByArgs, DatabaseArgs, carry_out, config, error_message, open, open_beside, print, record,
};
use crate::kernel::Now;
use crate::operator::four_eyes::number_of_account;
use crate::pauses::{self, Operation};
use crate::store::Tx;
use crate::{decisions, operator};

#[derive(Clone, Copy, ValueEnum)]
enum OperationFlag {
    /// No new quote locks
    Quotes,
    /// No new transfers
    Transfers,
    /// No new instructions to the bank; payouts whose file is in the outbox go on
    Payouts,
}

/// What `hundi resume` can resume.
#[derive(Clone, Copy, ValueEnum)]
enum ResumeFlag {
    /// Quote locks
    Quotes,
    /// Transfers
    Transfers,
    /// Instructions to the bank
    Payouts,
    /// Writes to a PostgreSQL database that went back in time; first take the steps in
    /// docs/postgresql.md
    Database,
}

impl OperationFlag {
    const fn operation(self) -> Operation {
        match self {
            OperationFlag::Quotes => Operation::Quotes,
            OperationFlag::Transfers => Operation::Transfers,
            OperationFlag::Payouts => Operation::Payouts,
        }
    }
}

/// Stop quotes, transfers or payouts, for everybody or one account
#[derive(Args)]
pub struct PauseArgs {
    /// What stops
    #[arg(value_enum)]
    operation: OperationFlag,
    /// Only this account
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    #[command(flatten)]
    by: ByArgs,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// Resume what was paused
#[derive(Args)]
pub struct Resume {
    /// What goes on
    #[arg(value_enum)]
    operation: ResumeFlag,
    /// The account, if only one was paused
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    #[command(flatten)]
    by: ByArgs,
    #[command(flatten)]
    approver: ApproverArgs,
    #[command(flatten)]
    database: DatabaseArgs,
}

impl PauseArgs {
    pub async fn run(self) -> Result<(), String> {
        let operation = self.operation.operation();
        let by = self.by.decided_by_for(&config(&self.database)?)?;
        let store = open(&self.database).await?;
        let account = self.account.clone();
        let subject = operator::pause_subject(operation, &account);
        let pause = move |tx: &mut dyn Tx, now: &mut Now| {
            let number = number_of_account(tx, account.as_deref())?;
            decisions::record(tx, now, &subject, "pause", &by)?;
            Ok(pauses::pause(tx, now, operation, number, &by)?)
        };
        store.write(pause).await.map_err(error_message)?;
        print(&format!("{} are paused for {}", operation.as_str(), whom(&self.account)))
    }
}

impl Resume {
    pub async fn run(self) -> Result<(), String> {
        let operation = match self.operation {
            ResumeFlag::Quotes => Operation::Quotes,
            ResumeFlag::Transfers => Operation::Transfers,
            ResumeFlag::Payouts => Operation::Payouts,
            ResumeFlag::Database => {
                return resume_database(&self.by, &self.approver, &self.database).await;
            }
        };
        let config = config(&self.database)?;
        self.by.decided_by_for(&config)?;
        let app = open_beside(&self.database).await?;
        let by = self.by.proven_if_four_eyes(&app).await?;
        let (account, services) = (self.account, app.state.services.clone());
        let resume = move |tx: &mut dyn Tx, now: &mut Now| {
            operator::resume(tx, now, &services.settings, operation, account.clone(), &by)
        };
        carry_out(&app, resume).await?;
        if operation == Operation::Payouts {
            operator::submit_waiting(&app.state.store).await.map_err(error_message)?;
        }
        Ok(())
    }
}

async fn resume_database(
    by: &ByArgs,
    approver: &ApproverArgs,
    arguments: &DatabaseArgs,
) -> Result<(), String> {
    let config = config(arguments)?;
    // The database takes no writes yet, so a request for a second person cannot be stored. So both
    // persons prove now who they are.
    let by = by.both_without_writing(approver, &config).await?;
    let resumed = tokio::task::spawn_blocking(move || config.database.resume());
    match resumed.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())? {
        true => {
            // Only now does the database take writes.
            record(&open(arguments).await?, "database".into(), "resume", by).await?;
            print("all nodes work with the database as it is now")
        }
        false => Err("this database is SQLite: only with PostgreSQL do nodes stop writing".into()),
    }
}

fn whom(account: &Option<String>) -> String {
    account.as_ref().map_or_else(|| "everybody".to_owned(), |name| format!("account {name:?}"))
}
