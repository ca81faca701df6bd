//! Reads exact figures out of JSON: the value at a pointer (RFC 6901), as a decimal that never
//! passes through a float.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::RateRefusal;
use crate::kernel::Rate;

/// The most characters of a figure; a longer text is no exchange rate.
const NUMBER_LENGTH_MAX: usize = 36;
/// The most tokens of a pointer.
const POINTER_TOKENS_MAX: usize = 16;
const RATE_DECIMALS: i64 = 6;

/// A pointer whose form was checked: empty, or tokens that each begin with a slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer(Vec<String>);

impl Pointer {
    /// Reads a pointer such as `/data/rates/INR`; `~1` stands for a slash in a name and `~0` for a
    /// tilde. `None` if the text is no pointer, or has more than 16 tokens.
    pub fn parse(text: &str) -> Option<Pointer> {
        if text.is_empty() {
            return Some(Pointer(Vec::new()));
        }
        let tokens: Vec<String> =
            text.strip_prefix('/')?.split('/').map(unescaped).collect::<Option<_>>()?;
        (tokens.len() <= POINTER_TOKENS_MAX).then_some(Pointer(tokens))
    }

    /// The JSON text of the value that the pointer names in a document.
    pub fn find<'a>(&self, document: &'a [u8]) -> Result<&'a str, RateRefusal> {
        let mut value: &'a RawValue =
            serde_json::from_slice(document).map_err(|_| RateRefusal::NotJson)?;
        for token in &self.0 {
            let text: &'a str = value.get();
            let found = match text.as_bytes().first() {
                Some(b'{') => {
                    let members: BTreeMap<String, &'a RawValue> =
                        serde_json::from_str(text).map_err(|_| RateRefusal::NotJson)?;
                    members.get(token).copied()
                }
                Some(b'[') => {
                    let items: Vec<&'a RawValue> =
                        serde_json::from_str(text).map_err(|_| RateRefusal::NotJson)?;
                    index(token).and_then(|index| items.get(index).copied())
                }
                _ => None,
            };
            value = found.ok_or(RateRefusal::PointerMissing)?;
        }
        Ok(value.get())
    }
}

fn unescaped(token: &str) -> Option<String> {
    let mut plain = String::new();
    let mut letters = token.chars();
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '~' => match letters.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            other => other,
        });
    }
    Some(plain)
}

/// The index of an array's item: digits without a leading zero.
fn index(token: &str) -> Option<usize> {
    let is_plain = token.bytes().all(|byte| byte.is_ascii_digit())
        && (token == "0" || !token.starts_with('0'));
    is_plain.then(|| token.parse().ok()).flatten()
}

/// The text of a JSON number, or the content of a JSON string, which need not be a number.
pub fn number_text(json: &str) -> Result<String, RateRefusal> {
    match json.as_bytes().first() {
        Some(b'"') => serde_json::from_str(json).map_err(|_| RateRefusal::NotANumber),
        Some(b'-' | b'0'..=b'9') => Ok(json.to_owned()),
        _ => Err(RateRefusal::NotANumber),
    }
}

