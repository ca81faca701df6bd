//! The command line as an operator uses it: what is refused at start, the short commands beside a
//! running server, keys and their ends, and a shutdown that finishes what is running.

#[path = "cli/advices.rs"]
mod advices;
#[path = "cli/connections.rs"]
mod connections;
#[path = "cli/demo.rs"]
mod demo;
#[path = "cli/encryption_key.rs"]
mod encryption_key;
#[path = "cli/environment.rs"]
mod environment;
#[path = "cli/exposure.rs"]
mod exposure;
#[path = "cli/listen.rs"]
mod listen;
#[path = "cli/logs.rs"]
mod logs;
#[path = "cli/shell.rs"]
mod shell;
mod support;

use std::io::Read;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use support::client::request_bytes;
use support::steps;
use support::{Client, Connection, Home, Outcome, Receiver, Server, fresh_key, until};

const PUBLIC_URL: &str = "https://pay.example.com";
/// The account key of the test vectors.
const ACCOUNT_KEY: &str = "xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQck\
    oHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd";

/// Runs `serve` where it has to refuse, and answers what it said.
fn refused_start(home: &Home) -> Outcome {
    let started = Instant::now();
    let outcome = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(!outcome.status.success(), "serve ended with success where it has to refuse");
    assert!(outcome.status.code().is_some(), "serve was ended by a signal: {}", outcome.status);
    assert!(!outcome.stderr.contains("panicked"), "serve panicked: {}", outcome.stderr);
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "the refusal took {:?}",
        started.elapsed()
    );
    outcome
}

/// Whether a message names one of the words, whatever their case.
fn says(outcome: &Outcome, words: &[&str]) -> bool {
    let text = format!("{}\n{}", outcome.stdout, outcome.stderr).to_lowercase();
    words.iter().any(|word| text.contains(&word.to_lowercase()))
}

#[test]
fn second_server_on_one_database_is_refused() {
    let home = Home::new("cli-second");
    let server = home.start();
    let mut client = server.client(&home.key());
    let outcome = refused_start(&home);
    assert!(
        says(&outcome, &["already", "in use", "another", "locked"]),
        "the refusal does not say why: {}",
        outcome.stderr
    );
    // The first one is not disturbed, and its place is free after it ended.
    client.post("/v1/senders", &steps::sender_body()).expect_success("a write to the first server");
    assert!(server.stop().success());
    let server = home.start();
    assert_eq!(server.client(&client.api_key).list("/v1/senders", "").len(), 1);
}

#[test]
fn server_that_was_killed_leaves_its_place_free() {
    let home = Home::new("cli-killed");
    let mut server = home.start();
    let key = home.key();
    server.client(&key).post("/v1/senders", &steps::sender_body()).expect_success("a write");
    server.kill_now();
    let server = home.start();
    assert_eq!(server.client(&key).list("/v1/senders", "").len(), 1);
}

#[test]
fn short_commands_run_beside_a_running_server() {
    // Links in answers name the address, which differs from server to server here.
    let home = Home::new("cli-beside").with("HUNDI_PUBLIC_URL", PUBLIC_URL);
    let server = home.start();
    let key = home.key();
    let form_is_right = key.strip_prefix("sk_test_").is_some_and(|rest| {
        rest.len() > 32 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    });
    assert!(form_is_right, "keys create did not print a test key alone on its last line: {key:?}");
    let mut client = server.client(&key);
    let payment = steps::six_steps(&mut client, "55.00");

    let listed = home.run(&["keys", "list"]).expect_success("keys list");
    assert!(!listed.stdout.contains(&key), "keys list shows a whole key");
    assert!(
        listed.stdout.contains(&key[key.len() - 4..]) || listed.stdout.contains(&key[..12]),
        "keys list does not let a key be told: {}",
        listed.stdout
    );
    home.check().expect_success("check beside a running server");

    // The backup is made while writes go on.
    let is_over = AtomicBool::new(false);
    let backup_path = home.directory.join("backup.db");
    std::thread::scope(|scope| {
        let mut writer = client.twin();
        let is_over = &is_over;
        let writing = scope.spawn(move || {
            let mut count = 0;
            while !is_over.load(Ordering::Relaxed) && count < 5_000 {
                writer
                    .post("/v1/senders", &steps::sender_body())
                    .expect_success("a write during the backup");
                count += 1;
            }
            count
        });
        let backup = home.run(&["backup", &backup_path.display().to_string()]);
        is_over.store(true, Ordering::Relaxed);
        println!("{} writes went on during the backup", writing.join().expect("the writer"));
        backup.expect_success("backup beside a running server");
    });
    let backup = format!("sqlite:{}", backup_path.display());
    home.run_plain(&["check", "--database", &backup]).expect_success("check of the backup");
    assert!(server.stop().success());

    // The backup is a database that serves, with the same key and the payment in it.
    let restored = Home::new("cli-restored").with("HUNDI_PUBLIC_URL", PUBLIC_URL);
    std::fs::copy(&backup_path, restored.database_path()).expect("a copy of the backup");
    copy_key_files(&home.directory, &restored.directory);
    let server = restored.start();
    let seen = server
        .client(&key)
        .get(&format!("/v1/transfers/{}", payment.transfer_id))
        .expect_success("the payment in the backup");
    assert_eq!(seen, payment.settled);
}

/// A backup knows nothing of the addresses that were handed out after it.
#[test]
fn after_a_restore_no_address_is_handed_out_twice() {
    let home = Home::new("cli-addresses");
    let server = home.start();
    let key = home.key();
    let paid_to = |server: &Server| {
        let payment = steps::six_steps(&mut server.client(&key), "55.00");
        payment.settled["funding"]["deposit_address"].as_str().expect("an address").to_owned()
    };
    let before = paid_to(&server);
    let backup_path = home.directory.join("backup.db");
    home.run(&["backup", &backup_path.display().to_string()]).expect_success("the backup");
    // A new start begins new addresses.
    assert!(server.stop().success());
    let server = home.start();
    let after = paid_to(&server);
    let refused = home.run(&["addresses", "skip"]);
    assert!(
        !refused.status.success() && refused.stderr.contains("stop it first"),
        "beside a server: {}",
        refused.stderr
    );
    assert!(server.stop().success());
    let restored = |name: &str| {
        let restored = Home::new(name);
        std::fs::copy(&backup_path, restored.database_path()).expect("a copy of the backup");
        copy_key_files(&home.directory, &restored.directory);
        restored
    };
    let careless = restored("cli-addresses-careless");
    let since_the_backup = address_index_next(&careless)..address_index_next(&home);
    assert!(since_the_backup.contains(&address_index(&home, &after)));
    // The control: left alone, the database hands out of the same addresses again. Which of them
    // comes first depends on how many were ready.
    let server = careless.start();
    let again = paid_to(&server);
    assert!(server.stop().success());
    assert!(since_the_backup.contains(&address_index(&careless, &again)));
    let careful = restored("cli-addresses-careful");
    careful.run(&["addresses", "skip"]).expect_success("addresses skip");
    let server = careful.start();
    let fresh = paid_to(&server);
    assert!(server.stop().success());
    assert!(address_index(&careful, &fresh) >= since_the_backup.end);
    assert!(fresh != after && fresh != before);
}

