//! No statistics can make a hot statement read more rows than it needs: beside a large account, and
//! with many objects that the statistics do not know, a payment reads about as many pages as in an
//! empty database.

use std::collections::BTreeMap;
use std::time::Duration;

use hundi::app::App;
use hundi::events;
use hundi::kernel::id::kind;
use hundi::kernel::{AnyId, Clock, Mode, Now, Scope};
use hundi::oversight::flow::DayCount;
use hundi::oversight::queues::{self, QueueKind};
use hundi::oversight::{AccountNames, overview};
use hundi::store::postgres::PostgresUrl;
use hundi::store::{Cost, Store, Tx};
use hundi::webhooks;
use hundi::workers::housekeeping::Purger;

use crate::nodes::Nodes;
use crate::support::postgres::{Cluster, Database, ENCRYPTION_KEY};
use crate::support::{Client, Receiver, steps, until};

const PAYMENTS_COUNT: usize = 5;
/// Rows of each table, of an account that the statistics know and of one that they do not.
const KNOWN_ROWS: u64 = 10_000;
const UNKNOWN_ROWS: u64 = 8_000;
/// How much more a payment may read then. Indexes have one more level.
const FACTOR_MAX: f64 = 1.6;
/// How many blocks more a call of one statement may read then, beyond that. A plan that reads an
/// account's rows reads hundreds.
const BLOCKS_MORE_MAX: f64 = 16.0;
/// Statements that a payment with its reads and deliveries sends at least.
const STATEMENTS_COUNT_MIN: usize = 60;

const TABLES: [&str; 6] =
    ["events", "transfers", "deposits", "payouts", "beneficiaries", "quote_locks"];

/// Pages of tables and indexes that statements have read so far.
fn pages(database: &Database) -> u64 {
    // A back end reports its figures a second after the last time at the latest.
    std::thread::sleep(Duration::from_millis(1_500));
    let sql = "SELECT SUM(COALESCE(heap_blks_read, 0) + COALESCE(heap_blks_hit, 0) + \
         COALESCE(idx_blks_read, 0) + COALESCE(idx_blks_hit, 0)) FROM pg_statio_user_tables";
    database.value(sql).parse().expect("a number")
}

/// What one payment with its reads and deliveries costs.
fn pages_per_payment(database: &Database, client: &mut Client) -> f64 {
    let before = pages(database);
    for _ in 0..PAYMENTS_COUNT {
        let payment = steps::six_steps(client, "100.00");
        for path in [
            format!("/v1/transfers?beneficiary_id={}", payment.beneficiary_id),
            format!("/v1/deposits?transfer_id={}", payment.transfer_id),
            format!("/v1/payouts?transfer_id={}", payment.transfer_id),
            format!("/v1/events?linked_id={}", payment.transfer_id),
        ] {
            client.get(&path).expect_success("a list");
        }
    }
    (pages(database) - before) as f64 / PAYMENTS_COUNT as f64
}

/// The columns of each table that name another object by which it is listed.
const LISTED_BY: [(&str, &[&str]); 5] = [
    ("events", &["linked_id"]),
    ("transfers", &["beneficiary_id", "sender_id"]),
    ("deposits", &["transfer_id"]),
    ("payouts", &["beneficiary_id", "transfer_id"]),
    ("quote_locks", &["transfer_id"]),
];

/// Waits for the last event of each payment, which says that its advice is available.
fn until_last_event(database: &Database) {
    let rows = "payouts WHERE advice_available_at IS NULL";
    database.until_none(rows, "every payout should have an advice");
    database.until_sequenced();
}

/// Copies a row of the account with this key over and over, as objects of yesterday.
fn fill(database: &Database, scope: &str, rows_count: u64) {
    fill_with(database, scope, (1, rows_count), false);
}

