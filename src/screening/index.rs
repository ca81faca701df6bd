//! The in-memory index over listed names: finds every name whose similarity reaches a threshold without comparing all.
//!
//! The similarity of two names is an average over their tokens, weighted by length, times at most 1. Written as gains and
//! losses against the threshold `t`, a pair of tokens of similarity `s` contributes `(s - t) * (bytes of both)`, a searched
//! token without a partner `-t * bytes`, and a name reaches `t` only if the sum is not negative. So at least one pair reaches
//! `t` itself: those tokens are found in the dictionary of all tokens, and their names are looked at. Where that would be many
//! names, because a word is common, fewer words are chosen as *anchors*, of which every name that is found must contain
//! something alike: what the other words can gain at most does not pay for what the anchors lose without it.
//! Of the names that are looked at, most fail the sum with the best partner for every searched token; the rest are compared in full.
//! Nothing is lost: `exhaustive` is the same without the index, and a property test holds both together.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use super::similarity::{Pattern, best_pairs, first_sound, similarity_bound, variations};
use super::text::TOKEN_BYTES_MAX;

/// Similarity down to which anchors may be alike.
const ANCHOR_FLOOR: f64 = 0.75;
/// Steps between the floor and the threshold at which anchors are tried.
const STEPS: usize = 10;
/// Names to look at from which choosing anchors pays. Fewer in tests, so that small lists take that way too.
const CHOICE_NAMES_MIN: usize = if cfg!(test) { 4 } else { 2_000 };
/// Tokens up to which every choice of anchors is tried; of more, the most common ones are left out one after the other.
const CHOICE_TOKENS_MAX: usize = 5;
/// Tokens up to which anchors are chosen at all: one bit each.
const CHOSEN_TOKENS_MAX: usize = 128;

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

/// A distinct token of the listed names.
struct Token {
    text: String,
    sound: Option<char>,
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
#[derive(Clone, Copy)]
struct Variation {
    name: u32,
    /// Its place in the list of all variations' tokens.
    start: u32,
    end: u32,
}

/// Names as they are added, before they can be searched.
#[derive(Default)]
pub struct IndexBuilder {
    numbers: HashMap<String, u32>,
    tokens: Vec<Token>,
    variations: Vec<Variation>,
    variation_tokens: Vec<u32>,
    names_count: u32,
}

impl IndexBuilder {
    /// Adds a name and answers its number; names count from 0.
    pub fn add(&mut self, tokens: &[String]) -> u32 {
        let name = self.names_count;
        self.names_count += 1;
        for variation in variations(tokens) {
            let start = self.variation_tokens.len() as u32;
            for token in variation {
                let number = self.number(token);
                self.variation_tokens.push(number);
            }
            self.variations.push(Variation { name, start, end: self.variation_tokens.len() as u32 });
        }
        name
    }

    fn number(&mut self, token: String) -> u32 {
        let next = self.tokens.len() as u32;
        *self.numbers.entry(token).or_insert_with_key(|token| {
            self.tokens.push(Token { text: token.clone(), sound: first_sound(token) });
            next
        })
    }

