//! What the payer's page says: one view of a transfer with its deposits and refunds. The server
//! draws the page from it, and sends it as JSON.
//!
//! The view depends only on [`PageFacts`]. The words are for people who have never seen a
//! blockchain, and promise only what the rules do.

use serde::Serialize;

use crate::chains::explorer::Explorer;
use crate::deposits::Deposit;
use crate::deposits::state::Classification;
use crate::kernel::rupees::grouped;
use crate::kernel::{Money, StoreError};
use crate::pages::words::{PageWords, fill};
use crate::payouts::Payout;
use crate::refunds::Refund;
use crate::refunds::state::{RefundKind, RefundStatus};
use crate::transfers::state::{StatusReason, TransferStatus};
use crate::transfers::{Transfer, funding};

/// When this many seconds or fewer are left, the page warns that a payment may come too late.
pub const HURRY_SECONDS: i64 = 180;

crate::string_enum!(
    /// The state of a payment, as its payer sees it.
    PaymentPhase {
        AwaitingPayment "awaiting_payment",
        PartlyPaid "partly_paid",
        Seen "seen",
        Confirming "confirming",
        TimeUp "time_up",
        TooLittle "too_little",
        TooMuch "too_much",
        TooLate "too_late",
        OnHold "on_hold",
        Received "received",
        PayingOut "paying_out",
        PaidOut "paid_out",
        RefundNeedsAddress "refund_needs_address",
        Refunding "refunding",
        Refunded "refunded",
        Expired "expired",
        Cancelled "cancelled",
    }
);

impl PaymentPhase {
    /// Whether the payer may send money now.
    pub const fn is_payable(self) -> bool {
        matches!(self, PaymentPhase::AwaitingPayment | PaymentPhase::PartlyPaid)
    }
    /// How the state looks: nothing special, good, or something that needs the payer's attention.
    pub const fn tone(self) -> PhaseTone {
        match self {
            PaymentPhase::Received
            | PaymentPhase::PayingOut
            | PaymentPhase::PaidOut
            | PaymentPhase::Refunded => PhaseTone::Good,
            PaymentPhase::AwaitingPayment | PaymentPhase::Seen | PaymentPhase::Confirming => {
                PhaseTone::Plain
            }
            PaymentPhase::PartlyPaid
            | PaymentPhase::TimeUp
            | PaymentPhase::TooLittle
            | PaymentPhase::TooMuch
            | PaymentPhase::TooLate
            | PaymentPhase::OnHold
            | PaymentPhase::RefundNeedsAddress
            | PaymentPhase::Refunding
            | PaymentPhase::Expired
            | PaymentPhase::Cancelled => PhaseTone::Attention,
        }
    }
    /// How long the page waits before it asks for the state again, in seconds.
    const fn poll_seconds(self) -> u32 {
        match self {
            PaymentPhase::Seen | PaymentPhase::Confirming | PaymentPhase::TimeUp => 3,
            PaymentPhase::AwaitingPayment
            | PaymentPhase::PartlyPaid
            | PaymentPhase::Received
            | PaymentPhase::PayingOut
            | PaymentPhase::Refunding => 4,
            PaymentPhase::TooLittle
            | PaymentPhase::TooMuch
            | PaymentPhase::TooLate
            | PaymentPhase::OnHold
            | PaymentPhase::RefundNeedsAddress => 15,
            // In these phases the page asks only while another deposit or refund is open. Otherwise
            // the state is final.
            PaymentPhase::PaidOut | PaymentPhase::Refunded => 15,
            // Money that comes late can still change these.
            PaymentPhase::Expired | PaymentPhase::Cancelled => 60,
        }
    }
}

crate::string_enum!(PhaseTone { Plain "plain", Good "good", Attention "attention" });
crate::string_enum!(
    /// Where a step of the timeline stands.
    StepState { Done "done", Current "current", Next "next", Problem "problem" }
);

