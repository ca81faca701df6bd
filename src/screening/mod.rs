//! Sanctions screening: published lists in memory, matched by name, identifier and blockchain
//! address.
//!
//! `lists.rs` reads the files that the settings name, with `ofac.rs`, `un.rs` and `own.rs`, and
//! passes questions to `matcher.rs`. A person's name is read in several ways (`prepare.rs`). For
//! each reading, `person_index.rs` finds candidates by similarity (`index.rs`) and by the
//! consonants of words, and `alignment.rs` says how much of both names agrees. The name of a
//! business is compared by similarity alone. `judge.rs` judges each candidate, and `hits.rs` stores
//! the hits for the operator (`hit.rs` is the row).
//!
//! The *given* name is the name that is screened: a full name, not a first name. A *listed* name is
//! a name of an entry.

pub mod alignment;
pub mod birth;
pub mod common_names;
pub mod countries;
pub mod entry_digest;
pub mod hit;
pub mod hits;
pub mod index;
pub mod judge;
pub mod lists;
pub mod matcher;
mod name_records;
pub mod ofac;
pub mod own;
pub mod person_index;
pub mod prepare;
pub mod rows;
pub mod settings;
pub mod simulated;
pub mod similarity;
pub mod sounds;
pub mod text;
pub mod token_trie;
pub mod un;

#[cfg(test)]
mod hits_test;
#[cfg(test)]
mod readers_test;
#[cfg(test)]
mod names_test;

use jiff::civil::Date;
use sha2::{Digest, Sha256};

use crate::chains::address::ChainAddress;
use birth::Birth;
use countries::CountryCode;

/// The most entries of one list; a file with more is refused.
pub const ENTRIES_MAX: usize = 200_000;
/// The most bytes of one file; a larger one is refused.
pub const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The most characters of one listed name; a file with a longer one is refused.
pub const NAME_CHARACTERS_MAX: usize = 1_000;
/// The most names of one entry; the same limit holds for its dates of birth, countries, identifiers
/// and addresses. A file with a larger entry is refused.
pub const DETAILS_MAX: usize = 2_000;

/// What a list entry is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EntryKind {
    Individual,
    Business,
    /// A ship or aircraft: its identifiers and blockchain addresses are compared, its names never.
    Vessel,
    /// The list does not say: compared with persons and businesses.
    Any,
}

crate::string_enum!(
    /// The lists there are.
    ListName { Ofac "ofac_sdn", Un "un_consolidated", Own "operator", Test "test" }
);

/// A name of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedName {
    pub text: String,
    /// The list itself calls the name weak (OFAC's quoted a.k.a., the UN's low quality): a match by
    /// this name is never a confirmed one.
    pub is_weak: bool,
}

/// A passport, identity or tax number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedIdentifier {
    /// Upper-case letters and digits only.
    pub number: String,
    pub country: Option<CountryCode>,
}

/// One sanctioned person, business, ship or aircraft.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListEntry {
    pub list: ListName,
    /// The list's own identifier.
    pub id: String,
    pub kind: EntryKind,
    /// The first is the primary name. An entry that has only addresses has no name.
    pub names: Vec<ListedName>,
    pub births: Vec<Birth>,
    pub countries: Vec<CountryCode>,
    pub identifiers: Vec<ListedIdentifier>,
    /// Blockchain addresses, as listed.
    pub addresses: Vec<String>,
}

impl ListEntry {
    pub fn new(list: ListName, id: &str, kind: EntryKind) -> ListEntry {
        ListEntry {
            list,
            id: id.to_owned(),
            kind,
            names: Vec::new(),
            births: Vec::new(),
            countries: Vec::new(),
            identifiers: Vec::new(),
            addresses: Vec::new(),
        }
    }

    /// Adds a name, unless it is empty. One that is listed both as weak and as strong is strong.
    fn add_name(&mut self, text: &str, is_weak: bool) {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match self.names.iter_mut().find(|name| name.text == text) {
            _ if text.is_empty() => {}
            Some(known) => known.is_weak &= is_weak,
            None => self.names.push(ListedName { text, is_weak }),
        }
    }
    fn add_country(&mut self, name: &str) {
        if let Some(code) = countries::find(name)
            && !self.countries.contains(&code)
        {
            self.countries.push(code);
        }
    }
    fn add_identifier(&mut self, number: &str, country: Option<CountryCode>) {
        let number = plain_identifier(number);
        if number.len() >= IDENTIFIER_CHARACTERS_MIN
            && !self
                .identifiers
                .iter()
                .any(|known| known.number == number && known.country == country)
        {
            self.identifiers.push(ListedIdentifier { number, country });
        }
    }
    fn add_address(&mut self, address: &str) {
        if !address.is_empty() && !self.addresses.iter().any(|known| known == address) {
            self.addresses.push(address.to_owned());
        }
    }

    /// A digest of the whole content. An operator's clearance ends when it changes.
    pub fn content_hash(&self) -> [u8; 32] {
        entry_digest::version_1(self)
    }

    fn check_limits(&self) -> Result<(), String> {
        let counts = [
            self.names.len(),
            self.births.len(),
            self.countries.len(),
            self.identifiers.len(),
            self.addresses.len(),
        ];
        if counts.iter().any(|count| *count > DETAILS_MAX) {
            return Err(format!(
                "entry {}: more than {DETAILS_MAX} names, dates or numbers",
                self.id
            ));
        }
        match self.names.iter().any(|name| name.text.chars().count() > NAME_CHARACTERS_MAX) {
            true => Err(format!(
                "entry {}: a name of more than {NAME_CHARACTERS_MAX} characters",
                self.id
            )),
            false => Ok(()),
        }
    }
}

