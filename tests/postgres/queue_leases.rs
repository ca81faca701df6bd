//! Backlogs that one node works off under a lease of the endpoint's queue, and what becomes of them
//! where that node dies, ends, freezes or is not alone.

use hundi::webhooks::deliveries::LEASE_MILLISECONDS;

use crate::deliveries::{emit, until_succeeded};
use crate::nodes::{Node, home};
use crate::support::postgres::Database;
use crate::support::{Receiver, steps, until};

/// The fault of a node that knows of no leases of queues, as before 0.2.0.
const UNKNOWN: &str = "leases_of_queues_are_unknown";
/// The fault of a node that takes leases which others have.
const TAKEN: &str = "leases_of_queues_are_taken";

/// Many times what one node takes at once.
const BACKLOG: u64 = 2_000;
/// Of which this much has arrived when something happens.
const ARRIVED: usize = 300;

/// A database with nodes, and an endpoint that has taken a delivery.
struct Stage {
    nodes: Vec<Node>,
    receiver: Receiver,
    database: Database,
}

impl Stage {
    fn new(faults: &[Option<&str>]) -> Stage {
        let database = Database::fresh();
        let start = |fault: &Option<&str>| Node::start(home(&database.url()).with_fault(*fault));
        let nodes: Vec<Node> = faults.iter().map(start).collect();
        let receiver = Receiver::start();
        receiver.register(&mut nodes[0].client(&nodes[0].home.key()));
        let stage = Stage { nodes, receiver, database };
        emit(&stage.database, 1);
        until_succeeded(&stage.database, 1);
        stage
    }

    fn start_another(&mut self) {
        self.nodes.push(Node::start(home(&self.database.url())));
    }

    fn count(&self, sql: &str) -> u64 {
        self.database.value(sql).parse().expect("a number")
    }

    /// Begins a backlog, and waits until a node is in the middle of it, under a lease.
    fn until_under_way(&self) {
        emit(&self.database, BACKLOG);
        until("the backlog to be under way", steps::PATIENCE, || {
            (self.receiver.attempts_count() >= ARRIVED && self.leases_count() == 1).then_some(())
        });
    }

    fn leases_count(&self) -> u64 {
        self.count("SELECT COUNT(*) FROM webhook_queues WHERE leased_by IS NOT NULL")
    }

    /// Makes what a node has under leases due now.
    fn end_leases(&self) {
        self.database.sql(&format!(
            "UPDATE webhook_queues SET leased_until_milliseconds = leased_until_milliseconds - \
             {LEASE_MILLISECONDS}; UPDATE webhook_queues SET due_milliseconds = due_milliseconds - \
             {LEASE_MILLISECONDS}; UPDATE webhook_deliveries SET due_milliseconds = \
             schedule_start_milliseconds WHERE due_milliseconds > schedule_start_milliseconds"
        ));
    }

    /// The backlog has arrived, and each delivery counts one attempt.
    fn expect_delivered(&self) {
        self.expect_all_delivered(BACKLOG + 1);
    }

    fn expect_all_delivered(&self, all: u64) {
        until_succeeded(&self.database, all);
        assert_eq!(self.receiver.problems(), (0, Vec::new()));
        assert_eq!(self.receiver.events_count() as u64, all);
        assert_eq!(self.count("SELECT COUNT(*) FROM webhook_attempts"), all);
        assert_eq!(self.count("SELECT SUM(attempts_count) FROM webhook_deliveries"), all);
    }

    fn expect_no_duplicates(&self) {
        assert_eq!(self.receiver.attempts_count() as u64, BACKLOG + 1);
    }

    fn until_released(&self) {
        until("the lease to be released", steps::PATIENCE, || {
            (self.leases_count() == 0).then_some(())
        });
    }
}

/// How many deliveries of a backlog were claimed one by one.
fn claimed_one_by_one(fault: Option<&str>) -> u64 {
    let stage = Stage::new(&[fault]);
    stage.database.sql(
        "CREATE TABLE claimed (delivery BYTEA); CREATE FUNCTION note_claim() RETURNS trigger \
         LANGUAGE plpgsql AS $$ BEGIN INSERT INTO claimed VALUES (NEW.id); RETURN NEW; END $$; \
         CREATE TRIGGER claimed AFTER UPDATE ON webhook_deliveries FOR EACH ROW WHEN \
         (OLD.due_milliseconds < NEW.due_milliseconds) EXECUTE FUNCTION note_claim()",
    );
    emit(&stage.database, BACKLOG);
    stage.expect_delivered();
    stage.expect_no_duplicates();
    stage.until_released();
    stage.count("SELECT COUNT(*) FROM claimed")
}

