//! Resolves names through the system: one look-up of a name at a time, and always room for names
//! that are not known to be bad.
//!
//! A look-up cannot be interrupted. It holds its turn, a thread of the runtime's blocking pool,
//! until the system gives up, which is long after the attempt did where a name server is silent. So
//! names that failed or did not answer lately share half of the turns.

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

use super::send::lock;

/// Names whose addresses are remembered, and as many that are known to be bad.
const NAMES_MAX: usize = 1024;
/// Names being resolved at the same time.
const RESOLVING_MAX: usize = 64;
/// Of these, names that are known to be bad.
const RESOLVING_BAD_MAX: usize = RESOLVING_MAX / 2;
/// How long a name is known to be bad after it failed or did not answer in time.
const BAD_DURATION: Duration = Duration::from_secs(600);
/// How long a name that failed is not asked about again: shorter than the first pause between
/// attempts.
const FAILED_DURATION: Duration = Duration::from_secs(2);

/// Every address of a name, or `None` where it has none or nobody could tell.
pub(super) type Answer = Option<Arc<[IpAddr]>>;
type LookUp = Box<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// Resolves names, and remembers what it learnt of them for a short while.
pub(super) struct Resolver {
    shared: Arc<Shared>,
}

struct Shared {
    look_up: LookUp,
    /// How long addresses are reused.
    good_duration: Duration,
    /// How long a look-up may take before its name is bad.
    silence_duration: Duration,
    names: Mutex<Names>,
    turns: Arc<Semaphore>,
    turns_bad: Arc<Semaphore>,
}

#[derive(Default)]
struct Names {
    /// With the time at which they were resolved.
    good: HashMap<String, (Arc<[IpAddr]>, Instant)>,
    /// With the time at which they were last found to be bad.
    bad: HashMap<String, Instant>,
    /// Names that are being asked about: those that have a turn, and those that a running attempt
    /// waits for a turn for.
    asked: HashMap<String, watch::Receiver<Option<Answer>>>,
}

/// What an attempt has to do for an answer.
enum Step {
    Take(Answer),
    Await(watch::Receiver<Option<Answer>>),
    Ask { asking: Asking, is_bad: bool },
}

/// The one who asks about a name. When it goes, the name can be asked about again.
struct Asking {
    shared: Arc<Shared>,
    name: String,
    tell: watch::Sender<Option<Answer>>,
}

impl Resolver {
    /// A resolver that goes on using addresses for `good_duration`, and holds a name for bad that
    /// does not answer within `silence_duration`.
    pub(super) fn new(good_duration: Duration, silence_duration: Duration) -> Resolver {
        Resolver::with_look_up(
            Box::new(|name| ask_system(name).boxed()),
            good_duration,
            silence_duration,
        )
    }

    fn with_look_up(
        look_up: LookUp,
        good_duration: Duration,
        silence_duration: Duration,
    ) -> Resolver {
        let turns = Arc::new(Semaphore::new(RESOLVING_MAX));
        let turns_bad = Arc::new(Semaphore::new(RESOLVING_BAD_MAX));
        Resolver {
            shared: Arc::new(Shared {
                look_up,
                good_duration,
                silence_duration,
                names: Mutex::default(),
                turns,
                turns_bad,
            }),
        }
    }

    /// Every address of the name in the system's order of preference, IPv4-mapped ones as IPv4;
    /// never none. Takes as long as the system does: the caller gives up by dropping the future.
    pub(super) async fn resolve(&self, name: &str) -> Answer {
        loop {
            let mut told = match self.step(name, Instant::now()) {
                Step::Take(answer) => return answer,
                Step::Await(told) => told,
                Step::Ask { asking, is_bad } => {
                    let told = asking.tell.subscribe();
                    let turn_bad = if is_bad {
                        Some(self.shared.turns_bad.clone().acquire_owned().await.ok()?)
                    } else {
                        None
                    };
                    let turn = self.shared.turns.clone().acquire_owned().await.ok()?;
                    // A task of its own, so that the turn lasts as long as the thread is in use and
                    // not only as long as the attempt waits for it.
                    tokio::spawn(asking.ask(turn, turn_bad));
                    told
                }
            };
            let answer =
                told.wait_for(Option::is_some).await.map(|answer| answer.clone().flatten());
            // Where the one who asked gave up before its turn came, this attempt asks in its place.
            if let Ok(answer) = answer {
                return answer;
            }
        }
    }

