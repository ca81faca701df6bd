//! What a bank says of a payment that it refused, paid twice or must not make any more.

use hundi::kernel::Now;
use hundi::operator::OperatorDecision;
use hundi::payouts::state::PayoutStatus;
use hundi::rails::FailureCode;
use hundi::rails::files::rows::{self, Attention, Journalled};
use hundi::reconcile::explaining;
use hundi::store::Tx;
use hundi::workers::bank::Bank;
use hundi::workers::bank::publish::{FaultPoint, ORDER, PublishStep};

use crate::bank::{PAID, Scene};
use crate::money::{UTR, credit, debit, notification, reason, refs, refusal, statement, status};

const OTHER_UTR: &str = "<ClrSysRef>AXISP00494478733</ClrSysRef>";

/// The bank refuses a payment for a cause on our side, and books it all the same, without a
/// reference that proves it. It must not go out again, whether the operator has asked for that
/// already or asks afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_bank_refused_and_booked_does_not_go_out_again() {
    for is_asked_first in [true, false] {
        let mut scene = Scene::new(Vec::new()).await;
        let (_, payout_id, message) = scene.sent("100.00").await;
        let amount = scene.find(payout_id).await.amount;
        let refused = refusal(payout_id, &reason("AM04", "INSUFFICIENT BALANCE"));
        scene.hear(&[status("S1", &message, "", &refused)]).await;
        if is_asked_first {
            scene.decide(payout_id, OperatorDecision::Resend).await.unwrap();
            scene.put(
                "booked.xml",
                notification("N1", &[debit(amount, refs(payout_id, ""))]).as_bytes(),
            );
            for _ in 0..2 {
                scene.bank.receive_only(&scene.server.app.state).await.unwrap();
            }
        } else {
            scene.hear(&[notification("N1", &[debit(amount, refs(payout_id, ""))])]).await;
        }
        assert_eq!(scene.attention(payout_id).await, Some(Attention::RefusedAfterPaid));
        assert!(scene.decide(payout_id, OperatorDecision::Resend).await.is_err());
        assert_eq!(scene.turn().await.published_count, 0, "asked first: {is_asked_first}");
    }
}

/// One of two payments that comes back is not the return of the payout: the other one stands.
#[tokio::test(flavor = "multi_thread")]
async fn the_return_of_one_of_two_payments_refunds_nothing_by_itself() {
    let mut scene = Scene::new(Vec::new()).await;
    let (_, payout_id, _) = scene.sent("100.00").await;
    let amount = scene.find(payout_id).await.amount;
    scene.hear(&[notification("N1", &[debit(amount, refs(payout_id, UTR))])]).await;
    assert_eq!(scene.find(payout_id).await.status, PayoutStatus::Settled);
    // The same payment again is none.
    let day = statement("D1", "DAY-1", "", -amount.units, &[debit(amount, refs(payout_id, UTR))]);
    assert_eq!(scene.hear(&[day]).await.alarms_count, 0);
    let turn =
        scene.hear(&[notification("N2", &[debit(amount, refs(payout_id, OTHER_UTR))])]).await;
    assert_eq!(turn.alarms_count, 1);
    assert_eq!(scene.attention(payout_id).await, Some(Attention::PaidTwice));
    scene.hear(&[notification("N3", &[credit(amount, refs(payout_id, ""))])]).await;
    assert_eq!(scene.find(payout_id).await.status, PayoutStatus::Settled);
}

/// The bank paid the first file after all, while the second one is with it already.
#[tokio::test(flavor = "multi_thread")]
async fn a_payment_of_the_first_file_is_told_when_the_second_is_with_the_bank() {
    let mut scene = Scene::new(Vec::new()).await;
    let (_, payout_id, first) = scene.sent("100.00").await;
    let refused = refusal(payout_id, &reason("AM04", "INSUFFICIENT BALANCE"));
    scene.hear(&[status("S1", &first, "", &refused)]).await;
    scene.decide(payout_id, OperatorDecision::Resend).await.unwrap();
    assert_eq!(scene.turn().await.published_count, 1);
    let paid = refusal(payout_id, OTHER_UTR).replace("RJCT", "ACSC");
    assert_eq!(scene.hear(&[status("S2", &first, "", &paid)]).await.alarms_count, 1);
    assert_eq!(scene.find(payout_id).await.status, PayoutStatus::Settled);
    assert_eq!(scene.attention(payout_id).await, Some(Attention::PaidAndSentAgain));
}

