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
use hundi::webhooks::deliveries::{
    DueDelivery, FinishedAttempt, LEASE_MILLISECONDS, claim, purge_deleted, write_attempts,
};
use hundi::webhooks::fan_out::Subscribers;
use hundi::webhooks::replay::{Replay, replay};
use hundi::webhooks::schedule::{DISABLED_AFTER_SECONDS, DISABLED_FAILURES_MIN, EndpointHealth};
use hundi::webhooks::state::EndpointStatus;
use hundi::webhooks::{self, Endpoint, EventFilters, rows};

use crate::support::postgres::{Database, try_sql};
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
    make_endpoint_in(tx, now, SCOPE)
}

fn make_endpoint_in(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
) -> Result<Endpoint, OperationError> {
    let endpoint = Endpoint {
        scope,
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
        chaos_key_id: None,
    };
    rows::insert(tx, &endpoint)?;
    rows::queue_insert(tx, scope, endpoint.id)?;
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
        subscribers.fan_out(tx, now, SCOPE, &wanted)?;
        Ok(subscribers.finish(tx)?)
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

/// Whoever ends an attempt to a deleted endpoint needs its queue. So a purge that takes long, or
/// waits, must not have locked it.
#[tokio::test(flavor = "multi_thread")]
async fn a_purge_removes_queues_after_all_deliveries() {
    let stage = Stage::new().await;
    let delete_two = |tx: &mut dyn Tx, now: &mut Now| {
        make_endpoint(tx, now)?;
        events::emit(tx, now, SCOPE, TYPE, Id::<kind::Transfer>::from_u128(7).any())?;
        webhooks::sequencer::sequence(tx, now)?;
        for endpoint_id in rows::queues_after(tx, Id::from_u128(0), 10)? {
            let endpoint = rows::find(tx, SCOPE, endpoint_id)?.expect("an endpoint");
            webhooks::delete(tx, &endpoint)?;
        }
        Ok(())
    };
    stage.store.write(delete_two).await.expect("two deleted endpoints");
    // The purge comes to the second endpoint, and waits.
    let second = "SELECT 1 FROM webhook_deliveries ORDER BY endpoint_id DESC LIMIT 1 FOR UPDATE";
    let held = stage.database.hold(second);
    let store = stage.store.clone();
    let purging = tokio::spawn(async move {
        store.write(|tx, now| Ok(webhooks::worker::purge(tx, now, 100)?)).await
    });
    let waiting = WAITING.replace("webhook_queues", "webhook_deliveries");
    stage.until(|| stage.database.value(&waiting) != "0").await;
    let queues = "SELECT endpoint_id FROM webhook_queues FOR UPDATE NOWAIT";
    let free = try_sql(&stage.database.url(), queues).map(|rows| rows.len());
    drop(held);
    assert_eq!(purging.await.expect("the purge").expect("the purge"), 2);
    assert_eq!(free, Ok(2));
    assert_eq!(stage.database.value("SELECT COUNT(*) FROM webhook_queues"), "0");
    stage.store.close().await;
}

/// Two nodes read the same due deliveries, and the second claims while the first has not committed:
/// it waits for the rows that the first one changed, and takes those alone that it left.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_waited_for_another_takes_what_that_left() {
    const DUE_COUNT: usize = 70;
    let stage = Stage::new().await;
    let id = stage.endpoint_id;
    let emit = |tx: &mut dyn Tx, now: &mut Now| {
        for _ in 0..DUE_COUNT {
            let linked = now.mint::<kind::Transfer>().any();
            events::emit(tx, now, SCOPE, TYPE, linked)?;
        }
        Ok(webhooks::sequencer::sequence(tx, now)?)
    };
    stage.store.write(emit).await.expect("deliveries");
    let read = move |tx: &mut dyn Tx| Ok(rows::due(tx, SCOPE, id, None, i64::MAX - 1, 1_000)?);
    let due = stage.store.read(hundi::store::Cost::Scan, read).await.expect("due deliveries");
    assert_eq!(due.len(), DUE_COUNT);
    let every_third: Vec<_> = due.iter().step_by(3).cloned().collect();
    let (mut stop, stopped, release) = Stop::new();
    let first = stage.store.write(move |tx, now| {
        let lease_ends_milliseconds = now.instant_milliseconds() + LEASE_MILLISECONDS;
        let claimed = claim(tx, id, &every_third, false, lease_ends_milliseconds)?;
        stop.wait();
        Ok(claimed)
    });
    let second = async {
        stopped.await.expect("the first claim");
        let claim_all = stage.store.write(move |tx, now| {
            let lease_ends_milliseconds = now.instant_milliseconds() + 2 * LEASE_MILLISECONDS;
            Ok(claim(tx, id, &due, false, lease_ends_milliseconds)?)
        });
        let release_when_waiting = async {
            let waiting = WAITING.replace("webhook_queues", "webhook_deliveries");
            stage.until(|| stage.database.value(&waiting) != "0").await;
            release.send(()).expect("the first claim");
        };
        tokio::join!(claim_all, release_when_waiting).0.expect("the second claim")
    };
    let (first, second) = tokio::join!(first, second);
    assert!(first.expect("the first claim").iter().all(|is_claimed| *is_claimed));
    let expected: Vec<bool> = (0..DUE_COUNT).map(|index| index % 3 != 0).collect();
    assert_eq!(second, expected);
    stage.store.close().await;
}

