//! How a connection is made: which servers are tried, what it sets for itself, how long it may
//! take.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls};

use super::admit::{admit, position};
use super::faults::{connect_error, fault};
use super::fence::{Fence, Position};
use super::presence;
use super::session::{Open, PgSession};
use super::url::{PostgresUrl, connector};
use super::{
    CONNECT_SECONDS_MAX, IDLE_IN_TRANSACTION_SECONDS_MAX, LOCK_SECONDS_MAX, STATEMENT_SECONDS_MAX,
};
use crate::kernel::StoreError;
use crate::store::failpoint;

/// The error of a server that neither accepts nor refuses a connection.
const SILENT: &str = "PostgreSQL cannot be reached: it does not answer";
/// After how many seconds of silence a connection is probed (TCP keep-alive).
const KEEPALIVE_SECONDS: u64 = 30;
/// How long a server may be silent before the next server of the address is tried too.
const SILENCE_MAX: Duration = Duration::from_millis(500);

/// What a connection sets for itself, in one exchange:
///
/// - Plans that read whole tables are the last choice. Every frequent statement can use an index. A
///   plan that was made while a table was small must not read all of the table later.
/// - A commit is done once it is on the disk (not `off`) and the synchronous standby has it (not
///   `local`), whatever the settings of server, database or role. `remote_write` and `remote_apply`
///   are left alone: how far a standby must be is the operator's choice.
/// - Statements, waits for locks and idle transactions have limits of time.
///
/// A node's connection also announces that a node is connected.
fn settings(is_node: bool) -> String {
    let commit = if failpoint("commit_not_kept") {
        "SET synchronous_commit = off"
    } else {
        "SELECT set_config('synchronous_commit', 'on', false) WHERE \
         current_setting('synchronous_commit', true) IN ('off', 'local')"
    };
    let scans = if failpoint("plans_as_they_come") { "on" } else { "off" };
    let presence = if is_node { presence::ANNOUNCE_NODE } else { "SELECT 1" };
    format!(
        "SET enable_seqscan = {scans}; SET jit = off; SET client_min_messages = warning; \
         SET statement_timeout = '{STATEMENT_SECONDS_MAX}s'; \
         SET lock_timeout = '{LOCK_SECONDS_MAX}s'; \
         SET idle_in_transaction_session_timeout = '{IDLE_IN_TRANSACTION_SECONDS_MAX}s'; {commit}; \
         {presence}"
    )
}

/// Asks all servers of an address at the same time, if it has several. Calls `tell` with the
/// position of each that takes writes, as soon as it answers.
pub(super) fn ask_each_host(url: &PostgresUrl, tell: impl Fn(Position)) {
    if url.hosts.len() < 2 {
        return;
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return;
    };
    let ask = async |config: &Config| {
        let mut config = config.clone();
        config.connect_timeout(Duration::from_secs(1)).application_name("hundi");
        let client = client(&config, url.tls.as_ref(), Arc::default()).await.ok()?;
        // On a standby the question fails.
        position(&client).await.ok()?.map(&tell)
    };
    let all = join_all(url.hosts.iter().map(ask));
    runtime.block_on(async {
        // Servers that do not answer within this time are not waited for.
        let _ = tokio::time::timeout(Duration::from_secs(CONNECT_SECONDS_MAX), all).await;
    });
    runtime.shutdown_background();
}

/// Connects to one server.
async fn client(
    config: &Config,
    tls: Option<&Arc<rustls::ClientConfig>>,
    is_warned: Arc<AtomicBool>,
) -> Result<Client, tokio_postgres::Error> {
    match tls {
        None => {
            let (client, connection) = config.connect(NoTls).await?;
            run(connection, is_warned);
            Ok(client)
        }
        Some(tls) => {
            let (client, connection) = config.connect(connector(tls)).await?;
            run(connection, is_warned);
            Ok(client)
        }
    }
}

/// Runs a connection on the runtime, and notes the server's warnings. A server warns when the wait
/// for a synchronous standby was cancelled, before it calls the commit done.
fn run<S, T>(mut connection: Connection<S, T>, is_warned: Arc<AtomicBool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        while let Some(Ok(message)) =
            std::future::poll_fn(|context| connection.poll_message(context)).await
        {
            if let AsyncMessage::Notice(notice) = message
                && *notice.code() == SqlState::WARNING
            {
                is_warned.store(true, Ordering::SeqCst);
            }
        }
    });
}

/// Makes a connection to one server, sets it up, and has the fence judge it.
async fn open(
    url: &PostgresUrl,
    config: &Config,
    fence: Option<&Arc<Fence>>,
) -> Result<Open, StoreError> {
    let mut config = config.clone();
    config.connect_timeout(Duration::from_secs(CONNECT_SECONDS_MAX));
    // If the address sets this time, that wins. Two hours are the driver's default, so an address
    // that sets two hours counts as one that sets nothing.
    if config.get_keepalives_idle() == Config::new().get_keepalives_idle() {
        config.keepalives_idle(Duration::from_secs(KEEPALIVE_SECONDS));
    }
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    if config.get_application_name().is_none() {
        config.application_name("hundi");
    }
    let is_warned = Arc::<AtomicBool>::default();
    let client = client(&config, url.tls.as_ref(), is_warned.clone())
        .await
        .map_err(|error| connect_error(&error))?;
    let is_node = fence.is_some_and(|fence| fence.is_node);
    client.batch_execute(&settings(is_node)).await.map_err(|error| fault(&error).into_error())?;
    let admission = match fence {
        None => None,
        Some(fence) => Some((fence.clone(), admit(&client, fence).await?)),
    };
    is_warned.store(false, Ordering::SeqCst);
    Ok(Open { client, tls: url.tls.clone(), is_warned, admission })
}

