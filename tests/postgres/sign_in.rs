//! Failed sign-ins that meet on several lanes: each is counted, and no more than allowed are looked
//! at.

use std::sync::Arc;

use hundi::app::App;
use hundi::config::{Config, Flags};
use hundi::kernel::{Clock, Now};
use hundi::staff::sign_in::{self, Attempt, NAME_FAILURES_MAX, Place};
use hundi::store::Tx;

use crate::support::postgres::{Database, ENCRYPTION_KEY};

async fn node(database: &Database) -> Arc<App> {
    let flags = Flags { database: Some(database.url()), ..Flags::default() };
    let environment = |name: &str| match name {
        "HUNDI_ENCRYPTION_KEY" => Some(ENCRYPTION_KEY.to_owned()),
        "HUNDI_DATABASE_CONNECTIONS" => Some("9".to_owned()),
        _ => None,
    };
    let config = Config::read(&flags, &environment).expect("the settings");
    App::open(&config, Clock::System).await.expect("a node")
}

fn place(address: &str) -> Place {
    Place { address: address.into(), browser: String::new() }
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_that_meet_are_all_counted() {
    let database = Database::fresh();
    let app = node(&database).await;
    let fail = || {
        let (store, services) = (app.state.store.clone(), app.state.services.clone());
        tokio::spawn(async move {
            let count = move |tx: &mut dyn Tx, now: &mut Now| {
                Ok(sign_in::count_address_failure(tx, now, &services, &place("192.0.2.1"))?)
            };
            store.write(count).await.expect("a failure");
        })
    };
    fail().await.expect("the first");
    let held = database.hold("SELECT * FROM sign_in_failures FOR UPDATE");
    let meeting = [fail(), fail()];
    database.until_waiting(2);
    drop(held);
    for one in meeting {
        one.await.expect("a failure");
    }
    assert_eq!(database.sql("SELECT count::text FROM sign_in_failures"), [["3"]]);
    app.state.store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_that_meet_on_two_nodes_are_limited_together() {
    let database = Database::fresh();
    let nodes = [node(&database).await, node(&database).await];
    let attempts = (0..40).map(|number| {
        let app = &nodes[number % 2];
        let (store, services) = (app.state.store.clone(), app.state.services.clone());
        let attempt = Attempt {
            name: "asha".into(),
            password: "a wrong password".into(),
            code: String::new(),
            place: place(&format!("192.0.2.{number}")),
        };
        tokio::spawn(async move {
            let count = move |tx: &mut dyn Tx, now: &mut Now| {
                Ok(sign_in::count(tx, now, &services, &attempt.name, &attempt.place)?.is_ok())
            };
            store.write(count).await.expect("an attempt")
        })
    });
    let attempts: Vec<_> = attempts.collect();
    let mut admitted = 0;
    for attempt in attempts {
        admitted += i64::from(attempt.await.expect("an attempt"));
    }
    assert_eq!(admitted, NAME_FAILURES_MAX);
    // Those that were not looked at count for no address either.
    let counts = database.sql("SELECT count::text FROM sign_in_failures WHERE count = 1");
    assert_eq!(counts.len() as i64, NAME_FAILURES_MAX);
    for node in nodes {
        node.state.store.close().await;
    }
}
