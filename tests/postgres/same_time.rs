//! The same thing wanted at several nodes at the same time happens once.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::{Duration, Instant};

use hundi::app::App;
use hundi::audit::{self, Action, Fact};
use hundi::config::{Config, Flags};
use hundi::kernel::{Clock, DecidedBy, Now};
use hundi::store::Tx;
use hundi::workers::tasks;
use serde_json::{Value, json};

use crate::nodes::{Node, Nodes, home};
use crate::proxy::Proxy;
use crate::support::at_once::{expect_one_effect, expect_one_winner, send_at_once};
use crate::support::postgres::{Cluster, Database, ENCRYPTION_KEY};
use crate::support::{Client, Home, fresh_key, steps, until};

const NODES_COUNT: usize = 4;
const SENDS_COUNT: usize = 100;

/// What a node inside the test reads.
fn configuration(database: &Database) -> Config {
    let flags = Flags { database: Some(database.url()), ..Flags::default() };
    let environment =
        |name: &str| (name == "HUNDI_ENCRYPTION_KEY").then(|| ENCRYPTION_KEY.to_owned());
    Config::read(&flags, &environment).expect("a configuration")
}

#[test]
fn one_key_at_four_nodes_makes_one_transfer() {
    const ROUNDS: usize = 5;
    let database = Database::fresh();
    let nodes = Nodes::plain(NODES_COUNT, &database.url());
    let clients = nodes.clients();
    let mut client = nodes.client();
    let beneficiary_id = steps::beneficiary_payable(&mut client);
    let sender_id = steps::sender(&mut client);
    for _ in 0..ROUNDS {
        let quote_lock_id = steps::quote_lock(&mut client, "250.00");
        let (key, body) = (
            fresh_key(),
            steps::transfer_body(&sender_id, &beneficiary_id, &quote_lock_id, "250.00").to_string(),
        );
        let answers = send_at_once(
            &clients,
            "/v1/transfers",
            &vec![(key.clone(), body.clone()); SENDS_COUNT],
        );
        let made = expect_one_effect(&answers);
        for mut client in nodes.clients() {
            let again = client.ask("POST", "/v1/transfers", Some(&key), Some(body.as_bytes()));
            assert!(again.is_replay(), "a later send is no replay: {}", again.text());
            assert_eq!(again.expect_success("a later send"), made);
        }
    }
    assert_eq!(
        client.list("/v1/transfers", "").len(),
        ROUNDS,
        "there is more or less than one transfer a key"
    );
    nodes.check();
}

#[test]
fn one_quote_lock_at_four_nodes_makes_one_transfer() {
    const ROUNDS: usize = 10;
    let database = Database::fresh();
    let nodes = Nodes::plain(NODES_COUNT, &database.url());
    let clients = nodes.clients();
    let mut client = nodes.client();
    let beneficiary_id = steps::beneficiary_payable(&mut client);
    let sender_id = steps::sender(&mut client);
    for _ in 0..ROUNDS {
        let quote_lock_id = steps::quote_lock(&mut client, "99.99");
        let body =
            steps::transfer_body(&sender_id, &beneficiary_id, &quote_lock_id, "99.99").to_string();
        let requests: Vec<(String, String)> =
            (0..NODES_COUNT * 4).map(|_| (fresh_key(), body.clone())).collect();
        let answers = send_at_once(&clients, "/v1/transfers", &requests);
        let made = expect_one_winner(&answers);
        let lock = client
            .get(&format!("/v1/quote_locks/{quote_lock_id}"))
            .expect_success("the quote lock");
        assert_eq!((&lock["status"], &lock["transfer_id"]), (&Value::from("used"), &made["id"]));
    }
    assert_eq!(client.list("/v1/transfers", "").len(), ROUNDS);
    nodes.check();
}

/// Two callers do two things at the same instant.
fn both<A: Send, B: Send>(
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> (A, B) {
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            barrier.wait();
            second()
        });
        barrier.wait();
        let done = first();
        (done, other.join().expect("the second caller"))
    })
}