/// The next derivation index of the test mode that no start has reserved.
fn address_index_next(home: &Home) -> i64 {
    let connection = rusqlite::Connection::open(home.database_path()).expect("the database opens");
    let sql = "SELECT CAST(CAST(value AS TEXT) AS INTEGER) FROM meta WHERE name = \
               'test_address_index_next'";
    connection.query_row(sql, [], |row| row.get(0)).expect("the next index")
}

/// The derivation index of an address that a stopped service handed out.
fn address_index(home: &Home, address: &str) -> i64 {
    let outcome =
        home.run(&["addresses", "export", "--format", "json"]).expect_success("the export");
    let exported: Vec<serde_json::Value> =
        serde_json::from_str(&outcome.stdout).expect("the addresses as JSON");
    let line = exported.iter().find(|line| line["address"] == address).expect("the address");
    line["derivation_index"].as_i64().expect("its index")
}

/// Files that are neither the database nor its companions: the key file made at first start.
fn key_files(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
        .expect("the directory")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file() && holds_key(path))
        .collect();
    found.sort();
    found
}

/// 32 bytes, as they are or in base64.
fn holds_key(path: &Path) -> bool {
    let Ok(bytes) = std::fs::read(path) else { return false };
    let decoded =
        std::str::from_utf8(&bytes).ok().and_then(|text| STANDARD.decode(text.trim()).ok());
    bytes.len() == 32 || decoded.is_some_and(|key| key.len() == 32)
}

/// A copy of a stopped database, its write-ahead log included, under the same key.
fn copied(home: &Home, name: &str) -> Home {
    let copy = Home::new(name);
    for suffix in ["", "-wal"] {
        let file = PathBuf::from(format!("{}{suffix}", home.database_path().display()));
        if file.exists() {
            std::fs::copy(&file, format!("{}{suffix}", copy.database_path().display()))
                .expect("a copy of the database");
        }
    }
    copy_key_files(&home.directory, &copy.directory);
    copy
}

fn copy_key_files(from: &Path, to: &Path) {
    for file in key_files(from) {
        std::fs::copy(&file, to.join(file.file_name().expect("a name")))
            .expect("a copy of the key file");
    }
}

#[cfg(unix)]
#[test]
fn key_file_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new("cli-key-file");
    let server = home.start();
    let files = key_files(&home.directory);
    assert_eq!(files.len(), 1, "one key file beside the database: {files:?}");
    let mode = std::fs::metadata(&files[0]).expect("its metadata").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "the key file has mode {mode:o}");
    assert!(server.stop().success());
    // Without its key the database is of no use, and a new key would not fit it.
    std::fs::rename(&files[0], home.directory.join("elsewhere")).expect("the key file moves");
    let outcome = refused_start(&home);
    assert!(
        says(&outcome, &["key is missing"]),
        "the refusal does not name the key: {}",
        outcome.stderr
    );
    assert!(!files[0].exists(), "a key that fits nothing was made");
    // The book can be looked at without it, and a wrong one is found.
    let checked = home.check();
    checked.expect_success("the check without a key");
    std::fs::write(&files[0], STANDARD.encode([9; 32])).expect("a wrong key");
    std::fs::set_permissions(&files[0], std::fs::Permissions::from_mode(0o600)).expect("its mode");
    let checked = home.check();
    assert!(
        !checked.status.success() && checked.stdout.contains("WRONG: the encryption key"),
        "{}",
        checked.stdout
    );
}

#[test]
fn encryption_key_that_does_not_fit_the_database_is_refused() {
    let fitting = STANDARD.encode([7; 32]);
    let mut home = Home::new("cli-encryption-key").with("HUNDI_ENCRYPTION_KEY", &fitting);
    let server = home.start();
    assert!(
        key_files(&home.directory).is_empty(),
        "a key file was made although the operator gave a key"
    );
    let key = home.key();
    steps::beneficiary_payable(&mut server.client(&key));
    assert!(server.stop().success());

    for (wrong, why) in [
        (STANDARD.encode([8; 32]), "another key"),
        (STANDARD.encode([7; 16]), "a key of 16 bytes"),
        ("not base64!".to_owned(), "a key that is not base64"),
    ] {
        home.set("HUNDI_ENCRYPTION_KEY", &wrong);
        let outcome = refused_start(&home);
        assert!(
            says(&outcome, &["HUNDI_ENCRYPTION_KEY", "encryption key"]),
            "the refusal of {why} does not name the key: {}",
            outcome.stderr
        );
        let leaks = outcome.stderr.contains(&wrong) || outcome.stdout.contains(&wrong);
        assert!(!leaks, "the refusal of {why} shows the key");
    }
    home.unset("HUNDI_ENCRYPTION_KEY");
    let outcome = refused_start(&home);
    assert!(
        says(&outcome, &["HUNDI_ENCRYPTION_KEY", "encryption key"]),
        "the refusal without a key does not name it: {}",
        outcome.stderr
    );

    home.set("HUNDI_ENCRYPTION_KEY", &fitting);
    let server = home.start();
    assert_eq!(server.client(&key).list("/v1/beneficiaries", "").len(), 1);
}

#[test]
fn database_with_a_newer_schema_is_refused() {
    let home = Home::new("cli-newer");
    let server = home.start();
    assert!(server.stop().success());
    let newer = copied(&home, "cli-newer-copy");
    let connection = rusqlite::Connection::open(newer.database_path()).expect("the copy opens");
    let changed = connection
        .execute("UPDATE meta SET value = CAST('999' AS BLOB) WHERE name = 'schema_version'", [])
        .expect("the update");
    assert_eq!(changed, 1, "no schema version to change");
    connection.close().expect("the copy closes");

    let outcome = refused_start(&newer);
    assert!(
        says(&outcome, &["999"]) && says(&outcome, &["newer", "schema"]),
        "the refusal does not say why: {}",
        outcome.stderr
    );
    let doctor = newer.run(&["doctor"]);
    assert!(
        doctor.stdout.contains("database     stops") && says(&doctor, &["does not start"]),
        "{} {}",
        doctor.stdout,
        doctor.stderr
    );
    // The original is as good as before.
    home.start();
}

