//! Who decided, and why.

use super::Mode;

/// Characters of a name of who decides, and of a reason.
pub const ACTOR_CHARACTERS_MAX: usize = 100;
pub const REASON_CHARACTERS_MAX: usize = 500;

/// Who decides, and why; each is empty where it was not told. Kept with every decision of the
/// operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecidedBy {
    actor: String,
    reason: String,
}

impl DecidedBy {
    /// Takes both without the space around them.
    pub fn new(actor: &str, reason: &str) -> Result<DecidedBy, String> {
        let (actor, reason) = (actor.trim(), reason.trim());
        for (name, text, characters_max) in
            [("--actor", actor, ACTOR_CHARACTERS_MAX), ("--reason", reason, REASON_CHARACTERS_MAX)]
        {
            if text.chars().count() > characters_max || text.chars().any(char::is_control) {
                return Err(format!(
                    "{name} has at most {characters_max} characters, none of them a control \
                     character"
                ));
            }
        }
        Ok(DecidedBy { actor: actor.to_owned(), reason: reason.to_owned() })
    }

    pub fn actor(&self) -> &str {
        &self.actor
    }

    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// What is missing for a decision in a mode: live mode needs both.
    pub fn missing(&self, mode: Mode) -> Option<&'static str> {
        let is_told = !self.actor.is_empty() && !self.reason.is_empty();
        (mode.is_live() && !is_told).then_some(
            "say who decides and why: a decision in live mode needs --actor NAME and --reason TEXT",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_mode_needs_a_name_and_a_reason() {
        let by = |actor, reason| DecidedBy::new(actor, reason).unwrap();
        assert!(by("asha", "a drill").missing(Mode::Live).is_none());
        for (actor, reason) in [("", ""), ("asha", " "), ("\u{a0}", "a drill")] {
            assert!(by(actor, reason).missing(Mode::Live).is_some(), "{actor:?} {reason:?}");
            assert!(by(actor, reason).missing(Mode::Test).is_none());
        }
    }

    #[test]
    fn both_have_a_longest_length() {
        let (actor, reason) = ("a".repeat(ACTOR_CHARACTERS_MAX), "b".repeat(REASON_CHARACTERS_MAX));
        assert!(DecidedBy::new(&actor, &reason).is_ok());
        assert!(DecidedBy::new(&format!("{actor}a"), &reason).is_err());
        assert!(DecidedBy::new(&actor, &format!("{reason}b")).is_err());
        assert!(DecidedBy::new("asha\trao", "").is_err());
    }
}
