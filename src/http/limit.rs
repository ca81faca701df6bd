//! Rate limits: one token bucket for each key and kind of request, with twice the rate as burst.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::kernel::id::kind;
use crate::kernel::{Code, Fault, Id, Refusal};

/// Requests a second; 0 is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    pub reads: u32,
    pub writes: u32,
}

/// Keys that are remembered; a full table is emptied of buckets that have filled up again.
const BUCKETS_MAX: usize = 100_000;

/// A bucket, in thousandths of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    tokens_milli: i64,
    filled_at_milliseconds: i64,
}

/// What a bucket says of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    pub is_allowed: bool,
    pub remaining: i64,
    /// Seconds until the next request is allowed, or until the bucket is full again.
    pub wait_seconds: i64,
}

impl Bucket {
    pub const fn full(rate: u32, now_milliseconds: i64) -> Bucket {
        Bucket { tokens_milli: rate as i64 * 2 * 1000, filled_at_milliseconds: now_milliseconds }
    }
    /// Fills up by the time that passed, and takes one token if there is one.
    pub fn take(&mut self, rate: u32, now_milliseconds: i64) -> Allowance {
        let rate = i64::from(rate);
        let burst_milli = rate * 2 * 1000;
        let passed = (now_milliseconds - self.filled_at_milliseconds).clamp(0, 10_000);
        self.tokens_milli = (self.tokens_milli + passed * rate).min(burst_milli);
        self.filled_at_milliseconds = now_milliseconds;
        let is_allowed = self.tokens_milli >= 1000;
        if is_allowed {
            self.tokens_milli -= 1000;
        }
        let lacking_milli = if is_allowed { burst_milli - self.tokens_milli } else { 1000 - self.tokens_milli };
        let wait_seconds = (lacking_milli + rate * 1000 - 1) / (rate * 1000);
        Allowance { is_allowed, remaining: self.tokens_milli / 1000, wait_seconds }
    }
}

/// All buckets of this node.
pub struct Limiter {
    rates: Rates,
    buckets: Mutex<HashMap<(Id<kind::ApiKey>, bool), Bucket>>,
}

/// What the headers of an answer say: `RateLimit-Policy`, `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10).
pub struct Headers {
    pub policy: String,
    pub limit: String,
}

impl Limiter {
    pub fn new(rates: Rates) -> Limiter {
        Limiter { rates, buckets: Mutex::default() }
    }

    /// Judges one request; `None` where there is no limit.
    pub fn judge(&self, key: Id<kind::ApiKey>, is_write: bool, now_milliseconds: i64) -> (Option<Headers>, Result<(), Refusal>) {
        let rate = if is_write { self.rates.writes } else { self.rates.reads };
        if rate == 0 {
            return (None, Ok(()));
        }
        let allowance = {
            let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
            if buckets.len() >= BUCKETS_MAX {
                buckets.retain(|_, bucket| now_milliseconds - bucket.filled_at_milliseconds < 2_000);
            }
            buckets.entry((key, is_write)).or_insert_with(|| Bucket::full(rate, now_milliseconds)).take(rate, now_milliseconds)
        };
        let name = if is_write { "writes" } else { "reads" };
        let headers = Headers {
            policy: format!("\"{name}\";q={};w=2", rate * 2),
            limit: format!("\"{name}\";r={};t={}", allowance.remaining, allowance.wait_seconds),
        };
        if allowance.is_allowed {
            return (Some(headers), Ok(()));
        }
        let message = format!(
            "More than {rate} {name} a second with this key. Retry after {} s with the same idempotency key.",
            allowance.wait_seconds
        );
        let fault = Fault::new(Code::RateLimitExceeded, message)
            .with("policy", name)
            .with("retry_after_seconds", allowance.wait_seconds.to_string());
        let mut refusal = Refusal::one(fault);
        refusal.retry_after_seconds = Some(allowance.wait_seconds.unsigned_abs());
        (Some(headers), Err(refusal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_allows_a_burst_of_twice_the_rate_and_then_the_rate() {
        let mut bucket = Bucket::full(10, 0);
        let allowed = (0..30).filter(|_| bucket.take(10, 0).is_allowed).count();
        assert_eq!(allowed, 20);
        assert_eq!(bucket.take(10, 0), Allowance { is_allowed: false, remaining: 0, wait_seconds: 1 });
        let allowed = (0..1000).filter(|step| bucket.take(10, step * 10).is_allowed).count();
        assert!((99..=100).contains(&allowed), "{allowed} in 10 s at 10 a second");
        // A clock that steps back neither fills nor empties the bucket.
        assert!(!Bucket { tokens_milli: 0, filled_at_milliseconds: 5_000 }.take(10, 0).is_allowed);
    }
}
