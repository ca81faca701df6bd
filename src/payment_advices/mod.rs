//! The payment advice: a beneficiary's evidence of a payout, as a signed JSON document and as a
//! one-page PDF.

pub mod api;
mod content;
mod countries;
mod layout;
mod page;
mod pen;
pub mod signing;
mod text;

use schemars::JsonSchema;
use serde::Serialize;

use self::signing::AdviceSignature;
use crate::deposits;
use crate::issuers::{Colour, Logo};
use crate::kernel::id::kind;
use crate::kernel::{Currency, Id, Money, Rate, StoreError, rupees};
use crate::payouts::advice_texts::AdviceTexts;
use crate::payouts::state::PayoutStatus;
use crate::payouts::{self, Payout};
use crate::quote_locks;
use crate::quote_locks::gst::GST_PERCENT;
use crate::rails::PaymentMethod;
use crate::resource::Resource;
use crate::senders::{self, Address};
use crate::services::Services;
use crate::store::Tx;
use crate::transfers::state::TransferStatus;
use crate::transfers::{self, PurposeCode, Transfer};
use crate::{beneficiaries, kernel};

pub const RESOURCE: Resource =
    Resource::new(api::routes).with_events(&[crate::events::PAYMENT_ADVICE_AVAILABLE]);

crate::string_enum!(AdviceWord { PaymentAdvice "payment_advice" });

/// The most deposits that an advice lists. Its `deposits_count` counts all.
pub const DEPOSITS_COUNT_MAX: i64 = 20;

/// Who sent the money.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AdviceSender {
    pub name: String,
    pub country: String,
    pub address: Option<Address>,
}

/// Who received the money. The full account number is never shown.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AdviceBeneficiary {
    pub name: String,
    pub account_number_last4: String,
    pub account_type: &'static str,
    pub ifsc: String,
    pub bank_name: Option<String>,
    pub branch_name: Option<String>,
}

/// A deposit that funded the transfer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AdviceDeposit {
    pub transaction_hash: String,
    pub chain: String,
    pub asset: String,
    pub amount: Money,
    /// Where the chain shows the transaction, for a chain whose pages are known.
    pub explorer_url: Option<String>,
}

crate::string_enum!(
    /// A milestone of a payment.
    Milestone {
        RateLocked "rate_locked",
        Funded "funded",
        Instructed "instructed",
        Settled "settled",
        Returned "returned",
    }
);

/// A milestone, and when the payment reached it.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct AdviceMilestone {
    /// Which milestone the payment reached.
    pub milestone: Milestone,
    pub at: i64,
}

/// GST by Rule 32(2)(b) of the CGST Rules, in rupees.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AdviceGst {
    pub taxable_value: Money,
    pub rate_percent: String,
    pub amount: Money,
}

