//! Public gateways: their limits, their bans, and the questions that they refuse.
//!
//! Limits are tried in virtual time: the test moves the timer by which both the service and the
//! gateway count, so that minutes of waiting take no time.

use std::sync::atomic::Ordering;
use std::time::Duration;

use hundi::chains::timer::Timer;
use serde_json::{Value, json};

use crate::anvil::FINALITY_BLOCKS;
use crate::proxy::{Faults, Sanction};
use crate::service::{Setup, Stage, address};

const BLOCK_SECONDS: u64 = 3;
const DEPOSITS: usize = 12;
/// A deposit is credited within this time of its block being final.
const CREDITED_SECONDS_MAX: u64 = 120;

/// A service before gateways, with the poll and the limits of a default configuration.
async fn stage(proxies: usize, limits: [&'static str; 2]) -> (Stage, Timer) {
    let timer = Timer::manual();
    let moving = timer.clone();
    // Nothing waits for the test while the stage is set.
    let mover = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            moving.advance(Duration::from_millis(100));
        }
    });
    let stage = Stage::set_with(Setup {
        proxies,
        more: vec![
            ("HUNDI_TEST_CHAIN_POLL_MILLISECONDS", "3000"),
            ("HUNDI_TEST_CHAIN_REQUESTS_PER_SECOND", limits[0]),
            ("HUNDI_TEST_CHAIN_REQUESTS_PER_DAY", limits[1]),
        ],
        timer: timer.clone(),
        ..Setup::default()
    })
    .await;
    mover.abort();
    (stage, timer)
}

fn calls(stage: &Stage) -> usize {
    stage.proxies.iter().map(|proxy| proxy.calls_count()).sum()
}

/// Lets a second pass: a block every three of them, as on TRON's main net with something of the
/// token in each; then waits until the follower has done what it can do in that second.
async fn pass_second(stage: &Stage, timer: &Timer, second: u64) {
    if second.is_multiple_of(BLOCK_SECONDS) {
        stage.token.noise(1).await;
        stage.mine(1).await;
    }
    for _ in 0..4 {
        timer.advance(Duration::from_millis(250));
        let mut seen = usize::MAX;
        while seen != calls(stage) || timer.sleepers_count() == 0 {
            seen = calls(stage);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Twelve deposits, one every four blocks; answers how many seconds after its block was final each
/// was credited, and how long the run took.
async fn credited_after(stage: &Stage, timer: &Timer) -> Vec<Option<u64>> {
    let mut transfers = Vec::new();
    for _ in 0..DEPOSITS {
        transfers.push(stage.transfer("100.00").await);
    }
    let mut blocks: Vec<u64> = Vec::new();
    let mut finals = [None; DEPOSITS];
    let mut credited = vec![None; DEPOSITS];
    let seconds = (DEPOSITS as u64 * 4 + FINALITY_BLOCKS) * BLOCK_SECONDS + CREDITED_SECONDS_MAX;
    for second in 0..=seconds {
        if second.is_multiple_of(4 * BLOCK_SECONDS) && blocks.len() < DEPOSITS {
            stage.token.transfer(address(&transfers[blocks.len()]), 100_000_000).await;
            blocks.push(stage.chain.head().await + 1);
        }
        pass_second(stage, timer, second).await;
        let (last_final, height) = (stage.chain.finalized().await, stage.height() as u64);
        for (place, block) in blocks.iter().enumerate() {
            if last_final >= *block && finals[place].is_none() {
                finals[place] = Some(second);
            }
            if height >= *block && credited[place].is_none() {
                credited[place] = finals[place].map(|at| second - at);
            }
        }
        if credited.iter().all(Option::is_some) {
            break;
        }
    }
    credited
}

#[tokio::test]
async fn every_deposit_is_credited_in_time_behind_a_gateway_with_limits() {
    type Limit = fn(&mut Faults);
    const BAN: Sanction = Sanction::Ban { duration: Duration::from_secs(30) };
    const WAIT: Sanction = Sanction::TooMany { retry_after_seconds: 1 };
    // What the gateway does, what is configured of it, and how many endpoints there are.
    let table: [(&str, Limit, [&str; 2], usize); 8] = [
        ("5 a second", |faults| faults.calls_per_second_max = Some((5, WAIT)), ["5", "100000"], 1),
        ("5 a second, bans", |faults| faults.calls_per_second_max = Some((5, BAN)), ["5", "0"], 1),
        (
            "5 a second, 503, and no limit is known",
            |faults| faults.calls_per_second_max = Some((5, Sanction::Busy)),
            ["0", "0"],
            1,
        ),
        ("1 a second", |faults| faults.calls_per_second_max = Some((1, WAIT)), ["1", "100000"], 1),
        (
            "1 a second, bans, and nobody has said so",
            |faults| faults.calls_per_second_max = Some((1, BAN)),
            ["5", "100000"],
            1,
        ),
        (
            "5 a second, bans, and no limit is known",
            |faults| faults.calls_per_second_max = Some((5, BAN)),
            ["0", "0"],
            1,
        ),
        ("a day's quota used up", |faults| faults.quota_calls = Some(40), ["5", "100000"], 1),
        (
            "1 a second, bans, at both of two",
            |faults| faults.calls_per_second_max = Some((1, BAN)),
            ["5", "100000"],
            2,
        ),
    ];
    for (what, limit, limits, proxies) in table {
        let (stage, timer) = stage(proxies, limits).await;
        for proxy in &stage.proxies {
            proxy.forget_calls();
            proxy.change(limit);
        }
        let credited = credited_after(&stage, &timer).await;
        let refused: usize = stage.proxies.iter().map(|proxy| proxy.refusals_count()).sum();
        eprintln!("{what}: {credited:?}, {} calls, {refused} refused", calls(&stage));
        assert!(
            credited
                .iter()
                .all(|after| after.is_some_and(|seconds| seconds <= CREDITED_SECONDS_MAX)),
            "{what}: {credited:?}"
        );
        stage.proxies.iter().for_each(|proxy| proxy.heal());
        assert_eq!(stage.oracle().oracle().verify().await.deposits, DEPOSITS, "{what}");
    }
}

/// What following costs on TRON's main net, where a day has 28 800 blocks.
#[tokio::test]
async fn a_day_of_following_stays_far_below_the_gateways_quota() {
    const MINUTES: u64 = 10;
    let (stage, timer) = stage(2, ["5", "100000"]).await;
    for second in 0..60 {
        pass_second(&stage, &timer, second).await;
    }
    stage.proxies.iter().for_each(|proxy| proxy.forget_calls());
    for second in 0..MINUTES * 60 {
        pass_second(&stage, &timer, second).await;
    }
    let a_day: Vec<u64> =
        stage.proxies.iter().map(|proxy| proxy.calls_count() as u64 * 24 * 60 / MINUTES).collect();
    eprintln!("requests a day of each endpoint: {a_day:?}");
    assert!(a_day.iter().all(|requests| *requests < 60_000), "{a_day:?}");
    let behind = stage.chain.finalized().await as i64 - stage.height();
    assert!(behind * BLOCK_SECONDS as i64 <= 20, "{behind} blocks behind");
    assert!(!stage.is_in_trouble());
}

/// Pays, and expects it credited without an alarm.
async fn expect_paid(stage: &Stage, what: &str) {
    let transfer = stage.transfer("100.00").await;
    stage.token.transfer(address(&transfer), 100_000_000).await;
    stage.token.noise(3).await;
    stage.settle().await;
    stage.verify().await;
    assert!(!stage.is_in_trouble(), "{what}");
}

fn rpc_error(code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}})
}

