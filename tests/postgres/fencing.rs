//! An old primary that comes back after a fail-over, and a database that went back in time: nothing
//! is written to them, and nothing is read from the first.

use std::time::Duration;

use crate::nodes::{Node, home};
use crate::proxy::Proxy;
use crate::support::postgres::{Cluster, Database, sql, try_sql};
use crate::support::{Client, Home, steps, until};

const PATIENCE: Duration = Duration::from_secs(30);
const STANDBY: &str = "standby";
const WENT_BACK: &str = "database_went_back";

fn sender(client: &mut Client) -> Option<String> {
    let answer = steps::sender_once(client).ok()?;
    answer.is_success().then(|| answer.id())
}

/// The process of a server whose data are here.
fn signal(data: &std::path::Path, name: &str) {
    let file = std::fs::read_to_string(data.join("postmaster.pid")).expect("the server's file");
    let leader = file.lines().next().expect("its number").to_owned();
    let children = std::fs::read_to_string(format!("/proc/{leader}/task/{leader}/children"))
        .unwrap_or_default();
    let is_sent = |process: &str| {
        let sent = std::process::Command::new("kill").args([&format!("-{name}"), process]).output();
        sent.expect("kill").status.success()
    };
    for child in children.split_whitespace() {
        // A child may have ended since the list was read.
        let _ = is_sent(child);
    }
    assert!(is_sent(&leader), "the server is gone");
}

/// How a node reaches the two servers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// By a URL with both of them.
    BothNamed,
    /// By one address, which leads to the new primary once it is promoted.
    AddressMoves,
}

/// Freezes the primary, promotes the standby, wakes the old one; answers how many of the objects
/// that were acknowledged afterwards cannot be read, and how many of `count` there were. The node
/// may write between the last look at the standby and the freeze. Then the fail-over has lost that,
/// the node rightly stops, and the scene begins again.
fn zombie(reach: Reach, fault: Option<&str>) -> (usize, usize, Home) {
    const SCENES_MAX: usize = 8;
    (0..SCENES_MAX).find_map(|_| zombie_once(reach, fault)).expect("a fail-over that loses nothing")
}

