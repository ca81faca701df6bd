//! The in-memory index over listed names. It finds every name whose similarity reaches a threshold,
//! without comparing all names.
//!
//! The similarity of two names is an average over their tokens, weighted by length, times a factor
//! of at most one. Written as gains and losses against the threshold `t`, a pair of tokens of
//! similarity `s` contributes `(s - t) * (bytes of both)`, and a searched token without a partner
//! `-t * bytes`. A name reaches `t` only if the sum is not negative. So at least one pair reaches
//! `t` itself: its listed token is found in the dictionary of all tokens (`token_trie.rs`), and the
//! names that have the token are looked at.
//!
//! A common token is in many names, and looking at all of them would take long. So only names that
//! have a token alike to an *anchor* are looked at. The anchors are some of the searched tokens.
//! They are chosen so that a name without a token alike to any of them loses more by the anchors
//! than it can gain by all other tokens. Such a name cannot reach `t`.
//!
//! For most names that are looked at, the sum is negative even if every searched token gets its
//! best partner. The others are compared in full. Nothing is lost: `exhaustive` does the same
//! without the index, and a property test compares both.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use super::name_records::{Bits, Records, TokenPosting, sound_bit};
use super::similarity::{
    PATTERN_BYTES_MAX, PREFIX_MAX, Pattern, first_sound, paired_similarity, similarity_bound,
    variations,
};
use super::text::TOKEN_BYTES_MAX;
use super::token_trie::TokenTrie;

/// The lowest similarity from which a listed token may count as alike to an anchor. A lower
/// threshold replaces it.
const ANCHOR_FLOOR: f64 = 0.78;
/// In how many steps the similarity for anchors is lowered from the threshold to the floor.
const STEPS: usize = 10;
/// Of at most this many tokens, every set is tried as the anchors. Of more, only the rarest one,
/// the two rarest and so on are tried.
const EVERY_SET_TOKENS_MAX: usize = 5;
/// Of more tokens than this, all are anchors, because a set of anchors is kept in this many bits.
const ANCHOR_BITS: usize = 128;

/// Room for floating-point error: bounds are loosened by it, results never.
const MARGIN: f64 = 1e-6;

/// A name that was found.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FoundName {
    /// The number that the name was added with.
    pub name: u32,
    /// From the threshold to 1.
    pub score: f64,
}

/// The distinct tokens of one first sound.
#[derive(Default)]
struct Sound {
    tries: Vec<TokenTrie>,
    /// Tokens that are too long for a trie.
    long: Vec<u32>,
}

/// Names as they are added, before they can be searched.
#[derive(Default)]
pub struct IndexBuilder {
    numbers: HashMap<String, u32>,
    tokens: Vec<String>,
    records: Records,
    names_count: u32,
}

