//! One connection: its prepared statements, and what is sent together.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type};
use tokio_postgres::{Client, NoTls, Statement};

use super::CONNECT_SECONDS_MAX;
use super::acknowledged::Footprint;
use super::admit::admit;
use super::faults::{POOLER, SessionError, fault};
use super::fence::{Admission, Fence};
use super::url::connector;
use crate::kernel::StoreError;
use crate::store::{Cell, Row, Value, failpoint, statements};

/// A connection that was made.
pub(super) struct Open {
    pub client: Client,
    /// `None` if the connection is not encrypted.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// Set by a warning of the server, such as that a commit did not wait for its standby.
    pub is_warned: Arc<AtomicBool>,
    /// The fence that admitted the server (`fence.rs`), and what it decided; `None` if no fence was
    /// asked.
    pub admission: Option<(Arc<Fence>, Admission)>,
}

/// How many statements a connection keeps prepared. If there are more, it drops all of them and
/// begins anew.
const STATEMENTS_PREPARED_MAX: usize = 1_024;

/// A parameter. It owns its value, because it may be sent later.
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
            // The value may be personal data, so the message does not show it.
            _ => Err(format!("a parameter of another type than the column's {ty}").into()),
        }
    }
    fn accepts(_: &Type) -> bool {
        true
    }
    tokio_postgres::types::to_sql_checked!();
}

/// How many rows a statement must change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    /// Any number: the caller gets the count.
    Any,
    /// This many. The server does not treat another number as an error, so `tx.rs` does.
    Exactly(u64),
    /// This many, and the server itself refuses anything else.
    Inserted(u64),
}

/// One message of an exchange.
#[derive(Debug)]
pub(super) enum SessionMessage {
    /// Begins or ends a transaction or a savepoint, or rolls back to a savepoint.
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

/// The answer to a message.
pub(super) enum SessionAnswer {
    Done,
    Changed(u64),
    Rows(Vec<tokio_postgres::Row>),
}

pub(super) struct PgSession {
    runtime: tokio::runtime::Runtime,
    client: Client,
    tls: Option<Arc<rustls::ClientConfig>>,
    statements: HashMap<String, Statement>,
    /// Set if the connection must not be used any more.
    pub(super) is_lost: bool,
    pub(super) used_at: Instant,
    /// How often the server was waited for.
    pub(super) round_trips: u64,
    /// Set by the server's warnings.
    is_warned: Arc<AtomicBool>,
    /// The fence that admitted the server, and what it decided; `None` if no fence was asked.
    admission: Option<(Arc<Fence>, Admission)>,
}

/// `?1` becomes `$1`. Our statements have no other question marks.
pub(super) fn translated(sql: &str) -> String {
    sql.replace('?', "$")
}

impl PgSession {
    /// A connection that was just made.
    pub(super) fn new(runtime: tokio::runtime::Runtime, open: Open) -> PgSession {
        let Open { client, tls, is_warned, admission } = open;
        PgSession {
            runtime,
            client,
            tls,
            statements: HashMap::new(),
            is_lost: false,
            used_at: Instant::now(),
            round_trips: 0,
            is_warned,
            admission,
        }
    }

    /// Whether the connection must not be used any more: it was lost, or the fence's generation has
    /// risen since it admitted the server. The generation rises at a fail-over, and when the
    /// operator resumes.
    pub(super) fn is_over(&self) -> bool {
        let is_fenced_off = |(fence, admission): &(Arc<Fence>, Admission)| {
            admission.generation != fence.generation()
        };
        self.is_lost || self.admission.as_ref().is_some_and(is_fenced_off)
    }

    /// How many commits the node has acknowledged. `None` if commits on this connection are not
    /// noted: no fence admitted it, or the server does not say its position.
    pub(super) fn acknowledged_count(&self) -> Option<u64> {
        let (fence, admission) = self.admission.as_ref()?;
        admission.timeline.map(|_| fence.acknowledged_count())
    }

    /// Forgets warnings from before a commit.
    pub(super) fn forget_warnings(&self) {
        self.is_warned.store(false, Ordering::SeqCst);
    }

    /// Checks whether a commit that the server reported counts as done. `Err` says why it does not;
    /// then the connection counts as lost.
    pub(super) fn acknowledge(&mut self, footprint: Option<Footprint>) -> Result<(), String> {
        let reason = if self.is_warned.swap(false, Ordering::SeqCst) {
            "the server did not wait for its standby"
        } else if self
            .admission
            .as_ref()
            .is_some_and(|(fence, admission)| !fence.acknowledge(*admission, footprint))
        {
            "the database failed over meanwhile"
        } else {
            return Ok(());
        };
        self.is_lost = true;
        Err(reason.into())
    }

    /// Prepares a statement, or finds it prepared.
    pub(super) fn statement(&mut self, sql: &str, end: Instant) -> Result<Statement, SessionError> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        statements::note(sql);
        let text = translated(sql);
        self.round_trips += 1;
        let statement = match self.awaited(self.client.prepare(&text), end) {
            Ok(Ok(statement)) => statement,
            Ok(Err(error)) => return Err(self.noted(fault(&error))),
            Err(lost) => return Err(self.noted(lost)),
        };
        if self.statements.len() >= STATEMENTS_PREPARED_MAX {
            self.statements.clear();
        }
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Waits for the server until `end`, or until the fence's generation rises.
    fn awaited<F: Future>(&self, answer: F, end: Instant) -> Result<F::Output, SessionError> {
        let is_replaced = async {
            match &self.admission {
                Some((fence, admission)) => fence.wait_until_past(admission.generation).await,
                None => std::future::pending().await,
            }
        };
        let awaited = self.runtime.block_on(async {
            tokio::select! {
                biased;
                answered = tokio::time::timeout_at(end.into(), answer) => Some(answered),
                () = is_replaced => None,
            }
        });
        match awaited {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(_)) => {
                self.cancel();
                Err(SessionError::Lost("PostgreSQL does not answer".into()))
            }
            None => Err(SessionError::Lost("the database failed over meanwhile".into())),
        }
    }

