//! When a bank accepts payments: hours by the days of the week, and the days on which it accepts
//! none. All times are Indian.

use std::collections::BTreeSet;

use super::values::Day;

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const DAY_MINUTES: i64 = 24 * 60;
/// How many days a search looks at, its first day included. A search that finds nothing, for
/// example because the bank is closed on all of these days, answers the beginning of the day after
/// them.
const DAYS_AHEAD_MAX: i64 = 60;

/// The days on which a bank is closed.
#[derive(Clone, Debug, Default)]
pub struct Calendar {
    pub holidays: BTreeSet<Day>,
    /// The numbers of the Saturdays of each month on which the bank is closed, from 1 to 5.
    pub closed_saturdays: Vec<u8>,
}

impl Calendar {
    fn is_holiday(&self, day: Day) -> bool {
        let is_saturday = day.weekday() == 5;
        let which = (day.day_of_month().unsigned_abs().saturating_sub(1)) / 7 + 1;
        self.holidays.contains(&day) || (is_saturday && self.closed_saturdays.contains(&which))
    }
}

/// Hours on some days of the week, in minutes since midnight.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Window {
    days: [bool; 7],
    from: i64,
    until: i64,
}

/// When payments of one method are accepted: in the windows, or at any time if there are none. On
/// holidays, payments are accepted only if `is_open_on_holidays`.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    windows: Vec<Window>,
    pub is_open_on_holidays: bool,
}

fn minutes(text: &str) -> Option<i64> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |text: &str| {
        (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| text.parse::<i64>().ok())?
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let sum = hours * 60 + minutes;
    (minutes < 60 && sum <= DAY_MINUTES).then_some(sum)
}

fn days(text: &str) -> Option<[bool; 7]> {
    let number = |name: &str| DAYS.iter().position(|known| *known == name);
    let mut found = [false; 7];
    for part in text.split(',') {
        let (from, to) = match part.split_once('-') {
            _ if part == "daily" => (0, 6),
            Some((from, to)) => (number(from)?, number(to)?),
            None => (number(part)?, number(part)?),
        };
        if from > to {
            return None;
        }
        found[from..=to].fill(true);
    }
    Some(found)
}

fn window(text: &str) -> Option<Window> {
    let (named, hours) = text.trim().split_once(' ')?;
    let (from, until) = hours.trim().split_once('-')?;
    let (days, from, until) = (days(named)?, minutes(from)?, minutes(until)?);
    (from < until).then_some(Window { days, from, until })
}

