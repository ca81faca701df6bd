//! Finds the listed names of persons that a given name may be, and says how much of both names
//! agrees.
//!
//! Two searches find candidates. `index.rs` finds every listed name whose similarity reaches the
//! threshold. The *labels* here find names that lie within a longer text or are written with other
//! spaces. A label is a hash, mostly of consonants. A listed name has the labels of its rarest
//! words, and of these words joined to their neighbours. A given text is looked up by the labels of
//! its words and of its joined words. Each candidate is then aligned with the given name, word by
//! word.

use std::collections::{BTreeMap, HashSet};

use super::alignment::{Alignment, JOINED_MAX, Label, Word, align};
use super::common_names::WordWeights;
use super::index::{IndexBuilder, NameIndex};
use super::prepare::Reading;
use super::sounds::spelling_key;

/// Words of a listed name that weigh at least this are labelled, and so are its two heaviest.
const LABEL_WEIGHT_MIN: f64 = 5.5;
/// The most words that are aligned at once. A longer given name is searched by its labels in
/// windows of this many words, which begin at most `WINDOW_STEP` words apart. Of a longer listed
/// name, only the first words are aligned.
const WORDS_MAX: usize = 16;
const WINDOW_STEP: usize = 4;
/// A shorter word is not split into several words.
const PARTED_LETTERS_MIN: usize = 9;
/// The fewest letters of each part of a word that is split; only an article may have fewer.
const PART_LETTERS_MIN: usize = 3;
const ARTICLES: &[&str] = &["al", "el", "ul"];
/// The most letters of each part.
const PART_LETTERS_MAX: usize = 24;
/// The most names found by labels that are compared with one window of a reading. Those of the
/// rarest labels come first; the rest are not compared, and `has_more_names` says so. Among the
/// 5,350 persons of `tests/fixtures/names`, no name that the tests look for finds more than 1,400.
pub const CANDIDATES_MAX: usize = 5_000;

/// A listed name that may be the given one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PersonCandidate {
    /// The number that the name was added with.
    pub name: u32,
    /// The similarity of `similarity.rs`; 0 if it is below the threshold or was not computed.
    pub similarity: f64,
    pub alignment: Alignment,
}

/// The result of a search.
#[derive(Default)]
pub struct PersonsFound {
    /// A name may be there more than once.
    pub candidates: Vec<PersonCandidate>,
    /// Some window found more than `CANDIDATES_MAX` names by its labels.
    pub has_more_names: bool,
}

/// Names of persons as they are added.
#[derive(Default)]
pub struct PersonIndexBuilder {
    names: Vec<Vec<String>>,
    /// The entry of each name.
    entries: Vec<u32>,
}

impl PersonIndexBuilder {
    /// Adds a name of an entry and answers its number; names count from 0.
    pub fn add(&mut self, entry: u32, words: Vec<String>) -> u32 {
        self.names.push(words);
        self.entries.push(entry);
        self.names.len() as u32 - 1
    }

    /// `threshold` is the lowest similarity at which a name is found without a label, above 0.
    pub fn build(self, threshold: f64) -> PersonIndex {
        let mut by_entry: BTreeMap<u32, HashSet<String>> = BTreeMap::new();
        for (name, entry) in self.names.iter().zip(&self.entries) {
            by_entry.entry(*entry).or_default().extend(name.iter().map(|word| spelling_key(word)));
        }
        let weights = WordWeights::of(by_entry.into_values());
        let mut similar = IndexBuilder::default();
        let mut names = Vec::with_capacity(self.names.len());
        let mut labels: Vec<(Label, u32)> = Vec::new();
        for (number, words) in self.names.iter().enumerate() {
            similar.add(words);
            let words: Vec<Word> =
                words.iter().take(WORDS_MAX).map(|word| Word::new(word, &weights)).collect();
            let own: HashSet<Label> = labels_of_listed(&words).collect();
            labels.extend(own.into_iter().map(|label| (label, number as u32)));
            names.push(words);
        }
        labels.sort_unstable();
        let words = self.names.into_iter().flatten().filter(|word| is_part(word));
        PersonIndex {
            threshold,
            weights,
            similar: similar.build(threshold),
            names,
            labels,
            words: words.collect(),
        }
    }
}

