//! The queues of the console, each with rows in it: what they show, how they are filtered and
//! sorted, and what is decided about several rows at once.

use hundi::account_verification::NameMatch;
use hundi::beneficiaries;
use hundi::chains::ChainName;
use hundi::decisions;
use hundi::kernel::seal::SealedPlace;
use hundi::kernel::{AnyId, Currency, DecidedBy, Id, Mode, Money, Scope};
use hundi::operator;
use hundi::oversight::AccountNames;
use hundi::oversight::queues::{QueueKind, ROWS_MAX};
use hundi::oversight::search::FOUND_MAX;
use hundi::pauses::{self, Operation};
use hundi::rails::files::reports::{Sign, StatementLine};
use hundi::rails::files::rows::{self as journal, LinePlace, Matching};
use hundi::rails::files::values::Day;
use hundi::reconcile::DifferenceKind;
use hundi::reconcile::chain::{FoundDifference, rows as chain_differences};
use hundi::screening::Screening;
use hundi::screening::hit::{HitRow, SubjectType};
use hundi::screening::rows as hits;
use hundi::screening::simulated::POSSIBLE_NAME;
use serde_json::{Value, json};

use crate::console::{Browser, LISTEN, console_with, make_operators, signed_in};
use crate::oversight::underpaid;
use crate::stage::{self, ADDRESS, Actor, SETTLES};
use crate::support::{Server, id};

/// The rows of the table that a page shows: each one's markup.
fn rows(body: &str) -> Vec<String> {
    let table = body.split("<tbody>").nth(1).unwrap_or("").split("</tbody>").next().unwrap();
    table.split("<tr").skip(1).map(str::to_owned).collect()
}

/// The names of the columns of a page's first table.
fn columns(body: &str) -> Vec<String> {
    let head = body.split("<thead>").nth(1).unwrap_or("").split("</thead>").next().unwrap();
    let names = head.split("<th scope=\"col\"").skip(1);
    names.map(|name| name.split(['>', '<']).nth(1).unwrap().to_owned()).collect()
}

/// Whether one row shows all of these.
fn shows(row: &str, texts: &[&str]) -> bool {
    texts.iter().all(|text| row.contains(text))
}

/// Decides about a transfer as its page does.
async fn decide(browser: &mut Browser<'_>, transfer: &Value, decision: &str) {
    let id = id(transfer);
    let page = format!("/console/transfers/{id}");
    let fields = [("object", id.as_str()), ("decision", decision), ("reason", "a test")];
    let done = browser.submit(&page, "/console/decide", &fields).await;
    assert_eq!(done.status, 303, "{}", done.body);
}

/// What the bank and the chain show and the book has not.
async fn plant_differences(server: &Server) {
    let planted = server.app.state.store.write(|tx, now| {
        for (kind, subject, units) in [
            (DifferenceKind::MovementNotInBook, "ab".repeat(32), 12_500_000),
            (DifferenceKind::DepositsBook, "deposits".to_owned(), 40_000_000),
        ] {
            let found = FoundDifference { kind, subject, units, block_number: Some(70) };
            for mode in [Mode::Test, Mode::Live] {
                chain_differences::insert(tx, now, mode, ChainName::Tron, &found)?;
            }
        }
        let mut line = StatementLine::zero(Sign::Credit, Day::parse("2026-11-20").unwrap());
        line.amount = Money::new(12_345_600, Currency::Inr);
        line.other_reference = Some("INTEREST 4711".into());
        let place = LinePlace { sha256: [7; 32], statement_number: 1, number: 1 };
        let matching = Matching::NoReference;
        journal::insert_line(tx, now, &place, &line, matching, None, None)?;
        Ok(())
    });
    planted.await.unwrap();
}

/// Whether a page's filter asks for this.
fn asks(body: &str, name: &str) -> bool {
    body.contains(&format!("<select id=\"-{name}\" "))
}

async fn queue(browser: &mut Browser<'_>, kind: QueueKind, query: &str) -> String {
    let page = browser.get(&format!("/console/queues/{}?mode=test{query}", kind.as_str())).await;
    assert_eq!(page.status, 200, "{}", page.body);
    page.body
}

