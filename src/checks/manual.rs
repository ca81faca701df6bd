//! Checks by a person: no service is asked, and a beneficiary stays in verification until the
//! operator has looked.
//!
//! `hundi beneficiaries list --status verifying` shows who waits, `hundi beneficiaries review ID
//! --match` decides.

use super::{AccountCheck, AccountQuestion, Checks, ScreeningFinding, ScreeningQuestion};
use crate::chains::tron_address::TronAddress;

pub struct ManualChecks;

impl Checks for ManualChecks {
    fn name(&self) -> &'static str {
        "manual"
    }
    fn account(&self, _: &AccountQuestion) -> AccountCheck {
        AccountCheck::Review
    }
    /// No list is asked here, so the operator decides about every sender too.
    fn screen(&self, _: &ScreeningQuestion) -> ScreeningFinding {
        ScreeningFinding::unreviewed()
    }
    fn screen_address(&self, _: &TronAddress) -> ScreeningFinding {
        ScreeningFinding::unreviewed()
    }
}