/// A replay began a delivery again while an attempt ran, and both attempts are written down
/// together: the one whose lease was lost counts for nothing.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_attempts_of_a_delivery_the_one_with_the_lease_counts() {
    let stage = Stage::new().await;
    let id = stage.endpoint_id;
    let turn = move |tx: &mut dyn Tx, now: &mut Now| {
        // With the lost one as many as go into one statement.
        for number in 0..3 {
            let linked = Id::<kind::Transfer>::from_u128(number).any();
            events::emit(tx, now, SCOPE, TYPE, linked)?;
        }
        webhooks::sequencer::sequence(tx, now)?;
        let due = rows::due(tx, SCOPE, id, None, i64::MAX - 1, 10)?;
        let lease_ends_milliseconds = now.instant_milliseconds() + LEASE_MILLISECONDS;
        assert_eq!(claim(tx, id, &due, true, lease_ends_milliseconds)?, [true; 3]);
        let mut attempts = vec![finished(now, &due[0], lease_ends_milliseconds - 1, 200)];
        attempts.extend(
            due.iter().map(|delivery| finished(now, delivery, lease_ends_milliseconds, 200)),
        );
        Ok(write_attempts(tx, now, id, &attempts.iter().collect::<Vec<_>>())?)
    };
    stage.store.write(turn).await.expect("a turn");
    assert_eq!(stage.database.value("SELECT COUNT(*) FROM webhook_attempts"), "3");
    let attempts_count = "SELECT SUM(attempts_count) FROM webhook_deliveries";
    assert_eq!(stage.database.value(attempts_count), "3");
    stage.store.close().await;
}

