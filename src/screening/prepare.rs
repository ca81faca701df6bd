//! What a given name may mean: the names that are compared with the lists.
//!
//! Banks and callers write more than a name into a name: joint holders, relatives ("S/o"), kinds of
//! account, forms of address, hyphens and spaces in unusual places. Each way to read the text is
//! one *reading*, and every reading is compared.

use super::EntryKind;
use super::common_names::HONORIFICS;
use super::text;

/// The most persons of one text that are compared one by one. Further ones are compared only as
/// part of the whole text.
pub const PERSONS_MAX: usize = 8;

/// A name with more words of a single letter than this is not compared as one name: listed names
/// are only searched within it.
const SINGLE_LETTERS_MAX: usize = 4;

/// One way to read a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    pub words: Vec<String>,
    /// The words may name several persons, or have many single letters: they are not compared as
    /// one name, and listed names are only searched within them.
    pub is_searched_within: bool,
}

/// The ways to read a name.
pub struct Readings {
    /// The plain one first. Never empty: a name without letters and digits has one reading without
    /// words.
    pub all: Vec<Reading>,
    /// The text names more persons than `PERSONS_MAX`.
    pub has_more_persons: bool,
}

/// Words that separate joint holders and relatives, in lower case. [`persons`] takes `-`, `:` and
/// `,` off both ends of a word before it looks here. Marks such as `&` separate too.
const SEPARATORS: &[&str] = &[
    "or",
    "and",
    "s/o",
    "d/o",
    "w/o",
    "c/o",
    "h/o",
    "f/o",
    "m/o",
    "b/o",
    "u/g",
    "s.o",
    "d.o",
    "w.o",
    "c.o",
    "s/o.",
    "d/o.",
    "w/o.",
    "c/o.",
    "s.o.",
    "d.o.",
    "w.o.",
    "c.o.",
    "alias",
    "aka",
    "a.k.a",
    "a.k.a.",
    "jt",
    "jointly",
    "urf",
    "minor",
    "guardian",
    "nominee",
    "and/or",
    "son-of",
    "daughter-of",
    "wife-of",
];
/// Words that separate only between other words; in front or at the end each may be a name.
const SEPARATORS_BETWEEN: &[&str] =
    &["so", "do", "wo", "co", "s/0", "d/0", "w/0", "c/0", "with", "along"];
/// Separators of more than one word.
const LONG_SEPARATORS: &[&str] = &[
    "son of",
    "daughter of",
    "wife of",
    "husband of",
    "care of",
    "father of",
    "mother of",
    "brother of",
    "through guardian",
    "either or survivor",
    "anyone or survivor",
    "s / o",
    "d / o",
    "w / o",
    "c / o",
    "s /o",
    "d /o",
    "w /o",
    "c /o",
    "s/ o",
    "d/ o",
    "w/ o",
    "c/ o",
];
/// Words that banks add to a name and that are no names: kinds of account and of holder, "retired",
/// "deceased".
const ACCOUNT_WORDS: &[&str] = &[
    "nre",
    "nro",
    "fcnr",
    "sb",
    "ca",
    "od",
    "ac",
    "acc",
    "acct",
    "account",
    "accounts",
    "savings",
    "saving",
    "current",
    "joint",
    "ors",
    "others",
    "huf",
    "survivor",
    "either",
    "jt",
    "no",
    "number",
    "bank",
    "prop",
    "proprietor",
    "karta",
    "deceased",
    "retd",
    "retired",
    "nri",
    "rfc",
    "pis",
    "sav",
    "inr",
    "nresb",
    "external",
    "resident",
];
/// Words of respect that follow a name: one more reading leaves them out. `common_names.rs` has the
/// forms of address in front of a name; `text.rs` has those of them that every reading leaves out.
const RESPECT_AFTER: &[&str] = &[
    "ji", "jee", "bhai", "ben", "sahib", "saheb", "sahab", "saab", "sab", "sb", "esq", "esquire",
    "garu", "amma", "anna", "dada", "didi", "mian", "miyan",
];

