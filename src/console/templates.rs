//! Translates texts that the service wrote in English into the reader's language. Tables of the
//! language files have a template for each such text, with placeholders such as `{name}`. A text is
//! recognised by what its template has around the placeholders.

use super::blocks::word;
use super::texts::{self, Words};

/// The placeholders whose values are words of the service. Besides them, only the value of `whom`
/// is translated: it is `everybody` or an account. The values of all other placeholders are names,
/// identifiers or numbers, and stay as they are.
const WORD_PLACEHOLDERS: &[&str] = &["act", "mode", "operation", "reason", "status", "what"];
/// The placeholder whose value has only digits.
const NUMBER_PLACEHOLDER: &str = "number";

/// The values of a template's placeholders, if a text can have been made from it.
fn values<'a, 't>(template: &'a str, text: &'t str) -> Option<Vec<(&'a str, &'t str)>> {
    let mut pieces = template.split('{');
    let mut rest = text.strip_prefix(pieces.next()?)?;
    let mut found = Vec::new();
    let mut pieces = pieces.peekable();
    while let Some(piece) = pieces.next() {
        let (name, literal) = piece.split_once('}')?;
        let end = match pieces.peek() {
            // The last literal ends the text.
            None => {
                rest.len().checked_sub(literal.len()).filter(|at| rest.get(*at..) == Some(literal))
            }
            Some(_) => rest.find(literal),
        }?;
        let (value, behind) = (rest.get(..end)?, rest.get(end + literal.len()..)?);
        if name == NUMBER_PLACEHOLDER && !value.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        found.push((name, value));
        rest = behind;
    }
    rest.is_empty().then_some(found)
}

/// How many bytes of a template are not placeholders.
fn literal_length(template: &str) -> usize {
    template
        .split('{')
        .map(|piece| piece.split_once('}').map_or(piece, |(_, text)| text).len())
        .sum()
}

impl Words {
    /// An English text in this language, by the templates of a table. `None` if no template fits,
    /// or if this language is English. `table` is the table's name with a dot at its end.
    pub fn translated(&self, table: &str, text: &str) -> Option<String> {
        if self.code == "en" {
            return None;
        }
        let english = texts::all().first()?;
        // If several templates fit, the one with the longest literal text is taken.
        let (key, found) = english
            .below(table)
            .filter_map(|(key, template)| Some((key, template, values(template, text)?)))
            .max_by_key(|(_, template, _)| literal_length(template))
            .map(|(key, _, found)| (key, found))?;
        let mut translated = self.find(key)?.to_owned();
        for (name, value) in found {
            let value = self.placeholder_value(name, value);
            translated = translated.replace(&format!("{{{name}}}"), &value);
        }
        Some(translated)
    }

    /// The value of a placeholder, in this language.
    fn placeholder_value(&self, name: &str, value: &str) -> String {
        // Everybody, or an account.
        if name == "whom" {
            let everybody = || self.get("pauses.everybody").to_owned();
            let account = || self.known_subject(value).unwrap_or_else(|| value.to_owned());
            return if value == "everybody" { everybody() } else { account() };
        }
        if !WORD_PLACEHOLDERS.contains(&name) {
            return value.to_owned();
        }
        if let Some(act) = self.find(&format!("act.{value}")).filter(|_| name == "act") {
            return act.to_owned();
        }
        match self.find(&format!("word.{value}")) {
            Some(_) => word(self, value),
            None => value.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_gives_the_values_of_its_placeholders() {
        for (template, text, wanted) in [
            ("account {name}", "account my shop", Some(vec![("name", "my shop")])),
            ("account {number} {mode}", "account 7 x", Some(vec![("number", "7"), ("mode", "x")])),
            // A name whose last word is a mode.
            ("account {number} {mode}", "account my test", None),
            ("entry {a} of {b}!", "entry 1 of 2!", Some(vec![("a", "1"), ("b", "2")])),
            ("entry {a} of {b}!", "entry 1 of 2", None),
            ("no value", "no value", Some(Vec::new())),
            ("no value", "no value here", None),
            ("{name} is gone", "अंक is gone", Some(vec![("name", "अंक")])),
        ] {
            assert_eq!(values(template, text), wanted, "{template}: {text}");
        }
    }

    #[test]
    fn only_words_of_the_service_are_said_in_another_language() {
        let hindi = texts::of("hi").unwrap();
        assert_eq!(hindi.placeholder_value("name", "live"), "live");
        assert_eq!(hindi.placeholder_value("mode", "live"), hindi.get("word.live"));
        assert_eq!(hindi.placeholder_value("act", "refuse"), hindi.get("act.refuse"));
        assert_eq!(hindi.placeholder_value("status", "no_such_word"), "no_such_word");
        assert_eq!(hindi.placeholder_value("whom", "everybody"), hindi.get("pauses.everybody"));
        assert_eq!(hindi.placeholder_value("whom", "account \"my shop\""), "खाता \"my shop\"");
        assert_eq!(hindi.translated("refusal.", "no template has this"), None);
    }
}
