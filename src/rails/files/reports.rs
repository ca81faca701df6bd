//! The contents of a file from the bank, whatever its format.

use super::references::References;
use super::values::{Day, EndToEndId, MessageId};
use crate::kernel::{Currency, Money};
use crate::rails::port::{FailureCode, FailureSource};

/// The most reports or lines of one file.
pub const REPORTS_MAX: usize = 20_000;
/// The most unreadable parts of a file that are listed; the others are only counted.
pub const UNREAD_SHOWN_MAX: usize = 100;
/// The `other_reference` of the extra line that an entry of a statement gets for charges which its
/// amount includes.
pub const CHARGES: &str = "CHARGES";
/// The most characters of a bank's explanation that are kept.
pub const REASON_TEXT_LENGTH_MAX: usize = 200;

crate::string_enum!(
    /// The kinds of file. Each is stored under the name of one ISO version, whatever version a file
    /// has. The results of `csv_bulk` are stored as `Status`.
    ReportKind {
        Status "pain.002.001.10",
        Notification "camt.054.001.08",
        Statement "camt.053.001.08",
    }
);

impl ReportKind {
    /// The name of the kind, whatever the file's format.
    pub const fn word(self) -> &'static str {
        match self {
            ReportKind::Status => "status_report",
            ReportKind::Notification => "notification",
            ReportKind::Statement => "statement",
        }
    }
}

/// A file that was read.
#[derive(Clone, Debug)]
pub struct Incoming {
    pub kind: ReportKind,
    /// The bank's own identity of the message, 1 to 35 characters. For `csv_bulk`, a hash of the
    /// file.
    pub message_id: String,
    /// The page of a message that has several, from 1.
    pub page: i64,
    /// The bank says that this is a copy of a message that it sent before.
    pub is_copy: bool,
    pub content: Content,
    pub unread: Unread,
}

impl Incoming {
    /// The identity of this page: the message's, with the page number appended from the second page
    /// on.
    pub fn identity(&self) -> String {
        if self.page == 1 {
            self.message_id.clone()
        } else {
            format!("{} page {}", self.message_id, self.page)
        }
    }
}

/// Parts of a file that could not be read.
#[derive(Clone, Debug, Default)]
pub struct Unread {
    pub count: usize,
    /// The first `UNREAD_SHOWN_MAX` of them: where each is, and why it could not be read.
    pub shown: Vec<(String, String)>,
}

impl Unread {
    pub fn push(&mut self, place: impl Into<String>, reason: impl Into<String>) {
        self.count += 1;
        if self.shown.len() < UNREAD_SHOWN_MAX {
            self.shown.push((place.into(), reason.into()));
        }
    }
}

#[derive(Clone, Debug)]
pub enum Content {
    Statuses(StatusReport),
    Accounts(Vec<AccountReport>),
}

/// The meaning of a payment's status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatusMeaning {
    /// On its way.
    Processing,
    /// The bank says that it paid. The payout is settled only once a reference is known too.
    Paid,
    /// Refused; [`RefusalMeaning`] says what that means for the money.
    Refused,
}

/// Why a bank refused a payment or sent it back, in the bank's own code and text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reason {
    pub code: Option<String>,
    /// At most `REASON_TEXT_LENGTH_MAX` characters.
    pub text: Option<String>,
}

impl Reason {
    pub fn is_empty(&self) -> bool {
        self.code.is_none() && self.text.is_none()
    }
    /// This reason, if it has a code. Otherwise the other's code, and the other's text if this
    /// reason has no text.
    pub fn or(&self, other: &Reason) -> Reason {
        match self.code {
            Some(_) => self.clone(),
            None => Reason {
                code: other.code.clone(),
                text: self.text.clone().or_else(|| other.text.clone()),
            },
        }
    }
    /// Code and text as one text.
    pub fn words(&self) -> Option<String> {
        let said: Vec<&str> =
            [&self.code, &self.text].into_iter().flatten().map(String::as_str).collect();
        (!said.is_empty()).then(|| said.join(": "))
    }
    /// Keeps an explanation, shortened and without control characters, unless it is empty or there
    /// is one already.
    pub fn set_text(&mut self, text: &str) {
        let clean: String = text
            .chars()
            .map(|character| if character.is_control() { ' ' } else { character })
            .take(REASON_TEXT_LENGTH_MAX)
            .collect();
        let clean = clean.trim();
        if self.text.is_none() && !clean.is_empty() {
            self.text = Some(clean.to_owned());
        }
    }
}

