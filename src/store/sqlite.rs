//! The embedded store: bundled SQLite in WAL mode with `synchronous=FULL`.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, ErrorCode, OpenFlags, Statement, ToSql};

use super::key_segments::KeySegments;
use super::pending_signals::PendingSignals;
use super::{Cell, EachInsert, EachUpdate, Row, Signal, Tx, Value, statements};
use crate::kernel::StoreError;

/// Before 3.51.3 a rare race could corrupt a database in WAL mode.
pub const SQLITE_VERSION_MIN: i32 = 3_051_003;
/// How long a statement waits while another process writes, such as `hundi keys create` beside a
/// server.
const BUSY_SECONDS_MAX: u64 = 5;
/// Once the log (WAL) holds so many pages, a commit copies it into the database file. A page that
/// changes several times until then is written to that file once.
pub const CHECKPOINT_PAGES: i64 = 10_000;
const STATEMENTS_CACHED_MAX: usize = 256;
/// How much of the database a connection keeps in memory. The writer keeps less: what it inserts is
/// appended or lies close together, so it seldom needs an old page again. And SQLite searches the
/// whole cache at each commit that splits a page.
const READER_CACHE_KIBIBYTES: i64 = 16 * 1024;
const WRITER_CACHE_KIBIBYTES: i64 = 8 * 1024;
/// How much of the file a reading connection maps into memory instead of copying it, so that a
/// look-up costs the same in a large database. SQLite maps at most this much; pages beyond it are
/// read as usual.
const READER_MAPPED_BYTES_MAX: i64 = 0x7fff_0000;

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Int(value) => ValueRef::Integer(*value),
            Value::Bool(value) => ValueRef::Integer(i64::from(*value)),
            Value::Text(value) => ValueRef::Text(value.as_bytes()),
            Value::Bytes(value) => ValueRef::Blob(value),
            Value::Id(value) => ValueRef::Blob(value),
        }))
    }
}

/// Sorts SQLite's errors into `Unavailable`, `Conflict` and `Broken`.
pub fn store_error(error: rusqlite::Error) -> StoreError {
    let Some(code) = error.sqlite_error_code() else {
        return StoreError::Broken(error.to_string());
    };
    match code {
        ErrorCode::DiskFull
        | ErrorCode::SystemIoFailure
        | ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::CannotOpen
        | ErrorCode::ReadOnly
        | ErrorCode::OutOfMemory => StoreError::Unavailable(error.to_string()),
        ErrorCode::ConstraintViolation => {
            // The text names the constraint and never a value.
            tracing::warn!(constraint = %error, "a constraint of the store refused a row");
            StoreError::Conflict("a constraint of the store")
        }
        _ => StoreError::Broken(error.to_string()),
    }
}

/// Refuses a SQLite that could corrupt the database.
pub fn check_version(version_number: i32) -> Result<(), StoreError> {
    if version_number < SQLITE_VERSION_MIN {
        return Err(StoreError::Broken(format!(
            "SQLite {} is too old: versions before 3.51.3 can corrupt a database in WAL mode; \
             build hundi with its bundled SQLite",
            rusqlite::version()
        )));
    }
    Ok(())
}

/// Opens the connection that writes. Creates the file if it does not exist.
pub fn open_writer(path: &Path) -> Result<Connection, StoreError> {
    check_version(rusqlite::version_number())?;
    make_private(path)?;
    let connection = Connection::open(path).map_err(|error| {
        StoreError::Unavailable(format!("cannot open the database {}: {error}", path.display()))
    })?;
    // The page size is fixed before the first table is made; see bench/README.md for why 4096.
    connection
        .execute_batch(
            "PRAGMA page_size=4096; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA \
             foreign_keys=ON; PRAGMA trusted_schema=OFF;",
        )
        .map_err(store_error)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES).map_err(store_error)?;
    connection
        .pragma_update(None, "journal_size_limit", CHECKPOINT_PAGES * 4096 * 2)
        .map_err(store_error)?;
    tune(&connection, WRITER_CACHE_KIBIBYTES)?;
    Ok(connection)
}