/// Evidence of a payout that reached a bank.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "PaymentAdviceDocument")]
pub struct Advice {
    pub object: AdviceWord,
    pub advice_number: String,
    /// Who made the document: the operator's name.
    pub issuer: String,
    /// The issuer's postal address, where the operator has named it.
    pub issuer_address: Option<String>,
    /// The licence that the issuer works under, where the operator has named it.
    pub issuer_licence: Option<String>,
    /// The issuer's colour on the page.
    #[serde(skip)]
    #[schemars(skip)]
    pub colour: Option<Colour>,
    /// The issuer's logo on the page.
    #[serde(skip)]
    #[schemars(skip)]
    pub logo: Option<Logo>,
    /// When it became available, in Unix seconds.
    pub issued_at: Option<i64>,
    pub payout_id: Id<kind::Payout>,
    pub transfer_id: Id<kind::Transfer>,
    /// `settled`, or `returned` where the beneficiary's bank sent the money back.
    pub status: PayoutStatus,
    pub unique_transaction_reference: Option<String>,
    pub method: PaymentMethod,
    pub settled_at: Option<i64>,
    pub returned_at: Option<i64>,
    /// The milestones that the payment has reached, oldest first.
    pub milestones: Vec<AdviceMilestone>,
    pub sender: AdviceSender,
    pub beneficiary: AdviceBeneficiary,
    pub purpose_code: String,
    /// What the purpose code means.
    pub purpose: &'static str,
    pub amount_sent: Money,
    pub amount_sent_currency: Currency,
    /// In the currency that was sent.
    pub fee: Money,
    pub rate: Rate,
    /// When the rate was locked, in Unix seconds.
    pub rate_locked_at: Option<i64>,
    /// `amount_sent` at `rate`, before the fee. It is not what GST is computed on, which is after
    /// the fee.
    pub amount_gross: Money,
    /// The fee in the currency of the payout: `amount_gross` less `gst` and `amount`.
    pub amount_fee: Money,
    /// The GST that was deducted, where it is charged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gst: Option<AdviceGst>,
    pub amount: Money,
    pub currency: Currency,
    pub amount_in_words: Option<String>,
    /// At most 20, oldest first.
    pub deposits: Vec<AdviceDeposit>,
    pub deposits_count: i64,
    /// The bank that sent the INR, where the operator has named one.
    pub sponsor_bank: Option<String>,
    /// Last four characters of the operator's account at `sponsor_bank` that was debited; only in
    /// live mode.
    pub debited_account_last4: Option<String>,
    pub statement: &'static str,
    /// Where anybody can compare amount, date, reference and last four digits with what the service
    /// knows.
    pub verification_url: String,
    /// Where the keys are that verify `signature`.
    pub key_set_url: String,
    pub livemode: bool,
    pub signature: AdviceSignature,
}

// A FIRC (foreign inward remittance certificate) or FIRA (foreign inward remittance advice) is a
// bank's own evidence of money from abroad.
const STATEMENT: &str = "Payment advice - not a FIRC or FIRA, which only an authorised dealer \
 bank issues. \
    The credit represents foreign inward remittance, not local funds.";
const STATEMENT_RETURNED: &str = "Payment advice - not a FIRC or FIRA, which only an authorised \
 dealer bank issues. \
    The beneficiary's bank sent this payment back, so it stands for no remittance received.";
const STATEMENT_TEST: &str = "Payment advice of test mode - not a FIRC or FIRA, and no evidence \
 of anything: no money moved.";

/// What a purpose code means, in the words of the Reserve Bank's list of inward purposes.
const fn purpose_text(code: PurposeCode) -> &'static str {
    match code {
        PurposeCode::P0014 => "Receipts of non-resident deposits (FCNR(B), NR(E)RA)",
        PurposeCode::P1301 => {
            "Inward remittance from Indian non-residents towards family maintenance and savings"
        }
        PurposeCode::P1302 => "Personal gifts and donations",
    }
}

/// The token of the public page about a payout: the payout's identifier and a mark, a keyed hash
/// that only this service can make.
pub fn verification_token(services: &Services, id: Id<kind::Payout>) -> String {
    services.marked(VERIFICATION_PURPOSE, id)
}

/// The payout that a verification token names; `None` if its mark is wrong.
pub fn payout_of_verification_token(services: &Services, token: &str) -> Option<Id<kind::Payout>> {
    services.unmarked(VERIFICATION_PURPOSE, token)
}

/// The purpose that the mark of a verification token is bound to, so that a mark made for something
/// else does not fit.
const VERIFICATION_PURPOSE: &[u8] = b"payment_advice";

/// The number of a payout's advice. A payout has one advice, so the number follows from the
/// payout's identifier.
fn advice_number(id: Id<kind::Payout>) -> String {
    let text = id.to_string();
    format!("PA-{}", text.split_once('_').map_or(text.as_str(), |(_, ulid)| ulid))
}