/// Every queue with a row of each reason that brings one there. Accounts have clocks of their own,
/// so that what moves one leaves the others as they are.
#[tokio::test(flavor = "multi_thread")]
async fn each_queue_shows_what_waits_in_it() {
    let server = stage::server_with(&[LISTEN]).await;
    make_operators(&server).await;
    let mut browser = signed_in(&server, "operator").await;
    for kind in QueueKind::ALL {
        let empty = queue(&mut browser, *kind, "").await;
        assert!(rows(&empty).is_empty() && empty.contains("class=\"empty\""), "{empty}");
    }

    // A hold, and one that a person has to decide.
    let holds = Actor::new(&server, "holds").await;
    let held = underpaid(&holds).await;
    let reviewed = underpaid(&holds).await;
    decide(&mut browser, &reviewed, "review").await;
    // Money after the end.
    let late = Actor::new(&server, "late").await;
    let ended = late.transfer(SETTLES, json!({})).await;
    late.pay(&ended, "1000.00").await;
    late.finalise().await;
    late.advance(10 * stage::STEP).await;
    assert_eq!(late.shown(&ended).await["status"], "payout_settled");
    late.pay(&ended, "5.00").await;
    late.finalise().await;
    // A refund to send, and one without an address.
    let refunds = Actor::new(&server, "refunds").await;
    let addressed = refunds.transfer(SETTLES, json!({ "refund_address": ADDRESS })).await;
    let unaddressed = refunds.transfer(SETTLES, json!({})).await;
    for transfer in [&addressed, &unaddressed] {
        refunds.pay(transfer, "900.00").await;
    }
    refunds.finalise().await;
    refunds.advance(1900).await;
    for transfer in [&addressed, &unaddressed] {
        decide(&mut browser, transfer, "review").await;
        decide(&mut browser, transfer, "refuse").await;
        assert_eq!(refunds.shown(transfer).await["status"], "refund_processing");
    }
    // A payout of unknown outcome.
    let payouts = Actor::new(&server, "payouts").await;
    let unknown = payouts.transfer("50100010001003", json!({})).await;
    payouts.pay(&unknown, "1000.00").await;
    payouts.finalise().await;
    payouts.advance(10 * stage::STEP).await;
    assert_eq!(payouts.payout_of(&unknown).await["failure"]["code"], "outcome_unknown");
    // Somebody who may be on a list, and an account that is not verified yet.
    let people = Actor::new(&server, "people").await;
    let person = json!({ "name": POSSIBLE_NAME, "type": "individual", "country": "AE" });
    let suspect = people.client.post("/v1/senders", person).await.ok();
    let unverified = people.client.beneficiary("50100012340004").await;
    plant_differences(&server).await;

    let last = |object: &Value| {
        let id = id(object);
        id[id.len() - 8..].to_owned()
    };
    let payout = payouts.payout_of(&unknown).await;
    let expected: [(QueueKind, Vec<Vec<&str>>); 8] = [
        (
            QueueKind::Holds,
            vec![
                vec!["Too little", "900.00", "1,000.00", "holds", "/console/transfers/"],
                vec!["Under review", "900.00", "holds"],
            ],
        ),
        (QueueKind::Reviews, vec![vec![POSSIBLE_NAME, "people"]]),
        (QueueKind::Verifications, vec![vec!["…0004", "people"]]),
        (QueueKind::Payouts, vec![vec!["₹", "payouts"]]),
        (QueueKind::Refunds, vec![vec!["900.00", "refunds", ADDRESS]]),
        (QueueKind::RefundAddresses, vec![vec!["900.00", "refunds"]]),
        (QueueKind::Unmatched, vec![vec!["5.00", "late"]]),
        (
            QueueKind::Differences,
            vec![vec!["12.50", &*"ab".repeat(32).leak()], vec!["40.00", "deposits"]],
        ),
    ];
    for (kind, wanted) in &expected {
        let page = queue(&mut browser, *kind, "").await;
        let found = rows(&page);
        assert_eq!(found.len(), wanted.len(), "{kind:?}: {page}");
        for texts in wanted {
            assert!(found.iter().any(|row| shows(row, texts)), "{kind:?} {texts:?}: {found:?}");
        }
        assert!(!page.contains("class=\"empty\""), "{kind:?}");
        // Each queue has columns of its own, and every row fills them, but for these.
        let may_be_empty = ["Name or address here", "The bank says", "Reference or detail"];
        let names = columns(&page);
        assert!(names.first().is_some_and(|name| name == "ID"), "{kind:?}: {names:?}");
        assert!(!names.iter().any(|name| name == "Ours" || name == "Theirs"), "{names:?}");
        for row in &found {
            let empty = row.split("<td data-label=\"").filter(|cell| cell.contains("data-none"));
            for cell in empty {
                let name = cell.split('"').next().unwrap();
                assert!(may_be_empty.contains(&name), "{kind:?}: {name} is empty in {row}");
            }
        }
    }
    for (kind, named) in [
        (QueueKind::Holds, vec!["ID", "Reason", "Received", "Expected", "Account", "Age"]),
        (
            QueueKind::Reviews,
            vec!["ID", "Reason", "Name or address here", "What the list says", "Account", "Age"],
        ),
        (
            QueueKind::Verifications,
            vec!["ID", "Reason", "Name", "Account number", "Account", "Age"],
        ),
        (QueueKind::Payouts, vec!["ID", "Reason", "Amount", "The bank says", "Account", "Age"]),
        (
            QueueKind::Refunds,
            vec!["ID", "Reason", "Amount", "To address", "Why it waits", "Account", "Age"],
        ),
        (
            QueueKind::RefundAddresses,
            vec!["ID", "Reason", "Amount", "Why it waits", "Account", "Age"],
        ),
        (QueueKind::Unmatched, vec!["ID", "Amount", "Transaction", "Account", "Age"]),
        (QueueKind::Differences, vec!["ID", "Reason", "Amount", "Reference or detail", "Age"]),
    ] {
        let page = queue(&mut browser, kind, "").await;
        // The first column is for ticks.
        assert_eq!(columns(&page), named, "{kind:?}");
        let filters: Vec<&str> =
            ["account", "reason"].into_iter().filter(|name| asks(&page, name)).collect();
        assert_eq!(filters.contains(&"account"), named.contains(&"Account"), "{kind:?}");
        assert_eq!(filters.contains(&"reason"), named.contains(&"Reason"), "{kind:?}");
        let has_amounts = page.contains("value=\"amount\"");
        let numbers = ["Amount", "Received"].iter().any(|name| named.contains(name));
        assert_eq!(has_amounts, numbers, "{kind:?}: the order by amounts");
    }
    for (kind, object) in [
        (QueueKind::Holds, &held),
        (QueueKind::Reviews, &suspect),
        (QueueKind::Verifications, &unverified),
        (QueueKind::Payouts, &payout),
    ] {
        let page = queue(&mut browser, kind, "").await;
        assert!(page.contains(&last(object)), "{kind:?} names {}: {page}", last(object));
    }
    // The bank's line waits in live mode.
    let live = browser.get("/console/queues/differences?mode=live").await.body;
    let found = rows(&live);
    assert_eq!(found.len(), 3, "{live}");
    let line = ["INTEREST 4711", "1,23,456.00", "2026-11-20", ">Credited<"];
    assert!(found.iter().any(|row| shows(row, &line)), "{found:?}");
    let named = ["ID", "Reason", "Amount", "Booking", "Reference or detail", "Age"];
    assert_eq!(columns(&live), named);
    // The overview counts them and leads there.
    let overview = browser.get("/console?mode=test").await.body;
    for (kind, wanted) in &expected {
        let path = format!("/console/queues/{}?mode=test", kind.as_str());
        let figure = overview.split("<li class=\"figure").find(|one| one.contains(&path));
        let figure = figure.unwrap_or_else(|| panic!("no {path} in {overview}"));
        let count = format!("<span class=\"value\">{}</span>", wanted.len());
        assert!(figure.contains(&count), "{kind:?}: {figure}");
    }

    // Filters: by account and by reason; what nothing fits says so.
    for (query, count) in [
        ("&account=holds", 2),
        ("&account=people", 0),
        ("&reason=underpaid", 1),
        ("&reason=compliance_review&account=holds", 1),
        ("&reason=compliance_review&account=people", 0),
    ] {
        let page = queue(&mut browser, QueueKind::Holds, query).await;
        assert_eq!(rows(&page).len(), count, "{query}");
        assert_eq!(page.contains("class=\"empty\""), count == 0, "{query}");
    }
    // A refund by why the money goes back, and by why it waits.
    for (query, count) in [
        ("&reason=compliance_rejected", 1),
        ("&reason=to_send", 1),
        ("&reason=held_by_screening", 0),
    ] {
        let page = queue(&mut browser, QueueKind::Refunds, query).await;
        assert_eq!(rows(&page).len(), count, "{query}: {page}");
    }
    // The rows alone, which the page reads again and again.
    for (query, count) in [("", 2), ("&account=people", 0)] {
        let page = queue(&mut browser, QueueKind::Holds, query).await;
        let path = format!("/console/queues/holds/live?mode=test{query}");
        assert!(page.contains(&format!("hx-get=\"{}\"", path.replace('&', "&#38;"))), "{page}");
        let live = browser.get(&path).await.body;
        assert_eq!(rows(&live), rows(&page), "{query}");
        assert_eq!(rows(&live).len(), count, "{query}");
        assert!(!live.contains("<form") && !live.contains("<html"), "{live}");
    }
    // Sorting.
    for (query, first) in [("", "12.50"), ("&sort=amount", "40.00")] {
        let found = rows(&queue(&mut browser, QueueKind::Differences, query).await);
        assert!(found[0].contains(first), "{query}: {found:?}");
    }
    // Two at once: both are explained, and one that is gone is told apart.
    let found = rows(&queue(&mut browser, QueueKind::Differences, "").await);
    let pick = |row: &String| {
        let value = row.split("name=\"object\" value=\"").nth(1).expect("a box to tick");
        value.split('"').next().unwrap().to_owned()
    };
    let picked: Vec<String> = found.iter().map(pick).collect();
    let path = "/console/queues/differences?mode=test";
    let fields = [
        ("object", picked[0].as_str()),
        ("object", picked[1].as_str()),
        ("decision", "accept"),
        ("reason", "both explained by the wallet's log"),
        ("back", path),
    ];
    let done = browser.submit(path, "/console/decide", &fields).await;
    assert_eq!(done.status, 303, "{}", done.body);
    assert!(rows(&queue(&mut browser, QueueKind::Differences, "").await).is_empty());
    let again = browser.submit(path, "/console/decide", &fields).await;
    assert_eq!(again.status, 409, "{}", again.body);
    // Two at once, of which one was paid out meanwhile: the person is told which.
    let path = "/console/queues/holds?mode=test";
    let (one, other) = (id(&held), id(&ended));
    let fields = [
        ("object", one.as_str()),
        ("object", other.as_str()),
        ("decision", "review"),
        ("reason", "both"),
        ("back", path),
    ];
    let told = browser.submit(path, "/console/decide", &fields).await;
    assert!(told.status == 409 && told.body.contains(&other), "{}", told.body);
    assert!(!told.body.contains(&one), "{}", told.body);
    let holds = rows(&queue(&mut browser, QueueKind::Holds, "&reason=compliance_review").await);
    assert_eq!(holds.len(), 2, "the other one was decided");
    // A viewer ticks nothing.
    let mut viewer = signed_in(&server, "viewer").await;
    for kind in QueueKind::ALL {
        let page = queue(&mut viewer, *kind, "").await;
        assert!(!page.contains("type=\"checkbox\""), "{kind:?}");
    }
    server.assert_book();
}

