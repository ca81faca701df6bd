//! Words, ages and times as pages show them.

use super::super::texts::Words;

/// A status, a reason or another word of the service in the reader's language. A word without a
/// text is shown with spaces for underscores and dots, and with a capital letter.
pub fn word(words: &Words, word: &str) -> String {
    let key = format!("word.{word}");
    match words.find(&key) {
        Some(text) => text.to_owned(),
        None => {
            let text = word.replace(['_', '.'], " ");
            let mut letters = text.chars();
            letters.next().map_or_else(String::new, |first| {
                first.to_uppercase().collect::<String>() + letters.as_str()
            })
        }
    }
}

/// How long ago: in days and hours, in hours and minutes, in minutes, or in seconds. A unit that is
/// zero is left out.
pub fn age(words: &Words, seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    let unit = |key: &str, count: i64| words.with(key, [("count", count.to_string().as_str())]);
    match (days, hours, minutes) {
        (0, 0, 0) => unit("age.seconds", seconds),
        (0, 0, _) => unit("age.minutes", minutes),
        (0, _, 0) => unit("age.hours", hours),
        (0, ..) => format!("{} {}", unit("age.hours", hours), unit("age.minutes", minutes)),
        (_, 0, _) => unit("age.days", days),
        _ => format!("{} {}", unit("age.days", days), unit("age.hours", hours)),
    }
}

/// A time in Unix seconds, for the attribute `datetime` (UTC) and as a text in Indian time. If the
/// browser's zone is another, the script adds the time there.
pub fn moment(at: i64) -> (String, String) {
    let Ok(utc) = jiff::Timestamp::from_second(at) else { return (String::new(), "–".into()) };
    let ist = jiff::Timestamp::from_second(at + crate::oversight::IST_AHEAD_SECONDS)
        .map(|shifted| jiff::tz::Offset::UTC.to_datetime(shifted));
    let text = ist
        .map_or_else(|_| "–".to_owned(), |ist| ist.strftime("%-d %b %Y, %H:%M:%S IST").to_string());
    (utc.to_string(), text)
}

#[cfg(test)]
mod tests {
    use super::super::super::texts;
    use super::*;
    use crate::beneficiaries::state::PayoutsDisabledReason;
    use crate::deposits::state::Classification;
    use crate::payouts::state::HoldReason;
    use crate::rails::files::rows::{Attention, Matching};
    use crate::rails::port::FailureCode;
    use crate::reconcile::DifferenceKind;
    use crate::refunds::state::{RefundReason, SentHashError};
    use crate::screening::Screening;
    use crate::transfers::state::StatusReason;

    #[test]
    fn a_time_is_written_for_machines_in_utc_and_for_people_in_india() {
        assert_eq!(
            moment(1_767_205_800),
            ("2025-12-31T18:30:00Z".into(), "1 Jan 2026, 00:00:00 IST".into())
        );
    }

    #[test]
    fn an_age_has_at_most_two_units() {
        let english = texts::of("en").unwrap();
        for (seconds, text) in [
            (-5, "0 s"),
            (59, "59 s"),
            (61, "1 min"),
            (3_600, "1 h"),
            (3_661, "1 h 1 min"),
            (90_000, "1 d 1 h"),
            (172_800, "2 d"),
        ] {
            assert_eq!(age(english, seconds), text);
        }
    }

    #[test]
    fn reasons_have_texts_in_every_language() {
        let mut reasons: Vec<&str> = Vec::new();
        reasons.extend(DifferenceKind::ALL.iter().map(|kind| kind.as_str()));
        // A line that matches its payout waits for nobody.
        let matching = Matching::ALL.iter().filter(|matching| **matching != Matching::Payout);
        reasons.extend(matching.map(|matching| matching.as_str()));
        reasons.extend(Attention::ALL.iter().map(|attention| attention.as_str()));
        reasons.extend(FailureCode::ALL.iter().map(|code| code.as_str()));
        reasons.extend(HoldReason::ALL.iter().map(|reason| reason.as_str()));
        reasons.extend(RefundReason::ALL.iter().map(|reason| reason.as_str()));
        reasons.extend(SentHashError::ALL.iter().map(|fault| fault.as_str()));
        reasons.extend(StatusReason::ALL.iter().map(|reason| reason.as_str()));
        reasons.extend(Classification::ALL.iter().map(|found| found.as_str()));
        reasons.extend(PayoutsDisabledReason::ALL.iter().map(|reason| reason.as_str()));
        reasons.extend(Screening::ALL.iter().map(|found| found.as_str()));
        assert!(reasons.len() > 60, "{}", reasons.len());
        let without = |words: &texts::Words| {
            let lacks = |reason: &&&str| words.find(&format!("word.{reason}")).is_none();
            reasons.iter().filter(lacks).map(|reason| (*reason).to_owned()).collect::<Vec<_>>()
        };
        for words in texts::all() {
            assert_eq!(without(words), [""; 0], "{}", words.code);
        }
    }

    #[test]
    fn a_word_without_a_text_is_made_readable() {
        assert_eq!(word(texts::of("en").unwrap(), "no_such_word"), "No such word");
    }
}