/// One node cancels a transfer while another one takes its deposit.
#[test]
fn cancelled_and_funded_at_once_ends_in_one_of_both() {
    const ROUNDS: usize = 20;
    let database = Database::fresh();
    let nodes = Nodes::plain(2, &database.url());
    let mut clients = nodes.clients();
    let (left, right) = clients.split_at_mut(1);
    let (canceller, payer) = (&mut left[0], &mut right[0]);
    let beneficiary_id = steps::beneficiary_payable(payer);
    let sender_id = steps::sender(payer);
    let mut ends: HashSet<String> = HashSet::new();
    for round in 0..ROUNDS {
        let quote_lock_id = steps::quote_lock(payer, "20.00");
        let body = steps::transfer_body(&sender_id, &beneficiary_id, &quote_lock_id, "20.00");
        let transfer_id =
            steps::text(&payer.post("/v1/transfers", &body).expect_success("the transfer"), "id");
        let (deposit, cancel) = (
            format!("/v1/test_helpers/transfers/{transfer_id}/deposit"),
            format!("/v1/transfers/{transfer_id}/cancel"),
        );
        let (cancelled, paid) =
            both(|| canceller.post(&cancel, &json!({})), || payer.post(&deposit, &json!({})));
        paid.expect_success("the deposit");
        let wanted: &[&str] = if cancelled.is_success() {
            // The money came all the same: it waits for where it is to go back to.
            &["funding_hold", "refund_processing", "refunded"]
        } else {
            cancelled.expect_refusal(
                400,
                "transfer_not_cancellable",
                "a cancellation that came too late",
            );
            &["payout_settled"]
        };
        let end = until("the transfer to come to its end", steps::PATIENCE, || {
            let seen = steps::text(
                &payer.get(&format!("/v1/transfers/{transfer_id}")).expect_success("the transfer"),
                "status",
            );
            wanted.contains(&seen.as_str()).then_some(seen)
        });
        // What the other node sees is the same.
        let there =
            canceller.get(&format!("/v1/transfers/{transfer_id}")).expect_success("the transfer");
        assert!(
            wanted.contains(&there["status"].as_str().unwrap_or_default()),
            "round {round}: {there}"
        );
        ends.insert(end);
    }
    println!("{ROUNDS} rounds ended in {ends:?}");
    nodes.check();
}

#[test]
fn two_cancellations_at_once_are_one() {
    const ROUNDS: usize = 20;
    let database = Database::fresh();
    let nodes = Nodes::plain(2, &database.url());
    let mut clients = nodes.clients();
    let (left, right) = clients.split_at_mut(1);
    let (here, there) = (&mut left[0], &mut right[0]);
    for _ in 0..ROUNDS {
        let quote_lock_id = steps::quote_lock(here, "20.00");
        let (beneficiary_id, sender_id) = (steps::beneficiary_payable(here), steps::sender(here));
        let body = steps::transfer_body(&sender_id, &beneficiary_id, &quote_lock_id, "20.00");
        let transfer_id =
            steps::text(&here.post("/v1/transfers", &body).expect_success("the transfer"), "id");
        let path = format!("/v1/transfers/{transfer_id}/cancel");
        let cancel = |client: &mut Client| client.post(&path, &json!({}));
        let (first, second) = both(|| cancel(here), || cancel(there));
        assert_eq!(
            [&first, &second].iter().filter(|answer| answer.is_success()).count(),
            1,
            "{} {}",
            first.text(),
            second.text()
        );
        let events = until("the event of the cancellation", steps::PATIENCE, || {
            let events = here.list(
                "/v1/events",
                &format!("linked_id={transfer_id}&type=transfer.status.cancelled"),
            );
            (!events.is_empty()).then_some(events)
        });
        assert_eq!(events.len(), 1, "one cancellation has one event");
    }
    nodes.check();
}

