//! Words that a caller probably meant.

/// How many letters differ between a known word and what was written. `None` if there are too many
/// for a typing error.
pub fn wrong_letters(known: &str, written: &str) -> Option<usize> {
    // A much longer word is no typing error, and comparing it takes time.
    if written.len() > 2 * known.len() + 4 {
        return None;
    }
    let wrong = strsim::damerau_levenshtein(known, written);
    // One letter in four, at most two. Short words must be right.
    (wrong <= (known.len() / 4).min(2)).then_some(wrong)
}

/// A name as it is compared: in lower case, without hyphens, underscores and spaces.
pub(super) fn plain(name: &str) -> String {
    name.to_lowercase().replace(['-', '_', ' '], "")
}

/// The known name that was probably meant.
pub fn meant<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let written = plain(written);
    let candidates =
        known.iter().filter_map(|known| Some((wrong_letters(&plain(known), &written)?, *known)));
    candidates.min_by_key(|(wrong, _)| *wrong).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let known = ["sender_id", "beneficiary_id", "amount", "funding", "reference", "pan", "to"];
        for (written, meant_name) in [
            ("senderId", Some("sender_id")),
            ("Sender-ID", Some("sender_id")),
            ("refrence", Some("reference")),
            ("amuont", Some("amount")),
            ("benificiary_id", Some("beneficiary_id")),
            ("pam", None),
            ("so", None),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(meant(written, &known), meant_name, "{written}");
        }
    }
}
