//! What the service's log looks like: text where a person looks at a terminal, JSON elsewhere.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Home, Server, steps, until};

const CHANGED: &str = "a transfer changed its status";
const FAILED: &str = "an attempt of a delivery failed";

/// The lines about a settled transfer, once the log has the last of them.
fn lines_about_a_transfer(home: &Home, server: &Server) -> (String, Vec<String>) {
    let payment = steps::six_steps(&mut server.client(&home.key()), "100.00");
    let id = payment.transfer_id;
    let lines = until("the log to tell of the settlement", Duration::from_secs(30), || {
        let log = home.log();
        let lines: Vec<String> = log
            .lines()
            .filter(|line| line.contains(CHANGED) && line.contains(&id))
            .map(str::to_owned)
            .collect();
        lines.iter().any(|line| line.contains("payout_settled")).then_some(lines)
    });
    (id, lines)
}

/// The line about a delivery to a port of loopback where nobody listens, and the endpoint.
fn line_about_a_delivery(home: &Home, server: &Server) -> (String, String) {
    let mut client = server.client(&home.key());
    let body = json!({ "url": "http://127.0.0.1:9/hooks" });
    let made = client.post("/v1/webhook_endpoints", &body).expect_success("an endpoint");
    let id = made["id"].as_str().unwrap().to_owned();
    steps::six_steps(&mut client, "100.00");
    let line = until("the log to tell of the delivery", Duration::from_secs(30), || {
        home.log().lines().find(|line| line.contains(FAILED)).map(str::to_owned)
    });
    (id, line)
}

/// `script` runs a program on a terminal of its own.
#[test]
fn the_log_is_text_on_a_terminal() {
    let home = Home::new("cli-terminal");
    let terminal = ["sh", "-c", "exec script -qfec \"exec $*\" /dev/null", "sh"];
    let mut server = home.start_as(&terminal, "127.0.0.1:0");
    let (id, lines) = lines_about_a_transfer(&home, &server);
    for line in &lines {
        assert!(serde_json::from_str::<Value>(line).is_err(), "this is JSON: {line}");
        // As a person reads it: when, how bad, what, and about which object.
        let plain = without_colours(line);
        assert!(plain.contains(" INFO ") && plain.contains(&format!("transfer={id}")), "{plain:?}");
    }
    let (id, line) = line_about_a_delivery(&home, &server);
    let plain = without_colours(&line);
    assert!(plain.contains(" INFO ") && plain.contains(&format!("endpoint={id}")), "{plain:?}");
    assert!(!home.log().lines().any(|line| line.starts_with('{')), "{}", home.log());
    // The terminal goes, and the server with it.
    server.kill_now();
    let is_gone = || (!server.is_ready()).then_some(());
    until("the server to end with its terminal", Duration::from_secs(30), is_gone);
}

#[test]
fn the_log_is_json_where_nobody_looks() {
    let home = Home::new("cli-json");
    let server = home.start();
    let (id, lines) = lines_about_a_transfer(&home, &server);
    for line in &lines {
        let told: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        assert_eq!((&told["level"], &told["transfer"]), (&"INFO".into(), &id.as_str().into()));
        assert!(told["timestamp"].is_string() && told["message"] == CHANGED, "{told}");
    }
    let (id, line) = line_about_a_delivery(&home, &server);
    let told: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
    assert_eq!((&told["level"], &told["endpoint"]), (&"INFO".into(), &id.as_str().into()));
    for name in ["delivery", "event"] {
        let identifier = told[name].as_str().unwrap_or_else(|| panic!("no {name} in {told}"));
        assert!(identifier.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
    }
    assert!(!line.contains("127.0.0.1"), "the address of a receiver may hold a secret: {line}");
    assert!(server.stop().success());
}

/// A line without the sequences that colour it.
fn without_colours(line: &str) -> String {
    let mut plain = String::new();
    for (index, part) in line.split('\u{1b}').enumerate() {
        let part =
            if index == 0 { part } else { part.split_once('m').map_or("", |(_, rest)| rest) };
        plain.push_str(part);
    }
    plain
}
