//! The lists in memory: read from the files that the settings name, asked by the checks, read again
//! when the files change.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::UNIX_EPOCH;

use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::sync::{Notify, Semaphore};

use super::birth;
use super::countries::CountryCode;
use super::index::{IndexBuilder, NameIndex};
use super::judge::{self, CountryEvidence, Thresholds};
use super::{
    Entry, EntryKind, FILE_BYTES_MAX, ListName, ReadList, Screener, ofac, own, plain_identifier,
    text, un,
};
use super::{Screening, ScreeningFinding, ScreeningHit, ScreeningQuestion, SubjectKind};
use crate::chains::tron_address::TronAddress;
use crate::kernel::hex;

/// Aliases of one question that are compared.
pub const ALIASES_MAX: usize = 8;
/// A list that lost more than this share of its entries is refused while the service runs.
const SHRINK_PERCENT_MAX: usize = 20;
/// Those who screen ahead at the same time.
const AHEAD_MAX: usize = 2;
/// Findings that are kept: more than the transactions that may wait for their turn.
const RECENT_MAX: usize = 1_024;
const DAY_SECONDS: i64 = 86_400;
/// Days that a list may be old where the operator says nothing.
const AGE_DAYS_DEFAULT: i64 = 7;

/// The table `[screening]` of the configuration, as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScreeningSource {
    /// A directory with OFAC's sdn.csv, alt.csv, add.csv and sdn_comments.csv.
    pub ofac_directory: Option<PathBuf>,
    /// The UN's consolidated.xml.
    pub un_file: Option<PathBuf>,
    /// The operator's own list; see `own.rs` for its columns.
    pub operator_file: Option<PathBuf>,
    /// Days that OFAC's and the UN's list may be old in live mode: 1 to 90.
    pub age_days_max: Option<i64>,
    pub score_possible: Option<f64>,
    pub score_confirmed: Option<f64>,
}

/// Settings whose every value lies in its range; at least one list is named.
#[derive(Clone, Debug)]
pub struct ScreeningSettings {
    ofac_directory: Option<PathBuf>,
    un_file: Option<PathBuf>,
    operator_file: Option<PathBuf>,
    age_days_max: i64,
    thresholds: Thresholds,
}

impl TryFrom<ScreeningSource> for ScreeningSettings {
    type Error = String;

    fn try_from(source: ScreeningSource) -> Result<ScreeningSettings, String> {
        let defaults = Thresholds::default();
        let thresholds = Thresholds {
            score_possible: source.score_possible.unwrap_or(defaults.score_possible),
            score_confirmed: source.score_confirmed.unwrap_or(defaults.score_confirmed),
        };
        let age_days_max = source.age_days_max.unwrap_or(AGE_DAYS_DEFAULT);
        if !(1..=90).contains(&age_days_max) {
            return Err(format!(
                "screening.age_days_max is {age_days_max} and must be between 1 and 90"
            ));
        }
        if !(0.7..=1.0).contains(&thresholds.score_possible) {
            return Err("screening.score_possible must be between 0.7 and 1".into());
        }
        if !(thresholds.score_possible..=1.0).contains(&thresholds.score_confirmed) {
            return Err(
                "screening.score_confirmed must be between screening.score_possible and 1".into()
            );
        }
        if source.ofac_directory.is_none()
            && source.un_file.is_none()
            && source.operator_file.is_none()
        {
            return Err(
                "[screening] names no list: give ofac_directory, un_file or operator_file".into()
            );
        }
        Ok(ScreeningSettings {
            ofac_directory: source.ofac_directory,
            un_file: source.un_file,
            operator_file: source.operator_file,
            age_days_max,
            thresholds,
        })
    }
}

impl ScreeningSettings {
    fn files(&self) -> Vec<(ListName, Vec<PathBuf>)> {
        let ofac = self.ofac_directory.as_ref().map(|folder| {
            (ListName::Ofac, ofac::FILE_NAMES.map(|name| folder.join(name)).to_vec())
        });
        let un = self.un_file.as_ref().map(|file| (ListName::Un, vec![file.clone()]));
        let own = self.operator_file.as_ref().map(|file| (ListName::Own, vec![file.clone()]));
        [ofac, un, own].into_iter().flatten().collect()
    }
}

