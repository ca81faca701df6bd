//! The rail of a bank that exchanges files.

use super::rows;
use super::settings::BankSettings;
use crate::kernel::{Now, StoreError};
use crate::rails::port::{BankReport, Instruction, Rail, Reporting};
use crate::store::Tx;

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
