//! Signing in: how often one may try, and what is compared.

pub use super::session::Place;
use super::{Operator, OperatorIdentity, passwords, rows, sessions, totp};
use crate::audit::{self, Action, Fact};
use crate::kernel::{Now, OperationError, StoreError, Via};
use crate::services::Services;
use crate::store::Tx;

/// After so many failed attempts within `FAILURES_SECONDS` no attempt is looked at for the rest of
/// that time: of one name, and from one address, behind which may be a whole office.
pub const NAME_FAILURES_MAX: i64 = 10;
pub const ADDRESS_FAILURES_MAX: i64 = 50;
pub const FAILURES_SECONDS: i64 = 15 * 60;

/// The hash that is compared where there is no such operator, so that the answer takes as long.
const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5bm9ib2R5bm9ib2R5$\
    OI5WKvpwmJpVc9iAQLvMkSHMbuvbHkmbOnNbRM0rqxk";

/// What somebody typed, and where from.
#[derive(Clone)]
pub struct Attempt {
    pub name: String,
    pub password: String,
    /// Of the second factor, or a recovery code; may be empty.
    pub code: String,
    pub place: Place,
}

/// What became of an attempt.
pub enum SignIn {
    Done {
        token: sessions::Token,
        operator: OperatorIdentity,
    },
    /// Name, password or code is wrong; which one is not told.
    Wrong,
    /// Too many attempts failed; none is looked at for so many seconds.
    Locked {
        seconds: i64,
    },
}

/// What attempts are counted by (a hash of a name or an address), and how many may fail.
type Subject = ([u8; 32], i64);

fn hash(services: &Services, kind: &[u8], text: &str) -> [u8; 32] {
    services.sealer.fingerprint(&[b"sign-in failures", kind, text.as_bytes()])
}

pub(super) fn of_address(services: &Services, place: &Place) -> Subject {
    (hash(services, b"address", &place.address), ADDRESS_FAILURES_MAX)
}

fn subjects(services: &Services, attempt: &Attempt) -> [Subject; 2] {
    let name = attempt.name.trim().to_ascii_lowercase();
    [(hash(services, b"name", &name), NAME_FAILURES_MAX), of_address(services, &attempt.place)]
}

/// For how many seconds more an address is locked, from which too many attempts failed.
pub fn locked_seconds(
    tx: &mut dyn Tx,
    services: &Services,
    place: &Place,
    instant: i64,
) -> Result<Option<i64>, StoreError> {
    rest_of_lock(tx, &[of_address(services, place)], instant)
}

fn rest_of_lock(
    tx: &mut dyn Tx,
    subjects: &[Subject],
    instant: i64,
) -> Result<Option<i64>, StoreError> {
    for (subject, failures_max) in subjects {
        if let Some((count, first_at)) = rows::failures(tx, subject)? {
            let ends_at = first_at + FAILURES_SECONDS;
            if count >= *failures_max && instant < ends_at {
                return Ok(Some(ends_at - instant));
            }
        }
    }
    Ok(None)
}

/// The operator whom an attempt names. The caller then compares the password outside any
/// transaction, because that is slow. The inner `Err` says for how many seconds more the name or
/// the address is locked.
pub fn look(
    tx: &mut dyn Tx,
    services: &Services,
    attempt: &Attempt,
    instant: i64,
) -> Result<Result<Option<Operator>, i64>, StoreError> {
    if let Some(seconds) = rest_of_lock(tx, &subjects(services, attempt), instant)? {
        return Ok(Err(seconds));
    }
    let name = super::name(&attempt.name).unwrap_or_default();
    Ok(Ok(rows::find_by_name(tx, &name)?.filter(|operator| !operator.is_disabled)))
}

/// Compares a password; takes as long without an operator, and is then `false`.
pub fn is_password_right(operator: Option<&Operator>, password: &str) -> bool {
    let stored = operator.map_or(NOBODY, |operator| operator.password_hash.as_str());
    passwords::matches(password, stored) && operator.is_some()
}

