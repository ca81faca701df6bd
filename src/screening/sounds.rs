//! Words by their sound: many spellings that Indian and Arabic scripts do not distinguish become
//! the same.

/// Spellings of one name; `sound` alone would leave many of them different. The first of a group
/// stands for all.
const SPELLINGS: &[&[&str]] = &[
    &[
        "mohammed", "muhammad", "mohammad", "mohamed", "mohamad", "muhammed", "muhamad",
        "mohammod", "mohamet", "mahomed", "mohd", "mohmd", "muhd", "mhd", "md",
    ],
    &["ahmed", "ahmad", "ahamed", "ahmet", "ahmmed", "achmad", "ahamad", "ehmed"],
    &[
        "hussain", "hussein", "husain", "husein", "hossain", "hossein", "hosain", "hosein",
        "hussien", "huseyin", "hoosain", "husayn", "hussayn", "husin",
    ],
    &["hassan", "hasan", "hassen", "hasaan"],
    &["abdul", "abd", "abdel", "abdal", "abdoul", "abdol", "abdur", "abdus", "abdu", "abdool"],
    &["sheikh", "shaikh", "sheik", "shaykh", "shaik", "shekh", "cheikh", "sk"],
    &[
        "syed", "sayed", "sayyid", "sayyed", "seyed", "seyyed", "saiyad", "saiyed", "sayid",
        "sayyad",
    ],
    &[
        "yusuf", "yousuf", "yousef", "yousaf", "yusif", "youssef", "yusef", "yousif", "yoosuf",
        "yusup",
    ],
    &["umar", "omar", "omer", "umer", "omr"],
    &["usman", "uthman", "othman", "osman", "usmaan", "ousmane", "ottoman"],
    &["ibrahim", "ebrahim", "ibraheem", "ibrahem", "ibrohim"],
    &["ismail", "ismael", "esmail", "ismaeel", "ismaiel", "esmaeil"],
    &["khalid", "khaled"],
    &["saeed", "said", "saied", "sayeed", "saeid", "saed"],
    &["rahman", "rehman", "rahmaan", "rahaman", "rachman"],
    &["rahim", "raheem", "rahem"],
    &["karim", "kareem", "kerim"],
    &["fatima", "fatimah", "fathima", "fatma"],
    &["ayesha", "aisha", "aysha", "aishah", "ayisha"],
    &["abdullah", "abdallah", "abdulla", "abdillah", "abdollah", "abdulah"],
    &["chaudhary", "choudhary", "chaudhry", "choudhury", "chowdhury", "chaudhari", "choudhry"],
    &["qureshi", "qureishi", "quraishi", "kureshi", "qurayshi"],
    &["siddiqui", "siddiqi", "siddique", "sidiqi", "siddiki"],
    &["mahmud", "mehmood", "mahmood", "mahmoud", "mahmod", "mehmud", "mehmoud"],
    &["farooq", "faruq", "farouk", "farouq", "faruk", "farook"],
    &["haq", "haque", "huq", "haqq", "hak"],
    &["din", "deen", "uddin", "ud-din", "eddine"],
    &["jamil", "jameel", "djamel"],
    &["ali", "aly", "alee"],
    &["mustafa", "mostafa", "moustafa", "mustapha"],
    &["suleiman", "sulaiman", "suleman", "solaiman", "sulayman", "soleiman"],
    &["nasir", "naseer", "nasser", "naser", "nassir"],
    &["kumar", "kr", "kumaar"],
    &["singh", "sing"],
];

/// A normalised word (see `text.rs`) as it sounds, in lower case ASCII letters where it was Latin.
pub fn sound(word: &str) -> String {
    let mut text = word.to_owned();
    for (from, to) in [
        ("ksh", "ks"),
        ("x", "ks"),
        ("ph", "f"),
        ("th", "t"),
        ("dh", "d"),
        ("sh", "s"),
        ("zh", "l"),
        ("gn", "jn"),
        ("gy", "jn"),
        ("ck", "k"),
        ("ee", "i"),
        ("oo", "u"),
        ("ow", "au"),
        ("ou", "au"),
        ("w", "v"),
        ("z", "j"),
        ("q", "k"),
        ("y", "i"),
        ("ii", "i"),
    ] {
        if text.contains(from) {
            text = text.replace(from, to);
        }
    }
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if !out.ends_with(letter) {
            out.push(letter);
        }
    }
    // Many words end with a mute h: Shah, Ullah.
    if out.len() > 3 && out.ends_with('h') && !out.ends_with("ch") {
        out.pop();
    }
    out
}

pub const fn is_vowel(letter: char) -> bool {
    matches!(letter, 'a' | 'e' | 'i' | 'o' | 'u')
}

/// The sound of a word, or of the first spelling of its group in `SPELLINGS`.
pub fn spelling_key(word: &str) -> String {
    let known =
        SPELLINGS.iter().find(|group| group.contains(&word)).and_then(|group| group.first());
    sound(known.unwrap_or(&word))
}

/// The consonants of a word as it sounds. If a consonant comes twice with nothing or only vowels
/// between, it is written once; an h after b, c, d, g, j, k or t is left out. Two words written as
/// one mostly have the consonants of the first and then those of the second.
pub fn consonants(word: &str) -> String {
    let mut out = String::new();
    let mut last = ' ';
    for letter in sound(word).chars() {
        let is_mute = letter == 'h' && matches!(last, 'k' | 'g' | 'b' | 'c' | 'j' | 'd' | 't');
        last = letter;
        if !is_vowel(letter) && !is_mute && !out.ends_with(letter) {
            out.push(letter);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_name_have_one_key() {
        for (left, right) in [
            ("mohd", "muhammad"),
            ("yousef", "yusuf"),
            ("masood", "masud"),
            ("shaikh", "sheikh"),
            ("zakir", "jakir"),
            ("lakshmi", "laxmi"),
        ] {
            assert_eq!(spelling_key(left), spelling_key(right), "{left} {right}");
        }
        assert_ne!(spelling_key("rajesh"), spelling_key("rakesh"));
    }

    #[test]
    fn consonants_of_joined_words_are_joined() {
        for (parts, whole) in
            [(["masood", "azhar"], "masoodazhar"), (["abdur", "rahman"], "abdurrahman")]
        {
            let joined = format!("{}{}", consonants(parts[0]), consonants(parts[1]));
            let mut one = String::new();
            joined.chars().for_each(|letter| {
                if !one.ends_with(letter) {
                    one.push(letter);
                }
            });
            assert_eq!(one, consonants(whole));
        }
    }
}
