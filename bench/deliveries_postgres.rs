//! Webhook deliveries of a new account on PostgreSQL, beside an account with a long history that
//! the planner's statistics know alone.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hundi::kernel::{Clock, Scope};
use hundi::store::Store;
use hundi::store::postgres::PostgresUrl;
use hundi::webhooks;
use tokio::runtime::Runtime;

use crate::Scale;
use crate::cluster::{Cluster, Database};
use crate::deliveries::{self, Arrivals, SCOPE_CODE};
use crate::load::{self, Measured};
use crate::receiver::Receiver;
use crate::rows;
use crate::server::{self, Api, Folder, Parties, Server};
use crate::table::{Table, median};

/// Nobody refreshes the statistics during the run, as between two runs of autovacuum.
const SETTINGS: &[&str] =
    &["fsync=on", "shared_buffers=512MB", "max_wal_size=4GB", "autovacuum=off"];
/// The second account of the database, in test mode.
const NEW_SCOPE_CODE: i64 = 4;
const EVENT_TYPE: &str = "transfer.status.funding";
/// Transfers of the other account in a second, whose events are timed.
const OTHER_PER_SECOND: f64 = 40.0;
const PATIENCE: Duration = Duration::from_secs(900);
/// One of so many requests, the first ones, warms up the service that was just started: each of its
/// connections prepares its statements, which takes several times as long as a delivery.
const WARM_UP_PART: usize = 9;
/// So many times the rounds of other sections, where there are several: in three rounds there are
/// about 650 delays beside the backlog, and the p99 of these is the sixth slowest.
const ROUNDS_FACTOR: usize = 3;
/// Wanted of the rate on PostgreSQL.
const RATIO_MIN: f64 = 0.3;
/// How many times the p99 alone counts as unchanged: it moves by as much between two runs.
const DELAY_RATIO_MAX: f64 = 1.3;

/// The account with the history, and who hears of its events.
struct Other {
    key: String,
    parties: Parties,
    arrivals: Arrivals,
    receiver: Receiver,
}

pub fn run(runtime: &Runtime, scale: &Scale, table: &mut Table) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/postgres/install.sh");
    if !Command::new(script).status().is_ok_and(|status| status.success()) {
        table.add("PostgreSQL", "not installed", "");
        return;
    }
    let embedded = deliveries::drained_per_second(runtime, scale);
    let cluster = Cluster::start(SETTINGS);
    let database = Database::in_cluster(&cluster.url);
    let folder = Folder::new("deliveries-postgres");
    let start = || Server::start_on(&database.url(), &folder.0.join("node.log"), &[]);
    let (history, backlog) = (scale.deliveries * 3, scale.deliveries);

    let server = start();
    let key = server::make_key_on(&database.url(), "default");
    let new_key = server::make_key_on(&database.url(), "new");
    server.stop();
    emit(runtime, &database, SCOPE_CODE, history);
    let mut server = start();
    // As autovacuum leaves the older events.
    database.sql("VACUUM ANALYZE");
    let (arrivals, keep) = deliveries::keep_arrivals();
    let (parties, receiver, new_receiver) = runtime.block_on(async {
        let receiver = Receiver::start(keep).await;
        let new_receiver = Receiver::start(Arc::new(|_, _| {})).await;
        let mut api = Api::new(server.address, &key).await;
        let parties = api.parties().await;
        api.endpoint(&receiver.url("/other"), &[EVENT_TYPE]).await;
        let mut new_api = Api::new(server.address, &new_key).await;
        for index in 0..deliveries::ENDPOINTS_COUNT {
            new_api.endpoint(&new_receiver.url(&format!("/{index}")), &[EVENT_TYPE]).await;
        }
        (parties, receiver, new_receiver)
    });
    let other = Other { key, parties, arrivals, receiver };
    // Alone and beside the backlog take turns, so that both see the same machine.
    let (mut alone, mut beside, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    // Beside one loop, beside two, and so on, up to one for each processor.
    let processors_count = std::thread::available_parallelism().map_or(1, usize::from);
    let mut busy: Vec<Vec<Measured>> = (0..processors_count).map(|_| Vec::new()).collect();
    let rounds = if scale.rounds > 1 { scale.rounds * ROUNDS_FACTOR } else { 1 };
    for _ in 0..rounds {
        let requests = async || {
            let count = (OTHER_PER_SECOND * 3.0 * scale.seconds) as usize;
            Api::new(server.address, &other.key).await.creations(&other.parties, count).await
        };
        let (alone_requests, beside_requests) =
            runtime.block_on(async { (requests().await, requests().await) });
        alone.push(runtime.block_on(timed(&server, &other, alone_requests, None)));
        for (loops, measured) in (1..).zip(&mut busy) {
            let requests = runtime.block_on(requests());
            let timed = || runtime.block_on(timed(&server, &other, requests, None));
            measured.push(beside_loops(loops, timed));
        }
        server.stop();

        emit(runtime, &database, NEW_SCOPE_CODE, backlog / deliveries::ENDPOINTS_COUNT);
        // As autovacuum leaves it, which follows the rows that went. Statistics stay as they are.
        database.sql("VACUUM outbox");
        server = start();
        let total = (backlog / deliveries::ENDPOINTS_COUNT * deliveries::ENDPOINTS_COUNT) as u64;
        let before = new_receiver.count();
        let drained_at = Mutex::new(None);
        let (seconds, measured) = runtime.block_on(async {
            let drained = async {
                assert!(new_receiver.wait_for(before + 1, PATIENCE).await, "no delivery arrived");
                let started = Instant::now();
                assert!(
                    new_receiver.wait_for(before + total, PATIENCE).await,
                    "the backlog was not delivered"
                );
                *drained_at.lock().expect("the end") = Some(Instant::now());
                started.elapsed().as_secs_f64()
            };
            tokio::join!(drained, timed(&server, &other, beside_requests, Some(&drained_at)))
        });
        beside.push(measured);
        rates.push(total as f64 / seconds);
        database.sql("VACUUM");
    }
    server.stop();
    let ratios: Vec<f64> =
        alone.iter().zip(&beside).map(|(alone, beside)| p99_against(beside, alone)).collect();
    let even = together(alone.iter().step_by(2));
    let odd = together(alone.iter().skip(1).step_by(2));
    let (alone, beside) = (together(&alone), together(&beside));
    let rate = median(rates);
    table.add(
        &format!("deliveries of a new account on PostgreSQL beside {history} older events"),
        format!("{rate:.0}/s; {embedded:.0}/s on the embedded store"),
        "",
    );
    table.at_least(
        "deliveries on PostgreSQL against the embedded store",
        rate / embedded,
        RATIO_MIN,
    );
    table.add(
        "delay of another account's deliveries meanwhile",
        format!(
            "{} of {}; alone {} of {}",
            beside.percentiles(),
            beside.count(),
            alone.percentiles(),
            alone.count()
        ),
        "",
    );
    table.at_most(
        "the p99 of it meanwhile against alone",
        p99_against(&beside, &alone),
        DELAY_RATIO_MAX,
        "",
    );
    // How much of the delay comes with busy processors alone, whatever they do.
    let busy: Vec<String> = busy
        .iter()
        .map(together)
        .map(|busy| format!("{:.2} ({})", p99_against(&busy, &alone), busy.percentiles()))
        .collect();
    table.add(
        "a control, the p99 of it against alone beside loops on 1 processor, on 2, …",
        busy.join("; "),
        "",
    );
    let each: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
    table.add(
        "the same of each round, and the median of them",
        format!("{}; {:.2}", each.join(" "), median(ratios)),
        "",
    );
    // What the machine does by itself: both are of the same work.
    if odd.count() > 0 {
        table.add(
            "the control, the p99 alone of every second round against that of the others",
            format!("{:.2}", p99_against(&even, &odd)),
            "",
        );
    }
}

