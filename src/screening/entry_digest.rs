//! The digest of a list entry that the operator's clearances are bound to.
//!
//! A clearance stands while the digest of its entry stays the same, so the bytes that are hashed
//! are a stored format. Version 1 is the text written below, for example:
//!
//! ```text
//! Entry { list: Own, id: "own-1", kind: Any, names: [ListedName { text: "A", is_weak: false }],
//! births: [Day(1980-05-06), Years { first: 1980, last: 1980, is_guess: false }],
//! countries: [CountryCode([73, 78])],
//! identifiers: [ListedIdentifier { number: "1", country: None }],
//! addresses: ["T…"] }
//! ```
//!
//! on one line. It is what Rust's derived `Debug` printed for the types of release 0.1.0, and it is
//! written out here so that renaming a type or a field changes no stored decision. Never edit it:
//! a new form is a new version, and `keep` in `hits.rs` then has to accept both.

use std::fmt::{self, Write};

use sha2::{Digest, Sha256};

use super::birth::Birth;
use super::countries::CountryCode;
use super::{EntryKind, ListEntry, ListName, ListedIdentifier, ListedName};

/// SHA-256 of an entry's whole content, in version 1 of the text.
pub fn version_1(entry: &ListEntry) -> [u8; 32] {
    let mut text = String::new();
    // Writing into a string cannot fail.
    let _ = write_entry(&mut text, entry);
    Sha256::digest(text.as_bytes()).into()
}

fn write_entry(out: &mut String, entry: &ListEntry) -> fmt::Result {
    let list = match entry.list {
        ListName::Ofac => "Ofac",
        ListName::Un => "Un",
        ListName::Own => "Own",
        ListName::Test => "Test",
    };
    let kind = match entry.kind {
        EntryKind::Individual => "Individual",
        EntryKind::Business => "Business",
        EntryKind::Vessel => "Vessel",
        EntryKind::Any => "Any",
    };
    write!(out, "Entry {{ list: {list}, id: {}, kind: {kind}, names: [", quoted(&entry.id))?;
    separated(out, &entry.names, write_name)?;
    out.push_str("], births: [");
    separated(out, &entry.births, write_birth)?;
    out.push_str("], countries: [");
    separated(out, &entry.countries, write_country)?;
    out.push_str("], identifiers: [");
    separated(out, &entry.identifiers, write_identifier)?;
    out.push_str("], addresses: [");
    separated(out, &entry.addresses, |out, address| write!(out, "{}", quoted(address)))?;
    out.push_str("] }");
    Ok(())
}

fn separated<T>(
    out: &mut String,
    items: &[T],
    mut write: impl FnMut(&mut String, &T) -> fmt::Result,
) -> fmt::Result {
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            out.push_str(", ");
        }
        write(out, item)?;
    }
    Ok(())
}

/// A string in double quotes with the escapes of Rust's standard library.
fn quoted(text: &str) -> String {
    format!("{text:?}")
}

fn write_name(out: &mut String, name: &ListedName) -> fmt::Result {
    write!(out, "ListedName {{ text: {}, is_weak: {} }}", quoted(&name.text), name.is_weak)
}

fn write_birth(out: &mut String, birth: &Birth) -> fmt::Result {
    match birth {
        // ISO 8601.
        Birth::Day(day) => write!(out, "Day({day})"),
        Birth::Years { first, last, is_guess } => {
            write!(out, "Years {{ first: {first}, last: {last}, is_guess: {is_guess} }}")
        }
    }
}

/// The two letters as the numbers of their bytes.
fn write_country(out: &mut String, country: &CountryCode) -> fmt::Result {
    out.push_str("CountryCode([");
    separated(out, country.as_str().as_bytes(), |out, byte| write!(out, "{byte}"))?;
    out.push_str("])");
    Ok(())
}

fn write_identifier(out: &mut String, identifier: &ListedIdentifier) -> fmt::Result {
    write!(out, "ListedIdentifier {{ number: {}, country: ", quoted(&identifier.number))?;
    match &identifier.country {
        Some(country) => {
            out.push_str("Some(");
            write_country(out, country)?;
            out.push_str(") }");
        }
        None => out.push_str("None }"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn full() -> ListEntry {
        let mut entry = ListEntry::new(ListName::Ofac, "7\"3", EntryKind::Individual);
        entry.add_name("Zübin \"Zed\" O'Tarkhád\\", false);
        entry.add_name("आशा\u{200b}", true);
        entry.births.push(Birth::Day(date(1980, 5, 6)));
        entry.births.push(Birth::Years { first: 1975, last: 1977, is_guess: true });
        entry.add_country("India");
        entry.add_country("PK");
        entry.add_identifier("ab-12345", CountryCode::parse("IN"));
        entry.add_identifier("98765", None);
        entry.add_address("TXLAQ63Xg1NAzckPwKHvzw7CSEmLMEqcdj");
        entry
    }

    /// What release 0.1.0 hashed, kept as text: this line never changes.
    const TEXT: &str = concat!(
        r#"Entry { list: Ofac, id: "7\"3", kind: Individual, names: ["#,
        r#"ListedName { text: "Zübin \"Zed\" O'Tarkhád\\", is_weak: false }, "#,
        r#"ListedName { text: "आशा\u{200b}", is_weak: true }], "#,
        r#"births: [Day(1980-05-06), Years { first: 1975, last: 1977, is_guess: true }], "#,
        r#"countries: [CountryCode([73, 78]), CountryCode([80, 75])], identifiers: ["#,
        r#"ListedIdentifier { number: "AB12345", country: Some(CountryCode([73, 78])) }, "#,
        r#"ListedIdentifier { number: "98765", country: None }], "#,
        r#"addresses: ["TXLAQ63Xg1NAzckPwKHvzw7CSEmLMEqcdj"] }"#,
    );

    #[test]
    fn version_1_is_the_text_that_earlier_decisions_were_made_with() {
        let mut text = String::new();
        write_entry(&mut text, &full()).unwrap();
        assert_eq!(text, TEXT);
        let empty = ListEntry::new(ListName::Un, "", EntryKind::Any);
        let mut text = String::new();
        write_entry(&mut text, &empty).unwrap();
        assert_eq!(
            text,
            "Entry { list: Un, id: \"\", kind: Any, names: [], births: [], countries: [], \
             identifiers: [], addresses: [] }"
        );
    }

    #[test]
    fn everything_that_an_entry_says_changes_its_digest() {
        let digest = version_1(&full());
        let changes: [fn(&mut ListEntry); 9] = [
            |entry| entry.list = ListName::Un,
            |entry| entry.id.push('1'),
            |entry| entry.kind = EntryKind::Any,
            |entry| entry.names[0].text.push('a'),
            |entry| entry.names[0].is_weak = true,
            |entry| entry.births[0] = Birth::Day(date(1980, 5, 7)),
            |entry| entry.countries.truncate(1),
            |entry| entry.identifiers[0].country = None,
            |entry| entry.addresses.clear(),
        ];
        for change in changes {
            let mut entry = full();
            change(&mut entry);
            assert_ne!(version_1(&entry), digest);
        }
    }
}