/// Tries the servers of an address one after the other, beginning with the last one used. A frozen
/// machine accepts connections and says nothing, so the next server is tried too while one is
/// silent.
async fn first_that_takes_writes(
    url: &PostgresUrl,
    fence: Option<&Arc<Fence>>,
) -> Result<Open, StoreError> {
    let hosts_count = url.hosts.len();
    let first = fence.map_or(0, |fence| fence.last_host.load(Ordering::Relaxed));
    let mut left = (0..hosts_count).map(|place| (first + place) % hosts_count);
    let mut asked = FuturesUnordered::new();
    let mut failed = StoreError::Unavailable(SILENT.into());
    loop {
        if let Some(index) = left.next()
            && let Some(host) = url.hosts.get(index)
        {
            asked.push(async move { (index, open(url, host, fence).await) });
        }
        let answered = tokio::select! {
            answered = asked.next() => answered,
            () = tokio::time::sleep(SILENCE_MAX), if left.len() > 0 => continue,
        };
        match answered {
            None => return Err(failed),
            Some((_, Err(error))) => failed = error,
            Some((index, Ok(open))) => {
                // With this fault a node always begins with the first server, so it returns to an
                // old primary.
                if let Some(fence) = fence.filter(|_| !failpoint("no_fence")) {
                    fence.last_host.store(index, Ordering::Relaxed);
                }
                return Ok(open);
            }
        }
    }
}

/// A connection that is being made. It continues while one caller after another waits for it.
pub(super) struct Connecting {
    open: Pin<Box<dyn Future<Output = Result<Open, StoreError>>>>,
    runtime: tokio::runtime::Runtime,
    /// When it is given up, whether or not somebody waits.
    end: Instant,
}

/// What a caller gets who waited for a connection.
pub(super) enum Waited {
    Open(Box<PgSession>),
    Failed(StoreError),
    /// The caller's time is up. The connection may still be made, for the next caller.
    Still(Connecting),
}

impl Connecting {
    /// Prepares to connect and to set up the connection ([`settings`]). Nothing is sent before
    /// somebody waits. From now on the connection has a few seconds to be made.
    pub(super) fn start(
        url: &PostgresUrl,
        fence: Option<&Arc<Fence>>,
    ) -> Result<Connecting, StoreError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(
            |error| StoreError::Unavailable(format!("no runtime for a connection: {error}")),
        )?;
        let (url, fence) = (url.clone(), fence.cloned());
        let open = async move { first_that_takes_writes(&url, fence.as_ref()).await };
        Ok(Connecting {
            open: Box::pin(open),
            runtime,
            end: Instant::now() + Duration::from_secs(CONNECT_SECONDS_MAX + 1),
        })
    }

    /// Waits until `until` at most. Blocks: do not call it on a thread of a runtime.
    pub(super) fn wait(mut self, until: Instant) -> Waited {
        let until = until.min(self.end);
        let open = self.open.as_mut();
        match self.runtime.block_on(async { tokio::time::timeout_at(until.into(), open).await }) {
            Ok(Ok(open)) => {
                let Connecting { runtime, .. } = self;
                Waited::Open(Box::new(PgSession::new(runtime, open)))
            }
            Ok(Err(error)) => Waited::Failed(error),
            Err(_) if Instant::now() < self.end => Waited::Still(self),
            Err(_) => {
                self.give_up();
                Waited::Failed(StoreError::Unavailable(SILENT.into()))
            }
        }
    }

    /// Whether its time ran out while nobody waited for it.
    pub(super) fn is_stale(&self) -> bool {
        Instant::now() >= self.end
    }

    /// Drops it without waiting for the resolution of a host name, which may still run.
    pub(super) fn give_up(self) {
        self.runtime.shutdown_background();
    }
}

impl PgSession {
    /// Connects before `end`, and within a few seconds. Blocks: do not call it on a thread of a
    /// runtime.
    pub(super) fn connect(url: &PostgresUrl, end: Instant) -> Result<PgSession, StoreError> {
        PgSession::connect_admitted(url, None, end)
    }

    /// Like [`PgSession::connect`], but with a server that the fence admits.
    pub(super) fn connect_admitted(
        url: &PostgresUrl,
        fence: Option<&Arc<Fence>>,
        end: Instant,
    ) -> Result<PgSession, StoreError> {
        match Connecting::start(url, fence)?.wait(end) {
            Waited::Open(session) => Ok(*session),
            Waited::Failed(error) => Err(error),
            Waited::Still(connecting) => {
                connecting.give_up();
                Err(StoreError::Unavailable(SILENT.into()))
            }
        }
    }
}
