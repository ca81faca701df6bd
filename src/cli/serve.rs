//! `hundi serve`: runs the service until a signal.

use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, Read, Seek, SeekFrom, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::Args;
use tokio::sync::watch;

use super::{DatabaseArgs, environment, error_message, print};
use crate::app::{self, ACCOUNT_DEFAULT, App, KeyRequest};
use crate::config::{Config, Flags, is_loopback};
use crate::console::Console;
use crate::console::openid::OpenId;
use crate::http::server;
use crate::kernel::{Clock, Mode, OperationError};
use crate::keys::{self, Permissions};
use crate::outbound::Client;
use crate::secrets;
use crate::store::{Cost, Database, Store, failpoint};
use crate::tls::platform_roots;

/// Bytes that the first key's file reserves on the disk before the key is made.
const KEY_BYTES_MAX: usize = 100;
/// A margin for a busy machine: how much longer a stop may take than the time limits of its steps.
const STOP_SPARE_SECONDS: u64 = 15;

/// How long a stop takes at most with this drain, in seconds: the drain, then running requests and
/// deliveries, and the margin.
const fn stop_seconds(drain_seconds: u64) -> u64 {
    drain_seconds + server::STOP_SECONDS_MAX + STOP_SPARE_SECONDS
}

/// Run the service
#[derive(Args)]
pub struct Serve {
    #[command(flatten)]
    database: DatabaseArgs,
    /// Address to listen on [env: HUNDI_LISTEN] [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Let test webhooks go to loopback over http; on by default only while listen and public_url
    /// are on loopback
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    allow_loopback_webhooks: Option<bool>,
    /// Show Prometheus metrics at /metrics
    #[arg(long)]
    metrics: bool,
    /// What this node does: all, serve (requests alone) or work (everything else) [env:
    /// HUNDI_ROLE] [default: all]
    #[arg(long)]
    role: Option<String>,
}

impl Serve {
    pub async fn run(self) -> Result<(), String> {
        let flags = Flags {
            config: self.database.config,
            database: self.database.database,
            role: self.role,
            listen: self.listen,
            allow_loopback_webhooks: self.allow_loopback_webhooks,
            metrics: self.metrics,
        };
        serve(Config::read(&flags, &environment)?).await
    }
}

