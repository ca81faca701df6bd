//! What the black-box tests share: a server process on a database of its own, an HTTP client, a
//! webhook receiver, the six steps and a seeded random source. They see the service only through
//! its binary.

#![allow(
    dead_code,
    unused_imports,
    reason = "each test binary uses its own part of what is shared"
)]

pub mod at_once;
pub mod client;
pub mod load;
pub mod oracle;
pub mod postgres;
pub mod random;
pub mod receiver;
pub mod requests;
pub mod rotation;
pub mod steps;
pub mod stopwatch;

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use client::{Answer, Client, Connection, fresh_key, until};
pub use random::Random;
pub use receiver::Receiver;
pub use stopwatch::Stopwatch;

/// How long a start may take before a test gives up on it; what the service promises is asserted by
/// the crash tests.
const START_PATIENCE: Duration = Duration::from_secs(180);
/// How long a short command may take.
const COMMAND_PATIENCE: Duration = Duration::from_secs(120);
/// Lines of the server's log that are kept for a failing test.
const LOG_LINES_MAX: usize = 400;

/// What a server wrote, across restarts: its last lines, and every line that tells of a panic.
#[derive(Default)]
struct Log {
    tail: VecDeque<String>,
    panics: Vec<String>,
}

impl Log {
    fn take(&mut self, line: String) {
        if line.contains("panicked") {
            self.panics.push(line.clone());
        }
        if self.tail.len() == LOG_LINES_MAX {
            self.tail.pop_front();
        }
        self.tail.push_back(line);
    }
}