/// Deposit addresses come from one counter, however many nodes reach for it from their first
/// request on.
#[test]
fn no_deposit_address_is_given_twice() {
    const TRANSFERS_PER_CALLER: usize = 40;
    let database = Database::fresh();
    let nodes = Nodes::plain(NODES_COUNT, &database.url());
    let mut first = nodes.client();
    let (beneficiary_id, sender_id) =
        (steps::beneficiary_payable(&mut first), steps::sender(&mut first));
    let addresses: Vec<String> = std::thread::scope(|scope| {
        let callers: Vec<_> = nodes
            .clients()
            .into_iter()
            .flat_map(|client| [client.twin(), client])
            .map(|mut client| {
                let (beneficiary_id, sender_id) = (&beneficiary_id, &sender_id);
                scope.spawn(move || {
                    (0..TRANSFERS_PER_CALLER)
                        .map(|_| {
                            let quote_lock_id = steps::quote_lock(&mut client, "20.00");
                            let body = steps::transfer_body(
                                sender_id,
                                beneficiary_id,
                                &quote_lock_id,
                                "20.00",
                            );
                            let made =
                                client.post("/v1/transfers", &body).expect_success("the transfer");
                            made["funding"]["deposit_address"]
                                .as_str()
                                .expect("an address")
                                .to_owned()
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        callers.into_iter().flat_map(|caller| caller.join().expect("a caller")).collect()
    });
    assert_eq!(addresses.len(), NODES_COUNT * 2 * TRANSFERS_PER_CALLER);
    let distinct: HashSet<&String> = addresses.iter().collect();
    assert_eq!(distinct.len(), addresses.len(), "an address was given to two transfers");
    // The counter itself: no two rows with one index.
    let indexes =
        database.value("SELECT COUNT(*) - COUNT(DISTINCT derivation_index) FROM transfers");
    assert_eq!(indexes, "0", "an index was used twice");
    nodes.check();
}

/// The account's own time.
fn business_time(client: &mut Client) -> i64 {
    client.post("/v1/senders", &steps::sender_body()).expect_success("a sender")["created"]
        .as_i64()
        .expect("a time")
}

/// Advances of one test clock at several nodes at once add up.
#[test]
fn advances_at_once_add_up() {
    const ADVANCES_COUNT: usize = 12;
    let database = Database::fresh();
    let nodes = Nodes::plain(NODES_COUNT, &database.url());
    let mut client = nodes.client();
    let before = business_time(&mut client);
    let advance = json!({ "advance_seconds": 1000 }).to_string();
    let requests: Vec<(String, String)> =
        (0..ADVANCES_COUNT).map(|_| (fresh_key(), advance.clone())).collect();
    let answers = send_at_once(&nodes.clients(), "/v1/test_helpers/clock", &requests);
    let times: HashSet<i64> = answers
        .iter()
        .map(|answer| {
            answer.clone().expect_success("an advance")["now"].as_i64().expect("a time") - before
        })
        .collect();
    assert_eq!(
        times.iter().map(|time| time / 1000).collect::<HashSet<_>>(),
        (1..=ADVANCES_COUNT as i64).collect(),
        "{times:?}"
    );
    let after = business_time(&mut client);
    assert_eq!((after - before) / 1000, ADVANCES_COUNT as i64, "advances were lost or doubled");
    nodes.check();
}

/// A chaos profile that was begun at one node attacks at all of them, as soon as they read the key
/// again, and counts over all of them.
#[test]
fn a_chaos_profile_holds_at_every_node() {
    let database = Database::fresh();
    let nodes = Nodes::plain(NODES_COUNT, &database.url());
    let mut clients = nodes.clients();
    for client in &mut clients {
        client.get("/v1/senders").expect_success("the senders");
    }
    let profile = json!({ "percentage": 100, "request_attacks": ["service_unavailable"] });
    clients[0].post("/v1/test_helpers/chaos", &profile).expect_success("a profile");
    for client in &mut clients {
        until("an attack at each node", steps::PATIENCE, || {
            (client.post("/v1/senders", &steps::sender_body()).status == 503).then_some(())
        });
    }
    let report = clients[1].get("/v1/test_helpers/chaos/report").expect_success("the report");
    assert_eq!(report["requests_attacked_count"], NODES_COUNT, "{report}");
    clients[2].post("/v1/test_helpers/chaos/stop", &json!({})).expect_success("the end");
    for client in &mut clients {
        until("peace at each node", steps::PATIENCE, || {
            client.post("/v1/senders", &steps::sender_body()).is_success().then_some(())
        });
    }
    nodes.check();
}

/// A transfer whose creation is at its COMMIT at one node while its account's test clock is moved
/// by a day at another one; answers its history as soon as it has expired, or nothing if that takes
/// longer than `patience`.
fn advanced_while_it_is_made(patience: Duration, shape: impl Fn(Home) -> Home) -> Option<Value> {
    let database = Database::fresh();
    let proxy = Proxy::start(database.server_address(), &Cluster::shared_url(), 1);
    let nodes =
        Nodes::start(&[database.url_at(proxy.address), database.url()], |_, home| shape(home));
    let (mut maker, mut other) =
        (nodes.nodes[0].client(&nodes.api_key), nodes.nodes[1].client(&nodes.api_key));
    let beneficiary_id = steps::beneficiary_payable(&mut other);
    let sender_id = steps::sender(&mut other);
    let quote_lock_id = steps::quote_lock(&mut other, "20.00");
    let body =
        steps::transfer_body(&sender_id, &beneficiary_id, &quote_lock_id, "20.00").to_string();
    proxy.change(|faults| faults.holds_commits = true);
    maker
        .start("POST", "/v1/transfers", Some(&fresh_key()), Some(body.as_bytes()))
        .expect("a request");
    // The last statement before a COMMIT asks where the log is.
    let held = "SELECT COUNT(DISTINCT a.pid) FROM pg_stat_activity a \
        JOIN pg_locks l ON l.pid = a.pid AND l.mode = 'RowExclusiveLock' \
        JOIN pg_class c ON c.oid = l.relation AND c.relname = 'transfers' \
        WHERE a.datname = current_database() AND a.state = 'idle in transaction' \
        AND a.query LIKE 'SELECT CAST(pg_current_wal_insert_lsn() %'";
    until("the creation to be held at its COMMIT", steps::PATIENCE, || {
        (database.value(held) == "1").then_some(())
    });
    other
        .post("/v1/test_helpers/clock", &json!({ "advance_seconds": 86_400 }))
        .expect_success("the advance");
    proxy.heal();
    let made = maker.finish().expect("an answer").expect_success("the transfer");
    let path = format!("/v1/transfers/{}", steps::text(&made, "id"));
    let deadline = Instant::now() + patience;
    loop {
        let shown = other.get(&path).expect_success("the transfer");
        if shown["status"] == "expired" {
            nodes.check();
            return Some(shown);
        }
        if Instant::now() > deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn an_advance_reaches_what_is_being_made() {
    let expired = advanced_while_it_is_made(Duration::from_secs(30), |home| home)
        .expect("a transfer that expires");
    let expires_at = expired["funding"]["expires_at"].as_i64().expect("a time");
    let expired_at = expired["status_history"][1]["at"].as_i64().expect("a time");
    assert!(
        (expires_at..=expires_at + 5).contains(&expired_at),
        "it expired {} s after its time",
        expired_at - expires_at
    );
}

/// The same without the looks after an advance: the transfer would expire half an hour later.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "optimised builds do not contain the planted fault")]
fn an_advance_that_misses_what_is_being_made_is_found_out() {
    let expired = advanced_while_it_is_made(Duration::from_secs(6), |home| {
        home.with_fault("no_clock_catch_up")
    });
    assert_eq!(expired, None);
}

/// A payout that goes on hold while its beneficiary is made payable again is found by whoever does
/// that, and paid.
#[test]
fn a_payout_that_goes_on_hold_is_not_left_there() {
    let database = Database::fresh();
    let serving = Node::start(home(&database.url()).with("HUNDI_ROLE", "serve"));
    let mut working = Node::start(home(&database.url()).with("HUNDI_ROLE", "work"));
    let api_key = serving.home.key();
    let mut client = serving.client(&api_key);
    let (beneficiary_id, _, _, transfer) = steps::transfer_unfunded(&mut client, "20.00");
    // From here on tasks run when this test says so.
    working.kill();
    steps::deposit(&mut client, &steps::text(&transfer, "id"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let config = configuration(&database);
    let app = runtime.block_on(App::open(&config, Clock::System)).expect("the service");
    let run_due = |then: Box<dyn FnMut() + Send>| {
        let (services, mut then) = (app.state.services.clone(), then);
        let work = move |tx: &mut dyn Tx, now: &mut Now| {
            tasks::run_due(tx, now, &services, hundi::tasks::TASKS_AT_ONCE_MAX)?;
            // What was written so far is at the server.
            tx.row("SELECT number FROM accounts LIMIT 1", &[])?;
            then();
            Ok(())
        };
        runtime.block_on(app.state.store.write(work)).expect("the tasks that are due");
    };
    let awaits = |what: &str, sql: &str, steps: &dyn Fn()| {
        until(what, steps::PATIENCE, || {
            steps();
            (database.value(sql) == "1").then_some(())
        });
    };
    let nothing = || -> Box<dyn FnMut() + Send> { Box::new(|| ()) };
    let payout_is_next = "SELECT COUNT(*) FROM tasks WHERE kind = 'payout_submit'";
    awaits("the payout", payout_is_next, &|| run_due(nothing()));
    database.sql(
        "UPDATE beneficiaries SET version = version + 1, payouts_enabled = FALSE, \
     payouts_disabled_reason = 'returned_payout'",
    );

    let (held, is_held) = mpsc::channel();
    let is_activated = Arc::new(AtomicBool::new(false));
    let (url, seen) = (database.url(), is_activated.clone());
    let until_met = move || {
        let _ = held.send(());
        let waiting = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
         AND wait_event_type = 'Lock'";
        until("the other to wait or to end", Duration::from_secs(5), || {
            (seen.load(Ordering::SeqCst)
                || crate::support::postgres::sql(&url, waiting)[0][0] == "1")
                .then_some(())
        });
    };
    std::thread::scope(|scope| {
        let (client, is_activated) = (&mut client, &is_activated);
        let path = format!("/v1/test_helpers/beneficiaries/{beneficiary_id}/activate");
        let activation = scope.spawn(move || {
            is_held.recv().expect("the payout on hold");
            client.post(&path, &json!({})).expect_success("the activation");
            is_activated.store(true, Ordering::SeqCst);
        });
        run_due(Box::new(until_met));
        activation.join().expect("the activation");
    });
    awaits(
        "the payout to be paid",
        "SELECT COUNT(*) FROM payouts WHERE status = 'settled'",
        &|| run_due(nothing()),
    );
    drop(app);
    serving.home.check().expect_success("the check");
}

/// Two nodes write to the audit log at once, and so do people who sign in at neither: the chain is
/// whole, and the check says so. The control: an entry that is changed later is found.
#[test]
fn two_nodes_write_one_audit_log() {
    const WRITERS: usize = 4;
    const ENTRIES: usize = 25;
    let database = Database::fresh();
    let home = home(&database.url());
    // Makes the database.
    home.key();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .expect("a runtime");
    let config = configuration(&database);
    let nodes: Vec<Arc<App>> = (0..2)
        .map(|_| runtime.block_on(App::open(&config, Clock::System)).expect("a node"))
        .collect();
    let before: usize = database.value("SELECT number FROM audit_tail").parse().expect("a number");
    let writing: Vec<_> = nodes
        .iter()
        .flat_map(|node| (0..WRITERS).map(move |writer| (node.state.clone(), writer)))
        .map(|(state, writer)| {
            runtime.spawn(async move {
                for number in 0..ENTRIES {
                    let work = move |tx: &mut dyn Tx, now: &mut Now| {
                        let subject = format!("writer {writer}, entry {number}");
                        let action = Action::Decision;
                        let by = DecidedBy::new("asha", "a test").expect("a name");
                        audit::append(tx, now, &Fact::by(&by, action, &subject, &[]))?;
                        Ok(())
                    };
                    state.store.write(work).await.expect("an entry");
                }
            })
        })
        .collect();
    for writer in writing {
        runtime.block_on(writer).expect("a writer");
    }
    let all = before + nodes.len() * WRITERS * ENTRIES;
    assert_eq!(database.value("SELECT COUNT(*) FROM audit_log"), all.to_string());
    assert_eq!(database.value("SELECT MAX(number) FROM audit_log"), all.to_string());
    home.check().expect_success("the check");
    let number = all - 7;
    database.sql(&format!("UPDATE audit_log SET actor = 'ravi' WHERE number = {number}"));
    let found = home.check();
    assert!(!found.status.success(), "the changed entry was not found");
    let said = format!("entry {number} is not as it was written");
    let text = format!("{}{}", found.stdout, found.stderr);
    assert!(text.contains(&said), "{text}");
}
