//! How nodes start: on an empty database all at once, with the right key only, and in their roles.

use std::time::Duration;

use crate::nodes::{Node, home};
use crate::support::postgres::{Database, try_sql};
use crate::support::{Home, Server, steps, until};

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
    let tables = "SELECT string_agg(oid::text || relname, ',' ORDER BY oid) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace";
    let before = database.value(tables);
    assert!(before.contains("transfers"));
    drop(servers);
    drop(homes[0].start());
    assert_eq!(database.value(tables), before);
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
    until("the refusal's words", Duration::from_secs(5), || Some(home.log()).filter(|log| log.contains("hundi:")))
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
    let beside = home(&database.url()).with("HUNDI_ENCRYPTION_KEY", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    let outcome = beside.run(&["advice", "rotate-key", "--mode", "test"]);
    assert!(!outcome.status.success(), "a command with another key went through: {}", outcome.stdout);
    // The control: the right key still starts, and reads what was sealed.
    let again = right.start();
    let id = steps::text(&again.client(&right.key()).list("/v1/transfers", "")[0], "id");
    assert!(id.starts_with("transfer_"));
    right.check().expect_success("the check");
}

#[test]
fn a_url_that_leads_nowhere_is_refused_without_its_password() {
    for url in
        ["postgres://hundi:secret-password@127.0.0.1:1/none", "postgres://hundi:secret-password@127.0.0.1/none?nonsense=1", "postgres://"]
    {
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
    let made = client.post("/v1/beneficiaries", &steps::beneficiary_body()).expect_success("a beneficiary");
    let path = format!("/v1/beneficiaries/{}", steps::text(&made, "id"));
    // Long enough for a worker to have looked at it many times.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(client.get(&path).json()["status"], "verifying", "a node that only serves did a worker's part");
    let working = Node::start(home(&database.url()).with("HUNDI_ROLE", "work"));
    until("a worker to take what was due", steps::PATIENCE, || (client.get(&path).json()["status"] == "active").then_some(()));
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

/// The rights that docs/postgresql.md gives to a service that does not own its schema: enough to serve, and none over the book's past.
#[test]
fn a_user_that_does_not_own_the_schema_serves() {
    let database = Database::fresh();
    let role = format!("{}_service", database.name);
    drop(home(&database.url()).start());
    database.sql(&format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA public TO {role}; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}; \
         GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}; REVOKE UPDATE, DELETE ON ledger_postings FROM {role}"
    ));
    let url = database.url().replacen("postgres@", &format!("{role}@"), 1);
    let serving = home(&url);
    let server = serving.start();
    steps::six_steps(&mut server.client(&serving.key()), "42.00");
    serving.check().expect_success("the check");
    assert!(server.stop().success());
    let changed = try_sql(&url, "UPDATE ledger_postings SET units = units + 1");
    assert!(changed.is_err_and(|told| told.starts_with("42501")), "the book can be changed");
    // The control: the owner could.
    assert!(try_sql(&database.url(), "UPDATE ledger_postings SET units = units WHERE FALSE").is_ok());
    database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}
