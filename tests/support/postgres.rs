//! PostgreSQL for the tests: a throw-away cluster (`tests/postgres/cluster.sh`), and fresh
//! databases in it.
//!
//! With `HUNDI_TEST_POSTGRES` (the URL of a superuser) databases are made in that cluster; without
//! it each test process starts one of its own. Tests that stop or restart the server always have
//! their own.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio_postgres::{NoTls, SimpleQueryMessage};

/// How long a server may take to accept connections after its start.
const START_PATIENCE: Duration = Duration::from_secs(180);
/// What nodes of the tests share: 32 bytes in base64.
pub const ENCRYPTION_KEY: &str = "aHVuZGkgdGVzdHMgc2hhcmUgdGhpcyBvbmUga2V5ISE=";

/// A running server; it ends, and its folder goes, when this process does or the value is dropped.
pub struct Cluster {
    /// The superuser's URL of the database `postgres`.
    pub url: String,
    data: PathBuf,
    programs: PathBuf,
    keeper: Child,
}

impl Cluster {
    /// `settings` are lines of the server's configuration, such as `fsync=on`.
    pub fn start(settings: &[&str]) -> Cluster {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/postgres/cluster.sh");
        let mut keeper = Command::new(script)
            .args(settings)
            // What ends this process's group must not end the keeper, which has to clean up.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("tests/postgres/cluster.sh starts");
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().expect("a pipe"))
            .read_line(&mut line)
            .expect("the cluster's line");
        let words: Vec<&str> = line.split_whitespace().collect();
        let [url, data, programs] = words[..] else {
            panic!(
                "no PostgreSQL: tests/postgres/install.sh installs it; the script said {line:?}"
            );
        };
        Cluster { url: url.to_owned(), data: data.into(), programs: programs.into(), keeper }
    }

    /// The server's data folder, and where its programs are.
    pub fn places(&self) -> (&Path, &Path) {
        (&self.data, &self.programs)
    }

    /// The cluster that databases of this process are made in: the one of `HUNDI_TEST_POSTGRES`,
    /// else one of its own.
    pub fn shared_url() -> String {
        static OWN: OnceLock<Cluster> = OnceLock::new();
        match std::env::var("HUNDI_TEST_POSTGRES") {
            Ok(url) if !url.is_empty() => url,
            _ => OWN.get_or_init(|| Cluster::start(&[])).url.clone(),
        }
    }

    fn control(&self, arguments: &[&str]) {
        self.control_at(&self.data, arguments);
    }

    fn control_at(&self, data: &Path, arguments: &[&str]) {
        let data = data.to_string_lossy();
        self.run("pg_ctl", &[&["-D", &data], arguments].concat());
    }

    /// Runs one of PostgreSQL's programs as the user whom the cluster belongs to, beside its data.
    pub fn run(&self, program: &str, arguments: &[&str]) {
        let owner = std::fs::metadata(&self.data).expect("the cluster's folder");
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        let mut command = Command::new(self.programs.join(program));
        command.args(arguments).current_dir(self.folder()).env("LC_ALL", "C");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if is_root {
            command.uid(owner.uid()).gid(owner.gid());
        }
        let status = command.status().expect("the program runs");
        assert!(status.success(), "{program} {arguments:?} ended with {status}");
    }

    /// What goes with the cluster: its data, and what tests put beside it.
    pub fn folder(&self) -> &Path {
        self.data.parent().expect("a folder around the data")
    }

    /// Copies the running server as docs/postgresql.md says, with more arguments for
    /// `pg_basebackup`; answers where the copy is.
    pub fn base_backup(&self, name: &str, arguments: &[&str]) -> PathBuf {
        let copy = self.folder().join(name);
        // A standby that follows from the copy calls itself so.
        let url = format!("{}?application_name={name}", self.url);
        let copied = format!("--pgdata={}", copy.display());
        self.run(
            "pg_basebackup",
            &[
                &[copied.as_str(), "--dbname", &url, "--wal-method=stream", "--checkpoint=fast"],
                arguments,
            ]
            .concat(),
        );
        copy
    }

    /// Starts a second server on a copy, with lines of configuration of its own.
    pub fn start_copy(&self, data: PathBuf, settings: &[&str]) -> Copy<'_> {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let port_line = format!("port={port}");
        let lines: String = settings
            .iter()
            .chain([&port_line.as_str()])
            .filter_map(|line| line.split_once('='))
            .map(|(name, value)| format!("{name} = '{value}'\n"))
            .collect();
        let path = data.join("postgresql.conf");
        let text = std::fs::read_to_string(&path).expect("the configuration");
        std::fs::write(&path, text + &lines).expect("the configuration");
        let log = data.with_extension("log");
        self.control_at(&data, &["-l", &log.to_string_lossy(), "-w", "-t", "60", "start"]);
        Copy { url: format!("postgres://postgres@127.0.0.1:{port}/postgres"), cluster: self, data }
    }

    /// Runs statements that need a database to themselves, each by itself, while nobody can connect
    /// to it.
    pub fn sql_alone(&self, name: &str, statements: &str) {
        sql(&self.url, &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false"));
        for statement in statements.split(';') {
            let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE \
             'hundi_%'";
            let started = Instant::now();
            while try_sql(&self.url, end)
                .and_then(|_| try_sql(&self.url, statement))
                .is_err_and(|_| started.elapsed() < START_PATIENCE)
            {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        sql(&self.url, &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true"));
    }

    /// Changes lines of the server's configuration, such as `ssl=on`; new connections find them in
    /// force.
    pub fn set(&self, settings: &[&str]) {
        let lines: String = settings
            .iter()
            .filter_map(|line| line.split_once('='))
            .map(|(name, value)| format!("{name} = '{value}'\n"))
            .collect();
        let path = self.data.join("postgresql.conf");
        let text = std::fs::read_to_string(&path).expect("the configuration");
        std::fs::write(&path, text + &lines).expect("the configuration");
        let before = self.loaded_at();
        self.control(&["reload"]);
        let started = Instant::now();
        while self.loaded_at() == before {
            assert!(
                started.elapsed() < START_PATIENCE,
                "PostgreSQL does not read its configuration"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn loaded_at(&self) -> Vec<Vec<String>> {
        sql(&self.url, "SELECT pg_conf_load_time()")
    }

    /// Ends the server as a crash does: nothing is written any more, and the next start replays its
    /// log.
    pub fn stop_now(&self) {
        self.control(&["-m", "immediate", "-w", "stop"]);
    }

    /// Starts a stopped server and waits until it takes connections.
    pub fn start_again(&self) {
        let log = self.data.with_file_name("log");
        self.control(&["-l", &log.to_string_lossy(), "-W", "start"]);
        let started = Instant::now();
        while try_sql(&self.url, "SELECT 1").is_err() {
            assert!(started.elapsed() < START_PATIENCE, "PostgreSQL does not take connections");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A second server on a copy of a cluster; it ends with its value.
pub struct Copy<'c> {
    /// The superuser's URL of the database `postgres`.
    pub url: String,
    cluster: &'c Cluster,
    data: PathBuf,
}

impl Copy<'_> {
    /// Where it listens, such as `127.0.0.1:5433`.
    pub fn place(&self) -> &str {
        self.url.split(['@', '/']).nth(3).unwrap_or_default()
    }
    /// The standby becomes a server that takes writes.
    pub fn promote(&self) {
        self.cluster.control_at(&self.data, &["-w", "promote"]);
    }
}

impl Drop for Copy<'_> {
    fn drop(&mut self) {
        let data = self.data.to_string_lossy().into_owned();
        // It may have ended already.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            self.cluster.control_at(Path::new(&data), &["-m", "immediate", "stop"])
        }));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The end of its input tells the keeper to clean up.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// A transaction that stays open until this is dropped, which commits it.
pub struct Held {
    go: Option<std::sync::mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.go.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A database of one test; dropped with its value.
pub struct Database {
    pub name: String,
    admin_url: String,
}

impl Database {
    /// An empty database in the shared cluster.
    pub fn fresh() -> Database {
        Database::in_cluster(&Cluster::shared_url())
    }

    /// An empty database in the cluster of a superuser's URL.
    pub fn in_cluster(admin_url: &str) -> Database {
        Database::copy_of("template0", admin_url)
    }

    /// A copy of another database of the cluster, to which nobody is connected.
    pub fn copy_of(template: &str, admin_url: &str) -> Database {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let nanoseconds = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |elapsed| elapsed.as_nanos());
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("hundi_{}_{nanoseconds:x}_{count}", std::process::id());
        sql(admin_url, &format!("CREATE DATABASE {name} TEMPLATE {template}"));
        Database { name, admin_url: admin_url.to_owned() }
    }

    /// As the service is given it.
    pub fn url(&self) -> String {
        let (server, _) = self.admin_url.rsplit_once('/').expect("a URL with a database");
        format!("{server}/{}", self.name)
    }

    /// The same database behind another address, such as a proxy's.
    pub fn url_at(&self, address: std::net::SocketAddr) -> String {
        let user = self
            .admin_url
            .strip_prefix("postgres://")
            .and_then(|rest| rest.split_once('@'))
            .map_or("postgres", |(user, _)| user);
        format!("postgres://{user}@{address}/{}", self.name)
    }

    /// Where the server listens.
    pub fn server_address(&self) -> std::net::SocketAddr {
        let after = self.admin_url.split_once('@').map_or("", |(_, after)| after);
        let address = after.split('/').next().unwrap_or_default();
        address
            .parse()
            .unwrap_or_else(|_| panic!("the cluster's URL names no address and port: {address:?}"))
    }

    /// Rows of a query, or of the last one of several; the columns as texts.
    pub fn sql(&self, text: &str) -> Vec<Vec<String>> {
        sql(&self.url(), text)
    }

    /// The only column of the only row.
    pub fn value(&self, text: &str) -> String {
        self.sql(text).into_iter().next().and_then(|row| row.into_iter().next()).unwrap_or_default()
    }

    /// Begins a transaction beside the service, runs this in it, and keeps it open until it is let
    /// go.
    pub fn hold(&self, text: &str) -> Held {
        let (url, text) = (self.url(), text.to_owned());
        let (go, let_go) = std::sync::mpsc::channel::<()>();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            let (client, connection) =
                runtime.block_on(tokio_postgres::connect(&url, NoTls)).expect("a connection");
            runtime.spawn(connection);
            runtime
                .block_on(client.batch_execute(&format!("BEGIN; {text}")))
                .expect("what is held");
            ready.send(()).expect("the test");
            // A test that failed drops its end.
            let _ = let_go.recv();
            runtime.block_on(client.batch_execute("COMMIT")).expect("the commit");
        });
        is_ready.recv().expect("what is held");
        Held { go: Some(go), thread: Some(thread) }
    }

    /// Waits until all that has happened is an event.
    pub fn until_sequenced(&self) {
        self.until_none("outbox", "the outbox should be empty");
    }

    /// Waits until so many connections of this database wait for a lock.
    pub fn until_waiting(&self, count: usize) {
        let text = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND \
         wait_event_type = 'Lock'";
        let what = format!("{count} connections should wait for a lock");
        self.until(&what, text, &count.to_string());
    }

    /// Waits until no row is found in `rows`, which is a table with conditions.
    pub fn until_none(&self, rows: &str, what: &str) {
        self.until(what, &format!("SELECT COUNT(*) FROM {rows}"), "0");
    }

    fn until(&self, what: &str, text: &str, wanted: &str) {
        let started = Instant::now();
        while self.value(text) != wanted {
            assert!(started.elapsed() < START_PATIENCE, "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Every table's rows: their text, and the bytes that the text shows as hexadecimal.
    pub fn contents(&self) -> Vec<(String, Vec<u8>)> {
        let tables =
            self.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1");
        let read = |table: &String| -> Vec<u8> {
            let rows = self.sql(&format!("SELECT t::text FROM {table} t"));
            rows.into_iter()
                .flatten()
                .flat_map(|text| [shown_bytes(&text), text.into_bytes()].concat())
                .collect()
        };
        tables.iter().flatten().map(|table| (table.clone(), read(table))).collect()
    }

    /// Ends all connections of the database but the caller's own, and answers how many they were.
    pub fn terminate_connections(&self) -> usize {
        let text = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = \
         current_database() AND pid <> pg_backend_pid()";
        self.sql(text).len()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the test's database is {}", self.url());
            return;
        }
        // The cluster may be gone or stopped; then the database goes with its folder.
        let _ = try_sql(
            &self.admin_url,
            &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name),
        );
    }
}

/// The same as `try_sql`; a failure ends the test.
pub fn sql(url: &str, text: &str) -> Vec<Vec<String>> {
    try_sql(url, text).unwrap_or_else(|problem| panic!("{text}: {problem}"))
}

/// Runs statements on a connection of its own, also where a runtime is at work already. NULL reads
/// as an empty text.
pub fn try_sql(url: &str, text: &str) -> Result<Vec<Vec<String>>, String> {
    try_sql_within(Duration::from_secs(3_600), url, text)
}

/// The same on a server that may not answer.
pub fn try_sql_within(
    patience: Duration,
    url: &str,
    text: &str,
) -> Result<Vec<Vec<String>>, String> {
    std::thread::scope(|scope| {
        let work = || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| error.to_string())?;
            let ask = async {
                let (client, connection) =
                    tokio_postgres::connect(url, NoTls).await.map_err(|error| shown(&error))?;
                tokio::spawn(connection);
                let messages = client.simple_query(text).await.map_err(|error| shown(&error))?;
                Ok(messages.iter().filter_map(read_row).collect())
            };
            runtime
                .block_on(async { tokio::time::timeout(patience, ask).await })
                .unwrap_or_else(|_| Err("no answer".to_owned()))
        };
        scope.spawn(work).join().expect("the thread of a query")
    })
}

fn read_row(message: &SimpleQueryMessage) -> Option<Vec<String>> {
    let SimpleQueryMessage::Row(row) = message else { return None };
    Some((0..row.len()).map(|index| row.get(index).unwrap_or_default().to_owned()).collect())
}

fn shown(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(
        || error.to_string(),
        |told| format!("{} {}", told.code().code(), told.message()),
    )
}

/// The bytes behind every `\x…` of a text, one after the other.
fn shown_bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in text.split("\\x").skip(1) {
        let hex: Vec<u8> = part.bytes().take_while(u8::is_ascii_hexdigit).collect();
        let pairs = hex
            .chunks_exact(2)
            .filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
        bytes.extend(pairs);
    }
    bytes
}
