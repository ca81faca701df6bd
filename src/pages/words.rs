//! The words of the pages for people, in every language: one file for each in `languages/`.
//!
//! The language is the one that `?lang=` names, otherwise the one that the browser prefers,
//! otherwise English. [`fill`] puts values into a text in the places of `{name}`.

use std::sync::LazyLock;

use http::HeaderMap;
use http::header::ACCEPT_LANGUAGE;
use serde::Deserialize;

/// The languages, in the order in which a reader is offered them.
const FILES: [&str; 8] = [
    include_str!("languages/en.toml"),
    include_str!("languages/hi.toml"),
    include_str!("languages/ml.toml"),
    include_str!("languages/ta.toml"),
    include_str!("languages/te.toml"),
    include_str!("languages/gu.toml"),
    include_str!("languages/pa.toml"),
    include_str!("languages/ar.toml"),
];

/// Declares the keys of the files. Every file has all of them and no others.
macro_rules! words {
    ($($key:ident)*) => {
        /// Everything that the pages say, in one language.
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct PageWords {
            $(pub $key: String,)*
        }

        #[cfg(test)]
        impl PageWords {
            fn all(&self) -> Vec<(&'static str, &str)> {
                vec![$((stringify!($key), self.$key.as_str()),)*]
            }
        }
    };
}

words! {
    code name direction title language test test_text send arrives arrived_inr network address
    copy_amount copy_address copied selected time_left left_minutes left_hours hurry only_this
    contract fee_hint qr_label address_hint simulate progress amounts to_pay arrived on_the_way
    missing payments explorer help notices receipt you_sent paid_in_inr rate date utr print
    back_to reference keep_link no_script gone offline awaiting_title awaiting_text partly_title
    partly_text has_arrived is_coming seen_title seen_text confirming_title confirming_text
    time_up_title do_not_send time_up_text arrived_of kept too_little_title too_much_title
    too_late_title too_late_text too_late_cancelled_text on_hold_title found_late_text
    on_hold_text questions decision_until decision_day received_title received_text paying_text
    paid_title paid_text refund_title cause_underpaid cause_overpaid cause_late cause_found_late
    cause_payout cause_other refund_ask refund_give refund_given refund_sending refunded_title
    refund_sent expired_text sent_already late_refund late_hold cancelled_title cancelled_text
    notice_other_token notice_dropped notice_excess notice_unmatched notice_unmatched_kept
    step_requested step_rest step_seen step_confirming step_confirmed step_received step_paying
    step_held step_ending step_looking step_failed step_returning step_returned step_cancelled
    confirmations spoken_done spoken_current spoken_next spoken_problem note_seen note_confirming
    note_other_token note_not_final note_late note_unmatched note_arrived little_question
    little_answer much_question much_answer late_question late_answer other_question other_answer
    nothing_question nothing_answer back_question back_answer form_title form_label form_hint
    form_continue form_check_title form_unreadable form_not_yours form_confirm_title
    form_confirm_text form_compare form_yes form_back form_foreign_title form_foreign_text
    broken_link_title broken_link_text unavailable_title unavailable_text verify_name
    verify_title verify_text verify_returned_title verify_returned_text verify_compare
    verify_paid verify_amount verify_time verify_account verify_test_text verify_only
    verify_wrong_title verify_wrong_text verify_unavailable_text
}

/// Every language whose file can be parsed; a test checks that all can.
static LANGUAGES: LazyLock<Vec<PageWords>> = LazyLock::new(|| {
    let read: Vec<PageWords> = FILES.iter().filter_map(|text| toml::from_str(text).ok()).collect();
    if read.is_empty() { vec![PageWords::default()] } else { read }
});

/// Every language, English first.
pub fn languages() -> &'static [PageWords] {
    &LANGUAGES
}

/// The language for a reader who asks for none, and whose browser prefers none of the languages
/// that there are.
pub fn english() -> &'static PageWords {
    &LANGUAGES[0]
}

fn of_code(code: &str) -> Option<&'static PageWords> {
    languages().iter().find(|words| words.code.eq_ignore_ascii_case(code))
}

/// The language of a request: by its query, otherwise the available one that the browser prefers,
/// otherwise English.
pub fn chosen(query: Option<&str>, headers: &HeaderMap) -> &'static PageWords {
    let asked = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .find_map(|(name, code)| of_code(&code).filter(|_| name == "lang"));
    asked.or_else(|| preferred(headers)).unwrap_or_else(english)
}

