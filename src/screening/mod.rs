//! Sanctions screening: published lists in memory, matched by name, identifier and blockchain
//! address.
//!
//! `lists.rs` reads the files that the settings name (`ofac.rs`, `un.rs`, `own.rs`) and answers
//! questions; `judge.rs` weighs what was found; `hits.rs` keeps it for the operator. See
//! `similarity.rs`, `shelf.rs` and `index.rs` for how names are found.

pub mod birth;
pub mod countries;
pub mod hits;
pub mod index;
pub mod judge;
pub mod lists;
pub mod ofac;
pub mod own;
pub mod rows;
pub mod shelf;
pub mod similarity;
pub mod text;
pub mod un;

#[cfg(test)]
mod readers_test;

use sha2::{Digest, Sha256};

use birth::Birth;
use countries::CountryCode;

/// Entries of one list; a file with more is refused.
pub const ENTRIES_MAX: usize = 200_000;
/// Bytes of one file.
pub const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Characters of one listed name.
pub const NAME_CHARACTERS_MAX: usize = 1_000;
/// Aliases, dates, countries, identifiers or addresses of one entry.
pub const DETAILS_MAX: usize = 2_000;

/// What a list entry is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EntryKind {
    Individual,
    Business,
    /// Ships and aircraft: never compared with persons or businesses.
    Vessel,
    /// The list does not say; compared with everybody.
    Any,
}

crate::words!(
    /// The lists there are.
    ListName { Ofac "ofac_sdn", Un "un_consolidated", Own "operator", Test "test" }
);

/// A name of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedName {
    pub text: String,
    /// The list itself calls the name weak (OFAC's quoted a.k.a., the UN's low quality): it never
    /// confirms.
    pub is_weak: bool,
}

/// A passport, identity or tax number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedIdentifier {
    /// Upper-case letters and digits only.
    pub number: String,
    pub country: Option<CountryCode>,
}

/// One sanctioned person, business or ship.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub list: ListName,
    /// The list's own identifier.
    pub id: String,
    pub kind: EntryKind,
    /// The first is the primary name. An entry of only an address has none.
    pub names: Vec<ListedName>,
    pub births: Vec<Birth>,
    pub countries: Vec<CountryCode>,
    pub identifiers: Vec<ListedIdentifier>,
    /// Blockchain addresses, as listed.
    pub addresses: Vec<String>,
}

impl Entry {
    pub fn new(list: ListName, id: &str, kind: EntryKind) -> Entry {
        Entry {
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

    /// Adds a name that is not empty and not there yet; a name that is also strong stays strong.
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

    /// A hash of everything that matters: an operator's clearance holds while it stays the same.
    pub fn content_hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        // Debug output of plain values is one text for one content within a binary, and a change of
        // its form only asks again.
        hash.update(format!("{self:?}").as_bytes());
        hash.finalize().into()
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

/// Shorter numbers are shared by too many people to say anything.
const IDENTIFIER_CHARACTERS_MIN: usize = 5;

/// An identity number without spaces and punctuation, in upper case.
pub fn plain_identifier(text: &str) -> String {
    text.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_uppercase())
        .collect()
}

/// A list as it was read.
#[derive(Debug)]
pub struct ReadList {
    pub entries: Vec<Entry>,
    /// The moment the list says it was made, in Unix seconds, where it says so.
    pub made_at: Option<i64>,
}

/// Characters of the reason for which a list is refused: it may quote the file, which can hold
/// anything.
const FAULT_CHARACTERS_MAX: usize = 300;

/// The reason for which a list is refused, short and on one line.
fn told(fault: String) -> String {
    let plain = fault
        .chars()
        .take(FAULT_CHARACTERS_MAX)
        .map(|letter| if letter.is_control() { ' ' } else { letter });
    plain.chain((fault.chars().nth(FAULT_CHARACTERS_MAX).is_some()).then_some('…')).collect()
}

/// Refuses a list without entries, and one too large.
fn checked(file: &str, entries: Vec<Entry>, made_at: Option<i64>) -> Result<ReadList, String> {
    if entries.is_empty() {
        return Err(format!("{file}: there are no entries; the file is empty or cut off"));
    }
    for entry in &entries {
        entry.check_limits().map_err(|fault| format!("{file}: {fault}"))?;
    }
    Ok(ReadList { entries, made_at })
}

/// A file's bytes as text.
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
