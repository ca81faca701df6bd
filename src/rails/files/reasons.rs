//! The meanings of banks' status and reason codes, as tables.

use crate::rails::files::reports::{RefusalMeaning, StatusMeaning};
use crate::rails::port::{FailureCode, FailureSource};

/// ISO 20022's external status codes of payments, batches and files. A status whose code is missing
/// here changes no payout.
const STATUSES: &[(&str, StatusMeaning)] = &[
    ("RCVD", StatusMeaning::Processing),
    ("PDNG", StatusMeaning::Processing),
    ("PATC", StatusMeaning::Processing),
    ("PART", StatusMeaning::Processing),
    ("ACTC", StatusMeaning::Processing),
    ("ACCP", StatusMeaning::Processing),
    ("ACSP", StatusMeaning::Processing),
    ("ACWC", StatusMeaning::Processing),
    ("ACWP", StatusMeaning::Processing),
    ("ACFC", StatusMeaning::Processing),
    ("ACSC", StatusMeaning::Paid),
    ("ACCC", StatusMeaning::Paid),
    ("RJCT", StatusMeaning::Refused),
    ("CANC", StatusMeaning::Refused),
];

/// The meaning of a status code; `None` for one that is not in the table.
pub fn status(code: &str) -> Option<StatusMeaning> {
    STATUSES.iter().find(|(known, _)| *known == code).map(|(_, meaning)| *meaning)
}

use FailureCode::*;
use FailureSource::{BeneficiaryBank, SponsorBank};

/// ISO 20022's external reason codes for statuses and returns, then the numbered return codes that
/// Indian banks use too. The numbered ones differ from bank to bank, so the table has only those on
/// which several sources agree.
const REASONS: &[(&str, FailureCode, FailureSource)] = &[
    ("AB05", BeneficiaryBankUnavailable, BeneficiaryBank),
    ("AB06", BeneficiaryBankUnavailable, BeneficiaryBank),
    ("AB07", BeneficiaryBankUnavailable, BeneficiaryBank),
    ("AB08", BeneficiaryBankUnavailable, BeneficiaryBank),
    ("AC01", AccountInvalid, BeneficiaryBank),
    ("AC03", AccountInvalid, BeneficiaryBank),
    ("AC04", AccountClosed, BeneficiaryBank),
    ("AC06", AccountFrozen, BeneficiaryBank),
    ("AC07", AccountClosed, BeneficiaryBank),
    ("AC14", AccountNotNre, BeneficiaryBank),
    ("AG01", AccountNotNre, BeneficiaryBank),
    // The refused payment is a duplicate; the code says nothing about the first one.
    ("AM05", OutcomeUnknown, SponsorBank),
    ("BE01", BeneficiaryNameMismatch, BeneficiaryBank),
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
    ("RC04", IfscInvalid, SponsorBank),
    ("RR01", ComplianceRejected, SponsorBank),
    ("RR02", ComplianceRejected, SponsorBank),
    ("RR03", ComplianceRejected, SponsorBank),
    ("RR04", ComplianceRejected, SponsorBank),
    ("RR05", ComplianceRejected, SponsorBank),
    ("R02", AccountClosed, BeneficiaryBank),
    ("R03", AccountInvalid, BeneficiaryBank),
    ("R04", AccountInvalid, BeneficiaryBank),
    ("R12", AccountNotNre, BeneficiaryBank),
    ("R16", AccountFrozen, BeneficiaryBank),
];

/// Codes with a cause on our side: our account, our permissions or funds, the file, or the time at
/// which it was sent. The operator can remove the cause and send the payment again.
const CAUSED_BY_US: &[&str] = &[
    "AC02", "AC05", "AC13", "AG02", "AM02", "AM04", "AM09", "AM10", "AM14", "AM18", "AM19", "BE05",
    "CH03", "CH04", "CURR", "DS0A", "DS0H", "DS02", "DT01", "FF01", "FF02", "FF03", "RC03", "TM01",
];

