//! A bank without ISO 20022: payments in a CSV for its portal, and results in a CSV or by hand.

use crate::support::by;
use hundi::kernel::Id;
use hundi::kernel::Now;
use hundi::kernel::id::kind;
use hundi::operator::{OperatorDecision, decide};
use hundi::payouts::state::PayoutStatus;
use hundi::rails::FailureCode;
use hundi::rails::files::rows::Attention;
use hundi::rails::files::values::EndToEndId;
use hundi::store::Tx;
use hundi::workers::bank::publish::{FaultPoint, ORDER, PublishStep};

use crate::bank::{PAID, Scene};

async fn by_hand(scene: &Scene, payout_id: Id<kind::Payout>, decision: OperatorDecision) {
    let services = scene.server.app.state.services.clone();
    let decide = move |tx: &mut dyn Tx, now: &mut Now| {
        decide(tx, now, &services, payout_id.any(), &decision, &by())
    };
    scene.server.app.state.store.write(decide).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn payouts_go_through_a_portal_and_its_results_settle_or_fail_them() {
    let mut scene = Scene::with(Vec::new(), "format = 'csv_bulk'\n").await;
    let mut payouts = Vec::new();
    for amount in ["100.00", "110.00", "120.00", "130.00", "140.00"] {
        payouts.push(scene.payout(PAID, amount).await.1);
    }
    let [paid, closed, funds, silent, again] = payouts[..] else { panic!() };
    assert_eq!(scene.turn().await.published_count, 5);
    let files = scene.taken();
    let [file] = &files[..] else { panic!("{files:?}") };
    for payout_id in &payouts {
        let amount = scene.find(*payout_id).await.amount;
        let row = format!("{},NEFT,{amount},INR,", EndToEndId::of(*payout_id));
        assert!(file.contains(&row), "{row} is not in\n{file}");
    }
    assert!(file.contains(",50100012345678,NRE,"));

    let row = |payout_id, rest: &str| format!("{},{rest}\n", EndToEndId::of(payout_id));
    let results = [
        "payment_reference,status,amount,utr,reason\n".to_owned(),
        row(paid, &format!("PAID,{},SBIN126166441955,", scene.find(paid).await.amount)),
        row(closed, "failed,,,AC04"),
        row(funds, "failed,,,AM04"),
        row(again, "paid,1.00,SBIN126166441956,"),
        row(silent, "whatever,,,"),
    ];
    scene.put("results.csv", results.concat().as_bytes());
    scene.turn().await;
    let turn = scene.turn().await;
    assert_eq!((turn.counts.applied, turn.counts.unknown, turn.alarms_count), (3, 1, 1));
    let settled = scene.find(paid).await;
    assert_eq!(
        (settled.status, settled.unique_transaction_reference.as_deref()),
        (PayoutStatus::Settled, Some("SBIN126166441955"))
    );
    assert_eq!(scene.find(closed).await.failure.unwrap().code, FailureCode::AccountClosed);
    assert_eq!(scene.find(funds).await.failure.unwrap().code, FailureCode::OutcomeUnknown);
    assert_eq!(scene.find(again).await.status, PayoutStatus::Processing, "another amount");

    // By hand, as where the portal gives no results.
    by_hand(&scene, silent, OperatorDecision::Settle("AXISP00494478733".into())).await;
    by_hand(&scene, funds, OperatorDecision::Resend).await;
    assert_eq!(scene.turn().await.published_count, 1);
    assert!(scene.taken()[0].contains(&EndToEndId::of(funds).to_string()));
    assert_eq!(scene.find(silent).await.status, PayoutStatus::Settled);
    // The same results again change nothing.
    scene.put("copy.csv", results.concat().as_bytes());
    scene.turn().await;
    assert_eq!(scene.turn().await.counts.applied, 0);
    scene.assert_book();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_may_be_about_the_file_before_the_newest() {
    let mut scene = Scene::with(Vec::new(), "format = 'csv_bulk'\n").await;
    let (_, paid) = scene.payout(PAID, "100.00").await;
    let (_, twice) = scene.payout(PAID, "110.00").await;
    let (_, once) = scene.payout(PAID, "120.00").await;
    assert_eq!(scene.turn().await.published_count, 3);
    let results = |lines: &[(Id<kind::Payout>, &str)]| {
        let mut text = "payment_reference,status,utr,reason\n".to_owned();
        for (payout_id, rest) in lines {
            text += &format!("{},{rest}\n", EndToEndId::of(*payout_id));
        }
        text
    };
    let refused = [(paid, "failed,,AM04"), (twice, "failed,,AM04")];
    assert_eq!(scene.hear(&[results(&refused)]).await.alarms_count, 2);

    // While the second file is written, the bank can only speak of the first.
    by_hand(&scene, paid, OperatorDecision::Resend).await;
    let stop = FaultPoint::After(PublishStep::Claim);
    assert!(scene.publish_in(&ORDER, Some(stop)).await.is_err());
    scene.put("closed.csv", results(&[(paid, "failed,,AC04")]).as_bytes());
    scene.bank.receive_only(&scene.server.app.state).await.unwrap();
    scene.bank.receive_only(&scene.server.app.state).await.unwrap();
    assert_eq!(scene.find(paid).await.failure, None);

    // The portal lists the earlier results once more, among new ones.
    by_hand(&scene, twice, OperatorDecision::Resend).await;
    assert_eq!(scene.turn().await.published_count, 2);
    let again = [(paid, "failed,,AC04"), (twice, "failed,,AC04"), (once, "failed,,AC04")];
    assert_eq!(scene.hear(&[results(&again)]).await.alarms_count, 2);
    for payout_id in [paid, twice] {
        let payout = scene.find(payout_id).await;
        assert_eq!(payout.status, PayoutStatus::Processing);
        assert_eq!(payout.failure.unwrap().code, FailureCode::OutcomeUnknown);
        let attention = scene.attention(payout_id).await.map(Attention::as_str);
        assert_eq!(attention, Some("refusal_unclear"));
        assert!(scene.decide(payout_id, OperatorDecision::Resend).await.is_err());
    }
    assert_eq!(scene.find(once).await.status, PayoutStatus::Failed, "it was in one file only");

    let both = [(paid, "paid,SBIN126166441955,"), (twice, "paid,AXISP00494478733,")];
    assert_eq!(scene.hear(&[results(&both)]).await.alarms_count, 0);
    assert_eq!(scene.find(paid).await.status, PayoutStatus::Settled);
    assert_eq!(scene.attention(paid).await, None);
    // Both files were paid.
    let other = [(twice, "paid,YESAP61641609940,")];
    assert_eq!(scene.hear(&[results(&other)]).await.alarms_count, 1);
    assert_eq!(scene.attention(twice).await, Some(Attention::PaidTwice));
    scene.assert_book();
}
