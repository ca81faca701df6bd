//! Writes the audit log as JSON lines, and compares an earlier export with the database.

use std::io::ErrorKind;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Entry, HashChain, rows};
use crate::kernel::{StoreError, hex};
use crate::store::Tx;

/// One line of an export.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    number: i64,
    at_milliseconds: i64,
    actor: String,
    via: String,
    action: String,
    subject: String,
    /// The text as it is stored, byte for byte, because the hash covers it.
    details: Box<RawValue>,
    hash: String,
}

/// An entry as a line, without the end of the line.
pub fn line(entry: &Entry) -> Result<String, StoreError> {
    let broken = |error| StoreError::Broken(format!("an audit entry cannot be read: {error}"));
    let line = Line {
        number: entry.number,
        at_milliseconds: entry.at_milliseconds,
        actor: entry.actor.clone(),
        via: entry.via.clone(),
        action: entry.action.clone(),
        subject: entry.subject.clone(),
        details: RawValue::from_string(entry.details.clone()).map_err(broken)?,
        hash: hex::encode(entry.hash),
    };
    serde_json::to_string(&line).map_err(broken)
}

/// Reads an entry from a line; `None` if the text is not a line of an export.
pub fn entry(line: &str) -> Option<Entry> {
    let line: Line = serde_json::from_str(line).ok()?;
    Some(Entry {
        number: line.number,
        at_milliseconds: line.at_milliseconds,
        actor: line.actor,
        via: line.via,
        action: line.action,
        subject: line.subject,
        details: line.details.get().to_owned(),
        hash: hex::decode_exact(&line.hash)?,
    })
}

/// Compares an earlier export of the whole log with the database: every exported entry must be
/// there unchanged. Answers the number of the last entry, and the faults. Without a fault, that
/// number is how many entries the export has. A line that is not an entry is a fault, and the lines
/// after it are still compared. Only an error in reading the file ends the comparison.
pub fn compare(
    tx: &mut dyn Tx,
    lines: impl Iterator<Item = std::io::Result<String>>,
) -> Result<(i64, Vec<String>), StoreError> {
    let mut chain = HashChain::default();
    let mut faults = Vec::new();
    for (index, text) in (1..).zip(lines) {
        let exported = match text {
            Ok(text) => entry(&text),
            // The line is not UTF-8.
            Err(error) if error.kind() == ErrorKind::InvalidData => None,
            Err(error) => {
                faults.push(format!("the export cannot be read from line {index} on: {error}"));
                break;
            }
        };
        let Some(exported) = exported else {
            faults.push(format!("line {index} of the export is no entry"));
            // An export begins with entry 1, so this line had the entry whose number is `index`.
            // The chain goes on from the stored one, so that the next line is not a fault too.
            if let Some(stored) = numbered(tx, index)? {
                chain.take(&stored);
            }
            continue;
        };
        chain.take(&exported);
        match numbered(tx, exported.number)? {
            None => faults.push(format!("entry {} is gone", exported.number)),
            Some(stored) if stored != exported => {
                faults.push(format!("entry {} differs from the export", exported.number));
            }
            Some(_) => {}
        }
    }
    let count = chain.count();
    // The faults of the chain name the audit log, but here the chain took the export's entries.
    let of_export = |fault: &String| fault.replacen("the audit log", "the export", 1);
    faults.extend(chain.faults.iter().map(of_export));
    Ok((count, faults))
}

/// The stored entry with this number.
fn numbered(tx: &mut dyn Tx, number: i64) -> Result<Option<Entry>, StoreError> {
    let found = rows::after(tx, number.saturating_sub(1), 1)?.into_iter().next();
    Ok(found.filter(|found| found.number == number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_back_as_the_entry_it_was_made_of() {
        let made = Entry {
            number: 7,
            at_milliseconds: 1_790_000_000_123,
            actor: "asha".into(),
            via: "console".into(),
            action: "decision".into(),
            subject: "payout_\"x\"".into(),
            details: "{\"decision\":\"settle\",\"reason\":\"बैंक ने कहा\"}".into(),
            hash: [0xAB; 32],
        };
        let text = line(&made).unwrap();
        assert!(!text.contains('\n'));
        assert!(text.contains("\"details\":{\"decision\":\"settle\""), "{text}");
        assert_eq!(entry(&text), Some(made));
        for text in ["", "{}", "[]", "{\"number\":1}"] {
            assert_eq!(entry(text), None);
        }
    }
}
