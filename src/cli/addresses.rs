//! `hundi addresses`: the deposit addresses that were handed out, for an operator who sweeps them
//! with a signer elsewhere.

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

use super::{DatabaseArgs, ModeFlag, config, error_message, open, open_or_make, print};
use crate::app;
use crate::chains::derivation::derivation_path;
use crate::chains::pool;
use crate::kernel::id::kind;
use crate::kernel::{Id, Mode, Money, OperationError, Scope, StoreError};
use crate::keys;
use crate::secrets;
use crate::store::{Cost, Store, meta};
use crate::transfers::rows::{self, AddressLine};

/// Transfers whose addresses are read in one transaction.
const PAGE_ROWS: i64 = 1_000;

/// Export the deposit addresses, to sweep them with your own signer
#[derive(Args)]
pub struct AddressesArgs {
    #[command(subcommand)]
    command: AddressesCommand,
}

impl AddressesArgs {
    pub async fn run(self) -> Result<(), String> {
        run(self.command).await
    }
}

#[derive(Subcommand)]
enum AddressesCommand {
    /// Print every deposit address with its derivation path below the account key, what it
    /// received, and what left it: a row for each token contract
    Export {
        /// The mode whose addresses are printed; both without it
        #[arg(long)]
        mode: Option<ModeFlag>,
        /// How the rows are written
        #[arg(long, value_enum, default_value_t = OutputFormat::Csv)]
        format: OutputFormat,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// After a restore, before the first start: leave out addresses that may have been handed out
    /// since the backup
    Skip {
        /// How many indices to skip: more than were handed out since the backup; a node reserves up
        /// to 65 536 at once
        #[arg(long, default_value_t = 1_000_000,
            value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
        count: u32,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    Csv,
    Json,
}

/// One address as it is printed, in one token contract. No private key is printed, because the
/// service has none.
#[derive(Serialize)]
struct PrintedAddress<'a> {
    address: String,
    /// Below the account key. Above it, the path cannot be known from an xpub.
    derivation_path: String,
    derivation_index: i64,
    /// The BIP-32 fingerprint of the account key that the path begins at.
    account_key: String,
    mode: &'static str,
    account: &'a str,
    transfer_id: Id<kind::Transfer>,
    chain: String,
    asset: String,
    /// The contract that the caller was shown, or another one in which something came or went.
    token_contract: String,
    received: Money,
    swept: Money,
    /// `received` less `swept`, as the book knows them; the chain is not asked.
    balance: Money,
}

const CSV_HEAD: &str = "address,derivation_path,derivation_index,account_key,mode,account,transfer_id,chain,asset,token_contract,received,swept,balance";

impl<'a> PrintedAddress<'a> {
    fn new(
        line: AddressLine,
        mode: Mode,
        account: &'a str,
    ) -> Result<PrintedAddress<'a>, StoreError> {
        let index = u32::try_from(line.derivation_index)
            .map_err(|_| StoreError::Broken("a derivation index lies outside its range".into()))?;
        Ok(PrintedAddress {
            address: line.address.to_string(),
            derivation_path: derivation_path(index),
            derivation_index: line.derivation_index,
            account_key: format!("{:08x}", line.account_fingerprint),
            mode: mode.as_str(),
            account,
            transfer_id: line.transfer_id,
            chain: line.chain,
            asset: line.asset,
            token_contract: line.token_contract.to_string(),
            received: line.received,
            swept: line.swept,
            balance: line.received.minus(line.swept)?,
        })
    }

    fn csv(&self) -> String {
        let PrintedAddress {
            address,
            derivation_path,
            derivation_index,
            account_key,
            mode,
            account,
            transfer_id,
            chain,
            asset,
            token_contract,
            received,
            swept,
            balance,
        } = self;
        // Only the account's name is free text (RFC 4180, section 2).
        let account = format!("\"{}\"", account.replace('"', "\"\""));
        format!(
            "{address},{derivation_path},{derivation_index},{account_key},{mode},{account},{transfer_id},{chain},{asset},{token_contract},{received},{swept},{balance}"
        )
    }
}

