//! The rail of a bank that exchanges files. It records that an instruction is to be sent. The
//! worker sends the instruction and applies what the bank reports.

use super::profile::BankProfile;
use super::rows::{self, InstructionStatus};
use super::settings::BankSettings;
use crate::kernel::id::kind;
use crate::kernel::{Id, Now, StoreError};
use crate::rails::port::{BankReport, Instruction, PaymentMethod, Rail, Reporting};
use crate::store::Tx;

pub struct FileRail {
    name: &'static str,
    supports_nre: bool,
    bank_code: String,
    profile: BankProfile,
}

impl FileRail {
    pub fn new(settings: &BankSettings) -> FileRail {
        FileRail {
            name: settings.format.0.name(),
            supports_nre: settings.supports_nre,
            bank_code: settings.bank_code().to_owned(),
            profile: settings.profile.clone(),
        }
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
        Reporting::Pushed
    }
    fn bank_code(&self) -> &str {
        &self.bank_code
    }
    fn can_write(&self, name: &str) -> bool {
        self.profile.characters.can_write(name)
    }
    fn needs_remitter_address(&self) -> bool {
        true
    }
    fn waits_until(
        &self,
        tx: &mut dyn Tx,
        instant: i64,
        payout_id: Id<kind::Payout>,
    ) -> Result<Option<i64>, StoreError> {
        let found = rows::find(tx, payout_id)?;
        let queued = found.filter(|found| found.status == InstructionStatus::Queued);
        Ok(queued.and_then(|found| self.profile.opens_at(found.method, instant)))
    }
    fn late_since(
        &self,
        tx: &mut dyn Tx,
        instant: i64,
        rows_max: i64,
    ) -> Result<Vec<i64>, StoreError> {
        let within = PaymentMethod::ALL.iter().map(|method| method.settles_within_seconds());
        // A payment that was published less than the shortest of these times ago cannot be late.
        let until = instant - within.min().unwrap_or(0);
        let with_bank = rows::published_until(tx, until, rows_max)?.into_iter();
        let late = with_bank.map(|(method, published_at)| {
            let windows = &self.profile.method_profile(method).windows;
            let seconds = method.settles_within_seconds();
            windows.elapsed_at(&self.profile.calendar, published_at, seconds)
        });
        Ok(late.filter(|at| *at <= instant).collect())
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
