//! Money that goes back: the operator sends it and gives the hash, and only the chain confirms it.

use hundi::kernel::id::kind;
use hundi::kernel::{Id, OperationError, Scope};
use hundi::refunds;
use hundi::store::Cost;
use serde_json::{Value, json};

use crate::service::{Stage, address, eventually};
use crate::wire::{Hash, nobody};

/// What the operator does after it sent a refund.
pub async fn mark_sent(stage: &Stage, refund: &Value, hash: &str) -> Result<(), OperationError> {
    let id: Id<kind::Refund> = Id::parse(refund["id"].as_str().unwrap()).unwrap();
    let hash = hash.to_owned();
    let work = move |tx: &mut dyn hundi::store::Tx, _: &mut hundi::kernel::Now| {
        let mut refund = refunds::rows::find(tx, Scope::new(1, hundi::kernel::Mode::Test), id)?
            .expect("a refund");
        refunds::mark_sent(tx, &mut refund, &hash)
    };
    stage.app.state.store.write(work).await
}

async fn fault(stage: &Stage, refund: &Value) -> Option<&'static str> {
    let id: Id<kind::Refund> = Id::parse(refund["id"].as_str().unwrap()).unwrap();
    let found = stage.app.state.store.read(Cost::Point, move |tx| {
        Ok(refunds::rows::find(tx, Scope::new(1, hundi::kernel::Mode::Test), id)?)
    });
    found.await.unwrap().expect("a refund").sent_fault.map(refunds::state::SentHashError::as_str)
}

async fn shown(stage: &Stage, refund: &Value) -> Value {
    stage.client.get(&format!("/v1/refunds/{}", refund["id"].as_str().unwrap())).await.ok()
}

pub async fn awaits(stage: &Stage, refund: &Value, status: &str) -> Value {
    eventually(&format!("a refund to be {status}"), async || {
        let shown = shown(stage, refund).await;
        (shown["status"] == status).then_some(shown)
    })
    .await
}

/// Transfers of 100.00 with 5.00 too much each, which is owed back to `to`.
pub async fn excesses(stage: &Stage, to: &str, count: usize) -> Vec<Value> {
    let mut transfers = Vec::new();
    for _ in 0..count {
        let transfer = stage.caller.transfer_with("100.00", json!({"refund_address": to})).await;
        stage.token.transfer(address(&transfer), 105_000_000).await;
        transfers.push(transfer);
    }
    stage.settle().await;
    let mut all = Vec::new();
    for transfer in &transfers {
        stage.awaits(transfer, "payout_settled").await;
        all.push(stage.refunds(transfer).await.remove(0));
    }
    all
}

#[tokio::test]
async fn only_the_right_transaction_confirms_a_refund() {
    let stage = Stage::set().await;
    let to = nobody(77);
    let owed = excesses(&stage, &to.to_string(), 6).await;
    assert!(
        owed.iter().all(|refund| refund["status"] == "processing" && refund["amount"] == "5.00")
    );
    let short = stage.token.transfer(to, 4_999_999).await;
    let elsewhere = stage.token.transfer(nobody(78), 5_000_000).await;
    let reverted = stage.token.transfer_reverted(to, 5_000_000).await;
    let right = stage.token.transfer(to, 5_000_000).await;
    let pair = stage.token.transfer_many(&[(to, 5_000_000), (to, 5_000_000)]).await;
    stage.mine(2).await;

    assert!(mark_sent(&stage, &owed[0], "0x12").await.is_err(), "no hash");
    let hashes = [short, elsewhere, reverted, Hash([0x5a; 32]), right, right];
    for (number, (refund, hash)) in owed.iter().zip(hashes).enumerate() {
        // With 0x and without it is the same transaction.
        let text = if number % 2 == 0 { hash.to_string() } else { hash.plain() };
        mark_sent(&stage, refund, &text).await.unwrap();
    }
    eventually("the unknown hash to be told", async || {
        (fault(&stage, &owed[3]).await == Some("not_found")).then_some(())
    })
    .await;
    assert!(shown(&stage, &owed[4]).await["transaction_hash"].is_null(), "it is not final yet");
    stage.settle().await;
    let expected =
        [Some("no_such_movement"), Some("no_such_movement"), Some("reverted"), Some("not_found")];
    for (refund, expected) in owed.iter().zip(expected) {
        eventually("the transaction to be refused", async || {
            (fault(&stage, refund).await == expected).then_some(())
        })
        .await;
        assert_eq!(shown(&stage, refund).await["status"], "processing");
    }
    // One movement confirms one refund.
    let used = eventually("the same hash twice", async || {
        let faults = [fault(&stage, &owed[4]).await, fault(&stage, &owed[5]).await];
        faults.contains(&Some("already_used")).then_some(faults)
    })
    .await;
    assert!(used.contains(&None));
    let (done, twice) = if used[0].is_none() { (&owed[4], &owed[5]) } else { (&owed[5], &owed[4]) };
    let confirmed = awaits(&stage, done, "completed").await;
    assert_eq!(confirmed["transaction_hash"], right.plain());
    assert!(
        mark_sent(&stage, done, &short.to_string()).await.is_err(),
        "a completed refund is not sent again"
    );

    // One transaction with two movements confirms two.
    mark_sent(&stage, twice, &pair.to_string()).await.unwrap();
    mark_sent(&stage, &owed[0], &pair.to_string()).await.unwrap();
    for refund in [twice, &owed[0]] {
        let confirmed = awaits(&stage, refund, "completed").await;
        assert_eq!(confirmed["transaction_hash"], pair.plain());
    }
    assert_eq!(stage.verify().await.deposits, 6);
}

