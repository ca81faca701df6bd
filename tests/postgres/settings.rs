//! What a connection sees to, whatever the server's, the database's or the role's settings say: an
//! acknowledged write is kept.

use hundi::kernel::Clock;
use hundi::store::postgres::PostgresUrl;
use hundi::store::{Cost, Store};

use crate::nodes::home;
use crate::support::postgres::{Cluster, Database, try_sql};

const CONNECTIONS_COUNT: usize = 4;

/// What the service's own connections have, those that write and those that read.
async fn seen_by_the_service(url: &str) -> [String; 2] {
    let url = PostgresUrl::parse(url).expect("an address");
    let store = Store::connect(&url, Clock::System, CONNECTIONS_COUNT).await.expect("the store");
    const SHOW: &str = "SHOW synchronous_commit";
    let written =
        store.write(|tx, _| Ok(tx.row(SHOW, &[])?.expect("a row").text()?)).await.expect("a write");
    let read = store
        .read(Cost::Point, |tx| Ok(tx.row(SHOW, &[])?.expect("a row").text()?))
        .await
        .expect("a read");
    store.close().await;
    [written, read]
}

#[tokio::test]
async fn a_role_that_does_not_wait_for_the_disk_is_overruled() {
    let database = Database::fresh();
    let role = format!("{}_hasty", database.name);
    database.sql(&format!("CREATE ROLE {role} LOGIN; GRANT ALL ON SCHEMA public TO {role}"));
    let url = database.url().replacen("postgres@", &format!("{role}@"), 1);
    for (set, wanted) in [
        ("off", "on"),
        ("local", "on"),
        ("on", "on"),
        ("remote_write", "remote_write"),
        ("remote_apply", "remote_apply"),
    ] {
        database.sql(&format!("ALTER ROLE {role} SET synchronous_commit = {set}"));
        // The control: the role's other connections have what was set.
        assert_eq!(try_sql(&url, "SHOW synchronous_commit").expect("a look"), [[set]]);
        assert_eq!(seen_by_the_service(&url).await, [wanted, wanted], "a role with {set}");
    }
    // The same for a whole database.
    database.sql(&format!(
        "ALTER ROLE {role} RESET synchronous_commit; ALTER DATABASE {} SET \
     synchronous_commit = off",
        database.name
    ));
    assert_eq!(try_sql(&url, "SHOW synchronous_commit").expect("a look"), [["off"]]);
    assert_eq!(seen_by_the_service(&url).await, ["on", "on"]);
    database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

/// What no connection can overrule is told of, at the start and by the doctor.
#[test]
fn a_server_that_does_not_sync_is_told_of() {
    for (fsync, is_told) in [("off", true), ("on", false)] {
        let cluster =
            Cluster::start(&[&format!("fsync={fsync}"), &format!("full_page_writes={fsync}")]);
        let database = Database::in_cluster(&cluster.url);
        let home = home(&database.url());
        drop(home.start());
        for name in ["fsync", "full_page_writes"] {
            let sentence = format!("the server's {name} is off");
            assert_eq!(home.log().contains(&sentence), is_told, "{fsync}: {}", home.log());
            let told = home.run(&["doctor"]).stdout;
            let line = told
                .lines()
                .find(|line| line.starts_with("database"))
                .unwrap_or_else(|| panic!("nothing of the database: {told}"));
            assert_eq!(line.contains(&sentence), is_told, "{line}");
            assert_eq!(line.contains(" ok "), !is_told, "{line}");
        }
    }
}
