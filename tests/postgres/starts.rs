//! How nodes start: on an empty database all at once, with the right key only, and in their roles.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hundi::store::migrate::schema_known;

use crate::nodes::{Aftermath, Node, Nodes, home, under_load};
use crate::support::postgres::{Database, try_sql};
use crate::support::random::seed;
use crate::support::rotation::NEW_KEY;
use crate::support::{Home, Server, steps, until};

/// How long a session may be seen waiting behind a migration that itself waits for a table: it does
/// so for half a second at most, and a request waits for 2 s before it is given up.
const MIGRATION_WAIT_MAX: Duration = Duration::from_millis(1_500);

#[test]
fn eight_nodes_make_one_schema() {
    const NODES_COUNT: usize = 8;
    let database = Database::fresh();
    let homes: Vec<Home> = (0..NODES_COUNT).map(|_| home(&database.url())).collect();
    let servers: Vec<Server> = std::thread::scope(|scope| {
        let starts: Vec<_> = homes.iter().map(|home| scope.spawn(|| home.start())).collect();
        starts.into_iter().map(|start| start.join().expect("a start")).collect()
    });
    let key = homes[0].key();
    for (home, server) in homes.iter().zip(&servers) {
        let mut client = server.client(&key);
        steps::six_steps(&mut client, "42.00");
        assert!(home.panics().is_empty(), "{:?}", home.panics());
    }
    assert_eq!(server_payments(&servers[0], &key), NODES_COUNT, "the nodes do not see the same");
    homes[0].check().expect_success("the check");
    // A later start finds the schema and changes nothing.
    let tables = "SELECT string_agg(oid::text || relname, ',' ORDER BY oid) FROM pg_class WHERE \
     relkind = 'r' AND relnamespace = 'public'::regnamespace";
    let before = database.value(tables);
    assert!(before.contains("transfers"));
    drop(servers);
    drop(homes[0].start());
    assert_eq!(database.value(tables), before);
}

/// Nodes that start at one moment on an empty database create no table at the same time.
#[test]
fn a_first_start_waits_for_its_turn() {
    let database = Database::fresh();
    let count = |sql: &str| database.value(sql);
    let held = database.hold("SELECT pg_advisory_xact_lock(114853572536653)");
    let homes: Vec<Home> = (0..2).map(|_| home(&database.url())).collect();
    std::thread::scope(|scope| {
        let starts: Vec<_> = homes.iter().map(|home| scope.spawn(|| home.start())).collect();
        until("a start to wait", Duration::from_secs(30), || {
            const WAITING: &str = "SELECT COUNT(*) FROM pg_locks l JOIN pg_database d ON d.oid = \
                                   l.database WHERE d.datname = current_database() AND \
                                   l.locktype = 'advisory' AND NOT l.granted";
            assert!(starts.iter().all(|start| !start.is_finished()), "it did not wait");
            (count(WAITING) != "0").then_some(())
        });
        const TABLES: &str = "SELECT COUNT(*) FROM pg_class WHERE relkind = 'r' AND \
                              relnamespace = 'public'::regnamespace";
        assert_eq!(count(TABLES), "0", "a table was made before its turn");
        drop(held);
        for start in starts {
            drop(start.join().expect("a start"));
        }
    });
    homes[0].check().expect_success("the check");
}

fn server_payments(server: &Server, key: &str) -> usize {
    server.client(key).list("/v1/transfers", "status=payout_settled").len()
}

/// A start that must not succeed, and what it says.
fn refusal(home: &Home) -> String {
    let mut server = home.spawn(&[], "127.0.0.1:0");
    // A start waits half a minute for a database that does not answer.
    let status = server.await_end(Duration::from_secs(60));
    assert!(!status.success(), "the start succeeded");
    drop(server);
    until("the refusal's words", Duration::from_secs(5), || {
        Some(home.log()).filter(|log| log.contains("hundi:"))
    })
}