/// The labels under which a listed name is found. A run of joined words may wrap around from the
/// last word to the first, as in [`align`].
fn labels_of_listed(words: &[Word]) -> impl Iterator<Item = Label> {
    let mut by_weight: Vec<usize> = (0..words.len()).collect();
    by_weight.sort_by(|left, right| {
        let weight = |place: &usize| words.get(*place).map_or(0.0, |word| word.weight);
        weight(right).total_cmp(&weight(left))
    });
    let is_labelled = |place: usize| {
        by_weight.iter().take(2).any(|heavy| *heavy == place)
            || words.get(place).is_some_and(|word| word.weight >= LABEL_WEIGHT_MIN)
    };
    let mut labels = Vec::new();
    for start in 0..words.len() {
        if is_labelled(start) {
            labels.extend(words.get(start).map(Word::label));
        }
        for count in
            (2..=words.len().min(JOINED_MAX)).filter(|count| *count <= 3 || *count == words.len())
        {
            let places = || (start..start + count).map(|at| at % words.len());
            if places().any(is_labelled) {
                labels.extend(Label::of_joined(places().filter_map(|place| words.get(place))));
            }
        }
    }
    labels.into_iter()
}

/// The labels by which a given name is searched.
fn labels_of_given(words: &[Word]) -> HashSet<Label> {
    let mut labels: HashSet<Label> = words.iter().map(Word::label).collect();
    for start in 0..words.len() {
        for end in start + 1..=words.len().min(start + JOINED_MAX) {
            let window = words.get(start..end).unwrap_or_default();
            labels.extend(Label::of_joined(window.iter()));
        }
    }
    labels.extend(Label::of_joined(words.iter()));
    labels
}

/// Listed names of persons, ready to be searched.
pub struct PersonIndex {
    threshold: f64,
    weights: WordWeights,
    similar: NameIndex,
    names: Vec<Vec<Word>>,
    /// Each label and a name that it finds, sorted.
    labels: Vec<(Label, u32)>,
    /// Every word that a longer one may be made of.
    words: HashSet<String>,
}

impl PersonIndex {
    /// Finds the listed names that one of these readings may be: names whose similarity with the
    /// reading reaches the threshold (not for a reading that `is_searched_within`), and names that
    /// share a label with the reading and agree with it in large part. Each reading is also tried
    /// with its long words split.
    pub fn search(&self, readings: &[Reading]) -> PersonsFound {
        let mut found = PersonsFound::default();
        let parted = readings.iter().filter_map(|reading| self.parted(reading));
        for reading in readings.iter().cloned().chain(parted) {
            let words: Vec<Word> =
                reading.words.iter().map(|word| Word::new(word, &self.weights)).collect();
            let mut seen: HashSet<u32> = HashSet::new();
            if !reading.is_searched_within {
                let first = words.get(..words.len().min(WORDS_MAX)).unwrap_or_default();
                for similar in self.similar.search(&reading.words) {
                    seen.insert(similar.name);
                    found.candidates.extend(self.candidate(similar.name, similar.score, first));
                }
            }
            for window in windows(&words) {
                let mut compared_count = 0;
                for name in self.labelled(window) {
                    if !seen.insert(name) {
                        continue;
                    }
                    compared_count += 1;
                    if compared_count > CANDIDATES_MAX {
                        found.has_more_names = true;
                        break;
                    }
                    let candidate = self.candidate(name, 0.0, window);
                    found.candidates.extend(candidate.filter(|candidate| {
                        candidate.alignment.listed_share_by_initials >= self.threshold
                    }));
                }
                // A name may agree better in the next window.
                seen.clear();
            }
        }
        found
    }

