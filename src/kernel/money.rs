//! Money: integers in a currency's smallest unit, and exchange rates in millionths. No floats.

use std::fmt;

use super::refusal::StoreError;

/// What can be held, sold or paid.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Currency {
    Inr,
    Usd,
    Usdt,
}

impl Currency {
    pub const ALL: [Currency; 3] = [Currency::Inr, Currency::Usd, Currency::Usdt];
    pub const fn as_str(self) -> &'static str {
        match self {
            Currency::Inr => "INR",
            Currency::Usd => "USD",
            Currency::Usdt => "USDT",
        }
    }
    pub fn parse(text: &str) -> Option<Currency> {
        Currency::ALL.into_iter().find(|currency| currency.as_str() == text)
    }
    /// Decimal places of the smallest unit: ISO 4217 for the currencies, the token's `decimals()`
    /// for USDT.
    pub const fn decimals(self) -> u32 {
        match self {
            Currency::Inr | Currency::Usd => 2,
            Currency::Usdt => 6,
        }
    }
}

impl serde::Serialize for Currency {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
impl schemars::JsonSchema for Currency {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "currency".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "enum": ["INR", "USD", "USDT"] })
    }
}

/// An amount of one currency, in its smallest unit (paisa, cent, millionth of a USDT).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Money {
    pub units: i64,
    pub currency: Currency,
}

/// A fault of the service in computing amounts.
fn arithmetic_fault(what: &str) -> StoreError {
    StoreError::Broken(format!("money arithmetic: {what}"))
}

impl Money {
    pub const fn new(units: i64, currency: Currency) -> Money {
        Money { units, currency }
    }
    pub const fn zero(currency: Currency) -> Money {
        Money { units: 0, currency }
    }
    pub const fn is_zero(self) -> bool {
        self.units == 0
    }
    /// The sum. `Err` for two different currencies or an overflow.
    pub fn plus(self, other: Money) -> Result<Money, StoreError> {
        if self.currency != other.currency {
            return Err(arithmetic_fault("two currencies"));
        }
        let units =
            self.units.checked_add(other.units).ok_or_else(|| arithmetic_fault("overflow"))?;
        Ok(Money::new(units, self.currency))
    }
    /// The difference, which may be negative. `Err` as for [`Money::plus`].
    pub fn minus(self, other: Money) -> Result<Money, StoreError> {
        let negated = other.units.checked_neg().ok_or_else(|| arithmetic_fault("overflow"))?;
        self.plus(Money::new(negated, other.currency))
    }
    /// The same face value in another currency, such as USD in USDT (1 USDT counts as 1 USD). Going
    /// to fewer decimals rounds down.
    pub fn at_par(self, currency: Currency) -> Result<Money, StoreError> {
        let from = self.currency.decimals();
        let to = currency.decimals();
        let units = if to >= from {
            self.units.checked_mul(10_i64.pow(to - from))
        } else {
            Some(self.units.div_euclid(10_i64.pow(from - to)))
        };
        units.map(|units| Money::new(units, currency)).ok_or_else(|| arithmetic_fault("overflow"))
    }
    /// This amount in `currency` at `rate`, rounded down to that currency's smallest unit.
    pub fn exchanged(self, rate: Rate, currency: Currency) -> Result<Money, StoreError> {
        let scale_up = 10_i128.pow(currency.decimals());
        let scale_down = 10_i128.pow(self.currency.decimals()) * i128::from(Rate::SCALE);
        let units = (i128::from(self.units) * i128::from(rate.0) * scale_up).div_euclid(scale_down);
        i64::try_from(units)
            .map(|units| Money::new(units, currency))
            .map_err(|_| arithmetic_fault("overflow"))
    }

    /// Parses the grammar of requests: `^(0|[1-9][0-9]{0,11})(\.[0-9]{1,n})?$` with `n` the
    /// currency's decimals.
    pub fn parse(text: &str, currency: Currency) -> Option<Money> {
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (text, None),
        };
        let digits =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let whole_is_plain =
            digits(whole) && whole.len() <= 12 && (whole == "0" || !whole.starts_with('0'));
        let decimals = currency.decimals() as usize;
        let fraction_is_plain = fraction.is_none_or(|part| digits(part) && part.len() <= decimals);
        if !whole_is_plain || !fraction_is_plain {
            return None;
        }
        let mut units: i64 = whole.parse().ok()?;
        units = units.checked_mul(10_i64.pow(currency.decimals()))?;
        if let Some(fraction) = fraction {
            let scale = 10_i64.pow((decimals - fraction.len()) as u32);
            units = units.checked_add(fraction.parse::<i64>().ok()?.checked_mul(scale)?)?;
        }
        Some(Money::new(units, currency))
    }
}

