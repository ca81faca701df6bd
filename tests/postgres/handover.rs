//! Deliveries that leave the sequencer's commit claimed, and what becomes of them where something
//! comes between that commit and the attempt.

use std::sync::Arc;

use hundi::events;
use hundi::kernel::id::kind;
use hundi::kernel::{Clock, Id, Metadata, Mode, Now, OperationError, Scope, StoreError};
use hundi::store::postgres::PostgresUrl;
use hundi::store::{Store, Tx};
use hundi::webhooks::deliveries::LEASE_MILLISECONDS;
use hundi::webhooks::fan_out::Subscribers;
use hundi::webhooks::handover::{Handover, Offer};
use hundi::webhooks::sequencer::sequence_for;
use hundi::webhooks::state::EndpointStatus;
use hundi::webhooks::{Endpoint, EventFilters, rows};
use serde_json::{Value, json};

use crate::deliveries::{emit, until_succeeded};
use crate::nodes::{Node, home};
use crate::proxy::{AtCommit, Proxy};
use crate::support::postgres::{Cluster, Database};
use crate::support::{Client, Receiver, steps, until};

/// The fault of a worker that sends nothing of what it is handed.
const WAITING: &str = "handed_deliveries_wait";
/// The fault of a worker that offers nothing, as before there was a handover.
const NOTHING_OFFERED: &str = "nothing_is_offered";
/// The fault of a sequencer that does not compare versions.
const CHANGED_TOO: &str = "changed_endpoints_are_handed_over";

/// The newest delivery is claimed, nobody has tried it, and its queue is due no later than that
/// lease ends.
const IS_HANDED: &str = "SELECT d.status = 'pending' AND d.attempts_count = 0 AND \
 d.due_milliseconds - d.schedule_start_milliseconds = {lease} AND q.due_milliseconds <= \
 d.due_milliseconds FROM webhook_deliveries d JOIN webhook_queues q USING (endpoint_id) ORDER BY \
 d.id DESC LIMIT 1";

/// A database with one node, and an endpoint that has taken a delivery.
struct Stage {
    node: Node,
    client: Client,
    receiver: Receiver,
    endpoint_id: String,
    database: Database,
}

impl Stage {
    fn new(database: Database, url: &str, fault: Option<&str>) -> Stage {
        let node = Node::start(home(url).with_fault(fault));
        let mut client = node.client(&node.home.key());
        let receiver = Receiver::start();
        let endpoint_id = steps::text(&receiver.register(&mut client), "id");
        let stage = Stage { node, client, receiver, endpoint_id, database };
        // The worker knows the endpoint once it has had a success.
        emit(&stage.database, 1);
        until_succeeded(&stage.database, 1);
        stage
    }

    fn with_fault(fault: Option<&str>) -> Stage {
        let database = Database::fresh();
        let url = database.url();
        Stage::new(database, &url, fault)
    }

    fn path(&self) -> String {
        format!("/v1/webhook_endpoints/{}", self.endpoint_id)
    }

    fn until_handed(&self) {
        let is_handed = IS_HANDED.replace("{lease}", &LEASE_MILLISECONDS.to_string());
        until("a delivery to be handed over", steps::PATIENCE, || {
            (self.database.value(&is_handed) == "t").then_some(())
        });
    }

    /// Each event arrived with a valid signature, and once.
    fn assert_arrived(&self, count: usize) {
        assert_eq!(self.receiver.problems(), (0, Vec::new()));
        assert_eq!(self.receiver.events_count(), count);
    }
}

