//! `hundi listen` over a sleep of its machine, over a connection that dies without a word, and
//! without a receiver.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Running, draft};
use crate::support::{Client, Home, Receiver, Server, until};

const PATIENCE: Duration = Duration::from_secs(60);
/// Events that happen while the listener's machine sleeps.
const SLEPT_COUNT: usize = 30;

/// A listener that keeps its place in the home's folder.
fn listen(home: &Home, server: &Server, key: &str, more: &[&str]) -> Child {
    listen_at(home, server.address(), key, more)
}

fn listen_at(home: &Home, address: SocketAddr, key: &str, more: &[&str]) -> Child {
    let state = home.directory.join("place.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hundi"));
    command.args(["listen", "--state", state.to_str().unwrap()]).args(more);
    command.env("HUNDI_API_KEY", key);
    command.env("HUNDI_BASE_URL", format!("http://{address}"));
    command.stdout(Stdio::piped()).stderr(Stdio::null()).stdin(Stdio::null());
    command.spawn().unwrap()
}

/// A receiver that trusts the listeners of this key.
fn trusted_receiver(home: &Home, key: &str) -> Receiver {
    let receiver = Receiver::start();
    let secret = home.run_plain(&["listen", "--print-secret", "--api-key", key]);
    receiver.trust(&secret.expect_success("the secret").last_line());
    receiver
}

/// Waits until the listener knows its place, and forwards a first event.
fn forward_first(home: &Home, client: &mut Client, receiver: &Receiver) {
    let state = home.directory.join("place.json");
    until("the listener to know its place", PATIENCE, || state.exists().then_some(()));
    draft(client);
    until("the first event", PATIENCE, || (receiver.events_count() == 1).then_some(()));
}

/// Waits for the first event and those behind it: each arrived once, as the API has it, signed, and
/// in the API's order.
fn expect_each_once(client: &mut Client, receiver: &Receiver) {
    until("every event", PATIENCE, || (receiver.events_count() == 1 + SLEPT_COUNT).then_some(()));
    let events = client.list("/v1/events", "");
    assert_eq!(events.len(), 1 + SLEPT_COUNT);
    for (index, event) in events.iter().enumerate() {
        let record = receiver.record(event["id"].as_str().unwrap()).expect("a forwarded event");
        assert_eq!((&record.event, record.count, record.valid_count), (event, 1, 1));
        assert_eq!(record.position, index, "it came out of order: {event}");
    }
    assert_eq!(receiver.problems().0, 0, "{:?}", receiver.problems());
}

fn signal(process: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &process.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "kill {name}");
}

/// Whether a process is stopped, as the system says.
fn is_stopped(process: &Child) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap();
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
}

#[test]
fn a_listener_that_slept_while_its_connection_closed_loses_nothing() {
    let home = Home::new("listen-sleep");
    let mut server = home.start_on_own_port();
    let key = home.key();
    let mut client = server.client(&key);
    let receiver = trusted_receiver(&home, &key);
    let listener = Running(listen(&home, &server, &key, &["--forward-to", receiver.url.as_str()]));
    forward_first(&home, &mut client, &receiver);

    // The listener's machine sleeps, and its connection ends on the other side.
    signal(&listener.0, "-STOP");
    until("the listener to sleep", PATIENCE, || is_stopped(&listener.0).then_some(()));
    let address = server.address().to_string();
    server.kill_now();
    let server = home.start_as(&[], &address);
    let mut client = server.client(&key);
    for _ in 0..SLEPT_COUNT {
        draft(&mut client);
    }
    assert_eq!(receiver.events_count(), 1, "the listener did not sleep");
    signal(&listener.0, "-CONT");

    expect_each_once(&mut client, &receiver);
}

/// A way to the server, as a network translates addresses: it can forget the connections that it
/// carries. Nothing of them comes through any more, and nobody is told. New ones work.
struct Way {
    address: SocketAddr,
    connections_count: Arc<AtomicUsize>,
    forgotten_count: Arc<AtomicUsize>,
}

impl Way {
    fn to(server: SocketAddr) -> Way {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let way = Way {
            address: listener.local_addr().unwrap(),
            connections_count: Arc::default(),
            forgotten_count: Arc::default(),
        };
        let (connections, forgotten) = (way.connections_count.clone(), way.forgotten_count.clone());
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let number = connections.fetch_add(1, Ordering::SeqCst) + 1;
                let far = TcpStream::connect(server).unwrap();
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let forgotten = forgotten.clone();
                    std::thread::spawn(move || carry(from, to, number, &forgotten));
                }
            }
        });
        way
    }

    fn forget(&self) {
        let count = self.connections_count.load(Ordering::SeqCst);
        self.forgotten_count.store(count, Ordering::SeqCst);
    }
}

