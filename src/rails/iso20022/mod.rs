//! A bank that is spoken to by files: ISO 20022 messages in drop folders that any SFTP or
//! host-to-host agent serves.
//!
//! `xml` bounds what is read, `words` parses references, dates and amounts, `instruct` writes and
//! `reports` reads messages, `folders` publishes and collects files, `rows` keeps the journal of
//! what was sent and read. The worker is `work::bank`: it writes each payout at most once and
//! applies what the bank says. `simulator` is a bank to try it with.

pub mod folders;
pub mod instruct;
pub mod reasons;
pub mod reports;
pub mod rows;
pub mod settings;
pub mod simulator;
pub mod values;
pub mod xml;

use super::{BankReport, Instruction, Rail, Reporting};
use crate::kernel::{Now, StoreError};
use crate::store::Tx;

/// The rail: it writes down that an instruction is to be sent; `work::bank` sends it and applies
/// what the bank says.
pub struct IsoRail {
    /// See `BankSettings::supports_nre`.
    pub supports_nre: bool,
}

impl Rail for IsoRail {
    fn name(&self) -> &'static str {
        "iso20022"
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
