//! The in-memory index over listed names: finds every name whose similarity reaches a threshold without comparing all.
//!
//! The similarity of two names is an average over their tokens, weighted by length, times at most 1. Written as gains and
//! losses against the threshold `t`, a matched pair of tokens contributes `(s - t) * (bytes of both)` and an unmatched
//! searched token `-t * bytes`; a name reaches `t` only if the sum is not negative. From this follow a set of *anchor* tokens,
//! of which every name that is found must contain something alike, and a cheap bound that most other names fail.
//! Nothing is lost: `exhaustive` is the same without the index, and a property test holds both together.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use super::similarity::{best_pairs, first_sound, similarity_bound, token_similarity, variations};
use super::text::TOKEN_BYTES_MAX;

/// Token pairs below this similarity are not looked at one by one; their loss is bounded instead.
const SIMILARITY_FLOOR: f64 = 0.6;
/// Steps between the floor and the threshold at which anchors are tried.
const STEPS: usize = 12;
/// Names of more tokens than this are searched with every token as an anchor.
const CHOSEN_TOKENS_MAX: usize = 6;
/// Room for floating-point error: bounds are loosened by it, results never.
const MARGIN: f64 = 1e-6;

/// A name that was found.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Found {
    /// The number that the name was added with.
    pub name: u32,
    /// From the threshold to 1.
    pub score: f64,
}

/// Tokens of one first sound and one length.
#[derive(Default)]
struct Shelf {
    tokens: Vec<u32>,
    letters: Vec<Letters>,
}

/// Which bytes a token has, so that the number that two tokens have in common is bounded by a few instructions.
#[derive(Clone, Copy, Default)]
struct Letters {
    bits: u64,
    /// Bytes that have no bit: third occurrences, second digits, anything but letters and digits.
    others: u32,
}

impl Letters {
    fn of(token: &[u8]) -> Letters {
        let mut letters = Letters::default();
        for byte in token {
            let (first, second) = match byte {
                b'a'..=b'z' => (1_u64 << (byte - b'a'), 1_u64 << (26 + byte - b'a')),
                b'0'..=b'9' => (1_u64 << (52 + byte - b'0'), 0),
                _ => (0, 0),
            };
            if first != 0 && letters.bits & first == 0 {
                letters.bits |= first;
            } else if second != 0 && letters.bits & second == 0 {
                letters.bits |= second;
            } else {
                letters.others += 1;
            }
        }
        letters
    }
    const fn common_max(self, other: Letters) -> usize {
        let others = if self.others < other.others { self.others } else { other.others };
        ((self.bits & other.bits).count_ones() + others) as usize
    }
}

/// A listed name in one variation of its tokens.
struct Variation {
    name: u32,
    tokens: Vec<u32>,
}

/// Names as they are added, before they can be searched.
#[derive(Default)]
pub struct IndexBuilder {
    numbers: HashMap<String, u32>,
    tokens: Vec<String>,
    variations: Vec<Variation>,
    names_count: u32,
}

impl IndexBuilder {
    /// Adds a name and answers its number; names count from 0.
    pub fn add(&mut self, tokens: &[String]) -> u32 {
        let name = self.names_count;
        self.names_count += 1;
        for variation in variations(tokens) {
            let tokens = variation.into_iter().map(|token| self.number(token)).collect();
            self.variations.push(Variation { name, tokens });
        }
        name
    }

    fn number(&mut self, token: String) -> u32 {
        let next = self.tokens.len() as u32;
        *self.numbers.entry(token).or_insert_with_key(|token| {
            self.tokens.push(token.clone());
            next
        })
    }

