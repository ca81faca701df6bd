//! The values that are exchanged with a bank, such as references, days and amounts, with readers
//! that accept only what is well-formed.

use std::fmt;

use serde::Deserialize;

use crate::kernel::id::kind;
use crate::kernel::{AnyId, Currency, Id, InternalId, Money};
use crate::rails::port::PaymentMethod;

/// Seconds by which Indian time is ahead of UTC.
const IST_SECONDS: i64 = 5 * 3_600 + 30 * 60;

/// An account number as it is configured; `Debug` does not show it.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct AccountNumber(String);

impl AccountNumber {
    /// Use the number only in files for the bank, and to compare it with what comes from the bank.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for AccountNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

/// The name of a payout at the bank, from the instruction to the statement: its ULID, 26 letters
/// and digits. It has no prefix `payout_`, because clearing systems forward letters and digits most
/// reliably.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct EndToEndId(u128);

impl EndToEndId {
    pub const fn of(payout_id: Id<kind::Payout>) -> EndToEndId {
        EndToEndId(payout_id.as_u128())
    }
    pub const fn payout_id(self) -> Id<kind::Payout> {
        Id::from_u128(self.0)
    }
    /// Reads what `Display` writes. Any other text is somebody else's reference.
    pub fn parse(text: &str) -> Option<EndToEndId> {
        AnyId::parse(&format!("payout_{text}")).map(|id| EndToEndId(id.value))
    }
}

impl fmt::Display for EndToEndId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ulid::Ulid(self.0).fmt(f)
    }
}

/// The identity of a file for the bank: a ULID.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct MessageId(pub InternalId);

impl MessageId {
    /// How many characters the written identity has.
    pub const LENGTH: usize = ulid::ULID_LEN;

    /// The Indian date and time at which the identity was made, as `YYYYMMDD` and `HHMMSS`.
    pub fn date_and_time(self) -> (String, String) {
        let seconds = ulid::Ulid(self.0.as_u128()).timestamp_ms() / 1000;
        let text = date_time(i64::try_from(seconds).unwrap_or(0));
        let digits = |from, to| -> String {
            let part: &str = text.get(from..to).unwrap_or_default();
            part.chars().filter(char::is_ascii_digit).collect()
        };
        (digits(0, 10), digits(10, 19))
    }
    /// Reads what `Display` writes; `None` for any other text.
    pub fn parse(text: &str) -> Option<MessageId> {
        // The prefix of internal identifiers is `request_`.
        AnyId::parse(&format!("request_{text}")).map(|id| MessageId(Id::from_u128(id.value)))
    }
    /// The file and the method in the identity of one of our batches; `None` for any other text.
    pub fn of_batch(text: &str) -> Option<(MessageId, PaymentMethod)> {
        let (message_id, method) = text.rsplit_once('-')?;
        Some((MessageId::parse(message_id)?, PaymentMethod::parse(&method.to_lowercase())?))
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ulid::Ulid(self.0.as_u128()).fmt(f)
    }
}

/// A unique transaction reference: the clearing system's name of a payment. For a book transfer (a
/// payment within the sponsor bank) it is the bank's own reference.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Utr(String);

/// How many letters and digits a clearing system's reference has.
const UTR_LENGTHS: std::ops::RangeInclusive<usize> = 10..=22;
/// How many letters and digits the reference of a book transfer has.
pub const BOOK_REFERENCE_LENGTHS: std::ops::RangeInclusive<usize> = 6..=35;

