//! A sandbox that attacks its caller, in test mode. Requests are refused once or twice, answers are
//! lost or late. Webhooks come twice, late, after a forged copy or not at all. A report grades how
//! the caller dealt with it.
//!
//! A key has at most one profile. Which requests and events it attacks depends only on its
//! settings (the seed is one of them) and on the order in which they come. So a run can be
//! repeated. The key's row says until when its profile watches it, and the webhook endpoint's row
//! says which key's profile attacks it. So other keys and endpoints cost nothing.

pub mod events;
pub mod grade;
pub mod requests;
pub mod rows;
pub mod seen;

use sha2::{Digest, Sha256};

use crate::kernel::id::kind;
use crate::kernel::{Code, Id, Now, OperationError, Refusal, Scope, StoreError};
use crate::store::Tx;

pub type KeyId = Id<kind::ApiKey>;
pub type EndpointId = Id<kind::WebhookEndpoint>;

/// How long a profile attacks: at most, and by default.
pub const DURATION_SECONDS_MAX: i64 = 3_600;
pub const DURATION_SECONDS_DEFAULT: i64 = 600;
/// How long the caller is watched after the attacks have ended, so that it can finish what it
/// began.
pub const SETTLING_SECONDS: i64 = 60;
/// The largest seed: the largest integer that every JSON reader reads exactly (2^53 - 1).
pub const SEED_MAX: i64 = 9_007_199_254_740_991;
/// The largest seed that the service chooses. It is small so that seeds are short.
const SEED_CHOSEN_MAX: i64 = 999_999_999;
/// How many of 100 requests or events are attacked by default.
pub const PERCENTAGE_DEFAULT: i64 = 50;
/// By how much a delayed answer is late: at most, and by default.
pub const DELAY_MILLISECONDS_MAX: i64 = 10_000;
pub const DELAY_MILLISECONDS_DEFAULT: i64 = 2_000;
/// By how much a late event is late: at most, and by default.
pub const WEBHOOK_DELAY_MILLISECONDS_MAX: i64 = 600_000;
pub const WEBHOOK_DELAY_MILLISECONDS_DEFAULT: i64 = 5_000;
/// The most requests and events that one profile keeps; later ones are neither attacked nor kept.
pub const REQUESTS_MAX: i64 = 2_000;
pub const EVENTS_MAX: i64 = 2_000;
/// How long a report is kept after its profile completed, in milliseconds.
const KEPT_MILLISECONDS: i64 = 30 * 86_400 * 1_000;

crate::string_enum!(
    /// What can happen to a request.
    RequestAttack {
        // The effect happens, and the connection closes without an answer.
        AnswerDropped "answer_dropped",
        // The effect happens, and the answer comes late.
        AnswerDelayed "answer_delayed",
        // 503 `service_unavailable` with `Retry-After`, once or twice; nothing happens.
        ServiceUnavailable "service_unavailable",
        // 409 `resource_locked` with `Retry-After`, once or twice; nothing happens.
        ResourceLocked "resource_locked",
    }
);

crate::string_enum!(
    /// What can happen to an event on its way to the webhook endpoint.
    WebhookAttack {
        // It comes twice.
        Duplicated "duplicated",
        // It comes late, so that newer ones can come before it.
        Late "late",
        // A copy with a wrong signature comes first.
        Forged "forged",
        // It does not come, unless the caller has it replayed.
        Missing "missing",
    }
);

/// The attacks on a GET. The others are about effects and idempotency keys; a GET has neither.
const READ_ATTACKS: &[RequestAttack] =
    &[RequestAttack::AnswerDelayed, RequestAttack::ServiceUnavailable];

crate::string_enum!(
    /// Where a profile stands.
    ChaosStatus {
        // It attacks.
        Running "running",
        // It attacks no more, and watches how the caller finishes.
        Settling "settling",
        // The report is final.
        Completed "completed",
    }
);

