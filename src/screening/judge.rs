//! Judges a match with an entry by name: how alike the names are, and whether date of birth and
//! country agree.
//!
//! A match by a person's name is judged in two steps. First, the words that agree have to weigh
//! enough (`common_names.rs` has the weights). The table before the constants `NEEDED_…` says how
//! much weight is needed. A weak alias, or a date of birth or country that contradicts, adds to
//! it; a year of birth or country that agrees lowers it. If the day of birth is the same, no weight
//! is needed. Names of businesses skip this step.
//!
//! The second step, for persons and businesses, is the table below. Its last four rows need no name
//! and are judged in `matcher.rs`. The most serious verdict on an entry counts.
//!
//! | name's score | and | verdict |
//! |---|---|---|
//! | `score_confirmed` | same day of birth, countries do not contradict | confirmed |
//! | `score_confirmed` | a listed year of birth (without day) and a country agree | confirmed |
//! | `score_confirmed` | anything else, or a weak alias | possible |
//! | `score_possible` | date of birth *and* country contradict | clear |
//! | `score_possible` | anything else | possible |
//! | below | | clear |
//! | any | same identity number, its country agrees | confirmed |
//! | any | same identity number, its country does not agree or is not known | possible |
//! | any | same digital currency address | confirmed |
//! | any | the same key's address on another chain is listed | possible |
//!
//! The scores in the table are minimums. The rows of `score_possible` are for names that do not
//! reach `score_confirmed`. A weak alias never confirms by its name.
//!
//! A name alone never confirms: common names reach 1.0, and a confirmed match rejects a beneficiary
//! in verification for good, while a possible one waits for the operator.

use super::Screening;
use super::alignment::Alignment;
use super::birth::BirthEvidence;

/// The scores at which a match is possible, and at which supporting evidence confirms it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Thresholds {
    /// From 0.7 to 1.
    pub score_possible: f64,
    /// From `score_possible` to 1.
    pub score_confirmed: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds { score_possible: 0.85, score_confirmed: 0.95 }
    }
}

/// How the countries of both sides compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CountryEvidence {
    Agrees,
    /// One side names none.
    Unknown,
    Contradicts,
}

/// The version of everything that decides whether a name is a hit. Raise it with every change of
/// the rules: all persons are screened again when another version starts.
pub const MATCHING_VERSION: u32 = 6;

/// The share of a name's weight that has to agree for the name to agree as a whole.
const SHARE_WHOLE: f64 = 0.85;

// The weights that have to agree, in the unit of `common_names.rs`: a word that one person in a
// thousand bears weighs about 7. `bench/names.md` says how many evasions the rules catch together,
// and how many ordinary names they stop.
//
// | the listed name agrees | the given name agrees | weight needed |
// |---|---|---|
// | as a whole | as a whole | none |
// | as a whole | in part | `NEEDED_WITHIN_GIVEN`; less with `…_AROUND` and `…_BESIDE_LITTLE` |
// | in part | as a whole | `NEEDED_WITHIN_LISTED`; `…_BY_INITIALS` where initials fill the rest |
// | in part | in part | `NEEDED_SIMILAR` |

/// Where a weak alias and the given name agree as a whole.
const NEEDED_WEAK: f64 = 8.0;
/// Where the given name has other words beside those of the listed one.
const NEEDED_WITHIN_GIVEN: f64 = 10.0;
/// Where the given name has little more than the listed one, such as a word that many bear.
const NEEDED_BESIDE_LITTLE: f64 = 6.0;
/// The most weight of the given name's other words that counts as little.
const BESIDE_LITTLE_MAX: f64 = 2.7;
/// Where `INSERTED_MIN` words or more stand between those of the listed name. Ordinary names seldom
/// have so many, so less weight is needed.
const NEEDED_AROUND: f64 = 4.0;
const INSERTED_MIN: usize = 2;
/// Where the listed name has other words beside those of the given one.
const NEEDED_WITHIN_LISTED: f64 = 10.0;
/// Where the given name agrees as a whole, and so does the listed one once initials count as words.
const NEEDED_BY_INITIALS: f64 = 9.0;
/// Where each name has words that the other does not have.
const NEEDED_SIMILAR: f64 = 8.0;
/// What is added for a weak alias that agrees in part.
const ADDED_WEAK: f64 = 6.0;
/// What the date of birth adds to the weight needed, by [`BirthEvidence`].
const BIRTH_SAME_YEAR: f64 = -3.0;
const BIRTH_CONTRADICTS: f64 = 6.0;
/// What the country adds, by [`CountryEvidence`].
const COUNTRY_AGREES: f64 = -1.0;
const COUNTRY_CONTRADICTS: f64 = 1.5;

/// How much a given and a listed name have in common.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NameEvidence {
    /// The similarity of `similarity.rs`; 0 if it is below the threshold or was not computed.
    similarity: f64,
    alignment: Option<Alignment>,
}