    /// `threshold` is the lowest score that will be found, above 0.
    pub fn build(self, threshold: f64) -> NameIndex {
        let mut shelves: HashMap<char, BTreeMap<usize, Shelf>> = HashMap::new();
        for (number, token) in self.tokens.iter().enumerate() {
            if let Some(sound) = token.sound {
                let shelf = shelves.entry(sound).or_default().entry(token.text.len()).or_default();
                shelf.tokens.push(number as u32);
                shelf.letters.push(Letters::of(token.text.as_bytes()));
            }
        }
        let mut postings: Vec<Vec<u32>> = vec![Vec::new(); self.tokens.len()];
        for (number, variation) in self.variations.iter().enumerate() {
            for token in self.variation_tokens.get(variation.start as usize..variation.end as usize).unwrap_or_default() {
                if let Some(list) = postings.get_mut(*token as usize)
                    && list.last() != Some(&(number as u32))
                {
                    list.push(number as u32);
                }
            }
        }
        let floor = ANCHOR_FLOOR.min(threshold);
        let steps: Vec<f64> = (0..=STEPS).map(|step| threshold - (threshold - floor) * step as f64 / STEPS as f64).collect();
        let losses = (0..=TOKEN_BYTES_MAX).map(|bytes| steps.iter().map(|step| loss_min(bytes, *step, threshold)).collect()).collect();
        NameIndex {
            threshold,
            steps,
            losses,
            shelves,
            postings,
            tokens: self.tokens,
            variations: self.variations,
            variation_tokens: self.variation_tokens,
            spare: Mutex::default(),
        }
    }
}

/// What a searched token of this length loses at least where no listed token reaches `similarity` with it.
fn loss_min(bytes: usize, similarity: f64, threshold: f64) -> f64 {
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
    /// `loss_min` by length of the searched token and step.
    losses: Vec<Vec<f64>>,
    shelves: HashMap<char, BTreeMap<usize, Shelf>>,
    /// The variations that hold a token, by the token's number.
    postings: Vec<Vec<u32>>,
    tokens: Vec<Token>,
    variations: Vec<Variation>,
    /// The tokens of all variations, one after the other.
    variation_tokens: Vec<u32>,
    /// Working memory of earlier searches.
    spare: Mutex<Vec<Scratch>>,
}

/// Working memory that is as large as the index, kept between searches and left as it was found.
#[derive(Default)]
struct Scratch {
    /// One more than the row of a token's contributions, by the token's number; 0 is none yet.
    rows: Vec<u32>,
    /// The tokens that have a row, in the order of the rows.
    numbers: Vec<u32>,
    /// Contributions, one for each searched token, row after row.
    cells: Vec<f64>,
    /// Whether a variation was looked at, by its number.
    seen: Vec<bool>,
    touched: Vec<u32>,
}

/// What is alike to a searched token.
struct AlikeTokens {
    /// Similarity, number of the listed token, names that hold it or one before it; the most alike first.
    tokens: Vec<(f64, u32, usize)>,
    /// What the searched token can gain at most.
    gain: f64,
}

impl AlikeTokens {
    /// Names to look at for the tokens that reach a similarity.
    fn names_count(&self, similarity: f64) -> usize {
        let reaching = self.tokens.partition_point(|(score, _, _)| *score >= similarity - MARGIN);
        reaching.checked_sub(1).and_then(|last| self.tokens.get(last)).map_or(0, |(_, _, count)| *count)
    }
}

/// What the variations of one searched name share: by token, and whether it is needed down to the anchors' floor.
type Known = HashMap<(String, bool), Rc<AlikeTokens>>;
type Alike = Rc<AlikeTokens>;

/// A searched token.
struct Searched<'a> {
    text: &'a str,
    sound: Option<char>,
    pattern: Pattern<'a>,
    /// What it contributes without a partner.
    alone: f64,
}

impl NameIndex {
    fn tokens_of(&self, variation: Variation) -> &[u32] {
        self.variation_tokens.get(variation.start as usize..variation.end as usize).unwrap_or_default()
    }

    /// Every listed name whose similarity with these tokens reaches the threshold, with its score, by number.
    pub fn search(&self, tokens: &[String]) -> Vec<Found> {
        let mut best: HashMap<u32, f64> = HashMap::new();
        let mut scratch = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        scratch.rows.resize(self.tokens.len(), 0);
        scratch.seen.resize(self.variations.len(), false);
        let mut known = HashMap::new();
        for variation in variations(tokens) {
            self.search_variation(&variation, &mut scratch, &mut known, &mut best);
        }
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        sorted(best)
    }

    /// The same as `search` by comparing every name; what the index is measured against.
    pub fn exhaustive(&self, tokens: &[String]) -> Vec<Found> {
        let mut best: HashMap<u32, f64> = HashMap::new();
        let searched = variations(tokens);
        for variation in self.variations.iter().copied() {
            for tokens in &searched {
                self.compare(tokens, variation, &mut best);
            }
        }
        sorted(best)
    }

    fn compare(&self, searched: &[String], variation: Variation, best: &mut HashMap<u32, f64>) {
        let listed: Vec<&str> = self
            .tokens_of(variation)
            .iter()
            .filter_map(|token| self.tokens.get(*token as usize))
            .map(|token| token.text.as_str())
            .collect();
        let score = best_pairs(searched, &listed);
        if score >= self.threshold {
            let known = best.entry(variation.name).or_insert(score);
            *known = known.max(score);
        }
    }

