//! Checks by a person: no service is asked, and a beneficiary stays in verification until the
//! operator decides.
//!
//! `hundi beneficiaries list --status verifying` shows who waits, `hundi beneficiaries review ID
//! --match` decides.

use super::{AccountCheck, AccountQuestion, AccountVerifier};

pub struct ManualVerifier;

impl AccountVerifier for ManualVerifier {
    fn account(&self, _: &AccountQuestion) -> AccountCheck {
        AccountCheck::Review
    }
}