/// Creates the file so that only its owner can read it, or tightens the mode of a file that exists.
/// SQLite gives its other files the same mode.
fn make_private(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::OpenOptionsExt;
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(StoreError::Unavailable(format!(
                "cannot make the database {}: {error}",
                path.display()
            )))
        }
        Err(_) => tighten(path),
        Ok(_) => Ok(()),
    }
}

/// Leaves only the owner's rights on a database and SQLite's files beside it, because they hold
/// personal data. `Err` if a mode cannot be changed, as when the file belongs to somebody else.
fn tighten(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::PermissionsExt;
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let Ok(metadata) = std::fs::metadata(&name) else { continue };
        let mode = metadata.permissions().mode() & 0o777;
        if !metadata.is_file() || mode & 0o077 == 0 {
            continue;
        }
        let shown = name.display();
        let tightened = std::fs::Permissions::from_mode(mode & 0o600);
        if let Err(error) = std::fs::set_permissions(&name, tightened) {
            return Err(StoreError::Broken(format!(
                "others can read or write the database {shown}, and its mode cannot be changed \
                 ({error}): run chmod 600 {shown}"
            )));
        }
        tracing::warn!(
            file = %shown,
            "others could read or write the database: its mode is 600 now"
        );
    }
    Ok(())
}

/// Makes the connection refuse to prepare a statement that changes or deletes postings or entries
/// of the audit log, or drops one of the two tables.
pub fn deny_edits_of_append_only_tables(connection: &mut Connection) -> Result<(), StoreError> {
    use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
    connection
        .authorizer(Some(|context: AuthContext<'_>| match context.action {
            AuthAction::Update { table_name: "ledger_postings" | "audit_log", .. }
            | AuthAction::Delete { table_name: "ledger_postings" | "audit_log" }
            | AuthAction::DropTable { table_name: "ledger_postings" | "audit_log" } => {
                Authorization::Deny
            }
            _ => Authorization::Allow,
        }))
        .map_err(store_error)
}

/// Opens a connection that can only read.
pub fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(store_error)?;
    tune(&connection, READER_CACHE_KIBIBYTES)?;
    connection.pragma_update(None, "mmap_size", READER_MAPPED_BYTES_MAX).map_err(store_error)?;
    Ok(connection)
}

/// Copies a database as it is at one moment into a new file, and makes the copy durable. Writers
/// continue meanwhile. Fails if `file` exists. A copy that fails later leaves no file.
pub fn copy(source: &Connection, file: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::OpenOptionsExt;
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    made.map_err(|error| StoreError::Unavailable(error.to_string()))?;
    let copied = copy_into(source, file);
    if copied.is_err() {
        let _ = std::fs::remove_file(file);
    }
    copied
}

fn copy_into(source: &Connection, file: &Path) -> Result<(), StoreError> {
    let mut target = Connection::open(file).map_err(store_error)?;
    {
        let backup = rusqlite::backup::Backup::new(source, &mut target).map_err(store_error)?;
        // All pages in one step: otherwise a write between two steps would start the copy anew.
        if backup.step(-1).map_err(store_error)? != rusqlite::backup::StepResult::Done {
            return Err(StoreError::Unavailable("the database was busy; try again".into()));
        }
    }
    target.close().map_err(|(_, error)| store_error(error))?;
    std::fs::File::open(file)
        .and_then(|file| file.sync_all())
        .map_err(|error| StoreError::Unavailable(error.to_string()))
}

fn tune(connection: &Connection, cache_kibibytes: i64) -> Result<(), StoreError> {
    connection.busy_timeout(Duration::from_secs(BUSY_SECONDS_MAX)).map_err(store_error)?;
    connection.pragma_update(None, "cache_size", -cache_kibibytes).map_err(store_error)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED_MAX);
    // With this setting, plans do not depend on the values of parameters. Without it, SQLite plans
    // a statement such as one with `LIMIT ?` again whenever a value differs from the last run's.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(store_error)?;
    Ok(())
}

/// A mark that is set if a transaction has to run again.
pub type RunAgain = std::cell::Cell<bool>;

