//! Finds the listed names of persons that a given name may be, and says how much of both names
//! agrees.
//!
//! Two searches find candidates. `index.rs` finds every listed name whose similarity reaches the
//! threshold. The *labels* here find names that lie within a longer text or are written with other
//! spaces: every word of a listed name that few bear, and its words joined to their neighbours, are
//! labelled by their consonants, and a given text is looked up by the labels of its words and of
//! its joined words. Each candidate is then aligned with the given name, word by word.

use std::collections::{BTreeMap, HashSet};

use super::common_names::WordWeights;
use super::index::{IndexBuilder, NameIndex};
use super::prepare::Reading;
use super::similarity::{first_sound, token_similarity};
use super::sounds::{bones, is_vowel, sound, spelling_key};

/// Words of a listed name that weigh at least this are labelled, and the heaviest two.
const LABEL_WEIGHT_MIN: f64 = 5.5;
/// Words of a given name, and of a listed one, that are aligned.
const WORDS_MAX: usize = 16;
/// Words that are tried joined to one.
const JOINED_MAX: usize = 6;
/// Shorter joined consonants say too little.
const JOINED_BONES_MIN: usize = 4;
const JOINED_LETTERS_MIN: usize = 5;
/// Letters by which texts of joined words may differ in length, and letters for each that may
/// differ.
const JOINED_LENGTHS_APART_MAX: usize = 3;
const JOINED_LETTERS_A_SLIP: usize = 6;
/// Similarity by letters from which two words may be one.
const ALIKE_MIN: f64 = 0.9;
/// Letters from which a word may be several that were joined, and letters of each.
const PARTED_LETTERS_MIN: usize = 9;
const PART_LETTERS_MIN: usize = 3;
const PART_LETTERS_MAX: usize = 24;
/// Candidates that one reading may have by its labels; the rarest labels come first.
const CANDIDATES_MAX: usize = 2_000;

/// One word of a name, made ready to be compared.
#[derive(Clone, Debug)]
struct Word {
    text: String,
    key: String,
    bones: String,
    /// Words of other first sounds are never alike.
    first: Option<char>,
    /// Hashes of text, key and bones, so that most pairs are told apart without reading them.
    text_hash: Label,
    key_hash: Label,
    bones_hash: Label,
    weight: f64,
}

impl Word {
    fn new(text: &str, weights: &WordWeights) -> Word {
        let key = spelling_key(text);
        let weight = weights.weight(text, &key);
        let bones = bones(text);
        Word {
            first: first_sound(&key),
            text_hash: Label::of(text.chars()),
            key_hash: Label::of(key.chars()),
            bones_hash: Label::of(bones.chars()),
            bones,
            text: text.to_owned(),
            key,
            weight,
        }
    }

    fn is_initial(&self) -> bool {
        self.text.chars().nth(1).is_none()
    }

    fn label(&self) -> Label {
        let bones = bones(&self.key);
        Label::of(if bones.len() < 3 { self.key.chars() } else { bones.chars() })
    }
}

/// A hash of what is looked up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Label(u32);

impl Label {
    fn of(letters: impl Iterator<Item = char>) -> Label {
        // FNV-1a.
        let hash = letters.fold(0x811c_9dc5_u32, |hash, letter| {
            (hash ^ u32::from(letter)).wrapping_mul(0x0100_0193)
        });
        Label(hash)
    }

    /// Of words written as one; `None` where that says too little.
    fn of_joined<'a>(words: impl Iterator<Item = &'a Word>) -> Option<Label> {
        let text: String = words.map(|word| word.text.as_str()).collect();
        let bones = bones(&text);
        (bones.len() >= JOINED_BONES_MIN).then(|| Label::of(bones.chars()))
    }
}

/// How much of two names agrees, by the weights of their words.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Alignment {
    /// The weight of the words that found a partner.
    pub matched: f64,
    /// The share of the listed name's weight that found a partner, and of the given name's. 0 to 1.
    pub listed_share: f64,
    pub given_share: f64,
    /// The listed name's share where an initial of the given name counts for the whole word.
    pub listed_share_by_initials: f64,
}

