//! The operator's own list: a CSV file with the header
//! `id,name,aliases,date_of_birth,country,address,note`.
//!
//! `aliases` are separated by `;`. `date_of_birth` is `YYYY-MM-DD`, `YYYY` or another form that
//! [`Birth::parse_whole`] reads. `country` is an ISO 3166-1 alpha-2 code or a name. `address` holds
//! blockchain addresses, separated by `;`. `note` is ignored; it is for the operator. An entry
//! needs an `id`, and a name, an alias or an address. Entries are compared with persons and
//! businesses alike. No entry may have the id `decision`.

use std::collections::HashSet;

use super::birth::Birth;
use super::hits::DECISION;
use super::{
    ENTRIES_MAX, EntryKind, ListEntry, ListName, ReadList, checked, countries, short_fault, utf8,
};

const FILE: &str = "the operator's list";
const HEADER: [&str; 7] = ["id", "name", "aliases", "date_of_birth", "country", "address", "note"];

/// Reads the list. Any fault refuses all of it.
pub fn read(bytes: &[u8]) -> Result<ReadList, String> {
    read_all(bytes).map_err(short_fault)
}

fn read_all(bytes: &[u8]) -> Result<ReadList, String> {
    let text = utf8(FILE, bytes)?.replace("\r\n", "\n");
    if !text.ends_with('\n') {
        return Err(format!(
            "{FILE}, line {}: the file does not end with a line break; it is empty or cut off",
            text.lines().count().max(1)
        ));
    }
    let mut entries = Vec::new();
    let mut ids = HashSet::new();
    let mut is_header = true;
    for record in csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes())
        .into_records()
    {
        let record = record.map_err(|fault| format!("{FILE}: {fault}"))?;
        let line = record.position().map_or(0, csv::Position::line);
        let fault = |what: &str| format!("{FILE}, line {line}: {what}");
        if is_header {
            is_header = false;
            if !record.iter().eq(HEADER) {
                return Err(fault(&format!("the first line must be {}", HEADER.join(","))));
            }
            continue;
        }
        if record.len() != HEADER.len() {
            return Err(fault(&format!("{} fields instead of {}", record.len(), HEADER.len())));
        }
        if record.iter().any(|field| field.contains('\n')) {
            return Err(fault("a field has a line break, or a quoted field is not closed"));
        }
        let field = |place: usize| record.get(place).unwrap_or_default();
        if field(0).is_empty() || field(0).chars().count() > 80 {
            return Err(fault("id must have 1 to 80 characters"));
        }
        if field(0) == DECISION {
            return Err(fault(
                "the id decision is reserved for the operator's own decisions: give the entry \
                 another id",
            ));
        }
        let mut entry = ListEntry::new(ListName::Own, field(0), EntryKind::Any);
        entry.add_name(field(1), false);
        for alias in field(2).split(';') {
            entry.add_name(alias, false);
        }
        if !field(3).is_empty() {
            entry.births.push(
                Birth::parse_whole(field(3))
                    .ok_or_else(|| fault("date_of_birth must be YYYY-MM-DD or YYYY"))?,
            );
        }
        if !field(4).is_empty() {
            entry.countries.push(
                countries::find(field(4))
                    .ok_or_else(|| fault("country is not known: write its two-letter code"))?,
            );
        }
        for address in field(5).split(';').map(str::trim).filter(|address| !address.is_empty()) {
            let is_address = (20..=128).contains(&address.len())
                && address.bytes().all(|byte| byte.is_ascii_alphanumeric());
            if !is_address {
                return Err(fault(
                    "address must be a blockchain address of 20 to 128 letters and digits",
                ));
            }
            entry.add_address(address);
        }
        if entry.names.is_empty() && entry.addresses.is_empty() {
            return Err(fault("an entry needs a name or an address"));
        }
        if !ids.insert(entry.id.clone()) {
            return Err(fault("this id is used twice"));
        }
        if entries.len() == ENTRIES_MAX {
            return Err(fault(&format!("more than {ENTRIES_MAX} entries")));
        }
        entries.push(entry);
    }
    checked(FILE, entries, None)
}
