//! The operator's limits on rupees: what is above one waits, and two at once do not both pass.

use hundi::kernel::id::kind;
use hundi::kernel::{AnyId, Id, Mode, Scope};
use hundi::operator::{OperatorDecision, decide};
use hundi::pauses::{self, Operation};
use hundi::payouts;
use hundi::payouts::limits::{self, LimitSubject};
use hundi::store::{Cost, meta};
use hundi::transfers::paying;
use serde_json::{Value, json};

use crate::refunds::command;
use crate::stage::{self, Actor, DAY, SETTLES, STEP};
use crate::support::{Server, by, id, payout_id};

const TEST: Scope = Scope::new(1, Mode::Test);

/// A transfer of 1000.00 USD, 88412.50 INR, whose money has just become final.
async fn funded(actor: &Actor, beneficiary: &str, sender: Option<&Value>) -> Value {
    let mut body = actor.transfer_body(beneficiary, "1000.00", json!({})).await;
    if let Some(sender) = sender {
        body["sender_id"] = sender.clone();
    }
    let transfer = actor.client.post("/v1/transfers", body).await.ok();
    actor.pay(&transfer, "1000.00").await;
    actor.finalise().await;
    transfer
}

fn payout(transfer: &Value) -> Id<kind::Payout> {
    Id::parse(&payout_id(transfer)).unwrap()
}

async fn decided(server: &Server, id: Id<kind::Payout>, decision: OperatorDecision) -> String {
    let services = server.app.state.services.clone();
    let decide = server
        .app
        .state
        .store
        .write(move |tx, now| decide(tx, now, &services, id.any(), &decision, &by()));
    decide.await.unwrap()
}

