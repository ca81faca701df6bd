//! Rate limits: each API key has one token bucket for reads and one for writes. A bucket holds the
//! tokens of two seconds. An expensive request takes several tokens.
//!
//! On PostgreSQL, where several nodes serve the same keys, the bucket is a row. Each node takes a
//! handful of the bucket's tokens at a time, so that few requests need the row. The tokens that lie
//! unused on the nodes are a small part of the burst, unless the burst is small and requests are
//! expensive.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

pub mod rows;

use crate::kernel::id::kind;
use crate::kernel::{Id, OperationError, Refusal};
use crate::store::Store;

/// Requests a second that one key may send; 0 is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRates {
    pub reads: u32,
    pub writes: u32,
}

/// Tokens that an expensive request (a statement, the replay of a range) takes. If the burst is
/// smaller, it takes the whole burst.
pub const EXPENSIVE_TOKENS: u32 = 25;

/// A node that remembers fewer buckets than this forgets none. With more, it now and then forgets
/// those that no request used for [`FULL_MILLISECONDS`]. All buckets in use stay, however many
/// there are.
const FORGETTING_COUNT_MIN: usize = 100_000;

/// How much later than a request's instant a bucket's `filled_at_milliseconds` may be. It can be
/// later because another request filled the bucket while this request's transaction waited. If it
/// is later by more than this, the clock that filled the bucket was wrong.
const AHEAD_MILLISECONDS_MAX: i64 = 10_000;

/// A full bucket holds the tokens of this many seconds: the burst.
const BURST_SECONDS: i64 = 2;
/// How long an empty bucket takes to be full again.
const FULL_MILLISECONDS: i64 = BURST_SECONDS * 1_000;
/// An empty row gets its next token within this time, because the lowest rate is one a second.
const DRY_MILLISECONDS_MAX: i64 = 1_000;

/// The most tokens that a bucket holds.
const fn burst(rate: u32) -> i64 {
    rate as i64 * BURST_SECONDS
}

/// A bucket, in thousandths of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub tokens_milli: i64,
    /// The tokens of the time until this moment, by the store's clock, have been added.
    pub filled_at_milliseconds: i64,
}

/// A bucket's answer to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    pub is_allowed: bool,
    /// Tokens that are left.
    pub remaining: i64,
    /// Seconds until the bucket is full again; for a request that is not allowed, until there are
    /// enough tokens for it.
    pub wait_seconds: i64,
}

impl Bucket {
    pub const fn full(rate: u32, now_milliseconds: i64) -> Bucket {
        Bucket { tokens_milli: burst(rate) * 1000, filled_at_milliseconds: now_milliseconds }
    }
    /// Adds the tokens of the time that passed. A clock that steps back neither fills nor empties
    /// the bucket, and one that was far ahead does not block it.
    fn fill(&mut self, rate: u32, now_milliseconds: i64) {
        let passed = (now_milliseconds - self.filled_at_milliseconds).clamp(0, FULL_MILLISECONDS);
        self.tokens_milli = (self.tokens_milli + passed * i64::from(rate)).min(burst(rate) * 1000);
        let is_far_ahead = self.filled_at_milliseconds - now_milliseconds > AHEAD_MILLISECONDS_MAX;
        self.filled_at_milliseconds = if is_far_ahead {
            now_milliseconds
        } else {
            self.filled_at_milliseconds.max(now_milliseconds)
        };
    }

    /// Adds the tokens of the time that passed, and takes as many whole tokens as there are,
    /// `count` at most. Answers how many it took, and the milliseconds until the next token if it
    /// took none, else 0.
    pub fn take_up_to(&mut self, rate: u32, now_milliseconds: i64, count: i64) -> (i64, i64) {
        self.fill(rate, now_milliseconds);
        let taken = (self.tokens_milli / 1000).min(count);
        self.tokens_milli -= taken * 1000;
        let wait_milliseconds = if taken > 0 {
            0
        } else {
            (1000 - self.tokens_milli + i64::from(rate) - 1) / i64::from(rate)
        };
        (taken, wait_milliseconds)
    }

