//! Stands between a node and PostgreSQL and fails like a network: it delays, holds back, cuts and
//! resets, and it knows a COMMIT when it sees one, so that the answer to it can be lost.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::support::Random;
use crate::support::postgres::try_sql;

/// What becomes of a connection that sends COMMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtCommit {
    /// Cut before the server has it: nothing was committed.
    CutBefore,
    /// The server commits, and the node never hears of it.
    CutAfter,
    /// The server's own process for the connection is ended first.
    TerminateBefore,
    /// The server's own process is ended while it commits.
    TerminateDuring,
}

/// How the network behaves; the default is well.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Added on each way.
    pub delay: Duration,
    /// Nothing comes through, on old connections and new ones, and nobody is told. What was sent
    /// meanwhile arrives late.
    pub holds_all: bool,
    /// A connection that sends COMMIT is held there.
    pub holds_commits: bool,
    /// New connections are reset.
    pub refuses: bool,
    /// What a new connection takes longer.
    pub connect_delay: Duration,
    /// How many COMMITs in a hundred fail, and in which ways.
    pub commits_percent: u64,
    pub at_commit: Vec<AtCommit>,
    /// How many COMMITs may still be made to fail.
    pub commits_left: u64,
}

struct Shared {
    /// Where new connections lead.
    server: Mutex<SocketAddr>,
    admin_url: String,
    faults: watch::Sender<Faults>,
    /// A new number cuts every connection that began before it.
    cuts: watch::Sender<u64>,
    random: Mutex<Random>,
    commits_count: AtomicU64,
    commits_failed_count: AtomicU64,
}

pub struct Proxy {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    /// Its threads carry the connections.
    _runtime: Runtime,
}

impl Proxy {
    /// In front of a server; `admin_url` is a superuser's, for ending the server's own processes.
    pub fn start(server: SocketAddr, admin_url: &str, seed: u64) -> Proxy {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            server: Mutex::new(server),
            admin_url: admin_url.to_owned(),
            faults: watch::Sender::new(Faults::default()),
            cuts: watch::Sender::new(0),
            random: Mutex::new(Random::new(seed)),
            commits_count: AtomicU64::new(0),
            commits_failed_count: AtomicU64::new(0),
        });
        let carrying = shared.clone();
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, carrying.clone()));
            }
        });
        Proxy { address, shared, _runtime: runtime }
    }

    pub fn change(&self, change: impl FnOnce(&mut Faults)) {
        self.shared.faults.send_modify(change);
    }
    /// The next COMMITs fail in one of these ways, until so many have.
    pub fn fail_commits(&self, count: u64, percent: u64, ways: &[AtCommit]) {
        self.change(|faults| {
            (faults.commits_left, faults.commits_percent, faults.at_commit) =
                (count, percent, ways.to_vec())
        });
    }
    /// A network as it should be, from now on.
    pub fn heal(&self) {
        self.shared.faults.send_replace(Faults::default());
    }
    /// New connections lead to another server; those that are open stay.
    pub fn lead_to(&self, server: SocketAddr) {
        *self.shared.server.lock().unwrap_or_else(PoisonError::into_inner) = server;
    }
    /// Resets every connection that is open now.
    pub fn cut(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }
    /// COMMITs that were seen, and those of them that were made to fail.
    pub fn commits(&self) -> (u64, u64) {
        (
            self.shared.commits_count.load(Ordering::Relaxed),
            self.shared.commits_failed_count.load(Ordering::Relaxed),
        )
    }
}

impl Shared {
    /// Whether this COMMIT fails, and how.
    fn draw(&self) -> Option<AtCommit> {
        self.commits_count.fetch_add(1, Ordering::Relaxed);
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let mut drawn = None;
        self.faults.send_if_modified(|faults| {
            if faults.commits_left > 0
                && !faults.at_commit.is_empty()
                && random.chance(faults.commits_percent)
            {
                faults.commits_left -= 1;
                drawn = Some(*random.pick(&faults.at_commit));
            }
            false
        });
        self.commits_failed_count.fetch_add(u64::from(drawn.is_some()), Ordering::Relaxed);
        drawn
    }

    async fn terminate(self: &Arc<Shared>, process_id: i32) {
        let shared = self.clone();
        // The process may be gone already.
        let _ = tokio::task::spawn_blocking(move || {
            try_sql(&shared.admin_url, &format!("SELECT pg_terminate_backend({process_id})"))
                .map_err(drop)
        })
        .await;
    }

    /// Waits out what the network does to a packet.
    async fn travel(&self) {
        let delay = self.faults.borrow().delay;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let mut faults = self.faults.subscribe();
        // The sender lives as long as the proxy.
        let _ = faults.wait_for(|faults| !faults.holds_all).await;
    }
}

/// What both ways of a connection know of it.
#[derive(Default)]
struct Talk {
    process_id: Mutex<i32>,
    /// The next COMMIT's answer must not arrive.
    swallows_commit: std::sync::atomic::AtomicBool,
}

