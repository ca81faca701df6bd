//! The command line: the commands, one file each, and what they share. To add a command, write its
//! file and name it twice here: as a module, and in `commands!`.

mod accounts;
mod addresses;
mod approvals;
mod audit;
mod advice;
mod backup;
mod bank;
mod bank_simulator;
mod beneficiaries;
pub(crate) mod caller;
mod check;
mod decide;
mod decisions;
mod demo;
mod deposits;
mod doctor;
mod ifsc;
mod keys;
mod listen;
mod listing;
mod openapi;
mod operators;
mod pause;
mod payouts;
mod payouts_list;
mod prove;
mod quickstart;
mod reconcile;
mod refunds;
mod rotate_encryption;
mod screening;
mod serve;
mod trigger;
mod shell;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, LazyLock};

use clap::{Args, Parser, Subcommand, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};

use crate::app::App;
use crate::config::{self, Config, Flags, environment};
use crate::kernel::{AnyId, Clock, DecidedBy, Mode, Now, OperationError};
use crate::live;
use crate::operator::{self, OperatorDecision};
use crate::secrets;
use crate::store::{Store, Tx, handle, migrate, postgres};

/// "File size limit exceeded", on Linux for x86 and ARM (signal(7)).
const SIGXFSZ: i32 = 25;

/// Which build this is: its release, its commit, and the schema that it migrates a database to.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let (release, commit) = (env!("CARGO_PKG_VERSION"), env!("HUNDI_BUILD_COMMIT"));
    format!("{release} (commit {commit}, schema {})", migrate::schema_known())
});

#[derive(Parser)]
#[command(
    name = "hundi",
    version = VERSION.as_str(),
    about = "Pays Indian rupees into NRE bank accounts, funded by stablecoin deposits"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The commands, in the order in which `hundi --help` lists them. Each is a struct or an enum with
/// `async fn run(self) -> Result<(), String>`; its documentation is the help text.
macro_rules! commands {
    ($($name:ident($arguments:ty)),* $(,)?) => {
        #[derive(Subcommand)]
        enum Command { $($name($arguments)),* }

        async fn run(command: Command) -> Result<(), String> {
            match command { $(Command::$name(arguments) => arguments.run().await),* }
        }
    };
}

commands! {
    Serve(serve::Serve),
    Demo(demo::Demo),
    Listen(listen::Listen),
    Quickstart(quickstart::Quickstart),
    Trigger(trigger::Trigger),
    Doctor(doctor::Doctor),
    Keys(keys::Keys),
    Accounts(accounts::Accounts),
    Operators(operators::Operators),
    Approvals(approvals::Approvals),
    Decide(decide::Decide),
    Decisions(decisions::Decisions),
    Pause(pause::PauseArgs),
    Resume(pause::Resume),
    Advice(advice::AdviceArgs),
    Beneficiaries(beneficiaries::BeneficiariesArgs),
    Ifsc(ifsc::Show),
    IfscPack(ifsc::Pack),
    Screening(screening::ScreeningArgs),
    Deposits(deposits::DepositsArgs),
    Payouts(payouts::PayoutsArgs),
    Refunds(refunds::RefundsArgs),
    Addresses(addresses::AddressesArgs),
    Check(check::Check),
    Audit(audit::Audit),
    Reconcile(reconcile::Reconcile),
    Bank(bank::BankArgs),
    BankSimulator(bank_simulator::BankSimulator),
    Backup(backup::Backup),
    Openapi(openapi::Openapi),
    Man(shell::Man),
    Completions(shell::Completions),
}