/// Composes the advice of a payout that has settled, and signs it with the newest key of its mode.
/// The document changes if the payout is returned, the key is rotated, or the service is configured
/// with another public URL or another chain. The texts about the issuer and the bank are those that
/// were stored when the payout was instructed. The logo and the colour of the page are those that
/// are in force now.
pub fn compose(
    tx: &mut dyn Tx,
    services: &Services,
    payout: &Payout,
) -> Result<Advice, StoreError> {
    let lost = || StoreError::Broken(format!("a row for the advice of {} is missing", payout.id));
    let (scope, mode) = (payout.scope, payout.scope.mode());
    let transfer = transfers::rows::find(tx, scope, payout.transfer_id)?.ok_or_else(lost)?;
    let sender = senders::rows::find(tx, scope, transfer.sender_id)?.ok_or_else(lost)?;
    let beneficiary =
        beneficiaries::rows::find(tx, scope, payout.beneficiary_id)?.ok_or_else(lost)?;
    let lock = quote_locks::rows::find(tx, scope, transfer.quote_lock_id)?;
    let issuer = services.settings.issuers.of_scope(tx, scope)?;
    let texts = match payout.advice_texts_number {
        Some(number) => payouts::rows::find_advice_texts(tx, number)?.ok_or_else(lost)?,
        // The payout is from before the service stored these texts.
        None => AdviceTexts::of_settings(tx, services, scope)?,
    };
    let (deposits, deposits_count) = deposits::rows::counted_for_transfer(
        tx,
        scope,
        transfer.id,
        payout.created,
        DEPOSITS_COUNT_MAX,
    )?;
    let is_returned = payout.status == PayoutStatus::Returned;
    let explorer =
        services.ports(mode).ok().and_then(|ports| ports.chain.explorer(&transfer.chain));
    // `exchanged` drops the fraction of a paisa.
    let amount_gross = transfer.amount.exchanged(transfer.rate, payout.amount.currency)?;
    let mut advice = Advice {
        object: AdviceWord::PaymentAdvice,
        advice_number: advice_number(payout.id),
        issuer: texts.issuer,
        issuer_address: texts.issuer_address,
        issuer_licence: texts.issuer_licence,
        colour: issuer.colour,
        logo: issuer.logo.clone(),
        issued_at: payout.advice_available_at,
        payout_id: payout.id,
        transfer_id: payout.transfer_id,
        status: payout.status,
        unique_transaction_reference: payout.unique_transaction_reference.clone(),
        method: payout.method,
        settled_at: payout.settled_at,
        returned_at: payout.status_history.last_at(PayoutStatus::Returned),
        milestones: milestones(&transfer, payout, lock.as_ref().map(|lock| lock.created)),
        sender: AdviceSender {
            name: sender.name,
            country: sender.country,
            address: sender.address,
        },
        beneficiary: AdviceBeneficiary {
            name: beneficiary.name,
            account_number_last4: beneficiary.account_number_last4,
            account_type: "nre",
            ifsc: beneficiary.ifsc,
            bank_name: beneficiary.bank_name,
            branch_name: beneficiary.branch_name,
        },
        purpose_code: payout.purpose_code.clone(),
        purpose: PurposeCode::parse(&payout.purpose_code).map_or("", purpose_text),
        amount_sent: transfer.amount,
        amount_sent_currency: transfer.amount.currency,
        fee: transfer.fee,
        rate: transfer.rate,
        rate_locked_at: lock.map(|lock| lock.created),
        amount_gross,
        amount_fee: {
            let tax = transfer.gst.map_or(Money::zero(payout.amount.currency), |gst| gst.amount);
            amount_gross.minus(payout.amount)?.minus(tax)?
        },
        gst: transfer.gst.map(|gst| AdviceGst {
            taxable_value: gst.taxable,
            rate_percent: GST_PERCENT.to_string(),
            amount: gst.amount,
        }),
        amount: payout.amount,
        currency: payout.amount.currency,
        amount_in_words: rupees::in_words(payout.amount),
        deposits: deposits
            .into_iter()
            .map(|deposit| AdviceDeposit {
                explorer_url: explorer
                    .map(|explorer| explorer.of_transaction(&deposit.transaction_hash)),
                transaction_hash: deposit.transaction_hash,
                chain: deposit.chain,
                asset: deposit.asset,
                amount: deposit.amount,
            })
            .collect(),
        deposits_count,
        sponsor_bank: texts.sponsor_bank,
        debited_account_last4: texts.debited_account_last4,
        statement: match mode {
            kernel::Mode::Test => STATEMENT_TEST,
            kernel::Mode::Live if is_returned => STATEMENT_RETURNED,
            kernel::Mode::Live => STATEMENT,
        },
        verification_url: format!(
            "{}/verify/{}",
            services.settings.public_url,
            verification_token(services, payout.id)
        ),
        key_set_url: format!("{}{KEY_SET_PATH}", services.settings.public_url),
        livemode: scope.livemode(),
        signature: AdviceSignature::default(),
    };
    let document = serde_json::to_value(&advice)
        .map_err(|error| StoreError::Broken(format!("an advice does not serialise: {error}")))?;
    advice.signature = signing::newest(tx, &services.sealer, mode)?.sign(&document)?;
    Ok(advice)
}

