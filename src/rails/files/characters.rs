//! The characters that a bank accepts in names and texts.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::scripts_of_india;

crate::string_enum!(
    /// The characters that a bank accepts in names and texts: those of NEFT, those of ISO-8859-1,
    /// or any.
    Characters { Neft "neft", Latin "latin", Unicode "unicode" }
);
crate::string_enum!(
    /// How the characters of a payment file become bytes.
    Encoding { Utf8 "utf-8", Latin "iso-8859-1", Utf16 "utf-16" }
);

impl Encoding {
    /// The name of the encoding in an XML declaration.
    pub const fn declared(self) -> &'static str {
        match self {
            Encoding::Utf8 => "UTF-8",
            Encoding::Latin => "ISO-8859-1",
            Encoding::Utf16 => "UTF-16",
        }
    }
    /// A file's bytes. UTF-16 is little-endian and begins with a byte order mark. `None` if the
    /// encoding lacks a character of the text.
    pub fn bytes(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Encoding::Utf8 => Some(text.as_bytes().to_vec()),
            Encoding::Latin => text.chars().map(|letter| u8::try_from(letter).ok()).collect(),
            Encoding::Utf16 => Some(
                std::iter::once(0xFEFF)
                    .chain(text.encode_utf16())
                    .flat_map(u16::to_le_bytes)
                    .collect(),
            ),
        }
    }
}

/// Whether NEFT accepts a character: `A-Za-z0-9/-?:().,'+` and the space.
const fn is_neft(letter: char) -> bool {
    letter.is_ascii_alphanumeric()
        || matches!(letter, ' ' | '/' | '-' | '?' | ':' | '(' | ')' | '.' | ',' | '\'' | '+')
}

/// The replacement, in NEFT's characters, for a sign or for a letter that Unicode does not
/// decompose.
const fn folded(letter: char) -> Option<&'static str> {
    Some(match letter {
        'ø' => "o",
        'Ø' => "O",
        'ł' => "l",
        'Ł' => "L",
        'đ' | 'ð' => "d",
        'Đ' | 'Ð' => "D",
        'ß' => "ss",
        'ẞ' => "SS",
        'æ' => "ae",
        'Æ' => "Ae",
        'œ' => "oe",
        'Œ' => "Oe",
        'ı' => "i",
        'þ' => "th",
        'Þ' => "Th",
        'ħ' => "h",
        'Ħ' => "H",
        'ŋ' => "ng",
        'Ŋ' => "Ng",
        'ə' => "e",
        'Ə' => "E",
        '&' => " and ",
        '_' | '\u{2010}'..='\u{2015}' => "-",
        '`' | '\u{2018}'..='\u{201B}' | '\u{2B9}'..='\u{2BF}' => "'",
        '[' | '{' => "(",
        ']' | '}' => ")",
        ';' => ",",
        _ => return None,
    })
}

/// Whether a character is invisible. Such a character is dropped and leaves no space.
const fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{2060}'..='\u{206F}' | '\u{202A}'..='\u{202E}'
        | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}')
}

impl Characters {
    /// A text in these characters, with single spaces. Writing the result again changes nothing.
    ///
    /// - `Neft` writes accented letters and letters of India's scripts in plain Latin letters, and
    ///   a few signs as similar ones (`&` as "and"). It drops invisible characters, and combining
    ///   marks that stand alone. It writes anything else that NEFT lacks as a space. It also
    ///   removes slashes, hyphens and colons at the start, and turns slashes in a row into one.
    /// - `Latin` replaces only what ISO-8859-1 lacks (`is_latin`), by what `Neft` writes for it.
    /// - `Unicode` replaces only control characters, by spaces.
    pub fn write(self, text: &str) -> String {
        let plain = match self {
            Characters::Neft => without_odd_signs(&neft(text)),
            Characters::Latin => latin(text),
            Characters::Unicode => {
                text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
            }
        };
        plain.split_whitespace().collect::<Vec<_>>().join(" ")
    }
    /// [`Characters::write`], cut to at most `characters_max` characters.
    pub fn write_short(self, text: &str, characters_max: usize) -> String {
        self.write(text).chars().take(characters_max).collect::<String>().trim_end().to_owned()
    }
    /// Whether a name still has a letter or a digit once it is written in these characters.
    pub fn can_write(self, name: &str) -> bool {
        self.write(name).chars().any(char::is_alphanumeric)
    }
}

/// Whether a character is one of ISO-8859-1, without control characters, the no-break space and the
/// soft hyphen.
fn is_latin(letter: char) -> bool {
    matches!(letter, ' '..='~' | '\u{A1}'..='\u{AC}' | '\u{AE}'..='\u{FF}')
}