    /// Adds the tokens of the time that passed, and takes `tokens` if the bucket has so many.
    pub fn take(&mut self, rate: u32, now_milliseconds: i64, tokens: i64) -> Allowance {
        self.fill(rate, now_milliseconds);
        let (burst_milli, wanted_milli) = (burst(rate) * 1000, tokens * 1000);
        let rate = i64::from(rate);
        let is_allowed = self.tokens_milli >= wanted_milli;
        if is_allowed {
            self.tokens_milli -= wanted_milli;
        }
        let full_milli = if is_allowed { burst_milli } else { wanted_milli };
        let lacking_milli = full_milli - self.tokens_milli;
        let wait_seconds = (lacking_milli + rate * 1000 - 1) / (rate * 1000);
        Allowance { is_allowed, remaining: self.tokens_milli / 1000, wait_seconds }
    }
}

/// A node that needs tokens takes the burst divided by this number, or what the request needs if
/// that is more. Without expensive requests, four nodes, for example, leave at most about
/// a twelfth of the burst unused. A node that got too few tokens for an expensive request keeps
/// them for the key's next requests. If the burst is small, these tokens may be a large part of it.
const HANDFUL_DIVISOR: i64 = 50;

/// The tokens that this node has taken from a bucket that nodes share.
#[derive(Default)]
struct Handful {
    tokens: i64,
    /// The tokens that were left in the bucket's row after this node last took some.
    rest: i64,
    /// The bucket's row has no token until this time by the store's clock.
    dry_until_milliseconds: i64,
    /// When a request last wanted tokens, by the store's clock.
    used_at_milliseconds: i64,
}

/// The API key, and whether the bucket is that of its writes.
type BucketKey = (Id<kind::ApiKey>, bool);

/// What a node remembers of each bucket.
struct RememberedBuckets<T> {
    by_key: HashMap<BucketKey, T>,
    /// How many buckets there have to be before the unused ones are looked for.
    forgetting_count: usize,
}

impl<T> Default for RememberedBuckets<T> {
    fn default() -> RememberedBuckets<T> {
        RememberedBuckets { by_key: HashMap::new(), forgetting_count: FORGETTING_COUNT_MIN }
    }
}

impl<T> RememberedBuckets<T> {
    /// If there are many buckets, forgets those that are not used. It looks at them again only when
    /// there are twice as many as it kept. So a new bucket costs, on average, a look at one or two.
    /// If it looked each time, every request would look at all buckets.
    fn forget_unused(&mut self, is_used: impl Fn(&T) -> bool) {
        if self.by_key.len() >= self.forgetting_count {
            self.by_key.retain(|_, bucket| is_used(bucket));
            self.forgetting_count = FORGETTING_COUNT_MIN.max(self.by_key.len() * 2);
        }
    }
}

/// All buckets of this node.
pub struct Limiter {
    rates: RequestRates,
    /// On the embedded store.
    buckets: Mutex<RememberedBuckets<Bucket>>,
    /// On a shared store, whose rows are the buckets.
    handfuls: Mutex<RememberedBuckets<Arc<tokio::sync::Mutex<Handful>>>>,
}

/// The values of an answer's headers `RateLimit-Policy` and `RateLimit`
/// (draft-ietf-httpapi-ratelimit-headers-10).
pub struct Headers {
    pub policy: String,
    pub limit: String,
}

/// The headers, and whether the request may pass.
pub type RateDecision = (Option<Headers>, Result<(), Refusal>);

impl Limiter {
    pub fn new(rates: RequestRates) -> Limiter {
        Limiter { rates, buckets: Mutex::default(), handfuls: Mutex::default() }
    }

    /// Judges one request. The headers are `None` if there is no limit. The outer `Err` means that
    /// the store does not answer.
    pub async fn judge(
        &self,
        store: &Store,
        key: Id<kind::ApiKey>,
        is_write: bool,
    ) -> Result<RateDecision, OperationError> {
        self.take(store, key, is_write, 0, 1).await
    }

    /// Judges an expensive request that [`Limiter::judge`] has allowed: takes the rest of its
    /// tokens.
    pub async fn judge_expensive(
        &self,
        store: &Store,
        key: Id<kind::ApiKey>,
        is_write: bool,
    ) -> Result<RateDecision, OperationError> {
        self.take(store, key, is_write, 1, EXPENSIVE_TOKENS - 1).await
    }

