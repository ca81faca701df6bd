//! What a package installs beside the binary, secrets from files, and listings for programs.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::{Connection, Home};

#[test]
fn version_says_commit_and_schema() {
    let home = Home::new("cli-version");
    let said = home.run_plain(&["--version"]).expect_success("--version").stdout;
    assert!(said.starts_with("hundi ") && said.contains("(commit "), "{said}");
    let schema = said.trim_end().strip_suffix(')').and_then(|said| said.rsplit_once("schema "));
    assert!(schema.is_some_and(|(_, number)| number.parse::<u32>().is_ok()), "{said}");
}

#[test]
fn manual_pages_and_completions_are_written_for_every_command() {
    let home = Home::new("cli-man");
    let folder = home.directory.join("man");
    home.run_plain(&["man", &folder.display().to_string()]).expect_success("man");
    let help = home.run_plain(&["--help"]).expect_success("--help").stdout;
    let (_, commands) = help.split_once("Commands:").expect("a list of commands");
    let (commands, _) = commands.split_once("Options:").expect("the options");
    let names: Vec<&str> = commands
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty() && *name != "help")
        .collect();
    assert!(names.len() > 15 && !names.contains(&"man"), "{names:?}");
    let script =
        home.run_plain(&["completions", "bash"]).expect_success("completions of bash").stdout;
    for name in names {
        let page = folder.join(format!("hundi-{name}.1"));
        let text = std::fs::read_to_string(&page).expect("a page of every command");
        assert!(text.contains(".SH SYNOPSIS"), "{name}");
        assert!(script.contains(name), "bash does not complete {name}");
    }
    for shell in ["zsh", "fish"] {
        home.run_plain(&["completions", shell]).expect_success(shell);
    }
}

#[test]
fn secrets_come_from_files() {
    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let mut home = Home::new("cli-secret-files");
    let file = home.directory.join("credential");
    std::fs::write(&file, format!("{KEY}\n")).expect("a file");
    std::fs::set_permissions(&file, Permissions::from_mode(0o400)).expect("a mode");
    home.set("HUNDI_ENCRYPTION_KEY_FILE", &file.display().to_string());
    assert!(home.start().stop().success());
    assert!(!home.directory.join("hundi.db.key").exists(), "it made a key of its own");
    // The key in the file is the one in use.
    home.unset("HUNDI_ENCRYPTION_KEY_FILE");
    home.set("HUNDI_ENCRYPTION_KEY", KEY);
    assert!(home.start().stop().success());
    home.set("HUNDI_ENCRYPTION_KEY_FILE", &file.display().to_string());
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let refused = |home: &Home, words: &str| {
        let outcome = home.run(&serve);
        assert!(!outcome.status.success() && outcome.stderr.contains(words), "{}", outcome.stderr);
        assert!(!outcome.stderr.contains(KEY), "the secret is told");
    };
    refused(&home, "are both set");
    home.unset("HUNDI_ENCRYPTION_KEY");
    home.set("HUNDI_ENCRYPTION_KEY_FILE", "/nowhere/credential");
    refused(&home, "does not read");
}

#[test]
fn security_txt_says_where_reports_go() {
    let page = |home: &Home| {
        let server = home.start();
        let mut connection = Connection::open(server.address()).expect("a connection");
        let request = b"GET /.well-known/security.txt HTTP/1.1\r\nHost: a\r\n\r\n";
        connection.send(request).expect("a request");
        connection.receive(true).expect("an answer").expect("an answer")
    };
    assert_eq!(page(&Home::new("cli-security-none")).status, 404);
    let home = Home::new("cli-security")
        .with("HUNDI_PUBLIC_URL", "https://pay.example.com")
        .with("HUNDI_SECURITY_CONTACT", "mailto:security@example.com");
    let answer = page(&home);
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    let text = answer.text();
    assert!(text.starts_with("Contact: mailto:security@example.com\nExpires: 2"), "{text}");
    let canonical = "Canonical: https://pay.example.com/.well-known/security.txt";
    assert!(text.contains(canonical), "{text}");
}

#[test]
fn listings_are_json_for_programs_and_readable_for_people() {
    let home = Home::new("cli-json").with("TZ", "IST-5:30");
    home.key();
    let json = |arguments: &[&str]| -> Vec<Value> {
        let mut all = arguments.to_vec();
        all.push("--json");
        let listed = home.run(&all).expect_success("a listing").stdout;
        serde_json::from_str(&listed).unwrap_or_else(|fault| panic!("{fault}: {listed}"))
    };
    let keys = json(&["keys", "list"]);
    assert_eq!((&keys[0]["mode"], &keys[0]["revoked"]), (&"test".into(), &Value::Null));
    assert!(keys[0]["created"].as_i64().is_some_and(|at| at > 1_700_000_000), "{keys:?}");
    assert_eq!(json(&["accounts", "list"])[0]["account"], "default");
    for empty in [
        &["beneficiaries", "list"][..],
        &["refunds", "list"],
        &["decisions"],
        &["operators", "list"],
        &["screening", "hits"],
        &["payouts", "held"],
    ] {
        assert!(json(empty).is_empty(), "{empty:?}");
    }
    let text = home.run(&["keys", "list"]).expect_success("keys list").stdout;
    assert!(text.contains(" IST (") && text.contains(" UTC)"), "{text}");
}
