//! Words that a caller probably meant.

/// How many letters differ between a word of ours and one that may have been meant to be it; `None`
/// where too many do.
pub fn wrong_letters(known: &str, written: &str) -> Option<usize> {
    // Longer ones are no slips, and comparing them costs time.
    if written.len() > 2 * known.len() + 4 {
        return None;
    }
    let wrong = strsim::damerau_levenshtein(known, written);
    // A letter in four; of the short words, none.
    (wrong <= (known.len() / 4).min(2)).then_some(wrong)
}

/// A name without what is easily mistaken in it.
pub(super) fn plain(name: &str) -> String {
    name.to_lowercase().replace(['-', '_', ' '], "")
}

/// The name of ours that a written one was probably meant to be.
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