    /// `threshold` is the lowest score that will be found: from 0.7 to 1.
    pub fn build(self, threshold: f64) -> NameIndex {
        let mut shelves: HashMap<char, BTreeMap<usize, Shelf>> = HashMap::new();
        for (number, token) in self.tokens.iter().enumerate() {
            if let Some(sound) = first_sound(token) {
                let shelf = shelves.entry(sound).or_default().entry(token.len()).or_default();
                shelf.tokens.push(number as u32);
                shelf.letters.push(Letters::of(token.as_bytes()));
            }
        }
        let mut postings: Vec<Vec<u32>> = vec![Vec::new(); self.tokens.len()];
        for (number, variation) in self.variations.iter().enumerate() {
            for token in &variation.tokens {
                if let Some(list) = postings.get_mut(*token as usize)
                    && list.last() != Some(&(number as u32))
                {
                    list.push(number as u32);
                }
            }
        }
        let steps: Vec<f64> = (0..=STEPS).map(|step| threshold - (threshold - SIMILARITY_FLOOR) * step as f64 / STEPS as f64).collect();
        let losses = (0..=TOKEN_BYTES_MAX).map(|bytes| steps.iter().map(|step| loss(bytes, *step, threshold)).collect()).collect();
        NameIndex { threshold, steps, losses, shelves, postings, tokens: self.tokens, variations: self.variations, spare: Mutex::default() }
    }
}

/// What a searched token of this length loses at least where no listed token reaches `similarity` with it.
fn loss(bytes: usize, similarity: f64, threshold: f64) -> f64 {
    let matched = (1..=TOKEN_BYTES_MAX).map(|other| {
        let reachable = similarity_bound(bytes, other, TOKEN_BYTES_MAX).min(similarity);
        (threshold - reachable) * (bytes + other) as f64
    });
    matched.fold(threshold * bytes as f64, f64::min)
}

/// Listed names, ready to be searched.
pub struct NameIndex {
    threshold: f64,
    steps: Vec<f64>,
    /// By length of the searched token and step.
    losses: Vec<Vec<f64>>,
    shelves: HashMap<char, BTreeMap<usize, Shelf>>,
    /// The variations that hold a token, by the token's number.
    postings: Vec<Vec<u32>>,
    tokens: Vec<String>,
    variations: Vec<Variation>,
    /// Working memory of earlier searches.
    spare: Mutex<Vec<Scratch>>,
}

/// Working memory that is as large as the index, kept between searches and left all zero.
#[derive(Default)]
struct Scratch {
    /// One more than the row of a token's similarities, by the token's number; 0 is none.
    rows: Vec<u32>,
    /// Whether a variation was looked at, by its number.
    seen: Vec<bool>,
}

/// A searched token: what is alike to it, best first.
struct Searched<'a> {
    text: &'a str,
    /// Similarity, number of the listed token, variations that hold it or an earlier one.
    alike: Vec<(f64, u32, usize)>,
    /// What it can gain at most.
    gain: f64,
}

impl Searched<'_> {
    /// How many of `alike` reach a similarity.
    fn reaching(&self, similarity: f64) -> usize {
        self.alike.partition_point(|(score, _, _)| *score >= similarity)
    }
    fn postings_count(&self, similarity: f64) -> usize {
        self.reaching(similarity).checked_sub(1).and_then(|last| self.alike.get(last)).map_or(0, |(_, _, count)| *count)
    }
}

impl NameIndex {
    pub fn names_searched_count(&self) -> usize {
        self.variations.len()
    }

    /// Every listed name whose similarity with these tokens reaches the threshold, with its score, by number.
    pub fn search(&self, tokens: &[String]) -> Vec<Found> {
        let mut best: HashMap<u32, f64> = HashMap::new();
        let mut scratch = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        scratch.rows.resize(self.tokens.len(), 0);
        scratch.seen.resize(self.variations.len(), false);
        for variation in variations(tokens) {
            self.search_variation(&variation, &mut scratch, &mut best);
        }
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        sorted(best)
    }

    /// The same as `search` by comparing every name; what the index is measured against.
    pub fn exhaustive(&self, tokens: &[String]) -> Vec<Found> {
        let mut best: HashMap<u32, f64> = HashMap::new();
        let searched = variations(tokens);
        for variation in &self.variations {
            for tokens in &searched {
                self.compare(tokens, variation, &mut best);
            }
        }
        sorted(best)
    }

    fn compare(&self, searched: &[String], variation: &Variation, best: &mut HashMap<u32, f64>) {
        let listed: Vec<&str> = variation.tokens.iter().filter_map(|token| self.tokens.get(*token as usize)).map(String::as_str).collect();
        let score = best_pairs(searched, &listed);
        if score >= self.threshold {
            let known = best.entry(variation.name).or_insert(score);
            *known = known.max(score);
        }
    }

