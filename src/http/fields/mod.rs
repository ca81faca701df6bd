//! The types of fields in requests: how each is parsed, and its schema.

mod amounts;
mod grammars;
mod metadata;

use serde_json::{Value, json};

pub use self::amounts::{Amount, NonNegativeAmount, TokenAmount};
pub use self::grammars::*;
use super::body::Node;
use super::form::Field;
use crate::kernel::{Code, Currency, IdKind, RefusalEntry};

pub use crate::kernel::NamedId;

/// Adds a problem of the field `name`, whose message begins with that name. Always `None`.
pub(super) fn wrong<T>(
    code: Code,
    name: &str,
    message: impl std::fmt::Display,
    entries: &mut Vec<RefusalEntry>,
) -> Option<T> {
    entries.push(RefusalEntry::field(code, name, format!("{name} {message}")));
    None
}

/// A text without control characters, whose number of characters is within the bounds.
pub(super) fn text<'a>(
    node: &'a Node,
    min: usize,
    max: usize,
    name: &str,
    entries: &mut Vec<RefusalEntry>,
) -> Option<&'a str> {
    let Node::Text(text) = node else {
        return wrong(Code::ParameterValueInvalid, name, "must be a string.", entries);
    };
    if text.chars().any(char::is_control) {
        return wrong(
            Code::ParameterValueInvalid,
            name,
            "must not hold control characters.",
            entries,
        );
    }
    let length = text.chars().count();
    let (code, bound, wanted) = match length {
        _ if length < min => (Code::ParameterMinLengthInvalid, "at least", min),
        _ if length > max => (Code::ParameterMaxLengthInvalid, "at most", max),
        _ => return Some(text),
    };
    let bound = if min == max { "exactly" } else { bound };
    wrong(code, name, format_args!("must have {bound} {wanted} characters."), entries)
}

/// For schemas: no control characters.
pub(in crate::http) const PLAIN_PATTERN: &str = r"^[^\u0000-\u001F\u007F-\u009F]*$";
/// For schemas: no control characters, and at least one character that is not white space.
const NOT_BLANK_PATTERN: &str = r"^[^\u0000-\u001F\u007F-\u009F]*[^\u0000-\u001F\u007F-\u009F\s][^\u0000-\u001F\u007F-\u009F]*$";

/// For schemas: as [`NOT_BLANK_PATTERN`], and no character that overrides the direction of letters.
const NAME_PATTERN: &str = r"^[^\u0000-\u001F\u007F-\u009F\u202D\u202E]*[^\u0000-\u001F\u007F-\u009F\u202D\u202E\s][^\u0000-\u001F\u007F-\u009F\u202D\u202E]*$";

/// A text of `MIN` to `MAX` characters that is not blank and has no control characters.
#[derive(Clone)]
pub struct Text<const MIN: usize, const MAX: usize>(pub String);

impl<const MIN: usize, const MAX: usize> Field for Text<MIN, MAX> {
    fn schema() -> Value {
        json!({ "type": "string", "minLength": MIN, "maxLength": MAX,
            "pattern": NOT_BLANK_PATTERN })
    }
    fn parse(node: &Node, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        let text = text(node, MIN, MAX, name, entries)?;
        if text.trim().is_empty() {
            return wrong(Code::ParameterValueInvalid, name, "must not be blank.", entries);
        }
        Some(Text(text.to_owned()))
    }
}

/// The name of a person or business: a [`Text`] without characters that override the direction of
/// its letters.
#[derive(Clone)]
pub struct NameText<const MIN: usize, const MAX: usize>(pub String);

impl<const MIN: usize, const MAX: usize> Field for NameText<MIN, MAX> {
    fn schema() -> Value {
        json!({ "type": "string", "minLength": MIN, "maxLength": MAX, "pattern": NAME_PATTERN })
    }
    fn parse(node: &Node, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        let Text(text) = Text::<MIN, MAX>::parse(node, name, entries)?;
        // Unicode's overrides (UAX #9) make a name look different from the one that is compared and
        // paid.
        if text.chars().any(|letter| matches!(letter, '\u{202d}' | '\u{202e}')) {
            let message = "must not hold characters that change the direction of its letters.";
            return wrong(Code::ParameterValueInvalid, name, message, entries);
        }
        Some(NameText(text))
    }
}