impl Windows {
    /// Reads windows such as `mon-fri 08:00-18:30`, `sat 08:00-13:00` and `daily 00:00-24:00`.
    pub fn parse(texts: &[String], is_open_on_holidays: bool) -> Result<Windows, String> {
        let read = |text: &String| {
            window(text).ok_or_else(|| {
                format!("{text:?} is no window: write one such as \"mon-fri 08:00-18:30\"")
            })
        };
        let windows = texts.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Windows { windows, is_open_on_holidays })
    }

    /// When the windows of a day open and close, in Unix seconds, the earliest first.
    fn spans(&self, calendar: &Calendar, day: Day) -> Vec<(i64, i64)> {
        if calendar.is_holiday(day) && !self.is_open_on_holidays {
            return Vec::new();
        }
        let begins_at = day.begins_at();
        let whole = Window { days: [true; 7], from: 0, until: DAY_MINUTES };
        let windows =
            if self.windows.is_empty() { std::slice::from_ref(&whole) } else { &self.windows };
        let spans = windows.iter().filter(|window| window.days[day.weekday()]);
        let mut spans: Vec<(i64, i64)> = spans
            .map(|window| (begins_at + window.from * 60, begins_at + window.until * 60))
            .collect();
        spans.sort_unstable();
        spans
    }

    /// When payments are next accepted, in Unix seconds; `None` if they are accepted at `instant`.
    pub fn opens_at(&self, calendar: &Calendar, instant: i64) -> Option<i64> {
        let today = Day::at(instant)?;
        for ahead in 0..DAYS_AHEAD_MAX {
            let spans = self.spans(calendar, today.plus_days(ahead));
            if let Some((from, _)) = spans.iter().find(|(_, until)| instant < *until) {
                return (*from > instant).then_some(*from);
            }
        }
        Some(today.plus_days(DAYS_AHEAD_MAX).begins_at())
    }

    /// The moment at which `seconds` have passed since `from`, counting only the time in which
    /// payments are accepted. Both moments are in Unix seconds.
    pub fn elapsed_at(&self, calendar: &Calendar, from: i64, seconds: i64) -> i64 {
        let Some(today) = Day::at(from) else { return from.saturating_add(seconds) };
        let (mut counted_until, mut left) = (from, seconds);
        for ahead in 0..DAYS_AHEAD_MAX {
            for (opens, closes) in self.spans(calendar, today.plus_days(ahead)) {
                // Windows of one day may overlap.
                let begins = opens.max(counted_until);
                let length = closes - begins;
                if length >= left {
                    return begins + left;
                }
                if length > 0 {
                    left -= length;
                    counted_until = closes;
                }
            }
        }
        today.plus_days(DAYS_AHEAD_MAX).begins_at()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rails::files::values::date_time;

    /// The moment of a time in India.
    fn at(text: &str) -> i64 {
        let moment: jiff::civil::DateTime = text.parse().unwrap();
        let utc = jiff::tz::Offset::UTC.to_timestamp(moment).unwrap();
        utc.as_second() - 5 * 3_600 - 30 * 60
    }

    #[test]
    fn the_next_opening_is_found_over_nights_weekends_and_holidays() {
        let texts = ["mon-fri 08:00-18:30".into(), "sat 08:00-13:00".into()];
        let windows = Windows::parse(&texts, false).unwrap();
        let calendar = Calendar {
            holidays: [Day::parse("2026-11-24").unwrap()].into(),
            closed_saturdays: vec![2, 4],
        };
        // 2026-11-21 is a third Saturday, the 28th a fourth one.
        for (now, opens) in [
            ("2026-11-20T08:00:00", None),
            ("2026-11-20T18:29:59", None),
            ("2026-11-20T07:59:59", Some("2026-11-20T08:00:00+05:30")),
            ("2026-11-20T18:30:00", Some("2026-11-21T08:00:00+05:30")),
            ("2026-11-21T12:59:59", None),
            ("2026-11-21T13:00:00", Some("2026-11-23T08:00:00+05:30")),
            ("2026-11-23T20:00:00", Some("2026-11-25T08:00:00+05:30")),
            ("2026-11-24T10:00:00", Some("2026-11-25T08:00:00+05:30")),
            ("2026-11-28T10:00:00", Some("2026-11-30T08:00:00+05:30")),
        ] {
            let found = windows.opens_at(&calendar, at(now)).map(date_time);
            assert_eq!(found.as_deref(), opens, "{now}");
        }
        let always = Windows::default();
        assert_eq!(always.opens_at(&Calendar::default(), at("2026-11-24T03:00:00")), None);
        assert!(always.opens_at(&calendar, at("2026-11-24T03:00:00")).is_some(), "a holiday");
        let open = Windows::parse(&texts, true).unwrap();
        assert_eq!(open.opens_at(&calendar, at("2026-11-24T10:00:00")), None);
        // Two windows of a day.
        let halves = ["daily 14:00-16:00".into(), "daily 09:00-11:00".into()];
        let halves = Windows::parse(&halves, false).unwrap();
        let opens = halves.opens_at(&Calendar::default(), at("2026-11-20T12:00:00"));
        assert_eq!(opens, Some(at("2026-11-20T14:00:00")));
        assert_eq!(halves.opens_at(&Calendar::default(), at("2026-11-20T10:00:00")), None);
        // For a bank that is closed for 100 days, the search ends all the same.
        let all = (0..100).map(|day| Day::parse("2026-11-01").unwrap().plus_days(day));
        let never = Calendar { holidays: all.collect(), ..Calendar::default() };
        assert!(always.opens_at(&never, at("2026-11-20T12:00:00")).is_some());
    }

    #[test]
    fn time_is_counted_while_the_bank_is_open() {
        let texts = ["mon-fri 08:00-18:30".into(), "sat 08:00-13:00".into()];
        let windows = Windows::parse(&texts, false).unwrap();
        let calendar = Calendar {
            holidays: [Day::parse("2026-11-24").unwrap()].into(),
            closed_saturdays: Vec::new(),
        };
        for (from, hours, until) in [
            ("2026-11-20T10:00:00", 3, "2026-11-20T13:00:00"),
            ("2026-11-20T06:00:00", 3, "2026-11-20T11:00:00"),
            ("2026-11-20T17:30:00", 3, "2026-11-21T10:00:00"),
            ("2026-11-21T12:00:00", 3, "2026-11-23T10:00:00"),
            ("2026-11-23T18:30:00", 1, "2026-11-25T09:00:00"),
        ] {
            let found = windows.elapsed_at(&calendar, at(from), hours * 3_600);
            assert_eq!(found, at(until), "{from}");
        }
        let always = Windows::default();
        let late = at("2026-11-20T23:00:00");
        assert_eq!(always.elapsed_at(&Calendar::default(), late, 10_800), late + 10_800);
        let overlapping = ["daily 09:00-12:00".into(), "daily 10:00-11:00".into()];
        let overlapping = Windows::parse(&overlapping, true).unwrap();
        let found = overlapping.elapsed_at(&calendar, at("2026-11-20T09:00:00"), 4 * 3_600);
        assert_eq!(found, at("2026-11-21T10:00:00"));
        // At a bank that is closed for 100 days, a payment is not late within 30 days.
        let all = (0..100).map(|day| Day::parse("2026-11-01").unwrap().plus_days(day));
        let never = Calendar { holidays: all.collect(), ..Calendar::default() };
        assert!(always.elapsed_at(&never, late, 1) > late + 30 * 86_400);
    }

    #[test]
    fn what_is_no_window_is_refused() {
        for text in [
            "",
            "mon",
            "mon 8:00-18:00",
            "mon 18:00-08:00",
            "mon 08:00-08:00",
            "mon 08:60-09:00",
            "mon 08:00-24:01",
            "fri-mon 08:00-18:00",
            "someday 08:00-18:00",
        ] {
            let refused = Windows::parse(&[text.to_owned()], false).unwrap_err();
            assert!(refused.contains("mon-fri"), "{refused}");
        }
    }
}