/// A listed name that may be the given one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PersonCandidate {
    /// The number that the name was added with.
    pub name: u32,
    /// The similarity of `similarity.rs`; 0 where it does not reach the threshold.
    pub similarity: f64,
    pub alignment: Alignment,
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

    /// `threshold` is the lowest similarity that is found by itself, above 0.
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
        let words = self.names.into_iter().flatten().filter(|word| word.len() >= PART_LETTERS_MIN);
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

/// The labels under which a listed name is found.
fn labels_of_listed(words: &[Word]) -> impl Iterator<Item = Label> {
    let mut by_weight: Vec<usize> = (0..words.len()).collect();
    by_weight.sort_by(|left, right| {
        let weight = |place: &usize| words.get(*place).map_or(0.0, |word| word.weight);
        weight(right).total_cmp(&weight(left))
    });
    let is_label = |place: usize| {
        by_weight.iter().take(2).any(|heavy| *heavy == place)
            || words.get(place).is_some_and(|word| word.weight >= LABEL_WEIGHT_MIN)
    };
    let mut labels = Vec::new();
    for start in 0..words.len() {
        if is_label(start) {
            labels.extend(words.get(start).map(Word::label));
        }
        for count in
            (2..=words.len().min(JOINED_MAX)).filter(|count| *count <= 3 || *count == words.len())
        {
            let places = || (start..start + count).map(|at| at % words.len());
            if places().any(is_label) {
                labels.extend(Label::of_joined(places().filter_map(|place| words.get(place))));
            }
        }
    }
    labels.into_iter()
}

/// The labels under which a given name looks.
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
    /// Which names a label finds, by label.
    labels: Vec<(Label, u32)>,
    /// Every word of `PART_LETTERS_MIN` letters or more.
    words: HashSet<String>,
}

impl PersonIndex {
    /// Listed names that one of these readings may be: every name whose similarity reaches the
    /// threshold, and every labelled one that lies within a reading. A name may be found more than
    /// once.
    pub fn search(&self, readings: &[Reading]) -> Vec<PersonCandidate> {
        let mut found = Vec::new();
        let parted = readings.iter().filter_map(|reading| self.parted(reading));
        for reading in readings.iter().cloned().chain(parted) {
            let words: Vec<Word> = reading
                .words
                .iter()
                .take(WORDS_MAX)
                .map(|word| Word::new(word, &self.weights))
                .collect();
            let mut seen: HashSet<u32> = HashSet::new();
            if !reading.is_whole {
                for similar in self.similar.search(&reading.words) {
                    seen.insert(similar.name);
                    found.extend(self.candidate(similar.name, similar.score, &words));
                }
            }
            for name in self.labelled(&words) {
                if seen.insert(name) {
                    found.extend(self.candidate(name, 0.0, &words).filter(|candidate| {
                        candidate.alignment.listed_share_by_initials >= self.threshold
                    }));
                }
            }
        }
        found
    }

    /// The reading with its long words taken apart into listed ones, where there are such.
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
        is_parted.then_some(Reading { words, is_whole: reading.is_whole })
    }

    fn candidate(&self, name: u32, similarity: f64, given: &[Word]) -> Option<PersonCandidate> {
        let listed = self.names.get(name as usize)?;
        Some(PersonCandidate { name, similarity, alignment: align(given, listed) })
    }

    /// The names that share a label with a given one, those of rare labels first.
    fn labelled(&self, words: &[Word]) -> Vec<u32> {
        let mut runs: Vec<&[(Label, u32)]> = labels_of_given(words)
            .into_iter()
            .map(|label| {
                let from = self.labels.partition_point(|(known, _)| *known < label);
                let rest = self.labels.get(from..).unwrap_or_default();
                rest.get(..rest.partition_point(|(known, _)| *known == label)).unwrap_or_default()
            })
            .collect();
        runs.sort_by_key(|run| run.len());
        runs.into_iter().flatten().map(|(_, name)| *name).take(CANDIDATES_MAX).collect()
    }
}

