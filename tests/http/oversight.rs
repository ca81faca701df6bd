//! What the operator sees: the search, the story of a transfer, the queues and the day's flow.

use hundi::kernel::id::kind;
use hundi::kernel::{Id, Mode, StoreError};
use hundi::operator::{self, OperatorDecision};
use hundi::oversight::closing;
use hundi::oversight::flow::DayCount;
use hundi::oversight::queues::{self, QueueFacts, QueueKind};
use hundi::oversight::story::{self, Story, StoryTheme};
use hundi::oversight::{AccountNames, overview, search};
use hundi::rails::files::values::Day;
use hundi::store::key_segments::KeySegments;
use hundi::store::{EachUpdate, Row, Signal, Tx, Value as StoreValue, meta};
use hundi::transfers::state::TransferStatus;
use hundi::values;
use hundi::workers::name_words;
use serde_json::{Value, json};

use crate::stage::{self, Actor, SETTLES};
use crate::support::{Server, by, id, is_on_postgres};

async fn view<T: Send + 'static>(
    server: &Server,
    read: impl Fn(&mut dyn Tx) -> T + Send + 'static,
) -> T {
    server.app.state.store.write(move |tx, _| Ok(read(tx))).await.unwrap()
}

/// The identifiers that a search finds, whatever their kind.
async fn found(server: &Server, asked: &str) -> Vec<String> {
    let asked = asked.to_owned();
    view(server, move |tx| {
        let accounts = AccountNames::read(tx).unwrap();
        let found = search::find(tx, &accounts, &asked).unwrap();
        let mut ids: Vec<String> =
            found.transfers.iter().map(|found| found.id.to_string()).collect();
        ids.extend(found.payouts.iter().map(|found| found.id.to_string()));
        ids.extend(found.deposits.iter().map(|found| found.id.to_string()));
        ids.extend(found.refunds.iter().map(|found| found.id.to_string()));
        ids.extend(found.beneficiaries.iter().map(|found| found.id.to_string()));
        ids.extend(found.senders.iter().map(|found| found.id.to_string()));
        ids.extend(found.quote_locks.iter().map(|found| found.id.to_string()));
        ids.extend(found.endpoints.iter().map(|found| found.id.to_string()));
        ids.extend(found.events.iter().map(|(_, event)| event.id.to_string()));
        ids
    })
    .await
}

async fn story_of(server: &Server, transfer: &Value) -> Story {
    let id = Id::parse(&id(transfer)).unwrap();
    view(server, move |tx| {
        let accounts = AccountNames::read(tx).unwrap();
        let scope = operator::find_scope(tx, Id::any(id)).unwrap().unwrap();
        story::read(tx, &accounts, scope, id, 0).unwrap().unwrap()
    })
    .await
}

/// Where several nodes write, events become visible a moment later.
async fn wait_for_event(actor: &Actor, linked_id: &str, event_type: &str) {
    let path = format!("/v1/events?linked_id={linked_id}");
    let is_there = |page: &Value| {
        page["data"].as_array().unwrap().iter().any(|event| event["type"] == event_type)
    };
    actor.client.wait_until(&path, is_there).await;
}

