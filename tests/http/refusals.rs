//! Every refusal code once over HTTP, as a stranger meets it.

use std::collections::BTreeSet;
use std::pin::pin;

use http::Method;
use hundi::kernel::{Code, Mode};
use hundi::keys;
use hundi::pauses::{self, Operation};
use hundi::screening::simulated;
use serde_json::{Value, json};

use crate::idempotency::{poll_once, running_and_locked};
use crate::support::{Answer, Client, LaneHold, Server, by, id, payout_id};

/// What was provoked so far.
#[derive(Default)]
struct Provoked(BTreeSet<(&'static str, u16)>);

impl Provoked {
    /// Notes the one code of an answer, and reads it as somebody does who has only the answer.
    #[track_caller]
    fn note(&mut self, code: Code, answer: &Answer) {
        let (word, status) = (code.as_str(), code.http_status());
        assert_eq!(answer.error(status), word);
        let message = answer.json()["errors"][0]["message"].as_str().unwrap().to_owned();
        // Shown with --nocapture, for reading all of them at once.
        println!("{status} {word}: {}", answer.json()["errors"][0]);
        let is_whole = message.ends_with(['.', '?']) && message.split(' ').count() > 2;
        assert!(is_whole, "{word}: {message}");
        let waits = matches!(status, 429 | 503) || code == Code::ResourceLocked;
        assert_eq!(answer.header("retry-after").is_some(), waits, "{word}: Retry-After");
        assert!(self.0.insert((word, status)), "{word} was provoked already");
    }
}

async fn parameters(client: &Client, provoked: &mut Provoked) {
    let sender = json!({ "name": "Ravi Rao", "type": "individual", "country": "AE" });
    let changed = |name: &str, value: Value| {
        let mut body = sender.clone();
        body[name] = value;
        client.post("/v1/senders", body)
    };
    provoked.note(Code::ParameterEmpty, &changed("name", Value::Null).await);
    provoked.note(Code::ParameterValueInvalid, &changed("country", json!("ae")).await);
    provoked.note(Code::ParameterMaxLengthInvalid, &changed("name", json!("a".repeat(141))).await);
    provoked.note(Code::ParameterUnexpected, &changed("nickname", json!("Ravi")).await);
    let beneficiary = json!({ "name": "Asha Rao", "account_number": "1234",
        "ifsc": "HDFC0000001", "account_type": "nre" });
    provoked.note(
        Code::ParameterMinLengthInvalid,
        &client.post("/v1/beneficiaries", beneficiary).await,
    );
    let quote = json!({ "sell_currency": "USD", "buy_currency": "INR", "amount": "1.00" });
    provoked.note(Code::ParameterRangeInvalid, &client.post("/v1/quote_locks", quote).await);
    let broken = client.post_raw("/v1/senders", &client.fresh_key(), "{").await;
    provoked.note(Code::RequestBodyInvalid, &broken);
    provoked.note(Code::RequestQueryParameterInvalid, &client.get("/v1/transfers?limit=0").await);
    let key = client.fresh_key();
    client.post_with("/v1/senders", &key, sender.clone()).await.ok();
    let mut other = sender;
    other["name"] = json!("Asha Rao");
    provoked.note(Code::IdempotencyKeyReuse, &client.post_with("/v1/senders", &key, other).await);
    provoked.note(Code::ObjectNotFound, &client.get("/v1/transfers/").await);
    let wrong = client.send(Method::PUT, "/v1/senders", &[], "{}".into()).await;
    provoked.note(Code::RequestMethodInvalid, &wrong);
}

async fn keys_and_modes(server: &Server, provoked: &mut Provoked) {
    let unknown = Client::of(&server.address, "sk_test_nonsense");
    provoked.note(Code::SecretKeyInvalid, &unknown.get("/v1/balance").await);
    let suspended = server.client_of("suspended", Mode::Test, "").await;
    let store = &server.app.state.store;
    store.write(|tx, _| Ok(keys::rows::set_suspended(tx, "suspended", true)?)).await.unwrap();
    // A key that was not used yet is read anew.
    provoked.note(Code::ActionUnauthorizedNow, &suspended.get("/v1/balance").await);
    let reader = server.client_of("default", Mode::Test, "senders:read").await;
    provoked.note(Code::ActionUnauthorized, &reader.get("/v1/balance").await);
    let live = server.client_of("default", Mode::Live, "").await;
    let clock = live.post("/v1/test_helpers/clock", json!({ "advance_seconds": 1 })).await;
    provoked.note(Code::TestmodeActionOnly, &clock);
}

async fn business(client: &Client, provoked: &mut Provoked) {
    let create = |body: Value| client.post("/v1/transfers", body);
    let mut body = client.transfer_body("50100012345678", "100.00").await;
    body["reference"] = json!("INV-1");
    let changed = |name: &str, value: &Value| {
        let mut changed = body.clone();
        changed[name] = value.clone();
        create(changed)
    };
    let waiting = client.beneficiary("50100000000004").await;
    provoked.note(Code::BeneficiaryNotPayable, &changed("beneficiary_id", &waiting["id"]).await);
    let listed =
        json!({ "name": simulated::CONFIRMED_NAME, "type": "individual", "country": "AE" });
    let listed = client.post("/v1/senders", listed).await.ok();
    provoked.note(Code::SenderNotEligible, &changed("sender_id", &listed["id"]).await);
    provoked.note(Code::QuoteLockMismatch, &changed("amount", &json!("101.00")).await);
    let transfer = create(body.clone()).await.ok();
    let path = format!("/v1/transfers/{}", id(&transfer));
    let mut again = body.clone();
    again["reference"] = json!("INV-2");
    provoked.note(Code::QuoteLockAlreadyUsed, &create(again).await);
    let mut again = body.clone();
    again["quote_lock_id"] = client.quote_lock("100.00").await["id"].clone();
    provoked.note(Code::ReferenceAlreadyUsed, &create(again).await);

    let refund = json!({ "action": "refund" });
    let resolve = client.post(&format!("{path}/resolve_funding"), refund.clone()).await;
    provoked.note(Code::TransferActionInvalid, &resolve);
    client.deposit(&transfer, json!({ "amount": "40.00" })).await;
    let cancel = client.post(&format!("{path}/cancel"), json!({})).await;
    provoked.note(Code::TransferNotCancellable, &cancel);
    let lock = client.quote_lock("100.00").await;
    client.advance(1_900).await;
    client.wait_status(&path, "funding_hold").await;
    let resolve = client.post(&format!("{path}/resolve_funding"), refund).await;
    provoked.note(Code::RefundAddressRequired, &resolve);
    let mut late = body.clone();
    late["quote_lock_id"] = lock["id"].clone();
    late["reference"] = json!("INV-3");
    provoked.note(Code::QuoteLockExpired, &create(late).await);

    let stays = client.transfer_body("50100012341003", "100.00").await;
    let stays = create(stays).await.ok();
    client.deposit(&stays, json!({})).await;
    let path = format!("/v1/transfers/{}", id(&stays));
    let stays = client.wait_status(&path, "payout_processing").await;
    let advice = format!("/v1/payouts/{}/payment_advice", payout_id(&stays));
    provoked.note(Code::PaymentAdviceNotReady, &client.get(&advice).await);

    let active = body["beneficiary_id"].as_str().unwrap();
    let update = client.post(&format!("/v1/beneficiaries/{active}"), json!({ "name": "A" })).await;
    provoked.note(Code::BeneficiaryNotEditable, &update);
    let activate = format!("/v1/test_helpers/beneficiaries/{active}/activate");
    provoked.note(Code::TestHelperNotApplicable, &client.post(&activate, json!({})).await);
    let endpoint = |index: usize| {
        let url = format!("https://example.com/{index}");
        client.post("/v1/webhook_endpoints", json!({ "url": url }))
    };
    for index in 0..16 {
        endpoint(index).await.ok();
    }
    provoked.note(Code::WebhookEndpointLimitExceeded, &endpoint(16).await);
}

async fn service(server: &Server, client: &Client, provoked: &mut Provoked) {
    let store = &server.app.state.store;
    let quote = json!({ "sell_currency": "USD", "buy_currency": "INR", "amount": "100.00" });
    let pause = store.write(|tx, now| {
        pauses::pause(tx, now, Operation::Quotes, None, &by())?;
        Ok(())
    });
    pause.await.unwrap();
    provoked.note(Code::ServicePaused, &client.post("/v1/quote_locks", quote).await);

    let hold = LaneHold::of(server, client).await;
    let key = client.fresh_key();
    let (running, locked) = running_and_locked(client, &key).await;
    provoked.note(Code::ResourceLocked, &locked);
    let mut crowd = pin!(futures_util::future::join_all(
        (0..hundi::store::handle::QUEUE_JOBS_MAX + 1).map(|_| store.write(|_, _| Ok(())))
    ));
    poll_once(crowd.as_mut()).await;
    let sender = json!({ "name": "Ravi Rao", "type": "individual", "country": "AE" });
    provoked.note(Code::ServiceUnavailable, &client.post("/v1/senders", sender).await);
    hold.let_go();
    running.await.unwrap();
}

async fn limits_and_faults(provoked: &mut Provoked) {
    let variables = [("HUNDI_TEST_USDT_USD", "1.006"), ("HUNDI_RATE_LIMIT_READS", "1")];
    let server = Server::start_with(&variables).await;
    let client = server.client().await;
    let quote = json!({ "sell_currency": "USD", "buy_currency": "INR", "amount": "100.00" });
    provoked.note(Code::QuoteUnavailable, &client.post("/v1/quote_locks", quote).await);
    let sender = client.sender().await;
    // A row that cannot be read.
    let spoil = "UPDATE senders SET type = 'nobody'";
    server.app.state.store.write(|tx, _| Ok(tx.execute(spoil, &[])?)).await.unwrap();
    let path = format!("/v1/senders/{}", id(&sender));
    provoked.note(Code::InternalError, &client.get(&path).await);
    // A burst is twice the rate, so one of so many is refused on any machine.
    let mut answers = Vec::new();
    for _ in 0..50 {
        answers.push(client.get("/v1/corridors").await);
        if answers.last().unwrap().status == 429 {
            break;
        }
    }
    provoked.note(Code::RateLimitExceeded, answers.last().unwrap());
}

/// A new code is provoked here, or this fails.
#[tokio::test(flavor = "multi_thread")]
async fn every_code_is_met_over_http() {
    let server = Server::start().await;
    let client = server.client().await;
    let mut provoked = Provoked::default();
    parameters(&client, &mut provoked).await;
    keys_and_modes(&server, &mut provoked).await;
    business(&client, &mut provoked).await;
    service(&server, &client, &mut provoked).await;
    limits_and_faults(&mut provoked).await;
    let known: BTreeSet<(&str, u16)> =
        Code::ALL.iter().map(|code| (code.as_str(), code.http_status())).collect();
    let never: Vec<_> = known.difference(&provoked.0).collect();
    assert!(never.is_empty(), "nothing provokes {never:?}");
}