/// The same with rows of these numbers, which are of other objects than the copied one if so asked.
fn fill_with(database: &Database, scope: &str, (from, to): (u64, u64), of_others: bool) {
    for table in TABLES {
        let listed_by = LISTED_BY.iter().find(|(listed, _)| *listed == table && of_others);
        let others: String = listed_by
            .map_or(&[][..], |(_, columns)| *columns)
            .iter()
            .map(|column| format!(", '{column}', '\\x' || lpad(to_hex(g), 32, '0')"))
            .collect();
        let unique = match table {
            "deposits" => ", 'transaction_hash', g::text",
            "payouts" => ", 'unique_transaction_reference', g::text",
            _ => "",
        };
        database.sql(&format!(
            "INSERT INTO {table} SELECT (jsonb_populate_record(x.t, jsonb_build_object('id', '\\x' \
             || lpad(to_hex((EXTRACT(EPOCH FROM now()) * 1000)::bigint - 86400000), 12, '0') || \
             lpad(to_hex(g), 20, '0'){unique}{others}))).* FROM (SELECT {table} AS t FROM {table} \
             WHERE scope = {scope} ORDER BY id DESC LIMIT 1) x, generate_series({from}, {to}) g"
        ));
    }
}

type Blocks = BTreeMap<String, (f64, String)>;

/// The blocks that a call of each statement read, since the figures were set to nothing, and its
/// text, by the number that the server gives it. The text itself varies: whether it keeps its
/// constants depends on whether its first run since then was prepared earlier.
fn blocks_per_call(database: &Database) -> Blocks {
    let rows = database.sql(&format!(
        "SELECT queryid, replace(query, E'\\n', ' '), \
         (shared_blks_hit + shared_blks_read)::float8 / calls \
         FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = \
         current_database() AND calls >= {PAYMENTS_COUNT}"
    ));
    let read =
        |row: &Vec<String>| (row[0].clone(), (row[2].parse().expect("a number"), row[1].clone()));
    rows.iter().map(read).collect()
}

/// How many statements ran before and after, and those that read many more blocks after, with what
/// a call of each read before and after.
fn compared(before: &Blocks, after: Blocks) -> (usize, Vec<(f64, f64, String)>) {
    let (mut count, mut worse) = (0, Vec::new());
    for (number, (after, statement)) in after {
        let Some((before, _)) = before.get(&number) else { continue };
        count += 1;
        if after > before * FACTOR_MAX + BLOCKS_MORE_MAX {
            worse.push((*before, after, statement));
        }
    }
    (count, worse)
}

/// What payments cost in a small database, and once there are many rows in it.
struct Costs {
    /// Pages of a payment.
    small: f64,
    large: f64,
    statements_count: usize,
    /// The statements that read many more blocks, with what a call of each read before and after.
    worse: Vec<(f64, f64, String)>,
}

fn costs(damage: &str, fault: Option<&str>) -> Costs {
    // Beside others' databases a server that makes many tables forgets everybody's plans.
    let cluster = Cluster::start(&["shared_preload_libraries=pg_stat_statements"]);
    let database = Database::in_cluster(&cluster.url);
    database.sql("CREATE EXTENSION pg_stat_statements");
    let shape = |_, home: crate::support::Home| {
        home.with("HUNDI_DATABASE_CONNECTIONS", "6").with_fault(fault)
    };
    let nodes = Nodes::start(&[database.url()], shape);
    database.sql(damage);
    let tables = database.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'");
    for table in tables.iter().flatten() {
        database.sql(&format!("ALTER TABLE {table} SET (autovacuum_enabled = off)"));
    }
    let receiver = Receiver::start();
    let mut known = nodes.nodes[0].client(&nodes.probe_key);
    let mut unknown = nodes.client();
    receiver.register(&mut known);
    receiver.register(&mut unknown);
    steps::six_steps(&mut known, "100.00");
    steps::six_steps(&mut unknown, "100.00");
    until_last_event(&database);
    let scope_of = |order: &str| {
        database.value(&format!("SELECT scope FROM transfers ORDER BY id {order} LIMIT 1"))
    };
    let (known_scope, unknown_scope) = (scope_of("ASC"), scope_of("DESC"));
    assert_ne!(known_scope, unknown_scope);
    // Plans are kept from here on, when every table has one page.
    database.sql("ANALYZE");
    pages_per_payment(&database, &mut unknown);
    database.sql("SELECT pg_stat_statements_reset()");
    let small = pages_per_payment(&database, &mut unknown);
    let before = blocks_per_call(&database);
    fill(&database, &known_scope, KNOWN_ROWS);
    fill(&database, &unknown_scope, UNKNOWN_ROWS);
    database.sql("SELECT pg_stat_statements_reset()");
    let large = pages_per_payment(&database, &mut unknown);
    println!("{small:.0} pages a payment in a small database, {large:.0} in a large one");
    let (statements_count, worse) = compared(&before, blocks_per_call(&database));
    println!("{statements_count} statements, of which read more: {worse:#?}");
    Costs { small, large, statements_count, worse }
}

