//! Webhook deliveries with storage against the same signed requests without, and the time from a
//! commit to its receiver.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hundi::kernel::{Clock, Scope};
use hundi::store::Store;
use tokio::runtime::Runtime;

use crate::Scale;
use crate::children;
use crate::load::{self, Measured};
use crate::machine::CpuSpan;
use crate::receiver::{self, OnDelivery, Receiver};
use crate::rows;
use crate::server::{self, Api, CONNECTIONS_COUNT, Folder, Parties, Server};
use crate::table::{Table, median};

/// Endpoints of the account; the service sends 8 at the same time to each.
pub const ENDPOINTS_COUNT: usize = 2;
const IN_FLIGHT: usize = 16;
/// How long a backlog may take at most.
const PATIENCE: Duration = Duration::from_secs(300);
/// The account that a first start makes, in test mode.
pub const SCOPE_CODE: i64 = 2;

/// What arrived, and when.
pub type Arrivals = Arc<Mutex<Vec<(String, Instant)>>>;

/// Keeps which object each delivery was about, and when it arrived.
pub fn keep_arrivals() -> (Arrivals, OnDelivery) {
    let arrivals = Arrivals::default();
    let keeping = arrivals.clone();
    let keep: OnDelivery = Arc::new(move |body, arrived| {
        if let Some(linked_id) = receiver::member(body, "linked_id") {
            keeping.lock().expect("the arrivals").push((linked_id, arrived));
        }
    });
    (arrivals, keep)
}

pub fn run(runtime: &Runtime, scale: &Scale, table: &mut Table) {
    let folder = Folder::new("deliveries");
    let database = folder.database("served");
    let (arrivals, keep) = keep_arrivals();
    let receiver = runtime.block_on(Receiver::start(keep));
    let (key, parties) = prepare(runtime, &database, &receiver);
    let drained = drain(runtime, scale, table, &database, &receiver);

    let per_second = median((0..scale.rounds).map(|_| {
        let url = receiver.url("/bare");
        let count = scale.deliveries / 2;
        let run = runtime.block_on(async {
            tokio::task::spawn_blocking(move || children::bare_deliveries(&url, count, IN_FLIGHT))
                .await
        });
        run.expect("the sender without storage").0
    }));
    table.add(
        &format!("the same signed requests without storage, {IN_FLIGHT} in flight"),
        format!("{per_second:.0}/s"),
        "",
    );
    table.at_least("deliveries with storage against without", drained.rate / per_second, 0.2);

    // What creations and their deliveries reach together: a load at which deliveries only just keep
    // up.
    let full = runtime.block_on(together(scale, &drained.server, &key, &parties, &receiver));
    table.add(
        "creations and their deliveries together, two endpoints",
        format!("{full:.0} creations/s, {:.0} deliveries/s", full * ENDPOINTS_COUNT as f64),
        "",
    );
    arrivals.lock().expect("the arrivals").clear();
    let creations_per_second = full / 2.0;
    let answers = runtime.block_on(half_load(
        scale,
        &drained.server,
        &key,
        &parties,
        creations_per_second,
        &receiver,
    ));
    let arrivals = arrivals.lock().expect("the arrivals");
    let delays = delays(&answers, &arrivals);
    let figure = format!(
        "{} ({} deliveries, {:.0}/s)",
        delays.percentiles(),
        delays.count(),
        creations_per_second * ENDPOINTS_COUNT as f64
    );
    let p99 = delays.milliseconds(99.0);
    table.add(
        "from the creation's answer to its receiver at half of that load",
        figure,
        &format!("p99 at most 50 ms: {}", if p99 <= 50.0 { "reached" } else { "missed" }),
    );
}

/// What the embedded store delivers in a second out of a backlog.
pub fn drained_per_second(runtime: &Runtime, scale: &Scale) -> f64 {
    let folder = Folder::new("deliveries-embedded");
    let database = folder.database("served");
    let receiver = runtime.block_on(Receiver::start(Arc::new(|_, _| {})));
    prepare(runtime, &database, &receiver);
    drain(runtime, scale, &mut Table::default(), &database, &receiver).rate
}

/// Makes parties and endpoints with a service that ends again.
fn prepare(runtime: &Runtime, database: &Path, receiver: &Receiver) -> (String, Parties) {
    let server = Server::start(database);
    let key = server::make_key(database, "default");
    let parties = runtime.block_on(async {
        let mut api = Api::new(server.address, &key).await;
        let parties = api.parties().await;
        for index in 0..ENDPOINTS_COUNT {
            api.endpoint(&receiver.url(&format!("/{index}")), &["transfer.status.funding"]).await;
        }
        parties
    });
    server.stop();
    (key, parties)
}

