//! The console's texts: one file for each language, from the binary. A third language is one more
//! file and one more line in `LANGUAGES`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Languages, the one that others fall back to first: the code, its name in itself, its file.
const LANGUAGES: &[(&str, &str, &str)] = &[
    ("en", "English", include_str!("texts/en.toml")),
    ("hi", "हिन्दी", include_str!("texts/hi.toml")),
];

static ALL: LazyLock<Vec<Words>> = LazyLock::new(|| {
    LANGUAGES.iter().map(|(code, name, file)| Words { code, name, texts: read(file) }).collect()
});

/// The texts of one language.
pub struct Words {
    /// As in the attribute `lang`.
    pub code: &'static str,
    /// Its name in itself.
    pub name: &'static str,
    texts: BTreeMap<String, String>,
}

/// Every text of a file by its key: `title` below `[transfers]` is `transfers.title`.
fn read(file: &str) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    // A file that does not read has no texts; a test notices.
    let tables: BTreeMap<String, BTreeMap<String, String>> =
        toml::from_str(file).unwrap_or_default();
    for (table, entries) in tables {
        texts.extend(entries.into_iter().map(|(key, text)| (format!("{table}.{key}"), text)));
    }
    texts
}

impl Words {
    pub fn find(&self, key: &str) -> Option<&str> {
        self.texts.get(key).map(String::as_str)
    }
    /// The text of a key; in English where this language has none, and the key itself where there
    /// is none at all. Tests see to it that neither happens.
    pub fn get<'a>(&'a self, key: &'a str) -> &'a str {
        let english = || ALL.first().and_then(|english| english.texts.get(key));
        self.texts.get(key).or_else(english).map_or(key, String::as_str)
    }
    /// The same with values in the places of `{name}`.
    pub fn with<const N: usize>(&self, key: &str, values: [(&str, &str); N]) -> String {
        let mut text = self.get(key).to_owned();
        for (name, value) in values {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        text
    }
}

/// All languages, for the choice on the account's page.
pub fn all() -> &'static [Words] {
    &ALL
}

/// A language by its code.
pub fn of(code: &str) -> Option<&'static Words> {
    ALL.iter().find(|words| words.code == code)
}

/// The language that a browser wishes for (`Accept-Language`), as far as there is one. Weights are
/// taken as browsers send them: falling.
pub fn wished(accept_language: &str) -> &'static Words {
    static NONE: Words = Words { code: "en", name: "English", texts: BTreeMap::new() };
    let tags = accept_language.split(',').map(|tag| tag.split([';', '-']).next().unwrap_or(""));
    let found = tags.filter_map(|tag| of(tag.trim())).next();
    found.or_else(|| ALL.first()).unwrap_or(&NONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// `{name}` in a text.
    fn places(text: &str) -> BTreeSet<&str> {
        text.split('{')
            .skip(1)
            .filter_map(|part| part.split_once('}'))
            .map(|(name, _)| name)
            .collect()
    }

    #[test]
    fn every_language_has_every_text_and_the_same_places_in_it() {
        let english = &all()[0];
        assert!(english.texts.len() > 10, "the file does not read");
        for words in all() {
            let (keys, known): (Vec<_>, Vec<_>) =
                (words.texts.keys().collect(), english.texts.keys().collect());
            assert_eq!(keys, known, "{}", words.code);
            for (key, text) in &words.texts {
                assert!(!text.trim().is_empty(), "{}: {key} is empty", words.code);
                assert_eq!(places(text), places(&english.texts[key]), "{}: {key}", words.code);
            }
        }
    }

    fn files_below(folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files_below(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs" || e == "html")
                && path.file_name().is_some_and(|name| name != "texts.rs")
            {
                found.push(std::fs::read_to_string(path).unwrap());
            }
        }
    }

    /// Texts in quotes that look like keys of a table that there is.
    fn named(file: &str, tables: &BTreeSet<&str>) -> BTreeSet<String> {
        let is_key = |text: &&str| {
            text.split_once('.').is_some_and(|(table, key)| {
                tables.contains(table)
                    && !key.is_empty()
                    && key
                        .bytes()
                        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
            })
        };
        file.split('"').filter(is_key).map(str::to_owned).collect()
    }

    #[test]
    fn every_key_that_is_named_is_there() {
        let english = &all()[0];
        let tables = english.texts.keys().filter_map(|key| key.split_once('.')).map(|(t, _)| t);
        let tables: BTreeSet<&str> = tables.collect();
        let mut files = Vec::new();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/console");
        files_below(&folder, &mut files);
        let mut missing = BTreeSet::new();
        for file in &files {
            // What comments name is an example.
            let lines = file.lines().filter(|line| !line.trim_start().starts_with("//"));
            let file = &lines.collect::<Vec<_>>().join("\n");
            missing
                .extend(named(file, &tables).into_iter().filter(|key| english.find(key).is_none()));
            // A table that nobody has is a slip too.
            for (start, _) in file.match_indices(".t.get(\"") {
                let key = file[start + 8..].split('"').next().unwrap_or("");
                if english.find(key).is_none() {
                    missing.insert(key.to_owned());
                }
            }
        }
        assert_eq!(missing, BTreeSet::new());
    }

    #[test]
    fn a_browser_gets_the_first_language_that_there_is() {
        for (wish, code) in [
            ("", "en"),
            ("hi", "hi"),
            ("hi-IN,hi;q=0.9,en;q=0.8", "hi"),
            ("fr,hi;q=0.5", "hi"),
            ("en-GB,hi", "en"),
            ("*", "en"),
        ] {
            assert_eq!(wished(wish).code, code, "{wish}");
        }
        assert_eq!(of("en").unwrap().with("x.y", [("a", "b")]), "x.y");
    }
}
