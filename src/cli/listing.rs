//! How commands list things: tab-separated columns with readable times, or JSON for programs.

use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use super::print;

#[derive(Args, Clone, Copy)]
pub struct ListingArgs {
    /// Print a JSON array, with times in Unix seconds and null for what is not there
    #[arg(long)]
    json: bool,
}

/// The value of one column in one line.
pub enum ListingCell {
    Nothing,
    Text(String),
    Number(i64),
    Bool(bool),
    /// Unix seconds.
    Time(i64),
}

impl From<&str> for ListingCell {
    fn from(text: &str) -> ListingCell {
        ListingCell::Text(text.to_owned())
    }
}
impl From<String> for ListingCell {
    fn from(text: String) -> ListingCell {
        ListingCell::Text(text)
    }
}
impl From<bool> for ListingCell {
    fn from(value: bool) -> ListingCell {
        ListingCell::Bool(value)
    }
}
impl<T: Into<ListingCell>> From<Option<T>> for ListingCell {
    fn from(value: Option<T>) -> ListingCell {
        value.map_or(ListingCell::Nothing, Into::into)
    }
}

impl ListingCell {
    /// A time that may not be there, in Unix seconds.
    pub fn time(at: Option<i64>) -> ListingCell {
        at.map_or(ListingCell::Nothing, ListingCell::Time)
    }

    /// A text that may be empty.
    pub fn text(text: &str) -> ListingCell {
        if text.is_empty() { ListingCell::Nothing } else { text.into() }
    }

    fn for_people(&self, zone: &TimeZone) -> String {
        match self {
            ListingCell::Nothing => "-".to_owned(),
            ListingCell::Text(text) => text.clone(),
            ListingCell::Number(number) => number.to_string(),
            ListingCell::Bool(value) => if *value { "yes" } else { "no" }.to_owned(),
            ListingCell::Time(at) => time_text(*at, zone),
        }
    }

    fn to_json(&self) -> Value {
        match self {
            ListingCell::Nothing => Value::Null,
            ListingCell::Text(text) => text.as_str().into(),
            ListingCell::Number(number) | ListingCell::Time(number) => (*number).into(),
            ListingCell::Bool(value) => (*value).into(),
        }
    }
}

/// A time of Unix seconds in a zone and in UTC, such as
/// `2026-11-22 16:38:17 IST (2026-11-22 11:08:17 UTC)`.
pub fn time_text(at: i64, zone: &TimeZone) -> String {
    let Ok(instant) = Timestamp::from_second(at) else { return at.to_string() };
    let form = |zone: TimeZone| instant.to_zoned(zone).strftime("%Y-%m-%d %H:%M:%S %Z").to_string();
    let (local, utc) = (form(zone.clone()), form(TimeZone::UTC));
    if local == utc { utc } else { format!("{local} ({utc})") }
}

/// The error with which a command ends after its rows, if there are more than it shows.
pub fn more_than(rows_max: usize) -> String {
    format!("there are more than {rows_max}; only these are shown")
}

/// A listing that is being printed.
pub struct ListingPrinter {
    is_json: bool,
    columns: &'static [&'static str],
    zone: TimeZone,
    count: usize,
}

impl ListingPrinter {
    pub fn begin(
        arguments: ListingArgs,
        columns: &'static [&'static str],
    ) -> Result<ListingPrinter, String> {
        let is_json = arguments.json;
        print(&if is_json { "[".to_owned() } else { columns.join("\t") })?;
        Ok(ListingPrinter { is_json, columns, zone: TimeZone::system(), count: 0 })
    }

    /// Prints a line. `cells` must have one cell for each column.
    pub fn row<const N: usize>(&mut self, cells: [ListingCell; N]) -> Result<(), String> {
        debug_assert_eq!(N, self.columns.len(), "a cell for each column");
        if !self.is_json {
            let cells = cells.map(|cell| cell.for_people(&self.zone));
            return print(&cells.join("\t"));
        }
        let members = self.columns.iter().zip(&cells);
        let object: Map<String, Value> =
            members.map(|(name, cell)| ((*name).to_owned(), cell.to_json())).collect();
        let comma = if self.count == 0 { "" } else { "," };
        self.count += 1;
        print(&format!("{comma}{}", Value::Object(object)))
    }

    /// Prints a remark, but not into JSON, and ends the listing.
    pub fn end_with(self, remark: &str) -> Result<(), String> {
        if !self.is_json {
            print(remark)?;
        }
        self.end()
    }

    pub fn end(self) -> Result<(), String> {
        if self.is_json { print("]") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_in_the_readers_zone_and_in_utc() {
        let india = TimeZone::posix("IST-5:30").unwrap();
        assert_eq!(
            time_text(1_795_345_697, &india),
            "2026-11-22 16:38:17 IST (2026-11-22 11:08:17 UTC)"
        );
        assert_eq!(time_text(1_795_345_697, &TimeZone::UTC), "2026-11-22 11:08:17 UTC");
        assert_eq!(time_text(i64::MAX, &india), i64::MAX.to_string());
    }
}
