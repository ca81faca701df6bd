//! Checks of beneficiaries and senders: the port to name look-ups and screening.

pub mod http;
pub mod listed;
pub mod manual;
pub mod name_match;
pub mod simulated;

use futures_util::future::BoxFuture;
use jiff::civil::Date;
use secrecy::SecretString;
use sha2::{Digest, Sha256};

use crate::chains::tron_address::TronAddress;

crate::words!(
    /// How the name given compares with the one the bank holds.
    NameMatch { Match "match", Partial "partial", Mismatch "mismatch", Unavailable "unavailable" }
);
crate::words!(
    /// What screening says of a person.
    Screening { Clear "clear", PossibleMatch "possible_match", ConfirmedMatch "confirmed_match" }
);

/// An account to be checked. Its `Debug` shows no account number.
#[derive(Clone, Debug)]
pub struct AccountQuestion {
    pub name: String,
    pub account_number: SecretString,
    pub ifsc: String,
}

/// What a check of an account found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccountAnswer {
    Passed,
    /// How the name compares. The caller can mend one that differs; `unavailable` waits for the
    /// operator.
    Name(NameMatch),
    IfscUnknown,
    AccountInvalid,
    AccountNotNre,
    /// A confirmed sanctions match.
    Sanctioned,
    /// A possible sanctions match, for the operator.
    PossiblySanctioned,
    /// No answer yet: the beneficiary stays in verification and is asked about again in an hour.
    Unknown,
}

/// How a mode checks an account, as far as that is known inside a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccountCheck {
    Answered(AccountAnswer),
    /// The network is needed: a worker asks `look_up`, outside any transaction.
    LookUp,
    /// A person looks: the beneficiary stays in verification until the operator decides.
    Review,
}

/// What a look-up over the network came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookedUp {
    Answered(AccountAnswer),
    /// The service did not answer, or not so that it can be understood; it is asked again. The
    /// reason is one word for the log and the metrics.
    Unanswered {
        reason: &'static str,
        retry_after_seconds: Option<u64>,
    },
}

/// The table `[checks]`: who looks accounts up in live mode.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(tag = "adapter", rename_all = "snake_case")]
pub enum ChecksTable {
    /// A service over HTTP; see `http`.
    Http(http::HttpChecksSettings),
    /// A person; see `manual`.
    Manual {},
}

/// What kind of subject is screened: it is compared with listed persons, or with listed businesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubjectKind {
    Person,
    Business,
}

/// Who is screened. What is not known is left empty and is no evidence either way. Holds personal
/// data: never logged.
#[derive(Clone)]
pub struct ScreeningQuestion {
    pub kind: SubjectKind,
    pub name: String,
    pub aliases: Vec<String>,
    pub date_of_birth: Option<Date>,
    /// ISO 3166-1 alpha-2 codes: nationality, country of residence.
    pub countries: Vec<String>,
    /// Passport, identity and tax numbers.
    pub identifiers: Vec<String>,
}

impl ScreeningQuestion {
    /// A person of whom only the name is known.
    pub fn person(name: &str) -> ScreeningQuestion {
        ScreeningQuestion {
            kind: SubjectKind::Person,
            name: name.to_owned(),
            aliases: Vec::new(),
            date_of_birth: None,
            countries: Vec::new(),
            identifiers: Vec::new(),
        }
    }
}

impl ScreeningQuestion {
    /// A hash of everything that is asked. Personal data can be guessed from it: it is kept in
    /// memory only.
    pub fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update([self.kind as u8, u8::from(self.date_of_birth.is_some())]);
        hash.update(self.date_of_birth.map(|date| date.to_string()).unwrap_or_default());
        for list in
            [std::slice::from_ref(&self.name), &self.aliases, &self.countries, &self.identifiers]
        {
            hash.update((list.len() as u64).to_le_bytes());
            for text in list {
                hash.update((text.len() as u64).to_le_bytes());
                hash.update(text);
            }
        }
        hash.finalize().into()
    }
}

/// A list entry that may be the subject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScreeningHit {
    /// The list's name, and its own identifier of the entry.
    pub list: &'static str,
    pub entry_id: String,
    /// A hash of the entry's content: a decision about it holds while this stays the same.
    pub entry_hash: [u8; 32],
    /// `PossibleMatch` or `ConfirmedMatch`.
    pub screening: Screening,
    /// Similarity of the names, 0 to 10 000.
    pub score_basis_points: i64,
    /// What agreed and what did not, in words. Holds what the list publishes and nothing of the
    /// subject.
    pub evidence: String,
}

/// What screening found: the worst of its hits. Without lists to look at it is `PossibleMatch`
/// without a hit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScreeningFinding {
    pub screening: Screening,
    /// The best first, at most `HITS_MAX`.
    pub hits: Vec<ScreeningHit>,
}

/// Hits that one screening answers with.
pub const HITS_MAX: usize = 20;

impl ScreeningFinding {
    /// Nobody looked: unreviewed, which counts as possible.
    pub const fn unreviewed() -> ScreeningFinding {
        ScreeningFinding { screening: Screening::PossibleMatch, hits: Vec::new() }
    }
    /// The finding that these hits make.
    pub fn of(mut hits: Vec<ScreeningHit>) -> ScreeningFinding {
        let rank = |hit: &ScreeningHit| {
            (hit.screening == Screening::ConfirmedMatch, hit.score_basis_points)
        };
        hits.sort_by(|left, right| {
            rank(right).cmp(&rank(left)).then_with(|| left.entry_id.cmp(&right.entry_id))
        });
        hits.truncate(HITS_MAX);
        ScreeningFinding {
            screening: hits.first().map_or(Screening::Clear, |hit| hit.screening),
            hits,
        }
    }
}

/// Checks of one mode. `screen` and `screen_address` answer from memory and may be called within a
/// transaction.
pub trait Checks: Send + Sync {
    fn name(&self) -> &'static str;
    /// Called inside a transaction: answers at once, or says who will.
    fn account(&self, question: &AccountQuestion) -> AccountCheck;
    /// Called by the worker for what `account` left to it. It may be asked the same twice.
    fn look_up<'a>(&'a self, _question: &'a AccountQuestion) -> BoxFuture<'a, LookedUp> {
        Box::pin(std::future::ready(LookedUp::Unanswered {
            reason: "not_configured",
            retry_after_seconds: None,
        }))
    }
    /// Whether `screen` compares with the operator's lists, which takes so long that it is done
    /// before a transaction opens.
    fn asks_lists(&self) -> bool {
        false
    }
    /// Compares a person or business with the sanctions lists.
    fn screen(&self, question: &ScreeningQuestion) -> ScreeningFinding;
    /// Compares the address that paid with the lists' digital currency addresses.
    fn screen_address(&self, address: &TronAddress) -> ScreeningFinding;
}
