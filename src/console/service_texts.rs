//! What the service itself wrote into the store, in the reader's language: the evidence of
//! screening, what decisions and entries of the audit log are about, and reasons that no person
//! gave. What a person typed, names on lists, identifiers and addresses stay as they are.

use super::blocks::word;
use super::texts::Words;
use crate::reconcile::BANK_SAYS;
use crate::screening::UNREADABLE;
use crate::screening::hit::EVIDENCE_SEPARATOR;
use crate::screening::hits;

// The keys of a table of the language files begin with its name and a dot.
const EVIDENCE: &str = "evidence.";
const SUBJECT: &str = "subject.";
const SERVICE: &str = "service.";

impl Words {
    /// The evidence of a screening hit. A part that the language files do not have stays as it is.
    pub fn evidence(&self, text: &str) -> String {
        let pieces: Vec<&str> = text.split(EVIDENCE_SEPARATOR).collect();
        let (mut parts, mut from) = (Vec::new(), 0);
        while let Some(piece) = pieces.get(from) {
            // The separator may occur in a listed name, and does occur in some texts.
            let found = (from + 1..=pieces.len()).find_map(|until| {
                let part = pieces.get(from..until)?.join(EVIDENCE_SEPARATOR);
                Some((self.translated(EVIDENCE, &part)?, until))
            });
            let (part, until) = found.unwrap_or_else(|| ((*piece).to_owned(), from + 1));
            parts.push(part);
            from = until;
        }
        parts.join(EVIDENCE_SEPARATOR)
    }

    /// The list and the entry of a hit. Two kinds of hits have no entry and get a word instead:
    /// what was not compared in full, and the operator's own refusal.
    pub fn listed(&self, list: &str, entry_id: &str) -> String {
        match (list, entry_id) {
            (UNREADABLE, _) => word(self, "unreadable"),
            (hits::OPERATOR, hits::DECISION) => word(self, "operator"),
            _ => format!("{list} {entry_id}"),
        }
    }

    /// What a decision or a difference is about, if it is no object: a pause, an account, a
    /// movement.
    pub fn subject(&self, text: &str) -> String {
        self.known_subject(text).unwrap_or_else(|| text.to_owned())
    }

    /// Like [`Words::subject`]; `None` if the language files do not have it.
    pub fn known_subject(&self, text: &str) -> Option<String> {
        self.translated(SUBJECT, text)
    }

    /// A reason or a detail that the service wrote. If an approval request ended because its
    /// decision would now be declined, the reason is the text of that refusal. The bank's words at
    /// the end of a difference's detail stay as they are.
    pub fn service_text(&self, text: &str) -> String {
        let mut parts = text.split(BANK_SAYS);
        let own = parts.next().unwrap_or("");
        let own = self.translated(SERVICE, own).unwrap_or_else(|| self.refusal(own));
        parts.fold(own, |said, words| said + &self.with("service.bank_says", [("words", words)]))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::super::literals::{
        english_words, files_below, filled, is_sentence, literals, sources, without_tests,
    };
    use super::super::texts;
    use super::*;
    use crate::chains::address::ChainAddress;
    use crate::kernel::Mode;
    use crate::operator;
    use crate::pauses::Operation;
    use crate::rails::files::rows::Attention;
    use crate::screening::birth::Birth;
    use crate::screening::countries::CountryCode;
    use crate::screening::judge::Thresholds;
    use crate::screening::matcher::EntryMatcher;
    use crate::screening::{
        EntryKind, ListEntry, ListName, ListedIdentifier, ListedName, ScreeningQuestion,
    };

    /// The value that tests give to placeholders. No text of any language contains it.
    const SAMPLE: &str = "X7";

    fn others() -> impl Iterator<Item = &'static Words> {
        texts::all().iter().filter(|words| words.code != "en")
    }

    /// The path and the text of each source of the service, without its tests.
    fn own_files() -> Vec<(String, String)> {
        let all = files_below(&sources(), &["rs"]).into_iter();
        all.map(|(path, text)| (path.display().to_string(), without_tests(&text).to_owned()))
            .filter(|(name, _)| !name.ends_with("_test.rs"))
            .collect()
    }

    /// Sentences that are no evidence, in sources that make evidence.
    const NO_EVIDENCE: &[&str] = &["an object of this kind is not screened"];

