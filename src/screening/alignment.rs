//! Pairs the words of a given and a listed name, and says how much of both agrees.

use super::common_names::WordWeights;
use super::similarity::{first_sound, token_similarity};
use super::sounds::{consonants, is_vowel, sound, spelling_key};

/// The most words that are aligned as one joined word.
pub(super) const JOINED_MAX: usize = 6;
/// Joined words with fewer consonants get no label, because it would find too many names.
const JOINED_CONSONANTS_MIN: usize = 4;
/// Given words with fewer letters together are not aligned as joined words, because they would
/// agree with too many.
const JOINED_LETTERS_MIN: usize = 5;
/// Letters by which texts of joined words may differ in length.
const JOINED_LENGTHS_APART_MAX: usize = 3;
/// Joined words may have one mistake for each group of this many letters.
const JOINED_LETTERS_PER_MISTAKE: usize = 6;
/// Two words whose keys have five letters or more, and differ by more than a mistake or two, still
/// pair if the `token_similarity` of the keys is at least this.
const ALIKE_MIN: f64 = 0.9;
/// A name of at least this many letters and spaces may have been cut to fit a bank's field.
const CUT_LETTERS_MIN: usize = 18;

/// One word of a name, made ready to be compared.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) text: String,
    /// The word's [`spelling_key`].
    key: String,
    consonants: String,
    /// The first sound. Words with different first sounds are never alike.
    first: Option<char>,
    /// Hashes of text, key and consonants, so that most pairs are compared without reading the
    /// texts.
    text_hash: u32,
    key_hash: u32,
    consonants_hash: u32,
    pub(super) weight: f64,
}

impl Word {
    pub(super) fn new(text: &str, weights: &WordWeights) -> Word {
        let key = spelling_key(text);
        let weight = weights.weight(text, &key);
        let consonants = consonants(text);
        Word {
            first: first_sound(&key),
            text_hash: hash_of(text),
            key_hash: hash_of(&key),
            consonants_hash: hash_of(&consonants),
            consonants,
            text: text.to_owned(),
            key,
            weight,
        }
    }

    fn is_initial(&self) -> bool {
        self.text.chars().nth(1).is_none()
    }

    pub(super) fn label(&self) -> Label {
        let consonants = consonants(&self.key);
        Label(hash_of(if consonants.len() < 3 { &self.key } else { &consonants }))
    }
}

/// FNV-1a, over characters.
fn hash_of(text: &str) -> u32 {
    text.chars()
        .fold(0x811c_9dc5_u32, |hash, letter| (hash ^ u32::from(letter)).wrapping_mul(0x0100_0193))
}

/// A hash by which words are looked up. For a word: of the consonants of its key, or of the key if
/// these are fewer than three. For joined words: of the consonants of their joined text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Label(u32);

impl Label {
    /// The label of joined words; `None` if they have too few consonants.
    pub(super) fn of_joined<'a>(words: impl Iterator<Item = &'a Word>) -> Option<Label> {
        let text: String = words.map(|word| word.text.as_str()).collect();
        let consonants = consonants(&text);
        (consonants.len() >= JOINED_CONSONANTS_MIN).then(|| Label(hash_of(&consonants)))
    }
}

