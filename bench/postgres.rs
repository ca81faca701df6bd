//! Nodes on PostgreSQL: transfers created by one and several, against pgbench with the same
//! statements on the same server, against the embedded store, and on databases of different size.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::runtime::Runtime;

use crate::Scale;
use crate::cluster::{Cluster, Database, sql};
use crate::console::{self, Of};
use crate::load::{self, Measured, Until};
use crate::machine::{self, CpuSpan};
use crate::postgres_script::{self, Creation};
use crate::server::{self, Api, Folder, Parties, Server};
use crate::settled;
use crate::table::{Table, median};

/// Callers at the same time.
const CLIENTS: [usize; 4] = [1, 8, 32, 128];
/// Callers of the comparison by size.
const CLIENTS_OF_GROWTH: usize = 32;
const NODES: [usize; 3] = [1, 2, 4];
/// Connections of each node, so that all nodes together stay within what the server takes.
const CONNECTIONS_PER_NODE: &str = "24";
/// What the server is given: enough memory for the sizes that are compared, and a disk that is
/// waited for.
const SETTINGS: &[&str] = &[
    "fsync=on",
    "shared_buffers=2GB",
    "max_wal_size=8GB",
    "checkpoint_timeout=15min",
    // The statements of a creation are taken from the log.
    "log_min_messages=warning",
    "logging_collector=on",
    "log_destination=jsonlog",
    "log_filename=hundi.log",
    "log_file_mode=0644",
];
/// Rows that one statement fills in.
const FILLED_AT_ONCE: usize = 100_000;
/// Between the first identifiers of two runs, in milliseconds: they never meet.
const BASE_STEP: u64 = 1_000_000_000;

/// What every database of this section begins as: a copy of it has parties, a key, and the rows
/// that the statements refer to.
struct Seed {
    cluster: Cluster,
    database: Database,
    key: String,
    parties: Parties,
    creation: Creation,
    folder: Folder,
    runs_count: std::cell::Cell<u64>,
}

/// CPU in seconds, by who used it.
#[derive(Clone, Copy, Default)]
struct Cpu {
    postgres: f64,
    nodes: f64,
    /// Of the load generator, or of pgbench.
    load: f64,
}

impl Cpu {
    fn since(self, before: Cpu) -> Cpu {
        Cpu {
            postgres: self.postgres - before.postgres,
            nodes: self.nodes - before.nodes,
            load: self.load - before.load,
        }
    }
    /// Microseconds for one of `count`.
    fn of_each(self, count: usize) -> Cpu {
        let each = |seconds: f64| seconds * 1e6 / count.max(1) as f64;
        Cpu { postgres: each(self.postgres), nodes: each(self.nodes), load: each(self.load) }
    }
}

/// One measurement: transfers a second, and microseconds of CPU that each took.
#[derive(Clone, Copy)]
struct Run {
    rate: f64,
    milliseconds_p99: f64,
    cpu: Cpu,
}

impl Run {
    fn new(measured: &Measured, cpu: Cpu) -> Run {
        Run {
            rate: measured.rate(),
            milliseconds_p99: measured.milliseconds(99.0),
            cpu: cpu.of_each(measured.count()),
        }
    }
}

pub fn run(runtime: &Runtime, scale: &Scale, table: &mut Table) {
    if !is_installed() {
        table.add("PostgreSQL", "not installed", "");
        return;
    }
    let seed = prepare(runtime);
    let setting = |name: &str| seed.database.value(&format!("SHOW {name}"));
    let [version, fsync, commit] = ["server_version", "fsync", "synchronous_commit"].map(setting);
    assert!(
        fsync == "on" && commit == "on",
        "commits are not waited for: fsync {fsync}, synchronous_commit {commit}"
    );
    table.add(
        "PostgreSQL",
        format!(
            "{version}, on this machine; a creation is a transaction of {} statements",
            seed.creation.statements_count()
        ),
        "",
    );
    compare(runtime, scale, table, &seed);
    grow(runtime, scale, table, &seed);
}

fn now_milliseconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as u64)
}

