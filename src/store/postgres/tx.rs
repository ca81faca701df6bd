//! One transaction on one connection. A statement whose answer is not needed at once is sent
//! together with the next one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::acknowledged::{self, Footprint};
use super::faults::{CommitError, SessionError};
use super::id_floor::{self, IdFloor};
use super::kind::TransactionKind;
use super::many_rows::{self, UpdateForm};
use super::session::{Parameter, PgSession, SessionAnswer, SessionMessage, Wanted, row};
use crate::kernel::id::Minter;
use crate::kernel::{InternalId, StoreError};
use crate::store::key_segments::KeySegments;
use crate::store::pending_signals::PendingSignals;
use crate::store::{EachUpdate, Row, Signal, Tx, Value, VisibilityFloor};

/// A query that [`Tx::prefetch`] was given, with its answer once it was sent.
struct PrefetchedQuery {
    sql: String,
    statement: tokio_postgres::Statement,
    parameters: Vec<Parameter>,
    rows: Option<Vec<tokio_postgres::Row>>,
}

pub(super) struct PgTx<'c> {
    session: &'c mut PgSession,
    kind: TransactionKind,
    end: Instant,
    /// Messages that are sent together with the next one.
    waiting: Vec<SessionMessage>,
    prefetched: Vec<PrefetchedQuery>,
    savepoints_open: u32,
    /// Whether a row was changed or locked, so that the commit writes to the log.
    has_written: bool,
    key_segments: KeySegments,
    pub(super) signals: PendingSignals,
    /// Mints the identifiers of a writing transaction.
    minter: Option<Minter>,
    /// The database's time after this writing transaction announced itself (`id_floor.rs`).
    announced_milliseconds: Option<i64>,
    /// For a read: the floor known before the snapshot, and where the node keeps its highest floor.
    floor: Option<(u128, Arc<IdFloor>)>,
    update_form: UpdateForm,
}

impl<'c> PgTx<'c> {
    /// A transaction with the deadline `end`. Its BEGIN is sent with its first statement.
    pub(super) fn begin(session: &'c mut PgSession, kind: TransactionKind, end: Instant) -> Self {
        PgTx {
            session,
            kind,
            end,
            waiting: vec![SessionMessage::Control(kind.begin())],
            prefetched: Vec::new(),
            savepoints_open: 0,
            has_written: false,
            key_segments: KeySegments::single(),
            signals: PendingSignals::default(),
            minter: None,
            announced_milliseconds: None,
            floor: None,
            update_form: UpdateForm::OneByOne,
        }
    }

