//! The payment advice: what a beneficiary can show, as JSON and as a one-page PDF.

use schemars::JsonSchema;
use serde::Serialize;

use super::Payout;
use crate::beneficiaries;
use crate::kernel::id::kind;
use crate::kernel::{Currency, Id, Money, Rate, StoreError};
use crate::quote_locks::gst::GST_PERCENT;
use crate::rails::Method;
use crate::senders;
use crate::store::Tx;
use crate::transfers;

crate::words!(AdviceWord { PaymentAdvice "payment_advice" });

/// Who sent the money.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AdviceSender {
    pub name: String,
    pub country: String,
}

/// Who received it; never the full account number.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AdviceBeneficiary {
    pub name: String,
    pub account_number_last4: String,
    pub account_type: &'static str,
    pub ifsc: String,
    pub bank_name: Option<String>,
    pub branch_name: Option<String>,
}

/// GST by Rule 32(2)(b) of the CGST Rules, in rupees.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AdviceGst {
    pub gross_amount: Money,
    pub taxable_value: Money,
    pub rate_percent: String,
    pub amount: Money,
}

/// Evidence of a payout that reached a bank.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "PaymentAdviceDocument")]
pub struct Advice {
    pub object: AdviceWord,
    pub payout_id: Id<kind::Payout>,
    pub transfer_id: Id<kind::Transfer>,
    pub unique_transaction_reference: Option<String>,
    pub method: Method,
    pub settled_at: Option<i64>,
    pub sender: AdviceSender,
    pub beneficiary: AdviceBeneficiary,
    pub purpose_code: String,
    pub amount_sent: Money,
    pub amount_sent_currency: Currency,
    pub fee: Money,
    pub rate: Rate,
    /// The GST that was deducted, where it is charged: the rupees before it are the amount and it together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gst: Option<AdviceGst>,
    pub amount: Money,
    pub currency: Currency,
    pub statement: &'static str,
    pub livemode: bool,
}

const STATEMENT: &str =
    "Payment advice - not a FIRC or FIRA, which only an authorised dealer bank issues. The credit represents foreign inward remittance.";

/// Puts the advice of a settled payout together.
pub fn compose(tx: &mut dyn Tx, payout: &Payout) -> Result<Advice, StoreError> {
    let lost = || StoreError::Broken(format!("{} has lost what its advice shows", payout.id));
    let transfer = transfers::rows::find(tx, payout.scope, payout.transfer_id)?.ok_or_else(lost)?;
    let sender = senders::rows::find(tx, payout.scope, transfer.sender_id)?.ok_or_else(lost)?;
    let beneficiary = beneficiaries::rows::find(tx, payout.scope, payout.beneficiary_id)?.ok_or_else(lost)?;
    Ok(Advice {
        object: AdviceWord::PaymentAdvice,
        payout_id: payout.id,
        transfer_id: payout.transfer_id,
        unique_transaction_reference: payout.unique_transaction_reference.clone(),
        method: payout.method,
        settled_at: payout.settled_at,
        sender: AdviceSender { name: sender.name, country: sender.country },
        beneficiary: AdviceBeneficiary {
            name: beneficiary.name,
            account_number_last4: beneficiary.account_number_last4,
            account_type: "nre",
            ifsc: beneficiary.ifsc,
            bank_name: beneficiary.bank_name,
            branch_name: beneficiary.branch_name,
        },
        purpose_code: payout.purpose_code.clone(),
        amount_sent: transfer.amount,
        amount_sent_currency: transfer.amount.currency,
        fee: transfer.fee,
        rate: transfer.rate,
        gst: transfer
            .gst
            .map(|gst| {
                Ok::<_, StoreError>(AdviceGst {
                    gross_amount: payout.amount.plus(gst.amount)?,
                    taxable_value: gst.taxable,
                    rate_percent: GST_PERCENT.to_string(),
                    amount: gst.amount,
                })
            })
            .transpose()?,
        amount: payout.amount,
        currency: payout.amount.currency,
        statement: STATEMENT,
        livemode: payout.scope.livemode(),
    })
}

