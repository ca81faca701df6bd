//! The console's texts, which are in the binary: one file for each language. To add a language, put
//! its file into `texts/`, named by the language's code.

#[cfg(test)]
mod languages;

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The code and the text of each language's file, which the build script finds. English is first;
/// the others fall back to it.
const LANGUAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/console_languages.rs"));

static ALL: LazyLock<Vec<Words>> = LazyLock::new(|| words_of(LANGUAGES));

fn words_of(languages: &[(&'static str, &str)]) -> Vec<Words> {
    languages.iter().map(|(code, file)| Words { code, texts: read(file) }).collect()
}

/// The texts of one language.
pub struct Words {
    /// The language's code, as in the attribute `lang`.
    pub code: &'static str,
    texts: BTreeMap<String, String>,
}

/// Every text of a file by its key: `title` below `[transfers]` is `transfers.title`.
fn read(file: &str) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    // A file that cannot be read has no texts; a test notices.
    let tables: BTreeMap<String, BTreeMap<String, String>> =
        toml::from_str(file).unwrap_or_default();
    for (table, entries) in tables {
        texts.extend(entries.into_iter().map(|(key, text)| (format!("{table}.{key}"), text)));
    }
    texts
}

impl Words {
    /// The language's name in itself.
    pub fn name(&self) -> &str {
        self.find("language.name").unwrap_or(self.code)
    }
    /// Each key that begins with `table` (a table's name with its dot, such as `refusal.`), with
    /// its text.
    pub fn below<'a>(&'a self, table: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let all = self.texts.iter().map(|(key, text)| (key.as_str(), text.as_str()));
        all.filter(move |(key, _)| key.starts_with(table))
    }
    pub fn find(&self, key: &str) -> Option<&str> {
        self.texts.get(key).map(String::as_str)
    }
    /// The text of a key; in English if this language has none, and the key itself if there is none
    /// at all. Tests ensure that neither happens.
    pub fn get<'a>(&'a self, key: &'a str) -> &'a str {
        let english = || ALL.first().and_then(|english| english.texts.get(key));
        self.texts.get(key).or_else(english).map_or(key, String::as_str)
    }
    /// Like [`Words::get`], with each `{name}` replaced by its value.
    pub fn with<const N: usize>(&self, key: &str, values: [(&str, &str); N]) -> String {
        let mut text = self.get(key).to_owned();
        for (name, value) in values {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        text
    }
    /// The message that too many attempts failed, and in how many minutes the next one is accepted.
    /// The minutes are `seconds`, rounded up.
    pub fn locked(&self, seconds: i64) -> String {
        self.with("sign_in.locked", [("minutes", &((seconds + 59) / 60).to_string())])
    }
}

/// All languages, English first.
pub fn all() -> &'static [Words] {
    &ALL
}

/// A language by its code.
pub fn of(code: &str) -> Option<&'static Words> {
    find(&ALL, code)
}

fn find<'a>(all: &'a [Words], code: &str) -> Option<&'a Words> {
    all.iter().find(|words| words.code == code)
}

/// The first language of `Accept-Language` that exists here, otherwise English. Weights are
/// ignored, because browsers send the languages in order of their weights.
pub fn wished(accept_language: &str) -> &'static Words {
    static NONE: Words = Words { code: "en", texts: BTreeMap::new() };
    wished_among(&ALL, accept_language).unwrap_or(&NONE)
}

