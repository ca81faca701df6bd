//! Finds the clearing system's reference of a payment (the UTR) in a bank's report.
//!
//! Banks put the reference into nearly every element that can hold text, with or without a label.
//! For NEFT and RTGS, a text counts only if it is 10 to 22 letters and digits, with a digit
//! ([`Utr::parse`]). The search order is:
//!
//! 1. the clearing system's own element (`ClrSysRef`, or the column `UTR`), if its text has a known
//!    form ([`Utr::has_known_form`]) and a length that the payment's method uses;
//! 2. the elements that `[bank.profile] reference_elements` names, one after another;
//! 3. a text after a label, if the text has a letter;
//! 4. a text with a known form and a length that the payment's method uses;
//! 5. a text with a known form;
//! 6. the clearing system's element, whatever its form.
//!
//! The first step that finds something ends the search. If this step finds texts that differ, the
//! operator decides.
//!
//! For book transfers (payments within the sponsor bank), other texts count
//! ([`Utr::parse_for`]), in another order ([`References::utr`]).

use super::values::Utr;
use crate::rails::port::PaymentMethod;

/// The most texts of one report that are searched.
const CANDIDATES_MAX: usize = 64;
/// Labels: words after which a UTR follows.
const LABELS: &[&str] = &["UTR", "UTRNO", "UTRNUMBER", "UTRREF"];
/// What banks write into an element that they have to fill and have no reference for.
const NO_REFERENCES: &[&str] =
    &["NONREF", "NOTPROVIDED", "NOTAVAILABLE", "NOREF", "NOREFERENCE", "NONE", "UNKNOWN", "NULL"];

/// Whether a text only says that there is no reference, as `NONREF` and `NOT PROVIDED` do.
pub fn says_no_reference(text: &str) -> bool {
    let letters: String =
        text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_uppercase();
    NO_REFERENCES.contains(&letters.as_str())
}

/// Words that can be between a label and the reference.
const WORDS_AFTER_LABELS: &[&str] = &["NO", "NUMBER", "NUM", "REF", "IS", "ID"];

crate::string_enum!(
    /// Where in a report a reference can be: the name of an ISO 20022 element, or `UTR` for the
    /// column of a CSV.
    ReferenceElement {
        ClrSysRef "ClrSysRef",
        AcctSvcrRef "AcctSvcrRef",
        TxId "TxId",
        Prtry "Prtry",
        InstrId "InstrId",
        NtryRef "NtryRef",
        AddtlTxInf "AddtlTxInf",
        AddtlNtryInf "AddtlNtryInf",
        Ustrd "Ustrd",
        Strd "Strd",
        AddtlInf "AddtlInf",
        Utr "UTR",
    }
);

impl ReferenceElement {
    /// Whether the element holds references rather than text for people.
    const fn holds_references(self) -> bool {
        !matches!(
            self,
            ReferenceElement::AddtlTxInf
                | ReferenceElement::AddtlNtryInf
                | ReferenceElement::Ustrd
                | ReferenceElement::Strd
                | ReferenceElement::AddtlInf
        )
    }
    /// Whether only the bank writes the element, so that nobody else can put a reference there.
    const fn is_from_bank_only(self) -> bool {
        matches!(
            self,
            ReferenceElement::ClrSysRef | ReferenceElement::AcctSvcrRef | ReferenceElement::TxId
        )
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    element: ReferenceElement,
    text: String,
    is_labelled: bool,
}

/// The texts of one payment or movement that could be its reference. Of text for people, only the
/// words that could be references are kept.
#[derive(Clone, Debug, Default)]
pub struct References {
    candidates: Vec<Candidate>,
}

/// The result of a search for the UTR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UtrFinding {
    None,
    One(Utr, ReferenceElement),
    /// Several that differ.
    Ambiguous,
}

impl UtrFinding {
    fn is_some(&self) -> bool {
        *self != UtrFinding::None
    }
}

impl References {
    pub const fn new() -> References {
        References { candidates: Vec::new() }
    }

    /// Adds an element's text if the element holds references, and the words of the text that could
    /// be references.
    pub fn add(&mut self, element: ReferenceElement, text: &str) {
        if element.holds_references() {
            let text = text.trim();
            if !text.is_empty() {
                self.push(element, text, false);
            }
            // If there are several words, the bank may have written more than the reference.
            if text.split(|character: char| !character.is_ascii_alphanumeric()).nth(1).is_none() {
                return;
            }
        }
        self.add_words(element, text);
    }