/// `YYYY-MM-DD HH:MM IST` of a time in Unix seconds; India keeps one offset of 5 h 30 min all year.
fn indian_time(seconds: i64) -> String {
    const IST_OFFSET_SECONDS: i64 = 19_800;
    match jiff::Timestamp::from_second(seconds + IST_OFFSET_SECONDS) {
        Ok(time) => {
            let text = time.to_string();
            format!("{} {} IST", text.get(..10).unwrap_or(""), text.get(11..16).unwrap_or(""))
        }
        Err(_) => seconds.to_string(),
    }
}

impl Advice {
    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![
            ("Reference (UTR)", self.unique_transaction_reference.clone().unwrap_or_default()),
            ("Settled", self.settled_at.map(indian_time).unwrap_or_default()),
            ("Sent by", self.method.as_str().to_uppercase()),
            ("Remitter", format!("{} ({})", self.sender.name, self.sender.country)),
            ("Beneficiary", self.beneficiary.name.clone()),
            ("Account", format!("NRE account ending in {}", self.beneficiary.account_number_last4)),
            ("IFSC", self.beneficiary.ifsc.clone()),
            ("Purpose code", self.purpose_code.clone()),
            ("Amount sent", format!("{} {}", self.amount_sent_currency.as_str(), self.amount_sent)),
            ("Fee", format!("{} {}", self.amount_sent_currency.as_str(), self.fee)),
            ("Exchange rate", format!("{} INR for 1 USD", self.rate)),
            ("Amount credited", format!("{} {}", self.currency.as_str(), self.amount)),
            ("Transfer", self.transfer_id.to_string()),
            ("Payout", self.payout_id.to_string()),
        ];
        if let Some(bank) = &self.beneficiary.bank_name {
            lines.push(("Bank", bank.clone()));
        }
        lines
    }

    /// One A4 page in the PDF's own fonts. Characters outside Latin-1 show as `?`.
    pub fn to_pdf(&self) -> Vec<u8> {
        use pdf_writer::{Content, Name, Pdf, Rect, Ref, Str};
        let (catalog, pages, page, content_ref, font, bold) =
            (Ref::new(1), Ref::new(2), Ref::new(3), Ref::new(4), Ref::new(5), Ref::new(6));
        let latin = |text: &str| -> Vec<u8> { text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect() };
        let mut content = Content::new();
        let mut write = |font_name: &'static [u8], size: f32, x: f32, y: f32, text: &str| {
            content.begin_text().set_font(Name(font_name), size).next_line(x, y).show(Str(&latin(text))).end_text();
        };
        write(b"B", 20.0, 56.0, 770.0, "Payment advice");
        if !self.livemode {
            write(b"B", 20.0, 420.0, 770.0, "TEST");
        }
        for (index, (name, value)) in self.lines().into_iter().enumerate() {
            let y = 720.0 - index as f32 * 24.0;
            write(b"B", 10.0, 56.0, y, name);
            write(b"F", 10.0, 190.0, y, &value);
        }
        for (index, part) in STATEMENT.split_inclusive(". ").enumerate() {
            write(b"F", 8.0, 56.0, 90.0 - index as f32 * 12.0, part.trim());
        }
        let mut pdf = Pdf::new();
        pdf.catalog(catalog).pages(pages);
        pdf.pages(pages).kids([page]).count(1);
        let mut writer = pdf.page(page);
        writer.media_box(Rect::new(0.0, 0.0, 595.0, 842.0)).parent(pages).contents(content_ref);
        writer.resources().fonts().pair(Name(b"F"), font).pair(Name(b"B"), bold);
        drop(writer);
        pdf.stream(content_ref, &content.finish());
        pdf.type1_font(font).base_font(Name(b"Helvetica")).encoding_predefined(Name(b"WinAnsiEncoding"));
        pdf.type1_font(bold).base_font(Name(b"Helvetica-Bold")).encoding_predefined(Name(b"WinAnsiEncoding"));
        pdf.finish()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_shown_in_india() {
        assert_eq!(super::indian_time(1_790_000_000), "2026-09-21 19:43 IST");
    }
}
