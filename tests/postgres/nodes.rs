//! Nodes on one database, and the load over all of them while something goes wrong.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::proxy::Proxy;
use crate::support::load::{Journal, Load, Writer, follow_events};
use crate::support::oracle::{self, Finding};
use crate::support::postgres::{Cluster, Database};
use crate::support::{Answer, Client, Home, Random, Receiver, Server, fresh_key, steps, until};

/// No request is waited for longer than this, whatever happens to nodes, network and PostgreSQL.
pub const ANSWER_MAX: Duration = Duration::from_secs(10);
/// What a busy machine may add.
pub const SLACK: Duration = Duration::from_secs(1);
/// Writers of the load.
const WRITERS_COUNT: usize = 8;
/// Callers that page the events all the time.
const FOLLOWERS_COUNT: usize = 2;
/// Payments that the load makes at least, so that a verdict on it means something, and how long a
/// slow machine is given for them.
const PAYMENTS_MIN: usize = 12;
const PAYMENTS_PATIENCE: Duration = Duration::from_secs(60);

/// A place for a node on a database: no rate limits.
pub fn home(url: &str) -> Home {
    Home::new("node")
        .on(url)
        .with("HUNDI_RATE_LIMIT_READS", "0")
        .with("HUNDI_RATE_LIMIT_WRITES", "0")
}

/// Where a node runs, and the node, unless it is down.
pub struct Node {
    pub home: Home,
    pub address: SocketAddr,
    server: Option<Server>,
}

impl Node {
    /// Starts on a port that it finds again after a kill.
    pub fn start(home: Home) -> Node {
        let server = home.start_on_own_port();
        Node { address: server.address(), home, server: Some(server) }
    }

    pub fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill_now();
        }
    }
    pub fn start_again(&mut self) {
        self.server = Some(self.home.start_as(&[], &self.address.to_string()));
    }
    pub fn is_up(&self) -> bool {
        self.server.is_some()
    }
    pub fn is_ready(&self) -> bool {
        self.server.as_ref().is_some_and(Server::is_ready)
    }
    /// Asks it to end, and waits until it has.
    pub fn stop(&mut self) {
        let server = self.server.take().expect("a node that is up");
        assert!(server.stop().success(), "a node did not end well");
    }
    /// Waits until a node that was asked to end has ended.
    pub fn await_end(&mut self) {
        let mut server = self.server.take().expect("a node that is up");
        assert!(server.await_end(Duration::from_secs(30)).success(), "a node did not end well");
    }
    /// A page that needs no key.
    pub fn page(&self, path: &str) -> String {
        Client::new(self.address, "").get(path).text()
    }
    /// Sends a signal by name, such as `STOP`.
    pub fn signal(&self, name: &str) {
        self.server.as_ref().expect("a node that is up").signal(name);
    }
    pub fn client(&self, api_key: &str) -> Client {
        Client::new(self.address, api_key)
    }
}

/// Nodes on one database, and a key of it.
pub struct Nodes {
    pub nodes: Vec<Node>,
    pub api_key: String,
    /// A key of another account.
    pub probe_key: String,
}

impl Nodes {
    /// One node a URL, all of the same database; `shape` sets what is special about each.
    pub fn start(urls: &[String], shape: impl Fn(usize, Home) -> Home) -> Nodes {
        let nodes: Vec<Node> = urls
            .iter()
            .enumerate()
            .map(|(index, url)| Node::start(shape(index, home(url))))
            .collect();
        let api_key = nodes[0].home.key();
        let probe_key = nodes[0].home.key_with(&["--account", "probe"]);
        Nodes { nodes, api_key, probe_key }
    }

    /// Two nodes, each behind a proxy of its own before the database.
    pub fn behind_proxies(database: &Database, seed: u64) -> (Vec<Proxy>, Nodes) {
        let admin_url = Cluster::shared_url();
        let proxies: Vec<Proxy> = (0..2)
            .map(|index| Proxy::start(database.server_address(), &admin_url, seed ^ index))
            .collect();
        let urls: Vec<String> =
            proxies.iter().map(|proxy| database.url_at(proxy.address)).collect();
        let nodes = Nodes::start(&urls, |_, home| home);
        (proxies, nodes)
    }

    /// Nodes that have nothing special about them.
    pub fn plain(count: usize, url: &str) -> Nodes {
        Nodes::start(&vec![url.to_owned(); count], |_, home| home)
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(|node| node.address).collect()
    }
    pub fn clients(&self) -> Vec<Client> {
        self.nodes.iter().map(|node| node.client(&self.api_key)).collect()
    }
    /// A client of a node that is up.
    pub fn client(&self) -> Client {
        self.nodes
            .iter()
            .find(|node| node.is_up())
            .expect("a node that is up")
            .client(&self.api_key)
    }
    pub fn panics(&self) -> Vec<String> {
        self.nodes.iter().flat_map(|node| node.home.panics()).collect()
    }
    pub fn check(&self) {
        self.nodes[0].home.check().expect_success("the check");
    }
}

/// Waits until every node is ready and has written something.
pub fn await_service(nodes: &Nodes) -> Duration {
    let started = Instant::now();
    for node in nodes.nodes.iter().filter(|node| node.is_up()) {
        until("a node to be ready again", Duration::from_secs(30), || {
            node.is_ready().then_some(())
        });
        // Of another account, whose objects the load's judge does not look at.
        let (mut client, key, body) =
            (node.client(&nodes.probe_key), fresh_key(), steps::sender_body().to_string());
        until("a node to write again", Duration::from_secs(30), || {
            client
                .once("POST", "/v1/senders", Some(&key), Some(body.as_bytes()))
                .ok()
                .filter(Answer::is_success)
                .map(drop)
        });
    }
    started.elapsed()
}

