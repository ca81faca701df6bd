//! `hundi deposits`: credits a transaction that a node of a real chain hid from the service.

use clap::{Args, Subcommand};

use super::prove::ApproverArgs;
use super::{ByArgs, DatabaseArgs, ModeFlag, open_beside, print, record};
use crate::chain_following::credit::{self, Credited};
use crate::chains::blocks::Hash;
use crate::deposits::Deposit;
use crate::kernel::state::Status;

/// Credit a transaction that a node of a real chain hid
#[derive(Args)]
pub struct DepositsArgs {
    #[command(subcommand)]
    command: DepositsCommand,
}

impl DepositsArgs {
    pub async fn run(self) -> Result<(), String> {
        run(self.command).await
    }
}

#[derive(Subcommand)]
enum DepositsCommand {
    /// Credit a transaction that a comparison found on the chain but not in the book; every
    /// endpoint must show it
    Credit {
        /// The transaction's hash
        hash: String,
        /// The mode whose chain it is on
        #[arg(long, value_enum)]
        mode: ModeFlag,
        #[command(flatten)]
        by: ByArgs,
        #[command(flatten)]
        approver: ApproverArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

async fn run(command: DepositsCommand) -> Result<(), String> {
    let DepositsCommand::Credit { hash, mode, by, approver, database } = command;
    by.decided_by()?.missing(mode.mode()).map_or(Ok(()), |missing| Err(missing.to_owned()))?;
    let hash = Hash::parse(&hash)
        .ok_or_else(|| format!("{hash:?} is no transaction's hash: 64 hexadecimal digits"))?;
    let app = open_beside(&database).await?;
    // The amount is known only once the nodes have shown the transaction. So with
    // `four_eyes_above`, a second person is needed here whatever the amount.
    let by = by.both(&approver, &app).await?;
    // The decision is recorded before the nodes are asked, because nothing may be credited without
    // one. It stays recorded if nothing is credited.
    record(&app.state.store, hash.to_string(), "credit", by).await?;
    let credited = credit::credit(&app.state, mode.mode(), hash).await;
    let Credited { deposits, known_count, sweeps_count } =
        credited.map_err(|fault| fault.to_string())?;
    deposits.iter().try_for_each(|deposit| print(&line(deposit)))?;
    let new_count = deposits.len() - known_count;
    print(&format!(
        "{new_count} deposits and {sweeps_count} sweeps were taken over; {known_count} deposits \
         were in the book before"
    ))
}

fn line(deposit: &Deposit) -> String {
    let classification =
        deposit.classification.map_or("-", |classification| classification.as_str());
    [
        deposit.id.to_string(),
        deposit.transfer_id.to_string(),
        format!("{} {}", deposit.amount, deposit.asset),
        deposit.status.as_str().to_owned(),
        classification.to_owned(),
    ]
    .join("\t")
}
