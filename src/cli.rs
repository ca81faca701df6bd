//! The command line; commands with more than one function have a file each below `cli/`.

mod addresses;
mod advice;
mod beneficiaries;
mod deposits;
mod doctor;
mod ifsc;
mod reconcile;
mod refunds;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tokio::sync::watch;

use crate::app::{self, ACCOUNT_DEFAULT, App, KeyRequest};
use crate::chains::address::Address;
use crate::config::{Config, Flags, LISTEN_DEFAULT};
use crate::http::{openapi, server};
use crate::kernel::id::kind;
use crate::kernel::seal::Sealer;
use crate::kernel::{AnyId, Clock, Id, Mode, Now, OperationError, StoreError};
use crate::keys::{self, Permissions};
use crate::operator::{self, Ruling};
use crate::rails::iso20022::simulator;
use crate::screening::hits;
use crate::screening::lists::Lists;
use crate::store::{Store, Tx};
use crate::store::{handle, postgres};

use crate::{backup, demo, secrets, verify_book};

#[derive(Parser)]
#[command(
    name = "hundi",
    version,
    about = "Pays Indian rupees into NRE bank accounts, funded by stablecoin deposits"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Args, Clone)]
struct Place {
    /// The database, as sqlite:PATH or postgres://USER@HOST/NAME [env: HUNDI_DATABASE] [default:
    /// sqlite:hundi.db]
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// A configuration file
    #[arg(long, value_name = "FILE", env = "HUNDI_CONFIG")]
    config: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Run the service
    Serve {
        #[command(flatten)]
        place: Place,
        /// Address to listen on [env: HUNDI_LISTEN] [default: 127.0.0.1:8080]
        #[arg(long, value_name = "ADDRESS")]
        listen: Option<String>,
        /// Let test webhooks go to loopback over http; on by default only while the service itself
        /// listens on loopback
        #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
        allow_loopback_webhooks: Option<bool>,
        /// Show Prometheus metrics at /metrics of the same address
        #[arg(long)]
        metrics: bool,
        /// What this node does: all, serve (requests alone) or work (everything else) [env:
        /// HUNDI_ROLE] [default: all]
        #[arg(long)]
        role: Option<String>,
    },
    /// Watch a payout happen, on a temporary database
    Demo,
    /// Say what live mode still needs, and try each part that is configured
    Doctor {
        #[command(flatten)]
        place: Place,
    },
    /// Manage API keys
    Keys {
        #[command(subcommand)]
        command: KeysCommand,
    },
    /// List, suspend and resume accounts
    Accounts {
        #[command(subcommand)]
        command: AccountsCommand,
    },
    /// Decide what only the operator may: about a sender, a beneficiary, a transfer under review,
    /// an unmatched deposit, or a payout
    Decide {
        /// The object's ID
        id: String,
        #[arg(value_enum)]
        ruling: RulingWord,
        /// Where a refund goes
        #[arg(long, value_name = "ADDRESS")]
        to: Option<String>,
        /// The bank's reference of a payout that it paid
        #[arg(long, value_name = "UTR")]
        reference: Option<String>,
        #[command(flatten)]
        place: Place,
    },
    /// Verify payment advices, and rotate the key that signs them
    Advice {
        #[command(subcommand)]
        command: advice::AdviceCommand,
    },
    /// List beneficiaries, and say what a look at an account by hand found
    Beneficiaries {
        #[command(subcommand)]
        command: beneficiaries::BeneficiariesCommand,
    },
    /// Show what is known of an IFSC
    Ifsc {
        code: String,
        #[command(flatten)]
        place: Place,
    },
    /// Write a directory of IFSCs from a CSV of branches, for the setting ifsc_file
    IfscPack(ifsc::Pack),
    /// Look at the sanctions lists and at what screening found
    Screening {
        #[command(subcommand)]
        command: ScreeningCommand,
    },
    /// Take over what a node of a real chain hid
    Deposits {
        #[command(subcommand)]
        command: deposits::DepositsCommand,
    },
    /// List refunds, and name the transactions that were sent for them on a real chain
    Refunds {
        #[command(subcommand)]
        command: refunds::RefundsCommand,
    },
    /// Export the deposit addresses, for sweeping them with a signer of one's own
    Addresses {
        #[command(subcommand)]
        command: addresses::AddressesCommand,
    },
    /// Verify the whole book and all status histories
    Check {
        #[command(flatten)]
        place: Place,
    },
    /// Compare the book with the bank's statements and with real chains, and name every difference;
    /// exit code 1 if there is one
    Reconcile(reconcile::Reconcile),
    /// Play a bank that reads and writes ISO 20022 files, to try the folders with
    BankSimulator {
        /// Where files for the bank lie
        #[arg(long, value_name = "DIR")]
        outbox: PathBuf,
        /// Where files from the bank go
        #[arg(long, value_name = "DIR")]
        inbox: PathBuf,
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Comma-separated list of delays, duplicates, reordering, stray_lines
        #[arg(long, default_value = "")]
        behaviour: String,
    },
    /// Write a consistent copy of the database, also while the service runs
    Backup {
        file: PathBuf,
        #[command(flatten)]
        place: Place,
    },
    /// Print the OpenAPI document
    Openapi,
}

