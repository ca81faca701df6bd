//! A change of the encryption key that two nodes share.

use std::time::Duration;

use crate::nodes;
use crate::support::postgres::Database;
use crate::support::rotation::{self, Before, NEW_KEY, OLD_KEY, give, rotate};
use crate::support::{Home, until};

/// A place for a node that ends at once.
fn home(url: &str) -> Home {
    nodes::home(url).with("HUNDI_DRAIN_SECONDS", "0")
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "optimised builds do not contain the planted kills")]
fn key_of_two_nodes_changes_under_load_and_kills() {
    let database = Database::fresh();
    let mut homes: Vec<Home> = (0..2).map(|_| home(&database.url())).collect();
    rotation::changes_the_key(&mut homes);
}

/// A transaction that began before the change and holds a value of the old key is waited for.
#[test]
fn change_waits_for_what_began_before() {
    let database = Database::fresh();
    let mut home = home(&database.url());
    let server = home.start();
    let api_key = home.key();
    let before = Before::make(&mut server.client(&api_key));
    assert!(server.stop().success());
    give(&mut home, OLD_KEY, Some(NEW_KEY));
    // As a node's transaction does that has begun and not committed.
    let held = database.hold(
        "SELECT pg_advisory_xact_lock_shared(1752525412, CAST(CAST(FLOOR(EXTRACT(EPOCH FROM \
         clock_timestamp()) * 1000) AS BIGINT) % 4294967296 - 2147483648 AS INTEGER))",
    );
    let (told, telling) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| told.send(rotate(&home)));
        until("the new key to seal", Duration::from_secs(30), || {
            (database.value("SELECT COUNT(*) FROM encryption_rotations") == "1").then_some(())
        });
        assert!(telling.recv_timeout(Duration::from_secs(3)).is_err(), "it did not wait");
        let place = database.value("SELECT values_count FROM encryption_rotations");
        assert_eq!(place, "0", "values were sealed anew before");
        drop(held);
        let done = telling.recv_timeout(Duration::from_secs(60)).expect("an end");
        done.expect_success("the change");
    });
    give(&mut home, NEW_KEY, None);
    let server = home.start();
    before.still_works(&mut server.client(&api_key));
}