    /// On a thread of its own, asks the server to end a statement that nobody waits for any more.
    /// Otherwise a commit that waits for a standby would hold its back end for seconds, while the
    /// lane makes a new connection.
    fn cancel(&self) {
        if failpoint("no_cancel") {
            return;
        }
        let (token, tls) = (self.client.cancel_token(), self.tls.clone());
        let cancel = async move {
            match &tls {
                None => token.cancel_query(NoTls).await,
                Some(tls) => token.cancel_query(connector(tls)).await,
            }
        };
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            if let Ok(runtime) = runtime {
                let end = Duration::from_secs(CONNECT_SECONDS_MAX);
                // If the server does not answer, its own time limit ends the statement.
                let _ = runtime.block_on(async { tokio::time::timeout(end, cancel).await });
                runtime.shutdown_background();
            }
        };
        let _ = std::thread::Builder::new().name("database-cancel".into()).spawn(run);
    }

    /// Returns the error, and notes if the connection is lost or its back end is shared.
    fn noted(&mut self, fault: SessionError) -> SessionError {
        if let SessionError::Lost(reason) = &fault {
            self.is_lost = true;
            if reason == POOLER
                && let Some((fence, _)) = &self.admission
            {
                fence.is_pooled.store(true, Ordering::Relaxed);
            }
        }
        fault
    }

    /// Sends all messages without waiting in between, and then waits for all answers. `Err` is the
    /// first error; later ones follow from it.
    pub(super) fn exchange(
        &mut self,
        messages: &[SessionMessage],
        end: Instant,
    ) -> Result<Vec<SessionAnswer>, SessionError> {
        self.round_trips += 1;
        let client = &self.client;
        let send = async |message: &SessionMessage| match message {
            SessionMessage::Control(sql) => {
                client.batch_execute(sql).await.map(|()| SessionAnswer::Done)
            }
            SessionMessage::Execute { statement, parameters, .. } => {
                client.execute_raw(statement, parameters).await.map(SessionAnswer::Changed)
            }
            SessionMessage::Query { statement, parameters } => {
                let parameters: Vec<&(dyn ToSql + Sync)> =
                    parameters.iter().map(|parameter| parameter as _).collect();
                client.query(statement, &parameters).await.map(SessionAnswer::Rows)
            }
        };
        let all = join_all(messages.iter().map(send));
        let answers = self.awaited(all, end);
        self.used_at = Instant::now();
        let answers = answers.map_err(|lost| self.noted(lost))?;
        let answers: Result<Vec<SessionAnswer>, tokio_postgres::Error> =
            answers.into_iter().collect();
        answers.map_err(|error| self.noted(fault(&error)))
    }

    /// Rolls back a transaction that was refused at its commit. If that fails, the connection
    /// counts as lost.
    pub(super) fn undo(&mut self, end: Instant) {
        if self.exchange(&[SessionMessage::Control("ROLLBACK")], end).is_err() {
            self.is_lost = true;
        }
    }

    /// Reads the server's position and the database's mark, and has the fence judge them again.
    pub(super) fn admit_again(&mut self, end: Instant) -> Result<(), StoreError> {
        let client = &self.client;
        let Some((fence, admission)) = &mut self.admission else { return Ok(()) };
        let admitted = self
            .runtime
            .block_on(async { tokio::time::timeout_at(end.into(), admit(client, fence)).await });
        self.used_at = Instant::now();
        let outcome = admitted
            .unwrap_or_else(|_| Err(StoreError::Unavailable("PostgreSQL does not answer".into())));
        match outcome {
            Ok(admitted) => {
                *admission = admitted;
                Ok(())
            }
            Err(error) => {
                self.is_lost = true;
                Err(error)
            }
        }
    }

    /// The process number of the server's back end.
    pub(super) fn back_end(&mut self, end: Instant) -> Result<i64, StoreError> {
        self.number("SELECT CAST(pg_backend_pid() AS BIGINT)", end)
    }

    /// Runs a query that answers one number.
    pub(super) fn number(&mut self, sql: &str, end: Instant) -> Result<i64, StoreError> {
        let statement = self.statement(sql, end).map_err(SessionError::into_error)?;
        let message = SessionMessage::Query { statement, parameters: Vec::new() };
        let answers = self.exchange(&[message], end).map_err(SessionError::into_error)?;
        match answers.first() {
            Some(SessionAnswer::Rows(rows)) => match rows.first().map(row) {
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

    /// Lets the connection notice that the server has closed it. Answers whether the connection is
    /// still good, as far as is known.
    pub(super) fn is_open(&self) -> bool {
        self.runtime.block_on(async {
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        });
        !self.is_lost && !self.client.is_closed()
    }
}

/// A row as `rows.rs` files read it: booleans are numbers, as on every store.
pub(super) fn row(row: &tokio_postgres::Row) -> Result<Row, StoreError> {
    let unreadable = |_| StoreError::Broken("a column of PostgreSQL cannot be read".into());
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