/// What shows that a file was replaced without reading it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Stamp {
    bytes: u64,
    modified_nanoseconds: u128,
}

/// One list as it was read.
#[derive(Clone)]
struct Source {
    list: ListName,
    stamps: Vec<Stamp>,
    content_hash: [u8; 32],
    /// When the list was made: what it says itself, or the oldest of its files, whichever is
    /// earlier. Unix seconds.
    dated_at: i64,
    entries: Vec<Arc<Entry>>,
}

/// A list, as the operator sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListState {
    pub list: ListName,
    pub entries_count: usize,
    /// Unix seconds.
    pub dated_at: i64,
    pub content_hash: [u8; 32],
}

/// An address as it is compared. The twenty bytes behind a TRON address are the same key's on every
/// EVM chain.
#[derive(PartialEq, Eq, Hash)]
enum AddressKey {
    Key([u8; 20]),
    Text(String),
}

impl AddressKey {
    fn of(text: &str) -> AddressKey {
        if let Ok(address) = TronAddress::parse(text) {
            return AddressKey::Key(*address.as_evm());
        }
        evm(text).map_or_else(|| AddressKey::Text(text.to_owned()), AddressKey::Key)
    }
}

/// The bytes of `0x` and forty hexadecimal digits.
fn evm(text: &str) -> Option<[u8; 20]> {
    text.strip_prefix("0x").and_then(hex::decode_exact)
}

/// The names of one kind of subject.
struct Names {
    index: NameIndex,
    /// Entry and place among its names, by the index's number.
    places: Vec<(u32, u32)>,
}

impl Names {
    fn of(entries: &[Arc<Entry>], kind: EntryKind, threshold: f64) -> Names {
        let mut builder = IndexBuilder::default();
        let mut places = Vec::new();
        for (number, entry) in entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.kind == kind || entry.kind == EntryKind::Any)
        {
            for (place, name) in entry.names.iter().enumerate() {
                builder.add(&text::tokens(&name.text, kind));
                places.push((number as u32, place as u32));
            }
        }
        Names { index: builder.build(threshold), places }
    }
}

/// What was found last, by the digest of the question.
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
/// A finding follows from the entries and the question alone. It is kept for a while, so that a
/// transaction finds what was worked out before it opened; other entries are another matcher,
/// which has nothing yet.
pub struct EntryMatcher {
    thresholds: Thresholds,
    entries: Vec<Arc<Entry>>,
    persons: Names,
    businesses: Names,
    identifiers: HashMap<String, Vec<u32>>,
    addresses: HashMap<AddressKey, Vec<u32>>,
    recent: Mutex<Recent>,
    comparisons_count: AtomicU64,
}