impl Field for bool {
    fn schema() -> Value {
        json!({ "type": "boolean" })
    }
    fn parse(node: &Node, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        match node {
            Node::Bool(value) => Some(*value),
            _ => wrong(Code::ParameterValueInvalid, name, "must be true or false.", entries),
        }
    }
}

/// A whole number between the bounds, written as a JSON number.
#[derive(Clone, Copy)]
pub struct Int<const MIN: i64, const MAX: i64>(pub i64);

impl<const MIN: i64, const MAX: i64> Field for Int<MIN, MAX> {
    fn schema() -> Value {
        json!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
    fn parse(node: &Node, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        let Node::Number(token) = node else {
            return wrong(Code::ParameterValueInvalid, name, "must be a whole number.", entries);
        };
        match parse_integer(token) {
            None => wrong(Code::ParameterValueInvalid, name, "must be a whole number.", entries),
            Some(value) if (i128::from(MIN)..=i128::from(MAX)).contains(&value) => {
                i64::try_from(value).ok().map(Int)
            }
            Some(_) => {
                let message = format!("{name} must be between {MIN} and {MAX}.");
                entries.push(
                    RefusalEntry::field(Code::ParameterRangeInvalid, name, message)
                        .with("minimum", MIN.to_string())
                        .with("maximum", MAX.to_string()),
                );
                None
            }
        }
    }
}

/// A JSON number token as an integer. It may be written `5.0` or `5e0`, which JSON Schema counts as
/// integers.
fn parse_integer(token: &str) -> Option<i128> {
    let (digits, exponent) = match token.split_once(['e', 'E']) {
        Some((digits, exponent)) => {
            (digits, exponent.strip_prefix('+').unwrap_or(exponent).parse::<i32>().ok()?)
        }
        None => (token, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    let mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
    let scale = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    if mantissa == 0 {
        return Some(0);
    }
    if (0..=30).contains(&scale) {
        return mantissa.checked_mul(10_i128.pow(scale as u32));
    }
    if (-30..0).contains(&scale) {
        let divisor = 10_i128.pow(scale.unsigned_abs());
        return (mantissa % divisor == 0).then(|| mantissa / divisor);
    }
    // Larger than any bound of ours, or not a whole number.
    (scale > 30).then_some(if mantissa < 0 { i128::MIN } else { i128::MAX })
}

/// The identifier of another object; see [`NamedId`] for a text that is no identifier.
impl<K: IdKind + Clone> Field for NamedId<K> {
    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1, "maxLength": 255, "pattern": PLAIN_PATTERN,
            "examples": [format!("{}_01JDK3Y5M8Q2X7N4V6T9R0ABCD", K::KIND.as_str())] })
    }
    fn parse(node: &Node, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        text(node, 1, 255, name, entries).map(NamedId::parse)
    }
}

/// One word of a closed set.
#[derive(Clone, Copy)]
pub struct EnumField<T>(pub T);

/// A closed set of words that a field can take.
pub trait ClosedWords: Copy + Send + 'static {
    fn words() -> Vec<&'static str>;
    fn find(text: &str) -> Option<Self>;
}

/// Makes a `string_enum!` usable as a field.
#[macro_export]
macro_rules! enum_fields {
    ($($type:ty),* $(,)?) => {
        $(impl $crate::http::fields::ClosedWords for $type {
            fn words() -> Vec<&'static str> { <$type>::WORDS.to_vec() }
            fn find(text: &str) -> Option<Self> { <$type>::parse(text) }
        })*
    };
}