/// What the load saw.
pub struct Aftermath {
    pub findings: Vec<Finding>,
    pub payments_count: usize,
    pub operations_count: usize,
    pub events_count: usize,
    /// The longest that any request was waited for.
    pub slowest: Duration,
    /// Answers that asked the caller to come again later.
    pub unavailable_count: usize,
}

impl Aftermath {
    pub fn tell(&self, what: &str) {
        let Aftermath { payments_count, operations_count, events_count, slowest, .. } = self;
        println!(
            "{what}: {operations_count} operations, {payments_count} payments settled, \
             {events_count} events, slowest {slowest:?}"
        );
    }
    /// Nothing lost, nothing doubled, no request waited for too long, and enough of it for that to
    /// mean something.
    pub fn expect_sound(&self) {
        assert!(
            self.findings.is_empty(),
            "{} findings\n{}",
            self.findings.len(),
            oracle::show(&self.findings)
        );
        assert!(
            self.payments_count >= PAYMENTS_MIN,
            "only {} payments were made",
            self.payments_count
        );
        assert!(self.slowest <= ANSWER_MAX + SLACK, "a request was waited for {:?}", self.slowest);
    }
    pub fn losses_count(&self) -> usize {
        self.findings.iter().filter(|finding| matches!(finding, Finding::Lost(_))).count()
    }
}

/// Runs the load over all nodes while `trouble` is made, lets everything settle on the nodes that
/// are then up, and judges. With `settles` off only what was acknowledged is judged, at once.
pub fn under_load(
    nodes: &mut Nodes,
    seed: u64,
    settles: bool,
    trouble: impl FnOnce(&mut Nodes, &mut Random),
) -> Aftermath {
    under_this_load(Load::default(), nodes, seed, settles, trouble)
}

/// The same with a load of another size.
pub fn under_this_load(
    load: Load,
    nodes: &mut Nodes,
    seed: u64,
    settles: bool,
    trouble: impl FnOnce(&mut Nodes, &mut Random),
) -> Aftermath {
    let receiver = Receiver::start();
    receiver.register(&mut nodes.client());
    let following_is_over = AtomicBool::new(false);
    let (addresses, api_key) = (nodes.addresses(), nodes.api_key.clone());
    std::thread::scope(|scope| {
        let (load, following_is_over) = (&load, &following_is_over);
        let writers: Vec<_> = (0..WRITERS_COUNT)
            .map(|index| {
                let writer =
                    Writer::new(load, seed ^ (index as u64 + 1) << 32, &addresses, &api_key);
                scope.spawn(move || writer.run())
            })
            .collect();
        let followers: Vec<_> = (0..FOLLOWERS_COUNT)
            .map(|index| {
                let client = Client::new(addresses[index % addresses.len()], &api_key);
                scope.spawn(move || follow_events(client, following_is_over))
            })
            .collect();
        // Whatever fails in here must not leave the writers running, or the scope never ends.
        let until_payments = |count| {
            until("the load to make payments", PAYMENTS_PATIENCE, || {
                (load.payments_count() >= count).then_some(())
            })
        };
        let troubled = catch_unwind(AssertUnwindSafe(|| {
            until_payments(1);
            trouble(nodes, &mut Random::new(seed));
            if settles {
                until_payments(PAYMENTS_MIN);
            }
        }));
        load.end();
        let journals: Vec<Journal> =
            writers.into_iter().map(|writer| writer.join().expect("a writer")).collect();
        let settled = catch_unwind(AssertUnwindSafe(|| {
            if troubled.is_ok() && settles {
                oracle::await_quiet(&mut nodes.client(), &journals, &receiver);
                // A follower of a node that stays down would never see the end.
                nodes.nodes.iter_mut().filter(|node| !node.is_up()).for_each(Node::start_again);
            }
        }));
        following_is_over.store(true, Ordering::Relaxed);
        let followed: Vec<Vec<String>> =
            followers.into_iter().map(|follower| follower.join().expect("a follower")).collect();
        for outcome in [troubled, settled] {
            outcome.unwrap_or_else(|panic| resume_unwind(panic));
        }
        let mut client = nodes.client();
        let mut random = Random::new(seed);
        let mut findings = if settles {
            let mut findings =
                oracle::verdict(&mut client, &journals, &receiver, &followed[0], &mut random);
            if followed.iter().any(|other| *other != followed[0]) {
                findings
                    .push(Finding::Lost("two followers of the events saw different events".into()));
            }
            findings
        } else {
            let objects = oracle::objects(&mut client);
            oracle::losses(&mut client, &journals, &objects, &mut random)
        };
        findings.extend(nodes.panics().into_iter().map(Finding::Wrong));
        Aftermath {
            payments_count: oracle::paid_transfers(&journals).len(),
            operations_count: journals.iter().map(|journal| journal.operations.len()).sum(),
            unavailable_count: journals
                .iter()
                .flat_map(|journal| &journal.operations)
                .flat_map(|operation| &operation.answers)
                .filter(|answer| answer.status == 503)
                .count(),
            slowest: journals.iter().map(|journal| journal.slowest).max().unwrap_or_default(),
            events_count: followed[0].len(),
            findings,
        }
    })
}