/// What operators stopped stands on the overview, and at each row of an account that is stopped.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_stopped_says_so() {
    let server = stage::server_with(&[LISTEN]).await;
    make_operators(&server).await;
    let mut viewer = signed_in(&server, "viewer").await;
    let (stopped, other) = (Actor::new(&server, "stopped").await, Actor::new(&server, "on").await);
    underpaid(&stopped).await;
    underpaid(&other).await;
    let stop = server.app.state.store.write(|tx, now| {
        let accounts = AccountNames::read(tx)?;
        let number = accounts.all().find(|(_, name)| *name == "stopped").map(|(number, _)| number);
        let by = |reason| DecidedBy::new("operator", reason).unwrap();
        pauses::pause(tx, now, Operation::Payouts, number, &by("a wrong account"))?;
        pauses::pause(tx, now, Operation::Quotes, None, &by("rates look wrong"))?;
        operator::suspend_account(tx, now, "stopped", &by("a leaked key"))?;
        Ok(())
    });
    stop.await.unwrap();
    let page = viewer.get("/console?mode=test").await.body;
    let section = page.split("data-key=\"Paused and suspended\"").nth(1).unwrap();
    let found = rows(section);
    for wanted in [
        ["Payouts paused", "stopped", "operator", "a wrong account", "<time "],
        ["Quotes paused", "everybody", "operator", "rates look wrong", "<time "],
        ["Suspended", "stopped", "operator", "a leaked key", "<time "],
    ] {
        assert!(found.iter().any(|row| shows(row, &wanted)), "{wanted:?}: {found:#?}");
    }
    assert_eq!(found.len(), 3, "{found:#?}");
    let holds = rows(&queue(&mut viewer, QueueKind::Holds, "").await);
    assert_eq!(holds.len(), 2, "{holds:#?}");
    for row in holds {
        let is_stopped = row.contains(">stopped<");
        for chip in ["Payouts paused", "Suspended"] {
            assert_eq!(row.contains(chip), is_stopped, "{chip}: {row}");
        }
        assert!(!row.contains("Quotes paused"), "{row}");
    }
}