async fn queue(server: &Server, kind: QueueKind) -> Vec<queues::Item> {
    view(server, move |tx| {
        let accounts = AccountNames::read(tx).unwrap();
        queues::read(tx, kind, &accounts, Mode::Test, &["tron"]).unwrap().items
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paid_transfer_is_found_by_everything_that_names_it_and_tells_its_story() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "found").await;
    let beneficiary_id = actor.beneficiary(SETTLES).await;
    let mut body = actor.transfer_body(&beneficiary_id, "1000.00", json!({})).await;
    body["reference"] = json!("Invoice 4711/b");
    let transfer = actor.client.post("/v1/transfers", body.clone()).await.ok();
    actor.pay(&transfer, "1000.00").await;
    actor.finalise().await;
    actor.advance(10 * stage::STEP).await;
    let shown = actor.shown(&transfer).await;
    assert_eq!(shown["status"], "payout_settled");

    let payout_id = shown["payout_id"].as_str().unwrap();
    wait_for_event(&actor, payout_id, "payout.status.settled").await;
    let transfer_id = id(&transfer);
    let deposits = stage::all(&actor.client, "/v1/deposits").await;
    let address = transfer["funding"]["deposit_address"].as_str().unwrap();
    let utr = shown["payout"]["unique_transaction_reference"].as_str().unwrap();
    let hash = deposits[0]["transaction_hash"].as_str().unwrap();
    for asked in [
        transfer_id.as_str(),
        &format!("  {transfer_id}\n"),
        "Invoice 4711/b",
        address,
        utr,
        &utr.to_lowercase(),
        hash,
    ] {
        assert!(found(&server, asked).await.contains(&transfer_id), "{asked}");
    }
    for exact in [
        payout_id,
        &id(&deposits[0]),
        &beneficiary_id,
        body["sender_id"].as_str().unwrap(),
        body["quote_lock_id"].as_str().unwrap(),
    ] {
        assert_eq!(found(&server, exact).await, [exact], "{exact}");
    }
    // Exact means exact: neither another case of the caller's reference nor a part of anything.
    for asked in ["invoice 4711/b", "Invoice 4711", &utr[..12], &hash[..40], "", " ", "%", "_"] {
        assert_eq!(found(&server, asked).await, [""; 0], "{asked}");
    }

    let story = story_of(&server, &transfer).await;
    assert_eq!(story.account, "found");
    let moments = story.moments();
    assert!(moments.is_sorted_by_key(|moment| moment.at));
    let themes = |theme: StoryTheme| {
        let of_theme = moments.iter().filter(|moment| moment.theme == theme);
        of_theme.map(|moment| moment.what.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(themes(StoryTheme::Quote), ["locked"]);
    let statuses = ["funding", "funded", "payout_processing", "payout_settled"];
    assert_eq!(themes(StoryTheme::Transfer), statuses);
    assert_eq!(themes(StoryTheme::Deposit).last(), Some(&"completed"));
    assert_eq!(themes(StoryTheme::Payout), ["initialized", "processing", "settled"]);
    assert!(moments.iter().any(|moment| moment.facts.contains(&("utr", utr.to_owned()))));
    let entries: Vec<_> = story.postings.iter().map(|posting| posting.entry.as_str()).collect();
    assert_eq!(
        entries,
        [
            "deposit_credited",
            "transfer_funded",
            "payout_exchanged",
            "payout_exchanged",
            "payout_settled"
        ]
    );
    let announced: Vec<_> =
        story.announced.iter().map(|announced| announced.event.event_type.as_str()).collect();
    assert!(announced.contains(&"payout.status.settled"), "{announced:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_found_by_the_beginning_of_each_word_of_the_name() {
    let server = Server::start().await;
    let client = server.client().await;
    let person = |name: &str| json!({ "name": name, "type": "individual", "country": "AE" });
    let anil = id(&client.post("/v1/senders", person("Anil Kumar Nair")).await.ok());
    let anita = id(&client.post("/v1/senders", person("ANITA D'Souza")).await.ok());
    let beneficiary = client.beneficiary("50100012345678").await;
    let draft = json!({ "name": "Zoya Anand", "account_number": "50100012345678",
        "ifsc": "HDFC0000001", "account_type": "nre", "submit": false });
    let draft = id(&client.post("/v1/beneficiaries", draft).await.ok());
    for (asked, wanted) in [
        ("anil", vec![&anil]),
        ("NAIR ani", vec![&anil]),
        ("ani", vec![&anil, &anita]),
        ("souza", vec![&anita]),
        ("nil", vec![]),
        ("zoya", vec![&draft]),
    ] {
        let mut found = found(&server, asked).await;
        found.retain(|found| *found != id(&beneficiary));
        found.sort();
        let mut wanted: Vec<String> = wanted.into_iter().cloned().collect();
        wanted.sort();
        assert_eq!(found, wanted, "{asked}");
    }
    // A new name is found, and the old one no longer.
    let path = format!("/v1/beneficiaries/{draft}");
    client.post(&path, json!({ "name": "Yasmin Anand" })).await.ok();
    assert_eq!(found(&server, "yasmin").await, [draft.as_str()]);
    assert_eq!(found(&server, "zoya").await, [""; 0]);

    // Names whose words an earlier release kept are walked through once more.
    client.post(&path, json!({ "name": "Yasmin O’Brien" })).await.ok();
    view(&server, |tx| {
        tx.execute(
            "DELETE FROM name_words WHERE word IN (?1, ?2)",
            values![&b"brien"[..], &b"obrien"[..]],
        )
        .unwrap();
        tx.execute("DELETE FROM meta WHERE name LIKE 'name_words_place%'", &[]).unwrap();
        meta::write(tx, "name_words_place", b"done").unwrap();
    })
    .await;
    assert_eq!(found(&server, "brien").await, [""; 0]);
    view(&server, |tx| while !name_words::step(tx).unwrap() {}).await;
    for asked in ["obrien", "o'brien", "brien", "yasmin"] {
        assert_eq!(found(&server, asked).await, [draft.as_str()], "{asked}");
    }
    client.post(&path, json!({ "name": "Yasmin Anand" })).await.ok();

    // Names from before the words were kept are walked through.
    view(&server, |tx| {
        tx.execute("DELETE FROM name_words", &[]).unwrap();
        tx.execute("DELETE FROM meta WHERE name LIKE 'name_words_place%'", &[]).unwrap();
    })
    .await;
    assert_eq!(found(&server, "anil").await, [""; 0]);
    view(&server, |tx| while !name_words::step(tx).unwrap() {}).await;
    assert_eq!(found(&server, "anil").await, [anil.as_str()]);
    assert_eq!(found(&server, "yasmin").await, [draft.as_str()]);
}

/// A transfer in a hold, because too little had come when the time to pay was over.
pub async fn underpaid(actor: &Actor) -> Value {
    let held = actor.transfer(SETTLES, json!({})).await;
    actor.pay(&held, "900.00").await;
    actor.finalise().await;
    actor.advance(1900).await;
    held
}

/// When a hold ends by itself.
fn until(item: &queues::Item) -> Option<i64> {
    match item.facts {
        QueueFacts::Hold { until, .. } => until,
        _ => panic!("no hold: {item:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_that_becomes_a_review_shows_no_end() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "reviewed").await;
    let held = underpaid(&actor).await;
    assert!(until(&queue(&server, QueueKind::Holds).await[0]).is_some());
    let services = server.app.state.services.clone();
    let transfer_id: Id<kind::Transfer> = Id::parse(&id(&held)).unwrap();
    let review = OperatorDecision::Review;
    let decide = server.app.state.store.write(move |tx, now| {
        operator::decide(tx, now, &services, transfer_id.any(), &review, &by())
    });
    decide.await.unwrap();
    let items = queue(&server, QueueKind::Holds).await;
    assert_eq!((items[0].reason.as_str(), until(&items[0])), ("compliance_review", None));
    // It is not refunded when the hold's end would have come.
    actor.advance(25 * 3600).await;
    assert_eq!(actor.shown(&held).await["status"], "funding_hold");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_person_stands_in_its_queue_until_it_is_decided() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "waits").await;
    let held = underpaid(&actor).await;
    assert_eq!(actor.shown(&held).await["status"], "funding_hold");
    let items = queue(&server, QueueKind::Holds).await;
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].reason, "underpaid");
    assert_eq!(items[0].amount.unwrap().to_string(), "900.00");
    assert!(until(&items[0]).is_some());
    // Refunded without an address: it waits for one.
    actor.advance(25 * 3600).await;
    assert_eq!(actor.shown(&held).await["status"], "refund_processing");
    assert!(queue(&server, QueueKind::Holds).await.is_empty());
    let items = queue(&server, QueueKind::RefundAddresses).await;
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].reasons().collect::<Vec<_>>(), ["underpaid", "requires_address"]);
    assert!(queue(&server, QueueKind::Refunds).await.is_empty());
    // Money after the end matches nothing.
    actor.pay(&held, "5.00").await;
    actor.finalise().await;
    let items = queue(&server, QueueKind::Unmatched).await;
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].amount.unwrap().to_string(), "5.00");
    // A name that may be on a list, with both sides.
    let name = hundi::screening::simulated::POSSIBLE_NAME;
    let person = json!({ "name": name, "type": "individual", "country": "AE" });
    actor.client.post("/v1/senders", person).await.ok();
    let items = queue(&server, QueueKind::Reviews).await;
    assert_eq!(items.len(), 1);
    let QueueFacts::Review { screened, list, entry_id, evidence, .. } = &items[0].facts else {
        panic!("{items:?}")
    };
    assert_eq!(screened.as_deref(), Some(name));
    assert_eq!((list.as_str(), entry_id.as_str()), ("test", "test-2"));
    assert!(evidence.contains("listed name"), "{evidence}");

    let lines = view(&server, |tx| {
        let accounts = AccountNames::read(tx).unwrap();
        queues::lines(tx, &accounts, Mode::Test, &["tron"]).unwrap()
    })
    .await;
    let waiting = |kind| lines.iter().find(|line| line.kind == kind).unwrap().count;
    assert_eq!(waiting(QueueKind::Reviews), 1);
    assert_eq!(waiting(QueueKind::Unmatched), 1);
    assert_eq!(waiting(QueueKind::Payouts), 0);
    let live = view(&server, |tx| {
        let accounts = AccountNames::read(tx).unwrap();
        queues::lines(tx, &accounts, Mode::Live, &["tron"]).unwrap()
    })
    .await;
    assert!(live.iter().all(|line| line.count == 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_flow_of_the_day_counts_each_status_once_however_often_it_is_looked_at() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "flow").await;
    let first = actor.transfer(SETTLES, json!({})).await;
    let second = actor.transfer(SETTLES, json!({})).await;
    actor.pay(&first, "1000.00").await;
    actor.finalise().await;
    actor.advance(10 * stage::STEP).await;
    actor.cancel(&second).await.ok();
    assert_eq!(actor.shown(&first).await["status"], "payout_settled");
    wait_for_event(&actor, &id(&second), "transfer.status.cancelled").await;
    let instant = server.app.state.store.clock.milliseconds() / 1000;
    let flow = view(&server, move |tx| {
        let accounts = AccountNames::read(tx).unwrap();
        let mut day = DayCount::default();
        for _ in 0..3 {
            day.count_new(tx, accounts.scopes(), instant).unwrap();
        }
        day.sum(|scope| scope.mode() == Mode::Test)
    })
    .await;
    assert!(flow.is_whole);
    assert_eq!(flow.quotes.count, 2);
    assert_eq!(flow.of(TransferStatus::Funding).count, 2);
    for status in [TransferStatus::Funded, TransferStatus::PayoutSettled, TransferStatus::Cancelled]
    {
        assert_eq!(flow.of(status).count, 1, "{status:?}");
    }
    let paise = |transfer: &Value| {
        transfer["payout_amount"].as_str().unwrap().replace('.', "").parse::<i64>().unwrap()
    };
    assert_eq!(flow.of(TransferStatus::PayoutSettled).units, paise(&first));
    assert_eq!(flow.of(TransferStatus::Funding).units, paise(&first) + paise(&second));

    let services = server.app.state.services.clone();
    let read = view(&server, move |tx| {
        let accounts = AccountNames::read(tx).unwrap();
        let (mut day, mode, at) = (DayCount::default(), Mode::Test, instant * 1_000);
        overview::read(tx, &mut day, &accounts, mode, &["tron"], &services, at).unwrap()
    })
    .await;
    assert_eq!(read.flow, flow);
    assert!(read.ledger_balances.iter().any(|(account, _)| account.as_str() == "paid_out"));

    // The closing of the account's own day adds up, and agrees with the chain.
    let day = Day::at(actor.now()).unwrap();
    let closing = view(&server, move |tx| closing::read(tx, Mode::Test, day).unwrap()).await;
    assert!(!closing.lines.is_empty());
    for line in &closing.lines {
        let moved = line.opening.plus(line.debits).unwrap().minus(line.credits).unwrap();
        assert_eq!(moved, line.closing, "{line:?}");
    }
    let deposited = closing.comparisons.iter().find(|line| line.what == "deposited").unwrap();
    assert_eq!(deposited.book.to_string(), "1000.00");
    assert!(deposited.difference().unwrap().is_zero());
    assert!(closing.to_csv().lines().count() > closing.lines.len());
}