async fn serve(mut config: Config) -> Result<(), String> {
    let _lock = secrets::lock_database(&config.database)?;
    // The ports are opened before a first key is made. Otherwise a start that fails because a port
    // is taken would lose the key.
    let (listener, address) = server::bind(&config.listen).await?;
    config.set_bound_address(address);
    let console = match &config.console {
        None => None,
        Some(settings) => {
            let (listener, address) = server::bind(&settings.listen).await?;
            Some((listener, settings.url(address), settings))
        }
    };
    if !config.is_public_url_set && !is_loopback(&config.listen) {
        tracing::warn!(
            listen = config.listen,
            public_url = config.settings.public_url,
            "public_url is not set: links for payers begin with the address that the service \
             listens on, which payers may not reach"
        );
    }
    if let Some(bank) = &config.test_bank {
        tracing::warn!(
            folder = %bank.folder.display(),
            "test keys write payment files into this folder: only a bank's test system or `hundi \
             bank-simulator` may read them"
        );
    }
    let app = App::open(&config, Clock::System).await?;
    warn_of_settings(&config).await;
    app.check_chains().await?;
    app.check_bank()?;
    let console = match console {
        None => None,
        Some((listener, url, settings)) => {
            let second_factor = settings.requires_second_factor;
            let openid = settings.oidc.clone().map(|oidc| {
                let client = Client::new(platform_roots());
                let client = client.map_err(|error| format!("TLS cannot be set up: {error}"))?;
                Ok::<_, String>(OpenId::new(oidc, &environment, client))
            });
            let console = Console::new(app.state.clone(), &url, second_factor)?
                .with_proxies(settings.proxies.clone())
                .with_openid(openid.transpose()?)?;
            if url.starts_with("https://") && settings.proxies.is_empty() {
                tracing::warn!(
                    "console_proxies is not set: everybody who reaches the console through a proxy \
                     has the proxy's address in the audit log, and one person's failed attempts \
                     can lock all of them out"
                );
            }
            Some((listener, Arc::new(console), url))
        }
    };
    // Everything that can refuse the start comes before this call, so that a key that was made is
    // also shown.
    let first_key = first_key(&app.state.store, &config.database).await?;
    print(&format!("listening on http://{address}"))?;
    let console = match console {
        None => None,
        Some((listener, console, url)) => {
            print(&format!("console at {url}/console"))?;
            Some((listener, console))
        }
    };
    match first_key {
        Some(first) => show_first_key(first, address)?,
        None => {
            print(&format!("guides at http://{address}/docs/"))?;
            let path = first_key_path(&config.database);
            if path.exists() {
                print(&format!("the first key is still in {}", path.display()))?;
            } else if !is_any_key_used(&app.state.store).await? {
                // A first start on a terminal may have ended before it showed its key.
                print(
                    "no API key was used yet: if you have none, `hundi keys create --mode test` \
                     makes one",
                )?;
            }
        }
    }
    notify("READY=1");
    let (stop, stopping) = watch::channel(false);
    let (state, drain) = (app.state.clone(), Duration::from_secs(config.drain_seconds));
    tokio::spawn(async move {
        // Ctrl-C comes from a person at a terminal, who should not wait for load balancers.
        if wait_for_signal().await == StopSignal::Terminate && !drain.is_zero() {
            // systemd's own timeout for a stop may be shorter than this drain.
            let stop_microseconds = stop_seconds(drain.as_secs()) * 1_000_000;
            notify(&format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={stop_microseconds}"));
            state.drain();
            tracing::info!(
                seconds = drain.as_secs(),
                "draining: /readyz answers 503, and requests are still taken"
            );
            tokio::select! {
                () = tokio::time::sleep(drain) => {}
                _ = wait_for_signal() => {}
            }
        }
        // Open streams of payers' pages end once the node drains. Otherwise they would delay the
        // stop.
        state.drain();
        tracing::info!("stopping: running requests finish, new ones are refused");
        let _ = stop.send(true);
        // Keeps the channel open until the process ends.
        std::future::pending::<()>().await;
    });
    app.run_with(listener, console, stopping).await;
    Ok(())
}

/// The file for the first key. Only its owner can read it. The key goes into it if standard output
/// is not a terminal, because other output may be a journal that many people read.
struct FirstKeyFile {
    /// Opened before the key is made, so that none is made if the file cannot be written. Locked,
    /// because other nodes may have the same working directory.
    file: File,
    path: PathBuf,
    /// What was in the file; empty if there was none.
    before: Vec<u8>,
}

impl FirstKeyFile {
    fn open(database: &Database) -> Result<FirstKeyFile, String> {
        let path = first_key_path(database);
        let path = std::path::absolute(&path).unwrap_or(path);
        let mut opened =
            FirstKeyFile::lock(path.clone()).map_err(|error| unwritten(&path, &error))?;
        // Make room for a key now, while the start can still fail.
        if opened.before.is_empty()
            && let Err(fault) = opened.write(&" ".repeat(KEY_BYTES_MAX))
        {
            opened.undo();
            return Err(fault);
        }
        Ok(opened)
    }

    /// Opens and locks the file, and keeps its content until a key is made.
    fn lock(path: PathBuf) -> std::io::Result<FirstKeyFile> {
        loop {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let mut file = options.open(&path)?;
            file.lock()?;
            let mut before = Vec::new();
            file.read_to_end(&mut before)?;
            // A node that had the lock before may have removed the file.
            let inode = file.metadata()?.ino();
            if std::fs::metadata(&path).is_ok_and(|named| named.ino() == inode) {
                return Ok(FirstKeyFile { file, path, before });
            }
        }
    }

    /// Replaces the content with one line, and syncs the file and its folder to the disk.
    fn write(&mut self, text: &str) -> Result<(), String> {
        self.replace(format!("{text}\n").as_bytes()).map_err(|error| unwritten(&self.path, &error))
    }

    fn replace(&mut self, content: &[u8]) -> std::io::Result<()> {
        self.file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(content)?;
        self.file.set_len(content.len() as u64)?;
        self.file.sync_all()?;
        let folder = self.path.parent().unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()
    }

    /// Restores what was there before. Called if no key was made.
    fn undo(&mut self) {
        let before = std::mem::take(&mut self.before);
        let undone = match before.is_empty() {
            true => std::fs::remove_file(&self.path),
            false => self.replace(&before),
        };
        if let Err(error) = undone {
            let path = self.path.display();
            tracing::warn!(%error, %path, "the file for the first key could not be left as it was");
        }
    }
}

fn unwritten(path: &Path, error: &std::io::Error) -> String {
    format!("the first key cannot be written to {}: {error}", path.display())
}

/// Prints where the first key is, and the commands that make a payment with it.
fn show_first_key(first: FirstKey, address: SocketAddr) -> Result<(), String> {
    let (place, key) = match first.path {
        None => ("It is shown only now.".to_owned(), first.key),
        Some(path) => (
            format!(
                "It is in {}, where the lines below read it. Once you have stored it elsewhere, \
                 delete the file.",
                path.display()
            ),
            format!("$(cat '{}')", path.display()),
        ),
    };
    // If the binary was started by a path, it may not be on the shell's PATH: print that path.
    let name = std::env::args_os().next().map(|name| name.to_string_lossy().into_owned());
    let hundi = name.filter(|name| name.contains('/')).unwrap_or("hundi".into());
    print(&format!(
        "\nThis database is new. \
         It has the account \"{ACCOUNT_DEFAULT}\" and one test key. {place}\n\n\
         In a second terminal, a payment in test mode:\n\n    \
         export HUNDI_BASE_URL=http://{address}\n    \
         export HUNDI_API_KEY=\"{key}\"\n    \
         {hundi} quickstart\n\n\
         Guides                  http://{address}/docs/\n\
         The same with curl      {hundi} quickstart --curl\n\
         Events as they happen   {hundi} listen\n\
         More keys               {hundi} keys create --mode test"
    ))
}

/// The file for the first key: beside the database's file, or for PostgreSQL in the working
/// directory.
fn first_key_path(database: &Database) -> PathBuf {
    match database {
        Database::Sqlite(path) => {
            let mut name = path.clone().into_os_string();
            name.push(".first-key");
            name.into()
        }
        Database::Postgres(_) => "hundi.first-key".into(),
    }
}

/// Warns of chain endpoints whose daily request limit is too low for the polls, and of unsafe
/// settings of the database server that a connection cannot change.
async fn warn_of_settings(config: &Config) {
    for chain in [&config.test_chain, &config.live_chain].into_iter().flatten() {
        chain.limit_notes().iter().for_each(|note| tracing::warn!("{note}"));
    }
    let database = config.database.clone();
    let server = tokio::task::spawn_blocking(move || database.server()).await;
    // If the server has gone away since the start, the log says so elsewhere.
    if let Ok(Ok(Some(server))) = server {
        server.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StopSignal {
    Terminate,
    Interrupt,
}

async fn wait_for_signal() -> StopSignal {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => StopSignal::Terminate,
                _ = interrupt.recv() => StopSignal::Interrupt,
            }
        }
        _ => std::future::pending().await,
    }
}

