//! Ways in which a real difference could stay unseen, or a false one be shown.

use hundi::kernel::id::kind;
use hundi::kernel::{Id, Money, Now};
use hundi::oversight::closing;
use hundi::rails::files::rows;
use hundi::rails::files::values::{Day, EndToEndId};
use hundi::reconcile::{self, DifferenceKind, Report};
use hundi::store::Tx;

use crate::bank::Scene;
use crate::money::{Entry, UTR, credit, debit, notification, refs, statement};

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

impl Scene {
    async fn report(&self) -> Report {
        self.server.app.state.store.write(|tx, _| Ok(reconcile::run(tx)?)).await.unwrap()
    }

    async fn count_of(&self, kind: DifferenceKind) -> usize {
        self.differences().await.into_iter().filter(|found| *found == kind).count()
    }

    /// Changes rows behind the service's back.
    async fn execute(&self, sql: &'static str) {
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
        Ok(rows::share(tx, now, line.id, &found)?)
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
    // The control: one debit for both.
    let named = payouts.map(|id| {
        format!("<TxDtls><Refs><EndToEndId>{}</EndToEndId></Refs></TxDtls>", EndToEndId::of(id))
    });
    let paid = debit(sum, format!("<NtryDtls>{}</NtryDtls>", named.concat()));
    scene.hear(&[late("D2", -sum.units, &[paid])]).await;
    assert_eq!(scene.count_of(DifferenceKind::SettledWithoutLine).await, 0);
    assert_eq!(scene.count_of(DifferenceKind::PaidTwice).await, 0);
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
    assert!(report.counts.iter().any(|line| line.contains(&told)), "{:?}", report.counts);
    let bank = |tx: &mut dyn Tx, _: &mut Now| {
        let bank = |tx: &mut dyn Tx, day| closing::rows::bank(tx, day);
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
        Ok((reconcile::rows::closed_until(tx)?, closing::rows::bank(tx, day(DAY))?.is_none()))
    };
    assert_eq!(scene.server.app.state.store.write(ask).await.unwrap(), (None, true));
    assert_eq!(scene.differences().await, Vec::new());
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
        (vec![&line, "--payout", &first, "--payout", &second], "money came"),
    ] {
        let (is_done, told) = accept(&more);
        assert!(!is_done && told.contains(wanted), "{more:?}: {told}");
    }
    let (is_done, told) = accept(&[&line]);
    assert!(is_done, "{told}");
    let (is_done, told) = accept(&[&line]);
    assert!(!is_done && told.contains("waits"), "once: {told}");
}
