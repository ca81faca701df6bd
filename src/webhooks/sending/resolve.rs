//! Resolves names through the system. Each name is looked up only once at a time, and names that
//! fail never take all the room.
//!
//! `getaddrinfo` cannot be interrupted. A look-up holds its turn, a thread of the runtime's
//! blocking pool, until the system gives up; with a silent name server that is long after the
//! attempt gave up. So names that failed or did not answer lately share half of the turns, and
//! names that resolved lately have further turns that no other name can hold.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::net::lookup_host;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout};

use super::pool::lock;

/// Good names whose addresses are remembered, and the same number of bad names.
const NAMES_MAX: usize = 1024;
/// Names being resolved at the same time.
const RESOLVING_MAX: usize = 64;
/// How many of these may be names that are known to be bad.
const RESOLVING_BAD_MAX: usize = RESOLVING_MAX / 2;
/// Further turns, only for names that resolved lately.
const RESOLVING_PROVEN_MAX: usize = 16;
/// How long a name that resolved may use those turns.
const PROVEN_DURATION: Duration = Duration::from_secs(24 * 3_600);
/// How long a name is known to be bad after it failed or did not answer in time.
const BAD_DURATION: Duration = Duration::from_secs(600);
/// How long a name that failed is not looked up again: shorter than the first pause between
/// attempts.
const FAILED_DURATION: Duration = Duration::from_secs(2);

/// Every address of a name; `None` if it has none or the look-up failed.
pub(super) type ResolvedAddresses = Option<Arc<[IpAddr]>>;
type ResolveName = Box<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// Resolves names, and remembers the results for a short while.
pub(super) struct Resolver {
    state: Arc<ResolverState>,
}

struct ResolverState {
    look_up: ResolveName,
    /// How long addresses are reused.
    good_duration: Duration,
    /// After how long without an answer a name is bad.
    silence_duration: Duration,
    names: Mutex<KnownNames>,
    turns: Arc<Semaphore>,
    turns_bad: Arc<Semaphore>,
    turns_proven: Arc<Semaphore>,
}

/// What is known of a name before it is looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NameHistory {
    /// It resolved lately, and has not failed since.
    Proven,
    Unknown,
    /// It failed or did not answer lately.
    Bad,
}

#[derive(Default)]
struct KnownNames {
    /// Addresses, with the time at which they were resolved.
    good: HashMap<String, (Arc<[IpAddr]>, Instant)>,
    /// When each was last resolved.
    proven: HashMap<String, Instant>,
    /// When each was last found to be bad.
    bad: HashMap<String, Instant>,
    /// Names that are being looked up: those that have a turn, and those for which a running
    /// attempt waits for a turn.
    asked: HashMap<String, watch::Receiver<Option<ResolvedAddresses>>>,
}

/// What an attempt does to get an answer.
enum ResolveStep {
    Take(ResolvedAddresses),
    Await(watch::Receiver<Option<ResolvedAddresses>>),
    Ask { asking: NameQuery, history: NameHistory },
}

/// A look-up under way. Once it is dropped, the name can be looked up again.
struct NameQuery {
    state: Arc<ResolverState>,
    name: String,
    tell: watch::Sender<Option<ResolvedAddresses>>,
}

impl Resolver {
    /// A resolver that reuses addresses for `good_duration`, and takes a name for bad that does not
    /// answer within `silence_duration`.
    pub(super) fn new(good_duration: Duration, silence_duration: Duration) -> Resolver {
        Resolver::with_look_up(
            Box::new(|name| ask_system(name).boxed()),
            good_duration,
            silence_duration,
        )
    }

    fn with_look_up(
        look_up: ResolveName,
        good_duration: Duration,
        silence_duration: Duration,
    ) -> Resolver {
        let turns = Arc::new(Semaphore::new(RESOLVING_MAX));
        let turns_bad = Arc::new(Semaphore::new(RESOLVING_BAD_MAX));
        let turns_proven = Arc::new(Semaphore::new(RESOLVING_PROVEN_MAX));
        Resolver {
            state: Arc::new(ResolverState {
                look_up,
                good_duration,
                silence_duration,
                names: Mutex::default(),
                turns,
                turns_bad,
                turns_proven,
            }),
        }
    }

    /// Every address of the name in the system's order of preference, IPv4-mapped ones as IPv4;
    /// never an empty list. Takes as long as the system does: the caller gives up by dropping the
    /// future.
    pub(super) async fn resolve(&self, name: &str) -> ResolvedAddresses {
        loop {
            let mut told = match self.step(name, Instant::now()) {
                ResolveStep::Take(answer) => return answer,
                ResolveStep::Await(told) => told,
                ResolveStep::Ask { asking, history } => {
                    let told = asking.tell.subscribe();
                    let (turn, turn_bad) = self.state.take_turn(history).await?;
                    // A task of its own, so that the turn lasts as long as the thread is in use,
                    // even if the attempt stops waiting.
                    tokio::spawn(asking.ask(turn, turn_bad));
                    told
                }
            };
            let answer =
                told.wait_for(Option::is_some).await.map(|answer| answer.clone().flatten());
            // If the attempt that asked gave up before its turn, this one asks in its place.
            if let Ok(answer) = answer {
                return answer;
            }
        }
    }

