//! A query that is sent ahead answers what it would have answered where it is asked, and saves its
//! way to the server.

use std::sync::atomic::Ordering;

use hundi::kernel::{Clock, OperationError, StoreError};
use hundi::store::handle::no_epilogue;
use hundi::store::postgres::PostgresUrl;
use hundi::store::{Store, Tx};
use hundi::values;

use crate::support::postgres::Database;

const FIND: &str = "SELECT value FROM meta WHERE name = ?1";
const INSERT: &str = "INSERT INTO meta (name, value) VALUES (?1, ?2)";
const UPDATE: &str = "UPDATE meta SET value = ?2 WHERE name = ?1";
/// Statements are prepared once on each connection, so the least of several counts is the
/// transaction's own.
const TRIES_COUNT: usize = 20;

fn find(tx: &mut dyn Tx, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
    tx.row(FIND, values![name])?.map(|mut row| row.bytes()).transpose()
}

/// What a rule sees at each step; the same on every store.
fn steps(tx: &mut dyn Tx) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
    let mut seen = Vec::new();
    // Sent behind the statement that follows: it sees what that wrote.
    tx.prefetch(FIND, values!["a"])?;
    tx.execute(INSERT, values!["a", b"1"])?;
    seen.push(find(tx, "a")?);
    // Sent ahead, and then something else is written.
    tx.prefetch(FIND, values!["a"])?;
    tx.execute(UPDATE, values!["a", b"2"])?;
    tx.execute(UPDATE, values!["a", b"3"])?;
    seen.push(find(tx, "a")?);
    // The same with a statement that may be sent later.
    tx.prefetch(FIND, values!["a"])?;
    tx.execute(UPDATE, values!["a", b"4"])?;
    tx.execute_one(UPDATE, values!["a", b"5"])?;
    seen.push(find(tx, "a")?);
    // The same with one that answers rows.
    tx.prefetch(FIND, values!["a"])?;
    tx.execute(UPDATE, values!["a", b"6"])?;
    tx.rows("UPDATE meta SET value = ?2 WHERE name = ?1 RETURNING name", values!["a", b"5"])?;
    seen.push(find(tx, "a")?);
    // Another value than the one that was sent ahead, and that one twice.
    tx.prefetch(FIND, values!["a"])?;
    tx.execute(INSERT, values!["b", b"6"])?;
    seen.extend([find(tx, "b")?, find(tx, "a")?, find(tx, "a")?]);
    // A part is opened, and undone with what was read in it.
    tx.prefetch(FIND, values!["a"])?;
    tx.savepoint()?;
    tx.prefetch(FIND, values!["a"])?;
    tx.execute(UPDATE, values!["a", b"7"])?;
    tx.rollback_and_release()?;
    seen.push(find(tx, "a")?);
    // Everything is undone.
    tx.prefetch(FIND, values!["a"])?;
    tx.execute(UPDATE, values!["a", b"8"])?;
    tx.rollback_to()?;
    seen.push(find(tx, "a")?);
    Ok(seen)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_ahead_is_what_is_read_in_its_place() {
    let database = Database::fresh();
    let url = PostgresUrl::parse(&database.url()).expect("an address");
    let shared = Store::connect(&url, Clock::System, 4).await.expect("the schema");
    let folder = std::env::temp_dir().join(format!("hundi-ahead-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let embedded = Store::open(&folder.join("ahead.db"), Clock::System, no_epilogue)
        .expect("the embedded store");
    let expected: Vec<Option<Vec<u8>>> = ["1", "3", "5", "5", "6", "5", "5", "5"]
        .iter()
        .map(|text| Some(text.as_bytes().to_vec()))
        .chain([None])
        .collect();
    for store in [&shared, &embedded] {
        // Whatever a transaction does it leaves nothing here, so it can run several times: on every
        // connection.
        for _ in 0..TRIES_COUNT {
            let seen = store.write(|tx, _| Ok(steps(tx)?)).await.expect("the steps");
            assert_eq!(seen, expected);
        }
    }
    shared.close().await;
    embedded.close().await;
    std::fs::remove_dir_all(folder).expect("the folder");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_ahead_costs_no_way_of_its_own() {
    let database = Database::fresh();
    let url = PostgresUrl::parse(&database.url()).expect("an address");
    let store = Store::connect(&url, Clock::System, 4).await.expect("the schema");
    let mut least = [u64::MAX; 2];
    for is_ahead in [true, false].repeat(TRIES_COUNT) {
        let before = store.stats.round_trips.load(Ordering::SeqCst);
        let work =
            move |tx: &mut dyn Tx, _: &mut hundi::kernel::Now| -> Result<(), OperationError> {
                if is_ahead {
                    tx.prefetch(FIND, values!["a"])?;
                    tx.prefetch(FIND, values!["b"])?;
                }
                tx.execute(UPDATE, values!["nothing", b"1"])?;
                assert_eq!((find(tx, "a")?, find(tx, "b")?), (None, None));
                Ok(())
            };
        store.write(work).await.expect("a transaction");
        let count = store.stats.round_trips.load(Ordering::SeqCst) - before;
        least[usize::from(is_ahead)] = least[usize::from(is_ahead)].min(count);
    }
    store.close().await;
    // The update, each of the two queries where they go by themselves, and the commit.
    assert_eq!(least, [4, 2]);
}
