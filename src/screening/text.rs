//! Names as they are compared: lower case, no marks, no punctuation, split into tokens, titles and
//! stop words left out.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::EntryKind;

/// The most bytes of a token that are compared; a longer one is compared by its beginning.
pub const TOKEN_BYTES_MAX: usize = 128;

/// Forms of address that say nothing about who a person is. They are left out in front of a name.
/// `common_names.rs` has more of them, which weigh little; `prepare.rs` has those behind a name.
const TITLES: &[&str] =
    &["mr", "mrs", "ms", "miss", "mx", "dr", "prof", "shri", "shree", "shrimati", "smt"];
/// Words that do not distinguish businesses.
const STOP_WORDS: &[&str] = &[
    "a",
    "an",
    "and",
    "of",
    "the",
    "for",
    "co",
    "company",
    "corp",
    "corporation",
    "gmbh",
    "inc",
    "incorporated",
    "limited",
    "llc",
    "llp",
    "ltd",
    "plc",
    "private",
    "pvt",
    "pty",
    "sa",
];

/// Letters that Unicode does not decompose and that lists and banks write in ASCII.
const fn folded(letter: char) -> Option<&'static str> {
    Some(match letter {
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ı' => "i",
        'þ' => "th",
        'ħ' => "h",
        _ => return None,
    })
}

/// Whether a character is invisible (Unicode's Default_Ignorable_Code_Point). Such a character must
/// not split or hide a name.
const fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// The keyboard's character for a sign that Unicode has in several forms.
const fn simple(letter: char) -> char {
    match letter {
        // Unicode counts some of these as letters, or decomposes them into a space and a mark.
        '`'
        | '\u{b4}'
        | '\u{2b9}'..='\u{2bf}'
        | '\u{2c8}'
        | '\u{2ca}'
        | '\u{2cb}'
        | '\u{2018}'
        | '\u{2019}'
        | '\u{201a}'
        | '\u{201b}'
        | '\u{2032}'
        | '\u{2035}'
        | '\u{ff40}' => '\'',
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{2043}' | '\u{2e3a}' | '\u{2e3b}' => '-',
        '\u{2044}' | '\u{2215}' | '\u{29f8}' | '\u{2571}' => '/',
        other => other,
    }
}

/// The text in plain characters: full-width and ornamental letters, dashes, slashes and apostrophes
/// become those of a keyboard; combining marks and invisible characters are removed.
pub fn plain(name: &str) -> String {
    plain_letters(name).collect()
}

fn plain_letters(name: &str) -> impl Iterator<Item = char> {
    let shown = |letter: &char| !is_combining_mark(*letter) && !is_invisible(*letter);
    name.chars().filter(|letter| !is_invisible(*letter)).map(simple).nfkd().filter(shown)
}

/// Lower case without marks; punctuation, symbols and white space become single spaces.
pub fn normalise(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for letter in plain_letters(name).flat_map(char::to_lowercase) {
        // The lower case of a letter can have a mark of its own.
        if is_combining_mark(letter) {
            continue;
        }
        match folded(letter) {
            Some(text) => out.push_str(text),
            None if letter.is_alphanumeric() => out.push(letter),
            None if out.is_empty() || out.ends_with(' ') => {}
            None => out.push(' '),
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Replaces each `mark`, such as "a/c", with `by` if it stands alone or directly follows one of
/// `words`: "nre a/c", "nrea/c". Within other words it stays: "gupta/chand". The text has to be in
/// lower case, as the words are.
pub fn replace_mark(text: &str, mark: &str, words: &[&str], by: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once(mark) {
        let front = before.rsplit(|letter: char| !letter.is_alphanumeric()).next().unwrap_or("");
        let is_alone = (front.is_empty() || words.contains(&front))
            && !after.starts_with(char::is_alphanumeric);
        out.push_str(before);
        out.push_str(if is_alone { by } else { mark });
        rest = after;
    }
    out.push_str(rest);
    out
}

/// At most `TOKEN_BYTES_MAX` bytes of a token, cut between characters.
fn cut(token: &str) -> &str {
    let end = (0..=token.len().min(TOKEN_BYTES_MAX))
        .rev()
        .find(|end| token.is_char_boundary(*end))
        .unwrap_or(0);
    &token[..end]
}

/// The tokens of a name that are compared: without titles in front of a person's name, and without
/// stop words in a business's, unless nothing would be left.
pub fn tokens(name: &str, kind: EntryKind) -> Vec<String> {
    let plain = normalise(name);
    let all: Vec<&str> = plain.split(' ').filter(|token| !token.is_empty()).map(cut).collect();
    let kept: Vec<&str> = match kind {
        EntryKind::Individual | EntryKind::Any => {
            let titles = all.iter().take_while(|token| TITLES.contains(token)).count();
            all.iter().skip(titles).copied().collect()
        }
        EntryKind::Business => {
            all.iter().filter(|token| !STOP_WORDS.contains(token)).copied().collect()
        }
        EntryKind::Vessel => all.clone(),
    };
    (if kept.is_empty() { all } else { kept }).into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_plain() {
        for (name, plain) in [
            ("AL-ZAYDI, Shibl Muhsin 'Ubayd", "al zaydi shibl muhsin ubayd"),
            ("11,420.2-1 CORP.", "11 420 2 1 corp"),
            ("  Nicolás\tMADURO\u{a0}Moros ", "nicolas maduro moros"),
            ("Ｊｏｈｎ Do\u{200b}e", "john doe"),
            ("Łukasz Bjørn Weiß", "lukasz bjorn weiss"),
            ("A.I.C. SOGO KENKYUSHO", "a i c sogo kenkyusho"),
            ("Az\u{2bc}har Az\u{b4}har İSA", "az har az har isa"),
            ("S\u{2066}hibl \u{1d400}\u{1d41a}", "shibl aa"),
            ("", ""),
            ("---", ""),
        ] {
            assert_eq!(normalise(name), plain, "{name:?}");
        }
    }

    #[test]
    fn titles_and_stop_words_are_left_out_but_never_everything() {
        assert_eq!(tokens("Shri Dr. Rajesh Kumar", EntryKind::Individual), ["rajesh", "kumar"]);
        assert_eq!(tokens("Rajesh Dr", EntryKind::Individual), ["rajesh", "dr"]);
        assert_eq!(tokens("Mr.", EntryKind::Individual), ["mr"]);
        assert_eq!(tokens("The Bank of Trade Ltd", EntryKind::Business), ["bank", "trade"]);
        assert_eq!(tokens("The Company Ltd.", EntryKind::Business), ["the", "company", "ltd"]);
        assert_eq!(tokens(&"ü".repeat(500), EntryKind::Any)[0].len(), TOKEN_BYTES_MAX);
    }
}