/// The profile of a key.
#[derive(Clone, Debug)]
pub struct Profile {
    pub scope: Scope,
    pub key_id: KeyId,
    pub seed: i64,
    /// How many of 100 requests and events are attacked: 1 to 100.
    pub percentage: i64,
    pub request_attacks: Vec<RequestAttack>,
    pub webhook_attacks: Vec<WebhookAttack>,
    pub delay_milliseconds: i64,
    pub webhook_delay_milliseconds: i64,
    /// The webhook endpoint that is attacked; `None` if none is.
    pub endpoint_id: Option<EndpointId>,
    /// This and the next two are Unix milliseconds of the store's clock, which no test clock moves.
    pub started_milliseconds: i64,
    pub ends_milliseconds: i64,
    pub completes_milliseconds: i64,
    pub writes: AttackCount,
    pub reads: AttackCount,
    pub events: AttackCount,
}

/// How many writes, reads or events there were, and how many of them were attacked.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct AttackCount {
    pub count: i64,
    pub attacked: i64,
}

impl Profile {
    pub fn status(&self, now_milliseconds: i64) -> ChaosStatus {
        if now_milliseconds < self.ends_milliseconds {
            ChaosStatus::Running
        } else if now_milliseconds < self.completes_milliseconds {
            ChaosStatus::Settling
        } else {
            ChaosStatus::Completed
        }
    }
}

