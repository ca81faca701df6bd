//! What becomes of an endpoint while events are fanned out to it, or delivered again.

use std::future::Future;
use std::sync::mpsc;
use std::time::Duration;

use hundi::events;
use hundi::events::rows::EventRow;
use hundi::kernel::id::kind;
use hundi::kernel::{Clock, Id, Metadata, Mode, Now, OperationError, Scope};
use hundi::store::postgres::PostgresUrl;
use hundi::store::{Store, Tx};
use hundi::webhooks::deliveries::{Finished, Replay, purge_deleted, record_attempts, replay};
use hundi::webhooks::fan_out::Subscribers;
use hundi::webhooks::schedule::{DISABLED_AFTER_SECONDS, DISABLED_FAILURES_MIN, Health};
use hundi::webhooks::state::EndpointStatus;
use hundi::webhooks::{self, Endpoint, EventFilters, rows};

use crate::support::postgres::Database;
use crate::support::steps;

const SCOPE: Scope = Scope::new(1, Mode::Test);
const TYPE: &str = "transfer.status.funded";
/// Deliveries that nothing will ever remove, deliver or show.
const ORPHANS: &str = "SELECT COUNT(*) FROM webhook_deliveries d WHERE NOT EXISTS (SELECT 1 FROM \
 webhook_queues q WHERE q.endpoint_id = d.endpoint_id)";
const WAITING: &str = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
 AND wait_event_type = 'Lock' AND query LIKE '%webhook_queues%'";

/// A database with one endpoint, and a store on it.
struct Stage {
    database: Database,
    store: Store,
    endpoint_id: Id<kind::WebhookEndpoint>,
}

impl Stage {
    async fn new() -> Stage {
        let database = Database::fresh();
        let url = PostgresUrl::parse(&database.url()).expect("an address");
        let store = Store::connect(&url, Clock::System, 12).await.expect("the schema");
        let endpoint = store.write(|tx, now| make_endpoint(tx, now)).await.expect("an endpoint");
        Stage { database, store, endpoint_id: endpoint.id }
    }

