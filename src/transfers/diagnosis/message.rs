//! The sentences that a payer is shown about a transaction.

use super::{DiagnosisCode, Finding};
use crate::kernel::state::Status;
use crate::transfers::state::TransferStatus;
use crate::transfers::{Transfer, funding};

/// What a payer is told.
pub fn message(transfer: &Transfer, finding: &Finding) -> String {
    let amount = match (finding.amount, &finding.currency) {
        (Some(amount), Some(currency)) => format!("{amount} {currency}"),
        (None, Some(currency)) => currency.clone(),
        _ => "A token".to_owned(),
    };
    let asset = &transfer.asset;
    let state = transfer.status.as_str();
    let short = finding
        .short_by
        .map_or_else(String::new, |short| format!(" {short} {asset} is still missing after it."));
    let late = finding.late_by_seconds.map_or_else(String::new, |seconds| {
        format!(" It came {seconds} s after the time to pay had ended.")
    });
    match finding.code {
        DiagnosisCode::Credited if transfer.status == TransferStatus::FundingHold => {
            format!(
                "{amount} arrived and counts. It waits for a decision or goes back. The \
             transfer is {state}."
            )
        }
        DiagnosisCode::Credited => format!("{amount} arrived and counts. The transfer is {state}."),
        DiagnosisCode::Confirming => {
            let place = finding.block_number.map_or_else(
                || "and no block holds it now".to_owned(),
                |number| {
                    format!(
                        "in block {number} with {} confirmations",
                        finding.confirmations.unwrap_or(0)
                    )
                },
            );
            let then = if funding::takes_money(transfer.status) {
                "It counts once its block is final on the chain."
            } else {
                "It came after the transfer's funding had ended. Once its block is final, the \
                 operator holds it and decides about it."
            };
            format!("{amount} is on its way, {place}. {then}{late}{short}")
        }
        DiagnosisCode::ShortBy => {
            let short = finding.short_by.map_or_else(String::new, |short| {
                format!(
                    "{short} \
             {asset} is missing"
                )
            });
            let rest = if transfer.status == TransferStatus::Funding {
                "What is sent to the same address before the time to pay ends counts too."
            } else {
                "What arrived waits for a decision or goes back."
            };
            format!("{amount} arrived, and {short}. {rest} The transfer is {state}.")
        }
        DiagnosisCode::LateBy => format!(
            "{amount} arrived.{late} It waits for a decision or goes \
         back. The transfer is {state}."
        ),
        DiagnosisCode::AfterCancel => {
            format!(
                "{amount} arrived after the transfer had been cancelled. It waits for a \
             decision or goes back. The transfer is {state}."
            )
        }
        DiagnosisCode::Unmatched => {
            format!(
                "{amount} arrived after the transfer's funding had ended. The operator holds it \
             and decides about it."
            )
        }
        DiagnosisCode::NotCredited => {
            format!(
                "{amount} reached the deposit address and is final, but is not credited. Ask \
             the operator, naming this transaction."
            )
        }
        DiagnosisCode::ZeroValue => format!(
            "The transaction moved no {asset}: its amount is \
         zero, or less than a millionth."
        ),
        DiagnosisCode::LookAlikeToken => {
            format!(
                "What arrived is not {asset}, but another token with the same or a similar name. \
             It is worth nothing here and is not credited."
            )
        }
        DiagnosisCode::WrongToken => format!(
            "{amount} arrived, which is not {asset}. It is not \
         credited. Ask the operator, naming this transaction."
        ),
        DiagnosisCode::WrongAddress => format!(
            "{amount} went to an address that is not this \
         transfer's. It cannot be credited here."
        ),
        DiagnosisCode::Unrelated => format!(
            "The transaction moved tokens, but no {asset}, and \
         nothing to this transfer's address."
        ),
        DiagnosisCode::NoToken => {
            format!(
                "The transaction moved no token. If it sent the chain's own coin, that is not \
             credited: send {asset}."
            )
        }
        DiagnosisCode::Reverted => {
            "The transaction failed on the chain, for example because it ran out of energy or gas, \
             or of funds, so nothing was moved. Send it again."
                .to_owned()
        }
        DiagnosisCode::NotFound => {
            "The chain does not know this transaction. Check its hash and the network that it was \
             sent on; one that was just sent shows within a minute."
                .to_owned()
        }
    }
}