/// How often the statements were sent that an event of an endpoint that is caught up does without:
/// the read of what is due, the claim, and the look for what is due next.
fn statements_of_an_event(fault: Option<&str>) -> [u64; 3] {
    let cluster = Cluster::start(&["shared_preload_libraries=pg_stat_statements"]);
    let database = Database::in_cluster(&cluster.url);
    database.sql("CREATE EXTENSION pg_stat_statements");
    let url = database.url();
    let stage = Stage::new(database, &url, fault);
    // As a turn leaves it that finds nothing due. Until the lease of the next delivery ends, the
    // worker then has no reason to look at the endpoint.
    stage.database.sql("UPDATE webhook_queues SET due_milliseconds = NULL");
    let count = |beginning: &str| {
        let sql = format!(
            "SELECT COALESCE(SUM(calls), 0)::bigint FROM pg_stat_statements s JOIN pg_database d \
             ON d.oid = s.dbid WHERE d.datname = current_database() AND query LIKE '{beginning}%'"
        );
        stage.database.value(&sql).parse::<u64>().expect("a number")
    };
    let counts = || {
        [
            count("SELECT id, event_id, schedule_start_milliseconds, step"),
            count("UPDATE webhook_deliveries SET due_milliseconds"),
            count("UPDATE webhook_queues SET due_milliseconds = (SELECT MIN"),
        ]
    };
    let before = counts();
    assert!(before.iter().all(|count| *count > 0), "the first delivery took them: {before:?}");
    emit(&stage.database, 1);
    until_succeeded(&stage.database, 2);
    stage.assert_arrived(2);
    let after = counts();
    std::array::from_fn(|index| after[index] - before[index])
}

#[test]
fn an_event_for_an_endpoint_that_is_caught_up_is_neither_looked_for_nor_claimed() {
    assert_eq!(statements_of_an_event(None), [0; 3]);
}

/// Without a handover each of them is sent: the test sees it.
#[test]
fn control_an_event_that_is_not_handed_over_is_looked_for_and_claimed() {
    let counts = statements_of_an_event(Some(NOTHING_OFFERED));
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}

/// More than are sent at once: the first ones are handed over, and the others wait as ever.
#[test]
fn of_many_events_each_is_delivered_once() {
    let stage = Stage::with_fault(None);
    emit(&stage.database, 40);
    until_succeeded(&stage.database, 41);
    emit(&stage.database, 3);
    until_succeeded(&stage.database, 44);
    stage.assert_arrived(44);
    assert_eq!(stage.database.value("SELECT COUNT(*) FROM webhook_attempts"), "44");
}

/// A node is killed between the sequencer's commit and the attempt. Another one sends the delivery
/// when the lease ends, which the queue says to it.
#[test]
fn what_a_dead_node_was_handed_is_sent_when_the_lease_ends() {
    let mut stage = Stage::with_fault(Some(WAITING));
    let other = Node::start(home(&stage.database.url()));
    emit(&stage.database, 1);
    stage.until_handed();
    stage.node.kill();
    stage.assert_arrived(1);
    // The lease passes.
    for table in ["webhook_deliveries", "webhook_queues"] {
        stage.database.sql(&format!(
            "UPDATE {table} SET due_milliseconds = due_milliseconds - {LEASE_MILLISECONDS}"
        ));
    }
    until_succeeded(&stage.database, 2);
    stage.assert_arrived(2);
    other.home.check().expect_success("the check");
}

/// The same with a node that is asked to end: it gives back what it did not send.
#[test]
fn what_a_node_was_handed_is_given_back_when_it_ends() {
    let mut stage = Stage::with_fault(Some(WAITING));
    emit(&stage.database, 3);
    stage.until_handed();
    stage.node.stop();
    let is_due = "SELECT COUNT(*) FROM webhook_deliveries d JOIN webhook_queues q USING \
                  (endpoint_id) WHERE d.due_milliseconds = d.schedule_start_milliseconds AND \
                  q.due_milliseconds <= d.due_milliseconds";
    assert_eq!(stage.database.value(is_due), "3");
    stage.assert_arrived(1);
    let _other = Node::start(home(&stage.database.url()));
    until_succeeded(&stage.database, 4);
    stage.assert_arrived(4);
}

