//! What docs/postgresql.md says of backups and standbys, done as it says: a dump taken under load,
//! a moment in the past, a failover to a synchronous standby.

use std::time::Duration;

use crate::nodes::{Aftermath, Node, Nodes, await_service, home, under_load};
use crate::support::oracle;
use crate::support::postgres::{Cluster, Database, sql, try_sql};
use crate::support::random::seed;
use crate::support::{Client, steps, until};

/// The alarm of a database that lacks writes.
const WENT_BACK: &str = "database_went_back";
/// How long the last writes before a failover take to be many.
const UNDER_WAY: Duration = Duration::from_millis(1_500);

fn addresses(client: &mut Client) -> Vec<String> {
    let transfers = client.list("/v1/transfers", "");
    transfers
        .iter()
        .map(|transfer| {
            transfer["funding"]["deposit_address"].as_str().unwrap_or_default().to_owned()
        })
        .collect()
}

/// A node on restored data serves: its book is sound, what was paid before is there, and it pays.
fn expect_restored(url: &str, api_key: &str, paid_id: &str, addresses_before: &[String]) -> Node {
    home(url).check().expect_success("the check of what was restored");
    // The nodes of the data that were copied hold their leases in the copy for a few seconds.
    until("the leases to end", Duration::from_secs(60), || {
        home(url).run(&["addresses", "skip"]).status.success().then_some(())
    });
    let node = Node::start(home(url));
    let mut client = node.client(api_key);
    let paid =
        client.get(&format!("/v1/transfers/{paid_id}")).expect_success("a payment from before");
    assert_eq!(paid["status"], "payout_settled");
    let payment = steps::six_steps(&mut client, "43.00");
    let address = payment.settled["funding"]["deposit_address"].as_str().expect("an address");
    assert!(
        !addresses_before.iter().any(|known| known == address),
        "an address was handed out twice"
    );
    home(url).check().expect_success("the check afterwards");
    node
}

#[test]
fn a_dump_taken_under_load_restores() {
    let cluster = Cluster::start(&[]);
    let database = Database::in_cluster(&cluster.url);
    let mut nodes = Nodes::plain(2, &database.url());
    let paid = steps::six_steps(&mut nodes.client(), "42.00");
    let (_, programs) = cluster.places();
    let dump = cluster.folder().join("hundi.dump");
    let aftermath = under_load(&mut nodes, seed("HUNDI_POSTGRES_SEED"), false, |_, _| {
        std::thread::sleep(UNDER_WAY);
        cluster.run(
            "pg_dump",
            &["--format=custom", &format!("--file={}", dump.display()), &database.url()],
        );
        std::thread::sleep(UNDER_WAY);
    });
    assert_eq!(aftermath.losses_count(), 0, "{}", oracle::show(&aftermath.findings));
    assert_eq!(aftermath.unavailable_count, 0, "callers noticed the dump");
    assert!(programs.join("pg_restore").exists());
    let restored = Database::in_cluster(&cluster.url);
    let into = format!("--dbname={}", restored.url());
    cluster.run(
        "pg_restore",
        &["--exit-on-error", "--single-transaction", &into, &dump.to_string_lossy()],
    );
    let count = |database: &Database| {
        database.value("SELECT COUNT(*) FROM transfers").parse::<u64>().expect("a number")
    };
    let (then, now) = (count(&restored), count(&database));
    println!("{then} transfers in the dump, {now} in the end");
    assert!(
        1 < then && then < now,
        "the dump was not taken in the middle: {then} of {now} transfers"
    );
    let addresses = addresses(&mut nodes.client());
    expect_restored(&restored.url(), &nodes.api_key, &paid.transfer_id, &addresses);
    // The control: damage in what was restored is found.
    restored.sql(
        "DELETE FROM deposits WHERE id = (SELECT id FROM deposits WHERE status = \
     'completed' ORDER BY id LIMIT 1)",
    );
    assert!(
        !home(&restored.url()).check().status.success(),
        "a deposit is gone and the check passes"
    );
}

