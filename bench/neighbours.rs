//! One account at its worst: how long another account's requests take meanwhile.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::Scale;
use crate::cluster::{Cluster, Database};
use crate::load::{self, Connection, Measured, Until};
use crate::receiver::Receiver;
use crate::server::{self, Api, CONNECTIONS_COUNT, Folder, Server};
use crate::table::Table;

/// What the other account asks for in a second, a fraction of what the service can do.
const CREATIONS_PER_SECOND: f64 = 50.0;
const GETS_PER_SECOND: f64 = 200.0;
/// Connections of the other account, for each of the two.
const NEIGHBOUR_CONNECTIONS: usize = 16;
/// Transfers of the other account that it gets.
const GOT_COUNT: usize = 500;
/// Transfers that the worst account has paid; each makes some ten events, of which one replay takes
/// ten thousand at most.
const PAID_COUNT: usize = 800;
/// Endpoints that an account may have.
const ENDPOINTS_COUNT: usize = 16;
const REPLAYING_CONNECTIONS: usize = 40;
const STATEMENT_CONNECTIONS: usize = 80;
/// Transfers a second whose events go to names that never resolve.
const NAMES_CREATIONS_PER_SECOND: f64 = 50.0;
/// How long a burst lasts, as a multiple of what the scale says, and how often each comes.
const BURST_SECONDS_FACTOR: f64 = 2.0;
const BURSTS_COUNT: usize = 2;
/// How much longer the p99 may be beside the worst account.
const FACTOR_MAX: f64 = 2.0;
const SETTINGS: &[&str] = &["fsync=on", "shared_buffers=512MB", "max_wal_size=4GB"];

/// What the worst account does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Worst {
    Nothing,
    /// Replays of all its events to all its endpoints, over and over.
    Replays,
    /// Statements of all its transfers as CSV, over and over.
    Statements,
    /// Creations whose events go to sixteen names that never resolve.
    Names,
}

impl Worst {
    const ALL: [Worst; 4] = [Worst::Nothing, Worst::Replays, Worst::Statements, Worst::Names];

    fn words(self) -> String {
        match self {
            Worst::Nothing => "alone".into(),
            Worst::Replays => {
                format!("beside replays of a range on {REPLAYING_CONNECTIONS} connections")
            }
            Worst::Statements => {
                format!("beside statements as CSV on {STATEMENT_CONNECTIONS} connections")
            }
            Worst::Names => {
                format!("beside webhooks to {ENDPOINTS_COUNT} names that never resolve")
            }
        }
    }
}

/// What the other account's requests took beside one kind of work, in microseconds.
#[derive(Default)]
struct Bursts {
    creations: Vec<u32>,
    gets: Vec<u32>,
    seconds: f64,
    /// What the worst account got done meanwhile.
    done_count: u64,
}

pub fn run(runtime: &Runtime, scale: &Scale, table: &mut Table) {
    let folder = Folder::new("neighbours");
    let path = folder.database("served");
    measure(runtime, scale, table, &format!("sqlite:{}", path.display()), &folder, "SQLite");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/postgres/install.sh");
    if !Command::new(script).status().is_ok_and(|status| status.success()) {
        table.add("PostgreSQL", "not installed", "");
        return;
    }
    let cluster = Cluster::start(SETTINGS);
    let database = Database::in_cluster(&cluster.url);
    measure(runtime, scale, table, &database.url(), &folder, "PostgreSQL");
}