fn locked(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A directory with a database, and how commands on it are called.
pub struct Home {
    pub directory: PathBuf,
    environment: Vec<(String, OsString)>,
    /// Another database than the file in the directory.
    database_url: Option<String>,
    /// For servers only, not for the short commands beside them.
    fault: Option<String>,
    log: Arc<Mutex<Log>>,
}

/// What a finished command left.
#[derive(Debug)]
pub struct Outcome {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    pub fn expect_success(self, what: &str) -> Outcome {
        assert!(
            self.status.success(),
            "{what} ended with {}\n{}\n{}",
            self.status,
            self.stdout,
            self.stderr
        );
        self
    }
    pub fn last_line(&self) -> String {
        self.stdout.trim_end().lines().last().unwrap_or_default().trim().to_owned()
    }
}

impl Home {
    /// A new directory below the build's own, which is on a disk and not in memory.
    pub fn new(name: &str) -> Home {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let nanoseconds = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |elapsed| elapsed.subsec_nanos());
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("{name}-{}-{nanoseconds}-{count}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory for the test");
        Home {
            directory,
            environment: Vec::new(),
            database_url: None,
            fault: None,
            log: Arc::default(),
        }
    }

    /// Sets a variable for the servers and commands of this home.
    pub fn with(mut self, name: &str, value: &str) -> Home {
        self.set(name, value);
        self
    }
    /// Has the servers and commands of this home work on a database elsewhere, with the key that
    /// the tests' nodes share.
    pub fn on(mut self, database_url: &str) -> Home {
        self.database_url = Some(database_url.to_owned());
        self.with("HUNDI_ENCRYPTION_KEY", postgres::ENCRYPTION_KEY)
    }
    /// Plants a fault, if any, in the servers of this home, to see that a test notices it.
    pub fn with_fault<'a>(mut self, fault: impl Into<Option<&'a str>>) -> Home {
        self.fault = fault.into().map(str::to_owned);
        self
    }
    pub fn set(&mut self, name: &str, value: &(impl AsRef<OsStr> + ?Sized)) {
        self.unset(name);
        self.environment.push((name.to_owned(), value.as_ref().to_owned()));
    }
    pub fn unset(&mut self, name: &str) {
        self.environment.retain(|(known, _)| known != name);
    }

    pub fn database_path(&self) -> PathBuf {
        self.directory.join("hundi.db")
    }
    pub fn database(&self) -> String {
        self.database_url
            .clone()
            .unwrap_or_else(|| format!("sqlite:{}", self.database_path().display()))
    }

    /// A command whose surroundings hold no setting but this home's.
    fn prepare(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("HUNDI_") {
                command.env_remove(name);
            }
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command of the binary as it is given.
    pub fn run_plain(&self, arguments: &[&str]) -> Outcome {
        let child = self
            .prepare(env!("CARGO_BIN_EXE_hundi"), arguments)
            .spawn()
            .expect("the binary starts");
        finish(child, &format!("hundi {}", arguments.join(" ")))
    }

    /// Runs a command of the binary on this home's database.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        let database = self.database();
        let mut all = arguments.to_vec();
        all.extend(["--database", &database]);
        self.run_plain(&all)
    }

    /// Makes a test key of the default account.
    pub fn key(&self) -> String {
        self.key_with(&[])
    }
    pub fn key_with(&self, arguments: &[&str]) -> String {
        let mut all = vec!["keys", "create", "--mode", "test"];
        all.extend(arguments);
        self.run(&all).expect_success("keys create").last_line()
    }

    /// Verifies the whole book and the status histories.
    pub fn check(&self) -> Outcome {
        self.run(&["check"])
    }

    pub fn start(&self) -> Server {
        self.start_as(&[], "127.0.0.1:0")
    }

    /// Starts on a port that can be taken again after a kill: one that the system does not give to
    /// clients, which could otherwise sit on it while the server is down.
    pub fn start_on_own_port(&self) -> Server {
        let mut random = Random::new(random::fresh_seed());
        let clients_from: u16 = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
            .ok()
            .and_then(|text| text.split_whitespace().next().and_then(|low| low.parse().ok()))
            .unwrap_or(32_768);
        let high = clients_from.saturating_sub(1).max(10_001);
        for _ in 0..100 {
            let port = random.between(10_000, u64::from(high)) as u16;
            let Ok(free) = TcpListener::bind(("127.0.0.1", port)) else { continue };
            drop(free);
            return self.start_as(&[], &format!("127.0.0.1:{port}"));
        }
        panic!("no free port between 10000 and {high}");
    }

    /// Starts the server through another program, such as one that changes how signals are handled
    /// and then becomes it.
    pub fn start_as(&self, wrapper: &[&str], listen: &str) -> Server {
        self.try_start(wrapper, listen)
            .unwrap_or_else(|problem| panic!("the server did not start: {problem}\n{}", self.log()))
    }

    pub fn try_start(&self, wrapper: &[&str], listen: &str) -> Result<Server, String> {
        let (started, watch) = (Instant::now(), Stopwatch::start());
        let mut server = self.spawn(wrapper, listen);
        loop {
            match server.address_within(Duration::from_millis(5)) {
                Some(_) if server.is_ready() => break,
                _ => {}
            }
            if let Some(status) = server.ended() {
                // Its last words are in the pipe for a moment longer.
                server.join_readers();
                return Err(format!("it ended with {status}"));
            }
            if started.elapsed() > START_PATIENCE {
                return Err(format!("not ready after {START_PATIENCE:?}"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        server.ready_after = watch.elapsed();
        Ok(server)
    }

    /// Starts the server and does not wait for it.
    pub fn spawn(&self, wrapper: &[&str], listen: &str) -> Server {
        let database = self.database();
        let mut line = wrapper.to_vec();
        line.extend([
            env!("CARGO_BIN_EXE_hundi"),
            "serve",
            "--listen",
            listen,
            "--database",
            &database,
        ]);
        let mut command = self.prepare(line[0], &line[1..]);
        command.envs(self.fault.iter().map(|fault| ("HUNDI_TEST_FAULT", fault)));
        let mut child = command.spawn().expect("the server's process");
        let (address_found, address_waiting) = mpsc::channel();
        let stdout = child.stdout.take().expect("a pipe");
        let stderr = child.stderr.take().expect("a pipe");
        // Both pipes are read to their end, so that the server never waits for its log.
        let readers = vec![
            drain(stdout, self.log.clone(), Some(address_found)),
            drain(stderr, self.log.clone(), None),
        ];
        Server {
            child,
            address: None,
            address_waiting,
            ready_after: Duration::ZERO,
            readers,
            log: self.log.clone(),
        }
    }

    /// The last lines of the log.
    pub fn log(&self) -> String {
        let log = locked(&self.log);
        log.tail.iter().map(|line| format!("{line}\n")).collect()
    }

    pub fn panics(&self) -> Vec<String> {
        locked(&self.log).panics.clone()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "the last lines of the server's log:\n{}\nthe database stays at {}",
                self.log(),
                self.directory.display()
            );
        } else {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

fn drain(
    pipe: impl Read + Send + 'static,
    log: Arc<Mutex<Log>>,
    address_found: Option<mpsc::Sender<SocketAddr>>,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut address_found = address_found;
        let mut reader = BufReader::new(pipe);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if let Some(found) = address_found.as_ref()
                && let Some(address) = address_in(&text)
            {
                // The test may have given up on this start.
                let _ = found.send(address);
                address_found = None;
            }
            locked(&log).take(text);
            line.clear();
        }
    })
}

/// The socket address of the first `http://` in a line.
fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("http://")?;
    let end = rest
        .find(|letter: char| !(letter.is_ascii_digit() || letter == '.' || letter == ':'))
        .unwrap_or(rest.len());
    rest[..end].trim_end_matches(['.', ':']).parse().ok()
}