    async fn until(&self, is_so: impl Fn() -> bool) {
        let started = std::time::Instant::now();
        while !is_so() {
            assert!(started.elapsed() < steps::PATIENCE, "it did not come to that");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Deletes the endpoint, and purges what was for it.
    fn delete(&self) -> impl Future<Output = Result<(), OperationError>> + Send + use<> {
        let (store, id) = (self.store.clone(), self.endpoint_id);
        async move {
            let delete = move |tx: &mut dyn Tx, _: &mut Now| {
                let Some(endpoint) = rows::find(tx, SCOPE, id)? else { return Ok(()) };
                Ok(webhooks::delete(tx, &endpoint)?)
            };
            store.write(delete).await?;
            store.write(|tx, _| Ok(purge_deleted(tx, 100)?)).await.map(|_| ())
        }
    }
}

fn make_endpoint(tx: &mut dyn Tx, now: &mut Now) -> Result<Endpoint, OperationError> {
    let endpoint = Endpoint {
        scope: SCOPE,
        id: now.mint(),
        version: 1,
        url: "https://example.com/".into(),
        description: None,
        enabled_events: EventFilters::from_text(TYPE.into()),
        status: EndpointStatus::Enabled,
        disabled_reason: None,
        disabled_milliseconds: None,
        secrets_sealed: vec![0],
        metadata: Metadata::default(),
        created: now.business(),
    };
    rows::insert(tx, &endpoint)?;
    rows::queue_insert(tx, SCOPE, endpoint.id)?;
    Ok(endpoint)
}

fn event(now: &mut Now, event_type: &str) -> EventRow {
    EventRow {
        id: now.mint(),
        event_type: event_type.into(),
        linked: now.mint::<kind::Transfer>().any(),
        created: now.business(),
    }
}

/// A place where a transaction waits when it comes there for the first time.
struct Stop {
    tell: Option<tokio::sync::oneshot::Sender<()>>,
    released: mpsc::Receiver<()>,
}

impl Stop {
    fn new() -> (Stop, tokio::sync::oneshot::Receiver<()>, mpsc::Sender<()>) {
        let ((tell, told), (release, released)) =
            (tokio::sync::oneshot::channel(), mpsc::channel());
        (Stop { tell: Some(tell), released }, told, release)
    }

    fn wait(&mut self) {
        if let Some(tell) = self.tell.take() {
            let _ = tell.send(());
            let _ = self.released.recv_timeout(steps::PATIENCE);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_at_an_endpoint_that_is_deleted_leaves_nothing_behind() {
    let stage = Stage::new().await;
    stage
        .store
        .write(|tx, now| {
            Ok(events::emit(tx, now, SCOPE, TYPE, Id::<kind::Transfer>::from_u128(7).any())?)
        })
        .await
        .expect("an event");
    // The endpoint has no delivery of it yet.
    stage
        .store
        .write(|tx, now| Ok(webhooks::sequencer::sequence(tx, now)?))
        .await
        .expect("the sequencer");
    stage.database.sql("DELETE FROM webhook_deliveries");
    let (mut stop, stopped, release) = Stop::new();
    let id = stage.endpoint_id;
    let replaying = stage.store.write(move |tx, now| {
        let Some(endpoint) = rows::find(tx, SCOPE, id)? else { return Ok(None) };
        stop.wait();
        let range = Replay::Range {
            since: now.instant() - 60,
            until: now.instant() + 60,
            only_failed: false,
        };
        replay(tx, now, &endpoint, range).map(Some)
    });
    let deleting = async {
        stopped.await.expect("the replay");
        stage.delete().await.expect("the deletion");
        release.send(()).expect("the replay");
    };
    let (replayed, ()) = tokio::join!(replaying, deleting);
    assert_eq!(replayed.expect("an answer"), None, "the endpoint was gone");
    assert_eq!(stage.database.value(ORPHANS), "0");
    stage.store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_for_an_endpoint_that_is_deleted_leaves_nothing_behind() {
    let stage = Stage::new().await;
    let (mut stop, stopped, release) = Stop::new();
    let fanning = stage.store.write(move |tx, now| {
        let mut subscribers = Subscribers::default();
        // This one only makes the sequencer look who there is.
        let unwanted = event(now, "payout.status.settled");
        subscribers.fan_out(tx, now, SCOPE, &unwanted)?;
        stop.wait();
        let wanted = event(now, TYPE);
        Ok(subscribers.fan_out(tx, now, SCOPE, &wanted)?)
    });
    let deletion = stage.delete();
    let meanwhile = async {
        stopped.await.expect("the fan-out");
        let deleting = tokio::spawn(deletion);
        // Either it is over, or it waits for the fan-out.
        stage.until(|| deleting.is_finished() || stage.database.value(WAITING) != "0").await;
        release.send(()).expect("the fan-out");
        deleting.await.expect("the deletion").expect("the deletion");
    };
    let (fanned, ()) = tokio::join!(fanning, meanwhile);
    fanned.expect("the fan-out");
    assert_eq!(stage.database.value(ORPHANS), "0");
    stage.store.close().await;
}

/// The sequencer looks at an endpoint while the attempt is being written down that disables it.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_for_an_endpoint_that_is_disabled_meanwhile_is_only_recorded() {
    let stage = Stage::new().await;
    let id = stage.endpoint_id;
    let fan_out = |tx: &mut dyn Tx, now: &mut Now| {
        let wanted = event(now, TYPE);
        Ok(Subscribers::default().fan_out(tx, now, SCOPE, &wanted)?)
    };
    stage.store.write(fan_out).await.expect("a delivery");
    // As after five days of failures.
    let failed_long_ago = move |tx: &mut dyn Tx, now: &mut Now| {
        let first_failure_milliseconds =
            Some(now.instant_milliseconds() - (DISABLED_AFTER_SECONDS + 1) * 1_000);
        Ok(rows::queue_health(
            tx,
            id,
            Health { first_failure_milliseconds, failures_count: DISABLED_FAILURES_MIN },
        )?)
    };
    stage.store.write(failed_long_ago).await.expect("a health");
    let (mut stop, stopped, release) = Stop::new();
    let recording = stage.store.write(move |tx, now| {
        let delivery = rows::deliveries_of_events(
            tx,
            id,
            Id::from_u128(0),
            Id::from_u128(u128::MAX),
            0..=i64::MAX,
            1,
        )?
        .remove(0);
        let attempt = Finished {
            delivery_id: delivery.id,
            schedule_start_milliseconds: delivery.schedule_start_milliseconds,
            step: delivery.step,
            attempts_count: delivery.attempts_count,
            lease_milliseconds: delivery.due_milliseconds.unwrap_or_default(),
            attempted_milliseconds: now.instant_milliseconds(),
            is_success: false,
            http_status: Some(500),
            error: None,
            duration_milliseconds: 3,
            answer: String::new(),
            retry_after_seconds: None,
        };
        record_attempts(tx, now, id, &[&attempt])?;
        stop.wait();
        Ok(rows::find(tx, SCOPE, id)?.map(|endpoint| endpoint.status))
    });
    let fanning = async {
        stopped.await.expect("the attempt");
        let fanning = stage.store.write(fan_out);
        let meanwhile = async {
            stage.until(|| stage.database.value(WAITING) != "0").await;
            release.send(()).expect("the attempt");
        };
        tokio::join!(fanning, meanwhile).0
    };
    let (recorded, fanned) = tokio::join!(recording, fanning);
    assert_eq!(recorded.expect("the attempt"), Some(EndpointStatus::Disabled));
    fanned.expect("the fan-out");
    let statuses =
        stage.database.value("SELECT string_agg(status, ' ' ORDER BY id) FROM webhook_deliveries");
    assert_eq!(statuses, "recorded recorded");
    assert_eq!(
        stage
            .database
            .value("SELECT COUNT(*) FROM webhook_deliveries WHERE due_milliseconds IS NOT NULL"),
        "0"
    );
    stage.store.close().await;
}
