//! `hundi demo`: makes a payout in six steps, with a server and a webhook receiver of its own. The
//! receiver verifies the signatures. The demo prints each event that arrives, and checks the book.
//! Without `--once` it then prints links to look at, and stays up until a signal such as Ctrl-C.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, watch};

use crate::app::{self, ACCOUNT_DEFAULT, App, KeyRequest};
use crate::config::{Config, Flags};
use crate::console::Console;
use crate::http::server;
use crate::kernel::{Clock, Mode, system_random};
use crate::keys::Permissions;
use crate::staff::{self, passwords};
use crate::store::Database;
use crate::verify_book;

/// The longest that the demo waits for one step, in seconds.
const WAIT_SECONDS_MAX: u64 = 30;
/// How long a viewer has to open the payer's page before the deposit arrives, in seconds.
const VIEWER_SECONDS: u64 = 15;
/// Who signs in to the demo's console.
const OPERATOR_NAME: &str = "demo";

/// Colours words if the output is a terminal and `NO_COLOR` is not set.
#[derive(Clone, Copy)]
struct Style {
    is_coloured: bool,
}

impl Style {
    fn of_terminal() -> Style {
        let is_coloured = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Style { is_coloured }
    }
    fn paint(self, code: &str, text: &str) -> String {
        if self.is_coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
    fn good(self, text: &str) -> String {
        self.paint("32;1", text)
    }
    fn quiet(self, text: &str) -> String {
        self.paint("2", text)
    }
    fn link(self, text: &str) -> String {
        self.paint("36", text)
    }
}

/// The events that the webhook receiver got.
struct Inbox {
    /// The endpoint's signing secret.
    secret: Mutex<String>,
    /// Type and `linked_id` of each event, once.
    events: Mutex<Vec<(String, String)>>,
    /// How many requests did not verify.
    refused: Mutex<u32>,
    arrived: Notify,
    style: Style,
}

/// What the demo runs on.
struct DemoSetup {
    api: DemoClient,
    inbox: Arc<Inbox>,
    receiver: String,
    console_url: String,
    console_password: String,
    database: Database,
    /// Where the payment advice is kept for a viewer.
    advice_file: PathBuf,
    is_once: bool,
    style: Style,
}

/// Runs the demo; `Ok` only when the UTR and its webhooks arrived. Unless `once`, it waits for a
/// viewer before the deposit, and serves until a signal ends it. Its folder is removed when this
/// function ends.
pub async fn run(once: bool) -> Result<(), String> {
    // Signals are watched before the folder is made: a signal that is not watched would kill the
    // process, and the folder would stay.
    let mut signals = EndSignals::watch().map_err(|error| format!("signals: {error}"))?;
    let folder = TemporaryFolder::new()?;
    let flags = Flags {
        database: Some(format!("sqlite:{}", folder.path.join("demo.db").display())),
        listen: Some("127.0.0.1:0".into()),
        allow_loopback_webhooks: Some(true),
        ..Flags::default()
    };
    let mut config = Config::read(&flags, &|_| None)?;
    let (listener, address) = server::bind(&config.listen).await?;
    config.set_bound_address(address);
    let app = App::open(&config, Clock::System).await?;
    let request = KeyRequest {
        account: ACCOUNT_DEFAULT.into(),
        mode: Mode::Test,
        permissions: Permissions::All,
        expires_at: None,
    };
    let key = app.state.store.write(move |tx, now| Ok(app::create_key(tx, now, &request)?)).await;
    let key = key.map_err(|failure| format!("no key could be made: {failure:?}"))?;
    let style = Style::of_terminal();
    let console_password = passwords::make(system_random()?);
    let hash = passwords::hash(&console_password, system_random()?)?;
    let made = app
        .state
        .store
        .write(move |tx, now| {
            staff::create(
                tx,
                now,
                OPERATOR_NAME,
                staff::Role::Admin,
                &hash,
                &crate::kernel::DecidedBy::default(),
            )
        })
        .await;
    made.map_err(|failure| format!("no operator could be made: {failure:?}"))?;
    let (console_listener, console_address) = server::bind("127.0.0.1:0").await?;
    let console_url = format!("http://{console_address}");
    let console = Arc::new(Console::new(app.state.clone(), &console_url, false)?);
    let (stop, stopping) = watch::channel(false);
    let console = Some((console_listener, console));
    let serving = tokio::spawn(app.run_with(listener, console, stopping));
    let url = format!("http://{address}");
    let until = if once { " until this demo ends" } else { "" };
    println!("A server on a temporary database listens on {}{until}.\n", style.link(&url));

    let inbox = Arc::new(Inbox {
        secret: Mutex::default(),
        events: Mutex::default(),
        refused: Mutex::default(),
        arrived: Notify::new(),
        style,
    });
    let setup = DemoSetup {
        api: DemoClient { address: address.to_string(), key },
        receiver: receive(inbox.clone()).await?,
        inbox,
        console_url,
        console_password,
        database: config.database.clone(),
        advice_file: folder.path.join("payment-advice.pdf"),
        is_once: once,
        style,
    };
    let outcome = tokio::select! {
        outcome = setup.steps() => outcome,
        () = signals.receive() => Err("the demo was stopped before it was finished".into()),
    };
    if outcome.is_ok() && !once {
        println!("\nThe server stays up. Press Ctrl-C to end it and remove its database.");
        signals.receive().await;
    }
    let _ = stop.send(true);
    let _ = tokio::time::timeout(Duration::from_secs(WAIT_SECONDS_MAX), serving).await;
    outcome
}

/// The signals that end a demo: SIGINT (Ctrl-C), SIGTERM (from a service manager) and SIGHUP (the
/// terminal was closed).
struct EndSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl EndSignals {
    fn watch() -> std::io::Result<EndSignals> {
        Ok(EndSignals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }
    async fn receive(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

struct TemporaryFolder {
    path: PathBuf,
}

impl TemporaryFolder {
    fn new() -> Result<TemporaryFolder, String> {
        let random = system_random::<8>()?;
        let path =
            std::env::temp_dir().join(format!("hundi-demo-{:016x}", u64::from_be_bytes(random)));
        std::fs::create_dir(&path)
            .map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        Ok(TemporaryFolder { path })
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

struct DemoClient {
    address: String,
    key: String,
}

impl DemoClient {
    /// Sends a request and answers the body of the response. `Err` if its status is no success.
    async fn send(
        &self,
        method: Method,
        path: &str,
        accept: &str,
        body: Option<Value>,
    ) -> Result<Bytes, String> {
        let stream = TcpStream::connect(&self.address).await.map_err(|error| error.to_string())?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        let random = system_random::<16>()?;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", &self.address)
            .header("authorization", format!("Bearer {}", self.key))
            .header("idempotency-key", format!("{:032x}", u128::from_be_bytes(random)))
            .header("accept", accept)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body.map_or_else(String::new, |body| body.to_string()))))
            .map_err(|error| error.to_string())?;
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let status = response.status();
        let bytes =
            response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
        if status.is_success() {
            Ok(bytes)
        } else {
            Err(format!("{path} answered {status}: {}", String::from_utf8_lossy(&bytes)))
        }
    }
    async fn post(&self, path: &str, body: Value) -> Result<Value, String> {
        let answer = self.send(Method::POST, path, "application/json", Some(body)).await?;
        serde_json::from_slice(&answer).map_err(|error| error.to_string())
    }
    async fn get(&self, path: &str) -> Result<Value, String> {
        let answer = self.send(Method::GET, path, "application/json", None).await?;
        serde_json::from_slice(&answer).map_err(|error| error.to_string())
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> Result<&'a str, String> {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .ok_or_else(|| format!("the answer has no {pointer}"))
}

impl DemoSetup {
    async fn steps(&self) -> Result<(), String> {
        let DemoSetup { api, inbox, style, .. } = self;
        let started = Instant::now();
        let endpoint = api.post("/v1/webhook_endpoints", json!({ "url": self.receiver })).await?;
        *inbox.secret.lock().unwrap_or_else(PoisonError::into_inner) =
            text(&endpoint, "/secret")?.to_owned();
        println!("   Webhook endpoint   {}  {}", text(&endpoint, "/id")?, self.receiver);

        let beneficiary = api
            .post(
                "/v1/beneficiaries",
                json!({ "name": "Asha Rao", "account_number": "50100012345678",
                    "ifsc": "HDFC0000001", "account_type": "nre" }),
            )
            .await?;
        let beneficiary_id = text(&beneficiary, "/id")?;
        println!("1. Beneficiary        {beneficiary_id}  {}", text(&beneficiary, "/status")?);
        inbox.wait_for("beneficiary.status.active", beneficiary_id).await?;

        let sender = json!({ "name": "Ravi Rao", "type": "individual", "country": "AE" });
        let sender = api.post("/v1/senders", sender).await?;
        let sender_id = text(&sender, "/id")?;
        println!("2. Sender             {sender_id}");

        let lock = json!({ "sell_currency": "USD", "buy_currency": "INR", "amount": "1000.00" });
        let lock = api.post("/v1/quote_locks", lock).await?;
        let (lock_id, bought) = (text(&lock, "/id")?, text(&lock, "/buy_amount")?);
        let rate = text(&lock, "/rate")?;
        println!("3. Quote lock         {lock_id}  1000.00 USD buys {bought} INR at {rate}");

        let transfer = json!({
            "sender_id": sender_id, "beneficiary_id": beneficiary_id, "quote_lock_id": lock_id,
            "amount": "1000.00", "currency": "USD", "payout_currency": "INR",
            "funding": { "rail": "stablecoin", "asset": "USDT", "chain": "tron" },
        });
        let transfer = api.post("/v1/transfers", transfer).await?;
        let transfer_id = text(&transfer, "/id")?;
        println!("4. Transfer           {transfer_id}  {}", text(&transfer, "/status")?);
        let deposit_address = text(&transfer, "/funding/deposit_address")?;
        println!("                      deposit address {deposit_address} on tron");

        let payer_page = text(&transfer, "/funding/instructions_url")?;
        if !self.is_once {
            println!("                      payer's page {}", style.link(payer_page));
            println!(
                "                      open it now: the deposit arrives in {VIEWER_SECONDS} s"
            );
            tokio::time::sleep(Duration::from_secs(VIEWER_SECONDS)).await;
        }

        let path = format!("/v1/test_helpers/transfers/{transfer_id}/deposit");
        let deposit = api.post(&path, json!({})).await?;
        let (deposit_id, amount) = (text(&deposit, "/id")?, text(&deposit, "/amount")?);
        println!("5. Deposit            {deposit_id}  {amount} USDT sent");
        inbox.wait_for("deposit.status.completed", deposit_id).await?;

        inbox.wait_for("transfer.status.payout_settled", transfer_id).await?;
        let settled = api.get(&format!("/v1/transfers/{transfer_id}")).await?;
        let payout_id = text(&settled, "/payout/id")?;
        inbox.wait_for("payout.payment_advice.available", payout_id).await?;
        println!(
            "6. Payout             {payout_id}  {} INR {}",
            text(&settled, "/payout/amount")?,
            text(&settled, "/payout/status")?
        );
        let reference = text(&settled, "/payout/unique_transaction_reference")?;
        println!("\n   UTR {}\n", style.good(reference));

        let events_count = inbox.events.lock().unwrap_or_else(PoisonError::into_inner).len();
        let refused = *inbox.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused > 0 {
            return Err(format!("{refused} webhooks had a wrong signature or timestamp"));
        }
        println!("{events_count} webhooks arrived, and each signature was right.");
        println!("The book is in balance: {}.", self.check_book().await?);

        if self.is_once {
            println!(
                "\nThe pages end with the demo. To open them, run hundi demo (without --once)."
            );
        } else {
            self.show_pages(transfer_id, payout_id, payer_page).await?;
        }
        println!("\nDone in {:.1} s.", started.elapsed().as_secs_f32());
        Ok(())
    }

    /// Prints links to all that a viewer can open while the demo stays up.
    async fn show_pages(
        &self,
        transfer_id: &str,
        payout_id: &str,
        payer_page: &str,
    ) -> Result<(), String> {
        let DemoSetup { api, style, .. } = self;
        let advice_path = format!("/v1/payouts/{payout_id}/payment_advice");
        let advice = api.get(&advice_path).await?;
        // A browser would ask the API without the key, so the PDF is saved as a file for it.
        let page = api.send(Method::GET, &advice_path, "application/pdf", None).await?;
        std::fs::write(&self.advice_file, page)
            .map_err(|error| format!("cannot write {}: {error}", self.advice_file.display()))?;
        println!("\nLook at:");
        let link = |name: &str, url: &str| println!("   {name:<18} {}", style.link(url));
        link("payer's page", payer_page);
        link("payment advice", &format!("file://{}", self.advice_file.display()));
        link("verify page", text(&advice, "/verification_url")?);
        link("guides", &format!("http://{}/docs/", api.address));
        link("API reference", &format!("http://{}/docs/api/transfers", api.address));
        link("operator's console", &format!("{}/console", self.console_url));
        println!("   {:<18} name {OPERATOR_NAME}, password {}", "", self.console_password);
        println!("   {:<18} curl -H 'Authorization: Bearer {}' \\", "the transfer", api.key);
        println!("   {:<18}   http://{}/v1/transfers/{transfer_id}", "", api.address);
        Ok(())
    }

    /// Checks the whole book, and answers what was checked.
    async fn check_book(&self) -> Result<String, String> {
        let database = self.database.clone();
        let checked = tokio::task::spawn_blocking(move || verify_book::run(&database));
        let report = checked.await.map_err(|error| error.to_string())?;
        let report = report.map_err(|error| error.to_string())?;
        match report.faults.as_slice() {
            [] => Ok(report.summary.first().cloned().unwrap_or_default()),
            faults => Err(format!("the book is wrong: {}", faults.join("; "))),
        }
    }
}

impl Inbox {
    async fn wait_for(&self, event_type: &str, linked_id: &str) -> Result<(), String> {
        let wanted = (event_type.to_owned(), linked_id.to_owned());
        let wait = async {
            loop {
                let arrived = self.arrived.notified();
                if self.events.lock().unwrap_or_else(PoisonError::into_inner).contains(&wanted) {
                    return;
                }
                arrived.await;
            }
        };
        tokio::time::timeout(Duration::from_secs(WAIT_SECONDS_MAX), wait).await.map_err(|_| {
            format!("no webhook {event_type} for {linked_id} within {WAIT_SECONDS_MAX} s")
        })
    }

    /// Whether a delivery is genuine, by the rules of the webhook guide: the signature is right,
    /// and the timestamp is at most 300 s off.
    fn verifies(&self, id: &str, timestamp: &str, signatures: &str, body: &[u8]) -> bool {
        let secret = self.secret.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(mut mac) = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()) else {
            return false;
        };
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        let computed = STANDARD.encode(mac.finalize().into_bytes());
        let given = signatures.split(' ').filter_map(|entry| entry.strip_prefix("v1,"));
        let is_signed = given.into_iter().any(|entry| {
            bool::from(subtle::ConstantTimeEq::ct_eq(entry.as_bytes(), computed.as_bytes()))
        });
        let age =
            timestamp.parse::<i64>().map(|at| (Clock::System.milliseconds() / 1000 - at).abs());
        is_signed && age.is_ok_and(|age| age <= 300)
    }
}

/// Starts a webhook receiver on loopback, and answers its URL.
async fn receive(inbox: Arc<Inbox>) -> Result<String, String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let inbox = inbox.clone();
            let service = service_fn(move |request| accept(inbox.clone(), request));
            tokio::spawn(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    Ok(format!("http://{address}/webhooks"))
}

async fn accept(
    inbox: Arc<Inbox>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let header = |name: &str| {
        request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("").to_owned()
    };
    let (id, timestamp, signatures) =
        (header("webhook-id"), header("webhook-timestamp"), header("webhook-signature"));
    let body = request.into_body().collect().await?.to_bytes();
    let mut response = Response::new(Full::default());
    if !inbox.verifies(&id, &timestamp, &signatures, &body) {
        *inbox.refused.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        *response.status_mut() = http::StatusCode::BAD_REQUEST;
        return Ok(response);
    }
    if let Ok(event) = serde_json::from_slice::<Value>(&body) {
        let word = |name: &str| event[name].as_str().unwrap_or("").to_owned();
        let seen = (word("type"), word("linked_id"));
        let mut events = inbox.events.lock().unwrap_or_else(PoisonError::into_inner);
        if !events.contains(&seen) {
            let style = inbox.style;
            let line = format!("                      webhook {}", seen.0);
            println!("{} {}", style.quiet(&line), style.good("verified"));
            events.push(seen);
        }
    }
    inbox.arrived.notify_waiters();
    Ok(response)
}