/// A positive rate from a decimal in the grammar of JSON numbers, of at most 36 characters. It may
/// have an exponent from -30 to 30. The rate is exact up to six decimals; more are rounded half to
/// even. Nothing else is accepted: no plus or minus in front, no thousands separators, no blanks.
pub fn rate(text: &str) -> Option<Rate> {
    if text.len() > NUMBER_LENGTH_MAX {
        return None;
    }
    let (decimal, exponent) = match text.split_once(['e', 'E']) {
        Some((decimal, exponent)) => (decimal, exponent_of(exponent)?),
        None => (text, 0),
    };
    let (whole, fraction) = match decimal.split_once('.') {
        Some((_, "")) => return None,
        Some((whole, fraction)) => (whole, fraction),
        None => (decimal, ""),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty()
        || !digits(whole)
        || !digits(fraction)
        || (whole.len() > 1 && whole.starts_with('0'))
    {
        return None;
    }
    // At most 36 digits, so an i128 holds them.
    let mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
    let shift = RATE_DECIMALS + exponent - i64::try_from(fraction.len()).ok()?;
    let units = if shift >= 0 {
        let scale = 10_i128.checked_pow(u32::try_from(shift).ok()?)?;
        mantissa.checked_mul(scale)?
    } else {
        // An i128 holds no scale above 10^38. Such a scale would round 36 digits to zero, which is
        // no rate.
        let scale = 10_i128.checked_pow(u32::try_from(-shift).ok()?)?;
        half_even(mantissa, scale)
    };
    i64::try_from(units).ok().filter(|units| *units > 0).map(Rate)
}

fn exponent_of(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.strip_prefix('+')
        .unwrap_or(text)
        .parse()
        .ok()
        .filter(|exponent| (-30..=30).contains(exponent))
}

/// The quotient of two numbers that are not negative, rounded to the nearest whole number, a half
/// to the even one.
fn half_even(number: i128, divisor: i128) -> i128 {
    let (quotient, rest) = (number / divisor, number % divisor);
    let is_up = match (rest * 2).cmp(&divisor) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => quotient % 2 == 1,
        std::cmp::Ordering::Greater => true,
    };
    quotient + i128::from(is_up)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pointers_follow_rfc_6901() {
        let document =
            br#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4," ":7,"m~n":8,"deep":{"list":[[1],[2,{"x":"9"}]]},"t\u00e9":5}"#;
        for (text, found) in [
            ("/foo/0", Some("\"bar\"")),
            ("/", Some("0")),
            ("/a~1b", Some("1")),
            ("/c%d", Some("2")),
            ("/ ", Some("7")),
            ("/m~0n", Some("8")),
            ("/deep/list/1/1/x", Some("\"9\"")),
            ("/té", Some("5")),
            ("/foo/2", None),
            ("/foo/-", None),
            ("/foo/00", None),
            ("/foo/0/x", None),
            ("/nothing", None),
        ] {
            let read = Pointer::parse(text).unwrap().find(document);
            assert_eq!(read, found.ok_or(RateRefusal::PointerMissing), "{text}");
        }
        assert_eq!(Pointer::parse("").unwrap().find(b" 1.5 "), Ok("1.5"));
        for text in ["foo", "/~", "/~2", "/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q"] {
            assert_eq!(Pointer::parse(text), None, "{text}");
        }
        for document in ["", "{", "{\"a\":1}x", "nul", "{\"a\":01}"] {
            assert_eq!(
                Pointer::parse("/a").unwrap().find(document.as_bytes()),
                Err(RateRefusal::NotJson),
                "{document}"
            );
        }
        assert_eq!(
            Pointer::parse("/a").unwrap().find(&[b'"', 0xff, b'"']),
            Err(RateRefusal::NotJson)
        );
        let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(
            Pointer::parse("/0/0").unwrap().find(nested.as_bytes()).is_ok(),
            "depth costs no stack"
        );
    }

    #[test]
    fn decimals_are_exact_and_ties_go_to_the_even_neighbour() {
        for (text, units) in [
            ("88.4125", Some(88_412_500)),
            ("88", Some(88_000_000)),
            ("0.9999995", Some(1_000_000)),
            ("0.9999985", Some(999_998)),
            ("88.41250050", Some(88_412_500)),
            ("88.41250150", Some(88_412_502)),
            ("88.412500500000001", Some(88_412_501)),
            ("8.84125e1", Some(88_412_500)),
            ("884125E-4", Some(88_412_500)),
            ("1e+2", Some(100_000_000)),
            ("0.000001", Some(1)),
            ("0.0000005", None),
            ("0.00000051", Some(1)),
            ("0", None),
            ("-88", None),
            ("+88", None),
            ("088", None),
            (".5", None),
            ("5.", None),
            ("1,000", None),
            (" 88", None),
            ("88 ", None),
            ("1e", None),
            ("1e99", None),
            ("1e-99", None),
            ("1e30", None),
            ("", None),
            ("NaN", None),
            ("0x10", None),
            ("٣", None),
            ("9223372036854.775807", Some(i64::MAX)),
            ("9223372036854.775808", None),
            ("1.000000000000000000000000000000000000", None),
        ] {
            assert_eq!(rate(text), units.map(Rate), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_rate_survives_its_text_however_it_is_written(units in 1..=1_000_000_000_000_i64,
            zeros in 0..8_usize) {
            let text = Rate(units).to_string();
            prop_assert_eq!(rate(&text), Some(Rate(units)));
            let zeroed = format!("{text}{}", "0".repeat(zeros));
            prop_assert_eq!(rate(&zeroed), Some(Rate(units)));
            let scientific = format!("{units}e-6");
            prop_assert_eq!(rate(&scientific), Some(Rate(units)));
        }

        #[test]
        fn rounding_is_within_half_a_unit_and_ties_go_to_even(units in 1..=1_000_000_000_i64,
            rest in 0..1000_i64) {
            let text = format!("{}.{:06}{rest:03}", units / 1_000_000, units % 1_000_000);
            let read = rate(&text).unwrap().0;
            let twice_error = ((read - units) * 1000 - rest).abs() * 2;
            prop_assert!(twice_error < 1000 || (twice_error == 1000 && read % 2 == 0), "{} {}",
                text, read);
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}", json in "[0-9.eE+-]{0,40}") {
            let _ = (rate(&text), rate(&json), number_text(&text));
            let _ = Pointer::parse(&text).map(|pointer| pointer.find(json.as_bytes()).is_ok());
        }
    }
}