impl IndexBuilder {
    /// Adds a name and answers its number; names count from 0.
    pub fn add(&mut self, tokens: &[String]) -> u32 {
        let name = self.names_count;
        self.names_count += 1;
        for variation in variations(tokens) {
            let numbers: Vec<u32> = variation.into_iter().map(|token| self.number(token)).collect();
            self.records.add(name, &numbers);
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

    /// `threshold` is the lowest score that will be found, above 0.
    pub fn build(self, threshold: f64) -> NameIndex {
        let mut sounds: HashMap<char, Sound> = HashMap::new();
        let mut by_length: BTreeMap<(char, usize), Vec<(&[u8], u32)>> = BTreeMap::new();
        for (number, token) in self.tokens.iter().enumerate() {
            match first_sound(token) {
                Some(sound) if token.len() <= PATTERN_BYTES_MAX => {
                    by_length
                        .entry((sound, token.len()))
                        .or_default()
                        .push((token.as_bytes(), number as u32));
                }
                Some(sound) => sounds.entry(sound).or_default().long.push(number as u32),
                None => {}
            }
        }
        for ((sound, _), tokens) in by_length {
            sounds.entry(sound).or_default().tries.push(TokenTrie::new(tokens));
        }
        let token_sounds: Vec<u32> =
            self.tokens.iter().map(|token| sound_bit(first_sound(token))).collect();
        let mut postings: Vec<Vec<TokenPosting>> = vec![Vec::new(); self.tokens.len()];
        for (place, _, tokens) in self.records.iter() {
            let sounds = tokens
                .iter()
                .filter_map(|token| token_sounds.get(*token as usize))
                .fold(0, |all, sound| all | sound);
            for token in tokens {
                if let Some(list) = postings.get_mut(*token as usize)
                    && list.last().is_none_or(|last| last.place != place)
                {
                    list.push(TokenPosting { place, sounds });
                }
            }
        }
        let floor = ANCHOR_FLOOR.min(threshold);
        let steps: Vec<f64> = (0..=STEPS)
            .map(|step| threshold - (threshold - floor) * step as f64 / STEPS as f64)
            .collect();
        let losses = (0..=TOKEN_BYTES_MAX)
            .map(|bytes| steps.iter().map(|step| loss_min(bytes, *step, threshold)).collect())
            .collect();
        NameIndex {
            threshold,
            steps,
            losses,
            sounds,
            postings,
            tokens: self.tokens,
            records: self.records,
            spare: Mutex::default(),
        }
    }
}

/// The least loss of a searched token of this length if no listed token reaches `similarity` with
/// it.
fn loss_min(bytes: usize, similarity: f64, threshold: f64) -> f64 {
    let matched = (1..=TOKEN_BYTES_MAX).map(|other| {
        let reachable = similarity_bound(bytes, other, TOKEN_BYTES_MAX, PREFIX_MAX).min(similarity);
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
    sounds: HashMap<char, Sound>,
    /// The records that hold a token, by the token's number.
    postings: Vec<Vec<TokenPosting>>,
    tokens: Vec<String>,
    records: Records,
    /// Working memory of earlier searches.
    spare: Mutex<Vec<Scratch>>,
}

/// Working memory as large as the index. It is kept between searches, and each search resets what
/// it changed.
#[derive(Default)]
struct Scratch {
    /// By the number of a listed token: one more than its row in `cells`, or 0 where it has none.
    rows: Vec<u32>,
    /// The tokens that have a row, in the order of the rows.
    numbers: Vec<u32>,
    /// What a listed token contributes with each searched one, row after row.
    cells: Vec<f64>,
    /// The records that the bound by first sounds does not rule out. A record with the place `p`
    /// is the number `p / 2` here, so that the set takes half the memory. No two records share
    /// such a number, because each record takes up at least two places ([`Records`]).
    seen: Bits,
    /// The places of the records in `seen`.
    touched: Vec<u32>,
}

/// The listed tokens that are alike to a searched one, down to the lowest similarity of an anchor.
struct AlikeTokens {
    /// Similarity, number of the listed token, and how many records hold it or a more alike one; a
    /// record counts once for each such token. The most alike first.
    tokens: Vec<(f64, u32, usize)>,
    /// The most that the searched token contributes.
    gain: f64,
    /// The most that the searched token contributes if none of `tokens` is its partner. Not
    /// positive.
    without: f64,
    /// The bit of the searched token's first sound.
    sound: u32,
    /// What the searched token contributes to a record in which no token has its first sound.
    alone: f64,
}

impl AlikeTokens {
    /// The most records that would be looked at for the tokens that reach a similarity.
    fn records_count(&self, similarity: f64) -> usize {
        let reaching = self.tokens.partition_point(|(score, _, _)| *score >= similarity - MARGIN);
        reaching
            .checked_sub(1)
            .and_then(|last| self.tokens.get(last))
            .map_or(0, |(_, _, count)| *count)
    }
}

/// Results that the variations of one searched name share, by token.
type AlikeByToken = HashMap<String, Alike>;
type Alike = Rc<AlikeTokens>;

impl NameIndex {
    /// Every listed name whose similarity with these tokens reaches the threshold, with its score,
    /// in the order of the names' numbers.
    pub fn search(&self, tokens: &[String]) -> Vec<FoundName> {
        let mut best: HashMap<u32, f64> = HashMap::new();
        let mut scratch =
            self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        scratch.rows.resize(self.tokens.len(), 0);
        scratch.seen.resize(self.records.places_end() / 2);
        let mut known = HashMap::new();
        for variation in variations(tokens) {
            self.search_variation(&variation, &mut scratch, &mut known, &mut best);
        }
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        sorted(best)
    }

    /// Finds the same as `search` by comparing every name. Tests compare the index with it.
    pub fn exhaustive(&self, tokens: &[String]) -> Vec<FoundName> {
        let mut best: HashMap<u32, f64> = HashMap::new();
        let searched = variations(tokens);
        for (_, name, listed) in self.records.iter() {
            for tokens in &searched {
                self.compare(tokens, name, listed, &mut best);
            }
        }
        sorted(best)
    }

    fn compare(
        &self,
        searched: &[String],
        name: u32,
        listed: &[u32],
        best: &mut HashMap<u32, f64>,
    ) {
        let listed: Vec<&str> = listed
            .iter()
            .filter_map(|token| self.tokens.get(*token as usize))
            .map(String::as_str)
            .collect();
        let score = paired_similarity(searched, &listed);
        if score >= self.threshold {
            let known = best.entry(name).or_insert(score);
            *known = known.max(score);
        }
    }

    fn search_variation(
        &self,
        tokens: &[String],
        scratch: &mut Scratch,
        known: &mut AlikeByToken,
        best: &mut HashMap<u32, f64>,
    ) {
        let alike: Vec<Alike> = tokens
            .iter()
            .map(|token| {
                known
                    .entry(token.clone())
                    .or_insert_with_key(|token| Rc::new(self.alike(token)))
                    .clone()
            })
            .collect();
        let alike_to_anchors = self.alike_to_anchors(tokens, &alike);
        if alike_to_anchors.iter().all(Vec::is_empty) {
            return;
        }
        self.fill_rows(tokens, &alike, scratch);
        for number in alike_to_anchors.into_iter().flatten() {
            for TokenPosting { place, sounds } in
                self.postings.get(number as usize).into_iter().flatten()
            {
                let contribution = |alike: &Alike| {
                    if alike.sound & sounds != 0 { alike.gain } else { alike.alone }
                };
                if alike.iter().map(contribution).sum::<f64>() < -MARGIN
                    || !scratch.seen.add(place / 2)
                {
                    continue;
                }
                scratch.touched.push(*place);
            }
        }
        let mut touched = std::mem::take(&mut scratch.touched);
        for place in touched.drain(..) {
            scratch.seen.remove(place / 2);
            let Some((name, listed)) = self.records.get(place) else { continue };
            if self.sum_max(&alike, listed, scratch) >= -MARGIN {
                self.compare(tokens, name, listed, best);
            }
        }
        scratch.touched = touched;
        for number in scratch.numbers.drain(..) {
            if let Some(row) = scratch.rows.get_mut(number as usize) {
                *row = 0;
            }
        }
        scratch.cells.clear();
    }

    /// For each anchor, the listed tokens that are alike to it. Every name that reaches the
    /// threshold contains at least one of them.
    fn alike_to_anchors(&self, tokens: &[String], alike: &[Alike]) -> Vec<Vec<u32>> {
        // Without a better choice, every token is an anchor, and tokens are alike from the
        // threshold on.
        let (mut mask, mut similarity) = (u128::MAX, self.threshold);
        let mut count_least: usize =
            alike.iter().map(|alike| alike.records_count(self.threshold)).sum();
        let choices =
            if (2..=ANCHOR_BITS).contains(&alike.len()) { choices(alike) } else { Vec::new() };
        for choice in choices {
            let is_anchor = |place: usize| choice & (1 << place) != 0;
            let gain: f64 = alike
                .iter()
                .enumerate()
                .filter(|(place, _)| !is_anchor(*place))
                .map(|(_, alike)| alike.gain)
                .sum();
            let loses_more = |step: &usize| {
                let anchors = tokens.iter().enumerate().filter(|(place, _)| is_anchor(*place));
                anchors.map(|(_, token)| self.loss_min(token.len(), *step)).sum::<f64>()
                    > gain + MARGIN
            };
            let Some(least) = (0..=STEPS).find(loses_more).and_then(|step| self.steps.get(step))
            else {
                continue;
            };
            let count = alike
                .iter()
                .enumerate()
                .filter(|(place, _)| is_anchor(*place))
                .map(|(_, alike)| alike.records_count(*least))
                .sum();
            if count < count_least {
                (count_least, mask, similarity) = (count, choice, *least);
            }
        }
        let chosen = alike
            .iter()
            .enumerate()
            .filter(|(place, _)| *place >= ANCHOR_BITS || mask & (1 << place) != 0);
        let reaching = |(score, _, _): &(f64, u32, usize)| *score >= similarity - MARGIN;
        chosen
            .map(|(_, alike)| {
                alike
                    .tokens
                    .iter()
                    .copied()
                    .take_while(reaching)
                    .map(|(_, number, _)| number)
                    .collect()
            })
            .collect()
    }

    /// The function `loss_min` at the similarity of a step, read from the table `losses`.
    fn loss_min(&self, bytes: usize, step: usize) -> f64 {
        self.losses.get(bytes).and_then(|losses| losses.get(step)).copied().unwrap_or(0.0)
    }

    /// The listed tokens that are alike to a searched one.
    fn alike(&self, text: &str) -> AlikeTokens {
        let least = ANCHOR_FLOOR.min(self.threshold) - MARGIN;
        let pattern = Pattern::new(text);
        let mut tokens: Vec<(f64, u32, usize)> = Vec::new();
        if let Some(sound) = first_sound(text).and_then(|sound| self.sounds.get(&sound)) {
            for trie in &sound.tries {
                trie.search(&pattern, least, |score, number| tokens.push((score, number, 0)));
            }
            for number in &sound.long {
                let score = self
                    .tokens
                    .get(*number as usize)
                    .map_or(0.0, |listed| pattern.similarity(listed.as_bytes()));
                if score >= least {
                    tokens.push((score, *number, 0));
                }
            }
        }
        tokens.sort_unstable_by(|left, right| right.0.total_cmp(&left.0));
        let without = -self.loss_min(text.len(), STEPS);
        let (mut count, mut gain) = (0, without);
        for (score, number, records_count) in &mut tokens {
            count += self.postings.get(*number as usize).map_or(0, Vec::len);
            *records_count = count;
            gain = gain.max(self.contribution(text, *score, *number));
        }
        AlikeTokens {
            tokens,
            gain,
            without,
            sound: sound_bit(first_sound(text)),
            alone: -self.threshold * text.len() as f64,
        }
    }

    /// What a pair of a searched and a listed token contributes.
    fn contribution(&self, text: &str, score: f64, listed: u32) -> f64 {
        (score - self.threshold)
            * (text.len() + self.tokens.get(listed as usize).map_or(0, String::len)) as f64
    }

    /// Computes what each alike token contributes with each searched one.
    fn fill_rows(&self, tokens: &[String], alike: &[Alike], scratch: &mut Scratch) {
        for (place, (text, own)) in tokens.iter().zip(alike).enumerate() {
            for (score, number, _) in &own.tokens {
                let Some(row) = scratch.rows.get_mut(*number as usize) else { continue };
                if *row == 0 {
                    scratch.numbers.push(*number);
                    *row = scratch.numbers.len() as u32;
                    scratch.cells.extend(alike.iter().map(|alike| alike.without));
                }
                if let Some(cell) =
                    scratch.cells.get_mut((*row as usize - 1) * tokens.len() + place)
                {
                    *cell = cell.max(self.contribution(text, *score, *number));
                }
            }
        }
    }

    /// An upper bound of a variation's gains and losses: each searched token gets its best partner,
    /// even if another token has that partner already.
    fn sum_max(&self, alike: &[Alike], listed: &[u32], scratch: &Scratch) -> f64 {
        let width = alike.len();
        let rows = || {
            listed.iter().filter_map(|number| scratch.rows.get(*number as usize)?.checked_sub(1))
        };
        let best = |(place, alike): (usize, &Alike)| {
            rows()
                .filter_map(|row| scratch.cells.get(row as usize * width + place))
                .copied()
                .fold(alike.without, f64::max)
        };
        alike.iter().enumerate().map(best).sum()
    }
}

/// The sets of tokens that are tried as anchors, one bit a token.
fn choices(alike: &[Alike]) -> Vec<u128> {
    if alike.len() <= EVERY_SET_TOKENS_MAX {
        return (1..(1 << alike.len())).collect();
    }
    let mut by_count: Vec<(usize, usize)> = alike
        .iter()
        .map(|alike| alike.records_count(0.0))
        .enumerate()
        .map(|(place, count)| (count, place))
        .collect();
    by_count.sort_unstable();
    let mut mask = 0_u128;
    let grow = |(_, place): &(usize, usize)| {
        mask |= 1 << place;
        mask
    };
    by_count.iter().map(grow).collect()
}

fn sorted(best: HashMap<u32, f64>) -> Vec<FoundName> {
    let mut found: Vec<FoundName> =
        best.into_iter().map(|(name, score)| FoundName { name, score }).collect();
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
        let index = index(
            &[words("rajesh kumar"), words("al zawahiri ayman"), words("muhammad ali khan")],
            0.85,
        );
        for (searched, name) in [
            ("kumar rajesh", 0),
            ("rakesh kumar", 0),
            ("ayman alzawahiri", 1),
            ("ayman al zawahri", 1),
            ("mohammed ali khan", 2),
            ("muhammad khan ali", 2),
        ] {
            assert_eq!(
                index.search(&words(searched)).iter().map(|found| found.name).collect::<Vec<_>>(),
                [name],
                "{searched}"
            );
        }
        assert!(index.search(&words("priya sharma")).is_empty() && index.search(&[]).is_empty());
    }

    #[test]
    fn the_comparison_with_all_notices_a_lossy_index() {
        let names: Vec<Vec<String>> =
            ["rajesh kumar", "rakesh kumar", "ramesh kumaran"].map(words).to_vec();
        let mut index = index(&names, 0.85);
        assert_eq!(index.search(&names[0]), index.exhaustive(&names[0]));
        index.postings.iter_mut().for_each(|list| list.retain(|posting| posting.place != 4));
        assert_ne!(index.search(&names[0]), index.exhaustive(&names[0]));
    }

    /// Names of few letters, so that many are alike.
    fn name() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec(
            prop_oneof![
                "[abcdkmr]{1,4}",
                "[a-e]{3,9}",
                "(ra|ka|mo|ha|md|al|kh|an){1,4}",
                "[aé0-2]{1,6}"
            ],
            0..9,
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
        #[test]
        fn the_index_finds_what_comparing_all_finds(
            names in prop::collection::vec(name(), 1..40), searched in name(),
                pick in any::<prop::sample::Index>(),
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
