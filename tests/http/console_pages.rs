//! What pages of the console show and hide: the audit log, limits, long work, an account's past,
//! the way to live mode, and full account numbers.

use hundi::audit::{self, Action, Fact};
use hundi::decisions;
use hundi::kernel::id::kind;
use hundi::kernel::{AnyId, Currency, DecidedBy, Id, Mode, Money, ObjectKind, Scope, Via, rupees};
use hundi::screening::simulated::POSSIBLE_NAME;
use hundi::staff::provider_links::{self, OutsideSignIn, Vouched};
use hundi::staff::sign_in::Place;
use hundi::staff::{self, Role};
use hundi::store::{Cost, Value as StoreValue};
use serde_json::{Value, json};

use crate::console::{Browser, LISTEN, Page, console_with, form, make_operators, signed_in};
use crate::receiver::{Receiver, Reply};
use crate::stage;
use crate::support::{Client, Server, WAIT, id, is_on_postgres};

/// Adds entries to the audit log.
async fn append(server: &Server, actor: &'static str, count: usize) {
    let appended = server.app.state.store.write(move |tx, now| {
        for _ in 0..count {
            let details = [("reason", "a test")];
            let (via, action, subject) = (Via::Shell, Action::Decision, "quotes");
            audit::append(tx, now, &Fact { actor, via, action, subject, details: &details })?;
        }
        Ok(())
    });
    appended.await.unwrap();
}