    fn add_words(&mut self, element: ReferenceElement, text: &str) {
        let words: Vec<&str> = text
            .split(|character: char| !character.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        let mut is_labelled = false;
        let mut at = 0;
        while let Some(word) = words.get(at) {
            at += 1;
            let upper = word.to_ascii_uppercase();
            if LABELS.contains(&upper.as_str()) {
                is_labelled = true;
                continue;
            }
            if is_labelled && WORDS_AFTER_LABELS.contains(&upper.as_str()) {
                continue;
            }
            // A label without a gap, as in `UTRSBIN126166441955`.
            let (word, labelled_here) = match upper.strip_prefix("UTR") {
                Some(rest) if Utr::has_known_form(rest) => (rest.to_owned(), true),
                _ => (upper, false),
            };
            // Banks wrap long texts, which may cut a reference in two.
            let joined = words
                .get(at)
                .map(|next| format!("{word}{next}"))
                .filter(|joined| !Utr::has_known_form(&word) && Utr::has_known_form(joined))
                .filter(|_| words.get(at).is_some_and(|next| next.bytes().all(is_digit)));
            if let Some(joined) = joined {
                at += 1;
                self.push(element, &joined, is_labelled || labelled_here);
            } else if Utr::parse(&word).is_some()
                || (is_labelled || labelled_here) && is_book_reference(&word)
            {
                self.push(element, &word, is_labelled || labelled_here);
            }
            is_labelled = false;
        }
    }

    fn push(&mut self, element: ReferenceElement, text: &str, is_labelled: bool) {
        if says_no_reference(text) {
            return;
        }
        let candidate = Candidate { element, text: text.to_owned(), is_labelled };
        if self.candidates.len() < CANDIDATES_MAX && !self.candidates.contains(&candidate) {
            self.candidates.push(candidate);
        }
    }

    /// The reference of a payment by `method`. `preferred` are the elements that the profile names.
    /// `own` are numbers that are no references, such as the debit account's.
    pub fn utr(
        &self,
        method: PaymentMethod,
        preferred: &[ReferenceElement],
        own: &[&str],
    ) -> UtrFinding {
        let usable = |candidate: &&Candidate| !own.contains(&candidate.text.as_str());
        let read = |candidate: &Candidate| {
            let utr = Utr::parse_for(method, &candidate.text.to_ascii_uppercase());
            utr.map(|utr| (utr, candidate.element))
        };
        let all = || self.candidates.iter().filter(usable);
        let of = |element| {
            one_of(all().filter(|found| found.element == element).filter_map(read).collect())
        };
        if method == PaymentMethod::Internal {
            // A book transfer has no reference of a clearing system, but a bank may write its own
            // reference in the clearing system's element. The order is: this element (`ClrSysRef`)
            // and the column `UTR`, the profile's elements, a text after a label, the bank's
            // references `AcctSvcrRef` and `TxId`.
            let labelled = all().filter(|found| found.is_labelled).filter_map(read).collect();
            let first = [ReferenceElement::ClrSysRef, ReferenceElement::Utr];
            let last = [ReferenceElement::AcctSvcrRef, ReferenceElement::TxId];
            let found = first.iter().chain(preferred).map(|element| of(*element));
            let mut found = found.chain([one_of(labelled)]).chain(last.map(of));
            return found.find(UtrFinding::is_some).unwrap_or(UtrFinding::None);
        }
        let clearing = all()
            .filter(|candidate| {
                matches!(candidate.element, ReferenceElement::ClrSysRef | ReferenceElement::Utr)
            })
            .filter_map(read);
        let clearing: Vec<_> = clearing.collect();
        let clearing_fits = clearing.iter().filter(|(utr, _)| utr.fits(method)).cloned();
        let surest = one_of(clearing_fits.collect());
        let preferred = preferred.iter().map(|element| of(*element));
        if let Some(found) = [surest].into_iter().chain(preferred).find(UtrFinding::is_some) {
            return found;
        }
        let labelled: Vec<_> = all()
            .filter(|candidate| candidate.is_labelled)
            .filter_map(read)
            .filter(|(utr, _)| utr.as_str().bytes().any(|byte| byte.is_ascii_alphabetic()))
            .collect();
        let known = all().filter_map(read).filter(|(utr, _)| Utr::has_known_form(utr.as_str()));
        let known: Vec<_> = known.collect();
        let fits: Vec<_> = known.iter().filter(|(utr, _)| utr.fits(method)).cloned().collect();
        let mut last = [labelled, fits, known, clearing].into_iter().map(one_of);
        last.find(UtrFinding::is_some).unwrap_or(UtrFinding::None)
    }

    /// Texts of elements that only the bank writes, for finding the payment that comes back.
    pub fn from_bank_only(&self) -> impl Iterator<Item = &str> {
        self.candidates
            .iter()
            .filter(|candidate| candidate.element.is_from_bank_only())
            .map(|candidate| candidate.text.as_str())
    }
    /// All texts that could be a reference.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.candidates.iter().map(|candidate| candidate.text.as_str())
    }
    /// The elements that hold one text, or several equal ones, in the form of [`Utr::parse`], each
    /// with that text. `own` are numbers that are no references.
    pub fn single_candidates(&self, own: &[&str]) -> Vec<(ReferenceElement, Utr)> {
        let usable = |candidate: &&Candidate| !own.contains(&candidate.text.as_str());
        let of = |element| {
            let texts = self.candidates.iter().filter(usable);
            let texts = texts.filter(|found| found.element == element);
            let texts: Vec<Utr> =
                texts.filter_map(|found| Utr::parse(&found.text.to_ascii_uppercase())).collect();
            texts.first().filter(|first| texts.iter().all(|text| text == *first)).cloned()
        };
        let all = ReferenceElement::ALL.iter().copied();
        all.filter_map(|element| Some((element, of(element)?))).collect()
    }
    /// The reference to show to the operator for a line whose UTR was not found.
    pub fn shown(&self) -> Option<&str> {
        let of = |wanted: fn(&Candidate) -> bool| {
            self.candidates.iter().find(|candidate| wanted(candidate))
        };
        of(|candidate| candidate.element == ReferenceElement::ClrSysRef)
            .or_else(|| of(|candidate| candidate.element.is_from_bank_only()))
            .or_else(|| of(|candidate| candidate.is_labelled))
            .or_else(|| of(|candidate| Utr::has_known_form(&candidate.text)))
            .map(|candidate| candidate.text.as_str())
    }
}

