//! The port to a bank: what it is asked to pay, and what it reports.

use crate::kernel::{Id, Money, Now, Scope, StoreError, id::kind};
use crate::store::Tx;

crate::string_enum!(
    /// How INR is sent: by NEFT below INR 200 000, by RTGS from that amount on, or as a book
    /// transfer (`Internal`) within the sponsor bank.
    PaymentMethod { Neft "neft", Rtgs "rtgs", Internal "internal" }
);
crate::string_enum!(
    /// Why a payout failed or came back.
    FailureCode {
        BeneficiaryNameMismatch "beneficiary_name_mismatch",
        AccountInvalid "account_invalid",
        AccountClosed "account_closed",
        AccountFrozen "account_frozen",
        AccountNotNre "account_not_nre",
        IfscInvalid "ifsc_invalid",
        BeneficiaryBankUnavailable "beneficiary_bank_unavailable",
        ReturnedByBeneficiaryBank "returned_by_beneficiary_bank",
        ComplianceRejected "compliance_rejected",
        TechnicalError "technical_error",
        OutcomeUnknown "outcome_unknown",
    }
);
crate::string_enum!(
    /// Who found the failure.
    FailureSource { BeneficiaryBank "beneficiary_bank", SponsorBank "sponsor_bank",
        Service "service" }
);

impl FailureCode {
    /// What a caller reads in the payout's `failure`.
    pub const fn message(self) -> &'static str {
        match self {
            FailureCode::BeneficiaryNameMismatch => {
                "The beneficiary's bank does not hold this account under this name."
            }
            FailureCode::AccountInvalid => "The beneficiary's bank knows no such account.",
            FailureCode::AccountClosed => "The beneficiary's account is closed.",
            FailureCode::AccountFrozen => "The beneficiary's account is frozen.",
            FailureCode::AccountNotNre => "The beneficiary's account is not an NRE account.",
            FailureCode::IfscInvalid => "The branch cannot be reached under this IFSC.",
            FailureCode::BeneficiaryBankUnavailable => {
                "The beneficiary's bank could not be reached."
            }
            FailureCode::ReturnedByBeneficiaryBank => {
                "The beneficiary's bank sent the payment back."
            }
            FailureCode::ComplianceRejected => "A compliance review refused the payment.",
            FailureCode::TechnicalError => "A technical error stopped the payment.",
            FailureCode::OutcomeUnknown => "The bank has not said what became of the payment.",
        }
    }
    /// What a caller can do about it, for the guides.
    pub const fn remedy(self) -> &'static str {
        match self {
            FailureCode::BeneficiaryNameMismatch => {
                "Ask for the name as the bank has it, and create a beneficiary with that name."
            }
            FailureCode::AccountInvalid => {
                "Ask for the account number and the IFSC again, and create a beneficiary with them."
            }
            FailureCode::AccountClosed | FailureCode::AccountNotNre => {
                "Ask for an open NRE account, and create a beneficiary with it."
            }
            FailureCode::AccountFrozen => {
                "The beneficiary has to ask their bank. Pay again once the account is free, or to \
                 another account."
            }
            FailureCode::IfscInvalid => {
                "Ask for the branch's present IFSC, and create a beneficiary with it."
            }
            FailureCode::BeneficiaryBankUnavailable => "Pay the same beneficiary again later.",
            FailureCode::ReturnedByBeneficiaryBank => {
                "Ask the operator why. Payouts to the beneficiary are disabled meanwhile."
            }
            FailureCode::ComplianceRejected => {
                "Ask the operator. Another payment would be refused, too."
            }
            FailureCode::TechnicalError => {
                "Pay the same beneficiary again later. If it fails again, ask the operator."
            }
            FailureCode::OutcomeUnknown => {
                "Wait, and do not pay again: the payout is still `processing`, and may arrive."
            }
        }
    }
}

/// The smallest payment to another bank that goes by RTGS, in paise: INR 200 000.
const RTGS_UNITS_MIN: i64 = 20_000_000;
/// How many letters at the start of an IFSC name the bank.
pub const BANK_CODE_LENGTH: usize = 4;

