//! The trait of a rail that exchanges files, and the rail itself.

use std::fmt;

use super::reports::Incoming;
use super::rows;
use super::settings::BankSettings;
use super::values::{EndToEndId, MessageId};
use crate::kernel::{Money, Now, StoreError};
use crate::rails::port::{BankReport, Instruction, Method, Rail, Reporting};
use crate::store::Tx;

/// One payment, with all that the bank needs to know. It holds the whole account number, so it has
/// no `Debug`.
#[derive(Clone)]
pub struct PaymentOrder {
    pub end_to_end_id: EndToEndId,
    pub amount: Money,
    pub method: Method,
    pub purpose_code: String,
    pub sender_name: String,
    /// ISO 3166-1 alpha-2.
    pub sender_country: String,
    pub sender_street: Option<String>,
    pub sender_town: Option<String>,
    pub beneficiary_name: String,
    pub account_number: String,
    pub ifsc: String,
}

/// Why a file, or a part of one, is not read. The reason names elements and positions, never
/// contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    pub reason: String,
    /// The file ends before its document does, so it may still be growing.
    pub is_truncated: bool,
}

impl FileError {
    pub fn new(reason: impl Into<String>) -> FileError {
        FileError { reason: reason.into(), is_truncated: false }
    }
    pub fn truncated() -> FileError {
        FileError {
            reason: "the file ends before its document does: have it sent again, whole".into(),
            is_truncated: true,
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// How one kind of bank writes and reads files.
pub trait FileFormat: Send + Sync {
    /// The name in `[bank] format`.
    fn name(&self) -> &'static str;
    /// The beginning and the end of a payment file's name; its identity stands between them.
    fn file_name_parts(&self) -> (&'static str, &'static str);
    /// A whole payment file. The same arguments give the same bytes. `created` is in Unix seconds;
    /// the payments are to be made on its day in India.
    fn write(
        &self,
        settings: &BankSettings,
        message_id: MessageId,
        created: i64,
        orders: &[PaymentOrder],
    ) -> Result<Vec<u8>, StoreError>;
    /// Reads a file from the bank. An error refuses the whole file; a part that cannot be read is
    /// listed in the answer, and the rest counts.
    fn read(&self, settings: &BankSettings, bytes: &[u8]) -> Result<Incoming, FileError>;
    /// Reads a sample, whatever account it is about.
    fn read_sample(&self, bytes: &[u8]) -> Result<Incoming, FileError>;
}

/// A format, as settings hold it: its name is shown by `Debug`.
#[derive(Clone, Copy)]
pub struct Format(pub &'static dyn FileFormat);

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl Format {
    pub fn file_name(self, id: MessageId) -> String {
        let (before, after) = self.0.file_name_parts();
        format!("{before}{id}{after}")
    }
    /// The identity in a name that `file_name` made.
    pub fn message_id(self, file_name: &str) -> Option<MessageId> {
        let (before, after) = self.0.file_name_parts();
        MessageId::parse(file_name.strip_prefix(before)?.strip_suffix(after)?)
    }
}

/// The rail of a bank that exchanges files: it records that an instruction is to be sent. The
/// worker sends it and applies what the bank reports.
pub struct FileRail {
    name: &'static str,
    supports_nre: bool,
}

impl FileRail {
    pub fn new(settings: &BankSettings) -> FileRail {
        FileRail { name: settings.format.0.name(), supports_nre: settings.supports_nre }
    }
}

impl Rail for FileRail {
    fn name(&self) -> &'static str {
        self.name
    }
    fn supports_nre(&self) -> bool {
        self.supports_nre
    }
    fn reporting(&self) -> Reporting {
        Reporting::Told
    }
    fn submit(
        &self,
        tx: &mut dyn Tx,
        now: &mut Now,
        instruction: &Instruction,
    ) -> Result<BankReport, StoreError> {
        rows::queue(tx, now, instruction)?;
        Ok(BankReport::Processing)
    }
    fn inquire(&self, _: &Instruction) -> BankReport {
        BankReport::Processing
    }
}