/// The reasons for which payouts are on hold.
fn held_for(server: &Server) -> Vec<String> {
    let output = command(server, &["payouts", "held"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().skip(1).map(|line| line.split('\t').nth(5).unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payout_above_a_limit_waits_for_the_operator_or_for_room() {
    for (variable, reason) in [
        ("HUNDI_SENDER_DAY_INR_MAX", "sender_limit"),
        ("HUNDI_BENEFICIARY_DAY_INR_MAX", "beneficiary_limit"),
        ("HUNDI_ACCOUNT_DAY_INR_MAX", "account_limit"),
    ] {
        let server = stage::server_with(&[(variable, "200000.00")]).await;
        let actor = Actor::new(&server, "default").await;
        let beneficiary = actor.beneficiary(SETTLES).await;
        let first = funded(&actor, &beneficiary, None).await;
        let sender = first["sender_id"].clone();
        let second = funded(&actor, &beneficiary, Some(&sender)).await;
        for transfer in [&first, &second] {
            assert_ne!(actor.payout_of(transfer).await["status"], "hold", "{reason}: room for two");
        }
        assert!(held_for(&server).is_empty());
        let mut held = Vec::new();
        for _ in 0..3 {
            let transfer = funded(&actor, &beneficiary, Some(&sender)).await;
            assert_eq!(actor.payout_of(&transfer).await["status"], "hold", "{reason}");
            assert_eq!(actor.shown(&transfer).await["status"], "funded");
            held.push(actor.shown(&transfer).await);
        }
        assert_eq!(held_for(&server), [reason; 3]);
        // The operator lets one pass and refuses another; the third waits for another day.
        decided(&server, payout(&held[0]), OperatorDecision::Approve).await;
        assert_eq!(actor.payout_of(&held[0]).await["status"], "processing");
        decided(&server, payout(&held[1]), OperatorDecision::Refuse).await;
        assert_eq!(actor.shown(&held[1]).await["status"], "refund_processing");
        assert_eq!(actor.payout_of(&held[2]).await["status"], "hold");
        actor.advance(DAY).await;
        assert_ne!(actor.payout_of(&held[2]).await["status"], "hold", "a new day has room");
        assert!(held_for(&server).is_empty());
        actor.advance(4 * STEP).await;
        stage::assert_book(&server);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_month_is_counted_apart_from_its_days() {
    let server = stage::server_with(&[("HUNDI_ACCOUNT_MONTH_INR_MAX", "100000.00")]).await;
    let actor = Actor::new(&server, "default").await;
    let beneficiary = actor.beneficiary(SETTLES).await;
    funded(&actor, &beneficiary, None).await;
    let held = funded(&actor, &beneficiary, None).await;
    actor.advance(DAY).await;
    assert_eq!(actor.payout_of(&held).await["status"], "hold", "another day of the same month");
    // The test begins on the 21st of September.
    actor.advance(10 * DAY).await;
    assert_ne!(actor.payout_of(&held).await["status"], "hold", "October");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_or_came_back_makes_room() {
    let server = stage::server_with(&[("HUNDI_ACCOUNT_DAY_INR_MAX", "100000.00")]).await;
    let actor = Actor::new(&server, "default").await;
    // One that the bank refuses, and one that comes back after it settled.
    for account_number in ["50100010001001", "50100010001002"] {
        let beneficiary = actor.beneficiary(account_number).await;
        let transfer = funded(&actor, &beneficiary, None).await;
        assert_eq!(actor.payout_of(&transfer).await["status"], "processing");
        actor.advance(4 * STEP).await;
        let status = actor.payout_of(&transfer).await["status"].clone();
        assert!(status == "failed" || status == "returned", "{status}");
    }
    let beneficiary = actor.beneficiary(SETTLES).await;
    let transfer = funded(&actor, &beneficiary, None).await;
    assert_eq!(actor.payout_of(&transfer).await["status"], "processing");
    let other = funded(&actor, &beneficiary, None).await;
    assert_eq!(actor.payout_of(&other).await["status"], "hold", "the control");
}

/// Where a limit was in force before the period began, each payout was counted, and the first of a
/// period reads no other. The control: where it was not, earlier payouts of the period count.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_in_force_begins_a_period_with_nothing() {
    for (since, status) in [(Some(0_i64), "processing"), (None, "hold")] {
        let server = stage::server_with(&[("HUNDI_ACCOUNT_DAY_INR_MAX", "200000.00")]).await;
        let actor = Actor::new(&server, "default").await;
        let beneficiary = actor.beneficiary(SETTLES).await;
        for _ in 0..2 {
            funded(&actor, &beneficiary, None).await;
        }
        let store = &server.app.state.store;
        let forget = store.write(move |tx, _| {
            tx.execute("DELETE FROM payout_totals", &[])?;
            let name = "limit_in_force_since:account:day";
            meta::remove(tx, name)?;
            if let Some(since) = since {
                meta::write(tx, name, &since.to_be_bytes())?;
            }
            Ok(())
        });
        forget.await.unwrap();
        let third = funded(&actor, &beneficiary, None).await;
        assert_eq!(actor.payout_of(&third).await["status"], status);
    }
}

/// A limit that was set after payouts of its period shows them before the next one is instructed.
/// The total of an account is unknown until then, because all its payouts would be read.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_s_use_counts_payouts_of_before_the_limit() {
    let variables = [
        ("HUNDI_SENDER_DAY_INR_MAX", "200000.00"),
        ("HUNDI_BENEFICIARY_DAY_INR_MAX", "200000.00"),
        ("HUNDI_ACCOUNT_DAY_INR_MAX", "200000.00"),
    ];
    let server = stage::server_with(&variables).await;
    let actor = Actor::new(&server, "default").await;
    let beneficiary = actor.beneficiary(SETTLES).await;
    let other = actor.beneficiary(SETTLES).await;
    let transfer = funded(&actor, &beneficiary, None).await;
    let id = payout(&actor.shown(&transfer).await);
    let store = &server.app.state.store;
    let forget = store.write(|tx, _| Ok(tx.execute("DELETE FROM payout_totals", &[])?));
    assert_eq!(forget.await.unwrap(), 3);
    let set = server.app.state.services.settings.payout_limits.clone();
    let sender = transfer["sender_id"].as_str().unwrap().to_owned();
    let used = store.read(Cost::Scan, move |tx| {
        let paid = payouts::rows::find(tx, TEST, id)?.unwrap();
        let at = paid.submitted_milliseconds.unwrap();
        let mut used = |subject, id: Option<&str>| {
            let id = id.map(|id| AnyId::parse(id).unwrap());
            let found = limits::usage(tx, &set, TEST, subject, id, at).unwrap();
            found.iter().map(|used| used.units).collect::<Vec<_>>()
        };
        Ok([
            used(LimitSubject::Sender, Some(&sender)),
            used(LimitSubject::Beneficiary, Some(&beneficiary)),
            used(LimitSubject::Beneficiary, Some(&other)),
            used(LimitSubject::Account, None),
        ])
    });
    let all = Some(8_841_250);
    assert_eq!(used.await.unwrap(), [vec![all], vec![all], vec![Some(0)], vec![None]]);
}

/// How many of eight payouts that are submitted at once get past the limits.
async fn passed(variables: &[(&str, &str)]) -> usize {
    const COUNT: usize = 8;
    let server = stage::server_with(variables).await;
    let actor = Actor::new(&server, "default").await;
    let beneficiary = actor.beneficiary(SETTLES).await;
    let pause = server
        .app
        .state
        .store
        .write(move |tx, now| Ok(pauses::pause(tx, now, Operation::Payouts, None, &by())?));
    pause.await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..COUNT {
        let transfer = funded(&actor, &beneficiary, None).await;
        ids.push(payout(&actor.shown(&transfer).await));
    }
    let resume =
        server.app.state.store.write(|tx, _| Ok(pauses::resume(tx, Operation::Payouts, None)?));
    resume.await.unwrap();
    let submitting = ids.iter().map(|id| {
        let (app, id) = (server.app.state.clone(), *id);
        tokio::spawn(async move {
            let services = app.services.clone();
            let submit = app.store.write(move |tx, now| {
                Ok(paying::submit(tx, now, &services, TEST, id, paying::LimitCheck::Apply)?)
            });
            submit.await.unwrap();
        })
    });
    for one in submitting.collect::<Vec<_>>() {
        one.await.unwrap();
    }
    let mut passed = 0;
    for id in ids {
        let shown = actor.client.get(&format!("/v1/payouts/{id}")).await.ok();
        passed += usize::from(shown["status"] != "hold");
    }
    passed
}

#[tokio::test(flavor = "multi_thread")]
async fn payouts_at_once_do_not_pass_together_what_has_room_for_fewer() {
    // Room for three of 88412.50 INR.
    for variable in ["HUNDI_ACCOUNT_DAY_INR_MAX", "HUNDI_BENEFICIARY_MONTH_INR_MAX"] {
        assert_eq!(passed(&[(variable, "300000.00")]).await, 3, "{variable}");
    }
    assert_eq!(passed(&[]).await, 8, "the control: off unless set");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_month_of_large_inward_remittances_is_written_as_csv() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let beneficiary = actor.beneficiary(SETTLES).await;
    let mut settled = Vec::new();
    // 5655.00 USD are 499972.69 INR, and 5656.00 USD 500061.10 INR.
    for amount in ["5655.00", "5656.00"] {
        let body = actor.transfer_body(&beneficiary, amount, json!({})).await;
        let transfer = actor.client.post("/v1/transfers", body).await.ok();
        actor.pay(&transfer, amount).await;
        actor.advance(4 * STEP).await;
        settled.push(actor.shown(&transfer).await);
    }
    let rows = |arguments: &[&str]| {
        let output = command(&server, arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut reader = csv::Reader::from_reader(output.stdout.as_slice());
        let head: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        let rows = reader.records().map(|record| {
            let record = record.unwrap();
            head.iter().cloned().zip(record.iter().map(str::to_owned)).collect()
        });
        rows.collect::<Vec<std::collections::BTreeMap<String, String>>>()
    };
    let asked = ["payouts", "inward", "--month", "2026-09", "--mode", "test"];
    let found = rows(&asked);
    assert_eq!(found.len(), 1, "{found:?}");
    let (row, shown) = (&found[0], &settled[1]);
    assert_eq!(row["payout_id"], payout_id(shown));
    assert_eq!(row["amount_inr"], "500061.10");
    assert_eq!(row["utr"], shown["payout"]["unique_transaction_reference"].as_str().unwrap());
    assert!(row["settled_at"].starts_with("2026-09-21T"), "{}", row["settled_at"]);
    assert_eq!(row["sender_id"], shown["sender_id"].as_str().unwrap());
    assert_eq!(row["beneficiary_account_number"], "…5678");
    // A full number takes a reason, and leaves a trace for each beneficiary that is shown.
    let whole = [&asked[..], &["--show-account-numbers"]].concat();
    let refused = command(&server, &whole);
    assert!(!refused.status.success());
    let printed = [&refused.stdout[..], &refused.stderr[..]].map(String::from_utf8_lossy).concat();
    assert!(printed.contains("--reason TEXT") && !printed.contains(SETTLES), "{printed}");
    assert!(seen(&server).await.is_empty());
    let whole = [&whole[..], &["--actor", "asha", "--reason", "the month's report"]].concat();
    assert_eq!(rows(&whole)[0]["beneficiary_account_number"], SETTLES);
    let both = [&whole[..], &["--above", "400000.00"]].concat();
    assert_eq!(rows(&both).len(), 2, "two payouts of one beneficiary");
    let entries = seen(&server).await;
    assert_eq!(entries.len(), 2, "one for each command: {entries:?}");
    for entry in entries {
        assert_eq!((entry.actor.as_str(), &entry.subject), ("asha", &beneficiary));
        assert!(entry.details.contains("the month's report"), "{}", entry.details);
    }
    let lower = [&asked[..], &["--above", "400000.00"]].concat();
    assert_eq!(rows(&lower).len(), 2);
    assert!(rows(&["payouts", "inward", "--month", "2026-10", "--mode", "test"]).is_empty());
    assert!(rows(&["payouts", "inward", "--month", "2026-09"]).is_empty(), "live mode");
    for month in ["2026-9", "2026-13", "September", "2026-09-01"] {
        let refused = command(&server, &["payouts", "inward", "--month", month]);
        assert!(!refused.status.success(), "{month}");
    }
}

/// The looks at full account numbers that the audit log has.
async fn seen(server: &Server) -> Vec<hundi::audit::Entry> {
    let read = server.app.state.store.read(Cost::Scan, |tx| {
        let mut entries = hundi::audit::rows::after(tx, 0, 1_000)?;
        entries.retain(|entry| entry.action == "account_number_seen");
        Ok(entries)
    });
    read.await.unwrap()
}

/// A figure of the metrics page.
async fn figure(server: &Server, name: &str) -> i64 {
    let page = hundi::pages::metrics_page(&server.app.state).await;
    let line = page.lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("{name} is not on the page:\n{page}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// A figure of what waits: its count, or with `_oldest_seconds` its age.
async fn backlog(server: &Server, figure_name: &str, of: &str, mode: &str) -> i64 {
    let name = format!("hundi_backlog{figure_name}{{of=\"{of}\",mode=\"{mode}\"}}");
    figure(server, &name).await
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_what_waits_and_for_how_long() {
    let server = stage::server_with(&[("HUNDI_ACCOUNT_DAY_INR_MAX", "1.00")]).await;
    let actor = Actor::new(&server, "default").await;
    let waiting = ["funding_holds", "payout_holds", "payouts_unknown", "hits", "refunds"];
    for of in waiting.iter().chain(&[
        "payouts_unsent",
        "payouts_unanswered",
        "settlements_late",
        "tasks",
        "outbox",
    ]) {
        for mode in ["test", "live"] {
            assert_eq!(backlog(&server, "", of, mode).await, 0, "{of} {mode}");
        }
    }
    let beneficiary = actor.beneficiary(SETTLES).await;
    let held = funded(&actor, &beneficiary, None).await;
    let listed =
        json!({ "name": "Test Possibly Sanctioned", "type": "individual", "country": "AE" });
    actor.client.post("/v1/senders", listed).await.ok();
    let short = actor.transfer_to(&beneficiary, "1000.00", json!({})).await;
    actor.pay(&short, "400.00").await;
    actor.advance(1_800 + 2 * STEP).await;
    let over = actor.transfer_to(&beneficiary, "1000.00", json!({})).await;
    actor.pay(&over, "1001.00").await;
    actor.finalise().await;
    for (of, count) in [("funding_holds", 1), ("payout_holds", 2), ("hits", 1), ("refunds", 1)] {
        assert_eq!(backlog(&server, "", of, "test").await, count, "{of}");
        assert_eq!(backlog(&server, "", of, "live").await, 0, "{of}");
    }
    // The hold began when the transfer expired, half an hour after it was created.
    let held_seconds = backlog(&server, "_oldest_seconds", "funding_holds", "test").await;
    assert!(held_seconds < 1_800, "{held_seconds}");
    // What happened on the account's test clock ages with it, as well as with the service's.
    let mut ages = Vec::new();
    for of in ["funding_holds", "payout_holds", "hits", "refunds"] {
        ages.push((of, backlog(&server, "_oldest_seconds", of, "test").await));
    }
    actor.advance(3_600).await;
    server.clock.fetch_add(600_000, std::sync::atomic::Ordering::SeqCst);
    for (of, before) in ages {
        let age = backlog(&server, "_oldest_seconds", of, "test").await;
        assert_eq!(age, before + 4_200, "{of}");
        assert_eq!(backlog(&server, "_oldest_seconds", of, "live").await, 0, "{of}");
    }
    // A hit of live mode is counted there, and no test clock ages it.
    let before = server.clock.load(std::sync::atomic::Ordering::SeqCst) / 1000 - 50;
    let moved = server.app.state.store.write(move |tx, _| {
        let sql =
            "UPDATE screening_hits SET scope = scope + 1, created = ?1 WHERE decision IS NULL";
        Ok(tx.execute(sql, hundi::values![before])?)
    });
    assert_eq!(moved.await.unwrap(), 1);
    assert_eq!(backlog(&server, "", "hits", "test").await, 0);
    assert_eq!(backlog(&server, "", "hits", "live").await, 1);
    assert_eq!(backlog(&server, "_oldest_seconds", "hits", "live").await, 50);
    assert_eq!(actor.shown(&held).await["status"], "funded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_payout_whose_beneficiary_becomes_unpayable_has_24_hours_from_then() {
    let server = stage::server_with(&[("HUNDI_ACCOUNT_MONTH_INR_MAX", "100000.00")]).await;
    let actor = Actor::new(&server, "default").await;
    let beneficiary = actor.beneficiary(SETTLES).await;
    let first = funded(&actor, &beneficiary, None).await;
    actor.advance(4 * STEP).await;
    let held = funded(&actor, &beneficiary, None).await;
    assert_eq!(held_for(&server), ["account_limit"]);
    actor.advance(DAY / 2).await;
    let first = payout_id(&actor.shown(&first).await);
    let path = format!("/v1/test_helpers/payouts/{first}/return");
    actor.client.post(&path, json!({})).await.ok();
    // The hold is a day old now, and the beneficiary has been unpayable for half a day.
    actor.advance(DAY / 2).await;
    assert_eq!(actor.payout_of(&held).await["status"], "hold");
    assert_eq!(held_for(&server), ["beneficiary"]);
    actor.advance(DAY).await;
    let failed = actor.payout_of(&held).await;
    let told = (&failed["status"], &failed["failure"]["code"]);
    assert_eq!(told, (&json!("failed"), &json!("returned_by_beneficiary_bank")));
    assert_eq!(actor.shown(&held).await["status"], "refund_processing");
    stage::assert_book(&server);
}

/// Deliveries that are not made yet, however many endpoints they wait at and whether the next
/// attempt is due.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_the_deliveries_that_wait() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    for mode in ["test", "live"] {
        assert_eq!(backlog(&server, "", "deliveries", mode).await, 0, "{mode}");
    }
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let events = ["beneficiary.status.active"];
        let wanted = json!({ "url": "http://127.0.0.1:1/", "enabled_events": events });
        let endpoint = actor.client.post("/v1/webhook_endpoints", wanted).await.ok();
        waiting.push(format!("/v1/webhook_endpoints/{}/deliveries", id(&endpoint)));
    }
    for _ in 0..3 {
        actor.beneficiary(SETTLES).await;
    }
    for path in &waiting {
        let were_tried = |found: &Value| {
            let all = found["data"].as_array().unwrap();
            all.len() == 3 && all.iter().all(|one| one["attempts_count"] != 0)
        };
        actor.client.wait_until(path, were_tried).await;
    }
    assert_eq!(backlog(&server, "", "deliveries", "test").await, 6);
    assert_eq!(backlog(&server, "", "deliveries", "live").await, 0);
    // They age with the service's clock, and no test clock ages them.
    let age = backlog(&server, "_oldest_seconds", "deliveries", "test").await;
    actor.advance(3_600).await;
    assert_eq!(backlog(&server, "_oldest_seconds", "deliveries", "test").await, age);
    server.clock.fetch_add(600_000, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(backlog(&server, "_oldest_seconds", "deliveries", "test").await, age + 600);
}
