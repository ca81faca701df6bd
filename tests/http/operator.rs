//! What only the operator decides, as `hundi decide` carries it out.

use hundi::chains::address::ChainAddress;
use hundi::decisions;
use hundi::kernel::{AnyId, DecidedBy, Id, Metadata, Mode, Scope};
use hundi::operator::{self, OperatorDecision, four_eyes};
use hundi::screening::simulated;
use hundi::senders::{self, NewSender, SenderType};
use serde_json::{Value, json};

use crate::refunds::command;
use crate::support::{Client, Server, by, id, payout_id};

async fn decide(server: &Server, id: &str, decision: OperatorDecision) -> Result<String, String> {
    let (id, services) = (AnyId::parse(id).unwrap(), server.app.state.services.clone());
    let decided = server
        .app
        .state
        .store
        .write(move |tx, now| operator::decide(tx, now, &services, id, &decision, &by()))
        .await;
    decided.map_err(|error| error.to_string())
}

async fn transfer(client: &Client, account_number: &str, amount: &str) -> Value {
    let body = client.transfer_body(account_number, amount).await;
    client.post("/v1/transfers", body).await.ok()
}

fn right_book(server: &Server) {
    server.assert_book();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_is_refused_until_the_operator_clears_it() {
    let server = Server::start().await;
    let client = server.client().await;
    for name in [simulated::CONFIRMED_NAME, simulated::POSSIBLE_NAME] {
        let sender = client
            .post("/v1/senders", json!({ "name": name, "type": "individual", "country": "AE" }))
            .await
            .ok();
        let mut body = client.transfer_body("50100012345678", "100.00").await;
        body["sender_id"] = sender["id"].clone();
        let refused = client.post("/v1/transfers", body.clone()).await;
        assert_eq!(refused.error(400), "sender_not_eligible");
        assert_eq!(refused.json()["errors"][0]["metadata"]["new_key_required"], true);
        assert!(decide(&server, &id(&sender), OperatorDecision::Fail).await.is_err());
        decide(&server, &id(&sender), OperatorDecision::Approve).await.unwrap();
        client.post("/v1/transfers", body).await.ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_has_no_timer_and_ends_by_the_operator_alone() {
    let server = Server::start().await;
    let client = server.client().await;
    for (ruling, status) in [
        (OperatorDecision::Refuse, "refund_processing"),
        (OperatorDecision::Approve, "funding_hold"),
    ] {
        let waiting = transfer(&client, "50100012345678", "100.00").await;
        let path = format!("/v1/transfers/{}", id(&waiting));
        assert!(
            decide(&server, &id(&waiting), OperatorDecision::Review).await.is_err(),
            "no money came yet"
        );
        client.deposit(&waiting, json!({ "amount": "40.00" })).await;
        client.wait_until(&path, |found| found["funding"]["amount_received"] == "40.00").await;
        decide(&server, &id(&waiting), OperatorDecision::Review).await.unwrap();
        let held = client.get(&path).await.ok();
        assert_eq!(
            (held["status"].as_str(), held["status_reason"].as_str()),
            (Some("funding_hold"), Some("compliance_review"))
        );
        client.advance(3 * 86_400).await;
        assert_eq!(client.get(&path).await.ok()["status_reason"], "compliance_review");
        let refused = client
            .post(
                &format!("{path}/resolve_funding"),
                json!({ "action": "refund", "refund_address": held["funding"]["deposit_address"] }),
            )
            .await;
        assert_eq!(refused.error(400), "transfer_action_invalid");
        decide(&server, &id(&waiting), ruling).await.unwrap();
        let ended = client.get(&path).await.ok();
        assert_eq!(ended["status"], status);
        if status == "funding_hold" {
            // Judged by the table again: too little, and the 24 hours begin now.
            assert_eq!(ended["status_reason"], "underpaid");
            // The clock runs on by itself as well.
            client.advance(86_370).await;
            assert_eq!(client.get(&path).await.ok()["status"], "funding_hold");
            client.advance(30).await;
            assert_eq!(client.get(&path).await.ok()["status"], "refund_processing");
        }
    }
    right_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_that_is_approved_with_enough_money_pays() {
    let server = Server::start().await;
    let client = server.client().await;
    let mut body = client.transfer_body("50100012345678", "100.00").await;
    body["funding"]["policy"] = json!({ "overpaid": "hold" });
    let waiting = client.post("/v1/transfers", body).await.ok();
    let path = format!("/v1/transfers/{}", id(&waiting));
    client.deposit(&waiting, json!({ "amount": "60.00" })).await;
    client.wait_until(&path, |found| found["funding"]["amount_received"] == "60.00").await;
    decide(&server, &id(&waiting), OperatorDecision::Review).await.unwrap();
    client.deposit(&waiting, json!({ "amount": "40.00" })).await;
    client.wait_until(&path, |found| found["funding"]["amount_received"] == "100.00").await;
    assert_eq!(
        client.get(&path).await.ok()["status_reason"],
        "compliance_review",
        "more money in a hold moves nothing"
    );
    decide(&server, &id(&waiting), OperatorDecision::Approve).await.unwrap();
    client.wait_status(&path, "payout_settled").await;
    right_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_pays_what_came_in_time_and_never_after_a_cancellation() {
    let server = Server::start().await;
    let client = server.client().await;
    for (is_cancelled, parts, wanted) in [
        (true, &["10.00", "100.00"][..], ("funding_hold", Some("late"))),
        (false, &["40.00", "60.00"], ("payout_settled", None)),
    ] {
        let created = transfer(&client, "50100012345678", "100.00").await;
        let path = format!("/v1/transfers/{}", id(&created));
        let expires_at = created["funding"]["expires_at"].as_i64().unwrap();
        if is_cancelled {
            client.post(&format!("{path}/cancel"), json!({})).await.ok();
        } else {
            client.advance(1_860).await;
            client.wait_status(&path, "expired").await;
        }
        for part in parts {
            let change = if is_cancelled {
                json!({ "amount": part })
            } else {
                json!({ "amount": part, "block_time": expires_at })
            };
            let sent = client.deposit(&created, change).await;
            client.wait_status(&format!("/v1/deposits/{}", id(&sent)), "completed").await;
        }
        assert_eq!(client.get(&path).await.ok()["status_reason"], "late");
        decide(&server, &id(&created), OperatorDecision::Review).await.unwrap();
        decide(&server, &id(&created), OperatorDecision::Approve).await.unwrap();
        let ended = client.wait_status(&path, wanted.0).await;
        assert_eq!(ended["status_reason"].as_str(), wanted.1, "{ended}");
    }
    right_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unmatched_deposit_is_given_back_once_and_whole() {
    let server = Server::start().await;
    let client = server.client().await;
    let paid = transfer(&client, "50100012345678", "100.00").await;
    let path = format!("/v1/transfers/{}", id(&paid));
    let matched = client.deposit(&paid, json!({})).await;
    let settled = client.wait_status(&path, "payout_settled").await;
    let extra = client.deposit(&paid, json!({ "amount": "7.50" })).await;
    let extra = client.wait_status(&format!("/v1/deposits/{}", id(&extra)), "completed").await;
    assert_eq!(extra["classification"], "unmatched");
    assert!(decide(&server, &id(&matched), OperatorDecision::Refund(None)).await.is_err());
    let foreign = ChainAddress::parse("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed").unwrap();
    let told =
        decide(&server, &id(&extra), OperatorDecision::Refund(Some(foreign))).await.unwrap_err();
    assert!(told.contains("--to must be a TRON address"), "{told}");
    decide(&server, &id(&extra), OperatorDecision::Refund(None)).await.unwrap();
    assert!(decide(&server, &id(&extra), OperatorDecision::Refund(None)).await.is_err(), "once");
    let refund = client.get("/v1/refunds").await.ok()["data"][0].clone();
    assert_eq!(
        (refund["kind"].as_str(), refund["status"].as_str(), refund["amount"].as_str()),
        (Some("unmatched"), Some("requires_address"), Some("7.50"))
    );
    client
        .post(
            &format!("/v1/refunds/{}", id(&refund)),
            json!({ "to_address": crate::stage::ADDRESS }),
        )
        .await
        .ok();
    client.wait_status(&format!("/v1/refunds/{}", id(&refund)), "completed").await;
    // The form is judged before what the refund takes.
    for (address, code) in [
        (foreign.to_string(), "parameter_value_invalid"),
        (
            settled["funding"]["deposit_address"].as_str().unwrap().to_owned(),
            "transfer_action_invalid",
        ),
    ] {
        let again = client
            .post(&format!("/v1/refunds/{}", id(&refund)), json!({ "to_address": address }))
            .await;
        assert_eq!(again.error(400), code);
    }
    let after = client.get(&path).await.ok();
    assert_eq!(
        (after["status"].as_str(), &after["refund"]),
        (Some("payout_settled"), &Value::Null)
    );
    assert_eq!(client.get("/v1/balance").await.ok()["hold"], json!([]));
    right_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payout_of_unknown_outcome_is_closed_by_the_operator() {
    let server = Server::start().await;
    let client = server.client().await;
    for (ruling, status) in [
        (OperatorDecision::Settle("hdfc526012345678".into()), "payout_settled"),
        (OperatorDecision::Fail, "refund_processing"),
    ] {
        let waiting = transfer(&client, "50100012341003", "100.00").await;
        let path = format!("/v1/transfers/{}", id(&waiting));
        client.deposit(&waiting, json!({})).await;
        let found = client.wait_status(&path, "payout_processing").await;
        let payout = payout_id(&found);
        client
            .wait_until(&format!("/v1/payouts/{payout}"), |found| {
                found["failure"]["code"] == "outcome_unknown"
            })
            .await;
        assert!(decide(&server, &payout, OperatorDecision::Settle("short".into())).await.is_err());
        assert!(
            decide(&server, &payout, OperatorDecision::Return).await.is_err(),
            "it is not settled"
        );
        decide(&server, &payout, ruling).await.unwrap();
        client.wait_status(&path, status).await;
        assert!(decide(&server, &payout, OperatorDecision::Fail).await.is_err(), "only once");
        if status == "payout_settled" {
            decide(&server, &payout, OperatorDecision::Return).await.unwrap();
            client.wait_status(&path, "refund_processing").await;
            assert!(decide(&server, &payout, OperatorDecision::Return).await.is_err(), "only once");
        }
    }
    right_book(&server);
}

/// The words that a command printed, cell by cell.
fn cells(server: &Server, arguments: &[&str]) -> Vec<Vec<String>> {
    let output = command(server, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let row = |line: &str| line.split('\t').map(str::to_owned).collect();
    text.lines().skip(1).map(row).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hit_shows_both_names_and_its_decision_who_decided_and_why() {
    let server = Server::start().await;
    let client = server.client().await;
    let body = json!({ "name": "TEST possibly SANCTIONED", "type": "individual", "country": "AE" });
    let sender = id(&client.post("/v1/senders", body).await.ok());
    let hits = cells(&server, &["screening", "hits"]);
    assert_eq!(hits.len(), 1);
    assert_eq!(hits[0][0], sender);
    assert_eq!(hits[0][5..7], ["TEST possibly SANCTIONED", simulated::POSSIBLE_NAME]);
    // What is declined leaves nothing.
    let settle = ["decide", &sender, "fail", "--actor", "asha", "--reason", "a slip"];
    assert!(!command(&server, &settle).status.success());
    let (actor, reason) = ("asha rao", "born in another year: her passport of 2019");
    let approve = ["decide", &sender, "approve", "--actor", actor, "--reason", reason];
    assert!(command(&server, &approve).status.success());
    // In test mode both may be left out.
    assert!(command(&server, &["decide", &sender, "refuse"]).status.success());
    let decisions: Vec<Vec<String>> = cells(&server, &["decisions", &sender]);
    let told: Vec<&[String]> = decisions.iter().map(|row| &row[2..]).collect();
    assert_eq!(told, [["approve", actor, reason, "-"], ["refuse", "-", "-", "-"]]);
    let found = server.app.state.store.write(move |tx, _| {
        let id = AnyId::parse(&sender).unwrap();
        let scope = Scope::new(1, Mode::Test);
        let hits = hundi::screening::rows::of_subject(tx, scope, id)?;
        Ok(hits.into_iter().map(|hit| hit.decided_by).collect::<Vec<_>>())
    });
    assert_eq!(found.await.unwrap(), [Some("operator".to_owned())], "who was not told");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_in_live_mode_needs_a_name_and_a_reason() {
    let server = Server::start().await;
    server.client().await;
    let services = server.app.state.services.clone();
    let live = Scope::new(1, Mode::Live);
    let sender = server.app.state.store.write(move |tx, now| {
        let ask = NewSender {
            name: "Asha Rao".into(),
            sender_type: SenderType::Individual,
            country: "AE".into(),
            email: None,
            address: None,
            date_of_birth: None,
            nationality: None,
            identification: None,
            metadata: Metadata::default(),
        };
        Ok(senders::create(tx, now, &services, live, ask)?.id)
    });
    let sender: Id<_> = sender.await.unwrap();
    let services = server.app.state.services.clone();
    let decide = async |actor: &str, reason: &str| {
        let (by, services) = (DecidedBy::new(actor, reason).unwrap(), services.clone());
        let decided = server.app.state.store.write(move |tx, now| {
            operator::decide(tx, now, &services, sender.any(), &OperatorDecision::Approve, &by)
        });
        decided.await.map_err(|error| error.to_string())
    };
    for (actor, reason) in [("", ""), ("asha", ""), ("", "known"), ("asha", "  ")] {
        let refused = decide(actor, reason).await.unwrap_err();
        assert!(refused.contains("--actor NAME and --reason TEXT"), "{refused}");
    }
    decide("asha", "known").await.unwrap();
    let sender = sender.to_string();
    assert_eq!(cells(&server, &["decisions"]).len(), 1, "refused decisions leave nothing");
    assert_eq!(cells(&server, &["decisions", &sender])[0][2..], ["approve", "asha", "known", "-"]);
}

/// A list that does not show everything says so, and fails; one that just fits does not.
#[tokio::test(flavor = "multi_thread")]
async fn lists_of_decisions_say_that_there_are_more() {
    let server = Server::start().await;
    let add = async |count: i64| {
        let planted = server.app.state.store.write(move |tx, now| {
            for _ in 0..count {
                decisions::record(tx, now, "quotes", "pause", &by())?;
                let number = four_eyes::rows::last_number(tx)? + 1;
                let sql = "INSERT INTO decision_requests (number, subject, word, cause, status, \
                           requested_by, requester, reason, requested_at, asked) VALUES (?1, \
                           'quotes', 'resume', 'resume', 'expired', 1, 'asha', 'a test', 1, '')";
                tx.execute(sql, hundi::values![number])?;
            }
            Ok(())
        });
        planted.await.unwrap();
    };
    let lists: [&[&str]; 3] = [&["decisions"], &["decisions", "quotes"], &["approvals", "list"]];
    // In parts: a transaction has a few seconds.
    for _ in 0..20 {
        add(50).await;
    }
    for list in lists {
        assert_eq!(cells(&server, list).len(), 1_000, "{list:?}");
    }
    add(1).await;
    for list in lists {
        let cut = command(&server, list);
        let told = String::from_utf8_lossy(&cut.stderr).into_owned();
        assert!(!cut.status.success(), "{list:?}");
        assert!(told.contains("there are more than 1000; only these are shown"), "{told}");
        assert_eq!(String::from_utf8_lossy(&cut.stdout).lines().count(), 1 + 1_000, "{list:?}");
    }
}