/// `check` has to be able to fail: a book and a history that somebody changed by hand are found and
/// named.
#[test]
fn check_names_what_somebody_changed_by_hand() {
    let home = Home::new("cli-tampered");
    let server = home.start();
    let payment = steps::six_steps(&mut server.client(&home.key()), "310.00");
    assert!(server.stop().success());
    home.check().expect_success("the check before");
    for (what, change) in [
        (
            "a posting of another amount",
            "UPDATE ledger_postings SET units = units + 1 WHERE id = (SELECT MIN(id) FROM \
             ledger_postings)",
        ),
        (
            "a posting that is gone",
            "DELETE FROM ledger_postings WHERE id = (SELECT MAX(id) FROM ledger_postings)",
        ),
        ("a status that its history does not end in", "UPDATE transfers SET status = 'funding'"),
        (
            "a history that jumps",
            "UPDATE transfers SET status = 'refunded', status_history = replace(status_history, \
             'payout_settled', 'refunded')",
        ),
    ] {
        let tampered = copied(&home, "cli-tampered-copy");
        let connection =
            rusqlite::Connection::open(tampered.database_path()).expect("the copy opens");
        let changed =
            connection.execute(change, []).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(changed > 0, "{what}: nothing was changed");
        connection.close().expect("the copy closes");
        let outcome = tampered.check();
        assert!(!outcome.status.success(), "check did not notice {what}: {}", outcome.stdout);
        assert!(
            says(&outcome, &[&payment.transfer_id, "ledger", "posting", "balance", "book"]),
            "check does not name {what}: {} {}",
            outcome.stdout,
            outcome.stderr
        );
        assert!(!outcome.stderr.contains("panicked"), "check panicked: {}", outcome.stderr);
    }
}

#[test]
fn revoked_key_is_refused_within_two_seconds() {
    let home = Home::new("cli-revoked");
    let server = home.start();
    let (kept, revoked) = (home.key(), home.key());
    let mut client = server.client(&revoked);
    client.get("/v1/senders").expect_success("a read before the revocation");
    let listed = home.run(&["keys", "list"]).expect_success("keys list");
    let id = listed_id(&listed.stdout, &revoked);
    home.run(&["keys", "revoke", &id]).expect_success("keys revoke");
    let revoked_at = Instant::now();
    until("the revoked key to be refused", Duration::from_secs(2), || {
        (client.get("/v1/senders").status == 401).then_some(())
    });
    println!("refused {:?} after the revocation", revoked_at.elapsed());
    client.get("/v1/senders").expect_refusal(
        401,
        "secret_key_invalid",
        "a read with a revoked key",
    );
    client.post("/v1/senders", &steps::sender_body()).expect_refusal(
        401,
        "secret_key_invalid",
        "a write with a revoked key",
    );
    server.client(&kept).get("/v1/senders").expect_success("a read with the other key");
    let nobody = home.run(&["keys", "revoke", "sk_test_nobody"]);
    assert!(!nobody.status.success(), "revoking a key that does not exist ended with success");
}

/// The identifier that `keys list` shows first in the key's line.
fn listed_id(listed: &str, key: &str) -> String {
    let line = listed.lines().find(|line| line.contains(&key[key.len() - 4..]));
    let line = line.unwrap_or_else(|| panic!("keys list shows no line for the key: {listed}"));
    line.split_whitespace().next().expect("a word in the line").to_owned()
}

#[test]
fn restricted_key_does_what_it_is_permitted_and_nothing_else() {
    let home = Home::new("cli-restricted");
    let server = home.start();
    let full = home.key();
    let restricted = home.key_with(&["--permissions", "senders:read,quote_locks:write"]);
    assert!(
        restricted.starts_with("rk_test_"),
        "a restricted key begins with rk_test_: {restricted:?}"
    );
    let made = server
        .client(&full)
        .post("/v1/senders", &steps::sender_body())
        .expect_success("the sender");
    let mut client = server.client(&restricted);
    assert_eq!(client.list("/v1/senders", ""), [made]);
    client
        .post("/v1/quote_locks", &steps::quote_lock_body("20.00"))
        .expect_success("a permitted write");
    // Neither of read and write includes the other.
    client.post("/v1/senders", &steps::sender_body()).expect_refusal(
        403,
        "action_unauthorized",
        "a write without the permission",
    );
    client.get("/v1/quote_locks").expect_refusal(
        403,
        "action_unauthorized",
        "a read without the permission",
    );
    client.get("/v1/transfers").expect_refusal(403, "action_unauthorized", "another resource");
    client.post("/v1/test_helpers/clock", &json!({ "advance_seconds": 1 })).expect_refusal(
        403,
        "action_unauthorized",
        "a test helper",
    );
    let unknown = home.run(&["keys", "create", "--mode", "test", "--permissions", "gold:read"]);
    assert!(!unknown.status.success(), "a permission that does not exist was taken");
}

#[test]
fn expired_key_may_not_act_any_more() {
    let home = Home::new("cli-expired");
    let server = home.start();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("a clock")
        .as_secs();
    let key = home.key_with(&["--expires", &(now + 3).to_string()]);
    let mut client = server.client(&key);
    client.get("/v1/senders").expect_success("a read before the expiry");
    until("the key to expire", Duration::from_secs(8), || {
        (client.get("/v1/senders").status == 401).then_some(())
    });
    client.get("/v1/senders").expect_refusal(
        401,
        "action_unauthorized",
        "a read with an expired key",
    );
    client.post("/v1/senders", &steps::sender_body()).expect_refusal(
        401,
        "action_unauthorized",
        "a write with an expired key",
    );
}

#[test]
fn live_key_can_be_made_and_reads_but_does_not_create() {
    let home = Home::new("cli-live");
    let server = home.start();
    let key =
        home.run(&["keys", "create", "--mode", "live"]).expect_success("keys create").last_line();
    assert!(key.starts_with("sk_live_"), "a live key begins with sk_live_: {key:?}");
    let mut client = server.client(&key);
    assert!(client.list("/v1/transfers", "").is_empty());
    client.post("/v1/beneficiaries", &steps::beneficiary_body()).expect_refusal(
        403,
        "action_unauthorized",
        "a live beneficiary",
    );
    client.post("/v1/senders", &steps::sender_body()).expect_refusal(
        403,
        "action_unauthorized",
        "a live sender",
    );
    client.post("/v1/quote_locks", &steps::quote_lock_body("20.00")).expect_refusal(
        403,
        "action_unauthorized",
        "a live quote lock",
    );
    client.post("/v1/test_helpers/clock", &json!({ "advance_seconds": 1 })).expect_refusal(
        403,
        "testmode_action_only",
        "a test helper",
    );
}