#[test]
fn only_the_right_encryption_key_starts() {
    let database = Database::fresh();
    let mut first = home(&database.url());
    first.unset("HUNDI_ENCRYPTION_KEY");
    let said = refusal(&first);
    assert!(said.contains("HUNDI_ENCRYPTION_KEY"), "{said}");
    // Nothing was made that would keep the right key out, and no key was invented.
    assert!(!first.directory.join("hundi.db.key").exists());
    let right = home(&database.url());
    let server = right.start();
    let mut client = server.client(&right.key());
    steps::six_steps(&mut client, "42.00");
    for wrong in ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "AAAA", "not base64"] {
        let said = refusal(&home(&database.url()).with("HUNDI_ENCRYPTION_KEY", wrong));
        assert!(said.to_lowercase().contains("key"), "{said}");
        assert!(!said.contains(wrong), "the key is shown: {said}");
    }
    // Commands beside the nodes are held to it too.
    let beside = home(&database.url())
        .with("HUNDI_ENCRYPTION_KEY", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    let outcome = beside.run(&["advice", "rotate-key", "--mode", "test"]);
    assert!(
        !outcome.status.success(),
        "a command with another key went through: {}",
        outcome.stdout
    );
    // The control: the right key still starts, and reads what was sealed.
    let again = right.start();
    let id = steps::text(&again.client(&right.key()).list("/v1/transfers", "")[0], "id");
    assert!(id.starts_with("transfer_"));
    right.check().expect_success("the check");
}

#[test]
fn a_url_that_leads_nowhere_is_refused_without_its_password() {
    for url in [
        "postgres://hundi:secret-password@127.0.0.1:1/none",
        "postgres://hundi:secret-password@127.0.0.1/none?nonsense=1",
        "postgres://",
    ] {
        let said = refusal(&home(url));
        assert!(!said.contains("secret-password"), "the password is shown: {said}");
    }
}

/// A node that serves leaves the work to one that works.
#[test]
fn roles_share_the_work() {
    let database = Database::fresh();
    let serving = Node::start(home(&database.url()).with("HUNDI_ROLE", "serve"));
    let mut client = serving.client(&serving.home.key());
    let made = client
        .post("/v1/beneficiaries", &steps::beneficiary_body())
        .expect_success("a beneficiary");
    let path = format!("/v1/beneficiaries/{}", steps::text(&made, "id"));
    // Long enough for a worker to have looked at it many times.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(
        client.get(&path).json()["status"],
        "verifying",
        "a node that only serves did a worker's part"
    );
    let working = Node::start(home(&database.url()).with("HUNDI_ROLE", "work"));
    until("a worker to take what was due", steps::PATIENCE, || {
        (client.get(&path).json()["status"] == "active").then_some(())
    });
    steps::six_steps(&mut client, "42.00");
    // The worker's listener tells how it is, and serves nobody.
    let mut there = working.client(&client.api_key);
    assert_eq!(there.get("/healthz").status, 200);
    assert_eq!(there.get("/readyz").status, 200);
    assert_eq!(there.get("/v1/corridors").status, 404);
    let refused = refusal(&home(&database.url()).with("HUNDI_ROLE", "everything"));
    assert!(refused.contains("role"), "{refused}");
    serving.home.check().expect_success("the check");
}

/// What a next release may do to the schema: it only adds.
const NEXT_MIGRATION: &str = "
CREATE TABLE next_notes (
  scope BIGINT NOT NULL,
  id BYTEA NOT NULL,
  note TEXT,
  PRIMARY KEY (scope, id)
) WITHOUT ROWID;
ALTER TABLE transfers ADD COLUMN next_note TEXT;
ALTER TABLE beneficiaries ADD COLUMN next_flag BOOLEAN;
ALTER TABLE outbox ADD COLUMN next_note TEXT;
CREATE INDEX next_transfers ON transfers (scope, next_note);
";

/// What a node of the next release did to those that serve already.
struct Joined {
    /// What the callers saw.
    aftermath: Aftermath,
    /// The longest time for which a session was seen waiting behind a migration that waited.
    migration_wait: Duration,
    nodes: Vec<Node>,
}

