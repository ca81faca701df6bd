//! One transaction on one connection. What need not be answered at once is sent together with what follows.

use std::time::Instant;

use super::session::{Answer, Fault, Message, Parameter, Session, Wanted, row};
use crate::kernel::StoreError;
use crate::store::key_parts::KeyParts;
use crate::store::{Row, Signal, Tx, Value};

/// What a transaction is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Write,
    /// One view for all its statements.
    Read,
    /// The same, for work that takes long.
    Examine,
    /// Waits for other nodes' migrations.
    Migrate,
}

impl Kind {
    const fn begin(self) -> &'static str {
        match self {
            Kind::Write => "BEGIN ISOLATION LEVEL READ COMMITTED",
            Kind::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Kind::Examine => {
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0; \
                 SET LOCAL idle_in_transaction_session_timeout = 0"
            }
            Kind::Migrate => "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '90s'; SET LOCAL statement_timeout = '100s'",
        }
    }
}

/// Why a commit is not known to have taken place.
#[derive(Debug)]
pub(super) enum CommitFault {
    /// Nothing was kept.
    Refused(StoreError),
    /// The connection was lost while it was under way.
    Unknown(String),
}

impl CommitFault {
    pub(super) fn into_error(self) -> StoreError {
        match self {
            CommitFault::Refused(error) => error,
            CommitFault::Unknown(reason) => StoreError::Unavailable(format!("whether a commit took place is not known: {reason}")),
        }
    }
}

pub(super) struct PgTx<'c> {
    session: &'c mut Session,
    kind: Kind,
    end: Instant,
    /// What goes before the next message.
    waiting: Vec<Message>,
    parts_open: u32,
    key_parts: KeyParts,
    pub(super) signals: Vec<Signal>,
}

impl<'c> PgTx<'c> {
    /// A transaction that has to be over at `end`. Its BEGIN goes with its first statement.
    pub(super) fn begin(session: &'c mut Session, kind: Kind, end: Instant) -> PgTx<'c> {
        PgTx {
            session,
            kind,
            end,
            waiting: vec![Message::Control(kind.begin())],
            parts_open: 0,
            key_parts: KeyParts::single(),
            signals: Vec::new(),
        }
    }

    pub(super) const fn is_lost(&self) -> bool {
        self.session.is_lost
    }

    fn statement(&mut self, sql: &str, values: &[Value<'_>]) -> Result<(tokio_postgres::Statement, Vec<Parameter>), StoreError> {
        let statement = self.session.statement(sql, self.end).map_err(Fault::into_error)?;
        Ok((statement, values.iter().map(Parameter::from).collect()))
    }

    /// Sends what waits and one message more; answers what came back for the last.
    fn send(&mut self, message: Message) -> Result<Answer, StoreError> {
        self.exchange(message).map_err(Fault::into_error)
    }

    fn exchange(&mut self, message: Message) -> Result<Answer, Fault> {
        self.waiting.push(message);
        let messages = std::mem::take(&mut self.waiting);
        let mut answers = self.session.exchange(&messages, self.end)?;
        for (message, answer) in messages.iter().zip(&answers) {
            if let (Message::Execute { wanted: Wanted::One | Wanted::OneInserted, .. }, Answer::Changed(count)) = (message, answer)
                && *count != 1
            {
                return Err(Fault::Answered(StoreError::Conflict("a row was changed by another transaction")));
            }
        }
        answers.pop().ok_or_else(|| Fault::Answered(StoreError::Broken("PostgreSQL answered nothing".into())))
    }

    fn control(&mut self, sql: &'static str) -> Result<(), StoreError> {
        self.send(Message::Control(sql)).map(|_| ())
    }

    /// Sends what waits, so that its faults show now.
    fn settle(&mut self) -> Result<(), StoreError> {
        match self.waiting.pop() {
            None => Ok(()),
            Some(last) => self.send(last).map(|_| ()),
        }
    }

    /// Whether anything was sent.
    fn is_begun(&self) -> bool {
        !matches!(self.waiting.first(), Some(Message::Control(sql)) if *sql == self.kind.begin())
    }

    pub(super) fn commit(mut self) -> Result<(), CommitFault> {
        if !self.is_begun() && self.waiting.len() == 1 {
            return Ok(());
        }
        // An update that changed no row is no fault to PostgreSQL, so it is known before COMMIT is sent.
        if self.waiting.iter().any(|message| matches!(message, Message::Execute { wanted: Wanted::Any | Wanted::One, .. })) {
            self.settle().map_err(CommitFault::Refused)?;
        }
        self.exchange(Message::Control("COMMIT")).map(|_| ()).map_err(|fault| match fault {
            Fault::Answered(error) => CommitFault::Refused(error),
            Fault::Lost(reason) => CommitFault::Unknown(reason),
        })
    }

    /// Undoes everything. A connection that cannot do that is of no more use.
    pub(super) fn roll_back(mut self) {
        if !self.is_begun() || self.session.is_lost {
            return;
        }
        self.waiting.clear();
        if self.control("ROLLBACK").is_err() {
            self.session.is_lost = true;
        }
    }
}

impl Tx for PgTx<'_> {
    fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        let (statement, parameters) = self.statement(sql, values)?;
        match self.send(Message::Execute { statement, parameters, wanted: Wanted::Any })? {
            Answer::Changed(count) => Ok(count),
            Answer::Done | Answer::Rows(_) => Err(StoreError::Broken("PostgreSQL answered no count".into())),
        }
    }