async fn suspect(actor: &Actor) {
    let person = json!({ "name": POSSIBLE_NAME, "type": "individual", "country": "AE" });
    actor.client.post("/v1/senders", person).await.ok();
}

/// An account's test clock may be days ahead: what waits is as old as the account's clock says.
#[tokio::test(flavor = "multi_thread")]
async fn ages_are_counted_on_the_clock_of_each_account() {
    let server = stage::server_with(&[LISTEN]).await;
    make_operators(&server).await;
    let mut browser = signed_in(&server, "operator").await;
    let (ahead, usual) = (Actor::new(&server, "ahead").await, Actor::new(&server, "usual").await);
    let payout = ahead.transfer("50100010001003", json!({})).await;
    ahead.pay(&payout, "1000.00").await;
    ahead.finalise().await;
    ahead.advance(10 * stage::STEP).await;
    assert_eq!(ahead.payout_of(&payout).await["failure"]["code"], "outcome_unknown");
    suspect(&usual).await;
    suspect(&ahead).await;
    ahead.advance(3 * 86_400).await;
    // After the clock went on: this one is new.
    suspect(&ahead).await;

    let found = rows(&queue(&mut browser, QueueKind::Reviews, "").await);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(shows(&found[0], &["ahead", ">3 d<"]), "the oldest comes first: {found:?}");
    let is_of_days = |row: &String| row.contains(" d</td>") || row.contains(" d ");
    assert!(!found[1..].iter().any(is_of_days), "{found:?}");
    assert!(shows(&found[1], &["usual"]) && shows(&found[2], &["ahead"]), "{found:?}");
    let found = rows(&queue(&mut browser, QueueKind::Payouts, "").await);
    assert!(found.len() == 1 && found[0].contains("3 d"), "{found:?}");

    let overview = browser.get("/console?mode=test").await.body;
    let path = "/console/queues/reviews?mode=test";
    let figure = overview.split("<li class=\"figure").find(|one| one.contains(path)).unwrap();
    assert!(figure.contains("3 d"), "{figure}");
    let (_, ages) = overview.split_once("Open payouts by age").expect("the table of ages");
    assert!(rows(ages).len() == 1 && shows(&rows(ages)[0], &["over 1 d", "₹"]), "{ages}");
    server.assert_book();
}

