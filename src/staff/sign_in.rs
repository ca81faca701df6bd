//! Signing in: how often one may try, and what is compared.
//!
//! An attempt is counted as failed, for its name and for its address, in one transaction before
//! anything is compared. So attempts that come together cannot exceed the limits. If the attempt
//! turns out to be right, this one failure of the address is taken back, and all failures of the
//! name are forgotten.

pub use super::session::Place;
use super::{Operator, OperatorIdentity, passwords, rows, sessions, totp};
use crate::audit::{self, Action, Fact};
use crate::kernel::{Now, OperationError, StoreError, Via};
use crate::services::Services;
use crate::store::Tx;

/// After this many failed attempts with one name, no attempt with the name is compared until
/// [`FAILURES_SECONDS`] have passed since the first of them.
pub const NAME_FAILURES_MAX: i64 = 10;
/// The same for attempts from one address, which may be a whole office.
pub const ADDRESS_FAILURES_MAX: i64 = 50;
pub const FAILURES_SECONDS: i64 = 15 * 60;

/// The longest password that is compared, in bytes; a longer one is wrong.
const PASSWORD_BYTES_MAX: usize = 4 * passwords::CHARACTERS_MAX;

/// The hash to compare with if there is no such operator, so that the answer takes as long as for
/// one that there is.
const NOBODY_HASH: &str = "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5bm9ib2R5bm9ib2R5$\
    OI5WKvpwmJpVc9iAQLvMkSHMbuvbHkmbOnNbRM0rqxk";

/// What somebody typed, and where from.
#[derive(Clone)]
pub struct Attempt {
    pub name: String,
    pub password: String,
    /// A code of the second factor, or a recovery code; may be empty.
    pub code: String,
    pub place: Place,
}

/// What became of an attempt.
pub enum SignIn {
    Done {
        token: sessions::Token,
        operator: OperatorIdentity,
    },
    /// Name, password or code is wrong. The answer does not say which.
    Wrong,
    /// Too many attempts failed. None is compared for this many seconds.
    Locked {
        seconds: i64,
    },
}

/// What attempts are counted by (a hash of a name or an address), and how many may fail.
type Subject = ([u8; 32], i64);

fn hash(services: &Services, kind: &[u8], text: &str) -> [u8; 32] {
    services.sealer.fingerprint(&[b"sign-in failures", kind, text.as_bytes()])
}

fn of_address(services: &Services, place: &Place) -> Subject {
    (hash(services, b"address", &place.network()), ADDRESS_FAILURES_MAX)
}

fn subjects(services: &Services, name: &str, place: &Place) -> [Subject; 2] {
    let name = name.trim().to_ascii_lowercase();
    [(hash(services, b"name", &name), NAME_FAILURES_MAX), of_address(services, place)]
}

/// For how many more seconds an address is locked, because too many attempts from it failed; `None`
/// if it is not locked.
pub fn address_locked_seconds(
    tx: &mut dyn Tx,
    services: &Services,
    place: &Place,
    instant: i64,
) -> Result<Option<i64>, StoreError> {
    locked_seconds(tx, &[of_address(services, place)], instant)
}

