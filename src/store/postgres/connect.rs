//! How a connection is made: which servers it reaches, what it sets for itself, how long it takes.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::config::{LoadBalanceHosts, TargetSessionAttrs};
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Connection, NoTls};

use super::admit::{admit, position};
use super::faults::{connect_error, fault};
use super::fence::{Fence, Position};
use super::session::{Open, Session};
use super::url::PostgresUrl;
use super::{
    CONNECT_SECONDS_MAX, IDLE_IN_TRANSACTION_SECONDS_MAX, LOCK_SECONDS_MAX, STATEMENT_SECONDS_MAX,
};
use crate::kernel::StoreError;
use crate::store::failpoint;

/// Said of a server that takes no connection and refuses none.
const SILENT: &str = "PostgreSQL cannot be reached: it does not answer";

/// What a connection sets for itself, in one exchange. Every hot statement reads by an index, and a
/// plan that is kept from the time when a table was small must not read all of it later, so a plan
/// that reads whole tables is the last choice. A server, database or role that calls a
/// commit done before it is on the disk (`off`), or before the synchronous standby has it
/// (`local`), is overruled; `remote_write` and `remote_apply` are an operator's choice of how far a
/// standby has to be.
fn settings() -> String {
    let commit = if failpoint("commit_not_kept") {
        "SET synchronous_commit = off"
    } else {
        "SELECT set_config('synchronous_commit', 'on', false) WHERE \
         current_setting('synchronous_commit', true) IN ('off', 'local')"
    };
    let scans = if failpoint("plans_as_they_come") { "on" } else { "off" };
    format!(
        "SET enable_seqscan = {scans}; SET jit = off; SET client_min_messages = warning; \
         SET statement_timeout = '{STATEMENT_SECONDS_MAX}s'; \
         SET lock_timeout = '{LOCK_SECONDS_MAX}s'; \
         SET idle_in_transaction_session_timeout = '{IDLE_IN_TRANSACTION_SECONDS_MAX}s'; {commit}"
    )
}

/// Where one server of an address with several is, if it takes writes.
pub(super) fn position_of_host(url: &PostgresUrl, index: usize) -> Option<Position> {
    let (mut config, tls) = (url.config_of_host(index)?, url.tls.clone());
    config.connect_timeout(Duration::from_secs(1)).application_name("hundi");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let ask = async move {
        let client = match tls {
            None => {
                let (client, connection) = config.connect(NoTls).await.ok()?;
                tokio::spawn(connection);
                client
            }
            Some(tls) => {
                let tls = tokio_postgres_rustls::MakeRustlsConnect::new((*tls).clone());
                let (client, connection) = config.connect(tls).await.ok()?;
                tokio::spawn(connection);
                client
            }
        };
        // A standby refuses the question.
        position(&client).await.ok()?
    };
    let answered = runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(CONNECT_SECONDS_MAX), ask).await
    });
    runtime.shutdown_background();
    answered.ok().flatten()
}

/// Runs a connection on the runtime, and notes warnings of the server. A server warns before it
/// calls a commit done whose wait for a synchronous standby was cancelled.
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

/// A connection that is being made. It goes on while it is waited for, by one caller after the
/// other.
pub(super) struct Connecting {
    open: Pin<Box<dyn Future<Output = Result<Open, StoreError>>>>,
    runtime: tokio::runtime::Runtime,
    /// When it is given up, whoever waits.
    end: Instant,
}

/// What a caller that waited for a connection has.
pub(super) enum Waited {
    Open(Box<Session>),
    Failed(StoreError),
    /// The caller's time is over and the connection's is not.
    Still(Connecting),
}

impl Connecting {
    /// Begins to connect and to set the limits of every statement and what durability needs; that
    /// takes a few seconds at most, from now on. Nothing is sent before somebody waits.
    pub(super) fn start(
        url: &PostgresUrl,
        fence: Option<&Arc<Fence>>,
    ) -> Result<Connecting, StoreError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(
            |error| StoreError::Unavailable(format!("no runtime for a connection: {error}")),
        )?;
        let mut config = url.config.clone();
        config.connect_timeout(Duration::from_secs(CONNECT_SECONDS_MAX));
        config.keepalives_idle(Duration::from_secs(30));
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_hosts().len() > 1 {
            // A server that takes connections and says nothing must not stand before the others
            // each time.
            config.load_balance_hosts(LoadBalanceHosts::Random);
        }
        if config.get_application_name().is_none() {
            config.application_name("hundi");
        }
        let (settings, tls, fence) = (settings(), url.tls.clone(), fence.cloned());
        let open = async move {
            let is_warned = Arc::<AtomicBool>::default();
            let client = match tls {
                None => {
                    let (client, connection) =
                        config.connect(NoTls).await.map_err(|error| connect_error(&error))?;
                    run(connection, is_warned.clone());
                    client
                }
                Some(tls) => {
                    let tls = tokio_postgres_rustls::MakeRustlsConnect::new((*tls).clone());
                    let (client, connection) =
                        config.connect(tls).await.map_err(|error| connect_error(&error))?;
                    run(connection, is_warned.clone());
                    client
                }
            };
            client.batch_execute(&settings).await.map_err(|error| fault(&error).into_error())?;
            let admission = match fence {
                None => None,
                Some(fence) => {
                    let admission = admit(&client, &fence).await?;
                    Some((fence, admission))
                }
            };
            is_warned.store(false, Ordering::SeqCst);
            Ok(Open { client, is_warned, admission })
        };
        Ok(Connecting {
            open: Box::pin(open),
            runtime,
            end: Instant::now() + Duration::from_secs(CONNECT_SECONDS_MAX + 1),
        })
    }

    /// Waits until `until` at most. Not to be called on a thread of a runtime.
    pub(super) fn wait(mut self, until: Instant) -> Waited {
        let until = until.min(self.end);
        let open = self.open.as_mut();
        match self.runtime.block_on(async { tokio::time::timeout_at(until.into(), open).await }) {
            Ok(Ok(open)) => {
                let Connecting { runtime, .. } = self;
                Waited::Open(Box::new(Session::new(runtime, open)))
            }
            Ok(Err(error)) => Waited::Failed(error),
            Err(_) if Instant::now() < self.end => Waited::Still(self),
            Err(_) => {
                self.give_up();
                Waited::Failed(StoreError::Unavailable(SILENT.into()))
            }
        }
    }

    /// Whether its time is over, because nobody waited for it meanwhile.
    pub(super) fn is_stale(&self) -> bool {
        Instant::now() >= self.end
    }

    /// A look-up of a name may still run, and nobody waits for it.
    pub(super) fn give_up(self) {
        self.runtime.shutdown_background();
    }
}

impl Session {
    /// Connects, before `end` and within a few seconds. Not to be called on a thread of a runtime.
    pub(super) fn connect(url: &PostgresUrl, end: Instant) -> Result<Session, StoreError> {
        Session::connect_admitted(url, None, end)
    }

    /// The same with a server that the fence admits.
    pub(super) fn connect_admitted(
        url: &PostgresUrl,
        fence: Option<&Arc<Fence>>,
        end: Instant,
    ) -> Result<Session, StoreError> {
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