#[test]
fn term_signal_finishes_what_is_running_and_ends_with_success() {
    let home = Home::new("cli-term")
        .with("HUNDI_RATE_LIMIT_READS", "0")
        .with("HUNDI_RATE_LIMIT_WRITES", "0");
    let mut server = home.start();
    let key = home.key();
    let address = server.address();

    // A request whose head has been read and whose body has not been sent: it is running.
    let body = steps::sender_body().to_string();
    let whole = String::from_utf8(request_bytes(
        "POST",
        "/v1/senders",
        &key,
        Some(&fresh_key()),
        Some(body.as_bytes()),
    ))
    .expect("text");
    let head = whole
        .strip_suffix(&body)
        .expect("the head")
        .replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n");
    let mut running = Connection::open(address).expect("a connection");
    running.send(head.as_bytes()).expect("the head goes out");
    assert!(
        running.await_continue().expect("an interim answer"),
        "the server did not ask for the body"
    );
    // A connection that is kept alive and idle must not hold the end up.
    let mut idle = server.client(&key);
    idle.get("/v1/senders").expect_success("a read");

    let is_over = AtomicBool::new(false);
    let (mut acknowledged, running_id) = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|_| {
                let mut writer = server.client(&key);
                let is_over = &is_over;
                scope.spawn(move || {
                    let mut ids = Vec::new();
                    let deadline = Instant::now() + Duration::from_secs(30);
                    while !is_over.load(Ordering::Relaxed) && Instant::now() < deadline {
                        match writer.once(
                            "POST",
                            "/v1/senders",
                            Some(&fresh_key()),
                            Some(steps::sender_body().to_string().as_bytes()),
                        ) {
                            // Until the end every answer is a proper one.
                            Ok(answer) => ids.push(steps::text(
                                &answer.expect_success("a write during the shutdown"),
                                "id",
                            )),
                            Err(_) => break,
                        }
                    }
                    ids
                })
            })
            .collect();
        until("the load to flow", Duration::from_secs(10), || {
            (server.client(&key).list("/v1/senders", "").len() > 50).then_some(())
        });
        server.signal("TERM");
        until("new connections to be refused", Duration::from_secs(10), || {
            TcpStream::connect(address).is_err().then_some(())
        });
        assert!(server.ended().is_none(), "the server ended although a request was running");
        running.send(body.as_bytes()).expect("the body goes out");
        let answer =
            running.receive(true).expect("an answer").expect("an answer to the running request");
        let running_id = steps::text(&answer.expect_success("the request that was running"), "id");
        let status = server.await_end(Duration::from_secs(15));
        assert_eq!(status.code(), Some(0), "the server ended with {status}");
        is_over.store(true, Ordering::Relaxed);
        let ids: Vec<String> =
            writers.into_iter().flat_map(|writer| writer.join().expect("a writer")).collect();
        (ids, running_id)
    });
    acknowledged.push(running_id);
    assert!(home.panics().is_empty(), "{:?}", home.panics());
    home.check().expect_success("the check after the end");

    let server = home.start();
    let listed: Vec<String> = server
        .client(&key)
        .list("/v1/senders", "")
        .iter()
        .map(|sender| steps::text(sender, "id"))
        .collect();
    let lost: Vec<&String> = acknowledged.iter().filter(|id| !listed.contains(id)).collect();
    assert!(lost.is_empty(), "acknowledged and gone after the shutdown: {lost:?}");
}

/// Whoever collects the log may go away: requests are still answered, and the service still ends
/// when it is told to.
#[test]
fn a_log_that_nobody_reads_holds_nothing_up() {
    let home = Home::new("cli-broken-log").with("HUNDI_LOG", "debug");
    let server = home.start_as(&["bash", "-c", "exec \"$@\" 2> >(true)", "bash"], "127.0.0.1:0");
    let mut client = server.client(&home.key());
    for _ in 0..3 {
        client.post("/v1/senders", &steps::sender_body()).expect_success("a request");
    }
    assert!(server.stop().success(), "the server did not end well");
}

#[test]
fn openapi_is_valid_json_and_names_every_endpoint_of_the_specification() {
    let home = Home::new("cli-openapi");
    let printed = home.run_plain(&["openapi"]).expect_success("openapi");
    let document: Value =
        serde_json::from_str(&printed.stdout).expect("openapi prints JSON and nothing else");
    assert!(
        document["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")),
        "the version is {}",
        document["openapi"]
    );
    for (path, methods) in [
        ("/v1/beneficiaries", &["get", "post"][..]),
        ("/v1/beneficiaries/{id}", &["get", "post"]),
        ("/v1/senders", &["get", "post"]),
        ("/v1/senders/{id}", &["get"]),
        ("/v1/quote_locks", &["get", "post"]),
        ("/v1/quote_locks/{id}", &["get"]),
        ("/v1/transfers", &["get", "post"]),
        ("/v1/transfers/{id}", &["get"]),
        ("/v1/transfers/{id}/cancel", &["post"]),
        ("/v1/transfers/{id}/resolve_funding", &["post"]),
        ("/v1/transfers/{id}/funding/diagnose", &["post"]),
        ("/v1/refunds", &["get"]),
        ("/v1/refunds/{id}", &["get", "post"]),
        ("/v1/webhook_endpoints", &["get", "post"]),
        ("/v1/webhook_endpoints/{id}", &["get", "post", "delete"]),
        ("/v1/webhook_endpoints/{id}/rotate_secret", &["post"]),
        ("/v1/webhook_endpoints/{id}/deliveries", &["get"]),
        ("/v1/webhook_endpoints/{id}/replay", &["post"]),
        ("/v1/deposits", &["get"]),
        ("/v1/deposits/{id}", &["get"]),
        ("/v1/payouts", &["get"]),
        ("/v1/payouts/{id}", &["get"]),
        ("/v1/payouts/{id}/payment_advice", &["get"]),
        ("/v1/balance", &["get"]),
        ("/v1/corridors", &["get"]),
        ("/v1/events", &["get"]),
        ("/v1/events/{id}", &["get"]),
    ] {
        for method in methods {
            assert!(document["paths"][path][method].is_object(), "{method} {path} is missing");
        }
    }
    let server = home.start();
    let mut connection = Connection::open(server.address()).expect("a connection");
    connection.send(b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").expect("sent");
    let served = connection.receive(true).expect("an answer").expect("an answer");
    assert_eq!(served.status, 200);
    // Only the address differs: the printed document names the default one.
    let mut served = served.json();
    served["servers"] = document["servers"].clone();
    assert!(served == document, "what is served differs from what is printed");
}

#[test]
fn demo_ends_with_a_test_reference() {
    let home = Home::new("cli-demo");
    let demo = home.run_plain(&["demo", "--once"]).expect_success("demo");
    assert!(!demo.stdout.contains("sk_test_"), "a key is in the output of a script");
    let reference = demo
        .stdout
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .find(|word| word.starts_with("TEST") && matches!(word.len(), 16 | 22));
    assert!(reference.is_some(), "the demo shows no UTR that begins with TEST: {}", demo.stdout);
    assert!(!demo.stderr.contains("panicked"), "{}", demo.stderr);
    // It works on a temporary database and leaves nothing where it was called.
    let left: Vec<_> = std::fs::read_dir(&home.directory)
        .expect("the directory")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    assert!(left.is_empty(), "the demo left {left:?}");
}

