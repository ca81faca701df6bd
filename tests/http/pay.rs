//! The payer's page and its state: every phase, the link that opens it, what it never tells, and
//! its headers.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine;
use bytes::Bytes;
use http::Method;
use hundi::kernel::AnyId;
use hundi::operator::{self, OperatorDecision};
use hundi::pages::payer::view::PaymentPhase;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::stage::{self, ADDRESS, Actor, DAY, SETTLES, STEP};
use crate::support::{Answer, Client, Server, by, id};

const FAILS: &str = "50100012341001";
const STAYS: &str = "50100012341003";

/// The path of a transfer's page.
fn path_of(transfer: &Value) -> String {
    let url = transfer["funding"]["instructions_url"].as_str().unwrap();
    url[url.find("/pay/").unwrap()..].to_owned()
}

/// What a browser is answered.
async fn browse(client: &Client, path: &str) -> Answer {
    client
        .send(
            Method::GET,
            path,
            &[("accept", "text/html,*/*;q=0.8"), ("authorization", "")],
            Bytes::new(),
        )
        .await
}

/// What the page's script, or any program, is answered.
async fn fetch(client: &Client, path: &str) -> Answer {
    client.send(Method::GET, path, &[("authorization", "")], Bytes::new()).await
}

async fn state_of(client: &Client, transfer: &Value) -> Value {
    fetch(client, &format!("{}/state", path_of(transfer))).await.ok()
}

