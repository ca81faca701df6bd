//! Texts with a grammar, such as account numbers, codes, dates, blockchain addresses and hashes.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{text, wrong};
use crate::chains::KINDS;
use crate::chains::address::ChainAddress;
use crate::chains::blocks::Hash;
use crate::http::body::Node;
use crate::http::form::{Field, TimedCheck, read_alone};
use crate::kernel::countries::{COUNTRIES, is_country};
use crate::kernel::{Code, Now, Refusal, RefusalEntry};

/// Declares a field type over a text with a grammar.
macro_rules! text_fields {
    ($($(#[$doc:meta])* $name:ident ($min:literal..=$max:literal) $pattern:expr => $accepts:expr,
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
                fn parse(node: &Node, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
                    let text = text_of_length(node, $min, $max, $message, name, entries)?;
                    let accepts: fn(&str) -> Option<String> = $accepts;
                    match accepts(text) {
                        Some(value) => Some($name(value)),
                        None => wrong(Code::ParameterValueInvalid, name, $message, entries),
                    }
                }
            }
        )*
    };
}

/// A text whose length is within bounds. For another length, the message also says what is wanted.
fn text_of_length<'a>(
    node: &'a Node,
    min: usize,
    max: usize,
    wanted: &str,
    name: &str,
    entries: &mut Vec<RefusalEntry>,
) -> Option<&'a str> {
    let first = entries.len();
    let found = text(node, min, max, name, entries);
    for entry in &mut entries[first..] {
        if matches!(entry.code, Code::ParameterMinLengthInvalid | Code::ParameterMaxLengthInvalid) {
            entry.message.push_str(&format!(" It {wanted}"));
        }
    }
    found
}

fn keep_if(text: &str, holds: bool) -> Option<String> {
    holds.then(|| text.to_owned())
}

text_fields! {
    /// 5 to 20 letters or digits, as a bank writes them; leading zeros count.
    AccountNumberText (5..=20) "^[A-Za-z0-9]{5,20}$" => |text| keep_if(text,
        text.bytes().all(|b| b.is_ascii_alphanumeric())),
        "must consist of letters and digits.";
    /// An IFSC: four letters of the bank, a zero, six of the branch (RBI's RTGS guide);
    /// upper-cased.
    Ifsc (11..=11) "^[A-Za-z]{4}0[A-Za-z0-9]{6}$" => |text| {
            let text = text.to_ascii_uppercase();
            let bytes = text.as_bytes();
            let holds = bytes.len() == 11
                && bytes[..4].iter().all(u8::is_ascii_uppercase)
                && bytes[4] == b'0'
                && bytes[5..].iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
            holds.then_some(text)
        },
        "must be four letters, a zero, and six letters or digits, such as HDFC0000001.";
    /// A plausible email address: one `@`, a dotted domain, no spaces.
    Email (3..=254) EMAIL_PATTERN => |text| {
            let plausible = text.split_once('@').is_some_and(|(local, domain)| {
                !local.is_empty()
                    && !domain.contains('@')
                    && domain.contains('.')
                    && domain.split('.').all(|label| !label.is_empty())
            });
            keep_if(text, plausible && !text.chars().any(char::is_whitespace))
        },
        "must be an email address, such as name@example.com.";
    /// E.164: a plus, a country code and the number, 7 to 15 digits (ITU-T E.164).
    Phone (8..=16) r"^\+[1-9][0-9]{6,14}$" => |text| {
            let digits = text.strip_prefix('+').unwrap_or("");
            keep_if(text,
                (7..=15).contains(&digits.len())
                    && digits.bytes().all(|b| b.is_ascii_digit())
                    && !digits.starts_with('0'))
        },
        "must be in E.164 form, such as +971501234567.";
    /// An Indian permanent account number, upper-cased.
    Pan (10..=10) "^[A-Za-z]{5}[0-9]{4}[A-Za-z]$" => |text| {
            let text = text.to_ascii_uppercase();
            let b = text.as_bytes();
            let holds = b.len() == 10
                && b[..5].iter().all(u8::is_ascii_uppercase)
                && b[5..9].iter().all(u8::is_ascii_digit)
                && b[9].is_ascii_uppercase();
            holds.then_some(text)
        },
        "must be five letters, four digits and a letter, such as ABCDE1234F.";
    /// A passport number, kept as written.
    PassportNumber (6..=20) "^[A-Za-z0-9]{6,20}$" => |text| keep_if(text,
        text.bytes().all(|b| b.is_ascii_alphanumeric())),
        "must consist of letters and digits.";
    /// A number of another identity document.
    DocumentNumber (4..=40) "^[A-Za-z0-9][A-Za-z0-9 ./-]{3,39}$" => |text| keep_if(text,
        text.bytes().all(|b| b.is_ascii_alphanumeric() || b" ./-".contains(&b))
            && text.as_bytes()[0].is_ascii_alphanumeric()),
        "must consist of letters, digits, spaces, dots, slashes and hyphens.";
    /// The caller's own reference of an object: printable ASCII.
    CallerReference (1..=64) "^[ -~]{1,64}$" => |text| keep_if(text,
        text.bytes().all(|b| (b' '..=b'~').contains(&b))),
        "must consist of printable ASCII characters.";
    /// Where a browser is sent: https, a host, and no user information.
    HttpsUrl (9..=2000) HTTPS_URL_PATTERN => https_url,
        "must be an https:// address without user information, such as https://example.com/thanks.";
    /// A day of birth: `YYYY-MM-DD`, a day that exists, from 1900 to 2099. A form is read without a
    /// clock, so [`BirthDate::must_be_past`] is a check of its own.
    BirthDate (10..=10) DATE_PATTERN => |text| {
            let shape = text.len() == 10 && text.bytes().enumerate().all(|(i,
                b)| if i == 4 || i == 7 { b == b'-' } else { b.is_ascii_digit() });
            keep_if(text,
                shape
                    && (text.starts_with("19") || text.starts_with("20"))
                    && text.parse::<jiff::civil::Date>().is_ok())
        },
        "must be a date that exists, not before 1900, written YYYY-MM-DD.";
    /// An ISO 3166-1 alpha-2 country code.
    Country (2..=2) COUNTRY_PATTERN.as_str() => |text| keep_if(text, is_country(text)),
        "must be an ISO 3166-1 alpha-2 country code in upper case, such as AE.";
}