fn prepare(runtime: &Runtime) -> Seed {
    let cluster = Cluster::start(SETTINGS);
    let folder = Folder::new("postgres");
    let database = Database::in_cluster(&cluster.url);
    let server = node(&database, &folder, &[]);
    let key = server::make_key_on(&database.url(), "default");
    let log = log_of(&cluster);
    let (parties, creation) = runtime.block_on(async {
        let mut api = Api::new(server.address, &key).await;
        let parties = api.parties().await;
        let mut transactions = Vec::new();
        // The first ones also prepare statements and reserve addresses.
        for index in 0..6 {
            let requests = api.creations(&parties, 1).await;
            server.calm().await;
            if index == 4 {
                sql(&cluster.url, "ALTER SYSTEM SET log_statement = 'all'");
                sql(&cluster.url, "SELECT pg_reload_conf()");
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            let before = std::fs::metadata(&log).map_or(0, |metadata| metadata.len());
            load::closed(server.address, 1, requests, Until::AllSent, load::ignore()).await;
            if index >= 4 {
                tokio::time::sleep(Duration::from_millis(500)).await;
                let text = std::fs::read(&log).expect("the server's log");
                let text = String::from_utf8_lossy(&text[before as usize..]).into_owned();
                transactions.push(postgres_script::transaction(&text, "INSERT INTO transfers "));
            }
        }
        let second = transactions.pop().expect("two creations");
        (parties, Creation::new(&transactions[0], second, now_milliseconds()))
    });
    sql(&cluster.url, "ALTER SYSTEM RESET log_statement");
    sql(&cluster.url, "SELECT pg_reload_conf()");
    server.stop();
    Seed { cluster, database, key, parties, creation, folder, runs_count: std::cell::Cell::new(1) }
}

fn log_of(cluster: &Cluster) -> PathBuf {
    cluster.places().0.join("log/hundi.json")
}

fn node(database: &Database, folder: &Folder, variables: &[(&str, &str)]) -> Server {
    let mut all = vec![("HUNDI_DATABASE_CONNECTIONS", CONNECTIONS_PER_NODE)];
    all.extend(variables);
    Server::start_on(&database.url(), &folder.0.join("nodes.log"), &all)
}

impl Seed {
    fn copy(&self) -> Database {
        Database::copy_of(&self.database.name, &self.cluster.url)
    }

    /// A database with so many transfers.
    fn filled(&self, size: usize) -> Database {
        let database = self.copy();
        let base = self.base();
        for from in (1..=size).step_by(FILLED_AT_ONCE) {
            let to = (from + FILLED_AT_ONCE - 1).min(size);
            let statements = self.creation.rows(base, from, to);
            statements.iter().for_each(|statement| drop(database.sql(statement)));
        }
        database.sql("VACUUM ANALYZE");
        database
    }

    /// A first identifier that no other run has.
    fn base(&self) -> u64 {
        let run = self.runs_count.get();
        self.runs_count.set(run + 1);
        self.creation.base + run * BASE_STEP
    }

    /// CPU of PostgreSQL so far, in seconds, with back ends that have ended.
    fn postgres_cpu_seconds(&self) -> f64 {
        let text = std::fs::read_to_string(self.cluster.places().0.join("postmaster.pid"))
            .unwrap_or_default();
        let process_id =
            text.lines().next().and_then(|line| line.parse().ok()).expect("the server's process");
        machine::family_cpu_seconds(process_id)
    }

    /// Runs pgbench with the statements of a creation.
    fn pgbench(&self, database: &Database, clients: usize, count: usize) -> Run {
        let base = self.base();
        let each = count.div_ceil(clients);
        database.sql(&self.creation.quote_locks(base, each, clients));
        sql(&self.cluster.url, "CHECKPOINT");
        let before = transfers_count(database);
        let script = self.folder.0.join("creation.sql");
        std::fs::write(&script, self.creation.script()).expect("the script");
        let (_, programs) = self.cluster.places();
        let own = std::process::id();
        let (postgres_before, load_before) =
            (self.postgres_cpu_seconds(), machine::waited_cpu_seconds(own));
        let output = Command::new(programs.join("pgbench"))
            .args([
                "-n",
                "-M",
                "prepared",
                "-c",
                &clients.to_string(),
                "-j",
                &clients.min(2).to_string(),
                "-t",
                &each.to_string(),
            ])
            .args(["-D", &format!("base={base}"), "-D", "n=0", "-f"])
            .arg(&script)
            .arg(database.url())
            .output()
            .expect("pgbench runs");
        let postgres = self.postgres_cpu_seconds() - postgres_before;
        let load = machine::waited_cpu_seconds(own) - load_before;
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(output.status.success(), "pgbench: {text}");
        assert_eq!(
            transfers_count(database) - before,
            (each * clients) as u64,
            "pgbench did not do what it was to: {text}"
        );
        let rate = text
            .lines()
            .find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse::<f64>().ok());
        let rate = rate.unwrap_or_else(|| panic!("pgbench told no rate: {text}"));
        Run {
            rate,
            milliseconds_p99: 0.0,
            cpu: Cpu { postgres, load, nodes: 0.0 }.of_each(each * clients),
        }
    }

    /// Transfers created over HTTP, with the connections spread over the nodes.
    async fn create(&self, servers: &[Server], clients: usize, count: usize) -> Run {
        let addresses: Vec<SocketAddr> = servers.iter().map(|server| server.address).collect();
        let api = Api::new(addresses[0], &self.key).await;
        let requests = api.creations(&self.parties, count).await;
        for server in servers {
            server.calm().await;
        }
        sql(&self.cluster.url, "CHECKPOINT");
        let used = || {
            let nodes =
                servers.iter().map(|server| machine::cpu_seconds(server.process_id())).sum();
            Cpu {
                postgres: self.postgres_cpu_seconds(),
                load: machine::cpu_seconds(std::process::id()),
                nodes,
            }
        };
        let before = used();
        let measured =
            load::closed_over(&addresses, clients, requests, Until::AllSent, load::ignore()).await;
        Run::new(&measured, used().since(before))
    }
}

