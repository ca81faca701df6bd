//! What a payment advice says: its headline, its amounts, the rows of its table, and its notes.

use super::countries::country_name;
use super::{Advice, DEPOSITS_COUNT_MAX, Milestone, indian_time};
use crate::kernel::Money;
use crate::kernel::rupees::grouped;
use crate::payouts::state::PayoutStatus;

/// The most deposits that the page names.
const DEPOSITS_SHOWN_MAX: usize = 2;

/// A row of the table.
pub(super) struct TableRow {
    pub(super) label: &'static str,
    pub(super) value: String,
    pub(super) is_strong: bool,
    /// The URL that the value links to.
    pub(super) link: Option<String>,
}

pub(super) struct TableSection {
    pub(super) title: &'static str,
    pub(super) rows: Vec<TableRow>,
}

/// A row of the amounts; the figure is aligned to the right.
pub(super) struct AmountRow {
    pub(super) label: String,
    pub(super) figure: String,
}

fn row(label: &'static str, value: impl Into<String>) -> TableRow {
    TableRow { label, value: value.into(), is_strong: false, link: None }
}

pub(super) fn with_currency(amount: Money) -> String {
    format!("{} {}", amount.currency.as_str(), grouped(amount))
}

/// What happened, in a few words.
pub(super) fn headline(advice: &Advice) -> &'static str {
    match advice.status {
        PayoutStatus::Returned => "Paid, and sent back by the beneficiary's bank",
        _ => "Payment completed",
    }
}

/// The steps from the amount sent to the amount paid: the rate, and if a fee or GST was deducted,
/// the gross amount and each deduction.
pub(super) fn amounts(advice: &Advice) -> Vec<AmountRow> {
    let amount = |label: &str, figure: String| AmountRow { label: label.to_owned(), figure };
    let rate = format!("{} INR for 1 {}", advice.rate, advice.amount_sent_currency.as_str());
    let mut rows = vec![amount("Exchange rate", rate)];
    // Without a fee or GST the gross amount is the amount paid.
    if advice.amount_gross == advice.amount && advice.gst.is_none() {
        return rows;
    }
    rows.push(amount("Gross amount", with_currency(advice.amount_gross)));
    if !advice.amount_fee.is_zero() {
        let label = format!("Fee (= {})", with_currency(advice.fee));
        rows.push(amount(&label, format!("– {}", with_currency(advice.amount_fee))));
    }
    if let Some(gst) = &advice.gst {
        let basis = format!("{} % of {}", gst.rate_percent, with_currency(gst.taxable_value));
        rows.push(amount(&format!("GST ({basis})"), format!("– {}", with_currency(gst.amount))));
    }
    rows
}

pub(super) fn sections(advice: &Advice) -> Vec<TableSection> {
    let unknown = || "not known".to_owned();
    let mut payment = vec![
        row("Reference (UTR)", advice.unique_transaction_reference.clone().unwrap_or_else(unknown)),
        row("Paid by", advice.method.as_str().to_uppercase()),
        row("Purpose", format!("{} - {}", advice.purpose_code, advice.purpose)),
    ];
    payment[0].is_strong = true;
    let account =
        advice.debited_account_last4.as_ref().map(|last4| format!("account ending in {last4}"));
    let paid_through: Vec<String> = advice.sponsor_bank.iter().cloned().chain(account).collect();
    if !paid_through.is_empty() {
        payment.push(row("Paid through", paid_through.join(", ")));
    }

    let sender = &advice.sender;
    let mut remitter = vec![row("Name", sender.name.clone())];
    if let Some(address) = &sender.address {
        let country = country_name(&address.country).to_owned();
        let parts = [
            Some(&address.line1),
            Some(&address.city),
            address.state.as_ref(),
            address.postal_code.as_ref(),
            Some(&country),
        ];
        remitter.push(row(
            "Address",
            parts.into_iter().flatten().cloned().collect::<Vec<_>>().join(", "),
        ));
    }
    if sender.address.as_ref().is_none_or(|address| address.country != sender.country) {
        remitter.push(row("Country", country_name(&sender.country)));
    }

    let beneficiary = &advice.beneficiary;
    let mut receiver = vec![
        row("Name", beneficiary.name.clone()),
        row("Account", format!("NRE account ending in {}", beneficiary.account_number_last4)),
    ];
    let bank = [
        beneficiary.bank_name.as_deref(),
        beneficiary.branch_name.as_deref(),
        Some(beneficiary.ifsc.as_str()),
    ];
    receiver.push(row("Bank", bank.into_iter().flatten().collect::<Vec<_>>().join(", ")));

    let milestones = advice.milestones.iter().map(|reached| {
        let label = match reached.milestone {
            Milestone::RateLocked => "Rate locked",
            Milestone::Funded => "Funds received",
            Milestone::Instructed => "Sent to the bank",
            Milestone::Settled => "Settled (value date)",
            Milestone::Returned => "Sent back",
        };
        row(label, indian_time(reached.at))
    });

    let mut origin = vec![
        row("Transfer", advice.transfer_id.to_string()),
        row("Payout", advice.payout_id.to_string()),
    ];
    for deposit in advice.deposits.iter().take(DEPOSITS_SHOWN_MAX) {
        let amount = format!("{} {}", grouped(deposit.amount), deposit.asset);
        let chain = deposit.chain.to_uppercase();
        origin.push(TableRow {
            link: deposit.explorer_url.clone(),
            ..row("Funded by", format!("{amount} on {chain}, {}", deposit.transaction_hash))
        });
    }
    let more = advice.deposits_count - i64::try_from(DEPOSITS_SHOWN_MAX).unwrap_or(i64::MAX);
    if more > 0 {
        origin.push(row(
            "Funded by",
            format!("{more} more; the JSON document lists them (up to {DEPOSITS_COUNT_MAX})"),
        ));
    }
    vec![
        TableSection { title: "Payment", rows: payment },
        TableSection { title: "Remitter", rows: remitter },
        TableSection { title: "Beneficiary", rows: receiver },
        TableSection { title: "Milestones", rows: milestones.collect() },
        TableSection { title: "Origin of the funds", rows: origin },
    ]
}

pub(super) fn notes(advice: &Advice) -> Vec<String> {
    let mut notes = vec![advice.statement.to_owned()];
    let other = advice.sponsor_bank.as_deref().map_or(String::new(), |bank| format!(" or {bank}"));
    notes.push(format!(
        "For a FIRC or FIRA ask the beneficiary's bank{other}, and give the reference (UTR) above."
    ));
    notes
}
