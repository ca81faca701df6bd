//! One connection: its prepared statements, what is sent together, and what its faults mean.

use std::collections::HashMap;
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio_postgres::config::{LoadBalanceHosts, TargetSessionAttrs};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type};
use tokio_postgres::{Client, NoTls, Statement};

use super::url::PostgresUrl;
use super::{
    CONNECT_SECONDS_MAX, IDLE_IN_TRANSACTION_SECONDS_MAX, LOCK_SECONDS_MAX, STATEMENT_SECONDS_MAX,
};
use crate::kernel::StoreError;
use crate::store::{Cell, Row, Value, failpoint, statements};

/// Statements that a connection keeps prepared; with more it forgets them all and begins anew.
const STATEMENTS_PREPARED_MAX: usize = 1_024;

/// Said of a server that takes no connection and refuses none.
const SILENT: &str = "PostgreSQL cannot be reached: it does not answer";

/// Why an exchange with the server failed.
#[derive(Debug)]
pub(super) enum SessionError {
    /// The server answered, and the connection is good.
    Answered(StoreError),
    /// The connection is of no more use, and what the server did with what was sent last is not
    /// known.
    Lost(String),
}

impl SessionError {
    pub(super) fn into_error(self) -> StoreError {
        match self {
            SessionError::Answered(error) => error,
            SessionError::Lost(reason) => StoreError::Unavailable(reason),
        }
    }
}

/// A parameter, owned, because it may be sent later.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Parameter {
    Null,
    Int(i64),
    Bool(bool),
    Text(String),
    Bytes(Vec<u8>),
}

impl From<&Value<'_>> for Parameter {
    fn from(value: &Value<'_>) -> Parameter {
        match value {
            Value::Null => Parameter::Null,
            Value::Int(value) => Parameter::Int(*value),
            Value::Bool(value) => Parameter::Bool(*value),
            Value::Text(value) => Parameter::Text((*value).to_owned()),
            Value::Bytes(value) => Parameter::Bytes(value.to_vec()),
            Value::Id(value) => Parameter::Bytes(value.to_vec()),
        }
    }
}

impl ToSql for Parameter {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match (self, ty) {
            (Parameter::Null, _) => Ok(IsNull::Yes),
            (Parameter::Int(value), &Type::INT4) => i32::try_from(*value)?.to_sql(ty, out),
            (Parameter::Int(value), &Type::BOOL) => (*value != 0).to_sql(ty, out),
            (Parameter::Int(value), &Type::INT8) => value.to_sql(ty, out),
            (Parameter::Bool(value), &Type::BOOL) => value.to_sql(ty, out),
            (Parameter::Bool(value), &Type::INT8) => i64::from(*value).to_sql(ty, out),
            (Parameter::Text(value), &Type::TEXT | &Type::VARCHAR) => value.to_sql(ty, out),
            (Parameter::Bytes(value), &Type::BYTEA) => value.to_sql(ty, out),
            // The value may be personal data, so only the types are told.
            _ => Err(format!("a parameter of another type than the column's {ty}").into()),
        }
    }
    fn accepts(_: &Type) -> bool {
        true
    }
    tokio_postgres::types::to_sql_checked!();
}

/// How many rows a statement has to change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    /// Any number: somebody counts.
    Any,
    /// So many; another number is no fault to the server.
    Exactly(u64),
    /// So many, and the server itself refuses everything else.
    Inserted(u64),
}