/// Whether a text has characters that override the direction of writing, so that it shows in
/// another order than it is stored.
pub fn has_bidi_override(text: &str) -> bool {
    text.chars().any(|letter| matches!(letter, '\u{202d}' | '\u{202e}'))
}

/// The readings of a person's name, which may be any text.
pub fn readings(name: &str) -> Readings {
    let mut found: Vec<Reading> = Vec::new();
    let mut has_more_persons = false;
    let mut add = |words: Vec<String>, is_searched_within: bool| {
        let is_known = found.iter().any(|reading| reading.words == words);
        let single_letters = words.iter().filter(|word| word.chars().nth(1).is_none()).count();
        let is_searched_within = is_searched_within || single_letters > SINGLE_LETTERS_MAX;
        if !words.is_empty() && !is_known {
            found.push(Reading { words, is_searched_within });
        }
    };
    for text in texts(&text::plain(name)) {
        let plain = text::tokens(&text, EntryKind::Individual);
        let mut persons = persons(&text);
        has_more_persons |= persons.len() > PERSONS_MAX;
        persons.truncate(PERSONS_MAX);
        add(plain, persons.len() > 1);
        for person in &persons {
            for words in variants(person) {
                add(words, false);
            }
        }
        if persons.len() > 1 {
            for words in variants(&text) {
                add(words, true);
            }
        }
    }
    if found.is_empty() {
        found.push(Reading { words: Vec::new(), is_searched_within: false });
    }
    Readings { all: found, has_more_persons }
}

/// The text, and also the text with `;` in place of each of [`SEPARATORS_BETWEEN`] that stands
/// between other words, if there is one.
fn texts(name: &str) -> Vec<String> {
    let mut texts = vec![name.to_owned()];
    let words: Vec<&str> = name.split_whitespace().collect();
    let is_separator = |(place, word): (usize, &&str)| {
        let is_between = place > 0 && place + 1 < words.len();
        is_between && SEPARATORS_BETWEEN.contains(&word.to_lowercase().as_str())
    };
    if words.iter().enumerate().any(is_separator) {
        let parted = words.iter().enumerate().map(|at| if is_separator(at) { ";" } else { at.1 });
        texts.push(parted.collect::<Vec<_>>().join(" "));
    }
    texts
}

