//! How often a request waits for PostgreSQL: what is independent goes together.

use std::sync::atomic::Ordering;

use serde_json::json;

use crate::support::{Server, is_on_postgres};

/// The claim with the test clock and three references behind it, what the lock's update says, and
/// the commit.
const TRANSFER_ROUND_TRIPS: u64 = 3;
/// The claim with the test clock behind it, and the commit with all that was written.
const SENDER_ROUND_TRIPS: u64 = 2;
/// The same: which key seals is read behind the claim too.
const BENEFICIARY_ROUND_TRIPS: u64 = 2;
/// Workers wait for the server beside a request, so the least of several counts is the request's
/// own.
const TRIES_COUNT: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn a_request_waits_for_the_server_a_few_times_only() {
    if !is_on_postgres() {
        return;
    }
    let server = Server::start().await;
    let client = server.client().await;
    let beneficiary = client.active_beneficiary("50100012345678").await;
    let count = || server.app.state.store.stats.round_trips.load(Ordering::SeqCst);
    let (mut transfers, mut senders, mut beneficiaries) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TRIES_COUNT {
        let before = count();
        let sender = client
            .post(
                "/v1/senders",
                json!({ "name": "Ravi Rao", "type": "individual", "country": "AE",
                    "identification": { "type": "passport", "number": "K9876543" } }),
            )
            .await
            .ok();
        senders.push(count() - before);
        let before = count();
        let draft = json!({ "name": "Asha Rao", "account_number": "50100012345678",
            "ifsc": "HDFC0000001", "account_type": "nre", "submit": false });
        client.post("/v1/beneficiaries", draft).await.ok();
        beneficiaries.push(count() - before);
        let lock = client.quote_lock("100.00").await;
        let body = json!({
            "sender_id": sender["id"], "beneficiary_id": beneficiary["id"],
                "quote_lock_id": lock["id"], "amount": "100.00", "currency": "USD",
            "payout_currency": "INR", "funding": { "rail": "stablecoin", "asset": "USDT",
                "chain": "tron" },
        });
        let before = count();
        client.post("/v1/transfers", body).await.ok();
        transfers.push(count() - before);
    }
    assert_eq!(transfers.iter().min(), Some(&TRANSFER_ROUND_TRIPS), "{transfers:?}");
    assert_eq!(beneficiaries.iter().min(), Some(&BENEFICIARY_ROUND_TRIPS), "{beneficiaries:?}");
    assert_eq!(senders.iter().min(), Some(&SENDER_ROUND_TRIPS), "{senders:?}");
}
