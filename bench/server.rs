//! The service under test: the release binary as a child process, and what is prepared over its
//! API.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::load::{self, Connection, Until};
use crate::machine;

/// Connections that drive the load.
pub const CONNECTIONS_COUNT: usize = 64;
/// Beneficiaries and senders that transfers are spread over.
const PARTIES_COUNT: usize = 50;
/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// One key for all databases, so that a copied file opens.
const ENCRYPTION_KEY: &str = "aHVuZGkgYmVuY2htYXJrIGVuY3J5cHRpb24ga2V5ISE=";

/// A running service; it ends with its value.
pub struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub address: SocketAddr,
}

/// A fresh folder for the databases of one section, removed with its value.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        // Below the build's own folder: on a disk, and the same file system for everything that is
        // compared.
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("bench-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder for the databases");
        Folder(path)
    }
    pub fn database(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.db"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Moves the log into the database file and answers the file's length in bytes. The service must be
/// stopped.
pub fn stored_bytes(database: &Path) -> u64 {
    let connection = hundi::store::sqlite::open_writer(database).expect("the database opens");
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("a checkpoint");
    drop(connection);
    std::fs::metadata(database).map_or(0, |metadata| metadata.len())
}

/// Bytes of the newest stored answer, as the service keeps it.
pub fn newest_answer_bytes(database: &Path) -> usize {
    let connection = hundi::store::sqlite::open_reader(database).expect("the database opens");
    let sql = "SELECT LENGTH(body) FROM idempotency_answers ORDER BY answer_id DESC LIMIT 1";
    connection.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a stored answer") as usize
}

impl Server {
    pub fn start(database: &Path) -> Server {
        Server::start_with(database, &[])
    }

    /// The same with more variables of the environment.
    pub fn start_with(database: &Path, variables: &[(&str, &str)]) -> Server {
        Server::start_on(
            &format!("sqlite:{}", database.display()),
            &database.with_extension("log"),
            variables,
        )
    }

    /// The same on a database as `--database` takes it, with a file for the log.
    pub fn start_on(database: &str, log: &Path, variables: &[(&str, &str)]) -> Server {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(log)
            .expect("a file for the log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_hundi"));
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HUNDI_"))
        {
            command.env_remove(name);
        }
        let mut child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--metrics", "--database", database])
            .env("HUNDI_ENCRYPTION_KEY", ENCRYPTION_KEY)
            .env("HUNDI_RATE_LIMIT_READS", "0")
            .env("HUNDI_RATE_LIMIT_WRITES", "0")
            .env("HUNDI_QUOTE_LOCK_SECONDS", "900")
            .env("HUNDI_FUNDING_SECONDS", "86400")
            .env("HUNDI_SIMULATION_STEP_MILLISECONDS", "1")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the service starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("the service's output"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("the service says where it listens");
        let address = line
            .trim()
            .strip_prefix("listening on http://")
            .and_then(|address| address.parse().ok());
        let address = address.unwrap_or_else(|| {
            panic!(
                "the service said {line:?} instead of where it \
             listens; see the log beside its database"
            )
        });
        Server { child, stdout, address }
    }

    /// Where the console listens, which the service says next where it has one. To be asked once.
    pub fn console(&mut self) -> SocketAddr {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("the service says where its console is");
        let address = line.trim().strip_prefix("console at http://");
        let address = address.and_then(|rest| rest.strip_suffix("/console")?.parse().ok());
        address.unwrap_or_else(|| panic!("the service said {line:?} instead"))
    }

    pub fn process_id(&self) -> u32 {
        self.child.id()
    }
    /// Waits until the service does nothing by itself.
    pub async fn calm(&self) {
        const LOOK: Duration = Duration::from_millis(100);
        const BUSY_SHARE_MAX: f64 = 0.05;
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            let before = machine::cpu_seconds(self.process_id());
            tokio::time::sleep(LOOK).await;
            if machine::cpu_seconds(self.process_id()) - before
                <= LOOK.as_secs_f64() * BUSY_SHARE_MAX
            {
                return;
            }
        }
    }
    pub fn resident_mebibytes(&self) -> f64 {
        machine::resident_mebibytes(self.process_id())
    }

    /// Commits and transactions of the write lane so far.
    pub async fn lane(&self) -> (f64, f64) {
        let mut connection = Connection::open(self.address).await;
        let (_, page) = connection.ask(&load::get_request("/metrics", "")).await;
        let page = String::from_utf8_lossy(page).into_owned();
        let counter = |name: &str| {
            page.lines()
                .find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok())
                .unwrap_or(0.0)
        };
        (counter("hundi_store_commits_total "), counter("hundi_store_jobs_total "))
    }

    /// Asks the service to end, and waits.
    pub fn stop(mut self) {
        let _ = Command::new("kill").arg(self.process_id().to_string()).status();
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes a test key of an account, on the database file itself.
pub fn make_key(database: &Path, account: &str) -> String {
    make_key_on(&format!("sqlite:{}", database.display()), account)
}

/// The same on a database as `--database` takes it.
pub fn make_key_on(database: &str, account: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hundi"));
    let output = command
        .args(["keys", "create", "--mode", "test", "--account", account, "--database", database])
        .env("HUNDI_ENCRYPTION_KEY", ENCRYPTION_KEY)
        .output()
        .expect("hundi keys create runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "no key was made: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    text.trim_end().lines().last().unwrap_or_default().to_owned()
}

/// Makes an operator of the console.
pub fn make_operator_on(database: &str, name: &str, password: &str) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hundi"))
        .args(["operators", "create", name, "--role", "operator", "--password-stdin"])
        .args(["--database", database])
        .env("HUNDI_ENCRYPTION_KEY", ENCRYPTION_KEY)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("hundi operators create runs");
    let mut input = child.stdin.take().expect("its input");
    input.write_all(password.as_bytes()).expect("a password is given");
    drop(input);
    assert!(child.wait().is_ok_and(|status| status.success()), "no operator was made");
}

/// A caller of the API.
pub struct Api {
    pub address: SocketAddr,
    pub key: String,
    connection: Connection,
}

/// An idempotency key that nobody used.
pub fn fresh_key() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_secs());
    format!("bench-{since:010x}-{:016x}", COUNT.fetch_add(1, Ordering::Relaxed))
}

