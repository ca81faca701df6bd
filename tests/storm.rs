//! Many sends at the same instant: of one idempotency key, and of many keys for one quote lock. One
//! wins.

mod support;

use serde_json::Value;
use support::at_once::{expect_one_effect, expect_one_winner, send_at_once};
use support::steps;
use support::{Home, fresh_key};

const SENDS_COUNT: usize = 500;
const RACERS_COUNT: usize = 50;

fn quiet_home(name: &str) -> Home {
    Home::new(name).with("HUNDI_RATE_LIMIT_READS", "0").with("HUNDI_RATE_LIMIT_WRITES", "0")
}

#[test]
fn one_key_sent_500_times_makes_one_sender() {
    let home = quiet_home("storm-sender");
    let server = home.start();
    let mut client = server.client(&home.key());
    let (key, body) = (fresh_key(), steps::sender_body().to_string());
    let answers = send_at_once(
        std::slice::from_ref(&client),
        "/v1/senders",
        &vec![(key.clone(), body.clone()); SENDS_COUNT],
    );
    let made = expect_one_effect(&answers);

    let again = client.ask("POST", "/v1/senders", Some(&key), Some(body.as_bytes()));
    assert!(again.is_replay(), "a later send is no replay: {}", again.text());
    assert_eq!(again.expect_success("a later send"), made);
    assert_eq!(client.list("/v1/senders", ""), [made], "there is more or less than the one sender");
    home.check().expect_success("the check");
}

#[test]
fn one_key_sent_500_times_makes_one_transfer() {
    let home = quiet_home("storm-transfer");
    let server = home.start();
    let mut client = server.client(&home.key());
    let beneficiary_id = steps::beneficiary_payable(&mut client);
    let sender_id = steps::sender(&mut client);
    let quote_lock_id = steps::quote_lock(&mut client, "250.00");
    let (key, body) = (
        fresh_key(),
        steps::transfer_body(&sender_id, &beneficiary_id, &quote_lock_id, "250.00").to_string(),
    );
    let answers = send_at_once(
        std::slice::from_ref(&client),
        "/v1/transfers",
        &vec![(key.clone(), body.clone()); SENDS_COUNT],
    );
    let made = expect_one_effect(&answers);

    let again = client.ask("POST", "/v1/transfers", Some(&key), Some(body.as_bytes()));
    assert!(again.is_replay(), "a later send is no replay: {}", again.text());
    assert_eq!(again.expect_success("a later send"), made);
    let transfers = client.list("/v1/transfers", "");
    assert_eq!(transfers.len(), 1, "there is more or less than the one transfer");
    assert_eq!(transfers[0]["id"], made["id"]);
    let lock =
        client.get(&format!("/v1/quote_locks/{quote_lock_id}")).expect_success("the quote lock");
    assert_eq!((&lock["status"], &lock["transfer_id"]), (&Value::from("used"), &made["id"]));
    let events = client.list("/v1/events", &format!("linked_id={}", steps::text(&made, "id")));
    assert_eq!(events.len(), 1, "one transfer in its first status has one event: {events:?}");
    home.check().expect_success("the check");
}

#[test]
fn fifty_transfers_race_for_one_quote_lock_and_one_wins() {
    let home = quiet_home("storm-race");
    let server = home.start();
    let mut client = server.client(&home.key());
    let beneficiary_id = steps::beneficiary_payable(&mut client);
    let sender_id = steps::sender(&mut client);
    let quote_lock_id = steps::quote_lock(&mut client, "99.99");
    let body =
        steps::transfer_body(&sender_id, &beneficiary_id, &quote_lock_id, "99.99").to_string();
    let requests: Vec<(String, String)> =
        (0..RACERS_COUNT).map(|_| (fresh_key(), body.clone())).collect();
    let answers = send_at_once(std::slice::from_ref(&client), "/v1/transfers", &requests);

    let made = expect_one_winner(&answers);
    let transfers = client.list("/v1/transfers", "");
    assert_eq!(transfers.len(), 1);
    assert_eq!(transfers[0]["id"], made["id"]);
    home.check().expect_success("the check");
}