/// Shorter numbers are shared by too many people to be compared.
const IDENTIFIER_CHARACTERS_MIN: usize = 5;

/// An identity number without spaces and punctuation, in upper case.
pub fn plain_identifier(text: &str) -> String {
    text.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_uppercase())
        .collect()
}

/// What a reader made of the files of one list.
#[derive(Debug)]
pub struct ReadList {
    pub entries: Vec<ListEntry>,
    /// When the list was made, in Unix seconds, if the list says so.
    pub made_at: Option<i64>,
}

/// The most characters of the reason why a list is refused. It may quote the file, which can
/// contain anything.
const FAULT_CHARACTERS_MAX: usize = 300;

/// The reason why a list is refused, cut to `FAULT_CHARACTERS_MAX` and without control characters.
fn short_fault(fault: String) -> String {
    let plain = fault
        .chars()
        .take(FAULT_CHARACTERS_MAX)
        .map(|letter| if letter.is_control() { ' ' } else { letter });
    plain.chain((fault.chars().nth(FAULT_CHARACTERS_MAX).is_some()).then_some('…')).collect()
}

/// Refuses a list without entries, and one with an entry that exceeds a limit.
fn checked(file: &str, entries: Vec<ListEntry>, made_at: Option<i64>) -> Result<ReadList, String> {
    if entries.is_empty() {
        return Err(format!("{file}: there are no entries; the file is empty or cut off"));
    }
    for entry in &entries {
        entry.check_limits().map_err(|fault| format!("{file}: {fault}"))?;
    }
    Ok(ReadList { entries, made_at })
}

/// A file's bytes as text, without a byte order mark.
fn utf8<'a>(file: &str, bytes: &'a [u8]) -> Result<&'a str, String> {
    let text = std::str::from_utf8(bytes).map_err(|fault| {
        let line = bytes
            .get(..fault.valid_up_to())
            .unwrap_or_default()
            .iter()
            .filter(|byte| **byte == b'\n')
            .count()
            + 1;
        format!("{file}, line {line}: this is not UTF-8")
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

crate::string_enum!(
    /// The result of screening a subject, the least serious first.
    Screening { Clear "clear", PossibleMatch "possible_match", ConfirmedMatch "confirmed_match" }
);

impl Screening {
    /// The more serious of two.
    fn or_worse(self, other: Screening) -> Screening {
        if self as u8 >= other as u8 { self } else { other }
    }
}

/// What a subject is screened as: it is compared with listed persons, or with listed businesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScreenedAs {
    Person,
    Business,
}

/// Who is screened. Unknown fields are empty and are no evidence either way. Contains personal
/// data: never log it.
#[derive(Clone)]
pub struct ScreeningQuestion {
    pub kind: ScreenedAs,
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
            kind: ScreenedAs::Person,
            name: name.to_owned(),
            aliases: Vec::new(),
            date_of_birth: None,
            countries: Vec::new(),
            identifiers: Vec::new(),
        }
    }
}

impl ScreeningQuestion {
    /// A hash of the whole question. Personal data could be guessed from it, so it is kept in
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
    /// The list's name, or [`UNREADABLE`].
    pub list: &'static str,
    /// The list's own identifier of the entry; with [`UNREADABLE`], a word that says why somebody
    /// or something was not compared, or not in full.
    pub entry_id: String,
    /// A hash of the entry's content; zeros with [`UNREADABLE`] and in test mode. A clearance ends
    /// when it changes.
    pub entry_hash: [u8; 32],
    /// `PossibleMatch` or `ConfirmedMatch`.
    pub screening: Screening,
    /// The name's score (`judge.rs`), 0 to 10 000; 10 000 where a number or an address agrees, and
    /// 0 for a name that was not compared, or not in full.
    pub score_basis_points: i64,
    /// What agreed and what did not, in words. Of the subject it contains at most a blockchain
    /// address, and no personal data.
    pub evidence: String,
    /// The listed name that agrees; `None` if something else agrees.
    pub listed_name: Option<String>,
}

/// What screening found. `screening` is that of the most serious hit. Without a hit it is `Clear`,
/// or `PossibleMatch` if no list could be asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScreeningFinding {
    pub screening: Screening,
    /// Confirmed matches first, then by score, the highest first.
    pub hits: Vec<ScreeningHit>,
}

/// The most undecided hits of a sender or beneficiary that are stored. Beyond these, only two kinds
/// are kept: hits that are open already, and hits of names that were not compared, or not in full.
pub const HITS_MAX: usize = 20;
/// The value of `list` for a name that was not compared, or not in full, and for a transfer with
/// more paying addresses than are compared.
pub const UNREADABLE: &str = "unreadable";

impl ScreeningFinding {
    /// The finding if no list could be asked: a possible match without a hit.
    pub const fn not_compared() -> ScreeningFinding {
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
        ScreeningFinding {
            screening: hits.first().map_or(Screening::Clear, |hit| hit.screening),
            hits,
        }
    }
}

/// Compares subjects with sanctions lists, in one mode. `screen` and `screen_address` read no file
/// and wait for nothing, so they may be called within a transaction.
pub trait Screener: Send + Sync {
    /// Whether `screen` compares with the configured lists. Such a comparison is slow, so most
    /// callers make it before the transaction opens ([`lists::Lists::screen_ahead`]). The
    /// transaction then finds the kept result.
    fn asks_lists(&self) -> bool {
        false
    }
    /// Compares a person or business with the sanctions lists.
    fn screen(&self, question: &ScreeningQuestion) -> ScreeningFinding;
    /// Compares an address that paid, or that a refund goes to, with the lists' digital currency
    /// addresses.
    fn screen_address(&self, address: &ChainAddress) -> ScreeningFinding;
}
