//! Refusals in the reader's language. The rules write them in English, for the shell and the
//! console alike; the table `[refusal]` of the language files has each of them.
//!
//! What the service reports of its own parts, such as a database that cannot be written, stays in
//! English, because it quotes words that the operator has to look for elsewhere.

use super::texts::Words;

// The keys of the table `[refusal]` begin with this.
const TABLE: &str = "refusal.";

impl Words {
    /// A refusal of a rule, in this language; unchanged if the language files do not have it.
    pub fn refusal(&self, text: &str) -> String {
        // Many refusals begin with what they are about: `transfer_…: …`, `request 3: …`.
        if let Some((about, reason)) = text.split_once(": ") {
            let known = self.translated(TABLE, about).or_else(|| self.known_subject(about));
            if (known.is_some() || about.split(' ').count() <= 2)
                && let Some(reason) = self.translated(TABLE, reason)
            {
                return format!("{}: {reason}", known.as_deref().unwrap_or(about));
            }
        }
        self.translated(TABLE, text).unwrap_or_else(|| text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::super::literals::{bare, files_below, is_sentence, literals, sources};
    use super::super::texts;
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
                "दरें: asha का “फिर चलने दें”",
            ),
            ("payouts of account A B: there is none", "भुगतान, खाता A B: "),
            (
                "payouts were not paused for everybody: `hundi doctor` shows what is",
                "भुगतान पर सभी के लिए",
            ),
            // A name is not a word of the service.
            ("live is suspended already", "live पहले से"),
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

    /// Sentences of the sources below that are no refusals. The first ones are printed only by the
    /// shell, or are for the store.
    const NO_REFUSALS: &[&str] = &[
        "{} is suspended; its keys stop working within a second",
        "{} is checked again{}",
        "{} stays without payouts: screening found more{}",
        "{} stays without payouts{}",
        "{} stays {}{}",
        "; screening holds it",
        "may not send",
        "{} may not send yet: screening found more{}",
        ": repeat this with --to ADDRESS, or let the caller declare it with POST /v1/refunds/:id",
        "; screening hits {}: {}",
        "{} is sent to the bank again",
        "{} may be sent{}",
        "screening no longer holds {}; the bank's reports still do{}",
        "{} stays held{}; `hundi refunds address` gives it another address",
        "; screening found the address on a list: `hundi screening hits` shows it, `hundi decide \
         ID approve` or `refuse` decides",
        "{} waits for {} to be final on {}",
        "; screening still holds it",
        "{} is no longer held for what the bank reported{}",
        "waits for a second person: request",
        "request {} about {} is rejected",
        "the explanation was recorded",
        "{} go on for {}",
        "id, subject, decision, actor, reason, approved_by, decided_at",
        "a decision's actor or reason is too long or has a control character",
        "number, subject, word, cause, status, requested_by, requester, reason, requested_at, \
         decider, decided_at, asked",
        // What callers get.
        "must be an address in hexadecimal, which begins with 0x.",
        // The console: its log, its headers, and what is written for whoever starts the service.
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
         connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        "cookie, accept-language, hx-request",
        "camera=(), geolocation=(), microphone=()",
        "public, max-age=31536000, immutable",
        "<input type=\"hidden\" name=\"token\" value=\"{}\">",
        "{}={}; Path=/; HttpOnly; SameSite=Lax{}{}",
        "a console page failed",
        "the store failed in the middle of several decisions",
        "the use of a session could not be written down",
        "an operator signed in",
        "a sign-in did not come to its end",
        "a page cannot be drawn: {}",
        "an operator signed in at the provider",
    ];

    /// Whether no page of the console shows the sentences of a file, such as faults of settings, or
    /// what is wrong with a provider's answer.
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

    /// The sentences in which the operator's rules refuse are in the language files. So are those
    /// in the sources of pages.
    #[test]
    fn every_refusal_is_in_the_language_files() {
        let english = &texts::all()[0];
        let tables = [TABLE, "service."].into_iter().flat_map(|table| english.below(table));
        let known: Vec<String> = tables.map(|(_, text)| bare(text)).collect();
        assert!(known.len() > 60, "the table cannot be read");
        let mut found = Vec::new();
        for folder in ["operator", "decisions", "console"] {
            for (path, text) in files_below(&sources().join(folder), &["rs"]) {
                let name = path.display().to_string();
                found.extend(literals(&text).into_iter().map(|text| (name.clone(), text)));
            }
        }
        for file in [
            "reconcile/explaining.rs",
            "kernel/decided_by.rs",
            "chains/address.rs",
            "chains/tron_address.rs",
            "chains/evm.rs",
            "keys/making.rs",
        ] {
            let text = std::fs::read_to_string(sources().join(file)).unwrap();
            found.extend(literals(&text).into_iter().map(|text| (file.to_owned(), text)));
        }
        // Of these files, most sentences are for callers; those with these words are for operators.
        for (file, of_operators) in [
            ("keys/mod.rs", "is not a permission"),
            ("screening/lists.rs", "is missing: set"),
            ("screening/lists.rs", "days old"),
            ("refunds/mod.rs", "The refund is"),
        ] {
            let text = std::fs::read_to_string(sources().join(file)).unwrap();
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
