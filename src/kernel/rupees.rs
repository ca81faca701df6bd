//! Rupees as India writes them: digits grouped 2-2-3, and amounts in words with lakh, crore and
//! paise.

use super::money::{Currency, Money};

/// The largest amount in words, in paise: 10^13 rupees, which is ten lakh crore.
pub const WORDS_PAISE_MAX: i64 = 1_000_000_000_000_000;

const SMALL: [&str; 20] = [
    "Zero",
    "One",
    "Two",
    "Three",
    "Four",
    "Five",
    "Six",
    "Seven",
    "Eight",
    "Nine",
    "Ten",
    "Eleven",
    "Twelve",
    "Thirteen",
    "Fourteen",
    "Fifteen",
    "Sixteen",
    "Seventeen",
    "Eighteen",
    "Nineteen",
];
const TENS: [&str; 10] =
    ["", "", "Twenty", "Thirty", "Forty", "Fifty", "Sixty", "Seventy", "Eighty", "Ninety"];
/// The names of larger numbers, largest first. The number before "Crore" can itself have lakhs and
/// thousands.
const SCALES: [(u64, &str); 4] =
    [(10_000_000, "Crore"), (100_000, "Lakh"), (1_000, "Thousand"), (100, "Hundred")];

/// Appends the words of a number.
fn spell(value: u64, words: &mut Vec<String>) {
    let mut rest = value;
    for (scale, name) in SCALES {
        if rest >= scale {
            spell(rest / scale, words);
            words.push(name.to_owned());
            rest %= scale;
        }
    }
    let name = |list: &[&'static str], index: u64| {
        usize::try_from(index).ok().and_then(|index| list.get(index).copied()).unwrap_or("")
    };
    match rest {
        0 if value > 0 => {}
        0..20 => words.push(name(&SMALL, rest).to_owned()),
        _ if rest.is_multiple_of(10) => words.push(name(&TENS, rest / 10).to_owned()),
        _ => words.push(format!("{}-{}", name(&TENS, rest / 10), name(&SMALL, rest % 10))),
    }
}

/// An amount in INR as a cheque spells it: `Rupees One Lakh Five and Paise Fifty Only`. `None` for
/// another currency, a negative amount, and one above [`WORDS_PAISE_MAX`].
pub fn in_words(amount: Money) -> Option<String> {
    let paise = u64::try_from(amount.units)
        .ok()
        .filter(|_| amount.currency == Currency::Inr && amount.units <= WORDS_PAISE_MAX)?;
    let mut words = vec!["Rupees".to_owned()];
    spell(paise / 100, &mut words);
    if !paise.is_multiple_of(100) {
        words.push("and Paise".to_owned());
        spell(paise % 100, &mut words);
    }
    words.push("Only".to_owned());
    Some(words.join(" "))
}