#[tokio::test]
async fn a_transfer_ends_refunded_when_the_chain_says_so() {
    let stage = Stage::set().await;
    let to = nobody(77);
    let leg = json!({"refund_address": to.to_string(), "policy": {"late": "refund"}});
    let transfer = stage.caller.transfer_with("100.00", leg).await;
    let expires_at = transfer["funding"]["expires_at"].as_i64().unwrap();
    stage.token.transfer(address(&transfer), 100_000_000).await;
    stage.mine_at(expires_at + 1).await;
    stage.settle().await;
    stage.awaits(&transfer, "refund_processing").await;
    let refund = stage.refunds(&transfer).await.remove(0);
    assert_eq!(
        (refund["kind"].as_str(), refund["amount"].as_str()),
        (Some("principal"), Some("100.00"))
    );
    // The operator empties the deposit address straight to the customer: a sweep and the refund at
    // once.
    let sent = stage.token.transfer_from(address(&transfer), to, 100_000_000).await;
    mark_sent(&stage, &refund, &sent.to_string()).await.unwrap();
    stage.settle().await;
    let shown = stage.awaits(&transfer, "refunded").await;
    assert_eq!(shown["refund"]["transaction_hash"], sent.plain());
    let compared = stage.verify().await;
    assert_eq!((compared.deposits, compared.sweeps), (1, 1));
}

/// Transactions that are never found do not keep others from being looked for, however many they
/// are.
#[tokio::test]
async fn a_refund_behind_many_that_are_never_found_is_confirmed() {
    const NEVER_FOUND: usize = 120;
    let stage = Stage::set().await;
    let to = nobody(77);
    let owed = excesses(&stage, &to.to_string(), 1).await.remove(0);
    let sql = async |sql: String| {
        stage.app.state.store.write(move |tx, _| Ok(tx.execute(&sql, &[])?)).await.unwrap()
    };
    sql("CREATE TABLE kept_refunds AS SELECT * FROM refunds".into()).await;
    for number in 0..NEVER_FOUND {
        // Before the real one in the order of identifiers.
        let id = format!("{number:032x}");
        sql(format!(
            "UPDATE kept_refunds SET id = X'{id}', sent_transaction_hash = \
         '{number:064x}', sent_fault = 'not_found'"
        ))
        .await;
        sql("INSERT INTO refunds SELECT * FROM kept_refunds".into()).await;
    }
    let sent = stage.token.transfer(to, 5_000_000).await;
    stage.settle().await;
    mark_sent(&stage, &owed, &sent.to_string()).await.unwrap();
    awaits(&stage, &owed, "completed").await;
}

/// What was paid to the same address before the refund was owed is something else.
#[tokio::test]
async fn a_payment_of_before_a_refund_does_not_complete_it() {
    let stage = Stage::set().await;
    let to = nobody(77);
    let before = stage.token.transfer(to, 5_000_000).await;
    stage.mine(2).await;
    let owed = excesses(&stage, &to.to_string(), 1).await.remove(0);
    mark_sent(&stage, &owed, &before.to_string()).await.unwrap();
    eventually("the payment of before to be refused", async || {
        (fault(&stage, &owed).await == Some("before_refund")).then_some(())
    })
    .await;
    assert_eq!(shown(&stage, &owed).await["status"], "processing");
    stage.mine(1).await;
    let sent = stage.token.transfer(to, 5_000_000).await;
    stage.settle().await;
    mark_sent(&stage, &owed, &sent.to_string()).await.unwrap();
    assert_eq!(awaits(&stage, &owed, "completed").await["transaction_hash"], sent.plain());
}
