//! Fail-overs of a real Patroni cluster (`cluster.sh`) under load: whatever dies, freezes or is
//! restarted, nothing acknowledged is lost and nothing happens twice.
//!
//! An ordinary run makes each kind of trouble once. `HUNDI_POSTGRES_PATRONI_MINUTES=60` goes on for
//! an hour. `HUNDI_TEST_PATRONI` names another Patroni than Debian's, and
//! `HUNDI_TEST_PATRONI_MODE=quorum` tries its quorum commit. Each trouble tells how long nothing
//! could be written to the cluster, and how much longer than that to the service.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::nodes::{Nodes, await_service, under_this_load};
use crate::support::load::Load;
use crate::support::postgres::{sql, try_sql_within};
use crate::support::random::{number, seed};
use crate::support::{Client, Random, steps, until};

const NODES_COUNT: usize = 3;
/// Of the load's eight writers: every payment of the run is looked at in the end.
const PAUSE_MILLISECONDS_MAX: u64 = 4_000;
const MEMBERS: [&str; 3] = ["a", "b", "c"];
/// A machine that is busy with other tests is slow to elect.
const PATIENCE: Duration = Duration::from_secs(120);
/// A frozen server takes connections and says nothing.
const SILENCE_MAX: Duration = Duration::from_secs(2);
/// Of a service whose database takes writes again, on a busy machine.
const OURS_MAX: Duration = Duration::from_secs(10);

struct Patroni {
    keeper: Child,
    folder: PathBuf,
    /// Of each member: its server's, and its Patroni's.
    ports: [(String, String); 3],
}

impl Patroni {
    fn start() -> Patroni {
        let program = std::env::var("HUNDI_TEST_PATRONI");
        for program in [program.as_deref().unwrap_or("/usr/bin/patroni"), "/usr/bin/etcd"] {
            assert!(Path::new(program).exists(), "no {program}: run tests/postgres/install.sh");
        }
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/postgres/patroni/cluster.sh");
        let mut keeper = Command::new(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("tests/postgres/patroni/cluster.sh starts");
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().expect("a pipe"))
            .read_line(&mut line)
            .expect("the cluster's line");
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let [folder, rest @ ..] = &words[..] else {
            panic!("Patroni's cluster did not start: {line:?}");
        };
        let ports = [0, 2, 4].map(|place| (rest[place].clone(), rest[place + 1].clone()));
        Patroni { keeper, folder: folder.into(), ports }
    }

    /// The superuser's URL of a database behind some members' servers.
    fn url(&self, members: &[usize], database: &str) -> String {
        let servers: Vec<String> =
            members.iter().map(|member| format!("127.0.0.1:{}", self.ports[*member].0)).collect();
        format!("postgres://postgres@{}/{database}?connect_timeout=2", servers.join(","))
    }

    /// The member whose server takes writes, by its own word.
    fn leader(&self) -> Option<usize> {
        (0..MEMBERS.len()).find(|member| {
            let url = self.url(&[*member], "postgres");
            try_sql_within(SILENCE_MAX, &url, "SELECT pg_is_in_recovery()")
                .is_ok_and(|rows| rows == [["f"]])
        })
    }

    fn await_leader(&self, is_wanted: impl Fn(usize) -> bool) -> usize {
        until("a leader", PATIENCE, || self.leader().filter(|member| is_wanted(*member)))
    }

    /// Until a leader has two standbys that follow, one of which is synchronous to the server and
    /// to Patroni, which lets no other one take over.
    fn await_whole(&self) {
        let is_quorum = std::env::var("HUNDI_TEST_PATRONI_MODE").is_ok_and(|mode| mode == "quorum");
        let (role, synchronous_count) =
            if is_quorum { ("quorum_standby", 2) } else { ("sync_standby", 1) };
        let wanted = [["2".to_owned(), synchronous_count.to_string()]];
        until("two standbys that follow", PATIENCE, || {
            let followers = "SELECT COUNT(*), COUNT(*) FILTER (WHERE sync_state IN ('sync', \
                             'quorum')) FROM pg_stat_replication WHERE state = 'streaming' AND \
                             application_name IN ('a', 'b', 'c')";
            let leader = self.leader()?;
            let url = self.url(&[leader], "postgres");
            let is_followed = try_sql_within(SILENCE_MAX, &url, followers).ok()? == wanted;
            let members = self.api(leader).once("GET", "/cluster", None, None).ok()?.json();
            let roles: Vec<_> = members["members"]
                .as_array()?
                .iter()
                .filter_map(|member| Some((member["name"].as_str()?, member["role"].as_str()?)))
                .collect();
            let count = |role| roles.iter().filter(|(_, known)| *known == role).count();
            let is_known = roles.contains(&(MEMBERS[leader], "leader"))
                && (count(role), count("replica")) == (synchronous_count, 2 - synchronous_count);
            (is_followed && is_known).then_some(())
        });
    }