impl NameEvidence {
    pub const fn of_person(similarity: f64, alignment: Alignment) -> NameEvidence {
        NameEvidence { similarity, alignment: Some(alignment) }
    }
    /// Names of businesses are compared by their similarity alone.
    pub const fn of_business(similarity: f64) -> NameEvidence {
        NameEvidence { similarity, alignment: None }
    }
    /// The score, 0 to 1, and the weight that is still missing; none is missing at 0 or less.
    fn weigh(&self, is_weak: bool, birth: BirthEvidence, country: CountryEvidence) -> (f64, f64) {
        let Some(alignment) = self.alignment else { return (self.similarity, 0.0) };
        let is_whole = |share: f64| share >= SHARE_WHOLE;
        let within = alignment.listed_share.max(self.similarity);
        let (score, needed, added) =
            match (is_whole(alignment.listed_share), is_whole(alignment.given_share)) {
                (true, true) => (within, 0.0, NEEDED_WEAK),
                (true, false) if alignment.inserted >= INSERTED_MIN => {
                    (within, NEEDED_AROUND, ADDED_WEAK)
                }
                (true, false) if alignment.beside <= BESIDE_LITTLE_MAX => {
                    (within, NEEDED_BESIDE_LITTLE, ADDED_WEAK)
                }
                (true, false) => (within, NEEDED_WITHIN_GIVEN, ADDED_WEAK),
                (false, true) if is_whole(alignment.listed_share_by_initials) => {
                    let score = alignment.listed_share_by_initials.max(self.similarity);
                    (score, NEEDED_BY_INITIALS, ADDED_WEAK)
                }
                (false, true) => (self.similarity, NEEDED_WITHIN_LISTED, ADDED_WEAK),
                (false, false) => (self.similarity, NEEDED_SIMILAR, ADDED_WEAK),
            };
        let birth = match birth {
            // Name and day of birth together are enough, whatever the name weighs.
            BirthEvidence::SameDay => return (score, 0.0),
            BirthEvidence::SameYear => BIRTH_SAME_YEAR,
            BirthEvidence::Unknown => 0.0,
            BirthEvidence::Contradicts => BIRTH_CONTRADICTS,
        };
        let country = match country {
            CountryEvidence::Agrees => COUNTRY_AGREES,
            CountryEvidence::Unknown => 0.0,
            CountryEvidence::Contradicts => COUNTRY_CONTRADICTS,
        };
        let needed = needed + if is_weak { added } else { 0.0 };
        (score, needed + birth + country - alignment.matched)
    }
}

/// Judges a match by name: the verdict, and the score, 0 to 1. `None` is clear.
pub fn by_name(
    thresholds: &Thresholds,
    evidence: &NameEvidence,
    is_weak: bool,
    birth: BirthEvidence,
    country: CountryEvidence,
) -> Option<(Screening, f64)> {
    let (score, missing) = evidence.weigh(is_weak, birth, country);
    if score < thresholds.score_possible || missing > 0.0 {
        return None;
    }
    let is_supported = match birth {
        BirthEvidence::SameDay => country != CountryEvidence::Contradicts,
        BirthEvidence::SameYear => country == CountryEvidence::Agrees,
        BirthEvidence::Unknown | BirthEvidence::Contradicts => false,
    };
    if score < thresholds.score_confirmed
        && birth == BirthEvidence::Contradicts
        && country == CountryEvidence::Contradicts
    {
        return None;
    }
    let is_near = score >= thresholds.score_confirmed && !is_weak;
    let screening =
        if is_near && is_supported { Screening::ConfirmedMatch } else { Screening::PossibleMatch };
    Some((screening, score))
}