/// A pseudo-random number that depends only on the seed, the kind and the number of a request or
/// event.
pub(crate) fn draw(seed: i64, kind: &str, number: i64) -> u64 {
    let mut hash = Sha256::new();
    hash.update(seed.to_be_bytes());
    hash.update(number.to_be_bytes());
    hash.update(kind.as_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    digest.iter().take(8).fold(0, |value, byte| (value << 8) | u64::from(*byte))
}

impl AttackCount {
    /// Counts one more, and answers what happens to it. The attacks take turns, beginning with one
    /// that the seed chooses, so that a few requests meet all of them.
    pub(crate) fn next<A: Copy>(
        &mut self,
        (seed, percentage): (i64, i64),
        kind: &str,
        attacks: &[A],
    ) -> Option<A> {
        self.count += 1;
        let is_attacked = (draw(seed, kind, self.count) % 100) < percentage.unsigned_abs();
        if !is_attacked || attacks.is_empty() {
            return None;
        }
        let first = draw(seed, kind, 0) % attacks.len() as u64;
        let place = (first + self.attacked.unsigned_abs()) % attacks.len() as u64;
        self.attacked += 1;
        attacks.get(place as usize).copied()
    }
}

/// What a caller asks for.
pub struct NewProfile {
    pub duration_seconds: i64,
    pub seed: Option<i64>,
    pub percentage: i64,
    pub request_attacks: Vec<RequestAttack>,
    pub webhook_attacks: Vec<WebhookAttack>,
    pub delay_milliseconds: i64,
    pub webhook_delay_milliseconds: i64,
    pub endpoint_id: Option<EndpointId>,
}

/// Begins a profile, which replaces the key's last one. Refused for live keys, and if another key's
/// profile for the same webhook endpoint is not completed yet.
pub fn begin(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    key_id: KeyId,
    new: NewProfile,
) -> Result<Profile, OperationError> {
    if scope.livemode() {
        let message = "Chaos takes test keys only.";
        return Err(Refusal::new(Code::TestmodeActionOnly, message).into());
    }
    let at = now.instant_milliseconds();
    if let Some(endpoint_id) = new.endpoint_id {
        let other = rows::key_of_endpoint(tx, scope, endpoint_id)?.filter(|key| *key != key_id);
        if let Some(other) = other
            && find_open(tx, at, scope, other)?.is_some()
        {
            let message =
                "The profile of another key for this webhook endpoint is not completed yet.";
            return Err(Refusal::new(Code::TestHelperNotApplicable, message).into());
        }
    }
    // A transaction that records something under the old profile commits before this, or finds
    // the old profile gone.
    rows::lock_profile(tx, scope, key_id)?;
    rows::remove(tx, scope, key_id)?;
    let random = u64::from_be_bytes(now.random_bytes());
    let chosen = i64::try_from(random % (SEED_CHOSEN_MAX.unsigned_abs() + 1)).unwrap_or(0);
    let profile = Profile {
        scope,
        key_id,
        seed: new.seed.unwrap_or(chosen),
        percentage: new.percentage,
        request_attacks: new.request_attacks,
        webhook_attacks: new.webhook_attacks,
        delay_milliseconds: new.delay_milliseconds,
        webhook_delay_milliseconds: new.webhook_delay_milliseconds,
        endpoint_id: new.endpoint_id,
        started_milliseconds: at,
        ends_milliseconds: at + new.duration_seconds * 1_000,
        completes_milliseconds: at + (new.duration_seconds + SETTLING_SECONDS) * 1_000,
        writes: AttackCount::default(),
        reads: AttackCount::default(),
        events: AttackCount::default(),
    };
    rows::insert(tx, &profile)?;
    rows::mark_key(tx, key_id, Some(profile.completes_milliseconds))?;
    if let Some(endpoint_id) = profile.endpoint_id {
        rows::mark_endpoint(tx, scope, endpoint_id, key_id)?;
    }
    Ok(profile)
}

/// The profile of a key, unless its report is final. After that nothing is recorded.
fn find_open(
    tx: &mut dyn Tx,
    now_milliseconds: i64,
    scope: Scope,
    key_id: KeyId,
) -> Result<Option<Profile>, StoreError> {
    let found = rows::find(tx, scope, key_id)?;
    Ok(found.filter(|profile| profile.status(now_milliseconds) != ChaosStatus::Completed))
}

/// Completes a profile now, if it is not completed, with what it has seen so far.
pub fn stop(
    tx: &mut dyn Tx,
    now: &Now,
    scope: Scope,
    key_id: KeyId,
) -> Result<Profile, OperationError> {
    rows::lock_profile(tx, scope, key_id)?;
    let mut profile = rows::find(tx, scope, key_id)?.ok_or_else(Refusal::not_found)?;
    let at = now.instant_milliseconds();
    profile.ends_milliseconds = profile.ends_milliseconds.min(at);
    profile.completes_milliseconds = profile.completes_milliseconds.min(at);
    rows::update(tx, &profile)?;
    rows::mark_key(tx, key_id, None)?;
    Ok(profile)
}

/// Removes the oldest expired report; answers how many reports it removed, 1 or 0.
pub fn purge(tx: &mut dyn Tx, now: &Now) -> Result<u64, StoreError> {
    let before = now.instant_milliseconds() - KEPT_MILLISECONDS;
    let Some((scope, key_id)) = rows::completed_before(tx, before)? else { return Ok(0) };
    rows::remove(tx, scope, key_id)?;
    Ok(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: i64, percentage: i64, count: i64) -> Vec<Option<RequestAttack>> {
        let mut tally = AttackCount::default();
        let mut next = || tally.next((seed, percentage), "write", RequestAttack::ALL);
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn the_same_seed_attacks_the_same_requests() {
        assert_eq!(drawn(7, 50, 200), drawn(7, 50, 200));
        assert_ne!(drawn(7, 50, 200), drawn(8, 50, 200));
        let attacked = drawn(7, 50, 2_000).iter().flatten().count();
        assert!((900..1_100).contains(&attacked), "{attacked} of 2000");
        assert_eq!(drawn(7, 100, 50).iter().flatten().count(), 50);
    }

    #[test]
    fn attacks_take_turns() {
        for seed in 0..50 {
            let four: std::collections::HashSet<_> =
                drawn(seed, 100, 4).into_iter().flatten().collect();
            assert_eq!(four.len(), 4, "{seed}");
        }
    }
}
