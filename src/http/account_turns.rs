//! Lets each account have, in each mode and in this process, one expensive request at a time, such
//! as a statement or a replay, with a pause after each. If an account asks for many, only its own
//! requests are delayed.

use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;

use super::scope_semaphores::ScopeSemaphores;
use crate::kernel::{Refusal, Scope};

/// How long a request waits at most for its turn.
pub const TURN_WAIT_SECONDS_MAX: u64 = 5;
/// The shortest and the longest pause after a turn. Without a shortest one, many requests that end
/// immediately, such as refused ones, would keep a processor busy.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// An account's turn. After it the account pauses for as long as the turn took, but at least for
/// [`PAUSE_MIN`] and at most for [`PAUSE_MAX`].
#[derive(Debug)]
pub struct Turn {
    permit: Option<OwnedSemaphorePermit>,
    begun: Instant,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let (permit, pause) =
            (self.permit.take(), self.begun.elapsed().clamp(PAUSE_MIN, PAUSE_MAX));
        // Without a runtime the service has stopped.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(pause).await;
                drop(permit);
            });
        }
    }
}

/// The turns of the accounts in this process.
#[derive(Default)]
pub struct AccountTurns(ScopeSemaphores);

impl AccountTurns {
    /// Waits until the account's earlier turn and the pause after it are over, for at most
    /// [`TURN_WAIT_SECONDS_MAX`]; then `Err` (429). Dropping the turn ends it.
    pub async fn take(&self, scope: Scope) -> Result<Turn, Refusal> {
        self.take_within(scope, Duration::from_secs(TURN_WAIT_SECONDS_MAX)).await
    }

    async fn take_within(&self, scope: Scope, wait_max: Duration) -> Result<Turn, Refusal> {
        match tokio::time::timeout(wait_max, self.0.of(scope).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Turn { permit: Some(permit), begun: Instant::now() }),
            _ => Err(Refusal::rate_limited(
                "An account can run one report or replay at a time, with a pause after each. Retry \
                 after the seconds in Retry-After; a POST with the same Idempotency-Key.",
                "reports",
                TURN_WAIT_SECONDS_MAX,
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Mode;

    #[tokio::test]
    async fn an_account_waits_for_itself_and_for_nobody_else() {
        let turns = AccountTurns::default();
        let (one, other) = (Scope::new(1, Mode::Live), Scope::new(2, Mode::Live));
        let held = turns.take(one).await.unwrap();
        let _theirs = turns.take(other).await.unwrap();
        let refused = turns.take_within(one, Duration::ZERO).await.unwrap_err();
        assert_eq!((refused.http_status(), refused.retry_after_seconds), (429, Some(5)));
        drop(held);
        let _again = turns.take(one).await.unwrap();
    }

    #[tokio::test]
    async fn an_account_pauses_after_the_shortest_turn_too() {
        let turns = AccountTurns::default();
        let one = Scope::new(1, Mode::Live);
        drop(turns.take(one).await.unwrap());
        assert!(turns.take_within(one, Duration::ZERO).await.is_err(), "it pauses");
        assert!(turns.take(one).await.is_ok());
    }

    #[tokio::test]
    async fn an_account_pauses_for_as_long_as_its_turn_took() {
        let turns = AccountTurns::default();
        let one = Scope::new(1, Mode::Live);
        let mut turn = turns.take(one).await.unwrap();
        turn.begun = Instant::now().checked_sub(2 * PAUSE_MAX).unwrap();
        drop(turn);
        assert!(turns.take_within(one, Duration::ZERO).await.is_err(), "it pauses");
        assert!(turns.take(one).await.is_ok());
    }
}
