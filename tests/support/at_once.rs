//! Many sends at the same instant, of one idempotency key or of many.

use std::sync::Barrier;

use serde_json::Value;

use super::{Answer, Client};

/// A blocked thread needs little.
const STACK_BYTES: usize = 256 * 1024;

/// Sends all requests at once, to the clients' addresses in turn, each on a connection that is open
/// before the first byte goes out. A request is its idempotency key and its body.
pub fn send_at_once(clients: &[Client], path: &str, requests: &[(String, String)]) -> Vec<Answer> {
    let barrier = Barrier::new(requests.len());
    std::thread::scope(|scope| {
        let threads: Vec<_> = requests
            .iter()
            .zip(clients.iter().cycle())
            .map(|((key, body), client)| {
                let mut caller = client.twin();
                let barrier = &barrier;
                let work = move || {
                    let connected = caller.connect();
                    barrier.wait();
                    connected?;
                    caller.once("POST", path, Some(key), Some(body.as_bytes()))
                };
                std::thread::Builder::new()
                    .stack_size(STACK_BYTES)
                    .spawn_scoped(scope, work)
                    .expect("a thread")
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .expect("a sender")
                    .unwrap_or_else(|trouble| panic!("POST {path} got no answer: {trouble}"))
            })
            .collect()
    })
}

/// One send did the work; every other one was told to wait or got the same bytes again.
pub fn expect_one_effect(answers: &[Answer]) -> Value {
    let done: Vec<&Answer> =
        answers.iter().filter(|answer| answer.is_success() && !answer.is_replay()).collect();
    assert_eq!(done.len(), 1, "{} sends say that they did the work", done.len());
    let mut locked_count = 0;
    for answer in answers {
        if answer.is_success() {
            assert_eq!(answer.status, 200);
            assert_eq!(answer.text(), done[0].text(), "two successes differ");
        } else {
            locked_count += 1;
            let body =
                answer.clone().expect_refusal(409, "resource_locked", "a send beside the first");
            assert_eq!(body["object"], "error");
        }
    }
    println!(
        "{} sends: 1 did the work, {locked_count} were told to wait, {} got a replay",
        answers.len(),
        answers.len() - 1 - locked_count
    );
    done[0].json()
}

/// One transfer got the quote lock that all of them asked for; every other one was told that it is
/// used. Answers the transfer.
pub fn expect_one_winner(answers: &[Answer]) -> Value {
    let won: Vec<&Answer> = answers.iter().filter(|answer| answer.is_success()).collect();
    assert_eq!(won.len(), 1, "{} transfers got the one quote lock", won.len());
    for answer in answers.iter().filter(|answer| !answer.is_success()) {
        answer.clone().expect_refusal(
            400,
            "quote_lock_already_used",
            "a transfer that lost the race",
        );
    }
    won[0].json()
}
