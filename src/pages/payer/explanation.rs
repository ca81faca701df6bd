//! The sentences of the payer's page: a headline with what to do, notices, and answers to usual
//! questions.

use super::view::{HelpEntry, PageFacts, PageTime, PaymentPhase};
use crate::deposits::Deposit;
use crate::deposits::state::{Classification, ReasonCode};
use crate::kernel::Money;
use crate::refunds::Refund;
use crate::refunds::payer_address::PAYER_ADDRESS_SECONDS;
use crate::refunds::state::{RefundKind, RefundReason, RefundStatus};
use crate::transfers::state::{HoldPolicy, OverpaidPolicy, StatusReason, TransferStatus};

/// Who can help a payer: the caller, whose name the service does not tell.
const HELPER: &str = "the company that gave you this link";

impl PageFacts<'_> {
    /// The headline and what to do.
    pub(super) fn explanation(&self, phase: PaymentPhase, missing: Money) -> (String, Vec<String>) {
        let transfer = self.transfer;
        let (chain, asset) = (self.chain_name, transfer.asset.as_str());
        let (received, expected, missing_text) =
            (self.amount(transfer.received), self.amount(transfer.expected), self.amount(missing));
        let do_not_send = "Do not send any money to this address now.";
        let say =
            |headline: &str, paragraphs: &[String]| (headline.to_owned(), paragraphs.to_vec());
        match phase {
            PaymentPhase::AwaitingPayment => say(
                "Waiting for your payment",
                &[format!(
                    "Send exactly {missing_text} on {chain} to the address below. This page \
                 notices your payment by itself."
                )],
            ),
            PaymentPhase::PartlyPaid => {
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
            PaymentPhase::Seen => say(
                "Your payment was seen",
                &[format!(
                    "It is on its way into {chain}, which usually takes less than a minute. \
                 Please do not send it again."
                )],
            ),
            PaymentPhase::Confirming => say(
                "Your payment is being confirmed",
                &["The network is confirming it, which usually takes a minute or two. Please do \
                 not send it again."
                    .to_owned()],
            ),
            PaymentPhase::TimeUp => {
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
            PaymentPhase::TooLittle => say(
                "Too little arrived in time",
                &[
                    format!(
                        "{received} of {expected} arrived. It is recorded and kept for you. Do \
                 not send more."
                    ),
                    self.decision(),
                ],
            ),
            PaymentPhase::TooMuch => say(
                "More than the amount arrived",
                &[
                    format!(
                        "{received} arrived instead of {expected}. It is recorded and kept for \
                 you."
                    ),
                    self.decision(),
                ],
            ),
            PaymentPhase::TooLate if self.was(TransferStatus::Cancelled).is_some() => say(
                "Your payment came after the cancellation",
                &[
                    format!(
                        "This payment had been cancelled when {received} arrived. It is \
                 recorded and kept for you."
                    ),
                    self.decision(),
                ],
            ),
            PaymentPhase::TooLate => say(
                "Your payment came too late",
                &[
                    format!(
                        "{received} is here, but came after the time was up. It is recorded and \
                 kept for you."
                    ),
                    self.decision(),
                ],
            ),
            PaymentPhase::OnHold if transfer.status_reason == Some(StatusReason::Late) => say(
                "Your payment is here",
                &[
                    format!(
                        "{received} arrived in time, but was found only after the time was \
                     up. It is recorded and kept for you."
                    ),
                    self.decision(),
                ],
            ),
            PaymentPhase::OnHold => say(
                "Your payment is here",
                &[
                    format!(
                        "{received} arrived and is kept for you. Handling it takes longer than \
                         usual. Do not send it again; there is nothing you need to do."
                    ),
                    format!("If you have questions, contact {HELPER}."),
                ],
            ),
            PaymentPhase::Received => say(
                "Your payment was received",
                &["Thank you. There is nothing more for you to do: the payout is being prepared."
                    .to_owned()],
            ),
            PaymentPhase::PayingOut => say(
                "Your payment was received",
                &["Thank you. There is nothing more for you to do: the payout is with the bank."
                    .to_owned()],
            ),
            PaymentPhase::PaidOut => say(
                "Paid out",
                &["The bank has made the payout. You can close this \
             page."
                    .to_owned()],
            ),
            PaymentPhase::RefundNeedsAddress => say(
                "Your money is going back",
                &[
                    self.refund_cause(),
                    self.principal().and_then(|refund| self.payers_way(refund)).unwrap_or_else(
                        || {
                            format!(
                                "{} is waiting for a {chain} address to go to. Tell {HELPER} \
                                 which one: an address of your own that can receive {asset}. \
                                 It does not go back to where it came from by itself, because \
                                 that address may belong to an exchange.",
                                self.refund_amount()
                            )
                        },
                    ),
                ],
            ),
            PaymentPhase::Refunding => say(
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
            PaymentPhase::Refunded => {
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
            PaymentPhase::Expired => say(
                "The time is up",
                &[
                    format!(
                        "No payment arrived in time. {do_not_send} If you still want to pay, \
                     ask {HELPER} for a new link."
                    ),
                    format!("Did you send it already? {}", self.late_words()),
                ],
            ),
            PaymentPhase::Cancelled => say(
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
            .map(|until| format!(" by {}", PageTime(until).utc()))
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

    /// How a refund gets its address where the payer may give it; `None` where only the caller may.
    fn payers_way(&self, refund: &Refund) -> Option<String> {
        if !self.transfer.payer_sets_refund_address {
            return None;
        }
        let amount = self.amount(refund.amount);
        let given = refund.payer_address.zip(refund.payer_address_at);
        Some(match given {
            None => format!(
                "{amount} is waiting for a {} address to go to. Give one of your own below. It \
                 does not go back to where it came from by itself, because that address may belong \
                 to an exchange.",
                self.chain_name
            ),
            Some((address, at)) => format!(
                "{amount} goes to the address that you gave, {address}, after {}: until then \
                 {HELPER} can object. If you did not give this address, contact {HELPER} now.",
                PageTime(at + PAYER_ADDRESS_SECONDS).utc()
            ),
        })
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

    pub(super) fn notices(&self) -> Vec<String> {
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
                RefundStatus::RequiresAddress => match self.payers_way(refund) {
                    Some(way) => format!("{amount} more than needed arrived. {way}"),
                    None => format!(
                        "{amount} more than needed arrived and is kept for you. Tell {HELPER} an \
                         address of your own on {} that it can go back to.",
                        self.chain_name
                    ),
                },
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

    pub(super) fn help(&self, phase: PaymentPhase) -> Vec<HelpEntry> {
        let transfer = self.transfer;
        let (asset, chain) = (transfer.asset.as_str(), self.chain_name);
        let decides = format!(
            "{HELPER} decides whether to use what arrived or to give it back; after 24 hours \
             without a decision it is given back."
        );
        let help = |question, answer: String| HelpEntry { question, answer };
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

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