/// A node is asked to end while the sequencer commits: its worker waits for that commit.
#[test]
fn what_is_handed_over_while_a_node_ends_is_given_back() {
    let database = Database::fresh();
    let proxy = Proxy::start(database.server_address(), &Cluster::shared_url(), 1);
    let url = database.url_at(proxy.address);
    let mut stage = Stage::new(database, &url, Some(WAITING));
    proxy.change(|faults| faults.holds_commits = true);
    emit(&stage.database, 1);
    // It has written everything, and its COMMIT is held.
    let is_written = "SELECT COUNT(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE \
                      l.relation = 'webhook_deliveries'::regclass AND l.mode = \
                      'RowExclusiveLock' AND a.state = 'idle in transaction'";
    until("the sequencer to have written", steps::PATIENCE, || {
        (stage.database.value(is_written) == "1").then_some(())
    });
    // Without a drain.
    stage.node.signal("INT");
    until("the node to end", steps::PATIENCE, || (!stage.node.is_ready()).then_some(()));
    proxy.heal();
    stage.node.await_end();
    let is_due = "SELECT due_milliseconds = schedule_start_milliseconds FROM webhook_deliveries \
                  WHERE status = 'pending'";
    assert_eq!(stage.database.value(is_due), "t");
    let _other = Node::start(home(&stage.database.url()));
    until_succeeded(&stage.database, 2);
    stage.assert_arrived(2);
}

/// An endpoint is deleted between the sequencer's commit and the attempt.
#[test]
fn what_was_handed_for_an_endpoint_that_is_deleted_is_not_sent() {
    let mut stage = Stage::with_fault(Some(WAITING));
    emit(&stage.database, 1);
    stage.until_handed();
    let deleted = stage.client.ask("DELETE", &stage.path(), None, None);
    assert!(deleted.is_success(), "{} {}", deleted.status, deleted.text());
    stage.node.stop();
    let other = Node::start(home(&stage.database.url()));
    // What follows is delivered to who is there.
    let second = Receiver::start();
    second.register(&mut other.client(&stage.client.api_key));
    emit(&stage.database, 1);
    until("the next event to arrive", steps::PATIENCE, || {
        (second.events_count() == 1).then_some(())
    });
    stage.assert_arrived(1);
    assert_eq!(second.problems(), (0, Vec::new()));
}

/// The endpoint's URL and secret are changed right before an event; answers how many deliveries the
/// old URL had for it.
fn deliveries_to_the_old_url(fault: Option<&str>) -> usize {
    let mut stage = Stage::with_fault(fault);
    let moved = Receiver::start();
    let path = stage.path();
    let rotate = format!("{path}/rotate_secret");
    let rotated = stage.client.post(&rotate, &json!({ "overlap_seconds": 0 }));
    moved.trust(&steps::text(&rotated.expect_success("a new secret"), "secret"));
    let changed = stage.client.post(&path, &json!({ "url": moved.url }));
    changed.expect_success("another URL");
    emit(&stage.database, 1);
    let arrived = || moved.events_count() + stage.receiver.attempts_count() - 1;
    until("the event to arrive", steps::PATIENCE, || (arrived() > 0).then_some(()));
    stage.receiver.attempts_count() - 1
}

#[test]
fn an_event_right_after_a_change_of_the_endpoint_goes_to_the_new_url() {
    assert_eq!(deliveries_to_the_old_url(None), 0);
}

/// A sequencer that does not compare versions is found out.
#[test]
fn control_an_event_that_is_handed_over_in_spite_of_a_change_goes_to_the_old_url() {
    assert_eq!(deliveries_to_the_old_url(Some(CHANGED_TOO)), 1);
}

/// A rotation that ends the old secret right before an event.
#[test]
fn an_event_right_after_a_rotation_is_signed_with_the_new_secret() {
    let mut stage = Stage::with_fault(None);
    let rotate = format!("{}/rotate_secret", stage.path());
    let rotated: Value =
        stage.client.post(&rotate, &json!({ "overlap_seconds": 0 })).expect_success("a secret");
    stage.receiver.trust(&steps::text(&rotated, "secret"));
    emit(&stage.database, 1);
    until_succeeded(&stage.database, 2);
    stage.assert_arrived(2);
}

