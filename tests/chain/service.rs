//! The service under test, before a chain of the test's own: in this process with a clock that the
//! test moves, or as the real binary that can be killed.
//!
//! ```ignore
//! let stage = Stage::set().await;                    // chain, proxy, service, a beneficiary
//! let transfer = stage.transfer("100.00").await;
//! stage.token.transfer(address(&transfer), 100_000_000).await;
//! stage.settle().await;                              // final on chain, and followed
//! stage.awaits(&transfer, "payout_settled").await;
//! assert_eq!(stage.verify().await.deposits, 1);      // the oracle
//! ```
//!
//! On a stage the clock stands at the time of the chain's head and moves with it. With
//! `HUNDI_CHAIN_LOG` set, the service's log goes to stderr.

#![allow(dead_code, reason = "each scenario uses its own part of the harness")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hundi::app::App;
use hundi::chains::address::ChainAddress;
use hundi::chains::followed::FollowedChain;
use hundi::chains::timer::Timer;
use hundi::chains::tron_address::TronAddress;
use hundi::config::{Config, Flags};
use hundi::http::server;
use hundi::kernel::{Clock, Mode};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::anvil::{Anvil, BLOCK_SECONDS, FINALITY_BLOCKS, Options, Token};
use crate::binary::{Home, Server};
use crate::callers::{Client, id, test_key};
use crate::oracle::{Compared, Oracle, followed};
use crate::proxy::Proxy;
use crate::wire::Hash;

/// The account key of the test vectors; nobody needs the private half here.
pub const ACCOUNT_KEY: &str = "xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd";
/// How long a test waits for anything, on a machine that does other things too.
pub const PATIENCE: Duration = Duration::from_secs(240);
/// Blocks that a chain has before the service starts: some of them are final.
const BLOCKS_BEFORE: u64 = 40;
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Asks again and again until there is an answer.
#[track_caller]
pub fn eventually<T>(
    what: &str,
    mut probe: impl AsyncFnMut() -> Option<T>,
) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        let started = Instant::now();
        loop {
            if let Some(found) = probe().await {
                return found;
            }
            assert!(
                started.elapsed() < PATIENCE,
                "at {caller}: waited {PATIENCE:?} in vain for {what}"
            );
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// What the operator configures.
#[derive(Clone)]
pub struct Setup {
    /// The chain's name, which decides how addresses are written.
    pub name: &'static str,
    /// Nodes that the service reads, each a proxy before the one chain.
    pub proxies: usize,
    /// Other tokens that are looked out for.
    pub others: usize,
    /// The units that those count in.
    pub others_decimals: u64,
    pub funding_seconds: i64,
    pub blocks_at_once: u64,
    pub chain: Options,
    /// Any other variables.
    pub more: Vec<(&'static str, &'static str)>,
    /// The time by which requests to nodes are paced.
    pub timer: Timer,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            name: "tron",
            proxies: 1,
            others: 0,
            others_decimals: 6,
            funding_seconds: 1_800,
            blocks_at_once: 50,
            chain: Options::default(),
            more: Vec::new(),
            timer: Timer::default(),
        }
    }
}

/// Points the service of a home at nodes.
pub fn set_variables(home: &mut Home, urls: &[String], token: &Token, setup: &Setup) {
    for (name, value) in variables(urls, token, setup) {
        home.set(&name, &value);
    }
}