/// How much of two names agrees, by the weights of their words.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Alignment {
    /// The weight of the words that found a partner; a partner that is only alike counts less.
    pub matched: f64,
    /// The share of the listed name's weight that found a partner. 0 to 1.
    pub listed_share: f64,
    /// The share of the given name's weight that found a partner. 0 to 1.
    pub given_share: f64,
    /// The listed name's share if an initial of the given name counts as the whole word.
    pub listed_share_by_initials: f64,
    /// The weight of the given words that found no partner.
    pub beside: f64,
    /// How many given words without a partner stand between those with one. 0 unless the given name
    /// has all words of the listed name in their order, and begins and ends with one of them.
    pub inserted: usize,
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
    if letters >= 4
        && left.consonants_hash == right.consonants_hash
        && ends_alike
        && left.consonants.len() >= 2
    {
        let distance = strsim::osa_distance(&left.key, &right.key);
        if distance <= 2 {
            return if distance == 1 { 0.92 } else { 0.88 };
        }
    }
    // A difference of two consonants is more than a mistake.
    if letters < 4 || left.consonants.len().abs_diff(right.consonants.len()) > 1 {
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

/// How alike two texts of joined words are: 0, or near 1.
fn joined_likeness(given: &str, listed: &str) -> f64 {
    if given == listed {
        return 1.0;
    }
    let letters = given.len().min(listed.len());
    if consonants(given) != consonants(listed) {
        return 0.0;
    }
    let distance = strsim::osa_distance(&sound(given), &sound(listed));
    if distance <= letters / JOINED_LETTERS_PER_MISTAKE { 0.95 } else { 0.0 }
}

/// Pairs the words of two names, the heaviest first. The words may stand in any order. If one side
/// writes several words as one, they pair with that word. A run of several listed words may wrap
/// around from the last word to the first. Neither name may have more than 32 words: one bit each.
pub(super) fn align(given: &[Word], listed: &[Word]) -> Alignment {
    // Weight that agrees, likeness, and the words of both sides as bits.
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
    add_cut(given, listed, &mut pairs);
    pairs.sort_by(|left, right| right.0.total_cmp(&left.0));
    let (mut given_used, mut listed_used, mut matched) = (0_u32, 0_u32, 0.0);
    let (mut paired_weight, mut behind_initials) = (0.0, 0.0);
    let mut order: Vec<(u32, u32)> = Vec::new();
    for (agreed, likeness, given_bits, listed_bits) in pairs {
        if given_used & given_bits == 0 && listed_used & listed_bits == 0 {
            given_used |= given_bits;
            listed_used |= listed_bits;
            order.push((given_bits, listed_bits));
            matched += agreed;
            paired_weight += agreed / likeness;
            // Only a single word can be an initial. The place of its one bit is its place in the
            // name.
            let word = given.get(given_bits.trailing_zeros() as usize);
            if given_bits.count_ones() == 1 && word.is_some_and(Word::is_initial) {
                let stands_for = listed.get(listed_bits.trailing_zeros() as usize);
                behind_initials += (stands_for.map_or(0.0, |word| word.weight) - agreed).max(0.0);
            }
        }
    }
    let listed_weight: f64 = listed.iter().map(|word| word.weight).sum();
    let beside: f64 = given
        .iter()
        .enumerate()
        .filter(|(place, _)| given_used & (1 << place) == 0)
        .map(|(_, word)| word.weight)
        .sum();
    let given_weight = paired_weight + beside;
    let share = |agreed: f64| {
        if listed_weight > 0.0 { (agreed / listed_weight).min(1.0) } else { 0.0 }
    };
    Alignment {
        matched,
        listed_share: share(matched),
        listed_share_by_initials: share(matched + behind_initials),
        given_share: if given_weight > 0.0 { matched / given_weight } else { 0.0 },
        beside,
        inserted: inserted(&mut order, given.len(), listed.len()),
    }
}

/// Computes [`Alignment::inserted`]. A pair has the words of the given name and those of the listed
/// name, each as bits.
fn inserted(pairs: &mut [(u32, u32)], given_count: usize, listed_count: usize) -> usize {
    pairs.sort_unstable();
    let used =
        |of: fn(&(u32, u32)) -> u32| pairs.iter().map(of).fold(0_u32, |all, bits| all | bits);
    let (given, listed) = (used(|pair| pair.0), used(|pair| pair.1));
    let is_around = given & 1 != 0 && given & (1 << given_count.saturating_sub(1)) != 0;
    let is_ordered = pairs.is_sorted_by_key(|(_, bits)| *bits);
    let is_whole = listed.count_ones() as usize == listed_count;
    if is_around && is_ordered && is_whole { given_count - given.count_ones() as usize } else { 0 }
}

/// Pairs the last word of a given name, which a bank's field may have cut, with each listed word
/// that starts with it.
fn add_cut(given: &[Word], listed: &[Word], pairs: &mut Vec<(f64, f64, u32, u32)>) {
    let words_and_spaces = given.iter().map(|word| word.text.len() + 1).sum::<usize>();
    let length = words_and_spaces.saturating_sub(1);
    let Some(last) = given.last().filter(|_| length >= CUT_LETTERS_MIN) else { return };
    if last.text.len() < 2 {
        return;
    }
    for (j, other) in listed.iter().enumerate() {
        if other.text.len() > last.text.len() && other.text.starts_with(&last.text) {
            let agreed = 0.9 * other.weight;
            pairs.push((agreed, 0.9, 1 << (given.len() - 1), 1 << j));
        }
    }
}

/// The first letter of a word, and its first consonant.
fn beginning(words: &[Word], place: usize) -> Option<(Option<u8>, Option<u8>)> {
    words.get(place).map(|word| (word.text.bytes().next(), word.consonants.bytes().next()))
}

/// Adds the pairs of several words with the one word that joins them, and of several given words
/// with all listed words if little but the places of the spaces differs.
fn add_joined(given: &[Word], listed: &[Word], pairs: &mut Vec<(f64, f64, u32, u32)>) {
    let text = |words: &mut dyn Iterator<Item = &Word>| -> String {
        words.map(|word| word.text.as_str()).collect()
    };
    for start in 0..given.len() {
        let mut given_letters = 0;
        for (end, last) in given.iter().enumerate().skip(start).take(JOINED_MAX) {
            given_letters += last.text.len();
            let given_count = end + 1 - start;
            if given_letters < JOINED_LETTERS_MIN {
                continue;
            }
            for other_start in 0..listed.len() {
                if beginning(given, start) != beginning(listed, other_start) {
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