/// The known language with the highest weight in `Accept-Language` (RFC 9110, 12.5.4); of several
/// with the same weight, the first.
fn preferred(headers: &HeaderMap) -> Option<&'static PageWords> {
    let mut best: Option<(f32, &'static PageWords)> = None;
    let texts = headers.get_all(ACCEPT_LANGUAGE).iter().filter_map(|value| value.to_str().ok());
    for range in texts.flat_map(|text| text.split(',')) {
        let (tag, weight) = range.split_once(';').unwrap_or((range, ""));
        let weight = weight.trim().strip_prefix("q=").map_or(Some(1.0), |text| text.parse().ok());
        let code = tag.trim().split('-').next().unwrap_or_default();
        if let (Some(words), Some(weight)) = (of_code(code), weight)
            && weight > best.map_or(0.0, |(best, _)| best)
        {
            best = Some((weight, words));
        }
    }
    best.map(|(_, words)| words)
}

impl PageWords {
    /// Like [`fill`], but in a language that runs from right to left, each value is changed in two
    /// ways. It is isolated, because otherwise figures and brackets would change places (Unicode's
    /// UAX 9). And no line is broken after a hyphen in it, as in `TRC-20`.
    pub fn fill(&self, text: &str, values: &[(&str, &str)]) -> String {
        if self.direction != "rtl" {
            return fill(text, values);
        }
        let apart: Vec<String> = values
            .iter()
            .map(|(_, value)| format!("\u{2066}{}\u{2069}", value.replace('-', "-\u{2060}")))
            .collect();
        let kept = values.iter().zip(&apart).map(|((name, _), value)| (*name, value.as_str()));
        fill(text, &kept.collect::<Vec<_>>())
    }
}

/// Replaces each `{name}` in a text by the value of this name, or by nothing if there is none.
pub fn fill(text: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(text.len() + 32);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let Some((name, behind)) = after.split_once('}') else {
            rest = after;
            break;
        };
        filled.push_str(values.iter().find(|(known, _)| *known == name).map_or("", |(_, it)| it));
        rest = behind;
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn places(text: &str) -> BTreeSet<&str> {
        text.split('{').skip(1).map(|rest| rest.split('}').next().unwrap()).collect()
    }

    #[test]
    fn every_language_has_every_text_with_the_same_places() {
        let all: Vec<PageWords> = FILES
            .iter()
            .map(|text| toml::from_str(text).unwrap_or_else(|error| panic!("{error}")))
            .collect();
        let codes: Vec<&str> = all.iter().map(|words| words.code.as_str()).collect();
        assert_eq!(codes, ["en", "hi", "ml", "ta", "te", "gu", "pa", "ar"]);
        let same = ["code", "name", "direction"];
        for words in &all {
            let right_to_left = words.code == "ar";
            assert_eq!(words.direction, if right_to_left { "rtl" } else { "ltr" });
            for ((key, text), (_, english)) in words.all().iter().zip(all[0].all()) {
                assert!(!text.trim().is_empty(), "{}: {key} is empty", words.code);
                assert_eq!(places(text), places(english), "{}: {key}", words.code);
                assert!(!text.contains('<') && !text.contains("http"), "{}: {key}", words.code);
                let is_copied = words.code != "en" && !same.contains(key) && *text == english;
                assert!(!is_copied, "{}: {key} is still English", words.code);
            }
        }
    }

    #[test]
    fn a_language_is_asked_for_or_preferred() {
        let of = |query: Option<&str>, accepted: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_LANGUAGE, accepted.parse().unwrap());
            chosen(query, &headers).code.as_str()
        };
        for (query, accepted, wanted) in [
            (None, "", "en"),
            (None, "de-DE,de;q=0.9", "en"),
            (None, "hi-IN,hi;q=0.9,en;q=0.8", "hi"),
            (None, "de, ml;q=0.5, ta;q=0.7", "ta"),
            (None, "en;q=0.3, AR-ae;q=0.4", "ar"),
            (None, "hi;q=0", "en"),
            (None, "hi;q=x, gu", "gu"),
            (Some("lang=pa"), "hi", "pa"),
            (Some("utm=1&lang=te"), "hi", "te"),
            (Some("lang=xx"), "hi", "hi"),
        ] {
            assert_eq!(of(query, accepted), wanted, "{query:?} {accepted}");
        }
    }

    #[test]
    fn values_are_filled_in_and_braces_in_them_stay() {
        assert_eq!(fill("{b} of {a}, {b}{c}", &[("a", "{b}"), ("b", "1")]), "1 of {b}, 1");
        assert_eq!(fill("plain { text", &[]), "plain  text");
        let arabic = of_code("ar").unwrap();
        assert_eq!(arabic.fill("{a}.", &[("a", "₹1")]), "\u{2066}₹1\u{2069}.");
        assert_eq!(arabic.fill("{a}", &[("a", "T-20")]), "\u{2066}T-\u{2060}20\u{2069}");
        assert_eq!(english().fill("{a}.", &[("a", "₹1")]), "₹1.");
    }
}