/// The delays of several rounds.
fn together<'m>(rounds: impl IntoIterator<Item = &'m Measured>) -> Measured {
    Measured::new(1.0, rounds.into_iter().flat_map(|round| round.latencies.clone()).collect())
}

fn p99_against(measured: &Measured, other: &Measured) -> f64 {
    measured.milliseconds(99.0) / other.milliseconds(99.0)
}

/// Runs `work` while so many threads do nothing but count.
fn beside_loops<T>(loops_count: usize, work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..loops_count {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = work();
        is_over.store(true, Ordering::Relaxed);
        result
    })
}

/// Writes events and their deliveries into a database whose service is stopped.
fn emit(runtime: &Runtime, database: &Database, scope_code: i64, count: usize) {
    let url: PostgresUrl = PostgresUrl::parse(&database.url()).expect("the URL");
    runtime.block_on(async {
        let store = Store::connect(&url, Clock::System, 6).await.expect("the database");
        rows::emit_events(&store, Scope::from_code(scope_code), EVENT_TYPE, count).await;
        while database.value("SELECT COUNT(*) FROM outbox") != "0" {
            let sequenced = store.write(|tx, now| Ok(webhooks::sequencer::sequence(tx, now)?));
            sequenced.await.expect("events are sequenced");
        }
        store.close().await;
    });
}

/// Creates transfers of the other account at a set pace; answers the delays of their events, of
/// those alone that were answered before the backlog was drained, where there is one.
async fn timed(
    server: &Server,
    other: &Other,
    requests: Arc<Vec<Vec<u8>>>,
    drained_at: Option<&Mutex<Option<Instant>>>,
) -> Measured {
    let (count, warm_up_count) = (requests.len() as u64, requests.len() / WARM_UP_PART);
    let answers = Arc::new(Mutex::new(HashMap::new()));
    let keeping = answers.clone();
    let keep: load::OnAnswer = Arc::new(move |index, body, answered| {
        if index >= warm_up_count {
            keeping.lock().expect("the answers").insert(server::id_in(body), answered);
        }
    });
    other.arrivals.lock().expect("the arrivals").clear();
    let before = other.receiver.count();
    load::paced(server.address, 4, requests, OTHER_PER_SECOND, keep).await;
    assert!(other.receiver.wait_for(before + count, PATIENCE).await, "an event was not delivered");
    let mut answers = std::mem::take(&mut *answers.lock().expect("the answers"));
    if let Some(drained_at) = drained_at {
        let drained_at = *drained_at.lock().expect("the end");
        answers.retain(|_, answered| drained_at.is_none_or(|drained_at| *answered < drained_at));
    }
    deliveries::delays(&answers, &other.arrivals.lock().expect("the arrivals"))
}
