//! The checks of test mode: the last digits of the account number decide, and two names are on its
//! screening list.

use secrecy::ExposeSecret;

use super::{
    AccountAnswer, AccountCheck, AccountQuestion, Checks, NameMatch, Screening, ScreeningFinding,
    ScreeningHit, ScreeningQuestion,
};
use crate::chains::tron_address::TronAddress;

/// Senders of these names are refused in test mode, so that callers can try `sender_not_eligible`.
pub const CONFIRMED_NAME: &str = "Test Sanctioned";
pub const POSSIBLE_NAME: &str = "Test Possibly Sanctioned";

pub struct SimulatedChecks;

fn last4(text: &str) -> &str {
    text.get(text.len().saturating_sub(4)..).unwrap_or(text)
}

impl Checks for SimulatedChecks {
    fn name(&self) -> &'static str {
        "simulated"
    }
    fn account(&self, question: &AccountQuestion) -> AccountCheck {
        match last4(question.account_number.expose_secret()) {
            "0002" => AccountCheck::Answered(AccountAnswer::Name(NameMatch::Partial)),
            "0003" => AccountCheck::Answered(AccountAnswer::AccountInvalid),
            // Stays in verification, and never changes its mind.
            "0004" => AccountCheck::Review,
            _ => AccountCheck::Answered(AccountAnswer::Passed),
        }
    }
    fn screen(&self, question: &ScreeningQuestion) -> ScreeningFinding {
        let listed = [
            (CONFIRMED_NAME, Screening::ConfirmedMatch, "test-1"),
            (POSSIBLE_NAME, Screening::PossibleMatch, "test-2"),
        ];
        let hits = listed
            .into_iter()
            .filter(|(name, _, _)| question.name.eq_ignore_ascii_case(name))
            .map(|(name, screening, entry_id)| ScreeningHit {
                list: "test",
                entry_id: entry_id.to_owned(),
                entry_hash: [0; 32],
                screening,
                score_basis_points: 10_000,
                evidence: format!("listed name \"{name}\", score 1.000"),
            });
        ScreeningFinding::of(hits.collect())
    }
    /// The simulated payer is on no list.
    fn screen_address(&self, _: &TronAddress) -> ScreeningFinding {
        ScreeningFinding::of(Vec::new())
    }
}
