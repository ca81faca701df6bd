//! A full disk, played by a limit on the size of the server's files: writes are answered 503 while
//! it lasts, reads go on, and when it ends the same process serves again with nothing lost.

#![cfg(target_os = "linux")]

mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::client::until;
use support::steps;
use support::{Answer, Client, Home, Server, fresh_key};

const REFUSALS_COUNT: usize = 40;
/// How soon after the end of the shortage writes must be taken again.
const RECOVERY_MAX: Duration = Duration::from_secs(10);

/// Sets the soft limit on the size of files that the running server writes; the hard limit stays,
/// so that it can be lifted again without rights.
fn limit_file_bytes(server: &Server, soft: &str) {
    let set = Command::new("prlimit")
        .args(["--pid", &server.pid().to_string(), &format!("--fsize={soft}")])
        .output();
    let set = set.expect("prlimit of util-linux is needed for this test");
    assert!(set.status.success(), "prlimit failed: {}", String::from_utf8_lossy(&set.stderr));
}

fn sender_numbered(number: usize) -> Value {
    let mut body = steps::sender_body();
    body["metadata"] = json!({ "number": number.to_string() });
    body
}

fn expect_unavailable(answer: Answer) {
    let retry_after = answer.header("retry-after").map(str::to_owned);
    let body = answer.expect_refusal(503, "service_unavailable", "a write on a full disk");
    assert_eq!((&body["object"], &body["http_status_code"]), (&json!("error"), &json!(503)));
    let seconds = retry_after.as_deref().and_then(|text| text.parse::<u64>().ok());
    assert!(
        seconds.is_some_and(|seconds| seconds > 0),
        "a 503 without a sound Retry-After: {retry_after:?}"
    );
}

fn await_writable(client: &mut Client) {
    let mut last = String::new();
    let started = Instant::now();
    until("writes to be taken again", RECOVERY_MAX, || {
        let answer = client.post("/v1/senders", &sender_numbered(usize::MAX));
        last = format!("{} {}", answer.status, answer.text());
        answer.is_success().then_some(())
    });
    println!("writes were taken again {:?} after the limit was lifted", started.elapsed());
}

/// How many senders carry each number.
fn sender_counts(client: &mut Client, numbers_count: usize) -> Vec<usize> {
    let mut counts = vec![0; numbers_count];
    for sender in client.list("/v1/senders", "") {
        if let Some(number) =
            sender["metadata"]["number"].as_str().and_then(|text| text.parse::<usize>().ok())
            && let Some(count) = counts.get_mut(number)
        {
            *count += 1;
        }
    }
    counts
}

#[test]
fn full_disk_is_answered_503_and_heals_by_itself() {
    // Links in answers name the address, which differs after the restart in the end.
    let home = Home::new("disk").with("HUNDI_PUBLIC_URL", "https://pay.example.com");
    let mut server = home.start_as(&[], "127.0.0.1:0");
    let mut client = server.client(&home.key());
    let payment = steps::six_steps(&mut client, "120.00");
    // One more payment whose money is under way when the disk is full.
    let (_, _, _, transfer) = steps::transfer_unfunded(&mut client, "75.50");
    let transfer_id = steps::text(&transfer, "id");
    let deposit = steps::deposit(&mut client, &transfer_id);

    limit_file_bytes(&server, "0:");
    let keys: Vec<String> = (0..REFUSALS_COUNT).map(|_| fresh_key()).collect();
    std::thread::scope(|scope| {
        for (thread, keys) in keys.chunks(REFUSALS_COUNT / 4).enumerate() {
            let mut writer = client.twin();
            scope.spawn(move || {
                for (index, key) in keys.iter().enumerate() {
                    let number = thread * (REFUSALS_COUNT / 4) + index;
                    expect_unavailable(writer.post_with(
                        "/v1/senders",
                        key,
                        &sender_numbered(number),
                    ));
                }
            });
        }
    });
    // Reads go on: single objects, lists and the page that says whether the process lives.
    let seen = client
        .get(&format!("/v1/transfers/{}", payment.transfer_id))
        .expect_success("a read on a full disk");
    assert_eq!(seen, payment.settled);
    for path in ["/v1/senders", "/v1/events", "/v1/balance", "/v1/payouts"] {
        client.get(path).expect_success(path);
    }
    assert_eq!(server.probe("/healthz"), Some(200), "the process lives, whatever the disk does");
    assert!(server.ended().is_none(), "the server ended on a full disk");
    let mut prober = server.client("");
    let page = until("/readyz to say that writes fail", steps::PATIENCE, || {
        let answer = prober.get("/readyz");
        (answer.status == 503).then(|| answer.text())
    });
    assert!(page.contains("write"), "/readyz does not say what is wrong: {page}");

    limit_file_bytes(&server, "unlimited:");
    await_writable(&mut client);
    assert!(server.ended().is_none(), "the server was restarted");
    // A 5xx releases the key: the same request is carried out now, once.
    for (number, key) in keys.iter().enumerate() {
        let answer = client.post_with("/v1/senders", key, &sender_numbered(number));
        assert!(!answer.is_replay(), "a 503 was stored under its key: {}", answer.text());
        answer.expect_success("the retry of a write that was answered 503");
    }
    assert_eq!(
        sender_counts(&mut client, REFUSALS_COUNT),
        [1; REFUSALS_COUNT],
        "a write answered 503 left something behind"
    );
    // What was under way arrives.
    let settled = steps::settlement(&mut client, &transfer_id);
    assert_eq!(settled["funding"]["amount_received"], "75.50");
    let deposit_id = steps::text(&deposit, "id");
    assert_eq!(
        client.get(&format!("/v1/deposits/{deposit_id}")).expect_success("the deposit")["status"],
        "completed"
    );
    until("the server to call itself ready", steps::PATIENCE, || server.is_ready().then_some(()));
    // Webhooks and events were not lost either: the settlement is in the list.
    let told = client.list(
        "/v1/events",
        &format!("linked_id={transfer_id}&type=transfer.status.payout_settled"),
    );
    assert_eq!(told.len(), 1, "the settlement has one event");

    home.check().expect_success("the check beside the running server");
    assert!(home.panics().is_empty(), "{:?}", home.panics());
    assert!(server.stop().success(), "the server did not end well");
    home.check().expect_success("the check of the stopped server's database");
    let server = home.start();
    let mut client = server.client(&client.api_key);
    let seen = client
        .get(&format!("/v1/transfers/{}", payment.transfer_id))
        .expect_success("a read after a restart");
    assert_eq!(seen, payment.settled);
}