/// One message of an exchange.
#[derive(Debug)]
pub(super) enum Message {
    /// Begins, ends or marks a transaction.
    Control(&'static str),
    /// Changes rows.
    Execute {
        statement: Statement,
        parameters: Vec<Parameter>,
        wanted: Wanted,
    },
    Query {
        statement: Statement,
        parameters: Vec<Parameter>,
    },
}

/// What came back for a message.
pub(super) enum Answer {
    Done,
    Changed(u64),
    Rows(Vec<tokio_postgres::Row>),
}

pub(super) struct Session {
    runtime: tokio::runtime::Runtime,
    client: Client,
    statements: HashMap<String, Statement>,
    /// After a fault that leaves the connection in an unknown state.
    pub(super) is_lost: bool,
    pub(super) used_at: Instant,
    /// Times that the server was waited for.
    pub(super) round_trips: u64,
}

/// `?1` becomes `$1`; our statements have question marks nowhere else.
pub(super) fn translated(sql: &str) -> String {
    sql.replace('?', "$")
}

fn fault(error: &tokio_postgres::Error) -> SessionError {
    let Some(answered) = error.as_db_error() else {
        // The text of other faults may show a parameter, never does ours; `source` is told where
        // there is one.
        let reason =
            std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
        return if error.is_closed()
            || std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>())
        {
            SessionError::Lost(format!("the connection to PostgreSQL was lost: {reason}"))
        } else {
            SessionError::Answered(StoreError::Broken(format!("PostgreSQL: {reason}")))
        };
    };
    let code = answered.code();
    let class = code.code().get(..2).unwrap_or("");
    match (class, code) {
        (_, &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED) => {
            SessionError::Answered(StoreError::Conflict(
                "PostgreSQL ended one of two transactions that met",
            ))
        }
        (_, &SqlState::LOCK_NOT_AVAILABLE) => SessionError::Answered(StoreError::Locked),
        ("23", _) => {
            // The name of the constraint, and never the detail, which shows values.
            tracing::warn!(
                code = code.code(),
                constraint = answered.constraint(),
                table = answered.table(),
                "a constraint of the store refused a row"
            );
            SessionError::Answered(StoreError::Conflict("a constraint of the store"))
        }
        (_, &SqlState::QUERY_CANCELED) => SessionError::Answered(StoreError::Unavailable(
            "PostgreSQL took too long for a statement".into(),
        )),
        // A server that went down, came up as a standby, or has no place: another connection may
        // reach one that serves.
        ("08" | "57", _) | (_, &SqlState::READ_ONLY_SQL_TRANSACTION) => {
            SessionError::Lost(format!("PostgreSQL ended the connection ({})", code.code()))
        }
        ("53" | "58", _) => SessionError::Answered(StoreError::Unavailable(format!(
            "PostgreSQL lacks a resource ({})",
            code.code()
        ))),
        // A fault of ours in a statement: its text names tables and columns, not values.
        ("42", _) => SessionError::Answered(StoreError::Broken(format!(
            "PostgreSQL refused a statement ({}): {}",
            code.code(),
            answered.message()
        ))),
        ("25", _) => SessionError::Lost(format!(
            "a transaction stood otherwise than it should ({})",
            code.code()
        )),
        _ => SessionError::Answered(StoreError::Broken(format!(
            "PostgreSQL refused a statement ({})",
            code.code()
        ))),
    }
}

/// What a refused connection says to an operator.
fn connect_error(error: &tokio_postgres::Error) -> StoreError {
    match error.as_db_error() {
        Some(answered) => {
            let told = format!(
                "PostgreSQL refuses the connection: {} ({})",
                answered.message(),
                answered.code().code()
            );
            // A wrong password, name or database is not healed by waiting.
            let is_lasting = matches!(answered.code().code().get(..2), Some("28" | "3D" | "42"));
            if is_lasting { StoreError::Broken(told) } else { StoreError::Unavailable(told) }
        }
        None => {
            let reason = std::error::Error::source(error)
                .map_or_else(|| error.to_string(), ToString::to_string);
            StoreError::Unavailable(format!("PostgreSQL cannot be reached: {reason}"))
        }
    }
}

/// What a connection sets for itself, in one exchange. A server, database or role that calls a
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
    format!(
        "SET statement_timeout = '{STATEMENT_SECONDS_MAX}s'; SET lock_timeout = \
         '{LOCK_SECONDS_MAX}s'; \
         SET idle_in_transaction_session_timeout = '{IDLE_IN_TRANSACTION_SECONDS_MAX}s'; {commit}"
    )
}

