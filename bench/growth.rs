//! How cost grows with what is stored: services on databases of different size take turns.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hundi::kernel::id::kind;
use hundi::kernel::{Clock, Id, Scope};
use hundi::store::Store;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::runtime::Runtime;

use crate::Scale;
use crate::deliveries::SCOPE_CODE;
use crate::load::{self, Until};
use crate::machine::{self, CpuSpan};
use crate::receiver::Receiver;
use crate::rows::{self, Template};
use crate::server::{self, Api, CONNECTIONS_COUNT, Folder, Parties, Server};
use crate::table::{Table, median};

/// A database so small that a round would change its size is put back before each round.
const RESET_SIZE_MAX: usize = 10_000;
/// What the endpoints take: an event that creations do not emit, so that the figures do not mix.
const EVENT_TYPE: &str = "payout.status.settled";
const ENDPOINTS_COUNT: usize = 2;
const PATIENCE: Duration = Duration::from_secs(60);

const PAGE_BYTES: f64 = 4096.0;

const FIGURES: [&str; 4] = ["create", "get by id", "list page of 10", "delivery"];

/// One size, with its service and what it measured: operations a second by figure and round.
struct Level {
    size: usize,
    database: PathBuf,
    pristine: PathBuf,
    running: Option<Running>,
    transfers: Vec<Id<kind::Transfer>>,
    rates: [Vec<f64>; 4],
    efforts: Vec<Effort>,
    bytes: f64,
    memory: f64,
}

/// What one creation took of the machine, on average over a round. Other work on the machine
/// changes neither the pages nor, by much, the CPU time.
#[derive(Clone, Copy, Default)]
struct Effort {
    pages_read: f64,
    pages_written: f64,
    cpu_microseconds: f64,
    /// Not an average: what all but one of a hundred stayed below.
    latency_milliseconds_p99: f64,
}

struct Running {
    server: Server,
    /// Writes events beside the service.
    store: Store,
}

/// What all sizes have in common.
struct Common {
    key: String,
    parties: Parties,
    receiver: Receiver,
}

pub fn run(runtime: &Runtime, scale: &Scale, table: &mut Table) {
    let folder = Folder::new("growth");
    let seed = folder.database("seed");
    let receiver = runtime.block_on(Receiver::start(Arc::new(|_, _| {})));
    let (common, endpoints) = prepare(runtime, &seed, receiver);
    let template = template(&common.parties, server::newest_answer_bytes(&seed));
    let mut levels: Vec<Level> = scale
        .growth
        .iter()
        .map(|size| {
            eprintln!("  filling {size} …");
            let database = folder.database(&size.to_string());
            std::fs::copy(&seed, &database).expect("a copy of the seed");
            let filling = rows::fill(&database, &template, &endpoints, *size);
            let bytes = server::stored_bytes(&database) as f64 / *size as f64;
            let pristine = folder.database(&format!("{size}-pristine"));
            if *size <= RESET_SIZE_MAX {
                std::fs::copy(&database, &pristine).expect("a copy to begin each round with");
            }
            Level {
                size: *size,
                database,
                pristine,
                running: None,
                transfers: filling.transfers,
                rates: Default::default(),
                efforts: Vec::new(),
                bytes,
                memory: 0.0,
            }
        })
        .collect();
    let mut random = StdRng::seed_from_u64(1);
    // The first round only warms up.
    for round in 0..=scale.growth_rounds {
        let count = levels.len();
        for turn in 0..count {
            let level = &mut levels[(turn + round) % count];
            level.begin_round();
            let (rates, effort) = runtime.block_on(level.measure(scale, &common, &mut random));
            if round > 0 {
                level.efforts.push(effort);
                level.rates.iter_mut().zip(rates).for_each(|(kept, rate)| kept.push(rate));
            }
        }
    }
    tell(table, &levels);
}

fn prepare(
    runtime: &Runtime,
    seed: &std::path::Path,
    receiver: Receiver,
) -> (Common, Vec<Id<kind::WebhookEndpoint>>) {
    let server = Server::start(seed);
    let key = server::make_key(seed, "default");
    let (parties, endpoints) = runtime.block_on(async {
        let mut api = Api::new(server.address, &key).await;
        let parties = api.parties().await;
        let mut endpoints = Vec::new();
        for index in 0..ENDPOINTS_COUNT {
            let id = api.endpoint(&receiver.url(&format!("/{index}")), &[EVENT_TYPE]).await;
            endpoints.push(Id::parse(&id).expect("an endpoint's identifier"));
        }
        let creation = api.creations(&parties, 1).await;
        load::closed(server.address, 1, creation, Until::AllSent, load::ignore()).await;
        (parties, endpoints)
    });
    server.stop();
    server::stored_bytes(seed);
    (Common { key, parties, receiver }, endpoints)
}

/// What the databases are filled with: answers as long as the service keeps them.
pub fn template(parties: &Parties, answer_bytes: usize) -> Template {
    Template {
        scope: Scope::from_code(SCOPE_CODE),
        senders: parties
            .senders
            .iter()
            .map(|id| Id::parse(id).expect("a sender's identifier"))
            .collect(),
        beneficiaries: parties
            .beneficiaries
            .iter()
            .map(|id| Id::parse(id).expect("a beneficiary's identifier"))
            .collect(),
        answer: vec![b'x'; answer_bytes],
    }
}

