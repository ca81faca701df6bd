//! Look-ups: questions to an outside service about accounts. This module stores them, leases the
//! due ones to a worker, and applies the answers.
//!
//! A question is a row of `account_look_ups`, which stays until the answer is applied or the
//! beneficiary is no longer in verification. So nothing is lost if the server stops or the outside
//! service stays silent. A row carries the identifier of its question. If the caller submitted the
//! beneficiary again before the answer came, the row is gone or has another identifier, and the
//! answer is dropped.

mod rows;

use super::Beneficiary;
use super::state::BeneficiaryStatus;
use super::verification::{account_question, screen_and_apply, set_holder_name};
use crate::account_verification::{AccountQuestion, LookedUp};
use crate::kernel::id::kind;
use crate::kernel::{Id, InternalId, Now, Scope, StoreError};
use crate::services::Services;
use crate::store::{Signal, Tx};

/// How long the lease of a question lasts, in milliseconds: longer than a service may take to
/// answer.
pub const LEASE_MILLISECONDS: i64 = 30_000;
/// Shortest and longest pause before a service that did not answer is asked again, in seconds. Each
/// pause is twice the one before, or as long as the service's `Retry-After` if that is longer.
pub const PAUSE_SECONDS_MIN: i64 = 2;
pub const PAUSE_SECONDS_MAX: i64 = 3_600;

/// One row: whom it is about, which question it is, and how often it got no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LookUp {
    pub scope: Scope,
    pub beneficiary_id: Id<kind::Beneficiary>,
    pub id: InternalId,
    /// When the question is due, by the store's clock. Under a lease: when the lease ends.
    pub due_milliseconds: i64,
    pub attempts_count: i64,
}

/// A question under a lease: nobody else asks it until the lease ends.
#[derive(Debug)]
pub struct Claimed {
    pub look_up: LookUp,
    pub question: AccountQuestion,
}

/// Stores that an account is to be looked up, in place of an older question about the same
/// beneficiary.
pub fn begin(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    beneficiary_id: Id<kind::Beneficiary>,
) -> Result<(), StoreError> {
    let look_up = LookUp {
        scope,
        beneficiary_id,
        id: now.mint(),
        due_milliseconds: now.instant_milliseconds(),
        attempts_count: 0,
    };
    rows::replace(tx, &look_up, now.instant())?;
    tx.signal(Signal::LookUps);
    Ok(())
}

/// Drops the open question about a beneficiary that is submitted again, so that a late answer about
/// its earlier details is not applied.
pub fn forget(
    tx: &mut dyn Tx,
    scope: Scope,
    beneficiary_id: Id<kind::Beneficiary>,
) -> Result<(), StoreError> {
    rows::forget(tx, scope, beneficiary_id)
}

