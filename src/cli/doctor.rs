//! `hundi doctor`: what live mode needs, what of it is configured, and whether each part answers.

use std::path::Path;

use clap::Args;
use jiff::tz::TimeZone;

use super::listing::time_text;
use super::{DatabaseArgs, environment, flags, print};
use crate::account_verification::ChecksTable;
use crate::chains::followed::FollowedChain;
use crate::chains::settings::ChainSettings;
use crate::config::Config;
use crate::console::openid::OpenId;
use crate::console::openid::settings::{OidcSettings, SECOND_FACTOR_NEEDED};
use crate::disk::{self, WatchedFolder};
use crate::ifsc;
use crate::kernel::{Clock, Mode, StoreError};
use crate::live;
use crate::outbound::Client;
use crate::pauses::{self, Pause};
use crate::rails::files::folders::{self, Folders};
use crate::rails::files::rows as journal;
use crate::rates::RateRefusal;
use crate::rates::http::HttpRates;
use crate::screening::lists::Lists;
use crate::secrets;
use crate::store::{Database, migrate};
use crate::tls::platform_roots;
use crate::verify_book;

/// Say what live mode still needs, and try each part that is configured
#[derive(Args)]
pub struct Doctor {
    #[command(flatten)]
    database: DatabaseArgs,
}

impl Doctor {
    pub async fn run(self) -> Result<(), String> {
        examine(&self.database).await
    }
}

/// What is wrong with a part that is configured.
enum PartError {
    /// The service refuses to start with it.
    Stops(String),
    /// The service starts, but what needs the part is refused or not safe.
    Fails(String),
}

/// Tries every part and prints a table. `Err`, and so exit code 1, if a part has a fault or some
/// tables of live mode are missing. If all of them are missing, only test mode is set up: no error.
async fn examine(database: &DatabaseArgs) -> Result<(), String> {
    let read = Config::read_parts(&flags(database), &environment);
    let client =
        Client::new(platform_roots()).map_err(|error| format!("TLS cannot be set up: {error}"))?;
    let (mut missing_count, mut stops_count, mut fails_count) = (0, 0, 0);
    let mut show = |table: &str, outcome: Option<Result<String, PartError>>, missing: &str| {
        let (state, what) = match outcome {
            None => ("missing", format!("write the table [{table}]: {missing}")),
            Some(Ok(what)) => ("ok", what),
            Some(Err(PartError::Stops(fault))) => ("stops", fault),
            Some(Err(PartError::Fails(fault))) => ("fails", fault),
        };
        missing_count += usize::from(state == "missing");
        stops_count += usize::from(state == "stops");
        fails_count += usize::from(state == "fails");
        print(&format!("{table:<12} {state:<12} {what}"))
    };
    print("part         state        what")?;
    let (config, table_faults) = match read {
        Ok(read) => read,
        Err(fault) => {
            show("settings", Some(Err(PartError::Stops(fault))), "")?;
            return Err("the service does not start: its settings cannot be read".into());
        }
    };
    let table_fault = |table: &str| {
        table_faults.iter().find(|(known, _)| *known == table).map(|(_, fault)| fault.clone())
    };
    // What every start needs is shown only if it has a fault.
    let mut is_database_shown = false;
    for (part, fault) in start_faults(&config).await {
        is_database_shown |= part == "database";
        show(part, Some(Err(PartError::Stops(fault))), "")?;
    }
    if let Database::Postgres(_) = &config.database
        && !is_database_shown
    {
        show("database", Some(server(config.database.clone()).await), "")?;
    }
    for watched in config.watched_folders() {
        show("disk", Some(has_space(&watched)), "")?;
    }
    for part in live::parts(&config) {
        let outcome = match (table_fault(part.table), part.is_configured) {
            (Some(fault), _) => Some(Err(PartError::Stops(fault))),
            (None, false) => None,
            (None, true) => Some(try_part(part.table, &config, &client).await.and_then(|what| {
                part.fault.map_or(Ok(what), |fault| Err(PartError::Fails(fault)))
            })),
        };
        show(part.table, outcome, part.purpose)?;
    }
    if let Some(bank) = &config.test_bank {
        show("test_bank", Some(writable(&bank.folder).map_err(PartError::Stops)), "")?;
    }
    for table in ["test_bank", "test_chain"] {
        if let Some(fault) = table_fault(table) {
            show(table, Some(Err(PartError::Stops(fault))), "")?;
        }
    }
    if config.is_public_url_set
        && let Err(fault) = check_host(&config.settings.public_url).await
    {
        show("public_url", Some(Err(fault)), "")?;
    }
    if let Some(chain) = &config.test_chain {
        show(
            "test_chain",
            Some(check_chain(&FollowedChain::new(Mode::Test, chain.clone(), &client)).await),
            "",
        )?;
    }
    if let Some(oidc) = config.console.as_ref().and_then(|console| console.oidc.as_ref()) {
        show("console.oidc", Some(provider(oidc, &config, &client).await), "")?;
    }
    for line in agent_notes(&config).into_iter().chain(limit_notes(&config)) {
        print(&line)?;
    }
    let parts_count = live::parts(&config).len();
    for line in paused(&config).await.into_iter().chain(awaiting_operator(&config).await) {
        print(&line)?;
    }
    let parts =
        |count: usize| if count == 1 { "1 part".to_owned() } else { format!("{count} parts") };
    match (stops_count, missing_count, fails_count) {
        (0, 0, 0) => print("live mode starts with this configuration"),
        // No table of live mode exists: nobody has begun to set it up.
        (0, missing, 0) if missing == parts_count => {
            print("test mode is ready; nothing of live mode is configured")
        }
        (0, 0, fails) => Err(format!(
            "the service starts, and refuses what needs the parts that fail ({})",
            parts(fails)
        )),
        (0, missing, fails) => {
            let failing = match fails {
                0 => String::new(),
                1 => ", and 1 part fails".to_owned(),
                _ => format!(", and {} fail", parts(fails)),
            };
            let missing = parts(missing);
            Err(format!("the service starts without live mode: {missing} missing{failing}"))
        }
        (stops, ..) => {
            let have = if stops == 1 { "has" } else { "have" };
            Err(format!("the service does not start: {} {have} a fault", parts(stops)))
        }
    }
}