impl EntryMatcher {
    pub fn new(entries: Vec<Arc<Entry>>, thresholds: Thresholds) -> EntryMatcher {
        let (mut identifiers, mut addresses): (
            HashMap<String, Vec<u32>>,
            HashMap<AddressKey, Vec<u32>>,
        ) = Default::default();
        for (number, entry) in entries.iter().enumerate() {
            for identifier in &entry.identifiers {
                identifiers.entry(identifier.number.clone()).or_default().push(number as u32);
            }
            for address in &entry.addresses {
                addresses.entry(AddressKey::of(address)).or_default().push(number as u32);
            }
        }
        EntryMatcher {
            persons: Names::of(&entries, EntryKind::Individual, thresholds.score_possible),
            businesses: Names::of(&entries, EntryKind::Business, thresholds.score_possible),
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

    /// Questions that were compared with the entries, those answered by an earlier finding left
    /// out.
    pub fn comparisons_count(&self) -> u64 {
        self.comparisons_count.load(Ordering::Relaxed)
    }

    /// What comparing a person or business with every entry finds.
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
        let (names, kind) = match question.kind {
            SubjectKind::Person => (&self.persons, EntryKind::Individual),
            SubjectKind::Business => (&self.businesses, EntryKind::Business),
        };
        let countries: Vec<CountryCode> =
            question.countries.iter().filter_map(|code| CountryCode::parse(code)).collect();
        let mut hits: HashMap<u32, ScreeningHit> = HashMap::new();
        let mut is_comparable = true;
        for name in std::iter::once(&question.name).chain(question.aliases.iter().take(ALIASES_MAX))
        {
            let tokens = text::tokens(name, kind);
            // The lists are written in Latin letters, and what is in others agrees with nothing.
            is_comparable &= !tokens.is_empty() && tokens.iter().all(|token| token.is_ascii());
            for found in names.index.search(&tokens) {
                let Some((number, place)) = names.places.get(found.name as usize).copied() else {
                    continue;
                };
                let Some(entry) = self.entries.get(number as usize) else { continue };
                let Some(listed) = entry.names.get(place as usize) else { continue };
                let birth = birth::evidence(&entry.births, question.date_of_birth);
                let country = country_evidence(&entry.countries, &countries);
                let Some(screening) =
                    judge::by_name(&self.thresholds, found.score, listed.is_weak, birth, country)
                else {
                    continue;
                };
                let weak = if listed.is_weak { " (weak alias)" } else { "" };
                let evidence = format!(
                    "listed name \"{}\"{weak}, score {:.3}; {}",
                    listed.text,
                    found.score,
                    judge::words(birth, country)
                );
                keep(&mut hits, number, hit(entry, screening, found.score, evidence));
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
        ScreeningFinding::of(hits.into_values().chain((!is_comparable).then(unreadable)).collect())
    }

    /// Looks for the address that paid. The same text confirms; the same key on another chain is
    /// possible.
    pub fn screen_address(&self, address: &TronAddress) -> ScreeningFinding {
        let written = address.to_string();
        let found = self.addresses.get(&AddressKey::Key(*address.as_evm())).into_iter().flatten();
        let hits =
            found.filter_map(|number| self.entries.get(*number as usize)).map(|entry| match entry
                .addresses
                .contains(&written)
            {
                true => hit(
                    entry,
                    Screening::ConfirmedMatch,
                    1.0,
                    format!("listed digital currency address {written}"),
                ),
                false => hit(
                    entry,
                    Screening::PossibleMatch,
                    1.0,
                    format!("the key of {written} is listed with an address of another chain"),
                ),
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

fn hit(entry: &Entry, screening: Screening, score: f64, evidence: String) -> ScreeningHit {
    ScreeningHit {
        list: entry.list.as_str(),
        entry_id: entry.id.clone(),
        entry_hash: entry.content_hash(),
        screening,
        score_basis_points: (score * 10_000.0).round() as i64,
        evidence,
    }
}

/// What a name is that could not be compared: somebody has to look at it, and the decision holds as
/// long as the name.
fn unreadable() -> ScreeningHit {
    ScreeningHit {
        list: "unreadable",
        entry_id: "script".to_owned(),
        entry_hash: [0; 32],
        screening: Screening::PossibleMatch,
        score_basis_points: 0,
        evidence: "a name is not in Latin letters and was compared with nobody: look at it in the \
         lists' spelling"
            .to_owned(),
    }
}

/// Keeps the worse of two hits on one entry.
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

struct Loaded {
    sources: Vec<Source>,
    matcher: Arc<EntryMatcher>,
}

/// The lists of a running service. Questions are answered from what was loaded last.
pub struct Lists {
    settings: ScreeningSettings,
    /// Permits for those who screen ahead: each keeps a thread busy.
    ahead: Arc<Semaphore>,
    reloading: Mutex<()>,
    /// Told when other entries were read, to the one worker who walks.
    pub changed: Notify,
    loaded: RwLock<Arc<Loaded>>,
}

/// What looking at the files again came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reload {
    Unchanged,
    /// The files are newer and say the same: only the lists' age changed.
    Redated,
    /// Other entries: everybody is to be screened again.
    Changed,
}

impl Lists {
    /// Reads every list that the settings name. Slow (a second or so): not for a thread that
    /// answers requests.
    pub fn load(settings: ScreeningSettings) -> Result<Lists, String> {
        let sources = settings
            .files()
            .iter()
            .map(|(list, paths)| read_source(*list, paths))
            .collect::<Result<Vec<Source>, String>>()?;
        let matcher = Arc::new(matcher(&sources, settings.thresholds));
        Ok(Lists {
            settings,
            ahead: Arc::new(Semaphore::new(AHEAD_MAX)),
            reloading: Mutex::new(()),
            changed: Notify::new(),
            loaded: RwLock::new(Arc::new(Loaded { sources, matcher })),
        })
    }

    fn loaded(&self) -> Arc<Loaded> {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The entries as they are now.
    pub fn matcher(&self) -> Arc<EntryMatcher> {
        self.loaded().matcher.clone()
    }

    /// Works out what a transaction is about to ask, outside of it and on another thread. Whatever
    /// goes wrong here, the transaction does without.
    pub async fn screen_ahead(self: &Arc<Lists>, questions: Vec<ScreeningQuestion>) {
        let Ok(place) = self.ahead.clone().acquire_owned().await else { return };
        let lists = self.clone();
        let screened = tokio::task::spawn_blocking(move || {
            let matcher = lists.matcher();
            for question in &questions {
                matcher.screen(question);
            }
            drop(place);
        });
        if screened.await.is_err() {
            tracing::error!("screening ahead of a transaction panicked");
        }
    }

    pub fn states(&self) -> Vec<ListState> {
        let state = |source: &Source| ListState {
            list: source.list,
            entries_count: source.entries.len(),
            dated_at: source.dated_at,
            content_hash: source.content_hash,
        };
        self.loaded().sources.iter().map(state).collect()
    }

    /// A hash of all entries and of what decides about them; another one means that everybody is to
    /// be screened again.
    pub fn content_hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let Thresholds { score_possible, score_confirmed } = self.settings.thresholds;
        hash.update(score_possible.to_le_bytes());
        hash.update(score_confirmed.to_le_bytes());
        for source in &self.loaded().sources {
            hash.update(source.content_hash);
        }
        hash.finalize().into()
    }

    /// Why live mode may not start or go on: a list that is missing or too old. `now` is Unix
    /// seconds.
    pub fn why_not_live(&self, now: i64) -> Option<String> {
        let loaded = self.loaded();
        for (list, setting) in [(ListName::Ofac, "ofac_directory"), (ListName::Un, "un_file")] {
            let Some(source) = loaded.sources.iter().find(|source| source.list == list) else {
                return Some(format!(
                    "the sanctions list {} is missing: set screening.{setting}",
                    list.as_str()
                ));
            };
            let days = (now - source.dated_at).max(0) / DAY_SECONDS;
            if days > self.settings.age_days_max
                || (days == self.settings.age_days_max && (now - source.dated_at) % DAY_SECONDS > 0)
            {
                let max = self.settings.age_days_max;
                return Some(format!(
                    "the sanctions list {} is {days} days old, and {max} are allowed: fetch it \
                     again",
                    list.as_str()
                ));
            }
        }
        None
    }

    /// Looks whether the files were replaced, and reads those lists again. A fault keeps what was
    /// loaded; it is the caller's to tell, and the old lists grow older meanwhile. Slow where
    /// something changed.
    pub fn reload_if_changed(&self) -> Result<Reload, String> {
        // One after the other: the second finds what the first has read.
        let _turn = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.loaded();
        let mut sources = Vec::new();
        let mut outcome = Reload::Unchanged;
        for (source, (list, paths)) in old.sources.iter().zip(self.settings.files()) {
            let stamps =
                paths.iter().map(|path| stamp(path)).collect::<Result<Vec<Stamp>, String>>()?;
            if stamps == source.stamps {
                sources.push(source.clone());
                continue;
            }
            let new = read_source(list, &paths)?;
            let least = source.entries.len() * (100 - SHRINK_PERCENT_MAX) / 100;
            if list != ListName::Own && new.entries.len() < least {
                let (before, after) = (source.entries.len(), new.entries.len());
                return Err(format!(
                    "the sanctions list {} shrank from {before} to {after} entries; restart to \
                     take it",
                    list.as_str()
                ));
            }
            let is_same = new.content_hash == source.content_hash;
            outcome = if is_same && outcome != Reload::Changed {
                Reload::Redated
            } else {
                Reload::Changed
            };
            sources.push(new);
        }
        if outcome != Reload::Unchanged {
            let matcher = match outcome {
                Reload::Changed => Arc::new(matcher(&sources, self.settings.thresholds)),
                _ => old.matcher.clone(),
            };
            *self.loaded.write().unwrap_or_else(PoisonError::into_inner) =
                Arc::new(Loaded { sources, matcher });
        }
        if outcome == Reload::Changed {
            self.changed.notify_one();
        }
        Ok(outcome)
    }
}

impl Screener for Arc<Lists> {
    fn asks_lists(&self) -> bool {
        true
    }
    fn screen(&self, question: &ScreeningQuestion) -> ScreeningFinding {
        self.matcher().screen(question)
    }
    fn screen_address(&self, address: &TronAddress) -> ScreeningFinding {
        self.matcher().screen_address(address)
    }
}

fn matcher(sources: &[Source], thresholds: Thresholds) -> EntryMatcher {
    EntryMatcher::new(
        sources.iter().flat_map(|source| source.entries.iter().cloned()).collect(),
        thresholds,
    )
}

fn stamp(path: &Path) -> Result<Stamp, String> {
    let unreadable = |error: std::io::Error| {
        format!("the sanctions list {} cannot be read: {error}", path.display())
    };
    let facts = std::fs::metadata(path).map_err(unreadable)?;
    let modified =
        facts.modified().map_err(unreadable)?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Stamp { bytes: facts.len(), modified_nanoseconds: modified.as_nanos() })
}

fn read_file(path: &Path, stamp: &Stamp) -> Result<Vec<u8>, String> {
    if stamp.bytes > FILE_BYTES_MAX {
        return Err(format!(
            "the sanctions list {} has {} bytes and may have {FILE_BYTES_MAX}",
            path.display(),
            stamp.bytes
        ));
    }
    let bytes = std::fs::read(path).map_err(|error| {
        format!("the sanctions list {} cannot be read: {error}", path.display())
    })?;
    if bytes.len() as u64 == stamp.bytes {
        Ok(bytes)
    } else {
        Err(format!("the sanctions list {} is being written", path.display()))
    }
}

fn read_source(list: ListName, paths: &[PathBuf]) -> Result<Source, String> {
    let stamps = paths.iter().map(|path| stamp(path)).collect::<Result<Vec<Stamp>, String>>()?;
    let files = paths
        .iter()
        .zip(&stamps)
        .map(|(path, stamp)| read_file(path, stamp))
        .collect::<Result<Vec<Vec<u8>>, String>>()?;
    let place = paths.first().and_then(|path| path.parent()).unwrap_or(Path::new("")).display();
    let read: ReadList = match (list, files.as_slice()) {
        (ListName::Ofac, [sdn, alt, add, comments]) => {
            ofac::read(ofac::Files { sdn, alt, add, comments })
        }
        (ListName::Un, [file]) => un::read(file),
        (_, [file]) => own::read(file),
        _ => Err("the list has another number of files".into()),
    }
    .map_err(|fault| format!("in {place}: {fault}"))?;
    let mut hash = Sha256::new();
    for entry in &read.entries {
        hash.update(entry.content_hash());
    }
    let oldest =
        stamps.iter().map(|stamp| stamp.modified_nanoseconds / 1_000_000_000).min().unwrap_or(0);
    let oldest = i64::try_from(oldest).unwrap_or(i64::MAX);
    Ok(Source {
        list,
        stamps,
        content_hash: hash.finalize().into(),
        dated_at: read.made_at.map_or(oldest, |made_at| made_at.min(oldest)),
        entries: read.entries.into_iter().map(Arc::new).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_cannot_be_compared_is_looked_at() {
        let matcher = EntryMatcher::new(Vec::new(), Thresholds::default());
        let found = |name: &str| matcher.screen(&ScreeningQuestion::person(name));
        for name in ["Asha Rao", "Łukasz Bjørn Weiß", "Ｊｏｈｎ Do\u{200b}e", "AL-ZAYDI, Shibl"]
        {
            assert_eq!(found(name).screening, Screening::Clear, "{name}");
        }
        for name in
            ["Владимир Иванов", "Vlаdimir Ivanov", "आशा राव", "李明", "***", "\u{200b}", "Asha राव"]
        {
            let finding = found(name);
            assert_eq!(
                (finding.screening, finding.hits.len(), finding.hits[0].list),
                (Screening::PossibleMatch, 1, "unreadable"),
                "{name}"
            );
        }
    }
}