impl Utr {
    /// 10 to 22 upper-case letters and digits with a digit among them. RTGS references have 22
    /// characters. NEFT references have 16, or 22 at some banks. A few banks write other lengths.
    pub fn parse(text: &str) -> Option<Utr> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
        (UTR_LENGTHS.contains(&text.len())
            && is_plain
            && text.bytes().any(|byte| byte.is_ascii_digit()))
        .then(|| Utr(text.to_owned()))
    }
    /// Reads the reference of a payment by `method`. For NEFT and RTGS this is [`Utr::parse`]. A
    /// book transfer has the bank's own reference: any 6 to 35 upper-case letters and digits,
    /// except our own name of a payment.
    pub fn parse_for(method: PaymentMethod, text: &str) -> Option<Utr> {
        if method != PaymentMethod::Internal {
            return Utr::parse(text);
        }
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
        let is_ours = EndToEndId::parse(text).is_some();
        (BOOK_REFERENCE_LENGTHS.contains(&text.len()) && is_plain && !is_ours)
            .then(|| Utr(text.to_owned()))
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// Whether the reference has a known form and a length that the payment's method uses. Any
    /// reference fits a book transfer.
    pub fn fits(&self, method: PaymentMethod) -> bool {
        let has_length = match method {
            PaymentMethod::Rtgs => self.0.len() == 22,
            PaymentMethod::Neft => matches!(self.0.len(), 16 | 22),
            PaymentMethod::Internal => return true,
        };
        has_length && Utr::has_known_form(&self.0)
    }
    /// Whether a text has a form that Indian banks use for references, so that it counts as a
    /// reference in any element:
    ///
    /// - 22 characters: the bank, the system's letter, a channel, the date and a number
    ///   (`HDFCR52026112100000001`);
    /// - 16 characters: four or five letters and a number (`SBIN126166441955`,
    ///   `AXISP00494478733`), `CMS` and a number (`CMS0902411872332`), or `N`, the day of the year
    ///   and a number (`N351200478962883`).
    pub fn has_known_form(text: &str) -> bool {
        let bytes = text.as_bytes();
        let number =
            |from: usize, to: usize| text.get(from..to).and_then(|part| part.parse::<u32>().ok());
        let letters = bytes.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
        let digits_from = |from: usize| bytes.iter().skip(from).all(u8::is_ascii_digit);
        match bytes.len() {
            22 => {
                letters >= 5
                    && digits_from(6)
                    && number(6, 10).is_some_and(|year| (2000..2100).contains(&year))
                    && number(10, 12).is_some_and(|month| (1..=12).contains(&month))
                    && number(12, 14).is_some_and(|day| (1..=31).contains(&day))
            }
            16 => match letters {
                4 | 5 => digits_from(letters),
                3 => text.starts_with("CMS") && digits_from(3),
                1 => {
                    bytes[0] == b'N'
                        && digits_from(1)
                        && number(1, 4).is_some_and(|day| (1..=366).contains(&day))
                }
                _ => false,
            },
            _ => false,
        }
    }
}

/// A calendar day. Banks book by the day, in Indian time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Day(jiff::civil::Date);

