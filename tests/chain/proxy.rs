//! A bad node: an HTTP server between the follower and the chain that speaks like a TRON node and
//! can be made to fail in every way that TRON nodes, their load balancers and their providers are
//! known to fail in.
//!
//! With `Faults::default()` it is a healthy java-tron: its methods only, its limits, `[]` for
//! ranges beyond the head, `stateRoot` "0x", no `blockTimestamp` in logs, and
//! `/walletsolidity/getnowblock` beside `/jsonrpc`. Faults can be switched while it runs, in any
//! combination; each is one field of [`Faults`].
//!
//! ```ignore
//! let proxy = Proxy::start(&chain).await;
//! proxy.change(|faults| faults.behind_blocks = 5);          // a stale replica ...
//! proxy.change(|faults| faults.logs_hidden = Blocks::All);  // ... without a bloom index
//! proxy.heal();
//! proxy.fail_next(3, |faults| faults.is_overloaded = true); // three HTTP requests fail
//! proxy.ban(Duration::from_millis(300));                    // 403 until then
//!
//! let held = proxy.hold("eth_getLogs");                     // keeps back the next answer
//! held.arrived().await;                                     // the answer is made
//! chain.reorg(2, &[]).await;                                // between two calls of the follower
//! held.release();
//!
//! proxy.await_calls("eth_getLogs", 4).await;
//! assert_eq!(proxy.calls("eth_chainId"), 1);
//! ```
//!
//! Several proxies can stand before one chain: two endpoints, one of which lies.

#![allow(dead_code, reason = "each scenario uses its own part of the harness")]

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hundi::chains::timer::Timer;
use hundi::chains::tron_address::TronAddress;
use hundi::outbound::OutboundEndpoint;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};

use crate::anvil::Anvil;
use crate::rpc::{Rpc, RpcError};
use crate::wire::{
    DEPRECATE_TOPIC, Hash, TRANSFER_TOPIC, evm, hex, number_in, number_of, quantity, topic,
};

/// Calls that are remembered for a test to look at.
const CALLS_REMEMBERED_MAX: usize = 200_000;
/// How long a test waits for calls and held answers before it gives up.
const PATIENCE: Duration = Duration::from_secs(180);

/// What a TRON node answers; everything else is -32601.
const METHODS: [&str; 12] = [
    "eth_chainId",
    "eth_blockNumber",
    "eth_getBlockByNumber",
    "eth_getBlockByHash",
    "eth_getLogs",
    "eth_getBlockReceipts",
    "eth_getTransactionReceipt",
    "eth_getTransactionByHash",
    "eth_getBalance",
    "eth_call",
    "net_version",
    "web3_clientVersion",
];

const INVALID_PARAMS: i64 = -32602;
const METHOD_MISSING: i64 = -32601;
const LIMIT_EXCEEDED: i64 = -32005;
const RESPONSE_TOO_BIG: i64 = -32003;
const INTERNAL: i64 = -32000;

/// A set of heights.
#[derive(Clone, Debug, Default)]
pub enum Blocks {
    #[default]
    None,
    All,
    Only(BTreeSet<u64>),
    Range(RangeInclusive<u64>),
}

impl Blocks {
    pub fn only(numbers: impl IntoIterator<Item = u64>) -> Blocks {
        Blocks::Only(numbers.into_iter().collect())
    }
    fn has(&self, number: u64) -> bool {
        match self {
            Blocks::None => false,
            Blocks::All => true,
            Blocks::Only(numbers) => numbers.contains(&number),
            Blocks::Range(range) => range.contains(&number),
        }
    }
    fn meets(&self, from: u64, to: u64) -> bool {
        match self {
            Blocks::None => false,
            Blocks::All => from <= to,
            Blocks::Only(numbers) => from <= to && numbers.range(from..=to).next().is_some(),
            Blocks::Range(range) => from.max(*range.start()) <= to.min(*range.end()),
        }
    }
}

/// What stands where JSON should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Garbage {
    /// A web page, as a load balancer shows it, with status 200.
    Page,
    /// The right answer, cut in half.
    Truncated,
    /// Nothing, with status 200.
    Empty,
    /// Valid JSON-RPC that answers other calls: the ids fit none that was asked.
    OtherIds,
    /// Valid JSON-RPC whose results are all of the wrong type.
    WrongTypes,
    /// Bytes that are no text.
    Bytes,
}

/// What a provider does to who asks too often.
#[derive(Clone, Copy, Debug)]
pub enum Sanction {
    /// 403 for everything, for this long from the first call too many.
    Ban { duration: Duration },
    /// 429 with `Retry-After`, until the second is over.
    TooMany { retry_after_seconds: u64 },
    /// 503 without a word of when to come again.
    Busy,
}

/// Block hashes that differ from the chain's, the same way in every answer: another branch from
/// `blocks.start()` on.
#[derive(Clone, Debug)]
pub struct Fork {
    pub blocks: RangeInclusive<u64>,
    /// Not 0; two forks with different marks have different hashes.
    pub mark: u8,
}

/// A log that no block holds, shown by `eth_getLogs` only.
#[derive(Clone, Debug)]
pub struct Invented {
    pub block: u64,
    pub contract: TronAddress,
    pub from: TronAddress,
    pub to: TronAddress,
    pub units: u64,
    pub transaction: Hash,
    pub log_index: u64,
    /// The contract is said to hand over, and nothing moves.
    pub is_deprecation: bool,
}