    fn step(&self, name: &str, now: Instant) -> Step {
        let mut names = lock(&self.shared.names);
        if let Some((addresses, resolved_at)) = names.good.get(name)
            && is_within(*resolved_at, now, self.shared.good_duration)
        {
            return Step::Take(Some(addresses.clone()));
        }
        if let Some(told) = names.asked.get(name) {
            return Step::Await(told.clone());
        }
        let found_bad_at = names.bad.get(name).copied();
        let was_bad_within =
            |duration| found_bad_at.is_some_and(|found_at| is_within(found_at, now, duration));
        if was_bad_within(FAILED_DURATION) {
            return Step::Take(None);
        }
        let (tell, told) = watch::channel(None);
        names.asked.insert(name.to_owned(), told);
        let asking = Asking { shared: self.shared.clone(), name: name.to_owned(), tell };
        Step::Ask { asking, is_bad: was_bad_within(BAD_DURATION) }
    }
}

impl Asking {
    async fn ask(self, _turn: OwnedSemaphorePermit, turn_bad: Option<OwnedSemaphorePermit>) {
        let shared = &self.shared;
        let mut look_up = (shared.look_up)(self.name.clone());
        let looked_up = match timeout(shared.silence_duration, &mut look_up).await {
            Ok(looked_up) => looked_up,
            Err(_) => {
                shared.learn(&self.name, None, Instant::now());
                if turn_bad.is_some() {
                    look_up.await
                } else {
                    // From now on it is one of the bad ones, as soon as there is a place among
                    // them.
                    tokio::select! {
                        looked_up = &mut look_up => looked_up,
                        _turn_bad = shared.turns_bad.clone().acquire_owned() => look_up.await,
                    }
                }
            }
        };
        let answer: Answer =
            looked_up.ok().filter(|addresses| !addresses.is_empty()).map(Arc::from);
        shared.learn(&self.name, answer.as_ref(), Instant::now());
        self.tell.send_replace(Some(answer));
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        lock(&self.shared.names).asked.remove(&self.name);
    }
}