#[derive(Clone, Copy, ValueEnum)]
enum ModeFlag {
    Test,
    Live,
}

impl ModeFlag {
    const fn mode(self) -> Mode {
        match self {
            ModeFlag::Test => Mode::Test,
            ModeFlag::Live => Mode::Live,
        }
    }
}

/// The word of a mode, as flags and tables have it.
const fn mode_word(mode: Mode) -> &'static str {
    if mode.is_live() { "live" } else { "test" }
}

#[derive(Clone, Copy, ValueEnum)]
enum RulingWord {
    Approve,
    Refuse,
    Review,
    Refund,
    Settle,
    Fail,
    Return,
}

#[derive(Subcommand)]
enum ScreeningCommand {
    /// List the hits that nobody decided about; `hundi decide ID approve|refuse` decides about the
    /// object
    Hits {
        #[command(flatten)]
        place: Place,
    },
    /// Read the configured lists, and say how old they are and whether live mode may start with
    /// them
    Lists {
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Subcommand)]
enum AccountsCommand {
    /// List the accounts
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Let no key of the account act
    Suspend {
        name: String,
        #[command(flatten)]
        place: Place,
    },
    /// Let the account's keys act again
    Resume {
        name: String,
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Subcommand)]
enum KeysCommand {
    /// Make a key; it is printed alone on the last line and stored nowhere
    Create {
        #[arg(long)]
        mode: ModeFlag,
        /// The account, made if it is missing
        #[arg(long, default_value = ACCOUNT_DEFAULT)]
        account: String,
        /// Comma-separated list such as transfers:read,transfers:write; all permissions without it
        #[arg(long, default_value = "")]
        permissions: String,
        /// When the key stops working: Unix seconds, or a number with s, m, h or d from now
        #[arg(long)]
        expires: Option<String>,
        #[command(flatten)]
        place: Place,
    },
    /// List the keys, without their secrets
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Revoke a key by its ID; it stops working within a second
    Revoke {
        id: String,
        #[command(flatten)]
        place: Place,
    },
}

