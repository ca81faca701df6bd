//! Ways in which a real difference could stay unseen, or a false one be shown.

use hundi::kernel::id::kind;
use hundi::kernel::{Id, Mode, Money, Now};
use hundi::operator::OperatorDecision;
use hundi::oversight::{closing, story};
use hundi::payouts::state::PayoutStatus;
use hundi::rails::files::rows;
use hundi::rails::files::values::{Day, EndToEndId};
use hundi::reconcile::{self, DifferenceKind, Report, explaining, kept};
use hundi::store::{Cost, Tx};
use hundi::values;
use hundi::workers::bank;

use crate::bank::{PAID, Scene};
use crate::money::{
    Entry, UTR, credit, debit, entry, notification, reason, refs, refusal, statement, status,
};
use crate::viewer::Viewer;

/// A day that every payment of a test is settled before.
const DAY: &str = "2099-01-01";
const OTHER_UTR: &str = "<ClrSysRef>AXISP00494478733</ClrSysRef>";

/// A statement of [`DAY`] from nothing to what its entries leave, in paise.
fn late(id: &str, closing: i64, entries: &[Entry]) -> String {
    statement(id, id, "", closing, entries).replace("2026-11-21<", &format!("{DAY}<"))
}

fn day(text: &str) -> Day {
    Day::parse(text).unwrap()
}

/// A page of a statement, with the balances that it has.
struct Page<'a> {
    id: &'a str,
    day: &'a str,
    number: usize,
    opening: Option<(&'a str, i64)>,
    closing: Option<i64>,
    entries: &'a [Entry<'a>],
}

impl Page<'_> {
    fn text(&self) -> String {
        let balance = |kind: &str, units: i64| {
            let sign = if units < 0 { "DBIT" } else { "CRDT" };
            let amount = Money::new(units.abs(), hundi::kernel::Currency::Inr);
            format!(
                "<Bal><Tp><CdOrPrtry><Cd>{kind}</Cd></CdOrPrtry></Tp><Amt Ccy=\"INR\">{amount}\
                 </Amt><CdtDbtInd>{sign}</CdtDbtInd><Dt><Dt>{}</Dt></Dt></Bal>",
                self.day
            )
        };
        let entries: String = self.entries.iter().map(entry).collect();
        let opening = self.opening.map(|(kind, units)| balance(kind, units)).unwrap_or_default();
        let closing = self.closing.map(|units| balance("CLBD", units)).unwrap_or_default();
        let Page { id, number, .. } = self;
        format!(
            "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.053.001.08\"><BkToCstmrStmt>\
             <GrpHdr><MsgId>{id}-{number}</MsgId><CreDtTm>2026-11-21T10:00:00</CreDtTm></GrpHdr>\
             <Stmt><Id>{id}</Id><StmtPgntn><PgNb>{number}</PgNb><LastPgInd>false</LastPgInd>\
             </StmtPgntn><Acct><Id><Othr><Id>00112233445566</Id></Othr></Id></Acct>{opening}\
             {closing}{entries}</Stmt></BkToCstmrStmt></Document>"
        )
    }
}

impl Scene {
    async fn report(&self) -> Report {
        self.server.app.state.store.write(|tx, _| Ok(reconcile::run(tx)?)).await.unwrap()
    }

    async fn count_of(&self, kind: DifferenceKind) -> usize {
        self.differences().await.into_iter().filter(|found| *found == kind).count()
    }

    /// Changes rows behind the service's back.
    pub async fn execute(&self, sql: &'static str) {
        let execute = move |tx: &mut dyn Tx, _: &mut Now| Ok(tx.execute(sql, &[])?);
        assert!(self.server.app.state.store.write(execute).await.unwrap() > 0, "{sql}");
    }