/// A text in the characters of ISO-8859-1. A character that ISO-8859-1 lacks is written as
/// for NEFT.
fn latin(text: &str) -> String {
    let (mut out, mut other) = (String::with_capacity(text.len()), String::new());
    for letter in text.nfc() {
        if is_latin(letter) {
            out.push_str(&neft(&std::mem::take(&mut other)));
            out.push(letter);
        } else {
            other.push(letter);
        }
    }
    out.push_str(&neft(&other));
    out
}

/// A text in the characters of NEFT. Signs at the start and repeated spaces stay.
fn neft(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut word = String::new();
    for letter in text.nfkc() {
        // Invisible joiners occur within words of India's scripts and must not end the word.
        if is_invisible(letter) {
            continue;
        }
        if scripts_of_india::is_known(letter) {
            word.push(letter);
            continue;
        }
        out.push_str(&scripts_of_india::latin(&std::mem::take(&mut word)));
        add_letter(letter, &mut out);
    }
    out.push_str(&scripts_of_india::latin(&word));
    out
}

/// A text of NEFT without the signs that have another meaning in some systems: slashes, hyphens and
/// colons at the start, and two slashes together.
fn without_odd_signs(text: &str) -> String {
    let mut out = text.replace("//", "/");
    while out.contains("//") {
        out = out.replace("//", "/");
    }
    out.trim_start_matches(['/', '-', ':', ' ']).to_owned()
}

fn add_letter(letter: char, out: &mut String) {
    if is_neft(letter) {
        return out.push(letter);
    }
    let mut is_written = false;
    for part in letter.nfd() {
        match folded(part) {
            Some(text) => out.push_str(text),
            None if is_neft(part) => out.push(part),
            None => continue,
        }
        is_written = true;
    }
    // A combining mark without a letter leaves no space.
    if !is_written && !is_combining_mark(letter) {
        out.push(' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_written_in_the_characters_of_neft() {
        for (name, wanted) in [
            ("Asha Rao", "Asha Rao"),
            ("राजेश कुमार शर्मा", "Rajesh Kumar Sharma"),
            ("प्रिया (Priya) शर्मा", "Priya (Priya) Sharma"),
            ("José Nuñez", "Jose Nunez"),
            ("Ærøskøbing Łukasz Weiß", "Aeroskobing Lukasz Weiss"),
            ("Ｊｏｈｎ Do\u{200B}e", "John Doe"),
            ("O’Brien & Sons", "O'Brien and Sons"),
            ("D'Souza-Pinto, Maria", "D'Souza-Pinto, Maria"),
            ("नवीन\u{200D}चंद्र", "Navinchandra"),
            ("Rao\u{301}", "Rao"),
            ("a_b@c#d", "a-b c d"),
            ("//x//y", "x/y"),
            ("Asha 王", "Asha"),
            ("王伟", ""),
            ("محمد", ""),
            ("...", "..."),
            ("", ""),
        ] {
            assert_eq!(Characters::Neft.write(name), wanted, "{name}");
        }
        assert_eq!(Characters::Unicode.write("José\n王 "), "José 王");
        for (name, wanted) in [
            ("José Nuñez", "José Nuñez"),
            ("Łukasz Weiß", "Lukasz Weiß"),
            ("राजेश कुमार", "Rajesh Kumar"),
            ("Rao王X", "Rao X"),
            ("王Rao", "Rao"),
            ("Asha–Rao", "Asha-Rao"),
            ("Asha\nRao", "Asha Rao"),
            ("Asha\u{200B}Rao", "AshaRao"),
            ("a//b", "a//b"),
            ("-Rao", "-Rao"),
        ] {
            assert_eq!(Characters::Latin.write(name), wanted, "{name}");
        }
        assert_eq!(Characters::Neft.write_short("Asha Rao", 5), "Asha");
        for (name, in_neft, in_unicode) in [
            ("Asha", true, true),
            ("राज", true, true),
            ("王伟", false, true),
            ("...", false, false),
        ] {
            assert_eq!(Characters::Neft.can_write(name), in_neft, "{name}");
            assert_eq!(Characters::Unicode.can_write(name), in_unicode, "{name}");
        }
    }

    proptest! {
        #[test]
        fn nothing_but_characters_of_neft_is_written(text in "\\PC{0,40}") {
            let written = Characters::Neft.write(&text);
            prop_assert!(written.chars().all(is_neft), "{written}");
            prop_assert_eq!(Characters::Neft.write(&written), written.clone());
            prop_assert!(!written.contains("//"));
        }

        #[test]
        fn nothing_but_characters_of_latin_is_written(text in "\\PC{0,40}") {
            let written = Characters::Latin.write(&text);
            prop_assert!(written.chars().all(is_latin), "{written}");
            prop_assert_eq!(Characters::Latin.write(&written), written.clone());
        }
    }
}
