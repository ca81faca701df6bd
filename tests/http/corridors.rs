//! What can be sent.

use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn the_corridor_tells_limits_and_clocks() {
    let server = Server::start().await;
    let client = server.client().await;
    let list = client.get("/v1/corridors").await.ok();
    assert_eq!(list["object"], "list");
    let corridor = &list["data"][0];
    assert_eq!(
        (corridor["sell_currency"].as_str(), corridor["buy_currency"].as_str()),
        (Some("USD"), Some("INR"))
    );
    assert_eq!(
        (corridor["amount_minimum"].as_str(), corridor["amount_maximum"].as_str()),
        (Some("10.00"), Some("50000.00"))
    );
    assert_eq!(
        (corridor["quote_lock_seconds"].as_i64(), corridor["funding_seconds"].as_i64()),
        (Some(300), Some(1_800))
    );
}