/// A node of the next release joins and migrates under load, while a report holds a view of the
/// tables that change. Then one of this release comes back and another one is added.
fn joined_by_the_next_release(
    database: &Database,
    next_home: impl Fn() -> Home,
    settles: bool,
) -> Joined {
    // Longer than a request waits for a row.
    const REPORT_SECONDS: u64 = 4;
    let schema = || {
        database.value("SELECT convert_from(value, 'UTF8') FROM meta WHERE name = 'schema_version'")
    };
    let mut nodes = Nodes::plain(2, &database.url());
    let (mut joined_after, mut others) = (Duration::ZERO, Vec::new());
    let mut migration_wait = Duration::ZERO;
    let aftermath = under_load(&mut nodes, seed("HUNDI_POSTGRES_SEED"), settles, |nodes, _| {
        std::thread::sleep(Duration::from_secs(1));
        assert_eq!(schema(), schema_known().to_string());
        let report_url = database.url();
        let report = std::thread::spawn(move || {
            try_sql(
                &report_url,
                &format!(
                    "BEGIN; SELECT COUNT(*) FROM transfers; SELECT pg_sleep({REPORT_SECONDS}); \
                     COMMIT"
                ),
            )
        });
        until("the report to run", Duration::from_secs(5), || {
            (database.value(
                "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = \
             current_database() AND wait_event = 'PgSleep'",
            ) != "0")
                .then_some(())
        });
        let started = Instant::now();
        let has_joined = AtomicBool::new(false);
        let next = std::thread::scope(|scope| {
            let watching = scope.spawn(|| longest_migration_wait(database, &has_joined));
            let next = catch_unwind(AssertUnwindSafe(|| Node::start(next_home())));
            has_joined.store(true, Ordering::Relaxed);
            migration_wait = watching.join().expect("the one who watches");
            next.expect("the next release starts")
        });
        joined_after = started.elapsed();
        report.join().expect("the report's thread").expect("the report");
        assert_eq!(schema(), (schema_known() + 1).to_string());
        steps::sender(&mut next.client(&nodes.probe_key));
        nodes.nodes[1].kill();
        nodes.nodes[1].start_again();
        let another = Node::start(home(&database.url()));
        steps::sender(&mut another.client(&nodes.probe_key));
        others.extend([next, another]);
        std::thread::sleep(Duration::from_secs(1));
    });
    aftermath.tell(&format!(
        "the next release joined within {joined_after:?}, sessions waited behind its migration for \
         {migration_wait:?}, {} answers were 503",
        aftermath.unavailable_count
    ));
    if settles {
        for node in nodes.nodes.iter().chain(&others) {
            steps::six_steps(&mut node.client(&nodes.probe_key), "42.00");
        }
    }
    others.extend(nodes.nodes);
    Joined { aftermath, migration_wait, nodes: others }
}

/// Watches until a node has joined. The server's own clock is asked, so that a busy machine does
/// not make a wait longer than it was.
fn longest_migration_wait(database: &Database, has_joined: &AtomicBool) -> Duration {
    let mut longest = Duration::ZERO;
    while !has_joined.load(Ordering::Relaxed) {
        let milliseconds = database.value(
            "SELECT COALESCE(MAX(EXTRACT(EPOCH FROM clock_timestamp() - w.query_start) * 1000), \
             0)::bigint FROM pg_stat_activity w, LATERAL unnest(pg_blocking_pids(w.pid)) AS \
             blocker JOIN pg_stat_activity b ON b.pid = blocker WHERE w.datname = \
             current_database() AND w.wait_event_type = 'Lock' AND b.wait_event_type = 'Lock' AND \
             b.query ~ '^(ALTER|CREATE) '",
        );
        let milliseconds = milliseconds.parse().expect("milliseconds");
        longest = longest.max(Duration::from_millis(milliseconds));
        std::thread::sleep(Duration::from_millis(20));
    }
    longest
}

/// A home of the next release, which knows one migration more; `files` keeps its text.
fn next_release(database: &Database, files: &Home) -> Home {
    let migration = files.directory.join("next.sql");
    std::fs::write(&migration, NEXT_MIGRATION).expect("the next release's migration");
    home(&database.url()).with("HUNDI_TEST_MIGRATION", &migration.to_string_lossy())
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "optimised builds do not take further migrations")]
fn a_key_that_does_not_fit_migrates_nothing() {
    let database = Database::fresh();
    let files = Home::new("next");
    drop(home(&database.url()).start());
    let mut next = next_release(&database, &files);
    next.set("HUNDI_ENCRYPTION_KEY", NEW_KEY);
    let said = refusal(&next);
    assert!(said.contains("does not fit") && !said.contains("broken"), "{said}");
    let made = next.run(&["keys", "create", "--mode", "test"]);
    assert!(!made.status.success() && made.stderr.contains("does not fit"), "{}", made.stderr);
    let version = || {
        const SQL: &str = "SELECT convert_from(value, 'UTF8') FROM meta WHERE name = \
                           'schema_version'";
        database.value(SQL)
    };
    assert_eq!(version(), schema_known().to_string());
    drop(next_release(&database, &files).start());
    assert_eq!(version(), (schema_known() + 1).to_string());
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "optimised builds do not take further migrations")]
fn the_next_release_joins_while_this_one_serves() {
    let database = Database::fresh();
    let files = Home::new("next");
    let next_home = || next_release(&database, &files);
    let joined = joined_by_the_next_release(&database, next_home, true);
    joined.aftermath.expect_sound();
    assert_eq!(joined.aftermath.unavailable_count, 0, "callers were told to come again later");
    let waited = joined.migration_wait;
    assert!(waited < MIGRATION_WAIT_MAX, "a session waited {waited:?} behind the migration");
    drop(joined.nodes);
    next_home().check().expect_success("the next release's check");
    // The release after that takes away what this one uses.
    database.sql(&format!(
        "UPDATE meta SET value = '{}' WHERE name = 'schema_version'; UPDATE meta SET value = '{}' \
         WHERE name = 'schema_version_beside'",
        schema_known() + 2,
        schema_known() + 1
    ));
    let said = refusal(&home(&database.url()));
    assert!(said.contains("newer"), "{said}");
    drop(Node::start(next_home()));
}

