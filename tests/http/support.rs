//! A server in the test's own process, on a temporary database, and a small client for it. With
//! `HUNDI_TEST_STORE=postgres` the database is a fresh one in the cluster of the tests.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use hundi::app::{self, App, KeyRequest};
use hundi::config::{Config, Flags};
use hundi::console::Console;
use hundi::http::server;
use hundi::kernel::{Clock, DecidedBy, Mode};
use hundi::keys::Permissions;
use hundi::rails::files::settings::BankSettings;
use hundi::routes::resource_names;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, watch};

use crate::postgres;

/// Connections of a server on PostgreSQL, as few as it takes, and how many of them write.
const CONNECTIONS: &str = "4";
const WRITERS_COUNT: usize = 3;
/// How long a test waits for anything before it calls it a hang.
pub const WAIT: Duration = Duration::from_secs(120);

/// Whether the tests run on PostgreSQL; what only SQLite has is not tested there.
#[allow(dead_code, reason = "tests/http asks")]
pub fn is_on_postgres() -> bool {
    std::env::var("HUNDI_TEST_STORE").is_ok_and(|store| store == "postgres")
}

/// A running server. Its database goes with it.
pub struct Server {
    pub app: Arc<App>,
    pub address: String,
    /// Where the operator's console listens, for a server with `HUNDI_CONSOLE_LISTEN`.
    pub console: Option<String>,
    pub folder: PathBuf,
    /// As `--database` takes it.
    pub database_url: String,
    database: Option<postgres::Database>,
    /// The clock of a server started with `start_manual`, in milliseconds since 1970.
    pub clock: Arc<AtomicI64>,
    stop: watch::Sender<bool>,
    counter: AtomicU64,
}

impl Server {
    /// A server whose simulated world takes 5 ms a step and which has no rate limit.
    pub async fn start() -> Server {
        Server::start_with(&[]).await
    }

    /// The same with environment variables, such as `("HUNDI_FEE", "1.00")`.
    pub async fn start_with(variables: &[(&str, &str)]) -> Server {
        Server::open(variables, Clock::System, Arc::default(), None, is_on_postgres()).await
    }

    /// A server whose clock stands still until the test moves `clock`.
    pub async fn start_manual(variables: &[(&str, &str)]) -> Server {
        let clock = Arc::new(AtomicI64::new(1_790_000_000_000));
        Server::open(variables, Clock::Manual(clock.clone()), clock, None, is_on_postgres()).await
    }

    /// A server whose bank is spoken to by files. Without `runs_worker` the test does the worker's
    /// turns itself.
    #[allow(dead_code, reason = "tests/iso20022 starts with it")]
    pub async fn start_bank(bank: BankSettings, runs_worker: bool) -> Server {
        Server::open(
            &[],
            Clock::System,
            Arc::default(),
            Some((bank, runs_worker)),
            is_on_postgres(),
        )
        .await
    }

    /// The same with the worker, and a clock that stands still until the test moves it.
    #[allow(dead_code, reason = "tests/iso20022 starts with it")]
    pub async fn start_bank_manual(bank: BankSettings) -> Server {
        let clock = Arc::new(AtomicI64::new(1_790_000_000_000));
        Server::open(&[], Clock::Manual(clock.clone()), clock, Some((bank, true)), is_on_postgres())
            .await
    }

    /// The same without the worker and on PostgreSQL, whatever the other tests run on.
    #[allow(dead_code, reason = "tests/iso20022 starts with it")]
    pub async fn start_bank_on_postgres(bank: BankSettings) -> Server {
        Server::open(&[], Clock::System, Arc::default(), Some((bank, false)), true).await
    }

