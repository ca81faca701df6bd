//! Everybody concerned is screened again when a payout is instructed: a hit on any of them holds
//! it.

use crate::support::by;
use hundi::chains::address::{AddressBytes, ChainAddress};
use hundi::chains::{Depth, Movement};
use hundi::kernel::id::kind;
use hundi::kernel::{AnyId, Currency, DecidedBy, Id, Money, Via};
use hundi::operator::{OperatorDecision, decide, four_eyes, set_refund_address};
use hundi::payouts;
use hundi::payouts::state::PayoutStatus;
use hundi::screening::{UNREADABLE, rows};
use hundi::staff::{self, Role};
use hundi::transfers::screening::PAYERS_MAX;
use hundi::transfers::{self, funding};

use crate::desk::{Desk, REFUND_TO, TEST, movement};

const NOBODY: &str = "1,Zebulon Quackenbush,,,,,\n";
const PAYER: AddressBytes = AddressBytes::of_20([9; 20]);
/// Deposits that one transaction of a test records.
const DEPOSITS_AT_ONCE: usize = 100;

/// So many addresses, each another one.
fn payers(count: usize) -> Vec<AddressBytes> {
    let address = |number: u16| {
        let mut bytes = [7; 20];
        bytes[..2].copy_from_slice(&number.to_be_bytes());
        AddressBytes::of_20(bytes)
    };
    (0..u16::try_from(count).unwrap()).map(address).collect()
}

/// A desk with a transfer whose money has come and whose payout is about to be instructed.
struct Funded {
    desk: Desk,
    sender: Id<kind::Sender>,
    beneficiary: Id<kind::Beneficiary>,
    transfer: Id<kind::Transfer>,
    payout: Id<kind::Payout>,
}

impl Funded {
    async fn new() -> Funded {
        Funded::paid_by(&[PAYER]).await
    }

    /// The same, with a deposit of each of these addresses: a millionth of each but the last, which
    /// pays the rest.
    async fn paid_by(payers: &[AddressBytes]) -> Funded {
        let desk = Desk::with_rates_fixed().await;
        let transfer = desk.transfer().await;
        let last = payers.len() - 1;
        let numbered: Vec<(usize, AddressBytes)> = payers.iter().copied().enumerate().collect();
        for some in numbered.chunks(DEPOSITS_AT_ONCE) {
            let (some, transfer) = (some.to_vec(), transfer.clone());
            let made = desk.write(move |tx, now, services| {
                for (number, payer) in &some {
                    let rest = transfer.expected.units - last as i64;
                    let units = if *number == last { rest } else { 1 };
                    let depth = Depth::Final { number: 1, time: now.business(), confirmations: 20 };
                    let movement = Movement {
                        transaction_hash: format!("{:064x}", 7 + number),
                        from_address: *payer,
                        amount: Money::new(units, Currency::Usdt),
                        ..movement(&transfer, depth)
                    };
                    funding::observe_simulated(tx, now, services, TEST, "tron", &movement)?;
                }
                Ok(())
            });
            made.await.unwrap();
        }
        let id = transfer.id;
        let found = desk.write(move |tx, _, _| Ok(transfers::rows::find(tx, TEST, id)?));
        let funded = found.await.unwrap().unwrap();
        Funded {
            desk,
            sender: funded.sender_id,
            beneficiary: funded.beneficiary_id,
            transfer: funded.id,
            payout: funded.payout_id.unwrap(),
        }
    }

    /// Puts an address of this chain on the operator's list; answers its text.
    fn list_address(&self, address: AddressBytes) -> String {
        let text = ChainAddress::of_chain("tron", address).to_string();
        self.desk.write_list(&format!("{NOBODY}2,,,,,{text},\n"));
        text
    }

    async fn status(&self) -> PayoutStatus {
        let payout = self.payout;
        let found = self.desk.write(move |tx, _, _| Ok(payouts::rows::find(tx, TEST, payout)?));
        found.await.unwrap().unwrap().status
    }

