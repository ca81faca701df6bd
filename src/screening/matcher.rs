//! Compares subjects with all list entries: by name, identity number and blockchain address.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::birth;
use super::countries::CountryCode;
use super::hit::EVIDENCE_SEPARATOR;
use super::index::{IndexBuilder, NameIndex};
use super::judge::{self, CountryEvidence, NameEvidence, Thresholds};
use super::person_index::{PersonIndex, PersonIndexBuilder};
use super::prepare::{Readings, has_bidi_override, readings};
use super::{EntryKind, ListEntry, UNREADABLE, plain_identifier, text};
use super::{ScreenedAs, Screening, ScreeningFinding, ScreeningHit, ScreeningQuestion};
use crate::chains::address::{AddressBytes, ChainAddress, listed_bytes};

/// The most aliases of one question that are compared.
pub const ALIASES_MAX: usize = 8;
/// The most findings that are kept. A transaction whose finding was dropped meanwhile compares
/// again.
const RECENT_MAX: usize = 1_024;

/// An address as it is compared: by its bytes, if it is an address of a known chain. One key has
/// the same 20 bytes on TRON and on every EVM chain.
#[derive(PartialEq, Eq, Hash)]
enum ComparedAddress {
    Bytes(AddressBytes),
    /// Of no known chain.
    Text(String),
}

impl ComparedAddress {
    fn of(text: &str) -> ComparedAddress {
        listed_bytes(text)
            .map_or_else(|| ComparedAddress::Text(text.to_owned()), ComparedAddress::Bytes)
    }
}

/// By the number of a name in an index: the name's entry, and its place among the entry's names.
type Places = Vec<(u32, u32)>;

/// Every name of the entries of this kind, and of [`EntryKind::Any`]: its entry, its place among
/// the entry's names, and its words. The indexes number names in this order.
fn names_of<'a>(
    entries: &'a [Arc<ListEntry>],
    kind: EntryKind,
) -> impl Iterator<Item = ((u32, u32), Vec<String>)> + 'a {
    let compared = entries
        .iter()
        .enumerate()
        .filter(move |(_, entry)| entry.kind == kind || entry.kind == EntryKind::Any);
    compared.flat_map(move |(number, entry)| {
        entry.names.iter().enumerate().map(move |(place, name)| {
            ((number as u32, place as u32), text::tokens(&name.text, kind))
        })
    })
}

/// The result of searching for one name.
struct NameSearch {
    /// The name has words, and all are in Latin letters or digits.
    is_comparable: bool,
    /// The searched text names more persons than were compared one by one.
    has_more_persons: bool,
    /// The name shares words with more listed names than were compared.
    has_more_names: bool,
    /// The listed names that the searched one may be: entry, place among the entry's names, and how
    /// alike the two names are.
    found: Vec<((u32, u32), NameEvidence)>,
}

/// The listed names that persons are compared with.
struct Persons {
    index: PersonIndex,
    places: Places,
}

impl Persons {
    fn of(entries: &[Arc<ListEntry>], threshold: f64) -> Persons {
        let (mut builder, mut places) = (PersonIndexBuilder::default(), Vec::new());
        for ((entry, place), words) in names_of(entries, EntryKind::Individual) {
            builder.add(entry, words);
            places.push((entry, place));
        }
        Persons { index: builder.build(threshold), places }
    }

    fn search(&self, name: &str) -> NameSearch {
        let Readings { all: readings, has_more_persons } = readings(name);
        let is_comparable = readings.first().is_some_and(|plain| is_comparable(&plain.words));
        let searched = self.index.search(&readings);
        let found = searched.candidates.into_iter().filter_map(|candidate| {
            let place = *self.places.get(candidate.name as usize)?;
            Some((place, NameEvidence::of_person(candidate.similarity, candidate.alignment)))
        });
        NameSearch {
            is_comparable,
            has_more_persons,
            has_more_names: searched.has_more_names,
            found: found.collect(),
        }
    }
}

/// The listed names that businesses are compared with.
struct Businesses {
    index: NameIndex,
    places: Places,
}