/// Whether a word numbers the holders: "1.", "2)".
fn is_holder_number(word: &str) -> bool {
    let digits = word.trim_end_matches(['.', ')', ':']);
    (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The persons that a text names: the parts between the separators. A person of one word gets the
/// last word of the last person who has at least two: "Priya and Rajesh Sharma".
fn persons(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let mut spaced = format!(" {} ", lower.split_whitespace().collect::<Vec<_>>().join(" "));
    for separator in LONG_SEPARATORS {
        if spaced.contains(separator) {
            spaced = spaced.replace(&format!(" {separator} "), " ; ");
        }
    }
    spaced = spaced.replace('\\', "/");
    let marks = ['&', '+', ';', '(', ')', '[', ']', '|', '\u{2022}', '\u{b7}', '<', '>'];
    spaced = spaced.replace(" &/or ", " ; ").replace(marks, " ; ");
    let mut parts: Vec<Vec<&str>> = vec![Vec::new()];
    for word in spaced.split_whitespace() {
        let bare = word.trim_matches(['-', ':', ',']);
        if word == ";" || SEPARATORS.contains(&bare) || is_holder_number(word) {
            parts.push(Vec::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(word);
        }
    }
    // Separators such as "s/o" are gone by now, so any slash that is left separates holders: "A/B".
    let mut persons: Vec<String> = parts
        .into_iter()
        .flat_map(|part| {
            let part = text::replace_mark(&part.join(" "), "a/c", ACCOUNT_WORDS, " account ");
            part.split('/').map(str::to_owned).collect::<Vec<_>>()
        })
        .filter(|person| person.chars().any(char::is_alphabetic))
        .collect();
    let surname = persons
        .iter()
        .filter_map(|person| person.split_whitespace().nth(1).and(person.split_whitespace().last()))
        .next_back()
        .map(str::to_owned);
    if let (true, Some(surname)) = (persons.len() > 1, surname) {
        for person in &mut persons {
            if person.split_whitespace().nth(1).is_none() {
                *person = format!("{person} {surname}");
            }
        }
    }
    persons
}

/// The ways to take a text apart into words: one person's name, or the whole text.
fn variants(text: &str) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    let mut add = |variant: &str| {
        let words = text::tokens(variant, EntryKind::Individual);
        let cleaned = without_additions(&words);
        all.push(joined_letters(&cleaned));
        all.push(without_honorifics(&cleaned));
        all.push(cleaned);
        if let Some(words) = digits_as_letters(&words) {
            all.push(words);
        }
    };
    add(text);
    let unmarked = without_inner_marks(text);
    if unmarked != text {
        add(&unmarked);
    }
    all
}

/// The words without numbers and words of accounts; all of them if nothing would be left.
fn without_additions(words: &[String]) -> Vec<String> {
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let kept: Vec<String> = words
        .iter()
        .filter(|word| !is_number(word) && !ACCOUNT_WORDS.contains(&word.as_str()))
        .cloned()
        .collect();
    // "a c": an account that was written with a mark between.
    let kept: Vec<String> = match kept.as_slice() {
        [rest @ .., a, c] if a == "a" && c == "c" && !rest.is_empty() => rest.to_vec(),
        _ => kept,
    };
    if kept.is_empty() { words.to_vec() } else { kept }
}

/// The words without forms of address in front and words of respect at the end; all of them if
/// nothing would be left.
fn without_honorifics(words: &[String]) -> Vec<String> {
    let front = words.iter().take_while(|word| HONORIFICS.contains(&word.as_str())).count();
    let is_respect = |word: &&String| RESPECT_AFTER.contains(&word.as_str());
    let back = words.iter().rev().take_while(is_respect).count();
    match words.get(front..words.len().saturating_sub(back)) {
        Some(rest) if !rest.is_empty() => rest.to_vec(),
        _ => words.to_vec(),
    }
}

/// The words, but each run of three or more single letters is one word: "m a s o o d" becomes
/// "masood".
fn joined_letters(words: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut run = String::new();
    let close = |run: &mut String, out: &mut Vec<String>| {
        if run.chars().count() >= 3 {
            out.push(std::mem::take(run));
        } else {
            out.extend(run.drain(..).map(String::from));
        }
    };
    for word in words {
        if word.chars().nth(1).is_none() {
            run.push_str(word);
        } else {
            close(&mut run, &mut out);
            out.push(word.clone());
        }
    }
    close(&mut run, &mut out);
    out
}

/// The text with the marks inside words left out, except commas: "mas-ood" becomes "masood".
fn without_inner_marks(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let is_letter = |place: Option<usize>| {
        place.and_then(|place| letters.get(place)).is_some_and(|letter| letter.is_alphanumeric())
    };
    letters
        .iter()
        .enumerate()
        .filter(|(place, letter)| {
            letter.is_alphanumeric()
                || letter.is_whitespace()
                || **letter == ','
                || !is_letter(place.checked_sub(1))
                || !is_letter(Some(place + 1))
        })
        .map(|(_, letter)| *letter)
        .collect()
}

/// The words with digits replaced by letters of the same shape, in words that have digits and
/// letters. `None` if there is no such word.
fn digits_as_letters(words: &[String]) -> Option<Vec<String>> {
    let is_mixed = |word: &String| {
        word.bytes().any(|byte| byte.is_ascii_digit())
            && word.bytes().any(|byte| byte.is_ascii_lowercase())
    };
    words.iter().any(is_mixed).then(|| {
        let letter = |letter: char| match letter {
            '0' => 'o',
            '1' => 'i',
            '3' => 'e',
            '4' => 'a',
            '5' => 's',
            '7' => 't',
            '8' => 'b',
            other => other,
        };
        words
            .iter()
            .map(|word| match is_mixed(word) {
                true => word.chars().map(letter).collect(),
                false => word.clone(),
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(name: &str, words: &str) -> bool {
        readings(name).all.iter().any(|reading| reading.words.join(" ") == words)
    }

    #[test]
    fn every_way_to_read_a_name_is_tried() {
        for (name, wanted) in [
            ("Masood Azhar", "masood azhar"),
            ("Masood Azhar S/o Allah Bakhsh", "masood azhar"),
            ("Masood Azhar S/o Allah Bakhsh", "allah bakhsh"),
            ("MASOOD AZHAR S/O. ALLAH BAKHSH", "masood azhar"),
            ("Masood Azhar son of Allah Bakhsh", "masood azhar"),
            ("Masood Azhar OR Asha Rao", "masood azhar"),
            ("Asha Rao & Masood Azhar", "masood azhar"),
            ("Asha Rao/Masood Azhar", "masood azhar"),
            ("Asha and Masood Azhar", "asha azhar"),
            ("Masood Azhar NRE A/C", "masood azhar"),
            ("Masood Azhar - NRE SB 50100012345678", "masood azhar"),
            ("Masood Azhar (NRE)", "masood azhar"),
            ("Maulana Haji Masood Azhar", "masood azhar"),
            ("Masood Azhar Sahib", "masood azhar"),
            ("Masood Azhar (Deceased)", "masood azhar"),
            ("1. Asha Rao 2. Masood Azhar", "masood azhar"),
            ("Asha Rao | Masood Azhar", "masood azhar"),
            ("Masood Azhar AND/OR Asha Rao", "masood azhar"),
            ("Masood Azhar SO Allah Bakhsh", "masood azhar"),
            ("Masood Azhar S\\O Allah Bakhsh", "masood azhar"),
            ("Masood Azhar with Asha Rao", "masood azhar"),
            ("Masood Azhar S/o- Allah Bakhsh", "masood azhar"),
            ("Masood Azhar -OR- Asha Rao", "masood azhar"),
            ("Masood Azhar NRI NRE SAV", "masood azhar"),
            ("Asha Gupta/Chand Khan", "asha gupta"),
            ("Asha Gupta/Chand Khan", "chand khan"),
            ("Rama/C. Khan", "c khan"),
            ("Masood Azhar A/C", "masood azhar"),
            ("Masood Azhar NREA/C", "masood azhar"),
            ("A/c. Masood Azhar/Asha Rao", "masood azhar"),
            ("Mas-ood Az'har", "masood azhar"),
            ("M A S O O D  A Z H A R", "masoodazhar"),
            ("Mas00d Azhar", "masood azhar"),
            ("Masood Azhar S\u{2044}o Allah Bakhsh", "masood azhar"),
            ("Masood Azhar Ｓ／Ｏ Allah Bakhsh", "masood azhar"),
            ("Mas\u{2bc}ood Az\u{b4}har", "masood azhar"),
            ("Mas\u{2066}ood Az\u{e0061}har", "masood azhar"),
            ("A P J Abdul Kalam", "apj abdul kalam"),
            ("Kumari", "kumari"),
        ] {
            assert!(has(name, wanted), "{name}: {:?}", readings(name).all);
        }
    }

    #[test]
    fn every_text_has_a_reading_and_a_plain_name_has_only_one() {
        assert_eq!(readings("Asha Rao").all.len(), 1);
        assert_eq!(readings("***").all, [Reading { words: Vec::new(), is_searched_within: false }]);
        assert_eq!(readings("NRE").all[0].words, ["nre"]);
        // The most readings that a text can have: for each of its two `texts`, the plain one, and
        // eight of each person and of the whole.
        let most = 2 * (1 + 8 * (PERSONS_MAX + 1));
        let many = |count: usize| {
            let one = |at: usize| format!("Mr. A{at}-b C. D. E. Ra0-o Ji");
            let persons: Vec<String> = (0..count).map(one).collect();
            readings(&format!("{} so X-y", persons.join(" or ")))
        };
        for (count, has_more_persons) in [(7, false), (8, true), (100, true)] {
            let readings = many(count);
            assert!(readings.all.len() <= most, "{count}: {}", readings.all.len());
            assert_eq!(readings.has_more_persons, has_more_persons, "{count}");
        }
    }
}
