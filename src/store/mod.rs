//! Storage behind one small synchronous trait, [`Tx`]. Nearly every SQL statement has the same text
//! for every store. Where the texts differ, the code chooses by [`Tx::is_shared`]. `migrate.rs`
//! adapts the migrations for PostgreSQL.

pub mod delivery_signals;
pub mod event_waits;
mod failpoint;
pub mod handle;
pub mod idempotency;
#[cfg(test)]
mod idempotency_model_test;
mod jobs;
pub mod key_filter;
pub mod key_segments;
pub mod lane;
pub mod lease;
pub mod list;
pub mod meta;
pub mod migrate;
pub mod pack;
mod pending_signals;
mod plan_statistics;
pub mod postgres;
pub mod record;
mod rests;
pub mod running_keys;
pub mod sqlite;
mod statements;

use crate::kernel::{
    AnyId, Currency, Id, IdKind, InternalId, Money, ObjectKind, Rate, Scope, StoreError,
};
use delivery_signals::ScopedEndpoint;
pub(crate) use failpoint::failpoint;
pub use handle::{Cost, Database, Store};
use key_segments::KeySegments;

/// A parameter of a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    Null,
    Int(i64),
    Bool(bool),
    Text(&'a str),
    Bytes(&'a [u8]),
    Id([u8; 16]),
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Value::Int(value)
    }
}
impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}
impl From<Scope> for Value<'_> {
    fn from(value: Scope) -> Self {
        Value::Int(value.code())
    }
}
impl From<Rate> for Value<'_> {
    fn from(value: Rate) -> Self {
        Value::Int(value.0)
    }
}
impl From<Currency> for Value<'_> {
    fn from(value: Currency) -> Self {
        Value::Text(value.as_str())
    }
}
impl From<AnyId> for Value<'_> {
    fn from(value: AnyId) -> Self {
        Value::Id(value.to_bytes())
    }
}
impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Value::Text(value)
    }
}
impl<'a> From<&'a String> for Value<'a> {
    fn from(value: &'a String) -> Self {
        Value::Text(value)
    }
}
impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(value: &'a [u8]) -> Self {
        Value::Bytes(value)
    }
}
impl<'a> From<&'a Vec<u8>> for Value<'a> {
    fn from(value: &'a Vec<u8>) -> Self {
        Value::Bytes(value)
    }
}
impl<'a, const N: usize> From<&'a [u8; N]> for Value<'a> {
    fn from(value: &'a [u8; N]) -> Self {
        Value::Bytes(value)
    }
}
impl<K: IdKind> From<Id<K>> for Value<'_> {
    fn from(value: Id<K>) -> Self {
        Value::Id(value.to_bytes())
    }
}
impl<'a, T> From<Option<T>> for Value<'a>
where
    Value<'a>: From<T>,
{
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Value::from)
    }
}
impl<'a> From<&'a Option<String>> for Value<'a> {
    fn from(value: &'a Option<String>) -> Self {
        value.as_deref().into()
    }
}
impl<'a> From<&'a Option<Vec<u8>>> for Value<'a> {
    fn from(value: &'a Option<Vec<u8>>) -> Self {
        value.as_deref().into()
    }
}

/// Parameters of a statement, in the order of `?1`, `?2`, …
#[macro_export]
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::store::Value::from($value)),*] };
}

/// One column of a row that was read.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A row that was read. Each call takes the next column from the left; only [`Row::last_id`] takes
/// the last one.
#[derive(Debug)]
pub struct Row {
    cells: std::vec::IntoIter<Cell>,
}

fn unreadable(wanted: &str, found: &Option<Cell>) -> StoreError {
    let kind = match found {
        None => "no column",
        Some(Cell::Null) => "NULL",
        Some(Cell::Int(_)) => "a number",
        Some(Cell::Text(_)) => "a text",
        Some(Cell::Bytes(_)) => "bytes",
    };
    // The value may be personal data, so the message names only its kind.
    StoreError::Broken(format!("a row cannot be read: wanted {wanted}, found {kind}"))
}

fn not_an_id() -> StoreError {
    StoreError::Broken("an identifier is not 16 bytes long".into())
}