/// What a refusal means for a payout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusalMeaning {
    /// The payment failed.
    Failed(FailureCode, FailureSource),
    /// The cause is on our side or in the file, not with the beneficiary: the operator decides.
    Ours,
    /// The bank does not say whether the money moved.
    Unknown,
}

/// What the bank says of one of our payment files, as a whole, batch by batch and payment by
/// payment.
#[derive(Clone, Debug, Default)]
pub struct StatusReport {
    /// Our payment file that the report is about; `None` if the report names no file of ours.
    pub original: Option<MessageId>,
    /// The message version of our payment file, as the bank names it: such as `pain.001.001.03`.
    pub original_version: Option<String>,
    /// The status of the whole file.
    pub whole: Option<ReportedStatus>,
    /// The status of each batch of our file (`PmtInf` in ISO 20022), with the identity that we gave
    /// the batch.
    pub batches: Vec<(String, ReportedStatus)>,
    pub payments: Vec<PaymentStatus>,
}

/// A status and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedStatus {
    /// `None` for a status that `reasons::status` does not know.
    pub meaning: Option<StatusMeaning>,
    pub reason: Reason,
}

#[derive(Clone, Debug)]
pub struct PaymentStatus {
    pub end_to_end_id: Option<EndToEndId>,
    pub status: ReportedStatus,
    /// The original amount, if the bank repeats it.
    pub amount: Option<Money>,
    pub references: References,
    /// The place in the file, in words.
    pub place: String,
}

crate::string_enum!(
    /// Which way money moved on the account.
    Sign { Credit "credit", Debit "debit" }
);

/// A statement or notification of one account, or one page of it.
#[derive(Clone, Debug)]
pub struct AccountReport {
    /// The bank's identity of the statement or notification.
    pub id: String,
    /// The bank's number of the statement; later statements have higher numbers.
    pub sequence: Option<i64>,
    /// The page of a statement that has several, from 1.
    pub page: i64,
    /// As the bank writes it. It is not stored.
    pub account_number: String,
    /// Booked balances, each with its day. Notifications have none, and a page of a statement may
    /// lack them. A negative balance is overdrawn.
    pub opening: Option<(Money, Day)>,
    pub closing: Option<(Money, Day)>,
    /// The booked movements: one or more for each booked entry.
    pub lines: Vec<StatementLine>,
}

/// One booked movement.
#[derive(Clone, Debug)]
pub struct StatementLine {
    pub end_to_end_id: Option<EndToEndId>,
    /// A reference that names no payout, as the bank wrote it: somebody else's, or the identity of
    /// a batch of ours. On a line for charges it is [`CHARGES`], which the reader sets.
    pub other_reference: Option<String>,
    pub references: References,
    /// The bank's own reference of the transaction, or else of the entry.
    pub entry_reference: Option<String>,
    pub amount: Money,
    pub sign: Sign,
    /// Whether the bank undoes an entry of its own. A return by the beneficiary's bank is not a
    /// reversal.
    pub is_reversal: bool,
    /// Why a payment came back.
    pub reason: Reason,
    pub booking_day: Day,
    pub value_day: Option<Day>,
    /// Our payments that the bank booked together, as this one amount.
    pub members: Vec<EndToEndId>,
    /// The place in the file, in words.
    pub place: String,
}

impl StatementLine {
    /// A line with only its direction and day; the reader of a format fills in the rest.
    pub const fn zero(sign: Sign, booking_day: Day) -> StatementLine {
        StatementLine {
            end_to_end_id: None,
            other_reference: None,
            references: References::new(),
            entry_reference: None,
            amount: Money::zero(Currency::Inr),
            sign,
            is_reversal: false,
            reason: Reason { code: None, text: None },
            booking_day,
            value_day: None,
            members: Vec::new(),
            place: String::new(),
        }
    }
}
