//! A caller that pages a list from its last identifier sees every object once, however many nodes
//! write (contract: lists).

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use hundi::kernel::id::kind;
use hundi::kernel::page::Page;
use hundi::kernel::{Clock, Code, Id, Now, Refusal, StoreError};
use hundi::store::idempotency::{self, AnswerSealer, Claim, ClaimOutcome};
use hundi::store::list::{self, Listing};
use hundi::store::postgres::PostgresUrl;
use hundi::store::{Cost, Store, Tx};
use hundi::values;

use crate::nodes::Nodes;
use crate::support::postgres::Database;
use crate::support::{Client, steps, until};

const NODES_COUNT: usize = 3;
const WRITERS_COUNT: usize = 16;
/// How long the writers write, and how long the control is given to miss something.
const WRITING: Duration = Duration::from_secs(4);
const CONTROL_MAX: Duration = Duration::from_secs(12);

/// Pages from the last identifier, from any node, until it is over and nothing more comes.
fn page_senders(mut clients: Vec<Client>, is_over: &AtomicBool) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    loop {
        let is_last = is_over.load(Ordering::Relaxed);
        clients.rotate_left(1);
        let cursor = seen.last().map_or(String::new(), |last| format!("&starting_after={last}"));
        let page =
            clients[0].get(&format!("/v1/senders?limit=20{cursor}")).expect_success("a page");
        let data = page["data"].as_array().cloned().unwrap_or_default();
        if data.is_empty() && is_last {
            return seen;
        }
        if data.is_empty() {
            std::thread::sleep(Duration::from_millis(2));
        }
        seen.extend(data.iter().map(|sender| steps::text(sender, "id")));
    }
}

/// Writes senders over all nodes with a pager beside; answers how many there are and how many the
/// pager never saw.
fn run(fault: Option<&str>, writing: Duration) -> (usize, usize) {
    let database = Database::fresh();
    let urls = vec![database.url(); NODES_COUNT];
    let nodes = Nodes::start(&urls, |_, home| home.with_fault(fault));
    let is_over = AtomicBool::new(false);
    let (seen, made) = std::thread::scope(|scope| {
        let is_over = &is_over;
        let clients = nodes.clients();
        let pager = scope.spawn(move || page_senders(clients, is_over));
        let writers: Vec<_> = (0..WRITERS_COUNT)
            .map(|index| {
                let mut client = nodes.nodes[index % NODES_COUNT].client(&nodes.api_key);
                scope.spawn(move || {
                    let (started, mut ids) = (Instant::now(), Vec::new());
                    while started.elapsed() < writing {
                        let sender = client.post("/v1/senders", &steps::sender_body());
                        ids.push(steps::text(&sender.expect_success("a sender"), "id"));
                    }
                    ids
                })
            })
            .collect();
        let made: Vec<String> =
            writers.into_iter().flat_map(|writer| writer.join().unwrap_or_default()).collect();
        is_over.store(true, Ordering::Relaxed);
        (pager.join().expect("the pager"), made)
    });
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "the pages rise");
    let known: HashSet<&String> = seen.iter().collect();
    let missed_count = made.iter().filter(|id| !known.contains(id)).count();
    println!("{} senders, {missed_count} never seen", made.len());
    (made.len(), missed_count)
}

#[test]
fn a_pager_misses_no_sender_that_any_node_makes() {
    let (made_count, missed_count) = run(None, WRITING);
    assert!(made_count > 200, "only {made_count} senders were made");
    assert_eq!(missed_count, 0);
}

#[test]
fn control_a_pager_that_does_not_wait_for_older_transactions_misses_some() {
    let started = Instant::now();
    while started.elapsed() < CONTROL_MAX {
        if run(Some("page_without_floor"), Duration::from_secs(2)).1 > 0 {
            return;
        }
    }
    panic!("nothing was missed without the floor");
}

fn insert(tx: &mut dyn Tx, now: &mut Now) -> Result<u128, hundi::kernel::OperationError> {
    let id: Id<kind::Sender> = now.mint();
    tx.execute_one("INSERT INTO kept_things (scope, id) VALUES (1, ?1)", values![id])?;
    Ok(id.as_u128())
}

