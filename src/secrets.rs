//! Where secrets come from, above all the encryption key, and the lock that keeps two servers off
//! one database file.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};

use crate::kernel::seal::{KEY_BYTES, Sealer, SealingKey, Verifier, fits, verifier_of};
use crate::kernel::{StoreError, system_random};
use crate::store::migrate::schema_version;
use crate::store::sqlite::{self, SqliteTx};
use crate::store::{Database, Tx, meta};

fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The value of the environment variable `name`. If it is unset or empty, the text of the file
/// whose path is in the variable `name` + `_FILE`: service managers hand out secrets in files.
/// `None` also if the value or the file cannot be read, which [`check_environment`] and
/// [`check_secret_files`] refuse at the start.
pub fn environment(name: &str) -> Option<String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    variable(name).or_else(|| {
        let text = std::fs::read_to_string(variable(&format!("{name}_FILE"))?).ok()?;
        Some(text.trim_end_matches(['\r', '\n']).to_owned())
    })
}

/// Refuses a variable `HUNDI_…` that is not UTF-8, which would count as not set. Other programs'
/// variables may hold anything.
pub fn check_environment() -> Result<(), String> {
    for (name, value) in std::env::vars_os() {
        let is_ours = name.as_encoded_bytes().starts_with(b"HUNDI_");
        if is_ours && (name.to_str().is_none() || value.to_str().is_none()) {
            let name = name.to_string_lossy();
            return Err(format!("the variable {name} is not UTF-8: set it again, or unset it"));
        }
    }
    Ok(())
}

/// Variables `HUNDI_…_FILE` whose file holds no secret: each is a setting of its own.
const FILE_SETTINGS: [&str; 1] = ["HUNDI_IFSC_FILE"];

/// Refuses a secret's file that is empty or cannot be read, and a secret that is given twice. A
/// service that could not read its encryption key might otherwise make another one.
pub fn check_secret_files() -> Result<(), String> {
    let texts = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    for (name, path) in texts {
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
            Err(error) => {
                return Err(format!("{name} names {path}, which cannot be read: {error}"));
            }
        }
    }
    Ok(())
}

/// The error if no key was given for PostgreSQL, which has no key file beside it.
pub const KEY_NEEDED: &str = "a database that several nodes use needs HUNDI_ENCRYPTION_KEY, the \
 same on each: make it once with `head -c 32 /dev/urandom | base64`";

/// The encryption keys that the operator gave by variables. `next` is given while the key is
/// changed.
#[derive(Clone, Debug, Default)]
pub struct GivenKeys {
    key: Option<SecretString>,
    next: Option<SecretString>,
}

/// The variable that has the encryption key, and the suffix of the key's file: beside an SQLite
/// database `hundi.db` the file is `hundi.db.key`.
const KEY: (&str, &str) = ("HUNDI_ENCRYPTION_KEY", ".key");
/// The same for the key that will replace the encryption key.
const NEXT_KEY: (&str, &str) = ("HUNDI_ENCRYPTION_KEY_NEXT", ".key-next");

impl GivenKeys {
    pub fn read(environment: &dyn Fn(&str) -> Option<String>) -> GivenKeys {
        let given = |name| environment(name).filter(|text| !text.is_empty()).map(Into::into);
        GivenKeys { key: given(KEY.0), next: given(NEXT_KEY.0) }
    }
}

/// The encryption keys that a process has.
pub struct EncryptionKeys {
    pub key: [u8; KEY_BYTES],
    /// The key that will replace the current one.
    pub next: Option<[u8; KEY_BYTES]>,
}

impl EncryptionKeys {
    pub fn all(&self) -> Vec<[u8; KEY_BYTES]> {
        std::iter::once(self.key).chain(self.next).collect()
    }
    pub fn verifiers(&self) -> Vec<Verifier> {
        self.all().iter().map(verifier_of).collect()
    }
}