#[test]
fn a_moment_in_the_past_is_restored() {
    let cluster = Cluster::start(&[
        "archive_mode=on",
        "archive_command=mkdir -p ../wal && test ! -f ../wal/%f && cp %p ../wal/%f",
    ]);
    let database = Database::in_cluster(&cluster.url);
    let nodes = Nodes::plain(1, &database.url());
    let mut client = nodes.client();
    steps::six_steps(&mut client, "41.00");
    let base = cluster.base_backup("base", &[]);
    let before = steps::six_steps(&mut client, "42.00");
    let moment = database.value("SELECT clock_timestamp()");
    let after = steps::six_steps(&mut client, "44.00");
    let addresses = addresses(&mut client);
    let last = database.value("SELECT pg_walfile_name(pg_switch_wal())");
    until("the log to be archived", Duration::from_secs(60), || {
        let archived =
            database.value("SELECT COALESCE(last_archived_wal, '') FROM pg_stat_archiver");
        (archived.split('.').next() >= Some(last.as_str())).then_some(())
    });
    drop(nodes.nodes);
    cluster.stop_now();
    std::fs::write(base.join("recovery.signal"), "").expect("the signal to recover");
    let archive = cluster.folder().join("wal");
    let restored = cluster.start_copy(
        base,
        &[
            &format!("restore_command=cp {}/%f %p", archive.display()),
            &format!("recovery_target_time={moment}"),
            "recovery_target_action=promote",
            "archive_mode=off",
        ],
    );
    let url = database.url().replacen(&database.server_address().to_string(), restored.place(), 1);
    until("the server to take writes", Duration::from_secs(60), || {
        (try_sql(&url, "SELECT pg_is_in_recovery()").ok()? == [["f"]]).then_some(())
    });
    let node = expect_restored(&url, &nodes.api_key, &before.transfer_id, &addresses);
    // What came after the moment is not there: the moment was met.
    assert_eq!(
        node.client(&nodes.api_key).get(&format!("/v1/transfers/{}", after.transfer_id)).status,
        404
    );
}

/// Loses the first server under load and goes on with its standby; answers what the callers saw.
fn failover(is_synchronous: bool) -> Aftermath {
    let cluster = Cluster::start(&[]);
    let database = Database::in_cluster(&cluster.url);
    let copy = cluster.base_backup("a", &["--write-recovery-conf"]);
    let standby = cluster.start_copy(copy, &[]);
    if is_synchronous {
        cluster.set(&["synchronous_standby_names=ANY 1 (a, b)"]);
    }
    let wanted = if is_synchronous { "quorum" } else { "async" };
    until("the standby to follow", Duration::from_secs(30), || {
        (database.value("SELECT sync_state FROM pg_stat_replication WHERE application_name = 'a'")
            == wanted)
            .then_some(())
    });
    // Both servers, the standby too, and nobody says which of them takes writes.
    let server = database.server_address().to_string();
    let url = database.url().replacen(&server, &format!("{server},{}", standby.place()), 1);
    let mut nodes = Nodes::plain(2, &url);
    under_load(&mut nodes, seed("HUNDI_POSTGRES_SEED"), is_synchronous, |nodes, _| {
        std::thread::sleep(UNDER_WAY);
        if !is_synchronous {
            // It falls behind, as one over a slow line does.
            sql(&standby.url, "ALTER SYSTEM SET primary_conninfo = ''");
            sql(&standby.url, "SELECT pg_reload_conf()");
            std::thread::sleep(UNDER_WAY);
        }
        cluster.stop_now();
        standby.promote();
        if !is_synchronous {
            // Every node waits for the operator.
            for node in &nodes.nodes {
                until("a node to notice", Duration::from_secs(30), || {
                    node.home.log().contains(WENT_BACK).then_some(())
                });
                assert!(!node.is_ready(), "a node is ready on a database that lacks writes");
            }
            nodes.nodes[0].home.run(&["resume", "database"]).expect_success("resume");
        }
        println!("back {:?} after the promotion", await_service(nodes));
        std::thread::sleep(UNDER_WAY);
        if is_synchronous {
            nodes.check();
            let is_alarmed = nodes.nodes.iter().any(|node| node.home.log().contains(WENT_BACK));
            assert!(!is_alarmed, "an alarm, and nothing was lost");
        }
    })
}

#[test]
fn a_failover_to_a_synchronous_standby_loses_nothing() {
    let aftermath = failover(true);
    aftermath.tell("a failover to a synchronous standby");
    aftermath.expect_sound();
}

/// The same with a standby that lags and is waited for by nobody: were the judge blind, it would
/// find nothing here either.
#[test]
fn a_failover_that_loses_writes_is_found_out() {
    let aftermath = failover(false);
    aftermath
        .tell(&format!("a failover to a standby that lagged lost {}", aftermath.losses_count()));
    assert!(
        aftermath.losses_count() > 0,
        "a standby that lagged was promoted, and nothing is missed"
    );
}
