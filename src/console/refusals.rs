//! Refusals in the reader's language. The rules write them in English, for the shell and the
//! console alike. The table `[refusal]` of the language files has each of them with its places, and
//! so what a rule wrote is found again and said in another language.
//!
//! In English stays what the service itself reports of its parts, such as a database that cannot be
//! written: it quotes what somebody has to look for elsewhere.

use super::blocks::word;
use super::texts::{self, Words};

/// The texts of the table `[refusal]` begin with this.
const TABLE: &str = "refusal.";

/// The values in the places of a template, if a text was made from it.
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
        found.push((name, value));
        rest = behind;
    }
    rest.is_empty().then_some(found)
}

/// How much of a template is not a place.
fn literal_length(template: &str) -> usize {
    template
        .split('{')
        .map(|piece| piece.split_once('}').map_or(piece, |(_, text)| text).len())
        .sum()
}

impl Words {
    /// A refusal of a rule, in this language; as it is if the language files do not have it.
    pub fn refusal(&self, text: &str) -> String {
        if self.code == "en" {
            return text.to_owned();
        }
        // Many begin with what they are about: `transfer_…: …`, `request 3: …`.
        if let Some((about, reason)) = text.split_once(": ")
            && about.split(' ').count() <= 2
            && let Some(reason) = self.said(reason)
        {
            let about = self.said(about).unwrap_or_else(|| about.to_owned());
            return format!("{about}: {reason}");
        }
        self.said(text).unwrap_or_else(|| text.to_owned())
    }

    fn said(&self, text: &str) -> Option<String> {
        let english = texts::all().first()?;
        // The template that says most of the text itself.
        let (key, found) = english
            .below(TABLE)
            .filter_map(|(key, template)| Some((key, template, values(template, text)?)))
            .max_by_key(|(_, template, _)| literal_length(template))
            .map(|(key, _, found)| (key, found))?;
        let mut said = self.find(key)?.to_owned();
        for (name, value) in found {
            let is_word = self.find(&format!("word.{value}")).is_some();
            let value = if is_word { word(self, value) } else { value.to_owned() };
            said = said.replace(&format!("{{{name}}}"), &value);
        }
        Some(said)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::chains::address::ChainAddress;
    use crate::keys::Permissions;

    #[test]
    fn a_refusal_is_said_in_the_language_of_the_reader() {
        let hindi = texts::of("hi").unwrap();
        for (english, said) in [
            (
                "transfer_01: it is funded, which does not take this decision",
                "transfer_01: इसकी स्थिति “",
            ),
            ("request 7: who asked for it cannot approve it", "अनुरोध 7: "),
            ("request 7: asha approved it already", "अनुरोध 7: asha इस"),
            (
                "quotes: resume by asha waits for a second person already: request 3",
                "quotes: asha का",
            ),
            ("shop is suspended already", "shop पहले से"),
            (
                "This deposit already has a refund: refund_1 (processing), which needs an address.",
                "इस जमा की वापसी पहले से है: refund_1 (",
            ),
        ] {
            let found = hindi.refusal(english);
            assert!(found.starts_with(said), "{found}");
            let ascii = found.split(' ').filter(|word| word.len() > 3 && word.is_ascii()).count();
            assert!(ascii <= 2, "names and identifiers alone stay: {found}");
            assert_eq!(texts::all()[0].refusal(english), english);
        }
        // Why an address, a name or a permission cannot be read.
        let mut faults: Vec<String> = [
            "T",
            "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWY0H",
            "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdh",
            "1BoatSLRHtKNngkdXEeobR76b53LETtpyT",
            "0x12",
            "0xDAC17F958D2ee523a2206206994597C13D831eC7",
        ]
        .iter()
        .map(|text| ChainAddress::parse(text).unwrap_err().to_string())
        .collect();
        faults.extend(crate::keys::making::account_name_fault(""));
        faults.extend(Permissions::parse("\"x y", &["transfers", "payouts"]).err());
        assert_eq!(faults.len(), 8);
        for english in &faults {
            let said = hindi.refusal(english);
            assert!(said.chars().any(|letter| letter >= '\u{900}'), "{english}: {said}");
        }
        let status = hindi.refusal("x: it is funded, which does not take this decision");
        assert!(!status.contains("funded"), "{status}");
        for unknown in ["", ": ", "the disk is full", "x: y: z"] {
            assert_eq!(hindi.refusal(unknown), unknown);
        }
    }

    /// The texts in quotes of a source, without its tests and comments.
    fn literals(source: &str) -> Vec<String> {
        let source = source.split("#[cfg(test)]\nmod tests").next().unwrap_or("");
        let lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
        let source = lines.collect::<Vec<_>>().join("\n");
        let (mut found, mut open) = (Vec::new(), None::<String>);
        let mut letters = source.chars().peekable();
        while let Some(letter) = letters.next() {
            match (letter, &mut open) {
                ('"', None) => open = Some(String::new()),
                ('"', Some(_)) => found.extend(open.take()),
                ('\\', Some(text)) => match letters.next() {
                    // A line that goes on.
                    Some('\n') => while letters.next_if(|next| next.is_whitespace()).is_some() {},
                    Some(escaped) => text.push(escaped),
                    None => {}
                },
                (letter, Some(text)) => text.push(letter),
                // A quotation mark as a letter opens no text.
                ('\'', None) if letters.peek() == Some(&'"') => drop(letters.nth(1)),
                _ => {}
            }
        }
        found
    }

    /// A sentence: three words or more, which is no statement for the store.
    fn is_sentence(text: &str) -> bool {
        let words = text.split_whitespace();
        let words = words.filter(|word| word.bytes().filter(u8::is_ascii_lowercase).count() > 1);
        words.count() >= 3
            && !["SELECT", "UPDATE", "INSERT"].iter().any(|sql| text.starts_with(sql))
    }

    /// With `{}` for each place, and without what the refusal is about.
    fn bare(text: &str) -> String {
        let places =
            text.split('{').map(|piece| piece.split_once('}').map_or(piece, |(_, end)| end));
        let text = places.collect::<Vec<_>>().join("{}");
        let reason = ["request {}: ", "{}: "].iter().find_map(|about| text.strip_prefix(about));
        reason.unwrap_or(&text).to_owned()
    }

    fn read(folder: &Path, found: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                read(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let name = path.display().to_string();
                found.extend(
                    literals(&std::fs::read_to_string(&path).unwrap())
                        .into_iter()
                        .map(|text| (name.clone(), text)),
                );
            }
        }
    }