/// Runs the command line and answers the exit code: 0 done, 1 failed; clap uses 2 for wrong usage.
pub fn main() -> ExitCode {
    start_log();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(run(Cli::parse().command)),
        Err(error) => Err(format!("the runtime cannot start: {error}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("hundi: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Structured logs on standard error; `HUNDI_LOG` sets the level: error, warn, info (default),
/// debug. A log that nobody takes any more is lost, and the service goes on.
fn start_log() {
    let level = std::env::var("HUNDI_LOG")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(tracing::Level::INFO);
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_target(false)
        .with_max_level(level)
        .with_writer(std::io::stderr)
        // Telling of a log that cannot be written goes the same way, and would end the task that
        // logged.
        .log_internal_errors(false)
        .init();
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn config(place: &Place) -> Result<Config, String> {
    let flags = Flags {
        config: place.config.clone(),
        database: place.database.clone(),
        ..Flags::default()
    };
    Config::read(&flags, &environment)
}

async fn run(command: Command) -> Result<(), String> {
    match command {
        Command::Serve { place, listen, allow_loopback_webhooks, metrics, role } => {
            let flags = Flags {
                config: place.config,
                database: place.database,
                role,
                listen,
                allow_loopback_webhooks,
                metrics,
            };
            serve(Config::read(&flags, &environment)?).await
        }
        Command::Demo => demo::run().await,
        Command::Doctor { place } => doctor::run(&place).await,
        Command::Keys { command } => run_keys(command).await,
        Command::Accounts { command } => run_accounts(command).await,
        Command::Screening { command } => screening(command).await,
        Command::Decide { id, ruling, to, reference, place } => {
            decide(&id, ruling, to, reference, &place).await
        }
        Command::Advice { command } => advice::run(command).await,
        Command::Beneficiaries { command } => beneficiaries::run(command).await,
        Command::Ifsc { code, place } => ifsc::show(&code, &config(&place)?),
        Command::IfscPack(pack) => ifsc::pack(&pack),
        Command::Deposits { command } => deposits::run(command).await,
        Command::Refunds { command } => refunds::run(command).await,
        Command::Addresses { command } => addresses::run(command).await,
        Command::Check { place } => run_check(&config(&place)?).await,
        Command::Reconcile(command) => reconcile::run(command).await,
        Command::BankSimulator { outbox, inbox, seed, behaviour } => {
            let seconds = || Clock::System.milliseconds() / 1000;
            let bank = simulator::SimulatedBank::new(
                seed,
                seconds(),
                simulator::parse_behaviour(&behaviour)?,
            );
            simulator::run(&outbox, &inbox, bank, &seconds)
        }
        Command::Backup { file, place } => backup::write(&config(&place)?.database, &file),
        Command::Openapi => {
            let document =
                openapi::document(&crate::routes::routes(), &format!("http://{LISTEN_DEFAULT}"));
            print(&serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?)
        }
    }
}

/// Prints a line. A closed pipe is not a fault of the command's.
fn print(text: &str) -> Result<(), String> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}

async fn serve(mut config: Config) -> Result<(), String> {
    let _lock = secrets::lock_database(&config.database)?;
    // The address first: a first key that nobody could read would be lost.
    let (listener, address) = server::bind(&config.listen).await?;
    config.bound_to(address);
    let app = App::open(&config, Clock::System).await?;
    warn_of_doubts(&config).await;
    app.check_chains().await?;
    app.check_bank()?;
    let first_key = first_key(&app.state.store).await?;
    print(&format!("listening on http://{address}"))?;
    if let Some(key) = first_key {
        print(&format!(
            "\nA new database: made the account \"{ACCOUNT_DEFAULT}\" and one test key, shown \
             only now:\n\n    {key}\n\n\
             Try:  curl http://{address}/v1/corridors -H 'Authorization: Bearer {key}'\n\
             Read: http://{address}/docs/\n\
             More keys: hundi keys create --mode test"
        ))?;
    }
    let (stop, stopping) = watch::channel(false);
    tokio::spawn(async move {
        wait_for_signal().await;
        tracing::info!("stopping: running requests finish, new ones are refused");
        let _ = stop.send(true);
        // Keeps the channel open until the process ends.
        std::future::pending::<()>().await;
    });
    app.run(listener, stopping).await;
    Ok(())
}

/// Tells of settings of the database's server that no connection can overrule.
async fn warn_of_doubts(config: &Config) {
    let database = config.database.clone();
    let server = tokio::task::spawn_blocking(move || database.server()).await;
    // A server that went away since is told of by those who need it.
    if let Ok(Ok(Some(server))) = server {
        server.doubts.iter().for_each(|doubt| tracing::warn!("{doubt}"));
    }
}

async fn wait_for_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
        _ => std::future::pending().await,
    }
}

/// Makes the default account and one test key on an empty database.
async fn first_key(store: &Store) -> Result<Option<String>, String> {
    store
        .write(|tx, now| {
            if keys::rows::accounts_count(tx)? > 0 {
                return Ok(None);
            }
            let request = KeyRequest {
                account: ACCOUNT_DEFAULT.into(),
                mode: Mode::Test,
                permissions: Permissions::All,
                expires_at: None,
            };
            Ok(Some(app::create_key(tx, now, &request)?))
        })
        .await
        .map_err(told)
}

fn told(failure: OperationError) -> String {
    match failure {
        OperationError::Refused(refusal) => refusal.to_string(),
        OperationError::Store(error) => error.to_string(),
    }
}

/// Opens a database that is there: where none is, the command was given another place than the
/// server.
async fn open(place: &Place) -> Result<Store, String> {
    let config = config(place)?;
    config.database.must_exist()?;
    open_or_make(&config).await
}

async fn open_or_make(config: &Config) -> Result<Store, String> {
    // A command needs few connections.
    let opened = Store::open_database(
        &config.database,
        Clock::System,
        handle::no_epilogue,
        postgres::CONNECTIONS_MIN,
    )
    .await;
    opened.map_err(|error| error.to_string())
}

/// The service of a database that is there, beside a running server.
async fn beside(place: &Place) -> Result<Arc<App>, String> {
    App::open_beside(&config(place)?, Clock::System).await
}

/// Unix seconds, or `30d` from now.
fn expiry(text: &str, now: i64) -> Result<i64, String> {
    let fault = || {
        format!(
            "{text:?} is no time: write Unix seconds, or a number with s, m, h or d such as 30d"
        )
    };
    let (digits, unit_seconds) = match text.chars().last() {
        Some('s') => (&text[..text.len() - 1], 1),
        Some('m') => (&text[..text.len() - 1], 60),
        Some('h') => (&text[..text.len() - 1], 3_600),
        Some('d') => (&text[..text.len() - 1], 86_400),
        _ => (text, 0),
    };
    let number: i64 = digits.parse().map_err(|_| fault())?;
    let at = if unit_seconds == 0 {
        Some(number)
    } else {
        number.checked_mul(unit_seconds).and_then(|seconds| now.checked_add(seconds))
    };
    match at.filter(|at| *at >= 0).ok_or_else(fault)? {
        at if at <= now => Err(format!(
            "{text:?} is in the past: write Unix seconds to come, or a number with s, m, h or d \
             such as 30d"
        )),
        at => Ok(at),
    }
}

async fn run_keys(command: KeysCommand) -> Result<(), String> {
    match command {
        KeysCommand::Create { mode, account, permissions, expires, place } => {
            const ACCOUNT_LENGTH_MAX: usize = 100;
            if account.is_empty()
                || account.chars().count() > ACCOUNT_LENGTH_MAX
                || account.chars().any(char::is_control)
            {
                return Err(format!(
                    "an account's name has 1 to {ACCOUNT_LENGTH_MAX} characters, none of them a \
                     control character"
                ));
            }
            let expires_at = expires
                .map(|text| expiry(&text, Clock::System.milliseconds() / 1000))
                .transpose()?;
            let request = KeyRequest {
                account,
                mode: mode.mode(),
                permissions: Permissions::parse(&permissions)?,
                expires_at,
            };
            let key = open_or_make(&config(&place)?)
                .await?
                .write(move |tx, now| Ok(app::create_key(tx, now, &request)?))
                .await
                .map_err(told)?;
            print(&key)
        }
        KeysCommand::List { place } => {
            let lines =
                open(&place).await?.write(|tx, _| Ok(keys::rows::list(tx)?)).await.map_err(told)?;
            print("id\taccount\tmode\tkey\tpermissions\tcreated\texpires\trevoked")?;
            for line in lines {
                let time = |at: Option<i64>| at.map_or_else(|| "-".to_owned(), |at| at.to_string());
                let mode = mode_word(line.mode);
                let permissions =
                    if line.permissions.is_empty() { "all" } else { &line.permissions };
                print(&format!(
                    "{}\t{}\t{mode}\t{}\t{permissions}\t{}\t{}\t{}",
                    line.id,
                    line.account,
                    line.hint,
                    line.created,
                    time(line.expires_at),
                    time(line.revoked_at)
                ))?;
            }
            Ok(())
        }
        KeysCommand::Revoke { id, place } => {
            let parsed: Id<kind::ApiKey> = Id::parse(&id)
                .ok_or_else(|| format!("{id:?} is no key's ID: `hundi keys list` shows them"))?;
            let revoked = open(&place)
                .await?
                .write(move |tx, now| Ok(keys::rows::revoke(tx, now, parsed)?))
                .await
                .map_err(told)?;
            if revoked {
                print(&format!("revoked {id}"))
            } else {
                Err(format!("there is no key {id} that is not revoked already"))
            }
        }
    }
}

async fn run_accounts(command: AccountsCommand) -> Result<(), String> {
    let (name, place, is_suspended) = match command {
        AccountsCommand::List { place } => {
            let accounts = open(&place)
                .await?
                .write(|tx, _| Ok(keys::rows::accounts(tx)?))
                .await
                .map_err(told)?;
            print("account\tstatus")?;
            return accounts.iter().try_for_each(|(name, is_suspended)| {
                print(&format!("{name}\t{}", if *is_suspended { "suspended" } else { "active" }))
            });
        }
        AccountsCommand::Suspend { name, place } => (name, place, true),
        AccountsCommand::Resume { name, place } => (name, place, false),
    };
    let wanted = name.clone();
    let is_found = open(&place)
        .await?
        .write(move |tx, _| Ok(keys::rows::suspend(tx, &wanted, is_suspended)?))
        .await
        .map_err(told)?;
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

/// Open hits that one listing shows.
const HITS_MAX: i64 = 1_000;

async fn screening(command: ScreeningCommand) -> Result<(), String> {
    match command {
        ScreeningCommand::Hits { place } => {
            let lines = open(&place)
                .await?
                .write(|tx, _| Ok(hits::open_lines(tx, HITS_MAX)?))
                .await
                .map_err(told)?;
            lines.iter().try_for_each(|line| print(line))?;
            if lines.len() as i64 == HITS_MAX {
                print(&format!("these are the oldest {HITS_MAX}: decide them to see more"))?;
            }
            Ok(())
        }
        ScreeningCommand::Lists { place } => {
            let settings = config(&place)?
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

async fn decide(
    id: &str,
    ruling: RulingWord,
    to: Option<String>,
    reference: Option<String>,
    place: &Place,
) -> Result<(), String> {
    let id = AnyId::parse(id).ok_or_else(|| format!("{id:?} is no object's ID"))?;
    let to = to
        .map(|text| {
            Address::parse(&text).map_err(|fault| format!("--to is not an address: {fault}"))
        })
        .transpose()?;
    let ruling = match ruling {
        RulingWord::Approve => Ruling::Approve,
        RulingWord::Refuse => Ruling::Refuse,
        RulingWord::Review => Ruling::Review,
        RulingWord::Refund => Ruling::Refund(to),
        RulingWord::Settle => {
            Ruling::Settle(reference.ok_or("settle needs the bank's reference: --reference UTR")?)
        }
        RulingWord::Fail => Ruling::Fail,
        RulingWord::Return => Ruling::Return,
    };
    rule(id, ruling, place).await
}

/// Carries out a ruling beside a running server.
async fn rule(id: AnyId, ruling: Ruling, place: &Place) -> Result<(), String> {
    let app = beside(place).await?;
    let services = app.state.services.clone();
    carry_out(&app, move |tx, now| operator::rule(tx, now, &services, id, &ruling)).await
}

/// Carries out what the operator decided, and prints what happened.
async fn carry_out<F>(app: &App, mut decision: F) -> Result<(), String>
where
    F: FnMut(&mut dyn Tx, &mut Now) -> Result<Result<String, String>, StoreError> + Send + 'static,
{
    // What is refused undoes what it wrote, so it leaves the transaction as an error.
    let decided = app
        .state
        .store
        .write(move |tx, now| {
            decision(tx, now)?.map_err(|message| StoreError::Broken(message).into())
        })
        .await;
    match decided {
        Ok(outcome) => print(&outcome),
        Err(OperationError::Store(StoreError::Broken(message))) => Err(message),
        Err(failure) => Err(told(failure)),
    }
}

async fn run_check(config: &Config) -> Result<(), String> {
    config.database.must_exist()?;
    let database = config.database.clone();
    let key = secrets::encryption_key_given(&config.database, config.encryption_key.as_ref())?;
    if key.is_none() {
        print("the encryption key was not checked: none was given")?;
    }
    let checked = tokio::task::spawn_blocking(move || {
        let mut report = verify_book::run(&database)?;
        if let Some(key) = key {
            report.faults.extend(verify_book::key_fault(&database, Sealer::new(&key).verifier())?);
        }
        Ok::<_, StoreError>(report)
    });
    let checked = checked.await.map_err(|error| error.to_string())?;
    let report = checked.map_err(|error| error.to_string())?;
    for line in &report.counts {
        print(line)?;
    }
    for fault in &report.faults {
        print(&format!("WRONG: {fault}"))?;
    }
    match report.faults.len() {
        0 => print("the book and all histories are right"),
        count => Err(format!("{count} faults were found")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        assert_eq!(expiry("30d", 100), Ok(100 + 30 * 86_400));
        assert_eq!(expiry("1790000000", 100), Ok(1_790_000_000));
        assert!(
            expiry("soon", 0).is_err()
                && expiry("", 0).is_err()
                && expiry("99999999999999999999d", 0).is_err()
        );
    }
}