/// How date of birth and country compare, in words without personal data of the subject.
pub fn evidence_text(birth: BirthEvidence, country: CountryEvidence) -> &'static str {
    match (birth, country) {
        (BirthEvidence::SameDay, CountryEvidence::Agrees) => "date of birth and country agree",
        (BirthEvidence::SameDay, CountryEvidence::Unknown) => {
            "date of birth agrees, country unknown"
        }
        (BirthEvidence::SameDay, CountryEvidence::Contradicts) => {
            "date of birth agrees, country differs"
        }
        (BirthEvidence::SameYear, CountryEvidence::Agrees) => "year of birth and country agree",
        (BirthEvidence::SameYear, CountryEvidence::Unknown) => {
            "year of birth agrees, country unknown"
        }
        (BirthEvidence::SameYear, CountryEvidence::Contradicts) => {
            "year of birth agrees, country differs"
        }
        (BirthEvidence::Unknown, CountryEvidence::Agrees) => {
            "country agrees, date of birth unknown or near"
        }
        (BirthEvidence::Unknown, CountryEvidence::Unknown) => {
            "date of birth unknown or near, country unknown"
        }
        (BirthEvidence::Unknown, CountryEvidence::Contradicts) => {
            "country differs, date of birth unknown or near"
        }
        (BirthEvidence::Contradicts, CountryEvidence::Agrees) => {
            "country agrees, date of birth differs"
        }
        (BirthEvidence::Contradicts, CountryEvidence::Unknown) => {
            "date of birth differs, country unknown"
        }
        (BirthEvidence::Contradicts, CountryEvidence::Contradicts) => {
            "date of birth and country differ"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds() {
        use BirthEvidence as B;
        use CountryEvidence as C;
        let (confirmed, possible, clear) =
            (Some(Screening::ConfirmedMatch), Some(Screening::PossibleMatch), None);
        for (score, is_weak, birth, country, wanted) in [
            (1.0, false, B::SameDay, C::Agrees, confirmed),
            (0.95, false, B::SameDay, C::Unknown, confirmed),
            (1.0, false, B::SameDay, C::Contradicts, possible),
            (1.0, true, B::SameDay, C::Agrees, possible),
            (1.0, false, B::SameYear, C::Agrees, confirmed),
            (1.0, false, B::SameYear, C::Unknown, possible),
            (1.0, false, B::Unknown, C::Agrees, possible),
            (1.0, false, B::Unknown, C::Unknown, possible),
            (1.0, false, B::Contradicts, C::Contradicts, possible),
            (0.949, false, B::SameDay, C::Agrees, possible),
            (0.90, false, B::Contradicts, C::Contradicts, clear),
            (0.90, false, B::Contradicts, C::Agrees, possible),
            (0.90, false, B::Unknown, C::Contradicts, possible),
            (0.85, true, B::Unknown, C::Unknown, possible),
            (0.849, false, B::SameDay, C::Agrees, clear),
        ] {
            let evidence = NameEvidence::of_business(score);
            assert_eq!(
                by_name(&Thresholds::default(), &evidence, is_weak, birth, country)
                    .map(|(screening, _)| screening),
                wanted,
                "{score} {is_weak} {birth:?} {country:?}"
            );
        }
    }
    #[test]
    fn what_agrees_has_to_weigh_enough() {
        use BirthEvidence as B;
        use CountryEvidence as C;
        let hit = |listed, given, matched, is_weak, birth, country| {
            let alignment = Alignment {
                matched,
                listed_share: listed,
                given_share: given,
                listed_share_by_initials: listed,
                beside: 9.0,
                ..Alignment::default()
            };
            let evidence = NameEvidence::of_person(0.9, alignment);
            by_name(&Thresholds::default(), &evidence, is_weak, birth, country).is_some()
        };
        let initials = |matched| {
            let alignment = Alignment {
                matched,
                listed_share: 0.6,
                given_share: 1.0,
                listed_share_by_initials: 1.0,
                ..Alignment::default()
            };
            // Their similarity as a whole is below the threshold.
            let evidence = NameEvidence::of_person(0.0, alignment);
            by_name(&Thresholds::default(), &evidence, false, B::Unknown, C::Unknown).is_some()
        };
        assert!(initials(9.0) && !initials(8.9));
        // All of the listed name, and more.
        let more = |matched, beside, inserted| {
            let alignment = Alignment {
                matched,
                listed_share: 1.0,
                given_share: 0.6,
                listed_share_by_initials: 1.0,
                beside,
                inserted,
            };
            let evidence = NameEvidence::of_person(0.0, alignment);
            by_name(&Thresholds::default(), &evidence, false, B::Unknown, C::Unknown).is_some()
        };
        assert!(more(6.0, 2.7, 0) && !more(5.9, 2.7, 0) && !more(6.0, 2.8, 0));
        assert!(more(4.0, 9.0, 2) && !more(3.9, 9.0, 2) && !more(9.9, 9.0, 1));
        for (listed, given, matched, is_weak, birth, country, wanted) in [
            // Both names as a whole, however common.
            (1.0, 1.0, 1.0, false, B::Unknown, C::Unknown, true),
            (1.0, 1.0, 7.9, true, B::Unknown, C::Unknown, false),
            (1.0, 1.0, 8.0, true, B::Unknown, C::Unknown, true),
            (1.0, 1.0, 5.9, false, B::Contradicts, C::Unknown, false),
            // One within the other.
            (1.0, 0.5, 9.9, false, B::Unknown, C::Unknown, false),
            (1.0, 0.5, 10.0, false, B::Unknown, C::Unknown, true),
            (0.5, 1.0, 9.9, false, B::Unknown, C::Unknown, false),
            (0.5, 1.0, 10.0, false, B::Unknown, C::Unknown, true),
            (1.0, 0.5, 9.0, false, B::Unknown, C::Agrees, true),
            (1.0, 0.5, 11.0, false, B::Unknown, C::Contradicts, false),
            (1.0, 0.5, 7.0, false, B::SameYear, C::Unknown, true),
            (1.0, 0.5, 1.0, true, B::SameDay, C::Unknown, true),
            (1.0, 0.5, 15.9, true, B::Unknown, C::Unknown, false),
            // In part.
            (0.7, 0.7, 7.9, false, B::Unknown, C::Unknown, false),
            (0.7, 0.7, 8.0, false, B::Unknown, C::Unknown, true),
        ] {
            assert_eq!(
                hit(listed, given, matched, is_weak, birth, country),
                wanted,
                "{listed} {given} {matched} {is_weak} {birth:?} {country:?}"
            );
        }
    }
}