impl Shared {
    /// Remembers what a look-up came to. Where there is no room even after what is old is
    /// forgotten, the name is one that nothing is known of.
    fn learn(&self, name: &str, addresses: Option<&Arc<[IpAddr]>>, now: Instant) {
        let mut names = lock(&self.names);
        let Names { good, bad, .. } = &mut *names;
        match addresses {
            Some(addresses) => {
                bad.remove(name);
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
    // The port plays no part in the look-up; the connection takes the URL's.
    for address in lookup_host((name, 0)).await? {
        let address = address.ip().to_canonical();
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;

    use super::*;

    /// How long an attempt waits here, and how long a name may be silent.
    const SILENCE: Duration = Duration::from_millis(30);
    const PATIENCE: Duration = Duration::from_secs(10);

    /// Name servers that say nothing about names that begin with `dead` until they are let go, and
    /// then that there are none.
    #[derive(Clone)]
    struct Servers {
        begun: Arc<AtomicUsize>,
        running: Arc<AtomicUsize>,
        are_let_go: watch::Sender<bool>,
    }

    impl Servers {
        fn start() -> (Servers, Resolver) {
            let servers = Servers {
                begun: Arc::default(),
                running: Arc::default(),
                are_let_go: watch::Sender::new(false),
            };
            let asked = servers.clone();
            let look_up: LookUp = Box::new(move |name| {
                let servers = asked.clone();
                async move {
                    servers.begun.fetch_add(1, Ordering::SeqCst);
                    servers.running.fetch_add(1, Ordering::SeqCst);
                    let is_dead = name.starts_with("dead");
                    if is_dead {
                        let _ =
                            servers.are_let_go.subscribe().wait_for(|are_let_go| *are_let_go).await;
                    }
                    servers.running.fetch_sub(1, Ordering::SeqCst);
                    if is_dead {
                        Err(io::Error::other("no such name"))
                    } else {
                        Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])
                    }
                }
                .boxed()
            });
            (servers, Resolver::with_look_up(look_up, Duration::from_secs(5), SILENCE))
        }

        fn begun(&self) -> usize {
            self.begun.load(Ordering::SeqCst)
        }

        async fn until_running(&self, count: usize) {
            let all = async {
                while self.running.load(Ordering::SeqCst) != count {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            assert!(
                timeout(PATIENCE, all).await.is_ok(),
                "{} run, not {count}",
                self.running.load(Ordering::SeqCst)
            );
        }
    }

    fn numbered(prefix: &str, count: usize) -> Vec<String> {
        (0..count).map(|index| format!("{prefix}-{index}")).collect()
    }

    /// Attempts for all names at the same time, each of which gives up; answers how many got
    /// addresses.
    async fn attempt_all(resolver: &Resolver, names: &[String]) -> usize {
        let attempts = names.iter().map(|name| timeout(SILENCE * 3, resolver.resolve(name)));
        join_all(attempts).await.into_iter().filter(|answer| matches!(answer, Ok(Some(_)))).count()
    }

    /// As if so much time had passed since names were found to be bad.
    fn age_bad_names(resolver: &Resolver, duration: Duration) {
        lock(&resolver.shared.names).bad.values_mut().for_each(|found_at| *found_at -= duration);
    }

    #[tokio::test]
    async fn attempts_for_one_name_share_its_look_up() {
        let (servers, resolver) = Servers::start();
        let attempts = join_all((0..RESOLVING_MAX * 2).map(|_| resolver.resolve("dead")));
        let let_go = async {
            servers.until_running(1).await;
            servers.are_let_go.send_replace(true);
        };
        let (answers, ()) = tokio::join!(attempts, let_go);
        assert!(answers.iter().all(Option::is_none));
        assert_eq!(servers.begun(), 1);
        // What failed is not asked about again at once, but soon.
        assert_eq!((resolver.resolve("dead").await, servers.begun()), (None, 1));
        age_bad_names(&resolver, FAILED_DURATION);
        assert_eq!((resolver.resolve("dead").await, servers.begun()), (None, 2));
        assert_eq!(
            join_all((0..8).map(|_| resolver.resolve("alive"))).await.iter().flatten().count(),
            8
        );
        assert_eq!(servers.begun(), 3);
    }

    #[tokio::test]
    async fn names_that_do_not_answer_leave_room_for_others() {
        let (servers, resolver) = Servers::start();
        let dead = numbered("dead", RESOLVING_BAD_MAX);
        for round in 0..4 {
            // However often they are attempted, each has one turn.
            assert_eq!(attempt_all(&resolver, &dead).await, 0);
            servers.until_running(RESOLVING_BAD_MAX).await;
            assert_eq!(servers.begun(), RESOLVING_BAD_MAX + round);
            assert!(resolver.resolve(&format!("alive-{round}")).await.is_some());
        }
        // They take the places of the bad ones: one that failed earlier waits for them, and one
        // that nobody knows does not.
        resolver.shared.learn("dead-again", None, Instant::now() - FAILED_DURATION);
        let begun = servers.begun();
        assert_eq!(attempt_all(&resolver, &["dead-again".into()]).await, 0);
        assert_eq!(servers.begun(), begun);
        assert!(resolver.resolve("alive").await.is_some());
        // Once the bad ones have ended, it gets its turn.
        servers.are_let_go.send_replace(true);
        servers.until_running(0).await;
        assert_eq!((resolver.resolve("dead-again").await, servers.begun()), (None, begun + 2));
    }

    #[tokio::test]
    async fn names_that_failed_share_half_of_the_turns() {
        let (servers, resolver) = Servers::start();
        let dead = numbered("dead", RESOLVING_MAX * 2);
        dead.iter()
            .for_each(|name| resolver.shared.learn(name, None, Instant::now() - FAILED_DURATION));
        assert_eq!(attempt_all(&resolver, &dead).await, 0);
        servers.until_running(RESOLVING_BAD_MAX).await;
        assert_eq!(servers.begun(), RESOLVING_BAD_MAX);
        // The other half is for those that nothing is known of.
        let unknown = numbered("dead-unknown", RESOLVING_MAX);
        assert_eq!(attempt_all(&resolver, &unknown).await, 0);
        servers.until_running(RESOLVING_MAX).await;
        assert_eq!(servers.begun(), RESOLVING_MAX);
        servers.are_let_go.send_replace(true);
        servers.until_running(0).await;
        // After a while nothing is known of them again, and a good answer ends it at once.
        age_bad_names(&resolver, BAD_DURATION);
        assert!(matches!(resolver.step("dead-0", Instant::now()), Step::Ask { is_bad: false, .. }));
        resolver.shared.learn("alive", None, Instant::now() - FAILED_DURATION);
        assert!(matches!(resolver.step("alive", Instant::now()), Step::Ask { is_bad: true, .. }));
        assert!(resolver.resolve("alive").await.is_some());
        assert!(!lock(&resolver.shared.names).bad.contains_key("alive"));
    }

    #[tokio::test]
    async fn who_gives_up_before_its_turn_leaves_the_name_to_the_next() {
        let (servers, resolver) = Servers::start();
        let dead = numbered("dead", RESOLVING_MAX);
        assert_eq!(attempt_all(&resolver, &dead).await, 0);
        servers.until_running(RESOLVING_MAX).await;
        let mut first = Box::pin(resolver.resolve("alive"));
        let mut second = Box::pin(resolver.resolve("alive"));
        assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
        drop(first);
        servers.are_let_go.send_replace(true);
        assert!(timeout(PATIENCE, second).await.expect("an answer").is_some());
        assert!(lock(&resolver.shared.names).asked.keys().all(|name| name != "alive"));
    }

    #[tokio::test]
    async fn what_is_known_of_names_lasts_a_while_and_is_bounded() {
        let (_, resolver) = Servers::start();
        let now = Instant::now();
        let addresses: Arc<[IpAddr]> = [IpAddr::V4(Ipv4Addr::LOCALHOST)].into();
        let is_remembered =
            |name: &str, after| matches!(resolver.step(name, now + after), Step::Take(Some(_)));
        let milliseconds = Duration::from_millis;
        resolver.shared.learn("a", Some(&addresses), now);
        assert!(
            is_remembered("a", milliseconds(4_999)) && !is_remembered("a", milliseconds(5_000))
        );
        assert!(!is_remembered("b", milliseconds(0)));
        for index in 1..NAMES_MAX {
            resolver.shared.learn(&index.to_string(), Some(&addresses), now + milliseconds(1));
        }
        resolver.shared.learn("full", Some(&addresses), now + milliseconds(2));
        assert!(!is_remembered("full", milliseconds(2)));
        resolver.shared.learn("room", Some(&addresses), now + milliseconds(5_000));
        assert!(is_remembered("room", milliseconds(5_000)));
        for index in 0..NAMES_MAX * 2 {
            resolver.shared.learn(&index.to_string(), None, now);
        }
        let names = lock(&resolver.shared.names);
        assert!(names.good.len() <= NAMES_MAX && names.bad.len() == NAMES_MAX);
    }

    #[tokio::test]
    async fn the_system_knows_this_machine() {
        let resolver = Resolver::new(Duration::from_secs(5), PATIENCE);
        let addresses = resolver.resolve("localhost").await.expect("addresses");
        assert!(addresses.iter().all(IpAddr::is_loopback));
    }
}