/// The variables that point a service at nodes.
pub fn variables(urls: &[String], token: &Token, setup: &Setup) -> Vec<(String, String)> {
    let is_said = |name: &str| setup.more.iter().any(|(said, _)| *said == name);
    let more = setup.more.iter().map(|(name, value)| (*name, (*value).to_owned()));
    [
        ("HUNDI_TEST_CHAIN_NAME", setup.name.to_owned()),
        ("HUNDI_TEST_CHAIN_ENDPOINTS", urls.join(",")),
        ("HUNDI_TEST_CHAIN_CHAIN_ID", setup.chain.chain_id.to_string()),
        (
            "HUNDI_TEST_CHAIN_TOKEN_CONTRACT",
            ChainAddress::of_chain(setup.name, token.address.bytes()).to_string(),
        ),
        ("HUNDI_TEST_CHAIN_ACCOUNT_KEY", ACCOUNT_KEY.to_owned()),
        ("HUNDI_TEST_CHAIN_POLL_MILLISECONDS", "100".to_owned()),
        ("HUNDI_TEST_CHAIN_BLOCKS_AT_ONCE", setup.blocks_at_once.to_string()),
        ("HUNDI_FUNDING_SECONDS", setup.funding_seconds.to_string()),
        ("HUNDI_SIMULATION_STEP_MILLISECONDS", "5".to_owned()),
        ("HUNDI_RATE_LIMIT_READS", "0".to_owned()),
        ("HUNDI_RATE_LIMIT_WRITES", "0".to_owned()),
    ]
    .into_iter()
    .filter(|(name, _)| !is_said(name))
    .chain(more)
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// A configuration on a database, without anything of this process's surroundings.
pub fn config(database: &Path, variables: &[(String, String)]) -> Config {
    let flags = Flags {
        database: Some(format!("sqlite:{}", database.display())),
        listen: Some("127.0.0.1:0".into()),
        metrics: true,
        ..Flags::default()
    };
    let find = |name: &str| {
        variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    Config::read(&flags, &find).expect("a configuration")
}

/// A folder on the disk that goes with the test, if it passes.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("chain-service-{}-{count}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }
    pub fn database(&self) -> PathBuf {
        self.0.join("hundi.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the database stays at {}", self.0.display());
        } else {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// A caller of either form of the service.
pub struct Caller {
    pub client: Client,
    pub chain: &'static str,
    pub beneficiary_id: String,
    pub sender_id: String,
}

impl Caller {
    /// `nudge` moves a clock that does not move by itself.
    pub async fn prepare(client: Client, chain: &'static str, nudge: impl Fn()) -> Caller {
        let sender_id = id(&client.sender().await);
        let beneficiary = client.beneficiary("50100012345678").await;
        let path = format!("/v1/beneficiaries/{}", id(&beneficiary));
        eventually("the beneficiary to be payable", async || {
            nudge();
            (client.get(&path).await.ok()["payouts_enabled"] == true).then_some(())
        })
        .await;
        Caller { client, chain, beneficiary_id: id(&beneficiary), sender_id }
    }

    /// What a transfer is asked for with; `funding` adds to its funding leg.
    async fn transfer_body(&self, amount: &str, funding: Value) -> Value {
        let lock = self.client.quote_lock(amount).await;
        let mut leg = json!({"rail": "stablecoin", "asset": "USDT", "chain": self.chain});
        leg.as_object_mut().unwrap().extend(funding.as_object().cloned().unwrap_or_default());
        json!({
            "sender_id": self.sender_id, "beneficiary_id": self.beneficiary_id,
                "quote_lock_id": id(&lock),
            "amount": amount, "currency": "USD", "payout_currency": "INR", "funding": leg,
        })
    }
    /// Expects that no transfer is taken now; answers the quote lock that it was asked for with.
    pub async fn expect_no_transfer(&self, amount: &str) -> String {
        let body = self.transfer_body(amount, json!({})).await;
        assert_eq!(
            self.client.post("/v1/transfers", body.clone()).await.error(503),
            "service_unavailable"
        );
        body["quote_lock_id"].as_str().expect("a quote lock").to_owned()
    }
    /// An unfunded transfer; `None` where none is taken now.
    pub async fn try_transfer(&self, amount: &str) -> Option<Value> {
        let body = self.transfer_body(amount, json!({})).await;
        let answer = self.client.post("/v1/transfers", body).await;
        (answer.status != 503).then(|| answer.ok())
    }
    /// An unfunded transfer; `funding` adds to its funding leg.
    pub async fn transfer_with(&self, amount: &str, funding: Value) -> Value {
        let body = self.transfer_body(amount, funding).await;
        // Until the chain is followed, addresses are refused.
        eventually("a transfer to be taken", async || {
            let answer = self.client.post("/v1/transfers", body.clone()).await;
            (answer.status != 503).then(|| answer.ok())
        })
        .await
    }
    pub async fn transfer(&self, amount: &str) -> Value {
        self.transfer_with(amount, json!({})).await
    }
    /// The transfer as it is now.
    pub async fn shown(&self, transfer: &Value) -> Value {
        self.client.get(&format!("/v1/transfers/{}", id(transfer))).await.ok()
    }
    /// The transfer's deposits, oldest first.
    pub async fn deposits(&self, transfer: &Value) -> Vec<Value> {
        let page = self
            .client
            .get(&format!("/v1/deposits?limit=100&transfer_id={}", id(transfer)))
            .await
            .ok();
        page["data"].as_array().expect("a list").clone()
    }
    /// The transfer's refunds, oldest first.
    pub async fn refunds(&self, transfer: &Value) -> Vec<Value> {
        let page = self
            .client
            .get(&format!("/v1/refunds?limit=100&transfer_id={}", id(transfer)))
            .await
            .ok();
        page["data"].as_array().expect("a list").clone()
    }
}

/// Where a transfer's deposit goes.
pub fn address(transfer: &Value) -> TronAddress {
    let text = transfer["funding"]["deposit_address"]
        .as_str()
        .unwrap_or_else(|| panic!("no deposit address in {transfer}"));
    let address = ChainAddress::parse(text).expect("an address");
    TronAddress::from_evm(*address.bytes().as_20().expect("20 bytes"))
}

/// What a transfer waits for, in the token's smallest units.
pub fn expected_units(transfer: &Value) -> u64 {
    let text = transfer["funding"]["amount_expected"].as_str().expect("an amount");
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{part:0<6}").parse().expect("an amount")
}

/// Chain, token, proxies, and the service in this process.
pub struct Stage {
    pub chain: Anvil,
    pub token: Token,
    pub others: Vec<(String, Token)>,
    pub proxies: Vec<Proxy>,
    pub app: Arc<App>,
    pub caller: Caller,
    /// Milliseconds since 1970.
    pub clock: Arc<AtomicI64>,
    pub failed: BTreeSet<Hash>,
    pub setup: Setup,
    stop: watch::Sender<bool>,
    folder: Folder,
}

impl std::ops::Deref for Stage {
    type Target = Caller;
    fn deref(&self) -> &Caller {
        &self.caller
    }
}

impl Stage {
    pub async fn set() -> Stage {
        Stage::set_with(Setup::default()).await
    }

    /// One whose final view trails by so many blocks, which are mined already, and a transfer of
    /// 100 USDT with a day to pay.
    pub async fn trailing_by(blocks: u64) -> (Stage, Value) {
        let setup = Setup { funding_seconds: 86_400, ..Setup::default() };
        let stage = Stage::set_with(setup).await;
        let transfer = stage.transfer("100.00").await;
        stage.proxy().change(|faults| faults.finality_behind_blocks = blocks);
        stage.mine(blocks).await;
        (stage, transfer)
    }

    pub async fn set_with(setup: Setup) -> Stage {
        if std::env::var_os("HUNDI_CHAIN_LOG").is_some() {
            // Only the first stage of a process gets a log.
            let _ = tracing_subscriber::fmt().with_writer(std::io::stderr).try_init();
        }
        let chain = Anvil::start_with(setup.chain.clone()).await;
        let token = chain.deploy_token().await;
        let mut others = Vec::new();
        for number in 0..setup.others {
            let other = chain.deploy_token_named("Other", "OTHER").await;
            other.set_decimals(setup.others_decimals).await;
            others.push((format!("OTHER{number}"), other));
        }
        chain.mine(BLOCKS_BEFORE).await;
        let mut proxies = Vec::new();
        for _ in 0..setup.proxies {
            proxies.push(Proxy::start(&chain).await);
        }
        let urls: Vec<String> = proxies.iter().map(Proxy::url).collect();
        let folder = Folder::new();
        let mut config = config(&folder.database(), &variables(&urls, &token, &setup));
        let watched = config.test_chain.as_mut().expect("a chain");
        watched.timer = setup.timer.clone();
        proxies.iter().for_each(|proxy| proxy.set_timer(setup.timer.clone()));
        for (symbol, other) in &others {
            let address = ChainAddress::of_chain(setup.name, other.address.bytes());
            watched.other_tokens.insert(symbol.clone(), address);
        }
        let clock = Arc::new(AtomicI64::new(chain.head_block().await.time * 1000));
        let app =
            App::open(&config, Clock::Manual(clock.clone())).await.expect("the service opens");
        let (listener, address) = server::bind(&config.listen).await.expect("a port");
        let (stop, stopping) = watch::channel(false);
        tokio::spawn(app.clone().run(listener, stopping));
        let key = test_key(&app).await;
        let (nudged, store) = (clock.clone(), app.state.store.clone());
        let caller = Caller::prepare(Client::of(&address.to_string(), &key), setup.name, || {
            nudge(&nudged, &store)
        })
        .await;
        let stage = Stage {
            chain,
            token,
            others,
            proxies,
            app,
            caller,
            clock,
            failed: BTreeSet::new(),
            setup,
            stop,
            folder,
        };
        stage.followed().await;
        stage
    }

    pub fn proxy(&self) -> &Proxy {
        &self.proxies[0]
    }
    pub fn followed_chain(&self) -> &Arc<FollowedChain> {
        &self.app.state.chains[0]
    }
    pub fn database(&self) -> PathBuf {
        self.folder.database()
    }

    /// Runs another follower of the same chain on the same store.
    pub async fn follow_twice(&self) -> Arc<FollowedChain> {
        let client =
            hundi::outbound::Client::new(rustls::RootCertStore::empty()).expect("a client");
        let settings = self.followed_chain().settings.clone();
        let second = Arc::new(FollowedChain::new(Mode::Test, settings, &client));
        tokio::spawn(hundi::chain_following::follow::run(
            self.app.state.clone(),
            second.clone(),
            self.stop.subscribe(),
        ));
        second
    }

    /// Has the service end what it does.
    pub fn stop(&self) {
        let _ = self.stop.send(true);
    }

    // ---- Time ----

    /// The clock, in Unix seconds.
    pub fn now(&self) -> i64 {
        self.clock.load(Ordering::SeqCst) / 1000
    }
    /// Moves the clock to the time of the chain's head, and wakes who waits for time.
    pub async fn tick(&self) {
        let time = self.chain.head_block().await.time;
        self.clock.fetch_max(time * 1000, Ordering::SeqCst);
        self.app.state.store.signals.tasks.notify_one();
    }
    pub fn advance_seconds(&self, seconds: i64) {
        self.clock.fetch_add(seconds * 1000, Ordering::SeqCst);
        self.app.state.store.signals.tasks.notify_one();
    }
    pub async fn mine(&self, blocks: u64) {
        // The clock first, for no block is believed that is minutes ahead of it.
        let time = self.chain.head_block().await.time + blocks as i64 * BLOCK_SECONDS;
        self.clock.fetch_max(time * 1000, Ordering::SeqCst);
        self.chain.mine(blocks).await;
        self.tick().await;
    }
    /// Mines one block at a time of its own.
    pub async fn mine_at(&self, time: i64) {
        self.clock.fetch_max(time * 1000, Ordering::SeqCst);
        self.chain.mine_at(&[time]).await;
        self.tick().await;
    }

    // ---- Waiting ----

    /// Waits until all that is final now was followed.
    pub async fn followed(&self) {
        let to = self.chain.finalized().await as i64;
        self.followed_to(to).await;
    }
    pub async fn followed_to(&self, to: i64) {
        let stats = &self.followed_chain().stats;
        eventually(&format!("block {to} to be followed"), async || {
            (stats.height.load(Ordering::Relaxed) >= to).then_some(())
        })
        .await;
    }
    pub fn height(&self) -> i64 {
        self.followed_chain().stats.height.load(Ordering::Relaxed)
    }
    pub fn is_in_trouble(&self) -> bool {
        self.followed_chain().stats.is_in_trouble.load(Ordering::Relaxed)
    }
    /// Waits until the alarm says so.
    pub async fn trouble(&self) {
        eventually("an alarm", async || self.is_in_trouble().then_some(())).await;
    }
    /// A figure of the page for monitoring.
    pub async fn metric(&self, name: &str) -> i64 {
        let page =
            String::from_utf8(self.client.get("/metrics").await.body.to_vec()).expect("a text");
        let line = page
            .lines()
            .find(|line| line.starts_with(&format!("{name}{{chain=\"tron\",mode=\"test\"}} ")));
        line.and_then(|line| line.split(' ').nth(1)?.parse().ok())
            .unwrap_or_else(|| panic!("no {name} in {page}"))
    }
    /// Waits until a figure of that page is so.
    pub async fn awaits_metric(&self, name: &str, wanted: i64) {
        eventually(&format!("{name} to be {wanted}"), async || {
            (self.metric(name).await == wanted).then_some(())
        })
        .await;
    }
    /// Waits until a whole look at the chain has begun and ended that every node was asked in.
    pub async fn looked_again(&self) {
        let looks = |proxy: &Proxy| {
            proxy.calls_seen().iter().filter(|call| call.params[0] == "finalized").count()
        };
        let before: Vec<usize> = self.proxies.iter().map(looks).collect();
        let has_looked =
            || self.proxies.iter().zip(&before).all(|(proxy, before)| looks(proxy) > before + 2);
        eventually("another look", async || has_looked().then_some(())).await;
    }
    pub async fn no_trouble(&self) {
        eventually("the alarm to end", async || (!self.is_in_trouble()).then_some(())).await;
    }
    /// What waits goes into a block, which becomes final and is followed.
    pub async fn settle(&self) {
        self.mine(1 + FINALITY_BLOCKS).await;
        self.followed().await;
    }
    /// Waits for a transfer's status, while the clock moves a little.
    pub async fn awaits(&self, transfer: &Value, status: &str) -> Value {
        eventually(&format!("{} to be {status}", id(transfer)), async || {
            nudge(&self.clock, &self.app.state.store);
            let shown = self.shown(transfer).await;
            (shown["status"] == status).then_some(shown)
        })
        .await
    }
    /// Waits until a transfer's deposits are as wanted.
    pub async fn awaits_deposits(
        &self,
        transfer: &Value,
        wanted: impl Fn(&[Value]) -> bool,
    ) -> Vec<Value> {
        eventually("the deposits to be as wanted", async || {
            let deposits = self.deposits(transfer).await;
            wanted(&deposits).then_some(deposits)
        })
        .await
    }

    // ---- The oracle ----

    pub fn oracle(&self) -> OracleOf<'_> {
        OracleOf { stage: self, database: self.folder.database() }
    }
    pub async fn verify(&self) -> Compared {
        self.followed().await;
        self.oracle().oracle().verify().await
    }
}

/// The oracle of a stage, with the path that it borrows.
pub struct OracleOf<'a> {
    stage: &'a Stage,
    database: PathBuf,
}

impl OracleOf<'_> {
    pub fn oracle(&self) -> Oracle<'_> {
        let Stage { chain, token, others, failed, .. } = self.stage;
        Oracle { chain, token, others, database: &self.database, failed: failed.clone() }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A few milliseconds for the simulated bank and checks.
fn nudge(clock: &AtomicI64, store: &hundi::store::Store) {
    clock.fetch_add(20, Ordering::SeqCst);
    store.signals.tasks.notify_one();
}

/// The real binary on a database of its own, with the machine's clock. Tests that use it run on a
/// runtime with several threads, because starting and killing block.
pub struct Process {
    pub home: Home,
    pub server: Option<Server>,
    pub listen: String,
    pub caller: Caller,
}

impl Process {
    /// A chain whose head is at the machine's time.
    pub fn chain_now() -> Options {
        Process::chain_before(0)
    }
    /// A chain that has room for so many blocks before the machine's time: none is believed that is
    /// minutes ahead of it.
    pub fn chain_before(blocks: u64) -> Options {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |elapsed| elapsed.as_secs() as i64);
        Options {
            genesis_time: now - (BLOCKS_BEFORE as i64 + 3 + blocks as i64) * BLOCK_SECONDS,
            ..Options::default()
        }
    }

    pub async fn start(
        urls: &[String],
        token: &Token,
        setup: &Setup,
        fault: Option<&str>,
    ) -> Process {
        let mut home = Home::new("chain-binary").with_fault(fault);
        set_variables(&mut home, urls, token, setup);
        let (home, server, key) = tokio::task::block_in_place(move || {
            let key = home.key();
            let server = home.start_on_own_port();
            (home, server, key)
        });
        let listen = server.address().to_string();
        let caller = Caller::prepare(Client::of(&listen, &key), setup.name, || ()).await;
        Process { home, server: Some(server), listen, caller }
    }

    /// kill -9.
    pub fn kill(&mut self) {
        tokio::task::block_in_place(|| self.server.take().expect("a running server").kill_now());
    }
    pub fn resume(&mut self) {
        self.server = Some(tokio::task::block_in_place(|| self.home.start_as(&[], &self.listen)));
    }
    pub fn height(&self) -> i64 {
        followed(&self.home.database_path()).map_or(-1, |followed| followed.height)
    }
    pub async fn followed_to(&self, to: i64) {
        eventually(&format!("block {to} to be followed"), async || {
            (self.height() >= to).then_some(())
        })
        .await;
    }
    pub async fn faults(&self, chain: &Anvil, token: &Token) -> (Compared, Vec<String>) {
        let database = self.home.database_path();
        Oracle { chain, token, others: &[], database: &database, failed: BTreeSet::new() }
            .faults()
            .await
    }
}

/// A chain with a token, on which some blocks are final.
pub async fn chain_with_token(options: Options) -> (Anvil, Token) {
    let chain = Anvil::start_with(options).await;
    let token = chain.deploy_token().await;
    chain.mine(BLOCKS_BEFORE).await;
    (chain, token)
}