/// What a field with a [`BirthDate`] is called.
const BIRTH_DATE_NAME: &str = "date_of_birth";

impl BirthDate {
    /// The check that the `date_of_birth` of a body is past. `None` if the body has no valid one.
    pub fn must_be_past(body: &Node) -> Option<TimedCheck> {
        let date: BirthDate = read_alone(body.get(BIRTH_DATE_NAME))?;
        Some(Box::new(move |now| date.check_past(now)))
    }

    /// Refuses a day that is not over yet in UTC.
    fn check_past(&self, now: &Now) -> Result<(), Refusal> {
        let today = jiff::Timestamp::from_second(now.business())
            .map(|at| jiff::tz::Offset::UTC.to_datetime(at).date().to_string());
        // Dates in this form compare as their texts do.
        if today.is_ok_and(|today| self.0 < today) {
            return Ok(());
        }
        let message = "date_of_birth must be a past date.";
        Err(Refusal::field(Code::ParameterValueInvalid, BIRTH_DATE_NAME, message))
    }
}

const EMAIL_PATTERN: &str = concat!(
    r"^[^@\s\u0000-\u001F\u007F-\u009F]+@[^@\s.\u0000-\u001F\u007F-\u009F]+",
    r"(\.[^@\s.\u0000-\u001F\u007F-\u009F]+)+$"
);
const HTTPS_URL_PATTERN: &str =
    r"^https://[^\s@\\/?#\u0000-\u001F\u007F-\u009F]+([/?#][^\s\\\u0000-\u001F\u007F-\u009F]*)?$";
/// The days of 1900 to 2099.
const DATE_PATTERN: &str = "^((19|20)[0-9]{2}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])\
    |(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))\
    |(19(0[48]|[2468][048]|[13579][26])|20([02468][048]|[13579][26]))-02-29)$";

