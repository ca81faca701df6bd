//! What a bank's status and reason codes mean here: the tables, as data.

use crate::rails::{FailureCode, FailureSource};

/// What a status of a payment says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// On its way.
    Processing,
    /// Paid, as far as the bank that reports can see; it counts once there is a reference.
    Paid,
    /// Refused: no money left the account.
    Refused,
}

/// External payment transaction, instruction and group status codes. One that is not here changes
/// nothing.
const STATUSES: &[(&str, Meaning)] = &[
    ("RCVD", Meaning::Processing),
    ("PDNG", Meaning::Processing),
    ("PATC", Meaning::Processing),
    ("PART", Meaning::Processing),
    ("ACTC", Meaning::Processing),
    ("ACCP", Meaning::Processing),
    ("ACSP", Meaning::Processing),
    ("ACWC", Meaning::Processing),
    ("ACWP", Meaning::Processing),
    ("ACFC", Meaning::Processing),
    ("ACSC", Meaning::Paid),
    ("ACCC", Meaning::Paid),
    ("RJCT", Meaning::Refused),
    ("CANC", Meaning::Refused),
];

/// The meaning of a status.
pub fn status(code: &str) -> Option<Meaning> {
    STATUSES.iter().find(|(known, _)| *known == code).map(|(_, meaning)| *meaning)
}

use FailureCode::*;
use FailureSource::{BeneficiaryBank, SponsorBank};

/// External status and return reason codes, then the numbered return codes that Indian banks use
/// beside them (those differ from bank to bank, so only the ones that several sources agree on).
const REASONS: &[(&str, FailureCode, FailureSource)] = &[
    ("AB05", BeneficiaryBankUnavailable, BeneficiaryBank),
    ("AB06", BeneficiaryBankUnavailable, BeneficiaryBank),
    ("AB07", BeneficiaryBankUnavailable, BeneficiaryBank),
    ("AB08", BeneficiaryBankUnavailable, BeneficiaryBank),
    ("AC01", AccountInvalid, BeneficiaryBank),
    ("AC02", TechnicalError, SponsorBank),
    ("AC03", AccountInvalid, BeneficiaryBank),
    ("AC04", AccountClosed, BeneficiaryBank),
    ("AC05", TechnicalError, SponsorBank),
    ("AC06", AccountFrozen, BeneficiaryBank),
    ("AC07", AccountClosed, BeneficiaryBank),
    ("AC13", TechnicalError, SponsorBank),
    ("AC14", AccountNotNre, BeneficiaryBank),
    ("AG01", AccountNotNre, BeneficiaryBank),
    ("AG02", TechnicalError, SponsorBank),
    ("AM02", TechnicalError, SponsorBank),
    ("AM04", TechnicalError, SponsorBank),
    // A duplicate was refused: of the first one nothing is said.
    ("AM05", OutcomeUnknown, SponsorBank),
    ("AM09", TechnicalError, SponsorBank),
    ("BE01", BeneficiaryNameMismatch, BeneficiaryBank),
    ("BE05", TechnicalError, SponsorBank),
    ("BE06", AccountInvalid, BeneficiaryBank),
    ("DU01", OutcomeUnknown, SponsorBank),
    ("DU02", OutcomeUnknown, SponsorBank),
    ("DU03", OutcomeUnknown, SponsorBank),
    ("DU04", OutcomeUnknown, SponsorBank),
    ("DUPL", OutcomeUnknown, SponsorBank),
    ("ED05", BeneficiaryBankUnavailable, BeneficiaryBank),
    ("FRAD", ComplianceRejected, SponsorBank),
    ("LEGL", ComplianceRejected, SponsorBank),
    ("MD07", AccountFrozen, BeneficiaryBank),
    ("MS02", ReturnedByBeneficiaryBank, BeneficiaryBank),
    ("MS03", ReturnedByBeneficiaryBank, BeneficiaryBank),
    ("RC01", IfscInvalid, SponsorBank),
    ("RC03", TechnicalError, SponsorBank),
    ("RC04", IfscInvalid, SponsorBank),
    ("RR01", ComplianceRejected, SponsorBank),
    ("RR02", ComplianceRejected, SponsorBank),
    ("RR03", ComplianceRejected, SponsorBank),
    ("RR04", ComplianceRejected, SponsorBank),
    ("RR05", ComplianceRejected, SponsorBank),
    ("TM01", TechnicalError, SponsorBank),
    ("R02", AccountClosed, BeneficiaryBank),
    ("R03", AccountInvalid, BeneficiaryBank),
    ("R04", AccountInvalid, BeneficiaryBank),
    ("R12", AccountNotNre, BeneficiaryBank),
    ("R16", AccountFrozen, BeneficiaryBank),
];

/// Why a payment was refused. A reason that is not in the table is a technical error of the sponsor
/// bank's.
pub fn refusal(code: Option<&str>) -> (FailureCode, FailureSource) {
    known(code).unwrap_or((TechnicalError, SponsorBank))
}

/// Why a payment came back. Its outcome is known, whatever the code says.
pub fn returned(code: Option<&str>) -> (FailureCode, FailureSource) {
    known(code)
        .filter(|(code, _)| *code != OutcomeUnknown)
        .unwrap_or((ReturnedByBeneficiaryBank, BeneficiaryBank))
}

fn known(code: Option<&str>) -> Option<(FailureCode, FailureSource)> {
    let code = code?;
    REASONS
        .iter()
        .find(|(known, ..)| *known == code)
        .map(|(_, failure, source)| (*failure, *source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_stands_once_and_a_duplicate_is_never_a_failure() {
        let mut codes: Vec<&str> = REASONS.iter().map(|(code, ..)| *code).collect();
        codes.sort_unstable();
        let count = codes.len();
        codes.dedup();
        assert_eq!(codes.len(), count);
        assert_eq!(refusal(Some("AC04")), (AccountClosed, BeneficiaryBank));
        assert_eq!(refusal(Some("DUPL")).0, OutcomeUnknown);
        assert_eq!(returned(Some("DUPL")).0, ReturnedByBeneficiaryBank);
        assert_eq!(refusal(Some("ZZZZ")), (TechnicalError, SponsorBank));
        assert_eq!(refusal(None), (TechnicalError, SponsorBank));
        assert_eq!(returned(None), (ReturnedByBeneficiaryBank, BeneficiaryBank));
        assert_eq!(
            (status("ACSC"), status("RJCT"), status("ACSP")),
            (Some(Meaning::Paid), Some(Meaning::Refused), Some(Meaning::Processing))
        );
        assert_eq!(status("????"), None);
    }
}