    fn search_variation(&self, tokens: &[String], scratch: &mut Scratch, best: &mut HashMap<u32, f64>) {
        let searched: Vec<Searched<'_>> = tokens.iter().map(|token| self.alike(token)).collect();
        let (anchors, similarity) = self.choose(&searched);
        // A row of similarities for each listed token that is alike to any searched one.
        let width = searched.len();
        let mut rows: Vec<f64> = Vec::new();
        for (i, token) in searched.iter().enumerate() {
            for (score, number, _) in &token.alike {
                let Some(row) = scratch.rows.get_mut(*number as usize) else { continue };
                if *row == 0 {
                    rows.resize(rows.len() + width, 0.0);
                    *row = (rows.len() / width) as u32;
                }
                if let Some(cell) = rows.get_mut((*row as usize - 1) * width + i) {
                    *cell = *score;
                }
            }
        }
        let mut touched: Vec<u32> = Vec::new();
        for token in anchors.iter().filter_map(|i| searched.get(*i)) {
            for (_, number, _) in token.alike.iter().take(token.reaching(similarity)) {
                for number in self.postings.get(*number as usize).into_iter().flatten() {
                    let (Some(seen @ false), Some(variation)) =
                        (scratch.seen.get_mut(*number as usize), self.variations.get(*number as usize))
                    else {
                        continue;
                    };
                    *seen = true;
                    touched.push(*number);
                    if self.bound(&searched, variation, &scratch.rows, &rows) >= -MARGIN {
                        self.compare(tokens, variation, best);
                    }
                }
            }
        }
        for number in touched {
            if let Some(seen) = scratch.seen.get_mut(number as usize) {
                *seen = false;
            }
        }
        for (_, number, _) in searched.iter().flat_map(|token| &token.alike) {
            if let Some(row) = scratch.rows.get_mut(*number as usize) {
                *row = 0;
            }
        }
    }