impl Api {
    pub async fn new(address: SocketAddr, key: &str) -> Api {
        Api { address, key: key.to_owned(), connection: Connection::open(address).await }
    }

    pub async fn post(&mut self, path: &str, body: &Value) -> Value {
        let request = load::request("POST", path, &self.key, &fresh_key(), &body.to_string());
        self.ask(&request, path).await
    }
    pub async fn get(&mut self, path: &str) -> Value {
        let request = load::get_request(path, &self.key);
        self.ask(&request, path).await
    }
    async fn ask(&mut self, request: &[u8], path: &str) -> Value {
        let (status, body) = self.connection.ask(request).await;
        assert!(
            (200..300).contains(&status),
            "{path} answered {status}: {}",
            String::from_utf8_lossy(body)
        );
        serde_json::from_slice(body).unwrap_or_else(|_| panic!("{path} did not answer JSON"))
    }

    pub async fn sender(&mut self) -> String {
        let body = json!({ "name": "Ravi Rao", "type": "individual", "country": "AE",
            "email": "ravi@example.com" });
        id(&self.post("/v1/senders", &body).await)
    }

    /// A beneficiary that can be paid.
    pub async fn beneficiary(&mut self) -> String {
        let body = json!({
            "name": "Asha Rao", "account_number": "50100012345678", "ifsc": "HDFC0000001",
                "account_type": "nre",
            "email": "asha@example.com", "phone": "+919812345678",
        });
        let id = id(&self.post("/v1/beneficiaries", &body).await);
        self.wait_status(&format!("/v1/beneficiaries/{id}"), "active").await;
        id
    }