/// The sequencer looks at an endpoint while the attempt is being written down that disables it.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_for_an_endpoint_that_is_disabled_meanwhile_is_only_recorded() {
    let stage = Stage::new().await;
    let id = stage.endpoint_id;
    let fan_out = |tx: &mut dyn Tx, now: &mut Now| {
        let wanted = event(now, TYPE);
        let mut subscribers = Subscribers::default();
        subscribers.fan_out(tx, now, SCOPE, &wanted)?;
        Ok(subscribers.finish(tx)?)
    };
    stage.store.write(fan_out).await.expect("a delivery");
    // As after five days of failures.
    let failed_long_ago = move |tx: &mut dyn Tx, now: &mut Now| {
        let first_failure_milliseconds =
            Some(now.instant_milliseconds() - (DISABLED_AFTER_SECONDS + 1) * 1_000);
        Ok(rows::queue_set_health(
            tx,
            id,
            EndpointHealth { first_failure_milliseconds, failures_count: DISABLED_FAILURES_MIN },
        )?)
    };
    stage.store.write(failed_long_ago).await.expect("a health");
    let (mut stop, stopped, release) = Stop::new();
    let recording = stage.store.write(move |tx, now| {
        let delivery = rows::due(tx, SCOPE, id, None, i64::MAX - 1, 1)?.remove(0);
        let attempt = finished(now, &delivery, delivery.due_milliseconds, 500);
        write_attempts(tx, now, id, &[&attempt])?;
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

/// Events of an account with a long history, and of one that the statistics do not know.
const OLD_EVENTS: i64 = 60_000;
const NEW_EVENTS: i64 = 3_000;
/// What one delivery may read in all, from its event to its recorded attempt: rows that scans
/// return before they filter, and blocks of the table of events with its indexes.
const ROWS_READ_PER_DELIVERY_MAX: i64 = 12;
const EVENT_BLOCKS_PER_DELIVERY_MAX: i64 = 20;

/// Deliveries to a new account beside a large one, while the statistics know only the large one:
/// what all statements read grows with the deliveries, not with their square.
///
/// The planner of PostgreSQL then estimates one row for the new account, and takes any index that
/// begins with the account or the endpoint.
#[tokio::test(flavor = "multi_thread")]
async fn deliveries_read_few_rows_with_stale_statistics() {
    let (rows, blocks) = read_by_deliveries("").await;
    assert!(
        rows <= NEW_EVENTS * ROWS_READ_PER_DELIVERY_MAX
            && blocks <= NEW_EVENTS * EVENT_BLOCKS_PER_DELIVERY_MAX,
        "{NEW_EVENTS} deliveries read {rows} rows and {blocks} blocks of events"
    );
}

/// The same with the index of the first schema, which a look-up by identifier can use for the
/// account alone: the test sees it.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_begins_with_the_account_is_found_out() {
    let first_schema = "CREATE INDEX events_linked ON events (scope, linked_id, id)";
    let (rows, blocks) = read_by_deliveries(first_schema).await;
    assert!(
        blocks > NEW_EVENTS * EVENT_BLOCKS_PER_DELIVERY_MAX,
        "{NEW_EVENTS} deliveries read {rows} rows and {blocks} blocks of events"
    );
}

/// Rows, and blocks of the table of events, that deliveries to a new account read; `schema` is
/// changed first.
async fn read_by_deliveries(schema: &str) -> (i64, i64) {
    let stage = Stage::new().await;
    let id = stage.endpoint_id;
    let other = stage
        .store
        .write(|tx, now| make_endpoint_in(tx, now, Scope::new(2, Mode::Test)))
        .await
        .expect("an endpoint");
    // Plans that connections keep are made while the tables are small.
    for _ in 0..8 {
        deliver_all(&stage, id, 1).await;
    }
    stage.database.sql(&format!(
        "ALTER TABLE events SET (autovacuum_enabled = false); \
         ALTER TABLE webhook_deliveries SET (autovacuum_enabled = false); \
         ALTER TABLE webhook_attempts SET (autovacuum_enabled = false); \
         INSERT INTO events SELECT {scope}, decode(lpad(to_hex(g), 32, '0'), 'hex'), '{TYPE}', \
         decode(md5(g::text), 'hex'), 'transfer', g FROM generate_series(1, {OLD_EVENTS}) g; \
         INSERT INTO webhook_deliveries SELECT decode('{endpoint:032x}', 'hex'), \
         decode(lpad(to_hex(g), 32, '0'), 'hex'), decode(lpad(to_hex(g), 32, '0'), 'hex'), \
         'succeeded', 0, 0, 1, NULL, g FROM generate_series(1, {OLD_EVENTS}) g; \
         DELETE FROM events WHERE scope = {new}; DELETE FROM webhook_attempts; \
         DELETE FROM webhook_deliveries WHERE endpoint_id = decode('{own:032x}', 'hex'); \
         ANALYZE events; ANALYZE webhook_deliveries; ANALYZE webhook_attempts; {schema}",
        scope = Scope::new(2, Mode::Test).code(),
        new = SCOPE.code(),
        endpoint = other.id.as_u128(),
        own = id.as_u128(),
    ));
    let before = reads(&stage.database);
    deliver_all(&stage, id, NEW_EVENTS).await;
    let delivered = format!(
        "SELECT COUNT(*) FROM webhook_deliveries WHERE status = 'succeeded' AND endpoint_id = \
         decode('{:032x}', 'hex')",
        id.as_u128()
    );
    assert_eq!(stage.database.value(&delivered), NEW_EVENTS.to_string());
    // A connection hands in its counters when it ends.
    stage.store.close().await;
    let started = std::time::Instant::now();
    let mut last = (0, 0);
    loop {
        let (rows, blocks) = reads(&stage.database);
        if (rows, blocks) == last && rows >= before.0 + NEW_EVENTS {
            return (rows - before.0, blocks - before.1);
        }
        assert!(started.elapsed() < steps::PATIENCE, "the counters did not come");
        last = (rows, blocks);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Rows that scans of the tables of deliveries have read so far, and blocks of events.
fn reads(database: &Database) -> (i64, i64) {
    let tables = "('events', 'webhook_deliveries', 'webhook_attempts')";
    let rows = format!(
        "SELECT (SELECT COALESCE(SUM(seq_tup_read), 0) FROM pg_stat_user_tables WHERE relname IN \
         {tables}) + (SELECT COALESCE(SUM(idx_tup_read), 0) FROM pg_stat_user_indexes WHERE \
         relname IN {tables})"
    );
    let blocks = "SELECT heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read FROM \
                  pg_statio_user_tables WHERE relname = 'events'";
    let number = |sql: &str| database.value(sql).parse::<i64>().expect("a number");
    (number(&rows), number(blocks))
}

/// An attempt of a delivery under a lease that its receiver answered with this status.
fn finished(
    now: &Now,
    delivery: &DueDelivery,
    lease_ends_milliseconds: i64,
    http_status: u16,
) -> FinishedAttempt {
    FinishedAttempt {
        delivery_id: delivery.id,
        schedule_start_milliseconds: delivery.schedule_start_milliseconds,
        step: delivery.step,
        attempts_count: delivery.attempts_count,
        due_milliseconds: lease_ends_milliseconds,
        holder: None,
        attempted_milliseconds: now.instant_milliseconds(),
        is_success: http_status == 200,
        http_status: Some(http_status),
        error: None,
        duration_milliseconds: 3,
        answer: String::new(),
        retry_after_seconds: None,
        watched: None,
        attacked_http_status: None,
    }
}

/// Emits events of the new account, fans them out, claims the deliveries and records a success for
/// each, as the worker does.
async fn deliver_all(stage: &Stage, id: Id<kind::WebhookEndpoint>, count: i64) {
    const TURN: i64 = 500;
    let emit = move |tx: &mut dyn Tx, now: &mut Now| {
        for _ in 0..count {
            let linked = now.mint::<kind::Transfer>().any();
            events::emit(tx, now, SCOPE, TYPE, linked)?;
        }
        Ok(())
    };
    stage.store.write(emit).await.expect("events");
    let mut left = count;
    while left > 0 {
        stage
            .store
            .write(|tx, now| Ok(webhooks::sequencer::sequence(tx, now)?))
            .await
            .expect("the sequencer");
        let due = stage
            .store
            .read(hundi::store::Cost::Scan, move |tx| {
                Ok(rows::due(tx, SCOPE, id, None, i64::MAX - 1, TURN)?)
            })
            .await
            .expect("due deliveries");
        assert!(due.iter().all(|delivery| delivery.event.is_some()));
        left -= due.len() as i64;
        let turn = move |tx: &mut dyn Tx, now: &mut Now| {
            let lease_ends_milliseconds = now.instant_milliseconds() + LEASE_MILLISECONDS;
            let claimed = claim(tx, id, &due, false, lease_ends_milliseconds)?;
            assert!(claimed.iter().all(|is_claimed| *is_claimed));
            let attempts: Vec<FinishedAttempt> = due
                .iter()
                .map(|delivery| finished(now, delivery, lease_ends_milliseconds, 200))
                .collect();
            Ok(write_attempts(tx, now, id, &attempts.iter().collect::<Vec<_>>())?)
        };
        stage.store.write(turn).await.expect("a turn");
    }
}

/// A table whose rows have no place that names them, as on other engines: one in parts. The rows of
/// the other endpoint have the same places in their own part.
#[tokio::test(flavor = "multi_thread")]
async fn deliveries_in_a_partitioned_table_are_claimed_and_recorded() {
    const COUNT: i64 = 100;
    let mut stage = Stage::new().await;
    let id = stage.endpoint_id;
    let other = stage.store.write(|tx, now| make_endpoint(tx, now)).await.expect("an endpoint");
    stage.store.close().await;
    stage.database.sql(&format!(
        "DROP TABLE webhook_deliveries; \
         CREATE TABLE webhook_deliveries (endpoint_id BYTEA NOT NULL, id BYTEA NOT NULL, event_id \
         BYTEA NOT NULL, status TEXT NOT NULL, schedule_start_milliseconds BIGINT NOT NULL, step \
         BIGINT NOT NULL, attempts_count BIGINT NOT NULL, due_milliseconds BIGINT, created BIGINT \
         NOT NULL, PRIMARY KEY (endpoint_id, id)) PARTITION BY RANGE (endpoint_id); \
         CREATE TABLE deliveries_one PARTITION OF webhook_deliveries FOR VALUES FROM (MINVALUE) TO \
         (decode('{place}', 'hex')); \
         CREATE TABLE deliveries_other PARTITION OF webhook_deliveries FOR VALUES FROM \
         (decode('{place}', 'hex')) TO (MAXVALUE)",
        place = format_args!("{:032x}", other.id.as_u128()),
    ));
    let url = PostgresUrl::parse(&stage.database.url()).expect("an address");
    stage.store = Store::connect(&url, Clock::System, 12).await.expect("the schema");
    deliver_all(&stage, id, COUNT).await;
    let states = "SELECT string_agg(state, '; ') FROM (SELECT tableoid::regclass || ' ' || status \
                  || ' ' || attempts_count || ' ' || COUNT(*) AS state FROM webhook_deliveries \
                  GROUP BY tableoid, status, attempts_count ORDER BY 1) states";
    assert_eq!(
        stage.database.value(states),
        format!("deliveries_one succeeded 1 {COUNT}; deliveries_other pending 0 {COUNT}")
    );
    stage.store.close().await;
}