    /// The listed tokens that reach `SIMILARITY_FLOOR` with a searched one.
    fn alike<'a>(&self, text: &'a str) -> Searched<'a> {
        let letters = Letters::of(text.as_bytes());
        let mut alike: Vec<(f64, u32, usize)> = Vec::new();
        let shelves = first_sound(text).and_then(|sound| self.shelves.get(&sound));
        for (bytes, shelf) in shelves.into_iter().flatten() {
            let reaches = |common: &usize| similarity_bound(text.len(), *bytes, *common) >= SIMILARITY_FLOOR - MARGIN;
            let Some(common_min) = (1..=text.len().min(*bytes)).find(reaches) else { continue };
            for (other, number) in shelf.letters.iter().zip(&shelf.tokens) {
                if letters.common_max(*other) < common_min {
                    continue;
                }
                let listed = self.tokens.get(*number as usize).map_or("", String::as_str);
                let score = token_similarity(listed.as_bytes(), text.as_bytes());
                if score >= SIMILARITY_FLOOR {
                    alike.push((score, *number, 0));
                }
            }
        }
        alike.sort_by(|left, right| right.0.total_cmp(&left.0));
        let (mut count, mut gain) = (0, 0.0_f64);
        for (score, number, until) in &mut alike {
            count += self.postings.get(*number as usize).map_or(0, Vec::len);
            *until = count;
            let bytes = text.len() + self.tokens.get(*number as usize).map_or(0, String::len);
            gain = gain.max((*score - self.threshold) * bytes as f64);
        }
        Searched { text, alike, gain }
    }

    fn loss(&self, bytes: usize, step: usize) -> f64 {
        self.losses.get(bytes).and_then(|losses| losses.get(step)).copied().unwrap_or(0.0)
    }

    /// The searched tokens, and the similarity, of which every name that reaches the threshold has at least one: the choice
    /// with the fewest names to look at. All tokens at the threshold are always a right choice.
    fn choose(&self, searched: &[Searched<'_>]) -> (Vec<usize>, f64) {
        let all: Vec<usize> = (0..searched.len()).collect();
        // Without any pair above the threshold there is no gain at all.
        let cost = |anchors: &[usize], similarity: f64| -> usize {
            anchors.iter().filter_map(|i| searched.get(*i)).map(|token| token.postings_count(similarity)).sum()
        };
        let safe = self.threshold - MARGIN;
        let mut choice = (cost(&all, safe), all, safe);
        if searched.len() <= CHOSEN_TOKENS_MAX {
            for mask in 1_u32..(1 << searched.len()) {
                let anchors: Vec<usize> = (0..searched.len()).filter(|i| mask & (1 << i) != 0).collect();
                let gain: f64 = (0..searched.len()).filter(|i| mask & (1 << i) == 0).filter_map(|i| searched.get(i)).map(|token| token.gain).sum();
                let loses_more = |step: &usize| {
                    let loss: f64 = anchors.iter().filter_map(|i| searched.get(*i)).map(|token| self.loss(token.text.len(), *step)).sum();
                    loss > gain + MARGIN
                };
                let Some(similarity) = (0..=STEPS).find(loses_more).and_then(|step| self.steps.get(step)) else { continue };
                // The floor itself is where `alike` ends.
                let similarity = (similarity - MARGIN).max(SIMILARITY_FLOOR);
                let count = cost(&anchors, similarity);
                if count < choice.0 {
                    choice = (count, anchors, similarity);
                }
            }
        }
        (choice.1, choice.2)
    }

    /// Gains minus losses of a variation, at most: each searched token with its best partner, free or not.
    fn bound(&self, searched: &[Searched<'_>], variation: &Variation, numbers: &[u32], rows: &[f64]) -> f64 {
        let width = searched.len();
        let mut sum = 0.0;
        for (i, token) in searched.iter().enumerate() {
            let mut best = -self.loss(token.text.len(), STEPS);
            for number in &variation.tokens {
                let row = numbers.get(*number as usize).copied().unwrap_or(0) as usize;
                let score = row.checked_sub(1).and_then(|row| rows.get(row * width + i)).copied().unwrap_or(0.0);
                if score > 0.0 {
                    let bytes = token.text.len() + self.tokens.get(*number as usize).map_or(0, String::len);
                    best = best.max((score - self.threshold) * bytes as f64);
                }
            }
            sum += best;
        }
        sum
    }
}

fn sorted(best: HashMap<u32, f64>) -> Vec<Found> {
    let mut found: Vec<Found> = best.into_iter().map(|(name, score)| Found { name, score }).collect();
    found.sort_by_key(|found| found.name);
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn index(names: &[Vec<String>], threshold: f64) -> NameIndex {
        let mut builder = IndexBuilder::default();
        for name in names {
            builder.add(name);
        }
        builder.build(threshold)
    }

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn names_are_found_whatever_their_order_and_spelling() {
        let index = index(&[words("rajesh kumar"), words("al zawahiri ayman"), words("muhammad ali khan")], 0.85);
        for (searched, name) in [
            ("kumar rajesh", 0),
            ("rakesh kumar", 0),
            ("ayman alzawahiri", 1),
            ("ayman al zawahri", 1),
            ("mohammed ali khan", 2),
            ("muhammad khan ali", 2),
        ] {
            assert_eq!(index.search(&words(searched)).iter().map(|found| found.name).collect::<Vec<_>>(), [name], "{searched}");
        }
        assert!(index.search(&words("priya sharma")).is_empty() && index.search(&[]).is_empty());
    }

    /// Names of few letters, so that many are alike.
    fn name() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec(prop_oneof!["[abcdkmr]{1,4}", "[a-e]{3,9}", "(ra|ka|mo|ha|md|al|kh|an){1,4}", "[aé0-2]{1,6}"], 0..6)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
        #[test]
        fn the_index_finds_what_comparing_all_finds(
            names in prop::collection::vec(name(), 1..40), searched in name(), pick in any::<prop::sample::Index>(),
            threshold in 0.70_f64..0.99, changed in "[a-e]{1,3}",
        ) {
            let index = index(&names, threshold);
            prop_assert_eq!(index.search(&searched), index.exhaustive(&searched));
            // A listed name with one more or one changed word.
            let mut near = pick.get(&names).clone();
            prop_assert_eq!(index.search(&near), index.exhaustive(&near));
            if let Some(last) = near.last_mut() {
                last.push_str(&changed);
            }
            prop_assert_eq!(index.search(&near), index.exhaustive(&near));
            near.push(changed);
            near.rotate_left(1);
            prop_assert_eq!(index.search(&near), index.exhaustive(&near));
        }
    }
}
