//! Tests `paying::resume_held` with more payouts on hold than one query reads.

use super::paying;
use crate::kernel::{Clock, Currency, Mode, Money, Now, Scope};
use crate::payouts::{self, state::HoldReason};
use crate::rails::PaymentMethod;
use crate::store::handle::no_epilogue;
use crate::store::{Store, Tx};

const SCOPE: Scope = Scope::new(1, Mode::Test);

#[tokio::test(flavor = "multi_thread")]
async fn every_held_payout_to_a_beneficiary_is_resumed_however_many_there_are() {
    let folder = std::env::temp_dir().join(format!("hundi-paying-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let store = Store::open(&folder.join("paying.db"), Clock::System, no_epilogue).unwrap();
    let held = paying::PAYOUTS_PAGE_MAX + 1;
    let resumed = store.write(move |tx: &mut dyn Tx, now: &mut Now| {
        let (beneficiary_id, other_id) = (now.mint(), now.mint());
        for number in 0..=held {
            let to = if number == held { other_id } else { beneficiary_id };
            let amount = Money::new(100, Currency::Inr);
            let transfer_id = now.mint();
            let method = PaymentMethod::Neft;
            let mut payout =
                payouts::begin(tx, now, SCOPE, transfer_id, to, amount, method, "P1301")?;
            payouts::hold(tx, now, &mut payout, HoldReason::Beneficiary)?;
        }
        paying::resume_held(tx, now, SCOPE, beneficiary_id)?;
        let sql = "SELECT COUNT(DISTINCT object_id) FROM tasks WHERE kind = 'payout_submit'";
        Ok(tx.row(sql, &[])?.unwrap().int()?)
    });
    assert_eq!(resumed.await.unwrap(), held);
    std::fs::remove_dir_all(&folder).unwrap();
}
