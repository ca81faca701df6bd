//! The checks of test mode: the last digits of the account number decide, and two names are on its screening list.

use super::{AccountAnswer, AccountQuestion, Checks, NameMatch, Screening};

/// Senders of these names are refused in test mode, so that callers can try `sender_not_eligible`.
pub const CONFIRMED_NAME: &str = "Test Sanctioned";
pub const POSSIBLE_NAME: &str = "Test Possibly Sanctioned";

pub struct SimulatedChecks;

impl Checks for SimulatedChecks {
    fn name(&self) -> &'static str {
        "simulated"
    }
    fn account(&self, question: &AccountQuestion) -> AccountAnswer {
        match question.account_number_last4.as_str() {
            "0002" => AccountAnswer::Name(NameMatch::Partial),
            "0003" => AccountAnswer::AccountInvalid,
            "0004" => AccountAnswer::Unknown,
            _ => AccountAnswer::Passed,
        }
    }
    fn screen(&self, name: &str) -> Screening {
        if name.eq_ignore_ascii_case(CONFIRMED_NAME) {
            Screening::ConfirmedMatch
        } else if name.eq_ignore_ascii_case(POSSIBLE_NAME) {
            Screening::PossibleMatch
        } else {
            Screening::Clear
        }
    }
}
