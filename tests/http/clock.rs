//! The test clock: what falls due on the way runs at its own moment, in this account and no other.

use hundi::kernel::{Mode, Scope};
use hundi::keys;
use hundi::test_helpers::clock::LAST_MOMENT;
use serde_json::{Value, json};

use crate::stage::{self, ADDRESS, Actor, DAY, SETTLES, STEP, faults};
use crate::support::{Server, id, payout_id};

#[tokio::test(flavor = "multi_thread")]
async fn an_advance_runs_everything_due_at_its_own_moment() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let created_at = actor.now();
    let waiting = actor.client.beneficiary(SETTLES).await;
    let beneficiary_id = actor.beneficiary(SETTLES).await;
    let checked = actor.client.get(&format!("/v1/beneficiaries/{}", id(&waiting))).await.ok();
    assert_eq!(checked["verification"]["checked_at"], created_at + STEP);
    let (sent_at, funding) = (actor.now(), json!({ "refund_address": ADDRESS }));
    let unfunded = actor.transfer_to(&beneficiary_id, "1000.00", json!({})).await;
    let short = actor.transfer_to(&beneficiary_id, "1000.00", funding).await;
    let paid = actor.transfer_to(&beneficiary_id, "1000.00", json!({})).await;
    actor.pay(&short, "400.00").await;
    let deposit = actor.pay(&paid, "1000.00").await;
    let expires_at = sent_at + 1800;
    actor.advance(30 * DAY).await;

    let shown = actor.shown(&paid).await;
    let final_at = sent_at + 2 * STEP;
    let wanted = [
        ("funding", sent_at),
        ("funded", final_at),
        ("payout_processing", final_at),
        ("payout_settled", final_at + 2 * STEP),
    ];
    assert_eq!(stage::history(&shown), wanted.map(|(status, at)| (status.to_owned(), at)));
    let payout = actor.payout_of(&paid).await;
    assert_eq!(
        (payout["created"].as_i64(), payout["settled_at"].as_i64()),
        (Some(final_at), Some(final_at + 2 * STEP))
    );
    assert_eq!(payout["payment_advice"]["available_at"], final_at + 3 * STEP);
    let deposit = actor.client.get(&format!("/v1/deposits/{}", id(&deposit))).await.ok();
    assert_eq!(
        (
            deposit["created"].as_i64(),
            deposit["block_time"].as_i64(),
            deposit["completed_at"].as_i64()
        ),
        (Some(sent_at), Some(sent_at), Some(final_at))
    );

    // The chain's final view passes expires_at moments after it.
    let passed = |at: i64| (expires_at + 1..=expires_at + STEP).contains(&at);
    let history = stage::history(&actor.shown(&unfunded).await);
    assert_eq!(
        history.iter().map(|(status, _)| status.as_str()).collect::<Vec<_>>(),
        ["funding", "expired"]
    );
    assert!(passed(history[1].1), "{history:?}");
    let shown = actor.shown(&short).await;
    let history = stage::history(&shown);
    assert_eq!(
        history.iter().map(|(status, _)| status.as_str()).collect::<Vec<_>>(),
        ["funding", "funding_hold", "refund_processing", "refunded"]
    );
    let held_at = history[1].1;
    assert!(passed(held_at), "{history:?}");
    assert_eq!(history[2].1, held_at + DAY, "24 hours to the second");
    assert_eq!(
        (history[3].1, shown["refund"]["completed_at"].as_i64()),
        (held_at + DAY + 2 * STEP, Some(held_at + DAY + 2 * STEP))
    );
    assert_eq!(shown["refund"]["created"], held_at + DAY);

    let events = stage::all(&actor.client, "/v1/events").await;
    let times: Vec<i64> = events.iter().map(|event| event["created"].as_i64().unwrap()).collect();
    assert!(
        times.is_sorted() && times.iter().any(|at| *at == held_at + DAY),
        "events carry the moment of their change"
    );
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_advance_and_many_end_alike() {
    let server = stage::server().await;
    let mut endings: Vec<Vec<(String, i64)>> = Vec::new();
    for (account, steps) in [
        ("at-once", vec![100_000]),
        ("by-and-by", vec![1_000; 100]),
        ("unevenly", vec![1, 59, 60, 1_679, 1, 60, 98_140]),
    ] {
        let actor = Actor::new(&server, account).await;
        let transfer = actor.transfer(SETTLES, json!({ "refund_address": ADDRESS })).await;
        let from = actor.now();
        actor.pay(&transfer, "400.00").await;
        for step in steps {
            actor.advance(step).await;
        }
        assert_eq!(actor.now(), from + 100_000);
        endings.push(
            stage::history(&actor.shown(&transfer).await)
                .into_iter()
                .map(|(status, at)| (status, at - from))
                .collect(),
        );
    }
    assert_eq!(endings[0].last().unwrap().0, "refunded");
    assert_eq!(endings[0], endings[1]);
    assert_eq!(endings[0], endings[2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_year_passes_also_with_many_verifications_that_wait() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    for _ in 0..30 {
        actor.client.beneficiary("50100010000004").await;
    }
    let transfer = actor.transfer(SETTLES, json!({ "policy": { "overpaid": "hold" } })).await;
    actor.advance(1_000).await;
    actor.pay(&transfer, "1100.00").await;
    actor.advance(31_536_000).await;
    let history = stage::history(&actor.shown(&transfer).await);
    assert_eq!(
        history.iter().map(|(status, _)| status.as_str()).collect::<Vec<_>>(),
        ["funding", "funding_hold", "refund_processing"]
    );
    assert_eq!(history[2].1, history[1].1 + DAY);
    let waiting = stage::all(&actor.client, "/v1/beneficiaries?status=verifying").await;
    assert_eq!(waiting.len(), 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_is_the_clock_and_bounds_hold() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let path = "/v1/test_helpers/clock";
    let start = actor.now();
    let answer = actor.client.post(path, json!({ "advance_seconds": 100 })).await.ok();
    assert_eq!(answer, json!({ "object": "test_clock", "now": start + 100 }));
    let answer = actor.client.post(path, json!({ "advance_seconds": 31_536_000 })).await.ok();
    assert_eq!(answer["now"], start + 100 + 31_536_000);
    for (body, code, field) in [
        (json!({}), "parameter_empty", "advance_seconds"),
        (json!({ "advance_seconds": null }), "parameter_empty", "advance_seconds"),
        (json!({ "advance_seconds": "5" }), "parameter_value_invalid", "advance_seconds"),
        (json!({ "advance_seconds": 1.5 }), "parameter_value_invalid", "advance_seconds"),
        (json!({ "advance_seconds": 0 }), "parameter_range_invalid", "advance_seconds"),
        (json!({ "advance_seconds": -5 }), "parameter_range_invalid", "advance_seconds"),
        (json!({ "advance_seconds": 31_536_001 }), "parameter_range_invalid", "advance_seconds"),
        (json!({ "advance_seconds": 5, "to": 6 }), "parameter_unexpected", "to"),
    ] {
        assert_eq!(
            actor.client.post(path, body.clone()).await.errors(400),
            faults(&[(code, field)]),
            "{body}"
        );
    }
    let sender = actor.client.sender().await;
    assert_eq!(sender["created"], start + 100 + 31_536_000, "refused advances move nothing");
    // A replay of an advance does not advance again.
    let key = actor.client.fresh_key();
    let first = actor.client.post_with(path, &key, json!({ "advance_seconds": 7 })).await;
    let again = actor.client.post_with(path, &key, json!({ "advance_seconds": 7 })).await;
    assert_eq!(
        (first.body, again.header("idempotent-replayed")),
        (again.body.clone(), Some("true"))
    );
    assert_eq!(actor.client.sender().await["created"], start + 100 + 31_536_000 + 7);
}

/// Two advances that both wait for the account: only one has room before the clock's end.
#[tokio::test(flavor = "multi_thread")]
async fn two_advances_at_once_stay_within_the_last_moment() {
    const LEFT: i64 = 100;
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let other = Actor::new(&server, "default").await;
    actor.jump_to(&server, 1, LAST_MOMENT - LEFT).await;
    let store = server.app.state.store.clone();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (locked, is_locked) = tokio::sync::oneshot::channel();
    let mut locked = Some(locked);
    let holding = tokio::spawn(async move {
        store
            .write(move |tx, _| {
                keys::rows::lock_account(tx, Scope::new(1, Mode::Test))?;
                if let Some(locked) = locked.take() {
                    let _ = locked.send(());
                    let _ = released.recv();
                }
                Ok(())
            })
            .await
            .unwrap();
    });
    is_locked.await.unwrap();
    let advance = async |actor: &Actor| {
        let body = json!({ "advance_seconds": LEFT * 3 / 4 });
        actor.client.post("/v1/test_helpers/clock", body).await
    };
    let let_go = async {
        // Time for both to get as far as the lock. Without it the test shows less, but passes.
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        release.send(()).unwrap();
    };
    let (one, two, ()) = tokio::join!(advance(&actor), advance(&other), let_go);
    holding.await.unwrap();
    let mut statuses = [one.status, two.status];
    for refused in [one, two].iter().filter(|answer| answer.status == 400) {
        let error = &refused.json()["errors"][0];
        assert_eq!(error["code"], "parameter_range_invalid");
        assert_eq!(error["metadata"]["maximum"], (LEFT / 4).to_string());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_is_the_accounts_own_and_no_identifier_follows_it() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let other = Actor::new(&server, "other").await;
    let transfer = other.transfer(SETTLES, json!({})).await;
    actor.advance(10 * DAY).await;
    assert_eq!(other.shown(&transfer).await["status"], "funding");
    assert_eq!(other.client.sender().await["created"], other.now());
    let late = actor.client.sender().await;
    let fresh = other.client.sender().await;
    assert!(
        late["created"].as_i64() > fresh["created"].as_i64() && id(&late) < id(&fresh),
        "ids follow the store's clock"
    );
    // Another key of the account shares its clock; live mode has none.
    let twin = server.client_of("default", Mode::Test, "").await;
    assert_eq!(twin.sender().await["created"], actor.now());
    let live = server.client_of("default", Mode::Live, "").await;
    let body = json!({ "url": "https://example.com/live" });
    let endpoint = live.post("/v1/webhook_endpoints", body).await.ok();
    assert_eq!(endpoint["created"], other.now() - 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_moves_by_itself_but_the_deposit() {
    let server = Server::start().await;
    let client = server.client().await;
    let transfer = client.transfer().await;
    client.deposit(&transfer, json!({})).await;
    let path = format!("/v1/transfers/{}", id(&transfer));
    let settled = client.wait_status(&path, "payout_settled").await;
    assert_eq!(
        stage::statuses(&settled),
        ["funding", "funded", "payout_processing", "payout_settled"]
    );
    let advice = format!("/v1/payouts/{}", payout_id(&settled));
    client.wait_until(&advice, |payout| payout["payment_advice"]["status"] == "available").await;
    let body = client.transfer_body("50100010001001", "1000.00").await;
    let mut body_with_address: Value = body;
    body_with_address["funding"]["refund_address"] = json!(ADDRESS);
    let failing = client.post("/v1/transfers", body_with_address).await.ok();
    client.deposit(&failing, json!({})).await;
    client.wait_status(&format!("/v1/transfers/{}", id(&failing)), "refunded").await;
    stage::assert_book(&server);
}
