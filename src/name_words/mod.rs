//! The words of persons' names, so that the operator finds a person by the beginning of one.
//!
//! A word is stored when a person is created or renamed, and is never removed, so a search also
//! compares with the current name. A worker once adds the words of names that are older than this
//! table.

pub mod rows;

use unicode_normalization::UnicodeNormalization;

use crate::kernel::{AnyId, Scope, StoreError};
use crate::store::Tx;

/// The most words of one name that are kept, and the most characters of one word.
const WORDS_MAX: usize = 12;
const WORD_CHARACTERS_MAX: usize = 40;

/// The words of a name without case and punctuation, each once.
pub fn words(name: &str) -> Vec<String> {
    let folded: String = name.nfkc().flat_map(char::to_lowercase).collect();
    let mut words: Vec<String> = Vec::new();
    let is_between = |letter: char| letter.is_whitespace() || letter.is_ascii_punctuation();
    for word in folded.split(is_between).filter(|word| !word.is_empty()) {
        let word: String = word.chars().take(WORD_CHARACTERS_MAX).collect();
        if words.len() < WORDS_MAX && !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

/// Whether each of the searched words begins a word of the name.
pub fn matches(name: &str, asked: &[String]) -> bool {
    let known = words(name);
    asked.iter().all(|asked| known.iter().any(|word| word.starts_with(asked.as_str())))
}

/// Keeps the words of a new person's name.
pub fn keep(tx: &mut dyn Tx, scope: Scope, id: AnyId, name: &str) -> Result<(), StoreError> {
    rows::insert(tx, scope, id, &words(name))
}

/// Keeps the words of a name beside those that are kept.
pub fn keep_more(tx: &mut dyn Tx, scope: Scope, id: AnyId, name: &str) -> Result<(), StoreError> {
    rows::add(tx, scope, id, &words(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_by_the_beginning_of_each_word_whatever_its_case() {
        assert_eq!(words("  Anil KUMAR-Nair, Anil "), ["anil", "kumar", "nair"]);
        assert!(matches("Anil Kumar Nair", &words("NAI ani")));
        assert!(!matches("Anil Kumar Nair", &words("umar")));
        assert!(!matches("Anil Kumar", &words("anil s")));
        assert!(matches("प्रिया शर्मा", &words("शर्")));
        // The full-width and the ordinary form are one word.
        assert!(matches("Ａｎｉｌ", &words("anil")));
    }

    #[test]
    fn a_long_name_is_cut() {
        let long = "x".repeat(140);
        assert_eq!(words(&long)[0].chars().count(), WORD_CHARACTERS_MAX);
        let many: String = (0..30).map(|number| format!("word{number} ")).collect();
        assert_eq!(words(&many).len(), WORDS_MAX);
    }
}