#[test]
fn stale_statistics_make_no_statement_read_more() {
    let Costs { small, large, statements_count, worse } = costs("SELECT 1", None);
    assert!(statements_count >= STATEMENTS_COUNT_MIN, "only {statements_count} statements");
    assert!(worse.is_empty(), "{worse:#?}");
    assert!(large <= small * FACTOR_MAX, "{small:.0} pages a payment became {large:.0}");
}

/// Plans that may read a whole table stay when it has grown, and with an index that begins as the
/// primary key does the planner takes it for as good as that.
#[test]
fn control_plans_of_small_tables_are_found_out() {
    let Costs { small, large, worse, .. } = costs(
        "CREATE INDEX kept_transfers ON transfers (scope, sender_id, id); CREATE INDEX \
         kept_events ON events (scope, linked_id, id); CREATE INDEX kept_payouts ON payouts \
         (scope, transfer_id, id); CREATE INDEX kept_deposits ON deposits (scope, transfer_id, id)",
        Some("plans_as_they_come"),
    );
    assert!(large > small * FACTOR_MAX, "{small:.0} pages a payment became {large:.0} only");
    assert!(!worse.is_empty(), "no statement was found out");
}

/// The most blocks that each list by another object reads at once, where the statistics say that
/// nearly every row is of that object, and thousands of newer rows are of others.
fn blocks_of_lists(fault: Option<&str>) -> Vec<(String, u64)> {
    const PREPARED_CALLS: usize = 8;
    let cluster = Cluster::start(&["shared_preload_libraries=pg_stat_statements"]);
    let database = Database::in_cluster(&cluster.url);
    let nodes = Nodes::start(&[database.url()], |_, home| {
        home.with("HUNDI_DATABASE_CONNECTIONS", "6").with_fault(fault)
    });
    for table in TABLES {
        database.sql(&format!("ALTER TABLE {table} SET (autovacuum_enabled = off)"));
    }
    database.sql("CREATE EXTENSION pg_stat_statements");
    let mut client = nodes.client();
    let payment = steps::six_steps(&mut client, "100.00");
    until_last_event(&database);
    let scope = database.value("SELECT scope FROM transfers");
    // An event of the transfer is copied, and not one of another object.
    database.sql("DELETE FROM events WHERE linked_object <> 'transfer'");
    fill_with(&database, &scope, (1, 40), false);
    database.sql("ANALYZE");
    fill_with(&database, &scope, (1_000, 9_000), true);
    // Plans are made anew, with the statistics of before.
    database.terminate_connections();
    let (transfer, beneficiary) = (&payment.transfer_id, &payment.beneficiary_id);
    let lists = [
        ("events", format!("/v1/events?linked_id={transfer}")),
        ("transfers", format!("/v1/transfers?beneficiary_id={beneficiary}")),
        ("transfers", format!("/v1/transfers?sender_id={}", payment.sender_id)),
        ("deposits", format!("/v1/deposits?transfer_id={transfer}")),
        ("payouts", format!("/v1/payouts?transfer_id={transfer}")),
        ("payouts", format!("/v1/payouts?beneficiary_id={beneficiary}")),
        ("quote_locks", format!("/v1/quote_locks?transfer_id={transfer}")),
    ];
    let mut read = Vec::new();
    for (table, path) in lists {
        let path = format!("{path}&limit=10&order=desc");
        let ids = |page: &serde_json::Value| -> Vec<String> {
            let id = |row: &serde_json::Value| row["id"].as_str().expect("an id").to_owned();
            page["data"].as_array().expect("rows").iter().map(id).collect()
        };
        // Each lane that lost its connection may refuse one request before it makes a new one.
        let mut page_of = |path: &str| {
            until("the list", Duration::from_secs(30), || {
                client.once("GET", path, None, None).ok().filter(|page| page.is_success())
            })
        };
        page_of(&path);
        database.sql("SELECT pg_stat_statements_reset()");
        let mut walked = Vec::new();
        for _ in 0..PREPARED_CALLS {
            let first = page_of(&path).expect_success("a list");
            let last = ids(&first).pop().expect("a row");
            let next = page_of(&format!("{path}&starting_after={last}"));
            let next = ids(&next.expect_success("the next page"));
            assert!(
                !next.is_empty(),
                "nothing comes after {last} of {:?}: {:?}",
                ids(&first),
                database.sql(
                    "SELECT linked_object, encode(linked_id, 'hex'), COUNT(*), MAX(type) FROM \
                     events GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 9"
                )
            );
            let back = page_of(&format!("{path}&ending_before={}", next[0]));
            // It begins with the row nearest to its cursor.
            let mut back = ids(&back.expect_success("the page before"));
            back.reverse();
            assert_eq!(back, ids(&first), "{path}");
            walked = [ids(&first), next].concat();
        }
        walked.sort_unstable();
        walked.dedup();
        assert_eq!(walked.len(), 20, "{path} shows a row twice");
        let most = format!(
            "SELECT (MAX((shared_blks_hit + shared_blks_read) / calls))::bigint FROM \
             pg_stat_statements WHERE query LIKE '%FROM {table} WHERE scope = %ORDER BY%LIMIT%' \
             AND calls >= {PREPARED_CALLS}"
        );
        let blocks: u64 = database.value(&most).parse().expect("a number");
        println!("{blocks} blocks: {path}");
        read.push((path, blocks));
    }
    read
}

