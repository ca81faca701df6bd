//! Asking the outside world for one request, before its transaction opens: no transaction makes a
//! network call. What takes long without a network, as screening does, is worked out here too.
//!
//! A preflight step runs only for a request that permission and form let through, and whose answer
//! is not stored already. The handler gets what it learnt as a result, and judges
//! in the usual order, as if it had always known it. Where nothing is learnt in time the request is
//! answered 503, which is not stored, so that the same key works again.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use super::body::Node;
use crate::app_state::AppState;
use crate::chains::inspect::SeenTransaction;
use crate::kernel::{OperationError, Refusal};
use crate::keys::Caller;
use crate::store::Cost;
use crate::store::idempotency::{self, Claim};

/// How long a preflight step may take, its wait for its turn included.
pub const PREFLIGHT_SECONDS_MAX: u64 = 5;
/// Preflight steps that run at once. Each keeps its place for `PREFLIGHT_PLACE_SECONDS`, so that
/// callers cannot use up what the nodes grant to the follower.
pub const PREFLIGHTS_COUNT_MAX: usize = 4;
/// How long a step keeps its place at least.
const PREFLIGHT_PLACE_SECONDS: u64 = 1;

/// What was learnt.
#[derive(Clone, Debug)]
pub enum PreflightResult {
    /// What a chain tells of one transaction; `None` where it knows none.
    Transaction(Option<SeenTransaction>),
    /// What a range holds: how much of it a request is about, and the first identifier that came
    /// too late to be counted. Or why the request is refused.
    Range(Result<(u64, u128), Refusal>),
}

/// Who asks, and about what.
pub struct Asking {
    pub app: Arc<AppState>,
    pub permits: Arc<Permits>,
    pub caller: Arc<Caller>,
    pub ids: Vec<String>,
}

/// A step under way. `Ok(None)`: there is nothing to hand over, because nothing was asked or the
/// result is kept elsewhere, such as in the memory of the sanctions lists.
pub type PreflightFuture = BoxFuture<'static, Result<Option<PreflightResult>, OperationError>>;
/// Starts a step with a body that was parsed; `None` where there is nothing to ask, or it does not
/// have the form, which the handler refuses.
pub type Preflight = Box<dyn Fn(Asking, &Node) -> Option<PreflightFuture> + Send + Sync>;

/// Places for preflight steps.
pub struct Permits(Arc<Semaphore>);

impl Default for Permits {
    fn default() -> Permits {
        Permits(Arc::new(Semaphore::new(PREFLIGHTS_COUNT_MAX)))
    }
}

impl Permits {
    /// Runs `ask` in a place of its own, which stays taken for a while after it.
    pub async fn take<T>(&self, ask: impl Future<Output = T>) -> Option<T> {
        // Free when both have let go of it: the step, and the time.
        let place = Arc::new(self.0.clone().acquire_owned().await.ok()?);
        let kept = place.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(PREFLIGHT_PLACE_SECONDS)).await;
            drop(kept);
        });
        let outcome = ask.await;
        drop(place);
        Some(outcome)
    }
}

/// Runs a step, unless the request's answer is stored already.
pub async fn run(
    step: &Preflight,
    asking: Asking,
    body: &Node,
    claim: &Claim,
) -> Result<Option<PreflightResult>, OperationError> {
    let app = asking.app.clone();
    let Some(started) = step(asking, body) else { return Ok(None) };
    let answers_after = idempotency::replayed_after(&app.store.clock);
    let claim = claim.clone();
    if app
        .store
        .read(Cost::Point, move |tx| Ok(idempotency::is_answered(tx, answers_after, &claim)?))
        .await?
    {
        return Ok(None);
    }
    match tokio::time::timeout(Duration::from_secs(PREFLIGHT_SECONDS_MAX), started).await {
        Ok(result) => result,
        Err(_) => {
            tracing::warn!(
                seconds = PREFLIGHT_SECONDS_MAX,
                "a preflight step did not end in time; answered 503"
            );
            Err(Refusal::unavailable().into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn steps_keep_their_places_for_a_while() {
        let places = Permits::default();
        for _ in 0..PREFLIGHTS_COUNT_MAX {
            assert_eq!(places.take(async { 1 }).await, Some(1));
        }
        assert_eq!(places.0.available_permits(), 0, "a place stays taken after its step");
        assert_eq!(places.take(async { 2 }).await, Some(2), "and becomes free by itself");
    }
}