impl Businesses {
    fn of(entries: &[Arc<ListEntry>], threshold: f64) -> Businesses {
        let (mut builder, mut places) = (IndexBuilder::default(), Vec::new());
        for (place, words) in names_of(entries, EntryKind::Business) {
            builder.add(&words);
            places.push(place);
        }
        Businesses { index: builder.build(threshold), places }
    }

    fn search(&self, name: &str) -> NameSearch {
        let words = text::tokens(name, EntryKind::Business);
        let found = self.index.search(&words).into_iter().filter_map(|found| {
            let place = *self.places.get(found.name as usize)?;
            Some((place, NameEvidence::of_business(found.score)))
        });
        let is_comparable = is_comparable(&words);
        NameSearch {
            is_comparable,
            has_more_persons: false,
            has_more_names: false,
            found: found.collect(),
        }
    }
}

/// Whether a name has words, and all are in Latin letters or digits. The names of OFAC's and the
/// UN's list are in Latin letters, so a name in other letters agrees with none of them.
fn is_comparable(words: &[String]) -> bool {
    !words.is_empty() && words.iter().all(|word| word.is_ascii())
}

/// The findings of the newest comparisons, by the digest of the question.
#[derive(Default)]
struct Recent {
    findings: HashMap<[u8; 32], ScreeningFinding>,
    /// Oldest first.
    order: VecDeque<[u8; 32]>,
}

impl Recent {
    fn keep(&mut self, digest: [u8; 32], finding: ScreeningFinding) {
        if self.findings.insert(digest, finding).is_none() {
            self.order.push_back(digest);
        }
        while self.order.len() > RECENT_MAX {
            self.order.pop_front().map(|oldest| self.findings.remove(&oldest));
        }
    }
}

/// All entries, ready to be asked.
///
/// A finding depends only on the entries and the question. The newest findings are kept, so that a
/// transaction finds what was computed before it opened. When the entries change, a new matcher
/// without findings replaces this one.
pub struct EntryMatcher {
    thresholds: Thresholds,
    entries: Vec<Arc<ListEntry>>,
    persons: Persons,
    businesses: Businesses,
    identifiers: HashMap<String, Vec<u32>>,
    addresses: HashMap<ComparedAddress, Vec<u32>>,
    recent: Mutex<Recent>,
    comparisons_count: AtomicU64,
}

impl EntryMatcher {
    pub fn new(entries: Vec<Arc<ListEntry>>, thresholds: Thresholds) -> EntryMatcher {
        let (mut identifiers, mut addresses): (
            HashMap<String, Vec<u32>>,
            HashMap<ComparedAddress, Vec<u32>>,
        ) = Default::default();
        for (number, entry) in entries.iter().enumerate() {
            for identifier in &entry.identifiers {
                identifiers.entry(identifier.number.clone()).or_default().push(number as u32);
            }
            for address in &entry.addresses {
                addresses.entry(ComparedAddress::of(address)).or_default().push(number as u32);
            }
        }
        EntryMatcher {
            persons: Persons::of(&entries, thresholds.score_possible),
            businesses: Businesses::of(&entries, thresholds.score_possible),
            thresholds,
            entries,
            identifiers,
            addresses,
            recent: Mutex::default(),
            comparisons_count: AtomicU64::new(0),
        }
    }

    pub fn entries_count(&self) -> usize {
        self.entries.len()
    }

    /// How many questions were compared with the entries, without those that an earlier finding
    /// answered.
    pub fn comparisons_count(&self) -> u64 {
        self.comparisons_count.load(Ordering::Relaxed)
    }

    /// Compares a person or business with every entry, or answers the kept finding of the same
    /// question.
    pub fn screen(&self, question: &ScreeningQuestion) -> ScreeningFinding {
        let digest = question.digest();
        let known = self
            .recent
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .findings
            .get(&digest)
            .cloned();
        known.unwrap_or_else(|| {
            let finding = self.compare(question);
            self.recent
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .keep(digest, finding.clone());
            finding
        })
    }