/// A page of ten rows, each on a page of the table, with the levels of the index.
const LIST_BLOCKS_MAX: u64 = 40;

#[test]
fn a_list_by_another_object_reads_its_rows_alone() {
    for (path, blocks) in blocks_of_lists(None) {
        assert!(blocks <= LIST_BLOCKS_MAX, "{path} reads {blocks} blocks");
    }
}

#[test]
fn control_a_list_in_the_order_of_identifiers_reads_the_rows_of_others() {
    let read = blocks_of_lists(Some("lists_by_identifier"));
    assert!(read.iter().any(|(_, blocks)| *blocks > LIST_BLOCKS_MAX), "{read:?}");
}

/// The statements of the console's overview and queues that read many more blocks beside thousands
/// of objects that are done, with what a call of each read before and after; and how many were
/// compared. `damage` is done to the database first.
fn blocks_of_console(damage: &str) -> (usize, Vec<(f64, f64, String)>) {
    let cluster = Cluster::start(&["shared_preload_libraries=pg_stat_statements"]);
    let database = Database::in_cluster(&cluster.url);
    let nodes =
        Nodes::start(&[database.url()], |_, home| home.with("HUNDI_DATABASE_CONNECTIONS", "6"));
    database.sql("CREATE EXTENSION pg_stat_statements");
    database.sql(damage);
    for table in TABLES {
        database.sql(&format!("ALTER TABLE {table} SET (autovacuum_enabled = off)"));
    }
    steps::six_steps(&mut nodes.client(), "100.00");
    until_last_event(&database);
    let scope = database.value("SELECT scope FROM transfers");
    database.sql("ANALYZE");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let environment =
        |name: &str| (name == "HUNDI_ENCRYPTION_KEY").then(|| ENCRYPTION_KEY.to_owned());
    let flags = hundi::config::Flags {
        database: Some(database.url()),
        listen: Some("127.0.0.1:0".into()),
        ..Default::default()
    };
    let config = hundi::config::Config::read(&flags, &environment).expect("a configuration");
    let app = runtime.block_on(App::open(&config, Clock::System)).expect("the service");
    let look = || {
        for _ in 0..2 * PAYMENTS_COUNT {
            let services = app.state.services.clone();
            let milliseconds = app.state.store.clock.milliseconds();
            let read = app.state.store.read(Cost::Scan, move |tx| {
                let accounts = AccountNames::read(tx)?;
                let (chains, mut day) = (["tron"], DayCount::default());
                let mode = Mode::Test;
                let all = (&accounts, mode, &chains);
                overview::read(tx, &mut day, all.0, all.1, all.2, &services, milliseconds)?;
                for queue in QueueKind::ALL {
                    queues::read(tx, *queue, &accounts, mode, &chains)?;
                }
                Ok(())
            });
            runtime.block_on(read).expect("the overview and the queues");
        }
    };
    let blocks = || {
        database.sql("SELECT pg_stat_statements_reset()");
        look();
        blocks_per_call(&database)
    };
    look();
    let before = blocks();
    fill(&database, &scope, KNOWN_ROWS);
    // Money that was given back, payouts that came back and failed, and explained differences.
    database.sql(
        "UPDATE deposits SET classification = 'unmatched', is_given_back = TRUE WHERE \
         transaction_hash ~ '^[0-9]+$'",
    );
    database.sql(&format!(
        "INSERT INTO bank_instructions (payout_id, scope, units, method, status, is_answered, \
         created, attention, attention_at) SELECT decode(lpad(to_hex(g), 32, '0'), 'hex'), \
         {scope}, 1, 'neft', 'published', TRUE, 1, 'returned_and_failed', 1 FROM \
         generate_series(1, {KNOWN_ROWS}) g"
    ));
    database.sql(&format!(
        "INSERT INTO chain_differences (mode, chain, kind, subject, id, units, found_at, \
         accepted_at) SELECT 'test', 'tron', 'movement_not_in_book', g::text, \
         decode(lpad(to_hex(g), 32, '0'), 'hex'), 1, 1, 1 FROM generate_series(1, {KNOWN_ROWS}) g"
    ));
    let after = blocks();
    runtime.block_on(app.state.store.close());
    compared(&before, after)
}