async fn run(command: AddressesCommand) -> Result<(), String> {
    match command {
        AddressesCommand::Export { mode, format, database } => {
            export(&open(&database).await?, mode.map(ModeFlag::mode), format, &mut |text| {
                print(text)
            })
            .await
        }
        AddressesCommand::Skip { count, database } => skip(count, &database).await,
    }
}

/// Moves the address counter of every account key `count` further, also of keys that are no longer
/// configured.
async fn skip(count: u32, database: &DatabaseArgs) -> Result<(), String> {
    let config = config(database)?;
    config.database.must_exist()?;
    // A running server holds reserved addresses in memory, and would hand them out.
    let _lock = secrets::lock_database(&config.database)?;
    let asked = config.database.clone();
    let nodes = tokio::task::spawn_blocking(move || asked.nodes_running())
        .await
        .map_err(|error| error.to_string())?
        .map_err(|error| error.to_string())?;
    if let Some(seen) = nodes {
        return Err(format!(
            "a node runs on this database ({seen}): stop all nodes first; one that was killed is \
             gone after a few seconds"
        ));
    }
    let configured = app::address_index_names(&config);
    let store = open_or_make(&config).await?;
    let skipped = store.write(move |tx, _| {
        let mut names = meta::names(tx, "%address_index_next%")?;
        names.extend(
            configured.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>(),
        );
        names
            .into_iter()
            .map(|name| Ok((pool::skip(tx, &name, count)?, name)))
            .collect::<Result<Vec<_>, OperationError>>()
    });
    for (range, name) in skipped.await.map_err(error_message)? {
        print(&format!(
            "{name}: addresses from {} to {} are left out",
            range.start,
            i64::from(range.end) - 1
        ))?;
    }
    print(
        "addresses that were handed out before the backup stay with their transfers. If you \
         restored a backup, go on with step 3 under \"Restore\" in docs/postgresql.md before a \
         node starts; otherwise start the service",
    )
}

/// Prints the addresses of `mode`, or of both modes, with `tell`. Reads a page at a time.
async fn export(
    store: &Store,
    mode: Option<Mode>,
    format: OutputFormat,
    tell: &mut dyn FnMut(&str) -> Result<(), String>,
) -> Result<(), String> {
    let accounts =
        store.read(Cost::Scan, |tx| Ok(keys::rows::accounts(tx)?)).await.map_err(error_message)?;
    tell(if format == OutputFormat::Csv { CSV_HEAD } else { "[" })?;
    let mut is_first = true;
    for (number, (account, _)) in (1..).zip(&accounts) {
        for mode in [Mode::Test, Mode::Live]
            .into_iter()
            .filter(|known| mode.is_none_or(|wanted| wanted == *known))
        {
            let scope = Scope::new(number, mode);
            let mut after = None;
            loop {
                let page = store
                    .read(Cost::Scan, move |tx| Ok(rows::addresses(tx, scope, after, PAGE_ROWS)?))
                    .await
                    .map_err(error_message)?;
                let Some(last) = page.last() else { break };
                after = Some(last.transfer_id);
                let mut lines = Vec::with_capacity(page.len());
                for line in page {
                    let line = PrintedAddress::new(line, mode, account)
                        .map_err(|error| error.to_string())?;
                    lines.push(match format {
                        OutputFormat::Csv => line.csv(),
                        OutputFormat::Json => {
                            let comma = if is_first { "" } else { "," };
                            is_first = false;
                            format!(
                                "{comma}{}",
                                serde_json::to_string(&line).map_err(|error| error.to_string())?
                            )
                        }
                    });
                }
                tell(&lines.join("\n"))?;
            }
        }
    }
    if format == OutputFormat::Json { tell("]") } else { Ok(()) }
}