/// Waits for a short command, reading what it writes; one that does not end is killed and fails the
/// test.
fn finish(mut child: Child, what: &str) -> Outcome {
    let read = |pipe: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(mut pipe) = pipe {
                // What was read before a broken pipe is still worth showing.
                let _ = pipe.read_to_end(&mut text);
            }
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let stdout = read(child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>));
    let stderr = read(child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>));
    let deadline = Instant::now() + COMMAND_PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child to wait for") {
            break status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{what} did not end within {COMMAND_PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    Outcome {
        status,
        stdout: stdout.join().unwrap_or_default(),
        stderr: stderr.join().unwrap_or_default(),
    }
}

/// A running server; it does not outlive its handle.
pub struct Server {
    child: Child,
    address: Option<SocketAddr>,
    address_waiting: mpsc::Receiver<SocketAddr>,
    /// From the start of the process to the first 200 of `/readyz`, as [`Stopwatch`] measures.
    pub ready_after: Duration,
    readers: Vec<JoinHandle<()>>,
    log: Arc<Mutex<Log>>,
}

impl Server {
    pub fn address(&self) -> SocketAddr {
        self.address.expect("a server that said where it listens")
    }
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
    pub fn client(&self, api_key: &str) -> Client {
        Client::new(self.address(), api_key)
    }

    fn address_within(&mut self, patience: Duration) -> Option<SocketAddr> {
        if self.address.is_none() {
            self.address = self.address_waiting.recv_timeout(patience).ok();
        }
        self.address
    }

    /// The status of a page that needs no key; `None` without an answer.
    pub fn probe(&self, path: &str) -> Option<u16> {
        let mut connection = Connection::open_within(self.address?, Duration::from_secs(5)).ok()?;
        connection
            .send(
                format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                    .as_bytes(),
            )
            .ok()?;
        connection.receive(true).ok()?.map(|answer| answer.status)
    }
    pub fn is_ready(&self) -> bool {
        self.probe("/readyz") == Some(200)
    }

    /// How the process ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child to wait for")
    }

    /// Waits until the process has ended by itself, and its log is read to the end.
    pub fn await_end(&mut self, patience: Duration) -> ExitStatus {
        let status = until("the server to end", patience, || self.ended());
        self.join_readers();
        status
    }

    /// Sends a signal by name, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.pid().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill -s {name} failed");
    }

    /// kill -9: the process gets no chance to say goodbye.
    pub fn kill_now(&mut self) {
        self.child.kill().expect("the server's process to kill");
        self.child.wait().expect("the server's process to wait for");
        self.join_readers();
    }

    /// Asks the server to end and waits for it.
    pub fn stop(mut self) -> ExitStatus {
        self.signal("TERM");
        self.await_end(Duration::from_secs(30))
    }

    fn join_readers(&mut self) {
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }

    pub fn panics(&self) -> Vec<String> {
        locked(&self.log).panics.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
