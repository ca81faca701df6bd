//! Query strings: every parameter is declared, and a list's query becomes a typed [`Page`].

use serde_json::{Value, json};

use super::fields::{PLAIN_PATTERN, must_be_one_of};
use super::form::shown_name;
use super::near;
use crate::kernel::clock::TIME_MAX;
use crate::kernel::page::{FilterValue, Page};
use crate::kernel::state::Status;
use crate::kernel::{AnyId, Code, Id, IdKind, ObjectKind, Refusal, RefusalEntry};

pub const PAGE_LIMIT_DEFAULT: i64 = 10;
pub const PAGE_LIMIT_MAX: i64 = 100;
/// The longest query string, in bytes.
pub const QUERY_BYTES_MAX: usize = 4_096;

/// What a filter parameter holds.
#[derive(Clone, Copy)]
pub enum FilterKind {
    /// Unix seconds.
    Time,
    /// An identifier of one kind.
    Id(ObjectKind),
    /// An identifier of any kind. `kind_filter` is the column that must then hold its kind.
    AnyId { kind_filter: &'static str },
    /// One of the words that the function returns.
    Word(fn() -> Vec<&'static str>),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Any text up to 128 characters.
    Text,
    /// How many seconds to wait for objects if the page is empty; selects nothing.
    Wait,
}

/// One filter of a list, or a parameter of a route that is no list: its name, and what it holds. A
/// filter's name is usually that of the column; for a time, a dot and the comparison follow it
/// (`store/list.rs`).
#[derive(Clone, Copy)]
pub struct Filter {
    pub name: &'static str,
    pub kind: FilterKind,
}

impl Filter {
    pub const fn new(name: &'static str, kind: FilterKind) -> Filter {
        Filter { name, kind }
    }
    pub fn schema(&self) -> Value {
        match self.kind {
            FilterKind::Time => json!({ "type": "integer", "minimum": 0, "maximum": TIME_MAX }),
            FilterKind::Id(kind) => {
                json!({ "type": "string", "pattern": format!("^{}_[0-7][0-9A-HJKMNP-TV-Z]{{25}}$",
                    kind.as_str()) })
            }
            FilterKind::AnyId { .. } => {
                let kinds = ObjectKind::ALL.iter().map(|kind| kind.as_str());
                let kinds = kinds.collect::<Vec<_>>().join("|");
                let pattern = format!("^({kinds})_[0-7][0-9A-HJKMNP-TV-Z]{{25}}$");
                json!({ "type": "string", "pattern": pattern })
            }
            FilterKind::Word(words) => json!({ "type": "string", "enum": words() }),
            FilterKind::OneOf(words) => json!({ "type": "string", "enum": words }),
            FilterKind::Text => json!({ "type": "string", "minLength": 1, "maxLength": 128,
                "pattern": PLAIN_PATTERN }),
            FilterKind::Wait => {
                json!({ "type": "integer", "minimum": 0, "maximum": WAIT_SECONDS_MAX,
                    "default": 0 })
            }
        }
    }
}

/// The longest wait for objects on an empty page, in seconds. Many proxies and clients give up
/// after 60.
pub const WAIT_SECONDS_MAX: i64 = 30;

/// The filter with which a caller waits for objects on an empty page.
pub const WAIT: Filter = Filter::new("wait", FilterKind::Wait);

/// The four comparisons of `created`.
pub const CREATED_FILTERS: [Filter; 4] = [
    Filter::new("created.gt", FilterKind::Time),
    Filter::new("created.gte", FilterKind::Time),
    Filter::new("created.lt", FilterKind::Time),
    Filter::new("created.lte", FilterKind::Time),
];

fn refused(name: &str, message: impl Into<String>) -> RefusalEntry {
    RefusalEntry::field(Code::RequestQueryParameterInvalid, name, message)
}

/// Splits a query string, and refuses parameters that are not `known` or come twice.
fn pairs(raw: &str, known: &[&str], entries: &mut Vec<RefusalEntry>) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    if raw.len() > QUERY_BYTES_MAX {
        entries.push(query_too_long());
        return pairs;
    }
    for (name, value) in url::form_urlencoded::parse(raw.as_bytes()) {
        let shown = shown_name(&name);
        if !known.contains(&&*name) {
            entries.push(unknown(&name, &shown, known));
        } else if pairs.iter().any(|(earlier, _)| *earlier == name) {
            entries.push(refused(&shown, format!("{shown} is given more than once.")));
        } else {
            pairs.push((name.into_owned(), value.into_owned()));
        }
    }
    pairs
}

/// The refusal of a query of more than [`QUERY_BYTES_MAX`] bytes.
pub fn query_too_long() -> RefusalEntry {
    RefusalEntry::field(
        Code::ParameterMaxLengthInvalid,
        "query",
        format!("The query string is longer than {QUERY_BYTES_MAX} bytes."),
    )
}

fn unknown(name: &str, shown: &str, known: &[&str]) -> RefusalEntry {
    // Other services write `created[gte]`.
    let dotted = name.replace('[', ".").replace(']', "");
    let advice = match known {
        [] => "This route takes no query parameters.".to_owned(),
        known if known.contains(&dotted.as_str()) => format!("Write {dotted}."),
        known => {
            let meant = if shown == name { near::meant(name, known) } else { None };
            let hint = meant.map_or(String::new(), |meant| format!("Did you mean {meant}? "));
            format!("{hint}This route takes: {}.", known.join(", "))
        }
    };
    refused(shown, format!("{shown} is not a query parameter of this route. {advice}"))
}

/// The words that a filter of a status takes.
pub fn status_words<S: Status>() -> Vec<&'static str> {
    S::ALL.iter().map(|status| status.as_str()).collect()
}