/// In test mode, where refunds complete by themselves: the lists and what is refused. The whole way
/// is in tests/chain.
#[test]
fn refunds_and_addresses_are_told_to_the_operator() {
    let home = Home::new("cli-refunds");
    let server = home.start();
    let mut client = server.client(&home.key_with(&["--account", "Rao, \"Sons\" & Co"]));
    let payment = steps::six_steps(&mut client, "55.00");
    let beneficiary = steps::beneficiary_payable(&mut client);
    let sender = steps::sender(&mut client);
    let lock = steps::quote_lock(&mut client, "20.00");
    let body = steps::transfer_body(&sender, &beneficiary, &lock, "20.00");
    let over = client.post("/v1/transfers", &body).expect_success("a transfer");
    let over_id = steps::text(&over, "id");
    client
        .post(
            &format!("/v1/test_helpers/transfers/{over_id}/deposit"),
            &json!({ "amount": "21.50" }),
        )
        .expect_success("a deposit");
    let refund = until("the refund of the excess", Duration::from_secs(20), || {
        client.list("/v1/refunds", "").first().cloned()
    });
    let refund_id = steps::text(&refund, "id");

    let listed = home.run(&["refunds", "list"]).expect_success("refunds list").stdout;
    let wanted = format!(
        "{refund_id}\ttest\t{over_id}\t1.50\tUSDT\ttron\t-\trequires_address\t-\t-\t-\t-\t-\t-"
    );
    assert_eq!(listed.lines().skip(1).collect::<Vec<_>>(), [wanted], "{listed}");
    for (arguments, count) in [
        (&["--status", "requires_address"][..], 1),
        (&["--status", "processing"], 0),
        (&["--mode", "test"], 1),
        (&["--mode", "live"], 0),
        (&["--mode", "test", "--status", "completed"], 0),
    ] {
        let mut all = vec!["refunds", "list"];
        all.extend(arguments);
        assert_eq!(
            home.run(&all).expect_success("refunds list").stdout.lines().count() - 1,
            count,
            "{arguments:?}"
        );
    }
    let hash = "ab".repeat(32);
    for (arguments, words) in [
        (&["refunds", "list", "--status", "lost"][..], "requires_address, processing, completed"),
        (&["refunds", "complete", "refund_x", "--hash", &hash], "no refund's ID"),
        (
            &["refunds", "complete", "refund_01K5ZZZZZZ7Q2X7N4V6T9R0ABC", "--hash", &hash],
            "no such refund",
        ),
        (&["refunds", "complete", &refund_id, "--hash", &hash], "simulated"),
    ] {
        let outcome = home.run(arguments);
        assert!(
            !outcome.status.success() && says(&outcome, &[words]),
            "{arguments:?}: {}",
            outcome.stderr
        );
    }

    let csv = home.run(&["addresses", "export"]).expect_success("addresses export").stdout;
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines[0],
        "address,derivation_path,derivation_index,account_key,mode,account,transfer_id,chain,asset,\
         token_contract,received,swept,balance"
    );
    let address = |transfer: &Value| {
        transfer["funding"]["deposit_address"].as_str().unwrap_or_default().to_owned()
    };
    let contract = over["funding"]["token_contract"].as_str().unwrap_or_default();
    let tail = |transfer_id: &str, amount: &str| {
        format!(
            ",test,\"Rao, \"\"Sons\"\" & \
             Co\",{transfer_id},tron,USDT,{contract},{amount},0.00,{amount}"
        )
    };
    assert_eq!(lines.len(), 3);
    assert!(lines[1].starts_with(&format!("{},0/", address(&payment.settled))), "{}", lines[1]);
    assert!(lines[1].ends_with(&tail(&payment.transfer_id, "55.00")), "{}", lines[1]);
    assert!(
        lines[2].starts_with(&address(&over)) && lines[2].ends_with(&tail(&over_id, "21.50")),
        "{}",
        lines[2]
    );
    let json = home
        .run(&["addresses", "export", "--format", "json", "--mode", "test"])
        .expect_success("addresses export")
        .stdout;
    let exported: Value = serde_json::from_str(&json).expect("JSON");
    let exported = exported.as_array().expect("an array");
    assert_eq!(exported.len(), 2);
    let index = exported[1]["derivation_index"].as_i64().expect("an index");
    assert_eq!(exported[1]["derivation_path"], format!("0/{index}"));
    assert_eq!(
        (&exported[1]["received"], &exported[1]["balance"]),
        (&json!("21.50"), &json!("21.50"))
    );
    for text in [&csv, &json] {
        assert!(!text.contains("xpub") && !text.contains("xprv"), "a key was printed");
    }
    assert_eq!(
        home.run(&["addresses", "export", "--mode", "live"])
            .expect_success("addresses export")
            .stdout
            .lines()
            .count(),
        1
    );
}

