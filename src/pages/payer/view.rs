//! What the payer's page says: one view of a transfer and its deposits and refunds, drawn by the
//! server and sent as JSON.
//!
//! A pure function of facts. The words are for people who never saw a blockchain; they promise
//! nothing that the rules of `transfers` do not do.

use serde::Serialize;

use crate::deposits::Deposit;
use crate::deposits::state::{Classification, DepositStatus, ReasonCode};
use crate::kernel::{Money, StoreError};
use crate::refunds::Refund;
use crate::refunds::state::{RefundKind, RefundReason, RefundStatus};
use crate::transfers::state::{HoldPolicy, OverpaidPolicy, StatusReason, TransferStatus};
use crate::transfers::{Transfer, funding};

/// From when on the page warns that a payment may come too late, in seconds before the end.
pub const HURRY_SECONDS: i64 = 180;

/// Who can help a payer: the caller, whose name the service does not tell.
const HELPER: &str = "the company that gave you this link";

crate::string_enum!(
    /// Where a payment stands, as its payer sees it.
    Phase {
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

impl Phase {
    /// Whether the payer may send money now.
    pub const fn is_payable(self) -> bool {
        matches!(self, Phase::AwaitingPayment | Phase::PartlyPaid)
    }
    /// How the state looks: nothing special, good, or something that needs the payer's attention.
    pub const fn tone(self) -> Tone {
        match self {
            Phase::Received | Phase::PayingOut | Phase::PaidOut | Phase::Refunded => Tone::Good,
            Phase::AwaitingPayment | Phase::Seen | Phase::Confirming => Tone::Plain,
            Phase::PartlyPaid
            | Phase::TimeUp
            | Phase::TooLittle
            | Phase::TooMuch
            | Phase::TooLate
            | Phase::OnHold
            | Phase::RefundNeedsAddress
            | Phase::Refunding
            | Phase::Expired
            | Phase::Cancelled => Tone::Attention,
        }
    }
    /// How long the page waits before it asks for the state again, in seconds.
    const fn poll_seconds(self) -> u32 {
        match self {
            Phase::Seen | Phase::Confirming | Phase::TimeUp => 3,
            Phase::AwaitingPayment
            | Phase::PartlyPaid
            | Phase::Received
            | Phase::PayingOut
            | Phase::Refunding => 4,
            Phase::TooLittle
            | Phase::TooMuch
            | Phase::TooLate
            | Phase::OnHold
            | Phase::RefundNeedsAddress => 15,
            // Late money still moves these.
            Phase::PaidOut | Phase::Refunded | Phase::Expired | Phase::Cancelled => 60,
        }
    }
}

crate::string_enum!(Tone { Plain "plain", Good "good", Attention "attention" });
crate::string_enum!(
    /// Where a step of the timeline stands.
    StepState { Done "done", Current "current", Next "next", Problem "problem" }
);

impl StepState {
    /// What a screen reader says before the step.
    pub const fn spoken(self) -> &'static str {
        match self {
            StepState::Done => "Done:",
            StepState::Current => "Now:",
            StepState::Next => "To come:",
            StepState::Problem => "Attention:",
        }
    }
}

/// A business time in Unix seconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(transparent)]
pub struct Moment(pub i64);

impl Moment {
    fn text(self, form: &str) -> String {
        // A time that no calendar holds is not worth a page that cannot be shown.
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
impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One step of the timeline.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Step {
    pub label: String,
    pub state: StepState,
    pub spoken: &'static str,
    pub detail: Option<String>,
    pub at: Option<Moment>,
}

/// One payment that was seen.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Payment {
    pub text: String,
    pub note: String,
    pub at: Moment,
}

/// The page's state. `GET /pay/{token}/state` answers it as it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PayView {
    pub object: &'static str,
    pub phase: Phase,
    pub tone: Tone,
    /// Nothing more will happen; the page stops asking.
    pub is_final: bool,
    /// Seconds until the page asks again, at first; `null` once final.
    pub poll_seconds: Option<u32>,
    pub now: Moment,
    pub expires_at: Moment,
    pub is_payable: bool,
    pub hurry_seconds: i64,
    pub headline: String,
    pub paragraphs: Vec<String>,
    pub notices: Vec<String>,
    pub asset: String,
    pub amount_expected: Money,
    pub amount_received: Money,
    /// Seen and not final.
    pub amount_pending: Money,
    /// Still to be sent: neither received nor on its way.
    pub amount_missing: Money,
    pub steps: Vec<Step>,
    pub payments: Vec<Payment>,
    /// Only on the page: it does not move.
    #[serde(skip)]
    pub help: Vec<Help>,
}

/// What to do if something went wrong; these do not change with the state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Help {
    pub question: &'static str,
    pub answer: String,
}