/// Tells the service manager the state, by a datagram to the socket in `NOTIFY_SOCKET` (systemd's
/// sd_notify(3)). Does nothing without that variable. A name that begins with `@` is in the
/// abstract namespace.
fn notify(state: &str) {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    let Some(name) = environment("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else { return };
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&name),
    };
    let sent = address.and_then(|address| {
        UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
    });
    if let Err(error) = sent {
        tracing::warn!(%error, "the service manager could not be notified");
    }
}

/// Aborts the process, as a kill would, if a test set this failpoint.
fn dies(fault: &str) {
    if failpoint(fault) {
        std::process::abort();
    }
}

/// The first key, and the file that it is in; `None` if it is shown on the terminal.
struct FirstKey {
    key: String,
    path: Option<PathBuf>,
}

/// Makes the default account and one test key, if the database has no account yet. A key that goes
/// to a file is written to the file before the commit: after the commit, a crash could lose it. If
/// the process ends between the two, the database has no account, and the next start makes another
/// key.
async fn first_key(store: &Store, database: &Database) -> Result<Option<FirstKey>, String> {
    let count = store.read(Cost::Point, |tx| Ok(keys::rows::accounts_count(tx)?)).await;
    if count.map_err(error_message)? > 0 {
        return Ok(None);
    }
    let file = match std::io::stdout().is_terminal() {
        true => None,
        false => Some(Arc::new(Mutex::new(FirstKeyFile::open(database)?))),
    };
    let keeper = file.clone();
    let made = store.write(move |tx, now| {
        // Another node may have been first.
        if keys::rows::accounts_count(tx)? > 0 {
            return Ok(None);
        }
        let request = KeyRequest {
            account: ACCOUNT_DEFAULT.into(),
            mode: Mode::Test,
            permissions: Permissions::All,
            expires_at: None,
        };
        let key = app::create_key(tx, now, &request)?;
        if let Some(file) = &keeper {
            locked(file).write(&key).map_err(OperationError::Declined)?;
        }
        dies("first_key_dies_before_its_commit");
        Ok(Some(key))
    });
    let made = made.await;
    // If the store failed, the key may be committed, so the file stays.
    if let (Ok(None) | Err(OperationError::Declined(_)), Some(file)) = (&made, &file) {
        locked(file).undo();
    }
    let Some(key) = made.map_err(error_message)? else { return Ok(None) };
    dies("first_key_dies_after_its_commit");
    Ok(Some(FirstKey { key, path: file.map(|file| locked(&file).path.clone()) }))
}