/// A URL as a browser parses it, so that no two readers see different hosts in it.
fn https_url(text: &str) -> Option<String> {
    let rest = text.strip_prefix("https://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_plain = !text.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\');
    let url = url::Url::parse(text).ok().filter(|_| is_plain && !authority.contains('@'))?;
    (!authority.is_empty()).then(|| url.to_string())
}

/// [`COUNTRIES`] grouped by first letter: `^(A[DEF…]|B[AB…]|…)$`.
static COUNTRY_PATTERN: LazyLock<String> = LazyLock::new(|| {
    let mut pattern = String::from("^(");
    let mut first = "";
    for code in COUNTRIES.split(' ') {
        let (letter, second) = code.split_at(1);
        match (first, letter) {
            (first, letter) if first == letter => {}
            ("", _) => pattern.push_str(&format!("{letter}[")),
            _ => pattern.push_str(&format!("]|{letter}[")),
        }
        first = letter;
        pattern.push_str(second);
    }
    pattern + "])$"
});

/// A blockchain address in the form of any chain. Whether it is of the right chain is judged later,
/// with the object.
impl Field for ChainAddress {
    fn schema() -> Value {
        let (length_min, length_max) = address_lengths();
        let patterns: Vec<_> =
            KINDS.iter().rev().map(|kind| kind.address_grammar().pattern).collect();
        json!({ "type": "string", "minLength": length_min, "maxLength": length_max,
            "pattern": format!("^({})$", patterns.join("|")) })
    }
    fn parse(node: &Node, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        let (length_min, length_max) = address_lengths();
        let text = text(node, length_min, length_max, name, entries)?;
        match ChainAddress::parse(text) {
            Ok(address) => Some(address),
            Err(fault) => wrong(
                Code::ParameterValueInvalid,
                name,
                format_args!("is not an address: {fault}"),
                entries,
            ),
        }
    }
}

/// The lengths of the shortest and the longest address of any chain, in characters.
fn address_lengths() -> (usize, usize) {
    let grammars = || KINDS.iter().map(|kind| kind.address_grammar());
    (
        grammars().map(|grammar| grammar.length_min).min().unwrap_or(1),
        grammars().map(|grammar| grammar.length_max).max().unwrap_or(1),
    )
}

/// The hash of a transaction: 64 hexadecimal digits, with or without `0x`.
impl Field for Hash {
    fn schema() -> Value {
        json!({ "type": "string", "minLength": 64, "maxLength": 66,
            "pattern": "^(0x)?[0-9A-Fa-f]{64}$" })
    }
    fn parse(node: &Node, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        match Hash::parse(text(node, 64, 66, name, entries)?) {
            Some(hash) => Some(hash),
            None => wrong(
                Code::ParameterValueInvalid,
                name,
                "must be 64 hexadecimal digits, with or without 0x before them.",
                entries,
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Text;
    use super::*;

    fn judge<T: Field>(text: &str) -> Result<T, Code> {
        let mut entries = Vec::new();
        let value = T::read(Some(&Node::Text(text.into())), "field", &mut entries);
        value.ok_or_else(|| entries[0].code)
    }

    #[test]
    fn the_refusal_of_a_length_says_what_is_wanted() {
        fn message<T: Field>(text: &str) -> String {
            let mut entries = Vec::new();
            assert!(T::read(Some(&Node::Text(text.into())), "field", &mut entries).is_none());
            entries.swap_remove(0).message
        }
        let exact = "field must have exactly 11 characters. It must be four letters, a zero, and \
                     six letters or digits, such as HDFC0000001.";
        assert_eq!([message::<Ifsc>("HDFC0"), message::<Ifsc>("HDFC00000012")], [exact; 2]);
        let number = |bound| {
            format!("field must have {bound} characters. It must consist of letters and digits.")
        };
        assert_eq!(message::<AccountNumberText>("1234"), number("at least 5"));
        assert_eq!(message::<AccountNumberText>(&"1".repeat(21)), number("at most 20"));
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
            assert_eq!(judge::<BirthDate>(text).is_ok(), ok, "{text}");
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
        assert_eq!(judge::<Pan>("abcde1234f").map(|pan| pan.0), Ok("ABCDE1234F".to_owned()));
        assert!(judge::<Pan>("ABCDE12345").is_err() && judge::<Pan>("ABCD\u{c9}1234F").is_err());
        assert!(judge::<CallerReference>("PO 7/~").is_ok());
        assert!(judge::<CallerReference>("PO\u{e9}").is_err());
        let url = "https://shop.example.com:8443/@ravi/7?paid=1#thanks";
        assert_eq!(judge::<HttpsUrl>(url).unwrap().0, url);
        assert_eq!(
            judge::<HttpsUrl>("https://bücher.example/\"><b>").unwrap().0,
            "https://xn--bcher-kva.example/%22%3E%3Cb%3E"
        );
        for refused in [
            "http://example.com/",
            "HTTPS://example.com/",
            "https:example.com",
            "https://",
            "https:///x",
            "https://a@example.com/",
            "https://example.com\\@evil.example/",
            "https://exa mple.com/",
            "https://example.com/\t",
            "javascript:alert(1)//https://",
        ] {
            assert!(judge::<HttpsUrl>(refused).is_err(), "{refused}");
        }
        assert_eq!(COUNTRIES.split(' ').count(), 249);
    }
}
