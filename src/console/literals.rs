//! Reads the string literals of source files, for tests that look for texts without a translation.

use std::path::{Path, PathBuf};

/// The string literals of a source file, without those in its tests and in lines that are comments.
pub fn literals(source: &str) -> Vec<String> {
    let lines = without_tests(source).lines().filter(|line| !line.trim_start().starts_with("//"));
    let source = lines.collect::<Vec<_>>().join("\n");
    let (mut found, mut open) = (Vec::new(), None::<String>);
    let mut letters = source.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, &mut open) {
            ('"', None) => open = Some(String::new()),
            ('"', Some(_)) => found.extend(open.take()),
            ('\\', Some(text)) => match letters.next() {
                // The literal goes on in the next line.
                Some('\n') => while letters.next_if(|next| next.is_whitespace()).is_some() {},
                Some(escaped) => text.push(escaped),
                None => {}
            },
            (letter, Some(text)) => text.push(letter),
            // A quotation mark that is a character literal opens no string.
            ('\'', None) if letters.peek() == Some(&'"') => drop(letters.nth(1)),
            _ => {}
        }
    }
    found
}

/// Whether a text is a sentence: three words or more have at least two lowercase letters, and it is
/// no SQL statement.
pub fn is_sentence(text: &str) -> bool {
    let words = text.split_whitespace();
    let words = words.filter(|word| word.bytes().filter(u8::is_ascii_lowercase).count() > 1);
    words.count() >= 3 && !["SELECT", "UPDATE", "INSERT"].iter().any(|sql| text.starts_with(sql))
}

/// A refusal's text with `{}` for each placeholder, and without the object that it begins with.
pub fn bare(text: &str) -> String {
    let pieces = text.split('{').map(|piece| piece.split_once('}').map_or(piece, |(_, end)| end));
    let text = pieces.collect::<Vec<_>>().join("{}");
    let reason = ["request {}: ", "{}: "].iter().find_map(|about| text.strip_prefix(about));
    reason.unwrap_or(&text).to_owned()
}

/// The folder `src`.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The files below a folder with one of these extensions: their paths and texts.
pub fn files_below(folder: &Path, extensions: &[&str]) -> Vec<(PathBuf, String)> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                return files_below(&path, extensions);
            }
            let has_extension =
                path.extension().is_some_and(|end| extensions.iter().any(|wanted| end == *wanted));
            let text = has_extension.then(|| std::fs::read_to_string(&path).unwrap());
            text.map(|text| (path, text)).into_iter().collect()
        })
        .collect()
}

/// A source without the tests at its end.
pub fn without_tests(source: &str) -> &str {
    source.split("#[cfg(test)]\nmod tests").next().unwrap_or("")
}

/// The words of a text that have two or more lowercase Latin letters, without those in backticks.
pub fn english_words(text: &str) -> Vec<&str> {
    let plain = text.split('`').step_by(2);
    let words = plain.flat_map(|part| part.split(|letter: char| !letter.is_alphanumeric()));
    words.filter(|word| word.bytes().filter(u8::is_ascii_lowercase).count() > 1).collect()
}

/// A text with `value` for each placeholder.
pub fn filled(text: &str, value: &str) -> String {
    let mut pieces = text.split('{');
    let first = pieces.next().unwrap_or("").to_owned();
    pieces.fold(first, |made, piece| {
        piece.split_once('}').map_or(made.clone(), |(_, end)| made + value + end)
    })
}