impl Row {
    pub fn new(cells: Vec<Cell>) -> Row {
        Row { cells: cells.into_iter() }
    }
    pub fn last_id(&mut self) -> Result<u128, StoreError> {
        let id = match self.cells.next_back() {
            Some(Cell::Bytes(bytes)) => bytes.try_into().ok().map(u128::from_be_bytes),
            other => return Err(unreadable("an identifier", &other)),
        };
        id.ok_or_else(not_an_id)
    }
    pub fn int(&mut self) -> Result<i64, StoreError> {
        match self.cells.next() {
            Some(Cell::Int(value)) => Ok(value),
            other => Err(unreadable("a number", &other)),
        }
    }
    pub fn int_or_null(&mut self) -> Result<Option<i64>, StoreError> {
        match self.cells.next() {
            Some(Cell::Int(value)) => Ok(Some(value)),
            Some(Cell::Null) => Ok(None),
            other => Err(unreadable("a number", &other)),
        }
    }
    pub fn bool(&mut self) -> Result<bool, StoreError> {
        Ok(self.int()? != 0)
    }
    pub fn text(&mut self) -> Result<String, StoreError> {
        self.text_or_null()?.ok_or_else(|| unreadable("a text", &Some(Cell::Null)))
    }
    pub fn text_or_null(&mut self) -> Result<Option<String>, StoreError> {
        match self.cells.next() {
            Some(Cell::Text(value)) => Ok(Some(value)),
            Some(Cell::Null) => Ok(None),
            other => Err(unreadable("a text", &other)),
        }
    }
    pub fn bytes(&mut self) -> Result<Vec<u8>, StoreError> {
        self.bytes_or_null()?.ok_or_else(|| unreadable("bytes", &Some(Cell::Null)))
    }
    pub fn bytes_or_null(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        match self.cells.next() {
            Some(Cell::Bytes(value)) => Ok(Some(value)),
            Some(Cell::Null) => Ok(None),
            other => Err(unreadable("bytes", &other)),
        }
    }
    /// Bytes of a fixed length, such as a hash.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        self.array_or_null()?.ok_or_else(|| unreadable("bytes", &Some(Cell::Null)))
    }
    pub fn array_or_null<const N: usize>(&mut self) -> Result<Option<[u8; N]>, StoreError> {
        let wrong = |bytes: Vec<u8>| {
            StoreError::Broken(format!("a row has {} bytes where {N} belong", bytes.len()))
        };
        self.bytes_or_null()?.map(|bytes| bytes.try_into().map_err(wrong)).transpose()
    }
    pub fn id<K: IdKind>(&mut self) -> Result<Id<K>, StoreError> {
        self.id_or_null()?.ok_or_else(|| unreadable("an identifier", &Some(Cell::Null)))
    }
    pub fn id_or_null<K: IdKind>(&mut self) -> Result<Option<Id<K>>, StoreError> {
        match self.cells.next() {
            Some(Cell::Null) => Ok(None),
            Some(Cell::Bytes(bytes)) => match Id::from_bytes(&bytes) {
                Some(id) => Ok(Some(id)),
                None => Err(not_an_id()),
            },
            other => Err(unreadable("an identifier", &other)),
        }
    }
    /// An identifier whose kind is known from elsewhere: from another column, or from the query.
    pub fn id_of_kind(&mut self, kind: ObjectKind) -> Result<AnyId, StoreError> {
        Ok(AnyId { kind, value: InternalId::as_u128(self.id()?) })
    }
    pub fn scope(&mut self) -> Result<Scope, StoreError> {
        self.int().map(Scope::from_code)
    }
    /// A word that `parse` knows. Any other word is [`StoreError::Broken`].
    pub fn word<T>(&mut self, parse: impl Fn(&str) -> Option<T>) -> Result<T, StoreError> {
        let text = self.text()?;
        parse(&text)
            .ok_or_else(|| StoreError::Broken(format!("a row holds the unknown word {text:?}")))
    }
    pub fn word_or_null<T>(
        &mut self,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, StoreError> {
        match self.text_or_null()? {
            None => Ok(None),
            Some(text) => parse(&text).map(Some).ok_or_else(|| {
                StoreError::Broken(format!("a row holds the unknown word {text:?}"))
            }),
        }
    }
    /// Takes two columns: a currency, then its units.
    pub fn money(&mut self) -> Result<Money, StoreError> {
        let currency = self.word(Currency::parse)?;
        Ok(Money::new(self.int()?, currency))
    }
    /// Takes two columns: an identifier, then its kind.
    pub fn any_id(&mut self) -> Result<AnyId, StoreError> {
        let bytes = self.bytes()?;
        let kind = self.word(ObjectKind::parse)?;
        let value = bytes.try_into().map(u128::from_be_bytes);
        value.map(|value| AnyId { kind, value }).map_err(|_| not_an_id())
    }
}

