//! Amounts of money, which are strings that hold a decimal number.

use serde_json::{Value, json};

use super::wrong;
use crate::http::body::Node;
use crate::http::form::Field;
use crate::kernel::{Code, Currency, Money, RefusalEntry};

/// A positive amount with at most two decimals, in hundredths. Another field names the currency.
#[derive(Clone, Copy)]
pub struct Amount(pub i64);

impl Amount {
    pub const fn of(self, currency: Currency) -> Money {
        Money::new(self.0, currency)
    }
}

impl Field for Amount {
    fn schema() -> Value {
        NonNegativeAmount::schema()
    }
    fn parse(node: &Node, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        match NonNegativeAmount::parse(node, name, entries)? {
            NonNegativeAmount(units) if units <= 0 => {
                entries.push(not_positive(name, "0.01", "999999999999.99"));
                None
            }
            NonNegativeAmount(units) => Some(Amount(units)),
        }
    }
}

/// The refusal of zero, with the smallest and the largest amount that the field takes.
fn not_positive(name: &str, minimum: &str, maximum: &str) -> RefusalEntry {
    let message = format!("{name} must be greater than zero.");
    RefusalEntry::field(Code::ParameterRangeInvalid, name, message)
        .with("minimum", minimum)
        .with("maximum", maximum)
}

/// An amount with at most two decimals, in hundredths; it may be zero. The rule that takes it
/// checks the range, and names both ends in a refusal.
#[derive(Clone, Copy)]
pub struct NonNegativeAmount(pub i64);

impl Field for NonNegativeAmount {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": r"^(0|[1-9][0-9]{0,11})(\.[0-9]{1,2})?$",
            "examples": ["1000.00"] })
    }
    fn parse(node: &Node, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        let parsed = match node {
            Node::Text(text) => Money::parse(text, Currency::Usd),
            _ => None,
        };
        match parsed {
            None => wrong(
                Code::ParameterValueInvalid,
                name,
                "must be a string holding a decimal number without a sign and with at most two \
                 decimals, such as \"1000.00\".",
                entries,
            ),
            Some(money) => Some(NonNegativeAmount(money.units)),
        }
    }
}

/// A positive amount of USDT with at most six decimals. The rule that takes it checks
/// [`TokenAmount::MAX`].
#[derive(Clone, Copy)]
pub struct TokenAmount(pub Money);

impl TokenAmount {
    /// 1,000,000 USDT, far below what the book's sums can hold.
    pub const MAX: Money = Money::new(1_000_000_000_000, Currency::Usdt);
}

impl Field for TokenAmount {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": r"^(0|[1-9][0-9]{0,11})(\.[0-9]{1,6})?$",
            "examples": ["1000.00"] })
    }
    fn parse(node: &Node, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        let parsed = match node {
            Node::Text(text) => Money::parse(text, Currency::Usdt),
            _ => None,
        };
        match parsed {
            None => wrong(
                Code::ParameterValueInvalid,
                name,
                "must be a string holding a decimal number without a sign and with at most six \
                 decimals.",
                entries,
            ),
            Some(money) if money.units <= 0 => {
                entries.push(not_positive(name, "0.000001", &TokenAmount::MAX.to_string()));
                None
            }
            Some(money) => Some(TokenAmount(money)),
        }
    }
}