    /// A client of a member's Patroni.
    fn api(&self, member: usize) -> Client {
        let address = format!("127.0.0.1:{}", self.ports[member].1);
        Client::new(address.parse().expect("an address"), "")
    }

    fn number_in(&self, file: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.folder.join(file)).ok()?;
        text.lines().next().map(str::to_owned)
    }

    fn signal(&self, file: &str, name: &str) {
        let Some(process) = self.number_in(file) else { return };
        let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
        let all = [process.clone(), children.unwrap_or_default()].join(" ");
        for process in all.split_whitespace() {
            // A child may have ended since the list was read.
            let _ = Command::new("kill").args(["-s", name, process]).output();
        }
    }

    /// To Patroni and the server of a member, as to a machine.
    fn signal_member(&self, member: usize, name: &str) {
        let member = MEMBERS[member];
        self.signal(&format!("{member}.pid"), name);
        self.signal(&format!("{member}/postmaster.pid"), name);
    }

    fn start_member(&mut self, member: usize) {
        let input = self.keeper.stdin.as_mut().expect("the script's input");
        writeln!(input, "{}", MEMBERS[member]).expect("the script");
    }

    /// Asks for a planned change of the leader; a Patroni that is not willing is asked again.
    fn switch_over(&self, leader: usize) {
        let body = format!(r#"{{"leader": "{}"}}"#, MEMBERS[leader]);
        until("Patroni to switch over", PATIENCE, || {
            let asked = self.api(leader).once("POST", "/switchover", None, Some(body.as_bytes()));
            if let Ok(answer) = asked
                && answer.status != 200
            {
                println!("Patroni does not switch over: {}", answer.text());
            }
            self.leader().filter(|member| *member != leader)
        });
    }
}