/// Carries bytes while the connection is not forgotten; then it swallows them, and the end as well.
fn carry(mut from: TcpStream, mut to: TcpStream, number: usize, forgotten_count: &AtomicUsize) {
    let mut bytes = [0; 16 * 1024];
    loop {
        let count = from.read(&mut bytes).unwrap_or(0);
        let is_forgotten = number <= forgotten_count.load(Ordering::SeqCst);
        if count == 0 {
            if !is_forgotten {
                let _ = to.shutdown(std::net::Shutdown::Write);
            }
            return;
        }
        if !is_forgotten && to.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

#[test]
fn a_listener_whose_connection_died_without_a_word_goes_on_within_a_minute() {
    let home = Home::new("listen-silent");
    let server = home.start();
    let key = home.key();
    let mut client = server.client(&key);
    let receiver = trusted_receiver(&home, &key);
    let way = Way::to(server.address());
    let arguments = ["--forward-to", receiver.url.as_str()];
    let _listener = Running(listen_at(&home, way.address, &key, &arguments));
    forward_first(&home, &mut client, &receiver);

    way.forget();
    let forgotten = Instant::now();
    for _ in 0..SLEPT_COUNT {
        draft(&mut client);
    }
    expect_each_once(&mut client, &receiver);
    println!("every event was there {:?} after the silence began", forgotten.elapsed());
}

#[test]
fn events_are_lines_of_json_and_one_that_nobody_read_comes_again() {
    let home = Home::new("listen-json");
    let server = home.start();
    let key = home.key();
    let mut client = server.client(&key);
    draft(&mut client);
    draft(&mut client);
    let json = ["--json", "--from-oldest"];
    let mut first = Running(listen(&home, &server, &key, &json));
    let mut lines = BufReader::new(first.0.stdout.take().unwrap()).lines();
    let events = client.list("/v1/events", "");
    for event in &events {
        let line = lines.next().unwrap().unwrap();
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), *event);
    }
    // Whoever read the lines is gone, so the listener ends at the next one.
    drop(lines);
    draft(&mut client);
    let ended = until("the listener to end", PATIENCE, || first.0.try_wait().unwrap());
    assert!(!ended.success());
    let mut second = Running(listen(&home, &server, &key, &json));
    let mut lines = BufReader::new(second.0.stdout.take().unwrap()).lines();
    let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(line, client.list("/v1/events", "")[2]);
    let both = home.run_plain(&["listen", "--json", "--forward-to", "localhost:1"]);
    assert!(!both.status.success(), "a receiver and lines of JSON");
}

/// A server that answers its first request with 400 and this body, and each further one with 401.
/// Returns its address and the lines of the requests.
fn refuses(body: &'static str) -> (SocketAddr, mpsc::Receiver<String>) {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let (asked, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let answers = std::iter::once((400, body)).chain(std::iter::repeat((401, "{}")));
        for (stream, (status, body)) in server.incoming().zip(answers) {
            let mut reader = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                assert!(reader.read_line(&mut head).unwrap() > 0, "a whole head");
            }
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status} As told\r\ncontent-length: {length}\r\nconnection: close\
                 \r\n\r\n{body}"
            );
            reader.get_mut().write_all(answer.as_bytes()).unwrap();
            let line = head.lines().next().unwrap().to_owned();
            if asked.send(line).is_err() {
                return;
            }
        }
    });
    (address, lines)
}

#[test]
fn only_a_removed_event_makes_a_listener_begin_with_the_oldest() {
    const CURSOR: &str = "event_01JZ0000000000000000000000";
    const REMOVED: &str = r#"{"errors":[{"code":"request_query_parameter_invalid","message":
        "Events may have been missed.","metadata":{"field_name":"starting_after"}}]}"#;
    const OTHERS: [&str; 4] = [
        r#"{"errors":[{"code":"request_query_parameter_invalid","message":"No.",
            "metadata":{"field_name":"wait"}}]}"#,
        r#"{"errors":[{"code":"request_body_invalid","message":"No."}]}"#,
        "400 Bad Request",
        "",
    ];
    for body in [REMOVED].into_iter().chain(OTHERS) {
        let home = Home::new("listen-refused");
        let state = home.directory.join("place.json");
        std::fs::write(&state, format!(r#"{{"cursor":"{CURSOR}","undelivered":[]}}"#)).unwrap();
        let (address, lines) = refuses(body);
        let mut listener = Running(listen_at(&home, address, "sk_test_none", &[]));
        assert!(!listener.0.wait().unwrap().success(), "{body}");
        let lines: Vec<String> = lines.try_iter().collect();
        let has_cursor: Vec<bool> = lines.iter().map(|line| line.contains(CURSOR)).collect();
        let wanted: &[bool] = if body == REMOVED { &[true, false] } else { &[true] };
        assert_eq!(has_cursor, wanted, "{body}: {lines:?}");
    }
}

#[test]
fn a_misspelt_event_is_told_at_once() {
    let home = Home::new("listen-misspelt");
    let state = home.directory.join("place.json");
    let listen = |events: &str| {
        home.run_plain(&[
            "listen",
            "--state",
            state.to_str().unwrap(),
            "--api-key",
            "sk_test_none",
            "--base-url",
            "http://127.0.0.1:9",
            "--events",
            events,
        ])
    };
    for wrong in ["transfer.status.setled", "transfer.status.", "transfers.*", "*.created", ""] {
        let told = listen(&format!("transfer.status.*,{wrong}"));
        assert!(!told.status.success());
        let names_it = told.stderr.contains(&format!("{wrong:?}"));
        assert!(names_it && told.stderr.contains("--events"), "{wrong}: {}", told.stderr);
    }
    assert!(!state.exists(), "nothing was begun");
    // What there is goes on to the service, which is not there.
    let told = listen("transfer.status.*,payout.status.settled,*");
    assert!(!told.status.success() && !told.stderr.contains("--events"), "{}", told.stderr);
}
