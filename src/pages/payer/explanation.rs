//! The sentences of the payer's page: the headline, what to do, notices, and answers to frequent
//! questions.

use super::view::{HelpEntry, PageFacts, PageTime, PaymentPhase};
use crate::deposits::Deposit;
use crate::deposits::state::{Classification, ReasonCode};
use crate::kernel::Money;
use crate::refunds::Refund;
use crate::refunds::payer_address::PAYER_ADDRESS_WAIT_SECONDS;
use crate::refunds::state::{RefundKind, RefundReason, RefundStatus};
use crate::transfers::state::{HoldPolicy, OverpaidPolicy, StatusReason, TransferStatus};

impl PageFacts<'_> {
    /// The headline and what to do.
    pub(super) fn explanation(&self, phase: PaymentPhase, missing: Money) -> (String, Vec<String>) {
        let (transfer, words) = (self.transfer, self.words);
        let of = |text: &str, amount: Money| self.say(text, &[("amount", &self.amount(amount))]);
        let received = |text: &str| of(text, transfer.received);
        let plain = |text: &str| self.say(text, &[]);
        let kept = || plain(&words.kept);
        let (title, paragraphs) = match phase {
            PaymentPhase::AwaitingPayment => {
                (plain(&words.awaiting_title), vec![plain(&words.awaiting_text)])
            }
            PaymentPhase::PartlyPaid => {
                let mut sentences = Vec::new();
                if !transfer.received.is_zero() {
                    sentences.push(received(&words.has_arrived));
                }
                if !self.pending.is_zero() {
                    sentences.push(of(&words.is_coming, self.pending));
                }
                sentences.push(of(&words.partly_text, missing));
                (of(&words.partly_title, missing), vec![sentences.join(" ")])
            }
            PaymentPhase::Seen => (plain(&words.seen_title), vec![plain(&words.seen_text)]),
            PaymentPhase::Confirming => {
                (plain(&words.confirming_title), vec![plain(&words.confirming_text)])
            }
            PaymentPhase::TimeUp => {
                let mut paragraphs = vec![plain(&words.do_not_send), plain(&words.time_up_text)];
                if !transfer.received.is_zero() {
                    paragraphs.push(self.arrived_of());
                }
                (plain(&words.time_up_title), paragraphs)
            }
            PaymentPhase::TooLittle => (
                plain(&words.too_little_title),
                vec![
                    format!("{} {}", self.arrived_of(), kept()),
                    plain(&words.do_not_send),
                    self.decision(),
                ],
            ),
            PaymentPhase::TooMuch => (
                plain(&words.too_much_title),
                vec![format!("{} {}", received(&words.has_arrived), kept()), self.decision()],
            ),
            PaymentPhase::TooLate => {
                let is_cancelled = self.last_at(TransferStatus::Cancelled).is_some();
                let text = if is_cancelled {
                    &words.too_late_cancelled_text
                } else {
                    &words.too_late_text
                };
                (
                    plain(&words.too_late_title),
                    vec![format!("{} {}", received(text), kept()), self.decision()],
                )
            }
            // The money's block is in time, but the money was found after the time to pay.
            PaymentPhase::OnHold if transfer.status_reason == Some(StatusReason::Late) => (
                plain(&words.on_hold_title),
                vec![format!("{} {}", received(&words.found_late_text), kept()), self.decision()],
            ),
            PaymentPhase::OnHold => (
                plain(&words.on_hold_title),
                vec![received(&words.on_hold_text), plain(&words.questions)],
            ),
            PaymentPhase::Received => {
                (plain(&words.received_title), vec![plain(&words.received_text)])
            }
            PaymentPhase::PayingOut => {
                (plain(&words.received_title), vec![plain(&words.paying_text)])
            }
            PaymentPhase::PaidOut => (plain(&words.paid_title), vec![plain(&words.paid_text)]),
            PaymentPhase::RefundNeedsAddress | PaymentPhase::Refunding => {
                let going = self.principal().map(|refund| self.going_back(refund));
                let cause = plain(self.refund_cause());
                (plain(&words.refund_title), [Some(cause), going].into_iter().flatten().collect())
            }
            PaymentPhase::Refunded => {
                let going = self.principal().map(|refund| self.going_back(refund));
                (plain(&words.refunded_title), Vec::from_iter(going))
            }
            PaymentPhase::Expired => (
                plain(&words.time_up_title),
                vec![
                    format!("{} {}", plain(&words.do_not_send), plain(&words.expired_text)),
                    self.sent_already(),
                ],
            ),
            PaymentPhase::Cancelled => (
                plain(&words.cancelled_title),
                vec![
                    format!("{} {}", plain(&words.do_not_send), plain(&words.cancelled_text)),
                    self.sent_already(),
                ],
            ),
        };
        (title, paragraphs)
    }

    fn arrived_of(&self) -> String {
        let (received, expected) = (self.transfer.received, self.transfer.expected);
        self.say(
            &self.words.arrived_of,
            &[("received", &self.amount(received)), ("expected", &self.amount(expected))],
        )
    }

    /// What happens to money in a hold.
    fn decision(&self) -> String {
        match self.transfer.hold_until {
            Some(until) => {
                self.say(&self.words.decision_until, &[("time", &PageTime(until).utc())])
            }
            None => self.say(&self.words.decision_day, &[]),
        }
    }

    fn late_words(&self) -> String {
        let text = match self.transfer.policy.late {
            HoldPolicy::Refund => &self.words.late_refund,
            HoldPolicy::Hold => &self.words.late_hold,
        };
        self.say(text, &[])
    }

    fn sent_already(&self) -> String {
        format!("{} {}", self.words.sent_already, self.late_words())
    }

    /// The state of a refund.
    fn going_back(&self, refund: &Refund) -> String {
        let (words, amount) = (self.words, self.amount(refund.amount));
        let amount = ("amount", amount.as_str());
        let given = refund.payer_address.zip(refund.payer_address_declared_at);
        match (refund.status, given) {
            (RefundStatus::RequiresAddress, Some((address, at))) => {
                let time = PageTime(at + PAYER_ADDRESS_WAIT_SECONDS).utc();
                let address = address.to_string();
                self.say(&words.refund_given, &[amount, ("address", &address), ("time", &time)])
            }
            (RefundStatus::RequiresAddress, None) if self.transfer.payer_sets_refund_address => {
                self.say(&words.refund_give, &[amount])
            }
            (RefundStatus::RequiresAddress, None) => self.say(&words.refund_ask, &[amount]),
            (RefundStatus::Processing, _) => self.say(&words.refund_sending, &[amount]),
            (RefundStatus::Completed, _) => self.say(&words.refund_sent, &[amount]),
        }
    }

    fn refund_cause(&self) -> &'static str {
        let words = self.words;
        match self.principal().map(|refund| refund.reason) {
            Some(RefundReason::Underpaid) => &words.cause_underpaid,
            Some(RefundReason::Overpaid) => &words.cause_overpaid,
            Some(RefundReason::Late) if self.has_late() => &words.cause_late,
            Some(RefundReason::Late) => &words.cause_found_late,
            Some(RefundReason::PayoutFailed | RefundReason::PayoutReturned) => &words.cause_payout,
            // This hides a decision of compliance, which the payer is not told.
            _ => &words.cause_other,
        }
    }

    pub(super) fn notices(&self) -> Vec<String> {
        let words = self.words;
        let mut notices = Vec::new();
        let asset = &self.transfer.asset;
        if self.deposits.iter().any(|deposit| deposit.asset != *asset) {
            notices.push(self.say(&words.notice_other_token, &[]));
        }
        if self.deposits.iter().any(|deposit| deposit.reason_code == Some(ReasonCode::Dropped)) {
            notices.push(self.say(&words.notice_dropped, &[]));
        }
        let is_excess = |refund: &&Refund| refund.kind == RefundKind::Excess;
        if let Some(refund) = self.refunds.iter().find(is_excess) {
            let amount = self.amount(refund.amount);
            let arrived = self.say(&words.notice_excess, &[("amount", &amount)]);
            notices.push(format!("{arrived} {}", self.going_back(refund)));
        }
        let is_unmatched =
            |deposit: &&Deposit| deposit.classification == Some(Classification::Unmatched);
        if let Some(deposit) = self.deposits.iter().find(is_unmatched) {
            let amount = self.amount(deposit.amount);
            let arrived = self.say(&words.notice_unmatched, &[("amount", &amount)]);
            let refund = self.refunds.iter().find(|refund| refund.deposit_id == Some(deposit.id));
            let what = refund.map_or_else(
                || self.say(&words.notice_unmatched_kept, &[]),
                |refund| self.going_back(refund),
            );
            notices.push(format!("{arrived} {what}"));
        }
        notices
    }

    /// Questions and answers for a payer who can still pay; nobody else needs them.
    pub(super) fn help(&self, phase: PaymentPhase) -> Vec<HelpEntry> {
        if !phase.is_payable() {
            return Vec::new();
        }
        let (words, policy) = (self.words, self.transfer.policy);
        let plain = |text: &str| self.say(text, &[]);
        let help = |question: &'static str, answer: String| HelpEntry { question, answer };
        let much = match policy.overpaid {
            OverpaidPolicy::RefundExcess => &words.much_answer,
            OverpaidPolicy::Hold => &words.decision_day,
        };
        vec![
            help(&words.little_question, plain(&words.little_answer)),
            help(&words.much_question, plain(much)),
            help(
                &words.late_question,
                format!("{} {}", plain(&words.late_answer), self.late_words()),
            ),
            help(&words.other_question, plain(&words.other_answer)),
            help(&words.nothing_question, plain(&words.nothing_answer)),
            help(&words.back_question, plain(&words.back_answer)),
        ]
    }
}