/// Whether a word after a label may be the reference of a book transfer: it needs a digit.
fn is_book_reference(word: &str) -> bool {
    word.bytes().any(is_digit) && Utr::parse_for(PaymentMethod::Internal, word).is_some()
}

const fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

/// The reference, if all that were found are equal.
fn one_of(found: Vec<(Utr, ReferenceElement)>) -> UtrFinding {
    let mut found = found.into_iter();
    let Some((utr, element)) = found.next() else { return UtrFinding::None };
    if found.all(|(other, _)| other == utr) {
        UtrFinding::One(utr, element)
    } else {
        UtrFinding::Ambiguous
    }
}

#[cfg(test)]
mod tests {
    use super::ReferenceElement::{
        AcctSvcrRef, AddtlInf, AddtlNtryInf, AddtlTxInf, ClrSysRef, NtryRef, Prtry, Strd, TxId,
        Ustrd,
    };
    use super::*;

    fn of(parts: &[(ReferenceElement, &str)]) -> References {
        let mut references = References::new();
        for (element, text) in parts {
            references.add(*element, text);
        }
        references
    }

    fn found(parts: &[(ReferenceElement, &str)], preferred: &[ReferenceElement]) -> UtrFinding {
        of(parts).utr(PaymentMethod::Neft, preferred, &["00112233445566"])
    }

    #[track_caller]
    fn one(parts: &[(ReferenceElement, &str)], wanted: &str, element: ReferenceElement) {
        let UtrFinding::One(utr, at) = found(parts, &[]) else { panic!("{:?}", found(parts, &[])) };
        assert_eq!((utr.as_str(), at), (wanted, element));
    }

    #[test]
    fn references_are_found_wherever_banks_put_them() {
        for (text, wanted) in [
            ("NEFT-AXISP00494478733-FLOWRA GLO-BILL", "AXISP00494478733"),
            ("NEFT*UTIB0001550*AXISP00629663 007*COMPANY", "AXISP00629663007"),
            ("BY TRANSFER-NEFT*YESB0000001*YESAP61641609940*SOMEBODY--", "YESAP61641609940"),
            ("NEFT-AXNH261850049792-GROWTH INVEST", "AXNH261850049792"),
            ("NEFT-SBIN126166441955-NAME", "SBIN126166441955"),
            ("UTR NO: SBIN126166441955", "SBIN126166441955"),
            ("UTRSBIN126166441955/IFSC HDFC0000001", "SBIN126166441955"),
            ("NEFT Cr-KKBK0000958-NAME-CMS0902411872332", "CMS0902411872332"),
            ("NEFT-YESIG62440270133.Avl", "YESIG62440270133"),
            (
                "RTGS-UTIBR72026050100131060-LTD-084010200013129-UTIB0000084",
                "UTIBR72026050100131060",
            ),
            ("NEFT-BARBN52025040226217799-NAME--37100200000337", "BARBN52025040226217799"),
            ("N351200478962883", "N351200478962883"),
            ("UTR: 1234AB5678", "1234AB5678"),
        ] {
            for element in [AddtlTxInf, AddtlNtryInf, Ustrd, Strd, AddtlInf] {
                one(&[(element, text)], wanted, element);
            }
        }
        for element in [ClrSysRef, AcctSvcrRef, TxId, Prtry, NtryRef] {
            one(&[(element, "SBIN126166441955")], "SBIN126166441955", element);
        }
        one(&[(ClrSysRef, "XZ00112233")], "XZ00112233", ClrSysRef);
        one(&[(AcctSvcrRef, "S1"), (TxId, "AXNH261850049792")], "AXNH261850049792", TxId);
        // A number in the clearing system's element gives way to a text with the form of a
        // reference.
        one(
            &[(ClrSysRef, "0000123456"), (AddtlTxInf, "UTR SBIN126166441955")],
            "SBIN126166441955",
            AddtlTxInf,
        );
    }

