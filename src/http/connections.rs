//! Which connections are open, and which one is closed when there is no room for another.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

use crate::kernel::network_of;

/// The highest limit on connections, however many files may be open.
pub const CONNECTIONS_MAX: usize = 4_096;
/// The lowest limit on connections, however few files may be open.
pub const CONNECTIONS_MIN: usize = 16;
/// File descriptors that are left to the database, to deliveries (512 at once) and to files.
pub const DESCRIPTORS_RESERVED: usize = 768;
/// The divisor for the share of all connections that one peer may have. A reverse proxy on the same
/// machine stands for many peers and has no such limit.
const PEER_SHARE_DIVISOR: usize = 2;

/// The divisor for the console's share of all connections, if it listens.
const CONSOLE_SHARE_DIVISOR: usize = 4;
/// The most connections of the console.
const CONSOLE_CONNECTIONS_MAX: usize = 128;

/// The most requests that may wait for an event at the same time, whatever the limit on open files.
const WAITS_MAX: usize = 1_024;

/// How many requests may wait for an event at the same time: at most half of the connections that
/// the API has when the console listens too. So other requests still find a connection.
pub fn waits_max() -> usize {
    let count = descriptors_max().map_or(CONNECTIONS_MAX, connections_for);
    WAITS_MAX.min(shares(count, true).api / 2)
}

/// How many of a process's connections the API and the console may each have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shares {
    pub api: usize,
    pub console: usize,
}

/// Divides `count` connections between the API and, if it listens, the console. So both together
/// keep within the process's limit on open files.
pub fn shares(count: usize, console_listens: bool) -> Shares {
    let console = match console_listens {
        true => (count / CONSOLE_SHARE_DIVISOR).min(CONSOLE_CONNECTIONS_MAX),
        false => 0,
    };
    Shares { api: count - console, console }
}

/// How many connections a limit on open files has room for. If the limit is small, at most half of
/// it is reserved for other files.
pub fn connections_for(descriptors: usize) -> usize {
    let reserved = DESCRIPTORS_RESERVED.min(descriptors / 2);
    descriptors.saturating_sub(reserved).clamp(CONNECTIONS_MIN, CONNECTIONS_MAX)
}

/// The process's limit on open files (`RLIMIT_NOFILE`), if the system shows it.
pub fn descriptors_max() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let soft = line.split_whitespace().next()?;
    Some(soft.parse().unwrap_or(usize::MAX))
}

/// One open connection.
struct OpenConnection {
    peer: Option<IpAddr>,
    /// Since when no request is being answered on it; `None` while one is.
    idle_since: Option<Instant>,
    /// Whether it was told to close.
    is_closing: bool,
    closing: Arc<Notify>,
}

#[derive(Default)]
struct ConnectionTable {
    entries: HashMap<u64, OpenConnection>,
    /// Connections that were told to close but are still open.
    closing_count: usize,
    next_number: u64,
}

/// The open connections of a server.
pub struct Connections {
    table: Mutex<ConnectionTable>,
    count_max: usize,
    count_per_peer_max: usize,
    /// Signalled whenever a connection ends, becomes idle, or begins a request instead of closing.
    changed: Notify,
}

/// Who shares a limit: one IPv4 address, or one IPv6 network of 64 bits. `None` for this machine
/// itself.
fn peer_of(address: IpAddr) -> Option<IpAddr> {
    (!address.to_canonical().is_loopback()).then(|| network_of(address))
}

impl Connections {
    pub fn new(count_max: usize) -> Arc<Connections> {
        Arc::new(Connections {
            table: Mutex::default(),
            count_max,
            count_per_peer_max: (count_max / PEER_SHARE_DIVISOR).max(1),
            changed: Notify::new(),
        })
    }

    fn table(&self) -> MutexGuard<'_, ConnectionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for one more connection. If there is none, closes the connection
    /// that was idle longest.
    pub async fn make_room(&self) {
        loop {
            let changed = self.changed.notified();
            {
                let mut table = self.table();
                let count = table.entries.len();
                if count < self.count_max {
                    return;
                }
                // Each connection that was told to close will make room for one. Another one is
                // told to close only if these do not make enough room.
                if count - table.closing_count >= self.count_max {
                    close_longest_idle(&mut table, |_| true);
                }
            }
            changed.await;
        }
    }

    /// Tells all idle connections to close, at a stop.
    pub fn close_idle(&self) {
        let mut table = self.table();
        while close_longest_idle(&mut table, |_| true) {}
    }

    /// Admits a new connection. If its peer has its full share already, the new connection takes
    /// the place of the peer's longest idle one. `None` if the share is full and none of the peer's
    /// connections is idle.
    pub fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Admitted> {
        let peer = peer_of(address);
        let mut table = self.table();
        let of_peer = table.entries.values().filter(|entry| entry.peer == peer).count();
        if peer.is_some()
            && of_peer >= self.count_per_peer_max
            && !close_longest_idle(&mut table, |entry| entry.peer == peer)
        {
            return None;
        }
        let number = table.next_number;
        table.next_number += 1;
        let closing = Arc::new(Notify::new());
        let entry = OpenConnection {
            peer,
            idle_since: Some(Instant::now()),
            is_closing: false,
            closing: closing.clone(),
        };
        table.entries.insert(number, entry);
        Some(Admitted { connections: self.clone(), number, closing })
    }
}

/// Of the chosen connections, tells the one that was idle longest to close. `false` if none of them
/// is idle.
fn close_longest_idle(
    table: &mut ConnectionTable,
    is_chosen: impl Fn(&OpenConnection) -> bool,
) -> bool {
    let idle = table.entries.iter().filter(|(_, entry)| !entry.is_closing && is_chosen(entry));
    let longest = idle
        .filter_map(|(number, entry)| Some((entry.idle_since?, *number)))
        .min()
        .map(|(_, number)| number);
    let Some(entry) = longest.and_then(|number| table.entries.get_mut(&number)) else {
        return false;
    };
    entry.is_closing = true;
    entry.closing.notify_one();
    table.closing_count += 1;
    true
}

