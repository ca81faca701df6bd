//! One connection: its prepared statements, what is sent together, and what its faults mean.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio_postgres::config::{LoadBalanceHosts, TargetSessionAttrs};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage, Statement};

use super::fence::{self, Fence, Mark, Position};
use super::url::PostgresUrl;
use super::{
    CONNECT_SECONDS_MAX, IDLE_IN_TRANSACTION_SECONDS_MAX, LOCK_SECONDS_MAX, STATEMENT_SECONDS_MAX,
};
use crate::kernel::StoreError;
use crate::store::{Cell, Row, Value, failpoint, statements};

/// Statements that a connection keeps prepared; with more it forgets them all and begins anew.
const STATEMENTS_PREPARED_MAX: usize = 1_024;

/// Said where sessions share back ends.
pub(super) const POOLER: &str = "a connection pooler between hundi and PostgreSQL gives out \
    connections by transaction, and hundi needs its own: connect to PostgreSQL itself, or set the \
    pooler to session mode (PgBouncer: pool_mode = session) with at least as many connections as \
    HUNDI_DATABASE_CONNECTIONS on every node, and one more for each";

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
    /// The fence's generation when the server was admitted.
    pub(super) generation: u64,
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
        // Statements that this session prepared are gone, or others' are in their place.
        (_, &SqlState::INVALID_SQL_STATEMENT_NAME | &SqlState::DUPLICATE_PSTATEMENT) => {
            tracing::error!(alarm = "pooler", code = code.code(), "{POOLER}");
            SessionError::Lost(POOLER.into())
        }
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
        "SET enable_seqscan = {scans}; SET jit = off; SET statement_timeout = '{STATEMENT_SECONDS_MAX}s'; SET lock_timeout = \
         '{LOCK_SECONDS_MAX}s'; \
         SET idle_in_transaction_session_timeout = '{IDLE_IN_TRANSACTION_SECONDS_MAX}s'; {commit}"
    )
}

/// Reads where a server is and judges it; answers the fence's generation. An engine that has no
/// such functions, or lets the role read none, is not fenced.
async fn admit(client: &Client, fence: &Fence) -> Result<u64, StoreError> {
    let before = fence.known();
    let Some(position) = position(client).await? else { return Ok(fence.generation()) };
    let sql =
        format!("SELECT convert_from(value, 'UTF8') FROM meta WHERE name = '{}'", fence::MARK_NAME);
    let mark = match client.simple_query(&sql).await {
        Ok(messages) => first_row(&messages)
            .and_then(|row| Mark::parse(row.get(0)?.as_bytes()))
            .unwrap_or_default(),
        // A database that has no schema yet.
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Mark::default(),
        Err(error) => return Err(fault(&error).into_error()),
    };
    fence.admit(before, position, mark)
}

/// `None` where the server does not say.
async fn position(client: &Client) -> Result<Option<Position>, StoreError> {
    let messages = match client.simple_query(fence::POSITION).await {
        Ok(messages) => messages,
        Err(error)
            if error
                .code()
                .is_some_and(|code| matches!(code.code().get(..2), Some("42" | "0A" | "55"))) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(fault(&error).into_error()),
    };
    let numbers: Option<Vec<i64>> = first_row(&messages)
        .and_then(|row| (0..4).map(|index| row.get(index)?.parse().ok()).collect());
    Ok(numbers.and_then(|numbers| match numbers[..] {
        [system, timeline, inserted, flushed] => {
            Some(Position { system, timeline, inserted, flushed })
        }
        _ => None,
    }))
}

fn first_row(messages: &[SimpleQueryMessage]) -> Option<&tokio_postgres::SimpleQueryRow> {
    messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    })
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

/// A connection that is being made. It goes on while it is waited for, by one caller after the
/// other.
pub(super) struct Connecting {
    open: Pin<Box<dyn Future<Output = Result<(Client, u64), StoreError>>>>,
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
            let generation = match fence {
                None => 0,
                Some(fence) => admit(&client, &fence).await?,
            };
            Ok((client, generation))
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
            Ok(Ok((client, generation))) => {
                let Connecting { runtime, .. } = self;
                let session = Session {
                    runtime,
                    client,
                    statements: HashMap::new(),
                    is_lost: false,
                    used_at: Instant::now(),
                    round_trips: 0,
                    generation,
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

    /// Reads where the server is and the mark, and judges them anew.
    pub(super) fn admit_again(&mut self, fence: &Fence, end: Instant) -> Result<(), StoreError> {
        let client = &self.client;
        let admitted = self
            .runtime
            .block_on(async { tokio::time::timeout_at(end.into(), admit(client, fence)).await });
        self.used_at = Instant::now();
        let outcome = admitted
            .unwrap_or_else(|_| Err(StoreError::Unavailable("PostgreSQL does not answer".into())));
        match outcome {
            Ok(generation) => {
                self.generation = generation;
                Ok(())
            }
            Err(error) => {
                self.is_lost = true;
                Err(error)
            }
        }
    }

    /// The number of the server's process.
    pub(super) fn back_end(&mut self, end: Instant) -> Result<i64, StoreError> {
        self.number("SELECT CAST(pg_backend_pid() AS BIGINT)", end)
    }

    /// The only number of a query.
    fn number(&mut self, sql: &str, end: Instant) -> Result<i64, StoreError> {
        let statement = self.statement(sql, end).map_err(SessionError::into_error)?;
        let message = Message::Query { statement, parameters: Vec::new() };
        let answers = self.exchange(&[message], end).map_err(SessionError::into_error)?;
        match answers.first() {
            Some(Answer::Rows(rows)) => match rows.first().map(row) {
                Some(read) => read?.int(),
                None => Err(StoreError::Broken("PostgreSQL answered no number".into())),
            },
            _ => Err(StoreError::Broken("PostgreSQL answered no number".into())),
        }
    }

    /// The database's clock, in milliseconds since 1970.
    pub(super) fn clock_milliseconds(&mut self) -> Result<i64, StoreError> {
        let end = Instant::now() + Duration::from_secs(CONNECT_SECONDS_MAX);
        self.number("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)", end)
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