fn zombie_once(reach: Reach, fault: Option<&str>) -> Option<(usize, usize, Home)> {
    let cluster = Cluster::start(&["wal_level=replica", "max_wal_senders=4"]);
    let copied = cluster.base_backup(STANDBY, &["-R"]);
    let standby = cluster.start_copy(copied, &[]);
    let database = Database::in_cluster(&cluster.url);
    until("the standby to follow", PATIENCE, || {
        let sql = "SELECT COUNT(*) FROM pg_stat_replication WHERE state = 'streaming'";
        (database.value(sql) == "1").then_some(())
    });
    let proxy = Proxy::start(database.server_address(), &cluster.url, 1);
    let servers = match reach {
        Reach::BothNamed => format!("{},{}", database.server_address(), standby.place()),
        Reach::AddressMoves => proxy.address.to_string(),
    };
    let url = format!("postgres://postgres@{servers}/{}", database.name);
    let mut node =
        Node::start(home(&url).with("HUNDI_DATABASE_CONNECTIONS", "6").with_fault(fault));
    let mut client = node.client(&node.home.key());
    let mut made: Vec<String> = (0..5).filter_map(|_| sender(&mut client)).collect();
    assert_eq!(made.len(), 5);
    // What is acknowledged so far reaches the standby.
    let lag =
        "SELECT COUNT(*) FROM pg_stat_replication WHERE replay_lsn < pg_current_wal_flush_lsn()";
    until("the standby to have it", PATIENCE, || (database.value(lag) == "0").then_some(()));
    let (data, _) = cluster.places();
    signal(data, "STOP");
    standby.promote();
    // Connections that are open stay with the old one.
    proxy.lead_to(standby.place().parse().expect("an address"));
    let first = until("a write on the new primary", PATIENCE, || {
        if node.home.log().contains(WENT_BACK) {
            return Some(None);
        }
        sender(&mut client).map(Some)
    });
    let Some(first) = first else {
        signal(data, "CONT");
        return None;
    };
    made.push(first);
    signal(data, "CONT");
    let (server, _) = standby.url.rsplit_once('/').expect("a URL");
    let promoted = format!("{server}/{}", database.name);
    let mut lost_count = 0;
    let started = std::time::Instant::now();
    while started.elapsed() < Duration::from_secs(6) {
        // Connections come and go, as they do over a day.
        let _ = try_sql(
            &promoted,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE \
             application_name = 'hundi' AND random() < 0.2",
        );
        made.extend(sender(&mut client));
        for id in made.iter().rev().take(3) {
            let seen = client.once("GET", &format!("/v1/senders/{id}"), None, None);
            lost_count += usize::from(seen.is_ok_and(|answer| answer.status == 404));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    node.kill();
    // What the new primary has is what counts.
    let there = "SELECT COUNT(*) FROM senders";
    let kept: usize =
        try_sql(&promoted, there).expect("the new primary")[0][0].parse().expect("one");
    println!("{} acknowledged, {kept} kept, {lost_count} reads found nothing", made.len());
    Some((lost_count + made.len().saturating_sub(kept), made.len(), node.home))
}

#[test]
fn an_old_primary_that_wakes_is_not_used() {
    let (lost_count, made_count, home) = zombie(Reach::BothNamed, None);
    assert!(made_count > 10, "only {made_count} senders were made");
    assert_eq!(lost_count, 0);
    assert!(home.log().contains("old_primary"), "no alarm");
}

#[test]
fn control_without_the_fence_an_old_primary_is_used() {
    let (lost_count, ..) = zombie(Reach::BothNamed, Some("no_fence"));
    assert!(lost_count > 0, "nothing was lost without the fence");
}

/// The URL has one host, such as a floating address. Connections that were open go on with the old
/// primary when it wakes.
#[test]
fn an_old_primary_behind_an_address_that_moved_is_not_used() {
    let (lost_count, made_count, _) = zombie(Reach::AddressMoves, None);
    assert!(made_count > 10, "only {made_count} senders were made");
    assert_eq!(lost_count, 0);
}

/// A database that was made anew takes the place of the one that a node works with.
fn replaced(replace: impl FnOnce(&Cluster, &Database, &Proxy)) {
    let cluster = Cluster::start(&[]);
    let database = Database::in_cluster(&cluster.url);
    let proxy = Proxy::start(database.server_address(), &cluster.url, 1);
    let url = format!("postgres://postgres@{}/{}", proxy.address, database.name);
    let node = Node::start(home(&url).with("HUNDI_DATABASE_CONNECTIONS", "6"));
    let api_key = node.home.key();
    sender(&mut node.client(&api_key)).expect("a sender");
    let marks = "SELECT convert_from(value, 'UTF8') FROM meta WHERE name = 'database_mark'";
    until("a mark", PATIENCE, || (database.value(marks).len() > 2).then_some(()));
    replace(&cluster, &database, &proxy);
    until("the node to notice", PATIENCE, || node.home.log().contains(WENT_BACK).then_some(()));
    until("the node to say what to do", PATIENCE, || {
        let ready = node.client("").get("/readyz");
        (ready.status == 503 && ready.text().contains("hundi resume database")).then_some(())
    });
    // The key is known for a second, and then looked up in what is there now.
    for _ in 0..3 {
        let made = steps::sender_once(&mut node.client(&api_key)).expect("an answer");
        assert_eq!(made.status, 503, "{}", made.text());
        std::thread::sleep(Duration::from_millis(700));
    }
    node.home.run(&["resume", "database"]).expect_success("resume");
    let made_anew = node.home.key();
    until("the node to go on", PATIENCE, || sender(&mut node.client(&made_anew)));
    until("the node to be ready", PATIENCE, || node.is_ready().then_some(()));
}

#[test]
fn a_database_made_anew_is_not_written_until_the_operator_resumes() {
    replaced(|cluster, database, _| {
        sql(&cluster.url, &format!("DROP DATABASE {} WITH (FORCE)", database.name));
        sql(&cluster.url, &format!("CREATE DATABASE {} TEMPLATE template0", database.name));
    });
}

#[test]
fn another_cluster_is_not_written_until_the_operator_resumes() {
    let other = Cluster::start(&[]);
    replaced(|_, database, proxy| {
        sql(&other.url, &format!("CREATE DATABASE {} TEMPLATE template0", database.name));
        proxy.lead_to(Database::in_cluster(&other.url).server_address());
        proxy.cut();
    });
}

#[test]
fn a_database_that_went_back_in_time_is_not_written_until_the_operator_resumes() {
    let cluster = Cluster::start(&[]);
    let database = Database::in_cluster(&cluster.url);
    let node = Node::start(home(&database.url()).with("HUNDI_DATABASE_CONNECTIONS", "6"));
    let api_key = node.home.key();
    let mut client = node.client(&api_key);
    sender(&mut client).expect("a sender");
    let marks = "SELECT convert_from(value, 'UTF8') FROM meta WHERE name = 'database_mark'";
    until("a mark", PATIENCE, || (database.value(marks).len() > 2).then_some(()));
    // A copy of now takes the database's place later.
    let earlier = format!("{}_earlier", database.name);
    cluster.sql_alone(
        &database.name,
        &format!("CREATE DATABASE {earlier} TEMPLATE {}", database.name),
    );
    let before = database.value(marks);
    until("a later mark", PATIENCE, || (database.value(marks) != before).then_some(()));
    let lost = sender(&mut client).expect("a sender that the restore loses");
    cluster.sql_alone(
        &database.name,
        &format!(
            "ALTER DATABASE {0} RENAME TO {0}_later; ALTER DATABASE {earlier} RENAME TO {0}",
            database.name
        ),
    );
    until("the node to notice", PATIENCE, || {
        node.home.log().contains("database_went_back").then_some(())
    });
    assert!(sender(&mut client).is_none(), "it writes");
    assert!(!node.is_ready(), "it says that it is ready");
    // Each lane that lost its connection may refuse one request before it makes a new one.
    let status = until("a read", PATIENCE, || {
        let status = client.get(&format!("/v1/senders/{lost}")).status;
        (status != 503).then_some(status)
    });
    assert_eq!(status, 404);
    std::thread::sleep(Duration::from_secs(3));
    assert!(sender(&mut client).is_none(), "it writes again by itself");
    node.home.run(&["resume", "database"]).expect_success("resume");
    until("the node to go on", PATIENCE, || sender(&mut client));
    until("the node to be ready", PATIENCE, || node.is_ready().then_some(()));
    node.home.check().expect_success("the check");
    let _ = try_sql(&cluster.url, &format!("DROP DATABASE {}_later WITH (FORCE)", database.name));
}

/// The only write that a standby lacks was acknowledged by one node. The other one knows nothing of
/// it: it is frozen from before that write until the first has noticed.
#[test]
fn one_lost_write_stops_every_node() {
    let cluster = Cluster::start(&[]);
    let standby = cluster.start_copy(cluster.base_backup(STANDBY, &["-R"]), &[]);
    let database = Database::in_cluster(&cluster.url);
    let servers = format!("{},{}", database.server_address(), standby.place());
    let url = format!("postgres://postgres@{servers}/{}", database.name);
    let nodes = [(); 2].map(|()| Node::start(home(&url).with("HUNDI_DATABASE_CONNECTIONS", "6")));
    let [knows, frozen] = &nodes;
    let api_key = knows.home.key();
    let (mut client, mut client_of_frozen) = (knows.client(&api_key), frozen.client(&api_key));
    sender(&mut client).expect("a sender");
    sender(&mut client_of_frozen).expect("a sender");
    frozen.signal("STOP");
    let lag =
        "SELECT COUNT(*) FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_flush_lsn()";
    until("the standby to have it", PATIENCE, || (database.value(lag) == "1").then_some(()));
    sql(&standby.url, "ALTER SYSTEM SET primary_conninfo = ''");
    sql(&standby.url, "SELECT pg_reload_conf()");
    until("the standby to be cut off", PATIENCE, || {
        (database.value("SELECT COUNT(*) FROM pg_stat_replication") == "0").then_some(())
    });
    let lost = sender(&mut client).expect("a sender that the fail-over loses");
    cluster.stop_now();
    standby.promote();
    let alarmed = |node: &Node| {
        until("a node to notice", PATIENCE, || node.home.log().contains(WENT_BACK).then_some(()));
    };
    alarmed(knows);
    let (server, _) = standby.url.rsplit_once('/').expect("a URL");
    let mark = "SELECT convert_from(value, 'UTF8') FROM meta WHERE name = 'database_mark'";
    until("the node to tell", PATIENCE, || {
        let rows = try_sql(&format!("{server}/{}", database.name), mark).expect("the mark");
        rows[0][0].ends_with(":lost").then_some(())
    });
    frozen.signal("CONT");
    alarmed(frozen);
    assert!(frozen.home.log().contains("another node found"), "it cannot know by itself");
    // One that starts now has seen nothing.
    let later = knows.home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(!later.status.success(), "a node starts");
    assert!(later.stderr.contains("hundi resume database"));
    for node in &nodes {
        assert!(!node.is_ready(), "a node is ready");
        assert!(sender(&mut node.client(&api_key)).is_none(), "a node writes");
        assert_eq!(node.client(&api_key).get(&format!("/v1/senders/{lost}")).status, 404);
    }
    knows.home.run(&["resume", "database"]).expect_success("resume");
    for node in &nodes {
        until("a node to go on", PATIENCE, || sender(&mut node.client(&api_key)));
        until("a node to be ready", PATIENCE, || node.is_ready().then_some(()));
    }
}

/// A frozen machine takes connections and says nothing.
#[test]
fn a_silent_server_delays_no_connection() {
    const ROUNDS: usize = 16;
    const TOGETHER_MAX: Duration = Duration::from_secs(30);
    let database = Database::fresh();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let servers =
        format!("{},{}", silent.local_addr().expect("an address"), database.server_address());
    let url = format!("postgres://postgres@{servers}/{}", database.name);
    let node = Node::start(home(&url).with("HUNDI_DATABASE_CONNECTIONS", "4"));
    let mut client = node.client(&node.home.key());
    let mut waited = Duration::ZERO;
    for _ in 0..ROUNDS {
        database.terminate_connections();
        let started = std::time::Instant::now();
        until("a write on a new connection", PATIENCE, || sender(&mut client));
        waited += started.elapsed();
    }
    println!("{ROUNDS} new connections took {waited:?}");
    assert!(waited < TOGETHER_MAX, "{ROUNDS} new connections took {waited:?}");
}