/// The same with a migration that waits for its tables as long as it takes: the callers of the
/// other nodes notice, and the test sees it.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "optimised builds do not contain the planted fault")]
fn a_migration_that_waits_for_its_tables_is_found_out() {
    let database = Database::fresh();
    let files = Home::new("next");
    let next_home = || next_release(&database, &files).with_fault("migration_waits_for_tables");
    let joined = joined_by_the_next_release(&database, next_home, false);
    let waited = joined.migration_wait;
    assert!(waited >= MIGRATION_WAIT_MAX, "nobody waited longer than {waited:?}");
}

/// The rights that docs/postgresql.md gives to a service that does not own its schema: enough to
/// serve, and none over the book's past.
#[test]
fn a_user_that_does_not_own_the_schema_serves() {
    let database = Database::fresh();
    let role = format!("{}_service", database.name);
    drop(home(&database.url()).start());
    database.sql(&format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA public TO {role}; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}; \
         GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}; REVOKE UPDATE, DELETE ON \
         ledger_postings, audit_log FROM {role}"
    ));
    let url = database.url().replacen("postgres@", &format!("{role}@"), 1);
    let serving = home(&url);
    let server = serving.start();
    steps::six_steps(&mut server.client(&serving.key()), "42.00");
    serving.check().expect_success("the check");
    assert!(server.stop().success());
    for (table, column) in [("ledger_postings", "units"), ("audit_log", "number")] {
        let update = format!("UPDATE {table} SET {column} = {column} WHERE FALSE");
        let delete = format!("DELETE FROM {table} WHERE FALSE");
        for sql in [update, delete] {
            let changed = try_sql(&url, &sql);
            assert!(changed.is_err_and(|told| told.starts_with("42501")), "allowed: {sql}");
            // The control: the owner could.
            assert!(try_sql(&database.url(), &sql).is_ok(), "{sql}");
        }
    }
    database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

/// What one node asks a service for accounts is not asked by another one that starts meanwhile.
#[test]
fn a_start_leaves_the_look_ups_of_others_alone() {
    let database = Database::fresh();
    // The schema is there, and nobody takes what is due.
    let serving = Node::start(home(&database.url()).with("HUNDI_ROLE", "serve"));
    let add = |id: u8, due: &str| {
        database.sql(&format!(
            "INSERT INTO account_look_ups (scope, beneficiary_id, id, due_milliseconds, \
             attempts_count, created) \
             SELECT 2, decode(repeat('0{id}', 16), 'hex'), decode(repeat('0{id}', 16), 'hex'), \
             {due}, 0, 0"
        ));
    };
    // One under way at a node that the start knows nothing of, and one that is due, which is taken
    // off because there is no such beneficiary.
    add(1, "(extract(epoch FROM clock_timestamp()) * 1000)::bigint + 29000");
    add(2, "0");
    let working = Node::start(home(&database.url()).with("HUNDI_ROLE", "work"));
    let count = |id: u8| {
        database.value(&format!(
            "SELECT COUNT(*) FROM account_look_ups WHERE id = decode(repeat('0{id}', 16), 'hex')"
        ))
    };
    until("the look-up that is due to be taken", Duration::from_secs(20), || {
        (count(2) == "0").then_some(())
    });
    assert_eq!(count(1), "1", "a start took a look-up that another node was making");
    drop((serving, working));
}