/// A connection's place among the open ones. Dropping it frees the place.
pub struct Admitted {
    connections: Arc<Connections>,
    number: u64,
    closing: Arc<Notify>,
}

impl Admitted {
    /// Waits until the connection must close, to make room or at a stop. The connection stays open
    /// if a request began at the same moment.
    pub async fn closing(&self) {
        loop {
            self.closing.notified().await;
            let mut table = self.connections.table();
            let Some(entry) = table.entries.get_mut(&self.number) else { return };
            if entry.idle_since.is_some() {
                return;
            }
            entry.is_closing = false;
            table.closing_count -= 1;
            drop(table);
            self.connections.changed.notify_waiters();
        }
    }
    /// A handle with which the connection's requests say when they begin and end.
    pub fn activity(&self) -> Activity {
        Activity { connections: self.connections.clone(), number: self.number }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut table = self.connections.table();
        let ended = table.entries.remove(&self.number);
        if ended.is_some_and(|entry| entry.is_closing) {
            table.closing_count -= 1;
        }
        drop(table);
        self.connections.changed.notify_waiters();
    }
}

/// Tells the table when a connection's requests begin and end.
#[derive(Clone)]
pub struct Activity {
    connections: Arc<Connections>,
    number: u64,
}

impl Activity {
    pub fn begin(&self) {
        self.set(None);
    }
    pub fn end(&self) {
        self.set(Some(Instant::now()));
        self.connections.changed.notify_waiters();
    }
    fn set(&self, idle_since: Option<Instant>) {
        if let Some(entry) = self.connections.table().entries.get_mut(&self.number) {
            entry.idle_since = idle_since;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn peer(number: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, number])
    }

    #[test]
    fn some_open_files_are_left_to_the_database_and_deliveries() {
        for (descriptors, connections) in
            [(8, 16), (64, 32), (1_024, 512), (4_096, 3_328), (65_536, 4_096), (usize::MAX, 4_096)]
        {
            assert_eq!(connections_for(descriptors), connections, "{descriptors}");
        }
        assert!(descriptors_max().is_none_or(|count| count > 0));
    }

    #[test]
    fn api_and_console_share_the_connections() {
        for (count, api, console) in [(16, 12, 4), (512, 384, 128), (4_096, 3_968, 128)] {
            assert_eq!(shares(count, true), Shares { api, console });
            assert_eq!(shares(count, false), Shares { api: count, console: 0 });
        }
    }

    async fn is_told_to_close(admitted: &Admitted) -> bool {
        tokio::time::timeout(Duration::from_millis(1), admitted.closing()).await.is_ok()
    }

    #[tokio::test]
    async fn the_longest_idle_connection_makes_room() {
        let connections = Connections::new(3);
        let all: Vec<_> = (0..3).map(|_| connections.admit(LOCAL).unwrap()).collect();
        all[0].activity().begin();
        let waiting = tokio::time::timeout(Duration::from_millis(20), connections.make_room());
        assert!(waiting.await.is_err(), "nothing has closed yet");
        assert!(!is_told_to_close(&all[0]).await, "a request is being answered on it");
        assert!(is_told_to_close(&all[1]).await, "it was idle longest");
        assert!(!is_told_to_close(&all[2]).await, "one is enough");
        let mut all = all.into_iter();
        let (busy, longest) = (all.next().unwrap(), all.next().unwrap());
        drop(longest);
        tokio::time::timeout(Duration::from_secs(1), connections.make_room()).await.unwrap();
        drop(busy);
    }

    #[tokio::test]
    async fn if_all_are_busy_the_first_to_end_its_request_is_closed() {
        let connections = Connections::new(1);
        let only = connections.admit(LOCAL).unwrap();
        only.activity().begin();
        let shared = connections.clone();
        let room = tokio::spawn(async move { shared.make_room().await });
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(!is_told_to_close(&only).await);
        only.activity().end();
        tokio::time::timeout(Duration::from_secs(1), only.closing()).await.unwrap();
        drop(only);
        tokio::time::timeout(Duration::from_secs(1), room).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_peer_has_a_share_of_the_places() {
        let connections = Connections::new(4);
        let own: Vec<_> = (0..2).map(|_| connections.admit(peer(1)).unwrap()).collect();
        let third = connections.admit(peer(1)).unwrap();
        assert!(
            is_told_to_close(&own[0]).await && !is_told_to_close(&own[1]).await,
            "the third takes the place of the peer's longest idle connection"
        );
        own[1].activity().begin();
        third.activity().begin();
        assert!(connections.admit(peer(1)).is_none(), "all connections of this peer are busy");
        assert!(connections.admit(peer(2)).is_some(), "another peer has its own share");
        // A proxy on this machine stands for many.
        let proxied: Vec<_> = (0..3).map(|_| connections.admit(LOCAL).unwrap()).collect();
        assert_eq!(proxied.len(), 3);
    }

    #[test]
    fn peers_of_one_ipv6_network_share() {
        let peers = ["2001:db8::1", "2001:db8::2:0:0:1", "2001:db8:0:1::1", "::ffff:192.0.2.1"]
            .map(|text| peer_of(text.parse().unwrap()));
        assert_eq!(peers[0], peers[1]);
        assert_ne!(peers[0], peers[2]);
        assert_eq!(peers[3], Some(peer(1)));
        assert_eq!(peer_of("::1".parse().unwrap()), None);
    }
}