    /// Every text from which sources make the evidence of hits.
    fn evidence_texts() -> Vec<String> {
        let all = own_files();
        let makes = |(name, text): &&(String, String)| {
            let is_made = ["ScreeningHit {", "HitRow {"].iter().any(|made| {
                text.match_indices(made).any(|(at, _)| {
                    let before = &text[..at];
                    !["struct ", "impl ", "-> "].iter().any(|word| before.ends_with(word))
                })
            });
            is_made || name.ends_with("screening/judge.rs")
        };
        let found = all.iter().filter(makes).flat_map(|(_, text)| literals(text));
        // Each literal with and without the text for a weak alias.
        let found = found.filter(|text| is_sentence(text)).flat_map(|text| {
            let text = text.replace("{EVIDENCE_SEPARATOR}", EVIDENCE_SEPARATOR);
            ["", " (weak alias)"].map(|weak| filled(&text.replace("{weak}", weak), SAMPLE))
        });
        let mut found: Vec<String> = found
            .filter(|text| !NO_EVIDENCE.contains(&text.as_str()) && !text.contains("entry_id"))
            .filter(|text| text != crate::screening::simulated::POSSIBLE_NAME)
            .collect();
        found.sort();
        found.dedup();
        found
    }

    /// The texts that stay English, wholly or in part, in another language.
    fn left(texts: &[String], said: impl Fn(&Words, &str) -> String) -> Vec<String> {
        let all = others().flat_map(|words| texts.iter().map(move |text| (words, text)));
        all.filter_map(|(words, text)| {
            let said = said(words, text);
            let is_left = !english_words(&said).is_empty() || said == *text;
            is_left.then(|| format!("{}: {said}", words.code))
        })
        .collect()
    }

    #[test]
    fn all_evidence_is_in_the_language_files() {
        let found = evidence_texts();
        assert!(found.len() >= 22, "the sources say less: {found:#?}");
        for part in ["(weak alias), score X7; X7", "refused by the operator", "the key of X7 is"] {
            assert!(found.iter().any(|text| text.contains(part)), "no {part} in {found:#?}");
        }
        assert_eq!(left(&found, Words::evidence), [""; 0]);
        // The control: a text that a source might have, whole or beside a known one.
        for planted in ["the voice of a name agrees", "date of birth agrees, country far"] {
            let beside = format!("refused by the operator; {planted}");
            for text in [planted.to_owned(), beside] {
                assert_eq!(left(&[text], Words::evidence).len(), others().count(), "{planted}");
            }
        }
    }

    /// Many kinds of hits, as screening makes them. The names in them stay as they are.
    #[test]
    fn evidence_as_screening_makes_it_is_translated_whole() {
        let ethereum = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
        let address = ChainAddress::parse(ethereum).unwrap();
        let tron = ChainAddress::of_chain("tron", *address.bytes());
        let russia = CountryCode::parse("RU");
        let name = "TARKHAD; \"ZUBIN\"";
        let mut made = BTreeSet::new();
        for (is_weak, birth) in [(false, "1970-01-31"), (true, "1970-01-31"), (false, "1970")] {
            let mut entry = ListEntry::new(ListName::Own, "own-1", EntryKind::Individual);
            entry.names.push(ListedName { text: name.into(), is_weak });
            entry.births.extend(Birth::parse(birth));
            entry.countries.extend(russia);
            let identifier = ListedIdentifier { number: "AB123456".into(), country: russia };
            entry.identifiers.push(identifier);
            entry.addresses.push(ethereum.into());
            let matcher = EntryMatcher::new(vec![Arc::new(entry)], Thresholds::default());
            let person = ScreeningQuestion::person("Zubin Tarkhad");
            for born in [None, Some((1970, 1, 31)), Some((1970, 8, 8)), Some((1940, 8, 8))] {
                for countries in [Vec::new(), vec!["RU".to_owned()], vec!["IN".to_owned()]] {
                    let date_of_birth = born.map(|(y, m, d)| jiff::civil::Date::constant(y, m, d));
                    let named = ScreeningQuestion { date_of_birth, countries, ..person.clone() };
                    let other = "Asha Rao".to_owned();
                    let identifiers = vec!["ab 123456".to_owned()];
                    let numbered = ScreeningQuestion { name: other, identifiers, ..named.clone() };
                    made.extend([named, numbered].iter().flat_map(|asked| {
                        matcher.screen(asked).hits.into_iter().map(|hit| hit.evidence)
                    }));
                }
            }
            for asked in ["आशा राव", "\u{202e}oaR ahsA"] {
                let asked = ScreeningQuestion::person(asked);
                made.extend(matcher.screen(&asked).hits.into_iter().map(|hit| hit.evidence));
            }
            let found = [&address, &tron].map(|address| matcher.screen_address(address).hits);
            let found: Vec<String> = found.into_iter().flatten().map(|hit| hit.evidence).collect();
            made.insert(found.join(EVIDENCE_SEPARATOR));
            made.extend(found);
        }
        let made: Vec<String> = made.into_iter().collect();
        assert!(made.len() >= 18, "{made:#?}");
        let tron = tron.to_string();
        let said = |words: &Words, text: &str| {
            words.evidence(text).replace(ethereum, "").replace(&tron, "")
        };
        assert_eq!(left(&made, said), [""; 0]);
        for evidence in made.iter().filter(|evidence| evidence.contains("TARKHAD")) {
            assert!(others().all(|words| words.evidence(evidence).contains(name)), "{evidence}");
        }
        let english = &texts::all()[0];
        assert!(made.iter().all(|evidence| english.evidence(evidence) == *evidence));
    }