    fn search_variation(&self, tokens: &[String], scratch: &mut Scratch, known: &mut Known, best: &mut HashMap<u32, f64>) {
        let searched: Vec<Searched<'_>> = tokens
            .iter()
            .map(|text| Searched {
                text,
                sound: first_sound(text),
                pattern: Pattern::new(text),
                alone: -self.threshold * text.len() as f64,
            })
            .collect();
        for list in self.anchors(&searched, known) {
            for number in list {
                for number in self.postings.get(number as usize).into_iter().flatten() {
                    let (Some(seen @ false), Some(variation)) =
                        (scratch.seen.get_mut(*number as usize), self.variations.get(*number as usize).copied())
                    else {
                        continue;
                    };
                    *seen = true;
                    scratch.touched.push(*number);
                    if self.sum_max(&searched, variation, scratch) >= -MARGIN {
                        self.compare(tokens, variation, best);
                    }
                }
            }
        }
        for number in scratch.touched.drain(..) {
            if let Some(seen) = scratch.seen.get_mut(number as usize) {
                *seen = false;
            }
        }
        for number in scratch.numbers.drain(..) {
            if let Some(row) = scratch.rows.get_mut(number as usize) {
                *row = 0;
            }
        }
        scratch.cells.clear();
    }

    /// The listed tokens of which every name that reaches the threshold contains one.
    fn anchors(&self, searched: &[Searched<'_>], known: &mut Known) -> Vec<Vec<u32>> {
        let alike = self.all_alike(searched, false, known);
        let at_threshold =
            |alike: Vec<Alike>| alike.iter().map(|alike| alike.tokens.iter().map(|(_, number, _)| *number).collect()).collect();
        let names_count: usize = alike.iter().map(|alike| alike.names_count(0.0)).sum();
        if names_count < CHOICE_NAMES_MIN || !(2..=CHOSEN_TOKENS_MAX).contains(&searched.len()) {
            return at_threshold(alike);
        }
        let near = self.all_alike(searched, true, known);
        let mut choice: Option<(usize, u128, f64)> = None;
        for mask in choices(&near) {
            let is_anchor = |place: usize| mask & (1 << place) != 0;
            let gain: f64 = near.iter().enumerate().filter(|(place, _)| !is_anchor(*place)).map(|(_, alike)| alike.gain).sum();
            let loses_more = |step: &usize| {
                let anchors = searched.iter().enumerate().filter(|(place, _)| is_anchor(*place));
                anchors.map(|(_, token)| self.loss_min(token.text.len(), *step)).sum::<f64>() > gain + MARGIN
            };
            let Some(similarity) = (0..=STEPS).find(loses_more).and_then(|step| self.steps.get(step)) else { continue };
            let count =
                near.iter().enumerate().filter(|(place, _)| is_anchor(*place)).map(|(_, alike)| alike.names_count(*similarity)).sum();
            if count < choice.map_or(names_count, |(least, _, _)| least) {
                choice = Some((count, mask, *similarity));
            }
        }
        let Some((_, mask, similarity)) = choice else { return at_threshold(alike) };
        let chosen = near.into_iter().enumerate().filter(|(place, _)| mask & (1 << place) != 0);
        let reaching = |(score, _, _): &(f64, u32, usize)| *score >= similarity - MARGIN;
        chosen.map(|(_, alike)| alike.tokens.iter().copied().take_while(reaching).map(|(_, number, _)| number).collect()).collect()
    }

    /// What is alike to each searched token: to the threshold, or down to where anchors may be.
    fn all_alike(&self, searched: &[Searched<'_>], is_near: bool, known: &mut Known) -> Vec<Alike> {
        let similarity = if is_near { ANCHOR_FLOOR.min(self.threshold) } else { self.threshold };
        let alike = |token: &Searched<'_>| {
            known.entry((token.text.to_owned(), is_near)).or_insert_with(|| Rc::new(self.alike(token, similarity))).clone()
        };
        searched.iter().map(alike).collect()
    }

    fn loss_min(&self, bytes: usize, step: usize) -> f64 {
        self.losses.get(bytes).and_then(|losses| losses.get(step)).copied().unwrap_or(0.0)
    }

    /// The listed tokens that reach a similarity with a searched one.
    fn alike(&self, searched: &Searched<'_>, similarity: f64) -> AlikeTokens {
        let (text, least) = (searched.text, similarity - MARGIN);
        let letters = Letters::of(text.as_bytes());
        let mut tokens: Vec<(f64, u32, usize)> = Vec::new();
        let shelves = searched.sound.and_then(|sound| self.shelves.get(&sound));
        for (bytes, shelf) in shelves.into_iter().flatten() {
            let reaches = |common: &usize| similarity_bound(text.len(), *bytes, *common) >= least;
            let Some(common_min) = (1..=text.len().min(*bytes)).find(reaches) else { continue };
            for (other, number) in shelf.letters.iter().zip(&shelf.tokens) {
                if letters.common_max(*other) >= common_min {
                    let score = self.tokens.get(*number as usize).map_or(0.0, |listed| searched.pattern.similarity(listed.text.as_bytes()));
                    if score >= least {
                        tokens.push((score, *number, 0));
                    }
                }
            }
        }
        tokens.sort_by(|left, right| right.0.total_cmp(&left.0));
        let (mut count, mut gain) = (0, 0.0_f64);
        for (score, number, names_count) in &mut tokens {
            count += self.postings.get(*number as usize).map_or(0, Vec::len);
            *names_count = count;
            let bytes = text.len() + self.tokens.get(*number as usize).map_or(0, |listed| listed.text.len());
            gain = gain.max((*score - self.threshold) * bytes as f64);
        }
        AlikeTokens { tokens, gain }
    }

    /// What a variation's gains and losses add up to at most: each searched token with its best partner, free or not.
    fn sum_max(&self, searched: &[Searched<'_>], variation: Variation, scratch: &mut Scratch) -> f64 {
        let width = searched.len();
        let mut sum = 0.0;
        for number in self.tokens_of(variation) {
            self.fill_row(searched, *number, scratch);
        }
        for (i, token) in searched.iter().enumerate() {
            let contributions = self.tokens_of(variation).iter().filter_map(|number| {
                let row = scratch.rows.get(*number as usize).copied().unwrap_or(0) as usize;
                row.checked_sub(1).and_then(|row| scratch.cells.get(row * width + i)).copied()
            });
            sum += contributions.fold(token.alone, f64::max);
        }
        sum
    }

    /// Works out what a listed token contributes with each searched one, once a search.
    fn fill_row(&self, searched: &[Searched<'_>], number: u32, scratch: &mut Scratch) {
        let (Some(row @ 0), Some(listed)) = (scratch.rows.get_mut(number as usize), self.tokens.get(number as usize)) else { return };
        scratch.numbers.push(number);
        *row = scratch.numbers.len() as u32;
        for token in searched {
            // Tokens that do not sound alike at the beginning are no pair.
            let contribution = if token.sound.is_some() && token.sound == listed.sound {
                (token.pattern.similarity(listed.text.as_bytes()) - self.threshold) * (token.text.len() + listed.text.len()) as f64
            } else {
                token.alone
            };
            scratch.cells.push(contribution);
        }
    }
}

/// The sets of tokens that are tried as anchors, one bit a token.
fn choices(near: &[Alike]) -> Vec<u128> {
    if near.len() <= CHOICE_TOKENS_MAX {
        return (1..(1 << near.len())).collect();
    }
    let mut by_count: Vec<(usize, usize)> =
        near.iter().map(|alike| alike.names_count(0.0)).enumerate().map(|(place, count)| (count, place)).collect();
    by_count.sort_unstable();
    let mut mask = 0_u128;
    let grow = |(_, place): &(usize, usize)| {
        mask |= 1 << place;
        mask
    };
    by_count.iter().map(grow).collect()
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

    #[test]
    fn the_comparison_with_all_notices_a_lossy_index() {
        let names: Vec<Vec<String>> = ["rajesh kumar", "rakesh kumar", "ramesh kumaran"].map(words).to_vec();
        let mut index = index(&names, 0.85);
        assert_eq!(index.search(&names[0]), index.exhaustive(&names[0]));
        index.postings.iter_mut().for_each(|list| list.retain(|variation| *variation != 1));
        assert_ne!(index.search(&names[0]), index.exhaustive(&names[0]));
    }

    /// Names of few letters, so that many are alike.
    fn name() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec(prop_oneof!["[abcdkmr]{1,4}", "[a-e]{3,9}", "(ra|ka|mo|ha|md|al|kh|an){1,4}", "[aé0-2]{1,6}"], 0..9)
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
