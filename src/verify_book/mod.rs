//! `hundi check`: verifies the whole book and all status histories, and names what is wrong.

mod rows;

use crate::kernel::seal::{self, KEY_BYTES, Verifier, key_name, verifier_of};
use crate::kernel::{AnyId, ObjectKind, StoreError, hex};
use crate::resource::StatusTable;
use crate::store::{Database, Tx, meta, migrate};
use crate::{audit, key_rotation, ledger, resources, secrets};

/// What a check found.
#[derive(Debug, Default)]
pub struct BookReport {
    /// One line about each thing that was looked at.
    pub summary: Vec<String>,
    /// One line about each fault; empty if the book is sound.
    pub faults: Vec<String>,
}

/// The most faults of one rule, or of the audit log, that are listed: a broken book would fill the
/// screen. Faults of status histories are all listed.
const FAULTS_SHOWN_MAX: i64 = 100;
/// Histories that one query reads.
const ROWS_AT_ONCE: i64 = 1_000;

/// Verifies a database as it is at one moment. A server may run beside this.
pub fn run(database: &Database) -> Result<BookReport, StoreError> {
    database.examine(examine)
}

/// The fault if none of `verifiers` belongs to the key that the database seals with. A new database
/// has no key yet, which is no fault.
pub fn key_fault(
    database: &Database,
    verifiers: &[Verifier],
) -> Result<Option<String>, StoreError> {
    let stored = database.examine(|tx| match migrate::schema_version(tx)? {
        // Without a schema there is no table `meta`.
        0 => Ok(None),
        _ => meta::read(tx, secrets::VERIFIER),
    })?;
    let is_wrong = stored
        .is_some_and(|stored| !verifiers.iter().any(|verifier| seal::fits(&stored, verifier)));
    Ok(is_wrong.then(|| "the encryption key is not the one that this database uses now".to_owned()))
}

/// Tries `keys` on every sealed value, and counts the values that each key opens. A value that none
/// of the keys opens is a fault. If none of `keys` is the one that the database seals with now,
/// that is the only fault, and nothing is opened.
pub fn sealed_values(
    database: &Database,
    keys: &[[u8; KEY_BYTES]],
) -> Result<BookReport, StoreError> {
    let mut report = BookReport::default();
    let verifiers: Vec<Verifier> = keys.iter().map(verifier_of).collect();
    if let Some(fault) = key_fault(database, &verifiers)? {
        report.faults.push(fault);
        return Ok(report);
    }
    let found = database.examine(|tx| {
        // `run` reports another schema version as a fault, and a new database has no sealed values.
        if migrate::schema_version(tx)? != migrate::schema_known()
            || meta::read(tx, secrets::VERIFIER)?.is_none()
        {
            return Ok(None);
        }
        let sealer = key_rotation::sealer(tx, keys)?;
        key_rotation::survey(tx, &sealer).map(Some)
    })?;
    let Some(found) = found else { return Ok(report) };
    for (key, count) in &found.counts {
        report.summary.push(format!("{count} sealed values of the key {}", key_name(key)));
    }
    if let Some(running) = &found.running {
        report.summary.push(format!(
            "the encryption key is being changed from {} to {}: `hundi keys rotate-encryption` \
             goes on with it",
            key_name(&running.old),
            key_name(&running.new)
        ));
    }
    if found.unreadable_count > 0 {
        let is_cut = found.unreadable_count > found.unreadable.len() as u64;
        report.faults.push(format!(
            "{} sealed values open with no key that is given{}: {}",
            found.unreadable_count,
            if is_cut { ", among them" } else { "" },
            found.unreadable.join(", ")
        ));
    }
    Ok(report)
}

/// Runs all checks but that of sealed values. If the schema has another version than this program
/// knows, that is the only fault reported.
fn examine(tx: &mut dyn Tx) -> Result<BookReport, StoreError> {
    let mut report = BookReport::default();
    let version = migrate::schema_version(tx)?;
    let known = migrate::schema_known();
    if version != known {
        let next = if version < known {
            "start `hundi serve` once, which migrates it"
        } else {
            "check it with the version of hundi that wrote it"
        };
        report
            .faults
            .push(format!("the schema is {version}, and this hundi checks {known}: {next}"));
        return Ok(report);
    }
    if !tx.is_shared() {
        for line in rows::file_faults(tx)? {
            report.faults.push(format!("the database file: {line}"));
        }
    }
    let rules = resources::ALL.iter().flat_map(|resource| resource.book_rules);
    for rule in ledger::rows::BOOK_RULES.iter().chain(rules) {
        for (what, id) in rows::broken(tx, rule, FAULTS_SHOWN_MAX)? {
            let value = id.as_deref().and_then(|id| id.try_into().ok()).map(u128::from_be_bytes);
            let object = match (ObjectKind::parse(&what), value, id) {
                (Some(kind), Some(value), _) => AnyId { kind, value }.to_string(),
                (_, _, Some(id)) => format!("{what} {}", hex::encode(id)),
                (_, _, None) => what,
            };
            report.faults.push(format!("{}: {object}", rule.meaning));
        }
    }
    let count = ledger::rows::postings_count(tx)?;
    report.summary.push(format!("{count} ledger postings"));
    let chain = audit::verify(tx)?;
    report.summary.push(format!("{} audit log entries", chain.count()));
    report.faults.extend(chain.faults.into_iter().take(FAULTS_SHOWN_MAX as usize));
    for status in resources::ALL.iter().filter_map(|resource| resource.status) {
        check_histories(tx, &status, &mut report)?;
    }
    Ok(report)
}

/// Checks the status and the status history of every object in a table, a page at a time.
fn check_histories(
    tx: &mut dyn Tx,
    status: &StatusTable,
    report: &mut BookReport,
) -> Result<(), StoreError> {
    let table = status.table;
    let (mut after, mut count) = ((-1, [0; 16]), 0);
    loop {
        let rows = rows::histories(tx, table, after, ROWS_AT_ONCE)?;
        if rows.is_empty() {
            break;
        }
        for row in rows {
            after = (row.scope, row.id);
            if let Some(fault) = status.fault(&row.status, &row.history) {
                let id = status.object_id(row.id);
                report.faults.push(format!("{id}: {fault}"));
            }
            count += 1;
        }
    }
    report.summary.push(format!("{count} {table}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_database_has_no_key_and_no_sealed_value() {
        let name = format!("hundi-verify-book-{}.db", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, b"").unwrap();
        let database = Database::Sqlite(path.clone());
        let keys = [[7; KEY_BYTES]];
        let verifiers = keys.map(|key| verifier_of(&key));
        assert_eq!(key_fault(&database, &verifiers).unwrap(), None);
        assert!(sealed_values(&database, &keys).unwrap().faults.is_empty());
        let _ = std::fs::remove_file(&path);
    }
}
