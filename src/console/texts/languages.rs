//! Finds the languages of the console: each is one file of texts, named by the language's code. The
//! build script uses this, and so do tests.

use std::io;
use std::path::{Path, PathBuf};

/// The language that others fall back to.
const FIRST: &str = "en";

/// The code and the file of each language in a folder: [`FIRST`], then the others by their codes.
pub fn find(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml")
            && let Some(code) = path.file_stem().and_then(|code| code.to_str())
        {
            found.push((code.to_owned(), path));
        }
    }
    found.sort_by_key(|(code, _)| (code != FIRST, code.clone()));
    Ok(found)
}

/// The list as Rust code: pairs of a language's code and its file's text.
pub fn list(found: &[(String, PathBuf)]) -> String {
    let line =
        |(code, path): &(String, PathBuf)| format!("    ({code:?}, include_str!({path:?})),\n");
    let lines: String = found.iter().map(line).collect();
    format!("&[\n{lines}]\n")
}