impl StepState {
    /// What a screen reader says before the step.
    pub fn spoken(self, words: &'static PageWords) -> &'static str {
        match self {
            StepState::Done => &words.spoken_done,
            StepState::Current => &words.spoken_current,
            StepState::Next => &words.spoken_next,
            StepState::Problem => &words.spoken_problem,
        }
    }
}

/// `₹88,412.50`
pub fn rupees(amount: Money) -> String {
    format!("₹{}", grouped(amount))
}

/// A business time in Unix seconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(transparent)]
pub struct PageTime(pub i64);

impl PageTime {
    fn text(self, form: &str) -> String {
        // A time outside the calendar must not prevent the page from being shown.
        jiff::Timestamp::from_second(self.0)
            .map(|at| at.strftime(form).to_string())
            .unwrap_or_default()
    }
    /// For people: `21 Nov 2026, 12:00 UTC`.
    pub fn utc(self) -> String {
        self.text("%-d %b %Y, %H:%M UTC")
    }
    /// For machines: `2026-11-21T12:00:00Z`, the `datetime` of an HTML `time`.
    pub fn iso(self) -> String {
        self.text("%Y-%m-%dT%H:%M:%SZ")
    }
}
impl std::fmt::Display for PageTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One step of the timeline.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TimelineStep {
    pub label: String,
    pub state: StepState,
    pub spoken: &'static str,
    pub detail: Option<String>,
    pub at: Option<PageTime>,
}

/// One payment that was seen.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SeenPayment {
    pub text: String,
    pub note: &'static str,
    pub at: PageTime,
    /// The page of a block explorer about its transaction, if one is known for the chain.
    pub explorer_url: Option<String>,
}

/// One refund that is completed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SentRefund {
    pub text: String,
    pub at: PageTime,
    /// As [`SeenPayment::explorer_url`].
    pub explorer_url: Option<String>,
}

/// The payer's receipt for a payment that was paid out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PayerReceipt {
    pub sent: String,
    pub paid: String,
    pub rate: String,
    pub reference: String,
    pub at: PageTime,
}

/// The page's state. `GET /pay/{token}/state` answers it as JSON.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PayView {
    pub object: &'static str,
    pub phase: PaymentPhase,
    pub tone: PhaseTone,
    /// Whether the transfer is paid out or refunded, and no deposit or refund is open. The page
    /// then stops asking. A later deposit or a payout that comes back still changes the state, but
    /// an open page does not show it.
    pub is_final: bool,
    /// Seconds until the page asks again. While nothing changes, the page waits longer. `null` once
    /// final.
    pub poll_seconds: Option<u32>,
    pub now: PageTime,
    pub expires_at: PageTime,
    pub is_payable: bool,
    pub hurry_seconds: i64,
    pub headline: String,
    pub paragraphs: Vec<String>,
    pub notices: Vec<String>,
    pub asset: String,
    pub amount_expected: Money,
    pub amount_received: Money,
    /// Seen on the chain, but not final yet.
    pub amount_pending: Money,
    /// Still to be sent: neither received nor on its way.
    pub amount_missing: Money,
    pub steps: Vec<TimelineStep>,
    pub payments: Vec<SeenPayment>,
    /// Of the transfer's newest refunds those that are completed, newest first.
    pub refunds: Vec<SentRefund>,
    /// Whether the payer can say where money goes back to.
    pub takes_refund_address: bool,
    /// Whether the page offers to simulate a payment.
    pub can_simulate: bool,
    pub receipt: Option<PayerReceipt>,
    /// Not in the JSON, because its words do not change. The script removes it once the payer can
    /// no longer pay.
    #[serde(skip)]
    pub help: Vec<HelpEntry>,
}

/// A question that a payer may have before paying, and its answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HelpEntry {
    pub question: &'static str,
    pub answer: String,
}

