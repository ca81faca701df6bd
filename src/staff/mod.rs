//! The people who operate the service: their roles, passwords and sessions.

pub mod comparisons;
pub mod provider_links;
pub mod passwords;
pub mod rows;
mod session;
pub mod sessions;
pub mod sign_in;
pub mod totp;

use crate::audit::{self, Action, Fact};
use crate::decisions;
pub use crate::kernel::Role;
use crate::kernel::{DecidedBy, Now, OperationError, StoreError};
use crate::store::Tx;

crate::string_enum!(
    /// How the console looks.
    Theme { Auto "auto", Light "light", Dark "dark" }
);

/// An operator, as handlers and decisions know them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorIdentity {
    pub number: i64,
    pub name: String,
    pub role: Role,
}

/// An operator as stored.
#[derive(Clone, Debug)]
pub struct Operator {
    pub identity: OperatorIdentity,
    pub password_hash: String,
    pub is_disabled: bool,
    /// Sealed.
    pub totp_secret: Option<Vec<u8>>,
    /// Whether a code of the secret was accepted. From then on a sign-in with the password needs a
    /// code, too.
    pub is_totp_confirmed: bool,
    /// Sealed: a secret that waits for its first code, and when it was made.
    pub next_totp_secret: Option<Vec<u8>>,
    /// The last time step (`totp.rs`) whose code was accepted.
    pub totp_step: i64,
    /// The console's language; empty until the operator has chosen one.
    pub language: String,
    pub theme: Theme,
    pub created: i64,
}

pub const NAME_CHARACTERS_MAX: usize = 64;

/// A name as it is stored and compared: in lower case, without spaces around it. `Err` says which
/// names are accepted.
pub fn name(text: &str) -> Result<String, String> {
    let name = text.trim().to_ascii_lowercase();
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"._@+-".contains(&byte);
    if name.is_empty() || name.len() > NAME_CHARACTERS_MAX || !name.bytes().all(is_usual) {
        return Err(format!(
            "an operator's name has 1 to {NAME_CHARACTERS_MAX} characters: letters, digits and \
             any of . _ @ + -"
        ));
    }
    Ok(name)
}

/// Creates an operator. `name` comes from [`name`] and must be new; `password_hash` comes from
/// [`passwords::hash`]. On a command line this needs an administrator, unless there is no operator
/// yet or no administrator may sign in (`decisions::require_operator`).
pub fn create(
    tx: &mut dyn Tx,
    now: &Now,
    name: &str,
    role: Role,
    password_hash: &str,
    by: &DecidedBy,
) -> Result<OperatorIdentity, OperationError> {
    decisions::require_operator(tx, by, Role::Admin)?;
    if rows::find_by_name(tx, name)?.is_some() {
        return Err(OperationError::Declined(format!("there is an operator {name:?} already")));
    }
    let number = rows::last_number(tx)? + 1;
    rows::insert(tx, number, name, role, password_hash, now.instant())?;
    let details = [("role", role.as_str()), ("reason", by.reason())];
    audit::append(tx, now, &Fact::by(by, Action::OperatorCreated, name, &details))?;
    Ok(OperatorIdentity { number, name: name.to_owned(), role })
}

/// The operator of a name. Declined if there is none.
pub fn named(tx: &mut dyn Tx, name: &str) -> Result<Operator, OperationError> {
    rows::find_by_name(tx, name)?.ok_or_else(|| {
        OperationError::Declined(format!(
            "there is no operator {name:?}: `hundi operators list` shows them"
        ))
    })
}

/// Gives an operator a new password, removes the second factor and the link to a provider, ends
/// every session, and lets a disabled operator sign in again.
pub fn reset(
    tx: &mut dyn Tx,
    now: &Now,
    name: &str,
    password_hash: &str,
    by: &DecidedBy,
) -> Result<(), OperationError> {
    decisions::require_operator(tx, by, Role::Admin)?;
    let operator = named(tx, name)?;
    let number = operator.identity.number;
    rows::set_password(tx, number, password_hash)?;
    rows::remove_second_factor(tx, number)?;
    rows::remove_link(tx, number)?;
    rows::set_disabled(tx, number, false)?;
    let details = [("reason", by.reason())];
    audit::append(tx, now, &Fact::by(by, Action::OperatorReset, name, &details))?;
    Ok(rows::end_sessions_of(tx, number)?)
}

/// Stops an operator from signing in, and ends every session.
pub fn disable(
    tx: &mut dyn Tx,
    now: &Now,
    name: &str,
    by: &DecidedBy,
) -> Result<(), OperationError> {
    decisions::require_operator(tx, by, Role::Admin)?;
    let operator = named(tx, name)?;
    rows::set_disabled(tx, operator.identity.number, true)?;
    let details = [("reason", by.reason())];
    audit::append(tx, now, &Fact::by(by, Action::OperatorDisabled, name, &details))?;
    Ok(rows::end_sessions_of(tx, operator.identity.number)?)
}

/// Removes sessions that are older than a session may be, and failures that no longer count. Both
/// are few, so one call removes all. The answer 0 says that no further call is needed.
pub fn purge(tx: &mut dyn Tx, now: &mut Now) -> Result<u64, StoreError> {
    rows::purge(tx, now.instant(), now.instant() - sign_in::FAILURES_SECONDS)?;
    Ok(0)
}

/// Whether there is an operator who is not disabled.
pub fn has_enabled_operator(tx: &mut dyn Tx) -> Result<bool, StoreError> {
    Ok(rows::all(tx)?.iter().any(|operator| !operator.is_disabled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_includes_those_before_it() {
        for (index, role) in Role::ALL.iter().enumerate() {
            for (other, least) in Role::ALL.iter().enumerate() {
                assert_eq!(role.includes(*least), other <= index, "{role:?} {least:?}");
            }
        }
    }

    #[test]
    fn names_are_of_plain_characters_and_in_lower_case() {
        assert_eq!(name(" Asha.Rao@Example.in ").as_deref(), Ok("asha.rao@example.in"));
        for text in ["", " ", "a b", "<b>", "ä", &"x".repeat(65)] {
            assert!(name(text).is_err(), "{text}");
        }
    }
}