/// How the node behaves. The default is a healthy one, with java-tron's own limits.
#[derive(Clone, Debug)]
pub struct Faults {
    // ---- Limits ----
    /// `eth_getLogs` with `toBlock - fromBlock` above this answers -32602 `exceed max block range:
    /// N`.
    pub range_blocks_max: Option<u64>,
    /// `eth_getLogs` with more logs answers -32005 `query returned more than N results`.
    pub results_max: Option<usize>,
    /// Calls whose answers do not fit into these bytes, counted over a batch, answer -32003.
    pub response_bytes_max: Option<usize>,
    /// A batch of more calls is refused as a whole with -32005.
    pub batch_calls_max: Option<usize>,
    /// More calls than this within a second meet the sanction. Each call of a batch counts.
    pub calls_per_second_max: Option<(usize, Sanction)>,
    /// After so many calls in all, the day's quota is used up: more than one a second meets 403.
    pub quota_calls: Option<usize>,
    /// What a batch of several calls is answered: a status and a body.
    pub batch_refusal: Option<(u16, Value)>,
    /// What `eth_getBlockReceipts` is answered: a status and a body.
    pub receipts_refusal: Option<(u16, Value)>,
    /// `eth_call` is refused, as by a java-tron without `vm.supportConstant`.
    pub is_constant_refused: bool,
    /// `/wallet/gettransactioninfobyblocknum` is not there.
    pub is_block_info_missing: bool,

    // ---- The way ----
    /// Before anything else happens.
    pub delay: Duration,
    /// The connection closes without an answer.
    pub is_dropping_connections: bool,
    pub garbage: Option<Garbage>,
    /// HTTP 200 with `{"Error": …}` outside JSON-RPC: the node's own rate limiter.
    pub is_overloaded: bool,
    /// Each call answers -32005 with a text about a rate limit, behind HTTP 200.
    pub is_rate_limited: bool,
    /// HTTP 429 with this `Retry-After`.
    pub too_many_retry_after_seconds: Option<u64>,
    /// Answers of a batch come in the opposite order, as JSON-RPC allows.
    pub is_batch_reversed: bool,

    // ---- The view ----
    /// A stale replica: it knows nothing of the last so many blocks, nor of their finality. Headers
    /// beyond are null, ranges are cut silently.
    pub behind_blocks: u64,
    /// Only these methods (or paths) meet the stale replica, as behind a load balancer; `None` is
    /// all of them.
    pub behind_methods: Option<BTreeSet<&'static str>>,
    /// Finality alone trails by so many more blocks, as when producers are down.
    pub finality_behind_blocks: u64,
    /// `finalized` is the newest block, as at a node that does not know better.
    pub is_head_final: bool,
    /// These blocks' times are told so many seconds later, or earlier.
    pub time_shift: Option<(Blocks, i64)>,
    pub chain_id: Option<u64>,
    pub fork: Option<Fork>,
    /// `finalized` answers -32602, as before version 4.8.0; the solid height is at
    /// `/walletsolidity/getnowblock`.
    pub is_finalized_refused: bool,
    /// `/walletsolidity/getnowblock` is not there, as behind a gateway for the JSON-RPC alone.
    pub is_solid_missing: bool,
    /// `eth_getBlockReceipts` answers -32601, as before version 4.8.1.
    pub is_receipts_missing: bool,
    /// `blockTimestamp` stands in logs, as from version 4.8.2 on.
    pub is_time_in_logs: bool,

    // ---- What it says ----
    /// The bloom hole: `eth_getLogs` with an address or topics leaves the logs of these blocks out.
    /// Receipts stay right.
    pub logs_hidden: Blocks,
    /// Any call that touches one of these blocks answers an error.
    pub poison: Blocks,
    /// These transactions' receipts say status 0x0; their logs stay.
    pub failed: BTreeSet<Hash>,
    /// `eth_getLogs` shows these transactions' logs as `removed`.
    pub removed: BTreeSet<Hash>,
    /// `eth_getLogs` leaves these single logs out (transaction and log index). Receipts stay right.
    pub short: BTreeSet<(Hash, u64)>,
    pub invented: Vec<Invented>,
    /// `eth_getLogs` shows all logs of the contracts, whatever topics were asked for.
    pub is_ignoring_topics: bool,
}

impl Default for Faults {
    fn default() -> Faults {
        Faults {
            range_blocks_max: Some(5_000),
            results_max: Some(10_000),
            response_bytes_max: Some(25 << 20),
            batch_calls_max: Some(100),
            calls_per_second_max: None,
            quota_calls: None,
            batch_refusal: None,
            receipts_refusal: None,
            is_constant_refused: false,
            is_block_info_missing: false,
            delay: Duration::ZERO,
            is_dropping_connections: false,
            garbage: None,
            is_overloaded: false,
            is_rate_limited: false,
            too_many_retry_after_seconds: None,
            is_batch_reversed: false,
            behind_blocks: 0,
            behind_methods: None,
            finality_behind_blocks: 0,
            is_head_final: false,
            time_shift: None,
            chain_id: None,
            fork: None,
            is_finalized_refused: false,
            is_solid_missing: false,
            is_receipts_missing: false,
            is_time_in_logs: false,
            logs_hidden: Blocks::None,
            poison: Blocks::None,
            failed: BTreeSet::new(),
            removed: BTreeSet::new(),
            short: BTreeSet::new(),
            invented: Vec::new(),
            is_ignoring_topics: false,
        }
    }
}

