//! Checks by a person: no service is asked, and a beneficiary stays in verification until the
//! operator decides.
//!
//! `hundi beneficiaries list --status verifying` shows who waits. `hundi beneficiaries review ID`
//! records what the operator found: `--match`, `--mismatch`, `--not-nre` and so on.

use super::{AccountCheck, AccountQuestion, AccountVerifier};

pub struct ManualVerifier;

impl AccountVerifier for ManualVerifier {
    fn check(&self, _: &AccountQuestion) -> AccountCheck {
        AccountCheck::Review
    }
}
