//! Bank rails: adapters that give an INR instruction to a bank and bring back its reports.
//!
//! A new file format is a file or folder here that implements `files::settings::FileFormat`, a line
//! `pub mod`, and a line in [`FILE_FORMATS`]. `files::rail::FileRail` is the rail of all file
//! formats. Everything else (the worker, the journal, `hundi doctor`, `hundi reconcile`, live mode)
//! works with any of the formats. A bank with its own variant of a known format needs only a
//! profile.

pub mod csv_bulk;
pub mod files;
pub mod iso20022;
pub mod port;
pub mod simulated;

pub use iso20022::simulator as bank_simulator;
pub use port::{
    BankReport, FailureCode, FailureSource, Instruction, PaymentMethod, Rail, Reporting,
};

use files::settings::{BankSettings, BankTable, FileFormat};

/// The formats that `[bank] format` names; the first is the default.
pub const FILE_FORMATS: &[&dyn FileFormat] = &[&iso20022::Iso20022, &csv_bulk::CsvBulk];

impl TryFrom<BankTable> for BankSettings {
    type Error = String;

    fn try_from(table: BankTable) -> Result<BankSettings, String> {
        BankSettings::read(table, FILE_FORMATS)
    }
}