/// The fewest known words that a long word is made of, two or more, in whatever order they stand.
fn parts_of(word: &str, known: &HashSet<String>) -> Option<Vec<String>> {
    if word.len() < PARTED_LETTERS_MIN || !word.is_ascii() || known.contains(word) {
        return None;
    }
    // For each place: how many words lead to it, and where the last of them begins.
    let mut ways: Vec<Option<(usize, usize)>> = vec![None; word.len() + 1];
    *ways.first_mut()? = Some((0, 0));
    for end in PART_LETTERS_MIN..=word.len() {
        let best = (end.saturating_sub(PART_LETTERS_MAX)..=end - PART_LETTERS_MIN)
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

/// How alike two words are, 0 to 1.
fn likeness(left: &Word, right: &Word) -> f64 {
    if left.first != right.first {
        return 0.0;
    }
    if left.text_hash == right.text_hash && left.text == right.text {
        return 1.0;
    }
    if left.key_hash == right.key_hash && left.key == right.key {
        return 0.97;
    }
    let (short, long) =
        if left.text.len() <= right.text.len() { (left, right) } else { (right, left) };
    if short.text.chars().nth(1).is_none() {
        return if long.text.starts_with(&short.text) { 0.9 } else { 0.0 };
    }
    let letters = short.key.len();
    if long.key.len().abs_diff(letters) > 3 || letters < 3 {
        return 0.0;
    }
    let ends_alike =
        left.key.chars().last().map(is_vowel) == right.key.chars().last().map(is_vowel);
    if letters >= 4 && left.bones_hash == right.bones_hash && ends_alike && left.bones.len() >= 2 {
        let distance = strsim::osa_distance(&left.key, &right.key);
        if distance <= 2 {
            return if distance == 1 { 0.92 } else { 0.88 };
        }
    }
    // Two consonants more are more than a slip.
    if letters < 4 || left.bones.len().abs_diff(right.bones.len()) > 1 {
        return 0.0;
    }
    match (letters, strsim::osa_distance(&left.key, &right.key)) {
        (5.., 1) => 0.8,
        (9.., 2) => 0.75,
        (4, 1) => 0.65,
        _ if letters >= 5
            && token_similarity(left.key.as_bytes(), right.key.as_bytes()) >= ALIKE_MIN =>
        {
            0.65
        }
        _ => 0.0,
    }
}

/// How alike two texts are that were joined of words, 0 or near 1.
fn joined_likeness(given: &str, listed: &str) -> f64 {
    if given == listed {
        return 1.0;
    }
    let letters = given.len().min(listed.len());
    if bones(given) != bones(listed) {
        return 0.0;
    }
    let distance = strsim::osa_distance(&sound(given), &sound(listed));
    if distance <= letters / JOINED_LETTERS_A_SLIP { 0.95 } else { 0.0 }
}

/// Pairs the words of two names, the heaviest first; words that were written as one pair with what
/// they were joined of. The listed words may stand in another order, and turn around: the last one
/// may be followed by the first.
fn align(given: &[Word], listed: &[Word]) -> Alignment {
    // Weight that agrees, likeness, and which words on both sides.
    let mut pairs: Vec<(f64, f64, u32, u32)> = Vec::new();
    for (i, word) in given.iter().enumerate() {
        for (j, other) in listed.iter().enumerate() {
            let likeness = likeness(word, other);
            if likeness > 0.0 {
                let agreed = likeness * word.weight.min(other.weight);
                pairs.push((agreed, likeness, 1 << i, 1 << j));
            }
        }
    }
    add_joined(given, listed, &mut pairs);
    pairs.sort_by(|left, right| right.0.total_cmp(&left.0));
    let (mut given_used, mut listed_used, mut matched, mut whole) = (0_u32, 0_u32, 0.0, 0.0);
    let mut behind_initials = 0.0;
    for (agreed, likeness, given_bits, listed_bits) in pairs {
        if given_used & given_bits == 0 && listed_used & listed_bits == 0 {
            given_used |= given_bits;
            listed_used |= listed_bits;
            matched += agreed;
            whole += agreed / likeness;
            // Joined words are never an initial, so one bit says which word it is.
            let word = given.get(given_bits.trailing_zeros() as usize);
            if given_bits.count_ones() == 1 && word.is_some_and(Word::is_initial) {
                let stands_for = listed.get(listed_bits.trailing_zeros() as usize);
                behind_initials += (stands_for.map_or(0.0, |word| word.weight) - agreed).max(0.0);
            }
        }
    }
    let of = |words: &[Word], used: u32, is_used: bool| -> f64 {
        words
            .iter()
            .enumerate()
            .filter(|(place, _)| (used & (1 << place) != 0) == is_used)
            .map(|(_, word)| word.weight)
            .sum()
    };
    let listed_weight: f64 = listed.iter().map(|word| word.weight).sum();
    let given_weight = whole + of(given, given_used, false);
    let share = |agreed: f64| {
        if listed_weight > 0.0 { (agreed / listed_weight).min(1.0) } else { 0.0 }
    };
    Alignment {
        matched,
        listed_share: share(matched),
        listed_share_by_initials: share(matched + behind_initials),
        given_share: if given_weight > 0.0 { matched / given_weight } else { 0.0 },
    }
}

/// The first letter of a word, and its first consonant.
fn first_bytes(words: &[Word], place: usize) -> Option<(Option<u8>, Option<u8>)> {
    words.get(place).map(|word| (word.text.bytes().next(), word.bones.bytes().next()))
}

/// Pairs of words that one side writes as one, or of all words where the spaces were moved.
fn add_joined(given: &[Word], listed: &[Word], pairs: &mut Vec<(f64, f64, u32, u32)>) {
    let text = |words: &mut dyn Iterator<Item = &Word>| -> String {
        words.map(|word| word.text.as_str()).collect()
    };
    for start in 0..given.len() {
        let mut given_letters = 0;
        for (more, last) in given.iter().enumerate().skip(start).take(JOINED_MAX) {
            given_letters += last.text.len();
            let given_count = more + 1 - start;
            if given_letters < JOINED_LETTERS_MIN {
                continue;
            }
            for other_start in 0..listed.len() {
                if first_bytes(given, start) != first_bytes(listed, other_start) {
                    continue;
                }
                let mut listed_letters = 0;
                for listed_count in 1..=JOINED_MAX.min(listed.len()) {
                    let places =
                        || (other_start..other_start + listed_count).map(|at| at % listed.len());
                    listed_letters += places()
                        .next_back()
                        .and_then(|place| listed.get(place))
                        .map_or(0, |word| word.text.len());
                    // One word with one word is compared already.
                    let is_plain = given_count == 1 && listed_count == 1;
                    let is_partial =
                        given_count > 1 && listed_count > 1 && listed_count < listed.len();
                    if is_plain
                        || is_partial
                        || given_letters.abs_diff(listed_letters) > JOINED_LENGTHS_APART_MAX
                    {
                        continue;
                    }
                    let given_text = text(&mut given.iter().skip(start).take(given_count));
                    let listed_text = text(&mut places().filter_map(|place| listed.get(place)));
                    let likeness = joined_likeness(&given_text, &listed_text);
                    if likeness > 0.0 {
                        let weight: f64 = places()
                            .filter_map(|place| listed.get(place))
                            .map(|word| word.weight)
                            .sum();
                        let bits = places().fold(0_u32, |bits, place| bits | 1 << place);
                        let given_bits = ((1_u32 << given_count) - 1) << start;
                        pairs.push((likeness * weight, likeness, given_bits, bits));
                    }
                }
            }
        }
    }
}
