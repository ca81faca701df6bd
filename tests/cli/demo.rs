//! `hundi demo` stays up until a signal, leaves nothing behind, and shows what it promises.

use std::io::{BufRead, BufReader, Lines};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::Running;
use crate::support::{Connection, Home, until};

const PATIENCE: Duration = Duration::from_secs(60);

/// A demo that makes its temporary folder in a folder of the test's own.
struct Demo {
    process: Running,
    lines: Lines<BufReader<ChildStdout>>,
    printed: Vec<String>,
    temporary: PathBuf,
}

impl Demo {
    fn start(home: &Home, arguments: &[&str]) -> Demo {
        let temporary = home.directory.join("temporary");
        std::fs::create_dir(&temporary).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_hundi"));
        command.arg("demo").args(arguments).env("TMPDIR", &temporary);
        // A group of its own: it gets the test's signals, and no other.
        command.process_group(0);
        command.stdout(Stdio::piped()).stderr(Stdio::inherit()).stdin(Stdio::null());
        let mut process = Running(command.spawn().unwrap());
        let lines = BufReader::new(process.0.stdout.take().unwrap()).lines();
        Demo { process, lines, printed: Vec::new(), temporary }
    }

    /// Reads until a line that contains the text; at the end of the output there is none.
    fn read_to(&mut self, text: &str) -> Option<String> {
        for line in self.lines.by_ref() {
            let line = line.unwrap();
            self.printed.push(line.clone());
            if line.contains(text) {
                return Some(line);
            }
        }
        None
    }

    fn signal(&self, name: &str) {
        let id = self.process.0.id().to_string();
        let sent = Command::new("kill").args([name, &id]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill {name}");
    }

    /// Waits for the end, and reads the rest of the output meanwhile.
    fn end(&mut self) -> ExitStatus {
        let rest = self.read_to("\0");
        assert_eq!(rest, None);
        until("the demo to end", PATIENCE, || self.process.0.try_wait().unwrap())
    }

    /// The address behind a name in what was printed.
    fn link(&self, name: &str) -> String {
        let line = self.printed.iter().find(|line| line.trim_start().starts_with(name));
        let line = line.unwrap_or_else(|| panic!("no {name} in {:#?}", self.printed));
        line.split_whitespace().last().unwrap().to_owned()
    }
}

fn left_in(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// What a GET of an address answers: the status and the text.
fn get(url: &str) -> (u16, String) {
    let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let head = format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/html\r\n\r\n");
    let mut connection = Connection::open(address.parse().unwrap()).unwrap();
    connection.send(head.as_bytes()).unwrap();
    let answer = connection.receive(true).unwrap().unwrap();
    (answer.status, String::from_utf8_lossy(&answer.body).into_owned())
}

/// Waits for a viewer before its deposit, so the three run at the same time.
#[test]
fn the_demo_stays_up_and_ends_cleanly_on_each_signal_that_ends() {
    std::thread::scope(|threads| {
        for name in ["-INT", "-TERM", "-HUP"] {
            threads.spawn(move || stays_up_until(name));
        }
    });
}

fn stays_up_until(name: &str) {
    let home = Home::new("demo-signal");
    let mut demo = Demo::start(&home, &[]);
    demo.read_to("The server stays up.").expect("a demo that stays up");
    assert_eq!(demo.process.0.try_wait().unwrap(), None, "it ended by itself");
    assert_eq!(left_in(&demo.temporary).len(), 1, "one temporary folder");
    let utr = demo.link("UTR ");
    assert!(utr.starts_with("TEST"), "{utr}");
    for (link, words) in [
        ("payer's page", utr.as_str()),
        ("verify page", "Genuine"),
        ("guides", "Quick start"),
        ("API reference", "/v1/transfers"),
        ("operator's console", "Password"),
    ] {
        let (status, text) = get(&demo.link(link));
        assert!(matches!(status, 200 | 303), "{link}: {status}");
        assert!(status == 303 || text.contains(words), "{link} says no {words:?}: {text}");
    }
    let advice = demo.link("payment advice");
    let advice = std::fs::read(advice.strip_prefix("file://").unwrap()).unwrap();
    assert!(advice.starts_with(b"%PDF-"), "the payment advice is no page");
    let guides = demo.link("guides");
    let address = guides.strip_prefix("http://").unwrap().split('/').next().unwrap();

    demo.signal(name);
    let status = demo.end();
    assert!(status.success(), "{name}: {status}");
    assert_eq!(left_in(&demo.temporary), Vec::<PathBuf>::new(), "{name} left its folder");
    assert!(Connection::open(address.parse().unwrap()).is_err(), "{name} left a server");
}

#[test]
fn a_demo_that_is_ended_before_its_payout_leaves_nothing_and_says_so() {
    for (name, arguments) in [("-TERM", &[][..]), ("-INT", &[]), ("-HUP", &["--once"])] {
        let home = Home::new("demo-early");
        let mut demo = Demo::start(&home, arguments);
        demo.read_to("listens on").expect("a server");
        demo.signal(name);
        let status = demo.end();
        assert_eq!(status.code(), Some(1), "{name}: {status}");
        assert_eq!(left_in(&demo.temporary), Vec::<PathBuf>::new(), "{name} left its folder");
    }
}

#[test]
fn a_demo_for_scripts_ends_by_itself_with_verified_webhooks_and_the_book_in_balance() {
    let home = Home::new("demo-once");
    let mut demo = Demo::start(&home, &["--once"]);
    assert!(demo.end().success(), "{:#?}", demo.printed);
    let webhooks: Vec<&String> =
        demo.printed.iter().filter(|line| line.trim_start().starts_with("webhook ")).collect();
    assert!(webhooks.iter().all(|line| line.ends_with(" verified")), "{webhooks:?}");
    for event in ["transfer.status.funded", "transfer.status.payout_settled"] {
        assert!(webhooks.iter().any(|line| line.contains(event)), "{event}: {webhooks:?}");
    }
    let said = |words: &str| demo.printed.iter().any(|line| line.contains(words));
    assert!(said("The book is in balance: "), "{:#?}", demo.printed);
    assert!(!said("\u{1b}["), "colours outside a terminal");
    // Its pages end with it, so it names none.
    let addresses = demo.printed.iter().filter(|line| line.contains("://"));
    let addresses: Vec<&String> = addresses.collect();
    let [server, receiver] = addresses[..] else { panic!("more addresses: {addresses:#?}") };
    assert!(server.ends_with(" until this demo ends."), "{server}");
    assert!(receiver.contains("Webhook endpoint"), "{receiver}");
    assert!(said("hundi demo (without --once)"), "no word of the pages: {:#?}", demo.printed);
    assert_eq!(left_in(&demo.temporary), Vec::<PathBuf>::new());
}