/// What a transaction tells its process once it has committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// Outbox rows were written: the sequencer has work.
    Outbox,
    /// Tasks may be due.
    Tasks,
    /// An endpoint has webhook deliveries that are due.
    DeliveriesOf(ScopedEndpoint),
    /// Webhook deliveries of unknown endpoints may be due.
    Deliveries,
    /// Bank accounts wait for their look-up.
    LookUps,
    /// A transfer changed its status. The process logs it.
    StatusChanged { id: AnyId, from: &'static str, to: &'static str },
    /// The operator made a decision. The process logs it.
    Decided { id: Option<AnyId>, decision: InternalId },
    /// An account has a new event.
    Event(Scope),
}

/// Where the floor is: the lowest identifier that a transaction may still commit. A list may show
/// what is below the floor, because no further object can appear there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VisibilityFloor {
    /// The floor is above the identifier that was asked about.
    Passed,
    /// The floor is this identifier. The transaction now reads a newer snapshot: read the page
    /// again, and leave out everything at the floor or above.
    At(u128),
}

/// One transaction of one store. Statements use the placeholders `?1`, `?2` and so on, each of
/// which may occur several times.
pub trait Tx {
    /// Runs a statement that changes rows and answers how many it changed.
    fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError>;
    /// Runs a query and answers all its rows. A query that may find many needs a `LIMIT`.
    fn rows(&mut self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>, StoreError>;
    /// Announces a query that this transaction will run with the same text and values. PostgreSQL's
    /// store sends it together with the next statement, and has its rows when the query is run. If
    /// a statement in between changes rows, the query is sent again. SQLite's store does nothing.
    fn prefetch(&mut self, _sql: &str, _values: &[Value<'_>]) -> Result<(), StoreError> {
        Ok(())
    }
    /// Opens a savepoint. What is done until it ends can be undone without the rest of the
    /// transaction. At most two savepoints can be open.
    fn savepoint(&mut self) -> Result<(), StoreError>;
    /// Ends the innermost savepoint and keeps what was done since it began.
    fn release(&mut self) -> Result<(), StoreError>;
    /// Undoes what was done since the innermost savepoint began, and ends it.
    fn rollback_and_release(&mut self) -> Result<(), StoreError>;
    /// Undoes what was done since the innermost savepoint began and leaves it open.
    ///
    /// - On the embedded store, a job of the write lane (`lane.rs`) may run without a savepoint of
    ///   SQLite (`sqlite::Undo::Whole`). If such a job has changed rows, this is an error, and the
    ///   group of jobs that share a commit runs again.
    /// - On PostgreSQL, if no savepoint is open, this undoes the whole transaction and begins it
    ///   again.
    fn rollback_to(&mut self) -> Result<(), StoreError>;
    /// Sends a signal once this transaction has committed.
    fn signal(&mut self, signal: Signal);
    /// Says whether transactions that run now can still commit an object with an identifier below
    /// `last_id`. If so, the transaction has a newer snapshot afterwards. Only a transaction that
    /// writes nothing may ask: after it has read a page, or to wait for earlier transactions
    /// (`key_rotation::await_earlier`).
    fn visibility_floor(&mut self, _last_id: u128) -> Result<VisibilityFloor, StoreError> {
        Ok(VisibilityFloor::Passed)
    }
    /// Whether other transactions run at the same time, so that what was read may change before the
    /// commit.
    fn is_shared(&self) -> bool;
    /// The segments in which idempotency keys are looked up and stored. `Err` if the store gave
    /// this transaction none.
    fn key_segments(&mut self) -> Result<&mut KeySegments, StoreError>;

    /// Reads rows by keys, in no particular order. `select` ends with the name of the key's column,
    /// and its `?1` is `first`: `SELECT … FROM … WHERE scope = ?1 AND id`.
    ///
    /// Each key is looked up by itself. With `id IN (…)`, a planner that underestimates how many
    /// rows have the value `first` would read all of these rows.
    fn rows_each(
        &mut self,
        select: &str,
        first: Value<'_>,
        keys: &[Value<'_>],
    ) -> Result<Vec<Row>, StoreError>;
    /// Changes the rows that still have the values they were read with. Answers, for each row,
    /// whether it was changed. `keys` has the values of [`EachUpdate::columns`] for one row after
    /// the other, and names no row twice.
    fn update_each(
        &mut self,
        update: &EachUpdate<'_>,
        keys: &[Value<'_>],
    ) -> Result<Vec<bool>, StoreError>;
    /// Inserts rows. `values` has those of one row after the other. PostgreSQL's store sends many
    /// rows with one statement, SQLite's store runs a statement for each.
    fn insert_each(
        &mut self,
        insert: &EachInsert<'_>,
        values: &[Value<'_>],
    ) -> Result<(), StoreError> {
        let rows: Vec<&[Value<'_>]> = values.chunks_exact(insert.columns_count).collect();
        for part in at_once(&rows) {
            let count = part.len();
            self.execute_exactly(count as u64, &insert.sql(count), &part.concat())?;
        }
        Ok(())
    }

    /// The first row of a query, if there is one.
    fn row(&mut self, sql: &str, values: &[Value<'_>]) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(sql, values)?.into_iter().next())
    }
    /// Runs a statement that must change exactly `rows_count` rows. Another count is a conflict
    /// with another transaction. PostgreSQL's store may send the statement later. Then the error
    /// comes from a later call, at the latest from the commit.
    fn execute_exactly(
        &mut self,
        rows_count: u64,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<(), StoreError> {
        if self.execute(sql, values)? == rows_count {
            return Ok(());
        }
        Err(StoreError::Conflict("a row was changed by another transaction"))
    }
    /// [`Tx::execute_exactly`] for one row.
    fn execute_one(&mut self, sql: &str, values: &[Value<'_>]) -> Result<(), StoreError> {
        self.execute_exactly(1, sql, values)
    }
}

/// A change of many rows, each found by its own values.
pub struct EachUpdate<'a> {
    pub table: &'a str,
    /// What follows `SET`. Its parameters, `?1` and so on, are `set_values`.
    pub set: &'a str,
    pub set_values: &'a [Value<'a>],
    /// The columns that a row is found by. `keys` has a value of each for every row: first the
    /// identifier, which is a [`Value::Id`], then the others.
    pub columns: &'a [&'a str],
}

impl EachUpdate<'_> {
    /// The statement for one row: the parameters are `set_values`, then those of `columns`.
    fn sql_of_one(&self) -> String {
        let set_count = self.set_values.len();
        let condition =
            |(index, column): (usize, &&str)| format!("{column} = ?{}", set_count + index + 1);
        let conditions: Vec<String> = self.columns.iter().enumerate().map(condition).collect();
        format!("UPDATE {} SET {} WHERE {}", self.table, self.set, conditions.join(" AND "))
    }
}

/// Where rows are inserted.
pub struct EachInsert<'a> {
    pub table: &'a str,
    /// Separated by commas.
    pub columns: &'a str,
    pub columns_count: usize,
}

impl EachInsert<'_> {
    /// The statement for a number of rows.
    fn sql(&self, rows_count: usize) -> String {
        let rows = placeholders(rows_count, self.columns_count);
        format!("INSERT INTO {} ({}) VALUES {rows}", self.table, self.columns)
    }
}

/// How many rows one statement may take, largest first. Few sizes mean few statements to prepare.
const ROWS_AT_ONCE: [usize; 4] = [64, 16, 4, 1];

/// Splits rows into parts, each for one statement.
fn at_once<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let count = ROWS_AT_ONCE.into_iter().find(|count| *count <= rows.len())?;
        let (part, rest) = rows.split_at(count);
        rows = rest;
        Some(part)
    })
}

