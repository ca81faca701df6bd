//! The UN Security Council's consolidated list as it is published in XML.
//!
//! `CONSOLIDATED_LIST` holds `INDIVIDUALS` and `ENTITIES`. The reader refuses document type
//! declarations, and XML entities other than the five that XML itself defines. Character references
//! are accepted.

use std::collections::HashSet;

use quick_xml::events::Event;
use quick_xml::{Reader, XmlVersion};

use super::birth::Birth;
use super::ofac::digital_currency_addresses;
use super::{
    ENTRIES_MAX, EntryKind, ListEntry, ListName, ReadList, checked, countries, short_fault, utf8,
};

/// The file's name in messages.
const FILE: &str = "the UN list";
/// Reference numbers look like `QDi.001`.
const REFERENCE_NUMBER_BYTES_MAX: usize = 40;
/// How deep elements may be nested.
const DEPTH_MAX: usize = 8;
/// The most elements of one entry.
const ELEMENTS_MAX: usize = 10_000;
/// The most bytes of text of one element.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// An element of an entry with everything in it.
#[derive(Default)]
struct ListElement {
    name: String,
    text: String,
    children: Vec<ListElement>,
}

impl ListElement {
    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a ListElement> {
        self.children.iter().filter(move |child| child.name == name)
    }
    /// The trimmed text of a child, empty where there is none.
    fn text_of(&self, name: &str) -> &str {
        self.children.iter().find(|child| child.name == name).map_or("", |child| child.text.trim())
    }
}

/// Reads the list. Any fault refuses all of it, so that no part of the list is missing unnoticed.
pub fn read(bytes: &[u8]) -> Result<ReadList, String> {
    read_all(bytes).map_err(short_fault)
}

fn read_all(bytes: &[u8]) -> Result<ReadList, String> {
    let text = utf8(FILE, bytes)?;
    let mut reader = Reader::from_str(text);
    let line = |reader: &Reader<&[u8]>| {
        let end = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        bytes.get(..end).unwrap_or(bytes).iter().filter(|byte| **byte == b'\n').count() + 1
    };
    let (mut entries, mut ids) = (Vec::new(), HashSet::new());
    // The names of the elements that surround the entries, and the entry's open elements.
    let (mut path, mut open): (Vec<String>, Vec<ListElement>) = (Vec::new(), Vec::new());
    let (mut elements_count, mut made_at, mut is_ended) = (0_usize, None, false);
    loop {
        let event = reader
            .read_event()
            .map_err(|fault| format!("{FILE}, line {}: {fault}", line(&reader)))?;
        let fault = |what: &str| format!("{FILE}, line {}: {what}", line(&reader));
        match event {
            Event::Start(start) => {
                if is_ended {
                    return Err(fault("something follows the end of the list"));
                }
                let name = start.name().as_ref().to_owned();
                if path.len() + open.len() >= DEPTH_MAX {
                    return Err(fault("elements are nested too deep"));
                }
                if path.is_empty() {
                    if name != "CONSOLIDATED_LIST" {
                        return Err(fault("this is not a consolidated list"));
                    }
                    let attribute = start
                        .try_get_attribute("dateGenerated")
                        .map_err(|_| fault("the list's attributes cannot be read"))?;
                    let value = attribute.and_then(|attribute| {
                        attribute
                            .normalized_value(XmlVersion::Explicit1_0)
                            .ok()
                            .map(|value| value.into_owned())
                    });
                    made_at = Some(
                        generated(value.as_deref().unwrap_or_default())
                            .ok_or_else(|| fault("dateGenerated is missing or cannot be read"))?,
                    );
                }
                if open.is_empty() && path.len() < 2 {
                    path.push(name);
                } else {
                    elements_count += 1;
                    if elements_count > ELEMENTS_MAX {
                        return Err(fault("an entry has too many elements"));
                    }
                    open.push(ListElement { name, ..ListElement::default() });
                }
            }
            // An empty element says nothing.
            Event::Empty(_) => {
                if is_ended {
                    return Err(fault("something follows the end of the list"));
                }
                if path.is_empty() {
                    return Err(fault("the list is empty"));
                }
            }
            Event::End(_) => match open.pop() {
                None => {
                    path.pop();
                    is_ended = path.is_empty();
                }
                Some(element) => match open.last_mut() {
                    Some(parent) => parent.children.push(element),
                    None => {
                        elements_count = 0;
                        let kind = match (path.get(1).map(String::as_str), element.name.as_str()) {
                            (Some("INDIVIDUALS"), "INDIVIDUAL") => EntryKind::Individual,
                            (Some("ENTITIES"), "ENTITY") => EntryKind::Business,
                            _ => {
                                return Err(fault(
                                    "an element that is neither an individual nor an entity",
                                ));
                            }
                        };
                        let entry = entry(&element, kind).map_err(|what| fault(&what))?;
                        if !ids.insert(entry.id.clone()) {
                            let id = &entry.id;
                            return Err(fault(&format!("the reference number {id} is used twice")));
                        }
                        if entries.len() == ENTRIES_MAX {
                            return Err(fault(&format!("more than {ENTRIES_MAX} entries")));
                        }
                        entries.push(entry);
                    }
                },
            },
            Event::Text(text) => {
                append(&mut open, &text, path.len()).map_err(|what| fault(&what))?;
            }
            Event::CData(text) => {
                append(&mut open, &text, path.len()).map_err(|what| fault(&what))?;
            }
            Event::GeneralRef(reference) => {
                let character = match reference.resolve_char_ref() {
                    Ok(Some(character)) => Some(character),
                    Ok(None) => match reference.as_ref() {
                        "amp" => Some('&'),
                        "lt" => Some('<'),
                        "gt" => Some('>'),
                        "apos" => Some('\''),
                        "quot" => Some('"'),
                        _ => None,
                    },
                    Err(_) => None,
                };
                let character =
                    character.ok_or_else(|| fault("an entity that XML itself does not have"))?;
                append(&mut open, character.encode_utf8(&mut [0; 4]), path.len())
                    .map_err(|what| fault(&what))?;
            }
            Event::DocType(_) => return Err(fault("document types are not accepted")),
            Event::Decl(_) | Event::Comment(_) | Event::PI(_) => {}
            Event::Eof if is_ended => return checked(FILE, entries, made_at),
            Event::Eof => return Err(fault("the list does not end; the file is cut off")),
        }
    }
}

