//! Where the encryption key comes from, and the lock that keeps two servers off one database.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};

use crate::kernel::seal::KEY_BYTES;
use crate::kernel::{StoreError, system_random};
use crate::store::sqlite::{self, SqliteTx};
use crate::store::{Database, Tx, migrate};

fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A variable of the environment, or the text of the file that the variable with `_FILE` behind its
/// name names, as service managers hand out secrets. See [`check_secret_files`].
pub fn environment(name: &str) -> Option<String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    variable(name).or_else(|| {
        let text = std::fs::read_to_string(variable(&format!("{name}_FILE"))?).ok()?;
        Some(text.trim_end_matches(['\r', '\n']).to_owned())
    })
}

/// Settings that are files themselves, and no secrets in one.
const FILE_SETTINGS: [&str; 1] = ["HUNDI_IFSC_FILE"];

/// Refuses a secret's file that cannot be read, and a secret that is given twice: a service that
/// went on without its encryption key would make another one.
pub fn check_secret_files() -> Result<(), String> {
    for (name, path) in std::env::vars() {
        let Some(secret) = name.strip_suffix("_FILE").filter(|name| name.starts_with("HUNDI_"))
        else {
            continue;
        };
        if path.is_empty() || FILE_SETTINGS.contains(&name.as_str()) {
            continue;
        }
        if std::env::var(secret).is_ok_and(|text| !text.is_empty()) {
            return Err(format!("{secret} and {name} are both set: give one of them"));
        }
        match std::fs::read_to_string(&path) {
            Ok(text) if text.trim().is_empty() => {
                return Err(format!("{name} names {path}, which is empty"));
            }
            Ok(_) => {}
            Err(error) => return Err(format!("{name} names {path}, which does not read: {error}")),
        }
    }
    Ok(())
}

/// Said of a database that has no file beside it.
pub const KEY_NEEDED: &str = "a database that several nodes use needs HUNDI_ENCRYPTION_KEY, the \
 same on each: make it once with `head -c 32 /dev/urandom | base64`";

/// The operator's key, or the one in the file beside the database, which a first start makes with
/// mode 0600.
pub fn encryption_key(
    database: &Database,
    configured: Option<&SecretString>,
) -> Result<[u8; KEY_BYTES], String> {
    if let Some(key) = encryption_key_given(database, configured)? {
        return Ok(key);
    }
    let Database::Sqlite(database) = database else {
        return Err(KEY_NEEDED.into());
    };
    let path = beside(database, ".key");
    let shown = path.display();
    // A key made now would fit nothing, and could be taken for the right one later.
    if stored_verifier(database).is_some() {
        return Err(format!(
            "the encryption key is missing: {} was made with one, so give it in \
             HUNDI_ENCRYPTION_KEY or as {shown}",
            database.display()
        ));
    }
    let key: [u8; KEY_BYTES] = system_random()?;
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let mut file = made.map_err(|error| format!("cannot make {shown}: {error}"))?;
    writeln!(file, "{}", STANDARD.encode(key))
        .and_then(|()| file.sync_all())
        .map_err(|error| format!("cannot write {shown}: {error}"))?;
    Ok(key)
}

/// What tells the key of a database that was made already.
fn stored_verifier(database: &Path) -> Option<Vec<u8>> {
    if !database.exists() {
        return None;
    }
    let connection = sqlite::open_reader(database).ok()?;
    migrate::read_meta(&mut SqliteTx::new(&connection), VERIFIER).ok()?
}

/// The operator's key, or the one in the file beside the database; `None` where neither is there.
pub fn encryption_key_given(
    database: &Database,
    configured: Option<&SecretString>,
) -> Result<Option<[u8; KEY_BYTES]>, String> {
    if let Some(text) = configured {
        return decode(text.expose_secret(), "HUNDI_ENCRYPTION_KEY").map(Some);
    }
    let Database::Sqlite(database) = database else { return Ok(None) };
    let path = beside(database, ".key");
    let shown = path.display();
    match std::fs::File::open(&path) {
        Ok(mut file) => {
            let mode = file
                .metadata()
                .map_err(|error| format!("cannot read {shown}: {error}"))?
                .permissions()
                .mode();
            if mode & 0o077 != 0 {
                return Err(format!(
                    "{shown} holds the encryption key and can be read by others: run chmod 600 \
                     {shown}"
                ));
            }
            let mut text = String::new();
            file.read_to_string(&mut text)
                .map_err(|error| format!("cannot read {shown}: {error}"))?;
            decode(text.trim(), &shown.to_string()).map(Some)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot read {shown}: {error}")),
    }
}

fn decode(text: &str, place: &str) -> Result<[u8; KEY_BYTES], String> {
    let bytes =
        STANDARD.decode(text.trim()).ok().and_then(|bytes| <[u8; KEY_BYTES]>::try_from(bytes).ok());
    bytes.ok_or_else(|| {
        format!(
            "{place} must be the base64 form of {KEY_BYTES} random bytes, as `head -c 32 \
         /dev/urandom | base64` makes them"
        )
    })
}

/// Where a database keeps what tells a fitting key.
pub const VERIFIER: &str = "encryption_key_verifier";

/// Whether a key with this verifier is the one that a stored verifier was made of.
pub fn fits(stored: &[u8], verifier: &[u8; 32]) -> bool {
    bool::from(subtle::ConstantTimeEq::ct_eq(stored, verifier.as_slice()))
}

/// Refuses a key that does not fit the database, and writes down what tells a fitting one at the
/// first start.
pub fn check_verifier(tx: &mut dyn Tx, verifier: &[u8; 32]) -> Result<(), StoreError> {
    match migrate::read_meta(tx, VERIFIER)? {
        None => migrate::replace_meta(tx, VERIFIER, None, verifier),
        Some(stored) if fits(&stored, verifier) => Ok(()),
        Some(_) => Err(StoreError::Broken(
            "the encryption key does not fit this database: give the key it was made with in \
             HUNDI_ENCRYPTION_KEY or in the .key file beside it"
                .into(),
        )),
    }
}

/// Held by a running server; a second one on the same file is refused. Freed by the operating
/// system when the process ends, however it ends.
pub struct ServeLock {
    _file: File,
}

/// Locks a database that only one process may serve; `None` for one that many may.
pub fn lock_database(database: &Database) -> Result<Option<ServeLock>, String> {
    let Database::Sqlite(database) = database else { return Ok(None) };
    let path = beside(database, "-serve");
    let file = std::fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(|error| format!("cannot make {}: {error}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(ServeLock { _file: file })),
        Err(std::fs::TryLockError::WouldBlock) => Err(format!(
            "another hundi server uses {}: stop it first, or give this one a database of its own \
             with --database",
            database.display()
        )),
        Err(std::fs::TryLockError::Error(error)) => {
            Err(format!("cannot lock {}: {error}", path.display()))
        }
    }
}