impl Level {
    fn begin_round(&mut self) {
        if self.running.is_some() && self.size <= RESET_SIZE_MAX {
            let running = self.running.take();
            if let Some(running) = running {
                running.server.stop();
            }
            for suffix in ["-wal", "-shm"] {
                let _ = std::fs::remove_file(format!("{}{suffix}", self.database.display()));
            }
            std::fs::copy(&self.pristine, &self.database).expect("the database as it was");
        }
        if self.running.is_none() {
            let server = Server::start(&self.database);
            let store =
                Store::open(&self.database, Clock::System, hundi::webhooks::sequencer::sequence)
                    .expect("the database beside its service");
            self.running = Some(Running { server, store });
            // Time for the shelf of deposit addresses to fill.
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    async fn measure(
        &mut self,
        scale: &Scale,
        common: &Common,
        random: &mut StdRng,
    ) -> ([f64; 4], Effort) {
        let Some(Running { server, store }) = &self.running else { return Default::default() };
        let api = Api::new(server.address, &common.key).await;
        let mut paths = |count: usize, path: &dyn Fn(String) -> String| -> Arc<Vec<Vec<u8>>> {
            let mut pick =
                || self.transfers[random.random_range(0..self.transfers.len())].to_string();
            Arc::new((0..count).map(|_| load::get_request(&path(pick()), &common.key)).collect())
        };
        let gets = paths(scale.growth_creations * 2, &|id| format!("/v1/transfers/{id}"));
        let list_pages = paths(scale.growth_creations / 4, &|id| {
            format!("/v1/transfers?limit=10&starting_after={id}")
        });
        let creations = api.creations(&common.parties, scale.growth_creations).await;
        let mut rates = [0.0; 4];
        // Addresses are derived ahead, in batches that last a minute: that is nothing of what is
        // timed next.
        server.calm().await;
        let (bytes_before, cpu) =
            (machine::file_bytes(server.process_id()), CpuSpan::start(server.process_id()));
        let created = load::closed(
            server.address,
            CONNECTIONS_COUNT,
            creations,
            Until::AllSent,
            load::ignore(),
        )
        .await;
        let (bytes_after, cpu) = (machine::file_bytes(server.process_id()), cpu.end());
        let pages = |index: usize| {
            (bytes_after[index] - bytes_before[index]) / PAGE_BYTES / created.count().max(1) as f64
        };
        let effort = Effort {
            pages_read: pages(0),
            pages_written: pages(1),
            cpu_microseconds: cpu.server_seconds * 1e6 / created.count().max(1) as f64,
            latency_milliseconds_p99: created.milliseconds(99.0),
        };
        rates[0] = created.rate();
        for (rate, requests) in rates[1..].iter_mut().zip([gets, list_pages]) {
            server.calm().await;
            *rate = load::closed(
                server.address,
                CONNECTIONS_COUNT,
                requests,
                Until::AllSent,
                load::ignore(),
            )
            .await
            .rate();
        }
        rates[3] = deliver(store, &common.receiver, scale.growth_creations / 2).await;
        self.memory = server.resident_mebibytes();
        (rates, effort)
    }
}

/// Writes events beside the service and times how fast it delivers them.
async fn deliver(store: &Store, receiver: &Receiver, events_count: usize) -> f64 {
    let before = receiver.count();
    let total = (events_count * ENDPOINTS_COUNT) as u64;
    rows::emit_events(store, Scope::from_code(SCOPE_CODE), EVENT_TYPE, events_count).await;
    // What the service sent while the events were still being written does not count.
    let first = receiver.count() - before;
    let first = first.max(1);
    assert!(receiver.wait_for(before + first, PATIENCE).await, "no delivery arrived");
    let started = Instant::now();
    assert!(receiver.wait_for(before + total, PATIENCE).await, "not every event was delivered");
    (total - first) as f64 / started.elapsed().as_secs_f64()
}

fn tell(table: &mut Table, levels: &[Level]) {
    let sizes = levels.iter().map(|level| level.size.to_string()).collect::<Vec<_>>().join(" / ");
    for (index, figure) in FIGURES.iter().enumerate() {
        let rates: Vec<f64> =
            levels.iter().map(|level| median(level.rates[index].iter().copied())).collect();
        let shown = rates.iter().map(|rate| format!("{rate:.0}/s")).collect::<Vec<_>>().join(" / ");
        let growth =
            rates.first().copied().unwrap_or(0.0) / rates.last().copied().unwrap_or(1.0).max(1e-9);
        table.at_most(
            &format!("{figure}: cost at {sizes} stored, last to first"),
            growth,
            1.3,
            &format!(" ({shown})"),
        );
    }
    let each = |value: fn(&Level) -> f64| {
        levels.iter().map(|level| format!("{:.0}", value(level))).collect::<Vec<_>>().join(" / ")
    };
    let efforts: [(&str, fn(&Effort) -> f64); 4] = [
        ("page operations of a creation: pages read", |effort| effort.pages_read),
        ("page operations of a creation: pages written, to the log and the file", |effort| {
            effort.pages_written
        }),
        ("CPU of a creation in microseconds", |effort| effort.cpu_microseconds),
        ("creation: p99 in milliseconds", |effort| effort.latency_milliseconds_p99),
    ];
    for (what, value) in efforts {
        let middle = |level: &Level| format!("{:.2}", median(level.efforts.iter().map(value)));
        table.add(what, levels.iter().map(middle).collect::<Vec<_>>().join(" / "), "");
    }
    table.add("bytes stored for a transfer, with a delivery", each(|level| level.bytes), "");
    if let Some(level) =
        levels.iter().filter(|level| level.size <= 100_000).max_by_key(|level| level.size)
    {
        table.add(
            "the same by table with indexes",
            rows::bytes_by_table(&level.database, level.size),
            "",
        );
    }
    table.add("memory of the service in MiB", each(|level| level.memory), "");
}