/// What the overview and the queues read at least.
const CONSOLE_STATEMENTS_MIN: usize = 30;

#[test]
fn what_is_done_costs_the_overview_and_the_queues_nothing() {
    let (compared_count, worse) = blocks_of_console("SELECT 1");
    println!("{compared_count} statements of the console were compared");
    assert!(compared_count >= CONSOLE_STATEMENTS_MIN, "only {compared_count} statements");
    assert!(worse.is_empty(), "{worse:#?}");
}

#[test]
fn control_a_queue_without_its_index_is_found_out() {
    let (_, worse) = blocks_of_console("DROP INDEX transfers_held; DROP INDEX transfers_on_hold");
    assert!(worse.iter().any(|(_, _, sql)| sql.contains("funding_hold")), "{worse:#?}");
}

/// With the indexes that also have what is done.
#[test]
fn control_what_is_done_in_an_index_is_found_out() {
    let (_, worse) = blocks_of_console(
        "DROP INDEX deposits_unmatched_open; DROP INDEX bank_instructions_waiting; DROP INDEX \
         chain_differences_open; CREATE INDEX deposits_unmatched ON deposits (id) WHERE \
         classification = 'unmatched'; CREATE INDEX bank_instructions_attention ON \
         bank_instructions (payout_id) WHERE attention IS NOT NULL",
    );
    for of in ["is_given_back", "attention", "chain_differences"] {
        assert!(worse.iter().any(|(_, _, sql)| sql.contains(of)), "{of}: {worse:#?}");
    }
}