/// An amount's figures, grouped in the manner of its currency: `12,34,567.89` in INR,
/// `1,234,567.89` elsewhere.
pub fn grouped(amount: Money) -> String {
    let plain = amount.to_string();
    let (sign, plain) = plain.strip_prefix('-').map_or(("", plain.as_str()), |rest| ("-", rest));
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, "00"));
    let width = if amount.currency == Currency::Inr { 2 } else { 3 };
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        let after = whole.len() - index;
        if index > 0 && after >= 3 && (after - 3).is_multiple_of(width) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}.{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn inr(paise: i64) -> Money {
        Money::new(paise, Currency::Inr)
    }

    #[test]
    fn amounts_are_spelt_with_lakh_and_crore() {
        for (paise, words) in [
            (0, "Zero"),
            (1, "Zero and Paise One"),
            (99, "Zero and Paise Ninety-Nine"),
            (100, "One"),
            (1_900, "Nineteen"),
            (2_000, "Twenty"),
            (2_150, "Twenty-One and Paise Fifty"),
            (10_000, "One Hundred"),
            (99_900, "Nine Hundred Ninety-Nine"),
            (100_000, "One Thousand"),
            (8_841_250, "Eighty-Eight Thousand Four Hundred Twelve and Paise Fifty"),
            (9_999_900, "Ninety-Nine Thousand Nine Hundred Ninety-Nine"),
            (10_000_000, "One Lakh"),
            (10_000_500, "One Lakh Five"),
            (84_321_055, "Eight Lakh Forty-Three Thousand Two Hundred Ten and Paise Fifty-Five"),
            (
                999_999_999,
                "Ninety-Nine Lakh Ninety-Nine Thousand Nine Hundred Ninety-Nine and Paise \
                 Ninety-Nine",
            ),
            (1_000_000_000, "One Crore"),
            (
                1_234_567_890,
                "One Crore Twenty-Three Lakh Forty-Five Thousand Six Hundred Seventy-Eight and \
                 Paise Ninety",
            ),
            (100_000_000_000, "One Hundred Crore"),
            (12_345_000_000_000, "Twelve Thousand Three Hundred Forty-Five Crore"),
            (WORDS_PAISE_MAX, "Ten Lakh Crore"),
        ] {
            assert_eq!(in_words(inr(paise)), Some(format!("Rupees {words} Only")), "{paise}");
        }
        for refused in [
            inr(-1),
            inr(WORDS_PAISE_MAX + 1),
            inr(i64::MIN),
            inr(i64::MAX),
            Money::new(100, Currency::Usd),
        ] {
            assert_eq!(in_words(refused), None, "{refused}");
        }
    }

    #[test]
    fn figures_are_grouped_in_the_manner_of_their_currency() {
        for (money, text) in [
            (inr(0), "0.00"),
            (inr(99_999), "999.99"),
            (inr(100_000), "1,000.00"),
            (inr(9_999_999), "99,999.99"),
            (inr(10_000_000), "1,00,000.00"),
            (inr(84_321_055), "8,43,210.55"),
            (inr(1_234_567_890), "1,23,45,678.90"),
            (inr(WORDS_PAISE_MAX), "1,00,00,00,00,00,000.00"),
            (inr(-10_000_000), "-1,00,000.00"),
            (Money::new(123_456_789, Currency::Usd), "1,234,567.89"),
            (Money::new(1_234_567_890_123, Currency::Usdt), "1,234,567.890123"),
        ] {
            assert_eq!(grouped(money), text);
        }
        assert_eq!(grouped(inr(i64::MIN)), "-92,23,37,20,36,85,47,758.08");
    }

    /// Reads words back as a number.
    fn read_back(words: &str) -> u64 {
        let (mut total, mut part) = (0, 0);
        for word in words.split_whitespace() {
            match word {
                "Hundred" => part *= 100,
                "Thousand" | "Lakh" => {
                    let scale = if word == "Lakh" { 100_000 } else { 1_000 };
                    total += part * scale;
                    part = 0;
                }
                "Crore" => {
                    total = (total + part) * 10_000_000;
                    part = 0;
                }
                _ => {
                    for piece in word.split('-') {
                        let small =
                            SMALL.iter().position(|name| *name == piece).map(|value| value as u64);
                        let tens = TENS
                            .iter()
                            .position(|name| *name == piece)
                            .map(|value| value as u64 * 10);
                        part += small.or(tens).unwrap_or_else(|| panic!("{piece:?} in {words:?}"));
                    }
                }
            }
        }
        total + part
    }

    proptest! {
        #[test]
        fn words_say_the_amount(paise in prop_oneof![0..=WORDS_PAISE_MAX, 0..=1_000_000_i64,
            (0..=10_000_i64).prop_map(|crore| crore * 1_000_000_000)]) {
            let spelt = in_words(inr(paise)).unwrap();
            let spelt = spelt.strip_prefix("Rupees ").unwrap();
            let spelt = spelt.strip_suffix(" Only").unwrap();
            let (rupees, coins) = spelt.split_once(" and Paise ").unwrap_or((spelt, "Zero"));
            prop_assert_eq!(read_back(rupees) * 100 + read_back(coins), paise as u64);
        }

        #[test]
        fn grouping_only_adds_commas(units in any::<i64>()) {
            for currency in Currency::ALL {
                let money = Money::new(units, currency);
                let text = grouped(money);
                prop_assert_eq!(text.replace(',', ""), money.to_string());
                let whole = text.split('.').next().unwrap().trim_start_matches('-');
                let groups: Vec<&str> = whole.split(',').collect();
                let middle = if currency == Currency::Inr { 2 } else { 3 };
                for (index, group) in groups.iter().enumerate() {
                    let is_last = index + 1 == groups.len();
                    let length_max = if is_last { 3 } else { middle };
                    prop_assert!(group.len() <= length_max, "{}", text);
                    prop_assert!(index == 0 || group.len() == length_max, "{}", text);
                }
            }
        }
    }
}