impl<T: ClosedWords> Field for EnumField<T> {
    fn schema() -> Value {
        json!({ "type": "string", "enum": T::words() })
    }
    fn parse(node: &Node, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        let found = match node {
            Node::Text(text) => T::find(text),
            _ => None,
        };
        match found {
            Some(word) => Some(EnumField(word)),
            None => {
                let given = if let Node::Text(text) = node { text } else { "" };
                let message = must_be_one_of(&T::words(), given);
                wrong(Code::ParameterValueInvalid, name, message, entries)
            }
        }
    }
}

/// The message for a value that is none of the words. If the value is one of them in another case,
/// the message also says which to write.
pub fn must_be_one_of(words: &[&str], given: &str) -> String {
    let list = words.join(", ");
    match words.iter().find(|word| word.eq_ignore_ascii_case(given)) {
        Some(word) => format!("must be one of: {list}. Write {word} instead of {given}."),
        None => format!("must be one of: {list}."),
    }
}

impl ClosedWords for Currency {
    fn words() -> Vec<&'static str> {
        Currency::ALL.iter().map(|currency| currency.as_str()).collect()
    }
    fn find(text: &str) -> Option<Self> {
        Currency::parse(text)
    }
}

/// Words of a closed set, each at most once. The list may be empty.
#[derive(Clone)]
pub struct EnumList<T>(pub Vec<T>);

impl<T: ClosedWords + PartialEq> Field for EnumList<T> {
    fn schema() -> Value {
        json!({ "type": "array", "uniqueItems": true, "items": EnumField::<T>::schema() })
    }
    fn parse(node: &Node, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        let Node::Array(items) = node else {
            let message = "must be an array of strings.";
            return wrong(Code::ParameterValueInvalid, name, message, entries);
        };
        let mut words = Vec::with_capacity(items.len().min(T::words().len()));
        for (index, item) in items.iter().enumerate() {
            let EnumField(word) = EnumField::parse(item, &format!("{name}.{index}"), entries)?;
            if words.contains(&word) {
                let message = "must name each word once.";
                return wrong(Code::ParameterValueInvalid, name, message, entries);
            }
            words.push(word);
        }
        Some(EnumList(words))
    }
}

/// A list of 1 to `ITEMS_MAX` texts, each of 1 to 100 characters.
#[derive(Clone)]
pub struct TextList<const ITEMS_MAX: usize>(pub Vec<String>);

impl<const ITEMS_MAX: usize> Field for TextList<ITEMS_MAX> {
    fn schema() -> Value {
        json!({ "type": "array", "minItems": 1, "maxItems": ITEMS_MAX, "items": { "type": "string",
            "minLength": 1, "maxLength": 100, "pattern": PLAIN_PATTERN } })
    }
    fn parse(node: &Node, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        let Node::Array(items) = node else {
            return wrong(
                Code::ParameterValueInvalid,
                name,
                "must be an array of strings.",
                entries,
            );
        };
        if items.is_empty() {
            return wrong(
                Code::ParameterMinLengthInvalid,
                name,
                "must have at least one item.",
                entries,
            );
        }
        if items.len() > ITEMS_MAX {
            return wrong(
                Code::ParameterMaxLengthInvalid,
                name,
                format_args!("must have at most {ITEMS_MAX} items."),
                entries,
            );
        }
        let entries_before = entries.len();
        let mut texts = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            if let Some(text) = text(item, 1, 100, &format!("{name}.{index}"), entries) {
                texts.push(text.to_owned());
            }
        }
        (entries.len() == entries_before).then_some(TextList(texts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_judged_by_value() {
        for (token, value) in [
            ("5", Some(5)),
            ("5.0", Some(5)),
            ("5e2", Some(500)),
            ("50e-1", Some(5)),
            ("5.5", None),
            ("1e-1", None),
            ("-0", Some(0)),
        ] {
            assert_eq!(parse_integer(token), value, "{token}");
        }
        assert_eq!(parse_integer("1e400"), Some(i128::MAX));
        assert_eq!(parse_integer("123456789012345678901234567890123456789012345"), None);
    }
}