/// What a comparison found of an account is explained in the console as a line is, with a reason,
/// and is gone at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_difference_without_a_row_of_its_own_is_explained_in_its_queue() {
    let server = stage::server_with(&[LISTEN]).await;
    make_operators(&server).await;
    let actor = Actor::new(&server, "default").await;
    let paid = actor.transfer(SETTLES, json!({})).await;
    actor.pay(&paid, "1000.00").await;
    actor.finalise().await;
    let harm = "DELETE FROM ledger_balances WHERE account = 'custody'";
    let harmed = server.app.state.store.write(move |tx, _| Ok(tx.execute(harm, &[])?));
    assert!(harmed.await.unwrap() > 0);
    hundi::workers::bank::compare(&server.app.state).await;
    let mut browser = signed_in(&server, "operator").await;
    let page = queue(&mut browser, QueueKind::Differences, "").await;
    let shown = rows(&page);
    assert_eq!(shown.len(), 1, "{page}");
    assert!(shows(&shown[0], &["Deposits and book differ", "account 1 test", "1,000"]), "{page}");
    let live = browser.get("/console/queues/differences?mode=live").await.body;
    assert!(rows(&live).is_empty(), "it is of test mode: {live}");
    let object = page.split("name=\"object\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let path = "/console/queues/differences?mode=test";
    let fields = |object: &'static str, reason| {
        [("object", object), ("decision", "accept"), ("reason", reason), ("back", path)]
    };
    let object: &'static str = object.to_owned().leak();
    let unsaid = browser.submit(path, "/console/decide", &fields(object, "")).await;
    assert_eq!(unsaid.status, 409, "without a reason");
    let nobodys = fields("deposits_book account 2 test", "x");
    assert_eq!(browser.submit(path, "/console/decide", &nobodys).await.status, 409);
    let done = browser.submit(path, "/console/decide", &fields(object, "a test took it")).await;
    assert_eq!((done.status, done.header("location").contains(path)), (303, true), "{}", done.body);
    assert!(rows(&queue(&mut browser, QueueKind::Differences, "").await).is_empty());
    let log = browser.get("/console/audit?action=decision").await.body;
    assert!(log.contains("a test took it") && log.contains("account 1 test"), "{log}");
    let again = browser.submit(path, "/console/decide", &fields(object, "twice")).await;
    assert_eq!(again.status, 409, "{}", again.body);
}

