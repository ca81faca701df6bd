//! What the operator paused: refused at once, with everything else going on, and caught up after.

use hundi::kernel::{DecidedBy, Mode, OperationError, Scope};
use hundi::pauses::{self, Operation};
use hundi::transfers::paying;
use serde_json::json;

use crate::support::{Server, id};

async fn pause(server: &Server, operation: Operation, account_number: Option<i64>) {
    let by = DecidedBy::new("asha", "a drill").unwrap();
    let set = server
        .app
        .state
        .store
        .write(move |tx, now| Ok(pauses::pause(tx, now, operation, account_number, &by)?));
    set.await.unwrap();
}

async fn resume(server: &Server, operation: Operation) -> bool {
    let ended = server.app.state.store.write(move |tx, _| Ok(pauses::resume(tx, operation, None)?));
    ended.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn quotes_and_transfers_are_refused_while_paused_and_the_same_key_works_after() {
    let server = Server::start().await;
    let client = server.client().await;
    let lock = json!({ "sell_currency": "USD", "buy_currency": "INR", "amount": "100.00" });
    let transfer = client.transfer_body("50100012345678", "100.00").await;
    for (operation, path, body) in [
        (Operation::Quotes, "/v1/quote_locks", lock),
        (Operation::Transfers, "/v1/transfers", transfer),
    ] {
        pause(&server, operation, None).await;
        let key = format!("a-key-for-{}-0001", operation.as_str());
        let refused = client.post_with(path, &key, body.clone()).await;
        assert_eq!(refused.error(503), "service_paused");
        assert_eq!(refused.header("retry-after"), Some("60"));
        let entry = &refused.json()["errors"][0];
        assert_eq!(entry["metadata"]["paused"], operation.as_str());
        assert!(!entry["message"].as_str().unwrap().contains("drill"), "the reason is not theirs");
        // Reading goes on, and what is not paused too.
        client.get("/v1/transfers").await.ok();
        assert!(resume(&server, operation).await && !resume(&server, operation).await);
        client.post_with(path, &key, body).await.ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_for_one_account_leaves_the_others_alone() {
    let server = Server::start().await;
    let (client, other) =
        (server.client().await, server.client_of("another", Mode::Test, "").await);
    pause(&server, Operation::Quotes, Some(1)).await;
    let body = json!({ "sell_currency": "USD", "buy_currency": "INR", "amount": "100.00" });
    let statuses = [
        client.post("/v1/quote_locks", body.clone()).await,
        other.post("/v1/quote_locks", body).await,
    ]
    .map(|answer| answer.status);
    assert_eq!(statuses, [503, 200]);
}

#[tokio::test(flavor = "multi_thread")]
async fn payouts_wait_while_paused_and_none_is_lost() {
    let server = Server::start().await;
    let client = server.client().await;
    pause(&server, Operation::Payouts, None).await;
    let mut transfers = Vec::new();
    for _ in 0..3 {
        let transfer = client.transfer().await;
        client.deposit(&transfer, json!({})).await;
        transfers.push(transfer);
    }
    for transfer in &transfers {
        client.wait_status(&format!("/v1/transfers/{}", id(transfer)), "funded").await;
    }
    // An hour passes, and nothing is sent.
    client.post("/v1/test_helpers/clock", json!({ "advance_seconds": 3_600 })).await.ok();
    for transfer in &transfers {
        let found = client.get(&format!("/v1/transfers/{}", id(transfer))).await.ok();
        assert_eq!(found["status"], "funded");
    }
    let ready = client.get("/readyz").await;
    let ready = String::from_utf8_lossy(&ready.body).into_owned();
    assert!(ready.contains("payouts are paused"), "{ready}");
    assert!(resume(&server, Operation::Payouts).await);
    let scope = Scope::new(1, Mode::Test);
    let submitted = server.app.state.store.write(move |tx, now| {
        now.enter_account(hundi::keys::rows::clock_offset_seconds(tx, scope)?);
        Ok::<_, OperationError>(paying::submit_waiting(tx, now, scope)?)
    });
    submitted.await.unwrap();
    for transfer in &transfers {
        client.wait_status(&format!("/v1/transfers/{}", id(transfer)), "payout_settled").await;
    }
    server.assert_book();
}