struct Drained {
    server: Server,
    rate: f64,
}

/// Writes a backlog into the stopped database, starts the service on it, and times the deliveries.
fn drain(
    runtime: &Runtime,
    scale: &Scale,
    table: &mut Table,
    database: &Path,
    receiver: &Receiver,
) -> Drained {
    let store = Store::open(database, Clock::System, hundi::webhooks::sequencer::sequence)
        .expect("the database of the backlog");
    runtime.block_on(rows::emit_events(
        &store,
        Scope::from_code(SCOPE_CODE),
        "transfer.status.funding",
        scale.deliveries / ENDPOINTS_COUNT,
    ));
    drop(store);
    let server = Server::start(database);
    let span = CpuSpan::start(server.process_id());
    let total = (scale.deliveries / ENDPOINTS_COUNT * ENDPOINTS_COUNT) as u64;
    let (seconds, memory) = runtime.block_on(async {
        let mut memory = Vec::new();
        assert!(receiver.wait_for(1, PATIENCE).await, "no delivery arrived");
        let started = Instant::now();
        for part in 1..=10 {
            assert!(
                receiver.wait_for(total * part / 10, PATIENCE).await,
                "the backlog was not delivered"
            );
            memory.push(server.resident_mebibytes());
        }
        (started.elapsed().as_secs_f64(), memory)
    });
    let cost = span.end();
    let rate = total as f64 / seconds;
    let figure = format!("{rate:.0}/s, {}", cost.of_each(total as usize));
    table.add(
        &format!("deliveries with storage, {IN_FLIGHT} in flight to {ENDPOINTS_COUNT} endpoints"),
        figure,
        "",
    );
    let memory_figure = format!(
        "{:.0} after a tenth, {:.0} half way, {:.0} at the end of {total} deliveries",
        memory[0], memory[4], memory[9]
    );
    table.add("memory of the service in MiB", memory_figure, "flat");
    Drained { server, rate }
}

/// Creates transfers as fast as they are answered; answers how many a second were created and
/// delivered.
async fn together(
    scale: &Scale,
    server: &Server,
    key: &str,
    parties: &Parties,
    receiver: &Receiver,
) -> f64 {
    let api = Api::new(server.address, key).await;
    let count = scale.creations / 2;
    let requests = api.creations(parties, count).await;
    let before = receiver.count();
    let started = Instant::now();
    load::paced(server.address, CONNECTIONS_COUNT, requests, 1e9, Arc::new(|_, _, _| {})).await;
    assert!(
        receiver.wait_for(before + (count * ENDPOINTS_COUNT) as u64, PATIENCE).await,
        "not every event was delivered"
    );
    count as f64 / started.elapsed().as_secs_f64()
}

/// Creates transfers at a set pace while their events are delivered; answers when each was
/// acknowledged.
async fn half_load(
    scale: &Scale,
    server: &Server,
    key: &str,
    parties: &Parties,
    per_second: f64,
    receiver: &Receiver,
) -> HashMap<String, Instant> {
    let api = Api::new(server.address, key).await;
    let count = (per_second * scale.seconds * 3.0) as usize;
    let requests = api.creations(parties, count).await;
    let answers = Arc::new(Mutex::new(HashMap::new()));
    let keeping = answers.clone();
    let keep: load::OnAnswer = Arc::new(move |_, body, answered| {
        keeping.lock().expect("the answers").insert(server::id_in(body), answered);
    });
    let before = receiver.count();
    load::paced(server.address, CONNECTIONS_COUNT, requests, per_second, keep).await;
    assert!(
        receiver.wait_for(before + (count * ENDPOINTS_COUNT) as u64, PATIENCE).await,
        "not every event was delivered"
    );
    std::mem::take(&mut *answers.lock().expect("the answers"))
}

/// From an acknowledgement to each arrival of its event; an arrival before the answer was read
/// counts as no delay.
pub fn delays(answers: &HashMap<String, Instant>, arrivals: &[(String, Instant)]) -> Measured {
    let delay = |(id, arrived): &(String, Instant)| {
        Some(arrived.saturating_duration_since(*answers.get(id)?).as_micros() as u32)
    };
    Measured::new(1.0, arrivals.iter().filter_map(delay).collect())
}