/// Runs the command line and returns the exit code: 0 done, 1 failed; clap uses 2 for wrong usage.
pub fn main() -> ExitCode {
    // This comes before clap and the log, because both read variables.
    if let Err(message) = config::check_environment() {
        eprintln!("hundi: {message}");
        return ExitCode::FAILURE;
    }
    let command = Cli::parse().command;
    // The demo itself prints what happens; information in the log would come between its lines.
    start_log(match command {
        Command::Demo(_) => tracing::Level::WARN,
        _ => tracing::Level::INFO,
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(async {
            // Without a handler, SIGXFSZ ends the process at a write beyond the limit on file
            // sizes. With one, the write fails as on a full disk. The handler stays installed after
            // its receiver is dropped.
            drop(signal(SignalKind::from_raw(SIGXFSZ)));
            config::check_secret_files()?;
            run(command).await
        }),
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

/// Logs to standard error: as text on a terminal, otherwise as one JSON object per line.
/// `HUNDI_LOG` sets the level: error, warn, info, debug or trace. Another value prints a warning,
/// and the default is used. A line that cannot be written is dropped.
fn start_log(default: tracing::Level) {
    let level = match std::env::var("HUNDI_LOG").ok().filter(|text| !text.is_empty()) {
        None => default,
        Some(text) => match text.parse() {
            Ok(level) => level,
            Err(_) => {
                let used = default.as_str().to_lowercase();
                eprintln!(
                    "hundi: HUNDI_LOG is {text:?} and must be error, warn, info, debug or trace; \
                     {used} is used"
                );
                default
            }
        },
    };
    let log = tracing_subscriber::fmt()
        .with_target(false)
        .with_max_level(level)
        .with_writer(std::io::stderr)
        // Otherwise a line that cannot be written is reported on standard error too, which fails
        // as well and then panics in the task that logged.
        .log_internal_errors(false);
    if std::io::stderr().is_terminal() {
        log.compact().init();
    } else {
        log.json().flatten_event(true).init();
    }
}

/// The database that a command works on, by the same flags, file and variables as the server's.
#[derive(Args, Clone)]
pub struct DatabaseArgs {
    /// The database, as sqlite:PATH or postgres://USER@HOST/NAME [env: HUNDI_DATABASE] [default:
    /// sqlite:hundi.db]
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// A configuration file
    #[arg(long, value_name = "FILE", env = "HUNDI_CONFIG")]
    config: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum ModeFlag {
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

/// Who decides, and why. Every command that decides takes both.
#[derive(Args, Clone)]
pub struct ByArgs {
    /// Who decides; needed in live mode, and once there are operators
    #[arg(long, value_name = "NAME", env = "HUNDI_ACTOR", default_value = "")]
    actor: String,
    /// Why; needed whenever --actor is, and callers do not see it
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

impl ByArgs {
    /// The actor and the reason, as given. `Err` if one is too long or has a control character.
    /// Some commands call this only for that check, before they open anything.
    fn decided_by(&self) -> Result<DecidedBy, String> {
        DecidedBy::new(&self.actor, &self.reason)
    }

    /// Like [`ByArgs::decided_by`], for a decision about no single object: once live mode is
    /// configured, it needs an actor and a reason, as decisions in live mode do.
    fn decided_by_for(&self, config: &Config) -> Result<DecidedBy, String> {
        let by = self.decided_by()?;
        let mode = if live::is_configured(config) { Mode::Live } else { Mode::Test };
        by.missing(mode).map_or(Ok(by.clone()), |missing| Err(missing.to_owned()))
    }
}

/// Who manages keys or operators, and why. Both are optional until there are operators; if they are
/// given, they are recorded.
#[derive(Args, Clone)]
pub struct AdministratorArgs {
    /// An administrator, who does this; needed once there are operators, in both modes
    #[arg(long, value_name = "NAME", env = "HUNDI_ACTOR", default_value = "")]
    actor: String,
    /// Why; needed whenever --actor is, and callers do not see it
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

impl AdministratorArgs {
    fn decided_by(&self) -> Result<DecidedBy, String> {
        DecidedBy::new(&self.actor, &self.reason)
    }
}

/// The configuration as the server reads it.
fn config(database: &DatabaseArgs) -> Result<Config, String> {
    Config::read(&flags(database), &environment)
}

fn flags(database: &DatabaseArgs) -> Flags {
    Flags {
        config: database.config.clone(),
        database: database.database.clone(),
        ..Flags::default()
    }
}

/// Prints a line. A closed pipe is not a fault of the command's.
fn print(text: &str) -> Result<(), String> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// An error in words for the operator.
fn error_message(error: OperationError) -> String {
    error.to_string()
}

/// Opens an existing database. Fails if there is none: the path probably differs from the
/// server's.
async fn open(database: &DatabaseArgs) -> Result<Store, String> {
    let config = config(database)?;
    config.database.must_exist()?;
    open_or_make(&config).await
}

/// Opens the database, and makes it if there is none. `Err` if an encryption key is given that is
/// not the database's: then this is probably another database, and it must not be migrated.
async fn open_or_make(config: &Config) -> Result<Store, String> {
    let keys = secrets::existing_encryption_keys(&config.database, &config.encryption_keys)?;
    // A command needs few connections.
    let opened = Store::open_database(
        &config.database,
        Clock::System,
        handle::no_epilogue,
        postgres::CONNECTIONS_MIN,
        false,
        move |tx| match keys {
            Some(keys) => secrets::refuse_unfit_keys(tx, &keys.verifiers()),
            None => Ok(()),
        },
    )
    .await;
    opened.map_err(|error| error.to_string())
}

/// Opens the service beside a running server: see [`App::open_beside`].
async fn open_beside(database: &DatabaseArgs) -> Result<Arc<App>, String> {
    App::open_beside(&config(database)?, Clock::System).await
}

/// Decides about one object, beside a running server.
async fn decide(
    id: AnyId,
    decision: OperatorDecision,
    by: &ByArgs,
    database: &DatabaseArgs,
) -> Result<(), String> {
    by.decided_by()?;
    let app = open_beside(database).await?;
    let by = by.proven_if_four_eyes(&app).await?;
    let services = app.state.services.clone();
    carry_out(&app, move |tx, now| operator::decide(tx, now, &services, id, &decision, &by)).await
}

/// Runs a decision in one transaction, and prints what happened.
async fn carry_out<F>(app: &App, decision: F) -> Result<(), String>
where
    F: FnMut(&mut dyn Tx, &mut Now) -> Result<String, OperationError> + Send + 'static,
{
    print(&app.state.store.write(decision).await.map_err(error_message)?)
}

/// Records who sees the full account numbers of these beneficiaries, and why. Call it before
/// printing them.
async fn record_numbers_seen(app: &App, ids: Vec<AnyId>, by: &DecidedBy) -> Result<(), String> {
    let by = by.clone();
    let keep =
        move |tx: &mut dyn Tx, now: &mut Now| operator::record_numbers_seen(tx, now, &ids, &by);
    app.state.store.write(keep).await.map_err(error_message)
}

/// Records a decision. What it decides is carried out outside this transaction.
async fn record(
    store: &Store,
    subject: String,
    decision: &'static str,
    by: DecidedBy,
) -> Result<(), String> {
    let keep = move |tx: &mut dyn Tx, now: &mut Now| {
        crate::decisions::record(tx, now, &subject, decision, &by)
    };
    store.write(keep).await.map_err(error_message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::id::kind;
    use crate::staff::{self, Role};
    use crate::store::Cost;
    use crate::{audit, decisions, keys};
    use clap::CommandFactory;

    /// The commands without subcommands, by their full names.
    fn leaves<'c>(
        command: &'c clap::Command,
        name: &str,
        into: &mut Vec<(String, &'c clap::Command)>,
    ) {
        for inner in command.get_subcommands() {
            leaves(inner, &format!("{name} {}", inner.get_name()), into);
        }
        if !command.has_subcommands() {
            into.push((name.to_owned(), command));
        }
    }

    #[test]
    fn every_command_that_lists_has_json() {
        const NAMES: &[&str] = &["list", "lists", "held", "hits", "decisions"];
        let command = Cli::command();
        let mut all = Vec::new();
        leaves(&command, "hundi", &mut all);
        let lists = |command: &clap::Command| {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            about.starts_with("List ") || NAMES.contains(&command.get_name())
        };
        let listing: Vec<_> = all.iter().filter(|(_, command)| lists(command)).collect();
        assert!(listing.len() >= 10, "{} commands list", listing.len());
        for (name, command) in listing {
            let has_json = command.get_arguments().any(|argument| argument.get_id() == "json");
            assert!(has_json, "{name} lists and has no --json");
        }
    }

    /// Until there are operators, keys and operators are managed without an actor, also in live
    /// mode.
    #[test]
    fn help_says_when_a_command_needs_an_actor() {
        let command = Cli::command();
        let mut all = Vec::new();
        leaves(&command, "hundi", &mut all);
        for (name, command) in all {
            let actor = command.get_arguments().find(|argument| argument.get_id() == "actor");
            let Some(help) = actor.and_then(|actor| actor.get_help()) else { continue };
            let is_managing = ["hundi keys create", "hundi keys revoke", "hundi operators "]
                .iter()
                .any(|managing| name.starts_with(managing));
            assert_eq!(help.to_string().contains("in live mode"), !is_managing, "{name}: {help}");
        }
    }

    #[test]
    fn every_command_and_argument_has_a_help_text_without_a_full_stop() {
        fn walk(command: &clap::Command, name: &str, faults: &mut Vec<String>) {
            let mut judge = |what: String, text: Option<String>| {
                let text = text.unwrap_or_default();
                let is_good = text.starts_with(char::is_uppercase)
                    && text.ends_with(|last: char| last.is_alphanumeric() || "])*`".contains(last));
                if !is_good {
                    faults.push(format!("{what}: {text:?}"));
                }
            };
            judge(name.to_owned(), command.get_about().map(ToString::to_string));
            for argument in command.get_arguments() {
                let text = argument.get_help().map(ToString::to_string);
                judge(format!("{name} {}", argument.get_id()), text);
            }
            for inner in command.get_subcommands() {
                walk(inner, &format!("{name} {}", inner.get_name()), faults);
            }
        }
        let mut faults = Vec::new();
        walk(&Cli::command(), "hundi", &mut faults);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    /// Each command that takes `--actor`, with arguments, and whether the actor has to be an
    /// administrator. The objects named by an ID do not exist: the person is judged before the
    /// object is looked for.
    const DECIDING: &[(&str, bool)] = &[
        ("keys create --mode test", true),
        ("keys rotate-encryption", true),
        ("keys revoke API_KEY", true),
        ("advice rotate-key --mode test", true),
        ("accounts suspend default", false),
        ("accounts resume default", false),
        ("operators create ravi --role viewer", true),
        ("operators disable ravi", true),
        ("operators link ravi --issuer https://login.example.com --subject 7", true),
        ("operators unlink ravi", true),
        ("operators reset ravi", true),
        ("approvals approve 1", false),
        ("approvals reject 1", false),
        ("decide SENDER approve", false),
        ("pause quotes", false),
        ("resume quotes", false),
        ("resume database", false),
        ("beneficiaries list --show-account-numbers", false),
        ("beneficiaries review BENEFICIARY --match", false),
        ("deposits credit HASH --mode test", false),
        ("payouts inward --month 2026-10 --mode test --show-account-numbers", false),
        ("refunds address REFUND --to TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC", false),
        ("refunds complete REFUND --hash HASH", false),
        ("refunds release REFUND", false),
        ("reconcile --accept DIFFERENCE", false),
    ];

    /// Once there are operators, each decision on the command line names one of them and a reason,
    /// in test mode too. Only an administrator manages keys and operators. A refused command
    /// records nothing.
    #[tokio::test(flavor = "multi_thread")]
    async fn every_command_that_decides_takes_a_person_who_may_and_a_reason() {
        let command = Cli::command();
        let mut all = Vec::new();
        leaves(&command, "hundi", &mut all);
        let named = |command: &clap::Command| {
            command.get_arguments().any(|argument| argument.get_id() == "actor")
        };
        for (name, _) in all.iter().filter(|(_, command)| named(command)) {
            let words = name.trim_start_matches("hundi ");
            assert!(DECIDING.iter().any(|(line, _)| line.starts_with(words)), "{name} is missing");
        }
        let folder = std::env::temp_dir().join(format!("hundi-deciding-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("test.db");
        let database = format!("sqlite:{}", path.display());
        let store = Store::open(&path, Clock::System, handle::no_epilogue).unwrap();
        let made = store.write(|tx, now| {
            let by = DecidedBy::default();
            keys::rows::ensure_account(tx, now, "default")?;
            let nobody = now.mint::<kind::Sender>().to_string();
            let ids = [
                ("SENDER", nobody),
                ("BENEFICIARY", now.mint::<kind::Beneficiary>().to_string()),
                ("REFUND", now.mint::<kind::Refund>().to_string()),
                ("API_KEY", now.mint::<kind::ApiKey>().to_string()),
                ("DIFFERENCE", now.mint::<kind::Request>().to_string()),
                ("HASH", "ab".repeat(32)),
            ];
            for role in Role::ALL {
                staff::create(tx, now, role.as_str(), *role, "no password", &by)?;
            }
            Ok(ids)
        });
        let ids = made.await.unwrap();
        let kept = async || {
            let read = store.read(Cost::Scan, |tx| {
                Ok((audit::rows::tail(tx)?, decisions::rows::newest(tx, 100)?.len()))
            });
            read.await.unwrap()
        };
        let run = async |line: &str, by: &[&str]| {
            let mut words = vec!["hundi"];
            words.extend(line.split(' ').map(|word| {
                ids.iter().find(|(name, _)| *name == word).map_or(word, |(_, id)| id.as_str())
            }));
            words.extend(by);
            words.extend(["--database", database.as_str()]);
            let parsed = Cli::try_parse_from(words).unwrap_or_else(|fault| panic!("{fault}"));
            super::run(parsed.command).await
        };
        for (line, takes_admin) in DECIDING {
            let before = kept().await;
            let mut wrong = vec![vec!["--actor", ""], vec!["--actor", "", "--reason", "a test"]];
            // These read a password first, which nobody types here.
            let asks_password = line.starts_with("approvals");
            if !asks_password {
                wrong.push(vec!["--actor", "admin"]);
                wrong.push(vec!["--actor", "nobody", "--reason", "a test"]);
                wrong.push(vec!["--actor", "viewer", "--reason", "a test"]);
            }
            if *takes_admin {
                wrong.push(vec!["--actor", "approver", "--reason", "a test"]);
            }
            for by in &wrong {
                let refused = run(line, by).await;
                let told = refused.expect_err(&format!("{line} {by:?} was taken"));
                assert!(
                    told.contains("--actor NAME") || told.contains("--reason TEXT"),
                    "{line} {by:?}: {told}"
                );
            }
            assert_eq!(kept().await, before, "{line}");
            if asks_password {
                continue;
            }
            let name = if *takes_admin { "admin" } else { "operator" };
            if let Err(told) = run(line, &["--actor", name, "--reason", "a test"]).await {
                assert!(!told.contains("--actor NAME"), "{line}: {told}");
            }
        }
        // Without operators, a command needs no actor.
        let (path, database) = (folder.join("first.db"), folder.join("first.db"));
        drop(Store::open(&path, Clock::System, handle::no_epilogue).unwrap());
        let database = format!("sqlite:{}", database.display());
        for line in ["keys create --mode test", "operators create asha --role admin"] {
            let words = line.split(' ').chain(["--database", database.as_str()]);
            let words = std::iter::once("hundi").chain(words);
            let parsed = Cli::try_parse_from(words).unwrap_or_else(|fault| panic!("{fault}"));
            super::run(parsed.command).await.unwrap();
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