/// The data that the page depends on.
pub struct PageFacts<'a> {
    pub transfer: &'a Transfer,
    /// The newest ones, newest first.
    pub deposits: &'a [Deposit],
    /// The newest ones, newest first.
    pub refunds: &'a [Refund],
    /// The sum of deposits of the asset that are not final.
    pub pending: Money,
    /// The payout, once there is one.
    pub payout: Option<&'a Payout>,
    pub chain_name: &'a str,
    pub explorer: Option<Explorer>,
    /// Whether the mode and the chain allow a simulated payment.
    pub can_simulate: bool,
    pub issuer_name: &'a str,
    pub words: &'static PageWords,
    /// Business time in Unix seconds.
    pub business: i64,
}

impl PageFacts<'_> {
    /// Deposits of the asset that were seen and may still count.
    pub(super) fn unsettled(&self) -> impl Iterator<Item = &Deposit> {
        self.deposits
            .iter()
            .filter(|deposit| !deposit.is_settled() && deposit.asset == self.transfer.asset)
    }
    /// The refund that gives the transfer's money back. Refunds of an excess or of an unmatched
    /// deposit are others.
    pub(super) fn principal(&self) -> Option<&Refund> {
        self.refunds.iter().find(|refund| refund.kind == RefundKind::Principal)
    }
    /// Whether the payer can say where money goes back to.
    fn takes_refund_address(&self) -> bool {
        self.transfer.payer_sets_refund_address
            && self.refunds.iter().any(Refund::takes_payer_address)
    }
    /// Fills the places `{name}` of a text in the page's language.
    pub(super) fn say(&self, text: &str, values: &[(&str, &str)]) -> String {
        let known = [
            ("issuer", self.issuer_name),
            ("asset", self.transfer.asset.as_str()),
            ("chain", self.chain_name),
        ];
        self.words.fill(text, &[&known, values].concat())
    }
    pub(super) fn explorer_url(&self, transaction_hash: &str) -> Option<String> {
        self.explorer.map(|explorer| explorer.of_transaction(transaction_hash))
    }
    /// `1000.00 USDT`
    pub(super) fn amount(&self, amount: Money) -> String {
        format!("{amount} {}", self.transfer.asset)
    }
    /// Whether any deposit counted as late: its block came after the time to pay, or the transfer
    /// had been cancelled.
    pub(super) fn has_late(&self) -> bool {
        self.deposits.iter().any(|deposit| deposit.classification == Some(Classification::Late))
    }
    /// When the transfer last entered a status, in Unix seconds of business time.
    pub(super) fn last_at(&self, status: TransferStatus) -> Option<i64> {
        self.transfer.status_history.last_at(status)
    }
}

/// Puts the page's state together.
pub fn view(facts: &PageFacts<'_>) -> Result<PayView, StoreError> {
    let transfer = facts.transfer;
    let missing = facts.missing()?;
    let phase = facts.phase(missing);
    let has_ended = matches!(phase, PaymentPhase::PaidOut | PaymentPhase::Refunded);
    let is_open = facts.refunds.iter().any(|refund| refund.status != RefundStatus::Completed)
        || facts.unsettled().next().is_some();
    let is_final = has_ended && !is_open;
    let (headline, paragraphs) = facts.explanation(phase, missing);
    Ok(PayView {
        object: "payment_state",
        phase,
        tone: phase.tone(),
        is_final,
        poll_seconds: (!is_final).then(|| phase.poll_seconds()),
        now: PageTime(facts.business),
        expires_at: PageTime(transfer.expires_at),
        is_payable: phase.is_payable(),
        hurry_seconds: HURRY_SECONDS,
        headline,
        paragraphs,
        notices: facts.notices(),
        asset: transfer.asset.clone(),
        amount_expected: transfer.expected,
        amount_received: transfer.received,
        amount_pending: facts.pending,
        amount_missing: missing,
        steps: facts.steps(phase),
        payments: facts.payments(),
        refunds: facts.sent_refunds(),
        takes_refund_address: facts.takes_refund_address(),
        can_simulate: facts.can_simulate && phase.is_payable(),
        receipt: facts.receipt(phase),
        help: facts.help(phase),
    })
}