/// A transaction that asks SQLite for its plan of each query, and notes which tables it reads in
/// whole or through a whole index.
struct Planned<'a> {
    tx: &'a mut dyn Tx,
    statements_count: usize,
    scans: Vec<(String, String)>,
}

/// Tables that do not grow with the history of payments.
const BOUNDED_TABLES: &[&str] = &[
    "accounts",
    "ledger_balances",
    "market_rates",
    "pauses",
    "webhook_endpoints",
    "webhook_queues",
];

impl Planned<'_> {
    /// Whether a line of a plan goes over more than what waits. `is_sorted` says that the plan
    /// sorts what it read.
    fn is_scan(&mut self, sql: &str, line: &str, is_sorted: bool) -> bool {
        let Some(what) = line.strip_prefix("SCAN ") else { return false };
        let alias = what.split(' ').next().unwrap_or("");
        let of_alias = |table: &&&str| sql.contains(&format!("{table} {alias} "));
        let is_bounded = BOUNDED_TABLES.contains(&alias)
            || BOUNDED_TABLES.iter().find(of_alias).is_some()
            || ["counted", "waiting", "(subquery", "CONSTANT"].contains(&alias);
        // The first rows in the order of a key.
        let is_first = !sql.contains("WHERE") && sql.contains("LIMIT") && !is_sorted;
        let index = what.split("INDEX ").nth(1).unwrap_or("");
        let known = "SELECT 1 FROM sqlite_master WHERE name = ?1 AND sql LIKE '% WHERE %'";
        let is_partial = self.tx.row(known, &[index.into()]).unwrap().is_some();
        !(is_bounded || is_first || is_partial)
    }

    /// Asks for the plan of a query, and notes its scans.
    fn note_plan(&mut self, sql: &str, values: &[StoreValue<'_>]) -> Result<(), StoreError> {
        self.statements_count += 1;
        let mut plan = Vec::new();
        for mut row in self.tx.rows(&format!("EXPLAIN QUERY PLAN {sql}"), values)? {
            // Its number, that of the line above it, and one that is not used.
            let _ = (row.int()?, row.int()?, row.int()?);
            plan.push(row.text()?);
        }
        let is_sorted = plan.iter().any(|line| line.contains("TEMP B-TREE FOR ORDER BY"));
        for line in plan {
            if self.is_scan(sql, &line, is_sorted) {
                self.scans.push((line, sql.to_owned()));
            }
        }
        Ok(())
    }
}