fn wished_among<'a>(all: &'a [Words], accept_language: &str) -> Option<&'a Words> {
    let tags = accept_language.split(',').map(|tag| tag.split([';', '-']).next().unwrap_or(""));
    tags.filter_map(|tag| find(all, tag.trim())).next().or_else(|| all.first())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::literals::{files_below, sources, without_tests};
    use super::*;

    /// `{name}` in a text.
    fn placeholders(text: &str) -> BTreeSet<&str> {
        text.split('{')
            .skip(1)
            .filter_map(|part| part.split_once('}'))
            .map(|(name, _)| name)
            .collect()
    }

    /// What is wrong with a language: each text that it lacks, that English lacks, that is empty,
    /// or that has other placeholders than in English.
    fn faults(words: &Words, english: &Words) -> Vec<String> {
        let keys: BTreeSet<_> = words.texts.keys().chain(english.texts.keys()).collect();
        let mut faults = Vec::new();
        for key in keys {
            let fault = match (words.texts.get(key), english.texts.get(key)) {
                (Some(text), _) if text.trim().is_empty() => "is empty",
                (Some(text), Some(known)) if placeholders(text) != placeholders(known) => {
                    "has other placeholders"
                }
                (Some(_), Some(_)) => continue,
                (None, _) => "is missing",
                (_, None) => "is not known",
            };
            faults.push(format!("{}: {key} {fault}", words.code));
        }
        faults
    }

    #[test]
    fn every_language_has_every_text_and_the_same_placeholders_in_it() {
        let english = &all()[0];
        assert!(english.code == "en" && english.texts.len() > 10, "the file cannot be read");
        for words in all() {
            assert_eq!(faults(words, english), [""; 0]);
        }
    }

    /// To add a language, a file in the folder is enough: the build finds it, browsers get it, it
    /// gives the name by which people choose it, and the tests require every text in it.
    #[test]
    fn a_third_language_is_one_file() {
        let own = sources().join("console/texts");
        let codes = |found: &[(String, std::path::PathBuf)]| {
            found.iter().map(|(code, _)| code.clone()).collect::<Vec<_>>()
        };
        let known = languages::find(&own).unwrap();
        let built: Vec<_> = LANGUAGES.iter().map(|(code, _)| (*code).to_owned()).collect();
        assert_eq!(codes(&known), built, "the build found the same");

        let folder = std::env::temp_dir().join(format!("hundi-texts-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (code, path) in &known {
            std::fs::copy(path, folder.join(format!("{code}.toml"))).unwrap();
        }
        let english = std::fs::read_to_string(own.join("en.toml")).unwrap();
        let planted = english.replace("name = \"English\"", "name = \"मराठी\"");
        std::fs::write(folder.join("aa.toml"), &planted).unwrap();
        std::fs::write(folder.join("notes.txt"), "no language").unwrap();
        let found = languages::find(&folder).unwrap();
        assert_eq!(codes(&found), ["en", "aa", "hi"], "the one that others fall back to is first");
        let list = languages::list(&found);
        assert_eq!(list.matches("include_str!").count(), 3);
        assert!(list.contains("(\"aa\", include_str!("), "{list}");

        let texts: Vec<String> =
            found.iter().map(|(_, path)| std::fs::read_to_string(path).unwrap()).collect();
        let all = words_of(&[("en", &texts[0]), ("aa", &texts[1]), ("hi", &texts[2])]);
        assert_eq!(wished_among(&all, "aa-IN, en;q=0.5").unwrap().code, "aa");
        let third = find(&all, "aa").unwrap();
        assert_eq!(third.name(), "मराठी");
        assert_eq!(faults(third, &all[0]), [""; 0]);
        // The control: a file that lacks a text and has lost a placeholder has both faults.
        let broken = planted.replace("[language]\nname = \"मराठी\"\n", "[language]\n");
        let broken = broken.replacen("{age}", "{aeg}", 1);
        let broken = words_of(&[("aa", &broken)]);
        let told = faults(&broken[0], &all[0]);
        assert_eq!(told.len(), 2, "{told:?}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// The texts of the console's sources and templates, without this file.
    fn own_files() -> Vec<String> {
        let mut found = files_below(&sources().join("console"), &["rs", "html"]);
        found.retain(|(path, _)| path.file_name().is_some_and(|name| name != "texts.rs"));
        found.into_iter().map(|(_, text)| text).collect()
    }

    /// Texts in quotes that look like keys of one of these tables.
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
        // A `#` before a key marks a column of numbers (`blocks/mod.rs`).
        let texts = file.split('"').map(|text| text.trim_start_matches('#'));
        texts.filter(is_key).map(str::to_owned).collect()
    }

    #[test]
    fn every_key_that_is_named_is_there() {
        let english = &all()[0];
        let tables = english.texts.keys().filter_map(|key| key.split_once('.')).map(|(t, _)| t);
        let tables: BTreeSet<&str> = tables.collect();
        let files = own_files();
        let mut missing = BTreeSet::new();
        for file in &files {
            // What comments name is an example.
            let lines = file.lines().filter(|line| !line.trim_start().starts_with("//"));
            let file = &lines.collect::<Vec<_>>().join("\n");
            missing
                .extend(named(file, &tables).into_iter().filter(|key| english.find(key).is_none()));
            // This finds keys of tables that do not exist, too.
            for (start, _) in file.match_indices(".t.get(\"") {
                let key = file[start + 8..].split('"').next().unwrap_or("");
                if english.find(key).is_none() {
                    missing.insert(key.to_owned());
                }
            }
        }
        assert_eq!(missing, BTreeSet::new());
    }

    /// The keys that sources name in full, and the beginnings of keys to which they add a word.
    fn keys_named(files: &[String]) -> (BTreeSet<&str>, BTreeSet<&str>) {
        let texts = files.iter().flat_map(|file| file.split('"'));
        // A `#` before a key marks a column of numbers (`blocks/mod.rs`).
        let texts =
            texts.map(|text| text.trim_start_matches('#')).filter(|text| text.contains('.'));
        let (begun, whole): (Vec<&str>, Vec<&str>) = texts.partition(|text| text.contains('{'));
        let begins = begun.iter().filter_map(|text| text.split('{').next());
        (whole.into_iter().collect(), begins.filter(|begin| begin.contains('.')).collect())
    }

    #[test]
    fn every_text_is_shown() {
        let mut files = own_files();
        let own = std::fs::read_to_string(sources().join("console/texts.rs")).unwrap();
        files.push(without_tests(&own).to_owned());
        let (whole, begins) = keys_named(&files);
        let is_shown =
            |key: &str| whole.contains(key) || begins.iter().any(|begin| key.starts_with(begin));
        // Most keys of these tables stand in no source: those of `word.` are put together, and the
        // other tables are searched for the English text (`Words::translated`). They have tests of
        // their own.
        let of_others = ["word.", "refusal.", "evidence.", "subject.", "service."];
        let keys = all()[0].texts.keys();
        let keys = keys.filter(|key| !of_others.iter().any(|table| key.starts_with(table)));
        let idle: Vec<&String> = keys.filter(|key| !is_shown(key)).collect();
        assert_eq!(idle, Vec::<&String>::new());
        // The control.
        assert!(!is_shown("col.theirs") && is_shown("queue.holds") && is_shown("col.amount"));
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
            ("fr,de", "en"),
        ] {
            assert_eq!(wished(wish).code, code, "{wish}");
        }
        assert_eq!(of("en").unwrap().with("x.y", [("a", "b")]), "x.y");
    }
}