/// An instruction waits for the bank's hours or the end of a pause. Who was refused meanwhile is
/// not paid.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_paid_who_may_not_be_paid_any_more() {
    for refused in [
        "UPDATE beneficiaries SET payouts_enabled = FALSE, payouts_disabled_reason = \
         'compliance_hold'",
        "UPDATE senders SET screening = 'possible_match'",
    ] {
        let mut scene = Scene::new(Vec::new()).await;
        let (_, payout_id) = scene.payout(PAID, "100.00").await;
        scene.execute(refused).await;
        assert_eq!(scene.turn().await.published_count, 0, "{refused}");
        let payout = scene.find(payout_id).await;
        assert_eq!(payout.status, PayoutStatus::Processing);
        assert_eq!(payout.failure.unwrap().code, FailureCode::OutcomeUnknown);
        scene.decide(payout_id, OperatorDecision::Fail).await.unwrap();
        assert_eq!(scene.find(payout_id).await.status, PayoutStatus::Failed);
    }
    // The control.
    let mut scene = Scene::new(Vec::new()).await;
    scene.payout(PAID, "100.00").await;
    assert_eq!(scene.turn().await.published_count, 1);
}

/// A fault of what goes out keeps nobody from hearing what the bank says.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_written_keeps_no_report_from_being_read() {
    let mut scene = Scene::new(Vec::new()).await;
    let (_, paid, _) = scene.sent("100.00").await;
    let amount = scene.find(paid).await.amount;
    scene.payout(PAID, "120.00").await;
    // The folder for the next file is gone.
    let outbox = scene.bank.folders().outbox.clone();
    std::fs::remove_dir_all(&outbox).unwrap();
    scene.put("paid.xml", notification("N1", &[debit(amount, refs(paid, UTR))]).as_bytes());
    for _ in 0..2 {
        scene.bank.turn(&scene.server.app.state).await.unwrap_err();
    }
    assert_eq!(scene.find(paid).await.status, PayoutStatus::Settled);
}

/// What is listed as under way or as waiting for the operator: nothing that somebody has decided or
/// explained, and nothing that has ended.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_operator_has_dealt_with_is_under_way_no_more() {
    let mut scene = Scene::new(Vec::new()).await;
    let (_, explained, _) = scene.sent("100.00").await;
    let (_, failed, _) = scene.sent("110.00").await;
    let amounts = [scene.find(explained).await.amount, scene.find(failed).await.amount];
    let twice =
        [debit(amounts[0], refs(explained, UTR)), debit(amounts[0], refs(explained, OTHER_UTR))];
    scene.hear(&[statement("D1", "DAY-1", "", -2 * amounts[0].units, &twice)]).await;
    scene.hear(&[notification("N1", &[credit(amounts[1], refs(failed, ""))])]).await;
    // It is unknown whether the bank has the file of a third.
    let (_, unknown) = scene.payout(PAID, "120.00").await;
    let stop = FaultPoint::After(PublishStep::RecordStaged);
    scene.publish_in(&ORDER, Some(stop)).await.unwrap_err();
    let settings = scene.settings.clone();
    scene.bank = Bank::open_in_boot(settings, Some("boot-2".into())).unwrap();
    scene.turn().await;
    let (_, queued) = scene.payout(PAID, "130.00").await;

    let listed = async |scene: &Scene| {
        let read = scene.server.app.state.store.write(|tx, _| Ok(rows::under_way(tx, 10)?));
        let attention = |found: Journalled| (found.payout_id, found.attention);
        read.await.unwrap().into_iter().map(attention).collect::<Vec<_>>()
    };
    let all = [
        (explained, Some(Attention::PaidTwice)),
        (failed, Some(Attention::ReturnedWhileProcessing)),
        (unknown, None),
        (queued, None),
    ];
    assert_eq!(listed(&scene).await, all);

    let subject = explained.to_string();
    let close = move |tx: &mut dyn Tx, now: &mut Now| {
        Ok(explaining::explain_by_subject(tx, now, &subject, None, "one came back")?)
    };
    scene.server.app.state.store.write(close).await.unwrap();
    scene.decide(failed, OperatorDecision::Fail).await.unwrap();
    scene.decide(unknown, OperatorDecision::Settle("SBIN126166441957".into())).await.unwrap();
    assert_eq!(listed(&scene).await, [(queued, None)]);
}
