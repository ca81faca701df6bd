//! Splits a name, as a bank or a caller writes it, into its holders, and each holder's name into
//! words. Titles and relatives are kept apart from the name, and joined initials are split.

use crate::screening::text::{normalise, replace_mark};

/// A holder's name with more words than this does not count as compared in full.
const WORDS_MAX: usize = 16;
/// A name with more holders than this does not count as compared in full.
const HOLDERS_MAX: usize = 4;

pub(super) const HONORIFICS: &[&str] = &[
    "mr", "mrs", "ms", "miss", "mx", "dr", "prof", "shri", "shree", "sri", "shrimati", "smt",
    "sow", "selvi", "thiru", "tmt", "kum", "kumari", "master", "late", "capt", "col", "maj", "er",
    "adv", "ca", "haji", "hajji", "syed", "sardar", "baby", "messrs",
];
/// Words before a relative's or guardian's name.
pub(super) const RELATIONS: &[&str] = &[
    "s/o",
    "d/o",
    "w/o",
    "c/o",
    "h/o",
    "f/o",
    "u/g",
    "son of",
    "daughter of",
    "wife of",
    "husband of",
    "care of",
    "guardian",
];
/// Words that banks add to a name and that name nobody.
pub(super) const ADDED: &[&str] = &["nre", "nro", "sb", "joint", "ors"];
/// Short forms and spellings, each with the word that stands for them.
const SHORT_FORMS: &[(&str, &str)] = &[
    ("md", "mohammed"),
    ("mohd", "mohammed"),
    ("mohmd", "mohammed"),
    ("muhd", "mohammed"),
    ("mhd", "mohammed"),
    ("mohamad", "mohammed"),
    ("mohamed", "mohammed"),
    ("muhammed", "mohammed"),
    ("muhammad", "mohammed"),
    ("mohammad", "mohammed"),
    ("kr", "kumar"),
    ("ch", "chandra"),
    ("sk", "sheikh"),
    ("shaikh", "sheikh"),
    ("shaik", "sheikh"),
    ("abd", "abdul"),
    ("pd", "prasad"),
    ("pvt", "private"),
];

/// One holder's name.
#[derive(Clone, Debug)]
pub(super) struct Person {
    pub(super) words: Vec<String>,
    /// Like `words`, but titles and words such as "huf" are still in it, and no surname of another
    /// holder was added. Titles are here because "Sri" may be the beginning of a name that the
    /// other side writes as one word, Sriram.
    pub(super) titled: Vec<String>,
    /// Words of a relative's or guardian's name. The other side may have them in the name, or leave
    /// them out.
    pub(super) relatives: Vec<String>,
    /// The holder is a Hindu undivided family (HUF), which is another account holder than its head.
    pub(super) is_family: bool,
}

/// The holders in a name such as "A AND B", "A/B" or "A & B".
pub(super) fn persons(name: &str) -> Vec<Person> {
    let mut text =
        format!(" {} ", name.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" "));
    text = replace_mark(&text, "a/c", ADDED, " ");
    text = replace_mark(&text, "m/s", &[], " ");
    // The control character U+0001 stands for a relation; the relative's name follows it.
    for relation in RELATIONS {
        // As whole words, perhaps with a dot or colon behind: " s/o ", " s/o.", " s/o:".
        text = text
            .replace(&format!(" {relation} "), " \u{1} ")
            .replace(&format!(" {relation}."), " \u{1} ")
            .replace(&format!(" {relation}:"), " \u{1} ");
    }
    let text = text.replace(" and ", "/").replace(" or ", "/").replace(['&', ';', '+'], "/");
    let mut found: Vec<Person> = text
        .split('/')
        .map(person)
        .filter(|person| !person.words.is_empty())
        // One more than `HOLDERS_MAX`, so that `are_compared_in_full` sees that there are too many.
        .take(HOLDERS_MAX + 1)
        .collect();
    // In "PRIYA AND RAJESH SHARMA" both have the surname, so a name of one word gets the first
    // surname of the others.
    let surname = found
        .iter()
        .filter(|person| person.words.len() > 1)
        .find_map(|person| person.words.last().cloned());
    if let (true, Some(surname)) = (found.len() > 1, surname) {
        for person in found.iter_mut().filter(|person| person.words.len() == 1) {
            person.words.push(surname.clone());
        }
    }
    found
}

/// Whether a name counts as compared in full: it has at most `HOLDERS_MAX` holders, and none of
/// their names has more than `WORDS_MAX` words, titles included.
pub(super) fn are_compared_in_full(persons: &[Person]) -> bool {
    persons.len() <= HOLDERS_MAX && persons.iter().all(|person| person.titled.len() <= WORDS_MAX)
}

fn person(text: &str) -> Person {
    let (name, relatives) = text.split_once('\u{1}').unwrap_or((text, ""));
    let (words, titled, relatives) = (words(name), words_from(name, false), words(relatives));
    let is_family =
        words.iter().any(|word| word == "huf") || normalise(name).contains("undivided family");
    let words = words
        .into_iter()
        .filter(|word| !matches!(word.as_str(), "huf" | "hindu" | "undivided" | "family"))
        .collect();
    Person { words, titled, relatives, is_family }
}

/// The words of one name, without honorifics in front and without the words in `ADDED`. Initials
/// written as one word ("RK") are split, and short forms are written out.
fn words(name: &str) -> Vec<String> {
    words_from(name, true)
}

fn words_from(name: &str, leaves_titles_out: bool) -> Vec<String> {
    // An apostrophe joins: D'Souza is one word.
    let plain = normalise(&name.replace(['\'', '’', '`'], ""));
    let all: Vec<&str> =
        plain.split(' ').filter(|word| !word.is_empty() && !ADDED.contains(word)).collect();
    let honorifics = if leaves_titles_out {
        all.iter().take_while(|word| HONORIFICS.contains(word)).count()
    } else {
        0
    };
    // If all words are honorifics, the last one counts as the name: Kumari, Sri.
    let kept = all
        .get(honorifics..)
        .filter(|rest| !rest.is_empty())
        .or_else(|| all.get(honorifics.saturating_sub(1)..))
        .unwrap_or_default();
    let mut words: Vec<String> = Vec::new();
    for word in kept {
        // One letter repeated, such as "mm" or "kkk", is not taken for initials.
        let is_one_letter_repeated =
            word.bytes().all(|byte| word.as_bytes().first() == Some(&byte));
        let is_initials = !is_one_letter_repeated
            && (2..=3).contains(&word.len())
            && word.bytes().all(|byte| byte.is_ascii_lowercase() && !b"aeiouy".contains(&byte));
        match SHORT_FORMS.iter().find(|(short, _)| short == word) {
            Some((_, long)) => words.push((*long).to_owned()),
            None if is_initials => words.extend(word.chars().map(String::from)),
            None => words.push((*word).to_owned()),
        }
    }
    // One more than `WORDS_MAX`, for the same reason as with the holders.
    words.truncate(WORDS_MAX + 1);
    words
}
