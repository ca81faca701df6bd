//! Asks the outside world something for one request, before its transaction opens, because no
//! transaction makes a network call. Slow work without a network, such as screening, is done here
//! too.
//!
//! A preflight step runs only if the request's permission, query and form are right and its answer
//! is not stored already. The findings of a route's other checks of the body do not stop the step.
//! The handler gets the step's result, and judges in the usual order. If a step takes too long, the
//! request is answered 503. That answer is not stored, so the same idempotency key works again.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::body::Node;
use super::scope_semaphores::ScopeSemaphores;
use crate::app_state::AppState;
use crate::chains::inspect::SeenTransaction;
use crate::kernel::{OperationError, Refusal, Scope};
use crate::keys::Caller;
use crate::store::Cost;
use crate::store::idempotency::{self, Claim};

/// How long a preflight step may take, including its wait for a permit.
pub const PREFLIGHT_SECONDS_MAX: u64 = 5;
/// How many preflight steps of a process may ask a chain's nodes at once. Each account and mode may
/// run one of them, so that no caller keeps the others from asking. Each step keeps its permit for
/// at least `PERMIT_SECONDS_MIN`, so that callers cannot use up the request limit of the chain's
/// nodes: the worker that follows the chain needs some of it.
pub const PERMITS_COUNT_MAX: usize = 4;
const PERMIT_SECONDS_MIN: u64 = 1;

/// The result of a preflight step.
#[derive(Clone, Debug)]
pub enum PreflightResult {
    /// What a chain knows of one transaction; `None` if it does not know it.
    Transaction(Option<SeenTransaction>),
    /// For a replay of a range of events: how many deliveries it begins, and the identifier before
    /// which the range ends; or why the request is refused.
    Range(Result<(u64, u128), Refusal>),
}

/// What a preflight step works with: who asks, and the identifiers in the path.
pub struct Asking {
    pub app: Arc<AppState>,
    pub permits: Arc<Permits>,
    pub caller: Arc<Caller>,
    pub ids: Vec<String>,
}

/// The work of a step, which begins when it is awaited. `Ok(None)` if there is no result to hand
/// over: nothing was asked, or the result is kept elsewhere, as that of screening is.
pub type PreflightFuture = BoxFuture<'static, Result<Option<PreflightResult>, OperationError>>;
/// Prepares a step for a parsed body. `None` if there is nothing to ask, or if the body's form is
/// wrong, which the handler refuses.
pub type Preflight = Box<dyn Fn(Asking, &Node) -> Option<PreflightFuture> + Send + Sync>;

/// What preflight steps wait for, so that no account keeps the others waiting.
pub struct Permits {
    /// Of steps that ask a chain's nodes: [`PERMITS_COUNT_MAX`] in each process.
    all: Arc<Semaphore>,
    by_scope: ScopeSemaphores,
    screening: ScopeSemaphores,
}

impl Default for Permits {
    fn default() -> Permits {
        Permits {
            all: Arc::new(Semaphore::new(PERMITS_COUNT_MAX)),
            by_scope: ScopeSemaphores::default(),
            screening: ScopeSemaphores::default(),
        }
    }
}

impl Permits {
    /// Waits until no other request of the account and mode is being screened. `None` only if the
    /// semaphore is closed, which never happens.
    pub async fn screening_turn(&self, scope: Scope) -> Option<OwnedSemaphorePermit> {
        self.screening.of(scope).acquire_owned().await.ok()
    }

    /// Waits for the permit of the account and mode, then for one of the process's, and runs `ask`.
    /// Both stay taken for at least `PERMIT_SECONDS_MIN`. `None` only if a semaphore is closed,
    /// which never happens.
    pub async fn run<T>(&self, scope: Scope, ask: impl Future<Output = T>) -> Option<T> {
        let own = self.by_scope.of(scope).acquire_owned().await.ok()?;
        // The permits are free again once both the step and the minimum time are over.
        let permit = Arc::new((own, self.all.clone().acquire_owned().await.ok()?));
        let kept = permit.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(PERMIT_SECONDS_MIN)).await;
            drop(kept);
        });
        let outcome = ask.await;
        drop(permit);
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
    let Some(prepared) = step(asking, body) else { return Ok(None) };
    let answers_after = idempotency::replayed_after(&app.store.clock);
    let claim = claim.clone();
    if app
        .store
        .read(Cost::Point, move |tx| Ok(idempotency::is_answered(tx, answers_after, &claim)?))
        .await?
    {
        return Ok(None);
    }
    match tokio::time::timeout(Duration::from_secs(PREFLIGHT_SECONDS_MAX), prepared).await {
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
    use crate::kernel::Mode;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn steps_keep_their_permits_for_a_while() {
        let permits = Permits::default();
        let scope = |number| Scope::new(number, Mode::Live);
        for number in 1..=PERMITS_COUNT_MAX as i64 {
            assert_eq!(permits.run(scope(number), async { 1 }).await, Some(1));
        }
        assert_eq!(permits.all.available_permits(), 0, "a permit stays taken after its step");
        assert_eq!(permits.run(scope(9), async { 2 }).await, Some(2), "and becomes free by itself");
    }

    #[tokio::test]
    async fn one_account_keeps_no_other_from_asking() {
        let permits = Arc::new(Permits::default());
        let (one, other) = (Scope::new(1, Mode::Live), Scope::new(2, Mode::Live));
        // More questions of one account than there are permits; none of them ends.
        for _ in 0..2 * PERMITS_COUNT_MAX {
            let permits = permits.clone();
            tokio::spawn(async move { permits.run(one, std::future::pending::<()>()).await });
        }
        for _ in 0..4 * PERMITS_COUNT_MAX {
            tokio::task::yield_now().await;
        }
        assert_eq!(permits.all.available_permits(), PERMITS_COUNT_MAX - 1);
        assert_eq!(permits.run(other, async { 1 }).await, Some(1));
    }

    #[tokio::test]
    async fn one_request_of_an_account_is_screened_at_a_time() {
        let permits = Permits::default();
        let (one, other) = (Scope::new(1, Mode::Live), Scope::new(2, Mode::Live));
        let turn = permits.screening_turn(one).await;
        assert!(
            permits.screening_turn(one).now_or_never().is_none(),
            "its earlier request comes first"
        );
        assert!(permits.screening_turn(other).now_or_never().is_some(), "others do not wait");
        drop(turn);
        assert!(permits.screening_turn(one).now_or_never().is_some());
    }
}