/// All that the page depends on.
pub struct Facts<'a> {
    pub transfer: &'a Transfer,
    /// The newest ones, newest first.
    pub deposits: &'a [Deposit],
    /// The newest ones, newest first.
    pub refunds: &'a [Refund],
    /// The sum of deposits of the asset that are not final.
    pub pending: Money,
    pub chain_name: &'a str,
    pub business: i64,
}

impl Facts<'_> {
    /// Deposits of the asset that were seen and may still count.
    fn unsettled(&self) -> impl Iterator<Item = &Deposit> {
        self.deposits
            .iter()
            .filter(|deposit| !deposit.is_settled() && deposit.asset == self.transfer.asset)
    }
    fn principal(&self) -> Option<&Refund> {
        self.refunds.iter().find(|refund| refund.kind == RefundKind::Principal)
    }
    /// `1000.00 USDT`
    fn amount(&self, amount: Money) -> String {
        format!("{amount} {}", self.transfer.asset)
    }
    /// Whether any of what arrived came too late by its block.
    fn has_late(&self) -> bool {
        self.deposits.iter().any(|deposit| deposit.classification == Some(Classification::Late))
    }
    fn was(&self, status: TransferStatus) -> Option<i64> {
        self.transfer.status_history.last_at(status)
    }
}

/// Puts the page's state together.
pub fn view(facts: &Facts<'_>) -> Result<PayView, StoreError> {
    let transfer = facts.transfer;
    let missing = facts.missing()?;
    let phase = facts.phase(missing);
    let has_ended = matches!(phase, Phase::PaidOut | Phase::Refunded);
    let is_open = facts.refunds.iter().any(|refund| refund.status != RefundStatus::Completed)
        || facts.unsettled().next().is_some();
    let is_final = has_ended && !is_open;
    let (headline, paragraphs) = facts.words(phase, missing);
    Ok(PayView {
        object: "payment_state",
        phase,
        tone: phase.tone(),
        is_final,
        poll_seconds: (!is_final).then(|| {
            if has_ended { Phase::RefundNeedsAddress.poll_seconds() } else { phase.poll_seconds() }
        }),
        now: Moment(facts.business),
        expires_at: Moment(transfer.expires_at),
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
        payments: facts.deposits.iter().map(|deposit| payment(deposit, &transfer.asset)).collect(),
        help: facts.help(phase),
    })
}