fn measure(
    runtime: &Runtime,
    scale: &Scale,
    table: &mut Table,
    database: &str,
    folder: &Folder,
    store: &str,
) {
    let log = folder.0.join(format!("{store}.log"));
    let server = Server::start_on(database, &log, &[]);
    let prepared = runtime.block_on(prepare(&server, database));
    server.stop();
    // With the limits that the service has by default.
    let limits = [("HUNDI_RATE_LIMIT_READS", "1000"), ("HUNDI_RATE_LIMIT_WRITES", "1000")];
    let mut all = Worst::ALL.map(|worst| (worst, Bursts::default()));
    for _ in 0..BURSTS_COUNT {
        for (worst, bursts) in &mut all {
            let server = Server::start_on(database, &log, &limits);
            let bad = Bad::start(*worst, server.address, &prepared);
            let seconds = scale.seconds * BURST_SECONDS_FACTOR;
            let (creations, gets) = runtime.block_on(burst(&server, &prepared, seconds));
            bursts.done_count += bad.stop();
            bursts.seconds += creations.seconds;
            bursts.creations.extend(creations.latencies);
            bursts.gets.extend(gets.latencies);
            server.stop();
        }
    }
    let mut alone = (0.0, 0.0);
    for (worst, bursts) in all {
        let Bursts { seconds, done_count, .. } = bursts;
        let creations = Measured::new(seconds, bursts.creations);
        let gets = Measured::new(seconds, bursts.gets);
        let words = worst.words();
        table.add(
            &format!("{store}: an account's creations, {CREATIONS_PER_SECOND} a second, {words}"),
            creations.percentiles(),
            "",
        );
        table.add(
            &format!("{store}: its gets by id, {GETS_PER_SECOND} a second, {words}"),
            gets.percentiles(),
            "",
        );
        let p99 = (creations.milliseconds(99.0), gets.milliseconds(99.0));
        if worst == Worst::Nothing {
            alone = p99;
            continue;
        }
        assert!(done_count > 0, "{words}: the worst account got nothing done");
        let rate = done_count as f64 / seconds;
        table.add(&format!("{store}: what that account got done"), format!("{rate:.1}/s"), "");
        for (what, beside, alone) in [("creations", p99.0, alone.0), ("gets", p99.1, alone.1)] {
            let ratio = beside / alone.max(0.001);
            table.at_most(&format!("{store}: p99 of {what} {words}"), ratio, FACTOR_MAX, "");
        }
    }
}

/// Two accounts: the other one, and the worst one with paid transfers.
struct Prepared {
    key: String,
    bad_key: String,
    /// Transfers of the other account.
    ids: Vec<String>,
    parties: server::Parties,
    bad_parties: server::Parties,
}

async fn prepare(server: &Server, database: &str) -> Prepared {
    let key = server::make_key_on(database, "neighbour");
    let bad_key = server::make_key_on(database, "worst");
    let mut api = Api::new(server.address, &key).await;
    let parties = api.parties().await;
    let creations = api.creations(&parties, GOT_COUNT).await;
    let (ids, keep) = load::keep_ids();
    load::closed(server.address, CONNECTIONS_COUNT, creations, Until::AllSent, keep).await;
    let ids = std::mem::take(&mut *ids.lock().expect("the identifiers"));

    let mut bad = Api::new(server.address, &bad_key).await;
    let bad_parties = bad.parties().await;
    let creations = bad.creations(&bad_parties, PAID_COUNT).await;
    let (paid, keep) = load::keep_ids();
    load::closed(server.address, CONNECTIONS_COUNT, creations, Until::AllSent, keep).await;
    let paid = std::mem::take(&mut *paid.lock().expect("the identifiers"));
    let deposits = paid.iter().map(|id| {
        let path = format!("/v1/test_helpers/transfers/{id}/deposit");
        load::request("POST", &path, &bad_key, &server::fresh_key(), "{}")
    });
    let deposits = Arc::new(deposits.collect::<Vec<_>>());
    load::closed(server.address, CONNECTIONS_COUNT, deposits, Until::AllSent, load::ignore()).await;
    for id in &paid {
        bad.wait_status(&format!("/v1/transfers/{id}"), "payout_settled").await;
    }
    server.calm().await;
    Prepared { key, bad_key, ids, parties, bad_parties }
}