#[tokio::test]
async fn a_refused_batch_is_asked_one_by_one() {
    let refusals: [(u16, Value); 9] = [
        (200, rpc_error(-32600, "Invalid Request")),
        (200, rpc_error(-32603, "Internal error")),
        (200, rpc_error(-32600, "Too many [\"eth_getLogs\"] methods in the batch")),
        (400, rpc_error(-32600, "batch requests are not supported")),
        (500, rpc_error(-32603, "cannot unmarshal array into Go value")),
        (403, rpc_error(-32601, "batch is not whitelisted")),
        (200, json!([rpc_error(-32600, "Batch requests are disabled")])),
        (405, json!({"message": "method not allowed"})),
        (200, json!({"jsonrpc": "2.0", "id": 1, "result": "0x1"})),
    ];
    for (status, body) in refusals {
        let stage = Stage::set().await;
        stage.proxy().change(|faults| faults.batch_refusal = Some((status, body.clone())));
        expect_paid(&stage, &format!("{status} {body}")).await;
    }
}

#[tokio::test]
async fn a_refused_block_of_receipts_is_read_in_another_way() {
    let refusals: [(u16, Value); 11] = [
        (404, json!({"message": "not found"})),
        (405, json!("method not allowed")),
        (400, rpc_error(-32602, "bad request")),
        (403, rpc_error(-32052, "method eth_getBlockReceipts is not whitelisted")),
        (200, rpc_error(-32000, "receipts length mismatch: 0 vs 1")),
        (200, rpc_error(-32601, "the method eth_getBlockReceipts does not exist")),
        (500, rpc_error(-32603, "Internal error")),
        (200, json!({"jsonrpc": "2.0", "id": 1, "result": null})),
        (200, json!({"jsonrpc": "2.0", "id": 1, "result": []})),
        (200, json!({"jsonrpc": "2.0", "id": 1, "result": [{"status": true}]})),
        (200, json!("<!doctype html>")),
    ];
    const BLOCK_INFO: &str = "/wallet/gettransactioninfobyblocknum";
    for (status, body) in refusals {
        for is_block_info_missing in [false, true] {
            let stage = Stage::set().await;
            stage.proxy().forget_calls();
            stage.proxy().change(|faults| {
                faults.receipts_refusal = Some((status, body.clone()));
                faults.is_block_info_missing = is_block_info_missing;
            });
            expect_paid(&stage, &format!("{status} {body}")).await;
            let proxy = stage.proxy();
            assert!(proxy.calls(BLOCK_INFO) >= 1, "TRON's own interface is tried first");
            assert!(!is_block_info_missing || proxy.calls("eth_getTransactionReceipt") >= 2);
        }
    }
}

/// A java-tron as it comes from its makers does not call contracts, and says so.
#[tokio::test]
async fn a_node_that_does_not_call_contracts_is_named_with_its_own_words() {
    let stage = Stage::set().await;
    stage.proxy().change(|faults| faults.is_constant_refused = true);
    let client = hundi::outbound::Client::new(rustls::RootCertStore::empty()).expect("a client");
    let fresh = hundi::chains::followed::FollowedChain::new(
        hundi::kernel::Mode::Test,
        stage.followed_chain().settings.clone(),
        &client,
    );
    let refused = fresh.check().await.unwrap_err();
    assert!(
        refused.contains("this node does not support constant")
            && refused.contains("vm.supportConstant"),
        "{refused}"
    );
    assert!(!fresh.nodes[0].fits());
    stage.proxy().heal();
    let healthy = hundi::chains::followed::FollowedChain::new(
        hundi::kernel::Mode::Test,
        stage.followed_chain().settings.clone(),
        &client,
    );
    assert_eq!(healthy.check().await, Ok(true), "the control");
    assert_eq!(stage.followed_chain().stats.doubts.load(Ordering::Relaxed), 0);
}