    fn execute_one(&mut self, sql: &str, values: &[Value<'_>]) -> Result<(), StoreError> {
        let (statement, parameters) = self.statement(sql, values)?;
        let is_insert = sql.starts_with("INSERT") && !sql.contains("ON CONFLICT") && !sql.contains("SELECT");
        let wanted = if is_insert { Wanted::OneInserted } else { Wanted::One };
        self.waiting.push(Message::Execute { statement, parameters, wanted });
        // Within a part a fault has to show before the part ends, and the part's caller expects it where it is.
        if self.parts_open > 0 { self.settle() } else { Ok(()) }
    }

    fn rows(&mut self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        let (statement, parameters) = self.statement(sql, values)?;
        match self.send(Message::Query { statement, parameters })? {
            Answer::Rows(rows) => rows.iter().map(row).collect(),
            Answer::Done | Answer::Changed(_) => Err(StoreError::Broken("PostgreSQL answered no rows".into())),
        }
    }

    fn part_begin(&mut self) -> Result<(), StoreError> {
        self.parts_open += 1;
        self.waiting.push(Message::Control(match self.parts_open {
            1 => "SAVEPOINT part_1",
            2 => "SAVEPOINT part_2",
            _ => return Err(StoreError::Broken("parts of a transaction nest at most twice".into())),
        }));
        // What came before the part must not fail within it.
        self.settle()
    }

    fn part_end(&mut self, keep: bool) -> Result<(), StoreError> {
        let sql = match (self.parts_open, keep) {
            (1, true) => "RELEASE SAVEPOINT part_1",
            (2, true) => "RELEASE SAVEPOINT part_2",
            (1, false) => "ROLLBACK TO SAVEPOINT part_1; RELEASE SAVEPOINT part_1",
            (2, false) => "ROLLBACK TO SAVEPOINT part_2; RELEASE SAVEPOINT part_2",
            _ => return Err(StoreError::Broken("no part of a transaction is open".into())),
        };
        self.parts_open -= 1;
        self.control(sql)
    }

    /// Outside every part this undoes the whole transaction and begins it again.
    fn part_undo(&mut self) -> Result<(), StoreError> {
        match self.parts_open {
            0 if !self.is_begun() => {
                self.waiting.truncate(1);
                Ok(())
            }
            0 => {
                self.waiting.clear();
                self.waiting.push(Message::Control("ROLLBACK"));
                self.control(self.kind.begin())
            }
            1 => self.control("ROLLBACK TO SAVEPOINT part_1"),
            2 => self.control("ROLLBACK TO SAVEPOINT part_2"),
            _ => Err(StoreError::Broken("no part of a transaction is open".into())),
        }
    }

    fn signal(&mut self, signal: Signal) {
        if !self.signals.contains(&signal) {
            self.signals.push(signal);
        }
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn key_parts(&mut self) -> Result<&mut KeyParts, StoreError> {
        Ok(&mut self.key_parts)
    }
}