    fn compare(&self, question: &ScreeningQuestion) -> ScreeningFinding {
        self.comparisons_count.fetch_add(1, Ordering::Relaxed);
        let countries: Vec<CountryCode> =
            question.countries.iter().filter_map(|code| CountryCode::parse(code)).collect();
        let mut hits: HashMap<u32, ScreeningHit> = HashMap::new();
        let (mut incomparable, mut has_more_persons, mut has_more_names) = (None, false, false);
        for name in std::iter::once(&question.name).chain(question.aliases.iter().take(ALIASES_MAX))
        {
            let search = match question.kind {
                ScreenedAs::Person => self.persons.search(name),
                ScreenedAs::Business => self.businesses.search(name),
            };
            if has_bidi_override(name) {
                incomparable = Some(NotFullyCompared::Direction);
            } else if !search.is_comparable {
                incomparable = incomparable.or(Some(NotFullyCompared::Script));
            }
            has_more_persons |= search.has_more_persons;
            has_more_names |= search.has_more_names;
            for ((number, place), evidence) in search.found {
                let Some(entry) = self.entries.get(number as usize) else { continue };
                let Some(listed) = entry.names.get(place as usize) else { continue };
                let birth = birth::evidence(&entry.births, question.date_of_birth);
                let country = country_evidence(&entry.countries, &countries);
                let Some((screening, score)) =
                    judge::by_name(&self.thresholds, &evidence, listed.is_weak, birth, country)
                else {
                    continue;
                };
                let weak = if listed.is_weak { " (weak alias)" } else { "" };
                let evidence = format!(
                    "listed name \"{}\"{weak}, score {score:.3}{EVIDENCE_SEPARATOR}{}",
                    listed.text,
                    judge::evidence_text(birth, country)
                );
                let hit = ScreeningHit {
                    listed_name: Some(listed.text.clone()),
                    ..hit(entry, screening, score, evidence)
                };
                keep(&mut hits, number, hit);
            }
        }
        for identifier in &question.identifiers {
            let plain = plain_identifier(identifier);
            for number in self.identifiers.get(&plain).into_iter().flatten() {
                let Some(entry) = self.entries.get(*number as usize) else { continue };
                let same = entry.identifiers.iter().filter(|listed| listed.number == plain);
                let is_confirmed = same
                    .filter_map(|listed| listed.country)
                    .any(|country| countries.contains(&country));
                let (screening, how) = match is_confirmed {
                    true => (Screening::ConfirmedMatch, "an identity number and its country agree"),
                    false => (
                        Screening::PossibleMatch,
                        "an identity number agrees, its country does not or is unknown",
                    ),
                };
                keep(&mut hits, *number, hit(entry, screening, 1.0, how.to_owned()));
            }
        }
        let too_long = has_more_persons.then_some(NotFullyCompared::Length);
        let common = has_more_names.then_some(NotFullyCompared::Commonness);
        let unreadable =
            incomparable.into_iter().chain(too_long).chain(common).map(NotFullyCompared::hit);
        ScreeningFinding::of(hits.into_values().chain(unreadable).collect())
    }

    /// Looks for an address. The same address is a confirmed match, in any letter case that its
    /// chain accepts. A listed address of another chain with the same bytes is a possible match.
    pub fn screen_address(&self, address: &ChainAddress) -> ScreeningFinding {
        let compared = ComparedAddress::Bytes(*address.bytes());
        let found = self.addresses.get(&compared).into_iter().flatten();
        let hits = found.filter_map(|number| self.entries.get(*number as usize)).map(|entry| {
            let (screening, how) = match entry.addresses.iter().any(|it| address.is_listed_as(it)) {
                true => (
                    Screening::ConfirmedMatch,
                    format!("listed digital currency address {address}"),
                ),
                false => (
                    Screening::PossibleMatch,
                    format!("the key of {address} is listed with an address of another chain"),
                ),
            };
            hit(entry, screening, 1.0, how)
        });
        ScreeningFinding::of(hits.collect())
    }
}

fn country_evidence(listed: &[CountryCode], given: &[CountryCode]) -> CountryEvidence {
    match (listed.is_empty() || given.is_empty(), given.iter().any(|code| listed.contains(code))) {
        (true, _) => CountryEvidence::Unknown,
        (false, true) => CountryEvidence::Agrees,
        (false, false) => CountryEvidence::Contradicts,
    }
}