    async fn open(
        variables: &[(&str, &str)],
        clock: Clock,
        manual: Arc<AtomicI64>,
        bank: Option<(BankSettings, bool)>,
        is_on_postgres: bool,
    ) -> Server {
        let mut random = [0_u8; 8];
        getrandom::fill(&mut random).unwrap();
        let folder =
            std::env::temp_dir().join(format!("hundi-test-{:016x}", u64::from_be_bytes(random)));
        std::fs::create_dir(&folder).unwrap();
        let database = is_on_postgres.then(postgres::Database::fresh);
        let database_url = match &database {
            Some(database) => database.url(),
            None => format!("sqlite:{}", folder.join("test.db").display()),
        };
        let mut all: Vec<(String, String)> = [
            ("HUNDI_SIMULATION_STEP_MILLISECONDS", "5"),
            ("HUNDI_RATE_LIMIT_READS", "0"),
            ("HUNDI_RATE_LIMIT_WRITES", "0"),
        ]
        .iter()
        .chain(variables)
        .chain(database.iter().flat_map(|_| {
            &[
                ("HUNDI_ENCRYPTION_KEY", postgres::ENCRYPTION_KEY),
                ("HUNDI_DATABASE_CONNECTIONS", CONNECTIONS),
            ]
        }))
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
        all.reverse();
        // A configuration file, for what only stands in one.
        let file = all.iter().find(|(name, _)| name == "CONFIG").map(|(_, path)| path.into());
        let flags = Flags {
            config: file,
            database: Some(database_url.clone()),
            listen: Some("127.0.0.1:0".into()),
            metrics: true,
            ..Flags::default()
        };
        let environment = move |name: &str| {
            all.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        let config = Config::read(&flags, &environment).unwrap();
        let app = match bank {
            None => App::open(&config, clock).await.unwrap(),
            Some((bank, runs_worker)) => {
                let mut app = App::open_with_bank(&config, clock, bank).await.unwrap();
                if !runs_worker {
                    Arc::get_mut(&mut app).unwrap().bank = None;
                }
                app
            }
        };
        let (listener, address) = server::bind(&config.listen).await.unwrap();
        let (stop, stopping) = watch::channel(false);
        let console = match &config.console {
            None => None,
            Some(settings) => {
                let (listener, address) = server::bind(&settings.listen).await.unwrap();
                let url = settings.url(address);
                let second_factor = settings.requires_second_factor;
                let console = Console::new(app.state.clone(), &url, second_factor).unwrap();
                let console = console.with_proxies(settings.proxies.clone());
                Some((address.to_string(), (listener, Arc::new(console))))
            }
        };
        let (console_address, console) = console.unzip();
        tokio::spawn(app.clone().run_with(listener, console, stopping));
        Server {
            app,
            address: address.to_string(),
            console: console_address,
            folder,
            database_url,
            database,
            clock: manual,
            stop,
            counter: AtomicU64::new(0),
        }
    }

    /// A client with a fresh test key of the account `default`.
    pub async fn client(&self) -> Client {
        self.client_of("default", Mode::Test, "").await
    }

    /// A client with a fresh key; `permissions` as on the command line, empty for all.
    pub async fn client_of(&self, account: &str, mode: Mode, permissions: &str) -> Client {
        let permissions = Permissions::parse(permissions, &resource_names()).unwrap();
        self.client_with(KeyRequest {
            account: account.into(),
            mode,
            permissions,
            expires_at: None,
        })
        .await
    }

    pub async fn client_with(&self, request: KeyRequest) -> Client {
        let key = key_for(&self.app, request).await;
        let prefix = self.counter.fetch_add(1, Ordering::SeqCst);
        let sequenced_url = self.database.as_ref().map(postgres::Database::url);
        Client { sequenced_url, prefix, ..Client::of(&self.address, &key) }
    }

    /// The database of a server on PostgreSQL.
    #[allow(dead_code, reason = "tests/iso20022 holds its locks")]
    pub fn database(&self) -> &postgres::Database {
        self.database.as_ref().expect("a server on PostgreSQL")
    }

    /// The binary, in the server's folder and with what it needs to read the server's database.
    #[allow(dead_code, reason = "tests/chain has none beside its server")]
    pub fn binary(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hundi"));
        command.args(arguments).current_dir(&self.folder);
        if self.database.is_some() {
            command.env("HUNDI_ENCRYPTION_KEY", postgres::ENCRYPTION_KEY);
        }
        command
    }

    /// Checks the whole book and every history.
    #[allow(dead_code, reason = "tests/chain has an oracle of its own")]
    #[track_caller]
    pub fn assert_book(&self) {
        if self.database.is_some() {
            let output =
                self.binary(&["check", "--database", &self.database_url]).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        } else {
            let report = hundi::verify_book::run(&hundi::store::Database::Sqlite(
                self.folder.join("test.db"),
            ))
            .unwrap();
            assert_eq!(report.faults, Vec::<String>::new());
        }
    }

    /// All that is stored, by file or table, as bytes: what is meant to be secret must not be among
    /// it.
    #[allow(dead_code, reason = "tests/http looks for secrets")]
    pub fn stored_bytes(&self) -> Vec<(String, Vec<u8>)> {
        if let Some(database) = &self.database {
            return database.contents();
        }
        std::fs::read_dir(&self.folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_none_or(|extension| extension != "key"))
            .map(|path| (path.display().to_string(), std::fs::read(&path).unwrap()))
            .collect()
    }

    /// Asks the server to stop, as a signal would.
    pub fn stop(&self) {
        let _ = self.stop.send(true);
    }

    /// Moves the clock of a server started with `start_manual`.
    pub fn advance_seconds(&self, seconds: i64) {
        // What happened before happened at its own time.
        if let Some(database) = &self.database {
            await_sequencer(&database.url());
        }
        self.clock.fetch_add(seconds * 1000, Ordering::SeqCst);
    }
}

/// A fresh key of a service in this process.
pub async fn key_for(app: &App, request: KeyRequest) -> String {
    let work = app.state.store.write(move |tx, now| Ok(app::create_key(tx, now, &request)?));
    work.await.expect("a key")
}

/// A fresh test key of the first account, with every permission.
#[allow(dead_code, reason = "other test binaries use it")]
pub async fn test_key(app: &App) -> String {
    let (account, mode) = ("default".into(), Mode::Test);
    key_for(app, KeyRequest { account, mode, permissions: Permissions::All, expires_at: None })
        .await
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Waits until every change has its event.
fn await_sequencer(database_url: &str) {
    let started = Instant::now();
    while postgres::sql(database_url, "SELECT 1 FROM outbox LIMIT 1") != Vec::<Vec<String>>::new() {
        assert!(started.elapsed() < WAIT, "the outbox is not sequenced");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Keeps the write lanes from going on until they are let go, or this is dropped.
pub struct LaneHold {
    releases: Vec<mpsc::Sender<()>>,
}

impl LaneHold {
    /// Waits for a first answer, because a server that is starting writes too.
    pub async fn of(server: &Server, client: &Client) -> LaneHold {
        client.get("/v1/corridors").await.ok();
        let mut releases = Vec::new();
        for _ in 0..if is_on_postgres() { WRITERS_COUNT } else { 1 } {
            let (release, released) = mpsc::channel::<()>();
            let (running, is_running) = tokio::sync::oneshot::channel();
            let mut running = Some(running);
            let app = server.app.clone();
            tokio::spawn(async move {
                app.state
                    .store
                    .write(move |_, _| {
                        if let Some(running) = running.take() {
                            let _ = running.send(());
                            let _ = released.recv_timeout(WAIT);
                        }
                        Ok(())
                    })
                    .await
            });
            is_running.await.unwrap();
            releases.push(release);
        }
        LaneHold { releases }
    }

    pub fn let_go(self) {
        for release in self.releases {
            let _ = release.send(());
        }
    }
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {:?}", self.body))
    }
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
    /// The object of a 200.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }
    /// Checks the error shape and the status; answers `(code, field_name)` of each error.
    #[track_caller]
    pub fn errors(&self, status: u16) -> Vec<(String, Option<String>)> {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        let body = self.json();
        assert_eq!(body["object"], "error");
        assert_eq!(body["http_status_code"], status);
        let errors = body["errors"].as_array().unwrap();
        assert!(!errors.is_empty());
        errors
            .iter()
            .map(|error| {
                assert!(error["message"].is_string() && error["metadata"].is_object());
                (
                    error["code"].as_str().unwrap().to_owned(),
                    error["metadata"]["field_name"].as_str().map(str::to_owned),
                )
            })
            .collect()
    }
    /// The only error's code.
    #[track_caller]
    pub fn error(&self, status: u16) -> String {
        let errors = self.errors(status);
        assert_eq!(errors.len(), 1, "{errors:?}");
        errors[0].0.clone()
    }
}

/// A client with one key. Requests of one client share a connection and run one after another.
pub struct Client {
    pub address: String,
    pub key: String,
    prefix: u64,
    counter: AtomicU64,
    connection: Mutex<Option<SendRequest<Full<Bytes>>>>,
    /// The database of a server whose events follow what they tell of within moments.
    sequenced_url: Option<String>,
}

impl Client {
    /// A client of any server.
    pub fn of(address: &str, key: &str) -> Client {
        Client {
            address: address.into(),
            key: key.into(),
            prefix: 0,
            counter: AtomicU64::new(0),
            connection: Mutex::new(None),
            sequenced_url: None,
        }
    }

    /// A client of its own connection with the same key, for concurrent requests.
    pub fn twin(&self) -> Client {
        Client {
            prefix: self.prefix + 1_000 + self.counter.fetch_add(1, Ordering::SeqCst),
            sequenced_url: self.sequenced_url.clone(),
            ..Client::of(&self.address, &self.key)
        }
    }

    /// An idempotency key that this client has not used.
    pub fn fresh_key(&self) -> String {
        format!("test-key-{:06}-{:08}", self.prefix, self.counter.fetch_add(1, Ordering::SeqCst))
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], Bytes::new()).await
    }
    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, &[], Bytes::new()).await
    }
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.post_with(path, &self.fresh_key(), body).await
    }
    pub async fn post_with(&self, path: &str, idempotency_key: &str, body: Value) -> Answer {
        self.post_raw(path, idempotency_key, body.to_string()).await
    }
    pub async fn post_raw(
        &self,
        path: &str,
        idempotency_key: &str,
        body: impl Into<Bytes>,
    ) -> Answer {
        let headers = [("idempotency-key", idempotency_key), ("content-type", "application/json")];
        self.send(Method::POST, path, &headers, body.into()).await
    }

    /// Sends a request with the key and these headers; a header `authorization` given here replaces
    /// the key's.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Answer {
        self.try_send(method, path, headers, body).await.expect("an answer")
    }

    /// The same; `None` where the connection closes without an answer.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Option<Answer> {
        let mut connection = self.connection.lock().await;
        if let Some(url) = self.sequenced_url.as_ref().filter(|_| path.starts_with("/v1/events")) {
            await_sequencer(url);
        }
        let mut sender = match connection.take().filter(|sender| !sender.is_closed()) {
            Some(sender) => sender,
            None => self.connect().await,
        };
        if sender.ready().await.is_err() {
            sender = self.connect().await;
        }
        let mut request = Request::builder().method(method).uri(path).header("host", &self.address);
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
            request = request.header("authorization", format!("Bearer {}", self.key));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = sender.send_request(request.body(Full::new(body)).unwrap()).await.ok()?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        assert!(
            head.headers.get("request-id").is_some_and(|id| id.as_bytes().starts_with(b"request_")),
            "every answer carries its Request-Id"
        );
        *connection = Some(sender);
        Some(Answer { status: head.status.as_u16(), headers: head.headers, body })
    }

    async fn connect(&self) -> SendRequest<Full<Bytes>> {
        let stream = TcpStream::connect(&self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    /// Asks again and again until the object is as wanted.
    pub async fn wait_until(&self, path: &str, mut wanted: impl FnMut(&Value) -> bool) -> Value {
        let started = Instant::now();
        loop {
            let found = self.get(path).await.ok();
            if wanted(&found) {
                return found;
            }
            assert!(started.elapsed() < WAIT, "{path} did not become as wanted: {found}");
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }

    pub async fn wait_status(&self, path: &str, status: &str) -> Value {
        self.wait_until(path, |found| found["status"] == status).await
    }

    /// Moves the account's test clock forward; all that falls due has run when this returns.
    pub async fn advance(&self, seconds: i64) -> i64 {
        self.post("/v1/test_helpers/clock", json!({ "advance_seconds": seconds })).await.ok()["now"]
            .as_i64()
            .unwrap()
    }

    pub async fn beneficiary(&self, account_number: &str) -> Value {
        let body = json!({ "name": "Asha Rao", "account_number": account_number,
            "ifsc": "HDFC0000001", "account_type": "nre" });
        self.post("/v1/beneficiaries", body).await.ok()
    }

    /// A beneficiary that is active.
    pub async fn active_beneficiary(&self, account_number: &str) -> Value {
        let created = self.beneficiary(account_number).await;
        self.wait_status(&format!("/v1/beneficiaries/{}", id(&created)), "active").await
    }

    pub async fn sender(&self) -> Value {
        self.post(
            "/v1/senders",
            json!({
                "name": "Ravi Rao", "type": "individual", "country": "AE",
                "address": { "line1": "1 Creek Road", "city": "Dubai", "country": "AE" },
            }),
        )
        .await
        .ok()
    }

    pub async fn quote_lock(&self, amount: &str) -> Value {
        self.post(
            "/v1/quote_locks",
            json!({ "sell_currency": "USD", "buy_currency": "INR", "amount": amount }),
        )
        .await
        .ok()
    }

    /// The body of a transfer of `amount` with fresh objects; the beneficiary's account number
    /// steers the simulated bank.
    pub async fn transfer_body(&self, account_number: &str, amount: &str) -> Value {
        let beneficiary = self.active_beneficiary(account_number).await;
        let sender = self.sender().await;
        let lock = self.quote_lock(amount).await;
        json!({
            "sender_id": id(&sender), "beneficiary_id": id(&beneficiary),
                "quote_lock_id": id(&lock),
            "amount": amount, "currency": "USD", "payout_currency": "INR",
            "funding": { "rail": "stablecoin", "asset": "USDT", "chain": "tron" },
        })
    }

    /// A transfer of 1000.00 USD to an account that settles, unfunded.
    pub async fn transfer(&self) -> Value {
        let body = self.transfer_body("50100012345678", "1000.00").await;
        self.post("/v1/transfers", body).await.ok()
    }

    /// Sends a simulated deposit; `body` as in the helper.
    pub async fn deposit(&self, transfer: &Value, body: Value) -> Value {
        self.post(&format!("/v1/test_helpers/transfers/{}/deposit", id(transfer)), body).await.ok()
    }
}

/// The identifier of a transfer's payout.
#[allow(dead_code, reason = "tests/http and others ask")]
#[track_caller]
pub fn payout_id(transfer: &Value) -> String {
    transfer["payout_id"]
        .as_str()
        .unwrap_or_else(|| panic!("no payout_id in {transfer}"))
        .to_owned()
}

/// The identifier of an object.
#[track_caller]
pub fn id(object: &Value) -> String {
    object["id"].as_str().unwrap_or_else(|| panic!("no id in {object}")).to_owned()
}

/// Who decides in tests.
pub fn by() -> DecidedBy {
    DecidedBy::new("asha", "a test").unwrap()
}