/// What an attempt came to.
pub enum Proof {
    Right(OperatorIdentity),
    Wrong,
}

/// Takes the code of the second factor, if the operator has one. Counts one more failure if the
/// code or the password is wrong. `compared` is the operator if the password was right.
pub fn prove(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    attempt: &Attempt,
    compared: Option<&Operator>,
    via: Via,
) -> Result<Proof, OperationError> {
    // The operator may have been disabled, or got another password, since the comparison.
    let operator = match compared {
        Some(compared) => rows::find_by_name(tx, &compared.identity.name)?.filter(|operator| {
            !operator.is_disabled && operator.password_hash == compared.password_hash
        }),
        None => None,
    };
    let operator = match operator {
        Some(operator) if operator.is_totp_confirmed => {
            totp::take(tx, now, services, &operator, &attempt.code)?.then_some(operator)
        }
        other => other,
    };
    let Some(operator) = operator else {
        refuse(tx, now, services, attempt, via)?;
        return Ok(Proof::Wrong);
    };
    let [(by_name, _), _] = subjects(services, attempt);
    rows::forget_failures(tx, &by_name)?;
    Ok(Proof::Right(operator.identity))
}

/// Ends an attempt in the console as [`prove`] does, and begins a session if it was right.
pub fn conclude(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    attempt: &Attempt,
    compared: Option<&Operator>,
) -> Result<SignIn, OperationError> {
    let operator = match prove(tx, now, services, attempt, compared, Via::Console)? {
        Proof::Right(operator) => operator,
        Proof::Wrong => return Ok(SignIn::Wrong),
    };
    let token = sessions::begin(tx, now, operator.number, &attempt.place, false)?;
    log(tx, now, Action::SignIn, &operator.name, attempt, Via::Console)?;
    Ok(SignIn::Done { token, operator })
}

/// Counts a failed attempt and logs it. The log has the name only if it is an operator's: any other
/// text may be a password in the wrong field.
fn refuse(
    tx: &mut dyn Tx,
    now: &Now,
    services: &Services,
    attempt: &Attempt,
    via: Via,
) -> Result<(), StoreError> {
    count_failure(tx, now, &subjects(services, attempt))?;
    let name = super::name(&attempt.name).unwrap_or_default();
    let known = rows::find_by_name(tx, &name)?.map(|operator| operator.identity.name);
    log(tx, now, Action::SignInRefused, &known.unwrap_or_default(), attempt, via)
}

/// Counts one more failure of each subject.
pub(super) fn count_failure(
    tx: &mut dyn Tx,
    now: &Now,
    subjects: &[Subject],
) -> Result<(), StoreError> {
    for (subject, _) in subjects {
        let earlier = rows::failures(tx, subject)?
            .filter(|(_, first_at)| now.instant() < first_at + FAILURES_SECONDS);
        let (count, first_at) = earlier.unwrap_or((0, now.instant()));
        rows::set_failures(tx, subject, count + 1, first_at)?;
    }
    Ok(())
}

/// Counts a failure of a place, such as a provider's answer that does not hold.
pub fn count_failure_of(
    tx: &mut dyn Tx,
    now: &Now,
    services: &Services,
    place: &Place,
) -> Result<(), StoreError> {
    count_failure(tx, now, &[of_address(services, place)])
}

fn log(
    tx: &mut dyn Tx,
    now: &Now,
    action: Action,
    name: &str,
    attempt: &Attempt,
    via: Via,
) -> Result<(), StoreError> {
    let details = [("address", attempt.place.address.as_str())];
    audit::append(tx, now, &Fact { actor: name, via, action, subject: name, details: &details })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_nobody_is_a_hash_that_takes_as_long() {
        let parsed = argon2::password_hash::phc::PasswordHash::new(NOBODY).unwrap();
        assert_eq!(parsed.params.get_decimal("m"), Some(19 * 1024));
        assert!(!is_password_right(None, "nobody"));
    }
}