impl Day {
    /// Reads `YYYY-MM-DD`, alone or before the time or the zone of an ISO date.
    pub fn parse(text: &str) -> Option<Day> {
        let date = text.get(..10)?;
        let rest = &text[10..];
        let is_date = rest.is_empty()
            || rest.starts_with('T')
            || rest.starts_with('Z')
            || rest.starts_with('+')
            || rest.starts_with('-');
        let digits = date.bytes().enumerate().all(|(at, byte)| {
            if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() }
        });
        if is_date && digits { date.parse().ok().map(Day) } else { None }
    }
    /// The day in India at a moment.
    pub fn at(unix_seconds: i64) -> Option<Day> {
        let shifted = jiff::Timestamp::from_second(unix_seconds.checked_add(IST_SECONDS)?).ok()?;
        Some(Day(jiff::tz::Offset::UTC.to_datetime(shifted).date()))
    }
    /// The first day of this day's month, and the first day of the next month.
    pub fn month(self) -> (Day, Day) {
        let next = self.0.last_of_month().tomorrow().unwrap_or(self.0);
        (Day(self.0.first_of_month()), Day(next))
    }
    /// The first moment of the day in India, in Unix seconds.
    pub fn begins_at(self) -> i64 {
        let midnight = self.0.at(0, 0, 0, 0);
        jiff::tz::Offset::UTC.to_timestamp(midnight).map_or(0, |at| at.as_second()) - IST_SECONDS
    }
    pub fn plus_days(self, days: i64) -> Day {
        Day(self.0.saturating_add(jiff::Span::new().days(days.clamp(-40_000, 40_000))))
    }
    pub fn year(self) -> i16 {
        self.0.year()
    }
    pub fn day_of_year(self) -> i16 {
        self.0.day_of_year()
    }
    pub fn day_of_month(self) -> i8 {
        self.0.day()
    }
    /// 0 for Monday to 6 for Sunday.
    pub fn weekday(self) -> usize {
        usize::from(self.0.weekday().to_monday_zero_offset().unsigned_abs())
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A moment as ISO 20022 writes it, in Indian time.
pub fn date_time(unix_seconds: i64) -> String {
    let shifted = jiff::Timestamp::from_second(unix_seconds.saturating_add(IST_SECONDS))
        .unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    format!("{}+05:30", jiff::tz::Offset::UTC.to_datetime(shifted))
}

/// Reads an amount in INR as ISO 20022 writes it: digits without a sign, and at most two decimals.
/// Leading and trailing zeros are permitted, because banks pad with them.
pub fn inr(text: &str) -> Option<Money> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_plain = whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    if !is_plain
        || (whole.is_empty() && fraction.is_empty())
        || text.ends_with('.')
        || text.len() > 24
    {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let text = if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") };
    Money::parse(&text, Currency::Inr)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn references_are_read_and_fit_their_method() {
        for (text, method, is_read, fits) in [
            ("YESBR12025031200013998", PaymentMethod::Rtgs, true, true),
            ("YESBR12025031200013998", PaymentMethod::Neft, true, true),
            ("CITIN52025082917691328", PaymentMethod::Neft, true, true),
            ("RATNN24200329588", PaymentMethod::Neft, true, true),
            ("RATNN24200329588", PaymentMethod::Rtgs, true, false),
            ("N351200478962883", PaymentMethod::Neft, true, true),
            ("N999200478962883", PaymentMethod::Neft, true, false),
            ("AXISP00494478733", PaymentMethod::Neft, true, true),
            ("AXNH261850049792", PaymentMethod::Neft, true, true),
            ("SBIN126166441955", PaymentMethod::Neft, true, true),
            ("YESAP61641609940", PaymentMethod::Neft, true, true),
            ("CMS0902411872332", PaymentMethod::Neft, true, true),
            ("CHG0902411872332", PaymentMethod::Neft, true, false),
            ("023113001276", PaymentMethod::Neft, true, false),
            ("023113001", PaymentMethod::Neft, false, false),
            ("yesbr12025031200013998", PaymentMethod::Rtgs, false, false),
            ("YESBR1202503120001399 ", PaymentMethod::Rtgs, false, false),
            ("YESBR12025131200013998", PaymentMethod::Rtgs, true, false),
            ("YESBR120250312000139981", PaymentMethod::Rtgs, false, false),
            ("NOTPROVIDEDATALL", PaymentMethod::Neft, false, false),
            ("", PaymentMethod::Neft, false, false),
        ] {
            let found = Utr::parse(text);
            assert_eq!(found.is_some(), is_read, "{text}");
            assert_eq!(found.is_some_and(|utr| utr.fits(method)), fits, "{text}");
        }
    }

    #[test]
    fn the_reference_of_a_book_transfer_has_6_to_35_letters_and_digits() {
        for (text, is_read) in [
            ("S00012", true),
            ("S0012", false),
            ("BOOKTRANSFER", true),
            (&"A1".repeat(17), true),
            (&"A1".repeat(18), false),
            ("S-00012", false),
            ("s00012", false),
            ("00000000000000000000000007", false),
        ] {
            let found = Utr::parse_for(PaymentMethod::Internal, text);
            assert_eq!(found.is_some(), is_read, "{text}");
            assert!(found.is_none_or(|utr| utr.fits(PaymentMethod::Internal)), "{text}");
        }
        assert!(Utr::parse_for(PaymentMethod::Neft, "S00012").is_none());
        let id = MessageId(Id::from_u128(9));
        assert_eq!(
            MessageId::of_batch(&format!("{id}-INTERNAL")),
            Some((id, PaymentMethod::Internal))
        );
    }

    #[test]
    fn days_are_indian() {
        // 2026-11-21T18:30:00Z is midnight of the 22nd in India.
        let midnight = 1_795_285_800;
        assert_eq!(Day::at(midnight - 1).unwrap().to_string(), "2026-11-21");
        assert_eq!(Day::at(midnight).unwrap().to_string(), "2026-11-22");
        assert_eq!(Day::at(midnight).unwrap().begins_at(), midnight);
        assert_eq!(date_time(midnight), "2026-11-22T00:00:00+05:30");
        assert_eq!(Day::parse("2026-12-30").unwrap().plus_days(3).to_string(), "2027-01-02");
        for (text, is_day) in [
            ("2026-02-29", false),
            ("2024-02-29", true),
            ("2026-11-21T10:00:00", true),
            ("2026-11-21+05:30", true),
            ("2026-11-21x", false),
            ("26-11-21", false),
            ("", false),
            ("२०२६-11-21", false),
        ] {
            assert_eq!(Day::parse(text).is_some(), is_day, "{text}");
        }
    }

    #[test]
    fn amounts_have_at_most_two_decimals_besides_trailing_zeros() {
        for (text, paise) in [
            ("0.05", Some(5)),
            ("88412.50", Some(8_841_250)),
            ("88412.5000", Some(8_841_250)),
            ("00100", Some(10_000)),
            (".5", Some(50)),
            ("1.001", None),
            ("-1", None),
            ("+1", None),
            ("1e3", None),
            ("1,000", None),
            ("", None),
            (".", None),
            ("1.", None),
            ("999999999999999999", None),
            ("9999999999999999999999999", None),
        ] {
            assert_eq!(inr(text).map(|money| money.units), paise, "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_end_to_end_id_reads_back_as_it_was_written(value: u128) {
            let id = EndToEndId::of(Id::from_u128(value));
            prop_assert_eq!(id.to_string().len(), 26);
            prop_assert_eq!(EndToEndId::parse(&id.to_string()), Some(id));
            prop_assert_eq!(EndToEndId::parse(&id.to_string().to_lowercase()).is_some(),
                id.to_string().bytes().all(|byte| byte.is_ascii_digit()));
        }

        #[test]
        fn no_text_breaks_the_parsers(text in ".{0,40}") {
            let _ = (EndToEndId::parse(&text), MessageId::parse(&text), Utr::parse(&text));
            let _ = (Day::parse(&text), inr(&text), MessageId::of_batch(&text));
        }
    }
}
