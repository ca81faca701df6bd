//! Requests under a profile. An attempt is one sending of a request. Attempts of POSTs, and of GETs
//! that are attacked, are recorded before they run and when they are answered. The first attempts
//! of an attacked request meet the attack.

use super::seen::{Fate, ObservedRequest, RequestAttempt};
use super::{KeyId, READ_ATTACKS, REQUESTS_MAX, RequestAttack, draw, rows};
use crate::kernel::{Now, Scope, StoreError};
use crate::store::Tx;

/// The most attempts of one request that are stored. Later ones are not attacked either.
pub const ATTEMPTS_MAX: usize = 20;
/// The value of `Retry-After`, in seconds.
pub const RETRY_AFTER_SECONDS: u64 = 1;

/// A request as it comes.
#[derive(Clone, Debug)]
pub struct IncomingRequest {
    pub request_id: String,
    pub method: &'static str,
    pub route: &'static str,
    /// A keyed hash of the idempotency key, or of a GET's path and query.
    pub request_hash: [u8; 16],
    /// A keyed hash of method, path, query and body, without the idempotency key.
    pub fingerprint: [u8; 32],
}

/// What happens to an attempt, and where it is recorded.
#[derive(Clone, Copy, Debug)]
pub struct AttemptVerdict {
    /// The request's number in its profile.
    pub number: i64,
    /// The attempt's place among those of the request, from 0.
    pub place: usize,
    pub fate: Fate,
    /// By how much the answer is late, if the fate is [`Fate::Delayed`].
    pub delay_milliseconds: i64,
}

/// Records an attempt and answers what happens to it; `None` if it is not recorded.
pub fn begin(
    tx: &mut dyn Tx,
    now: &Now,
    scope: Scope,
    key_id: KeyId,
    asked: &IncomingRequest,
) -> Result<Option<AttemptVerdict>, StoreError> {
    rows::lock_profile(tx, scope, key_id)?;
    let at = now.instant_milliseconds();
    let Some(mut profile) = super::find_open(tx, at, scope, key_id)? else { return Ok(None) };
    let is_attacking = at < profile.ends_milliseconds;
    let is_write = asked.method == "POST";
    // A caller may send the same GET many times without retrying it. A GET counts as a retry only
    // if every earlier attempt was refused, or has a delayed answer that is still on its way.
    let known = rows::request(tx, scope, key_id, &asked.request_hash)?
        .filter(|request| is_write || !request.is_told_by(at));
    let mut request = match known {
        Some(request) if request.attempts.len() >= ATTEMPTS_MAX => return Ok(None),
        Some(request) => request,
        None => {
            let drawing = (profile.seed, profile.percentage);
            let kept = profile.writes.count + profile.reads.attacked;
            if kept >= REQUESTS_MAX {
                return Ok(None);
            }
            let attack = match (is_attacking, is_write) {
                (true, true) => profile.writes.next(drawing, "write", &profile.request_attacks),
                (true, false) => {
                    let all = profile.request_attacks.iter().copied();
                    let attacks: Vec<_> = all.filter(|one| READ_ATTACKS.contains(one)).collect();
                    profile.reads.next(drawing, "read", &attacks)
                }
                (false, true) => {
                    profile.writes.count += 1;
                    None
                }
                (false, false) => None,
            };
            rows::update(tx, &profile)?;
            if !is_write && attack.is_none() {
                return Ok(None);
            }
            let number = profile.writes.count + profile.reads.attacked;
            let kind = if is_write { "write failures" } else { "read failures" };
            let is_refused = matches!(
                attack,
                Some(RequestAttack::ServiceUnavailable | RequestAttack::ResourceLocked)
            );
            let failures = 1 + i64::from(draw(profile.seed, kind, number) % 2 == 1);
            let request = ObservedRequest {
                number,
                request_hash: asked.request_hash,
                fingerprint: asked.fingerprint,
                method: asked.method.to_owned(),
                route: asked.route.to_owned(),
                attack,
                failures_left: if is_refused { failures } else { 0 },
                attempts: Vec::new(),
            };
            rows::request_insert(tx, scope, key_id, &request)?;
            request
        }
    };
    let is_same = request.fingerprint == asked.fingerprint;
    let is_first = request.attempts.is_empty();
    let fate = match request.attack {
        Some(RequestAttack::ServiceUnavailable) if request.failures_left > 0 => Fate::Unavailable,
        Some(RequestAttack::ResourceLocked) if request.failures_left > 0 => Fate::Locked,
        Some(RequestAttack::AnswerDropped) if is_first => Fate::Dropped,
        Some(RequestAttack::AnswerDelayed) if is_first => Fate::Delayed,
        _ => Fate::Answered,
    };
    let fate = if is_attacking && is_same { fate } else { Fate::Answered };
    let (answered_milliseconds, http_status) = match fate {
        Fate::Unavailable => (Some(at), 503),
        Fate::Locked => (Some(at), 409),
        // The time of the late answer is recorded at once, so that the report shows whether the
        // next attempt waited for it.
        Fate::Delayed => (Some(at + profile.delay_milliseconds), 0),
        Fate::Answered | Fate::Dropped => (None, 0),
    };
    if matches!(fate, Fate::Unavailable | Fate::Locked) {
        request.failures_left -= 1;
    }
    let request_id = asked.request_id.clone();
    request.attempts.push(RequestAttempt {
        request_id,
        at_milliseconds: at,
        fate,
        answered_milliseconds,
        http_status,
        is_same,
    });
    rows::request_update(tx, scope, key_id, &request)?;
    Ok(Some(AttemptVerdict {
        number: request.number,
        place: request.attempts.len() - 1,
        fate,
        delay_milliseconds: profile.delay_milliseconds,
    }))
}

/// Records how an attempt was answered, or would have been.
pub fn end(
    tx: &mut dyn Tx,
    now: &Now,
    scope: Scope,
    key_id: KeyId,
    verdict: AttemptVerdict,
    http_status: u16,
) -> Result<(), StoreError> {
    rows::lock_profile(tx, scope, key_id)?;
    if super::find_open(tx, now.instant_milliseconds(), scope, key_id)?.is_none() {
        return Ok(());
    }
    let Some(mut request) = rows::request_numbered(tx, scope, key_id, verdict.number)? else {
        return Ok(());
    };
    let Some(attempt) = request.attempts.get_mut(verdict.place) else { return Ok(()) };
    attempt.http_status = http_status;
    if attempt.fate != Fate::Delayed {
        attempt.answered_milliseconds = Some(now.instant_milliseconds());
    }
    rows::request_update(tx, scope, key_id, &request)
}