fn hit(entry: &ListEntry, screening: Screening, score: f64, evidence: String) -> ScreeningHit {
    ScreeningHit {
        list: entry.list.as_str(),
        entry_id: entry.id.clone(),
        entry_hash: entry.content_hash(),
        screening,
        score_basis_points: (score * 10_000.0).round() as i64,
        evidence,
        listed_name: None,
    }
}

/// Why a name was not compared, or not in full. The operator has to look at the name. A clearance
/// holds while what is known of the subject stays the same.
#[derive(Clone, Copy)]
enum NotFullyCompared {
    Script,
    Direction,
    Length,
    Commonness,
}

impl NotFullyCompared {
    fn hit(self) -> ScreeningHit {
        let (entry_id, evidence) = match self {
            NotFullyCompared::Script => (
                "script",
                "a name is not in Latin letters and was compared with nobody: look at it in the \
                 lists' spelling",
            ),
            NotFullyCompared::Direction => (
                "direction",
                "a name holds characters that change the direction of its letters, so \
                 what it shows is not what was compared: compare the shown name with the lists, or \
                 refuse it",
            ),
            NotFullyCompared::Length => (
                "length",
                "a name holds more than 8 persons; only the first 8 were compared one by one: \
                 compare the others with the lists",
            ),
            NotFullyCompared::Commonness => (
                "common",
                "too many listed names share words with this name; only those that share its \
                 rarest words were compared: search the lists for the others",
            ),
        };
        ScreeningHit {
            list: UNREADABLE,
            entry_id: entry_id.to_owned(),
            entry_hash: [0; 32],
            screening: Screening::PossibleMatch,
            score_basis_points: 0,
            evidence: evidence.to_owned(),
            listed_name: None,
        }
    }
}