/// The statements that some work of a new process sends beside so many idle accounts, with an event
/// that does not expire yet in every tenth of them.
async fn statements_beside(
    cluster: &Cluster,
    accounts_count: u64,
    work: impl AsyncFnOnce(&App, &Database),
) -> u64 {
    let database = Database::in_cluster(&cluster.url);
    let variables = [("HUNDI_ENCRYPTION_KEY", ENCRYPTION_KEY)];
    let environment = |name: &str| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    let flags = hundi::config::Flags {
        database: Some(database.url()),
        listen: Some("127.0.0.1:0".into()),
        ..Default::default()
    };
    let config = hundi::config::Config::read(&flags, &environment).expect("a configuration");
    let app = App::open(&config, Clock::System).await.expect("the service");
    let request = hundi::app::KeyRequest {
        account: "default".into(),
        mode: Mode::Test,
        permissions: hundi::keys::Permissions::All,
        expires_at: None,
    };
    let made = app.state.store.write(move |tx, now| Ok(hundi::app::create_key(tx, now, &request)?));
    made.await.expect("a key");
    let accounts = format!(
        "INSERT INTO accounts (number, id, name, suspended, clock_offset_seconds, created) SELECT \
         g, decode(lpad(to_hex(g), 32, '0'), 'hex'), 'idle ' || g, false, 0, 0 FROM \
         generate_series(2, {accounts_count}) g"
    );
    let now = app.state.store.clock.milliseconds();
    let events = format!(
        "INSERT INTO events (scope, id, type, linked_id, linked_object, created) SELECT g * 2, \
         decode(lpad(to_hex({now}), 12, '0') || lpad(to_hex(g), 20, '0'), 'hex'), 'a', \
         decode(lpad(to_hex(g), 32, '0'), 'hex'), 'transfer', {now} / 1000 FROM \
         generate_series(10, {accounts_count}, 10) g"
    );
    let count = || {
        let sent = "SELECT COALESCE(SUM(calls), 0)::bigint FROM pg_stat_statements s JOIN \
                    pg_database d ON d.oid = s.dbid WHERE d.datname = current_database() AND \
                    s.query NOT LIKE 'TABLE %'";
        let count: u64 = database.value(sent).parse().expect("a number");
        count
    };
    database.sql("CREATE EXTENSION pg_stat_statements");
    database.sql(&accounts);
    database.sql(&events);
    let before = count();
    work(&app, &database).await;
    let sent_count = count() - before;
    app.state.store.close().await;
    sent_count
}

/// The most statements that the same work sends more beside many accounts: the service looks at its
/// database every two seconds.
const MORE_MAX: u64 = 1_500;

/// What the work costs beside few and beside many idle accounts.
async fn assert_idle_accounts_cost_nothing(work: impl AsyncFn(&App, &Database)) {
    let cluster = Cluster::start(&["shared_preload_libraries=pg_stat_statements"]);
    let few = statements_beside(&cluster, 10, &work).await;
    let many = statements_beside(&cluster, 25_000, &work).await;
    println!("{few} statements beside 10 idle accounts, {many} beside 25,000");
    assert!(many < few + MORE_MAX, "{few} statements became {many}");
}

/// Accounts in which nothing expires cost a purge nothing, the first one of a process included.
#[tokio::test(flavor = "multi_thread")]
async fn idle_accounts_cost_a_purge_nothing() {
    let purges = async |app: &App, _: &Database| {
        let mut purger = Purger::default();
        for _ in 0..3 {
            purger.run_once(&app.state).await;
        }
    };
    assert_idle_accounts_cost_nothing(purges).await;
}