/// If the store fails after some of the ticked rows were decided, the person is told how many were.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_decided_before_the_store_failed_is_told() {
    let server = console_with(&[]).await;
    let client = server.client().await;
    let mut senders = Vec::new();
    for _ in 0..3 {
        let person = json!({ "name": POSSIBLE_NAME, "type": "individual", "country": "AE" });
        senders.push(id(&client.post("/v1/senders", person).await.ok()));
    }
    let second = AnyId::parse(&senders[1]).unwrap().to_bytes();
    let change = async |sql: &'static str| {
        let changed = server
            .app
            .state
            .store
            .write(move |tx, _| Ok(tx.execute(sql, &[hundi::store::Value::Id(second)])?));
        assert_eq!(changed.await.unwrap(), 1, "{sql}");
    };
    // A row that cannot be read.
    change("UPDATE senders SET type = 'nobody' WHERE id = ?1").await;
    let mut browser = signed_in(&server, "operator").await;
    let path = "/console/queues/reviews?mode=test";
    let submit = async |browser: &mut Browser<'_>, objects: &[String]| {
        let mut fields: Vec<(&str, &str)> =
            objects.iter().map(|object| ("object", object.as_str())).collect();
        fields.extend([("decision", "approve"), ("reason", "others"), ("back", path)]);
        browser.submit(path, "/console/decide", &fields).await
    };
    let told = submit(&mut browser, &senders).await;
    assert_eq!(told.status, 409, "{}", told.body);
    assert!(told.body.contains("1 of 3 were decided"), "{}", told.body);
    assert!(told.body.contains(&senders[1]), "it names where it stopped: {}", told.body);
    // Nothing was decided before.
    assert_eq!(submit(&mut browser, &senders[1..]).await.status, 500);
    change("UPDATE senders SET type = 'individual' WHERE id = ?1").await;
    let left = rows(&queue(&mut browser, QueueKind::Reviews, "").await);
    assert_eq!(left.len(), 2, "{left:?}");
}