/// Refuses every query parameter, for a route that takes none.
pub fn none(raw: Option<&str>) -> Result<(), Refusal> {
    let mut entries = Vec::new();
    pairs(raw.unwrap_or(""), &[], &mut entries);
    Refusal::check(entries)
}

/// Reads the parameters of a route that is no list, each at most once, under their declared names.
pub fn values(
    raw: Option<&str>,
    parameters: &'static [Filter],
) -> Result<Vec<(&'static str, FilterValue)>, Refusal> {
    let mut entries = Vec::new();
    let mut values = Vec::new();
    let known: Vec<&str> = parameters.iter().map(|parameter| parameter.name).collect();
    for (name, value) in pairs(raw.unwrap_or(""), &known, &mut entries) {
        let Some(parameter) = parameters.iter().find(|parameter| parameter.name == name) else {
            continue;
        };
        match filter_value(parameter.kind, &value) {
            Ok(parsed) => values.push((parameter.name, parsed)),
            Err(message) => entries.push(refused(&name, format!("{name} {message}"))),
        }
    }
    Refusal::check(entries)?;
    Ok(values)
}

/// Reads the query of a list of objects of one kind: the paging parameters and the list's own
/// filters. A cursor (`starting_after`, `ending_before`) is an identifier of the list's kind. It is
/// only a position: no object needs to have it.
pub fn page(raw: Option<&str>, cursor: ObjectKind, filters: &[Filter]) -> Result<Page, Refusal> {
    let mut known = vec!["limit", "starting_after", "ending_before", "order"];
    known.extend(filters.iter().map(|filter| filter.name));
    let mut entries = Vec::new();
    let mut page = Page { limit: PAGE_LIMIT_DEFAULT, ..Page::default() };
    let mut waits = false;
    for (name, value) in pairs(raw.unwrap_or(""), &known, &mut entries) {
        let parse_cursor = |entries: &mut Vec<RefusalEntry>| {
            let found = AnyId::parse(&value).filter(|id| id.kind == cursor).map(AnyId::to_bytes);
            if found.is_none() {
                entries.push(refused(
                    &name,
                    format!("{name} must be an id that begins with {}_.", cursor.as_str()),
                ));
            }
            found
        };
        match name.as_str() {
            "limit" => {
                match plain_integer(&value).filter(|limit| (1..=PAGE_LIMIT_MAX).contains(limit)) {
                    Some(limit) => page.limit = limit,
                    None => entries.push(refused(
                        "limit",
                        format!("limit must be a whole number from 1 to {PAGE_LIMIT_MAX}."),
                    )),
                }
            }
            "starting_after" => page.starting_after = parse_cursor(&mut entries),
            "ending_before" => page.ending_before = parse_cursor(&mut entries),
            "order" => match value.as_str() {
                "asc" => page.descending = false,
                "desc" => page.descending = true,
                _ => entries.push(refused("order", "order must be asc or desc.")),
            },
            _ => {
                let Some(filter) = filters.iter().find(|filter| filter.name == name) else {
                    continue;
                };
                if let FilterKind::Wait = filter.kind {
                    match parse_wait(&value) {
                        Some(seconds) => waits = seconds > 0,
                        None => entries.push(refused(
                            &name,
                            format!(
                                "{name} must be a whole number of seconds from 0 to \
                                 {WAIT_SECONDS_MAX}."
                            ),
                        )),
                    }
                    continue;
                }
                if let (FilterKind::AnyId { kind_filter }, Some(id)) =
                    (filter.kind, AnyId::parse(&value))
                {
                    page.filters
                        .push((kind_filter, FilterValue::Text(id.kind.as_str().to_owned())));
                }
                match filter_value(filter.kind, &value) {
                    Ok(parsed) => page.filters.push((filter.name, parsed)),
                    Err(message) => entries.push(refused(&name, format!("{name} {message}"))),
                }
            }
        }
    }
    if page.starting_after.is_some() && page.ending_before.is_some() {
        entries.push(refused("ending_before", "Send ending_before or starting_after, not both."));
    }
    if waits && (page.descending || page.ending_before.is_some()) {
        entries.push(refused(
            "wait",
            "wait only pages forward: do not send it with ending_before or order=desc.",
        ));
    }
    Refusal::check(entries)?;
    Ok(page)
}

