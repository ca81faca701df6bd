//! The types of fields that requests are made of, each parsed into a value that cannot be wrong.

use serde_json::{Value, json};

use super::body::Node;
use super::form::Field;
use crate::chains::address::Address;
use crate::chains::evm::Hash;
use crate::kernel::Currency;
use crate::kernel::metadata::{
    METADATA_KEY_LENGTH_MAX, METADATA_PAIRS_MAX, METADATA_VALUE_LENGTH_MAX,
};
use crate::kernel::{Code, Id, Kind, Metadata, MetadataPatch, Money, RefusalEntry};

fn wrong<T>(
    code: Code,
    name: &str,
    message: impl std::fmt::Display,
    faults: &mut Vec<RefusalEntry>,
) -> Option<T> {
    faults.push(RefusalEntry::field(code, name, format!("{name} {message}")));
    None
}

/// A text without control characters, whose length in characters lies between the bounds.
fn text<'a>(
    node: &'a Node,
    min: usize,
    max: usize,
    name: &str,
    faults: &mut Vec<RefusalEntry>,
) -> Option<&'a str> {
    let Node::Text(text) = node else {
        return wrong(Code::ParameterValueInvalid, name, "must be a string.", faults);
    };
    if text.chars().any(char::is_control) {
        return wrong(
            Code::ParameterValueInvalid,
            name,
            "must not hold control characters.",
            faults,
        );
    }
    let length = text.chars().count();
    if length < min {
        return wrong(
            Code::ParameterMinLengthInvalid,
            name,
            format_args!("must have at least {min} characters."),
            faults,
        );
    }
    if length > max {
        return wrong(
            Code::ParameterMaxLengthInvalid,
            name,
            format_args!("must have at most {max} characters."),
            faults,
        );
    }
    Some(text)
}

/// For schemas: no control characters.
const PLAIN_PATTERN: &str = r"^[^\u0000-\u001F\u007F-\u009F]*$";
/// For schemas: the same, and something to be seen.
const NOT_BLANK_PATTERN: &str = r"^[^\u0000-\u001F\u007F-\u009F]*[^\u0000-\u001F\u007F-\u009F\s][^\u0000-\u001F\u007F-\u009F]*$";

/// Any text of `MIN` to `MAX` characters without control characters.
#[derive(Clone)]
pub struct Text<const MIN: usize, const MAX: usize>(pub String);

impl<const MIN: usize, const MAX: usize> Field for Text<MIN, MAX> {
    fn schema() -> Value {
        json!({ "type": "string", "minLength": MIN, "maxLength": MAX,
            "pattern": NOT_BLANK_PATTERN })
    }
    fn parse(node: &Node, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        let text = text(node, MIN, MAX, name, faults)?;
        if text.trim().is_empty() {
            return wrong(Code::ParameterValueInvalid, name, "must not be blank.", faults);
        }
        Some(Text(text.to_owned()))
    }
}

impl Field for bool {
    fn schema() -> Value {
        json!({ "type": "boolean" })
    }
    fn parse(node: &Node, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        match node {
            Node::Bool(value) => Some(*value),
            _ => wrong(Code::ParameterValueInvalid, name, "must be true or false.", faults),
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
    fn parse(node: &Node, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        let Node::Number(token) = node else {
            return wrong(Code::ParameterValueInvalid, name, "must be a whole number.", faults);
        };
        match parse_integer(token) {
            None => wrong(Code::ParameterValueInvalid, name, "must be a whole number.", faults),
            Some(value) if (i128::from(MIN)..=i128::from(MAX)).contains(&value) => {
                i64::try_from(value).ok().map(Int)
            }
            Some(_) => {
                let message = format!("{name} must be between {MIN} and {MAX}.");
                faults.push(
                    RefusalEntry::field(Code::ParameterRangeInvalid, name, message)
                        .with("minimum", MIN.to_string())
                        .with("maximum", MAX.to_string()),
                );
                None
            }
        }
    }
}

/// A JSON number token as an integer: also `5.0` and `5e0`, which JSON Schema counts as integers.
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
    // Larger than any bound of ours, or not whole.
    (scale > 30).then_some(if mantissa < 0 { i128::MIN } else { i128::MAX })
}

/// A positive amount with at most two decimals, in hundredths; which currency, another field says.
#[derive(Clone, Copy)]
pub struct Amount(pub i64);

impl Amount {
    pub const fn of(self, currency: Currency) -> Money {
        Money::new(self.0, currency)
    }
}

impl Field for Amount {
    fn schema() -> Value {
        RangedAmount::schema()
    }
    fn parse(node: &Node, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        match RangedAmount::parse(node, name, faults)? {
            RangedAmount(units) if units <= 0 => {
                wrong(Code::ParameterRangeInvalid, name, "must be greater than zero.", faults)
            }
            RangedAmount(units) => Some(Amount(units)),
        }
    }
}

/// An amount of an ISO 4217 currency with two decimals, zero too: whoever takes it judges its range
/// and names both ends.
#[derive(Clone, Copy)]
pub struct RangedAmount(pub i64);

impl Field for RangedAmount {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": r"^(0|[1-9][0-9]{0,11})(\.[0-9]{1,2})?$",
            "examples": ["1000.00"] })
    }
    fn parse(node: &Node, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        let parsed = match node {
            Node::Text(text) => Money::parse(text, Currency::Usd),
            _ => None,
        };
        match parsed {
            None => wrong(
                Code::ParameterValueInvalid,
                name,
                "must be a string holding a decimal number with at most two decimals, such as \
                 \"1000.00\".",
                faults,
            ),
            Some(money) => Some(RangedAmount(money.units)),
        }
    }
}