/// For how many more seconds the first locked one of `subjects` is locked. `None` if no subject is
/// locked.
fn locked_seconds(
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

/// For how many more seconds an attempt's name or address is locked; `None` if neither is.
pub fn attempt_locked_seconds(
    tx: &mut dyn Tx,
    services: &Services,
    attempt: &Attempt,
    instant: i64,
) -> Result<Option<i64>, StoreError> {
    locked_seconds(tx, &subjects(services, &attempt.name, &attempt.place), instant)
}

/// An attempt that was counted and may be compared.
pub struct CountedAttempt {
    /// The operator whom the attempt names; `None` if there is no such operator, or if the operator
    /// is disabled.
    operator: Option<Operator>,
    /// When the count of its address's failures began. The attempt is in this count, and is taken
    /// back only if the count has not begun again since.
    address_first_at: i64,
}

/// An attempt whose password was compared.
pub struct ComparedAttempt {
    counted: CountedAttempt,
    is_right: bool,
}

impl CountedAttempt {
    /// Whether the operator has a second factor, whose code is asked for too.
    pub fn needs_code(&self) -> bool {
        self.operator.as_ref().is_some_and(|operator| operator.is_totp_confirmed)
    }

    /// Compares the password. That is slow: the caller does it outside any transaction and on
    /// another thread.
    pub fn compare(self, password: &str) -> ComparedAttempt {
        let is_right = is_password_right(self.operator.as_ref(), password);
        ComparedAttempt { counted: self, is_right }
    }
}

/// What [`count`] answers for a subject that is locked.
fn locked(
    tx: &mut dyn Tx,
    now: &Now,
    subject: Subject,
) -> Result<Result<CountedAttempt, i64>, StoreError> {
    Ok(Err(locked_seconds(tx, &[subject], now.instant())?.unwrap_or(FAILURES_SECONDS)))
}

/// Counts an attempt as failed, and answers the attempt that may be compared. The inner `Err` says
/// for how many more seconds the name or the address is locked; then the attempt is not counted.
pub fn count(
    tx: &mut dyn Tx,
    now: &Now,
    services: &Services,
    name: &str,
    place: &Place,
) -> Result<Result<CountedAttempt, i64>, StoreError> {
    let [by_name, by_address] = subjects(services, name, place);
    // The row of the address comes first here and in `prove`, so that two attempts cannot deadlock.
    if !count_failure(tx, now, by_address)? {
        return locked(tx, now, by_address);
    }
    let (_, address_first_at) = rows::failures(tx, &by_address.0)?.unwrap_or((1, now.instant()));
    if !count_failure(tx, now, by_name)? {
        rows::take_back_failure(tx, &by_address.0, address_first_at)?;
        return locked(tx, now, by_name);
    }
    let name = super::name(name).unwrap_or_default();
    let operator = rows::find_by_name(tx, &name)?.filter(|operator| !operator.is_disabled);
    Ok(Ok(CountedAttempt { operator, address_first_at }))
}

/// Compares a password. Without an operator this takes as long, and answers `false`.
pub fn is_password_right(operator: Option<&Operator>, password: &str) -> bool {
    let stored = operator.map_or(NOBODY_HASH, |operator| operator.password_hash.as_str());
    let is_usual = password.len() <= PASSWORD_BYTES_MAX;
    is_usual && passwords::matches(password, stored) && operator.is_some()
}

/// The result of [`prove`].
pub enum Proof {
    Right(OperatorIdentity),
    Wrong,
}

/// Judges an attempt whose password was compared. The password must have been right, and so must
/// the code if the operator has a second factor. If the attempt is right, the failure that
/// [`count`] added to its address is taken back, and all failures of its name are forgotten. A
/// wrong attempt is logged.
pub fn prove(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    attempt: &Attempt,
    compared: &ComparedAttempt,
    via: Via,
) -> Result<Proof, OperationError> {
    // Since the comparison, the operator may have been disabled or given another password.
    let ComparedAttempt { counted, is_right } = compared;
    let operator = match &counted.operator {
        Some(known) if *is_right => {
            rows::find_by_name(tx, &known.identity.name)?.filter(|operator| {
                !operator.is_disabled && operator.password_hash == known.password_hash
            })
        }
        _ => None,
    };
    let operator = match operator {
        Some(operator) if operator.is_totp_confirmed => {
            totp::take(tx, now, services, &operator, &attempt.code)?.then_some(operator)
        }
        other => other,
    };
    let Some(operator) = operator else {
        log_refused(tx, now, attempt, via)?;
        return Ok(Proof::Wrong);
    };
    let [(by_name, _), (by_address, _)] = subjects(services, &attempt.name, &attempt.place);
    rows::take_back_failure(tx, &by_address, counted.address_first_at)?;
    rows::forget_failures(tx, &by_name)?;
    Ok(Proof::Right(operator.identity))
}

/// Judges an attempt in the console as [`prove`] does, and begins a session if it is right.
pub fn conclude(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    attempt: &Attempt,
    compared: &ComparedAttempt,
) -> Result<SignIn, OperationError> {
    let operator = match prove(tx, now, services, attempt, compared, Via::Console)? {
        Proof::Right(operator) => operator,
        Proof::Wrong => return Ok(SignIn::Wrong),
    };
    let token = sessions::begin(tx, now, operator.number, &attempt.place, false)?;
    log(tx, now, Action::SignIn, &operator.name, attempt, Via::Console)?;
    Ok(SignIn::Done { token, operator })
}

/// The result of checking a code from an operator who is signed in.
pub enum CodeCheck<T> {
    Right(T),
    Wrong,
    /// Too many attempts failed. No code is compared for this many seconds.
    Locked {
        seconds: i64,
    },
}

/// Checks a code of an operator who is signed in. `check` answers `None` if the code is wrong. A
/// wrong code counts as a failed attempt to sign in, of the name and of the address. Otherwise
/// whoever holds an open session could guess codes without end.
pub fn check_code<T>(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    name: &str,
    place: &Place,
    check: impl FnOnce(&mut dyn Tx, &mut Now) -> Result<Option<T>, OperationError>,
) -> Result<CodeCheck<T>, OperationError> {
    // The count comes first, and its rows stay locked until the commit. So codes that come together
    // cannot exceed the limit.
    let counted = match count(tx, now, services, name, place)? {
        Err(seconds) => return Ok(CodeCheck::Locked { seconds }),
        Ok(counted) => counted,
    };
    let Some(right) = check(tx, now)? else {
        let details = [("address", place.address.as_str()), ("of", "second_factor")];
        let (via, action) = (Via::Console, Action::SignInRefused);
        let fact = Fact { actor: name, via, action, subject: name, details: &details };
        audit::append(tx, now, &fact)?;
        return Ok(CodeCheck::Wrong);
    };
    let [(by_name, _), (by_address, _)] = subjects(services, name, place);
    rows::take_back_failure(tx, &by_address, counted.address_first_at)?;
    // Unlike a sign-in, a right code does not clear the count of failed passwords: only this
    // failure is taken back.
    if let Some((_, first_at)) = rows::failures(tx, &by_name)? {
        rows::take_back_failure(tx, &by_name, first_at)?;
    }
    Ok(CodeCheck::Right(right))
}

/// Logs a failed attempt. The log gets the name only if it is an operator's: any other text may be
/// a password that was typed into the wrong field.
fn log_refused(tx: &mut dyn Tx, now: &Now, attempt: &Attempt, via: Via) -> Result<(), StoreError> {
    let name = super::name(&attempt.name).unwrap_or_default();
    let known = rows::find_by_name(tx, &name)?.map(|operator| operator.identity.name);
    log(tx, now, Action::SignInRefused, &known.unwrap_or_default(), attempt, via)
}

/// Counts one more failure of a subject; `false` if it is locked already.
fn count_failure(
    tx: &mut dyn Tx,
    now: &Now,
    (subject_hash, failures_max): Subject,
) -> Result<bool, StoreError> {
    let window_begins_at = now.instant() - FAILURES_SECONDS;
    rows::count_failure(tx, &subject_hash, failures_max, now.instant(), window_begins_at)
}

/// Counts a failure from an address, such as a provider's answer that is invalid.
pub fn count_address_failure(
    tx: &mut dyn Tx,
    now: &Now,
    services: &Services,
    place: &Place,
) -> Result<(), StoreError> {
    count_failure(tx, now, of_address(services, place)).map(|_| ())
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
    fn the_hash_for_an_unknown_name_takes_as_much_memory_and_fits_no_password() {
        let parsed = argon2::password_hash::phc::PasswordHash::new(NOBODY_HASH).unwrap();
        assert_eq!(parsed.params.get_decimal("m"), Some(19 * 1024));
        assert!(!is_password_right(None, "nobody"));
        assert!(!is_password_right(None, &"x".repeat(PASSWORD_BYTES_MAX + 1)));
    }
}