#[test]
fn wrong_command_lines_are_refused() {
    let home = Home::new("cli-wrong");
    for arguments in [
        &["serve", "--listen", "nowhere"][..],
        &["serve", "--database", "nonsense:here"],
        &["keys", "create", "--mode", "gold"],
        &["keys", "create"],
        &["backup"],
        &["dance"],
        &["check", "--database", "sqlite:there-is-no-such-file.db"],
    ] {
        let outcome = home.run_plain(arguments);
        assert!(!outcome.status.success(), "hundi {} ended with success", arguments.join(" "));
        assert!(
            !outcome.stderr.trim().is_empty(),
            "hundi {} was refused without a word",
            arguments.join(" ")
        );
        assert!(
            !outcome.stderr.contains("panicked"),
            "hundi {}: {}",
            arguments.join(" "),
            outcome.stderr
        );
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let listen = taken.local_addr().expect("its address").to_string();
    let outcome = home.run(&["serve", "--listen", &listen]);
    assert!(!outcome.status.success(), "serve ended with success on a port that is taken");
    assert!(
        says(&outcome, &[&listen, "in use"]),
        "the refusal does not name the address: {}",
        outcome.stderr
    );
}

/// A start that cannot keep the first key makes none, so that the next one does.
#[test]
fn a_first_key_that_cannot_be_kept_is_not_made() {
    let home = Home::new("cli-first-lost").with("HUNDI_CONSOLE_LISTEN", "127.0.0.1:0");
    let path = home.directory.join("hundi.db.first-key");
    // Even root cannot write a file where a folder is.
    std::fs::create_dir(&path).expect("a folder in its place");
    let refused = refused_start(&home);
    assert!(refused.stderr.contains("first-key"), "{}", refused.stderr);
    std::fs::remove_dir(&path).expect("the folder goes");
    let listed = home.run(&["keys", "list"]).expect_success("keys list").stdout;
    assert!(!listed.contains("default"), "a key that nobody has: {listed}");
    // Neither does one whose console cannot be.
    let mut home = home;
    home.set("HUNDI_CONSOLE_URL", "https://");
    let refused = refused_start(&home);
    assert!(refused.stderr.contains("console's address"), "{}", refused.stderr);
    assert!(!path.exists(), "an empty file is left");
    home.unset("HUNDI_CONSOLE_URL");
    let server = home.start();
    let key = std::fs::read_to_string(&path).expect("the first key").trim().to_owned();
    server.client(&key).get("/v1/balance").expect_success("a read with the first key");
    assert!(server.stop().success());
}

/// A first start that dies where its key is made: the next start has a key that works.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "optimised builds do not contain the planted kills")]
fn a_first_start_that_is_killed_loses_no_key() {
    use std::os::unix::fs::PermissionsExt;
    for fault in ["first_key_dies_before_its_commit", "first_key_dies_after_its_commit"] {
        let mut home = Home::new("cli-first-killed");
        home.set("HUNDI_TEST_FAULT", fault);
        let killed = home.run(&["serve", "--listen", "127.0.0.1:0"]);
        assert!(!killed.status.success() && !killed.stdout.contains("listening"), "{killed:?}");
        home.unset("HUNDI_TEST_FAULT");
        let is_made = fault == "first_key_dies_after_its_commit";
        let listed = home.run(&["keys", "list", "--json"]).expect_success("keys list").stdout;
        assert_eq!(listed.contains("default"), is_made, "{fault}: {listed}");
        let server = home.start();
        let path = home.directory.join("hundi.db.first-key");
        let mode = std::fs::metadata(&path).expect("the key's file").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        let key = std::fs::read_to_string(&path).expect("the first key").trim().to_owned();
        let mut client = server.client(&key);
        client.get("/v1/balance").expect_success("a read with the first key");
        assert!(server.stop().success());
        let listed = home.run(&["keys", "list", "--json"]).expect_success("keys list").stdout;
        assert_eq!(listed.lines().filter(|line| line.contains("default")).count(), 1, "{listed}");
    }
}

/// A first start on an empty database makes one test key. Its output is no terminal here, so the
/// key goes to a file that its owner alone reads, and the output names it.
/// As after a first start on a terminal that ended before it showed its key.
#[test]
fn a_start_says_how_to_replace_a_first_key_that_nobody_kept() {
    let home = Home::new("cli-unkept");
    let said = |words: &str| home.log().contains(words);
    let wait =
        |words: &'static str| until(words, Duration::from_secs(60), || said(words).then_some(()));
    assert!(home.start().stop().success());
    let server = home.start();
    wait("the first key is still in");
    assert!(server.stop().success());
    assert!(!said("no API key was used yet"), "the key is in its file: {}", home.log());
    std::fs::remove_file(home.directory.join("hundi.db.first-key")).expect("the key's file");
    let server = home.start();
    wait("no API key was used yet: if you have none, `hundi keys create --mode test` makes one");
    assert!(server.stop().success());
}

#[cfg(unix)]
#[test]
fn first_start_makes_a_key_that_works_and_shows_it_in_no_log() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new("cli-first");
    let server = home.start();
    let path = home.directory.join("hundi.db.first-key");
    let log = until("the end of the greeting", Duration::from_secs(10), || {
        Some(home.log()).filter(|log| log.contains("keys create"))
    });
    assert!(!log.contains("sk_test_"), "the log shows the key");
    // What leads to a payment stands there, to be pasted, before anything else to call.
    let pasted: Vec<&str> = log.lines().filter(|line| line.starts_with("    ")).collect();
    assert!(pasted.len() == 3 && pasted[2].ends_with("hundi quickstart"), "{log}");
    assert!(log.contains("first-key") && log.contains("/docs/"), "{log}");
    let files: Vec<_> =
        std::fs::read_dir(&home.directory).expect("the directory").flatten().collect();
    let found = files
        .iter()
        .map(|file| file.path())
        .find(|path| path.to_string_lossy().ends_with(".first-key"));
    let path = found.unwrap_or(path);
    let mode = std::fs::metadata(&path).expect("the key's file").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "the first key's file has mode {mode:o}");
    let key = std::fs::read_to_string(&path).expect("the first key").trim().to_owned();
    std::fs::remove_file(&path).expect("the key's file goes");
    server.client(&key).get("/v1/balance").expect_success("a read with the printed key");
    assert!(server.stop().success());
    let keys_before = home.run(&["keys", "list"]).expect_success("keys list").stdout;
    let server = home.start();
    until("where the guides are", Duration::from_secs(10), || {
        Some(()).filter(|()| home.log().contains("guides at http://"))
    });
    assert!(server.stop().success());
    let keys_after = home.run(&["keys", "list"]).expect_success("keys list").stdout;
    assert_eq!(keys_before, keys_after, "a second start made another key");
    let mut unread = String::new();
    // Nothing of the key may lie in a file beside the database.
    for entry in std::fs::read_dir(&home.directory).expect("the directory").flatten() {
        let mut bytes = Vec::new();
        if std::fs::File::open(entry.path())
            .and_then(|mut file| file.read_to_end(&mut bytes))
            .is_err()
        {
            unread.push_str(&format!("{} ", entry.path().display()));
        }
        let is_there = bytes.windows(key.len()).any(|window| window == key.as_bytes());
        assert!(!is_there, "{} holds the key in plain text", entry.path().display());
    }
    assert!(unread.is_empty(), "could not look into {unread}");
}

/// A database that release 0.1.0 wrote, and the sanctions list that it was screened with. Both live
/// senders that hits were decided about, and one whose hit is open, are on that list.
struct Kept {
    home: Home,
    contents: Value,
}

impl Kept {
    /// A copy, with the list as `change` leaves it.
    fn copy(change: impl FnOnce(String) -> String) -> Kept {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/databases/0.1.0");
        let contents: Value =
            serde_json::from_slice(&std::fs::read(folder.join("contents.json")).unwrap()).unwrap();
        let home = Home::new("cli-kept").with("HUNDI_PUBLIC_URL", PUBLIC_URL);
        let home = home.with("HUNDI_ENCRYPTION_KEY", contents["encryption_key"].as_str().unwrap());
        std::fs::copy(folder.join("hundi.db"), home.database_path()).unwrap();
        let list = std::fs::read_to_string(folder.join("operator.csv")).unwrap();
        let path = home.directory.join("operator.csv");
        std::fs::write(&path, change(list)).unwrap();
        let config = format!("[screening]\noperator_file = \"{}\"\n", path.display());
        let config_path = home.directory.join("hundi.toml");
        std::fs::write(&config_path, config).unwrap();
        let home = home.with("HUNDI_CONFIG", config_path.to_str().unwrap());
        Kept { home, contents }
    }

    fn text(&self, name: &str) -> String {
        self.contents[name].as_str().unwrap().to_owned()
    }

    /// Open hits, once everybody was screened again: the last sender by then has one.
    fn open_hits_after_screening_again(&self) -> String {
        let last = self.text("clear");
        until("everybody to be screened again", Duration::from_secs(20), || {
            let hits = self.home.run(&["screening", "hits"]).expect_success("screening hits");
            hits.stdout.contains(&last).then_some(hits.stdout)
        })
    }
}