impl Facts<'_> {
    /// What is neither received nor on its way. Money on its way must not be asked for twice.
    fn missing(&self) -> Result<Money, StoreError> {
        let rest = funding::missing(self.transfer)?.minus(self.pending)?;
        Ok(if rest.units < 0 { Money::zero(rest.currency) } else { rest })
    }

    fn phase(&self, missing: Money) -> Phase {
        match self.transfer.status {
            TransferStatus::Funding => self.phase_of_funding(missing),
            TransferStatus::FundingHold => match self.transfer.status_reason {
                Some(StatusReason::Underpaid) => Phase::TooLittle,
                Some(StatusReason::Overpaid) => Phase::TooMuch,
                Some(StatusReason::Late) if self.has_late() => Phase::TooLate,
                // In time by its block, and found when the time was up.
                Some(StatusReason::Late) => Phase::OnHold,
                // A payer is not told of a compliance review: the law may forbid it.
                Some(StatusReason::ComplianceReview) | None => Phase::OnHold,
            },
            TransferStatus::Funded => Phase::Received,
            TransferStatus::PayoutProcessing => Phase::PayingOut,
            TransferStatus::PayoutSettled => Phase::PaidOut,
            TransferStatus::PayoutFailed
            | TransferStatus::PayoutReturned
            | TransferStatus::RefundProcessing => {
                let needs_address = self
                    .principal()
                    .is_some_and(|refund| refund.status == RefundStatus::RequiresAddress);
                if needs_address { Phase::RefundNeedsAddress } else { Phase::Refunding }
            }
            TransferStatus::Refunded => Phase::Refunded,
            TransferStatus::Expired => Phase::Expired,
            TransferStatus::Cancelled => Phase::Cancelled,
        }
    }

    fn phase_of_funding(&self, missing: Money) -> Phase {
        let is_over = self.business > self.transfer.expires_at;
        if !self.pending.is_zero() && (is_over || missing.is_zero()) {
            let is_in_block = self.unsettled().any(|deposit| deposit.block_number.is_some());
            return if is_in_block { Phase::Confirming } else { Phase::Seen };
        }
        match () {
            () if is_over => Phase::TimeUp,
            () if self.pending.is_zero() && self.transfer.received.is_zero() => {
                Phase::AwaitingPayment
            }
            () => Phase::PartlyPaid,
        }
    }

    /// The headline and what to do.
    fn words(&self, phase: Phase, missing: Money) -> (String, Vec<String>) {
        let transfer = self.transfer;
        let (chain, asset) = (self.chain_name, transfer.asset.as_str());
        let (received, expected, missing_text) =
            (self.amount(transfer.received), self.amount(transfer.expected), self.amount(missing));
        let do_not_send = "Do not send any money to this address now.";
        let say =
            |headline: &str, paragraphs: &[String]| (headline.to_owned(), paragraphs.to_vec());
        match phase {
            Phase::AwaitingPayment => say(
                "Waiting for your payment",
                &[format!(
                    "Send exactly {missing_text} on {chain} to the address below. This page \
                 notices your payment by itself."
                )],
            ),
            Phase::PartlyPaid => {
                let seen = match (transfer.received.is_zero(), self.pending.is_zero()) {
                    (false, true) => format!("{received} arrived."),
                    (true, _) => format!("{} is on its way.", self.amount(self.pending)),
                    (false, false) => format!(
                        "{received} arrived, and {} is on its way.",
                        self.amount(self.pending)
                    ),
                };
                let rest = format!(
                    "{seen} Please send the rest, exactly {missing_text}, to the \
                 same address before the time is up."
                );
                (format!("{missing_text} is still missing"), vec![rest])
            }
            Phase::Seen => say(
                "Your payment was seen",
                &[format!(
                    "It is on its way into {chain}, which usually takes less than a minute. \
                 Please do not send it again."
                )],
            ),
            Phase::Confirming => say(
                "Your payment is being confirmed",
                &["The network is confirming it, which usually takes a minute or two. Please do \
                 not send it again."
                    .to_owned()],
            ),
            Phase::TimeUp => {
                let mut paragraphs = vec![
                    do_not_send.to_owned(),
                    "If you sent a payment in time, it still counts. We are making sure that none \
                     is overlooked; this page moves on by itself."
                        .to_owned(),
                ];
                if !transfer.received.is_zero() {
                    paragraphs.push(format!("{received} of {expected} arrived so far."));
                }
                say("The time is up", &paragraphs)
            }
            Phase::TooLittle => say(
                "Too little arrived in time",
                &[
                    format!(
                        "{received} of {expected} arrived. It is recorded and kept for you. Do \
                 not send more."
                    ),
                    self.decision(),
                ],
            ),
            Phase::TooMuch => say(
                "More than the amount arrived",
                &[
                    format!(
                        "{received} arrived instead of {expected}. It is recorded and kept for \
                 you."
                    ),
                    self.decision(),
                ],
            ),
            Phase::TooLate if self.was(TransferStatus::Cancelled).is_some() => say(
                "Your payment came after the cancellation",
                &[
                    format!(
                        "This payment had been cancelled when {received} arrived. It is \
                 recorded and kept for you."
                    ),
                    self.decision(),
                ],
            ),
            Phase::TooLate => say(
                "Your payment came too late",
                &[
                    format!(
                        "{received} is here, but came after the time was up. It is recorded and \
                 kept for you."
                    ),
                    self.decision(),
                ],
            ),
            Phase::OnHold if transfer.status_reason == Some(StatusReason::Late) => say(
                "Your payment is here",
                &[
                    format!(
                        "{received} arrived in time, but was found only after the time was \
                     up. It is recorded and kept for you."
                    ),
                    self.decision(),
                ],
            ),
            Phase::OnHold => say(
                "Your payment is here",
                &[
                    format!(
                        "{received} arrived and is kept for you. Handling it takes longer than \
                         usual. Do not send it again; there is nothing you need to do."
                    ),
                    format!("If you have questions, contact {HELPER}."),
                ],
            ),
            Phase::Received => say(
                "Your payment was received",
                &["Thank you. There is nothing more for you to do: the payout is being prepared."
                    .to_owned()],
            ),
            Phase::PayingOut => say(
                "Your payment was received",
                &["Thank you. There is nothing more for you to do: the payout is with the bank."
                    .to_owned()],
            ),
            Phase::PaidOut => say(
                "Paid out",
                &["The bank has made the payout. You can close this \
             page."
                    .to_owned()],
            ),
            Phase::RefundNeedsAddress => say(
                "Your money is going back",
                &[
                    self.refund_cause(),
                    format!(
                        "{} is waiting for a {chain} address to go to. Tell {HELPER} which one: \
                         an address of your own that can receive {asset}. \
                         It does not go back to where it came from by itself, because that \
                         address may belong to an exchange.",
                        self.refund_amount()
                    ),
                ],
            ),
            Phase::Refunding => say(
                "Your money is going back",
                &[
                    self.refund_cause(),
                    format!(
                        "{} is on its way to the refund address that was \
                 given for you.",
                        self.refund_amount()
                    ),
                ],
            ),
            Phase::Refunded => {
                let mut paragraphs = vec![format!(
                    "{} was sent to the refund address that was \
                 given for you.",
                    self.refund_amount()
                )];
                if let Some(hash) =
                    self.principal().and_then(|refund| refund.transaction_hash.as_deref())
                {
                    paragraphs.push(format!("Transaction: {hash}"));
                }
                say("Your money was sent back", &paragraphs)
            }
            Phase::Expired => say(
                "The time is up",
                &[
                    format!(
                        "No payment arrived in time. {do_not_send} If you still want to pay, \
                     ask {HELPER} for a new link."
                    ),
                    format!("Did you send it already? {}", self.late_words()),
                ],
            ),
            Phase::Cancelled => say(
                "This payment was cancelled",
                &[
                    format!("{do_not_send} If you think that this is a mistake, contact {HELPER}."),
                    format!("Did you send money already? {}", self.late_words()),
                ],
            ),
        }
    }

    /// What happens to money in a hold.
    fn decision(&self) -> String {
        let until = self
            .transfer
            .hold_until
            .map(|until| format!(" by {}", Moment(until).utc()))
            .unwrap_or_default();
        let sum = capital(HELPER);
        format!(
            "{sum} decides whether to use it or to give it back. Without a decision{until}, it is \
             given back. You need not do anything."
        )
    }

    fn late_words(&self) -> String {
        match self.transfer.policy.late {
            HoldPolicy::Refund => {
                "A late payment is still recorded when it arrives, and is then given back."
                    .to_owned()
            }
            HoldPolicy::Hold => {
                format!(
                    "A late payment is still recorded when it arrives. Then {HELPER} decides \
                     whether to use it or to give it back; after 24 hours without a decision it \
                     is given back."
                )
            }
        }
    }

    fn refund_amount(&self) -> String {
        self.principal().map_or_else(
            || self.amount(self.transfer.received),
            |refund| self.amount(refund.amount),
        )
    }

    fn refund_cause(&self) -> String {
        match self.principal().map(|refund| refund.reason) {
            Some(RefundReason::Underpaid) => "Less than the amount arrived in time.".to_owned(),
            Some(RefundReason::Overpaid) => "More than the amount arrived.".to_owned(),
            Some(RefundReason::Late) if self.has_late() => {
                "The payment did not come in time.".to_owned()
            }
            Some(RefundReason::Late) => {
                "The payment came in time, but was found only after the time was up.".to_owned()
            }
            Some(RefundReason::PayoutFailed | RefundReason::PayoutReturned) => {
                "The payout could not be made.".to_owned()
            }
            // Nothing of a compliance decision is told.
            _ => "The payment could not be used.".to_owned(),
        }
    }

    fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        let asset = &self.transfer.asset;
        if self.deposits.iter().any(|deposit| deposit.asset != *asset) {
            notices.push(format!(
                "Something other than {asset} was sent to this address. It does not count as \
                 payment and is most likely lost. Contact {HELPER}."
            ));
        }
        if self.deposits.iter().any(|deposit| deposit.reason_code == Some(ReasonCode::Dropped)) {
            notices.push(
                "A payment that was seen earlier never became final on the network, so \
             it did not arrive. Check in your wallet whether you still have the money."
                    .into(),
            );
        }
        let returned = |kind| self.refunds.iter().find(move |refund: &&Refund| refund.kind == kind);
        if let Some(refund) = returned(RefundKind::Excess) {
            let amount = self.amount(refund.amount);
            notices.push(match refund.status {
                RefundStatus::RequiresAddress => format!(
                    "{amount} more than needed arrived and is kept for you. Tell {HELPER} an \
                     address of your own on {} that it can go back to.",
                    self.chain_name
                ),
                RefundStatus::Processing => format!(
                    "{amount} more than needed arrived and is on \
                 its way back to the refund address that was given for you."
                ),
                RefundStatus::Completed => format!(
                    "{amount} more than needed arrived and was \
                 sent to the refund address that was given for you."
                ),
            });
        }
        let is_unmatched =
            |deposit: &&Deposit| deposit.classification == Some(Classification::Unmatched);
        if let Some(deposit) = self.deposits.iter().find(is_unmatched) {
            let amount = self.amount(deposit.amount);
            let is_returned = self.refunds.iter().any(|refund| {
                refund.deposit_id == Some(deposit.id) && refund.status == RefundStatus::Completed
            });
            notices.push(if is_returned {
                format!("{amount} arrived after everything was settled, and was given back.")
            } else {
                format!(
                    "{amount} arrived after everything was settled. It was not needed and is kept \
                     safe. Contact {HELPER} to get it back."
                )
            });
        }
        notices
    }

    fn steps(&self, phase: Phase) -> Vec<Step> {
        use StepState::{Current, Done, Next, Problem};
        let transfer = self.transfer;
        let step = |label: &str, state: StepState, at: Option<i64>| Step {
            label: label.to_owned(),
            state,
            spoken: state.spoken(),
            detail: None,
            at: at.filter(|_| state != Next).map(Moment),
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
            Phase::AwaitingPayment => {
                vec![
                    step("Waiting for your payment", Current, Some(transfer.created)),
                    seen(Next),
                    confirming(Next),
                    received(Next),
                    paid(Next),
                ]
            }
            Phase::PartlyPaid => {
                let arrived =
                    format!("{} of {} arrived", transfer.received, self.amount(transfer.expected));
                let on_way = (!self.pending.is_zero())
                    .then(|| format!(", {} on its way", self.amount(self.pending)));
                let mut waiting = step("Waiting for the rest", Current, None);
                waiting.detail = Some(format!("{arrived}{}", on_way.unwrap_or_default()));
                vec![asked, seen(Done), waiting, confirming(Next), received(Next), paid(Next)]
            }
            Phase::Seen => vec![asked, seen(Current), confirming(Next), received(Next), paid(Next)],
            Phase::Confirming => {
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
            Phase::TimeUp => vec![
                asked,
                step(
                    "Time is up: looking for payments made in time",
                    Problem,
                    Some(transfer.expires_at),
                ),
            ],
            Phase::TooLittle | Phase::TooMuch | Phase::TooLate | Phase::OnHold => {
                vec![asked, seen(Done), confirming(Done), held(), ending()]
            }
            Phase::Received | Phase::PayingOut => {
                vec![asked, seen(Done), confirming(Done), received(Done), paid(Current)]
            }
            Phase::PaidOut => vec![asked, seen(Done), confirming(Done), received(Done), paid(Done)],
            Phase::RefundNeedsAddress | Phase::Refunding | Phase::Refunded => {
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
                    Phase::Refunded => step("Given back", Done, self.was(TransferStatus::Refunded)),
                    _ => step(
                        "Giving the money back",
                        Current,
                        self.was(TransferStatus::RefundProcessing),
                    ),
                });
                steps
            }
            Phase::Expired => vec![asked, step("Time is up", Problem, Some(transfer.expires_at))],
            Phase::Cancelled => {
                vec![asked, step("Cancelled", Problem, self.was(TransferStatus::Cancelled))]
            }
        }
    }

    fn help(&self, phase: Phase) -> Vec<Help> {
        let transfer = self.transfer;
        let (asset, chain) = (transfer.asset.as_str(), self.chain_name);
        let decides = format!(
            "{HELPER} decides whether to use what arrived or to give it back; after 24 hours \
             without a decision it is given back."
        );
        let help = |question, answer: String| Help { question, answer };
        vec![
            help(
                "I sent too little",
                format!(
                    "{} {}",
                    if phase.is_payable() {
                        "Send the rest to the same address before the time is up: both payments \
                         are added up. Otherwise"
                    } else {
                        "Do not send more now. If less than the amount arrived in time,"
                    },
                    match transfer.policy.underpaid {
                        HoldPolicy::Hold => decides.clone(),
                        HoldPolicy::Refund => "what arrived is given back.".to_owned(),
                    }
                ),
            ),
            help(
                "I sent too much",
                match transfer.policy.overpaid {
                    OverpaidPolicy::RefundExcess => {
                        "The exact amount is used, and what is above it is given back.".to_owned()
                    }
                    OverpaidPolicy::Hold => capital(&decides),
                },
            ),
            help(
                "My payment comes too late",
                format!(
                    "What counts is the time at which the network takes it into a block. {}",
                    self.late_words()
                ),
            ),
            help(
                "I sent another token, or used another network",
                format!(
                    "Only {asset} on {chain} is recognised. Anything else does not arrive as a \
                     payment and is, as a rule, lost for good. \
                     Contact {HELPER} with the reference below, but do not rely on getting it back."
                ),
            ),
            help(
                "The time ran out, or the payment was cancelled",
                format!(
                    "Do not send anything to this address any more. Ask {HELPER} for a new link; \
                     it will show another address."
                ),
            ),
            help(
                "I paid, but nothing happens here",
                format!(
                    "Check in your wallet or exchange that the payment has left, that it went to \
                     the address shown here, and that the network is {chain}. \
                     An exchange may take a while before it sends. Then contact {HELPER} with the \
                     reference below and your transaction number."
                ),
            ),
            help(
                "Where does money go that is given back?",
                format!(
                    "To a refund address that you name to {HELPER}, not to the address it came \
                     from, which may belong to an exchange."
                ),
            ),
        ]
    }
}

fn payment(deposit: &Deposit, asset: &str) -> Payment {
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
    Payment { text, note, at: Moment(deposit.created) }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

impl PayView {
    /// What is left of the time, in words: a page without a script cannot count.
    pub fn left_text(&self) -> String {
        match (self.expires_at.0 - self.now.0).max(0) / 60 {
            0 => "less than 1 minute".into(),
            1 => "about 1 minute".into(),
            minutes if minutes < 120 => format!("about {minutes} minutes"),
            minutes => format!("about {} hours", minutes / 60),
        }
    }
    /// Whether so little time is left that a payment may come too late.
    pub fn is_hurried(&self) -> bool {
        self.expires_at.0 - self.now.0 <= self.hurry_seconds
    }
}