    fn step(&self, name: &str, now: Instant) -> ResolveStep {
        let mut names = lock(&self.state.names);
        if let Some((addresses, resolved_at)) = names.good.get(name)
            && is_within(*resolved_at, now, self.state.good_duration)
        {
            return ResolveStep::Take(Some(addresses.clone()));
        }
        if let Some(told) = names.asked.get(name) {
            return ResolveStep::Await(told.clone());
        }
        let found_bad_at = names.bad.get(name).copied();
        let was_bad_within =
            |duration| found_bad_at.is_some_and(|found_at| is_within(found_at, now, duration));
        if was_bad_within(FAILED_DURATION) {
            return ResolveStep::Take(None);
        }
        let (tell, told) = watch::channel(None);
        names.asked.insert(name.to_owned(), told);
        let asking = NameQuery { state: self.state.clone(), name: name.to_owned(), tell };
        let was_proven = names
            .proven
            .get(name)
            .is_some_and(|proven_at| is_within(*proven_at, now, PROVEN_DURATION));
        let history = match (was_bad_within(BAD_DURATION), was_proven) {
            (true, _) => NameHistory::Bad,
            (false, true) => NameHistory::Proven,
            (false, false) => NameHistory::Unknown,
        };
        ResolveStep::Ask { asking, history }
    }
}

impl NameQuery {
    async fn ask(self, _turn: OwnedSemaphorePermit, turn_bad: Option<OwnedSemaphorePermit>) {
        let state = &self.state;
        let mut look_up = (state.look_up)(self.name.clone());
        let looked_up = match timeout(state.silence_duration, &mut look_up).await {
            Ok(looked_up) => looked_up,
            Err(_) => {
                state.learn(&self.name, None, Instant::now());
                if turn_bad.is_some() {
                    look_up.await
                } else {
                    // From now on it counts as bad, as soon as there is room among the bad names.
                    tokio::select! {
                        looked_up = &mut look_up => looked_up,
                        _turn_bad = state.turns_bad.clone().acquire_owned() => look_up.await,
                    }
                }
            }
        };
        let answer: ResolvedAddresses =
            looked_up.ok().filter(|addresses| !addresses.is_empty()).map(Arc::from);
        state.learn(&self.name, answer.as_ref(), Instant::now());
        self.tell.send_replace(Some(answer));
    }
}

impl Drop for NameQuery {
    fn drop(&mut self) {
        lock(&self.state.names).asked.remove(&self.name);
    }
}

impl ResolverState {
    /// Waits for a name's turn; a name that is known to be bad also needs a second permit.
    async fn take_turn(
        &self,
        history: NameHistory,
    ) -> Option<(OwnedSemaphorePermit, Option<OwnedSemaphorePermit>)> {
        let turn_bad = match history {
            NameHistory::Bad => Some(self.turns_bad.clone().acquire_owned().await.ok()?),
            NameHistory::Proven | NameHistory::Unknown => None,
        };
        if history == NameHistory::Proven {
            let turn = tokio::select! {
                biased;
                turn = self.turns.clone().acquire_owned() => turn,
                turn = self.turns_proven.clone().acquire_owned() => turn,
            };
            return Some((turn.ok()?, None));
        }
        Some((self.turns.clone().acquire_owned().await.ok()?, turn_bad))
    }

    /// Remembers the result of a look-up. If there is no room even after old entries were dropped,
    /// nothing is remembered.
    fn learn(&self, name: &str, addresses: Option<&Arc<[IpAddr]>>, now: Instant) {
        let mut names = lock(&self.names);
        let KnownNames { good, proven, bad, .. } = &mut *names;
        match addresses {
            Some(addresses) => {
                bad.remove(name);
                put(proven, name, now, |proven_at| is_within(*proven_at, now, PROVEN_DURATION));
                put(good, name, (addresses.clone(), now), |(_, resolved_at)| {
                    is_within(*resolved_at, now, self.good_duration)
                });
            }
            None => put(bad, name, now, |found_at| is_within(*found_at, now, BAD_DURATION)),
        }
    }
}

fn put<T>(names: &mut HashMap<String, T>, name: &str, known: T, is_fresh: impl Fn(&T) -> bool) {
    if names.len() >= NAMES_MAX {
        names.retain(|_, known| is_fresh(known));
    }
    if names.len() < NAMES_MAX || names.contains_key(name) {
        names.insert(name.to_owned(), known);
    }
}

fn is_within(since: Instant, now: Instant, duration: Duration) -> bool {
    now.saturating_duration_since(since) < duration
}

async fn ask_system(name: String) -> io::Result<Vec<IpAddr>> {
    let mut addresses = Vec::new();
    // The port does not matter for the look-up; the connection uses the URL's.
    for address in lookup_host((name, 0)).await? {
        let address = address.ip().to_canonical();
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

#[cfg(test)]
#[path = "resolve_test.rs"]
mod tests;