/// The numbers of the entries that a page shows.
fn numbers(body: &str) -> Vec<i64> {
    let rows = body.split("<tbody>").nth(1).unwrap_or("").split("<tr").skip(1);
    let number = |row: &str| {
        let cell = row.split("<span class=\"number\">").nth(1)?;
        cell.split('<').next()?.parse().ok()
    };
    rows.filter_map(number).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_is_paged_filtered_and_verified() {
    let server = console_with(&[]).await;
    append(&server, "meera", 70).await;
    append(&server, "ravi", 3).await;
    let mut browser = signed_in(&server, "viewer").await;
    let first = browser.get("/console/audit").await;
    assert_eq!(first.status, 200);
    let shown = numbers(&first.body);
    assert_eq!(shown.len(), 50);
    assert!(shown.is_sorted_by(|a, b| *a == *b + 1), "the newest first: {shown:?}");
    assert!(first.body.contains("Signed in") && !first.body.contains("Does not fit"));
    // The next page goes on where this one ends, to the first entry.
    let last = *shown.last().unwrap();
    let older = browser.get(&format!("/console/audit?before={last}")).await;
    let rest = numbers(&older.body);
    assert_eq!((rest.first(), rest.last()), (Some(&(last - 1)), Some(&1)));
    assert!(first.body.contains("Older ones") && !older.body.contains("Older ones"));
    // By person, by kind, and by day.
    let of_ravi = browser.get("/console/audit?actor=ravi").await;
    assert_eq!(numbers(&of_ravi.body).len(), 3);
    let ravis = browser.get("/console/audit?actor=ravi&action=sign_in").await;
    assert_eq!(numbers(&ravis.body).len(), 0);
    assert!(ravis.body.contains("No entry fits"), "{}", ravis.body);
    let sign_ins = browser.get("/console/audit?action=sign_in").await;
    assert_eq!(numbers(&sign_ins.body).len(), 1);
    let of_meera = browser.get("/console/audit?actor=meera").await;
    let next = "actor=meera&#38;action=&#38;from=&#38;until=&#38;before=";
    assert!(of_meera.body.contains(next), "the pager keeps the filter: {}", of_meera.body);
    for (query, is_any) in [
        ("from=2100-01-01", false),
        ("until=2000-01-01", false),
        ("from=2000-01-01&until=2100-01-01", true),
        ("from=no-day", true),
    ] {
        let found = browser.get(&format!("/console/audit?{query}")).await;
        assert_eq!(!numbers(&found.body).is_empty(), is_any, "{query}");
    }
    let whole = browser.get("/console/audit?verify=all").await;
    assert!(whole.body.contains("The whole log was verified"), "{}", whole.body);
    // The control: what somebody changed in the database is shown.
    let harm = "UPDATE audit_log SET details = '{\"reason\":\"another\"}' WHERE number = 20";
    match is_on_postgres() {
        true => drop(server.database().sql(harm)),
        false => {
            let connection = rusqlite::Connection::open(server.folder.join("test.db")).unwrap();
            connection.execute_batch(harm).unwrap();
        }
    }
    let broken = browser.get("/console/audit?verify=all").await;
    assert!(broken.body.contains("not as it was written. Faults: 1."), "{}", broken.body);
    let around = browser.get("/console/audit?before=22").await;
    assert_eq!(around.body.matches("Does not fit").count(), 1, "only the changed one");
}

/// In another language too, the service's own texts are in it, and what a person typed and what
/// lists name stay as they are.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_service_wrote_is_in_the_language_of_the_reader() {
    let server = console_with(&[]).await;
    let client = server.client().await;
    let person = json!({ "name": POSSIBLE_NAME, "type": "individual", "country": "AE" });
    let suspect = id(&client.post("/v1/senders", person).await.ok());
    let kept = server.app.state.store.write(|tx, now| {
        let subject = "payouts of account live";
        let ended = [("request", "3"), ("status", "expired"), ("reason", "it is too old")];
        let rejected = [("request", "3"), ("reason", "it is too old")];
        for (actor, via, action, details) in [
            ("", Via::Service, Action::DecisionEnded, &ended[..]),
            ("meera", Via::Console, Action::DecisionRejected, &rejected[..]),
        ] {
            audit::append(tx, now, &Fact { actor, via, action, subject, details })?;
        }
        let (via, action, details) = (Via::Shell, Action::OperatorDisabled, &[][..]);
        let subject = "payouts";
        audit::append(tx, now, &Fact { actor: "nila", via, action, subject, details })?;
        let by = DecidedBy::new("operator", "it is too old").unwrap();
        decisions::record(tx, now, "account live", "suspend", &by)
    });
    kept.await.unwrap();

    let english = ["listed name", "score", "payouts of account", "Expired"];
    let mut browser = signed_in(&server, "operator").await;
    let sender = format!("/console/senders/{suspect}");
    let paths = ["/console/queues/reviews", &sender, "/console/audit", "/console/decisions"];
    let read = async |browser: &mut Browser<'_>| {
        let mut pages = Vec::new();
        for path in paths {
            pages.push(browser.get(path).await.body);
        }
        pages
    };
    let before = read(&mut browser).await.concat();
    for text in english {
        assert!(before.contains(text), "the control: {text} is in {before}");
    }
    let choice = [("language", "hi"), ("theme", "auto")];
    let changed = browser.submit("/console/account", "/console/account/preferences", &choice).await;
    assert_eq!(changed.status, 303, "{}", changed.body);
    let pages = read(&mut browser).await;
    for text in english {
        assert!(!pages.concat().contains(text), "{text} is left: {pages:#?}");
    }
    let [queue, sender, log, decided] = pages.as_slice() else { panic!("{pages:?}") };
    let evidence = format!("“{POSSIBLE_NAME}”, अंक 1.000");
    assert!(queue.contains(&evidence), "{queue}");
    // In the table of hits, and in the story.
    assert_eq!(sender.matches(&evidence).count(), 2, "{sender}");
    let too_old = "यह बहुत पुराना है";
    for text in [too_old, "भुगतान, खाता live", "समय समाप्त"] {
        assert!(log.contains(text), "{text} is not in {log}");
    }
    // Persons' own reasons, and an operator whose name is a word of the service.
    assert_eq!(log.matches("it is too old").count(), 2, "{log}");
    assert!(log.contains("\">payouts</td>"), "{log}");
    assert!(decided.contains("खाता live"), "{decided}");
    assert!(decided.contains("it is too old"), "{decided}");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_show_what_is_set_and_used() {
    let variables =
        [("HUNDI_ACCOUNT_DAY_INR_MAX", "150000.00"), ("HUNDI_SENDER_MONTH_INR_MAX", "90000.00")];
    let server = console_with(&variables).await;
    let client = server.client().await;
    let transfer = client.transfer().await;
    let mut browser = signed_in(&server, "viewer").await;
    let before = browser.get("/console/limits").await;
    assert!(before.body.contains("<code>rate_<wbr>limit_<wbr>reads</code>"), "{}", before.body);
    assert!(before.body.contains("₹\u{a0}0.00 of ₹\u{a0}1,50,000.00"), "{}", before.body);
    client.deposit(&transfer, serde_json::json!({})).await;
    let path = format!("/v1/transfers/{}", id(&transfer));
    let paid = client.wait_status(&path, "payout_settled").await;
    let amount = paid["payout_amount"].as_str().or(paid["payout"]["amount"].as_str()).unwrap();
    let units: i64 = amount.replace('.', "").parse().unwrap();
    let used = rupees::grouped(Money::new(units, Currency::Inr));
    let after = browser.get("/console/limits").await;
    let expected = format!("₹\u{a0}{used} of ₹\u{a0}1,50,000.00");
    assert!(after.body.contains(&expected), "{expected}: {}", after.body);
    assert!(after.whole().contains("sender_month_inr_max") && after.body.contains("no limit"));
    let sender = transfer["sender_id"].as_str().unwrap();
    let person = browser.get(&format!("/console/senders/{sender}")).await;
    let expected = format!("₹\u{a0}{used} of ₹\u{a0}90,000.00");
    assert!(person.body.contains(&expected), "{expected}: {}", person.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_tells_its_story() {
    let server = console_with(&[]).await;
    let client = server.client().await;
    client.get("/v1/balance").await.ok();
    server.client().await;
    let suspend = |verb: &str| {
        let words = ["accounts", verb, "default", "--actor", "operator", "--reason", "a drill"];
        let all = [&words[..], &["--database", &server.database_url]].concat();
        let output = server.binary(&all).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    suspend("suspend");
    suspend("resume");
    let mut browser = signed_in(&server, "viewer").await;
    let page = browser.get("/console/accounts/1").await;
    let keys = page.body.split("<tbody").nth(1).and_then(|rest| rest.split("</tbody>").next());
    let rows: Vec<&str> = keys.expect("keys").split("<tr").skip(1).collect();
    let used: Vec<usize> = rows.iter().map(|row| row.matches("<time").count()).collect();
    // When it was made; and when it was used, of one that was.
    assert!(used.contains(&1) && used.contains(&2), "{used:?} in {rows:?}");
    let story = page.body.split("class=\"story\"").nth(1).expect("a story");
    let story = story.split("</ol>").next().unwrap();
    let place = |text: &str| story.find(text).unwrap_or_else(|| panic!("no {text} in {story}"));
    assert!(place("Created") < place("Suspended") && place("Suspended") < place("Resumed"));
    assert_eq!(story.matches("a drill").count(), 2);
}

/// With a reason, by whom may decide, and seen at once by the account's keys.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_suspended_and_resumed() {
    let server = console_with(&[("HUNDI_FOUR_EYES_ABOVE", "100.00")]).await;
    let client = server.client().await;
    client.get("/v1/balance").await.ok();
    let (page, path) = ("/console/accounts/1", "/console/accounts/1/suspend");
    let mut viewer = signed_in(&server, "viewer").await;
    assert!(!viewer.get(page).await.body.contains(path), "a viewer has no form for it");
    let mut operator = signed_in(&server, "operator").await;
    let shown = operator.get(page).await.body;
    assert!(shown.contains(path) && shown.contains(">Suspend</button>"), "{shown}");
    let ask = async |browser: &mut Browser<'_>, decision: &str, reason: &str| {
        let fields = [("decision", decision), ("reason", reason)];
        let answer = browser.submit(page, path, &fields).await;
        (answer.status, answer.header("location").to_owned())
    };
    assert_eq!(ask(&mut operator, "suspend", "").await.0, 409, "without a reason");
    assert_eq!(ask(&mut operator, "nonsense", "a drill").await.0, 409);
    assert_eq!(ask(&mut operator, "resume", "a drill").await.0, 409, "it is not suspended");
    let (status, to) = ask(&mut operator, "suspend", "a drill").await;
    assert_eq!((status, to.as_str()), (303, "/console/accounts/1?notice=notice.suspended"));
    assert_eq!(ask(&mut operator, "suspend", "again").await.0, 409, "it is suspended");
    let end = std::time::Instant::now() + WAIT;
    while client.get("/v1/balance").await.status != 401 {
        assert!(std::time::Instant::now() < end, "its key still works");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    // To let it act again takes two.
    let (_, to) = ask(&mut operator, "resume", "the drill is over").await;
    assert!(to.contains("notice.waits_second"), "{to}");
    assert!(operator.get(page).await.body.contains("Suspended</span>"));
    let mut approver = signed_in(&server, "approver").await;
    let waiting = approver.get("/console/approvals").await.body;
    assert!(waiting.contains("account default") && waiting.contains("<time "), "{waiting}");
    let answer = approver.submit("/console/approvals", "/console/approvals/1/approve", &[]).await;
    assert!(answer.header("location").contains("notice.request_approved"), "{}", answer.body);
    let end = std::time::Instant::now() + WAIT;
    while client.get("/v1/balance").await.status != 200 {
        assert!(std::time::Instant::now() < end, "its key does not work");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let shown = operator.get(page).await.body;
    for text in ["a drill", "the drill is over", "operator", "approver"] {
        assert!(shown.contains(text), "no {text} in {shown}");
    }
    let log = operator.get("/console/audit?action=decision").await.body;
    assert_eq!(log.matches("account default").count(), 2, "{log}");
}

/// A form that names no account must not pause or resume for everybody.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_is_set_for_an_account_that_exists_or_for_all() {
    let server = console_with(&[]).await;
    server.client().await;
    let mut operator = signed_in(&server, "operator").await;
    let set = async |browser: &mut Browser<'_>, account: &str, decision: &str| {
        let fields = [
            ("operation", "quotes"),
            ("account", account),
            ("decision", decision),
            ("reason", "a drill"),
        ];
        browser.submit("/console/pauses", "/console/pauses/set", &fields).await.status
    };
    for account in ["", "-1", "77", "default", "1x"] {
        assert_eq!(set(&mut operator, account, "pause").await, 409, "{account:?}");
    }
    let page = operator.get("/console/pauses").await.body;
    assert!(page.contains("Nothing is paused"), "{page}");
    // The control: these are taken. And a pause for all outlives a wrong resume.
    assert_eq!(set(&mut operator, "1", "pause").await, 303);
    assert_eq!(set(&mut operator, "0", "pause").await, 303);
    assert_eq!(set(&mut operator, "77", "resume").await, 409);
    let page = operator.get("/console/pauses").await.body;
    assert_eq!(page.matches(">Quotes paused<").count(), 2, "{page}");
}

/// What a page says of an object's past, moment by moment.
fn story(body: &str) -> Vec<String> {
    let list = body.split("class=\"story\"").nth(1).unwrap_or_else(|| panic!("no story: {body}"));
    let list = list.split("</ol>").next().unwrap();
    list.split("<li").skip(1).map(|moment| moment.replace("<wbr>", "")).collect()
}

/// The moments that hold these texts, one after another; the story has to be in order of time.
fn assert_story(moments: &[String], wanted: &[&[&str]]) {
    let at = |moment: &String| {
        moment.split("datetime=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    };
    assert!(moments.is_sorted_by_key(at), "{moments:#?}");
    let mut next = 0;
    for texts in wanted {
        let is_it = |moment: &String| texts.iter().all(|text| moment.contains(text));
        let found = moments[next..].iter().position(is_it);
        next += 1 + found.unwrap_or_else(|| panic!("no {texts:?} from {next} on in {moments:#?}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_and_its_persons_tell_their_stories_in_order_of_time() {
    let server = console_with(&[]).await;
    let client = server.client().await;
    let receiver = Receiver::start(Reply::status(500)).await;
    let hook = json!({ "url": receiver.url });
    client.post("/v1/webhook_endpoints", hook).await.ok();
    let transfer = client.transfer().await;
    client.deposit(&transfer, json!({})).await;
    let path = format!("/v1/transfers/{}", id(&transfer));
    let paid = client.wait_status(&path, "payout_settled").await;
    let payout = paid["payout_id"].as_str().unwrap();
    let told = |page: &Value| {
        let types = page["data"].as_array().unwrap().iter().map(|event| event["type"].clone());
        types.collect::<Vec<_>>().contains(&json!("payout.status.settled"))
    };
    client.wait_until(&format!("/v1/events?linked_id={payout}"), told).await;
    receiver.wait_count(9).await;
    let mut operator = signed_in(&server, "operator").await;
    let decide = [("object", payout), ("decision", "return"), ("reason", "the bank called")];
    let done = operator.submit("/console/account", "/console/decide", &decide).await;
    assert_eq!(done.status, 303, "{}", done.body);
    client.wait_until(&path, |found| found["status"] != "payout_settled").await;

    let hash = "Transaction";
    let utr = paid["payout"]["unique_transaction_reference"].as_str().unwrap();
    let url = format!("/console/transfers/{}", id(&transfer));
    // Deliveries are written down in batches: the last attempt may still be on its way.
    let end = std::time::Instant::now() + WAIT;
    let moments = loop {
        let moments = story(&operator.get(&url).await.body);
        let told: Vec<_> =
            moments.iter().filter(|moment| moment.contains("Told to the caller")).collect();
        if told.len() >= 9 && told[..9].iter().all(|moment| moment.contains("500\u{a0}·")) {
            break moments;
        }
        assert!(std::time::Instant::now() < end, "{moments:#?}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    assert_story(
        &moments,
        &[
            &["Account looked up", "Agrees"],
            &["Rate locked", "Market", "88.41", "Settings", "1.000000", "Rate of", "IST", "Fee"],
            &["Awaits money"],
            &["transfer.status.funding", "attempts: "],
            &["Deposit", "Final", hash, "Exact"],
            &["Ledger", "Deposit credited", "Custody"],
            &["deposit.status.completed", "attempts: "],
            &["Ledger", "Transfer funded"],
            &["Ledger", "Exchanged", "USDT"],
            &["Payout", "Settled", utr],
            &["Ledger", "Paid out"],
            &["payout.status.settled", "attempts: "],
            &["Transfer", "Paid"],
            &["Payment advice", "Available"],
        ],
    );
    assert_story(
        &moments,
        &[
            &["Decision", "Money came back", "operator", "the bank called"],
            &["Payout", "Returned"],
            &["Ledger", "Payout returned", "On hold"],
            &["payout.status.returned"],
            &["Transfer", "To refund"],
            &["Refund", "Needs an address"],
            &["refund.status.requires_address"],
        ],
    );

    let beneficiary = transfer["beneficiary_id"].as_str().unwrap();
    let moments = story(&operator.get(&format!("/console/beneficiaries/{beneficiary}")).await.body);
    assert_story(&moments, &[&["Being verified"], &["Active"]]);
    assert_story(&moments, &[&["Account looked up", "Agrees"]]);
    assert_story(&moments, &[&["beneficiary.status.active"]]);

    // Somebody whom a list may name, refused by a person after the test clock was advanced.
    let suspect =
        json!({ "name": "Test Possibly Sanctioned", "type": "individual", "country": "AE" });
    let suspect = id(&client.post("/v1/senders", suspect).await.ok());
    client.advance(3_600).await;
    let decide =
        [("object", suspect.as_str()), ("decision", "refuse"), ("reason", "it is the same one")];
    let done = operator.submit("/console/account", "/console/decide", &decide).await;
    assert_eq!(done.status, 303, "{}", done.body);
    let page = operator.get(&format!("/console/senders/{suspect}")).await.body;
    assert_story(
        &story(&page),
        &[
            &["Sender", "Created"],
            &["Found on a list", "Test Possibly Sanctioned"],
            &["Decision", "Refused", "operator", "it is the same one"],
        ],
    );
    assert!(page.contains("What can be done now") && page.contains(">Approve</button>"));
}

/// One box: whatever names a transfer leads to it, and names by their beginnings in any case.
#[tokio::test(flavor = "multi_thread")]
async fn the_search_box_leads_to_what_is_named() {
    let server = console_with(&[]).await;
    let client = server.client().await;
    let mut body = client.transfer_body(stage::SETTLES, "1000.00").await;
    body["reference"] = json!("Invoice 4711/b");
    let transfer = client.post("/v1/transfers", body.clone()).await.ok();
    client.deposit(&transfer, json!({})).await;
    let path = format!("/v1/transfers/{}", id(&transfer));
    let paid = client.wait_status(&path, "payout_settled").await;
    let deposits = client.get("/v1/deposits").await.ok();
    let mut viewer = signed_in(&server, "viewer").await;
    let page = format!("href=\"/console/transfers/{}\"", id(&transfer));
    for asked in [
        id(&transfer).as_str(),
        paid["payout"]["unique_transaction_reference"].as_str().unwrap(),
        deposits["data"][0]["transaction_hash"].as_str().unwrap(),
        transfer["funding"]["deposit_address"].as_str().unwrap(),
        "Invoice 4711/b",
    ] {
        let found = viewer.get(&format!("/console/search?{}", form(&[("q", asked)]))).await;
        let is_led = found.status == 303 && found.header("location").contains(&id(&transfer));
        assert!(is_led || found.body.contains(&page), "{asked}: {}", found.body);
    }
    let nothing = viewer.get("/console/search?q=Invoice+4711").await.body;
    assert!(!nothing.contains(&page) && nothing.contains("Nothing was found"), "{nothing}");
    let sender = client.get(&format!("/v1/senders/{}", body["sender_id"].as_str().unwrap())).await;
    let name = sender.ok()["name"].as_str().unwrap().to_owned();
    let word = name.split(' ').next_back().unwrap();
    let asked: String = word.to_uppercase().chars().take(3).collect();
    let person = format!("href=\"/console/senders/{}\"", body["sender_id"].as_str().unwrap());
    let end = std::time::Instant::now() + WAIT;
    while !viewer.get(&format!("/console/search?q={asked}")).await.body.contains(&person) {
        assert!(std::time::Instant::now() < end, "{asked} does not lead to {name}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_daily_closing_is_compared_with_bank_and_chain() {
    let server = console_with(&[]).await;
    let client = server.client().await;
    let transfer = client.transfer().await;
    client.deposit(&transfer, json!({})).await;
    let path = format!("/v1/transfers/{}", id(&transfer));
    client.wait_status(&path, "payout_settled").await;
    let mut viewer = signed_in(&server, "viewer").await;
    let page = viewer.get("/console/reports?mode=test").await.body;
    let row = |text: &str| {
        let row = page.split("<tr").find(|row| row.contains(text));
        row.unwrap_or_else(|| panic!("no {text} in {page}")).to_owned()
    };
    for column in ["Opening", "In", "Out", "Closing"] {
        assert!(page.contains(&format!(">{column}</th>")), "{column}");
    }
    let deposited = row("Deposits on the chain");
    assert_eq!(deposited.matches("1,000.00\u{a0}USDT").count(), 2, "{deposited}");
    assert!(deposited.contains("Agrees"), "{deposited}");
    // The simulated bank sends no statements.
    assert!(row("Paid out by the bank").contains("not told yet"));
    let day = page.split("closing?mode=test&#38;day=").nth(1).and_then(|rest| rest.get(..10));
    let day = day.unwrap_or_else(|| panic!("no link to the file: {page}"));
    let file = viewer.get(&format!("/console/reports/closing?mode=test&day={day}")).await;
    assert!(file.header("content-type").starts_with("text/csv"));
    let lines: Vec<&str> = file.body.lines().collect();
    assert!(lines.iter().any(|line| line.contains("deposited") && line.contains("1000.00")));
    assert!(lines.iter().any(|line| line.contains("paid_out")), "{lines:?}");
    let other = viewer.get("/console/reports/closing?mode=test&day=2020-01-01").await;
    assert!(!other.body.contains("1000.00"), "{}", other.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_to_live_mode_comes_first_until_money_moves() {
    let server = console_with(&[]).await;
    let mut browser = signed_in(&server, "viewer").await;
    let page = browser.get("/console").await.body;
    let place = |page: &str, text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(place(&page, "Three steps to live mode") < place(&page, "What waits for a person"));
    for part in ["live_chain", "bank", "rates", "checks", "screening"] {
        place(&page, &format!("[{part}]"));
    }
    assert_eq!(page.matches("Missing").count(), 5, "{page}");
    let client = server.client().await;
    let transfer = client.transfer().await;
    client.deposit(&transfer, serde_json::json!({})).await;
    client.wait_status(&format!("/v1/transfers/{}", id(&transfer)), "payout_settled").await;
    // The overview is read again after two seconds.
    let mut browser = signed_in(&server, "viewer").await;
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let page = browser.get("/console").await.body;
        if place(&page, "Three steps to live mode") > place(&page, "What waits for a person") {
            break;
        }
        assert!(std::time::Instant::now() < end, "{page}");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

/// The sentences of the empty parts of a page that say nothing but that they are empty.
fn mute_parts(body: &str) -> Vec<&str> {
    let parts =
        body.split("class=\"empty\">").skip(1).map(|part| part.split("</p>").next().unwrap());
    parts
        .filter(|part| !part.contains("<a ") && !part.trim_end_matches('.').contains(". "))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_empty_says_what_comes_there_or_what_to_do() {
    let told = "<p class=\"empty\">No file yet. Check the folder.</p>";
    assert!(mute_parts(told).is_empty());
    assert_eq!(mute_parts("<p class=\"empty\">No file yet.</p>"), ["No file yet."]);

    let server = console_with(&[]).await;
    let mut admin = signed_in(&server, "admin").await;
    let mut paths = vec!["/console".to_owned()];
    let (mut at, mut empty_count) = (0, 0);
    while let Some(path) = paths.get(at).cloned() {
        let body = admin.get(&path).await.body;
        assert_eq!(mute_parts(&body), [""; 0], "{path}");
        empty_count += body.matches("class=\"empty\"").count();
        // Each page that a link leads to, without the forms and the files.
        for link in body.split("href=\"").skip(1).map(|link| link.split('"').next().unwrap()) {
            let link = link.split(['?', '#']).next().unwrap().to_owned();
            let is_page = link.starts_with("/console/") && !link.contains('.');
            if is_page && !link.contains("sign") && !paths.contains(&link) {
                paths.push(link);
            }
        }
        at += 1;
    }
    assert!(paths.len() >= 20 && empty_count >= 20, "{} of {paths:?}", empty_count);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_account_number_has_a_button_for_whom_it_is_shown_to() {
    let server = console_with(&[]).await;
    let client = server.client().await;
    let beneficiary = client.beneficiary("50100012345678").await;
    let page = format!("/console/beneficiaries/{}", id(&beneficiary));
    let path = format!("{page}/account_number");
    for role in Role::ALL {
        let mut browser = signed_in(&server, role.as_str()).await;
        let shown = browser.get(&page).await;
        assert_eq!(shown.status, 200);
        assert!(!shown.body.contains("50100012345678"), "{role:?}");
        assert_eq!(shown.body.contains(&path), role.includes(Role::Operator), "{role:?}");
    }
    let mut browser = signed_in(&server, "operator").await;
    let shown = browser.submit(&page, &path, &[("reason", "the bank asks for it")]).await;
    assert!(shown.body.contains("50100012345678"), "{}", shown.body);
}

/// Two persons decide about one transfer at the same moment, each another way: one decision is
/// carried out, and the other person is told why nothing came of theirs.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_decisions_at_once_one_is_carried_out() {
    let server = console_with(&[]).await;
    let client = server.client().await;
    let mut one = signed_in(&server, "operator").await;
    let mut other = signed_in(&server, "approver").await;
    for _ in 0..4 {
        let body = client.transfer_body("50100012345678", "200.00").await;
        let transfer = client.post("/v1/transfers", body).await.ok();
        client.deposit(&transfer, serde_json::json!({ "amount": "40.00" })).await;
        let path = format!("/v1/transfers/{}", id(&transfer));
        client.wait_until(&path, |found| found["funding"]["amount_received"] == "40.00").await;
        let object = id(&transfer);
        let fields =
            |decision| [("object", object.as_str()), ("decision", decision), ("reason", "x")];
        let page = format!("/console/transfers/{object}");
        let review = one.submit(&page, "/console/decide", &fields("review")).await;
        assert_eq!(review.status, 303, "{}", review.body);
        let (approve, refuse) = (fields("approve"), fields("refuse"));
        let (approved, refused) = tokio::join!(
            one.submit(&page, "/console/decide", &approve),
            other.submit(&page, "/console/decide", &refuse)
        );
        let statuses = [approved.status, refused.status];
        assert!(statuses == [303, 409] || statuses == [409, 303], "{statuses:?}");
        let told = if approved.status == 409 { &approved } else { &refused };
        assert!(told.body.contains("Not done") && told.body.contains(&object), "{}", told.body);
        let shown = client.get(&path).await.ok();
        let was_refused = shown["status"] == "refund_processing";
        assert_eq!(was_refused, refused.status == 303, "{shown}");
    }
    server.assert_book();
}

/// Each setting with where it comes from, and the requests a second among the limits.
#[tokio::test(flavor = "multi_thread")]
async fn settings_say_where_they_come_from() {
    let folder = std::env::temp_dir().join(format!("hundi-origins-{}.toml", std::process::id()));
    std::fs::write(&folder, "issuer_name = \"Of the file\"\nquote_lock_seconds = 240\n").unwrap();
    let variables = [
        ("CONFIG", folder.to_str().unwrap()),
        ("HUNDI_QUOTE_LOCK_SECONDS", "120"),
        ("HUNDI_RATE_LIMIT_WRITES", "40"),
    ];
    let server = console_with(&variables).await;
    std::fs::remove_file(&folder).unwrap();
    let mut browser = signed_in(&server, "viewer").await;
    let page = browser.get("/console/settings").await.whole();
    let row = |name: &str| {
        let row = page.split("<tr").find(|row| row.contains(&format!("<code>{name}</code>")));
        row.unwrap_or_else(|| panic!("no {name} in {page}")).to_owned()
    };
    for (name, value, origin) in [
        ("issuer_name", "Of the file", "from the file"),
        ("quote_lock_seconds", "2 min", "from the environment"),
        ("rate_limit_writes", "40", "from the environment"),
        ("funding_seconds", "30 min", "usual value"),
        ("four_eyes_above", "no limit", "usual value"),
    ] {
        let row = row(name);
        assert!(row.contains(value) && row.contains(origin), "{name}: {row}");
    }
    let limits = browser.get("/console/limits").await.body;
    assert!(limits.contains("40 a second, 80 at once"), "{limits}");
}

/// When a key was last used is there at once, and after a restart; no request writes it.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_tells_when_its_keys_were_used() {
    let server = console_with(&[]).await;
    let client = server.client().await;
    let idle = server.client().await;
    let mut browser = signed_in(&server, "viewer").await;
    let used = |page: &str| {
        let keys = page.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
        // The last two cells are its last use and its end.
        let cell = |row: &str| row.rsplit("<td").nth(1).unwrap().contains("<time");
        keys.split("<tr").skip(1).map(cell).collect::<Vec<_>>()
    };
    let page = "/console/accounts/1";
    let before = used(&browser.get(page).await.body);
    assert!(before.len() >= 2 && before.iter().all(|used| !used), "{before:?}");
    client.get("/v1/balance").await.ok();
    let count = |used: Vec<bool>| used.iter().filter(|used| **used).count();
    assert_eq!(count(used(&browser.get(page).await.body)), 1);
    // What a process noted is written down together, and read where it is not remembered.
    let noted = server.app.state.keys.take_uses();
    assert_eq!(noted.len(), 1);
    assert_eq!(count(used(&browser.get(page).await.body)), 0, "nothing was written for it");
    let write = move |tx: &mut dyn hundi::store::Tx, _: &mut hundi::kernel::Now| {
        let earlier = (noted[0].0, noted[0].1 - 100);
        for used in [noted[0], earlier] {
            hundi::keys::rows::note_use(tx, used)?;
        }
        let lines = hundi::keys::rows::list(tx)?;
        let line = lines.iter().find(|line| line.id == noted[0].0).unwrap();
        assert_eq!(line.used_at, Some(noted[0].1), "the later one stays");
        Ok(())
    };
    server.app.state.store.write(write).await.unwrap();
    assert_eq!(count(used(&browser.get(page).await.body)), 1);
    idle.get("/v1/balance").await.ok();
    assert_eq!(count(used(&browser.get(page).await.body)), 2);
}

/// What failed is delivered again by one button; how much that is was counted before anybody's
/// writes had to wait.
#[tokio::test(flavor = "multi_thread")]
async fn what_failed_is_delivered_again_by_one_decision() {
    let server = console_with(&[]).await;
    let client = server.client().await;
    let wanted = json!({
        "url": "http://127.0.0.1:1/", "enabled_events": ["beneficiary.status.active"],
    });
    let endpoint = client.post("/v1/webhook_endpoints", wanted).await.ok();
    client.beneficiary("50100012345678").await;
    let deliveries = format!("/v1/webhook_endpoints/{}/deliveries", id(&endpoint));
    let was_tried = |found: &Value| {
        found["data"].as_array().unwrap().iter().any(|one| one["attempts_count"] != 0)
    };
    client.wait_until(&deliveries, was_tried).await;
    let mut browser = signed_in(&server, "operator").await;
    let page = format!("/console/webhooks/{}", id(&endpoint));
    let replay = format!("{page}/replay");
    let unsaid = browser.submit(&page, &replay, &[("decision", "failed")]).await;
    assert_eq!(unsaid.status, 409, "without a reason: {}", unsaid.body);
    let fields = [("decision", "failed"), ("reason", "the receiver is back")];
    let done = browser.submit(&page, &replay, &fields).await;
    assert_eq!(done.status, 303, "{}", done.body);
    let shown = browser.get(&page).await.body;
    assert!(shown.contains("0 of 1 done"), "{shown}");
    let log = browser.get("/console/decisions").await.body;
    assert!(log.contains("the receiver is back"), "{log}");
    // The endpoint goes between the look and the decision: it is told, and nothing is recorded.
    let token = browser.get(&page).await.token();
    client.delete(&format!("/v1/webhook_endpoints/{}", id(&endpoint))).await.ok();
    let fields = [("token", token.as_str()), ("decision", "failed"), ("reason", "too late")];
    let gone = browser.post(&replay, &fields).await;
    assert!(matches!(gone.status, 404 | 409), "{}", gone.status);
    assert!(!browser.get("/console/decisions").await.body.contains("too late"));
}

/// What was asked for again, and how much of it has come.
#[tokio::test(flavor = "multi_thread")]
async fn a_replay_shows_how_far_it_has_come() {
    let server = console_with(&[]).await;
    let client = server.client().await;
    let receiver = Receiver::start(Reply::status(200)).await;
    let register = async |url: &str| {
        let wanted = json!({ "url": url, "enabled_events": ["beneficiary.status.active"] });
        client.post("/v1/webhook_endpoints", wanted).await.ok()
    };
    let endpoint = register(&receiver.url).await;
    let nobody = register("http://127.0.0.1:1/").await;
    client.beneficiary("50100012345678").await;
    let path = |endpoint: &Value| format!("/v1/webhook_endpoints/{}", id(endpoint));
    let deliveries = format!("{}/deliveries", path(&endpoint));
    let is_taken = |found: &Value| {
        let all = found["data"].as_array().unwrap();
        !all.is_empty() && all.iter().all(|one| one["status"] == "succeeded")
    };
    let found = client.wait_until(&deliveries, is_taken).await;
    let mut browser = signed_in(&server, "viewer").await;
    let page = |endpoint: &Value| format!("/console/webhooks/{}", id(endpoint));
    let shown = browser.get(&page(&endpoint)).await.body;
    assert!(!shown.contains("Last replay"), "{shown}");
    let again = json!({ "event_id": found["data"][0]["event_id"] });
    for endpoint in [&endpoint, &nobody] {
        let replay = format!("{}/replay", path(endpoint));
        assert_eq!(client.post(&replay, again.clone()).await.ok()["deliveries_count"], 1);
    }
    // Nobody listens there: it waits for its next attempt.
    let waiting = browser.get(&page(&nobody)).await.body;
    assert!(waiting.contains("0 of 1 done"), "{waiting}");
    let work = browser.get("/console/work").await.body;
    assert!(work.contains("0 of 1 done"), "{work}");
    client.wait_until(&deliveries, is_taken).await;
    let done = browser.get(&page(&endpoint)).await.body;
    assert!(done.contains("1 of 1 done"), "{done}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_signs_somebody_out_everywhere() {
    let server = console_with(&[]).await;
    let mut other = signed_in(&server, "operator").await;
    let mut admin = signed_in(&server, "admin").await;
    let (page, path) = ("/console/operators", "/console/operators/sessions/end");
    assert!(admin.get(page).await.body.contains(path));
    assert!(!other.get(page).await.body.contains(path), "an operator has no such button");
    let unsaid = admin.submit(page, path, &[("name", "operator"), ("reason", "")]).await;
    assert_eq!(unsaid.status, 409, "{}", unsaid.body);
    assert_eq!(other.get("/console").await.status, 200);
    let fields = [("name", "operator"), ("reason", "a lost device")];
    let ended = admin.submit(page, path, &fields).await;
    assert_eq!((ended.status, ended.header("location").starts_with(page)), (303, true));
    assert_eq!(other.get("/console").await.status, 303);
    assert_eq!(admin.get("/console").await.status, 200);
    let log = admin.get("/console/audit?action=session_ended").await.body;
    assert!(log.contains("a lost device"), "{log}");
}

const ISSUER: &str = "https://login.example.com";

fn vouched(subject: &str, email: Option<&str>, has_second_factor: bool) -> Vouched {
    let (issuer, subject) = (ISSUER.to_owned(), subject.to_owned());
    Vouched { issuer, subject, email: email.map(str::to_owned), has_second_factor }
}

/// Who is signed in that a provider vouches for: "not linked", "factor needed", or a name.
async fn arrives(server: &Server, vouched: Vouched) -> String {
    let services = server.app.state.services.clone();
    let place = Place { address: "192.0.2.1".into(), browser: "a test".into() };
    let done = server.app.state.store.write(move |tx, now| {
        Ok(match provider_links::sign_in(tx, now, &services, &vouched, &place)? {
            OutsideSignIn::Done { operator, .. } => operator.name,
            OutsideSignIn::NotLinked => "not linked".into(),
            OutsideSignIn::SecondFactorNeeded => "factor needed".into(),
        })
    });
    done.await.unwrap()
}

/// Whom the newest refused sign-in in the audit log is about.
async fn refused_name(server: &Server) -> String {
    let newest = server.app.state.store.write(|tx, _| {
        Ok(audit::rows::newest_of(tx, "sign_in_refused")?.expect("a refused sign-in"))
    });
    newest.await.unwrap().subject
}

/// The rules of a sign-in at a provider; tests/console/openid.mjs has the way there and back.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_signs_in_whom_an_operator_is_linked_to() {
    let server = console_with(&[]).await;
    assert_eq!(arrives(&server, vouched("a", None, false)).await, "not linked");
    let run = |arguments: &[&str]| {
        let by = ["--database", &server.database_url, "--actor", "admin", "--reason", "a test"];
        let output = server.binary(&[arguments, &by].concat()).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let link = |name: &str, subject: &str| {
        run(&["operators", "link", name, "--issuer", ISSUER, "--subject", subject])
    };
    assert!(link("viewer", "a").0);
    assert_eq!(arrives(&server, vouched("a", None, false)).await, "viewer");
    let elsewhere =
        Vouched { issuer: "https://another.example".into(), ..vouched("a", None, true) };
    assert_eq!(arrives(&server, elsewhere).await, "not linked");
    for (name, subject, told) in [
        ("viewer", "b", "linked already"),
        ("operator", "a", "linked to \"viewer\""),
        ("nobody", "b", "no operator"),
        ("operator", "", "1 to 255 characters"),
    ] {
        let (is_done, error) = link(name, subject);
        assert!(!is_done && error.contains(told), "{name} {subject}: {error}");
    }
    let wrong = ["operators", "link", "operator", "--issuer", "http://login.example.com"];
    assert!(!run(&[&wrong[..], &["--subject", "b"]].concat()).0);
    // A verified address links the operator of that name, once.
    let make = server.app.state.store.write(|tx, now| {
        let by = DecidedBy::default();
        staff::create(tx, now, "asha@example.com", Role::Viewer, "no password", &by)?;
        Ok(())
    });
    make.await.unwrap();
    let asha = Some("Asha@Example.com");
    assert_eq!(arrives(&server, vouched("b", asha, false)).await, "asha@example.com");
    assert_eq!(arrives(&server, vouched("c", asha, false)).await, "not linked");
    assert_eq!(refused_name(&server).await, "", "nobody is linked to that person");
    assert_eq!(arrives(&server, vouched("b", None, false)).await, "asha@example.com");
    // An operator with a second factor here needs one there.
    let confirm =
        server.app.state.store.write(|tx, _| Ok(staff::rows::confirm_totp(tx, 1, b"sealed", 0)?));
    confirm.await.unwrap();
    assert_eq!(arrives(&server, vouched("a", None, false)).await, "factor needed");
    assert_eq!(arrives(&server, vouched("a", None, true)).await, "viewer");
    let sessions = |number: i64| {
        let read = server
            .app
            .state
            .store
            .read(Cost::Point, move |tx| Ok(staff::rows::sessions_of(tx, number)?));
        async { read.await.unwrap() }
    };
    assert!(sessions(1).await.iter().all(|session| session.has_second_factor));
    // Disabled, no longer linked, and given a new password: none gets in.
    for name in ["viewer", "asha@example.com"] {
        assert!(run(&["operators", "disable", name]).0);
    }
    assert_eq!(arrives(&server, vouched("b", asha, true)).await, "not linked");
    assert_eq!(refused_name(&server).await, "asha@example.com", "who is disabled is named");
    assert!(run(&["operators", "unlink", "asha@example.com"]).0);
    assert!(!run(&["operators", "unlink", "asha@example.com"]).0);
    assert!(run(&["operators", "reset", "viewer"]).0);
    assert_eq!(arrives(&server, vouched("a", None, true)).await, "not linked");
    assert!(sessions(1).await.is_empty());
    server.assert_book();
}

/// A key is made and revoked by an administrator alone, shown once, and told of in the audit log
/// with person and reason.
#[tokio::test(flavor = "multi_thread")]
async fn keys_are_made_shown_once_and_revoked_by_administrators() {
    let server = stage::server_with(&[LISTEN]).await;
    make_operators(&server).await;
    let mut admin = signed_in(&server, "admin").await;
    let made = |fields: &[(&'static str, &'static str)]| {
        let usual = [
            ("account", "shop"),
            ("mode", "test"),
            ("access", "everything"),
            ("permissions", ""),
            ("days", ""),
            ("reason", "the shop goes live in May"),
        ];
        let given = |name: &str| fields.iter().find(|(given, _)| *given == name);
        usual.map(|(name, value)| *given(name).unwrap_or(&(name, value)))
    };
    let (list, make, revoke) = ("/console/accounts", "/console/keys/make", "/console/keys/revoke");
    let key_in = |page: &Page| {
        let text = page.body.split("<p class=\"secret\"><code>").nth(1).expect("a key is shown");
        text.split('<').next().unwrap().to_owned()
    };

    // What is refused makes nothing.
    for (fields, text) in [
        (&[("reason", "")][..], "reason"),
        (&[("account", "")][..], "1 to 100 characters"),
        (&[("mode", "live")][..], "no such decision"),
        (&[("mode", "")][..], "no such decision"),
        (&[("days", "-1")][..], "no such decision"),
        (&[("access", "")][..], "no such decision"),
        (&[("access", "these")][..], "Name at least one"),
        (&[("permissions", "transfers:read")][..], "the line above says otherwise"),
        (&[("access", "these"), ("permissions", "moon:read")][..], "is not a permission"),
    ] {
        let told = admin.submit(list, make, &made(fields)).await;
        assert_eq!(told.status, 409, "{fields:?}");
        assert!(told.body.to_lowercase().contains(&text.to_lowercase()), "{text}: {}", told.body);
    }
    assert!(!admin.get(list).await.body.contains(">shop<"), "no account was made");

    // A new account with its first key, which works.
    let page = admin.submit(list, make, &made(&[])).await;
    assert_eq!((page.status, page.header("cache-control")), (200, "no-store"), "{}", page.body);
    let key = key_in(&page);
    assert!(key.starts_with("sk_test_"), "{key}");
    let client = Client::of(&server.address, &key);
    client.get("/v1/senders").await.ok();
    let account = page.between("class=\"button\" href=\"", "\"");
    // One that only reads, and one with what is named, for some days.
    let fields = made(&[("access", "reading"), ("days", "30")]);
    let reading = key_in(&admin.submit(&account, make, &fields).await);
    assert!(reading.starts_with("rk_test_"), "{reading}");
    let reader = Client::of(&server.address, &reading);
    reader.get("/v1/transfers").await.ok();
    let person = json!({ "name": "Asha Rao", "type": "individual", "country": "AE" });
    assert_eq!(reader.post("/v1/senders", person).await.status, 403);
    let fields = made(&[("access", "these"), ("permissions", "balance:read")]);
    let named = key_in(&admin.submit(&account, make, &fields).await);
    assert_eq!(Client::of(&server.address, &named).get("/v1/transfers").await.status, 403);

    // No page, no entry and no file has a key's text.
    let shown = admin.get(&account).await.body;
    let log = admin.get("/console/audit").await.body;
    let entries = server.app.state.store.write(|tx, _| Ok(audit::rows::after(tx, 0, 1_000)?));
    let entries = entries.await.unwrap();
    for secret in [&key, &reading, &named] {
        assert!(!shown.contains(secret.as_str()) && !log.contains(secret.as_str()));
        assert!(!format!("{entries:?}").contains(secret.as_str()));
    }
    assert_eq!(shown.matches("type=\"checkbox\"").count(), 3, "{shown}");
    assert!(shown.contains("the shop goes live in May"), "the account's story has the reason");
    let created = entries.iter().filter(|entry| entry.action == "key_created");
    let created: Vec<_> = created.filter(|entry| entry.actor == "admin").collect();
    assert_eq!(created.len(), 3);
    assert!(created.iter().all(|entry| entry.via == "console"));
    assert_eq!(created[0].detail("reason").as_deref(), Some("the shop goes live in May"));

    // Nobody else sees the forms, or is heard.
    for role in ["viewer", "operator", "approver"] {
        let mut browser = signed_in(&server, role).await;
        let page = browser.get(&account).await.body;
        assert!(!page.contains("checkbox") && !page.contains("/console/keys/"), "{role}: {page}");
        let refused = browser.submit("/console/account", make, &made(&[])).await;
        assert_eq!(refused.status, 403, "{role}");
        let refused = browser.submit("/console/account", revoke, &[("object", "x")]).await;
        assert_eq!(refused.status, 403, "{role}");
    }

    // Revoked with a reason; who comes second is told.
    let picks: Vec<String> = shown
        .split("name=\"object\" value=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect();
    let fields = [
        ("object", picks[0].as_str()),
        ("object", picks[1].as_str()),
        ("reason", "left the company"),
        ("back", account.as_str()),
    ];
    let without = admin.submit(&account, revoke, &fields[..2]).await;
    assert_eq!(without.status, 409, "without a reason");
    let done = admin.submit(&account, revoke, &fields).await;
    let back = format!("{account}?notice=notice.key_revoked");
    assert_eq!((done.status, done.header("location")), (303, back.as_str()), "{}", done.body);
    let again = admin.submit(&account, revoke, &fields[1..]).await;
    assert!(again.status == 409 && again.body.contains(&picks[1]), "{}", again.body);
    // A key that was read is known for a second.
    server.advance_seconds(2);
    assert_eq!(client.get("/v1/senders").await.status, 401);
    Client::of(&server.address, &named).get("/v1/balance").await.ok();
    let shown = admin.get(&account).await.body;
    assert_eq!(shown.matches("type=\"checkbox\"").count(), 1, "{shown}");
    assert!(shown.contains("left the company"), "{shown}");
    let rows = shown.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
    for row in rows.split("<tr").skip(1) {
        assert_eq!(row.matches("<td").count(), 8, "a row without a tick has its place: {row}");
    }
}

/// What the links of a page to transfers lead to, each once.
fn listed_transfers(body: &str) -> Vec<String> {
    let mut found: Vec<String> = body
        .split("href=\"/console/transfers/")
        .skip(1)
        .map(|link| link.split(['"', '#']).next().unwrap().to_owned())
        .filter(|link| link.starts_with("transfer_"))
        .collect();
    found.dedup();
    found
}

/// The list goes on behind its fiftieth transfer, and a change of the mode keeps the filter.
#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_transfers_goes_on_to_the_last_one() {
    let server = console_with(&[]).await;
    let client = server.client().await;
    let mut made = Vec::new();
    for _ in 0..51 {
        made.push(id(&client.transfer().await));
    }
    let mut viewer = signed_in(&server, "viewer").await;
    let asked = "/console/transfers?mode=test&status=funding&account=1";
    let first = viewer.get(asked).await.body;
    let mut shown = listed_transfers(&first);
    assert_eq!(shown.len(), 50);
    let kept = "status=funding&#38;account=1&#38;mode=live";
    assert!(first.contains(kept), "the other mode of the same account: {first}");
    let older = first.split("href=\"").find(|link| link.contains("after=transfer_"));
    let older = older.expect("a link to the older ones").split('"').next().unwrap();
    let rest = viewer.get(&older.replace("&#38;", "&")).await.body;
    assert_eq!(listed_transfers(&rest).len(), 1, "{rest}");
    assert!(!rest.contains("after=transfer_"), "there are no older ones: {rest}");
    shown.extend(listed_transfers(&rest));
    made.sort_unstable();
    shown.sort_unstable();
    assert_eq!(shown, made);
}

/// The search box leads from an identifier of each kind to a page.
#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_identifier_leads_to_a_page() {
    let server = console_with(&[]).await;
    let client = server.client().await;
    let wanted = json!({ "url": "http://127.0.0.1:1/", "enabled_events": ["*"] });
    let endpoint = client.post("/v1/webhook_endpoints", wanted).await.ok();
    let transfer = client.transfer().await;
    client.deposit(&transfer, json!({})).await;
    let path = format!("/v1/transfers/{}", id(&transfer));
    let paid = client.wait_status(&path, "payout_settled").await;
    let payout = paid["payout_id"].as_str().unwrap().to_owned();
    let mut operator = signed_in(&server, "operator").await;
    let decide =
        [("object", payout.as_str()), ("decision", "return"), ("reason", "the bank called")];
    let done = operator.submit("/console/account", "/console/decide", &decide).await;
    assert_eq!(done.status, 303, "{}", done.body);
    let returned = client.wait_until(&path, |found| found["refund"] != json!(null)).await;
    let is_any = |page: &Value| !page["data"].as_array().unwrap().is_empty();
    let deliveries = format!("/v1/webhook_endpoints/{}/deliveries", id(&endpoint));
    let delivery = client.wait_until(&deliveries, is_any).await["data"][0]["id"].clone();
    let events = format!("/v1/events?linked_id={}", id(&transfer));
    let event = client.wait_until(&events, is_any).await["data"][0]["id"].clone();
    let deposits = client.get("/v1/deposits").await.ok();
    let read = |tx: &mut dyn hundi::store::Tx| {
        let keys = hundi::keys::rows::list(tx)?;
        let key = keys.first().expect("a key").id.to_string();
        let row = tx.row("SELECT id FROM accounts WHERE number = 1", &[])?;
        let account: hundi::kernel::Id<hundi::kernel::id::kind::Account> = row.unwrap().id()?;
        Ok((key, account.to_string()))
    };
    let (key, account) = server.app.state.store.read(Cost::Point, read).await.unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let to_transfer = format!("/console/transfers/{}", id(&transfer));
    let to_endpoint = format!("/console/webhooks/{}", id(&endpoint));
    let page = |kind: &str, value: &Value| format!("/console/{kind}/{}", text(value));
    let found = [
        (id(&transfer), to_transfer.clone()),
        (payout, to_transfer.clone()),
        (id(&deposits["data"][0]), to_transfer.clone()),
        (text(&returned["refund"]["id"]), to_transfer.clone()),
        (text(&transfer["quote_lock_id"]), to_transfer.clone()),
        (text(&event), to_transfer),
        (text(&transfer["beneficiary_id"]), page("beneficiaries", &transfer["beneficiary_id"])),
        (text(&transfer["sender_id"]), page("senders", &transfer["sender_id"])),
        (id(&endpoint), to_endpoint.clone()),
        (text(&delivery), to_endpoint),
        (key, "/console/accounts/1".to_owned()),
        (account, "/console/accounts/1".to_owned()),
    ];
    let mut kinds: Vec<ObjectKind> = Vec::new();
    for (asked, wanted) in &found {
        kinds.push(AnyId::parse(asked).unwrap().kind);
        let answer = operator.get(&format!("/console/search?q={asked}")).await;
        assert_eq!((answer.status, answer.header("location")), (303, wanted.as_str()), "{asked}");
        assert_eq!(operator.get(wanted).await.status, 200, "{wanted}");
        // The same by the path that links to any object have.
        let direct = operator.get(&format!("/console/objects/{asked}")).await;
        assert_eq!((direct.status, direct.header("location")), (303, wanted.as_str()), "{asked}");
    }
    // What is named `request_…` is no object of a caller's.
    let missing = ObjectKind::ALL.iter().filter(|kind| !kinds.contains(kind));
    assert_eq!(missing.collect::<Vec<_>>(), [&ObjectKind::Request]);
    // One that is nobody's leads nowhere.
    for kind in ObjectKind::ALL {
        let none = AnyId { kind: *kind, value: 7 }.to_string();
        let answer = operator.get(&format!("/console/search?q={none}")).await;
        assert!(answer.status == 200 && answer.body.contains("Nothing was found"), "{none}");
    }
}

/// The keys of the example configuration: those that are one value, and the tables.
fn keys_of_the_example() -> Vec<String> {
    let text = include_str!("../../hundi.example.toml");
    let is_name = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
    };
    // The example only writes of these two.
    let mut keys = vec!["issuer_logo".to_owned(), "test_bank".to_owned(), "test_chain".to_owned()];
    let mut is_top = true;
    for line in text.lines() {
        let line = line.strip_prefix("# ").unwrap_or(line);
        if let Some(table) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            is_top = false;
            let table = table.trim_start_matches('[').trim_end_matches(']');
            let whole = table == "console.oidc";
            let name = if whole { table } else { table.split('.').next().unwrap() };
            keys.push(name.to_owned());
        } else if let (true, Some((name, _))) = (is_top, line.split_once(" = "))
            && is_name(name)
        {
            keys.push(name.to_owned());
        }
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The newest entry about settings, and how many there are.
async fn settings_kept(server: &Server) -> (hundi::audit::Entry, usize) {
    let read = |tx: &mut dyn hundi::store::Tx| {
        let newest = audit::rows::newest_of(tx, Action::Settings.as_str())?;
        let all = audit::rows::of_subject(tx, "settings", 1_000)?;
        Ok((newest.expect("an entry about the settings"), all.len()))
    };
    server.app.state.store.read(Cost::Point, read).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_setting_is_on_the_page_and_in_the_log() {
    let server = console_with(&[("HUNDI_SECURITY_CONTACT", "mailto:security@example.com")]).await;
    let mut viewer = signed_in(&server, "viewer").await;
    let page = viewer.get("/console/settings").await.whole();
    let (entry, _) = settings_kept(&server).await;
    let keys = keys_of_the_example();
    assert!(keys.len() > 45, "{keys:?}");
    let hidden: Vec<&String> =
        keys.iter().filter(|key| !page.contains(&format!("<code>{key}</code>"))).collect();
    let unlogged: Vec<&String> = keys.iter().filter(|key| entry.detail(key).is_none()).collect();
    assert_eq!((hidden, unlogged), (Vec::<&String>::new(), Vec::<&String>::new()));
    assert_eq!(entry.detail("security_contact").as_deref(), Some("mailto:security@example.com"));
    assert_eq!(entry.detail("four_eyes_above").as_deref(), Some("off"));
}

/// The next start with a file of these settings, as far as the log goes.
async fn start_with_file(server: &Server, text: &str) {
    let path = server.folder.join("next.toml");
    std::fs::write(&path, text).unwrap();
    let flags = hundi::config::Flags {
        config: Some(path),
        database: Some(server.database_url.clone()),
        listen: Some("127.0.0.1:0".into()),
        metrics: true,
        ..Default::default()
    };
    let config = hundi::config::Config::read(&flags, &|name| {
        (name == "HUNDI_CHECKS_SECRET").then(|| "secret".to_owned())
    });
    let state = &server.app.state;
    hundi::settings_log::keep(&config.unwrap(), &state.store, &state.services).await.unwrap();
}

/// Nothing that is masked in the log can be changed unseen.
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_secret_part_of_a_table_is_in_the_log() {
    let server = console_with(&[]).await;
    let key = concat!(
        "xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7",
        "dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd"
    );
    let usual = format!(
        "[bank]\nfolder = '{}'\ndebit_account_name = 'Hundi & Co'\ndebit_account_number = \
         '00112233445566'\ndebit_account_ifsc = 'YESB0000240'\nsupports_nre = true\n\
         [live_chain]\npreset = \"nile\"\nendpoints = [\"https://127.0.0.1:9/first\", \
         \"https://127.0.0.2:9/second\"]\naccount_key = \"{key}\"\n[issuers.acme]\nname = \
         \"Acme\"\n",
        server.folder.display()
    );
    start_with_file(&server, &usual).await;
    let (_, count) = settings_kept(&server).await;
    start_with_file(&server, &usual).await;
    let mut expected = count;
    assert_eq!(settings_kept(&server).await.1, expected, "nothing changed");
    for (from, to, changed) in [
        ("00112233445566", "00112233445567", "bank"),
        ("9/first", "9/other", "live_chain"),
        ("Acme", "Another", "issuers"),
    ] {
        start_with_file(&server, &usual.replace(from, to)).await;
        let (entry, count) = settings_kept(&server).await;
        expected += 1;
        assert_eq!((count, entry.detail("changed").as_deref()), (expected, Some(changed)));
        assert!(!entry.details.contains(from) && !entry.details.contains(to), "{entry:?}");
        start_with_file(&server, &usual).await;
        expected += 1;
    }
}

/// Each alarm that a service can have without a chain, with the way to its runbook.
#[tokio::test(flavor = "multi_thread")]
async fn alarms_stand_on_the_overview_with_their_runbooks() {
    let folder = std::env::temp_dir().join(format!("hundi-alarms-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (list, config) = (folder.join("own.csv"), folder.join("hundi.toml"));
    let columns = "id,name,aliases,date_of_birth,country,address,note\n";
    std::fs::write(&list, format!("{columns}1,Somebody Listed,,,,,\n")).unwrap();
    let text = format!("[screening]\noperator_file = '{}'\n", list.display());
    std::fs::write(&config, text).unwrap();
    let server = console_with(&[("CONFIG", config.to_str().unwrap())]).await;
    let client = server.client().await;
    let wanted = json!({ "url": "http://127.0.0.1:1/", "enabled_events": ["*"] });
    let endpoint = client.post("/v1/webhook_endpoints", wanted).await.ok();
    assert_eq!(endpoint["status"], "enabled");
    let pause = server.app.state.store.write(|tx, now| {
        let by = DecidedBy::new("asha", "a drill").unwrap();
        // As the worker does after days without an answer.
        let sql = "UPDATE webhook_endpoints SET status = 'disabled', disabled_reason = \
                   'delivery_failures', disabled_milliseconds = 1, version = version + 1";
        tx.execute_one(sql, &[])?;
        Ok(hundi::pauses::pause(tx, now, hundi::pauses::Operation::Payouts, None, &by)?)
    });
    pause.await.unwrap();
    let mut viewer = signed_in(&server, "viewer").await;
    let alarms = async |viewer: &mut Browser<'_>, mode: &str| {
        let page = viewer.get(&format!("/console?mode={mode}")).await.body;
        let rows = page.split("<tr").filter(|row| row.contains("/console/runbooks/"));
        rows.map(str::to_owned).collect::<Vec<_>>()
    };
    let of_test = alarms(&mut viewer, "test").await;
    let of_live = alarms(&mut viewer, "live").await;
    let is_there = |rows: &[String], name: &str, what: &str| {
        let link = format!("/console/runbooks/{name}\"");
        rows.iter().any(|row| row.contains(&link) && row.contains(what))
    };
    assert!(is_there(&of_test, "HundiPaused", "everybody"), "{of_test:#?}");
    assert!(is_there(&of_test, "HundiWebhooksFail", "http://127.0.0.1:1/"), "{of_test:#?}");
    assert!(is_there(&of_live, "HundiSanctionsListOld", "ofac"), "{of_live:#?}");
    assert!(!is_there(&of_live, "HundiWebhooksFail", ""), "the endpoint is of test mode");
    for name in ["HundiPaused", "HundiWebhooksFail", "HundiSanctionsListOld"] {
        assert_eq!(viewer.get(&format!("/console/runbooks/{name}")).await.status, 200, "{name}");
    }
    // The lists, and the endpoint that fails, below.
    let page = viewer.get("/console?mode=test").await.body;
    let row = |text: &str| page.split("<tr").find(|row| row.contains(text)).map(str::to_owned);
    let listed = row("operator").unwrap_or_else(|| panic!("no list in {page}"));
    assert!(listed.contains(">1<"), "its entries: {listed}");
    let failing = page.matches("http://127.0.0.1:1/").count();
    assert!(failing >= 2, "among the alarms and among the endpoints: {page}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// How far the long work has come, as the store has it.
#[tokio::test(flavor = "multi_thread")]
async fn work_under_way_shows_its_place_and_its_end() {
    const ACCOUNT_KEY: &str = concat!(
        "xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7",
        "dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd"
    );
    let server = console_with(&[
        ("HUNDI_TEST_CHAIN_PRESET", "nile"),
        ("HUNDI_TEST_CHAIN_ENDPOINTS", "http://127.0.0.1:9/a,http://127.0.0.2:9/b"),
        ("HUNDI_TEST_CHAIN_ACCOUNT_KEY", ACCOUNT_KEY),
    ])
    .await;
    server.client().await;
    let mut viewer = signed_in(&server, "viewer").await;
    let before = viewer.get("/console/work").await.body;
    assert!(before.contains("Nobody was screened again yet"), "{before}");
    let plant = async |ended_at: Option<i64>, completed_milliseconds: i64| {
        let walk = json!({ "began_at": 1_790_000_000, "account_number": 1, "is_beneficiaries":
            true, "count": 4_711, "reached": 1_780_000_000, "ended_at": ended_at });
        let planted = server.app.state.store.write(move |tx, _| {
            let text = serde_json::to_vec(&walk).unwrap();
            hundi::store::meta::write(tx, "screening_walk", &text)?;
            tx.execute("DELETE FROM chain_audits", &[])?;
            let sql = "INSERT INTO chain_audits (mode, chain, height, block_hash, \
                       completed_milliseconds) VALUES ('test', 'tron', 8150, ?1, ?2)";
            Ok(tx.execute(sql, hundi::values![&"ab".repeat(32), completed_milliseconds])?)
        });
        assert_eq!(planted.await.unwrap(), 1);
    };
    plant(None, 0).await;
    let page = viewer.get("/console/work").await.body;
    for text in ["4711", "account 1 of 1", "Beneficiaries", ">8150<"] {
        assert!(page.contains(text), "no {text} in {page}");
    }
    assert!(!page.contains("Ended") && !page.contains("2026-09-20"), "{page}");
    plant(Some(1_790_000_500), 1_789_900_000_000).await;
    let page = viewer.get("/console/work").await.body;
    for text in ["Completed", "4711", "Ended"] {
        assert!(page.contains(text), "no {text} in {page}");
    }
    assert!(!page.contains("account 1 of 1"), "{page}");
    let row = page.split("<tr").find(|row| row.contains(">8150<")).unwrap();
    assert!(row.contains("<time"), "when the whole was compared last: {row}");
}

/// However many endpoints are well, one that fails stands on the overview, and one that has work on
/// the page of work; lists of them that end before all are shown say so.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_in_trouble_is_not_crowded_out() {
    let server = console_with(&[]).await;
    server.client().await;
    let plant = async |from: i64, until: i64, status: &'static str| {
        let planted = server.app.state.store.write(move |tx, now| {
            for number in from..until {
                let id: Id<kind::WebhookEndpoint> = now.mint();
                let url = format!("https://endpoint-{number}.example/");
                let scope = Scope::new(1, Mode::Test);
                let sql = "INSERT INTO webhook_endpoints (scope, id, version, url, enabled_events, \
                           status, secrets_sealed, metadata, created) VALUES (?1, ?2, 1, ?3, '*', \
                           ?4, ?5, '{}', 1)";
                let sealed = StoreValue::Bytes(&[0; 8]);
                let values = [scope.into(), id.into(), url.as_str().into(), status.into(), sealed];
                tx.execute(sql, &values)?;
            }
            Ok(())
        });
        planted.await.unwrap();
    };
    plant(0, 600, "enabled").await;
    plant(600, 601, "failing").await;
    let mut browser = signed_in(&server, "viewer").await;
    let overview = browser.get("/console?mode=test").await.body;
    assert!(overview.contains("https://endpoint-600.example/"), "{overview}");
    assert!(!overview.contains("there are more"), "{overview}");
    let account = browser.get("/console/accounts/1?skip=0").await.body;
    assert!(account.contains("https://endpoint-600.example/"), "{account}");
}
