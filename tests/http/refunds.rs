//! Refunds without an address, and addresses that no refund goes to.

use bytes::Bytes;
use http::Method;
use hundi::chains::{Depth, Following};
use hundi::kernel::id::kind;
use hundi::kernel::{Id, Mode, Scope};
use hundi::refunds::state::RefundStatus;
use hundi::transfers::funding;
use hundi::{deposits, refunds, transfers, values};
use serde_json::{Value, json};

use crate::desk::{Desk, TEST, movement};
use crate::stage::{self, ADDRESS, ADDRESS_OTHER, Actor, DAY, SETTLES, STEP, event_types, faults};
use crate::support::{Answer, Server, id};

/// What belongs to nobody on TRON.
const ZERO: &str = "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb";

/// A transfer that was paid too much, and its refund, which waits for an address.
async fn waiting(actor: &Actor) -> (Value, Value) {
    let transfer = actor.transfer(SETTLES, json!({})).await;
    actor.pay(&transfer, "1250.00").await;
    actor.finalise().await;
    let refund = actor.shown(&transfer).await["refund"].clone();
    assert_eq!(
        (refund["status"].as_str(), refund["amount"].as_str()),
        (Some("requires_address"), Some("250.00"))
    );
    (transfer, refund)
}

async fn declare(actor: &Actor, refund: &Value, to_address: &str) -> Answer {
    let path = format!("/v1/refunds/{}", id(refund));
    actor.client.post(&path, json!({ "to_address": to_address })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_refund_goes_to_the_service_the_token_or_nobody() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let other = Actor::new(&server, "other").await;
    let theirs = other.transfer(SETTLES, json!({})).await;
    let (transfer, refund) = waiting(&actor).await;
    let funding = &transfer["funding"];
    let refused = [
        ZERO,
        funding["deposit_address"].as_str().unwrap(),
        theirs["funding"]["deposit_address"].as_str().unwrap(),
        funding["token_contract"].as_str().unwrap(),
    ];
    let beneficiary_id = transfer["beneficiary_id"].as_str().unwrap();
    for address in refused {
        let answer = declare(&actor, &refund, address).await;
        let wanted = faults(&[("parameter_value_invalid", "to_address")]);
        assert_eq!(answer.errors(400), wanted, "{address}");
        let funding = json!({ "refund_address": address });
        let body = actor.transfer_body(beneficiary_id, "10.00", funding).await;
        let answer = actor.client.post("/v1/transfers", body).await;
        let wanted = faults(&[("parameter_value_invalid", "funding.refund_address")]);
        assert_eq!(answer.errors(400), wanted, "{address}");
    }
    let held = actor.transfer_to(beneficiary_id, "1000.00", json!({})).await;
    actor.pay(&held, "400.00").await;
    actor.advance(1_800 + 2 * STEP).await;
    for address in refused {
        let body = json!({ "action": "refund", "refund_address": address });
        let wanted = faults(&[("parameter_value_invalid", "refund_address")]);
        assert_eq!(actor.resolve(&held, body).await.errors(400), wanted, "{address}");
    }
    assert_eq!(declare(&actor, &refund, ADDRESS).await.ok()["to_address"], ADDRESS);
    actor.advance(3 * STEP).await;
    assert_eq!(actor.shown(&transfer).await["refund"]["status"], "completed");
    stage::assert_book(&server);
}

pub fn command(server: &Server, arguments: &[&str]) -> std::process::Output {
    let mut all = arguments.to_vec();
    all.extend(["--database", &server.database_url]);
    server.binary(&all).output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_declares_an_address_with_a_reason() {
    let server = Server::start().await;
    let client = server.client().await;
    let transfer = client.transfer().await;
    client.deposit(&transfer, json!({ "amount": "1250.00" })).await;
    let path = format!("/v1/transfers/{}", id(&transfer));
    let shown = client.wait_until(&path, |found| found["refund"].is_object()).await;
    let refund = id(&shown["refund"]);
    let zero = command(&server, &["refunds", "address", &refund, "--to", ZERO, "--reason", "no"]);
    assert!(!zero.status.success());
    let blank = command(&server, &["refunds", "address", &refund, "--to", ADDRESS, "--reason", ""]);
    assert!(!blank.status.success());
    let declared = command(
        &server,
        &["refunds", "address", &refund, "--to", ADDRESS, "--reason", "letter of the payer"],
    );
    assert!(declared.status.success(), "{}", String::from_utf8_lossy(&declared.stderr));
    let path = format!("/v1/refunds/{refund}");
    let found = client.wait_status(&path, "completed").await;
    assert_eq!(found["to_address"], ADDRESS);
    let again = command(
        &server,
        &["refunds", "address", &refund, "--to", ADDRESS_OTHER, "--reason", "another"],
    );
    assert!(!again.status.success(), "money that went is gone");
    let listed = command(&server, &["refunds", "list"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("operator\tletter of the payer"), "{listed}");
    server.assert_book();
}

/// The path of a transfer's page.
fn page_of(transfer: &Value) -> String {
    let url = transfer["funding"]["instructions_url"].as_str().unwrap();
    url[url.find("/pay/").unwrap()..].to_owned()
}

/// A transfer whose payer may say where money goes, paid too much, and its refund.
async fn waiting_for_payer(actor: &Actor) -> (Value, String) {
    let transfer = actor.transfer(SETTLES, json!({ "payer_sets_refund_address": true })).await;
    assert_eq!(transfer["funding"]["payer_sets_refund_address"], true);
    actor.pay(&transfer, "1250.00").await;
    actor.finalise().await;
    let refund = actor.shown(&transfer).await["refund"].clone();
    assert_eq!(refund["status"], "requires_address");
    assert_eq!(refund["payer_address"], Value::Null);
    (transfer, id(&refund))
}

/// What the payer's browser is answered.
async fn browse(actor: &Actor, path: &str) -> String {
    let headers = [("accept", "text/html"), ("authorization", "")];
    let answer = actor.client.send(Method::GET, path, &headers, Bytes::new()).await;
    assert_eq!(answer.status, 200);
    String::from_utf8(answer.body.to_vec()).unwrap()
}

async fn submit(actor: &Actor, transfer: &Value, fields: &[(&str, &str)]) -> Answer {
    submit_from(actor, transfer, fields, &[("sec-fetch-site", "same-origin"), ("origin", "null")])
        .await
}

async fn submit_from(
    actor: &Actor,
    transfer: &Value,
    fields: &[(&str, &str)],
    more: &[(&str, &str)],
) -> Answer {
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    let mut headers = vec![
        ("accept", "text/html"),
        ("authorization", ""),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    headers.extend_from_slice(more);
    let path = format!("{}/refund_address", page_of(transfer));
    actor.client.send(Method::POST, &path, &headers, Bytes::from(body)).await
}

/// The mark on the page that shows an address back.
fn confirmation(answer: &Answer) -> String {
    assert_eq!(answer.status, 200);
    let html = String::from_utf8(answer.body.to_vec()).unwrap();
    let mark = html.split("name=\"confirmation\" value=\"").nth(1).unwrap();
    mark[..mark.find('"').unwrap()].to_owned()
}

/// Gives the address and confirms it.
async fn give(actor: &Actor, transfer: &Value, address: &str) -> Answer {
    let mark = confirmation(&submit(actor, transfer, &[("address", address)]).await);
    submit(actor, transfer, &[("address", address), ("confirmation", &mark)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_payer_gives_an_address_once_and_it_counts_a_day_later() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let (transfer, refund) = waiting_for_payer(&actor).await;
    let path = format!("/v1/refunds/{refund}");
    let page = browse(&actor, &page_of(&transfer)).await;
    assert!(page.contains("/refund_address?lang=en\""), "{page}");

    // Shown back, and nothing is kept before it is confirmed.
    let shown = submit(&actor, &transfer, &[("address", &format!("  {ADDRESS} "))]).await;
    let html = String::from_utf8(shown.body.to_vec()).unwrap();
    assert!(html.contains(&format!(">{ADDRESS}<")) && html.contains("250.00 USDT"), "{html}");
    assert_eq!(actor.client.get(&path).await.ok()["payer_address"], Value::Null);
    let given = give(&actor, &transfer, ADDRESS).await;
    assert_eq!(given.status, 303);
    let token = page_of(&transfer)["/pay/".len()..].to_owned();
    assert_eq!(given.header("location"), Some(format!("../{token}?lang=en").as_str()));
    let at = actor.now();
    let kept = actor.client.get(&path).await.ok();
    assert_eq!(
        (&kept["status"], &kept["to_address"], &kept["payer_address"]),
        (
            &json!("requires_address"),
            &Value::Null,
            &json!({ "to_address": ADDRESS, "declared_at": at, "active_at": at + DAY })
        )
    );
    let told = ["refund.status.requires_address", "refund.payer_address.updated"];
    assert_eq!(event_types(&actor.client, &refund).await, told);
    let page = browse(&actor, &page_of(&transfer)).await;
    assert!(page.contains(ADDRESS) && !page.contains("/refund_address?lang=en\""), "{page}");

    // Once: another one is not taken, and the same one changes nothing.
    for address in [ADDRESS_OTHER, ADDRESS] {
        let again = submit(&actor, &transfer, &[("address", address)]).await;
        assert_eq!(again.status, 303);
    }
    actor.advance_to(at + DAY - 1).await;
    assert_eq!(actor.client.get(&path).await.ok(), kept);
    actor.advance(1).await;
    let active = actor.client.get(&path).await.ok();
    assert_eq!((&active["status"], &active["to_address"]), (&json!("processing"), &json!(ADDRESS)));
    actor.advance(2 * STEP).await;
    assert_eq!(actor.client.get(&path).await.ok()["status"], "completed");
    let listed = command(&server, &["refunds", "list"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains(&format!("payer\t-\t{ADDRESS}")), "{listed}");
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_caller_consents_or_objects_to_the_payers_address() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    for (declared, by_whom) in [(ADDRESS, "consent"), (ADDRESS_OTHER, "objection")] {
        let (transfer, refund) = waiting_for_payer(&actor).await;
        assert_eq!(give(&actor, &transfer, ADDRESS).await.status, 303);
        let path = format!("/v1/refunds/{refund}");
        let body = json!({ "to_address": declared });
        let found = actor.client.post(&path, body).await.ok();
        assert_eq!(
            (&found["status"], &found["to_address"], &found["payer_address"]["to_address"]),
            (&json!("processing"), &json!(declared), &json!(ADDRESS)),
            "{by_whom}"
        );
        actor.advance(2 * STEP).await;
        let done = actor.client.get(&path).await.ok();
        actor.advance(DAY).await;
        assert_eq!(actor.client.get(&path).await.ok(), done, "{by_whom}: the day changes nothing");
        assert_eq!(done["status"], "completed");
    }
    // The operator's word comes before the payer's too.
    let (transfer, refund) = waiting_for_payer(&actor).await;
    assert_eq!(give(&actor, &transfer, ADDRESS).await.status, 303);
    let set = ["refunds", "address", &refund, "--to", ADDRESS_OTHER, "--reason", "by letter"];
    assert!(command(&server, &set).status.success());
    actor.advance(DAY).await;
    let found = actor.client.get(&format!("/v1/refunds/{refund}")).await.ok();
    assert_eq!(found["to_address"], ADDRESS_OTHER);
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_and_nothing_else_becomes_the_payers_address() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let other = Actor::new(&server, "other").await;
    let theirs = other.transfer(SETTLES, json!({})).await;
    let (transfer, refund) = waiting_for_payer(&actor).await;
    let path = format!("/v1/refunds/{refund}");
    let before = actor.client.get(&path).await.ok();
    let funding = &transfer["funding"];
    for wrong in [
        "",
        "T",
        &ADDRESS.to_lowercase(),
        "0x52908400098527886E0F7030069857D2E4169EE7",
        "<script>alert(1)</script>",
        ZERO,
        funding["deposit_address"].as_str().unwrap(),
        theirs["funding"]["deposit_address"].as_str().unwrap(),
        funding["token_contract"].as_str().unwrap(),
    ] {
        for confirmation in ["", "0123456789abcdef0123456789abcdef"] {
            let fields = [("address", wrong), ("confirmation", confirmation)];
            let answer = submit(&actor, &transfer, &fields).await;
            assert_eq!(answer.status, 400, "{wrong}");
            let html = String::from_utf8(answer.body.to_vec()).unwrap();
            assert!(!html.contains("<script") && !html.contains("name=\"confirmation\""));
        }
    }
    // A confirmation is for one address of one transfer; without the right one it is asked again.
    let (foreign, _) = waiting_for_payer(&actor).await;
    let of_another = confirmation(&submit(&actor, &foreign, &[("address", ADDRESS)]).await);
    let of_this = confirmation(&submit(&actor, &transfer, &[("address", ADDRESS)]).await);
    let guessed = "0".repeat(32);
    for (address, mark) in [(ADDRESS, &of_another), (ADDRESS_OTHER, &of_this), (ADDRESS, &guessed)]
    {
        let fields = [("address", address), ("confirmation", mark.as_str())];
        let answer = submit(&actor, &transfer, &fields).await;
        assert_ne!(&confirmation(&answer), mark);
    }
    // From another page of somebody's.
    let right = [("address", ADDRESS), ("confirmation", of_this.as_str())];
    for site in [
        &[("sec-fetch-site", "cross-site")] as &[_],
        &[("sec-fetch-site", "same-site"), ("origin", "https://a.example.com")],
        &[("origin", "https://evil.example")],
    ] {
        let answer = submit_from(&actor, &transfer, &right, site).await;
        assert_eq!(answer.status, 403);
    }
    // A wrong link, and a transfer whose caller keeps it to itself.
    let mut wrong_link = transfer.clone();
    wrong_link["funding"]["instructions_url"] = json!("http://x/pay/transfer_0.00");
    assert_eq!(submit(&actor, &wrong_link, &right).await.status, 404);
    let (kept, kept_refund) = waiting(&actor).await;
    assert!(!browse(&actor, &page_of(&kept)).await.contains("/refund_address?lang=en\""));
    assert_eq!(submit(&actor, &kept, &[("address", ADDRESS)]).await.status, 303);
    let found = actor.client.get(&format!("/v1/refunds/{}", id(&kept_refund))).await.ok();
    assert_eq!(
        (&found["status"], &found["payer_address"]),
        (&json!("requires_address"), &Value::Null)
    );
    assert_eq!(actor.client.get(&path).await.ok(), before, "nothing of all this was kept");
    // The control: the same form from the page is taken.
    assert_eq!(submit(&actor, &transfer, &right).await.status, 303);
    assert_eq!(actor.client.get(&path).await.ok()["payer_address"]["to_address"], ADDRESS);

    // An address that became one of the service's meanwhile is forgotten, and asked for again.
    let bytes = *hundi::chains::address::ChainAddress::parse(ADDRESS).unwrap().bytes();
    let owner: Id<kind::Transfer> = Id::parse(&id(&transfer)).unwrap();
    let scope = Scope::new(1, Mode::Test);
    let assign = server
        .app
        .state
        .store
        .write(move |tx, _| Ok(deposits::rows::assign_address(tx, scope, owner, &bytes)?));
    assign.await.unwrap();
    actor.advance(DAY).await;
    let found = actor.client.get(&path).await.ok();
    assert_eq!(
        (&found["status"], &found["payer_address"]),
        (&json!("requires_address"), &Value::Null)
    );
    assert!(browse(&actor, &page_of(&transfer)).await.contains("/refund_address?lang=en\""));
}

/// Changes a refund's rows as nothing over HTTP does in test mode.
async fn change(server: &Server, sql: &'static str, refund: &str) {
    let id: Id<kind::Refund> = Id::parse(refund).unwrap();
    let changed = server.app.state.store.write(move |tx, _| Ok(tx.execute(sql, values![id])?));
    assert_eq!(changed.await.unwrap(), 1, "{sql}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_complete_helper_confirms_only_what_may_be_sent_on_a_simulated_chain() {
    const HELD: &str = "UPDATE refunds SET is_held = TRUE WHERE id = ?1";
    const ELSEWHERE: &str = "UPDATE transfers SET account_fingerprint = account_fingerprint + 1 \
                             WHERE refund_id = ?1";
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    for (sql, why) in [(HELD, "screening"), (ELSEWHERE, "simulated")] {
        let transfer = actor.transfer(SETTLES, json!({ "refund_address": ADDRESS })).await;
        actor.pay(&transfer, "1250.00").await;
        actor.finalise().await;
        let refund = actor.shown(&transfer).await["refund"].clone();
        assert_eq!(refund["status"], "processing");
        change(&server, sql, &id(&refund)).await;
        let held = actor.client.get("/v1/balance").await.ok()["hold"].clone();
        let path = format!("/v1/test_helpers/refunds/{}/complete", id(&refund));
        let answer = actor.client.post(&path, json!({})).await;
        assert_eq!(answer.error(400), "test_helper_not_applicable", "{why}");
        let message = answer.json()["errors"][0]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(why), "{message}");
        let path = format!("/v1/refunds/{}", id(&refund));
        assert_eq!(actor.client.get(&path).await.ok(), refund, "{why}");
        // Nor does it complete by itself.
        actor.advance(10 * STEP).await;
        assert_eq!(actor.client.get(&path).await.ok(), refund, "{why}");
        assert_eq!(actor.client.get("/v1/balance").await.ok()["hold"], held, "{why}");
    }
    stage::assert_book(&server);
}

/// While a test net is left out of the configuration, a chain of the same name is simulated. A
/// refund of the net's money that begins then waits for the operator, also once the net is back.
#[tokio::test(flavor = "multi_thread")]
async fn a_refund_of_a_former_test_net_gets_no_simulated_confirmation() {
    const ELSEWHERE: &str = "UPDATE transfers SET account_fingerprint = account_fingerprint + 1 \
                             WHERE id = ?1";
    const TASKS: &str = "SELECT COUNT(*) FROM tasks WHERE kind = 'refund_confirm'";
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    for (is_of_net, tasks_count) in [(true, 0), (false, 1)] {
        let transfer = actor.transfer(SETTLES, json!({ "refund_address": ADDRESS })).await;
        actor.pay(&transfer, "1250.00").await;
        let transfer_id: Id<kind::Transfer> = Id::parse(&id(&transfer)).unwrap();
        let moved = server.app.state.store.write(move |tx, _| {
            let is_moved = is_of_net && tx.execute(ELSEWHERE, values![transfer_id])? == 1;
            Ok(is_moved)
        });
        assert_eq!(moved.await.unwrap(), is_of_net);
        actor.finalise().await;
        assert_eq!(actor.shown(&transfer).await["refund"]["status"], "processing");
        let count = server.app.state.store.write(|tx, _| {
            let mut row = tx.row(TASKS, &[])?.unwrap();
            Ok(row.int()?)
        });
        assert_eq!(count.await.unwrap(), tasks_count, "{is_of_net}");
    }
}

/// A test net may be configured between the task of a refund and its run. No refund is confirmed by
/// a hash that no chain has.
#[tokio::test(flavor = "multi_thread")]
async fn no_refund_is_confirmed_by_itself_on_a_chain_that_is_real_now() {
    for (is_real, status) in [(true, RefundStatus::Processing), (false, RefundStatus::Completed)] {
        let mut desk = Desk::with_rates_fixed().await;
        let transfer = desk.transfer().await;
        let paid = desk.write(move |tx, now, services| {
            let depth = Depth::Final { number: 1, time: now.business(), confirmations: 20 };
            let mut movement = movement(&transfer, depth);
            movement.amount.units += 5_000_000;
            funding::observe_simulated(tx, now, services, TEST, "tron", &movement)?;
            Ok(transfers::rows::find(tx, TEST, transfer.id)?.unwrap().refund_id.unwrap())
        });
        let refund = paid.await.unwrap();
        if is_real {
            desk.services_mut().test.chain.following =
                Following::Real { lag_alarm_seconds: 600, chain_id: 728_126_428 };
        }
        desk.run_tasks().await;
        let found = desk.write(move |tx, _, _| Ok(refunds::rows::find(tx, TEST, refund)?));
        assert_eq!(found.await.unwrap().unwrap().status, status, "{is_real}");
    }
}