fn transfers_count(database: &Database) -> u64 {
    database.value("SELECT COUNT(*) FROM transfers").parse().expect("a count")
}

/// Creations of one measurement: few where they come one after the other.
fn count_of(scale: &Scale, clients: usize) -> usize {
    scale.creations / if clients == 1 { 24 } else { 6 }
}

fn compare(runtime: &Runtime, scale: &Scale, table: &mut Table, seed: &Seed) {
    let mut pgbench: [Vec<Run>; 4] = Default::default();
    let mut embedded: [Vec<Run>; 4] = Default::default();
    let mut nodes: [[Vec<Run>; 4]; 3] = Default::default();
    let sqlite = seed.folder.database("embedded");
    let sqlite_server = Server::start(&sqlite);
    let sqlite_key = server::make_key(&sqlite, "default");
    let sqlite_parties = runtime
        .block_on(async { Api::new(sqlite_server.address, &sqlite_key).await.parties().await });
    for _ in 0..scale.rounds {
        // A database of its own for each, so that none works on what another left.
        let database = seed.copy();
        for (runs, clients) in pgbench.iter_mut().zip(CLIENTS) {
            runs.push(seed.pgbench(&database, clients, count_of(scale, clients)));
        }
        drop(database);
        for (runs, clients) in embedded.iter_mut().zip(CLIENTS) {
            runs.push(runtime.block_on(async {
                let api = Api::new(sqlite_server.address, &sqlite_key).await;
                let requests = api.creations(&sqlite_parties, count_of(scale, clients)).await;
                sqlite_server.calm().await;
                let span = CpuSpan::start(sqlite_server.process_id());
                let measured = load::closed(
                    sqlite_server.address,
                    clients,
                    requests,
                    Until::AllSent,
                    load::ignore(),
                )
                .await;
                let cost = span.end();
                Run::new(
                    &measured,
                    Cpu { postgres: 0.0, nodes: cost.server_seconds, load: cost.load_seconds },
                )
            }));
        }
        for (runs_of, nodes_count) in nodes.iter_mut().zip(NODES) {
            let database = seed.copy();
            let servers: Vec<Server> =
                (0..nodes_count).map(|_| node(&database, &seed.folder, &[])).collect();
            // Connections are made and statements prepared.
            runtime.block_on(seed.create(&servers, 32, scale.creations / 24));
            for (runs, clients) in runs_of.iter_mut().zip(CLIENTS) {
                if clients >= nodes_count {
                    runs.push(runtime.block_on(seed.create(
                        &servers,
                        clients,
                        count_of(scale, clients),
                    )));
                }
            }
            servers.into_iter().for_each(Server::stop);
        }
    }
    sqlite_server.stop();
    tell(table, &pgbench, &embedded, &nodes);
}