/// A call that arrived, whatever became of it. `/wallet` paths are here with the path as their
/// method.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub method: String,
    pub params: Value,
}

/// A running proxy; it ends with its handle.
pub struct Proxy {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: tokio::task::JoinHandle<()>,
}

struct Shared {
    node: Rpc,
    state: Mutex<State>,
    called: Notify,
}

#[derive(Default)]
struct State {
    faults: Faults,
    /// Stands in for `faults` in the next so many requests.
    next: Option<(u64, Faults)>,
    /// The time by which limits count; a test may move it.
    timer: Timer,
    banned_until: Option<Duration>,
    /// When the calls of the last second arrived.
    recent: Vec<Duration>,
    calls_count: usize,
    refusals_count: usize,
    calls: Vec<Call>,
    headers: Vec<http::HeaderMap>,
    requests_count: u64,
    held: HashMap<String, (oneshot::Sender<()>, oneshot::Receiver<()>)>,
}

impl State {
    fn remember(&mut self, headers: http::HeaderMap) {
        if self.headers.len() < CALLS_REMEMBERED_MAX {
            self.headers.push(headers);
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer that is kept back until `release`, or until this is dropped.
#[derive(Debug)]
pub struct Held {
    arrived: oneshot::Receiver<()>,
    release: oneshot::Sender<()>,
}

impl Held {
    /// Waits until the call has come and its answer is made.
    pub async fn arrived(&mut self) {
        let waited = tokio::time::timeout(PATIENCE, &mut self.arrived).await;
        assert!(matches!(waited, Ok(Ok(()))), "no call came that could be held");
    }
    pub fn release(self) {
        // The caller may have gone away meanwhile.
        let _ = self.release.send(());
    }
}

impl Proxy {
    /// Stands before the chain on a port of its own.
    pub async fn start(chain: &Anvil) -> Proxy {
        Proxy::before(chain.endpoint()).await
    }

    /// Stands before any node, another proxy included.
    pub async fn before(node: OutboundEndpoint) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            node: Rpc::new(node),
            state: Mutex::default(),
            called: Notify::new(),
        });
        let serving = shared.clone();
        let accepting = tokio::spawn(async move {
            // Connections end with the proxy: the set aborts its tasks when it is dropped.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                let shared = serving.clone();
                let service = service_fn(move |request| answer(shared.clone(), request));
                connections.spawn(async move {
                    // A connection that breaks is the caller's affair, or the very fault that was
                    // asked for.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Proxy { shared, address, accepting }
    }

    /// Where a follower goes: `/jsonrpc`. `OutboundEndpoint::with_path` gives
    /// `/walletsolidity/getnowblock`.
    pub fn endpoint(&self) -> OutboundEndpoint {
        OutboundEndpoint::new(&self.url(), None).expect("an address")
    }
    pub fn url(&self) -> String {
        format!("http://{}/jsonrpc", self.address)
    }

    // ---- Faults ----

    /// Changes some faults and leaves the others.
    pub fn change(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.shared.state().faults);
    }
    /// Healthy again, also where it was banned or had faults for the next requests.
    pub fn heal(&self) {
        let mut state = self.shared.state();
        (state.faults, state.next, state.banned_until) = (Faults::default(), None, None);
        state.recent.clear();
    }
    /// Adds faults to the present ones for the next HTTP requests; a batch is one.
    pub fn fail_next(&self, requests: u64, change: impl FnOnce(&mut Faults)) {
        let mut state = self.shared.state();
        let mut faults = state.faults.clone();
        change(&mut faults);
        state.next = Some((requests, faults));
    }
    /// 403 for everything from now on, for this long.
    pub fn ban(&self, duration: Duration) {
        let mut state = self.shared.state();
        state.banned_until = Some(state.timer.now() + duration);
    }
    pub fn is_banned(&self) -> bool {
        let state = self.shared.state();
        state.banned_until.is_some_and(|until| state.timer.now() < until)
    }
    /// Keeps back the answer to the next call of a method, after it was made. The calls behind it
    /// in a batch are made after the release. A path such as `/walletsolidity/getnowblock` is a
    /// method too.
    pub fn hold(&self, method: &str) -> Held {
        let (tell_arrived, arrived) = oneshot::channel();
        let (release, released) = oneshot::channel();
        self.shared.state().held.insert(method.to_owned(), (tell_arrived, released));
        Held { arrived, release }
    }

    // ---- What was asked ----

    /// How often a method was called since the start or the last `forget_calls`, refused calls
    /// included.
    pub fn calls(&self, method: &str) -> usize {
        self.shared.state().calls.iter().filter(|call| call.method == method).count()
    }
    /// The calls in the order of their arrival.
    pub fn calls_seen(&self) -> Vec<Call> {
        self.shared.state().calls.clone()
    }
    /// Has limits and bans count by this time.
    pub fn set_timer(&self, timer: Timer) {
        self.shared.state().timer = timer;
    }
    /// Calls and requests of other paths since the start or the last `forget_calls`, each call of a
    /// batch and those refused included.
    pub fn calls_count(&self) -> usize {
        self.shared.state().calls_count
    }
    /// Requests that met a limit.
    pub fn refusals_count(&self) -> usize {
        self.shared.state().refusals_count
    }
    /// HTTP requests of any kind.
    pub fn requests(&self) -> u64 {
        self.shared.state().requests_count
    }
    /// What each request had in a header, those without it included.
    pub fn header_seen(&self, name: &str) -> Vec<Option<String>> {
        let told = |headers: &http::HeaderMap| {
            headers.get(name).map(|value| value.to_str().expect("a text").to_owned())
        };
        self.shared.state().headers.iter().map(told).collect()
    }
    pub fn forget_calls(&self) {
        let mut state = self.shared.state();
        state.calls.clear();
        state.headers.clear();
        (state.requests_count, state.calls_count, state.refusals_count) = (0, 0, 0);
    }
    /// Waits until a method was called so often.
    pub async fn await_calls(&self, method: &str, count: usize) {
        let waited = tokio::time::timeout(PATIENCE, async {
            loop {
                let called = self.shared.called.notified();
                tokio::pin!(called);
                // Registered before the look, so that a call in between is not missed.
                called.as_mut().enable();
                if self.calls(method) >= count {
                    return;
                }
                called.await;
            }
        });
        assert!(
            waited.await.is_ok(),
            "{method} was called {} times and not {count}",
            self.calls(method)
        );
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

type Reply = Response<Full<Bytes>>;

fn reply(status: StatusCode, content_type: &str, body: impl Into<Bytes>) -> Reply {
    Response::builder()
        .status(status)
        .header(http::header::CONTENT_TYPE, content_type)
        .body(Full::new(body.into()))
        .expect("a response of constant parts")
}

fn json_reply(status: StatusCode, value: &Value) -> Reply {
    reply(status, "application/json", value.to_string())
}

/// Why a connection ends without an answer.
#[derive(Debug, thiserror::Error)]
#[error("dropped on purpose")]
struct Dropped;

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Reply, Dropped> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Dropped)?.to_bytes();
    let path = parts.uri.path().to_owned();
    let is_rpc = path == "/jsonrpc" || path == "/";
    let asked: Option<Value> = if is_rpc { serde_json::from_slice(&body).ok() } else { None };
    let calls: Vec<Value> = match &asked {
        Some(Value::Array(calls)) => calls.clone(),
        Some(call) => vec![call.clone()],
        None => Vec::new(),
    };

    shared.state().remember(parts.headers.clone());
    let (faults, is_banned, is_too_many) = register(&shared, &path, is_rpc, &calls);
    shared.called.notify_waiters();

    tokio::time::sleep(faults.delay).await;
    if faults.is_dropping_connections {
        return Err(Dropped);
    }
    if is_banned {
        let told = json!({"Error": "the key asks too often and is suspended for 30 s"});
        return Ok(json_reply(StatusCode::FORBIDDEN, &told));
    }
    let refusal_of = |planned: &Option<(u16, Value)>| {
        planned.as_ref().map(|(status, body)| {
            json_reply(StatusCode::from_u16(*status).expect("a status"), body)
        })
    };
    if let Some(refused) = refusal_of(&faults.batch_refusal).filter(|_| calls.len() > 1) {
        return Ok(refused);
    }
    if let [only] = calls.as_slice()
        && only["method"] == "eth_getBlockReceipts"
        && let Some(refused) = refusal_of(&faults.receipts_refusal)
    {
        return Ok(refused);
    }
    if is_too_many == Some(0) {
        return Ok(json_reply(StatusCode::SERVICE_UNAVAILABLE, &json!({"Error": "busy"})));
    }
    if let Some(seconds) = faults.too_many_retry_after_seconds.or(is_too_many) {
        let mut told =
            json_reply(StatusCode::TOO_MANY_REQUESTS, &json!({"Error": "too many requests"}));
        told.headers_mut().insert(http::header::RETRY_AFTER, seconds.into());
        return Ok(told);
    }
    if faults.is_overloaded {
        let told = json!({"Error": "class java.lang.IllegalAccessException : lack of computing \
         resources"});
        return Ok(json_reply(StatusCode::OK, &told));
    }
    match faults.garbage {
        Some(Garbage::Page) => {
            return Ok(reply(
                StatusCode::OK,
                "text/html",
                "<!doctype html><title>Bad gateway</title>",
            ));
        }
        Some(Garbage::Empty) => return Ok(reply(StatusCode::OK, "application/json", "")),
        Some(Garbage::Bytes) => {
            return Ok(reply(StatusCode::OK, "application/json", vec![0xff, 0x00, 0xfe, 0x80]));
        }
        Some(Garbage::Truncated | Garbage::OtherIds | Garbage::WrongTypes) | None => {}
    }

    let view = View { node: &shared.node, faults: &faults };
    let mut answered = if is_rpc && parts.method == Method::POST {
        match &asked {
            Some(Value::Array(batch)) => answer_batch(&shared, &view, batch).await,
            Some(call) => {
                let mut bytes_left = faults.response_bytes_max;
                answer_call(&shared, &view, call, &mut bytes_left).await
            }
            None => refusal(&Value::Null, -32700, "JSON parse error"),
        }
    } else {
        let made = match path.as_str() {
            "/wallet/getnowblock" => view.now_block("latest").await,
            "/walletsolidity/getnowblock" if !faults.is_solid_missing => {
                view.now_block("finalized").await
            }
            "/wallet/gettransactioninfobyblocknum" if !faults.is_block_info_missing => {
                let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
                view.block_info(asked["num"].as_u64().unwrap_or(0)).await
            }
            "/wallet/getaccount" => {
                let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
                view.account(asked["address"].as_str().unwrap_or_default()).await
            }
            _ => return Ok(reply(StatusCode::NOT_FOUND, "text/plain", "not found")),
        };
        wait_if_held(&shared, &path).await;
        made.unwrap_or_else(|error| json!({"Error": format!("{error:?}")}))
    };
    if let Some(garbage) = faults.garbage {
        spoil(&mut answered, garbage);
    }
    let mut text = answered.to_string();
    if faults.garbage == Some(Garbage::Truncated) {
        text.truncate(text.len() / 2);
    }
    Ok(reply(StatusCode::OK, "application/json", text))
}

/// Counts a request and says how it is to be treated: its faults, whether it is banned, and after
/// how many seconds it may come again.
fn register(
    shared: &Shared,
    path: &str,
    is_rpc: bool,
    calls: &[Value],
) -> (Faults, bool, Option<u64>) {
    let mut state = shared.state();
    state.requests_count += 1;
    let seen: Vec<Call> = if is_rpc {
        let method = |call: &Value| call["method"].as_str().unwrap_or_default().to_owned();
        calls
            .iter()
            .map(|call| Call { method: method(call), params: call["params"].clone() })
            .collect()
    } else {
        vec![Call { method: path.to_owned(), params: Value::Null }]
    };
    let now = state.timer.now();
    state.calls_count += seen.len();
    state.recent.retain(|at| now - *at < Duration::from_secs(1));
    let recent_count = state.recent.len() + seen.len();
    state.recent.resize(recent_count, now);
    if state.calls.len() < CALLS_REMEMBERED_MAX {
        state.calls.extend(seen);
    }

    let faults = match &mut state.next {
        Some((requests, faults)) if *requests > 0 => {
            *requests -= 1;
            faults.clone()
        }
        _ => state.faults.clone(),
    };
    let mut is_too_many = None;
    if let Some((calls_max, sanction)) = faults.calls_per_second_max
        && recent_count > calls_max
    {
        match sanction {
            Sanction::Ban { duration } if state.banned_until.is_none_or(|until| until <= now) => {
                state.banned_until = Some(now + duration)
            }
            Sanction::Ban { .. } => {}
            Sanction::TooMany { retry_after_seconds } => is_too_many = Some(retry_after_seconds),
            Sanction::Busy => is_too_many = Some(0),
        }
    }
    let is_over_quota =
        faults.quota_calls.is_some_and(|max| state.calls_count > max) && recent_count > 1;
    let is_banned = is_over_quota || state.banned_until.is_some_and(|until| now < until);
    state.refusals_count += usize::from(is_banned || is_too_many.is_some());
    (faults, is_banned, is_too_many)
}

fn spoil(answered: &mut Value, garbage: Garbage) {
    match answered {
        Value::Array(answers) => answers.iter_mut().for_each(|answer| spoil(answer, garbage)),
        Value::Object(answer) => match garbage {
            Garbage::OtherIds => {
                answer.insert("id".into(), json!(987_654_321));
            }
            Garbage::WrongTypes if answer.contains_key("result") => {
                answer.insert("result".into(), json!({"unexpected": [1, 2.5, true]}));
            }
            _ => {}
        },
        _ => {}
    }
}

fn refusal(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

async fn answer_batch(shared: &Shared, view: &View<'_>, batch: &[Value]) -> Value {
    if batch.is_empty() {
        return refusal(&Value::Null, -32600, "empty batch");
    }
    if let Some(calls_max) = view.faults.batch_calls_max
        && batch.len() > calls_max
    {
        return refusal(
            &Value::Null,
            LIMIT_EXCEEDED,
            &format!("batch size {} exceeds the limit of {calls_max}", batch.len()),
        );
    }
    let mut bytes_left = view.faults.response_bytes_max;
    let mut answers = Vec::with_capacity(batch.len());
    for call in batch {
        answers.push(answer_call(shared, view, call, &mut bytes_left).await);
    }
    if view.faults.is_batch_reversed {
        answers.reverse();
    }
    Value::Array(answers)
}

async fn answer_call(
    shared: &Shared,
    view: &View<'_>,
    call: &Value,
    bytes_left: &mut Option<usize>,
) -> Value {
    if view.faults.is_rate_limited {
        return refusal(
            &call["id"],
            LIMIT_EXCEEDED,
            "daily request count exceeded, request rate limited",
        );
    }
    let id = &call["id"];
    let Some(method) = call["method"].as_str() else {
        return refusal(id, -32600, "invalid request");
    };
    let no_params = Vec::new();
    let params = call["params"].as_array().unwrap_or(&no_params);
    let made = view.call(method, params).await;
    wait_if_held(shared, method).await;
    let answered = match made {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(RpcError::Refused { code, message }) => refusal(id, code, &message),
        Err(RpcError::Unreachable(problem)) => {
            refusal(id, INTERNAL, &format!("the node behind the proxy: {problem}"))
        }
    };
    if let Some(left) = bytes_left {
        let length = answered.to_string().len();
        if length > *left {
            *left = 0;
            return refusal(id, RESPONSE_TOO_BIG, "response is too big");
        }
        *left -= length;
    }
    answered
}

async fn wait_if_held(shared: &Shared, method: &str) {
    let held = shared.state().held.remove(method);
    if let Some((tell_arrived, released)) = held {
        // A test that dropped its handle waits for nothing; the receiver then ends as well.
        let _ = tell_arrived.send(());
        let _ = released.await;
    }
}

/// What a request sees of the chain, through its faults.
struct View<'a> {
    node: &'a Rpc,
    faults: &'a Faults,
}

impl View<'_> {
    async fn call(&self, method: &str, params: &[Value]) -> Result<Value, RpcError> {
        if !METHODS.contains(&method)
            || (method == "eth_getBlockReceipts" && self.faults.is_receipts_missing)
        {
            return Err(RpcError::refused(
                METHOD_MISSING,
                format!("the method {method} does not exist/is not available"),
            ));
        }
        if method == "eth_call" && self.faults.is_constant_refused {
            return Err(RpcError::refused(-32600, "this node does not support constant"));
        }
        let first = params.first().unwrap_or(&Value::Null);
        let mut result = match method {
            "eth_chainId" => match self.faults.chain_id {
                Some(chain_id) => json!(quantity(chain_id)),
                None => self.node.call(method, json!([])).await?,
            },
            "net_version" => match self.faults.chain_id {
                Some(chain_id) => json!(chain_id.to_string()),
                None => self.node.call(method, json!([])).await?,
            },
            "web3_clientVersion" => json!("TRON/v4.8.1/Linux/Java1.8/GreatVoyage-v4.8.1"),
            "eth_blockNumber" => json!(quantity(self.head(method).await?)),
            "eth_getBlockByNumber" => {
                let is_full = params.get(1) == Some(&Value::Bool(true));
                match self.height(method, first).await? {
                    Some(number) => self.block(number, is_full).await?,
                    None => Value::Null,
                }
            }
            "eth_getBlockByHash" => match self.height_of_hash(method, first).await? {
                Some(number) => {
                    self.block(number, params.get(1) == Some(&Value::Bool(true))).await?
                }
                None => Value::Null,
            },
            "eth_getBlockReceipts" => {
                let is_hash = first.as_str().is_some_and(|text| text.len() == 66);
                let number = if is_hash {
                    self.height_of_hash(method, first).await?
                } else {
                    self.height(method, first).await?
                };
                match number {
                    Some(number) => {
                        self.touch(number, number)?;
                        self.node.call(method, json!([quantity(number)])).await?
                    }
                    None => Value::Null,
                }
            }
            "eth_getLogs" => self.logs(first).await?,
            "eth_getTransactionReceipt" | "eth_getTransactionByHash" => {
                let found = self.node.call(method, json!(params)).await?;
                match number_in(&found["blockNumber"]) {
                    Some(number) => {
                        self.touch(number, number)?;
                        if number > self.head(method).await? { Value::Null } else { found }
                    }
                    // Unknown, or in no block: a TRON node does not show what waits.
                    None => Value::Null,
                }
            }
            _ => {
                if method == "eth_call" && self.behind(method) > 0 {
                    let stale = quantity(self.head(method).await?);
                    return self.node.call(method, json!([first, stale])).await;
                }
                if params.get(1).is_some_and(|tag| tag != "latest") {
                    return Err(RpcError::refused(
                        INVALID_PARAMS,
                        "QUANTITY not supported, just support TAG as latest",
                    ));
                }
                self.node.call(method, json!(params)).await?
            }
        };
        self.dress(&mut result);
        Ok(result)
    }

    fn touch(&self, from: u64, to: u64) -> Result<(), RpcError> {
        if self.faults.poison.meets(from, to) {
            Err(RpcError::refused(INTERNAL, "illegal state. 0"))
        } else {
            Ok(())
        }
    }

    fn behind(&self, method: &str) -> u64 {
        let is_stale =
            self.faults.behind_methods.as_ref().is_none_or(|methods| methods.contains(method));
        if is_stale { self.faults.behind_blocks } else { 0 }
    }

    async fn head(&self, method: &str) -> Result<u64, RpcError> {
        Ok(number_of(&self.node.call("eth_blockNumber", json!([])).await?)
            .saturating_sub(self.behind(method)))
    }

    /// The last final height. A chain that is shorter than its finality has a final genesis block.
    async fn finalized(&self, method: &str) -> Result<u64, RpcError> {
        if self.faults.is_head_final {
            return self.head(method).await;
        }
        let block = self.node.call("eth_getBlockByNumber", json!(["finalized", false])).await?;
        let number = number_in(&block["number"]).unwrap_or(0);
        Ok(number
            .saturating_sub(self.behind(method))
            .saturating_sub(self.faults.finality_behind_blocks))
    }

    /// The height that a tag or a number means; `None` beyond the head of this view.
    async fn height(&self, method: &str, tag: &Value) -> Result<Option<u64>, RpcError> {
        let head = self.head(method).await?;
        match tag.as_str() {
            Some("latest") => Ok(Some(head)),
            Some("earliest") => Ok(Some(0)),
            Some("finalized") if !self.faults.is_finalized_refused => {
                Ok(Some(self.finalized(method).await?))
            }
            Some("finalized" | "safe" | "pending") => {
                Err(RpcError::refused(INVALID_PARAMS, format!("TAG {tag} not supported")))
            }
            _ => match number_in(tag) {
                Some(number) => Ok((number <= head).then_some(number)),
                None => Err(RpcError::refused(INVALID_PARAMS, "invalid block number")),
            },
        }
    }

    /// The height of a block that this view knows by this hash.
    async fn height_of_hash(&self, method: &str, hash: &Value) -> Result<Option<u64>, RpcError> {
        let Some(hash) = hash.as_str().and_then(Hash::parse) else {
            return Err(RpcError::refused(INVALID_PARAMS, "invalid hash value"));
        };
        let head = self.head(method).await?;
        let candidates =
            [Some(hash), self.faults.fork.as_ref().map(|fork| marked(hash, fork.mark))];
        for candidate in candidates.into_iter().flatten() {
            let block =
                self.node.call("eth_getBlockByHash", json!([candidate.to_string(), false])).await?;
            let Some(number) = number_in(&block["number"]) else { continue };
            // On a fork a block answers to its altered hash and not to its own.
            if number <= head && self.altered(number, candidate) == hash {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    async fn block(&self, number: u64, is_full: bool) -> Result<Value, RpcError> {
        self.touch(number, number)?;
        self.node.call("eth_getBlockByNumber", json!([quantity(number), is_full])).await
    }

    async fn logs(&self, filter: &Value) -> Result<Value, RpcError> {
        const METHOD: &str = "eth_getLogs";
        let head = self.head(METHOD).await?;
        let (from, to) = if filter["blockHash"].is_null() {
            let from = self.bound(&filter["fromBlock"], head).await?;
            let to = self.bound(&filter["toBlock"], head).await?;
            if from > to {
                return Err(RpcError::refused(
                    INVALID_PARAMS,
                    "please verify: fromBlock <= toBlock",
                ));
            }
            if let Some(blocks_max) = self.faults.range_blocks_max
                && to - from > blocks_max
            {
                return Err(RpcError::refused(
                    INVALID_PARAMS,
                    format!("exceed max block range: {blocks_max}"),
                ));
            }
            (from, to.min(head))
        } else {
            let number = self.height_of_hash(METHOD, &filter["blockHash"]).await?;
            let number =
                number.ok_or_else(|| RpcError::refused(INVALID_PARAMS, "invalid blockHash"))?;
            (number, number)
        };
        // Beyond the head there is nothing, and nothing is said of it.
        if from > to {
            return Ok(json!([]));
        }
        self.touch(from, to)?;

        let mut asked = json!({"fromBlock": quantity(from), "toBlock": quantity(to)});
        for name in ["address", "topics"] {
            if !filter[name].is_null() && (name == "address" || !self.faults.is_ignoring_topics) {
                asked[name] = filter[name].clone();
            }
        }
        let is_filtered = asked.get("address").is_some()
            || asked["topics"].as_array().is_some_and(|topics| !topics.is_empty());
        let Value::Array(mut logs) = self.node.call(METHOD, json!([asked])).await? else {
            return Err(RpcError::Unreachable("no list of logs".into()));
        };
        for invented in &self.faults.invented {
            if (from..=to).contains(&invented.block) {
                let log = self.invent(invented).await?;
                if fits(&log, &asked) {
                    logs.push(log);
                }
            }
        }
        logs.sort_by_key(|log| (number_of(&log["blockNumber"]), number_of(&log["logIndex"])));
        logs.retain(|log| {
            let is_hidden =
                is_filtered && self.faults.logs_hidden.has(number_of(&log["blockNumber"]));
            !is_hidden
                && !self
                    .faults
                    .short
                    .contains(&(Hash::of(&log["transactionHash"]), number_of(&log["logIndex"])))
        });
        for log in &mut logs {
            log["removed"] =
                json!(self.faults.removed.contains(&Hash::of(&log["transactionHash"])));
        }
        match self.faults.results_max {
            Some(results_max) if logs.len() > results_max => Err(RpcError::refused(
                LIMIT_EXCEEDED,
                format!("query returned more than {results_max} results"),
            )),
            _ => Ok(Value::Array(logs)),
        }
    }

    /// A bound of a range, which may lie beyond the head.
    async fn bound(&self, tag: &Value, head: u64) -> Result<u64, RpcError> {
        match number_in(tag) {
            Some(number) => Ok(number),
            None if tag.is_null() => Ok(head),
            None => Ok(self.height("eth_getLogs", tag).await?.unwrap_or(head)),
        }
    }

    async fn invent(&self, invented: &Invented) -> Result<Value, RpcError> {
        let block = self
            .node
            .call("eth_getBlockByNumber", json!([quantity(invented.block), false]))
            .await?;
        let (topics, data) = match invented.is_deprecation {
            true => (json!([DEPRECATE_TOPIC]), format!("0x{:064x}", 0)),
            false => (
                json!([TRANSFER_TOPIC, topic(invented.from), topic(invented.to)]),
                format!("0x{:064x}", invented.units),
            ),
        };
        Ok(json!({
            "address": evm(invented.contract),
            "topics": topics,
            "data": data,
            "blockHash": block["hash"],
            "blockNumber": quantity(invented.block),
            "blockTimestamp": block["timestamp"],
            "transactionHash": invented.transaction.to_string(),
            "transactionIndex": "0x0",
            "logIndex": quantity(invented.log_index),
            "removed": false,
        }))
    }

    /// The head or the last solid block in the shape of TRON's own HTTP interface: milliseconds,
    /// hashes without `0x`.
    async fn now_block(&self, tag: &str) -> Result<Value, RpcError> {
        let number = if tag == "latest" {
            self.head("/wallet/getnowblock").await?
        } else {
            self.finalized("/walletsolidity/getnowblock").await?
        };
        let block = self.block(number, false).await?;
        let plain = |number: u64, value: &Value| self.altered(number, Hash::of(value)).plain();
        Ok(json!({
            "blockID": plain(number, &block["hash"]),
            "block_header": {
                "raw_data": {
                    "number": number,
                    "txTrieRoot": Hash::of(&block["transactionsRoot"]).plain(),
                    "witness_address": format!("41{}", hex(&[0x77; 20])),
                    "parentHash": plain(number.saturating_sub(1), &block["parentHash"]),
                    "version": 32,
                    "timestamp": number_of(&block["timestamp"]) * 1_000,
                },
                "witness_signature": hex(&[0; 65]),
            },
        }))
    }

    /// An account of TRON: there is one as soon as its address sent something.
    async fn account(&self, address: &str) -> Result<Value, RpcError> {
        let evm = format!("0x{}", address.strip_prefix("41").unwrap_or(address));
        let sent = self.node.call("eth_getTransactionCount", json!([evm, "latest"])).await?;
        let is_account = number_of(&sent) > 0;
        Ok(if is_account { json!({ "address": address, "create_time": 1 }) } else { json!({}) })
    }

    /// All transactions of a block in the shape of TRON's own HTTP interface.
    async fn block_info(&self, number: u64) -> Result<Value, RpcError> {
        self.touch(number, number)?;
        let mut receipts =
            self.node.call("eth_getBlockReceipts", json!([quantity(number)])).await?;
        self.dress(&mut receipts);
        let plain =
            |value: &Value| value.as_str().unwrap_or_default().trim_start_matches("0x").to_owned();
        let info = |receipt: &Value| {
            let no_logs = Vec::new();
            let logs = receipt["logs"].as_array().unwrap_or(&no_logs).iter();
            let log = |log: &Value| {
                let topics = log["topics"].as_array().cloned().unwrap_or_default();
                json!({"address": plain(&log["address"]), "data": plain(&log["data"]),
                    "topics": topics.iter().map(plain).collect::<Vec<_>>()})
            };
            let is_failed = receipt["status"] == "0x0";
            let result = if is_failed { "REVERT" } else { "SUCCESS" };
            let mut info = json!({"id": plain(&receipt["transactionHash"]), "blockNumber": number,
                "receipt": {"result": result}, "log": logs.map(log).collect::<Vec<_>>()});
            if is_failed {
                info["result"] = json!("FAILED");
            }
            info
        };
        let no_receipts = Vec::new();
        let receipts = receipts.as_array().unwrap_or(&no_receipts);
        Ok(Value::Array(receipts.iter().map(info).collect()))
    }

    /// The hash that this view gives a block.
    fn altered(&self, number: u64, hash: Hash) -> Hash {
        match &self.faults.fork {
            Some(fork) if fork.blocks.contains(&number) => marked(hash, fork.mark),
            _ => hash,
        }
    }

    /// Makes an answer look like this node's: TRON's oddities, the fork's hashes, failed receipts.
    fn dress(&self, value: &mut Value) {
        match value {
            Value::Array(values) => values.iter_mut().for_each(|value| self.dress(value)),
            Value::Object(object) => {
                if let (Some(number), Some(hash)) =
                    (object.get("number").and_then(number_in), object.get("hash").cloned())
                    && object.contains_key("parentHash")
                {
                    let parent = Hash::of(&object["parentHash"]);
                    object.insert(
                        "hash".into(),
                        json!(self.altered(number, Hash::of(&hash)).to_string()),
                    );
                    object.insert(
                        "parentHash".into(),
                        json!(self.altered(number.saturating_sub(1), parent).to_string()),
                    );
                    object.insert("stateRoot".into(), json!("0x"));
                    if let Some((blocks, seconds)) = &self.faults.time_shift
                        && blocks.has(number)
                    {
                        let time = (number_of(&object["timestamp"]) as i64 + seconds).max(0);
                        object.insert("timestamp".into(), json!(quantity(time as u64)));
                    }
                }
                if let (Some(number), Some(hash)) = (
                    object.get("blockNumber").and_then(number_in),
                    object.get("blockHash").cloned(),
                ) && hash.is_string()
                {
                    object.insert(
                        "blockHash".into(),
                        json!(self.altered(number, Hash::of(&hash)).to_string()),
                    );
                }
                if object.contains_key("logsBloom") {
                    object.insert("logsBloom".into(), json!(format!("0x{}", "0".repeat(512))));
                }
                if !self.faults.is_time_in_logs {
                    object.remove("blockTimestamp");
                }
                if object.contains_key("status")
                    && self.faults.failed.contains(&Hash::of(&object["transactionHash"]))
                {
                    object.insert("status".into(), json!("0x0"));
                }
                object.values_mut().for_each(|value| self.dress(value));
            }
            _ => {}
        }
    }
}

/// Another hash for the same block, and back again.
fn marked(hash: Hash, mark: u8) -> Hash {
    Hash(hash.0.map(|byte| byte ^ mark))
}

/// Whether a log fits the address and topics of a filter; a topic may be null, one or several.
fn fits(log: &Value, filter: &Value) -> bool {
    let is_one_of = |wanted: &Value, found: &Value| match wanted {
        Value::Null => true,
        Value::Array(several) => {
            several.is_empty() || several.iter().any(|one| is_same(one, found))
        }
        one => is_same(one, found),
    };
    let no_topics = Vec::new();
    let topics = filter["topics"].as_array().unwrap_or(&no_topics);
    is_one_of(&filter["address"], &log["address"])
        && topics.iter().enumerate().all(|(place, wanted)| is_one_of(wanted, &log["topics"][place]))
}

fn is_same(one: &Value, other: &Value) -> bool {
    matches!((one.as_str(), other.as_str()), (Some(one),
        Some(other)) if one.eq_ignore_ascii_case(other))
}
