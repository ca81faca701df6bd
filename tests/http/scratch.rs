//! Scratch.
use serde_json::json;
use crate::stage::{self, Actor, SETTLES};
use crate::support::id;

#[tokio::test(flavor = "multi_thread")]
async fn overflow() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let transfer = actor.transfer(SETTLES, json!({})).await;
    for n in 0..12 {
        let a = actor.client.post(&format!("/v1/test_helpers/transfers/{}/deposit", id(&transfer)), json!({"amount": "999999999999.999999"})).await;
        eprintln!("{n} {}", a.status);
    }
    let a = actor.client.post("/v1/test_helpers/clock", json!({"advance_seconds": 130})).await;
    eprintln!("clock {} {:?}", a.status, a.body);
    let a = actor.client.get("/v1/balance").await;
    eprintln!("balance {} {:?}", a.status, a.body);
    panic!();
}

#[tokio::test(flavor = "multi_thread")]
async fn year() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    for _ in 0..4 { actor.client.beneficiary("50100010000004").await; }
    let t = std::time::Instant::now();
    let a = actor.client.post("/v1/test_helpers/clock", json!({"advance_seconds": 31_536_000})).await;
    eprintln!("clock {} {:?} {:?}", a.status, a.body, t.elapsed());
    panic!();
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_code() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let transfer = actor.transfer("50100010001003", json!({})).await;
    actor.pay(&transfer, "1000.00").await;
    actor.finalise().await;
    let p = actor.payout_of(&transfer).await;
    let a = actor.client.post(&format!("/v1/test_helpers/payouts/{}/fail", id(&p)), json!({"code": "outcome_unknown"})).await;
    eprintln!("{} {:?}", a.status, a.body);
    panic!();
}

#[tokio::test(flavor = "multi_thread")]
async fn early_settle_1002() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let transfer = actor.transfer("50100010001002", json!({})).await;
    actor.pay(&transfer, "1000.00").await;
    actor.finalise().await;
    let p = actor.payout_of(&transfer).await;
    let a = actor.client.post(&format!("/v1/test_helpers/payouts/{}/settle", id(&p)), json!({})).await;
    eprintln!("{} {:?}", a.status, a.body);
    actor.advance(86400).await;
    eprintln!("{:?}", stage::history(&actor.shown(&transfer).await));
    panic!();
}