impl Drop for Patroni {
    fn drop(&mut self) {
        // The end of its input tells the script to clean up.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// When writes succeeded: to a server, and through a node.
#[derive(Default)]
struct Successes {
    cluster: Mutex<Vec<Instant>>,
    service: Mutex<Vec<Instant>>,
}

/// The longest time without a success from a moment on.
fn gap(successes: &Mutex<Vec<Instant>>, from: Instant) -> Duration {
    let successes = successes.lock().expect("the successes");
    let later: Vec<Instant> =
        [from].into_iter().chain(successes.iter().copied().filter(|at| *at >= from)).collect();
    later.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
}

/// Between two probes.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug)]
enum Trouble {
    Switchover,
    PrimaryKilled,
    MachineKilled,
    MachineFrozen,
    EtcdAway,
    LeaseHolderKilled,
    NodesRestarted,
}

const TROUBLES: [Trouble; 7] = [
    Trouble::Switchover,
    Trouble::PrimaryKilled,
    Trouble::MachineKilled,
    Trouble::MachineFrozen,
    Trouble::EtcdAway,
    Trouble::LeaseHolderKilled,
    Trouble::NodesRestarted,
];

fn make(trouble: Trouble, patroni: &mut Patroni, nodes: &mut Nodes, successes: &Successes) {
    let leader = patroni.await_leader(|_| true);
    let name = MEMBERS[leader];
    match trouble {
        Trouble::Switchover => {
            patroni.switch_over(leader);
        }
        Trouble::PrimaryKilled => {
            patroni.signal(&format!("{name}/postmaster.pid"), "KILL");
            patroni.await_leader(|_| true);
        }
        Trouble::MachineKilled => {
            patroni.signal_member(leader, "KILL");
            patroni.await_leader(|member| member != leader);
            patroni.start_member(leader);
        }
        Trouble::MachineFrozen => {
            patroni.signal_member(leader, "STOP");
            patroni.await_leader(|member| member != leader);
            let promoted = Instant::now();
            until("a write to the new leader", PATIENCE, || {
                let successes = successes.service.lock().expect("the successes");
                successes.last().is_some_and(|at| *at > promoted).then_some(())
            });
            // The server wakes first: for a moment there are two that take writes.
            patroni.signal(&format!("{name}/postmaster.pid"), "CONT");
            let url = patroni.url(&[leader], "postgres");
            until("the old primary to answer", PATIENCE, || {
                try_sql_within(SILENCE_MAX, &url, "SELECT 1").ok()
            });
            // A Patroni before 4 that wakes can take the new leader's lock, and then the cluster
            // goes on with the old one (docs/postgresql.md). A watchdog restarts the machine.
            patroni.signal(&format!("{name}.pid"), "KILL");
            patroni.start_member(leader);
        }
        Trouble::EtcdAway => {
            patroni.signal("etcd.pid", "STOP");
            // Longer than a leader may go without it.
            until("the leader to step down", PATIENCE, || patroni.leader().is_none().then_some(()));
            patroni.signal("etcd.pid", "CONT");
            patroni.await_leader(|_| true);
        }
        Trouble::LeaseHolderKilled => {
            let held = r#"hundi_leases_held{lease="events"} 1"#;
            let holder = until("a node to hold the sequencer's lease", PATIENCE, || {
                nodes.nodes.iter().position(|node| node.page("/metrics").contains(held))
            });
            nodes.nodes[holder].kill();
            nodes.nodes[holder].start_again();
        }
        Trouble::NodesRestarted => {
            for index in 0..nodes.nodes.len() {
                nodes.nodes[index].stop();
                nodes.nodes[index].start_again();
            }
        }
    }
}

/// Makes every trouble, in another order each time, until the time is over.
fn make_all(
    patroni: &mut Patroni,
    nodes: &mut Nodes,
    random: &mut Random,
    successes: &Successes,
    minutes: u64,
) {
    let started = Instant::now();
    loop {
        let mut left = TROUBLES.to_vec();
        while !left.is_empty() {
            let trouble = left.swap_remove(random.below(left.len()));
            let from = Instant::now();
            make(trouble, patroni, nodes, successes);
            await_service(nodes);
            // The gaps end with a success.
            std::thread::sleep(4 * PAUSE);
            let (theirs, both) = (gap(&successes.cluster, from), gap(&successes.service, from));
            let ours = both.saturating_sub(theirs);
            println!(
                "{trouble:?}: no writes for {theirs:.1?} to the cluster, {both:.1?} to the \
                 service: {ours:.1?} are ours"
            );
            assert!(ours < OURS_MAX, "{trouble:?}: the service was away for {ours:?} longer");
            patroni.await_whole();
        }
        if started.elapsed() >= Duration::from_secs(60 * minutes) {
            return;
        }
    }
}

#[test]
#[ignore = "it needs the machine to itself: ./test.sh runs it last"]
fn nothing_is_lost_whatever_happens_to_a_patroni_cluster() {
    let mut patroni = Patroni::start();
    let minutes = number("HUNDI_POSTGRES_PATRONI_MINUTES", 0);
    patroni.await_whole();
    let leader = patroni.url(&[patroni.await_leader(|_| true)], "postgres");
    sql(&leader, "CREATE DATABASE hundi");
    sql(&leader, "CREATE TABLE probes (n BIGINT)");
    let url = patroni.url(&[0, 1, 2], "hundi");
    let mut nodes = Nodes::start(&vec![url; NODES_COUNT], |_, home| {
        home.with("HUNDI_DATABASE_CONNECTIONS", "10")
            .with("HUNDI_DRAIN_SECONDS", "1")
            .with("HUNDI_METRICS", "true")
    });
    let (successes, is_over) = (Successes::default(), AtomicBool::new(false));
    let probed: Vec<String> = (0..3).map(|member| patroni.url(&[member], "postgres")).collect();
    let (addresses, probe_key) = (nodes.addresses(), nodes.probe_key.clone());
    let aftermath = std::thread::scope(|scope| {
        let (successes, is_over) = (&successes, &is_over);
        for url in &probed {
            // A frozen server keeps its own probe alone.
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let write = "INSERT INTO probes VALUES (1)";
                    if try_sql_within(SILENCE_MAX, url, write).is_ok() {
                        successes.cluster.lock().expect("successes").push(Instant::now());
                    }
                    std::thread::sleep(PAUSE);
                }
            });
        }
        for address in &addresses {
            let mut client = Client::new(*address, &probe_key);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let answer = steps::sender_once(&mut client);
                    if answer.is_ok_and(|answer| answer.is_success()) {
                        successes.service.lock().expect("successes").push(Instant::now());
                    }
                    std::thread::sleep(PAUSE);
                }
            });
        }
        let aftermath = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let (load, seed) =
                (Load::with_pauses(PAUSE_MILLISECONDS_MAX), seed("HUNDI_POSTGRES_SEED"));
            under_this_load(load, &mut nodes, seed, true, |nodes, random| {
                make_all(&mut patroni, nodes, random, successes, minutes);
                // What follows is judged on an idle cluster.
                is_over.store(true, Ordering::Relaxed);
            })
        }));
        is_over.store(true, Ordering::Relaxed);
        // Probes of frozen servers end.
        (0..3).for_each(|member| patroni.signal_member(member, "CONT"));
        patroni.signal("etcd.pid", "CONT");
        aftermath
    })
    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    aftermath.tell("troubles of a Patroni cluster");
    aftermath.expect_sound();
    nodes.check();
    let is_alarmed = nodes.nodes.iter().any(|node| node.home.log().contains("database_went_back"));
    assert!(!is_alarmed, "an alarm, and nothing was lost");
    // The control: the members are known to have changed places.
    let timeline = "SELECT timeline_id FROM pg_control_checkpoint()";
    let url = patroni.url(&[patroni.await_leader(|_| true)], "postgres");
    let timeline: u64 = sql(&url, timeline)[0][0].parse().expect("a number");
    assert!(timeline >= 4, "there were too few fail-overs: timeline {timeline}");
}