    async fn decide(&self, id: AnyId, decision: OperatorDecision) -> String {
        let decided = self
            .desk
            .write(move |tx, now, services| decide(tx, now, services, id, &decision, &by()));
        decided.await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn payout_goes_out_when_nobody_is_listed() {
    let funded = Funded::new().await;
    funded.desk.run_tasks().await;
    assert_ne!(funded.status().await, PayoutStatus::Hold, "the control of the tests below");
    assert_ne!(funded.status().await, PayoutStatus::Initialized);
}

#[tokio::test(flavor = "multi_thread")]
async fn sender_listed_after_the_transfer_holds_the_payout_until_cleared() {
    let funded = Funded::new().await;
    funded.desk.write_list(&format!("{NOBODY}2,Ravi Menon,,,,,\n"));
    funded.desk.run_tasks().await;
    assert_eq!(funded.status().await, PayoutStatus::Hold);
    // Approving the payout does not clear the sender.
    funded.decide(funded.payout.any(), OperatorDecision::Approve).await;
    assert_eq!(funded.status().await, PayoutStatus::Hold);
    // A day later it still waits for the operator.
    funded.desk.advance_seconds(25 * 3_600);
    funded.desk.run_tasks().await;
    assert_eq!(funded.status().await, PayoutStatus::Hold);
    funded.decide(funded.sender.any(), OperatorDecision::Approve).await;
    funded.decide(funded.payout.any(), OperatorDecision::Approve).await;
    assert_ne!(funded.status().await, PayoutStatus::Hold);
}

#[tokio::test(flavor = "multi_thread")]
async fn beneficiary_listed_after_the_transfer_holds_the_payout_until_cleared() {
    let funded = Funded::new().await;
    funded.desk.write_list(&format!("{NOBODY}2,Asha Rao,,,,,\n"));
    funded.desk.run_tasks().await;
    assert_eq!(funded.status().await, PayoutStatus::Hold);
    // Days later it still waits for the operator.
    for _ in 0..3 {
        funded.desk.advance_seconds(25 * 3_600);
        funded.desk.run_tasks().await;
        assert_eq!(funded.status().await, PayoutStatus::Hold);
    }
    funded.decide(funded.beneficiary.any(), OperatorDecision::Approve).await;
    funded.desk.run_tasks().await;
    assert_ne!(funded.status().await, PayoutStatus::Hold);
}

/// A listed address is a confirmed hit, which is kept under the transfer: one person alone does not
/// clear it by approving the payout.
#[tokio::test(flavor = "multi_thread")]
async fn a_listed_address_takes_two_persons_where_four_eyes_are_asked_for() {
    for address in [PAYER, REFUND_TO] {
        let mut funded = Funded::new().await;
        // The transfer is of 100.00 USD.
        funded.desk.services_mut().settings.four_eyes_above =
            Some(Money::new(500_000, Currency::Usd));
        let operators = funded.desk.write(|tx, now, _| {
            for (name, role) in [("asha", Role::Operator), ("ravi", Role::Approver)] {
                staff::create(tx, now, name, role, "no password", &DecidedBy::default())?;
            }
            Ok(())
        });
        operators.await.unwrap();
        let text = funded.list_address(address);
        funded.desk.run_tasks().await;
        assert_eq!(funded.status().await, PayoutStatus::Hold, "{text}");
        let payout = funded.payout.any();
        let asked = funded.desk.write(move |tx, now, services| {
            let by = by().proven(1, Via::Console);
            decide(tx, now, services, payout, &OperatorDecision::Approve, &by)
        });
        let said = asked.await.unwrap();
        assert!(four_eyes::is_waiting(&said), "{said}");
        funded.desk.run_tasks().await;
        assert_eq!(funded.status().await, PayoutStatus::Hold, "{text}");
        let approved = funded.desk.write(|tx, now, services| {
            let by = DecidedBy::new("ravi", "a test").unwrap().proven(2, Via::Console);
            four_eyes::approve(tx, now, services, 1, &by)
        });
        let said = approved.await.unwrap();
        assert!(said.contains("screening hits cleared: 1"), "{said}");
        assert_ne!(funded.status().await, PayoutStatus::Hold, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn payout_ends_within_a_day_after_its_beneficiary_was_refused() {
    let funded = Funded::new().await;
    funded.desk.write_list(&format!("{NOBODY}2,Asha Rao,,,,,\n"));
    funded.desk.run_tasks().await;
    assert_eq!(funded.status().await, PayoutStatus::Hold);
    funded.decide(funded.beneficiary.any(), OperatorDecision::Refuse).await;
    funded.desk.advance_seconds(25 * 3_600);
    funded.desk.run_tasks().await;
    assert_eq!(funded.status().await, PayoutStatus::Failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn listed_addresses_hold_the_payout_until_cleared() {
    for address in [PAYER, REFUND_TO] {
        let funded = Funded::new().await;
        let text = funded.list_address(address);
        funded.desk.run_tasks().await;
        assert_eq!(funded.status().await, PayoutStatus::Hold, "{text}");
        let said = funded.decide(funded.payout.any(), OperatorDecision::Approve).await;
        assert!(said.contains("screening hits cleared: 1"), "{said}");
        assert_ne!(funded.status().await, PayoutStatus::Hold, "{}", funded.transfer);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_payout_leaves_no_hit_undecided() {
    let funded = Funded::new().await;
    funded.list_address(PAYER);
    funded.desk.run_tasks().await;
    assert_eq!(funded.status().await, PayoutStatus::Hold);
    let said = funded.decide(funded.payout.any(), OperatorDecision::Refuse).await;
    assert!(said.contains("screening hits refused: 1"), "{said}");
    assert_eq!(funded.status().await, PayoutStatus::Failed);
    let transfer = funded.transfer.any();
    let hits = funded.desk.write(move |tx, _, _| Ok(rows::of_subject(tx, TEST, transfer)?));
    let hits = hits.await.unwrap();
    assert!(!hits.is_empty() && hits.iter().all(|hit| hit.decision.is_some()));
}

/// Anybody can pay to the address of a transfer that takes nothing any more, also somebody on a
/// list. That hit can be decided about.
#[tokio::test(flavor = "multi_thread")]
async fn a_hit_of_money_that_came_too_late_can_be_decided() {
    let funded = Funded::new().await;
    funded.desk.run_tasks().await;
    assert_eq!(funded.status().await, PayoutStatus::Processing);
    let late = payers(3)[2];
    funded.list_address(late);
    let id = funded.transfer;
    let observed = funded.desk.write(move |tx, now, services| {
        let transfer = transfers::rows::find(tx, TEST, id)?.unwrap();
        let depth = Depth::Final { number: 1, time: now.business(), confirmations: 20 };
        let movement = Movement {
            transaction_hash: format!("{:064x}", 4_711),
            from_address: late,
            ..movement(&transfer, depth)
        };
        Ok(funding::observe_simulated(tx, now, services, TEST, "tron", &movement)?)
    });
    assert!(observed.await.unwrap().is_settled());
    let said = funded.decide(id.any(), OperatorDecision::Refuse).await;
    assert!(said.contains("stays") && said.contains("screening hits refused: 1"), "{said}");
    assert_eq!(funded.status().await, PayoutStatus::Processing, "nothing else changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_entry_with_both_addresses_is_cleared_by_one_decision() {
    let funded = Funded::new().await;
    let [payer, refund_to] =
        [PAYER, REFUND_TO].map(|address| ChainAddress::of_chain("tron", address).to_string());
    funded.desk.write_list(&format!("{NOBODY}2,,,,,{payer};{refund_to},\n"));
    funded.desk.run_tasks().await;
    assert_eq!(funded.status().await, PayoutStatus::Hold);
    let transfer = funded.transfer.any();
    let hits = funded.desk.write(move |tx, _, _| Ok(rows::of_subject(tx, TEST, transfer)?));
    let hits = hits.await.unwrap();
    assert_eq!(hits.len(), 1);
    for address in [payer, refund_to] {
        assert!(hits[0].evidence.contains(&address), "the operator sees {address}");
    }
    let said = funded.decide(funded.payout.any(), OperatorDecision::Approve).await;
    assert!(said.contains("screening hits cleared: 1"), "{said}");
    assert_ne!(funded.status().await, PayoutStatus::Hold);
}

/// The list entry is the same, but the operator has not decided about its other address.
#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_goes_to_another_address_of_a_listed_person_has_a_hit_to_decide() {
    let funded = Funded::new().await;
    let [payer, refund_to] =
        [PAYER, REFUND_TO].map(|address| ChainAddress::of_chain("tron", address));
    funded.desk.write_list(&format!("{NOBODY}2,,,,,{payer};{refund_to},\n"));
    funded.desk.run_tasks().await;
    funded.decide(funded.payout.any(), OperatorDecision::Refuse).await;
    let transfer = funded.transfer;
    let found = funded.desk.write(move |tx, _, _| Ok(transfers::rows::find(tx, TEST, transfer)?));
    let refund = found.await.unwrap().unwrap().refund_id.unwrap();
    let hits = async || {
        let hits = funded.desk.write(move |tx, _, _| Ok(rows::of_subject(tx, TEST, refund.any())?));
        let told = hits.await.unwrap().into_iter();
        told.map(|hit| (hit.evidence, hit.decision)).collect::<Vec<_>>()
    };
    let [(first, None)] = &hits().await[..] else { panic!("{:?}", hits().await) };
    assert!(first.contains(&refund_to.to_string()), "{first}");
    let send_to = async |address: ChainAddress| {
        let sent = funded.desk.write(move |tx, now, services| {
            set_refund_address(tx, now, services, refund, address, &by())
        });
        sent.await.unwrap()
    };
    // With the hit open, and after the operator has refused it.
    for is_refused in [false, true] {
        for address in [payer, refund_to] {
            if is_refused {
                funded.decide(refund.any(), OperatorDecision::Refuse).await;
            }
            let said = send_to(address).await;
            assert!(said.contains("`hundi screening hits` shows it"), "{said}");
            let [(evidence, None)] = &hits().await[..] else { panic!("{:?}", hits().await) };
            assert!(evidence.contains(&address.to_string()), "{evidence}");
        }
    }
    // What the operator clears for one address holds for no other.
    let said = funded.decide(refund.any(), OperatorDecision::Approve).await;
    assert!(said.contains("may be sent") && said.contains("hits cleared: 1"), "{said}");
}

/// Anybody who knows a deposit address can send many small deposits to it. Each address that paid
/// is compared, and the payout goes out.
#[tokio::test(flavor = "multi_thread")]
async fn many_payers_are_all_compared_and_the_payout_goes_out() {
    const MANY: usize = 150;
    let funded = Funded::paid_by(&payers(MANY)).await;
    funded.desk.run_tasks().await;
    assert_eq!(funded.status().await, PayoutStatus::Processing);
    // The control: each of them is compared, the last one too.
    let funded = Funded::paid_by(&payers(MANY)).await;
    funded.list_address(payers(MANY)[MANY - 1]);
    funded.desk.run_tasks().await;
    assert_eq!(funded.status().await, PayoutStatus::Hold);
    let said = funded.decide(funded.payout.any(), OperatorDecision::Approve).await;
    assert!(said.contains("screening hits cleared: 1"), "{said}");
    assert_eq!(funded.status().await, PayoutStatus::Processing);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_payers_than_are_compared_take_one_approval() {
    let funded = Funded::paid_by(&payers(PAYERS_MAX + 1)).await;
    funded.desk.run_tasks().await;
    assert_eq!(funded.status().await, PayoutStatus::Hold);
    let transfer = funded.transfer.any();
    let hits = funded.desk.write(move |tx, _, _| Ok(rows::of_subject(tx, TEST, transfer)?));
    let hits = hits.await.unwrap();
    let told: Vec<_> = hits.iter().map(|hit| (hit.list.as_str(), hit.decision.is_some())).collect();
    assert_eq!(told, [(UNREADABLE, false)], "the operator sees why");
    let said = funded.decide(funded.payout.any(), OperatorDecision::Approve).await;
    assert!(said.contains("screening hits cleared: 1"), "{said}");
    assert_eq!(funded.status().await, PayoutStatus::Processing);
    // The control: as many as are compared take none.
    let funded = Funded::paid_by(&payers(PAYERS_MAX)).await;
    funded.desk.run_tasks().await;
    assert_eq!(funded.status().await, PayoutStatus::Processing);
}