/// The connection is lost while the sequencer commits, and the commit takes place: nobody sends the
/// delivery, and it does not wait for its lease either.
#[test]
fn what_a_commit_of_unknown_outcome_claimed_is_given_back() {
    let database = Database::fresh();
    let proxy = Proxy::start(database.server_address(), &Cluster::shared_url(), 1);
    let url = database.url_at(proxy.address);
    let stage = Stage::new(database, &url, None);
    stage.database.sql(
        "CREATE TABLE given_back (delivery BYTEA); CREATE FUNCTION note_given_back() RETURNS \
         trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO given_back VALUES (NEW.id); RETURN NEW; \
         END $$; CREATE TRIGGER given_back AFTER UPDATE ON webhook_deliveries FOR EACH ROW WHEN \
         (OLD.due_milliseconds > NEW.due_milliseconds) EXECUTE FUNCTION note_given_back()",
    );
    proxy.fail_commits(u64::MAX, 100, &[AtCommit::CutAfter]);
    emit(&stage.database, 1);
    stage.until_handed();
    proxy.heal();
    until("the delivery to be given back", steps::PATIENCE, || {
        (stage.database.value("SELECT COUNT(*) FROM given_back") == "1").then_some(())
    });
    until_succeeded(&stage.database, 2);
    stage.assert_arrived(2);
}

/// A run of the sequencer that met another transaction runs again: what the first run wrote is
/// gone, and only what the second one wrote is handed over.
#[tokio::test(flavor = "multi_thread")]
async fn only_what_has_committed_is_handed_over() {
    const SCOPE: Scope = Scope::new(1, Mode::Test);
    let database = Database::fresh();
    let url = PostgresUrl::parse(&database.url()).expect("an address");
    let store = Store::connect(&url, Clock::System, 6).await.expect("the schema");
    let make = |tx: &mut dyn Tx, now: &mut Now| {
        let endpoint = Endpoint {
            scope: SCOPE,
            id: now.mint(),
            version: 1,
            url: "https://example.com/".into(),
            description: None,
            enabled_events: EventFilters::all(),
            status: EndpointStatus::Enabled,
            disabled_reason: None,
            disabled_milliseconds: None,
            secrets_sealed: vec![0],
            metadata: Metadata::default(),
            created: now.business(),
            chaos_key_id: None,
        };
        rows::insert(tx, &endpoint)?;
        rows::queue_insert(tx, SCOPE, endpoint.id)?;
        let linked = Id::<kind::Transfer>::from_u128(7).any();
        events::emit(tx, now, SCOPE, "transfer.status.funded", linked)?;
        Ok(endpoint.id)
    };
    let endpoint_id = store.write(make).await.expect("an endpoint and an event");
    let handover = Arc::new(Handover::default());
    handover.publish(vec![(endpoint_id, Some(Offer { version: 1, room: 8 }))], 8);
    let (sequencing, mut runs_count) = (handover.clone(), 0);
    let sequence = move |tx: &mut dyn Tx, now: &mut Now| {
        runs_count += 1;
        sequence_for(tx, now, Subscribers::handed_over_by(&sequencing))?;
        if runs_count == 1 {
            let met = StoreError::Conflict("another transaction");
            return Err(OperationError::from(met));
        }
        Ok(runs_count)
    };
    assert_eq!(store.write(sequence).await.expect("the sequencer"), 2);
    assert!(handover.take().is_empty(), "before it is said that the commit succeeded");
    handover.hand_over();
    let handed: Vec<String> =
        handover.take().iter().map(|leased| format!("{:032x}", leased.due.id.as_u128())).collect();
    assert_eq!(handed, [database.value("SELECT encode(id, 'hex') FROM webhook_deliveries")]);
    store.close().await;
}
