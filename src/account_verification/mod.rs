//! The port for verifying accounts: who holds an account, and whether it can be paid.

pub mod http;
pub mod manual;
pub mod name_match;
mod persons;
pub mod simulated;

use futures_util::future::BoxFuture;
use secrecy::SecretString;

crate::string_enum!(
    /// How the name given compares with the one the bank holds.
    NameMatch { Match "match", Partial "partial", Mismatch "mismatch", Unavailable "unavailable" }
);

/// An account to be checked. Its `Debug` shows no name and no account number.
#[derive(Clone)]
pub struct AccountQuestion {
    pub name: String,
    pub account_number: SecretString,
    pub ifsc: String,
}

impl std::fmt::Debug for AccountQuestion {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "AccountQuestion({}, …)", self.ifsc)
    }
}

/// What a check of an account found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccountAnswer {
    /// The account can be paid; counts as `Name(NameMatch::Match)`.
    Passed,
    /// How the name compares. The caller can correct a name that differs; `Unavailable` waits for
    /// the operator.
    Name(NameMatch),
    /// No letter or digit of the name is left when it is written in the bank's characters.
    NameUnwritable,
    /// The directory has no branch with this IFSC, or one that accepts neither NEFT nor RTGS.
    IfscUnknown,
    AccountInvalid,
    AccountNotNre,
    /// A confirmed sanctions match.
    Sanctioned,
    /// A possible sanctions match, for the operator.
    PossiblySanctioned,
    /// Nothing can be said now: the beneficiary stays in verification and is checked again in an
    /// hour.
    Unknown,
}

/// What [`AccountVerifier::check`] says inside a transaction: the answer, or who has to be asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccountCheck {
    Answered(AccountAnswer),
    /// The network is needed: a worker asks `look_up`, outside any transaction.
    LookUp,
    /// A person is needed: the beneficiary stays in verification until the operator decides.
    Review,
}

/// The account holder's name as the bank has it. Personal data: its `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct HolderName(pub String);

impl std::fmt::Debug for HolderName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("HolderName(…)")
    }
}

/// The result of a look-up over the network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LookedUp {
    Answered(AccountAnswer),
    /// An answer of a service that also named the holder, who is screened too.
    Named {
        answer: AccountAnswer,
        holder_name: HolderName,
    },
    /// The service gave no usable answer; it is asked again.
    Unanswered {
        /// One word for the log and the metrics.
        reason: &'static str,
        /// The service's `Retry-After`.
        retry_after_seconds: Option<u64>,
    },
}

/// The table `[checks]`: who looks accounts up in live mode.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(tag = "adapter", rename_all = "snake_case")]
pub enum ChecksTable {
    /// A service over HTTP; see `http`.
    Http(http::HttpVerifierSettings),
    /// A person; see `manual`.
    Manual {},
}

/// Who says whether an account can be paid, in one mode.
pub trait AccountVerifier: Send + Sync {
    /// Called inside a transaction: answers at once, or says that the network or a person is
    /// needed.
    fn check(&self, question: &AccountQuestion) -> AccountCheck;
    /// Asks the network what `check` could not answer. A worker calls this outside any transaction,
    /// and may ask the same question twice.
    fn look_up<'a>(&'a self, _question: &'a AccountQuestion) -> BoxFuture<'a, LookedUp> {
        Box::pin(std::future::ready(LookedUp::Unanswered {
            reason: "not_configured",
            retry_after_seconds: None,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_is_logged_names_nobody() {
        let question = AccountQuestion {
            name: "Asha Rao".into(),
            account_number: "50100012345678".to_owned().into(),
            ifsc: "HDFC0000001".into(),
        };
        let shown = format!("{question:?}");
        assert!(shown.contains("HDFC0000001"), "{shown}");
        assert!(!shown.contains("Rao") && !shown.contains("5678"), "{shown}");
    }
}