/// Takes questions that are due, with a lease. Removes those about beneficiaries that are no longer
/// in verification.
pub fn claim(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    rows_max: i64,
) -> Result<Vec<Claimed>, StoreError> {
    let mut claimed = Vec::new();
    for mut look_up in rows::due(tx, now.instant_milliseconds(), rows_max)? {
        let lease_end_milliseconds = now.instant_milliseconds() + LEASE_MILLISECONDS;
        let question = match find_verifying(tx, &look_up) {
            Ok(Some(beneficiary)) => account_question(&beneficiary, services),
            Ok(None) => {
                rows::remove(tx, &look_up)?;
                continue;
            }
            Err(error) => Err(error),
        };
        match question {
            Ok(question) => {
                if rows::put_off(tx, &look_up, lease_end_milliseconds, look_up.attempts_count)? {
                    look_up.due_milliseconds = lease_end_milliseconds;
                    claimed.push(Claimed { look_up, question });
                }
            }
            // One beneficiary that cannot be read must not stop the others.
            Err(error @ (StoreError::Broken(_) | StoreError::Unfit(_))) => {
                tracing::error!(beneficiary = %look_up.beneficiary_id, %error, "an account cannot \
                 be looked up; tried again in an hour");
                let due_milliseconds = now.instant_milliseconds() + PAUSE_SECONDS_MAX * 1000;
                rows::put_off(tx, &look_up, due_milliseconds, look_up.attempts_count)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(claimed)
}

fn find_verifying(tx: &mut dyn Tx, look_up: &LookUp) -> Result<Option<Beneficiary>, StoreError> {
    let found = super::rows::find(tx, look_up.scope, look_up.beneficiary_id)?;
    Ok(found.filter(|beneficiary| beneficiary.status == BeneficiaryStatus::Verifying))
}

/// Applies the result of a look-up. If there was no answer, the question becomes due again after a
/// pause. Returns `false`, and applies nothing, in these cases:
///
/// - The question was replaced or dropped meanwhile.
/// - There is an answer, and the beneficiary is no longer in verification.
/// - There is no answer, and the lease was lost.
pub fn finish(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    look_up: &LookUp,
    outcome: &LookedUp,
) -> Result<bool, StoreError> {
    match outcome {
        LookedUp::Unanswered { retry_after_seconds, .. } => {
            let attempts_count = look_up.attempts_count + 1;
            let wanted_seconds =
                retry_after_seconds.and_then(|seconds| i64::try_from(seconds).ok()).unwrap_or(0);
            let pause_seconds =
                pause_seconds(attempts_count).max(wanted_seconds.min(PAUSE_SECONDS_MAX));
            rows::put_off(
                tx,
                look_up,
                now.instant_milliseconds() + pause_seconds * 1000,
                attempts_count,
            )
        }
        LookedUp::Answered(answer) | LookedUp::Named { answer, .. } => {
            if !rows::remove(tx, look_up)? {
                return Ok(false);
            }
            let Some(mut beneficiary) = find_verifying(tx, look_up)? else { return Ok(false) };
            if let LookedUp::Named { holder_name, .. } = outcome {
                set_holder_name(tx, now, services, &mut beneficiary, holder_name)?;
            }
            screen_and_apply(tx, now, services, &mut beneficiary, *answer)?;
            Ok(true)
        }
    }
}

/// The pause after this many questions without an answer.
fn pause_seconds(attempts_count: i64) -> i64 {
    let doublings = attempts_count.clamp(1, 20) - 1;
    (PAUSE_SECONDS_MIN << doublings).min(PAUSE_SECONDS_MAX)
}

/// When the next question is due, in milliseconds of the store's clock.
pub fn next_due_milliseconds(tx: &mut dyn Tx) -> Result<Option<i64>, StoreError> {
    rows::next_due_milliseconds(tx)
}

/// Makes all questions due earlier by `milliseconds`, after the machine's clock was set back by
/// that much: their due times were computed with the clock ahead.
pub fn make_all_due_earlier(tx: &mut dyn Tx, milliseconds: i64) -> Result<(), StoreError> {
    rows::make_all_due_earlier(tx, milliseconds)?;
    tx.signal(Signal::LookUps);
    Ok(())
}

/// Ends the leases of an earlier run, so that its open questions are asked again at once. A pause
/// that ends within the time of a lease is cut short too, because a row does not say which of the
/// two it has. Only for the embedded store, where no other server can still be asking the
/// questions.
pub fn release_abandoned(tx: &mut dyn Tx, now: &Now) -> Result<u64, StoreError> {
    rows::release(tx, now.instant_milliseconds(), now.instant_milliseconds() + LEASE_MILLISECONDS)
}

#[cfg(test)]
mod tests {
    #[test]
    fn pauses_double_up_to_an_hour() {
        let pauses: Vec<i64> = (1..=13).map(super::pause_seconds).collect();
        assert_eq!(pauses, [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600]);
        assert_eq!(super::pause_seconds(i64::MAX), 3600);
    }
}