/// Where a list ends before everything is shown, the page says so. What is shown of one mode is not
/// crowded out by the other.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_list_leaves_out_is_told() {
    let server = console_with(&[]).await;
    let client = server.client().await;
    let sender = AnyId::parse(&id(&client.sender().await)).unwrap();
    let mut browser = signed_in(&server, "operator").await;
    let told = format!("Only {ROWS_MAX} are shown here; there are more.");
    let plant_difference = async |count: i64| {
        let planted = server.app.state.store.write(move |tx, now| {
            for _ in 0..count {
                let subject = hundi::kernel::hex::encode(now.random_bytes::<32>());
                let kind = DifferenceKind::MovementNotInBook;
                let found = FoundDifference { kind, subject, units: 1, block_number: Some(70) };
                chain_differences::insert(tx, now, Mode::Test, ChainName::Tron, &found)?;
            }
            Ok(())
        });
        planted.await.unwrap();
    };
    plant_difference(ROWS_MAX).await;
    let page = queue(&mut browser, QueueKind::Differences, "").await;
    assert_eq!(rows(&page).len() as i64, ROWS_MAX);
    assert!(!page.contains(&told), "these are all");
    plant_difference(1).await;
    let page = queue(&mut browser, QueueKind::Differences, "").await;
    assert_eq!(rows(&page).len() as i64, ROWS_MAX);
    assert!(page.contains(&told), "{page}");
    // Hits of test mode, and one of live mode after them.
    let planted = server.app.state.store.write(move |tx, now| {
        for number in 0..=ROWS_MAX {
            let mode = if number < ROWS_MAX { Mode::Test } else { Mode::Live };
            let hit = HitRow {
                scope: Scope::new(1, mode),
                id: now.mint(),
                subject: SubjectType::Sender,
                subject_id: sender,
                list: "own".into(),
                entry_id: format!("entry-{number}"),
                basis: vec![7; 32],
                screening: Screening::PossibleMatch,
                score_basis_points: 9_000,
                evidence: "a name".into(),
                listed_name: None,
                decision: None,
                decided_by: None,
                decided_at: None,
                created: now.instant(),
            };
            hits::insert(tx, &hit)?;
            decisions::record(
                tx,
                now,
                &format!("subject {number}"),
                "accept",
                &DecidedBy::default(),
            )?;
        }
        Ok(())
    });
    planted.await.unwrap();
    let live = browser.get("/console/queues/reviews?mode=live").await.body;
    assert_eq!(rows(&live).len(), 1, "{live}");
    assert!(live.contains(&format!("entry-{ROWS_MAX}")), "{live}");
    let decided = browser.get("/console/decisions").await.body;
    assert!(rows(&decided).len() == 200 && decided.contains(&told), "{decided}");
    // More persons than a search shows.
    let names = ('a'..='w').map(|last| format!("Kumarasamy {last}{last}"));
    for (count, name) in (1..).zip(names) {
        let person = json!({ "name": name, "type": "individual", "country": "AE" });
        client.post("/v1/senders", person).await.ok();
        let found = browser.get("/console/search?q=kumarasamy").await.body;
        assert_eq!(found.contains("only a part of it is shown"), count > FOUND_MAX, "{count}");
    }
}