/// The milestones that a payment has reached, in the order of the enum.
fn milestones(
    transfer: &Transfer,
    payout: &Payout,
    rate_locked_at: Option<i64>,
) -> Vec<AdviceMilestone> {
    let was = |status| transfer.status_history.last_at(status);
    [
        (Milestone::RateLocked, rate_locked_at),
        (Milestone::Funded, was(TransferStatus::Funded)),
        (Milestone::Instructed, was(TransferStatus::PayoutProcessing)),
        (Milestone::Settled, payout.settled_at),
        (Milestone::Returned, payout.status_history.last_at(PayoutStatus::Returned)),
    ]
    .into_iter()
    .filter_map(|(milestone, at)| Some(AdviceMilestone { milestone, at: at? }))
    .collect()
}

/// Where the keys are published.
pub const KEY_SET_PATH: &str = "/.well-known/hundi-advice-keys.json";

/// A time in Unix seconds as India shows it: `21 September 2026, 19:43:20 IST`. India is 5 h 30 min
/// ahead of UTC all year. A time beyond the calendar is shown as the number.
pub fn indian_time(seconds: i64) -> String {
    indian(seconds, "%-d %B %Y, %H:%M:%S IST")
}

/// The day of [`indian_time`], such as `21 September 2026`.
fn indian_date(seconds: i64) -> String {
    indian(seconds, "%-d %B %Y")
}

fn indian(seconds: i64, format: &str) -> String {
    const IST_OFFSET_SECONDS: i32 = 19_800;
    let zone = jiff::tz::Offset::from_seconds(IST_OFFSET_SECONDS).map(jiff::tz::TimeZone::fixed);
    match (jiff::Timestamp::from_second(seconds), zone) {
        (Ok(time), Ok(zone)) => time.to_zoned(zone).strftime(format).to_string(),
        _ => seconds.to_string(),
    }
}

impl Advice {
    /// One A4 page. The same advice gives the same bytes.
    pub fn to_pdf(&self) -> Result<Vec<u8>, StoreError> {
        page::write(self)
    }
}

#[cfg(test)]
mod tests {
    use super::{Advice, DEPOSITS_COUNT_MAX};

    #[test]
    fn the_schema_says_how_many_deposits_are_listed() {
        let schema = schemars::schema_for!(Advice).to_value();
        let listed = format!("At most {DEPOSITS_COUNT_MAX}, oldest first.");
        assert_eq!(schema["properties"]["deposits"]["description"], listed);
    }

    #[test]
    fn times_are_shown_in_indian_time() {
        assert_eq!(super::indian_time(1_790_000_000), "21 September 2026, 19:43:20 IST");
        assert_eq!(super::indian_date(1_790_000_000 + 4 * 3600 + 16 * 60), "21 September 2026");
        assert_eq!(super::indian_date(1_790_000_000 + 4 * 3600 + 17 * 60), "22 September 2026");
        assert_eq!(super::indian_time(i64::MAX), i64::MAX.to_string());
    }
}