    #[test]
    fn what_is_no_reference_is_not_taken_for_one() {
        for text in [
            "NEFT CHARGES AND GST",
            "50100012345678",
            "00112233445566",
            "HDFC0000001",
            "NEFT-CHG0099-ABCDE1234F",
            "01K5ZZZZZZ7Q2X7N4V6T9R0ABC",
            "UPI/411708729975/NAME",
            "INVOICE NUMBER INV2026001122",
        ] {
            assert_eq!(found(&[(AddtlNtryInf, text)], &[]), UtrFinding::None, "{text}");
        }
        assert_eq!(found(&[(AcctSvcrRef, "S123456789")], &[]), UtrFinding::None);
    }

    #[test]
    fn two_that_differ_are_ambiguous_unless_the_profile_names_an_element() {
        let parts =
            [(AddtlTxInf, "NEFT SBIN126166441955"), (Ustrd, "REF AXISP00494478733 FOR RENT")];
        assert_eq!(found(&parts, &[]), UtrFinding::Ambiguous);
        let UtrFinding::One(utr, _) = found(&parts, &[AddtlTxInf]) else { panic!() };
        assert_eq!(utr.as_str(), "SBIN126166441955");
        // Two references in the clearing system's own element are ambiguous too.
        let parts = [(ClrSysRef, "SBIN126166441955"), (ClrSysRef, "AXISP00494478733")];
        assert_eq!(found(&parts, &[]), UtrFinding::Ambiguous);
        let parts = [(ClrSysRef, "SBIN126166441955"), (ClrSysRef, "0000123456")];
        one(&parts, "SBIN126166441955", ClrSysRef);
        // In an element that the profile names, any 10 to 22 letters and digits count.
        let parts = [(AcctSvcrRef, "S123456789X")];
        assert_eq!(
            found(&parts, &[AcctSvcrRef]),
            UtrFinding::One(Utr::parse("S123456789X").unwrap(), AcctSvcrRef)
        );
        assert_eq!(found(&[(AcctSvcrRef, "00112233445566")], &[AcctSvcrRef]), UtrFinding::None);
        // Small letters make no difference.
        one(&[(AcctSvcrRef, "sbin126166441955")], "SBIN126166441955", AcctSvcrRef);
        one(&[(TxId, "sbin126166441955"), (AcctSvcrRef, "S123456789X")], "SBIN126166441955", TxId);
    }

    #[test]
    fn a_book_transfer_is_named_by_the_bank() {
        let found =
            |parts: &[(ReferenceElement, &str)], preferred: &[ReferenceElement]| match of(parts)
                .utr(PaymentMethod::Internal, preferred, &["00112233445566"])
            {
                UtrFinding::One(utr, element) => Some((utr.as_str().to_owned(), element)),
                _ => None,
            };
        let one = |text: &str, element| Some((text.to_owned(), element));
        let entry = (AcctSvcrRef, "S00012");
        assert_eq!(found(&[entry], &[]), one("S00012", AcctSvcrRef));
        assert_eq!(found(&[entry, (ClrSysRef, "BT9912")], &[]), one("BT9912", ClrSysRef));
        let text = (AddtlTxInf, "FT OWN BRANCH UTR NO FT2611");
        assert_eq!(found(&[entry, text], &[]), one("FT2611", AddtlTxInf));
        assert_eq!(found(&[entry, (TxId, "TX77777")], &[TxId]), one("TX77777", TxId));
        // Our own name of the payment, our account number and words are no references.
        let ours = (TxId, "00000000000000000000000007");
        assert_eq!(found(&[ours, (AcctSvcrRef, "00112233445566")], &[]), None);
        assert_eq!(found(&[(AddtlNtryInf, "UTR TRANSFER")], &[]), None);
        assert_eq!(found(&[entry, (AcctSvcrRef, "S00013")], &[]), None, "two that differ");
        assert_eq!(
            of(&[entry]).utr(PaymentMethod::Neft, &[], &[]),
            UtrFinding::None,
            "a NEFT reference is longer"
        );
    }

    #[test]
    fn only_the_banks_own_elements_name_a_payment_that_comes_back() {
        let references =
            of(&[(Ustrd, "RETURN SBIN126166441955"), (Prtry, "X1"), (AcctSvcrRef, "B-77")]);
        assert_eq!(references.from_bank_only().collect::<Vec<_>>(), ["B-77"]);
    }
}