/// The newest moments of a long story come first, with a way to all others; none is left out
/// silently, and none is told twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_story_goes_on_to_its_beginning() {
    let server = console_with(&[]).await;
    let client = server.client().await;
    let transfer = client.transfer().await;
    let (sender, transfer) = (transfer["sender_id"].as_str().unwrap().to_owned(), id(&transfer));
    let account = operator::account_subject("default");
    let subjects = [account, sender.clone(), transfer.clone()];
    let planted = server.app.state.store.write(move |tx, now| {
        for number in 0..230 {
            for subject in &subjects {
                let by = DecidedBy::new("operator", &format!("reason {number}.")).unwrap();
                decisions::record(tx, now, subject, "accept", &by)?;
            }
        }
        Ok(())
    });
    planted.await.unwrap();
    let mut browser = signed_in(&server, "viewer").await;
    let reasons = |body: &str| -> Vec<usize> {
        let story = body.split("class=\"story\"").nth(1).expect("a story");
        let found = story.split("reason ").skip(1);
        found.map(|rest| rest.split('.').next().unwrap().parse().unwrap()).collect()
    };
    for path in ["/console/accounts/1".to_owned(), format!("/console/senders/{sender}")] {
        let (mut next, mut told) = (path.clone(), Vec::new());
        for page in 1.. {
            let body = browser.get(&next).await.body;
            let part = reasons(&body);
            assert!(part.is_sorted(), "in order of time: {part:?}");
            told.splice(0..0, part);
            let Some(link) = body.split("?skip=").nth(1) else { break };
            assert!(page < 9 && body.contains("there are more"), "{body}");
            next = format!("{path}?skip={}", link.split('"').next().unwrap());
        }
        assert_eq!(told, (0..230).collect::<Vec<_>>(), "{path}");
        // No number reads more than the oldest part that is shown, which is empty here.
        let beyond = browser.get(&format!("{path}?skip={}", i64::MAX)).await;
        assert_eq!(beyond.status, 200, "{}", beyond.body);
        assert!(reasons(&beyond.body).is_empty(), "{path}");
    }
    let body = browser.get(&format!("/console/transfers/{transfer}")).await.body;
    assert!(body.contains("Only the newest 100 decisions about one object"), "{body}");
    assert!(reasons(&body).contains(&229), "the newest");
}

/// A person who decides about an account sees the name that was given and the holder that the bank
/// named, side by side.
#[tokio::test(flavor = "multi_thread")]
async fn the_holder_that_the_bank_named_stands_beside_the_beneficiary() {
    let server = console_with(&[]).await;
    let client = server.client().await;
    let person = client.beneficiary("50100012340004").await;
    let (beneficiary, services) = (id(&person), server.app.state.services.clone());
    let name_holder = async |holder: &'static str| {
        let (wanted, services) = (Id::parse(&beneficiary).unwrap(), services.clone());
        let named = server.app.state.store.write(move |tx, now| {
            let scope = Scope::new(1, Mode::Test);
            let mut found = beneficiaries::rows::find(tx, scope, wanted)?.expect("a beneficiary");
            let status = found.status;
            let kyc = beneficiaries::Kyc {
                holder_name: Some(holder.into()),
                ..beneficiaries::open_kyc(&found, &services)?
            };
            let (key, nonce) = (services.sealing_key(tx)?, now.random_bytes());
            let (place, plain) = (SealedPlace::KYC, serde_json::to_vec(&kyc).unwrap());
            found.kyc_sealed = key.seal(nonce, &place, &found.id.to_bytes(), &plain)?;
            found.name_match = Some(NameMatch::Partial);
            Ok(beneficiaries::rows::update(tx, &mut found, status)?)
        });
        named.await.unwrap();
    };
    let mut viewer = signed_in(&server, "viewer").await;
    let path = format!("/console/beneficiaries/{beneficiary}");
    let before = viewer.get(&path).await.body;
    assert!(!before.contains("Holder, says the bank"), "{before}");
    name_holder("RAVI R IYER").await;
    let page = viewer.get(&path).await.body;
    for text in ["Holder, says the bank", "RAVI R IYER"] {
        assert!(page.contains(text), "no {text} in {page}");
    }
    let queue = queue(&mut viewer, QueueKind::Verifications, "").await;
    let given = person["name"].as_str().unwrap();
    let row = rows(&queue).into_iter().find(|row| shows(row, &[given])).expect("its row");
    assert!(shows(&row, &["The bank says:", "RAVI R IYER"]), "{row}");
    // The same name in other letters is nothing to compare.
    name_holder(given.to_uppercase().leak()).await;
    assert!(!viewer.get(&path).await.body.contains("Holder, says the bank"));
}
