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
                "<h1 id=\"headline\">{}</h1>",
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
        let warning = "<strong>Send nothing but USDT on TRON (TRC-20). Another token or another \
                       network loses the money for good.</strong>";
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
        assert!(html.contains("<strong>Test mode.</strong>"));
        assert_eq!(html.contains("id=\"help\""), is_asked, "help that is of no use any more");
        assert_eq!(html.contains("/simulate_payment?"), is_asked, "{html}");
        // What arrives in rupees is told while it is asked for, and in the receipt.
        let is_paid = phase == PaymentPhase::PaidOut;
        assert_eq!(html.contains("₹88,412.50 will arrive in the bank account"), is_asked);
        assert_eq!(state["receipt"].is_object(), is_paid, "{state}");
        if is_paid {
            let receipt = &state["receipt"];
            // All that came, also what goes back.
            let sent = format!("{} USDT", state["amount_received"].as_str().unwrap());
            assert_eq!(
                (&receipt["sent"], &receipt["paid"], &receipt["rate"]),
                (&json!(sent), &json!("₹88,412.50"), &json!("1 USD = ₹88.4125"))
            );
            let reference = receipt["reference"].as_str().unwrap();
            assert!(reference.starts_with("TEST") && html.contains(reference), "{html}");
        }
        assert!(html.contains(&id(transfer)), "the reference");
        // What was sent back is listed, without a link: no page shows a simulated chain.
        for refund in state["refunds"].as_array().unwrap() {
            assert!(refund["explorer_url"].is_null() && refund["at"].is_i64(), "{refund}");
            let text = format!(
                "<span class=\"label\" dir=\"ltr\">{}</span>",
                refund["text"].as_str().unwrap()
            );
            assert!(html.contains(&text), "{refund} is not in {html}");
        }
        assert_eq!(
            html.contains("<div id=\"refunds-part\" hidden>"),
            state["refunds"] == json!([]),
            "{html}"
        );
        // Nothing of the people, their bank or the paying address.
        for secret in [
            "Asha",
            "Ravi",
            "Rao",
            "5010001234",
            "HDFC",
            "beneficiary",
            "sender",
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
    let state =
        seen.expect(&transfer, PaymentPhase::AwaitingPayment, &["Waiting for your payment"]).await;
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
    seen.expect(&transfer, PaymentPhase::Confirming, &["Confirmations so far: 1"]).await;
    actor.advance(STEP).await;
    seen.expect(&transfer, PaymentPhase::PayingOut, &["Your payment was received"]).await;
    actor.advance(10 * STEP).await;
    let state = seen.expect(&transfer, PaymentPhase::PaidOut, &["You can close this page"]).await;
    assert_eq!(state["is_final"], true);
    actor.pay(&transfer, "5.00").await;
    let state = seen.expect(&transfer, PaymentPhase::PaidOut, &[]).await;
    assert_eq!(
        (&state["is_final"], &state["poll_seconds"]),
        (&json!(false), &json!(15)),
        "a payment is on its way"
    );
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
        &["250.00 USDT more than needed arrived. 250.00 USDT waits for a TRON (TRC-20) address"],
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
        &["250.00 USDT more than needed arrived. 250.00 USDT is on its way", "\"refunds\":[]"],
    )
    .await;
    actor.advance(2 * STEP).await;
    seen.expect(
        &transfer,
        PaymentPhase::PayingOut,
        &[
            "250.00 USDT more than needed arrived. 250.00 USDT was sent",
            "\"refunds\":[{\"text\":\"250.00 USDT\",",
        ],
    )
    .await;

    // The payout fails, with and without an address.
    let transfer = actor.transfer(FAILS, json!({})).await;
    actor.pay(&transfer, "1000.00").await;
    actor.advance(10 * STEP).await;
    seen.expect(
        &transfer,
        PaymentPhase::RefundNeedsAddress,
        &["The payout could not be made.", "1000.00 USDT waits for", "Payout not possible"],
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
    let state = seen
        .expect(&transfer, PaymentPhase::Refunded, &["1000.00 USDT was sent to the refund address"])
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
    seen.expect(&too_much, PaymentPhase::TooMuch, &["1000.000001 USDT arrived. It is recorded"])
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
        &["1000.00 USDT came after the payment had been cancelled"],
    )
    .await;

    // The end: `expires_at` itself is in time, and until the final view has passed it nothing has
    // expired.
    let expires_at = nothing["funding"]["expires_at"].as_i64().unwrap();
    actor.advance_to(expires_at - 100).await;
    let html = text_of(&browse(&actor.client, &path_of(&nothing)).await);
    assert!(html.contains("<p id=\"hurry\" class=\"box\">") && html.contains(">1 min<"), "{html}");
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
        &["Less than the amount arrived in time.", "999.00 USDT waits for"],
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
        ("request_method_invalid", Some("GET, HEAD"))
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
    // The scripts of India need three bytes a letter.
    for code in ["en", "hi", "ml", "ta", "te", "gu", "pa", "ar"] {
        let page = browse(&client, &format!("{}?lang={code}", path_of(&transfer))).await;
        assert!(page.body.len() < 60_000, "{code}: {} bytes", page.body.len());
    }
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
    // The script asks for the page again; without scripts the browser does.
    let (told, _script) = html.split_once("<script>").unwrap();
    assert!(
        told.contains("The page cannot be shown right now")
            && told.contains("<noscript><meta http-equiv=\"refresh\" content=\"15\"></noscript>")
            && told.contains("<main class=\"narrow\" data-reload-seconds=\"15\">")
            && !told.contains("refunds"),
        "{html}"
    );
    assert_eq!(page.header("cache-control"), Some("no-store"));
    let state = fetch(&client, &format!("{path}/state")).await;
    assert_eq!(state.error(503), "service_unavailable");
    rename("refunds_gone", "refunds").await;
    assert_eq!(browse(&client, &path).await.status, 200, "it heals by itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_speaks_the_readers_language() {
    let server = Server::start().await;
    let client = server.client().await;
    let transfer = client.transfer().await;
    let path = path_of(&transfer);
    for (query, accepted, code, direction, headline) in [
        ("", "", "en", "ltr", "Waiting for your payment"),
        ("", "hi-IN,hi;q=0.9,en;q=0.5", "hi", "ltr", "आपके भुगतान की प्रतीक्षा है"),
        ("?lang=ar", "hi", "ar", "rtl", "في انتظار دفعتك"),
        (
            "?lang=xx",
            "ml",
            "ml",
            "ltr",
            "നിങ്ങളുടെ \
             പേയ്‌മെന്റിനായി \
             കാത്തിരിക്കുന്നു",
        ),
    ] {
        let headers =
            [("accept", "text/html"), ("accept-language", accepted), ("authorization", "")];
        let url = format!("{path}{query}");
        let answer = client.send(Method::GET, &url, &headers, Bytes::new()).await;
        let html = text_of(&answer);
        assert!(html.contains(&format!("<html lang=\"{code}\" dir=\"{direction}\">")), "{html}");
        assert!(html.contains(&format!(">{headline}</h1>")), "{html}");
        assert!(answer.header("vary").unwrap().contains("accept-language"));
        // The switch, and the script's way to the same words.
        assert_eq!(html.matches(" hreflang=").count(), 8);
        assert!(html.contains(&format!("data-lang=\"{code}\"")));
        let state = fetch(&client, &format!("{path}/state?lang={code}")).await.ok();
        assert_eq!(state["headline"], headline);
    }
    let wrong = browse(&client, "/pay/x?lang=gu").await;
    assert!(text_of(&wrong).contains("આ ચુકવણી લિંક કામ કરતી નથી"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_is_simulated_from_the_page_alone_and_once() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let transfer = actor.transfer(SETTLES, json!({})).await;
    let path = format!("{}/simulate_payment?lang=hi", path_of(&transfer));
    let send = async |path: &str, site: &str| {
        let headers = [
            ("authorization", ""),
            ("content-type", "application/x-www-form-urlencoded"),
            ("sec-fetch-site", site),
        ];
        actor.client.send(Method::POST, path, &headers, Bytes::new()).await
    };
    assert_eq!(send(&path, "cross-site").await.status, 403);
    assert_eq!(send("/pay/transfer_0.00/simulate_payment", "same-origin").await.status, 404);
    assert_eq!(state_of(&actor.client, &transfer).await["phase"], "awaiting_payment");
    for _ in 0..2 {
        let answer = send(&path, "same-origin").await;
        assert_eq!(answer.status, 303);
        assert!(answer.header("location").unwrap().ends_with("?lang=hi"));
    }
    // A browser without scripts loads the answer to a form anew by a GET, if it says to try again.
    let again = fetch(&actor.client, &path).await;
    let page = again.header("location").unwrap().replace("../", "/pay/");
    assert_eq!((again.status, fetch(&actor.client, &page).await.status), (303, 200));
    let deposits = stage::all(&actor.client, "/v1/deposits").await;
    assert_eq!(deposits.len(), 1, "{deposits:?}");
    assert_eq!(deposits[0]["amount"], "1000.00");
    actor.advance(10 * STEP).await;
    assert_eq!(actor.shown(&transfer).await["status"], "payout_settled");
    assert_eq!(send(&path, "same-origin").await.status, 303);
    assert_eq!(stage::all(&actor.client, "/v1/deposits").await.len(), 1);
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_back_is_shown_as_it_was_given() {
    let server = Server::start().await;
    let client = server.client().await;
    let beneficiary = id(&client.active_beneficiary("50100012345678").await);
    for (url, wanted) in [
        (json!("https://shop.example.com/a?b=\"1\""), Some("https://shop.example.com/a?b=%221%22")),
        (json!(null), None),
        (json!("http://shop.example.com/"), Some("refused")),
        (json!("javascript:alert(1)"), Some("refused")),
    ] {
        let (sender, lock) = (client.sender().await, client.quote_lock("1000.00").await);
        let answer = client
            .post(
                "/v1/transfers",
                json!({
                    "sender_id": id(&sender), "beneficiary_id": beneficiary,
                    "quote_lock_id": id(&lock), "amount": "1000.00", "currency": "USD",
                    "payout_currency": "INR", "return_url": url,
                    "funding": { "rail": "stablecoin", "asset": "USDT", "chain": "tron" },
                }),
            )
            .await;
        if wanted == Some("refused") {
            let faults = stage::faults(&[("parameter_value_invalid", "return_url")]);
            assert_eq!(answer.errors(400), faults, "{url}");
            continue;
        }
        let transfer = answer.ok();
        assert_eq!(transfer["return_url"].as_str(), wanted);
        let html = text_of(&browse(&client, &path_of(&transfer)).await);
        let link = wanted.map(|url| format!("href=\"{url}\" rel=\"noreferrer noopener\">"));
        let is_shown = link.is_some_and(|link| html.contains(&link));
        assert_eq!(is_shown, wanted.is_some(), "{html}");
        assert_eq!(html.contains("Back to shop.example.com"), wanted.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_pushed_and_streams_are_limited() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let server = Server::start().await;
    let client = server.client().await;
    let transfer = client.transfer().await;
    let open = async || {
        let mut stream = tokio::net::TcpStream::connect(&client.address).await.unwrap();
        let head = format!(
            "GET {}/stream?lang=en HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n\r\n",
            path_of(&transfer)
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    };
    // Reads until a text has come; the runner ends a test that waits in vain.
    let until = async |stream: &mut tokio::net::TcpStream, wanted: &str| {
        let mut seen = Vec::new();
        loop {
            let mut part = [0; 4096];
            let count = stream.read(&mut part).await.unwrap();
            assert!(count > 0, "ended: {}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(&part[..count]);
            let text = String::from_utf8_lossy(&seen);
            if text.contains(wanted) {
                return text.into_owned();
            }
        }
    };
    let mut stream = open().await;
    let first = until(&mut stream, "\"phase\":\"awaiting_payment\"").await;
    for wanted in ["HTTP/1.1 200", "content-type: text/event-stream", "no-store", "data: {"] {
        assert!(first.contains(wanted), "{wanted} is not in {first}");
    }
    let mut others = Vec::new();
    for _ in 1..8 {
        let mut other = open().await;
        until(&mut other, "data: {").await;
        others.push(other);
    }
    let mut refused = open().await;
    until(&mut refused, "HTTP/1.1 204").await;
    client.deposit(&transfer, json!({})).await;
    until(&mut stream, "\"phase\":\"paid_out\"").await;
    for other in &mut others {
        // A final state ends the stream.
        let mut rest = Vec::new();
        until(other, "\"is_final\":true").await;
        other.read_to_end(&mut rest).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_has_a_name_and_a_colour_of_its_own() {
    let folder = std::env::temp_dir().join(format!("hundi-issuers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("hundi.toml");
    let text = "issuer_name = 'Gulf <b>Remit'\nissuer_licence = 'Licence 4711'\n\
                [issuers.acme]\nname = 'Acme'\ncolour = '#ffcc00'\n";
    std::fs::write(&path, text).unwrap();
    let server = Server::start_with(&[("CONFIG", path.to_str().unwrap())]).await;
    for (account, name, has_colour) in
        [("default", "Gulf &#60;b&#62;Remit", false), ("acme", "Acme", true)]
    {
        let client = server.client_of(account, hundi::kernel::Mode::Test, "").await;
        let transfer = client.transfer().await;
        let page = browse(&client, &path_of(&transfer)).await;
        let html = text_of(&page);
        assert!(html.contains(&format!("<span>{name}</span>")), "{html}");
        assert!(html.contains(&format!("<title>Waiting for your payment – Pay {name}</title>")));
        assert!(html.contains("Licence 4711"), "what an account does not say is as for all");
        let style = "<style>:root{--brand:#ffcc00;--on-brand:#000000}</style>";
        assert_eq!(html.contains(style), has_colour);
        let policy = page.header("content-security-policy").unwrap();
        assert_eq!(policy.matches("'sha256-").count(), if has_colour { 3 } else { 2 }, "{policy}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// The largest page that an issuer can have: with the largest logo, the longest texts and a way
/// back, in every language.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_with_a_logo_is_light_in_every_language() {
    const PAGE_BYTES_MAX: usize = 60 * 1024;
    let folder = std::env::temp_dir().join(format!("hundi-logo-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (path, logo) = (folder.join("hundi.toml"), folder.join("logo.png"));
    std::fs::write(&logo, png(hundi::issuers::LOGO_BYTES_MAX)).unwrap();
    let long = "A & B ".repeat(20)[..hundi::issuers::TEXT_LENGTH_MAX].to_owned();
    let text = format!(
        "issuer_name = '{long}'\nissuer_address = '{long}'\nissuer_licence = '{long}'\n\
         issuer_colour = '#ffcc00'\nissuer_logo = '{}'\n",
        logo.display()
    );
    std::fs::write(&path, text).unwrap();
    let server = stage::server_with(&[("CONFIG", path.to_str().unwrap())]).await;
    let actor = Actor::new(&server, "default").await;
    let beneficiary_id = actor.beneficiary(SETTLES).await;
    let funding = json!({ "payer_sets_refund_address": true });
    let mut body = actor.transfer_body(&beneficiary_id, "1000.00", funding).await;
    body["return_url"] = json!(format!("https://shop.example.com/{}", "order".repeat(40)));
    let transfer = actor.client.post("/v1/transfers", body).await.ok();
    let mut pages = vec![path_of(&transfer)];
    let picture = format!(
        "<img src=\"data:image/png;base64,{}\" alt=\"\">",
        base64::engine::general_purpose::STANDARD.encode(std::fs::read(&logo).unwrap())
    );
    let mut heaviest = 0;
    for step in 0..3 {
        match step {
            0 => {}
            // What is told beside an amount that is still to be paid.
            1 => {
                actor.client.deposit(&transfer, json!({ "amount": "5.00", "asset": "TRX" })).await;
                actor.pay(&transfer, "400.00").await;
                actor.finalise().await;
            }
            _ => {
                actor.pay(&transfer, "700.00").await;
                actor.advance(10 * STEP).await;
                let payout_id = actor.shown(&transfer).await["payout_id"].clone();
                let advice = format!("/v1/payouts/{}/payment_advice", payout_id.as_str().unwrap());
                let advice = actor.client.get(&advice).await.ok();
                let url = advice["verification_url"].as_str().unwrap();
                pages.push(url[url.find("/verify/").unwrap()..].to_owned());
            }
        }
        for path in &pages {
            for language in ["en", "hi", "ml", "ta", "te", "gu", "pa", "ar"] {
                let page = browse(&actor.client, &format!("{path}?lang={language}")).await;
                let html = text_of(&page);
                assert_eq!(page.status, 200, "{html}");
                assert!(html.contains(&format!("<html lang=\"{language}\"")), "{html}");
                assert_eq!(html.matches(&picture).count(), 1, "{path} in {language}");
                assert!(
                    html.len() <= PAGE_BYTES_MAX,
                    "{path} in {language} has {} bytes in step {step}",
                    html.len()
                );
                heaviest = heaviest.max(html.len());
            }
        }
    }
    // The control: what was measured is a page that the logo makes heavier.
    assert!(heaviest > hundi::issuers::LOGO_BYTES_MAX * 4 / 3, "{heaviest}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// A PNG of as many bytes as are asked for; they are filled up behind its end.
fn png(length: usize) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, 64, 16);
    encoder.set_color(png::ColorType::Rgba);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&[224, 33, 138, 255].repeat(64 * 16)).unwrap();
    writer.finish().unwrap();
    file.resize(length, 0);
    file
}