/// The keys that the operator gave, or those in the files beside an SQLite database. If there is
/// none, and an SQLite database was never used with one, this makes a key and its file (mode 0600).
/// Otherwise a missing key is an error.
pub fn encryption_keys(database: &Database, given: &GivenKeys) -> Result<EncryptionKeys, String> {
    if let Some(keys) = existing_encryption_keys(database, given)? {
        return Ok(keys);
    }
    let Database::Sqlite(database) = database else {
        return Err(KEY_NEEDED.into());
    };
    let path = beside(database, KEY.1);
    let shown = path.display();
    // A key made now would fit nothing, and could later be taken for the right one.
    if stored_verifier(database)?.is_some() {
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
    Ok(EncryptionKeys { key, next: None })
}

/// The verifier of the key of an existing database; `None` if there is no database, or no key was
/// used with it yet.
fn stored_verifier(database: &Path) -> Result<Option<Vec<u8>>, String> {
    if !database.exists() {
        return Ok(None);
    }
    let read = || {
        let connection = sqlite::open_reader(database)?;
        let mut tx = SqliteTx::new(&connection);
        match schema_version(&mut tx)? {
            0 => Ok(None),
            _ => meta::read(&mut tx, VERIFIER),
        }
    };
    read().map_err(|error: StoreError| format!("cannot read {}: {error}", database.display()))
}

/// The keys that the operator gave, or those in the files beside an SQLite database; `None` if
/// there is none.
pub fn existing_encryption_keys(
    database: &Database,
    given: &GivenKeys,
) -> Result<Option<EncryptionKeys>, String> {
    let Some(key) = existing_key(database, given.key.as_ref(), KEY)? else { return Ok(None) };
    let next = existing_key(database, given.next.as_ref(), NEXT_KEY)?;
    if next == Some(key) {
        return Err(format!("{} is the key that is in use already", NEXT_KEY.0));
    }
    Ok(Some(EncryptionKeys { key, next }))
}

fn existing_key(
    database: &Database,
    given: Option<&SecretString>,
    (variable, suffix): (&str, &str),
) -> Result<Option<[u8; KEY_BYTES]>, String> {
    if let Some(text) = given {
        return decode(text.expose_secret(), variable).map(Some);
    }
    let Database::Sqlite(database) = database else { return Ok(None) };
    let path = beside(database, suffix);
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

/// The name in `meta` of the verifier of the key that seals.
pub const VERIFIER: &str = "encryption_key_verifier";

/// The error of a process that does not have the key that seals.
pub const KEY_DOES_NOT_FIT: &str = "the encryption key does not fit this database: give the key \
 that it was last changed to, or else the one that it was made with, in HUNDI_ENCRYPTION_KEY or in \
 the .key file beside it";

/// The verifier of the key that seals, which must be among `verifiers`: those of the keys that the
/// process has. If the database has no verifier yet, the first of these is stored.
pub fn sealing_verifier(tx: &mut dyn Tx, verifiers: &[Verifier]) -> Result<Verifier, StoreError> {
    match meta::read(tx, VERIFIER)? {
        None => {
            let first = verifiers.first().ok_or_else(key_does_not_fit)?;
            meta::replace(tx, VERIFIER, None, first)?;
            Ok(*first)
        }
        Some(stored) => verifiers
            .iter()
            .find(|verifier| fits(&stored, verifier))
            .copied()
            .ok_or_else(key_does_not_fit),
    }
}

/// Refuses a process that does not have the key that seals. Changes nothing, so it can run before a
/// migration.
pub fn refuse_unfit_keys(tx: &mut dyn Tx, verifiers: &[Verifier]) -> Result<(), StoreError> {
    // A new database has no key yet.
    if schema_version(tx)? == 0 {
        return Ok(());
    }
    match meta::read(tx, VERIFIER)? {
        Some(stored) if !verifiers.iter().any(|verifier| fits(&stored, verifier)) => {
            Err(key_does_not_fit())
        }
        _ => Ok(()),
    }
}

pub fn key_does_not_fit() -> StoreError {
    StoreError::Unfit(KEY_DOES_NOT_FIT.into())
}

/// Announces that [`sealing_key`] follows.
pub fn prefetch_sealing_key(tx: &mut dyn Tx) -> Result<(), StoreError> {
    meta::prefetch(tx, VERIFIER)
}

/// The key that seals in this transaction. Asks the store each time, because the key can change
/// while a process runs. `Err` if the process does not have the new key.
pub fn sealing_key<'s>(tx: &mut dyn Tx, sealer: &'s Sealer) -> Result<SealingKey<'s>, StoreError> {
    let stored = meta::read(tx, VERIFIER)?;
    sealer.sealing_key(stored.as_deref()).ok_or_else(|| {
        StoreError::Unavailable(
            "the encryption key was changed, and this node has the old one".into(),
        )
    })
}

/// Held by a running server. A second server on the same file is refused. The operating system
/// frees the lock when the process ends, however it ends.
pub struct ServeLock {
    _file: File,
}

/// Locks a database that only one process may serve. `None` for one that several may serve.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_made_for_a_database_that_cannot_be_read() {
        let folder = std::env::temp_dir().join(format!("hundi-secrets-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (broken, empty) = (folder.join("broken.db"), folder.join("empty.db"));
        std::fs::write(&broken, "no database at all".repeat(100)).unwrap();
        std::fs::write(&empty, "").unwrap();
        let made = |path: &Path| {
            let keys = encryption_keys(&Database::Sqlite(path.into()), &GivenKeys::default());
            (keys.map(|_| ()), beside(path, KEY.1).exists())
        };
        let (refused, is_made) = made(&broken);
        assert!(refused.as_ref().unwrap_err().contains("cannot read"), "{refused:?}");
        assert!(!is_made, "the key would fit nothing");
        assert_eq!(made(&empty), (Ok(()), true));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