    /// Takes `tokens` for a request that has taken `taken` tokens already.
    async fn take(
        &self,
        store: &Store,
        key: Id<kind::ApiKey>,
        is_write: bool,
        taken: i64,
        tokens: u32,
    ) -> Result<RateDecision, OperationError> {
        let rate = if is_write { self.rates.writes } else { self.rates.reads };
        if rate == 0 {
            return Ok((None, Ok(())));
        }
        // An expensive request, whose first token is taken already, takes at most the rest of the
        // burst. For one token this changes nothing: the smallest burst is 2.
        let tokens = i64::from(tokens).min(burst(rate) - 1);
        let now_milliseconds = store.clock.milliseconds();
        let mut allowance = if store.is_shared() {
            self.take_shared(store, (key, is_write), rate, now_milliseconds, tokens).await?
        } else {
            self.take_own((key, is_write), rate, now_milliseconds, tokens)
        };
        if !allowance.is_allowed && taken > 0 {
            self.give_back((key, is_write), rate, store.is_shared(), taken).await;
            allowance.remaining += taken;
        }
        let name = if is_write { "writes" } else { "reads" };
        let headers = Headers {
            policy: format!("\"{name}\";q={};w={BURST_SECONDS}", burst(rate)),
            limit: format!("\"{name}\";r={};t={}", allowance.remaining, allowance.wait_seconds),
        };
        if allowance.is_allowed {
            return Ok((Some(headers), Ok(())));
        }
        let beginning = if taken > 0 {
            format!("This request counts as {}, which makes more", taken + tokens)
        } else {
            "More".to_owned()
        };
        let message = format!(
            "{beginning} than {rate} {name} a second with this API key. Retry after {} s. Send a \
             POST again with the same Idempotency-Key.",
            allowance.wait_seconds
        );
        let wait_seconds = allowance.wait_seconds.unsigned_abs();
        Ok((Some(headers), Err(Refusal::rate_limited(message, name, wait_seconds))))
    }

    /// Gives back what was taken for an expensive request that is refused after all. A refused
    /// request costs nothing: when the caller retries after the time that the refusal says, it
    /// needs these tokens again.
    async fn give_back(&self, key: BucketKey, rate: u32, is_shared: bool, tokens: i64) {
        if is_shared {
            let handful = {
                let handfuls = self.handfuls.lock().unwrap_or_else(PoisonError::into_inner);
                handfuls.by_key.get(&key).cloned()
            };
            if let Some(handful) = handful {
                let mut handful = handful.lock().await;
                handful.tokens = (handful.tokens + tokens).min(burst(rate));
            }
            return;
        }
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = buckets.by_key.get_mut(&key) {
            bucket.tokens_milli = (bucket.tokens_milli + tokens * 1000).min(burst(rate) * 1000);
        }
    }

    fn take_own(&self, key: BucketKey, rate: u32, now_milliseconds: i64, tokens: i64) -> Allowance {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.forget_unused(|bucket| {
            now_milliseconds - bucket.filled_at_milliseconds < FULL_MILLISECONDS
        });
        buckets.by_key.entry(key).or_insert_with(|| Bucket::full(rate, now_milliseconds)).take(
            rate,
            now_milliseconds,
            tokens,
        )
    }