fn middle(runs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    median(runs.iter().map(of))
}

fn tell(
    table: &mut Table,
    pgbench: &[Vec<Run>; 4],
    embedded: &[Vec<Run>; 4],
    nodes: &[[Vec<Run>; 4]; 3],
) {
    let clients = CLIENTS.map(|count| count.to_string()).join(" / ");
    let each = |runs_of: &[Vec<Run>; 4], shown: &dyn Fn(&[Run]) -> String| {
        let figures: Vec<String> = runs_of
            .iter()
            .map(|runs| if runs.is_empty() { "–".to_owned() } else { shown(runs) })
            .collect();
        figures.join(" / ")
    };
    let rate = |runs: &[Run]| format!("{:.0}", middle(runs, |run| run.rate));
    let rate_p99 = |runs: &[Run]| {
        format!("{} (p99 {:.0} ms)", rate(runs), middle(runs, |run| run.milliseconds_p99))
    };
    let cpu = |runs: &[Run]| {
        let middles = [
            middle(runs, |run| run.cpu.postgres),
            middle(runs, |run| run.cpu.nodes),
            middle(runs, |run| run.cpu.load),
        ];
        middles.map(|microseconds| format!("{microseconds:.0}")).join(" + ")
    };
    table.add(
        &format!("pgbench with the same statements, {clients} clients"),
        format!("{} a second", each(pgbench, &rate)),
        "",
    );
    table.add("CPU of each, µs: PostgreSQL + 0 + pgbench", each(pgbench, &cpu), "");
    table.add(
        &format!("create on the embedded store, {clients} connections"),
        format!("{} a second", each(embedded, &rate_p99)),
        "",
    );
    table.add("CPU of each, µs: 0 + node + load", each(embedded, &cpu), "");
    for (runs, count) in nodes.iter().zip(NODES) {
        let what = if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") };
        table.add(
            &format!("create on PostgreSQL, {what}, {clients} connections"),
            format!("{} a second", each(runs, &rate_p99)),
            "",
        );
        table.add("CPU of each, µs: PostgreSQL + nodes + load", each(runs, &cpu), "");
    }
    for (index, clients) in CLIENTS.iter().enumerate() {
        let ratio = middle(&nodes[0][index], |run| run.rate)
            / middle(&pgbench[index], |run| run.rate).max(1e-9);
        table.at_least(&format!("one node against pgbench, {clients} clients"), ratio, 0.7);
    }
    let best = |runs_of: &[Vec<Run>; 4]| {
        runs_of.iter().map(|runs| middle(runs, |run| run.rate)).fold(0.0, f64::max)
    };
    table.at_least(
        "one node against pgbench, each at its best",
        best(&nodes[0]) / best(pgbench).max(1e-9),
        0.7,
    );
}

/// A database of one size, and what was measured on it.
struct Level {
    size: usize,
    database: Database,
    creations: Vec<f64>,
    gets: Vec<f64>,
    pages: Vec<f64>,
    bytes: f64,
}

fn bytes_of(database: &Database) -> f64 {
    database.value("SELECT pg_database_size(current_database())").parse().expect("a size")
}