impl PageFacts<'_> {
    /// What is neither received nor on its way, so that the page does not ask for money twice.
    fn missing(&self) -> Result<Money, StoreError> {
        let rest = funding::missing(self.transfer)?.minus(self.pending)?;
        Ok(if rest.units < 0 { Money::zero(rest.currency) } else { rest })
    }

    /// The receipt, once the payout has settled and unless it came back.
    fn receipt(&self, phase: PaymentPhase) -> Option<PayerReceipt> {
        let payout = self.payout.filter(|_| phase == PaymentPhase::PaidOut)?;
        let transfer = self.transfer;
        Some(PayerReceipt {
            sent: self.amount(transfer.received),
            paid: rupees(payout.amount),
            rate: format!(
                "1 {} = ₹{}",
                transfer.amount.currency.as_str(),
                transfer.rate.to_string().trim_end_matches('0').trim_end_matches('.')
            ),
            reference: payout.unique_transaction_reference.clone()?,
            at: PageTime(payout.settled_at?),
        })
    }

    fn phase(&self, missing: Money) -> PaymentPhase {
        match self.transfer.status {
            TransferStatus::Funding => self.phase_of_funding(missing),
            TransferStatus::FundingHold => match self.transfer.status_reason {
                Some(StatusReason::Underpaid) => PaymentPhase::TooLittle,
                Some(StatusReason::Overpaid) => PaymentPhase::TooMuch,
                Some(StatusReason::Late) if self.has_late() => PaymentPhase::TooLate,
                // The money's block is in time, but the money was found after the time to pay.
                Some(StatusReason::Late) => PaymentPhase::OnHold,
                // A payer is not told of a compliance review: the law may forbid it.
                Some(StatusReason::ComplianceReview) | None => PaymentPhase::OnHold,
            },
            TransferStatus::Funded => PaymentPhase::Received,
            TransferStatus::PayoutProcessing => PaymentPhase::PayingOut,
            TransferStatus::PayoutSettled => PaymentPhase::PaidOut,
            TransferStatus::PayoutFailed
            | TransferStatus::PayoutReturned
            | TransferStatus::RefundProcessing => {
                let needs_address = self
                    .principal()
                    .is_some_and(|refund| refund.status == RefundStatus::RequiresAddress);
                if needs_address {
                    PaymentPhase::RefundNeedsAddress
                } else {
                    PaymentPhase::Refunding
                }
            }
            TransferStatus::Refunded => PaymentPhase::Refunded,
            TransferStatus::Expired => PaymentPhase::Expired,
            TransferStatus::Cancelled => PaymentPhase::Cancelled,
        }
    }

    fn phase_of_funding(&self, missing: Money) -> PaymentPhase {
        let is_over = self.business > self.transfer.expires_at;
        if !self.pending.is_zero() && (is_over || missing.is_zero()) {
            let is_in_block = self.unsettled().any(|deposit| deposit.block_number.is_some());
            return if is_in_block { PaymentPhase::Confirming } else { PaymentPhase::Seen };
        }
        match () {
            () if is_over => PaymentPhase::TimeUp,
            () if self.pending.is_zero() && self.transfer.received.is_zero() => {
                PaymentPhase::AwaitingPayment
            }
            () => PaymentPhase::PartlyPaid,
        }
    }
}

impl PayView {
    /// Whether the two are the same but for the current time, which the page advances by itself.
    pub fn says_the_same(&self, other: &PayView) -> bool {
        *self == PayView { now: self.now, ..other.clone() }
    }
    /// What is left of the time, in words: a page without a script cannot count.
    pub fn left_text(&self, words: &PageWords) -> String {
        let minutes = (self.expires_at.0 - self.now.0).max(0) / 60;
        let (text, count) = if minutes < 120 {
            (&words.left_minutes, minutes)
        } else {
            (&words.left_hours, minutes / 60)
        };
        fill(text, &[("count", &count.to_string())])
    }
    /// Whether so little time is left that a payment may come too late.
    pub fn is_hurried(&self) -> bool {
        self.expires_at.0 - self.now.0 <= self.hurry_seconds
    }
}
