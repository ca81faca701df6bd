//! Parts of a transaction, on either store: what is undone is not told after the commit, and a part
//! too many is refused without harm to the others.

use futures_util::FutureExt;
use hundi::kernel::{Clock, StoreError};
use hundi::store::handle::no_epilogue;
use hundi::store::postgres::PostgresUrl;
use hundi::store::{Signal, Store, Tx};
use tokio::sync::Notify;

use crate::support::postgres::Database;

/// Signals of each kind of work that is undone, between signals of work that stays.
fn undo_signals(tx: &mut dyn Tx) -> Result<(), StoreError> {
    tx.signal(Signal::LookUps);
    tx.rollback_to()?;
    tx.savepoint()?;
    tx.signal(Signal::Tasks);
    tx.rollback_and_release()?;
    tx.savepoint()?;
    tx.signal(Signal::Deliveries);
    tx.release()
}

/// Opens one part more than may be open.
fn open_too_many(tx: &mut dyn Tx) -> Result<bool, StoreError> {
    tx.savepoint()?;
    tx.savepoint()?;
    let is_refused = tx.savepoint().is_err();
    tx.rollback_and_release()?;
    tx.release()?;
    Ok(is_refused)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_undone_is_not_told() {
    let database = Database::fresh();
    let url = PostgresUrl::parse(&database.url()).expect("an address");
    let shared = Store::connect(&url, Clock::System, 4).await.expect("the schema");
    let folder = std::env::temp_dir().join(format!("hundi-untold-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let embedded = Store::open(&folder.join("untold.db"), Clock::System, no_epilogue)
        .expect("the embedded store");
    let mut told = Vec::new();
    // A job of the embedded store has a savepoint from its beginning; `sqlite.rs` tests that store.
    assert!(shared.write(|tx, _| Ok(open_too_many(tx)?)).await.expect("the steps"));
    for store in [&shared, &embedded] {
        store.write(|tx, _| Ok(undo_signals(tx)?)).await.expect("the steps");
        // The last signal of the commit is told, so those before it would have been.
        store.signals.deliveries.notified().await;
        let is_told = |signal: &Notify| signal.notified().now_or_never().is_some();
        told.push([&store.signals.look_ups, &store.signals.tasks].map(is_told));
    }
    assert_eq!(told, [[false; 2]; 2]);
    shared.close().await;
    embedded.close().await;
    std::fs::remove_dir_all(folder).expect("the folder");
}