fn grow(runtime: &Runtime, scale: &Scale, table: &mut Table, seed: &Seed) {
    let bytes_at_first = bytes_of(&seed.database);
    let mut levels: Vec<Level> = scale
        .growth
        .iter()
        .map(|size| {
            eprintln!("  filling {size} …");
            let database = seed.filled(*size);
            let bytes = bytes_of(&database) - bytes_at_first;
            Level {
                size: *size,
                database,
                creations: Vec::new(),
                gets: Vec::new(),
                pages: Vec::new(),
                bytes: bytes / *size as f64,
            }
        })
        .collect();
    sql(&seed.cluster.url, "CHECKPOINT");
    let count = scale.growth_creations / 2;
    for round in 0..scale.rounds {
        let levels_count = levels.len();
        for turn in 0..levels_count {
            let level = &mut levels[(turn + round) % levels_count];
            let servers = [node(&level.database, &seed.folder, &[])];
            runtime.block_on(async {
                let address = servers[0].address;
                seed.create(&servers, CLIENTS_OF_GROWTH, count / 8).await;
                level.creations.push(seed.create(&servers, CLIENTS_OF_GROWTH, count).await.rate);
                servers[0].calm().await;
                // Spread over all that is stored.
                let ids = spread(&level.database, level.size);
                let requests = |count: usize, path: &dyn Fn(&str) -> String| {
                    let paths = (0..count).map(|index| {
                        load::get_request(&path(&ids[index * 7 % ids.len()]), &seed.key)
                    });
                    std::sync::Arc::new(paths.collect::<Vec<_>>())
                };
                let gets = requests(count * 2, &|id| format!("/v1/transfers/{id}"));
                let pages = requests(count / 2, &|id| {
                    format!("/v1/transfers?limit=10&starting_after={id}")
                });
                for (rates, requests) in [(&mut level.gets, gets), (&mut level.pages, pages)] {
                    rates.push(
                        load::closed(
                            address,
                            CLIENTS_OF_GROWTH,
                            requests,
                            Until::AllSent,
                            load::ignore(),
                        )
                        .await
                        .rate(),
                    );
                }
            });
            servers.into_iter().for_each(Server::stop);
        }
    }
    let sizes = levels.iter().map(|level| level.size.to_string()).collect::<Vec<_>>().join(" / ");
    let figures: [(&str, fn(&Level) -> &Vec<f64>); 3] = [
        ("create", |level| &level.creations),
        ("get by id", |level| &level.gets),
        ("list page of 10", |level| &level.pages),
    ];
    for (what, rates_of) in figures {
        let rates: Vec<f64> =
            levels.iter().map(|level| median(rates_of(level).iter().copied())).collect();
        let shown = rates.iter().map(|rate| format!("{rate:.0}/s")).collect::<Vec<_>>().join(" / ");
        let growth =
            rates.first().copied().unwrap_or(0.0) / rates.last().copied().unwrap_or(1.0).max(1e-9);
        table.at_most(
            &format!("{what} on PostgreSQL: cost at {sizes} stored, last to first"),
            growth,
            1.3,
            &format!(" ({shown})"),
        );
    }
    let bytes =
        levels.iter().map(|level| format!("{:.0}", level.bytes)).collect::<Vec<_>>().join(" / ");
    table.add(
        "bytes stored for a transfer on PostgreSQL, with its quote lock and stored answer",
        bytes,
        "",
    );
}

/// Transfers from all of a database.
fn spread(database: &Database, size: usize) -> Vec<String> {
    let step = (size / 500).max(1);
    let hex = database.sql(&format!(
        "SELECT encode(id, 'hex') FROM (SELECT id, row_number() OVER (ORDER BY id) AS place FROM \
         transfers) AS placed WHERE place % {step} = 0 LIMIT 500"
    ));
    hex.into_iter().flatten().map(|hex| transfer_id(&hex)).collect()
}

/// Measures the console over so many transfers on a PostgreSQL of its own.
pub fn with_filled(
    runtime: &Runtime,
    table: &mut Table,
    size: usize,
    measure: impl FnOnce(Of, Server, &mut Table),
) {
    if !is_installed() {
        table.add("PostgreSQL", "not installed", "");
        return;
    }
    let seed = prepare(runtime);
    eprintln!("  filling {size} on PostgreSQL …");
    let database = seed.filled(size);
    sql(&seed.cluster.url, "CHECKPOINT");
    let server = node(&database, &seed.folder, &[console::LISTEN]);
    runtime.block_on(async {
        settled::pay_one(&mut Api::new(server.address, &seed.key).await).await;
    });
    settled::settle_on_postgres(&database, size);
    let ids = spread(&database, size);
    let (store, url) = ("PostgreSQL", database.url());
    let of = Of { store, size, url, key: seed.key, parties: seed.parties, ids };
    measure(of, server, table);
}

fn is_installed() -> bool {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/postgres/install.sh");
    Command::new(script).status().is_ok_and(|status| status.success())
}

/// An identifier as the API writes it.
fn transfer_id(hex: &str) -> String {
    use hundi::kernel::{Id, id::kind};
    let bytes: Vec<u8> = (0..hex.len() / 2)
        .filter_map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).ok())
        .collect();
    Id::<kind::Transfer>::from_bytes(&bytes).expect("an identifier").to_string()
}
