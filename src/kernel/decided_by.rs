//! Who decided, and why.

use super::Mode;

/// The most characters of the name of who decides.
pub const ACTOR_CHARACTERS_MAX: usize = 100;
/// The most characters of a reason.
pub const REASON_CHARACTERS_MAX: usize = 500;

crate::string_enum!(
    /// Where a decision is made: in the console, in a shell, or by the service itself.
    Via { Console "console", Shell "shell", Service "service" }
);

crate::string_enum!(
    /// What an operator may do; each role may do what those before it may.
    Role { Viewer "viewer", Operator "operator", Approver "approver", Admin "admin" }
);

impl Role {
    /// Whether this role includes another.
    pub const fn includes(self, least: Role) -> bool {
        self as u8 >= least as u8
    }
}

/// Who decides, and why; each is empty if unknown. Kept with every decision of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecidedBy {
    actor: String,
    reason: String,
    via: Via,
    /// The operator's number, if a session or a password has shown who the actor is.
    operator: Option<i64>,
    /// The second person, where there is one.
    approved_by: String,
}

impl Default for DecidedBy {
    /// The service itself.
    fn default() -> DecidedBy {
        let (actor, reason, approved_by) = Default::default();
        DecidedBy { actor, reason, via: Via::Service, operator: None, approved_by }
    }
}

impl DecidedBy {
    /// Trims both texts. `Err` if one is too long or has a control character. `via` is
    /// [`Via::Shell`] unless [`DecidedBy::proven`] sets another value.
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
        Ok(DecidedBy {
            actor: actor.to_owned(),
            reason: reason.to_owned(),
            via: Via::Shell,
            ..DecidedBy::default()
        })
    }

    /// Notes that a session or a password has shown the actor to be this operator.
    pub fn proven(mut self, operator: i64, via: Via) -> DecidedBy {
        (self.operator, self.via) = (Some(operator), via);
        self
    }

    /// Notes the second person's approval.
    pub fn approved(mut self, name: &str) -> DecidedBy {
        self.approved_by = name.to_owned();
        self
    }

    pub const fn via(&self) -> Via {
        self.via
    }

    /// The operator's number, if a session or a password has shown who the actor is.
    pub const fn operator(&self) -> Option<i64> {
        self.operator
    }

    /// The second person's name, or "".
    pub fn approved_by(&self) -> &str {
        &self.approved_by
    }

    pub fn actor(&self) -> &str {
        &self.actor
    }

    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Whether both are known: who decides, and why.
    pub const fn has_actor_and_reason(&self) -> bool {
        !self.actor.is_empty() && !self.reason.is_empty()
    }

    /// A message that asks for actor and reason, if one is missing in live mode. In test mode, this
    /// asks for neither. Once there are operators, `decisions::require_operator` asks command lines
    /// for both in either mode.
    pub fn missing(&self, mode: Mode) -> Option<&'static str> {
        (mode.is_live() && !self.has_actor_and_reason()).then_some(
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
    fn a_name_or_a_reason_that_is_too_long_is_refused() {
        let (actor, reason) = ("a".repeat(ACTOR_CHARACTERS_MAX), "b".repeat(REASON_CHARACTERS_MAX));
        assert!(DecidedBy::new(&actor, &reason).is_ok());
        assert!(DecidedBy::new(&format!("{actor}a"), &reason).is_err());
        assert!(DecidedBy::new(&actor, &format!("{reason}b")).is_err());
        assert!(DecidedBy::new("asha\trao", "").is_err());
    }
}