/// Of two hits on one entry, keeps the more serious one. A confirmed hit is more serious than a
/// possible one; between two of a kind, the higher score decides.
fn keep(hits: &mut HashMap<u32, ScreeningHit>, number: u32, hit: ScreeningHit) {
    let rank =
        |hit: &ScreeningHit| (hit.screening == Screening::ConfirmedMatch, hit.score_basis_points);
    match hits.get(&number) {
        Some(known) if rank(known) >= rank(&hit) => {}
        _ => {
            hits.insert(number, hit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screening::ListName;
    use crate::screening::person_index::CANDIDATES_MAX;

    #[test]
    fn a_name_that_cannot_be_compared_is_a_possible_match() {
        let matcher = EntryMatcher::new(Vec::new(), Thresholds::default());
        let found = |name: &str| matcher.screen(&ScreeningQuestion::person(name));
        for name in ["Asha Rao", "Łukasz Bjørn Weiß", "Ｊｏｈｎ Do\u{200b}e", "AL-ZAYDI, Shibl"]
        {
            assert_eq!(found(name).screening, Screening::Clear, "{name}");
        }
        for (name, entry_id) in [
            ("Владимир Иванов", "script"),
            ("Vlаdimir Ivanov", "script"),
            ("आशा राव", "script"),
            ("李明", "script"),
            ("***", "script"),
            ("\u{200b}", "script"),
            ("Asha राव", "script"),
            ("\u{202e}oaR ahsA", "direction"),
            ("Asha \u{202d}Rao", "direction"),
        ] {
            let finding = found(name);
            assert_eq!((finding.screening, finding.hits.len()), (Screening::PossibleMatch, 1));
            let hit = &finding.hits[0];
            assert_eq!((hit.list, hit.entry_id.as_str()), ("unreadable", entry_id), "{name}");
        }
    }

    /// A matcher with one listed person.
    fn listing(name: &str) -> EntryMatcher {
        let mut entry = ListEntry::new(ListName::Own, "own-1", EntryKind::Individual);
        entry.add_name(name, false);
        EntryMatcher::new(vec![Arc::new(entry)], Thresholds::default())
    }

    /// An example of EIP-55, and the address of the same key on TRON.
    #[test]
    fn a_listed_address_confirms_in_whatever_case_its_chain_takes() {
        let with_checksum = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
        let address = ChainAddress::parse(with_checksum).unwrap();
        let tron = ChainAddress::of_chain("tron", *address.bytes());
        let found = |listed: &str, address: &ChainAddress| {
            let mut entry = ListEntry::new(ListName::Own, "own-1", EntryKind::Any);
            entry.add_address(listed);
            let matcher = EntryMatcher::new(vec![Arc::new(entry)], Thresholds::default());
            matcher.screen_address(address).screening
        };
        let lower = with_checksum.to_lowercase();
        let upper = with_checksum.to_uppercase().replace('X', "x");
        let wrong_checksum = with_checksum.replace("eAed", "EAed");
        // All four have the same bytes.
        for listed in [with_checksum, &lower, &upper, &wrong_checksum] {
            assert_eq!(found(listed, &address), Screening::ConfirmedMatch, "{listed}");
            assert_eq!(found(listed, &tron), Screening::PossibleMatch, "{listed}");
        }
        let text = tron.to_string();
        assert_eq!(found(&text, &tron), Screening::ConfirmedMatch);
        assert_eq!(found(&text, &address), Screening::PossibleMatch);
        assert_eq!(found(&text.to_lowercase(), &tron), Screening::Clear);
    }

    #[test]
    fn too_many_listed_names_to_compare_are_a_possible_match() {
        let listing = |count: usize| {
            let entry = |number: usize| {
                let mut entry = ListEntry::new(ListName::Own, "own", EntryKind::Individual);
                let letters: String =
                    format!("{number:04}").bytes().map(|digit| (digit + 49) as char).collect();
                entry.add_name(&format!("Quackenbush {letters}ph{letters}"), false);
                Arc::new(entry)
            };
            EntryMatcher::new((0..count).map(entry).collect(), Thresholds::default())
        };
        let found = |count: usize| {
            let finding = listing(count).screen(&ScreeningQuestion::person("Asha Quackenbush"));
            finding.hits.into_iter().map(|hit| hit.list).filter(|list| *list == UNREADABLE).count()
        };
        assert_eq!((found(CANDIDATES_MAX - 100), found(CANDIDATES_MAX + 100)), (0, 1));
    }

    #[test]
    fn a_long_name_is_compared_in_full_or_is_a_possible_match() {
        let matcher = listing("Zubin Tarkhad");
        let found = |name: &str| -> Vec<String> {
            let finding = matcher.screen(&ScreeningQuestion::person(name));
            finding.hits.into_iter().map(|hit| hit.entry_id).collect()
        };
        let holders = "Asha Rao or Ravi Rao or Uma Bose or Anil Shah or Leela Nair";
        let none: [&str; 0] = [];
        let eight = format!("{holders} or Kiran Das or Gita Sen or Hari Roy");
        assert_eq!(found(&eight), none, "eight holders");
        assert_eq!(found(&eight.replace("Hari Roy", "Zubin Tarkhad")), ["own-1"]);
        assert_eq!(found(&format!("{eight} or Mina Jha")), ["length"], "nine");
        assert_eq!(
            found(&format!("{eight} or Zubin Tarkhad")),
            ["own-1", "length"],
            "its words are compared all the same"
        );
        // One person in more words than are aligned at once.
        let many = "Sri Venkata Naga Satya Surya Durga Rama Krishna Hanuma Lakshmi Narasimha Siva \
                    Prasada Gopala Bala Mukunda";
        assert_eq!(found(&format!("{many} Reddy")), none);
        assert_eq!(found(&format!("{many} Zubin Tarkhad")), ["own-1"]);
        // Each of six persons is read in every way.
        let written = "Mr. A-b C. D. Ra-o (Retd)/Mrs. E-f G. H. Ra-o/Mr. I-j K. L. Ra-o/Dr. M-n \
                       O. P. Ra-o/Mr. Q-r S. T. Ra-o/Mr. Zu-bin Tark-had";
        assert_eq!(found(written), ["own-1"]);
    }
}