/// The disk fills up in the middle of a load, so that some writes of one commit fit and others do
/// not.
#[test]
fn disk_that_fills_up_under_load_loses_nothing_acknowledged() {
    const ROUNDS_COUNT: usize = 3;
    const WRITES_MAX: usize = 4_000;
    const WRITERS_COUNT: usize = 4;
    /// What still fits when the limit is set.
    const ROOM_BYTES: u64 = 512 * 1024;

    let home = Home::new("disk-filling")
        .with("HUNDI_RATE_LIMIT_READS", "0")
        .with("HUNDI_RATE_LIMIT_WRITES", "0");
    let server = home.start_as(&[], "127.0.0.1:0");
    let mut client = server.client(&home.key());
    client.post("/v1/senders", &sender_numbered(usize::MAX)).expect_success("the first write");
    let mut acknowledged: Vec<String> = Vec::new();
    let mut refused: Vec<(String, usize)> = Vec::new();
    let mut number_next = 0;
    for round in 0..ROUNDS_COUNT {
        let largest = std::fs::read_dir(&home.directory)
            .expect("the directory")
            .filter_map(|entry| entry.ok()?.metadata().ok())
            .map(|metadata| metadata.len())
            .max()
            .unwrap_or(0);
        limit_file_bytes(&server, &format!("{}:", largest + ROOM_BYTES));
        let (mut ids, mut failed) = (Vec::new(), Vec::new());
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..WRITERS_COUNT)
                .map(|thread| {
                    let mut writer = client.twin();
                    scope.spawn(move || {
                        let (mut ids, mut failed) = (Vec::new(), Vec::new());
                        for index in 0..WRITES_MAX / WRITERS_COUNT {
                            let number = number_next + index * WRITERS_COUNT + thread;
                            let key = fresh_key();
                            let answer =
                                writer.post_with("/v1/senders", &key, &sender_numbered(number));
                            if answer.is_success() {
                                ids.push(answer.id());
                            } else {
                                expect_unavailable(answer);
                                failed.push((key, number));
                                if failed.len() == 5 {
                                    break;
                                }
                            }
                        }
                        (ids, failed)
                    })
                })
                .collect();
            for thread in threads {
                let (more_ids, more_failed) = thread.join().expect("a writer");
                ids.extend(more_ids);
                failed.extend(more_failed);
            }
        });
        number_next += WRITES_MAX;
        println!("round {round}: {} writes were taken and {} refused", ids.len(), failed.len());
        assert!(
            !failed.is_empty(),
            "{WRITES_MAX} writes fitted into {ROOM_BYTES} bytes: the disk never was full"
        );
        acknowledged.extend(ids);
        refused.extend(failed);
        limit_file_bytes(&server, "unlimited:");
        await_writable(&mut client);
    }
    assert!(!acknowledged.is_empty(), "no write was taken before the disk was full");
    for (key, number) in &refused {
        client
            .post_with("/v1/senders", key, &sender_numbered(*number))
            .expect_success("the retry of a refused write");
    }
    let senders = client.list("/v1/senders", "");
    let listed: std::collections::HashSet<&str> =
        senders.iter().filter_map(|sender| sender["id"].as_str()).collect();
    let lost: Vec<&String> =
        acknowledged.iter().filter(|id| !listed.contains(id.as_str())).collect();
    assert!(
        lost.is_empty(),
        "{} acknowledged senders are gone, such as {:?}",
        lost.len(),
        lost.first()
    );
    let doubled: Vec<usize> = sender_counts(&mut client, number_next)
        .into_iter()
        .enumerate()
        .filter(|(_, count)| *count > 1)
        .map(|(number, _)| number)
        .collect();
    assert!(doubled.is_empty(), "numbers that were stored more than once: {doubled:?}");
    home.check().expect_success("the check beside the running server");
    assert!(home.panics().is_empty(), "{:?}", home.panics());
    assert!(server.stop().success(), "the server did not end well");
    home.check().expect_success("the check of the stopped server's database");
}