/// A node that becomes the sequencer looks for checkpoints that are due: here only of the last of
/// the accounts.
#[tokio::test(flavor = "multi_thread")]
async fn idle_accounts_cost_a_new_sequencer_nothing() {
    let checkpoints = async |app: &App, database: &Database| {
        let now = app.state.store.clock.milliseconds();
        let last = "(SELECT MAX(scope) FROM events)";
        database.sql(&format!(
            "INSERT INTO events (scope, id, type, linked_id, linked_object, created) SELECT \
             {last}, decode(lpad(to_hex({now}), 12, '0') || lpad(to_hex(1000000 + g), 20, '0'), \
             'hex'), 'a', decode(lpad(to_hex(g), 32, '0'), 'hex'), 'transfer', {now} / 1000 FROM \
             generate_series(1, 300) g"
        ));
        let (end, stop) = tokio::sync::watch::channel(false);
        let sequencer = tokio::spawn(events::chain::run(app.state.clone(), stop));
        while database.sql("TABLE event_checkpoints").is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        end.send_replace(true);
        sequencer.await.expect("the sequencer's worker");
    };
    assert_idle_accounts_cost_nothing(checkpoints).await;
}

/// Pages of the outbox's indexes that statements read while so many rows become events at once.
async fn pages_to_sequence(store: &Store, database: &Database, count: u64) -> u64 {
    let read = || {
        let sql = "SELECT SUM(idx_blks_read + idx_blks_hit) FROM pg_statio_user_tables WHERE \
                   relname = 'outbox'";
        database.value(sql).parse::<u64>().expect("a number")
    };
    // A back end reports its figures at the end of the transaction, and not when it likes.
    const REPORT: &str = "SELECT pg_stat_force_next_flush() IS NULL";
    let emit = move |tx: &mut dyn Tx, now: &mut Now| {
        tx.row(REPORT, &[])?;
        for _ in 0..count {
            let linked: AnyId = now.mint::<kind::Transfer>().any();
            events::emit(tx, now, Scope::from_code(2), "transfer.status.funding", linked)?;
        }
        Ok(())
    };
    store.write(emit).await.expect("events");
    let before = read();
    let sequence = |tx: &mut dyn Tx, now: &mut Now| {
        tx.row(REPORT, &[])?;
        Ok(webhooks::sequencer::sequence(tx, now)?)
    };
    store.write(sequence).await.expect("the sequencer");
    read() - before
}

/// Until the outbox is cleaned, its indexes keep entries of rows that became events. The sequencer
/// may go over them once, and not again for each row that it removes.
#[tokio::test(flavor = "multi_thread")]
async fn each_row_leaves_the_outbox_without_a_look_at_those_that_left() {
    const ROWS: u64 = 15;
    const PAGES_OF_A_ROW_MAX: u64 = 10;
    let database = Database::fresh();
    let url = PostgresUrl::parse(&database.url()).expect("the URL");
    let store = Store::connect(&url, Clock::System, 6).await.expect("the database");
    database.sql("ALTER TABLE outbox SET (autovacuum_enabled = off)");
    database.sql(
        "INSERT INTO outbox (id, scope, type, linked_id, linked_object, created) SELECT \
         decode(lpad(to_hex(g), 32, '0'), 'hex'), 2, 'a', 'b', 'transfer', 0 FROM \
         generate_series(1, 20000) g",
    );
    database.sql("DELETE FROM outbox");
    database.sql("ANALYZE outbox");
    let one = pages_to_sequence(&store, &database, 1).await;
    let many = pages_to_sequence(&store, &database, ROWS).await;
    assert_eq!(database.value("SELECT COUNT(*) FROM outbox"), "0");
    println!("{one} pages for one event, {many} for {ROWS}");
    assert!(many < one + ROWS * PAGES_OF_A_ROW_MAX, "{one} pages became {many}");
    store.close().await;
}
