//! The OFAC SDN list as it is published in CSV: sdn.csv, alt.csv, add.csv and sdn_comments.csv.
//!
//! The files have no header. The first field of each record is the entity's number, which joins the
//! files; `-0-` is null. Dates of birth, nationalities, identity numbers, weak names and digital
//! currency addresses are in the remarks of sdn.csv, which sdn_comments.csv continues.

use std::collections::HashMap;

use super::birth::Birth;
use super::{
    ENTRIES_MAX, EntryKind, ListEntry, ListName, ReadList, checked, countries, short_fault, utf8,
};

/// The four files, as bytes.
#[derive(Clone, Copy)]
pub struct Files<'a> {
    pub sdn: &'a [u8],
    pub alt: &'a [u8],
    pub add: &'a [u8],
    pub comments: &'a [u8],
}

/// What the files are called.
pub const FILE_NAMES: [&str; 4] = ["sdn.csv", "alt.csv", "add.csv", "sdn_comments.csv"];

/// The most records of one file.
const RECORDS_MAX: usize = 4 * ENTRIES_MAX;
/// DOS's end-of-file mark, which ends some of the published files.
const END_MARK: u8 = 0x1a;

struct CsvRecord {
    line: u64,
    fields: Vec<String>,
}

impl CsvRecord {
    /// A field; empty where it is null, which is published as `-0- ` with a space behind.
    fn field(&self, place: usize) -> &str {
        let text = self.fields.get(place).map_or("", String::as_str);
        if text.trim() == "-0-" { "" } else { text }
    }
    fn id<'a>(&'a self, file: &str) -> Result<&'a str, String> {
        let id = self.field(0).trim();
        let is_number =
            (1..=12).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_digit());
        if is_number {
            Ok(id)
        } else {
            Err(format!("{file}, line {}: the entity's number cannot be read", self.line))
        }
    }
}

/// The records of a file. Refuses a record without `fields_count` fields, and a file whose last
/// record does not end with a line break.
fn records(file: &str, bytes: &[u8], fields_count: usize) -> Result<Vec<CsvRecord>, String> {
    let bytes = bytes.strip_suffix(&[END_MARK]).unwrap_or(bytes);
    // The parser's line numbers are right only if `\n` alone ends each line.
    let text = utf8(file, bytes)?.replace("\r\n", "\n");
    if !text.ends_with('\n') {
        let line = text.lines().count().max(1);
        return Err(format!(
            "{file}, line {line}: the file does not end with a line break; it is empty or cut off"
        ));
    }
    let mut records = Vec::new();
    for record in csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes())
        .into_records()
    {
        let record = record.map_err(|fault| format!("{file}: {fault}"))?;
        let line = record.position().map_or(0, csv::Position::line);
        if record.len() != fields_count {
            return Err(format!(
                "{file}, line {line}: {} fields instead of {fields_count}",
                record.len()
            ));
        }
        // After a lost or unclosed quote, a field contains the lines that follow.
        if record.iter().any(|field| field.contains('\n')) {
            return Err(format!("{file}, line {line}: a quoted field is not closed"));
        }
        if records.len() == RECORDS_MAX {
            return Err(format!("{file}, line {line}: more than {RECORDS_MAX} records"));
        }
        records.push(CsvRecord { line, fields: record.iter().map(str::to_owned).collect() });
    }
    Ok(records)
}

/// Reads the four files. Any fault refuses all of them, so that no part of a list is missing
/// unnoticed.
pub fn read(files: Files<'_>) -> Result<ReadList, String> {
    read_all(files).map_err(short_fault)
}

fn read_all(files: Files<'_>) -> Result<ReadList, String> {
    let marked = [("sdn.csv", files.sdn), ("alt.csv", files.alt), ("add.csv", files.add)]
        .map(|(file, bytes)| (file, bytes.last() == Some(&END_MARK)));
    if marked.iter().any(|(_, is_marked)| *is_marked)
        && let Some((file, _)) = marked.iter().find(|(_, is_marked)| !is_marked)
    {
        return Err(format!(
            "{file}: the file does not end with the end mark that another file has; it is cut off, \
             or of another date"
        ));
    }
    let comments = spilled(files.comments)?;
    let mut entries: Vec<ListEntry> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut known_comments_count = 0;
    for record in records("sdn.csv", files.sdn, 12)? {
        let id = record.id("sdn.csv")?;
        let kind = match record.field(2).trim().to_ascii_lowercase().as_str() {
            "individual" => EntryKind::Individual,
            "vessel" | "aircraft" => EntryKind::Vessel,
            _ => EntryKind::Business,
        };
        let mut entry = ListEntry::new(ListName::Ofac, id, kind);
        entry.add_name(&reordered(record.field(1), kind), false);
        if entry.names.is_empty() {
            return Err(format!("sdn.csv, line {}: there is no name", record.line));
        }
        let mut remarks = record.field(11).to_owned();
        if let Some(more) = comments.get(id) {
            known_comments_count += 1;
            remarks.push_str(more);
        }
        take_remarks(&mut entry, &remarks);
        if places.insert(id.to_owned(), entries.len()).is_some() {
            return Err(format!("sdn.csv, line {}: the id {id} is used twice", record.line));
        }
        if entries.len() == ENTRIES_MAX {
            return Err(format!("sdn.csv, line {}: more than {ENTRIES_MAX} entries", record.line));
        }
        entries.push(entry);
    }
    if known_comments_count != comments.len() {
        return Err("sdn_comments.csv: it continues entities that sdn.csv does not have; one of \
         the two files is cut off, or of another date"
            .into());
    }
    for record in records("alt.csv", files.alt, 5)? {
        let entry = joined(&record, "alt.csv", &places, &mut entries)?;
        let name = reordered(record.field(3), entry.kind);
        entry.add_name(&name, false);
    }
    for record in records("add.csv", files.add, 6)? {
        joined(&record, "add.csv", &places, &mut entries)?.add_country(record.field(4));
    }
    checked("sdn.csv", entries, None)
}