async fn is_any_key_used(store: &Store) -> Result<bool, String> {
    let is_used = store.read(Cost::Point, |tx| Ok(keys::rows::is_any_used(tx)?)).await;
    is_used.map_err(error_message)
}

fn locked(file: &Mutex<FirstKeyFile>) -> MutexGuard<'_, FirstKeyFile> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DRAIN_SECONDS_DEFAULT;

    /// systemd and Docker wait for a stop as long as it can take with the default drain.
    #[test]
    fn files_of_deploy_wait_for_a_whole_stop() {
        let read = |name: &str| {
            let path = format!("{}/deploy/{name}", env!("CARGO_MANIFEST_DIR"));
            std::fs::read_to_string(path).unwrap()
        };
        let figure = |text: &str, before: &str, after: &str| -> u64 {
            let line = text
                .lines()
                .find_map(|line| line.trim_start_matches([' ', '#']).split_once(before));
            line.unwrap().1.split(after).next().unwrap().trim().parse().unwrap()
        };
        let waited = [
            figure(&read("hundi.service"), "TimeoutStopSec=", "\n"),
            figure(&read("compose.yaml"), "stop_grace_period: ", "s"),
            figure(&read("Dockerfile"), "docker stop --time ", "."),
        ];
        let wanted = stop_seconds(DRAIN_SECONDS_DEFAULT.unsigned_abs());
        assert_eq!(waited, [wanted; 3]);
        // For a drain of another length, these files say how many seconds to add to it. The number
        // is the same as for the default drain.
        let beside = wanted - DRAIN_SECONDS_DEFAULT.unsigned_abs();
        for name in ["hundi.service", "compose.yaml", "../docs/install.md", "../hundi.example.toml"]
        {
            assert!(read(name).contains(&format!("plus {beside}")), "{name}");
        }
    }
}