impl PaymentMethod {
    /// How many seconds the bank may take to report a payment as made. Only the hours in which it
    /// accepts payments of this method count.
    ///
    /// - NEFT: half an hour for the batch, two hours for the beneficiary's bank (RBI, NEFT
    ///   Procedural Guidelines), and half an hour for the sponsor bank's reports.
    /// - RTGS: half an hour for the beneficiary's bank (RBI, RTGS System Regulations), and half an
    ///   hour for the sponsor bank's reports.
    /// - A book transfer gets the time of RTGS.
    pub const fn settles_within_seconds(self) -> i64 {
        match self {
            PaymentMethod::Neft => 3 * 3_600,
            PaymentMethod::Rtgs | PaymentMethod::Internal => 3_600,
        }
    }
    /// The method of a payment to another bank.
    pub const fn for_amount(amount: Money) -> PaymentMethod {
        if amount.units < RTGS_UNITS_MIN { PaymentMethod::Neft } else { PaymentMethod::Rtgs }
    }
    /// The method of a payment to the branch `ifsc`. A branch of the sponsor bank, whose IFSCs
    /// begin with `bank_code`, gets a book transfer; the amount decides for the others.
    pub fn for_payment(amount: Money, ifsc: &str, bank_code: &str) -> PaymentMethod {
        match ifsc.get(..BANK_CODE_LENGTH) == Some(bank_code) {
            true => PaymentMethod::Internal,
            false => PaymentMethod::for_amount(amount),
        }
    }
}

/// A payment, for a rail to make or to inquire about.
#[derive(Clone, Debug)]
pub struct Instruction {
    pub scope: Scope,
    /// The identity of the payment. It stays the same if the payment is sent again.
    pub payout_id: Id<kind::Payout>,
    pub amount: Money,
    pub method: PaymentMethod,
    /// The end of the beneficiary's account number.
    pub account_number_last4: String,
    pub ifsc: String,
    /// Milliseconds of business time since the instruction was given; 0 at first.
    pub age_milliseconds: i64,
    /// Whether the bank has said that it paid.
    pub is_settled: bool,
}

/// A bank's report on an instruction. `Unknown` is never a reason to send the payment again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BankReport {
    Processing,
    Settled { unique_transaction_reference: String },
    Failed { code: FailureCode, source: FailureSource },
    Returned { code: FailureCode, source: FailureSource },
    Unknown,
}

/// How a bank's report reaches a payout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reporting {
    /// The service asks the bank from time to time, by `inquire`.
    Polled,
    /// The bank reports without being asked, and a worker applies its reports.
    Pushed,
}

/// A bank. Its functions may run within a transaction, so they do not communicate with the outside;
/// a worker does that.
pub trait Rail: Send + Sync {
    fn name(&self) -> &'static str;
    /// Whether the debit account is marked for foreign inward remittance. If it is not, the
    /// beneficiaries' banks send back what is paid into NRE accounts, so transfers are refused.
    fn supports_nre(&self) -> bool;
    fn reporting(&self) -> Reporting;
    /// The first four letters of the sponsor bank's IFSCs.
    fn bank_code(&self) -> &str;
    /// Whether a name still has a letter or a digit once it is written in the characters that the
    /// bank takes.
    fn can_write(&self, _name: &str) -> bool {
        true
    }
    /// Whether a payment has to name the sender's town and country.
    fn needs_remitter_address(&self) -> bool {
        false
    }
    /// When the bank next accepts payments of this payment's method. `None` if the payment does not
    /// wait for that. Moments are in Unix seconds; `instant` is the present.
    fn waits_until(
        &self,
        _tx: &mut dyn Tx,
        _instant: i64,
        _payout_id: Id<kind::Payout>,
    ) -> Result<Option<i64>, StoreError> {
        Ok(None)
    }
    /// Looks at the `rows_max` oldest payments without a final report, and answers for each late
    /// one the moment since which it is late. A payment is late once the bank has had it for
    /// [`PaymentMethod::settles_within_seconds`]. Moments are in Unix seconds; `instant` is
    /// the present.
    fn late_since(
        &self,
        _tx: &mut dyn Tx,
        _instant: i64,
        _rows_max: i64,
    ) -> Result<Vec<i64>, StoreError> {
        Ok(Vec::new())
    }
    /// Accepts an instruction, in the transaction that makes the payout `processing`. Called once
    /// for each payout.
    fn submit(
        &self,
        tx: &mut dyn Tx,
        now: &mut Now,
        instruction: &Instruction,
    ) -> Result<BankReport, StoreError>;
    /// Asks what became of a payment. A rail whose [`Rail::reporting`] is [`Reporting::Pushed`]
    /// answers [`BankReport::Processing`].
    fn inquire(&self, instruction: &Instruction) -> BankReport;
}