/// What the refusal of one payment means. A code that is in neither table counts as a technical
/// error of the sponsor bank.
pub fn refusal(code: Option<&str>) -> RefusalMeaning {
    if code.is_some_and(|code| CAUSED_BY_US.contains(&code)) {
        return RefusalMeaning::Ours;
    }
    match known(code) {
        Some((OutcomeUnknown, _)) => RefusalMeaning::Unknown,
        Some((code, source)) => RefusalMeaning::Failed(code, source),
        None => RefusalMeaning::Failed(TechnicalError, SponsorBank),
    }
}

/// What the refusal of a payment means if its whole file or batch was refused for the reason
/// `whole`. A payment whose own reason has no code takes the code of `whole`. The payment is
/// `Failed` only for a reason that the beneficiary's bank found, or because of the IFSC, even in a
/// duplicate file. Otherwise it is `Unknown` if the payment, the file or the batch is a duplicate,
/// so that nobody sends it again, and `Ours` in every other case.
pub fn refusal_within_whole(code: Option<&str>, whole: Option<&str>) -> RefusalMeaning {
    let code = code.or(whole);
    match (refusal(code), known(code)) {
        (RefusalMeaning::Failed(..), Some((code, source)))
            if source == BeneficiaryBank || code == IfscInvalid =>
        {
            RefusalMeaning::Failed(code, source)
        }
        _ if refusal(whole) == RefusalMeaning::Unknown => RefusalMeaning::Unknown,
        (RefusalMeaning::Failed(..), _) => RefusalMeaning::Ours,
        (meaning, _) => meaning,
    }
}

/// Why a payment came back. A code that says that the outcome is unknown does not count here,
/// because the money came back.
pub fn returned(code: Option<&str>) -> (FailureCode, FailureSource) {
    known(code)
        .filter(|(code, _)| *code != OutcomeUnknown)
        .unwrap_or((ReturnedByBeneficiaryBank, BeneficiaryBank))
}

/// The table's entry for a code, if there is one.
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
    fn no_reason_is_listed_twice_and_codes_have_their_meanings() {
        let mut codes: Vec<&str> = REASONS.iter().map(|(code, ..)| *code).collect();
        codes.sort_unstable();
        let count = codes.len();
        codes.dedup();
        assert_eq!(codes.len(), count);
        use RefusalMeaning::*;
        assert_eq!(refusal(Some("AC04")), Failed(AccountClosed, BeneficiaryBank));
        assert_eq!(refusal(Some("DUPL")), Unknown);
        assert_eq!(refusal(Some("AM04")), Ours);
        assert_eq!(returned(Some("DUPL")).0, ReturnedByBeneficiaryBank);
        assert_eq!(refusal(Some("ZZZZ")), Failed(TechnicalError, SponsorBank));
        assert_eq!(refusal(None), Failed(TechnicalError, SponsorBank));
        for code in [None, Some("ZZZZ"), Some("AM04"), Some("FRAD")] {
            assert_eq!(refusal_within_whole(code, None), Ours, "{code:?}");
            assert_eq!(refusal_within_whole(code, Some("FF01")), Ours, "{code:?}");
            assert_eq!(refusal_within_whole(code, Some("DUPL")), Unknown, "{code:?}");
        }
        assert_eq!(refusal_within_whole(Some("DUPL"), None), Unknown);
        assert_eq!(refusal_within_whole(Some("AC04"), None), refusal(Some("AC04")));
        assert_eq!(refusal_within_whole(None, Some("AC04")), refusal(Some("AC04")));
        assert_eq!(returned(None), (ReturnedByBeneficiaryBank, BeneficiaryBank));
        assert_eq!(
            (status("ACSC"), status("RJCT"), status("ACSP")),
            (
                Some(StatusMeaning::Paid),
                Some(StatusMeaning::Refused),
                Some(StatusMeaning::Processing)
            )
        );
        assert_eq!(status("????"), None);
    }
}