    async fn take_shared(
        &self,
        store: &Store,
        key: BucketKey,
        rate: u32,
        now_milliseconds: i64,
        tokens: i64,
    ) -> Result<Allowance, OperationError> {
        let handful = {
            let mut handfuls = self.handfuls.lock().unwrap_or_else(PoisonError::into_inner);
            let is_at_rest = |handful: &Handful| {
                now_milliseconds - handful.used_at_milliseconds >= FULL_MILLISECONDS
            };
            // A handful that is locked is in use.
            handfuls.forget_unused(|handful| {
                !handful.try_lock().is_ok_and(|handful| is_at_rest(&handful))
            });
            handfuls.by_key.entry(key).or_default().clone()
        };
        // On this node only one request of a bucket at a time takes tokens from the row. The others
        // wait for it and use what it leaves.
        let mut handful = handful.lock().await;
        handful.used_at_milliseconds = now_milliseconds;
        // If `dry_until_milliseconds` is further ahead than `DRY_MILLISECONDS_MAX`, the clock was
        // set back since.
        let is_dry = (1..=DRY_MILLISECONDS_MAX)
            .contains(&(handful.dry_until_milliseconds - now_milliseconds));
        if handful.tokens < tokens && !is_dry {
            let wanted = (burst(rate) / HANDFUL_DIVISOR).max(tokens - handful.tokens);
            let (taken, rest, wait) = store
                .write(move |tx, now| {
                    Ok(rows::take(tx, now.instant_milliseconds(), key, rate, wanted)?)
                })
                .await?;
            handful.tokens += taken;
            (handful.rest, handful.dry_until_milliseconds) = (rest, now_milliseconds + wait);
        }
        let burst = burst(rate);
        if handful.tokens < tokens {
            // The next token comes when the row is no longer dry, and further ones at the rate.
            let further_milliseconds = (tokens - handful.tokens - 1) * 1000 / i64::from(rate);
            let wait_milliseconds =
                (handful.dry_until_milliseconds - now_milliseconds).max(1) + further_milliseconds;
            return Ok(Allowance {
                is_allowed: false,
                // The bucket's row has no whole token left: this node took what it had.
                remaining: handful.tokens.clamp(0, burst),
                wait_seconds: (wait_milliseconds + 999) / 1000,
            });
        }
        handful.tokens -= tokens;
        let remaining = (handful.tokens + handful.rest).clamp(0, burst);
        Ok(Allowance {
            is_allowed: true,
            remaining,
            wait_seconds: (burst - remaining + i64::from(rate) - 1) / i64::from(rate),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_allows_a_burst_of_twice_the_rate_and_then_the_rate() {
        let mut bucket = Bucket::full(10, 0);
        let allowed = (0..30).filter(|_| bucket.take(10, 0, 1).is_allowed).count();
        assert_eq!(allowed, 20);
        assert_eq!(
            bucket.take(10, 0, 1),
            Allowance { is_allowed: false, remaining: 0, wait_seconds: 1 }
        );
        let allowed = (0..1000).filter(|step| bucket.take(10, step * 10, 1).is_allowed).count();
        assert!((99..=100).contains(&allowed), "{allowed} in 10 s at 10 a second");
        // A clock that steps back neither fills nor empties the bucket.
        assert!(
            !Bucket { tokens_milli: 0, filled_at_milliseconds: 5_000 }.take(10, 0, 1).is_allowed
        );
    }

    #[test]
    fn an_expensive_request_takes_all_its_tokens_or_none() {
        let mut bucket = Bucket::full(10, 0);
        assert!(bucket.take(10, 0, 15).is_allowed);
        assert_eq!(
            bucket.take(10, 0, 15),
            Allowance { is_allowed: false, remaining: 5, wait_seconds: 1 }
        );
        assert!(bucket.take(10, 0, 5).is_allowed, "what is left is for others");
        assert_eq!(bucket.take(10, 0, 15).wait_seconds, 2);
        assert!(bucket.take(10, 1_500, 15).is_allowed);
    }

    #[test]
    fn buckets_that_are_all_used_are_not_looked_at_again_for_each_request() {
        let mut remembered = RememberedBuckets::<()>::default();
        let looks_count = std::cell::Cell::new(0);
        let looked_at = |is_used| {
            looks_count.set(looks_count.get() + 1);
            is_used
        };
        for number in 0..FORGETTING_COUNT_MIN as u128 * 2 {
            remembered.forget_unused(|_| looked_at(true));
            remembered.by_key.insert((Id::from_u128(number), false), ());
        }
        assert_eq!(looks_count.get(), FORGETTING_COUNT_MIN, "once");
        remembered.forget_unused(|_| looked_at(false));
        assert_eq!((remembered.by_key.len(), looks_count.get()), (0, 3 * FORGETTING_COUNT_MIN));
        remembered
            .by_key
            .extend((0..FORGETTING_COUNT_MIN as u128).map(|n| ((Id::from_u128(n), true), ())));
        remembered.forget_unused(|_| looked_at(false));
        assert_eq!(remembered.by_key.len(), 0, "the smallest count is enough again");
    }

    #[test]
    fn a_bucket_of_a_clock_that_was_far_ahead_fills_from_now_on() {
        let hour = 3_600_000;
        let mut bucket = Bucket { tokens_milli: 0, filled_at_milliseconds: hour };
        assert_eq!(bucket.take_up_to(10, 0, 5), (0, 100), "what was ahead fills nothing by itself");
        assert_eq!(bucket.take_up_to(10, 1_000, 20), (10, 0));
        // The instant of a transaction that waited is before what was written meanwhile. It does
        // not set the bucket's time back.
        let mut bucket = Bucket { tokens_milli: 0, filled_at_milliseconds: AHEAD_MILLISECONDS_MAX };
        assert_eq!(bucket.take_up_to(10, 0, 5), (0, 100));
        assert_eq!(bucket.filled_at_milliseconds, AHEAD_MILLISECONDS_MAX);
    }
}