    pub async fn quote_lock(&mut self) -> String {
        id(&self.post("/v1/quote_locks", &quote_lock_body()).await)
    }

    /// Asks until the object has a status; answers the object.
    pub async fn wait_status(&mut self, path: &str, status: &str) -> Value {
        let started = Instant::now();
        loop {
            let found = self.get(path).await;
            if found["status"] == status {
                return found;
            }
            assert!(started.elapsed() < PATIENCE, "{path} did not become {status}: {found}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Registers a receiver of some events; answers the endpoint's identifier.
    pub async fn endpoint(&mut self, url: &str, enabled_events: &[&str]) -> String {
        id(&self
            .post("/v1/webhook_endpoints", &json!({ "url": url, "enabled_events": enabled_events }))
            .await)
    }

    /// Parties that transfers can be spread over.
    pub async fn parties(&mut self) -> Parties {
        let mut parties = Parties { senders: Vec::new(), beneficiaries: Vec::new() };
        for _ in 0..PARTIES_COUNT {
            parties.senders.push(self.sender().await);
            parties.beneficiaries.push(self.beneficiary().await);
        }
        parties
    }

    /// Fresh quote locks, made in bulk.
    pub async fn quote_locks(&self, count: usize) -> Vec<String> {
        let body = quote_lock_body().to_string();
        let requests = (0..count)
            .map(|_| load::request("POST", "/v1/quote_locks", &self.key, &fresh_key(), &body))
            .collect();
        let ids = Arc::new(Mutex::new(Vec::with_capacity(count)));
        let keeping = ids.clone();
        let keep: load::OnAnswer = Arc::new(move |_, body, _| {
            keeping.lock().expect("the list of locks").push(id_in(body))
        });
        load::closed(self.address, CONNECTIONS_COUNT, Arc::new(requests), Until::AllSent, keep)
            .await;
        std::mem::take(&mut *ids.lock().expect("the list of locks"))
    }

    /// Requests that each create a transfer, with fresh quote locks made beforehand.
    pub async fn creations(&self, parties: &Parties, count: usize) -> Arc<Vec<Vec<u8>>> {
        let locks = self.quote_locks(count).await;
        let request = |(index, lock): (usize, &String)| {
            let body = parties.transfer_body(index, lock).to_string();
            load::request("POST", "/v1/transfers", &self.key, &fresh_key(), &body)
        };
        Arc::new(locks.iter().enumerate().map(request).collect())
    }
}

/// Who sends and who is paid.
#[derive(Clone, Default)]
pub struct Parties {
    pub senders: Vec<String>,
    pub beneficiaries: Vec<String>,
}

impl Parties {
    pub fn transfer_body(&self, index: usize, quote_lock_id: &str) -> Value {
        json!({
            "sender_id": self.senders[index * 7 % self.senders.len()],
                "beneficiary_id": self.beneficiaries[index % self.beneficiaries.len()],
            "amount": "1000.00", "currency": "USD", "payout_currency": "INR",
                "quote_lock_id": quote_lock_id,
            "funding": { "rail": "stablecoin", "asset": "USDT", "chain": "tron" },
            "metadata": { "order_id": format!("order-{index:012}") },
        })
    }
}

fn quote_lock_body() -> Value {
    json!({ "sell_currency": "USD", "buy_currency": "INR", "amount": "1000.00" })
}

pub fn id(object: &Value) -> String {
    object["id"].as_str().unwrap_or_else(|| panic!("no id in {object}")).to_owned()
}

/// The identifier at the top of an answer, without parsing the rest.
pub fn id_in(body: &[u8]) -> String {
    const MARK: &[u8] = b"\"id\":\"";
    let at = body
        .windows(MARK.len())
        .position(|window| window == MARK)
        .expect("an identifier in the answer")
        + MARK.len();
    let end = body[at..].iter().position(|byte| *byte == b'"').expect("the end of an identifier");
    String::from_utf8_lossy(&body[at..at + end]).into_owned()
}