async fn carry(client: TcpStream, shared: Arc<Shared>) {
    if shared.faults.borrow().refuses {
        let _ = client.set_zero_linger();
        return;
    }
    let mut cuts = shared.cuts.subscribe();
    cuts.borrow_and_update();
    let connect_delay = shared.faults.borrow().connect_delay;
    tokio::time::sleep(connect_delay).await;
    let server = *shared.server.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(server) = TcpStream::connect(server).await else { return };
    // Half of the connections end with a reset when they are cut, the others with a close.
    let is_reset = shared.random.lock().unwrap_or_else(PoisonError::into_inner).chance(50);
    for stream in [&client, &server] {
        let _ = stream.set_nodelay(true);
        if is_reset {
            let _ = stream.set_zero_linger();
        }
    }
    let talk = Arc::new(Talk::default());
    let (client_read, client_write) = client.into_split();
    let (server_read, server_write) = server.into_split();
    {
        let forth = go_forth(client_read, server_write, &shared, &talk);
        let back = go_back(server_read, client_write, &shared, &talk);
        tokio::pin!(forth, back);
        let (mut went, mut came) = (None, None);
        while went.is_none() || came.is_none() {
            tokio::select! {
                // A side that closes lets the other way finish; an error or a cut does not.
                done = &mut forth,
                    if went.is_none() => match done { Some(half) => went = Some(half),
                    None => break },
                done = &mut back, if came.is_none() => match done { Some(half) => came = Some(half),
                    None => break },
                _ = cuts.changed() => break,
            }
        }
    }
}

/// One message of the protocol, its type's letter first; the first message of a connection has none
/// and reads as 0.
async fn read_message(from: &mut BufReader<OwnedReadHalf>, has_type: bool) -> Option<Vec<u8>> {
    let mut message = vec![0; 5];
    let start = if has_type { 0 } else { 1 };
    from.read_exact(&mut message[start..]).await.ok()?;
    let length = i32::from_be_bytes([message[1], message[2], message[3], message[4]]);
    let rest = usize::try_from(length).ok()?.checked_sub(4)?;
    message.resize(5 + rest, 0);
    from.read_exact(&mut message[5..]).await.ok()?;
    Some(message)
}

/// A text that ends in NUL, and what follows it.
fn split_text(bytes: &[u8]) -> (String, &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    (String::from_utf8_lossy(&bytes[..end]).into_owned(), bytes.get(end + 1..).unwrap_or_default())
}

fn is_commit(statement: &str) -> bool {
    let upper = statement.to_ascii_uppercase();
    upper.split(';').any(|part| matches!(part.split_whitespace().next(), Some("COMMIT" | "END")))
}

/// From the node to the server. `None` ends the connection at once.
async fn go_forth(
    from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Arc<Shared>,
    talk: &Talk,
) -> Option<OwnedWriteHalf> {
    let mut from = BufReader::new(from);
    let mut is_begun = false;
    let mut commits: HashSet<String> = HashSet::new();
    loop {
        let is_packet = from.buffer().is_empty();
        let Some(message) = read_message(&mut from, is_begun).await else {
            // The node has closed: the server is told.
            let _ = to.shutdown().await;
            return Some(to);
        };
        if is_packet {
            shared.travel().await;
        }
        if !is_begun {
            // Asking for TLS (80877103) is followed by the real start; the tests' server refuses
            // it.
            is_begun = message[5..9] != 80_877_103_i32.to_be_bytes();
            to.write_all(&message[1..]).await.ok()?;
            continue;
        }
        let is_commit = match message[0] {
            b'Q' => is_commit(&split_text(&message[5..]).0),
            b'P' => {
                let (name, rest) = split_text(&message[5..]);
                let is_commit = is_commit(&split_text(rest).0);
                if is_commit {
                    commits.insert(name)
                } else {
                    commits.remove(&name)
                };
                false
            }
            b'B' => {
                let (_, rest) = split_text(&message[5..]);
                commits.contains(&split_text(rest).0)
            }
            _ => false,
        };
        if is_commit && shared.faults.borrow().holds_commits {
            shared.commits_failed_count.fetch_add(1, Ordering::Relaxed);
            let mut faults = shared.faults.subscribe();
            let _ = faults.wait_for(|faults| !faults.holds_commits).await;
        }
        let process_id = *talk.process_id.lock().unwrap_or_else(PoisonError::into_inner);
        match is_commit.then(|| shared.draw()).flatten() {
            None => {}
            Some(AtCommit::CutBefore) => return None,
            Some(AtCommit::CutAfter) => talk.swallows_commit.store(true, Ordering::Relaxed),
            Some(AtCommit::TerminateBefore) => shared.terminate(process_id).await,
            Some(AtCommit::TerminateDuring) => {
                to.write_all(&message).await.ok()?;
                shared.terminate(process_id).await;
                continue;
            }
        }
        to.write_all(&message).await.ok()?;
    }
}

/// From the server to the node. `None` ends the connection at once.
async fn go_back(
    from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Arc<Shared>,
    talk: &Talk,
) -> Option<OwnedWriteHalf> {
    let mut from = BufReader::new(from);
    let mut is_begun = false;
    loop {
        if !is_begun {
            let mut first = [0];
            from.read_exact(&mut first).await.ok()?;
            to.write_all(&first).await.ok()?;
            // 'N' alone answers the question for TLS; anything else is the first message's type.
            if first[0] == b'N' {
                continue;
            }
            is_begun = true;
            let mut rest = read_message(&mut from, false).await?;
            rest.remove(0);
            to.write_all(&rest).await.ok()?;
            continue;
        }
        let is_packet = from.buffer().is_empty();
        let Some(message) = read_message(&mut from, true).await else {
            let _ = to.shutdown().await;
            return Some(to);
        };
        if message[0] == b'K' {
            let id = message[5..9].try_into().map_or(0, i32::from_be_bytes);
            *talk.process_id.lock().unwrap_or_else(PoisonError::into_inner) = id;
        }
        if message[0] == b'C'
            && split_text(&message[5..]).0 == "COMMIT"
            && talk.swallows_commit.swap(false, Ordering::Relaxed)
        {
            return None;
        }
        if is_packet {
            shared.travel().await;
        }
        to.write_all(&message).await.ok()?;
    }
}