fn text_of(answer: &Answer) -> String {
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// The page and its state as they are now, and what holds for them in every phase.
struct Seen {
    actor: Arc<Actor>,
    phases: BTreeSet<String>,
}

impl Seen {
    async fn expect(&mut self, transfer: &Value, phase: PaymentPhase, words: &[&str]) -> Value {
        let client = &self.actor.client;
        let state = state_of(client, transfer).await;
        let answer = browse(client, &path_of(transfer)).await;
        let html = text_of(&answer);
        assert_eq!(answer.status, 200, "{html}");
        assert_eq!(state["phase"], phase.as_str(), "{state}");
        self.phases.insert(phase.as_str().to_owned());
        let said = state.to_string();
        for word in words {
            assert!(said.contains(word), "{phase:?} does not say {word:?}: {said}");
        }
        // Both say the same, and only a phase that waits for money asks for it.
        let is_asked = matches!(phase, PaymentPhase::AwaitingPayment | PaymentPhase::PartlyPaid);
        assert_eq!(state["is_payable"], is_asked, "{state}");
        assert!(
            html.contains(&format!(
                "<h2 id=\"headline\">{}</h2>",
                state["headline"].as_str().unwrap()
            )),
            "{html}"
        );
        for text in state["paragraphs"]
            .as_array()
            .unwrap()
            .iter()
            .chain(state["notices"].as_array().unwrap())
        {
            assert!(
                html.contains(&format!("<p>{}</p>", text.as_str().unwrap())),
                "{text} is not in {html}"
            );
        }
        for step in state["steps"].as_array().unwrap() {
            assert!(
                html.contains(&format!(">{}</span>", step["label"].as_str().unwrap())),
                "{step} is not in {html}"
            );
        }
        let address = transfer["funding"]["deposit_address"].as_str().unwrap();
        assert_eq!(
            html.contains(&format!("aria-label=\"QR code of the address {address}\"")),
            is_asked,
            "{html}"
        );
        let warning = "<strong>Send nothing but USDT on TRON (TRC-20).</strong> Another token or \
         another network loses the money for good.";
        assert_eq!(html.contains(warning), is_asked, "{html}");
        assert_eq!(
            html.contains(address),
            is_asked,
            "the address is shown only while money may be sent"
        );
        assert_eq!(
            html.contains(transfer["funding"]["token_contract"].as_str().unwrap()),
            is_asked
        );
        assert_eq!(
            html.contains("<meta http-equiv=\"refresh\""),
            state["is_final"] == false,
            "{html}"
        );
        assert_eq!(state["poll_seconds"].is_null(), state["is_final"] == true, "{state}");
        assert!(html.contains("<strong>TEST.</strong>"));
        assert!(html.contains(&id(transfer)), "the reference");
        // Nothing of the people, the bank, the rupees or the paying address.
        for secret in [
            "Asha",
            "Ravi",
            "Rao",
            "5010001234",
            "HDFC",
            "INR",
            "88412",
            "beneficiary",
            "sender",
            "TEST0",
            "compliance",
            "review",
        ] {
            assert!(
                !html.contains(secret) && !said.contains(secret),
                "{phase:?} tells {secret}: {html}"
            );
        }
        state
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_phase_is_shown_as_it_is() {
    let server = stage::server().await;
    let actor = Arc::new(Actor::new(&server, "payer").await);
    let mut seen = Seen { actor: actor.clone(), phases: BTreeSet::new() };

    // From the request to the payout, in two parts, with a third that was not needed.
    let transfer = actor.transfer(SETTLES, json!({})).await;
    let state = seen
        .expect(
            &transfer,
            PaymentPhase::AwaitingPayment,
            &["Send exactly 1000.00 USDT on TRON (TRC-20)"],
        )
        .await;
    assert_eq!(
        (
            &state["amount_missing"],
            state["expires_at"].as_i64().unwrap() - state["now"].as_i64().unwrap()
        ),
        (&json!("1000.00"), 1800)
    );
    actor.pay(&transfer, "400.00").await;
    let state = seen
        .expect(
            &transfer,
            PaymentPhase::PartlyPaid,
            &["400.00 USDT is on its way.", "exactly 600.00 USDT"],
        )
        .await;
    assert_eq!(
        (&state["amount_pending"], &state["amount_received"]),
        (&json!("400.00"), &json!("0.00"))
    );
    actor.finalise().await;
    let state = seen
        .expect(
            &transfer,
            PaymentPhase::PartlyPaid,
            &["400.00 USDT arrived.", "600.00 USDT is still missing"],
        )
        .await;
    assert_eq!(
        (&state["amount_pending"], &state["amount_received"], &state["amount_missing"]),
        (&json!("0.00"), &json!("400.00"), &json!("600.00"))
    );
    actor.pay(&transfer, "600.00").await;
    seen.expect(&transfer, PaymentPhase::Seen, &["Your payment was seen", "do not send it again"])
        .await;
    actor.advance(STEP).await;
    seen.expect(&transfer, PaymentPhase::Confirming, &["1 confirmation so far"]).await;
    actor.advance(STEP).await;
    seen.expect(&transfer, PaymentPhase::PayingOut, &["Your payment was received"]).await;
    actor.advance(10 * STEP).await;
    let state = seen.expect(&transfer, PaymentPhase::PaidOut, &["You can close this page"]).await;
    assert_eq!(state["is_final"], true);
    actor.pay(&transfer, "5.00").await;
    let state = seen.expect(&transfer, PaymentPhase::PaidOut, &[]).await;
    assert_eq!(state["is_final"], false, "a payment is on its way");
    actor.finalise().await;
    seen.expect(
        &transfer,
        PaymentPhase::PaidOut,
        &["5.00 USDT arrived after everything was settled. It was not needed"],
    )
    .await;

    // Too much: the excess goes back once there is an address.
    let transfer = actor.transfer(STAYS, json!({})).await;
    actor.pay(&transfer, "1250.00").await;
    actor.finalise().await;
    seen.expect(
        &transfer,
        PaymentPhase::PayingOut,
        &["250.00 USDT more than needed arrived and is kept for you"],
    )
    .await;
    let excess = actor.shown(&transfer).await["refund"].clone();
    actor
        .client
        .post(&format!("/v1/refunds/{}", id(&excess)), json!({ "to_address": ADDRESS }))
        .await
        .ok();
    seen.expect(
        &transfer,
        PaymentPhase::PayingOut,
        &["250.00 USDT more than needed arrived and is on its way back"],
    )
    .await;
    actor.advance(2 * STEP).await;
    seen.expect(
        &transfer,
        PaymentPhase::PayingOut,
        &["250.00 USDT more than needed arrived and was sent"],
    )
    .await;

    // The payout fails, with and without an address.
    let transfer = actor.transfer(FAILS, json!({})).await;
    actor.pay(&transfer, "1000.00").await;
    actor.advance(10 * STEP).await;
    seen.expect(
        &transfer,
        PaymentPhase::RefundNeedsAddress,
        &["The payout could not be made.", "1000.00 USDT is waiting for", "Payout not possible"],
    )
    .await;
    let principal = actor.shown(&transfer).await["refund"].clone();
    actor
        .client
        .post(&format!("/v1/refunds/{}", id(&principal)), json!({ "to_address": ADDRESS }))
        .await
        .ok();
    seen.expect(&transfer, PaymentPhase::Refunding, &["1000.00 USDT is on its way"]).await;
    actor.advance(2 * STEP).await;
    let hash =
        actor.shown(&transfer).await["refund"]["transaction_hash"].as_str().unwrap().to_owned();
    let state = seen
        .expect(
            &transfer,
            PaymentPhase::Refunded,
            &["1000.00 USDT was sent to the refund address", &hash],
        )
        .await;
    assert_eq!(state["is_final"], true);

    // Holds.
    let too_much = actor.transfer(SETTLES, json!({ "policy": { "overpaid": "hold" } })).await;
    actor.pay(&too_much, "1000.000001").await;
    let too_little = actor.transfer(SETTLES, json!({})).await;
    actor.pay(&too_little, "999.00").await;
    let held = actor.transfer(SETTLES, json!({})).await;
    actor.pay(&held, "10.00").await;
    let nothing = actor.transfer(SETTLES, json!({})).await;
    let other_token = actor.transfer(SETTLES, json!({})).await;
    actor.client.deposit(&other_token, json!({ "amount": "1000.00", "asset": "USDC" })).await;
    let cancelled = actor.transfer(SETTLES, json!({})).await;
    actor.cancel(&cancelled).await.ok();
    actor.finalise().await;
    seen.expect(
        &too_much,
        PaymentPhase::TooMuch,
        &["1000.000001 USDT arrived instead of 1000.00 USDT"],
    )
    .await;
    decide(&server, &id(&held), OperatorDecision::Review).await;
    seen.expect(&held, PaymentPhase::OnHold, &["takes longer than usual"]).await;
    let state = seen
        .expect(
            &other_token,
            PaymentPhase::AwaitingPayment,
            &["Something other than USDT", "another token: does not count"],
        )
        .await;
    assert_eq!(state["amount_missing"], "1000.00");
    seen.expect(
        &cancelled,
        PaymentPhase::Cancelled,
        &["This payment was cancelled", "after 24 hours without a decision"],
    )
    .await;
    actor.pay(&cancelled, "1000.00").await;
    seen.expect(&cancelled, PaymentPhase::Cancelled, &["\"note\":\"seen\""]).await;
    actor.finalise().await;
    seen.expect(
        &cancelled,
        PaymentPhase::TooLate,
        &["This payment had been cancelled when 1000.00 USDT arrived"],
    )
    .await;

    // The end: `expires_at` itself is in time, and until the final view has passed it nothing has
    // expired.
    let expires_at = nothing["funding"]["expires_at"].as_i64().unwrap();
    actor.advance_to(expires_at - 100).await;
    let html = text_of(&browse(&actor.client, &path_of(&nothing)).await);
    assert!(
        html.contains("<p id=\"hurry\" class=\"box\">") && html.contains("about 1 minute"),
        "{html}"
    );
    actor.advance_to(expires_at).await;
    seen.expect(&nothing, PaymentPhase::AwaitingPayment, &[]).await;
    actor.pay(&nothing, "300.00").await;
    actor.advance_to(expires_at + 1).await;
    seen.expect(&nothing, PaymentPhase::Seen, &["do not send it again"]).await;
    actor.advance_to(expires_at + STEP).await;
    seen.expect(&nothing, PaymentPhase::Confirming, &[]).await;
    assert_eq!(other_token["funding"]["expires_at"], actor.now());
    // What is not yet known keeps the transfer from expiring; the page knows that the time is up.
    actor.client.deposit(&other_token, json!({ "amount": "1.00", "asset": "USDC" })).await;
    actor.advance(1).await;
    seen.expect(
        &other_token,
        PaymentPhase::TimeUp,
        &["If you sent a payment in time, it still counts."],
    )
    .await;
    actor.advance(2 * STEP).await;
    seen.expect(&other_token, PaymentPhase::Expired, &["No payment arrived in time"]).await;
    seen.expect(&nothing, PaymentPhase::TooLittle, &["300.00 USDT of 1000.00 USDT arrived"]).await;
    seen.expect(&too_little, PaymentPhase::TooLittle, &["Without a decision by "]).await;
    actor.advance(DAY).await;
    seen.expect(
        &too_little,
        PaymentPhase::RefundNeedsAddress,
        &["Less than the amount arrived in time.", "999.00 USDT is waiting"],
    )
    .await;

    // A refusal of the operator is not told.
    decide(&server, &id(&held), OperatorDecision::Refuse).await;
    seen.expect(&held, PaymentPhase::RefundNeedsAddress, &["The payment could not be used."]).await;

    // A payout on hold waits in `funded`: its beneficiary's bank sent an earlier one back.
    let beneficiary_id = actor.beneficiary("50100010001002").await;
    let first = actor.transfer_to(&beneficiary_id, "1000.00", json!({})).await;
    let second = actor.transfer_to(&beneficiary_id, "1000.00", json!({})).await;
    actor.pay(&first, "1000.00").await;
    actor.advance(10 * STEP).await;
    seen.expect(&first, PaymentPhase::RefundNeedsAddress, &["The payout could not be made."]).await;
    actor.pay(&second, "1000.00").await;
    actor.finalise().await;
    seen.expect(&second, PaymentPhase::Received, &["the payout is being prepared"]).await;

    let missed: Vec<_> =
        PaymentPhase::WORDS.iter().filter(|word| !seen.phases.contains(**word)).collect();
    assert_eq!(missed, Vec::<&&str>::new(), "phases without a test");
}

/// A deposit can be found after the expiry although its block is in time: by the operator, or by a
/// follower that begins again.
#[tokio::test(flavor = "multi_thread")]
async fn money_that_came_in_time_and_was_found_later_is_not_called_late() {
    let server = stage::server().await;
    let actor = Arc::new(Actor::new(&server, "default").await);
    let mut seen = Seen { actor: actor.clone(), phases: BTreeSet::new() };
    for (amount, after, phase, words, code) in [
        ("1000.00", 0, PaymentPhase::OnHold, "1000.00 USDT arrived in time", "credited"),
        ("400.00", 0, PaymentPhase::OnHold, "400.00 USDT arrived in time", "short_by"),
        // The control: a second later is late.
        ("1000.00", 1, PaymentPhase::TooLate, "came after the time was up", "late_by"),
    ] {
        let transfer = actor.transfer(SETTLES, json!({})).await;
        let expires_at = transfer["funding"]["expires_at"].as_i64().unwrap();
        actor.advance_to(expires_at + STEP).await;
        assert_eq!(actor.shown(&transfer).await["status"], "expired");
        let deposit = actor
            .client
            .deposit(&transfer, json!({ "amount": amount, "block_time": expires_at + after }))
            .await;
        actor.finalise().await;
        let shown = actor.shown(&transfer).await;
        assert_eq!(
            (&shown["status"], &shown["status_reason"]),
            (&json!("funding_hold"), &json!("late"))
        );
        let state = seen.expect(&transfer, phase, &[words, "Without a decision by "]).await;
        let says_late = ["too late", "came after", "came late"]
            .iter()
            .any(|word| state.to_string().contains(word));
        assert_eq!(says_late, after > 0, "{state}");
        let path = format!("/v1/transfers/{}/funding/diagnose", id(&transfer));
        let told = actor
            .client
            .post(&path, json!({ "transaction_hash": deposit["transaction_hash"] }))
            .await
            .ok();
        assert_eq!(
            (told["code"].as_str(), told["late_by_seconds"].as_i64()),
            (Some(code), (after > 0).then_some(after)),
            "{told}"
        );
        let message = told["message"].as_str().unwrap();
        assert!(
            !message.contains("before the time to pay ends") && message.contains("decision"),
            "{message}"
        );
        // Nobody decides: it goes back, and the page says why.
        actor.advance(DAY).await;
        let cause =
            if after > 0 { "did not come in time" } else { "found only after the time was up" };
        seen.expect(&transfer, PaymentPhase::RefundNeedsAddress, &[cause]).await;
    }
}

async fn decide(server: &Server, id: &str, decision: OperatorDecision) {
    let (id, services) = (AnyId::parse(id).unwrap(), server.app.state.services.clone());
    server
        .app
        .state
        .store
        .write(move |tx, now| operator::decide(tx, now, &services, id, &decision, &by()))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_whole_link_opens_the_page() {
    let server = Server::start().await;
    let client = server.client().await;
    let (transfer, other) = (client.transfer().await, client.transfer().await);
    let token = path_of(&transfer)["/pay/".len()..].to_owned();
    let mark = token.split_once('.').unwrap().1.to_owned();
    let other_mark = path_of(&other).split_once('.').unwrap().1.to_owned();
    assert_ne!(mark, other_mark);
    let transfer_id = id(&transfer);
    let never = "transfer_01M7YTK8M85NV8M7TDDDE3JTH0";
    let mut wrong = vec![
        transfer_id.clone(),
        format!("{transfer_id}."),
        format!("{transfer_id}.{other_mark}"),
        format!("{never}.{mark}"),
        format!("{}.{mark}", transfer_id.to_lowercase()),
        token.to_uppercase(),
        format!("{transfer_id}.{}", mark.to_uppercase()),
        format!("{token}0"),
        format!("{token}/"),
        format!("{token}%00"),
        format!("{token}.{mark}"),
        format!("{}/state", other_mark),
        format!("{token}/state/state"),
        format!("/{token}"),
        format!("%74{}", &token[1..]),
        token.replace('.', "%2E"),
        token.replace('_', "-"),
        "0".repeat(5_000),
        String::new(),
        ".".into(),
        "/state".into(),
    ];
    // Every single digit of the mark counts.
    for at in 0..mark.len() {
        let digit = if &mark[at..=at] == "0" { "1" } else { "0" };
        wrong.push(format!("{transfer_id}.{}{digit}{}", &mark[..at], &mark[at + 1..]));
    }
    wrong.push(token[..token.len() - 1].to_owned());
    let (page, program) = (browse(&client, "/pay/x").await, fetch(&client, "/pay/x").await);
    assert!(text_of(&page).contains("This payment link does not work"));
    assert_eq!(program.error(404), "object_not_found");
    for token in wrong {
        for path in [format!("/pay/{token}"), format!("/pay/{token}/state")] {
            // `/pay/{right}/state` with `/state` once more taken off is the only one that could be
            // right.
            let answers =
                [(browse(&client, &path).await, &page), (fetch(&client, &path).await, &program)];
            for (answer, wanted) in answers {
                assert_eq!(answer.status, 404, "{path}");
                let is_state = path.ends_with("/state");
                let wanted = if is_state { &program } else { wanted };
                assert_eq!(text_of(&answer), text_of(wanted), "{path}");
                assert_eq!(
                    answer.header("content-security-policy"),
                    page.header("content-security-policy"),
                    "{path}"
                );
            }
        }
    }
    // The negative control: the right one does.
    assert_eq!(browse(&client, &format!("/pay/{token}")).await.status, 200);
    assert_eq!(fetch(&client, &format!("/pay/{token}?utm_source=mail")).await.status, 200);
    assert_eq!(
        fetch(&client, &format!("/pay/{token}/state")).await.ok()["object"],
        "payment_state"
    );
    let posted = client.post(&format!("/pay/{token}"), json!({})).await;
    assert_eq!(
        (posted.error(405).as_str(), posted.header("allow")),
        ("request_method_invalid", Some("GET"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_from_outside_is_escaped() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "payer").await;
    let transfer = actor.transfer(SETTLES, json!({})).await;
    let asset = "<img src=x onerror=1";
    actor.client.deposit(&transfer, json!({ "amount": "1.00", "asset": asset })).await;
    actor.client.deposit(&transfer, json!({ "amount": "1.00", "asset": "</script>\"'&" })).await;
    let html = text_of(&browse(&actor.client, &path_of(&transfer)).await);
    assert!(!html.contains("<img") && html.contains("&#60;img src=x onerror=1"), "{html}");
    assert_eq!(html.matches("</script>").count(), 1, "{html}");
    assert!(html.contains("&#60;/script&#62;&#34;&#39;&#38;"), "{html}");
    // JSON carries it as it is, and the script puts it in as text.
    assert_eq!(state_of(&actor.client, &transfer).await["payments"][1]["text"], asset);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_headers_let_nothing_in_and_nothing_out() {
    let server = Server::start().await;
    let client = server.client().await;
    let transfer = client.transfer().await;
    let page = browse(&client, &path_of(&transfer)).await;
    let html = text_of(&page);
    let between = |open: &str, close: &str| {
        let inside = &html[html.find(open).unwrap() + open.len()..];
        inside[..inside.find(close).unwrap()].to_owned()
    };
    let hash = |text: &str| {
        base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text.as_bytes()))
    };
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; \
         connect-src 'self'; base-uri 'none'; \
         form-action 'self'; frame-ancestors 'none'",
        hash(&between("<script>", "</script>")),
        hash(&between("<style>", "</style>"))
    );
    let state = fetch(&client, &format!("{}/state", path_of(&transfer))).await;
    let missing = browse(&client, "/pay/x").await;
    for answer in [&page, &state, &missing] {
        let wanted = [
            ("content-security-policy", policy.as_str()),
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("x-robots-tag", "noindex, nofollow"),
            ("x-content-type-options", "nosniff"),
            ("cross-origin-resource-policy", "same-origin"),
        ];
        for (name, value) in wanted {
            assert_eq!(answer.header(name), Some(value));
        }
        assert_eq!(answer.header("set-cookie"), None);
    }
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(state.header("content-type"), Some("application/json"));
    assert!(html.contains("<meta name=\"robots\" content=\"noindex, nofollow\">"));
    // Nothing of another place, no style and no handler in an attribute.
    for forbidden in
        ["http://", "https://", " src=", "style=\"", " onclick", "javascript:", "@import", "url("]
    {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
    assert!(page.body.len() < 40_000, "{} bytes", page.body.len());
    let head = client
        .send(
            Method::HEAD,
            &path_of(&transfer),
            &[("accept", "text/html"), ("authorization", "")],
            Bytes::new(),
        )
        .await;
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_is_told_in_plain_words() {
    let server = Server::start().await;
    let client = server.client().await;
    let path = path_of(&client.transfer().await);
    let rename = async |from: &'static str, to: &'static str| {
        let sql = format!("ALTER TABLE {from} RENAME TO {to}");
        server.app.state.store.write(move |tx, _| Ok(tx.execute(&sql, &[])?)).await.unwrap();
    };
    assert_eq!(browse(&client, &path).await.status, 200);
    rename("refunds", "refunds_gone").await;
    let page = browse(&client, &path).await;
    assert_eq!((page.status, page.header("retry-after")), (503, Some("15")));
    let html = text_of(&page);
    assert!(
        html.contains("The page cannot be shown right now")
            && html.contains("http-equiv=\"refresh\"")
            && !html.contains("refunds"),
        "{html}"
    );
    assert_eq!(page.header("cache-control"), Some("no-store"));
    let state = fetch(&client, &format!("{path}/state")).await;
    assert_eq!(state.error(503), "service_unavailable");
    rename("refunds_gone", "refunds").await;
    assert_eq!(browse(&client, &path).await.status, 200, "it heals by itself");
}