async fn ids(store: &Store, after: u128) -> Vec<u128> {
    let read = move |tx: &mut dyn Tx| {
        let page =
            Page { limit: 100, starting_after: Some(after.to_be_bytes()), ..Page::default() };
        let listing = Listing { table: "kept_things", columns: "id", key: ("scope", 1_i64.into()) };
        let (rows, _) = list::read(tx, &listing, &page)?;
        let ids: Result<Vec<u128>, _> = rows
            .into_iter()
            .map(|mut row| row.id::<kind::Sender>())
            .map(|id| Ok(id?.as_u128()))
            .collect();
        ids
    };
    store.read(Cost::Point, read).await.expect("a page")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_ends_before_what_an_older_transaction_may_still_show() {
    let database = Database::fresh();
    let url = PostgresUrl::parse(&database.url()).expect("an address");
    let first = Store::connect(&url, Clock::System, 6).await.expect("the schema");
    let second = Store::connect(&url, Clock::System, 6).await.expect("the schema");
    database.sql("CREATE TABLE kept_things (scope BIGINT, id BYTEA)");

    // What one made and was answered is in its next page, on every node; a program that only
    // reads holds nothing back.
    let reader = database.hold("SELECT COUNT(*) FROM kept_things");
    let mut last = 0;
    for round in 0..100 {
        let (writer, other) = if round % 2 == 0 { (&first, &second) } else { (&second, &first) };
        let id = writer.write(insert).await.expect("a thing");
        assert_eq!(ids(other, last).await, [id], "round {round}");
        last = id;
    }
    drop(reader);

    // A transaction of the first node stays open with an identifier; the second node goes on.
    let (go, let_go) = mpsc::channel::<()>();
    let (ready, is_ready) = mpsc::channel();
    let open = {
        let (first, let_go) = (first.clone(), std::sync::Mutex::new(let_go));
        tokio::spawn(async move {
            let work = move |tx: &mut dyn Tx, now: &mut Now| {
                tx.rows("SELECT 1 FROM kept_things LIMIT 1", &[])?;
                let id = insert(tx, now)?;
                let _ = ready.send(id);
                let _ = let_go.lock().expect("one runs it").recv();
                Ok(id)
            };
            first.write(work).await
        })
    };
    let early = tokio::task::spawn_blocking(move || is_ready.recv()).await.expect("it runs");
    let early = early.expect("an identifier");
    // Two nodes' identifiers of one moment can be in either order.
    let late = second.write(insert).await.expect("a thing");
    for store in [&first, &second] {
        assert_eq!(ids(store, last).await, Vec::<u128>::new(), "the older one still runs");
    }
    go.send(()).expect("the transaction");
    open.await.expect("it ends").expect("the commit");
    for store in [&first, &second] {
        assert_eq!(ids(store, last).await, [early.min(late), early.max(late)]);
    }
    first.close().await;
    second.close().await;
}

/// How many transactions a database rolled back, once all connections to it have told theirs.
fn rollbacks_count(database: &Database) -> i64 {
    let others = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND \
                  backend_type = 'client backend' AND pid <> pg_backend_pid()";
    until("the connections to end", Duration::from_secs(20), || {
        (database.value(others) == "0").then_some(())
    });
    let count = "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()";
    database.value(count).parse().expect("a number")
}

/// Each page ends with a rollback, and each look at the running transactions is one more;
/// PostgreSQL counts them.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_in_the_middle_asks_for_no_running_transactions() {
    const PAGES: i64 = 200;
    let database = Database::fresh();
    let url = PostgresUrl::parse(&database.url()).expect("an address");
    let store = Store::connect(&url, Clock::System, 6).await.expect("the schema");
    database.sql("CREATE TABLE kept_things (scope BIGINT, id BYTEA)");
    for _ in 0..150 {
        store.write(insert).await.expect("a thing");
    }
    store.close().await;
    let mut looks = Vec::new();
    for in_the_middle in [true, false] {
        let before = rollbacks_count(&database);
        let reader = Store::connect(&url, Clock::System, 6).await.expect("the schema");
        // A page that reaches the end raises the floor that the node remembers.
        assert_eq!(ids(&reader, 0).await.len(), 100);
        let all = ids(&reader, 0).await;
        assert!(ids(&reader, all[99]).await.len() >= 50);
        for _ in 0..PAGES {
            if in_the_middle {
                assert_eq!(ids(&reader, 0).await.len(), 100);
            } else {
                // A new thing is above the floor each time.
                let id = reader.write(insert).await.expect("a thing");
                assert_eq!(ids(&reader, id - 1).await, [id]);
            }
        }
        reader.close().await;
        looks.push(rollbacks_count(&database) - before);
    }
    println!("rolled back for {PAGES} pages in the middle and at the end: {looks:?}");
    assert!(looks[0] < PAGES + PAGES / 10, "{looks:?}");
    assert!(looks[1] >= 2 * PAGES, "the control: {looks:?}");
}

/// Answers are not sealed here.
struct NoSeal;

impl AnswerSealer for NoSeal {
    fn seal(
        &self,
        _: &mut dyn Tx,
        _: &mut Now,
        _: &[u8],
        plain: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        Ok(plain.to_vec())
    }
    fn open(&self, _: &[u8], sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
        Ok(sealed.to_vec())
    }
}

/// A refusal is stored by a transaction that began again, and so is announced later than what the
/// request had minted. What it minted is undone, so that this does not matter.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_refused_after_it_minted_is_answered() {
    let database = Database::fresh();
    let url = PostgresUrl::parse(&database.url()).expect("an address");
    let store = Store::connect(&url, Clock::System, 4).await.expect("the schema");
    let claim = Claim { key_hash: [1; 16], fingerprint: [2; 32] };
    let refused = store.write_keyed(move |tx, now| {
        idempotency::run(tx, now, &claim, &NoSeal, &mut |_, now| {
            now.mint::<kind::Transfer>();
            std::thread::sleep(Duration::from_millis(5));
            Err(Refusal::new(Code::ParameterValueInvalid, "no").into())
        })
    });
    let refused = refused.await;
    assert!(matches!(refused, Ok(ClaimOutcome::Done(_))), "{refused:?}");
    store.close().await;
}
