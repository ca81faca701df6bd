use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;

use super::*;

/// A name whose look-up has no answer after this time counts as bad.
const SILENCE: Duration = Duration::from_millis(30);
/// The longest wait for what must happen soon, far above any pause of a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Name servers that do not answer about names that begin with `dead` until they are released. Then
/// they answer that there are no such names. All other names have an address.
#[derive(Clone)]
struct Servers {
    begun: Arc<AtomicUsize>,
    running: Arc<AtomicUsize>,
    are_released: watch::Sender<bool>,
}

impl Servers {
    fn start() -> (Servers, Resolver) {
        let servers = Servers {
            begun: Arc::default(),
            running: Arc::default(),
            are_released: watch::Sender::new(false),
        };
        let asked = servers.clone();
        let look_up: ResolveName = Box::new(move |name| {
            let servers = asked.clone();
            async move {
                servers.begun.fetch_add(1, Ordering::SeqCst);
                servers.running.fetch_add(1, Ordering::SeqCst);
                let is_dead = name.starts_with("dead");
                if is_dead {
                    let mut release = servers.are_released.subscribe();
                    let _ = release.wait_for(|are_released| *are_released).await;
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

/// Makes an attempt for each name, all at the same time. Each attempt gives up after a while.
/// Answers how many got addresses.
async fn attempt_all(resolver: &Resolver, names: &[String]) -> usize {
    let attempts = names.iter().map(|name| timeout(SILENCE * 3, resolver.resolve(name)));
    join_all(attempts).await.into_iter().filter(|answer| matches!(answer, Ok(Some(_)))).count()
}

/// Makes it look as if all bad names were found to be bad earlier by `duration`.
fn age_bad_names(resolver: &Resolver, duration: Duration) {
    lock(&resolver.state.names).bad.values_mut().for_each(|found_at| *found_at -= duration);
}

#[tokio::test]
async fn attempts_for_one_name_share_its_look_up() {
    let (servers, resolver) = Servers::start();
    let attempts = join_all((0..RESOLVING_MAX * 2).map(|_| resolver.resolve("dead")));
    let release = async {
        servers.until_running(1).await;
        servers.are_released.send_replace(true);
    };
    let (answers, ()) = tokio::join!(attempts, release);
    assert!(answers.iter().all(Option::is_none));
    assert_eq!(servers.begun(), 1);
    // A name that failed is not looked up again at once, but soon.
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
        // However many attempts there are for a name, its one look-up goes on.
        assert_eq!(attempt_all(&resolver, &dead).await, 0);
        servers.until_running(RESOLVING_BAD_MAX).await;
        assert_eq!(servers.begun(), RESOLVING_BAD_MAX + round);
        assert!(resolver.resolve(&format!("alive-{round}")).await.is_some());
    }
    // Each look-up needs a permit, and the dead names hold all permits that bad names may have. A
    // name that failed earlier waits for one of these, and a name of which nothing is known does
    // not.
    resolver.state.learn("dead-again", None, Instant::now() - FAILED_DURATION);
    let begun = servers.begun();
    assert_eq!(attempt_all(&resolver, &["dead-again".into()]).await, 0);
    assert_eq!(servers.begun(), begun);
    assert!(resolver.resolve("alive").await.is_some());
    // Once the look-ups of the dead names have ended, `dead-again` gets its permit.
    servers.are_released.send_replace(true);
    servers.until_running(0).await;
    assert_eq!((resolver.resolve("dead-again").await, servers.begun()), (None, begun + 2));
}

#[tokio::test]
async fn names_that_failed_share_half_of_the_permits() {
    let (servers, resolver) = Servers::start();
    let dead = numbered("dead", RESOLVING_MAX * 2);
    dead.iter().for_each(|name| resolver.state.learn(name, None, Instant::now() - FAILED_DURATION));
    assert_eq!(attempt_all(&resolver, &dead).await, 0);
    servers.until_running(RESOLVING_BAD_MAX).await;
    assert_eq!(servers.begun(), RESOLVING_BAD_MAX);
    // The other half is for names of which nothing is known.
    let unknown = numbered("dead-unknown", RESOLVING_MAX);
    assert_eq!(attempt_all(&resolver, &unknown).await, 0);
    servers.until_running(RESOLVING_MAX).await;
    assert_eq!(servers.begun(), RESOLVING_MAX);
    servers.are_released.send_replace(true);
    servers.until_running(0).await;
    // A bad name is forgotten after a while, or at once after a good answer.
    age_bad_names(&resolver, BAD_DURATION);
    assert!(matches!(
        resolver.step("dead-0", Instant::now()),
        ResolveStep::Ask { history: NameHistory::Unknown, .. }
    ));
    resolver.state.learn("alive", None, Instant::now() - FAILED_DURATION);
    assert!(matches!(
        resolver.step("alive", Instant::now()),
        ResolveStep::Ask { history: NameHistory::Bad, .. }
    ));
    assert!(resolver.resolve("alive").await.is_some());
    assert!(!lock(&resolver.state.names).bad.contains_key("alive"));
}

/// New names that never resolve take every permit that unknown names can have. Names that resolved
/// an hour ago resolve all the same.
#[tokio::test]
async fn names_that_resolved_lately_have_permits_of_their_own() {
    let (servers, resolver) = Servers::start();
    let hour = Duration::from_secs(3_600);
    let addresses: Arc<[IpAddr]> = [IpAddr::V4(Ipv4Addr::LOCALHOST)].into();
    let alive = numbered("alive", RESOLVING_PROVEN_MAX * 2);
    for name in &alive {
        resolver.state.learn(name, Some(&addresses), Instant::now() - hour);
    }
    let dead = numbered("dead", RESOLVING_MAX);
    assert_eq!(attempt_all(&resolver, &dead).await, 0);
    servers.until_running(RESOLVING_MAX).await;
    let attempts = alive.iter().map(|name| timeout(PATIENCE, resolver.resolve(name)));
    let answers = join_all(attempts).await;
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Some(_)))));
    // The control: a name of which nothing is known has to wait.
    assert!(timeout(SILENCE, resolver.resolve("alive-unknown")).await.is_err());
    servers.are_released.send_replace(true);
}

/// A failure counts for a while only, because all names fail when the name server does.
#[tokio::test]
async fn a_name_that_resolved_within_a_day_is_proven_again_some_time_after_it_failed() {
    let (_, resolver) = Servers::start();
    let now = Instant::now();
    let addresses: Arc<[IpAddr]> = [IpAddr::V4(Ipv4Addr::LOCALHOST)].into();
    let failed = now + Duration::from_secs(3_600);
    resolver.state.learn("alive", Some(&addresses), now);
    resolver.state.learn("alive", None, failed);
    let moment = Duration::from_millis(1);
    for (at, wanted) in [
        (failed + FAILED_DURATION, NameHistory::Bad),
        (failed + BAD_DURATION - moment, NameHistory::Bad),
        (failed + BAD_DURATION, NameHistory::Proven),
        (now + PROVEN_DURATION - moment, NameHistory::Proven),
        (now + PROVEN_DURATION, NameHistory::Unknown),
    ] {
        let ResolveStep::Ask { history, .. } = resolver.step("alive", at) else {
            panic!("it is looked up");
        };
        assert_eq!(history, wanted, "{:?} after it resolved", at - now);
    }
}

#[tokio::test]
async fn an_attempt_that_gives_up_before_its_permit_leaves_the_name_to_the_next() {
    let (servers, resolver) = Servers::start();
    let dead = numbered("dead", RESOLVING_MAX);
    assert_eq!(attempt_all(&resolver, &dead).await, 0);
    servers.until_running(RESOLVING_MAX).await;
    let mut first = Box::pin(resolver.resolve("alive"));
    let mut second = Box::pin(resolver.resolve("alive"));
    assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
    drop(first);
    servers.are_released.send_replace(true);
    assert!(timeout(PATIENCE, second).await.expect("an answer").is_some());
    assert!(lock(&resolver.state.names).pending.keys().all(|name| name != "alive"));
}

#[tokio::test]
async fn what_is_known_of_names_lasts_a_while_and_is_bounded() {
    let (_, resolver) = Servers::start();
    let now = Instant::now();
    let addresses: Arc<[IpAddr]> = [IpAddr::V4(Ipv4Addr::LOCALHOST)].into();
    let is_remembered =
        |name: &str, after| matches!(resolver.step(name, now + after), ResolveStep::Take(Some(_)));
    let milliseconds = Duration::from_millis;
    resolver.state.learn("a", Some(&addresses), now);
    assert!(is_remembered("a", milliseconds(4_999)) && !is_remembered("a", milliseconds(5_000)));
    assert!(!is_remembered("b", milliseconds(0)));
    for index in 1..NAMES_MAX {
        resolver.state.learn(&index.to_string(), Some(&addresses), now + milliseconds(1));
    }
    resolver.state.learn("full", Some(&addresses), now + milliseconds(2));
    assert!(!is_remembered("full", milliseconds(2)));
    resolver.state.learn("room", Some(&addresses), now + milliseconds(5_000));
    assert!(is_remembered("room", milliseconds(5_000)));
    for index in 0..NAMES_MAX * 2 {
        resolver.state.learn(&index.to_string(), None, now);
    }
    let names = lock(&resolver.state.names);
    assert!(names.good.len() <= NAMES_MAX && names.bad.len() == NAMES_MAX);
}

#[tokio::test]
async fn the_system_knows_this_machine() {
    let resolver = Resolver::new(Duration::from_secs(5), PATIENCE);
    let addresses = resolver.resolve("localhost").await.expect("addresses");
    assert!(addresses.iter().all(IpAddr::is_loopback));
}
