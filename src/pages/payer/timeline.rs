//! The timeline of the payer's page, and the lists of payments that were seen and of refunds that
//! were sent.

use super::view::{
    PageFacts, PageTime, PaymentPhase, SeenPayment, SentRefund, StepState, TimelineStep,
};
use crate::deposits::Deposit;
use crate::deposits::state::{Classification, DepositStatus, ReasonCode};
use crate::refunds::Refund;
use crate::transfers::state::TransferStatus;

impl PageFacts<'_> {
    pub(super) fn payments(&self) -> Vec<SeenPayment> {
        self.deposits.iter().map(|deposit| self.payment(deposit)).collect()
    }

    pub(super) fn sent_refunds(&self) -> Vec<SentRefund> {
        let sent = |refund: &Refund| {
            Some(SentRefund {
                text: self.amount(refund.amount),
                at: PageTime(refund.completed_at?),
                explorer_url: refund
                    .transaction_hash
                    .as_deref()
                    .and_then(|hash| self.explorer_url(hash)),
            })
        };
        self.refunds.iter().filter_map(sent).collect()
    }

    pub(super) fn steps(&self, phase: PaymentPhase) -> Vec<TimelineStep> {
        use StepState::{Current, Done, Next, Problem};
        let (transfer, words) = (self.transfer, self.words);
        let step = |label: &str, state: StepState, at: Option<i64>| TimelineStep {
            label: label.to_owned(),
            state,
            spoken: state.spoken(words),
            detail: None,
            at: at.filter(|_| state != Next).map(PageTime),
        };
        let counted = || {
            self.deposits.iter().filter(|deposit| {
                deposit.asset == transfer.asset
                    && deposit.status != DepositStatus::Failed
                    && deposit.classification != Some(Classification::Unmatched)
            })
        };
        let seen_at = counted().map(|deposit| deposit.created).min();
        let final_at = counted().filter_map(|deposit| deposit.completed_at).max();
        let asked = step(&words.step_requested, Done, Some(transfer.created));
        let seen = |state| step(&words.step_seen, state, seen_at);
        let confirming = |state| {
            step(
                if state == Done { &words.step_confirmed } else { &words.step_confirming },
                state,
                final_at.filter(|_| state == Done),
            )
        };
        let received =
            |state| step(&words.step_received, state, self.last_at(TransferStatus::Funded));
        let paid = |state| {
            step(
                if state == Current { &words.step_paying } else { &words.paid_title },
                state,
                self.last_at(TransferStatus::PayoutSettled),
            )
        };
        let held = || step(&words.step_held, Problem, self.last_at(TransferStatus::FundingHold));
        let ending = || step(&words.step_ending, Next, None);
        match phase {
            PaymentPhase::AwaitingPayment => {
                vec![
                    step(&words.awaiting_title, Current, Some(transfer.created)),
                    seen(Next),
                    confirming(Next),
                    received(Next),
                    paid(Next),
                ]
            }
            PaymentPhase::PartlyPaid => {
                let waiting = step(&words.step_rest, Current, None);
                vec![asked, seen(Done), waiting, confirming(Next), received(Next), paid(Next)]
            }
            PaymentPhase::Seen => {
                vec![asked, seen(Current), confirming(Next), received(Next), paid(Next)]
            }
            PaymentPhase::Confirming => {
                let mut confirming = confirming(Current);
                // The confirmations are those of the payment that has the fewest.
                let count =
                    self.unsettled().map(|deposit| deposit.confirmations).min().unwrap_or(0);
                let count = count.to_string();
                confirming.detail = Some(self.say(&words.confirmations, &[("count", &count)]));
                vec![asked, seen(Done), confirming, received(Next), paid(Next)]
            }
            PaymentPhase::TimeUp => {
                vec![asked, step(&words.step_looking, Problem, Some(transfer.expires_at))]
            }
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
                if let Some(at) = self.last_at(TransferStatus::FundingHold) {
                    steps.push(step(&words.step_held, Done, Some(at)));
                }
                if self.last_at(TransferStatus::Funded).is_some() {
                    steps.push(received(Done));
                    let failed_at = self
                        .last_at(TransferStatus::PayoutReturned)
                        .or(self.last_at(TransferStatus::PayoutFailed));
                    steps.push(step(
                        &words.step_failed,
                        Problem,
                        failed_at.or(self.last_at(TransferStatus::RefundProcessing)),
                    ));
                }
                steps.push(match phase {
                    PaymentPhase::Refunded => {
                        step(&words.step_returned, Done, self.last_at(TransferStatus::Refunded))
                    }
                    _ => step(
                        &words.step_returning,
                        Current,
                        self.last_at(TransferStatus::RefundProcessing),
                    ),
                });
                steps
            }
            PaymentPhase::Expired => {
                vec![asked, step(&words.time_up_title, Problem, Some(transfer.expires_at))]
            }
            PaymentPhase::Cancelled => {
                vec![
                    asked,
                    step(&words.step_cancelled, Problem, self.last_at(TransferStatus::Cancelled)),
                ]
            }
        }
    }

    fn payment(&self, deposit: &Deposit) -> SeenPayment {
        let (words, asset) = (self.words, &self.transfer.asset);
        let note = match (deposit.status, deposit.classification, deposit.reason_code) {
            (DepositStatus::Initialized, _, _) => &words.note_seen,
            (DepositStatus::Processing, _, _) if deposit.block_number.is_none() => &words.note_seen,
            (DepositStatus::Processing, _, _) => &words.note_confirming,
            (DepositStatus::Failed, _, Some(ReasonCode::AssetUnsupported)) => {
                &words.note_other_token
            }
            (DepositStatus::Failed, _, _) => &words.note_not_final,
            (DepositStatus::Completed, Some(Classification::Late), _) => &words.note_late,
            (DepositStatus::Completed, Some(Classification::Unmatched), _) => &words.note_unmatched,
            (DepositStatus::Completed, _, _) => &words.note_arrived,
        };
        // The decimals of another token are unknown, so its amount could mislead.
        let text = if deposit.asset == *asset {
            self.amount(deposit.amount)
        } else {
            deposit.asset.clone()
        };
        SeenPayment {
            text,
            note,
            at: PageTime(deposit.created),
            explorer_url: self.explorer_url(&deposit.transaction_hash),
        }
    }
}
