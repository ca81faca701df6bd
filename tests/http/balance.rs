//! `GET /v1/balance`: one payment through the compartments, and nothing left at its end.

use serde_json::json;

use crate::stage::{self, Actor, DAY, SETTLES, STEP};

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_moves_through_the_compartments() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    actor.assert_balance(&[], "at first").await;
    let transfer = actor.transfer(SETTLES, json!({})).await;
    actor.assert_balance(&[], "what is expected is no money").await;
    actor.pay(&transfer, "1000.00").await;
    actor.assert_balance(&[("pending", "1000.00", "USDT")], "seen").await;
    actor.advance(2 * STEP).await;
    actor.assert_balance(&[("payout_processing", "88412.50", "INR")], "at the bank").await;
    actor.advance(DAY).await;
    actor.assert_balance(&[], "settled").await;

    // Another account sees nothing of it.
    let transfer = actor.transfer(SETTLES, json!({})).await;
    actor.pay(&transfer, "1000.00").await;
    let stranger = Actor::new(&server, "stranger").await;
    stranger.assert_balance(&[], "of another account").await;
}