/// `(?1, ?2), (?3, ?4)` for two rows of two columns.
fn placeholders(rows_count: usize, columns_count: usize) -> String {
    let row = |row: usize| {
        (1..=columns_count)
            .map(|column| format!("?{}", row * columns_count + column))
            .collect::<Vec<_>>()
            .join(", ")
    };
    (0..rows_count).map(|index| format!("({})", row(index))).collect::<Vec<_>>().join(", ")
}

/// Inserts rows, each with a value for each of the columns.
pub fn insert_all<const N: usize>(
    tx: &mut dyn Tx,
    table: &str,
    columns: &str,
    rows: &[[Value<'_>; N]],
) -> Result<(), StoreError> {
    tx.insert_each(&EachInsert { table, columns, columns_count: N }, rows.as_flattened())
}

/// Deletes the rows with these keys, many with one statement. A row that is missing is a conflict.
pub fn delete_all(
    tx: &mut dyn Tx,
    table: &str,
    key: &str,
    keys: &[Value<'_>],
) -> Result<(), StoreError> {
    for part in at_once(keys) {
        let sql = format!("DELETE FROM {table} WHERE {key} IN {}", placeholders(1, part.len()));
        tx.execute_exactly(part.len() as u64, &sql, part)?;
    }
    Ok(())
}

/// Builds `INSERT INTO table (columns) VALUES (?1, …)` for a constant list of columns.
pub fn insert_sql(table: &str, columns: &str) -> String {
    let count = columns.split(',').count();
    format!("INSERT INTO {table} ({columns}) VALUES {}", placeholders(1, count))
}
