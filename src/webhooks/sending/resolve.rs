//! Resolves names through the system. A name has at most one look-up at a time. Names that fail
//! leave room for the look-ups of other names.
//!
//! The system's `getaddrinfo` cannot be interrupted. A look-up occupies a thread of the runtime's
//! blocking pool until the system gives up. If the name server is silent, that is long after the
//! attempt gave up. So each look-up needs a permit. New look-ups of bad names, which lately failed
//! or did not answer, can take only half of the permits. Proven names, which lately resolved, have
//! additional permits of their own.

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

/// The most names in each of `good`, `proven` and `bad` of [`KnownNames`].
const NAMES_MAX: usize = 1024;
/// Permits for names of any kind. Each look-up that runs has one, or one of the additional permits.
const RESOLVING_MAX: usize = 64;
/// How many of these permits may go to names that were bad before their look-up.
const RESOLVING_BAD_MAX: usize = RESOLVING_MAX / 2;
/// Additional permits, only for names that resolved lately.
const RESOLVING_PROVEN_MAX: usize = 16;
/// How long a name may use the additional permits after it resolved. A failure takes them away for
/// [`BAD_DURATION`] only, because after an outage of the name server all names have failed.
const PROVEN_DURATION: Duration = Duration::from_secs(24 * 3_600);
/// How long a name counts as bad after it failed or did not answer in time.
const BAD_DURATION: Duration = Duration::from_secs(600);
/// How long a name is not looked up again after it failed: less than the first pause between
/// attempts of a delivery.
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
    /// A name whose look-up has no answer after this time counts as bad.
    silence_duration: Duration,
    names: Mutex<KnownNames>,
    permits: Arc<Semaphore>,
    permits_bad: Arc<Semaphore>,
    permits_proven: Arc<Semaphore>,
}

/// What earlier look-ups have shown of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NameHistory {
    /// The name resolved in the last [`PROVEN_DURATION`], and is not bad.
    Proven,
    Unknown,
    /// In the last [`BAD_DURATION`] the name failed or did not answer, and it has not resolved
    /// since.
    Bad,
}

#[derive(Default)]
struct KnownNames {
    /// Addresses, with the time at which they were resolved.
    good: HashMap<String, (Arc<[IpAddr]>, Instant)>,
    /// When each name last resolved.
    proven: HashMap<String, Instant>,
    /// When each name was last found to be bad.
    bad: HashMap<String, Instant>,
    /// Names whose look-up runs, and names for which an attempt waits for a permit.
    pending: HashMap<String, watch::Receiver<Option<ResolvedAddresses>>>,
}

/// What an attempt does to get an answer.
enum ResolveStep {
    /// The answer is known.
    Take(ResolvedAddresses),
    /// Another attempt looks the name up; this attempt waits for that look-up's answer.
    Await(watch::Receiver<Option<ResolvedAddresses>>),
    /// This attempt looks the name up.
    Ask { query: NameQuery, history: NameHistory },
}

/// A look-up under way. Once it is dropped, the name can be looked up again.
struct NameQuery {
    state: Arc<ResolverState>,
    name: String,
    answer_sender: watch::Sender<Option<ResolvedAddresses>>,
}

