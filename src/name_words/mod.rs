//! The words of persons' names, so that the operator finds a person by the beginning of any of
//! them.
//!
//! A word is stored when a person is created or renamed, and is never removed, so a search also
//! compares with the current name. A worker adds, once, the words of names that were stored before
//! the table `name_words` existed, or under an earlier rule of what a word is.

pub mod rows;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::kernel::{AnyId, Scope, StoreError};
use crate::store::Tx;

/// The most words of one text that are kept, and the most characters of one word.
const WORDS_MAX: usize = 12;
const WORD_CHARACTERS_MAX: usize = 40;

/// Signs within names such as O'Brien: the apostrophe, and what is typed for one.
const APOSTROPHES: [char; 7] = ['\'', '`', '\u{b4}', '\u{2bc}', '\u{2018}', '\u{2019}', '\u{2032}'];
/// Invisible signs: the soft hyphen, and joiners, which only say how their neighbours are drawn.
const INVISIBLE: [char; 3] = ['\u{ad}', '\u{200c}', '\u{200d}'];

/// A text without differences that do not count: case, invisible signs, other forms of a sign (such
/// as full-width letters), and the dot of a Turkish capital I. Each apostrophe is the ASCII one.
fn folded(text: &str) -> String {
    // This comes before NFKC, which would turn U+00B4 into a space with an accent.
    let plain = text.replace(APOSTROPHES, "'").replace(INVISIBLE, "");
    let lower: String = plain.nfkc().flat_map(char::to_lowercase).collect();
    lower.replace("i\u{307}", "i")
}

fn is_separator(character: char) -> bool {
    !character.is_alphanumeric() && !is_combining_mark(character)
}

/// The words of a name without case and punctuation, each once. A word with an apostrophe gives its
/// parts and the whole: O'Brien is `o`, `brien` and `obrien`.
pub fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for outer in folded(name).split(|letter: char| letter != '\'' && is_separator(letter)) {
        let parts = outer.split('\'').map(str::to_owned);
        let whole = outer.replace('\'', "");
        for word in parts.chain(std::iter::once(whole)).filter(|word| !word.is_empty()) {
            keep_word(&mut words, &word);
        }
    }
    words
}

/// The words of a text that is searched for. A word with an apostrophe gives only its parts:
/// O'Brien is `o` and `brien`.
pub fn asked_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in folded(text).split(is_separator).filter(|word| !word.is_empty()) {
        keep_word(&mut words, word);
    }
    words
}

fn keep_word(words: &mut Vec<String>, word: &str) {
    let word: String = word.chars().take(WORD_CHARACTERS_MAX).collect();
    if words.len() < WORDS_MAX && !words.contains(&word) {
        words.push(word);
    }
}

/// Whether each of the searched words begins a word of the name.
pub fn matches(name: &str, asked: &[String]) -> bool {
    let known = words(name);
    asked.iter().all(|asked| known.iter().any(|word| word.starts_with(asked.as_str())))
}

/// Stores the words of a new person's name.
pub fn keep(tx: &mut dyn Tx, scope: Scope, id: AnyId, name: &str) -> Result<(), StoreError> {
    rows::insert(tx, scope, id, &words(name))
}

/// Stores the words of a name in addition to those that the person already has.
pub fn keep_more(tx: &mut dyn Tx, scope: Scope, id: AnyId, name: &str) -> Result<(), StoreError> {
    rows::add(tx, scope, id, &words(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_by_the_beginning_of_each_word_whatever_its_case() {
        assert_eq!(words("  Anil KUMAR-Nair, Anil "), ["anil", "kumar", "nair"]);
        assert!(matches("Anil Kumar Nair", &asked_words("NAI ani")));
        assert!(!matches("Anil Kumar Nair", &asked_words("umar")));
        assert!(!matches("Anil Kumar", &asked_words("anil s")));
        assert!(matches("प्रिया शर्मा", &asked_words("शर्")));
        // The full-width and the ordinary form are one word.
        assert!(matches("Ａｎｉｌ", &asked_words("anil")));
    }

    #[test]
    fn an_apostrophe_or_a_hyphen_of_any_kind_separates_words() {
        for name in ["Al O'Brien", "Al O’Brien", "Al O‘Brien", "Al Oʼbrien", "AL O´BRIEN"] {
            assert_eq!(words(name), ["al", "o", "brien", "obrien"], "{name}");
            for asked in ["obrien", "brien", "o'brien", "O’BRIEN a", "o brien"] {
                assert!(matches(name, &asked_words(asked)), "{asked} in {name}");
            }
        }
        assert!(matches("O Brien", &asked_words("o'brien")));
        for name in ["Jean-Luc", "Jean‐Luc", "Jean‑Luc", "Jean–Luc", "Jean·Luc"] {
            assert!(matches(name, &asked_words("luc")), "{name}");
        }
        // Marks of Indian scripts are part of their words, and joiners make no difference.
        assert_eq!(words("प्रिया श\u{94d}\u{200d}रमा"), words("प्रिया श\u{94d}रमा"));
        assert_eq!(words("प्रिया शर्मा").len(), 2);
    }

    #[test]
    fn a_capital_i_with_a_dot_is_an_i() {
        assert_eq!(words("İsmail İnan"), ["ismail", "inan"]);
        assert!(matches("İsmail", &asked_words("isma")) && matches("Ismail", &asked_words("İS")));
    }

    #[test]
    fn a_long_name_is_cut() {
        let long = "x".repeat(140);
        assert_eq!(words(&long)[0].chars().count(), WORD_CHARACTERS_MAX);
        let many: String = (0..30).map(|number| format!("word{number} ")).collect();
        assert_eq!(words(&many).len(), WORDS_MAX);
    }
}