/// How the outermost savepoint that a caller opened ([`Tx::savepoint`]) is undone. An inner one is
/// always a savepoint of SQLite.
#[derive(Clone, Copy, Debug)]
pub enum Undo<'c> {
    /// By a savepoint of SQLite, which then copies every page before its first change.
    Savepoint,
    /// Without a savepoint of SQLite, which is cheaper. If nothing was written since the caller
    /// opened the savepoint, there is nothing to undo. Otherwise the mark is set: nothing of the
    /// transaction may be kept, and its owner runs it again with savepoints of SQLite.
    Whole(&'c RunAgain),
}

/// A transaction on one connection; the caller begins and ends it.
pub struct SqliteTx<'c> {
    connection: &'c Connection,
    undo: Undo<'c>,
    savepoints_open: u32,
    /// How many rows the connection had changed when the outermost savepoint was opened.
    changes_before_savepoint: u64,
    key_segments: Option<&'c mut KeySegments>,
    pub signals: PendingSignals,
}

/// A number that changes when another connection has written. Call this inside a transaction.
pub fn data_version(connection: &Connection) -> Result<i64, StoreError> {
    let mut statement = connection.prepare_cached("PRAGMA data_version").map_err(store_error)?;
    statement.query_row([], |row| row.get(0)).map_err(store_error)
}

impl<'c> SqliteTx<'c> {
    pub fn new(connection: &'c Connection) -> SqliteTx<'c> {
        SqliteTx::with_undo(connection, Undo::Savepoint)
    }
    pub fn with_undo(connection: &'c Connection, undo: Undo<'c>) -> SqliteTx<'c> {
        SqliteTx {
            connection,
            undo,
            savepoints_open: 0,
            changes_before_savepoint: 0,
            key_segments: None,
            signals: PendingSignals::default(),
        }
    }
    /// Lets the transaction use idempotency keys. `key_segments` must have been refreshed in this
    /// transaction.
    pub fn lend_key_segments(&mut self, key_segments: &'c mut KeySegments) {
        self.key_segments = Some(key_segments);
    }
    pub fn take_key_segments(&mut self) -> Option<&'c mut KeySegments> {
        self.key_segments.take()
    }
    /// Undoes what was done since the outermost savepoint was opened, and ends all savepoints.
    pub fn rollback_all(&mut self) -> Result<(), StoreError> {
        while self.savepoints_open > 0 {
            self.rollback_and_release()?;
        }
        Ok(())
    }
    /// The mark of [`Undo::Whole`], if exactly one savepoint is open and SQLite does not have it.
    const fn without_savepoint(&self) -> Option<&'c RunAgain> {
        match self.undo {
            Undo::Whole(run_again) if self.savepoints_open == 1 => Some(run_again),
            _ => None,
        }
    }
    /// Stands in for the rollback of an outermost savepoint that SQLite does not have
    /// ([`Undo::Whole`]). If no row was changed since it was opened, there is nothing to undo.
    /// Otherwise this sets the mark and returns `Err`: the owner of the transaction rolls it back
    /// and runs it again.
    fn run_again_if_changed(&self, run_again: &RunAgain) -> Result<(), StoreError> {
        if self.connection.total_changes() == self.changes_before_savepoint {
            return Ok(());
        }
        run_again.set(true);
        Err(StoreError::Unavailable("the transaction is run again with savepoints".into()))
    }
    fn end_savepoint(&mut self, keep: bool) -> Result<(), StoreError> {
        if !keep {
            self.signals.undo(self.savepoints_open);
        }
        if let Some(run_again) = self.without_savepoint() {
            self.savepoints_open = 0;
            return if keep { Ok(()) } else { self.run_again_if_changed(run_again) };
        }
        let (undo, release) = match self.savepoints_open {
            1 => ("ROLLBACK TO savepoint_1", "RELEASE savepoint_1"),
            2 => ("ROLLBACK TO savepoint_2", "RELEASE savepoint_2"),
            _ => return Err(StoreError::Broken("no savepoint is open".into())),
        };
        self.savepoints_open -= 1;
        if !keep {
            self.run(undo)?;
        }
        self.run(release)
    }

    fn prepare(&self, sql: &str) -> Result<CachedStatement<'c>, StoreError> {
        statements::note(sql);
        self.connection.prepare_cached(sql).map_err(store_error)
    }

    pub fn run(&self, sql: &str) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(store_error)?;
        statement.execute([]).map(|_| ()).map_err(store_error)
    }
}