/// A line with how many payouts wait for the operator because of the bank, if any do.
async fn awaiting_operator(config: &Config) -> Option<String> {
    let database = config.database.clone();
    let read = move || database.examine(|tx| Ok(journal::awaiting_operator(tx, usize::MAX)?.len()));
    let count = tokio::task::spawn_blocking(read).await.ok()?.ok()?;
    (count > 0).then(|| {
        format!("{:<12} {:<12} {count} payouts wait for you: `hundi reconcile`", "bank", "decide")
    })
}

/// What the operator paused, a line each. Empty if the database does not open: the line `database`
/// says so.
async fn paused(config: &Config) -> Vec<String> {
    let database = config.database.clone();
    let read = move || database.examine(pauses::rows::all);
    let pauses = tokio::task::spawn_blocking(read).await.map_or(Ok(Vec::new()), |found| found);
    let line = |pause: Pause| {
        let whom = match pause.account_number {
            None => "everybody".to_owned(),
            Some(number) => format!("account {number}"),
        };
        let since = time_text(pause.paused_at, &TimeZone::system());
        let by =
            if pause.actor.is_empty() { String::new() } else { format!(" by {}", pause.actor) };
        let why =
            if pause.reason.is_empty() { String::new() } else { format!(": {}", pause.reason) };
        let operation = pause.operation.as_str();
        format!("{operation:<12} {:<12} for {whom} since {since}{by}{why}", "paused")
    };
    pauses.unwrap_or_default().into_iter().map(line).collect()
}

