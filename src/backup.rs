//! A consistent copy of the embedded database, taken while the service runs.

use std::path::Path;

use crate::store::{Database, sqlite};

/// Copies the database as it stands at one moment into a new file with mode 0600, and prints the
/// file's name. `Err` for PostgreSQL, if there is no database, if the file exists already, or if
/// the copy fails.
pub fn write(database: &Database, file: &Path) -> Result<(), String> {
    database.must_exist()?;
    let Database::Sqlite(database) = database else {
        return Err(
            "PostgreSQL is backed up with its own tools: pg_dump for a copy, pg_basebackup \
         with archived WAL for a point in time; see docs/postgresql.md"
                .into(),
        );
    };
    if file.exists() {
        return Err(format!(
            "{} exists already: choose another name, so that no backup is overwritten",
            file.display()
        ));
    }
    let source = sqlite::open_reader(database).map_err(|error| error.to_string())?;
    sqlite::copy(&source, file).map_err(|error| format!("the backup failed: {error}"))?;
    println!("wrote {}", file.display());
    println!(
        "Keep the encryption key apart from it: without the key, sealed fields cannot be read."
    );
    Ok(())
}
