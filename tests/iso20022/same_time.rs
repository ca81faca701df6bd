//! The operator, the bank's worker and a second one of each at the same moment, on PostgreSQL: a
//! lock that the test holds keeps both where they meet until both are there.

use hundi::kernel::id::kind;
use hundi::kernel::{AnyId, Id};
use hundi::operator::{self, OperatorDecision};
use hundi::payouts::state::PayoutStatus;
use hundi::rails::files::values::EndToEndId;
use hundi::workers::bank::publish::{ORDER, PublishStep};
use hundi::workers::bank::{Bank, TurnReport};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::bank::{PAID, Scene};
use crate::support::{by, id};

/// A decision that is under way.
fn deciding(
    scene: &Scene,
    id: AnyId,
    decision: OperatorDecision,
) -> JoinHandle<Result<String, String>> {
    let app = scene.server.app.state.clone();
    tokio::spawn(async move {
        let services = app.services.clone();
        app.store
            .write(move |tx, now| operator::decide(tx, now, &services, id, &decision, &by()))
            .await
            .map_err(|error| error.to_string())
    })
}

fn sent_count(files: &[String], payout_id: Id<kind::Payout>) -> usize {
    let name = format!("<EndToEndId>{}</EndToEndId>", EndToEndId::of(payout_id));
    files.iter().filter(|file| file.contains(&name)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payout_that_is_claimed_for_the_bank_is_not_given_back_too() {
    let scene = Scene::on_postgres().await;
    let (_, payout_id) = scene.payout(PAID, "100.00").await;
    let (_, next_id) = scene.payout(PAID, "100.00").await;
    let database = scene.server.database();
    // The claim has made the first instruction `writing` and waits for the second.
    let next = next_id.to_bytes().map(|byte| format!("{byte:02x}")).concat();
    let held = database
        .hold(&format!("SELECT 1 FROM bank_instructions WHERE payout_id = '\\x{next}' FOR UPDATE"));
    let meet = async {
        database.until_waiting(1);
        let failing = deciding(&scene, payout_id.any(), OperatorDecision::Fail);
        database.until_waiting(2);
        drop(held);
        failing.await.unwrap()
    };
    let (published, decided) = tokio::join!(scene.publish_in(&ORDER, None), meet);
    assert_eq!(published.unwrap(), 2);
    assert_eq!(sent_count(&scene.taken(), payout_id), 1);
    assert_eq!(scene.find(payout_id).await.status, PayoutStatus::Processing, "{decided:?}");
    assert!(decided.as_ref().is_err_and(|told| told.contains("being written")), "{decided:?}");
    scene.assert_book();
}

/// The holder of the bank's lease falls behind with a file that it has claimed; the next one looks
/// at it, and before it writes down what follows the first goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_renamed_meanwhile_is_not_given_up() {
    let scene = Scene::on_postgres().await;
    let (_, payout_id) = scene.payout(PAID, "100.00").await;
    let app = &scene.server.app.state;
    scene.publish_in(&[PublishStep::Claim, PublishStep::Stage], None).await.unwrap();
    let name = scene.bank.folders().staged().unwrap().pop().unwrap();
    let database = scene.server.database();
    let held =
        database.hold("UPDATE bank_messages SET status = 'staged', sha256 = 'x', boot = 'boot-1'");
    scene.bank.folders().publish(&name).unwrap();
    let next = Bank::open_in_boot(scene.settings.clone(), Some("boot-2".into())).unwrap();
    let app_of_next = app.clone();
    let recovering = tokio::spawn(async move {
        let mut turn = TurnReport::default();
        (next.recover(&app_of_next, &mut turn).await, next)
    });
    database.until_waiting(1);
    drop(held);
    let (recovered, mut next) = recovering.await.unwrap();
    let mut files = scene.taken();
    for _ in 0..3 {
        next.turn(app).await.unwrap();
        files.extend(scene.taken());
    }
    assert_eq!(sent_count(&files, payout_id), 1, "{recovered:?}");
    assert!(recovered.is_err(), "it is told, and tried again with the next turn");
    let payout = scene.find(payout_id).await;
    assert_eq!((payout.status, payout.failure), (PayoutStatus::Processing, None));
    assert_eq!(database.value("SELECT status FROM bank_instructions"), "published");
    scene.assert_book();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_is_refunded_once_whoever_decides() {
    let scene = Scene::on_postgres().await;
    let (transfer, _) = scene.payout(PAID, "100.00").await;
    let extra = scene.client.deposit(&transfer, json!({ "amount": "7.50" })).await;
    let extra =
        scene.client.wait_status(&format!("/v1/deposits/{}", id(&extra)), "completed").await;
    assert_eq!(extra["classification"], "unmatched");
    let deposit_id = AnyId::parse(&id(&extra)).unwrap();
    let database = scene.server.database();
    let held = database.hold("LOCK TABLE refunds IN SHARE MODE");
    let both = [
        deciding(&scene, deposit_id, OperatorDecision::Refund(None)),
        deciding(&scene, deposit_id, OperatorDecision::Refund(None)),
    ];
    database.until_waiting(2);
    drop(held);
    let mut taken_count = 0;
    for deciding in both {
        match deciding.await.unwrap() {
            Ok(_) => taken_count += 1,
            Err(told) => assert!(told.contains("already has a refund"), "{told}"),
        }
    }
    assert_eq!((taken_count, database.value("SELECT COUNT(*) FROM refunds").as_str()), (1, "1"));
    scene.assert_book();
}

/// A decision that met another transaction is made again, also where a question of its own brought
/// that to light.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_met_another_transaction_is_made_again() {
    let scene = Scene::on_postgres().await;
    let body = scene.client.transfer_body(PAID, "100.00").await;
    let transfer = scene.client.post("/v1/transfers", body).await.ok();
    let path = format!("/v1/transfers/{}", id(&transfer));
    scene.client.deposit(&transfer, json!({ "amount": "40.00" })).await;
    scene.client.wait_until(&path, |found| found["funding"]["amount_received"] == "40.00").await;
    let transfer_id = AnyId::parse(&id(&transfer)).unwrap();
    deciding(&scene, transfer_id, OperatorDecision::Review).await.unwrap().unwrap();
    let database = scene.server.database();
    let held = database.hold("UPDATE transfers SET version = version + 1");
    let refusing = deciding(&scene, transfer_id, OperatorDecision::Refuse);
    database.until_waiting(1);
    drop(held);
    refusing.await.unwrap().unwrap();
    assert_eq!(scene.client.get(&path).await.ok()["status"], "refund_processing");
    scene.assert_book();
}
