//! The timeline of the payer's page, and the list of payments that were seen.

use super::view::{PageFacts, PageTime, PaymentPhase, SeenPayment, StepState, TimelineStep};
use crate::deposits::Deposit;
use crate::deposits::state::{Classification, DepositStatus, ReasonCode};
use crate::transfers::state::TransferStatus;

impl PageFacts<'_> {
    pub(super) fn payments(&self) -> Vec<SeenPayment> {
        self.deposits.iter().map(|deposit| payment(deposit, &self.transfer.asset)).collect()
    }

    pub(super) fn steps(&self, phase: PaymentPhase) -> Vec<TimelineStep> {
        use StepState::{Current, Done, Next, Problem};
        let transfer = self.transfer;
        let step = |label: &str, state: StepState, at: Option<i64>| TimelineStep {
            label: label.to_owned(),
            state,
            spoken: state.spoken(),
            detail: None,
            at: at.filter(|_| state != Next).map(PageTime),
        };
        let ours = || {
            self.deposits.iter().filter(|deposit| {
                deposit.asset == transfer.asset && deposit.status != DepositStatus::Failed
            })
        };
        let seen_at = ours().map(|deposit| deposit.created).min();
        let final_at = ours().filter_map(|deposit| deposit.completed_at).max();
        let asked = step("Payment requested", Done, Some(transfer.created));
        let seen = |state| step("Payment seen", state, seen_at);
        let confirming = |state| {
            step(
                if state == Done { "Confirmed" } else { "Confirming" },
                state,
                final_at.filter(|_| state == Done),
            )
        };
        let received = |state| step("Payment received", state, self.was(TransferStatus::Funded));
        let paid = |state| {
            step(
                if state == Current { "Paying out" } else { "Paid out" },
                state,
                self.was(TransferStatus::PayoutSettled),
            )
        };
        let held = || step("On hold", Problem, self.was(TransferStatus::FundingHold));
        let ending = || step("Paid out or given back", Next, None);
        match phase {
            PaymentPhase::AwaitingPayment => {
                vec![
                    step("Waiting for your payment", Current, Some(transfer.created)),
                    seen(Next),
                    confirming(Next),
                    received(Next),
                    paid(Next),
                ]
            }
            PaymentPhase::PartlyPaid => {
                let arrived =
                    format!("{} of {} arrived", transfer.received, self.amount(transfer.expected));
                let on_way = (!self.pending.is_zero())
                    .then(|| format!(", {} on its way", self.amount(self.pending)));
                let mut waiting = step("Waiting for the rest", Current, None);
                waiting.detail = Some(format!("{arrived}{}", on_way.unwrap_or_default()));
                vec![asked, seen(Done), waiting, confirming(Next), received(Next), paid(Next)]
            }
            PaymentPhase::Seen => {
                vec![asked, seen(Current), confirming(Next), received(Next), paid(Next)]
            }
            PaymentPhase::Confirming => {
                let mut confirming = confirming(Current);
                // The slowest one decides.
                let count =
                    self.unsettled().map(|deposit| deposit.confirmations).min().unwrap_or(0);
                confirming.detail = Some(if count == 1 {
                    "1 confirmation so far".into()
                } else {
                    format!("{count} confirmations so far")
                });
                vec![asked, seen(Done), confirming, received(Next), paid(Next)]
            }
            PaymentPhase::TimeUp => vec![
                asked,
                step(
                    "Time is up: looking for payments made in time",
                    Problem,
                    Some(transfer.expires_at),
                ),
            ],
            PaymentPhase::TooLittle
            | PaymentPhase::TooMuch
            | PaymentPhase::TooLate
            | PaymentPhase::OnHold => {
                vec![asked, seen(Done), confirming(Done), held(), ending()]
            }
            PaymentPhase::Received | PaymentPhase::PayingOut => {
                vec![asked, seen(Done), confirming(Done), received(Done), paid(Current)]
            }
            PaymentPhase::PaidOut => {
                vec![asked, seen(Done), confirming(Done), received(Done), paid(Done)]
            }
            PaymentPhase::RefundNeedsAddress | PaymentPhase::Refunding | PaymentPhase::Refunded => {
                let mut steps = vec![asked, seen(Done), confirming(Done)];
                if let Some(at) = self.was(TransferStatus::FundingHold) {
                    steps.push(step("On hold", Done, Some(at)));
                }
                if self.was(TransferStatus::Funded).is_some() {
                    steps.push(received(Done));
                    let failed_at = self
                        .was(TransferStatus::PayoutReturned)
                        .or(self.was(TransferStatus::PayoutFailed));
                    steps.push(step(
                        "Payout not possible",
                        Problem,
                        failed_at.or(self.was(TransferStatus::RefundProcessing)),
                    ));
                }
                steps.push(match phase {
                    PaymentPhase::Refunded => {
                        step("Given back", Done, self.was(TransferStatus::Refunded))
                    }
                    _ => step(
                        "Giving the money back",
                        Current,
                        self.was(TransferStatus::RefundProcessing),
                    ),
                });
                steps
            }
            PaymentPhase::Expired => {
                vec![asked, step("Time is up", Problem, Some(transfer.expires_at))]
            }
            PaymentPhase::Cancelled => {
                vec![asked, step("Cancelled", Problem, self.was(TransferStatus::Cancelled))]
            }
        }
    }
}

fn payment(deposit: &Deposit, asset: &str) -> SeenPayment {
    let note = match (deposit.status, deposit.classification, deposit.reason_code) {
        (DepositStatus::Initialized, _, _) => "seen".to_owned(),
        (DepositStatus::Processing, _, _) if deposit.block_number.is_none() => "seen".to_owned(),
        (DepositStatus::Processing, _, _) => "being confirmed".to_owned(),
        (DepositStatus::Failed, _, Some(ReasonCode::AssetUnsupported)) => {
            "another token: does not count".to_owned()
        }
        (DepositStatus::Failed, _, _) => "did not become final".to_owned(),
        (DepositStatus::Completed, Some(Classification::Late), _) => "arrived late".to_owned(),
        (DepositStatus::Completed, Some(Classification::Unmatched), _) => {
            "arrived after everything was settled".to_owned()
        }
        (DepositStatus::Completed, _, _) => "arrived".to_owned(),
    };
    // How many decimals another token has is not known, so its amount would mislead.
    let text = if deposit.asset == asset {
        format!("{} {asset}", deposit.amount)
    } else {
        deposit.asset.clone()
    };
    SeenPayment { text, note, at: PageTime(deposit.created) }
}
