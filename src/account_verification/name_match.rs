//! Compares the *given* name, by which the caller calls the beneficiary, with the *held* name, by
//! which the bank calls the account holder. It allows for the habits of Indian names: initials, any
//! order, honorifics, relatives (S/O), joined and split first names, transliteration, joint
//! holders, truncation.
//!
//! Words pair up one to one. A pair is the same word, the same word in another spelling, an
//! initial, or a near miss (one letter differs, which may be another name: Rajesh and Rakesh). The
//! function `judge` turns the pairs and the words left over into a score. A common surname alone
//! identifies nobody.

use super::NameMatch;
use super::persons::{Person, are_compared_in_full, persons};
use crate::screening::sounds::{is_vowel, sound};
use crate::screening::text::normalise;

/// The least scores of names that match, and that match in part.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NameThresholds {
    /// From `score_partial` to 1.
    pub score_match: f64,
    /// Above 0.
    pub score_partial: f64,
}

impl Default for NameThresholds {
    fn default() -> Self {
        NameThresholds { score_match: 0.85, score_partial: 0.60 }
    }
}

impl NameThresholds {
    /// Refuses scores that are out of order or range.
    pub fn checked(self) -> Result<NameThresholds, String> {
        let is_right = 0.0 < self.score_partial
            && self.score_partial <= self.score_match
            && self.score_match <= 1.0;
        if is_right {
            Ok(self)
        } else {
            Err("name_score_partial must be above 0 and at most name_score_match, which must be at \
                 most 1"
                .into())
        }
    }

    /// The highest score of names that may match in part but never match. It is always below
    /// `score_match`, and at most 0.70.
    fn score_in_part_max(&self) -> f64 {
        self.score_match.next_down().min(0.70)
    }
}

/// The most characters of a name that are compared.
const CHARACTERS_MAX: usize = 200;
/// Banks' name fields hold at least this many characters, so a shorter name was not cut.
const FIELD_CHARACTERS_MIN: usize = 18;
/// In words whose sounds have at least this many letters, one differing letter may be a mistake.
const NEAR_LETTERS_MIN: usize = 5;

/// Endings of respect and kinship that one side may leave out: Sureshbhai, Ushaben, Guruji.
const ENDINGS: &[&str] = &["bhai", "ben", "behen", "ji", "garu"];
/// Surnames and middle names so common that one alone identifies nobody.
const COMMON: &[&str] = &[
    "kumar",
    "kumari",
    "devi",
    "singh",
    "kaur",
    "sharma",
    "verma",
    "gupta",
    "patel",
    "shah",
    "khan",
    "reddy",
    "rao",
    "nair",
    "pillai",
    "iyer",
    "das",
    "roy",
    "sen",
    "ghosh",
    "bose",
    "jain",
    "agarwal",
    "mishra",
    "pandey",
    "yadav",
    "mehta",
    "joshi",
    "desai",
    "ali",
    "ahmed",
    "mohammed",
    "sheikh",
    "begum",
    "bibi",
    "lal",
    "ram",
    "chandra",
    "prasad",
    "raj",
    "nath",
    "thomas",
    "john",
    "joseph",
    "george",
    "mathew",
    "fernandes",
    "dsouza",
    "menon",
    "naidu",
    "chaudhary",
    "thakur",
    "tiwari",
    "dubey",
    "saxena",
    "kapoor",
    "malhotra",
    "chopra",
    "bhat",
    "hegde",
    "gowda",
];

/// The result of a comparison.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NameComparison {
    pub name_match: NameMatch,
    /// 0 to 1; 0 if the names could not be compared.
    pub score: f64,
}

/// Compares the given name with the one the bank holds. `Unavailable` if the bank gave none, a
/// masked one, or one without Latin letters while the given name has some.
pub fn compare(given: &str, held: &str, thresholds: &NameThresholds) -> NameComparison {
    let Some(score) = similarity(given, held, thresholds) else {
        return NameComparison { name_match: NameMatch::Unavailable, score: 0.0 };
    };
    let name_match = match score {
        score if score >= thresholds.score_match => NameMatch::Match,
        score if score >= thresholds.score_partial => NameMatch::Partial,
        _ => NameMatch::Mismatch,
    };
    NameComparison { name_match, score }
}

