//! Many idle connections: they lock nobody out, whatever the limit on open files.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use crate::support::client::until;
use crate::support::{Connection, Home, Receiver, Server, steps};

/// Makes room in this process for so many sockets; `false` where the machine's hard limit is lower.
fn has_room(count: usize) -> bool {
    let own = std::process::id().to_string();
    let soft = format!("--nofile={count}:");
    let raised = Command::new("prlimit").args(["--pid", &own, &soft]).status();
    let raised = raised.expect("prlimit of util-linux is needed for this test").success();
    if !raised {
        println!("skipped: this machine lets no process have {count} descriptors");
    }
    raised
}

fn idle(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    let open = |_| TcpStream::connect_timeout(&address, Duration::from_secs(10));
    (0..count).map(open).collect::<Result<_, _>>().expect("a connection")
}

fn connections(server: &Server) -> usize {
    let page = server.client("").get("/metrics").text();
    let line = page.lines().find_map(|line| line.strip_prefix("hundi_http_connections "));
    line.and_then(|figure| figure.parse().ok()).expect("hundi_http_connections")
}

/// Everybody is served while strangers hold `idle_count` connections and say nothing.
fn serve_beside(name: &str, nofile: &str, idle_count: usize, connections_max: usize) {
    let home = Home::new(name).with("HUNDI_METRICS", "true");
    let server = home.start_as(&["prlimit", nofile], "127.0.0.1:0");
    let mut client = server.client(&home.key());
    let receiver = Receiver::start();
    receiver.register(&mut client);
    let mut early = Connection::open(server.address()).expect("a connection");
    let strangers = idle(server.address(), idle_count);
    assert_eq!(server.probe("/healthz"), Some(200));
    assert_eq!(server.probe("/readyz"), Some(200));
    // The database and deliveries have descriptors of their own.
    let payment = steps::six_steps(&mut client, "55.00");
    until("its events to be delivered", Duration::from_secs(20), || {
        let path = format!("&linked_id={}", payment.transfer_id);
        let ids = client.list("/v1/events", &path);
        let ids = ids.iter().map(|event| steps::text(event, "id")).collect::<Vec<_>>();
        ids.iter().all(|id| receiver.valid_count(id) > 0).then_some(())
    });
    home.run(&["keys", "list"]).expect_success("a command beside it");
    let count = connections(&server);
    assert!(count <= connections_max, "{count} connections, {connections_max} at most");
    assert!(count > connections_max / 2, "the strangers were not taken: {count}");
    // The one that was idle longest went first.
    let answer = early.send(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
    let answer = answer.and_then(|()| early.receive(true));
    assert!(!matches!(answer, Ok(Some(_))), "the longest idle connection still answers");
    drop(strangers);
    assert!(server.stop().success());
}

#[test]
fn more_idle_connections_than_there_is_room_for_lock_nobody_out() {
    if has_room(12_000) {
        serve_beside("idle-4100", "--nofile=12000:", 4_100, 4_096);
    }
}

#[test]
fn connections_follow_the_limit_on_open_files() {
    if has_room(2_000) {
        serve_beside("idle-nofile", "--nofile=1024:", 1_100, 512);
    }
}

/// Nor do strangers who hold all connections with requests whose bodies never come: such a
/// connection makes room like an idle one.
#[test]
fn slow_bodies_lock_nobody_out() {
    if !has_room(2_000) {
        return;
    }
    let home = Home::new("slow-bodies");
    let server = home.start_as(&["prlimit", "--nofile=1024:"], "127.0.0.1:0");
    let key = home.key();
    let mut strangers = Vec::new();
    for number in 0..600 {
        let head = format!(
            "POST /v1/senders HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n\
             Idempotency-Key: a-slow-body-{number:08}\r\nContent-Type: application/json\r\n\
             Content-Length: 100\r\n\r\n{{"
        );
        let mut stranger = idle(server.address(), 1).remove(0);
        stranger.write_all(head.as_bytes()).expect("a head");
        strangers.push(stranger);
    }
    assert_eq!(server.probe("/healthz"), Some(200));
    // Some were closed without an answer to make room. If none could be, all would keep their
    // places until the time for the body is over, and get a refusal.
    let are_unanswered = strangers.iter_mut().take(20).map(|stranger| {
        let mut said = Vec::new();
        let _ = stranger.read_to_end(&mut said);
        said.is_empty()
    });
    assert!(are_unanswered.filter(|is| *is).count() > 0, "every slow body kept its place");
    drop(strangers);
    assert!(server.stop().success());
}

/// Nor does a stranger who has begun a request hold up a stop.
#[test]
fn a_head_that_does_not_end_holds_up_no_stop() {
    let home = Home::new("half-a-head");
    let server = home.start();
    let mut stranger = idle(server.address(), 1).remove(0);
    stranger.write_all(b"GET / HT").expect("half a head");
    assert_eq!(server.probe("/healthz"), Some(200));
    assert!(server.stop().success());
    assert!(!home.log().contains("the time for a stop ran out"), "{}", home.log());
}