    /// Two payouts that the bank reported as paid, and their amounts.
    async fn two_settled(&mut self) -> ([Id<kind::Payout>; 2], [Money; 2]) {
        let (_, first, _) = self.sent("100.00").await;
        let (_, second, _) = self.sent("110.00").await;
        let amounts = [self.find(first).await.amount, self.find(second).await.amount];
        let lines =
            [debit(amounts[0], refs(first, UTR)), debit(amounts[1], refs(second, OTHER_UTR))];
        assert_eq!(self.hear(&[notification("N1", &lines)]).await.counts.applied, 2);
        ([first, second], amounts)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credit_is_no_payment_of_several_payouts() {
    let mut scene = Scene::new(Vec::new()).await;
    let (payouts, [one, two]) = scene.two_settled().await;
    let sum = one.plus(two).unwrap();
    scene.hear(&[late("D1", sum.units, &[credit(sum, String::new())])]).await;
    assert_eq!(scene.count_of(DifferenceKind::SettledWithoutLine).await, 2);
    let share = move |tx: &mut dyn Tx, now: &mut Now| {
        let line = rows::unmatched(tx, 10)?.pop().unwrap();
        let found = payouts.map(|id| rows::find(tx, id).unwrap().unwrap());
        Ok(rows::match_to_payouts(tx, now, line.id, &found)?)
    };
    assert!(!scene.server.app.state.store.write(share).await.unwrap(), "money came, and none went");
    assert_eq!(scene.count_of(DifferenceKind::LineUnmatched).await, 1);
    // As an earlier version has written it.
    scene
        .execute(
            "INSERT INTO bank_line_shares (line_id, payout_id, scope, units) SELECT l.id, \
             i.payout_id, i.scope, i.units FROM bank_statement_lines l CROSS JOIN \
             bank_instructions i",
        )
        .await;
    assert_eq!(scene.count_of(DifferenceKind::SettledWithoutLine).await, 2);
    assert_eq!(scene.count_of(DifferenceKind::ReturnedAtBank).await, 0, "no line of theirs");
    let signs = async |scene: &Scene| {
        let first = payouts[0];
        let read = move |tx: &mut dyn Tx| Ok(story::rows::bank_lines(tx, first, 10)?);
        let found = scene.server.app.state.store.read(Cost::Scan, read).await.unwrap();
        found.into_iter().map(|line| line.sign).collect::<Vec<String>>()
    };
    assert_eq!(signs(&scene).await, [""; 0], "nor does its story tell of money that came back");
    // The control: one debit for both.
    let named = payouts.map(|id| {
        format!("<TxDtls><Refs><EndToEndId>{}</EndToEndId></Refs></TxDtls>", EndToEndId::of(id))
    });
    let paid = debit(sum, format!("<NtryDtls>{}</NtryDtls>", named.concat()));
    scene.hear(&[late("D2", -sum.units, &[paid])]).await;
    assert_eq!(scene.count_of(DifferenceKind::SettledWithoutLine).await, 0);
    assert_eq!(scene.count_of(DifferenceKind::PaidTwice).await, 0);
    assert_eq!(signs(&scene).await, ["debit"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_debit_paid_to_several_is_in_the_sums() {
    let mut scene = Scene::new(Vec::new()).await;
    let (payouts, [one, two]) = scene.two_settled().await;
    let sum = one.plus(two).unwrap();
    let named = payouts.map(|id| {
        format!("<TxDtls><Refs><EndToEndId>{}</EndToEndId></Refs></TxDtls>", EndToEndId::of(id))
    });
    let lines = [
        debit(sum, format!("<NtryDtls>{}</NtryDtls>", named.concat())),
        credit(one, refs(payouts[0], "")),
        debit(two, String::new()),
    ];
    scene.hear(&[late("D1", -two.units - two.units, &lines)]).await;
    let report = scene.report().await;
    let told = format!("3 lines; payouts: {sum} INR paid, {one} INR sent back");
    assert!(report.summary.iter().any(|one| one.contains(&told)), "{:?}", report.summary);
    let bank = |tx: &mut dyn Tx, _: &mut Now| {
        let bank = |tx: &mut dyn Tx, day| closing::rows::bank(tx, Mode::Test, day);
        Ok((bank(tx, day(DAY))?.unwrap(), bank(tx, day("2098-12-31"))?.unwrap()))
    };
    let (day, before) = scene.server.app.state.store.write(bank).await.unwrap();
    assert_eq!((day.debit_units, day.credit_units), (sum.units, one.units));
    assert_eq!((before.debit_units, before.credit_units), (0, 0), "another day");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_closes_its_day_once_its_file_is_applied() {
    let mut scene = Scene::new(Vec::new()).await;
    scene.two_settled().await;
    scene.hear(&[late("D1", 0, &[])]).await;
    assert_eq!(scene.count_of(DifferenceKind::SettledWithoutLine).await, 2);
    // Its head is kept, and its lines are still to come.
    scene.execute("UPDATE bank_files SET status = 'reading' WHERE message_id = 'D1'").await;
    let ask = |tx: &mut dyn Tx, _: &mut Now| {
        Ok((
            reconcile::rows::closed_until(tx)?,
            closing::rows::bank(tx, Mode::Test, day(DAY))?.is_none(),
        ))
    };
    assert_eq!(scene.server.app.state.store.write(ask).await.unwrap(), (None, true));
    assert_eq!(scene.differences().await, Vec::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_is_the_sum_of_its_pages() {
    let mut scene = Scene::new(Vec::new()).await;
    let inr = |units| Money::new(units, hundi::kernel::Currency::Inr);
    let line = |units| [credit(inr(units), String::new())];
    let (one, two, three) = (line(100), line(200), line(300));
    let page = |id, day, number, opening, closing, entries| Page {
        id,
        day,
        number,
        opening,
        closing,
        entries,
    };
    let files = [
        page("D1", "2026-11-19", 1, Some(("OPBD", 1_000)), None, &one).text(),
        page("D1", "2026-11-19", 2, None, None, &two).text(),
        page("D1", "2026-11-19", 3, None, Some(1_600), &three).text(),
        // The opening is the closing of the day before, and says so.
        page("D2", "2026-11-20", 1, Some(("PRCD", 1_600)), None, &one)
            .text()
            .replace("2026-11-20<", "2026-11-19<"),
        page("D2", "2026-11-20", 2, None, None, &two).text(),
        page("D2", "2026-11-20", 3, None, Some(1_900), &[]).text(),
        // Every page repeats the balances of the whole.
        page("D3", "2026-11-21", 2, Some(("OPBD", 1_900)), Some(2_200), &two).text(),
        page("D3", "2026-11-21", 1, Some(("OPBD", 1_900)), Some(2_200), &one).text(),
    ];
    scene.hear(&files).await;
    let of_statements = async |scene: &Scene| {
        let mut found = scene.report().await.differences;
        found.retain(|difference| difference.kind != DifferenceKind::LineUnmatched);
        found.into_iter().map(|d| (d.kind, d.what, d.amount.units, d.detail)).collect::<Vec<_>>()
    };
    assert_eq!(of_statements(&scene).await, []);
    // A page that lacks, a sum that is off, and an opening that is another day's.
    let files = [
        page("D4", "2026-11-22", 1, Some(("OPBD", 2_200)), None, &one).text(),
        page("D4", "2026-11-22", 3, None, Some(2_600), &two).text(),
        page("D5", "2026-11-23", 1, Some(("OPBD", 2_700)), None, &one).text(),
        page("D5", "2026-11-23", 2, None, Some(2_801), &[]).text(),
    ];
    scene.hear(&files).await;
    let lacks = Some("page 2 is missing".to_owned());
    assert_eq!(
        of_statements(&scene).await,
        [
            (DifferenceKind::StatementSum, "D4".to_owned(), -100, lacks),
            (DifferenceKind::StatementSum, "D5".to_owned(), -1, None),
            (DifferenceKind::StatementGap, "D5".to_owned(), 100, None),
        ]
    );
    let late = page("D4", "2026-11-22", 2, None, None, &line(100)).text();
    scene.hear(&[late]).await;
    let found = of_statements(&scene).await;
    assert!(found.iter().all(|(_, what, ..)| what == "D5"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_statements_the_newest_are_compared() {
    let mut scene = Scene::new(Vec::new()).await;
    let day = |id: &str, day: &str| statement(id, id, "", 0, &[]).replace("2026-11-21<", day);
    let files = [day("D2", "2026-11-20<"), day("D3", "2026-11-21<"), day("D1", "2026-11-19<")];
    scene.hear(&files).await;
    let newest = |tx: &mut dyn Tx, _: &mut Now| {
        let found = reconcile::rows::statement_pages(tx, 2)?;
        Ok(found.into_iter().map(|found| found.statement_id).collect::<Vec<_>>())
    };
    let mut found = scene.server.app.state.store.write(newest).await.unwrap();
    found.sort();
    assert_eq!(found, ["D2", "D3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn explained_differences_hide_none_that_come_after_them() {
    const COUNT: u32 = 1_001;
    let mut scene = Scene::new(Vec::new()).await;
    let (_, real) = scene.payout(PAID, "100.00").await;
    scene.turn().await;
    let plant = move |tx: &mut dyn Tx, now: &mut Now| {
        let unknown = "UPDATE payouts SET failure_code = 'outcome_unknown' WHERE id = ?1";
        assert_eq!(tx.execute(unknown, values![real])?, 1);
        let units = rows::find(tx, real)?.unwrap().units;
        for number in 1..=COUNT {
            let id: Id<kind::Payout> = Id::from_u128(u128::from(number));
            tx.execute(
                "INSERT INTO payouts (scope, id, version, transfer_id, beneficiary_id, status, \
                 currency, units, method, purpose_code, failure_code, status_history, created) \
                 SELECT scope, ?1, version, transfer_id, beneficiary_id, status, currency, units, \
                 method, purpose_code, failure_code, status_history, created FROM payouts WHERE \
                 id = ?2",
                values![id, real],
            )?;
            tx.execute(
                "INSERT INTO bank_instructions (payout_id, scope, units, method, status, \
                 is_answered, created) SELECT ?1, scope, units, method, status, is_answered, \
                 created FROM bank_instructions WHERE payout_id = ?2",
                values![id, real],
            )?;
            let (kind, subject) = ("outcome_unknown", id.to_string());
            rows::keep_explanation(tx, now, kind, &subject, units, "explained")?;
        }
        Ok(())
    };
    scene.server.app.state.store.write(plant).await.unwrap();
    let report = scene.report().await;
    let what: Vec<&str> = report.differences.iter().map(|found| found.what.as_str()).collect();
    assert_eq!((what, report.differences_count), (vec![real.to_string().as_str()], 1));
    // Of more than are listed, all are counted.
    scene.execute("DELETE FROM bank_closed_differences").await;
    let report = scene.report().await;
    assert_eq!(report.differences.len(), reconcile::DIFFERENCES_SHOWN_MAX);
    assert_eq!(report.differences_count, COUNT as usize + 1);
    // One that is not listed is explained like any other.
    let subject = real.to_string();
    assert!(report.differences.iter().all(|found| found.what != subject));
    let explain = move |tx: &mut dyn Tx, now: &mut Now| {
        let amount = explaining::amount_of(tx, &subject, None)?;
        Ok((amount, explaining::explain_by_subject(tx, now, &subject, None, "the bank paid it")?))
    };
    let (amount, kinds) = scene.server.app.state.store.write(explain).await.unwrap();
    assert!(amount.is_some());
    assert_eq!(kinds, [DifferenceKind::OutcomeUnknown]);
    assert_eq!(scene.report().await.differences_count, COUNT as usize);
}

#[tokio::test(flavor = "multi_thread")]
async fn deposits_that_the_book_has_nothing_of_are_a_difference() {
    let mut scene = Scene::new(Vec::new()).await;
    scene.two_settled().await;
    assert_eq!(scene.count_of(DifferenceKind::DepositsBook).await, 0);
    scene.execute("DELETE FROM ledger_balances WHERE account = 'custody'").await;
    assert_eq!(scene.count_of(DifferenceKind::DepositsBook).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_explanation_says_why() {
    let mut scene = Scene::new(Vec::new()).await;
    let ([first, second], [one, two]) = scene.two_settled().await;
    let sum = one.plus(two).unwrap();
    scene.hear(&[late("D1", sum.units, &[credit(sum, String::new())])]).await;
    let line = |tx: &mut dyn Tx, _: &mut Now| Ok(rows::unmatched(tx, 10)?.pop().unwrap().id);
    let line = scene.server.app.state.store.write(line).await.unwrap().to_string();
    let accept = |more: &[&str]| {
        let told = scene
            .server
            .binary(&["reconcile", "--database", &scene.server.database_url, "--accept"])
            .args(more)
            .output()
            .unwrap();
        let text = [told.stdout, told.stderr].concat();
        (told.status.success(), String::from_utf8(text).unwrap())
    };
    let (first, second) = (first.to_string(), second.to_string());
    let stranger = Id::<kind::Payout>::from_u128(7).to_string();
    let unknown = "request_01K5ZZZZZZ7Q2X7N4V6T9R0ABC";
    for (more, wanted) in [
        (vec![unknown], "waits"),
        (vec![unknown, "--payout", &first], "waits"),
        (vec![unknown, "--payout", &first, "--payout", &second], "waits"),
        (vec![&line, "--payout", "payout"], "is no payout's ID"),
        (vec![&line, "--payout", &stranger], "was never given to the bank"),
        (vec![&line, "--payout", &first], "the line's amount is"),
        (vec![&line, "--payout", &first, "--payout", &second], "this line is a credit"),
    ] {
        let (is_done, told) = accept(&more);
        assert!(!is_done && told.contains(wanted), "{more:?}: {told}");
    }
    // A line needs no kind, and one that is given changes nothing.
    let kind = ["--kind", "line_unmatched", "--reason", "two payouts came back in one"];
    let (is_done, told) = accept(&[&[line.as_str()], kind.as_slice()].concat());
    assert!(is_done, "{told}");
    let left = |tx: &mut dyn Tx, _: &mut Now| Ok(rows::unmatched_count(tx)?);
    assert_eq!(scene.server.app.state.store.write(left).await.unwrap(), 0);
    let (is_done, told) = accept(&[&line]);
    assert!(!is_done && told.contains("waits"), "once: {told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_goes_out_once_more_is_told_as_such() {
    let mut scene = Scene::new(Vec::new()).await;
    let (_, payout_id, message) = scene.sent("100.00").await;
    let amount = scene.find(payout_id).await.amount;
    let refused = refusal(payout_id, &reason("AM04", "INSUFFICIENT BALANCE"));
    scene.hear(&[status("S1", &message, "", &refused)]).await;
    scene.decide(payout_id, OperatorDecision::Resend).await.unwrap();
    // It is being written into a new file while the bank says that the first one paid.
    scene.execute("UPDATE bank_instructions SET status = 'writing'").await;
    // The operator cannot settle it meanwhile: then nobody would know of the second payment.
    let settle = OperatorDecision::Settle("AXISP00494478733".to_owned());
    let declined = scene.decide(payout_id, settle).await.unwrap_err();
    assert!(declined.to_string().contains("is being written"), "{declined}");
    scene.put("paid.xml", notification("N1", &[debit(amount, refs(payout_id, UTR))]).as_bytes());
    for _ in 0..2 {
        scene.bank.receive_only(&scene.server.app.state).await.unwrap();
    }
    assert_eq!(scene.find(payout_id).await.status, PayoutStatus::Settled);
    let found = scene.report().await.differences;
    let told = found.iter().find(|found| found.what == payout_id.to_string()).unwrap();
    let detail = told.detail.as_deref().unwrap();
    assert_eq!(told.kind, DifferenceKind::HeldForDecision, "it neither failed nor came back");
    assert!(detail.contains("have the bank stop the second payment"), "{detail}");
    assert!(!detail.contains("refund"), "there is none: {detail}");
}

/// What the worker's comparison has found stands in the console, until it is explained or gone.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_comparison_found_stands_in_the_console_until_it_is_explained() {
    let mut scene = Scene::new(Vec::new()).await;
    let state = scene.server.app.state.clone();
    let viewer = Viewer::of(state.clone()).await;
    let ([first, second], [one, two]) = scene.two_settled().await;
    let queue = "/console/queues/differences?mode=test";
    bank::compare(&state).await;
    let page = viewer.page(queue).await;
    assert!(!page.contains("Paid twice") && page.contains("class=\"empty\""), "{page}");
    let work = viewer.page("/console/work").await;
    assert!(work.contains("Compared with the book") && work.contains("Agrees"), "{work}");

    let paid = |other: &'static str| {
        [debit(one, refs(first, UTR)), debit(one, refs(first, other)), debit(two, refs(second, ""))]
    };
    let closing = -one.units - one.units - two.units - 1;
    scene.hear(&[late("D1", closing, &paid("<ClrSysRef>AXISP00494478999</ClrSysRef>"))]).await;
    assert_eq!(
        scene.differences().await,
        [DifferenceKind::PaidTwice, DifferenceKind::StatementSum]
    );
    bank::compare(&state).await;
    let page = viewer.page(queue).await;
    let row = |page: &str, text: &str| {
        page.split("<tr").skip(1).find(|row| row.contains(text)).map(str::to_owned)
    };
    let twice = row(&page, "Paid twice").unwrap_or_else(|| panic!("no payout paid twice: {page}"));
    assert!(twice.contains(&format!("/console/objects/{first}")), "{twice}");
    let sum = row(&page, "D1").unwrap_or_else(|| panic!("no statement: {page}"));
    assert!(sum.contains("0.01"), "{sum}");
    // Of live mode there is nothing: this bank is test mode's.
    let live = viewer.page("/console/queues/differences?mode=live").await;
    assert!(!live.contains("Paid twice"), "{live}");
    let work = viewer.page("/console/work").await;
    assert!(work.contains("/console/queues/differences?mode=test\">2<"), "{work}");
    viewer.page_with("/console?mode=test", "/console/runbooks/HundiBankDiffers").await;

    // Explained, it is gone at once; the other one stays.
    let explain = move |tx: &mut dyn Tx, now: &mut Now| {
        let subject = first.to_string();
        Ok(explaining::explain_by_subject(tx, now, &subject, None, "the bank sends it back")?)
    };
    assert_eq!(state.store.write(explain).await.unwrap(), [DifferenceKind::PaidTwice]);
    let page = viewer.page(queue).await;
    assert!(!page.contains("Paid twice") && row(&page, "D1").is_some(), "{page}");
    // It stays away after the next comparison, and the other keeps its age.
    bank::compare(&state).await;
    let again = viewer.page(queue).await;
    assert!(!again.contains("Paid twice") && row(&again, "D1").is_some(), "{again}");
}

/// A payout that was paid after it had failed takes no decision, so it is explained among the
/// differences. One that takes a decision is not among them.
#[tokio::test(flavor = "multi_thread")]
async fn a_payment_after_a_failure_is_explained_among_the_differences() {
    let mut scene = Scene::new(Vec::new()).await;
    let state = scene.server.app.state.clone();
    let viewer = Viewer::of(state.clone()).await;
    let (_, failed, message) = scene.sent("100.00").await;
    let amount = scene.find(failed).await.amount;
    let closed = refusal(failed, &reason("AC04", "ACCOUNT CLOSED"));
    scene.hear(&[status("S1", &message, "", &closed)]).await;
    scene.hear(&[notification("N1", &[debit(amount, refs(failed, UTR))])]).await;
    let (_, decided, message) = scene.sent("110.00").await;
    let refused = refusal(decided, &reason("AM04", "INSUFFICIENT BALANCE"));
    scene.hear(&[status("S2", &message, "", &refused)]).await;
    assert_eq!(scene.report().await.differences_count, 2);

    bank::compare(&state).await;
    let kept = async || {
        let read = |tx: &mut dyn Tx| Ok(kept::read(tx)?.unwrap());
        let found = state.store.read(Cost::Scan, read).await.unwrap().differences;
        found.into_iter().map(|found| (found.kind, found.what)).collect::<Vec<_>>()
    };
    let kind = DifferenceKind::PaidAfterFailed.as_str();
    assert_eq!(kept().await, [(kind.to_owned(), failed.to_string())]);
    let queue = "/console/queues/differences?mode=test";
    let page = viewer.page(queue).await;
    assert!(page.contains(&format!("/console/objects/{failed}")), "{page}");
    assert!(!page.contains(&format!("/console/objects/{decided}")), "{page}");

    let explain = move |tx: &mut dyn Tx, now: &mut Now| {
        let subject = failed.to_string();
        Ok(explaining::explain_by_subject(tx, now, &subject, Some(kind), "it came back")?)
    };
    assert_eq!(state.store.write(explain).await.unwrap(), [DifferenceKind::PaidAfterFailed]);
    assert!(kept().await.is_empty());
    let page = viewer.page(queue).await;
    assert!(!page.contains(&format!("/console/objects/{failed}")), "{page}");
}

/// The worker compares again once somebody has decided, or a statement has come.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_has_the_worker_compare_again() {
    let mut scene = Scene::new(Vec::new()).await;
    let state = scene.server.app.state.clone();
    let ([first, second], [_, two]) = scene.two_settled().await;
    // The bank's statement does not show the first one.
    scene.hear(&[late("D1", -two.units, &[debit(two, refs(second, OTHER_UTR))])]).await;
    let is_outdated = async || {
        let read = |tx: &mut dyn Tx| Ok(kept::is_outdated(tx)?);
        state.store.read(Cost::Scan, read).await.unwrap()
    };
    assert!(is_outdated().await, "nothing was compared yet");
    bank::compare(&state).await;
    assert!(!is_outdated().await);
    let kept = |tx: &mut dyn Tx| Ok(kept::read(tx)?.unwrap());
    let found = state.store.read(Cost::Scan, kept).await.unwrap();
    assert_eq!(found.differences.len(), 1, "{found:?}");
    assert_eq!(found.differences[0].kind, DifferenceKind::SettledWithoutLine.as_str());
    scene.decide(first, OperatorDecision::Return).await.unwrap();
    assert!(is_outdated().await, "somebody has decided");
    bank::compare(&state).await;
    assert!(!is_outdated().await);
    // What is still different keeps the time at which it was found first.
    let again = state.store.read(Cost::Scan, kept).await.unwrap();
    assert!(again.differences.contains(&found.differences[0]), "{again:?}");
    // A statement that closes another day.
    scene.hear(&[late("D2", -two.units, &[]).replace(DAY, "2099-01-02")]).await;
    assert!(is_outdated().await);
}
