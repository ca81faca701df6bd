//! Writes the scripts of India in Latin letters.
//!
//! The nine scripts share one layout in Unicode: the meaning of a character mostly follows from its
//! place in its block. Most letters are written by the Hunterian system, without its diacritics. A
//! consonant without a vowel sign has the inherent vowel a. This a is written ("Sharma", not
//! "Shrma"), except where the languages of the north do not speak it.

/// A script, in the order of the blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Devanagari,
    Bengali,
    Gurmukhi,
    Gujarati,
    Oriya,
    Tamil,
    Telugu,
    Kannada,
    Malayalam,
}

const SCRIPTS: [Script; 9] = [
    Script::Devanagari,
    Script::Bengali,
    Script::Gurmukhi,
    Script::Gujarati,
    Script::Oriya,
    Script::Tamil,
    Script::Telugu,
    Script::Kannada,
    Script::Malayalam,
];
/// The code point at which the first block begins.
const FIRST_CODE_POINT: u32 = 0x0900;
/// How many code points a block has.
const BLOCK_LENGTH: u32 = 0x80;

impl Script {
    /// Whether the script's languages drop the inherent vowel at a word's end, and between two
    /// spoken vowels.
    const fn drops_vowels(self) -> bool {
        matches!(self, Script::Devanagari | Script::Bengali | Script::Gurmukhi | Script::Gujarati)
    }
}

/// The script of a character, and its place in the block.
fn place(letter: char) -> Option<(Script, u32)> {
    let at = u32::from(letter).checked_sub(FIRST_CODE_POINT)?;
    let script = SCRIPTS.get((at / BLOCK_LENGTH) as usize)?;
    Some((*script, at % BLOCK_LENGTH))
}

/// Whether a character is in the block of one of the scripts, and is no danda.
pub fn is_known(letter: char) -> bool {
    // The dandas are punctuation of all scripts.
    place(letter).is_some() && !matches!(letter, '\u{964}' | '\u{965}')
}

const CONSONANTS: [&str; 37] = [
    "k", "kh", "g", "gh", "n", "ch", "chh", "j", "jh", "n", "t", "th", "d", "dh", "n", "t", "th",
    "d", "dh", "n", "n", "p", "ph", "b", "bh", "m", "y", "r", "r", "l", "l", "zh", "v", "sh", "sh",
    "s", "h",
];
// Places of characters in their block.
const KA: u32 = 0x15;
const HA: u32 = 0x39;
const NYA: u32 = 0x1E;
const JA: u32 = 0x1C;
const VOWELS: [&str; 16] =
    ["a", "a", "a", "i", "i", "u", "u", "ri", "li", "e", "e", "e", "ai", "o", "o", "o"];
/// The place of the first of [`VOWELS`].
const FIRST_VOWEL: u32 = 0x04;
const VOWEL_SIGNS: [&str; 15] =
    ["a", "i", "i", "u", "u", "ri", "ri", "e", "e", "e", "ai", "o", "o", "o", "au"];
/// The place of the first of [`VOWEL_SIGNS`].
const FIRST_SIGN: u32 = 0x3E;
/// The dot that makes a consonant another one.
const NUKTA: u32 = 0x3C;
/// The sign that removes the inherent vowel.
const VIRAMA: u32 = 0x4D;

/// A consonant of one script whose place is not in the common layout, and whether it has an
/// inherent vowel.
const fn own_consonant(script: Script, at: u32) -> Option<(&'static str, bool)> {
    Some(match (script, at) {
        (Script::Malayalam, 0x7A | 0x7B) => ("n", false),
        (Script::Malayalam, 0x7C) => ("r", false),
        (Script::Malayalam, 0x7D | 0x7E) => ("l", false),
        (Script::Malayalam, 0x7F) => ("k", false),
        (Script::Malayalam, 0x54) => ("m", false),
        (Script::Malayalam, 0x55) => ("y", false),
        (Script::Malayalam, 0x56) => ("zh", false),
        (Script::Bengali, 0x4E) => ("t", false),
        (Script::Bengali, 0x70) => ("r", true),
        (Script::Bengali, 0x71) => ("w", true),
        (Script::Oriya, 0x5F) => ("y", true),
        (Script::Oriya, 0x71) => ("w", true),
        (Script::Gurmukhi, 0x5C) => ("r", true),
        (Script::Telugu, 0x58) => ("ts", true),
        (Script::Telugu, 0x59) => ("dz", true),
        (Script::Telugu, 0x5A) => ("r", true),
        (Script::Kannada, 0x5E) => ("l", true),
        (Script::Devanagari, 0x7B) => ("g", true),
        (Script::Devanagari, 0x7C) => ("j", true),
        (Script::Devanagari, 0x7E) => ("d", true),
        (Script::Devanagari, 0x7F) => ("b", true),
        _ => return None,
    })
}

