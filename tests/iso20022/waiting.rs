//! Payments that wait: of paused accounts, and at a bank that takes its time.

use std::fs;
use std::path::Path;

use hundi::backlog::{self, WaitingCount};
use hundi::kernel::state::Status;
use hundi::kernel::{Currency, Id, Mode, Money, Now, Scope};
use hundi::pauses::{self, Operation};
use hundi::rails::files::rows;
use hundi::rails::port::{Instruction, PaymentMethod};
use hundi::store::{Cost, Tx};
use hundi::workers::bank::publish::{FaultPoint, ORDER, PublishStep};

use crate::bank::{PAID, SILENT, Scene};
use crate::support::by;

/// A payment is late once the bank has had it for longer than its hours allow: three for NEFT.
#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_the_bank_keeps_for_too_long_is_counted() {
    let mut scene = Scene::new(Vec::new()).await;
    let late = async |scene: &Scene, minutes: i64| {
        let state = &scene.server.app.state;
        let (services, at) = (state.services.clone(), state.store.clock.milliseconds());
        let read = state.store.read(Cost::Point, move |tx| {
            Ok(backlog::waiting(tx, &services, at + minutes * 60_000)?)
        });
        let found = read.await.unwrap();
        let is_it = |one: &&WaitingCount| one.of == "settlements_late" && one.mode == Mode::Test;
        found.iter().find(is_it).map(|one| (one.count, one.oldest_at.is_some())).unwrap()
    };
    scene.payout(SILENT, "100.00").await;
    assert_eq!(late(&scene, 10_000).await, (0, false), "the bank does not have it yet");
    assert_eq!(scene.turn().await.published_count, 1);
    assert_eq!(late(&scene, 175).await, (0, false));
    assert_eq!(late(&scene, 185).await, (1, true));
    // What the bank has paid is late no more.
    let (_, paid) = scene.payout(PAID, "100.00").await;
    scene.exchange().await;
    assert_eq!(scene.find(paid).await.status.as_str(), "settled");
    assert_eq!(late(&scene, 185).await, (1, true));
}

/// However many payments of one account wait for the end of its pause, those of others go out.
#[tokio::test(flavor = "multi_thread")]
async fn a_paused_account_keeps_no_other_waiting() {
    const PAUSED: i64 = 900;
    let mut scene = Scene::new(Vec::new()).await;
    // One more than a worker that reads a few and passes over the paused ones would look at.
    let count = 10_001 + scene.settings.batch_instructions_max as u128;
    let plant = move |tx: &mut dyn Tx, now: &mut Now| {
        pauses::pause(tx, now, Operation::Payouts, Some(PAUSED), &by())?;
        for number in 1..=count {
            let payout_id = Id::from_u128(number);
            let (scope, amount) = (Scope::new(PAUSED, Mode::Live), Money::new(100, Currency::Inr));
            let instruction = Instruction {
                scope,
                payout_id,
                amount,
                method: PaymentMethod::Neft,
                account_number_last4: String::new(),
                ifsc: String::new(),
                age_milliseconds: 0,
                is_settled: false,
            };
            rows::queue(tx, now, &instruction)?;
        }
        Ok(())
    };
    scene.server.app.state.store.write(plant).await.unwrap();
    let (_, free) = scene.payout(PAID, "100.00").await;
    assert_eq!(scene.turn().await.published_count, 1);
    assert!(scene.taken()[0].contains(&free.to_string().replace("payout_", "")));
    // While everybody's payouts are paused, none goes.
    let pause = |tx: &mut dyn Tx, now: &mut Now| {
        Ok(pauses::pause(tx, now, Operation::Payouts, None, &by())?)
    };
    let (_, late) = scene.payout(PAID, "100.00").await;
    scene.server.app.state.store.write(pause).await.unwrap();
    assert_eq!(scene.turn().await.published_count, 0);
    let resume = |tx: &mut dyn Tx, _: &mut Now| Ok(pauses::resume(tx, Operation::Payouts, None)?);
    scene.server.app.state.store.write(resume).await.unwrap();
    assert_eq!(scene.turn().await.published_count, 1);
    assert_ne!(free, late);
}

/// The files in `staging` and in `outbox`.
fn files_count(scene: &Scene) -> (usize, usize) {
    let count = |folder: &Path| fs::read_dir(folder).unwrap().count();
    let folders = scene.bank.folders();
    (count(&folders.staging), count(&folders.outbox))
}

/// A pause stops a file that is claimed or staged, and its payouts go out once after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_stops_a_file_that_is_not_published() {
    let mut scene = Scene::new(Vec::new()).await;
    let state = scene.server.app.state.clone();
    let (_, payout_id) = scene.payout(PAID, "100.00").await;
    let account_number = scene.find(payout_id).await.scope.account_number();
    let pause = move |tx: &mut dyn Tx, now: &mut Now| {
        Ok(pauses::pause(tx, now, Operation::Payouts, Some(account_number), &by())?)
    };
    let resume = move |tx: &mut dyn Tx, _: &mut Now| {
        Ok(pauses::resume(tx, Operation::Payouts, Some(account_number))?)
    };
    // The pause waits for the store behind the claim, so it comes before the file is staged. With
    // several lanes that is not sure.
    if !state.store.is_shared() {
        let publish = scene.publish_in(&ORDER, None);
        let (published, paused) = tokio::join!(publish, state.store.write(pause));
        paused.unwrap();
        assert_eq!(published.unwrap(), 0);
        assert_eq!(files_count(&scene), (0, 0));
        assert!(state.store.write(resume).await.unwrap());
    }
    let stop = FaultPoint::After(PublishStep::RecordStaged);
    for is_crash in [false, true] {
        assert!(scene.publish_in(&ORDER, Some(stop)).await.is_err());
        state.store.write(pause).await.unwrap();
        if is_crash {
            // The service stopped after it had withdrawn the file.
            for name in scene.bank.folders().staged().unwrap() {
                let withdrawn = scene.bank.folders().staging.join(format!("{name}.withdrawn"));
                fs::rename(scene.bank.folders().staging.join(name), withdrawn).unwrap();
            }
        }
        assert_eq!(scene.turn().await.published_count, 0);
        assert_eq!(files_count(&scene), (0, 0));
        assert!(state.store.write(resume).await.unwrap());
    }
    assert_eq!(scene.turn().await.published_count, 1);
    assert_eq!(scene.taken().len(), 1);
    assert_eq!(scene.find(payout_id).await.failure, None);
    scene.assert_book();
}