/// What is wrong with the parts that every start needs: the directory of IFSCs, the encryption key,
/// and the database if it exists.
async fn start_faults(config: &Config) -> Vec<(&'static str, String)> {
    let mut faults = Vec::new();
    if let Err(fault) = ifsc::directory(config.ifsc_file.as_deref()) {
        faults.push(("ifsc_file", fault));
    }
    let keys = secrets::existing_encryption_keys(&config.database, &config.encryption_keys);
    let keys = match keys {
        Ok(keys) => keys,
        Err(fault) => {
            faults.push(("key", fault));
            return faults;
        }
    };
    if let Database::Postgres(_) = &config.database
        && keys.is_none()
    {
        faults.push(("key", secrets::KEY_NEEDED.to_owned()));
    }
    let database = config.database.clone();
    if database.must_exist().is_err() {
        return faults;
    }
    let looked = tokio::task::spawn_blocking(move || {
        database.examine(migrate::check_known)?;
        keys.map_or(Ok(None), |keys| verify_book::key_fault(&database, &keys.verifiers()))
    });
    match looked.await {
        Ok(Ok(None)) => {}
        Ok(Ok(Some(fault))) => faults.push(("key", fault)),
        // The line `database` says that the server does not answer.
        Ok(Err(StoreError::Unavailable(_))) => {}
        Ok(Err(fault)) => faults.push(("database", fault.to_string())),
        Err(fault) => faults.push(("database", fault.to_string())),
    }
    faults
}

/// Asks a PostgreSQL server what it is and whether its settings are safe.
async fn server(database: Database) -> Result<String, PartError> {
    let looked = tokio::task::spawn_blocking(move || database.server())
        .await
        .map_err(|fault| PartError::Stops(fault.to_string()))?;
    match looked.map_err(|error| PartError::Stops(error.to_string()))? {
        None => Ok(String::new()),
        Some(server) if server.warnings.is_empty() => {
            Ok(format!("PostgreSQL {} answers, and its settings are safe", server.version))
        }
        Some(server) => Err(PartError::Fails(server.warnings.join("; "))),
    }
}

/// Asks the nodes of a chain whether they are of that chain and know the token.
async fn check_chain(chain: &FollowedChain) -> Result<String, PartError> {
    match chain.check().await.map_err(PartError::Stops)? {
        true => Ok(format!(
            "{} nodes of {} are of chain {} and know the token",
            chain.nodes.len(),
            chain.settings.name.as_str(),
            chain.settings.chain_id
        )),
        false => Err(PartError::Fails(
            "no node answers, and no deposit is seen until one does; the log above says why".into(),
        )),
    }
}

/// Asks the OpenID Connect provider for its description and its keys.
async fn provider(
    oidc: &OidcSettings,
    config: &Config,
    client: &Client,
) -> Result<String, PartError> {
    let is_required = live::is_configured(config)
        || config.console.as_ref().is_some_and(|console| console.requires_second_factor);
    if is_required && !oidc.provider_asks_second_factor() {
        return Err(PartError::Stops(SECOND_FACTOR_NEEDED.into()));
    }
    let openid = OpenId::new(oidc.clone(), &environment, client.clone());
    let now_seconds = Clock::System.milliseconds() / 1000;
    openid.check(now_seconds).await.map_err(|error| PartError::Fails(error.to_string()))
}

/// Tries one configured part of live mode; answers what it found.
async fn try_part(table: &str, config: &Config, client: &Client) -> Result<String, PartError> {
    let now_seconds = Clock::System.milliseconds() / 1000;
    let missing = || PartError::Stops("is missing".into());
    match table {
        "live_chain" => {
            let chain = config.live_chain.as_ref().ok_or_else(missing)?;
            check_chain(&FollowedChain::new(Mode::Live, chain.clone(), client)).await
        }
        "bank" => {
            writable(&config.bank.as_ref().ok_or_else(missing)?.folder).map_err(PartError::Stops)
        }
        "rates" => {
            let settings = config.rates.as_ref().ok_or_else(missing)?;
            let rates =
                HttpRates::new(settings, &environment, client.clone()).map_err(PartError::Stops)?;
            let refused = |refusal: RateRefusal| {
                PartError::Fails(format!("no rate that can be quoted: {}", refusal.as_str()))
            };
            let (rate, _) = rates.poll(now_seconds, &|_| {}).await.map_err(refused)?;
            Ok(format!("{} INR for 1 USD, {} USD for 1 USDT", rate.mid, rate.usdt_usd))
        }
        "checks" => {
            let table = config.checks.as_ref().ok_or_else(missing)?;
            live::account_checks(table, &environment, client).map_err(PartError::Stops)?;
            Ok(match table {
                ChecksTable::Manual {} => {
                    "by hand: hundi beneficiaries list, hundi beneficiaries review"
                }
                ChecksTable::Http(settings) => {
                    check_host(&settings.url).await?;
                    "over HTTP, and its name resolves; not asked here, because every question is \
                     about somebody's account"
                }
            }
            .into())
        }
        "screening" => {
            let lists = Lists::load(config.screening.clone().ok_or_else(missing)?)
                .map_err(PartError::Stops)?;
            match lists.why_not_live(now_seconds) {
                // If a table is still missing, live mode is off, and the service starts.
                Some(reason) if live::parts(config).iter().all(|part| part.is_configured) => {
                    Err(PartError::Stops(reason))
                }
                Some(reason) => Err(PartError::Fails(reason)),
                None => {
                    let counts = lists
                        .states()
                        .into_iter()
                        .map(|state| format!("{} {}", state.list.as_str(), state.entries_count));
                    Ok(format!("entries: {}", counts.collect::<Vec<_>>().join(", ")))
                }
            }
        }
        _ => Ok(String::new()),
    }
}

