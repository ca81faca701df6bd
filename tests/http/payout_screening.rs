//! Everybody concerned is screened again when a payout is instructed: a hit on any of them holds
//! it.

use crate::support::by;
use hundi::chains::address::{AddressBytes, ChainAddress};
use hundi::chains::{Depth, Movement};
use hundi::kernel::id::kind;
use hundi::kernel::{AnyId, Currency, Id, Metadata, Money, Rate};
use hundi::operator::{OperatorDecision, decide};
use hundi::payouts;
use hundi::payouts::state::PayoutStatus;
use hundi::quote_locks::{self, QuoteAmount};
use hundi::rates::fixed::FixedRate;
use hundi::screening::rows;
use hundi::senders::{self, NewSender, SenderType};
use hundi::transfers::{self, NewTransfer, funding};

use crate::desk::{Desk, TEST};

const IFSC: &str = "HDFC0000001";
const NOBODY: &str = "1,Zebulon Quackenbush,,,,,\n";
const PAYER: AddressBytes = AddressBytes::of_20([9; 20]);
const REFUND_TO: AddressBytes = AddressBytes::of_20([8; 20]);

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
        let fixed = FixedRate { mid: Rate(88_000_000), usdt_usd: Rate(1_000_000) };
        let desk = Desk::with_rates(Box::new(fixed)).await;
        let indices = desk.write(|tx, _, services| Ok(services.test.addresses.reserve(tx)?));
        let indices = indices.await.unwrap();
        desk.services.test.addresses.restock(indices);
        desk.services.test.addresses.derive(8, 0);
        let beneficiary = desk.beneficiary(TEST, "50100012345678", IFSC).await;
        desk.run_tasks().await;
        let made = desk.write(move |tx, now, services| {
            let sender = senders::create(tx, now, services, TEST, sender("Ravi Menon"))?.id;
            let sell = Money::new(10_000, Currency::Usd);
            let lock = quote_locks::create(
                tx,
                now,
                services,
                TEST,
                QuoteAmount::Sell(sell),
                Metadata::default(),
            )?;
            let ask = NewTransfer {
                sender_id: sender.into(),
                beneficiary_id: beneficiary.into(),
                quote_lock_id: lock.id.into(),
                amount: sell,
                payout_currency: Currency::Inr,
                purpose_code: None,
                refund_address: Some(ChainAddress::of_chain("tron", REFUND_TO)),
                payer_sets_refund_address: false,
                return_url: None,
                policy: Default::default(),
                reference: None,
                metadata: Metadata::default(),
            };
            let transfer = transfers::create(tx, now, services, TEST, ask)?;
            let movement = Movement {
                transaction_hash: format!("{:064x}", 7),
                log_index: 0,
                from_address: PAYER,
                contract: None,
                to_address: *transfer.deposit_address.bytes(),
                asset: "USDT".into(),
                amount: transfer.expected,
                depth: Depth::Final { number: 1, time: now.business(), confirmations: 20 },
            };
            funding::observe(tx, now, services, TEST, "tron", &movement)?;
            let funded = transfers::rows::find(tx, TEST, transfer.id)?.unwrap();
            Ok((sender, transfer.id, funded.payout_id.unwrap()))
        });
        let (sender, transfer, payout) = made.await.unwrap();
        Funded { desk, sender, beneficiary, transfer, payout }
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

fn sender(name: &str) -> NewSender {
    NewSender {
        name: name.into(),
        sender_type: SenderType::Individual,
        country: "AE".into(),
        email: None,
        address: None,
        date_of_birth: None,
        nationality: None,
        identification: None,
        metadata: Metadata::default(),
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
    funded.decide(funded.beneficiary.any(), OperatorDecision::Approve).await;
    funded.desk.run_tasks().await;
    assert_ne!(funded.status().await, PayoutStatus::Hold);
}

#[tokio::test(flavor = "multi_thread")]
async fn listed_addresses_hold_the_payout_until_cleared() {
    for address in [PAYER, REFUND_TO] {
        let funded = Funded::new().await;
        let text = ChainAddress::of_chain("tron", address).to_string();
        funded.desk.write_list(&format!("{NOBODY}2,,,,,{text},\n"));
        funded.desk.run_tasks().await;
        assert_eq!(funded.status().await, PayoutStatus::Hold, "{text}");
        let said = funded.decide(funded.payout.any(), OperatorDecision::Approve).await;
        assert!(said.contains("screening hits cleared: 1"), "{said}");
        assert_ne!(funded.status().await, PayoutStatus::Hold, "{}", funded.transfer);
    }
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