/// A positive amount of a token with at most six decimals.
#[derive(Clone, Copy)]
pub struct TokenAmount(pub Money);

impl Field for TokenAmount {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": r"^(0|[1-9][0-9]{0,11})(\.[0-9]{1,6})?$",
            "examples": ["1000.00"] })
    }
    fn parse(node: &Node, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        let parsed = match node {
            Node::Text(text) => Money::parse(text, Currency::Usdt),
            _ => None,
        };
        match parsed {
            None => wrong(
                Code::ParameterValueInvalid,
                name,
                "must be a string holding a decimal number with at most six decimals.",
                faults,
            ),
            Some(money) if money.units <= 0 => {
                wrong(Code::ParameterRangeInvalid, name, "must be greater than zero.", faults)
            }
            Some(money) => Some(TokenAmount(money)),
        }
    }
}

/// A reference to another object. A text that is no identifier of that kind refers to nothing and
/// is judged with the references that do not exist.
#[derive(Clone, Copy)]
pub struct Reference<K: Kind>(pub Option<Id<K>>);

impl<K: Kind + Clone> Field for Reference<K> {
    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1, "maxLength": 255,
            "examples": [format!("{}_01JDK3Y5M8Q2X7N4V6T9R0ABCD", K::KIND.as_str())] })
    }
    fn parse(node: &Node, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        let text = text(node, 1, 255, name, faults)?;
        Some(Reference(Id::parse(text)))
    }
}

/// One word of a closed set.
#[derive(Clone, Copy)]
pub struct EnumField<T>(pub T);

/// A closed set of words that a field can take.
pub trait Words: Copy + Send + 'static {
    fn words() -> Vec<&'static str>;
    fn find(text: &str) -> Option<Self>;
}

/// Makes a `words!` enum usable as a field.
#[macro_export]
macro_rules! enum_fields {
    ($($type:ty),* $(,)?) => {
        $(impl $crate::http::fields::Words for $type {
            fn words() -> Vec<&'static str> { <$type>::WORDS.to_vec() }
            fn find(text: &str) -> Option<Self> { <$type>::parse(text) }
        })*
    };
}

impl<T: Words> Field for EnumField<T> {
    fn schema() -> Value {
        json!({ "type": "string", "enum": T::words() })
    }
    fn parse(node: &Node, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        let found = match node {
            Node::Text(text) => T::find(text),
            _ => None,
        };
        match found {
            Some(word) => Some(EnumField(word)),
            None => wrong(
                Code::ParameterValueInvalid,
                name,
                format_args!("must be one of: {}.", T::words().join(", ")),
                faults,
            ),
        }
    }
}

impl Words for Currency {
    fn words() -> Vec<&'static str> {
        Currency::ALL.iter().map(|currency| currency.as_str()).collect()
    }
    fn find(text: &str) -> Option<Self> {
        Currency::parse(text)
    }
}