/// How alike the names are, from 0 to 1. `None` if the held name cannot be compared. The thresholds
/// limit the score of names that may match in part but never match, and change no other score.
fn similarity(given: &str, held: &str, thresholds: &NameThresholds) -> Option<f64> {
    let has_latin = |text: &str| normalise(text).bytes().any(|byte| byte.is_ascii_lowercase());
    let is_masked = held.contains('*') || held.to_ascii_lowercase().contains("xxx");
    let given: String = given.chars().take(CHARACTERS_MAX).collect();
    let held: String = held.chars().take(CHARACTERS_MAX).collect();
    if is_masked || normalise(&held).is_empty() || (has_latin(&given) && !has_latin(&held)) {
        return None;
    }
    // Equal names agree even if no word would be left to compare: "Joint" and "Huf" may be
    // somebody's names.
    if normalise(&given) == normalise(&held) {
        return Some(1.0);
    }
    let may_be_cut = held.trim().chars().count() >= FIELD_CHARACTERS_MIN;
    let (asked, holders) = (persons(&given), persons(&held));
    let last = holders.len().saturating_sub(1);
    let in_part_max = thresholds.score_in_part_max();
    // Every person that is asked for has to be one of the holders, so the least similar one counts.
    let of_each = asked.iter().map(|person| {
        holders
            .iter()
            .enumerate()
            .map(|(i, holder)| {
                compare_persons(person, holder, may_be_cut && i == last, in_part_max)
            })
            .fold(0.0, f64::max)
    });
    let score = of_each.reduce(f64::min).unwrap_or(0.0);
    // If the given name has more persons or words than are compared, nobody looked at the rest of
    // it. Then it matches at most in part.
    Some(if are_compared_in_full(&asked) { score } else { score.min(in_part_max) })
}

/// A word's sound, reduced to its first letter and the consonants after it.
fn first_and_consonants(heard: &str) -> String {
    heard
        .chars()
        .enumerate()
        .filter(|(place, letter)| *place == 0 || !is_vowel(*letter))
        .map(|(_, letter)| letter)
        .collect()
}

/// How two words relate.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Pair {
    /// The same word, with a certainty from 0 to 1.
    Same(f64),
    Initial,
    /// One letter differs: a mistake, or another name.
    Near,
}

fn pair(left: &str, right: &str) -> Option<Pair> {
    if left == right {
        return Some(if left.chars().count() == 1 { Pair::Initial } else { Pair::Same(1.0) });
    }
    let (short, long) =
        if left.chars().count() <= right.chars().count() { (left, right) } else { (right, left) };
    let is_initial = short.chars().count() == 1 && long.starts_with(short);
    if is_initial {
        return Some(Pair::Initial);
    }
    let (heard_short, heard_long) = (sound(short), sound(long));
    if heard_short == heard_long && short.len() > 1 {
        return Some(Pair::Same(0.97));
    }
    let differs_by_ending = ENDINGS.iter().any(|ending| {
        long.strip_suffix(ending).is_some_and(|stem| stem.len() > 2 && sound(stem) == heard_short)
    });
    if differs_by_ending {
        return Some(Pair::Same(0.95));
    }
    let letters = heard_short.chars().count().min(heard_long.chars().count());
    let distance = strsim::osa_distance(&heard_short, &heard_long);
    let ends_alike =
        heard_short.chars().last().map(is_vowel) == heard_long.chars().last().map(is_vowel);
    let is_respelled = letters >= NEAR_LETTERS_MIN
        && distance <= 2
        && ends_alike
        && first_and_consonants(&heard_short) == first_and_consonants(&heard_long);
    if is_respelled {
        return Some(Pair::Same(0.93));
    }
    (letters >= NEAR_LETTERS_MIN && distance <= 1).then_some(Pair::Near)
}

/// Joins neighbouring words of one side that the other side writes as one: "Ram Kumar" and
/// "Ramkumar".
fn joined(words: &[String], other: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut place = 0;
    while let Some(word) = words.get(place) {
        // Three words first: "sri ram murthy" is "srirammurthy", and joining only "sri ram" would
        // miss it.
        let ends = [3, 2].into_iter().filter_map(|count| words.get(place..place + count));
        let whole = ends.map(|parts| (parts.len(), parts.concat())).find(|(_, whole)| {
            whole.len() > 3
                && other.iter().any(|word| {
                    word.len() > 3 && !words.contains(word) && sound(word) == sound(whole)
                })
        });
        let (count, text) = whole.unwrap_or_else(|| (1, word.clone()));
        out.push(text);
        place += count;
    }
    out
}