    #[test]
    fn what_entries_are_about_is_in_the_language_files() {
        let shop = Some("Live Shop".to_owned());
        let mut subjects: Vec<String> = Operation::ALL
            .iter()
            .flat_map(|operation| [None, shop.clone()].map(|account| (*operation, account)))
            .map(|(operation, account)| operator::pause_subject(operation, &account))
            .collect();
        subjects.push(operator::account_subject("Live Shop"));
        // What the sources say, with values for the placeholders.
        for (file, text) in [
            ("cli/advice.rs", "advice key of {} mode"),
            ("cli/pause.rs", "database"),
            ("settings_log.rs", "settings"),
            ("reconcile/mod.rs", "account {} {}"),
            ("reconcile/chain/mod.rs", "sweep {}:{}"),
            ("reconcile/chain/mod.rs", "{} {transaction_hash}:{log_index} {address}"),
        ] {
            let source = std::fs::read_to_string(sources().join(file)).unwrap();
            assert!(literals(&source).iter().any(|found| found == text), "{file} lacks {text:?}");
        }
        subjects.extend(["database", "settings", "sweep AB12:3"].map(str::to_owned));
        for mode in [Mode::Test, Mode::Live].map(Mode::as_str) {
            subjects.extend([format!("advice key of {mode} mode"), format!("account 7 {mode}")]);
        }
        subjects.extend(["sweep", "deposit"].map(|what| format!("{what} AB12:3 TADDRESS")));
        let said = |words: &Words, text: &str| words.subject(text).replace("Live Shop", "");
        assert_eq!(left(&subjects, said), [""; 0]);
        for words in others() {
            // Names that are words of the service too.
            for name in ["test", "live", "my test"] {
                let said = words.subject(&operator::account_subject(name));
                assert!(said.ends_with(&format!(" {name}")), "{said}");
            }
            assert_eq!(words.subject("asha"), "asha");
        }
        let unknown = left(&["wallet 7".to_owned()], Words::subject);
        assert_eq!(unknown.len(), others().count(), "the control");
    }