    /// Sets how [`Tx::update_each`] is sent. The server must support this form.
    pub(super) fn updating(mut self, form: UpdateForm) -> PgTx<'c> {
        self.update_form = form;
        self
    }

    /// Makes a writing transaction announce itself with its first statement (`id_floor.rs`).
    /// `minter` mints its identifiers.
    pub(super) fn announcing(mut self, minter: Minter) -> PgTx<'c> {
        self.minter = Some(minter);
        self
    }

    /// Lets a transaction that reads find the floor of visible identifiers.
    pub(super) fn with_floor(mut self, floor: &Arc<IdFloor>) -> PgTx<'c> {
        self.floor = Some((floor.get(), floor.clone()));
        self
    }

    /// The database's time after this transaction was announced. Announces it now if nothing was
    /// sent so far. `None` if the transaction has no minter.
    pub(super) fn announce(&mut self) -> Result<Option<i64>, StoreError> {
        if self.announced_milliseconds.is_none() && self.minter.is_some() {
            let rest = self.waiting.split_off(1);
            let begin = self.waiting.pop();
            if let Some(begin) = begin {
                self.send(begin)?;
            }
            self.waiting = rest;
        }
        Ok(self.announced_milliseconds)
    }

    /// If BEGIN waits to be sent, inserts the announcement after it and answers its index.
    fn insert_announcement(&mut self) -> Result<Option<usize>, SessionError> {
        if self.minter.is_none() || self.is_begun() {
            return Ok(None);
        }
        let statement = self.session.statement(id_floor::ANNOUNCE_WRITER, self.end)?;
        self.waiting.insert(1, SessionMessage::Query { statement, parameters: Vec::new() });
        Ok(Some(1))
    }

    /// Reads the answer to the announcement.
    fn note_announcement(&mut self, answer: &SessionAnswer) -> Result<(), SessionError> {
        let milliseconds = match answer {
            SessionAnswer::Rows(rows) => rows.first().and_then(|row| row.try_get::<_, i64>(1).ok()),
            SessionAnswer::Done | SessionAnswer::Changed(_) => None,
        };
        let milliseconds = milliseconds.ok_or_else(|| {
            SessionError::Answered(StoreError::Broken("PostgreSQL answered no time".into()))
        })?;
        self.announced_milliseconds = Some(milliseconds);
        if let Some(minter) = &self.minter {
            minter.not_before(milliseconds);
        }
        Ok(())
    }

    /// Asks which transactions are announced. Answers the database's time then, and the floor.
    fn look_for_floor(&mut self) -> Result<(i64, u128), StoreError> {
        let statement = self
            .session
            .statement(id_floor::RUNNING, self.end)
            .map_err(SessionError::into_error)?;
        let message = SessionMessage::Query { statement, parameters: Vec::new() };
        let answers =
            self.session.exchange(&[message], self.end).map_err(SessionError::into_error)?;
        let Some(SessionAnswer::Rows(rows)) = answers.first() else {
            return Err(StoreError::Broken("PostgreSQL answered no rows".into()));
        };
        let mut bound = None;
        for read in rows {
            let mut read = row(read)?;
            let (look_milliseconds, objid) = (read.int()?, read.int_or_null()?);
            let announced = |objid| id_floor::announced_milliseconds_of(objid, look_milliseconds);
            let found = objid.map_or(look_milliseconds, announced);
            bound = Some((look_milliseconds, bound.map_or(found, |(_, lowest)| found.min(lowest))));
        }
        let (look_milliseconds, lowest) =
            bound.ok_or_else(|| StoreError::Broken("PostgreSQL answered no time".into()))?;
        Ok((look_milliseconds, id_floor::first_id(lowest)))
    }

    pub(super) const fn is_lost(&self) -> bool {
        self.session.is_lost
    }

    fn statement(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<(tokio_postgres::Statement, Vec<Parameter>), StoreError> {
        let statement = self.session.statement(sql, self.end).map_err(SessionError::into_error)?;
        Ok((statement, values.iter().map(Parameter::from).collect()))
    }

    /// Sends the waiting messages and this one; returns the response to this one.
    fn send(&mut self, message: SessionMessage) -> Result<SessionAnswer, StoreError> {
        self.exchange(message).map_err(SessionError::into_error)
    }

    fn exchange(&mut self, message: SessionMessage) -> Result<SessionAnswer, SessionError> {
        self.exchange_all(message)?.pop().ok_or_else(|| {
            SessionError::Answered(StoreError::Broken("PostgreSQL answered nothing".into()))
        })
    }

    /// Like [`PgTx::send`], with the responses to the waiting messages too.
    fn exchange_all(
        &mut self,
        message: SessionMessage,
    ) -> Result<Vec<SessionAnswer>, SessionError> {
        // A control message may end the transaction, so no prefetched query is sent after it.
        let is_control = matches!(message, SessionMessage::Control(_));
        self.waiting.push(message);
        let announcement = self.insert_announcement()?;
        let mut messages = std::mem::take(&mut self.waiting);
        let own_count = messages.len();
        let mut prefetched = std::mem::take(&mut self.prefetched);
        if !is_control {
            let unsent = prefetched.iter().filter(|query| query.rows.is_none());
            messages.extend(unsent.map(|query| SessionMessage::Query {
                statement: query.statement.clone(),
                parameters: query.parameters.clone(),
            }));
        }
        let mut answers = self.session.exchange(&messages, self.end)?;
        let prefetched_answers = answers.split_off(own_count);
        for (query, answer) in
            prefetched.iter_mut().filter(|query| query.rows.is_none()).zip(prefetched_answers)
        {
            if let SessionAnswer::Rows(rows) = answer {
                query.rows = Some(rows);
            }
        }
        self.prefetched = prefetched;
        if let Some(answer) = announcement.and_then(|place| answers.get(place)) {
            self.note_announcement(answer)?;
        }
        for (message, answer) in messages.iter().zip(&answers) {
            if let (
                SessionMessage::Execute {
                    wanted: Wanted::Exactly(wanted) | Wanted::Inserted(wanted),
                    ..
                },
                SessionAnswer::Changed(count),
            ) = (message, answer)
                && count != wanted
            {
                return Err(SessionError::Answered(StoreError::Conflict(
                    "a row was changed by another transaction",
                )));
            }
        }
        self.has_written |=
            answers.iter().any(|answer| matches!(answer, SessionAnswer::Changed(1..)));
        Ok(answers)
    }

    fn control(&mut self, sql: &'static str) -> Result<(), StoreError> {
        self.send(SessionMessage::Control(sql)).map(|_| ())
    }

    /// Sends the waiting messages, so that their errors show now.
    fn flush(&mut self) -> Result<(), StoreError> {
        match self.waiting.pop() {
            None => Ok(()),
            Some(last) => self.send(last).map(|_| ()),
        }
    }

    /// Drops prefetched answers, because a write may change them.
    fn forget_answers(&mut self) {
        self.prefetched.retain(|query| query.rows.is_none());
    }

    /// Takes the answer to a prefetched query; `None` if it was not prefetched, or not sent yet.
    fn prefetch_of(&mut self, sql: &str, values: &[Value<'_>]) -> Option<Vec<tokio_postgres::Row>> {
        let is_same = |query: &PrefetchedQuery| {
            query.sql == sql
                && query.parameters.len() == values.len()
                && query
                    .parameters
                    .iter()
                    .zip(values)
                    .all(|(sent, value)| *sent == Parameter::from(value))
        };
        let place = self.prefetched.iter().position(is_same)?;
        self.prefetched.swap_remove(place).rows
    }

    /// Whether BEGIN was sent.
    fn is_begun(&self) -> bool {
        let begin = self.kind.begin();
        !matches!(self.waiting.first(), Some(SessionMessage::Control(sql)) if *sql == begin)
    }

    pub(super) fn commit(mut self) -> Result<(), CommitError> {
        if !self.is_begun() && self.waiting.len() == 1 {
            return Ok(());
        }
        // To PostgreSQL an update that changed no row is no error. So the counts of updates must be
        // known before COMMIT is sent.
        if self.waiting.iter().any(|message| {
            matches!(
                message,
                SessionMessage::Execute { wanted: Wanted::Any | Wanted::Exactly(_), .. }
            )
        }) {
            self.flush().map_err(CommitError::Refused)?;
        }
        self.session.forget_warnings();
        let acknowledged_before = self.ask_footprint().map_err(CommitError::from)?;
        let mut answers =
            self.exchange_all(SessionMessage::Control("COMMIT")).map_err(CommitError::from)?;
        answers.pop();
        let footprint = acknowledged_before
            .filter(|_| self.has_written)
            .zip(answers.pop())
            .and_then(|(acknowledged_before, answer)| footprint(&answer, acknowledged_before));
        self.session.acknowledge(footprint).map_err(CommitError::Unknown)
    }

    /// If the transaction writes, asks for its footprint (`acknowledged.rs`) before the COMMIT, and
    /// answers how many commits the node had acknowledged before.
    fn ask_footprint(&mut self) -> Result<Option<u64>, SessionError> {
        let is_execute =
            |message: &SessionMessage| matches!(message, SessionMessage::Execute { .. });
        if !self.has_written && !self.waiting.iter().any(is_execute) {
            return Ok(None);
        }
        let Some(acknowledged_before) = self.session.acknowledged_count() else { return Ok(None) };
        let statement = self.session.statement(acknowledged::FOOTPRINT, self.end)?;
        self.waiting.push(SessionMessage::Query { statement, parameters: Vec::new() });
        Ok(Some(acknowledged_before))
    }

    /// Rolls everything back. If that fails, the connection counts as lost.
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

fn footprint(answer: &SessionAnswer, acknowledged_before: u64) -> Option<Footprint> {
    let SessionAnswer::Rows(rows) = answer else { return None };
    let mut row = row(rows.first()?).ok()?;
    let (position, transaction) = (row.int().ok()?, row.int_or_null().ok()??);
    Some(Footprint { position, transaction, acknowledged_before })
}

impl PgTx<'_> {
    fn end_savepoint(&mut self, keep: bool) -> Result<(), StoreError> {
        let sql = match (self.savepoints_open, keep) {
            (1, true) => "RELEASE SAVEPOINT savepoint_1",
            (2, true) => "RELEASE SAVEPOINT savepoint_2",
            (1, false) => "ROLLBACK TO SAVEPOINT savepoint_1; RELEASE SAVEPOINT savepoint_1",
            (2, false) => "ROLLBACK TO SAVEPOINT savepoint_2; RELEASE SAVEPOINT savepoint_2",
            _ => return Err(StoreError::Broken("no savepoint is open".into())),
        };
        self.prefetched.clear();
        self.savepoints_open -= 1;
        self.control(sql)
    }
}

impl Tx for PgTx<'_> {
    fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        self.forget_answers();
        let (statement, parameters) = self.statement(sql, values)?;
        match self.send(SessionMessage::Execute { statement, parameters, wanted: Wanted::Any })? {
            SessionAnswer::Changed(count) => Ok(count),
            SessionAnswer::Done | SessionAnswer::Rows(_) => {
                Err(StoreError::Broken("PostgreSQL answered no count".into()))
            }
        }
    }

    fn execute_exactly(
        &mut self,
        rows_count: u64,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<(), StoreError> {
        self.forget_answers();
        let (statement, parameters) = self.statement(sql, values)?;
        let is_insert =
            sql.starts_with("INSERT") && !sql.contains("ON CONFLICT") && !sql.contains("SELECT");
        let wanted =
            if is_insert { Wanted::Inserted(rows_count) } else { Wanted::Exactly(rows_count) };
        self.waiting.push(SessionMessage::Execute { statement, parameters, wanted });
        // Inside a savepoint the error must come from this call: a caller that rolls back to the
        // savepoint expects it before the savepoint ends.
        if self.savepoints_open > 0 { self.flush() } else { Ok(()) }
    }

    fn prefetch(&mut self, sql: &str, values: &[Value<'_>]) -> Result<(), StoreError> {
        let (statement, parameters) = self.statement(sql, values)?;
        let sql = sql.to_owned();
        self.prefetched.push(PrefetchedQuery { sql, statement, parameters, rows: None });
        Ok(())
    }

    fn rows(&mut self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        if let Some(rows) = self.prefetch_of(sql, values) {
            return rows.iter().map(row).collect();
        }
        let writes = !sql.starts_with("SELECT");
        if writes {
            self.forget_answers();
        }
        let (statement, parameters) = self.statement(sql, values)?;
        match self.send(SessionMessage::Query { statement, parameters })? {
            SessionAnswer::Rows(rows) => {
                // Locking a row writes to the server's log too.
                let locks = writes || sql.contains(" FOR SHARE") || sql.contains(" FOR UPDATE");
                self.has_written |= locks && !rows.is_empty();
                rows.iter().map(row).collect()
            }
            SessionAnswer::Done | SessionAnswer::Changed(_) => {
                Err(StoreError::Broken("PostgreSQL answered no rows".into()))
            }
        }
    }

    fn rows_each(
        &mut self,
        select: &str,
        first: Value<'_>,
        keys: &[Value<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        many_rows::rows_each(self, select, first, keys)
    }

    fn update_each(
        &mut self,
        update: &EachUpdate<'_>,
        keys: &[Value<'_>],
    ) -> Result<Vec<bool>, StoreError> {
        match self.update_form {
            UpdateForm::ByCtid => many_rows::update_each(self, update, keys),
            UpdateForm::OneByOne => many_rows::update_one_by_one(self, update, keys),
        }
    }

    fn savepoint(&mut self) -> Result<(), StoreError> {
        // Refuse a third savepoint before it counts as open, so that the first two can still end.
        let sql = match self.savepoints_open {
            0 => "SAVEPOINT savepoint_1",
            1 => "SAVEPOINT savepoint_2",
            _ => return Err(StoreError::Broken("at most two savepoints can be open".into())),
        };
        self.prefetched.clear();
        self.signals.open_savepoint(self.savepoints_open);
        self.savepoints_open += 1;
        self.waiting.push(SessionMessage::Control(sql));
        // Errors of earlier statements must not show inside the savepoint.
        self.flush()
    }

    fn release(&mut self) -> Result<(), StoreError> {
        self.end_savepoint(true)
    }

    fn rollback_and_release(&mut self) -> Result<(), StoreError> {
        self.signals.undo(self.savepoints_open);
        self.end_savepoint(false)
    }

    /// If no savepoint is open, rolls back the whole transaction and begins it again.
    fn rollback_to(&mut self) -> Result<(), StoreError> {
        self.prefetched.clear();
        self.signals.undo(self.savepoints_open);
        match self.savepoints_open {
            0 if !self.is_begun() => {
                self.waiting.truncate(1);
                Ok(())
            }
            0 => {
                self.waiting.clear();
                self.control("ROLLBACK")?;
                self.waiting.push(SessionMessage::Control(self.kind.begin()));
                Ok(())
            }
            1 => self.control("ROLLBACK TO SAVEPOINT savepoint_1"),
            2 => self.control("ROLLBACK TO SAVEPOINT savepoint_2"),
            _ => Err(StoreError::Broken("no savepoint is open".into())),
        }
    }

    fn signal(&mut self, signal: Signal) {
        self.signals.add(signal);
    }

    fn visibility_floor(&mut self, last_id: u128) -> Result<VisibilityFloor, StoreError> {
        let Some((known, floor)) = &self.floor else { return Ok(VisibilityFloor::Passed) };
        if last_id < *known {
            return Ok(VisibilityFloor::Passed);
        }
        let floor = floor.clone();
        self.prefetched.clear();
        self.waiting.clear();
        self.control("ROLLBACK")?;
        let (mut look_milliseconds, mut found) = self.look_for_floor()?;
        let last_milliseconds = InternalId::from_u128(last_id).milliseconds();
        let ahead_milliseconds = last_milliseconds.saturating_sub(look_milliseconds) + 1;
        if found == id_floor::first_id(look_milliseconds)
            && (1..=id_floor::WAIT_MILLISECONDS_MAX).contains(&ahead_milliseconds)
        {
            std::thread::sleep(Duration::from_millis(ahead_milliseconds.unsigned_abs()));
            (look_milliseconds, found) = self.look_for_floor()?;
        }
        debug_assert!(found <= id_floor::first_id(look_milliseconds));
        floor.raise(found);
        self.floor = Some((found, floor));
        self.waiting.push(SessionMessage::Control(self.kind.begin()));
        Ok(VisibilityFloor::At(found))
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn key_segments(&mut self) -> Result<&mut KeySegments, StoreError> {
        Ok(&mut self.key_segments)
    }
}