/// How the words of two names pair up.
#[derive(Default, Debug)]
struct PairTally {
    /// For each pair of the same word: its place in either name, and the certainty.
    same: Vec<(usize, usize, f64)>,
    /// How many pairs are an initial, and how many a near miss.
    initials: usize,
    near: usize,
    /// Places of words without a partner, on either side.
    left_over: [Vec<usize>; 2],
}

fn pair_up(left: &[String], right: &[String]) -> PairTally {
    let mut pairs: Vec<(f64, usize, usize, Pair)> = Vec::new();
    for (i, word) in left.iter().enumerate() {
        for (j, other) in right.iter().enumerate() {
            if let Some(pair) = pair(word, other) {
                let rank = match pair {
                    Pair::Same(score) => score,
                    Pair::Near => 0.5,
                    Pair::Initial => 0.4,
                };
                pairs.push((rank, i, j, pair));
            }
        }
    }
    // The most certain first; of equals the earliest in both, so that the result does not depend on
    // which of the names is `left`.
    pairs.sort_by(|one, two| {
        two.0.total_cmp(&one.0).then((one.1 + one.2).cmp(&(two.1 + two.2))).then(one.1.cmp(&two.1))
    });
    let mut tally = PairTally::default();
    let (mut is_used_left, mut is_used_right) = (vec![false; left.len()], vec![false; right.len()]);
    for (_, i, j, pair) in pairs {
        if let (Some(used_left @ false), Some(used_right @ false)) =
            (is_used_left.get_mut(i), is_used_right.get_mut(j))
        {
            (*used_left, *used_right) = (true, true);
            match pair {
                Pair::Same(score) => tally.same.push((i, j, score)),
                Pair::Initial => tally.initials += 1,
                Pair::Near => tally.near += 1,
            }
        }
    }
    let free = |used: &[bool]| {
        used.iter()
            .enumerate()
            .filter(|(_, used)| !**used)
            .map(|(place, _)| place)
            .collect::<Vec<_>>()
    };
    tally.left_over = [free(&is_used_left), free(&is_used_right)];
    tally.same.sort_by_key(|(i, _, _)| *i);
    tally
}

fn compare_persons(asked: &Person, holder: &Person, may_be_cut: bool, in_part_max: f64) -> f64 {
    let left = joined(&asked.words, &holder.words);
    let right = joined(&holder.words, &left);
    let mut score = judge(&left, &right, &asked.relatives, &holder.relatives);
    for (one, two) in [(&asked.titled, &holder.words), (&asked.words, &holder.titled)] {
        let (one, two) = (joined(one, two), joined(two, one));
        // Here the titles of one side count as words of its name, and those of the other side do
        // not. The score counts only if some word was joined, or left out as a title.
        if one.len() < asked.titled.len() || two.len() < holder.titled.len() {
            score = score.max(judge(&one, &two, &asked.relatives, &holder.relatives));
        }
    }
    let score = if may_be_cut { score.max(cut_score(&left, &right)) } else { score };
    // The head of a family is another account holder than the family, whatever the names.
    if asked.is_family == holder.is_family { score } else { score.min(in_part_max) }
}

/// The score of a held name that the bank's field cut off: its words are the first ones of the
/// given name, and the last of them is cut. 0 for any other name.
fn cut_score(given: &[String], held: &[String]) -> f64 {
    let Some((last, whole)) = held.split_last() else { return 0.0 };
    let rest = given.get(whole.len()..).unwrap_or_default();
    let is_beginning =
        rest.first().is_some_and(|word| word.starts_with(last.as_str()) && word != last);
    let is_same = given.len() > whole.len()
        && whole.iter().zip(given).all(|(one, two)| matches!(pair(one, two), Some(Pair::Same(_))));
    match (is_beginning && is_same, whole.len()) {
        (true, 2..) => 0.92,
        (true, 1) if last.chars().count() >= 3 => 0.88,
        _ => 0.0,
    }
}