    #[test]
    fn reasons_of_the_service_are_in_the_language_files() {
        let mut found: Vec<String> =
            Attention::ALL.iter().map(|attention| attention.meaning().to_owned()).collect();
        // Sentences of these files that are no reasons.
        let is_no_reason = |text: &str| {
            ["request {}: ", "an audit entry does not serialise"]
                .iter()
                .any(|begin| text.starts_with(begin))
        };
        // Each file, and the words that mark its reasons; without words, all sentences are reasons.
        for (file, with_words) in [
            ("operator/four_eyes/ending.rs", ""),
            ("audit/mod.rs", ""),
            ("reconcile/statements.rs", ""),
            ("staff/provider_links.rs", "the provider"),
        ] {
            let source = std::fs::read_to_string(sources().join(file)).unwrap();
            let told: Vec<String> = literals(&source)
                .into_iter()
                .filter(|text| {
                    is_sentence(text) && !is_no_reason(text) && text.contains(with_words)
                })
                .map(|text| filled(&text, SAMPLE))
                .collect();
            assert!(!told.is_empty(), "{file} has no reasons");
            found.extend(told);
        }
        assert!(found.len() >= 20, "{found:#?}");
        assert_eq!(left(&found, Words::service_text), [""; 0]);
        // The reason of a request that ended because its decision would now be declined.
        let declined = "payout_01: it is settled, which does not take this decision".to_owned();
        assert_eq!(left(&[declined.replace("payout_01", "P1")], Words::service_text), [""; 0]);
        // Behind the text of the service stands what the bank says of a payout, untranslated.
        for attention in Attention::ALL {
            let told = format!("{}{BANK_SAYS}AC04{BANK_SAYS}X7; X8", attention.meaning());
            assert_eq!(left(std::slice::from_ref(&told), Words::service_text), [""; 0]);
            assert_eq!(texts::all()[0].service_text(&told), told);
            for words in others() {
                let said = words.service_text(&told);
                assert!(said.contains("AC04") && said.ends_with("X7; X8"), "{said}");
            }
        }
        let unknown = left(&["it was left alone".to_owned()], Words::service_text);
        assert_eq!(unknown.len(), others().count(), "the control");
    }

    /// The names in pairs `("name", value)`, from the word `details` to the end of the statement.
    fn detail_names(source: &str) -> BTreeSet<String> {
        let statements = source.split("details").skip(1);
        let ends = statements.map(|rest| rest.split(';').next().unwrap_or(""));
        ends.flat_map(|rest| rest.split("(\"").skip(1))
            .filter_map(|rest| rest.split_once("\", "))
            .map(|(name, _)| name.to_owned())
            .filter(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'))
            .collect()
    }

    /// The words of decisions: the last text in quotes of each call that records one.
    fn decision_words(source: &str) -> BTreeSet<String> {
        let calls = source.split(" record(").skip(1).chain(source.split("::record(").skip(1));
        let calls = calls.filter_map(|rest| rest.split_once(';')).map(|(call, _)| call);
        calls.filter_map(|call| literals(call).pop()).collect()
    }

    #[test]
    fn details_and_decisions_of_the_audit_log_have_words() {
        let all = own_files();
        let of_log: Vec<&str> = all
            .iter()
            .filter(|(_, text)| text.contains("audit::append"))
            .map(|(_, text)| text.as_str())
            .collect();
        let mut details: BTreeSet<String> = of_log.iter().copied().flat_map(detail_names).collect();
        assert!(details.len() >= 16, "{details:?}");
        // `changed` names the settings that changed. The page shows those settings, not this list.
        details.remove("changed");
        let mut keys: Vec<String> =
            details.iter().map(|name| format!("word.detail_{name}")).collect();
        let mut decisions: BTreeSet<String> =
            all.iter().flat_map(|(_, text)| decision_words(text)).collect();
        assert!(decisions.contains("credit") && decisions.len() >= 9, "{decisions:?}");
        let by_object = std::fs::read_to_string(sources().join("operator/mod.rs")).unwrap();
        let (_, by_object) = by_object.split_once("const fn word(").unwrap();
        let by_object = literals(by_object.split("\n    }\n").next().unwrap());
        assert!(by_object.len() >= 13, "{by_object:?}");
        decisions.extend(by_object);
        keys.extend(decisions.iter().map(|word| format!("word.decided_{word}")));
        let steps = ["begun", "finished", "expired", "outdated", "second_factor"];
        keys.extend(steps.map(|word| format!("word.{word}")));
        for words in texts::all() {
            let lacking: Vec<&String> =
                keys.iter().filter(|key| words.find(key).is_none()).collect();
            assert_eq!(lacking, Vec::<&String>::new(), "{}", words.code);
        }
        // The control: what a source might add.
        let planted = "let details = [(\"voice\", x), (\"reason\", y)];";
        assert_eq!(detail_names(planted), BTreeSet::from(["reason".into(), "voice".into()]));
        let planted = "decisions::record(tx, now, &id, \"mend\", by)?;";
        assert_eq!(decision_words(planted), BTreeSet::from(["mend".into()]));
        assert!(texts::all()[0].find(&format!("word.decided_{}", "mend")).is_none());
    }
}
