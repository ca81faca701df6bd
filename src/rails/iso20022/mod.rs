//! Banks that speak ISO 20022. Its messages, by their short names:
//!
//! - pain.001: our payment file. It holds batches (`PmtInf`) of payments (`CdtTrfTxInf`).
//! - pain.002: the status of a payment file, of its batches and of its payments (`TxInfAndSts`).
//! - camt.053: a statement (`Stmt`) with balances (`Bal`) and booked entries (`Ntry`), which hold
//!   transactions (`TxDtls`).
//! - camt.054: a notification (`Ntfctn`) of entries, without balances.
//!
//! `instruct` writes payment files. `reading` reads reports, with `status`, `entries` and
//! `elements`. `xml` reads and writes the markup, within limits. `simulator` is a bank to try the
//! files with.

pub mod elements;
pub mod entries;
pub mod instruct;
pub mod reading;
pub mod simulator;
pub mod status;
pub mod xml;

use crate::kernel::StoreError;
use crate::rails::files::format::{FileError, PaymentOrder};
use crate::rails::files::reports::Incoming;
use crate::rails::files::settings::{BankSettings, FileFormat};
use crate::rails::files::values::MessageId;

/// The format `iso20022`.
pub struct Iso20022;

impl FileFormat for Iso20022 {
    fn name(&self) -> &'static str {
        "iso20022"
    }
    fn file_name_parts(&self) -> (&'static str, &'static str) {
        ("pain.001-", ".xml")
    }
    fn write(
        &self,
        settings: &BankSettings,
        message_id: MessageId,
        created: i64,
        orders: &[PaymentOrder],
    ) -> Result<Vec<u8>, StoreError> {
        instruct::write(settings, message_id, created, orders)
    }
    fn read(&self, settings: &BankSettings, bytes: &[u8]) -> Result<Incoming, FileError> {
        reading::read_for(bytes, &|number| settings.is_debit_account(number))
    }
    fn read_sample(&self, bytes: &[u8]) -> Result<Incoming, FileError> {
        reading::read(bytes)
    }
}