#[test]
fn a_backlog_is_not_claimed_one_by_one() {
    let claimed = claimed_one_by_one(None);
    assert!(claimed < BACKLOG / 3, "{claimed} of {BACKLOG}");
}

/// Without leases each delivery is claimed: the test sees it.
#[test]
fn control_without_a_lease_each_delivery_is_claimed() {
    let claimed = claimed_one_by_one(Some(UNKNOWN));
    assert!(claimed > BACKLOG / 3 * 2, "{claimed} of {BACKLOG}");
}

#[test]
fn two_nodes_deliver_a_backlog_once() {
    let stage = Stage::new(&[None, None]);
    emit(&stage.database, BACKLOG);
    stage.expect_delivered();
    stage.expect_no_duplicates();
    stage.until_released();
}

#[test]
fn what_a_dead_node_had_leased_is_sent_when_the_lease_ends() {
    let mut stage = Stage::new(&[None]);
    stage.until_under_way();
    stage.nodes[0].kill();
    stage.start_another();
    stage.end_leases();
    stage.expect_delivered();
    stage.nodes[1].home.check().expect_success("the check");
}

/// A node dies in the middle of a backlog, and another one with this fault takes its place: it
/// delivers to another endpoint. Answers how many deliveries of the backlog it made meanwhile.
fn sent_before_the_lease_ends(fault: Option<&str>) -> u64 {
    let mut stage = Stage::new(&[None]);
    stage.until_under_way();
    stage.nodes[0].kill();
    let succeeded = "SELECT COUNT(*) FROM webhook_deliveries WHERE status = 'succeeded' AND \
                     endpoint_id = (SELECT id FROM webhook_endpoints ORDER BY id LIMIT 1)";
    let before = stage.count(succeeded);
    stage.nodes.push(Node::start(home(&stage.database.url()).with_fault(fault)));
    let other = Receiver::start();
    other.register(&mut stage.nodes[1].client(&stage.nodes[0].home.key()));
    // More of them, until one comes after a look at the first endpoint.
    let mut rounds = 0;
    let sent = loop {
        emit(&stage.database, 1);
        rounds += 1;
        until("the event to arrive", steps::PATIENCE, || {
            (other.events_count() == rounds).then_some(())
        });
        let sent = stage.count(succeeded) - before;
        if sent > 0 || rounds >= ROUNDS_MAX {
            break sent;
        }
    };
    stage.end_leases();
    until_succeeded(&stage.database, BACKLOG + 1 + 2 * rounds as u64);
    sent
}

const ROUNDS_MAX: usize = 200;

#[test]
fn while_the_lease_of_a_dead_node_lasts_others_leave_the_backlog_alone() {
    assert_eq!(sent_before_the_lease_ends(None), 0);
}

/// A node that takes the lease of another is found out.
#[test]
fn control_a_node_that_takes_the_lease_of_another_sends_at_once() {
    assert!(sent_before_the_lease_ends(Some(TAKEN)) > 0);
}

#[test]
fn a_node_that_ends_gives_a_backlog_back() {
    let mut stage = Stage::new(&[None]);
    stage.until_under_way();
    stage.nodes[0].stop();
    assert_eq!(stage.leases_count(), 0);
    let unknown = "SELECT COUNT(*) FROM webhook_deliveries d JOIN webhook_queues q USING \
                   (endpoint_id) WHERE d.due_milliseconds IS NOT NULL AND (q.due_milliseconds IS \
                   NULL OR q.due_milliseconds > d.due_milliseconds)";
    assert_eq!(stage.count(unknown), 0);
    stage.start_another();
    stage.expect_delivered();
    stage.expect_no_duplicates();
}

/// A node freezes in the middle of a backlog and wakes after another one has delivered it: what it
/// had in its hands counts for nothing. `ends` says whether its lease ends first.
fn deliver_beside_a_frozen_node(fault: Option<&str>, ends: bool) {
    let mut stage = Stage::new(&[None]);
    stage.until_under_way();
    stage.nodes[0].signal("STOP");
    stage.nodes.push(Node::start(home(&stage.database.url()).with_fault(fault)));
    if ends {
        stage.end_leases();
    }
    stage.expect_delivered();
    stage.nodes[0].signal("CONT");
    // It records what it can before it ends.
    stage.nodes[0].stop();
    stage.expect_delivered();
    stage.nodes[1].home.check().expect_success("the check");
}

#[test]
fn what_a_node_sent_under_a_lost_lease_does_not_count() {
    deliver_beside_a_frozen_node(None, true);
}

/// During a rolling update a node may take over that knows of no such leases.
#[test]
fn what_an_older_release_has_taken_over_does_not_count_twice() {
    deliver_beside_a_frozen_node(Some(UNKNOWN), false);
}
