//! The screening of test mode: two names are on its list.

use super::{Screener, Screening, ScreeningFinding, ScreeningHit, ScreeningQuestion};
use crate::chains::address::ChainAddress;

/// A confirmed match. A sender of this name can be created, but each of its transfers is refused
/// with `sender_not_eligible` until the operator approves the sender. A beneficiary of this name is
/// rejected.
pub const CONFIRMED_NAME: &str = "Test Sanctioned";
/// A possible match. The transfers of a sender of this name are refused in the same way. A
/// beneficiary of this name stays in verification until the operator or a test helper decides.
pub const POSSIBLE_NAME: &str = "Test Possibly Sanctioned";

pub struct SimulatedScreener;

impl Screener for SimulatedScreener {
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
                listed_name: Some(name.to_owned()),
            });
        ScreeningFinding::of(hits.collect())
    }
    /// The simulated payer is on no list.
    fn screen_address(&self, _: &ChainAddress) -> ScreeningFinding {
        ScreeningFinding::of(Vec::new())
    }
}
