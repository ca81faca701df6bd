//! Dates of birth as lists give them (days, years, spans, guesses), and how a given date compares
//! with them.

use jiff::civil::Date;

/// A listed date of birth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Birth {
    Day(Date),
    /// Some day in the years from the first to the last. `is_guess`: the list says "circa", "ca"
    /// or "approximately".
    Years {
        first: i16,
        last: i16,
        is_guess: bool,
    },
}

/// How a person's date of birth compares with an entry's dates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BirthEvidence {
    /// A listed day is the person's.
    SameDay,
    /// The person was born in a year, or in a span of years, that is listed without a day.
    SameYear,
    /// One side has no date, or a listed date is too near to decide: only one of day, month and
    /// year differs, day and month are swapped, a listed year is one off, or a year that the list
    /// only guesses is at most `GUESS_YEARS` off.
    Unknown,
    /// No listed date is the person's or near it.
    Contradicts,
}

/// The most years by which a guessed year may be off without contradicting.
const GUESS_YEARS: i16 = 5;
/// Years outside of this are not dates of birth.
const YEARS: std::ops::RangeInclusive<i16> = 1850..=2100;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The words of a date, in small letters.
fn words(text: &str) -> Vec<String> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect()
}

/// The year that a word of four digits is.
fn year(word: &str) -> Option<i16> {
    let year = (word.len() == 4).then(|| word.parse().ok()).flatten();
    year.filter(|year| YEARS.contains(year))
}

impl Birth {
    /// Like [`Birth::parse`], for a list whose author can mend it: `None` also if the text has a
    /// number that belongs to no date, such as "1963-02-31", of which `parse` reads the year.
    pub fn parse_whole(text: &str) -> Option<Birth> {
        let birth = Birth::parse(text)?;
        let words = words(text);
        let is_day = |at: usize, word: &str| {
            let is_before_month =
                words.get(at + 1).is_some_and(|next| MONTHS.contains(&next.as_str()));
            is_before_month && word.parse().is_ok_and(|day: u8| (1..=31).contains(&day))
        };
        let is_read = |(at, word): (usize, &String)| {
            year(word).is_some()
                || is_day(at, word)
                || word.bytes().all(|byte| byte.is_ascii_alphabetic())
        };
        let is_whole = matches!(birth, Birth::Day(_)) || words.iter().enumerate().all(is_read);
        is_whole.then_some(birth)
    }

    /// Reads "28 Jul 1963", "1963-07-28", "Jul 1963", "1963", "circa 1960", "1958 to 1960". `None`
    /// if there is no year from 1850 to 2100, and for "31 Feb 1963". Of "1963-02-31" only the year
    /// is read.
    pub fn parse(text: &str) -> Option<Birth> {
        let text = text.trim();
        if let Ok(day) = text.get(..10).unwrap_or(text).parse::<Date>() {
            return YEARS.contains(&day.year()).then_some(Birth::Day(day));
        }
        let words = words(text);
        let is_guess =
            words.iter().any(|word| matches!(word.as_str(), "circa" | "ca" | "approximately"));
        if let [day, month, last] = words.as_slice()
            && let (Ok(day), Some(month), Some(year)) =
                (day.parse::<i8>(), MONTHS.iter().position(|name| month == name), year(last))
        {
            return Date::new(year, month as i8 + 1, day).ok().map(Birth::Day);
        }
        let years: Vec<i16> = words.iter().filter_map(|word| year(word)).collect();
        Some(Birth::Years { first: *years.iter().min()?, last: *years.iter().max()?, is_guess })
    }

    fn evidence(self, given: Date) -> BirthEvidence {
        match self {
            Birth::Day(day) if day == given => BirthEvidence::SameDay,
            Birth::Day(day) => {
                let is_swapped = day.year() == given.year()
                    && day.day() == given.month()
                    && day.month() == given.day();
                let same = [
                    day.year() == given.year(),
                    day.month() == given.month(),
                    day.day() == given.day(),
                ];
                // Two parts of three agree: a mistake is as likely as another person.
                let is_near =
                    is_swapped || same.into_iter().filter(|is_same| *is_same).count() == 2;
                if is_near { BirthEvidence::Unknown } else { BirthEvidence::Contradicts }
            }
            Birth::Years { first, last, is_guess } => {
                let years_off = (first - given.year()).max(given.year() - last);
                match years_off {
                    ..=0 => BirthEvidence::SameYear,
                    1 => BirthEvidence::Unknown,
                    _ if is_guess && years_off <= GUESS_YEARS => BirthEvidence::Unknown,
                    _ => BirthEvidence::Contradicts,
                }
            }
        }
    }
}

/// How a given date compares with all dates of an entry; the date that agrees best counts.
pub fn evidence(listed: &[Birth], given: Option<Date>) -> BirthEvidence {
    let Some(given) = given else { return BirthEvidence::Unknown };
    let all: Vec<BirthEvidence> = listed.iter().map(|birth| birth.evidence(given)).collect();
    let order = [BirthEvidence::SameDay, BirthEvidence::SameYear, BirthEvidence::Unknown];
    match order.into_iter().find(|evidence| all.contains(evidence)) {
        Some(evidence) => evidence,
        None if all.is_empty() => BirthEvidence::Unknown,
        None => BirthEvidence::Contradicts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_lists_are_read_and_compared() {
        let span = |first, last, is_guess| Some(Birth::Years { first, last, is_guess });
        assert_eq!(Birth::parse("28 Jul 1963"), Some(Birth::Day(Date::constant(1963, 7, 28))));
        assert_eq!(Birth::parse("1963-07-28"), Some(Birth::Day(Date::constant(1963, 7, 28))));
        assert_eq!(Birth::parse("Jul 1963"), span(1963, 1963, false));
        assert_eq!(Birth::parse("circa 1960-1962"), span(1960, 1962, true));
        assert_eq!(Birth::parse("01 Jan 1958 to 31 Dec 1960"), span(1958, 1960, false));
        assert!(
            Birth::parse("31 Feb 1963").is_none()
                && Birth::parse("").is_none()
                && Birth::parse("0001-01-01").is_none()
        );
        for (listed, given, wanted) in [
            ("28 Jul 1963", "1963-07-28", BirthEvidence::SameDay),
            ("07 Apr 1963", "1963-07-04", BirthEvidence::Unknown),
            ("28 Jul 1963", "1963-07-27", BirthEvidence::Unknown),
            ("28 Jul 1963", "1970-01-02", BirthEvidence::Contradicts),
            ("1963", "1963-02-02", BirthEvidence::SameYear),
            ("1963", "1964-02-02", BirthEvidence::Unknown),
            ("1963", "1966-02-02", BirthEvidence::Contradicts),
            ("circa 1963", "1966-02-02", BirthEvidence::Unknown),
            ("circa 1963", "1973-02-02", BirthEvidence::Contradicts),
            ("1958 to 1960", "1959-12-31", BirthEvidence::SameYear),
        ] {
            let birth = Birth::parse(listed).unwrap();
            assert_eq!(
                evidence(&[birth], Some(given.parse().unwrap())),
                wanted,
                "{listed} / {given}"
            );
            assert_eq!(evidence(&[birth], None), BirthEvidence::Unknown);
        }
        assert_eq!(evidence(&[], Some(Date::constant(1990, 1, 1))), BirthEvidence::Unknown);
    }
}