/// Runs a query and appends its rows to `read`.
fn read_rows<'v>(
    statement: &mut Statement<'_>,
    values: impl Iterator<Item = &'v Value<'v>>,
    read: &mut Vec<Row>,
) -> Result<(), StoreError> {
    let columns_count = statement.column_count();
    let mut rows = statement.query(rusqlite::params_from_iter(values)).map_err(store_error)?;
    while let Some(row) = rows.next().map_err(store_error)? {
        let mut cells = Vec::with_capacity(columns_count);
        for index in 0..columns_count {
            cells.push(match row.get_ref(index).map_err(store_error)? {
                ValueRef::Null => Cell::Null,
                ValueRef::Integer(value) => Cell::Int(value),
                ValueRef::Text(value) => Cell::Text(
                    String::from_utf8(value.to_vec())
                        .map_err(|_| StoreError::Broken("a text column is not UTF-8".into()))?,
                ),
                ValueRef::Blob(value) => Cell::Bytes(value.to_vec()),
                ValueRef::Real(_) => {
                    return Err(StoreError::Broken("a column holds a float".into()));
                }
            });
        }
        read.push(Row::new(cells));
    }
    Ok(())
}

// The methods for many rows run one prepared statement once for each row. Without a network, one
// statement of many rows saves nothing, and its text has to be made (see bench/README.md).
impl Tx for SqliteTx<'_> {
    fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        let mut statement = self.prepare(sql)?;
        let changed = statement.execute(rusqlite::params_from_iter(values)).map_err(store_error)?;
        Ok(changed as u64)
    }

    fn rows(&mut self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        let mut statement = self.prepare(sql)?;
        let mut read = Vec::new();
        read_rows(&mut statement, values.iter(), &mut read)?;
        Ok(read)
    }

    fn rows_each(
        &mut self,
        select: &str,
        first: Value<'_>,
        keys: &[Value<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let mut statement = self.prepare(&format!("{select} = ?2"))?;
        let mut read = Vec::with_capacity(keys.len());
        for key in keys {
            read_rows(&mut statement, [&first, key].into_iter(), &mut read)?;
        }
        Ok(read)
    }

    fn update_each(
        &mut self,
        update: &EachUpdate<'_>,
        keys: &[Value<'_>],
    ) -> Result<Vec<bool>, StoreError> {
        let mut statement = self.prepare(&update.sql_of_one())?;
        keys.chunks_exact(update.columns.len())
            .map(|key| {
                let values = rusqlite::params_from_iter(update.set_values.iter().chain(key));
                Ok(statement.execute(values).map_err(store_error)? == 1)
            })
            .collect()
    }

    fn insert_each(
        &mut self,
        insert: &EachInsert<'_>,
        values: &[Value<'_>],
    ) -> Result<(), StoreError> {
        if values.is_empty() {
            return Ok(());
        }
        let mut statement = self.prepare(&insert.sql(1))?;
        for row in values.chunks_exact(insert.columns_count) {
            statement.execute(rusqlite::params_from_iter(row)).map_err(store_error)?;
        }
        Ok(())
    }

    fn savepoint(&mut self) -> Result<(), StoreError> {
        // Refuse a third savepoint before it counts as open, so that the first two can still end.
        let sql = match self.savepoints_open {
            0 => "SAVEPOINT savepoint_1",
            1 => "SAVEPOINT savepoint_2",
            _ => return Err(StoreError::Broken("at most two savepoints can be open".into())),
        };
        self.signals.open_savepoint(self.savepoints_open);
        self.savepoints_open += 1;
        if self.without_savepoint().is_some() {
            self.changes_before_savepoint = self.connection.total_changes();
            return Ok(());
        }
        self.run(sql)
    }

    fn release(&mut self) -> Result<(), StoreError> {
        self.end_savepoint(true)
    }

    fn rollback_and_release(&mut self) -> Result<(), StoreError> {
        self.end_savepoint(false)
    }

    fn rollback_to(&mut self) -> Result<(), StoreError> {
        self.signals.undo(self.savepoints_open);
        if let Some(run_again) = self.without_savepoint() {
            return self.run_again_if_changed(run_again);
        }
        self.run(match self.savepoints_open {
            1 => "ROLLBACK TO savepoint_1",
            2 => "ROLLBACK TO savepoint_2",
            _ => return Err(StoreError::Broken("no savepoint is open".into())),
        })
    }

    fn signal(&mut self, signal: Signal) {
        self.signals.add(signal);
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn key_segments(&mut self) -> Result<&mut KeySegments, StoreError> {
        self.key_segments.as_deref_mut().ok_or_else(|| {
            StoreError::Broken("this transaction does not know the segments of the keys".into())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan_statistics::set_plan_statistics;
    use super::*;

    #[test]
    fn a_statement_is_planned_once_whatever_its_values() {
        let plans = |connection: &Connection| {
            connection.execute_batch("CREATE TABLE numbers (number BIGINT PRIMARY KEY)").unwrap();
            let sql = "SELECT number FROM numbers WHERE number > ?1 ORDER BY number LIMIT ?2";
            let mut statement = connection.prepare(sql).unwrap();
            for number in 1..=4 {
                assert!(!statement.exists([number, number]).unwrap());
            }
            statement.get_status(rusqlite::StatementStatus::RePrepare)
        };
        let connection = Connection::open_in_memory().unwrap();
        assert!(plans(&connection) > 0, "without `tune` it is not planned again");
        let connection = Connection::open_in_memory().unwrap();
        tune(&connection, READER_CACHE_KIBIBYTES).unwrap();
        assert_eq!(plans(&connection), 0);
    }

    #[test]
    fn a_copy_leaves_a_file_alone_that_it_did_not_make() {
        let file = std::env::temp_dir().join(format!("hundi-copy-{}", std::process::id()));
        std::fs::write(&file, "somebody else's").unwrap();
        let connection = Connection::open_in_memory().unwrap();
        assert!(copy(&connection, &file).is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "somebody else's");
        std::fs::remove_file(&file).unwrap();
        copy(&connection, &file).unwrap();
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn a_change_of_an_object_makes_no_temporary_table() {
        let connection = Connection::open_in_memory().unwrap();
        crate::store::migrate::migrate(&mut SqliteTx::new(&connection)).unwrap();
        let temporary = |sql: &str| {
            let mut statement = connection.prepare(&format!("EXPLAIN {sql}")).unwrap();
            let mut rows = statement.raw_query();
            let mut count = 0;
            while let Some(row) = rows.next().unwrap() {
                count += usize::from(row.get_ref(1).unwrap().as_str() == Ok("OpenEphemeral"));
            }
            count
        };
        for table in ["beneficiaries", "deposits", "payouts", "refunds", "transfers"] {
            let sql = format!("SELECT name FROM pragma_table_info('{table}') WHERE pk = 0");
            let mut statement = connection.prepare(&sql).unwrap();
            let columns = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
            let columns: Vec<String> =
                columns.map(Result::unwrap).filter(|column| column != "version").collect();
            let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
            let update = crate::store::record::update_sql(table, &columns);
            assert_eq!(temporary(&update), 0, "{table}");
        }
        connection
            .execute_batch("CREATE INDEX three ON payouts (id) WHERE status IN ('a', 'b', 'c')")
            .unwrap();
        let update = crate::store::record::update_sql("payouts", &["status"]);
        assert!(temporary(&update) > 0, "a temporary table would not be seen");
    }

    #[test]
    fn filters_by_a_related_object_read_its_index() {
        let folder = std::env::temp_dir().join(format!("hundi-plans-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let connection = open_writer(&folder.join("plans.db")).unwrap();
        crate::store::migrate::migrate(&mut SqliteTx::new(&connection)).unwrap();
        let plan = |condition: &str| -> String {
            let sql = format!("EXPLAIN QUERY PLAN SELECT * FROM {condition}");
            connection.query_row(&sql, [], |row| row.get(3)).unwrap()
        };
        let filters = [
            (
                "events WHERE scope = 1 AND linked_id = x'00' ORDER BY id LIMIT 11",
                "events_by_linked",
            ),
            (
                "transfers WHERE scope = 1 AND beneficiary_id = x'00' ORDER BY id LIMIT 11",
                "transfers_by_beneficiary",
            ),
            (
                "transfers WHERE scope = 1 AND sender_id = x'00' ORDER BY id DESC LIMIT 11",
                "transfers_by_sender",
            ),
            (
                "deposits WHERE scope = 1 AND transfer_id = x'00' ORDER BY id LIMIT 11",
                "deposits_by_transfer",
            ),
            (
                "deposits WHERE scope = 1 AND transfer_id = x'00' AND status <> 'failed' LIMIT 1",
                "deposits_by_transfer",
            ),
            (
                "deposits WHERE scope = 1 AND transaction_hash = 'x' AND log_index = 1 ORDER BY \
                 id DESC LIMIT 1",
                "deposits_by_transaction",
            ),
            (
                "payouts WHERE scope = 1 AND transfer_id = x'00' ORDER BY id LIMIT 11",
                "payouts_of_transfer",
            ),
            (
                "transfers WHERE scope = 1 AND beneficiary_id >= x'00' AND beneficiary_id <= x'00' \
                 ORDER BY beneficiary_id DESC, id DESC LIMIT 11",
                "transfers_by_beneficiary",
            ),
            (
                "payouts WHERE scope = 1 AND beneficiary_id >= x'00' AND (beneficiary_id, id) < \
                 (x'00', x'01') ORDER BY beneficiary_id DESC, id DESC LIMIT 11",
                "payouts_of_beneficiary",
            ),
            (
                "quote_locks WHERE scope = 1 AND transfer_id <= x'00' AND (transfer_id, id) > \
                 (x'00', x'01') ORDER BY transfer_id, id LIMIT 11",
                "quote_locks_of_transfer",
            ),
            (
                "refunds WHERE scope = 1 AND transfer_id = x'00' ORDER BY id LIMIT 11",
                "refunds_by_transfer",
            ),
        ];
        let reads_an_account =
            filters.iter().filter(|(filter, index)| !plan(filter).contains(index)).count();
        assert!(reads_an_account > 0, "all plans are right without statistics");
        for _ in 0..2 {
            set_plan_statistics(&connection).unwrap();
        }
        for (filter, index) in filters {
            assert!(plan(filter).contains(index), "{filter}: {}", plan(filter));
        }
        for by_key in [
            "transfers WHERE scope = 1 AND id > x'00' ORDER BY id LIMIT 11",
            "events WHERE scope = 1 AND id = x'00'",
        ] {
            assert!(plan(by_key).contains("PRIMARY KEY"), "{by_key}: {}", plan(by_key));
        }
        drop(connection);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_savepoint_too_many_leaves_the_others_as_they_are() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE kept_numbers (number BIGINT PRIMARY KEY)").unwrap();
        let mut tx = SqliteTx::new(&connection);
        let insert = "INSERT INTO kept_numbers (number) VALUES (?1)";
        tx.savepoint().unwrap();
        tx.execute(insert, crate::values![1_i64]).unwrap();
        tx.savepoint().unwrap();
        tx.execute(insert, crate::values![2_i64]).unwrap();
        tx.signal(Signal::Tasks);
        assert!(tx.savepoint().is_err());
        tx.rollback_and_release().unwrap();
        tx.release().unwrap();
        assert!(!tx.signals.contains(Signal::Tasks));
        let kept = tx.rows("SELECT number FROM kept_numbers", &[]).unwrap();
        let kept: Vec<i64> = kept.into_iter().map(|mut row| row.int().unwrap()).collect();
        assert_eq!(kept, [1]);
    }

    #[test]
    fn an_old_sqlite_is_refused_and_ours_is_not() {
        assert!(check_version(3_051_002).is_err());
        assert!(check_version(rusqlite::version_number()).is_ok());
    }
}
