//! Payments that wait: of paused accounts, and at a bank that takes its time.

use hundi::kernel::{Currency, Id, Mode, Money, Now, Scope};
use hundi::pauses::{self, Operation};
use hundi::rails::files::rows;
use hundi::rails::port::{Instruction, PaymentMethod};
use hundi::store::Tx;

use crate::bank::{PAID, Scene};
use crate::support::by;

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