/// The table: what pairs and words without a partner mean, as a score from 0 to 1.
fn judge(
    left: &[String],
    right: &[String],
    relatives_left: &[String],
    relatives_right: &[String],
) -> f64 {
    let mut tally = pair_up(left, right);
    let is_common = |word: &String| COMMON.iter().any(|common| sound(common) == sound(word));
    let is_strong =
        tally.same.iter().filter_map(|(i, _, _)| left.get(*i)).any(|word| !is_common(word));
    // Words of a relative's name may be left out. Beside a word that identifies the person, so may
    // an initial, or a Mohammed that begins a name of three words or more.
    let optional = |words: &[String], place: usize, others: &[String]| {
        words.get(place).is_some_and(|word| {
            others.iter().any(|other| matches!(pair(word, other), Some(Pair::Same(_))))
                || (is_strong
                    && (word.chars().count() == 1
                        || (place == 0 && words.len() > 2 && word == "mohammed")))
        })
    };
    let left_over_count = tally.left_over.iter().map(Vec::len).sum::<usize>();
    tally.left_over[0].retain(|place| !optional(left, *place, relatives_right));
    tally.left_over[1].retain(|place| !optional(right, *place, relatives_left));
    let extras = [tally.left_over[0].len(), tally.left_over[1].len()];
    let is_forgiven = left_over_count > extras[0] + extras[1];
    let same = tally.same.len();
    let sure = tally
        .same
        .iter()
        .map(|(_, _, score)| score)
        .fold(1.0_f64, |least, score| least.min(*score));
    let is_in_order = tally.same.windows(2).all(|two| matches!(two, [one, next] if one.1 < next.1));
    let extra_is_first = tally.left_over.iter().any(|places| places.contains(&0));
    let firsts_agree = tally.same.iter().any(|(i, j, _)| *i == 0 && *j == 0);
    match (extras, tally.near) {
        // No word is left over, or only words that may be left out. First: the same words in the
        // same order, even if they are only initials.
        ([0, 0], 0) if !left.is_empty() && left == right => 1.0,
        ([0, 0], 0) if tally.initials == 0 && same == 0 => 0.0,
        ([0, 0], 0) if tally.initials == 0 && is_forgiven => {
            if is_strong {
                sure.min(0.88)
            } else {
                0.65
            }
        }
        ([0, 0], 0) if tally.initials == 0 => sure,
        ([0, 0], 0) if is_strong => sure.min(0.90),
        ([0, 0], 0) if same >= 2 => 0.86,
        ([0, 0], 0) if same == 1 => {
            if tally.initials >= 2 {
                0.78
            } else {
                0.75
            }
        }
        ([0, 0], 0) => 0.50,
        // One letter differs: no match by the default thresholds.
        ([0, 0], _) if same >= 1 && tally.near == 1 => 0.75,
        ([0, 0], _) => 0.50,
        // Only one side has words without a partner.
        ([0, 1] | [1, 0], 0) if same >= 2 && is_strong && is_in_order && !extra_is_first => 0.88,
        ([0, _] | [_, 0], 0) if same >= 2 => 0.75,
        ([0, _] | [_, 0], 0) if same == 1 && is_strong && tally.initials > 0 => 0.70,
        ([0, 1] | [1, 0], 0) if same == 1 && is_strong && firsts_agree => 0.65,
        ([0, _] | [_, 0], _) if same >= 2 && tally.near == 1 => 0.65,
        // All others. Mostly, both sides have words without a partner.
        (_, 0) if same >= 2 && is_strong => 0.62,
        (_, _) if same >= 2 => 0.50,
        (_, _) if same == 1 => 0.40,
        _ => 0.10,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::persons::{ADDED, HONORIFICS, RELATIONS};
    use super::*;

    use NameMatch::{Match as M, Mismatch as X, Partial as P, Unavailable as U};

    const PAIRS: &[(&str, &str, NameMatch)] = &[
        // The same name, however it is written.
        ("Rajesh Kumar", "RAJESH KUMAR", M),
        ("Rajesh Kumar", "KUMAR RAJESH", M),
        ("Rajesh Kumar", "  Rajesh   KUMAR. ", M),
        ("Rajesh Kumar", "Mr. Rajesh Kumar", M),
        ("Rajesh Kumar", "MR RAJESH  KUMAR", M),
        ("Dr Anita Desai", "SMT ANITA DESAI", M),
        ("Shri Rajesh Kumar", "Rajesh Kumar", M),
        ("Anita Rao", "Kumari Anita Rao", M),
        ("Maria D'Souza", "MARIA DSOUZA", M),
        ("José Fernandes", "JOSE FERNANDES", M),
        ("Anand-Kumar Nair", "ANAND KUMAR NAIR", M),
        ("Madonna", "MADONNA", M),
        // Where the names of these two holders meet, the text looks like "m/s" or "a/c".
        ("Ram Sharma", "RAM/SITA SHARMA", M),
        ("Rama Nair", "RAMA/CHITRA NAIR", M),
        ("Chitra Nair", "RAMA/CHITRA NAIR", M),
        ("Asha Rao", "ASHA RAO NRE A/C", M),
        ("Asha Rao", "A/C: ASHA RAO", M),
        ("Asha Rao", "ASHA RAO (NREA/C.)", M),
        ("Kumar Traders", "M/S. KUMAR TRADERS", M),
        ("Kumar Traders", "M/S.KUMAR TRADERS", M),
        // Short forms and spellings.
        ("Mohammed Salim Khan", "MD SALIM KHAN", M),
        ("Mohd. Imran", "MOHAMMAD IMRAN", M),
        ("Muhammad Ali Khan", "MOHAMED ALI KHAN", M),
        ("Lakshmi Narayanan", "LAXMI NARAYANAN", M),
        ("Geetha Krishnan", "GEETA KRISHNAN", M),
        ("Sanjay Chaudhary", "SANJAY CHOWDHURY", M),
        ("Venkatesh Iyer", "VENKATESWH IYER", P),
        ("Vikram Shivakumar", "WIKRAM SIVAKUMAR", M),
        ("Rizwan Shaikh", "RIZVAN SHEIKH", M),
        ("Deepak Joshi", "DIPAK JOSHI", M),
        ("Pooja Mehta", "PUJA MEHTA", M),
        ("Sureshbhai Patel", "SURESH PATEL", M),
        ("Imran Khan", "MOHD IMRAN KHAN", M),
        // Joined and split.
        ("Ram Kumar Sharma", "RAMKUMAR SHARMA", M),
        ("Venkataramana Rao", "VENKATA RAMANA RAO", M),
        ("Jaya Lakshmi", "JAYALAKSHMI", M),
        ("Sriram Murthy", "SRI RAM MURTHY", M),
        // Initials.
        ("K. Ramesh", "KANDASAMY RAMESH", M),
        ("Ramesh K", "K RAMESH", M),
        ("S Radhakrishnan", "SARVEPALLI RADHAKRISHNAN", M),
        ("Ramesh", "K RAMESH", M),
        ("A P J Abdulkalam", "AVUL PAKIR JAINULABDEEN ABDULKALAM", M),
        ("APJ Abdulkalam", "A P J ABDULKALAM", M),
        ("R Kumar", "RAJESH KUMAR", P),
        ("R K Sharma", "RAJESH KUMAR SHARMA", P),
        ("RK Sharma", "R K SHARMA", M),
        ("R K", "RAJESH KUMAR", X),
        ("S Kumar", "RAJESH KUMAR", X),
        // A word more or less.
        ("Rajesh Sharma", "RAJESH KUMAR SHARMA", M),
        ("Rajesh Kumar", "RAJESH KUMAR SHARMA", M),
        ("Sneha Anil Kulkarni", "SNEHA KULKARNI", M),
        ("Rajesh", "RAJESH KUMAR", P),
        ("Rajesh Sharma", "RAJESH KUMAR PRASAD SHARMA", P),
        ("Priya Suresh", "PRIYA SURESH KUMAR NAIR", P),
        // Relatives.
        ("Rajesh Kumar", "RAJESH KUMAR S/O SURESH KUMAR", M),
        ("Priya Nair", "PRIYA NAIR W/O ANIL NAIR", M),
        ("Sunita", "SUNITA D/O MOHAN LAL", M),
        ("Sunita Mohan", "SUNITA D/O MOHAN", M),
        ("Suresh Kumar", "RAJESH KUMAR S/O SURESH KUMAR", X),
        // Joint holders.
        ("Rajesh Kumar", "RAJESH KUMAR AND PRIYA KUMAR", M),
        ("Priya Kumar", "RAJESH KUMAR/PRIYA KUMAR", M),
        ("Priya Sharma", "RAJESH & PRIYA SHARMA", M),
        ("Rajesh Kumar and Priya Kumar", "PRIYA KUMAR / RAJESH KUMAR", M),
        ("Anil Mehta", "RAJESH KUMAR AND PRIYA KUMAR", X),
        ("Ravi Rao/Uma Rao/Hari Rao/Sita Rao", "RAVI RAO/UMA RAO/HARI RAO/GITA RAO", X),
        ("Ravi Rao/Uma Rao/Hari Rao/Sita Rao", "RAVI RAO/UMA RAO/HARI RAO/SITA RAO", M),
        ("Ravi Rao/Uma Rao/Hari Rao/Sita Rao/Anil Dey", "RAVI RAO/UMA RAO/HARI RAO/SITA RAO", X),
        // The sixth person is not compared.
        (
            "Ravi Rao/Uma Rao/Hari Rao/Sita Rao/Gita Rao/Anil Dey",
            "RAVI RAO/UMA RAO/HARI RAO/SITA RAO/GITA RAO",
            P,
        ),
        // Cut by the bank's field.
        ("Venkata Subramanian Ramakrishnan", "VENKATA SUBRAMANIAN RAMAKR", M),
        ("Balasubramaniam Krishnamoorthy", "BALASUBRAMANIAM KRISH", M),
        ("Thiruvenkatachari Parthasarathy Iyengar", "THIRUVENKATACHARI PARTHAS", M),
        ("Anil Krish", "ANIL KRISHNAMOORTHY", X),
        // False friends.
        ("Rajesh Kumar", "RAKESH KUMAR", P),
        ("Suresh Patel", "RAMESH PATEL", X),
        ("Suresh Patel", "RAMESH SURESH PATEL", P),
        ("Suresh Patel", "PATEL RAMESH SURESHBHAI", P),
        ("Ramesh Suresh Patel", "SURESH RAMESH PATEL", M),
        ("Anil Sharma", "SUNIL SHARMA", X),
        ("Kumar", "RAJESH KUMAR", X),
        ("Sharma", "PRIYA SHARMA", X),
        ("Mohammed Khan", "MOHAMMED ALI", X),
        ("Mohammed Imran", "MOHAMMED IRFAN", X),
        ("Gurpreet Singh", "HARPREET SINGH", X),
        ("Gurpreet Singh", "GURPREET KAUR", X),
        ("Ravi Kumar", "RAVI KUMARI", P),
        ("Priya Sharma", "PRIYA VERMA", X),
        ("Rajesh Kumar Sharma", "RAJESH KUMAR VERMA", P),
        ("Anita Devi", "SUNITA DEVI", X),
        ("Rajesh Kumar", "RAJESH KUMAR HUF", P),
        ("Mina Rao", "MONA RAO", X),
        ("Rajesh Kumar", "ACME TRADING PRIVATE LIMITED", X),
        ("Ali Ahmed", "AHMED ALI", M),
        ("---", "RAJESH KUMAR", X),
        // Words with a meaning that are somebody's name.
        ("Huf", "HUF", M),
        ("Joint", "JOINT", M),
        // Nothing to compare with.
        ("Rajesh Kumar", "", U),
        ("Rajesh Kumar", " .-- ", U),
        ("Rajesh Kumar", "RAJ*** KU***", U),
        ("Rajesh Kumar", "RAJXXXX KUXXX", U),
        ("Rajesh Kumar", "राजेश कुमार", U),
    ];

    #[test]
    fn the_table_of_names_holds() {
        const { assert!(PAIRS.len() >= 60) };
        let wrong: Vec<String> = PAIRS
            .iter()
            .map(|(given, held, wanted)| {
                (given, held, wanted, compare(given, held, &NameThresholds::default()))
            })
            .filter(|(_, _, wanted, found)| **wanted != found.name_match)
            .map(|(given, held, wanted, found)| {
                format!("{given:?} / {held:?}: {found:?}, wanted {wanted:?}")
            })
            .collect();
        assert_eq!(wrong, Vec::<String>::new());
    }

    #[test]
    fn thresholds_are_in_order() {
        assert!(NameThresholds::default().checked().is_ok());
        assert!(NameThresholds { score_match: 0.5, score_partial: 0.6 }.checked().is_err());
        assert!(NameThresholds { score_match: 1.5, score_partial: 0.6 }.checked().is_err());
        assert!(NameThresholds { score_match: f64::NAN, score_partial: 0.6 }.checked().is_err());
        let strict = NameThresholds { score_match: 0.99, score_partial: 0.90 };
        assert_eq!(compare("Rajesh Sharma", "RAJESH KUMAR SHARMA", &strict).name_match, X);
    }

    #[test]
    fn no_setting_lets_what_may_match_only_in_part_match() {
        let six = "Ravi Rao/Uma Rao/Hari Rao/Sita Rao/Gita Rao/Anil Dey";
        let five = "RAVI RAO/UMA RAO/HARI RAO/SITA RAO/GITA RAO";
        for score_match in [0.01, 0.60, 0.70, 0.85, 1.0] {
            let thresholds = NameThresholds { score_match, score_partial: 0.01 };
            for (given, held) in [("Rajesh Kumar", "RAJESH KUMAR HUF"), (six, five)] {
                let found = compare(given, held, &thresholds);
                assert_ne!(found.name_match, M, "{held} from {score_match}: {found:?}");
                assert!(found.score <= 0.70, "{held} from {score_match}: {found:?}");
            }
            assert_eq!(compare("Rajesh Kumar", "RAJESH KUMAR", &thresholds).name_match, M);
        }
    }

    /// A name of one or two words. None is a title, and the name is too short to have been cut.
    fn name() -> impl Strategy<Value = String> {
        let word = prop_oneof![
            Just("ramesh"),
            Just("suresh"),
            Just("kumar"),
            Just("anil"),
            Just("k"),
            Just("md"),
            Just("lakshmi"),
            Just("laxmi")
        ];
        prop::collection::vec(word, 1..3).prop_map(|words| words.join(" "))
    }

    /// A word that is a name and nothing else: no title, no relation, no initials, and no mask.
    fn plain_word() -> impl Strategy<Value = String> {
        "[A-Z][a-z]{2,9}".prop_filter("a word with a meaning", |word| {
            let word = word.to_lowercase();
            let meanings = ["and", "huf", "hindu", "undivided", "family"];
            let has_meaning = [HONORIFICS, ADDED, RELATIONS, &meanings]
                .iter()
                .any(|list| list.contains(&word.as_str()));
            !has_meaning && word.chars().any(is_vowel) && !word.contains("xxx")
        })
    }

    proptest! {
        #[test]
        fn nothing_panics_and_scores_are_bounded(given in ".{0,80}", held in ".{0,80}") {
            let found = compare(&given, &held, &NameThresholds::default());
            prop_assert!((0.0..=1.0).contains(&found.score));
        }
        #[test]
        fn names_of_indian_shape_never_panic(given in "[A-Z]{0,9}[ ./&']{0,2}[A-Z]{0,30}( S/O \
         [A-Z ]{0,9})?", held in "[A-Z]{0,9}[ ./&']{0,2}[A-Z]{0,30}( AND [A-Z ]{0,9})?") {
            compare(&given, &held, &NameThresholds::default());
        }
        #[test]
        fn case_and_spaces_do_not_count(given in name(), held in name()) {
            let loud = format!("  {} ", held.to_uppercase().replace(' ', "   "));
            let score = |given: &str, held: &str| {
                similarity(given, held, &NameThresholds::default())
            };
            prop_assert_eq!(score(&given, &held), score(&given, &loud));
            prop_assert_eq!(score(&given, &held), score(&given.to_uppercase(), &held));
        }
        #[test]
        fn short_names_compare_the_same_from_both_sides(given in name(), held in name()) {
            prop_assume!(given.len() < FIELD_CHARACTERS_MIN && held.len() < FIELD_CHARACTERS_MIN);
            let thresholds = NameThresholds::default();
            prop_assert_eq!(similarity(&given, &held, &thresholds),
                similarity(&held, &given, &thresholds));
        }
        #[test]
        fn a_name_matches_itself(name in "[A-Z][a-z]{2,9}( [A-Z][a-z]{2,9}){0,2}") {
            let wanted = if name.to_lowercase().contains("xxx") { U } else { M };
            prop_assert_eq!(compare(&name, &name, &NameThresholds::default()).name_match, wanted);
        }
        #[test]
        fn a_name_matches_itself_in_another_order_and_with_a_title(
            words in prop::collection::vec(plain_word(), 1..4),
        ) {
            let held = format!("MRS. {}",
                words.iter().rev().map(|word| word.to_uppercase()).collect::<Vec<_>>().join(" "));
            prop_assert_eq!(compare(&words.join(" "), &held, &NameThresholds::default()).name_match,
                M);
        }
    }
}