/// Checks that the host in a URL resolves.
async fn check_host(text: &str) -> Result<String, PartError> {
    let url = url::Url::parse(text)
        .map_err(|_| PartError::Stops("its address cannot be read".to_owned()))?;
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = url.port_or_known_default().unwrap_or(443);
    match tokio::net::lookup_host((host.as_str(), port)).await.map(|mut found| found.next()) {
        Ok(Some(_)) => Ok(format!("{host} resolves")),
        Ok(None) => Err(PartError::Fails(format!("{host} has no address"))),
        Err(error) => Err(PartError::Fails(format!("{host} does not resolve: {error}"))),
    }
}

/// Whether the file system of a folder has enough space left.
fn has_space(watched: &WatchedFolder) -> Result<String, PartError> {
    let of = watched.of;
    let space = disk::space(&watched.folder)
        .map_err(|error| PartError::Fails(format!("{of}: its file system: {error}")))?;
    let (free, total) = (disk::shown(space.free_bytes), disk::shown(space.total_bytes));
    let what = format!("{of}: {free} free of {total}");
    if space.free_bytes < disk::FREE_BYTES_MIN {
        let least = disk::shown(disk::FREE_BYTES_MIN);
        return Err(PartError::Fails(format!("{what}: keep {least} or more free")));
    }
    Ok(what)
}

/// What keeps the bank's agent from its folders, a line each. These are notes and no faults: an
/// agent that runs as the service's own user needs no group rights.
fn agent_notes(config: &Config) -> Vec<String> {
    let Some(bank) = &config.bank else { return Vec::new() };
    if !bank.folder.join("staging").exists() {
        return Vec::new();
    }
    let notes = Folders::open(&bank.folder).map(|folders| folders.agent_faults());
    notes.unwrap_or_default().into_iter().map(|note| note_line("bank", &note)).collect()
}

/// Endpoints of chains whose daily request limit is too low for the polls for new blocks, a line
/// each.
fn limit_notes(config: &Config) -> Vec<String> {
    let chains = [("test_chain", &config.test_chain), ("live_chain", &config.live_chain)];
    let lines = chains.into_iter().flat_map(|(table, chain)| {
        let notes = chain.iter().flat_map(ChainSettings::limit_notes);
        notes.map(move |note| note_line(table, &note))
    });
    lines.collect()
}

fn note_line(part: &str, note: &str) -> String {
    format!("{part:<12} {:<12} {note}", "look")
}

/// Whether the bank's files can be written below a folder. If the folder does not exist yet, the
/// nearest existing folder above it is tried, because the start creates the rest.
fn writable(folder: &Path) -> Result<String, String> {
    match folder.join("staging").exists() {
        true => Folders::open(folder)?.check_writable()?,
        false => {
            let existing = folder
                .ancestors()
                .find(|path| path.as_os_str().is_empty() || path.exists())
                .ok_or_else(|| format!("{} has no parent", folder.display()))?;
            // The last ancestor of a relative path is empty and means the working directory.
            folders::check_writable(if existing.as_os_str().is_empty() {
                Path::new(".")
            } else {
                existing
            })?;
        }
    }
    Ok(format!("files can be written to {}", folder.display()))
}
