//! Rows past their time leave while requests go on, nobody waits for their going, and the tables
//! they leave do not grow without end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use hundi::app::{self, App, KeyRequest};
use hundi::config::{Config, Flags};
use hundi::http::server;
use hundi::kernel::{Clock, Mode};
use hundi::keys::Permissions;
use hundi::workers::housekeeping::Purger;
use tokio::sync::watch;

use crate::support::load::{Load, Writer};
use crate::support::postgres::{Cluster, Database, ENCRYPTION_KEY};
use crate::support::random::{number, seed};
use crate::support::{Client, Receiver, until};

const WRITERS_COUNT: usize = 8;
/// How many payments each round makes, so that rounds write about as much as each other however
/// fast the machine is, and how long they may take.
const ROUND_PAYMENTS: usize = 24;
const ROUND_MAX: Duration = Duration::from_secs(60);
/// Between two rounds everything that is kept for a time is past it: events are kept for 30 days.
const BETWEEN_ROUNDS_MILLISECONDS: i64 = 31 * 24 * 3600 * 1000;
/// Tables whose rows leave after their time.
const PURGED: [&str; 5] =
    ["events", "webhook_deliveries", "webhook_attempts", "idempotency_answers", "idempotency_keys"];
/// Tables whose rows come and go, or change with every request.
const CHURNED: [&str; 5] = ["outbox", "tasks", "webhook_queues", "leases", "ledger_balances"];
/// What tables may grow to, against their size after the second round. Rounds write different
/// numbers of rows.
const GROWTH_MAX: f64 = 2.0;

/// The settings that docs/postgresql.md gives to tables that churn.
fn documented_settings() -> String {
    let text = include_str!("../../docs/postgresql.md");
    let start = text.find("ALTER TABLE outbox SET").expect("the settings in docs/postgresql.md");
    text[start..].split("```").next().unwrap_or_default().to_owned()
}

/// What one round left.
#[derive(Debug)]
struct Round {
    bytes: BTreeMap<String, i64>,
    slowest: Duration,
    purge_slowest: Duration,
    purges_count: u64,
    /// The statements of sessions that were seen waiting for one that removes rows past their time.
    waits: BTreeSet<String>,
}

fn rounds(count: u64, purges: bool) -> Vec<Round> {
    let cluster = Cluster::start(&["autovacuum_naptime=1s"]);
    let database = Database::in_cluster(&cluster.url);
    let clock = Arc::new(AtomicI64::new(1_790_000_000_000));
    let variables = [
        ("HUNDI_ENCRYPTION_KEY", ENCRYPTION_KEY),
        ("HUNDI_RATE_LIMIT_READS", "0"),
        ("HUNDI_RATE_LIMIT_WRITES", "0"),
        ("HUNDI_SIMULATION_STEP_MILLISECONDS", "5"),
    ];
    let environment = |name: &str| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    let flags = Flags {
        database: Some(database.url()),
        listen: Some("127.0.0.1:0".into()),
        ..Flags::default()
    };
    let config = Config::read(&flags, &environment).expect("a configuration");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let app =
        runtime.block_on(App::open(&config, Clock::Manual(clock.clone()))).expect("the service");
    let (listener, address) = runtime.block_on(server::bind(&config.listen)).expect("a port");
    let (stop, stopping) = watch::channel(false);
    let running = runtime.spawn(app.clone().run(listener, stopping));
    database.sql(&documented_settings());
    let request = KeyRequest {
        account: "default".into(),
        mode: Mode::Test,
        permissions: Permissions::All,
        expires_at: None,
    };
    let made = app.state.store.write(move |tx, now| Ok(app::create_key(tx, now, &request)?));
    let api_key = runtime.block_on(made).expect("a key");
    let receiver = Receiver::start();
    receiver.register(&mut Client::new(address, &api_key));

    let mut seen = Vec::new();
    for index in 0..count {
        seen.push(round(
            &database,
            &app,
            &runtime,
            &clock,
            address,
            &api_key,
            purges,
            seed("HUNDI_POSTGRES_SEED") ^ index,
        ));
        let Round { bytes, slowest, purge_slowest, purges_count, waits } =
            seen.last().expect("a round");
        let shown: Vec<String> =
            bytes.iter().map(|(table, bytes)| format!("{table} {}", bytes / 1024)).collect();
        println!(
            "round {index}: slowest request {slowest:?}, {purges_count} purges of \
             {purge_slowest:?} at most, {} waits; KiB: {}",
            waits.len(),
            shown.join(", ")
        );
        clock.fetch_add(BETWEEN_ROUNDS_MILLISECONDS, Ordering::SeqCst);
    }
    let _ = stop.send(true);
    let _ = runtime.block_on(running);
    seen
}

