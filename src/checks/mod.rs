//! Checks of beneficiaries and senders: the port to name look-ups and screening.

pub mod simulated;

crate::words!(
    /// How the name given compares with the one the bank holds.
    NameMatch { Match "match", Partial "partial", Mismatch "mismatch", Unavailable "unavailable" }
);
crate::words!(
    /// What screening says of a person.
    Screening { Clear "clear", PossibleMatch "possible_match", ConfirmedMatch "confirmed_match" }
);

/// An account to be checked.
#[derive(Clone, Debug)]
pub struct AccountQuestion {
    pub name: String,
    pub account_number_last4: String,
    pub ifsc: String,
}

/// What a check of an account found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccountAnswer {
    Passed,
    /// The name differs in a way that the caller can mend.
    Name(NameMatch),
    IfscUnknown,
    AccountInvalid,
    AccountNotNre,
    /// A confirmed sanctions match.
    Sanctioned,
    /// A possible sanctions match, for the operator.
    PossiblySanctioned,
    /// No answer yet: the beneficiary stays in verification and is asked about again.
    Unknown,
}

/// Checks of one mode.
pub trait Checks: Send + Sync {
    fn name(&self) -> &'static str;
    fn account(&self, question: &AccountQuestion) -> AccountAnswer;
    fn screen(&self, name: &str) -> Screening;
}
