//! Links of operators to persons at an OpenID Connect provider. The *issuer* names the provider.
//! The *subject* is the provider's identifier of a person, which it gives to no other person.
//! Signing in at the provider makes nobody an operator.

use super::sign_in::{self, Place};
use super::{Operator, OperatorIdentity, named, rows, sessions};
use crate::audit::{self, Action, Fact};
use crate::decisions;
use crate::kernel::{DecidedBy, Now, OperationError, Role, StoreError, Via};
use crate::services::Services;
use crate::store::Tx;

/// The most characters of a subject (OpenID Connect Core, section 2).
const SUBJECT_CHARACTERS_MAX: usize = 255;

/// Refuses a text that cannot be a subject.
pub fn judge_subject(text: &str) -> Result<(), String> {
    let is_length_wrong = !(1..=SUBJECT_CHARACTERS_MAX).contains(&text.chars().count());
    if is_length_wrong || text.chars().any(char::is_control) {
        return Err(format!(
            "a subject has 1 to {SUBJECT_CHARACTERS_MAX} characters and no control characters"
        ));
    }
    Ok(())
}

/// The reason of a link that a sign-in makes by itself.
const LINKED_BY_EMAIL: &str =
    "the provider verified the e-mail address that is the operator's name";

/// Somebody for whom a provider vouches.
pub struct Vouched {
    pub issuer: String,
    pub subject: String,
    /// An e-mail address that the provider verified, if the settings let such an address link an
    /// operator.
    pub email: Option<String>,
    /// Whether the settings say that the provider asks for a second factor.
    pub has_second_factor: bool,
}

/// The result of a sign-in at a provider.
pub enum OutsideSignIn {
    Done {
        token: sessions::Token,
        operator: OperatorIdentity,
    },
    /// No operator who may sign in is linked to this person.
    NotLinked,
    /// The operator has a second factor here, and the settings do not say that the provider asks
    /// for one.
    SecondFactorNeeded,
}

/// Links an operator to a person at a provider.
pub fn link(
    tx: &mut dyn Tx,
    now: &Now,
    name: &str,
    issuer: &str,
    subject: &str,
    by: &DecidedBy,
) -> Result<(), OperationError> {
    decisions::require_operator(tx, by, Role::Admin)?;
    let operator = named(tx, name)?;
    if rows::link_of(tx, operator.identity.number)?.is_some() {
        return Err(OperationError::Declined(format!(
            "{name:?} is linked already: `hundi operators unlink {name}` ends that"
        )));
    }
    if let Some(other) = rows::find_linked(tx, issuer, subject)? {
        return Err(OperationError::Declined(format!(
            "this subject is linked to {:?} already",
            other.identity.name
        )));
    }
    rows::insert_link(tx, operator.identity.number, issuer, subject, now.instant())?;
    let details = [("issuer", issuer), ("subject", subject), ("reason", by.reason())];
    Ok(audit::append(tx, now, &Fact::by(by, Action::OperatorLinked, name, &details))?)
}

/// Ends an operator's link, and every session, because each may have begun through the link.
pub fn unlink(
    tx: &mut dyn Tx,
    now: &Now,
    name: &str,
    by: &DecidedBy,
) -> Result<(), OperationError> {
    decisions::require_operator(tx, by, Role::Admin)?;
    let operator = named(tx, name)?;
    if !rows::remove_link(tx, operator.identity.number)? {
        return Err(OperationError::Declined(format!("{name:?} is not linked")));
    }
    let details = [("reason", by.reason())];
    audit::append(tx, now, &Fact::by(by, Action::OperatorUnlinked, name, &details))?;
    Ok(rows::end_sessions_of(tx, operator.identity.number)?)
}

/// Signs in a person for whom a provider vouches. A refused sign-in counts as a failure of the
/// address, and is logged.
pub fn sign_in(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    vouched: &Vouched,
    place: &Place,
) -> Result<OutsideSignIn, OperationError> {
    let linked = rows::find_linked(tx, &vouched.issuer, &vouched.subject)?;
    let (operator, is_link_new) = match linked {
        Some(operator) => (Some(operator), false),
        None => (by_email(tx, vouched)?, true),
    };
    let Some(operator) = operator else {
        refuse(tx, now, services, vouched, "", place)?;
        return Ok(OutsideSignIn::NotLinked);
    };
    let name = operator.identity.name.as_str();
    if operator.is_disabled {
        refuse(tx, now, services, vouched, name, place)?;
        return Ok(OutsideSignIn::NotLinked);
    }
    if operator.is_totp_confirmed && !vouched.has_second_factor {
        refuse(tx, now, services, vouched, name, place)?;
        return Ok(OutsideSignIn::SecondFactorNeeded);
    }
    if is_link_new {
        let by = DecidedBy::new(name, LINKED_BY_EMAIL).map_err(StoreError::Broken)?;
        let by = by.proven(operator.identity.number, Via::Console);
        link(tx, now, name, &vouched.issuer, &vouched.subject, &by)?;
    }
    let number = operator.identity.number;
    let token = sessions::begin(tx, now, number, place, vouched.has_second_factor)?;
    log(tx, now, Action::SignIn, name, vouched, place)?;
    Ok(OutsideSignIn::Done { token, operator: operator.identity })
}

/// The operator whose name is the verified e-mail address. `None` if that operator is linked
/// already, or if the settings do not let addresses link.
fn by_email(tx: &mut dyn Tx, vouched: &Vouched) -> Result<Option<Operator>, StoreError> {
    let Some(name) = vouched.email.as_deref().and_then(|email| super::name(email).ok()) else {
        return Ok(None);
    };
    let Some(operator) = rows::find_by_name(tx, &name)? else { return Ok(None) };
    let is_free = rows::link_of(tx, operator.identity.number)?.is_none();
    Ok(Some(operator).filter(|_| is_free))
}

fn refuse(
    tx: &mut dyn Tx,
    now: &Now,
    services: &Services,
    vouched: &Vouched,
    name: &str,
    place: &Place,
) -> Result<(), StoreError> {
    sign_in::count_address_failure(tx, now, services, place)?;
    log(tx, now, Action::SignInRefused, name, vouched, place)
}

/// Logs a sign-in or a refused one, about the operator `name`, which is empty if no operator was
/// found. The entry does not have the provider's subject, because the person may be no operator.
fn log(
    tx: &mut dyn Tx,
    now: &Now,
    action: Action,
    name: &str,
    vouched: &Vouched,
    place: &Place,
) -> Result<(), StoreError> {
    let details = [("address", place.address.as_str()), ("issuer", vouched.issuer.as_str())];
    let via = Via::Console;
    audit::append(tx, now, &Fact { actor: name, via, action, subject: name, details: &details })
}