/// The other account's requests at their pace, for some seconds.
async fn burst(server: &Server, prepared: &Prepared, seconds: f64) -> (Measured, Measured) {
    let api = Api::new(server.address, &prepared.key).await;
    let count = (CREATIONS_PER_SECOND * seconds) as usize;
    let mut creations = Vec::new();
    // A few at a time: the account has a rate limit too.
    while creations.len() < count {
        let some = api.creations(&prepared.parties, 50.min(count - creations.len())).await;
        creations.extend(some.iter().cloned());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let get = |index: usize| {
        let id = &prepared.ids[index % prepared.ids.len()];
        load::get_request(&format!("/v1/transfers/{id}"), &prepared.key)
    };
    let gets = Arc::new((0..(GETS_PER_SECOND * seconds) as usize).map(get).collect::<Vec<_>>());
    tokio::join!(
        load::paced(
            server.address,
            NEIGHBOUR_CONNECTIONS,
            Arc::new(creations),
            CREATIONS_PER_SECOND,
            load::ignore()
        ),
        load::paced(server.address, NEIGHBOUR_CONNECTIONS, gets, GETS_PER_SECOND, load::ignore()),
    )
}

/// The worst account at work, on a thread of its own.
struct Bad {
    is_over: Arc<AtomicBool>,
    /// Requests that were answered with 200.
    done: Arc<AtomicU64>,
    thread: std::thread::JoinHandle<()>,
}

impl Bad {
    /// Begins, and waits until it has set up what it needs.
    fn start(worst: Worst, address: SocketAddr, prepared: &Prepared) -> Bad {
        let (is_over, done) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (is_ready, ready) = std::sync::mpsc::channel();
        let (over, count) = (is_over.clone(), done.clone());
        let (key, parties) = (prepared.bad_key.clone(), prepared.bad_parties.clone());
        let thread = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let mut api = Api::new(address, &key).await;
                let requests = set_up(worst, &mut api, &parties).await;
                is_ready.send(()).expect("the bench waits");
                let connections = match worst {
                    Worst::Nothing => 0,
                    Worst::Replays => REPLAYING_CONNECTIONS,
                    Worst::Statements => STATEMENT_CONNECTIONS,
                    Worst::Names => 1,
                };
                let asking = (0..connections).map(|index| {
                    ask(address, requests.clone(), index, over.clone(), count.clone())
                });
                futures_util::future::join_all(asking).await;
                clean_up(&mut api).await;
            });
        });
        ready.recv().expect("the worst account is ready");
        Bad { is_over, done, thread }
    }

    fn stop(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("the worst account");
        self.done.load(Ordering::Relaxed)
    }
}

/// Makes what the worst account needs; answers how it makes its requests.
async fn set_up(worst: Worst, api: &mut Api, parties: &server::Parties) -> Arc<Requests> {
    let key = api.key.clone();
    let mut paths = Vec::new();
    match worst {
        Worst::Nothing => {}
        Worst::Replays => {
            let receiver = Receiver::start(Arc::new(|_, _| {})).await;
            for index in 0..ENDPOINTS_COUNT {
                let id = api.endpoint(&receiver.url(&format!("/{index}")), &["*"]).await;
                paths.push(format!("/v1/webhook_endpoints/{id}/replay"));
            }
        }
        Worst::Statements => paths.push("/v1/statements?format=csv".into()),
        Worst::Names => {
            for index in 0..ENDPOINTS_COUNT {
                let url = format!("https://never-{index}.hundi-bench.invalid/");
                api.endpoint(&url, &["*"]).await;
            }
        }
    }
    let locks = if worst == Worst::Names {
        let mut locks = Vec::new();
        for _ in 0..12 {
            locks.extend(api.quote_locks(50).await);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        locks
    } else {
        Vec::new()
    };
    Arc::new(Requests { worst, key, paths, locks, parties: parties.clone() })
}

/// An account has sixteen endpoints at most.
async fn clean_up(api: &mut Api) {
    for endpoint in
        api.get("/v1/webhook_endpoints?limit=100").await["data"].as_array().into_iter().flatten()
    {
        let path = format!("/v1/webhook_endpoints/{}", server::id(endpoint));
        let request = load::request("DELETE", &path, &api.key, "", "");
        let mut connection = Connection::open(api.address).await;
        connection.ask(&request).await;
    }
}

struct Requests {
    worst: Worst,
    key: String,
    paths: Vec<String>,
    locks: Vec<String>,
    parties: server::Parties,
}

impl Requests {
    fn at(&self, index: usize) -> Vec<u8> {
        match self.worst {
            Worst::Nothing | Worst::Statements => load::get_request(&self.paths[0], &self.key),
            Worst::Replays => {
                let path = &self.paths[index % self.paths.len()];
                let body = json!({ "since": 1 }).to_string();
                load::request("POST", path, &self.key, &server::fresh_key(), &body)
            }
            Worst::Names => {
                let body = self.parties.transfer_body(index, &self.locks[index % self.locks.len()]);
                let key = server::fresh_key();
                load::request("POST", "/v1/transfers", &self.key, &key, &body.to_string())
            }
        }
    }
}

/// Asks without a pause, whatever is answered.
async fn ask(
    address: SocketAddr,
    requests: Arc<Requests>,
    first: usize,
    is_over: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
) {
    let mut connection = Connection::open(address).await;
    let mut index = first;
    while !is_over.load(Ordering::Relaxed) {
        let (status, _) = connection.ask(&requests.at(index)).await;
        if status == 200 {
            done.fetch_add(1, Ordering::Relaxed);
        }
        index += 1;
        if requests.worst == Worst::Names {
            let pause = Duration::from_secs_f64(1.0 / NAMES_CREATIONS_PER_SECOND);
            tokio::time::sleep(pause).await;
        }
    }
}