fn parse_wait(value: &str) -> Option<i64> {
    plain_integer(value).filter(|seconds| *seconds <= WAIT_SECONDS_MAX)
}

/// How long to wait for objects on an empty page, in seconds, from a query that [`page`] judges.
pub fn wait_seconds(raw: Option<&str>) -> u64 {
    let mut pairs = url::form_urlencoded::parse(raw.unwrap_or("").as_bytes());
    let wait = pairs.find(|(name, _)| name == WAIT.name);
    wait.and_then(|(_, value)| parse_wait(&value)).map_or(0, i64::unsigned_abs)
}

fn plain_integer(text: &str) -> Option<i64> {
    let plain =
        !text.is_empty() && text.len() <= 12 && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

fn filter_value(kind: FilterKind, value: &str) -> Result<FilterValue, String> {
    match kind {
        FilterKind::Time => plain_integer(value)
            .filter(|seconds| *seconds <= TIME_MAX)
            .map(FilterValue::Int)
            .ok_or_else(|| "must be a time in Unix seconds.".to_owned()),
        FilterKind::Id(kind) => AnyId::parse(value)
            .filter(|id| id.kind == kind)
            .map(|id| FilterValue::Id(id.to_bytes()))
            .ok_or_else(|| format!("must be an id that begins with {}_.", kind.as_str())),
        FilterKind::AnyId { .. } => AnyId::parse(value)
            .map(|id| FilterValue::Id(id.to_bytes()))
            .ok_or_else(|| "must be an id.".to_owned()),
        FilterKind::Word(words) => one_of(&words(), value),
        FilterKind::OneOf(words) => one_of(words, value),
        FilterKind::Wait => Err("selects nothing.".to_owned()),
        FilterKind::Text => {
            let plain =
                (1..=128).contains(&value.chars().count()) && !value.chars().any(char::is_control);
            if plain {
                Ok(FilterValue::Text(value.to_owned()))
            } else {
                Err("must be a text of 1 to 128 characters.".to_owned())
            }
        }
    }
}

fn one_of(words: &[&'static str], value: &str) -> Result<FilterValue, String> {
    if words.contains(&value) {
        Ok(FilterValue::Text(value.to_owned()))
    } else {
        Err(must_be_one_of(words, value))
    }
}

/// An identifier in a path. A text that is no identifier names nothing, so it is answered 404.
pub fn path_id<K: IdKind>(text: &str) -> Result<Id<K>, Refusal> {
    Id::parse(text).ok_or_else(Refusal::not_found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_parameters_are_named() {
        let cursor = "transfer_00000000000000000000000007";
        for (raw, field) in [
            ("limit=0", "limit"),
            ("limit=101", "limit"),
            ("limit=1e1", "limit"),
            ("limit=%2010", "limit"),
            ("limit=", "limit"),
            ("limit=10&limit=10", "limit"),
            ("order=up", "order"),
            ("starting_after=deposit_00000000000000000000000007", "starting_after"),
            ("starting_after=", "starting_after"),
            (&format!("starting_after={cursor}&ending_before={cursor}"), "ending_before"),
            ("unknown=1", "unknown"),
            ("created.gt=-1", "created.gt"),
        ] {
            let refusal = page(Some(raw), ObjectKind::Transfer, &CREATED_FILTERS).unwrap_err();
            assert_eq!(refusal.entries()[0].field_name.as_deref(), Some(field), "{raw}");
            assert_eq!(refusal.entries()[0].code, Code::RequestQueryParameterInvalid, "{raw}");
        }
        let page = page(
            Some(&format!("limit=5&starting_after={cursor}&order=desc&created.gt=3")),
            ObjectKind::Transfer,
            &CREATED_FILTERS,
        )
        .unwrap();
        assert_eq!((page.limit, page.descending, page.filters.len()), (5, true, 1));
        assert!(none(Some("a=b")).is_err() && none(Some("")).is_ok() && none(None).is_ok());
    }
}