/// Declares a field type over a text with a grammar.
macro_rules! text_fields {
    ($($(#[$doc:meta])* $name:ident ($min:literal..=$max:literal) $pattern:literal $accepts:expr,
        $message:literal;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone)]
            pub struct $name(pub String);

            impl Field for $name {
                fn schema() -> Value {
                    json!({ "type": "string", "minLength": $min, "maxLength": $max,
                        "pattern": $pattern })
                }
                fn parse(node: &Node, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
                    let text = text(node, $min, $max, name, faults)?;
                    let accepts: fn(&str) -> Option<String> = $accepts;
                    match accepts(text) {
                        Some(value) => Some($name(value)),
                        None => wrong(Code::ParameterValueInvalid, name, $message, faults),
                    }
                }
            }
        )*
    };
}

fn keep_if(text: &str, holds: bool) -> Option<String> {
    holds.then(|| text.to_owned())
}

text_fields! {
    /// 5 to 20 letters or digits, as a bank writes them; leading zeros count.
    AccountNumber (5..=20) "^[A-Za-z0-9]{5,20}$" |text| keep_if(text,
        text.bytes().all(|b| b.is_ascii_alphanumeric())),
        "must consist of letters and digits.";
    /// An IFSC: four letters of the bank, a zero, six of the branch (RBI's RTGS guide);
    /// upper-cased.
    Ifsc (11..=11) "^[A-Za-z]{4}0[A-Za-z0-9]{6}$" |text| {
            let text = text.to_ascii_uppercase();
            let bytes = text.as_bytes();
            let holds = bytes.len() == 11 && bytes[..4].iter().all(u8::is_ascii_uppercase) && bytes[4] == b'0'
                && bytes[5..].iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
            holds.then_some(text)
        },
        "must be four letters, a zero, and six letters or digits.";
    /// A plausible address: one `@`, a dotted domain, no spaces.
    Email (3..=254) r"^[^@\s]+@[^@\s]+\.[^@\s.]+$" |text| {
            let plausible = text.split_once('@').is_some_and(|(local, domain)| {
                !local.is_empty() && !domain.contains('@') && domain.contains('.') && domain.split('.').all(|label| !label.is_empty())
            });
            keep_if(text, plausible && !text.chars().any(char::is_whitespace))
        },
        "must be an email address.";
    /// E.164: a plus, a country code and the number, 7 to 15 digits (ITU-T E.164).
    Phone (8..=16) r"^\+[1-9][0-9]{6,14}$" |text| {
            let digits = text.strip_prefix('+').unwrap_or("");
            keep_if(text,
                (7..=15).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0'))
        },
        "must be in E.164 form, such as +971501234567.";
    /// An Indian permanent account number.
    Pan (10..=10) "^[A-Z]{5}[0-9]{4}[A-Z]$" |text| {
            let b = text.as_bytes();
            keep_if(text,
                b.len() == 10 && b[..5].iter().all(u8::is_ascii_uppercase) && b[5..9].iter().all(u8::is_ascii_digit) && b[9].is_ascii_uppercase())
        },
        "must be five letters, four digits and a letter.";
    /// A passport number, upper-cased by nobody: it is kept as written.
    PassportNumber (6..=20) "^[A-Za-z0-9]{6,20}$" |text| keep_if(text,
        text.bytes().all(|b| b.is_ascii_alphanumeric())),
        "must consist of letters and digits.";
    /// A number of another identity document.
    DocumentNumber (4..=40) "^[A-Za-z0-9][A-Za-z0-9 ./-]{3,39}$" |text| keep_if(text,
        text.bytes().all(|b| b.is_ascii_alphanumeric() || b" ./-".contains(&b)) && text.as_bytes()[0].is_ascii_alphanumeric()),
        "must consist of letters, digits, spaces, dots, slashes and hyphens.";
    /// A date without a time: `YYYY-MM-DD`, a day that exists, not in the 1800s.
    Date (10..=10) "^(19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}$" |text| {
            let shape = text.len() == 10 && text.bytes().enumerate().all(|(i,
                b)| if i == 4 || i == 7 { b == b'-' } else { b.is_ascii_digit() });
            keep_if(text,
                shape && (text.starts_with("19") || text.starts_with("20")) && text.parse::<jiff::civil::Date>().is_ok())
        },
        "must be a date that exists, written YYYY-MM-DD.";
    /// An ISO 3166-1 alpha-2 country code.
    Country (2..=2) "^[A-Z]{2}$" |text| keep_if(text, is_country(text)),
        "must be an ISO 3166-1 alpha-2 country code in upper case.";
}

/// The officially assigned ISO 3166-1 alpha-2 codes.
const COUNTRIES: &str = "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI \
 BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ \
 DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ \
 GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN \
 KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS \
 MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT \
 PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF \
 TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM \
 ZW";

pub fn is_country(text: &str) -> bool {
    text.len() == 2 && COUNTRIES.split(' ').any(|code| code == text)
}

/// An address: TRON's base58check, or hexadecimal on other chains.
impl Field for Address {
    fn schema() -> Value {
        json!({ "type": "string", "minLength": 34, "maxLength": 42,
            "pattern": "^(T[1-9A-HJ-NP-Za-km-z]{33}|0x[0-9A-Fa-f]{40})$" })
    }
    fn parse(node: &Node, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        let text = text(node, 34, 42, name, faults)?;
        match Address::parse(text) {
            Ok(address) => Some(address),
            Err(fault) => wrong(
                Code::ParameterValueInvalid,
                name,
                format_args!("is not an address: {fault}"),
                faults,
            ),
        }
    }
}

/// The hash of a transaction: 64 hexadecimal digits, with or without `0x`.
impl Field for Hash {
    fn schema() -> Value {
        json!({ "type": "string", "minLength": 64, "maxLength": 66,
            "pattern": "^(0x)?[0-9A-Fa-f]{64}$" })
    }
    fn parse(node: &Node, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        match Hash::parse(text(node, 64, 66, name, faults)?) {
            Some(hash) => Some(hash),
            None => wrong(
                Code::ParameterValueInvalid,
                name,
                "must be 64 hexadecimal digits, with or without 0x before them.",
                faults,
            ),
        }
    }
}

fn metadata_schema(value: Value) -> Value {
    json!({ "type": "object", "maxProperties": METADATA_PAIRS_MAX,
        "propertyNames": { "minLength": 1, "maxLength": METADATA_KEY_LENGTH_MAX,
        "pattern": PLAIN_PATTERN }, "additionalProperties": value })
}

/// Reads the pairs; `None` values are the nulls of an update, which nothing else takes.
fn metadata_pairs(
    node: &Node,
    takes_null: bool,
    name: &str,
    faults: &mut Vec<RefusalEntry>,
) -> Option<Vec<(String, Option<String>)>> {
    let Node::Object(members) = node else {
        return wrong(Code::ParameterValueInvalid, name, "must be an object of strings.", faults);
    };
    let faults_before = faults.len();
    let mut pairs = Vec::with_capacity(members.len());
    for (key, value) in members {
        let shown: String =
            key.chars().filter(|c| !c.is_control()).take(METADATA_KEY_LENGTH_MAX).collect();
        let pair_name = format!("{name}.{shown}");
        if text(&Node::Text(key.clone()), 1, METADATA_KEY_LENGTH_MAX, &pair_name, faults).is_none()
        {
            continue;
        }
        match value {
            Node::Null if takes_null => pairs.push((key.clone(), None)),
            value => {
                if let Some(value) = text(value, 1, METADATA_VALUE_LENGTH_MAX, &pair_name, faults) {
                    pairs.push((key.clone(), Some(value.to_owned())));
                }
            }
        }
    }
    if members.len() > METADATA_PAIRS_MAX {
        return wrong(
            Code::ParameterMaxLengthInvalid,
            name,
            format_args!("must have at most {METADATA_PAIRS_MAX} pairs."),
            faults,
        );
    }
    (faults.len() == faults_before).then_some(pairs)
}

impl Field for Metadata {
    const REQUIRED: bool = false;
    fn schema() -> Value {
        nullable_metadata(metadata_schema(
            json!({ "type": "string", "minLength": 1, "maxLength": METADATA_VALUE_LENGTH_MAX,
                "pattern": PLAIN_PATTERN }),
        ))
    }
    fn read(node: Option<&Node>, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        match node {
            None | Some(Node::Null) => Some(Metadata::default()),
            Some(node) => Self::parse(node, name, faults),
        }
    }
    fn parse(node: &Node, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        let pairs = metadata_pairs(node, false, name, faults)?;
        let values = pairs.into_iter().filter_map(|(key, value)| Some((key, value?)));
        Some(Metadata(values.collect()))
    }
}

fn nullable_metadata(mut schema: Value) -> Value {
    schema["type"] = json!(["object", "null"]);
    schema
}

impl Field for MetadataPatch {
    const REQUIRED: bool = false;
    fn schema() -> Value {
        nullable_metadata(metadata_schema(json!({ "type": ["string", "null"], "minLength": 1,
                "maxLength": METADATA_VALUE_LENGTH_MAX, "pattern": PLAIN_PATTERN })))
    }
    fn read(node: Option<&Node>, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        match node {
            None => Some(MetadataPatch::default()),
            Some(Node::Null) => Some(MetadataPatch { clears: true, pairs: Vec::new() }),
            Some(node) => Self::parse(node, name, faults),
        }
    }
    fn parse(node: &Node, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        let pairs = metadata_pairs(node, true, name, faults)?;
        Some(MetadataPatch { clears: false, pairs })
    }
}

/// A list of texts, each of `MIN_LENGTH..=MAX_LENGTH` characters.
#[derive(Clone)]
pub struct TextList<const ITEMS_MAX: usize>(pub Vec<String>);

impl<const ITEMS_MAX: usize> Field for TextList<ITEMS_MAX> {
    fn schema() -> Value {
        json!({ "type": "array", "minItems": 1, "maxItems": ITEMS_MAX, "items": { "type": "string",
            "minLength": 1, "maxLength": 100 } })
    }
    fn parse(node: &Node, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        let Node::Array(items) = node else {
            return wrong(
                Code::ParameterValueInvalid,
                name,
                "must be an array of strings.",
                faults,
            );
        };
        if items.is_empty() {
            return wrong(
                Code::ParameterMinLengthInvalid,
                name,
                "must have at least one item.",
                faults,
            );
        }
        if items.len() > ITEMS_MAX {
            return wrong(
                Code::ParameterMaxLengthInvalid,
                name,
                format_args!("must have at most {ITEMS_MAX} items."),
                faults,
            );
        }
        let faults_before = faults.len();
        let mut texts = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            if let Some(text) = text(item, 1, 100, &format!("{name}.{index}"), faults) {
                texts.push(text.to_owned());
            }
        }
        (faults.len() == faults_before).then_some(TextList(texts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge<T: Field>(text: &str) -> Result<T, Code> {
        let mut faults = Vec::new();
        let value = T::read(Some(&Node::Text(text.into())), "field", &mut faults);
        value.ok_or_else(|| faults[0].code)
    }

    #[test]
    fn grammars_accept_and_refuse() {
        for (text, ok) in [
            ("HDFC0000001", true),
            ("hdfc0abcdef", true),
            ("HDFC1000001", false),
            ("HD1C0000001", false),
            ("HDFC0\u{1F600}0", false),
        ] {
            assert_eq!(judge::<Ifsc>(text).is_ok(), ok, "{text}");
        }
        assert_eq!(judge::<Ifsc>("HDFC0").err(), Some(Code::ParameterMinLengthInvalid));
        assert_eq!(judge::<Ifsc>("HDFC00000012").err(), Some(Code::ParameterMaxLengthInvalid));
        assert_eq!(judge::<Ifsc>("").err(), Some(Code::ParameterEmpty));
        for (text, ok) in [
            ("2000-02-29", true),
            ("1999-02-29", false),
            ("2000-13-01", false),
            ("2000-1-011", false),
            ("1800-01-01", false),
        ] {
            assert_eq!(judge::<Date>(text).is_ok(), ok, "{text}");
        }
        for (text, ok) in [
            ("+971501234567", true),
            ("971501234567", false),
            ("+0123456789", false),
            ("+1234567", true),
            ("+12345678901234567", false),
        ] {
            assert_eq!(judge::<Phone>(text).is_ok(), ok, "{text}");
        }
        for (text, ok) in [
            ("a@b.co", true),
            ("a@b", false),
            ("a b@c.de", false),
            ("a@@b.co", false),
            ("a@.co", false),
            ("@b.co", false),
        ] {
            assert_eq!(judge::<Email>(text).is_ok(), ok, "{text}");
        }
        assert!(
            judge::<Country>("IN").is_ok()
                && judge::<Country>("XX").is_err()
                && judge::<Country>("in").is_err()
        );
        assert_eq!(judge::<Text<1, 5>>("a\0b").err(), Some(Code::ParameterValueInvalid));
        assert_eq!(COUNTRIES.split(' ').count(), 249);
    }

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