    /// The reading with its long words split into listed words; `None` if none can be split.
    fn parted(&self, reading: &Reading) -> Option<Reading> {
        let mut is_parted = false;
        let mut words = Vec::new();
        for word in &reading.words {
            match parts_of(word, &self.words) {
                Some(parts) => {
                    is_parted = true;
                    words.extend(parts);
                }
                None => words.push(word.clone()),
            }
        }
        is_parted.then_some(Reading { words, is_searched_within: reading.is_searched_within })
    }

    fn candidate(&self, name: u32, similarity: f64, given: &[Word]) -> Option<PersonCandidate> {
        let listed = self.names.get(name as usize)?;
        Some(PersonCandidate { name, similarity, alignment: align(given, listed) })
    }

    /// The listed names that share a label with these given words, those of rare labels first. A
    /// name that shares several labels occurs once for each.
    fn labelled(&self, words: &[Word]) -> impl Iterator<Item = u32> {
        let mut runs: Vec<&[(Label, u32)]> = labels_of_given(words)
            .into_iter()
            .map(|label| {
                let from = self.labels.partition_point(|(known, _)| *known < label);
                let rest = self.labels.get(from..).unwrap_or_default();
                rest.get(..rest.partition_point(|(known, _)| *known == label)).unwrap_or_default()
            })
            .collect();
        runs.sort_by_key(|run| run.len());
        runs.into_iter().flatten().map(|(_, name)| *name)
    }
}

/// All words, in overlapping windows of `WORDS_MAX`.
fn windows(words: &[Word]) -> impl Iterator<Item = &[Word]> {
    let last = words.len().saturating_sub(WORDS_MAX);
    (0..=last.div_ceil(WINDOW_STEP)).filter_map(move |number| {
        let start = (number * WINDOW_STEP).min(last);
        words.get(start..words.len().min(start + WORDS_MAX))
    })
}

fn is_part(word: &str) -> bool {
    word.len() >= PART_LETTERS_MIN || ARTICLES.contains(&word)
}

/// Splits a long word into the fewest known words, at least two. `None` if it cannot be split.
fn parts_of(word: &str, known: &HashSet<String>) -> Option<Vec<String>> {
    if word.len() < PARTED_LETTERS_MIN || !word.is_ascii() || known.contains(word) {
        return None;
    }
    // For each place: how many words lead to it, and where the last of them begins.
    let mut ways: Vec<Option<(usize, usize)>> = vec![None; word.len() + 1];
    *ways.first_mut()? = Some((0, 0));
    for end in 1..=word.len() {
        let best = (end.saturating_sub(PART_LETTERS_MAX)..end)
            .filter_map(|start| {
                let (count, _) = (*ways.get(start)?)?;
                known.contains(word.get(start..end)?).then_some((count + 1, start))
            })
            .min();
        if let Some(way) = ways.get_mut(end) {
            *way = best;
        }
    }
    let (mut parts, mut end) = (Vec::new(), word.len());
    while end > 0 {
        let (_, start) = (*ways.get(end)?)?;
        parts.push(word.get(start..end)?.to_owned());
        end = start;
    }
    parts.reverse();
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(name: &str) -> Vec<String> {
        name.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_name_that_many_labels_find_counts_once() {
        let mut builder = PersonIndexBuilder::default();
        // Each has three labels: of "zebulon", of "quackenbush" and of both joined.
        let count = CANDIDATES_MAX as u32 / 2;
        for entry in 0..count {
            builder.add(entry, words("zebulon quackenbush"));
        }
        let last = builder.add(count, words("quackenbush"));
        let index = builder.build(0.85);
        let reading = Reading { words: words("zebulon quackenbush rao"), is_searched_within: true };
        let found = index.search(&[reading]);
        assert!(!found.has_more_names);
        assert_eq!(found.candidates.iter().filter(|candidate| candidate.name == last).count(), 1);
    }
}
