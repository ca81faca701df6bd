//! What a package installs beside the binary, secrets from files, and listings for programs.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::{Connection, Home};

/// The public key of test vectors.
const ACCOUNT_KEY: &str = concat!(
    "xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7",
    "dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd"
);

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
    refused(&home, "cannot be read");
}

/// Every variable that holds a secret, and what shows that its file was read.
#[test]
fn every_secret_comes_from_a_file() {
    let mut home = Home::new("cli-every-secret").with("HUNDI_RATE_LIMIT_WRITES", "0");
    let server = home.start();
    let api_key = home.key();
    let file = |home: &mut Home, name: &str, text: &str| {
        let path = home.directory.join(name);
        std::fs::write(&path, format!("{text}\n")).expect("a file");
        home.set(&format!("{name}_FILE"), &path.display().to_string());
    };
    let (address, database) = (format!("http://{}", server.address()), home.database());
    file(&mut home, "HUNDI_DATABASE", &database);
    let listed = home.run_plain(&["keys", "list"]).expect_success("keys list").stdout;
    assert!(listed.contains("default"), "{listed}");
    file(&mut home, "HUNDI_API_KEY", &api_key);
    let paid = home.run_plain(&["quickstart", "--base-url", &address]);
    let shown = paid.expect_success("quickstart").stdout;
    assert!(shown.contains("TEST") && shown.contains("/v1/payouts/payout_"), "{shown}");
    file(&mut home, "HUNDI_ENCRYPTION_KEY_NEXT", crate::support::rotation::NEW_KEY);
    let refused = home.run_plain(&["keys", "rotate-encryption"]).stderr;
    assert!(refused.contains("listens on"), "{refused}");
    home.unset("HUNDI_ENCRYPTION_KEY_NEXT_FILE");

    // The rest is what live mode needs: `hundi doctor` says another thing of it with the file.
    home.unset("HUNDI_API_KEY_FILE");
    let config = home.directory.join("hundi.toml");
    home.set("HUNDI_CONFIG", &config.display().to_string());
    let chain = |table: &str| {
        format!(
            "[{table}]\npreset = \"nile\"\nendpoints = [\"https://127.0.0.1:9/a\", \
             \"https://127.0.0.2:9/b\"]\naccount_key = \"{ACCOUNT_KEY}\"\n"
        )
    };
    let checks = "[checks]\nadapter = \"http\"\nurl = \"https://127.0.0.1:9/\"\nheader_name = \
     \"Authorization\"\n";
    let source = "url = \"https://127.0.0.1:9/\"\npointer = \"/mid\"\n";
    let rates = format!(
        "[[rates.inr_per_usd]]\n{source}header_name = \"X-Api-Key\"\nheader_variable = \
         \"RATES_KEY\"\n[[rates.usd_per_usdt]]\n{source}"
    );
    for (table, name, is_told_without, words) in [
        (checks, "HUNDI_CHECKS_SECRET", true, "the variable HUNDI_CHECKS_SECRET is not"),
        (&rates, "RATES_KEY", true, "the variable RATES_KEY is not set"),
        (&chain("live_chain"), "HUNDI_LIVE_CHAIN_API_KEY", false, "would go to several hosts"),
        (&chain("live_chain"), "HUNDI_LIVE_CHAIN_API_KEY_3", false, "does not have"),
        (&chain("test_chain"), "HUNDI_TEST_CHAIN_API_KEY", false, "would go to several hosts"),
        (&chain("test_chain"), "HUNDI_TEST_CHAIN_API_KEY_3", false, "does not have"),
    ] {
        std::fs::write(&config, table).expect("a file");
        let said = |home: &Home| {
            let outcome = home.run_plain(&["doctor"]);
            format!("{}{}", outcome.stdout, outcome.stderr)
        };
        let without = said(&home);
        assert_eq!(without.contains(words), is_told_without, "without {name}:\n{without}");
        file(&mut home, name, "a-secret");
        let with = said(&home);
        assert_ne!(with.contains(words), is_told_without, "with {name}:\n{with}");
        assert!(!with.contains("a-secret"), "{with}");
        home.unset(&format!("{name}_FILE"));
    }
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
fn every_command_that_lists_takes_json() {
    let home = Home::new("cli-every-listing");
    let folder = home.directory.join("man");
    home.run_plain(&["man", folder.to_str().unwrap()]).expect_success("man");
    let pages = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let pages = pages.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()));
    // A group of commands is no command.
    let commands = pages.filter(|(_, text)| !text.contains("SUBCOMMANDS"));
    let listings: Vec<_> = commands.filter(|(_, text)| text.contains("\\- List ")).collect();
    assert!(listings.len() >= 9, "{} commands list", listings.len());
    for (path, text) in listings {
        assert!(text.contains("\\-\\-json"), "{}", path.display());
    }
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
        &["approvals", "list"],
        &["screening", "hits"],
        &["payouts", "held"],
    ] {
        assert!(json(empty).is_empty(), "{empty:?}");
    }
    let text = home.run(&["keys", "list"]).expect_success("keys list").stdout;
    assert!(text.contains(" IST (") && text.contains(" UTC)"), "{text}");
}

/// An export with a byte that no text has is no success, and what comes after it is compared too.
#[test]
fn a_line_that_does_not_read_ends_no_comparison_of_the_audit_log() {
    let home = Home::new("cli-audit-unreadable");
    assert!(home.start().stop().success());
    for _ in 0..7 {
        home.key();
    }
    let exported = home.run(&["audit", "export"]).expect_success("the export").stdout;
    let lines: Vec<Vec<u8>> = exported.lines().map(|line| line.as_bytes().to_vec()).collect();
    assert!(lines.len() > 7);
    let file = home.directory.join("export.jsonl");
    let verify = |lines: &[Vec<u8>]| {
        std::fs::write(&file, [lines.join(&b'\n'), b"\n".to_vec()].concat()).expect("a file");
        home.run(&["audit", "verify", file.to_str().unwrap()])
    };
    verify(&lines).expect_success("the export as it is");
    let mut harmed = lines.clone();
    harmed[4][20] = 0xFF;
    let told = verify(&harmed);
    assert!(!told.status.success() && told.stdout.contains("line 5"), "{told:?}");
    assert_eq!(told.stdout.matches("WRONG").count(), 1, "one fault: {told:?}");
    let sixth = String::from_utf8(harmed[5].clone()).unwrap();
    harmed[5] = sixth.replace("\"key_created\"", "\"key_revoked\"").into_bytes();
    assert_ne!(harmed[5], lines[5]);
    let told = verify(&harmed);
    assert!(told.stdout.contains("line 5") && told.stdout.contains("entry 6 "), "{told:?}");
    // The same where the harmed line is text, and no entry.
    harmed[4] = b"{}".to_vec();
    let told = verify(&harmed);
    assert!(told.stdout.contains("line 5") && told.stdout.contains("entry 6 "), "{told:?}");
}
