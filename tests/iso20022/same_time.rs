//! The operator, the bank's worker and a second one of each at the same moment, on PostgreSQL: a lock that the test holds keeps
//! both where they meet until both are there.

use hundi::kernel::AnyId;
use hundi::operator::{Ruling, rule};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::bank::{PAID, Scene};
use crate::support::id;

/// A decision that is under way.
fn deciding(scene: &Scene, id: AnyId, ruling: Ruling) -> JoinHandle<Result<String, String>> {
    let app = scene.server.app.clone();
    tokio::spawn(async move {
        let world = app.world.clone();
        app.store.write(move |tx, now| Ok(rule(tx, now, &world, id, &ruling)?)).await.expect("the store")
    })
}

/// A decision that met another transaction is made again, also where a question of its own brought that to light.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_met_another_transaction_is_made_again() {
    let scene = Scene::on_postgres().await;
    let body = scene.client.transfer_body(PAID, "100.00").await;
    let transfer = scene.client.post("/v1/transfers", body).await.ok();
    let path = format!("/v1/transfers/{}", id(&transfer));
    scene.client.deposit(&transfer, json!({ "amount": "40.00" })).await;
    scene.client.wait_until(&path, |found| found["funding"]["amount_received"] == "40.00").await;
    let transfer_id = AnyId::parse(&id(&transfer)).unwrap();
    deciding(&scene, transfer_id, Ruling::Review).await.unwrap().unwrap();
    let database = scene.server.database();
    let held = database.hold("UPDATE transfers SET version = version + 1");
    let refusing = deciding(&scene, transfer_id, Ruling::Refuse);
    database.until_waiting(1);
    drop(held);
    refusing.await.unwrap().unwrap();
    assert_eq!(scene.client.get(&path).await.ok()["status"], "refund_processing");
    scene.assert_book();
}