/// Names the last sender, so that screening everybody again is due and its end is seen.
const NEW_ENTRY: &str = "own-4,Ravi Rao,,,,,\n";

#[test]
fn database_of_release_0_1_0_opens_and_its_screening_decisions_stand() {
    let kept = Kept::copy(|list| list + NEW_ENTRY);
    // A check migrates nothing; it says what to do.
    assert!(kept.home.check().stdout.contains("`hundi serve` once"));
    let server = kept.home.start();
    kept.home.check().expect_success("check after the migration");
    let mut client = server.client(&kept.text("test_key"));
    for (path, count) in [
        ("/v1/beneficiaries", 2),
        ("/v1/senders", 2),
        ("/v1/quote_locks", 5),
        ("/v1/transfers", 5),
        ("/v1/deposits", 3),
        ("/v1/payouts", 2),
        ("/v1/refunds", 1),
        ("/v1/webhook_endpoints", 1),
    ] {
        let listed = client.list(path, "");
        assert_eq!(listed.len(), count, "{path}");
        for object in listed {
            let path = format!("{path}/{}", object["id"].as_str().unwrap());
            assert_eq!(client.get(&path).expect_success(&path), object, "{path}");
        }
    }
    assert!(client.list("/v1/events", "").len() > 10);
    let other = server.client(&kept.text("second_key")).list("/v1/senders", "");
    assert!(other.is_empty(), "of another account: {other:?}");
    assert_eq!(server.client(&kept.text("live_key")).list("/v1/senders", "").len(), 4);
    let hits = kept.open_hits_after_screening_again();
    assert!(hits.contains(&kept.text("open")), "the open hit stays open:\n{hits}");
    assert!(!hits.contains(&kept.text("cleared")), "the clearance stands:\n{hits}");
    assert!(!hits.contains(&kept.text("refused")), "the refusal stands:\n{hits}");
    assert!(server.stop().success());
    kept.home.check().expect_success("check at the end");
}

#[test]
fn clearance_of_release_0_1_0_ends_when_its_entry_changes() {
    let kept =
        Kept::copy(|list| list.replace("own-1,Zubin Tarkhad", "own-1,Zubin Tarkhade") + NEW_ENTRY);
    let server = kept.home.start();
    let hits = kept.open_hits_after_screening_again();
    assert!(hits.contains(&kept.text("cleared")), "another entry is decided anew:\n{hits}");
    assert!(!hits.contains(&kept.text("refused")), "the refusal stands:\n{hits}");
    assert!(server.stop().success());
}

/// A child process that does not outlive the test.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A draft, which has one event.
fn draft(client: &mut Client) {
    let mut body = steps::beneficiary_body();
    body["submit"] = json!(false);
    client.post("/v1/beneficiaries", &body).expect_success("a draft");
}