/// The entry that a record of another file belongs to.
fn joined<'a>(
    record: &CsvRecord,
    file: &str,
    places: &HashMap<String, usize>,
    entries: &'a mut [ListEntry],
) -> Result<&'a mut ListEntry, String> {
    let id = record.id(file)?;
    let entry = places.get(id).and_then(|place| entries.get_mut(*place));
    entry.ok_or_else(|| {
        format!(
            "{file}, line {}: entity {id} is not in sdn.csv; one of the two files is cut off, or \
             of another date",
            record.line
        )
    })
}

/// The continuations of remarks, by the entity's number.
fn spilled(bytes: &[u8]) -> Result<HashMap<String, String>, String> {
    let mut spilled: HashMap<String, String> = HashMap::new();
    for record in records("sdn_comments.csv", bytes, 2)? {
        // Remarks may be cut anywhere, so they are joined without a space.
        spilled
            .entry(record.id("sdn_comments.csv")?.to_owned())
            .or_default()
            .push_str(record.field(1));
    }
    Ok(spilled)
}

/// "SURNAME, First" becomes "First SURNAME" for persons.
fn reordered(name: &str, kind: EntryKind) -> String {
    match name.rsplit_once(',') {
        Some((surname, first)) if kind == EntryKind::Individual && !first.trim().is_empty() => {
            format!("{} {}", first.trim(), surname.trim())
        }
        _ => name.trim().to_owned(),
    }
}

/// Reads the remarks into the entry: "DOB 28 Jul 1963; POB …; nationality Iran; Passport P1 (Iran);
/// a.k.a. 'X'; …".
fn take_remarks(entry: &mut ListEntry, remarks: &str) {
    for part in remarks.split(';') {
        let part = part.trim();
        let part = part.strip_prefix("alt. ").unwrap_or(part);
        let part = part.strip_suffix('.').unwrap_or(part);
        if let Some(date) = part.strip_prefix("DOB ") {
            entry.births.extend(Birth::parse(date));
        } else if let Some(country) =
            part.strip_prefix("nationality ").or_else(|| part.strip_prefix("citizen "))
        {
            entry.add_country(country);
        } else if let Some(name) =
            part.strip_prefix("a.k.a. '").and_then(|rest| rest.strip_suffix('\''))
        {
            entry.add_name(&reordered(name, entry.kind), true);
        } else if let Some((number, country)) = identifier(part) {
            entry.add_identifier(number, country);
        }
    }
    for address in digital_currency_addresses(remarks) {
        entry.add_address(address);
    }
}

/// "Passport P0017003 (Belize)", "National ID No. 10100722073 (Iran)", "Tax ID No. 7707083893
/// (Russia)".
fn identifier(part: &str) -> Option<(&str, Option<super::CountryCode>)> {
    const NAMES: [&str; 7] = [
        "Passport ",
        "National ID No. ",
        "Tax ID No. ",
        "Identification Number ",
        "SSN ",
        "Driver's License No. ",
        "Personal ID Card ",
    ];
    let rest = NAMES.iter().find_map(|name| part.strip_prefix(name))?;
    let number = rest.split(' ').next()?;
    let country = rest
        .split_once('(')
        .and_then(|(_, country)| country.split_once(')'))
        .and_then(|(country, _)| countries::find(country));
    number.bytes().any(|byte| byte.is_ascii_digit()).then_some((number, country))
}

/// The addresses in "Digital Currency Address - <currency> <address>".
pub fn digital_currency_addresses(remarks: &str) -> Vec<&str> {
    let parts = remarks.split("Digital Currency Address").skip(1);
    let words = parts.filter_map(|part| {
        let mut words = part
            .split(|letter: char| letter.is_whitespace() || matches!(letter, ';' | ',' | '.'))
            .filter(|word| !matches!(*word, "" | "-"));
        let currency = words.next()?;
        let is_currency = (2..=8).contains(&currency.len())
            && currency.bytes().all(|byte| byte.is_ascii_alphanumeric());
        words.next().filter(|_| is_currency)
    });
    words
        .filter(|word| word.len() >= 20 && word.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .collect()
}
