//! Records which statements ran, for the test that prepares each of them on every store. Does
//! nothing without debug assertions.

/// Appends a statement that this process has not run before to a file in the folder that
/// `HUNDI_TEST_STATEMENTS` names.
#[cfg(debug_assertions)]
pub(super) fn note(sql: &str) {
    use std::collections::HashSet;
    use std::io::Write;
    use std::sync::{Mutex, OnceLock, PoisonError};
    static FOLDER: OnceLock<Option<std::path::PathBuf>> = OnceLock::new();
    static KNOWN: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let Some(folder) =
        FOLDER.get_or_init(|| std::env::var_os("HUNDI_TEST_STATEMENTS").map(Into::into))
    else {
        return;
    };
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if known.get_or_insert_default().insert(sql.to_owned()) {
        let path = folder.join(format!("{}.sql", std::process::id()));
        let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        // If this fails, the test notices: it counts the statements.
        let _ = file.and_then(|mut file| writeln!(file, "{line}"));
    }
}

#[cfg(not(debug_assertions))]
pub(super) const fn note(_: &str) {}
