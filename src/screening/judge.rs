//! Weighs what was found of an entry: how alike the names are, and what date of birth, country and
//! numbers say.
//!
//! | name | and | verdict |
//! |---|---|---|
//! | at least `score_confirmed`, not a weak alias | same day of birth, countries do not contradict | confirmed |
//! | at least `score_confirmed`, not a weak alias | the list has only a year, which is the same, and a country agrees | confirmed |
//! | at least `score_confirmed` | anything else | possible |
//! | at least `score_possible` | date of birth *and* country contradict | clear |
//! | at least `score_possible` | anything else | possible |
//! | below | | clear |
//! | – | an identity number is the same, and its country agrees / is not known | confirmed / possible |
//! | – | a digital currency address is the same | confirmed |
//!
//! A name alone never confirms: common names reach 1.0, and a confirmed match rejects for good
//! while a possible one only waits.

use super::Screening;
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

/// What the countries of both sides say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CountryEvidence {
    Agrees,
    /// One side names none.
    Unknown,
    Contradicts,
}

/// Judges a match by name. `None` is clear.
pub fn by_name(
    thresholds: &Thresholds,
    score: f64,
    is_weak: bool,
    birth: BirthEvidence,
    country: CountryEvidence,
) -> Option<Screening> {
    if score < thresholds.score_possible {
        return None;
    }
    let is_confirmed = match birth {
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
    Some(if is_near && is_confirmed { Screening::ConfirmedMatch } else { Screening::PossibleMatch })
}

/// What was compared, in words that hold nothing of the subject.
pub fn words(birth: BirthEvidence, country: CountryEvidence) -> &'static str {
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
        (BirthEvidence::Unknown, CountryEvidence::Unknown) => "date of birth and country unknown",
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
            assert_eq!(
                by_name(&Thresholds::default(), score, is_weak, birth, country),
                wanted,
                "{score} {is_weak} {birth:?} {country:?}"
            );
        }
    }
}