    /// What happened, which only the shell prints; and what the store or the log gets.
    const NO_REFUSALS: &[&str] = &[
        "{} is suspended; its keys stop working within a second",
        "{} is checked again{}",
        "{} stays without payouts: screening found more{}",
        "{} stays without payouts{}",
        "; screening holds it",
        "may not send",
        "{} may not send yet: screening found more{}",
        ": give it one with --to, or let the caller declare it with POST /v1/refunds/:id",
        "; screening hits {}: {}",
        "{} is sent to the bank again",
        "{} may be sent{}",
        "{} stays held{}; `hundi refunds address` gives it another address",
        "; screening found the address on a list: `hundi screening hits` shows it, `hundi decide \
         ID approve` or `refuse` decides",
        "{} waits for {} to be final on {}",
        "; screening still holds it",
        "{} is no longer held for what the bank reported{}",
        "it is too old",
        "who asked for it is disabled",
        "waits for a second person: request",
        "request {} about {} is rejected",
        "it was taken",
        "{} go on for {}",
        "id, subject, decision, actor, reason, approved_by, decided_at",
        "a decision has an actor or reason that is too long",
        "number, subject, word, cause, status, requested_by, requester, reason, requested_at, \
         decider, decided_at, asked",
        // What callers get.
        "must be an address in hexadecimal, which begins with 0x.",
        // The console: its log, its headers, and what is written for who starts the service.
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
         connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        "cookie, accept-language, hx-request",
        "camera=(), geolocation=(), microphone=()",
        "public, max-age=31536000, immutable",
        "<input type=\"hidden\" name=\"token\" value=\"{}\">",
        "{}={}; Path=/; HttpOnly; SameSite=Lax{}{}",
        "a console page failed",
        "the use of a session could not be written down",
        "an operator signed in",
        "a sign-in did not come to its end",
        "a page cannot be drawn: {}",
        "an operator signed in at the provider",
    ];

    /// Whether texts of a file are never shown to an operator: settings, and what a provider's
    /// answer lacks, which the log gets.
    fn is_for_others(file: &str) -> bool {
        [
            "origin.rs",
            "proxies.rs",
            "openid/settings.rs",
            "openid/provider.rs",
            "openid/token.rs",
            "openid/sign_in.rs",
            "openid/flow.rs",
            "texts/languages.rs",
            "texts.rs",
        ]
        .iter()
        .any(|end| file.ends_with(&format!("console/{end}")))
    }

    /// No rule of the operator's refuses in a sentence that the language files lack, and no page
    /// has a sentence of its own.
    #[test]
    fn every_refusal_is_in_the_language_files() {
        let english = &texts::all()[0];
        let known: Vec<String> = english.below(TABLE).map(|(_, text)| bare(text)).collect();
        assert!(known.len() > 60, "the table cannot be read");
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut found = Vec::new();
        for folder in ["operator", "decisions", "console"] {
            read(&sources.join(folder), &mut found);
        }
        for file in [
            "reconcile/explaining.rs",
            "kernel/decided_by.rs",
            "chains/address.rs",
            "chains/tron_address.rs",
            "chains/evm.rs",
            "keys/making.rs",
        ] {
            let text = std::fs::read_to_string(sources.join(file)).unwrap();
            found.extend(literals(&text).into_iter().map(|text| (file.to_owned(), text)));
        }
        // Of these files, most sentences are for callers.
        for (file, of_operators) in [
            ("keys/mod.rs", "is not a permission"),
            ("screening/lists.rs", "is missing: set"),
            ("screening/lists.rs", "days old"),
            ("refunds/mod.rs", "The refund is"),
        ] {
            let text = std::fs::read_to_string(sources.join(file)).unwrap();
            let told: Vec<String> =
                literals(&text).into_iter().filter(|text| text.contains(of_operators)).collect();
            assert!(!told.is_empty(), "{file} no longer says {of_operators:?}");
            found.extend(told.into_iter().map(|text| (file.to_owned(), text)));
        }
        let sentences =
            found.iter().filter(|(file, text)| is_sentence(&bare(text)) && !is_for_others(file));
        let lacking: Vec<_> = sentences
            .filter(|(_, text)| !known.contains(&bare(text)))
            .filter(|(_, text)| !NO_REFUSALS.contains(&bare(text).as_str()))
            .collect();
        assert_eq!(lacking, Vec::<&(String, String)>::new());
        // The control: the reader of sources finds what a rule would say.
        let planted =
            "no(\"this is \\\n    new to {id}\") // \"not this\"\n'\"' \"nor {} this one\"";
        assert_eq!(literals(planted)[..1], ["this is new to {id}"]);
        assert!(is_sentence("this is new to {id}") && !known.contains(&bare("this is new")));
        assert!(!is_sentence("SELECT a FROM b WHERE c") && !is_sentence("rates_{value}"));
    }
}