/// Shows two decimals. USDT shows more, up to six, if they are not zero.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = 10_u64.pow(self.currency.decimals());
        let sign = if self.units < 0 { "-" } else { "" };
        let whole = self.units.unsigned_abs() / scale;
        let mut fraction = self.units.unsigned_abs() % scale;
        let mut width = self.currency.decimals() as usize;
        while width > 2 && fraction.is_multiple_of(10) {
            fraction /= 10;
            width -= 1;
        }
        write!(f, "{sign}{whole}.{fraction:0width$}")
    }
}
impl serde::Serialize for Money {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl schemars::JsonSchema for Money {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "amount".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": r"^-?(0|[1-9][0-9]*)\.[0-9]{2,6}$",
            "examples": ["1000.00"] })
    }
}

/// An exchange rate in millionths: INR for one USD, or USD for one USDT.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub struct Rate(pub i64);

impl Rate {
    /// The rate 1, in millionths.
    pub const SCALE: i64 = 1_000_000;

    /// Parses a positive decimal of at most six places.
    pub fn parse(text: &str) -> Option<Rate> {
        Money::parse(text, Currency::Usdt).map(|money| Rate(money.units)).filter(|rate| rate.0 > 0)
    }
    /// This rate less a spread in hundredths of a percent, rounded down.
    pub fn less_spread(self, basis_points: i64) -> Rate {
        let kept = i128::from(self.0) * i128::from(10_000 - basis_points.clamp(0, 10_000));
        Rate(i64::try_from(kept / 10_000).unwrap_or(0))
    }
}
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / Rate::SCALE, self.0 % Rate::SCALE)
    }
}
impl serde::Serialize for Rate {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl schemars::JsonSchema for Rate {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "rate".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": r"^[0-9]+\.[0-9]{6}$",
            "examples": ["88.412500"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn request_amounts_follow_the_grammar() {
        for (text, cents) in [
            ("0", 0),
            ("1", 100),
            ("1.5", 150),
            ("1000.00", 100_000),
            ("999999999999.99", 99_999_999_999_999),
        ] {
            assert_eq!(
                Money::parse(text, Currency::Usd),
                Some(Money::new(cents, Currency::Usd)),
                "{text}"
            );
        }
        for text in [
            "",
            ".5",
            "1.",
            "01",
            "00",
            "+1",
            "-1",
            "1e3",
            "1,000",
            "1.234",
            " 1",
            "1 ",
            "1000000000000",
            "٣",
            "1.0.0",
            "0x1",
            "NaN",
        ] {
            assert_eq!(Money::parse(text, Currency::Usd), None, "{text}");
        }
    }

    #[test]
    fn amounts_show_two_decimals_and_tokens_up_to_six() {
        for (units, currency, text) in [
            (0, Currency::Usdt, "0.00"),
            (1_000_000_000, Currency::Usdt, "1000.00"),
            (1, Currency::Usdt, "0.000001"),
            (1_500_000, Currency::Usdt, "1.50"),
            (1_234_560, Currency::Usdt, "1.23456"),
            (5, Currency::Inr, "0.05"),
            (-1_234, Currency::Usd, "-12.34"),
        ] {
            assert_eq!(Money::new(units, currency).to_string(), text);
        }
    }

    #[test]
    fn an_exchange_rounds_down_to_the_paisa() {
        let rate = Rate::parse("88.412500").unwrap();
        let cents = |units| Money::new(units, Currency::Usd);
        assert_eq!(cents(100_000).exchanged(rate, Currency::Inr).unwrap().to_string(), "88412.50");
        assert_eq!(cents(1).exchanged(rate, Currency::Inr).unwrap().to_string(), "0.88");
        assert_eq!(cents(3).exchanged(Rate(333_333), Currency::Inr).unwrap().units, 0);
    }

    #[test]
    fn currencies_do_not_mix_and_overflow_is_an_error() {
        assert!(Money::new(1, Currency::Usd).plus(Money::new(1, Currency::Inr)).is_err());
        assert!(Money::new(i64::MAX, Currency::Usd).plus(Money::new(1, Currency::Usd)).is_err());
        assert!(Money::new(i64::MAX, Currency::Usd).at_par(Currency::Usdt).is_err());
    }

    proptest! {
        #[test]
        fn an_amount_survives_its_text(units in 0..=9_999_999_999_999_i64) {
            for currency in Currency::ALL {
                let money = Money::new(units, currency);
                prop_assert_eq!(Money::parse(&money.to_string(), currency), Some(money));
            }
        }

        #[test]
        fn an_exchange_never_pays_more_than_the_exact_product(cents in 0..=10_000_000_i64,
            rate in 1..=1_000_000_000_i64) {
            let paid = Money::new(cents, Currency::Usd).exchanged(Rate(rate),
                Currency::Inr).unwrap();
            let exact = i128::from(cents) * i128::from(rate);
            prop_assert!(i128::from(paid.units) * 1_000_000 <= exact);
            prop_assert!((i128::from(paid.units) + 1) * 1_000_000 > exact);
        }
    }
}
