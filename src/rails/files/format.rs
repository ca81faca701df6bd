//! What all file formats share: the payment that they write, and the error for a file that they
//! cannot read. The trait `FileFormat` is in `settings`, because its functions take the settings.

use std::fmt;

use super::values::EndToEndId;
use crate::kernel::Money;
use crate::rails::port::PaymentMethod;

/// One payment, with everything that the bank needs to know. It holds the full account number, so
/// it has no `Debug`.
#[derive(Clone)]
pub struct PaymentOrder {
    pub end_to_end_id: EndToEndId,
    pub amount: Money,
    pub method: PaymentMethod,
    /// The RBI's code for the purpose of the remittance, such as `P1301`.
    pub purpose_code: String,
    pub sender: Remitter,
    pub beneficiary_name: String,
    /// The beneficiary's.
    pub account_number: String,
    pub ifsc: String,
}

/// Who sends the money, with what is known of the person.
#[derive(Clone)]
pub struct Remitter {
    pub name: String,
    /// The country of the address or, if that is not known, of the person: ISO 3166-1 alpha-2.
    pub country: String,
    pub street: Option<String>,
    pub postal_code: Option<String>,
    pub town: Option<String>,
    pub region: Option<String>,
    /// `YYYY-MM-DD`.
    pub date_of_birth: Option<String>,
    pub identification: Option<(IdentityDocument, String)>,
}

crate::string_enum!(
    /// The document that an identity number is from.
    IdentityDocument { Passport "passport", NationalId "national_id",
        DrivingLicence "driving_licence" }
);

/// Why a file, or a part of one, is not read. The reason names elements and positions, never
/// contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    pub reason: String,
    /// The file ends too early, so an agent may still be writing it.
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