impl Tx for Planned<'_> {
    fn execute(&mut self, sql: &str, values: &[StoreValue<'_>]) -> Result<u64, StoreError> {
        self.tx.execute(sql, values)
    }
    fn rows(&mut self, sql: &str, values: &[StoreValue<'_>]) -> Result<Vec<Row>, StoreError> {
        self.note_plan(sql, values)?;
        self.tx.rows(sql, values)
    }
    fn rows_each(
        &mut self,
        select: &str,
        first: StoreValue<'_>,
        keys: &[StoreValue<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        for key in keys {
            self.note_plan(&format!("{select} = ?2"), &[first, *key])?;
        }
        self.tx.rows_each(select, first, keys)
    }
    fn update_each(
        &mut self,
        update: &EachUpdate<'_>,
        keys: &[StoreValue<'_>],
    ) -> Result<Vec<bool>, StoreError> {
        self.tx.update_each(update, keys)
    }
    fn savepoint(&mut self) -> Result<(), StoreError> {
        self.tx.savepoint()
    }
    fn release(&mut self) -> Result<(), StoreError> {
        self.tx.release()
    }
    fn rollback_and_release(&mut self) -> Result<(), StoreError> {
        self.tx.rollback_and_release()
    }
    fn rollback_to(&mut self) -> Result<(), StoreError> {
        self.tx.rollback_to()
    }
    fn signal(&mut self, signal: Signal) {
        self.tx.signal(signal);
    }
    fn is_shared(&self) -> bool {
        self.tx.is_shared()
    }
    fn key_segments(&mut self) -> Result<&mut KeySegments, StoreError> {
        self.tx.key_segments()
    }
}

/// On SQLite no statement of the overview and the queues goes over a table that grows with history.
/// `tests/postgres/plans.rs` has the same for PostgreSQL.
#[tokio::test(flavor = "multi_thread")]
async fn sqlite_reads_what_waits_and_not_what_is_done() {
    if is_on_postgres() {
        return;
    }
    let server = Server::start().await;
    let client = server.client().await;
    client.deposit(&client.transfer().await, json!({})).await;
    let services = server.app.state.services.clone();
    let milliseconds = server.app.state.store.clock.milliseconds();
    let (count, scans, control) = view(&server, move |tx| {
        let mut planned = Planned { tx, statements_count: 0, scans: Vec::new() };
        let (chains, mut day) = (["tron"], DayCount::default());
        let mode = Mode::Test;
        let accounts = AccountNames::read(&mut planned).unwrap();
        let read = |tx: &mut dyn Tx, day: &mut DayCount| {
            overview::read(tx, day, &accounts, mode, &chains, &services, milliseconds).unwrap();
            for queue in QueueKind::ALL {
                queues::read(tx, *queue, &accounts, mode, &chains).unwrap();
            }
        };
        read(&mut planned, &mut day);
        let scans = std::mem::take(&mut planned.scans);
        // The control: a query that reads every transfer is found out.
        planned.rows("SELECT 1 FROM transfers WHERE payout_units = ?1", &[1.into()]).unwrap();
        (planned.statements_count, scans, planned.scans.len())
    })
    .await;
    assert!(count > 40, "only {count} statements");
    assert_eq!(scans, Vec::new());
    assert_eq!(control, 1);
}