impl Resolver {
    /// A resolver that reuses addresses for `good_duration`. A name whose look-up has no answer
    /// after `silence_duration` counts as bad.
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
        let permits = Arc::new(Semaphore::new(RESOLVING_MAX));
        let permits_bad = Arc::new(Semaphore::new(RESOLVING_BAD_MAX));
        let permits_proven = Arc::new(Semaphore::new(RESOLVING_PROVEN_MAX));
        Resolver {
            state: Arc::new(ResolverState {
                look_up,
                good_duration,
                silence_duration,
                names: Mutex::default(),
                permits,
                permits_bad,
                permits_proven,
            }),
        }
    }

    /// Every address of the name in the system's order of preference, IPv4-mapped ones as IPv4;
    /// `None` if it has none or the look-up failed, now or a moment ago. This can take as long as
    /// the system takes; to give up, drop the future.
    pub(super) async fn resolve(&self, name: &str) -> ResolvedAddresses {
        loop {
            let mut receiver = match self.step(name, Instant::now()) {
                ResolveStep::Take(answer) => return answer,
                ResolveStep::Await(receiver) => receiver,
                ResolveStep::Ask { query, history } => {
                    let receiver = query.answer_sender.subscribe();
                    let (permit, permit_bad) = self.state.take_permits(history).await?;
                    // In a task of its own, so that it holds the permit as long as it occupies the
                    // thread, even if the attempt stops waiting.
                    tokio::spawn(query.run(permit, permit_bad));
                    receiver
                }
            };
            let answer =
                receiver.wait_for(Option::is_some).await.map(|answer| answer.clone().flatten());
            // Without an answer, the attempt that was to look the name up gave up before it had a
            // permit. Then this attempt tries again.
            if let Ok(answer) = answer {
                return answer;
            }
        }
    }

    /// Decides what an attempt does. With [`ResolveStep::Ask`] the look-up counts as begun, so that
    /// other attempts wait for it.
    fn step(&self, name: &str, now: Instant) -> ResolveStep {
        let mut names = lock(&self.state.names);
        if let Some((addresses, resolved_at)) = names.good.get(name)
            && is_within(*resolved_at, now, self.state.good_duration)
        {
            return ResolveStep::Take(Some(addresses.clone()));
        }
        if let Some(receiver) = names.pending.get(name) {
            return ResolveStep::Await(receiver.clone());
        }
        let found_bad_at = names.bad.get(name).copied();
        let was_bad_within =
            |duration| found_bad_at.is_some_and(|found_at| is_within(found_at, now, duration));
        if was_bad_within(FAILED_DURATION) {
            return ResolveStep::Take(None);
        }
        let (answer_sender, receiver) = watch::channel(None);
        names.pending.insert(name.to_owned(), receiver);
        let query = NameQuery { state: self.state.clone(), name: name.to_owned(), answer_sender };
        let was_proven = names
            .proven
            .get(name)
            .is_some_and(|proven_at| is_within(*proven_at, now, PROVEN_DURATION));
        let history = match (was_bad_within(BAD_DURATION), was_proven) {
            (true, _) => NameHistory::Bad,
            (false, true) => NameHistory::Proven,
            (false, false) => NameHistory::Unknown,
        };
        ResolveStep::Ask { query, history }
    }
}

impl NameQuery {
    async fn run(self, _permit: OwnedSemaphorePermit, permit_bad: Option<OwnedSemaphorePermit>) {
        let state = &self.state;
        let mut look_up = (state.look_up)(self.name.clone());
        let looked_up = match timeout(state.silence_duration, &mut look_up).await {
            Ok(looked_up) => looked_up,
            Err(_) => {
                state.learn(&self.name, None, Instant::now());
                if permit_bad.is_some() {
                    look_up.await
                } else {
                    // The name counts as bad from now on, so the look-up also takes one of the bad
                    // names' permits as soon as one is free.
                    tokio::select! {
                        looked_up = &mut look_up => looked_up,
                        _permit_bad = state.permits_bad.clone().acquire_owned() => look_up.await,
                    }
                }
            }
        };
        let answer: ResolvedAddresses =
            looked_up.ok().filter(|addresses| !addresses.is_empty()).map(Arc::from);
        state.learn(&self.name, answer.as_ref(), Instant::now());
        self.answer_sender.send_replace(Some(answer));
    }
}

impl Drop for NameQuery {
    fn drop(&mut self) {
        lock(&self.state.names).pending.remove(&self.name);
    }
}

impl ResolverState {
    /// Waits for a name's permit. A bad name also needs one of the bad names' permits.
    async fn take_permits(
        &self,
        history: NameHistory,
    ) -> Option<(OwnedSemaphorePermit, Option<OwnedSemaphorePermit>)> {
        let permit_bad = match history {
            NameHistory::Bad => Some(self.permits_bad.clone().acquire_owned().await.ok()?),
            NameHistory::Proven | NameHistory::Unknown => None,
        };
        if history == NameHistory::Proven {
            let permit = tokio::select! {
                biased;
                permit = self.permits.clone().acquire_owned() => permit,
                permit = self.permits_proven.clone().acquire_owned() => permit,
            };
            return Some((permit.ok()?, None));
        }
        Some((self.permits.clone().acquire_owned().await.ok()?, permit_bad))
    }

    /// Remembers the result of a look-up, unless there is no room even after old entries were
    /// dropped. Without addresses, the name counts as bad.
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
    // `lookup_host` wants a port. The connection uses the URL's.
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