fn append(open: &mut [ListElement], text: &str, depth: usize) -> Result<(), String> {
    match open.last_mut() {
        Some(element) if element.text.len() + text.len() > TEXT_BYTES_MAX => {
            Err("an element's text is too long".into())
        }
        Some(element) => {
            element.text.push_str(text);
            Ok(())
        }
        None if text.trim().is_empty() => Ok(()),
        None => Err(format!("text outside of an entry, at depth {depth}")),
    }
}

/// The Unix seconds of a time such as "2026-02-27T00:00:09.554Z". If only the date can be read, the
/// start of that day in UTC.
fn generated(text: &str) -> Option<i64> {
    let day: jiff::civil::Date = text.get(..10)?.parse().ok()?;
    let seconds = text.parse::<jiff::Timestamp>().map(jiff::Timestamp::as_second);
    Some(seconds.unwrap_or_else(|_| {
        day.to_zoned(jiff::tz::TimeZone::UTC).map_or(0, |zoned| zoned.timestamp().as_second())
    }))
}

fn entry(element: &ListElement, kind: EntryKind) -> Result<ListEntry, String> {
    let id = element.text_of("REFERENCE_NUMBER");
    if id.is_empty() || id.len() > REFERENCE_NUMBER_BYTES_MAX {
        return Err(format!(
            "an entry needs a reference number of 1 to {REFERENCE_NUMBER_BYTES_MAX} bytes"
        ));
    }
    let mut entry = ListEntry::new(ListName::Un, id, kind);
    let parts = ["FIRST_NAME", "SECOND_NAME", "THIRD_NAME", "FOURTH_NAME"]
        .map(|name| element.text_of(name));
    entry.add_name(&parts.join(" "), false);
    if entry.names.is_empty() {
        return Err(format!("{id} has no name"));
    }
    for alias in element.all("INDIVIDUAL_ALIAS").chain(element.all("ENTITY_ALIAS")) {
        let is_weak = alias.text_of("QUALITY").eq_ignore_ascii_case("low");
        // Some aliases are lists in one element.
        for name in alias.text_of("ALIAS_NAME").split(';') {
            entry.add_name(name, is_weak);
        }
    }
    for value in element.all("NATIONALITY").flat_map(|nationality| nationality.all("VALUE")) {
        entry.add_country(value.text.trim());
    }
    for address in element.all("INDIVIDUAL_ADDRESS").chain(element.all("ENTITY_ADDRESS")) {
        entry.add_country(address.text_of("COUNTRY"));
    }
    for birth in element.all("INDIVIDUAL_DATE_OF_BIRTH") {
        let years = [birth.text_of("FROM_YEAR"), birth.text_of("TO_YEAR")];
        let guess = if birth.text_of("TYPE_OF_DATE").eq_ignore_ascii_case("approximately") {
            "circa"
        } else {
            ""
        };
        let text = match (birth.text_of("DATE"), birth.text_of("YEAR")) {
            ("", "") => format!("{guess} {} to {}", years[0], years[1]),
            ("", year) => format!("{guess} {year}"),
            (date, _) if guess.is_empty() => date.to_owned(),
            (date, _) => format!("{guess} {}", date.get(..4).unwrap_or_default()),
        };
        entry.births.extend(Birth::parse(&text));
    }
    for document in element.all("INDIVIDUAL_DOCUMENT") {
        let country = [document.text_of("ISSUING_COUNTRY"), document.text_of("COUNTRY_OF_ISSUE")]
            .into_iter()
            .find_map(countries::find);
        entry.add_identifier(document.text_of("NUMBER"), country);
    }
    for address in element.children.iter().flat_map(|child| digital_currency_addresses(&child.text))
    {
        entry.add_address(address);
    }
    Ok(entry)
}