/// A connection that is being made. It goes on while it is waited for, by one caller after the
/// other.
pub(super) struct Connecting {
    open: Pin<Box<dyn Future<Output = Result<Client, StoreError>>>>,
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
    pub(super) fn start(url: &PostgresUrl) -> Result<Connecting, StoreError> {
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
        let (settings, tls) = (settings(), url.tls.clone());
        let open = async move {
            let client = match tls {
                None => {
                    let (client, connection) =
                        config.connect(NoTls).await.map_err(|error| connect_error(&error))?;
                    tokio::spawn(connection);
                    client
                }
                Some(tls) => {
                    let tls = tokio_postgres_rustls::MakeRustlsConnect::new((*tls).clone());
                    let (client, connection) =
                        config.connect(tls).await.map_err(|error| connect_error(&error))?;
                    tokio::spawn(connection);
                    client
                }
            };
            client.batch_execute(&settings).await.map_err(|error| fault(&error).into_error())?;
            Ok(client)
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
            Ok(Ok(client)) => {
                let Connecting { runtime, .. } = self;
                let session = Session {
                    runtime,
                    client,
                    statements: HashMap::new(),
                    is_lost: false,
                    used_at: Instant::now(),
                    round_trips: 0,
                };
                Waited::Open(Box::new(session))
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
        match Connecting::start(url)?.wait(end) {
            Waited::Open(session) => Ok(*session),
            Waited::Failed(error) => Err(error),
            Waited::Still(connecting) => {
                connecting.give_up();
                Err(StoreError::Unavailable(SILENT.into()))
            }
        }
    }

    /// Prepares a statement, or finds it prepared.
    pub(super) fn statement(&mut self, sql: &str, end: Instant) -> Result<Statement, SessionError> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        statements::note(sql);
        let text = translated(sql);
        self.round_trips += 1;
        let client = &self.client;
        let prepared = self
            .runtime
            .block_on(async { tokio::time::timeout_at(end.into(), client.prepare(&text)).await });
        let statement = match prepared {
            Ok(Ok(statement)) => statement,
            Ok(Err(error)) => return Err(self.noted(fault(&error))),
            Err(_) => {
                return Err(self.noted(SessionError::Lost("PostgreSQL does not answer".into())));
            }
        };
        if self.statements.len() >= STATEMENTS_PREPARED_MAX {
            self.statements.clear();
        }
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn noted(&mut self, fault: SessionError) -> SessionError {
        if matches!(fault, SessionError::Lost(_)) {
            self.is_lost = true;
        }
        fault
    }

    /// Sends messages one after the other without waiting in between, and waits for all answers.
    /// The first fault stands for those it caused.
    pub(super) fn exchange(
        &mut self,
        messages: &[Message],
        end: Instant,
    ) -> Result<Vec<Answer>, SessionError> {
        self.round_trips += 1;
        let client = &self.client;
        let send = async |message: &Message| match message {
            Message::Control(sql) => client.batch_execute(sql).await.map(|()| Answer::Done),
            Message::Execute { statement, parameters, .. } => {
                client.execute_raw(statement, parameters).await.map(Answer::Changed)
            }
            Message::Query { statement, parameters } => {
                let parameters: Vec<&(dyn ToSql + Sync)> =
                    parameters.iter().map(|parameter| parameter as _).collect();
                client.query(statement, &parameters).await.map(Answer::Rows)
            }
        };
        let all = join_all(messages.iter().map(send));
        let answers =
            self.runtime.block_on(async { tokio::time::timeout_at(end.into(), all).await });
        self.used_at = Instant::now();
        let answers = match answers {
            Ok(answers) => answers,
            Err(_) => {
                return Err(self.noted(SessionError::Lost("PostgreSQL does not answer".into())));
            }
        };
        let answers: Result<Vec<Answer>, tokio_postgres::Error> = answers.into_iter().collect();
        answers.map_err(|error| self.noted(fault(&error)))
    }

    /// Ends a transaction that was refused while it was to be committed. A connection that cannot
    /// do that is of no more use.
    pub(super) fn undo(&mut self, end: Instant) {
        if self.exchange(&[Message::Control("ROLLBACK")], end).is_err() {
            self.is_lost = true;
        }
    }

    /// The database's clock, in milliseconds since 1970.
    pub(super) fn clock_milliseconds(&mut self) -> Result<i64, StoreError> {
        let end = Instant::now() + Duration::from_secs(CONNECT_SECONDS_MAX);
        let statement = self
            .statement("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)", end)
            .map_err(SessionError::into_error)?;
        let answers = self
            .exchange(&[Message::Query { statement, parameters: Vec::new() }], end)
            .map_err(SessionError::into_error)?;
        match answers.into_iter().next() {
            Some(Answer::Rows(rows)) => match rows.first().map(row) {
                Some(read) => read?.int(),
                None => Err(StoreError::Broken("PostgreSQL told no time".into())),
            },
            _ => Err(StoreError::Broken("PostgreSQL told no time".into())),
        }
    }

    /// Lets the connection notice that the server has closed it, and answers whether it is good as
    /// far as it knows.
    pub(super) fn is_open(&self) -> bool {
        self.runtime.block_on(async {
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        });
        !self.is_lost && !self.client.is_closed()
    }
}

/// A row as the slices read it: truth values are numbers, as on every store.
pub(super) fn row(row: &tokio_postgres::Row) -> Result<Row, StoreError> {
    let unreadable = |_| StoreError::Broken("a column of PostgreSQL does not read".into());
    let cells = row.columns().iter().enumerate().map(|(index, column)| {
        Ok(match *column.type_() {
            Type::INT8 => row
                .try_get::<_, Option<i64>>(index)
                .map_err(unreadable)?
                .map_or(Cell::Null, Cell::Int),
            Type::INT4 => row
                .try_get::<_, Option<i32>>(index)
                .map_err(unreadable)?
                .map_or(Cell::Null, |value| Cell::Int(i64::from(value))),
            Type::BOOL => row
                .try_get::<_, Option<bool>>(index)
                .map_err(unreadable)?
                .map_or(Cell::Null, |value| Cell::Int(i64::from(value))),
            Type::TEXT | Type::VARCHAR => row
                .try_get::<_, Option<String>>(index)
                .map_err(unreadable)?
                .map_or(Cell::Null, Cell::Text),
            Type::BYTEA => row
                .try_get::<_, Option<Vec<u8>>>(index)
                .map_err(unreadable)?
                .map_or(Cell::Null, Cell::Bytes),
            ref other => {
                return Err(StoreError::Broken(format!(
                    "a column has the type {other}, which no statement of ours should answer"
                )));
            }
        })
    });
    cells.collect::<Result<Vec<Cell>, StoreError>>().map(Row::new)
}