/// How a consonant with a nukta is written, if that changes it.
const fn dotted(at: u32) -> Option<&'static str> {
    Some(match at {
        0x15 => "q",
        0x16 => "kh",
        0x17 => "gh",
        0x1C => "z",
        0x21 => "r",
        0x22 => "rh",
        0x2B => "f",
        0x2F => "y",
        0x38 => "sh",
        _ => return None,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Vowel {
    /// The a that a consonant has without a vowel sign.
    Inherent,
    Written(&'static str),
    None,
}

/// A part of a word: consonants, a vowel, and after it perhaps a nasal or a breath (visarga).
struct Syllable {
    consonants: Vec<(u32, &'static str)>,
    vowel: Vowel,
    nasal: bool,
    breath: bool,
}

impl Syllable {
    const fn new() -> Syllable {
        Syllable { consonants: Vec::new(), vowel: Vowel::Inherent, nasal: false, breath: false }
    }
    fn first(&self) -> Option<&'static str> {
        self.consonants.first().map(|(_, text)| *text)
    }
    const fn is_bare(&self) -> bool {
        matches!(self.vowel, Vowel::Inherent) && !self.nasal && !self.breath
    }
}

/// Writes a word of one script, or of several without a gap, in Latin letters; the first is a
/// capital.
pub fn latin(word: &str) -> String {
    let mut text = String::new();
    let mut part = String::new();
    let mut script_before = None;
    for letter in word.chars() {
        let script = place(letter).map(|(script, _)| script);
        if script != script_before {
            text.push_str(&one_script(&part));
            part.clear();
            script_before = script;
        }
        part.push(letter);
    }
    text.push_str(&one_script(&part));
    let mut letters = text.chars();
    letters
        .next()
        .map_or(String::new(), |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}

fn one_script(word: &str) -> String {
    let Some((script, _)) = word.chars().next().and_then(place) else { return String::new() };
    let mut syllables = syllables(script, word);
    if script.drops_vowels() {
        drop_vowels(script, &mut syllables);
    }
    let mut text = String::new();
    for (index, syllable) in syllables.iter().enumerate() {
        write(script, syllable, index.checked_sub(1).map(|at| &syllables[at]), &mut text);
        let next = syllables.get(index + 1);
        if syllable.nasal {
            text.push_str(nasal(script, next.map(|next| next.first().unwrap_or("a"))));
        }
        if syllable.breath {
            text.push('h');
        }
    }
    text
}

fn syllables(script: Script, word: &str) -> Vec<Syllable> {
    let mut done: Vec<Syllable> = Vec::new();
    // The syllable that signs may still be added to.
    let mut open: Option<Syllable> = None;
    // After a virama, the next consonant joins the syllable.
    let mut is_joined = false;
    // Gurmukhi's addak doubles the next consonant.
    let mut is_doubled = false;
    for (_, at) in word.chars().filter_map(place) {
        let consonant = match at {
            KA..=HA => CONSONANTS.get((at - KA) as usize).map(|text| (*text, true)),
            _ => own_consonant(script, at),
        };
        if let Some((text, has_vowel)) = consonant {
            if !is_joined {
                done.extend(open.take());
            }
            let syllable = open.get_or_insert_with(Syllable::new);
            if std::mem::take(&mut is_doubled) {
                syllable.consonants.push((at, text.get(..1).unwrap_or(text)));
            }
            syllable.consonants.push((at, text));
            syllable.vowel = if has_vowel { Vowel::Inherent } else { Vowel::None };
            is_joined = false;
            continue;
        }
        match at {
            VIRAMA => {
                if let Some(syllable) = &mut open {
                    syllable.vowel = Vowel::None;
                    is_joined = true;
                }
            }
            NUKTA => {
                let last = open.as_mut().and_then(|syllable| syllable.consonants.last_mut());
                if let Some(last) = last {
                    last.1 = dotted(last.0).unwrap_or(last.1);
                }
            }
            FIRST_SIGN..=0x4C => {
                let sign = VOWEL_SIGNS.get((at - FIRST_SIGN) as usize).copied().unwrap_or("a");
                open.get_or_insert_with(Syllable::new).vowel = Vowel::Written(sign);
            }
            0x00..=0x02 | 0x70 if at != 0x70 || script == Script::Gurmukhi => {
                open.get_or_insert_with(Syllable::new).nasal = true;
            }
            0x03 => open.get_or_insert_with(Syllable::new).breath = script != Script::Tamil,
            0x71 if script == Script::Gurmukhi => is_doubled = true,
            0x66..=0x6F => {
                const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
                done.extend(open.take());
                let digit = DIGITS.get((at - 0x66) as usize).copied().unwrap_or("0");
                done.push(Syllable { vowel: Vowel::Written(digit), ..Syllable::new() });
            }
            FIRST_VOWEL..=0x14 | 0x60 | 0x61 | 0x72..=0x77 => {
                done.extend(open.take());
                let vowel = match at {
                    0x14 => "au",
                    0x60 => "ri",
                    0x61 => "li",
                    // The bearers of Gurmukhi's signs, and vowels of Kashmiri.
                    0x72.. => "a",
                    _ => VOWELS.get((at - FIRST_VOWEL) as usize).copied().unwrap_or("a"),
                };
                open = Some(Syllable { vowel: Vowel::Written(vowel), ..Syllable::new() });
            }
            0x50 => done.push(Syllable { vowel: Vowel::Written("om"), ..Syllable::new() }),
            _ => {}
        }
        is_joined = at == VIRAMA && is_joined;
    }
    done.extend(open);
    done
}

/// Leaves out inherent vowels that are not spoken, from the last syllable to the second.
fn drop_vowels(script: Script, syllables: &mut [Syllable]) {
    let count = syllables.len();
    for index in (1..count).rev() {
        if !syllables[index].is_bare() || syllables[index].consonants.is_empty() {
            continue;
        }
        let onset = &syllables[index].consonants;
        let is_dropped = if index + 1 == count {
            // "Chandra" keeps its last vowel, "Anand" and "Bhatt" do not.
            match onset.as_slice() {
                [_] => true,
                [(_, "n" | "m"), _] => true,
                [(first, _), (second, _)] => first == second && script != Script::Bengali,
                _ => false,
            }
        } else {
            let next = &syllables[index + 1];
            let is_light =
                matches!(next.consonants.as_slice(), [_] | [_, (_, "r")]) && onset.len() == 1;
            is_light && next.vowel != Vowel::None && syllables[index - 1].vowel != Vowel::None
        };
        if is_dropped {
            syllables[index].vowel = Vowel::None;
        }
    }
}

fn write(script: Script, syllable: &Syllable, before: Option<&Syllable>, text: &mut String) {
    let consonants = &syllable.consonants;
    // The h of the name Singh is written gh.
    let is_singh = matches!(consonants.as_slice(), [(HA, _)])
        && before.is_some_and(|before| {
            before.nasal && before.first() == Some("s") && before.vowel == Vowel::Written("i")
        });
    for (index, (at, letters)) in consonants.iter().enumerate() {
        let previous = index.checked_sub(1).and_then(|at| consonants.get(at));
        let next = consonants.get(index + 1);
        let is_northern =
            !matches!(script, Script::Tamil | Script::Telugu | Script::Kannada | Script::Malayalam);
        let letters = match (*at, *letters) {
            // The languages of the north speak jny as gy: Gyanesh.
            (JA, _) if is_northern && next.is_some_and(|(at, _)| *at == NYA) => "g",
            (NYA, _) if is_northern && previous.is_some_and(|(at, _)| *at == JA) => "y",
            (HA, _) if is_singh && script.drops_vowels() => "gh",
            (at, letters) if script == Script::Tamil => {
                let is_after_vowel =
                    previous.is_none() && before.is_some_and(|before| before.vowel != Vowel::None);
                let before = previous
                    .or_else(|| before.filter(|_| !is_after_vowel)?.consonants.last())
                    .map(|(at, _)| *at);
                let after = next.map(|(at, _)| *at);
                // At the end of a word, without a vowel.
                let is_last = next.is_none() && syllable.vowel == Vowel::None;
                tamil(at, letters, before, after, is_after_vowel && !is_last)
            }
            (_, letters) => letters,
        };
        text.push_str(letters);
    }
    match syllable.vowel {
        Vowel::Inherent => text.push('a'),
        Vowel::Written(vowel) => text.push_str(vowel),
        Vowel::None => {}
    }
}

/// Tamil writes voiced and unvoiced stops with one letter: between vowels and after a nasal they
/// are voiced.
fn tamil(
    at: u32,
    letters: &'static str,
    before: Option<u32>,
    next: Option<u32>,
    is_after_vowel: bool,
) -> &'static str {
    let is_doubled = before == Some(at) || next == Some(at);
    let is_after_nasal = matches!(before, Some(0x19 | 0x1E | 0x23 | 0x28 | 0x29 | 0x2E));
    let is_voiced = !is_doubled && next.is_none() && (is_after_vowel || is_after_nasal);
    match at {
        0x15 if is_voiced => "g",
        0x1F if is_voiced => "d",
        0x2A if is_voiced => "b",
        // Muthu, Karthik.
        0x24 if next == Some(0x24) => "",
        0x24 => "th",
        0x1A if is_after_nasal => "j",
        0x1A if is_doubled => {
            if next == Some(at) {
                "c"
            } else {
                "ch"
            }
        }
        0x1A => "s",
        0x31 if next == Some(0x31) => "t",
        _ => letters,
    }
}

/// How a nasal sign is written. `next` are the letters that follow; `None` at the end of the word.
fn nasal(script: Script, next: Option<&str>) -> &'static str {
    match (script, next.and_then(|next| next.chars().next())) {
        (Script::Bengali, _) => "n",
        (_, Some('p' | 'b' | 'm' | 'f')) => "m",
        (Script::Malayalam, _) => "m",
        (Script::Telugu | Script::Kannada | Script::Oriya | Script::Tamil, None) => "m",
        _ => "n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_in_usual_spellings() {
        for (name, wanted) in [
            // Devanagari: Hindi and Marathi.
            ("राजेश", "Rajesh"),
            ("शर्मा", "Sharma"),
            ("मोहन", "Mohan"),
            ("करमचंद", "Karamchand"),
            ("गांधी", "Gandhi"),
            ("जवाहरलाल", "Javaharlal"),
            ("मनमोहन", "Manmohan"),
            ("सिंह", "Singh"),
            ("कृष्ण", "Krishna"),
            ("चन्द्र", "Chandra"),
            ("आनन्द", "Anand"),
            ("ज्ञानेश", "Gyanesh"),
            ("लक्ष्मी", "Lakshmi"),
            ("फ़ातिमा", "Fatima"),
            ("ज़ाकिर", "Zakir"),
            ("संपत", "Sampat"),
            ("देशपांडे", "Deshpande"),
            ("कमला", "Kamla"),
            // Bengali.
            ("প্রিয়াঙ্কা", "Priyanka"),
            ("চট্টোপাধ্যায়", "Chattopadhyay"),
            ("দত্ত", "Datta"),
            ("চাঁদ", "Chand"),
            // Gurmukhi.
            ("ਗੁਰਪ੍ਰੀਤ", "Gurprit"),
            ("ਸਿੰਘ", "Singh"),
            ("ਮਨਜੀਤ", "Manjit"),
            ("ਢਿੱਲੋਂ", "Dhillon"),
            ("ਸ਼ਰਮਾ", "Sharma"),
            // Gujarati.
            ("નરેન્દ્ર", "Narendra"),
            ("પટેલ", "Patel"),
            ("શાહ", "Shah"),
            // Oriya keeps the vowel at the end.
            ("ଚନ୍ଦ୍ର", "Chandra"),
            ("ପଟନାୟକ", "Patanayaka"),
            // Tamil.
            ("முருகன்", "Murugan"),
            ("செல்வம்", "Selvam"),
            ("கார்த்திக்", "Karthik"),
            ("வசந்தி", "Vasanthi"),
            ("தமிழ்", "Thamizh"),
            ("அம்பிகா", "Ambiga"),
            // Telugu, Kannada, Malayalam.
            ("వెంకటేశ్వర", "Venkateshvara"),
            ("రామం", "Ramam"),
            ("ಸುಬ್ರಹ್ಮಣ್ಯ", "Subrahmanya"),
            ("ಭಟ್", "Bhat"),
            ("ഗോപാലകൃഷ്ണൻ", "Gopalakrishnan"),
            ("നായർ", "Nayar"),
            ("१२३", "123"),
        ] {
            assert_eq!(latin(name), wanted, "{name}");
        }
    }

    #[test]
    fn every_character_of_the_blocks_gives_plain_letters() {
        for code in FIRST_CODE_POINT..FIRST_CODE_POINT + 9 * BLOCK_LENGTH {
            let Some(letter) = char::from_u32(code) else { continue };
            for word in [letter.to_string(), format!("क{letter}"), format!("{letter}\u{94d}")] {
                let text = latin(&word);
                assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{word} {text}");
            }
        }
    }
}
