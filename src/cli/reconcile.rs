//! `hundi reconcile`: the book against the bank's statements and against real chains, on demand.

use clap::Args;

use super::{
    ByArgs, DatabaseArgs, ModeFlag, carry_out, config, error_message, open, open_beside, print,
};
use crate::chain_following::audit::{self, AuditError, AuditExtent, AuditSummary};
use crate::chains::followed::FollowedChain;
use crate::config::Config;
use crate::kernel::{Id, Mode};
use crate::operator::{self, ExplainedDifference};
use crate::outbound::Client;
use crate::reconcile::{self, chain};
use crate::store::Cost;
use crate::tls::platform_roots;

/// Compare the book with the bank's statements and with real chains, and name every difference;
/// exit code 1 if there is one
#[derive(Args)]
pub struct Reconcile {
    /// The difference to explain: the ID of a statement's line or of a difference with a chain; for
    /// any other difference, the ID of its payout or statement
    #[arg(long, value_name = "ID")]
    accept: Option<String>,
    /// The payout that the accepted line belongs to; several times for a line that paid several
    #[arg(long, value_name = "PAYOUT", requires = "accept")]
    payout: Vec<String>,
    /// Why the difference is right; needed in live mode and once there are operators. Otherwise it
    /// may be left out if the ID is that of a line or of a difference with a chain
    #[arg(long, value_name = "TEXT", visible_alias = "note", requires = "accept")]
    reason: Option<String>,
    /// Who accepts it; needed in live mode and once there are operators
    #[arg(long, value_name = "NAME", env = "HUNDI_ACTOR", default_value = "")]
    actor: String,
    /// The kind of the difference, where the ID has several
    #[arg(long, value_name = "KIND", requires = "accept")]
    kind: Option<String>,
    /// The mode whose chain is compared; both without it
    #[arg(long, value_enum)]
    mode: Option<ModeFlag>,
    /// The first block to compare again, instead of those since the last comparison; balances are
    /// left out
    #[arg(long, value_name = "BLOCK", requires_all = ["to_block", "mode"])]
    from_block: Option<i64>,
    /// The last block to compare again
    #[arg(long, value_name = "BLOCK", requires = "from_block")]
    to_block: Option<i64>,
    /// Ask for the balance of every address that was ever handed out, not only of those that hold
    /// something or are new
    #[arg(long, conflicts_with = "from_block")]
    all_addresses: bool,
    #[command(flatten)]
    database: DatabaseArgs,
}

impl Reconcile {
    pub async fn run(self) -> Result<(), String> {
        reconcile_now(self).await
    }
}

async fn reconcile_now(command: Reconcile) -> Result<(), String> {
    let config = config(&command.database)?;
    let store = open(&command.database).await?;
    if let Some(text) = command.accept {
        let by = ByArgs { actor: command.actor, reason: command.reason.unwrap_or_default() };
        let asked = explained(text, &command.payout, command.kind)?;
        return explain(asked, &by, &config, &command.database).await;
    }
    let report =
        store.read(Cost::Scan, |tx| Ok(reconcile::run(tx)?)).await.map_err(error_message)?;
    for line in &report.summary {
        print(line)?;
    }
    let asked = AuditExtent {
        blocks: command.from_block.zip(command.to_block),
        all_addresses: command.all_addresses,
    };
    let mut differences_count = i64::try_from(report.differences_count).unwrap_or(i64::MAX);
    let mut differences = report.differences;
    let mut faults = Vec::new();
    for chain in chains(&config, command.mode.map(ModeFlag::mode))? {
        let (mode, name) = (chain.mode, chain.settings.name);
        let what = format!("{} on {}", mode.as_str(), name.as_str());
        match audit::run_once(&store, &chain, asked).await {
            Ok(compared) => print(&line(&what, &compared))?,
            // Until the service has followed the chain there is nothing to compare.
            Err(AuditError::NeverFollowed) => {
                print(&format!("{what}: {}", AuditError::NeverFollowed))?
            }
            Err(fault) => {
                faults.push(format!("{what} could not be compared, or not further: {fault}"))
            }
        }
        let (open, count) = store
            .read(Cost::Scan, move |tx| Ok(chain::open(tx, mode, name)?))
            .await
            .map_err(error_message)?;
        differences.extend(open);
        differences_count += count;
    }
    for difference in &differences {
        print(&difference.to_string())?;
    }
    let more = differences_count.saturating_sub(differences.len() as i64);
    if more > 0 {
        print(&format!("and {more} more, which are listed once these are cleared up"))?;
    }
    match differences_count {
        0 if faults.is_empty() => return print("no differences"),
        0 => {}
        count => faults.push(format!("{count} differences were found")),
    }
    Err(faults.join("; "))
}

/// The configured chains of one mode, or of both. `Err` if a mode was asked for that has none.
fn chains(config: &Config, mode: Option<Mode>) -> Result<Vec<FollowedChain>, String> {
    let client =
        Client::new(platform_roots()).map_err(|error| format!("TLS cannot be set up: {error}"))?;
    let configured = [(Mode::Test, &config.test_chain), (Mode::Live, &config.live_chain)];
    let wanted =
        configured.into_iter().filter(|(known, _)| mode.is_none_or(|wanted| wanted == *known));
    let chains: Vec<FollowedChain> = wanted
        .filter_map(|(mode, settings)| Some(FollowedChain::new(mode, settings.clone()?, &client)))
        .collect();
    match mode {
        Some(mode) if chains.is_empty() => {
            Err(format!("no chain is configured for {} mode", mode.as_str()))
        }
        _ => Ok(chains),
    }
}

fn line(what: &str, compared: &AuditSummary) -> String {
    let AuditSummary { blocks, movements_count, refunds_count, addresses_count, .. } = compared;
    let AuditSummary { expected, balance, .. } = compared;
    let blocks = blocks
        .map_or_else(|| "no new blocks".to_owned(), |(from, to)| format!("blocks {from} to {to}"));
    format!(
        "{what}: {blocks}, {movements_count} movements, {refunds_count} refunds; \
         {addresses_count} addresses should hold {expected} USDT and hold {balance} USDT"
    )
}

/// What the operator says about a difference.
fn explained(
    what: String,
    payouts: &[String],
    kind: Option<String>,
) -> Result<ExplainedDifference, String> {
    let payouts = payouts
        .iter()
        .map(|text| Id::parse(text).ok_or_else(|| format!("{text:?} is no payout's ID")))
        .collect::<Result<_, _>>()?;
    Ok(ExplainedDifference { what, payouts, kind })
}

async fn explain(
    asked: ExplainedDifference,
    by: &ByArgs,
    config: &Config,
    database: &DatabaseArgs,
) -> Result<(), String> {
    by.decided_by_for(config)?;
    let app = open_beside(database).await?;
    let by = by.proven_if_four_eyes(&app).await?;
    let services = app.state.services.clone();
    carry_out(&app, move |tx, now| operator::explain(tx, now, &services.settings, &asked, &by))
        .await
}