#[test]
fn listening_goes_on_where_it_stopped_and_loses_nothing() {
    const PATIENCE: Duration = Duration::from_secs(40);
    let home = Home::new("listen");
    let server = home.start();
    let key = home.key();
    let mut client = server.client(&key);
    draft(&mut client);
    let receiver = Receiver::start();
    let state = home.directory.join("place.json");
    let base_url = format!("http://{}", server.address());
    let listen = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hundi"));
        command.args(["listen", "--state", state.to_str().unwrap()]).args(more);
        command.env("HUNDI_API_KEY", &key).env("HUNDI_BASE_URL", &base_url);
        command.stdout(Stdio::piped()).stderr(Stdio::null()).stdin(Stdio::null());
        command
    };
    let printed = listen(&["--print-secret"]).output().unwrap();
    let secret = String::from_utf8(printed.stdout).unwrap().trim().to_owned();
    assert!(secret.starts_with("whsec_"), "{secret}");
    let forward = ["--forward-to", receiver.url.as_str()];
    let first = Running(listen(&forward).spawn().unwrap());
    until("the listener to know its place", PATIENCE, || state.exists().then_some(()));
    // The receiver has another secret, so it answers 400; the event is forwarded again.
    receiver.trust("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    draft(&mut client);
    until("a refusal", PATIENCE, || (receiver.problems().0 > 0).then_some(()));
    receiver.trust(&secret);
    until("the event again", PATIENCE, || (receiver.events_count() == 1).then_some(()));
    // Killed before it noted the answer, it would rightly forward the event once more.
    until("the answer to be noted", PATIENCE, || {
        let noted = std::fs::read_to_string(&state).unwrap_or_default();
        noted.contains(r#""undelivered":[]"#).then_some(())
    });
    drop(first);
    let (problems_before, _) = receiver.problems();
    // Nobody listens for a while.
    for _ in 0..5 {
        draft(&mut client);
    }
    let mut second = Running(listen(&forward).spawn().unwrap());
    until("every event", PATIENCE, || (receiver.events_count() == 6).then_some(()));
    draft(&mut client);
    until("the next event", PATIENCE, || (receiver.events_count() == 7).then_some(()));
    // Two with one file would forward everything twice.
    assert!(!listen(&forward).output().unwrap().status.success());
    let _ = second.0.kill();
    let mut shown = String::new();
    second.0.stdout.take().unwrap().read_to_string(&mut shown).unwrap();
    assert!(shown.contains(&secret) && shown.contains("Continuing where"), "{shown}");
    assert_eq!(shown.matches("[200]").count(), 6, "{shown}");
    assert!(!shown.contains(&key), "the key is not shown");
    // All but the one from before the first start, in the form and under the signature of a
    // delivery.
    let events = client.list("/v1/events", "");
    assert_eq!(events.len(), 8);
    for event in &events[1..] {
        let record = receiver.record(event["id"].as_str().unwrap()).expect("a forwarded event");
        assert_eq!((&record.event, record.valid_count > 0), (event, true));
    }
    assert_eq!(receiver.problems().0, problems_before, "{:?}", receiver.problems());
    let unsafe_url = ["--base-url", "http://203.0.113.7", "--print-secret"];
    assert!(!listen(&unsafe_url).output().unwrap().status.success(), "a key in the clear");
}

#[test]
fn a_quick_start_leads_to_a_reference() {
    let home = Home::new("quickstart").with("HUNDI_SIMULATION_STEP_MILLISECONDS", "5");
    let server = home.start();
    let base_url = format!("http://{}", server.address());
    let run =
        |key: &str| home.run_plain(&["quickstart", "--base-url", &base_url, "--api-key", key]);
    let keyless = home.run_plain(&["quickstart", "--base-url", &base_url]).stderr;
    assert!(keyless.contains("HUNDI_API_KEY") && keyless.contains("keys create --mode test"));
    let nowhere =
        home.run_plain(&["quickstart", "--base-url", "http://127.0.0.1:9", "--api-key", "k"]);
    assert!(nowhere.stderr.contains("HUNDI_BASE_URL"), "{}", nowhere.stderr);
    let shown = run(&home.key()).expect_success("quickstart").stdout;
    assert!(shown.lines().any(|line| line.starts_with("UTR") && line.contains("TEST")), "{shown}");
    for link in ["/pay/transfer_", "/verify/payout_", "/docs/"] {
        assert!(shown.contains(&format!("{base_url}{link}")), "{link} is not in {shown}");
    }
    assert!(shown.contains("payout.unique_transaction_reference"), "{shown}");
    assert!(!run("sk_test_wrong").status.success());
    // The same steps for a shell need no key yet, and show none.
    let lines = home.run_plain(&["quickstart", "--curl", "--base-url", &format!("{base_url}/")]);
    let lines = lines.expect_success("quickstart --curl").stdout;
    assert!(lines.contains(&format!("export HUNDI_BASE_URL={base_url}\n")), "{lines}");
}

#[test]
fn events_can_be_triggered() {
    let home = Home::new("trigger").with("HUNDI_SIMULATION_STEP_MILLISECONDS", "5");
    let server = home.start();
    let key = home.key();
    let base_url = format!("http://{}", server.address());
    let trigger = |event: &str, key: &str| {
        let mut all = vec!["trigger", "--base-url", &base_url, "--api-key", key];
        all.extend((!event.is_empty()).then_some(event));
        home.run_plain(&all)
    };
    let listed = trigger("", "x").expect_success("the list").stdout;
    assert!(listed.lines().count() >= 28, "{listed}");
    // One of each way in which an event is made.
    for event in [
        "beneficiary.status.draft",
        "beneficiary.status.input_required",
        "beneficiary.payouts_enabled.updated",
        "payout.payment_advice.available",
        "payout.status.hold",
        "refund.status.completed",
        "refund.status.requires_address",
        "transfer.status.cancelled",
        "transfer.status.expired",
        "transfer.status.funding",
        "transfer.status.funding_hold",
    ] {
        assert!(listed.lines().any(|line| line == event), "{event}");
        let last = trigger(event, &key).expect_success(event).last_line();
        assert!(last.starts_with("event_") && last.contains(event), "{last}");
    }
    let unknown = trigger("transfer.status.lost", &key);
    assert!(!unknown.status.success() && unknown.stderr.contains("hundi trigger"));
    let live = home.run(&["keys", "create", "--mode", "live"]).expect_success("a key").last_line();
    assert!(!trigger("beneficiary.status.draft", &live).status.success(), "a live key");
    drop(server);
    home.check().expect_success("the book");
}

#[test]
fn doctor_tells_of_a_day_that_looking_for_blocks_uses_up() {
    let mut home = Home::new("cli-doctor-budget");
    for (name, value) in [
        ("NAME", "tron"),
        // Nobody listens there.
        ("ENDPOINTS", "http://127.0.0.1:9"),
        ("CHAIN_ID", "728126428"),
        ("TOKEN_CONTRACT", "TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf"),
        ("ACCOUNT_KEY", ACCOUNT_KEY),
        ("REQUESTS_PER_DAY", "30000"),
    ] {
        home.set(&format!("HUNDI_TEST_CHAIN_{name}"), value);
    }
    let told = home.run(&["doctor"]).stdout;
    assert!(told.contains("test_chain   look         endpoint 1 allows 30000"), "{told}");
    assert!(told.contains("86 %"), "{told}");
    home.set("HUNDI_TEST_CHAIN_REQUESTS_PER_DAY", "100000");
    let told = home.run(&["doctor"]).stdout;
    assert!(told.contains("test_chain") && !told.contains("look "), "{told}");
}

#[test]
fn doctor_is_content_with_test_mode_alone_and_tells_of_every_part() {
    let home = Home::new("cli-doctor");
    let server = home.start();
    let healthy = home.run(&["doctor"]).expect_success("doctor of a healthy test mode");
    assert!(healthy.stdout.contains("test mode is ready"), "{}", healthy.stdout);
    assert!(server.stop().success());
    // One part is wrong: the others are told of all the same.
    let config = home.directory.join("hundi.toml");
    let text = "[screening]\nage_days_max = 7\n";
    std::fs::write(&config, text).unwrap();
    let home = home.with("HUNDI_CONFIG", config.to_str().unwrap());
    let told = home.run(&["doctor"]);
    assert!(!told.status.success());
    for line in ["screening    stops", "bank         missing", "rates        missing"] {
        assert!(told.stdout.contains(line), "{line}:\n{}\n{}", told.stdout, told.stderr);
    }
    // A list that is not enough for live mode stops nothing while live mode is off.
    let list = home.directory.join("operator.csv");
    let head = "id,name,aliases,date_of_birth,country,address,note\n";
    std::fs::write(&list, format!("{head}1,Zubin Tarkhad,,,,,\n")).unwrap();
    let text = format!("[screening]\noperator_file = \"{}\"\n", list.display());
    std::fs::write(&config, text).unwrap();
    let told = home.run(&["doctor"]);
    assert!(!told.status.success());
    assert!(told.stdout.contains("screening    fails"), "{}", told.stdout);
    let last = "the service starts without live mode: 4 parts missing, and 1 part fails";
    assert!(told.stderr.contains(last), "{}", told.stderr);
    let server = home.start();
    // What is paused is shown in words, and in times for people.
    for pause in [&["payouts", "--actor", "asha", "--reason", "the bank is down"][..], &["quotes"]]
    {
        home.run(&[&["pause"][..], pause].concat()).expect_success("pause");
    }
    let told = home.run(&["doctor"]).stdout;
    let line = |start: &str| {
        told.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{told}"))
    };
    let payouts = line("payouts      paused       for everybody since 20");
    assert!(payouts.ends_with(" by asha: the bank is down"), "{payouts}");
    let quotes = line("quotes       paused       for everybody since 20");
    assert!(quotes.ends_with("UTC") || quotes.ends_with("UTC)"), "{quotes}");
    assert!(server.stop().success());
    std::fs::write(&config, "listen = 7\n").unwrap();
    let told = home.run(&["doctor"]);
    assert!(told.stdout.contains("settings     stops"), "{}", told.stdout);
}

#[test]
fn each_change_of_a_transfer_is_one_line_of_the_log() {
    let home = Home::new("cli-log");
    let server = home.start();
    let key = home.key();
    steps::six_steps(&mut server.client(&key), "310.00");
    let id = server.client(&key).list("/v1/transfers", "")[0]["id"].as_str().unwrap().to_owned();
    assert!(server.stop().success());
    let changes: Vec<(String, String)> = home
        .log()
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|line| line["transfer"] == id.as_str())
        .map(|line| {
            assert_eq!(line["level"], "INFO");
            (line["from"].as_str().unwrap().to_owned(), line["to"].as_str().unwrap().to_owned())
        })
        .collect();
    let wanted = ["funding", "funded", "payout_processing", "payout_settled"];
    let wanted: Vec<(String, String)> =
        wanted.windows(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect();
    assert_eq!(changes, wanted);
}