#[allow(clippy::too_many_arguments, reason = "what a round has in common with the others")]
fn round(
    database: &Database,
    app: &Arc<App>,
    runtime: &tokio::runtime::Runtime,
    clock: &AtomicI64,
    address: std::net::SocketAddr,
    api_key: &str,
    purges: bool,
    seed: u64,
) -> Round {
    let load = Load::default();
    let is_over = AtomicBool::new(false);
    let (mut purge_slowest, mut purges_count) = (Duration::ZERO, 0);
    let mut purger = Purger::default();
    let (slowest, waits) = std::thread::scope(|scope| {
        let (load, is_over) = (&load, &is_over);
        let writers: Vec<_> = (0..WRITERS_COUNT)
            .map(|index| {
                let writer =
                    Writer::new(load, seed ^ (index as u64 + 1) << 32, &[address], api_key);
                scope.spawn(move || writer.run())
            })
            .collect();
        // The clock goes on while the round does.
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(10));
                clock.fetch_add(10, Ordering::SeqCst);
            }
        });
        let waiting = scope.spawn(move || {
            let mut waits = BTreeSet::new();
            while !is_over.load(Ordering::Relaxed) {
                waits.extend(wait_for_a_purge(database));
                std::thread::sleep(Duration::from_millis(20));
            }
            waits
        });
        let started = Instant::now();
        while load.payments_count() < ROUND_PAYMENTS && started.elapsed() < ROUND_MAX {
            if purges {
                let began = Instant::now();
                runtime.block_on(purger.run_once(&app.state));
                purge_slowest = purge_slowest.max(began.elapsed());
                purges_count += 1;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        load.end();
        let journals: Vec<_> =
            writers.into_iter().map(|writer| writer.join().expect("a writer")).collect();
        database.until_sequenced();
        is_over.store(true, Ordering::Relaxed);
        (
            journals.iter().map(|journal| journal.slowest).max().unwrap_or_default(),
            waiting.join().expect("the one who watches"),
        )
    });
    // What is past its time has gone by now; let vacuum see it.
    while purges && runtime.block_on(purger.run_once(&app.state)) {}
    std::thread::sleep(Duration::from_millis(2_500));
    let size = |table: &str| {
        database
            .value(&format!("SELECT pg_total_relation_size('{table}')"))
            .parse()
            .expect("a size")
    };
    let bytes =
        PURGED.iter().chain(&CHURNED).map(|table| ((*table).to_owned(), size(table))).collect();
    Round { bytes, slowest, purge_slowest, purges_count, waits }
}

/// The statement of a session that waits for a purge, and the purge's. Rows of other tables go
/// because their work is done. Purges that wait for each other, the test's and the service's own,
/// hold up nobody else. Neither does the worker that ends the deliveries of an endpoint that it
/// disables: after a round's leap of a month an attempt that began before it has failed for a
/// month. Nor does the one that writes checkpoints of events, which takes turns with the purge of
/// the same account's.
///
/// It looks twice, and takes only what it saw both times. What sessions do is read first, and then
/// who waits for whom: on a busy machine a purge's session may do something else by then.
fn wait_for_a_purge(database: &Database) -> Option<String> {
    let purges = format!("'^DELETE FROM ({}) '", PURGED.join("|"));
    let look = format!(
        "SELECT w.query || ' waits for ' || b.query, b.pid, b.query_start FROM pg_stat_activity \
         w, LATERAL unnest(pg_blocking_pids(w.pid)) AS blocker \
         JOIN pg_stat_activity b ON b.pid = blocker WHERE w.wait_event_type = 'Lock' AND b.query \
         ~ {purges} AND w.query !~ {purges} \
         AND w.query NOT LIKE 'UPDATE webhook_deliveries SET status = %' \
         AND w.query NOT LIKE 'UPDATE accounts SET suspended = suspended %' \
         ORDER BY w.pid, b.pid LIMIT 1"
    );
    // A transaction keeps what it has read of the sessions, so each look has its own.
    let seen = database.sql(&format!("BEGIN; {look}; COMMIT; BEGIN; {look}; COMMIT"));
    match &seen[..] {
        [first, second] if first == second => first.first().cloned(),
        _ => None,
    }
}

/// By what these tables together grew from the second round to the last.
fn growth(seen: &[Round], tables: &[&str]) -> f64 {
    let size = |round: &Round| tables.iter().map(|table| round.bytes[*table]).sum::<i64>() as f64;
    size(seen.last().expect("a round")) / size(&seen[1])
}

#[test]
fn purged_tables_do_not_grow_without_end() {
    let seen = rounds(number("HUNDI_POSTGRES_GROWTH_ROUNDS", 7), true);
    let waits: Vec<&String> = seen.iter().flat_map(|round| &round.waits).collect();
    assert!(waits.is_empty(), "somebody waited for rows to be removed: {waits:?}");
    let slowest = seen.iter().map(|round| round.slowest).max().unwrap_or_default();
    assert!(slowest < Duration::from_secs(2), "a request was waited for {slowest:?}");
    for tables in [PURGED, CHURNED] {
        let factor = growth(&seen, &tables);
        assert!(factor <= GROWTH_MAX, "{tables:?} grew to {factor:.1} times their size");
    }
}

/// What watches for waits sees one, and takes a purge's for none.
#[test]
fn a_wait_for_a_purge_is_found_out() {
    let database = Database::fresh();
    database.sql("CREATE TABLE events (id INT)");
    let until_somebody = |waits_for: &str| {
        let sql = format!(
            "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND \
             {waits_for}"
        );
        until(waits_for, Duration::from_secs(10), || (database.value(&sql) == "1").then_some(()));
    };
    for (waits, is_found) in
        [("UPDATE events SET id = 2", true), ("DELETE FROM events WHERE id = 1", false)]
    {
        database.sql("INSERT INTO events VALUES (1)");
        std::thread::scope(|scope| {
            scope.spawn(|| database.sql("DELETE FROM events RETURNING pg_sleep(2)"));
            until_somebody("wait_event = 'PgSleep'");
            scope.spawn(|| database.sql(waits));
            until_somebody("wait_event_type = 'Lock'");
            let seen = wait_for_a_purge(&database);
            assert_eq!(seen.is_some(), is_found, "{waits}: {seen:?}");
        });
    }
}

/// The same without a purge: the tables grow, and the test sees it.
#[test]
fn tables_that_nobody_purges_are_found_out() {
    // More rounds than above, and a second try: how much a round writes differs from run to run,
    // and what it stands against is only the second round.
    let has_grown = (0..2).any(|_| growth(&rounds(12, false), &PURGED) > GROWTH_MAX);
    assert!(has_grown, "they did not grow to {GROWTH_MAX} times their size");
}
