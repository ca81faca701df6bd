//! What a payment advice says: the rows of its table, and its notes.

use super::{Advice, indian_date, indian_time};
use crate::kernel::Money;
use crate::kernel::rupees::grouped;
use crate::payouts::state::PayoutStatus;

/// Deposits that the page names.
const DEPOSITS_SHOWN_MAX: usize = 2;

/// A row of the table.
pub(super) struct TableRow {
    pub(super) label: &'static str,
    pub(super) value: String,
    pub(super) is_strong: bool,
}

pub(super) struct TableSection {
    pub(super) title: &'static str,
    pub(super) rows: Vec<TableRow>,
}

fn row(label: &'static str, value: impl Into<String>) -> TableRow {
    TableRow { label, value: value.into(), is_strong: false }
}

pub(super) fn with_currency(amount: Money) -> String {
    format!("{} {}", amount.currency.as_str(), grouped(amount))
}

pub(super) fn sections(advice: &Advice) -> Vec<TableSection> {
    let unknown = || "not known".to_owned();
    let mut payment = vec![
        row("Reference (UTR)", advice.unique_transaction_reference.clone().unwrap_or_else(unknown)),
        row("Paid by", advice.method.as_str().to_uppercase()),
        row("Value date and time", advice.settled_at.map_or_else(unknown, indian_time)),
    ];
    if advice.status == PayoutStatus::Returned {
        let at = advice.returned_at.map_or_else(unknown, indian_time);
        payment.push(TableRow {
            label: "Returned",
            value: format!("sent back by the beneficiary's bank on {at}"),
            is_strong: true,
        });
    }
    payment.push(row("Purpose", format!("{} - {}", advice.purpose_code, advice.purpose)));
    let account =
        advice.debited_account_last4.as_ref().map(|last4| format!("account ending in {last4}"));
    let paid_through: Vec<String> = advice.sponsor_bank.iter().cloned().chain(account).collect();
    if !paid_through.is_empty() {
        payment.push(row("Paid through", paid_through.join(", ")));
    }

    let mut remitter = vec![row("Name", advice.sender.name.clone())];
    if let Some(address) = &advice.sender.address {
        let parts = [
            Some(&address.line1),
            Some(&address.city),
            address.state.as_ref(),
            address.postal_code.as_ref(),
            Some(&address.country),
        ];
        remitter.push(row(
            "Address",
            parts.into_iter().flatten().cloned().collect::<Vec<_>>().join(", "),
        ));
    }
    remitter.push(row("Country", advice.sender.country.clone()));

    let beneficiary = &advice.beneficiary;
    let mut receiver = vec![
        row("Name", beneficiary.name.clone()),
        row("Account", format!("NRE account ending in {}", beneficiary.account_number_last4)),
        row("IFSC", beneficiary.ifsc.clone()),
    ];
    let bank = [beneficiary.bank_name.as_deref(), beneficiary.branch_name.as_deref()];
    let bank: Vec<&str> = bank.into_iter().flatten().collect();
    if !bank.is_empty() {
        receiver.push(row("Bank and branch", bank.join(", ")));
    }

    let locked = advice
        .rate_locked_at
        .map(|at| format!(", locked on {}", indian_date(at)))
        .unwrap_or_default();
    let mut amounts = vec![
        row("Amount sent", with_currency(advice.amount_sent)),
        row(
            "Exchange rate",
            format!("{} INR for 1 {}{locked}", advice.rate, advice.amount_sent_currency.as_str()),
        ),
        row("Gross amount", with_currency(advice.amount_gross)),
    ];
    if advice.fee.is_zero() {
        amounts.push(row("Fee", "none"));
    } else {
        amounts.push(row(
            "Fee",
            format!("{} (= {})", with_currency(advice.amount_fee), with_currency(advice.fee)),
        ));
    }
    if let Some(gst) = &advice.gst {
        let basis = format!("{} % of {}", gst.rate_percent, with_currency(gst.taxable_value));
        amounts.push(row("GST", format!("{} ({basis})", with_currency(gst.amount))));
    }
    amounts.push(TableRow {
        label: "Net amount",
        value: with_currency(advice.amount),
        is_strong: true,
    });
    if let Some(words) = &advice.amount_in_words {
        amounts.push(row("In words", words.clone()));
    }

    let mut origin = vec![
        row("Transfer", advice.transfer_id.to_string()),
        row("Payout", advice.payout_id.to_string()),
    ];
    for deposit in advice.deposits.iter().take(DEPOSITS_SHOWN_MAX) {
        let amount = format!("{} {}", grouped(deposit.amount), deposit.asset);
        origin.push(row(
            "Funded by",
            format!(
                "{amount} on {}, transaction {}",
                deposit.chain.to_uppercase(),
                deposit.transaction_hash
            ),
        ));
    }
    let more = advice.deposits_count - i64::try_from(DEPOSITS_SHOWN_MAX).unwrap_or(i64::MAX);
    if more > 0 {
        origin.push(row(
            "Funded by",
            format!("{more} more; the JSON document lists them (up to 20)"),
        ));
    }
    vec![
        TableSection { title: "Payment", rows: payment },
        TableSection { title: "Remitter", rows: remitter },
        TableSection { title: "Beneficiary", rows: receiver },
        TableSection { title: "Amounts", rows: amounts },
        TableSection { title: "Origin of the funds", rows: origin },
    ]
}

pub(super) fn notes(advice: &Advice) -> Vec<String> {
    let mut notes = vec![advice.statement.to_owned()];
    let asked = advice.sponsor_bank.as_deref().map_or(String::new(), |bank| format!(" or {bank}"));
    notes.push(format!(
        "For a FIRC or FIRA ask the beneficiary's bank{asked}, and give the reference (UTR) above."
    ));
    notes
}
